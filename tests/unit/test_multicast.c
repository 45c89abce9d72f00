/* SPDX-License-Identifier: GPL-2.0-only */
/* multicast.c: one datagram to all that are attached to a group. */
#include "group.h"
#include "internal.h"

#include <sched.h>

#undef memcpy
#undef memset

#define GRH     40U
#define MLID    0xc123
#define SLOT    4200U           /* a receive of the largest datagram */

static const struct guest_qp_opts ud = {
    .type = VMRI_QPT_UD, .max_inline = 128,
};

/* A guest with queue pairs in RTS, whose receives come to one queue. */
struct ear {
    struct guest *guest;
    struct guest_cq *cq;
    struct guest_mr mr;
    unsigned int num;
    struct guest_qp **qp;
};

static struct ear ear_new(struct guest *g, unsigned int num, uint32_t flags)
{
    struct ear e = {
        .guest = g, .cq = guest_cq(g, 10), .num = num,
        .mr = guest_mr(g, num * SLOT, 0, LAYOUT_SCATTERED, 1),
        .qp = calloc(num, sizeof(*e.qp)),
    };
    struct guest_qp_opts opts = ud;
    unsigned int i;

    opts.scq = guest_cq(g, 6);
    opts.rcq = e.cq;
    for ( i = 0; i < num; i++ )
    {
        e.qp[i] = qp_prepare(g, &opts);
        e.qp[i]->arg.flags = flags;
        CHECK_EQ(try_qp(e.qp[i]), 0);
        qp_connect(e.qp[i], e.qp[i], NULL);
    }
    return e;
}

/* One receive each, with the number of the queue pair as wr_id. */
static void ear_post(struct ear *e)
{
    struct vmri_sge sge;
    unsigned int i;

    for ( i = 0; i < e->num; i++ )
    {
        sge = mr_sge(&e->mr, i * SLOT, SLOT);
        qp_recv(e->qp[i], i, &sge, 1);
    }
}

static void ear_attach(struct ear *e, uint32_t group, uint16_t mlid)
{
    unsigned int i;

    for ( i = 0; i < e->num; i++ )
        CHECK_EQ(group_attach(e->qp[i], group, mlid), 0);
}

/* Take what came: how often each queue pair got something, of this pattern. */
static unsigned int ear_take(struct ear *e, unsigned int *count,
                             uint32_t bytes, uint32_t seed)
{
    unsigned int n = 0;
    struct vmri_cqe cqe;

    while ( cq_poll(e->cq, &cqe) )
    {
        CHECK_EQ(cqe.status, 0);
        CHECK_EQ(cqe.byte_len, GRH + bytes);
        CHECK_EQ(cqe.qpn, e->qp[cqe.wr_id]->qpn);
        CHECK_EQ(match_pattern(e->mr.mem + cqe.wr_id * SLOT + GRH, bytes, seed,
                               0), bytes);
        count[cqe.wr_id]++;
        n++;
    }
    return n;
}

static struct guest_wr wr_of(const struct guest_mr *mr, uint64_t wr_id,
                             uint32_t bytes)
{
    return (struct guest_wr){
        .wr_id = wr_id, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(mr, 0, bytes) },
    };
}

static uint64_t drops(struct guest *g)
{
    struct vmri_counters c;

    guest_counters(g, &c);
    return c.ud_drops;
}

/* ---- who gets it ---- */

/* Everybody in the fabric, on the sender's device too, one copy each. */
TEST(multicast_reaches_all)
{
    static const uint32_t sizes[] = { 0, 1, 100, 4056, 4096 };
    struct guest *g[3] = { guest_new(1), guest_new(2), guest_new(3) };
    struct ear e[3];
    struct guest_mr mr = guest_mr(g[0], 8192, 7, LAYOUT_SCATTERED, 1);
    struct vmri_mcg group = group_arg(1, MLID);
    unsigned int i, s, k;

    for ( i = 0; i < 3; i++ )
    {
        e[i] = ear_new(g[i], 3, 0);
        ear_attach(&e[i], 1, MLID);
    }
    for ( s = 0; s < ARRAY_SIZE(sizes); s++ )
    {
        struct guest_wr wr = wr_of(&mr, s, sizes[s]);
        uint64_t copied = env_stats.copied;
        struct vmri_send_wqe *wqe;

        wr.opcode = VMRI_WR_SEND_WITH_IMM;
        wr.flags |= VMRI_SEND_SOLICITED;
        wr.imm = 77 + s;
        fill_pattern(mr.mem, sizes[s], s);
        for ( i = 0; i < 3; i++ )
            ear_post(&e[i]);
        wqe = group_post(e[0].qp[1], &wr, 1, MLID);
        wqe->u.ud.av.sl = 5;
        wqe->u.ud.av.hop_limit = 9;
        qp_ring(e[0].qp[1]);
        CHECK_EQ(cq_expect(e[0].qp[1]->scq, s, 0).opcode, VMRI_WC_OP_SEND);
        CHECK_EQ(env_stats.copied - copied, 9 * sizes[s]);
        for ( i = 0; i < 9; i++ )
        {
            const uint8_t *grh = e[i / 3].mr.mem + i % 3 * SLOT;
            struct vmri_cqe cqe = cq_expect(e[i / 3].cq, i % 3, 0);

            CHECK_EQ(cqe.flags, VMRI_WC_GRH | VMRI_WC_WITH_IMM |
                                VMRI_WC_SOLICITED);
            CHECK_EQ(cqe.imm, 77 + s);
            CHECK_EQ(cqe.byte_len, GRH + sizes[s]);
            CHECK_EQ(cqe.src_qp, e[0].qp[1]->qpn);
            CHECK_EQ(cqe.slid, g[0]->lid);
            CHECK_EQ(cqe.sl, 5);
            CHECK_EQ(memcmp(grh + 24, group.mgid, 16), 0);
            CHECK_EQ(grh[7], 9);
            CHECK_EQ(match_pattern(grh + GRH, sizes[s], s, 0), sizes[s]);
        }
        for ( k = 0; k < 3; k++ )
            cq_expect_none(e[k].cq);
    }
    for ( i = 0; i < 3; i++ )
        CHECK_EQ(drops(g[i]), 0);
}

/* Inline data lies in the ring: it is read once for each. */
TEST(multicast_inline)
{
    struct ear e = ear_new(guest_new(1), 5, 0);
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_SEND, .length = 128,
        .flags = VMRI_SEND_SIGNALED | VMRI_SEND_INLINE,
    };
    unsigned int count[5] = { 0 };
    uint8_t data[128];

    fill_pattern(data, sizeof(data), 3);
    wr.data = data;
    ear_attach(&e, 1, MLID);
    ear_post(&e);
    group_send(e.qp[4], &wr, 1, MLID);
    cq_expect(e.qp[4]->scq, 1, 0);
    CHECK_EQ(ear_take(&e, count, 128, 3), 5);
}

/*
 * With the block bit what the own device sends does not come, whichever QP
 * sent it; what others send does.
 */
TEST(multicast_loopback_block)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct ear block = ear_new(a, 2, VMRI_QPF_BLOCK_LOOPBACK);
    struct ear open = ear_new(a, 1, 0), far = ear_new(b, 1, 0);
    struct guest_mr ma = guest_mr(a, 4096, 0, LAYOUT_RUN, 1);
    struct guest_mr mb = guest_mr(b, 4096, 0, LAYOUT_RUN, 1);
    struct guest_wr wr = wr_of(&ma, 1, 50), back = wr_of(&mb, 2, 60);
    struct guest_qp *rc = qp_prepare(a, &(struct guest_qp_opts){ .type = 0 });
    unsigned int count[4] = { 0 };

    ear_attach(&block, 1, MLID);
    ear_attach(&open, 1, MLID);
    ear_attach(&far, 1, MLID);
    ear_post(&block);
    ear_post(&open);
    ear_post(&far);
    fill_pattern(ma.mem, 50, 1);
    fill_pattern(mb.mem, 60, 2);

    group_send(block.qp[0], &wr, 1, MLID);
    cq_expect(block.qp[0]->scq, 1, 0);
    CHECK_EQ(ear_take(&block, count, 50, 1), 0);
    CHECK_EQ(ear_take(&open, count, 50, 1), 1);
    CHECK_EQ(ear_take(&far, count, 50, 1), 1);
    CHECK_EQ(drops(a), 0);

    ear_post(&open);
    ear_post(&far);
    group_send(open.qp[0], &wr, 1, MLID);
    CHECK_EQ(ear_take(&block, count, 50, 1), 0);
    CHECK_EQ(ear_take(&open, count, 50, 1), 1);
    CHECK_EQ(ear_take(&far, count, 50, 1), 1);

    ear_post(&open);
    ear_post(&far);
    group_send(far.qp[0], &back, 1, MLID);
    CHECK_EQ(ear_take(&block, count, 60, 2), 2);
    CHECK_EQ(ear_take(&open, count, 60, 2), 1);
    CHECK_EQ(ear_take(&far, count, 60, 2), 1);

    /* Nothing that unicast knows. */
    ear_post(&block);
    wr.to = block.qp[1];
    qp_send(block.qp[0], &wr);
    CHECK_EQ(ear_take(&block, count, 50, 1), 1);

    /* Nor connected queue pairs. */
    rc->arg.flags = VMRI_QPF_BLOCK_LOOPBACK;
    CHECK_EQ(try_qp(rc), -EINVAL);
}

/* Dropped without a word to the sender, and counted where it can be seen. */
TEST(multicast_drops)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct ear from = ear_new(a, 1, 0), e = ear_new(b, 3, 0);
    struct guest_mr mr = guest_mr(a, 4096, 0, LAYOUT_RUN, 1);
    struct guest_wr wr = wr_of(&mr, 1, 100);
    struct vmri_qp_modify qkey = { .mask = VMRI_QPA_QKEY, .qkey = 5 };
    unsigned int count[3] = { 0 }, i;
    struct guest_qp_opts gsi_opts = { .type = VMRI_QPT_GSI, .kernel = true };
    struct guest_qp *gsi = guest_qp(a, &gsi_opts);
    struct vmri_counters c;

    fill_pattern(mr.mem, 100, 1);
    ear_attach(&e, 1, MLID);

    /* No such group: another MLID, another MGID, one that nobody may name. */
    group_send(from.qp[0], &wr, 1, MLID + 1);
    group_send(from.qp[0], &wr, 2, MLID);
    group_send(from.qp[0], &wr, 1, 0xffff);
    CHECK_EQ(drops(a), 3);
    /* No multicast datagram: without GRH, or to some QP. */
    group_post(from.qp[0], &wr, 1, MLID)->u.ud.av.flags = 0;
    qp_ring(from.qp[0]);
    group_post(from.qp[0], &wr, 1, MLID)->u.ud.remote_qpn = e.qp[0]->qpn;
    qp_ring(from.qp[0]);
    CHECK_EQ(drops(a), 5);
    qp_connect(gsi, gsi, NULL);
    group_send(gsi, &wr, 1, MLID);
    CHECK_EQ(drops(a), 6);
    cq_expect(gsi->scq, 1, 0);
    CHECK_EQ(drops(b), 0);

    /* Nothing posted; another Q_Key; another state. */
    group_send(from.qp[0], &wr, 1, MLID);
    CHECK_EQ(drops(b), 3);
    ear_post(&e);
    CHECK_EQ(qp_modify(e.qp[0], &qkey), 0);
    qp_set_state(e.qp[1], VMRI_QPS_RESET);
    group_send(from.qp[0], &wr, 1, MLID);
    CHECK_EQ(ear_take(&e, count, 100, 1), 1);
    CHECK_EQ(count[2], 1);
    guest_counters(b, &c);
    CHECK_EQ(c.qkey_violations, 1);
    CHECK_EQ(c.ud_drops, 5);
    CHECK_EQ(drops(a), 6);

    /* A domain whose memory is being saved: as if it was not there. */
    ear_post(&e);
    env_test_domain_running(b->domain, false);
    group_send(from.qp[0], &wr, 1, MLID);
    env_test_domain_running(b->domain, true);
    CHECK_EQ(ear_take(&e, count, 100, 1), 0);

    for ( i = 0; i < 8; i++ )
        cq_expect(from.qp[0]->scq, 1, 0);
    CHECK_EQ(qp_state(from.qp[0]), VMRI_QPS_RTS);
}

/* One receiver's bad memory is its own fault, and no other's. */
TEST(multicast_bad_receive)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct ear e = ear_new(a, 3, 0);
    struct guest_mr mr = guest_mr(a, 4096, 0, LAYOUT_RUN, 1);
    struct guest_wr wr = wr_of(&mr, 1, 100);
    struct ear far = ear_new(b, 1, 0);
    struct vmri_sge sge = mr_sge(&far.mr, 0, SLOT);
    unsigned int count[3] = { 0 };

    fill_pattern(mr.mem, 100, 1);
    CHECK_EQ(group_attach(e.qp[0], 1, MLID), 0);
    CHECK_EQ(group_attach(far.qp[0], 1, MLID), 0);
    CHECK_EQ(group_attach(e.qp[2], 1, MLID), 0);
    ear_post(&e);
    sge.lkey ^= 0x10000;
    qp_recv(far.qp[0], 0, &sge, 1);
    group_send(e.qp[1], &wr, 1, MLID);
    cq_expect(e.qp[1]->scq, 1, 0);
    CHECK_EQ(ear_take(&e, count, 100, 1), 2);
    cq_expect(far.cq, 0, VMRI_WC_LOC_PROT_ERR);
    CHECK_EQ(qp_state(far.qp[0]), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(e.qp[1]), VMRI_QPS_RTS);

    /* The sender's own is the sender's. */
    wr.sge[0].lkey ^= 0x10000;
    ear_post(&e);
    group_send(e.qp[1], &wr, 1, MLID);
    cq_expect(e.qp[1]->scq, 1, VMRI_WC_LOC_PROT_ERR);
    CHECK_EQ(qp_state(e.qp[1]), VMRI_QPS_SQE);
    CHECK_EQ(ear_take(&e, count, 100, 1), 0);
}

static struct guest_mr *hook_mr;

static void deregister_source(void *unused)
{
    (void)unused;
    CHECK_EQ(mr_deregister(hook_mr), 0);
}

/* The source goes between two receivers: the rest is spared. */
TEST(multicast_source_vanishes)
{
    struct guest *a = guest_new(1);
    struct ear e = ear_new(a, 4, 0), from = ear_new(a, 1, 0);
    struct guest_mr mr = guest_mr(a, 4096, 0, LAYOUT_RUN, 1);
    struct guest_wr wr = wr_of(&mr, 1, 100);
    struct vmri_cqe cqe;

    fill_pattern(mr.mem, 100, 1);
    ear_attach(&e, 1, MLID);
    ear_post(&e);
    hook_mr = &mr;
    group_post(from.qp[0], &wr, 1, MLID);
    /* A header's map, and two for the bytes, each. */
    env_test_on_map(4, deregister_source, NULL);
    qp_ring(from.qp[0]);
    cq_expect(from.qp[0]->scq, 1, VMRI_WC_LOC_PROT_ERR);
    CHECK_EQ(cq_expect(e.cq, 0, 0).byte_len, GRH + 100);
    CHECK_EQ(cq_expect(e.cq, 1, 0).byte_len, GRH);
    CHECK(!cq_poll(e.cq, &cqe));
    CHECK_EQ(qp_state(e.qp[1]), VMRI_QPS_RTS);
}

/* ---- many ---- */

#define MANY    300U

/* No call does more than its budget, and each gets one copy. */
TEST(multicast_is_bounded)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct ear from = ear_new(a, 1, 0), e = ear_new(b, MANY, 0);
    struct guest_mr mr = guest_mr(a, 4096, 0, LAYOUT_RUN, 1);
    static const uint32_t sizes[] = { 0, 4096 };
    unsigned int s;

    ear_attach(&e, 1, MLID);
    for ( s = 0; s < 2; s++ )
    {
        struct guest_wr wr = wr_of(&mr, s, sizes[s]);
        unsigned int count[MANY] = { 0 }, calls = 0, i, got = 0;
        long rc;

        fill_pattern(mr.mem, sizes[s], s);
        ear_post(&e);
        group_post(from.qp[0], &wr, 1, MLID);
        do {
            uint64_t copied = env_stats.copied;
            unsigned int n;

            rc = guest_schedule(a, from.qp[0]->qpn);
            CHECK(env_stats.copied - copied <= VMRI_BUDGET);
            n = ear_take(&e, count, sizes[s], s);
            CHECK(n <= 256);
            CHECK(n || rc != VMRI_SCHEDULE_MORE);
            got += n;
            calls++;
            if ( rc == VMRI_SCHEDULE_MORE )
                cq_expect_none(from.qp[0]->scq);
        } while ( rc == VMRI_SCHEDULE_MORE );
        cq_expect(from.qp[0]->scq, s, 0);
        CHECK_EQ(got, MANY);
        CHECK(calls > (s ? 5 : 1));
        for ( i = 0; i < MANY; i++ )
            CHECK_EQ(count[i], 1);
    }
}

/*
 * Members come and go between the steps: who stays gets one copy, who comes
 * late none, and the request ends however fast they come.
 */
TEST(multicast_members_come_and_go)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct ear from = ear_new(a, 1, 0), e = ear_new(b, MANY, 0);
    struct guest_mr mr = guest_mr(a, 4096, 0, LAYOUT_RUN, 1);
    struct guest_wr wr = wr_of(&mr, 1, 4096);
    bool stays[MANY];
    unsigned int count[MANY] = { 0 }, seed = 1, i, calls = 0;
    long rc;

    fill_pattern(mr.mem, 4096, 5);
    for ( i = 0; i < MANY; i++ )
        stays[i] = i % 3 != 0;
    for ( i = 0; i < MANY; i++ )
        if ( stays[i] || i % 2 )
            CHECK_EQ(group_attach(e.qp[i], 1, MLID), 0);
    ear_post(&e);
    ear_post(&e);
    group_post(from.qp[0], &wr, 1, MLID);
    while ( (rc = guest_schedule(a, from.qp[0]->qpn)) == VMRI_SCHEDULE_MORE )
    {
        for ( i = 0; i < MANY; i++ )
            if ( !stays[i] && group_detach(e.qp[i], 1, MLID) )
                CHECK_EQ(group_attach(e.qp[i], 1, MLID), 0);
        for ( i = 0; i < 5; i++ )
        {
            unsigned int k = (unsigned int)rand_r(&seed) % (MANY / 3) * 3;

            if ( e.qp[k] && qp_destroy(e.qp[k]) == 0 )
                CHECK_EQ(try_qp(e.qp[k]), 0);
        }
        ear_take(&e, count, 4096, 5);
        CHECK(++calls < 20);
    }
    CHECK_EQ(rc, 0);
    cq_expect(from.qp[0]->scq, 1, 0);
    ear_take(&e, count, 4096, 5);
    for ( i = 0; i < MANY; i++ )
        CHECK_AT(stays[i] ? count[i] != 1 : count[i] > 1, 0,
                 "queue pair %u", i);
}

/* The group goes, or the sender's state changes, in the middle. */
TEST(multicast_ends_in_the_middle)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct ear from = ear_new(a, 1, 0), e = ear_new(b, 200, 0);
    struct guest_mr mr = guest_mr(a, 4096, 0, LAYOUT_RUN, 1);
    struct guest_wr wr = wr_of(&mr, 1, 4096);
    unsigned int count[200] = { 0 }, i;

    fill_pattern(mr.mem, 4096, 5);
    ear_attach(&e, 1, MLID);
    ear_post(&e);
    group_post(from.qp[0], &wr, 1, MLID);
    CHECK_EQ(guest_schedule(a, from.qp[0]->qpn), VMRI_SCHEDULE_MORE);
    for ( i = 0; i < 200; i++ )
        CHECK_EQ(group_detach(e.qp[i], 1, MLID), 0);
    qp_ring(from.qp[0]);
    cq_expect(from.qp[0]->scq, 1, 0);
    CHECK(ear_take(&e, count, 4096, 5) < 200);
    CHECK_EQ(drops(a), 0);

    /* The device with all of them. */
    ear_attach(&e, 1, MLID);
    group_post(from.qp[0], &wr, 1, MLID);
    CHECK_EQ(guest_schedule(a, from.qp[0]->qpn), VMRI_SCHEDULE_MORE);
    CHECK_EQ(dom0_detach(2, 0), 0);
    qp_ring(from.qp[0]);
    cq_expect(from.qp[0]->scq, 1, 0);

    /* The sender. */
    e = ear_new(a, 200, 0);
    ear_attach(&e, 1, MLID);
    ear_post(&e);
    group_post(from.qp[0], &wr, 1, MLID);
    CHECK_EQ(guest_schedule(a, from.qp[0]->qpn), VMRI_SCHEDULE_MORE);
    qp_set_state(from.qp[0], VMRI_QPS_ERR);
    cq_expect(from.qp[0]->scq, 1, VMRI_WC_WR_FLUSH_ERR);
    memset(count, 0, sizeof(count));
    CHECK(ear_take(&e, count, 4096, 5) < 200);
}

/* ---- at once ---- */

#define SENDS   150U
#define EARS    12U

static uint32_t stop;           /* atomic */

struct shouter {
    struct guest_qp *qp;
    struct guest_mr mr;
};

static void *run_shouter(void *data)
{
    struct shouter *s = data;
    struct vmri_cqe cqe;
    uint32_t n;

    for ( n = 0; n < SENDS; n++ )
    {
        struct guest_wr wr = wr_of(&s->mr, n, 1000);

        group_send(s->qp, &wr, 1, MLID);
        while ( !cq_poll(s->qp->scq, &cqe) )
            sched_yield();
        CHECK_EQ(cqe.status, 0);
        CHECK_EQ(cqe.wr_id, n);
    }
    return NULL;
}

/* Another vCPU of the guest: its queue pairs come and go all the time. */
static void *run_restless(void *data)
{
    struct ear *e = data;
    unsigned int seed = 3;

    while ( !env_load(&stop) )
    {
        unsigned int i = (unsigned int)rand_r(&seed) % e->num;

        switch ( rand_r(&seed) % 3 )
        {
        case 0:
            group_attach(e->qp[i], 1, MLID);
            break;
        case 1:
            group_detach(e->qp[i], 1, MLID);
            break;
        default:
            CHECK_EQ(qp_destroy(e->qp[i]), 0);
            CHECK_EQ(try_qp(e->qp[i]), 0);
        }
        sched_yield();
    }
    return NULL;
}

/* Devices whose queue pairs are attached are attached and taken away. */
static void *run_taker(void *data)
{
    struct guest *g = data;

    while ( !env_load(&stop) )
    {
        uint16_t lid = 99;
        uint32_t dev = 0;
        struct guest_qp *qp;

        CHECK_EQ(dom0_attach(3, GUEST_FABRIC, &dev, &lid), 0);
        guest_start(g);
        qp = guest_qp(g, &ud);
        qp_connect(qp, qp, NULL);
        CHECK_EQ(group_attach(qp, 1, MLID), 0);
        sched_yield();
        CHECK_EQ(dom0_detach(3, 0), 0);
    }
    return NULL;
}

/* Those that stay get all that they have receives for, whole. */
THREAD_TEST(multicast_while_all_changes)
{
    struct guest *a = guest_new(1), *b = guest_new(2), *c = guest_bare(3);
    struct ear steady = ear_new(b, 2, 0), restless = ear_new(b, EARS, 0);
    struct shouter s[2];
    unsigned int i, count[2] = { 0 }, got = 0;
    pthread_t thread[4];

    ear_attach(&steady, 1, MLID);
    for ( i = 0; i < 2; i++ )
    {
        s[i].qp = guest_qp(a, &ud);
        s[i].mr = guest_mr(a, 4096, 0, LAYOUT_RUN, 1);
        qp_connect(s[i].qp, s[i].qp, NULL);
        fill_pattern(s[i].mr.mem, 1000, 9);
    }

    for ( i = 0; i < 8; i++ )
        ear_post(&steady);
    pthread_create(&thread[0], NULL, run_shouter, &s[0]);
    pthread_create(&thread[1], NULL, run_shouter, &s[1]);
    pthread_create(&thread[2], NULL, run_restless, &restless);
    pthread_create(&thread[3], NULL, run_taker, c);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    env_store(&stop, 1);
    pthread_join(thread[2], NULL);
    pthread_join(thread[3], NULL);
    got = ear_take(&steady, count, 1000, 9);
    CHECK_EQ(got, 16);
    CHECK(drops(b) >= 2 * (2 * SENDS - 8));
}
