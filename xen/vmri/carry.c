/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: what queue pairs send to other hosts, and receive from there: by their
 * twins on the NIC of an uplink.
 *
 * A request is looked at as one for this host is, but to its end before it leaves:
 * keys are VMRI's own, of regions that have twins, and what an entry names lies
 * within.  Copies of all that leave VMRI; what the guest does to its ring then is
 * its own affair.  What is handed out comes back, in order, and completes in a call
 * of dom0's.  So a request that is found wrong waits until those before it are
 * back, and so does a flush.
 */
#include "internal.h"

/* As the engine has it. */
#define REQUEST_COST    1024U

/* ---- waiting for what was handed out ---- */

bool vmri_carry_below(struct vmri_carry *c, const uint32_t *away,
                      uint32_t limit)
{
    if ( env_load_acquire(away) < limit )
        return true;

    env_store(&c->wanted, 1);
    env_mb();

    return env_load_acquire(away) < limit;
}

void vmri_carry_call(struct vmri_qp *qp)
{
    struct vmri_dev *dev = qp->dev;

    if ( !vmri_slot_get(dev->slot, dev->id) )
        return;

    vmri_ready(qp);
    vmri_slot_put(dev->slot);
}

void vmri_carry_call_waiting(struct vmri_qp *qp)
{
    if ( env_load(&qp->carry->wanted) && env_xchg(&qp->carry->wanted, 0) )
        vmri_carry_call(qp);
}

static void came_back(struct vmri_qp *qp, uint32_t *away)
{
    env_fetch_sub(away, 1);
    vmri_carry_call_waiting(qp);
}

bool vmri_carry_home(struct vmri_qp *qp)
{
    return vmri_carry_below(qp->carry, &qp->carry->sends, 1) &&
           vmri_carry_below(qp->carry, &qp->carry->recvs, 1);
}

void vmri_carry_lost(struct vmri_qp *qp)
{
    env_store_release(&qp->carry->sends, 0);
    vmri_lend_lost(qp);
    env_mb();
    vmri_carry_call_waiting(qp);
}

/* ---- handing out; by the owner ---- */

static bool takes(const struct vmri_double *t, unsigned int type)
{
    return t->state == VMRI_QPS_RTS ||
           (type == VMRI_UPLINK_RECV && t->state == VMRI_QPS_RTR);
}

/* By uplink->lock. */
static bool put(struct vmri_uplink *u, struct vmri_qp *qp,
                struct vmri_uplink_msg *msg, const void *body, uint32_t bytes)
{
    const struct vmri_double *t = vmri_twin_of(qp);

    if ( !t || !takes(t, msg->type) )
        return false;

    msg->domid = t->domid;
    msg->dev_id = t->dev_id;
    msg->twin = t->handle;
    msg->pd = t->pd;

    return vmri_uplink_put_in_turn(u, &qp->carry->waiter, msg, body, bytes);
}

bool vmri_carry_hand_out(struct vmri_qp *qp, struct vmri_uplink_msg *msg,
                         const void *body, uint32_t bytes, uint32_t *away)
{
    struct vmri_uplink *u = qp->dev->uplink;
    bool done;

    env_lock(&u->lock);
    done = put(u, qp, msg, body, bytes);
    if ( done )
        env_add(away, 1);
    env_unlock(&u->lock);

    return done;
}

uint32_t vmri_carry_entries(const struct vmri_qp *qp, struct vmri_sge *sge,
                            uint32_t num, uint64_t want, uint32_t access,
                            uint16_t *verr)
{
    uint32_t i, n = 0;

    *verr = VMRI_VERR_NONE;
    for ( i = 0; i < num && want; i++ )
    {
        struct vmri_sge s = sge[i];
        struct vmri_key *k;
        bool known;

        /* To some NICs, 0 is 2^31. */
        if ( !s.length )
            continue;
        s.length = min_t(uint64_t, s.length, want);

        k = vmri_key_get(qp, qp->rings.pd, s.lkey, access | VMRI_KEY_LOCAL,
                         s.addr, s.length, verr);
        if ( !k )
            return 0;
        known = k->twin;
        vmri_key_put(k);
        if ( !known )
        {
            *verr = VMRI_VERR_KEY;
            return 0;
        }
        want -= s.length;
        sge[n++] = s;
    }

    return n;
}

/* ---- receives ---- */

/* One that cannot be filled: when it is the next. */
static enum vmri_step fail_receive(struct vmri_qp *qp,
                                   const struct vmri_rx *rx, uint16_t verr)
{
    struct vmri_cqe cqe = {
        .status = VMRI_WC_LOC_PROT_ERR,
        .vendor_err = verr,
        .opcode = VMRI_WC_OP_RECV,
    };

    if ( !vmri_carry_below(qp->carry, &qp->carry->recvs, 1) )
        return VMRI_STEP_PARKED;

    env_lock(&qp->lock);
    qp->rq.cons++;
    env_unlock(&qp->lock);
    vmri_recv_complete(qp, rx, &cqe);
    vmri_qp_set_error(qp, 0);

    return VMRI_STEP_MORE;
}

static enum vmri_step hand_receive(struct vmri_qp *qp)
{
    struct vmri_uplink_msg msg = { .type = VMRI_UPLINK_RECV };
    struct vmri_sge sge[VMRI_MAX_SGE];
    struct vmri_rx rx = { .srqn = 0 };
    uint16_t verr;
    uint32_t n;

    if ( vmri_recv_fetch(&qp->rings, &qp->rq, &rx, sge) < 0 )
    {
        vmri_qp_set_error(qp, VMRI_EVENT_QP_FATAL);
        return VMRI_STEP_MORE;
    }

    n = vmri_carry_entries(qp, sge, rx.sgl.num, ~0ULL,
                           VMRI_ACCESS_LOCAL_WRITE, &verr);
    if ( verr )
        return fail_receive(qp, &rx, verr);

    msg.u.recv.wr_id = rx.wr_id;
    msg.u.recv.num_sge = n;
    if ( !vmri_carry_hand_out(qp, &msg, sge, n * sizeof(sge[0]),
                              &qp->carry->recvs) )
        return VMRI_STEP_PARKED;

    env_lock(&qp->lock);
    qp->rq.cons++;
    env_unlock(&qp->lock);

    return VMRI_STEP_DONE;
}

static enum vmri_step hand_receives(struct vmri_qp *qp, uint32_t *budget)
{
    struct vmri_carry *c = qp->carry;
    enum vmri_step rc = VMRI_STEP_DONE;

    while ( rc == VMRI_STEP_DONE && vmri_wq_posted(&qp->rq) )
    {
        if ( !*budget )
            return VMRI_STEP_MORE;
        if ( !vmri_carry_below(c, &c->recvs, c->max_recvs) )
            return VMRI_STEP_PARKED;
        rc = hand_receive(qp);
        vmri_spend(budget, REQUEST_COST);
    }

    return rc;
}

/* ---- requests ---- */

union body {
    struct vmri_sge sge[VMRI_MAX_SGE];
    uint8_t data[VMRI_MAX_INLINE];
};

/* What is carried of what send_check lets pass. */
static bool is_carried(const struct vmri_qp *qp)
{
    switch ( qp->tx.wqe.opcode )
    {
    case VMRI_WR_RDMA_WRITE:
    case VMRI_WR_RDMA_WRITE_WITH_IMM:
    case VMRI_WR_SEND:
    case VMRI_WR_SEND_WITH_IMM:
    case VMRI_WR_RDMA_READ:
        return true;

    case VMRI_WR_ATOMIC_CMP_AND_SWP:
    case VMRI_WR_ATOMIC_FETCH_AND_ADD:
        return qp->dev->caps.atomics;

    default:
        return false;
    }
}

/* Copies of the entries, checked; how many.  False: tx says what is wrong. */
static bool gather(struct vmri_qp *qp, struct vmri_sge *sge, uint16_t *num)
{
    struct vmri_tx *tx = &qp->tx;
    const bool fetch = tx->moves == VMRI_MOVES_BACK;
    uint16_t verr;

    vmri_cursor_privatise(&tx->sgl, sge);
    *num = vmri_carry_entries(qp, sge, tx->sgl.num, tx->wqe.length,
                              fetch ? VMRI_ACCESS_LOCAL_WRITE : 0, &verr);
    if ( verr )
    {
        vmri_fail(qp, VMRI_WC_LOC_PROT_ERR, verr);
        return false;
    }
    if ( tx->right == VMRI_ACCESS_REMOTE_ATOMIC && *num != 1 )
    {
        vmri_fail(qp, VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_SGES);
        return false;
    }

    return true;
}

/* The request in tx as it is to leave; false: tx says what is wrong with it. */
static bool compose(struct vmri_qp *qp, struct vmri_uplink_msg *msg,
                    union body *body, uint32_t *bytes)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    uint16_t num = 0;

    if ( !vmri_send_check(qp) )
        return false;
    if ( !is_carried(qp) )
    {
        vmri_fail(qp, VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_OPCODE);
        return false;
    }

    if ( qp->tx.data )
    {
        *bytes = env_nospec(wqe->length, VMRI_MAX_INLINE + 1);
        vmri_copy_in(body->data, qp->tx.data, *bytes);
    }
    else
    {
        if ( !gather(qp, body->sge, &num) )
            return false;
        *bytes = num * sizeof(body->sge[0]);
    }

    *msg = (struct vmri_uplink_msg){
        .type = VMRI_UPLINK_SEND,
        .u.send = {
            .wr_id = wqe->wr_id,
            .remote_addr = wqe->u.rdma.remote_addr,
            .compare_add = wqe->u.rdma.compare_add,
            .swap = wqe->u.rdma.swap,
            .rkey = wqe->u.rdma.rkey,
            .imm = wqe->imm,
            .length = wqe->length,
            .opcode = wqe->opcode,
            .flags = wqe->flags,
            .num_sge = num,
        },
    };

    return true;
}

/* When those before it are back. */
static enum vmri_step fail_send(struct vmri_qp *qp)
{
    if ( !vmri_carry_below(qp->carry, &qp->carry->sends, 1) )
    {
        qp->tx.active = false;
        return VMRI_STEP_PARKED;
    }

    vmri_complete(qp);
    vmri_qp_set_error(qp, 0);

    return VMRI_STEP_MORE;
}

static enum vmri_step hand_send(struct vmri_qp *qp)
{
    struct vmri_carry *c = qp->carry;
    const struct vmri_tx *tx = &qp->tx;
    struct vmri_uplink_msg msg;
    union body body;
    uint32_t bytes;

    vmri_send_fetch(qp);
    if ( !compose(qp, &msg, &body, &bytes) )
        return fail_send(qp);

    /* Until it has left, it is still to be taken. */
    qp->tx.active = false;
    if ( !vmri_rate_pays(qp, &c->paid) ||
         !vmri_carry_hand_out(qp, &msg, &body, bytes, &c->sends) )
        return VMRI_STEP_PARKED;

    c->paid = 0;
    if ( tx->moves == VMRI_MOVES_BACK )
        vmri_count_qp(qp, rx_bytes, tx->wqe.length);
    else
        vmri_count_qp(qp, tx_bytes, tx->wqe.length);
    vmri_send_retire(qp);

    return VMRI_STEP_DONE;
}

static enum vmri_step hand_sends(struct vmri_qp *qp, uint32_t *budget)
{
    struct vmri_carry *c = qp->carry;
    enum vmri_step rc = VMRI_STEP_DONE;
    int64_t posted;

    while ( rc == VMRI_STEP_DONE )
    {
        if ( vmri_qp_state(qp) != VMRI_QPS_RTS )
            return VMRI_STEP_MORE;
        posted = vmri_wq_posted(&qp->sq);
        if ( !posted )
            return VMRI_STEP_DONE;
        if ( posted < 0 )
        {
            vmri_qp_set_error(qp, VMRI_EVENT_QP_FATAL);
            return VMRI_STEP_MORE;
        }
        if ( !*budget )
            return VMRI_STEP_MORE;
        if ( !vmri_carry_below(c, &c->sends, c->max_sends) )
            return VMRI_STEP_PARKED;
        rc = hand_send(qp);
        vmri_spend(budget, REQUEST_COST);
    }

    return rc;
}

static void end_turn(struct vmri_qp *qp)
{
    struct vmri_uplink *u = qp->dev->uplink;

    if ( !env_load(&qp->carry->waiter.share) )
        return;

    env_lock(&u->lock);
    if ( vmri_twin_of(qp) )
        vmri_uplink_yield(u, &qp->carry->waiter);
    env_unlock(&u->lock);
}

enum vmri_step vmri_carry_receives(struct vmri_qp *qp, uint32_t *budget)
{
    return qp->srq ? vmri_lend(qp, budget) : hand_receives(qp, budget);
}

enum vmri_step vmri_carry(struct vmri_qp *qp, uint32_t *budget)
{
    const unsigned int state = vmri_qp_state(qp);
    enum vmri_step received = vmri_carry_receives(qp, budget), sent;

    if ( received == VMRI_STEP_MORE || state == VMRI_QPS_RTR )
        return received;

    if ( state == VMRI_QPS_SQD )
        sent = vmri_carry_below(qp->carry, &qp->carry->sends, 1)
               ? VMRI_STEP_DONE : VMRI_STEP_PARKED;
    else
        sent = hand_sends(qp, budget);

    /* What there is has left: others may have what is left of its turn. */
    if ( sent == VMRI_STEP_DONE && received == VMRI_STEP_DONE )
        end_turn(qp);

    return sent == VMRI_STEP_DONE ? received : sent;
}

/* ---- coming back ---- */

/* Trusted as dom0 is, but nothing that is not in the ABI reaches a guest. */
static uint8_t status_of(const struct vmri_uplink_result *r)
{
    return r->status <= VMRI_WC_GENERAL_ERR ? r->status : VMRI_WC_GENERAL_ERR;
}

static void sent(struct vmri_qp *qp, const struct vmri_uplink_result *r)
{
    struct vmri_carry *c = qp->carry;
    struct vmri_cqe cqe = {
        .wr_id = r->wr_id,
        .byte_len = r->byte_len,
        .status = status_of(r),
        .vendor_err = r->vendor_err,
        .opcode = r->opcode <= VMRI_WC_OP_FETCH_ADD ? r->opcode
                                                    : VMRI_WC_OP_SEND,
    };
    bool told = true;

    if ( !env_load_acquire(&c->sends) )
        return;

    if ( !cqe.status )
        vmri_count_qp(qp, tx_msgs, 1);
    if ( cqe.status || (r->flags & VMRI_SEND_SIGNALED) )
        told = vmri_cq_push(qp->scq, qp, &cqe);
    came_back(qp, &c->sends);

    if ( !told || cqe.status )
        vmri_qp_error(qp, told ? 0 : VMRI_EVENT_QP_FATAL);
}

static void received(struct vmri_qp *qp, const struct vmri_uplink_result *r)
{
    const struct vmri_rx rx = { .wr_id = r->wr_id };
    struct vmri_carry *c = qp->carry;
    struct vmri_cqe cqe = {
        .byte_len = r->byte_len,
        .imm = r->imm,
        .status = status_of(r),
        .vendor_err = r->vendor_err,
        .opcode = r->opcode == VMRI_WC_OP_RECV_RDMA_WITH_IMM
                  ? VMRI_WC_OP_RECV_RDMA_WITH_IMM : VMRI_WC_OP_RECV,
        .flags = r->flags & (VMRI_WC_WITH_IMM | VMRI_WC_SOLICITED),
    };

    if ( !env_load_acquire(&c->recvs) )
        return;

    if ( qp->srq )
    {
        vmri_recv_tell(qp, &rx, &cqe);
        vmri_lend_returned(qp, !cqe.status);
    }
    else
    {
        vmri_recv_complete(qp, &rx, &cqe);
        came_back(qp, &c->recvs);
    }
    if ( cqe.status )
        vmri_qp_error(qp, 0);
}

static void event(struct vmri_qp *qp, const struct vmri_uplink_result *r)
{
    switch ( r->event )
    {
    case VMRI_EVENT_COMM_EST:
        vmri_event_raise(qp->eq, &qp->source, r->event);
        break;

    case VMRI_EVENT_QP_FATAL:
    case VMRI_EVENT_QP_REQ_ERR:
    case VMRI_EVENT_QP_ACCESS_ERR:
        vmri_qp_error(qp, r->event);
        break;
    }
}

void vmri_carry_result(struct vmri_qp *qp, const struct vmri_uplink_result *r)
{
    switch ( r->type )
    {
    case VMRI_UPLINK_SENT:
        sent(qp, r);
        break;

    case VMRI_UPLINK_RECEIVED:
        received(qp, r);
        break;

    default:
        event(qp, r);
        break;
    }
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
