/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: shared receive queues (IBTA 1.4, 10.2.9), for any number of queue
 * pairs, or for XRC targets (annex A14).
 *
 * A receive is copied out of the ring when it is taken, so nothing but this
 * file and the lock ever meets the region: it may be exchanged at any time.
 */
#include "internal.h"

int64_t vmri_srq_posted(struct vmri_srq *srq)
{
    int64_t posted = srq->dead ? -EINVAL : vmri_wq_posted(&srq->wq);

    if ( posted >= 0 )
        return posted;

    if ( !srq->dead )
    {
        env_store(&srq->dead, true);
        vmri_event_raise(srq->eq, &srq->source, VMRI_EVENT_SRQ_ERR);
    }

    return -EINVAL;
}

/* Fewer than the limit are left: say so once.  By srq->lock. */
static void check_limit(struct vmri_srq *srq)
{
    int64_t posted;

    if ( !srq->limit )
        return;

    posted = vmri_srq_posted(srq);
    if ( posted >= 0 && posted < srq->limit )
    {
        env_store(&srq->limit, 0);
        vmri_event_raise(srq->eq, &srq->source, VMRI_EVENT_SRQ_LIMIT);
    }
}

int vmri_srq_take(struct vmri_srq *srq, struct vmri_qp *qp, uint64_t want,
                  struct vmri_rx *rx, struct vmri_sge *copy)
{
    int rc = -EINVAL;

    env_lock(&srq->lock);

    if ( vmri_srq_posted(srq) >= 0 )
        rc = vmri_recv_fetch(&srq->rings, &srq->wq, rx, copy);
    if ( rc > 0 && !vmri_cursor_holds(&rx->sgl, want) )
        rc = 0;

    if ( rc > 0 )
    {
        rx->srqn = srq->xrcd ? srq->handle : 0;
        env_store(&srq->wq.cons, srq->wq.cons + 1);
        env_store_release(&srq->wq.hdr->cons, srq->wq.cons);
        check_limit(srq);
    }

    env_unlock(&srq->lock);

    if ( rc )
        vmri_srq_leave(qp);

    return rc;
}

struct vmri_srq *vmri_srq_get(const struct vmri_qp *target, uint32_t srqn)
{
    struct vmri_table *t = &target->dev->srqs;
    struct vmri_srq *srq = vmri_table_get(t, srqn);

    if ( srq && srq->xrcd != target->xrcd )
    {
        vmri_table_put(t, srqn);
        srq = NULL;
    }

    return srq;
}

void vmri_srq_put(struct vmri_srq *srq)
{
    vmri_table_put(&srq->dev->srqs, srq->handle);
}

/* ---- creation and destruction ---- */

static void unuse_all(struct vmri_dev *dev, struct vmri_srq *srq)
{
    if ( srq->rings.pd )
        vmri_unuse(dev, srq->rings.pd);
    if ( srq->eq )
        vmri_unuse(dev, srq->eq);
    if ( srq->xrcd )
        vmri_unuse(dev, srq->xrcd);
    if ( srq->cq )
        vmri_unuse(dev, srq->cq);
}

static bool use_all(struct vmri_dev *dev, struct vmri_srq *srq,
                    const struct vmri_srq_create *arg)
{
    srq->rings.pd = vmri_use(dev, &dev->pds, arg->pd);
    srq->eq = vmri_use(dev, &dev->eqs, arg->eq);
    if ( arg->xrcd )
    {
        srq->xrcd = vmri_use(dev, &dev->xrcds, arg->xrcd);
        srq->cq = vmri_use(dev, &dev->cqs, arg->cq);
    }

    return srq->rings.pd && srq->eq &&
           (!arg->xrcd || (srq->xrcd && srq->cq));
}

/* As vmri_region_destroy. */
static int srq_free(struct vmri_dev *dev, struct vmri_srq *srq,
                    struct vmri_call *call, int error)
{
    struct vmri_region region = srq->rings.region;

    unuse_all(dev, srq);
    vmri_free(dev, srq, sizeof(*srq));
    vmri_uncharge(dev, VMRI_RES_SRQ, 1);

    return vmri_region_destroy(dev, &region, call, error);
}

/* Where the parts of an SRQ lie; the rest of wq and rings is filled in. */
static void set_layout(struct vmri_wq *wq, struct vmri_rings *rings,
                       const struct vmri_srq_create *arg)
{
    wq->offset = arg->offset;
    wq->log2_entries = arg->log2_entries;
    wq->log2_stride = arg->log2_stride;
    wq->max_sge = arg->max_sge;
    rings->kernel = arg->flags & VMRI_QPF_KERNEL;
    rings->ind_log2_entries = arg->ind_log2_entries;
    rings->ind_offset = arg->ind_offset;
}

/* An SRQ with all that it uses, but without number. */
static int srq_alloc(struct vmri_dev *dev, const struct vmri_srq_create *arg,
                     struct vmri_call *call, struct vmri_srq **out)
{
    struct vmri_srq *srq;
    uint64_t bytes;
    int rc = vmri_charge(dev, VMRI_RES_SRQ, 1);

    if ( rc )
        return rc;

    srq = vmri_alloc(dev, sizeof(*srq));
    if ( !srq )
    {
        vmri_uncharge(dev, VMRI_RES_SRQ, 1);
        return -ENOMEM;
    }

    srq->dev = dev;
    srq->limit = arg->limit;
    env_lock_init(&srq->lock, LEVEL_SRQ);
    INIT_LIST_HEAD(&srq->waiters);
    INIT_LIST_HEAD(&srq->borrowers);
    set_layout(&srq->wq, &srq->rings, arg);

    bytes = vmri_layout_srq(&srq->wq, &srq->rings);
    rc = -EINVAL;
    if ( !bytes )
        goto free;

    rc = -ENOENT;
    if ( !use_all(dev, srq, arg) )
        goto free;

    rc = vmri_region_create(dev, &arg->frames, bytes, call,
                            &srq->rings.region);
    if ( rc )
        goto free;

    vmri_wq_init(&srq->wq, vmri_region_at(&srq->rings.region, 0), arg->offset,
                 arg->log2_entries, arg->log2_stride, arg->max_sge);
    srq->served = srq->wq.cons;
    *out = srq;

    return 0;

 free:
    /* It has no region yet: one that is being made waits by its ticket. */
    return srq_free(dev, srq, call, rc);
}

int vmri_srq_create(struct vmri_dev *dev, struct vmri_srq_create *arg,
                    struct vmri_call *call)
{
    struct vmri_srq *srq = NULL;
    int rc;

    if ( (arg->flags & ~VMRI_QPF_KERNEL) || arg->reserved ||
         !arg->xrcd != !arg->cq || arg->log2_entries > VMRI_MAX_WR_SHIFT ||
         arg->limit > 1U << arg->log2_entries )
        return -EINVAL;

    rc = srq_alloc(dev, arg, call, &srq);
    if ( rc )
        return rc;

    rc = vmri_table_reserve(&dev->srqs, VMRI_HANDLE_ANY, &srq->handle);
    if ( rc )
        goto free;

    vmri_source_init(&srq->source, srq->handle);
    arg->handle = srq->handle;
    rc = vmri_publish(dev, &dev->srqs, srq->handle, srq);
    if ( !rc )
        return 0;

    vmri_table_release(&dev->srqs, srq->handle);
 free:
    return srq_free(dev, srq, call, rc);
}

int cf_check vmri_srq_destroy(struct vmri_dev *dev, uint32_t handle,
                              struct vmri_call *call)
{
    struct vmri_srq *srq;
    void *obj;
    int rc = vmri_kill_unused(dev, &dev->srqs, handle, &obj);

    if ( rc )
        return rc;

    srq = obj;
    vmri_srq_disperse(srq);
    vmri_source_fini(srq->eq, &srq->source);
    vmri_table_release(&dev->srqs, handle);

    return srq_free(dev, srq, call, call->error);
}

/* ---- modification ---- */

/*
 * Go on in another region, which is then the old one.  The guest has put there
 * what is posted, and its index.  By srq->lock.
 */
static int exchange(struct vmri_srq *srq, struct vmri_wq *wq,
                    struct vmri_rings *rings)
{
    struct vmri_region old = srq->rings.region;

    wq->hdr = vmri_region_at(&rings->region, 0);
    wq->cons = srq->wq.cons;
    if ( vmri_wq_posted(wq) < 0 )
        return -EINVAL;

    env_store(&wq->hdr->cons, wq->cons);
    env_store(&wq->hdr->running, 0);

    env_lock(&srq->dev->park.lock);
    env_store(&wq->hdr->wait, vmri_srq_awaited(srq));
    srq->wq = *wq;
    env_unlock(&srq->dev->park.lock);

    srq->rings.region = rings->region;
    srq->rings.ind_log2_entries = rings->ind_log2_entries;
    srq->rings.ind_offset = rings->ind_offset;
    rings->region = old;

    return 0;
}

/* All that is asked for, or nothing.  By srq->lock. */
static int modify(struct vmri_srq *srq, const struct vmri_srq_modify *arg,
                  struct vmri_wq *wq, struct vmri_rings *rings)
{
    const bool resize = arg->mask & VMRI_SRQA_RESIZE;
    const bool limit = arg->mask & VMRI_SRQA_LIMIT;
    uint32_t entries = 1U << (resize ? wq : &srq->wq)->log2_entries;
    int rc;

    if ( vmri_srq_posted(srq) < 0 ||
         (limit ? arg->limit : srq->limit) > entries )
        return -EINVAL;

    rc = resize ? exchange(srq, wq, rings) : 0;
    if ( !rc && limit )
    {
        env_store(&srq->limit, arg->limit);
        check_limit(srq);
    }

    return rc;
}

/* The new layout, in new memory. */
static int new_region(struct vmri_srq *srq, const struct vmri_srq_modify *arg,
                      struct vmri_call *call, struct vmri_wq *wq,
                      struct vmri_rings *rings)
{
    uint64_t bytes;

    env_lock(&srq->lock);
    *wq = srq->wq;
    *rings = srq->rings;
    env_unlock(&srq->lock);

    wq->offset = arg->offset;
    wq->log2_entries = arg->log2_entries;
    rings->ind_log2_entries = arg->ind_log2_entries;
    rings->ind_offset = arg->ind_offset;
    bytes = vmri_layout_srq(wq, rings);

    return bytes ? vmri_region_create(srq->dev, &arg->frames, bytes, call,
                                      &rings->region)
                 : -EINVAL;
}

int vmri_srq_modify(struct vmri_dev *dev, const struct vmri_srq_modify *arg,
                    struct vmri_call *call)
{
    const bool resize = arg->mask & VMRI_SRQA_RESIZE;
    struct vmri_srq *srq;
    struct vmri_rings rings;
    struct vmri_wq wq;
    int rc = 0;

    /* Only a resize is ever continued. */
    if ( (call->ticket && !resize) ||
         (arg->mask & ~(VMRI_SRQA_RESIZE | VMRI_SRQA_LIMIT)) ||
         arg->reserved0[0] || arg->reserved0[1] || arg->reserved1 )
        return -EINVAL;

    srq = vmri_table_get(&dev->srqs, arg->handle);
    if ( !srq )
        return -ENOENT;

    if ( resize )
        rc = new_region(srq, arg, call, &wq, &rings);
    if ( rc )
        goto out;

    env_lock(&srq->lock);
    rc = modify(srq, arg, &wq, &rings);
    env_unlock(&srq->lock);

    /* The old one, or the new one that was not taken. */
    if ( resize )
        rc = vmri_region_destroy(dev, &rings.region, call, rc);
 out:
    vmri_srq_put(srq);

    return rc;
}

int vmri_srq_query(struct vmri_dev *dev, struct vmri_srq_query *arg)
{
    struct vmri_srq *srq = vmri_table_get(&dev->srqs, arg->handle);

    if ( !srq )
        return -ENOENT;

    env_lock(&srq->lock);
    arg->limit = srq->limit;
    arg->entries = 1U << srq->wq.log2_entries;
    arg->max_sge = srq->wq.max_sge;
    env_unlock(&srq->lock);

    vmri_srq_put(srq);

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
