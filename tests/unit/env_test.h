/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fake environment as tests see it: domains with pages of every kind, a
 * clock that stands still until it is told to move, failures on demand, and a
 * final look that nothing was left behind.
 *
 * Everything lives from env_test_begin() to env_test_end().
 */
#ifndef VMRI_ENV_TEST_H
#define VMRI_ENV_TEST_H

#include <setjmp.h>

#include "env.h"

/* ---- begin and end ---- */

void env_test_begin(void);
/*
 * Panics unless no frame is referenced or mapped, no memory allocated, no port
 * open, no timer alive, no domain referenced or left with VMRI state.
 */
void env_test_end(void);
/* After each call of the hypervisor: no lock held, nothing mapped. */
void env_test_returned(void);

/* ---- domains ---- */

#define ENV_DOMAINS     8
#define ENV_PORTS       64
#define ENV_VCPUS       4

enum env_page_kind {
    ENV_RAM,            /* plain memory */
    ENV_PAGE_TABLE,     /* plain memory in use as a page or descriptor table */
    ENV_SPECIAL,        /* owned, but a page that Xen manages */
    ENV_GRANT,          /* a mapping of somebody else's page */
    ENV_HOLE,           /* nothing there */
};

/* Domain 0 exists from the start and is privileged. */
struct domain *env_test_domain(unsigned int domid);
/* Xen's view of a domain that is being destroyed, made anew, saved, resumed. */
void env_test_domain_dying(struct domain *d);
void env_test_domain_reborn(struct domain *d);
void env_test_domain_running(struct domain *d, bool running);
/* The domain whose hypercall this thread is in. */
struct domain *env_test_enter(struct domain *d);

/*
 * Give a domain nr frames at consecutive gfns; the first gfn.  They are
 * contiguous in the machine too unless scattered, then in descending order.
 */
uint64_t env_test_pages(struct domain *d, unsigned int nr, bool scattered);
/* What lies at a gfn from now on. */
void env_test_page_kind(struct domain *d, uint64_t gfn, enum env_page_kind kind);
/* The guest tries to make it a page table: false while pinned as writable. */
bool env_test_page_pin_table(struct domain *d, uint64_t gfn);
/* The guest's own view of its memory; consecutive gfns are contiguous there. */
void *env_test_mem(struct domain *d, uint64_t gfn);
env_frame_t env_test_frame(struct domain *d, uint64_t gfn);
/* References that VMRI holds on a page. */
unsigned int env_test_page_refs(struct domain *d, uint64_t gfn);
/* How often it was marked dirty. */
unsigned int env_test_page_dirty(struct domain *d, uint64_t gfn);

/*
 * Memory of this thread's guest that env_copy_* may touch.  Everything else is
 * -EFAULT.  Hide undoes the last expose.
 */
void env_test_expose(void *p, size_t bytes);
void env_test_hide(void);

/* How often a port was notified since the last look. */
unsigned int env_test_notified(struct domain *d, unsigned int port);
unsigned int env_test_ports(struct domain *d);

/* ---- clock ---- */

/* Move the clock, firing what falls due at its time. */
void env_test_advance(uint64_t ns);
/* When the next timer is due; 0: none is set. */
uint64_t env_test_next_timer(void);

/* ---- switches ---- */

/* env_preempt says yes every nth time; 0: never. */
void env_test_preempt(unsigned int n);
/* Mappings cover one frame (true, the default) or a whole run. */
void env_test_one_frame(bool on);
/* VMRI_FEATURE_DOORBELL_* of all domains: one of them, until changed. */
void env_test_doorbells(uint32_t features);
/* env_may_control refuses. */
void env_test_deny(bool on);
/* The same for what concerns this domain; or NULL. */
void env_test_deny_over(const struct domain *d);
/* env_may_connect refuses what comes from this domain or goes there; or NULL. */
void env_test_silo(const struct domain *d);
/* How often env_may_connect was asked since the last call of this. */
unsigned int env_test_connect_asked(void);

/*
 * The nth next call fails, once; 0: none; ENV_ALWAYS: all from now on.
 * env_test_fail_left tells whether the failure is still to come.
 */
#define ENV_ALWAYS  (~0U)
enum env_failure {
    ENV_FAIL_ALLOC,     /* env_alloc, env_alloc_page: NULL */
    ENV_FAIL_FRAME,     /* env_frame_get: -EPERM */
    ENV_FAIL_COPY_FROM, /* env_copy_from_guest: -EFAULT */
    ENV_FAIL_COPY_TO,   /* env_copy_to_guest: -EFAULT */
    ENV_FAIL_PORT,      /* env_port_alloc: -ENOSPC */
    ENV_FAIL_MAP_RING,  /* env_map_ring: NULL */
    ENV_FAIL_NR
};
void env_test_fail(enum env_failure what, unsigned int nth);
bool env_test_fail_left(enum env_failure what);

/* ---- what happened ---- */

/*
 * Note the locks that this thread takes from now on, each once; NULL: no more.
 * More than there is room for is a panic.
 */
struct env_lock_set {
    const env_lock_t *lock[64];
    unsigned int nr;
};
void env_test_note_locks(struct env_lock_set *set);
/* How many are in both. */
unsigned int env_test_common_locks(const struct env_lock_set *a,
                                   const struct env_lock_set *b);

/* What an allocation may count for more than was asked for. */
#define ENV_ALLOC_SLACK 32

struct env_stats {
    uint64_t allocated;     /* bytes of hypervisor memory, now */
    uint64_t allocations;   /* now */
    uint64_t alloc_calls;   /* ever */
    uint64_t largest;       /* the largest single allocation so far */
    uint64_t copied;        /* bytes from mapped frame to mapped frame */
    uint64_t staged;        /* bytes between mapped frames and elsewhere */
    uint64_t rings;         /* ring mappings, now */
    uint64_t preempts;      /* times env_preempt was asked */
    uint64_t maps;          /* env_map calls */
    uint64_t relaxed;       /* env_relax calls: somebody waits */
};
extern struct env_stats env_stats;

/*
 * Trace: off at first.  How often an event was recorded since env_test_begin,
 * and the words of its last record (7, those not given being 0).
 */
void env_test_trace(bool on);
unsigned int env_test_traced(uint32_t event, uint32_t words[7]);

/* What env_print wrote since env_test_begin. */
const char *env_test_printed(void);

/*
 * Call fn once, at the beginning of the nth next env_map: in the middle of a
 * copy.  What could wait for that copy belongs into another thread:
 * env_test_aside() starts one and returns when it has ended or waits.
 */
void env_test_on_map(unsigned int nth, void (*fn)(void *), void *data);
/* The same when the nth next lock of a level has been taken. */
void env_test_on_lock(enum env_level level, unsigned int nth,
                      void (*fn)(void *), void *data);
/* The same when it has been let go of. */
void env_test_on_unlock(enum env_level level, unsigned int nth,
                        void (*fn)(void *), void *data);
/* The same in the nth next notification, where VMRI may hold locks. */
void env_test_on_notify(unsigned int nth, void (*fn)(void *), void *data);
/* The same in the nth next env_preempt: in the middle of a long command. */
void env_test_on_preempt(unsigned int nth, void (*fn)(void *), void *data);
void env_test_aside(void (*fn)(void *), void *data);
/* Wait until it has ended; true if there was one. */
bool env_test_aside_end(void);

/* Run a statement that must panic; true if it did. */
extern __thread sigjmp_buf *env_panic_to;
extern __thread char env_panic_text[256];
#define EXPECT_PANIC(stmt) ({                                   \
    sigjmp_buf panic_buf_, *panic_prev_ = env_panic_to;         \
    volatile bool panicked_ = true;                             \
    env_panic_to = &panic_buf_;                                 \
    if ( !sigsetjmp(panic_buf_, 0) )                            \
    {                                                           \
        stmt;                                                   \
        panicked_ = false;                                      \
    }                                                           \
    env_panic_to = panic_prev_;                                 \
    panicked_; })

#endif /* VMRI_ENV_TEST_H */
