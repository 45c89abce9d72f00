/* SPDX-License-Identifier: GPL-2.0-only */
/* steer.c: what becomes of a queue pair whose peer is on another host. */
#include "pair.h"
#include "internal.h"

#undef memcpy
#undef memset

#define FABRIC  5
#define NOBODY  77              /* a LID */

static void fabric_new(uint32_t id)
{
    struct vmri_ctl_fabric arg = { .fabric = id };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_fabric_create, &arg, sizeof(arg)), 0);
}

static long route_call(unsigned int cmd, uint32_t fabric, uint32_t gid,
                       struct vmri_ctl_route *arg)
{
    *arg = (struct vmri_ctl_route){
        .fabric = fabric,
        .gid = { 0xfe, 0x80, [14] = (uint8_t)(gid >> 8), (uint8_t)gid },
        .host_gid = { 0x20, [15] = (uint8_t)(gid + 1) },
    };
    return dom0_call(cmd, arg, sizeof(*arg));
}

static long route_add(uint32_t fabric, uint32_t gid)
{
    struct vmri_ctl_route arg;

    return route_call(VMRI_OP_ctl_route_add, fabric, gid, &arg);
}

static long route_del(uint32_t fabric, uint32_t gid)
{
    struct vmri_ctl_route arg;

    return route_call(VMRI_OP_ctl_route_del, fabric, gid, &arg);
}

static struct guest *member(unsigned int domid)
{
    struct guest *g = guest_bare(domid);

    CHECK_EQ(dom0_attach(domid, FABRIC, &g->dev, &g->lid), 0);
    guest_start(g);
    return g;
}

/* The step to RTR, towards a GID behind a LID. */
static long connect_to(struct guest_qp *qp, uint16_t lid, uint32_t gid,
                       uint8_t flags)
{
    struct vmri_qp_modify arg;
    struct vmri_ctl_route r;
    long rc;

    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    qp_attr(qp, qp, VMRI_QPS_RTR, NULL, &arg);
    route_call(VMRI_OP_ctl_route_list, 0, gid, &r);
    memcpy(arg.av.dgid, r.gid, sizeof(r.gid));
    arg.av.dlid = lid;
    arg.av.flags = flags;
    rc = qp_modify(qp, &arg);
    CHECK_EQ(qp_state(qp), rc ? VMRI_QPS_INIT : VMRI_QPS_RTR);
    qp_set_state(qp, VMRI_QPS_RESET);
    return rc;
}

TEST(steer_to_another_host)
{
    static const struct guest_qp_opts uc = { .type = VMRI_QPT_UC };
    struct guest *g;
    struct guest_qp *qp;

    fabric_new(FABRIC);
    fabric_new(FABRIC + 1);
    g = member(1);
    qp = guest_qp(g, NULL);
    CHECK_EQ(route_add(FABRIC + 1, 10), 0);
    CHECK_EQ(connect_to(qp, NOBODY, 10, VMRI_AV_GRH), 0);
    CHECK_EQ(route_add(FABRIC, 10), 0);
    CHECK_EQ(connect_to(qp, NOBODY, 10, VMRI_AV_GRH), -EHOSTUNREACH);
    CHECK_EQ(connect_to(guest_qp(g, &uc), NOBODY, 10, VMRI_AV_GRH),
             -EHOSTUNREACH);

    /* Another GID, none at all, and one that is here. */
    CHECK_EQ(connect_to(qp, NOBODY, 11, VMRI_AV_GRH), 0);
    CHECK_EQ(connect_to(qp, NOBODY, 10, 0), 0);
    CHECK_EQ(connect_to(qp, member(2)->lid, 10, VMRI_AV_GRH), 0);

    CHECK_EQ(route_del(FABRIC, 10), 0);
    CHECK_EQ(connect_to(qp, NOBODY, 10, VMRI_AV_GRH), 0);
}

/* What is wrong with the command comes first, then rules. */
TEST(steer_after_the_arguments_and_rules)
{
    struct vmri_ctl_rule rule = { .fabric = FABRIC, .group = 3 };
    struct vmri_ctl_rule open = { .fabric = FABRIC, .bits = 8,
                                  .prefix = { 0xfe } };
    struct guest_qp *qp;

    fabric_new(FABRIC);
    qp = guest_qp(member(1), NULL);
    CHECK_EQ(route_add(FABRIC, 10), 0);
    CHECK_EQ(connect_to(qp, NOBODY, 10, VMRI_AV_GRH | 2), -EINVAL);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_rule_add, &rule, sizeof(rule)), 0);
    CHECK_EQ(connect_to(qp, NOBODY, 10, VMRI_AV_GRH), -EPERM);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_rule_add, &open, sizeof(open)), 0);
    CHECK_EQ(connect_to(qp, NOBODY, 10, VMRI_AV_GRH), -EHOSTUNREACH);
}

TEST(steer_routes_in_order)
{
    static const uint32_t gids[] = { 300, 2, 500, 1, 400 };
    static const uint32_t order[] = { 1, 2, 300, 400, 500 };
    struct vmri_ctl_route arg;
    unsigned int i;

    fabric_new(FABRIC);
    for ( i = 0; i < ARRAY_SIZE(gids); i++ )
        CHECK_EQ(route_add(FABRIC, gids[i]), 0);
    CHECK_EQ(route_add(FABRIC, 300), -EEXIST);
    CHECK_EQ(route_del(FABRIC, 3), -ENOENT);
    for ( i = 0; i < ARRAY_SIZE(order); i++ )
    {
        CHECK_EQ(route_call(VMRI_OP_ctl_route_list, FABRIC,
                            i ? order[i - 1] + 1 : 0, &arg), 0);
        CHECK_EQ(arg.gid[14] << 8 | arg.gid[15], order[i]);
        CHECK_EQ(arg.host_gid[15], (order[i] + 1) & 0xff);
    }
    CHECK_EQ(route_call(VMRI_OP_ctl_route_list, FABRIC, 501, &arg), -ENOENT);
    for ( i = 0; i < ARRAY_SIZE(order); i++ )
    {
        CHECK_EQ(route_del(FABRIC, order[i]), 0);
        CHECK_EQ(route_call(VMRI_OP_ctl_route_list, FABRIC, order[i], &arg),
                 i < ARRAY_SIZE(order) - 1 ? 0 : -ENOENT);
    }
}

TEST(steer_routes_refused)
{
    struct guest *g = guest_new(1);
    struct vmri_ctl_route arg;
    unsigned int i;

    fabric_new(FABRIC);
    CHECK_EQ(route_add(GUEST_FABRIC, 1), -ENOENT);
    CHECK_EQ(route_del(GUEST_FABRIC, 1), -ENOENT);
    arg = (struct vmri_ctl_route){ .fabric = FABRIC, .reserved = 1 };
    CHECK_EQ(dom0_call(VMRI_OP_ctl_route_add, &arg, sizeof(arg)), -EINVAL);
    arg = (struct vmri_ctl_route){ .fabric = FABRIC, .gid = { 0xff } };
    CHECK_EQ(dom0_call(VMRI_OP_ctl_route_add, &arg, sizeof(arg)), -EINVAL);
    arg = (struct vmri_ctl_route){ .fabric = FABRIC, .host_gid = { 0xff } };
    CHECK_EQ(dom0_call(VMRI_OP_ctl_route_add, &arg, sizeof(arg)), -EINVAL);
    for ( i = VMRI_OP_ctl_route_add; i <= VMRI_OP_ctl_route_list; i++ )
    {
        CHECK_EQ(guest_call(g, i, &arg, sizeof(arg)), -EPERM);
        CHECK_EQ(dom0_call(i, &arg, sizeof(arg) - 1), -EFAULT);
    }
    env_test_fail(ENV_FAIL_ALLOC, 1);
    CHECK_EQ(route_add(FABRIC, 1), -ENOMEM);
    CHECK_EQ(route_add(FABRIC, 1), 0);
    CHECK_EQ(route_add(FABRIC, 2), 0);
    env_test_fail(ENV_FAIL_ALLOC, 1);
    CHECK_EQ(route_del(FABRIC, 1), -ENOMEM);
    CHECK_EQ(route_call(VMRI_OP_ctl_route_list, FABRIC, 0, &arg), 0);
    CHECK_EQ(arg.gid[15], 1);
    for ( i = 3; i <= VMRI_ROUTES; i++ )
        CHECK_EQ(route_add(FABRIC, i), 0);
    CHECK_EQ(route_add(FABRIC, i), -ENOSPC);
}
