/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: queue pairs, from their creation to their end.
 */
#include "internal.h"

/* A queue's place in the region. */
struct extent {
    uint64_t start;
    uint64_t end;
};

static bool overlap(const struct extent *a, const struct extent *b)
{
    return a->start < a->end && b->start < b->end &&
           a->start < b->end && b->start < a->end;
}

/* Entries of a power of two that fit a page and do not cross one. */
static bool extent_init(struct extent *e, uint32_t offset,
                        unsigned int entries, unsigned int stride)
{
    if ( offset & ((1U << stride) - 1) )
        return false;

    e->start = offset;
    e->end = offset + (1ULL << (entries + stride));

    return true;
}

static bool layout_send(const struct vmri_qp_create *arg, struct extent *e)
{
    uint32_t room;

    if ( !arg->sq_log2_stride )
        return !arg->sq_log2_entries && !arg->sq_offset &&
               !arg->max_send_sge && !arg->max_inline;

    if ( arg->sq_log2_stride < 6 || arg->sq_log2_stride > VMRI_PAGE_SHIFT ||
         arg->sq_log2_entries > VMRI_MAX_WR_SHIFT ||
         arg->max_send_sge > VMRI_MAX_SGE ||
         arg->max_inline > VMRI_MAX_INLINE )
        return false;

    room = (1U << arg->sq_log2_stride) - sizeof(struct vmri_send_wqe);

    return arg->max_send_sge * sizeof(struct vmri_sge) <= room &&
           arg->max_inline <= room &&
           extent_init(e, arg->sq_offset, arg->sq_log2_entries,
                       arg->sq_log2_stride);
}

static bool layout_receive(const struct vmri_qp_create *arg, struct extent *e)
{
    uint32_t room;

    if ( !arg->rq_log2_stride )
        return !arg->rq_log2_entries && !arg->rq_offset && !arg->max_recv_sge;

    if ( arg->rq_log2_stride < 5 || arg->rq_log2_stride > VMRI_PAGE_SHIFT ||
         arg->rq_log2_entries > VMRI_MAX_WR_SHIFT ||
         arg->max_recv_sge > VMRI_MAX_SGE )
        return false;

    room = (1U << arg->rq_log2_stride) - sizeof(struct vmri_recv_wqe);

    return arg->max_recv_sge * sizeof(struct vmri_sge) <= room &&
           extent_init(e, arg->rq_offset, arg->rq_log2_entries,
                       arg->rq_log2_stride);
}

static bool layout_indirect(const struct vmri_qp_create *arg, struct extent *e)
{
    if ( !arg->ind_log2_entries )
        return !arg->ind_offset;

    return (arg->flags & VMRI_QPF_KERNEL) &&
           arg->ind_log2_entries <= VMRI_MAX_INDIRECT_SHIFT &&
           extent_init(e, arg->ind_offset, arg->ind_log2_entries, 4);
}

/* The bytes that the region must have, or 0 when its parts do not fit. */
static uint64_t layout(const struct vmri_qp_create *arg)
{
    struct extent part[4] = { { 0, sizeof(struct vmri_qp_hdr) } };
    uint64_t end = 0;
    unsigned int i, j;

    if ( !layout_send(arg, &part[1]) || !layout_receive(arg, &part[2]) ||
         !layout_indirect(arg, &part[3]) )
        return 0;

    for ( i = 0; i < ARRAY_SIZE(part); i++ )
    {
        for ( j = 0; j < i; j++ )
            if ( overlap(&part[i], &part[j]) )
                return 0;
        if ( part[i].end > end )
            end = part[i].end;
    }

    return end;
}

static int check_create(const struct vmri_qp_create *arg)
{
    bool kernel = arg->flags & VMRI_QPF_KERNEL;

    if ( arg->srq || arg->reserved0[0] || arg->reserved0[1] ||
         arg->reserved0[2] || arg->reserved1 || arg->xrcd || arg->reserved2 ||
         (arg->flags & ~VMRI_QPF_KERNEL) )
        return -EINVAL;

    switch ( arg->type )
    {
    case VMRI_QPT_SMI:
    case VMRI_QPT_GSI:
        return kernel && !arg->qpn ? 0 : -EINVAL;

    case VMRI_QPT_RC:
    case VMRI_QPT_UC:
    case VMRI_QPT_UD:
        return 0;

    default:
        return -EOPNOTSUPP;
    }
}

static void wq_init(struct vmri_wq *wq, struct vmri_wq_hdr *hdr,
                    uint32_t offset, uint8_t log2_entries, uint8_t log2_stride,
                    uint8_t max_sge)
{
    if ( !log2_stride )
        return;

    *wq = (struct vmri_wq){
        .hdr = hdr,
        .offset = offset,
        .log2_entries = log2_entries,
        .log2_stride = log2_stride,
        .max_sge = max_sge,
        .cons = env_load(&hdr->prod),
    };
    env_store(&hdr->cons, wq->cons);
    env_store(&hdr->running, 0);
    env_store(&hdr->wait, 0);
}

/* A number that no queue pair had before, from one reset to the next. */
static uint64_t new_life(void)
{
    static uint64_t lives;      /* atomic */

    return env_fetch_add(&lives, 1);
}

static void qp_init(struct vmri_qp *qp, const struct vmri_qp_create *arg)
{
    struct vmri_qp_hdr *hdr = vmri_region_at(&qp->rings.region, 0);

    qp->rings.kernel = arg->flags & VMRI_QPF_KERNEL;
    qp->rings.ind_log2_entries = arg->ind_log2_entries;
    qp->rings.ind_offset = arg->ind_offset;
    qp->max_inline = arg->max_inline;
    qp->life = new_life();
    qp->attr.port = 1;
    qp->attr.path_mtu = 5;
    env_lock_init(&qp->lock, LEVEL_QP);
    qp->wheel_level = VMRI_WHEEL_LEVELS;
    INIT_LIST_HEAD(&qp->wheel);

    wq_init(&qp->sq, &hdr->sq, arg->sq_offset, arg->sq_log2_entries,
            arg->sq_log2_stride, arg->max_send_sge);
    wq_init(&qp->rq, &hdr->rq, arg->rq_offset, arg->rq_log2_entries,
            arg->rq_log2_stride, arg->max_recv_sge);
}

static void unuse_all(struct vmri_dev *dev, struct vmri_qp *qp)
{
    if ( qp->rings.pd )
        vmri_unuse(dev, qp->rings.pd);
    if ( qp->scq )
        vmri_unuse(dev, qp->scq);
    if ( qp->rcq )
        vmri_unuse(dev, qp->rcq);
    if ( qp->eq )
        vmri_unuse(dev, qp->eq);
}

static bool use_all(struct vmri_dev *dev, struct vmri_qp *qp,
                    const struct vmri_qp_create *arg)
{
    qp->rings.pd = vmri_use(dev, &dev->pds, arg->pd);
    qp->scq = vmri_use(dev, &dev->cqs, arg->send_cq);
    qp->rcq = vmri_use(dev, &dev->cqs, arg->recv_cq);
    qp->eq = vmri_use(dev, &dev->eqs, arg->eq);

    return qp->rings.pd && qp->scq && qp->rcq && qp->eq;
}

static size_t qp_bytes(uint8_t type)
{
    return sizeof(struct vmri_qp) +
           (vmri_type_datagram(type) ? VMRI_MAX_SGE * sizeof(struct vmri_sge)
                                     : 0);
}

static int qp_alloc(struct vmri_dev *dev, uint8_t type,
                    struct vmri_qp **result)
{
    struct vmri_qp *qp;
    int rc = vmri_charge(dev, VMRI_RES_QP, 1);

    if ( rc )
        return rc;

    qp = vmri_alloc(dev, qp_bytes(type));
    if ( !qp )
    {
        vmri_uncharge(dev, VMRI_RES_QP, 1);
        return -ENOMEM;
    }

    qp->dev = dev;
    qp->type = type;
    qp->counters = vmri_type_counters(dev, type);
    if ( vmri_type_datagram(type) )
        qp->rx_sge = (struct vmri_sge *)(qp + 1);
    *result = qp;

    return 0;
}

static void qp_free(struct vmri_dev *dev, struct vmri_qp *qp)
{
    unuse_all(dev, qp);
    vmri_free(dev, qp, qp_bytes(qp->type));
    vmri_uncharge(dev, VMRI_RES_QP, 1);
}

/* The number to ask the table for. */
static uint32_t wanted_number(const struct vmri_qp_create *arg)
{
    switch ( arg->type )
    {
    case VMRI_QPT_SMI:
        return 0;

    case VMRI_QPT_GSI:
        return 1;

    default:
        return arg->qpn ?: VMRI_HANDLE_ANY;
    }
}

int vmri_qp_create(struct vmri_dev *dev, struct vmri_qp_create *arg,
                   struct vmri_call *call)
{
    uint64_t bytes = layout(arg);
    struct vmri_qp *qp;
    uint32_t qpn;
    int rc = check_create(arg);

    if ( rc )
        return rc;
    if ( !bytes || arg->qpn == 1 || arg->qpn >> 24 )
        return -EINVAL;

    rc = qp_alloc(dev, arg->type, &qp);
    if ( rc )
        return rc;

    rc = -ENOENT;
    if ( !use_all(dev, qp, arg) )
        goto free;

    rc = vmri_region_create(dev, &arg->frames, bytes, call,
                            &qp->rings.region);
    if ( rc )
        goto free;

    rc = vmri_table_reserve(&dev->qps, wanted_number(arg), &qpn);
    if ( rc )
        goto region;

    qp->qpn = qpn;
    vmri_source_init(&qp->source, qpn);
    qp_init(qp, arg);

    rc = vmri_publish(dev, &dev->qps, qpn, qp);
    if ( rc )
        goto release;

    arg->qpn = qpn;

    return 0;

 release:
    vmri_table_release(&dev->qps, qpn);
 region:
    vmri_region_destroy(dev, &qp->rings.region);
 free:
    qp_free(dev, qp);

    return rc;
}

int vmri_qp_destroy(struct vmri_dev *dev, uint32_t qpn)
{
    struct vmri_qp *qp = vmri_table_kill(&dev->qps, qpn);

    if ( !qp )
        return -ENOENT;

    /* Nobody runs it or copies for it any more; a timer may still wake it. */
    vmri_park_remove(qp);
    vmri_source_fini(qp->eq, &qp->source);
    vmri_table_release(&dev->qps, qpn);
    vmri_region_destroy(dev, &qp->rings.region);
    qp_free(dev, qp);

    return 0;
}

void vmri_qp_set_error(struct vmri_qp *qp, unsigned int event)
{
    env_lock(&qp->lock);
    if ( qp->attr.state != VMRI_QPS_ERR )
    {
        env_store(&qp->attr.state, VMRI_QPS_ERR);
        /* What is posted from now on is flushed too: have it rung for. */
        if ( qp->rq.hdr )
            env_store(&qp->rq.hdr->wait, 1);
        if ( event )
            vmri_event_raise(qp->eq, &qp->source, event);
    }
    env_unlock(&qp->lock);
}

void vmri_qp_error(struct vmri_qp *qp, unsigned int event)
{
    vmri_qp_set_error(qp, event);
    vmri_park_remove(qp);
    vmri_ready(qp);
}

/*
 * Discard all that is posted and half done.  By the owner, nothing in flight.
 */
static void reset(struct vmri_qp *qp)
{
    uint8_t port = qp->attr.port;

    qp->tx.active = false;
    qp->drain_event = false;
    env_store(&qp->rq_wanted, 0);
    vmri_park_remove(qp);

    env_lock(&qp->lock);
    qp->rx.active = false;
    qp->established = false;
    qp->life = new_life();
    wq_init(&qp->sq, qp->sq.hdr, qp->sq.offset, qp->sq.log2_entries,
            qp->sq.log2_stride, qp->sq.max_sge);
    wq_init(&qp->rq, qp->rq.hdr, qp->rq.offset, qp->rq.log2_entries,
            qp->rq.log2_stride, qp->rq.max_sge);
    qp->attr = (struct vmri_qp_modify){ .port = port, .path_mtu = 5 };
    env_unlock(&qp->lock);
}

/* By the owner, after the state has been changed under the lock. */
static void entered(struct vmri_qp *qp, unsigned int state,
                    const struct vmri_qp_modify *arg)
{
    switch ( state )
    {
    case VMRI_QPS_RESET:
    case VMRI_QPS_ERR:
        while ( env_load_acquire(&qp->inflight) )
            env_relax();
        vmri_park_remove(qp);
        if ( state == VMRI_QPS_RESET )
            reset(qp);
        break;

    case VMRI_QPS_RTR:
        env_mb();
        vmri_wake_peer(qp);
        break;

    case VMRI_QPS_SQD:
        qp->drain_event = (arg->mask & VMRI_QPA_EN_SQD_ASYNC_NOTIFY) &&
                          arg->en_sqd_async_notify;
        break;
    }
}

int vmri_qp_modify(struct vmri_dev *dev, const struct vmri_qp_modify *arg)
{
    struct vmri_qp *qp = vmri_table_get(&dev->qps, arg->qpn);
    unsigned int old, state = 0;
    int rc;

    if ( !qp )
        return -ENOENT;

    /* Owning the queue keeps out its engine and others who modify. */
    vmri_own(qp);

    env_lock(&qp->lock);
    old = qp->attr.state;
    rc = vmri_qp_check_modify(qp, arg, &state);
    if ( !rc )
    {
        vmri_qp_apply(&qp->attr, arg);
        env_store(&qp->attr.state, state);
        if ( state == VMRI_QPS_ERR && qp->rq.hdr )
            env_store(&qp->rq.hdr->wait, 1);
    }
    env_unlock(&qp->lock);

    if ( !rc && state != old )
        entered(qp, state, arg);

    vmri_disown(qp);
    vmri_table_put(&dev->qps, arg->qpn);

    return rc;
}

int vmri_qp_query(struct vmri_dev *dev, struct vmri_qp_modify *arg)
{
    uint32_t qpn = arg->qpn;
    struct vmri_qp *qp = vmri_table_get(&dev->qps, qpn);

    if ( !qp )
        return -ENOENT;

    vmri_own(qp);
    env_lock(&qp->lock);
    *arg = qp->attr;
    env_unlock(&qp->lock);
    arg->sq_draining = arg->state == VMRI_QPS_SQD && qp->tx.active;
    vmri_disown(qp);

    arg->qpn = qpn;
    arg->cur_state = arg->state;
    vmri_table_put(&dev->qps, qpn);

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
