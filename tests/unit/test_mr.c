/* SPDX-License-Identifier: GPL-2.0-only */
/* mr.c: which frames, how they are kept, rights and bounds, long commands. */
#include "guest.h"
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef memcpy
#undef memset

#define RW      (VMRI_ACCESS_LOCAL_WRITE)
#define ALL     0xfU

static struct vmri_dev *dev_of(struct guest *g)
{
    struct vmri_dev *dev = vmri_dev_get(g->domain, g->dev);

    vmri_dev_put(dev);
    return dev;
}

/* Look an MR up as the engine does: 0, or the vendor error. */
static uint16_t lookup(const struct guest_mr *m, uint32_t key, uint32_t pd,
                       uint32_t access, uint64_t addr, uint64_t length)
{
    struct vmri_dev *dev = dev_of(m->guest);
    struct vmri_qp qp = { .dev = dev };
    struct vmri_pd *p = vmri_table_get(&dev->pds, pd);
    uint16_t verr = 0;
    struct vmri_key *k = vmri_key_get(&qp, p, key, access, addr, length,
                                      &verr);

    if ( k )
        vmri_key_put(k);
    if ( p )
        vmri_table_put(&dev->pds, pd);
    CHECK_EQ(!k, !!verr);
    return verr;
}

/* How many more pages from `page` on lie in contiguous frames. */
static uint32_t contiguous(const struct guest_mr *m, uint32_t page)
{
    struct domain *d = m->guest->domain;
    uint32_t n = 1;

    while ( page + n < m->pages && env_test_frame(d, m->gfn + page + n) ==
                                   env_test_frame(d, m->gfn + page) + n )
        n++;
    return n;
}

/* Every page's frame is right, and no run claims more than is contiguous. */
static void check_frames(const struct guest_mr *m)
{
    struct vmri_dev *dev = dev_of(m->guest);
    struct vmri_key *mr = vmri_table_get(&dev->keys, m->key);
    uint32_t page, offset;
    env_frame_t frame;

    CHECK(mr);
    for ( page = 0; page < m->pages; page++ )
    {
        uint64_t at = page ? ((uint64_t)page << PAGE_SHIFT) - m->offset + 5 : 0;
        uint64_t run;

        if ( at >= m->length )
            at = m->length - 1;
        run = vmri_range_frame(&mr->range, m->iova + at, &frame, &offset);
        CHECK_EQ(frame, env_test_frame(m->guest->domain, m->gfn + page));
        CHECK_EQ(offset, (m->offset + at) & ~PAGE_MASK);
        CHECK(run && run + offset <= (uint64_t)contiguous(m, page) << PAGE_SHIFT);
    }
    vmri_key_put(mr);
}

/* Register pages as they are in m, check, deregister; chunk shift on the way. */
static unsigned int check_layout(struct guest_mr *m)
{
    struct vmri_dev *dev = dev_of(m->guest);
    unsigned int shift;
    struct vmri_key *mr;
    uint32_t i;

    CHECK_EQ(try_mr(m->guest, m, m->guest->pd, RW), 0);
    mr = vmri_table_get(&dev->keys, m->key);
    shift = mr->range.pages.chunk_shift;
    vmri_key_put(mr);
    check_frames(m);
    for ( i = 0; i < m->pages; i++ )
        CHECK_EQ(env_test_page_refs(m->guest->domain, m->gfn + i), 1);
    CHECK_EQ(mr_deregister(m), 0);
    for ( i = 0; i < m->pages; i++ )
        CHECK_EQ(env_test_page_refs(m->guest->domain, m->gfn + i), 0);
    return shift;
}

TEST(mr_sizes_and_offsets)
{
    static const uint64_t bytes[] = { 1, 4095, 4096, 4097, 8192, 1 << 20 };
    static const uint32_t offsets[] = { 0, 1, 4095 };
    struct guest *g = guest_new(1);
    unsigned int i, k, layout;

    for ( i = 0; i < ARRAY_SIZE(bytes); i++ )
        for ( k = 0; k < ARRAY_SIZE(offsets); k++ )
            for ( layout = LAYOUT_RUN; layout <= LAYOUT_SCATTERED; layout++ )
            {
                struct guest_mr m = mr_pages(g, bytes[i], offsets[k], layout);

                check_layout(&m);
            }
}

/* Runs of `run` pages, of which the first is cut short by `skew`. */
static struct guest_mr mr_runs(struct guest *g, uint32_t pages, uint32_t run,
                               uint32_t skew)
{
    struct guest_mr m = {
        .guest = g, .pages = pages, .length = (uint64_t)pages << PAGE_SHIFT,
        .iova = g->next_iova,
    };
    uint32_t left = pages, n = run - skew;
    uint64_t gfn = 0;

    g->next_iova += 1ULL << 32;
    while ( left )
    {
        n = n < left ? n : left;
        gfn = env_test_pages(g->domain, n, false);
        if ( left == pages )
            m.gfn = gfn;
        left -= n;
        n = run;
    }
    return m;
}

TEST(mr_chunks_of_runs)
{
    struct guest *g = guest_new(1);
    struct guest_mr m;

    m = mr_runs(g, 600, 600, 0);
    CHECK_EQ(check_layout(&m), 31);
    m = mr_runs(g, 512, 64, 0);
    CHECK_EQ(check_layout(&m), 6);
    m = mr_runs(g, 500, 64, 17);
    CHECK_EQ(check_layout(&m), 6);
    m = mr_runs(g, 100, 64, 63);
    CHECK_EQ(check_layout(&m), 6);
    m = mr_runs(g, 1700, 512, 100);
    CHECK_EQ(check_layout(&m), 9);
    m = mr_runs(g, 96, 32, 31);
    check_layout(&m);
    m = mr_runs(g, 7, 3, 1);
    check_layout(&m);
    m = mr_runs(g, 1200, 1, 0);
    CHECK_EQ(check_layout(&m), 0);
}

/* Register the pages of a list, as given, and compare all runs with it. */
static void check_list(struct guest_mr *m, uint64_t *list)
{
    struct vmri_mr_register arg = {
        .frames = { .gfns = (uintptr_t)list, .nr = m->pages },
        .iova = m->iova, .length = m->length, .pd = m->guest->pd, .access = RW,
    };
    struct vmri_dev *dev = dev_of(m->guest);
    struct vmri_key *mr;
    uint32_t k, offset;
    env_frame_t frame;

    env_test_expose(list, m->pages * sizeof(*list));
    CHECK_EQ(guest_call(m->guest, VMRI_OP_mr_register, &arg, sizeof(arg)), 0);
    env_test_hide();
    m->key = arg.key;

    mr = vmri_table_get(&dev->keys, m->key);
    for ( k = 0; k < m->pages; k++ )
    {
        uint64_t run = vmri_range_frame(&mr->range, m->iova + k * PAGE_SIZE, &frame,
                                      &offset), n;

        for ( n = 0; n < run >> PAGE_SHIFT; n++ )
            CHECK_EQ(frame + n, env_test_frame(m->guest->domain, list[k + n]));
    }
    vmri_key_put(mr);
    CHECK_EQ(mr_deregister(m), 0);
}

/* Pages swapped about, some given twice. */
TEST(mr_random_runs)
{
    struct guest *g = guest_new(1);
    unsigned int i;

    srand(7);
    for ( i = 0; i < 150; i++ )
    {
        struct guest_mr m = mr_runs(g, 1 + rand() % 40, 8, 0);
        uint64_t list[40];
        uint32_t k;

        for ( k = 0; k < m.pages; k++ )
            list[k] = m.gfn + (rand() % 4 ? k : (uint32_t)rand() % m.pages);
        check_list(&m, list);
    }
}

/* The whole of memory in one run costs next to nothing. */
TEST(mr_contiguous_memory_is_cheap)
{
    struct guest *g = guest_new(1);
    uint64_t before = env_stats.allocated;
    struct guest_mr m = mr_pages(g, 32 << 20, 0, LAYOUT_RUN);

    CHECK_EQ(try_mr(g, &m, g->pd, RW), 0);
    /* Less the leaf of keys, which stays. */
    CHECK(env_stats.allocated - before < 1024 + PAGE_SIZE);
    CHECK_EQ(mr_deregister(&m), 0);
}

TEST(mr_no_allocation_is_larger_than_a_page)
{
    struct guest *g = guest_new(1);
    struct guest_mr m = mr_pages(g, 40 << 20, 0, LAYOUT_SCATTERED);

    env_stats.largest = 0;
    CHECK_EQ(try_mr(g, &m, g->pd, RW), 0);
    CHECK(env_stats.largest <= PAGE_SIZE + ENV_ALLOC_SLACK);
    CHECK_EQ(mr_deregister(&m), 0);
}

TEST(mr_rights_and_bounds)
{
    struct guest *g = guest_new(1);
    struct guest_mr m = guest_mr(g, 10000, 100, LAYOUT_SCATTERED,
                                 RW | VMRI_ACCESS_REMOTE_READ);
    uint32_t other = guest_pd(g);
    uint64_t i = m.iova;

    CHECK_EQ(lookup(&m, m.key, g->pd, 0, i, 10000), 0);
    CHECK_EQ(lookup(&m, m.key, g->pd, RW, i, 1), 0);
    CHECK_EQ(lookup(&m, m.key, g->pd, VMRI_ACCESS_REMOTE_READ, i + 9999, 1), 0);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, i, 10001), VMRI_VERR_BOUNDS);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, i - 1, 1), VMRI_VERR_BOUNDS);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, i - 1, 2), VMRI_VERR_BOUNDS);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, i + 10000, 1), VMRI_VERR_BOUNDS);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, i + 1, 10000), VMRI_VERR_BOUNDS);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, i + 1, ~0ULL), VMRI_VERR_BOUNDS);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, ~0ULL, 1), VMRI_VERR_BOUNDS);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, ~0ULL - 5, i + 10), VMRI_VERR_BOUNDS);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, 0, 1), VMRI_VERR_BOUNDS);
    CHECK_EQ(lookup(&m, m.key, g->pd, VMRI_ACCESS_REMOTE_WRITE, i, 1),
             VMRI_VERR_RIGHTS);
    CHECK_EQ(lookup(&m, m.key, g->pd, VMRI_ACCESS_REMOTE_ATOMIC, i, 1),
             VMRI_VERR_RIGHTS);
    CHECK_EQ(lookup(&m, m.key, other, 0, i, 1), VMRI_VERR_PD);
    CHECK_EQ(lookup(&m, m.key + 1, g->pd, 0, i, 1), VMRI_VERR_KEY);
    CHECK_EQ(lookup(&m, 0, g->pd, 0, i, 1), VMRI_VERR_KEY);
    CHECK_EQ(lookup(&m, VMRI_LKEY_FRAMES, g->pd, 0, i, 1), VMRI_VERR_KEY);
    CHECK_EQ(lookup(&m, ~0U, g->pd, 0, i, 1), VMRI_VERR_KEY);

    CHECK_EQ(mr_deregister(&m), 0);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, i, 1), VMRI_VERR_KEY);
    CHECK_EQ(mr_deregister(&m), -ENOENT);
}

/* At the very end of the address space. */
TEST(mr_at_the_top)
{
    struct guest *g = guest_new(1);
    struct guest_mr m = mr_pages(g, 4096, 0, LAYOUT_RUN);

    m.iova = -8192ULL;
    CHECK_EQ(try_mr(g, &m, g->pd, RW), 0);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, m.iova, 4096), 0);
    CHECK_EQ(lookup(&m, m.key, g->pd, 0, m.iova + 4095, ~0ULL),
             VMRI_VERR_BOUNDS);
    CHECK_EQ(mr_deregister(&m), 0);
    m.iova = -4095ULL;
    CHECK_EQ(try_mr(g, &m, g->pd, RW), -EINVAL);
}

TEST(mr_bad_arguments)
{
    struct guest *g = guest_new(1);
    uint64_t list[4], gfn = env_test_pages(g->domain, 4, false);
    struct vmri_mr_register ok = {
        .iova = 0x10000, .length = 8192, .pd = g->pd, .access = RW,
    }, arg;
    struct vmri_object none = { .handle = 0x12300 }, bad = { .reserved = 1 };
    unsigned int i;
    static const struct {
        size_t at;
        uint64_t value;
        unsigned int bytes;
        int rc;
    } cases[] = {
#define CASE(field, value, rc)                                              \
    { offsetof(struct vmri_mr_register, field), value,                      \
      sizeof(((struct vmri_mr_register *)0)->field), rc }
        CASE(frames.nr, 1, -EINVAL),
        CASE(frames.nr, 3, -EINVAL),
        CASE(frames.nr, 0, -EINVAL),
        CASE(frames.nr, 0xffffffff, -EINVAL),
        CASE(frames.reserved, 1, -EINVAL),
        CASE(frames.gfns, 0x1000, -EFAULT),
        CASE(frames.gfns, ~0ULL - 4, -EFAULT),
        CASE(length, 0, -EINVAL),
        CASE(length, 8193, -EINVAL),
        CASE(length, 4096, -EINVAL),
        CASE(length, ~0ULL, -EINVAL),
        CASE(length, 1ULL << 44, -EINVAL),
        CASE(iova, ~0ULL - 100, -EINVAL),
        CASE(pd, 0, -ENOENT),
        CASE(pd, 77, -ENOENT),
        CASE(access, 0x20, -EINVAL),
        CASE(access, 0x80000001, -EINVAL),
        CASE(access, VMRI_ACCESS_REMOTE_WRITE, -EINVAL),
        CASE(access, VMRI_ACCESS_REMOTE_ATOMIC, -EINVAL),
        CASE(offset, 4096, -EINVAL),
        CASE(offset, 1, -EINVAL),
        CASE(offset, ~0U, -EINVAL),
        CASE(key, 1, -EINVAL),
        CASE(twin, 1, -EINVAL),
        CASE(reserved, 1, -EINVAL),
#undef CASE
    };

    guest_frames(&ok.frames, list, gfn, 2);
    env_test_expose(list, sizeof(list));
    for ( i = 0; i < ARRAY_SIZE(cases); i++ )
    {
        arg = ok;
        memcpy((uint8_t *)&arg + cases[i].at, &cases[i].value, cases[i].bytes);
        CHECK_AT(guest_call(g, VMRI_OP_mr_register, &arg, sizeof(arg)),
                 cases[i].rc, "case %u", i);
        CHECK_EQ(env_test_page_refs(g->domain, gfn), 0);
    }
    arg = ok;
    CHECK_EQ(guest_call(g, VMRI_OP_mr_register, &arg, sizeof(arg)), 0);
    env_test_hide();
    CHECK_EQ(guest_call(g, VMRI_OP_mr_deregister, &none, sizeof(none)), -ENOENT);
    CHECK_EQ(guest_call(g, VMRI_OP_mr_deregister, &bad, sizeof(bad)), -EINVAL);
}

/* The first security property: no write through RDMA to what Xen trusts. */
TEST(mr_refused_frames)
{
    static const struct {
        enum env_page_kind kind;
        uint32_t access;
        int rc;
    } cases[] = {
        { ENV_PAGE_TABLE, RW, -EPERM },
        { ENV_PAGE_TABLE, ALL, -EPERM },
        { ENV_PAGE_TABLE, 0, 0 },
        { ENV_PAGE_TABLE, VMRI_ACCESS_REMOTE_READ, 0 },
        { ENV_SPECIAL, RW, -EPERM },
        { ENV_SPECIAL, 0, -EPERM },
        { ENV_GRANT, RW, -EPERM },
        { ENV_GRANT, 0, -EPERM },
        { ENV_HOLE, 0, -EPERM },
    };
    struct guest *g = guest_new(1);
    unsigned int i, at;

    for ( i = 0; i < ARRAY_SIZE(cases); i++ )
        for ( at = 0; at < 100; at += 33 )
        {
            struct guest_mr m = mr_pages(g, 100 * PAGE_SIZE, 0,
                                         LAYOUT_SCATTERED);
            unsigned int k;

            env_test_page_kind(g->domain, m.gfn + at, cases[i].kind);
            CHECK_AT(try_mr(g, &m, g->pd, cases[i].access), cases[i].rc,
                     "case %u", i);
            if ( !cases[i].rc )
                CHECK_EQ(mr_deregister(&m), 0);
            for ( k = 0; k < 100; k++ )
                if ( k != at )
                    CHECK_EQ(env_test_page_refs(g->domain, m.gfn + k), 0);
        }
}

TEST(mr_frames_of_another_domain)
{
    struct guest *g = guest_new(1), *other = guest_new(2);
    struct guest_mr m = mr_pages(g, 4096, 0, LAYOUT_RUN);

    m.gfn = other->eq[0]->gfn;
    CHECK_EQ(try_mr(g, &m, g->pd, 0), -EPERM);
}

TEST(mr_pins_what_may_be_written)
{
    struct guest *g = guest_new(1);
    struct guest_mr rw = guest_mr(g, 4096, 0, LAYOUT_RUN, RW);
    struct guest_mr ro = guest_mr(g, 4096, 0, LAYOUT_RUN, 0);

    CHECK(!env_test_page_pin_table(g->domain, rw.gfn));
    CHECK(env_test_page_pin_table(g->domain, ro.gfn));
    CHECK_EQ(mr_deregister(&rw), 0);
    CHECK(env_test_page_pin_table(g->domain, rw.gfn));

    /* The p2m changes: the MR keeps its frames and puts the same ones. */
    env_test_page_kind(g->domain, ro.gfn, ENV_HOLE);
    CHECK_EQ(mr_deregister(&ro), 0);
}

TEST(mr_one_page_many_times)
{
    struct guest *g = guest_new(1);
    struct guest_mr a = guest_mr(g, 4096, 0, LAYOUT_RUN, RW), b = a;

    CHECK_EQ(try_mr(g, &b, g->pd, 0), 0);
    CHECK(a.key != b.key);
    CHECK_EQ(env_test_page_refs(g->domain, a.gfn), 2);
    CHECK_EQ(mr_deregister(&a), 0);
    CHECK_EQ(mr_deregister(&b), 0);
}

TEST(mr_keeps_its_pd)
{
    struct guest *g = guest_new(1);
    struct guest_mr m = guest_mr(g, 4096, 0, LAYOUT_RUN, RW);
    struct vmri_object pd = { .handle = g->pd };

    CHECK_EQ(guest_call(g, VMRI_OP_pd_destroy, &pd, sizeof(pd)), -EBUSY);
    CHECK_EQ(mr_deregister(&m), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_pd_destroy, &pd, sizeof(pd)), 0);
}

/* ---- long commands ---- */

TEST(mr_register_goes_on_after_preemption)
{
    struct guest *g = guest_new(1);
    unsigned int every;

    for ( every = 1; every < 4; every++ )
    {
        struct guest_mr m = mr_pages(g, 1 << 20, 0, LAYOUT_SCATTERED);

        env_test_preempt(every);
        env_stats.preempts = 0;
        CHECK_EQ(try_mr(g, &m, g->pd, RW), 0);
        CHECK(env_stats.preempts >= 4);
        check_frames(&m);
        CHECK_EQ(mr_deregister(&m), 0);
        env_test_preempt(0);
        CHECK_EQ(env_test_page_refs(g->domain, m.gfn), 0);
    }
}

/* One step of a registration of 256 pages; its list must stay exposed. */
static uint64_t long_list[256];
static struct vmri_mr_register long_arg;
static struct guest_mr long_mr;

static long register_step(struct guest *g, uint32_t flags)
{
    long rc;

    env_test_expose(long_list, sizeof(long_list));
    rc = guest_call_once(g, VMRI_OP_mr_register | flags, &long_arg,
                         sizeof(long_arg));
    env_test_hide();
    return rc;
}

static void register_begin(struct guest *g)
{
    long_mr = mr_pages(g, 1 << 20, 0, LAYOUT_SCATTERED);
    long_arg = (struct vmri_mr_register){
        .iova = long_mr.iova, .length = 1 << 20, .pd = g->pd, .access = RW,
    };
    guest_frames(&long_arg.frames, long_list, long_mr.gfn, 256);
    env_test_preempt(1);
    CHECK_EQ(register_step(g, 0), -ERESTART);
}

TEST(mr_hostile_tickets)
{
    struct guest *g = guest_new(1), *other = guest_new(2);
    struct guest_mr live = guest_mr(g, 4096, 0, LAYOUT_RUN, RW);
    struct vmri_object arg;
    uint32_t tickets[] = { 0, 99, ~0U, live.key >> 8 }, ticket;
    unsigned int i;
    long rc;

    register_begin(g);
    ticket = guest_ticket;
    env_test_preempt(0);

    /* Of nothing, of a live MR: refused, and the live one lives. */
    for ( i = 0; i < ARRAY_SIZE(tickets); i++ )
    {
        guest_ticket = tickets[i];
        CHECK(register_step(g, VMRI_CONTINUE) < 0);
    }
    CHECK_EQ(lookup(&live, live.key, g->pd, RW, live.iova, 4096), 0);

    /* Another domain's, by its own device. */
    guest_ticket = ticket;
    CHECK(register_step(other, VMRI_CONTINUE) < 0);

    /* A half-registered one cannot be used, nor deregistered as if it were. */
    CHECK_EQ(lookup(&live, ticket << 8, g->pd, 0, long_mr.iova, 1),
             VMRI_VERR_KEY);
    arg = (struct vmri_object){ .handle = ticket << 8 };
    CHECK_EQ(guest_call(g, VMRI_OP_mr_deregister, &arg, sizeof(arg)), -ENOENT);

    /* Continued by a deregistration: it ends, all is given back. */
    guest_ticket = ticket;
    rc = guest_call_once(g, VMRI_OP_mr_deregister | VMRI_CONTINUE, &arg,
                         sizeof(arg));
    CHECK_EQ(rc, 0);
    CHECK_EQ(env_test_page_refs(g->domain, long_mr.gfn), 0);
    guest_ticket = ticket;
    CHECK(register_step(g, VMRI_CONTINUE) < 0);
    CHECK_EQ(mr_deregister(&live), 0);
}

/* Two vCPUs at one registration: the second waits for the first. */
static void continue_too(void *data)
{
    struct guest *g = data;
    const uint32_t ticket = guest_ticket;
    struct vmri_object arg = { .handle = 0 };

    CHECK_EQ(register_step(g, VMRI_CONTINUE), -ERESTART);
    CHECK_EQ(guest_call_once(g, VMRI_OP_mr_deregister | VMRI_CONTINUE, &arg,
                             sizeof(arg)), -ERESTART);
    CHECK_EQ(guest_call_once(g, VMRI_OP_dev_destroy, NULL, 0), -ERESTART);
    guest_ticket = ticket;
}

TEST(mr_continued_twice_at_once)
{
    struct guest *g = guest_new(1);
    long rc;

    register_begin(g);
    env_test_on_preempt(1, continue_too, g);
    rc = register_step(g, VMRI_CONTINUE);
    env_test_preempt(0);
    while ( rc == -ERESTART )
        rc = register_step(g, VMRI_CONTINUE);
    /* The device was being emptied. */
    CHECK_EQ(rc, -ENODEV);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy | VMRI_CONTINUE, NULL, 0), 0);
    CHECK_EQ(env_test_page_refs(g->domain, long_mr.gfn), 0);
}

TEST(mr_changed_arguments_between_the_steps)
{
    struct guest *g = guest_new(1);
    long rc;

    register_begin(g);
    memset(&long_arg, 0xff, sizeof(long_arg));
    while ( (rc = register_step(g, VMRI_CONTINUE)) == -ERESTART )
        ;
    CHECK_EQ(rc, 0);
    long_mr.key = long_arg.key;
    check_frames(&long_mr);
    env_test_preempt(0);
    CHECK_EQ(mr_deregister(&long_mr), 0);
}

/* The structure itself goes away, before or after the last page is pinned. */
TEST(mr_arguments_gone_between_the_steps)
{
    struct guest *g = guest_new(1);
    unsigned int fail_to, i, steps;
    uint64_t before;
    long rc = 0;

    /* What the first one makes for all. */
    check_layout((struct guest_mr[]){ mr_pages(g, 8192, 0, LAYOUT_RUN) });

    for ( fail_to = 0; fail_to < 2; fail_to++ )
    {
        before = env_stats.allocated;
        register_begin(g);
        env_test_fail(fail_to ? ENV_FAIL_COPY_TO : ENV_FAIL_COPY_FROM, 1);
        for ( steps = 0; steps < 100; steps++ )
        {
            rc = register_step(g, VMRI_CONTINUE);
            if ( rc != -ERESTART )
                break;
        }
        CHECK_EQ(rc, -EFAULT);
        CHECK(steps > 1 || !fail_to);
        for ( i = 0; i < 256; i++ )
            CHECK_EQ(env_test_page_refs(g->domain, long_mr.gfn + i), 0);
        CHECK_EQ(env_stats.allocated, before);
        env_test_preempt(0);
    }
}

TEST(mr_abandoned_registration_goes_with_the_device)
{
    struct guest *g = guest_new(1);
    struct vmri_ctl_info info = { .domid = 1 };
    long rc;

    register_begin(g);
    while ( (rc = guest_call(g, VMRI_OP_dev_destroy, NULL, 0)) == -ERESTART )
        ;
    CHECK_EQ(rc, 0);
    CHECK_EQ(env_test_page_refs(g->domain, long_mr.gfn), 0);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), 0);
    CHECK_EQ(info.usage.n[VMRI_RES_PINNED], 0);
    CHECK_EQ(info.in_use, 0);
    CHECK(register_step(g, VMRI_CONTINUE) < 0);
}

/* A continued deregistration is not mistaken for another MR's. */
TEST(mr_deregister_goes_on)
{
    struct guest *g = guest_new(1);
    struct guest_mr a = guest_mr(g, 1 << 20, 0, LAYOUT_SCATTERED, RW);
    struct vmri_object arg = { .handle = a.key };

    env_test_preempt(1);
    CHECK_EQ(guest_call_once(g, VMRI_OP_mr_deregister, &arg, 8), -ERESTART);
    CHECK_EQ(guest_call(g, VMRI_OP_mr_deregister, &arg, 8), -ENOENT);
    CHECK_EQ(lookup(&a, a.key, g->pd, 0, a.iova, 1), VMRI_VERR_KEY);
    CHECK_EQ(guest_call(g, VMRI_OP_mr_deregister | VMRI_CONTINUE, &arg, 8), 0);
    CHECK_EQ(env_test_page_refs(g->domain, a.gfn), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_mr_deregister, &arg, 8), -ENOENT);
}

TEST(mr_every_failure_undoes_all)
{
    struct guest *g = guest_new(1);
    struct guest_mr m = guest_mr(g, 40 * PAGE_SIZE, 0, LAYOUT_SCATTERED, RW);
    unsigned int kind, nth, every, i;

    CHECK_EQ(mr_deregister(&m), 0);
    for ( kind = 0; kind < ENV_FAIL_COPY_TO; kind++ )
        for ( every = 0; every < 2; every++ )
            for ( nth = 1; ; nth++ )
            {
                uint64_t before = env_stats.allocated;
                long rc;

                env_test_preempt(every);
                env_test_fail(kind, nth);
                rc = try_mr(g, &m, g->pd, RW);
                if ( env_test_fail_left(kind) )
                {
                    CHECK_EQ(rc, 0);
                    env_test_fail(kind, 0);
                    CHECK_EQ(mr_deregister(&m), 0);
                    break;
                }
                /* A better layout that cannot be had is done without. */
                if ( !rc )
                    CHECK_EQ(mr_deregister(&m), 0);
                CHECK(rc <= 0);
                CHECK_EQ(env_stats.allocated, before);
                for ( i = 0; i < m.pages; i++ )
                    CHECK_EQ(env_test_page_refs(g->domain, m.gfn + i), 0);
            }
}

TEST(mr_pinned_pages_are_limited)
{
    struct guest *g = guest_new(1);
    struct guest_mr a = mr_pages(g, 1 << 20, 0, LAYOUT_SCATTERED), b = a;
    struct vmri_dev *dev = dev_of(g);

    dev->owner->limit[VMRI_RES_PINNED] = dev->usage[VMRI_RES_PINNED] + 256;
    CHECK_EQ(try_mr(g, &a, g->pd, RW), 0);
    CHECK_EQ(try_mr(g, &b, g->pd, RW), -ENOSPC);
    CHECK_EQ(mr_deregister(&a), 0);
    CHECK_EQ(try_mr(g, &b, g->pd, RW), 0);
}
