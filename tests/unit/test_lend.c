/* SPDX-License-Identifier: GPL-2.0-only */
/* lend.c: receives of a shared queue for queue pairs whose peer is elsewhere. */
#include "nic.h"
#include "internal.h"

#undef memcpy
#undef memset

#define LENT    (1U << VMRI_TWIN_LENT_LOG2)

struct shared {
    struct nic *nic;
    struct guest *g;
    struct guest_srq *srq;
    struct guest_qp *qp;
    struct guest_mr mr;
};

static struct guest_qp *sharing_qp(struct shared *s)
{
    const struct guest_qp_opts opts = { .srq = s->srq };

    return nic_qp(s->nic, s->g, &opts);
}

/* A queue pair without a receive, connected to the peer elsewhere. */
static struct shared begin(uint8_t srq_log2)
{
    const struct guest_srq_opts opts = { .log2 = srq_log2 };
    struct shared s = { .nic = nic_new() };
    uint32_t twin;

    nic_fabric();
    s.g = nic_guest(s.nic, 1);
    s.mr = nic_mr(s.nic, s.g, 10000, NIC_ACCESS, &twin);
    s.srq = guest_srq(s.g, &opts);
    s.qp = sharing_qp(&s);
    nic_connect(s.nic, s.qp, VMRI_QPS_RTS);
    return s;
}

static void post(struct shared *s, uint64_t first, unsigned int nr)
{
    struct vmri_sge sge = mr_sge(&s->mr, 0, 100);
    unsigned int i;

    for ( i = 0; i < nr; i++ )
        srq_recv(s->srq, first + i, &sge, 1);
}

/* The receive that was lent next, which must be this one, and to that twin. */
static struct nic_msg expect_lent(struct shared *s, uint64_t wr_id,
                                  const struct guest_qp *qp)
{
    struct nic_msg msg = nic_expect(s->nic, VMRI_UPLINK_RECV);

    CHECK_EQ(msg.m.twin, qp->arg.twin);
    CHECK_EQ(msg.m.u.recv.wr_id, wr_id);
    return msg;
}

TEST(lend_one_when_there_are_few)
{
    struct shared s = begin(4);
    struct nic_msg msg;

    nic_expect_none(s.nic);
    CHECK_EQ(s.srq->hdr->wait, 1);
    post(&s, 1, 3);
    world_settle();
    msg = expect_lent(&s, 1, s.qp);
    CHECK_EQ(msg.m.u.recv.num_sge, 1);
    CHECK_EQ(msg.u.sge[0].addr, s.mr.iova);
    nic_expect_none(s.nic);
    CHECK_EQ(s.srq->hdr->wait, 0);

    /* The next goes when this one is used, and so on; then it waits. */
    nic_received(s.nic, &msg, 0, 77);
    CHECK_EQ(cq_expect(s.qp->rcq, 1, 0).byte_len, 77);
    world_settle();
    msg = expect_lent(&s, 2, s.qp);
    nic_received(s.nic, &msg, 0, 1);
    world_settle();
    msg = expect_lent(&s, 3, s.qp);
    nic_received(s.nic, &msg, 0, 1);
    world_settle();
    CHECK_EQ(s.srq->hdr->wait, 1);
    post(&s, 4, 1);
    world_settle();
    expect_lent(&s, 4, s.qp);
    cq_expect(s.qp->rcq, 2, 0);
    cq_expect(s.qp->rcq, 3, 0);
}

/* All that were lent to it, of which there are so many at the most. */
static unsigned int take_lent(struct shared *s, const struct guest_qp *qp,
                              struct nic_msg *msg)
{
    unsigned int n = 0;

    world_settle();
    while ( nic_take(s->nic, &msg[n]) )
    {
        CHECK_EQ(msg[n].m.type, VMRI_UPLINK_RECV);
        CHECK_EQ(msg[n].m.twin, qp->arg.twin);
        n++;
    }
    return n;
}

/* One more for each message that came, while less than half of all are lent. */
TEST(lend_more_to_who_gets_messages)
{
    struct shared s = begin(6);
    struct nic_msg msg[LENT + 1];
    unsigned int i;

    post(&s, 0, 20);
    CHECK_EQ(take_lent(&s, s.qp, msg), 1);
    nic_received(s.nic, &msg[0], 0, 1);
    CHECK_EQ(take_lent(&s, s.qp, msg), 2);
    nic_received(s.nic, &msg[0], 0, 1);
    CHECK_EQ(take_lent(&s, s.qp, msg + 2), 2);
    /* Half of three have to come back before it gets others. */
    nic_received(s.nic, &msg[1], 0, 1);
    CHECK_EQ(take_lent(&s, s.qp, msg), 0);
    nic_received(s.nic, &msg[2], 0, 1);
    CHECK_EQ(take_lent(&s, s.qp, msg), 4);

    /* It might have 8 now; but with 7 there are 6 left. */
    for ( i = 0; i < 3; i++ )
        nic_received(s.nic, &msg[i], 0, 1);
    CHECK_EQ(take_lent(&s, s.qp, msg), 5);
    CHECK_EQ(s.srq->prod - s.srq->hdr->cons, 6);
    for ( i = 0; i < 4; i++ )
        cq_expect(s.qp->rcq, i, 0);
}

/* However many there are, those without messages have one each. */
TEST(lend_one_to_each_who_is_idle)
{
    struct shared s = begin(6);
    struct guest_qp *qp[4];
    struct nic_msg msg[LENT + 1];
    unsigned int i;

    post(&s, 0, 30);
    CHECK_EQ(take_lent(&s, s.qp, msg), 1);
    for ( i = 0; i < ARRAY_SIZE(qp); i++ )
    {
        qp[i] = sharing_qp(&s);
        nic_connect(s.nic, qp[i], VMRI_QPS_RTR);
        CHECK_EQ(take_lent(&s, qp[i], msg), 1);
    }
    CHECK_EQ(s.srq->prod - s.srq->hdr->cons, 25);

    for ( i = 0; i < ARRAY_SIZE(qp); i++ )
    {
        CHECK_EQ(qp_destroy(qp[i]), 0);
        nic_expect(s.nic, VMRI_UPLINK_MODIFY);
    }
}

/* What a queue pair had that has gone does not count as lent any more. */
TEST(lend_to_others_when_one_goes)
{
    struct shared s = begin(6);
    struct guest_qp *other = sharing_qp(&s);
    struct nic_msg msg[LENT + 1];

    nic_connect(s.nic, other, VMRI_QPS_RTR);
    post(&s, 0, 4);
    world_settle();
    expect_lent(&s, 0, s.qp);
    msg[0] = expect_lent(&s, 1, other);
    CHECK_EQ(qp_destroy(s.qp), 0);
    nic_expect(s.nic, VMRI_UPLINK_MODIFY);
    nic_received(s.nic, &msg[0], 0, 1);
    CHECK_EQ(take_lent(&s, other, msg), 1);
    nic_received(s.nic, &msg[0], 0, 1);
    CHECK_EQ(take_lent(&s, other, msg), 1);
    post(&s, 4, 3);
    nic_received(s.nic, &msg[0], 0, 1);
    CHECK_EQ(take_lent(&s, other, msg), 2);
}

/* All of those that have none are called, also when one of them goes. */
TEST(lend_calls_all_who_have_none)
{
    struct shared s = begin(4);
    struct guest_qp *second = sharing_qp(&s);

    nic_connect(s.nic, second, VMRI_QPS_RTR);
    post(&s, 1, 1);
    /* The first was called, and does not come to it. */
    CHECK_EQ(qp_destroy(s.qp), 0);
    world_settle();
    CHECK_EQ(nic_expect(s.nic, VMRI_UPLINK_MODIFY).m.twin, s.qp->arg.twin);
    expect_lent(&s, 1, second);
}

TEST(lend_no_more_than_the_twin_holds)
{
    struct shared s = begin(10);
    struct nic_msg msg[LENT + 1];
    unsigned int i, n, most = 0;

    post(&s, 0, 1000);
    for ( i = 0; i < 8; i++ )
    {
        struct nic_msg now[LENT + 1];

        n = take_lent(&s, s.qp, now);
        CHECK(n <= LENT);
        most = n > most ? n : most;
        memcpy(msg, now, sizeof(msg));
        while ( n-- )
        {
            nic_received(s.nic, &msg[n], 0, 1);
            cq_expect(s.qp->rcq, msg[n].m.u.recv.wr_id, 0);
        }
    }
    CHECK_EQ(most, LENT);
}

/* Peers here and elsewhere are served from one queue. */
TEST(lend_beside_a_peer_of_this_host)
{
    struct shared s = begin(4);
    struct guest_qp *here = sharing_qp(&s), *peer = guest_qp(s.g, NULL);
    struct guest_wr wr = {
        .wr_id = 9, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&s.mr, 5000, 50) },
    };

    qp_connect(here, peer, NULL);
    qp_send(peer, &wr);
    cq_expect_none(peer->scq);
    post(&s, 1, 1);
    world_settle();
    expect_lent(&s, 1, s.qp);
    cq_expect_none(peer->scq);
    post(&s, 2, 1);
    world_settle();
    cq_expect(peer->scq, 9, 0);
    CHECK_EQ(cq_expect(here->rcq, 2, 0).byte_len, 50);
    nic_expect_none(s.nic);
}

TEST(lend_fails_with_the_queue_pair)
{
    struct shared s = begin(4);
    struct nic_msg msg;

    post(&s, 1, 3);
    world_settle();
    msg = expect_lent(&s, 1, s.qp);
    qp_set_state(s.qp, VMRI_QPS_ERR);
    nic_expect(s.nic, VMRI_UPLINK_MODIFY);
    cq_expect_none(s.qp->rcq);
    nic_received(s.nic, &msg, VMRI_WC_WR_FLUSH_ERR, 0);
    nic_moved(s.nic, s.qp->arg.twin, VMRI_QPS_ERR, 0);
    world_settle();
    cq_expect(s.qp->rcq, 1, VMRI_WC_WR_FLUSH_ERR);
    cq_expect_none(s.qp->rcq);
    CHECK_EQ(s.g->events[VMRI_EVENT_QP_LAST_WQE_REACHED], 1);
    /* The others are still the queue's. */
    CHECK_EQ(s.srq->prod - s.srq->hdr->cons, 2);
}

/* One that waits for a receive, and fails, takes nobody's turn. */
TEST(lend_waits_and_fails)
{
    struct shared s = begin(4);
    struct guest_qp *other = sharing_qp(&s);

    nic_connect(s.nic, other, VMRI_QPS_RTR);
    CHECK_EQ(s.srq->hdr->wait, 1);
    qp_set_state(s.qp, VMRI_QPS_ERR);
    nic_expect(s.nic, VMRI_UPLINK_MODIFY);
    nic_moved(s.nic, s.qp->arg.twin, VMRI_QPS_ERR, 0);
    world_settle();
    post(&s, 1, 1);
    world_settle();
    expect_lent(&s, 1, other);

    CHECK_EQ(qp_destroy(other), 0);
    nic_expect(s.nic, VMRI_UPLINK_MODIFY);
    CHECK_EQ(qp_destroy(s.qp), 0);
    CHECK_EQ(srq_destroy(s.srq), 0);
}

/* A receive that names what may not be named: when it is the next, and once. */
TEST(lend_entries_that_name_wrongly)
{
    struct shared s = begin(6);
    struct vmri_sge sge = mr_sge(&s.mr, 0, 100);
    struct nic_msg msg[2];
    struct vmri_cqe cqe;

    post(&s, 1, 1);
    world_settle();
    msg[0] = expect_lent(&s, 1, s.qp);
    post(&s, 2, 1);
    sge.lkey ^= 0x100;
    srq_recv(s.srq, 3, &sge, 1);
    post(&s, 4, 10);
    nic_received(s.nic, &msg[0], 0, 1);
    world_settle();
    msg[1] = expect_lent(&s, 2, s.qp);
    nic_expect_none(s.nic);
    cq_expect(s.qp->rcq, 1, 0);
    CHECK_EQ(qp_state(s.qp), VMRI_QPS_RTS);
    cq_expect_none(s.qp->rcq);
    nic_received(s.nic, &msg[1], 0, 1);
    cq_expect(s.qp->rcq, 2, 0);
    world_settle();
    cqe = cq_expect(s.qp->rcq, 3, VMRI_WC_LOC_PROT_ERR);
    CHECK_EQ(cqe.vendor_err, VMRI_VERR_KEY);
    CHECK_EQ(qp_state(s.qp), VMRI_QPS_ERR);
    nic_expect(s.nic, VMRI_UPLINK_MODIFY);
    nic_moved(s.nic, s.qp->arg.twin, VMRI_QPS_ERR, 0);
    world_settle();
    cq_expect_none(s.qp->rcq);
}

/* A queue pair whose requests fill the ring. */
static void fill_ring(struct shared *s)
{
    const struct guest_qp_opts opts = { .sq_log2 = NIC_LOG2 };
    const struct guest_wr nothing = { .opcode = VMRI_WR_SEND };
    struct guest_qp *qp = nic_qp(s->nic, s->g, &opts);
    unsigned int i;

    nic_connect(s->nic, qp, VMRI_QPS_RTS);
    for ( i = 0; i < 1U << NIC_LOG2; i++ )
        qp_post_send(qp, &nothing);
    qp_ring(qp);
}

static void empty_ring(struct shared *s)
{
    unsigned int i;

    for ( i = 0; i < 1U << NIC_LOG2; i++ )
        nic_expect(s->nic, VMRI_UPLINK_SEND);
    CHECK_EQ(nic_done(s->nic, NULL, 0), 0);
    world_settle();
}

/* When the ring is full a receive is held back, and goes later. */
TEST(lend_waits_for_room)
{
    struct shared s = begin(4);
    const struct vmri_sge sge[2] = {
        mr_sge(&s.mr, 0, 0), mr_sge(&s.mr, 100, 10),
    };
    struct nic_msg msg;

    fill_ring(&s);
    srq_recv(s.srq, 1, sge, 2);
    post(&s, 2, 1);
    world_settle();
    CHECK_EQ(s.srq->prod - s.srq->hdr->cons, 1);
    empty_ring(&s);
    msg = expect_lent(&s, 1, s.qp);
    CHECK_EQ(msg.m.u.recv.num_sge, 1);
    CHECK_EQ(msg.u.sge[0].addr, sge[1].addr);
    nic_expect_none(s.nic);
}

/* Or it is flushed. */
TEST(lend_waits_for_room_and_fails)
{
    struct shared s = begin(4);

    fill_ring(&s);
    post(&s, 1, 2);
    world_settle();
    qp_set_state(s.qp, VMRI_QPS_ERR);
    world_settle();
    cq_expect(s.qp->rcq, 1, VMRI_WC_WR_FLUSH_ERR);
    cq_expect_none(s.qp->rcq);
    CHECK_EQ(s.srq->prod - s.srq->hdr->cons, 1);
    empty_ring(&s);
    nic_expect(s.nic, VMRI_UPLINK_MODIFY);
    nic_expect_none(s.nic);
}

TEST(lend_dead_queue)
{
    struct shared s = begin(4);

    s.srq->hdr->prod = 1000;
    CHECK_EQ(guest_srq_schedule(s.g, s.srq->handle), 0);
    world_settle();
    CHECK_EQ(qp_state(s.qp), VMRI_QPS_ERR);
    CHECK_EQ(s.g->events[VMRI_EVENT_QP_FATAL], 1);
}

TEST(lend_twin_unlike_its_queue_pair)
{
    struct shared s = begin(4);
    const struct guest_srq_opts others[] = {
        { .pd = guest_pd(s.g) }, { .kernel = true },
    };
    struct guest_qp_opts opts = { .srq = s.srq };
    struct guest_qp *qp = qp_prepare(s.g, &opts);
    struct vmri_twin arg = twin_of_qp(qp);
    unsigned int i;

    arg.u.qp.rq_log2_entries--;
    qp->arg.qpn = nic_make(s.nic, s.g, &arg);
    qp->arg.twin = arg.handle;
    CHECK_EQ(try_qp(qp), -EINVAL);
    nic_end(s.nic, s.g, arg.handle);

    arg = twin_of_qp(qp);
    arg.u.qp.max_recv_sge--;
    qp->arg.qpn = nic_make(s.nic, s.g, &arg);
    qp->arg.twin = arg.handle;
    CHECK_EQ(try_qp(qp), -EINVAL);
    nic_end(s.nic, s.g, arg.handle);

    for ( i = 0; i < ARRAY_SIZE(others); i++ )
    {
        opts.srq = guest_srq(s.g, &others[i]);
        qp = qp_prepare(s.g, &opts);
        arg = twin_of_qp(qp);
        qp->arg.qpn = nic_make(s.nic, s.g, &arg);
        qp->arg.twin = arg.handle;
        CHECK_EQ(try_qp(qp), -EINVAL);
    }
    CHECK_EQ(s.g->attr.max_srq_sge, nic_caps.max_sge);
}
