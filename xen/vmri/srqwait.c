/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: whose peers wait for a receive of a shared queue, or, if these are on other
 * hosts, who wait themselves (lend.c).
 *
 * They stand in line in the order in which they came; each posted receive
 * wakes the first.  One that was woken and finds the receive gone, taken by a
 * peer that just came along, is put in front again.  Nobody holds a receive
 * for the one that was woken: its domain may never run again.
 */
#include "internal.h"

#define WAKE_MAX    64          /* peers woken, or sent away, at a stretch */

/* By dev->park.lock. */
static void unlink(struct vmri_qp *qp)
{
    struct vmri_srq *srq = qp->waits_on;

    list_del_init(&qp->srq_wait);
    if ( list_empty(&srq->waiters) )
        env_store(&srq->wq.hdr->wait, 0);
    env_store_release(&qp->waits_on, NULL);
}

bool vmri_srq_wait(struct vmri_srq *srq, struct vmri_qp *qp)
{
    struct vmri_park *park = &qp->dev->park;
    bool again;

    env_lock(&srq->lock);

    env_lock(&park->lock);
    /* XRC: a message that ended otherwise may have waited elsewhere. */
    if ( qp->waits_on && qp->waits_on != srq )
        unlink(qp);
    if ( !qp->waits_on )
    {
        if ( qp->was_woken )
            list_add(&qp->srq_wait, &srq->waiters);
        else
            list_add_tail(&qp->srq_wait, &srq->waiters);
        env_store(&qp->waits_on, srq);
        env_store(&srq->wq.hdr->wait, 1);
    }
    env_unlock(&park->lock);

    /* Who posts looks at `wait` after its index: here it is the other way. */
    env_mb();
    again = vmri_srq_posted(srq);

    env_unlock(&srq->lock);

    return again;
}

void vmri_srq_leave(struct vmri_qp *qp)
{
    struct vmri_park *park = &qp->dev->park;

    if ( !env_load_acquire(&qp->waits_on) && !env_load(&qp->was_woken) )
        return;

    env_lock(&park->lock);
    if ( qp->waits_on )
        unlink(qp);
    env_store(&qp->was_woken, false);
    env_unlock(&park->lock);
}

/* The first in line goes, with a reference.  By dev->park.lock. */
static struct vmri_qp *first_leaves(struct vmri_srq *srq)
{
    struct vmri_qp *qp;

    while ( (qp = list_first_entry_or_null(&srq->waiters, struct vmri_qp,
                                           srq_wait)) != NULL )
    {
        /* One that is being destroyed wakes nobody. */
        bool there = vmri_table_get(&srq->dev->qps, qp->qpn);

        env_store(&qp->was_woken, true);
        unlink(qp);
        if ( there )
            break;
    }

    return qp;
}

/*
 * Whose peer is to be woken, with a reference, when a receive was posted that
 * has woken nobody yet.
 */
static struct vmri_qp *next_served(struct vmri_srq *srq)
{
    struct vmri_qp *qp = NULL;
    int64_t posted;
    uint32_t due;

    env_lock(&srq->lock);

    posted = vmri_srq_posted(srq);
    if ( posted >= 0 && (int32_t)(srq->served - srq->wq.cons) < 0 )
        srq->served = srq->wq.cons;
    due = srq->wq.cons + posted - srq->served;

    /* Of a dead one all are to learn that it is. */
    if ( posted < 0 || (int32_t)due > 0 )
    {
        env_lock(&srq->dev->park.lock);
        qp = first_leaves(srq);
        env_unlock(&srq->dev->park.lock);
    }
    if ( qp )
        srq->served++;

    env_unlock(&srq->lock);

    return qp;
}

int vmri_srq_schedule(struct vmri_dev *dev, uint32_t handle)
{
    struct vmri_srq *srq = vmri_table_get(&dev->srqs, handle);
    struct vmri_qp *qp = NULL;
    unsigned int n;

    if ( !srq )
        return -ENOENT;

    vmri_count(dev, doorbells, 1);

    for ( n = 0; n < WAKE_MAX && (qp = next_served(srq)) != NULL; n++ )
    {
        if ( !(qp->carry && vmri_lend_wake(qp)) && !vmri_wake_peer(qp) )
        {
            /* Nobody waits there any more: the next one's turn. */
            env_lock(&srq->lock);
            srq->served--;
            env_unlock(&srq->lock);
        }
        vmri_table_put(&dev->qps, qp->qpn);
    }

    vmri_srq_put(srq);

    return qp ? VMRI_SCHEDULE_MORE : 0;
}

/* Their peers look for a receive again in time, and find no SRQ then. */
void vmri_srq_disperse(struct vmri_srq *srq)
{
    struct vmri_park *park = &srq->dev->park;

    bool more;

    do {
        unsigned int n;

        env_lock(&park->lock);
        for ( n = 0; n < WAKE_MAX && !list_empty(&srq->waiters); n++ )
            unlink(list_first_entry(&srq->waiters, struct vmri_qp, srq_wait));
        more = !list_empty(&srq->waiters);
        env_unlock(&park->lock);
    } while ( more );
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
