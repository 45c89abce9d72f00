/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The surroundings of xen/vmri for measuring: as cheap as Xen's own, and no
 * cheaper.  It stands in for the one of tests/unit, whose checks cost.  What Xen
 * does in a function is a function here, too.
 */
#ifndef VMRI_ENV_USER_H
#define VMRI_ENV_USER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define likely(x)           __builtin_expect(!!(x), 1)
#define unlikely(x)         __builtin_expect(!!(x), 0)
#define always_inline       inline __attribute__((__always_inline__))
#define noinline            __attribute__((__noinline__))
#define __init
#define __read_mostly

#define min(x, y)           ((x) < (y) ? (x) : (y))
#define max(x, y)           ((x) > (y) ? (x) : (y))
#define min_t(type, x, y)   min((type)(x), (type)(y))
#define max_t(type, x, y)   max((type)(x), (type)(y))
#define ARRAY_SIZE(x)       (sizeof(x) / sizeof((x)[0]))
#define ROUNDUP(x, a)       (((x) + (a) - 1) & ~((a) - 1))
#define container_of(ptr, type, member) \
    ((type *)((char *)(ptr) - offsetof(type, member)))

#define BUILD_BUG_ON(cond)  _Static_assert(!(cond), "!(" #cond ")")

/* As in a release build of Xen. */
#define ASSERT(p)               ((void)sizeof(p))
#define ASSERT_UNREACHABLE()    ((void)0)

#define PAGE_SHIFT          12
#define PAGE_SIZE           4096UL
#define PAGE_MASK           (~(PAGE_SIZE - 1))
#define PFN_DOWN(x)         ((x) >> PAGE_SHIFT)
#define PFN_UP(x)           (((x) + PAGE_SIZE - 1) >> PAGE_SHIFT)

#include "env_list.h"

/*
 * What is short and of a known length the compiler does in place; the rest goes
 * to a function that, as Xen's, has no vector registers.
 */
void *env_memcpy(void *to, const void *from, size_t n);

#define memcpy(to, from, n) ({                                  \
    size_t n_ = (n);                                            \
    __builtin_constant_p(n_) && n_ <= 64                        \
    ? __builtin_memcpy(to, from, n_)                            \
    : env_memcpy(to, from, n_); })

/* Ticket locks. */
typedef struct {
    uint16_t head, tail;
} env_lock_t;

static inline void env_lock_init(env_lock_t *l, int level)
{
    (void)level;
    l->head = l->tail = 0;
}

void env_lock(env_lock_t *l);
void env_unlock(env_lock_t *l);

static inline void env_relax(void)
{
    __builtin_ia32_pause();
}

/* As Xen's array_index_nospec(). */
static inline uint32_t env_nospec(uint32_t index, uint32_t size)
{
    uint64_t mask;

    __asm__ __volatile__ ( "cmp %1, %2; sbb %0, %0"
                           : "=r" (mask)
                           : "g" ((uint64_t)size), "r" ((uint64_t)index)
                           : "cc" );

    return index & mask;
}

/* All frames lie one after the other, as in Xen's direct map. */
extern uint8_t *env_direct_map;

static inline void *env_map(uint64_t frame)
{
    return env_direct_map + (frame << PAGE_SHIFT);
}

static inline void env_unmap(const void *p)
{
    (void)p;
}

static inline size_t env_run(uint64_t frame, size_t offset, size_t bytes)
{
    (void)frame;
    (void)offset;

    return bytes;
}

uint64_t env_mapped_cmpxchg(uint64_t *p, uint64_t old, uint64_t v);
uint64_t env_mapped_add(uint64_t *p, uint64_t v);
void env_mapped_store(uint64_t *p, uint64_t v);
uint64_t env_now(void);

extern bool env_tracing_on;

static inline bool env_tracing(void)
{
    return env_tracing_on;
}

struct env_timer {
    uint64_t at;
};

#endif /* VMRI_ENV_USER_H */
