/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * qpstate.c, qp.c: query gives back what was set, and the drained send queue.
 * Which transitions there are is tested in test_qp.c.
 */
#include "pair.h"

#define A(name) VMRI_QPA_##name

/* ---- query ---- */

/* Modify, and what query must say from then on. */
static void set(struct guest_qp *qp, struct vmri_qp_modify *known,
                unsigned int state, uint32_t mask,
                const struct vmri_qp_modify *values)
{
    struct vmri_qp_modify arg = *values, got;

    arg.mask = mask | A(STATE);
    arg.state = (uint8_t)state;
    CHECK_EQ(qp_modify(qp, &arg), 0);

#define KNOW(attr, field)           \
    if ( mask & A(attr) )           \
        known->field = values->field
    KNOW(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
    KNOW(ACCESS_FLAGS, access_flags);
    KNOW(QKEY, qkey);
    KNOW(AV, av);
    KNOW(PATH_MTU, path_mtu);
    KNOW(TIMEOUT, timeout);
    KNOW(RETRY_CNT, retry_cnt);
    KNOW(RNR_RETRY, rnr_retry);
    KNOW(RQ_PSN, rq_psn);
    KNOW(MAX_QP_RD_ATOMIC, max_rd_atomic);
    KNOW(MIN_RNR_TIMER, min_rnr_timer);
    KNOW(SQ_PSN, sq_psn);
    KNOW(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    KNOW(DEST_QPN, dest_qpn);
#undef KNOW
    known->state = known->cur_state = (uint8_t)state;
    known->qpn = qp->qpn;

    CHECK_EQ(qp_query(qp, &got), 0);
    CHECK_EQ(memcmp(&got, known, sizeof(got)), 0);
}

/* What a queue pair has before anything is set, and after a reset. */
static const struct vmri_qp_modify defaults = { .port = 1, .path_mtu = 5 };

/* All values at one end of their ranges, no two alike where that can be. */
static const struct vmri_qp_modify values[] = {
    {
        .port = 1, .path_mtu = 1, .timeout = 31, .retry_cnt = 7,
        .rnr_retry = 6, .min_rnr_timer = 30, .max_rd_atomic = 128,
        .max_dest_rd_atomic = 127, .qkey = 0xfedcba98, .rq_psn = 0xffffff,
        .sq_psn = 0xfffffe, .dest_qpn = 0xfffffd,
        .access_flags = VMRI_ACCESS_QP, .en_sqd_async_notify = 1,
        .av = {
            .dgid = { 0xfe, 0x80, [15] = 9 }, .flow_label = 0xfffff,
            .dlid = 0xbfff, .sl = 15, .src_path_bits = 127, .static_rate = 18,
            .flags = VMRI_AV_GRH, .hop_limit = 255, .traffic_class = 254,
        },
    },
    {
        .port = 1, .path_mtu = 5, .av = { .dlid = 1 },
    },
};

static void query_connected(uint8_t type, const struct vmri_qp_modify *v,
                            const struct vmri_qp_modify *other)
{
    const struct guest_qp_opts opts = { .type = type };
    struct guest_qp *qp = guest_qp(guest_new(1), &opts);
    struct vmri_qp_modify known = defaults;
    bool rc = type == VMRI_QPT_RC;
    uint32_t resp = rc ? A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER) : 0;
    uint32_t req = rc ? A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) |
                        A(MAX_QP_RD_ATOMIC) : 0;

    set(qp, &known, VMRI_QPS_RESET, 0, v);
    set(qp, &known, VMRI_QPS_INIT, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS),
        v);
    set(qp, &known, VMRI_QPS_INIT, A(ACCESS_FLAGS), other);
    set(qp, &known, VMRI_QPS_RTR, A(AV) | A(PATH_MTU) | A(DEST_QPN) |
                                  A(RQ_PSN) | resp, v);
    set(qp, &known, VMRI_QPS_RTS, A(SQ_PSN) | A(ACCESS_FLAGS) | req, v);
    set(qp, &known, VMRI_QPS_RTS,
        A(ACCESS_FLAGS) | (rc ? A(MIN_RNR_TIMER) : 0), other);
    set(qp, &known, VMRI_QPS_SQD, A(EN_SQD_ASYNC_NOTIFY), v);
    set(qp, &known, VMRI_QPS_SQD, A(AV) | A(ACCESS_FLAGS) | resp | req, other);
    set(qp, &known, VMRI_QPS_RTS, 0, v);
    set(qp, &known, VMRI_QPS_ERR, 0, v);
    known = defaults;
    set(qp, &known, VMRI_QPS_RESET, 0, v);
}

TEST(states_query_connected)
{
    static const uint8_t types[] = { VMRI_QPT_RC, VMRI_QPT_UC };
    unsigned int i, t;

    for ( t = 0; t < ARRAY_SIZE(types); t++ )
        for ( i = 0; i < ARRAY_SIZE(values); i++ )
        {
            query_connected(types[t], &values[i], &values[!i]);
            CHECK_EQ(dom0_detach(1, 0), 0);
        }
}

TEST(states_query_datagrams)
{
    const struct guest_qp_opts opts = { .type = VMRI_QPT_UD };
    struct guest_qp *qp = guest_qp(guest_new(1), &opts);
    struct vmri_qp_modify known = defaults;
    const struct vmri_qp_modify *v = &values[0], *other = &values[1];

    set(qp, &known, VMRI_QPS_INIT, A(PKEY_INDEX) | A(PORT) | A(QKEY), v);
    set(qp, &known, VMRI_QPS_RTR, A(QKEY), other);
    set(qp, &known, VMRI_QPS_RTS, A(SQ_PSN) | A(QKEY), v);
    set(qp, &known, VMRI_QPS_SQD, A(EN_SQD_ASYNC_NOTIFY), v);
    set(qp, &known, VMRI_QPS_SQD, A(QKEY), other);
    set(qp, &known, VMRI_QPS_RTS, A(QKEY), v);
    known = defaults;
    set(qp, &known, VMRI_QPS_RESET, 0, v);
}

/* Each right by itself, and nothing else. */
TEST(states_access_flags)
{
    struct guest_qp *qp = guest_qp(guest_new(1), NULL);
    struct vmri_qp_modify known = defaults, v = { .port = 1 }, arg;
    unsigned int bit;

    set(qp, &known, VMRI_QPS_INIT, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS),
        &v);
    for ( bit = 0; bit < 32; bit++ )
    {
        v.access_flags = 1U << bit;
        if ( v.access_flags & VMRI_ACCESS_QP )
        {
            set(qp, &known, VMRI_QPS_INIT, A(ACCESS_FLAGS), &v);
            continue;
        }
        arg = v;
        arg.mask = A(ACCESS_FLAGS);
        CHECK_AT(qp_modify(qp, &arg), -EINVAL, "bit %u", bit);
    }
}

/* ---- draining ---- */

static void drain(struct guest_qp *qp, bool notify)
{
    struct vmri_qp_modify arg = {
        .mask = A(STATE) | A(EN_SQD_ASYNC_NOTIFY), .state = VMRI_QPS_SQD,
        .en_sqd_async_notify = notify,
    };

    CHECK_EQ(qp_modify(qp, &arg), 0);
    world_settle();
}

static bool draining(struct guest_qp *qp)
{
    struct vmri_qp_modify arg;

    CHECK_EQ(qp_query(qp, &arg), 0);
    CHECK_EQ(arg.state, VMRI_QPS_SQD);
    return arg.sq_draining;
}

/* One event for each time that it is asked for, on every type. */
TEST(states_drained_once_each_time)
{
    static const uint8_t types[] = { VMRI_QPT_RC, VMRI_QPT_UC, VMRI_QPT_UD };
    struct pair p = pair_apart(NULL);
    unsigned int t, i;

    for ( t = 0; t < ARRAY_SIZE(types); t++ )
    {
        struct guest_qp_opts opts = { .type = types[t] };
        unsigned int *events = &p.a->events[VMRI_EVENT_SQ_DRAINED];

        p.qa = guest_qp(p.a, &opts);
        p.qb = guest_qp(p.b, &opts);
        qp_connect(p.qa, p.qb, NULL);
        *events = 0;
        for ( i = 1; i < 5; i++ )
        {
            drain(p.qa, true);
            CHECK_EQ(*events, i);
            CHECK_EQ(draining(p.qa), false);
            guest_schedule(p.a, p.qa->qpn);
            world_settle();
            CHECK_EQ(*events, i);
            qp_set_state(p.qa, VMRI_QPS_RTS);
        }
        /* Not asked for, or asked for before. */
        drain(p.qa, false);
        qp_set_state(p.qa, VMRI_QPS_RTS);
        qp_set_state(p.qa, VMRI_QPS_SQD);
        world_settle();
        CHECK_EQ(*events, 4);
    }
}

/* A queue pair without a send queue has nothing to drain. */
TEST(states_drained_without_a_send_queue)
{
    struct guest *g = guest_new(1);
    struct guest_qp *qp = qp_prepare(g, &(struct guest_qp_opts){ 0 });

    qp->arg.sq_log2_entries = qp->arg.sq_log2_stride = 0;
    qp->arg.max_send_sge = 0;
    qp->arg.sq_offset = 0;
    qp->pages = (uint32_t)PFN_UP(qp->arg.rq_offset +
                                 (16U << qp->arg.rq_log2_stride));
    CHECK_EQ(try_qp(qp), 0);
    qp_connect(qp, qp, NULL);
    drain(qp, true);
    CHECK_EQ(g->events[VMRI_EVENT_SQ_DRAINED], 1);
}

/* While one request is at work the queue can only be stopped for good. */
TEST(states_draining_takes_no_attributes)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 10);
    struct vmri_qp_modify arg;

    pair_send(&p, &wr);
    drain(p.qa, true);
    CHECK_EQ(draining(p.qa), true);

    arg = (struct vmri_qp_modify){ .mask = A(STATE), .state = VMRI_QPS_RTS };
    CHECK_EQ(qp_modify(p.qa, &arg), -EINVAL);
    arg = (struct vmri_qp_modify){ .mask = A(TIMEOUT), .timeout = 3 };
    CHECK_EQ(qp_modify(p.qa, &arg), -EINVAL);
    CHECK_EQ(draining(p.qa), true);
    CHECK_EQ(p.a->events[VMRI_EVENT_SQ_DRAINED], 0);

    pair_recv(&p, 2, 0, 10);
    world_settle();
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(p.a->events[VMRI_EVENT_SQ_DRAINED], 1);
    CHECK_EQ(qp_modify(p.qa, &arg), 0);
    qp_set_state(p.qa, VMRI_QPS_RTS);
    CHECK_EQ(qp_query(p.qa, &arg), 0);
    CHECK_EQ(arg.timeout, 3);
}

/* What an error ends has not been drained. */
TEST(states_draining_ends_in_error)
{
    struct guest_conn conn = { .rnr_retry = 1, .min_rnr_timer = 1 };
    struct pair p = pair_new(NULL, &conn);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 10);

    pair_send(&p, &wr);
    wr.wr_id = 2;
    pair_send(&p, &wr);
    drain(p.qa, true);
    world_pass(1000000, 10000);
    cq_expect(p.qa->scq, 1, VMRI_WC_RNR_RETRY_EXC_ERR);
    cq_expect(p.qa->scq, 2, VMRI_WC_WR_FLUSH_ERR);
    CHECK_EQ(qp_state(p.qa), VMRI_QPS_ERR);

    /* By the guest, too. */
    p.qa = guest_qp(p.a, NULL);
    qp_set_state(p.qb, VMRI_QPS_RESET);
    qp_connect(p.qa, p.qb, NULL);
    wr.wr_id = 3;
    pair_send(&p, &wr);
    drain(p.qa, true);
    qp_set_state(p.qa, VMRI_QPS_ERR);
    world_settle();
    cq_expect(p.qa->scq, 3, VMRI_WC_WR_FLUSH_ERR);
    CHECK_EQ(p.a->events[VMRI_EVENT_SQ_DRAINED], 0);
}

/*
 * An unreliable queue whose request fails while it is drained stops, and what
 * was posted behind it is flushed.
 */
TEST(states_draining_stops_an_unreliable_queue)
{
    struct guest_qp_opts opts = { .type = VMRI_QPT_UC };
    struct pair p = pair_new(&opts, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 800000);
    struct guest_wr bad = pair_wr(&p, VMRI_WR_RDMA_WRITE, 2, 0, 0, 700000);
    struct vmri_qp_modify arg = {
        .mask = A(STATE) | A(EN_SQD_ASYNC_NOTIFY), .state = VMRI_QPS_SQD,
        .en_sqd_async_notify = 1,
    };
    unsigned int calls = 0;

    bad.num_sge = 2;
    bad.sge[1] = (struct vmri_sge){ .length = 1000 };
    qp_post_send(p.qa, &wr);
    qp_post_send(p.qa, &bad);
    wr.wr_id = 3;
    qp_post_send(p.qa, &wr);
    /* Until the second one is begun. */
    while ( p.qa->hdr->sq.cons < 1 && calls++ < 10 )
        CHECK_EQ(guest_schedule(p.a, p.qa->qpn), VMRI_SCHEDULE_MORE);
    CHECK_EQ(qp_modify(p.qa, &arg), 0);
    world_settle();
    cq_expect(p.qa->scq, 1, 0);
    cq_expect(p.qa->scq, 2, VMRI_WC_LOC_PROT_ERR);
    cq_expect(p.qa->scq, 3, VMRI_WC_WR_FLUSH_ERR);
    CHECK_EQ(qp_state(p.qa), VMRI_QPS_SQE);
    CHECK_EQ(p.a->events[VMRI_EVENT_SQ_DRAINED], 0);
    CHECK_EQ(qp_state(p.qb), VMRI_QPS_RTS);
}
