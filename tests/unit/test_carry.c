/* SPDX-License-Identifier: GPL-2.0-only */
/* carry.c: what queue pairs send to other hosts, and get from there. */
#include "nic.h"
#include "internal.h"

#undef memcpy
#undef memset

/* ---- requests and receives ---- */

TEST(carry_requests)
{
    struct guest_qp_opts opts = { .max_inline = 100 };
    struct nic_pair p = nic_pair(&opts);
    uint8_t data[100];
    struct guest_wr wr = {
        .wr_id = 0x1122334455667788, .opcode = VMRI_WR_RDMA_WRITE_WITH_IMM,
        .flags = VMRI_SEND_SIGNALED | VMRI_SEND_SOLICITED | VMRI_SEND_FENCE,
        .num_sge = 4, .imm = 0x01020304, .length = 3000,
        .sge = { mr_sge(&p.mr, 10, 1000), mr_sge(&p.mr, 0, 0),
                 mr_sge(&p.mr, 70000, 1500), mr_sge(&p.mr, 5, 4000) },
        .remote_addr = 0x7f0012345678, .rkey = 0x99887766,
    };
    struct vmri_counters before, after;
    struct nic_msg msg;

    guest_counters(p.g, &before);
    qp_send(p.qp, &wr);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    CHECK_EQ(msg.m.units, 2);
    CHECK_EQ(msg.m.twin, p.qp->arg.twin);
    CHECK_EQ(msg.m.u.send.wr_id, wr.wr_id);
    CHECK_EQ(msg.m.u.send.opcode, wr.opcode);
    CHECK_EQ(msg.m.u.send.flags, wr.flags);
    CHECK_EQ(msg.m.u.send.imm, wr.imm);
    CHECK_EQ(msg.m.u.send.length, 3000);
    CHECK_EQ(msg.m.u.send.remote_addr, wr.remote_addr);
    CHECK_EQ(msg.m.u.send.rkey, wr.rkey);

    /* Nothing of length 0, and no more than the message is long. */
    CHECK_EQ(msg.m.u.send.num_sge, 3);
    CHECK_EQ(msg.u.sge[0].addr, p.mr.iova + 10);
    CHECK_EQ(msg.u.sge[0].length, 1000);
    CHECK_EQ(msg.u.sge[1].lkey, p.mr.key);
    CHECK_EQ(msg.u.sge[1].length, 1500);
    CHECK_EQ(msg.u.sge[2].length, 500);
    cq_expect_none(p.qp->scq);
    nic_sent(p.nic, &msg, 0);
    CHECK_EQ(cq_expect(p.qp->scq, wr.wr_id, VMRI_WC_SUCCESS).byte_len, 3000);

    /* Inline data is in the message; unsignalled ones complete silently. */
    fill_pattern(data, sizeof(data), 3);
    memset(p.nic->units, 0xff, VMRI_UPLINK_UNIT << NIC_LOG2);
    wr = (struct guest_wr){ .wr_id = 2, .opcode = VMRI_WR_SEND, .length = 100,
                            .flags = VMRI_SEND_INLINE, .data = data };
    qp_send(p.qp, &wr);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    CHECK_EQ(msg.m.units, 3);
    CHECK_EQ(msg.m.u.send.num_sge, 0);
    CHECK_EQ(match_pattern(msg.u.data, 100, 3, 0), 100);
    CHECK(all_bytes(msg.u.data + 100, 28, 0));
    nic_sent(p.nic, &msg, 0);
    cq_expect_none(p.qp->scq);

    /* A READ counts as what comes in. */
    wr = nic_wr(&p, 3, 0, 4096);
    wr.opcode = VMRI_WR_RDMA_READ;
    qp_send(p.qp, &wr);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    nic_sent(p.nic, &msg, 0);
    cq_expect(p.qp->scq, 3, VMRI_WC_SUCCESS);
    guest_counters(p.g, &after);
    CHECK_EQ(after.tx_msgs - before.tx_msgs, 3);
    CHECK_EQ(after.tx_bytes - before.tx_bytes, 3100);
    CHECK_EQ(after.rx_bytes - before.rx_bytes, 4096);
}

TEST(carry_receives)
{
    struct nic *nic = nic_new();
    struct vmri_qp_modify arg;
    struct vmri_sge sge[2];
    struct guest_mr mr;
    struct guest_qp *qp;
    struct nic_msg msg;
    struct vmri_cqe cqe;
    struct guest *g;
    uint32_t twin;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = nic_mr(nic, g, 10000, NIC_ACCESS, &twin);
    qp = nic_qp(nic, g, NULL);
    sge[0] = mr_sge(&mr, 0, 100);
    sge[1] = mr_sge(&mr, 200, 50);

    /* Posted in INIT, they are handed out with RTR; others when posted. */
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    qp_recv(qp, 1, sge, 2);
    nic_expect_none(nic);
    nic_attr(qp, VMRI_QPS_RTR, &arg);
    nic_follow(nic, qp, &arg);
    msg = nic_expect(nic, VMRI_UPLINK_RECV);
    CHECK_EQ(msg.m.u.recv.wr_id, 1);
    CHECK_EQ(msg.m.u.recv.num_sge, 2);
    CHECK_EQ(msg.u.sge[1].addr, mr.iova + 200);
    CHECK_EQ(qp->hdr->rq.wait, 1);
    qp_recv(qp, 2, NULL, 0);
    nic_expect(nic, VMRI_UPLINK_RECV);
    CHECK_EQ(qp->hdr->rq.cons, 0);

    nic_received(nic, &msg, 0, 77);
    cqe = cq_expect(qp->rcq, 1, VMRI_WC_SUCCESS);
    CHECK_EQ(cqe.byte_len, 77);
    CHECK_EQ(cqe.opcode, VMRI_WC_OP_RECV);
    CHECK_EQ(qp->hdr->rq.cons, 1);
    nic_say(nic, (struct vmri_uplink_result){
        .twin = msg.m.twin, .type = VMRI_UPLINK_RECEIVED, .wr_id = 2,
        .opcode = VMRI_WC_OP_RECV_RDMA_WITH_IMM, .imm = 0x0a0b0c0d,
        .flags = VMRI_WC_WITH_IMM | VMRI_WC_SOLICITED | VMRI_WC_GRH,
    });
    cqe = cq_expect(qp->rcq, 2, VMRI_WC_SUCCESS);
    CHECK_EQ(cqe.opcode, VMRI_WC_OP_RECV_RDMA_WITH_IMM);
    CHECK_EQ(cqe.imm, 0x0a0b0c0d);
    CHECK_EQ(cqe.flags, VMRI_WC_WITH_IMM | VMRI_WC_SOLICITED);

    /* More results than there were receives. */
    nic_received(nic, &msg, 0, 77);
    cq_expect_none(qp->rcq);
}

TEST(carry_atomics)
{
    struct nic_pair p = nic_pair(NULL);
    struct guest_wr wr = nic_wr(&p, 1, 0, 8);
    struct nic_msg msg;

    wr.opcode = VMRI_WR_ATOMIC_CMP_AND_SWP;
    wr.compare_add = 5;
    wr.swap = 6;
    qp_send(p.qp, &wr);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    CHECK_EQ(msg.m.u.send.compare_add, 5);
    CHECK_EQ(msg.m.u.send.swap, 6);
    nic_sent(p.nic, &msg, 0);
    cq_expect(p.qp->scq, 1, VMRI_WC_SUCCESS);

    /* In two pieces, which this host could do, and NICs cannot. */
    wr.num_sge = 2;
    wr.sge[0].length = 4;
    wr.sge[1] = mr_sge(&p.mr, 8, 4);
    qp_send(p.qp, &wr);
    CHECK_EQ(cq_expect(p.qp->scq, 1, VMRI_WC_LOC_QP_OP_ERR).vendor_err,
             VMRI_VERR_SGES);
}

TEST(carry_no_more_than_the_queue_is_long)
{
    struct guest_qp_opts opts = { .sq_log2 = 2, .rq_log2 = 1 };
    struct nic_pair p = nic_pair(&opts);
    struct guest_wr wr = nic_wr(&p, 0, 0, 10);
    struct vmri_sge sge = mr_sge(&p.mr, 0, 10);
    struct nic_msg msg[8];
    unsigned int i;

    for ( i = 0; i < 6; i++ )
    {
        wr.wr_id = i;
        qp_send(p.qp, &wr);
    }
    for ( i = 0; i < 4; i++ )
        msg[i] = nic_expect(p.nic, VMRI_UPLINK_SEND);
    nic_expect_none(p.nic);

    /* A guest that does not look at cons: what it overwrites is its own. */
    qp_recv(p.qp, 10, &sge, 1);
    qp_recv(p.qp, 11, &sge, 1);
    qp_recv(p.qp, 12, &sge, 1);
    msg[6] = nic_expect(p.nic, VMRI_UPLINK_RECV);
    msg[7] = nic_expect(p.nic, VMRI_UPLINK_RECV);
    nic_expect_none(p.nic);

    for ( i = 0; i < 2; i++ )
        nic_sent(p.nic, &msg[i], 0);
    nic_received(p.nic, &msg[6], 0, 1);
    CHECK(guest_serve(p.g));
    CHECK_EQ(nic_expect(p.nic, VMRI_UPLINK_RECV).m.u.recv.wr_id, 12);
    for ( i = 4; i < 6; i++ )
        CHECK_EQ(nic_expect(p.nic, VMRI_UPLINK_SEND).m.u.send.wr_id, i);
    nic_expect_none(p.nic);
}

/* ---- hostile requests: none reaches the NIC ---- */

static struct vmri_cqe send_fails(struct nic_pair *p, const struct guest_wr *wr,
                                  uint8_t status)
{
    struct vmri_cqe cqe;
    struct nic_msg msg;

    qp_send(p->qp, wr);
    cqe = cq_expect(p->qp->scq, wr->wr_id, status);
    CHECK_EQ(qp_state(p->qp), VMRI_QPS_ERR);
    msg = nic_expect(p->nic, VMRI_UPLINK_MODIFY);
    CHECK_EQ(msg.u.modify.state, VMRI_QPS_ERR);
    nic_expect_none(p->nic);
    return cqe;
}

static void sge_fails(struct nic_pair *p, struct vmri_sge sge,
                      unsigned int opcode, uint16_t verr)
{
    struct guest_wr wr = nic_wr(p, 9, 0, 0);
    struct vmri_qp_modify arg = { .mask = VMRI_QPA_STATE };

    wr.opcode = (uint8_t)opcode;
    wr.sge[0] = sge;
    CHECK_EQ(send_fails(p, &wr, VMRI_WC_LOC_PROT_ERR).vendor_err, verr);
    nic_moved(p->nic, p->qp->arg.twin, VMRI_QPS_ERR, 0);
    nic_follow(p->nic, p->qp, &arg);
    nic_connect(p->nic, p->qp, VMRI_QPS_RTS);
}

TEST(carry_entries_that_name_wrongly)
{
    struct nic_pair p = nic_pair(NULL);
    struct guest_mr local, foreign, gone, readonly;
    struct guest *other = nic_guest(p.nic, 2);
    struct vmri_sge sge = mr_sge(&p.mr, 0, 100);
    uint32_t twin, pd = p.g->pd;

    local = guest_mr(p.g, 4096, 0, LAYOUT_RUN, NIC_ACCESS);
    foreign = nic_mr(p.nic, other, 4096, NIC_ACCESS, &twin);
    readonly = nic_mr(p.nic, p.g, 4096, 0, &twin);
    gone = nic_mr(p.nic, p.g, 4096, NIC_ACCESS, &twin);
    CHECK_EQ(mr_deregister(&gone), 0);

    sge_fails(&p, mr_sge(&local, 0, 8), VMRI_WR_SEND, VMRI_VERR_KEY);
    sge_fails(&p, mr_sge(&foreign, 0, 8), VMRI_WR_SEND, VMRI_VERR_KEY);
    sge_fails(&p, mr_sge(&gone, 0, 8), VMRI_WR_SEND, VMRI_VERR_KEY);
    sge_fails(&p, mr_sge(&readonly, 0, 8), VMRI_WR_RDMA_READ,
              VMRI_VERR_RIGHTS);
    sge.lkey = VMRI_LKEY_FRAMES;
    sge_fails(&p, sge, VMRI_WR_SEND, VMRI_VERR_KEY);
    sge.lkey = 0;
    sge_fails(&p, sge, VMRI_WR_SEND, VMRI_VERR_KEY);
    sge_fails(&p, mr_sge(&p.mr, p.mr.length - 7, 8), VMRI_WR_RDMA_WRITE,
              VMRI_VERR_BOUNDS);
    sge_fails(&p, mr_sge(&p.mr, ~0ULL, 8), VMRI_WR_RDMA_WRITE,
              VMRI_VERR_BOUNDS);

    p.g->pd = guest_pd(p.g);
    foreign = nic_mr(p.nic, p.g, 4096, NIC_ACCESS, &twin);
    p.g->pd = pd;
    sge_fails(&p, mr_sge(&foreign, 0, 8), VMRI_WR_SEND, VMRI_VERR_PD);
}

TEST(carry_requests_that_are_not_carried)
{
    static const struct {
        uint8_t opcode, flags;
        uint16_t num_sge;
        uint32_t length;
        uint8_t status;
        uint16_t verr;
    } bad[] = {
        { VMRI_WR_LOCAL_INV, 0, 0, 0, VMRI_WC_LOC_QP_OP_ERR,
          VMRI_VERR_OPCODE },
        { VMRI_WR_BIND_MW, 0, 0, 0, VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_OPCODE },
        { VMRI_WR_SEND_WITH_INV, 0, 1, 0, VMRI_WC_LOC_QP_OP_ERR,
          VMRI_VERR_OPCODE },
        { VMRI_WR_ATOMIC_WRITE, 0, 0, 8, VMRI_WC_LOC_QP_OP_ERR,
          VMRI_VERR_OPCODE },
        { VMRI_WR_REG_MR, 0, 0, 0, VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_OPCODE },
        { 200, 0, 0, 0, VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_OPCODE },
        { VMRI_WR_SEND, VMRI_SEND_INDIRECT, 1, 0, VMRI_WC_LOC_QP_OP_ERR,
          VMRI_VERR_FLAGS },
        { VMRI_WR_SEND, 0x80, 1, 0, VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_FLAGS },
        { VMRI_WR_SEND, 0, 5, 0, VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_SGES },
        { VMRI_WR_SEND, 0, 1, 101, VMRI_WC_LOC_LEN_ERR, VMRI_VERR_LENGTH },
        { VMRI_WR_RDMA_READ, VMRI_SEND_INLINE, 1, 0, VMRI_WC_LOC_QP_OP_ERR,
          VMRI_VERR_FLAGS },
        { VMRI_WR_SEND, VMRI_SEND_INLINE, 0, 65, VMRI_WC_LOC_LEN_ERR,
          VMRI_VERR_LENGTH },
    };
    struct guest_qp_opts opts = { .max_inline = 64 };
    struct nic_pair p = nic_pair(&opts);
    struct vmri_qp_modify arg;
    struct guest_wr wr;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        wr = nic_wr(&p, i, 0, 100);
        wr.opcode = bad[i].opcode;
        wr.flags = bad[i].flags;
        wr.num_sge = bad[i].num_sge;
        wr.length = bad[i].length;
        CHECK_AT(send_fails(&p, &wr, bad[i].status).vendor_err, bad[i].verr,
                 "request %u", i);
        nic_moved(p.nic, p.qp->arg.twin, VMRI_QPS_ERR, 0);
        arg = (struct vmri_qp_modify){ .mask = VMRI_QPA_STATE };
        nic_follow(p.nic, p.qp, &arg);
        nic_connect(p.nic, p.qp, VMRI_QPS_RTS);
    }
}

TEST(carry_atomics_that_the_nic_does_not_do)
{
    struct vmri_uplink_caps caps = nic_caps;
    struct nic_pair p = { .nic = calloc(1, sizeof(*p.nic)) };
    struct guest_wr wr;

    caps.atomics = 0;
    CHECK_EQ(try_nic(p.nic, NIC_LOG2, &caps), 0);
    nic_fabric();
    p.g = nic_guest(p.nic, 1);
    p.mr = nic_mr(p.nic, p.g, 4096, NIC_ACCESS, &p.mr_twin);
    p.qp = nic_qp(p.nic, p.g, NULL);
    nic_connect(p.nic, p.qp, VMRI_QPS_RTS);
    wr = nic_wr(&p, 1, 0, 8);
    wr.opcode = VMRI_WR_ATOMIC_FETCH_AND_ADD;
    send_fails(&p, &wr, VMRI_WC_LOC_QP_OP_ERR);
}

TEST(carry_ring_indices_out_of_range)
{
    struct nic_pair p = nic_pair(NULL);

    env_store(&p.qp->hdr->sq.prod, 1000);
    qp_ring(p.qp);
    CHECK_EQ(qp_state(p.qp), VMRI_QPS_ERR);
    CHECK_EQ(nic_expect(p.nic, VMRI_UPLINK_MODIFY).u.modify.state,
             VMRI_QPS_ERR);
    nic_expect_none(p.nic);
}

TEST(carry_receive_ring_out_of_range)
{
    struct nic_pair p = nic_pair(NULL);

    env_store(&p.qp->hdr->rq.prod, 1000);
    qp_ring(p.qp);
    CHECK_EQ(qp_state(p.qp), VMRI_QPS_ERR);
    nic_expect(p.nic, VMRI_UPLINK_MODIFY);
    nic_expect_none(p.nic);
}

/* ---- errors, in order ---- */

/* What is found wrong completes after what was handed out before. */
TEST(carry_bad_request_waits_for_those_before)
{
    struct nic_pair p = nic_pair(NULL);
    struct guest_wr wr = nic_wr(&p, 1, 0, 10);
    struct nic_msg msg[2], stop;

    qp_post_send(p.qp, &wr);
    wr.wr_id = 2;
    qp_post_send(p.qp, &wr);
    wr.wr_id = 3;
    wr.opcode = 99;
    qp_post_send(p.qp, &wr);
    wr.wr_id = 4;
    wr.opcode = VMRI_WR_SEND;
    qp_post_send(p.qp, &wr);
    qp_ring(p.qp);
    msg[0] = nic_expect(p.nic, VMRI_UPLINK_SEND);
    msg[1] = nic_expect(p.nic, VMRI_UPLINK_SEND);
    nic_expect_none(p.nic);
    cq_expect_none(p.qp->scq);
    nic_sent(p.nic, &msg[0], 0);
    guest_serve(p.g);
    cq_expect(p.qp->scq, 1, VMRI_WC_SUCCESS);
    cq_expect_none(p.qp->scq);
    nic_sent(p.nic, &msg[1], 0);
    guest_serve(p.g);
    cq_expect(p.qp->scq, 2, VMRI_WC_SUCCESS);
    cq_expect(p.qp->scq, 3, VMRI_WC_LOC_QP_OP_ERR);
    cq_expect(p.qp->scq, 4, VMRI_WC_WR_FLUSH_ERR);
    stop = nic_expect(p.nic, VMRI_UPLINK_MODIFY);
    CHECK_EQ(stop.u.modify.state, VMRI_QPS_ERR);
}

TEST(carry_bad_receive_waits_for_those_before)
{
    struct nic_pair p = nic_pair(NULL);
    struct vmri_sge sge = mr_sge(&p.mr, 0, 100);
    struct guest_wr wr = nic_wr(&p, 7, 0, 10);
    struct nic_msg recv, send;

    qp_recv(p.qp, 1, &sge, 1);
    recv = nic_expect(p.nic, VMRI_UPLINK_RECV);
    sge.lkey = 1;
    qp_recv(p.qp, 2, &sge, 1);
    qp_recv(p.qp, 3, &sge, 1);
    nic_expect_none(p.nic);

    /* Requests go on meanwhile. */
    qp_send(p.qp, &wr);
    send = nic_expect(p.nic, VMRI_UPLINK_SEND);
    nic_sent(p.nic, &send, 0);
    cq_expect(p.qp->scq, 7, VMRI_WC_SUCCESS);

    nic_received(p.nic, &recv, 0, 10);
    cq_expect(p.qp->rcq, 1, VMRI_WC_SUCCESS);
    guest_serve(p.g);
    CHECK_EQ(cq_expect(p.qp->rcq, 2, VMRI_WC_LOC_PROT_ERR).vendor_err,
             VMRI_VERR_KEY);
    cq_expect(p.qp->rcq, 3, VMRI_WC_WR_FLUSH_ERR);
    CHECK_EQ(qp_state(p.qp), VMRI_QPS_ERR);
}

/* An error of the NIC's ends the queue pair; flushes come in order. */
TEST(carry_error_of_the_nic)
{
    struct nic_pair p = nic_pair(NULL);
    struct vmri_sge sge = mr_sge(&p.mr, 0, 100);
    struct guest_wr wr = nic_wr(&p, 0, 0, 10);
    struct nic_msg send[3], recv;
    unsigned int i;

    qp_recv(p.qp, 20, &sge, 1);
    recv = nic_expect(p.nic, VMRI_UPLINK_RECV);
    for ( i = 0; i < 3; i++ )
    {
        wr.wr_id = i;
        wr.flags = 0;
        qp_send(p.qp, &wr);
        send[i] = nic_expect(p.nic, VMRI_UPLINK_SEND);
    }
    nic_sent(p.nic, &send[0], VMRI_WC_RETRY_EXC_ERR);
    cq_expect(p.qp->scq, 0, VMRI_WC_RETRY_EXC_ERR);
    CHECK_EQ(qp_state(p.qp), VMRI_QPS_ERR);
    CHECK_EQ(nic_expect(p.nic, VMRI_UPLINK_MODIFY).u.modify.state,
             VMRI_QPS_ERR);

    /* Posted now, they wait for those that are away. */
    wr.wr_id = 3;
    qp_send(p.qp, &wr);
    qp_recv(p.qp, 21, &sge, 1);
    guest_serve(p.g);
    cq_expect_none(p.qp->scq);
    nic_sent(p.nic, &send[1], VMRI_WC_WR_FLUSH_ERR);
    nic_sent(p.nic, &send[2], VMRI_WC_WR_FLUSH_ERR);
    nic_received(p.nic, &recv, VMRI_WC_WR_FLUSH_ERR, 0);
    nic_moved(p.nic, p.qp->arg.twin, VMRI_QPS_ERR, 0);
    guest_serve(p.g);
    for ( i = 1; i <= 3; i++ )
        cq_expect(p.qp->scq, i, VMRI_WC_WR_FLUSH_ERR);
    for ( i = 20; i <= 21; i++ )
        cq_expect(p.qp->rcq, i, VMRI_WC_WR_FLUSH_ERR);
    nic_expect_none(p.nic);
}

TEST(carry_statuses_that_there_are_not)
{
    struct nic_pair p = nic_pair(NULL);
    struct guest_wr wr = nic_wr(&p, 1, 0, 10);
    struct nic_msg msg;
    struct vmri_cqe cqe;

    qp_send(p.qp, &wr);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    nic_say(p.nic, (struct vmri_uplink_result){
        .twin = msg.m.twin, .type = VMRI_UPLINK_SENT, .status = 200,
        .opcode = 200, .wr_id = 1,
    });
    cqe = cq_expect(p.qp->scq, 1, VMRI_WC_GENERAL_ERR);
    CHECK_EQ(cqe.opcode, VMRI_WC_OP_SEND);
    nic_sent(p.nic, &msg, 0);
    cq_expect_none(p.qp->scq);
}

TEST(carry_events)
{
    struct nic_pair p = nic_pair(NULL);
    struct vmri_uplink_result r = {
        .twin = p.qp->arg.twin, .type = VMRI_UPLINK_EVENT,
        .event = VMRI_EVENT_COMM_EST,
    };

    nic_say(p.nic, r);
    r.event = VMRI_EVENT_DEVICE_FATAL;
    nic_say(p.nic, r);
    guest_serve(p.g);
    CHECK_EQ(p.g->events[VMRI_EVENT_COMM_EST], 1);
    CHECK_EQ(p.g->events[VMRI_EVENT_DEVICE_FATAL], 0);
    CHECK_EQ(qp_state(p.qp), VMRI_QPS_RTS);
    r.event = VMRI_EVENT_QP_ACCESS_ERR;
    nic_say(p.nic, r);
    guest_serve(p.g);
    CHECK_EQ(p.g->events[VMRI_EVENT_QP_ACCESS_ERR], 1);
    CHECK_EQ(qp_state(p.qp), VMRI_QPS_ERR);
}

TEST(carry_full_completion_queue)
{
    struct nic_pair p = nic_pair(NULL);
    struct guest_wr wr = nic_wr(&p, 0, 0, 10);
    struct nic_msg msg;
    unsigned int i;

    for ( i = 0; i < 65; i++ )
    {
        qp_send(p.qp, &wr);
        msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
        nic_sent(p.nic, &msg, 0);
    }
    guest_serve(p.g);
    CHECK_EQ(p.g->events[VMRI_EVENT_CQ_ERR], 1);
    CHECK_EQ(p.g->events[VMRI_EVENT_QP_FATAL], 1);
    CHECK_EQ(qp_state(p.qp), VMRI_QPS_ERR);
}
