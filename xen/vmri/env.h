/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What VMRI needs of its surroundings.  This is the only header that includes
 * Xen's; tests compile the same sources in user space against env_user.h.
 *
 * A function whose name starts with env_ is implemented in env_xen.c, or for
 * tests in the fake environment; the inline ones are on the path of a message.
 */
#ifndef VMRI_ENV_H
#define VMRI_ENV_H

#ifdef __XEN__
#include <xen/types.h>
#include <xen/compiler.h>
#include <xen/domain_page.h>
#include <xen/errno.h>
#include <xen/kernel.h>
#include <xen/lib.h>
#include <xen/list.h>
#include <xen/mm.h>
#include <xen/nospec.h>
#include <xen/sched.h>
#include <xen/softirq.h>
#include <xen/spinlock.h>
#include <xen/string.h>
#include <xen/time.h>
#include <xen/timer.h>
#include <xen/trace.h>
#include <asm/page.h>

/* Xen has no names for them; the ABI uses Linux's numbers. */
#ifndef EINPROGRESS
#define EINPROGRESS 115
#endif
#ifndef EHOSTUNREACH
#define EHOSTUNREACH 113
#endif
#else
#include <stdio.h>
#include "env_user.h"
#endif

/*
 * Marks a function that is called through a pointer: a timer's, one in a
 * table. Xen's compiler needs it for indirect branch tracking.
 */
#ifndef cf_check
#define cf_check
#endif

#include <vmri/control.h>
#include <vmri/ring.h>
#include <vmri/trace.h>
#include <vmri/uplink.h>
#include <vmri/vmri.h>

struct domain;
struct vmri_domain;

/*
 * Locks carry their level.  A lock is taken only while all locks held have a
 * lower one; the order and what each protects are in internal.h.  The tests'
 * environment records and checks the levels, Xen compiles them away.
 */
enum env_level {
    LEVEL_CONTROL = 1,
    LEVEL_ROUTE,
    LEVEL_FABRIC,
    LEVEL_SERVICE,
    LEVEL_DEV,
    LEVEL_UPLINK,
    LEVEL_GID,
    LEVEL_TABLE,
    LEVEL_GROUP,
    LEVEL_QP,
    LEVEL_SRQ,
    LEVEL_CQ,
    LEVEL_RATE,
    LEVEL_PARK,
    LEVEL_EQ,
};

#ifdef __XEN__
typedef struct {
    spinlock_t lock;
} env_lock_t;

static inline void env_lock_init(env_lock_t *l, enum env_level level)
{
    spin_lock_init(&l->lock);
}

/* Timers run in softirqs of CPUs with interrupts on: no irqsave is needed. */
static inline void env_lock(env_lock_t *l)
{
    spin_lock(&l->lock);
}

static inline void env_unlock(env_lock_t *l)
{
    spin_unlock(&l->lock);
}

static inline void env_relax(void)
{
    cpu_relax();
}

/* Clamp an index below size, also for a speculating CPU. */
static inline uint32_t env_nospec(uint32_t index, uint32_t size)
{
    return array_index_nospec(index, size);
}
#endif

/*
 * Atomics.  The compiler's own, so that thread sanitizers see them in tests.
 * What guests share is only ever touched through these.
 */
#define env_load(p)             __atomic_load_n(p, __ATOMIC_RELAXED)
#define env_load_acquire(p)     __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define env_store(p, v)         __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define env_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define env_add(p, v)                                           \
    ((void)__atomic_fetch_add(p, v, __ATOMIC_RELAXED))
#define env_fetch_add(p, v)     __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL)
#define env_fetch_sub(p, v)     __atomic_fetch_sub(p, v, __ATOMIC_ACQ_REL)
#define env_fetch_or(p, v)      __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL)
#define env_fetch_and(p, v)     __atomic_fetch_and(p, v, __ATOMIC_ACQ_REL)
#define env_xchg(p, v)          __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL)
#define env_mb()                __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* Store v if *p is *old; else *old becomes what was there.  True if stored. */
#define env_cmpxchg(p, old, v)                                  \
    __atomic_compare_exchange_n(p, old, v, false,               \
                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

/* Memory of the hypervisor, zeroed; NULL when there is none. */
void *env_alloc(size_t bytes);
void env_free(void *p);
void *env_alloc_page(void);
void env_free_page(void *p);

/* Domains. */
struct domain *env_current(void);
unsigned int env_domid(const struct domain *d);
/* A domain that is not yet dying, kept from vanishing until env_domain_put. */
struct domain *env_domain_get(unsigned int domid);
void env_domain_put(struct domain *d);
bool env_domain_dying(const struct domain *d);
/* Its memory may be read and written: neither dying nor being saved. */
bool env_domain_running(const struct domain *d);
/* The most pages that it may have, of those that there are at all. */
uint64_t env_domain_pages(const struct domain *d);
/* VMRI_FEATURE_DOORBELL_*: how its processes can enter the hypervisor. */
uint32_t env_domain_doorbells(const struct domain *d);
/* Where the domain's VMRI state hangs; written under LEVEL_CONTROL only. */
struct vmri_domain **env_domain_state(struct domain *d);

/*
 * Security: 0, or -EPERM.  d is the target of a control command, may be NULL.
 */
int env_may_control(const struct domain *d, unsigned int cmd);
/* The same for requests of one domain that reach into another. */
int env_may_connect(const struct domain *from, const struct domain *to);

/* Machine frames. */
typedef uint64_t env_frame_t;

/*
 * Take a reference to a frame of plain RAM that the domain owns.  With
 * `writable` it is also kept from becoming a page table or descriptor table,
 * or refused when it is one.  -EPERM: not such a frame.  Called with no VMRI
 * lock held: it takes those of p2m and paging.
 */
int env_frame_get(struct domain *d, uint64_t gfn, bool writable,
                  env_frame_t *frame);
/*
 * The same for a machine frame that is referenced for this domain already,
 * for whose sake the other reference may be of the other kind.
 */
int env_frame_again(struct domain *d, env_frame_t frame, bool writable);
void env_frame_put(env_frame_t frame, bool writable);

/* After a write to so many, so that save, restore and migration see them. */
void env_frames_dirty(struct domain *d, env_frame_t first, uint32_t nr);

/*
 * Map for the length of a copy: at most 8 at a time, none across a
 * return.  The bytes up to the next multiple of env_run() are mapped too.
 */
#ifdef __XEN__
static inline void *env_map(env_frame_t frame)
{
    return map_domain_page(_mfn(frame));
}

static inline void env_unmap(const void *p)
{
    unmap_domain_page(p);
}

/*
 * How many of the `bytes` from `offset` into the frame one mapping covers,
 * when the frames that follow belong to the same run.
 */
static inline size_t env_run(env_frame_t frame, size_t offset, size_t bytes)
{
#ifdef NDEBUG
    /*
     * Without debugging map_domain_page() gives the direct map where it can.
     */
    if ( frame + PFN_UP(offset + bytes) <=
         PFN_DOWN(__pa(HYPERVISOR_VIRT_END - 1)) )
        return bytes;
#endif
    return min_t(size_t, bytes, PAGE_SIZE - offset);
}

/*
 * Atomically on eight aligned bytes of a mapped frame, towards its guest's
 * CPUs too; cmpxchg and add give what was there before.
 */
static inline uint64_t env_mapped_cmpxchg(uint64_t *p, uint64_t old,
                                          uint64_t v)
{
    env_cmpxchg(p, &old, v);

    return old;
}

static inline uint64_t env_mapped_add(uint64_t *p, uint64_t v)
{
    return env_fetch_add(p, v);
}

static inline void env_mapped_store(uint64_t *p, uint64_t v)
{
    env_store_release(p, v);
}

/* ns since boot: the guests' system time. */
static inline uint64_t env_now(void)
{
    return NOW();
}
#endif

/* Map for as long as a ring lives; NULL when there is no room. */
void *env_map_ring(env_frame_t frame);
void env_unmap_ring(void *p);

/* The calling domain's memory: 0 or -EFAULT. */
int env_copy_from_guest(void *to, uint64_t from, size_t bytes);
int env_copy_to_guest(uint64_t to, const void *from, size_t bytes);

/*
 * Event channels that Xen owns and the domain binds to itself.  alloc gives
 * the port, or a negative errno.  notify may be called with locks held.
 */
int env_port_alloc(struct domain *d, unsigned int vcpu);
void env_port_free(struct domain *d, unsigned int port);
void env_port_notify(struct domain *d, unsigned int port);

/* Timers.  fn runs once, at or after the time set, with no lock held. */
#ifdef __XEN__
struct env_timer {
    struct timer timer;
};
#endif
void env_timer_init(struct env_timer *t, void (*fn)(void *), void *data);
void env_timer_set(struct env_timer *t, uint64_t at);
/* On return fn does not run and will not again. */
void env_timer_kill(struct env_timer *t);

/* Should a long command stop here, to be continued? */
bool env_preempt(void);

/*
 * Write a record of <vmri/trace.h> with up to 7 words, when anybody traces.
 * Any lock may be held.
 */
#define env_trace(event, ...) do {                              \
    if ( unlikely(env_tracing()) )                              \
    {                                                           \
        const uint32_t trace_[] = { __VA_ARGS__ };              \
        env_trace_write(event, trace_, sizeof(trace_));         \
    }                                                           \
} while ( 0 )
void env_trace_write(uint32_t event, const uint32_t *words, size_t bytes);
#ifdef __XEN__
static inline bool env_tracing(void)
{
    return tb_init_done;
}
#endif

/*
 * For the console dump only.  The console is slow: between lines, others get
 * their turn.
 */
#ifdef __XEN__
#define env_print(fmt, ...) printk(fmt, ## __VA_ARGS__)
static inline void env_dump_yield(void)
{
    process_pending_softirqs();
}
#else
static inline void env_dump_yield(void) {}
void env_print(const char *fmt, ...)
    __attribute__((__format__(__printf__, 1, 2)));
#endif

#endif /* VMRI_ENV_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
