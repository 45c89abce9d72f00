/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What Xen's headers give to xen/vmri/, for user space.  Included by
 * xen/vmri/env.h only; how tests steer this environment is in env_test.h.
 */
#ifndef VMRI_ENV_USER_H
#define VMRI_ENV_USER_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* ---- <xen/compiler.h>, <xen/kernel.h>, <xen/lib.h> ---- */

#define likely(x)           __builtin_expect(!!(x), 1)
#define unlikely(x)         __builtin_expect(!!(x), 0)
#define always_inline       inline __attribute__((__always_inline__))
#define noinline            __attribute__((__noinline__))
#define __init
#define __read_mostly

#define min(x, y) ({                                            \
    typeof(x) min_x_ = (x);                                     \
    typeof(y) min_y_ = (y);                                     \
    (void)(&min_x_ == &min_y_);                                 \
    min_x_ < min_y_ ? min_x_ : min_y_; })

#define max(x, y) ({                                            \
    typeof(x) max_x_ = (x);                                     \
    typeof(y) max_y_ = (y);                                     \
    (void)(&max_x_ == &max_y_);                                 \
    max_x_ > max_y_ ? max_x_ : max_y_; })

#define min_t(type, x, y) ({                                    \
    type min_tx_ = (x);                                         \
    type min_ty_ = (y);                                         \
    min_tx_ < min_ty_ ? min_tx_ : min_ty_; })
#define max_t(type, x, y) ({                                    \
    type max_tx_ = (x);                                         \
    type max_ty_ = (y);                                         \
    max_tx_ > max_ty_ ? max_tx_ : max_ty_; })

#define ARRAY_SIZE(x)       (sizeof(x) / sizeof((x)[0]))
#define ROUNDUP(x, a)       (((x) + (a) - 1) & ~((a) - 1))

/* As strict as Xen's about what the pointer points to. */
#define container_of(ptr, type, member) ({                      \
    __typeof__(((type *)(ptr))->member) *member_ = (ptr);       \
    (type *)((char *)member_ - offsetof(type, member)); })

#define BUILD_BUG_ON(cond)  _Static_assert(!(cond), "!(" #cond ")")

/* End the test with a message, or the part of it inside EXPECT_PANIC. */
void env_panic(const char *fmt, ...)
    __attribute__((__format__(__printf__, 1, 2), __noreturn__));

#define BUG()               env_panic("BUG at %s:%d", __FILE__, __LINE__)
#define BUG_ON(p) do {                                          \
    if ( unlikely(p) )                                          \
        env_panic("BUG_ON(%s) at %s:%d", #p, __FILE__, __LINE__); \
} while ( 0 )
#define ASSERT(p) do {                                          \
    if ( unlikely(!(p)) )                                       \
        env_panic("ASSERT(%s) at %s:%d", #p, __FILE__, __LINE__); \
} while ( 0 )
#define ASSERT_UNREACHABLE() \
    env_panic("unreachable %s:%d", __FILE__, __LINE__)

/* ---- <asm/page.h> ---- */

#define PAGE_SHIFT          12
#define PAGE_SIZE           4096UL
#define PAGE_MASK           (~(PAGE_SIZE - 1))
#define PFN_DOWN(x)         ((x) >> PAGE_SHIFT)
#define PFN_UP(x)           (((x) + PAGE_SIZE - 1) >> PAGE_SHIFT)

#include "env_list.h"

/* ---- <xen/string.h> ---- */

/*
 * Copies count what they move between mapped frames, and record which frames
 * they write, so that tests see a second copy and a page that is not marked
 * dirty.  env_raw_memcpy is for the tests' own use.
 */
static inline void *env_raw_memcpy(void *to, const void *from, size_t n)
{
    return memcpy(to, from, n);
}

void *env_memcpy(void *to, const void *from, size_t n);
void *env_memset(void *to, int c, size_t n);

#define memcpy(to, from, n) env_memcpy(to, from, n)
#define memset(to, c, n)    env_memset(to, c, n)

/* ---- locks ---- */

typedef struct {
    pthread_mutex_t mutex;
    int level;              /* 0: not initialised */
} env_lock_t;

/*
 * Panics when the thread holds a lock of this or a higher level, when the lock
 * was not initialised, or is unlocked by a thread that does not hold it.
 */
void env_lock_init(env_lock_t *l, int level);
void env_lock(env_lock_t *l);
void env_unlock(env_lock_t *l);
void env_relax(void);

static inline uint32_t env_nospec(uint32_t index, uint32_t size)
{
    return index < size ? index : 0;
}

/* ---- frames, clock, timers: the inline functions of env.h ---- */

void *env_map(uint64_t frame);
void env_unmap(const void *p);
uint64_t env_mapped_cmpxchg(uint64_t *p, uint64_t old, uint64_t v);
uint64_t env_mapped_add(uint64_t *p, uint64_t v);
void env_mapped_store(uint64_t *p, uint64_t v);
size_t env_run(uint64_t frame, size_t offset, size_t bytes);
uint64_t env_now(void);
bool env_tracing(void);

struct env_timer {
    void (*fn)(void *data);
    void *data;
    uint64_t at;
    bool armed;
    bool running;
    struct env_timer *next;
};

#endif /* VMRI_ENV_USER_H */
