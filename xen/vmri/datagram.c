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

/* Under peer->lock.  QP0 takes what QP0 sends, and nothing else. */
static bool takes_datagrams(const struct vmri_qp *peer, bool smi)
{
    const bool type_ok = smi ? peer->type == VMRI_QPT_SMI
                             : peer->type == VMRI_QPT_UD ||
                               peer->type == VMRI_QPT_GSI;

    return type_ok && (peer->rq.hdr || peer->srq) && peer->attr.state >= VMRI_QPS_RTR &&
           peer->attr.state <= VMRI_QPS_SQE;
}

bool vmri_datagram_claim(struct vmri_qp *peer, bool smi, uint32_t qkey,
                         uint32_t length, struct vmri_rx *rx,
                         struct vmri_sge *sge)
{
    int rc = 0;

    env_lock(&peer->lock);
    if ( takes_datagrams(peer, smi) )
    {
        if ( qkey != peer->attr.qkey )
            vmri_count(peer->dev, qkey_violations, 1);
        else
            rc = vmri_recv_take(peer, peer->srq, VMRI_GRH + length, rx, sge);

        if ( rc > 0 )
            env_fetch_add(&peer->inflight, 1);
    }
    env_unlock(&peer->lock);

    if ( rc < 0 )
        vmri_qp_error(peer, VMRI_EVENT_QP_FATAL);

    return rc > 0;
}

void vmri_datagram_complete(struct vmri_qp *peer, const struct vmri_rx *rx,
                            struct vmri_cqe *cqe)
{
    vmri_recv_complete(peer, rx, cqe);
    if ( cqe->status == VMRI_WC_LOC_PROT_ERR )
        vmri_qp_error(peer, 0);

    env_fetch_sub(&peer->inflight, 1);
}

uint32_t vmri_datagram_qkey(const struct vmri_qp *qp)
{
    const uint32_t qkey = qp->tx.wqe.u.ud.remote_qkey;

    return qkey & VMRI_QKEY_OWN ? qp->attr.qkey : qkey;
}

/* The GID that a datagram is from. */
static void source_gid(const struct vmri_qp *qp, uint8_t gid[16])
{
    const struct vmri_dev *dev = qp->dev;

    if ( dev->gids )
    {
        vmri_gid_get(dev, qp->tx.wqe.u.ud.av.sgid_index, gid);
        return;
    }

    vmri_put_be(gid, env_load(&dev->port.gid_prefix), 8);
    vmri_put_be(gid + 8, dev->guid, 8);
}

/* Header and payload into the claimed receive. */
static enum vmri_copied fill(struct vmri_qp *qp, struct vmri_place *to,
                             struct vmri_place *from)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;

    if ( wqe->u.ud.av.flags & VMRI_AV_GRH )
    {
        uint8_t sgid[16], header[VMRI_GRH];
        struct vmri_place place = { .qp = qp, .data = header };
        enum vmri_copied rc;

        source_gid(qp, sgid);
        vmri_grh_make(qp->dev->gids, &wqe->u.ud.av, sgid, wqe->length, header);
        rc = vmri_copy(to, &place, sizeof(header));
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
        .slid = qp->dev->gids ? 0 : env_load(&qp->dev->lid),
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

    vmri_datagram_complete(peer, &qp->rx, &cqe);

    return rc;
}

enum vmri_step vmri_datagram_to(struct vmri_qp *qp, struct vmri_qp *peer)
{
    uint16_t pkey_index;

    if ( vmri_port_admits(qp, peer, &pkey_index) &&
         vmri_datagram_claim(peer, qp->type == VMRI_QPT_SMI,
                             vmri_datagram_qkey(qp), qp->tx.wqe.length, &qp->rx,
                             qp->rx_sge) )
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

/*
 * The LID of the port or the group that an address names; 0: none.  On a RoCE fabric
 * that of any group stands for the one that the GID names.
 */
static uint16_t destination(struct vmri_qp *qp, const struct vmri_av *av)
{
    uint8_t sgid[16];

    if ( likely(!qp->dev->gids) )
        return av->dlid;

    if ( !(av->flags & VMRI_AV_GRH) ||
         !vmri_gid_get(qp->dev, av->sgid_index, sgid) )
        return 0;

    return vmri_gid_is_group(av->dgid) ? VMRI_MLID_MIN
                                       : vmri_gid_route(qp, av->dgid);
}

enum vmri_step vmri_datagram(struct vmri_qp *qp, uint32_t *budget)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    const uint16_t dlid = destination(qp, &wqe->u.ud.av);
    struct vmri_qp *peer = NULL;
    uint32_t bytes = wqe->length;
    struct vmri_dev *dev;
    enum vmri_step rc = VMRI_STEP_DONE;

    if ( !source_there(qp) )
        return VMRI_STEP_FAILED;

    if ( unlikely(!dlid && qp->relay) )
        return vmri_relay(qp, budget);

    /* To a group it goes once, whatever is made of it there. */
    if ( !qp->tx.group_end && !vmri_rate_allows(qp, &bytes) )
        return VMRI_STEP_PARKED;

    if ( dlid >= VMRI_MLID_MIN )
        return vmri_multicast(qp, budget);

    vmri_spend(budget, wqe->length);

    dev = vmri_fabric_peer(qp->dev->fabric, dlid);
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
