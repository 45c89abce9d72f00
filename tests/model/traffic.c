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

/* What the first waiting message without a receive needs; at least 0. */
static uint32_t needed(const struct qp *q)
{
    const struct qp *from = q->peer;
    uint32_t skip = wq_posted(&q->rq->wq) + q->claimed, i;

    for ( i = from->sq.done; i != from->sq.prod; i++ )
    {
        const struct vmri_send_wqe *w = &from->send[i % DEPTH].wqe;

        if ( takes_receive(w->opcode) && skip-- == 0 )
            return is_send(w->opcode) ? w->length : 0;
    }
    return 0;
}

bool may_receive(const struct qp *q)
{
    return wq_room(&q->rq->wq) && !q->rq->starved;
}

void recv_one(struct qp *q, uint32_t length)
{
    struct recv r;

    make_recv(q, max(length, needed(q)) + (qp_is_datagram(q) ? VMRI_GRH : 0),
              &r);
    post_recv(q, &r);
}

static bool lacks_receive(struct qp *q)
{
    uint32_t have = wq_posted(&q->peer->rq->wq) + q->peer->claimed, i;

    for ( i = q->sq.done; i != q->sq.prod; i++ )
        if ( takes_receive(q->send[i % DEPTH].wqe.opcode) && have-- == 0 )
            return true;
    return false;
}

static void end_round(struct qp *q)
{
    maybe_arm(q->side->cell);
    settle(q->side->cell);
}

static void fill_one_way(struct qp *q)
{
    while ( lacks_receive(q) )
    {
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
           opcode != VMRI_WR_SEND_WITH_INV && !qp_shares(q->peer);
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

void send_one(struct qp *q)
{
    uint32_t limit = qp_is_datagram(q) ? VMRI_MTU : MANY;
    unsigned int opcode = pick_opcode(q);
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

/* ---- rounds ---- */

static void one_action(struct qp *q)
{
    if ( q->attr.state == VMRI_QPS_RTS && rng_percent(rng_of(q), 70) )
        send_one(q);
    else if ( may_receive(q) )
        recv_one(q, 0);
    if ( rng_percent(rng_of(q), 10) )
        serve(q->side->cell);
    if ( rng_percent(rng_of(q), 1) )
        cq_move(&q->side->cq[rng_below(rng_of(q), 2)],
                7 + rng_below(rng_of(q), 2));
    if ( q->side->srq.handle && rng_percent(rng_of(q), 1) )
        srq_move(q->side, 2 + rng_below(rng_of(q), 4));
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

    if ( q->attr.state != VMRI_QPS_RTS || qp_is_datagram(q) || link_waits(q) )
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

static void send_spoiled(struct qp *q)
{
    unsigned int opcode = pick_opcode(q);
    struct send s;

    if ( !provide(q) )
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
    };
    unsigned int n;

    maybe_arm(q->side->cell);
    for ( n = rng_below(rng_of(q), 4); n; n-- )
        send_one(q);
    if ( wq_posted(&q->sq) || wq_room(&q->sq) < 6 )
    {
        fill_receives(q);
        end_round(q);
    }
    wrongs[rng_below(rng_of(q), ARRAY_SIZE(wrongs))](q);
    for ( n = rng_below(rng_of(q), 4); n; n-- )
        send_one(q);
    if ( rng_percent(rng_of(q), 50) && may_receive(q) )
        recv_one(q, 0);
    end_round(q);
    if ( q->peer->attr.state == VMRI_QPS_ERR )
        for ( n = rng_below(rng_of(q), 3); n; n-- )
            send_one(q->peer);
    end_round(q);
}
