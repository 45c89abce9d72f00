/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: completion queues.
 */
#include "internal.h"

static struct vmri_cq_hdr *cq_hdr(const struct vmri_cq *cq)
{
    return vmri_region_at(&cq->region, 0);
}

/*
 * Does the guest wait for this one, which may be one to be told of at once?  It
 * is told once.  By cq->lock.
 */
static always_inline bool cq_disarm(struct vmri_cq_hdr *hdr, bool solicited)
{
    uint32_t arm;

    /* The guest arms, then looks at prod; here it is the other way round. */
    env_mb();

    arm = env_load(&hdr->arm);
    if ( likely(arm == VMRI_ARM_NONE) )
        return false;
    if ( arm != VMRI_ARM_NEXT && (arm != VMRI_ARM_SOLICITED || !solicited) )
        return false;

    /* What it arms for between these two, it sees in the ring. */
    env_store(&hdr->arm, VMRI_ARM_NONE);

    return true;
}

static noinline void count_failure(const struct vmri_qp *qp,
                                   const struct vmri_cqe *cqe)
{
    if ( cqe->status == VMRI_WC_WR_FLUSH_ERR )
        vmri_count_qp(qp, flushed, 1);
    else
        vmri_count_qp(qp, errors, 1);
}

/* Where the next entry goes; NULL: there is no room, or once was none. */
static always_inline struct vmri_cqe *cq_room(const struct vmri_cq *cq,
                                              struct vmri_cq_hdr *hdr)
{
    const uint32_t size = 1U << cq->log2_entries;

    if ( unlikely(cq->overflow ||
                  cq->prod - env_load_acquire(&hdr->cons) >= size) )
        return NULL;

    return vmri_region_at(&cq->region, VMRI_RING_OFFSET +
                          (cq->prod & (size - 1)) * sizeof(struct vmri_cqe));
}

/* The entry is written. */
static always_inline void cq_publish(struct vmri_cq *cq,
                                     struct vmri_cq_hdr *hdr)
{
    const uint32_t prod = cq->prod + 1;

    env_store(&cq->prod, prod);
    env_store_release(&hdr->prod, prod);
}

/* There was no room: the CQ is dead, which is told once.  Gives up cq->lock. */
static noinline void cq_overflow(struct vmri_cq *cq)
{
    const bool first = !cq->overflow;

    if ( first )
    {
        env_store(&cq->overflow, true);
        env_store(&cq_hdr(cq)->overflow, 1);
    }
    env_unlock(&cq->lock);

    if ( first )
        vmri_event_raise(cq->eq, &cq->source, VMRI_EVENT_CQ_ERR);
}

bool vmri_cq_push(struct vmri_cq *cq, const struct vmri_qp *qp,
                  struct vmri_cqe *cqe)
{
    const bool solicited = cqe->status || (cqe->flags & VMRI_WC_SOLICITED);
    struct vmri_cq_hdr *hdr;
    struct vmri_cqe *at;
    bool raise;

    cqe->qpn = qp->qpn;

    env_lock(&cq->lock);
    hdr = cq_hdr(cq);
    at = cq_room(cq, hdr);
    if ( unlikely(!at) )
    {
        cq_overflow(cq);
        return false;
    }
    if ( !cqe->timestamp )
        cqe->timestamp = env_now();
    *at = *cqe;
    cq_publish(cq, hdr);
    raise = cq_disarm(hdr, solicited);
    env_unlock(&cq->lock);

    vmri_count(cq->dev, completions, 1);
    if ( unlikely(cqe->status) )
        count_failure(qp, cqe);
    if ( raise )
        vmri_event_raise(cq->eq, &cq->source, VMRI_EVENT_COMPLETION);

    return true;
}

bool vmri_cq_push_plain(struct vmri_cq *cq, uint32_t qpn, uint64_t wr_id,
                        uint64_t now, uint32_t bytes, uint32_t what)
{
    const size_t told = offsetof(struct vmri_cqe, vendor_err);
    struct vmri_cq_hdr *hdr;
    struct vmri_cqe *at;
    bool raise;

    env_lock(&cq->lock);
    hdr = cq_hdr(cq);
    at = cq_room(cq, hdr);
    if ( unlikely(!at) )
    {
        cq_overflow(cq);
        return false;
    }

    at->wr_id = wr_id;
    at->timestamp = now;
    at->qpn = qpn;
    at->byte_len = bytes;
    at->imm = 0;
    at->src_qp = 0;
    at->status = VMRI_WC_SUCCESS;
    at->opcode = what;
    at->flags = what >> 8;
    at->sl = 0;
    at->slid = 0;
    at->pkey_index = 0;
    memset((uint8_t *)at + told, 0, sizeof(*at) - told);

    cq_publish(cq, hdr);
    raise = cq_disarm(hdr, (what >> 8) & VMRI_WC_SOLICITED);
    env_unlock(&cq->lock);

    vmri_count(cq->dev, completions, 1);
    if ( raise )
        vmri_event_raise(cq->eq, &cq->source, VMRI_EVENT_COMPLETION);

    return true;
}

/* As vmri_region_destroy. */
static int cq_free(struct vmri_dev *dev, struct vmri_cq *cq,
                   struct vmri_call *call, int error)
{
    struct vmri_region region = cq->region;

    vmri_unuse(dev, cq->eq);
    vmri_free(dev, cq, sizeof(*cq));
    vmri_uncharge(dev, VMRI_RES_CQ, 1);

    return vmri_region_destroy(dev, &region, call, error);
}

static bool cq_size_valid(uint8_t log2_entries, const uint8_t reserved[3])
{
    return log2_entries < 32 && 1U << log2_entries <= VMRI_MAX_CQE &&
           !reserved[0] && !reserved[1] && !reserved[2];
}

/* Pin and map memory for a ring of that many entries, with an empty header. */
static int cq_region(struct vmri_dev *dev, const struct vmri_frames *frames,
                     uint8_t log2_entries, struct vmri_call *call,
                     struct vmri_region *region)
{
    int ret = vmri_region_create(dev, frames, VMRI_RING_OFFSET +
                                 (sizeof(struct vmri_cqe) << log2_entries),
                                 call, region);

    if ( !ret )
        memset(vmri_region_at(region, 0), 0, sizeof(struct vmri_cq_hdr));

    return ret;
}

/* A CQ with its EQ and memory, without number. */
static int cq_alloc(struct vmri_dev *dev, const struct vmri_cq_create *arg,
                    struct vmri_call *call, struct vmri_cq **out)
{
    struct vmri_cq *cq = vmri_alloc(dev, sizeof(*cq));
    int ret = -ENOENT;

    if ( !cq )
        return -ENOMEM;

    cq->dev = dev;
    cq->log2_entries = arg->log2_entries;
    env_lock_init(&cq->lock, LEVEL_CQ);

    cq->eq = vmri_use(dev, &dev->eqs, arg->eq);
    if ( !cq->eq )
        goto free;

    ret = cq_region(dev, &arg->frames, arg->log2_entries, call, &cq->region);
    if ( ret )
        goto unuse;

    *out = cq;

    return 0;

 unuse:
    vmri_unuse(dev, cq->eq);
 free:
    vmri_free(dev, cq, sizeof(*cq));

    return ret;
}

int vmri_cq_create(struct vmri_dev *dev, struct vmri_cq_create *arg,
                   struct vmri_call *call)
{
    struct vmri_cq *cq;
    int ret;

    if ( !cq_size_valid(arg->log2_entries, arg->reserved0) || arg->reserved1 )
        return -EINVAL;

    ret = vmri_charge(dev, VMRI_RES_CQ, 1);
    if ( ret )
        return ret;

    ret = cq_alloc(dev, arg, call, &cq);
    if ( ret )
    {
        vmri_uncharge(dev, VMRI_RES_CQ, 1);
        return ret;
    }

    ret = vmri_table_reserve(&dev->cqs, VMRI_HANDLE_ANY, &cq->handle);
    if ( ret )
        goto free;

    vmri_source_init(&cq->source, cq->handle);
    arg->handle = cq->handle;
    ret = vmri_publish(dev, &dev->cqs, cq->handle, cq);
    if ( !ret )
        return 0;

    vmri_table_release(&dev->cqs, cq->handle);
 free:
    return cq_free(dev, cq, call, ret);
}

/*
 * Go on in *region, which then is the old one.  What the guest arms while this
 * happens may be lost: it was told not to.  By cq->lock.
 */
static int cq_move(struct vmri_cq *cq, uint8_t log2_entries,
                   struct vmri_region *region)
{
    struct vmri_cq_hdr *hdr = vmri_region_at(region, 0), *old = cq_hdr(cq);
    uint32_t cons = env_load_acquire(&old->cons);
    struct vmri_region moved = *region;

    if ( cq->overflow || cq->prod - cons > 1U << log2_entries )
        return -EINVAL;

    env_store(&hdr->cons, cons);
    env_store(&hdr->dead, env_load(&old->dead));
    env_store(&hdr->arm, env_load(&old->arm));
    env_store_release(&hdr->prod, cq->prod);

    *region = cq->region;
    cq->region = moved;
    cq->log2_entries = log2_entries;

    return 0;
}

int vmri_cq_resize(struct vmri_dev *dev, struct vmri_cq_resize *arg,
                   struct vmri_call *call)
{
    struct vmri_region region;
    struct vmri_cq *cq;
    int ret;

    if ( !cq_size_valid(arg->log2_entries, arg->reserved0) || arg->reserved1 )
        return -EINVAL;

    cq = vmri_table_get(&dev->cqs, arg->handle);
    if ( !cq )
        return -ENOENT;

    ret = cq_region(dev, &arg->frames, arg->log2_entries, call, &region);
    if ( !ret )
    {
        env_lock(&cq->lock);
        ret = cq_move(cq, arg->log2_entries, &region);
        if ( !ret )
            arg->prod = cq->prod;
        env_unlock(&cq->lock);

        /* The old one, or after a failure the new one. */
        call->done = !ret;
        ret = vmri_region_destroy(dev, &region, call, ret);
    }

    vmri_table_put(&dev->cqs, arg->handle);

    return ret;
}

int cf_check vmri_cq_destroy(struct vmri_dev *dev, uint32_t handle,
                             struct vmri_call *call)
{
    struct vmri_cq *cq;
    void *obj;
    int ret = vmri_kill_unused(dev, &dev->cqs, handle, &obj);

    if ( ret )
        return ret;

    cq = obj;
    vmri_source_fini(cq->eq, &cq->source);
    vmri_table_release(&dev->cqs, handle);

    return cq_free(dev, cq, call, call->error);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
