/* SPDX-License-Identifier: GPL-2.0-only */
/* port.c, mcg.c: what a device may learn of its fabric. */
#include "group.h"
#include "internal.h"

#undef memcpy
#undef memset

static const struct guest_qp_opts ud = { .type = VMRI_QPT_UD };

static long query_port(struct guest *g, uint16_t lid,
                       struct vmri_port_query *port)
{
    memset(port, 0xee, sizeof(*port));
    port->lid = lid;
    return guest_call(g, VMRI_OP_port_query, port, sizeof(*port));
}

static long describe(struct guest *g, const char *text, uint32_t cap_mask)
{
    struct vmri_dev_describe arg = { .cap_mask = cap_mask };

    strncpy((char *)arg.node_desc, text, sizeof(arg.node_desc));
    return guest_call(g, VMRI_OP_dev_describe, &arg, sizeof(arg));
}

static long query_group(struct guest *g, const struct vmri_mcg *group,
                        uint32_t flags, uint16_t lid,
                        struct vmri_mcg_query *arg)
{
    *arg = (struct vmri_mcg_query){ .flags = flags, .lid = lid };
    if ( group )
        arg->group = *group;
    return guest_call(g, VMRI_OP_mcg_query, arg, sizeof(*arg));
}

/* IPoIB's, of a partition. */
static struct vmri_mcg broadcast(uint16_t pkey)
{
    struct vmri_mcg group = {
        .mgid = { 0xff, 0x12, 0x40, 0x1b, (uint8_t)(pkey >> 8), (uint8_t)pkey,
                  [12] = 0xff, 0xff, 0xff, 0xff },
        .join = VMRI_JOIN_FULL,
    };

    return group;
}

/* ---- ports ---- */

TEST(subnet_ports_in_order_of_their_lids)
{
    struct guest *a = guest_new(1), *b = guest_new(2), *other;
    struct vmri_port_query port;
    uint32_t dev = VMRI_DEV_ANY;
    uint16_t lid = 0x7000;

    CHECK_EQ(dom0_attach(2, GUEST_FABRIC, &dev, &lid), 0);
    other = guest_bare(3);
    dev = VMRI_DEV_ANY;
    lid = 3;
    CHECK_EQ(dom0_attach(3, GUEST_FABRIC + 1, &dev, &lid), 0);
    (void)other;

    CHECK_EQ(query_port(a, 0, &port), 0);
    CHECK_EQ(port.lid, a->lid);
    CHECK_EQ(port.state, VMRI_PORT_ACTIVE);
    CHECK_EQ(port.mtu, 5);
    CHECK_EQ(port.guid, a->attr.port_guid);
    CHECK_EQ(port.gid_prefix, a->attr.gid_prefix);
    CHECK_EQ(memcmp(port.pkeys, a->attr.pkeys, sizeof(port.pkeys)), 0);
    CHECK_EQ(query_port(a, (uint16_t)(a->lid + 1), &port), 0);
    CHECK_EQ(port.lid, b->lid);
    CHECK_EQ(query_port(a, (uint16_t)(b->lid + 1), &port), 0);
    CHECK_EQ(port.lid, 0x7000);
    CHECK_EQ(query_port(a, 0x7001, &port), -ENOENT);
    CHECK_EQ(query_port(a, 0xffff, &port), -ENOENT);
    CHECK_EQ(dom0_detach(2, 0), 0);
    CHECK_EQ(query_port(a, (uint16_t)(a->lid + 1), &port), 0);
    CHECK_EQ(port.lid, 0x7000);
}

TEST(subnet_ports_say_what_their_drivers_say)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_dev_describe bad = { .reserved = 1 };
    struct vmri_port_query port;

    CHECK_EQ(query_port(a, b->lid, &port), 0);
    CHECK(all_bytes(port.node_desc, sizeof(port.node_desc), 0));
    CHECK_EQ(describe(b, "the second", 0x1234), 0);
    CHECK_EQ(query_port(a, b->lid, &port), 0);
    CHECK_EQ(strcmp((char *)port.node_desc, "the second"), 0);
    CHECK_EQ(port.cap_mask, 0x1234);
    CHECK_EQ(guest_call(b, VMRI_OP_dev_describe, &bad, sizeof(bad)), -EINVAL);

    /* Only while it is in use. */
    CHECK_EQ(guest_call(b, VMRI_OP_dev_destroy, NULL, 0), 0);
    CHECK_EQ(describe(b, "not in use", 1), -ENODEV);
    CHECK_EQ(query_port(a, b->lid, &port), 0);
    CHECK(all_bytes(port.node_desc, sizeof(port.node_desc), 0));
    CHECK_EQ(port.cap_mask, 0);
}

/* Who may not be reached is not there. */
TEST(subnet_ports_that_xsm_hides)
{
    struct guest *a = guest_new(1), *b = guest_new(2), *c = guest_new(3);
    struct vmri_port_query port;

    env_test_silo(b->domain);
    CHECK_EQ(query_port(a, b->lid, &port), 0);
    CHECK_EQ(port.lid, c->lid);
    CHECK_EQ(query_port(b, 0, &port), 0);
    CHECK_EQ(port.lid, b->lid);
    CHECK_EQ(query_port(b, (uint16_t)(b->lid + 1), &port), -ENOENT);
}

TEST(subnet_members_that_xsm_hides)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_mcg group = group_new_arg(1, 0);
    struct vmri_mcg_query q;

    CHECK_EQ(group_join(b, &group), 0);
    CHECK_EQ(query_group(a, &group, VMRI_MCG_BY_MGID, b->lid, &q), 0);
    CHECK_EQ(q.group.joined, VMRI_JOIN_FULL);
    env_test_silo(b->domain);
    CHECK_EQ(query_group(a, &group, VMRI_MCG_BY_MGID, b->lid, &q), 0);
    CHECK_EQ(q.group.joined, 0);
    CHECK_EQ(query_group(b, &group, VMRI_MCG_BY_MGID, b->lid, &q), 0);
    CHECK_EQ(q.group.joined, VMRI_JOIN_FULL);
}

/* ---- groups ---- */

TEST(subnet_group_is_joined_in_several_ways)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_mcg arg = group_new_arg(1, 0), more;
    struct vmri_mcg_query q;

    CHECK_EQ(group_join(a, &arg), 0);
    CHECK_EQ(arg.joined, VMRI_JOIN_FULL);
    CHECK_EQ(arg.join, VMRI_JOIN_FULL);
    more = group_arg(1, 0);
    more.join = VMRI_JOIN_FULL | VMRI_JOIN_NON;
    CHECK_EQ(group_join(a, &more), -EEXIST);
    more.join = VMRI_JOIN_NON | VMRI_JOIN_SEND_ONLY_FULL;
    CHECK_EQ(group_join(a, &more), 0);
    CHECK_EQ(more.joined, VMRI_JOIN_ALL & ~VMRI_JOIN_SEND_ONLY_NON);
    CHECK_EQ(more.members, 1);

    CHECK_EQ(query_group(a, &arg, VMRI_MCG_BY_MGID, 0, &q), 0);
    CHECK_EQ(q.group.joined, more.joined);
    CHECK_EQ(query_group(b, &arg, VMRI_MCG_BY_MGID, 0, &q), 0);
    CHECK_EQ(q.group.joined, 0);
    CHECK_EQ(query_group(b, &arg, VMRI_MCG_BY_MGID, a->lid, &q), 0);
    CHECK_EQ(q.group.joined, more.joined);
    CHECK_EQ(query_group(b, &arg, VMRI_MCG_BY_MGID, 0x1234, &q), 0);
    CHECK_EQ(q.group.joined, 0);

    arg.join = VMRI_JOIN_FULL | VMRI_JOIN_SEND_ONLY_NON;
    CHECK_EQ(group_leave(a, &arg), -ENOENT);
    arg.join = VMRI_JOIN_FULL | VMRI_JOIN_NON;
    CHECK_EQ(group_leave(a, &arg), 0);
    CHECK_EQ(group_leave(a, &arg), -ENOENT);
    arg.join = VMRI_JOIN_SEND_ONLY_FULL;
    CHECK_EQ(group_leave(a, &arg), 0);
    CHECK_EQ(query_group(a, &arg, VMRI_MCG_BY_MGID, 0, &q), -ENOENT);

    /* No way, and one that there is not. */
    arg = group_new_arg(1, 0);
    arg.join = 0;
    CHECK_EQ(group_join(a, &arg), -EINVAL);
    arg.join = VMRI_JOIN_ALL + 1;
    CHECK_EQ(group_join(a, &arg), -EINVAL);
    CHECK_EQ(group_leave(a, &arg), -EINVAL);
    arg.join = VMRI_JOIN_FULL;
    arg.reserved = 1;
    CHECK_EQ(group_join(a, &arg), -EINVAL);
}

TEST(subnet_groups_in_order_of_their_mlids)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct guest_qp *qp = guest_qp(b, &ud);
    struct vmri_mcg first = group_new_arg(1, 0xc010);
    struct vmri_mcg second = group_new_arg(2, 0xc005), from = { .mlid = 0 };
    struct vmri_mcg_query q;

    CHECK_EQ(query_group(a, NULL, 0, 0, &q), -ENOENT);
    CHECK_EQ(group_join(a, &first), 0);
    CHECK_EQ(group_join(b, &second), 0);
    /* One of listeners only has no attributes to tell. */
    CHECK_EQ(group_attach(qp, 3, 0xc001), 0);

    CHECK_EQ(query_group(a, &from, 0, 0, &q), 0);
    CHECK_EQ(q.group.mlid, 0xc005);
    CHECK_EQ(q.group.joined, 0);
    CHECK_EQ(memcmp(q.group.mgid, second.mgid, 16), 0);
    CHECK_EQ(q.group.qkey, second.qkey);
    from.mlid = 0xc006;
    CHECK_EQ(query_group(a, &from, 0, 0, &q), 0);
    CHECK_EQ(q.group.mlid, 0xc010);
    CHECK_EQ(q.group.joined, VMRI_JOIN_FULL);
    from.mlid = 0xc011;
    CHECK_EQ(query_group(a, &from, 0, 0, &q), -ENOENT);
    from.mlid = 0xffff;
    CHECK_EQ(query_group(a, &from, 0, 0, &q), -ENOENT);

    from = group_arg(3, 0);
    CHECK_EQ(query_group(a, &from, VMRI_MCG_BY_MGID, 0, &q), -ENOENT);
    from.mgid[0] = 0xfe;
    CHECK_EQ(query_group(a, &from, VMRI_MCG_BY_MGID, 0, &q), -EINVAL);
    CHECK_EQ(query_group(a, NULL, 2, 0, &q), -EINVAL);
    q = (struct vmri_mcg_query){ .reserved0 = 1 };
    CHECK_EQ(guest_call(a, VMRI_OP_mcg_query, &q, sizeof(q)), -EINVAL);
    q = (struct vmri_mcg_query){ .reserved1 = 1 };
    CHECK_EQ(guest_call(a, VMRI_OP_mcg_query, &q, sizeof(q)), -EINVAL);
}

/* It needs nobody who creates it, but a port of its partition. */
TEST(subnet_broadcast_group_is_there)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_mcg group = broadcast(0xffff), again;
    struct vmri_ctl_port port = {
        .domid = 2, .mask = VMRI_PORTA_PKEY, .pkeys = { 0xffff, 0x0012 },
    };

    CHECK_EQ(group_join(a, &group), 0);
    CHECK_EQ(group.pkey, 0xffff);
    CHECK_EQ(group.qkey, VMRI_BROADCAST_QKEY);
    CHECK_EQ(group.mtu, 5);
    CHECK_EQ(group.scope, 2);
    CHECK_EQ(group.members, 1);
    again = broadcast(0xffff);
    CHECK_EQ(group_join(b, &again), 0);
    CHECK_EQ(again.members, 2);
    CHECK_EQ(again.mlid, group.mlid);

    /* Of a partition that the port is not in; not quite a broadcast group. */
    again = broadcast(0x8012);
    CHECK_EQ(group_join(b, &again), -EPERM);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &port, sizeof(port)), 0);
    CHECK_EQ(group_join(b, &again), 0);
    CHECK_EQ(again.pkey, 0x8012);
    again = broadcast(0x0012);
    CHECK_EQ(group_join(b, &again), -ENOENT);
    again = broadcast(0x8000);
    CHECK_EQ(group_join(b, &again), -EPERM);
    again = broadcast(0xffff);
    again.mgid[15] = 0xfe;
    CHECK_EQ(group_join(b, &again), -ENOENT);
    again = broadcast(0xffff);
    again.mgid[3] = 0x1c;
    CHECK_EQ(group_join(b, &again), -ENOENT);

    /* Who creates it after all does not say how. */
    CHECK_EQ(group_leave(a, &group), 0);
    again = broadcast(0xffff);
    CHECK_EQ(group_leave(b, &again), 0);
    again = group_new_arg(1, 0);
    memcpy(again.mgid, group.mgid, sizeof(again.mgid));
    again.qkey = 5;
    CHECK_EQ(group_join(a, &again), 0);
    CHECK_EQ(again.qkey, VMRI_BROADCAST_QKEY);
    again = group_new_arg(1, 0);
    group = broadcast(0x8013);
    memcpy(again.mgid, group.mgid, sizeof(again.mgid));
    CHECK_EQ(group_join(a, &again), -EPERM);
}

TEST(subnet_group_of_another_partition)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_mcg group = group_new_arg(1, 0), again;
    struct vmri_ctl_port port = {
        .domid = 2, .mask = VMRI_PORTA_PKEY, .pkeys = { 0xffff, 0x0012 },
    };

    group.pkey = 0x8012;
    CHECK_EQ(group_join(b, &group), -EPERM);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &port, sizeof(port)), 0);
    CHECK_EQ(group_join(b, &group), 0);
    again = group_arg(1, 0);
    CHECK_EQ(group_join(a, &again), -EPERM);
    again = group_new_arg(1, 0);
    CHECK_EQ(group_join(a, &again), -EPERM);
}

/* ---- changes ---- */

/* One that sees its port's events. */
static struct guest *guest_new_watching(unsigned int domid)
{
    struct guest *g = guest_new(domid);

    CHECK_EQ(try_port_eq(g, &g->eq[1]), 0);
    return g;
}

static void watch(struct guest *g)
{
    guest_serve(g);
    g->events[VMRI_EVENT_FABRIC] = 0;
    CHECK_EQ(guest_call(g, VMRI_OP_fabric_watch, NULL, 0), 0);
}

/* Whether it was told since. */
static bool noticed(struct guest *g)
{
    guest_serve(g);
    CHECK(g->events[VMRI_EVENT_FABRIC] <= 1);
    return g->events[VMRI_EVENT_FABRIC];
}

static long set_port(struct guest *g, struct vmri_ctl_port *arg)
{
    arg->domid = env_domid(g->domain);
    arg->dev_id = g->dev;
    return dom0_call(VMRI_OP_ctl_port, arg, sizeof(*arg));
}

TEST(subnet_tells_once_who_watches)
{
    struct guest *a = guest_new_watching(1), *b;
    struct vmri_ctl_port port = { .mask = VMRI_PORTA_STATE, .state = 1 };
    struct vmri_mcg group = group_new_arg(1, 0), more;

    watch(a);
    CHECK(!noticed(a));
    b = guest_new(2);
    CHECK(noticed(a));

    /* Once. */
    CHECK_EQ(set_port(b, &port), 0);
    CHECK(noticed(a));
    watch(a);
    port.mask = 0;
    CHECK_EQ(set_port(b, &port), 0);
    CHECK(!noticed(a));
    port = (struct vmri_ctl_port){ .mask = VMRI_PORTA_STATE, .state = 4 };
    CHECK_EQ(set_port(b, &port), 0);
    CHECK(noticed(a));

    /* The first member and the last, not those between. */
    watch(a);
    CHECK_EQ(group_join(b, &group), 0);
    CHECK(noticed(a));
    watch(a);
    more = group_arg(1, 0);
    more.join = VMRI_JOIN_NON;
    CHECK_EQ(group_join(b, &more), 0);
    more = group_arg(1, 0);
    CHECK_EQ(group_leave(b, &more), 0);
    CHECK(!noticed(a));
    more.join = VMRI_JOIN_NON;
    CHECK_EQ(group_leave(b, &more), 0);
    CHECK(noticed(a));

    watch(a);
    CHECK_EQ(dom0_detach(2, b->dev), 0);
    CHECK(noticed(a));
}

TEST(subnet_of_others_is_not_watched)
{
    struct guest *a = guest_new_watching(1);
    uint32_t dev = VMRI_DEV_ANY;
    uint16_t lid = 0;

    watch(a);
    guest_bare(2);
    CHECK_EQ(dom0_attach(2, GUEST_FABRIC + 1, &dev, &lid), 0);
    CHECK(!noticed(a));

    CHECK_EQ(guest_call(a, VMRI_OP_dev_destroy, NULL, 0), 0);
    CHECK_EQ(guest_call(a, VMRI_OP_fabric_watch, NULL, 0), -ENODEV);
    dev = VMRI_DEV_ANY;
    lid = 0;
    CHECK_EQ(dom0_attach(2, GUEST_FABRIC, &dev, &lid), 0);
}

/* ---- a manager ---- */

static long attach_manager(unsigned int domid, uint32_t fabric)
{
    struct vmri_ctl_attach arg = {
        .domid = domid, .dev_id = VMRI_DEV_ANY, .fabric = fabric,
        .flags = VMRI_ATTACH_SM,
    };

    return dom0_call(VMRI_OP_ctl_attach, &arg, sizeof(arg));
}

/* The manager, in use, on the guests' fabric. */
static struct guest *manager_new(unsigned int domid)
{
    struct guest *g = guest_bare(domid);

    CHECK_EQ(attach_manager(domid, GUEST_FABRIC), 0);
    guest_start(g);
    CHECK_EQ(g->attr.flags, VMRI_DEVF_SM);
    return g;
}

TEST(subnet_has_one_manager)
{
    struct guest *a = guest_new(1), *sm = manager_new(2);

    CHECK_EQ(a->attr.flags, 0);
    guest_bare(3);
    CHECK_EQ(attach_manager(3, GUEST_FABRIC), -EBUSY);
    CHECK_EQ(attach_manager(3, GUEST_FABRIC + 1), 0);
    CHECK_EQ(dom0_detach(2, sm->dev), 0);
    CHECK_EQ(attach_manager(3, GUEST_FABRIC), 0);
}

TEST(subnet_with_a_manager_is_no_larger_than_a_switch)
{
    uint32_t dev;
    uint16_t lid;
    unsigned int i;

    for ( i = 0; i < VMRI_MANAGED_MAX; i++ )
    {
        if ( i % VMRI_MAX_DEVS == 0 )
            guest_bare(1 + i / VMRI_MAX_DEVS);
        dev = VMRI_DEV_ANY;
        lid = 0;
        CHECK_EQ(dom0_attach(1 + i / VMRI_MAX_DEVS, GUEST_FABRIC, &dev, &lid),
                 0);
    }
    CHECK_EQ(attach_manager(4, GUEST_FABRIC), -ENOSPC);
    CHECK_EQ(dom0_detach(1, 0), 0);
    CHECK_EQ(attach_manager(4, GUEST_FABRIC), 0);
    dev = VMRI_DEV_ANY;
    lid = 0;
    CHECK_EQ(dom0_attach(1, GUEST_FABRIC, &dev, &lid), -ENOSPC);
    CHECK_EQ(dom0_attach(1, GUEST_FABRIC + 1, &dev, &lid), 0);
}

TEST(subnet_ports_wait_for_a_manager_that_runs)
{
    struct guest *sm = manager_new(1), *a = guest_new(2), *b, *c;
    struct vmri_ctl_port port = { .mask = VMRI_PORTA_SM_LID };
    struct vmri_dev_attr attr;

    CHECK_EQ(a->attr.port_state, VMRI_PORT_ACTIVE);
    CHECK_EQ(describe(sm, "manager", 0x2), 0);
    b = guest_new(3);
    CHECK_EQ(b->attr.port_state, VMRI_PORT_INIT);
    CHECK_EQ(describe(sm, "manager", 0), 0);
    c = guest_new(4);
    CHECK_EQ(c->attr.port_state, VMRI_PORT_ACTIVE);

    /* What it leaves behind is as without one; another's ports stay. */
    port.sm_lid = sm->lid;
    CHECK_EQ(set_port(a, &port), 0);
    port.sm_lid = 0x1234;
    CHECK_EQ(set_port(c, &port), 0);
    CHECK_EQ(dom0_detach(1, sm->dev), 0);
    CHECK_EQ(guest_call(a, VMRI_OP_dev_query, &attr, sizeof(attr)), 0);
    CHECK_EQ(attr.sm_lid, a->lid);
    CHECK_EQ(guest_call(b, VMRI_OP_dev_query, &attr, sizeof(attr)), 0);
    CHECK_EQ(attr.port_state, VMRI_PORT_ACTIVE);
    CHECK_EQ(attr.sm_lid, b->lid);
    CHECK_EQ(guest_call(c, VMRI_OP_dev_query, &attr, sizeof(attr)), 0);
    CHECK_EQ(attr.sm_lid, 0x1234);
}

TEST(subnet_groups_are_left_for_another_manager)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_ctl_port port = { .mask = VMRI_PORTA_SM_LID, .sm_lid = 9 };
    struct vmri_mcg one = group_new_arg(1, 0), two = group_new_arg(2, 0);
    struct vmri_mcg_query q;

    CHECK_EQ(group_join(a, &one), 0);
    CHECK_EQ(group_join(a, &two), 0);
    two = group_arg(2, 0);
    CHECK_EQ(group_join(b, &two), 0);
    CHECK_EQ(set_port(a, &port), 0);
    CHECK_EQ(query_group(b, &one, VMRI_MCG_BY_MGID, 0, &q), -ENOENT);
    CHECK_EQ(query_group(b, &two, VMRI_MCG_BY_MGID, 0, &q), 0);
    CHECK_EQ(q.group.members, 1);
    CHECK_EQ(q.group.joined, VMRI_JOIN_FULL);
}
