/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: fast memory regions: the guest's kernel gives one memory by a request,
 * without a call, and has it taken away again by another, its own or its
 * peer's.
 *
 * Nothing is pinned.  The frames' numbers are kept as they were given, and
 * each is looked at when a copy comes to it, as those of VMRI_LKEY_FRAMES are.
 */
#include "internal.h"

static void fast_release(struct vmri_dev *dev, struct vmri_key *k)
{
    struct vmri_pd *pd = k->range.pd;

    vmri_pages_free(dev, &k->range.pages);
    vmri_free(dev, k, sizeof(*k));
    vmri_uncharge(dev, VMRI_RES_MR, 1);
    if ( pd )
        vmri_unuse(dev, pd);
}

/* One with room for its frames, so that no request needs memory. */
static int fast_make(struct vmri_dev *dev, const struct vmri_mr_alloc *arg,
                     struct vmri_key **out)
{
    struct vmri_key *k;
    int ret = vmri_charge(dev, VMRI_RES_MR, 1);

    BUILD_BUG_ON(VMRI_MAX_FAST_FRAMES * sizeof(env_frame_t) > VMRI_PAGE_SIZE);

    if ( ret )
        return ret;

    k = vmri_alloc(dev, sizeof(*k));
    if ( !k )
    {
        vmri_uncharge(dev, VMRI_RES_MR, 1);
        return -ENOMEM;
    }

    k->dev = dev;
    k->kind = VMRI_KEY_FAST;
    k->busy = true;
    ret = vmri_pages_init(dev, &k->range.pages, arg->max_frames);
    if ( !ret && !vmri_pages_next(dev, &k->range.pages) )
        ret = -ENOMEM;
    if ( !ret )
    {
        k->range.pd = vmri_use(dev, &dev->pds, arg->pd);
        ret = k->range.pd ? 0 : -ENOENT;
    }
    if ( !ret )
        ret = vmri_key_reserve(k, VMRI_HANDLE_ANY);

    if ( ret )
        fast_release(dev, k);
    else
        *out = k;

    return ret;
}

int vmri_fast_alloc(struct vmri_dev *dev, struct vmri_mr_alloc *arg)
{
    struct vmri_key *k;
    int ret;

    if ( arg->flags || !arg->max_frames ||
         arg->max_frames > VMRI_MAX_FAST_FRAMES )
        return -EINVAL;

    ret = fast_make(dev, arg, &k);
    if ( ret )
        return ret;

    arg->key = k->key;
    ret = vmri_publish_idle(dev, &dev->keys, k->key, k);
    if ( ret )
    {
        vmri_table_release(&dev->keys, k->key);
        fast_release(dev, k);
        return ret;
    }

    vmri_key_unclaim(k);

    return 0;
}

void vmri_fast_free(struct vmri_key *k)
{
    struct vmri_dev *dev = k->dev;

    vmri_key_kill(k);
    vmri_table_release(&dev->keys, k->key);
    fast_release(dev, k);
}

/* ---- the request ---- */

static bool list_in_page(uint64_t list, uint32_t frames)
{
    return !(list & (sizeof(uint64_t) - 1)) &&
           (list & (VMRI_PAGE_SIZE - 1)) + frames * sizeof(uint64_t) <=
           VMRI_PAGE_SIZE;
}

/*
 * May the fast MR of the request become what it says?  What it was called last
 * is not asked: a registration that was flushed has not named it.  Under
 * dev->lock.
 */
static uint16_t check_register(const struct vmri_qp *qp, struct vmri_key **out,
                               uint32_t *frames)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    uint32_t key = wqe->u.reg.key, room;
    uint16_t verr;

    *out = vmri_table_peek_slot(&qp->dev->keys, key);
    if ( *out )
        key = (*out)->key;
    *out = vmri_key_peek(qp, qp->rings.pd, key, VMRI_KEY_FAST, &verr);
    if ( verr )
        return verr;

    if ( (*out)->live )
        return VMRI_VERR_STATE;
    if ( !vmri_key_renames(wqe->u.reg.key, wqe->u.reg.new_key) )
        return VMRI_VERR_KEY;
    if ( wqe->u.reg.access & ~VMRI_ACCESS_MR )
        return VMRI_VERR_FLAGS;
    if ( !vmri_rights_valid(wqe->u.reg.access) )
        return VMRI_VERR_RIGHTS;

    room = (*out)->range.pages.chunks.nr;
    if ( !vmri_bounds_valid(wqe->u.reg.iova, wqe->u.reg.length) ||
         wqe->u.reg.offset >= VMRI_PAGE_SIZE ||
         wqe->u.reg.length > (uint64_t)room << VMRI_PAGE_SHIFT )
        return VMRI_VERR_BOUNDS;
    *frames = PFN_UP(wqe->u.reg.offset + wqe->u.reg.length);
    if ( *frames > room || !list_in_page(wqe->u.reg.list, *frames) )
        return VMRI_VERR_BOUNDS;

    return VMRI_VERR_NONE;
}

/*
 * The frames' numbers, out of the page where the request says that they are,
 * which the guest may change while it is read.
 */
static bool take_frames(struct vmri_key *k, uint64_t list, uint32_t frames)
{
    struct vmri_pages *p = &k->range.pages;
    env_frame_t frame;
    const uint8_t *page;
    uint64_t gfn;

    if ( env_frame_get(k->dev->domain, list >> VMRI_PAGE_SHIFT, false, &frame) )
        return false;

    page = env_map(frame);
    p->nr = env_nospec(frames, VMRI_MAX_FAST_FRAMES + 1);
    for ( p->filled = 0; p->filled < p->nr; p->filled++ )
    {
        vmri_copy_in(&gfn, page + (list & (VMRI_PAGE_SIZE - 1)) +
                           p->filled * sizeof(gfn), sizeof(gfn));
        *vmri_pages_next(k->dev, p) = gfn;
    }
    env_unmap(page);
    env_frame_put(frame, false);

    return true;
}

uint16_t vmri_fast_register(struct vmri_qp *qp)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    struct vmri_dev *dev = qp->dev;
    struct vmri_key *k;
    uint32_t frames;
    uint16_t verr;

    env_lock(&dev->lock);
    verr = check_register(qp, &k, &frames);
    if ( !verr )
        k->busy = true;
    env_unlock(&dev->lock);

    if ( verr )
        return verr;

    if ( take_frames(k, wqe->u.reg.list, frames) )
    {
        k->range.access = wqe->u.reg.access | VMRI_KEY_LOCAL_KERNEL;
        k->range.iova = wqe->u.reg.iova;
        k->range.length = wqe->u.reg.length;
        k->range.offset = wqe->u.reg.offset;
    }
    else
        verr = VMRI_VERR_FRAME;

    env_lock(&dev->lock);
    if ( !verr )
    {
        vmri_table_rename(&dev->keys, k->key, wqe->u.reg.new_key);
        k->key = wqe->u.reg.new_key;
        k->live = true;
        vmri_table_live(&dev->keys, k->key);
    }
    k->busy = false;
    env_unlock(&dev->lock);

    return verr;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
