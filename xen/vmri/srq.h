/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: shared receive queues.  Included by internal.h, where the locking is
 * described.
 */
#ifndef VMRI_SRQ_H
#define VMRI_SRQ_H

struct vmri_srq {
    uint32_t handle;
    uint32_t users;             /* by dev->lock: QPs, but not XRC targets */
    struct vmri_dev *dev;       /* constant, as all up to lock */
    struct vmri_eq *eq;
    struct vmri_pd *xrcd;       /* serves XRC targets of this one; or NULL */
    struct vmri_cq *cq;         /* XRC: where its receives complete */
    struct vmri_source source;

    env_lock_t lock;            /* LEVEL_SRQ */
    /* By lock, as all below; rings.pd and rings.kernel are constant. */
    struct vmri_rings rings;
    struct vmri_wq wq;          /* wq.hdr by dev->park.lock, too */
    bool dead;                  /* an index was out of range; stays */
    uint32_t limit;             /* 0: not armed */
    uint32_t served;            /* requests before this one woke somebody */
    struct list_head waiters;   /* by dev->park.lock, as wq.hdr->wait */
    struct list_head borrowers; /* the same */
    uint32_t lent;              /* atomic: to queue pairs whose peer is elsewhere */
};

/* srq.c */
int vmri_srq_create(struct vmri_dev *dev, struct vmri_srq_create *arg,
                    struct vmri_call *call);
int cf_check vmri_srq_destroy(struct vmri_dev *dev, uint32_t handle,
                              struct vmri_call *call);
int vmri_srq_modify(struct vmri_dev *dev, const struct vmri_srq_modify *arg,
                    struct vmri_call *call);
int vmri_srq_query(struct vmri_dev *dev, struct vmri_srq_query *arg);
/*
 * vmri_recv_take of an SRQ, for qp, whose lock is held: -EINVAL when the SRQ
 * is dead.
 */
int vmri_srq_take(struct vmri_srq *srq, struct vmri_qp *qp, uint64_t want,
                  struct vmri_rx *rx, struct vmri_sge *copy);
/* Posted requests, or -EINVAL: it is dead, now or before.  By srq->lock. */
int64_t vmri_srq_posted(struct vmri_srq *srq);
/*
 * The SRQ that a request names, with a reference, when the XRC target is of
 * its domain; else NULL.
 */
struct vmri_srq *vmri_srq_get(const struct vmri_qp *target, uint32_t srqn);
void vmri_srq_put(struct vmri_srq *srq);

/*
 * srqwait.c: queue pairs whose peer waits for a receive of their SRQ, or that are to be
 * lent one.
 *
 * Have qp wait in line, under qp->lock.  True: look again, there may be a
 * receive now.
 */
bool vmri_srq_wait(struct vmri_srq *srq, struct vmri_qp *qp);
/* It does not wait any more: it got a receive, or wants none. */
void vmri_srq_leave(struct vmri_qp *qp);
/* Does anybody wait?  By dev->park.lock. */
bool vmri_srq_awaited(const struct vmri_srq *srq);
/* The same for all that wait for a dying SRQ. */
void vmri_srq_disperse(struct vmri_srq *srq);
/* VMRI_OP_srq_schedule.  0, VMRI_SCHEDULE_MORE or -ENOENT. */
int vmri_srq_schedule(struct vmri_dev *dev, uint32_t handle);

#endif /* VMRI_SRQ_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
