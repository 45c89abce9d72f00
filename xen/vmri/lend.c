/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: receives of a shared queue, for queue pairs whose peer is on another host.
 *
 * What a NIC has it does not give back, and peers on this host are served from the same
 * queue.  So each queue pair is lent one receive, and one more for each that comes back
 * filled, as long as the queue has more than is lent of it: those that get no messages
 * keep one each.  Of those that have none the owners are called whenever something is
 * posted.  What is lent when the queue pair fails counts as begun (IBTA 1.4, 10.2.9.3),
 * and completes flushed.
 */
#include "internal.h"

#define LEND_COST   1024U       /* as a request */

static int64_t posted(struct vmri_srq *srq)
{
    int64_t n;

    env_lock(&srq->lock);
    n = vmri_srq_posted(srq);
    env_unlock(&srq->lock);

    return n;
}

/*
 * Have the next receive in qp->rx, when `away` are lent: DONE.  PARKED: it may have no
 * other; MORE: try again; FAILED: there is no queue any more.
 */
static enum vmri_step borrow(struct vmri_qp *qp, uint32_t away)
{
    struct vmri_srq *srq = qp->srq;
    const int64_t there = posted(srq);
    bool again = false;
    int rc;

    if ( qp->rx.active )
        return VMRI_STEP_DONE;
    if ( there < 0 )
        return VMRI_STEP_FAILED;
    if ( away && (away >= env_load(&qp->carry->window) ||
                  there <= env_load(&srq->lent)) )
        return VMRI_STEP_PARKED;

    env_lock(&qp->lock);
    rc = vmri_recv_take(qp, srq, 0, &qp->rx, qp->rx_sge);
    qp->rx.active = rc > 0;
    if ( !rc && !away )
        again = vmri_srq_wait(srq, qp);
    env_unlock(&qp->lock);

    if ( rc < 0 )
        return VMRI_STEP_FAILED;
    if ( rc > 0 )
        return VMRI_STEP_DONE;

    return again ? VMRI_STEP_MORE : VMRI_STEP_PARKED;
}

static void forget(struct vmri_qp *qp)
{
    env_lock(&qp->lock);
    qp->rx.active = false;
    env_unlock(&qp->lock);
}

/* One that cannot be filled: when it is the next. */
static enum vmri_step fail(struct vmri_qp *qp, uint16_t verr)
{
    const struct vmri_rx rx = { .wr_id = qp->rx.wr_id };
    struct vmri_cqe cqe = {
        .status = VMRI_WC_LOC_PROT_ERR,
        .vendor_err = verr,
        .opcode = VMRI_WC_OP_RECV,
    };

    if ( !vmri_carry_below(qp->carry, &qp->carry->recvs, 1) )
        return VMRI_STEP_PARKED;

    forget(qp);
    vmri_recv_tell(qp, &rx, &cqe);
    vmri_qp_set_error(qp, 0);

    return VMRI_STEP_MORE;
}

/* Hand out what is in qp->rx. */
static enum vmri_step hand(struct vmri_qp *qp)
{
    struct vmri_uplink_msg msg = {
        .type = VMRI_UPLINK_RECV,
        .u.recv.wr_id = qp->rx.wr_id,
    };
    struct vmri_rx *rx = &qp->rx;
    uint16_t verr;
    uint32_t n = vmri_carry_entries(qp, qp->rx_sge, rx->sgl.num, ~0ULL,
                                    VMRI_ACCESS_LOCAL_WRITE, &verr);

    if ( verr )
        return fail(qp, verr);

    rx->sgl.num = n;
    msg.u.recv.num_sge = n;
    env_fetch_add(&qp->srq->lent, 1);
    if ( !vmri_carry_hand_out(qp, &msg, qp->rx_sge, n * sizeof(qp->rx_sge[0]),
                              &qp->carry->recvs) )
    {
        env_fetch_sub(&qp->srq->lent, 1);
        return VMRI_STEP_PARKED;
    }
    forget(qp);

    return VMRI_STEP_DONE;
}

/*
 * The owner is called when half of what is lent is back: false: so it is already.  One
 * that has none waits for the queue.
 */
static bool call_when_low(struct vmri_carry *c, uint32_t away)
{
    if ( !away )
        return true;

    env_store(&c->low, away / 2);
    env_store(&c->hungry, 1);
    env_mb();

    return env_load_acquire(&c->recvs) > away / 2;
}

enum vmri_step vmri_lend(struct vmri_qp *qp, uint32_t *budget)
{
    struct vmri_carry *c = qp->carry;
    enum vmri_step rc = VMRI_STEP_DONE;
    uint32_t away;

    while ( rc == VMRI_STEP_DONE )
    {
        if ( !*budget )
            return VMRI_STEP_MORE;
        vmri_spend(budget, LEND_COST);

        away = env_load_acquire(&c->recvs);
        rc = borrow(qp, away);
        if ( rc == VMRI_STEP_PARKED )
            return call_when_low(c, away) ? VMRI_STEP_DONE : VMRI_STEP_MORE;
        if ( rc == VMRI_STEP_DONE )
            rc = hand(qp);
    }

    if ( rc == VMRI_STEP_FAILED )
    {
        vmri_qp_set_error(qp, VMRI_EVENT_QP_FATAL);
        rc = VMRI_STEP_MORE;
    }

    return rc;
}

void vmri_lend_returned(struct vmri_qp *qp, bool filled)
{
    struct vmri_carry *c = qp->carry;
    uint32_t left;

    if ( filled && c->window < c->max_recvs )
        env_store(&c->window, c->window + 1);
    env_fetch_sub(&qp->srq->lent, 1);
    left = env_fetch_sub(&c->recvs, 1) - 1;

    if ( left <= env_load(&c->low) && env_load(&c->hungry) &&
         env_xchg(&c->hungry, 0) )
        vmri_carry_call(qp);
    if ( !left )
        vmri_carry_call_waiting(qp);
}

void vmri_lend_lost(struct vmri_qp *qp)
{
    if ( qp->srq )
        env_fetch_sub(&qp->srq->lent, env_xchg(&qp->carry->recvs, 0));
    else
        env_store_release(&qp->carry->recvs, 0);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
