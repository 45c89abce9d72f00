/* SPDX-License-Identifier: GPL-2.0-only */
/* srq.c: shared receive queues: objects, receives, limit, errors. */
#include "hub.h"

/* ---- creation ---- */

struct bad_create {
    size_t at;
    unsigned int bytes;
    uint64_t value;
    int rc;
};

#define BAD(field, value, rc)                                               \
    { offsetof(struct vmri_srq_create, field),                              \
      sizeof(((struct vmri_srq_create *)0)->field), value, rc }

static const struct bad_create bad_creates[] = {
    BAD(pd, 99, -ENOENT), BAD(eq, 99, -ENOENT), BAD(xrcd, 1, -EINVAL),
    BAD(cq, 1, -EINVAL), BAD(flags, 2, -EINVAL), BAD(flags, 1U << 31, -EINVAL),
    BAD(limit, 17, -EINVAL), BAD(limit, ~0U, -EINVAL),
    BAD(offset, 0, -EINVAL), BAD(offset, 64, -EINVAL),
    BAD(offset, 140, -EINVAL), BAD(offset, 0xffffff80, -EINVAL),
    BAD(ind_offset, 16, -EINVAL), BAD(ind_log2_entries, 4, -EINVAL),
    BAD(log2_entries, 15, -EINVAL), BAD(log2_entries, 32, -EINVAL),
    BAD(log2_entries, 255, -EINVAL), BAD(log2_stride, 4, -EINVAL),
    BAD(log2_stride, 6, -EINVAL), BAD(log2_stride, 13, -EINVAL),
    BAD(log2_stride, 0, -EINVAL), BAD(max_sge, 33, -EINVAL),
    BAD(max_sge, 8, -EINVAL), BAD(max_sge, 255, -EINVAL),
    BAD(reserved, 1, -EINVAL), BAD(frames.nr, 0, -EINVAL),
    BAD(frames.nr, 99, -EINVAL), BAD(frames.gfns, 0, -EFAULT),
    BAD(frames.reserved, 1, -EINVAL),
};
#undef BAD

TEST(srq_bad_creations)
{
    struct guest *g = guest_new(1);
    struct guest_srq *srq = srq_prepare(g, &(struct guest_srq_opts){ 0 });
    uint64_t list[4], before = env_stats.allocated;
    struct vmri_srq_create arg;
    unsigned int i;

    guest_frames(&srq->arg.frames, list, srq->gfn, srq->pages);
    env_test_expose(list, sizeof(list));
    for ( i = 0; i < ARRAY_SIZE(bad_creates); i++ )
    {
        arg = srq->arg;
        memcpy((uint8_t *)&arg + bad_creates[i].at, &bad_creates[i].value,
               bad_creates[i].bytes);
        CHECK_AT(guest_call(g, VMRI_OP_srq_create, &arg, sizeof(arg)),
                 bad_creates[i].rc, "case %u", i);
        CHECK_EQ(env_test_page_refs(g->domain, srq->gfn), 0);
        CHECK(env_stats.allocated <= before + 2 * PAGE_SIZE);
    }
    env_test_hide();
    CHECK_EQ(try_srq(srq), 0);
}

TEST(srq_what_the_device_says)
{
    struct guest *g = guest_new(1);
    struct guest_srq *srq;
    struct vmri_srq_query q;

    CHECK_EQ(g->attr.max_srq_wr, 1U << 14);
    CHECK_EQ(g->attr.max_srq_sge, VMRI_MAX_SHARED_SGE);
    CHECK(g->attr.max_srq >= 1024);
    CHECK(g->attr.max_xrcd >= 64);
    srq = guest_srq(g, &(struct guest_srq_opts){
        .log2 = 14, .max_sge = VMRI_MAX_SHARED_SGE, .limit = 1U << 14,
    });
    CHECK(srq->handle && srq->handle < 1U << 24);
    CHECK_EQ(srq_query(srq, &q), 0);
    CHECK_EQ(q.entries, 1U << 14);
    CHECK_EQ(q.max_sge, VMRI_MAX_SHARED_SGE);
    CHECK_EQ(q.limit, 1U << 14);
    srq->handle ^= 1U << 17;
    CHECK_EQ(srq_query(srq, &q), -ENOENT);
    CHECK_EQ(srq_set_limit(srq, 1), -ENOENT);
    CHECK_EQ(srq_destroy(srq), -ENOENT);
    CHECK_EQ(guest_srq_schedule(g, srq->handle), -ENOENT);
}

/* What is lacking at any point leaves nothing behind. */
TEST(srq_creation_fails_anywhere)
{
    struct guest *g = guest_new(1);
    struct guest_srq *first = guest_srq(g, NULL);
    uint64_t before = env_stats.allocated;
    enum env_failure what;
    unsigned int nth;

    for ( what = 0; what < ENV_FAIL_NR; what++ )
        for ( nth = 1; ; nth++ )
        {
            struct guest_srq *srq = srq_prepare(g, &(struct guest_srq_opts){
                .log2 = 9, .max_sge = 3,
            });
            long rc;

            env_test_fail(what, nth);
            rc = try_srq(srq);
            if ( env_test_fail_left(what) )
            {
                env_test_fail(what, 0);
                CHECK_EQ(rc, 0);
                CHECK_EQ(srq_destroy(srq), 0);
                break;
            }
            CHECK(rc < 0);
            CHECK_EQ(env_stats.allocated, before);
            CHECK_EQ(env_test_page_refs(g->domain, srq->gfn), 0);
        }
    CHECK_EQ(srq_destroy(first), 0);
}

/* Large ones are made, and resized, in steps that others may come between. */
TEST(srq_made_in_steps)
{
    const struct guest_srq_opts opts = { .log2 = 14, .max_sge = 7 };
    struct guest *g = guest_new(1);
    struct guest_srq *srq;
    uint64_t preempts;

    env_test_preempt(1);
    preempts = env_stats.preempts;
    srq = guest_srq(g, &opts);
    CHECK(env_stats.preempts - preempts > 10);
    preempts = env_stats.preempts;
    CHECK_EQ(srq_resize(srq, 13), 0);
    CHECK(env_stats.preempts - preempts > 5);
    env_test_preempt(0);
    CHECK_EQ(srq_destroy(srq), 0);
}

/* The guest changes its mind in the middle of a resize: nothing stays. */
TEST(srq_used_and_busy)
{
    struct hub h = hub_new(1, 0, NULL, NULL);
    struct vmri_object pd = { .handle = h.guest->pd };

    CHECK_EQ(srq_destroy(h.srq), -EBUSY);
    CHECK_EQ(guest_call(h.guest, VMRI_OP_pd_destroy, &pd, sizeof(pd)), -EBUSY);
    CHECK_EQ(qp_destroy(h.spoke[0].in), 0);
    CHECK_EQ(srq_destroy(h.srq), 0);
    CHECK_EQ(env_test_page_refs(h.guest->domain, h.srq->gfn), 0);
}

/* A QP has receives of its own or an SRQ's. */
TEST(srq_queue_pairs_that_cannot_be)
{
    struct guest *g = guest_new(1);
    struct guest_srq *srq = guest_srq(g, NULL);
    struct guest_qp *qp = qp_prepare(g, &(struct guest_qp_opts){ 0 });

    qp->arg.srq = srq->handle;
    CHECK_EQ(try_qp(qp), -EINVAL);
    qp = qp_prepare(g, &(struct guest_qp_opts){ .srq = srq });
    qp->arg.srq = 0x1234;
    CHECK_EQ(try_qp(qp), -ENOENT);
    qp->arg.srq = srq->handle;
    qp->arg.type = VMRI_QPT_GSI;
    qp->arg.flags = VMRI_QPF_KERNEL;
    CHECK_EQ(try_qp(qp), -EINVAL);
    CHECK_EQ(srq_destroy(srq), 0);
}

/* ---- receives ---- */

static void check_shared(uint8_t type)
{
    struct hub h = hub_new(4, type, NULL, NULL);
    const uint32_t grh = type == VMRI_QPT_UD ? 40 : 0;
    unsigned int i;

    for ( i = 0; i < 40; i++ )
    {
        struct spoke *s = &h.spoke[i * 3 % 4];
        uint32_t n = i * 100 + 1;
        struct vmri_cqe cqe;

        fill_pattern(s->mr.mem, n, i);
        memset(h.mr.mem, 0x55, 9000);
        hub_recv(&h, 100 + i, 0, 8000);
        spoke_send(&h, s, i, n);
        cq_expect(s->qp->scq, i, 0);
        cqe = cq_expect(h.cq, 100 + i, 0);
        CHECK_EQ(cqe.qpn, s->in->qpn);
        CHECK_EQ(cqe.byte_len, grh + n);
        CHECK_EQ(cqe.opcode, VMRI_WC_OP_RECV);
        CHECK_EQ(match_pattern(h.mr.mem + grh, n, i, 0), n);
        CHECK(all_bytes(h.mr.mem, grh, 0x55));
        CHECK(all_bytes(h.mr.mem + grh + n, 100, 0x55));
        CHECK_EQ(h.srq->hdr->cons, i + 1);
    }
    CHECK_EQ(h.srq->hdr->wait, 0);
}

TEST(srq_shared_by_rc) { check_shared(VMRI_QPT_RC); }
TEST(srq_shared_by_uc) { check_shared(VMRI_QPT_UC); }
TEST(srq_shared_by_ud) { check_shared(VMRI_QPT_UD); }

TEST(srq_write_with_imm)
{
    struct hub h = hub_new(1, 0, NULL, NULL);
    struct spoke *s = &h.spoke[0];
    struct guest_wr wr = spoke_wr(&h, s, VMRI_WR_RDMA_WRITE_WITH_IMM, 1, 5000);
    struct vmri_cqe cqe;

    fill_pattern(s->mr.mem, 5000, 1);
    srq_recv(h.srq, 2, NULL, 0);
    qp_send(s->qp, &wr);
    cq_expect(s->qp->scq, 1, 0);
    cqe = cq_expect(h.cq, 2, 0);
    CHECK_EQ(cqe.opcode, VMRI_WC_OP_RECV_RDMA_WITH_IMM);
    CHECK_EQ(cqe.imm, wr.imm);
    CHECK_EQ(match_pattern(h.mr.mem, 5000, 1, 0), 5000);
}

/* A slot is the guest's again when a message begins to fill its receive. */
TEST(srq_slots_are_free_at_once)
{
    struct hub h = hub_new(1, 0, NULL, NULL);
    struct spoke *s = &h.spoke[0];
    struct guest_wr wr = spoke_wr(&h, s, VMRI_WR_SEND, 1, HUB_BYTES);
    struct vmri_sge sge[2] = {
        mr_sge(&h.mr, 0, 300000), mr_sge(&h.mr, 300000, HUB_BYTES - 300000),
    };

    fill_pattern(s->mr.mem, HUB_BYTES, 1);
    srq_recv(h.srq, 2, sge, 2);
    qp_post_send(s->qp, &wr);
    CHECK_EQ(guest_schedule(s->guest, s->qp->qpn), VMRI_SCHEDULE_MORE);
    CHECK_EQ(h.srq->hdr->cons, 1);
    memset(h.srq->mem + h.srq->arg.offset, 0xff,
           1U << (h.srq->arg.log2_entries + h.srq->arg.log2_stride));
    qp_ring(s->qp);
    cq_expect(h.cq, 2, 0);
    CHECK_EQ(match_pattern(h.mr.mem, HUB_BYTES, 1, 0), HUB_BYTES);
}

/* Messages of several at once, each into its own receive. */
TEST(srq_messages_that_overlap)
{
    struct hub h = hub_new(3, 0, NULL, NULL);
    const uint32_t bytes = 340000;
    unsigned int i, more = 3;

    for ( i = 0; i < 3; i++ )
    {
        struct guest_wr wr = spoke_wr(&h, &h.spoke[i], VMRI_WR_SEND, i, bytes);

        hub_recv(&h, i, i * bytes, bytes);
        fill_pattern(h.spoke[i].mr.mem, bytes, i);
        qp_post_send(h.spoke[i].qp, &wr);
    }
    while ( more )
        for ( more = i = 0; i < 3; i++ )
            more += guest_schedule(h.spoke[i].guest, h.spoke[i].qp->qpn) ==
                    VMRI_SCHEDULE_MORE;
    for ( i = 0; i < 3; i++ )
    {
        cq_expect(h.spoke[i].qp->scq, i, 0);
        cq_expect(h.cq, i, 0);
        CHECK_EQ(match_pattern(h.mr.mem + i * bytes, bytes, i, 0), bytes);
    }
}

/* Up to 32 entries, from the ring or the indirect list; of more, those. */
TEST(srq_entries)
{
    const struct guest_srq_opts opts = {
        .kernel = true, .ind_log2 = 7, .max_sge = 2,
    };
    struct hub h = hub_new(1, 0, &opts, NULL);
    struct spoke *s = &h.spoke[0];
    struct vmri_sge sge[GUEST_MAX_SGE];
    unsigned int n, i;

    for ( n = 0; n <= GUEST_MAX_SGE; n++ )
    {
        uint32_t bytes = (n < 32 ? n : 32) * 10;

        for ( i = 0; i < n; i++ )
            sge[i] = mr_sge(&h.mr, i * 50, 10);
        fill_pattern(s->mr.mem, 320, n);
        srq_recv(h.srq, n, sge, n);
        spoke_send(&h, s, n, bytes);
        cq_expect(s->qp->scq, n, 0);
        cq_expect(h.cq, n, 0);
        for ( i = 0; i < bytes / 10; i++ )
            CHECK_EQ(match_pattern(h.mr.mem + i * 50, 10, n, i * 10), 10);
    }

    /* One more byte than 32 hold. */
    srq_recv(h.srq, 1, sge, 33);
    spoke_send(&h, s, 2, 321);
    cq_expect(s->qp->scq, 2, VMRI_WC_REM_INV_REQ_ERR);
    cq_expect(h.cq, 1, VMRI_WC_LOC_LEN_ERR);
}

/* What a receive may name is the SRQ's affair, not the QP's. */
TEST(srq_privilege_is_the_queues_own)
{
    struct guest *g = guest_new(1);
    struct guest_mr mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    struct vmri_sge sge = {
        .addr = mr.gfn << 12, .length = 4096, .lkey = VMRI_LKEY_FRAMES,
    };
    struct hub h = { .guest = g, .mr = mr };
    unsigned int kernel;

    for ( kernel = 0; kernel < 2; kernel++ )
    {
        struct guest_srq_opts opts = { .kernel = kernel };
        struct guest_qp_opts in = { .kernel = !kernel };
        struct spoke *s;

        h.srq = in.srq = guest_srq(g, &opts);
        h.cq = in.rcq = guest_cq(g, 6);
        s = hub_spoke(&h, NULL, &in, NULL);
        fill_pattern(s->mr.mem, 4096, kernel);
        srq_recv(h.srq, 1, &sge, 1);
        spoke_send(&h, s, 2, 4096);
        if ( kernel )
        {
            cq_expect(h.cq, 1, 0);
            CHECK_EQ(match_pattern(mr.mem, 4096, kernel, 0), 4096);
        }
        else
        {
            struct vmri_cqe cqe = cq_expect(h.cq, 1, VMRI_WC_LOC_PROT_ERR);

            CHECK_EQ(cqe.vendor_err, VMRI_VERR_KEY);
            CHECK(all_bytes(mr.mem, 4096, 0));
        }
    }
}

TEST(srq_protection_domain_is_the_queues_own)
{
    struct guest *g = guest_new(1);
    uint32_t other = guest_pd(g);
    struct hub h = { .guest = g };
    unsigned int right;

    h.srq = guest_srq(g, &(struct guest_srq_opts){ .pd = other });
    h.cq = guest_cq(g, 6);
    for ( right = 0; right < 2; right++ )
    {
        struct guest_qp_opts in = { .srq = h.srq, .rcq = h.cq };
        struct spoke *s = hub_spoke(&h, NULL, &in, NULL);
        struct vmri_cqe cqe;

        h.mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
        CHECK_EQ(try_mr(g, &h.mr, right ? other : g->pd, 7), 0);
        hub_recv(&h, 1, 0, 4096);
        spoke_send(&h, s, 2, 100);
        cqe = cq_expect(h.cq, 1, right ? 0 : VMRI_WC_LOC_PROT_ERR);
        CHECK_EQ(cqe.vendor_err, right ? 0 : VMRI_VERR_PD);
        /* RDMA goes by the queue pair's. */
        if ( right )
        {
            struct guest_wr wr = spoke_wr(&h, s, VMRI_WR_RDMA_WRITE, 3, 100);

            cq_expect(s->qp->scq, 2, 0);
            qp_send(s->qp, &wr);
            cqe = cq_expect(s->qp->scq, 3, VMRI_WC_REM_ACCESS_ERR);
            CHECK_EQ(cqe.vendor_err, VMRI_VERR_PD);
        }
    }
}

/* Datagrams do not wait, and one that does not fit spends nothing. */
TEST(srq_datagrams_are_dropped)
{
    struct hub h = hub_new(2, VMRI_QPT_UD, NULL, NULL);
    struct vmri_counters c;

    spoke_send(&h, &h.spoke[0], 1, 100);
    hub_recv(&h, 5, 0, 40 + 99);
    spoke_send(&h, &h.spoke[1], 2, 100);
    cq_expect_none(h.cq);
    guest_counters(h.guest, &c);
    CHECK_EQ(c.ud_drops, 2);
    CHECK_EQ(h.srq->hdr->cons, 0);
    CHECK_EQ(h.srq->hdr->wait, 0);
    spoke_send(&h, &h.spoke[1], 3, 99);
    cq_expect(h.cq, 5, 0);
}

/* ---- the limit ---- */

static uint32_t limit_now(struct hub *h)
{
    struct vmri_srq_query q;

    CHECK_EQ(srq_query(h->srq, &q), 0);
    return q.limit;
}

TEST(srq_limit_is_told_once)
{
    struct hub h = hub_new(2, 0, NULL, NULL);
    unsigned int i;

    for ( i = 0; i < 10; i++ )
        hub_recv(&h, i, 0, 100);
    CHECK_EQ(srq_set_limit(h.srq, 4), 0);
    for ( i = 0; i < 6; i++ )
        spoke_send(&h, &h.spoke[i & 1], i, 8);
    CHECK_EQ(hub_limits(&h), 0);
    CHECK_EQ(limit_now(&h), 4);
    /* Three are left: fewer than four. */
    spoke_send(&h, &h.spoke[0], i, 8);
    CHECK_EQ(hub_limits(&h), 1);
    CHECK_EQ(limit_now(&h), 0);
    spoke_send(&h, &h.spoke[0], i, 8);
    CHECK_EQ(hub_limits(&h), 1);

    /* Set when there are fewer already; as many as the limit are enough. */
    CHECK_EQ(srq_set_limit(h.srq, 2), 0);
    CHECK_EQ(hub_limits(&h), 1);
    CHECK_EQ(srq_set_limit(h.srq, 3), 0);
    CHECK_EQ(hub_limits(&h), 2);
    CHECK_EQ(limit_now(&h), 0);
    CHECK_EQ(srq_set_limit(h.srq, 17), -EINVAL);
    CHECK_EQ(srq_set_limit(h.srq, 16), 0);
    CHECK_EQ(hub_limits(&h), 3);
}

TEST(srq_limit_given_at_creation)
{
    const struct guest_srq_opts opts = { .limit = 2 };
    struct hub h = hub_new(1, 0, &opts, NULL);

    CHECK_EQ(hub_limits(&h), 0);
    hub_recv(&h, 1, 0, 100);
    hub_recv(&h, 2, 0, 100);
    CHECK_EQ(hub_limits(&h), 0);
    spoke_send(&h, &h.spoke[0], 1, 8);
    CHECK_EQ(hub_limits(&h), 1);
}

/* ---- errors ---- */

TEST(srq_index_out_of_range)
{
    struct hub h = hub_new(3, 0, NULL, NULL);
    struct hub other = { .guest = h.guest, .mr = h.mr, .nr = h.nr };
    struct guest_qp_opts in = { 0 };
    struct spoke *s;
    struct vmri_cqe cqe;
    unsigned int i;

    other.srq = in.srq = guest_srq(h.guest, NULL);
    other.cq = in.rcq = guest_cq(h.guest, 6);
    s = hub_spoke(&other, NULL, &in, NULL);

    env_store(&h.srq->hdr->prod, 17);
    for ( i = 0; i < 2; i++ )
    {
        spoke_send(&h, &h.spoke[i], i, 8);
        cqe = cq_expect(h.spoke[i].qp->scq, i, VMRI_WC_REM_OP_ERR);
        CHECK_EQ(cqe.vendor_err, VMRI_VERR_RING);
        CHECK_EQ(qp_state(h.spoke[i].in), VMRI_QPS_ERR);
    }
    world_settle();
    CHECK_EQ(h.guest->events[VMRI_EVENT_SRQ_ERR], 1);
    CHECK_EQ(h.guest->events[VMRI_EVENT_QP_FATAL], 2);
    CHECK_EQ(h.guest->events[VMRI_EVENT_QP_LAST_WQE_REACHED], 2);
    cq_expect_none(h.cq);

    /* It stays dead, though the index is right again. */
    env_store(&h.srq->hdr->prod, 1);
    CHECK_EQ(srq_set_limit(h.srq, 1), -EINVAL);
    CHECK_EQ(srq_resize(h.srq, 5), -EINVAL);
    CHECK_EQ(guest_srq_schedule(h.guest, h.srq->handle), 0);
    spoke_send(&h, &h.spoke[2], 5, 8);
    cq_expect(h.spoke[2].qp->scq, 5, VMRI_WC_REM_OP_ERR);

    /* Nobody else is the worse for it. */
    hub_recv(&other, 7, 0, 100);
    spoke_send(&other, s, 8, 8);
    cq_expect(s->qp->scq, 8, 0);
    cq_expect(other.cq, 7, 0);
}

/* The same, found by who posts while somebody waits. */
TEST(srq_index_out_of_range_wakes_all)
{
    struct hub h = hub_new(3, 0, NULL, NULL);
    unsigned int i;

    for ( i = 0; i < 3; i++ )
        spoke_send(&h, &h.spoke[i], i, 8);
    env_store(&h.srq->hdr->prod, 1000);
    CHECK_EQ(guest_srq_schedule(h.guest, h.srq->handle), 0);
    world_settle();
    for ( i = 0; i < 3; i++ )
        cq_expect(h.spoke[i].qp->scq, i, VMRI_WC_REM_OP_ERR);
    CHECK_EQ(h.guest->events[VMRI_EVENT_SRQ_ERR], 1);
}

TEST(srq_receive_too_small)
{
    struct hub h = hub_new(2, 0, NULL, NULL);
    struct vmri_cqe cqe;

    hub_recv(&h, 1, 0, 99);
    hub_recv(&h, 2, 0, 100);
    spoke_send(&h, &h.spoke[0], 3, 100);
    cqe = cq_expect(h.spoke[0].qp->scq, 3, VMRI_WC_REM_INV_REQ_ERR);
    CHECK_EQ(cqe.vendor_err, VMRI_VERR_RECV_SIZE);
    cq_expect(h.cq, 1, VMRI_WC_LOC_LEN_ERR);
    /* The queue and the others are well. */
    spoke_send(&h, &h.spoke[1], 4, 100);
    cq_expect(h.cq, 2, 0);
}

/* IBTA 1.4, 11.6.3: the event comes when all that was taken is complete. */
TEST(srq_last_request_reached)
{
    struct hub h = hub_new(2, 0, NULL, NULL);
    struct spoke *s = &h.spoke[0];
    struct vmri_cqe cqe;

    hub_begin(&h, s);
    qp_set_state(s->in, VMRI_QPS_ERR);
    cqe = cq_expect(h.cq, 10, VMRI_WC_WR_FLUSH_ERR);
    CHECK_EQ(cqe.qpn, s->in->qpn);
    CHECK_EQ(cqe.vendor_err, VMRI_VERR_FLUSHED);
    cq_expect_none(h.cq);
    world_settle();
    CHECK_EQ(h.guest->events[VMRI_EVENT_QP_LAST_WQE_REACHED], 1);
    CHECK_EQ(guest_schedule(h.guest, s->in->qpn), 0);
    world_settle();
    CHECK_EQ(h.guest->events[VMRI_EVENT_QP_LAST_WQE_REACHED], 1);

    /* What was not taken is there for others. */
    spoke_send(&h, &h.spoke[1], 2, 100);
    cq_expect(h.cq, 11, 0);

    /* Once each time. */
    qp_set_state(s->in, VMRI_QPS_RESET);
    qp_to(s->in, s->qp, VMRI_QPS_INIT, NULL);
    qp_set_state(s->in, VMRI_QPS_ERR);
    world_settle();
    CHECK_EQ(h.guest->events[VMRI_EVENT_QP_LAST_WQE_REACHED], 2);
}

/* A queue pair with receives of its own has no such event. */
TEST(srq_last_request_of_others)
{
    struct guest *g = guest_new(1);
    struct guest_qp *qp = guest_qp(g, NULL);

    qp_set_state(qp, VMRI_QPS_ERR);
    world_settle();
    CHECK_EQ(g->events[VMRI_EVENT_QP_LAST_WQE_REACHED], 0);
}

/* A failure that the sender causes ends in the same. */
TEST(srq_last_request_after_access_error)
{
    struct hub h = hub_new(1, 0, NULL, NULL);
    struct guest_wr wr = spoke_wr(&h, &h.spoke[0], VMRI_WR_RDMA_WRITE, 1, 8);

    hub_recv(&h, 1, 0, 100);
    wr.rkey ^= 1;
    qp_send(h.spoke[0].qp, &wr);
    cq_expect(h.spoke[0].qp->scq, 1, VMRI_WC_REM_ACCESS_ERR);
    world_settle();
    CHECK_EQ(h.guest->events[VMRI_EVENT_QP_ACCESS_ERR], 1);
    CHECK_EQ(h.guest->events[VMRI_EVENT_QP_LAST_WQE_REACHED], 1);
    cq_expect_none(h.cq);
}

TEST(srq_reset_in_the_middle_of_a_message)
{
    struct hub h = hub_new(2, 0, NULL, NULL);
    struct spoke *s = &h.spoke[0];

    hub_begin(&h, s);
    qp_set_state(s->in, VMRI_QPS_RESET);
    cq_expect(h.cq, 10, VMRI_WC_WR_FLUSH_ERR);
    world_settle();
    CHECK_EQ(h.guest->events[VMRI_EVENT_QP_LAST_WQE_REACHED], 0);
    spoke_send(&h, &h.spoke[1], 2, 100);
    cq_expect(h.cq, 11, 0);
    cq_expect_none(h.cq);
}

/* A sender that goes leaves its receive to the next message. */
TEST(srq_sender_goes_in_the_middle_of_a_message)
{
    struct hub h = hub_new(1, 0, NULL, NULL);
    struct spoke *s = &h.spoke[0];
    unsigned int state;

    hub_begin(&h, s);
    qp_set_state(s->qp, VMRI_QPS_RESET);
    s->qp->prod_s = s->qp->hdr->sq.prod;
    for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTS; state++ )
        qp_to(s->qp, s->in, state, NULL);
    fill_pattern(s->mr.mem, 5000, 3);
    spoke_send(&h, s, 2, 5000);
    cq_expect(h.cq, 10, 0);
    CHECK_EQ(match_pattern(h.mr.mem, 5000, 3, 0), 5000);
    CHECK_EQ(h.srq->hdr->cons, 1);
}

/* ---- the end ---- */

TEST(srq_device_closed_with_all_of_it)
{
    struct hub h = hub_new(3, 0, NULL, NULL);
    struct guest_qp *in = h.spoke[1].in;

    hub_begin(&h, &h.spoke[0]);
    hub_recv(&h, 12, 0, 100);
    spoke_send(&h, &h.spoke[1], 1, 8);
    spoke_send(&h, &h.spoke[1], 1, 8);
    spoke_send(&h, &h.spoke[1], 1, 8);
    spoke_send(&h, &h.spoke[2], 1, 8);
    CHECK_EQ(h.srq->hdr->wait, 1);
    CHECK_EQ(guest_call(h.guest, VMRI_OP_dev_destroy, NULL, 0), 0);
    CHECK_EQ(env_test_page_refs(h.guest->domain, h.srq->gfn), 0);
    CHECK_EQ(env_test_page_refs(h.guest->domain, in->gfn), 0);
    qp_ring(h.spoke[0].qp);
    world_pass(10000000000ULL, 100000000);
    cq_expect(h.spoke[0].qp->scq, 1, VMRI_WC_RETRY_EXC_ERR);
}
