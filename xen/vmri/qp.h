/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: queue pairs, and what the parts of their engine want of each other.
 * Included by internal.h, where the locking is described.
 */
#ifndef VMRI_QP_H
#define VMRI_QP_H

/* One work queue as the hypervisor sees it. */
struct vmri_wq {
    struct vmri_wq_hdr *hdr;    /* in the region; NULL: no such queue */
    uint32_t offset;            /* of entry 0 in the region */
    uint8_t log2_entries;
    uint8_t log2_stride;
    uint8_t max_sge;
    uint32_t cons;              /* ours: requests before it were taken */
    uint32_t done;              /* receives: how many of them have completed */
};

/* The memory of a queue's requests, and what their entries may name. */
struct vmri_rings {
    struct vmri_region region;
    struct vmri_pd *pd;         /* local keys must be of this one */
    bool kernel;                /* privileged keys are honoured */
    uint8_t ind_log2_entries;   /* of the indirect list; 0: none */
    uint32_t ind_offset;        /* of its entry 0 in the region */
};

/*
 * Scatter/gather entries of a request, walked byte by byte.  An entry is read
 * from the guest's memory once, when the walk comes to it.  Until the request
 * completes its slot is not given back, so an honest guest does not change it.
 */
struct vmri_cursor {
    const struct vmri_region *region;
    const struct vmri_pd *pd;   /* as the rings have them */
    bool kernel;
    const struct vmri_sge *copy;/* private entries; NULL: in the region */
    uint32_t offset;            /* of entry 0 in the region */
    uint32_t start;             /* index of the first */
    uint32_t mask;              /* entries wrap around by this */
    uint32_t next;              /* entry to be taken, from 0 */
    uint32_t num;               /* entries */
    uint32_t used;              /* bytes of `cur` already used */
    struct vmri_sge cur;
};

#define VMRI_UNLIMITED  0xff    /* retries */

/* Where the payload of a request goes. */
enum vmri_moves {
    VMRI_MOVES_NONE,
    VMRI_MOVES_OUT,             /* to the responder */
    VMRI_MOVES_BACK,            /* to the requester */
};

/* The request that a send queue works on; by the queue's owner. */
struct vmri_tx {
    bool active;
    bool claimed;               /* the peer's receive is ours */
    bool forbidden;             /* XSM keeps us from the peer */
    bool muted;                 /* a port or a P_Key does: nobody will wake us */
    uint8_t peer_rnr_timer;     /* min_rnr_timer of the peer, this step */
    uint8_t retry;              /* time-outs left */
    uint8_t rnr;                /* RNR retries left, or VMRI_UNLIMITED */
    uint8_t completion;         /* VMRI_WC_OP_* */
    uint8_t moves;              /* VMRI_MOVES_*, of one without error */
    uint8_t status;             /* VMRI_WC_*: how it failed */
    uint16_t vendor_err;        /* VMRI_VERR_*: why */
    uint32_t peer_access;       /* VMRI_ACCESS_* of the peer, this step */
    struct vmri_srq *srq;       /* the peer's receives come from, this step */
    uint32_t right;             /* VMRI_ACCESS_* that the request takes */
    uint32_t done;              /* bytes of wqe.length */
    uint64_t peer_life;         /* the peer's that has them, when there are */
    uint64_t silent_until;      /* the time-out that runs, in ns; 0: none */
    uint64_t rnr_until;         /* the same for the peer's RNR timer */
    uint64_t group_next;        /* multicast: attachments before are served */
    uint64_t group_end;         /* multicast: and from here on not; 0: unset */
    struct vmri_send_wqe wqe;
    struct vmri_cursor sgl;
    const uint8_t *data;        /* inline: in the ring */
};

/*
 * Where bytes of the last key lie, to be used again while that is there and
 * its range has the same version; by the owner.
 */
struct vmri_xlat {
    struct vmri_slot *slot;     /* of the key; NULL: none */
    uint64_t version;           /* of its range, which is pinned */
    uint32_t access;            /* that it grants */
    uint32_t bytes;             /* from iova on that lie together */
    uint64_t iova;
    uint64_t at;                /* machine address of that */
};

/*
 * The way to the peer of the last message; by the owner.  It may be gone again
 * as long as the versions are the same: then all that was looked at is, too.
 */
struct vmri_route {
    struct vmri_slot *dev;      /* its device, in fabric->lids; NULL: none */
    struct vmri_slot *qp;       /* in that one's qps */
    struct vmri_xlat xlat;      /* of keys there, in the peer's name */
    uint64_t from_port;         /* our port's version */
    uint64_t to_port;           /* that device's port's */
    uint64_t version;           /* the peer's */
};

/* A receive that a message fills. */
struct vmri_rx {
    bool active;
    uint64_t wr_id;
    uint32_t srqn;              /* XRC: the SRQ that it was taken from; or 0 */
    struct vmri_cursor sgl;
};

#define VMRI_BUSY   1U          /* the send queue has an owner */
#define VMRI_AGAIN  2U          /* who is to look at the ring again */

enum vmri_parked {
    VMRI_PARK_NONE,
    VMRI_PARK_RNR,              /* the peer has no receive posted */
    VMRI_PARK_PEER,             /* the peer is not there, or not connected */
    VMRI_PARK_RATE,             /* the device has sent too much */
    VMRI_PARK_UPLINK,           /* for good: the peer is on another host */
};

struct vmri_carry;
struct vmri_relay;

struct vmri_qp {
    uint32_t qpn;
    uint32_t users;             /* none; as the other objects have it */
    struct vmri_dev *dev;       /* constant, as all up to lock */
    struct vmri_slot *slot;     /* in dev->qps */
    struct vmri_cq *scq;
    struct vmri_cq *rcq;
    struct vmri_eq *eq;
    struct vmri_qp_counters *counters;  /* of its type, the device's */
    struct vmri_srq *srq;       /* receives come from there; or NULL */
    struct vmri_pd *xrcd;       /* XRC targets: of the SRQs; else NULL */
    uint8_t type;
    bool block_loopback;        /* no multicast of its own device's */
    uint32_t max_inline;
    struct vmri_rings rings;

    env_lock_t lock;            /* LEVEL_QP */
    struct vmri_qp_modify attr; /* by lock; attr.state is also read without */
    bool established;           /* by lock: COMM_EST is out */
    uint64_t life;              /* no other's; changes with each reset */
    uint64_t version;           /* by lock: the same, with each of attr */
    uint64_t joined;            /* by the owner: life of a device, or 0 */
    struct vmri_source source;
    uint32_t inflight;          /* atomic: copies that resolved this QP */
    uint32_t rq_wanted;         /* atomic: a sender waits for a receive */

    uint32_t busy;              /* atomic: VMRI_BUSY, VMRI_AGAIN */
    uint32_t turns;             /* atomic: given out to who waits to own it */
    uint32_t turn;              /* atomic: whose it is, or `turns` */
    bool drain_event;           /* by the owner: SQ_DRAINED is wanted */
    bool last_wqe;              /* by the owner: LAST_WQE_REACHED is out */
    struct vmri_wq sq;          /* by the owner */
    struct vmri_tx tx;          /* by the owner */
    struct vmri_turn rate;      /* by the owner; of a device that is limited */
    struct vmri_route route;    /* by the owner */
    struct vmri_gid_lid gid_lid;    /* by the owner; datagrams over RoCE */
    struct vmri_xlat xlat;      /* by the owner: of our own keys */
    struct vmri_wq rq;          /* by lock; rq.done also under `inflight` */
    /*
     * RC: our receive that the peer's message fills; by who claimed it, under
     * `inflight`, or by lock when that is 0.  Datagrams: the peer's receive
     * that our message fills; by the owner, within one step.
     */
    struct vmri_rx rx;
    struct vmri_sge *rx_sge;    /* VMRI_MAX_SGE private ones for rx, or NULL */
    struct list_head mws;       /* by dev->lock: type 2 windows bound to it */
    bool leaving;               /* by dev->lock: no more of them */

    struct list_head attachments;   /* to groups; by fabric->mcg_lock */
    struct vmri_carry *carry;   /* constant: it has a twin; NULL: none */
    struct vmri_relay *relay;   /* constant: its datagrams go to other hosts */

    enum vmri_parked parked;    /* by dev->park.lock, as all below */
    enum vmri_parked home;      /* what it is when it does not wait */
    uint64_t deadline;          /* ticks of the wheel */
    uint8_t wheel_level;        /* VMRI_WHEEL_LEVELS: on no slot */
    uint8_t wheel_slot;
    struct list_head wheel;

    /* The SRQ whose receives our peer waits for; also read without the lock. */
    struct vmri_srq *waits_on;
    bool was_woken;             /* once, and got none yet */
    struct list_head srq_wait;
};

/* Sets of queue pair types. */
enum {
    ON_RC  = 1 << 0,
    ON_UC  = 1 << 1,
    ON_UD  = 1 << 2,
    ON_MAD = 1 << 3,            /* SMI, GSI */
    ON_INI = 1 << 4,            /* XRC initiator: requester only */
    ON_TGT = 1 << 5,            /* XRC target: responder only */
};
/* The set of which a QP's type is the only member (qpstate.c). */
unsigned int vmri_type_bit(const struct vmri_qp *qp);

/* A number that no QP or device had before. */
uint64_t vmri_new_life(void);
int vmri_qp_create(struct vmri_dev *dev, struct vmri_qp_create *arg,
                   struct vmri_call *call);
int cf_check vmri_qp_destroy(struct vmri_dev *dev, uint32_t qpn,
                             struct vmri_call *call);
/* The command's; arg's peer becomes what VMRI knows it by. */
int vmri_qp_modify(struct vmri_dev *dev, struct vmri_qp_modify *arg);
int vmri_qp_query(struct vmri_dev *dev, struct vmri_qp_modify *arg);
/*
 * Put a QP into the error state and raise `event` (0: none), from anywhere but
 * under a lock of LEVEL_QP or above.  Its owner's next call flushes it.
 */
void vmri_qp_error(struct vmri_qp *qp, unsigned int event);

/*
 * qpstate.c, under qp->lock, by the owner.  May the QP be modified so?  0 and
 * the state that it is in afterwards, or -EINVAL.  apply sets all that mask
 * names but the state.
 */
int vmri_qp_check_modify(const struct vmri_qp *qp,
                         const struct vmri_qp_modify *arg,
                         unsigned int *state);
void vmri_qp_apply(struct vmri_qp_modify *attr,
                   const struct vmri_qp_modify *arg);
/*
 * vmri_qp_error without a call to the owner's driver, for who owns the queue.
 */
void vmri_qp_set_error(struct vmri_qp *qp, unsigned int event);
static inline bool vmri_type_datagram(uint8_t type)
{
    return type == VMRI_QPT_UD || type == VMRI_QPT_SMI || type == VMRI_QPT_GSI;
}
static inline bool vmri_qp_datagram(const struct vmri_qp *qp)
{
    return vmri_type_datagram(qp->type);
}
/*
 * Nothing is acknowledged: what the other side cannot take is lost and counted
 * and the sender hears nothing of it.
 */
static inline bool vmri_qp_unreliable(const struct vmri_qp *qp)
{
    return vmri_qp_datagram(qp) || qp->type == VMRI_QPT_UC;
}
/* Do its receives come from shared queues? */
static inline bool vmri_qp_shares(const struct vmri_qp *qp)
{
    return qp->srq || qp->xrcd;
}
/* What a connected one sends to, or (XRC) gets from. */
static inline unsigned int vmri_qp_peer_type(const struct vmri_qp *qp)
{
    switch ( qp->type )
    {
    case VMRI_QPT_XRC_INI:
        return VMRI_QPT_XRC_TGT;

    case VMRI_QPT_XRC_TGT:
        return VMRI_QPT_XRC_INI;

    default:
        return qp->type;
    }
}
/* Is qp connected to the peer?  By qp->lock. */
static inline bool vmri_qp_faces(const struct vmri_qp *qp,
                                 const struct vmri_qp *peer)
{
    return qp->type == vmri_qp_peer_type(peer) &&
           qp->attr.dest_qpn == peer->qpn &&
           qp->attr.av.dlid == env_load(&peer->dev->lid);
}
static inline unsigned int vmri_qp_state(struct vmri_qp *qp)
{
    return env_load(&qp->attr.state);
}
/* Has a request begun and not ended?  By the owner (qp.c). */
bool vmri_qp_sending(const struct vmri_qp *qp);

/* What an entry of a request's list, or its receive's, costs of the budget. */
#define VMRI_ENTRY_COST 16U
static inline void vmri_spend(uint32_t *budget, uint32_t cost)
{
    *budget -= cost < *budget ? cost : *budget;
}

/*
 * May the request in qp->tx move this many bytes now, or some of them, and then
 * how many?  Else the queue is parked.  None move at any time.
 */
static inline bool vmri_rate_allows(struct vmri_qp *qp, uint32_t *bytes)
{
    if ( likely(!env_load(&qp->dev->limited)) || !*bytes )
        return true;

    *bytes = vmri_rate_take(qp, *bytes);

    return *bytes;
}

/* engine.c: VMRI_OP_schedule.  0, VMRI_SCHEDULE_MORE or -ENOENT. */
int vmri_schedule(struct vmri_dev *dev, uint32_t qpn);
/* The same, the owner's driver being called for what is left: 0 or -ENOENT. */
int vmri_ring(struct vmri_dev *dev, uint32_t qpn);
/* Complete the request in qp->tx. */
void vmri_complete(struct vmri_qp *qp);
/* A request's slot is free again before its completion can be seen. */
static inline void vmri_send_retire(struct vmri_qp *qp)
{
    qp->tx.active = false;
    qp->sq.cons++;
    env_store_release(&qp->sq.hdr->cons, qp->sq.cons);
}
/* Run the send queue, or flush: 0 or VMRI_SCHEDULE_MORE. */
int vmri_run(struct vmri_qp *qp);
/*
 * Become the owner of a send queue, waiting for the one that is and for those
 * that came before; and cease, doing what was posted, or is to be flushed, by
 * now.
 */
void vmri_own(struct vmri_qp *qp);
void vmri_disown(struct vmri_qp *qp);
/* Have the owner's driver call schedule. */
void vmri_ready(struct vmri_qp *qp);
/*
 * Wake the peer of a connected QP when it is parked for one of our doings.
 * False: nobody was.
 */
bool vmri_wake_peer(struct vmri_qp *qp);

/*
 * layout.c.  The bytes that the region must have, or 0 when its parts are not
 * allowed or do not fit.  Of wq and rings only the layout matters.
 */
uint64_t vmri_layout_qp(const struct vmri_qp_create *arg);
uint64_t vmri_layout_srq(const struct vmri_wq *wq,
                         const struct vmri_rings *rings);

/* wqe.c */
/* Fill in a queue, unless the stride is 0; it starts empty. */
void vmri_wq_init(struct vmri_wq *wq, struct vmri_wq_hdr *hdr, uint32_t offset,
                  uint8_t log2_entries, uint8_t log2_stride, uint8_t max_sge);
/*
 * What a guest may change at any time is copied before it is looked at.  The
 * barrier keeps the compiler from reading it again instead of the copy.
 */
static always_inline void vmri_copy_in(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    __asm__ __volatile__ ( "" : : : "memory" );
}
/*
 * Posted entries of a queue that there is; negative when the guest's index is
 * out of range.
 */
static inline int64_t vmri_wq_has(const struct vmri_wq *wq)
{
    uint32_t posted = env_load_acquire(&wq->hdr->prod) - wq->cons;

    return posted <= 1U << wq->log2_entries ? (int64_t)posted : -1;
}
/* The same of one that may not be there. */
static inline int64_t vmri_wq_posted(const struct vmri_wq *wq)
{
    return likely(wq->hdr) ? vmri_wq_has(wq) : 0;
}
/* Where the next request to be taken lies in its region. */
static inline uint32_t vmri_wq_slot(const struct vmri_wq *wq)
{
    uint32_t index = wq->cons & ((1U << wq->log2_entries) - 1);

    return wq->offset + (index << wq->log2_stride);
}
/* Copy the next send request into qp->tx, and begin with it. */
void vmri_send_fetch(struct vmri_qp *qp);
/* VMRI_WC_OP_* of a request; of one that there is not, SEND's. */
uint8_t vmri_completion_opcode(unsigned int opcode);
/* True, or tx.status and tx.vendor_err say what is wrong with the request. */
bool vmri_send_check(struct vmri_qp *qp);
/* A list that starts behind a request's header, or in the indirect list. */
void vmri_cursor_init(struct vmri_cursor *sgl, const struct vmri_rings *rings,
                      uint32_t offset, uint32_t num, bool indirect,
                      uint32_t ind_start);
/* Copy up to VMRI_MAX_SGE entries: the ring is not needed any more. */
void vmri_cursor_privatise(struct vmri_cursor *sgl, struct vmri_sge *copy);
/* How many entries of the indirect list a request may have. */
uint32_t vmri_max_indirect(const struct vmri_rings *rings);
/* The next entry into sgl->cur; false at the end of the list. */
bool vmri_cursor_next(struct vmri_cursor *sgl);
/* Pass over bytes of a list without touching them: false at its end. */
bool vmri_cursor_skip(struct vmri_cursor *sgl, uint64_t bytes);
/* Do the entries hold `want` bytes or more? */
bool vmri_cursor_holds(const struct vmri_cursor *sgl, uint64_t want);

/*
 * copy.c.  Where bytes come from or go to: hypervisor memory or a mapped ring,
 * a scatter/gather list, or a range of what a key names.
 */
struct vmri_place {
    struct vmri_qp *qp;         /* whose domain */
    bool write;
    const uint8_t *data;        /* not NULL: read from here */
    struct vmri_cursor *sgl;    /* not NULL: this list; else `key` */
    uint32_t key;
    const struct vmri_pd *pd;   /* that `key` must be of */
    uint32_t access;            /* VMRI_ACCESS_* that `key` must grant */
    uint64_t addr;
    uint64_t extent;            /* bytes from here on that the request touches */
    uint16_t vendor_err;        /* OUT: why it failed */
    uint64_t moved;             /* OUT: bytes */
    /* set by copy.c: the run at hand */
    struct vmri_key *k;
    bool held;                  /* held_frame has a reference of its own */
    env_frame_t held_frame;
    env_frame_t frame;
    uint32_t offset;
    uint64_t run;
};

enum vmri_copied {
    VMRI_COPIED,
    VMRI_COPY_FROM,             /* from->vendor_err says why */
    VMRI_COPY_TO,               /* to->vendor_err */
};

/* Copy; no lock held.  On failure some bytes may have been written. */
enum vmri_copied vmri_copy(struct vmri_place *to, struct vmri_place *from,
                           uint64_t bytes);
/*
 * Could these bytes be read at this moment?  Else from->vendor_err says why.
 */
bool vmri_copy_probe(struct vmri_place *from, uint64_t bytes);
/* Copy into the hypervisor's own memory: the same. */
bool vmri_copy_here(void *to, struct vmri_place *from, uint64_t bytes);
/*
 * Find and hold the next of at most `bytes`: how many lie together at p->frame
 * and p->offset.  0: p->vendor_err says why, nothing is held.  A copy to or
 * from p begins there, and lets go of it as vmri_place_put does.
 */
uint64_t vmri_place_hold(struct vmri_place *p, uint64_t bytes);
void vmri_place_put(struct vmri_place *p);

/* transfer.c, datagram.c: one step of the request in qp->tx. */
enum vmri_step {
    VMRI_STEP_DONE,             /* the request is complete */
    VMRI_STEP_MORE,             /* call again */
    VMRI_STEP_PARKED,           /* it waits; something will make it ready */
    VMRI_STEP_FAILED,           /* tx.status, tx.vendor_err */
    VMRI_STEP_LOST,             /* within transfer.c: UC, done in vain */
};
enum vmri_step vmri_transfer(struct vmri_qp *qp, uint32_t *budget);
/* Whose keys qp's request may name at its peer, during a step of it. */
const struct vmri_pd *vmri_remote_pd(const struct vmri_qp *qp,
                                     const struct vmri_qp *peer);
enum vmri_step vmri_datagram(struct vmri_qp *qp, uint32_t *budget);
/*
 * Give a datagram to one QP, which the caller refers to, or drop it there.
 * DONE or FAILED.
 */
enum vmri_step vmri_datagram_to(struct vmri_qp *qp, struct vmri_qp *peer);
/*
 * May a QP, which the caller refers to, have a datagram of so many bytes (of QP0 with
 * `smi`), and has it room?  Then its receive is in *rx, with entries in `sge`, and is to
 * be completed by the other.
 */
bool vmri_datagram_claim(struct vmri_qp *peer, bool smi, uint32_t qkey,
                         uint32_t length, struct vmri_rx *rx,
                         struct vmri_sge *sge);
void vmri_datagram_complete(struct vmri_qp *peer, const struct vmri_rx *rx,
                            struct vmri_cqe *cqe);
/* The Q_Key with which the request in qp->tx goes. */
uint32_t vmri_datagram_qkey(const struct vmri_qp *qp);
/*
 * grh.c: the header of a datagram of `length` bytes, of IB or of RoCE v2.  With
 * IPv4 addresses it is at the end of the 40 bytes.
 */
void vmri_grh_make(bool roce, const struct vmri_av *av, const uint8_t sgid[16],
                   uint32_t length, uint8_t to[VMRI_GRH]);
/* multicast.c: as vmri_datagram_to, to the next QP of a group. */
enum vmri_step vmri_multicast(struct vmri_qp *qp, uint32_t *budget);
enum vmri_step vmri_fail(struct vmri_qp *qp, uint8_t status,
                         uint16_t vendor_err);
/*
 * What the responder finds wrong: it fails too, unless the connection is
 * unreliable, and for what it may not do (VMRI_WC_REM_ACCESS_ERR) or does not
 * do its owner gets an event (IBTA 1.4, 9.9.3).
 */
enum vmri_step vmri_fail_both(struct vmri_qp *qp, struct vmri_qp *peer,
                              uint8_t status, uint16_t vendor_err);
/* atomic.c: requests that are done in one step, without a receive. */
bool vmri_is_atomic(unsigned int opcode);
enum vmri_step vmri_atomic(struct vmri_qp *qp, struct vmri_qp *peer);
/*
 * plain.c: do the next request, if it is a plain one within the budget, or a
 * step, to its completion; how long it was is in qp->tx.wqe.  False: it is not,
 * or something is wrong; nothing has been done.
 */
bool vmri_plain(struct vmri_qp *qp, uint32_t budget);
/* peer.c.  Does the peer take requests, and from us?  Under peer->lock. */
bool vmri_peer_answers(const struct vmri_qp *peer, const struct vmri_qp *qp);
/* Give up references to a peer's device, and to the peer unless it is NULL. */
static inline void vmri_peer_release(struct vmri_dev *dev,
                                     struct vmri_qp *peer)
{
    if ( peer )
        vmri_slot_put(peer->slot);
    vmri_slot_put(dev->lid_slot);
}
/*
 * The peer of the last message, with its lock and references, if all is as it
 * was; else NULL.
 */
static always_inline struct vmri_qp *vmri_route_lock(struct vmri_qp *qp)
{
    const struct vmri_route *route = &qp->route;
    struct vmri_qp *peer = NULL;
    struct vmri_dev *dev = vmri_slot_get(route->dev, qp->attr.av.dlid);

    if ( unlikely(!dev) )
        return NULL;

    /* The device is the same one, so the slot of its QP is still there. */
    if ( likely(env_load(&dev->port.version) == route->to_port &&
                env_load(&qp->dev->port.version) == route->from_port &&
                env_domain_running(dev->domain)) )
        peer = vmri_slot_get(route->qp, qp->attr.dest_qpn);

    if ( likely(peer) )
    {
        env_lock(&peer->lock);
        if ( likely(peer->version == route->version) )
            return peer;
        env_unlock(&peer->lock);
    }
    vmri_peer_release(dev, peer);

    return NULL;
}
/*
 * The QP that a connected one sends to, when it is ready to take requests from
 * it; counted in `inflight` until vmri_peer_put.  NULL when nobody answers.
 */
struct vmri_qp *vmri_peer_get(struct vmri_qp *qp);
void vmri_peer_put(struct vmri_qp *peer);

/*
 * recv.c.  Look at the next request of a receive queue: 1, 0 (none) or -EINVAL
 * (ring).  With `copy` (VMRI_MAX_SGE entries) rx does not depend on the ring.
 */
int vmri_recv_fetch(const struct vmri_rings *rings, const struct vmri_wq *wq,
                    struct vmri_rx *rx, struct vmri_sge *copy);
/*
 * Take the next receive of qp, under qp->lock: 1, 0 (none, or it does not hold
 * `want` bytes and stays) or -EINVAL (ring).  It comes from srq, whose slot is
 * free at once, or when that is NULL from qp's own queue, which has one more
 * free with each vmri_recv_release.  With `copy`, which an SRQ needs, several
 * may be under way, and any may be the first to complete.
 */
int vmri_recv_take(struct vmri_qp *qp, struct vmri_srq *srq, uint64_t want,
                   struct vmri_rx *rx, struct vmri_sge *copy);
void vmri_recv_release(struct vmri_qp *qp);
/* Complete a receive that nothing comes into: false when its CQ is dead. */
bool vmri_recv_flush(struct vmri_qp *qp, const struct vmri_rx *rx);
/* Complete a receive of qp (its lock not held): false when its CQ is dead. */
bool vmri_recv_complete(struct vmri_qp *qp, const struct vmri_rx *rx,
                        struct vmri_cqe *cqe);
/* The same of one that is neither in its queue nor in qp->rx any more. */
bool vmri_recv_tell(struct vmri_qp *qp, const struct vmri_rx *rx,
                    struct vmri_cqe *cqe);

/* park.c.  deadline in ns of env_now(); VMRI_FOREVER: only a wake helps. */
#define VMRI_FOREVER    (~0ULL)
void vmri_park_init(struct vmri_park *park);
void vmri_park_fini(struct vmri_park *park);
void vmri_park_add(struct vmri_qp *qp, enum vmri_parked why,
                   uint64_t deadline);
/* Take it off the wheel; false if it was not there. */
bool vmri_park_remove(struct vmri_qp *qp);
/*
 * Keep its requests from the engine, VMRI_PARK_UPLINK, or (VMRI_PARK_NONE) no
 * longer, whenever it does not wait for something else.
 */
void vmri_park_home(struct vmri_qp *qp, enum vmri_parked home);

#endif /* VMRI_QP_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
