/* SPDX-License-Identifier: GPL-2.0-only */
/* rate.c: how much leaves a device in what time, and whose it is. */
#include "group.h"
#include "internal.h"

#undef memcpy
#undef memset

#define MS          1000000ULL
#define SECOND      (1000 * MS)
#define MB          1000000ULL
#define MLID        0xc001
#define ANY_BURST   0

static const struct guest_qp_opts ud = { .type = VMRI_QPT_UD };

static long rate_call(struct guest *g, uint32_t which, uint32_t flags,
                      uint64_t rate, uint64_t burst, struct vmri_ctl_rate *arg)
{
    *arg = (struct vmri_ctl_rate){
        .domid = env_domid(g->domain), .dev_id = g->dev, .flags = flags,
        .which = which, .rate = rate, .burst = burst,
    };
    return dom0_call(VMRI_OP_ctl_rate, arg, sizeof(*arg));
}

/* The burst that there is then. */
static uint64_t rate_set(struct guest *g, uint32_t which, uint64_t rate,
                         uint64_t burst)
{
    struct vmri_ctl_rate arg;

    CHECK_EQ(rate_call(g, which, VMRI_RATE_SET, rate, burst, &arg), 0);
    CHECK_EQ(arg.rate, rate);
    return arg.burst;
}

/* By anybody, from frame to frame. */
static uint64_t sent(void)
{
    return env_load(&env_stats.copied);
}

/* Of requests that completed. */
static uint64_t counted(struct guest *g)
{
    struct vmri_counters c;

    guest_counters(g, &c);
    return c.tx_bytes + c.rx_bytes;
}

/* Something that a guest does as often as it may. */
struct flow {
    struct guest_qp *qp;
    struct guest_wr wr;
    uint64_t done;              /* bytes of requests that completed */
};

static struct flow write_flow(struct pair *p, struct guest_qp *qp,
                              unsigned int opcode, uint32_t bytes)
{
    return (struct flow){
        .qp = qp, .wr = pair_wr(p, opcode, 0, 0, 0, bytes),
    };
}

/* Keep its queue full, and take what completes. */
static void flow_feed(struct flow *f)
{
    struct vmri_cqe cqe;

    while ( cq_poll(f->qp->scq, &cqe) )
    {
        CHECK_EQ(cqe.status, 0);
        f->done += cqe.byte_len;
    }
    while ( f->qp->prod_s - env_load(&f->qp->hdr->sq.cons) < 16 )
        qp_post_send(f->qp, &f->wr);
    qp_ring(f->qp);
}

/*
 * Time passes with all flows going on.  At no moment has more left the guest
 * than the bucket held and got since.
 */
static void flows_run(struct flow *f, unsigned int n,
                      uint64_t ns, uint64_t rate, uint64_t burst)
{
    const uint64_t before = sent(), start = env_now();
    unsigned int i;

    while ( env_now() < start + ns )
    {
        for ( i = 0; i < n; i++ )
            flow_feed(&f[i]);
        CHECK(sent() - before <=
              burst + rate * (env_now() - start) / SECOND);
        world_pass(MS / 2, MS / 10);
    }
}

static void check_share(uint64_t got, uint64_t want, unsigned int percent)
{
    CHECK_AT(got * 100 >= want * (100 - percent) &&
             got * 100 <= want * (100 + percent), true,
             "%llu of %llu", (unsigned long long)got, (unsigned long long)want);
}

/* ---- how much ---- */

TEST(rate_is_kept_over_a_second)
{
    static const struct {
        unsigned int opcode;
        uint32_t bytes;
        uint64_t rate;
    } cases[] = {
        { VMRI_WR_RDMA_WRITE, 65536, 10 * MB },
        { VMRI_WR_RDMA_WRITE, 1000, 2 * MB },
        { VMRI_WR_RDMA_READ, 30000, 10 * MB },
        { VMRI_WR_RDMA_WRITE, 65536, 100 * MB },
        { VMRI_WR_RDMA_WRITE, 900000, 1 * MB },
    };
    struct pair p = pair_new(NULL, NULL);
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(cases); i++ )
    {
        struct flow f = write_flow(&p, p.qa, cases[i].opcode, cases[i].bytes);
        uint64_t burst = rate_set(p.a, VMRI_RATE_DEVICE, cases[i].rate,
                                  ANY_BURST), before;

        CHECK_EQ(burst, cases[i].rate / 50);
        before = sent();
        flows_run(&f, 1, SECOND, cases[i].rate, burst);
        check_share(sent() - before, cases[i].rate, 5);
        /* The next one begins with nothing of it. */
        rate_set(p.a, VMRI_RATE_DEVICE, 0, 0);
        world_pass(2 * SECOND, MS);
    }
}

/* A message that is longer than the bucket goes on with what comes in. */
TEST(rate_message_longer_than_the_bucket)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 1000000);

    fill_pattern(p.ma.mem, 1000000, 1);
    rate_set(p.a, VMRI_RATE_DEVICE, MB, VMRI_BURST_MIN);
    pair_send(&p, &wr);
    world_pass(980 * MS, MS);
    cq_expect_none(p.qa->scq);
    world_pass(20 * MS, MS);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(match_pattern(p.mb.mem, 1000000, 1, 0), 1000000);
}

/* What was not sent while there was nothing to send is a burst, and no more. */
TEST(rate_burst_is_the_bucket)
{
    struct pair p = pair_new(NULL, NULL);
    struct flow f = write_flow(&p, p.qa, VMRI_WR_RDMA_WRITE, 50000);
    unsigned int i;

    rate_set(p.a, VMRI_RATE_DEVICE, MB, 300000);
    for ( i = 0; i < 3; i++ )
    {
        uint64_t before = sent();

        flow_feed(&f);
        world_settle();
        /* Of the last turn, nothing is there before all of it is. */
        CHECK(sent() - before <= 300000 && sent() - before > 280000);
        qp_set_state(p.qa, VMRI_QPS_ERR);
        world_pass(10 * SECOND, 100 * MS);
        while ( cq_poll(p.qa->scq, &(struct vmri_cqe){ 0 }) )
            ;
        qp_set_state(p.qa, VMRI_QPS_RESET);
        qp_set_state(p.qb, VMRI_QPS_RESET);
        qp_connect(p.qa, p.qb, NULL);
    }
}

/*
 * Queues take their turns, and their guest does not run them when they come: all
 * together then, they have no more than the bucket.
 */
TEST(rate_turns_that_come_late_are_no_burst)
{
    enum { N = 60 };
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 65536);
    struct guest_cq *cq = guest_cq(p.a, 8);
    struct guest_qp_opts opts = { .scq = cq, .rcq = cq };
    struct guest_qp *qp[N];
    uint64_t before;
    unsigned int i;

    rate_set(p.a, VMRI_RATE_DEVICE, 10 * MB, 200000);
    for ( i = 0; i < N; i++ )
    {
        qp[i] = guest_qp(p.a, &opts);
        qp_connect(qp[i], guest_qp(p.b, NULL), NULL);
        qp_send(qp[i], &wr);
    }
    before = sent();
    env_test_advance(10 * SECOND);
    CHECK_EQ(sent(), before);
    for ( i = 0; i < N; i++ )
        while ( guest_schedule(p.a, qp[i]->qpn) == VMRI_SCHEDULE_MORE )
            ;
    CHECK(sent() - before <= 200000);

    /* Nothing is lost: all end in time. */
    world_pass(SECOND, MS);
    for ( i = 0; i < N; i++ )
        CHECK_EQ(env_load(&qp[i]->hdr->sq.cons), 1);
}

TEST(rate_of_datagrams_and_groups)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_qp *member[2] = { guest_qp(p.b, &ud), guest_qp(p.b, &ud) };
    struct flow f = { .qp = p.qa };
    uint64_t before, burst;
    unsigned int i;

    f.wr = pair_wr(&p, VMRI_WR_SEND, 0, 0, 0, VMRI_MTU);
    f.wr.to = p.qb;
    burst = rate_set(p.a, VMRI_RATE_DEVICE, 2 * MB, ANY_BURST);
    before = counted(p.a);
    flows_run(&f, 1, SECOND, 2 * MB, burst);
    check_share(counted(p.a) - before, 2 * MB, 5);
    CHECK(counted(p.a) - before <= 2 * MB + burst);

    /* One to many counts once. */
    rate_set(p.a, VMRI_RATE_DEVICE, 0, 0);
    world_pass(2 * SECOND, 10 * MS);
    for ( i = 0; i < 2; i++ )
    {
        unsigned int state;

        for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTR; state++ )
            qp_to(member[i], p.qa, state, NULL);
        CHECK_EQ(group_attach(member[i], 1, MLID), 0);
    }
    rate_set(p.a, VMRI_RATE_DEVICE, MB, VMRI_BURST_MIN);
    before = counted(p.a);
    f.wr.to = p.qa;
    for ( i = 0; i < 3; i++ )
        group_send(p.qa, &f.wr, 1, MLID);
    CHECK_EQ(counted(p.a) - before, VMRI_BURST_MIN);
    world_pass(5 * MS, MS);
    CHECK_EQ(counted(p.a) - before, VMRI_BURST_MIN + VMRI_MTU);
}

TEST(rate_of_atomics)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_mr mr = guest_mr(p.b, 4096, 0, LAYOUT_RUN,
                                  VMRI_ACCESS_LOCAL_WRITE |
                                  VMRI_ACCESS_REMOTE_ATOMIC);
    struct flow f = { .qp = p.qa };
    uint64_t before, burst;

    f.wr = pair_wr(&p, VMRI_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 0, 8);
    f.wr.remote_addr = mr.iova;
    f.wr.rkey = mr.key;
    f.wr.compare_add = 1;
    burst = rate_set(p.a, VMRI_RATE_DEVICE, VMRI_RATE_MIN, ANY_BURST);
    before = counted(p.a);
    flows_run(&f, 1, SECOND / 5, VMRI_RATE_MIN, burst);
    CHECK(counted(p.a) - before <= burst + VMRI_RATE_MIN / 5);
    CHECK(counted(p.a) - before > burst);
}

/* ---- whose ---- */

/* The same for each queue pair, whatever the size of its messages. */
TEST(rate_is_shared_fairly)
{
    static const uint32_t bytes[] = { 65536, 1500, 20000, 300000 };
    enum { N = ARRAY_SIZE(bytes) };
    struct pair p = pair_new(NULL, NULL);
    struct flow f[N];
    uint64_t before[N], sum = 0, burst;
    unsigned int i;

    for ( i = 0; i < N; i++ )
    {
        struct guest_qp *qp = guest_qp(p.a, NULL);

        qp_connect(qp, guest_qp(p.b, NULL), NULL);
        f[i] = write_flow(&p, qp, VMRI_WR_RDMA_WRITE, bytes[i]);
    }
    burst = rate_set(p.a, VMRI_RATE_DEVICE, 20 * MB, ANY_BURST);
    /* The bucket that is full at first is for who comes first. */
    flows_run(f, N, SECOND / 10, 20 * MB, burst);
    for ( i = 0; i < N; i++ )
        before[i] = f[i].done;
    flows_run(f, N, 2 * SECOND, 20 * MB, burst);
    for ( i = 0; i < N; i++ )
        sum += f[i].done - before[i];
    check_share(sum, 40 * MB, 5);
    for ( i = 0; i < N; i++ )
        check_share(f[i].done - before[i], sum / N, 10);
}

/* A service level has a limit of its own, within the device's. */
TEST(rate_of_a_service_level)
{
    static const struct guest_conn sl3 = { .sl = 3 };
    struct pair p = pair_new(NULL, &sl3);
    struct guest_qp *other = guest_qp(p.a, NULL);
    struct flow f[2] = { write_flow(&p, p.qa, VMRI_WR_RDMA_WRITE, 20000) };
    uint64_t burst;

    qp_connect(other, guest_qp(p.b, NULL), NULL);
    f[1] = write_flow(&p, other, VMRI_WR_RDMA_WRITE, 20000);
    rate_set(p.a, 3, 2 * MB, ANY_BURST);
    flows_run(f, 1, SECOND, 2 * MB, 2 * MB / 50);
    check_share(f[0].done, 2 * MB, 5);

    burst = rate_set(p.a, VMRI_RATE_DEVICE, 10 * MB, ANY_BURST);
    f[0].done = f[1].done = 0;
    flows_run(f, 2, SECOND, 10 * MB, burst);
    check_share(f[0].done, 2 * MB, 6);
    check_share(f[1].done, 8 * MB, 6);

    /* Datagrams choose for themselves. */
    rate_set(p.a, VMRI_RATE_DEVICE, 0, 0);
    rate_set(p.a, 3, VMRI_RATE_MIN, VMRI_BURST_MIN);
    p.qa = guest_qp(p.a, &ud);
    p.qb = guest_qp(p.b, &ud);
    qp_connect(p.qa, p.qb, NULL);
    f[0] = (struct flow){ .qp = p.qa };
    f[0].wr = pair_wr(&p, VMRI_WR_SEND, 7, 0, 0, VMRI_MTU);
    f[0].wr.to = p.qb;
    f[0].wr.sl = 3;
    pair_send(&p, &f[0].wr);
    pair_send(&p, &f[0].wr);
    pair_send(&p, &f[0].wr);
    CHECK_EQ(env_load(&p.qa->hdr->sq.cons), 2);
    world_pass(40 * MS, MS);
    CHECK_EQ(env_load(&p.qa->hdr->sq.cons), 3);
    f[0].wr.sl = 0;
    pair_send(&p, &f[0].wr);
    CHECK_EQ(env_load(&p.qa->hdr->sq.cons), 4);
}

/* Who waits and goes away leaves its place to others. */
TEST(rate_turns_of_the_dead_are_given_back)
{
    enum { N = 100 };
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 65536);
    struct flow f = write_flow(&p, p.qa, VMRI_WR_RDMA_WRITE, 65536);
    struct guest_cq *cq = guest_cq(p.a, 8);
    struct guest_qp_opts opts = { .scq = cq, .rcq = cq };
    struct guest_qp *qp[N];
    unsigned int i;

    rate_set(p.a, VMRI_RATE_DEVICE, MB, 400000);
    for ( i = 0; i < N; i++ )
    {
        qp[i] = guest_qp(p.a, &opts);
        qp_connect(qp[i], guest_qp(p.b, NULL), NULL);
        qp_send(qp[i], &wr);
    }
    for ( i = 0; i < N; i++ )
        if ( i % 3 == 0 )
            CHECK_EQ(qp_destroy(qp[i]), 0);
        else
            qp_set_state(qp[i], i % 3 == 1 ? VMRI_QPS_RESET : VMRI_QPS_ERR);
    world_settle();
    flows_run(&f, 1, SECOND, MB, 400000);
    check_share(f.done, MB, 7);
}

/* ---- what dom0 does ---- */

TEST(rate_changes_are_seen_by_who_waits)
{
    enum { N = 100 };
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 1000000);
    struct vmri_ctl_dump d = { .domid = 1, .kind = VMRI_RES_QP };
    struct guest_cq *cq = guest_cq(p.a, 8);
    struct guest_qp_opts opts = { .scq = cq, .rcq = cq };
    struct guest_qp *qp[N];
    unsigned int i;

    /* The last one's turn comes after three seconds. */
    rate_set(p.a, VMRI_RATE_DEVICE, VMRI_RATE_MIN, VMRI_BURST_MIN);
    pair_send(&p, &wr);
    for ( i = 0; i < N; i++ )
    {
        qp[i] = guest_qp(p.a, &opts);
        qp_connect(qp[i], guest_qp(p.b, NULL), NULL);
        qp_send(qp[i], &wr);
    }
    d.dev_id = p.a->dev;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_dump, &d, sizeof(d)), 0);
    CHECK_EQ(d.u.qp.parked, VMRI_PARKED_RATE);
    rate_set(p.a, VMRI_RATE_DEVICE, 0, 0);
    world_pass(SECOND + MS, MS);
    cq_expect(p.qa->scq, 1, 0);
    for ( i = 0; i < N; i++ )
        CHECK_AT(env_load(&qp[i]->hdr->sq.cons), 1, "queue %u", i);

    /* From then on it has no limit. */
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
}

/* Without a limit nothing of this is looked at. */
TEST(rate_without_a_limit_costs_no_lock)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 1000);
    struct vmri_dev *dev = vmri_dev_get(p.a->domain, p.a->dev);
    struct env_lock_set set = { .nr = 0 };
    unsigned int i;

    vmri_dev_put(dev);
    env_test_note_locks(&set);
    pair_send(&p, &wr);
    env_test_note_locks(NULL);
    for ( i = 0; i < set.nr; i++ )
        CHECK(set.lock[i] != &dev->rates.lock);
    cq_expect(p.qa->scq, 1, 0);

    rate_set(p.a, VMRI_RATE_DEVICE, MB, ANY_BURST);
    set.nr = 0;
    env_test_note_locks(&set);
    pair_send(&p, &wr);
    env_test_note_locks(NULL);
    for ( i = 0; i < set.nr && set.lock[i] != &dev->rates.lock; i++ )
        ;
    CHECK(i < set.nr);
    cq_expect(p.qa->scq, 1, 0);
}

TEST(rate_refused)
{
    struct guest *g = guest_new(1);
    static const struct {
        uint32_t which, flags;
        uint64_t rate, burst;
    } bad[] = {
        { VMRI_RATE_DEVICE + 1, 0, 0, 0 },
        { 0, VMRI_RATE_SET << 1, 0, 0 },
        { 0, VMRI_RATE_SET, VMRI_RATE_MIN - 1, 0 },
        { 0, VMRI_RATE_SET, VMRI_RATE_MAX + 1, 0 },
        { 0, VMRI_RATE_SET, MB, VMRI_BURST_MIN - 1 },
        { 0, VMRI_RATE_SET, MB, VMRI_BURST_MAX + 1ULL },
        { 0, VMRI_RATE_SET, 0, VMRI_BURST_MIN },
    };
    struct vmri_ctl_rate arg;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
        CHECK_AT(rate_call(g, bad[i].which, bad[i].flags, bad[i].rate,
                           bad[i].burst, &arg), -EINVAL, "case %u", i);
    g->dev++;
    CHECK_EQ(rate_call(g, 0, 0, 0, 0, &arg), -ENODEV);
    g->dev--;
    CHECK_EQ(guest_call(g, VMRI_OP_ctl_rate, &arg, sizeof(arg)), -EPERM);
    arg.domid = 77777;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_rate, &arg, sizeof(arg)), -ESRCH);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_rate, &arg, sizeof(arg) - 1), -EFAULT);
    CHECK_EQ(rate_call(g, VMRI_RATE_DEVICE, 0, 0, 0, &arg), 0);
    CHECK_EQ(arg.rate | arg.burst, 0);
    CHECK_EQ(rate_set(g, 15, VMRI_RATE_MAX, ANY_BURST), VMRI_BURST_MAX);
    CHECK_EQ(rate_set(g, 15, VMRI_RATE_MIN, ANY_BURST), VMRI_BURST_MIN);
}

/* Queues of a limited device on several CPUs, while the limit changes. */
static void *run_flow(void *data)
{
    struct flow *f = data;
    unsigned int i;

    for ( i = 0; i < 300; i++ )
        flow_feed(f);
    return NULL;
}

THREAD_TEST(rate_threads)
{
    struct pair p = pair_new(NULL, NULL);
    struct flow f[2];
    pthread_t thread[2];
    unsigned int i;

    for ( i = 0; i < 2; i++ )
    {
        struct guest_qp *qp = guest_qp(p.a, NULL);

        qp_connect(qp, guest_qp(p.b, NULL), NULL);
        f[i] = write_flow(&p, qp, VMRI_WR_RDMA_READ, 3000);
        f[i].wr.sge[0].addr += 4096 * i;
    }
    rate_set(p.a, VMRI_RATE_DEVICE, 100 * MB, ANY_BURST);
    for ( i = 0; i < 2; i++ )
        CHECK_EQ(pthread_create(&thread[i], NULL, run_flow, &f[i]), 0);
    for ( i = 0; i < 20; i++ )
    {
        rate_set(p.a, i % 2 ? VMRI_RATE_DEVICE : 0, (i + 1) * MB, ANY_BURST);
        env_test_advance(MS);
    }
    for ( i = 0; i < 2; i++ )
        pthread_join(thread[i], NULL);
    rate_set(p.a, VMRI_RATE_DEVICE, 0, 0);
    rate_set(p.a, 0, 0, 0);
    world_pass(2 * SECOND, 10 * MS);
    for ( i = 0; i < 2; i++ )
    {
        flow_feed(&f[i]);
        CHECK(f[i].done);
    }
}
