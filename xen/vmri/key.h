/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: what keys name: memory regions, fast ones, and windows.
 * Included by internal.h, where references and locking are described.
 */
#ifndef VMRI_KEY_H
#define VMRI_KEY_H

/* ---- pages by their number (pages.c) ---- */

/* How many frames so many bytes are in, the first at this offset. */
static inline uint32_t vmri_frames_of(uint32_t offset, uint64_t bytes)
{
    return (offset + bytes + VMRI_PAGE_SIZE - 1) >> VMRI_PAGE_SHIFT;
}

#define VMRI_LEAF_FRAMES    (VMRI_PAGE_SIZE / sizeof(env_frame_t))

/* An array of frames of any length, in leaves of a page at most. */
struct vmri_frame_array {
    uint32_t nr;
    env_frame_t **leaf;         /* NULL: there is none */
};

/*
 * Frames in chunks of 2^chunk_shift contiguous ones: page i is in chunk
 * (i + bias) >> chunk_shift.  A single chunk needs no array but starts at
 * `first`.  Pages are added one by one, each a chunk of its own; when all are
 * there they are packed into chunks as large as they can be.
 */
struct vmri_pages {
    uint32_t nr;
    uint32_t chunk_shift;
    uint32_t bias;
    env_frame_t first;
    struct vmri_frame_array chunks;
    /* The rest serves adding, packing and taking away. */
    uint32_t filled;            /* pages that are there */
    uint32_t edge;              /* first page that does not follow the last */
    uint32_t edges;             /* distances of the others to it, ORed */
    bool packing;               /* half done: nothing else may be */
    uint32_t packed;            /* chunks made so far */
    uint32_t leaves;            /* that may exist */
};

/* Room for nr pages, of which the leaves are made as they fill.  -ENOMEM. */
int vmri_pages_init(struct vmri_dev *dev, struct vmri_pages *p, uint32_t nr);
void vmri_pages_free(struct vmri_dev *dev, struct vmri_pages *p);
/* Where the next page's frame goes; NULL: no memory.  Then count it. */
env_frame_t *vmri_pages_next(struct vmri_dev *dev, struct vmri_pages *p);
void vmri_pages_added(struct vmri_pages *p);
/* A bounded step of packing all that are there: 0 or -ERESTART. */
int vmri_pages_pack(struct vmri_dev *dev, struct vmri_pages *p);
/* Take the last page away and give its frame. */
env_frame_t vmri_pages_pop(struct vmri_dev *dev, struct vmri_pages *p);
static inline env_frame_t *vmri_array_at(const struct vmri_frame_array *a,
                                         uint32_t i)
{
    return &a->leaf[i / VMRI_LEAF_FRAMES][i % VMRI_LEAF_FRAMES];
}
/* The frame of page i, and how many pages from it on its chunk has. */
static inline env_frame_t vmri_pages_at(const struct vmri_pages *p, uint32_t i,
                                        uint32_t *run)
{
    uint32_t size = 1U << p->chunk_shift;
    uint32_t chunk = (i + p->bias) >> p->chunk_shift;
    uint32_t in_chunk = (i + p->bias) & (size - 1);

    *run = min(size - in_chunk, p->nr - i);

    return (p->chunks.leaf ? *vmri_array_at(&p->chunks, chunk) : p->first) +
           in_chunk;
}

/* ---- keys (key.c) ---- */

/*
 * Rights beside VMRI_ACCESS_*: to be named in a request's own entries, on any
 * queue or on those of the guest's kernel.
 */
#define VMRI_KEY_LOCAL          0x10000U
#define VMRI_KEY_LOCAL_KERNEL   0x20000U
#define VMRI_KEY_LOCAL_ANY      (VMRI_KEY_LOCAL | VMRI_KEY_LOCAL_KERNEL)

/* What a key grants.  Constant while lookups find the key. */
struct vmri_range {
    struct vmri_pd *pd;
    uint32_t access;
    bool pinned;                /* the pages; else they are gfns */
    uint64_t version;           /* of pinned ones: no other range had it */
    uint64_t iova;              /* address of the first byte */
    uint64_t length;
    uint64_t offset;            /* of that byte in the pages */
    struct vmri_pages pages;    /* a window has a copy of its MR's */
};

/* Do bytes addr .. addr + length - 1 lie in it? */
static inline bool vmri_range_holds(const struct vmri_range *r, uint64_t addr,
                                    uint64_t length)
{
    return addr >= r->iova && addr - r->iova <= r->length &&
           length <= r->length - (addr - r->iova);
}

enum vmri_key_kind {
    VMRI_KEY_MR = 1,
    VMRI_KEY_FAST = 2,
    VMRI_KEY_MW = 4,
};

struct vmri_key {
    uint32_t key;               /* by dev->lock, or a reference */
    uint32_t users;             /* by dev->lock: windows bound to it */
    enum vmri_key_kind kind;    /* constant */
    bool live;                  /* by dev->lock: lookups find it */
    bool busy;                  /* by dev->lock: a call changes it */
    struct vmri_dev *dev;
    struct vmri_slot *slot;     /* in dev->keys */
    const struct vmri_qp *qp;   /* type 2 windows: who alone may use it */
    uint32_t twin;              /* constant: MRs: what the NIC has; 0: nothing */
    struct vmri_range range;
};

/*
 * The key of qp's device with a reference, when it is of this PD, grants
 * `access` to qp and holds addr .. addr + length - 1.  Else NULL and *verr is
 * VMRI_VERR_KEY, _PD, _RIGHTS or _BOUNDS.
 */
struct vmri_key *vmri_key_get(const struct vmri_qp *qp,
                              const struct vmri_pd *pd, uint32_t key,
                              uint32_t access, uint64_t addr, uint64_t length,
                              uint16_t *verr);
/* Does a key, which is referred to, grant that? */
static inline bool vmri_key_grants(const struct vmri_key *k,
                                   const struct vmri_qp *qp,
                                   const struct vmri_pd *pd, uint32_t access)
{
    return k->range.pd == pd && (!k->qp || k->qp == qp) &&
           !(access & ~k->range.access);
}
/* The same, whatever it holds. */
struct vmri_key *vmri_key_find(const struct vmri_qp *qp,
                               const struct vmri_pd *pd, uint32_t key,
                               uint32_t access, uint16_t *verr);
static inline void vmri_key_put(struct vmri_key *k)
{
    vmri_slot_put(k->slot);
}
/*
 * Give a new key a number of its device, this one or VMRI_HANDLE_ANY: as
 * vmri_table_reserve.
 */
int vmri_key_reserve(struct vmri_key *k, uint32_t want);
/*
 * The frame (or gfn) that holds byte `addr` of the range, which is within its
 * bounds, and the offset there; returns how many bytes from it on lie in
 * contiguous frames.
 */
static inline uint64_t vmri_range_frame(const struct vmri_range *r,
                                        uint64_t addr, env_frame_t *frame,
                                        uint32_t *offset)
{
    uint64_t byte = addr - r->iova + r->offset;
    uint32_t page = env_nospec(byte >> VMRI_PAGE_SHIFT, r->pages.nr);
    uint32_t run;

    *frame = vmri_pages_at(&r->pages, page, &run);
    *offset = byte & (VMRI_PAGE_SIZE - 1);

    return ((uint64_t)run << VMRI_PAGE_SHIFT) - *offset;
}

/* What is registered: rights that need others, a range that wraps around. */
bool vmri_rights_valid(uint32_t access);
bool vmri_bounds_valid(uint64_t iova, uint64_t length);

/*
 * For a command: make the key, of one of `kinds` (ORed), busy, having waited
 * for others who change it.  -ENOENT; -EBUSY: windows are bound to it.
 */
int vmri_key_claim(struct vmri_dev *dev, uint32_t key, unsigned int kinds,
                   struct vmri_key **k);
void vmri_key_unclaim(struct vmri_key *k);
/*
 * For a request, under dev->lock: qp's device's key if it is of one of `kinds`,
 * of this PD, and nobody changes it.  Else NULL and *verr.
 */
struct vmri_key *vmri_key_peek(const struct vmri_qp *qp,
                               const struct vmri_pd *pd, uint32_t key,
                               unsigned int kinds, uint16_t *verr);
/* End a claimed one: nobody finds it, or refers to it, any more. */
void vmri_key_kill(struct vmri_key *k);
/* Do two keys differ in what their user may choose alone? */
static inline bool vmri_key_renames(uint32_t key, uint32_t name)
{
    return !((key ^ name) & ~0xffU);
}

/*
 * Take away what a fast MR or a type 2 window grants, in the name of qp: the
 * requester for its own key, the responder for one that its peer names
 * (`remote`).  By the PD and the privilege of `rings`: qp's, or those of the SRQ
 * that an XRC message names.  On return no copy that resolved it is in flight.
 */
uint16_t vmri_key_invalidate(const struct vmri_qp *qp,
                             const struct vmri_rings *rings, uint32_t key,
                             bool remote);
/* Is it a request that changes a key and moves nothing?  Do it. */
bool vmri_key_request(unsigned int opcode);
enum vmri_step vmri_key_step(struct vmri_qp *qp);

/* ---- memory regions (mr.c, pin.c) ---- */

enum vmri_mr_state {
    VMRI_MR_PINNING,            /* being registered; not visible */
    VMRI_MR_LIVE,
    VMRI_MR_UNPINNING,          /* killed, or given up before it was visible */
};

struct vmri_mr {
    struct vmri_key k;          /* busy, while pending: a call is at it */
    /* The rest serves registering and deregistering. */
    enum vmri_mr_state state;   /* by dev->lock */
    int error;                  /* how the command ends that lets it go */
    uint64_t gfns;              /* guest address of the list */
    uint32_t replaces;          /* key of the MR that is to become this one */
    bool same;                  /* with that one's frames */
    struct list_head pending;   /* by dev->lock */
};

int vmri_mr_register(struct vmri_dev *dev, struct vmri_mr_register *arg,
                     struct vmri_call *call);
int vmri_mr_reregister(struct vmri_dev *dev, struct vmri_mr_reregister *arg,
                       struct vmri_call *call);
/* Fast ones, too. */
int cf_check vmri_mr_deregister(struct vmri_dev *dev, uint32_t key,
                                struct vmri_call *call);
/*
 * End what cannot go on: the command on an MR of call->ticket, or (key not 0)
 * an MR whose key the guest cannot be told.  `error`, or -ERESTART: the
 * command goes on, and ends with that error.
 */
int vmri_mr_abandon(struct vmri_dev *dev, uint32_t key, struct vmri_call *call,
                    int error);
/*
 * For vmri_dev_close: give up registrations that nobody continues, finish
 * deregistrations.  0, or -ERESTART while there are any left.
 */
int vmri_mr_reap(struct vmri_dev *dev);

/*
 * pin.c: MRs that are pending, each a matter of many calls.  A call works on
 * one that it has claimed, and unclaims it when it stops before the end.
 */
void vmri_mr_pend(struct vmri_mr *mr, enum vmri_mr_state state, int error);
/* Take a claimed one off the list: it becomes visible. */
void vmri_mr_unpend(struct vmri_mr *mr);
/* By ticket: 0; -ERESTART: another call is at it; -ENODEV: it has finished. */
int vmri_mr_continue(struct vmri_dev *dev, struct vmri_call *call,
                     struct vmri_mr **out);
/* Stop for now: -ERESTART, with a ticket, and unclaimed. */
int vmri_mr_stop(struct vmri_mr *mr, struct vmri_call *call);
/* Let a pending one go: the command ends with `error` when it is gone. */
void vmri_mr_give_up(struct vmri_mr *mr, int error);
/* Go on with getting all frames: 0, -ERESTART, or why not. */
int vmri_mr_pin(struct vmri_mr *mr);
/* Go on with one that goes: 0, or as vmri_mr_stop. */
int vmri_mr_demolish(struct vmri_mr *mr, struct vmri_call *call);
/* One that was never pending. */
void vmri_mr_free(struct vmri_mr *mr);

/* ---- fast memory regions (fast.c) ---- */

int vmri_fast_alloc(struct vmri_dev *dev, struct vmri_mr_alloc *arg);
/* A claimed one. */
void vmri_fast_free(struct vmri_key *k);
/* The request in qp->tx: VMRI_VERR_*. */
uint16_t vmri_fast_register(struct vmri_qp *qp);

/* ---- memory windows (mw.c) ---- */

struct vmri_mw {
    struct vmri_key k;
    bool type2;                 /* constant */
    struct vmri_key *mr;        /* by dev->lock: bound to; NULL: unbound */
    struct list_head list;      /* by dev->lock: in dev->mws */
    struct list_head bound;     /* by dev->lock, type 2: in qp->mws */
};

int vmri_mw_alloc(struct vmri_dev *dev, struct vmri_mw_alloc *arg);
int vmri_mw_free(struct vmri_dev *dev, uint32_t key);
/* The request in qp->tx: VMRI_VERR_*. */
uint16_t vmri_mw_bind(struct vmri_qp *qp);
/* Unbind a window that the caller has made busy; it stays busy. */
void vmri_mw_unbind(struct vmri_mw *mw);
/*
 * Of a QP that goes: let no window be bound to it any more, and unbind those
 * that are.  0, or -ERESTART to be called again.
 */
int vmri_mw_leave_qp(struct vmri_qp *qp);
/* For vmri_dev_close: free all windows.  0 or -ERESTART. */
int vmri_mw_close(struct vmri_dev *dev);

#endif /* VMRI_KEY_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
