/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dev.c, domain.c, fabric.c, control.c, hypercall.c, dump.c: devices from
 * attachment to detachment, who may what, and what the console shows.
 */
#include "pair.h"
#include "internal.h"

#undef memcpy
#undef memset

static long attach(struct vmri_ctl_attach *arg)
{
    return dom0_call(VMRI_OP_ctl_attach, arg, sizeof(*arg));
}

static long info_of(unsigned int domid, uint32_t dev,
                    struct vmri_ctl_info *info)
{
    *info = (struct vmri_ctl_info){ .domid = domid, .dev_id = dev };
    return dom0_call(VMRI_OP_ctl_list, info, sizeof(*info));
}

/* ---- attach ---- */

TEST(dev_numbers_asked_for_and_given)
{
    struct vmri_ctl_attach arg = {
        .domid = 1, .dev_id = VMRI_DEV_ANY, .fabric = 5,
    };
    uint64_t guid;

    env_test_domain(1);
    env_test_domain(2);
    CHECK_EQ(attach(&arg), 0);
    CHECK_EQ(arg.dev_id, 0);
    CHECK_EQ(arg.lid, 1);
    CHECK(arg.guid);
    guid = arg.guid;

    arg = (struct vmri_ctl_attach){
        .domid = 1, .dev_id = 7, .fabric = 5, .lid = 0xbfff, .guid = 0x1234,
    };
    CHECK_EQ(attach(&arg), 0);
    CHECK_EQ(arg.dev_id, 7);
    CHECK_EQ(arg.lid, 0xbfff);
    CHECK_EQ(arg.guid, 0x1234);

    /* Taken: the id, the LID, the GUID; the same on another fabric is not. */
    arg = (struct vmri_ctl_attach){ .domid = 1, .dev_id = 7, .fabric = 6 };
    CHECK_EQ(attach(&arg), -EEXIST);
    arg = (struct vmri_ctl_attach){ .domid = 2, .fabric = 5, .lid = 1 };
    CHECK_EQ(attach(&arg), -EEXIST);
    arg = (struct vmri_ctl_attach){ .domid = 2, .fabric = 5, .guid = 0x1234 };
    CHECK_EQ(attach(&arg), -EEXIST);
    arg = (struct vmri_ctl_attach){
        .domid = 2, .fabric = 6, .lid = 1, .guid = 0x1234,
    };
    CHECK_EQ(attach(&arg), 0);
    arg = (struct vmri_ctl_attach){ .domid = 2, .dev_id = 1, .fabric = 5 };
    CHECK_EQ(attach(&arg), 0);
    CHECK_EQ(arg.lid, 2);
    CHECK(arg.guid != guid);
}

TEST(dev_bad_attachments)
{
    static const struct {
        struct vmri_ctl_attach arg;
        int rc;
    } bad[] = {
        { { .domid = 7 }, -ESRCH },
        { { .domid = 0x7ff0 }, -ESRCH },
        { { .domid = ~0U }, -ESRCH },
        { { .domid = 1, .dev_id = VMRI_MAX_DEVS }, -EINVAL },
        { { .domid = 1, .dev_id = ~0U - 1 }, -EINVAL },
        { { .domid = 1, .fabric = VMRI_FABRIC_MAX + 1 }, -EINVAL },
        { { .domid = 1, .lid = VMRI_LID_MAX + 1 }, -EINVAL },
        { { .domid = 1, .lid = 0xffff }, -EINVAL },
        { { .domid = 1, .flags = VMRI_ATTACH_SM << 1 }, -EINVAL },
        { { .domid = 1, .flags = VMRI_ATTACH_CREATED, .fabric = 99 }, -ENOENT },
        { { .domid = 1, .uplink = 1 }, -ENODEV },
    };
    struct vmri_ctl_info info;
    unsigned int i;

    env_test_domain(1);
    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        struct vmri_ctl_attach arg = bad[i].arg;

        CHECK_AT(attach(&arg), bad[i].rc, "case %u", i);
    }
    CHECK_EQ(info_of(0, 0, &info), -ENOENT);

    env_test_domain_dying(env_test_domain(1));
    {
        struct vmri_ctl_attach arg = { .domid = 1 };

        CHECK_EQ(attach(&arg), -ESRCH);
    }
}

TEST(dev_no_more_than_there_is_room_for)
{
    struct vmri_ctl_attach arg;
    unsigned int i;

    env_test_domain(1);
    for ( i = 0; i <= VMRI_MAX_DEVS; i++ )
    {
        arg = (struct vmri_ctl_attach){
            .domid = 1, .dev_id = VMRI_DEV_ANY, .fabric = i % 3,
        };
        CHECK_AT(attach(&arg), i < VMRI_MAX_DEVS ? 0 : -ENOSPC, "%u", i);
    }
}

TEST(dev_attach_undoes_every_failure)
{
    struct vmri_ctl_attach arg = { .domid = 1, .fabric = 3 };
    unsigned int nth;

    env_test_domain(1);
    for ( nth = 1; ; nth++ )
    {
        struct vmri_ctl_info info;
        long rc;

        arg = (struct vmri_ctl_attach){ .domid = 1, .fabric = 3 };
        env_test_fail(ENV_FAIL_ALLOC, nth);
        rc = attach(&arg);
        if ( env_test_fail_left(ENV_FAIL_ALLOC) )
        {
            CHECK_EQ(rc, 0);
            break;
        }
        if ( rc )
        {
            CHECK_EQ(rc, -ENOMEM);
            CHECK_EQ(info_of(0, 0, &info), -ENOENT);
        }
        else
            CHECK_EQ(dom0_detach(1, arg.dev_id), 0);
        env_test_domain_dying(env_test_domain(1));
        CHECK_EQ(vmri_domain_teardown(env_test_domain(1)), 0);
        CHECK_EQ(env_stats.allocations, 0);
        env_test_domain_reborn(env_test_domain(1));
    }
    CHECK(nth > 5);
}

/* ---- who may ---- */

TEST(dev_control_is_for_the_privileged)
{
    struct guest *g = guest_new(1);
    struct vmri_ctl_attach arg = { .domid = 1, .dev_id = 3 };
    struct vmri_ctl_detach det = { .domid = 1 };
    struct vmri_ctl_info info = { .domid = 0 };

    CHECK_EQ(guest_call(g, VMRI_OP_ctl_attach, &arg, sizeof(arg)), -EPERM);
    CHECK_EQ(guest_call(g, VMRI_OP_ctl_detach, &det, sizeof(det)), -EPERM);
    CHECK_EQ(guest_call(g, VMRI_OP_ctl_list, &info, sizeof(info)), -EPERM);
    arg.domid = 99;
    CHECK_EQ(guest_call(g, VMRI_OP_ctl_attach, &arg, sizeof(arg)), -EPERM);
    CHECK_EQ(guest_call(g, 0x8fff, NULL, 0), -EPERM);
    env_test_deny(true);
    arg.domid = 1;
    CHECK_EQ(attach(&arg), -EPERM);
    CHECK_EQ(info_of(0, 0, &info), -EPERM);
    CHECK_EQ(dom0_detach(1, 0), -EPERM);
    env_test_deny(false);
    CHECK_EQ(dom0_call(0x8fff, NULL, 0), -ENOSYS);
}

static const uint16_t all_commands[] = {
    VMRI_OP_version, VMRI_OP_dev_create, VMRI_OP_dev_destroy,
    VMRI_OP_dev_query, VMRI_OP_dev_counters, VMRI_OP_pd_create,
    VMRI_OP_pd_destroy, VMRI_OP_xrcd_create, VMRI_OP_xrcd_destroy,
    VMRI_OP_eq_create, VMRI_OP_eq_destroy, VMRI_OP_eq_poll,
    VMRI_OP_cq_create, VMRI_OP_cq_destroy,
    VMRI_OP_srq_create, VMRI_OP_srq_destroy, VMRI_OP_srq_modify,
    VMRI_OP_srq_query, VMRI_OP_srq_schedule, VMRI_OP_qp_create,
    VMRI_OP_qp_destroy, VMRI_OP_qp_modify, VMRI_OP_qp_query,
    VMRI_OP_mr_register, VMRI_OP_mr_deregister, VMRI_OP_mr_reregister,
    VMRI_OP_mr_alloc, VMRI_OP_mw_alloc, VMRI_OP_mw_free, VMRI_OP_twin_create,
    VMRI_OP_twin_destroy, VMRI_OP_schedule,
    VMRI_OP_cq_resize, VMRI_OP_mcg_create, VMRI_OP_mcg_destroy,
    VMRI_OP_mcg_attach, VMRI_OP_mcg_detach, VMRI_OP_mcg_query,
    VMRI_OP_dev_describe, VMRI_OP_port_query, VMRI_OP_doorbell, VMRI_OP_gid_set,
    VMRI_OP_fabric_watch, VMRI_OP_service_set, VMRI_OP_service_delete,
    VMRI_OP_service_query,
};

TEST(dev_commands_without_device)
{
    struct guest *g = guest_bare(1);
    uint8_t arg[256] = { 0 };
    struct vmri_version v = { .magic = 0 };
    unsigned int i;

    CHECK_EQ(guest_call(g, VMRI_OP_version, &v, sizeof(v)), 0);
    CHECK_EQ(v.magic, VMRI_MAGIC);
    CHECK_EQ(v.abi_version, VMRI_ABI_VERSION);

    for ( i = 1; i < ARRAY_SIZE(all_commands); i++ )
        CHECK_AT(guest_call(g, all_commands[i], arg, sizeof(arg)), -ENODEV,
                 "cmd %#x", all_commands[i]);

    guest_new(2);
    g->dev = 5;
    for ( i = 1; i < ARRAY_SIZE(all_commands); i++ )
        CHECK_EQ(guest_call(g, all_commands[i], arg, sizeof(arg)), -ENODEV);
}

TEST(dev_unknown_commands_and_addresses)
{
    struct guest *g = guest_new(1);
    uint32_t dev = g->dev;
    struct domain *before;
    unsigned int cmd, i, known;

    for ( cmd = 0; cmd < 0x1000; cmd++ )
    {
        for ( known = 0, i = 0; i < ARRAY_SIZE(all_commands); i++ )
            known |= all_commands[i] == cmd;
        if ( !known )
            CHECK_AT(guest_call(g, cmd, NULL, 0), -ENOSYS, "%#x", cmd);
    }
    CHECK_EQ(guest_call(g, 0x7fff, NULL, 0), -ENOSYS);

    /* Nothing exposed: every structure is a fault, nothing else. */
    before = env_test_enter(g->domain);
    for ( i = 0; i < ARRAY_SIZE(all_commands); i++ )
        if ( all_commands[i] != VMRI_OP_dev_destroy &&
             all_commands[i] != VMRI_OP_fabric_watch &&
             all_commands[i] != VMRI_OP_schedule &&
             all_commands[i] != VMRI_OP_srq_schedule &&
             all_commands[i] != VMRI_OP_doorbell )
            CHECK_AT(vmri_dispatch(all_commands[i], &dev, 0x1000), -EFAULT,
                     "cmd %#x", all_commands[i]);
    CHECK_EQ(vmri_dispatch(VMRI_OP_schedule, &dev, 1ULL << 40), -ENOENT);
    CHECK_EQ(vmri_dispatch(VMRI_OP_srq_schedule, &dev, 1ULL << 40), -ENOENT);
    env_test_enter(before);
}

/* ---- create, query, close ---- */

TEST(dev_create_once)
{
    struct guest *g = guest_new(1);
    struct vmri_dev_create arg = { .flags = 0 };
    struct vmri_dev_attr attr;

    CHECK_EQ(guest_call(g, VMRI_OP_dev_create, &arg, sizeof(arg)), -EBUSY);
    arg.flags = ~VMRI_DEVF_DOORBELL;
    CHECK_EQ(guest_call(g, VMRI_OP_dev_create, &arg, sizeof(arg)), -EINVAL);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_query, &attr, sizeof(attr)), 0);
    CHECK_EQ(memcmp(&attr, &g->attr, sizeof(attr)), 0);
    CHECK_EQ(attr.clock, env_now());
    env_test_advance(1000);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_query, &attr, sizeof(attr)), 0);
    CHECK_EQ(attr.clock, g->attr.clock + 1000);
    CHECK(attr.node_guid && attr.port_guid && attr.sys_image_guid);
    /* A service ID that begins so is one that a connection manager makes up. */
    CHECK(attr.port_guid >> 56 != 2);
    CHECK_EQ(attr.gid_prefix, 0xfe80000000000000ULL);
    CHECK_EQ(attr.lid, g->lid);
    CHECK_EQ(attr.fabric, GUEST_FABRIC);
    CHECK_EQ(attr.pkeys[0], 0xffff);
    CHECK_EQ(attr.pkeys[1], 0);
    CHECK_EQ(attr.max_pkeys, VMRI_MAX_PKEYS);
    CHECK_EQ(attr.port_state, 4);
    CHECK_EQ(attr.mtu, 5);
    CHECK(attr.max_qp && attr.max_cq && attr.max_mr && attr.max_pd);
    CHECK(attr.max_sge >= 16 && attr.max_inline >= 220);
}

/* Before it is in use nothing can be created on it. */
TEST(dev_not_in_use)
{
    struct guest *g = guest_bare(1);
    struct vmri_object pd = { .handle = 0 };

    CHECK_EQ(dom0_attach(1, 1, &g->dev, &g->lid), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_pd_create, &pd, sizeof(pd)), -ENODEV);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy, NULL, 0), 0);
    guest_start(g);
}

/* A device full of everything, in use and half done. */
static struct pair busy_pair(void)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 100000);
    struct guest_qp *more;
    unsigned int i;

    for ( i = 0; i < 5; i++ )
    {
        more = guest_qp(p.b, &(struct guest_qp_opts){ .scq = p.qb->scq });
        qp_to(more, p.qa, VMRI_QPS_INIT, NULL);
        guest_pd(p.b);
        guest_eq(p.b, 5);
    }
    pair_send(&p, &wr);         /* waits for a receive */
    return p;
}

TEST(dev_close_from_any_place)
{
    static const unsigned int every[] = { 0, 1, 2, 7 };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(every); i++ )
    {
        static struct pair p;
        struct vmri_ctl_info info;
        unsigned int steps = 0;
        unsigned int what;
        long rc;

        if ( !p.a )
            p = busy_pair();
        env_test_preempt(every[i]);
        rc = guest_call_once(p.b, VMRI_OP_dev_destroy, NULL, 0);
        while ( rc == -ERESTART )
        {
            /* Meanwhile nothing new. */
            struct vmri_object pd = { .handle = 0 };

            CHECK(guest_call(p.b, VMRI_OP_pd_create, &pd, sizeof(pd)) < 0);
            rc = guest_call_once(p.b, VMRI_OP_dev_destroy | VMRI_CONTINUE, NULL,
                                 0);
            CHECK(++steps < 10000);
        }
        CHECK_EQ(rc, 0);
        env_test_preempt(0);
        CHECK_EQ(info_of(2, 0, &info), 0);
        CHECK_EQ(info.in_use, 0);
        for ( what = 0; what < VMRI_RES_BYTES; what++ )
            CHECK_AT(info.usage.n[what], 0, "resource %u", what);
        CHECK_EQ(env_test_ports(p.b->domain), 0);

        /* And it can be used again. */
        memset(p.b->eq, 0, sizeof(p.b->eq));
        guest_start(p.b);
        if ( i + 1 < ARRAY_SIZE(every) )
            guest_mr(p.b, 1 << 20, 0, LAYOUT_SCATTERED, 1);
    }
}

TEST(dev_detach_with_everything_in_use)
{
    unsigned int every;

    for ( every = 0; every < 3; every++ )
    {
        static struct pair p;
        uint32_t dev = VMRI_DEV_ANY;
        uint16_t lid = 0;
        struct vmri_ctl_info info;

        if ( !every )
            p = busy_pair();
        else
        {
            guest_start(p.b);
            guest_mr(p.b, 1 << 20, 0, LAYOUT_SCATTERED, 1);
        }
        env_test_preempt(every);
        CHECK_EQ(dom0_detach(2, p.b->dev), 0);
        env_test_preempt(0);
        CHECK_EQ(info_of(2, 0, &info), -ENOENT);
        CHECK_EQ(env_test_ports(p.b->domain), 0);
        CHECK_EQ(dom0_detach(2, p.b->dev), -ENODEV);
        CHECK_EQ(guest_call(p.b, VMRI_OP_dev_query, &p.b->attr,
                            sizeof(p.b->attr)), -ENODEV);
        memset(p.b->eq, 0, sizeof(p.b->eq));

        CHECK_EQ(dom0_attach(2, GUEST_FABRIC, &dev, &lid), 0);
        CHECK_EQ(dev, p.b->dev);
        CHECK_EQ(lid, p.b->lid);
    }
}

/* While it takes long, the number is taken and the device gone for all. */
TEST(dev_detach_step_by_step)
{
    struct pair p = busy_pair();
    struct guest dom0 = { .domain = env_test_domain(0) };
    struct vmri_ctl_detach det = { .domid = 2, .dev_id = 0 };
    struct vmri_ctl_attach again = { .domid = 2, .dev_id = 0, .fabric = 1 };
    struct vmri_ctl_info info;
    long rc;

    env_test_preempt(1);
    rc = guest_call_once(&dom0, VMRI_OP_ctl_detach, &det, sizeof(det));
    CHECK_EQ(rc, -ERESTART);
    CHECK_EQ(info_of(2, 0, &info), -ENOENT);
    CHECK_EQ(guest_schedule(p.b, p.qb->qpn), -ENODEV);
    CHECK_EQ(attach(&again), -EEXIST);
    while ( rc == -ERESTART )
        rc = guest_call_once(&dom0, VMRI_OP_ctl_detach | VMRI_CONTINUE, &det,
                             sizeof(det));
    CHECK_EQ(rc, 0);
    CHECK_EQ(attach(&again), 0);
}

/* A guest dies while dom0 detaches its device. */
TEST(dev_domain_dies_while_detaching)
{
    struct pair p = busy_pair();
    struct guest dom0 = { .domain = env_test_domain(0) };
    struct vmri_ctl_detach det = { .domid = 2, .dev_id = 0 };

    env_test_preempt(1);
    CHECK_EQ(guest_call_once(&dom0, VMRI_OP_ctl_detach, &det, sizeof(det)),
             -ERESTART);
    env_test_domain_dying(p.b->domain);
    while ( vmri_domain_teardown(p.b->domain) == -ERESTART )
        ;
    CHECK_EQ(guest_call_once(&dom0, VMRI_OP_ctl_detach | VMRI_CONTINUE, &det,
                             sizeof(det)), 0);
}

TEST(dev_teardown_of_a_dying_domain)
{
    struct pair p = busy_pair();
    unsigned int steps = 0;
    struct vmri_cqe cqe;

    env_test_domain_dying(p.b->domain);
    env_test_preempt(1);
    while ( vmri_domain_teardown(p.b->domain) == -ERESTART )
    {
        env_test_returned();
        CHECK(++steps < 10000);
    }
    CHECK(steps > 10);
    env_test_preempt(0);
    CHECK_EQ(vmri_domain_teardown(p.b->domain), 0);
    CHECK_EQ(env_test_ports(p.b->domain), 0);

    /* The peer's request ends with a time-out. */
    world_pass(20000000000ULL, 100000000ULL);
    CHECK(cq_poll(p.qa->scq, &cqe));
    CHECK_EQ(cqe.status, VMRI_WC_RETRY_EXC_ERR);
    CHECK_EQ(vmri_domain_teardown(env_test_domain(4)), 0);
}

/* kexec in the guest: all objects go, the attachment stays. */
TEST(dev_soft_reset)
{
    struct pair p = busy_pair();
    struct guest second = { .domain = p.b->domain, .dev = VMRI_DEV_ANY };
    struct vmri_ctl_info info;
    unsigned int steps = 0;

    CHECK_EQ(dom0_attach(2, 9, &second.dev, &second.lid), 0);
    guest_start(&second);
    env_test_preempt(1);
    while ( vmri_domain_reset(p.b->domain) == -ERESTART )
        CHECK(++steps < 10000);
    env_test_preempt(0);
    CHECK_EQ(info_of(2, 0, &info), 0);
    CHECK_EQ(info.in_use, 0);
    CHECK_EQ(info.usage.n[VMRI_RES_PINNED], 0);
    CHECK_EQ(info_of(2, 1, &info), 0);
    CHECK_EQ(info.in_use, 0);
    CHECK_EQ(env_test_ports(p.b->domain), 0);
    memset(p.b->eq, 0, sizeof(p.b->eq));
    guest_start(p.b);
    CHECK_EQ(vmri_domain_reset(env_test_domain(5)), 0);
}

/* ---- list, dump ---- */

TEST(dev_list_in_order)
{
    static const struct {
        uint32_t domid, dev;
    } want[] = { { 1, 0 }, { 1, 3 }, { 2, 0 }, { 4, 63 } };
    struct vmri_ctl_info info = { .domid = 0 };
    unsigned int i, order[] = { 3, 1, 2, 0 };

    for ( i = 0; i < 4; i++ )
    {
        uint32_t dev = want[order[i]].dev;
        uint16_t lid = 0;

        env_test_domain(want[order[i]].domid);
        CHECK_EQ(dom0_attach(want[order[i]].domid, 2, &dev, &lid), 0);
    }
    for ( i = 0; i < 4; i++ )
    {
        CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), 0);
        CHECK_EQ(info.domid, want[i].domid);
        CHECK_EQ(info.dev_id, want[i].dev);
        CHECK_EQ(info.fabric, 2);
        CHECK_EQ(info.in_use, 0);
        CHECK(info.guid && info.lid);
        info.dev_id++;
    }
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), -ENOENT);
    info.domid = info.dev_id = ~0U;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), -ENOENT);
}

/* One by its number: there is nothing that could be taken for its not being there. */
TEST(dev_list_one)
{
    struct vmri_ctl_info info, one = { .which = VMRI_INFO_ONE };
    struct guest *a = guest_new(1), *b = guest_new(2);

    CHECK_EQ(info_of(2, b->dev, &info), 0);
    one.domid = 2;
    one.dev_id = b->dev;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &one, sizeof(one)), 0);
    CHECK_EQ(one.guid, info.guid);
    CHECK_EQ(one.which, VMRI_INFO_FROM);

    /* A list begins with the next one that it may name; one by its number is refused. */
    env_test_deny_over(a->domain);
    CHECK_EQ(info_of(1, a->dev, &info), 0);
    CHECK_EQ(info.domid, 2);
    one = (struct vmri_ctl_info){
        .domid = 1, .dev_id = a->dev, .which = VMRI_INFO_ONE,
    };
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &one, sizeof(one)), -EPERM);
    env_test_deny_over(b->domain);
    CHECK_EQ(info_of(2, b->dev, &info), -ENOENT);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &one, sizeof(one)), 0);
    env_test_deny_over(NULL);

    /* Neither the next one of the domain, nor that of the next. */
    one = (struct vmri_ctl_info){
        .domid = 1, .dev_id = a->dev + 1, .which = VMRI_INFO_ONE,
    };
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &one, sizeof(one)), -ENODEV);
    one.domid = 0;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &one, sizeof(one)), -ENODEV);
    one.domid = one.dev_id = ~0U;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &one, sizeof(one)), -ENODEV);
    one.which = VMRI_INFO_ONE + 1;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &one, sizeof(one)), -EINVAL);
}

TEST(dev_dump_shows_all)
{
    struct pair p;
    const char *text;
    char want[32];

    vmri_dump();
    CHECK(strstr(env_test_printed(), "0 devices"));
    p = busy_pair();
    vmri_dump();
    text = env_test_printed();
    CHECK(strstr(text, "2 devices"));
    snprintf(want, sizeof(want), "qp %#x RC RTS", p.qa->qpn);
    CHECK(strstr(text, want));
    CHECK(strstr(text, "no receive"));
    snprintf(want, sizeof(want), "mr %#x", p.mb.key);
    CHECK(strstr(text, want));
    CHECK(strstr(text, "d1 dev 0") && strstr(text, "d2 dev 0"));
    CHECK(strstr(text, "eq ") && strstr(text, "cq ") && strstr(text, "pd "));
}

/* Many objects do not flood the console. */
TEST(dev_dump_is_bounded)
{
    struct guest *g = guest_new(1);
    unsigned int i;

    for ( i = 0; i < 3000; i++ )
        guest_pd(g);
    vmri_dump();
    CHECK(strlen(env_test_printed()) < 20000);
}

/* ---- results that cannot be told ---- */

TEST(dev_attach_that_cannot_be_told)
{
    struct vmri_ctl_attach arg = { .domid = 1, .fabric = 3 };
    struct vmri_ctl_info info;

    env_test_domain(1);
    env_test_fail(ENV_FAIL_COPY_TO, 1);
    CHECK_EQ(attach(&arg), -EFAULT);
    CHECK_EQ(info_of(0, 0, &info), -ENOENT);
    CHECK_EQ(attach(&arg), 0);
    env_test_fail(ENV_FAIL_COPY_TO, 1);
    CHECK_EQ(info_of(0, 0, &info), -EFAULT);
    env_test_fail(ENV_FAIL_COPY_FROM, 1);
    CHECK_EQ(info_of(0, 0, &info), -EFAULT);
    env_test_fail(ENV_FAIL_COPY_FROM, 1);
    CHECK_EQ(attach(&arg), -EFAULT);
    env_test_fail(ENV_FAIL_COPY_FROM, 1);
    CHECK_EQ(dom0_detach(1, 0), -EFAULT);
}

static void use_device(void *data)
{
    struct guest *g = data;
    unsigned int i;

    guest_start(g);
    for ( i = 0; i < 100; i++ )
        guest_pd(g);
}

static void use_device_aside(void *data)
{
    env_test_aside(use_device, data);
}

/* It goes again also when its domain has been quick to use it. */
TEST(dev_attach_that_cannot_be_told_of_one_in_use)
{
    struct vmri_ctl_attach arg = { .domid = 1, .fabric = 3 };
    struct guest *g = guest_bare(1);
    struct vmri_ctl_info info;

    env_test_fail(ENV_FAIL_COPY_TO, 1);
    env_test_on_lock(LEVEL_CONTROL, 2, use_device_aside, g);
    CHECK_EQ(attach(&arg), -EFAULT);
    CHECK(env_test_aside_end());
    CHECK_EQ(info_of(0, 0, &info), -ENOENT);
    CHECK_EQ(dom0_detach(1, 0), -ENODEV);
    CHECK_EQ(attach(&arg), 0);
}

TEST(dev_creation_that_cannot_be_told)
{
    struct guest *g = guest_bare(1);
    struct vmri_dev_create arg = { .flags = 0 };
    struct guest_mr mr;
    unsigned int every, nth;

    CHECK_EQ(dom0_attach(1, 1, &g->dev, &g->lid), 0);
    env_test_fail(ENV_FAIL_COPY_TO, 1);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_create, &arg, sizeof(arg)), -EFAULT);
    guest_start(g);

    mr = mr_pages(g, 1 << 20, 0, LAYOUT_SCATTERED);
    for ( every = 0; every < 2; every++ )
        for ( nth = 1; nth < 4; nth++ )
        {
            long rc;

            env_test_preempt(every);
            env_test_fail(ENV_FAIL_COPY_TO, nth);
            rc = try_mr(g, &mr, g->pd, 1);
            env_test_preempt(0);
            if ( !rc )
            {
                CHECK(env_test_fail_left(ENV_FAIL_COPY_TO));
                env_test_fail(ENV_FAIL_COPY_TO, 0);
                CHECK_EQ(mr_deregister(&mr), 0);
                continue;
            }
            CHECK_EQ(rc, -EFAULT);
            CHECK_EQ(env_test_page_refs(g->domain, mr.gfn), 0);
        }
}
