/* SPDX-License-Identifier: GPL-2.0-only */
/* limits.c: charging, and what a guest costs. */
#include "guest.h"
#include "keys.h"
#include "internal.h"

#include <pthread.h>
#include <stdio.h>

#undef memcpy
#undef memset

/* A device that is nothing but an account. */
static struct vmri_dev *dev_new(void)
{
    struct vmri_dev *dev = env_alloc(sizeof(*dev));

    dev->owner = env_alloc(sizeof(*dev->owner));
    vmri_limits_default(1000, dev->owner->limit);
    return dev;
}

static void dev_end(struct vmri_dev *dev)
{
    unsigned int i;

    for ( i = 0; i < VMRI_RES_NR; i++ )
    {
        CHECK_AT(dev->usage[i], 0, "resource %u", i);
        CHECK_AT(dev->owner->usage[i], 0, "resource %u", i);
    }
    env_free(dev->owner);
    env_free(dev);
}

TEST(limits_charge_up_to_the_limit)
{
    struct vmri_dev *dev = dev_new();
    unsigned int i;

    for ( i = 0; i < VMRI_RES_NR; i++ )
    {
        dev->owner->limit[i] = 10;
        CHECK_EQ(vmri_charge(dev, i, 10), 0);
        CHECK_EQ(vmri_charge(dev, i, 1), -ENOSPC);
        CHECK_EQ(vmri_charge(dev, i, ~0ULL), -ENOSPC);
        vmri_uncharge(dev, i, 3);
        CHECK_EQ(vmri_charge(dev, i, 4), -ENOSPC);
        CHECK_EQ(vmri_charge(dev, i, 3), 0);

        /* Lowered below what is used. */
        dev->owner->limit[i] = 5;
        CHECK_EQ(vmri_charge(dev, i, 1), -ENOSPC);
        CHECK_EQ(vmri_charge(dev, i, 0), -ENOSPC);
        CHECK_EQ(dev->usage[i], 10);
        vmri_uncharge(dev, i, 10);
        CHECK(EXPECT_PANIC(vmri_uncharge(dev, i, 1)));
        dev->owner->usage[i] = 0;
    }
    dev_end(dev);
}

TEST(limits_memory_is_charged)
{
    struct vmri_dev *dev = dev_new();
    uint8_t *p;

    dev->owner->limit[VMRI_RES_BYTES] = 904;
    p = vmri_alloc(dev, 904);
    CHECK(p);
    CHECK(all_bytes(p, 904, 0));
    CHECK_EQ(dev->usage[VMRI_RES_BYTES], 904);
    CHECK_EQ(dev->owner->usage[VMRI_RES_BYTES], 904);
    CHECK(!vmri_alloc(dev, 1));
    vmri_free(dev, p, 904);
    vmri_free(dev, NULL, 10);
    CHECK_EQ(dev->usage[VMRI_RES_BYTES], 0);

    env_test_fail(ENV_FAIL_ALLOC, 1);
    CHECK(!vmri_alloc(dev, 10));
    dev_end(dev);
}

/* Many at once: never more than the limit, and in the end nothing. */
enum { CHARGERS = 4, CHARGES = 2000, CHARGE_LIMIT = 10 };
static struct vmri_dev *charged;

static void *charge(void *unused)
{
    unsigned int n;

    (void)unused;
    for ( n = 0; n < CHARGES; n++ )
    {
        uint64_t much = n % 4 + 1;

        if ( vmri_charge(charged, VMRI_RES_QP, much) )
            continue;
        CHECK(env_load(&charged->owner->usage[VMRI_RES_QP]) <= CHARGE_LIMIT);
        vmri_uncharge(charged, VMRI_RES_QP, much);
    }
    return NULL;
}

THREAD_TEST(limits_hold_when_many_charge)
{
    pthread_t thread[CHARGERS];
    unsigned int i;

    charged = dev_new();
    charged->owner->limit[VMRI_RES_QP] = CHARGE_LIMIT;
    for ( i = 0; i < CHARGERS; i++ )
        pthread_create(&thread[i], NULL, charge, NULL);
    for ( i = 0; i < CHARGERS; i++ )
        pthread_join(thread[i], NULL);
    dev_end(charged);
}

/* A number of this project's main issue. */
TEST(limits_a_small_guest_costs_less_than_64k)
{
    uint64_t before = env_stats.allocated, cost;
    struct vmri_ctl_info info = { .domid = 1 };
    struct guest_mr mr;
    struct guest *g;

    g = guest_new(1);
    mr = guest_mr(g, 1 << 20, 0, LAYOUT_SCATTERED, VMRI_ACCESS_LOCAL_WRITE);
    guest_qp(g, NULL);
    cost = env_stats.allocated - before;
    if ( cost >= 65536 )
        test_failed(__FILE__, __LINE__, "it costs %llu bytes",
                    (unsigned long long)cost);

    /* The account has all of it but the tables of the domain and the fabric. */
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), 0);
    CHECK(info.usage.n[VMRI_RES_BYTES] <= cost);
    CHECK(info.usage.n[VMRI_RES_BYTES] >= cost - 12288);
    CHECK_EQ(mr_deregister(&mr), 0);
}

/* ---- what a device tells of its limits ---- */

#define FEW(res) (9U + (res))    /* by dom0's word; of no two kinds alike */

static long make_pd(struct guest *g)
{
    struct vmri_object arg = { .handle = 0 };

    return guest_call(g, VMRI_OP_pd_create, &arg, 8);
}

static long make_xrcd(struct guest *g)
{
    struct vmri_object arg = { .handle = 0 };

    return guest_call(g, VMRI_OP_xrcd_create, &arg, 8);
}

static long make_eq(struct guest *g)
{
    struct guest_eq *eq;

    return try_eq(g, 4, &eq);
}

static long make_cq(struct guest *g)
{
    struct guest_cq *cq;

    return try_cq(g, 4, g->eq[0], &cq);
}

static long make_srq(struct guest *g)
{
    return try_srq(srq_prepare(g, &(struct guest_srq_opts){ .log2 = 0 }));
}

static struct guest_cq *shared_cq;      /* of all queue pairs */

static long make_qp(struct guest *g)
{
    const struct guest_qp_opts opts = { .scq = shared_cq, .rcq = shared_cq };

    return try_qp(qp_prepare(g, &opts));
}

static long make_mr(struct guest *g)
{
    uint32_t key;

    return try_fast(g, g->pd, 1, &key);
}

static long make_mw(struct guest *g)
{
    uint32_t key;

    return try_mw(g, g->pd, 1, &key);
}

/* All that is said to be there can be had, and no more. */
static void use_up(struct guest *g, unsigned int res, uint32_t told,
                   long (*make)(struct guest *g))
{
    struct vmri_ctl_info info = { .domid = 1 };
    long rc;

    CHECK_AT(told, FEW(res), "resource %u", res);
    while ( (rc = make(g)) == 0 )
        ;
    CHECK_AT(rc, -ENOSPC, "resource %u", res);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), 0);
    CHECK_AT(info.usage.n[res], FEW(res), "resource %u", res);
}

TEST(limits_are_what_a_device_tells)
{
    struct vmri_ctl_limits limits = { .domid = 1 };
    struct guest *g = guest_new(1);
    struct vmri_dev_attr attr;
    unsigned int res;

    shared_cq = guest_cq(g, 4);
    for ( res = VMRI_RES_PD; res <= VMRI_RES_MW; res++ )
    {
        limits.mask |= 1U << res;
        limits.limit.n[res] = FEW(res);
    }
    CHECK_EQ(dom0_call(VMRI_OP_ctl_limits, &limits, sizeof(limits)), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_query, &attr, sizeof(attr)), 0);

    use_up(g, VMRI_RES_PD, attr.max_pd, make_pd);
    use_up(g, VMRI_RES_XRCD, attr.max_xrcd, make_xrcd);
    use_up(g, VMRI_RES_EQ, attr.max_eq, make_eq);
    use_up(g, VMRI_RES_CQ, attr.max_cq, make_cq);
    use_up(g, VMRI_RES_SRQ, attr.max_srq, make_srq);
    use_up(g, VMRI_RES_QP, attr.max_qp, make_qp);
    use_up(g, VMRI_RES_MR, attr.max_mr, make_mr);
    use_up(g, VMRI_RES_MW, attr.max_mw, make_mw);
}

/* Each kind of object stops at its limit and starts again below it. */
TEST(limits_of_objects)
{
    struct guest *g = guest_new(1);
    struct vmri_object arg = { .handle = 0 };
    struct guest_eq *eq;
    uint32_t last = 0;
    long rc, n;

    for ( n = 0; (rc = guest_call(g, VMRI_OP_pd_create, &arg, 8)) == 0; n++ )
        last = arg.handle;
    CHECK_EQ(rc, -ENOSPC);
    CHECK_EQ(n + 1, g->attr.max_pd);
    arg.handle = last;
    CHECK_EQ(guest_call(g, VMRI_OP_pd_destroy, &arg, 8), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_pd_create, &arg, 8), 0);

    for ( n = 0; (rc = try_eq(g, 4, &eq)) == 0; n++ )
        ;
    CHECK_EQ(rc, -ENOSPC);
    CHECK(n + 1 <= g->attr.max_eq);
}
