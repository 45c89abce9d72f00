/* SPDX-License-Identifier: GPL-2.0-only */
/* object.c: tables, generations, references, and users. */
#include "guest.h"
#include "internal.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#undef memcpy
#undef memset

static int a, b;

static uint32_t put_in(struct vmri_table *t, uint32_t want, void *obj)
{
    uint32_t handle;

    CHECK_EQ(vmri_table_reserve(t, want, &handle), 0);
    vmri_table_publish(t, handle, obj);
    return handle;
}

static void take_out(struct vmri_table *t, uint32_t handle)
{
    CHECK(vmri_table_kill(t, handle));
    vmri_table_release(t, handle);
}

TEST(object_handles_name_what_was_published)
{
    struct vmri_table t;
    uint32_t h1, h2;

    vmri_table_init(&t, &vmri_format_plain, 4096, NULL, 0);
    CHECK_EQ(vmri_table_reserve(&t, VMRI_HANDLE_ANY, &h1), 0);
    CHECK(!vmri_table_get(&t, h1));
    vmri_table_publish(&t, h1, &a);
    h2 = put_in(&t, VMRI_HANDLE_ANY, &b);
    CHECK(h1 && h2 && h1 != h2);

    CHECK(vmri_table_get(&t, h1) == &a);
    vmri_table_put(&t, h1);
    CHECK(vmri_table_get(&t, h2) == &b);
    vmri_table_put(&t, h2);
    CHECK(!vmri_table_get(&t, 0));
    CHECK(!vmri_table_get(&t, 4095));
    CHECK(!vmri_table_get(&t, 4096));
    CHECK(!vmri_table_get(&t, ~0U));
    CHECK(!vmri_table_get(&t, h1 | 0x80000000U));

    take_out(&t, h1);
    CHECK(!vmri_table_get(&t, h1));
    CHECK(!vmri_table_kill(&t, h1));
    take_out(&t, h2);
    vmri_table_fini(&t);
}

/* Whatever the number, an old handle of a slot does not name its new object. */
static void check_generations(const struct vmri_handle_format *format)
{
    uint32_t old, handle, max = format->first + 1, n;
    struct vmri_table t;

    vmri_table_init(&t, format, max, NULL, 0);
    old = put_in(&t, VMRI_HANDLE_ANY, &a);
    take_out(&t, old);
    for ( n = 1; n < 1U << format->gen_bits; n++ )
    {
        handle = put_in(&t, VMRI_HANDLE_ANY, &b);
        CHECK(handle != old);
        CHECK(!vmri_table_get(&t, old));
        take_out(&t, handle);
    }
    handle = put_in(&t, VMRI_HANDLE_ANY, &b);
    CHECK_EQ(handle, old);
    take_out(&t, handle);
    vmri_table_fini(&t);
}

TEST(object_generations)
{
    check_generations(&vmri_format_plain);
    check_generations(&vmri_format_qpn);
    check_generations(&vmri_format_key);
}

TEST(object_numbers_are_those_of_their_kind)
{
    struct vmri_table t;
    uint32_t h;

    vmri_table_init(&t, &vmri_format_qpn, 1024, NULL, 0);
    h = put_in(&t, VMRI_HANDLE_ANY, &a);
    CHECK(h >= 2 && h < 1U << 24);
    take_out(&t, h);
    h = put_in(&t, 1, &a);
    CHECK_EQ(h, 1);
    take_out(&t, h);
    vmri_table_fini(&t);

    vmri_table_init(&t, &vmri_format_key, 1024, NULL, 0);
    h = put_in(&t, VMRI_HANDLE_ANY, &a);
    CHECK(h >> 8 >= 1 && h >> 8 < 1024);
    take_out(&t, h);
    CHECK(put_in(&t, VMRI_HANDLE_ANY, &a) != h);
    CHECK(vmri_table_next(&t, &(uint32_t){ 0 }, &h) == &a);
    take_out(&t, h);
    vmri_table_fini(&t);
}

TEST(object_wanted_numbers)
{
    struct vmri_table t;
    uint32_t h, first, other;

    vmri_table_init(&t, &vmri_format_lid, 200, NULL, 0);
    CHECK_EQ(put_in(&t, 7, &a), 7);
    CHECK_EQ(vmri_table_reserve(&t, 7, &h), -EBUSY);
    CHECK_EQ(vmri_table_reserve(&t, 200, &h), -EINVAL);
    CHECK_EQ(vmri_table_reserve(&t, 0x10007, &h), -EINVAL);

    /* The lowest free one. */
    first = put_in(&t, VMRI_HANDLE_ANY, &b);
    other = put_in(&t, VMRI_HANDLE_ANY, &b);
    CHECK_EQ(first, 1);
    CHECK_EQ(other, 2);
    take_out(&t, first);
    CHECK_EQ(put_in(&t, VMRI_HANDLE_ANY, &b), 1);
    take_out(&t, 1);
    take_out(&t, 2);
    take_out(&t, 7);
    vmri_table_fini(&t);
}

/* No other number takes the place of QP0 and QP1, which have no generations. */
TEST(object_wanted_special_numbers)
{
    struct vmri_table t;
    uint32_t h;

    vmri_table_init(&t, &vmri_format_qpn, 0, NULL, 0);
    CHECK_EQ(vmri_table_reserve(&t, 1U << 17, &h), -EINVAL);
    CHECK_EQ(vmri_table_reserve(&t, 1U << 17 | 1, &h), -EINVAL);
    CHECK_EQ(put_in(&t, 0, &a), 0);
    CHECK_EQ(put_in(&t, 1, &a), 1);
    take_out(&t, 0);
    take_out(&t, 1);
    CHECK_EQ(put_in(&t, 0, &a), 0);
    take_out(&t, 0);
    vmri_table_fini(&t);
}

/* What requests name frames by is nobody's key, whatever its low byte. */
TEST(object_key_of_frames_is_never_given_out)
{
    struct vmri_table t;
    uint32_t handle;

    vmri_table_init(&t, &vmri_format_key, 0, NULL, 0);
    CHECK_EQ(vmri_table_reserve(&t, VMRI_LKEY_FRAMES, &handle), -EINVAL);
    CHECK_EQ(vmri_table_reserve(&t, VMRI_LKEY_FRAMES - 0x100, &handle), 0);
    CHECK_EQ(vmri_table_capacity(&vmri_format_key), (1 << 24) - 2);
    vmri_table_release(&t, handle);
    vmri_table_fini(&t);
}

TEST(object_table_fills_up_and_empties)
{
    enum { N = 1000 };
    static uint32_t handle[N];
    struct vmri_table t;
    uint32_t h, i, index = 0, seen = 0;

    vmri_table_init(&t, &vmri_format_plain, N + 1, NULL, 0);
    for ( i = 0; i < N; i++ )
        handle[i] = put_in(&t, VMRI_HANDLE_ANY, &a);
    CHECK_EQ(vmri_table_reserve(&t, VMRI_HANDLE_ANY, &h), -ENOSPC);

    take_out(&t, handle[500]);
    handle[500] = put_in(&t, VMRI_HANDLE_ANY, &b);
    CHECK_EQ(vmri_table_reserve(&t, VMRI_HANDLE_ANY, &h), -ENOSPC);

    while ( vmri_table_next(&t, &index, &h) )
        seen++;
    CHECK_EQ(seen, N);

    for ( i = 0; i < N; i++ )
        take_out(&t, handle[i]);
    index = 0;
    CHECK(!vmri_table_next(&t, &index, &h));
    vmri_table_fini(&t);
}

TEST(object_memory_follows_use)
{
    struct vmri_table t;
    uint32_t h, i;

    vmri_table_init(&t, &vmri_format_key, 131072, NULL, 0);
    CHECK(t.bytes < 16384);
    for ( i = 0; i < 5000; i++ )
    {
        h = put_in(&t, VMRI_HANDLE_ANY, &a);
        take_out(&t, h);
    }
    CHECK(t.bytes < 24576);
    CHECK(env_stats.allocated - t.bytes <= ENV_ALLOC_SLACK);
    vmri_table_fini(&t);
}

TEST(object_failed_allocations_leave_nothing)
{
    struct vmri_table t;
    uint32_t h;

    vmri_table_init(&t, &vmri_format_plain, 100, NULL, 0);
    env_test_fail(ENV_FAIL_ALLOC, ENV_ALWAYS);
    CHECK_EQ(vmri_table_reserve(&t, VMRI_HANDLE_ANY, &h), -ENOMEM);
    CHECK_EQ(vmri_table_reserve(&t, 5, &h), -ENOMEM);
    env_test_fail(ENV_FAIL_ALLOC, 0);
    CHECK_EQ(t.used, 0);
    h = put_in(&t, VMRI_HANDLE_ANY, &a);
    take_out(&t, h);
    vmri_table_fini(&t);
}

/* As many as the operator may allow, and a wanted number far out. */
static void check_many(const struct vmri_handle_format *format, uint32_t many)
{
    struct vmri_table t;
    uint32_t h, n, index = 0, seen = 0;

    vmri_table_init(&t, format, 0, NULL, 0);
    for ( n = 0; n < many; n++ )
    {
        h = put_in(&t, VMRI_HANDLE_ANY, (void *)(uintptr_t)(n + 1));
        if ( n % 1000 )
            continue;
        CHECK(vmri_table_get(&t, h) == (void *)(uintptr_t)(n + 1));
        vmri_table_put(&t, h);
    }
    /* 16 bytes each, and little more. */
    CHECK(t.bytes < many * 17ULL + 2 * VMRI_PAGE_SIZE);
    while ( vmri_table_next(&t, &index, &h) )
    {
        seen++;
        take_out(&t, h);
    }
    CHECK_EQ(seen, many);
    vmri_table_fini(&t);
    CHECK_EQ(t.bytes, 0);
}

TEST(object_tables_grow_to_what_handles_can_name)
{
    struct vmri_table t;
    uint32_t h;

    check_many(&vmri_format_key, 1000000);
    check_many(&vmri_format_plain, 300000);
    check_many(&vmri_format_qpn, 100000);
    check_many(&vmri_format_qpn, (1 << 17) - 2);
    CHECK_EQ(vmri_table_capacity(&vmri_format_qpn), (1 << 17) - 2);

    vmri_table_init(&t, &vmri_format_qpn, 0, NULL, 0);
    CHECK_EQ(put_in(&t, (1 << 17) - 1, &a), (1 << 17) - 1);
    CHECK(t.bytes < 2 * VMRI_PAGE_SIZE + 512);
    h = put_in(&t, VMRI_HANDLE_ANY, &b);
    CHECK(vmri_table_get(&t, h) == &b);
    vmri_table_put(&t, h);
    take_out(&t, h);
    take_out(&t, (1 << 17) - 1);
    vmri_table_fini(&t);
}

/* ---- with other threads ---- */

static struct vmri_table shared;
static uint32_t shared_handle;
static bool killed;

static void kill_it(void *unused)
{
    (void)unused;
    take_out(&shared, shared_handle);
    env_store_release(&killed, true);
}

TEST(object_kill_waits_for_references)
{
    vmri_table_init(&shared, &vmri_format_plain, 100, NULL, 0);
    shared_handle = put_in(&shared, VMRI_HANDLE_ANY, &a);
    CHECK(vmri_table_get(&shared, shared_handle));
    CHECK(vmri_table_get(&shared, shared_handle));

    env_test_aside(kill_it, NULL);
    CHECK(!env_load_acquire(&killed));
    CHECK(!vmri_table_get(&shared, shared_handle));
    vmri_table_put(&shared, shared_handle);
    CHECK(!env_load_acquire(&killed));
    vmri_table_put(&shared, shared_handle);
    CHECK(env_test_aside_end());
    CHECK(killed);
    vmri_table_fini(&shared);
}

/* An object with a life: whoever sees it dead has used it too late. */
struct mortal {
    uint32_t alive;
};

enum { LOOKERS = 3, ROUNDS = 1000 };
static uint32_t stop, shared_now, uses;

static void *look(void *unused)
{
    (void)unused;
    while ( !env_load(&stop) )
    {
        uint32_t handle = env_load(&shared_now);
        struct mortal *m = vmri_table_get(&shared, handle);

        if ( m )
        {
            CHECK_EQ(env_load(&m->alive), handle);
            env_add(&uses, 1);
            vmri_table_put(&shared, handle);
        }
        sched_yield();
    }
    return NULL;
}

THREAD_TEST(object_kill_against_get)
{
    pthread_t looker[LOOKERS];
    int i;

    vmri_table_init(&shared, &vmri_format_plain, 3, NULL, 0);
    for ( i = 0; i < LOOKERS; i++ )
        pthread_create(&looker[i], NULL, look, NULL);
    for ( i = 0; i < ROUNDS || env_load(&uses) < 100; i++ )
    {
        struct mortal *m = env_alloc(sizeof(*m));
        uint32_t handle;

        CHECK_EQ(vmri_table_reserve(&shared, VMRI_HANDLE_ANY, &handle), 0);
        m->alive = handle;
        vmri_table_publish(&shared, handle, m);
        env_store(&shared_now, handle);
        sched_yield();
        CHECK(vmri_table_kill(&shared, handle) == m);
        m->alive = 0;
        vmri_table_release(&shared, handle);
        env_free(m);
    }
    env_store(&stop, 1);
    for ( i = 0; i < LOOKERS; i++ )
        pthread_join(looker[i], NULL);
    vmri_table_fini(&shared);
}

/* Lookups go on while the table grows. */
enum { GROWN = 3000 };
static uint32_t grown[GROWN], grown_nr;

static void *look_back(void *unused)
{
    uint32_t n, i;

    (void)unused;
    do {
        n = env_load_acquire(&grown_nr);
        for ( i = n > 300 ? n - 300 : 0; i < n; i++ )
        {
            CHECK(vmri_table_get(&shared, grown[i]) == &grown[i]);
            vmri_table_put(&shared, grown[i]);
        }
    } while ( n < GROWN );
    return NULL;
}

THREAD_TEST(object_lookups_while_it_grows)
{
    pthread_t looker[2];
    uint32_t i;

    vmri_table_init(&shared, &vmri_format_key, 0, NULL, 0);
    for ( i = 0; i < 2; i++ )
        pthread_create(&looker[i], NULL, look_back, NULL);
    for ( i = 0; i < GROWN; i++ )
    {
        grown[i] = put_in(&shared, VMRI_HANDLE_ANY, &grown[i]);
        env_store_release(&grown_nr, i + 1);
    }
    for ( i = 0; i < 2; i++ )
        pthread_join(looker[i], NULL);
    for ( i = 0; i < GROWN; i++ )
        take_out(&shared, grown[i]);
    vmri_table_fini(&shared);
}

static uint32_t kills;

static void *kill_too(void *unused)
{
    (void)unused;
    if ( vmri_table_kill(&shared, env_load(&shared_now)) )
        env_add(&kills, 1);
    return NULL;
}

THREAD_TEST(object_only_one_kills)
{
    pthread_t killer[2];
    int i, n;

    vmri_table_init(&shared, &vmri_format_plain, 3, NULL, 0);
    for ( n = 0; n < 200; n++ )
    {
        uint32_t handle = put_in(&shared, VMRI_HANDLE_ANY, &a);

        env_store(&kills, 0);
        env_store(&shared_now, handle);
        for ( i = 0; i < 2; i++ )
            pthread_create(&killer[i], NULL, kill_too, NULL);
        for ( i = 0; i < 2; i++ )
            pthread_join(killer[i], NULL);
        CHECK_EQ(kills, 1);
        vmri_table_release(&shared, handle);
    }
    vmri_table_fini(&shared);
}

/* ---- users ---- */

TEST(object_in_use_is_busy)
{
    struct vmri_dev *dev = env_alloc(sizeof(*dev));
    struct vmri_pd pd = { .users = 0 };
    void *obj = NULL;

    env_lock_init(&dev->lock, LEVEL_DEV);
    vmri_table_init(&dev->pds, &vmri_format_plain, 100, NULL, 0);
    CHECK_EQ(vmri_table_reserve(&dev->pds, VMRI_HANDLE_ANY, &pd.handle), 0);

    CHECK_EQ(vmri_publish(dev, &dev->pds, pd.handle, &pd), -ENODEV);
    dev->in_use = dev->closing = true;
    CHECK_EQ(vmri_publish(dev, &dev->pds, pd.handle, &pd), -ENODEV);
    dev->closing = false;
    CHECK_EQ(vmri_publish(dev, &dev->pds, pd.handle, &pd), 0);

    CHECK(!vmri_use(dev, &dev->pds, pd.handle + 1));
    CHECK(vmri_use(dev, &dev->pds, pd.handle) == &pd);
    CHECK_EQ(vmri_kill_unused(dev, &dev->pds, pd.handle, &obj), -EBUSY);
    CHECK_EQ(vmri_kill_unused(dev, &dev->pds, pd.handle + 1, &obj), -ENOENT);
    CHECK(vmri_table_get(&dev->pds, pd.handle) == &pd);
    vmri_table_put(&dev->pds, pd.handle);
    vmri_unuse(dev, &pd);
    CHECK_EQ(vmri_kill_unused(dev, &dev->pds, pd.handle, &obj), 0);
    CHECK(obj == &pd);
    CHECK(!vmri_use(dev, &dev->pds, pd.handle));
    vmri_table_release(&dev->pds, pd.handle);
    vmri_table_fini(&dev->pds);
    env_free(dev);
}
