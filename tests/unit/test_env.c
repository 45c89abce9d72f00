/* SPDX-License-Identifier: GPL-2.0-only */
/* The fake environment itself: it must see what VMRI must not do. */
#define _GNU_SOURCE
#include "guest.h"

#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void locks_init(env_lock_t *dev, env_lock_t *qp)
{
    env_lock_init(dev, LEVEL_DEV);
    env_lock_init(qp, LEVEL_QP);
}

TEST(env_lock_order_is_checked)
{
    env_lock_t dev, qp, unset = { .level = 0 };

    locks_init(&dev, &qp);
    env_lock(&dev);
    env_lock(&qp);
    env_unlock(&dev);
    env_unlock(&qp);

    env_lock(&qp);
    CHECK(EXPECT_PANIC(env_lock(&dev)));
    CHECK(strstr(env_panic_text, "level"));
    CHECK(EXPECT_PANIC(env_lock(&qp)));
    CHECK(EXPECT_PANIC(env_unlock(&dev)));
    CHECK(EXPECT_PANIC(env_test_returned()));
    CHECK(EXPECT_PANIC(env_relax()));
    env_unlock(&qp);
    CHECK(EXPECT_PANIC(env_lock(&unset)));
}

TEST(env_frames_and_copies_need_no_lock)
{
    struct domain *d = env_test_enter(env_test_domain(1));
    uint64_t gfn = env_test_pages(env_current(), 1, false), word = 0;
    env_frame_t frame;
    env_lock_t dev, qp;

    CHECK_EQ(env_frame_get(env_current(), gfn, true, &frame), 0);
    locks_init(&dev, &qp);
    env_test_expose(&word, sizeof(word));
    env_lock(&dev);
    CHECK(EXPECT_PANIC(env_frame_get(env_current(), gfn, true, &frame)));
    CHECK(EXPECT_PANIC(env_frame_put(frame, true)));
    CHECK(EXPECT_PANIC(env_frames_dirty(env_current(), frame, 1)));
    CHECK(EXPECT_PANIC(env_map(frame)));
    CHECK(EXPECT_PANIC(env_copy_from_guest(&gfn, (uintptr_t)&word, 8)));
    CHECK(EXPECT_PANIC(env_copy_to_guest((uintptr_t)&word, &gfn, 8)));
    env_unlock(&dev);
    env_frame_put(frame, true);
    CHECK(EXPECT_PANIC(env_frame_put(frame, true)));
    env_test_hide();
    CHECK_EQ(env_copy_from_guest(&gfn, (uintptr_t)&word, 8), -EFAULT);
    env_test_enter(d);
}

TEST(env_frames_have_owners_and_kinds)
{
    struct domain *d = env_test_domain(1), *other = env_test_domain(2);
    uint64_t gfn = env_test_pages(d, 5, false), i;
    env_frame_t frame;

    env_test_page_kind(d, gfn + 1, ENV_PAGE_TABLE);
    env_test_page_kind(d, gfn + 2, ENV_SPECIAL);
    env_test_page_kind(d, gfn + 3, ENV_GRANT);
    env_test_page_kind(d, gfn + 4, ENV_HOLE);

    for ( i = 1; i < 5; i++ )
        CHECK_EQ(env_frame_get(d, gfn + i, true, &frame), -EPERM);
    for ( i = 2; i < 5; i++ )
        CHECK_EQ(env_frame_get(d, gfn + i, false, &frame), -EPERM);
    CHECK_EQ(env_frame_get(other, gfn, false, &frame), -EPERM);

    CHECK_EQ(env_frame_get(d, gfn, true, &frame), 0);
    CHECK(!env_test_page_pin_table(d, gfn));
    env_frame_put(frame, true);
    CHECK(env_test_page_pin_table(d, gfn));
    CHECK_EQ(env_frame_get(d, gfn, false, &frame), 0);
    CHECK(EXPECT_PANIC(env_frame_put(frame, true)));
    CHECK(EXPECT_PANIC(env_test_end()));
    env_frame_put(frame, false);
}

TEST(env_copies_are_counted_and_want_dirty_marks)
{
    struct domain *d = env_test_domain(1);
    struct domain *before = env_test_enter(d);
    uint64_t gfn = env_test_pages(d, 2, false);
    env_frame_t a, b;
    void *from, *to;

    CHECK_EQ(env_frame_get(d, gfn, false, &a), 0);
    CHECK_EQ(env_frame_get(d, gfn + 1, true, &b), 0);
    from = env_map(a);
    to = env_map(b);
    env_memcpy(to, from, 100);
    CHECK_EQ(env_stats.copied, 100);
    env_memcpy(to, &gfn, 8);
    CHECK_EQ(env_stats.copied, 100);
    CHECK_EQ(env_stats.staged, 8);
    CHECK(EXPECT_PANIC(env_memcpy(from, &gfn, 8)));
    CHECK(EXPECT_PANIC(env_test_returned()));
    env_unmap(from);
    env_unmap(to);
    CHECK(EXPECT_PANIC(env_test_returned()));
    CHECK(strstr(env_panic_text, "dirty"));
    env_frames_dirty(d, b, 1);
    env_test_returned();

    env_frame_put(a, false);
    CHECK(EXPECT_PANIC(env_map(a)));
    env_frame_put(b, true);
    env_test_enter(before);
}

TEST(env_no_more_than_eight_maps)
{
    struct domain *d = env_test_domain(1);
    struct domain *before = env_test_enter(d);
    env_frame_t frame;
    void *p[8];
    int i;

    CHECK_EQ(env_frame_get(d, env_test_pages(d, 1, false), false, &frame), 0);
    for ( i = 0; i < 8; i++ )
        p[i] = env_map(frame);
    CHECK(EXPECT_PANIC(env_map(frame)));
    for ( i = 0; i < 8; i++ )
        env_unmap(p[i]);
    CHECK(EXPECT_PANIC(env_unmap(p[0])));
    env_test_enter(NULL);
    CHECK(EXPECT_PANIC(env_map(frame)));
    env_frame_put(frame, false);
    env_test_enter(before);
}

static bool in_reach(const uint8_t *p)
{
    uint8_t byte;
    struct iovec to = { &byte, 1 }, from = { (void *)(uintptr_t)p, 1 };

#ifdef __SANITIZE_ADDRESS__
    if ( __asan_address_is_poisoned(p) )
        return false;
#endif
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

TEST(env_maps_are_out_of_reach_once_undone)
{
    struct domain *d = env_test_domain(1);
    struct domain *before = env_test_enter(d);
    env_frame_t frame;
    unsigned int i;
    uint8_t *p;

    CHECK_EQ(env_frame_get(d, env_test_pages(d, 1, false), false, &frame), 0);
    for ( i = 0; i < 2; i++ )
    {
        p = env_map(frame);
        CHECK(in_reach(p) && in_reach(p + PAGE_SIZE - 1));
        CHECK(!in_reach(p - 1) && !in_reach(p + PAGE_SIZE));
        env_unmap(p);
        CHECK(!in_reach(p) && !in_reach(p + PAGE_SIZE - 1));
    }
    env_frame_put(frame, false);
    env_test_enter(before);
}

static uint64_t fired_at;
static void fire(void *data)
{
    fired_at = env_now();
    (*(unsigned int *)data)++;
}

TEST(env_timers_fire_at_their_time)
{
    unsigned int count = 0;
    struct env_timer t;
    uint64_t at = env_now() + 5000;

    env_timer_init(&t, fire, &count);
    env_timer_set(&t, at);
    env_test_advance(4999);
    CHECK_EQ(count, 0);
    env_test_advance(10);
    CHECK_EQ(count, 1);
    CHECK_EQ(fired_at, at);
    CHECK_EQ(env_test_next_timer(), 0);
    CHECK(EXPECT_PANIC(env_test_end()));
    env_timer_kill(&t);
}

TEST(env_failures_come_once_and_leaks_are_seen)
{
    void *p;

    env_test_fail(ENV_FAIL_ALLOC, 2);
    p = env_alloc(10);
    CHECK(p);
    CHECK(!env_alloc_page());
    CHECK(!env_test_fail_left(ENV_FAIL_ALLOC));
    CHECK_EQ(env_stats.allocations, 1);
    CHECK(EXPECT_PANIC(env_test_end()));
    env_free(p);
    CHECK_EQ(env_stats.allocated, 0);
}
