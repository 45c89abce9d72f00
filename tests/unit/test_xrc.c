/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * XRC (IBTA 1.4, annex A14): targets without queues, whose requests name the
 * SRQ that they want a receive of.
 */
#include "hub.h"
#include "internal.h"
#include "keys.h"

#define MS      1000000ULL
#define ALL     (VMRI_ACCESS_LOCAL_WRITE | VMRI_ACCESS_REMOTE_WRITE | \
                 VMRI_ACCESS_REMOTE_READ | VMRI_ACCESS_REMOTE_ATOMIC)

/* A hub with an XRC domain, its SRQ with a CQ of its own, and initiators. */
static struct hub xrc_new(unsigned int nr, uint32_t *xrcd,
                          const struct guest_conn *conn)
{
    struct hub h = { .guest = guest_new(1) };
    const struct guest_qp_opts out = { .type = VMRI_QPT_XRC_INI };
    struct guest_qp_opts in = { .type = VMRI_QPT_XRC_TGT };

    *xrcd = in.xrcd = guest_xrcd(h.guest);
    h.srq = guest_srq(h.guest, &(struct guest_srq_opts){ .xrcd = *xrcd });
    h.cq = h.srq->cq;
    h.mr = guest_mr(h.guest, HUB_BYTES, 3000, LAYOUT_SCATTERED, ALL);
    while ( h.nr < nr )
        hub_spoke(&h, &out, &in, conn);
    return h;
}

static struct guest_wr xrc_wr(const struct hub *h, const struct spoke *s,
                              unsigned int opcode, uint64_t wr_id,
                              uint32_t bytes)
{
    struct guest_wr wr = spoke_wr(h, s, opcode, wr_id, bytes);

    wr.srqn = h->srq->handle;
    return wr;
}

static void xrc_send(const struct hub *h, const struct spoke *s,
                     uint64_t wr_id, uint32_t bytes)
{
    struct guest_wr wr = xrc_wr(h, s, VMRI_WR_SEND, wr_id, bytes);

    qp_send(s->qp, &wr);
}

/* ---- objects ---- */

TEST(xrc_domains)
{
    struct guest *g = guest_new(1);
    struct vmri_object arg = { .handle = guest_xrcd(g) };
    const struct guest_qp_opts in = {
        .type = VMRI_QPT_XRC_TGT, .xrcd = arg.handle,
    };
    struct guest_qp *tgt = guest_qp(g, &in);
    struct guest_srq *srq =
        guest_srq(g, &(struct guest_srq_opts){ .xrcd = arg.handle });

    CHECK_EQ(guest_call(g, VMRI_OP_xrcd_destroy, &arg, sizeof(arg)), -EBUSY);
    CHECK_EQ(cq_destroy(srq->cq), -EBUSY);
    CHECK_EQ(srq_destroy(srq), 0);
    CHECK_EQ(cq_destroy(srq->cq), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_xrcd_destroy, &arg, sizeof(arg)), -EBUSY);
    CHECK_EQ(qp_destroy(tgt), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_xrcd_destroy, &arg, sizeof(arg)), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_xrcd_destroy, &arg, sizeof(arg)), -ENOENT);
    arg.reserved = 1;
    CHECK_EQ(guest_call(g, VMRI_OP_xrcd_create, &arg, sizeof(arg)), -EINVAL);
}

TEST(xrc_domain_creation_fails_anywhere)
{
    struct guest *g = guest_new(1);
    enum env_failure what;
    uint64_t before;

    guest_xrcd(g);
    before = env_stats.allocated;
    for ( what = 0; what < ENV_FAIL_NR; what++ )
    {
        struct vmri_object arg = { .handle = 0 };
        long rc;

        env_test_fail(what, 1);
        rc = guest_call(g, VMRI_OP_xrcd_create, &arg, sizeof(arg));
        if ( env_test_fail_left(what) )
        {
            env_test_fail(what, 0);
            CHECK_EQ(guest_call(g, VMRI_OP_xrcd_destroy, &arg, sizeof(arg)), 0);
        }
        else
            CHECK(rc < 0);
        CHECK_EQ(env_stats.allocated, before);
    }
}

static void check_bad(struct guest *g, const struct guest_qp_opts *opts,
                      size_t at, uint32_t value, long rc)
{
    struct guest_qp *qp = qp_prepare(g, opts);

    memcpy((uint8_t *)&qp->arg + at, &value, sizeof(value));
    CHECK_AT(try_qp(qp), rc, "field at %zu", at);
}

#define FIELD(name) offsetof(struct vmri_qp_create, name)

TEST(xrc_queue_pairs_that_cannot_be)
{
    struct guest *g = guest_new(1);
    const uint32_t xrcd = guest_xrcd(g);
    struct guest_cq *cq = guest_cq(g, 6);
    struct guest_srq *srq =
        guest_srq(g, &(struct guest_srq_opts){ .xrcd = xrcd });
    const struct guest_qp_opts rc = { .scq = cq };
    const struct guest_qp_opts ini = { .type = VMRI_QPT_XRC_INI, .scq = cq };
    const struct guest_qp_opts tgt = { .type = VMRI_QPT_XRC_TGT, .xrcd = xrcd };
    const struct guest_qp_opts sharing = { .srq = srq, .scq = cq };
    struct guest_qp *qp = qp_prepare(g, &tgt);

    check_bad(g, &rc, FIELD(xrcd), xrcd, -EINVAL);
    check_bad(g, &ini, FIELD(xrcd), xrcd, -EINVAL);
    check_bad(g, &ini, FIELD(recv_cq), cq->handle, -EINVAL);
    check_bad(g, &ini, FIELD(srq), srq->handle, -EINVAL);
    check_bad(g, &ini, FIELD(send_cq), 0, -ENOENT);
    check_bad(g, &tgt, FIELD(xrcd), 0, -ENOENT);
    check_bad(g, &tgt, FIELD(xrcd), xrcd + 1, -ENOENT);
    check_bad(g, &tgt, FIELD(pd), 99, -ENOENT);
    check_bad(g, &tgt, FIELD(eq), 99, -ENOENT);
    check_bad(g, &tgt, FIELD(send_cq), cq->handle, -EINVAL);
    check_bad(g, &tgt, FIELD(recv_cq), cq->handle, -EINVAL);
    check_bad(g, &tgt, FIELD(srq), srq->handle, -EINVAL);
    check_bad(g, &tgt, FIELD(frames.nr), 1, -EINVAL);
    check_bad(g, &tgt, FIELD(frames.gfns), 0x1000, -EINVAL);
    check_bad(g, &tgt, FIELD(frames.reserved), 1, -EINVAL);
    check_bad(g, &tgt, FIELD(ind_offset), 256, -EINVAL);
    check_bad(g, &tgt, FIELD(sq_offset), 256, -EINVAL);
    check_bad(g, &tgt, FIELD(max_inline), 1, -EINVAL);
    /* An SRQ for XRC is for nobody else. */
    CHECK_EQ(try_qp(qp_prepare(g, &sharing)), -EINVAL);

    qp->arg.sq_log2_stride = 7;
    CHECK_EQ(try_qp(qp), -EINVAL);
    qp->arg.sq_log2_stride = 0;
    qp->arg.rq_log2_stride = 7;
    CHECK_EQ(try_qp(qp), -EINVAL);
    qp->arg.rq_log2_stride = 0;
    CHECK_EQ(try_qp(qp), 0);
    CHECK_EQ(qp_destroy(qp), 0);
    CHECK_EQ(srq_destroy(srq), 0);
}

TEST(xrc_queues_that_cannot_be)
{
    struct guest *g = guest_new(1);
    const uint32_t xrcd = guest_xrcd(g);
    struct guest_srq *srq =
        srq_prepare(g, &(struct guest_srq_opts){ .xrcd = xrcd });

    srq->arg.cq = 0;
    CHECK_EQ(try_srq(srq), -EINVAL);
    srq->arg.cq = 99;
    CHECK_EQ(try_srq(srq), -ENOENT);
    srq->arg.cq = srq->cq->handle;
    srq->arg.xrcd = 99;
    CHECK_EQ(try_srq(srq), -ENOENT);
    srq->arg.xrcd = xrcd;
    CHECK_EQ(try_srq(srq), 0);
}

/* The dump has lines for all of them. */
TEST(xrc_dump)
{
    uint32_t xrcd;
    struct hub h = xrc_new(1, &xrcd, NULL);

    xrc_send(&h, &h.spoke[0], 1, 8);
    vmri_dump();
    CHECK(strstr(env_test_printed(), "XRC_INI"));
    CHECK(strstr(env_test_printed(), "XRC_TGT"));
    CHECK(strstr(env_test_printed(), "waited for"));
    CHECK(strstr(env_test_printed(), "xrcd"));
}

/* ---- operations ---- */

TEST(xrc_every_operation)
{
    uint32_t xrcd;
    struct hub h = xrc_new(1, &xrcd, &(struct guest_conn){ .access = ALL });
    struct spoke *s = &h.spoke[0];
    static const uint8_t ops[] = {
        VMRI_WR_SEND, VMRI_WR_SEND_WITH_IMM, VMRI_WR_RDMA_WRITE,
        VMRI_WR_RDMA_WRITE_WITH_IMM, VMRI_WR_RDMA_READ,
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(ops); i++ )
    {
        const uint32_t bytes = 300000;
        struct guest_wr wr = xrc_wr(&h, s, ops[i], i, bytes);
        bool imm = ops[i] == VMRI_WR_SEND_WITH_IMM ||
                   ops[i] == VMRI_WR_RDMA_WRITE_WITH_IMM;
        bool read = ops[i] == VMRI_WR_RDMA_READ;
        struct vmri_cqe cqe;

        fill_pattern(read ? h.mr.mem : s->mr.mem, bytes, i);
        if ( imm || ops[i] == VMRI_WR_SEND )
            hub_recv(&h, 100 + i, 0, bytes);
        else
            wr.srqn = 0xabcdef;     /* not looked at */
        qp_send(s->qp, &wr);
        cq_expect(s->qp->scq, i, 0);
        CHECK_EQ(match_pattern(read ? s->mr.mem : h.mr.mem, bytes, i, 0),
                 bytes);
        if ( !imm && ops[i] != VMRI_WR_SEND )
            continue;
        cqe = cq_expect(h.cq, 100 + i, 0);
        CHECK_EQ(cqe.qpn, s->in->qpn);
        CHECK_EQ(cqe.byte_len, bytes);
        CHECK_EQ(cqe.imm, imm ? wr.imm : 0);
    }
    cq_expect_none(h.cq);
    /* A target has nothing to run. */
    CHECK_EQ(guest_schedule(h.guest, s->in->qpn), 0);
}

/* As on the other types: 512 bytes inline, 32 entries on both sides. */
TEST(xrc_inline_and_entries)
{
    enum { ENTRIES = 32, PIECE = 70, INLINE = 512, APART = 600 };
    struct hub h = { .guest = guest_new(1) };
    const struct guest_qp_opts out = {
        .type = VMRI_QPT_XRC_INI, .max_inline = INLINE, .max_send_sge = ENTRIES,
    };
    struct guest_qp_opts in = { .type = VMRI_QPT_XRC_TGT };
    struct vmri_sge recv[ENTRIES];
    struct guest_wr wr;
    struct spoke *s;
    unsigned int i;

    in.xrcd = guest_xrcd(h.guest);
    h.srq = guest_srq(h.guest, &(struct guest_srq_opts){
        .xrcd = in.xrcd, .max_sge = ENTRIES });
    h.cq = h.srq->cq;
    h.mr = guest_mr(h.guest, HUB_BYTES, 3000, LAYOUT_SCATTERED, ALL);
    s = hub_spoke(&h, &out, &in, NULL);

    wr = xrc_wr(&h, s, VMRI_WR_SEND, 1, 0);
    wr.num_sge = ENTRIES;
    for ( i = 0; i < ENTRIES; i++ )
    {
        fill_pattern(s->mr.mem + APART * i, PIECE, 1000 * i);
        wr.sge[i] = mr_sge(&s->mr, APART * i, PIECE);
        recv[i] = mr_sge(&h.mr, 5000 + APART * i, PIECE);
    }
    srq_recv(h.srq, 2, recv, ENTRIES);
    qp_send(s->qp, &wr);
    cq_expect(s->qp->scq, 1, 0);
    CHECK_EQ(cq_expect(h.cq, 2, 0).byte_len, ENTRIES * PIECE);
    for ( i = 0; i < ENTRIES; i++ )
        CHECK_EQ(match_pattern(h.mr.mem + 5000 + APART * i, PIECE, 1000 * i, 0),
                 PIECE);

    for ( i = 0; i < 2; i++ )
    {
        wr = xrc_wr(&h, s, VMRI_WR_SEND, 3, 0);
        wr.flags |= VMRI_SEND_INLINE;
        wr.num_sge = 0;
        wr.data = i ? NULL : s->mr.mem;
        wr.length = INLINE + i;
        fill_pattern(s->mr.mem, INLINE, 7);
        hub_recv(&h, 4, 0, HUB_BYTES);
        qp_send(s->qp, &wr);
        cq_expect(s->qp->scq, 3, i ? VMRI_WC_LOC_LEN_ERR : 0);
        if ( i )
            break;
        CHECK_EQ(cq_expect(h.cq, 4, 0).byte_len, INLINE);
        CHECK_EQ(match_pattern(h.mr.mem, INLINE, 7, 0), INLINE);
    }
    cq_expect_none(h.cq);
}

/*
 * A target serves many processes: whose memory a request may reach is said by
 * the SRQ that it names.
 */
TEST(xrc_keys_are_of_the_queue_that_is_named)
{
    static const uint8_t ops[] = {
        VMRI_WR_RDMA_WRITE, VMRI_WR_ATOMIC_FETCH_AND_ADD,
    };
    const struct guest_qp_opts out = { .type = VMRI_QPT_XRC_INI };
    struct guest_qp_opts in = { .type = VMRI_QPT_XRC_TGT };
    uint32_t xrcd;
    struct hub h = xrc_new(0, &xrcd, NULL);
    struct guest_srq *other = guest_srq(h.guest, &(struct guest_srq_opts){
        .xrcd = xrcd, .pd = guest_pd(h.guest),
    });
    unsigned int i;

    in.xrcd = xrcd;
    in.pd = guest_pd(h.guest);      /* nothing is in there */
    for ( i = 0; i < 3 * ARRAY_SIZE(ops); i++ )
    {
        struct spoke *s = hub_spoke(&h, &out, &in,
                                    &(struct guest_conn){ .access = ALL });
        struct guest_wr wr = xrc_wr(&h, s, ops[i / 3], i, 8);

        wr.srqn = i % 3 == 0 ? h.srq->handle : i % 3 == 1 ? other->handle : 0;
        qp_send(s->qp, &wr);
        if ( i % 3 == 0 )
            cq_expect(s->qp->scq, i, 0);
        else
            CHECK_EQ(cq_expect(s->qp->scq, i,
                               VMRI_WC_REM_ACCESS_ERR).vendor_err,
                     VMRI_VERR_PD);
    }
}

/*
 * So is which key it has invalidated: by the SRQ's PD and privilege, whatever
 * the target's.
 */
TEST(xrc_invalidates_keys_of_the_queue_that_is_named)
{
    const struct guest_qp_opts out = { .type = VMRI_QPT_XRC_INI };
    struct guest_qp_opts in = { .type = VMRI_QPT_XRC_TGT };
    uint32_t xrcd;
    struct hub h = xrc_new(0, &xrcd, NULL);
    struct guest *g = h.guest;
    struct guest_qp *owner = guest_qp(g, &(struct guest_qp_opts){
        .kernel = true,
    });
    struct guest_mr m = mr_pages(g, 4096, 0, LAYOUT_RUN);
    struct guest_srq *srq[3];
    unsigned int i;

    in.xrcd = xrcd;
    qp_connect(owner, owner, NULL);
    m.iova = 0x10000;
    for ( i = 0; i < 3; i++ )
        srq[i] = guest_srq(g, &(struct guest_srq_opts){
            .xrcd = xrcd, .cq = h.cq, .kernel = i != 1,
            .pd = i == 2 ? guest_pd(g) : g->pd,
        });
    for ( i = 0; i < 6; i++ )
    {
        static const uint16_t verr[] = { 0, VMRI_VERR_KEY, VMRI_VERR_PD };
        uint32_t key = fast_new(g, 1);
        struct guest_wr wr = wr_reg(key, &m, LW);
        struct spoke *s;

        qp_send(owner, &wr);
        cq_expect(owner->scq, 7, 0);
        in.kernel = i / 3;
        in.pd = i / 3 ? g->pd : guest_pd(g);
        s = hub_spoke(&h, &out, &in, NULL);
        wr = xrc_wr(&h, s, VMRI_WR_SEND_WITH_INV, i, 0);
        wr.srqn = srq[i % 3]->handle;
        wr.imm = next_name(key);
        srq_recv(srq[i % 3], i, NULL, 0);
        qp_send(s->qp, &wr);
        if ( i % 3 == 0 )
            cq_expect(s->qp->scq, i, 0);
        else
            CHECK_AT(cq_expect(s->qp->scq, i,
                               VMRI_WC_REM_ACCESS_ERR).vendor_err, verr[i % 3],
                     "queue %u", i);
    }
}

TEST(xrc_atomics)
{
    uint32_t xrcd;
    struct hub h = xrc_new(1, &xrcd, &(struct guest_conn){ .access = ALL });
    struct spoke *s = &h.spoke[0];
    struct guest_wr wr = xrc_wr(&h, s, VMRI_WR_ATOMIC_FETCH_AND_ADD, 1, 8);
    uint64_t value = 40;

    memcpy(h.mr.mem, &value, 8);
    wr.compare_add = 2;
    qp_send(s->qp, &wr);
    cq_expect(s->qp->scq, 1, 0);
    memcpy(&value, h.mr.mem, 8);
    CHECK_EQ(value, 42);
    memcpy(&value, s->mr.mem, 8);
    CHECK_EQ(value, 40);
}

/* Initiators of two hosts, targets of one, and SRQs of its processes. */
TEST(xrc_initiators_and_queues_cross)
{
    uint32_t xrcd;
    struct hub h = xrc_new(2, &xrcd, NULL);
    struct guest_srq *srq[3] = { h.srq };
    unsigned int i;

    for ( i = 1; i < 3; i++ )
        srq[i] = guest_srq(h.guest, &(struct guest_srq_opts){
            .xrcd = xrcd, .pd = guest_pd(h.guest),
        });
    for ( i = 0; i < 60; i++ )
    {
        struct spoke *s = &h.spoke[i & 1];
        struct guest_srq *to = srq[i % 3];
        struct guest_wr wr = xrc_wr(&h, s, VMRI_WR_SEND, i, i * 40);
        struct guest_mr mr = mr_pages(h.guest, 4096, 0, LAYOUT_RUN);
        struct vmri_sge sge;
        struct vmri_cqe cqe;

        /* Keys are of the SRQ's PD. */
        CHECK_EQ(try_mr(h.guest, &mr, to->arg.pd, ALL), 0);
        sge = mr_sge(&mr, 0, 4096);
        srq_recv(to, 1000 + i, &sge, 1);
        fill_pattern(s->mr.mem, i * 40, i);
        wr.srqn = to->handle;
        qp_send(s->qp, &wr);
        cq_expect(s->qp->scq, i, 0);
        cqe = cq_expect(to->cq, 1000 + i, 0);
        CHECK_EQ(cqe.qpn, s->in->qpn);
        CHECK_EQ(match_pattern(mr.mem, i * 40, i, 0), i * 40);
        CHECK_EQ(mr_deregister(&mr), 0);
    }
}

TEST(xrc_limit_and_resize)
{
    uint32_t xrcd;
    struct hub h = xrc_new(1, &xrcd, NULL);
    unsigned int i;

    for ( i = 0; i < 8; i++ )
        hub_recv(&h, i, 0, 100);
    CHECK_EQ(srq_set_limit(h.srq, 8), 0);
    CHECK_EQ(srq_resize(h.srq, 3), 0);
    xrc_send(&h, &h.spoke[0], 1, 8);
    world_settle();
    CHECK_EQ(h.guest->events[VMRI_EVENT_SRQ_LIMIT], 1);
    cq_expect(h.cq, 0, 0);
}

/* ---- what is refused ---- */

TEST(xrc_queues_that_are_not_the_targets)
{
    unsigned int how;

    for ( how = 0; how < 5; how++ )
    {
        static struct guest_srq *plain, *alien, *gone;
        static struct hub h;
        static uint32_t xrcd;
        const struct guest_qp_opts out = { .type = VMRI_QPT_XRC_INI };
        struct guest_qp_opts in = { .type = VMRI_QPT_XRC_TGT };
        struct guest_wr wr;
        struct vmri_cqe cqe;
        struct spoke *s;

        if ( !h.guest )
        {
            h = xrc_new(0, &xrcd, NULL);
            plain = guest_srq(h.guest, NULL);
            alien = guest_srq(h.guest, &(struct guest_srq_opts){
                .xrcd = guest_xrcd(h.guest),
            });
            gone = guest_srq(h.guest, &(struct guest_srq_opts){
                .xrcd = xrcd,
            });
            CHECK_EQ(srq_destroy(gone), 0);
            srq_recv(plain, 1, NULL, 0);
            srq_recv(alien, 2, NULL, 0);
        }
        in.xrcd = xrcd;
        s = hub_spoke(&h, &out, &in, NULL);
        wr = xrc_wr(&h, s, how & 1 ? VMRI_WR_SEND : VMRI_WR_RDMA_WRITE_WITH_IMM,
                    how, 0);
        wr.srqn = how == 0 ? plain->handle : how == 1 ? alien->handle
                  : how == 2 ? gone->handle : how == 3 ? 0 : 0xffffffff;
        qp_send(s->qp, &wr);
        cqe = cq_expect(s->qp->scq, how, VMRI_WC_REM_INV_REQ_ERR);
        CHECK_EQ(cqe.vendor_err, VMRI_VERR_SRQ);
        CHECK_EQ(qp_state(s->in), VMRI_QPS_ERR);
        world_settle();
        CHECK_EQ(h.guest->events[VMRI_EVENT_QP_REQ_ERR], how + 1);
        CHECK_EQ(h.guest->events[VMRI_EVENT_QP_LAST_WQE_REACHED], how + 1);
        CHECK_EQ(plain->hdr->cons + alien->hdr->cons, 0);
    }
}

/* A written byte would already be too much. */
TEST(xrc_wrong_queue_is_told_before_data_moves)
{
    uint32_t xrcd;
    struct hub h = xrc_new(1, &xrcd, NULL);
    struct spoke *s = &h.spoke[0];
    struct guest_wr wr = xrc_wr(&h, s, VMRI_WR_RDMA_WRITE_WITH_IMM, 1, 100000);

    wr.srqn++;
    fill_pattern(s->mr.mem, 100000, 1);
    qp_send(s->qp, &wr);
    cq_expect(s->qp->scq, 1, VMRI_WC_REM_INV_REQ_ERR);
    CHECK(all_bytes(h.mr.mem, 100000, 0));
}

/* Only initiators talk to targets, and only to them. */
TEST(xrc_types_that_do_not_fit)
{
    const struct guest_conn conn = { .timeout = 1, .retry_cnt = CONN_ZERO };
    static const uint8_t types[][2] = {
        { VMRI_QPT_RC, VMRI_QPT_XRC_TGT }, { VMRI_QPT_XRC_INI, VMRI_QPT_RC },
        { VMRI_QPT_XRC_INI, VMRI_QPT_XRC_INI },
    };
    struct guest *a = guest_new(1), *b = guest_new(2);
    const uint32_t xrcd = guest_xrcd(b);
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(types); i++ )
    {
        struct guest_qp_opts out = { .type = types[i][0] };
        struct guest_qp_opts in = { .type = types[i][1] };
        struct guest_wr wr = { .opcode = VMRI_WR_RDMA_WRITE, .wr_id = i };
        struct guest_qp *qp = guest_qp(a, &out);

        in.xrcd = in.type == VMRI_QPT_XRC_TGT ? xrcd : 0;
        qp_connect(qp, guest_qp(b, &in), &conn);
        qp_send(qp, &wr);
        world_pass(10 * MS, MS);
        cq_expect(qp->scq, i, VMRI_WC_RETRY_EXC_ERR);
    }
}

/* ---- waiting ---- */

TEST(xrc_waits_for_the_queue_that_it_named)
{
    const struct guest_conn patient = { .min_rnr_timer = CONN_ZERO };
    uint32_t xrcd;
    struct hub h = xrc_new(3, &xrcd, &patient);
    struct guest_srq *other =
        guest_srq(h.guest, &(struct guest_srq_opts){ .xrcd = xrcd });
    struct guest_wr wr = xrc_wr(&h, &h.spoke[1], VMRI_WR_SEND, 1, 8);
    struct vmri_sge sge = mr_sge(&h.mr, 0, 8);
    unsigned int i;

    wr.srqn = other->handle;
    xrc_send(&h, &h.spoke[0], 0, 8);
    qp_send(h.spoke[1].qp, &wr);
    xrc_send(&h, &h.spoke[2], 2, 8);
    CHECK_EQ(h.srq->hdr->wait, 1);
    CHECK_EQ(other->hdr->wait, 1);
    srq_recv(other, 5, &sge, 1);
    CHECK_EQ(other->hdr->wait, 0);
    world_settle();
    cq_expect(h.spoke[1].qp->scq, 1, 0);
    cq_expect(other->cq, 5, 0);
    for ( i = 0; i < 4; i += 2 )
    {
        cq_expect_none(h.spoke[i].qp->scq);
        hub_recv(&h, i, 0, 8);
        world_settle();
        cq_expect(h.spoke[i].qp->scq, i, 0);
        cq_expect(h.cq, i, 0);
    }
}

TEST(xrc_queue_destroyed_while_waited_for)
{
    uint32_t xrcd;
    struct hub h = xrc_new(2, &xrcd, NULL);
    unsigned int i;

    for ( i = 0; i < 2; i++ )
        xrc_send(&h, &h.spoke[i], i, 8);
    CHECK_EQ(srq_destroy(h.srq), 0);
    CHECK_EQ(env_test_page_refs(h.guest->domain, h.srq->gfn), 0);
    world_pass(1000 * MS, 10 * MS);
    for ( i = 0; i < 2; i++ )
    {
        struct vmri_cqe cqe = cq_expect(h.spoke[i].qp->scq, i,
                                        VMRI_WC_REM_INV_REQ_ERR);

        CHECK_EQ(cqe.vendor_err, VMRI_VERR_SRQ);
        CHECK_EQ(qp_destroy(h.spoke[i].in), 0);
    }
}

TEST(xrc_target_destroyed_while_it_waits)
{
    uint32_t xrcd;
    struct hub h = xrc_new(2, &xrcd, NULL);

    xrc_send(&h, &h.spoke[0], 0, 8);
    xrc_send(&h, &h.spoke[1], 1, 8);
    CHECK_EQ(qp_destroy(h.spoke[0].in), 0);
    hub_recv(&h, 5, 0, 8);
    world_settle();
    cq_expect(h.spoke[1].qp->scq, 1, 0);
    cq_expect(h.cq, 5, 0);
}

/* A target that is reset waits no more, and then for another queue. */
TEST(xrc_waits_elsewhere_later)
{
    const struct guest_conn quick = { .min_rnr_timer = 1, .rnr_retry = 1 };
    uint32_t xrcd;
    struct hub h = xrc_new(1, &xrcd, &quick);
    struct spoke *s = &h.spoke[0];
    struct guest_srq *first = h.srq;

    xrc_send(&h, s, 1, 8);
    CHECK_EQ(first->hdr->wait, 1);
    /* The sender forgets its message; the target knows nothing of that. */
    qp_set_state(s->qp, VMRI_QPS_RESET);
    s->qp->prod_s = s->qp->hdr->sq.prod;
    qp_to(s->qp, s->in, VMRI_QPS_INIT, NULL);
    qp_to(s->qp, s->in, VMRI_QPS_RTR, NULL);
    qp_to(s->qp, s->in, VMRI_QPS_RTS, NULL);
    h.srq = guest_srq(h.guest, &(struct guest_srq_opts){ .xrcd = xrcd });
    xrc_send(&h, s, 2, 8);
    CHECK_EQ(first->hdr->wait, 0);
    CHECK_EQ(h.srq->hdr->wait, 1);
    CHECK_EQ(srq_destroy(first), 0);
    hub_recv(&h, 5, 0, 8);
    world_settle();
    cq_expect(s->qp->scq, 2, 0);
}

/* ---- in the middle of a message ---- */

static void begin_message(struct hub *h, struct spoke *s)
{
    struct guest_wr wr = xrc_wr(h, s, VMRI_WR_SEND, 1, HUB_BYTES);

    hub_recv(h, 10, 0, HUB_BYTES);
    qp_post_send(s->qp, &wr);
    CHECK_EQ(guest_schedule(s->guest, s->qp->qpn), VMRI_SCHEDULE_MORE);
    CHECK_EQ(h->srq->hdr->cons, 1);
}

TEST(xrc_target_fails_in_the_middle)
{
    uint32_t xrcd;
    struct hub h = xrc_new(1, &xrcd, NULL);
    struct spoke *s = &h.spoke[0];
    struct vmri_cqe cqe;

    begin_message(&h, s);
    qp_set_state(s->in, VMRI_QPS_ERR);
    cqe = cq_expect(h.cq, 10, VMRI_WC_WR_FLUSH_ERR);
    CHECK_EQ(cqe.qpn, s->in->qpn);
    world_settle();
    CHECK_EQ(h.guest->events[VMRI_EVENT_QP_LAST_WQE_REACHED], 1);
    qp_set_state(s->in, VMRI_QPS_RESET);
    cq_expect_none(h.cq);
}

TEST(xrc_target_goes_in_the_middle)
{
    const struct guest_conn conn = { .timeout = 1, .retry_cnt = CONN_ZERO };
    uint32_t xrcd;
    struct hub h = xrc_new(1, &xrcd, &conn);
    struct spoke *s = &h.spoke[0];

    begin_message(&h, s);
    CHECK_EQ(qp_destroy(s->in), 0);
    qp_ring(s->qp);
    world_pass(10 * MS, MS);
    cq_expect(s->qp->scq, 1, VMRI_WC_RETRY_EXC_ERR);
    CHECK_EQ(srq_destroy(h.srq), 0);
}

/* Its receives go with an SRQ, begun ones too. */
TEST(xrc_queue_goes_in_the_middle)
{
    uint32_t xrcd;
    struct hub h = xrc_new(1, &xrcd, NULL);
    struct spoke *s = &h.spoke[0];
    uint64_t copied;

    begin_message(&h, s);
    CHECK_EQ(srq_destroy(h.srq), 0);
    copied = env_stats.copied;
    qp_ring(s->qp);
    world_settle();
    CHECK_EQ(env_stats.copied, copied);
    cq_expect(s->qp->scq, 1, VMRI_WC_REM_INV_REQ_ERR);
    cq_expect_none(h.cq);
    CHECK_EQ(qp_state(s->in), VMRI_QPS_ERR);
    CHECK_EQ(h.guest->events[VMRI_EVENT_QP_LAST_WQE_REACHED], 1);
    CHECK_EQ(cq_destroy(h.cq), 0);
}

/* The sender begins anew: the same queue's receive serves, another's goes. */
TEST(xrc_half_filled_receives)
{
    unsigned int other;

    for ( other = 0; other < 2; other++ )
    {
        static struct hub h;
        static uint32_t xrcd;
        struct guest_cq *cq;
        struct spoke *s;

        if ( !h.guest )
            h = xrc_new(2, &xrcd, NULL);
        h.srq = guest_srq(h.guest, &(struct guest_srq_opts){ .xrcd = xrcd });
        cq = h.cq = h.srq->cq;
        s = &h.spoke[other];
        begin_message(&h, s);
        qp_set_state(s->qp, VMRI_QPS_RESET);
        s->qp->prod_s = s->qp->hdr->sq.prod;
        qp_to(s->qp, s->in, VMRI_QPS_INIT, NULL);
        qp_to(s->qp, s->in, VMRI_QPS_RTR, NULL);
        qp_to(s->qp, s->in, VMRI_QPS_RTS, NULL);
        if ( other )
        {
            h.srq = guest_srq(h.guest,
                              &(struct guest_srq_opts){ .xrcd = xrcd });
            h.cq = h.srq->cq;
            hub_recv(&h, 11, 0, 100);
        }
        xrc_send(&h, s, 2, 100);
        cq_expect(s->qp->scq, 2, 0);
        if ( other )
            cq_expect(cq, 10, VMRI_WC_WR_FLUSH_ERR);
        cq_expect(h.cq, 10 + other, 0);
        cq_expect_none(h.cq);
    }
}

/* ---- the CQ of an SRQ is full ---- */

/* A flushed one, as another queue is named, finds no room: the target fails. */
TEST(xrc_half_filled_receive_finds_no_room)
{
    uint32_t xrcd;
    struct hub h = xrc_new(2, &xrcd, NULL);
    struct guest_cq *small = guest_cq(h.guest, 0);
    struct guest_srq *first = guest_srq(h.guest, &(struct guest_srq_opts){
        .xrcd = xrcd, .cq = small,
    }), *other = h.srq;
    struct spoke *s = &h.spoke[0];

    h.srq = first;
    begin_message(&h, s);
    hub_recv(&h, 11, 0, 8);
    xrc_send(&h, &h.spoke[1], 1, 8);
    cq_expect(h.spoke[1].qp->scq, 1, 0);
    qp_set_state(s->qp, VMRI_QPS_RESET);
    s->qp->prod_s = s->qp->hdr->sq.prod;
    qp_to(s->qp, s->in, VMRI_QPS_INIT, NULL);
    qp_to(s->qp, s->in, VMRI_QPS_RTR, NULL);
    qp_to(s->qp, s->in, VMRI_QPS_RTS, NULL);

    h.srq = other;
    hub_recv(&h, 12, 0, 8);
    xrc_send(&h, s, 2, 8);
    CHECK_EQ(cq_expect(s->qp->scq, 2, VMRI_WC_REM_OP_ERR).vendor_err,
             VMRI_VERR_RING);
    world_settle();
    CHECK_EQ(h.guest->events[VMRI_EVENT_CQ_ERR], 1);
    CHECK_EQ(h.guest->events[VMRI_EVENT_QP_FATAL], 1);
    CHECK_EQ(qp_state(s->in), VMRI_QPS_ERR);
    cq_expect(small, 11, 0);
    cq_expect_none(small);
    /* The receive of the other queue is there for others. */
    CHECK_EQ(other->hdr->cons, 0);
    xrc_send(&h, &h.spoke[1], 3, 8);
    cq_expect(other->cq, 12, 0);
}

TEST(xrc_completion_queue_overflows)
{
    uint32_t xrcd;
    struct hub h = xrc_new(2, &xrcd, NULL);
    unsigned int i;

    h.srq = guest_srq(h.guest, &(struct guest_srq_opts){
        .xrcd = xrcd, .cq = guest_cq(h.guest, 0),
    });
    for ( i = 0; i < 3; i++ )
        hub_recv(&h, i, 0, 8);
    xrc_send(&h, &h.spoke[0], 1, 8);
    cq_expect(h.spoke[0].qp->scq, 1, 0);
    xrc_send(&h, &h.spoke[1], 2, 8);
    cq_expect(h.spoke[1].qp->scq, 2, VMRI_WC_REM_OP_ERR);
    world_settle();
    CHECK_EQ(h.guest->events[VMRI_EVENT_CQ_ERR], 1);
    CHECK_EQ(qp_state(h.spoke[1].in), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(h.spoke[0].in), VMRI_QPS_RTS);
}
