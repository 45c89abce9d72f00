/* SPDX-License-Identifier: GPL-2.0-only */
/* port.c: what dom0 changes of a port, and what its guest and peers notice. */
#include "group.h"
#include "internal.h"

#include <sched.h>

#undef memcpy
#undef memset

#define GRH     40U

static const struct guest_qp_opts ud = { .type = VMRI_QPT_UD };

static long port_change(struct guest *g, struct vmri_ctl_port *arg)
{
    arg->domid = env_domid(g->domain);
    arg->dev_id = g->dev;
    return dom0_call(VMRI_OP_ctl_port, arg, sizeof(*arg));
}

static void port_state(struct guest *g, uint8_t state)
{
    struct vmri_ctl_port arg = { .mask = VMRI_PORTA_STATE, .state = state };

    CHECK_EQ(port_change(g, &arg), 0);
    CHECK_EQ(arg.state, state);
}

static void port_pkey(struct guest *g, uint16_t pkey)
{
    struct vmri_ctl_port arg = { .mask = VMRI_PORTA_PKEY, .pkeys = { pkey } };

    CHECK_EQ(port_change(g, &arg), 0);
}

/* The events that came, a bit each; none twice. */
static uint32_t came(struct guest_eq *eq)
{
    uint32_t types = 0;
    struct vmri_event ev;

    while ( eq_poll(eq, &ev) )
    {
        CHECK_EQ(ev.id, 0);
        CHECK(!(types & (1U << ev.type)));
        types |= 1U << ev.type;
    }
    return types;
}

#define E(name) (1U << VMRI_EVENT_##name)

static void attributes(struct guest *g, struct vmri_dev_attr *attr)
{
    CHECK_EQ(guest_call(g, VMRI_OP_dev_query, attr, sizeof(*attr)), 0);
}

/* ---- attributes and events ---- */

TEST(port_changes_raise_their_events)
{
    static const struct {
        struct vmri_ctl_port set;
        uint32_t events;
    } steps[] = {
        { { .mask = VMRI_PORTA_STATE, .state = 4 }, 0 },
        { { .mask = VMRI_PORTA_STATE, .state = 1 }, E(PORT_ERR) },
        { { .mask = VMRI_PORTA_STATE, .state = 1 }, 0 },
        { { .mask = VMRI_PORTA_STATE, .state = 2 }, 0 },
        { { .mask = VMRI_PORTA_STATE, .state = 3 }, 0 },
        { { .mask = VMRI_PORTA_STATE, .state = 4 }, E(PORT_ACTIVE) },
        { { .mask = VMRI_PORTA_STATE, .state = 3 }, E(PORT_ERR) },
        { { .mask = VMRI_PORTA_STATE, .state = 4 }, E(PORT_ACTIVE) },
        { { .mask = VMRI_PORTA_SM_LID, .sm_lid = 9 }, E(SM_CHANGE) },
        { { .mask = VMRI_PORTA_SM_LID, .sm_lid = 9 }, 0 },
        { { .mask = VMRI_PORTA_LID, .lid = 50 }, E(LID_CHANGE) },
        { { .mask = VMRI_PORTA_LID, .lid = 50 }, 0 },
        /* The port's own LID is the SM's again, and stays it. */
        { { .mask = VMRI_PORTA_SM_LID }, E(SM_CHANGE) },
        { { .mask = VMRI_PORTA_LID, .lid = VMRI_LID_MAX },
          E(LID_CHANGE) | E(SM_CHANGE) },
        { { .mask = VMRI_PORTA_PKEY, .pkeys = { 0x8001 } }, E(PKEY_CHANGE) },
        { { .mask = VMRI_PORTA_PKEY, .pkeys = { 0x0001 } }, E(PKEY_CHANGE) },
        { { .mask = VMRI_PORTA_PKEY, .pkeys = { 0x0001 } }, 0 },
        { { .mask = VMRI_PORTA_GID_PREFIX, .gid_prefix = 0x1234567 },
          E(GID_CHANGE) },
        { { .mask = VMRI_PORTA_REREGISTER }, E(CLIENT_REREGISTER) },
        { { .mask = VMRI_PORTA_REREGISTER }, E(CLIENT_REREGISTER) },
        { { .mask = 0, .lid = 7, .state = 77, .pkeys = { 5 } }, 0 },
        { { .mask = VMRI_PORTA_ALL, .state = 1, .lid = 60, .sm_lid = 61,
            .pkeys = { 0xffff }, .gid_prefix = 0xfe80000000000000ULL },
          E(PORT_ERR) | E(LID_CHANGE) | E(SM_CHANGE) | E(PKEY_CHANGE) |
          E(GID_CHANGE) | E(CLIENT_REREGISTER) },
    };
    struct guest *g = guest_new(1);
    struct vmri_dev_attr attr, before = g->attr;
    struct guest_eq *eq;
    unsigned int i;

    CHECK_EQ(try_port_eq(g, &eq), 0);
    CHECK_EQ(before.port_state, VMRI_PORT_ACTIVE);
    CHECK_EQ(before.sm_lid, before.lid);
    for ( i = 0; i < ARRAY_SIZE(steps); i++ )
    {
        struct vmri_ctl_port arg = steps[i].set;

        CHECK_AT(port_change(g, &arg), 0, "step %u", i);
        CHECK_AT(came(eq), steps[i].events, "step %u", i);
        attributes(g, &attr);
        CHECK_EQ(attr.port_state, arg.state);
        CHECK_EQ(attr.lid, arg.lid);
        CHECK_EQ(attr.sm_lid, arg.sm_lid);
        CHECK(!memcmp(attr.pkeys, arg.pkeys, sizeof(arg.pkeys)));
        CHECK_EQ(attr.gid_prefix, arg.gid_prefix);
    }
    CHECK_EQ(attr.lid, 60);
    CHECK_EQ(attr.sm_lid, 61);
    CHECK_EQ(attr.port_guid, before.port_guid);
}

TEST(port_bad_arguments)
{
    static const struct vmri_ctl_port bad[] = {
        { .mask = 0x40 },
        { .mask = 0x80000000U },
        { .reserved0 = 1 },
        { .reserved1 = 1 },
        { .mask = VMRI_PORTA_STATE, .state = 0 },
        { .mask = VMRI_PORTA_STATE, .state = 5 },
        { .mask = VMRI_PORTA_LID, .lid = 0 },
        { .mask = VMRI_PORTA_LID, .lid = 0xc000 },
        { .mask = VMRI_PORTA_SM_LID, .sm_lid = 0xffff },
        { .mask = VMRI_PORTA_PKEY, .pkeys = { 0 } },
        { .mask = VMRI_PORTA_PKEY, .pkeys = { 0x8000 } },
        { .mask = VMRI_PORTA_PKEY, .pkeys = { 0xffff, 0x8000 } },
        { .mask = VMRI_PORTA_PKEY, .pkeys = { 0xffff, 0x8001, 0, 0x0001 } },
        { .reserved2 = 1 },
        { .mask = VMRI_PORTA_GID_PREFIX, .gid_prefix = 0xff12ULL << 48 },
        /* One wrong value: nothing of the others changes. */
        { .mask = VMRI_PORTA_ALL, .state = 4, .lid = 77, .pkeys = { 1 },
          .sm_lid = 0xc000 },
    };
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_ctl_port arg;
    struct vmri_dev_attr attr;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        arg = bad[i];
        CHECK_AT(port_change(a, &arg), -EINVAL, "case %u", i);
    }
    arg = (struct vmri_ctl_port){
        .mask = VMRI_PORTA_LID | VMRI_PORTA_PKEY, .lid = b->lid, .pkeys = { 1 },
    };
    CHECK_EQ(port_change(a, &arg), -EEXIST);
    attributes(a, &attr);
    CHECK_EQ(memcmp(&attr, &a->attr, sizeof(attr)), 0);

    arg.domid = 77;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &arg, sizeof(arg)), -ESRCH);
    a->dev = 3;
    CHECK_EQ(port_change(a, &arg), -ENODEV);
    a->dev = 0;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, NULL, 0), -EFAULT);
    env_test_domain(3);
    arg.domid = 3;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &arg, sizeof(arg)), -ENODEV);
    CHECK_EQ(guest_call(a, VMRI_OP_ctl_port, &arg, sizeof(arg)), -EPERM);
    env_test_deny(true);
    CHECK_EQ(port_change(a, &arg), -EPERM);
    env_test_deny(false);
}

/* One EQ of a device has them; when it goes another may. */
TEST(port_events_have_one_queue)
{
    struct guest *g = guest_new(1);
    struct guest_eq *eq, *second, *third;
    unsigned int i;

    port_state(g, VMRI_PORT_DOWN);
    CHECK_EQ(try_port_eq(g, &eq), 0);
    CHECK_EQ(try_port_eq(g, &second), -EBUSY);
    CHECK_EQ(env_test_ports(g->domain), 2);
    port_state(g, VMRI_PORT_ACTIVE);
    CHECK_EQ(came(eq), E(PORT_ACTIVE));
    CHECK_EQ(eq_destroy(eq), 0);
    port_state(g, VMRI_PORT_DOWN);
    for ( i = 1; i < 3; i++ )
    {
        env_test_fail(ENV_FAIL_COPY_TO, 1);
        CHECK_EQ(try_port_eq(g, &second), -EFAULT);
        env_test_fail(ENV_FAIL_PORT, 1);
        CHECK(try_port_eq(g, &second) < 0);
    }
    CHECK_EQ(try_port_eq(g, &second), 0);
    CHECK_EQ(came(second), 0);
    port_state(g, VMRI_PORT_ACTIVE);
    CHECK_EQ(came(second), E(PORT_ACTIVE));

    /* Also when all goes at once. */
    CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy, NULL, 0), 0);
    port_state(g, VMRI_PORT_DOWN);
    guest_start(g);
    CHECK_EQ(try_port_eq(g, &third), 0);
    port_state(g, VMRI_PORT_ACTIVE);
    CHECK_EQ(came(third), E(PORT_ACTIVE));
}

/* Of what finds no room at last the truth is told. */
TEST(port_events_that_wait_are_true)
{
    struct guest *g = guest_new(1);
    struct vmri_event ev;
    struct guest_eq *eq;
    unsigned int i, n;

    CHECK_EQ(try_port_eq(g, &eq), 0);
    for ( n = 0; n < 2; n++ )
    {
        struct vmri_ctl_port arg = { .mask = VMRI_PORTA_REREGISTER };

        for ( i = 0; i < 16; i++ )
            CHECK_EQ(port_change(g, &arg), 0);
        for ( i = 0; i < 5; i++ )
            port_state(g, (i + n) % 2 ? VMRI_PORT_ACTIVE : VMRI_PORT_DOWN);
        for ( i = 0; i < 16; i++ )
        {
            CHECK(eq_poll(eq, &ev));
            CHECK_EQ(ev.type, VMRI_EVENT_CLIENT_REREGISTER);
        }
        CHECK(eq_poll(eq, &ev));
        CHECK_EQ(ev.type, n ? VMRI_EVENT_PORT_ACTIVE : VMRI_EVENT_PORT_ERR);
        CHECK(!eq_poll(eq, &ev));
    }

    /* Destroyed with some that wait. */
    for ( i = 0; i < 20; i++ )
    {
        struct vmri_ctl_port arg = { .mask = VMRI_PORTA_REREGISTER };

        CHECK_EQ(port_change(g, &arg), 0);
    }
    CHECK_EQ(eq_destroy(eq), 0);
    port_state(g, VMRI_PORT_DOWN);
}

/* ---- the device ---- */

static struct guest *fatal_guest;
static bool fatal_found;

static void look_for_device(void *unused)
{
    struct vmri_dev *dev = vmri_dev_get(fatal_guest->domain, 0);

    (void)unused;
    fatal_found = dev != NULL;
    if ( dev )
        vmri_dev_put(dev);
}

/* A device that is in use is not taken away before the guest was told. */
TEST(port_device_fatal_comes_first)
{
    struct guest *g = guest_new(1), *idle = guest_bare(2);
    uint32_t dev = VMRI_DEV_ANY;
    uint16_t lid = 0;
    struct guest_eq *eq;

    fatal_guest = g;
    CHECK_EQ(try_port_eq(g, &eq), 0);
    env_test_on_notify(1, look_for_device, NULL);
    CHECK_EQ(dom0_detach(1, 0), 0);
    CHECK(fatal_found);
    CHECK_EQ(eq->hdr->prod, 1);
    CHECK_EQ(eq->entry[0].type, VMRI_EVENT_DEVICE_FATAL);
    CHECK_EQ(env_test_ports(g->domain), 0);

    /* One that nobody uses, or where nobody listens, just goes. */
    CHECK_EQ(dom0_attach(2, GUEST_FABRIC, &dev, &lid), 0);
    CHECK_EQ(dom0_detach(2, dev), 0);
    CHECK_EQ(dom0_attach(2, GUEST_FABRIC, &dev, &lid), 0);
    idle->dev = dev;
    guest_start(idle);
    CHECK_EQ(dom0_detach(2, dev), 0);
}

/* ---- what peers notice ---- */

#define MS  1000000ULL

/* A port that is down is a silent peer, whosever it is. */
TEST(port_down_times_out)
{
    const struct guest_conn conn = { .timeout = 14, .retry_cnt = 2 };
    unsigned int who;

    for ( who = 0; who < 2; who++ )
    {
        struct pair p = pair_new(NULL, &conn);
        struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 100);
        uint8_t state = who ? VMRI_PORT_DOWN : VMRI_PORT_ARMED;

        port_state(who ? p.b : p.a, state);
        pair_send(&p, &wr);
        world_pass(180 * MS, MS);
        cq_expect_none(p.qa->scq);
        world_pass(40 * MS, MS);
        CHECK_EQ(cq_expect(p.qa->scq, 1, VMRI_WC_RETRY_EXC_ERR).vendor_err,
                 VMRI_VERR_NO_PEER);
        CHECK_EQ(qp_state(p.qb), VMRI_QPS_RTS);
        CHECK_EQ(dom0_detach(1, 0), 0);
        CHECK_EQ(dom0_detach(2, 0), 0);
        world_end();
        world_begin();
    }
}

/* A short one is survived, in the middle of a message too. */
TEST(port_short_down_is_survived)
{
    static const uint8_t timeouts[] = { 14, CONN_ZERO };
    unsigned int t, who;

    for ( t = 0; t < ARRAY_SIZE(timeouts); t++ )
        for ( who = 0; who < 2; who++ )
        {
            const struct guest_conn conn = {
                .timeout = timeouts[t], .retry_cnt = 7,
            };
            struct pair p = pair_new(NULL, &conn);
            struct guest *down = who ? p.b : p.a;
            struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 600000);

            fill_pattern(p.ma.mem, 600000, 1);
            pair_recv(&p, 2, 0, 600000);
            qp_post_send(p.qa, &wr);
            CHECK_EQ(guest_schedule(p.a, p.qa->qpn), VMRI_SCHEDULE_MORE);
            port_state(down, VMRI_PORT_DOWN);
            qp_ring(p.qa);
            world_pass(300 * MS, MS);
            cq_expect_none(p.qa->scq);
            cq_expect_none(p.qb->rcq);
            port_state(down, VMRI_PORT_ACTIVE);
            world_pass(1100 * MS, MS);
            cq_expect(p.qa->scq, 1, 0);
            CHECK_EQ(cq_expect(p.qb->rcq, 2, 0).byte_len, 600000);
            CHECK_EQ(match_pattern(p.mb.mem, 600000, 1, 0), 600000);
            world_end();
            world_begin();
        }
}

static uint64_t drops(struct guest *g)
{
    struct vmri_counters c;

    guest_counters(g, &c);
    return c.ud_drops;
}

/* Datagrams are lost, in both directions, to itself, and to a group. */
TEST(port_down_drops_datagrams)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&p.ma, 0, 100) }, .to = p.qb,
    };
    struct vmri_sge sge = mr_sge(&p.ma, 5000, 200);
    unsigned int who;

    CHECK_EQ(group_attach(p.qb, 1, 0xc001), 0);
    pair_recv(&p, 2, 0, 200);
    qp_recv(p.qa, 3, &sge, 1);
    for ( who = 0; who < 2; who++ )
    {
        uint64_t before = drops(p.a);

        port_state(who ? p.a : p.b, VMRI_PORT_DOWN);
        wr.to = p.qb;
        pair_send(&p, &wr);
        group_send(p.qa, &wr, 1, 0xc001);
        CHECK_EQ(drops(p.a), before + 1);
        wr.to = p.qa;
        if ( who )
            pair_send(&p, &wr);
        cq_expect_none(p.qb->rcq);
        cq_expect_none(p.qa->rcq);
        port_state(who ? p.a : p.b, VMRI_PORT_ACTIVE);
    }
    wr.to = p.qb;
    pair_send(&p, &wr);
    cq_expect(p.qb->rcq, 2, 0);
    CHECK_EQ(qp_state(p.qa), VMRI_QPS_RTS);
}

/* A datagram and a WRITE, both from a to b. */
struct crossing {
    struct pair p;              /* of datagrams */
    struct guest_qp *ra, *rb;   /* connected by whoever wants them to be */
    struct guest_wr send, write;
};

static struct crossing crossing_new(void)
{
    struct crossing x = { .p = pair_new(&ud, NULL) };

    x.ra = guest_qp(x.p.a, NULL);
    x.rb = guest_qp(x.p.b, NULL);
    x.send = (struct guest_wr){
        .wr_id = 1, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&x.p.ma, 0, 100) }, .to = x.p.qb,
    };
    x.write = (struct guest_wr){
        .wr_id = 5, .opcode = VMRI_WR_RDMA_WRITE, .flags = VMRI_SEND_SIGNALED,
    };
    return x;
}

/* Partitions: limited members hear full ones only. */
TEST(port_partitions)
{
    static const struct {
        uint16_t a, b;
        bool match;
    } pairs[] = {
        { 0xffff, 0xffff, true }, { 0x7fff, 0xffff, true },
        { 0xffff, 0x7fff, true }, { 0x7fff, 0x7fff, false },
        { 0x8001, 0x8002, false }, { 0x8001, 0x8001, true },
        { 0x8001, 0x0001, true }, { 0x0001, 0xffff, false },
    };
    const struct guest_conn conn = { .timeout = 8, .retry_cnt = 1 };
    struct crossing x = crossing_new();
    struct vmri_counters c, before;
    unsigned int i;

    CHECK_EQ(group_attach(x.p.qb, 1, 0xc001), 0);
    for ( i = 0; i < ARRAY_SIZE(pairs); i++ )
    {
        port_pkey(x.p.a, pairs[i].a);
        port_pkey(x.p.b, pairs[i].b);
        guest_counters(x.p.b, &before);
        pair_recv(&x.p, 2, 0, 200);
        pair_recv(&x.p, 3, 0, 200);
        pair_send(&x.p, &x.send);
        group_send(x.p.qa, &x.send, 1, 0xc001);
        guest_counters(x.p.b, &c);
        CHECK_AT(c.pkey_violations - before.pkey_violations,
                 pairs[i].match ? 0 : 2, "pair %u", i);
        if ( pairs[i].match )
        {
            cq_expect(x.p.qb->rcq, 2, 0);
            cq_expect(x.p.qb->rcq, 3, 0);
        }
        else
        {
            cq_expect_none(x.p.qb->rcq);
            qp_set_state(x.p.qb, VMRI_QPS_RESET);
            qp_connect(x.p.qb, x.p.qb, NULL);
        }
        qp_set_state(x.ra, VMRI_QPS_RESET);
        qp_set_state(x.rb, VMRI_QPS_RESET);
        qp_connect(x.ra, x.rb, &conn);
        qp_send(x.ra, &x.write);
        world_pass(20 * MS, MS);
        cq_expect(x.ra->scq, 5, pairs[i].match ? 0 : VMRI_WC_RETRY_EXC_ERR);
        cq_expect(x.p.qa->scq, 1, 0);
        cq_expect(x.p.qa->scq, 1, 0);
    }
}

static void set_table(struct guest *g, const struct vmri_ctl_port *table)
{
    struct vmri_ctl_port arg = *table;

    arg.mask = VMRI_PORTA_PKEY;
    CHECK_EQ(port_change(g, &arg), 0);
}

static const struct vmri_ctl_port table_a = {
    .pkeys = { 0xffff, 0x8001, 0, 0x0002 },
};
static const struct vmri_ctl_port table_b = {
    .pkeys = { 0xffff, 0x8002, [VMRI_MAX_PKEYS - 1] = 0x8001 },
};

/* A queue pair is of the partition that its index names, wherever that stands. */
TEST(port_partition_of_a_queue_pair)
{
    static const struct {
        uint16_t a, b;
        bool match;
    } pairs[] = {
        { 0, 0, true }, { 1, VMRI_MAX_PKEYS - 1, true }, { 3, 1, true },
        { 1, 1, false }, { 0, 1, false }, { 2, 2, false }, { 0, 2, false },
    };
    struct crossing x = crossing_new();
    unsigned int i;

    set_table(x.p.a, &table_a);
    set_table(x.p.b, &table_b);
    for ( i = 0; i < ARRAY_SIZE(pairs); i++ )
    {
        const struct guest_conn of_a = { .timeout = 8, .retry_cnt = 1,
                                         .pkey_index = pairs[i].a };
        const struct guest_conn of_b = { .pkey_index = pairs[i].b };

        qp_connect_again(x.p.qa, x.p.qa, &of_a);
        qp_connect_again(x.p.qb, x.p.qb, &of_b);
        pair_recv(&x.p, 2, 0, 200);
        pair_send(&x.p, &x.send);
        cq_expect(x.p.qa->scq, 1, 0);
        if ( pairs[i].match )
            cq_expect(x.p.qb->rcq, 2, 0);
        else
            cq_expect_none(x.p.qb->rcq);

        qp_connect_again(x.rb, x.ra, &of_b);
        qp_connect_again(x.ra, x.rb, &of_a);
        qp_send(x.ra, &x.write);
        world_pass(20 * MS, MS);
        cq_expect(x.ra->scq, 5, pairs[i].match ? 0 : VMRI_WC_RETRY_EXC_ERR);
    }
}

/* QP1 hears all partitions of its port, and is told which one it was. */
TEST(port_partitions_of_qp1)
{
    static const struct {
        uint8_t a;
        int b;                  /* -1: not heard */
    } pairs[] = {
        { 0, 0 }, { 1, VMRI_MAX_PKEYS - 1 }, { 3, 1 }, { 2, -1 },
        { VMRI_MAX_PKEYS, -1 }, { 255, -1 },
    };
    struct guest_qp_opts gsi = { .type = VMRI_QPT_GSI, .kernel = true };
    struct pair p = pair_new(&gsi, NULL);
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&p.ma, 0, 256) }, .to = p.qb,
    };
    unsigned int i;

    set_table(p.a, &table_a);
    set_table(p.b, &table_b);
    for ( i = 0; i < ARRAY_SIZE(pairs); i++ )
    {
        pair_recv(&p, 2, 0, 1000);
        wr.pkey_index = pairs[i].a;
        pair_send(&p, &wr);
        cq_expect(p.qa->scq, 1, 0);
        if ( pairs[i].b >= 0 )
            CHECK_AT(cq_expect(p.qb->rcq, 2, 0).pkey_index, pairs[i].b,
                     "case %u", i);
        else
            cq_expect_none(p.qb->rcq);
    }
}

/* One that waits for ever for a peer of another partition is not forgotten. */
TEST(port_partition_that_comes_back)
{
    const struct guest_conn conn = { .timeout = CONN_ZERO };
    struct pair p = pair_new(NULL, &conn);
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_RDMA_WRITE, .flags = VMRI_SEND_SIGNALED,
    };

    port_pkey(p.b, 0x8001);
    pair_send(&p, &wr);
    world_pass(5000 * MS, 100 * MS);
    cq_expect_none(p.qa->scq);
    port_pkey(p.b, 0xffff);
    world_pass(5000 * MS, 100 * MS);
    cq_expect(p.qa->scq, 1, 0);
}

/* With another LID it is found there, and nowhere else. */
TEST(port_moves_to_another_lid)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&p.ma, 0, 100) }, .to = p.qb,
    };
    struct vmri_ctl_port arg = { .mask = VMRI_PORTA_LID, .lid = 1000 };
    uint32_t dev = VMRI_DEV_ANY;
    uint16_t old = p.b->lid;
    struct guest *c = guest_bare(3);

    CHECK_EQ(group_attach(p.qb, 1, 0xc001), 0);
    CHECK_EQ(port_change(p.b, &arg), 0);
    pair_recv(&p, 2, 0, 200);
    pair_send(&p, &wr);
    CHECK_EQ(drops(p.a), 1);
    group_send(p.qa, &wr, 1, 0xc001);
    cq_expect(p.qb->rcq, 2, 0);
    p.b->lid = 1000;
    pair_recv(&p, 3, 0, 200);
    pair_send(&p, &wr);
    cq_expect(p.qb->rcq, 3, 0);

    /* The sender's is what the receiver sees. */
    arg.lid = 2000;
    CHECK_EQ(port_change(p.a, &arg), 0);
    pair_recv(&p, 4, 0, 200);
    pair_send(&p, &wr);
    CHECK_EQ(cq_expect(p.qb->rcq, 4, 0).slid, 2000);

    /* The number is free again. */
    CHECK_EQ(dom0_attach(3, GUEST_FABRIC, &dev, &old), 0);
    c->dev = dev;
}

/* ---- at once ---- */

static uint32_t stop;           /* atomic */

static void *run_operator(void *data)
{
    struct guest *g = data;
    unsigned int n;

    for ( n = 0; !env_load(&stop); n++ )
    {
        struct vmri_ctl_port arg = {
            .mask = n % 4 ? VMRI_PORTA_ALL : VMRI_PORTA_STATE,
            .state = n % 4 ? 4 : 1, .lid = (uint16_t)(100 + n % 3),
            .sm_lid = (uint16_t)(n % 5), .pkeys = { (uint16_t)(0x8001 + n % 2) },
            .gid_prefix = n,
        };

        CHECK_EQ(port_change(g, &arg), 0);
        vmri_dump();
        sched_yield();
    }
    return NULL;
}

static void *run_eqs(void *data)
{
    struct guest *g = data;
    struct guest_eq *eq;
    struct vmri_event ev;

    while ( !env_load(&stop) )
    {
        CHECK_EQ(try_port_eq(g, &eq), 0);
        while ( eq_poll(eq, &ev) )
            CHECK_EQ(ev.id, 0);
        CHECK_EQ(eq_destroy(eq), 0);
        sched_yield();
    }
    return NULL;
}

/* Whatever arrives is whole, while the receiver's port changes all the time. */
THREAD_TEST(port_changes_under_traffic)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest other = *p.b;
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&p.ma, 0, 1000) }, .to = p.qb,
    };
    pthread_t thread[2];
    unsigned int n, got = 0;
    struct vmri_cqe cqe;

    CHECK_EQ(group_attach(p.qb, 1, 0xc001), 0);
    fill_pattern(p.ma.mem, 1000, 1);
    pthread_create(&thread[0], NULL, run_operator, p.b);
    pthread_create(&thread[1], NULL, run_eqs, &other);
    for ( n = 0; n < 600; n++ )
    {
        if ( p.qb->prod_r - got < 8 )
            pair_recv(&p, 2, 0, 1040);
        p.b->lid = (uint16_t)(100 + n % 3);
        if ( n % 2 )
            pair_send(&p, &wr);
        else
            group_send(p.qa, &wr, 1, 0xc001);
        while ( !cq_poll(p.qa->scq, &cqe) )
            sched_yield();
        CHECK_EQ(cqe.status, 0);
        while ( cq_poll(p.qb->rcq, &cqe) )
        {
            CHECK_EQ(cqe.status, 0);
            CHECK_EQ(cqe.byte_len, GRH + 1000);
            got++;
        }
        sched_yield();
    }
    env_store(&stop, 1);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
}
