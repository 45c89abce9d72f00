/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: queue pairs, from their creation to their end.
 */
#include "internal.h"

/* Which objects and queues each type has is named, all other fields are 0. */
static int check_type(const struct vmri_qp_create *arg)
{
    bool kernel = arg->flags & VMRI_QPF_KERNEL;
    bool sends = arg->sq_log2_stride, receives = arg->rq_log2_stride;
    bool ok;

    switch ( arg->type )
    {
    case VMRI_QPT_SMI:
    case VMRI_QPT_GSI:
        ok = kernel && !arg->qpn && !arg->srq && !arg->xrcd;
        break;

    case VMRI_QPT_RC:
    case VMRI_QPT_UC:
    case VMRI_QPT_UD:
        ok = !arg->xrcd && !(arg->srq && receives);
        break;

    case VMRI_QPT_XRC_INI:
        ok = !arg->xrcd && !arg->srq && !receives && !arg->recv_cq;
        break;

    case VMRI_QPT_XRC_TGT:
        ok = !arg->srq && !sends && !receives && !arg->ind_log2_entries &&
             !arg->send_cq && !arg->recv_cq && !arg->frames.nr &&
             !arg->frames.gfns && !arg->frames.reserved;
        break;

    default:
        return -EOPNOTSUPP;
    }

    return ok ? 0 : -EINVAL;
}

static int check_create(const struct vmri_qp_create *arg)
{
    if ( arg->reserved0[0] || arg->reserved0[1] || arg->reserved0[2] ||
         arg->reserved1 ||
         (arg->flags & ~(VMRI_QPF_KERNEL | VMRI_QPF_BLOCK_LOOPBACK)) )
        return -EINVAL;

    /* Only they are attached to multicast groups. */
    if ( (arg->flags & VMRI_QPF_BLOCK_LOOPBACK) && arg->type != VMRI_QPT_UD )
        return -EINVAL;

    /* What is carried is for processes. */
    if ( arg->twin && (arg->flags & VMRI_QPF_KERNEL) )
        return -EOPNOTSUPP;

    return check_type(arg);
}

/* Both queues start empty. */
static void queues_init(struct vmri_qp *qp, const struct vmri_qp_create *arg)
{
    struct vmri_qp_hdr *hdr = vmri_region_at(&qp->rings.region, 0);

    vmri_wq_init(&qp->sq, &hdr->sq, arg->sq_offset, arg->sq_log2_entries,
                 arg->sq_log2_stride, arg->max_send_sge);
    vmri_wq_init(&qp->rq, &hdr->rq, arg->rq_offset, arg->rq_log2_entries,
                 arg->rq_log2_stride, arg->max_recv_sge);
}

uint64_t vmri_new_life(void)
{
    static uint64_t lives = 1;  /* atomic */

    return env_fetch_add(&lives, 1);
}

static void qp_init(struct vmri_qp *qp, const struct vmri_qp_create *arg)
{
    qp->rings.kernel = arg->flags & VMRI_QPF_KERNEL;
    qp->block_loopback = arg->flags & VMRI_QPF_BLOCK_LOOPBACK;
    qp->rings.ind_log2_entries = arg->ind_log2_entries;
    qp->rings.ind_offset = arg->ind_offset;
    qp->max_inline = arg->max_inline;
    qp->life = vmri_new_life();
    qp->version = vmri_new_life();
    qp->attr.port = 1;
    qp->attr.path_mtu = 5;
    env_lock_init(&qp->lock, LEVEL_QP);
    qp->wheel_level = VMRI_WHEEL_LEVELS;
    INIT_LIST_HEAD(&qp->wheel);
    INIT_LIST_HEAD(&qp->attachments);
    INIT_LIST_HEAD(&qp->srq_wait);
    INIT_LIST_HEAD(&qp->mws);

    if ( qp->rings.region.nr )
        queues_init(qp, arg);
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
    if ( qp->srq )
        vmri_unuse(dev, qp->srq);
    if ( qp->xrcd )
        vmri_unuse(dev, qp->xrcd);
}

/* 0, -ENOENT, or -EINVAL: the SRQ is for XRC. */
static int use_all(struct vmri_dev *dev, struct vmri_qp *qp,
                   const struct vmri_qp_create *arg)
{
    const bool target = arg->type == VMRI_QPT_XRC_TGT;
    const bool initiator = arg->type == VMRI_QPT_XRC_INI;

    qp->rings.pd = vmri_use(dev, &dev->pds, arg->pd);
    qp->eq = vmri_use(dev, &dev->eqs, arg->eq);
    if ( target )
        qp->xrcd = vmri_use(dev, &dev->xrcds, arg->xrcd);
    else
        qp->scq = vmri_use(dev, &dev->cqs, arg->send_cq);
    if ( !target && !initiator )
        qp->rcq = vmri_use(dev, &dev->cqs, arg->recv_cq);
    if ( arg->srq )
        qp->srq = vmri_use(dev, &dev->srqs, arg->srq);

    if ( !qp->rings.pd || !qp->eq || (target ? !qp->xrcd : !qp->scq) ||
         (!target && !initiator && !qp->rcq) || (arg->srq && !qp->srq) )
        return -ENOENT;

    return qp->srq && qp->srq->xrcd ? -EINVAL : 0;
}

static size_t qp_bytes(bool private_entries)
{
    return sizeof(struct vmri_qp) +
           (private_entries ? VMRI_MAX_SGE * sizeof(struct vmri_sge) : 0);
}

/*
 * Datagrams need private entries of a receive that they fill, others for those
 * of theirs that come from shared queues.
 */
static bool needs_entries(const struct vmri_qp_create *arg)
{
    return arg->srq || vmri_type_datagram(arg->type) ||
           arg->type == VMRI_QPT_XRC_TGT;
}

static struct vmri_carry *carry_alloc(struct vmri_dev *dev,
                                      const struct vmri_qp_create *arg)
{
    struct vmri_carry *c = dev->uplink ? vmri_alloc(dev, sizeof(*c)) : NULL;

    if ( c )
    {
        c->twin = arg->twin;
        c->max_sends = 1U << arg->sq_log2_entries;
        c->window = 1;
        c->max_recvs = 1U << (arg->srq ? VMRI_TWIN_LENT_LOG2
                                       : arg->rq_log2_entries);
    }

    return c;
}

static int qp_alloc(struct vmri_dev *dev, const struct vmri_qp_create *arg,
                    struct vmri_qp **result)
{
    const bool entries = needs_entries(arg);
    struct vmri_qp *qp;
    int rc = vmri_charge(dev, VMRI_RES_QP, 1);

    if ( rc )
        return rc;

    qp = vmri_alloc(dev, qp_bytes(entries));
    if ( !qp )
    {
        vmri_uncharge(dev, VMRI_RES_QP, 1);
        return -ENOMEM;
    }

    if ( arg->twin )
    {
        qp->carry = carry_alloc(dev, arg);
        if ( !qp->carry )
        {
            vmri_free(dev, qp, qp_bytes(entries));
            vmri_uncharge(dev, VMRI_RES_QP, 1);
            return dev->uplink ? -ENOMEM : -EOPNOTSUPP;
        }
        vmri_waiter_init(&qp->carry->waiter, qp);
    }
    qp->dev = dev;
    qp->type = arg->type;
    qp->counters = vmri_type_counters(dev, arg->type);
    if ( entries )
        qp->rx_sge = (struct vmri_sge *)(qp + 1);
    *result = qp;

    return 0;
}

/* As vmri_region_destroy. */
static int qp_free(struct vmri_dev *dev, struct vmri_qp *qp,
                   struct vmri_call *call, int error)
{
    struct vmri_region region = qp->rings.region;

    unuse_all(dev, qp);
    vmri_free(dev, qp->carry, sizeof(*qp->carry));
    vmri_free(dev, qp->relay, sizeof(*qp->relay));
    vmri_free(dev, qp, qp_bytes(qp->rx_sge));
    vmri_uncharge(dev, VMRI_RES_QP, 1);

    return vmri_region_destroy(dev, &region, call, error);
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
    uint64_t bytes = vmri_layout_qp(arg);
    struct vmri_qp *qp;
    uint32_t qpn;
    int rc = check_create(arg);

    if ( rc )
        return rc;
    if ( !bytes || arg->qpn == 1 || arg->qpn >> 24 )
        return -EINVAL;

    rc = qp_alloc(dev, arg, &qp);
    if ( rc )
        return rc;

    rc = use_all(dev, qp, arg);
    if ( !rc )
        rc = vmri_relay_make(qp);
    if ( !rc && !qp->xrcd )
        rc = vmri_region_create(dev, &arg->frames, bytes, call,
                                &qp->rings.region);
    if ( rc )
        goto free;

    rc = vmri_table_reserve(&dev->qps, wanted_number(arg), &qpn);
    if ( rc )
        goto free;

    qp->qpn = qpn;
    qp->slot = vmri_table_slot(&dev->qps, qpn);
    vmri_source_init(&qp->source, qpn);
    qp_init(qp, arg);

    rc = qp->carry ? vmri_twin_claim_qp(qp, arg) : 0;
    if ( rc )
        goto release;

    rc = vmri_publish(dev, &dev->qps, qpn, qp);
    if ( rc )
        goto leave;

    arg->qpn = qpn;

    return 0;

 leave:
    if ( qp->carry )
        vmri_twin_leave_qp(qp);
 release:
    vmri_table_release(&dev->qps, qpn);
 free:
    return qp_free(dev, qp, call, rc);
}

/* 0, -ENOENT, or -ERESTART to be called again: it may have very many. */
static int free_windows(struct vmri_dev *dev, uint32_t qpn)
{
    struct vmri_qp *qp = vmri_table_get(&dev->qps, qpn);
    int rc;

    if ( !qp )
        return -ENOENT;

    rc = vmri_mw_leave_qp(qp);
    vmri_table_put(&dev->qps, qpn);

    return rc;
}

int cf_check vmri_qp_destroy(struct vmri_dev *dev, uint32_t qpn,
                             struct vmri_call *call)
{
    int rc = free_windows(dev, qpn);
    struct vmri_qp *qp;

    if ( rc )
        return rc;

    qp = vmri_table_kill(&dev->qps, qpn);
    if ( !qp )
        return -ENOENT;

    /* Nobody runs it or copies for it any more; a timer may still wake it. */
    if ( qp->carry )
    {
        vmri_twin_leave_qp(qp);
        vmri_lend_lost(qp);
    }
    if ( qp->relay )
        vmri_relay_end(qp);
    vmri_park_remove(qp);
    vmri_mcg_forget(qp);
    vmri_srq_leave(qp);
    vmri_rate_yield(qp);
    vmri_source_fini(qp->eq, &qp->source);
    vmri_table_release(&dev->qps, qpn);

    return qp_free(dev, qp, call, call->error);
}

void vmri_qp_set_error(struct vmri_qp *qp, unsigned int event)
{
    env_lock(&qp->lock);
    if ( qp->attr.state != VMRI_QPS_ERR )
    {
        env_store(&qp->attr.state, VMRI_QPS_ERR);
        qp->version = vmri_new_life();
        env_trace(VMRI_TRC_QP_ERROR, vmri_trace_id(qp->dev), qp->qpn, event);
        /* What is posted from now on is flushed too: have it rung for. */
        if ( qp->rq.hdr )
            env_store(&qp->rq.hdr->wait, 1);
        if ( event )
            vmri_event_raise(qp->eq, &qp->source, event);
        vmri_srq_leave(qp);
    }
    env_unlock(&qp->lock);

    if ( qp->carry )
        vmri_carry_error(qp);
}

void vmri_qp_error(struct vmri_qp *qp, unsigned int event)
{
    vmri_qp_set_error(qp, event);
    vmri_park_remove(qp);
    vmri_ready(qp);
}

/*
 * Discard all that is posted and half done; but a receive of a shared queue,
 * which is not ours alone, completes.  By the owner, nothing in flight.
 */
static void reset(struct vmri_qp *qp)
{
    uint8_t port = qp->attr.port;

    if ( vmri_qp_shares(qp) && qp->rx.active )
        vmri_recv_flush(qp, &qp->rx);

    qp->tx.active = false;
    qp->joined = 0;
    qp->drain_event = false;
    qp->last_wqe = false;
    env_store(&qp->rq_wanted, 0);
    vmri_rate_yield(qp);
    vmri_park_remove(qp);

    env_lock(&qp->lock);
    qp->rx.active = false;
    qp->established = false;
    qp->life = vmri_new_life();
    vmri_wq_init(&qp->sq, qp->sq.hdr, qp->sq.offset, qp->sq.log2_entries,
                 qp->sq.log2_stride, qp->sq.max_sge);
    vmri_wq_init(&qp->rq, qp->rq.hdr, qp->rq.offset, qp->rq.log2_entries,
                 qp->rq.log2_stride, qp->rq.max_sge);
    qp->attr = (struct vmri_qp_modify){ .port = port, .path_mtu = 5 };
    qp->version = vmri_new_life();
    if ( qp->carry )
        vmri_carry_turn(qp, false);
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
        vmri_srq_leave(qp);
        if ( state == VMRI_QPS_RESET )
            reset(qp);
        else if ( qp->carry )
            vmri_carry_error(qp);
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

/*
 * Where does it lead, and has its twin followed?  0, *remote telling whether it is
 * to another host, or what the command returns.
 */
static int steer(struct vmri_qp *qp, struct vmri_qp_modify *arg, bool *remote)
{
    uint8_t host_gid[16];
    int rc = vmri_steer(qp, arg, host_gid);

    *remote = rc == VMRI_ELSEWHERE;
    if ( !qp->carry )
        return rc;

    /* A twin that was on its way there is not to be, if rules forbid it by now. */
    if ( rc == -EPERM )
        vmri_carry_error(qp);

    return rc < 0 ? rc : vmri_carry_settle(qp, arg, *remote ? host_gid : NULL);
}

int vmri_qp_modify(struct vmri_dev *dev, struct vmri_qp_modify *arg)
{
    struct vmri_qp *qp = vmri_table_get(&dev->qps, arg->qpn);
    unsigned int old, state = 0;
    int rc, steered;
    bool remote;

    if ( !qp )
        return -ENOENT;

    /* Owning the queue keeps out its engine and others who modify. */
    vmri_own(qp);
    steered = steer(qp, arg, &remote);

    env_lock(&qp->lock);
    old = qp->attr.state;
    rc = vmri_qp_check_modify(qp, arg, &state) ?: steered;
    if ( !rc )
    {
        vmri_qp_apply(&qp->attr, arg);
        if ( qp->carry && state == VMRI_QPS_RTR )
            vmri_carry_turn(qp, remote);
        env_store(&qp->attr.state, state);
        qp->version = vmri_new_life();
        qp->route.dev = NULL;
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

bool vmri_qp_sending(const struct vmri_qp *qp)
{
    return qp->tx.active || (qp->carry && env_load(&qp->carry->sends));
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
    if ( qp->carry && qp->carry->remote )
        arg->av.dlid = qp->carry->dlid;
    env_unlock(&qp->lock);
    arg->sq_draining = arg->state == VMRI_QPS_SQD && vmri_qp_sending(qp);
    vmri_disown(qp);

    arg->qpn = qpn;
    arg->cur_state = arg->state;
    if ( dev->gids )
        arg->av.dlid = 0;
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
