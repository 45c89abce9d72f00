/* SPDX-License-Identifier: GPL-2.0-only */
/* steer.c, settle.c: queue pairs whose twin has to follow. */
#include "nic.h"
#include "internal.h"

#undef memcpy
#undef memset

/* ---- connecting ---- */

TEST(carry_two_steps_to_rtr)
{
    struct nic *nic = nic_new();
    struct vmri_qp_modify arg, query;
    struct guest_qp *qp;
    struct nic_msg msg;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    qp = nic_qp(nic, g, NULL);
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    nic_attr(qp, VMRI_QPS_RTR, &arg);
    arg.av.hop_limit = 9;
    CHECK_EQ(qp_modify(qp, &arg), -EINPROGRESS);
    CHECK_EQ(qp_state(qp), VMRI_QPS_INIT);
    CHECK_EQ(qp_modify(qp, &arg), -EBUSY);

    msg = nic_expect(nic, VMRI_UPLINK_MODIFY);
    CHECK_EQ(msg.m.units, 3);
    CHECK_EQ(msg.m.twin, qp->arg.twin);
    CHECK_EQ(msg.u.modify.state, VMRI_QPS_RTR);
    CHECK_EQ(msg.u.modify.dest_qpn, NIC_PEER);
    CHECK_EQ(msg.u.modify.av.dgid[0], 0x20);
    CHECK_EQ(msg.u.modify.av.dgid[15], 0x99);
    CHECK_EQ(msg.u.modify.av.hop_limit, 9);
    CHECK_EQ(msg.u.modify.av.dlid, 0);
    CHECK_EQ(msg.u.modify.path_mtu, nic_caps.mtu);
    CHECK_EQ(msg.u.modify.access_flags, VMRI_ACCESS_REMOTE_WRITE |
             VMRI_ACCESS_REMOTE_READ | VMRI_ACCESS_REMOTE_ATOMIC);
    CHECK_EQ(msg.u.modify.mask, VMRI_QPA_STATE | VMRI_QPA_PKEY_INDEX |
             VMRI_QPA_PORT | VMRI_QPA_ACCESS_FLAGS | VMRI_QPA_AV |
             VMRI_QPA_PATH_MTU | VMRI_QPA_DEST_QPN | VMRI_QPA_RQ_PSN |
             VMRI_QPA_MAX_DEST_RD_ATOMIC | VMRI_QPA_MIN_RNR_TIMER);
    nic_no_event(g);

    nic_moved(nic, qp->arg.twin, VMRI_QPS_RTR, 0);
    CHECK_EQ(nic_event(g, VMRI_OP_qp_modify, qp->qpn), 0);
    CHECK_EQ(qp_state(qp), VMRI_QPS_INIT);
    CHECK_EQ(qp_modify(qp, &arg), 0);

    /* The guest sees what it said, not where its peer is. */
    CHECK_EQ(qp_query(qp, &query), 0);
    CHECK_EQ(query.state, VMRI_QPS_RTR);
    CHECK_EQ(query.av.dlid, NIC_LID);
    CHECK_EQ(query.av.dgid[0], 0xfe);
    CHECK_EQ(query.path_mtu, 5);

    nic_attr(qp, VMRI_QPS_RTS, &arg);
    msg = nic_follow(nic, qp, &arg);
    CHECK_EQ(msg.u.modify.state, VMRI_QPS_RTS);
    CHECK_EQ(msg.u.modify.mask, arg.mask);
    CHECK_EQ(msg.u.modify.av.dgid[15], 0x99);
    CHECK_EQ(qp_state(qp), VMRI_QPS_RTS);
    nic_expect_none(nic);
}

TEST(carry_the_nic_refuses)
{
    struct nic *nic = nic_new();
    struct vmri_qp_modify arg;
    struct guest_qp *qp;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    qp = nic_qp(nic, g, NULL);
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    nic_attr(qp, VMRI_QPS_RTR, &arg);
    CHECK_EQ(qp_modify(qp, &arg), -EINPROGRESS);
    nic_expect(nic, VMRI_UPLINK_MODIFY);
    nic_moved(nic, qp->arg.twin, VMRI_QPS_RTR, -EHOSTUNREACH);
    CHECK_EQ(nic_event(g, VMRI_OP_qp_modify, qp->qpn), -EHOSTUNREACH);
    CHECK_EQ(qp_state(qp), VMRI_QPS_INIT);

    /* The twin stayed where it was, and is asked anew. */
    qp_set_state(qp, VMRI_QPS_RESET);
    nic_expect_none(nic);
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    nic_follow(nic, qp, &arg);
    arg = (struct vmri_qp_modify){ .mask = VMRI_QPA_STATE };
    nic_follow(nic, qp, &arg);
    CHECK_EQ(qp_modify(qp, &arg), 0);
    nic_expect_none(nic);
}

/* What was settled is not what is asked for in the end. */
TEST(carry_another_than_was_settled)
{
    struct nic *nic = nic_new();
    struct vmri_qp_modify arg, other;
    struct guest_qp *qp, *local;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    qp = nic_qp(nic, g, NULL);
    local = guest_qp(nic_guest(nic, 2), NULL);
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    nic_attr(qp, VMRI_QPS_RTR, &arg);
    CHECK_EQ(qp_modify(qp, &arg), -EINPROGRESS);
    nic_expect(nic, VMRI_UPLINK_MODIFY);
    nic_moved(nic, qp->arg.twin, VMRI_QPS_RTR, 0);
    CHECK_EQ(nic_event(g, VMRI_OP_qp_modify, qp->qpn), 0);

    other = arg;
    other.dest_qpn++;
    nic_follow(nic, qp, &other);
    CHECK_EQ(qp_query(qp, &arg), 0);
    CHECK_EQ(arg.dest_qpn, NIC_PEER + 1);

    /* One that is here after all: what is carried no more, stops. */
    arg = (struct vmri_qp_modify){ .mask = VMRI_QPA_STATE };
    nic_follow(nic, qp, &arg);
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    nic_attr(qp, VMRI_QPS_RTR, &arg);
    CHECK_EQ(qp_modify(qp, &arg), -EINPROGRESS);
    nic_expect(nic, VMRI_UPLINK_MODIFY);
    nic_moved(nic, qp->arg.twin, VMRI_QPS_RTR, 0);
    CHECK_EQ(nic_event(g, VMRI_OP_qp_modify, qp->qpn), 0);
    qp_to(qp, local, VMRI_QPS_RTR, NULL);
    CHECK_EQ(nic_expect(nic, VMRI_UPLINK_MODIFY).u.modify.state,
             VMRI_QPS_ERR);
}

TEST(carry_connections_refused)
{
    static const struct guest_qp_opts kernel = { .kernel = true };
    struct nic *nic = nic_new();
    struct vmri_qp_modify arg;
    struct guest_qp *qp;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);

    /* Without a twin, and such that could have none. */
    qp = guest_qp(g, NULL);
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    nic_attr(qp, VMRI_QPS_RTR, &arg);
    CHECK_EQ(qp_modify(qp, &arg), -EHOSTUNREACH);
    qp = guest_qp(g, &kernel);
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    CHECK_EQ(qp_modify(qp, &arg), -EOPNOTSUPP);

    /* More than the NIC can, and what is wrong anyway: the twin hears nothing. */
    qp = nic_qp(nic, g, NULL);
    nic_attr(qp, VMRI_QPS_RTR, &arg);
    CHECK_EQ(qp_modify(qp, &arg), -EINVAL);
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    arg.max_dest_rd_atomic = 17;
    CHECK_EQ(qp_modify(qp, &arg), -EINVAL);
    arg.max_dest_rd_atomic = 16;
    arg.path_mtu = 6;
    CHECK_EQ(qp_modify(qp, &arg), -EINVAL);
    nic_expect_none(nic);

    arg.path_mtu = 1;
    CHECK_EQ(nic_follow(nic, qp, &arg).u.modify.path_mtu, 1);
    nic_attr(qp, VMRI_QPS_RTS, &arg);
    arg.max_rd_atomic = 17;
    CHECK_EQ(qp_modify(qp, &arg), -EINVAL);
    nic_expect_none(nic);
}

TEST(carry_other_changes)
{
    struct nic_pair p = nic_pair(NULL);
    struct vmri_qp_modify arg;
    struct nic_msg msg;

    /* Attributes in RTS; and nothing of them. */
    arg = (struct vmri_qp_modify){
        .mask = VMRI_QPA_ACCESS_FLAGS | VMRI_QPA_STATE,
        .state = VMRI_QPS_RTS,
        .access_flags = VMRI_ACCESS_REMOTE_READ | VMRI_ACCESS_LOCAL_WRITE,
    };
    msg = nic_follow(p.nic, p.qp, &arg);
    CHECK_EQ(msg.u.modify.mask, VMRI_QPA_ACCESS_FLAGS | VMRI_QPA_STATE);
    CHECK_EQ(msg.u.modify.access_flags, VMRI_ACCESS_REMOTE_READ);
    CHECK_EQ(qp_modify(p.qp, &arg), -EINPROGRESS);
    nic_expect(p.nic, VMRI_UPLINK_MODIFY);
    nic_moved(p.nic, p.qp->arg.twin, VMRI_QPS_RTS, -EINVAL);
    CHECK_EQ(nic_event(p.g, VMRI_OP_qp_modify, p.qp->qpn), -EINVAL);
    arg.mask = VMRI_QPA_STATE;
    CHECK_EQ(qp_modify(p.qp, &arg), 0);

    /* SQD is VMRI's alone, but attributes there are not to be had. */
    qp_set_state(p.qp, VMRI_QPS_SQD);
    arg = (struct vmri_qp_modify){ .mask = VMRI_QPA_MIN_RNR_TIMER };
    CHECK_EQ(qp_modify(p.qp, &arg), -EOPNOTSUPP);
    nic_attr(p.qp, VMRI_QPS_RTR, &arg);
    arg.mask = VMRI_QPA_AV;
    CHECK_EQ(qp_modify(p.qp, &arg), -EOPNOTSUPP);
    arg.av.dlid = p.g->lid;
    CHECK_EQ(qp_modify(p.qp, &arg), -EOPNOTSUPP);
    qp_set_state(p.qp, VMRI_QPS_RTS);
    nic_expect_none(p.nic);
}

/* A QP of the device whose LID is the peer's is not the peer. */
TEST(carry_a_lid_that_comes_later)
{
    struct nic_pair p = nic_pair(NULL);
    struct vmri_ctl_attach arg = {
        .domid = 2, .fabric = NIC_FABRIC, .lid = NIC_LID,
    };
    struct vmri_sge sge = mr_sge(&p.mr, 0, 100);
    struct guest *g = guest_bare(2);
    struct guest_conn conn = { .timeout = 1, .retry_cnt = CONN_ZERO };
    struct guest_qp_opts opts = { .qpn = NIC_PEER };
    struct guest_wr wr = { .wr_id = 1, .opcode = VMRI_WR_SEND };
    struct guest_qp *qp;
    struct nic_msg msg;

    CHECK_EQ(dom0_call(VMRI_OP_ctl_attach, &arg, sizeof(arg)), 0);
    guest_start(g);
    qp = guest_qp(g, &opts);
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    qp_to(qp, p.qp, VMRI_QPS_RTR, &conn);
    qp_to(qp, p.qp, VMRI_QPS_RTS, &conn);
    qp_recv(p.qp, 5, &sge, 1);
    nic_expect(p.nic, VMRI_UPLINK_RECV);
    qp_send(qp, &wr);
    world_pass(1000000000, 100000000);
    cq_expect(qp->scq, 1, VMRI_WC_RETRY_EXC_ERR);
    wr = nic_wr(&p, 2, 0, 100);
    qp_send(p.qp, &wr);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    nic_sent(p.nic, &msg, 0);
    cq_expect(p.qp->scq, 2, VMRI_WC_SUCCESS);
}

/* ---- states ---- */

TEST(carry_reset_drains)
{
    struct nic_pair p = nic_pair(NULL);
    struct vmri_qp_modify arg = { .mask = VMRI_QPA_STATE };
    struct guest_wr wr = nic_wr(&p, 1, 0, 10);
    struct nic_msg msg;

    qp_send(p.qp, &wr);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    CHECK_EQ(qp_modify(p.qp, &arg), -EINPROGRESS);
    CHECK_EQ(nic_expect(p.nic, VMRI_UPLINK_MODIFY).u.modify.state,
             VMRI_QPS_RESET);

    /* Nothing leaves any more; what comes back completes. */
    wr.wr_id = 2;
    qp_send(p.qp, &wr);
    nic_expect_none(p.nic);
    nic_sent(p.nic, &msg, VMRI_WC_WR_FLUSH_ERR);
    cq_expect(p.qp->scq, 1, VMRI_WC_WR_FLUSH_ERR);
    nic_moved(p.nic, p.qp->arg.twin, VMRI_QPS_RESET, 0);
    CHECK_EQ(nic_event(p.g, VMRI_OP_qp_modify, p.qp->qpn), 0);
    nic_sent(p.nic, &msg, 0);
    guest_serve(p.g);
    cq_expect(p.qp->scq, 2, VMRI_WC_WR_FLUSH_ERR);
    CHECK_EQ(qp_modify(p.qp, &arg), 0);
    CHECK_EQ(qp_state(p.qp), VMRI_QPS_RESET);

    /* And connected again, all begins anew. */
    nic_connect(p.nic, p.qp, VMRI_QPS_RTS);
    qp_send(p.qp, &wr);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    nic_sent(p.nic, &msg, 0);
    cq_expect(p.qp->scq, 2, VMRI_WC_SUCCESS);
    cq_expect_none(p.qp->scq);
}

TEST(carry_error_state_is_entered_at_once)
{
    struct nic_pair p = nic_pair(NULL);
    struct guest_wr wr = nic_wr(&p, 1, 0, 10);
    struct nic_msg msg;

    qp_send(p.qp, &wr);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    qp_set_state(p.qp, VMRI_QPS_ERR);
    CHECK_EQ(nic_expect(p.nic, VMRI_UPLINK_MODIFY).u.modify.state,
             VMRI_QPS_ERR);
    wr.wr_id = 2;
    qp_send(p.qp, &wr);
    cq_expect_none(p.qp->scq);
    nic_sent(p.nic, &msg, 0);
    nic_moved(p.nic, p.qp->arg.twin, VMRI_QPS_ERR, 0);
    guest_serve(p.g);
    cq_expect(p.qp->scq, 1, VMRI_WC_SUCCESS);
    cq_expect(p.qp->scq, 2, VMRI_WC_WR_FLUSH_ERR);
}

/* An uplink that loses something: the rest is flushed all the same. */
TEST(carry_what_is_lost_is_not_waited_for)
{
    struct nic_pair p = nic_pair(NULL);
    struct guest_wr wr = nic_wr(&p, 1, 0, 10);

    qp_send(p.qp, &wr);
    nic_expect(p.nic, VMRI_UPLINK_SEND);
    qp_set_state(p.qp, VMRI_QPS_ERR);
    wr.wr_id = 2;
    qp_send(p.qp, &wr);
    nic_moved(p.nic, p.qp->arg.twin, VMRI_QPS_ERR, 0);
    guest_serve(p.g);
    cq_expect(p.qp->scq, 2, VMRI_WC_WR_FLUSH_ERR);
}

TEST(carry_drains_in_sqd)
{
    struct nic_pair p = nic_pair(NULL);
    struct guest_wr wr = nic_wr(&p, 1, 0, 10);
    struct vmri_qp_modify arg = {
        .mask = VMRI_QPA_STATE | VMRI_QPA_EN_SQD_ASYNC_NOTIFY,
        .state = VMRI_QPS_SQD, .en_sqd_async_notify = 1,
    };
    struct nic_msg msg;

    qp_send(p.qp, &wr);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    CHECK_EQ(qp_modify(p.qp, &arg), 0);
    wr.wr_id = 2;
    qp_send(p.qp, &wr);
    nic_expect_none(p.nic);
    CHECK_EQ(qp_query(p.qp, &arg), 0);
    CHECK_EQ(arg.sq_draining, 1);
    arg = (struct vmri_qp_modify){
        .mask = VMRI_QPA_STATE, .state = VMRI_QPS_RTS,
    };
    CHECK_EQ(qp_modify(p.qp, &arg), -EINVAL);
    guest_serve(p.g);
    CHECK_EQ(p.g->events[VMRI_EVENT_SQ_DRAINED], 0);
    nic_sent(p.nic, &msg, 0);
    guest_serve(p.g);
    CHECK_EQ(p.g->events[VMRI_EVENT_SQ_DRAINED], 1);
    CHECK_EQ(qp_modify(p.qp, &arg), 0);
    CHECK_EQ(nic_expect(p.nic, VMRI_UPLINK_SEND).m.u.send.wr_id, 2);
}

TEST(carry_rates)
{
    struct nic_pair p = nic_pair(NULL);
    struct vmri_ctl_rate rate = {
        .domid = 1, .dev_id = p.g->dev, .which = VMRI_RATE_DEVICE,
        .flags = VMRI_RATE_SET, .rate = 1000000, .burst = 65536,
    };
    struct guest_wr wr = nic_wr(&p, 1, 0, 500000);
    struct nic_msg msg;

    CHECK_EQ(dom0_call(VMRI_OP_ctl_rate, &rate, sizeof(rate)), 0);
    qp_send(p.qp, &wr);
    nic_expect_none(p.nic);
    world_pass(300000000, 10000000);
    nic_expect_none(p.nic);
    world_pass(200000000, 10000000);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    nic_sent(p.nic, &msg, 0);
    cq_expect(p.qp->scq, 1, VMRI_WC_SUCCESS);
}

/* ---- rules ---- */

TEST(carry_rules)
{
    struct vmri_ctl_rule rule = { .fabric = NIC_FABRIC, .group = 3 };
    struct vmri_ctl_rule all = { .fabric = NIC_FABRIC,
                                 .rule = VMRI_RULE_ALL };
    struct vmri_qp_modify arg, reset = { .mask = VMRI_QPA_STATE };
    struct nic_pair p = nic_pair(NULL);
    struct guest_qp *qp = nic_qp(p.nic, p.g, NULL);

    /* On its way there when rules begin to forbid it: the twin stops. */
    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    nic_attr(qp, VMRI_QPS_RTR, &arg);
    CHECK_EQ(qp_modify(qp, &arg), -EINPROGRESS);
    nic_expect(p.nic, VMRI_UPLINK_MODIFY);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_rule_add, &rule, sizeof(rule)), 0);

    /* The one that is connected ends, and its twin. */
    guest_serve(p.g);
    CHECK_EQ(p.g->events[VMRI_EVENT_QP_FATAL], 1);
    CHECK_EQ(qp_state(p.qp), VMRI_QPS_ERR);
    CHECK_EQ(nic_expect(p.nic, VMRI_UPLINK_MODIFY).m.twin, p.qp->arg.twin);
    nic_expect_none(p.nic);

    nic_moved(p.nic, qp->arg.twin, VMRI_QPS_RTR, 0);
    CHECK_EQ(qp_modify(qp, &arg), -EPERM);
    CHECK_EQ(nic_expect(p.nic, VMRI_UPLINK_MODIFY).u.modify.state,
             VMRI_QPS_ERR);
    nic_moved(p.nic, qp->arg.twin, VMRI_QPS_ERR, 0);
    CHECK_EQ(qp_modify(qp, &arg), -EPERM);
    nic_expect_none(p.nic);

    /* They are lifted: the twin has to be taken there anew. */
    CHECK_EQ(dom0_call(VMRI_OP_ctl_rule_del, &all, sizeof(all)), 0);
    while ( guest_serve(p.g) )
        ;
    nic_follow(p.nic, qp, &arg);
    CHECK_EQ(qp_state(qp), VMRI_QPS_RTR);
    nic_follow(p.nic, qp, &reset);
}
