/* SPDX-License-Identifier: GPL-2.0-only */
/* datagram.c: UD and QP1: the 40 bytes of GRH, Q_Keys, drops, errors. */
#include "pair.h"

#define GRH     40U

static const struct guest_qp_opts ud = {
    .type = VMRI_QPT_UD, .max_inline = 256,
};

static struct guest_wr ud_wr(const struct pair *p, uint64_t wr_id,
                             uint64_t from, uint32_t bytes)
{
    return (struct guest_wr){
        .wr_id = wr_id, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&p->ma, from, bytes) }, .to = p->qb,
    };
}

static uint64_t drops(struct guest *g)
{
    struct vmri_counters c;

    guest_counters(g, &c);
    return c.ud_drops;
}

TEST(ud_all_sizes)
{
    static const uint32_t sizes[] = {
        0, 1, 7, 8, 100, 255, 256, 1024, 2048, 4055, 4056, 4057, 4095, 4096,
    };
    struct pair p = pair_new(&ud, NULL);
    unsigned int i, how;

    for ( i = 0; i < ARRAY_SIZE(sizes); i++ )
        for ( how = 0; how < 4; how++ )
        {
            uint32_t n = sizes[i];
            struct guest_wr wr = ud_wr(&p, i, how * 333, n);
            bool imm = how & 1, is_inline = (how & 2) && n <= 256;
            uint64_t copied = env_stats.copied;
            struct vmri_cqe cqe;

            fill_pattern(p.ma.mem + how * 333, n, i);
            memset(p.mb.mem, 0x55, 9000);
            if ( imm )
                wr.opcode = VMRI_WR_SEND_WITH_IMM;
            wr.imm = 77;
            if ( is_inline )
            {
                wr.flags |= VMRI_SEND_INLINE;
                wr.data = p.ma.mem + how * 333;
                wr.length = n;
                wr.num_sge = 0;
            }
            pair_recv(&p, 500, 1000, GRH + n + how);
            pair_send(&p, &wr);
            cqe = cq_expect(p.qa->scq, i, 0);
            CHECK_EQ(cqe.opcode, VMRI_WC_OP_SEND);
            cqe = cq_expect(p.qb->rcq, 500, 0);
            CHECK_EQ(cqe.byte_len, GRH + n);
            CHECK_EQ(cqe.src_qp, p.qa->qpn);
            CHECK_EQ(cqe.slid, p.a->lid);
            CHECK_EQ(cqe.opcode, VMRI_WC_OP_RECV);
            CHECK_EQ(cqe.flags, imm ? VMRI_WC_WITH_IMM : 0);
            CHECK_EQ(cqe.imm, imm ? 77 : 0);
            CHECK_EQ(match_pattern(p.mb.mem + 1000 + GRH, n, i, 0), n);
            /* Without a GRH its place is left alone; nothing else is touched. */
            CHECK(all_bytes(p.mb.mem, 1000 + GRH, 0x55));
            CHECK(all_bytes(p.mb.mem + 1000 + GRH + n, 1000, 0x55));
            CHECK_EQ(env_stats.copied - copied, is_inline ? 0 : n);
        }
}

static void receive_is_not_done(void *data)
{
    const struct pair *p = data;

    CHECK_EQ(p->qb->prod_r - p->qb->hdr->rq.cons, 3);
}

/* A slot is the guest's again when its receive is complete, not when it is taken. */
TEST(ud_slots_return_with_completions)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = ud_wr(&p, 1, 0, 100);
    unsigned int i;

    for ( i = 0; i < 3; i++ )
        pair_recv(&p, 10 + i, 0, GRH + 100);
    env_test_on_map(1, receive_is_not_done, &p);
    pair_send(&p, &wr);
    cq_expect(p.qb->rcq, 10, 0);
    CHECK_EQ(p.qb->prod_r - p.qb->hdr->rq.cons, 2);
    qp_set_state(p.qb, VMRI_QPS_ERR);
    cq_expect(p.qb->rcq, 11, VMRI_WC_WR_FLUSH_ERR);
    cq_expect(p.qb->rcq, 12, VMRI_WC_WR_FLUSH_ERR);
    CHECK_EQ(p.qb->prod_r, p.qb->hdr->rq.cons);
}

/* The address vector's GRH, as IBTA 8.3 lays it out. */
TEST(ud_global_route_header)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = ud_wr(&p, 1, 0, 300);
    struct vmri_send_wqe *wqe = (void *)(p.qa->mem + p.qa->arg.sq_offset);
    const uint8_t *grh = p.mb.mem;
    struct vmri_cqe cqe;
    unsigned int i;

    fill_pattern(p.ma.mem, 300, 1);
    qp_post_send(p.qa, &wr);
    wqe->u.ud.av.flags = VMRI_AV_GRH;
    wqe->u.ud.av.traffic_class = 0x5a;
    wqe->u.ud.av.flow_label = 0x12345;
    wqe->u.ud.av.hop_limit = 64;
    wqe->u.ud.av.sl = 3;
    for ( i = 0; i < 16; i++ )
        wqe->u.ud.av.dgid[i] = (uint8_t)(0xf0 + i);
    pair_recv(&p, 2, 0, 4096);
    qp_ring(p.qa);
    cq_expect(p.qa->scq, 1, 0);
    cqe = cq_expect(p.qb->rcq, 2, 0);
    CHECK_EQ(cqe.flags, VMRI_WC_GRH);
    CHECK_EQ(cqe.sl, 3);
    CHECK_EQ(cqe.byte_len, GRH + 300);
    CHECK_EQ(grh[0], 0x65);
    CHECK_EQ(grh[1], 0xa1);
    CHECK_EQ(grh[2], 0x23);
    CHECK_EQ(grh[3], 0x45);
    CHECK_EQ(grh[6], 0x1b);
    CHECK_EQ(grh[7], 64);
    for ( i = 0; i < 8; i++ )
    {
        CHECK_EQ(grh[8 + i], (uint8_t)(p.a->attr.gid_prefix >> (56 - 8 * i)));
        CHECK_EQ(grh[16 + i], (uint8_t)(p.a->attr.port_guid >> (56 - 8 * i)));
    }
    CHECK_EQ(memcmp(grh + 24, wqe->u.ud.av.dgid, 16), 0);
    CHECK_EQ(match_pattern(p.mb.mem + GRH, 300, 1, 0), 300);
}

/* Receives in pieces, with the border of the GRH within one. */
TEST(ud_scattered_receives)
{
    static const uint32_t cuts[] = { 0, 1, 39, 40, 41, 100 };
    struct pair p = pair_new(&ud, NULL);
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(cuts); i++ )
    {
        struct guest_wr wr = ud_wr(&p, i, 0, 200);
        struct vmri_sge sge[3] = {
            mr_sge(&p.mb, 5000, cuts[i]), mr_sge(&p.mb, 0, 0),
            mr_sge(&p.mb, 10000, 240 - cuts[i]),
        };
        uint8_t got[240];

        fill_pattern(p.ma.mem, 200, i);
        qp_recv(p.qb, 1, sge, 3);
        pair_send(&p, &wr);
        cq_expect(p.qa->scq, i, 0);
        cq_expect(p.qb->rcq, 1, 0);
        memcpy(got, p.mb.mem + 5000, cuts[i]);
        memcpy(got + cuts[i], p.mb.mem + 10000, 240 - cuts[i]);
        CHECK_EQ(match_pattern(got + GRH, 200, i, 0), 200);
    }
}

/* Dropped without a word to the sender, and counted where it can be seen. */
TEST(ud_drops)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_qp *rc = guest_qp(p.b, NULL), *reset = guest_qp(p.b, &ud);
    struct guest_wr wr = ud_wr(&p, 1, 0, 100);
    struct guest fake = { .lid = 0xbfff };
    struct guest_qp nowhere = { .guest = &fake, .qpn = 5 };
    struct vmri_counters c;
    unsigned int i;

    /* No receive; one that is too small stays for those that fit. */
    pair_send(&p, &wr);
    CHECK_EQ(drops(p.b), 1);
    pair_recv(&p, 2, 0, GRH + 99);
    pair_send(&p, &wr);
    CHECK_EQ(drops(p.b), 2);
    wr.sge[0].length = 99;
    pair_send(&p, &wr);
    cq_expect(p.qb->rcq, 2, 0);

    pair_recv(&p, 3, 0, 4096);
    wr.qkey = 0x22222222;
    pair_send(&p, &wr);
    guest_counters(p.b, &c);
    CHECK_EQ(c.qkey_violations, 1);
    CHECK_EQ(c.ud_drops, 3);
    wr.qkey = 0x11111111;

    wr.to = rc;
    qp_to(rc, rc, VMRI_QPS_INIT, NULL);
    qp_to(rc, rc, VMRI_QPS_RTR, NULL);
    pair_send(&p, &wr);
    wr.to = reset;
    pair_send(&p, &wr);
    CHECK_EQ(drops(p.b), 5);
    wr.to = &nowhere;
    pair_send(&p, &wr);
    nowhere.guest = p.b;
    nowhere.qpn = 0xfffff;
    pair_send(&p, &wr);
    CHECK_EQ(drops(p.a), 2);

    wr.to = p.qb;
    env_test_domain_running(p.b->domain, false);
    pair_send(&p, &wr);
    CHECK_EQ(drops(p.a), 3);
    env_test_domain_running(p.b->domain, true);

    for ( i = 0; i < 9; i++ )
        cq_expect(p.qa->scq, 1, 0);
    cq_expect_none(p.qb->rcq);
    CHECK_EQ(qp_state(p.qa), VMRI_QPS_RTS);
    CHECK_EQ(qp_state(p.qb), VMRI_QPS_RTS);

    pair_send(&p, &wr);
    cq_expect(p.qb->rcq, 3, 0);
}

/* The high bit in a Q_Key asks for the QP's own. */
TEST(ud_own_qkey)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = ud_wr(&p, 1, 0, 10);
    struct vmri_qp_modify arg = { .mask = VMRI_QPA_QKEY, .qkey = 0x80010000 };

    pair_recv(&p, 2, 0, 100);
    wr.qkey = 0x80000000;
    pair_send(&p, &wr);
    cq_expect(p.qb->rcq, 2, 0);

    /* A user process cannot say it: only a QP that has it reaches QP1. */
    CHECK_EQ(qp_modify(p.qb, &arg), 0);
    pair_recv(&p, 3, 0, 100);
    wr.qkey = 0x80010000;
    pair_send(&p, &wr);
    cq_expect_none(p.qb->rcq);
    CHECK_EQ(qp_modify(p.qa, &arg), 0);
    pair_send(&p, &wr);
    cq_expect(p.qb->rcq, 3, 0);
}

struct ud_wrong {
    uint8_t opcode, flags;
    uint32_t length, key_change;
    uint8_t status;
    uint16_t vendor_err;
};

/* A wrong request stops the send queue alone, which can be made to go again. */
TEST(ud_errors)
{
    static const struct ud_wrong wrong[] = {
        { VMRI_WR_RDMA_WRITE, 0, 0, 0, VMRI_WC_LOC_QP_OP_ERR,
          VMRI_VERR_OPCODE },
        { VMRI_WR_RDMA_READ, 0, 0, 0, VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_OPCODE },
        { VMRI_WR_SEND, 0x20, 0, 0, VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_FLAGS },
        { VMRI_WR_SEND, 0, 4097, 0, VMRI_WC_LOC_LEN_ERR, VMRI_VERR_LENGTH },
        { VMRI_WR_SEND, 0, 10, 0x10000, VMRI_WC_LOC_PROT_ERR, VMRI_VERR_KEY },
    };
    struct pair p = pair_new(&ud, NULL);
    unsigned int i;

    pair_recv(&p, 9, 0, 8000);
    for ( i = 0; i < ARRAY_SIZE(wrong); i++ )
    {
        struct guest_wr wr = ud_wr(&p, 1, 0, 8000), ok = ud_wr(&p, 2, 0, 10);
        struct vmri_cqe cqe;

        wr.opcode = wrong[i].opcode;
        wr.flags |= wrong[i].flags;
        wr.length = wrong[i].length;
        wr.sge[0].lkey ^= wrong[i].key_change;
        qp_post_send(p.qa, &wr);
        pair_send(&p, &ok);
        cqe = cq_expect(p.qa->scq, 1, wrong[i].status);
        CHECK_EQ(cqe.vendor_err, wrong[i].vendor_err);
        cq_expect(p.qa->scq, 2, VMRI_WC_WR_FLUSH_ERR);
        CHECK_EQ(qp_state(p.qa), VMRI_QPS_SQE);
        CHECK_EQ(qp_state(p.qb), VMRI_QPS_RTS);

        /* In SQE receives still complete, sends are flushed. */
        pair_send(&p, &ok);
        cq_expect(p.qa->scq, 2, VMRI_WC_WR_FLUSH_ERR);
        qp_set_state(p.qa, VMRI_QPS_RTS);
    }
    cq_expect_none(p.qb->rcq);
    {
        struct guest_wr ok = ud_wr(&p, 3, 0, 10);

        pair_send(&p, &ok);
        cq_expect(p.qa->scq, 3, 0);
        cq_expect(p.qb->rcq, 9, 0);
    }
}

/* A receive whose memory is wrong is its owner's fault alone. */
TEST(ud_bad_receive)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = ud_wr(&p, 1, 0, 10);
    struct vmri_sge sge = mr_sge(&p.mb, 0, 100);

    sge.lkey ^= 0x10000;
    qp_recv(p.qb, 2, &sge, 1);
    pair_recv(&p, 3, 0, 100);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(qp_state(p.qa), VMRI_QPS_RTS);
    CHECK_EQ(cq_expect(p.qb->rcq, 2, VMRI_WC_LOC_PROT_ERR).vendor_err,
             VMRI_VERR_KEY);
    CHECK_EQ(qp_state(p.qb), VMRI_QPS_ERR);
    world_settle();
    cq_expect(p.qb->rcq, 3, VMRI_WC_WR_FLUSH_ERR);
    cq_expect_none(p.qb->rcq);
}

/* Management: QP1 takes datagrams, QP0 gives and takes none across domains. */
TEST(ud_management_queues)
{
    struct guest_qp_opts gsi = { .type = VMRI_QPT_GSI, .kernel = true };
    struct pair p = pair_new(&gsi, NULL);
    struct guest_wr wr = ud_wr(&p, 1, 0, 256);
    struct guest_qp *smi = qp_prepare(p.a, &gsi), *sink = qp_prepare(p.b, &gsi);

    pair_recv(&p, 2, 0, 1000);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(cq_expect(p.qb->rcq, 2, 0).src_qp, 1);

    smi->arg.type = sink->arg.type = VMRI_QPT_SMI;
    CHECK_EQ(try_qp(smi), 0);
    CHECK_EQ(try_qp(sink), 0);
    qp_connect(smi, sink, NULL);
    p.qa = smi;
    p.qb = sink;
    wr.to = sink;
    pair_recv(&p, 3, 0, 1000);
    pair_send(&p, &wr);
    cq_expect(smi->scq, 1, 0);
    cq_expect_none(sink->rcq);

    /* Nor to a queue that takes datagrams. */
    p.qb = guest_qp(p.b, &ud);
    qp_connect(p.qb, p.qb, NULL);
    wr.to = p.qb;
    pair_recv(&p, 4, 0, 1000);
    pair_send(&p, &wr);
    cq_expect(smi->scq, 1, 0);
    cq_expect_none(p.qb->rcq);
}

/* QP0 hears itself, whatever the port's state and key, and nobody else. */
TEST(ud_subnet_management_to_oneself)
{
    struct guest_qp_opts mad = { .type = VMRI_QPT_GSI, .kernel = true };
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = ud_wr(&p, 1, 0, 256);
    struct guest_qp *smi = qp_prepare(p.a, &mad);
    struct vmri_sge sge = mr_sge(&p.ma, 5000, 300);
    struct vmri_ctl_port port = {
        .domid = 1, .mask = VMRI_PORTA_STATE | VMRI_PORTA_PKEY,
        .state = VMRI_PORT_INIT, .pkeys = { 0x7fff },
    };

    smi->arg.type = VMRI_QPT_SMI;
    CHECK_EQ(try_qp(smi), 0);
    qp_connect(smi, smi, NULL);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &port, sizeof(port)), 0);
    fill_pattern(p.ma.mem, 256, 4);
    qp_recv(smi, 2, &sge, 1);
    p.qa = smi;
    wr.to = smi;
    pair_send(&p, &wr);
    cq_expect(smi->scq, 1, 0);
    cq_expect(smi->rcq, 2, 0);
    CHECK_EQ(match_pattern(p.ma.mem + 5000 + GRH, 256, 4, 0), 256);

    /* A datagram of another queue pair of the device does not come in. */
    port.mask = VMRI_PORTA_STATE;
    port.state = VMRI_PORT_ACTIVE;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &port, sizeof(port)), 0);
    p.qa = guest_qp(p.a, &ud);
    qp_connect(p.qa, p.qa, NULL);
    qp_recv(smi, 3, &sge, 1);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    cq_expect_none(smi->rcq);
}

/* To oneself. */
TEST(ud_loopback)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = ud_wr(&p, 1, 0, 100);
    struct vmri_sge sge = mr_sge(&p.ma, 5000, 200);

    fill_pattern(p.ma.mem, 100, 4);
    wr.to = p.qa;
    qp_recv(p.qa, 2, &sge, 1);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    cq_expect(p.qa->rcq, 2, 0);
    CHECK_EQ(match_pattern(p.ma.mem + 5000 + GRH, 100, 4, 0), 100);
}

static struct pair *hook_pair;

static void deregister_source(void *unused)
{
    (void)unused;
    CHECK_EQ(mr_deregister(&hook_pair->ma), 0);
}

/* Between the look at it and the copy: the receiver's queue pair is unharmed. */
TEST(ud_source_vanishes)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = ud_wr(&p, 1, 0, 3000);
    struct vmri_send_wqe *wqe = (void *)(p.qa->mem + p.qa->arg.sq_offset);

    hook_pair = &p;
    pair_recv(&p, 2, 0, 4000);
    qp_post_send(p.qa, &wr);
    wqe->u.ud.av.flags = VMRI_AV_GRH;
    env_test_on_map(1, deregister_source, NULL);
    qp_ring(p.qa);
    CHECK_EQ(cq_expect(p.qa->scq, 1, VMRI_WC_LOC_PROT_ERR).vendor_err,
             VMRI_VERR_KEY);
    CHECK_EQ(cq_expect(p.qb->rcq, 2, 0).byte_len, GRH);
    CHECK_EQ(qp_state(p.qb), VMRI_QPS_RTS);
    CHECK_EQ(qp_state(p.qa), VMRI_QPS_SQE);
}

TEST(ud_receive_ring_out_of_range)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = ud_wr(&p, 1, 0, 100);

    p.qb->hdr->rq.prod = 0x12345;
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(qp_state(p.qb), VMRI_QPS_ERR);
    world_settle();
    CHECK_EQ(p.b->events[VMRI_EVENT_QP_FATAL], 1);
    cq_expect_none(p.qb->rcq);
}

/* Of a kernel's receive list as many entries count as any request may have. */
TEST(ud_long_receive_lists)
{
    struct guest_qp_opts opts = {
        .type = VMRI_QPT_UD, .kernel = true, .ind_log2 = 6,
    };
    struct pair p = pair_new(&opts, NULL);
    struct guest_wr wr = ud_wr(&p, 1, 0, 280);
    struct vmri_sge sge[40];
    unsigned int i, round;

    fill_pattern(p.ma.mem, 281, 1);
    for ( i = 0; i < 40; i++ )
        sge[i] = mr_sge(&p.mb, i * 10, 10);
    for ( round = 0; round < 5; round++ )
    {
        qp_recv(p.qb, 2, sge, 40);
        wr.sge[0].length = 281;
        pair_send(&p, &wr);
        cq_expect_none(p.qb->rcq);
        wr.sge[0].length = 280;
        pair_send(&p, &wr);
        cq_expect(p.qb->rcq, 2, 0);
        CHECK_EQ(match_pattern(p.mb.mem + GRH, 280, 1, 0), 280);
        CHECK(all_bytes(p.mb.mem + 320, 80, 0));
        cq_expect(p.qa->scq, 1, 0);
        cq_expect(p.qa->scq, 1, 0);
    }
}

/* The first 40 bytes of a receive lie where they may not. */
TEST(ud_header_cannot_be_written)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = ud_wr(&p, 1, 0, 100);
    struct vmri_send_wqe *wqe = (void *)(p.qa->mem + p.qa->arg.sq_offset);
    struct vmri_sge sge[2] = { mr_sge(&p.mb, 0, GRH), mr_sge(&p.mb, 0, 200) };

    sge[0].addr -= 1;
    qp_recv(p.qb, 2, sge, 2);
    qp_post_send(p.qa, &wr);
    wqe->u.ud.av.flags = VMRI_AV_GRH;
    qp_ring(p.qa);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(cq_expect(p.qb->rcq, 2, VMRI_WC_LOC_PROT_ERR).vendor_err,
             VMRI_VERR_BOUNDS);
    CHECK_EQ(qp_state(p.qb), VMRI_QPS_ERR);
}
