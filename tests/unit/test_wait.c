/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests that wait: for a receive (RNR), for a peer; timers, wakes, limits.
 */
#include "pair.h"

#define MS      1000000ULL
#define TICK    4096ULL
/* How late the timer may be: a tick or two, and the rest that it takes. */
#define LATE    (22 * TICK)

/* IBTA 1.4, table 45: what each RNR timer code means, in us. */
static const uint32_t rnr_us[32] = {
    655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280,
    1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440,
    81920, 122880, 163840, 245760, 327680, 491520,
};

/* Advance until the sender has its completion; how long that took. */
static uint64_t time_to_completion(struct pair *p, uint64_t limit,
                                   struct vmri_cqe *cqe)
{
    uint64_t start = env_now();

    while ( !cq_poll(p->qa->scq, cqe) )
    {
        uint64_t next = env_test_next_timer();

        CHECK(next && next < start + limit);
        env_test_advance(next > env_now() ? next - env_now() : 0);
        world_settle();
    }
    return env_now() - start;
}

TEST(wait_rnr_retries_are_counted_and_timed)
{
    unsigned int code, retry;

    for ( code = 0; code < 32; code++ )
        for ( retry = 0; retry < 7; retry++ )
        {
            static struct pair p;
            struct guest_conn conn = {
                .min_rnr_timer = code ? code : CONN_ZERO,
                .rnr_retry = retry ? retry : CONN_ZERO,
            };
            uint64_t want = retry * rnr_us[code] * 1000ULL, took;
            struct guest_wr wr;
            struct vmri_cqe cqe;

            if ( !p.a )
                p = pair_apart(NULL);
            p.qa = guest_qp(p.a, NULL);
            p.qb = guest_qp(p.b, NULL);
            qp_connect(p.qa, p.qb, &conn);
            wr = pair_wr(&p, VMRI_WR_SEND, code, 0, 0, 8);
            pair_send(&p, &wr);
            took = time_to_completion(&p, want + 100 * MS, &cqe);
            CHECK_EQ(cqe.status, VMRI_WC_RNR_RETRY_EXC_ERR);
            CHECK_EQ(cqe.vendor_err, VMRI_VERR_NO_RECV);
            if ( took < want || took > want + retry * LATE )
                test_failed(__FILE__, __LINE__, "code %u, %u retries: %llu ns",
                            code, retry, (unsigned long long)took);
            CHECK_EQ(qp_destroy(p.qa), 0);
            CHECK_EQ(qp_destroy(p.qb), 0);
        }
}

TEST(wait_rnr_seven_is_for_ever)
{
    struct guest_conn conn = { .rnr_retry = 7, .min_rnr_timer = 1 };
    struct pair p = pair_new(NULL, &conn);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 8);
    struct vmri_counters c;

    pair_send(&p, &wr);
    world_pass(1000 * MS, 10 * MS);
    cq_expect_none(p.qa->scq);
    guest_counters(p.a, &c);
    CHECK(c.rnr > 90);
    pair_recv(&p, 2, 0, 8);
    world_settle();
    cq_expect(p.qb->rcq, 2, 0);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(p.qb->hdr->rq.wait, 0);
}

/* A post wakes the sender at once, through the receiver's doorbell. */
TEST(wait_post_wakes_the_sender)
{
    struct guest_conn conn = { .min_rnr_timer = CONN_ZERO, .rnr_retry = 1 };
    struct pair p = pair_new(NULL, &conn);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 5000);

    fill_pattern(p.ma.mem, 5000, 1);
    CHECK_EQ(p.qb->hdr->rq.wait, 0);
    pair_send(&p, &wr);
    CHECK_EQ(p.qb->hdr->rq.wait, 1);
    CHECK_EQ(p.a->events[VMRI_EVENT_QUEUE_READY], 0);
    pair_recv(&p, 2, 0, 5000);
    /* No bytes move in the receiver's call. */
    cq_expect_none(p.qb->rcq);
    CHECK_EQ(env_stats.copied, 0);
    world_settle();
    CHECK_EQ(p.a->events[VMRI_EVENT_QUEUE_READY], 1);
    cq_expect(p.qa->scq, 1, 0);
    cq_expect(p.qb->rcq, 2, 0);
    CHECK_EQ(match_pattern(p.mb.mem, 5000, 1, 0), 5000);
    /* The timer finds nothing to wake any more. */
    world_pass(1000 * MS, 10 * MS);
    CHECK_EQ(p.a->events[VMRI_EVENT_QUEUE_READY], 1);
}

/* Nothing is asked for while receives are there. */
TEST(wait_no_doorbell_for_receives_nobody_waits_for)
{
    struct pair p = pair_new(NULL, NULL);
    struct vmri_counters c;
    unsigned int i;

    for ( i = 0; i < 10; i++ )
        pair_recv(&p, i, 0, 8);
    guest_counters(p.b, &c);
    CHECK_EQ(c.doorbells, 0);
}

/* Every operation that needs a receive waits for one; what follows keeps order. */
TEST(wait_write_with_imm_and_order)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE_WITH_IMM, 1, 0, 0, 3000);
    struct guest_wr next = pair_wr(&p, VMRI_WR_RDMA_WRITE, 2, 0, 9000, 10);

    fill_pattern(p.ma.mem, 3000, 9);
    qp_post_send(p.qa, &wr);
    pair_send(&p, &next);
    cq_expect_none(p.qa->scq);
    CHECK_EQ(p.mb.mem[9000], 0);
    pair_recv(&p, 3, 0, 0);
    world_settle();
    cq_expect(p.qa->scq, 1, 0);
    cq_expect(p.qa->scq, 2, 0);
    cq_expect(p.qb->rcq, 3, 0);
    CHECK_EQ(match_pattern(p.mb.mem, 3000, 9, 0), 3000);
}

/* A sends to a peer that is not there. */
static struct guest_wr send_to_nobody(struct pair *p, uint8_t timeout,
                                      uint8_t retry_cnt)
{
    struct guest_conn conn = {
        .timeout = timeout, .retry_cnt = retry_cnt ? retry_cnt : CONN_ZERO,
    };
    struct guest_wr wr = pair_wr(p, VMRI_WR_SEND, 1, 0, 0, 8);
    unsigned int state;

    for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTS; state++ )
        qp_to(p->qa, p->qb, state, &conn);
    pair_send(p, &wr);
    return wr;
}

/*
 * What IBTA 1.4, 9.7.6.1.3 promises: each time-out at least, at most fourfold,
 * when it is not shorter than the timer's rest.
 */
static void check_silence(struct pair *p, uint8_t timeout, uint8_t retry_cnt,
                          uint64_t took, const struct vmri_cqe *cqe)
{
    uint64_t want = (retry_cnt + 1) * (4096ULL << timeout);

    CHECK_EQ(cqe->status, VMRI_WC_RETRY_EXC_ERR);
    CHECK_EQ(cqe->vendor_err, VMRI_VERR_NO_PEER);
    if ( took < want || (timeout > 4 && took > 4 * want) ||
         took > want + (retry_cnt + 1U) * LATE )
        test_failed(__FILE__, __LINE__, "timeout %u, retry %u: %llu ns instead "
                    "of %llu", timeout, retry_cnt, (unsigned long long)took,
                    (unsigned long long)want);
    CHECK_EQ(qp_state(p->qa), VMRI_QPS_ERR);
}

TEST(wait_silent_peer)
{
    static const uint8_t timeouts[] = { 1, 2, 3, 5, 8, 12, 14, 18, 20, 31 };
    struct pair p = pair_apart(NULL);
    unsigned int i;
    uint8_t retry;

    for ( i = 0; i < ARRAY_SIZE(timeouts); i++ )
        for ( retry = 0; retry < 8; retry++ )
        {
            struct vmri_cqe cqe;
            uint64_t took;

            send_to_nobody(&p, timeouts[i], retry);
            took = time_to_completion(&p, ~0ULL >> 1, &cqe);
            check_silence(&p, timeouts[i], retry, took, &cqe);
            qp_set_state(p.qa, VMRI_QPS_RESET);
        }
}

/* A peer that dies when it has answered: its silence counts from there. */
TEST(wait_peer_dies)
{
    static const struct guest_conn conn = {
        .timeout = 10, .retry_cnt = 2, .min_rnr_timer = 14,
    };
    struct pair p = pair_new(NULL, &conn);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 8);
    struct vmri_cqe cqe;
    uint64_t took;

    pair_send(&p, &wr);
    CHECK_EQ(qp_destroy(p.qb), 0);
    took = time_to_completion(&p, 1000 * MS, &cqe);
    /* The RNR timer that ran, 1.28 ms, comes before. */
    CHECK(took > 1280000);
    check_silence(&p, 10, 2, took - 1280000, &cqe);
}

/* Being woken for nothing uses up no retry and no time. */
TEST(wait_woken_for_nothing)
{
    struct pair p = pair_apart(NULL);
    uint64_t start = env_now();
    struct vmri_cqe cqe;
    unsigned int i;

    send_to_nobody(&p, 12, 1);
    for ( i = 0; i < 15; i++ )
    {
        qp_to(p.qb, p.qa, VMRI_QPS_INIT, NULL);
        qp_to(p.qb, p.qa, VMRI_QPS_RTR, NULL);
        qp_set_state(p.qb, VMRI_QPS_RESET);
        world_settle();
        cq_expect_none(p.qa->scq);
        env_test_advance(MS);
    }
    time_to_completion(&p, 1000 * MS, &cqe);
    check_silence(&p, 12, 1, env_now() - start, &cqe);
}

/* The same with a receive that is shown and taken away again. */
TEST(wait_receive_shown_for_nothing)
{
    struct guest_conn conn = { .min_rnr_timer = 20, .rnr_retry = 2 };
    struct pair p = pair_new(NULL, &conn);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 8);
    uint64_t start = env_now(), want = 2 * rnr_us[20] * 1000ULL, took;
    struct vmri_cqe cqe;
    unsigned int i;

    pair_send(&p, &wr);
    for ( i = 0; i < 10; i++ )
    {
        pair_recv(&p, 2, 0, 8);
        env_store(&p.qb->hdr->rq.prod, --p.qb->prod_r);
        world_settle();
        cq_expect_none(p.qa->scq);
        env_test_advance(MS / 10);
    }
    time_to_completion(&p, 1000 * MS, &cqe);
    CHECK_EQ(cqe.status, VMRI_WC_RNR_RETRY_EXC_ERR);
    took = env_now() - start;
    CHECK(took >= want && took < want + 6 * TICK);
}

TEST(wait_peer_connects_late)
{
    struct pair p = pair_apart(NULL);
    uint64_t half = 4096ULL << 18;

    send_to_nobody(&p, 18, 1);
    world_pass(half, half);
    qp_to(p.qb, p.qa, VMRI_QPS_INIT, NULL);
    pair_recv(&p, 2, 0, 8);
    cq_expect_none(p.qa->scq);
    qp_to(p.qb, p.qa, VMRI_QPS_RTR, NULL);
    world_settle();
    cq_expect(p.qa->scq, 1, 0);
    cq_expect(p.qb->rcq, 2, 0);
    CHECK_EQ(p.b->events[VMRI_EVENT_COMM_EST], 1);
}

TEST(wait_timeout_zero_is_for_ever)
{
    struct guest_conn conn = { .timeout = CONN_ZERO, .retry_cnt = CONN_ZERO };
    struct pair p = pair_apart(NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 8);
    unsigned int state;

    for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTS; state++ )
        qp_to(p.qa, p.qb, state, &conn);
    pair_send(&p, &wr);
    CHECK_EQ(env_test_next_timer(), 0);
    world_pass(1000000 * MS, 500000 * MS);
    cq_expect_none(p.qa->scq);
    qp_to(p.qb, p.qa, VMRI_QPS_INIT, &conn);
    pair_recv(&p, 2, 0, 8);
    qp_to(p.qb, p.qa, VMRI_QPS_RTR, &conn);
    world_settle();
    cq_expect(p.qa->scq, 1, 0);
}

/*
 * Also when the peer's queue pair has gone, or all of its device: another with
 * its numbers may come.  What ends the wait is the guest.
 */
TEST(wait_timeout_zero_outlives_the_peer)
{
    struct guest_conn conn = { .timeout = CONN_ZERO, .retry_cnt = CONN_ZERO };
    unsigned int all;

    for ( all = 0; all < 2; all++ )
    {
        struct pair p = pair_new(NULL, &conn);
        struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 8);

        if ( all )
            CHECK_EQ(dom0_detach(2, p.b->dev), 0);
        else
            CHECK_EQ(qp_destroy(p.qb), 0);
        pair_send(&p, &wr);
        world_pass(1000000 * MS, 500000 * MS);
        cq_expect_none(p.qa->scq);
        CHECK_EQ(env_test_next_timer(), 0);
        qp_set_state(p.qa, VMRI_QPS_ERR);
        cq_expect(p.qa->scq, 1, VMRI_WC_WR_FLUSH_ERR);
        dom0_detach(1, p.a->dev);
        dom0_detach(2, p.b->dev);
    }
}

/* Nobody there in the many ways of that. */
TEST(wait_peers_that_do_not_answer)
{
    struct guest_conn conn = { .timeout = 1, .retry_cnt = CONN_ZERO };
    unsigned int how;

    for ( how = 0; how < 9; how++ )
    {
        static struct pair p;
        static struct guest *alien;
        struct guest_qp_opts ud = { .type = VMRI_QPT_UD };
        struct guest_qp *other;
        struct vmri_qp_modify arg;
        struct guest_wr wr;
        struct vmri_cqe cqe;

        if ( !p.a )
        {
            p = pair_apart(NULL);
            alien = guest_bare(3);
            CHECK_EQ(dom0_attach(3, GUEST_FABRIC + 1, &alien->dev, &alien->lid),
                     0);
            guest_start(alien);
        }
        p.qa = guest_qp(p.a, NULL);
        p.qb = guest_qp(p.b, how == 5 ? &ud : NULL);
        other = guest_qp(p.a, NULL);

        qp_to(p.qa, p.qb, VMRI_QPS_INIT, NULL);
        qp_attr(p.qa, p.qb, VMRI_QPS_RTR, &conn, &arg);
        if ( how == 0 )
            arg.dest_qpn = 0xffffff;
        else if ( how == 1 )
            arg.av.dlid = 0xbfff;
        else if ( how == 2 )
            arg.dest_qpn ^= 1 << 17;        /* an older use of the number */
        CHECK_EQ(qp_modify(p.qa, &arg), 0);
        qp_to(p.qa, p.qb, VMRI_QPS_RTS, &conn);

        if ( how < 3 )
        {
            qp_to(p.qb, p.qa, VMRI_QPS_INIT, NULL);
            qp_to(p.qb, p.qa, VMRI_QPS_RTR, NULL);
        }
        else if ( how == 3 )
            qp_to(p.qb, p.qa, VMRI_QPS_INIT, NULL);
        else if ( how == 4 )                /* connected to somebody else */
        {
            qp_to(p.qb, other, VMRI_QPS_INIT, NULL);
            qp_to(p.qb, other, VMRI_QPS_RTR, NULL);
        }
        else if ( how == 5 )
        {
            qp_to(p.qb, p.qa, VMRI_QPS_INIT, NULL);
            qp_to(p.qb, p.qa, VMRI_QPS_RTR, NULL);
        }
        else if ( how == 6 )
            qp_set_state(p.qb, VMRI_QPS_ERR);
        else if ( how == 7 )
            CHECK_EQ(qp_destroy(p.qb), 0);
        else
        {
            qp_to(p.qb, p.qa, VMRI_QPS_INIT, NULL);
            qp_to(p.qb, p.qa, VMRI_QPS_RTR, NULL);
            env_test_domain_running(p.b->domain, false);
        }

        wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, how, 0, 0, 8);
        pair_send(&p, &wr);
        time_to_completion(&p, 10 * MS, &cqe);
        CHECK_AT(cqe.status, VMRI_WC_RETRY_EXC_ERR, "case %u", how);
        CHECK_EQ(cqe.vendor_err, VMRI_VERR_NO_PEER);
        CHECK(all_bytes(p.mb.mem, 8, 0));
    }
}

/* The other fabric has the same LIDs; they are others. */
TEST(wait_fabrics_do_not_meet)
{
    struct guest_conn conn = { .timeout = 1, .retry_cnt = CONN_ZERO };
    struct guest *a = guest_new(1), *b = guest_bare(2);
    struct pair p = { .a = a, .b = b };
    uint16_t lid = 9;
    struct guest_wr wr;
    struct vmri_cqe cqe;

    CHECK_EQ(dom0_attach(2, GUEST_FABRIC + 1, &b->dev, &lid), 0);
    guest_start(b);
    CHECK_EQ(b->lid, 9);
    p.qa = guest_qp(a, NULL);
    p.qb = guest_qp(b, NULL);
    p.ma = guest_mr(a, 4096, 0, LAYOUT_RUN, 0);
    qp_connect(p.qa, p.qb, &conn);
    wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 8);
    pair_send(&p, &wr);
    time_to_completion(&p, 10 * MS, &cqe);
    CHECK_EQ(cqe.status, VMRI_WC_RETRY_EXC_ERR);
}

/* A peer that is saved and comes back: the sender waits and goes on. */
TEST(wait_for_a_peer_that_is_saved)
{
    struct guest_conn conn = { .timeout = 14, .retry_cnt = 7 };
    struct pair p = pair_new(NULL, &conn);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 100);

    pair_recv(&p, 2, 0, 100);
    env_test_domain_running(p.b->domain, false);
    pair_send(&p, &wr);
    world_pass(200 * MS, 10 * MS);
    cq_expect_none(p.qa->scq);
    CHECK_EQ(env_stats.copied, 0);
    env_test_domain_running(p.b->domain, true);
    world_pass(200 * MS, 10 * MS);
    cq_expect(p.qa->scq, 1, 0);
    cq_expect(p.qb->rcq, 2, 0);
}

/* While one waits nothing behind it moves, doorbells or not. */
TEST(wait_parked_stays_parked)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 8);
    struct vmri_counters c;
    unsigned int i;

    for ( i = 0; i < 8; i++ )
        pair_send(&p, &wr);
    for ( i = 0; i < 8; i++ )
        CHECK_EQ(guest_schedule(p.a, p.qa->qpn), 0);
    guest_counters(p.a, &c);
    CHECK_EQ(c.rnr, 1);
    CHECK_EQ(p.qa->hdr->sq.cons, 0);
    for ( i = 0; i < 8; i++ )
    {
        pair_recv(&p, i, 0, 8);
        world_settle();
    }
    CHECK_EQ(p.qa->hdr->sq.cons, 8);
}
