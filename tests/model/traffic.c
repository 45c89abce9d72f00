/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rounds of requests and receives on a link, in any order that leaves no doubt
 * about what must come of them, whoever runs first:
 *  - a message that may wait for its receive does not touch memory before;
 *  - where a message without a receive is lost, no receive is posted after it
 *    in the same round;
 *  - when one end is to fail, the other sends nothing.
 */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

#define MANY    300000U

static struct rng *rng_of(const struct qp *q)
{
    return &q->side->cell->rng;
}

static bool receives(const struct qp *q)
{
    return q->attr.state >= VMRI_QPS_RTR && q->attr.state <= VMRI_QPS_SQE;
}

bool link_waits(const struct qp *q)
{
    return wq_posted(&q->sq) || wq_posted(&q->peer->sq);
}

/* ---- receives ---- */

bool may_receive(const struct qp *q)
{
    return qp_receives(q) && wq_room(&q->rq->wq) && !q->rq->starved &&
           (q->rq->handle || !qp_shares(q));
}

void recv_one(struct qp *q, uint32_t length)
{
    struct recv r;

    make_recv(q, max(length, needed(q->peer, q->rq)) + (qp_is_datagram(q) ? VMRI_GRH : 0),
              &r);
    post_recv(q, &r);
}

static void end_round(struct qp *q)
{
    maybe_arm(q->side->cell);
    settle(q->side->cell);
}

static void fill_one_way(struct qp *q)
{
    struct rq *rq;

    while ( (rq = lacks_receive(q)) != NULL )
    {
        q->peer->rq = rq;
        if ( !wq_room(&q->peer->rq->wq) )
            end_round(q);
        if ( !may_receive(q->peer) )
            return;
        recv_one(q->peer, 0);
    }
}

void fill_receives(struct qp *q)
{
    fill_one_way(q);
    fill_one_way(q->peer);
}

/* ---- sends ---- */

/* May this one wait for a receive that comes later? */
static bool may_wait(const struct qp *q, unsigned int opcode)
{
    return qp_is_reliable(q) && q->attr.rnr_retry == 7 && is_send(opcode) &&
           opcode != VMRI_WR_SEND_WITH_INV &&
           (!qp_shares(q->peer) || (qp_is_xrc(q) && q->peer->rq->handle));
}

/*
 * The bytes that the next message may have; false: it must not be sent.  One
 * that finds no receive is lost, waits, or has one posted for it.
 */
static bool prepare_receive(struct qp *q, unsigned int opcode, uint32_t *limit)
{
    const struct recv *r = next_recv(q);
    uint64_t room;

    if ( !r && receives(q->peer) )
    {
        if ( may_wait(q, opcode) && rng_percent(rng_of(q), 30) )
        {
            /* Its receive may have no more than one entry. */
            *limit = HALF / 2;
            return true;
        }
        if ( may_receive(q->peer) &&
             (qp_is_reliable(q) || rng_percent(rng_of(q), 80)) )
        {
            recv_one(q->peer, 0);
            r = next_recv(q);
            if ( !r )
                return false;
        }
        else if ( qp_is_reliable(q) )
            return false;
        else
            q->peer->rq->starved = true;
    }
    if ( !r || !is_send(opcode) )
        return true;
    room = list_bytes(r->sge, r->wqe.num_sge);
    if ( qp_is_datagram(q) )
        room = room > VMRI_GRH ? room - VMRI_GRH : 0;
    *limit = (uint32_t)min_t(uint64_t, *limit, room);
    return true;
}

void send_opcode(struct qp *q, unsigned int opcode)
{
    uint32_t limit = qp_is_datagram(q) ? VMRI_MTU : MANY;
    struct send s;

    if ( !wq_room(&q->sq) ||
         (takes_receive(opcode) && !prepare_receive(q, opcode, &limit)) )
        return;
    make_send(q, opcode, limit, &s);
    /* Lost, since too long: what comes after may be shorter. */
    if ( !qp_is_reliable(q) && is_send(opcode) && rng_percent(rng_of(q), 5) )
        make_send(q, opcode, qp_is_datagram(q) ? VMRI_MTU : MANY, &s);
    if ( qp_is_datagram(q) && rng_percent(rng_of(q), 3) )
    {
        if ( rng_percent(rng_of(q), 50) )
            s.wqe.u.ud.remote_qkey = 0x123;
        else
            s.wqe.u.ud.remote_qpn = 0xabcdef;
    }
    post_send(q, &s);
    if ( rng_percent(rng_of(q), 50) )
        ring(q);
}

void send_one(struct qp *q)
{
    if ( !qp_sends(q) )
        return;
    choose_queue(q);
    send_opcode(q, pick_opcode(q));
}

/* ---- rounds ---- */

static void one_action(struct qp *q)
{
    struct rq *rq = &q->side->srq[rng_below(rng_of(q), SRQS)];

    if ( q->attr.state == VMRI_QPS_RTS && rng_percent(rng_of(q), 70) )
        send_one(q);
    else
    {
        choose_queue(q->peer);
        if ( may_receive(q) )
            recv_one(q, 0);
    }
    if ( rng_percent(rng_of(q), 10) )
        serve(q->side->cell);
    if ( rng_percent(rng_of(q), 1) )
        cq_move(&q->side->cq[rng_below(rng_of(q), CQS)],
                7 + rng_below(rng_of(q), 2));
    if ( rq->handle && rng_percent(rng_of(q), 2) )
        srq_move(rq, 2 + rng_below(rng_of(q), 4));
}

void traffic_round(struct qp *q)
{
    unsigned int n = 4 + rng_below(rng_of(q), 36);

    maybe_arm(q->side->cell);
    q->side->cell->clean = true;
    while ( n-- )
        one_action(rng_percent(rng_of(q), 50) ? q : q->peer);
    if ( !rng_percent(rng_of(q), 30) )
        fill_receives(q);
    end_round(q);
    q->side->cell->clean = false;
}

/*
 * Alone, since the peer uses these keys; where it does so in the order of its
 * own requests, it invalidates them, too.
 */
void key_round(struct qp *q)
{
    unsigned int n = 1 + rng_below(rng_of(q), 6);
    struct send s;

    if ( q->attr.state != VMRI_QPS_RTS || qp_is_datagram(q) || !qp_sends(q) ||
         link_waits(q) )
        return;
    while ( n-- && wq_room(&q->sq) )
        if ( make_key_request(q, !rng_percent(rng_of(q), 3), &s) )
            post_send(q, &s);
    end_round(q);
}

/* ---- what is wrong ---- */

/* q's next message has its receive. */
static bool provide(struct qp *q)
{
    unsigned int n;

    for ( n = 0; n < DEPTH && !next_recv(q) && may_receive(q->peer); n++ )
        recv_one(q->peer, 0);
    return next_recv(q) != NULL;
}

/* How many bytes q's next message may have. */
static uint32_t fitting(struct qp *q)
{
    const struct recv *r = next_recv(q);
    uint64_t room = list_bytes(r->sge, r->wqe.num_sge);

    if ( qp_is_datagram(q) )
        room = min_t(uint64_t, room > VMRI_GRH ? room - VMRI_GRH : 0, VMRI_MTU);
    return (uint32_t)min_t(uint64_t, room, MANY);
}

void send_spoiled(struct qp *q)
{
    unsigned int opcode = pick_opcode(q);
    struct send s;

    if ( !wq_room(&q->sq) || !provide(q) )
        return;
    make_send(q, opcode, is_send(opcode) ? fitting(q) : MANY, &s);
    if ( rng_percent(rng_of(q), 30) )
        spoil_form(q, &s);
    else if ( !is_send(opcode) && rng_percent(rng_of(q), 50) )
        spoil_remote(q, &s);
    else if ( s.wqe.num_sge && !(s.wqe.flags & VMRI_SEND_INLINE) )
        spoil_list(&q->keys, q->side->index, s.sge, s.wqe.num_sge);
    post_send(q, &s);
}

/* An RDMA that the peer's queue pair does not allow. */
static void send_forbidden(struct qp *q)
{
    struct send s;

    if ( qp_is_datagram(q) || !provide(q) )
        return;
    make_send(q, rng_percent(rng_of(q), 50) ? VMRI_WR_RDMA_WRITE
                                            : VMRI_WR_RDMA_READ, MANY, &s);
    post_send(q, &s);
}

static void send_too_long(struct qp *q)
{
    struct send s;

    if ( !provide(q) )
        return;
    make_send(q, VMRI_WR_SEND, qp_is_datagram(q) ? VMRI_MTU : MANY, &s);
    post_send(q, &s);
}

/* A receive that names what it may not.  It has one entry, see the oracle. */
static void send_into_nothing(struct qp *q)
{
    struct qp *peer = q->peer;
    struct recv r;
    struct send s;

    if ( next_recv(q) || !may_receive(peer) )
        return;
    make_recv(peer, 200, &r);
    if ( r.wqe.num_sge != 1 )
        return;
    spoil_list(&peer->rq->keys, q->side->index, r.sge, 1);
    post_recv(peer, &r);
    do
        make_send(q, VMRI_WR_SEND, 100, &s);
    while ( !s.wqe.length );
    post_send(q, &s);
}

/* No receive, and no patience. */
static void send_unexpected(struct qp *q)
{
    struct send s;

    if ( next_recv(q) || q->attr.rnr_retry == 7 )
        return;
    q->peer->rq->starved = true;
    make_send(q, VMRI_WR_SEND, MANY, &s);
    post_send(q, &s);
}

/* A receive of a queue that is none of the target's: of another domain, say. */
static void send_to_wrong_queue(struct qp *q)
{
    static const uint8_t opcodes[] = {
        VMRI_WR_SEND, VMRI_WR_SEND_WITH_IMM, VMRI_WR_RDMA_WRITE_WITH_IMM,
        VMRI_WR_SEND_WITH_INV,
    };
    struct rng *rng = rng_of(q);
    unsigned int opcode = opcodes[rng_below(rng, ARRAY_SIZE(opcodes))];
    struct side *to = q->peer->side;
    struct send s;

    if ( !qp_is_xrc(q) )
        return;
    make_send(q, opcode, MANY, &s);
    s.wqe.u.rdma.srqn = rng_percent(rng, 70)
                        ? to->srq[rng_below(rng, SRQS)].handle
                        : rng_percent(rng, 70)
                        ? to->srq[rng_below(rng, SRQS)].old_handle : ~0U;
    /* It may be one after all: then the receive is there. */
    if ( rq_of(q, &s) )
        s.wqe.u.rdma.srqn = 0;
    post_send(q, &s);
}

/* A message that waits for its receive, of the queue that was chosen. */
static bool send_and_wait(struct qp *q)
{
    struct send s;

    if ( !qp_is_xrc(q) || wq_posted(&q->sq) || next_recv(q) ||
         q->attr.rnr_retry != 7 || !q->peer->rq->handle )
        return false;
    settle(q->side->cell);
    make_send(q, VMRI_WR_SEND, MANY, &s);
    post_send(q, &s);
    if ( rng_percent(rng_of(q), 80) )
        settle(q->side->cell);
    return true;
}

/* The queue goes: a message that has begun to wait looks again in time. */
static void send_to_queue_that_goes(struct qp *q)
{
    if ( !send_and_wait(q) )
        return;
    srq_unmake(q->peer->rq);
    oracle_run(q);
    q->side->cell->needs_clock = true;
}

/* The sender is reset, and the target does not know. */
static void send_and_forget(struct qp *q)
{
    if ( !send_and_wait(q) )
        return;
    settle(q->side->cell);
    qp_move(q, VMRI_QPS_RESET);
}

/* The peer does not answer. */
static void send_to_nobody(struct qp *q)
{
    if ( qp_is_reliable(q) && !q->attr.timeout )
        return;
    settle(q->side->cell);
    if ( rng_percent(rng_of(q), 50) )
        qp_move(q->peer, VMRI_QPS_ERR);
    else
        qp_move(q->peer, VMRI_QPS_RESET);
    settle(q->side->cell);
    send_one(q);
}

void error_round(struct qp *q)
{
    static void (*const wrongs[])(struct qp *) = {
        send_spoiled, send_spoiled, send_spoiled, send_forbidden,
        send_too_long, send_into_nothing, send_unexpected, send_to_nobody,
        send_to_wrong_queue, send_to_queue_that_goes, send_and_forget,
    };
    /* The last ones are XRC's. */
    const unsigned int kinds = ARRAY_SIZE(wrongs) - (qp_is_xrc(q) ? 0 : 3);
    unsigned int n;

    maybe_arm(q->side->cell);
    for ( n = rng_below(rng_of(q), 4); n; n-- )
        send_one(q);
    if ( wq_posted(&q->sq) || wq_room(&q->sq) < 6 )
    {
        fill_receives(q);
        end_round(q);
    }
    choose_queue(q);
    wrongs[rng_below(rng_of(q), kinds)](q);
    for ( n = rng_below(rng_of(q), 4); n && q->attr.state; n-- )
        send_one(q);
    if ( rng_percent(rng_of(q), 50) && may_receive(q) )
        recv_one(q, 0);
    end_round(q);
    if ( q->peer->attr.state == VMRI_QPS_ERR )
        for ( n = rng_below(rng_of(q), 3); n && qp_sends(q->peer); n-- )
            send_one(q->peer);
    end_round(q);
}
