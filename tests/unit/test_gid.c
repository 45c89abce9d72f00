/* SPDX-License-Identifier: GPL-2.0-only */
/* gid.c: devices of a RoCE fabric are named by GIDs that their guests claim. */
#include "group.h"
#include "internal.h"

#include <pthread.h>
#include <sched.h>

#undef memcpy
#undef memset

#define FABRIC  5
#define GRH     40U

static const struct guest_qp_opts ud = { .type = VMRI_QPT_UD };

/* ---- addresses ---- */

struct gid {
    uint8_t raw[16];
};

static struct gid ipv4(uint32_t last)
{
    return (struct gid){ {
        [10] = 0xff, [11] = 0xff, [12] = 10, [14] = (uint8_t)(last >> 8),
        [15] = (uint8_t)last,
    } };
}

static struct gid ipv6(uint32_t last)
{
    return (struct gid){ { 0x20, 1, [14] = (uint8_t)(last >> 8),
                           (uint8_t)last } };
}

static const struct gid no_gid;

static struct gid group_v4(void)
{
    struct gid gid = ipv4(7);

    gid.raw[12] = 239;
    return gid;
}

static void fabric_new(uint32_t id)
{
    struct vmri_ctl_fabric arg = { .fabric = id, .link = VMRI_LINK_ROCE };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_fabric_create, &arg, sizeof(arg)), 0);
}

static long gid_set(struct guest *g, uint32_t index, struct gid gid)
{
    struct vmri_gid_set arg = { .index = index };

    memcpy(arg.gid, gid.raw, sizeof(arg.gid));
    return guest_call(g, VMRI_OP_gid_set, &arg, sizeof(arg));
}

/* A guest with a device on the fabric, and 10.0.0.domid as GID 3. */
static struct guest *member(unsigned int domid, uint32_t fabric)
{
    struct guest *g = guest_bare(domid);

    CHECK_EQ(dom0_attach(domid, fabric, &g->dev, &g->lid), 0);
    guest_start(g);
    CHECK_EQ(gid_set(g, 3, ipv4(domid)), 0);
    return g;
}

/* ---- connections ---- */

static long try_rtr(struct guest_qp *qp, struct guest_qp *peer, struct gid gid)
{
    struct vmri_qp_modify arg;

    qp_attr(qp, peer, VMRI_QPS_RTR, NULL, &arg);
    memcpy(arg.av.dgid, gid.raw, sizeof(arg.av.dgid));
    arg.av.dlid = 0;
    arg.av.flags = VMRI_AV_GRH;
    arg.av.sgid_index = 3;
    return qp_modify(qp, &arg);
}

static void connect_by(struct guest_qp *qp, struct guest_qp *peer,
                       struct gid gid)
{
    qp_to(qp, peer, VMRI_QPS_INIT, NULL);
    CHECK_EQ(try_rtr(qp, peer, gid), 0);
    qp_to(qp, peer, VMRI_QPS_RTS, NULL);
}

struct line {
    struct guest *a, *b;
    struct guest_qp *qa, *qb;
    struct guest_mr ma, mb;
};

static struct line line_between(struct guest *a, struct guest *b,
                                const struct guest_qp_opts *opts)
{
    struct line l = { a, b, guest_qp(a, opts), guest_qp(b, opts), { 0 },
                      { 0 } };

    l.ma = guest_mr(a, 8192, 0, LAYOUT_RUN, VMRI_ACCESS_LOCAL_WRITE);
    l.mb = guest_mr(b, 8192, 0, LAYOUT_RUN, VMRI_ACCESS_LOCAL_WRITE);
    return l;
}

static void expect_message(struct line *l, uint32_t seed)
{
    struct vmri_sge to = mr_sge(&l->mb, 0, 4096);
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&l->ma, 0, 2000) },
    };

    fill_pattern(l->ma.mem, 2000, seed);
    qp_recv(l->qb, 2, &to, 1);
    qp_send(l->qa, &wr);
    cq_expect(l->qa->scq, 1, 0);
    CHECK_EQ(cq_expect(l->qb->rcq, 2, 0).byte_len, 2000);
    CHECK_EQ(match_pattern(l->mb.mem, 2000, seed, 0), 2000);
}

TEST(gid_connects)
{
    struct vmri_qp_modify q;
    struct line l;

    fabric_new(FABRIC);
    l = line_between(member(1, FABRIC), member(2, FABRIC), NULL);
    CHECK_EQ(l.a->attr.flags, VMRI_DEVF_ROCE);
    connect_by(l.qa, l.qb, ipv4(2));
    connect_by(l.qb, l.qa, ipv4(1));
    expect_message(&l, 5);

    /* Guests hear of no LID. */
    CHECK_EQ(qp_query(l.qa, &q), 0);
    CHECK_EQ(q.av.dlid, 0);
    CHECK_EQ(q.av.sgid_index, 3);
    CHECK_EQ(memcmp(q.av.dgid, ipv4(2).raw, 16), 0);
}

TEST(gid_connects_to_oneself)
{
    struct guest *g;
    struct line l;

    fabric_new(FABRIC);
    g = member(1, FABRIC);
    l = line_between(g, g, NULL);
    connect_by(l.qa, l.qb, ipv4(1));
    connect_by(l.qb, l.qa, ipv4(1));
    expect_message(&l, 6);
}

/* What is connected stays so; addresses may come and go. */
TEST(gid_changes_under_a_connection)
{
    struct line l;

    fabric_new(FABRIC);
    l = line_between(member(1, FABRIC), member(2, FABRIC), NULL);
    CHECK_EQ(gid_set(l.b, 0, ipv6(2)), 0);
    connect_by(l.qa, l.qb, ipv6(2));
    connect_by(l.qb, l.qa, ipv4(1));
    expect_message(&l, 1);
    CHECK_EQ(gid_set(l.b, 0, no_gid), 0);
    expect_message(&l, 2);

    qp_set_state(l.qa, VMRI_QPS_RESET);
    qp_to(l.qa, l.qb, VMRI_QPS_INIT, NULL);
    CHECK_EQ(try_rtr(l.qa, l.qb, ipv6(2)), -EHOSTUNREACH);
    CHECK_EQ(qp_state(l.qa), VMRI_QPS_INIT);
    CHECK_EQ(try_rtr(l.qa, l.qb, ipv4(2)), 0);
}

TEST(gid_refused)
{
    struct vmri_gid_set arg = { .index = 1, .reserved = 1 };
    struct guest_qp *qp;
    struct guest *g, *ib = guest_new(3);
    struct vmri_qp_modify m;

    fabric_new(FABRIC);
    g = member(1, FABRIC);
    CHECK_EQ(gid_set(ib, 1, ipv4(9)), -EOPNOTSUPP);
    CHECK_EQ(gid_set(g, VMRI_MAX_GIDS, ipv4(9)), -EINVAL);
    CHECK_EQ(gid_set(g, 1, (struct gid){ { 0xff, 2 } }), -EINVAL);
    CHECK_EQ(gid_set(g, 1, group_v4()), -EINVAL);
    CHECK_EQ(guest_call(g, VMRI_OP_gid_set, &arg, sizeof(arg)), -EINVAL);
    CHECK_EQ(gid_set(g, VMRI_MAX_GIDS - 1, ipv4(9)), 0);

    /* A LID, no GRH, an index out of range, a GID that nobody has. */
    qp = guest_qp(g, NULL);
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    qp_attr(qp, qp, VMRI_QPS_RTR, NULL, &m);
    m.av.flags = VMRI_AV_GRH;
    memcpy(m.av.dgid, ipv4(1).raw, 16);
    CHECK_EQ(qp_modify(qp, &m), -EINVAL);
    m.av.dlid = 0;
    m.av.sgid_index = VMRI_MAX_GIDS;
    CHECK_EQ(qp_modify(qp, &m), -EINVAL);
    m.av.sgid_index = 0;
    m.av.flags = 0;
    CHECK_EQ(qp_modify(qp, &m), -EINVAL);
    m.av.flags = VMRI_AV_GRH;
    m.av.dgid[15] = 77;
    CHECK_EQ(qp_modify(qp, &m), -EHOSTUNREACH);
    m.av.dgid[15] = 1;
    CHECK_EQ(qp_modify(qp, &m), 0);
}

/* ---- whose it is ---- */

TEST(gid_is_the_first_claimants)
{
    struct guest *a, *b;

    fabric_new(FABRIC);
    fabric_new(FABRIC + 1);
    a = member(1, FABRIC);
    b = member(2, FABRIC);
    member(3, FABRIC + 1);

    CHECK_EQ(gid_set(b, 0, ipv4(1)), -EEXIST);
    /* What was there stays; one's own may stand twice. */
    CHECK_EQ(gid_set(b, 3, ipv4(1)), -EEXIST);
    CHECK_EQ(gid_set(a, 3, ipv4(2)), -EEXIST);
    CHECK_EQ(gid_set(b, 9, ipv4(2)), 0);
    CHECK_EQ(gid_set(b, 3, no_gid), 0);
    CHECK_EQ(gid_set(a, 4, ipv4(2)), -EEXIST);
    CHECK_EQ(gid_set(b, 9, no_gid), 0);
    CHECK_EQ(gid_set(a, 4, ipv4(2)), 0);
    /* On another fabric it is another's. */
    CHECK_EQ(gid_set(b, 4, ipv4(3)), 0);

    /* Who leaves it unused has it no longer; nor has who has gone. */
    CHECK_EQ(guest_call(a, VMRI_OP_dev_destroy, NULL, 0), 0);
    CHECK_EQ(gid_set(a, 4, ipv4(20)), -ENODEV);
    CHECK_EQ(gid_set(b, 0, ipv4(1)), 0);
    CHECK_EQ(dom0_detach(2, b->dev), 0);
    guest_start(a);
    CHECK_EQ(gid_set(a, 0, ipv4(1)), 0);
    CHECK_EQ(gid_set(a, 1, ipv4(3)), 0);
}

TEST(gid_tables_are_charged)
{
    struct vmri_ctl_limits limits = { .domid = 1 };
    struct guest *g;

    fabric_new(FABRIC);
    g = member(1, FABRIC);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_limits, &limits, sizeof(limits)), 0);
    CHECK_EQ(dom0_detach(1, g->dev), 0);

    limits.mask = 1U << VMRI_RES_BYTES;
    limits.limit.n[VMRI_RES_BYTES] = sizeof(struct vmri_dev) +
                                     sizeof(struct vmri_gid_table) - 1;
    limits.usage = (struct vmri_usage){ { 0 } };
    CHECK_EQ(dom0_call(VMRI_OP_ctl_limits, &limits, sizeof(limits)), 0);
    CHECK_EQ(limits.usage.n[VMRI_RES_BYTES], 0);
    g->dev = VMRI_DEV_ANY;
    g->lid = 0;
    CHECK_EQ(dom0_attach(1, FABRIC, &g->dev, &g->lid), -ENOMEM);
}

TEST(gid_fabrics_of_one_link)
{
    struct vmri_ctl_fabric arg = { .fabric = GUEST_FABRIC,
                                   .link = VMRI_LINK_ROCE };
    struct vmri_ctl_attach sm = { .domid = 0, .dev_id = VMRI_DEV_ANY,
                                  .fabric = FABRIC,
                                  .flags = VMRI_ATTACH_SM };

    guest_new(1);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_fabric_create, &arg, sizeof(arg)), -EBUSY);
    fabric_new(FABRIC);
    arg = (struct vmri_ctl_fabric){ .fabric = FABRIC };
    CHECK_EQ(dom0_call(VMRI_OP_ctl_fabric_list, &arg, sizeof(arg)), 0);
    CHECK_EQ(arg.link, VMRI_LINK_ROCE);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_attach, &sm, sizeof(sm)), -EOPNOTSUPP);
}

/* ---- datagrams ---- */

static struct vmri_av *posted_av(struct guest_qp *qp)
{
    struct vmri_send_wqe *wqe = (void *)(qp->mem + qp->arg.sq_offset);

    wqe += ((qp->prod_s - 1) & ((1U << qp->arg.sq_log2_entries) - 1)) *
           (1U << qp->arg.sq_log2_stride) / sizeof(*wqe);
    return &wqe->u.ud.av;
}

/* One of 100 bytes to a GID, by entry `index`. */
static void datagram(struct line *l, struct gid gid, uint8_t index,
                     uint32_t qpn)
{
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&l->ma, 0, 100) }, .to = l->qb,
    };
    struct vmri_av *av;

    fill_pattern(l->ma.mem, 100, 3);
    qp_post_send(l->qa, &wr);
    av = posted_av(l->qa);
    *av = (struct vmri_av){ .flags = VMRI_AV_GRH, .sgid_index = index,
                            .hop_limit = 64, .traffic_class = 0x12,
                            .flow_label = 0x34567 };
    memcpy(av->dgid, gid.raw, sizeof(av->dgid));
    if ( qpn )
        container_of(av, struct vmri_send_wqe, u.ud.av)->u.ud.remote_qpn = qpn;
    qp_ring(l->qa);
    cq_expect(l->qa->scq, 1, 0);
}

static struct line ud_line(struct guest *a, struct guest *b)
{
    struct line l = line_between(a, b, &ud);

    qp_connect(l.qa, l.qb, NULL);
    return l;
}

static void listen(struct line *l)
{
    struct vmri_sge to = mr_sge(&l->mb, 0, 4096);

    memset(l->mb.mem, 0x55, 200);
    qp_recv(l->qb, 2, &to, 1);
}

static uint64_t drops(struct guest *g)
{
    struct vmri_counters c;

    guest_counters(g, &c);
    return c.ud_drops;
}

/* The 20 bytes that RFC 791 has, at the end of 40. */
TEST(gid_datagrams_over_ipv4)
{
    static const uint8_t header[20] = {
        0x45, 0x12, 0, 120, 0, 0, 0x40, 0, 64, 17, 0x26, 0x5f, 10, 0, 0, 1,
        10, 0, 0, 2,
    };
    struct vmri_cqe cqe;
    struct line l;

    fabric_new(FABRIC);
    l = ud_line(member(1, FABRIC), member(2, FABRIC));
    listen(&l);
    datagram(&l, ipv4(2), 3, 0);
    cqe = cq_expect(l.qb->rcq, 2, 0);
    CHECK_EQ(cqe.byte_len, GRH + 100);
    CHECK_EQ(cqe.flags, VMRI_WC_GRH);
    CHECK_EQ(cqe.slid, 0);
    CHECK(all_bytes(l.mb.mem, 20, 0));
    CHECK_EQ(memcmp(l.mb.mem + 20, header, 10), 0);
    CHECK_EQ(memcmp(l.mb.mem + 32, header + 12, 8), 0);
    /* Its words, the checksum's among them, add up to nothing. */
    {
        uint32_t sum = 0;
        unsigned int i;

        for ( i = 20; i < 40; i += 2 )
            sum += l.mb.mem[i] << 8 | l.mb.mem[i + 1];
        CHECK_EQ((sum & 0xffff) + (sum >> 16), 0xffff);
    }
    CHECK_EQ(match_pattern(l.mb.mem + GRH, 100, 3, 0), 100);
}

TEST(gid_datagrams_over_ipv6)
{
    struct line l;

    fabric_new(FABRIC);
    l = ud_line(member(1, FABRIC), member(2, FABRIC));
    CHECK_EQ(gid_set(l.a, 0, ipv6(1)), 0);
    CHECK_EQ(gid_set(l.b, 0, ipv6(2)), 0);
    listen(&l);
    datagram(&l, ipv6(2), 0, 0);
    cq_expect(l.qb->rcq, 2, 0);
    CHECK_EQ(l.mb.mem[0], 0x61);
    CHECK_EQ(l.mb.mem[1], 0x23);
    CHECK_EQ(l.mb.mem[6], 17);
    CHECK_EQ(l.mb.mem[7], 64);
    CHECK_EQ(memcmp(l.mb.mem + 8, ipv6(1).raw, 16), 0);
    CHECK_EQ(memcmp(l.mb.mem + 24, ipv6(2).raw, 16), 0);
    CHECK_EQ(match_pattern(l.mb.mem + GRH, 100, 3, 0), 100);
}

/* Each is looked up when it is another, or anything has changed. */
TEST(gid_datagrams_follow_changes)
{
    struct guest *c;
    struct line l;

    fabric_new(FABRIC);
    l = ud_line(member(1, FABRIC), member(2, FABRIC));
    c = member(3, FABRIC);
    listen(&l);
    datagram(&l, ipv4(2), 3, 0);
    cq_expect(l.qb->rcq, 2, 0);

    /* From an entry without a GID, one out of range, to nobody, to another. */
    datagram(&l, ipv4(2), 4, 0);
    datagram(&l, ipv4(2), 0xff, 0);
    datagram(&l, ipv4(77), 3, 0);
    datagram(&l, ipv4(3), 3, 0xfffff);
    CHECK_EQ(drops(l.a), 4);

    CHECK_EQ(gid_set(l.b, 3, no_gid), 0);
    CHECK_EQ(gid_set(c, 5, ipv4(2)), 0);
    listen(&l);
    datagram(&l, ipv4(2), 3, 0xfffff);
    CHECK_EQ(drops(l.a), 5);
    CHECK_EQ(gid_set(c, 5, no_gid), 0);
    CHECK_EQ(gid_set(l.b, 3, ipv4(2)), 0);
    datagram(&l, ipv4(2), 3, 0);
    cq_expect(l.qb->rcq, 2, 0);
}

TEST(gid_another_lid)
{
    struct vmri_ctl_port port = { .domid = 2, .mask = VMRI_PORTA_LID,
                                  .lid = 99 };
    struct line l;

    fabric_new(FABRIC);
    l = ud_line(member(1, FABRIC), member(2, FABRIC));
    listen(&l);
    datagram(&l, ipv4(2), 3, 0);
    cq_expect(l.qb->rcq, 2, 0);
    port.dev_id = l.b->dev;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &port, sizeof(port)), 0);
    listen(&l);
    datagram(&l, ipv4(2), 3, 0);
    cq_expect(l.qb->rcq, 2, 0);
}

/* Groups have no MLID: who is attached to a GID gets what is sent there. */
static void multicast(struct line *l, struct gid mgid)
{
    const uint64_t dropped = drops(l->a);
    struct vmri_mcg_qp arg = { .qpn = l->qb->qpn, .mlid = 0xc005 };

    memcpy(arg.mgid, mgid.raw, sizeof(arg.mgid));
    CHECK_EQ(guest_call(l->b, VMRI_OP_mcg_attach, &arg, sizeof(arg)), -EINVAL);
    arg.mlid = 0;
    CHECK_EQ(guest_call(l->b, VMRI_OP_mcg_attach, &arg, sizeof(arg)), 0);

    listen(l);
    datagram(l, mgid, 3, VMRI_QPN_MULTICAST);
    CHECK_EQ(cq_expect(l->qb->rcq, 2, 0).byte_len, GRH + 100);

    CHECK_EQ(guest_call(l->b, VMRI_OP_mcg_detach, &arg, sizeof(arg)), 0);
    datagram(l, mgid, 3, VMRI_QPN_MULTICAST);
    cq_expect_none(l->qb->rcq);
    CHECK_EQ(drops(l->a), dropped + 1);
}

TEST(gid_multicast)
{
    struct vmri_mcg g = group_arg(7, 0);
    struct gid mgid;
    struct line l;

    fabric_new(FABRIC);
    l = ud_line(member(1, FABRIC), member(2, FABRIC));
    memcpy(mgid.raw, g.mgid, 16);
    multicast(&l, mgid);
    multicast(&l, group_v4());
    CHECK_EQ(l.mb.mem[36], 239);
}

/* ---- rules ---- */

static long rule_add(uint8_t protocol, struct gid gid, uint8_t bits)
{
    struct vmri_ctl_rule arg = {
        .fabric = FABRIC, .direction = VMRI_RULE_INGRESS,
        .protocol = protocol, .bits = bits,
    };

    memcpy(arg.prefix, gid.raw, sizeof(arg.prefix));
    return dom0_call(VMRI_OP_ctl_rule_add, &arg, sizeof(arg));
}

/* A prefix names who has an address in it, one of several. */
TEST(gid_in_rules)
{
    struct line l;

    fabric_new(FABRIC);
    l = line_between(member(1, FABRIC), member(2, FABRIC), NULL);
    CHECK_EQ(rule_add(VMRI_RULE_IB, ipv4(0x700), 120), -EOPNOTSUPP);
    CHECK_EQ(rule_add(VMRI_RULE_ROCE, ipv4(0x700), 120), 0);

    qp_to(l.qa, l.qb, VMRI_QPS_INIT, NULL);
    CHECK_EQ(try_rtr(l.qa, l.qb, ipv4(2)), -EPERM);
    CHECK_EQ(gid_set(l.a, 0, ipv4(0x701)), 0);
    CHECK_EQ(try_rtr(l.qa, l.qb, ipv4(2)), 0);
    qp_to(l.qa, l.qb, VMRI_QPS_RTS, NULL);
    connect_by(l.qb, l.qa, ipv4(1));
    expect_message(&l, 9);
}

/* ---- threads ---- */

struct claimant {
    struct guest *g;
    unsigned int got, refused;
};

#define ROUNDS 300

static void *claim_and_release(void *data)
{
    struct claimant *c = data;
    unsigned int i;
    long rc;

    for ( i = 0; i < ROUNDS; i++ )
    {
        rc = gid_set(c->g, 0, ipv4(1000));
        if ( rc )
        {
            CHECK_EQ(rc, -EEXIST);
            c->refused++;
            sched_yield();
            continue;
        }
        c->got++;
        CHECK_EQ(gid_set(c->g, 0, no_gid), 0);
    }
    return NULL;
}

/* A GID has one holder at a time, and who sends there meets one or none. */
THREAD_TEST(gid_threads)
{
    struct claimant c[2];
    pthread_t thread[2];
    struct line l;
    unsigned int i;

    fabric_new(FABRIC);
    l = ud_line(member(1, FABRIC), member(2, FABRIC));
    for ( i = 0; i < 2; i++ )
    {
        c[i] = (struct claimant){ .g = member(3 + i, FABRIC) };
        CHECK_EQ(pthread_create(&thread[i], NULL, claim_and_release, &c[i]),
                 0);
    }
    for ( i = 0; i < ROUNDS; i++ )
        datagram(&l, ipv4(1000), 3, 0xfffff);
    for ( i = 0; i < 2; i++ )
    {
        pthread_join(thread[i], NULL);
        CHECK_EQ(c[i].got + c[i].refused, ROUNDS);
    }
    CHECK_EQ(drops(l.a) + drops(c[0].g) + drops(c[1].g), ROUNDS);
}

/* ---- dom0 ---- */

static long dump_gid(struct guest *g, uint32_t index, struct vmri_ctl_dump *arg)
{
    *arg = (struct vmri_ctl_dump){
        .domid = env_domid(g->domain), .dev_id = g->dev,
        .kind = VMRI_DUMP_GID, .index = index,
    };
    memset(&arg->handle, 0xee, sizeof(*arg) - offsetof(typeof(*arg), handle));
    return dom0_call(VMRI_OP_ctl_dump, arg, sizeof(*arg));
}

TEST(gid_dom0_sees_them)
{
    struct guest *g, *other = guest_new(2);
    struct vmri_ctl_info info = { .domid = 2 };
    struct vmri_ctl_dump d;

    fabric_new(FABRIC);
    g = member(1, FABRIC);
    CHECK_EQ(gid_set(g, VMRI_MAX_GIDS - 1, ipv6(4)), 0);
    CHECK_EQ(dump_gid(g, 0, &d), 0);
    CHECK_EQ(d.handle, 3);
    CHECK_EQ(d.index, 4);
    CHECK_EQ(d.users, 0);
    CHECK_EQ(memcmp(d.u.gid.gid, ipv4(1).raw, 16), 0);
    CHECK_EQ(dump_gid(g, d.index, &d), 0);
    CHECK_EQ(d.handle, VMRI_MAX_GIDS - 1);
    CHECK_EQ(memcmp(d.u.gid.gid, ipv6(4).raw, 16), 0);
    CHECK_EQ(dump_gid(g, d.index, &d), -ENOENT);
    CHECK_EQ(dump_gid(g, ~0U, &d), -ENOENT);

    CHECK_EQ(gid_set(g, 3, no_gid), 0);
    CHECK_EQ(gid_set(g, VMRI_MAX_GIDS - 1, no_gid), 0);
    CHECK_EQ(dump_gid(g, 0, &d), -ENOENT);

    /* Where there are LIDs, a device has the one that its GUID makes. */
    CHECK_EQ(dump_gid(other, 0, &d), 0);
    CHECK_EQ(d.handle, 0);
    CHECK_EQ(vmri_be_word(d.u.gid.gid), 0xfe80000000000000ULL);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), 0);
    CHECK_EQ(vmri_be_word(d.u.gid.gid + 8), info.guid);
    CHECK_EQ(dump_gid(other, 1, &d), -ENOENT);
}
