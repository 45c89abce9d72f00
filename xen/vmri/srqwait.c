/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: whose peers wait for a receive of a shared queue, and who is to be lent one.
 *
 * The former stand in line in the order in which they came; each posted receive
 * wakes the first.  One that was woken and finds the receive gone, taken by a
 * peer that just came along, is put in front again.  Nobody holds a receive
 * for the one that was woken: its domain may never run again.
 *
 * Those who are to be lent one (lend.c) have no timer by which to look again, so all of
 * them are called when anything is posted.  They are the SRQ's owner's.
 */
#include "internal.h"

#define WAKE_MAX    64          /* peers woken, or sent away, at a stretch */

bool vmri_srq_awaited(const struct vmri_srq *srq)
{
    return !list_empty(&srq->waiters) || !list_empty(&srq->borrowers);
}

/* By dev->park.lock. */
static void unlink(struct vmri_qp *qp)
{
    struct vmri_srq *srq = qp->waits_on;

    list_del_init(&qp->srq_wait);
    if ( !vmri_srq_awaited(srq) )
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
        if ( qp->carry && qp->carry->remote )
            list_add_tail(&qp->srq_wait, &srq->borrowers);
        else if ( qp->was_woken )
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

/* The first in one of the lines goes, with a reference.  By dev->park.lock. */
static struct vmri_qp *first_leaves(struct vmri_srq *srq,
                                    struct list_head *line)
{
    struct vmri_qp *qp;

    while ( (qp = list_first_entry_or_null(line, struct vmri_qp,
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
        qp = first_leaves(srq, &srq->waiters);
        env_unlock(&srq->dev->park.lock);
    }
    if ( qp )
        srq->served++;

    env_unlock(&srq->lock);

    return qp;
}

/* Call the first that is to be lent one, if anything is posted: false: none. */
static bool call_borrower(struct vmri_srq *srq)
{
    struct vmri_qp *qp = NULL;

    env_lock(&srq->lock);
    if ( vmri_srq_posted(srq) )
    {
        env_lock(&srq->dev->park.lock);
        qp = first_leaves(srq, &srq->borrowers);
        env_unlock(&srq->dev->park.lock);
    }
    env_unlock(&srq->lock);

    if ( !qp )
        return false;

    vmri_carry_call(qp);
    vmri_table_put(&srq->dev->qps, qp->qpn);

    return true;
}

int vmri_srq_schedule(struct vmri_dev *dev, uint32_t handle)
{
    struct vmri_srq *srq = vmri_table_get(&dev->srqs, handle);
    struct vmri_qp *qp = NULL;
    unsigned int n;
    bool more;

    if ( !srq )
        return -ENOENT;

    vmri_count(dev, doorbells, 1);

    for ( n = 0; n < WAKE_MAX && call_borrower(srq); n++ )
        ;
    more = n == WAKE_MAX;
    for ( n = 0; n < WAKE_MAX && (qp = next_served(srq)) != NULL; n++ )
    {
        if ( !vmri_wake_peer(qp) )
        {
            /* Nobody waits there any more: the next one's turn. */
            env_lock(&srq->lock);
            srq->served--;
            env_unlock(&srq->lock);
        }
        vmri_table_put(&dev->qps, qp->qpn);
    }

    vmri_srq_put(srq);

    return qp || more ? VMRI_SCHEDULE_MORE : 0;
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
        for ( ; n < WAKE_MAX && !list_empty(&srq->borrowers); n++ )
            unlink(list_first_entry(&srq->borrowers, struct vmri_qp,
                                    srq_wait));
        more = vmri_srq_awaited(srq);
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
