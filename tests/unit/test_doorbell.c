/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Doorbells that processes ring: what they start, and that they can do nothing
 * else.
 */
#include "inside.h"
#include "guest.h"
#include "pair.h"

static long ring(struct guest *g, uint32_t dev_id, uint64_t qpn)
{
    struct domain *before = env_test_enter(g->domain);
    long rc = vmri_dispatch(VMRI_OP_doorbell, &dev_id, qpn);

    env_test_returned();
    env_test_enter(before);

    return rc;
}

TEST(doorbell_only_where_the_kernel_allows_it)
{
    struct guest *g = guest_bare(1);
    struct vmri_dev_create arg = { .flags = 0 };
    uint32_t other;
    uint16_t lid = 0;

    CHECK(!vmri_doorbells(g->domain));
    CHECK_EQ(dom0_attach(1, GUEST_FABRIC, &g->dev, &g->lid), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_create, &arg, sizeof(arg)), 0);
    CHECK(!vmri_doorbells(g->domain));
    CHECK_EQ(ring(g, g->dev, 2), -EPERM);

    CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy, NULL, 0), 0);
    arg.flags = VMRI_DEVF_DOORBELL;
    CHECK_EQ(guest_call(g, VMRI_OP_dev_create, &arg, sizeof(arg)), 0);
    CHECK(vmri_doorbells(g->domain));
    CHECK_EQ(ring(g, g->dev, 2), -ENOENT);

    /* Each device for itself. */
    other = g->dev + 1;
    CHECK_EQ(ring(g, other, 2), -ENODEV);
    CHECK_EQ(dom0_attach(1, GUEST_FABRIC, &other, &lid), 0);
    CHECK_EQ(ring(g, other, 2), -EPERM);

    /*
     * It ends with the device's use, and with the device; that is no fault of
     * the process's, which is told.
     */
    CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy, NULL, 0), 0);
    CHECK(vmri_doorbells(g->domain));
    CHECK_EQ(ring(g, g->dev, 2), -EPERM);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_create, &arg, sizeof(arg)), 0);
    CHECK_EQ(dom0_detach(1, g->dev), 0);
    CHECK(vmri_doorbells(g->domain));
    CHECK_EQ(ring(g, g->dev, 2), -ENODEV);

    /* Another kernel has to allow it anew. */
    CHECK_EQ(vmri_domain_reset(g->domain), 0);
    CHECK(!vmri_doorbells(g->domain));
}

TEST(doorbell_not_where_there_is_no_way_in)
{
    struct guest *g = guest_new(1);
    struct vmri_dev_create arg = { .flags = VMRI_DEVF_DOORBELL };
    struct vmri_version v;

    CHECK_EQ(guest_call(g, VMRI_OP_version, &v, sizeof(v)), 0);
    CHECK_EQ(v.features, VMRI_FEATURE_DOORBELL_INT);

    env_test_doorbells(0);
    CHECK_EQ(guest_call(g, VMRI_OP_version, &v, sizeof(v)), 0);
    CHECK_EQ(v.features, 0);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy, NULL, 0), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_create, &arg, sizeof(arg)), -EINVAL);
}

TEST(doorbell_starts_what_is_queued)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct guest_qp *qa = guest_qp(a, NULL), *qb = guest_qp(b, NULL);
    struct guest_mr from = guest_mr(a, 4096, 0, LAYOUT_RUN, 0);
    struct guest_mr to = guest_mr(b, 4096, 0, LAYOUT_RUN,
                                  VMRI_ACCESS_LOCAL_WRITE);
    struct vmri_sge sge = mr_sge(&to, 0, 4096);
    struct guest_wr wr = {
        .wr_id = 5, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&from, 0, 4096) },
    };

    qp_connect(qa, qb, NULL);
    fill_pattern(from.mem, 4096, 9);
    qp_post_recv(qb, 4, &sge, 1);
    qp_post_send(qa, &wr);
    CHECK_EQ(ring(a, a->dev, qa->qpn), 0);
    cq_expect(qa->scq, 5, VMRI_WC_SUCCESS);
    cq_expect(qb->rcq, 4, VMRI_WC_SUCCESS);
    CHECK_EQ(match_pattern(to.mem, 4096, 9, 0), 4096);

    /* Another guest's numbers are none of the caller's. */
    qp_post_send(qa, &wr);
    CHECK_EQ(ring(b, a->dev + 1, qa->qpn), -ENODEV);
    CHECK_EQ(ring(b, b->dev, qa->qpn + 1), -ENOENT);
    cq_expect_none(qa->scq);
}

/* More than a call does: the kernel hears of the rest, the process need not. */
TEST(doorbell_leaves_the_rest_to_the_kernel)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct guest_qp *qa = guest_qp(a, NULL), *qb = guest_qp(b, NULL);
    const uint32_t bytes = 2 * VMRI_BUDGET;
    struct guest_mr from = guest_mr(a, bytes, 0, LAYOUT_RUN, 0);
    struct guest_mr to = guest_mr(b, bytes, 0, LAYOUT_RUN,
                                  VMRI_ACCESS_LOCAL_WRITE |
                                  VMRI_ACCESS_REMOTE_WRITE);
    struct guest_wr wr = {
        .wr_id = 5, .opcode = VMRI_WR_RDMA_WRITE,
        .flags = VMRI_SEND_SIGNALED, .num_sge = 1,
        .sge = { mr_sge(&from, 0, bytes) },
        .remote_addr = to.iova, .rkey = to.key,
    };

    qp_connect(qa, qb, NULL);
    qp_post_send(qa, &wr);
    CHECK_EQ(ring(a, a->dev, qa->qpn), 0);
    cq_expect_none(qa->scq);
    world_settle();
    cq_expect(qa->scq, 5, VMRI_WC_SUCCESS);
    CHECK(a->events[VMRI_EVENT_QUEUE_READY] > 0);
}

/* A million of them, with what an angry process has in its registers. */
TEST(doorbell_garbage_changes_nothing)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct guest_qp *qa = guest_qp(a, NULL), *qb = guest_qp(b, NULL);
    struct vmri_counters before, after;
    uint64_t seed = 88172645463325252ULL;
    uint32_t i;

    qp_connect(qa, qb, NULL);
    guest_counters(b, &before);
    for ( i = 0; i < 1000000; i++ )
    {
        long ret;

        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        ret = i & 1 ? ring(a, seed, seed >> 20) : ring(a, a->dev, seed >> 20);
        if ( ret != -ENOENT && ret != -ENODEV && ret )
            CHECK_EQ(ret, -ENOENT);
    }
    guest_counters(b, &after);
    after.hypercalls = before.hypercalls;
    CHECK_EQ(memcmp(&before, &after, sizeof(before)), 0);
    cq_expect_none(qa->scq);
    cq_expect_none(qb->rcq);
    CHECK_EQ(qp_state(qa), VMRI_QPS_RTS);
}
