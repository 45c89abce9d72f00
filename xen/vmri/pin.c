/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: memory regions on their way: getting their frames, or giving them
 * back.
 *
 * Either may take many calls, each of which goes on where the last one
 * stopped.  Until it ends, such an MR is in pending_mrs of the device, where
 * the next call claims it (`busy`); when no next call comes, vmri_dev_close
 * finishes it.  Its key stays taken for as long.
 */
#include "internal.h"

static bool mr_writable(const struct vmri_mr *mr)
{
    return mr->k.range.access & VMRI_ACCESS_LOCAL_WRITE;
}

/* ---- frames: by the call that has claimed the MR ---- */

static int pin_gfns(struct vmri_mr *mr, uint32_t nr)
{
    struct vmri_dev *dev = mr->k.dev;
    struct vmri_pages *p = &mr->k.range.pages;
    uint64_t gfn[VMRI_FRAME_BATCH];
    int ret = 0;
    uint32_t i;

    if ( env_copy_from_guest(gfn, mr->gfns + p->filled * sizeof(*gfn),
                             nr * sizeof(*gfn)) )
        return -EFAULT;

    for ( i = 0; i < nr && !ret; i++ )
    {
        env_frame_t *frame = vmri_pages_next(dev, p);

        ret = frame ? env_frame_get(dev->domain, gfn[i], mr_writable(mr),
                                    frame)
                    : -ENOMEM;
        if ( !ret )
            vmri_pages_added(p);
    }

    return ret;
}

/*
 * The frames of the MR that this one will replace, which may be gone, or
 * another by now.
 */
static int pin_same(struct vmri_mr *mr, uint32_t nr)
{
    struct vmri_dev *dev = mr->k.dev;
    struct vmri_pages *p = &mr->k.range.pages;
    struct vmri_key *old = vmri_table_get(&dev->keys, mr->replaces);
    int ret = 0;
    uint32_t i, run;

    if ( !old )
        return -ENOENT;

    if ( old->kind != VMRI_KEY_MR || old->range.pages.nr != p->nr )
        ret = -ENOENT;

    for ( i = 0; i < nr && !ret; i++ )
    {
        env_frame_t *frame = vmri_pages_next(dev, p);

        if ( !frame )
        {
            ret = -ENOMEM;
            break;
        }

        *frame = vmri_pages_at(&old->range.pages, p->filled, &run);
        ret = env_frame_again(dev->domain, *frame, mr_writable(mr));
        if ( !ret )
            vmri_pages_added(p);
    }

    vmri_key_put(old);

    return ret;
}

/*
 * This and unpinning end after VMRI_CALL_FRAMES even when nothing else is to
 * be done: whoever detaches the device waits for this call.
 */
int vmri_mr_pin(struct vmri_mr *mr)
{
    struct vmri_pages *p = &mr->k.range.pages;
    const uint32_t start = p->filled;
    int ret;

    while ( p->filled < p->nr )
    {
        uint32_t nr = min_t(uint32_t, p->nr - p->filled, VMRI_FRAME_BATCH);

        if ( env_load(&mr->k.dev->closing) )
            return -ENODEV;

        ret = mr->same ? pin_same(mr, nr) : pin_gfns(mr, nr);
        if ( ret )
            return ret;

        if ( p->filled < p->nr &&
             (p->filled - start >= VMRI_CALL_FRAMES || env_preempt()) )
            return -ERESTART;
    }

    return vmri_pages_pack(mr->k.dev, p);
}

static int mr_unpin(struct vmri_mr *mr)
{
    struct vmri_dev *dev = mr->k.dev;
    struct vmri_pages *p = &mr->k.range.pages;
    const uint32_t start = p->filled;
    int ret = p->packing ? vmri_pages_pack(dev, p) : 0;

    if ( ret )
        return ret;

    while ( p->filled )
    {
        env_frame_put(vmri_pages_pop(dev, p), mr_writable(mr));

        if ( p->filled && !(p->filled % VMRI_FRAME_BATCH) &&
             (start - p->filled >= VMRI_CALL_FRAMES || env_preempt()) )
            return -ERESTART;
    }

    return 0;
}

/* ---- pending MRs ---- */

void vmri_mr_pend(struct vmri_mr *mr, enum vmri_mr_state state, int error)
{
    struct vmri_dev *dev = mr->k.dev;

    env_lock(&dev->lock);
    mr->state = state;
    mr->error = error;
    mr->k.busy = true;
    list_add_tail(&mr->pending, &dev->pending_mrs);
    env_unlock(&dev->lock);
}

void vmri_mr_unpend(struct vmri_mr *mr)
{
    struct vmri_dev *dev = mr->k.dev;

    env_lock(&dev->lock);
    list_del(&mr->pending);
    mr->state = VMRI_MR_LIVE;
    mr->k.live = true;
    mr->k.busy = false;
    env_unlock(&dev->lock);
}

/* What a continuation knows it by: the index of its key. */
static uint32_t mr_ticket(const struct vmri_mr *mr)
{
    return mr->k.key >> vmri_format_key.index_shift;
}

/* Unless vmri_dev_close has been, or is, faster. */
int vmri_mr_continue(struct vmri_dev *dev, struct vmri_call *call,
                     struct vmri_mr **out)
{
    struct vmri_mr *mr;
    int ret = -ENODEV;

    env_lock(&dev->lock);
    list_for_each_entry ( mr, &dev->pending_mrs, pending )
    {
        if ( mr_ticket(mr) != call->ticket )
            continue;

        ret = mr->k.busy ? -ERESTART : 0;
        mr->k.busy = true;
        *out = mr;
        break;
    }
    env_unlock(&dev->lock);

    if ( ret == -ENODEV )
        call->ticket = 0;

    return ret;
}

int vmri_mr_stop(struct vmri_mr *mr, struct vmri_call *call)
{
    call->ticket = mr_ticket(mr);
    vmri_key_unclaim(&mr->k);

    return -ERESTART;
}

void vmri_mr_give_up(struct vmri_mr *mr, int error)
{
    struct vmri_dev *dev = mr->k.dev;

    env_lock(&dev->lock);
    mr->state = VMRI_MR_UNPINNING;
    mr->error = error;
    env_unlock(&dev->lock);
}

void vmri_mr_free(struct vmri_mr *mr)
{
    struct vmri_dev *dev = mr->k.dev;

    if ( mr->k.twin )
        vmri_twin_leave_mr(dev, mr->k.twin);
    vmri_uncharge(dev, VMRI_RES_PINNED, mr->k.range.pages.nr);
    vmri_pages_free(dev, &mr->k.range.pages);
    if ( mr->k.range.pd )
        vmri_unuse(dev, mr->k.range.pd);
    vmri_free(dev, mr, sizeof(*mr));
    vmri_uncharge(dev, VMRI_RES_MR, 1);
}

int vmri_mr_demolish(struct vmri_mr *mr, struct vmri_call *call)
{
    struct vmri_dev *dev = mr->k.dev;

    if ( mr_unpin(mr) )
        return vmri_mr_stop(mr, call);

    call->ticket = 0;

    env_lock(&dev->lock);
    list_del(&mr->pending);
    env_unlock(&dev->lock);

    vmri_table_release(&dev->keys, mr->k.key);
    vmri_mr_free(mr);

    return 0;
}

/*
 * One that no call is at, made busy; NULL: none.  *idle: nothing is pending at
 * all.
 */
static struct vmri_mr *claim_abandoned(struct vmri_dev *dev, bool *idle)
{
    struct vmri_mr *mr;
    bool found = false;

    env_lock(&dev->lock);
    *idle = list_empty(&dev->pending_mrs);
    list_for_each_entry ( mr, &dev->pending_mrs, pending )
        if ( !mr->k.busy )
        {
            found = mr->k.busy = true;
            break;
        }
    if ( found && mr->state == VMRI_MR_PINNING )
    {
        mr->state = VMRI_MR_UNPINNING;
        mr->error = -ENODEV;
    }
    env_unlock(&dev->lock);

    return found ? mr : NULL;
}

int vmri_mr_reap(struct vmri_dev *dev)
{
    struct vmri_call call = { .again = true };

    do {
        bool idle;
        struct vmri_mr *mr = claim_abandoned(dev, &idle);

        if ( !mr )
            return idle ? 0 : -ERESTART;
        if ( vmri_mr_demolish(mr, &call) )
            return -ERESTART;
    } while ( !env_preempt() );

    return -ERESTART;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
