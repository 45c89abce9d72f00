/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the targets share: a machine with a few guests, made anew for each input
 * and searched for remains after it, and calls whose results are looked at.
 *
 * A finding is a panic: what a sanitizer, the fake environment (a lock held, a
 * frame not put, a page written that may not be) or the checks here report.
 */
#ifndef VMRI_FUZZ_H
#define VMRI_FUZZ_H

#include "env_test.h"
#include "input.h"
#include "internal.h"

#undef memcpy
#undef memset

/* ---- a target: one of target_*.c is linked ---- */

/* Use the machine as the input says. */
void target_run(struct input *in);

/* ---- racing reads (race.c) ---- */

/*
 * Take from the input what happens to guests' memory while it is read from now
 * on; race_off: nothing does.
 */
void race_begin(struct input *in);
void race_off(void);
/*
 * What guests have in their virtual memory: the argument of the call, and lists
 * of frames, which are taken in turns.  Its reads race as those of rings do.
 */
#define USER_LISTS  4
#define LIST_MAX    64          /* frames in one command */
struct user_memory {
    uint8_t arg[1024];
    uint64_t list[USER_LISTS][LIST_MAX];
};
extern struct user_memory user;

/* ---- guests (stage.c) ---- */

#define ACTORS      3           /* domains 1 to 3; the third is on another fabric */
#define SLOTS       6           /* objects of a kind that a guest remembers */

/*
 * Pages of a guest: where rings lie, which may share pages, then memory, in one
 * piece and in many; and far from them pages that VMRI is never told of.
 */
#define RING_PAGES      40
#define RUN_PAGES       8
#define SCATTERED_PAGES 8
#define MEMORY_FIRST    RING_PAGES
#define MEMORY_PAGES    (RUN_PAGES + SCATTERED_PAGES)
#define PAGES           (MEMORY_FIRST + MEMORY_PAGES)
#define SECRET_PAGES    2

enum kind { PD, XRCD, EQ, CQ, SRQ, QP, MR, MW, KINDS };

/* Where requests lie in a ring, and how many were posted. */
struct queue {
    uint32_t offset;
    uint8_t log2_entries;
    uint8_t log2_stride;        /* 0: no such queue */
    uint32_t prod;
};

/* What a guest remembers of an object. */
struct object {
    uint32_t handle;            /* 0: none was made */
    uint32_t page;              /* first of its ring */
    uint8_t type;               /* QP */
    uint64_t iova;              /* MR, MW */
    struct queue send, recv;    /* QP, SRQ */
    struct queue indirect;
    uint32_t log2_entries;      /* EQ */
    uint32_t cons;              /* EQ */
};

struct actor {
    struct domain *domain;
    uint32_t dev;
    uint16_t lid;
    uint32_t uplink;            /* that its device is attached with; 0: none */
    uint8_t gid[16];            /* on a RoCE fabric; else zeroes */
    bool alive;
    bool trusts;                /* has made a queue of its kernel */
    uint64_t gfn;               /* of the first of its pages */
    uint8_t *mem;
    uint8_t *secret;
    struct object object[KINDS][SLOTS];
    uint32_t twin;              /* of the next QP or MR, and its number there */
    uint32_t number;
};

extern struct actor actors[ACTORS];

/* Make the machine, with attached and created devices; and take it down. */
void stage_begin(void);
void stage_end(void);

/* From now on no failures, no preemption, and no changes behind our back. */
void stage_quiet(void);

/*
 * A command of a guest, continued to its end: the result, which is 0, positive,
 * or an errno that the ABI has.  arg is what the guest's memory holds, size its
 * length.  Frames that arg names come from actor_list().
 */
long actor_call(struct actor *a, unsigned int cmd, void *arg, size_t size);
/* One step of it; ticket as Xen keeps it from one to the next. */
long actor_call_once(struct actor *a, unsigned int cmd, void *arg, size_t size,
                     uint32_t *ticket);
/* A command whose argument is a value. */
long actor_call_value(struct actor *a, unsigned int cmd, uint64_t value);
long dom0_call(unsigned int cmd, void *arg, size_t size);
/* A list of nr consecutive frames in the guest's memory. */
struct vmri_frames actor_list(struct actor *a, uint32_t page, uint32_t nr);
/* dom0 changes its port: the link goes and comes, numbers change. */
void actor_port(struct actor *a, struct input *in);
/* The domain ends, and comes back as a new one without devices. */
void actor_kill(struct actor *a);
/* dom0 gives it a device, which it creates. */
void actor_attach(struct actor *a, uint32_t fabric);
/* What waits in its event queues; queues that are ready are run. */
void actor_serve(struct actor *a);

/* ---- commands (commands.c) ---- */

#define FUZZ_QKEY   0x11111111
/* Groups that guests use, by the last byte of the MGID. */
#define FUZZ_GROUPS 3
void fuzz_mgid(uint8_t mgid[16], unsigned int group);

/*
 * Make an object in a slot, by default in the slot's own page and using the
 * objects of slot 0.  With `in`, the input spoils what it likes of it.
 */
long make_pd(struct actor *a, unsigned int slot);
long make_xrcd(struct actor *a, unsigned int slot);
long make_eq(struct actor *a, unsigned int slot, struct input *in);
long make_cq(struct actor *a, unsigned int slot, struct input *in);
/* `xrc`: for XRC targets. */
long make_srq(struct actor *a, unsigned int slot, bool xrc, struct input *in);
long resize_cq(struct actor *a, unsigned int slot, struct input *in);

#define MAKE_KERNEL     0x1     /* with an indirect list */
#define MAKE_SHARED     0x2     /* receives come from the SRQ of slot 0 */
#define MAKE_LONG       0x4     /* rings of several pages */
long make_qp(struct actor *a, unsigned int slot, unsigned int type,
             unsigned int how, struct input *in);
/*
 * A twin for the next queue pair or region that is made, which is said to be like it:
 * what twin_create gives.
 */
long twin_qp(struct actor *a, unsigned int type, unsigned int how,
             struct input *in);
long twin_mr(struct actor *a, unsigned int slot, struct input *in);
/* A step of a QP's life towards `state`, with all that it needs. */
long move_qp(struct actor *a, unsigned int slot, unsigned int state,
             const struct actor *peer, unsigned int peer_slot,
             struct input *in);
long destroy(struct actor *a, enum kind kind, unsigned int slot);
/* A queue pair is attached to a group. */
long join_group(struct actor *a, unsigned int slot, unsigned int group);
/* A device joins or leaves a group, or a queue pair of it does. */
long call_group(struct actor *a, struct input *in);
/* A device offers a service, takes one away, or asks for one. */
long call_service(struct actor *a, struct input *in);

/* Change bytes of a command as the input says. */
void spoil(struct input *in, void *arg, size_t size);
/* The handle of an object that a command uses: by default that of slot 0. */
uint32_t use(const struct actor *a, enum kind kind, struct input *in);
/* Remember what a command with this result has made; the result. */
long made(struct object *o, long rc, uint32_t handle, uint32_t page);

/* ---- commands about memory (memory.c) ---- */

long make_mr(struct actor *a, unsigned int slot, struct input *in);
/* A fast MR, which is remembered as an MR. */
long make_fast(struct actor *a, unsigned int slot, struct input *in);
/* A window, of type 1 in even slots. */
long make_mw(struct actor *a, unsigned int slot, struct input *in);
long reregister(struct actor *a, unsigned int slot, struct input *in);

/* ---- posting (post.c) ---- */

/* Requests that the input describes; nobody is told of them. */
void post_send(struct actor *a, unsigned int slot, const struct actor *peer,
               unsigned int peer_slot, struct input *in);
void post_recv(struct actor *a, unsigned int slot, struct input *in);
void post_srq(struct actor *a, unsigned int slot, struct input *in);
/* The address of a device. */
void aim_at(struct vmri_av *av, const struct actor *peer);
/* Bytes of the input into a ring of a guest. */
void scribble(struct actor *a, struct input *in);

#endif /* VMRI_FUZZ_H */
