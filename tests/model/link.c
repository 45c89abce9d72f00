/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of a link: its queue pairs' kinds, states and attributes. */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

static struct rng *rng_of(const struct qp *q)
{
    return &q->side->cell->rng;
}

/* ---- modify and query ---- */

static void apply(struct vmri_qp_modify *to, const struct vmri_qp_modify *arg)
{
#define APPLY(name, field)                  \
    if ( arg->mask & VMRI_QPA_##name )      \
        to->field = arg->field

    APPLY(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
    APPLY(ACCESS_FLAGS, access_flags);
    APPLY(PORT, port);
    APPLY(QKEY, qkey);
    APPLY(AV, av);
    APPLY(PATH_MTU, path_mtu);
    APPLY(TIMEOUT, timeout);
    APPLY(RETRY_CNT, retry_cnt);
    APPLY(RNR_RETRY, rnr_retry);
    APPLY(RQ_PSN, rq_psn);
    APPLY(SQ_PSN, sq_psn);
    APPLY(MAX_QP_RD_ATOMIC, max_rd_atomic);
    APPLY(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    APPLY(MIN_RNR_TIMER, min_rnr_timer);
    APPLY(DEST_QPN, dest_qpn);
#undef APPLY
}

static long modify(struct qp *q, struct vmri_qp_modify *arg)
{
    arg->qpn = q->qpn;
    return side_call(q->side, VMRI_OP_qp_modify, arg, sizeof(*arg));
}

/* One that must succeed, to the state that the model is in afterwards. */
static void change(struct qp *q, struct vmri_qp_modify *arg)
{
    CHECK_EQ(modify(q, arg), 0);
    apply(&q->attr, arg);
    if ( arg->mask & VMRI_QPA_STATE )
        oracle_state(q, arg->state);
}

void qp_move(struct qp *q, unsigned int state)
{
    struct vmri_qp_modify arg = {
        .mask = VMRI_QPA_STATE, .state = (uint8_t)state,
    };

    change(q, &arg);
}

static void query(struct qp *q)
{
    struct vmri_qp_modify got = { .qpn = q->qpn }, want = q->attr;

    CHECK_EQ(side_call(q->side, VMRI_OP_qp_query, &got, sizeof(got)), 0);
    want.qpn = q->qpn;
    want.cur_state = want.state;
    want.mask = got.mask;
    if ( !memcmp(&got, &want, sizeof(got)) )
        return;
    CHECK_EQ(got.state, want.state);
    CHECK_EQ(got.sq_draining, want.sq_draining);
    CHECK_EQ(got.access_flags, want.access_flags);
    CHECK_EQ(got.qkey, want.qkey);
    CHECK_EQ(got.dest_qpn, want.dest_qpn);
    test_failed(__FILE__, __LINE__, "query tells something else than was set");
}

/* ---- to RTS ---- */

static void set_init(struct qp *q, struct vmri_qp_modify *arg)
{
    arg->mask |= VMRI_QPA_PKEY_INDEX | VMRI_QPA_PORT;
    arg->port = 1;
    if ( qp_is_datagram(q) )
    {
        arg->mask |= VMRI_QPA_QKEY;
        arg->qkey = 0x11111111 + rng_below(rng_of(q), 2);
        return;
    }
    arg->mask |= VMRI_QPA_ACCESS_FLAGS;
    arg->access_flags = VMRI_ACCESS_QP;
    if ( rng_percent(rng_of(q), 20) )
        arg->access_flags = (uint32_t)rng_next(rng_of(q)) & VMRI_ACCESS_QP;
}

static void set_rtr(struct qp *q, struct vmri_qp_modify *arg)
{
    if ( qp_is_datagram(q) )
        return;
    arg->mask |= VMRI_QPA_AV | VMRI_QPA_PATH_MTU | VMRI_QPA_DEST_QPN |
                 VMRI_QPA_RQ_PSN;
    arg->path_mtu = (uint8_t)(1 + rng_below(rng_of(q), 5));
    arg->dest_qpn = q->peer->qpn;
    arg->rq_psn = rng_below(rng_of(q), 1U << 24);
    arg->av.dlid = q->peer->side->guest->lid;
    arg->av.sl = (uint8_t)rng_below(rng_of(q), 16);
    if ( !qp_is_reliable(q) || !qp_receives(q) )
        return;
    arg->mask |= VMRI_QPA_MAX_DEST_RD_ATOMIC | VMRI_QPA_MIN_RNR_TIMER;
    arg->max_dest_rd_atomic = (uint8_t)(1 + rng_below(rng_of(q), 16));
    arg->min_rnr_timer = (uint8_t)(1 + rng_below(rng_of(q), 10));
}

static void set_rts(struct qp *q, struct vmri_qp_modify *arg)
{
    struct rng *rng = rng_of(q);

    arg->mask |= VMRI_QPA_SQ_PSN;
    arg->sq_psn = rng_below(rng, 1U << 24);
    if ( !qp_is_reliable(q) )
        return;
    arg->mask |= VMRI_QPA_TIMEOUT;
    arg->timeout = (uint8_t)(rng_percent(rng, 50) ? 0 : 1 + rng_below(rng, 6));
    if ( !qp_sends(q) )
        return;
    arg->mask |= VMRI_QPA_RETRY_CNT | VMRI_QPA_RNR_RETRY |
                 VMRI_QPA_MAX_QP_RD_ATOMIC;
    arg->retry_cnt = (uint8_t)rng_below(rng, 8);
    arg->rnr_retry = (uint8_t)(rng_percent(rng, 60) ? 7 : rng_below(rng, 7));
    arg->max_rd_atomic = (uint8_t)(1 + rng_below(rng, 16));
}

static void step_up(struct qp *q)
{
    static void (*const set[])(struct qp *, struct vmri_qp_modify *) = {
        [VMRI_QPS_INIT] = set_init, [VMRI_QPS_RTR] = set_rtr,
        [VMRI_QPS_RTS] = set_rts,
    };
    struct vmri_qp_modify arg = {
        .mask = VMRI_QPA_STATE, .state = (uint8_t)(q->attr.state + 1),
    };

    set[arg.state](q, &arg);
    change(q, &arg);
}

void link_connect(struct qp *q)
{
    struct qp *one, *other;

    /* One end may be ahead, or stay behind: it only receives then. */
    one = rng_percent(rng_of(q), 50) ? q : q->peer;
    other = one->peer;
    while ( one->attr.state < VMRI_QPS_RTR )
        step_up(one);
    while ( other->attr.state < VMRI_QPS_RTS )
        step_up(other);
    if ( !rng_percent(rng_of(q), 15) )
        step_up(one);
    query(one);
    query(other);
}

/* ---- a link's kind ---- */

static unsigned int pick_type(struct rng *rng)
{
    unsigned int n = rng_below(rng, 100);

    return n < 44 ? VMRI_QPT_RC : n < 66 ? VMRI_QPT_XRC_INI
           : n < 82 ? VMRI_QPT_UC : VMRI_QPT_UD;
}

/* Of the domains, the second one has the last of the queues. */
static unsigned int xrcd_of(unsigned int i)
{
    return i == SRQS - 1;
}

void link_make_srq(struct side *s, unsigned int i)
{
    struct rng *rng = &s->cell->rng;
    struct rq *rq = &s->srq[i];

    rq->keys = (struct keys){ .side = s, .pd = rng_below(rng, PDS),
                              .kernel = rng_percent(rng, 30) };
    rq->xrcd = xrcd_of(i);
    rq->cq = i ? &s->cq[rng_below(rng, CQS)] : NULL;
    srq_make(rq, 2 + rng_below(rng, 4), 1 + rng_below(rng, SGES),
             rng_below(rng, 5));
}

/* It has no queues, but wants to find some that are of its domain. */
static void make_target(struct qp *q)
{
    struct rng *rng = rng_of(q);
    struct side *s = q->side;
    unsigned int i;

    for ( i = 1; i < SRQS; i++ )
        if ( !s->srq[i].handle && rng_percent(rng, 80) )
            link_make_srq(s, i);
    q->scq = q->rcq = NULL;
    i = 1 + rng_below(rng, SRQS - 1);
    q->rq = &s->srq[i];
    q->xrcd = xrcd_of(i);
    q->arg = (struct vmri_qp_create){
        .type = VMRI_QPT_XRC_TGT,
        .flags = q->keys.kernel ? VMRI_QPF_KERNEL : 0,
    };
    qp_make(q);
}

static void make_end(struct qp *q, unsigned int type)
{
    struct rng *rng = rng_of(q);
    struct side *s = q->side;

    q->keys = (struct keys){ .side = s, .qp = q, .pd = rng_below(rng, PDS),
                             .kernel = rng_percent(rng, 30) };
    q->ind_used = q->ind_prod = 0;
    if ( type == VMRI_QPT_XRC_TGT )
    {
        make_target(q);
        return;
    }
    q->scq = &s->cq[rng_below(rng, CQS)];
    q->rcq = type == VMRI_QPT_XRC_INI ? NULL : &s->cq[rng_below(rng, CQS)];
    q->rq = q->rcq && s->srq[0].handle && rng_percent(rng, 60) ? &s->srq[0]
                                                               : &q->own;
    q->arg = (struct vmri_qp_create){
        .type = (uint8_t)type,
        .flags = q->keys.kernel ? VMRI_QPF_KERNEL : 0,
        .sq_log2_entries = (uint8_t)(3 + rng_below(rng, 3)),
        .max_send_sge = (uint8_t)(1 + rng_below(rng, SGES)),
        .max_inline = rng_percent(rng, 70) ? rng_below(rng, INLINE) : 0,
        .ind_log2_entries = q->keys.kernel && rng_percent(rng, 70) ? IND_LOG2
                                                                  : 0,
    };
    if ( type == VMRI_QPT_UD && rng_percent(rng, 30) )
        q->arg.flags |= VMRI_QPF_BLOCK_LOOPBACK;
    if ( q->rcq && !qp_shares(q) )
    {
        q->arg.rq_log2_entries = (uint8_t)(2 + rng_below(rng, 4));
        q->arg.max_recv_sge = (uint8_t)(1 + rng_below(rng, SGES));
    }
    qp_make(q);
}

void link_make(struct qp *q)
{
    unsigned int type = pick_type(rng_of(q));

    if ( type == VMRI_QPT_XRC_INI && rng_percent(rng_of(q), 50) )
        q = q->peer;
    make_end(q, type);
    make_end(q->peer, type == VMRI_QPT_XRC_INI ? VMRI_QPT_XRC_TGT : type);
    link_connect(q);
}

void link_unmake(struct qp *q)
{
    qp_unmake(q);
    qp_unmake(q->peer);
}

/* ---- recovery ---- */

/* The target stays as it is, and may have begun to fill a receive. */
static void begin_anew(struct qp *q)
{
    qp_move(q, VMRI_QPS_RESET);
    while ( q->attr.state < VMRI_QPS_RTS )
        step_up(q);
    query(q);
}

static bool failed(const struct qp *q)
{
    return q->attr.state == VMRI_QPS_ERR || q->attr.state == VMRI_QPS_SQE ||
           q->attr.state == VMRI_QPS_RESET;
}

void link_recover(struct qp *q)
{
    bool stopped = q->attr.state == VMRI_QPS_SQE ||
                   q->peer->attr.state == VMRI_QPS_SQE;

    if ( !failed(q) && !failed(q->peer) )
        return;
    query(q);
    query(q->peer);
    /* A send queue alone has stopped. */
    if ( stopped && q->attr.state != VMRI_QPS_ERR &&
         q->peer->attr.state != VMRI_QPS_ERR &&
         q->attr.state != VMRI_QPS_RESET &&
         q->peer->attr.state != VMRI_QPS_RESET )
    {
        if ( q->attr.state == VMRI_QPS_SQE )
            qp_move(q, VMRI_QPS_RTS);
        if ( q->peer->attr.state == VMRI_QPS_SQE )
            qp_move(q->peer, VMRI_QPS_RTS);
        return;
    }
    if ( !qp_sends(q) )
        q = q->peer;
    if ( qp_is_xrc(q) && !failed(q->peer) && rng_percent(rng_of(q), 80) )
    {
        begin_anew(q);
        return;
    }
    if ( rng_percent(rng_of(q), 50) )
    {
        link_unmake(q);
        link_make(q);
        return;
    }
    qp_move(q, VMRI_QPS_RESET);
    qp_move(q->peer, VMRI_QPS_RESET);
    link_connect(q);
}

/* ---- what changes little ---- */

/* What the table does not have: nothing changes. */
static void modify_wrongly(struct qp *q)
{
    struct vmri_qp_modify arg = {
        .mask = VMRI_QPA_STATE, .state = VMRI_QPS_INIT,
    };

    if ( rng_percent(rng_of(q), 50) )
        arg = (struct vmri_qp_modify){ .mask = VMRI_QPA_ALT_PATH };
    CHECK_EQ(modify(q, &arg), -EINVAL);
    query(q);
}

static void drain(struct qp *q)
{
    struct vmri_qp_modify arg = {
        .mask = VMRI_QPA_STATE | VMRI_QPA_EN_SQD_ASYNC_NOTIFY,
        .state = VMRI_QPS_SQD,
        .en_sqd_async_notify = (uint8_t)rng_below(rng_of(q), 2),
    };
    unsigned int n;

    if ( arg.en_sqd_async_notify )
        q->due |= 1U << VMRI_EVENT_SQ_DRAINED;
    change(q, &arg);
    settle(q->side->cell);
    query(q);
    /* What is posted now waits; its receives are there before. */
    for ( n = rng_below(rng_of(q), 6); n; n-- )
        send_one(q);
    settle(q->side->cell);
    fill_receives(q);
    qp_move(q, VMRI_QPS_RTS);
    settle(q->side->cell);
}

void link_round(struct qp *q)
{
    if ( q->attr.state == VMRI_QPS_RTR && !link_waits(q) )
        step_up(q);
    else if ( q->attr.state == VMRI_QPS_RTS && !link_waits(q) &&
              rng_percent(rng_of(q), 40) )
        drain(q);
    else if ( rng_percent(rng_of(q), 30) && q->attr.state == VMRI_QPS_RTS )
        modify_wrongly(q);
    else
        query(q);
}
