/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Many CPUs at once: traffic that must arrive whole and in order, and traffic
 * while objects come and go.  Also what the thread sanitizer looks at.
 */
#include "pair.h"
#include "internal.h"

#include <sched.h>

#undef memcpy
#undef memset

#define MESSAGES    400U
#define MAX_BYTES   9000U
#define DEPTH       8U
#define SLOT        16384U      /* of one message in an MR */

static uint32_t stop;           /* atomic */

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

/* ---- traffic ---- */

struct side {
    struct guest *guest;
    struct guest_qp *qp;
    struct guest_mr out, in;
    uint32_t seed;
    uint32_t sent, received, completed;
};

static uint32_t bytes_of(uint32_t seed, uint32_t n)
{
    return (n * 2654435761U + seed) % MAX_BYTES;
}

static void post_receive(struct side *s, uint32_t n)
{
    struct vmri_sge sge = mr_sge(&s->in, n % DEPTH * SLOT, MAX_BYTES);

    qp_recv(s->qp, n, &sge, 1);
}

static void post_message(struct side *s)
{
    uint32_t n = s->sent++, bytes = bytes_of(s->seed, n);
    uint64_t at = n % DEPTH * SLOT;
    struct guest_wr wr = {
        .wr_id = n, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&s->out, at, bytes) },
    };

    fill_pattern(s->out.mem + at, bytes, s->seed + n);
    qp_send(s->qp, &wr);
}

static void take_receive(struct side *s, const struct vmri_cqe *cqe,
                         uint32_t peer_seed)
{
    uint32_t n = s->received++;

    CHECK_EQ(cqe->status, 0);
    CHECK_EQ(cqe->wr_id, n);
    CHECK_EQ(cqe->byte_len, bytes_of(peer_seed, n));
    CHECK_EQ(match_pattern(s->in.mem + n % DEPTH * SLOT, cqe->byte_len,
                           peer_seed + n, 0), cqe->byte_len);
    post_receive(s, n + DEPTH);
}

static void *run_side(void *data)
{
    struct side *s = data;
    uint32_t peer_seed = s->seed ^ 1, i;
    struct vmri_cqe cqe;

    for ( i = 0; i < DEPTH; i++ )
        post_receive(s, i);
    while ( s->completed < MESSAGES || s->received < MESSAGES )
    {
        if ( s->sent < MESSAGES && s->sent - s->completed < DEPTH )
            post_message(s);
        guest_serve(s->guest);
        while ( cq_poll(s->qp->scq, &cqe) )
        {
            CHECK_EQ(cqe.status, 0);
            CHECK_EQ(cqe.wr_id, s->completed++);
        }
        while ( cq_poll(s->qp->rcq, &cqe) )
            take_receive(s, &cqe, peer_seed);
        sched_yield();
    }
    return NULL;
}

/* Another vCPU of the same guest rings the same queue for nothing. */
static void *run_ringer(void *data)
{
    struct side *s = data;

    while ( !env_load(&stop) )
    {
        CHECK(guest_schedule(s->guest, s->qp->qpn) >= 0);
        sched_yield();
    }
    return NULL;
}

static struct side side_new(struct guest *g, uint32_t seed)
{
    return (struct side){
        .guest = g, .qp = guest_qp(g, NULL), .seed = seed,
        .out = guest_mr(g, DEPTH * SLOT, 0, LAYOUT_SCATTERED, 1),
        .in = guest_mr(g, DEPTH * SLOT, 0, LAYOUT_SCATTERED, 1),
    };
}

THREAD_TEST(threads_traffic_both_ways)
{
    struct side a = side_new(guest_new(1), 100), b = side_new(guest_new(2), 101);
    pthread_t clock, side[2], ringer[2];

    qp_connect(a.qp, b.qp, NULL);
    pthread_create(&clock, NULL, run_clock, NULL);
    pthread_create(&ringer[0], NULL, run_ringer, &a);
    pthread_create(&ringer[1], NULL, run_ringer, &b);
    pthread_create(&side[0], NULL, run_side, &a);
    pthread_create(&side[1], NULL, run_side, &b);
    pthread_join(side[0], NULL);
    pthread_join(side[1], NULL);
    env_store(&stop, 1);
    pthread_join(ringer[0], NULL);
    pthread_join(ringer[1], NULL);
    pthread_join(clock, NULL);
}

/* ---- posts in the error state: each is flushed, whoever runs the queue ---- */

THREAD_TEST(threads_flush_loses_nothing)
{
    struct guest *g = guest_new(1);
    struct side s = { .guest = g, .qp = guest_qp(g, NULL) };
    struct guest_wr wr = { .opcode = VMRI_WR_SEND };
    struct vmri_cqe cqe;
    pthread_t ringer;
    uint32_t n;

    qp_set_state(s.qp, VMRI_QPS_ERR);
    pthread_create(&ringer, NULL, run_ringer, &s);
    for ( n = 0; n < 3000; n++ )
    {
        wr.wr_id = n;
        qp_send(s.qp, &wr);
        while ( !cq_poll(s.qp->scq, &cqe) )
            sched_yield();
        CHECK_EQ(cqe.wr_id, n);
        CHECK_EQ(cqe.status, VMRI_WC_WR_FLUSH_ERR);
    }
    env_store(&stop, 1);
    pthread_join(ringer, NULL);
}

/* ---- chaos ---- */

#define ROUNDS  400

struct chaos {
    struct pair p;              /* the receiver's */
    struct pair sender;         /* a copy for the sender, with a copy of qb */
    struct guest_qp target;
    uint32_t rkey;              /* atomic: b's current one */
};

static const struct guest_conn impatient = {
    .timeout = 6, .retry_cnt = 1, .rnr_retry = 1, .min_rnr_timer = 1,
};

/* The sender: any operation with whatever key; errors are part of it. */
static void *run_sender(void *data)
{
    static const uint8_t ops[] = {
        VMRI_WR_SEND, VMRI_WR_RDMA_WRITE, VMRI_WR_RDMA_WRITE_WITH_IMM,
        VMRI_WR_RDMA_READ,
    };
    struct chaos *c = data;
    struct pair *p = &c->sender;
    unsigned int seed = 1, round, good = 0;

    for ( round = 0; round < ROUNDS; round++ )
    {
        uint32_t bytes = (uint32_t)rand_r(&seed) % 200000;
        struct guest_wr wr = pair_wr(p, ops[round % 4], round, 0, 0, bytes);
        struct vmri_cqe cqe;

        wr.rkey = env_load(&c->rkey);
        qp_send(p->qa, &wr);
        while ( !cq_poll(p->qa->scq, &cqe) )
        {
            guest_serve(p->a);
            sched_yield();
        }
        CHECK_EQ(cqe.wr_id, round);
        good += cqe.status == 0;
        if ( cqe.status )
            qp_connect_again(p->qa, p->qb, &impatient);
    }
    env_store(&stop, 1);
    CHECK(good);
    return NULL;
}

static void new_mr(struct chaos *c)
{
    struct guest_mr *mr = &c->p.mb;

    CHECK_EQ(mr_deregister(mr), 0);
    CHECK_EQ(try_mr(c->p.b, mr, c->p.b->pd, 7), 0);
    env_store(&c->rkey, mr->key);
}

static void new_qp(struct chaos *c)
{
    struct guest_qp *qb = c->p.qb;

    CHECK_EQ(qp_destroy(qb), 0);
    CHECK_EQ(try_qp(qb), 0);        /* the same number */
    qb->prod_r = qb->hdr->rq.prod;
    qp_connect_again(qb, c->p.qa, &impatient);
}

static void *run_receiver(void *data)
{
    struct chaos *c = data;
    struct pair *p = &c->p;
    unsigned int seed = 2;
    struct vmri_cqe cqe;

    while ( !env_load(&stop) )
    {
        switch ( rand_r(&seed) % 16 )
        {
        case 0:
            new_mr(c);
            break;
        case 1:
            new_qp(c);
            break;
        case 2:
            qp_set_state(p->qb, VMRI_QPS_ERR);
            qp_connect_again(p->qb, p->qa, &impatient);
            break;
        default:
            if ( p->qb->prod_r - env_load(&p->qb->hdr->rq.cons) < 16 )
                pair_recv(p, 1, 0, 300000);
            if ( qp_state(p->qb) == VMRI_QPS_ERR )
                qp_connect_again(p->qb, p->qa, &impatient);
        }
        while ( cq_poll(p->qb->rcq, &cqe) )
            ;
        while ( cq_poll(p->qb->scq, &cqe) )
            ;
        guest_serve(p->b);
        sched_yield();
    }
    return NULL;
}

static void *run_dom0(void *unused)
{
    (void)unused;
    while ( !env_load(&stop) )
    {
        struct vmri_ctl_info info = { .domid = 0 };
        uint32_t dev = VMRI_DEV_ANY;
        uint16_t lid = 0;

        while ( dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)) == 0 )
            info.dev_id++;
        CHECK_EQ(dom0_attach(3, GUEST_FABRIC, &dev, &lid), 0);
        vmri_dump();
        CHECK_EQ(dom0_detach(3, dev), 0);
        sched_yield();
    }
    return NULL;
}

THREAD_TEST(threads_objects_come_and_go)
{
    void *(*const runs[])(void *) = {
        run_sender, run_receiver, run_clock, run_dom0,
    };
    pthread_t thread[ARRAY_SIZE(runs)];
    struct chaos c = { .p = pair_apart(NULL) };
    unsigned int i;

    env_test_domain(3);
    c.p.qb->arg.qpn = c.p.qb->qpn;
    c.rkey = c.p.mb.key;
    qp_connect(c.p.qa, c.p.qb, &impatient);
    c.target = *c.p.qb;
    c.sender = c.p;
    c.sender.qb = &c.target;
    for ( i = 0; i < ARRAY_SIZE(runs); i++ )
        pthread_create(&thread[i], NULL, runs[i], &c);
    for ( i = 0; i < ARRAY_SIZE(runs); i++ )
        pthread_join(thread[i], NULL);
}

/* ---- a device that is taken away under traffic, again and again ---- */

struct moving {
    struct guest *a, *b;
    struct guest other;         /* b, for its other vCPU */
    struct guest_qp *qa, *target;
    struct guest_mr ma;
    uint32_t qpn;               /* atomic: b's, while there is one */
};

static void *run_persistent(void *data)
{
    struct moving *m = data;
    struct guest_wr wr = {
        .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED, .num_sge = 1,
        .sge = { mr_sge(&m->ma, 0, 150000) },
    };
    struct vmri_cqe cqe;

    while ( !env_load(&stop) )
    {
        bool done;

        qp_send(m->qa, &wr);
        while ( !(done = cq_poll(m->qa->scq, &cqe)) && !env_load(&stop) )
        {
            guest_serve(m->a);
            sched_yield();
        }
        if ( done && cqe.status )
            qp_connect_again(m->qa, m->target, &impatient);
    }
    return NULL;
}

/* Another vCPU of the guest whose device comes and goes. */
static void *run_stubborn(void *data)
{
    struct moving *m = data;
    struct guest *b = &m->other;
    struct guest_mr mr = mr_pages(b, 200000, 0, LAYOUT_SCATTERED);

    while ( !env_load(&stop) )
    {
        struct vmri_object pd = { .handle = 0 };
        long rc = guest_schedule(b, env_load(&m->qpn));

        CHECK(rc >= 0 || rc == -ENOENT || rc == -ENODEV);
        rc = guest_call(b, VMRI_OP_pd_create, &pd, sizeof(pd));
        CHECK(rc == 0 || rc == -ENODEV || rc == -ENOSPC);
        rc = rc ? rc : try_mr(b, &mr, pd.handle, 1);
        CHECK(rc == 0 || rc == -ENODEV || rc == -ENOSPC || rc == -ENOENT);
        sched_yield();
    }
    return NULL;
}

/* The guest with a new device: a QP and receives for the sender. */
static void settle_in(struct moving *m)
{
    static struct guest_qp *qb;
    static struct guest_cq *cq;
    struct guest_mr mb;
    struct vmri_sge sge;
    unsigned int i;

    guest_start(m->b);
    cq = guest_cq(m->b, 6);
    qb = guest_qp(m->b, &(struct guest_qp_opts){ .scq = cq });
    CHECK_EQ(qb->qpn, m->target->qpn);
    env_store(&m->qpn, qb->qpn);
    mb = guest_mr(m->b, 150000, 0, LAYOUT_SCATTERED, 1);
    sge = mr_sge(&mb, 0, 150000);
    for ( i = 0; i < 16; i++ )
        qp_post_recv(qb, i, &sge, 1);
    qp_connect_again(qb, m->qa, &impatient);
    for ( i = 0; i < 200; i++ )
        sched_yield();
}

static void *run_mover(void *data)
{
    struct moving *m = data;
    uint16_t lid = m->b->lid;
    unsigned int round;

    for ( round = 0; round < 40; round++ )
    {
        settle_in(m);
        env_test_preempt(round % 3);
        CHECK_EQ(dom0_detach(2, 0), 0);
        env_test_preempt(0);
        CHECK_EQ(dom0_attach(2, GUEST_FABRIC, &m->b->dev, &lid), 0);
    }
    env_store(&stop, 1);
    return NULL;
}

THREAD_TEST(threads_device_comes_and_goes)
{
    void *(*const runs[])(void *) = {
        run_persistent, run_stubborn, run_mover, run_clock,
    };
    pthread_t thread[ARRAY_SIZE(runs)];
    struct guest_qp target = { .qpn = 2 };
    struct moving m = { .a = guest_new(1), .b = guest_bare(2) };
    unsigned int i;

    m.qa = guest_qp(m.a, NULL);
    m.ma = guest_mr(m.a, 150000, 0, LAYOUT_SCATTERED, 1);
    m.b->lid = 77;
    CHECK_EQ(dom0_attach(2, GUEST_FABRIC, &m.b->dev, &m.b->lid), 0);
    target.guest = &(struct guest){ .lid = 77 };
    m.other = *m.b;
    m.target = &target;
    qp_connect_again(m.qa, &target, &impatient);
    for ( i = 0; i < ARRAY_SIZE(runs); i++ )
        pthread_create(&thread[i], NULL, runs[i], &m);
    for ( i = 0; i < ARRAY_SIZE(runs); i++ )
        pthread_join(thread[i], NULL);
}

/* ---- many senders of datagrams to one queue ---- */

#define SENDERS     3
#define DATAGRAMS   200U
#define UD_BYTES    1000U

struct crowd {
    struct guest_qp *qp, *to;
    struct guest_mr mr;
    unsigned int number;
};

static const struct guest_qp_opts ud_opts = { .type = VMRI_QPT_UD };

static void *run_ud_sender(void *data)
{
    struct crowd *c = data;
    struct vmri_cqe cqe;
    uint32_t n;

    for ( n = 0; n < DATAGRAMS; n++ )
    {
        struct guest_wr wr = {
            .wr_id = n, .opcode = VMRI_WR_SEND_WITH_IMM, .to = c->to,
            .flags = VMRI_SEND_SIGNALED, .num_sge = 1,
            .sge = { mr_sge(&c->mr, 0, UD_BYTES) },
            .imm = c->number * DATAGRAMS + n,
        };

        fill_pattern(c->mr.mem, UD_BYTES, wr.imm);
        qp_send(c->qp, &wr);
        while ( !cq_poll(c->qp->scq, &cqe) )
            sched_yield();
        CHECK_EQ(cqe.status, 0);
        CHECK_EQ(cqe.wr_id, n);
    }
    return NULL;
}

/* Each that arrives is whole; the rest was dropped and counted. */
static uint32_t take_datagrams(struct guest_qp *qp, struct guest_mr *mr)
{
    uint32_t got = 0;
    struct vmri_cqe cqe;

    while ( cq_poll(qp->rcq, &cqe) )
    {
        uint64_t at = cqe.wr_id * 2048;
        struct vmri_sge sge = mr_sge(mr, at, 40 + UD_BYTES);

        CHECK_EQ(cqe.status, 0);
        CHECK_EQ(match_pattern(mr->mem + at + 40, UD_BYTES, cqe.imm, 0),
                 UD_BYTES);
        qp_recv(qp, cqe.wr_id, &sge, 1);
        got++;
    }
    return got;
}

THREAD_TEST(threads_datagrams_of_many_senders)
{
    struct guest *g = guest_new(1);
    struct guest_qp *qp = guest_qp(g, &ud_opts);
    struct guest_mr mr = guest_mr(g, 16 * 2048, 0, LAYOUT_SCATTERED, 1);
    struct crowd crowd[SENDERS];
    pthread_t thread[SENDERS];
    struct vmri_counters counters;
    uint32_t i, got = 0;

    qp_connect(qp, qp, NULL);
    for ( i = 0; i < 16; i++ )
    {
        struct vmri_sge sge = mr_sge(&mr, i * 2048, 40 + UD_BYTES);

        qp_recv(qp, i, &sge, 1);
    }
    for ( i = 0; i < SENDERS; i++ )
    {
        struct guest *from = guest_new(2 + i);

        crowd[i] = (struct crowd){
            .qp = guest_qp(from, &ud_opts), .to = qp,
            .mr = guest_mr(from, UD_BYTES, 0, LAYOUT_RUN, 0), .number = i,
        };
        qp_connect(crowd[i].qp, crowd[i].qp, NULL);
    }
    for ( i = 0; i < SENDERS; i++ )
        pthread_create(&thread[i], NULL, run_ud_sender, &crowd[i]);
    do {
        got += take_datagrams(qp, &mr);
        guest_counters(g, &counters);
        sched_yield();
    } while ( got + counters.ud_drops < SENDERS * DATAGRAMS );
    for ( i = 0; i < SENDERS; i++ )
        pthread_join(thread[i], NULL);
    CHECK(got);
    CHECK_EQ(got + counters.ud_drops, SENDERS * DATAGRAMS);
    CHECK_EQ(counters.rx_bytes, got * UD_BYTES);
}
