/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What requests do, as include/vmri/ and the InfiniBand specification say it,
 * one after the other and each at once.  Nothing here waits, and nothing is
 * shared with xen/vmri.
 */
#include "oracle.h"

#undef memcpy
#undef memset

#define US  1000ULL
/*
 * Eight waits, each of which may end two ticks and the 20 of the timer's rest
 * late.
 */
#define TIMER_SLACK (8 * 22 * 4096ULL)

struct vmri_qp_counters *qp_counters(struct qp *q)
{
    static const uint8_t stat[] = {
        [VMRI_QPT_RC] = VMRI_STAT_RC, [VMRI_QPT_UC] = VMRI_STAT_UC,
        [VMRI_QPT_UD] = VMRI_STAT_UD, [VMRI_QPT_XRC_INI] = VMRI_STAT_XRC_INI,
        [VMRI_QPT_XRC_TGT] = VMRI_STAT_XRC_TGT,
    };

    return &q->side->types[stat[qp_type(q)]];
}

void qp_counted(struct qp *q, const struct vmri_cqe *cqe)
{
    q->side->counters.completions++;
    if ( cqe->status == VMRI_WC_WR_FLUSH_ERR )
        qp_counters(q)->flushed++;
    else if ( cqe->status )
        qp_counters(q)->errors++;
}

uint64_t list_bytes(const struct vmri_sge *sge, unsigned int num)
{
    uint64_t sum = 0;

    while ( num-- )
        sum += sge[num].length;
    return sum;
}

/* ---- completions ---- */

/* What there is to know of an operation. */
struct operation {
    bool datagram, unreliable;  /* also on such queue pairs */
    bool reliable;              /* on such alone, without a right */
    bool kernel;                /* on queues of the kernel alone */
    bool rc;                    /* on RC alone */
    bool key;                   /* no data: it changes what a key names */
    bool fetches;               /* bytes come back, and none leave */
    bool listless;              /* has no entries */
    uint8_t length;             /* the only one; 0: any */
    uint8_t completion;
    uint32_t right;             /* that the responder must grant */
};

static const struct operation *operation_of(unsigned int opcode)
{
    static const struct operation table[] = {
        [VMRI_WR_SEND] = { .datagram = true, .unreliable = true,
                           .completion = VMRI_WC_OP_SEND },
        [VMRI_WR_SEND_WITH_IMM] = { .datagram = true, .unreliable = true,
                                    .completion = VMRI_WC_OP_SEND },
        [VMRI_WR_RDMA_WRITE] = {
            .unreliable = true, .completion = VMRI_WC_OP_RDMA_WRITE,
            .right = VMRI_ACCESS_REMOTE_WRITE },
        [VMRI_WR_RDMA_WRITE_WITH_IMM] = {
            .unreliable = true, .completion = VMRI_WC_OP_RDMA_WRITE,
            .right = VMRI_ACCESS_REMOTE_WRITE },
        [VMRI_WR_RDMA_READ] = {
            .fetches = true, .completion = VMRI_WC_OP_RDMA_READ,
            .right = VMRI_ACCESS_REMOTE_READ },
        [VMRI_WR_ATOMIC_CMP_AND_SWP] = {
            .fetches = true, .length = 8, .completion = VMRI_WC_OP_COMP_SWAP,
            .right = VMRI_ACCESS_REMOTE_ATOMIC },
        [VMRI_WR_ATOMIC_FETCH_AND_ADD] = {
            .fetches = true, .length = 8, .completion = VMRI_WC_OP_FETCH_ADD,
            .right = VMRI_ACCESS_REMOTE_ATOMIC },
        [VMRI_WR_FLUSH] = {
            .rc = true, .listless = true, .completion = VMRI_WC_OP_FLUSH,
            .right = VMRI_ACCESS_FLUSH_GLOBAL },
        [VMRI_WR_SEND_WITH_INV] = {
            .reliable = true, .completion = VMRI_WC_OP_SEND },
        [VMRI_WR_LOCAL_INV] = {
            .unreliable = true, .key = true, .listless = true,
            .completion = VMRI_WC_OP_LOCAL_INV },
        [VMRI_WR_BIND_MW] = {
            .unreliable = true, .key = true, .listless = true,
            .completion = VMRI_WC_OP_BIND_MW },
        [VMRI_WR_REG_MR] = {
            .unreliable = true, .key = true, .kernel = true, .listless = true,
            .completion = VMRI_WC_OP_REG_MR },
        [VMRI_WR_ATOMIC_WRITE] = {
            .rc = true, .listless = true, .length = 8,
            .completion = VMRI_WC_OP_ATOMIC_WRITE,
            .right = VMRI_ACCESS_REMOTE_WRITE },
    };
    static const struct operation none;

    return opcode < ARRAY_SIZE(table) ? &table[opcode] : &none;
}

static struct send *head(struct qp *q)
{
    return &q->send[q->sq.done % DEPTH];
}

/* The request at the head is over.  `wait`: the least time that it took. */
void oracle_end_send(struct qp *q, struct verdict v, uint64_t wait)
{
    struct send *s = head(q);
    const struct operation *op = operation_of(s->wqe.opcode);
    struct want w = {
        .cqe = {
            .wr_id = s->wqe.wr_id, .status = v.status, .vendor_err = v.verr,
            .byte_len = s->wqe.length, .opcode = op->completion,
        },
        .not_before = s->posted + wait,
        .not_after = wait ? env_now() + wait + TIMER_SLACK +
                            q->side->cell->slack : ~0ULL,
    };

    s->status = v.status;
    s->verr = v.verr;
    q->sq.done++;
    if ( (v.status || (s->wqe.flags & VMRI_SEND_SIGNALED)) &&
         !want_completion(q, q->scq, false, &w) )
        oracle_enter_error(q, VMRI_EVENT_QP_FATAL);
    if ( wait )
        q->side->cell->needs_clock = true;
    if ( v.status )
        return;

    qp_counters(q)->tx_msgs++;
    if ( op->fetches )
        qp_counters(q)->rx_bytes += s->wqe.length;
    else if ( s->wqe.opcode != VMRI_WR_FLUSH )
        qp_counters(q)->tx_bytes += s->wqe.length;
}

bool oracle_end_recv(struct qp *q, const struct rq *rq, const struct recv *r,
                     const struct vmri_cqe *how)
{
    struct want w = { .cqe = *how, .not_after = ~0ULL };

    if ( !how->status )
    {
        qp_counters(q)->rx_msgs++;
        qp_counters(q)->rx_bytes += how->byte_len -
                                    (qp_is_datagram(q) ? VMRI_GRH : 0);
    }
    w.cqe.wr_id = r->wqe.wr_id;
    if ( want_completion(q, recv_cq(q, rq), true, &w) )
        return true;
    if ( q->attr.state != VMRI_QPS_RESET )
        oracle_enter_error(q, VMRI_EVENT_QP_FATAL);
    return false;
}

static const struct vmri_cqe flushed = {
    .status = VMRI_WC_WR_FLUSH_ERR, .vendor_err = VMRI_VERR_FLUSHED,
    .opcode = VMRI_WC_OP_RECV,
};

/* One of a queue that is gone went with it.  False: q cannot be told. */
static bool flush_claim(struct qp *q)
{
    bool told = !q->claimed || !q->claim_rq ||
                oracle_end_recv(q, q->claim_rq, &q->claim, &flushed);

    q->claimed = false;
    return told;
}

static void flush_sends(struct qp *q)
{
    while ( wq_posted(&q->sq) )
        oracle_end_send(q, verdict(flushed.status, flushed.vendor_err), 0);
}

static void flush_receives(struct qp *q)
{
    flush_claim(q);
    if ( !qp_shares(q) )
        for ( ; wq_posted(&q->own.wq); q->own.wq.done++ )
            oracle_end_recv(q, &q->own, &q->own.recv[q->own.wq.done % DEPTH],
                            &flushed);
}

/* ---- states ---- */

void oracle_enter_error(struct qp *q, unsigned int event)
{
    if ( q->attr.state == VMRI_QPS_ERR )
        return;
    q->attr.state = VMRI_QPS_ERR;
    if ( event )
        q->due |= 1U << event;
    if ( qp_shares(q) )
        q->due |= 1U << VMRI_EVENT_QP_LAST_WQE_REACHED;
}

void oracle_state(struct qp *q, unsigned int state)
{
    if ( state == VMRI_QPS_ERR )
        oracle_enter_error(q, 0);
    else if ( state == VMRI_QPS_RESET )
    {
        q->attr = (struct vmri_qp_modify){ .port = 1, .path_mtu = 5 };
        q->sq.done = q->sq.prod;
        q->own.wq.done = q->own.wq.prod;
        /* What was taken from a shared queue is not this one's to forget. */
        if ( qp_shares(q) )
            flush_claim(q);
        q->claimed = q->established = false;
    }
    else
        q->attr.state = (uint8_t)state;
    oracle_run(q);
}

void oracle_fail_sender(struct qp *q, struct verdict v, uint64_t wait)
{
    if ( q->side->cell->clean )
        test_failed(__FILE__, __LINE__, "a good request of QP %u fails in the "
                    "model: opcode %u length %u, status %u vendor %u", q->qpn,
                    head(q)->wqe.opcode, head(q)->wqe.length, v.status, v.verr);
    oracle_end_send(q, v, wait);
    if ( qp_is_reliable(q) )
        oracle_enter_error(q, 0);
    else if ( q->attr.state == VMRI_QPS_RTS )
        q->attr.state = VMRI_QPS_SQE;
}

/* An unreliable message is lost; where it got to counts it. */
void oracle_lose(struct qp *q, struct side *at)
{
    at->counters.ud_drops++;
    oracle_end_send(q, FINE, 0);
}

/* What the responder refuses: with an event, it fails too. */
static void refuse(struct qp *q, struct verdict v, unsigned int event)
{
    if ( !qp_is_reliable(q) )
    {
        oracle_lose(q, q->peer->side);
        return;
    }
    oracle_fail_sender(q, v, 0);
    if ( event )
        oracle_enter_error(q->peer, event);
}

/* ---- what is wrong with a request as such ---- */

static bool does(const struct qp *q, unsigned int opcode)
{
    const struct operation *op = operation_of(opcode);

    if ( op->kernel && !qp_is_kernel(q) )
        return false;
    if ( qp_is_datagram(q) )
        return op->datagram;
    return op->unreliable ||
           (qp_is_reliable(q) && (op->reliable || op->right) &&
            !(op->rc && qp_is_xrc(q)));
}

/* VMRI_VERR_*: what is wrong with the flags and the number of entries. */
static uint16_t look_at_layout(const struct qp *q,
                               const struct vmri_send_wqe *w)
{
    const struct operation *op = operation_of(w->opcode);
    bool is_inline = w->flags & VMRI_SEND_INLINE;
    bool indirect = w->flags & VMRI_SEND_INDIRECT;

    if ( (w->flags & ~VMRI_SEND_FLAGS) || (is_inline && indirect) ||
         (is_inline && op->fetches) || (indirect && !q->arg.ind_log2_entries) ||
         ((is_inline || indirect) && op->listless) )
        return VMRI_VERR_FLAGS;
    if ( w->opcode == VMRI_WR_FLUSH &&
         (w->u.rdma.flush_type - 1 > 2 ||
          w->u.rdma.flush_level > VMRI_FLUSH_LEVEL_MR) )
        return VMRI_VERR_FLAGS;
    if ( op->listless ? w->num_sge != 0
                      : !is_inline && w->num_sge > (indirect ? 1U << IND_LOG2
                                                            : q->sq.max_sge) )
        return VMRI_VERR_SGES;
    return VMRI_VERR_NONE;
}

static bool length_fits(const struct qp *q, const struct send *s)
{
    const struct vmri_send_wqe *w = &s->wqe;
    const struct operation *op = operation_of(w->opcode);

    if ( (op->length && w->length != op->length) ||
         (qp_is_datagram(q) && w->length > VMRI_MTU) ||
         w->length > VMRI_MAX_MSG )
        return false;
    if ( op->key )
        return !w->length;
    if ( w->flags & VMRI_SEND_INLINE )
        return w->length <= q->arg.max_inline;
    return op->listless || w->length <= list_bytes(s->sge, w->num_sge);
}

static struct verdict look_at(const struct qp *q, const struct send *s)
{
    uint16_t verr;

    if ( !does(q, s->wqe.opcode) )
        return verdict(VMRI_WC_LOC_QP_OP_ERR, VMRI_VERR_OPCODE);
    verr = look_at_layout(q, &s->wqe);
    if ( verr )
        return verdict(VMRI_WC_LOC_QP_OP_ERR, verr);
    if ( !length_fits(q, s) )
        return verdict(VMRI_WC_LOC_LEN_ERR, VMRI_VERR_LENGTH);
    return FINE;
}

/* ---- receives ---- */

void oracle_take(struct rq *rq, struct recv *r)
{
    *r = rq->recv[rq->wq.done++ % DEPTH];
    /* VMRI may be behind, and see more receives than there are here. */
    rq->taken = true;
    rq->low |= wq_posted(&rq->wq) < rq->limit;
}

struct rq *rq_of(const struct qp *q, const struct send *s)
{
    struct qp *peer = q->peer;
    unsigned int i;

    if ( !qp_is_xrc(q) )
        return peer->rq;
    for ( i = 1; i < SRQS; i++ )
    {
        struct rq *rq = &peer->side->srq[i];

        if ( rq->handle && rq->handle == s->wqe.u.rdma.srqn &&
             rq->xrcd == peer->xrcd )
            return rq;
    }
    return NULL;
}

struct keys remote_keys(const struct qp *q, const struct send *s)
{
    const struct rq *rq = qp_is_xrc(q) ? rq_of(q, s) : NULL;
    struct keys keys = q->peer->keys;

    if ( rq )
    {
        keys.pd = rq->keys.pd;
        keys.kernel = rq->keys.kernel;
    }
    return keys;
}

/* What there is to say of a receive cannot be said: the responder fails. */
static void refuse_untold(struct qp *q)
{
    refuse(q, verdict(VMRI_WC_REM_OP_ERR, VMRI_VERR_RING), 0);
}

enum claim { CLAIM_NONE, CLAIM_DONE, CLAIM_OVER };

/* The peer's next receive of `rq` becomes its `claim`, unless all is over. */
static enum claim claim(struct qp *q, struct rq *rq)
{
    struct qp *peer = q->peer;

    if ( peer->claimed && peer->claim_rq != rq && !flush_claim(peer) )
    {
        refuse_untold(q);
        return CLAIM_OVER;
    }
    if ( !peer->claimed )
    {
        if ( !wq_posted(&rq->wq) )
            return CLAIM_NONE;
        oracle_take(rq, &peer->claim);
        peer->claimed = true;
        peer->claim_rq = rq;
    }
    return CLAIM_DONE;
}

static bool end_claim(struct qp *peer, const struct vmri_cqe *how)
{
    peer->claimed = false;
    return oracle_end_recv(peer, peer->claim_rq, &peer->claim, how);
}

/* A receive that cannot be filled fails its queue pair. */
static void spoil_claim(struct qp *q, uint8_t status, uint16_t verr)
{
    const struct vmri_cqe how = {
        .status = status, .vendor_err = verr, .opcode = VMRI_WC_OP_RECV,
    };

    end_claim(q->peer, &how);
    oracle_enter_error(q->peer, 0);
}

/* IBTA 1.4, 9.7.5.2.8, table 45, in units of 10 us. */
static uint64_t rnr_wait(unsigned int code)
{
    static const uint32_t table[] = { 65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32 };

    CHECK(code < ARRAY_SIZE(table));
    return table[code] * 10 * US;
}

/* Nothing to receive it: false when the request waits. */
static bool no_receive(struct qp *q)
{
    if ( !qp_is_reliable(q) )
    {
        oracle_lose(q, q->peer->side);
        return true;
    }
    if ( q->attr.rnr_retry == 7 )
        return false;
    oracle_fail_sender(q, verdict(VMRI_WC_RNR_RETRY_EXC_ERR, VMRI_VERR_NO_RECV),
                q->attr.rnr_retry * rnr_wait(q->peer->attr.min_rnr_timer));
    return true;
}

/* ---- connected queue pairs ---- */

/* What one of a type is connected to. */
static unsigned int other_type(unsigned int type)
{
    return type == VMRI_QPT_XRC_INI ? VMRI_QPT_XRC_TGT
           : type == VMRI_QPT_XRC_TGT ? VMRI_QPT_XRC_INI : type;
}

static bool answers(const struct qp *peer, const struct qp *q)
{
    return peer->qpn && peer->attr.state >= VMRI_QPS_RTR &&
           peer->attr.state <= VMRI_QPS_SQE &&
           peer->attr.dest_qpn == q->qpn && q->attr.dest_qpn == peer->qpn &&
           qp_type(peer) == other_type(qp_type(q));
}

/* Nobody there: false when the request waits. */
static bool no_peer(struct qp *q)
{
    uint64_t span = 4096ULL << q->attr.timeout;

    if ( !qp_is_reliable(q) )
    {
        oracle_lose(q, q->side);
        return true;
    }
    if ( !q->attr.timeout )
        return false;
    oracle_fail_sender(q, verdict(VMRI_WC_RETRY_EXC_ERR, VMRI_VERR_NO_PEER),
                (q->attr.retry_cnt + 1) * span);
    return true;
}

void oracle_local_spans(struct qp *q, const struct send *s, struct spans *spans)
{
    if ( s->wqe.flags & VMRI_SEND_INLINE )
        spans_of_bytes(spans, (uint8_t *)s->data, s->wqe.length);
    else
        spans_of_list(spans, &q->keys, s->sge, s->wqe.num_sge,
                      operation_of(s->wqe.opcode)->fetches
                      ? VMRI_ACCESS_LOCAL_WRITE : 0, s->wqe.length);
}

static void remote_spans(struct qp *q, const struct send *s,
                         struct spans *spans)
{
    const struct keys keys = remote_keys(q, s);
    struct qp *peer = q->peer;

    if ( is_send(s->wqe.opcode) )
        spans_of_list(spans, &peer->claim_rq->keys, peer->claim.sge,
                      peer->claim.wqe.num_sge, VMRI_ACCESS_LOCAL_WRITE,
                      s->wqe.length);
    else
        spans_of_range(spans, &keys, s->wqe.u.rdma.rkey,
                       s->wqe.u.rdma.remote_addr, s->wqe.length,
                       operation_of(s->wqe.opcode)->right);
}

/* Move the bytes.  False: it went wrong, and the request is over. */
static bool move(struct qp *q, const struct send *s)
{
    bool read = s->wqe.opcode == VMRI_WR_RDMA_READ, local_first;
    struct spans local, remote;
    uint64_t bytes = s->wqe.length;

    oracle_local_spans(q, s, &local);
    remote_spans(q, s, &remote);
    bytes = min(bytes, local.bytes);
    bytes = min(bytes, remote.bytes);
    spans_copy(read ? q->side : q->peer->side, read ? &local : &remote,
               read ? &remote : &local, bytes, bytes == s->wqe.length);
    if ( bytes == s->wqe.length )
        return true;

    /* What comes first fails; of both, where the bytes come from. */
    local_first = read ? local.bytes < remote.bytes
                       : local.bytes <= remote.bytes;
    if ( local_first )
        oracle_fail_sender(q, verdict(VMRI_WC_LOC_PROT_ERR, local.verr), 0);
    else if ( is_send(s->wqe.opcode) )
    {
        spoil_claim(q, VMRI_WC_LOC_PROT_ERR, remote.verr);
        refuse(q, verdict(VMRI_WC_REM_OP_ERR, remote.verr), 0);
    }
    else
        refuse(q, verdict(VMRI_WC_REM_ACCESS_ERR, remote.verr),
               VMRI_EVENT_QP_ACCESS_ERR);
    return false;
}

static bool is_atomic(unsigned int opcode)
{
    return opcode == VMRI_WR_ATOMIC_CMP_AND_SWP ||
           opcode == VMRI_WR_ATOMIC_FETCH_AND_ADD ||
           opcode == VMRI_WR_ATOMIC_WRITE || opcode == VMRI_WR_FLUSH;
}

static bool refused_access(struct qp *q, uint16_t verr)
{
    if ( !verr )
        return false;
    refuse(q, verdict(VMRI_WC_REM_ACCESS_ERR, verr), VMRI_EVENT_QP_ACCESS_ERR);
    return true;
}

/* Nothing moves; what is named must be there. */
static bool run_flush(struct qp *q, const struct send *s)
{
    const struct vmri_send_wqe *w = &s->wqe;
    bool whole = w->u.rdma.flush_level == VMRI_FLUSH_LEVEL_MR;
    uint16_t verr = key_verdict(&q->peer->keys, w->u.rdma.rkey,
                                VMRI_ACCESS_FLUSH_GLOBAL, !whole,
                                w->u.rdma.remote_addr, w->length);

    if ( !verr && (w->u.rdma.flush_type & VMRI_FLUSH_PERSISTENT) )
        verr = VMRI_VERR_RIGHTS;
    return !refused_access(q, verr);
}

/* The value that an atomic leaves. */
static uint64_t result_of(const struct vmri_send_wqe *w, uint64_t old)
{
    switch ( w->opcode )
    {
    case VMRI_WR_ATOMIC_CMP_AND_SWP:
        return old == w->u.rdma.compare_add ? w->u.rdma.swap : old;
    case VMRI_WR_ATOMIC_FETCH_AND_ADD:
        return old + w->u.rdma.compare_add;
    default:
        return w->u.rdma.compare_add;
    }
}

/* False: it went wrong, and the request is over. */
static bool operate(struct qp *q, const struct send *s)
{
    const struct vmri_send_wqe *w = &s->wqe;
    bool fetches = operation_of(w->opcode)->fetches;
    struct spans local = { .num = 0 }, remote, value;
    uint64_t old, new;

    if ( w->opcode == VMRI_WR_FLUSH )
        return run_flush(q, s);
    if ( fetches )
        oracle_local_spans(q, s, &local);
    if ( local.verr )
    {
        oracle_fail_sender(q, verdict(VMRI_WC_LOC_PROT_ERR, local.verr), 0);
        return false;
    }
    remote.verr = 0;
    if ( w->u.rdma.remote_addr % 8 == 0 )
        remote_spans(q, s, &remote);
    if ( refused_access(q, remote.verr) )
        return false;
    if ( w->u.rdma.remote_addr % 8 ||
         (remote.span[0].at - q->peer->side->memory.image) % 8 )
    {
        refuse(q, verdict(VMRI_WC_REM_INV_REQ_ERR, VMRI_VERR_ALIGN),
               VMRI_EVENT_QP_REQ_ERR);
        return false;
    }
    memcpy(&old, remote.span[0].at, 8);
    new = result_of(w, old);
    spans_of_bytes(&value, (uint8_t *)&new, 8);
    spans_copy(q->peer->side, &remote, &value, 8, true);
    spans_of_bytes(&value, (uint8_t *)&old, 8);
    if ( fetches )
        spans_copy(q->side, &local, &value, 8, true);
    return true;
}

static void finish(struct qp *q, const struct send *s)
{
    const struct vmri_send_wqe *w = &s->wqe;
    bool write = w->opcode == VMRI_WR_RDMA_WRITE_WITH_IMM;
    bool imm = write || w->opcode == VMRI_WR_SEND_WITH_IMM;
    bool inv = w->opcode == VMRI_WR_SEND_WITH_INV;
    const struct keys keys = remote_keys(q, s);
    uint16_t verr = inv ? oracle_invalidate(&keys, w->imm, true) : 0;
    const struct vmri_cqe how = {
        .opcode = write ? VMRI_WC_OP_RECV_RDMA_WITH_IMM : VMRI_WC_OP_RECV,
        .byte_len = w->length, .imm = imm || inv ? w->imm : 0,
        .flags = (imm ? VMRI_WC_WITH_IMM : 0) | (inv ? VMRI_WC_WITH_INV : 0) |
                 (w->flags & VMRI_SEND_SOLICITED ? VMRI_WC_SOLICITED : 0),
    };

    if ( refused_access(q, verr) )
        return;
    if ( takes_receive(w->opcode) && !end_claim(q->peer, &how) )
    {
        refuse_untold(q);
        return;
    }
    if ( !takes_receive(w->opcode) )
    {
        qp_counters(q->peer)->rx_msgs++;
        if ( operation_of(w->opcode)->fetches )
            qp_counters(q->peer)->tx_bytes += w->length;
        else if ( w->opcode != VMRI_WR_FLUSH )
            qp_counters(q->peer)->rx_bytes += w->length;
    }
    oracle_end_send(q, FINE, 0);
}

static void establish(struct qp *peer)
{
    if ( peer->attr.state != VMRI_QPS_RTR || peer->established )
        return;
    peer->established = true;
    peer->due |= 1U << VMRI_EVENT_COMM_EST;
}

/* A SEND has its receive, and that is large enough: false when it waits. */
static bool begin_send(struct qp *q, const struct send *s, struct rq *rq,
                       bool *over)
{
    struct qp *peer = q->peer;
    enum claim c = claim(q, rq);

    *over = true;
    if ( c != CLAIM_DONE )
        return c == CLAIM_OVER || no_receive(q);
    if ( list_bytes(peer->claim.sge, peer->claim.wqe.num_sge) < s->wqe.length )
    {
        if ( qp_is_reliable(q) )
            spoil_claim(q, VMRI_WC_LOC_LEN_ERR, VMRI_VERR_LENGTH);
        refuse(q, verdict(VMRI_WC_REM_INV_REQ_ERR, VMRI_VERR_RECV_SIZE), 0);
        return true;
    }
    *over = false;
    return true;
}

/* False when it waits. */
static bool run_connected(struct qp *q, const struct send *s)
{
    uint32_t right = operation_of(s->wqe.opcode)->right;
    struct rq *rq = rq_of(q, s);
    bool over = false;
    enum claim c;

    if ( !answers(q->peer, q) )
        return no_peer(q);
    establish(q->peer);
    if ( takes_receive(s->wqe.opcode) && !rq )
    {
        refuse(q, verdict(VMRI_WC_REM_INV_REQ_ERR, VMRI_VERR_SRQ),
               VMRI_EVENT_QP_REQ_ERR);
        return true;
    }
    if ( right & ~q->peer->attr.access_flags )
    {
        refuse(q, verdict(VMRI_WC_REM_INV_REQ_ERR, VMRI_VERR_RIGHTS),
               VMRI_EVENT_QP_REQ_ERR);
        return true;
    }
    if ( is_send(s->wqe.opcode) && !begin_send(q, s, rq, &over) )
        return false;
    if ( over || !(is_atomic(s->wqe.opcode) ? operate(q, s) : move(q, s)) )
        return true;
    if ( s->wqe.opcode == VMRI_WR_RDMA_WRITE_WITH_IMM )
    {
        c = claim(q, rq);
        if ( c != CLAIM_DONE )
            return c == CLAIM_OVER || no_receive(q);
    }
    finish(q, s);
    return true;
}

/* ---- the engine, if there were nothing but this ---- */

static void run_key(struct qp *q, const struct send *s)
{
    uint16_t verr = oracle_key(q, s);

    if ( verr )
        oracle_fail_sender(q, verdict(VMRI_WC_MW_BIND_ERR, verr), 0);
    else
        oracle_end_send(q, FINE, 0);
}

/* Do the next request of q: false when there is none, or it waits. */
static bool run_one(struct qp *q)
{
    const struct send *s = head(q);
    struct verdict v;

    if ( !wq_posted(&q->sq) || q->attr.state != VMRI_QPS_RTS )
        return false;
    v = look_at(q, s);
    if ( v.status )
        oracle_fail_sender(q, v, 0);
    else if ( qp_is_datagram(q) )
        oracle_datagram(q, s);
    else if ( changes_key(s->wqe.opcode) )
        run_key(q, s);
    else
        return run_connected(q, s);
    return true;
}

static void flush_what_failed(struct qp *q)
{
    if ( q->attr.state == VMRI_QPS_SQE || q->attr.state == VMRI_QPS_ERR )
        flush_sends(q);
    if ( q->attr.state == VMRI_QPS_ERR )
        flush_receives(q);
}

void oracle_run(struct qp *q)
{
    struct qp *peer = q->peer;

    while ( run_one(q) || run_one(peer) )
        ;
    flush_what_failed(q);
    flush_what_failed(peer);
}
