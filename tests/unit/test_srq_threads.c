/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared receive queues with many CPUs at once: senders, who posts, who
 * resizes, and queue pairs and queues that go.
 */
#include "hub.h"

#include <pthread.h>
#include <sched.h>

#define SENDERS     4
#define MESSAGES    250U
#define SLOT        16384U
#define SLOTS       8U
#define MAX_BYTES   12000U

static uint32_t stop;           /* atomic */
static uint32_t running;        /* atomic: senders at work */

static void *run_clock(void *unused)
{
    (void)unused;
    while ( !env_load(&stop) )
    {
        env_test_advance(100000);
        sched_yield();
    }
    return NULL;
}

struct sender {
    const struct hub *h;
    struct spoke *s;
    uint32_t srqn;              /* XRC */
    uint32_t number;
};

static uint32_t bytes_of(uint32_t message)
{
    return message * 2654435761U % MAX_BYTES;
}

/* One at a time, each a pattern of its own, told by the immediate. */
static void *run_sender(void *data)
{
    struct sender *me = data;
    struct vmri_cqe cqe;
    uint32_t n;

    for ( n = 0; n < MESSAGES; n++ )
    {
        uint32_t message = me->number * MESSAGES + n;
        struct guest_wr wr = spoke_wr(me->h, me->s, VMRI_WR_SEND_WITH_IMM, n,
                                      bytes_of(message));

        wr.imm = message;
        wr.srqn = me->srqn;
        fill_pattern(me->s->mr.mem, bytes_of(message), message);
        qp_send(me->s->qp, &wr);
        while ( !cq_poll(me->s->qp->scq, &cqe) )
        {
            guest_serve(me->s->guest);
            sched_yield();
        }
        CHECK_EQ(cqe.status, 0);
        CHECK_EQ(cqe.wr_id, n);
    }
    env_fetch_sub(&running, 1);
    return NULL;
}

/* What a receiver keeps: how many messages of each sender, in order. */
struct inbox {
    struct guest_srq *srq;
    struct guest_cq *cq;
    struct guest_mr *mr;
    uint64_t base;              /* of its slots in the MR */
    uint32_t next[SENDERS];
    uint32_t got;
};

static void post_slot(struct inbox *in, uint64_t slot)
{
    struct vmri_sge sge = mr_sge(in->mr, in->base + slot * SLOT, MAX_BYTES);

    srq_recv(in->srq, slot, &sge, 1);
}

static void take(struct inbox *in)
{
    struct vmri_cqe cqe;

    while ( cq_poll(in->cq, &cqe) )
    {
        uint32_t sender = cqe.imm / MESSAGES, bytes = bytes_of(cqe.imm);

        CHECK_EQ(cqe.status, 0);
        CHECK(sender < SENDERS && cqe.wr_id < SLOTS);
        CHECK(cqe.imm % MESSAGES >= in->next[sender]);
        in->next[sender] = cqe.imm % MESSAGES + 1;
        CHECK_EQ(cqe.byte_len, bytes);
        CHECK_EQ(match_pattern(in->mr->mem + in->base + cqe.wr_id * SLOT,
                               bytes, cqe.imm, 0), bytes);
        in->got++;
        post_slot(in, cqe.wr_id);
    }
}

/* The receiver resizes while it receives: between two posts of its own. */
static void receive_all(struct hub *h, struct inbox *in, unsigned int boxes)
{
    static const uint8_t sizes[] = { 3, 6, 4, 8, 5 };
    unsigned int round, i;

    for ( round = 0; env_load(&running); round++ )
    {
        for ( i = 0; i < boxes; i++ )
            take(&in[i]);
        if ( round % 8 == 0 )
            CHECK_EQ(srq_resize(in[round / 8 % boxes].srq,
                                sizes[round / 8 % ARRAY_SIZE(sizes)]), 0);
        guest_serve(h->guest);
        sched_yield();
    }
    for ( i = 0; i < boxes; i++ )
        take(&in[i]);
    env_store(&stop, 1);
}

static void run_all(struct hub *h, struct inbox *in, unsigned int boxes,
                    uint32_t xrc)
{
    pthread_t thread[SENDERS], clock;
    struct sender sender[SENDERS];
    unsigned int i, slot;
    uint32_t got = 0;

    env_store(&running, SENDERS);
    for ( i = 0; i < boxes; i++ )
        for ( slot = 0; slot < SLOTS; slot++ )
            post_slot(&in[i], slot);
    pthread_create(&clock, NULL, run_clock, NULL);
    for ( i = 0; i < SENDERS; i++ )
    {
        sender[i] = (struct sender){
            .h = h, .s = &h->spoke[i], .number = i,
            .srqn = xrc ? in[i % boxes].srq->handle : 0,
        };
        pthread_create(&thread[i], NULL, run_sender, &sender[i]);
    }
    receive_all(h, in, boxes);
    for ( i = 0; i < SENDERS; i++ )
        pthread_join(thread[i], NULL);
    pthread_join(clock, NULL);
    for ( i = 0; i < boxes; i++ )
        got += in[i].got;
    CHECK_EQ(got, SENDERS * MESSAGES);
}

/* Quick timers, so that senders come back before their turn, too. */
static const struct guest_conn quick = { .min_rnr_timer = 10, .rnr_retry = 7 };

THREAD_TEST(srq_threads_many_senders)
{
    struct hub h = hub_new(SENDERS, 0, NULL, &quick);
    struct inbox in = { .srq = h.srq, .cq = h.cq, .mr = &h.mr };

    run_all(&h, &in, 1, 0);
}

/* Each time that the limit is set it is told of once, whoever takes what. */
THREAD_TEST(srq_threads_limit)
{
    struct hub h = hub_new(SENDERS, 0, NULL, &quick);
    struct inbox in = { .srq = h.srq, .cq = h.cq, .mr = &h.mr };
    unsigned int *events = &h.guest->events[VMRI_EVENT_SRQ_LIMIT];
    pthread_t thread[SENDERS], clock;
    struct sender sender[SENDERS];
    struct vmri_srq_query q;
    uint32_t armed = 0, i;

    env_store(&running, SENDERS);
    pthread_create(&clock, NULL, run_clock, NULL);
    for ( i = 0; i < SENDERS; i++ )
    {
        sender[i] = (struct sender){
            .h = &h, .s = &h.spoke[i], .number = i,
        };
        pthread_create(&thread[i], NULL, run_sender, &sender[i]);
    }
    for ( i = 0; i < SLOTS; i++ )
        post_slot(&in, i);
    while ( env_load(&running) )
    {
        take(&in);
        guest_serve(h.guest);
        CHECK(*events <= armed);
        if ( *events == armed && srq_set_limit(h.srq, 5) == 0 )
            armed++;
        sched_yield();
    }
    env_store(&stop, 1);
    for ( i = 0; i < SENDERS; i++ )
        pthread_join(thread[i], NULL);
    pthread_join(clock, NULL);
    guest_serve(h.guest);
    CHECK_EQ(srq_query(h.srq, &q), 0);
    CHECK(armed > 1);
    CHECK_EQ(*events, armed - (q.limit != 0));
}

/* No timer helps out: a lost wake would hang. */
THREAD_TEST(srq_threads_no_wake_is_lost)
{
    const struct guest_conn patient = {
        .min_rnr_timer = CONN_ZERO, .rnr_retry = 7,
    };
    struct hub h = hub_new(SENDERS, 0, NULL, &patient);
    pthread_t thread[SENDERS];
    struct sender sender[SENDERS];
    uint32_t got = 0, i;
    struct vmri_cqe cqe;

    env_store(&running, SENDERS);
    for ( i = 0; i < SENDERS; i++ )
    {
        sender[i] = (struct sender){
            .h = &h, .s = &h.spoke[i], .number = i,
        };
        pthread_create(&thread[i], NULL, run_sender, &sender[i]);
    }
    /* One at a time, and time stands still. */
    while ( got < SENDERS * MESSAGES )
    {
        hub_recv(&h, got, 0, MAX_BYTES);
        while ( !cq_poll(h.cq, &cqe) )
            sched_yield();
        CHECK_EQ(cqe.status, 0);
        got++;
    }
    for ( i = 0; i < SENDERS; i++ )
        pthread_join(thread[i], NULL);
}

/* Two targets and two queues, each used by both. */
THREAD_TEST(srq_threads_xrc)
{
    struct hub h = { .guest = guest_new(1) };
    const uint32_t xrcd = guest_xrcd(h.guest);
    const struct guest_qp_opts out = { .type = VMRI_QPT_XRC_INI };
    const struct guest_qp_opts target = {
        .type = VMRI_QPT_XRC_TGT, .xrcd = xrcd,
    };
    const struct guest_srq_opts opts = { .xrcd = xrcd };
    struct inbox in[2];
    unsigned int i;

    h.mr = guest_mr(h.guest, HUB_BYTES, 0, LAYOUT_SCATTERED, 7);
    for ( i = 0; i < 2; i++ )
    {
        in[i] = (struct inbox){
            .srq = guest_srq(h.guest, &opts), .mr = &h.mr,
            .base = i * SLOTS * SLOT,
        };
        in[i].cq = in[i].srq->cq;
    }
    while ( h.nr < SENDERS )
        hub_spoke(&h, &out, &target, &quick);
    run_all(&h, in, 2, true);
}

/* ---- what goes under way ---- */

#define ROUNDS  150U

static const struct guest_conn impatient = {
    .timeout = 6, .retry_cnt = 1, .rnr_retry = 1, .min_rnr_timer = 1,
};

struct chaos {
    struct hub h;
    bool xrc;
    uint32_t xrcd;
    uint32_t srqn;              /* atomic */
    struct guest_qp peer[SENDERS];      /* the receiving ones, for senders */
    struct spoke spoke[SENDERS];        /* with those */
};

struct chaotic {
    struct chaos *c;
    unsigned int i;
};

static void *run_chaotic(void *data)
{
    struct chaotic *me = data;
    struct spoke *s = &me->c->spoke[me->i];
    unsigned int n;

    for ( n = 0; n < ROUNDS; n++ )
    {
        struct guest_wr wr = spoke_wr(&me->c->h, s, VMRI_WR_SEND, n,
                                      n * 7919 % 150000);
        struct vmri_cqe cqe;

        wr.srqn = env_load(&me->c->srqn);
        qp_send(s->qp, &wr);
        while ( !cq_poll(s->qp->scq, &cqe) )
        {
            guest_serve(s->guest);
            sched_yield();
        }
        CHECK_EQ(cqe.wr_id, n);
        if ( cqe.status )
            qp_connect_again(s->qp, s->in, &impatient);
    }
    env_fetch_sub(&running, 1);
    return NULL;
}

/* A target of the same number, or one of an SRQ. */
static void new_qp(struct chaos *c, unsigned int i)
{
    struct guest_qp *in = c->h.spoke[i].in;

    CHECK_EQ(qp_destroy(in), 0);
    CHECK_EQ(try_qp(in), 0);
    qp_connect_again(in, c->h.spoke[i].qp, &impatient);
}

static void new_srq(struct chaos *c)
{
    struct guest_srq *srq = c->h.srq;

    CHECK_EQ(srq_destroy(srq), 0);
    srq->arg.reserved = 0;
    CHECK_EQ(try_srq(srq), 0);
    srq->prod = srq->hdr->prod;
    env_store(&c->srqn, srq->handle);
}

static void post_some(struct chaos *c)
{
    struct guest_srq *srq = c->h.srq;

    while ( srq->prod - env_load(&srq->hdr->cons) < 8 )
        hub_recv(&c->h, 1, 0, 200000);
}

static void disturb(struct chaos *c, unsigned int what, unsigned int i)
{
    struct guest_qp *in = c->h.spoke[i].in;

    switch ( what )
    {
    case 0:
        new_qp(c, i);
        break;
    case 1:
        qp_set_state(in, VMRI_QPS_ERR);
        qp_connect_again(in, c->h.spoke[i].qp, &impatient);
        break;
    case 2:
        if ( c->xrc )
            new_srq(c);
        break;
    case 3:
        CHECK_EQ(srq_resize(c->h.srq, (uint8_t)(4 + i)), 0);
        break;
    default:
        post_some(c);
        if ( qp_state(in) == VMRI_QPS_ERR )
            qp_connect_again(in, c->h.spoke[i].qp, &impatient);
    }
}

static void run_chaos(struct chaos *c)
{
    pthread_t thread[SENDERS], clock;
    struct chaotic sender[SENDERS];
    unsigned int seed = 1, i;
    struct vmri_cqe cqe;

    c->srqn = c->h.srq->handle;
    env_store(&running, SENDERS);
    pthread_create(&clock, NULL, run_clock, NULL);
    for ( i = 0; i < SENDERS; i++ )
    {
        c->h.spoke[i].in->arg.qpn = c->h.spoke[i].in->qpn;
        c->peer[i] = *c->h.spoke[i].in;
        c->spoke[i] = c->h.spoke[i];
        c->spoke[i].in = &c->peer[i];
        sender[i] = (struct chaotic){ .c = c, .i = i };
        pthread_create(&thread[i], NULL, run_chaotic, &sender[i]);
    }
    while ( env_load(&running) )
    {
        disturb(c, rand_r(&seed) % 12, rand_r(&seed) % SENDERS);
        while ( cq_poll(c->h.cq, &cqe) )
            CHECK(cqe.status != VMRI_WC_LOC_QP_OP_ERR);
        guest_serve(c->h.guest);
        sched_yield();
    }
    env_store(&stop, 1);
    for ( i = 0; i < SENDERS; i++ )
        pthread_join(thread[i], NULL);
    pthread_join(clock, NULL);
}

THREAD_TEST(srq_threads_queue_pairs_come_and_go)
{
    struct chaos c = { .h = hub_new(SENDERS, 0, NULL, &impatient) };

    run_chaos(&c);
}

THREAD_TEST(srq_threads_xrc_queues_come_and_go)
{
    struct chaos c = { .xrc = true, .h = { .guest = guest_new(1) } };
    const struct guest_qp_opts out = { .type = VMRI_QPT_XRC_INI };
    struct guest_qp_opts in = { .type = VMRI_QPT_XRC_TGT };

    in.xrcd = guest_xrcd(c.h.guest);
    c.h.cq = guest_cq(c.h.guest, 8);
    c.h.srq = guest_srq(c.h.guest, &(struct guest_srq_opts){
        .xrcd = in.xrcd, .cq = c.h.cq,
    });
    c.h.mr = guest_mr(c.h.guest, HUB_BYTES, 0, LAYOUT_SCATTERED, 7);
    while ( c.h.nr < SENDERS )
        hub_spoke(&c.h, &out, &in, &impatient);
    run_chaos(&c);
}
