/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wqe.c, transfer.c, engine.c: what is wrong with a request is told precisely,
 * once, to whom it concerns; then the queues are flushed, each request once.
 */
#include "pair.h"

/* What a request does wrong, and what must be said. */
struct wrong {
    const char *what;
    void (*spoil)(struct pair *p, struct guest_wr *wr);
    uint8_t opcode;
    uint8_t status;             /* of the request */
    uint16_t vendor_err;
    uint8_t recv_status;        /* of the peer's receive; 0: none completes */
    uint16_t recv_vendor_err;
    bool peer_fails;            /* the peer's QP goes to the error state */
    int peer_event;             /* raised there; -1: none */
};

static void opcode_unknown(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->opcode = 200;
}

static void opcode_privileged(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->opcode = VMRI_WR_REG_MR;
}

/* A matter of the guest's kernel. */
static void opcode_register(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->opcode = VMRI_WR_REG_MR;
}

static void sges_of_invalidate(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->opcode = VMRI_WR_LOCAL_INV;
}

static void flags_unknown(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->flags |= 0x40;
}

static void flags_inline_read(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->flags |= VMRI_SEND_INLINE;
}

static void flags_indirect(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->flags |= VMRI_SEND_INDIRECT;
    wr->num_sge = 0;
}

static void sges_too_many(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->num_sge = 5;
}

static void length_beyond_sges(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->length = 1001;
}

static void length_without_sges(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->num_sge = 0;
    wr->length = 1;
}

static void length_huge(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->length = (1U << 31) + 1;
    wr->sge[0].length = ~0U;
}

static void length_inline(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->flags |= VMRI_SEND_INLINE;
    wr->length = 65;
    wr->num_sge = 0;
}

static void lkey_none(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->sge[0].lkey ^= 0x10000;
}

static void lkey_frames(struct pair *p, struct guest_wr *wr)
{
    wr->sge[0].lkey = VMRI_LKEY_FRAMES;
    wr->sge[0].addr = p->ma.gfn << PAGE_SHIFT;
}

static void lkey_of_peer(struct pair *p, struct guest_wr *wr)
{
    struct guest_mr other = mr_pages(p->b, 4096, 0, LAYOUT_RUN);

    /* A number that only the peer's device has. */
    do
        CHECK_EQ(try_mr(p->b, &other, p->b->pd, 0), 0);
    while ( other.key >> 8 <= p->ma.key >> 8 );
    wr->sge[0].lkey = other.key;
    wr->sge[0].addr = other.iova;
}

static void lkey_pd(struct pair *p, struct guest_wr *wr)
{
    struct guest_mr other = mr_pages(p->a, 4096, 0, LAYOUT_RUN);

    CHECK_EQ(try_mr(p->a, &other, guest_pd(p->a), 0), 0);
    wr->sge[0] = mr_sge(&other, 0, 1000);
}

static void local_bounds(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->sge[0].addr += PAIR_BYTES - 999;
}

static void local_before(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->sge[0].addr -= 1;
}

static void local_wrap(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->sge[0].addr = -500ULL;
}

static void second_sge(struct pair *p, struct guest_wr *wr)
{
    wr->sge[0].length = 500;
    wr->sge[1] = mr_sge(&p->ma, PAIR_BYTES - 10, 500);
    wr->num_sge = 2;
}

static void read_into_read_only(struct pair *p, struct guest_wr *wr)
{
    struct guest_mr ro = guest_mr(p->a, 4096, 0, LAYOUT_RUN, 0);

    wr->sge[0] = mr_sge(&ro, 0, 1000);
}

static void rkey_none(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->rkey ^= 0x10000;
}

static void rkey_old(struct pair *p, struct guest_wr *wr)
{
    CHECK_EQ(mr_deregister(&p->mb), 0);
    p->mb = guest_mr(p->b, PAIR_BYTES, 0, LAYOUT_SCATTERED, 7);
    (void)wr;
}

static void rkey_frames(struct pair *p, struct guest_wr *wr)
{
    wr->rkey = VMRI_LKEY_FRAMES;
    wr->remote_addr = p->mb.gfn << PAGE_SHIFT;
}

static void rkey_pd(struct pair *p, struct guest_wr *wr)
{
    struct guest_mr other = mr_pages(p->b, 4096, 0, LAYOUT_RUN);

    CHECK_EQ(try_mr(p->b, &other, guest_pd(p->b), 7), 0);
    wr->rkey = other.key;
    wr->remote_addr = other.iova;
}

static void rkey_rights(struct pair *p, struct guest_wr *wr)
{
    /* All but the right that it takes. */
    uint32_t access = VMRI_ACCESS_LOCAL_WRITE |
                      (is_read(wr->opcode) ? VMRI_ACCESS_REMOTE_WRITE
                                           : VMRI_ACCESS_REMOTE_READ);
    struct guest_mr other = guest_mr(p->b, 4096, 0, LAYOUT_RUN, access);

    wr->rkey = other.key;
    wr->remote_addr = other.iova;
}

static void qp_rights(struct pair *p, struct guest_wr *wr)
{
    struct vmri_qp_modify arg = {
        .mask = VMRI_QPA_ACCESS_FLAGS,
        .access_flags = is_read(wr->opcode) ? VMRI_ACCESS_REMOTE_WRITE
                                            : VMRI_ACCESS_REMOTE_READ,
    };

    CHECK_EQ(qp_modify(p->qb, &arg), 0);
}

static void remote_bounds(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->remote_addr += PAIR_BYTES - 999;
}

static void remote_before(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->remote_addr -= 1;
}

static void remote_wrap(struct pair *p, struct guest_wr *wr)
{
    (void)p;
    wr->remote_addr = -500ULL;
}

static void recv_small(struct pair *p, struct guest_wr *wr)
{
    (void)wr;
    pair_recv(p, 77, 0, 999);
}

static void recv_key(struct pair *p, struct guest_wr *wr)
{
    struct vmri_sge sge = mr_sge(&p->mb, 0, 1000);

    (void)wr;
    sge.lkey = 0;
    qp_recv(p->qb, 77, &sge, 1);
}

static void recv_read_only(struct pair *p, struct guest_wr *wr)
{
    struct guest_mr ro = guest_mr(p->b, 4096, 0, LAYOUT_RUN, 0);
    struct vmri_sge sge = mr_sge(&ro, 0, 1000);

    (void)wr;
    qp_recv(p->qb, 77, &sge, 1);
}

static void recv_bounds(struct pair *p, struct guest_wr *wr)
{
    (void)wr;
    pair_recv(p, 77, PAIR_BYTES - 999, 1000);
}

static void recv_no_memory(struct pair *p, struct guest_wr *wr)
{
    (void)wr;
    qp_recv(p->qb, 77, NULL, 0);
}

static void recv_ring(struct pair *p, struct guest_wr *wr)
{
    (void)wr;
    p->qb->hdr->rq.prod = 0x40000000;
}

#define SEND    VMRI_WR_SEND
#define WRITE   VMRI_WR_RDMA_WRITE
#define READ    VMRI_WR_RDMA_READ
#define LOCAL(fn, op, status, verr) \
    { #fn, fn, op, VMRI_WC_##status, VMRI_VERR_##verr, 0, 0, false, -1 }
#define REMOTE(fn, op, verr)                                            \
    { #fn, fn, op, VMRI_WC_REM_ACCESS_ERR, VMRI_VERR_##verr, 0, 0, true, \
      VMRI_EVENT_QP_ACCESS_ERR }
#define REFUSED(fn, op)                                                 \
    { #fn, fn, op, VMRI_WC_REM_INV_REQ_ERR, VMRI_VERR_RIGHTS, 0, 0, true, \
      VMRI_EVENT_QP_REQ_ERR }
#define RECV(fn, status, verr, rstatus, rverr)                          \
    { #fn, fn, SEND, VMRI_WC_##status, VMRI_VERR_##verr,                \
      VMRI_WC_##rstatus, VMRI_VERR_##rverr, true, -1 }

static const struct wrong wrongs[] = {
    LOCAL(opcode_unknown, SEND, LOC_QP_OP_ERR, OPCODE),
    LOCAL(opcode_privileged, SEND, LOC_QP_OP_ERR, OPCODE),
    LOCAL(opcode_register, SEND, LOC_QP_OP_ERR, OPCODE),
    LOCAL(sges_of_invalidate, SEND, LOC_QP_OP_ERR, SGES),
    LOCAL(flags_unknown, SEND, LOC_QP_OP_ERR, FLAGS),
    LOCAL(flags_inline_read, READ, LOC_QP_OP_ERR, FLAGS),
    LOCAL(flags_indirect, SEND, LOC_QP_OP_ERR, FLAGS),
    LOCAL(sges_too_many, SEND, LOC_QP_OP_ERR, SGES),
    LOCAL(length_beyond_sges, SEND, LOC_LEN_ERR, LENGTH),
    LOCAL(length_without_sges, WRITE, LOC_LEN_ERR, LENGTH),
    LOCAL(length_huge, WRITE, LOC_LEN_ERR, LENGTH),
    LOCAL(length_inline, SEND, LOC_LEN_ERR, LENGTH),
    LOCAL(lkey_none, WRITE, LOC_PROT_ERR, KEY),
    LOCAL(lkey_none, READ, LOC_PROT_ERR, KEY),
    LOCAL(lkey_frames, WRITE, LOC_PROT_ERR, KEY),
    LOCAL(lkey_frames, READ, LOC_PROT_ERR, KEY),
    LOCAL(lkey_of_peer, WRITE, LOC_PROT_ERR, KEY),
    LOCAL(lkey_pd, WRITE, LOC_PROT_ERR, PD),
    LOCAL(local_bounds, WRITE, LOC_PROT_ERR, BOUNDS),
    LOCAL(local_bounds, READ, LOC_PROT_ERR, BOUNDS),
    LOCAL(local_before, WRITE, LOC_PROT_ERR, BOUNDS),
    LOCAL(local_wrap, WRITE, LOC_PROT_ERR, BOUNDS),
    LOCAL(second_sge, WRITE, LOC_PROT_ERR, BOUNDS),
    LOCAL(read_into_read_only, READ, LOC_PROT_ERR, RIGHTS),
    REMOTE(rkey_none, WRITE, KEY),
    REMOTE(rkey_none, READ, KEY),
    REMOTE(rkey_old, WRITE, KEY),
    REMOTE(rkey_frames, WRITE, KEY),
    REMOTE(rkey_frames, READ, KEY),
    REMOTE(rkey_pd, WRITE, PD),
    REMOTE(rkey_rights, WRITE, RIGHTS),
    REMOTE(rkey_rights, READ, RIGHTS),
    REFUSED(qp_rights, WRITE),
    REFUSED(qp_rights, READ),
    REMOTE(remote_bounds, WRITE, BOUNDS),
    REMOTE(remote_bounds, READ, BOUNDS),
    REMOTE(remote_before, WRITE, BOUNDS),
    REMOTE(remote_wrap, WRITE, BOUNDS),
    RECV(recv_small, REM_INV_REQ_ERR, RECV_SIZE, LOC_LEN_ERR, LENGTH),
    RECV(recv_no_memory, REM_INV_REQ_ERR, RECV_SIZE, LOC_LEN_ERR, LENGTH),
    RECV(recv_key, REM_OP_ERR, KEY, LOC_PROT_ERR, KEY),
    RECV(recv_read_only, REM_OP_ERR, RIGHTS, LOC_PROT_ERR, RIGHTS),
    RECV(recv_bounds, REM_OP_ERR, BOUNDS, LOC_PROT_ERR, BOUNDS),
    { "recv_ring", recv_ring, SEND, VMRI_WC_REM_OP_ERR, VMRI_VERR_RING, 0, 0,
      true, VMRI_EVENT_QP_FATAL },
};

/* The request, one behind it, and one posted after the failure. */
static void check_sender(struct pair *p, const struct wrong *w,
                         struct guest_wr *wr)
{
    struct guest_wr next = pair_wr(p, SEND, 2, 0, 0, 1);
    struct vmri_cqe cqe;

    qp_post_send(p->qa, wr);
    next.flags = 0;
    pair_send(p, &next);

    if ( !cq_poll(p->qa->scq, &cqe) )
        test_failed(__FILE__, __LINE__, "%s: no completion", w->what);
    CHECK_AT(cqe.status, w->status, "%s", w->what);
    CHECK_AT(cqe.vendor_err, w->vendor_err, "%s", w->what);
    CHECK_EQ(cqe.wr_id, 1);
    CHECK_EQ(cqe.qpn, p->qa->qpn);
    cqe = cq_expect(p->qa->scq, 2, VMRI_WC_WR_FLUSH_ERR);
    CHECK_EQ(cqe.vendor_err, VMRI_VERR_FLUSHED);
    cq_expect_none(p->qa->scq);
    CHECK_EQ(qp_state(p->qa), VMRI_QPS_ERR);

    next.wr_id = 3;
    pair_send(p, &next);
    cq_expect(p->qa->scq, 3, VMRI_WC_WR_FLUSH_ERR);
    cq_expect_none(p->qa->scq);
}

static void check_peer(struct pair *p, const struct wrong *w)
{
    struct vmri_cqe cqe;
    unsigned int type;

    if ( w->recv_status )
    {
        cqe = cq_expect(p->qb->rcq, 77, w->recv_status);
        CHECK_AT(cqe.vendor_err, w->recv_vendor_err, "%s", w->what);
        CHECK_EQ(cqe.opcode, VMRI_WC_OP_RECV);
    }
    world_settle();
    for ( type = 0; type < 32; type++ )
        if ( type != VMRI_EVENT_QUEUE_READY && type != VMRI_EVENT_COMM_EST )
            CHECK_AT(p->b->events[type], (int)type == w->peer_event, "%s: %u",
                     w->what, type);

    CHECK_AT(qp_state(p->qb), w->peer_fails ? VMRI_QPS_ERR : VMRI_QPS_RTS, "%s",
             w->what);
    if ( w->peer_fails && w->spoil != recv_ring )
    {
        pair_recv(p, 88, 0, 1);
        cq_expect(p->qb->rcq, 88, VMRI_WC_WR_FLUSH_ERR);
    }
    cq_expect_none(p->qb->rcq);
}

TEST(errors_are_told_precisely)
{
    struct guest_qp_opts opts = { .max_inline = 64 };
    struct pair p = pair_apart(&opts);
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(wrongs); i++ )
    {
        const struct wrong *w = &wrongs[i];
        struct guest_wr wr;

        p.qa = guest_qp(p.a, &opts);
        p.qb = guest_qp(p.b, &opts);
        qp_connect(p.qa, p.qb, NULL);
        memset(p.a->events, 0, sizeof(p.a->events));
        memset(p.b->events, 0, sizeof(p.b->events));
        memset(p.ma.mem, 1, 2000);
        memset(p.mb.mem, 2, 2000);
        wr = pair_wr(&p, w->opcode, 1, 0, 0, 1000);
        w->spoil(&p, &wr);
        check_sender(&p, w, &wr);
        check_peer(&p, w);
        if ( w->opcode != SEND && w->spoil != second_sge )
            CHECK_AT(all_bytes(p.mb.mem, 2000, w->spoil == rkey_old ? 0 : 2), 1,
                     "%s", w->what);
        CHECK(all_bytes(p.ma.mem, 2000, 1));
        CHECK_EQ(qp_destroy(p.qa), 0);
        CHECK_EQ(qp_destroy(p.qb), 0);
    }
}

/* A request of no bytes names no memory: nothing about it can be wrong. */
TEST(errors_none_with_zero_bytes)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, WRITE, 1, 0, 0, 0);

    wr.rkey = 0x1234;
    wr.sge[0].lkey = 0x4321;
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    wr.opcode = READ;
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    wr.opcode = SEND;
    qp_recv(p.qb, 9, NULL, 0);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(cq_expect(p.qb->rcq, 9, 0).byte_len, 0);
}

/* Privileged keys do what they should not on no user queue, receive or send. */
TEST(errors_privileged_receive)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, SEND, 1, 0, 0, 10);
    struct vmri_sge sge = {
        .addr = p.mb.gfn << PAGE_SHIFT, .length = 10, .lkey = VMRI_LKEY_FRAMES,
    };

    qp_recv(p.qb, 5, &sge, 1);
    pair_send(&p, &wr);
    CHECK_EQ(cq_expect(p.qb->rcq, 5, VMRI_WC_LOC_PROT_ERR).vendor_err,
             VMRI_VERR_KEY);
    cq_expect(p.qa->scq, 1, VMRI_WC_REM_OP_ERR);
}

/* A frame's entry may not run into the next frame. */
TEST(errors_frames_end_with_their_page)
{
    struct guest_qp_opts opts = { .kernel = true };
    struct pair p = pair_new(&opts, NULL);
    struct guest_wr wr = pair_wr(&p, WRITE, 1, 0, 0, 10);

    wr.sge[0] = (struct vmri_sge){
        .addr = (p.ma.gfn << PAGE_SHIFT) + 4090, .length = 7,
        .lkey = VMRI_LKEY_FRAMES,
    };
    pair_send(&p, &wr);
    CHECK_EQ(cq_expect(p.qa->scq, 1, VMRI_WC_LOC_PROT_ERR).vendor_err,
             VMRI_VERR_BOUNDS);
}

/* ---- rings ---- */

TEST(errors_send_index_out_of_range)
{
    static const uint32_t prods[] = { 17, 0x80000000, ~0U, 0x7fffffff };
    struct pair p = pair_apart(NULL);
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(prods); i++ )
    {
        p.qa = guest_qp(p.a, NULL);
        p.qb = guest_qp(p.b, NULL);
        qp_connect(p.qa, p.qb, NULL);
        memset(p.a->events, 0, sizeof(p.a->events));
        p.qa->hdr->sq.prod = prods[i];
        qp_ring(p.qa);
        CHECK_EQ(qp_state(p.qa), VMRI_QPS_ERR);
        cq_expect_none(p.qa->scq);
        world_settle();
        CHECK_EQ(p.a->events[VMRI_EVENT_QP_FATAL], 1);
        CHECK_EQ(qp_destroy(p.qa), 0);
    }
}

/* Index, consumer and flags scribbled at any time: bounded work, own memory. */
TEST(errors_scribbled_rings)
{
    struct pair p = pair_apart(NULL);
    unsigned int round, i;

    srand(11);
    for ( round = 0; round < 300; round++ )
    {
        p.qa = guest_qp(p.a, &(struct guest_qp_opts){ .scq = p.qa->scq });
        p.qb = guest_qp(p.b, &(struct guest_qp_opts){ .scq = p.qb->scq });
        qp_connect(p.qa, p.qb, NULL);
        for ( i = 0; i < p.qa->pages * PAGE_SIZE / 4; i++ )
            if ( rand() % 4 == 0 )
            {
                ((uint32_t *)p.qa->mem)[i] = (uint32_t)rand() % 64;
                ((uint32_t *)p.qb->mem)[i] = (uint32_t)rand() % 64;
            }
        p.qa->hdr->sq.prod = (uint32_t)rand() % 18;
        guest_schedule(p.a, p.qa->qpn);
        guest_schedule(p.b, p.qb->qpn);
        guest_schedule(p.a, p.qa->qpn);
        world_settle();
        CHECK_EQ(qp_destroy(p.qa), 0);
        CHECK_EQ(qp_destroy(p.qb), 0);
    }
}

/* ---- flushes ---- */

static void check_flush(struct pair *p, unsigned int sends, unsigned int recvs)
{
    unsigned int i;

    for ( i = 0; i < sends; i++ )
        cq_expect(p->qa->scq, i, VMRI_WC_WR_FLUSH_ERR);
    for ( i = 0; i < recvs; i++ )
        CHECK_EQ(cq_expect(p->qa->rcq, 100 + i, VMRI_WC_WR_FLUSH_ERR).opcode,
                 VMRI_WC_OP_RECV);
    cq_expect_none(p->qa->scq);
    cq_expect_none(p->qa->rcq);
}

TEST(flush_each_request_once)
{
    unsigned int sends, recvs, i;
    struct pair p = pair_apart(NULL);

    for ( sends = 0; sends <= 16; sends += 8 )
        for ( recvs = 0; recvs <= 16; recvs += 4 )
        {
            struct guest_wr wr;
            struct vmri_sge sge = mr_sge(&p.ma, 0, 10);

            p.qa = guest_qp(p.a, NULL);
            p.qb = guest_qp(p.b, NULL);
            qp_connect(p.qa, p.qb, NULL);
            for ( i = 0; i < sends; i++ )
            {
                wr = pair_wr(&p, SEND, i, 0, 0, 10);
                wr.flags = 0;
                pair_send(&p, &wr);
            }
            for ( i = 0; i < recvs; i++ )
                qp_recv(p.qa, 100 + i, &sge, 1);
            qp_set_state(p.qa, VMRI_QPS_ERR);
            world_settle();
            check_flush(&p, sends, recvs);
            for ( i = 0; i < 5; i++ )
                guest_schedule(p.a, p.qa->qpn);
            check_flush(&p, 0, 0);
            CHECK_EQ(p.qa->hdr->sq.cons, sends);
            CHECK_EQ(p.qa->hdr->rq.cons, recvs);

            /* And what comes later, as long as it exists. */
            wr = pair_wr(&p, SEND, 0, 0, 0, 10);
            pair_send(&p, &wr);
            qp_recv(p.qa, 100, &sge, 1);
            check_flush(&p, 1, 1);
            CHECK_EQ(qp_destroy(p.qa), 0);
            CHECK_EQ(qp_destroy(p.qb), 0);
        }
}

static struct pair *post_pair;

static void post_unrung(void *data)
{
    struct guest_wr wr = pair_wr(post_pair, SEND, 50, 0, 0, 10);

    (void)data;
    qp_post_send(post_pair->qa, &wr);
    /* As ring.h says: no doorbell while the engine runs. */
    CHECK_EQ(post_pair->qa->hdr->sq.running, 1);
}

/* Posted while the engine flushes the receives: it must look again. */
TEST(flush_what_is_posted_while_running)
{
    struct pair p = pair_new(NULL, NULL);
    struct vmri_sge sge = mr_sge(&p.ma, 0, 10);

    post_pair = &p;
    qp_recv(p.qa, 100, &sge, 1);
    cq_arm(p.qa->rcq, VMRI_ARM_NEXT);
    env_test_on_notify(1, post_unrung, NULL);
    qp_set_state(p.qa, VMRI_QPS_ERR);
    cq_expect(p.qa->rcq, 100, VMRI_WC_WR_FLUSH_ERR);
    world_settle();
    cq_expect(p.qa->scq, 50, VMRI_WC_WR_FLUSH_ERR);
    cq_expect_none(p.qa->scq);
}

/* A reset forgets what was posted, and the queues work again. */
TEST(flush_reset_discards)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, SEND, 1, 0, 0, 10);
    struct vmri_sge sge = mr_sge(&p.ma, 0, 10);
    unsigned int i;

    for ( i = 0; i < 5; i++ )
    {
        pair_send(&p, &wr);
        qp_recv(p.qa, 2, &sge, 1);
    }
    qp_set_state(p.qa, VMRI_QPS_RESET);
    qp_set_state(p.qb, VMRI_QPS_RESET);
    world_settle();
    check_flush(&p, 0, 0);
    CHECK_EQ(p.qa->hdr->sq.cons, 5);
    CHECK_EQ(p.qa->hdr->rq.cons, 5);

    qp_connect(p.qa, p.qb, NULL);
    pair_recv(&p, 4, 0, 10);
    wr.wr_id = 3;
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 3, 0);
    cq_expect(p.qb->rcq, 4, 0);
    check_flush(&p, 0, 0);
}

/* ---- completion queues that overflow ---- */

TEST(errors_send_cq_overflow)
{
    struct pair p = pair_apart(NULL);
    struct guest_qp_opts opts = { .scq = guest_cq(p.a, 1), .rcq = p.qa->rcq };
    struct guest_wr wr = pair_wr(&p, WRITE, 1, 0, 0, 10);
    unsigned int i;

    p.qa = guest_qp(p.a, &opts);
    qp_connect(p.qa, p.qb, NULL);
    for ( i = 0; i < 5; i++ )
        qp_post_send(p.qa, &wr);
    qp_ring(p.qa);
    CHECK_EQ(qp_state(p.qa), VMRI_QPS_ERR);
    world_settle();
    CHECK_EQ(p.a->events[VMRI_EVENT_CQ_ERR], 1);
    CHECK_EQ(p.a->events[VMRI_EVENT_QP_FATAL], 1);
    cq_expect(p.qa->scq, 1, 0);
    cq_expect(p.qa->scq, 1, 0);
    cq_expect_none(p.qa->scq);
    CHECK_EQ(qp_state(p.qb), VMRI_QPS_RTS);
}

TEST(errors_receive_cq_overflow)
{
    struct pair p = pair_apart(NULL);
    struct guest_qp_opts opts = { .scq = p.qb->scq, .rcq = guest_cq(p.b, 0) };
    struct guest_wr wr = pair_wr(&p, SEND, 1, 0, 0, 10);

    p.qb = guest_qp(p.b, &opts);
    qp_connect(p.qa, p.qb, NULL);
    pair_recv(&p, 1, 0, 10);
    pair_recv(&p, 2, 0, 10);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    wr.wr_id = 2;
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 2, VMRI_WC_REM_OP_ERR);
    CHECK_EQ(qp_state(p.qa), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(p.qb), VMRI_QPS_ERR);
    world_settle();
    CHECK_EQ(p.b->events[VMRI_EVENT_CQ_ERR], 1);
    CHECK_EQ(p.b->events[VMRI_EVENT_QP_FATAL], 1);
}

/* A QP connected to itself is sender and receiver of its own failure. */
TEST(errors_of_a_loop)
{
    struct pair p = pair_apart(NULL);
    struct vmri_sge sge = mr_sge(&p.ma, 5000, 99);
    struct guest_wr wr = pair_wr(&p, SEND, 1, 0, 0, 100);

    p.qb = p.qa;
    qp_connect(p.qa, p.qa, NULL);
    qp_recv(p.qa, 2, &sge, 1);
    qp_recv(p.qa, 3, &sge, 1);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, VMRI_WC_REM_INV_REQ_ERR);
    cq_expect(p.qa->rcq, 2, VMRI_WC_LOC_LEN_ERR);
    cq_expect(p.qa->rcq, 3, VMRI_WC_WR_FLUSH_ERR);
    cq_expect_none(p.qa->scq);
    cq_expect_none(p.qa->rcq);
}
