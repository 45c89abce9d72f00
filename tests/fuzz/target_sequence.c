/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Target: sequences of commands.  Three guests make, use, change and destroy
 * objects of every kind, in any order, with numbers that mostly exist; dom0
 * attaches, detaches and limits; domains die in the middle and come back.
 */
#include "fuzz.h"

static const uint8_t types[] = {
    VMRI_QPT_RC, VMRI_QPT_UC, VMRI_QPT_UD, VMRI_QPT_XRC_INI, VMRI_QPT_XRC_TGT,
    VMRI_QPT_GSI, VMRI_QPT_SMI,
};

static struct actor *take_actor(struct input *in)
{
    return &actors[take_of(in, ACTORS)];
}

/* Objects of slot 0 that others use, so that sequences need not begin so. */
static void prepare(struct actor *a, uint32_t fabric)
{
    actor_attach(a, fabric);
    make_pd(a, 0);
    make_eq(a, 0, NULL);
    make_cq(a, 0, NULL);
    make_mr(a, 0, NULL);
}

static void make(struct actor *a, struct input *in)
{
    unsigned int slot = take_of(in, SLOTS);

    switch ( take_of(in, 11) )
    {
    case 0:
        make_pd(a, slot);
        break;
    case 1:
        make_xrcd(a, slot);
        break;
    case 2:
        make_eq(a, slot, in);
        break;
    case 3:
        make_cq(a, slot, in);
        break;
    case 4:
        make_srq(a, slot, take_of(in, 2), in);
        break;
    case 5:
        make_mr(a, slot, in);
        break;
    case 6:
        make_fast(a, slot, in);
        break;
    case 7:
        make_mw(a, slot, in);
        break;
    default:
        make_qp(a, slot, types[take_of(in, ARRAY_SIZE(types))], take_of(in, 8),
                in);
        break;
    }
}

/* Two queue pairs to RTS, or as far as it goes. */
static void connect(struct actor *a, struct actor *b, struct input *in)
{
    unsigned int slot = take_of(in, SLOTS), peer = take_of(in, SLOTS), state;

    for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTS; state++ )
    {
        move_qp(a, slot, state, b, peer, NULL);
        move_qp(b, peer, state, a, slot, NULL);
    }
}

static void query(struct actor *a, struct input *in)
{
    struct vmri_qp_modify qp = {
        .qpn = a->object[QP][take_of(in, SLOTS)].handle,
    };
    struct vmri_srq_query srq = {
        .handle = a->object[SRQ][take_of(in, SLOTS)].handle,
    };
    struct vmri_dev_attr attr;
    struct vmri_counters counters;

    actor_call(a, VMRI_OP_qp_query, &qp, sizeof(qp));
    actor_call(a, VMRI_OP_srq_query, &srq, sizeof(srq));
    actor_call(a, VMRI_OP_dev_query, &attr, sizeof(attr));
    actor_call(a, VMRI_OP_dev_counters, &counters, sizeof(counters));
}

static void modify_srq(struct actor *a, struct input *in)
{
    unsigned int slot = take_of(in, SLOTS);
    struct object *o = &a->object[SRQ][slot];
    uint32_t page = take_of(in, RING_PAGES);
    struct vmri_srq_modify arg = {
        .frames = actor_list(a, page, 1), .handle = o->handle,
        .mask = take_of(in, 4), .limit = take_of(in, 10), .offset = 256,
        .log2_entries = take_of(in, 5),
    };

    if ( !(arg.mask & VMRI_SRQA_RESIZE) )
        arg = (struct vmri_srq_modify){
            .handle = arg.handle, .mask = arg.mask, .limit = arg.limit,
        };
    spoil(in, &arg, sizeof(arg));
    actor_call(a, VMRI_OP_srq_modify, &arg, sizeof(arg));
}

static void change(struct actor *a, struct input *in)
{
    unsigned int slot = take_of(in, SLOTS);

    switch ( take_of(in, 5) )
    {
    case 0:
        modify_srq(a, in);
        break;
    case 1:
        resize_cq(a, slot, in);
        break;
    case 2:
        reregister(a, slot, in);
        break;
    case 3:
        call_group(a, in);
        break;
    case 4:
        call_service(a, in);
        break;
    }
}

/* A command that takes several calls is left at one of them. */
static void leave_half_done(struct actor *a, struct input *in)
{
    const uint32_t nr = 33 + take_of(in, LIST_MAX - 33);
    const bool ring = take_of(in, 2);
    struct vmri_mr_register mr = {
        .frames = actor_list(a, 0, nr), .length = nr * PAGE_SIZE,
        .pd = a->object[PD][0].handle, .access = VMRI_ACCESS_LOCAL_WRITE,
    };
    struct vmri_cq_create cq = {
        .frames = actor_list(a, 0, 33), .log2_entries = 11,
        .eq = a->object[EQ][0].handle,
    };
    unsigned int cmd = ring ? VMRI_OP_cq_create : VMRI_OP_mr_register;
    unsigned int calls = 1 + take_of(in, 3);
    uint32_t ticket = 0;

    env_test_preempt(1);
    for ( ; calls; calls--, cmd |= VMRI_CONTINUE )
        if ( actor_call_once(a, cmd, ring ? (void *)&cq : &mr,
                             ring ? sizeof(cq) : sizeof(mr),
                             &ticket) != -ERESTART )
            break;
    env_test_preempt(0);
}

static void control(struct input *in)
{
    struct vmri_ctl_limits limits = {
        .domid = take_of(in, ACTORS + 2), .mask = 1U << take_of(in, 16),
    };
    struct vmri_ctl_info info = { .domid = limits.domid };
    struct vmri_ctl_dump dump = {
        .domid = limits.domid, .kind = take_of(in, KINDS + 2),
        .index = take_of(in, SLOTS),
    };
    struct vmri_ctl_stats stats = { .domid = limits.domid };
    unsigned int i;

    for ( i = 0; i < VMRI_RES_MAX; i++ )
        limits.limit.n[i] = take_rare(in, 2) ? take_of(in, 16) : 1U << 30;
    spoil(in, &limits, sizeof(limits.domid) + sizeof(limits.mask));
    dom0_call(VMRI_OP_ctl_limits, &limits, sizeof(limits));
    dom0_call(VMRI_OP_ctl_list, &info, sizeof(info));
    dom0_call(VMRI_OP_ctl_dump, &dump, sizeof(dump));
    dom0_call(VMRI_OP_ctl_stats, &stats, sizeof(stats));
    actor_port(take_actor(in), in);
    vmri_dump();
}

/* What happens to devices and domains as wholes. */
static void end_something(struct actor *a, struct input *in)
{
    struct vmri_ctl_detach detach = {
        .domid = env_domid(a->domain), .dev_id = a->dev,
    };
    struct vmri_dev_create create = { .flags = 0 };
    unsigned int what = take_of(in, 6);
    uint8_t nothing = 0;

    switch ( what )
    {
    case 0:
        actor_call(a, VMRI_OP_dev_destroy, &nothing, sizeof(nothing));
        break;
    case 1:
        actor_call(a, VMRI_OP_dev_create, &create, sizeof(create));
        break;
    case 2:
        dom0_call(VMRI_OP_ctl_detach, &detach, sizeof(detach));
        break;
    case 3:
        actor_attach(a, take_of(in, 3));
        break;
    case 4:
        actor_kill(a);
        actor_attach(a, 1);
        break;
    case 5:
        while ( vmri_domain_reset(a->domain) == -ERESTART )
            env_test_returned();
        break;
    }
}

static void trouble(struct input *in)
{
    unsigned int what = take_of(in, ENV_FAIL_NR + 2);

    if ( what < ENV_FAIL_NR )
        env_test_fail(what, take_of(in, 8));
    else if ( what == ENV_FAIL_NR )
        env_test_preempt(take_of(in, 4));
    else
        env_test_advance(take_number(in) % 100000000000ULL);
}

static void step(struct input *in)
{
    struct actor *a = take_actor(in), *b = &actors[take_of(in, 2)];
    const unsigned int what = take_of(in, 16);
    unsigned int slot;

    switch ( what )
    {
    case 0:
    case 1:
        make(a, in);
        break;
    case 2:
        slot = take_of(in, SLOTS);
        destroy(a, take_of(in, KINDS), slot);
        break;
    case 3:
        connect(a, b, in);
        break;
    case 4:
        slot = take_of(in, SLOTS);
        move_qp(a, slot, take_of(in, 7), b, take_of(in, SLOTS), in);
        break;
    case 5:
    case 6:
        slot = take_of(in, SLOTS);
        post_send(a, slot, b, take_of(in, SLOTS), in);
        actor_call_value(a, what == 5 ? VMRI_OP_schedule : VMRI_OP_doorbell,
                         a->object[QP][slot].handle);
        break;
    case 7:
        slot = take_of(in, SLOTS);
        post_recv(a, slot, in);
        actor_call_value(a, VMRI_OP_schedule, a->object[QP][slot].handle);
        break;
    case 8:
        slot = take_of(in, SLOTS);
        post_srq(a, slot, in);
        actor_call_value(a, VMRI_OP_srq_schedule, a->object[SRQ][slot].handle);
        break;
    case 9:
        actor_serve(a);
        break;
    case 10:
        query(a, in);
        break;
    case 11:
        change(a, in);
        break;
    case 12:
        leave_half_done(a, in);
        break;
    case 13:
        control(in);
        break;
    case 14:
        end_something(a, in);
        break;
    case 15:
        trouble(in);
        break;
    }
}

/*
 * When a guest gives its device up, nothing is charged to it any more; nor when it
 * has none, once a detachment that a fault of dom0's had cut short is done again.
 */
static void check_nothing_used(struct actor *a)
{
    struct vmri_ctl_limits arg = { .domid = env_domid(a->domain) };
    struct vmri_ctl_detach detach = {
        .domid = env_domid(a->domain), .dev_id = a->dev,
    };
    uint8_t nothing = 0;
    unsigned int i;

    if ( actor_call(a, VMRI_OP_dev_destroy, &nothing, sizeof(nothing)) == -ENODEV )
        dom0_call(VMRI_OP_ctl_detach, &detach, sizeof(detach));
    if ( dom0_call(VMRI_OP_ctl_limits, &arg, sizeof(arg)) )
        env_panic("the limits of a domain cannot be read");
    for ( i = 0; i < VMRI_RES_NR; i++ )
        if ( i != VMRI_RES_DEV && i != VMRI_RES_BYTES && arg.usage.n[i] )
            env_panic("%llu of resource %u are left",
                      (unsigned long long)arg.usage.n[i], i);
}

void target_run(struct input *in)
{
    unsigned int i;

    prepare(&actors[0], 1);
    prepare(&actors[1], 1);
    actor_attach(&actors[2], 2);

    while ( in->left )
        step(in);

    stage_quiet();
    for ( i = 0; i < ACTORS; i++ )
        check_nothing_used(&actors[i]);
}
