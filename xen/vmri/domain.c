/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: which domains have devices, and what happens when one dies.
 *
 * A domain's own calls read its state without a lock: it is published when it
 * is complete, and freed by the teardown only, when no vCPU of the domain runs
 * any more.  Everybody else looks under vmri_control_lock.
 */
#include "internal.h"

env_lock_t vmri_control_lock;

static LIST_HEAD(domains);      /* by vmri_control_lock, in order of domid */

struct vmri_domain *vmri_domain_make(struct domain *d)
{
    struct vmri_domain **state = env_domain_state(d);
    struct vmri_domain *vd = *state, *pos;

    if ( vd )
        return vd;

    vd = env_alloc(sizeof(*vd));
    if ( !vd )
        return NULL;

    vd->domain = d;
    vmri_table_init(&vd->devs, &vmri_format_dev, VMRI_MAX_DEVS, NULL,
                    VMRI_RES_DEV);
    vmri_limits_default(env_domain_pages(d), vd->limit);
    INIT_LIST_HEAD(&vd->dying);

    list_for_each_entry ( pos, &domains, list )
        if ( env_domid(pos->domain) > env_domid(d) )
            break;
    list_add_tail(&vd->list, &pos->list);

    env_store_release(state, vd);

    return vd;
}

int vmri_domain_teardown(struct domain *d)
{
    struct vmri_domain **state = env_domain_state(d);
    struct vmri_domain *vd;
    unsigned int what;
    int ret;

    /* An earlier attach is seen here, a later one sees a dying domain. */
    env_lock(&vmri_control_lock);
    vd = *state;
    env_unlock(&vmri_control_lock);

    if ( !vd )
        return 0;

    ret = vmri_uplinks_end(d) ?: vmri_dev_detach_all(vd);
    if ( ret )
        return ret;

    env_lock(&vmri_control_lock);
    list_del(&vd->list);
    *state = NULL;
    env_unlock(&vmri_control_lock);

    for ( what = 0; what < VMRI_RES_NR; what++ )
        ASSERT(!vd->usage[what]);

    vmri_table_fini(&vd->devs);
    env_free(vd);

    return 0;
}

/*
 * The domain's first device from *index on, with a reference.  The caller is
 * another domain, and this one may be torn down meanwhile.
 */
static struct vmri_dev *get_from(struct domain *d, uint32_t *index)
{
    struct vmri_dev *dev = NULL;
    struct vmri_domain *vd;
    uint32_t id;

    env_lock(&vmri_control_lock);
    vd = *env_domain_state(d);
    if ( vd && vmri_table_next(&vd->devs, index, &id) )
        dev = vmri_table_get(&vd->devs, id);
    env_unlock(&vmri_control_lock);

    return dev;
}

struct vmri_dev *vmri_dev_get_of(struct domain *d, uint32_t dev_id)
{
    struct vmri_domain *vd;
    struct vmri_dev *dev;

    env_lock(&vmri_control_lock);
    vd = *env_domain_state(d);
    dev = vd ? vmri_table_get(&vd->devs, dev_id) : NULL;
    env_unlock(&vmri_control_lock);

    return dev;
}

/* Without state, nothing is used and all limits are the default ones. */
static void get_limits(const struct vmri_domain *vd, const struct domain *d,
                       struct vmri_usage *limit, struct vmri_usage *usage)
{
    unsigned int what;

    memset(limit, 0, sizeof(*limit));
    memset(usage, 0, sizeof(*usage));
    if ( !vd )
        vmri_limits_default(env_domain_pages(d), limit->n);

    for ( what = 0; vd && what < VMRI_RES_NR; what++ )
    {
        limit->n[what] = env_load(&vd->limit[what]);
        usage->n[what] = env_load(&vd->usage[what]);
    }
}

int vmri_domain_limits(struct domain *d, uint32_t mask,
                       struct vmri_usage *limit, struct vmri_usage *usage)
{
    struct vmri_domain *vd;
    unsigned int what;
    int ret = 0;

    env_lock(&vmri_control_lock);

    vd = *env_domain_state(d);
    if ( env_domain_dying(d) )
        ret = -ESRCH;
    else if ( mask && !vd )
    {
        vd = vmri_domain_make(d);
        ret = vd ? 0 : -ENOMEM;
    }

    for ( what = 0; !ret && what < VMRI_RES_NR; what++ )
        if ( mask & (1U << what) )
            env_store(&vd->limit[what], limit->n[what]);
    if ( !ret )
        get_limits(vd, d, limit, usage);

    env_unlock(&vmri_control_lock);

    return ret;
}

/* The kernel that comes has yet to allow what the one before did. */
static void forget_doorbells(struct domain *d)
{
    struct vmri_domain *vd;

    env_lock(&vmri_control_lock);
    vd = *env_domain_state(d);
    if ( vd )
        env_store(&vd->doorbells, false);
    env_unlock(&vmri_control_lock);
}

int vmri_domain_reset(struct domain *d)
{
    struct vmri_dev *dev;
    uint32_t index = 0;
    int ret = vmri_uplinks_end(d);

    forget_doorbells(d);
    while ( !ret && (dev = get_from(d, &index)) != NULL )
    {
        /* Those that an earlier call has emptied cost nothing. */
        bool todo = env_load(&dev->in_use);

        ret = vmri_dev_close(dev, false);
        vmri_dev_put(dev);
        if ( !ret && todo && env_preempt() )
            ret = -ERESTART;
    }

    return ret;
}

struct vmri_dev *vmri_dev_get(struct domain *d, uint32_t dev_id)
{
    struct vmri_domain *vd = env_load_acquire(env_domain_state(d));

    return vd ? vmri_table_get(&vd->devs, dev_id) : NULL;
}

void vmri_dev_put(struct vmri_dev *dev)
{
    vmri_slot_put(dev->slot);
}

struct vmri_dev *vmri_dev_next(uint32_t *domid, uint32_t *dev_id)
{
    struct vmri_domain *vd;

    list_for_each_entry ( vd, &domains, list )
    {
        const uint32_t id = env_domid(vd->domain);
        uint32_t index = id == *domid ? *dev_id : 0;
        struct vmri_dev *dev;

        if ( id < *domid )
            continue;

        dev = vmri_table_next(&vd->devs, &index, dev_id);
        if ( dev )
        {
            *domid = id;
            return dev;
        }
    }

    return NULL;
}

void vmri_domains_count(uint32_t *domains_nr, uint32_t *dying)
{
    const struct vmri_domain *vd;
    const struct vmri_dev *dev;

    *domains_nr = *dying = 0;

    env_lock(&vmri_control_lock);
    list_for_each_entry ( vd, &domains, list )
    {
        ++*domains_nr;
        list_for_each_entry ( dev, &vd->dying, dying )
            ++*dying;
    }
    env_unlock(&vmri_control_lock);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
