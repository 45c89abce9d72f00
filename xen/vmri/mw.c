/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: memory windows (IBTA 1.4, 10.6.7): remote access to a part of a memory
 * region, given and taken away by requests.
 *
 * A window of type 1 belongs to a PD and may be bound anew at any time.  One
 * of type 2, which is 2B here, is bound to the queue pair that bound it, too,
 * must be unbound to be bound, and is unbound by an invalidation.  While a
 * window is bound its region, of which it has the pages, stays what it is.
 */
#include "internal.h"

#define UNBIND_MAX  64          /* windows in one call */

static struct vmri_mw *mw_of(struct vmri_key *k)
{
    return container_of(k, struct vmri_mw, k);
}

/* ---- allocate, free ---- */

static void mw_release(struct vmri_dev *dev, struct vmri_mw *mw)
{
    if ( mw->k.range.pd )
        vmri_unuse(dev, mw->k.range.pd);
    vmri_free(dev, mw, sizeof(*mw));
    vmri_uncharge(dev, VMRI_RES_MW, 1);
}

static int mw_make(struct vmri_dev *dev, const struct vmri_mw_alloc *arg,
                   struct vmri_mw **out)
{
    struct vmri_mw *mw;
    int ret = vmri_charge(dev, VMRI_RES_MW, 1);

    if ( ret )
        return ret;

    mw = vmri_alloc(dev, sizeof(*mw));
    if ( !mw )
    {
        vmri_uncharge(dev, VMRI_RES_MW, 1);
        return -ENOMEM;
    }

    mw->k.dev = dev;
    mw->k.kind = VMRI_KEY_MW;
    mw->k.busy = true;
    mw->type2 = arg->type == 2;
    INIT_LIST_HEAD(&mw->bound);
    mw->k.range.pd = vmri_use(dev, &dev->pds, arg->pd);
    ret = mw->k.range.pd ? vmri_key_reserve(&mw->k, VMRI_HANDLE_ANY)
                         : -ENOENT;

    if ( ret )
        mw_release(dev, mw);
    else
        *out = mw;

    return ret;
}

int vmri_mw_alloc(struct vmri_dev *dev, struct vmri_mw_alloc *arg)
{
    struct vmri_mw *mw = NULL;
    int ret;

    if ( arg->reserved || (arg->type != 1 && arg->type != 2) )
        return -EINVAL;

    ret = mw_make(dev, arg, &mw);
    if ( ret )
        return ret;

    arg->key = mw->k.key;
    ret = vmri_publish_idle(dev, &dev->keys, mw->k.key, &mw->k);
    if ( ret )
    {
        vmri_table_release(&dev->keys, mw->k.key);
        mw_release(dev, mw);
        return ret;
    }

    env_lock(&dev->lock);
    list_add_tail(&mw->list, &dev->mws);
    mw->k.busy = false;
    env_unlock(&dev->lock);

    return 0;
}

/* A claimed one. */
static void mw_destroy(struct vmri_mw *mw)
{
    struct vmri_dev *dev = mw->k.dev;

    vmri_mw_unbind(mw);
    vmri_key_kill(&mw->k);

    env_lock(&dev->lock);
    list_del(&mw->list);
    env_unlock(&dev->lock);

    vmri_table_release(&dev->keys, mw->k.key);
    mw_release(dev, mw);
}

int vmri_mw_free(struct vmri_dev *dev, uint32_t key)
{
    struct vmri_key *k;
    int ret = vmri_key_claim(dev, key, VMRI_KEY_MW, &k);

    if ( !ret )
        mw_destroy(mw_of(k));

    return ret;
}

/* ---- unbind ---- */

void vmri_mw_unbind(struct vmri_mw *mw)
{
    struct vmri_dev *dev = mw->k.dev;

    vmri_table_idle(&dev->keys, mw->k.key);

    env_lock(&dev->lock);
    if ( mw->mr )
        mw->mr->users--;
    mw->mr = NULL;
    mw->k.live = false;
    mw->k.qp = NULL;
    list_del_init(&mw->bound);
    env_unlock(&dev->lock);
}

/*
 * Make the first window of a QP busy, having waited for who changes it; NULL:
 * there is none.
 */
static struct vmri_mw *claim_bound(struct vmri_qp *qp)
{
    struct vmri_dev *dev = qp->dev;
    struct vmri_mw *mw;
    bool busy;

    do {
        env_lock(&dev->lock);
        env_store(&qp->leaving, true);
        mw = list_first_entry_or_null(&qp->mws, struct vmri_mw, bound);
        busy = mw && mw->k.busy;
        if ( mw )
            mw->k.busy = true;
        env_unlock(&dev->lock);
        if ( busy )
            env_relax();
    } while ( busy );

    return mw;
}

int vmri_mw_leave_qp(struct vmri_qp *qp)
{
    struct vmri_mw *mw;
    unsigned int n = 0;

    while ( (mw = claim_bound(qp)) != NULL )
    {
        vmri_mw_unbind(mw);
        vmri_key_unclaim(&mw->k);
        if ( ++n == UNBIND_MAX || env_preempt() )
            return -ERESTART;
    }

    return 0;
}

int vmri_mw_close(struct vmri_dev *dev)
{
    unsigned int n = 0;

    do {
        struct vmri_mw *mw;
        bool busy;

        env_lock(&dev->lock);
        mw = list_first_entry_or_null(&dev->mws, struct vmri_mw, list);
        busy = mw && mw->k.busy;
        if ( mw )
            mw->k.busy = true;
        env_unlock(&dev->lock);

        if ( !mw )
            return 0;
        if ( busy )
            break;
        mw_destroy(mw);
    } while ( ++n < UNBIND_MAX && !env_preempt() );

    return -ERESTART;
}

/* ---- bind ---- */

static bool unbinds(const struct vmri_send_wqe *wqe)
{
    return !wqe->u.bind.length;
}

/* What the request says of the window itself.  Under dev->lock. */
static uint16_t check_window(const struct vmri_qp *qp, struct vmri_mw **out)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    uint32_t allowed = VMRI_ACCESS_MW;
    struct vmri_key *k;
    struct vmri_mw *mw;
    uint16_t verr;

    k = vmri_key_peek(qp, qp->rings.pd, wqe->u.bind.mw_key, VMRI_KEY_MW,
                      &verr);
    if ( !k )
        return verr;

    *out = mw = mw_of(k);
    if ( !mw->type2 )
        allowed &= ~VMRI_ACCESS_ZERO_BASED;

    if ( !vmri_key_renames(wqe->u.bind.mw_key, wqe->u.bind.new_key) )
        return VMRI_VERR_KEY;
    if ( (wqe->u.bind.access & ~allowed) || wqe->u.bind.reserved )
        return VMRI_VERR_FLAGS;
    if ( mw->type2 && (k->live || qp->leaving) )
        return VMRI_VERR_STATE;
    if ( mw->type2 && unbinds(wqe) )
        return VMRI_VERR_LENGTH;

    return VMRI_VERR_NONE;
}

/*
 * And of the region.  To have one written to, by a peer, its owner must be
 * allowed to write there.  Under dev->lock.
 */
static uint16_t check_region(const struct vmri_qp *qp, struct vmri_key **mr)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    const unsigned int kinds = VMRI_KEY_MR |
                               (qp->rings.kernel ? VMRI_KEY_FAST : 0);
    const struct vmri_range *r;
    uint16_t verr;

    *mr = vmri_key_peek(qp, qp->rings.pd, wqe->u.bind.mr_key, kinds, &verr);
    if ( verr )
        return verr;
    if ( !(*mr)->live )
        return VMRI_VERR_STATE;

    r = &(*mr)->range;
    if ( !(r->access & VMRI_ACCESS_MW_BIND) ||
         !vmri_rights_valid(wqe->u.bind.access |
                            (r->access & VMRI_ACCESS_LOCAL_WRITE)) )
        return VMRI_VERR_RIGHTS;

    if ( !vmri_range_holds(r, wqe->u.bind.addr, wqe->u.bind.length) )
        return VMRI_VERR_BOUNDS;

    return VMRI_VERR_NONE;
}

/* Make the window busy and count it with its new region.  Under dev->lock. */
static void begin(struct vmri_qp *qp, struct vmri_mw *mw, struct vmri_key *mr)
{
    mw->k.busy = true;
    if ( mr )
        mr->users++;
    if ( mw->type2 )
        list_add_tail(&mw->bound, &qp->mws);
}

/* The part of the region that the window, which is idle, shows. */
static void set_range(struct vmri_mw *mw, const struct vmri_qp *qp,
                      const struct vmri_key *mr)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    const uint64_t addr = wqe->u.bind.addr;
    struct vmri_range *r = &mw->k.range;

    mw->k.qp = mw->type2 ? qp : NULL;
    r->access = wqe->u.bind.access & ~VMRI_ACCESS_ZERO_BASED;
    r->iova = wqe->u.bind.access & VMRI_ACCESS_ZERO_BASED ? 0 : addr;
    r->length = wqe->u.bind.length;
    r->offset = addr - mr->range.iova + mr->range.offset;
    r->pinned = mr->range.pinned;
    r->version = vmri_new_life();
    r->pages = mr->range.pages;
}

static void finish(struct vmri_mw *mw, struct vmri_key *mr, uint32_t name)
{
    struct vmri_dev *dev = mw->k.dev;

    env_lock(&dev->lock);
    if ( mw->mr )
        mw->mr->users--;
    mw->mr = mr;
    vmri_table_rename(&dev->keys, mw->k.key, name);
    mw->k.key = name;
    mw->k.live = mr;
    if ( mr )
        vmri_table_live(&dev->keys, name);
    mw->k.busy = false;
    env_unlock(&dev->lock);
}

uint16_t vmri_mw_bind(struct vmri_qp *qp)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    struct vmri_dev *dev = qp->dev;
    struct vmri_key *mr = NULL;
    struct vmri_mw *mw = NULL;
    uint16_t verr;

    env_lock(&dev->lock);
    verr = check_window(qp, &mw);
    if ( !verr && !unbinds(wqe) )
        verr = check_region(qp, &mr);
    if ( !verr )
        begin(qp, mw, mr);
    env_unlock(&dev->lock);

    if ( verr )
        return verr;

    /* What it has shown so far is let go of before it shows something else. */
    vmri_table_idle(&dev->keys, mw->k.key);
    if ( mr )
        set_range(mw, qp, mr);
    finish(mw, mr, wqe->u.bind.new_key);

    return VMRI_VERR_NONE;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
