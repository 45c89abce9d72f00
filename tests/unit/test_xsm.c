/* SPDX-License-Identifier: GPL-2.0-only */
/* fabric.c: XSM's say in which domains' queue pairs may reach each other. */
#include "group.h"

#define MLID    0xc001

static const struct guest_qp_opts ud = { .type = VMRI_QPT_UD };
static const struct guest_qp_opts uc = { .type = VMRI_QPT_UC };

static void send_to_group(struct guest_qp *qp, uint64_t wr_id,
                          const struct guest_mr *mr)
{
    struct guest_wr wr = {
        .wr_id = wr_id, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(mr, 0, 100) }, .to = qp,
    };

    group_post(qp, &wr, 1, MLID);
    qp_ring(qp);
}

static void to_rts(struct guest_qp *qp, struct guest_qp *peer)
{
    unsigned int state;

    for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTS; state++ )
        qp_to(qp, peer, state, NULL);
}

static uint64_t drops(struct guest *g)
{
    struct vmri_counters c;

    guest_counters(g, &c);
    return c.ud_drops;
}

TEST(xsm_refuses_a_connection)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 4000);
    struct vmri_cqe cqe;

    memset(p.ma.mem, 1, 4000);
    env_test_silo(p.b->domain);
    pair_send(&p, &wr);

    /* At once, whatever the time-out, and the peer learns nothing. */
    cqe = cq_expect(p.qa->scq, 1, VMRI_WC_RETRY_EXC_ERR);
    CHECK_EQ(cqe.vendor_err, VMRI_VERR_FORBIDDEN);
    CHECK_EQ(qp_state(p.qa), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(p.qb), VMRI_QPS_RTS);
    CHECK(all_bytes(p.mb.mem, 4000, 0));
    world_settle();
    CHECK_EQ(p.b->events[VMRI_EVENT_COMM_EST], 0);
}

TEST(xsm_refuses_each_kind_of_message)
{
    struct pair p = pair_new(&uc, NULL), q = { .a = p.a, .b = p.b };
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 100);
    struct guest_qp *member;

    q.qa = guest_qp(p.a, &ud);
    q.qb = guest_qp(p.b, &ud);
    qp_connect(q.qa, q.qb, NULL);
    pair_recv(&p, 7, 0, 100);
    q.mb = p.mb;
    pair_recv(&q, 8, 0, 200);
    member = guest_qp(p.b, &ud);
    to_rts(member, q.qa);
    qp_recv(member, 9, (struct vmri_sge []){ mr_sge(&p.mb, 0, 200) }, 1);
    CHECK_EQ(group_attach(member, 1, MLID), 0);
    env_test_silo(p.a->domain);

    /* What is unreliable is lost. */
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    wr.to = q.qb;
    pair_send(&q, &wr);
    cq_expect(q.qa->scq, 1, 0);
    CHECK_EQ(drops(p.a), 2);
    send_to_group(q.qa, 2, &p.ma);
    cq_expect(q.qa->scq, 2, 0);

    cq_expect_none(p.qb->rcq);
    cq_expect_none(q.qb->rcq);
    cq_expect_none(member->rcq);

    env_test_silo(NULL);
    send_to_group(q.qa, 3, &p.ma);
    cq_expect(q.qa->scq, 3, 0);
    cq_expect(member->rcq, 9, 0);
}

TEST(xsm_is_asked_once_a_connection)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 100);
    unsigned int i;

    env_test_connect_asked();
    for ( i = 0; i < 20; i++ )
    {
        pair_send(&p, &wr);
        cq_expect(p.qa->scq, 1, 0);
    }
    CHECK_EQ(env_test_connect_asked(), 1);

    /* A policy that changes is seen by the next connection. */
    env_test_silo(p.b->domain);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    qp_set_state(p.qa, VMRI_QPS_RESET);
    to_rts(p.qa, p.qb);
    pair_send(&p, &wr);
    CHECK_EQ(cq_expect(p.qa->scq, 1, VMRI_WC_RETRY_EXC_ERR).vendor_err,
             VMRI_VERR_FORBIDDEN);
}

/* The answer for one device does not hold for the next one with its LID. */
TEST(xsm_is_asked_again_for_another_device)
{
    struct pair p = pair_new(&ud, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 100);
    struct guest *heir = guest_bare(3);
    struct guest_qp_opts same = { .type = VMRI_QPT_UD, .qpn = p.qb->qpn };
    struct guest_qp *qp;

    wr.to = p.qb;
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(env_test_connect_asked(), 1);

    CHECK_EQ(dom0_detach(2, p.b->dev), 0);
    heir->lid = p.b->lid;
    CHECK_EQ(dom0_attach(3, GUEST_FABRIC, &heir->dev, &heir->lid), 0);
    guest_start(heir);
    qp = guest_qp(heir, &same);
    to_rts(qp, p.qa);
    CHECK_EQ(qp->qpn, p.qb->qpn);
    qp_recv(qp, 3, NULL, 0);
    env_test_silo(heir->domain);
    wr.to = qp;
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(env_test_connect_asked(), 1);
    CHECK_EQ(drops(p.a), 1);
}

TEST(xsm_is_not_asked_within_a_domain)
{
    struct guest *g = guest_new(1);
    struct guest_qp *a = guest_qp(g, NULL), *b = guest_qp(g, NULL);
    struct guest_wr wr = {
        .wr_id = 1, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
    };

    env_test_silo(g->domain);
    qp_connect(a, b, NULL);
    qp_recv(b, 2, NULL, 0);
    qp_send(a, &wr);
    cq_expect(a->scq, 1, 0);
    cq_expect(b->rcq, 2, 0);
    CHECK_EQ(env_test_connect_asked(), 0);
}
