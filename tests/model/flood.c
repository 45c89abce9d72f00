/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Completion queues that run over.  One is made as small as may be and is not
 * looked at, while a queue pair sends more than it has room for: what was told
 * before stays, its owner hears of it once, and who has something to say there
 * from then on fails, and nobody else.
 */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

#define SMALLEST    3U          /* 1 to 4 entries */

static struct rng *rng_of(const struct qp *q)
{
    return &q->side->cell->rng;
}

/* One of its own for what q sends, or the one of what its peer gets. */
static struct cq *pick_cq(struct qp *q)
{
    return rng_percent(rng_of(q), 50) ? q->scq : recv_cq(q->peer, q->peer->rq);
}

static void shrink(struct cq *cq)
{
    cq_move(cq, rng_below(&cq->side->cell->rng, SMALLEST));
    cq_close(cq);
    if ( rng_percent(&cq->side->cell->rng, 50) )
        arm(cq, false);
}

/*
 * Into the queue that was chosen, most of the time, if that is what matters.
 * What is wrong fails at once; but not where it would be in doubt what is told
 * of first, sends or receives.
 */
static void pour_one(struct qp *q, struct rq *rq, const struct cq *cq)
{
    const bool receives = cq->side != q->side, both = q->rcq == cq;
    struct rng *rng = rng_of(q);

    choose_queue(q);
    if ( rng_percent(rng, 80) )
        q->peer->rq = rq;
    if ( !both && !wq_posted(&q->sq) && rng_percent(rng, 5) )
        send_spoiled(q);
    else if ( receives && rng_percent(rng, 60) )
        send_opcode(q, VMRI_WR_SEND);
    else
        send_opcode(q, pick_opcode(q));
}

static bool completes_at(const struct qp *q, const struct cq *cq)
{
    unsigned int i;

    for ( i = 1; i < SRQS && !qp_sends(q); i++ )
        if ( q->side->srq[i].handle && q->side->srq[i].cq == cq )
            return true;
    return q->scq == cq || q->rcq == cq;
}

static bool link_completes_at(const struct qp *q, const struct cq *cq)
{
    return completes_at(q, cq) || completes_at(q->peer, cq);
}

/* A link that has used it without harm so far goes on, one way. */
static void use_dead(struct qp *q, const struct cq *cq)
{
    unsigned int n;

    if ( !qp_sends(q) )
        q = q->peer;
    if ( q->attr.state != VMRI_QPS_RTS || !link_completes_at(q, cq) )
        return;
    for ( n = 1 + rng_below(rng_of(q), 6); n; n-- )
        send_one(q);
    settle(q->side->cell);
}

/* It goes with all that uses it, and another one comes. */
static void replace(struct cell *c, struct cq *cq)
{
    struct side *s = cq->side;
    bool used[LINKS];
    unsigned int i;

    for ( i = 0; i < LINKS; i++ )
    {
        used[i] = link_completes_at(&s->qp[i], cq);
        if ( used[i] )
            link_unmake(&s->qp[i]);
    }
    for ( i = 1; i < SRQS; i++ )
        if ( s->srq[i].handle && s->srq[i].cq == cq )
            srq_unmake(&s->srq[i]);
    cq_unmake(cq);
    cq_make(cq, 7 + rng_below(&c->rng, 2));
    for ( i = 0; i < LINKS; i++ )
        if ( used[i] )
            link_make(&s->qp[i]);
}

void flood_round(struct qp *q)
{
    struct cell *c = q->side->cell;
    unsigned int n = 12 + rng_below(&c->rng, 20);
    struct cq *cq;
    struct rq *rq;

    if ( !qp_sends(q) )
        q = q->peer;
    fill_receives(q);
    settle(c);
    choose_queue(q);
    rq = q->peer->rq;
    if ( q->attr.state != VMRI_QPS_RTS || link_waits(q) ||
         (qp_is_xrc(q) && !rq->handle) )
        return;

    cq = pick_cq(q);
    shrink(cq);
    while ( n-- )
        pour_one(q, rq, cq);
    settle(c);
    if ( cq->dead )
    {
        CHECK_EQ(side_destroy(cq->side, VMRI_OP_cq_destroy, cq->handle),
                 -EBUSY);
        cq_move(cq, 7);
        use_dead(&c->side[0].qp[!q->link], cq);
        replace(c, cq);
    }
    else
        cq_move(cq, 7);
    link_recover(q);
}
