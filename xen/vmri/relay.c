/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: datagrams between hosts, on RoCE fabrics: the connection manager's and UD.
 *
 * No twin carries them.  A NIC's packet tells neither which device it is from nor of
 * which fabric, so whoever may send to a host could reach all of its guests.  They
 * are few and small, so they go as messages: VMRI copies one into the uplink's ring,
 * with the addresses of both sides; the uplink of the other host has its VMRI deliver
 * it, which looks where it came from, and at rules, P_Key and Q_Key as for any other.
 *
 * When the ring is full the sender waits for its turn, as those do that have twins.
 * On its way a datagram may be lost, as any.
 */
#include "internal.h"

/* ---- sending; by the owner ---- */

/* Is it the uplink that the device was given, in the life that it had? */
static bool is_open(const struct vmri_uplink *u, const struct vmri_dev *dev)
{
    return u->life == dev->uplink_life;
}

int vmri_relay_make(struct vmri_qp *qp)
{
    struct vmri_dev *dev = qp->dev;

    if ( !dev->uplink || !dev->gids ||
         (qp->type != VMRI_QPT_UD && qp->type != VMRI_QPT_GSI) )
        return 0;

    qp->relay = vmri_alloc(dev, sizeof(*qp->relay));
    if ( !qp->relay )
        return -ENOMEM;
    vmri_waiter_init(&qp->relay->waiter, qp);

    return 0;
}

void vmri_relay_end(struct vmri_qp *qp)
{
    struct vmri_uplink *u = qp->dev->uplink;
    struct vmri_waiter *w = &qp->relay->waiter;

    env_lock(&u->lock);
    /* Of one that has been closed there are no turns, but it may still wait. */
    if ( !is_open(u, qp->dev) )
        w->share = 0;
    vmri_uplink_yield(u, w);
    env_unlock(&u->lock);
}

/* Fill in all addresses, and say whether the datagram may go there. */
static bool address(struct vmri_qp *qp)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    const struct vmri_av *av = &wqe->u.ud.av;
    struct vmri_datagram *h = &qp->relay->out.header;
    const struct vmri_dev *dev = qp->dev;
    const bool imm = wqe->opcode == VMRI_WR_SEND_WITH_IMM;

    *h = (struct vmri_datagram){
        .fabric = dev->fabric->id,
        .src_qpn = qp->qpn,
        .dest_qpn = wqe->u.ud.remote_qpn,
        .qkey = vmri_datagram_qkey(qp),
        .imm = imm ? wqe->imm : 0,
        .flow_label = av->flow_label & 0xfffff,
        .pkey = vmri_port_pkey(qp),
        .traffic_class = av->traffic_class,
        .hop_limit = av->hop_limit,
        .sl = av->sl & 0xf,
        .flags = (imm ? VMRI_DATAGRAM_IMM : 0) |
                 (wqe->flags & VMRI_SEND_SOLICITED ? VMRI_DATAGRAM_SOLICITED
                                                   : 0),
    };
    memcpy(h->dgid, av->dgid, sizeof(h->dgid));

    return !(h->dest_qpn >> 24) && (av->flags & VMRI_AV_GRH) &&
           vmri_gid_get(dev, av->sgid_index, h->sgid) &&
           vmri_route_find(dev->fabric, h->dgid, h->host_gid) &&
           vmri_rules_allow_remote(dev, h->dgid) &&
           env_load(&dev->port.state) == VMRI_PORT_ACTIVE;
}

static bool copy(struct vmri_qp *qp)
{
    struct vmri_cursor sgl = qp->tx.sgl;
    struct vmri_place from = {
        .qp = qp,
        .data = qp->tx.data,
        .sgl = &sgl,
        .extent = qp->tx.wqe.length,
    };

    if ( vmri_copy_here(qp->relay->out.data, &from, qp->tx.wqe.length) )
        return true;

    vmri_fail(qp, VMRI_WC_LOC_PROT_ERR, from.vendor_err);

    return false;
}

/*
 * Put it into the ring.  False: it waits for its turn.  What is posted after the last
 * one gets another.
 */
static bool put(struct vmri_qp *qp, bool *lost)
{
    const struct vmri_dev *dev = qp->dev;
    struct vmri_uplink *u = dev->uplink;
    struct vmri_relay *r = qp->relay;
    struct vmri_uplink_msg msg = {
        .type = VMRI_UPLINK_DATAGRAM,
        .domid = env_domid(dev->domain),
        .dev_id = dev->id,
        .u.datagram.length = qp->tx.wqe.length,
    };
    bool done = true;

    env_lock(&u->lock);
    *lost = !is_open(u, dev);
    if ( !*lost )
        done = vmri_uplink_put_in_turn(u, &r->waiter, &msg, &r->out,
                                       sizeof(r->out.header) +
                                       msg.u.datagram.length);
    if ( !*lost && done && vmri_wq_posted(&qp->sq) == 1 )
        vmri_uplink_yield(u, &r->waiter);
    env_unlock(&u->lock);

    return done;
}

static enum vmri_step end(struct vmri_qp *qp, enum vmri_step rc, bool lost)
{
    qp->relay->paid = 0;
    if ( lost )
        vmri_count(qp->dev, ud_drops, 1);

    return rc;
}

enum vmri_step vmri_relay(struct vmri_qp *qp, uint32_t *budget)
{
    bool lost;

    if ( !address(qp) )
        return end(qp, VMRI_STEP_DONE, true);

    if ( !vmri_rate_pays(qp, &qp->relay->paid) )
        return VMRI_STEP_PARKED;

    vmri_spend(budget, qp->tx.wqe.length);
    if ( !copy(qp) )
        return end(qp, VMRI_STEP_FAILED, false);

    return put(qp, &lost) ? end(qp, VMRI_STEP_DONE, lost) : VMRI_STEP_PARKED;
}

/* ---- receiving: dom0's command ---- */

#define CHUNK   256U            /* bytes that are copied in at a time: a MAD */

static bool valid(const struct vmri_ctl_uplink_deliver *arg)
{
    const struct vmri_datagram *h = &arg->datagram;

    return arg->length <= VMRI_DATAGRAM_MAX && !(h->src_qpn >> 24) &&
           !(h->dest_qpn >> 24) && !(h->flow_label >> 20) && h->sl < 16 &&
           !(h->flags & ~VMRI_DATAGRAM_FLAGS) && !h->reserved &&
           !vmri_gid_is_group(h->sgid);
}

/* Is the sender on the host that the datagram came from? */
static bool is_from(struct vmri_fabric *f, const struct vmri_datagram *h)
{
    uint8_t host_gid[16];

    return vmri_route_find(f, h->sgid, host_gid) &&
           !memcmp(host_gid, h->host_gid, sizeof(host_gid));
}

/*
 * The device that it is for, with a reference, or NULL; of a fabric that there is
 * while the device refers to it.
 */
static int find(const struct vmri_ctl_uplink_deliver *arg,
                struct vmri_dev **dev)
{
    const struct vmri_datagram *h = &arg->datagram;
    struct vmri_uplink *u;
    struct vmri_fabric *f;

    *dev = NULL;

    env_lock(&vmri_control_lock);
    u = vmri_uplink_own(arg->uplink, env_current());
    f = u ? vmri_fabric_created(h->fabric) : NULL;
    if ( f && f->gids && is_from(f, h) )
        *dev = vmri_fabric_peer(f, vmri_gid_find(f, h->dgid));
    if ( *dev && !is_open(u, *dev) )
    {
        vmri_fabric_peer_put(*dev);
        *dev = NULL;
    }
    env_unlock(&vmri_control_lock);

    return u ? 0 : -ENOENT;
}

/* Does a device take what comes from there? */
static bool admits(const struct vmri_dev *dev, const struct vmri_datagram *h)
{
    return env_domain_running(dev->domain) &&
           env_load(&dev->port.state) == VMRI_PORT_ACTIVE &&
           vmri_rules_allow_remote(dev, h->sgid);
}

/* Header and data into a receive that has been claimed.  0 or -EFAULT. */
static int fill(const struct vmri_ctl_uplink_deliver *arg,
                struct vmri_place *to, enum vmri_copied *copied)
{
    const struct vmri_datagram *h = &arg->datagram;
    struct vmri_av av = {
        .flow_label = h->flow_label,
        .traffic_class = h->traffic_class,
        .hop_limit = h->hop_limit,
    };
    struct vmri_place from = { .qp = to->qp };
    uint8_t chunk[CHUNK];
    uint32_t done, here;

    memcpy(av.dgid, h->dgid, sizeof(av.dgid));
    vmri_grh_make(true, &av, h->sgid, arg->length, chunk);
    from.data = chunk;
    *copied = vmri_copy(to, &from, VMRI_GRH);

    for ( done = 0; *copied == VMRI_COPIED && done < arg->length; done += here )
    {
        here = min_t(uint32_t, arg->length - done, sizeof(chunk));
        if ( env_copy_from_guest(chunk, arg->data + done, here) )
            return -EFAULT;
        from.data = chunk;
        *copied = vmri_copy(to, &from, here);
    }

    return 0;
}

static int give(struct vmri_qp *peer, uint16_t pkey_index, struct vmri_rx *rx,
                const struct vmri_ctl_uplink_deliver *arg)
{
    const struct vmri_datagram *h = &arg->datagram;
    struct vmri_place to = {
        .qp = peer,
        .write = true,
        .sgl = &rx->sgl,
        .extent = VMRI_GRH + arg->length,
    };
    struct vmri_cqe cqe = {
        .opcode = VMRI_WC_OP_RECV,
        .flags = (h->flags & VMRI_DATAGRAM_IMM ? VMRI_WC_WITH_IMM : 0) |
                 (h->flags & VMRI_DATAGRAM_SOLICITED ? VMRI_WC_SOLICITED : 0) |
                 VMRI_WC_GRH,
        .imm = h->flags & VMRI_DATAGRAM_IMM ? h->imm : 0,
        .src_qp = h->src_qpn,
        .sl = h->sl,
        .pkey_index = pkey_index,
    };
    enum vmri_copied copied;
    int ret = fill(arg, &to, &copied);

    /* Should dom0's buffer not be there, it ends where that ended. */
    cqe.byte_len = to.moved;
    if ( copied != VMRI_COPIED )
    {
        cqe.status = VMRI_WC_LOC_PROT_ERR;
        cqe.vendor_err = to.vendor_err;
    }
    vmri_datagram_complete(peer, rx, &cqe);

    return ret ?: !cqe.status;
}

static int deliver(struct vmri_qp *peer,
                   const struct vmri_ctl_uplink_deliver *arg)
{
    const struct vmri_datagram *h = &arg->datagram;
    struct vmri_sge sge[VMRI_MAX_SGE];
    struct vmri_rx rx;
    uint16_t pkey_index;

    if ( !vmri_port_takes(h->pkey, peer, &pkey_index) ||
         !vmri_datagram_claim(peer, false, h->qkey, arg->length, &rx, sge) )
    {
        vmri_count(peer->dev, ud_drops, 1);
        return 0;
    }

    return give(peer, pkey_index, &rx, arg);
}

int vmri_relay_deliver(const struct vmri_ctl_uplink_deliver *arg)
{
    struct vmri_dev *dev;
    struct vmri_qp *peer = NULL;
    int ret;

    if ( !valid(arg) )
        return -EINVAL;

    ret = find(arg, &dev);
    if ( !dev )
        return ret;

    if ( admits(dev, &arg->datagram) )
        peer = vmri_table_get(&dev->qps, arg->datagram.dest_qpn);
    if ( peer )
    {
        ret = deliver(peer, arg);
        vmri_table_put(&dev->qps, peer->qpn);
    }
    else
        vmri_count(dev, ud_drops, 1);
    vmri_fabric_peer_put(dev);

    return ret;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
