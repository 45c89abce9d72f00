/* SPDX-License-Identifier: GPL-2.0-only */
/* ring.c: queues too long for one call, and what a guest does meanwhile. */
#include "guest.h"
#include "internal.h"

#include <stdlib.h>

#undef memcpy
#undef memset

#define LOG2        17U         /* of a CQ of 8 MiB */
#define PAGES       2049U

/* A creation step by step; its list of frames must stay exposed. */
static uint64_t list[PAGES];
static uint64_t first;
static struct vmri_cq_create arg;

static long step(struct guest *g, uint32_t flags)
{
    long rc;

    env_test_expose(list, sizeof(list));
    rc = guest_call_once(g, VMRI_OP_cq_create | flags, &arg, sizeof(arg));
    env_test_hide();
    return rc;
}

static long begin(struct guest *g)
{
    if ( !first )
        first = env_test_pages(g->domain, PAGES, true);
    arg = (struct vmri_cq_create){
        .log2_entries = LOG2, .eq = g->eq[0]->handle,
    };
    guest_frames(&arg.frames, list, first, PAGES);
    return step(g, 0);
}

static unsigned int pinned(struct guest *g)
{
    unsigned int i, n = 0;

    for ( i = 0; i < PAGES; i++ )
        n += env_test_page_refs(g->domain, first + i);
    return n;
}

static struct vmri_usage usage(void)
{
    struct vmri_ctl_info info = { .domid = 1 };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), 0);
    return info.usage;
}

TEST(ring_no_call_pins_more_than_it_may)
{
    struct guest *g = guest_new(1);
    struct vmri_object obj = { .handle = 0 };
    unsigned int steps = 1;
    long rc = begin(g);

    while ( rc == -ERESTART )
    {
        CHECK(pinned(g) <= steps * VMRI_CALL_FRAMES);
        rc = step(g, VMRI_CONTINUE);
        steps++;
    }
    CHECK_EQ(rc, 0);
    CHECK_EQ(steps, 3);
    CHECK_EQ(pinned(g), PAGES);
    obj.handle = arg.handle;
    CHECK_EQ(guest_call(g, VMRI_OP_cq_destroy, &obj, sizeof(obj)), 0);
    CHECK_EQ(pinned(g), 0);
}

/* What lets go of the frames of a CQ as `arg` has it, or of its creation. */
static long destroy(struct guest *g, uint32_t flags)
{
    struct vmri_object obj = { .handle = arg.handle };

    return guest_call_once(g, VMRI_OP_cq_destroy | flags, &obj, sizeof(obj));
}

static struct vmri_cq_resize resize_arg;

static long resize(struct guest *g, uint32_t flags)
{
    static uint64_t small[2];
    long rc;

    if ( !flags )
    {
        resize_arg = (struct vmri_cq_resize){
            .handle = arg.handle, .log2_entries = 4,
        };
        guest_frames(&resize_arg.frames, small,
                     env_test_pages(g->domain, 1, false), 1);
    }
    env_test_expose(small, sizeof(small));
    rc = guest_call_once(g, VMRI_OP_cq_resize | flags, &resize_arg,
                         sizeof(resize_arg));
    env_test_hide();
    return rc;
}

static long resize_untold(struct guest *g, uint32_t flags)
{
    if ( !flags )
        env_test_fail(ENV_FAIL_COPY_TO, 1);
    return resize(g, flags);
}

static long fail(struct guest *g, uint32_t flags)
{
    return step(g, flags);
}

static long close_device(struct guest *g, uint32_t flags)
{
    g->eq[0] = NULL;
    return guest_call_once(g, VMRI_OP_dev_destroy | flags, NULL, 0);
}

static long detach_device(struct guest *g, uint32_t flags)
{
    struct vmri_ctl_detach detach = { .domid = 1, .dev_id = g->dev };
    struct guest dom0 = { .domain = env_test_domain(0) };

    g->eq[0] = NULL;
    return guest_call_once(&dom0, VMRI_OP_ctl_detach | flags, &detach,
                           sizeof(detach));
}

TEST(ring_no_call_lets_go_of_more_than_it_may)
{
    static const struct {
        long (*call)(struct guest *g, uint32_t flags);
        bool last_frame_bad, untold;
        int rc;
    } cases[] = {
        { destroy, false, false, 0 },
        { resize, false, false, 0 },
        { resize_untold, false, false, -EFAULT },
        { fail, true, false, -EPERM },
        { fail, false, true, -EFAULT },
        { close_device, false, false, 0 },
        { detach_device, false, false, 0 },
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(cases); i++ )
    {
        struct guest *g = guest_bare(1);
        unsigned int before, now, steps = 0;
        uint32_t flags = 0;
        long rc;

        g->dev = VMRI_DEV_ANY;
        CHECK_EQ(dom0_attach(1, GUEST_FABRIC, &g->dev, &g->lid), 0);
        guest_start(g);
        first = 0;
        CHECK_EQ(begin(g), -ERESTART);
        CHECK_EQ(step(g, VMRI_CONTINUE), -ERESTART);
        if ( cases[i].last_frame_bad )
            env_test_page_kind(g->domain, first + PAGES - 1, ENV_PAGE_TABLE);
        if ( cases[i].untold )
            env_test_fail(ENV_FAIL_COPY_TO, 1);
        if ( cases[i].call == fail )
            flags = VMRI_CONTINUE;
        else
            CHECK_EQ(step(g, VMRI_CONTINUE), 0);

        before = pinned(g);
        do {
            rc = cases[i].call(g, flags);
            now = pinned(g);
            CHECK_AT(before - now <= VMRI_CALL_FRAMES, true, "case %u", i);
            before = now;
            flags = VMRI_CONTINUE;
            /* What a resize has to tell is told with its first step. */
            if ( cases[i].call == resize )
                CHECK_EQ(resize_arg.prod, 0);
        } while ( rc == -ERESTART && ++steps < 100 );
        CHECK_AT(rc, cases[i].rc, "case %u", i);
        CHECK_EQ(pinned(g), 0);
        CHECK_AT(steps >= 1, true, "case %u", i);
        if ( cases[i].call != detach_device )
            dom0_detach(1, g->dev);
    }
}

/* Somebody else ends what lets go of its frames, and what is half done. */
TEST(ring_goes_with_the_device)
{
    struct guest *g = guest_new(1);

    CHECK_EQ(begin(g), -ERESTART);
    while ( step(g, VMRI_CONTINUE) )
        ;
    CHECK_EQ(destroy(g, 0), -ERESTART);
    CHECK_EQ(pinned(g), PAGES - VMRI_CALL_FRAMES);
    CHECK_EQ(destroy(g, 0), -ENOENT);
    CHECK_EQ(dom0_detach(1, g->dev), 0);
    CHECK_EQ(pinned(g), 0);
    memset(g->eq, 0, sizeof(g->eq));
}

TEST(ring_creation_goes_on_after_preemption)
{
    struct guest *g = guest_new(1);
    unsigned int every;

    for ( every = 1; every < 4; every++ )
    {
        struct guest_qp_opts opts = {
            .sq_log2 = 10, .rq_log2 = 10, .max_inline = 512,
        };
        struct guest_qp *qp;
        struct guest_cq *cq;
        struct guest_eq *eq;

        env_stats.preempts = 0;
        env_test_preempt(every);
        eq = guest_eq(g, 14);
        cq = guest_cq(g, 12);
        opts.scq = opts.rcq = cq;
        qp = guest_qp(g, &opts);
        env_test_preempt(0);
        CHECK(env_stats.preempts > 10);
        CHECK_EQ(qp_destroy(qp), 0);
        CHECK_EQ(cq_destroy(cq), 0);
        CHECK_EQ(eq_destroy(eq), 0);
        CHECK_EQ(env_test_page_refs(g->domain, cq->gfn + 64), 0);
    }
}

static struct guest *meddler;

/* What a guest may do between two steps, and how the creation then ends. */
static void other_size(void)
{
    arg.log2_entries--;
    arg.frames.nr = PAGES / 2 + 1;
}

static void bad_size(void)
{
    arg.log2_entries = 31;
}

static void no_eq(void)
{
    CHECK_EQ(eq_destroy(meddler->eq[0]), 0);
    meddler->eq[0] = NULL;
}

static void no_frames(void)
{
    arg.frames.gfns = 8;
}

static void bad_frame(void)
{
    env_test_page_kind(meddler->domain, first + PAGES - 1, ENV_PAGE_TABLE);
}

static void no_structure(void)
{
    env_test_fail(ENV_FAIL_COPY_FROM, 1);
}

static void not_to_be_told(void)
{
    env_test_fail(ENV_FAIL_COPY_TO, 1);
}

static void other_ticket(void)
{
    guest_ticket++;
}

static void closed(void)
{
    uint32_t ticket = guest_ticket;

    CHECK_EQ(guest_call(meddler, VMRI_OP_dev_destroy, NULL, 0), 0);
    guest_ticket = ticket;
    meddler->eq[0] = NULL;
}

TEST(ring_guest_meddles_between_the_steps)
{
    static const struct {
        void (*meddle)(void);
        int rc;
        bool ends;              /* what was pinned is let go of */
    } cases[] = {
        { other_size, -EINVAL, true },
        { bad_size, -EINVAL, true },
        { no_eq, -ENOENT, true },
        { no_frames, -EFAULT, true },
        { bad_frame, -EPERM, true },
        { no_structure, -EFAULT, true },
        { not_to_be_told, -EFAULT, true },
        { other_ticket, -ENODEV, false },
        { closed, -ENOENT, true },
    };
    struct guest *g = guest_bare(1);
    unsigned int i;

    meddler = g;
    for ( i = 0; i < ARRAY_SIZE(cases); i++ )
    {
        struct vmri_usage before;
        long rc;

        if ( !g->eq[0] )
        {
            dom0_detach(1, 0);
            g->dev = VMRI_DEV_ANY;
            g->lid = 0;
            CHECK_EQ(dom0_attach(1, GUEST_FABRIC, &g->dev, &g->lid), 0);
            guest_start(g);
            CHECK_EQ(cq_destroy(guest_cq(g, 4)), 0);
        }
        before = usage();
        CHECK_EQ(begin(g), -ERESTART);
        CHECK_EQ(pinned(g), VMRI_CALL_FRAMES);
        cases[i].meddle();
        do
            rc = step(g, VMRI_CONTINUE);
        while ( rc == -ERESTART );
        CHECK_AT(rc, cases[i].rc, "case %u", i);
        env_test_page_kind(g->domain, first + PAGES - 1, ENV_RAM);
        env_test_fail(ENV_FAIL_COPY_FROM, 0);
        env_test_fail(ENV_FAIL_COPY_TO, 0);

        if ( !cases[i].ends )
            CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy, NULL, 0), 0);
        CHECK_AT(pinned(g), 0, "case %u", i);
        if ( cases[i].ends && g->eq[0] )
            CHECK_EQ(usage().n[VMRI_RES_BYTES], before.n[VMRI_RES_BYTES]);
        if ( !cases[i].ends )
            g->eq[0] = NULL;
    }
}

TEST(ring_every_failure_undoes_all)
{
    struct guest *g = guest_new(1);
    unsigned int kind, nth, i;

    CHECK_EQ(cq_destroy(guest_cq(g, 4)), 0);
    for ( kind = 0; kind < ENV_FAIL_NR; kind++ )
        for ( nth = 1; kind != ENV_FAIL_PORT; nth++ )
        {
            struct vmri_usage before = usage();
            struct guest_cq *cq;
            long rc;

            env_test_preempt(1);
            env_test_fail(kind, nth);
            rc = try_cq(g, 12, g->eq[0], &cq);
            env_test_preempt(0);
            if ( env_test_fail_left(kind) )
            {
                env_test_fail(kind, 0);
                CHECK_EQ(rc, 0);
                CHECK_EQ(cq_destroy(cq), 0);
                break;
            }
            CHECK(rc < 0);
            CHECK_EQ(usage().n[VMRI_RES_BYTES], before.n[VMRI_RES_BYTES]);
            CHECK_EQ(usage().n[VMRI_RES_PINNED], before.n[VMRI_RES_PINNED]);
            for ( i = 0; i < 65; i++ )
                CHECK_EQ(env_test_page_refs(g->domain, cq->gfn + i), 0);
        }
}

/* Nobody goes on: the end of the device, however it comes, is the frames'. */
TEST(ring_abandoned_creation_goes_with_the_device)
{
    struct guest *g = guest_new(1);

    CHECK_EQ(begin(g), -ERESTART);
    CHECK_EQ(usage().n[VMRI_RES_PINNED] >= PAGES, 1);
    CHECK_EQ(dom0_detach(1, g->dev), 0);
    CHECK_EQ(pinned(g), 0);
    CHECK_EQ(step(g, VMRI_CONTINUE), -ENODEV);
    memset(g->eq, 0, sizeof(g->eq));
}

/* A device that is not in use has no end that would find it. */
TEST(ring_not_begun_without_a_device)
{
    struct guest *g = guest_bare(1);
    struct vmri_eq_create eq = { .log2_entries = 16 };

    CHECK_EQ(dom0_attach(1, 1, &g->dev, &g->lid), 0);
    first = env_test_pages(g->domain, PAGES, true);
    guest_frames(&eq.frames, list, first, 257);
    env_test_preempt(1);
    env_test_expose(list, sizeof(list));
    CHECK_EQ(guest_call_once(g, VMRI_OP_eq_create, &eq, sizeof(eq)), -ENODEV);
    env_test_hide();
    CHECK_EQ(pinned(g), 0);
}

/* Two vCPUs at one creation: the second waits for the first. */
static void continue_too(void *data)
{
    const uint32_t ticket = guest_ticket;
    struct vmri_cq_create saved = arg;

    CHECK_EQ(step(data, VMRI_CONTINUE), -ERESTART);
    CHECK_EQ(guest_ticket, ticket);
    CHECK_EQ(guest_call_once(data, VMRI_OP_dev_destroy, NULL, 0), -ERESTART);
    arg = saved;
    guest_ticket = ticket;
}

TEST(ring_continued_twice_at_once)
{
    struct guest *g = guest_new(1);
    long rc;

    CHECK_EQ(begin(g), -ERESTART);
    env_test_on_preempt(1, continue_too, g);
    /* The device is being emptied. */
    do
        rc = step(g, VMRI_CONTINUE);
    while ( rc == -ERESTART );
    CHECK_EQ(rc, -ENODEV);
    CHECK_EQ(pinned(g), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy | VMRI_CONTINUE, NULL, 0), 0);
    g->eq[0] = NULL;
}
