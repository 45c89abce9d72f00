/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the way of a plain message, when all is as it is nearly always.
 *
 * That is a SEND or a WRITE of a reliable connection whose bytes lie together,
 * in one entry or in the ring, and come to lie together, in pinned frames on
 * both sides, of a device without limits to its rate.  Everything is looked at
 * before anything changes.  What is not so, or is wrong in any way, is left to
 * transfer.c, which begins anew and finds all as it was.
 */
#include "internal.h"

#define PLAIN_FLAGS (VMRI_SEND_FENCE | VMRI_SEND_SIGNALED | \
                     VMRI_SEND_SOLICITED | VMRI_SEND_INLINE)

/* Where the bytes of one side are. */
struct spot {
    struct vmri_key *k;         /* with a reference; NULL: in the ring */
    const uint8_t *data;        /* there */
    uint64_t at;                /* of a key: machine address */
};

/* Does what a key grants hold `bytes` from here on, and together? */
static bool together(const struct vmri_range *r, uint64_t addr, uint32_t bytes,
                     struct vmri_xlat *x)
{
    env_frame_t frame;
    uint32_t offset;
    uint64_t run;

    if ( !r->pinned || !vmri_range_holds(r, addr, bytes) )
        return false;

    run = vmri_range_frame(r, addr, &frame, &offset);
    run = min(run, r->length - (addr - r->iova));
    x->bytes = min_t(uint64_t, run, VMRI_MAX_MSG);
    x->iova = addr;
    x->at = (frame << VMRI_PAGE_SHIFT) + offset;

    return x->bytes >= bytes;
}

/* A key's bytes, looked up and remembered; NULL: not so, nothing is held. */
static struct vmri_key *look_up(struct vmri_xlat *x, const struct vmri_qp *qp,
                                uint32_t key, uint32_t access, uint64_t addr,
                                uint32_t bytes)
{
    struct vmri_slot *slot = vmri_table_slot(&qp->dev->keys, key);
    struct vmri_key *k = slot ? vmri_slot_get(slot, key) : NULL;

    x->slot = NULL;
    if ( !k )
        return NULL;

    if ( vmri_key_grants(k, qp, qp->rings.pd, access) &&
         together(&k->range, addr, bytes, x) )
    {
        x->slot = slot;
        x->version = k->range.version;
        x->access = k->range.access;
        return k;
    }
    vmri_key_put(k);

    return NULL;
}

/* The same from memory.  Its offset is bounded for a speculating CPU, too. */
static always_inline struct vmri_key *recall(const struct vmri_xlat *x,
                                             uint32_t key, uint32_t access,
                                             uint64_t addr, uint32_t bytes,
                                             uint32_t *offset)
{
    const uint64_t from = addr - x->iova;
    struct vmri_key *k;

    if ( !x->slot || (access & ~x->access) || from >= x->bytes ||
         bytes > x->bytes - (uint32_t)from )
        return NULL;

    k = vmri_slot_get(x->slot, key);
    if ( !k )
        return NULL;

    if ( likely(k->range.version == x->version) )
    {
        *offset = env_nospec(from, x->bytes);
        return k;
    }
    vmri_key_put(k);

    return NULL;
}

/* `bytes` of a key, in the name of qp; false: not so, nothing is held. */
static always_inline bool spot_get(struct spot *s, const struct vmri_qp *qp,
                                   struct vmri_xlat *x, uint32_t key,
                                   uint32_t access, uint64_t addr,
                                   uint32_t bytes)
{
    uint32_t offset = 0;

    s->k = recall(x, key, access, addr, bytes, &offset);
    if ( unlikely(!s->k) )
        s->k = look_up(x, qp, key, access, addr, bytes);
    if ( unlikely(!s->k) )
        return false;

    s->at = x->at + offset;
    if ( likely(env_run(s->at >> VMRI_PAGE_SHIFT, s->at & ~PAGE_MASK,
                        bytes) >= bytes) )
        return true;
    vmri_key_put(s->k);

    return false;
}

/* The same of the entry of a request of qp's own. */
static always_inline bool entry_get(struct spot *s, const struct vmri_qp *qp,
                                    struct vmri_xlat *x, const void *entry,
                                    uint32_t access, uint32_t bytes)
{
    struct vmri_sge sge;

    vmri_copy_in(&sge, entry, sizeof(sge));
    access |= qp->rings.kernel ? VMRI_KEY_LOCAL_KERNEL : VMRI_KEY_LOCAL;

    return sge.length >= bytes &&
           spot_get(s, qp, x, sge.lkey, access, sge.addr, bytes);
}

static void spot_put(const struct spot *s)
{
    if ( s->k )
        vmri_key_put(s->k);
}

/* What follows a header in its slot, for a speculating CPU, too. */
static always_inline const uint8_t *behind(const struct vmri_wq *wq,
                                           const uint8_t *at, uint32_t header)
{
    return at + env_nospec(header, 1U << wq->log2_stride);
}

/* What the request sends. */
static bool find_source(struct vmri_qp *qp, const uint8_t *at,
                        struct spot *from)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;

    *from = (struct spot){ .data = behind(&qp->sq, at, sizeof(*wqe)) };
    if ( wqe->flags & VMRI_SEND_INLINE )
        return wqe->length <= qp->max_inline;

    return wqe->num_sge == 1 && qp->sq.max_sge &&
           entry_get(from, qp, &qp->xlat, from->data, 0, wqe->length);
}

/* The peer's next receive, which stays where it is.  Under peer->lock. */
static bool find_receive(struct vmri_qp *qp, struct vmri_qp *peer,
                         struct spot *to, uint64_t *wr_id)
{
    struct vmri_recv_wqe wqe;
    const uint8_t *at;

    if ( peer->srq || peer->rx.active || vmri_wq_posted(&peer->rq) <= 0 )
        return false;

    at = vmri_region_at(&peer->rings.region, vmri_wq_slot(&peer->rq));
    vmri_copy_in(&wqe, at, sizeof(wqe));
    *wr_id = wqe.wr_id;

    return wqe.num_sge && peer->rq.max_sge &&
           !(wqe.flags & VMRI_RECV_INDIRECT) &&
           entry_get(to, peer, &qp->route.xlat,
                     behind(&peer->rq, at, sizeof(wqe)),
                     VMRI_ACCESS_LOCAL_WRITE, qp->tx.wqe.length);
}

/* Where the request writes to.  Under peer->lock. */
static bool find_target(struct vmri_qp *qp, struct vmri_qp *peer,
                        struct spot *to)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;

    return (peer->attr.access_flags & VMRI_ACCESS_REMOTE_WRITE) &&
           spot_get(to, peer, &qp->route.xlat, wqe->u.rdma.rkey,
                    VMRI_ACCESS_REMOTE_WRITE, wqe->u.rdma.remote_addr,
                    wqe->length);
}

/* A string instruction is slow to begin: a word, which is frequent, needs none. */
static always_inline void move(uint8_t *to, const uint8_t *from,
                               uint32_t bytes)
{
    if ( bytes == sizeof(uint64_t) )
        memcpy(to, from, sizeof(uint64_t));
    else
        memcpy(to, from, bytes);
}

static void copy(const struct vmri_qp *peer, const struct spot *to,
                 const struct spot *from, uint32_t bytes)
{
    const env_frame_t frame = to->at >> VMRI_PAGE_SHIFT;
    const uint32_t offset = to->at & ~PAGE_MASK;
    uint8_t *dst = env_map(frame);
    const uint8_t *src = NULL;

    if ( from->k )
        src = env_map(from->at >> VMRI_PAGE_SHIFT);

    move(dst + offset, src ? src + (from->at & ~PAGE_MASK) : from->data,
         bytes);

    if ( src )
        env_unmap(src);
    env_unmap(dst);

    env_frames_dirty(peer->dev->domain, frame, vmri_frames_of(offset, bytes));
}

/* Tell the receiver of a SEND; false: its CQ is dead. */
static always_inline bool tell(const struct vmri_send_wqe *wqe,
                               struct vmri_qp *peer, uint64_t wr_id,
                               uint64_t now)
{
    const uint32_t flags = wqe->flags & VMRI_SEND_SOLICITED ? VMRI_WC_SOLICITED
                                                            : 0;

    vmri_recv_release(peer);

    if ( unlikely(wqe->opcode == VMRI_WR_SEND_WITH_IMM) )
    {
        struct vmri_cqe cqe = {
            .wr_id = wr_id,
            .timestamp = now,
            .byte_len = wqe->length,
            .imm = wqe->imm,
            .opcode = VMRI_WC_OP_RECV,
            .flags = VMRI_WC_WITH_IMM | flags,
        };

        return vmri_cq_push(peer->rcq, peer, &cqe);
    }

    return vmri_cq_push_plain(peer->rcq, peer->qpn, wr_id, now, wqe->length,
                              VMRI_WC_OP_RECV | flags << 8);
}

static always_inline void complete(struct vmri_qp *qp, uint8_t opcode,
                                   uint64_t now)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;

    env_trace(VMRI_TRC_DONE, vmri_trace_id(qp->dev), qp->qpn, wqe->opcode,
              wqe->length);
    vmri_count_qp(qp, tx_msgs, 1);
    vmri_count_qp(qp, tx_bytes, wqe->length);
    vmri_send_retire(qp);

    if ( (wqe->flags & VMRI_SEND_SIGNALED) &&
         unlikely(!vmri_cq_push_plain(qp->scq, qp->qpn, wqe->wr_id, now,
                                      wqe->length, opcode)) )
        vmri_qp_set_error(qp, VMRI_EVENT_QP_FATAL);
}

/* The receiver could not be told. */
static noinline void fail(struct vmri_qp *qp, struct vmri_qp *peer)
{
    vmri_qp_error(peer, VMRI_EVENT_QP_FATAL);
    vmri_fail(qp, VMRI_WC_REM_OP_ERR, VMRI_VERR_RING);
    qp->tx.completion = VMRI_WC_OP_SEND;
    vmri_complete(qp);
    vmri_qp_set_error(qp, 0);
}

static bool is_plain(const struct vmri_qp *qp, uint32_t budget)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;

    return !(wqe->flags & ~PLAIN_FLAGS) &&
           (wqe->opcode == VMRI_WR_SEND || wqe->opcode == VMRI_WR_RDMA_WRITE ||
            wqe->opcode == VMRI_WR_SEND_WITH_IMM) &&
           (likely(wqe->length - 1 < VMRI_STEP) || wqe->length - 1 < budget);
}

bool vmri_plain(struct vmri_qp *qp, uint32_t budget)
{
    struct vmri_send_wqe *wqe = &qp->tx.wqe;
    struct spot from, to;
    struct vmri_qp *peer;
    uint64_t wr_id = 0, now;
    const uint8_t *at;
    bool send, told;

    if ( qp->type != VMRI_QPT_RC || !qp->route.dev ||
         unlikely(env_load(&qp->dev->limited)) )
        return false;

    /* As much as a SEND or a WRITE has. */
    at = vmri_region_at(&qp->rings.region, vmri_wq_slot(&qp->sq));
    vmri_copy_in(wqe, at, offsetof(struct vmri_send_wqe, u.rdma.compare_add));
    if ( !is_plain(qp, budget) || !find_source(qp, at, &from) )
        return false;
    send = wqe->opcode != VMRI_WR_RDMA_WRITE;

    peer = vmri_route_lock(qp);
    if ( unlikely(!peer) )
        goto other;

    if ( unlikely(!(send ? find_receive(qp, peer, &to, &wr_id)
                         : find_target(qp, peer, &to))) )
    {
        env_unlock(&peer->lock);
        vmri_peer_release(peer->dev, peer);
        goto other;
    }

    /* From here on the message is ours. */
    peer->rq.cons += send;
    env_fetch_add(&peer->inflight, 1);
    env_unlock(&peer->lock);

    copy(peer, &to, &from, wqe->length);
    spot_put(&to);
    spot_put(&from);

    now = env_now();
    vmri_count_qp(peer, rx_msgs, 1);
    vmri_count_qp(peer, rx_bytes, wqe->length);
    told = !send || tell(wqe, peer, wr_id, now);
    if ( likely(told) )
        complete(qp, send ? VMRI_WC_OP_SEND : VMRI_WC_OP_RDMA_WRITE, now);
    else
        fail(qp, peer);
    vmri_peer_put(peer);

    return true;

 other:
    spot_put(&from);

    return false;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
