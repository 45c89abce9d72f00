/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: what the operations of a connected queue pair do, a step at a time.
 *
 * Requester and responder are one piece of code here: it runs for the
 * sender, on its CPU, and looks at the peer's queue pair, receives and
 * memory.  Between steps it holds nothing of the peer's, who may vanish; all
 * progress is in the QPs.
 *
 * An unreliable connection's requester never waits and hears of nothing that
 * happens behind it: a message that the responder does not take is complete,
 * and counted as lost.  The responder's queue pair is none the worse for a
 * message that names memory wrongly, comes when no receive is posted, or is
 * longer than the receive, which then stays for the next message; only a
 * receive that cannot be filled, by a fault of its owner's, completes in error
 * and ends the queue pair (IBTA 1.4, 9.9.3, classes D and A).  What a WRITE
 * with immediate has written stays, also when there is no receive to tell of
 * it.
 */
#include "internal.h"

/* How long a queue rests that waits for a silent port without a time-out. */
#define LOOK_AGAIN_NS   1000000000ULL

/* IBTA 1.4, 9.7.5.2.8, table 45: the RNR NAK timer, in units of 10 us. */
static uint64_t rnr_timer_ns(unsigned int code)
{
    static const uint32_t table[32] = {
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
        256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
        16384, 24576, 32768, 49152,
    };

    return table[code & 31] * 10000ULL;
}

/* IBTA 1.4, 9.7.6.1.3: the local ACK time-out, 4.096 us * 2^n, 0 for ever. */
static uint64_t timeout_ns(unsigned int code)
{
    return code ? 4096ULL << (code & 31) : VMRI_FOREVER;
}

/*
 * May the queue wait once more?  A time that still runs goes on, so that being
 * woken early costs no retry; else `span` ns begin and use up one of `left`.
 */
static bool wait_again(uint64_t *until, uint8_t *left, uint64_t span)
{
    uint64_t now = env_now();

    if ( now < *until )
        return true;
    if ( !*left )
        return false;
    if ( *left != VMRI_UNLIMITED )
        --*left;
    *until = span == VMRI_FOREVER ? span : now + span;

    return true;
}

enum vmri_step vmri_fail(struct vmri_qp *qp, uint8_t status,
                         uint16_t vendor_err)
{
    qp->tx.status = status;
    qp->tx.vendor_err = vendor_err;

    return VMRI_STEP_FAILED;
}

/*
 * What the responder refuses.  The requester's request fails with it, unless
 * the connection is unreliable: then the message is lost.
 */
static enum vmri_step refuse(struct vmri_qp *qp, uint8_t status,
                             uint16_t vendor_err)
{
    if ( vmri_qp_unreliable(qp) )
        return VMRI_STEP_LOST;

    return vmri_fail(qp, status, vendor_err);
}

/*
 * Nobody answers: wait for the time-out, or until the peer connects.  The
 * second look closes the race with a peer that got ready before we were
 * parked.
 */
static enum vmri_step wait_for_peer(struct vmri_qp *qp)
{
    struct vmri_qp *peer;
    uint64_t until;

    if ( vmri_qp_unreliable(qp) )
    {
        vmri_count(qp->dev, ud_drops, 1);
        return VMRI_STEP_LOST;
    }

    /* Waiting would not help. */
    if ( qp->tx.forbidden )
        return vmri_fail(qp, VMRI_WC_RETRY_EXC_ERR, VMRI_VERR_FORBIDDEN);

    vmri_count_qp(qp, retries, 1);
    if ( !wait_again(&qp->tx.silent_until, &qp->tx.retry,
                     timeout_ns(qp->attr.timeout)) )
        return vmri_fail(qp, VMRI_WC_RETRY_EXC_ERR, VMRI_VERR_NO_PEER);

    until = qp->tx.silent_until;
    if ( until == VMRI_FOREVER && qp->tx.muted )
        until = env_now() + LOOK_AGAIN_NS;

    vmri_park_add(qp, VMRI_PARK_PEER, until);
    env_mb();
    peer = vmri_peer_get(qp);
    if ( !peer )
        return VMRI_STEP_PARKED;
    vmri_peer_put(peer);

    return vmri_park_remove(qp) ? VMRI_STEP_MORE : VMRI_STEP_PARKED;
}

/*
 * Have it told by the queue's header that we wait, and look once more: that
 * closes the race with a receive that was posted before.  True also when the
 * peer does not take our requests any more: then not for a receive we wait.
 */
static bool receive_came(struct vmri_qp *qp, struct vmri_qp *peer)
{
    bool came = true;

    env_lock(&peer->lock);
    if ( !vmri_peer_answers(peer, qp) )
        ;
    else if ( qp->tx.srq )
        came = vmri_srq_wait(qp->tx.srq, peer);
    else
    {
        env_store(&peer->rq_wanted, 1);
        env_store(&peer->rq.hdr->wait, 1);
        env_mb();
        came = vmri_wq_posted(&peer->rq);
    }
    env_unlock(&peer->lock);

    return came;
}

/* The peer has no receive: wait as long as it asks, or until it posts one. */
static enum vmri_step wait_for_receive(struct vmri_qp *qp,
                                       struct vmri_qp *peer)
{
    if ( vmri_qp_unreliable(qp) )
        return VMRI_STEP_LOST;

    vmri_count_qp(qp, rnr, 1);
    if ( !wait_again(&qp->tx.rnr_until, &qp->tx.rnr,
                     rnr_timer_ns(qp->tx.peer_rnr_timer)) )
    {
        vmri_srq_leave(peer);
        return vmri_fail(qp, VMRI_WC_RNR_RETRY_EXC_ERR, VMRI_VERR_NO_RECV);
    }

    vmri_park_add(qp, VMRI_PARK_RNR, qp->tx.rnr_until);

    return receive_came(qp, peer) && vmri_park_remove(qp) ? VMRI_STEP_MORE
                                                          : VMRI_STEP_PARKED;
}

/*
 * Complete a receive that cannot be filled, and with it the peer's QP.  The
 * sender learns that the responder failed.
 */
static enum vmri_step fail_receive(struct vmri_qp *qp, struct vmri_qp *peer,
                                   uint8_t status, uint16_t vendor_err)
{
    struct vmri_cqe cqe = {
        .status = status,
        .vendor_err = vendor_err,
        .opcode = VMRI_WC_OP_RECV,
    };

    vmri_recv_complete(peer, &peer->rx, &cqe);
    vmri_qp_error(peer, 0);

    return refuse(qp, status == VMRI_WC_LOC_LEN_ERR
                      ? VMRI_WC_REM_INV_REQ_ERR : VMRI_WC_REM_OP_ERR,
                  vendor_err == VMRI_VERR_LENGTH ? VMRI_VERR_RECV_SIZE
                                                 : vendor_err);
}

/*
 * The message is longer than the receive (IBTA 1.4, 9.9.3).  That of an
 * unreliable connection stays for the next message.
 */
static enum vmri_step fail_length(struct vmri_qp *qp, struct vmri_qp *peer)
{
    if ( vmri_qp_unreliable(qp) )
        return VMRI_STEP_LOST;

    return fail_receive(qp, peer, VMRI_WC_LOC_LEN_ERR, VMRI_VERR_LENGTH);
}

/*
 * Make the peer's next receive ours.  One that an earlier connection of the
 * peer left half filled is filled anew, unless (XRC) it is of another SRQ.
 */
static enum vmri_step claim_receive(struct vmri_qp *qp, struct vmri_qp *peer)
{
    struct vmri_srq *srq = qp->tx.srq;
    bool told = true;
    int rc = 1;

    if ( !srq && !peer->rq.hdr )
        return refuse(qp, VMRI_WC_REM_INV_REQ_ERR, VMRI_VERR_NO_RECV);

    env_lock(&peer->lock);
    if ( peer->xrcd && peer->rx.active && peer->rx.srqn != srq->handle )
    {
        told = vmri_recv_flush(peer, &peer->rx);
        peer->rx.active = false;
    }
    if ( !told )
        rc = -EINVAL;
    else if ( peer->rx.active )
    {
        peer->rx.sgl.next = 0;
        peer->rx.sgl.used = peer->rx.sgl.cur.length = 0;
    }
    else
    {
        rc = vmri_recv_take(peer, srq, 0, &peer->rx, peer->rx_sge);
        peer->rx.active = rc > 0;
    }
    env_unlock(&peer->lock);

    if ( rc < 0 )
    {
        vmri_qp_error(peer, VMRI_EVENT_QP_FATAL);
        return refuse(qp, VMRI_WC_REM_OP_ERR, VMRI_VERR_RING);
    }
    if ( !rc )
        return wait_for_receive(qp, peer);

    qp->tx.claimed = true;

    return VMRI_STEP_DONE;
}

enum vmri_step vmri_fail_both(struct vmri_qp *qp, struct vmri_qp *peer,
                              uint8_t status, uint16_t vendor_err)
{
    if ( !vmri_qp_unreliable(qp) )
        vmri_qp_error(peer, status == VMRI_WC_REM_ACCESS_ERR
                            ? VMRI_EVENT_QP_ACCESS_ERR
                            : VMRI_EVENT_QP_REQ_ERR);

    return refuse(qp, status, vendor_err);
}

/* All bytes are there: tell the receiver, when the operation does. */
static enum vmri_step finish(struct vmri_qp *qp, struct vmri_qp *peer)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    bool write = wqe->opcode == VMRI_WR_RDMA_WRITE_WITH_IMM;
    bool imm = write || wqe->opcode == VMRI_WR_SEND_WITH_IMM;
    bool inv = wqe->opcode == VMRI_WR_SEND_WITH_INV;
    struct vmri_cqe cqe = {
        .opcode = write ? VMRI_WC_OP_RECV_RDMA_WITH_IMM : VMRI_WC_OP_RECV,
        .byte_len = wqe->length,
        .imm = imm || inv ? wqe->imm : 0,
        .flags = (imm ? VMRI_WC_WITH_IMM : 0) |
                 (inv ? VMRI_WC_WITH_INV : 0) |
                 (wqe->flags & VMRI_SEND_SOLICITED ? VMRI_WC_SOLICITED : 0),
    };
    uint16_t verr;

    if ( !qp->tx.claimed )
    {
        vmri_count_qp(peer, rx_msgs, 1);
        if ( qp->tx.moves == VMRI_MOVES_BACK )
            vmri_count_qp(peer, tx_bytes, wqe->length);
        else if ( qp->tx.moves == VMRI_MOVES_OUT )
            vmri_count_qp(peer, rx_bytes, wqe->length);

        return VMRI_STEP_DONE;
    }

    /* The receiver knows by the completion that nobody uses the key. */
    if ( inv )
    {
        verr = vmri_key_invalidate(peer, peer->xrcd ? &qp->tx.srq->rings
                                                    : &peer->rings,
                                   wqe->imm, true);
        if ( verr )
            return vmri_fail_both(qp, peer, VMRI_WC_REM_ACCESS_ERR, verr);
    }

    if ( !vmri_recv_complete(peer, &peer->rx, &cqe) )
        return refuse(qp, VMRI_WC_REM_OP_ERR, VMRI_VERR_RING);

    return VMRI_STEP_DONE;
}

static bool is_send(const struct vmri_tx *tx)
{
    return tx->wqe.opcode == VMRI_WR_SEND ||
           tx->wqe.opcode == VMRI_WR_SEND_WITH_IMM ||
           tx->wqe.opcode == VMRI_WR_SEND_WITH_INV;
}

/* Move this many bytes. */
static enum vmri_step move(struct vmri_qp *qp, struct vmri_qp *peer,
                           uint32_t bytes)
{
    struct vmri_tx *tx = &qp->tx;
    bool read = tx->wqe.opcode == VMRI_WR_RDMA_READ;
    struct vmri_place local = {
        .qp = qp,
        .write = read,
        .data = tx->data ? tx->data + tx->done : NULL,
        .sgl = &tx->sgl,
        .extent = tx->wqe.length - tx->done,
    };
    struct vmri_place remote = {
        .qp = peer,
        .write = !read,
        .sgl = is_send(tx) ? &peer->rx.sgl : NULL,
        .key = tx->wqe.u.rdma.rkey,
        .pd = vmri_remote_pd(qp, peer),
        .access = tx->right,
        .addr = tx->wqe.u.rdma.remote_addr + tx->done,
        .extent = tx->wqe.length - tx->done,
    };
    enum vmri_copied rc = read ? vmri_copy(&local, &remote, bytes)
                               : vmri_copy(&remote, &local, bytes);

    if ( rc == VMRI_COPIED )
    {
        tx->done += bytes;
        return VMRI_STEP_DONE;
    }

    if ( (rc == VMRI_COPY_TO) == read )
        return vmri_fail(qp, VMRI_WC_LOC_PROT_ERR, local.vendor_err);

    if ( is_send(tx) )
        return fail_receive(qp, peer, VMRI_WC_LOC_PROT_ERR, remote.vendor_err);

    return vmri_fail_both(qp, peer, VMRI_WC_REM_ACCESS_ERR, remote.vendor_err);
}

static enum vmri_step step(struct vmri_qp *qp, struct vmri_qp *peer,
                           uint32_t *budget)
{
    struct vmri_tx *tx = &qp->tx;
    uint32_t bytes = tx->wqe.length - tx->done;
    enum vmri_step rc;

    /*
     * Under the message the peer was reset, and connected to us again, or went
     * and another has its numbers.
     */
    if ( !tx->done )
        tx->peer_life = peer->life;
    else if ( tx->peer_life != peer->life )
        return refuse(qp, VMRI_WC_RETRY_EXC_ERR, VMRI_VERR_NO_PEER);

    /* An operation that the responder's QP does not do (IBTA 1.4, 9.7.4.1). */
    if ( tx->right & ~tx->peer_access )
        return vmri_fail_both(qp, peer, VMRI_WC_REM_INV_REQ_ERR,
                              VMRI_VERR_RIGHTS);

    if ( vmri_is_atomic(tx->wqe.opcode) )
    {
        if ( tx->wqe.opcode == VMRI_WR_FLUSH )
            bytes = 0;
        if ( !vmri_rate_allows(qp, &bytes) )
            return VMRI_STEP_PARKED;
        rc = vmri_atomic(qp, peer);
        return rc == VMRI_STEP_DONE ? finish(qp, peer) : rc;
    }

    if ( is_send(tx) && !tx->claimed )
    {
        rc = claim_receive(qp, peer);
        if ( rc != VMRI_STEP_DONE )
            return rc;
        vmri_spend(budget, peer->rx.sgl.num * VMRI_ENTRY_COST);
        if ( !vmri_cursor_holds(&peer->rx.sgl, tx->wqe.length) )
            return fail_length(qp, peer);
    }

    /* Each step looks the peer up anew, which is dear: as much as may be. */
    bytes = min(bytes, max_t(uint32_t, *budget, VMRI_STEP));
    if ( !vmri_rate_allows(qp, &bytes) )
        return VMRI_STEP_PARKED;
    if ( bytes )
    {
        rc = move(qp, peer, bytes);
        if ( rc != VMRI_STEP_DONE )
            return rc;
        vmri_spend(budget, bytes);
    }

    if ( tx->done < tx->wqe.length )
        return VMRI_STEP_MORE;

    /* The receive that an immediate consumes is taken with its last byte. */
    if ( tx->wqe.opcode == VMRI_WR_RDMA_WRITE_WITH_IMM )
    {
        rc = claim_receive(qp, peer);
        if ( rc != VMRI_STEP_DONE )
            return rc;
    }

    return finish(qp, peer);
}

static bool takes_receive(const struct vmri_tx *tx)
{
    return is_send(tx) || tx->wqe.opcode == VMRI_WR_RDMA_WRITE_WITH_IMM;
}

/*
 * Where the request's receive comes from is held for the step: tx.srq.  False:
 * it names an SRQ that is none of the peer's XRC domain (IBTA 1.4, annex A14).
 * Requests without a receive name one for its PD, if they do.
 */
static bool source_get(struct vmri_qp *qp, struct vmri_qp *peer)
{
    struct vmri_tx *tx = &qp->tx;

    tx->srq = peer->srq;
    if ( !peer->xrcd )
        return true;

    tx->srq = vmri_srq_get(peer, tx->wqe.u.rdma.srqn);
    if ( !tx->srq )
        return !takes_receive(tx);

    /* Its keys are the SRQ's, also when that had another PD a step ago. */
    if ( tx->claimed )
        peer->rx.sgl.pd = tx->srq->rings.pd;

    return true;
}

static void source_put(struct vmri_qp *qp, struct vmri_qp *peer)
{
    if ( peer->xrcd && qp->tx.srq )
        vmri_srq_put(qp->tx.srq);
}

const struct vmri_pd *vmri_remote_pd(const struct vmri_qp *qp,
                                     const struct vmri_qp *peer)
{
    const struct vmri_srq *srq = peer->xrcd ? qp->tx.srq : NULL;

    return srq ? srq->rings.pd : peer->rings.pd;
}

enum vmri_step vmri_transfer(struct vmri_qp *qp, uint32_t *budget)
{
    struct vmri_qp *peer = vmri_peer_get(qp);
    enum vmri_step rc;

    if ( !peer )
        return wait_for_peer(qp);

    /* The peer answers: its silence is counted anew. */
    qp->tx.retry = qp->attr.retry_cnt + 1;
    qp->tx.silent_until = 0;

    if ( source_get(qp, peer) )
    {
        rc = step(qp, peer, budget);
        source_put(qp, peer);
    }
    else
        rc = vmri_fail_both(qp, peer, VMRI_WC_REM_INV_REQ_ERR, VMRI_VERR_SRQ);

    if ( rc == VMRI_STEP_LOST )
        vmri_count(peer->dev, ud_drops, 1);
    vmri_peer_put(peer);

    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
