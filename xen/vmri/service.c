/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: services that devices offer to the others of their fabric.
 *
 * They are what the subnet administrators of a fabric's guests have in common, and
 * mean nothing to VMRI.  Each belongs to the device that offers it, which pays for it
 * and alone may change it or take it away.  One whose lease has ended is there until
 * somebody looks, and nobody sees it.
 */
#include "internal.h"

#define SECOND  1000000000ULL
#define NEVER   (~0ULL)

struct record {
    struct list_head list;      /* in fabric->services.list */
    struct vmri_dev *dev;
    uint64_t number;
    uint64_t ends;              /* ns, or NEVER */
    struct vmri_service service;    /* gid and lease are made when asked for */
};

void vmri_services_init(struct vmri_services *s)
{
    env_lock_init(&s->lock, LEVEL_SERVICE);
    INIT_LIST_HEAD(&s->list);
}

/* ---- by services->lock ---- */

/*
 * The device may be another's than the caller's.  It stays as long as something is
 * charged to it: what is done last.
 */
static void record_free(struct vmri_services *s, struct record *r)
{
    struct vmri_dev *dev = r->dev;

    list_del(&r->list);
    s->nr--;
    vmri_free(dev, r, sizeof(*r));
    vmri_uncharge(dev, VMRI_RES_SERVICE, 1);
}

static void end_leases(struct vmri_services *s)
{
    const uint64_t now = env_now();
    struct record *r, *next;

    list_for_each_entry_safe ( r, next, &s->list, list )
        if ( r->ends <= now )
            record_free(s, r);
}

static struct record *record_find(struct vmri_services *s,
                                  const struct vmri_dev *dev,
                                  const struct vmri_service *arg)
{
    struct record *r;

    list_for_each_entry ( r, &s->list, list )
        if ( r->dev == dev && r->service.id == arg->id &&
             r->service.pkey == arg->pkey )
            return r;

    return NULL;
}

/* Show it, if the device takes any more, and would not miss this one. */
static int record_link(struct vmri_services *s, struct record *r)
{
    struct vmri_dev *dev = r->dev;
    int ret = -ENODEV;

    env_lock(&dev->lock);
    if ( dev->in_use && !dev->closing )
    {
        r->number = ++s->last;
        list_add_tail(&r->list, &s->list);
        s->nr++;
        ret = 0;
    }
    env_unlock(&dev->lock);

    return ret;
}

static int record_make(struct vmri_services *s, struct vmri_dev *dev,
                       struct record **result)
{
    struct record *r;
    int ret;

    if ( s->nr >= VMRI_SERVICES )
        return -ENOSPC;

    ret = vmri_charge(dev, VMRI_RES_SERVICE, 1);
    if ( ret )
        return ret;

    ret = -ENOMEM;
    r = vmri_alloc(dev, sizeof(*r));
    if ( r )
    {
        r->dev = dev;
        ret = record_link(s, r);
    }
    if ( ret )
    {
        vmri_free(dev, r, sizeof(*r));
        vmri_uncharge(dev, VMRI_RES_SERVICE, 1);
        return ret;
    }

    *result = r;

    return 0;
}

/* How long it takes tells nothing of where the first difference is. */
static bool same_key(const uint8_t a[16], const uint8_t b[16])
{
    uint8_t differs = 0;
    unsigned int i;

    for ( i = 0; i < 16; i++ )
        differs |= a[i] ^ b[i];

    return !differs;
}

static bool shown(const struct vmri_dev *dev, const struct record *r,
                  const struct vmri_service_query *arg)
{
    const uint16_t pkey = r->service.pkey;

    return (!(arg->flags & VMRI_SERVICE_BY_KEY) ||
            same_key(r->service.key, arg->service.key)) &&
           vmri_port_in_partition(dev, pkey) &&
           vmri_port_in_partition(r->dev, pkey) &&
           vmri_fabric_shows(dev, r->dev);
}

/* Seconds that are left of a lease that had not ended a moment ago. */
static uint32_t lease_left(const struct record *r)
{
    const uint64_t now = env_now();

    if ( r->ends == NEVER )
        return VMRI_LEASE_FOREVER;

    return r->ends > now ? (r->ends - now + SECOND - 1) / SECOND : 1;
}

static void tell(const struct vmri_dev *dev, const struct record *r,
                 struct vmri_service_query *arg)
{
    struct vmri_service *to = &arg->service;

    arg->number = r->number;
    *to = r->service;
    vmri_put_be(to->gid, env_load(&r->dev->port.gid_prefix), 8);
    vmri_put_be(to->gid + 8, r->dev->guid, 8);
    to->lease = lease_left(r);
    if ( r->dev != dev )
        memset(to->key, 0, sizeof(to->key));
}

/* ---- commands ---- */

int vmri_service_set(struct vmri_dev *dev, const struct vmri_service *arg)
{
    struct vmri_services *s = &dev->fabric->services;
    struct record *r;
    int ret = 0;

    if ( dev->fabric->gids )
        return -EOPNOTSUPP;
    if ( arg->reserved || !arg->lease || !(arg->pkey & 0x7fff) )
        return -EINVAL;
    if ( !vmri_port_in_partition(dev, arg->pkey) )
        return -EPERM;

    env_lock(&s->lock);
    end_leases(s);
    r = record_find(s, dev, arg);
    if ( !r )
        ret = record_make(s, dev, &r);
    if ( !ret )
    {
        r->service = *arg;
        r->ends = arg->lease == VMRI_LEASE_FOREVER
                  ? NEVER : env_now() + arg->lease * SECOND;
    }
    env_unlock(&s->lock);

    return ret;
}

int vmri_service_delete(struct vmri_dev *dev, const struct vmri_service *arg)
{
    struct vmri_services *s = &dev->fabric->services;
    struct record *r;

    env_lock(&s->lock);
    end_leases(s);
    r = record_find(s, dev, arg);
    if ( r )
        record_free(s, r);
    env_unlock(&s->lock);

    return r ? 0 : -ENOENT;
}

int vmri_service_query(struct vmri_dev *dev, struct vmri_service_query *arg)
{
    struct vmri_services *s = &dev->fabric->services;
    const struct record *r;
    int ret = -ENOENT;

    if ( (arg->flags & ~VMRI_SERVICE_BY_KEY) || arg->reserved )
        return -EINVAL;

    env_lock(&s->lock);
    end_leases(s);
    list_for_each_entry ( r, &s->list, list )
        if ( r->number >= arg->number && shown(dev, r, arg) )
        {
            tell(dev, r, arg);
            ret = 0;
            break;
        }
    env_unlock(&s->lock);

    return ret;
}

unsigned int vmri_services_forget(struct vmri_dev *dev, unsigned int max)
{
    struct vmri_services *s = &dev->fabric->services;
    struct record *r, *next;
    unsigned int n = 0;

    env_lock(&s->lock);
    list_for_each_entry_safe ( r, next, &s->list, list )
    {
        if ( n == max )
            break;
        if ( r->dev == dev )
        {
            record_free(s, r);
            n++;
        }
    }
    env_unlock(&s->lock);

    return n;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
