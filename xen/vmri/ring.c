/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the memory of queues, shared with a guest.
 *
 * It is pinned as writable and mapped from creation to destruction, so the
 * path of a message finds entries by arithmetic alone.  Ring pages are not
 * marked dirty: a suspended or migrated guest's driver builds its queues anew,
 * nothing of a ring's contents is needed afterwards.
 */
#include "internal.h"

/*
 * A region that is being made.  That may take many calls: each pins some frames
 * and leaves it in pending_regions of the device, where the next one claims it
 * by its ticket; when no next one comes, vmri_dev_close lets go of it.
 */
struct making {
    struct list_head list;      /* by dev->lock */
    uint32_t ticket;
    bool busy;                  /* by dev->lock: a call is at it */
    uint32_t nr;                /* frames when it is complete */
    struct vmri_region region;  /* by who is at it */
};

/* nr: of which it was to be. */
static void region_free(struct vmri_dev *dev, struct vmri_region *r,
                        uint32_t nr)
{
    while ( r->nr )
    {
        struct vmri_region_page *p = &r->page[--r->nr];

        if ( p->map )
            env_unmap_ring(p->map);
        env_frame_put(p->frame, true);
    }

    vmri_free(dev, r->page, nr * sizeof(*r->page));
    r->page = NULL;
    vmri_uncharge(dev, VMRI_RES_PINNED, nr);
}

static int region_add(struct vmri_dev *dev, uint64_t gfn,
                      struct vmri_region *r)
{
    struct vmri_region_page *p = &r->page[r->nr];
    int rc = env_frame_get(dev->domain, gfn, true, &p->frame);

    if ( rc )
        return rc;

    r->nr++;
    p->map = env_map_ring(p->frame);

    return p->map ? 0 : -ENOMEM;
}

static int add_batch(struct vmri_dev *dev, uint64_t gfns, struct making *m)
{
    struct vmri_region *r = &m->region;
    uint32_t nr = min_t(uint32_t, m->nr - r->nr, VMRI_FRAME_BATCH), i;
    uint64_t gfn[VMRI_FRAME_BATCH];
    int rc = 0;

    if ( env_copy_from_guest(gfn, gfns + r->nr * sizeof(*gfn),
                             nr * sizeof(*gfn)) )
        return -EFAULT;

    for ( i = 0; i < nr && !rc; i++ )
        rc = region_add(dev, gfn[i], r);

    return rc;
}

/* The same bounds as for memory regions, for the same reason. */
static int making_go_on(struct vmri_dev *dev, uint64_t gfns, struct making *m)
{
    const uint32_t start = m->region.nr;

    while ( m->region.nr < m->nr )
    {
        int rc = env_load(&dev->closing) ? -ENODEV : add_batch(dev, gfns, m);

        if ( rc )
            return rc;

        if ( m->region.nr < m->nr &&
             (m->region.nr - start >= VMRI_CALL_FRAMES || env_preempt()) )
            return -ERESTART;
    }

    return 0;
}

/* -ENODEV: vmri_dev_close, which is to find it, is at work or was. */
static int making_list(struct vmri_dev *dev, struct making *m)
{
    int rc = -ENODEV;

    env_lock(&dev->lock);
    if ( dev->in_use && !dev->closing )
    {
        dev->tickets = dev->tickets % VMRI_TICKET_MAX + 1;
        m->ticket = dev->tickets;
        m->busy = true;
        list_add_tail(&m->list, &dev->pending_regions);
        rc = 0;
    }
    env_unlock(&dev->lock);

    return rc;
}

static int making_begin(struct vmri_dev *dev, uint32_t nr, struct making **out)
{
    struct making *m;
    int rc = vmri_charge(dev, VMRI_RES_PINNED, nr);

    if ( rc )
        return rc;

    m = vmri_alloc(dev, sizeof(*m));
    if ( !m )
    {
        vmri_uncharge(dev, VMRI_RES_PINNED, nr);
        return -ENOMEM;
    }

    m->nr = nr;
    m->region.page = vmri_alloc(dev, nr * sizeof(*m->region.page));
    rc = m->region.page ? making_list(dev, m) : -ENOMEM;
    if ( rc )
    {
        region_free(dev, &m->region, nr);
        vmri_free(dev, m, sizeof(*m));
        return rc;
    }

    *out = m;

    return 0;
}

/*
 * Take over what has this ticket, or (0) any that nobody is at.  NULL: there is
 * none; *busy tells whether another call is at one.
 */
static struct making *making_claim(struct vmri_dev *dev, uint32_t ticket,
                                   bool *busy)
{
    struct making *m, *found = NULL;

    *busy = false;

    env_lock(&dev->lock);
    list_for_each_entry ( m, &dev->pending_regions, list )
    {
        if ( ticket && m->ticket != ticket )
            continue;

        if ( !m->busy )
        {
            m->busy = true;
            found = m;
            break;
        }
        *busy = true;
    }
    env_unlock(&dev->lock);

    return found;
}

/* The region is complete and the caller's, or it goes. */
static void making_end(struct vmri_dev *dev, struct making *m,
                       struct vmri_region *r)
{
    env_lock(&dev->lock);
    list_del(&m->list);
    env_unlock(&dev->lock);

    if ( r )
        *r = m->region;
    else
        region_free(dev, &m->region, m->nr);
    vmri_free(dev, m, sizeof(*m));
}

static int making_continue(struct vmri_dev *dev, uint32_t nr,
                           struct vmri_call *call, struct making **out)
{
    bool busy;
    struct making *m = making_claim(dev, call->ticket, &busy);

    if ( !m && busy )
        return -ERESTART;

    call->ticket = 0;
    if ( !m )
        return -ENODEV;

    /* The guest wants another size by now. */
    if ( m->nr != nr )
    {
        making_end(dev, m, NULL);
        return -EINVAL;
    }

    *out = m;

    return 0;
}

int vmri_region_create(struct vmri_dev *dev, const struct vmri_frames *frames,
                       uint64_t bytes, struct vmri_call *call,
                       struct vmri_region *r)
{
    uint64_t nr = (bytes + VMRI_PAGE_SIZE - 1) >> VMRI_PAGE_SHIFT;
    struct making *m;
    int rc;

    if ( frames->reserved || frames->nr != nr || !nr || nr > VMRI_MAX_REGION )
        return -EINVAL;

    rc = call->ticket ? making_continue(dev, nr, call, &m)
                      : making_begin(dev, nr, &m);
    if ( rc )
        return rc;

    rc = making_go_on(dev, frames->gfns, m);
    if ( rc == -ERESTART )
    {
        call->ticket = m->ticket;
        env_lock(&dev->lock);
        m->busy = false;
        env_unlock(&dev->lock);
    }
    else
        making_end(dev, m, rc ? NULL : r);

    return rc;
}

void vmri_region_abandon(struct vmri_dev *dev, struct vmri_call *call)
{
    bool busy;
    struct making *m = making_claim(dev, call->ticket, &busy);

    if ( m )
        making_end(dev, m, NULL);
    call->ticket = 0;
}

int vmri_region_reap(struct vmri_dev *dev)
{
    struct making *m;
    bool busy;

    do {
        m = making_claim(dev, 0, &busy);
        if ( !m )
            return busy ? -ERESTART : 0;
        making_end(dev, m, NULL);
    } while ( !env_preempt() );

    return -ERESTART;
}

void vmri_region_destroy(struct vmri_dev *dev, struct vmri_region *r)
{
    region_free(dev, r, r->nr);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
