/* SPDX-License-Identifier: GPL-2.0-only */
/* park.c: the wheel wakes each queue once, at its time, and not before. */
#include "guest.h"
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

#undef memcpy
#undef memset

#define TICK    4096ULL
#define REST    (20 * TICK)         /* of the timer, from run to run */
#define LATE    (2 * TICK + REST)
#define SECOND  1000000000ULL

struct parking {
    struct guest *guest;
    struct vmri_dev *dev;
    struct guest_qp *q;
    struct vmri_qp *qp;
};

/* A QP, and the hypervisor's idea of it. */
static struct parking parking_new(struct guest *g)
{
    struct guest_cq *cq = guest_cq(g, 6);
    struct guest_qp_opts opts = { .scq = cq };
    struct parking p = { .guest = g };

    p.q = guest_qp(g, &opts);
    p.dev = vmri_dev_get(g->domain, g->dev);
    p.qp = vmri_table_get(&p.dev->qps, p.q->qpn);
    vmri_table_put(&p.dev->qps, p.q->qpn);
    vmri_dev_put(p.dev);
    return p;
}

static unsigned int woken(struct guest *g)
{
    unsigned int n = 0;
    struct vmri_event ev;

    while ( eq_poll(g->eq[0], &ev) )
        n += ev.type == VMRI_EVENT_QUEUE_READY;
    return n;
}

/* Parked for `ns`, it wakes then and not before, and not late. */
static void check_wake(struct parking *p, uint64_t ns)
{
    uint64_t deadline = env_now() + ns;

    vmri_park_add(p->qp, VMRI_PARK_RNR, deadline);
    CHECK(env_test_next_timer());
    while ( env_test_next_timer() && env_test_next_timer() < deadline )
        env_test_advance(env_test_next_timer() - env_now());
    CHECK_AT(woken(p->guest), 0, "before %llu ns", (unsigned long long)ns);
    CHECK(env_now() <= deadline);
    env_test_advance(deadline - env_now() + LATE);
    CHECK_AT(woken(p->guest), 1, "after %llu ns", (unsigned long long)ns);
    CHECK_EQ(env_test_next_timer(), 0);
    CHECK_EQ(vmri_park_remove(p->qp), false);
}

TEST(park_wakes_at_any_distance)
{
    struct parking p = parking_new(guest_new(1));
    static const uint64_t ticks[] = {
        0, 1, 2, 62, 63, 64, 65, 127, 128, 4032, 4095, 4096, 4097, 262143,
        262144, 16777215, 16777216, 50000000,
    };
    unsigned int i, shift;

    for ( shift = 0; shift < 70; shift += 23 )
    {
        env_test_advance(shift * TICK);
        for ( i = 0; i < ARRAY_SIZE(ticks); i++ )
            check_wake(&p, ticks[i] * TICK + 1);
    }
}

/* What starts at one tick on several levels is all done at that tick. */
TEST(park_levels_meet)
{
    struct guest *g = guest_new(1);
    struct parking far = parking_new(g), near = parking_new(g);
    struct parking first = parking_new(g);
    uint64_t turn;

    /* far lies on level 1; when first is done, near comes to lie on level 0. */
    env_test_advance((64 - env_now() / TICK % 64) * TICK - env_now() % TICK);
    turn = env_now() + 64 * TICK;
    vmri_park_add(first.qp, VMRI_PARK_RNR, env_now() + 10 * TICK);
    vmri_park_add(far.qp, VMRI_PARK_RNR, turn + 20 * TICK);
    env_test_advance(10 * TICK);
    CHECK_EQ(woken(g), 1);
    vmri_park_add(near.qp, VMRI_PARK_RNR, turn);
    env_test_advance(turn - env_now() + TICK);
    CHECK_EQ(woken(g), 1);
    env_test_advance(21 * TICK);
    CHECK_EQ(woken(g), 1);
}

/* Any mixture of times, compared with what each asked for. */
TEST(park_many_queues)
{
    enum { N = 40 };
    struct guest *g = guest_new(1);
    static struct parking p[N];
    static uint64_t deadline[N];
    unsigned int i, round, due, seen;

    srand(1);
    for ( i = 0; i < N; i++ )
        p[i] = parking_new(g);

    for ( round = 0; round < 20; round++ )
    {
        uint64_t start = env_now(), step;

        for ( i = 0; i < N; i++ )
        {
            uint64_t ns = (uint64_t)rand() % (TICK << (rand() % 18));

            deadline[i] = env_now() + ns;
            vmri_park_add(p[i].qp, VMRI_PARK_RNR, deadline[i]);
            env_test_advance((uint64_t)rand() % TICK);
        }
        for ( seen = 0; seen < N; )
        {
            seen += woken(g);
            for ( due = 0, i = 0; i < N; i++ )
                due += deadline[i] + LATE <= env_now();
            CHECK(seen >= due);
            for ( due = 0, i = 0; i < N; i++ )
                due += deadline[i] <= env_now();
            CHECK(seen <= due);
            CHECK(env_now() < start + 20000 * SECOND);
            step = env_test_next_timer();
            env_test_advance(step > env_now() ? step - env_now() : TICK);
        }
    }
    CHECK_EQ(env_test_next_timer(), 0);
}

TEST(park_more_than_one_handler_does)
{
    enum { N = 200 };
    struct guest *g = guest_new(1);
    static struct parking p[N];
    uint64_t start = env_now();
    unsigned int i, n = 0;

    for ( i = 0; i < N; i++ )
    {
        p[i] = parking_new(g);
        vmri_park_add(p[i].qp, VMRI_PARK_RNR, start + 100 * TICK);
    }
    /* They lie together on two levels, one after the other. */
    while ( n < N )
    {
        CHECK(env_test_next_timer());
        env_test_advance(env_test_next_timer() - env_now());
        i = woken(g);
        CHECK(i <= 64);
        n += i;
    }
    CHECK(env_now() <= start + 100 * TICK + 2 * (N / 64 + 1) * REST);
}

/* However short and many the times are, the timer does not run all the time. */
TEST(park_timer_rests)
{
    enum { N = 100 };
    struct guest *g = guest_new(1);
    static struct parking p[N];
    uint64_t start = env_now(), last = 0;
    unsigned int i, runs = 0, n = 0;

    for ( i = 0; i < N; i++ )
        p[i] = parking_new(g);
    for ( i = 0; i < N; i++ )
        vmri_park_add(p[i].qp, VMRI_PARK_RNR, start + i * TICK);

    while ( n < N )
    {
        uint64_t at = env_test_next_timer();

        CHECK(at);
        CHECK(!last || at >= last + REST);
        last = at;
        env_test_advance(at - env_now());
        runs++;
        while ( (i = woken(g)) )
            n += i;
        /* Parked anew at once, it waits as others do. */
        if ( runs < 4 )
        {
            vmri_park_add(p[0].qp, VMRI_PARK_RNR, env_now());
            n--;
        }
    }
    CHECK_EQ(runs, N * TICK / REST + 1);
}

TEST(park_removed_queues_sleep_on)
{
    struct guest *g = guest_new(1);
    struct parking a = parking_new(g), b = parking_new(g);

    vmri_park_add(a.qp, VMRI_PARK_RNR, env_now() + 10 * TICK);
    vmri_park_add(b.qp, VMRI_PARK_PEER, VMRI_FOREVER);
    CHECK_EQ(vmri_park_remove(a.qp), true);
    CHECK_EQ(vmri_park_remove(a.qp), false);
    env_test_advance(SECOND);
    CHECK_EQ(woken(g), 0);
    CHECK_EQ(vmri_park_remove(b.qp), true);

    /* A parked QP that is destroyed is not touched by the timer. */
    vmri_park_add(a.qp, VMRI_PARK_RNR, env_now() + 10 * TICK);
    CHECK_EQ(qp_destroy(a.q), 0);
    env_test_advance(SECOND);
    CHECK_EQ(woken(g), 0);
}
