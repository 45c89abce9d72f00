/* SPDX-License-Identifier: GPL-2.0-only */
/* What becomes of datagrams. */
#include "oracle.h"

#undef memcpy
#undef memset

static void put_be(uint8_t *to, uint64_t v, unsigned int bytes)
{
    while ( bytes-- )
    {
        to[bytes] = (uint8_t)v;
        v >>= 8;
    }
}

/* IBTA 1.4, 8.3. */
static void make_grh(const struct qp *q, const struct vmri_send_wqe *w,
                     uint8_t grh[VMRI_GRH])
{
    const struct vmri_av *av = &w->u.ud.av;

    put_be(grh, 6ULL << 28 | (uint64_t)av->traffic_class << 20 |
                av->flow_label, 4);
    put_be(grh + 4, w->length, 2);
    grh[6] = 0x1b;
    grh[7] = av->hop_limit;
    put_be(grh + 8, q->side->guest->attr.gid_prefix, 8);
    put_be(grh + 16, q->side->guest->attr.port_guid, 8);
    memcpy(grh + 24, av->dgid, 16);
}

/* Does the peer take it?  Then its next receive is `r`. */
static bool delivers(struct qp *q, struct qp *peer, const struct send *s,
                     struct recv *r)
{
    const struct vmri_send_wqe *w = &s->wqe;
    struct wq *wq = &peer->rq->wq;
    uint32_t qkey = w->u.ud.remote_qkey & VMRI_QKEY_OWN
                    ? q->attr.qkey : w->u.ud.remote_qkey;
    const struct recv *next = &peer->rq->recv[wq->done % DEPTH];

    if ( peer->attr.state < VMRI_QPS_RTR || peer->attr.state > VMRI_QPS_SQE )
        return false;
    if ( qkey != peer->attr.qkey )
    {
        peer->side->counters.qkey_violations++;
        return false;
    }
    if ( !wq_posted(wq) ||
         list_bytes(next->sge, next->wqe.num_sge) < VMRI_GRH + w->length )
        return false;
    oracle_take(peer->rq, r);
    return true;
}

/* The room for a header that is not there is not looked at. */
static void skip_header(struct recv *r)
{
    uint32_t left = VMRI_GRH, i, n;

    for ( i = 0; left && i < r->wqe.num_sge; i++ )
    {
        n = min(left, r->sge[i].length);
        r->sge[i].addr += n;
        r->sge[i].length -= n;
        left -= n;
    }
}

static void fill_datagram(struct qp *q, struct qp *peer, const struct send *s,
                          const struct spans *from, struct recv *r,
                          struct vmri_cqe *how)
{
    bool with_grh = s->wqe.u.ud.av.flags & VMRI_AV_GRH;
    uint32_t head = with_grh ? VMRI_GRH : 0;
    uint32_t length = head + s->wqe.length;
    struct spans to, header;
    uint8_t grh[VMRI_GRH];

    if ( !with_grh )
        skip_header(r);
    spans_of_list(&to, &peer->rq->keys, r->sge, r->wqe.num_sge,
                  VMRI_ACCESS_LOCAL_WRITE, length);
    if ( to.bytes < length )
    {
        how->status = VMRI_WC_LOC_PROT_ERR;
        how->vendor_err = to.verr;
        how->flags = 0;
        length = (uint32_t)to.bytes;
    }
    make_grh(q, &s->wqe, grh);
    spans_of_bytes(&header, grh, sizeof(grh));
    spans_copy(peer->side, &to, &header, min(length, head), !how->status);
    if ( length <= head )
        return;
    spans_skip(&to, head);
    spans_copy(peer->side, &to, from, length - head, !how->status);
}

static void deliver_to(struct qp *q, struct qp *peer, const struct send *s,
                       const struct spans *from)
{
    const struct vmri_send_wqe *w = &s->wqe;
    bool imm = w->opcode == VMRI_WR_SEND_WITH_IMM;
    struct vmri_cqe how = {
        .opcode = VMRI_WC_OP_RECV, .byte_len = VMRI_GRH + w->length,
        .imm = imm ? w->imm : 0,
        .flags = (imm ? VMRI_WC_WITH_IMM : 0) |
                 (w->flags & VMRI_SEND_SOLICITED ? VMRI_WC_SOLICITED : 0) |
                 (w->u.ud.av.flags & VMRI_AV_GRH ? VMRI_WC_GRH : 0),
        .src_qp = q->qpn, .slid = q->side->guest->lid, .sl = w->u.ud.av.sl,
    };
    struct recv r;

    if ( !delivers(q, peer, s, &r) )
    {
        peer->side->counters.ud_drops++;
        return;
    }
    fill_datagram(q, peer, s, from, &r, &how);
    oracle_end_recv(peer, peer->rq, &r, &how);
    if ( how.status )
        oracle_enter_error(peer, 0);
}

static void deliver_to_group(struct qp *q, const struct send *s,
                             const struct spans *from)
{
    struct cell *c = q->side->cell;
    unsigned int i;

    for ( i = 0; i < c->nr_attached; i++ )
    {
        struct qp *peer = c->attached[i];

        if ( !(peer->arg.flags & VMRI_QPF_BLOCK_LOOPBACK) ||
             peer->side->guest != q->side->guest )
            deliver_to(q, peer, s, from);
    }
}

void oracle_datagram(struct qp *q, const struct send *s)
{
    const struct vmri_send_wqe *w = &s->wqe;
    bool group = w->u.ud.av.dlid == group_mlid(q->side->cell) &&
                 q->side->cell->nr_attached;
    bool there = q->peer->qpn &&
                 w->u.ud.av.dlid == q->peer->side->guest->lid &&
                 w->u.ud.remote_qpn == q->peer->qpn;
    struct spans from;

    oracle_local_spans(q, s, &from);
    if ( from.bytes < w->length )
    {
        oracle_fail_sender(q, verdict(VMRI_WC_LOC_PROT_ERR, from.verr), 0);
        return;
    }
    if ( there )
        deliver_to(q, q->peer, s, &from);
    else if ( group )
        deliver_to_group(q, s, &from);
    else
        q->side->counters.ud_drops++;
    oracle_end_send(q, FINE, 0);
}
