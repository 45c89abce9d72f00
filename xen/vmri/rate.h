/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: how fast a device may send.  Included by internal.h, where the locking
 * is described.
 */
#ifndef VMRI_RATE_H
#define VMRI_RATE_H

struct domain;
struct vmri_dev;
struct vmri_qp;

#define VMRI_SLS            16          /* service levels */
#define VMRI_RATE_BUCKETS   (VMRI_SLS + 1)

/*
 * Tokens and turns are bytes times 10^9, so that a nanosecond brings `rate` of
 * either, exactly.  Below 0 turns are given out that have not come yet.
 */
struct vmri_bucket {
    uint64_t rate;              /* bytes a second; 0: no limit */
    uint64_t burst;             /* bytes */
    uint64_t last;              /* ns: when both were brought up to date */
    int64_t tokens;
    int64_t turns;
};

struct vmri_rates {
    env_lock_t lock;            /* LEVEL_RATE */
    uint32_t epoch;             /* by lock, as all below: changes so far */
    struct vmri_bucket bucket[VMRI_RATE_BUCKETS];   /* SLs, then the device's */
};

/* A queue pair's place in the order; by the owner of its send queue. */
struct vmri_turn {
    uint32_t credit;            /* bytes whose turn was taken and not used */
    uint32_t epoch;             /* of the rates that they are of */
    uint8_t sl;                 /* and the service level */
    uint64_t at;                /* ns: when the turn comes */
};

void vmri_rate_init(struct vmri_rates *rates);
/*
 * For a device that is `limited`: how many of `want` bytes, which are not 0, the
 * request in qp->tx may move now: all of them if they are no more than a packet's.
 * 0: the queue is parked until it may.
 */
uint32_t vmri_rate_take(struct vmri_qp *qp, uint32_t want);
/*
 * May the whole of the request in qp->tx go, which leaves in one piece?  *paid are
 * the bytes that it has been allowed so far.  False: the queue is parked.
 */
bool vmri_rate_pays(struct vmri_qp *qp, uint32_t *paid);
/* The queue ends its work, or itself: others may have the rest of its turn. */
void vmri_rate_yield(struct vmri_qp *qp);
/* Set, or only tell, one of the device's rates, as control.h has it. */
int vmri_rate_control(struct domain *d, struct vmri_ctl_rate *arg);

#endif /* VMRI_RATE_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
