/* SPDX-License-Identifier: GPL-2.0-only */
/* rule.c, steer.c: who may talk to whom on a fabric, and what becomes of it. */
#include "group.h"
#include "internal.h"

#undef memcpy
#undef memset

#define FABRIC  5
#define GROUP_A 100
#define GROUP_B 200
#define MLID    0xc001

static const struct guest_qp_opts ud = { .type = VMRI_QPT_UD };

/* ---- what dom0 does ---- */

static void fabric_new(void)
{
    struct vmri_ctl_fabric arg = { .fabric = FABRIC };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_fabric_create, &arg, sizeof(arg)), 0);
}

static struct guest *member(unsigned int domid, uint32_t group)
{
    struct vmri_ctl_attach arg = {
        .domid = domid, .fabric = FABRIC, .group = group,
    };
    struct guest *g = guest_bare(domid);

    CHECK_EQ(dom0_call(VMRI_OP_ctl_attach, &arg, sizeof(arg)), 0);
    guest_start(g);
    return g;
}

/* Number of the new rule. */
static uint32_t rule_add(unsigned int direction, uint32_t group,
                         uint32_t remote_group)
{
    struct vmri_ctl_rule arg = {
        .fabric = FABRIC, .direction = (uint8_t)direction, .group = group,
        .remote_group = remote_group,
    };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_rule_add, &arg, sizeof(arg)), 0);
    return arg.rule;
}

/* The same for addresses; of a guest's GID the first `bits`. */
static struct vmri_ctl_rule rule_prefix(unsigned int direction,
                                        const struct guest *remote,
                                        unsigned int bits)
{
    struct vmri_ctl_rule arg = {
        .fabric = FABRIC, .direction = (uint8_t)direction,
        .bits = (uint8_t)bits,
    };
    unsigned int i;

    for ( i = 0; i < bits; i++ )
    {
        uint64_t w = i < 64 ? remote->attr.gid_prefix : remote->attr.port_guid;

        if ( w >> (63 - i % 64) & 1 )
            arg.prefix[i / 8] |= 0x80 >> i % 8;
    }
    return arg;
}

static long rule_call(unsigned int cmd, struct vmri_ctl_rule *arg)
{
    return dom0_call(cmd, arg, sizeof(*arg));
}

static long rule_del(uint32_t rule)
{
    struct vmri_ctl_rule arg = { .fabric = FABRIC, .rule = rule };

    return rule_call(VMRI_OP_ctl_rule_del, &arg);
}

/* ---- what guests do ---- */

struct talk {
    struct guest_qp *from, *to;
    struct guest_mr mr[2];
};

static struct talk talk_new(struct guest *from, struct guest *to,
                            const struct guest_qp_opts *opts)
{
    struct talk t = { guest_qp(from, opts), guest_qp(to, opts), { { 0 } } };

    t.mr[0] = guest_mr(from, 4096, 0, LAYOUT_RUN, VMRI_ACCESS_LOCAL_WRITE);
    t.mr[1] = guest_mr(to, 4096, 0, LAYOUT_RUN, VMRI_ACCESS_LOCAL_WRITE |
                                                VMRI_ACCESS_REMOTE_WRITE);
    return t;
}

/* What the step to RTR gives, from RESET. */
static long try_connect(struct guest_qp *qp, struct guest_qp *peer)
{
    struct vmri_qp_modify arg;
    long rc;

    qp_to(qp, peer, VMRI_QPS_INIT, NULL);
    qp_attr(qp, peer, VMRI_QPS_RTR, NULL, &arg);
    rc = qp_modify(qp, &arg);
    CHECK_EQ(qp_state(qp), rc ? VMRI_QPS_INIT : VMRI_QPS_RTR);
    qp_set_state(qp, VMRI_QPS_RESET);
    return rc;
}

/* Both sides of a connection get the same answer. */
static long may_connect(struct guest *a, struct guest *b)
{
    struct guest_qp *qa = guest_qp(a, NULL), *qb = guest_qp(b, NULL);
    long rc = try_connect(qa, qb);

    CHECK_EQ(try_connect(qb, qa), rc);
    CHECK_EQ(qp_destroy(qa), 0);
    CHECK_EQ(qp_destroy(qb), 0);
    return rc;
}

static void talk_write(struct talk *t, uint8_t status)
{
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_RDMA_WRITE, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&t->mr[0], 0, 100) },
        .remote_addr = t->mr[1].iova, .rkey = t->mr[1].key,
    };

    qp_send(t->from, &wr);
    cq_expect(t->from->scq, 1, status);
}

/* Does a datagram arrive? */
static bool talk_send(struct talk *t)
{
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&t->mr[0], 0, 100) }, .to = t->to,
    };
    struct vmri_sge in = mr_sge(&t->mr[1], 0, 1000);
    struct vmri_cqe cqe;

    qp_recv(t->to, 2, &in, 1);
    qp_send(t->from, &wr);
    cq_expect(t->from->scq, 1, 0);
    return cq_poll(t->to->rcq, &cqe);
}

/* ---- who may ---- */

TEST(rule_without_any_all_is_allowed)
{
    struct guest *a, *b;
    uint32_t rule;

    fabric_new();
    a = member(1, 0);
    b = member(2, 0);
    CHECK_EQ(may_connect(a, b), 0);

    /* With one, who is not let in is not; but to oneself. */
    rule = rule_add(VMRI_RULE_INGRESS, GROUP_A, GROUP_B);
    CHECK_EQ(may_connect(a, b), -EPERM);
    CHECK_EQ(may_connect(a, a), 0);
    CHECK_EQ(rule_del(VMRI_RULE_ALL), 0);
    CHECK_EQ(may_connect(a, b), 0);
    CHECK_EQ(rule_del(rule), -ENOENT);
}

static struct vmri_ctl_fabric fabric_listed(void)
{
    struct vmri_ctl_fabric arg = { .fabric = FABRIC };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_fabric_list, &arg, sizeof(arg)), 0);
    return arg;
}

/* Who deletes the last permission does not permit all. */
TEST(rule_the_last_leaves_it_closed)
{
    struct guest *a, *b;
    struct talk t;

    fabric_new();
    a = member(1, 0);
    b = member(2, 0);
    CHECK(!fabric_listed().closed);
    t = talk_new(a, b, NULL);
    CHECK_EQ(rule_del(VMRI_RULE_ALL), 0);
    CHECK(!fabric_listed().closed);
    qp_connect(t.from, t.to, NULL);
    CHECK_EQ(rule_add(VMRI_RULE_INGRESS, 0, 0), 1);
    talk_write(&t, 0);
    CHECK_EQ(rule_del(1), 0);
    CHECK_EQ(qp_state(t.from), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(t.to), VMRI_QPS_ERR);
    CHECK_EQ(may_connect(a, b), -EPERM);
    CHECK_EQ(may_connect(a, a), 0);
    CHECK(fabric_listed().closed && !fabric_listed().rules);

    /* Groups, too; and without a rule it opens as it does with some. */
    CHECK_EQ(group_attach(guest_qp(a, &ud), 1, MLID), -EPERM);
    CHECK_EQ(rule_del(VMRI_RULE_ALL), 0);
    CHECK(!fabric_listed().closed);
    CHECK_EQ(may_connect(a, b), 0);
}

/* One way is enough, and which way makes no difference. */
TEST(rule_groups)
{
    struct guest *a, *b, *c;

    fabric_new();
    a = member(1, GROUP_A);
    b = member(2, GROUP_B);
    c = member(3, 0);
    rule_add(VMRI_RULE_INGRESS, GROUP_A, GROUP_B);
    CHECK_EQ(may_connect(a, b), 0);
    CHECK_EQ(may_connect(b, c), -EPERM);
    CHECK_EQ(may_connect(a, c), -EPERM);
    rule_add(VMRI_RULE_INGRESS, 0, GROUP_B);
    CHECK_EQ(may_connect(b, c), 0);
    CHECK_EQ(may_connect(a, c), -EPERM);
    rule_add(VMRI_RULE_INGRESS, GROUP_A, 0);
    CHECK_EQ(may_connect(a, c), 0);
}

TEST(rule_prefixes)
{
    static const unsigned int bits[] = { 0, 1, 63, 64, 65, 100, 127, 128 };
    struct vmri_ctl_rule arg;
    struct guest *a, *b;
    unsigned int i;

    fabric_new();
    a = member(1, 0);
    b = member(2, 0);
    for ( i = 0; i < ARRAY_SIZE(bits); i++ )
    {
        arg = rule_prefix(VMRI_RULE_INGRESS, b, bits[i]);
        CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &arg), 0);
        CHECK_AT(may_connect(a, b), 0, "%u bits", bits[i]);
        CHECK_EQ(rule_del(arg.rule), 0);

        /* The last bit is another. */
        if ( !bits[i] )
            continue;
        arg.prefix[(bits[i] - 1) / 8] ^= 0x80 >> (bits[i] - 1) % 8;
        arg.rule = 0;
        CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &arg), 0);
        CHECK_AT(may_connect(a, b), -EPERM, "not %u bits", bits[i]);
        CHECK_EQ(rule_del(arg.rule), 0);
    }
}

/* Without an egress rule all is open, with one what it says. */
TEST(rule_egress)
{
    struct guest *a, *b, *c;
    uint32_t rule;

    fabric_new();
    a = member(1, GROUP_A);
    b = member(2, GROUP_B);
    c = member(3, 0);
    rule_add(VMRI_RULE_INGRESS, 0, GROUP_A);
    CHECK_EQ(may_connect(a, b), 0);
    CHECK_EQ(may_connect(a, c), 0);
    CHECK_EQ(may_connect(b, c), -EPERM);
    rule = rule_add(VMRI_RULE_EGRESS, GROUP_A, GROUP_B);
    CHECK_EQ(may_connect(a, b), 0);
    CHECK_EQ(may_connect(a, c), -EPERM);
    /* It is not for others. */
    rule_add(VMRI_RULE_INGRESS, GROUP_B, 0);
    CHECK_EQ(may_connect(b, c), 0);
    CHECK_EQ(rule_del(rule), 0);
    CHECK_EQ(may_connect(a, c), 0);
}

TEST(rule_of_datagrams)
{
    struct guest *a, *b, *c;
    struct vmri_counters n;
    struct talk t, other;
    uint32_t rule;

    fabric_new();
    a = member(1, GROUP_A);
    b = member(2, GROUP_B);
    c = member(3, 0);
    t = talk_new(a, b, &ud);
    qp_connect(t.from, t.to, NULL);
    other = t;
    other.to = guest_qp(c, &ud);
    other.mr[1] = guest_mr(c, 4096, 0, LAYOUT_RUN, VMRI_ACCESS_LOCAL_WRITE);
    qp_to(other.to, t.from, VMRI_QPS_INIT, NULL);
    qp_to(other.to, t.from, VMRI_QPS_RTR, NULL);
    CHECK(talk_send(&t) && talk_send(&other));

    rule = rule_add(VMRI_RULE_INGRESS, GROUP_B, GROUP_A);
    CHECK(talk_send(&t));
    CHECK(!talk_send(&other));
    guest_counters(a, &n);
    CHECK_EQ(n.ud_drops, 1);
    CHECK(talk_send(&t));
    rule_add(VMRI_RULE_INGRESS, GROUP_A, GROUP_A);
    CHECK_EQ(rule_del(rule), 0);
    CHECK(!talk_send(&t));
    CHECK_EQ(qp_state(t.from), VMRI_QPS_RTS);
}

static bool group_arrives(struct guest_qp *from, struct guest_qp *to,
                          const struct guest_mr *mr)
{
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .to = from,
    };
    struct vmri_sge in = mr_sge(mr, 0, 1000);
    struct vmri_cqe cqe;

    qp_recv(to, 2, &in, 1);
    group_send(from, &wr, 1, MLID);
    cq_expect(from->scq, 1, 0);
    return cq_poll(to->rcq, &cqe);
}

/* Attaching takes a rule for the group's address, and delivery both. */
TEST(rule_of_multicast)
{
    struct vmri_ctl_rule groups = { .fabric = FABRIC, .bits = 8,
                                    .prefix = { 0xff } };
    struct guest_qp *qp, *to;
    struct guest_mr mr;
    struct guest *a, *b;
    uint32_t pair;

    fabric_new();
    a = member(1, GROUP_A);
    b = member(2, GROUP_B);
    qp = guest_qp(a, &ud);
    to = guest_qp(b, &ud);
    qp_connect(qp, to, NULL);
    mr = guest_mr(b, 4096, 0, LAYOUT_RUN, VMRI_ACCESS_LOCAL_WRITE);
    pair = rule_add(VMRI_RULE_INGRESS, GROUP_B, GROUP_A);
    CHECK_EQ(group_attach(to, 1, MLID), -EPERM);
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &groups), 0);
    CHECK_EQ(group_attach(to, 1, MLID), 0);
    CHECK(group_arrives(qp, to, &mr));

    /* Each of the two is needed; what is attached stays so. */
    CHECK_EQ(rule_del(pair), 0);
    CHECK(!group_arrives(qp, to, &mr));
    pair = rule_add(VMRI_RULE_INGRESS, GROUP_B, GROUP_A);
    CHECK_EQ(rule_del(groups.rule), 0);
    CHECK(!group_arrives(qp, to, &mr));
    groups.rule = 0;
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &groups), 0);
    CHECK(group_arrives(qp, to, &mr));

    /* An egress rule that does not name it. */
    rule_add(VMRI_RULE_EGRESS, GROUP_A, GROUP_B);
    CHECK(!group_arrives(qp, to, &mr));
    groups.rule = 0;
    groups.direction = VMRI_RULE_EGRESS;
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &groups), 0);
    CHECK(group_arrives(qp, to, &mr));
}

/* ---- changes ---- */

/* Connections that are forbidden now end, also idle ones; others do not notice. */
TEST(rule_change_ends_connections)
{
    struct guest *a, *b, *c;
    struct talk bad, good, idle;
    uint32_t rule;

    fabric_new();
    a = member(1, GROUP_A);
    b = member(2, GROUP_B);
    c = member(3, 0);
    rule = rule_add(VMRI_RULE_INGRESS, GROUP_A, GROUP_B);
    rule_add(VMRI_RULE_INGRESS, 0, GROUP_A);
    bad = talk_new(a, b, NULL);
    good = talk_new(a, c, NULL);
    idle = talk_new(b, c, NULL);
    qp_connect(bad.from, bad.to, NULL);
    qp_connect(good.from, good.to, NULL);
    talk_write(&bad, 0);
    talk_write(&good, 0);

    /* What it allows, another does, too. */
    CHECK_EQ(rule_del(rule), 0);
    talk_write(&bad, 0);
    rule = rule_add(VMRI_RULE_EGRESS, GROUP_A, 77);
    CHECK_EQ(qp_state(bad.from), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(bad.to), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(good.from), VMRI_QPS_ERR);
    CHECK_EQ(rule_del(rule), 0);
    world_settle();
    CHECK_EQ(a->events[VMRI_EVENT_QP_FATAL], 2);
    CHECK_EQ(b->events[VMRI_EVENT_QP_FATAL], 1);
    talk_write(&bad, VMRI_WC_WR_FLUSH_ERR);

    /* One to another is not touched. */
    rule_add(VMRI_RULE_INGRESS, 0, GROUP_B);
    qp_connect(idle.from, idle.to, NULL);
    rule_add(VMRI_RULE_EGRESS, GROUP_A, 77);
    talk_write(&idle, 0);
    CHECK_EQ(c->events[VMRI_EVENT_QP_FATAL], 1);
}

/* Many of them end in the pieces of a command that goes on. */
TEST(rule_change_is_preempted)
{
    enum { N = 150 };
    struct guest_qp *qa[N], *qb[N];
    struct guest *a, *b, *c, dom0 = { .domain = env_test_domain(0) };
    struct vmri_ctl_rule arg = { .fabric = FABRIC };
    struct guest_cq *cq[2];
    struct guest_qp_opts opts[2] = { { 0 }, { 0 } };
    struct talk other, last;
    unsigned int i, calls = 1;
    long rc;

    fabric_new();
    a = member(1, GROUP_A);
    b = member(2, GROUP_B);
    c = member(3, 0);
    arg.rule = rule_add(VMRI_RULE_INGRESS, GROUP_A, GROUP_B);
    rule_add(VMRI_RULE_INGRESS, 0, GROUP_A);
    rule_add(VMRI_RULE_INGRESS, 77, 77);
    for ( i = 0; i < 2; i++ )
    {
        cq[i] = guest_cq(i ? b : a, 9);
        opts[i].scq = opts[i].rcq = cq[i];
    }
    for ( i = 0; i < N; i++ )
    {
        qa[i] = guest_qp(a, &opts[0]);
        qb[i] = guest_qp(b, &opts[1]);
        qp_connect(qa[i], qb[i], NULL);
    }
    other = talk_new(a, c, NULL);
    qp_connect(other.from, other.to, NULL);
    last = talk_new(b, a, NULL);
    last.from = qb[N - 1];
    last.to = qa[N - 1];
    talk_write(&last, 0);
    talk_write(&last, 0);

    CHECK_EQ(rule_del(2), 0);
    CHECK_EQ(qp_state(other.from), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(qa[0]), VMRI_QPS_RTS);
    rc = guest_call_once(&dom0, VMRI_OP_ctl_rule_del, &arg, sizeof(arg));
    CHECK_EQ(rc, -ERESTART);
    CHECK_EQ(qp_state(qa[0]), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(qb[N - 1]), VMRI_QPS_RTS);
    /* Messages ask at once, though its turn is yet to come. */
    talk_write(&last, VMRI_WC_RETRY_EXC_ERR);
    while ( rc == -ERESTART )
    {
        rc = guest_call_once(&dom0, VMRI_OP_ctl_rule_del | VMRI_CONTINUE, &arg,
                             sizeof(arg));
        calls++;
    }
    CHECK_EQ(rc, 0);
    CHECK(calls >= 2 * N / 64);
    for ( i = 0; i < N; i++ )
    {
        CHECK_EQ(qp_state(qa[i]), VMRI_QPS_ERR);
        CHECK_EQ(qp_state(qb[i]), VMRI_QPS_ERR);
    }
}

/* A peer that comes when the queue pair is connected already. */
TEST(rule_for_a_device_that_comes_later)
{
    struct guest *a, *b, *heir;
    struct talk t;

    fabric_new();
    a = member(1, GROUP_A);
    b = member(2, GROUP_B);
    heir = guest_bare(3);
    heir->lid = 33;
    rule_add(VMRI_RULE_INGRESS, GROUP_A, GROUP_B);
    t = talk_new(a, b, NULL);
    t.to->guest = heir;
    qp_to(t.from, t.to, VMRI_QPS_INIT, NULL);
    qp_to(t.from, t.to, VMRI_QPS_RTR, NULL);
    qp_to(t.from, t.to, VMRI_QPS_RTS, NULL);
    CHECK_EQ(dom0_attach(3, FABRIC, &heir->dev, &heir->lid), 0);
    CHECK_EQ(heir->lid, 33);
    talk_write(&t, VMRI_WC_RETRY_EXC_ERR);
}

/* Another address may be another matter. */
TEST(rule_when_a_gid_changes)
{
    struct vmri_ctl_rule arg;
    struct vmri_ctl_port port = { .mask = VMRI_PORTA_GID_PREFIX };
    struct guest *a, *b;
    struct talk t;

    fabric_new();
    a = member(1, 0);
    b = member(2, 0);
    arg = rule_prefix(VMRI_RULE_INGRESS, a, 64);
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &arg), 0);
    t = talk_new(a, b, NULL);
    qp_connect(t.from, t.to, NULL);
    talk_write(&t, 0);
    port.gid_prefix = 0x1234;
    for ( port.domid = 1; port.domid < 3; port.domid++ )
        CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &port, sizeof(port)), 0);
    talk_write(&t, VMRI_WC_RETRY_EXC_ERR);
}

/* Messages of a connection take no look at rules, and no lock of all. */
TEST(rule_is_asked_once_a_connection)
{
    struct guest *a, *b;
    struct talk t;
    unsigned int i;

    fabric_new();
    a = member(1, GROUP_A);
    b = member(2, GROUP_B);
    rule_add(VMRI_RULE_INGRESS, GROUP_B, GROUP_A);
    t = talk_new(a, b, NULL);
    qp_connect(t.from, t.to, NULL);
    env_test_connect_asked();
    for ( i = 0; i < 10; i++ )
        talk_write(&t, 0);
    CHECK_EQ(env_test_connect_asked(), 1);
    rule_add(VMRI_RULE_INGRESS, GROUP_B, GROUP_B);
    for ( i = 0; i < 10; i++ )
        talk_write(&t, 0);
    CHECK_EQ(env_test_connect_asked(), 1);
}

/* ---- bookkeeping ---- */

TEST(rule_list)
{
    struct vmri_ctl_rule arg, a;
    unsigned int i;

    fabric_new();
    for ( i = 1; i <= 5; i++ )
        CHECK_EQ(rule_add(i & 1, i, 10 * i), i);
    CHECK_EQ(rule_del(2), 0);
    CHECK_EQ(rule_del(2), -ENOENT);
    arg = (struct vmri_ctl_rule){ .fabric = FABRIC };
    for ( i = 1; i <= 5; i += 1 + (i == 1) )
    {
        CHECK_EQ(rule_call(VMRI_OP_ctl_rule_list, &arg), 0);
        CHECK_EQ(arg.rule, i);
        CHECK_EQ(arg.direction, i & 1);
        CHECK_EQ(arg.group, i);
        CHECK_EQ(arg.remote_group, 10 * i);
        arg.rule++;
    }
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_list, &arg), -ENOENT);

    /* The lowest number is the next. */
    a = (struct vmri_ctl_rule){ .fabric = FABRIC, .bits = 9,
                                .prefix = { 0xff, 0x80 } };
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &a), 0);
    CHECK_EQ(a.rule, 2);
    arg = (struct vmri_ctl_rule){ .fabric = FABRIC, .rule = 2 };
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_list, &arg), 0);
    CHECK_EQ(memcmp(&arg, &a, sizeof(a)), 0);
    CHECK_EQ(rule_del(VMRI_RULE_ALL), 0);
    arg.rule = 0;
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_list, &arg), -ENOENT);
    CHECK_EQ(rule_del(VMRI_RULE_ALL), 0);
}

TEST(rule_refused)
{
    struct guest *g = guest_new(1);
    static const struct {
        struct vmri_ctl_rule arg;
        long rc;
    } bad[] = {
        { { .fabric = FABRIC, .rule = 1 }, -EINVAL },
        { { .fabric = FABRIC, .direction = 2 }, -EINVAL },
        { { .fabric = FABRIC, .protocol = 3 }, -EINVAL },
        { { .fabric = FABRIC, .protocol = VMRI_RULE_ROCE }, -EOPNOTSUPP },
        { { .fabric = FABRIC, .bits = 129 }, -EINVAL },
        { { .fabric = FABRIC, .bits = 7, .prefix = { 1 } }, -EINVAL },
        { { .fabric = FABRIC, .bits = 64, .prefix = { [8] = 128 } }, -EINVAL },
        { { .fabric = FABRIC, .reserved0 = 1 }, -EINVAL },
        { { .fabric = FABRIC, .reserved1 = 1 }, -EINVAL },
        { { .fabric = FABRIC + 1 }, -ENOENT },
        { { .fabric = GUEST_FABRIC }, -ENOENT },
    };
    struct vmri_ctl_rule arg;
    unsigned int i;

    fabric_new();
    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        arg = bad[i].arg;
        CHECK_AT(rule_call(VMRI_OP_ctl_rule_add, &arg), bad[i].rc, "case %u",
                 i);
    }
    arg = (struct vmri_ctl_rule){ .fabric = GUEST_FABRIC };
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_del, &arg), -ENOENT);
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_list, &arg), -ENOENT);
    for ( i = VMRI_OP_ctl_rule_add; i <= VMRI_OP_ctl_rule_list; i++ )
    {
        CHECK_EQ(guest_call(g, i, &arg, sizeof(arg)), -EPERM);
        CHECK_EQ(dom0_call(i, &arg, sizeof(arg) - 1), -EFAULT);
    }
    arg = (struct vmri_ctl_rule){ .fabric = FABRIC };
    env_test_fail(ENV_FAIL_ALLOC, 1);
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &arg), -ENOMEM);
    env_test_fail(ENV_FAIL_COPY_TO, 1);
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &arg), -EFAULT);
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_list, &arg), -ENOENT);
}

/* So many, and no more, and what is deleted is free again. */
TEST(rule_number_of_them_is_limited)
{
    struct vmri_ctl_fabric f = { .fabric = FABRIC };
    struct vmri_ctl_rule arg;
    unsigned int i, n;

    for ( n = 0; n < VMRI_RULES_ALL / VMRI_RULES + 1; n++ )
    {
        f = (struct vmri_ctl_fabric){ .fabric = FABRIC + n };
        CHECK_EQ(dom0_call(VMRI_OP_ctl_fabric_create, &f, sizeof(f)), 0);
        for ( i = 0; i < VMRI_RULES; i++ )
        {
            arg = (struct vmri_ctl_rule){ .fabric = FABRIC + n };
            if ( rule_call(VMRI_OP_ctl_rule_add, &arg) )
                break;
        }
        CHECK_EQ(i, n < VMRI_RULES_ALL / VMRI_RULES ? VMRI_RULES : 0);
        arg = (struct vmri_ctl_rule){ .fabric = FABRIC + n };
        CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &arg), -ENOSPC);
    }
    arg.fabric = FABRIC + 1;
    arg.rule = VMRI_RULE_ALL;
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_del, &arg), 0);
    for ( i = 1; i <= VMRI_RULES; i++ )
    {
        arg.rule = 0;
        CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &arg), 0);
        CHECK_EQ(arg.rule, i);
    }
    f.fabric = FABRIC;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_fabric_delete, &f, sizeof(f)), 0);
    arg = (struct vmri_ctl_rule){ .fabric = FABRIC + n - 1 };
    CHECK_EQ(rule_call(VMRI_OP_ctl_rule_add, &arg), 0);
}

/* Rules change all the time, and never is anything delivered that none allows. */
struct changes {
    struct talk t;
    uint32_t stop;
};

static void *send_on(void *data)
{
    struct changes *c = data;

    while ( !env_load(&c->stop) )
        CHECK(!talk_send(&c->t));
    return NULL;
}

THREAD_TEST(rule_threads)
{
    struct changes c = { .stop = 0 };
    struct guest *a, *b;
    pthread_t thread;
    unsigned int i;

    fabric_new();
    a = member(1, GROUP_A);
    b = member(2, GROUP_B);
    rule_add(VMRI_RULE_INGRESS, GROUP_A, GROUP_A);
    c.t = talk_new(a, b, &ud);
    qp_connect(c.t.from, c.t.to, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, send_on, &c), 0);
    for ( i = 0; i < 200; i++ )
    {
        uint32_t rule = rule_add(VMRI_RULE_INGRESS, GROUP_B, GROUP_B);

        CHECK_EQ(rule_del(rule), 0);
        CHECK_EQ(may_connect(a, a), 0);
    }
    env_store(&c.stop, 1);
    pthread_join(thread, NULL);
}
