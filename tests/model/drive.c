/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guests' part, as ring.h asks for it, and the comparison of what comes
 * back with what the model wants.
 */
#include "model.h"
#include "internal.h"

#include <sched.h>
#include <time.h>

#undef memcpy
#undef memset

#define PATIENCE    30          /* seconds of its own that a thread sees no progress */

/* ---- posting ---- */

static void *slot_of(uint8_t *mem, const struct wq *wq)
{
    return mem + wq->offset +
           ((size_t)(wq->prod & ((1U << wq->log2) - 1)) << wq->log2_stride);
}

static uint32_t put_indirect(struct qp *q, const struct vmri_sge *sge,
                             unsigned int num)
{
    struct vmri_sge *list = (void *)(q->mem + q->arg.ind_offset);
    uint32_t first = q->ind_prod;

    q->ind_used += num;
    while ( num-- )
        list[q->ind_prod++ % (1U << IND_LOG2)] = *sge++;
    return first;
}

/*
 * The frames of a fast registration, in a page behind the queues with a place for
 * each request; those beyond its length do not matter.
 */
static uint64_t put_frames(const struct qp *q, uint64_t addr)
{
    const uint32_t at = q->sq.prod % DEPTH * FAST_FRAMES;
    uint64_t *list = (uint64_t *)(q->mem + QP_PAGES * PAGE_SIZE) + at;
    uint64_t i;

    BUILD_BUG_ON(DEPTH * FAST_FRAMES * sizeof(*list) > PAGE_SIZE);

    for ( i = 0; i < FAST_FRAMES; i++ )
        list[i] = (addr >> PAGE_SHIFT) + i;
    return ((q->gfn + QP_PAGES) << PAGE_SHIFT) + at * sizeof(*list);
}

void post_send(struct qp *q, const struct send *s)
{
    struct vmri_send_wqe *wqe = slot_of(q->mem, &q->sq);
    struct send *copy = &q->send[q->sq.prod % DEPTH];
    unsigned int num = s->wqe.num_sge;

    *copy = *s;
    copy->posted = env_now();
    if ( s->wqe.opcode == VMRI_WR_REG_MR )
        copy->wqe.u.reg.list += put_frames(q, s->sge[0].addr);
    else if ( s->wqe.flags & VMRI_SEND_INLINE )
        memcpy(wqe + 1, s->data, min(s->wqe.length, q->arg.max_inline));
    else if ( s->wqe.flags & VMRI_SEND_INDIRECT && q->arg.ind_log2_entries )
        copy->wqe.ind_start = put_indirect(q, s->sge, num);
    else if ( num <= q->sq.max_sge )
        memcpy(wqe + 1, s->sge, num * sizeof(s->sge[0]));
    *wqe = copy->wqe;
    env_store_release(&q->hdr->sq.prod, ++q->sq.prod);
    q->side->cell->ops++;
    q->unrung = true;
    oracle_run(q);
}

static void recv_kick(struct qp *q)
{
    struct rq *rq = q->rq;

    env_mb();
    if ( env_load(&rq->hdr->wait) )
        side_kick(q->side, qp_shares(q) ? 0 : q->qpn, rq->handle);
}

void post_recv(struct qp *q, const struct recv *r)
{
    struct rq *rq = q->rq;
    struct vmri_recv_wqe *wqe = slot_of(rq->mem, &rq->wq);
    struct recv *copy = &rq->recv[rq->wq.prod % DEPTH];
    unsigned int num = r->wqe.num_sge;

    *copy = *r;
    if ( num > rq->wq.max_sge )
        copy->wqe.ind_start = put_indirect(q, r->sge, num);
    else
        memcpy(wqe + 1, r->sge, num * sizeof(r->sge[0]));
    *wqe = copy->wqe;
    env_store_release(&rq->hdr->prod, ++rq->wq.prod);
    q->side->cell->ops++;
    oracle_run(q);
    recv_kick(q);
}

void ring(struct qp *q)
{
    q->unrung = false;
    env_mb();
    if ( !env_load(&q->hdr->sq.running) )
        side_schedule(q->side, q->qpn);
}

/* ---- completions ---- */

static struct wants *recvs_at(struct qp *q, const struct cq *cq)
{
    return &q->recvs[cq - q->side->cq];
}

/* One that is closed has as many entries as it has, and then no more. */
static bool takes_one(struct cq *cq)
{
    if ( cq->dead )
        return false;
    if ( !cq->closed )
        return true;
    if ( cq->room )
    {
        cq->room--;
        return true;
    }
    cq->dead = cq->error_due = true;
    return false;
}

bool want_completion(struct qp *q, struct cq *cq, bool receive,
                     const struct want *w)
{
    struct wants *list = receive ? recvs_at(q, cq) : &q->sends;

    if ( !takes_one(cq) )
        return false;
    CHECK(list->tail - list->head < 2 * DEPTH);
    list->want[list->tail++ % (2 * DEPTH)] = *w;
    cq->wanted++;
    return true;
}

void cq_close(struct cq *cq)
{
    CHECK(!cq->wanted && env_load_acquire(&cq->hdr->prod) == cq->cons);
    cq->closed = true;
    cq->room = 1U << cq->log2;
}

static bool is_receive(const struct vmri_cqe *cqe)
{
    return cqe->opcode >= VMRI_WC_OP_RECV && cqe->opcode <
                                             VMRI_WC_OP_RECV + 8;
}

static struct wants *wants_of(struct cq *cq, const struct vmri_cqe *cqe,
                              struct qp **of)
{
    unsigned int i;

    for ( i = 0; i < LINKS; i++ )
    {
        struct qp *q = &cq->side->qp[i];

        if ( q->qpn != cqe->qpn )
            continue;
        *of = q;
        if ( is_receive(cqe) )
            return recvs_at(q, cq);
        if ( !is_receive(cqe) && q->scq == cq )
            return &q->sends;
    }
    return NULL;
}

#define MATCH(field) do {                                               \
    if ( cqe->field != w->cqe.field )                                   \
        test_failed(__FILE__, __LINE__, "completion of QP %u: %s is "   \
                    "%llu, not %llu (status %u vendor %u wr_id %llu)",  \
                    cqe->qpn, #field, (unsigned long long)cqe->field,   \
                    (unsigned long long)w->cqe.field, cqe->status,      \
                    cqe->vendor_err, (unsigned long long)cqe->wr_id);   \
} while ( 0 )

static void match(const struct vmri_cqe *cqe, const struct want *w)
{
    MATCH(wr_id);
    MATCH(status);
    MATCH(vendor_err);
    MATCH(opcode);
    CHECK(cqe->timestamp >= w->not_before && cqe->timestamp <= env_now());
    CHECK(!model_alone || cqe->timestamp <= w->not_after);
    if ( cqe->status )
        return;
    MATCH(byte_len);
    MATCH(imm);
    MATCH(flags);
    MATCH(src_qp);
    MATCH(slid);
    MATCH(sl);
}

static void take_completion(struct cq *cq, const struct vmri_cqe *cqe)
{
    struct qp *q = NULL;
    struct wants *list = wants_of(cq, cqe, &q);

    if ( !list || list->head == list->tail )
        test_failed(__FILE__, __LINE__, "unexpected completion: QP %u wr_id "
                    "%llu status %u vendor %u opcode %u", cqe->qpn,
                    (unsigned long long)cqe->wr_id, cqe->status,
                    cqe->vendor_err, cqe->opcode);
    match(cqe, &list->want[list->head++ % (2 * DEPTH)]);
    cq->wanted--;
    qp_counted(q, cqe);
    if ( cqe->status || (cqe->flags & VMRI_WC_SOLICITED) )
        cq->solicited = false;
}

static bool poll(struct cq *cq)
{
    bool any = false;

    if ( cq->closed && !env_load_acquire(&cq->hdr->overflow) )
        return false;
    while ( env_load_acquire(&cq->hdr->prod) != cq->cons )
    {
        struct vmri_cqe cqe = cq->entry[cq->cons & ((1U << cq->log2) - 1)];

        env_store_release(&cq->hdr->cons, ++cq->cons);
        take_completion(cq, &cqe);
        any = true;
    }
    CHECK(cq->dead || !env_load(&cq->hdr->overflow));
    return any;
}

/* ---- arming ---- */

static bool will_be_solicited(const struct cq *cq, const struct wants *list)
{
    uint32_t i;

    for ( i = list->head; i != list->tail; i++ )
    {
        const struct vmri_cqe *cqe = &list->want[i % (2 * DEPTH)].cqe;

        if ( cqe->status || (cqe->flags & VMRI_WC_SOLICITED) )
            return cq->wanted != 0;
    }
    return false;
}

/* Must one come for which a CQ armed for solicited ones is to be told? */
static bool solicits(struct cq *cq)
{
    unsigned int i;

    for ( i = 0; i < LINKS; i++ )
    {
        struct qp *q = &cq->side->qp[i];

        if ( (q->scq == cq && will_be_solicited(cq, &q->sends)) ||
             will_be_solicited(cq, recvs_at(q, cq)) )
            return true;
    }
    return false;
}

/*
 * Look once more after arming: what came before raises nothing.  If there is
 * something, the CQ stays armed, and what comes next is told of, whatever it is
 * armed for then.
 */
void arm(struct cq *cq, bool solicited)
{
    if ( cq->events != cq->arms )
        solicited = false;
    cq->arms += env_xchg(&cq->hdr->arm, solicited ? VMRI_ARM_SOLICITED
                                                  : VMRI_ARM_NEXT) ==
                VMRI_ARM_NONE;
    env_mb();
    if ( env_load_acquire(&cq->hdr->prod) != cq->cons )
        return;
    cq->waiting = true;
    cq->solicited = solicited;
}

void maybe_arm(struct cell *c)
{
    unsigned int i;

    for ( i = 0; i < SIDES * 2; i++ )
    {
        struct cq *cq = &c->side[i / 2].cq[i % 2];

        if ( !cq->handle || cq->waiting || cq->closed ||
             !rng_percent(&c->rng, 30) )
            continue;
        poll(cq);
        if ( cq->wanted )
            arm(cq, solicits(cq) && rng_percent(&c->rng, 50));
    }
}

/* ---- events ---- */

static struct cq *cq_of(struct side *s, uint32_t handle)
{
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(s->cq); i++ )
        if ( s->cq[i].handle == handle )
            return &s->cq[i];
    return NULL;
}

static void completion_event(struct side *s, uint32_t handle)
{
    struct cq *cq = cq_of(s, handle);

    CHECK(cq);
    CHECK(++cq->events <= cq->arms);
    cq->waiting = false;
    poll(cq);
    CHECK(!cq->solicited);
}

static void limit_event(struct side *s, uint32_t handle)
{
    unsigned int i;

    for ( i = 0; i < SRQS; i++ )
        if ( s->srq[i].handle == handle )
        {
            CHECK(s->srq[i].limit && s->srq[i].low);
            s->srq[i].limit = 0;
            return;
        }
    test_failed(__FILE__, __LINE__, "an event of SRQ %u, which there is not",
                handle);
}

static void async_event(struct side *s, const struct vmri_event *ev)
{
    uint32_t bit = 1U << ev->type;
    struct cq *cq;
    unsigned int i;

    if ( ev->type == VMRI_EVENT_SRQ_LIMIT )
    {
        limit_event(s, ev->id);
        return;
    }
    if ( ev->type == VMRI_EVENT_CQ_ERR )
    {
        cq = cq_of(s, ev->id);
        CHECK(cq && cq->error_due);
        cq->error_due = false;
        return;
    }
    if ( port_event(s, ev) )
        return;
    for ( i = 0; i < LINKS; i++ )
    {
        struct qp *q = &s->qp[i];

        if ( q->qpn != ev->id )
            continue;
        if ( !((q->due | q->allowed) & bit) )
            continue;
        q->due &= ~bit;
        return;
    }
    test_failed(__FILE__, __LINE__, "unexpected event %u of object %u",
                ev->type, ev->id);
}

static bool take_event(struct side *s, struct vmri_event *ev)
{
    struct guest_eq *eq = &s->eq;

    if ( env_load_acquire(&eq->hdr->prod) == eq->cons )
    {
        if ( !env_load(&eq->hdr->overflow) )
            return false;
        CHECK_EQ(side_destroy(s, VMRI_OP_eq_poll, eq->handle), 0);
        if ( env_load_acquire(&eq->hdr->prod) == eq->cons )
            return false;
    }
    *ev = eq->entry[eq->cons & ((1U << eq->log2) - 1)];
    env_store_release(&eq->hdr->cons, ++eq->cons);
    env_add(&side_tally(s)->events, 1);
    return true;
}

static void serve_event(struct side *s, const struct vmri_event *ev)
{
    switch ( ev->type )
    {
    case VMRI_EVENT_QUEUE_READY:
        side_schedule(s, ev->id);
        break;
    case VMRI_EVENT_COMPLETION:
        completion_event(s, ev->id);
        break;
    default:
        async_event(s, ev);
    }
}

void drain_events(struct side *s)
{
    struct vmri_event ev;

    while ( take_event(s, &ev) )
        serve_event(s, &ev);
    env_add(&side_tally(s)->upcalls,
            env_test_notified(s->guest->domain, s->eq.port));
}

bool serve(struct cell *c)
{
    bool any = false;
    unsigned int i;

    for ( i = 0; i < SIDES; i++ )
    {
        struct side *s = &c->side[i];
        struct vmri_event ev;

        while ( take_event(s, &ev) )
        {
            serve_event(s, &ev);
            any = true;
        }
    }
    for ( i = 0; i < SIDES * 2; i++ )
    {
        struct cq *cq = &c->side[i / 2].cq[i % 2];

        if ( cq->handle && !cq->waiting )
            any |= poll(cq);
    }
    return any;
}

/* ---- until nothing is missing ---- */

/* A receive that a message has taken is not given back before it is full. */
static uint32_t recv_cons(const struct qp *q)
{
    return q->own.wq.done - q->claimed;
}

static const char *qp_lacks(struct qp *q)
{
    unsigned int i;

    if ( !q->qpn )
        return NULL;
    if ( q->sends.head != q->sends.tail )
        return "a completion of a send queue";
    for ( i = 0; i < CQS; i++ )
        if ( q->recvs[i].head != q->recvs[i].tail )
            return "a completion of a receive";
    if ( q->due )
        return "an event of a queue pair";
    if ( qp_sends(q) && env_load_acquire(&q->hdr->sq.cons) != q->sq.done )
        return "a send queue's index";
    if ( qp_receives(q) && !qp_shares(q) &&
         env_load_acquire(&q->hdr->rq.cons) != recv_cons(q) )
        return "a receive queue's index";
    return NULL;
}

static const char *cq_lacks(struct cq *cq)
{
    if ( !cq->handle || !cq->dead )
        return NULL;
    if ( !env_load_acquire(&cq->hdr->overflow) )
        return "the overflow of a completion queue";
    return cq->error_due ? "an event of a completion queue" : NULL;
}

static const char *srq_lacks(struct rq *rq)
{
    if ( !rq->handle )
        return NULL;
    if ( rq->taken && wq_posted(&rq->wq) < rq->limit )
        return "an event of a shared receive queue";
    return env_load_acquire(&rq->hdr->cons) != rq->wq.done
           ? "a shared receive queue's index" : NULL;
}

static const char *side_lacks(struct side *s)
{
    const char *what = s->port_due ? "an event of a port" : NULL;
    unsigned int i;

    for ( i = 0; i < LINKS && !what; i++ )
        what = qp_lacks(&s->qp[i]);
    for ( i = 0; i < CQS && !what; i++ )
        what = cq_lacks(&s->cq[i]);
    for ( i = 0; i < SRQS && !what; i++ )
        what = srq_lacks(&s->srq[i]);
    return what;
}

/* Of this thread: a busy machine may have none for the others, nor for it. */
static uint64_t seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec;
}

/* To when the next timer is due: one thread at a time. */
static bool move_clock(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    uint64_t at;

    pthread_mutex_lock(&mutex);
    at = env_test_next_timer();
    if ( at )
        env_test_advance(at > env_now() ? at - env_now() : 0);
    pthread_mutex_unlock(&mutex);
    return at != 0;
}

/* Nothing comes at the moment: is there still hope? */
static void wait_a_little(const struct cell *c, const char *what,
                          unsigned int *idle, uint64_t *since)
{
    bool moved = c->needs_clock && (model_alone || *idle % 64 == 63) &&
                 move_clock();

    ++*idle;
    if ( model_alone && !moved && *idle > 2 )
        test_failed(__FILE__, __LINE__, "%s does not come", what);
    if ( model_alone )
        return;
    if ( !*since )
        *since = seconds();
    if ( seconds() - *since > PATIENCE )
        test_failed(__FILE__, __LINE__, "%s does not come", what);
    sched_yield();
}

static const char *cell_lacks(struct cell *c)
{
    const char *what = side_lacks(&c->side[0]);

    return what ? what : side_lacks(&c->side[1]);
}

/* All that comes has room after all. */
static void open_cq(struct cq *cq)
{
    if ( !cq->dead )
        cq->closed = false;
}

static void give_back(struct rq *rq)
{
    rq->wq.base = rq->wq.done;
    rq->starved = false;
}

void settle(struct cell *c)
{
    unsigned int idle = 0, i;
    uint64_t since = 0;
    const char *what;

    for ( i = 0; i < SIDES * CQS; i++ )
        open_cq(&c->side[i / CQS].cq[i % CQS]);
    for ( i = 0; i < SIDES * LINKS; i++ )
        if ( c->side[i / LINKS].qp[i % LINKS].unrung )
            ring(&c->side[i / LINKS].qp[i % LINKS]);
    while ( (what = cell_lacks(c)) != NULL )
    {
        if ( serve(c) )
        {
            if ( model_alone )
                idle = 0;
            since = 0;
        }
        else
            wait_a_little(c, what, &idle, &since);
    }
    serve(c);
    c->needs_clock = false;
    memory_verify(c);
    for ( i = 0; i < SIDES * SRQS; i++ )
        give_back(&c->side[i / SRQS].srq[i % SRQS]);
    for ( i = 0; i < SIDES * LINKS; i++ )
    {
        struct qp *q = &c->side[i / LINKS].qp[i % LINKS];

        q->ind_used = wq_posted(&q->sq) + wq_posted(&q->own.wq) ? q->ind_used
                                                                : 0;
        q->sq.base = q->sq.done;
        q->own.wq.base = recv_cons(q);
        q->own.starved = false;
        q->allowed = 0;
    }
}
