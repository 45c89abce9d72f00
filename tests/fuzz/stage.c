/* SPDX-License-Identifier: GPL-2.0-only */
/* The machine for one input: guests, their memory, their calls. */
#include "fuzz.h"

#define CALLS           10000   /* of one command; more would be without end */
#define SECRET          0x5e
/* Pages: farther than changes to a guest's list of frames reach. */
#define SECRET_DISTANCE 2048

struct actor actors[ACTORS];

struct user_memory user;
/* dom0's argument, which it does not change meanwhile. */
static uint8_t dom0_arg[sizeof(user.arg)];

static unsigned int next_list;

/* ---- calls ---- */

static bool is_result(unsigned int cmd, long rc)
{
    static const int errnos[] = {
        EPERM, ENOENT, ESRCH, ENOMEM, EFAULT, EBUSY, EEXIST, ENODEV, EINVAL,
        ENOSPC, ENOSYS, EOPNOTSUPP, ERESTART, EINPROGRESS, EHOSTUNREACH,
        EAGAIN,
    };
    unsigned int i;

    if ( rc >= 0 )
        return rc <= (cmd == VMRI_OP_ctl_uplink_done ? VMRI_UPLINK_RESULTS : 1);
    for ( i = 0; i < ARRAY_SIZE(errnos); i++ )
        if ( rc == -errnos[i] )
            return true;
    return false;
}

static long dispatch(struct domain *d, unsigned int cmd, unsigned int *dev,
                     uint64_t arg)
{
    struct domain *before = env_test_enter(d);
    long rc;

    env_test_expose(&user, sizeof(user));
    env_test_expose(dom0_arg, sizeof(dom0_arg));
    rc = vmri_dispatch(cmd, dev, arg);
    env_test_hide();
    env_test_hide();
    env_test_returned();
    env_test_enter(before);

    if ( !is_result(cmd & ~VMRI_CONTINUE, rc) )
        env_panic("command %#x gives %ld", cmd, rc);
    return rc;
}

static long call_step(struct domain *d, uint32_t dev, unsigned int cmd,
                      void *arg, size_t size, uint32_t *ticket)
{
    uint8_t *at = d == env_test_domain(0) ? dom0_arg : user.arg;
    uint32_t id = dev;
    long rc;

    if ( cmd & VMRI_CONTINUE )
        id |= *ticket << VMRI_TICKET_SHIFT;
    memcpy(at, arg, size);
    rc = dispatch(d, cmd, &id, (uintptr_t)at);
    memcpy(arg, at, size);
    *ticket = id >> VMRI_TICKET_SHIFT;

    return rc;
}

static long call(struct domain *d, uint32_t dev, unsigned int cmd, void *arg,
                 size_t size)
{
    uint32_t ticket = 0;
    unsigned int calls = 0;
    long rc = call_step(d, dev, cmd, arg, size, &ticket);

    while ( rc == -ERESTART )
    {
        if ( ++calls == CALLS )
            env_panic("command %#x never ends", cmd);
        rc = call_step(d, dev, cmd | VMRI_CONTINUE, arg, size, &ticket);
    }
    return rc;
}

long actor_call(struct actor *a, unsigned int cmd, void *arg, size_t size)
{
    return a->alive ? call(a->domain, a->dev, cmd, arg, size) : -ESRCH;
}

long actor_call_once(struct actor *a, unsigned int cmd, void *arg, size_t size,
                     uint32_t *ticket)
{
    return a->alive ? call_step(a->domain, a->dev, cmd, arg, size, ticket)
                    : -ESRCH;
}

long actor_call_value(struct actor *a, unsigned int cmd, uint64_t value)
{
    uint32_t dev = a->dev;

    return a->alive ? dispatch(a->domain, cmd, &dev, value) : -ESRCH;
}

long dom0_call(unsigned int cmd, void *arg, size_t size)
{
    return call(env_test_domain(0), 0, cmd, arg, size);
}

struct vmri_frames actor_list(struct actor *a, uint32_t page, uint32_t nr)
{
    uint64_t *list = user.list[next_list++ % USER_LISTS];
    uint32_t i;

    for ( i = 0; i < LIST_MAX; i++ )
        list[i] = a->gfn + (page + i) % PAGES;
    return (struct vmri_frames){ .gfns = (uintptr_t)list, .nr = nr };
}

/* ---- guests ---- */

static void give_memory(struct actor *a)
{
    a->gfn = env_test_pages(a->domain, RING_PAGES + RUN_PAGES, false);
    env_test_pages(a->domain, SCATTERED_PAGES, true);
    env_test_pages(a->domain, SECRET_DISTANCE, false);
    a->mem = env_test_mem(a->domain, a->gfn);
    a->secret = env_test_mem(a->domain,
                             env_test_pages(a->domain, SECRET_PAGES, false));
    memset(a->secret, SECRET, SECRET_PAGES * PAGE_SIZE);
}

/* A guest whose kernel's queues may name any page gives its secrets away. */
static void check_secrets(const struct actor *a)
{
    const uint8_t *p = a->secret;

    if ( !a->trusts && (*p != SECRET ||
                        memcmp(p, p + 1, SECRET_PAGES * PAGE_SIZE - 1)) )
        env_panic("a page was written that no one may know");
}

void actor_attach(struct actor *a, uint32_t fabric)
{
    struct vmri_ctl_attach attach = {
        .domid = env_domid(a->domain), .dev_id = a->dev, .fabric = fabric,
        .uplink = a->uplink,
    };
    struct vmri_dev_create create = { .flags = VMRI_DEVF_DOORBELL };

    if ( !dom0_call(VMRI_OP_ctl_attach, &attach, sizeof(attach)) )
        a->lid = attach.lid;
    actor_call(a, VMRI_OP_dev_create, &create, sizeof(create));
}

void actor_port(struct actor *a, struct input *in)
{
    struct vmri_ctl_port arg = {
        .domid = env_domid(a->domain), .dev_id = a->dev,
        .mask = take_of(in, 64), .state = take_rare(in, 4) ? VMRI_PORT_DOWN
                                                       : VMRI_PORT_ACTIVE,
        .lid = take_of(in, 6), .pkeys = { take_rare(in, 4) ? 0x7fff : 0xffff },
        .sm_lid = take_of(in, 4), .gid_prefix = take8(in),
    };

    if ( !dom0_call(VMRI_OP_ctl_port, &arg, sizeof(arg)) )
        a->lid = arg.lid;
}

static void teardown(struct domain *d)
{
    unsigned int calls = 0;

    env_test_domain_dying(d);
    while ( vmri_domain_teardown(d) == -ERESTART )
    {
        env_test_returned();
        if ( ++calls == CALLS )
            env_panic("a teardown never ends");
    }
    env_test_returned();
}

void actor_kill(struct actor *a)
{
    teardown(a->domain);
    if ( env_test_ports(a->domain) )
        env_panic("a domain has ended with its ports open");
    env_test_domain_reborn(a->domain);
    memset(a->object, 0, sizeof(a->object));
}

static void serve_eq(struct actor *a, struct object *eq)
{
    const uint32_t size = 1U << eq->log2_entries;
    struct vmri_eq_hdr *hdr = (void *)(a->mem + eq->page * PAGE_SIZE);
    struct vmri_event *entry = (void *)((uint8_t *)hdr + VMRI_RING_OFFSET);
    uint32_t n;

    for ( n = 0; n < size && eq->cons != env_load(&hdr->prod); n++ )
    {
        struct vmri_event ev = entry[eq->cons++ & (size - 1)];

        env_store(&hdr->cons, eq->cons);
        if ( ev.type == VMRI_EVENT_QUEUE_READY )
            actor_call_value(a, VMRI_OP_schedule, ev.id);
    }
    if ( env_load(&hdr->overflow) )
    {
        struct vmri_object arg = { .handle = eq->handle };

        actor_call(a, VMRI_OP_eq_poll, &arg, sizeof(arg));
    }
}

void actor_serve(struct actor *a)
{
    unsigned int i;

    for ( i = 0; i < SLOTS; i++ )
        if ( a->object[EQ][i].handle && a->object[EQ][i].log2_entries <= 6 )
            serve_eq(a, &a->object[EQ][i]);
}

/* ---- begin and end ---- */

void stage_begin(void)
{
    unsigned int i;

    env_test_begin();
    vmri_init();
    next_list = 0;

    for ( i = 0; i < ACTORS; i++ )
    {
        struct actor *a = &actors[i];

        *a = (struct actor){ .domain = env_test_domain(i + 1), .alive = true };
        give_memory(a);
    }
}

void stage_quiet(void)
{
    unsigned int i;

    race_off();
    env_test_preempt(0);
    env_test_deny(false);
    for ( i = 0; i < ENV_FAIL_NR; i++ )
        env_test_fail(i, 0);
}

/* They outlive the domains that had devices there. */
static void delete_fabrics(void)
{
    struct vmri_ctl_fabric f = { .fabric = 0 };

    while ( !dom0_call(VMRI_OP_ctl_fabric_list, &f, sizeof(f)) )
    {
        if ( f.created &&
             dom0_call(VMRI_OP_ctl_fabric_delete, &f, sizeof(f)) )
            env_panic("a fabric without devices cannot be deleted");
        f.fabric++;
    }
}

void stage_end(void)
{
    unsigned int i;

    stage_quiet();
    for ( i = 0; i < ENV_DOMAINS; i++ )
        teardown(env_test_domain(i));
    delete_fabrics();
    for ( i = 0; i < ACTORS; i++ )
        check_secrets(&actors[i]);
    env_test_end();
}
