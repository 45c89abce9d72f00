/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A machine for measuring: memory, domains, and what of the fake environment's
 * own interface (env_test.h) the guests of tests/unit use.
 */
#define _GNU_SOURCE
#include "env_bench.h"
#include "env_test.h"
#include "harness.h"

#undef memcpy

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <x86intrin.h>

#define FRAMES      (1U << 18)      /* a gigabyte, touched when used */
#define DOMAINS     80

struct domain {
    unsigned int id;
    struct vmri_domain *vmri;
    unsigned int ports;
};

/* One word a frame, as Xen counts references and types. */
static struct {
    struct domain *owner;
    uint32_t refs;
    uint32_t writable;
} frames[FRAMES];

static struct domain domains[DOMAINS];
static struct domain *current;
static uint64_t next_frame = 1;
static volatile bool log_dirty;

uint8_t *env_direct_map;
bool env_tracing_on;

/* ---- begin, domains, pages: env_test.h ---- */

void env_test_begin(void)
{
    unsigned int i;

    env_direct_map = mmap(NULL, FRAMES * PAGE_SIZE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(env_direct_map != MAP_FAILED);
    for ( i = 0; i < DOMAINS; i++ )
        domains[i].id = i;
}

/* Only for world_end(), which nobody calls here. */
void env_test_end(void) {}
void env_test_returned(void) {}
void env_test_preempt(unsigned int n) { (void)n; }
void env_test_deny(bool on) { (void)on; }
void env_test_domain_dying(struct domain *d) { (void)d; }
bool env_test_aside_end(void) { return true; }
void env_test_advance(uint64_t ns) { (void)ns; }
void env_test_expose(void *p, size_t bytes) { (void)p; (void)bytes; }
void env_test_hide(void) {}

struct domain *env_test_domain(unsigned int domid)
{
    return &domains[domid];
}

struct domain *env_test_enter(struct domain *d)
{
    struct domain *before = current;

    current = d;

    return before;
}

/*
 * gfns are frames, as for PV guests; for a ring it makes no difference whether
 * they are scattered.
 */
uint64_t env_test_pages(struct domain *d, unsigned int nr, bool scattered)
{
    uint64_t first = next_frame;
    unsigned int i;

    (void)scattered;
    CHECK(first + nr < FRAMES);
    for ( i = 0; i < nr; i++ )
        frames[first + i].owner = d;
    next_frame += nr + 1;

    return first;
}

void *env_test_mem(struct domain *d, uint64_t gfn)
{
    (void)d;

    return env_map(gfn);
}

void env_panic(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    abort();
}

void test_over(void)
{
    exit(1);
}

/* ---- the path of a message ---- */

static __thread unsigned int preempt_count;

void env_lock(env_lock_t *l)
{
    uint16_t ticket;

    preempt_count++;
    ticket = __atomic_fetch_add(&l->tail, 1, __ATOMIC_ACQUIRE);
    while ( __atomic_load_n(&l->head, __ATOMIC_ACQUIRE) != ticket )
        env_relax();
}

void env_unlock(env_lock_t *l)
{
    __atomic_store_n(&l->head, l->head + 1, __ATOMIC_RELEASE);
    preempt_count--;
}

/* As Xen's: a tail of less than eight bytes goes byte by byte. */
void *env_memcpy(void *to, const void *from, size_t n)
{
    void *d = to;
    size_t words = n / 8, rest = n % 8;

    __asm__ __volatile__ ( "rep movsq; mov %3, %%rcx; rep movsb"
                           : "+c" (words), "+D" (d), "+S" (from)
                           : "r" (rest) : "memory" );

    return to;
}

void env_frames_dirty(struct domain *d, env_frame_t first, uint32_t nr)
{
    (void)d;
    (void)first;
    (void)nr;
    if ( log_dirty )
        abort();
}

uint64_t env_now(void)
{
    /* Scaled as Xen does; any scale serves. */
    return (uint64_t)(((unsigned __int128)__rdtsc() * 0x60000000U) >> 32);
}

uint64_t env_mapped_cmpxchg(uint64_t *p, uint64_t old, uint64_t v)
{
    env_cmpxchg(p, &old, v);

    return old;
}

uint64_t env_mapped_add(uint64_t *p, uint64_t v)
{
    return env_fetch_add(p, v);
}

void env_mapped_store(uint64_t *p, uint64_t v)
{
    env_store_release(p, v);
}

void env_trace_write(uint32_t event, const uint32_t *words, size_t bytes)
{
    (void)event;
    (void)words;
    (void)bytes;
}

/* ---- frames: an atomic each for references and types ---- */

static uint64_t mirror;

void env_bench_mirror(uint64_t sum)
{
    mirror = sum;
}

int env_frame_get(struct domain *d, uint64_t gfn, bool writable,
                  env_frame_t *frame)
{
    if ( mirror )
        gfn = mirror - gfn;
    if ( gfn >= FRAMES || frames[gfn].owner != d )
        return -EPERM;
    env_fetch_add(&frames[gfn].refs, 1);
    if ( writable )
        env_fetch_add(&frames[gfn].writable, 1);
    *frame = gfn;

    return 0;
}

int env_frame_again(struct domain *d, env_frame_t frame, bool writable)
{
    return env_frame_get(d, frame, writable, &frame);
}

void env_frame_put(env_frame_t frame, bool writable)
{
    env_fetch_sub(&frames[frame].refs, 1);
    if ( writable )
        env_fetch_sub(&frames[frame].writable, 1);
}

void *env_map_ring(env_frame_t frame)
{
    return env_map(frame);
}

void env_unmap_ring(void *p)
{
    (void)p;
}

/* ---- preemption: nobody waits ---- */

static uint64_t longest, looked;
static bool watching;

static uint64_t own_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);

    return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

bool env_preempt(void)
{
    uint64_t now;

    if ( watching )
    {
        now = own_time();
        longest = max(longest, now - looked);
        looked = own_time();
    }

    return false;
}

void env_bench_watch(void)
{
    watching = true;
    longest = 0;
    looked = own_time();
}

uint64_t env_bench_longest(void)
{
    return longest;
}

/* ---- the rest: none of it is measured ---- */

void *env_alloc(size_t bytes) { return calloc(1, bytes); }
void env_free(void *p) { free(p); }
void *env_alloc_page(void) { return calloc(1, PAGE_SIZE); }
void env_free_page(void *p) { free(p); }

struct domain *env_current(void)
{
    return current;
}

unsigned int env_domid(const struct domain *d) { return d->id; }
struct domain *env_domain_get(unsigned int domid) { return &domains[domid]; }
void env_domain_put(struct domain *d) { (void)d; }

/* Two fields of Xen's struct domain. */
static volatile bool never;

bool env_domain_dying(const struct domain *d) { (void)d; return never; }

bool env_domain_running(const struct domain *d)
{
    (void)d;

    return !never && !never;
}

uint64_t env_domain_pages(const struct domain *d) { (void)d; return FRAMES; }

uint32_t env_domain_doorbells(const struct domain *d)
{
    (void)d;

    return VMRI_FEATURE_DOORBELL_INT;
}

struct vmri_domain **env_domain_state(struct domain *d) { return &d->vmri; }

int env_may_control(const struct domain *d, unsigned int cmd)
{
    (void)d;
    (void)cmd;

    return 0;
}

int env_may_connect(const struct domain *from, const struct domain *to)
{
    (void)from;
    (void)to;

    return 0;
}

int env_copy_from_guest(void *to, uint64_t from, size_t bytes)
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);

    return 0;
}

int env_copy_to_guest(uint64_t to, const void *from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, from, bytes);

    return 0;
}

int env_port_alloc(struct domain *d, unsigned int vcpu)
{
    (void)vcpu;

    return (int)++d->ports;
}

void env_port_free(struct domain *d, unsigned int port)
{
    (void)d;
    (void)port;
}

void env_port_notify(struct domain *d, unsigned int port)
{
    (void)d;
    (void)port;
}

void env_timer_init(struct env_timer *t, void (*fn)(void *), void *data)
{
    (void)fn;
    (void)data;
    t->at = 0;
}

void env_timer_set(struct env_timer *t, uint64_t at) { t->at = at; }
void env_timer_kill(struct env_timer *t) { t->at = 0; }

void env_print(const char *fmt, ...) { (void)fmt; }
