/* SPDX-License-Identifier: GPL-2.0-only */
/* carry.c: no room, sudden ends, and several at once. */
#include "nic.h"
#include "internal.h"

#undef memcpy
#undef memset

/* ---- no room ---- */

TEST(carry_ring_full)
{
    struct nic_pair p = nic_pair(&(const struct guest_qp_opts){
                                 .sq_log2 = 9 });
    struct guest *other = nic_guest(p.nic, 2);
    struct guest_wr wr = nic_wr(&p, 0, 0, 10);
    struct nic_pair q = { .nic = p.nic, .g = other };
    unsigned int i, sent[2] = { 0 };
    struct nic_msg msg;

    q.mr = nic_mr(q.nic, other, 4096, NIC_ACCESS, &q.mr_twin);
    q.qp = nic_qp(q.nic, other, NULL);
    nic_connect(q.nic, q.qp, VMRI_QPS_RTS);

    /* One fills it, the other comes late: it has its turn nevertheless. */
    for ( i = 0; i < 400; i++ )
    {
        wr.wr_id = i;
        qp_send(p.qp, &wr);
    }
    CHECK_EQ(p.nic->hdr->full, 1);
    wr = nic_wr(&q, 1000, 0, 10);
    qp_send(q.qp, &wr);

    for ( i = 0; i < 401; i++ )
    {
        if ( !nic_take(p.nic, &msg) )
        {
            CHECK_EQ(p.nic->hdr->full, 1);
            CHECK_EQ(nic_done(p.nic, NULL, 0), 0);
            guest_serve(p.g);
            guest_serve(other);
            CHECK(nic_take(p.nic, &msg));
        }
        if ( msg.m.twin == q.qp->arg.twin )
        {
            sent[1]++;
            /* The ring's worth that was before it, and the other's share. */
            CHECK_EQ(sent[0], 128 + 64);
        }
        else
            CHECK_EQ(msg.m.u.send.wr_id, sent[0]++);
    }
    CHECK_EQ(sent[0], 400);
    CHECK_EQ(sent[1], 1);
    CHECK_EQ(nic_done(p.nic, NULL, 0), 0);
    CHECK_EQ(p.nic->hdr->full, 0);
}

/* One that is given a turn and does not come keeps nobody for longer than that. */
TEST(carry_turn_that_is_not_taken)
{
    struct nic_pair p = nic_pair(&(const struct guest_qp_opts){
                                 .sq_log2 = 9 });
    struct guest_wr wr = nic_wr(&p, 0, 0, 10);
    struct guest_qp *qp[3], *late = nic_qp(p.nic, p.g, NULL);
    struct nic_msg msg;
    unsigned int i, n = 0;

    nic_connect(p.nic, late, VMRI_QPS_RTS);
    for ( i = 0; i < 3; i++ )
    {
        qp[i] = nic_qp(p.nic, p.g, NULL);
        nic_connect(p.nic, qp[i], VMRI_QPS_RTS);
    }
    while ( !p.nic->hdr->full )
        qp_send(p.qp, &wr);
    for ( i = 0; i < 3; i++ )
        qp_send(qp[i], &wr);
    while ( nic_take(p.nic, &msg) )
        n++;
    CHECK_EQ(n, 128);

    /* The ring is empty and all of it reserved: who comes now has dom0 woken. */
    CHECK_EQ(nic_done(p.nic, NULL, 0), 0);
    CHECK_EQ(p.nic->hdr->full, 0);
    env_store(&p.nic->hdr->sleeping, 1);
    env_test_notified(p.nic->domain, p.nic->port);
    qp_send(late, &wr);
    CHECK_EQ(p.nic->hdr->full, 1);
    CHECK_EQ(env_test_notified(p.nic->domain, p.nic->port), 1);
    CHECK_EQ(nic_done(p.nic, NULL, 0), 0);
    CHECK_EQ(guest_schedule(p.g, late->qpn), 0);
    CHECK_EQ(nic_expect(p.nic, VMRI_UPLINK_SEND).m.twin, late->arg.twin);

    /* Of the others one comes, and has all shares in the rounds that follow. */
    wr.flags = 0;
    for ( i = 0; i < 15; i++ )
        qp_post_send(qp[2], &wr);
    CHECK_EQ(guest_schedule(p.g, qp[2]->qpn), 0);
    for ( i = 0; i < 16; i++ )
        msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    nic_expect_none(p.nic);
    for ( i = 0; i < 16; i++ )
        nic_sent(p.nic, &msg, 0);
    for ( n = 0; n < 200; n++ )
    {
        qp_send(qp[2], &wr);
        msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
        nic_sent(p.nic, &msg, 0);
    }
}

/* What waits for room goes: as its guest says, or with it. */
TEST(carry_waiting_for_room_and_gone)
{
    struct nic_pair p = nic_pair(&(const struct guest_qp_opts){
                                 .sq_log2 = 9 });
    struct guest_wr wr = nic_wr(&p, 0, 0, 10);
    struct guest_qp *qp = nic_qp(p.nic, p.g, NULL);
    struct vmri_sge sge = mr_sge(&p.mr, 0, 100);
    unsigned int i;

    nic_connect(p.nic, qp, VMRI_QPS_RTS);
    for ( i = 0; i < 400; i++ )
        qp_send(p.qp, &wr);
    qp_send(qp, &wr);
    qp_recv(qp, 5, &sge, 1);
    CHECK_EQ(qp_destroy(qp), 0);
    CHECK_EQ(dom0_detach(1, p.g->dev), 0);
    p.g->eq[0] = p.g->eq[1] = NULL;
    CHECK_EQ(p.nic->hdr->full, 1);
    p.nic->cons = p.nic->hdr->prod;
    env_store(&p.nic->hdr->cons, p.nic->cons);
    CHECK_EQ(nic_done(p.nic, NULL, 0), 0);
    CHECK_EQ(p.nic->hdr->full, 0);
}

/* Errors find no room either: they are said when there is, before anything else. */
TEST(carry_error_while_the_ring_is_full)
{
    struct nic_pair p = nic_pair(&(const struct guest_qp_opts){
                                 .sq_log2 = 9 });
    struct guest_wr wr = nic_wr(&p, 0, 0, 10);
    struct vmri_qp_modify reset = { .mask = VMRI_QPA_STATE };
    struct nic_msg msg;
    unsigned int n = 0;

    while ( !p.nic->hdr->full )
        qp_send(p.qp, &wr);
    qp_set_state(p.qp, VMRI_QPS_ERR);
    CHECK_EQ(qp_modify(p.qp, &reset), -EINPROGRESS);
    while ( nic_take(p.nic, &msg) )
        n++;
    CHECK(n > 100);
    CHECK_EQ(nic_done(p.nic, NULL, 0), 0);
    msg = nic_expect(p.nic, VMRI_UPLINK_MODIFY);
    CHECK_EQ(msg.u.modify.state, VMRI_QPS_RESET);
    nic_expect_none(p.nic);
    nic_moved(p.nic, p.qp->arg.twin, VMRI_QPS_RESET, 0);
    CHECK_EQ(nic_event(p.g, VMRI_OP_qp_modify, p.qp->qpn), 0);
    CHECK_EQ(qp_modify(p.qp, &reset), 0);
}

/* ---- ends ---- */

TEST(carry_queue_pair_goes_in_between)
{
    struct nic_pair p = nic_pair(NULL);
    struct guest_wr wr = nic_wr(&p, 1, 0, 10);
    struct nic_msg msg;

    qp_send(p.qp, &wr);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    CHECK_EQ(qp_destroy(p.qp), 0);
    CHECK_EQ(nic_expect(p.nic, VMRI_UPLINK_MODIFY).u.modify.state,
             VMRI_QPS_ERR);
    nic_sent(p.nic, &msg, 0);
    nic_received(p.nic, &msg, 0, 0);
    nic_moved(p.nic, msg.m.twin, VMRI_QPS_ERR, 0);
    cq_expect_none(p.qp->scq);
    nic_end(p.nic, p.g, msg.m.twin);
}

TEST(carry_guest_dies_in_between)
{
    struct nic_pair p = nic_pair(NULL);
    struct guest_wr wr = nic_wr(&p, 1, 0, 10);
    struct nic_msg msg, send;
    unsigned int n = 0;

    qp_send(p.qp, &wr);
    send = nic_expect(p.nic, VMRI_UPLINK_SEND);
    env_test_domain_dying(p.g->domain);
    while ( vmri_domain_teardown(p.g->domain) == -ERESTART )
        nic_sent(p.nic, &send, 0);
    nic_sent(p.nic, &send, 0);
    while ( nic_take(p.nic, &msg) )
        if ( msg.m.type == VMRI_UPLINK_DESTROY )
        {
            n++;
            nic_gone(p.nic, msg.m.twin);
        }
    CHECK_EQ(n, 2);
}

TEST(carry_uplink_closes_under_traffic)
{
    struct nic_pair p = nic_pair(NULL);
    struct vmri_sge sge = mr_sge(&p.mr, 0, 100);
    struct guest_wr wr = nic_wr(&p, 1, 0, 10);
    struct guest_qp *qp = nic_qp(p.nic, p.g, NULL);
    struct vmri_qp_modify arg;
    struct nic_msg msg;

    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    nic_attr(qp, VMRI_QPS_RTR, &arg);
    CHECK_EQ(qp_modify(qp, &arg), -EINPROGRESS);
    nic_expect(p.nic, VMRI_UPLINK_MODIFY);

    qp_recv(p.qp, 5, &sge, 1);
    qp_send(p.qp, &wr);
    nic_expect(p.nic, VMRI_UPLINK_RECV);
    msg = nic_expect(p.nic, VMRI_UPLINK_SEND);
    CHECK_EQ(nic_close(p.nic), 0);
    nic_expect_none(p.nic);
    CHECK_EQ(nic_event(p.g, VMRI_OP_qp_modify, qp->qpn), -ENODEV);
    guest_serve(p.g);
    CHECK_EQ(p.g->events[VMRI_EVENT_QP_FATAL], 2);
    CHECK_EQ(qp_state(p.qp), VMRI_QPS_ERR);

    /* What was away is lost; what is posted now is flushed. */
    cq_expect_none(p.qp->scq);
    wr.wr_id = 2;
    qp_send(p.qp, &wr);
    qp_recv(p.qp, 6, &sge, 1);
    cq_expect(p.qp->scq, 2, VMRI_WC_WR_FLUSH_ERR);
    cq_expect(p.qp->rcq, 6, VMRI_WC_WR_FLUSH_ERR);

    /* It can be reset, but leads nowhere any more; those of this host do. */
    qp_set_state(p.qp, VMRI_QPS_RESET);
    qp_to(p.qp, p.qp, VMRI_QPS_INIT, NULL);
    nic_attr(p.qp, VMRI_QPS_RTR, &arg);
    CHECK_EQ(qp_modify(p.qp, &arg), -EHOSTUNREACH);
    qp_set_state(p.qp, VMRI_QPS_RESET);
    qp_set_state(qp, VMRI_QPS_RESET);
    qp_connect(p.qp, qp, NULL);
    wr.wr_id = 3;
    qp_recv(qp, 7, &sge, 1);
    qp_send(p.qp, &wr);
    cq_expect(p.qp->scq, 3, VMRI_WC_SUCCESS);
    cq_expect(qp->rcq, 7, VMRI_WC_SUCCESS);
    (void)msg;
}

/* One with a twin whose peer is here is as any other. */
TEST(carry_twin_with_a_peer_of_this_host)
{
    struct nic *nic = nic_new();
    struct guest_mr ma, mb;
    struct guest *a, *b;
    struct guest_qp *qa, *qb;
    struct vmri_sge sge;
    struct nic_pair p;
    struct guest_wr wr;
    uint32_t twin;

    nic_fabric();
    a = nic_guest(nic, 1);
    b = nic_guest(nic, 2);
    ma = nic_mr(nic, a, 4096, NIC_ACCESS, &twin);
    mb = nic_mr(nic, b, 4096, NIC_ACCESS, &twin);
    qa = nic_qp(nic, a, NULL);
    qb = nic_qp(nic, b, NULL);
    qp_connect(qa, qb, NULL);
    fill_pattern(ma.mem, 1000, 1);
    sge = mr_sge(&mb, 0, 1000);
    qp_recv(qb, 1, &sge, 1);
    p = (struct nic_pair){ .nic = nic, .mr = ma };
    wr = nic_wr(&p, 2, 0, 1000);
    qp_send(qa, &wr);
    cq_expect(qb->rcq, 1, VMRI_WC_SUCCESS);
    cq_expect(qa->scq, 2, VMRI_WC_SUCCESS);
    CHECK_EQ(match_pattern(mb.mem, 1000, 1, 0), 1000);
    qp_set_state(qa, VMRI_QPS_RESET);
    nic_expect_none(nic);
}

/* ---- threads ---- */

struct race {
    struct nic_pair p;
    uint32_t done;                  /* atomic */
};

/* The NIC: what comes goes back, until all is done. */
static void nic_thread(void *data)
{
    struct race *r = data;
    struct nic_msg msg;

    while ( !env_load(&r->done) )
    {
        if ( nic_take(r->p.nic, &msg) )
        {
            if ( msg.m.type == VMRI_UPLINK_SEND )
                nic_sent(r->p.nic, &msg, 0);
            else if ( msg.m.type == VMRI_UPLINK_RECV )
                nic_received(r->p.nic, &msg, 0, 4);
        }
        else if ( env_load(&r->p.nic->hdr->full) )
            CHECK_EQ(nic_done(r->p.nic, NULL, 0), 0);
        else
            env_relax();
    }
}

THREAD_TEST(carry_threads)
{
    struct race r = { .p = nic_pair(&(const struct guest_qp_opts){
                                    .sq_log2 = 3, .rq_log2 = 2 }) };
    struct vmri_sge sge = mr_sge(&r.p.mr, 0, 100);
    struct guest_wr wr = nic_wr(&r.p, 0, 0, 10);
    unsigned int sent = 0, received = 0, posted = 0;
    struct vmri_cqe cqe;

    env_test_aside(nic_thread, &r);
    while ( sent < 2000 || received < 2000 )
    {
        if ( wr.wr_id - sent < 8 && wr.wr_id < 2000 )
        {
            qp_send(r.p.qp, &wr);
            wr.wr_id++;
        }
        if ( posted - received < 4 && posted < 2000 )
            qp_recv(r.p.qp, posted++, &sge, 1);
        if ( cq_poll(r.p.qp->scq, &cqe) )
            CHECK_EQ(cqe.wr_id, sent++);
        if ( cq_poll(r.p.qp->rcq, &cqe) )
            CHECK_EQ(cqe.wr_id, received++);
        guest_serve(r.p.g);
    }
    env_store(&r.done, 1);
    CHECK(env_test_aside_end());
}
