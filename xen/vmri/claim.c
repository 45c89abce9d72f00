/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: objects that have a twin: which is theirs, and that they are what it was made
 * for.
 */
#include "internal.h"

/* One that may become an object's, with this number and PD. */
static int claimable(struct vmri_dev *dev, uint32_t handle, unsigned int kind,
                     uint32_t number, const struct vmri_pd *pd,
                     struct vmri_double **out)
{
    struct vmri_double *t = vmri_twin_of_dev(dev, handle);

    *out = t;
    if ( !t )
        return -ENOENT;
    if ( t->used || t->ending )
        return -EBUSY;

    return t->made && t->twin.kind == kind && t->number == number &&
           t->pd == pd->number ? 0 : -EINVAL;
}

int vmri_twin_claim_mr(struct vmri_dev *dev, const struct vmri_mr_register *arg,
                       const struct vmri_pd *pd)
{
    struct vmri_double *t;
    int ret;

    if ( !dev->uplink )
        return -EOPNOTSUPP;

    env_lock(&dev->uplink->lock);
    ret = claimable(dev, arg->twin, VMRI_RES_MR, arg->key, pd, &t);
    if ( !ret && (t->twin.u.mr.iova != arg->iova ||
                  t->twin.u.mr.length != arg->length ||
                  t->twin.u.mr.access != arg->access ||
                  t->twin.u.mr.offset != arg->offset ||
                  t->twin.u.mr.pages != arg->frames.nr) )
        ret = -EINVAL;
    if ( !ret )
        t->used = t->object = true;
    env_unlock(&dev->uplink->lock);

    return ret;
}

void vmri_twin_leave_mr(struct vmri_dev *dev, uint32_t handle)
{
    struct vmri_double *t;

    env_lock(&dev->uplink->lock);
    t = vmri_twin_of_dev(dev, handle);
    if ( t )
        t->object = false;
    env_unlock(&dev->uplink->lock);
}

/* Is a queue pair what its twin was made for? */
static bool is_like(const struct vmri_qp *qp, const struct vmri_twin *twin,
                    const struct vmri_qp_create *arg)
{
    const struct vmri_srq *srq = qp->srq;
    const uint8_t log2 = srq ? VMRI_TWIN_LENT_LOG2 : arg->rq_log2_entries;
    const uint8_t max_sge = srq ? srq->wq.max_sge : arg->max_recv_sge;

    return twin->u.qp.type == arg->type &&
           twin->u.qp.sq_log2_entries == arg->sq_log2_entries &&
           twin->u.qp.rq_log2_entries == log2 &&
           twin->u.qp.max_send_sge == arg->max_send_sge &&
           twin->u.qp.max_recv_sge == max_sge &&
           twin->u.qp.max_inline == arg->max_inline &&
           (!srq || (srq->rings.pd == qp->rings.pd && !srq->rings.kernel));
}

int vmri_twin_claim_qp(struct vmri_qp *qp, const struct vmri_qp_create *arg)
{
    struct vmri_dev *dev = qp->dev;
    struct vmri_double *t;
    int ret;

    env_lock(&dev->uplink->lock);
    ret = claimable(dev, arg->twin, VMRI_RES_QP, arg->qpn, qp->rings.pd, &t);
    if ( !ret && !is_like(qp, &t->twin, arg) )
        ret = -EINVAL;
    if ( !ret )
    {
        t->used = true;
        t->qp = qp;
    }
    env_unlock(&dev->uplink->lock);

    return ret;
}

void vmri_twin_leave_qp(struct vmri_qp *qp)
{
    struct vmri_uplink *u = qp->dev->uplink;
    struct vmri_double *t;

    env_lock(&u->lock);
    t = vmri_twin_of(qp);
    if ( t )
    {
        vmri_uplink_yield(u, &qp->carry->waiter);
        vmri_twin_stop(u, t);
        t->qp = NULL;
    }
    env_unlock(&u->lock);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
