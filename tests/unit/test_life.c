/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * engine.c: budgets, and whatever may vanish in the middle of a message:
 * between two calls, and under the hands of the one that copies.
 */
#include "pair.h"
#include "internal.h"

#undef memcpy
#undef memset

#define MS      1000000ULL
#define BIG     (900U << 10)

/* ---- budgets ---- */

TEST(life_budget_of_bytes)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, BIG);
    uint64_t before = 0;
    unsigned int calls = 0;
    long rc;

    fill_pattern(p.ma.mem, BIG, 1);
    qp_post_send(p.qa, &wr);
    do {
        rc = guest_schedule(p.a, p.qa->qpn);
        CHECK(env_stats.copied > before);
        CHECK(env_stats.copied - before <= VMRI_BUDGET + VMRI_STEP);
        before = env_stats.copied;
        calls++;
    } while ( rc == VMRI_SCHEDULE_MORE );
    CHECK_EQ(rc, 0);
    CHECK(calls >= BIG / (VMRI_BUDGET + VMRI_STEP) && calls <= 5);
    CHECK_EQ(env_stats.copied, BIG);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(match_pattern(p.mb.mem, BIG, 1, 0), BIG);
}

static void note(void *flag)
{
    *(bool *)flag = true;
}

/* Is the peer looked up again before a call's worth of bytes is copied? */
static bool steps_in_between(struct pair *p)
{
    struct guest_wr wr = pair_wr(p, VMRI_WR_RDMA_WRITE, 1, 0, 0,
                                 VMRI_BUDGET - VMRI_STEP);
    bool again = false;

    qp_post_send(p->qa, &wr);
    env_test_on_lock(LEVEL_QP, 2, note, &again);
    CHECK_EQ(guest_schedule(p->a, p->qa->qpn), 0);
    env_test_on_lock(LEVEL_QP, 0, NULL, NULL);
    cq_expect(p->qa->scq, 1, 0);

    return again;
}

/* As much as the budget has goes at a stretch, unless others take turns. */
TEST(life_stretch_is_the_budget)
{
    struct pair p = pair_new(NULL, NULL);
    struct vmri_ctl_rate arg = {
        .domid = env_domid(p.a->domain), .dev_id = p.a->dev,
        .flags = VMRI_RATE_SET, .rate = 1ULL << 30, .burst = VMRI_BUDGET,
    };

    CHECK(!steps_in_between(&p));
    CHECK_EQ(dom0_call(VMRI_OP_ctl_rate, &arg, sizeof(arg)), 0);
    CHECK(steps_in_between(&p));
}

TEST(life_budget_of_requests)
{
    struct guest_qp_opts opts = { .sq_log2 = 12 };
    struct pair p = pair_apart(&opts);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 0);
    uint32_t done = 0;
    unsigned int i;
    long rc;

    qp_connect(p.qa, p.qb, NULL);
    wr.flags = 0;
    for ( i = 0; i < 4000; i++ )
        qp_post_send(p.qa, &wr);
    do {
        rc = guest_schedule(p.a, p.qa->qpn);
        CHECK(p.qa->hdr->sq.cons - done <= 256);
        CHECK(p.qa->hdr->sq.cons > done);
        done = p.qa->hdr->sq.cons;
    } while ( rc == VMRI_SCHEDULE_MORE );
    CHECK_EQ(done, 4000);
}

/* A peer's long lists are work for the sender's call: they are paid for. */
TEST(life_budget_of_the_peers_lists)
{
    enum { ENTRIES = VMRI_MAX_INDIRECT, REQUESTS = 32 };
    struct guest_qp_opts opts = {
        .kernel = true, .ind_log2 = 10, .sq_log2 = 5, .rq_log2 = 5,
    };
    struct pair p = pair_new(&opts, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, ENTRIES);
    struct vmri_sge sge[ENTRIES];
    uint32_t done = 0;
    unsigned int i;
    long rc;

    fill_pattern(p.ma.mem, ENTRIES, 1);
    for ( i = 0; i < ENTRIES; i++ )
        sge[i] = mr_sge(&p.mb, i, 1);
    for ( i = 0; i < REQUESTS; i++ )
    {
        qp_recv(p.qb, 2, sge, ENTRIES);
        qp_post_send(p.qa, &wr);
    }
    do {
        rc = guest_schedule(p.a, p.qa->qpn);
        CHECK(p.qa->hdr->sq.cons - done <= 16);
        CHECK(p.qa->hdr->sq.cons > done);
        done = p.qa->hdr->sq.cons;
    } while ( rc == VMRI_SCHEDULE_MORE );
    CHECK_EQ(done, REQUESTS);
    CHECK_EQ(match_pattern(p.mb.mem, ENTRIES, 1, 0), ENTRIES);
}

/* Flushes are bounded too, and a modify leaves the rest to a READY event. */
TEST(life_budget_of_flushes)
{
    struct pair p = pair_apart(NULL);
    struct guest_qp_opts opts = {
        .sq_log2 = 12, .rq_log2 = 12, .scq = guest_cq(p.a, 13),
    };
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 0);
    struct vmri_cqe cqe;
    unsigned int i, n = 0;

    p.qa = guest_qp(p.a, &opts);
    qp_to(p.qa, p.qb, VMRI_QPS_INIT, NULL);
    for ( i = 0; i < 4096; i++ )
    {
        qp_post_send(p.qa, &wr);
        qp_post_recv(p.qa, 2, NULL, 0);
    }
    qp_set_state(p.qa, VMRI_QPS_ERR);
    while ( cq_poll(p.qa->scq, &cqe) )
        n++;
    CHECK(n <= 1024);
    world_settle();
    while ( cq_poll(p.qa->scq, &cqe) )
        n++;
    CHECK_EQ(n, 8192);
    CHECK(p.a->events[VMRI_EVENT_QUEUE_READY]);
}

/* One who posts for ever gets an end to each call. */
static void post_more(void *data)
{
    struct pair *p = data;
    struct guest_wr wr = pair_wr(p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 1);

    wr.flags = 0;
    while ( p->qa->prod_s - p->qa->hdr->sq.cons < 16 )
        qp_post_send(p->qa, &wr);
    env_test_on_map(1, post_more, p);
}

TEST(life_endless_poster)
{
    struct pair p = pair_new(NULL, NULL);

    env_test_on_map(1, post_more, &p);
    post_more(&p);
    CHECK_EQ(guest_schedule(p.a, p.qa->qpn), VMRI_SCHEDULE_MORE);
    CHECK(p.qa->hdr->sq.cons <= 256);
    env_test_on_map(0, NULL, NULL);
}

/*
 * A receive that is there whenever the sender looks whether it must wait, and
 * gone when it wants to have it.  The locks that a try takes on the receiver's
 * queue pair: to see that it answers, to take a receive, to look again.
 */
struct flicker {
    struct pair *p;
    unsigned int locks;
};

static void flicker(void *data)
{
    struct flicker *f = data;

    f->locks++;
    env_store(&f->p->qb->hdr->rq.prod, f->locks % 3 == 0);
    if ( f->locks < 30000 )
        env_test_on_lock(LEVEL_QP, 1, flicker, f);
}

TEST(life_receive_that_flickers)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 8);
    struct flicker f = { .p = &p };

    qp_post_send(p.qa, &wr);
    env_test_on_lock(LEVEL_QP, 1, flicker, &f);
    CHECK_EQ(guest_schedule(p.a, p.qa->qpn), VMRI_SCHEDULE_MORE);
    env_test_on_lock(LEVEL_QP, 0, NULL, NULL);
    CHECK(f.locks > 3);
    CHECK(f.locks <= 3 * 1025);

    env_store(&p.qb->hdr->rq.prod, 0);
    pair_recv(&p, 2, 0, 8);
    world_settle();
    while ( guest_schedule(p.a, p.qa->qpn) == VMRI_SCHEDULE_MORE )
        ;
    cq_expect(p.qb->rcq, 2, 0);
    cq_expect(p.qa->scq, 1, 0);
}

/* ---- things that happen to a message in its middle ---- */

enum event {
    PEER_DESTROY, PEER_ERR, PEER_RESET, PEER_CLOSE, PEER_DETACH, PEER_DIES,
    PEER_MR, OWN_MR, OWN_ERR, OWN_RESET, OWN_DESTROY, OWN_DETACH, OWN_DIES,
    EVENTS
};

static const char *const event_names[EVENTS] = {
    "peer QP destroyed", "peer QP in error", "peer QP reset", "peer closed",
    "peer detached", "peer dies", "peer's MR", "own MR", "own QP in error",
    "own QP reset", "own QP destroyed", "own device detached",
    "own domain dies",
};

struct happening {
    struct pair *p;
    enum event event;
    bool scribble;              /* over the peer's memory, afterwards */
};

static void modify_to(struct guest_qp *qp, uint8_t state)
{
    struct vmri_qp_modify arg = { .mask = VMRI_QPA_STATE, .state = state };

    CHECK_EQ(qp_modify(qp, &arg), 0);
}

static void die(struct guest *g)
{
    env_test_domain_dying(g->domain);
    while ( vmri_domain_teardown(g->domain) == -ERESTART )
        ;
}

/* The memory may be put to any use from now on: nobody writes there again. */
static void reuse(struct guest_mr *mr)
{
    uint32_t i;

    for ( i = 0; i < mr->pages; i++ )
        CHECK(env_test_page_pin_table(mr->guest->domain, mr->gfn + i));
}

static void happen(void *data)
{
    struct happening *h = data;
    struct pair *p = h->p;

    switch ( h->event )
    {
    case PEER_DESTROY: CHECK_EQ(qp_destroy(p->qb), 0); break;
    case PEER_ERR: modify_to(p->qb, VMRI_QPS_ERR); break;
    case PEER_RESET: modify_to(p->qb, VMRI_QPS_RESET); break;
    case PEER_CLOSE:
        CHECK_EQ(guest_call(p->b, VMRI_OP_dev_destroy, NULL, 0), 0);
        reuse(&p->mb);
        break;
    case PEER_DETACH:
        CHECK_EQ(dom0_detach(2, p->b->dev), 0);
        reuse(&p->mb);
        break;
    case PEER_DIES: die(p->b); reuse(&p->mb); break;
    case PEER_MR: CHECK_EQ(mr_deregister(&p->mb), 0); reuse(&p->mb); break;
    case OWN_MR: CHECK_EQ(mr_deregister(&p->ma), 0); reuse(&p->ma); break;
    case OWN_ERR: modify_to(p->qa, VMRI_QPS_ERR); break;
    case OWN_RESET: modify_to(p->qa, VMRI_QPS_RESET); break;
    case OWN_DESTROY: CHECK_EQ(qp_destroy(p->qa), 0); break;
    case OWN_DETACH: CHECK_EQ(dom0_detach(1, p->a->dev), 0); break;
    case OWN_DIES: die(p->a); break;
    case EVENTS: break;
    }
    if ( h->scribble )
        memset(p->mb.mem, 0x77, BIG);
}

/* What the sender must see in the end; 0: nothing, it is gone or was reset. */
static uint8_t sender_status(enum event event, unsigned int op)
{
    switch ( event )
    {
    case PEER_MR:
        return op == VMRI_WR_SEND ? VMRI_WC_REM_OP_ERR : VMRI_WC_REM_ACCESS_ERR;
    case OWN_MR:
        return VMRI_WC_LOC_PROT_ERR;
    case OWN_ERR:
        return VMRI_WC_WR_FLUSH_ERR;
    case OWN_RESET: case OWN_DESTROY: case OWN_DETACH: case OWN_DIES:
        return 0;
    default:
        return VMRI_WC_RETRY_EXC_ERR;
    }
}

static bool gone(enum event event)
{
    return event == OWN_DETACH || event == OWN_DIES || event == OWN_DESTROY;
}

/* Until the sender's time-outs are over. */
static void check_end(struct pair *p, enum event event, unsigned int op,
                      bool may_complete)
{
    uint8_t want = sender_status(event, op);
    struct vmri_cqe cqe, more;
    bool got = false;

    world_pass(2000 * MS, 20 * MS);
    if ( !gone(event) )
        got = cq_poll(p->qa->scq, &cqe);
    if ( got && may_complete && cqe.status == 0 )
        return;
    CHECK_AT(got, want != 0, "%s, op %u", event_names[event], op);
    if ( !want )
        return;
    CHECK_AT(cqe.status, want, "%s, op %u", event_names[event], op);
    CHECK(!cq_poll(p->qa->scq, &more));
    CHECK_EQ(qp_state(p->qa), VMRI_QPS_ERR);
}

/* A receive that was begun completes once, in error, if its QP goes there. */
static void check_receive(struct pair *p, enum event event, unsigned int op)
{
    struct vmri_cqe cqe;
    bool got;

    if ( event >= PEER_CLOSE && event <= PEER_DIES )
        return;
    got = cq_poll(p->qb->rcq, &cqe);
    if ( op != VMRI_WR_SEND || event == PEER_DESTROY || event == PEER_RESET )
        CHECK_AT(got, 0, "%s", event_names[event]);
    if ( got )
        CHECK_EQ(cqe.wr_id, 9);
    CHECK(!cq_poll(p->qb->rcq, &cqe));
}

static void one_message(enum event event, unsigned int op, unsigned int calls)
{
    struct guest_conn conn = { .timeout = 14, .retry_cnt = 1 };
    struct pair p = pair_new(NULL, &conn);
    struct happening h = { .p = &p, .event = event };
    struct guest_wr wr = pair_wr(&p, op, 1, 0, 0, BIG);

    if ( op == VMRI_WR_SEND )
        pair_recv(&p, 9, 0, BIG);
    qp_post_send(p.qa, &wr);
    while ( calls-- )
        CHECK_EQ(guest_schedule(p.a, p.qa->qpn), VMRI_SCHEDULE_MORE);
    happen(&h);
    if ( event < OWN_DETACH )
        while ( guest_schedule(p.a, p.qa->qpn) == VMRI_SCHEDULE_MORE )
            ;
    check_end(&p, event, op, false);
    check_receive(&p, event, op);
}

#define BETWEEN(name, event)                                            \
    TEST(life_between_calls_##name##_send)                              \
    { one_message(event, VMRI_WR_SEND, 2); }                            \
    TEST(life_between_calls_##name##_write)                             \
    { one_message(event, VMRI_WR_RDMA_WRITE, 1); }                      \
    TEST(life_between_calls_##name##_read)                              \
    { one_message(event, VMRI_WR_RDMA_READ, 3); }

BETWEEN(peer_destroy, PEER_DESTROY)
BETWEEN(peer_err, PEER_ERR)
BETWEEN(peer_reset, PEER_RESET)
BETWEEN(peer_close, PEER_CLOSE)
BETWEEN(peer_detach, PEER_DETACH)
BETWEEN(peer_dies, PEER_DIES)
BETWEEN(peer_mr, PEER_MR)
BETWEEN(own_mr, OWN_MR)
BETWEEN(own_err, OWN_ERR)
BETWEEN(own_reset, OWN_RESET)
BETWEEN(own_destroy, OWN_DESTROY)
BETWEEN(own_detach, OWN_DETACH)
BETWEEN(own_dies, OWN_DIES)

/* ---- the same under the hands of the copy, from another CPU ---- */

static void happen_aside(void *data)
{
    env_test_aside(happen, data);
}

static void under_copy(enum event event, unsigned int op, unsigned int nth_map)
{
    struct guest_conn conn = { .timeout = 14, .retry_cnt = 1 };
    struct pair p = pair_new(NULL, &conn);
    struct happening h = { .p = &p, .event = event };
    struct guest_wr wr = pair_wr(&p, op, 1, 0, 0, BIG);
    long rc;

    if ( op == VMRI_WR_SEND )
        pair_recv(&p, 9, 0, BIG);
    qp_post_send(p.qa, &wr);
    env_test_on_map(nth_map, happen_aside, &h);
    while ( (rc = guest_schedule(p.a, p.qa->qpn)) == VMRI_SCHEDULE_MORE )
        ;
    CHECK(rc == 0 || rc == -ENOENT || rc == -ENODEV);
    CHECK(env_test_aside_end());
    /* Who modifies a queue waits for its owner, who may finish first. */
    check_end(&p, event, op, event == OWN_ERR || event == OWN_RESET);
    check_receive(&p, event, op);
}

/* At the first byte, within a step, at the border of two, of two calls. */
static const unsigned int at_maps[] = { 1, 2, 13, 32, 33, 34, 66, 129, 260 };

#define UNDER(name, event)                                              \
    TEST(life_under_copy_##name)                                        \
    {                                                                   \
        under_copy(event, VMRI_WR_RDMA_WRITE, at_maps[6]);              \
    }                                                                   \
    TEST(life_under_send_##name)                                        \
    {                                                                   \
        under_copy(event, VMRI_WR_SEND, at_maps[2]);                    \
    }                                                                   \
    TEST(life_under_read_##name)                                        \
    {                                                                   \
        under_copy(event, VMRI_WR_RDMA_READ, at_maps[0]);               \
    }

UNDER(peer_destroy, PEER_DESTROY)
UNDER(peer_err, PEER_ERR)
UNDER(peer_reset, PEER_RESET)
UNDER(peer_close, PEER_CLOSE)
UNDER(peer_detach, PEER_DETACH)
UNDER(peer_dies, PEER_DIES)
UNDER(peer_mr, PEER_MR)
UNDER(own_mr, OWN_MR)
UNDER(own_err, OWN_ERR)
UNDER(own_reset, OWN_RESET)
UNDER(own_destroy, OWN_DESTROY)

/* On return from a modify nobody writes what the QP's peer could. */
TEST(life_no_write_after_a_modify)
{
    static const enum event events[] = { PEER_ERR, PEER_RESET, PEER_DESTROY };
    struct pair p = pair_apart(NULL);
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(events); i++ )
    {
        struct happening h = { .p = &p, .event = events[i], .scribble = true };
        struct guest_wr wr;

        p.qa = guest_qp(p.a, NULL);
        p.qb = guest_qp(p.b, NULL);
        qp_connect(p.qa, p.qb, NULL);
        wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, BIG);
        memset(p.ma.mem, 1, BIG);
        qp_post_send(p.qa, &wr);
        env_test_on_map(7, happen_aside, &h);
        while ( guest_schedule(p.a, p.qa->qpn) == VMRI_SCHEDULE_MORE )
            ;
        CHECK(env_test_aside_end());
        CHECK_AT(all_bytes(p.mb.mem, BIG, 0x77), 1, "%s",
                 event_names[events[i]]);
    }
}

/* Each place in the message, for the one that matters most. */
TEST(life_deregistered_at_every_step)
{
    struct guest_conn conn = { .timeout = 14, .retry_cnt = 1 };
    struct pair p = pair_apart(NULL);
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(at_maps); i++ )
    {
        struct guest_mr mine = p.mb, *mb = &p.mb;
        struct happening h = { .p = &p, .event = PEER_MR };
        struct guest_wr wr;

        p.qa = guest_qp(p.a, &(struct guest_qp_opts){ .scq = p.qa->scq });
        p.qb = guest_qp(p.b, &(struct guest_qp_opts){ .scq = p.qb->scq });
        qp_connect(p.qa, p.qb, &conn);
        wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, BIG);
        qp_post_send(p.qa, &wr);
        env_test_on_map(at_maps[i], happen_aside, &h);
        while ( guest_schedule(p.a, p.qa->qpn) == VMRI_SCHEDULE_MORE )
            ;
        CHECK(env_test_aside_end());
        cq_expect(p.qa->scq, 1, VMRI_WC_REM_ACCESS_ERR);
        *mb = guest_mr(p.b, PAIR_BYTES, 0, LAYOUT_SCATTERED, 7);
        CHECK(mb->key != mine.key);
        CHECK_EQ(qp_destroy(p.qa), 0);
        CHECK_EQ(qp_destroy(p.qb), 0);
    }
}

/* ---- reconnection ---- */

/* A peer resets in the middle and connects anew: the message goes on whole. */
TEST(life_receive_half_filled_by_an_old_connection)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, BIG);
    struct guest_qp *next = guest_qp(p.a, NULL);
    struct guest_wr small;

    pair_recv(&p, 9, 0, BIG);
    qp_post_send(p.qa, &wr);
    CHECK_EQ(guest_schedule(p.a, p.qa->qpn), VMRI_SCHEDULE_MORE);
    qp_set_state(p.qa, VMRI_QPS_RESET);

    /* The receive was taken by a message that never ends: it stays claimed. */
    qp_set_state(p.qb, VMRI_QPS_ERR);
    cq_expect(p.qb->rcq, 9, VMRI_WC_WR_FLUSH_ERR);
    qp_set_state(p.qb, VMRI_QPS_RESET);

    p.qa = next;
    qp_connect(p.qa, p.qb, NULL);
    fill_pattern(p.ma.mem, 5000, 8);
    small = pair_wr(&p, VMRI_WR_SEND, 2, 0, 0, 5000);
    pair_recv(&p, 10, 0, BIG);
    pair_send(&p, &small);
    cq_expect(p.qa->scq, 2, 0);
    CHECK_EQ(cq_expect(p.qb->rcq, 10, 0).byte_len, 5000);
    CHECK_EQ(match_pattern(p.mb.mem, 5000, 8, 0), 5000);
}

/* The same when the receiver is reset at once: the old receive is forgotten. */
TEST(life_receive_half_filled_before_a_reset)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, BIG);

    pair_recv(&p, 9, 0, BIG);
    qp_post_send(p.qa, &wr);
    CHECK_EQ(guest_schedule(p.a, p.qa->qpn), VMRI_SCHEDULE_MORE);
    qp_set_state(p.qa, VMRI_QPS_RESET);
    qp_set_state(p.qb, VMRI_QPS_RESET);
    cq_expect_none(p.qb->rcq);

    qp_connect(p.qa, p.qb, NULL);
    pair_recv(&p, 10, 0, BIG);
    wr = pair_wr(&p, VMRI_WR_SEND, 2, 0, 0, 100);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 2, 0);
    cq_expect(p.qb->rcq, 10, 0);
}

/* The sender alone starts anew, with the same numbers: the receive serves. */
TEST(life_sender_starts_anew)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, BIG);
    unsigned int state;

    pair_recv(&p, 9, 0, BIG);
    qp_post_send(p.qa, &wr);
    CHECK_EQ(guest_schedule(p.a, p.qa->qpn), VMRI_SCHEDULE_MORE);
    qp_set_state(p.qa, VMRI_QPS_RESET);
    for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTS; state++ )
        qp_to(p.qa, p.qb, state, NULL);
    fill_pattern(p.ma.mem, 7777, 3);
    memset(p.mb.mem, 0, 7777);
    wr = pair_wr(&p, VMRI_WR_SEND, 2, 0, 0, 7777);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 2, 0);
    CHECK_EQ(cq_expect(p.qb->rcq, 9, 0).byte_len, 7777);
    CHECK_EQ(match_pattern(p.mb.mem, 7777, 3, 0), 7777);
}

/*
 * A message cannot be turned to another receiver when it is nearly done, one
 * with the same number and a receive that an earlier message began to fill.
 */
TEST(life_message_turned_to_another_receiver)
{
    struct guest_qp_opts opts = { .qpn = 4321 };
    struct pair p = pair_apart(&opts);
    struct guest *victim = guest_new(3);
    struct guest_qp *qv = guest_qp(victim, &opts);
    struct guest_mr mv = guest_mr(victim, 8192, 0, LAYOUT_RUN,
                                  VMRI_ACCESS_LOCAL_WRITE);
    struct vmri_sge sge = mr_sge(&mv, 0, 8192);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 100);
    struct vmri_qp_modify arg = {
        .mask = VMRI_QPA_STATE | VMRI_QPA_AV, .state = VMRI_QPS_SQD,
        .av.dlid = victim->lid,
    };
    unsigned int state;

    qp_connect(p.qa, qv, NULL);
    qp_recv(qv, 9, &sge, 1);
    wr.num_sge = 2;
    wr.sge[1] = (struct vmri_sge){ .addr = 1, .length = 1, .lkey = 1 };
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, VMRI_WC_LOC_PROT_ERR);
    cq_expect_none(qv->rcq);

    /* What a call does is four steps; each modify does as much. */
    qp_set_state(p.qa, VMRI_QPS_RESET);
    qp_connect(p.qa, p.qb, NULL);
    pair_recv(&p, 10, 0, BIG);
    wr = pair_wr(&p, VMRI_WR_SEND, 2, 0, 0, 2 * VMRI_BUDGET + 2000);
    qp_post_send(p.qa, &wr);
    CHECK_EQ(guest_schedule(p.a, p.qa->qpn), VMRI_SCHEDULE_MORE);
    qp_set_state(p.qa, VMRI_QPS_SQD);
    cq_expect_none(p.qa->scq);
    CHECK_EQ(qp_modify(p.qa, &arg), -EINVAL);
    world_settle();
    cq_expect_none(qv->rcq);
    cq_expect(p.qa->scq, 2, 0);
    cq_expect(p.qb->rcq, 10, 0);
    CHECK_EQ(qp_modify(p.qa, &arg), 0);

    /* The receive still serves. */
    qp_set_state(p.qa, VMRI_QPS_RESET);
    for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTS; state++ )
        qp_to(p.qa, qv, state, NULL);
    fill_pattern(p.ma.mem, 8192, 5);
    wr = pair_wr(&p, VMRI_WR_SEND, 3, 0, 0, 8192);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 3, 0);
    CHECK_EQ(cq_expect(qv->rcq, 9, 0).byte_len, 8192);
    CHECK_EQ(match_pattern(mv.mem, 8192, 5, 0), 8192);
}

/*
 * The receiver goes in the middle of a message, and a device of another domain
 * gets its LID, with a queue pair of the same number that connects: it gets no
 * end of a message whose beginning went elsewhere.
 */
static void check_taken_over(unsigned int opcode)
{
    struct guest_qp_opts opts = { .qpn = 4321 };
    struct pair p = pair_apart(&opts);
    const uint64_t bytes = VMRI_BUDGET + 2000;
    struct guest_wr wr = pair_wr(&p, opcode, 1, 0, 0, (uint32_t)bytes);
    struct guest *heir = guest_bare(3);
    unsigned int state;
    struct guest_mr mr;
    struct guest_qp *qp;

    memset(p.ma.mem, 1, PAIR_BYTES);
    qp_connect(p.qa, p.qb, NULL);
    pair_recv(&p, 2, 0, BIG);
    qp_post_send(p.qa, &wr);
    CHECK_EQ(guest_schedule(p.a, p.qa->qpn), VMRI_SCHEDULE_MORE);
    CHECK_EQ(dom0_detach(2, p.b->dev), 0);

    heir->lid = p.b->lid;
    CHECK_EQ(dom0_attach(3, GUEST_FABRIC, &heir->dev, &heir->lid), 0);
    guest_start(heir);
    /* The same key, and its memory where the last bytes go. */
    heir->next_iova = p.mb.iova + VMRI_BUDGET;
    mr = guest_mr(heir, 8192, 0, LAYOUT_RUN, VMRI_ACCESS_LOCAL_WRITE |
                                             VMRI_ACCESS_REMOTE_WRITE);
    CHECK_EQ(mr.key, p.mb.key);
    qp = guest_qp(heir, &opts);
    for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTS; state++ )
        qp_to(qp, p.qa, state, NULL);
    qp_recv(qp, 3, NULL, 0);

    world_settle();
    qp_ring(p.qa);
    cq_expect_none(qp->rcq);
    CHECK(all_bytes(mr.mem, 8192, 0));
    CHECK_EQ(cq_expect(p.qa->scq, 1, VMRI_WC_RETRY_EXC_ERR).vendor_err,
             VMRI_VERR_NO_PEER);
}

TEST(life_send_taken_over)
{
    check_taken_over(VMRI_WR_SEND);
}

TEST(life_write_taken_over)
{
    check_taken_over(VMRI_WR_RDMA_WRITE);
}

TEST(life_write_with_imm_taken_over)
{
    check_taken_over(VMRI_WR_RDMA_WRITE_WITH_IMM);
}

/* A receive list that changes after it was looked at: no more than it says. */
static struct vmri_sge *hostile_sge;

static void shrink_receive(void *data)
{
    (void)data;
    hostile_sge->length = 1;
}

TEST(life_receive_list_changed_under_the_copy)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 100000);
    struct vmri_sge sge[2] = {
        mr_sge(&p.mb, 0, 50000), mr_sge(&p.mb, 100000, 50000),
    };
    struct vmri_cqe cqe;

    qp_recv(p.qb, 9, sge, 2);
    hostile_sge = (void *)(p.qb->mem + p.qb->arg.rq_offset + 16);
    hostile_sge++;
    memset(p.mb.mem, 0, 200000);
    env_test_on_map(4, shrink_receive, NULL);
    pair_send(&p, &wr);
    cqe = cq_expect(p.qa->scq, 1, VMRI_WC_REM_OP_ERR);
    CHECK_EQ(cqe.vendor_err, VMRI_VERR_RECV_SIZE);
    cqe = cq_expect(p.qb->rcq, 9, VMRI_WC_LOC_PROT_ERR);
    CHECK(all_bytes(p.mb.mem + 100001, 50000, 0));
}

/* A send list that changes is the sender's own fault, and its alone. */
static void shrink_send(void *data)
{
    (void)data;
    hostile_sge->length = 0;
}

TEST(life_send_list_changed_under_the_copy)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 50000);

    wr.num_sge = 2;
    wr.sge[1] = mr_sge(&p.ma, 0, 50000);
    qp_post_send(p.qa, &wr);
    hostile_sge = (void *)(p.qa->mem + p.qa->arg.sq_offset + 64);
    hostile_sge++;
    env_test_on_map(4, shrink_send, NULL);
    qp_ring(p.qa);
    CHECK_EQ(cq_expect(p.qa->scq, 1, VMRI_WC_LOC_PROT_ERR).vendor_err,
             VMRI_VERR_LENGTH);
    CHECK_EQ(qp_state(p.qb), VMRI_QPS_RTS);
}

/*
 * The receiver's own failure, while a message fills its receive: that receive
 * completes once, by who fills it, before the rest is flushed.
 */
static void fail_own_send(void *data)
{
    struct pair *p = data;
    struct guest_wr bad = { .wr_id = 4, .opcode = 99 };

    qp_send(p->qb, &bad);
}

static void fail_own_send_aside(void *data)
{
    env_test_aside(fail_own_send, data);
}

TEST(life_receiver_fails_under_the_copy)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 60000);

    pair_recv(&p, 9, 0, 60000);
    pair_recv(&p, 10, 0, 60000);
    env_test_on_map(5, fail_own_send_aside, &p);
    pair_send(&p, &wr);
    CHECK(env_test_aside_end());
    cq_expect(p.qa->scq, 1, 0);
    cq_expect(p.qb->scq, 4, VMRI_WC_LOC_QP_OP_ERR);
    cq_expect(p.qb->rcq, 9, 0);
    cq_expect(p.qb->rcq, 10, VMRI_WC_WR_FLUSH_ERR);
    cq_expect_none(p.qb->rcq);
}

/*
 * Another vCPU waits to modify the queue: a guest that rings without end does
 * not come before it, and what was rung for is done after it.
 */
TEST(life_who_waits_to_own_comes_first)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 100);
    struct vmri_dev *dev = vmri_dev_get(p.a->domain, p.a->dev);
    struct vmri_qp *qp = vmri_table_get(&dev->qps, p.qa->qpn);
    struct domain *before;
    unsigned int i;

    env_fetch_add(&qp->turns, 1);
    qp_post_send(p.qa, &wr);
    for ( i = 0; i < 3; i++ )
        CHECK_EQ(guest_schedule(p.a, p.qa->qpn), 0);
    cq_expect_none(p.qa->scq);

    /* It has its turn, is the owner, and is done. */
    env_fetch_add(&qp->turn, 1);
    env_store(&qp->busy, 1);
    before = env_test_enter(p.a->domain);
    vmri_disown(qp);
    env_test_enter(before);
    cq_expect(p.qa->scq, 1, 0);

    vmri_table_put(&dev->qps, p.qa->qpn);
    vmri_dev_put(dev);
}
