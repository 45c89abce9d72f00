/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the queue pair that a connected one sends to.
 *
 * Whether it may be reached, and takes requests, is a matter of ports, P_Keys,
 * XSM and the attributes of both.  Each of these has a version, another one
 * after each change: while all are what they were at the last message, so is
 * the answer.
 */
#include "internal.h"

bool vmri_peer_answers(const struct vmri_qp *peer, const struct vmri_qp *qp)
{
    return peer->attr.state >= VMRI_QPS_RTR &&
           peer->attr.state <= VMRI_QPS_SQE && vmri_qp_faces(peer, qp);
}

/* Without resources for them a responder does no READs or atomics. */
static uint32_t responder_rights(const struct vmri_qp_modify *attr)
{
    if ( attr->max_dest_rd_atomic )
        return attr->access_flags;

    return attr->access_flags & ~(VMRI_ACCESS_REMOTE_READ |
                                  VMRI_ACCESS_REMOTE_ATOMIC);
}

/* It takes our request.  Under peer->lock. */
static void meet(struct vmri_qp *qp, struct vmri_qp *peer)
{
    env_fetch_add(&peer->inflight, 1);
    qp->tx.peer_access = responder_rights(&peer->attr);
    qp->tx.peer_rnr_timer = peer->attr.min_rnr_timer;
    if ( peer->attr.state == VMRI_QPS_RTR && !peer->established )
    {
        peer->established = true;
        vmri_event_raise(peer->eq, &peer->source, VMRI_EVENT_COMM_EST);
    }
}

/* Is it there, and does it take requests?  Under peer->lock. */
static bool accepts(struct vmri_qp *qp, struct vmri_qp *peer)
{
    uint16_t pkey_index;

    if ( !vmri_peer_answers(peer, qp) )
        return false;
    if ( vmri_port_admits(qp, peer, &pkey_index) )
        return true;
    qp->tx.muted = true;

    return false;
}

/* The QP at that device, with references to both, locked; or NULL. */
static struct vmri_qp *ask(struct vmri_qp *qp, struct vmri_dev *dev)
{
    struct vmri_qp *peer = NULL;

    if ( unlikely(!vmri_fabric_joins(qp, dev)) )
        qp->tx.forbidden = true;
    else if ( !vmri_port_reaches(qp->dev, dev) )
        qp->tx.muted = true;
    else if ( env_domain_running(dev->domain) )
        peer = vmri_table_get(&dev->qps, qp->attr.dest_qpn);

    if ( peer )
    {
        env_lock(&peer->lock);
        if ( accepts(qp, peer) )
            return peer;
        env_unlock(&peer->lock);
    }
    vmri_peer_release(dev, peer);

    return NULL;
}

/* The same from the beginning; what is found is remembered. */
static struct vmri_qp *find_and_lock(struct vmri_qp *qp)
{
    struct vmri_dev *dev = vmri_fabric_peer(qp->dev->fabric, qp->attr.av.dlid);
    struct vmri_route *route = &qp->route;
    struct vmri_qp *peer;

    *route = (struct vmri_route){ .dev = NULL };
    qp->tx.forbidden = false;
    qp->tx.muted = false;
    if ( !dev )
        return NULL;

    /* What changes behind these two has another version then. */
    route->from_port = env_load_acquire(&qp->dev->port.version);
    route->to_port = env_load_acquire(&dev->port.version);
    peer = ask(qp, dev);
    if ( peer )
    {
        route->version = peer->version;
        route->qp = peer->slot;
        route->dev = dev->lid_slot;
    }

    return peer;
}

struct vmri_qp *vmri_peer_get(struct vmri_qp *qp)
{
    struct vmri_qp *peer = qp->route.dev ? vmri_route_lock(qp) : NULL;

    if ( !peer )
        peer = find_and_lock(qp);
    if ( !peer )
        return NULL;

    meet(qp, peer);
    env_unlock(&peer->lock);

    return peer;
}

void vmri_peer_put(struct vmri_qp *peer)
{
    env_fetch_sub(&peer->inflight, 1);
    vmri_peer_release(peer->dev, peer);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
