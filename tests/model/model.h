/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A reference model of VMRI, and programs that hold the real one against it.
 *
 * A cell is a world of its own: two sides, each with a device that it shares
 * with other cells, memory, queues and one end of each link; a link is a pair
 * of queue pairs.  What a cell does is drawn from its own random numbers and
 * from the model alone, never from what VMRI answers: so a seed names a
 * program, whatever the number of threads.  The model (oracle.c) does each
 * request at once, in the plainest way; VMRI does it when it comes to it.  At
 * the end of a round every completion, event and byte must be as the model has
 * it (drive.c), at the end of an epoch every counter and usage (tally.c).
 *
 * So that the model need not know who runs first, what a direction of a link
 * touches no other does: each side's memory has a half for each direction.
 */
#ifndef VMRI_MODEL_H
#define VMRI_MODEL_H

#include "guest.h"

#include <stdio.h>
#include <stdlib.h>

#define SIDES       2
#define LINKS       2
#define REGIONS     6           /* of a direction, on each side: pinned ones */
#define WINDOWS     3           /* the same; and memory windows */
#define FASTS       2           /* and fast regions */
#define NAMED       (REGIONS + WINDOWS + FASTS)
#define FAST_FRAMES 8U
#define PDS         2           /* of a side; queue pairs use either */
#define XRCDS       2           /* the same; targets are of one */
#define CQS         2
#define SRQS        4           /* the first one is for all but XRC */
#define DEPTH       32U         /* the most requests in a queue */
#define SGES        8U          /* in a request's slot */
#define INDIRECT    24U         /* through the indirect list */
#define IND_LOG2    7U
#define INLINE      200U
#define HALF_PAGES  40U
#define HALF        (HALF_PAGES * 4096U)
#define QP_PAGES    9U
#define CQ_LOG2     8U          /* the largest */
#define CQ_PAGES    5U

/* ---- random numbers ---- */

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* 0 .. n - 1 */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
    return (uint32_t)(rng_next(r) % n);
}

static inline bool rng_percent(struct rng *r, unsigned int percent)
{
    return rng_below(r, 100) < percent;
}

/* ---- what the model knows ---- */

struct qp;

enum kind {
    KIND_REGION, KIND_WINDOW1, KIND_WINDOW2, KIND_FAST,
};

/* Something that has a key. */
struct region {
    enum kind kind;
    uint32_t key;               /* 0: none */
    bool live;                  /* it names memory */
    const struct qp *owner;     /* windows of type 2: who bound it */
    struct region *of;          /* a window's region, when bound */
    unsigned int users;         /* windows that are bound to it */
    uint32_t old_key;           /* one that it had a moment ago, or 0 */
    uint32_t pd;                /* index */
    uint32_t access;
    uint64_t iova;
    uint32_t length;
    uint32_t at;                /* of the first byte in the side's memory */
};

struct memory {
    uint64_t gfn;
    uint8_t *mem;               /* what the guest sees */
    uint8_t *image;             /* what it should see */
};

struct send {
    struct vmri_send_wqe wqe;
    struct vmri_sge sge[INDIRECT];
    uint8_t data[INLINE + 1];
    uint64_t posted;            /* when */
    uint16_t verr;              /* how the model ended it */
    uint8_t status;
};

struct recv {
    struct vmri_recv_wqe wqe;
    struct vmri_sge sge[INDIRECT];
};

/* One queue; indices run freely. */
struct wq {
    uint8_t log2, log2_stride, max_sge;
    uint32_t offset;
    uint32_t prod;              /* posted */
    uint32_t done;              /* by the model */
    uint32_t base;              /* what VMRI has certainly given back */
};

/* A completion that must come. */
struct want {
    struct vmri_cqe cqe;
    uint64_t not_before;        /* its time */
    uint64_t not_after;         /* where only this program moves the clock */
};

/* Those of a queue, in order. */
struct wants {
    uint32_t head, tail;
    struct want want[2 * DEPTH];
};

struct side;

/* Whose keys the entries of a list name. */
struct keys {
    struct side *side;
    const struct qp *qp;        /* NULL: a shared receive queue's */
    unsigned int pd;
    bool kernel;
};

/* Where receives come from: a queue pair's own queue, or a shared one. */
struct rq {
    struct keys keys;
    struct wq wq;
    uint8_t *mem;
    struct vmri_wq_hdr *hdr;
    struct recv recv[DEPTH];
    bool starved;               /* no more until the round's end */
    uint32_t handle;            /* a shared one's; 0: there is none */
    uint32_t old_handle;        /* of one that there was, or 0 */
    unsigned int xrcd;          /* XRC: index; always the same */
    struct cq *cq;              /* XRC: where they complete; else NULL */
    uint32_t limit;             /* below it an event comes; 0: it has */
    bool taken, low;            /* a receive since; so many that it may have */
    uint64_t gfn, spare;        /* where it is, and will be when resized */
    uint32_t pages;
};

struct cq {
    struct side *side;
    uint32_t handle;
    uint32_t log2;
    uint32_t cons;
    uint64_t gfn, spare;        /* where it is, and will be when resized */
    struct vmri_cq_hdr *hdr;
    struct vmri_cqe *entry;
    bool waiting;               /* armed: not looked at before an event */
    bool solicited;             /* armed for these alone, and none seen yet */
    uint64_t arms, events;      /* told of once; of these */
    uint32_t wanted;            /* completions that must come */
    bool closed;                /* not looked at before it has run over */
    uint32_t room;              /* then: for so many more */
    bool dead;                  /* it must run over, or has */
    bool error_due;             /* and the event is still to come */
};

struct qp {
    struct side *side;
    struct qp *peer;
    unsigned int link;
    uint32_t qpn;               /* atomic: others ring it; 0: there is none */
    struct vmri_qp_create arg;
    struct vmri_qp_modify attr; /* what a query tells */
    bool established;
    bool unrung;                /* something was posted since */
    uint64_t gfn;
    uint8_t *mem;
    struct vmri_qp_hdr *hdr;
    struct cq *scq, *rcq;
    struct keys keys;
    struct wq sq;
    struct send send[DEPTH];
    /* &own, or the side's shared one; XRC: that the next message names. */
    struct rq *rq;
    struct rq own;
    unsigned int xrcd;          /* targets: index */
    bool claimed;               /* a message that failed has taken `claim` */
    struct rq *claim_rq;        /* from there; NULL: that is gone */
    struct recv claim;
    uint32_t ind_prod;
    uint32_t ind_used;          /* entries that may still be read */
    struct wants sends, recvs[CQS];     /* receives by where they complete */
    uint32_t due;               /* events that must come, bits of types */
    uint32_t allowed;           /* that may */
};

struct side {
    struct cell *cell;
    struct guest *guest;        /* domain and device, of several cells */
    unsigned int index;
    uint32_t pd[PDS];
    uint32_t xrcd[XRCDS];
    struct guest_eq eq;
    struct cq cq[CQS];
    struct memory memory;
    struct region region[SIDES][NAMED];     /* by direction */
    struct qp qp[LINKS];
    struct rq srq[SRQS];
    struct vmri_ctl_port port;  /* of a device that is the cell's own */
    uint32_t port_due;          /* its events that must come, bits of types */
    uint64_t usage[VMRI_RES_NR];
    struct vmri_qp_counters types[VMRI_STAT_MAX];
    struct vmri_counters counters;          /* those of no type */
};

/* Bytes that were written, or may have been. */
struct touched {
    struct side *side;
    uint32_t at, length;
    uint8_t *old;               /* NULL: must have been; else what was there */
};

#define TOUCHED     2048U

struct cell {
    unsigned int number;
    struct rng rng;
    struct side side[SIDES];
    struct touched touched[TOUCHED];
    uint32_t nr_touched;
    bool touched_all;           /* too many to be told apart */
    bool clean;                 /* nothing may fail at the moment */
    bool needs_clock;           /* a completion comes with time alone */
    struct qp *attached[SIDES * LINKS];     /* to the cell's group, in order */
    unsigned int nr_attached;
    bool mortal;                /* side 1 has a domain of its own */
    uint64_t slack;             /* that a wait may take longer, in ns */
    uint64_t ops, quota;
    uint64_t wr_id;
    const char *step;           /* what it is at, for messages */
};

/* ---- main.c ---- */

extern bool model_alone;        /* one thread: all is determined */
/* The cell that this thread drives, for messages. */
extern __thread struct cell *model_cell;

/* ---- calls.c: the hypervisor's commands, counted ---- */

long side_call(struct side *s, unsigned int cmd, void *arg, size_t bytes);
long side_destroy(struct side *s, unsigned int cmd, uint32_t handle);
/* VMRI_OP_schedule until there is nothing left to do. */
void side_schedule(struct side *s, uint32_t qpn);
/* Receives were posted that somebody waits for: QP or, for 0, SRQ. */
void side_kick(struct side *s, uint32_t qpn, uint32_t srqn);
/* The same for somebody who only disturbs: no error matters. */
void side_disturb(struct side *s, uint32_t qpn);
uint32_t side_create_pd(struct side *s);
uint32_t side_create_xrcd(struct side *s);
void side_create_eq(struct side *s);
void cq_make(struct cq *cq, unsigned int log2);
void cq_unmake(struct cq *cq);
/* Go on elsewhere, with what has not been looked at yet; a dead one refuses. */
void cq_move(struct cq *cq, unsigned int log2);
/* A pinned region as r has it. */
void region_register(struct side *s, struct region *r);
/* One without memory yet, of r->kind. */
void region_alloc(struct side *s, struct region *r);
/* Of any kind; -EBUSY while windows are bound to it. */
long region_free(struct side *s, struct region *r);
/* New rights, PD or memory for a pinned region, as VMRI_REREG_* of `to` say. */
void region_change(struct side *s, struct region *r, uint32_t flags,
                   const struct region *to);
/* With places for `log2` receives of `sge` entries. */
void srq_make(struct rq *rq, unsigned int log2, unsigned int sge,
              uint32_t limit);
void srq_unmake(struct rq *rq);
/* Go on elsewhere, with places for 2^log2; false: too few for what is posted. */
bool srq_move(struct rq *rq, unsigned int log2);
/* q->arg says what is wanted; places and frames are filled in here. */
void qp_make(struct qp *q);
void qp_unmake(struct qp *q);

/* ---- oracle.c ---- */

static inline unsigned int qp_type(const struct qp *q)
{
    return q->arg.type;
}

static inline bool qp_is_datagram(const struct qp *q)
{
    return q->arg.type == VMRI_QPT_UD;
}

static inline bool qp_is_xrc(const struct qp *q)
{
    return q->arg.type == VMRI_QPT_XRC_INI || q->arg.type == VMRI_QPT_XRC_TGT;
}

static inline bool qp_is_reliable(const struct qp *q)
{
    return q->arg.type == VMRI_QPT_RC || qp_is_xrc(q);
}

/* XRC goes one way. */
static inline bool qp_sends(const struct qp *q)
{
    return q->arg.type != VMRI_QPT_XRC_TGT;
}

static inline bool qp_receives(const struct qp *q)
{
    return q->arg.type != VMRI_QPT_XRC_INI;
}

static inline bool qp_is_kernel(const struct qp *q)
{
    return q->arg.flags & VMRI_QPF_KERNEL;
}

/* Do its receives come from shared queues? */
static inline bool qp_shares(const struct qp *q)
{
    return q->rq != &q->own;
}

static inline uint32_t wq_posted(const struct wq *wq)
{
    return wq->prod - wq->done;
}

/* VMRI may be behind the model within a round. */
static inline uint32_t wq_room(const struct wq *wq)
{
    return (1U << wq->log2) - (wq->prod - wq->base);
}

static inline bool is_send(unsigned int opcode)
{
    return opcode == VMRI_WR_SEND || opcode == VMRI_WR_SEND_WITH_IMM ||
           opcode == VMRI_WR_SEND_WITH_INV;
}

/* Is a receive of the peer used up? */
static inline bool takes_receive(unsigned int opcode)
{
    return is_send(opcode) || opcode == VMRI_WR_RDMA_WRITE_WITH_IMM;
}

/* Where q's counters are. */
struct vmri_qp_counters *qp_counters(struct qp *q);
/* A completion of q's has come: it was counted. */
void qp_counted(struct qp *q, const struct vmri_cqe *cqe);
/* The length of a list. */
uint64_t list_bytes(const struct vmri_sge *sge, unsigned int num);
/*
 * Where a request of q's takes its receive from, if it takes one; XRC: the
 * queue that it names, or NULL if that is none of the target's domain.
 */
struct rq *rq_of(const struct qp *q, const struct send *s);
/* Where q's receives of a queue complete. */
static inline struct cq *recv_cq(const struct qp *q, const struct rq *rq)
{
    return rq->cq ? rq->cq : q->rcq;
}
/* What the key of a request may name at its peer. */
struct keys remote_keys(const struct qp *q, const struct send *s);
/* Do all that can be done for both ends. */
void oracle_run(struct qp *q);
/* A queue pair's state changes: what is posted is flushed, or forgotten. */
void oracle_state(struct qp *q, unsigned int state);

/* ---- oracle_keys.c: requests that change what keys name ---- */

static inline bool changes_key(unsigned int opcode)
{
    return opcode == VMRI_WR_BIND_MW || opcode == VMRI_WR_LOCAL_INV ||
           opcode == VMRI_WR_REG_MR;
}

/* Do one: VMRI_VERR_*. */
uint16_t oracle_key(struct qp *q, const struct send *s);
/* `remote`: named by the peer, in a SEND. */
uint16_t oracle_invalidate(const struct keys *keys, uint32_t key, bool remote);
/* A queue pair goes: its windows of type 2 are unbound. */
void oracle_unbind(struct qp *q);

/* ---- memory.c ---- */

void memory_make(struct side *s);
/* Pieces of the model's memory, in order. */
struct spans {
    unsigned int num;
    uint64_t bytes;             /* all together */
    uint16_t verr;              /* why it ends before what was asked for */
    struct {
        uint8_t *at;
        uint32_t length;
    } span[INDIRECT + 1];
};
struct region *region_of_key(struct side *s, uint32_t key);
/* The same for any of the names that a key's user may give it. */
struct region *region_of_number(struct side *s, uint32_t key);
/* Beside VMRI_ACCESS_*: a queue pair's own list names it. */
#define ACCESS_LISTED   0x80000000U
/* VMRI_VERR_*: may a key be used so, and for these bytes, if bounded? */
uint16_t key_verdict(const struct keys *keys, uint32_t key, uint32_t access,
                     bool bounded, uint64_t addr, uint32_t length);
void spans_of_bytes(struct spans *s, uint8_t *p, uint32_t length);
/* Entries of a list, as far as `want` bytes reach and all is well. */
void spans_of_list(struct spans *s, const struct keys *keys,
                   const struct vmri_sge *sge, unsigned int num,
                   uint32_t access, uint64_t want);
/* A range of what a key names, whole or not at all. */
void spans_of_range(struct spans *s, const struct keys *keys, uint32_t key,
                    uint64_t addr, uint32_t length, uint32_t access);
/* Leave out the first bytes. */
void spans_skip(struct spans *s, uint32_t bytes);
/*
 * Move `bytes`, which both have, into `side`; `surely` says whether they must
 * have arrived, or may have.
 */
void spans_copy(struct side *side, const struct spans *to,
                const struct spans *from, uint64_t bytes, bool surely);
/* The guest's own CPU writes: both memories. */
void memory_scribble(struct side *s, uint32_t at, uint32_t length,
                     uint32_t seed);
/* All that was touched is as it must be; nothing runs. */
void memory_verify(struct cell *c);
/* All memory is. */
void memory_verify_all(struct cell *c);

/* ---- drive.c ---- */

void post_send(struct qp *q, const struct send *s);
void post_recv(struct qp *q, const struct recv *r);
void ring(struct qp *q);
/* Take events, and completions where they may be looked at: was there any? */
bool serve(struct cell *c);
/* Wait for an event before looking at a completion queue; or do so at times. */
void arm(struct cq *cq, bool solicited);
void maybe_arm(struct cell *c);
/* Ring, wait for all that must come, and look at the memory. */
void settle(struct cell *c);
/* False: it finds no room. */
bool want_completion(struct qp *q, struct cq *cq, bool receive,
                     const struct want *w);
/* Do not look at an empty one before it has run over. */
void cq_close(struct cq *cq);
/* Take what is left in an event queue that goes. */
void drain_events(struct side *s);

/* ---- show.c ---- */

/* What a cell's queues and keys are at, for messages. */
void cell_show(const struct cell *c);

/* ---- request.c: requests, as they fall ---- */

/* The receive that q's next message will get, or NULL. */
const struct recv *next_recv(struct qp *q);
/* The first queue that waiting messages of q's take more from than it has. */
struct rq *lacks_receive(struct qp *q);
/* What the first of them needs of its receive; 0: there is none. */
uint32_t needed(struct qp *q, const struct rq *rq);
/* XRC: q's next message names any queue of the target's domain. */
void choose_queue(struct qp *q);
/* The list of a receive with room for `length` bytes at least. */
void make_recv(struct qp *q, uint32_t length, struct recv *r);
/* A good request of at most `limit` bytes. */
void make_send(struct qp *q, unsigned int opcode, uint32_t limit,
               struct send *s);
/* What q and its peer do and allow. */
unsigned int pick_opcode(struct qp *q);
/* Make a good request wrong as such, in its list, or in what it names. */
void spoil_form(struct qp *q, struct send *s);
/* One that changes a key; false: there is none for it at the moment. */
bool make_key_request(struct qp *q, bool right, struct send *s);
void spoil_list(const struct keys *keys, unsigned int dir,
                struct vmri_sge *sge, unsigned int num);
void spoil_remote(struct qp *q, struct send *s);

/* ---- traffic.c ---- */

/* A few requests both ways. */
void traffic_round(struct qp *q);
/* Some of q's, of which one is wrong. */
void error_round(struct qp *q);
/* A receive for `length` bytes of payload at least; there is room. */
void recv_one(struct qp *q, uint32_t length);
bool may_receive(const struct qp *q);
/* Receives for all that waits for one. */
void fill_receives(struct qp *q);
/* Windows and fast regions are bound, registered and invalidated. */
void key_round(struct qp *q);
/* Post one that is right, if there is room. */
void send_one(struct qp *q);
/* The same of one kind, for the queue that was chosen. */
void send_opcode(struct qp *q, unsigned int opcode);
/* One that is wrong in some way. */
void send_spoiled(struct qp *q);
/* Does either end wait for something? */
bool link_waits(const struct qp *q);

/* ---- link.c ---- */

/* Choose the kind of a link's queue pairs and make them. */
void link_make(struct qp *q);
/* A shared receive queue, as it falls; there is none. */
void link_make_srq(struct side *s, unsigned int i);
void link_unmake(struct qp *q);
/* Both ends to RTS, with attributes as they fall. */
void link_connect(struct qp *q);
void qp_move(struct qp *q, unsigned int state);
/* An end that has failed: both anew. */
void link_recover(struct qp *q);
/* Modify and query, which change little. */
void link_round(struct qp *q);

/* ---- cell.c ---- */

/* The second guest of a mortal cell is no other's. */
void cell_make(struct cell *c, unsigned int number, uint64_t seed,
               struct guest *a, struct guest *b, bool mortal);
/* All that a side has on its device, from PDs to queue pairs' memory. */
void side_make(struct side *s);
void cell_step(struct cell *c);
/* Nothing waits any more. */
void cell_rest(struct cell *c);
void cell_unmake(struct cell *c);

/* ---- oracle_port.c ---- */

/* Only who has a device of its own can tell what comes of a change. */
static inline bool side_has_port(const struct side *s)
{
    return s->cell->mortal && s->index;
}
/* It is new, and as the hypervisor makes it. */
void port_begin(struct side *s);
/* dom0 changes something; the events that follow are all that come. */
void port_round(struct side *s);
/* One has come: false if none of its type was due. */
bool port_event(struct side *s, const struct vmri_event *ev);

/* ---- mcast.c: a group that is the cell's own ---- */

void group_mgid(const struct cell *c, uint8_t mgid[16]);
static inline uint16_t group_mlid(const struct cell *c)
{
    return (uint16_t)(VMRI_MLID_MIN + c->number);
}
/* A queue pair goes, and with it its attachment. */
void group_forget(struct qp *q);
/* Queue pairs join and leave, and q sends to those that are there. */
void group_round(struct qp *q);

/* ---- flood.c ---- */

/* A completion queue of q's, or of its peer's, runs over while q sends. */
void flood_round(struct qp *q);

/* ---- death.c ---- */

/* Give a domain a device and use it. */
void guest_begin(struct guest *g);
/* The second side's device or domain goes while q sends, and comes again. */
void death_round(struct qp *q);

/* ---- tally.c ---- */

/* What calls of a domain's device did, to be held against its counters. */
struct tally {
    uint64_t hypercalls, doorbells, events, upcalls;    /* atomic */
};
extern struct tally tallies[ENV_DOMAINS];

static inline struct tally *side_tally(const struct side *s)
{
    return &tallies[env_domid(s->guest->domain)];
}

/* Counters and usage of all devices are the sums of the cells'. */
void tally_check(struct guest **guests, unsigned int nr_guests,
                 struct cell *cells, unsigned int nr_cells);

#endif /* VMRI_MODEL_H */
