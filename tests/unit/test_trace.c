/* SPDX-License-Identifier: GPL-2.0-only */
/* Trace records: each point, what is in it, and nothing when nobody traces. */
#include "pair.h"
#include "internal.h"

#undef memcpy
#undef memset

static uint32_t words[7];

/* How often, and the last one's words, which must begin with the device. */
static unsigned int traced(const struct guest *g, uint32_t event)
{
    unsigned int n = env_test_traced(event, words);

    if ( n )
        CHECK_EQ(words[0], env_domid(g->domain) << 16 | g->dev);
    return n;
}

TEST(trace_of_objects)
{
    struct guest *g = guest_bare(1);
    struct vmri_object pd = { .handle = 0 };

    env_test_trace(true);
    CHECK_EQ(dom0_attach(1, 77, &g->dev, &g->lid), 0);
    CHECK_EQ(traced(g, VMRI_TRC_ATTACH), 1);
    CHECK_EQ(words[1], 77);
    CHECK_EQ(words[2], g->lid);
    guest_start(g);
    CHECK_EQ(traced(g, VMRI_TRC_CREATE), 2);
    CHECK_EQ(words[1], VMRI_RES_EQ);
    CHECK_EQ(words[2], g->eq[0]->handle);

    CHECK_EQ(guest_call(g, VMRI_OP_pd_create, &pd, sizeof(pd)), 0);
    CHECK_EQ(traced(g, VMRI_TRC_CREATE), 3);
    CHECK_EQ(words[1], VMRI_RES_PD);
    CHECK_EQ(words[2], pd.handle);
    CHECK_EQ(traced(g, VMRI_TRC_DESTROY), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_pd_destroy, &pd, sizeof(pd)), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_pd_destroy, &pd, sizeof(pd)), -ENOENT);
    CHECK_EQ(traced(g, VMRI_TRC_DESTROY), 1);
    CHECK_EQ(words[1], VMRI_RES_PD);
    CHECK_EQ(words[2], pd.handle);

    /* Queue pairs and memory regions, which are killed another way. */
    guest_mr(g, 4096, 0, LAYOUT_RUN, 0);
    CHECK_EQ(qp_destroy(guest_qp(g, NULL)), 0);
    CHECK_EQ(traced(g, VMRI_TRC_DESTROY), 2);
    CHECK_EQ(words[1], VMRI_RES_QP);

    CHECK_EQ(dom0_detach(1, g->dev), 0);
    CHECK_EQ(traced(g, VMRI_TRC_DETACH), 1);
    CHECK_EQ(words[1], 77);
    CHECK_EQ(traced(g, VMRI_TRC_DESTROY), traced(g, VMRI_TRC_CREATE));
}

TEST(trace_of_work)
{
    static const struct guest_conn conn = {
        .min_rnr_timer = 12, .rnr_retry = 1,
    };
    struct pair p = pair_new(NULL, &conn);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_READ, 1, 0, 0, 1234);

    env_test_trace(true);
    pair_send(&p, &wr);
    CHECK_EQ(traced(p.a, VMRI_TRC_DOORBELL), 1);
    CHECK_EQ(words[1], p.qa->qpn);
    CHECK_EQ(traced(p.a, VMRI_TRC_DONE), 1);
    CHECK_EQ(words[1], p.qa->qpn);
    CHECK_EQ(words[2], VMRI_WR_RDMA_READ);
    CHECK_EQ(words[3], 1234);
    CHECK_EQ(traced(p.a, VMRI_TRC_PARKED), 0);

    /* No receive: it waits 640 us, twice, then fails. */
    wr = pair_wr(&p, VMRI_WR_SEND, 2, 0, 0, 10);
    pair_send(&p, &wr);
    CHECK_EQ(traced(p.a, VMRI_TRC_PARKED), 1);
    CHECK_EQ(words[1], p.qa->qpn);
    CHECK_EQ(words[2], VMRI_PARKED_RECEIVE);
    CHECK_EQ(words[3], 640);
    CHECK_EQ(traced(p.a, VMRI_TRC_WOKEN), 0);
    world_pass(1000000, 100000);
    CHECK_EQ(traced(p.a, VMRI_TRC_WOKEN), 1);
    CHECK_EQ(words[1], p.qa->qpn);
    CHECK_EQ(words[2], 1);
    CHECK_EQ(traced(p.a, VMRI_TRC_FAILED), 1);
    CHECK_EQ(words[1], p.qa->qpn);
    CHECK_EQ(words[2], VMRI_WR_SEND);
    CHECK_EQ(words[3], VMRI_WC_RNR_RETRY_EXC_ERR);
    CHECK_EQ(words[4], VMRI_VERR_NO_RECV);
    CHECK_EQ(traced(p.a, VMRI_TRC_QP_ERROR), 1);
    CHECK_EQ(words[1], p.qa->qpn);
    CHECK_EQ(words[2], 0);
    CHECK_EQ(traced(p.a, VMRI_TRC_DONE), 1);
}

TEST(trace_of_a_wait_that_somebody_ends)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 10);

    env_test_trace(true);
    pair_send(&p, &wr);
    CHECK_EQ(traced(p.a, VMRI_TRC_PARKED), 1);
    pair_recv(&p, 1, 0, 100);
    world_settle();
    CHECK_EQ(traced(p.a, VMRI_TRC_WOKEN), 1);
    CHECK_EQ(words[2], 0);
    CHECK_EQ(traced(p.a, VMRI_TRC_DONE), 1);
}

TEST(trace_is_off_unless_wanted)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 10);

    pair_send(&p, &wr);
    CHECK_EQ(traced(p.a, VMRI_TRC_CREATE), 0);
    CHECK_EQ(traced(p.a, VMRI_TRC_DOORBELL), 0);
    CHECK_EQ(traced(p.a, VMRI_TRC_DONE), 0);
}
