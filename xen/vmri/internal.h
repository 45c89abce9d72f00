/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the structures of the service, who owns what, and the locking.
 *
 * Objects and references
 * ======================
 * A domain has devices; a device belongs to one domain and one fabric for its
 * whole life; all other objects belong to a device.  Every kind has a table
 * that maps handles to objects through slots which live as long as the table.
 *
 * A slot's reference count is for the length of a call only: it is taken by a
 * lookup, without a lock, and put before the call returns.  Killing a slot
 * hides it from lookups and waits for the references to go.  That wait is
 * bounded: Xen does not preempt, a call holds of what others may kill only
 * what its step needs and a device, and every call ends after a bounded number
 * of steps, frames or objects.  So when a kill returns no copy that resolved
 * the object is in flight.
 *
 * Windows and fast MRs live longer than what they grant: their slots can be
 * idle, which hides them from lookups as killing does.  To make one idle is to
 * wait for the references, too.
 *
 * What waits for what: a call that kills an object waits for peers' steps, one
 * that kills a device (with vmri_control_lock held) for calls in it, one that
 * frees a multicast group (with its fabric's mcg_lock held) for steps that
 * send to it.  Steps wait for no kill, for an mcg_lock only before they refer to a
 * group, calls of guests for no vmri_control_lock: no circle.  One kind of step waits: one that takes away
 * what a key grants (an invalidation, a new binding) waits for the references
 * to that key, while it refers to queue pairs and devices, but to no key.  Who
 * refers to a key waits for nothing, so such a step ends.  A key is changed by
 * one call at a time (its `busy`): steps that find another at it fail,
 * commands wait for the other's end.
 *
 * That one object uses another (a QP its CQs and PD, an MR its PD) is counted
 * in `users` of the used one, under the device's lock; destroying a used
 * object is -EBUSY.
 *
 * A queue pair remembers slots of what its last message needed (qp.h: its
 * route and translations), but no references: it takes them anew from the
 * slots.  A slot is there as long as its table, which is that of its own
 * device, or of one that it refers to and that has the version it had.
 * Versions are never used twice.
 *
 * Commands are written as decode, then commit: decode checks and takes all
 * resources, commit cannot fail.
 *
 * Locks, in the order in which they may be taken
 * ==============================================
 *   LEVEL_CONTROL  vmri_control_lock: attach and detach, the fabrics and
 *                  their rules, which domains have state.
 *   LEVEL_ROUTE    fabric->routes.lock: which GIDs are on other hosts.
 *   LEVEL_FABRIC   fabric->mcg_lock: which multicast groups there are, and
 *                  who is in them; who is to be told.  Not for who sends.
 *   LEVEL_SERVICE  fabric->services.lock: which services devices offer.
 *   LEVEL_DEV      dev->lock: creation and destruction of objects, `users`.
 *   LEVEL_UPLINK   uplink->lock: the ring to dom0, the state of twins, what
 *                  waits for room; which EQ has the port's events, too.
 *   LEVEL_GID      fabric->gids->lock: which device has which GID.
 *   LEVEL_TABLE    table->lock: which slots are free.
 *   LEVEL_GROUP    group->lock: the order of a group's attachments.
 *   LEVEL_QP       qp->lock: state, attributes, receive queue.
 *   LEVEL_SRQ      srq->lock: the ring, the limit.
 *   LEVEL_CQ       cq->lock: the producer index.
 *   LEVEL_RATE     dev->rates.lock: what of its rates the device has used.
 *   LEVEL_PARK     dev->park.lock: the timer wheel and what is parked, and the
 *                  queue pairs that wait for a receive of the device's SRQs.
 *   LEVEL_EQ       eq->lock: the producer index, events that wait.
 *
 * Two locks of one level are never held together.  No lock is held while bytes
 * are copied, while frames are taken or put, or while guest memory is accessed
 * through env_copy_*; rings are mapped and may be accessed under their lock.
 *
 * What is used and what may be used of limited things is counted without a
 * lock (limits.c).  So are a fabric's rules read: who finds that they were
 * changed meanwhile reads them again (rule.c).
 *
 * The send queue has no lock but an owner: the CPU that set sq.busy.  It alone
 * reads the ring, changes `tx` and completes send requests.  Of a queue pair whose
 * peer is on another host it hands requests and receives out; dom0's calls, one at
 * a time, complete those that come back, which are counted (uplink.h).
 *
 * Copying
 * =======
 * Bytes move only in a call of the domain that owns the send queue, or of dom0 if that
 * is on another host (relay.c).  Others (receivers, timers, peers) may mark a queue
 * ready and raise its owner's VMRI_EVENT_QUEUE_READY, nothing more.
 */
#ifndef VMRI_INTERNAL_H
#define VMRI_INTERNAL_H

#include "env.h"

#define VMRI_STEP       (64U << 10)     /* bytes that one step may copy at any time */
#define VMRI_BUDGET     (256U << 10)    /* bytes copied in one call */
#define VMRI_MAX_SGE    32
#define VMRI_MAX_INLINE 512
#define VMRI_MAX_MSG    (1U << 31)
#define VMRI_MAX_CQE    (1U << 18)
#define VMRI_MAX_WR_SHIFT   14          /* entries of a work queue */
#define VMRI_MAX_WR     (1U << VMRI_MAX_WR_SHIFT)
#define VMRI_MAX_RD_ATOMIC  128
#define VMRI_MTU        4096U
#define VMRI_MTU_CODE   5               /* IBTA's for that */
#define VMRI_GRH        40U
/*
 * Frames of one queue: a header, both directions with the largest slots, and as
 * many entries outside of them.
 */
#define VMRI_MAX_REGION 12289U
#define VMRI_MAX_INDIRECT_SHIFT 20      /* entries of an indirect list */

/* Of a command that goes through many frames. */
#define VMRI_FRAME_BATCH    32U         /* between two looks at preemption */
#define VMRI_CALL_FRAMES    1024U       /* in one call */

/*
 * A command that continues itself: set by Xen in cmd, harmless from a guest.
 * What it goes on with is named by a ticket in the upper bits of dev_id, so
 * that the guest's memory need not be there to end it.
 */
#define VMRI_CONTINUE       0x80000000U
#define VMRI_TICKET_SHIFT   8
#define VMRI_TICKET_MAX     0xffffffU

struct vmri_call {
    bool again;             /* a continuation */
    bool done;              /* OUT: nothing but tidying up is still to do */
    uint32_t ticket;        /* IN and OUT; 0: nothing is left half done */
    uint32_t frames;        /* of regions, let go of in this call */
    int error;              /* how a destruction ends that comes to its end */
};

/* ---- tables (object.c) ---- */

struct vmri_dev;

struct vmri_slot {
    uint32_t ref;           /* atomic; 0: not visible */
    uint32_t handle;        /* of the object; of the next one when free */
    void *obj;              /* NULL: free */
};

/*
 * Slots come in leaves of a page, leaves in segments of which each is as long
 * as all before it together; both are allocated when first needed.  So a table
 * is as large as what is in it, and none of it ever moves.
 */
#define VMRI_LEAF_SLOTS (VMRI_PAGE_SIZE / sizeof(struct vmri_slot))
#define VMRI_SEGMENTS   17

struct vmri_leaf {
    struct vmri_slot *slot; /* atomic: set once */
    uint32_t used;          /* by table->lock */
};

#define VMRI_REF_DYING  0x80000000U
#define VMRI_REF_IDLE   0x40000000U

/* How handles of a kind are made of index and generation. */
struct vmri_handle_format {
    uint8_t index_shift;
    uint8_t index_bits;
    uint8_t gen_shift;
    uint8_t gen_bits;
    uint8_t first;          /* lowest index given out without being asked */
    uint8_t spare;          /* highest indices, which are never given out */
};

#define VMRI_HANDLE_ANY 0xffffffffU

struct vmri_table {
    const struct vmri_handle_format *format;
    uint32_t index_mask;        /* of the format, for lookups */
    uint8_t index_shift;        /* the same */
    struct vmri_dev *dev;       /* whose objects, and memory; NULL: nobody's */
    unsigned int kind;          /* VMRI_RES_*, when it is a device's */
    env_lock_t lock;        /* LEVEL_TABLE */
    uint32_t max;           /* slots; indices below this */
    uint32_t top;           /* by lock: leaves that exist are below this */
    uint32_t used;          /* by lock: slots */
    uint32_t slots;         /* by lock: of the leaves that exist */
    uint32_t next;          /* by lock: where to search for a free one first */
    uint64_t bytes;         /* by lock: memory of all this */
    struct vmri_leaf *segment[VMRI_SEGMENTS];   /* atomic: set once */
};

extern const struct vmri_handle_format vmri_format_plain;   /* PD, EQ, CQ */
extern const struct vmri_handle_format vmri_format_qpn;
extern const struct vmri_handle_format vmri_format_srqn;
extern const struct vmri_handle_format vmri_format_key;
extern const struct vmri_handle_format vmri_format_lid;     /* of a fabric */
extern const struct vmri_handle_format vmri_format_mlid;    /* of a fabric */
extern const struct vmri_handle_format vmri_format_dev;     /* of a domain */

/* max 0: as many as the format can name.  Takes no memory yet. */
void vmri_table_init(struct vmri_table *t,
                     const struct vmri_handle_format *format, uint32_t max,
                     struct vmri_dev *dev, unsigned int kind);
/* All slots must be free. */
void vmri_table_fini(struct vmri_table *t);
/*
 * Give out numbers from this handle on first, so that lower ones are there for
 * who wants them: -ENOMEM.  Of a table that is empty.
 */
int vmri_table_begin(struct vmri_table *t, uint32_t index);
/* The largest number of objects that a table of this format can hold. */
uint32_t vmri_table_capacity(const struct vmri_handle_format *format);
/*
 * Take a free slot; the object is not visible yet.  want is a handle, or
 * VMRI_HANDLE_ANY.  Handles with a generation are given out in turns, so that
 * numbers rest before they come again; of those without, the lowest.
 * -EBUSY: taken; -ENOSPC: none left; -ENOMEM; -EINVAL: no such number.
 */
int vmri_table_reserve(struct vmri_table *t, uint32_t want, uint32_t *handle);
/* Make it visible.  From here on others may hold references. */
void vmri_table_publish(struct vmri_table *t, uint32_t handle, void *obj);
/*
 * For objects that are there for long and can be used now and then (windows,
 * fast MRs): hide one from lookups, waiting until nobody refers to it, as kill
 * does; give it another handle of the same index while it is idle; and let
 * lookups find it.  By one call at a time.
 */
void vmri_table_idle(struct vmri_table *t, uint32_t handle);
void vmri_table_rename(struct vmri_table *t, uint32_t handle, uint32_t name);
void vmri_table_live(struct vmri_table *t, uint32_t handle);
/* Give back a slot that was reserved and not published, or killed. */
void vmri_table_release(struct vmri_table *t, uint32_t handle);
/* The object with a reference, or NULL.  No lock is taken. */
void *vmri_table_get(struct vmri_table *t, uint32_t handle);
void vmri_table_put(struct vmri_table *t, uint32_t handle);
/*
 * Where an object with this handle, which was reserved, is or will be; NULL:
 * nowhere.  Who keeps that puts a reference without another lookup.
 */
struct vmri_slot *vmri_table_slot(const struct vmri_table *t, uint32_t handle);
static inline void vmri_slot_put(struct vmri_slot *slot)
{
    env_fetch_sub(&slot->ref, 1);
}
/*
 * Refer to what is in the slot, if it is what the handle names and in none of
 * the states `hidden`.
 */
static always_inline void *vmri_slot_refer(struct vmri_slot *slot,
                                           uint32_t handle, uint32_t hidden)
{
    uint32_t ref = env_load(&slot->ref);

    do {
        if ( !ref || (ref & hidden) )
            return NULL;
    } while ( !env_cmpxchg(&slot->ref, &ref, ref + 1) );

    if ( likely(slot->handle == handle) )
        return slot->obj;

    vmri_slot_put(slot);

    return NULL;
}
/* vmri_table_get of one whose slot is known. */
static always_inline void *vmri_slot_get(struct vmri_slot *slot,
                                         uint32_t handle)
{
    return vmri_slot_refer(slot, handle, VMRI_REF_DYING | VMRI_REF_IDLE);
}
/*
 * The same without a reference, also one that is idle, for a caller that keeps
 * objects from being freed and renamed meanwhile.
 */
void *vmri_table_peek(struct vmri_table *t, uint32_t handle);
/* The same for what has the number, whatever it is called now. */
void *vmri_table_peek_slot(struct vmri_table *t, uint32_t handle);
/*
 * Hide the object and wait until nobody refers to it.  NULL when there is
 * none, or when somebody else kills it.  The caller holds no reference to it
 * and no lock that a holder of one could want.
 */
void *vmri_table_kill(struct vmri_table *t, uint32_t handle);
/*
 * The first object, idle or not, with an index of *index or more, *index then
 * naming the one behind it; its handle.  NULL at the end.  Takes no reference:
 * for teardown and dumps, where the caller keeps objects from going.
 */
void *vmri_table_next(struct vmri_table *t, uint32_t *index, uint32_t *handle);

/*
 * Something that raises events.  An event that finds the EQ full stays pending
 * here and its source on the EQ's list, so none is lost.  Types below 32.
 */
struct vmri_source {
    uint32_t id;                /* goes into the entries */
    uint32_t pending;           /* by eq->lock: bits of VMRI_EVENT_* */
    struct list_head waiting;   /* by eq->lock */
};

/* One that is answered later: one at a time. */
struct vmri_command {
    struct vmri_source source;
    uint16_t command;           /* by eq->lock: VMRI_OP_* */
    uint64_t data;              /* by eq->lock: its result */
};

#include "gid.h"
#include "mcg.h"
#include "port.h"
#include "rate.h"
#include "rule.h"
#include "service.h"
#include "steer.h"

/* ---- devices, domains, fabrics ---- */

struct vmri_fabric {
    struct list_head list;      /* by vmri_control_lock; in order of id */
    uint32_t id;
    bool created;               /* by vmri_control_lock: stays without devices */
    uint32_t devs;              /* by vmri_control_lock */
    char name[VMRI_FABRIC_NAME];/* by vmri_control_lock */
    struct vmri_rules rules;
    struct vmri_routes routes;
    struct vmri_gids *gids;     /* constant; NULL: the link layer is IB */
    struct vmri_table lids;     /* LID -> device */
    struct vmri_table mlids;    /* MLID - VMRI_MLID_MIN -> group */
    struct vmri_dev *sm;        /* by vmri_control_lock: manages it; or NULL */
    struct vmri_services services;
    env_lock_t mcg_lock;        /* LEVEL_FABRIC */
    struct list_head watchers;  /* by mcg_lock: devices, for one event each */
    struct list_head mcgs[VMRI_MCG_HASH];   /* by mcg_lock: groups, by MGID */
};

/*
 * Made when dom0 first attaches a device or sets a limit, freed by the domain's
 * teardown.
 */
struct vmri_domain {
    struct list_head list;      /* by vmri_control_lock; in order of domid */
    struct domain *domain;
    struct vmri_table devs;     /* dev_id -> device */
    struct list_head dying;     /* by vmri_control_lock: being detached */
    uint64_t usage[VMRI_RES_NR];/* atomic; of all devices together */
    uint64_t limit[VMRI_RES_NR];/* atomic; written by vmri_control_lock */
    bool doorbells;             /* atomic: processes may enter by doorbells */
};

/* Where parked queues wait (park.c). */
#define VMRI_WHEEL_LEVELS   4
#define VMRI_WHEEL_SLOTS    64

struct vmri_park {
    env_lock_t lock;            /* LEVEL_PARK */
    struct env_timer timer;
    uint64_t now;               /* by lock: ticks up to here are done */
    uint64_t armed;             /* by lock: when the timer fires; 0: not set */
    uint64_t rest;              /* by lock: it does not fire before */
    uint64_t busy[VMRI_WHEEL_LEVELS];   /* by lock: slots that hold some */
    struct list_head slot[VMRI_WHEEL_LEVELS][VMRI_WHEEL_SLOTS];
};

struct vmri_dev {
    struct domain *domain;      /* constant, as all up to lock */
    struct vmri_domain *owner;
    struct vmri_fabric *fabric;
    uint64_t guid;
    uint32_t group;             /* as rules have it */
    uint32_t id;
    /*
     * Atomic.  No other device's or QP's; another one when the fabric's rules
     * change, or its own GIDs.
     */
    uint64_t life;
    bool limited;               /* by rates.lock; read without, too */
    struct vmri_slot *slot;     /* in owner->devs */
    bool sm;                    /* it manages its fabric */
    struct vmri_uplink *uplink; /* to other hosts; NULL: none */
    uint64_t uplink_life;       /* that it had */
    struct vmri_uplink_caps caps;   /* and could do */
    struct vmri_gid_table *gids;/* NULL: the link layer is IB */

    env_lock_t lock;            /* LEVEL_DEV */
    uint16_t lid;               /* by vmri_control_lock; read without, too */
    struct vmri_slot *lid_slot; /* in fabric->lids; the same, by a reference */
    struct vmri_port port;
    bool in_use;                /* by lock: objects may be created */
    bool closing;               /* by lock: being emptied */
    bool doorbell;              /* by lock: processes may ring; read without */
    uint64_t usage[VMRI_RES_NR];/* atomic: what its objects have */

    struct vmri_table pds;
    struct vmri_table eqs;
    struct vmri_table cqs;
    struct vmri_table qps;
    struct vmri_table keys;             /* of MRs and windows */
    struct vmri_table srqs;
    struct vmri_table xrcds;
    struct list_head pending_mrs;       /* by lock: pinning or unpinning */
    struct list_head pending_regions;   /* by lock: the same (ring.c) */
    uint32_t tickets;                   /* by lock: the last one given out */
    struct list_head memberships;       /* by fabric->mcg_lock */
    struct list_head watching;  /* by fabric->mcg_lock: in fabric->watchers */
    struct list_head mws;               /* by lock: all windows */
    struct list_head twins;             /* by uplink->lock */
    uint32_t nr_twins[2];               /* by uplink->lock: of MRs, of QPs */

    struct list_head dying;     /* by vmri_control_lock: in owner->dying */
    bool detaching;             /* by vmri_control_lock: a call is at it */

    struct vmri_park park;
    struct vmri_rates rates;
    /* Atomic, relaxed.  What is counted by type is 0 in `counters`. */
    struct vmri_counters counters;
    struct vmri_qp_counters types[VMRI_STAT_NR];
};

/* The first word of trace records. */
static inline uint32_t vmri_trace_id(const struct vmri_dev *dev)
{
    return env_domid(dev->domain) << 16 | dev->id;
}

/* Count what a device does, and what a queue pair does, for its type. */
#define vmri_count(dev, field, n)   \
    env_add(&(dev)->counters.field, (uint64_t)(n))
#define vmri_count_qp(qp, field, n) \
    env_add(&(qp)->counters->field, (uint64_t)(n))

extern env_lock_t vmri_control_lock;

/*
 * limits.c.  Charge n of VMRI_RES_* to a device's domain: 0 or -ENOSPC.  No
 * lock is taken.  vmri_alloc charges bytes and gives zeroed memory, NULL for
 * either lack.
 */
int vmri_charge(struct vmri_dev *dev, unsigned int what, uint64_t n);
void vmri_uncharge(struct vmri_dev *dev, unsigned int what, uint64_t n);
void *vmri_alloc(struct vmri_dev *dev, size_t bytes);
void vmri_free(struct vmri_dev *dev, void *p, size_t bytes);
/* The same for what is of no device's objects: devices, and their tables. */
int vmri_domain_charge(struct vmri_domain *vd, unsigned int what, uint64_t n);
void vmri_domain_uncharge(struct vmri_domain *vd, unsigned int what,
                          uint64_t n);
/* What a domain of that many pages may use unless told otherwise. */
void vmri_limits_default(uint64_t pages, uint64_t limit[VMRI_RES_NR]);
/* How much of it the device's domain may use. */
uint64_t vmri_limit(const struct vmri_dev *dev, unsigned int what);
/* What is charged to the device, and the memory of itself and its tables. */
void vmri_usage_get(struct vmri_dev *dev, struct vmri_usage *usage);
void vmri_counters_get(const struct vmri_dev *dev, struct vmri_counters *to);
void vmri_type_counters_get(const struct vmri_dev *dev, unsigned int type,
                            struct vmri_qp_counters *to);
/* Where a queue pair of type VMRI_QPT_* counts. */
struct vmri_qp_counters *vmri_type_counters(struct vmri_dev *dev,
                                            unsigned int type);

/* fabric.c: dom0's commands, as control.h has them. */
int vmri_fabric_create(struct vmri_ctl_fabric *arg);
int vmri_fabric_delete(uint32_t id);
int vmri_fabric_list(struct vmri_ctl_fabric *arg);
/* The one with a number, if it was created; under vmri_control_lock. */
struct vmri_fabric *vmri_fabric_created(uint32_t id);
/* All below under vmri_control_lock, but vmri_fabric_peer. */
/*
 * The fabric with a number, for a device more.  One that is not there is made,
 * unless it must have been `created`: -ENOENT; -ENOMEM.
 */
int vmri_fabric_get(uint32_t id, bool created, struct vmri_fabric **result);
void vmri_fabric_put(struct vmri_fabric *f);
/*
 * Give a device with a GUID the LID that it wants, or the lowest free one for
 * 0, and show it to its peers.  -EEXIST: LID or GUID taken; -ENOSPC; -ENOMEM.
 */
int vmri_fabric_add(struct vmri_fabric *f, struct vmri_dev *dev,
                    uint16_t want);
/* Hide it again: on return no peer's call refers to it. */
void vmri_fabric_remove(struct vmri_fabric *f, struct vmri_dev *dev);
/*
 * Another LID; for a moment it has none.  -EEXIST: taken; -ENOMEM.
 */
int vmri_fabric_move(struct vmri_fabric *f, struct vmri_dev *dev,
                     uint16_t lid);
/* The device with a LID, with a reference, or NULL. */
struct vmri_dev *vmri_fabric_peer(struct vmri_fabric *f, uint16_t lid);
/* The one with the lowest LID from `lid` on, with a reference, or NULL. */
struct vmri_dev *vmri_fabric_peer_from(struct vmri_fabric *f, uint32_t lid);
void vmri_fabric_peer_put(struct vmri_dev *peer);
/* Does XSM let the device's domain know of one of its fabric? */
bool vmri_fabric_shows(const struct vmri_dev *dev, const struct vmri_dev *peer);
/* The same for a device that cannot be freed meanwhile: false if hidden. */
bool vmri_fabric_hold(struct vmri_fabric *f, struct vmri_dev *dev);
/*
 * Do XSM and rules let requests of a QP reach a device?  By the owner of its send
 * queue, which remembers the last one that it may reach until the QP is reset or
 * rules change: neither is asked for each message.
 */
bool vmri_fabric_joins(struct vmri_qp *qp, const struct vmri_dev *to);

/* subnet.c */
/* Have the next change of the fabric raise an event, once.  -ENODEV. */
int vmri_subnet_watch(struct vmri_dev *dev);
/* No longer; of a device that is being emptied, so that it does not again. */
void vmri_subnet_unwatch(struct vmri_dev *dev);
/* Its groups changed; under f->mcg_lock.  And its ports; without. */
void vmri_subnet_changed(struct vmri_fabric *f);
void vmri_subnet_ports_changed(struct vmri_fabric *f);
/*
 * Under vmri_control_lock: may a device with a place among f->devs join?  0,
 * -EBUSY or -ENOSPC.  It does, and nobody sees it yet; it leaves, and nobody sees
 * it any more.
 */
int vmri_subnet_admits(const struct vmri_fabric *f,
                       const struct vmri_dev *dev);
void vmri_subnet_join(struct vmri_fabric *f, struct vmri_dev *dev);
void vmri_subnet_leave(struct vmri_fabric *f, struct vmri_dev *dev);

/* domain.c: the life cycle. */
/*
 * Teardown of a dying domain, called by Xen's hook when none of its vCPUs runs
 * any more: 0, or -ERESTART to be called again.
 */
int vmri_domain_teardown(struct domain *d);
/*
 * Soft reset of a domain whose vCPUs have shut down: its devices are emptied
 * and stay attached.  0, or -ERESTART to be called again.
 */
int vmri_domain_reset(struct domain *d);
/* The device of the calling domain, with a reference, or NULL. */
struct vmri_dev *vmri_dev_get(struct domain *d, uint32_t dev_id);
void vmri_dev_put(struct vmri_dev *dev);
/* The same for a call of another domain, which keeps d from vanishing. */
struct vmri_dev *vmri_dev_get_of(struct domain *d, uint32_t dev_id);
/*
 * Set the limits in mask, and tell all, and what is used.  -ESRCH: the domain
 * is dying; -ENOMEM.
 */
int vmri_domain_limits(struct domain *d, uint32_t mask,
                       struct vmri_usage *limit, struct vmri_usage *usage);
/*
 * The domain's state, made when new; under vmri_control_lock.  NULL: memory.
 */
struct vmri_domain *vmri_domain_make(struct domain *d);
/*
 * The first device that is not being detached at or after (*domid, *dev_id) in
 * that order, which then name it.  Under vmri_control_lock, that keeps it.
 * NULL: no more.
 */
struct vmri_dev *vmri_dev_next(uint32_t *domid, uint32_t *dev_id);
/* How many domains have state, and how many devices are being detached. */
void vmri_domains_count(uint32_t *domains_nr, uint32_t *dying);

/* dev.c */
/* Give the domain a device; the caller has looked at arg's ranges. */
int vmri_dev_attach(struct domain *d, struct vmri_ctl_attach *arg);
/*
 * Take it away, or go on with that.  -ERESTART: call again with `again`.
 * -ENODEV: there is none; -EBUSY: another call is at it.
 */
int vmri_dev_detach(struct domain *d, uint32_t dev_id, bool again);
/*
 * The domain's device.  Under vmri_control_lock, which keeps it: there is no
 * reference.  NULL: none, or it is being detached.
 */
struct vmri_dev *vmri_dev_find(struct domain *d, uint32_t dev_id);
/* Detach all devices of a dying domain: 0 or -ERESTART. */
int vmri_dev_detach_all(struct vmri_domain *vd);
int vmri_dev_create(struct vmri_dev *dev, struct vmri_dev_create *arg);
/*
 * Empty a device: destroy all its objects.  0, or -ERESTART to be called again
 * with `again`.  Several may do so at once, each object is destroyed by one.
 */
int vmri_dev_close(struct vmri_dev *dev, bool again);
void vmri_dev_attr(const struct vmri_dev *dev, struct vmri_dev_attr *attr);
/* The memory of the device itself and of its tables. */
uint64_t vmri_dev_bytes(struct vmri_dev *dev);
/* The device's table of a kind of object, VMRI_RES_*; NULL: not of objects. */
struct vmri_table *vmri_dev_table(struct vmri_dev *dev, unsigned int kind);

/* ---- protection domains, and XRC domains, which are no more (pd.c) ---- */

struct vmri_pd {
    uint32_t handle;
    uint32_t users;             /* by dev->lock */
    uint32_t number;            /* by uplink->lock: its uplink's; 0: none yet */
};

int vmri_pd_create(struct vmri_dev *dev, struct vmri_object *arg);
int vmri_pd_destroy(struct vmri_dev *dev, uint32_t handle);
int vmri_xrcd_create(struct vmri_dev *dev, struct vmri_object *arg);
int vmri_xrcd_destroy(struct vmri_dev *dev, uint32_t handle);

/*
 * Use an object: look it up and count a user, so that it stays.  NULL when
 * there is none.  (object.c; such objects start with struct vmri_pd's fields.)
 */
void *vmri_use(struct vmri_dev *dev, struct vmri_table *t, uint32_t handle);
void vmri_unuse(struct vmri_dev *dev, void *obj);
/*
 * Kill an object that has no users: *obj is it; -EBUSY, -ENOENT.  Checked
 * under dev->lock, so that no new user can appear.
 */
int vmri_kill_unused(struct vmri_dev *dev, struct vmri_table *t,
                     uint32_t handle, void **obj);
/*
 * Publish a new object of a device that is in use.  -ENODEV: it is not, or is
 * being emptied, and would miss this one.
 */
int vmri_publish(struct vmri_dev *dev, struct vmri_table *t, uint32_t handle,
                 void *obj);
/* The same with one that lookups do not find yet. */
int vmri_publish_idle(struct vmri_dev *dev, struct vmri_table *t,
                      uint32_t handle, void *obj);

/* ---- shared memory (ring.c) ---- */

/*
 * Frames of a guest that stay pinned and mapped: a queue's memory.
 *
 * What is written there is not marked dirty, since it need not survive a save
 * or a migration: the domain is quiesced before, and on the other side the
 * driver makes its queues anew.  That allows writes with locks held, which
 * marking a page does not.
 */
struct vmri_region {
    uint32_t nr;
    struct vmri_region_page {
        uint8_t *map;
        env_frame_t frame;
    } *page;
};

/*
 * Pin and map.  bytes is what the queue needs; frames->nr must be exactly that
 * many pages.  -EINVAL, -EFAULT, -EPERM, -ENOSPC, -ENOMEM, -ENODEV.  -ERESTART:
 * there are more than one call may pin.  The command undoes all else that it
 * has done and begins anew when it is continued; call->ticket names the frames.
 */
int vmri_region_create(struct vmri_dev *dev, const struct vmri_frames *frames,
                       uint64_t bytes, struct vmri_call *call,
                       struct vmri_region *r);
/*
 * Let go of a region, which may be none, of a command that ends with `error`.
 * That, or -ERESTART: there is more than one call may do.  The command has
 * nothing else left to do, and when continued comes to vmri_region_going.
 */
int vmri_region_destroy(struct vmri_dev *dev, struct vmri_region *r,
                        struct vmri_call *call, int error);
/*
 * Is it such a command that call->ticket names?  Then go on: *ret is as above.
 */
bool vmri_region_going(struct vmri_dev *dev, struct vmri_call *call,
                       long *ret);
/*
 * The continued command of call->ticket fails: let go of its frames.  `error`
 * or -ERESTART, as above.
 */
int vmri_region_abandon(struct vmri_dev *dev, struct vmri_call *call,
                        int error);
/*
 * For vmri_dev_close: let go of what nobody continues.  0, or -ERESTART while
 * there are any left.
 */
int vmri_region_reap(struct vmri_dev *dev, struct vmri_call *call);
/* Where byte `offset` is; what is accessed there must not cross a page. */
static inline void *vmri_region_at(const struct vmri_region *r,
                                   uint32_t offset)
{
    return r->page[offset >> VMRI_PAGE_SHIFT].map +
           (offset & (VMRI_PAGE_SIZE - 1));
}

/* ---- events (eq.c) ---- */

struct vmri_eq {
    uint32_t handle;
    uint32_t users;             /* by dev->lock */
    struct vmri_dev *dev;
    uint32_t port;
    uint32_t log2_entries;
    struct vmri_region region;
    env_lock_t lock;            /* LEVEL_EQ */
    uint32_t prod;              /* by lock */
    struct list_head waiting;   /* by lock: sources with pending events */
};

int vmri_eq_create(struct vmri_dev *dev, struct vmri_eq_create *arg,
                   struct vmri_call *call);
int cf_check vmri_eq_destroy(struct vmri_dev *dev, uint32_t handle,
                             struct vmri_call *call);
int vmri_eq_poll(struct vmri_dev *dev, uint32_t handle);
void vmri_source_init(struct vmri_source *s, uint32_t id);
/* Raise one event; any lock below LEVEL_EQ may be held. */
void vmri_event_raise(struct vmri_eq *eq, struct vmri_source *s,
                      unsigned int type);
/*
 * Raise a VMRI_EVENT_COMMAND.  One of the same source that still waits is not
 * told any more.
 */
void vmri_event_command(struct vmri_eq *eq, struct vmri_command *c,
                        unsigned int command, uint32_t id, uint64_t data);
/* Does nothing of it wait any more? */
bool vmri_source_idle(struct vmri_eq *eq, struct vmri_source *s);
/* Of an EQ that goes: forget all that waits, whatever the source. */
void vmri_eq_purge(struct vmri_eq *eq);
/* Forget what still waits of `types`, a bit each. */
void vmri_source_forget(struct vmri_eq *eq, struct vmri_source *s,
                        uint32_t types);
/* Before the source goes: forget all that still waits. */
void vmri_source_fini(struct vmri_eq *eq, struct vmri_source *s);

/* ---- completion queues (cq.c) ---- */

struct vmri_qp;

struct vmri_cq {
    uint32_t handle;
    uint32_t users;             /* by dev->lock */
    struct vmri_dev *dev;
    struct vmri_eq *eq;
    struct vmri_source source;
    env_lock_t lock;            /* LEVEL_CQ */
    uint32_t log2_entries;      /* by lock, as all below */
    struct vmri_region region;
    uint32_t prod;
    bool overflow;              /* stays */
};

int vmri_cq_create(struct vmri_dev *dev, struct vmri_cq_create *arg,
                   struct vmri_call *call);
int vmri_cq_resize(struct vmri_dev *dev, struct vmri_cq_resize *arg,
                   struct vmri_call *call);
int cf_check vmri_cq_destroy(struct vmri_dev *dev, uint32_t handle,
                             struct vmri_call *call);
/*
 * Write a completion of a QP and raise the event if the guest waits for one (an
 * error counts as solicited).  cqe->qpn is filled in, and cqe->timestamp when
 * it is 0; the counters of completions and errors follow.  False: the CQ is full
 * or was before; it is dead then, VMRI_EVENT_CQ_ERR has been raised, and the
 * caller puts its QP into the error state.
 */
bool vmri_cq_push(struct vmri_cq *cq, const struct vmri_qp *qp,
                  struct vmri_cqe *cqe);
/*
 * The same of a message that went well, for which an entry says only this:
 * written where it is to be.  `what` is VMRI_WC_OP_*, and above 8 bits of it
 * VMRI_WC_*.
 */
bool vmri_cq_push_plain(struct vmri_cq *cq, uint32_t qpn, uint64_t wr_id,
                        uint64_t now, uint32_t bytes, uint32_t what);

#include "qp.h"
#include "srq.h"
#include "key.h"
#include "uplink.h"

/* ---- the rest ---- */

/* control.c: commands of dom0. */
long vmri_control(unsigned int cmd, uint64_t args, bool again);
/*
 * describe.c: what VMRI_OP_ctl_dump tells of the object that to->kind and
 * to->index name: 0, -ENOENT or -EINVAL, or -ERESTART to be called again.
 */
int vmri_describe(struct vmri_dev *dev, struct vmri_ctl_dump *to);
/*
 * doorbell.c: what processes may do past their kernel.  Has that opened a device
 * to them since it began?  For the running domain.  Open and close a device,
 * under dev->lock.
 */
bool vmri_doorbells(struct domain *d);
void vmri_doorbell_open(struct vmri_dev *dev);
void vmri_doorbell_close(struct vmri_dev *dev);
/*
 * Ring a queue pair of the calling domain, named by registers of a process: 0,
 * -ENODEV, -EPERM or -ENOENT.
 */
long vmri_doorbell(uint32_t dev_id, uint64_t qpn);
/* dump.c: to the console. */
void vmri_dump(void);
/* hypercall.c: once, at boot. */
void vmri_init(void);
/*
 * One command; -ERESTART asks the caller to continue it with VMRI_CONTINUE and
 * the dev_id that is left behind.
 */
long vmri_dispatch(unsigned int cmd, unsigned int *dev_id, uint64_t args);

#endif /* VMRI_INTERNAL_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
