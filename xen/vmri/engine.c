/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: who runs a send queue, when, and for how long.
 *
 * A queue has at most one owner, the CPU that set VMRI_BUSY in `busy`.  Who
 * finds it owned, or somebody waiting to own it, leaves a note there,
 * VMRI_AGAIN, and goes; that owner looks at the note when it gives the queue
 * up.  Every call has a budget that each request and each byte uses up, and all
 * progress is in the QP.
 */
#include "internal.h"

/*
 * What a request costs beside its bytes: 256 small ones are one call's worth.
 */
#define REQUEST_COST    1024U
/* What a step costs that is not the last: it may have moved nothing. */
#define STEP_COST       256U
/* A request that is only flushed. */
#define FLUSH_COST      256U

/* Why a run ended. */
enum run {
    RUN_IDLE,                   /* nothing to do in this state */
    RUN_PARKED,                 /* something will make the queue ready */
    RUN_MORE,                   /* the budget is used up */
};

void vmri_ready(struct vmri_qp *qp)
{
    vmri_event_raise(qp->eq, &qp->source, VMRI_EVENT_QUEUE_READY);
}

static void trace_end(const struct vmri_qp *qp)
{
    const struct vmri_tx *tx = &qp->tx;

    if ( tx->status )
        env_trace(VMRI_TRC_FAILED, vmri_trace_id(qp->dev), qp->qpn,
                  tx->wqe.opcode, tx->status, tx->vendor_err);
    else
        env_trace(VMRI_TRC_DONE, vmri_trace_id(qp->dev), qp->qpn,
                  tx->wqe.opcode, tx->wqe.length);
}

static void count(const struct vmri_qp *qp)
{
    vmri_count_qp(qp, tx_msgs, 1);
    if ( qp->tx.moves == VMRI_MOVES_BACK )
        vmri_count_qp(qp, rx_bytes, qp->tx.wqe.length);
    else if ( qp->tx.moves == VMRI_MOVES_OUT )
        vmri_count_qp(qp, tx_bytes, qp->tx.wqe.length);
}

void vmri_complete(struct vmri_qp *qp)
{
    const struct vmri_tx *tx = &qp->tx;
    struct vmri_cqe cqe = {
        .wr_id = tx->wqe.wr_id,
        .byte_len = tx->wqe.length,
        .status = tx->status,
        .vendor_err = tx->vendor_err,
        .opcode = tx->completion,
    };

    trace_end(qp);
    if ( likely(!tx->status) )
        count(qp);

    vmri_send_retire(qp);

    if ( (tx->status || (tx->wqe.flags & VMRI_SEND_SIGNALED)) &&
         !vmri_cq_push(qp->scq, qp, &cqe) )
        vmri_qp_set_error(qp, VMRI_EVENT_QP_FATAL);
}

/*
 * A request that fails where nothing is acknowledged stops the send queue
 * alone (IBTA 1.4, 10.3.1.7), also while it is drained.
 */
static void fail(struct vmri_qp *qp)
{
    if ( !vmri_qp_unreliable(qp) )
        vmri_qp_set_error(qp, 0);
    else
    {
        env_lock(&qp->lock);
        if ( qp->attr.state == VMRI_QPS_RTS ||
             qp->attr.state == VMRI_QPS_SQD )
            env_store(&qp->attr.state, VMRI_QPS_SQE);
        env_unlock(&qp->lock);
    }
}

static enum vmri_step one_step(struct vmri_qp *qp, uint32_t *budget)
{
    if ( !qp->tx.done && !vmri_send_check(qp) )
        return VMRI_STEP_FAILED;

    if ( vmri_key_request(qp->tx.wqe.opcode) )
        return vmri_key_step(qp);

    return vmri_qp_datagram(qp) ? vmri_datagram(qp, budget)
                                : vmri_transfer(qp, budget);
}

/* The first step of the next request. */
static enum vmri_step first_step(struct vmri_qp *qp, uint32_t *budget)
{
    vmri_send_fetch(qp);
    vmri_spend(budget, REQUEST_COST + qp->tx.sgl.num * VMRI_ENTRY_COST);

    return one_step(qp, budget);
}

/* In RTS, and in SQD to the end of the request at hand. */
static enum run run_sends(struct vmri_qp *qp, uint32_t *budget)
{
    while ( *budget )
    {
        unsigned int state = vmri_qp_state(qp);
        enum vmri_step step;
        int64_t posted;

        if ( state != VMRI_QPS_RTS && state != VMRI_QPS_SQD )
            return RUN_MORE;

        if ( !qp->tx.active )
        {
            if ( state == VMRI_QPS_SQD )
                return RUN_IDLE;

            posted = vmri_wq_has(&qp->sq);
            if ( !posted )
                return RUN_IDLE;
            if ( unlikely(posted < 0) )
            {
                vmri_qp_set_error(qp, VMRI_EVENT_QP_FATAL);
                return RUN_MORE;
            }
            if ( likely(vmri_plain(qp, *budget)) )
            {
                vmri_spend(budget, REQUEST_COST + qp->tx.wqe.length);
                continue;
            }
            step = first_step(qp, budget);
        }
        else
            step = one_step(qp, budget);

        if ( step == VMRI_STEP_PARKED )
            return RUN_PARKED;

        if ( step == VMRI_STEP_MORE )
        {
            vmri_spend(budget, STEP_COST);
            continue;
        }

        vmri_complete(qp);
        if ( step == VMRI_STEP_FAILED )
            fail(qp);
    }

    return RUN_MORE;
}

static void flush_send(struct vmri_qp *qp)
{
    struct vmri_cqe cqe = {
        .wr_id = qp->tx.wqe.wr_id,
        .status = VMRI_WC_WR_FLUSH_ERR,
        .vendor_err = VMRI_VERR_FLUSHED,
        .opcode = vmri_completion_opcode(qp->tx.wqe.opcode),
    };

    /* Also one whose send queue alone had stopped so far. */
    if ( !vmri_cq_push(qp->scq, qp, &cqe) )
        vmri_qp_set_error(qp, VMRI_EVENT_QP_FATAL);
}

/*
 * A queue whose index is out of range has no requests that could be told from
 * garbage, and a dead CQ takes none: both count as done.
 */
static enum run flush_sends(struct vmri_qp *qp, uint32_t *budget)
{
    qp->tx.active = false;

    while ( vmri_wq_posted(&qp->sq) > 0 )
    {
        if ( !*budget )
            return RUN_MORE;
        vmri_send_fetch(qp);
        vmri_send_retire(qp);
        flush_send(qp);
        vmri_spend(budget, FLUSH_COST);
    }

    return RUN_IDLE;
}

static bool take_receive(struct vmri_qp *qp, struct vmri_rx *rx)
{
    bool got = false;

    env_lock(&qp->lock);
    if ( qp->attr.state == VMRI_QPS_ERR )
    {
        if ( !vmri_qp_datagram(qp) && qp->rx.active )
        {
            *rx = qp->rx;
            qp->rx.active = false;
            got = true;
        }
        else
            got = vmri_recv_take(qp, NULL, 0, rx, NULL) > 0;
        if ( got )
            vmri_recv_release(qp);
    }
    env_unlock(&qp->lock);

    return got;
}

/*
 * What was taken from shared queues is complete, nothing more will be taken
 * (IBTA 1.4, 11.6.3).
 */
static void last_wqe_reached(struct vmri_qp *qp)
{
    if ( !vmri_qp_shares(qp) || qp->last_wqe )
        return;

    qp->last_wqe = true;
    vmri_event_raise(qp->eq, &qp->source, VMRI_EVENT_QP_LAST_WQE_REACHED);
}

static enum run flush_receives(struct vmri_qp *qp, uint32_t *budget)
{
    struct vmri_rx rx;

    /* Who still fills a receive ends its step soon and completes it. */
    while ( env_load_acquire(&qp->inflight) )
        env_relax();

    while ( *budget )
    {
        if ( !take_receive(qp, &rx) )
        {
            last_wqe_reached(qp);
            return RUN_IDLE;
        }
        vmri_recv_flush(qp, &rx);
        vmri_spend(budget, FLUSH_COST);
    }

    return RUN_MORE;
}

/*
 * One that is parked: it waits, unless it was woken just now, or its peer is on
 * another host.  What that one sends does not wait for our rate.
 */
static noinline enum run carry(struct vmri_qp *qp, uint32_t *budget)
{
    const enum vmri_parked parked = env_load(&qp->parked);

    if ( parked == VMRI_PARK_RATE && qp->home == VMRI_PARK_UPLINK )
        vmri_carry_receives(qp, budget);
    if ( parked != VMRI_PARK_UPLINK )
        return parked == VMRI_PARK_NONE ? RUN_MORE : RUN_PARKED;

    switch ( vmri_carry(qp, budget) )
    {
    case VMRI_STEP_DONE:
        return RUN_IDLE;

    case VMRI_STEP_PARKED:
        return RUN_PARKED;

    default:
        return RUN_MORE;
    }
}

static noinline enum run flush(struct vmri_qp *qp, uint32_t *budget)
{
    enum run rc;

    /* Completions are in order: what is away comes first. */
    if ( qp->carry && !vmri_carry_home(qp) )
        return RUN_PARKED;

    rc = qp->sq.hdr ? flush_sends(qp, budget) : RUN_IDLE;

    return rc == RUN_IDLE ? flush_receives(qp, budget) : rc;
}

/* Before RTS: nothing, but an uplink wants the receives from RTR on. */
static noinline enum run unready(struct vmri_qp *qp, uint32_t *budget)
{
    return env_load(&qp->parked) == VMRI_PARK_UPLINK ? carry(qp, budget)
                                                     : RUN_IDLE;
}

/* What there is to do in the state the queue pair is in. */
static enum run run_state(struct vmri_qp *qp, uint32_t *budget)
{
    enum run rc;

    switch ( vmri_qp_state(qp) )
    {
    case VMRI_QPS_RTS:
    case VMRI_QPS_SQD:
        if ( unlikely(env_load(&qp->parked) != VMRI_PARK_NONE) )
            rc = carry(qp, budget);
        else
            rc = qp->sq.hdr ? run_sends(qp, budget) : RUN_IDLE;
        if ( rc == RUN_IDLE && qp->drain_event &&
             vmri_qp_state(qp) == VMRI_QPS_SQD )
        {
            qp->drain_event = false;
            vmri_event_raise(qp->eq, &qp->source, VMRI_EVENT_SQ_DRAINED);
        }
        return rc;

    case VMRI_QPS_SQE:
        rc = flush_sends(qp, budget);
        return vmri_qp_state(qp) == VMRI_QPS_SQE ? rc : RUN_MORE;

    case VMRI_QPS_ERR:
        return flush(qp, budget);

    default:
        return unready(qp, budget);
    }
}

/* While the budget lasts, also through the states that a failure leads to. */
static enum run run_owned(struct vmri_qp *qp, uint32_t *budget)
{
    enum run rc;

    do
        rc = run_state(qp, budget);
    while ( rc == RUN_MORE && *budget );

    return rc;
}

void vmri_own(struct vmri_qp *qp)
{
    uint32_t turn = env_fetch_add(&qp->turns, 1);

    while ( env_load_acquire(&qp->turn) != turn )
        env_relax();
    while ( env_fetch_or(&qp->busy, VMRI_BUSY) & VMRI_BUSY )
        env_relax();
    env_store_release(&qp->turn, turn + 1);
}

/*
 * Does somebody wait to own it?  Who does reads the ring once it has been the
 * owner, and must not wait for a guest that calls again and again.
 */
static bool wanted(struct vmri_qp *qp)
{
    return env_load(&qp->turns) != env_load(&qp->turn);
}

/* Become the owner, or leave a note for who is or will be: false. */
static bool enter(struct vmri_qp *qp)
{
    uint32_t old = 0;

    while ( unlikely(wanted(qp)) )
    {
        env_fetch_or(&qp->busy, VMRI_AGAIN);
        /* Unless it has come and gone meanwhile, it sees that. */
        if ( wanted(qp) )
            return false;
    }

    while ( !env_cmpxchg(&qp->busy, &old,
                         old & VMRI_BUSY ? old | VMRI_AGAIN : VMRI_BUSY) )
        ;

    return !(old & VMRI_BUSY);
}

/* Cease to be: true if there is a note. */
static bool leave(struct vmri_qp *qp)
{
    return env_fetch_and(&qp->busy, ~VMRI_BUSY) & VMRI_AGAIN;
}

static void set_running(struct vmri_qp *qp, uint32_t running)
{
    if ( qp->sq.hdr )
        env_store(&qp->sq.hdr->running, running);
}

/* Is what is posted done at once, or flushed? */
static bool takes_requests(unsigned int state)
{
    return state == VMRI_QPS_RTS || state == VMRI_QPS_SQE ||
           state == VMRI_QPS_ERR;
}

int vmri_run(struct vmri_qp *qp)
{
    uint32_t budget = VMRI_BUDGET;
    struct vmri_wq seen;
    enum run rc;
    bool again;

    do {
        if ( !enter(qp) )
            return 0;

        set_running(qp, 1);
        rc = run_owned(qp, &budget);
        if ( unlikely(env_load(&qp->dev->limited)) && rc != RUN_PARKED )
            vmri_rate_yield(qp);
        set_running(qp, 0);

        /*
         * Who saw `running` did not ring.  Atomics that read and write are full
         * barriers.
         */
        seen = qp->sq;
        again = leave(qp) ||
                (rc == RUN_IDLE && takes_requests(vmri_qp_state(qp)) &&
                 vmri_wq_posted(&seen) > 0);
        vmri_spend(&budget, FLUSH_COST);
    } while ( again && budget );

    return rc == RUN_MORE || again ? VMRI_SCHEDULE_MORE : 0;
}

void vmri_disown(struct vmri_qp *qp)
{
    leave(qp);
    if ( vmri_run(qp) )
        vmri_ready(qp);
}

bool vmri_wake_peer(struct vmri_qp *qp)
{
    struct vmri_dev *dev;
    struct vmri_qp *peer;
    bool ours, woken = false;
    uint32_t qpn;
    uint16_t lid;

    if ( vmri_qp_datagram(qp) )
        return false;

    env_lock(&qp->lock);
    lid = qp->attr.av.dlid;
    qpn = qp->attr.dest_qpn;
    env_unlock(&qp->lock);

    dev = vmri_fabric_peer(qp->dev->fabric, lid);
    if ( !dev )
        return false;

    peer = vmri_table_get(&dev->qps, qpn);
    if ( peer )
    {
        /* One that is connected to somebody else has nothing to gain by us. */
        env_lock(&peer->lock);
        ours = vmri_qp_faces(peer, qp);
        env_unlock(&peer->lock);
        woken = ours && vmri_park_remove(peer);
        if ( woken )
            vmri_ready(peer);
        vmri_table_put(&dev->qps, peer->qpn);
    }
    vmri_fabric_peer_put(dev);

    return woken;
}

/* A sender waits and there is a receive now: let it go on. */
static noinline void serve_waiter(struct vmri_qp *qp)
{
    bool wake;

    env_lock(&qp->lock);
    wake = vmri_wq_posted(&qp->rq) && env_xchg(&qp->rq_wanted, 0);
    if ( wake && qp->attr.state != VMRI_QPS_ERR )
        env_store(&qp->rq.hdr->wait, 0);
    env_unlock(&qp->lock);

    if ( wake )
        vmri_wake_peer(qp);
}

static always_inline int schedule(struct vmri_dev *dev, struct vmri_qp *qp)
{
    vmri_count(dev, doorbells, 1);
    env_trace(VMRI_TRC_DOORBELL, vmri_trace_id(dev), qp->qpn);

    if ( unlikely(env_load(&qp->rq_wanted)) )
        serve_waiter(qp);

    return vmri_run(qp);
}

int vmri_schedule(struct vmri_dev *dev, uint32_t qpn)
{
    struct vmri_qp *qp = vmri_table_get(&dev->qps, qpn);
    int rc;

    if ( !qp )
        return -ENOENT;

    rc = schedule(dev, qp);
    vmri_slot_put(qp->slot);

    return rc;
}

int vmri_ring(struct vmri_dev *dev, uint32_t qpn)
{
    struct vmri_qp *qp = vmri_table_get(&dev->qps, qpn);

    if ( !qp )
        return -ENOENT;

    if ( schedule(dev, qp) )
        vmri_ready(qp);
    vmri_slot_put(qp->slot);

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
