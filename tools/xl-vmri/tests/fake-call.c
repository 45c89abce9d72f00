/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libxencall with VMRI behind it, as include/vmri/control.h describes it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xencall.h>

#include "fake.h"

struct fake_call fake_call;

void fake_call_reset(void)
{
    memset(&fake_call, 0, sizeof(fake_call));
    fake_call.magic = VMRI_MAGIC;
    fake_call.abi_version = VMRI_ABI_VERSION;
    fake_call.hidden_domid = UINT32_MAX;
}

xencall_handle *xencall_open(struct xentoollog_logger *logger, unsigned flags)
{
    if (fake_call.open_errno) {
        errno = fake_call.open_errno;
        return NULL;
    }
    fake_call.handles++;
    return (xencall_handle *)&fake_call;
}

int xencall_close(xencall_handle *handle)
{
    fake_call.handles--;
    return 0;
}

void *xencall_alloc_buffer(xencall_handle *handle, size_t size)
{
    fake_call.buffers++;
    return malloc(size);
}

void xencall_free_buffer(xencall_handle *handle, void *p)
{
    fake_call.buffers--;
    free(p);
}

/* The index of the first device at or after (domid, dev_id). */
static unsigned int position(uint32_t domid, uint32_t dev_id)
{
    unsigned int i;

    for (i = 0; i < fake_call.num_devices; i++)
        if (fake_call.devices[i].domid > domid ||
            (fake_call.devices[i].domid == domid &&
             fake_call.devices[i].dev_id >= dev_id))
            break;
    return i;
}

static bool exists(unsigned int i, uint32_t domid, uint32_t dev_id)
{
    return i < fake_call.num_devices && fake_call.devices[i].domid == domid &&
           fake_call.devices[i].dev_id == dev_id;
}

static void remove_at(unsigned int i)
{
    fake_call.num_devices--;
    memmove(&fake_call.devices[i], &fake_call.devices[i + 1],
            (fake_call.num_devices - i) * sizeof(fake_call.devices[0]));
}

void fake_call_destroy_domain(uint32_t domid)
{
    unsigned int i = position(domid, 0);

    while (i < fake_call.num_devices && fake_call.devices[i].domid == domid)
        remove_at(i);
}

static bool lid_taken(uint32_t fabric, uint16_t lid)
{
    unsigned int i;

    for (i = 0; i < fake_call.num_devices; i++)
        if (fake_call.devices[i].fabric == fabric &&
            fake_call.devices[i].lid == lid)
            return true;
    return false;
}

static unsigned int fabric_position(uint32_t id)
{
    unsigned int i;

    for (i = 0; i < fake_call.num_fabrics; i++)
        if (fake_call.fabrics[i].fabric >= id)
            break;
    return i;
}

static bool fabric_exists(uint32_t id)
{
    unsigned int i = fabric_position(id);

    return i < fake_call.num_fabrics && fake_call.fabrics[i].fabric == id;
}

static unsigned int fabric_devices(uint32_t id)
{
    unsigned int i, n = 0;

    for (i = 0; i < fake_call.num_devices; i++)
        n += fake_call.devices[i].fabric == id;
    return n;
}

static int fabric_create(struct vmri_ctl_fabric *f)
{
    struct vmri_ctl_fabric *at;
    unsigned int i;

    if (f->link == VMRI_LINK_ROCE && fabric_devices(f->fabric))
        return EBUSY;
    if (f->fabric == VMRI_FABRIC_ANY)
        for (f->fabric = 1; fabric_exists(f->fabric); f->fabric++)
            ;
    for (i = 0; i < fake_call.num_fabrics; i++)
        if (fake_call.fabrics[i].fabric == f->fabric ||
            (*f->name && !strcmp(fake_call.fabrics[i].name, f->name)))
            return EEXIST;
    if (fake_call.num_fabrics == 8)
        return ENOSPC;

    at = &fake_call.fabrics[fabric_position(f->fabric)];
    memmove(at + 1, at, (char *)&fake_call.fabrics[fake_call.num_fabrics++] -
            (char *)at);
    *at = *f;
    at->created = 1;
    return 0;
}

static int fabric_delete(const struct vmri_ctl_fabric *f)
{
    struct vmri_ctl_fabric *at = &fake_call.fabrics[fabric_position(f->fabric)];

    if (!fabric_exists(f->fabric))
        return ENOENT;
    if (fabric_devices(f->fabric))
        return EBUSY;
    memmove(at, at + 1, (char *)&fake_call.fabrics[fake_call.num_fabrics--] -
            (char *)(at + 1));
    return 0;
}

static int fabric_list(struct vmri_ctl_fabric *f)
{
    unsigned int i = fabric_position(f->fabric);

    if (i == fake_call.num_fabrics)
        return ENOENT;
    *f = fake_call.fabrics[i];
    f->devices = fabric_devices(f->fabric);
    return 0;
}

static int attach(struct vmri_ctl_attach *a)
{
    struct vmri_ctl_info *dev;
    unsigned int i;

    if (fake_call.attach_errno)
        return fake_call.attach_errno;
    if (a->flags & ~(VMRI_ATTACH_CREATED | VMRI_ATTACH_SM))
        return EINVAL;
    if (a->uplink > 1)
        return ENODEV;
    if ((a->flags & VMRI_ATTACH_CREATED) && !fabric_exists(a->fabric))
        return ENOENT;
    if (a->dev_id == VMRI_DEV_ANY)
        for (a->dev_id = 0; exists(position(a->domid, a->dev_id), a->domid,
                                   a->dev_id); a->dev_id++)
            ;
    if (a->lid && lid_taken(a->fabric, a->lid))
        return EEXIST;
    if (!a->lid)
        for (a->lid = 1; lid_taken(a->fabric, a->lid); a->lid++)
            ;
    if (!a->guid)
        a->guid = 0x0016360000000000ULL | a->domid << 8 | a->dev_id;
    for (i = 0; i < fake_call.num_devices; i++)
        if (fake_call.devices[i].guid == a->guid)
            return EEXIST;

    i = position(a->domid, a->dev_id);
    if (exists(i, a->domid, a->dev_id))
        return EEXIST;
    if (fake_call.num_devices == 16)
        return ENOSPC;

    dev = &fake_call.devices[i];
    memmove(dev + 1, dev, (fake_call.num_devices - i) * sizeof(*dev));
    fake_call.num_devices++;
    memset(dev, 0, sizeof(*dev));
    dev->domid = a->domid;
    dev->dev_id = a->dev_id;
    dev->fabric = a->fabric;
    dev->lid = a->lid;
    dev->guid = a->guid;
    dev->group = a->group;
    fake_call.attach_flags = a->flags;
    fake_call.attach_uplink = a->uplink;
    return 0;
}

static int detach(const struct vmri_ctl_detach *d)
{
    unsigned int i = position(d->domid, d->dev_id);

    if (!exists(i, d->domid, d->dev_id))
        return ENODEV;
    remove_at(i);
    return 0;
}

/* By a policy of XSM's. */
static bool hidden(unsigned int i)
{
    return fake_call.devices[i].domid == fake_call.hidden_domid;
}

static int info(struct vmri_ctl_info *inf)
{
    unsigned int i = position(inf->domid, inf->dev_id);

    if (inf->which == VMRI_INFO_ONE) {
        if (!exists(i, inf->domid, inf->dev_id))
            return ENODEV;
        if (hidden(i))
            return EPERM;
    }
    while (i < fake_call.num_devices && hidden(i))
        i++;
    if (i == fake_call.num_devices)
        return ENOENT;
    *inf = fake_call.devices[i];
    return 0;
}

static int limits(struct vmri_ctl_limits *l)
{
    unsigned int i;

    if (fake_call.limits_errno)
        return fake_call.limits_errno;
    for (i = 0; i < VMRI_RES_NR; i++)
        if (l->mask & 1U << i)
            fake_call.limits.limit.n[i] = l->limit.n[i];
    l->limit = fake_call.limits.limit;
    l->usage = fake_call.limits.usage;
    return 0;
}

static int port(struct vmri_ctl_port *p)
{
    struct vmri_ctl_port *have = &fake_call.port;
    unsigned int i = position(p->domid, p->dev_id);

    if (fake_call.port_errno)
        return fake_call.port_errno;
    if (!exists(i, p->domid, p->dev_id))
        return ENODEV;
    if (p->mask & VMRI_PORTA_LID &&
        lid_taken(fake_call.devices[i].fabric, p->lid))
        return EEXIST;
    if (p->mask & VMRI_PORTA_STATE)
        have->state = p->state;
    if (p->mask & VMRI_PORTA_LID)
        have->lid = p->lid;
    if (p->mask & VMRI_PORTA_SM_LID)
        have->sm_lid = p->sm_lid;
    if (p->mask & VMRI_PORTA_PKEY)
        memcpy(have->pkeys, p->pkeys, sizeof(have->pkeys));
    if (p->mask & VMRI_PORTA_GID_PREFIX)
        have->gid_prefix = p->gid_prefix;
    have->domid = p->domid;
    have->dev_id = p->dev_id;
    have->mask = p->mask;
    *p = *have;
    return 0;
}

static unsigned int route_position(const struct vmri_ctl_route *r)
{
    unsigned int i;

    for (i = 0; i < fake_call.num_routes; i++)
        if (memcmp(fake_call.routes[i].gid, r->gid, sizeof(r->gid)) >= 0)
            break;
    return i;
}

static bool route_exists(const struct vmri_ctl_route *r)
{
    unsigned int i = route_position(r);

    return i < fake_call.num_routes &&
           !memcmp(fake_call.routes[i].gid, r->gid, sizeof(r->gid));
}

static int route_add(const struct vmri_ctl_route *r)
{
    struct vmri_ctl_route *at = &fake_call.routes[route_position(r)];

    if (!fabric_exists(r->fabric))
        return ENOENT;
    if (route_exists(r))
        return EEXIST;
    if (fake_call.num_routes == 4)
        return ENOSPC;
    memmove(at + 1, at, (char *)&fake_call.routes[fake_call.num_routes++] -
            (char *)at);
    *at = *r;
    return 0;
}

static int route_del(const struct vmri_ctl_route *r)
{
    struct vmri_ctl_route *at = &fake_call.routes[route_position(r)];

    if (!fabric_exists(r->fabric) || !route_exists(r))
        return ENOENT;
    memmove(at, at + 1, (char *)&fake_call.routes[fake_call.num_routes--] -
            (char *)(at + 1));
    return 0;
}

static int route_list(struct vmri_ctl_route *r)
{
    unsigned int i = route_position(r);

    if (i == fake_call.num_routes)
        return ENOENT;
    *r = fake_call.routes[i];
    return 0;
}

static int rule_add(struct vmri_ctl_rule *r)
{
    if (!fabric_exists(r->fabric))
        return ENOENT;
    if (r->protocol == (fake_call.fabrics[fabric_position(r->fabric)].link ==
                        VMRI_LINK_ROCE ? VMRI_RULE_IB : VMRI_RULE_ROCE))
        return EOPNOTSUPP;
    if (fake_call.num_rules == 8)
        return ENOSPC;
    r->rule = fake_call.num_rules + 1;
    fake_call.rules[fake_call.num_rules++] = *r;
    fake_call.fabrics[fabric_position(r->fabric)].closed = 1;
    return 0;
}

static int rule_del(const struct vmri_ctl_rule *r)
{
    if (!fabric_exists(r->fabric))
        return ENOENT;
    if (r->rule == VMRI_RULE_ALL) {
        fake_call.num_rules = 0;
        fake_call.fabrics[fabric_position(r->fabric)].closed = 0;
    } else if (r->rule == fake_call.num_rules) {
        fake_call.num_rules--;
    } else {
        return ENOENT;
    }
    return 0;
}

static int rule_list(struct vmri_ctl_rule *r)
{
    unsigned int i;

    for (i = 0; i < fake_call.num_rules; i++)
        if (fake_call.rules[i].fabric == r->fabric &&
            fake_call.rules[i].rule >= r->rule) {
            *r = fake_call.rules[i];
            return 0;
        }
    return ENOENT;
}

static int rate(struct vmri_ctl_rate *r)
{
    struct vmri_ctl_rate *have = &fake_call.rates[r->which];
    unsigned int i = position(r->domid, r->dev_id);

    if (fake_call.rate_errno)
        return fake_call.rate_errno;
    if (!exists(i, r->domid, r->dev_id))
        return ENODEV;
    if (r->flags & VMRI_RATE_SET) {
        have->rate = r->rate;
        have->burst = r->burst ? r->burst : r->rate / 50;
    }
    r->rate = have->rate;
    r->burst = have->burst;
    return 0;
}

static int stats(struct vmri_ctl_stats *s)
{
    unsigned int i = position(s->domid, s->dev_id);

    if (fake_call.stats_errno)
        return fake_call.stats_errno;
    if (!exists(i, s->domid, s->dev_id))
        return ENODEV;
    s->counters = fake_call.devices[i].counters;
    memcpy(s->type, fake_call.types, sizeof(s->type));
    return 0;
}

static int dump(struct vmri_ctl_dump *d)
{
    unsigned int i;

    if (fake_call.dump_errno)
        return fake_call.dump_errno;
    for (i = d->index; i < fake_call.num_objects; i++)
        if (fake_call.objects[i].kind == d->kind)
            break;
    if (i >= fake_call.num_objects)
        return ENOENT;
    *d = fake_call.objects[i];
    d->index = i + 1;
    return 0;
}

static int version(struct vmri_version *v)
{
    v->magic = fake_call.magic;
    v->abi_version = fake_call.abi_version;
    return 0;
}

int xencall3(xencall_handle *handle, unsigned int op, uint64_t cmd,
             uint64_t dev_id, uint64_t args)
{
    void *p = (void *)(uintptr_t)args;

    if (fake_call.no_vmri || op != VMRI_HYPERCALL_DEFAULT) {
        errno = ENOSYS;
        return -1;
    }
    switch (cmd) {
    case VMRI_OP_version:
        errno = version(p);
        break;
    case VMRI_OP_ctl_attach:
        errno = attach(p);
        break;
    case VMRI_OP_ctl_detach:
        errno = detach(p);
        break;
    case VMRI_OP_ctl_list:
        errno = info(p);
        break;
    case VMRI_OP_ctl_limits:
        errno = limits(p);
        break;
    case VMRI_OP_ctl_port:
        errno = port(p);
        break;
    case VMRI_OP_ctl_route_add:
        errno = route_add(p);
        break;
    case VMRI_OP_ctl_route_del:
        errno = route_del(p);
        break;
    case VMRI_OP_ctl_route_list:
        errno = route_list(p);
        break;
    case VMRI_OP_ctl_rule_add:
        errno = rule_add(p);
        break;
    case VMRI_OP_ctl_rule_del:
        errno = rule_del(p);
        break;
    case VMRI_OP_ctl_rule_list:
        errno = rule_list(p);
        break;
    case VMRI_OP_ctl_rate:
        errno = rate(p);
        break;
    case VMRI_OP_ctl_stats:
        errno = stats(p);
        break;
    case VMRI_OP_ctl_fabric_create:
        errno = fabric_create(p);
        break;
    case VMRI_OP_ctl_fabric_delete:
        errno = fabric_delete(p);
        break;
    case VMRI_OP_ctl_fabric_list:
        errno = fabric_list(p);
        break;
    case VMRI_OP_ctl_dump:
        errno = dump(p);
        break;
    default:
        errno = ENOSYS;
    }
    return errno ? -1 : 0;
}

int fake_clock_gettime(clockid_t clock, struct timespec *t);
int fake_nanosleep(const struct timespec *t, struct timespec *left);

/* The clock of top.c: it stands still but for sleeping. */
int fake_clock_gettime(clockid_t clock, struct timespec *t)
{
    t->tv_sec = fake_call.clock;
    t->tv_nsec = (fake_call.clock - t->tv_sec) * 1e9;
    return 0;
}

int fake_nanosleep(const struct timespec *t, struct timespec *left)
{
    fake_call.clock += t->tv_sec + t->tv_nsec / 1e9;
    if (fake_call.on_sleep)
        fake_call.on_sleep();
    return 0;
}

/* The only other hypercall asked for is Xen's version. */
int xencall2(xencall_handle *handle, unsigned int op, uint64_t arg1,
             uint64_t arg2)
{
    return 4 << 16 | 17;
}
