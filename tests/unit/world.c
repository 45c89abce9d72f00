/* SPDX-License-Identifier: GPL-2.0-only */
/* The fake machine around the guests: begin, end, dom0, calls, events. */
#include "agent.h"
#include "guest.h"
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

#undef memcpy
#undef memset

#define MAX_ROUNDS  100000

static struct guest *guests[ENV_DOMAINS];

void world_begin(void)
{
    memset(guests, 0, sizeof(guests));
    env_test_begin();
    vmri_init();
}

/* Fabrics are nobody's. */
static void delete_fabrics(void)
{
    struct vmri_ctl_fabric f = { .fabric = 0 };

    while ( !dom0_call(VMRI_OP_ctl_fabric_list, &f, sizeof(f)) )
    {
        if ( f.created )
            CHECK_EQ(dom0_call(VMRI_OP_ctl_fabric_delete, &f, sizeof(f)), 0);
        f.fabric++;
    }
}

void world_end(void)
{
    unsigned int i;

    env_test_aside_end();
    env_test_preempt(0);
    for ( i = 0; i < ENV_DOMAINS; i++ )
    {
        struct domain *d = env_test_domain(i);

        env_test_domain_dying(d);
        while ( vmri_domain_teardown(d) == -ERESTART )
            env_test_returned();
        env_test_returned();
    }
    env_test_deny(false);
    delete_fabrics();
    env_test_end();
}

/* ---- calls ---- */

__thread uint32_t guest_ticket;

long guest_call_once(struct guest *g, unsigned int cmd, void *arg, size_t bytes)
{
    uint32_t dev = g->dev;
    struct domain *before = env_test_enter(g->domain);
    long rc;

    if ( cmd & VMRI_CONTINUE )
        dev |= guest_ticket << VMRI_TICKET_SHIFT;
    env_test_expose(arg, bytes);
    rc = vmri_dispatch(cmd, &dev, (uintptr_t)arg);
    env_test_hide();
    env_test_returned();
    env_test_enter(before);
    guest_ticket = dev >> VMRI_TICKET_SHIFT;

    return rc;
}

long guest_call(struct guest *g, unsigned int cmd, void *arg, size_t bytes)
{
    const uint32_t ticket = guest_ticket;
    long rc = guest_call_once(g, cmd, arg, bytes);

    while ( rc == -ERESTART )
        rc = guest_call_once(g, cmd | VMRI_CONTINUE, arg, bytes);
    guest_ticket = ticket;
    return rc;
}

long agent_call(void *guest, unsigned int cmd, void *arg, size_t size)
{
    return guest_call(guest, cmd, arg, size);
}

static long call_value(struct guest *g, unsigned int cmd, uint64_t value)
{
    struct domain *before = env_test_enter(g->domain);
    uint32_t dev = g->dev;
    long rc = vmri_dispatch(cmd, &dev, value);

    env_test_returned();
    env_test_enter(before);

    return rc;
}

long guest_schedule(struct guest *g, uint32_t qpn)
{
    return call_value(g, VMRI_OP_schedule, qpn);
}

long guest_srq_schedule(struct guest *g, uint32_t handle)
{
    return call_value(g, VMRI_OP_srq_schedule, handle);
}

long dom0_call(unsigned int cmd, void *arg, size_t bytes)
{
    struct guest dom0 = { .domain = env_test_domain(0) };

    return guest_call(&dom0, cmd, arg, bytes);
}

long dom0_attach(unsigned int domid, uint32_t fabric, uint32_t *dev,
                 uint16_t *lid)
{
    struct vmri_ctl_attach arg = {
        .domid = domid, .dev_id = *dev, .fabric = fabric, .lid = *lid,
    };
    long rc = dom0_call(VMRI_OP_ctl_attach, &arg, sizeof(arg));

    *dev = arg.dev_id;
    *lid = arg.lid;
    return rc;
}

long dom0_detach(unsigned int domid, uint32_t dev)
{
    struct vmri_ctl_detach arg = { .domid = domid, .dev_id = dev };

    return dom0_call(VMRI_OP_ctl_detach, &arg, sizeof(arg));
}

/* ---- guests ---- */

struct guest *guest_bare(unsigned int domid)
{
    struct guest *g = calloc(1, sizeof(*g));

    g->domain = env_test_domain(domid);
    g->next_iova = (0x7f00ULL + domid) << 32;
    guests[domid] = g;
    return g;
}

void guest_start(struct guest *g)
{
    struct vmri_dev_create arg = { .flags = VMRI_DEVF_DOORBELL };

    CHECK_EQ(guest_call(g, VMRI_OP_dev_create, &arg, sizeof(arg)), 0);
    g->attr = arg.attr;
    g->lid = arg.attr.lid;
    g->pd = guest_pd(g);
    g->eq[0] = guest_eq(g, 6);
}

struct guest *guest_new(unsigned int domid)
{
    struct guest *g = guest_bare(domid);

    CHECK_EQ(dom0_attach(domid, GUEST_FABRIC, &g->dev, &g->lid), 0);
    guest_start(g);
    return g;
}

void guest_counters(struct guest *g, struct vmri_counters *c)
{
    CHECK_EQ(guest_call(g, VMRI_OP_dev_counters, c, sizeof(*c)), 0);
}

/* ---- events ---- */

/* True if there was one. */
static bool serve_event(struct guest *g, struct guest_eq *eq)
{
    struct vmri_event ev;

    if ( !eq_poll(eq, &ev) )
        return false;

    CHECK(ev.type < 32);
    g->events[ev.type]++;
    if ( ev.type == VMRI_EVENT_QUEUE_READY )
        while ( guest_schedule(g, ev.id) == VMRI_SCHEDULE_MORE )
            ;
    return true;
}

bool guest_serve(struct guest *g)
{
    bool any = false;
    unsigned int i;

    for ( i = 0; i < GUEST_EQS; i++ )
        while ( g->eq[i] && serve_event(g, g->eq[i]) )
            any = true;
    return any;
}

void world_settle(void)
{
    unsigned int i, rounds = 0;
    bool any;

    do {
        any = false;
        for ( i = 0; i < ENV_DOMAINS; i++ )
            if ( guests[i] && !env_domain_dying(guests[i]->domain) )
                any |= guest_serve(guests[i]);
        if ( ++rounds == MAX_ROUNDS )
            test_failed(__FILE__, __LINE__, "events never end");
    } while ( any );
}

void world_pass(uint64_t ns, uint64_t step)
{
    while ( ns )
    {
        uint64_t n = ns < step ? ns : step;

        env_test_advance(n);
        world_settle();
        ns -= n;
    }
}
