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

/* IBTA 1.4, 8.3; of RoCE v2, IPv6's is the same but for next_header. */
struct grh {
    uint8_t version_class_flow[4];
    uint8_t payload_length[2];
    uint8_t next_header;
    uint8_t hop_limit;
    uint8_t sgid[16];
    uint8_t dgid[16];
};

/* RoCE v2 over IPv4: where a GRH would be, at its end. */
struct ip_header {
    uint8_t nothing[20];
    uint8_t version_length;
    uint8_t tos;
    uint8_t total_length[2];
    uint8_t id[2];
    uint8_t fragment[2];
    uint8_t ttl;
    uint8_t protocol;
    uint8_t checksum[2];
    uint8_t source[4];
    uint8_t destination[4];
};

#define GRH_NEXT_IBA    0x1b
#define NEXT_UDP        0x11

union header {
    struct grh grh;
    struct ip_header ip;
};

static uint16_t checksum(const uint8_t *bytes, unsigned int n)
{
    uint32_t sum = 0;
    unsigned int i;

    for ( i = 0; i < n; i += 2 )
        sum += bytes[i] << 8 | bytes[i + 1];
    while ( sum >> 16 )
        sum = (sum & 0xffff) + (sum >> 16);

    return ~sum;
}

static void make_grh(const struct vmri_av *av, const uint8_t sgid[16],
                     uint8_t next_header, uint32_t length, struct grh *grh)
{
    vmri_put_be(grh->version_class_flow,
                (6U << 28) | (av->traffic_class << 20) |
                (av->flow_label & 0xfffff), 4);
    vmri_put_be(grh->payload_length, length, 2);
    grh->next_header = next_header;
    grh->hop_limit = av->hop_limit;
    memcpy(grh->sgid, sgid, sizeof(grh->sgid));
    memcpy(grh->dgid, av->dgid, sizeof(grh->dgid));
}

static void make_ip(const struct vmri_av *av, const uint8_t sgid[16],
                    uint32_t length, struct ip_header *ip)
{
    const unsigned int nothing = offsetof(struct ip_header, version_length);

    memset(ip, 0, sizeof(*ip));
    ip->version_length = 0x45;
    ip->tos = av->traffic_class;
    vmri_put_be(ip->total_length, sizeof(*ip) - nothing + length, 2);
    ip->fragment[0] = 0x40;             /* not to be fragmented */
    ip->ttl = av->hop_limit;
    ip->protocol = NEXT_UDP;
    memcpy(ip->source, sgid + 12, sizeof(ip->source));
    memcpy(ip->destination, av->dgid + 12, sizeof(ip->destination));
    vmri_put_be(ip->checksum, checksum(&ip->version_length,
                                       sizeof(*ip) - nothing), 2);
}

static void make_header(const struct vmri_qp *qp, const struct vmri_av *av,
                        uint32_t length, union header *header)
{
    const struct vmri_dev *dev = qp->dev;
    uint8_t sgid[16];

    if ( !dev->gids )
    {
        vmri_put_be(sgid, env_load(&dev->port.gid_prefix), 8);
        vmri_put_be(sgid + 8, dev->guid, 8);
        make_grh(av, sgid, GRH_NEXT_IBA, length, &header->grh);
        return;
    }

    vmri_gid_get(dev, av->sgid_index, sgid);
    if ( vmri_gid_is_ipv4(sgid) && vmri_gid_is_ipv4(av->dgid) )
        make_ip(av, sgid, length, &header->ip);
    else
        make_grh(av, sgid, NEXT_UDP, length, &header->grh);
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
        union header header;
        struct vmri_place place = { .qp = qp, .data = (uint8_t *)&header };
        enum vmri_copied rc;

        BUILD_BUG_ON(sizeof(header) != VMRI_GRH ||
                     sizeof(header.ip) != VMRI_GRH);
        make_header(qp, &wqe->u.ud.av, wqe->length, &header);
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
