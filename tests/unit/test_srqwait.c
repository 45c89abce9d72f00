/* SPDX-License-Identifier: GPL-2.0-only */
/* srqwait.c: senders that wait for a receive of a shared queue. */
#include "hub.h"

#define MS      1000000ULL

/* As long as a wait can be. */
static const struct guest_conn patient = {
    .min_rnr_timer = CONN_ZERO, .rnr_retry = 7,
};

static unsigned int ready(const struct spoke *s)
{
    return s->guest->events[VMRI_EVENT_QUEUE_READY];
}

static bool has_completion(const struct spoke *s)
{
    return s->qp->scq->hdr->prod != s->qp->scq->cons;
}

TEST(srqwait_post_wakes_the_sender)
{
    struct hub h = hub_new(1, 0, NULL, &patient);
    struct spoke *s = &h.spoke[0];
    struct vmri_counters c;

    fill_pattern(s->mr.mem, 5000, 1);
    spoke_send(&h, s, 1, 5000);
    CHECK_EQ(h.srq->hdr->wait, 1);
    hub_recv(&h, 2, 0, 5000);
    CHECK_EQ(h.srq->hdr->wait, 0);
    /* No bytes move in the receiver's call. */
    cq_expect_none(h.cq);
    CHECK_EQ(env_stats.copied, 0);
    world_settle();
    CHECK_EQ(ready(s), 1);
    cq_expect(s->qp->scq, 1, 0);
    cq_expect(h.cq, 2, 0);
    CHECK_EQ(match_pattern(h.mr.mem, 5000, 1, 0), 5000);

    /* Nobody waits: nobody rings. */
    guest_counters(h.guest, &c);
    CHECK_EQ(c.doorbells, 1);
    hub_recv(&h, 3, 0, 5000);
    guest_counters(h.guest, &c);
    CHECK_EQ(c.doorbells, 1);
    world_pass(1000 * MS, 10 * MS);
    CHECK_EQ(ready(s), 1);
}

/* In the order in which they came, one a posted receive. */
TEST(srqwait_in_order)
{
    struct hub h = hub_new(5, 0, NULL, &patient);
    static const unsigned int order[] = { 3, 0, 4, 1, 2 };
    unsigned int i, k;

    for ( i = 0; i < 5; i++ )
        spoke_send(&h, &h.spoke[order[i]], i, 8);
    for ( i = 0; i < 5; i++ )
    {
        CHECK_EQ(h.srq->hdr->wait, 1);
        hub_recv(&h, 100 + i, 0, 8);
        world_settle();
        for ( k = 0; k < 5; k++ )
            CHECK_EQ(has_completion(&h.spoke[order[k]]), k <= i);
    }
    CHECK_EQ(h.srq->hdr->wait, 0);
    for ( i = 0; i < 5; i++ )
    {
        cq_expect(h.cq, 100 + i, 0);
        CHECK_EQ(ready(&h.spoke[i]), 1);
    }
}

/* Several receives and one ring: as many are woken, no more. */
TEST(srqwait_one_a_receive)
{
    struct hub h = hub_new(6, 0, NULL, &patient);
    struct vmri_sge sge = mr_sge(&h.mr, 0, 8);
    unsigned int i;

    /* Those that nobody waited for do not count. */
    for ( i = 0; i < 7; i++ )
    {
        hub_recv(&h, i, 0, 8);
        spoke_send(&h, &h.spoke[i % 6], i, 8);
    }
    for ( i = 0; i < 6; i++ )
        spoke_send(&h, &h.spoke[i], i, 8);
    for ( i = 0; i < 3; i++ )
        srq_post(h.srq, i, &sge, 1);
    /* Ringing twice for the same ones wakes nobody more. */
    for ( i = 0; i < 3; i++ )
        CHECK_EQ(guest_srq_schedule(h.guest, h.srq->handle), 0);
    world_settle();
    for ( i = 0; i < 6; i++ )
        CHECK_EQ(ready(&h.spoke[i]), i < 3);
    CHECK_EQ(h.srq->hdr->wait, 1);
    hub_recv(&h, 3, 0, 8);
    world_settle();
    CHECK_EQ(ready(&h.spoke[3]), 1);
    CHECK_EQ(ready(&h.spoke[4]), 0);
}

/* A wake for a receive that another took puts the sender in front again. */
TEST(srqwait_overtaken_goes_first)
{
    struct hub h = hub_new(4, 0, NULL, &patient);
    unsigned int i;

    for ( i = 0; i < 3; i++ )
        spoke_send(&h, &h.spoke[i], i, 8);
    hub_recv(&h, 10, 0, 8);
    /* Spoke 0 is woken, but its guest does not run yet; 3 comes along. */
    spoke_send(&h, &h.spoke[3], 3, 8);
    CHECK(has_completion(&h.spoke[3]));
    world_settle();
    CHECK_EQ(ready(&h.spoke[0]), 1);
    CHECK(!has_completion(&h.spoke[0]));
    CHECK_EQ(h.srq->hdr->wait, 1);

    hub_recv(&h, 11, 0, 8);
    world_settle();
    CHECK(has_completion(&h.spoke[0]));
    CHECK(!has_completion(&h.spoke[1]));
    hub_recv(&h, 12, 0, 8);
    world_settle();
    CHECK(has_completion(&h.spoke[1]));
    CHECK(!has_completion(&h.spoke[2]));
}

/* Those that are gone, in the many ways of that, are passed over. */
TEST(srqwait_the_dead_are_skipped)
{
    unsigned int how;

    for ( how = 0; how < 6; how++ )
    {
        static struct hub h;
        static struct guest_qp_opts in;
        struct spoke *s, *next;

        if ( !h.guest )
        {
            h = hub_new(0, 0, NULL, NULL);
            in.srq = h.srq;
            in.rcq = h.cq;
        }
        h.nr = 0;
        if ( h.spoke[0].guest )
        {
            struct spoke *again = h.spoke;
            unsigned int i;

            for ( i = 0; i < 2; i++ )
            {
                again[i].qp = guest_qp(again[i].guest, NULL);
                again[i].in = guest_qp(h.guest, &in);
                qp_connect(again[i].qp, again[i].in, &patient);
            }
        }
        else
        {
            hub_spoke(&h, NULL, &in, &patient);
            hub_spoke(&h, NULL, &in, &patient);
        }
        s = &h.spoke[0];
        next = &h.spoke[1];

        spoke_send(&h, s, 1, 8);
        spoke_send(&h, next, 2, 8);
        CHECK_EQ(h.srq->hdr->wait, 1);
        if ( how == 0 )
            CHECK_EQ(qp_destroy(s->qp), 0);
        else if ( how == 1 )
            CHECK_EQ(qp_destroy(s->in), 0);
        else if ( how == 2 )
            qp_set_state(s->qp, VMRI_QPS_RESET);
        else if ( how == 3 )
            qp_set_state(s->in, VMRI_QPS_RESET);
        else if ( how == 4 )
            qp_set_state(s->qp, VMRI_QPS_ERR);
        else
            qp_set_state(s->in, VMRI_QPS_ERR);

        hub_recv(&h, how, 0, 8);
        CHECK_EQ(h.srq->hdr->wait, 0);
        world_settle();
        cq_expect(next->qp->scq, 2, 0);
        cq_expect(h.cq, how, 0);
    }
}

/* One that fails by what it sends itself waits no more. */
TEST(srqwait_failure_ends_it)
{
    struct hub h = hub_new(1, 0, NULL, &patient);
    struct guest_wr wr = { .wr_id = 7, .opcode = 99 };

    spoke_send(&h, &h.spoke[0], 1, 8);
    CHECK_EQ(h.srq->hdr->wait, 1);
    qp_send(h.spoke[0].in, &wr);
    cq_expect(h.spoke[0].in->scq, 7, VMRI_WC_LOC_QP_OP_ERR);
    CHECK_EQ(h.srq->hdr->wait, 0);
}

/* Times and retries are those of a queue of one's own. */
TEST(srqwait_retries_end)
{
    const struct guest_conn conn = { .min_rnr_timer = 20, .rnr_retry = 2 };
    struct hub h = hub_new(2, 0, NULL, &conn);
    struct vmri_cqe cqe;

    spoke_send(&h, &h.spoke[0], 1, 8);
    world_pass(19 * MS, 1 * MS);
    cq_expect_none(h.spoke[0].qp->scq);
    CHECK_EQ(h.srq->hdr->wait, 1);
    world_pass(3 * MS, 1 * MS);
    cqe = cq_expect(h.spoke[0].qp->scq, 1, VMRI_WC_RNR_RETRY_EXC_ERR);
    CHECK_EQ(cqe.vendor_err, VMRI_VERR_NO_RECV);
    CHECK_EQ(h.srq->hdr->wait, 0);
    /* The receiving side is as before. */
    CHECK_EQ(qp_state(h.spoke[0].in), VMRI_QPS_RTS);
}

/* A timer brings a sender back before its turn: it may have what is there. */
TEST(srqwait_timer_finds_a_receive)
{
    const struct guest_conn quick = { .min_rnr_timer = 14, .rnr_retry = 7 };
    struct hub h = hub_new(1, 0, NULL, &quick);
    struct vmri_sge sge = mr_sge(&h.mr, 0, 8);

    spoke_send(&h, &h.spoke[0], 1, 8);
    /* Posted by one who has not rung yet. */
    srq_post(h.srq, 5, &sge, 1);
    world_pass(2 * MS, MS);
    cq_expect(h.spoke[0].qp->scq, 1, 0);
    CHECK_EQ(h.srq->hdr->wait, 0);
    CHECK_EQ(guest_srq_schedule(h.guest, h.srq->handle), 0);
}

struct late {
    struct hub *h;
    bool ring;
};

static void post_late(void *data)
{
    struct late *late = data;

    if ( late->ring )
        hub_recv(late->h, 9, 0, 8);
    else
    {
        struct vmri_sge sge = mr_sge(&late->h->mr, 0, 8);

        srq_post(late->h->srq, 9, &sge, 1);
        late->ring = env_load(&late->h->srq->hdr->wait);
    }
}

/*
 * Posted between the first look, which finds none, and `wait` being set: the
 * second look finds it.  The locks of the first are the QP's, then the SRQ's;
 * that of who waits comes after.
 */
TEST(srqwait_second_look)
{
    struct hub h = hub_new(1, 0, NULL, &patient);
    struct late late = { .h = &h };

    env_test_on_lock(LEVEL_SRQ, 2, post_late, &late);
    spoke_send(&h, &h.spoke[0], 1, 8);
    CHECK(!late.ring);
    cq_expect(h.spoke[0].qp->scq, 1, 0);
    cq_expect(h.cq, 9, 0);
    CHECK_EQ(h.srq->hdr->wait, 0);
    world_settle();
    CHECK_EQ(ready(&h.spoke[0]), 0);
}

/* More than one call wakes: it says so. */
TEST(srqwait_woken_in_portions)
{
    enum { NR = 100 };
    static struct guest_qp *out[NR];
    struct hub h = hub_new(0, 0, NULL, NULL);
    struct guest *g = guest_new(2);
    struct guest_cq *cq = guest_cq(g, 8);
    const struct guest_qp_opts opts = { .scq = cq, .sq_log2 = 2 };
    const struct guest_qp_opts in = { .srq = h.srq, .scq = h.cq };
    struct guest_wr wr = {
        .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
    };
    struct guest_srq *large;
    unsigned int i;

    for ( i = 0; i < NR; i++ )
    {
        out[i] = guest_qp(g, &opts);
        qp_connect(out[i], guest_qp(h.guest, &in), &patient);
        wr.wr_id = i;
        qp_send(out[i], &wr);
    }
    CHECK_EQ(srq_resize(h.srq, 7), 0);
    large = h.srq;
    CHECK_EQ(large->hdr->wait, 1);
    for ( i = 0; i < NR; i++ )
        srq_post(large, i, NULL, 0);
    CHECK_EQ(guest_srq_schedule(h.guest, large->handle), VMRI_SCHEDULE_MORE);
    CHECK_EQ(large->hdr->wait, 1);
    CHECK_EQ(guest_srq_schedule(h.guest, large->handle), 0);
    CHECK_EQ(large->hdr->wait, 0);
    world_settle();
    for ( i = 0; i < NR; i++ )
        cq_expect(cq, i, 0);
}

TEST(srqwait_unreliable_does_not_wait)
{
    struct hub h = hub_new(1, VMRI_QPT_UC, NULL, &patient);
    struct vmri_counters c;

    spoke_send(&h, &h.spoke[0], 1, 8);
    cq_expect(h.spoke[0].qp->scq, 1, 0);
    CHECK_EQ(h.srq->hdr->wait, 0);
    guest_counters(h.guest, &c);
    CHECK_EQ(c.ud_drops, 1);
}
