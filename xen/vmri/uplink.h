/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: uplinks, twins, and what is carried through them.  Included by internal.h,
 * where the locking is described.
 */
#ifndef VMRI_UPLINK_INTERNAL_H
#define VMRI_UPLINK_INTERNAL_H

struct vmri_carry;
struct vmri_qp;

/* ---- uplinks (uplink.c) ---- */

enum vmri_uplink_state {
    VMRI_UPLINK_FREE,
    VMRI_UPLINK_OPENING,
    VMRI_UPLINK_OPEN,
    VMRI_UPLINK_CLOSING,
};

/*
 * There is one for each number, for ever: who has a pointer to one asks whether
 * it still has the life that it knows.
 */
struct vmri_uplink {
    /* By vmri_control_lock, but to FREE and OPENING while busy; read without. */
    enum vmri_uplink_state state;
    struct domain *domain;      /* the same: that opened it */
    uint32_t busy;              /* atomic: a call gives results, or closes it */

    env_lock_t lock;            /* LEVEL_UPLINK */
    uint64_t life;              /* by lock, as all below; no other's; 0: closed */
    struct vmri_domain *owner;  /* constant while it is open, as caps */
    struct vmri_uplink_caps caps;
    struct vmri_region region;
    uint32_t port;
    uint32_t log2_units;
    uint32_t prod;
    uint32_t pds;               /* numbers of PDs that were given out */
    uint32_t orphans;           /* twins whose device has gone */
    struct vmri_table twins;    /* handle -> struct vmri_double */
    struct list_head todo;      /* twins that have something to say */
    struct list_head waiting;   /* struct vmri_waiter: that have to hand out */
    uint32_t nr_waiting;
    uint32_t round;             /* of turns that were given */
    uint32_t reserved;          /* units, of this round's turns */
};

/* A queue pair's turns with the ring. */
struct vmri_waiter {
    struct vmri_qp *qp;         /* constant */
    uint32_t need;              /* by u->lock, as all below: units, if it waits */
    uint32_t round;             /* in which it got its turn */
    uint32_t share;             /* units left of that */
    struct list_head waiting;   /* in uplink->waiting */
};

/* Once, at boot. */
void vmri_uplinks_init(void);
/* dom0's commands, as uplink.h of the ABI has them. */
int vmri_uplink_open(struct vmri_ctl_uplink_open *arg);
/* Or go on with that.  -ERESTART: call again with `again`. */
int vmri_uplink_close(const struct vmri_ctl_uplink *arg, bool again);
int vmri_uplink_done(const struct vmri_ctl_uplink_done *arg);
/* Close those of a domain that ends: 0 or -ERESTART. */
int vmri_uplinks_end(struct domain *d);
/* The one with a number, if it is open.  Under vmri_control_lock. */
struct vmri_uplink *vmri_uplink_find(uint32_t number);
/* That of a device's; 0: it has none, or that has closed. */
uint32_t vmri_uplink_number(const struct vmri_dev *dev);
/* The same if it is that domain's. */
struct vmri_uplink *vmri_uplink_own(uint32_t number, const struct domain *d);
void vmri_waiter_init(struct vmri_waiter *w, struct vmri_qp *qp);

/* ---- its ring (turn.c); all by u->lock ---- */

/*
 * Put a message into the ring, `bytes` of `body` in the units behind it.  False:
 * there is no room.
 */
bool vmri_uplink_put(struct vmri_uplink *u, struct vmri_uplink_msg *msg,
                     const void *body, uint32_t bytes);
/*
 * The same for a queue pair, when it is its turn.  Else it waits, and is called when
 * it gets one; until it has nothing more to put, or is not to.
 */
bool vmri_uplink_put_in_turn(struct vmri_uplink *u, struct vmri_waiter *w,
                             struct vmri_uplink_msg *msg, const void *body,
                             uint32_t bytes);
void vmri_uplink_yield(struct vmri_uplink *u, struct vmri_waiter *w);
/*
 * Say what was left unsaid, and give turns to those who wait, as far as there is
 * room; have the uplink call when that is not all.  With `round` this is such a call,
 * else a round that is under way is not ended.
 */
void vmri_uplink_pump(struct vmri_uplink *u, bool round);

/* ---- twins (twin.c) ---- */

/* A twin, as the ABI calls it, which has the name for its command. */
struct vmri_double {
    uint32_t handle;            /* constant, as all up to made */
    uint16_t domid;
    uint32_t dev_id;
    uint32_t pd;                /* the uplink's number of it */
    struct vmri_twin twin;      /* what it was made for */

    bool made;                  /* by u->lock, as all below */
    bool failed;                /* to be made */
    bool used;                  /* it has or had an object */
    bool ending;                /* it is to be destroyed */
    bool told;                  /* the uplink knows that */
    bool gone;                  /* there, but an event waits to say so */
    uint8_t state;              /* QPs: VMRI_QPS_* asked for last */
    uint8_t before;             /* QPs: and before that */
    uint8_t todo;               /* TODO_* (twin.c) */
    uint32_t number;            /* QPN or key */
    struct vmri_dev *dev;       /* NULL: an orphan */
    bool object;                /* MRs: the object is there */
    struct vmri_qp *qp;         /* QPs: the object; NULL: none */
    struct vmri_qp_modify move; /* QPs: asked for last */
    struct list_head list;      /* in dev->twins */
    struct list_head waiting;   /* in u->todo */
    struct vmri_command events;
};

int vmri_twin_create(struct vmri_dev *dev, struct vmri_twin *arg);
int vmri_twin_destroy(struct vmri_dev *dev, uint32_t handle);
/*
 * claim.c.  The twin that a new object names becomes its own: 0, -ENOENT, -EBUSY or -EINVAL.
 * And has lost it again.
 */
int vmri_twin_claim_mr(struct vmri_dev *dev, const struct vmri_mr_register *arg,
                       const struct vmri_pd *pd);
void vmri_twin_leave_mr(struct vmri_dev *dev, uint32_t handle);
int vmri_twin_claim_qp(struct vmri_qp *qp, const struct vmri_qp_create *arg);
void vmri_twin_leave_qp(struct vmri_qp *qp);
/* For vmri_dev_close: all twins become orphans.  0 or -ERESTART. */
int vmri_twins_close(struct vmri_dev *dev);

/* By u->lock. */
/* What a handle names; NULL: nothing. */
struct vmri_double *vmri_twin_find(struct vmri_uplink *u, uint32_t handle);
/* The same of a device that is not to go, if it is that one's. */
struct vmri_double *vmri_twin_of_dev(struct vmri_dev *dev, uint32_t handle);
/* That of a QP which has a carry, or NULL. */
struct vmri_double *vmri_twin_of(const struct vmri_qp *qp);
/* Say what there is to say: false if there is no room for all of it. */
bool vmri_twin_say(struct vmri_uplink *u, struct vmri_double *t);
/* Ask for a move; and for the error state, unless it is in none to leave. */
void vmri_twin_move(struct vmri_uplink *u, struct vmri_double *t,
                    const struct vmri_qp_modify *to);
void vmri_twin_stop(struct vmri_uplink *u, struct vmri_double *t);
/* Results: made, gone, moved. */
void vmri_twin_result(struct vmri_uplink *u, struct vmri_double *t,
                      const struct vmri_uplink_result *r);
/* Tell the device how a command ended. */
void vmri_twin_tell(struct vmri_double *t, unsigned int command, uint32_t id,
                    int64_t data);
/*
 * The uplink closes: forget one.  *qp: its queue pair, which fails, with references
 * to it and its device; or NULL.
 */
void vmri_twin_forget(struct vmri_uplink *u, struct vmri_double *t,
                      struct vmri_qp **qp);

/* ---- queue pairs that lead to other hosts (settle.c, carry.c) ---- */

enum vmri_settling {
    VMRI_SETTLED_NONE,
    VMRI_SETTLING,              /* the twin is on its way */
    VMRI_SETTLED,               /* it is there, the command is to come again */
};

struct vmri_carry {
    uint32_t twin;              /* constant, as all up to asked: its handle */
    uint32_t max_sends;
    uint32_t max_recvs;

    struct vmri_qp_modify asked;/* by uplink->lock, as all up to remote */
    uint8_t host_gid[16];       /* of the peer's host */
    enum vmri_settling settling;
    struct vmri_waiter waiter;

    bool remote;                /* by qp->lock: the peer is on another host */
    uint16_t dlid;              /* by qp->lock: that attr.av.dlid was */
    /* Atomic: what was handed out and is not back.  More by uplink->lock. */
    uint32_t sends;
    uint32_t recvs;
    uint32_t wanted;            /* atomic: the owner waits for some to come back */
    /* Of shared receives: the owner is to be called when so few are away. */
    uint32_t low;
    uint32_t hungry;            /* atomic */
    uint32_t window;            /* that may be away; by who gives results */
    uint32_t paid;              /* by the owner: bytes that its rates let go */
};

/*
 * A modification that the twin has to follow: 0: it has, or does not have to; or
 * what the command returns.  host_gid: of a peer elsewhere, or NULL.  By the owner.
 */
int vmri_carry_settle(struct vmri_qp *qp, const struct vmri_qp_modify *arg,
                      const uint8_t *host_gid);
/* It has been made, under qp->lock. */
void vmri_carry_turn(struct vmri_qp *qp, bool remote);
/* The QP is in the error state, or has no business there: the twin is to be, too. */
void vmri_carry_error(struct vmri_qp *qp);
/* By the owner: hand out what is posted, in RTR, RTS and SQD; and receives alone. */
enum vmri_step vmri_carry(struct vmri_qp *qp, uint32_t *budget);
enum vmri_step vmri_carry_receives(struct vmri_qp *qp, uint32_t *budget);
/* By the owner: is all back?  Else it will be called when it is. */
bool vmri_carry_home(struct vmri_qp *qp);
/* Results: of a QP that the caller refers to, no lock held. */
void vmri_carry_result(struct vmri_qp *qp, const struct vmri_uplink_result *r);
/*
 * Have the owner's driver call, unless the device is being detached.  By
 * uplink->lock, or referring to the queue pair.
 */
void vmri_carry_call(struct vmri_qp *qp);
/* By uplink->lock: nothing comes back any more. */
void vmri_carry_lost(struct vmri_qp *qp);
/* The same, if it waits for something to come back. */
void vmri_carry_call_waiting(struct vmri_qp *qp);
/*
 * Are less than `limit` away?  Else the owner's driver is called when some have come
 * back.
 */
bool vmri_carry_below(struct vmri_carry *c, const uint32_t *away,
                      uint32_t limit);
/*
 * By the owner: hand out a message, which then is away.  False: it waits for room, or
 * the queue pair will be in another state soon.
 */
bool vmri_carry_hand_out(struct vmri_qp *qp, struct vmri_uplink_msg *msg,
                         const void *body, uint32_t bytes, uint32_t *away);
/*
 * Keep of `num` entries those that hold `want` bytes, and look whether each may be
 * named and is known to the NIC.  How many they are, and *verr.
 */
uint32_t vmri_carry_entries(const struct vmri_qp *qp, struct vmri_sge *sge,
                            uint32_t num, uint64_t want, uint32_t access,
                            uint16_t *verr);

/* ---- receives of shared queues (lend.c) ---- */

/* By the owner: lend the twin what it may have. */
enum vmri_step vmri_lend(struct vmri_qp *qp, uint32_t *budget);
/* One that was lent has come back, filled or not.  By the call that gives results. */
void vmri_lend_returned(struct vmri_qp *qp, bool filled);
/* No receive that is away comes back any more, lent or not. */
void vmri_lend_lost(struct vmri_qp *qp);

/* ---- datagrams to other hosts (relay.c) ---- */

/* Of a queue pair for datagrams of a device that has an uplink, on a RoCE fabric. */
struct vmri_relay {
    struct vmri_waiter waiter;
    uint32_t paid;              /* by the owner: bytes that its rates let go */
    struct {                    /* by the owner: a message's body */
        struct vmri_datagram header;
        uint8_t data[VMRI_DATAGRAM_MAX];
    } out;
};

/* For a queue pair that has none yet: 0 or -ENOMEM.  And before it goes. */
int vmri_relay_make(struct vmri_qp *qp);
void vmri_relay_end(struct vmri_qp *qp);
/* One step of the request in qp->tx, whose GID nobody has on this host. */
enum vmri_step vmri_relay(struct vmri_qp *qp, uint32_t *budget);
/* dom0's command, as uplink.h of the ABI has it. */
int vmri_relay_deliver(const struct vmri_ctl_uplink_deliver *arg);

#endif /* VMRI_UPLINK_INTERNAL_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
