/* SPDX-License-Identifier: GPL-2.0-only */
/* mcg.c, mcgtree.c: which multicast groups there are and who is in them. */
#include "group.h"
#include "internal.h"

#undef memcpy
#undef memset

#define MLID    0xc123

static const struct guest_qp_opts ud = { .type = VMRI_QPT_UD };

static uint32_t usage(unsigned int domid, unsigned int what)
{
    struct domain *d = env_test_domain(domid);
    struct vmri_dev *dev = vmri_dev_get(d, 0);
    uint32_t n = (uint32_t)dev->usage[what];

    vmri_dev_put(dev);
    return n;
}

/* ---- the tree ---- */

#define NODES   300U

/* Against a plain array: in order, whatever comes and goes. */
TEST(mcg_tree_is_in_order)
{
    static struct vmri_attachment node[NODES];
    static bool in[NODES];
    struct vmri_attachment *root = NULL;
    unsigned int seed = 1, round, i;
    uint64_t base;

    for ( round = 0; round < 20000; round++ )
    {
        /* Numbers near each power of two in turn, and from 1 on. */
        base = round / 2000 ? 1ULL << (60 - round / 2000 * 6) : 1;
        if ( round % 2000 == 0 )
        {
            root = NULL;
            memset(in, 0, sizeof(in));
            for ( i = 0; i < NODES; i++ )
                node[i].number = base + i * (round / 2000 % 2 ? 1 : 977);
        }
        i = (unsigned int)rand_r(&seed) % NODES;
        if ( in[i] )
            vmri_mcgtree_remove(&root, &node[i]);
        else
            vmri_mcgtree_add(&root, &node[i]);
        in[i] = !in[i];

        i = (unsigned int)rand_r(&seed) % NODES;
        {
            uint64_t from = node[i].number + (uint64_t)rand_r(&seed) % 3 - 1;
            struct vmri_attachment *got = vmri_mcgtree_from(root, from);

            for ( i = i ? i - 1 : 0; i < NODES; i++ )
                if ( in[i] && node[i].number >= from )
                    break;
            CHECK_EQ(got ? got - node : -1, i < NODES ? (int)i : -1);
        }
    }
    CHECK(!vmri_mcgtree_from(NULL, 0));
    CHECK(!vmri_mcgtree_from(root, ~0ULL));
}

/* ---- members ---- */

TEST(mcg_members_share_one_group)
{
    struct guest *a = guest_new(1), *b = guest_new(2), *c = guest_bare(3);
    struct vmri_mcg arg = group_new_arg(1, 0), other = group_arg(1, 0);
    uint32_t dev = VMRI_DEV_ANY;
    uint16_t lid = 0;

    CHECK_EQ(group_join(b, &other), -ENOENT);
    arg.flow_label = 0xfffff;
    arg.sl = 15;
    arg.traffic_class = 0xaa;
    arg.hop_limit = 7;
    arg.packet_life = 18;
    arg.scope = 2;
    CHECK_EQ(group_join(a, &arg), 0);
    CHECK_EQ(arg.mlid, VMRI_MLID_MIN);
    CHECK_EQ(arg.members, 1);
    CHECK_EQ(arg.create, 1);
    CHECK_EQ(group_join(a, &arg), -EEXIST);
    CHECK_EQ(group_join(b, &other), 0);
    CHECK_EQ(other.members, 2);
    CHECK_EQ(other.create, 0);
    arg.create = 0;
    arg.members = 2;
    CHECK_EQ(memcmp(&other, &arg, sizeof(arg)), 0);

    /* Of one that is there the attributes stay, whoever would create it. */
    CHECK_EQ(group_leave(b, &other), 0);
    CHECK_EQ(group_leave(b, &other), -ENOENT);
    other = group_new_arg(1, 0);
    other.qkey = 7;
    CHECK_EQ(group_join(b, &other), 0);
    CHECK_EQ(other.qkey, 0x0b1b);
    CHECK_EQ(other.mlid, arg.mlid);

    /* Another fabric has groups of its own. */
    CHECK_EQ(dom0_attach(3, GUEST_FABRIC + 1, &dev, &lid), 0);
    c->dev = dev;
    guest_start(c);
    other = group_arg(1, 0);
    CHECK_EQ(group_join(c, &other), -ENOENT);
    other = group_new_arg(1, 0xd000);
    CHECK_EQ(group_join(c, &other), 0);
    CHECK_EQ(other.mlid, 0xd000);
    CHECK_EQ(other.members, 1);

    /* It goes with the last, and then is made anew. */
    CHECK_EQ(group_leave(a, &arg), 0);
    CHECK_EQ(group_leave(b, &arg), 0);
    other = group_arg(1, 0);
    CHECK_EQ(group_join(a, &other), -ENOENT);
    other = group_new_arg(1, 0xd000);
    other.qkey = 9;
    CHECK_EQ(group_join(a, &other), 0);
    CHECK_EQ(other.qkey, 9);
    CHECK_EQ(other.mlid, 0xd000);
    CHECK_EQ(usage(1, VMRI_RES_MCG), 1);
    CHECK_EQ(usage(2, VMRI_RES_MCG), 0);
}

TEST(mcg_mlids)
{
    struct guest *g = guest_new(1);
    struct vmri_mcg arg = group_new_arg(1, VMRI_MLID_MIN + 1);

    CHECK_EQ(group_join(g, &arg), 0);
    arg = group_new_arg(2, VMRI_MLID_MIN + 1);
    CHECK_EQ(group_join(g, &arg), -EBUSY);
    arg = group_new_arg(2, 0);
    CHECK_EQ(group_join(g, &arg), 0);
    CHECK_EQ(arg.mlid, VMRI_MLID_MIN);
    arg = group_new_arg(3, 0);
    CHECK_EQ(group_join(g, &arg), 0);
    CHECK_EQ(arg.mlid, VMRI_MLID_MIN + 2);
    arg = group_new_arg(4, VMRI_MLID_MAX);
    CHECK_EQ(group_join(g, &arg), 0);

    arg = group_arg(4, VMRI_MLID_MIN);
    CHECK_EQ(group_leave(g, &arg), -EINVAL);
    CHECK_EQ(group_join(g, &arg), -EINVAL);
    arg.mlid = VMRI_MLID_MAX;
    CHECK_EQ(group_leave(g, &arg), 0);
}

TEST(mcg_bad_arguments)
{
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {
        { offsetof(struct vmri_mcg, mgid), 0xfe },
        { offsetof(struct vmri_mcg, mgid), 0 },
        { offsetof(struct vmri_mcg, mlid) + 1, 0xbf },
        { offsetof(struct vmri_mcg, create), 2 },
        { offsetof(struct vmri_mcg, mtu), 0 },
        { offsetof(struct vmri_mcg, mtu), 6 },
        { offsetof(struct vmri_mcg, rate), 64 },
        { offsetof(struct vmri_mcg, sl), 16 },
        { offsetof(struct vmri_mcg, packet_life), 64 },
        { offsetof(struct vmri_mcg, scope), 16 },
        { offsetof(struct vmri_mcg, flow_label) + 2, 0x10 },
    };
    struct guest *g = guest_new(1);
    struct vmri_mcg arg;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        arg = group_new_arg(1, 0xc011);
        ((uint8_t *)&arg)[bad[i].at] = bad[i].value;
        CHECK_AT(group_join(g, &arg), -EINVAL, "case %u", i);
    }
    arg = group_new_arg(1, 0xffff);
    CHECK_EQ(group_join(g, &arg), -EINVAL);
    arg = group_new_arg(1, 0xbfff);
    CHECK_EQ(group_join(g, &arg), -EINVAL);
    arg = group_new_arg(1, 0);
    arg.pkey = 0x8000;
    CHECK_EQ(group_join(g, &arg), -EINVAL);
    arg = group_arg(1, 0);
    arg.mgid[0] = 0x7f;
    CHECK_EQ(group_leave(g, &arg), -EINVAL);
    CHECK_EQ(usage(1, VMRI_RES_MCG), 0);
}

/* ---- queue pairs ---- */

TEST(mcg_attach_and_detach)
{
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct guest_qp *qp = guest_qp(g, &ud), *second = guest_qp(g, &ud);
    struct guest_qp *rc = guest_qp(g, NULL), *far = guest_qp(h, &ud);
    struct guest_qp none = { .guest = g, .qpn = 0x1ff };
    struct vmri_mcg_qp arg = { .mgid = { 0xff }, .mlid = MLID };
    struct vmri_mcg join;

    CHECK_EQ(group_attach(rc, 1, MLID), -EINVAL);
    CHECK_EQ(group_attach(&none, 1, MLID), -ENOENT);
    CHECK_EQ(group_detach(&none, 1, MLID), -ENOENT);
    CHECK_EQ(group_attach(qp, 1, 0), -EINVAL);
    CHECK_EQ(group_attach(qp, 1, 0xbfff), -EINVAL);
    CHECK_EQ(group_attach(qp, 1, 0xffff), -EINVAL);
    CHECK_EQ(group_detach(qp, 1, 0xffff), -EINVAL);
    arg.qpn = qp->qpn;
    arg.reserved = 1;
    CHECK_EQ(guest_call(g, VMRI_OP_mcg_attach, &arg, sizeof(arg)), -EINVAL);
    CHECK_EQ(guest_call(g, VMRI_OP_mcg_detach, &arg, sizeof(arg)), -EINVAL);
    arg.reserved = 0;
    arg.mgid[0] = 0xfe;
    CHECK_EQ(guest_call(g, VMRI_OP_mcg_attach, &arg, sizeof(arg)), -EINVAL);
    CHECK_EQ(usage(1, VMRI_RES_MCG) + usage(1, VMRI_RES_MCG_QP), 0);

    /* Made by who listens first; all agree on the MLID. */
    CHECK_EQ(group_attach(qp, 1, MLID), 0);
    CHECK_EQ(group_attach(qp, 1, MLID), -EEXIST);
    CHECK_EQ(group_attach(second, 1, MLID + 1), -EINVAL);
    CHECK_EQ(group_attach(second, 2, MLID), -EBUSY);
    CHECK_EQ(group_attach(second, 1, MLID), 0);
    CHECK_EQ(group_attach(qp, 2, MLID + 1), 0);
    CHECK_EQ(group_attach(far, 1, MLID), 0);
    CHECK_EQ(usage(1, VMRI_RES_MCG), 2);
    CHECK_EQ(usage(1, VMRI_RES_MCG_QP), 3);

    /* No attributes: to be created, with the MLID that it has. */
    join = group_arg(1, 0);
    CHECK_EQ(group_join(g, &join), -ENOENT);
    join = group_new_arg(1, MLID + 2);
    CHECK_EQ(group_join(g, &join), -EINVAL);
    join = group_new_arg(1, 0);
    CHECK_EQ(group_join(g, &join), 0);
    CHECK_EQ(join.mlid, MLID);
    CHECK_EQ(join.members, 1);
    CHECK_EQ(usage(1, VMRI_RES_MCG), 2);

    CHECK_EQ(group_detach(qp, 1, MLID + 1), -EINVAL);
    CHECK_EQ(group_detach(qp, 1, MLID), 0);
    CHECK_EQ(group_detach(qp, 1, MLID), -ENOENT);
    CHECK_EQ(group_detach(qp, 2, MLID + 1), 0);
    CHECK_EQ(group_detach(second, 1, MLID), 0);
    CHECK_EQ(usage(1, VMRI_RES_MCG), 1);
    CHECK_EQ(group_leave(g, &join), 0);
    CHECK_EQ(usage(1, VMRI_RES_MCG), 0);
    CHECK_EQ(usage(1, VMRI_RES_MCG_QP), 0);

    /* The other guest's keeps the group. */
    CHECK_EQ(group_attach(qp, 3, MLID), -EBUSY);
    CHECK_EQ(group_detach(far, 1, MLID), 0);
    CHECK_EQ(group_attach(qp, 3, MLID), 0);
}

/* Nothing of a queue pair or a device that goes stays in a group. */
TEST(mcg_forgets_who_goes)
{
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct guest_qp *qp[40];
    struct vmri_mcg arg;
    unsigned int i;

    for ( i = 0; i < 40; i++ )
    {
        qp[i] = guest_qp(g, &ud);
        CHECK_EQ(group_attach(qp[i], 1 + i % 7, MLID + i % 7), 0);
        CHECK_EQ(group_attach(qp[i], 100, MLID + 100), 0);
    }
    for ( i = 0; i < 100; i++ )
    {
        arg = group_new_arg(i, 0);
        CHECK_EQ(group_join(g, &arg), 0);
    }
    for ( i = 0; i < 40; i += 2 )
        CHECK_EQ(qp_destroy(qp[i]), 0);
    CHECK_EQ(usage(1, VMRI_RES_MCG_QP), 40);
    CHECK_EQ(usage(1, VMRI_RES_MCG), 101);
    arg = group_arg(5, 0);
    CHECK_EQ(group_join(h, &arg), 0);

    CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy, NULL, 0), 0);
    for ( i = 0; i < VMRI_RES_NR; i++ )
        CHECK_EQ(usage(1, i), 0);
    arg = group_arg(6, 0);
    CHECK_EQ(group_join(h, &arg), -ENOENT);
    arg = group_arg(5, 0);
    CHECK_EQ(group_join(h, &arg), -EEXIST);
    arg = group_new_arg(1, 0);
    CHECK_EQ(group_join(g, &arg), -ENODEV);

    CHECK_EQ(dom0_detach(2, 0), 0);
}

/* Detached by dom0 in the middle of it all, and in steps. */
TEST(mcg_device_is_taken_away)
{
    struct guest *g = guest_new(1);
    struct vmri_mcg arg;
    unsigned int i;

    for ( i = 0; i < 100; i++ )
    {
        CHECK_EQ(group_attach(guest_qp(g, &ud), i, (uint16_t)(MLID + i)), 0);
        arg = group_new_arg(i, 0);
        CHECK_EQ(group_join(g, &arg), 0);
    }
    env_test_preempt(3);
    CHECK_EQ(dom0_detach(1, 0), 0);
    env_test_preempt(0);
    guest_new(2);
}

/* ---- what it costs ---- */

static struct guest *fail_guest;
static struct guest_qp *fail_qp;

static long join_and_leave(void)
{
    struct vmri_mcg arg = group_new_arg(1, 0);
    long rc = group_join(fail_guest, &arg);

    return rc ? rc : group_leave(fail_guest, &arg);
}

static long attach_and_detach(void)
{
    long rc = group_attach(fail_qp, 1, MLID);

    return rc ? rc : group_detach(fail_qp, 1, MLID);
}

TEST(mcg_failures_change_nothing)
{
    long (*const calls[])(void) = { join_and_leave, attach_and_detach };
    unsigned int c, nth, kind, i;
    struct vmri_mcg arg;

    fail_guest = guest_new(1);
    fail_qp = guest_qp(fail_guest, &ud);
    for ( c = 0; c < 2; c++ )
        for ( kind = ENV_FAIL_ALLOC; kind <= ENV_FAIL_COPY_TO; kind++ )
            for ( nth = 1; ; nth++ )
            {
                uint64_t bytes = usage(1, VMRI_RES_BYTES);
                long rc;

                env_test_fail(kind, nth);
                rc = calls[c]();
                if ( env_test_fail_left(kind) )
                {
                    env_test_fail(kind, 0);
                    CHECK_EQ(rc, 0);
                    break;
                }
                CHECK(rc < 0);
                for ( i = 0; i < 4; i++ )
                {
                    /* Failed in the second call: take back the first. */
                    arg = group_arg(1, 0);
                    group_leave(fail_guest, &arg);
                    group_detach(fail_qp, 1, MLID);
                }
                CHECK_EQ(usage(1, VMRI_RES_BYTES), bytes);
                CHECK_EQ(usage(1, VMRI_RES_MCG), 0);
                CHECK_EQ(usage(1, VMRI_RES_MCG_QP), 0);
            }
}

TEST(mcg_limits)
{
    struct guest *g = guest_new(1);
    struct guest_qp *qp = guest_qp(g, &ud), *second = guest_qp(g, &ud);
    struct vmri_domain *vd = *env_domain_state(g->domain);
    struct vmri_mcg arg = group_new_arg(1, MLID);

    CHECK_EQ(g->attr.max_mcg, 1024);
    CHECK_EQ(g->attr.max_mcg_qp, 16384);
    vd->limit[VMRI_RES_MCG] = 2;
    vd->limit[VMRI_RES_MCG_QP] = 3;

    CHECK_EQ(group_join(g, &arg), 0);
    CHECK_EQ(group_attach(qp, 1, MLID), 0);
    CHECK_EQ(group_attach(qp, 2, MLID + 1), 0);
    CHECK_EQ(group_attach(second, 3, MLID + 2), -ENOSPC);
    CHECK_EQ(group_attach(second, 2, MLID + 1), 0);
    CHECK_EQ(group_attach(second, 1, MLID), -ENOSPC);
    CHECK_EQ(usage(1, VMRI_RES_MCG_QP), 3);
    arg = group_new_arg(3, 0);
    CHECK_EQ(group_join(g, &arg), -ENOSPC);

    /* A member of the last group pays for it, whoever made it. */
    vd->limit[VMRI_RES_MCG] = 3;
    vd->limit[VMRI_RES_BYTES] = vd->usage[VMRI_RES_BYTES] +
                                 sizeof(struct vmri_group) - 1;
    CHECK_EQ(group_join(g, &arg), -ENOSPC);
    vd->limit[VMRI_RES_BYTES] += sizeof(struct vmri_membership);
    CHECK_EQ(group_join(g, &arg), -ENOMEM);
    vd->limit[VMRI_RES_BYTES]++;
    CHECK_EQ(group_join(g, &arg), 0);
}

/*
 * All MLIDs of a fabric, and then none is left.  Of several guests, since each
 * join looks through what its device has joined.
 */
TEST(mcg_mlids_run_out)
{
    struct guest *g[4];
    struct vmri_mcg arg;
    unsigned int i;

    for ( i = 0; i < 4; i++ )
    {
        g[i] = guest_new(1 + i);
        (*env_domain_state(g[i]->domain))->limit[VMRI_RES_MCG] = VMRI_MLIDS;
    }
    for ( i = 0; i < VMRI_MLIDS; i++ )
    {
        arg = group_new_arg(i, (uint16_t)(VMRI_MLID_MIN + i));
        CHECK_EQ(group_join(g[i % 4], &arg), 0);
    }
    arg = group_new_arg(VMRI_MLIDS, 0);
    for ( i = 0; i < 4; i++ )
    {
        CHECK_EQ(group_join(g[i], &arg), -ENOSPC);
        CHECK_EQ(usage(1 + i, VMRI_RES_MCG), (VMRI_MLIDS + 3 - i) / 4);
    }
    arg = group_arg(77, 0);
    CHECK_EQ(group_leave(g[77 % 4], &arg), 0);
    arg = group_new_arg(VMRI_MLIDS, 0);
    CHECK_EQ(group_join(g[0], &arg), 0);
    CHECK_EQ(arg.mlid, VMRI_MLID_MIN + 77);
}
