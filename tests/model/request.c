/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests as they fall: good ones, and what makes them wrong.  Whether and how
 * VMRI will find them wrong is the oracle's business.
 */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

/* Beside ACCESS_LISTED: what has memory for as long as it has its key. */
#define ACCESS_PINNED   0x40000000U

static struct rng *rng_of(const struct side *s)
{
    return &s->cell->rng;
}

/* ---- memory ---- */

/*
 * The first two regions are always there, one a PD, with all rights.  What a
 * receive names must stay until it is used: it is a pinned one.
 */
static bool usable(const struct keys *keys, const struct region *r,
                   uint32_t access)
{
    if ( (access & ACCESS_PINNED) && r->kind != KIND_REGION )
        return false;
    return !key_verdict(keys, r->key, access & ~ACCESS_PINNED, false, 0, 0);
}

static const struct region *pick_region(const struct keys *keys,
                                        unsigned int dir, uint32_t access,
                                        uint32_t length)
{
    const struct region *all = keys->side->region[dir];
    unsigned int i, first = rng_below(rng_of(keys->side), NAMED);

    for ( i = 0; i < NAMED; i++ )
    {
        const struct region *r = &all[(first + i) % NAMED];

        if ( usable(keys, r, access) && r->length >= length )
            return r;
    }
    return &all[keys->pd];
}

/* An entry of up to `want` bytes. */
static struct vmri_sge pick_entry(const struct keys *keys, unsigned int dir,
                                  uint32_t access, uint32_t want)
{
    struct rng *rng = rng_of(keys->side);
    const struct region *r = pick_region(keys, dir, access, want);
    uint32_t length = min(want, r->length);

    if ( keys->kernel && want <= PAGE_SIZE && rng_percent(rng, 40) )
    {
        uint64_t page = keys->side->memory.gfn + dir * HALF_PAGES +
                        rng_below(rng, HALF_PAGES);
        uint32_t at = rng_below(rng, (uint32_t)PAGE_SIZE + 1 - want);

        /* Of no bytes at the end of a page would be in the next. */
        return (struct vmri_sge){
            .addr = (page << PAGE_SHIFT) + (want ? at : 0), .length = want,
            .lkey = VMRI_LKEY_FRAMES,
        };
    }
    return (struct vmri_sge){
        .addr = r->iova + rng_below(rng, r->length - length + 1),
        .length = length, .lkey = r->key,
    };
}

/* A list that holds `length` bytes, or as many as it can; how many entries. */
static unsigned int pick_list(const struct keys *keys, unsigned int dir,
                              uint32_t access, uint32_t length,
                              unsigned int max_sge, struct vmri_sge *sge)
{
    struct rng *rng = rng_of(keys->side);
    unsigned int n = 0;

    while ( n < max_sge && (length || rng_percent(rng, 10)) )
    {
        uint32_t part = length;

        if ( n + 1 < max_sge && rng_percent(rng, 60) )
            part = rng_below(rng, length + 1);
        sge[n] = pick_entry(keys, dir, access, part);
        length -= sge[n++].length;
    }
    return n;
}

static uint32_t pick_length(struct rng *rng, uint32_t limit)
{
    static const struct {
        uint8_t percent;
        uint32_t below;
    } table[] = {
        { 8, 1 }, { 50, 64 }, { 30, 1024 }, { 9, 9000 }, { 2, 40000 },
        { 1, 300000 },
    };
    uint32_t n = rng_below(rng, 100), i = 0, length;

    while ( n >= table[i].percent )
        n -= table[i++].percent;
    /* The largest are rare. */
    if ( i == ARRAY_SIZE(table) - 1 && rng_percent(rng, 75) )
        i = 0;
    length = rng_below(rng, table[i].below);
    return min(length, limit);
}

/* ---- receives ---- */

/* Which receives waiting messages will get, one after the other. */
struct walk {
    bool claim;                 /* the one that is taken already is left */
    uint32_t used[SRQS];        /* of each queue */
};

/* The receive of `rq` that the next message gets; NULL: there is none. */
static const struct recv *walk_on(struct walk *w, const struct qp *peer,
                                  const struct rq *rq)
{
    uint32_t *used = &w->used[rq->cq ? rq - peer->side->srq : 0];

    /* Another queue's is given up. */
    if ( w->claim )
    {
        w->claim = false;
        if ( peer->claim_rq == rq )
            return &peer->claim;
    }
    if ( *used == wq_posted(&rq->wq) )
        return NULL;
    return &rq->recv[(rq->wq.done + (*used)++) % DEPTH];
}

/*
 * Walk over q's waiting messages: the first that gets none, of `rq` or (NULL)
 * of any queue.
 */
static const struct send *walk(struct walk *w, struct qp *q,
                               const struct rq *rq)
{
    uint32_t i;

    *w = (struct walk){ .claim = q->peer->claimed };
    for ( i = q->sq.done; i != q->sq.prod; i++ )
    {
        const struct send *s = &q->send[i % DEPTH];
        const struct rq *its = rq_of(q, s);

        if ( takes_receive(s->wqe.opcode) && its &&
             !walk_on(w, q->peer, its) && (!rq || its == rq) )
            return s;
    }
    return NULL;
}

const struct recv *next_recv(struct qp *q)
{
    static const struct rq none;
    struct walk w;

    walk(&w, q, &none);
    return walk_on(&w, q->peer, q->peer->rq);
}

struct rq *lacks_receive(struct qp *q)
{
    struct walk w;
    const struct send *s = walk(&w, q, NULL);

    return s ? rq_of(q, s) : NULL;
}

uint32_t needed(struct qp *q, const struct rq *rq)
{
    struct walk w;
    const struct send *s = walk(&w, q, rq);

    return s && is_send(s->wqe.opcode) ? s->wqe.length : 0;
}

void choose_queue(struct qp *q)
{
    struct qp *peer = q->peer;
    struct rq *all = peer->side->srq;
    unsigned int i, first = rng_below(rng_of(q->side), SRQS - 1);

    for ( i = 0; qp_type(q) == VMRI_QPT_XRC_INI && i < SRQS - 1; i++ )
    {
        struct rq *rq = &all[1 + (first + i) % (SRQS - 1)];

        if ( rq->handle && rq->xrcd == peer->xrcd )
        {
            peer->rq = rq;
            return;
        }
    }
}

/* May a list go through the indirect list? */
static bool pick_indirect(struct qp *q)
{
    return q->arg.ind_log2_entries && rng_percent(rng_of(q->side), 30) &&
           q->ind_used + INDIRECT <= 1U << IND_LOG2;
}

void make_recv(struct qp *q, uint32_t length, struct recv *r)
{
    struct rng *rng = rng_of(q->side);
    bool indirect = !qp_shares(q) && pick_indirect(q);
    unsigned int max_sge = indirect ? INDIRECT : q->rq->wq.max_sge;

    *r = (struct recv){ .wqe.wr_id = ++q->side->cell->wr_id };
    r->wqe.num_sge = (uint16_t)pick_list(&q->rq->keys, !q->side->index,
                                         VMRI_ACCESS_LOCAL_WRITE |
                                         ACCESS_LISTED | ACCESS_PINNED,
                                         length + pick_length(rng, 5000),
                                         max_sge, r->sge);
    if ( r->wqe.num_sge > q->rq->wq.max_sge )
        r->wqe.flags = VMRI_RECV_INDIRECT;
}

/* ---- good requests ---- */

/*
 * One that q's peer has and q may have invalidated, or 0.  At once: what waits
 * may name it, too.
 */
static uint32_t key_to_invalidate(const struct qp *q)
{
    const struct qp *peer = q->peer;
    const struct keys *keys = qp_is_xrc(q) ? &peer->rq->keys : &peer->keys;
    const struct region *all = peer->side->region[q->side->index];
    unsigned int i;

    if ( wq_posted(&q->sq) || q->attr.state != VMRI_QPS_RTS )
        return 0;
    for ( i = REGIONS; i < NAMED; i++ )
        if ( all[i].live && !all[i].users && all[i].pd == keys->pd &&
             (all[i].owner == peer ||
              (all[i].kind == KIND_FAST && keys->kernel)) )
            return all[i].key;
    return 0;
}

/* The right that the peer must grant; ~0: not on such a queue pair. */
static uint32_t right_for(const struct qp *q, unsigned int opcode)
{
    switch ( opcode )
    {
    case VMRI_WR_SEND:
    case VMRI_WR_SEND_WITH_IMM:
        return 0;
    case VMRI_WR_SEND_WITH_INV:
        return qp_is_reliable(q) && key_to_invalidate(q) ? 0 : ~0U;
    case VMRI_WR_RDMA_WRITE:
    case VMRI_WR_RDMA_WRITE_WITH_IMM:
        return qp_is_datagram(q) ? ~0U : VMRI_ACCESS_REMOTE_WRITE;
    case VMRI_WR_RDMA_READ:
        return qp_is_reliable(q) ? VMRI_ACCESS_REMOTE_READ : ~0U;
    case VMRI_WR_FLUSH:
        return qp_type(q) == VMRI_QPT_RC ? VMRI_ACCESS_FLUSH_GLOBAL : ~0U;
    case VMRI_WR_ATOMIC_WRITE:
        return qp_type(q) == VMRI_QPT_RC ? VMRI_ACCESS_REMOTE_WRITE : ~0U;
    default:
        return qp_is_reliable(q) ? VMRI_ACCESS_REMOTE_ATOMIC : ~0U;
    }
}

unsigned int pick_opcode(struct qp *q)
{
    static const uint8_t opcodes[] = {
        VMRI_WR_SEND, VMRI_WR_SEND, VMRI_WR_SEND_WITH_IMM, VMRI_WR_RDMA_WRITE,
        VMRI_WR_RDMA_WRITE_WITH_IMM, VMRI_WR_RDMA_READ, VMRI_WR_RDMA_READ,
        VMRI_WR_ATOMIC_CMP_AND_SWP, VMRI_WR_ATOMIC_FETCH_AND_ADD,
        VMRI_WR_ATOMIC_WRITE, VMRI_WR_FLUSH, VMRI_WR_SEND_WITH_INV,
    };
    unsigned int opcode;

    do
        opcode = opcodes[rng_below(rng_of(q->side), ARRAY_SIZE(opcodes))];
    while ( right_for(q, opcode) & ~q->peer->attr.access_flags );
    return opcode;
}

static uint32_t length_of_atomic(const struct send *s)
{
    return s->wqe.opcode == VMRI_WR_ATOMIC_CMP_AND_SWP ||
           s->wqe.opcode == VMRI_WR_ATOMIC_FETCH_AND_ADD ? 8 : 0;
}

static void fill_payload(struct qp *q, struct send *s, uint32_t length)
{
    struct rng *rng = rng_of(q->side);
    bool fetch = s->wqe.opcode == VMRI_WR_RDMA_READ || length_of_atomic(s),
         indirect;

    if ( !fetch && q->arg.max_inline && rng_percent(rng, 30) )
    {
        s->wqe.flags |= VMRI_SEND_INLINE;
        s->wqe.length = min(length, q->arg.max_inline);
        s->wqe.num_sge = (uint16_t)rng_below(rng, 3);
        fill_pattern(s->data, s->wqe.length, (uint32_t)rng_next(rng) & 0xffff);
        return;
    }
    indirect = pick_indirect(q);
    s->wqe.num_sge = (uint16_t)
        pick_list(&q->keys, q->side->index, ACCESS_LISTED |
                  (fetch ? VMRI_ACCESS_LOCAL_WRITE : 0), length, indirect ? INDIRECT : q->sq.max_sge, s->sge);
    if ( indirect )
        s->wqe.flags |= VMRI_SEND_INDIRECT;
    s->wqe.length = (uint32_t)min_t(uint64_t, length,
                                    list_bytes(s->sge, s->wqe.num_sge));
}

static void fill_remote(struct qp *q, struct send *s)
{
    const struct keys keys = remote_keys(q, s);
    const struct region *r = pick_region(&keys, q->side->index,
                                         right_for(q, s->wqe.opcode),
                                         s->wqe.length);

    s->wqe.u.rdma.rkey = r->key;
    s->wqe.u.rdma.remote_addr =
        r->iova + rng_below(rng_of(q->side), r->length - s->wqe.length + 1);
}

/* Addresses in a region are as aligned as the memory. */
static void fill_operation(struct qp *q, struct send *s)
{
    struct rng *rng = rng_of(q->side);
    const struct keys keys = remote_keys(q, s);
    const struct region *r = pick_region(&keys, q->side->index,
                                         right_for(q, s->wqe.opcode), 16);
    uint32_t at = rng_below(rng, r->length - 15);

    s->wqe.u.rdma.rkey = r->key;
    s->wqe.u.rdma.remote_addr = ROUNDUP(r->iova + at, 8ULL);
    s->wqe.u.rdma.swap = rng_next(rng);
    s->wqe.u.rdma.compare_add = rng_next(rng);
    /* Let the comparison succeed at times. */
    if ( s->wqe.opcode == VMRI_WR_ATOMIC_CMP_AND_SWP && rng_percent(rng, 50) )
        memcpy(&s->wqe.u.rdma.compare_add,
               q->peer->side->memory.image + r->at +
               (s->wqe.u.rdma.remote_addr - r->iova), 8);
}

static void fill_flush(struct qp *q, struct send *s, uint32_t length)
{
    s->wqe.length = length;
    fill_remote(q, s);
    s->wqe.u.rdma.flush_type = VMRI_FLUSH_GLOBAL;
    s->wqe.u.rdma.flush_level = rng_percent(rng_of(q->side), 50)
                                ? VMRI_FLUSH_LEVEL_MR : VMRI_FLUSH_LEVEL_RANGE;
}

static void fill_datagram(struct qp *q, struct send *s)
{
    struct rng *rng = rng_of(q->side);
    struct vmri_av *av = &s->wqe.u.ud.av;
    unsigned int i;

    av->dlid = q->peer->side->guest->lid;
    av->sl = (uint8_t)rng_below(rng, 16);
    s->wqe.u.ud.remote_qpn = q->peer->qpn;
    s->wqe.u.ud.remote_qkey = q->peer->attr.qkey;
    if ( q->attr.qkey == q->peer->attr.qkey && rng_percent(rng, 50) )
        s->wqe.u.ud.remote_qkey = VMRI_QKEY_OWN;
    if ( rng_percent(rng, 50) )
        return;
    av->flags = VMRI_AV_GRH;
    av->flow_label = rng_below(rng, 1U << 20);
    av->hop_limit = (uint8_t)rng_next(rng);
    av->traffic_class = (uint8_t)rng_next(rng);
    for ( i = 0; i < 16; i++ )
        av->dgid[i] = (uint8_t)rng_next(rng);
    /* Not a multicast GID. */
    av->dgid[0] = 0xfe;
}

/*
 * Without a receive any number will do: the target's own keys count where it
 * names none of the queues.
 */
static uint32_t pick_queue(struct qp *q, unsigned int opcode)
{
    struct rng *rng = rng_of(q->side);
    const struct side *s = q->peer->side;

    if ( takes_receive(opcode) || rng_percent(rng, 40) )
        return q->peer->rq->handle;
    return rng_percent(rng, 80) ? s->srq[rng_below(rng, SRQS)].handle
                                : s->srq[rng_below(rng, SRQS)].old_handle;
}

void make_send(struct qp *q, unsigned int opcode, uint32_t limit,
               struct send *s)
{
    struct rng *rng = rng_of(q->side);
    uint32_t length = pick_length(rng, limit);

    memset(&s->wqe, 0, sizeof(s->wqe));
    s->wqe.wr_id = ++q->side->cell->wr_id;
    s->wqe.opcode = (uint8_t)opcode;
    s->wqe.flags = (rng_percent(rng, 70) ? VMRI_SEND_SIGNALED : 0) |
                   (rng_percent(rng, 20) ? VMRI_SEND_SOLICITED : 0) |
                   (rng_percent(rng, 10) ? VMRI_SEND_FENCE : 0);
    s->wqe.imm = (uint32_t)rng_next(rng);
    if ( qp_is_xrc(q) )
        s->wqe.u.rdma.srqn = pick_queue(q, opcode);
    switch ( opcode )
    {
    case VMRI_WR_SEND_WITH_INV:
        s->wqe.imm = key_to_invalidate(q);
        fill_payload(q, s, length);
        break;
    case VMRI_WR_SEND:
    case VMRI_WR_SEND_WITH_IMM:
        fill_payload(q, s, length);
        if ( qp_is_datagram(q) )
            fill_datagram(q, s);
        break;
    case VMRI_WR_ATOMIC_CMP_AND_SWP:
    case VMRI_WR_ATOMIC_FETCH_AND_ADD:
        fill_payload(q, s, 8);
        fill_operation(q, s);
        break;
    case VMRI_WR_ATOMIC_WRITE:
        s->wqe.length = 8;
        fill_operation(q, s);
        break;
    case VMRI_WR_FLUSH:
        fill_flush(q, s, min(length, HALF / 2));
        break;
    default:
        /* What an RDMA names lies in one region. */
        fill_payload(q, s, min(length, HALF / 2));
        fill_remote(q, s);
    }
}

/* ---- what changes a key ---- */

static uint32_t rename_key(struct rng *rng, uint32_t key)
{
    return (key & ~0xffU) | rng_below(rng, 256);
}

static void fill_bind(struct qp *q, const struct region *r, unsigned int dir,
                      struct send *s)
{
    struct rng *rng = rng_of(q->side);
    const struct region *of = &q->side->region[dir][q->keys.pd];
    uint32_t at = rng_below(rng, of->length);
    uint32_t access = (uint32_t)rng_next(rng) & VMRI_ACCESS_MW;

    if ( r->kind == KIND_WINDOW1 )
        access &= ~VMRI_ACCESS_ZERO_BASED;
    /* Addresses stay as aligned as the memory. */
    else if ( access & VMRI_ACCESS_ZERO_BASED )
        at = (ROUNDUP(of->at + at, 8U) - of->at) % of->length;
    if ( (of->at + at) % 8 )
        access &= ~VMRI_ACCESS_ZERO_BASED;
    s->wqe.opcode = VMRI_WR_BIND_MW;
    s->wqe.u.bind.addr = of->iova + at;
    s->wqe.u.bind.length = 1 + rng_below(rng, of->length - at);
    if ( r->kind == KIND_WINDOW1 && rng_percent(rng, 20) )
        s->wqe.u.bind.length = 0;
    s->wqe.u.bind.mw_key = r->key;
    s->wqe.u.bind.new_key = rename_key(rng, r->key);
    s->wqe.u.bind.mr_key = of->key;
    s->wqe.u.bind.access = access;
}

static void fill_fast(struct qp *q, const struct region *r, unsigned int dir,
                      struct send *s)
{
    struct rng *rng = rng_of(q->side);
    uint32_t nr = 1 + rng_below(rng, FAST_FRAMES);
    uint64_t gfn = q->side->memory.gfn + dir * HALF_PAGES +
                   rng_below(rng, HALF_PAGES - nr);
    uint32_t access = (uint32_t)rng_next(rng) & VMRI_ACCESS_MR;

    if ( access & (VMRI_ACCESS_REMOTE_WRITE | VMRI_ACCESS_REMOTE_ATOMIC) )
        access |= VMRI_ACCESS_LOCAL_WRITE;
    s->wqe.opcode = VMRI_WR_REG_MR;
    s->sge[0].addr = gfn << PAGE_SHIFT;
    s->wqe.u.reg.offset = rng_below(rng, (uint32_t)PAGE_SIZE);
    s->wqe.u.reg.length = (nr << PAGE_SHIFT) - s->wqe.u.reg.offset -
                          rng_below(rng, nr == 1 ? 1 : 1000);
    s->wqe.u.reg.iova = (rng_next(rng) & 0xffffffff000ULL) +
                        s->wqe.u.reg.offset;
    s->wqe.u.reg.key = rename_key(rng, r->key);
    s->wqe.u.reg.new_key = rename_key(rng, r->key);
    s->wqe.u.reg.access = access;
}

/* What is wrong must not depend on the keys of other cells. */
static void spoil_key_request(struct qp *q, struct send *s)
{
    struct rng *rng = rng_of(q->side);

    if ( s->wqe.opcode == VMRI_WR_LOCAL_INV )
        s->wqe.imm = q->side->region[0][rng_below(rng, REGIONS)].key;
    else if ( s->wqe.opcode == VMRI_WR_REG_MR )
    {
        if ( rng_percent(rng, 50) )
            s->wqe.u.reg.length += FAST_FRAMES * PAGE_SIZE;
        else
            s->wqe.u.reg.list = 1 + rng_below(rng, 7);
    }
    else
        switch ( rng_below(rng, 3) )
        {
        case 0:
            s->wqe.u.bind.length += HALF;
            break;
        case 1:
            s->wqe.u.bind.access |= VMRI_ACCESS_LOCAL_WRITE;
            break;
        default:
            s->wqe.u.bind.new_key += 0x100;
        }
}

bool make_key_request(struct qp *q, bool right, struct send *s)
{
    struct rng *rng = rng_of(q->side);
    unsigned int dir = !q->side->index;
    const struct region *r = &q->side->region[dir]
                             [REGIONS + rng_below(rng, NAMED - REGIONS)];

    memset(&s->wqe, 0, sizeof(s->wqe));
    s->wqe.wr_id = ++q->side->cell->wr_id;
    s->wqe.flags = rng_percent(rng, 70) ? VMRI_SEND_SIGNALED : 0;
    if ( !r->key || r->pd != q->keys.pd || (r->owner && r->owner != q) )
        return false;
    if ( r->kind == KIND_FAST && !qp_is_kernel(q) )
        return false;
    if ( r->kind != KIND_WINDOW1 && r->live )
    {
        s->wqe.opcode = VMRI_WR_LOCAL_INV;
        s->wqe.imm = r->key;
    }
    else if ( r->kind == KIND_FAST )
        fill_fast(q, r, dir, s);
    else
        fill_bind(q, r, dir, s);
    if ( !right )
        spoil_key_request(q, s);
    return true;
}

/* ---- wrong ones ---- */

void spoil_form(struct qp *q, struct send *s)
{
    struct rng *rng = rng_of(q->side);
    bool plain = !(s->wqe.flags & (VMRI_SEND_INLINE | VMRI_SEND_INDIRECT));

    switch ( rng_below(rng, plain ? 4 : 3) )
    {
    case 0:
        s->wqe.opcode = (uint8_t)(VMRI_WR_REG_MR + 1 + rng_below(rng, 200));
        break;
    case 1:
        s->wqe.flags |= 0x20 << rng_below(rng, 3);
        break;
    case 2:
        s->wqe.length = VMRI_MAX_MSG + 1 + rng_below(rng, 1U << 30);
        break;
    case 3:
        s->wqe.num_sge = (uint16_t)(q->sq.max_sge + 1 + rng_below(rng, 1000));
        break;
    }
}

/* Some other region of this direction, whatever it allows. */
static uint32_t other_key(const struct keys *keys, unsigned int dir)
{
    struct rng *rng = rng_of(keys->side);
    const struct region *r = &keys->side->region[dir][rng_below(rng, NAMED)];

    switch ( rng_below(rng, 4) )
    {
    case 0:
        return 0xffff0000U | rng_below(rng, 0xff00);
    case 1:
        return r->old_key ? r->old_key : 0xfffe0000U;
    case 2:
        return keys->kernel ? 0 : VMRI_LKEY_FRAMES;
    default:
        return r->key;
    }
}

/* An address from which on `length` bytes do not all lie within a region. */
static uint64_t outside(struct side *s, uint32_t key, uint64_t addr,
                        uint32_t length)
{
    const struct region *r = region_of_key(s, key);

    switch ( rng_below(rng_of(s), 4) )
    {
    case 0:
        return addr + HALF;
    case 1:
        return ~0ULL - rng_below(rng_of(s), 9);
    case 2:
        return r->iova - 1;
    default:
        return r->iova + r->length - length + 1;
    }
}

static void spoil_entry(const struct keys *keys, unsigned int dir,
                        struct vmri_sge *sge)
{
    struct rng *rng = rng_of(keys->side);

    if ( sge->lkey == VMRI_LKEY_FRAMES )
    {
        /* One byte crosses no end, and the next frame may be another cell's. */
        sge->addr += sge->length < 2 || rng_percent(rng, 50)
                     ? (1ULL << 40)
                     : PAGE_SIZE - (sge->addr & (PAGE_SIZE - 1)) -
                       sge->length + 1;
        return;
    }
    if ( rng_percent(rng, 50) )
        sge->lkey = other_key(keys, dir);
    else
        sge->addr = outside(keys->side, sge->lkey, sge->addr, sge->length);
}

void spoil_list(const struct keys *keys, unsigned int dir,
                struct vmri_sge *sge, unsigned int num)
{
    spoil_entry(keys, dir, &sge[rng_below(rng_of(keys->side), num)]);
}

void spoil_remote(struct qp *q, struct send *s)
{
    struct rng *rng = rng_of(q->side);
    const struct keys keys = remote_keys(q, s);
    uint64_t addr = outside(q->peer->side, s->wqe.u.rdma.rkey,
                            s->wqe.u.rdma.remote_addr, s->wqe.length);

    if ( s->wqe.opcode == VMRI_WR_FLUSH && rng_percent(rng, 30) )
        s->wqe.u.rdma.flush_type |= VMRI_FLUSH_PERSISTENT;
    else if ( rng_percent(rng, 50) )
        s->wqe.u.rdma.rkey = other_key(&keys, q->side->index);
    else
        s->wqe.u.rdma.remote_addr = addr;
}
