/* SPDX-License-Identifier: GPL-2.0-only */
/* control.c, describe.c: limits, counters and objects, as dom0 sees them. */
#include "group.h"
#include "internal.h"

#undef memcpy
#undef memset

#define ALL ((1U << VMRI_RES_NR) - 1)

static long limits(unsigned int domid, uint32_t mask,
                   struct vmri_ctl_limits *arg)
{
    arg->domid = domid;
    arg->mask = mask;
    return dom0_call(VMRI_OP_ctl_limits, arg, sizeof(*arg));
}

static long set_limit(unsigned int domid, unsigned int what, uint64_t n)
{
    struct vmri_ctl_limits arg = { .mask = 0 };
    long rc;

    arg.limit.n[what] = n;
    rc = limits(domid, 1U << what, &arg);
    if ( !rc )
        CHECK_EQ(arg.limit.n[what], n);
    return rc;
}

static uint64_t used(unsigned int domid, unsigned int what)
{
    struct vmri_ctl_limits arg;

    CHECK_EQ(limits(domid, 0, &arg), 0);
    return arg.usage.n[what];
}

/* ---- limits ---- */

/* They are there before any device is, and as long as the domain. */
TEST(control_limits_are_the_domains)
{
    struct guest *g = guest_bare(1);
    struct vmri_ctl_limits was, now;
    unsigned int what;

    memset(&was, 0xff, sizeof(was));
    CHECK_EQ(limits(1, 0, &was), 0);
    CHECK(!*env_domain_state(g->domain));
    for ( what = 0; what < VMRI_RES_MAX; what++ )
    {
        CHECK_AT(!was.limit.n[what], what >= VMRI_RES_NR, "limit %u", what);
        CHECK_AT(was.usage.n[what], 0, "usage %u", what);
    }

    /* One is set, the others stay. */
    CHECK_EQ(set_limit(1, VMRI_RES_PD, 7), 0);
    CHECK_EQ(set_limit(1, VMRI_RES_BYTES, VMRI_LIMIT_MAX), 0);
    CHECK_EQ(dom0_attach(1, 3, &g->dev, &g->lid), 0);
    CHECK_EQ(dom0_detach(1, g->dev), 0);
    CHECK_EQ(limits(1, 0, &now), 0);
    for ( what = 0; what < VMRI_RES_NR; what++ )
        CHECK_AT(now.limit.n[what],
                 what == VMRI_RES_PD ? 7 : what == VMRI_RES_BYTES
                 ? VMRI_LIMIT_MAX : was.limit.n[what], "limit %u", what);

    /* The next domain of that number starts anew. */
    env_test_domain_dying(g->domain);
    CHECK_EQ(limits(1, 0, &now), -ESRCH);
    CHECK_EQ(vmri_domain_teardown(g->domain), 0);
    env_test_domain_reborn(g->domain);
    CHECK_EQ(limits(1, 0, &now), 0);
    CHECK_EQ(memcmp(&now.limit, &was.limit, sizeof(was.limit)), 0);
}

TEST(control_limits_refused)
{
    struct guest *g = guest_new(1);
    struct vmri_ctl_limits arg = { .domid = 1 }, now;
    unsigned int what;

    env_test_domain(2);
    memset(&arg.limit, 0, sizeof(arg.limit));
    CHECK_EQ(limits(1, ALL + 1, &arg), -EINVAL);
    CHECK_EQ(limits(1, 1U << 31, &arg), -EINVAL);
    arg.limit.n[VMRI_RES_QP] = VMRI_LIMIT_MAX + 1;
    CHECK_EQ(limits(1, ALL, &arg), -EINVAL);
    CHECK_EQ(limits(77777, 0, &arg), -ESRCH);
    arg.domid = 1;
    arg.mask = 0;
    CHECK_EQ(guest_call(g, VMRI_OP_ctl_limits, &arg, sizeof(arg)), -EPERM);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_limits, &arg, sizeof(arg) - 1), -EFAULT);
    env_test_fail(ENV_FAIL_COPY_TO, 1);
    CHECK_EQ(limits(1, 0, &arg), -EFAULT);
    env_test_fail(ENV_FAIL_ALLOC, 1);
    CHECK_EQ(set_limit(2, VMRI_RES_QP, 1), -ENOMEM);

    /* None of it has set anything. */
    CHECK_EQ(limits(1, 0, &now), 0);
    for ( what = 0; what < VMRI_RES_NR; what++ )
        CHECK_AT(now.limit.n[what] != 0, 1, "limit %u", what);
}

/* All devices of a domain together, and no other domain's. */
TEST(control_limits_hold_for_all_devices)
{
    struct guest *g = guest_new(1), *other = guest_new(2), second = *g;
    struct guest_cq *cq;

    second.dev = 1;
    second.lid = 0;
    CHECK_EQ(dom0_attach(1, 5, &second.dev, &second.lid), 0);
    guest_start(&second);
    CHECK_EQ(set_limit(1, VMRI_RES_CQ, 3), 0);
    guest_cq(g, 4);
    guest_cq(&second, 4);
    cq = guest_cq(g, 4);
    CHECK_EQ(used(1, VMRI_RES_CQ), 3);
    CHECK_EQ(used(1, VMRI_RES_DEV), 2);
    CHECK_EQ(try_cq(&second, 4, second.eq[0], &cq), -ENOSPC);
    CHECK_EQ(try_cq(other, 4, other->eq[0], &cq), 0);
    CHECK_EQ(dom0_detach(1, second.dev), 0);
    CHECK_EQ(used(1, VMRI_RES_CQ), 2);
    CHECK_EQ(used(1, VMRI_RES_DEV), 1);
    CHECK_EQ(try_cq(g, 4, g->eq[0], &cq), 0);
}

/* A limit may go up while a device exists, and its tables with it. */
TEST(control_limits_raised)
{
    struct guest *g = guest_new(1);
    struct vmri_object arg = { .handle = 0 };
    unsigned int n;

    CHECK_EQ(set_limit(1, VMRI_RES_PD, 1), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_pd_create, &arg, sizeof(arg)), -ENOSPC);
    CHECK_EQ(set_limit(1, VMRI_RES_PD, 20000), 0);
    for ( n = 1; n < 20000; n++ )
        CHECK_EQ(guest_call(g, VMRI_OP_pd_create, &arg, sizeof(arg)), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_pd_create, &arg, sizeof(arg)), -ENOSPC);
}

/* Lowered below what is used, all goes on but nothing is added. */
TEST(control_limits_lowered)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 1000);
    struct vmri_ctl_limits arg = { .mask = 0 };
    struct vmri_object pd = { .handle = 0 };
    struct vmri_dev_attr attr;
    struct guest_mr mr;
    uint32_t dev = VMRI_DEV_ANY;
    uint16_t lid = 0;

    CHECK_EQ(limits(1, ALL, &arg), 0);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(guest_call(p.a, VMRI_OP_pd_create, &pd, sizeof(pd)), -ENOSPC);
    mr = p.ma;
    CHECK(try_mr(p.a, &mr, p.a->pd, 0) < 0);
    CHECK_EQ(dom0_attach(1, GUEST_FABRIC, &dev, &lid), -ENOSPC);
    CHECK_EQ(guest_call(p.a, VMRI_OP_dev_query, &attr, sizeof(attr)), 0);
    CHECK_EQ(attr.max_qp | attr.max_pinned_pages | attr.max_mr_size, 0);
    CHECK_EQ(mr_deregister(&p.ma), 0);
    CHECK_EQ(dom0_detach(1, p.a->dev), 0);
    CHECK_EQ(used(1, VMRI_RES_BYTES), 0);
}

/* What a guest is told is what it can have, whatever the limit. */
TEST(control_limits_shown_to_the_guest)
{
    struct guest *g = guest_bare(1);
    struct vmri_ctl_limits arg;
    unsigned int what;

    for ( what = 0; what < VMRI_RES_NR; what++ )
        arg.limit.n[what] = VMRI_LIMIT_MAX;
    CHECK_EQ(limits(1, ALL, &arg), 0);
    CHECK_EQ(dom0_attach(1, GUEST_FABRIC, &g->dev, &g->lid), 0);
    guest_start(g);
    CHECK_EQ(g->attr.max_qp, (1 << 17) - 2);
    CHECK_EQ(g->attr.max_mr, (1 << 24) - 2);
    CHECK_EQ(g->attr.max_cq, (1 << 20) - 1);
    CHECK_EQ(g->attr.max_mr_size, 0xffffffffULL << VMRI_PAGE_SHIFT);
    CHECK_EQ(g->attr.max_pinned_pages, VMRI_LIMIT_MAX);
}

/* Devices and the memory of their tables count. */
TEST(control_limits_of_bytes)
{
    struct guest *g = guest_new(1);
    struct vmri_object pd = { .handle = 0 };
    uint64_t bytes = used(1, VMRI_RES_BYTES);
    struct vmri_ctl_info info = { .domid = 1 };
    uint32_t dev = VMRI_DEV_ANY;
    uint16_t lid = 0;
    unsigned int n = 0;

    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), 0);
    CHECK_EQ(info.usage.n[VMRI_RES_BYTES], bytes);
    CHECK(bytes <= env_stats.allocated);

    /* Room for objects, not for another page of slots. */
    CHECK_EQ(set_limit(1, VMRI_RES_BYTES, bytes + 8192), 0);
    CHECK_EQ(dom0_attach(1, 9, &dev, &lid), 0);
    CHECK_EQ(dom0_detach(1, dev), 0);
    CHECK_EQ(set_limit(1, VMRI_RES_BYTES, bytes + 4095), 0);
    CHECK_EQ(dom0_attach(1, 9, &dev, &lid), -ENOMEM);
    while ( !guest_call(g, VMRI_OP_pd_create, &pd, sizeof(pd)) )
        n++;
    CHECK(n > 100 && n < VMRI_LEAF_SLOTS);
    CHECK(used(1, VMRI_RES_BYTES) <= bytes + 4095);
}

/* ---- counters ---- */

static void stats(struct guest *g, struct vmri_ctl_stats *arg)
{
    *arg = (struct vmri_ctl_stats){
        .domid = env_domid(g->domain), .dev_id = g->dev,
    };
    CHECK_EQ(dom0_call(VMRI_OP_ctl_stats, arg, sizeof(*arg)), 0);
}

static bool counts_nothing(const struct vmri_qp_counters *c)
{
    return all_bytes((const uint8_t *)c, sizeof(*c), 0);
}

TEST(control_stats_by_type)
{
    static const struct guest_qp_opts ud = { .type = VMRI_QPT_UD };
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 1000);
    struct guest_qp *ua = guest_qp(p.a, &ud), *ub = guest_qp(p.b, &ud);
    struct vmri_sge sge = mr_sge(&p.mb, 0, 4096);
    struct vmri_counters own;
    struct vmri_ctl_stats s;
    unsigned int type;

    qp_connect(ua, ub, NULL);
    pair_send(&p, &wr);
    wr = pair_wr(&p, VMRI_WR_RDMA_READ, 2, 0, 0, 300);
    pair_send(&p, &wr);
    wr.rkey++;
    pair_send(&p, &wr);
    wr = pair_wr(&p, VMRI_WR_SEND, 3, 0, 0, 70);
    pair_send(&p, &wr);
    wr.to = ub;
    qp_recv(ub, 9, &sge, 1);
    qp_send(ua, &wr);

    stats(p.a, &s);
    CHECK_EQ(s.type[VMRI_STAT_RC].tx_msgs, 2);
    CHECK_EQ(s.type[VMRI_STAT_RC].tx_bytes, 1000);
    CHECK_EQ(s.type[VMRI_STAT_RC].rx_bytes, 300);
    CHECK_EQ(s.type[VMRI_STAT_RC].errors, 1);
    CHECK_EQ(s.type[VMRI_STAT_RC].flushed, 1);
    CHECK_EQ(s.type[VMRI_STAT_UD].tx_msgs, 1);
    CHECK_EQ(s.type[VMRI_STAT_UD].tx_bytes, 70);
    for ( type = 0; type < VMRI_STAT_MAX; type++ )
        CHECK_AT(counts_nothing(&s.type[type]),
                 type != VMRI_STAT_RC && type != VMRI_STAT_UD, "type %u", type);

    /* The device's are the sums, and the guest sees the same. */
    CHECK_EQ(s.counters.tx_msgs, 3);
    CHECK_EQ(s.counters.tx_bytes, 1070);
    CHECK_EQ(s.counters.rx_bytes, 300);
    CHECK_EQ(s.counters.errors, 1);
    CHECK_EQ(s.counters.flushed, 1);
    guest_counters(p.a, &own);
    CHECK_EQ(own.hypercalls, s.counters.hypercalls + 1);
    own.hypercalls = s.counters.hypercalls;
    CHECK_EQ(memcmp(&own, &s.counters, sizeof(own)), 0);

    stats(p.b, &s);
    CHECK_EQ(s.type[VMRI_STAT_RC].rx_msgs, 2);
    CHECK_EQ(s.type[VMRI_STAT_RC].tx_bytes, 300);
    CHECK_EQ(s.type[VMRI_STAT_UD].rx_msgs, 1);
    CHECK_EQ(s.type[VMRI_STAT_UD].rx_bytes, 70);
    CHECK_EQ(s.counters.rx_bytes, 1070);
}

TEST(control_stats_of_every_type)
{
    static const struct {
        uint8_t type, stat;
    } map[] = {
        { VMRI_QPT_SMI, VMRI_STAT_SMI }, { VMRI_QPT_GSI, VMRI_STAT_GSI },
        { VMRI_QPT_RC, VMRI_STAT_RC }, { VMRI_QPT_UC, VMRI_STAT_UC },
        { VMRI_QPT_UD, VMRI_STAT_UD },
        { VMRI_QPT_XRC_INI, VMRI_STAT_XRC_INI },
        { VMRI_QPT_XRC_TGT, VMRI_STAT_XRC_TGT },
    };
    static struct vmri_dev dev;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(map); i++ )
        CHECK_AT(vmri_type_counters(&dev, map[i].type) - dev.types, map[i].stat,
                 "type %u", map[i].type);
}

TEST(control_stats_sum_up_all_types)
{
    static struct vmri_dev dev;
    const uint64_t all = (1U << VMRI_STAT_NR) - 1;
    struct vmri_counters c;
    unsigned int type;

    for ( type = 0; type < VMRI_STAT_NR; type++ )
    {
        const uint64_t n = 1U << type;

        dev.types[type] = (struct vmri_qp_counters){ n, n, n, n, n, n, n, n };
    }
    vmri_counters_get(&dev, &c);
    CHECK_EQ(c.tx_msgs, all);
    CHECK_EQ(c.tx_bytes, all);
    CHECK_EQ(c.rx_msgs, all);
    CHECK_EQ(c.rx_bytes, all);
    CHECK_EQ(c.errors, all);
    CHECK_EQ(c.flushed, all);
    CHECK_EQ(c.rnr, all);
    CHECK_EQ(c.retries, all);
    CHECK_EQ(c.completions, 0);
}

/* ---- objects ---- */

static long dump(struct guest *g, uint32_t kind, uint32_t *index,
                 struct vmri_ctl_dump *arg)
{
    long rc;

    *arg = (struct vmri_ctl_dump){
        .domid = env_domid(g->domain), .dev_id = g->dev,
        .kind = kind, .index = *index,
    };
    memset(&arg->handle, 0xee, sizeof(*arg) - offsetof(typeof(*arg), handle));
    rc = dom0_call(VMRI_OP_ctl_dump, arg, sizeof(*arg));
    *index = arg->index;
    return rc;
}

/* The one object of a kind with this handle. */
static struct vmri_ctl_dump find(struct guest *g, uint32_t kind,
                                 uint32_t handle)
{
    struct vmri_ctl_dump arg, found = { .domid = ~0U };
    uint32_t index = 0;
    long rc;

    while ( (rc = dump(g, kind, &index, &arg)) == 0 )
        if ( arg.handle == handle )
        {
            CHECK(found.domid);
            found = arg;
        }
    CHECK_EQ(rc, -ENOENT);
    CHECK(found.domid != ~0U);
    return found;
}

TEST(control_dump_tells_of_objects)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 10);
    struct vmri_ctl_dump d;

    pair_send(&p, &wr);             /* waits for a receive */
    qp_post_send(p.qa, &wr);
    d = find(p.a, VMRI_RES_QP, p.qa->qpn);
    CHECK_EQ(d.u.qp.type, VMRI_QPT_RC);
    CHECK_EQ(d.u.qp.state, VMRI_QPS_RTS);
    CHECK_EQ(d.u.qp.parked, VMRI_PARKED_RECEIVE);
    CHECK_EQ(d.u.qp.kernel, 0);
    CHECK_EQ(d.u.qp.pd, p.a->pd);
    CHECK_EQ(d.u.qp.send_cq, p.qa->scq->handle);
    CHECK_EQ(d.u.qp.recv_cq, p.qa->rcq->handle);
    CHECK_EQ(d.u.qp.srq, 0);
    CHECK_EQ(d.u.qp.sq_entries, 16);
    CHECK_EQ(d.u.qp.sq_posted, 2);
    CHECK_EQ(d.u.qp.rq_entries, 16);
    CHECK_EQ(d.u.qp.rq_posted, 0);
    CHECK_EQ(d.u.qp.peer_qpn, p.qb->qpn);
    CHECK_EQ(d.u.qp.peer_lid, p.b->lid);

    d = find(p.a, VMRI_RES_PD, p.a->pd);
    CHECK_EQ(d.users, 2);
    CHECK(all_bytes((uint8_t *)&d.u, sizeof(d.u), 0));

    d = find(p.a, VMRI_RES_EQ, p.a->eq[0]->handle);
    CHECK_EQ(d.u.eq.port, p.a->eq[0]->port);
    CHECK_EQ(d.u.eq.entries, 64);
    CHECK_EQ(d.u.eq.overflow, 0);

    cq_arm(p.qb->rcq, VMRI_ARM_NEXT);
    d = find(p.b, VMRI_RES_CQ, p.qb->rcq->handle);
    CHECK_EQ(d.u.cq.arm, VMRI_ARM_NEXT);
    pair_recv(&p, 7, 0, 100);
    world_settle();
    d = find(p.b, VMRI_RES_CQ, p.qb->rcq->handle);
    CHECK_EQ(d.u.cq.eq, p.b->eq[0]->handle);
    CHECK_EQ(d.u.cq.entries, 64);
    CHECK_EQ(d.u.cq.unconsumed, 1);
    CHECK_EQ(d.u.cq.arm, VMRI_ARM_NONE);
    CHECK_EQ(d.u.cq.overflow, 0);

    d = find(p.b, VMRI_RES_MR, p.mb.key);
    CHECK_EQ(d.u.mr.length, PAIR_BYTES);
    CHECK_EQ(d.u.mr.pd, p.b->pd);
    CHECK_EQ(d.u.mr.pages, 257);
    CHECK_EQ(d.u.mr.access, VMRI_ACCESS_LOCAL_WRITE |
             VMRI_ACCESS_REMOTE_WRITE | VMRI_ACCESS_REMOTE_READ);
}

TEST(control_dump_tells_of_shared_queues_and_groups)
{
    struct guest *g = guest_new(1);
    struct guest_srq_opts opts = { .limit = 3, .xrcd = guest_xrcd(g) };
    struct vmri_mcg group = group_new_arg(1, 0);
    struct guest_qp_opts ud = { .type = VMRI_QPT_UD };
    struct guest_srq *srq = guest_srq(g, &opts);
    struct vmri_ctl_dump d;
    uint32_t index = 0;

    d = find(g, VMRI_RES_XRCD, opts.xrcd);
    CHECK_EQ(d.users, 1);
    d = find(g, VMRI_RES_SRQ, srq->handle);
    CHECK_EQ(d.u.srq.pd, g->pd);
    CHECK_EQ(d.u.srq.xrcd, opts.xrcd);
    CHECK_EQ(d.u.srq.cq, srq->cq->handle);
    CHECK_EQ(d.u.srq.entries, 16);
    CHECK_EQ(d.u.srq.posted, 0);
    CHECK_EQ(d.u.srq.limit, 3);
    CHECK_EQ(d.u.srq.waiting + d.u.srq.dead, 0);

    ud.srq = guest_srq(g, NULL);
    d = find(g, VMRI_RES_QP, guest_qp(g, &ud)->qpn);
    CHECK_EQ(d.u.qp.srq, ud.srq->handle);
    CHECK_EQ(d.u.qp.rq_entries, 0);

    CHECK_EQ(dump(g, VMRI_RES_MCG, &index, &d), -ENOENT);
    CHECK_EQ(group_join(g, &group), 0);
    ud.srq = NULL;
    CHECK_EQ(group_attach(guest_qp(g, &ud), 1, group.mlid), 0);
    CHECK_EQ(group_attach(guest_qp(g, &ud), 2, 0xc123), 0);
    d = find(g, VMRI_RES_MCG, group.mlid);
    CHECK_EQ(memcmp(d.u.mcg.mgid, group.mgid, 16), 0);
    CHECK_EQ(d.users, 1);
    CHECK_EQ(d.u.mcg.joined, 1);
    CHECK_EQ(d.u.mcg.qps, 1);
    d = find(g, VMRI_RES_MCG, 0xc123);
    CHECK_EQ(d.u.mcg.joined, 0);
    vmri_dump();
    CHECK(strstr(env_test_printed(), "limit 3"));
    CHECK(strstr(env_test_printed(), "mcg 0xc123 users 1 qps 1\n"));
}

TEST(control_stats_and_dump_refused)
{
    static const uint32_t cmds[] = { VMRI_OP_ctl_stats, VMRI_OP_ctl_dump };
    struct guest *g = guest_new(1);
    union {
        struct {
            uint32_t domid, dev_id, kind, index;
        };
        struct vmri_ctl_stats stats;
        struct vmri_ctl_dump dump;
    } arg;
    unsigned int i;

    env_test_domain(2);
    for ( i = 0; i < ARRAY_SIZE(cmds); i++ )
    {
        memset(&arg, 0, sizeof(arg));
        arg.domid = 1;
        CHECK_EQ(dom0_call(cmds[i], &arg, sizeof(arg)), 0);
        arg.index = 0;
        CHECK_EQ(guest_call(g, cmds[i], &arg, sizeof(arg)), -EPERM);
        env_test_deny(true);
        CHECK_EQ(dom0_call(cmds[i], &arg, sizeof(arg)), -EPERM);
        env_test_deny(false);
        CHECK_EQ(dom0_call(cmds[i], &arg, 7), -EFAULT);
        env_test_fail(ENV_FAIL_COPY_TO, 1);
        CHECK_EQ(dom0_call(cmds[i], &arg, sizeof(arg)), -EFAULT);
        arg.dev_id = 1;
        CHECK_EQ(dom0_call(cmds[i], &arg, sizeof(arg)), -ENODEV);
        arg.dev_id = ~0U;
        CHECK_EQ(dom0_call(cmds[i], &arg, sizeof(arg)), -ENODEV);
        arg.dev_id = 0;
        arg.domid = 2;
        CHECK_EQ(dom0_call(cmds[i], &arg, sizeof(arg)), -ENODEV);
        arg.domid = 77777;
        CHECK_EQ(dom0_call(cmds[i], &arg, sizeof(arg)), -ESRCH);
    }

    for ( i = VMRI_RES_MCG_QP; i < VMRI_RES_MAX; i++ )
    {
        arg.domid = 1;
        arg.kind = i;
        CHECK_EQ(dom0_call(cmds[1], &arg, sizeof(arg)), -EINVAL);
    }
    arg.kind = VMRI_RES_PD;
    arg.index = ~0U;
    CHECK_EQ(dom0_call(cmds[1], &arg, sizeof(arg)), -ENOENT);
}
