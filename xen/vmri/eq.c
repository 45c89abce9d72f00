/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: event queues.
 *
 * An event is lost never, and written late if need be: one that finds the ring
 * full stays with its source, a bit a type, until the guest has made room and
 * polls.  Equal events that wait become one.
 */
#include "internal.h"

#define EQ_MIN_LOG2     4
#define EQ_MAX_LOG2     16
#define EQ_POLL_MAX     256     /* sources served with the lock held */

static struct vmri_eq_hdr *eq_hdr(const struct vmri_eq *eq)
{
    return vmri_region_at(&eq->region, 0);
}

/* What a command's entry says more. */
static void eq_tell(struct vmri_event *e, struct vmri_source *s)
{
    const struct vmri_command *c = container_of(s, struct vmri_command,
                                                source);

    e->command = c->command;
    e->data = c->data;
}

/* Write an entry.  False: the ring is full.  By eq->lock. */
static bool eq_write(struct vmri_eq *eq, struct vmri_source *s,
                     unsigned int type)
{
    struct vmri_eq_hdr *hdr = eq_hdr(eq);
    uint32_t size = 1U << eq->log2_entries;
    struct vmri_event *e;

    if ( eq->prod - env_load_acquire(&hdr->cons) >= size )
        return false;

    e = vmri_region_at(&eq->region, VMRI_RING_OFFSET +
                       (eq->prod & (size - 1)) * sizeof(*e));
    *e = (struct vmri_event){ .type = type, .id = s->id };
    if ( type == VMRI_EVENT_COMMAND )
        eq_tell(e, s);
    env_store(&eq->prod, eq->prod + 1);
    env_store_release(&hdr->prod, eq->prod);
    vmri_count(eq->dev, events, 1);

    return true;
}

static void eq_notify(struct vmri_eq *eq)
{
    env_port_notify(eq->dev->domain, eq->port);
    vmri_count(eq->dev, upcalls, 1);
}

/*
 * A guest that drained the ring just before `overflow` was set would not see
 * it: so it is notified then, too.  By eq->lock.
 */
static void eq_raise(struct vmri_eq *eq, struct vmri_source *s,
                     unsigned int type)
{
    if ( !list_empty(&eq->waiting) || !eq_write(eq, s, type) )
    {
        if ( !s->pending )
            list_add_tail(&s->waiting, &eq->waiting);
        s->pending |= 1U << type;
        env_store(&eq_hdr(eq)->overflow, 1);
    }

    eq_notify(eq);
}

void vmri_event_raise(struct vmri_eq *eq, struct vmri_source *s,
                      unsigned int type)
{
    env_lock(&eq->lock);
    eq_raise(eq, s, type);
    env_unlock(&eq->lock);
}

void vmri_event_command(struct vmri_eq *eq, struct vmri_command *c,
                        unsigned int command, uint32_t id, uint64_t data)
{
    env_lock(&eq->lock);
    c->source.id = id;
    c->command = command;
    c->data = data;
    eq_raise(eq, &c->source, VMRI_EVENT_COMMAND);
    env_unlock(&eq->lock);
}

bool vmri_source_idle(struct vmri_eq *eq, struct vmri_source *s)
{
    bool idle;

    env_lock(&eq->lock);
    idle = !s->pending;
    env_unlock(&eq->lock);

    return idle;
}

void vmri_eq_purge(struct vmri_eq *eq)
{
    struct vmri_source *s;

    env_lock(&eq->lock);
    while ( !list_empty(&eq->waiting) )
    {
        s = list_first_entry(&eq->waiting, struct vmri_source, waiting);
        s->pending = 0;
        list_del(&s->waiting);
    }
    env_unlock(&eq->lock);
}

/* Write what waits at one source.  False: the ring is full.  By eq->lock. */
static bool eq_write_pending(struct vmri_eq *eq, struct vmri_source *s)
{
    while ( s->pending )
    {
        unsigned int type = __builtin_ctz(s->pending);

        if ( !eq_write(eq, s, type) )
            return false;
        s->pending &= ~(1U << type);
    }

    return true;
}

int vmri_eq_poll(struct vmri_dev *dev, uint32_t handle)
{
    struct vmri_eq *eq = vmri_table_get(&dev->eqs, handle);
    uint32_t prod;
    unsigned int n;

    if ( !eq )
        return -ENOENT;

    env_lock(&eq->lock);

    prod = eq->prod;

    /* With more to do the flag stays, and the guest polls again. */
    for ( n = 0; n < EQ_POLL_MAX && !list_empty(&eq->waiting); n++ )
    {
        struct vmri_source *s = list_first_entry(&eq->waiting,
                                                 struct vmri_source, waiting);

        if ( !eq_write_pending(eq, s) )
            break;
        list_del(&s->waiting);
    }

    if ( list_empty(&eq->waiting) )
        env_store(&eq_hdr(eq)->overflow, 0);
    if ( eq->prod != prod )
        eq_notify(eq);

    env_unlock(&eq->lock);
    vmri_table_put(&dev->eqs, handle);

    return 0;
}

void vmri_source_init(struct vmri_source *s, uint32_t id)
{
    s->id = id;
    s->pending = 0;
}

void vmri_source_forget(struct vmri_eq *eq, struct vmri_source *s,
                        uint32_t types)
{
    env_lock(&eq->lock);
    if ( s->pending & types )
    {
        s->pending &= ~types;
        if ( !s->pending )
            list_del(&s->waiting);
    }
    env_unlock(&eq->lock);
}

void vmri_source_fini(struct vmri_eq *eq, struct vmri_source *s)
{
    vmri_source_forget(eq, s, ~0U);
}

/* As vmri_region_destroy. */
static int eq_free(struct vmri_dev *dev, struct vmri_eq *eq,
                   struct vmri_call *call, int error)
{
    struct vmri_region region = eq->region;

    vmri_free(dev, eq, sizeof(*eq));
    vmri_uncharge(dev, VMRI_RES_EQ, 1);

    return vmri_region_destroy(dev, &region, call, error);
}

/* The memory of an EQ, without port and number. */
static int eq_alloc(struct vmri_dev *dev, const struct vmri_eq_create *arg,
                    struct vmri_call *call, struct vmri_eq **out)
{
    struct vmri_eq *eq = vmri_alloc(dev, sizeof(*eq));
    int ret;

    if ( !eq )
        return -ENOMEM;

    eq->dev = dev;
    eq->log2_entries = arg->log2_entries;
    env_lock_init(&eq->lock, LEVEL_EQ);
    INIT_LIST_HEAD(&eq->waiting);

    ret = vmri_region_create(dev, &arg->frames, VMRI_RING_OFFSET +
                             (sizeof(struct vmri_event) << arg->log2_entries),
                             call, &eq->region);
    if ( ret )
    {
        vmri_free(dev, eq, sizeof(*eq));
        return ret;
    }

    memset(eq_hdr(eq), 0, sizeof(struct vmri_eq_hdr));
    *out = eq;

    return 0;
}

/* Give an EQ its port and number and show it. */
static int eq_show(struct vmri_dev *dev, struct vmri_eq *eq,
                   struct vmri_eq_create *arg)
{
    int port = env_port_alloc(dev->domain, arg->vcpu);
    int ret;

    if ( port < 0 )
        return port;

    eq->port = port;
    ret = vmri_table_reserve(&dev->eqs, VMRI_HANDLE_ANY, &eq->handle);
    if ( ret )
        goto free_port;

    arg->handle = eq->handle;
    arg->port = port;
    ret = arg->flags & VMRI_EQF_PORT ? vmri_port_bind(dev, eq) : 0;
    if ( ret )
        goto release;

    ret = vmri_publish(dev, &dev->eqs, eq->handle, eq);
    if ( !ret )
        return 0;

    vmri_port_unbind(dev, eq);
 release:
    vmri_table_release(&dev->eqs, eq->handle);
 free_port:
    env_port_free(dev->domain, port);

    return ret;
}

int vmri_eq_create(struct vmri_dev *dev, struct vmri_eq_create *arg,
                   struct vmri_call *call)
{
    struct vmri_eq *eq;
    int ret;

    if ( arg->log2_entries < EQ_MIN_LOG2 || arg->log2_entries > EQ_MAX_LOG2 ||
         (arg->flags & ~VMRI_EQF_PORT) || arg->reserved0[0] ||
         arg->reserved0[1] )
        return -EINVAL;

    ret = vmri_charge(dev, VMRI_RES_EQ, 1);
    if ( ret )
        return ret;

    ret = eq_alloc(dev, arg, call, &eq);
    if ( ret )
    {
        vmri_uncharge(dev, VMRI_RES_EQ, 1);
        return ret;
    }

    ret = eq_show(dev, eq, arg);

    return ret ? eq_free(dev, eq, call, ret) : 0;
}

int cf_check vmri_eq_destroy(struct vmri_dev *dev, uint32_t handle,
                             struct vmri_call *call)
{
    struct vmri_eq *eq;
    void *obj;
    int ret = vmri_kill_unused(dev, &dev->eqs, handle, &obj);

    if ( ret )
        return ret;

    eq = obj;
    vmri_port_unbind(dev, eq);
    env_port_free(dev->domain, eq->port);
    vmri_table_release(&dev->eqs, handle);

    return eq_free(dev, eq, call, call->error);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
