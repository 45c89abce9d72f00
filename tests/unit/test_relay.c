/* SPDX-License-Identifier: GPL-2.0-only */
/* relay.c: datagrams to other hosts, and from there. */
#include "nic.h"
#include "internal.h"

#undef memcpy
#undef memset

#define GRH         40U
#define HERE        1               /* last bytes of addresses */
#define THERE       2
#define NOBODY      3
#define QKEY        0x1234
#define BYTES       8192U
#define PEER_QPN    0x000777

static const struct guest_qp_opts ud = { .type = VMRI_QPT_UD };

/* ---- two hosts: this one, and one that the tests play ---- */

static void address(uint8_t gid[16], uint8_t last)
{
    memset(gid, 0, 16);
    gid[10] = gid[11] = 0xff;
    gid[12] = 10;
    gid[15] = last;
}

static void host_of(uint8_t gid[16], uint8_t last)
{
    address(gid, last);
    gid[12] = 192;
}

static long route(unsigned int cmd, uint8_t gid, uint8_t host)
{
    struct vmri_ctl_route arg = { .fabric = NIC_FABRIC };

    address(arg.gid, gid);
    host_of(arg.host_gid, host);
    return dom0_call(cmd, &arg, sizeof(arg));
}

static void fabric(void)
{
    struct vmri_ctl_fabric arg = {
        .fabric = NIC_FABRIC, .link = VMRI_LINK_ROCE,
    };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_fabric_create, &arg, sizeof(arg)), 0);
    CHECK_EQ(route(VMRI_OP_ctl_route_add, THERE, THERE), 0);
}

static long claim(struct guest *g, uint8_t last)
{
    struct vmri_gid_set arg = { .index = 3 };

    address(arg.gid, last);
    return guest_call(g, VMRI_OP_gid_set, &arg, sizeof(arg));
}

struct end {
    struct nic *nic;
    struct guest *g;
    struct guest_qp *qp;
    struct guest_mr mr;
};

static struct guest_qp *ready_qp(struct guest *g,
                                 const struct guest_qp_opts *opts)
{
    struct guest_qp *qp = guest_qp(g, opts);
    struct vmri_qp_modify arg;
    unsigned int s;

    for ( s = VMRI_QPS_INIT; s <= VMRI_QPS_RTS; s++ )
    {
        qp_attr(qp, qp, s, NULL, &arg);
        if ( s == VMRI_QPS_INIT )
            arg.qkey = QKEY;
        CHECK_EQ(qp_modify(qp, &arg), 0);
    }
    return qp;
}

static struct end begin_with(const struct guest_qp_opts *opts)
{
    struct end e = { .nic = nic_new() };

    fabric();
    e.g = nic_guest(e.nic, 1);
    CHECK_EQ(claim(e.g, HERE), 0);
    e.qp = ready_qp(e.g, opts);
    e.mr = guest_mr(e.g, BYTES, 100, LAYOUT_SCATTERED,
                    VMRI_ACCESS_LOCAL_WRITE);
    return e;
}

static struct end begin(void)
{
    return begin_with(&ud);
}

static struct guest_wr datagram(const struct end *e, uint8_t to, uint64_t wr_id,
                                uint32_t bytes)
{
    struct guest_wr wr = {
        .wr_id = wr_id, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&e->mr, 0, bytes) }, .raw = true,
    };

    wr.wqe.u.ud.remote_qpn = PEER_QPN;
    wr.wqe.u.ud.remote_qkey = QKEY;
    wr.wqe.u.ud.av.flags = VMRI_AV_GRH;
    wr.wqe.u.ud.av.sgid_index = 3;
    wr.wqe.u.ud.av.hop_limit = 64;
    wr.wqe.u.ud.av.traffic_class = 0x21;
    wr.wqe.u.ud.av.flow_label = 0x12345;
    wr.wqe.u.ud.av.sl = 5;
    address(wr.wqe.u.ud.av.dgid, to);
    return wr;
}

static uint64_t drops(struct guest *g)
{
    struct vmri_counters c;

    guest_counters(g, &c);
    return c.ud_drops;
}

static void set_port(struct end *e, unsigned int state)
{
    struct vmri_ctl_port port = {
        .domid = 1, .dev_id = e->g->dev, .mask = VMRI_PORTA_STATE,
        .state = (uint8_t)state,
    };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &port, sizeof(port)), 0);
}

/* ---- sending ---- */

TEST(relay_sends_with_both_addresses)
{
    static const uint32_t sizes[] = { 0, 1, 64, 256, 1000, 4096 };
    struct end e = begin();
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(sizes); i++ )
    {
        struct guest_wr wr = datagram(&e, THERE, i, sizes[i]);
        const struct vmri_datagram *h;
        struct nic_msg msg;
        uint8_t gid[16];

        if ( i & 1 )
        {
            wr.opcode = VMRI_WR_SEND_WITH_IMM;
            wr.flags |= VMRI_SEND_SOLICITED;
            wr.imm = 77;
        }
        fill_pattern(e.mr.mem, sizes[i], i);
        qp_send(e.qp, &wr);
        CHECK_EQ(cq_expect(e.qp->scq, i, 0).opcode, VMRI_WC_OP_SEND);

        msg = nic_expect(e.nic, VMRI_UPLINK_DATAGRAM);
        h = &msg.u.datagram.header;
        CHECK_EQ(msg.m.u.datagram.length, sizes[i]);
        CHECK_EQ(msg.m.domid, 1);
        CHECK_EQ(msg.m.twin, 0);
        CHECK_EQ(match_pattern(msg.u.datagram.data, sizes[i], i, 0), sizes[i]);
        host_of(gid, THERE);
        CHECK_EQ(memcmp(h->host_gid, gid, 16), 0);
        address(gid, HERE);
        CHECK_EQ(memcmp(h->sgid, gid, 16), 0);
        address(gid, THERE);
        CHECK_EQ(memcmp(h->dgid, gid, 16), 0);
        CHECK_EQ(h->fabric, NIC_FABRIC);
        CHECK_EQ(h->src_qpn, e.qp->qpn);
        CHECK_EQ(h->dest_qpn, PEER_QPN);
        CHECK_EQ(h->qkey, QKEY);
        CHECK_EQ(h->pkey, 0xffff);
        CHECK_EQ(h->hop_limit, 64);
        CHECK_EQ(h->traffic_class, 0x21);
        CHECK_EQ(h->flow_label, 0x12345);
        CHECK_EQ(h->sl, 5);
        CHECK_EQ(h->flags, i & 1 ? VMRI_DATAGRAM_IMM | VMRI_DATAGRAM_SOLICITED
                                 : 0);
        CHECK_EQ(h->imm, i & 1 ? 77 : 0);
    }
    CHECK_EQ(drops(e.g), 0);
}

TEST(relay_sends_inline_and_its_own_qkey)
{
    static const struct guest_qp_opts opts = {
        .type = VMRI_QPT_UD, .max_inline = 64,
    };
    struct end e = begin_with(&opts);
    struct guest_wr wr = datagram(&e, THERE, 1, 0);
    struct nic_msg msg;

    wr.flags |= VMRI_SEND_INLINE;
    wr.num_sge = 0;
    wr.data = "in the ring";
    wr.length = 12;
    wr.wqe.u.ud.remote_qkey = VMRI_QKEY_OWN;
    qp_send(e.qp, &wr);
    cq_expect(e.qp->scq, 1, 0);
    msg = nic_expect(e.nic, VMRI_UPLINK_DATAGRAM);
    CHECK_EQ(memcmp(msg.u.datagram.data, "in the ring", 12), 0);
    CHECK_EQ(msg.u.datagram.header.qkey, QKEY);
}

static void expect_drop(struct end *e, const struct guest_wr *wr)
{
    const uint64_t before = drops(e->g);

    qp_send(e->qp, wr);
    cq_expect(e->qp->scq, wr->wr_id, 0);
    nic_expect_none(e->nic);
    CHECK_EQ(drops(e->g), before + 1);
}

TEST(relay_sends_nothing_that_may_not_go)
{
    struct vmri_ctl_rule rule = { .fabric = NIC_FABRIC, .group = 9 };
    struct end e = begin();
    struct guest_wr wr = datagram(&e, NOBODY, 1, 100);

    expect_drop(&e, &wr);
    wr = datagram(&e, THERE, 2, 100);
    wr.wqe.u.ud.av.flags = 0;
    expect_drop(&e, &wr);
    wr = datagram(&e, THERE, 3, 100);
    wr.wqe.u.ud.av.sgid_index = 4;
    expect_drop(&e, &wr);

    CHECK_EQ(dom0_call(VMRI_OP_ctl_rule_add, &rule, sizeof(rule)), 0);
    wr = datagram(&e, THERE, 4, 100);
    expect_drop(&e, &wr);
    rule = (struct vmri_ctl_rule){ .fabric = NIC_FABRIC };
    CHECK_EQ(dom0_call(VMRI_OP_ctl_rule_add, &rule, sizeof(rule)), 0);
    qp_send(e.qp, &wr);
    cq_expect(e.qp->scq, 4, 0);
    nic_expect(e.nic, VMRI_UPLINK_DATAGRAM);

    set_port(&e, VMRI_PORT_DOWN);
    expect_drop(&e, &wr);
}

TEST(relay_of_an_uplink_that_has_closed)
{
    struct end e = begin();
    struct guest_wr wr = datagram(&e, THERE, 1, 100);
    struct nic *other;

    CHECK_EQ(nic_close(e.nic), 0);
    other = nic_new();
    CHECK_EQ(other->uplink, e.nic->uplink);
    e.nic = other;
    expect_drop(&e, &wr);
}

/* Memory that is not there fails the request, as it does here. */
TEST(relay_source_is_missing)
{
    struct end e = begin();
    struct guest_wr wr = datagram(&e, THERE, 1, 100);

    wr.sge[0].lkey ^= 0x100;
    qp_send(e.qp, &wr);
    cq_expect(e.qp->scq, 1, VMRI_WC_LOC_PROT_ERR);
    nic_expect_none(e.nic);
    CHECK_EQ(qp_state(e.qp), VMRI_QPS_SQE);
}

static void limit(struct end *e)
{
    struct vmri_ctl_rate rate = {
        .domid = 1, .dev_id = e->g->dev, .flags = VMRI_RATE_SET,
        .which = VMRI_RATE_DEVICE, .rate = VMRI_RATE_MIN,
        .burst = VMRI_BURST_MIN,
    };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_rate, &rate, sizeof(rate)), 0);
}

/* Two are what the bucket holds; the third comes when it has filled again. */
TEST(relay_is_limited)
{
    struct end e = begin();
    unsigned int i;

    limit(&e);
    for ( i = 0; i < 3; i++ )
    {
        struct guest_wr wr = datagram(&e, THERE, i, VMRI_BURST_MIN / 2);

        qp_send(e.qp, &wr);
    }
    cq_expect(e.qp->scq, 0, 0);
    cq_expect(e.qp->scq, 1, 0);
    world_pass(20000000, 1000000);
    cq_expect_none(e.qp->scq);
    world_pass(30000000, 1000000);
    cq_expect(e.qp->scq, 2, 0);
    for ( i = 0; i < 3; i++ )
        nic_expect(e.nic, VMRI_UPLINK_DATAGRAM);
    nic_expect_none(e.nic);
}

/* ---- a full ring ---- */

/* Three of the largest fill the ring; more wait, and come in order. */
TEST(relay_waits_for_room)
{
    struct end e = begin();
    struct guest_wr wr;
    struct nic_msg msg;
    unsigned int i;

    for ( i = 0; i < 8; i++ )
    {
        wr = datagram(&e, THERE, i, 4096);
        wr.sge[0].addr += i;
        qp_send(e.qp, &wr);
    }
    fill_pattern(e.mr.mem, BYTES - 100, 1);
    for ( i = 0; i < 3; i++ )
        cq_expect(e.qp->scq, i, 0);
    cq_expect_none(e.qp->scq);
    CHECK_EQ(nic_done(e.nic, NULL, 0), 0);
    CHECK_EQ(e.nic->hdr->full, 1);

    for ( i = 0; i < 8; i++ )
    {
        msg = nic_expect(e.nic, VMRI_UPLINK_DATAGRAM);
        CHECK_EQ(msg.m.u.datagram.length, 4096);
        if ( i >= 3 )
            CHECK_EQ(match_pattern(msg.u.datagram.data, 4096, 1, i), 4096);
        CHECK_EQ(nic_done(e.nic, NULL, 0), 0);
        world_settle();
    }
    nic_expect_none(e.nic);
    for ( i = 3; i < 8; i++ )
        cq_expect(e.qp->scq, i, 0);
    CHECK_EQ(nic_done(e.nic, NULL, 0), 0);
    CHECK_EQ(e.nic->hdr->full, 0);
}

static void fill_ring(struct end *e)
{
    struct guest_wr wr;
    unsigned int i;

    for ( i = 0; i < 5; i++ )
    {
        wr = datagram(e, THERE, i, 4096);
        qp_send(e->qp, &wr);
    }
    for ( i = 0; i < 3; i++ )
        cq_expect(e->qp->scq, i, 0);
    cq_expect_none(e->qp->scq);
}

/* A rate counts each once, however long it waits for room. */
TEST(relay_waits_for_room_and_is_limited)
{
    struct end e = begin();
    struct guest_wr wr;
    unsigned int i;

    fill_ring(&e);
    qp_set_state(e.qp, VMRI_QPS_ERR);
    CHECK_EQ(qp_destroy(e.qp), 0);
    e.qp = ready_qp(e.g, &ud);
    limit(&e);
    for ( i = 0; i < 2; i++ )
    {
        wr = datagram(&e, THERE, i, VMRI_BURST_MIN / 2);
        qp_send(e.qp, &wr);
        qp_ring(e.qp);
        CHECK_EQ(guest_schedule(e.g, e.qp->qpn), 0);
    }
    cq_expect_none(e.qp->scq);
    for ( i = 0; i < 3; i++ )
        nic_expect(e.nic, VMRI_UPLINK_DATAGRAM);
    CHECK_EQ(nic_done(e.nic, NULL, 0), 0);
    world_settle();
    cq_expect(e.qp->scq, 0, 0);
    cq_expect(e.qp->scq, 1, 0);
}

TEST(relay_waiter_is_destroyed)
{
    struct end e = begin();
    unsigned int i;

    fill_ring(&e);
    CHECK_EQ(qp_destroy(e.qp), 0);
    for ( i = 0; i < 3; i++ )
        nic_expect(e.nic, VMRI_UPLINK_DATAGRAM);
    CHECK_EQ(nic_done(e.nic, NULL, 0), 0);
    CHECK_EQ(e.nic->hdr->full, 0);
    nic_expect_none(e.nic);
}

TEST(relay_waiter_fails)
{
    struct end e = begin();

    fill_ring(&e);
    qp_set_state(e.qp, VMRI_QPS_ERR);
    world_settle();
    cq_expect(e.qp->scq, 3, VMRI_WC_WR_FLUSH_ERR);
    cq_expect(e.qp->scq, 4, VMRI_WC_WR_FLUSH_ERR);
}

/* Who waits when the uplink closes is called, and loses what it had to say. */
TEST(relay_waiter_when_the_uplink_closes)
{
    struct end e = begin();
    struct nic *other;

    fill_ring(&e);
    CHECK_EQ(nic_close(e.nic), 0);
    world_settle();
    cq_expect(e.qp->scq, 3, 0);
    cq_expect(e.qp->scq, 4, 0);
    CHECK_EQ(drops(e.g), 2);
    other = nic_new();
    CHECK_EQ(qp_destroy(e.qp), 0);
    CHECK_EQ(nic_done(other, NULL, 0), 0);
    CHECK_EQ(other->hdr->full, 0);
}

/* A turn that was given by one uplink is worth nothing with the next. */
TEST(relay_turn_of_an_uplink_that_has_closed)
{
    struct end e = begin(), f = e;
    unsigned int i;

    fill_ring(&e);
    for ( i = 0; i < 3; i++ )
        nic_expect(e.nic, VMRI_UPLINK_DATAGRAM);
    CHECK_EQ(nic_done(e.nic, NULL, 0), 0);
    CHECK_EQ(nic_close(e.nic), 0);

    f.nic = nic_new();
    f.g = nic_guest(f.nic, 2);
    CHECK_EQ(claim(f.g, NOBODY), 0);
    f.qp = ready_qp(f.g, &ud);
    f.mr = guest_mr(f.g, BYTES, 100, LAYOUT_RUN, VMRI_ACCESS_LOCAL_WRITE);
    fill_ring(&f);
    for ( i = 0; i < 3; i++ )
        nic_expect(f.nic, VMRI_UPLINK_DATAGRAM);
    CHECK_EQ(nic_done(f.nic, NULL, 0), 0);
    CHECK_EQ(qp_destroy(e.qp), 0);
    world_settle();
    cq_expect(f.qp->scq, 3, 0);
    cq_expect(f.qp->scq, 4, 0);
    nic_expect(f.nic, VMRI_UPLINK_DATAGRAM);
    nic_expect(f.nic, VMRI_UPLINK_DATAGRAM);
    CHECK_EQ(nic_done(f.nic, NULL, 0), 0);
    fill_ring(&f);
}

/* ---- receiving ---- */

static struct vmri_ctl_uplink_deliver coming(const struct end *e, uint32_t bytes)
{
    struct vmri_ctl_uplink_deliver arg = {
        .datagram = {
            .fabric = NIC_FABRIC, .src_qpn = PEER_QPN,
            .dest_qpn = e->qp->qpn, .qkey = QKEY, .pkey = 0xffff,
            .hop_limit = 63, .traffic_class = 0x42, .sl = 6,
        },
        .length = bytes, .uplink = e->nic->uplink,
    };

    host_of(arg.datagram.host_gid, THERE);
    address(arg.datagram.sgid, THERE);
    address(arg.datagram.dgid, HERE);
    return arg;
}

static long deliver(struct vmri_ctl_uplink_deliver *arg, uint32_t seed)
{
    uint8_t data[VMRI_DATAGRAM_MAX + 1];
    long rc;

    fill_pattern(data, sizeof(data), seed);
    arg->data = (uintptr_t)data;
    env_test_expose(data, sizeof(data));
    rc = dom0_call(VMRI_OP_ctl_uplink_deliver, arg, sizeof(*arg));
    env_test_hide();
    return rc;
}

static void receive(struct end *e, uint64_t wr_id, uint32_t bytes)
{
    struct vmri_sge sge = mr_sge(&e->mr, 0, bytes);

    qp_recv(e->qp, wr_id, &sge, 1);
}

TEST(relay_delivers)
{
    static const uint32_t sizes[] = { 0, 1, 255, 256, 257, 1000, 4096 };
    struct end e = begin();
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(sizes); i++ )
    {
        struct vmri_ctl_uplink_deliver arg = coming(&e, sizes[i]);
        const uint8_t *ip = e.mr.mem + 20;
        struct vmri_cqe cqe;

        if ( i & 1 )
        {
            arg.datagram.flags = VMRI_DATAGRAM_IMM | VMRI_DATAGRAM_SOLICITED;
            arg.datagram.imm = 99;
        }
        memset(e.mr.mem, 0x55, BYTES - 100);
        receive(&e, i, GRH + sizes[i]);
        CHECK_EQ(deliver(&arg, i), 1);
        cqe = cq_expect(e.qp->rcq, i, 0);
        CHECK_EQ(cqe.opcode, VMRI_WC_OP_RECV);
        CHECK_EQ(cqe.byte_len, GRH + sizes[i]);
        CHECK_EQ(cqe.src_qp, PEER_QPN);
        CHECK_EQ(cqe.sl, 6);
        CHECK_EQ(cqe.slid, 0);
        CHECK_EQ(cqe.imm, i & 1 ? 99 : 0);
        CHECK_EQ(cqe.flags, VMRI_WC_GRH | (i & 1 ? VMRI_WC_WITH_IMM |
                                                   VMRI_WC_SOLICITED : 0));
        CHECK_EQ(match_pattern(e.mr.mem + GRH, sizes[i], i, 0), sizes[i]);
        CHECK(all_bytes(e.mr.mem + GRH + sizes[i], 100, 0x55));

        /* The header that it would have had on a wire of the fabric's own. */
        CHECK_EQ(ip[0], 0x45);
        CHECK_EQ(ip[1], 0x42);
        CHECK_EQ(ip[8], 63);
        CHECK_EQ(memcmp(ip + 12, arg.datagram.sgid + 12, 4), 0);
        CHECK_EQ(memcmp(ip + 16, arg.datagram.dgid + 12, 4), 0);
    }
}

static void expect_dropped(struct end *e, struct vmri_ctl_uplink_deliver arg)
{
    CHECK_EQ(deliver(&arg, 1), 0);
    cq_expect_none(e->qp->rcq);
}

/* Each that is not as it should be is dropped, and takes no receive. */
TEST(relay_delivers_nothing_that_may_not_come)
{
    struct vmri_ctl_rule rule = { .fabric = NIC_FABRIC, .group = 9 };
    struct end e = begin();
    struct vmri_ctl_uplink_deliver arg;
    struct vmri_counters c;

    receive(&e, 7, BYTES - 200);

    arg = coming(&e, 100);
    arg.datagram.fabric++;
    expect_dropped(&e, arg);
    arg = coming(&e, 100);
    host_of(arg.datagram.host_gid, NOBODY);
    expect_dropped(&e, arg);
    arg = coming(&e, 100);
    address(arg.datagram.sgid, NOBODY);
    expect_dropped(&e, arg);
    arg = coming(&e, 100);
    address(arg.datagram.dgid, NOBODY);
    expect_dropped(&e, arg);
    arg = coming(&e, 100);
    arg.datagram.dest_qpn++;
    expect_dropped(&e, arg);
    arg = coming(&e, 100);
    arg.datagram.dest_qpn = 0;
    expect_dropped(&e, arg);
    arg = coming(&e, 100);
    arg.datagram.qkey++;
    expect_dropped(&e, arg);
    arg = coming(&e, 100);
    arg.datagram.pkey = 0x8001;
    expect_dropped(&e, arg);
    guest_counters(e.g, &c);
    CHECK_EQ(c.qkey_violations, 1);
    CHECK_EQ(c.pkey_violations, 1);
    CHECK_EQ(c.ud_drops, 4);

    set_port(&e, VMRI_PORT_ARMED);
    expect_dropped(&e, coming(&e, 100));
    set_port(&e, VMRI_PORT_ACTIVE);

    CHECK_EQ(dom0_call(VMRI_OP_ctl_rule_add, &rule, sizeof(rule)), 0);
    expect_dropped(&e, coming(&e, 100));
    CHECK_EQ(route(VMRI_OP_ctl_route_del, THERE, THERE), 0);
    rule = (struct vmri_ctl_rule){ .fabric = NIC_FABRIC };
    CHECK_EQ(dom0_call(VMRI_OP_ctl_rule_add, &rule, sizeof(rule)), 0);
    expect_dropped(&e, coming(&e, 100));

    CHECK_EQ(route(VMRI_OP_ctl_route_add, THERE, THERE), 0);
    arg = coming(&e, 100);
    CHECK_EQ(deliver(&arg, 1), 1);
    cq_expect(e.qp->rcq, 7, 0);
}

/* One that does not fit stays out; a receive that names nothing fails. */
TEST(relay_receives_that_do_not_take_it)
{
    struct end e = begin();
    struct vmri_ctl_uplink_deliver arg = coming(&e, 100);
    struct vmri_sge sge = mr_sge(&e.mr, 0, 1000);

    expect_dropped(&e, arg);
    receive(&e, 1, GRH + 99);
    expect_dropped(&e, arg);
    qp_set_state(e.qp, VMRI_QPS_ERR);
    cq_expect(e.qp->rcq, 1, VMRI_WC_WR_FLUSH_ERR);
    expect_dropped(&e, arg);

    e.qp = ready_qp(e.g, &ud);
    arg = coming(&e, 100);
    sge.lkey ^= 0x100;
    qp_recv(e.qp, 2, &sge, 1);
    CHECK_EQ(deliver(&arg, 1), 0);
    cq_expect(e.qp->rcq, 2, VMRI_WC_LOC_PROT_ERR);
    CHECK_EQ(qp_state(e.qp), VMRI_QPS_ERR);
}

/* Only to devices of the uplink that it came by. */
TEST(relay_delivers_by_the_devices_uplink)
{
    struct end e = begin();
    struct nic *other = nic_new();
    struct vmri_ctl_uplink_deliver arg = coming(&e, 100);

    receive(&e, 1, 1000);
    arg.uplink = other->uplink;
    expect_dropped(&e, arg);
    arg.uplink = 99;
    CHECK_EQ(deliver(&arg, 1), -ENOENT);
    CHECK_EQ(nic_close(e.nic), 0);
    arg.uplink = e.nic->uplink;
    CHECK_EQ(deliver(&arg, 1), -ENOENT);
    e.nic = nic_new();
    CHECK_EQ(e.nic->uplink, arg.uplink);
    expect_dropped(&e, arg);
}

TEST(relay_refuses)
{
    struct end e = begin();
    struct vmri_ctl_uplink_deliver good = coming(&e, 100), arg = good;

    arg.length = VMRI_DATAGRAM_MAX + 1;
    CHECK_EQ(deliver(&arg, 1), -EINVAL);
    arg = good;
    arg.datagram.src_qpn = 1U << 24;
    CHECK_EQ(deliver(&arg, 1), -EINVAL);
    arg = good;
    arg.datagram.dest_qpn = 1U << 24;
    CHECK_EQ(deliver(&arg, 1), -EINVAL);
    arg = good;
    arg.datagram.flow_label = 1U << 20;
    CHECK_EQ(deliver(&arg, 1), -EINVAL);
    arg = good;
    arg.datagram.sl = 16;
    CHECK_EQ(deliver(&arg, 1), -EINVAL);
    arg = good;
    arg.datagram.flags = VMRI_DATAGRAM_FLAGS + 1;
    CHECK_EQ(deliver(&arg, 1), -EINVAL);
    arg = good;
    arg.datagram.reserved = 1;
    CHECK_EQ(deliver(&arg, 1), -EINVAL);
    arg = good;
    arg.datagram.sgid[0] = 0xff;
    CHECK_EQ(deliver(&arg, 1), -EINVAL);
    CHECK_EQ(guest_call(e.g, VMRI_OP_ctl_uplink_deliver, &good, sizeof(good)),
             -EPERM);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_uplink_deliver, &good, sizeof(good) - 1),
             -EFAULT);

    /* dom0's buffer is not there: the receive ends, with what there was. */
    receive(&e, 1, 1000);
    good.data = 1;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_uplink_deliver, &good, sizeof(good)),
             -EFAULT);
    CHECK_EQ(cq_expect(e.qp->rcq, 1, 0).byte_len, GRH);
}
