/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fake environment: memory, domains, event channels, time, guests' copies,
 * and failures on demand.  Frames and locks have files of their own.
 */
#include "env_private.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_EXPOSED     8
#define FIRST_PORT      3
#define START           1000000000ULL

struct domain env_domains[ENV_DOMAINS];
struct env_stats env_stats;

static __thread struct domain *current;
static __thread struct {
    uint8_t *p;
    size_t bytes;
} exposed[MAX_EXPOSED];
static __thread unsigned int nr_exposed;

static unsigned int fail_in[ENV_FAIL_NR];       /* atomic */
static unsigned int preempt_every;              /* atomic */
static unsigned int preempt_count;              /* atomic */
static uint32_t doorbells;
static bool deny;
static const struct domain *deny_over, *silo;
static unsigned int connect_asked;              /* atomic */

static uint64_t now;                            /* atomic */
static pthread_mutex_t timer_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct env_timer *timers;                /* all that are initialised */

static struct env_hook notify_hook, preempt_hook;

static char printed[65536];
static size_t nr_printed;

static pthread_t aside;
static bool aside_started;
static bool aside_done;                         /* atomic */

/* ---- begin and end ---- */

void env_test_begin(void)
{
    unsigned int i;

    memset(&env_stats, 0, sizeof(env_stats));
    memset(env_domains, 0, sizeof(env_domains));
    memset(fail_in, 0, sizeof(fail_in));
    for ( i = 0; i < ENV_DOMAINS; i++ )
    {
        env_domains[i].id = i;
        env_domains[i].running = true;
    }
    current = NULL;
    nr_exposed = 0;
    preempt_every = 0;
    notify_hook.nth = 0;
    preempt_hook.nth = 0;
    deny = false;
    doorbells = VMRI_FEATURE_DOORBELL_INT;
    deny_over = silo = NULL;
    connect_asked = 0;
    now = START;
    timers = NULL;
    nr_printed = 0;
    printed[0] = '\0';
    env_frames_begin();
    env_test_domain(0);
}

void env_test_end(void)
{
    unsigned int i;

    env_test_returned();
    for ( i = 0; i < ENV_DOMAINS; i++ )
    {
        struct domain *d = &env_domains[i];

        if ( d->refs )
            env_panic("domain %u is still referenced, %u times", i, d->refs);
        if ( d->state )
            env_panic("domain %u still has VMRI state", i);
        if ( env_test_ports(d) )
            env_panic("domain %u has %u ports open", i, env_test_ports(d));
    }
    if ( timers )
        env_panic("a timer was not killed");
    if ( env_stats.allocations )
        env_panic("%llu allocations of %llu bytes are left",
                  (unsigned long long)env_stats.allocations,
                  (unsigned long long)env_stats.allocated);
    env_frames_end();
}

void env_test_returned(void)
{
    env_no_lock("return");
    env_frames_returned();
}

/* ---- failures ---- */

void env_test_fail(enum env_failure what, unsigned int nth)
{
    env_store(&fail_in[what], nth);
}

bool env_test_fail_left(enum env_failure what)
{
    return env_load(&fail_in[what]) != 0;
}

bool env_fails(enum env_failure what)
{
    unsigned int left = env_load(&fail_in[what]);

    while ( left && left != ENV_ALWAYS &&
            !env_cmpxchg(&fail_in[what], &left, left - 1) )
        ;
    return left == 1 || left == ENV_ALWAYS;
}

void env_test_preempt(unsigned int n)
{
    env_store(&preempt_every, n);
    env_store(&preempt_count, 0);
}

bool env_preempt(void)
{
    unsigned int every = env_load(&preempt_every);

    env_no_lock("env_preempt");
    env_add(&env_stats.preempts, 1);
    env_hook_run(&preempt_hook);
    return every && (env_fetch_add(&preempt_count, 1) + 1) % every == 0;
}

/* ---- hooks ---- */

void env_hook_set(struct env_hook *h, unsigned int nth, void (*fn)(void *),
                  void *data)
{
    h->fn = fn;
    h->data = data;
    env_store_release(&h->nth, nth);
}

void env_hook_run(struct env_hook *h)
{
    unsigned int nth = env_load_acquire(&h->nth);

    while ( nth && !env_cmpxchg(&h->nth, &nth, nth - 1) )
        ;
    if ( nth == 1 )
        h->fn(h->data);
}

void env_test_on_notify(unsigned int nth, void (*fn)(void *), void *data)
{
    env_hook_set(&notify_hook, nth, fn, data);
}

void env_test_on_preempt(unsigned int nth, void (*fn)(void *), void *data)
{
    env_hook_set(&preempt_hook, nth, fn, data);
}

/* ---- memory ---- */

static void *count_allocation(void *p)
{
    size_t bytes = malloc_usable_size(p);
    uint64_t largest = env_load(&env_stats.largest);

    env_add(&env_stats.allocated, bytes);
    env_add(&env_stats.allocations, 1);
    env_add(&env_stats.alloc_calls, 1);
    while ( bytes > largest &&
            !env_cmpxchg(&env_stats.largest, &largest, bytes) )
        ;
    return p;
}

void *env_alloc(size_t bytes)
{
    if ( env_fails(ENV_FAIL_ALLOC) )
        return NULL;
    return count_allocation(calloc(1, bytes));
}

void env_free(void *p)
{
    if ( !p )
        return;
    (void)env_fetch_sub(&env_stats.allocated, malloc_usable_size(p));
    (void)env_fetch_sub(&env_stats.allocations, 1);
    free(p);
}

void *env_alloc_page(void)
{
    void *p = NULL;

    if ( env_fails(ENV_FAIL_ALLOC) || posix_memalign(&p, PAGE_SIZE, PAGE_SIZE) )
        return NULL;
    return count_allocation(memset(p, 0, PAGE_SIZE));
}

void env_free_page(void *p)
{
    env_free(p);
}

/* ---- domains ---- */

struct domain *env_test_domain(unsigned int domid)
{
    struct domain *d = &env_domains[domid];

    env_store(&d->exists, true);
    return d;
}

void env_test_domain_dying(struct domain *d)
{
    env_store(&d->dying, true);
    env_store(&d->running, false);
}

void env_test_domain_reborn(struct domain *d)
{
    env_store(&d->dying, false);
    env_store(&d->running, true);
}

void env_test_domain_running(struct domain *d, bool running)
{
    env_store(&d->running, running);
}

struct domain *env_test_enter(struct domain *d)
{
    struct domain *before = current;

    current = d;
    return before;
}

void env_need_current(const char *what)
{
    if ( !current )
        env_panic("%s where no domain calls", what);
}

struct domain *env_current(void)
{
    env_need_current("env_current");
    return current;
}

unsigned int env_domid(const struct domain *d)
{
    return d->id;
}

struct domain *env_domain_get(unsigned int domid)
{
    struct domain *d = domid < ENV_DOMAINS ? &env_domains[domid] : NULL;

    if ( !d || !env_load(&d->exists) || env_domain_dying(d) )
        return NULL;
    env_add(&d->refs, 1);
    return d;
}

void env_domain_put(struct domain *d)
{
    if ( env_fetch_sub(&d->refs, 1) == 0 )
        env_panic("domain %u was put too often", d->id);
}

bool env_domain_dying(const struct domain *d)
{
    return env_load(&d->dying);
}

bool env_domain_running(const struct domain *d)
{
    return env_load(&d->running);
}

uint64_t env_domain_pages(const struct domain *d)
{
    (void)d;
    return 1U << (30 - VMRI_PAGE_SHIFT);
}

uint32_t env_domain_doorbells(const struct domain *d)
{
    (void)d;

    return doorbells;
}

void env_test_doorbells(uint32_t features)
{
    doorbells = features;
}

struct vmri_domain **env_domain_state(struct domain *d)
{
    return &d->state;
}

int env_may_control(const struct domain *d, unsigned int cmd)
{
    (void)cmd;
    return deny || (d && d == deny_over) || env_current()->id ? -EPERM : 0;
}

void env_test_deny(bool on)
{
    deny = on;
}

void env_test_deny_over(const struct domain *d)
{
    deny_over = d;
}

int env_may_connect(const struct domain *from, const struct domain *to)
{
    env_fetch_add(&connect_asked, 1);

    return from == silo || to == silo ? -EPERM : 0;
}

void env_test_silo(const struct domain *d)
{
    silo = d;
}

unsigned int env_test_connect_asked(void)
{
    return env_xchg(&connect_asked, 0);
}

/* ---- the guest's virtual memory ---- */

void env_test_expose(void *p, size_t bytes)
{
    if ( nr_exposed == MAX_EXPOSED )
        env_panic("too much exposed");
    exposed[nr_exposed].p = p;
    exposed[nr_exposed++].bytes = bytes;
}

void env_test_hide(void)
{
    nr_exposed--;
}

static bool is_exposed(uint64_t at, size_t bytes)
{
    unsigned int i;

    for ( i = 0; i < nr_exposed; i++ )
    {
        uint64_t skip = at - (uintptr_t)exposed[i].p;

        if ( skip <= exposed[i].bytes && bytes <= exposed[i].bytes - skip )
            return true;
    }
    return false;
}

int env_copy_from_guest(void *to, uint64_t from, size_t bytes)
{
    env_no_lock("env_copy_from_guest");
    env_need_current("env_copy_from_guest");
    if ( env_fails(ENV_FAIL_COPY_FROM) || !is_exposed(from, bytes) )
        return -EFAULT;
    env_raw_memcpy(to, (void *)(uintptr_t)from, bytes);
    return 0;
}

int env_copy_to_guest(uint64_t to, const void *from, size_t bytes)
{
    env_no_lock("env_copy_to_guest");
    env_need_current("env_copy_to_guest");
    if ( env_fails(ENV_FAIL_COPY_TO) || !is_exposed(to, bytes) )
        return -EFAULT;
    env_raw_memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

/* ---- event channels ---- */

int env_port_alloc(struct domain *d, unsigned int vcpu)
{
    unsigned int i;

    if ( vcpu >= ENV_VCPUS )
        return -EINVAL;
    if ( env_fails(ENV_FAIL_PORT) )
        return -ENOSPC;
    for ( i = FIRST_PORT; i < ENV_PORTS; i++ )
        if ( !d->port_open[i] )
        {
            d->port_open[i] = true;
            env_store(&d->notified[i], 0);
            return (int)i;
        }
    return -ENOSPC;
}

static void need_port(const struct domain *d, unsigned int port)
{
    if ( port >= ENV_PORTS || !d->port_open[port] )
        env_panic("domain %u has no port %u", d->id, port);
}

void env_port_free(struct domain *d, unsigned int port)
{
    need_port(d, port);
    d->port_open[port] = false;
}

void env_port_notify(struct domain *d, unsigned int port)
{
    need_port(d, port);
    env_add(&d->notified[port], 1);
    env_hook_run(&notify_hook);
}

unsigned int env_test_notified(struct domain *d, unsigned int port)
{
    need_port(d, port);
    return env_xchg(&d->notified[port], 0);
}

unsigned int env_test_ports(struct domain *d)
{
    unsigned int i, nr = 0;

    for ( i = 0; i < ENV_PORTS; i++ )
        nr += d->port_open[i];
    return nr;
}

/* ---- time ---- */

uint64_t env_now(void)
{
    return env_load(&now);
}

void env_timer_init(struct env_timer *t, void (*fn)(void *), void *data)
{
    *t = (struct env_timer){ .fn = fn, .data = data };
    pthread_mutex_lock(&timer_mutex);
    t->next = timers;
    timers = t;
    pthread_mutex_unlock(&timer_mutex);
}

void env_timer_set(struct env_timer *t, uint64_t at)
{
    if ( !t->fn )
        env_panic("a timer is set that was not initialised");
    pthread_mutex_lock(&timer_mutex);
    t->at = at;
    t->armed = true;
    pthread_mutex_unlock(&timer_mutex);
}

void env_timer_kill(struct env_timer *t)
{
    struct env_timer **p;

    if ( !t->fn )
        env_panic("a timer is killed that was not initialised");
    pthread_mutex_lock(&timer_mutex);
    while ( t->running )
    {
        pthread_mutex_unlock(&timer_mutex);
        env_relax();
        pthread_mutex_lock(&timer_mutex);
    }
    for ( p = &timers; *p != t; p = &(*p)->next )
        if ( !*p )
            env_panic("a timer is killed twice");
    *p = t->next;
    pthread_mutex_unlock(&timer_mutex);
}

/* By timer_mutex: the armed timer that is due first, or NULL. */
static struct env_timer *first_timer(void)
{
    struct env_timer *t, *first = NULL;

    for ( t = timers; t; t = t->next )
        if ( t->armed && (!first || t->at < first->at) )
            first = t;
    return first;
}

uint64_t env_test_next_timer(void)
{
    struct env_timer *t;
    uint64_t at;

    pthread_mutex_lock(&timer_mutex);
    t = first_timer();
    at = t ? t->at : 0;
    pthread_mutex_unlock(&timer_mutex);
    return at;
}

void env_test_advance(uint64_t ns)
{
    uint64_t target = env_now() + ns;
    struct domain *before = env_test_enter(NULL);
    struct env_timer *t;

    pthread_mutex_lock(&timer_mutex);
    while ( (t = first_timer()) && t->at <= target )
    {
        if ( t->at > env_now() )
            env_store(&now, t->at);
        t->armed = false;
        t->running = true;
        pthread_mutex_unlock(&timer_mutex);
        t->fn(t->data);
        env_test_returned();
        pthread_mutex_lock(&timer_mutex);
        t->running = false;
    }
    pthread_mutex_unlock(&timer_mutex);
    env_store(&now, target);
    env_test_enter(before);
}

/* ---- console ---- */

/* For the console's own key: nothing that a guest does may print. */
void env_print(const char *fmt, ...)
{
    va_list args;
    int n;

    if ( current )
        env_panic("a call of domain %u prints", current->id);

    va_start(args, fmt);
    n = vsnprintf(printed + nr_printed, sizeof(printed) - nr_printed, fmt,
                  args);
    va_end(args);
    nr_printed = min_t(size_t, nr_printed + (size_t)n, sizeof(printed) - 1);
}

const char *env_test_printed(void)
{
    return printed;
}

/* ---- a thread beside ---- */

struct aside_call {
    void (*fn)(void *);
    void *data;
};

static void *aside_run(void *arg)
{
    struct aside_call call = *(struct aside_call *)arg;

    free(arg);
    call.fn(call.data);
    env_store_release(&aside_done, true);
    return NULL;
}

void env_test_aside(void (*fn)(void *), void *data)
{
    struct aside_call *call = malloc(sizeof(*call));
    uint64_t relaxed = env_load(&env_stats.relaxed);

    *call = (struct aside_call){ .fn = fn, .data = data };
    env_store(&aside_done, false);
    aside_started = true;
    pthread_create(&aside, NULL, aside_run, call);
    while ( !env_load_acquire(&aside_done) &&
            env_load(&env_stats.relaxed) == relaxed )
        sched_yield();
}

bool env_test_aside_end(void)
{
    bool was = aside_started;

    if ( was )
        pthread_join(aside, NULL);
    aside_started = false;
    return was;
}
