/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locks that know their level and their holder, and what a thread must not do
 * while it holds one.
 */
#include "env_private.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_HELD    8

static __thread env_lock_t *held[MAX_HELD];
static __thread unsigned int nr_held;

static __thread struct env_lock_set *noted;

/* Run when a lock of a level was taken, or let go of. */
struct level_hook {
    struct env_hook hook;
    int level;                          /* atomic */
};

static struct level_hook lock_hook, unlock_hook;

__thread sigjmp_buf *env_panic_to;
__thread char env_panic_text[256];

void env_panic(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(env_panic_text, sizeof(env_panic_text), fmt, args);
    va_end(args);

    if ( env_panic_to )
        siglongjmp(*env_panic_to, 1);

    fprintf(stderr, "PANIC: %s\n", env_panic_text);
    abort();
}

void env_lock_init(env_lock_t *l, int level)
{
    pthread_mutex_init(&l->mutex, NULL);
    l->level = level;
}

static bool is_noted(const struct env_lock_set *set, const env_lock_t *l)
{
    unsigned int i;

    for ( i = 0; i < set->nr; i++ )
        if ( set->lock[i] == l )
            return true;
    return false;
}

void env_test_note_locks(struct env_lock_set *set)
{
    noted = set;
}

unsigned int env_test_common_locks(const struct env_lock_set *a,
                                   const struct env_lock_set *b)
{
    unsigned int i, common = 0;

    for ( i = 0; i < a->nr; i++ )
        common += is_noted(b, a->lock[i]);
    return common;
}

/* Of this thread alone, so that taking it is enough of a lock. */
static void note(const env_lock_t *l)
{
    if ( !noted || is_noted(noted, l) )
        return;
    if ( noted->nr == ARRAY_SIZE(noted->lock) )
        env_panic("too many different locks");
    noted->lock[noted->nr++] = l;
}

static void level_hook_set(struct level_hook *h, enum env_level level,
                           unsigned int nth, void (*fn)(void *), void *data)
{
    env_store(&h->level, (int)level);
    env_hook_set(&h->hook, nth, fn, data);
}

static void level_hook_run(struct level_hook *h, int level)
{
    if ( level == env_load(&h->level) )
        env_hook_run(&h->hook);
}

void env_test_on_lock(enum env_level level, unsigned int nth,
                      void (*fn)(void *), void *data)
{
    level_hook_set(&lock_hook, level, nth, fn, data);
}

void env_test_on_unlock(enum env_level level, unsigned int nth,
                        void (*fn)(void *), void *data)
{
    level_hook_set(&unlock_hook, level, nth, fn, data);
}

void env_lock(env_lock_t *l)
{
    unsigned int i;

    if ( !l->level )
        env_panic("lock %p is not initialised", (void *)l);
    if ( nr_held == MAX_HELD )
        env_panic("too many locks held");
    for ( i = 0; i < nr_held; i++ )
        if ( held[i]->level >= l->level )
            env_panic("lock of level %d taken while one of level %d is held",
                      l->level, held[i]->level);

    pthread_mutex_lock(&l->mutex);
    held[nr_held++] = l;
    note(l);
    level_hook_run(&lock_hook, l->level);
}

/* Once it is let go of, the lock may be gone. */
void env_unlock(env_lock_t *l)
{
    unsigned int i;
    int level;

    for ( i = 0; i < nr_held; i++ )
        if ( held[i] == l )
            break;
    if ( i == nr_held )
        env_panic("unlock of a lock of level %d that is not held", l->level);
    held[i] = held[--nr_held];

    level = l->level;
    pthread_mutex_unlock(&l->mutex);
    level_hook_run(&unlock_hook, level);
}

void env_no_lock(const char *what)
{
    if ( nr_held )
        env_panic("%s with a lock of level %d held", what, held[0]->level);
}

/* Nobody who can be waited for wants the control lock. */
void env_relax(void)
{
    if ( nr_held && (nr_held > 1 || held[0]->level != LEVEL_CONTROL) )
        env_no_lock("waiting");
    env_add(&env_stats.relaxed, 1);
    sched_yield();
}
