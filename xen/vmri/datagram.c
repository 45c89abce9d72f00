/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: datagrams (UD, and the GSI of QP1): one request, one step, and no
 * answer.
 *
 * What cannot be delivered is dropped and counted; only what is wrong with
 * the request itself fails it.  A datagram that does not fit the receive at
 * hand is dropped too, and the receive stays: a stranger must not be able
 * to use up or break somebody's queue.
 */
#include "internal.h"

/* IBTA 1.4, 8.3. */
struct grh {
    uint8_t version_class_flow[4];
    uint8_t payload_length[2];
    uint8_t next_header;
    uint8_t hop_limit;
    uint8_t sgid[16];
    uint8_t dgid[16];
};

#define GRH_NEXT_IBA    0x1b

static void put_be(uint8_t *to, uint64_t v, unsigned int bytes)
{
    while ( bytes-- )
    {
        to[bytes] = v;
        v >>= 8;
    }
}

static void make_grh(const struct vmri_qp *qp, const struct vmri_av *av,
                     uint32_t length, struct grh *grh)
{
    const struct vmri_dev *dev = qp->dev;

    put_be(grh->version_class_flow, (6U << 28) | (av->traffic_class << 20) |
                                    (av->flow_label & 0xfffff), 4);
    put_be(grh->payload_length, length, 2);
    grh->next_header = GRH_NEXT_IBA;
    grh->hop_limit = av->hop_limit;
    put_be(grh->sgid, env_load(&dev->port.gid_prefix), 8);
    put_be(grh->sgid + 8, dev->guid, 8);
    memcpy(grh->dgid, av->dgid, sizeof(grh->dgid));
}

/* Under peer->lock.  QP0 takes what QP0 sends, and nothing else. */
static bool takes_datagrams(const struct vmri_qp *qp,
                            const struct vmri_qp *peer)
{
    const bool type_ok = qp->type == VMRI_QPT_SMI
                         ? peer->type == VMRI_QPT_SMI
                         : peer->type == VMRI_QPT_UD ||
                           peer->type == VMRI_QPT_GSI;

    return type_ok && (peer->rq.hdr || peer->srq) && peer->attr.state >= VMRI_QPS_RTR &&
           peer->attr.state <= VMRI_QPS_SQE;
}

/*
 * May the peer's QP have it, and has it room?  Then its receive is in qp->rx.
 */
static bool claim(struct vmri_qp *qp, struct vmri_qp *peer)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    uint32_t qkey = wqe->u.ud.remote_qkey & VMRI_QKEY_OWN
                    ? qp->attr.qkey : wqe->u.ud.remote_qkey;
    int rc = 0;

    env_lock(&peer->lock);
    if ( takes_datagrams(qp, peer) )
    {
        if ( qkey != peer->attr.qkey )
            vmri_count(peer->dev, qkey_violations, 1);
        else
            rc = vmri_recv_take(peer, peer->srq, VMRI_GRH + wqe->length,
                                &qp->rx, qp->rx_sge);

        if ( rc > 0 )
            env_fetch_add(&peer->inflight, 1);
    }
    env_unlock(&peer->lock);

    if ( rc < 0 )
        vmri_qp_error(peer, VMRI_EVENT_QP_FATAL);

    return rc > 0;
}

/* Header and payload into the claimed receive. */
static enum vmri_copied fill(struct vmri_qp *qp, struct vmri_place *to,
                             struct vmri_place *from)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;

    if ( wqe->u.ud.av.flags & VMRI_AV_GRH )
    {
        struct grh grh;
        struct vmri_place header = { .qp = qp, .data = (uint8_t *)&grh };
        enum vmri_copied rc;

        make_grh(qp, &wqe->u.ud.av, wqe->length, &grh);
        rc = vmri_copy(to, &header, sizeof(grh));
        if ( rc != VMRI_COPIED )
            return rc;
    }
    else
    {
        vmri_cursor_skip(&qp->rx.sgl, VMRI_GRH);
        to->extent -= VMRI_GRH;
    }

    return vmri_copy(to, from, wqe->length);
}

static enum vmri_step deliver(struct vmri_qp *qp, struct vmri_qp *peer,
                              uint16_t pkey_index)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    bool imm = wqe->opcode == VMRI_WR_SEND_WITH_IMM;
    struct vmri_cursor sgl = qp->tx.sgl;
    struct vmri_place from = {
        .qp = qp,
        .data = qp->tx.data,
        .sgl = &sgl,
        .extent = wqe->length,
    };
    struct vmri_place to = {
        .qp = peer,
        .write = true,
        .sgl = &qp->rx.sgl,
        .extent = VMRI_GRH + wqe->length,
    };
    struct vmri_cqe cqe = {
        .opcode = VMRI_WC_OP_RECV,
        .byte_len = VMRI_GRH + wqe->length,
        .imm = imm ? wqe->imm : 0,
        .flags = (imm ? VMRI_WC_WITH_IMM : 0) |
                 (wqe->flags & VMRI_SEND_SOLICITED ? VMRI_WC_SOLICITED : 0) |
                 (wqe->u.ud.av.flags & VMRI_AV_GRH ? VMRI_WC_GRH : 0),
        .src_qp = qp->qpn,
        .slid = env_load(&qp->dev->lid),
        .sl = wqe->u.ud.av.sl,
        .pkey_index = pkey_index,
    };
    enum vmri_step rc = VMRI_STEP_DONE;

    switch ( fill(qp, &to, &from) )
    {
    case VMRI_COPIED:
        break;

    case VMRI_COPY_FROM:
        /*
         * The source was there a moment ago: the sender took it away.  Its
         * datagram ends here, the receiver's queue pair is none the worse.
         */
        cqe.byte_len = VMRI_GRH + from.moved;
        rc = vmri_fail(qp, VMRI_WC_LOC_PROT_ERR, from.vendor_err);
        break;

    case VMRI_COPY_TO:
        cqe.status = VMRI_WC_LOC_PROT_ERR;
        cqe.vendor_err = to.vendor_err;
        break;
    }

    vmri_recv_complete(peer, &qp->rx, &cqe);
    if ( cqe.status == VMRI_WC_LOC_PROT_ERR )
        vmri_qp_error(peer, 0);

    env_fetch_sub(&peer->inflight, 1);

    return rc;
}

enum vmri_step vmri_datagram_to(struct vmri_qp *qp, struct vmri_qp *peer)
{
    uint16_t pkey_index;

    if ( vmri_port_admits(qp, peer, &pkey_index) && claim(qp, peer) )
        return deliver(qp, peer, pkey_index);

    vmri_count(peer->dev, ud_drops, 1);

    return VMRI_STEP_DONE;
}

/* Is what the request sends there?  Asked before a receive is spent on it. */
static bool source_there(struct vmri_qp *qp)
{
    struct vmri_cursor sgl = qp->tx.sgl;
    struct vmri_place from = {
        .qp = qp,
        .data = qp->tx.data,
        .sgl = &sgl,
        .extent = qp->tx.wqe.length,
    };

    if ( vmri_copy_probe(&from, qp->tx.wqe.length) )
        return true;

    vmri_fail(qp, VMRI_WC_LOC_PROT_ERR, from.vendor_err);

    return false;
}

/*
 * Does a datagram get there?  Subnet management packets do not leave the
 * device, but go whatever the port's state is: that is what they manage.
 */
static bool reaches(struct vmri_qp *qp, struct vmri_dev *dev)
{
    if ( qp->type == VMRI_QPT_SMI )
        return dev == qp->dev;

    return vmri_fabric_joins(qp, dev) && env_domain_running(dev->domain) &&
           vmri_port_reaches(qp->dev, dev);
}

enum vmri_step vmri_datagram(struct vmri_qp *qp, uint32_t *budget)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    struct vmri_qp *peer = NULL;
    uint32_t bytes = wqe->length;
    struct vmri_dev *dev;
    enum vmri_step rc = VMRI_STEP_DONE;

    if ( !source_there(qp) )
        return VMRI_STEP_FAILED;

    /* To a group it goes once, whatever is made of it there. */
    if ( !qp->tx.group_end && !vmri_rate_allows(qp, &bytes) )
        return VMRI_STEP_PARKED;

    if ( wqe->u.ud.av.dlid >= VMRI_MLID_MIN )
        return vmri_multicast(qp, budget);

    vmri_spend(budget, wqe->length);

    dev = vmri_fabric_peer(qp->dev->fabric, wqe->u.ud.av.dlid);
    if ( dev && reaches(qp, dev) )
        peer = vmri_table_get(&dev->qps, wqe->u.ud.remote_qpn);

    if ( peer )
    {
        rc = vmri_datagram_to(qp, peer);
        vmri_table_put(&dev->qps, peer->qpn);
    }
    else
        vmri_count(qp->dev, ud_drops, 1);

    if ( dev )
        vmri_fabric_peer_put(dev);

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
