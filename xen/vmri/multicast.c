/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: one datagram to all that are attached to a group, one a step.
 *
 * How many that are is not the sender's doing: so each costs budget, and the
 * send queue remembers how far it came.  Attachments are served in the order
 * of their numbers, up to the last one that there was when the request began:
 * one that stays gets exactly one copy, and those that come and go meanwhile
 * keep nobody busy for ever.
 */
#include "internal.h"

/* What each QP costs beside the bytes. */
#define DELIVERY_COST   1024U

/* The attachment's QP with references, or NULL when nothing reaches it. */
static struct vmri_qp *hold(const struct vmri_dev *from,
                            const struct vmri_attachment *a)
{
    struct vmri_dev *dev = a->qp->dev;
    struct vmri_qp *peer = NULL;

    if ( !vmri_fabric_hold(from->fabric, dev) )
        return NULL;

    if ( env_domain_running(dev->domain) && vmri_port_reaches(from, dev) )
        peer = vmri_table_get(&dev->qps, a->qp->qpn);
    if ( !peer )
        vmri_fabric_peer_put(dev);

    return peer;
}

static void release(struct vmri_qp *peer)
{
    struct vmri_dev *dev = peer->dev;

    vmri_table_put(&dev->qps, peer->qpn);
    vmri_fabric_peer_put(dev);
}

/*
 * Go on to the next attachment: false behind the last one.  *peer is its QP
 * with references, or NULL when it gets none.
 */
static bool next_peer(struct vmri_qp *qp, struct vmri_group *g,
                      struct vmri_qp **peer)
{
    struct vmri_tx *tx = &qp->tx;
    const struct vmri_attachment *a;

    *peer = NULL;

    env_lock(&g->lock);
    if ( !tx->group_end )
        tx->group_end = g->next;
    a = vmri_mcgtree_from(g->root, tx->group_next);
    if ( a && a->number >= tx->group_end )
        a = NULL;
    if ( a )
    {
        tx->group_next = a->number + 1;
        if ( !a->qp->block_loopback || a->qp->dev != qp->dev )
            *peer = hold(qp->dev, a);
    }
    env_unlock(&g->lock);

    return a != NULL;
}

static bool names_group(const struct vmri_qp *qp)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;

    return qp->type == VMRI_QPT_UD &&
           (wqe->u.ud.av.flags & VMRI_AV_GRH) &&
           wqe->u.ud.remote_qpn == VMRI_QPN_MULTICAST;
}

enum vmri_step vmri_multicast(struct vmri_qp *qp, uint32_t *budget)
{
    const uint32_t cost = DELIVERY_COST + qp->tx.wqe.length;
    struct vmri_fabric *f = qp->dev->fabric;
    struct vmri_group *g = NULL;
    enum vmri_step rc = VMRI_STEP_DONE;
    struct vmri_qp *peer;

    if ( names_group(qp) &&
         vmri_rules_allow_group(qp->dev, qp->tx.wqe.u.ud.av.dgid,
                                VMRI_RULE_EGRESS) )
        g = vmri_group_get(f, &qp->tx.wqe.u.ud.av);
    if ( !g )
    {
        /* One that all have left in the middle of it is no loss. */
        if ( !qp->tx.group_end )
            vmri_count(qp->dev, ud_drops, 1);
        return VMRI_STEP_DONE;
    }

    if ( next_peer(qp, g, &peer) )
    {
        if ( peer )
        {
            if ( vmri_fabric_joins(qp, peer->dev) &&
                 vmri_rules_allow_group(peer->dev, g->attr.mgid,
                                        VMRI_RULE_INGRESS) )
                rc = vmri_datagram_to(qp, peer);
            release(peer);
        }
        if ( rc == VMRI_STEP_DONE )
            rc = VMRI_STEP_MORE;
        vmri_spend(budget, cost);
    }

    vmri_group_put(f, g);

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
