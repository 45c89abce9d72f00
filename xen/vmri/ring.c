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
 * The frames of a region, of which it has all as long as a queue uses it.  To
 * get them, and to let go of them, may take many calls: each does some and
 * leaves the rest in pending_regions of the device, where the next one claims
 * it by its ticket; when no next one comes, vmri_dev_close lets go of them.
 */
struct frames {
    struct list_head list;      /* by dev->lock, when pending */
    uint32_t ticket;            /* by dev->lock */
    bool busy;                  /* by dev->lock: a call is at it */
    bool going;                 /* by dev->lock: to be let go of */
    int error;                  /* how the command ends that lets go */
    uint32_t nr;                /* when it is complete */
    uint32_t have;              /* by who is at it */
    struct vmri_region_page page[];
};

static size_t frames_bytes(uint32_t nr)
{
    return sizeof(struct frames) + nr * sizeof(struct vmri_region_page);
}

static struct frames *frames_of(const struct vmri_region *r)
{
    return (void *)r->page - offsetof(struct frames, page);
}

/* Have the next call find it: the caller is at it now.  By dev->lock. */
static void pend(struct vmri_dev *dev, struct frames *f)
{
    dev->tickets = dev->tickets % VMRI_TICKET_MAX + 1;
    f->ticket = dev->tickets;
    f->busy = true;
    list_add_tail(&f->list, &dev->pending_regions);
}

static void unpend(struct vmri_dev *dev, struct frames *f)
{
    env_lock(&dev->lock);
    list_del(&f->list);
    env_unlock(&dev->lock);
}

/* Stop for now. */
static int stop(struct vmri_dev *dev, struct frames *f, struct vmri_call *call)
{
    env_lock(&dev->lock);
    call->ticket = f->ticket;
    f->busy = false;
    env_unlock(&dev->lock);

    return -ERESTART;
}

/*
 * Take over what has this ticket, or (0) any that nobody is at.  NULL: there is
 * none; *busy tells whether another call is at one.
 */
static struct frames *claim(struct vmri_dev *dev, uint32_t ticket, bool *busy)
{
    struct frames *f, *found = NULL;

    *busy = false;

    env_lock(&dev->lock);
    list_for_each_entry ( f, &dev->pending_regions, list )
    {
        if ( ticket && f->ticket != ticket )
            continue;

        if ( !f->busy )
        {
            f->busy = true;
            found = f;
            break;
        }
        *busy = true;
    }
    env_unlock(&dev->lock);

    return found;
}

/* ---- letting go ---- */

/* Go on with it: how the command ends, or -ERESTART. */
static int release_some(struct vmri_dev *dev, struct frames *f,
                        struct vmri_call *call)
{
    const uint32_t start = f->have;
    const int error = f->error;

    while ( f->have )
    {
        const struct vmri_region_page *p;

        if ( call->frames == VMRI_CALL_FRAMES ||
             (f->have != start && !(f->have % VMRI_FRAME_BATCH) &&
              env_preempt()) )
            return stop(dev, f, call);

        p = &f->page[--f->have];
        call->frames++;
        if ( p->map )
            env_unmap_ring(p->map);
        env_frame_put(p->frame, true);
    }

    unpend(dev, f);
    vmri_uncharge(dev, VMRI_RES_PINNED, f->nr);
    vmri_free(dev, f, frames_bytes(f->nr));
    call->ticket = 0;

    return error;
}

/* Begin with it, one that is claimed: the same. */
static int let_go(struct vmri_dev *dev, struct frames *f,
                  struct vmri_call *call, int error)
{
    env_lock(&dev->lock);
    f->going = true;
    env_unlock(&dev->lock);
    f->error = error;

    return release_some(dev, f, call);
}

int vmri_region_destroy(struct vmri_dev *dev, struct vmri_region *r,
                        struct vmri_call *call, int error)
{
    struct frames *f;

    if ( !r->page )
        return error;

    f = frames_of(r);
    env_lock(&dev->lock);
    pend(dev, f);
    env_unlock(&dev->lock);
    r->page = NULL;

    return let_go(dev, f, call, error);
}

bool vmri_region_going(struct vmri_dev *dev, struct vmri_call *call, long *ret)
{
    struct frames *f;
    bool going = false, mine = false;

    env_lock(&dev->lock);
    list_for_each_entry ( f, &dev->pending_regions, list )
        if ( f->ticket == call->ticket )
        {
            going = f->going;
            mine = going && !f->busy;
            if ( mine )
                f->busy = true;
            break;
        }
    env_unlock(&dev->lock);

    if ( going )
        *ret = mine ? release_some(dev, f, call) : -ERESTART;

    return going;
}

int vmri_region_abandon(struct vmri_dev *dev, struct vmri_call *call,
                        int error)
{
    bool busy;
    struct frames *f = claim(dev, call->ticket, &busy);

    if ( f )
        return let_go(dev, f, call, error);
    call->ticket = 0;

    return error;
}

int vmri_region_reap(struct vmri_dev *dev, struct vmri_call *call)
{
    struct frames *f;
    bool busy;

    do {
        f = claim(dev, 0, &busy);
        if ( !f )
            return busy ? -ERESTART : 0;
    } while ( !let_go(dev, f, call, 0) && !env_preempt() );

    return -ERESTART;
}

/* ---- getting ---- */

static int add_one(struct vmri_dev *dev, uint64_t gfn, struct frames *f)
{
    struct vmri_region_page *p = &f->page[f->have];
    int rc = env_frame_get(dev->domain, gfn, true, &p->frame);

    if ( rc )
        return rc;

    f->have++;
    p->map = env_map_ring(p->frame);

    return p->map ? 0 : -ENOMEM;
}

static int add_batch(struct vmri_dev *dev, uint64_t gfns, struct frames *f)
{
    uint32_t nr = min_t(uint32_t, f->nr - f->have, VMRI_FRAME_BATCH), i;
    uint64_t gfn[VMRI_FRAME_BATCH];
    int rc = 0;

    if ( env_copy_from_guest(gfn, gfns + f->have * sizeof(*gfn),
                             nr * sizeof(*gfn)) )
        return -EFAULT;

    for ( i = 0; i < nr && !rc; i++ )
        rc = add_one(dev, gfn[i], f);

    return rc;
}

/* The same bounds as for memory regions, for the same reason. */
static int add_some(struct vmri_dev *dev, uint64_t gfns, struct frames *f)
{
    const uint32_t start = f->have;

    while ( f->have < f->nr )
    {
        int rc = env_load(&dev->closing) ? -ENODEV : add_batch(dev, gfns, f);

        if ( rc )
            return rc;

        if ( f->have < f->nr &&
             (f->have - start >= VMRI_CALL_FRAMES || env_preempt()) )
            return -ERESTART;
    }

    return 0;
}

/* -ENODEV: vmri_dev_close, which is to find it, is at work or was. */
static int begin(struct vmri_dev *dev, uint32_t nr, struct frames **out)
{
    struct frames *f;
    int rc = vmri_charge(dev, VMRI_RES_PINNED, nr);

    if ( rc )
        return rc;

    rc = -ENOMEM;
    f = vmri_alloc(dev, frames_bytes(nr));
    if ( f )
    {
        f->nr = nr;
        rc = -ENODEV;
        env_lock(&dev->lock);
        if ( dev->in_use && !dev->closing )
        {
            pend(dev, f);
            rc = 0;
        }
        env_unlock(&dev->lock);
    }

    if ( rc )
    {
        if ( f )
            vmri_free(dev, f, frames_bytes(nr));
        vmri_uncharge(dev, VMRI_RES_PINNED, nr);
        return rc;
    }

    *out = f;

    return 0;
}

static int go_on(struct vmri_dev *dev, uint32_t nr, struct vmri_call *call,
                 struct frames **out)
{
    bool busy;
    struct frames *f = claim(dev, call->ticket, &busy);

    if ( !f && busy )
        return -ERESTART;

    call->ticket = 0;
    if ( !f )
        return -ENODEV;

    /* The guest wants another size by now. */
    if ( f->nr != nr )
        return let_go(dev, f, call, -EINVAL);

    *out = f;

    return 0;
}

int vmri_region_create(struct vmri_dev *dev, const struct vmri_frames *frames,
                       uint64_t bytes, struct vmri_call *call,
                       struct vmri_region *r)
{
    uint64_t nr = (bytes + VMRI_PAGE_SIZE - 1) >> VMRI_PAGE_SHIFT;
    struct frames *f = NULL;
    int rc;

    if ( frames->reserved || frames->nr != nr || !nr || nr > VMRI_MAX_REGION )
        return -EINVAL;

    rc = call->ticket ? go_on(dev, nr, call, &f) : begin(dev, nr, &f);
    if ( rc )
        return rc;

    rc = add_some(dev, frames->gfns, f);
    if ( rc == -ERESTART )
        return stop(dev, f, call);
    if ( rc )
        return let_go(dev, f, call, rc);

    unpend(dev, f);
    r->nr = nr;
    r->page = f->page;

    return 0;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
