/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every type of queue pair, every operation, everything that can be wrong with
 * it: what the requester and the responder are told, in what states their
 * queue pairs end, and that every request and every receive completes once.
 */
#include "pair.h"

#define ALL     (VMRI_ACCESS_LOCAL_WRITE | VMRI_ACCESS_REMOTE_WRITE |       \
                 VMRI_ACCESS_REMOTE_READ | VMRI_ACCESS_REMOTE_ATOMIC |      \
                 VMRI_ACCESS_FLUSH_GLOBAL)

/* Operations, as bits of a set. */
#define SEND    (1U << VMRI_WR_SEND)
#define SENDI   (1U << VMRI_WR_SEND_WITH_IMM)
#define WRITE   (1U << VMRI_WR_RDMA_WRITE)
#define WRITEI  (1U << VMRI_WR_RDMA_WRITE_WITH_IMM)
#define READ    (1U << VMRI_WR_RDMA_READ)
#define CAS     (1U << VMRI_WR_ATOMIC_CMP_AND_SWP)
#define FAA     (1U << VMRI_WR_ATOMIC_FETCH_AND_ADD)
#define FLUSH   (1U << VMRI_WR_FLUSH)
#define STORE   (1U << VMRI_WR_ATOMIC_WRITE)

#define SENDS   (SEND | SENDI)
#define WRITES  (WRITE | WRITEI)
#define EIGHT   (CAS | FAA | STORE)
#define FETCHES (READ | CAS | FAA)
#define BARE    (FLUSH | STORE)             /* without entries */
#define REMOTE  (WRITES | READ | EIGHT | FLUSH)
#define TAKES   (SENDS | WRITEI)            /* a receive */
#define EVERY   (SENDS | REMOTE)

/* IBTA 1.4, 9.2: which types do what. */
static const struct {
    uint8_t type;
    uint32_t ops;
} types[] = {
    { VMRI_QPT_RC, EVERY },
    { VMRI_QPT_UC, SENDS | WRITES },
    { VMRI_QPT_UD, SENDS },
    { VMRI_QPT_XRC_INI, SENDS | WRITES | READ | CAS | FAA },
};

#define BYTES   1000U
#define RECV_AT 20000U          /* in mb: receives */
#define SMALL   200U            /* a receive that is too small */

struct scene {
    struct pair *p;
    uint8_t type;
    uint32_t op;                /* one bit */
    uint32_t xrcd;              /* XRC: that of the target and its SRQ */
    struct guest_srq *srq;      /* whose receives, and in whose CQ they end */
    struct guest_wr wr;
    bool no_recv;
    struct vmri_sge recv;       /* of the receive that the request meets */
};

/* ---- what is wrong ---- */

static void flags_unknown(struct scene *s)
{
    s->wr.flags |= 0x20;
}

static void flags_inline(struct scene *s)
{
    s->wr.flags |= VMRI_SEND_INLINE;
}

static void flags_indirect(struct scene *s)
{
    s->wr.flags |= VMRI_SEND_INDIRECT;
    s->wr.num_sge = 0;
}

static void flush_type_persistent(struct scene *s)
{
    s->wr.flush_type = 2;
}

static void flush_type_unknown(struct scene *s)
{
    s->wr.flush_type = 5;
}

static void flush_type_none(struct scene *s)
{
    s->wr.flush_type = 0;
}

static void flush_level(struct scene *s)
{
    s->wr.flush_level = 2;
}

static void sges_many(struct scene *s)
{
    s->wr.length = s->op & EIGHT ? 8 : BYTES;
    s->wr.num_sge = 5;
}

static void sges_any(struct scene *s)
{
    s->wr.num_sge = 1;
    s->wr.length = 8;
}

static void length_beyond(struct scene *s)
{
    s->wr.length = s->op & (CAS | FAA) ? 8 : BYTES;
    s->wr.sge[0].length = s->wr.length - 1;
}

static void length_four(struct scene *s)
{
    s->wr.length = 4;
}

static void length_sixteen(struct scene *s)
{
    s->wr.length = s->wr.sge[0].length = 16;
}

static void length_huge(struct scene *s)
{
    s->wr.length = s->type == VMRI_QPT_UD ? 4097 : (1U << 31) + 1;
    s->wr.sge[0].length = ~0U;
}

static void length_inline(struct scene *s)
{
    s->wr.flags |= VMRI_SEND_INLINE;
    s->wr.length = 65;
    s->wr.num_sge = 0;
}

static void lkey_none(struct scene *s)
{
    s->wr.sge[0].lkey = 0;
}

static void lkey_frames(struct scene *s)
{
    s->wr.sge[0].lkey = VMRI_LKEY_FRAMES;
    s->wr.sge[0].addr = s->p->ma.gfn << PAGE_SHIFT;
}

static void lkey_pd(struct scene *s)
{
    static struct guest_mr other;

    if ( other.guest != s->p->a )
    {
        other = mr_pages(s->p->a, 4096, 0, LAYOUT_RUN);
        CHECK_EQ(try_mr(s->p->a, &other, guest_pd(s->p->a), ALL), 0);
    }
    s->wr.sge[0] = mr_sge(&other, 0, s->wr.sge[0].length);
}

static void local_bounds(struct scene *s)
{
    s->wr.sge[0].addr = s->p->ma.iova + PAIR_BYTES + 1 - s->wr.sge[0].length;
}

static void local_read_only(struct scene *s)
{
    static struct guest_mr ro;

    if ( ro.guest != s->p->a )
        ro = guest_mr(s->p->a, 4096, 0, LAYOUT_RUN, 0);
    s->wr.sge[0] = mr_sge(&ro, 0, s->wr.sge[0].length);
}

static void rkey_none(struct scene *s)
{
    s->wr.rkey ^= 0x10000;
}

static void rkey_frames(struct scene *s)
{
    s->wr.rkey = VMRI_LKEY_FRAMES;
    s->wr.remote_addr = s->p->mb.gfn << PAGE_SHIFT;
}

static void rkey_pd(struct scene *s)
{
    static struct guest_mr other;

    if ( other.guest != s->p->b )
    {
        other = mr_pages(s->p->b, 4096, 0, LAYOUT_RUN);
        CHECK_EQ(try_mr(s->p->b, &other, guest_pd(s->p->b), ALL), 0);
    }
    s->wr.rkey = other.key;
    s->wr.remote_addr = other.iova;
}

static uint32_t right_of(uint32_t op)
{
    return op & (WRITES | STORE) ? VMRI_ACCESS_REMOTE_WRITE :
           op & READ ? VMRI_ACCESS_REMOTE_READ :
           op & FLUSH ? VMRI_ACCESS_FLUSH_GLOBAL : VMRI_ACCESS_REMOTE_ATOMIC;
}

/* All but the right that it takes. */
static void rkey_rights(struct scene *s)
{
    struct guest_mr other = guest_mr(s->p->b, 4096, 0, LAYOUT_RUN,
                                     ALL & ~right_of(s->op));

    s->wr.rkey = other.key;
    s->wr.remote_addr = other.iova;
}

static void remote_bounds(struct scene *s)
{
    uint32_t bytes = s->op & EIGHT ? 8 : BYTES;

    /* Still aligned. */
    s->wr.remote_addr = s->p->mb.iova + PAIR_BYTES + 8 - bytes;
}

static void remote_wrap(struct scene *s)
{
    s->wr.remote_addr = -8ULL;
}

static void misaligned(struct scene *s)
{
    s->wr.remote_addr += 4;
}

static void qp_rights(struct scene *s)
{
    struct vmri_qp_modify arg = {
        .mask = VMRI_QPA_ACCESS_FLAGS,
        .access_flags = ALL & ~right_of(s->op),
    };

    CHECK_EQ(qp_modify(s->p->qb, &arg), 0);
}

static void qp_resources(struct scene *s)
{
    struct vmri_qp_modify arg = {
        .mask = VMRI_QPA_STATE, .state = VMRI_QPS_SQD,
    };

    CHECK_EQ(qp_modify(s->p->qb, &arg), 0);
    arg.mask = VMRI_QPA_MAX_DEST_RD_ATOMIC;
    CHECK_EQ(qp_modify(s->p->qb, &arg), 0);
    qp_set_state(s->p->qb, VMRI_QPS_RTS);
}

static void recv_small(struct scene *s)
{
    s->recv.length = SMALL;
}

static void recv_key(struct scene *s)
{
    s->recv.lkey = 0;
}

static void recv_bounds(struct scene *s)
{
    s->recv.addr = s->p->mb.iova + PAIR_BYTES - BYTES + 1;
}

static void recv_none(struct scene *s)
{
    s->no_recv = true;
}

static void recv_ring(struct scene *s)
{
    s->no_recv = true;
    s->p->qb->hdr->rq.prod = 0x40000000;
}

static void srq_ring(struct scene *s)
{
    s->no_recv = true;
    s->srq->hdr->prod = 0x40000000;
}

/* The request names no SRQ of the target's domain. */
static void srq_none(struct scene *s)
{
    s->wr.srqn = s->srq->handle + 1;
}

static void srq_domain(struct scene *s)
{
    static struct guest_srq *other;

    if ( !other )
        other = guest_srq(s->p->b, &(struct guest_srq_opts){
                              .xrcd = guest_xrcd(s->p->b) });
    s->wr.srqn = other->handle;
}

static void peer_reset(struct scene *s)
{
    s->no_recv = true;
    qp_set_state(s->p->qb, VMRI_QPS_RESET);
}

static void peer_saved(struct scene *s)
{
    s->no_recv = true;
    env_test_domain_running(s->p->b->domain, false);
}

/* ---- what must come of it ---- */

struct outcome {
    uint8_t status;             /* of the request; 0: it is lost, or done */
    uint16_t verr;
    uint8_t recv_status;        /* of the receive; 0: it is left alone */
    uint16_t recv_verr;
    uint8_t peer_state;
    uint8_t peer_event;         /* 0: none */
    bool lost;                  /* counted as such */
};

struct cause {
    const char *name;
    void (*spoil)(struct scene *s);
    uint32_t ops;
    struct outcome reliable, unreliable;
    enum { ANY, OWN, XRC } receives;    /* with such receives alone */
};

#define RTS     VMRI_QPS_RTS
#define ERR     VMRI_QPS_ERR
#define LOST    { 0, 0, 0, 0, RTS, 0, true }

/* The requester's own fault. */
#define OURS(fn, ops, status, verr)                                         \
    { #fn, fn, ops,                                                         \
      { VMRI_WC_##status, VMRI_VERR_##verr, 0, 0, RTS, 0, false },          \
      { VMRI_WC_##status, VMRI_VERR_##verr, 0, 0, RTS, 0, false }, ANY }
/* What the responder finds wrong. */
#define THEIRS(fn, ops, status, verr, event)                                \
    { #fn, fn, ops,                                                         \
      { VMRI_WC_##status, VMRI_VERR_##verr, 0, 0, ERR,                      \
        VMRI_EVENT_##event, false }, LOST, ANY }
#define XRCS(fn, ops, status, verr, event)                                  \
    { #fn, fn, ops,                                                         \
      { VMRI_WC_##status, VMRI_VERR_##verr, 0, 0, ERR,                      \
        VMRI_EVENT_##event, false }, LOST, XRC }
/* A receive of theirs that cannot be filled fails with their queue pair. */
#define BROKEN(fn, verr)                                                    \
    { #fn, fn, SENDS,                                                       \
      { VMRI_WC_REM_OP_ERR, VMRI_VERR_##verr, VMRI_WC_LOC_PROT_ERR,         \
        VMRI_VERR_##verr, ERR, 0, false },                                  \
      { 0, 0, VMRI_WC_LOC_PROT_ERR, VMRI_VERR_##verr, ERR, 0, false }, ANY }

static const struct cause causes[] = {
    OURS(flags_unknown, EVERY, LOC_QP_OP_ERR, FLAGS),
    OURS(flags_inline, FETCHES | BARE, LOC_QP_OP_ERR, FLAGS),
    OURS(flags_indirect, EVERY, LOC_QP_OP_ERR, FLAGS),
    OURS(flush_type_unknown, FLUSH, LOC_QP_OP_ERR, FLAGS),
    OURS(flush_type_none, FLUSH, LOC_QP_OP_ERR, FLAGS),
    OURS(flush_level, FLUSH, LOC_QP_OP_ERR, FLAGS),
    OURS(sges_many, EVERY & ~BARE, LOC_QP_OP_ERR, SGES),
    OURS(sges_any, BARE, LOC_QP_OP_ERR, SGES),
    OURS(length_beyond, EVERY & ~BARE, LOC_LEN_ERR, LENGTH),
    OURS(length_four, EIGHT, LOC_LEN_ERR, LENGTH),
    OURS(length_sixteen, EIGHT, LOC_LEN_ERR, LENGTH),
    OURS(length_huge, EVERY & ~EIGHT, LOC_LEN_ERR, LENGTH),
    OURS(length_inline, SENDS | WRITES, LOC_LEN_ERR, LENGTH),
    OURS(lkey_none, EVERY & ~BARE, LOC_PROT_ERR, KEY),
    OURS(lkey_frames, EVERY & ~BARE, LOC_PROT_ERR, KEY),
    OURS(lkey_pd, EVERY & ~BARE, LOC_PROT_ERR, PD),
    OURS(local_bounds, EVERY & ~BARE, LOC_PROT_ERR, BOUNDS),
    OURS(local_read_only, FETCHES, LOC_PROT_ERR, RIGHTS),

    THEIRS(rkey_none, REMOTE, REM_ACCESS_ERR, KEY, QP_ACCESS_ERR),
    THEIRS(rkey_frames, REMOTE, REM_ACCESS_ERR, KEY, QP_ACCESS_ERR),
    THEIRS(rkey_pd, REMOTE, REM_ACCESS_ERR, PD, QP_ACCESS_ERR),
    THEIRS(rkey_rights, REMOTE, REM_ACCESS_ERR, RIGHTS, QP_ACCESS_ERR),
    THEIRS(flush_type_persistent, FLUSH, REM_ACCESS_ERR, RIGHTS, QP_ACCESS_ERR),
    THEIRS(remote_bounds, REMOTE, REM_ACCESS_ERR, BOUNDS, QP_ACCESS_ERR),
    THEIRS(remote_wrap, REMOTE, REM_ACCESS_ERR, BOUNDS, QP_ACCESS_ERR),
    THEIRS(misaligned, EIGHT, REM_INV_REQ_ERR, ALIGN, QP_REQ_ERR),
    THEIRS(qp_rights, REMOTE, REM_INV_REQ_ERR, RIGHTS, QP_REQ_ERR),
    THEIRS(qp_resources, FETCHES, REM_INV_REQ_ERR, RIGHTS, QP_REQ_ERR),

    { "recv_small", recv_small, SENDS,
      { VMRI_WC_REM_INV_REQ_ERR, VMRI_VERR_RECV_SIZE, VMRI_WC_LOC_LEN_ERR,
        VMRI_VERR_LENGTH, ERR, 0, false }, LOST, ANY },
    BROKEN(recv_key, KEY),
    BROKEN(recv_bounds, BOUNDS),
    { "recv_none", recv_none, TAKES,
      { VMRI_WC_RNR_RETRY_EXC_ERR, VMRI_VERR_NO_RECV, 0, 0, RTS, 0, false },
      LOST, ANY },
    { "recv_ring", recv_ring, TAKES,
      { VMRI_WC_REM_OP_ERR, VMRI_VERR_RING, 0, 0, ERR, VMRI_EVENT_QP_FATAL,
        false },
      { 0, 0, 0, 0, ERR, VMRI_EVENT_QP_FATAL, true }, OWN },
    XRCS(srq_ring, TAKES, REM_OP_ERR, RING, QP_FATAL),
    XRCS(srq_none, TAKES, REM_INV_REQ_ERR, SRQ, QP_REQ_ERR),
    XRCS(srq_domain, TAKES, REM_INV_REQ_ERR, SRQ, QP_REQ_ERR),
    { "peer_reset", peer_reset, EVERY,
      { VMRI_WC_RETRY_EXC_ERR, VMRI_VERR_NO_PEER, 0, 0, VMRI_QPS_RESET, 0,
        false },
      { 0, 0, 0, 0, VMRI_QPS_RESET, 0, true }, ANY },
    { "peer_saved", peer_saved, EVERY,
      { VMRI_WC_RETRY_EXC_ERR, VMRI_VERR_NO_PEER, 0, 0, RTS, 0, false },
      LOST, ANY },
};

/* ---- one scene ---- */

static bool is_xrc(const struct scene *s)
{
    return s->type == VMRI_QPT_XRC_INI;
}

static bool is_reliable(const struct scene *s)
{
    return s->type == VMRI_QPT_RC || is_xrc(s);
}

/* Where the responder's receives complete. */
static struct guest_cq *recv_cq(const struct scene *s)
{
    return is_xrc(s) ? s->srq->cq : s->p->qb->rcq;
}

static unsigned int opcode_of(uint32_t op)
{
    return (unsigned int)__builtin_ctz(op);
}

/* A request that is right, of 8 bytes where there is no choice. */
static struct guest_wr good_wr(const struct scene *s, uint32_t op,
                               uint64_t wr_id)
{
    struct guest_wr wr = pair_wr(s->p, opcode_of(op), wr_id, 0, 0,
                                 op & EIGHT ? 8 : BYTES);

    if ( op & BARE )
    {
        wr.num_sge = 0;
        wr.length = op & FLUSH ? BYTES : 8;
    }
    wr.compare_add = 0x0202020202020202ULL;
    wr.flush_type = VMRI_FLUSH_GLOBAL;
    if ( s->type == VMRI_QPT_UD )
        wr.to = s->p->qb;
    if ( is_xrc(s) )
        wr.srqn = s->srq->handle;
    return wr;
}

static void post_small(const struct scene *s, uint64_t wr_id)
{
    struct guest_wr wr = good_wr(s, SEND, wr_id);

    wr.sge[0].length = 8;
    qp_post_send(s->p->qa, &wr);
}

static void post_receive(struct scene *s, uint64_t wr_id,
                         const struct vmri_sge *sge)
{
    if ( is_xrc(s) )
        srq_recv(s->srq, wr_id, sge, 1);
    else
        qp_recv(s->p->qb, wr_id, sge, 1);
}

/* The responder; the CQ is that of the one before it. */
static struct guest_qp *make_responder(struct scene *s)
{
    struct guest_qp_opts opts = { .type = s->type, .max_inline = 64,
                                  .scq = s->p->qb->scq };

    if ( !is_xrc(s) )
        return guest_qp(s->p->b, &opts);

    s->srq = guest_srq(s->p->b, &(struct guest_srq_opts){ .xrcd = s->xrcd });
    opts = (struct guest_qp_opts){ .type = VMRI_QPT_XRC_TGT, .xrcd = s->xrcd };
    return guest_qp(s->p->b, &opts);
}

static void set_up(struct scene *s)
{
    static const struct guest_conn conn = {
        .timeout = 1, .retry_cnt = CONN_ZERO, .rnr_retry = CONN_ZERO,
        .min_rnr_timer = 1,
    };
    struct guest_qp_opts opts = { .type = s->type, .max_inline = 64 };
    struct pair *p = s->p;

    opts.scq = p->qa->scq;
    p->qa = guest_qp(p->a, &opts);
    p->qb = make_responder(s);
    qp_connect(p->qa, p->qb, &conn);
    memset(p->a->events, 0, sizeof(p->a->events));
    memset(p->b->events, 0, sizeof(p->b->events));
    memset(p->ma.mem, 1, 2000);
    memset(p->mb.mem, 2, 2000);
    s->wr = good_wr(s, s->op, 1);
    s->no_recv = false;
    s->recv = mr_sge(&p->mb, RECV_AT, 40 + BYTES);
}

static void tear_down(struct scene *s)
{
    struct vmri_cqe cqe;

    env_test_domain_running(s->p->b->domain, true);
    CHECK_EQ(qp_destroy(s->p->qa), 0);
    CHECK_EQ(qp_destroy(s->p->qb), 0);
    while ( cq_poll(s->p->qa->scq, &cqe) || cq_poll(recv_cq(s), &cqe) )
        ;
    if ( is_xrc(s) )
    {
        CHECK_EQ(srq_destroy(s->srq), 0);
        CHECK_EQ(cq_destroy(s->srq->cq), 0);
    }
}

static uint64_t losses(const struct pair *p)
{
    struct vmri_counters a, b;

    guest_counters(p->a, &a);
    guest_counters(p->b, &b);
    return a.ud_drops + b.ud_drops;
}

/* What a target's SRQ has to say comes beside it. */
static void check_events(struct guest *g, unsigned int want, const char *name)
{
    unsigned int type;

    for ( type = VMRI_EVENT_CQ_ERR; type < 32; type++ )
        if ( type != VMRI_EVENT_COMM_EST && type != VMRI_EVENT_SRQ_ERR &&
             type != VMRI_EVENT_QP_LAST_WQE_REACHED )
            CHECK_AT(g->events[type], type == want, "%s: event %u", name, type);
}

/* In order: the request, one behind it, and one posted after that. */
static void check_requester(struct scene *s, const struct outcome *o,
                            const char *name)
{
    struct guest_cq *cq = s->p->qa->scq;
    uint8_t next = o->status ? VMRI_WC_WR_FLUSH_ERR : 0;
    unsigned int state = !o->status ? RTS :
                         is_reliable(s) ? ERR : VMRI_QPS_SQE;
    struct vmri_cqe cqe;

    CHECK_AT(cq_poll(cq, &cqe), 1, "%s", name);
    CHECK_AT(cqe.status, o->status, "%s", name);
    CHECK_AT(cqe.vendor_err, o->verr, "%s", name);
    CHECK_EQ(cqe.wr_id, 1);
    CHECK_EQ(cqe.qpn, s->p->qa->qpn);
    cqe = cq_expect(cq, 2, next);
    CHECK_EQ(cqe.vendor_err, o->status ? VMRI_VERR_FLUSHED : 0);
    cq_expect_none(cq);
    CHECK_AT(qp_state(s->p->qa), state, "%s", name);

    post_small(s, 3);
    qp_ring(s->p->qa);
    cq_expect(cq, 3, next);
    cq_expect_none(cq);
    check_events(s->p->a, 0, name);
}

/* The receives 77 and 78 complete once, now or when the queue is flushed. */
static void check_responder(struct scene *s, const struct outcome *o,
                            const char *name)
{
    unsigned int seen[2] = { 0, 0 }, i;
    struct vmri_cqe cqe;

    CHECK_AT(qp_state(s->p->qb), o->peer_state, "%s", name);
    check_events(s->p->b, o->peer_event, name);
    CHECK_AT(s->p->b->events[VMRI_EVENT_QP_LAST_WQE_REACHED],
             is_xrc(s) && o->peer_state == ERR, "%s", name);
    CHECK_AT(s->p->b->events[VMRI_EVENT_SRQ_ERR],
             is_xrc(s) && o->verr == VMRI_VERR_RING, "%s", name);
    if ( s->no_recv )
    {
        cq_expect_none(recv_cq(s));
        return;
    }

    qp_set_state(s->p->qb, ERR);
    world_settle();
    while ( cq_poll(recv_cq(s), &cqe) )
    {
        CHECK(cqe.wr_id == 77 || cqe.wr_id == 78);
        seen[cqe.wr_id - 77]++;
        if ( cqe.wr_id == 77 && o->recv_status )
        {
            CHECK_AT(cqe.status, o->recv_status, "%s", name);
            CHECK_AT(cqe.vendor_err, o->recv_verr, "%s", name);
        }
        else
            CHECK(!cqe.status || cqe.status == VMRI_WC_WR_FLUSH_ERR);
    }
    /* What no target has taken stays with the SRQ. */
    if ( is_xrc(s) )
        for ( i = s->srq->hdr->cons; i < 2; i++ )
            seen[i]++;
    for ( i = 0; i < 2; i++ )
        CHECK_AT(seen[i], 1, "%s: receive %u", name, 77 + i);
}

/* A send queue that stopped alone goes on when it is told to. */
static void check_recovery(struct scene *s, const char *name)
{
    if ( qp_state(s->p->qa) != VMRI_QPS_SQE )
        return;

    qp_set_state(s->p->qa, RTS);
    post_small(s, 4);
    qp_ring(s->p->qa);
    CHECK_AT(cq_expect(s->p->qa->scq, 4, 0).vendor_err, 0, "%s", name);
}

static void play(struct scene *s, const struct cause *c)
{
    const struct outcome *o = is_reliable(s) ? &c->reliable : &c->unreliable;
    struct vmri_sge second = mr_sge(&s->p->mb, RECV_AT + 4096, 100);
    uint64_t lost;
    char name[64];

    set_up(s);
    snprintf(name, sizeof(name), "type %u, operation %u, %s", s->type,
             opcode_of(s->op), c->name);
    c->spoil(s);
    if ( !s->no_recv )
    {
        post_receive(s, 77, &s->recv);
        post_receive(s, 78, &second);
    }
    lost = losses(s->p);
    qp_post_send(s->p->qa, &s->wr);
    post_small(s, 2);
    qp_ring(s->p->qa);
    world_pass(1000000, 10000);

    check_requester(s, o, name);
    CHECK_AT(losses(s->p) != lost, o->lost || (!o->status && o->peer_state != RTS),
             "%s", name);
    check_recovery(s, name);
    /* The receive that an immediate takes is looked for when data is there. */
    if ( !(s->op & WRITEI) || (c->spoil != recv_none &&
                               c->spoil != recv_ring && c->spoil != srq_ring) )
        CHECK_AT(all_bytes(s->p->mb.mem, 2000, 2), 1, "%s", name);
    CHECK_AT(all_bytes(s->p->ma.mem, 2000, 1), 1, "%s", name);
    check_responder(s, o, name);
    tear_down(s);
}

static void play_type(unsigned int t)
{
    struct pair p = pair_apart(NULL);
    struct scene s = { .p = &p, .type = types[t].type };
    unsigned int i;

    CHECK_EQ(mr_deregister(&p.mb), 0);
    p.mb = guest_mr(p.b, PAIR_BYTES, 3000, LAYOUT_SCATTERED, ALL);
    s.xrcd = guest_xrcd(p.b);
    for ( i = 0; i < ARRAY_SIZE(causes); i++ )
        for ( s.op = 1; s.op; s.op <<= 1 )
            if ( (s.op & types[t].ops & causes[i].ops) &&
                 causes[i].receives != (is_xrc(&s) ? OWN : XRC) )
                play(&s, &causes[i]);
}

TEST(outcomes_rc) { play_type(0); }
TEST(outcomes_uc) { play_type(1); }
TEST(outcomes_ud) { play_type(2); }
TEST(outcomes_xrc) { play_type(3); }

/* Operations that a type of queue pair does not have, and those that are none. */
TEST(outcomes_of_other_operations)
{
    static const struct cause none = {
        "not for it", flags_unknown, 0,
        { VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_OPCODE, 0, 0, RTS, 0, false },
        { VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_OPCODE, 0, 0, RTS, 0, false }, ANY,
    };
    struct pair p = pair_apart(NULL);
    struct scene s = { .p = &p, .xrcd = guest_xrcd(p.b) };
    unsigned int t;

    for ( t = 0; t < ARRAY_SIZE(types); t++ )
    {
        /* Requests that change keys have tests of their own. */
        const uint32_t keys = 1U << VMRI_WR_LOCAL_INV |
                              1U << VMRI_WR_BIND_MW |
                              1U << VMRI_WR_SEND_WITH_INV;

        s.type = types[t].type;
        for ( s.op = 1; s.op; s.op <<= 1 )
            if ( !(s.op & (types[t].ops | keys)) )
                play(&s, &none);
    }
}
