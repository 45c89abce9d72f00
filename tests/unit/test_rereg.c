/* SPDX-License-Identifier: GPL-2.0-only */
/* mr.c: re-registration: what changes, what stays, and what it waits for. */
#include "keys.h"
#include "internal.h"

#undef memcpy
#undef memset

static uint64_t list[400];

/* Re-register m as `to` (frames, iova) with PD and access, as flags say. */
static long rereg_step(struct guest_mr *m, uint32_t flags,
                       const struct guest_mr *to, uint32_t pd, uint32_t access,
                       uint32_t again)
{
    struct vmri_mr_reregister arg = {
        .old_key = m->key, .flags = flags, .mr = { .pd = pd, .access = access },
    };
    long rc;

    if ( flags & VMRI_REREG_TRANS )
    {
        arg.mr.iova = to->iova;
        arg.mr.length = to->length;
        arg.mr.offset = to->offset;
        guest_frames(&arg.mr.frames, list, to->gfn, to->pages);
    }
    env_test_expose(list, sizeof(list));
    rc = guest_call_once(m->guest, VMRI_OP_mr_reregister | again, &arg,
                         sizeof(arg));
    env_test_hide();
    /* Not told when the structure went away while the old frames did. */
    if ( !rc && arg.mr.key )
        m->key = arg.mr.key;
    return rc;
}

static long rereg(struct guest_mr *m, uint32_t flags,
                  const struct guest_mr *to, uint32_t pd, uint32_t access)
{
    long rc = rereg_step(m, flags, to, pd, access, 0);

    while ( rc == -ERESTART )
        rc = rereg_step(m, flags, to, pd, access, VMRI_CONTINUE);
    return rc;
}

static void check_refs(const struct guest_mr *m, unsigned int refs)
{
    uint32_t i;

    for ( i = 0; i < m->pages; i++ )
        CHECK_AT(env_test_page_refs(m->guest->domain, m->gfn + i), refs,
                 "page %u of %u", i, m->pages);
}

TEST(rereg_each_change)
{
    struct pair p = pair_keys(NULL);
    struct guest_mr m = guest_mr(p.b, 300000, 50, LAYOUT_SCATTERED, LW | RW);
    struct guest_mr to = mr_pages(p.b, 400000, 999, LAYOUT_SCATTERED);
    uint32_t pd = guest_pd(p.b), every;

    CHECK_EQ(rereg(&m, VMRI_REREG_ACCESS, NULL, 0, LW | RR), 0);
    CHECK_EQ(a_writes(&p, m.key, m.iova, 8), VMRI_VERR_RIGHTS);
    CHECK_EQ(a_reads(&p, m.key, m.iova, 300000), 0);
    CHECK_EQ(rereg(&m, VMRI_REREG_PD, NULL, pd, 0), 0);
    CHECK_EQ(a_reads(&p, m.key, m.iova, 8), VMRI_VERR_PD);
    CHECK_EQ(rereg(&m, VMRI_REREG_PD | VMRI_REREG_ACCESS, NULL, p.b->pd,
                   LW | RW), 0);
    a_pattern(&p, m.key, m.iova + 100, m.mem + 100, 200000);
    check_refs(&m, 1);

    /* Frames given for others, one step at a time or in one go. */
    for ( every = 0; every < 4; every++ )
    {
        struct guest_mr old = m;

        env_test_preempt(every);
        CHECK_EQ(rereg(&m, VMRI_REREG_TRANS, &to, 0, 0), 0);
        env_test_preempt(0);
        CHECK_EQ(a_writes(&p, m.key, old.iova, 8), VMRI_VERR_BOUNDS);
        a_pattern(&p, m.key, to.iova + 100, to.mem + 100, to.length - 200);
        check_refs(&old, 0);
        check_refs(&to, 1);
        to.key = m.key;
        m = to;
        to = old;
    }
}

/* Writable or not is a matter of how the frames are held. */
TEST(rereg_gains_and_loses_writing)
{
    struct pair p = pair_keys(NULL);
    struct guest_mr m = guest_mr(p.b, 300000, 50, LAYOUT_SCATTERED, RR);
    uint32_t every;

    for ( every = 0; every < 4; every++ )
    {
        env_test_preempt(every);
        CHECK_EQ(rereg(&m, VMRI_REREG_ACCESS, NULL, 0, LW | RW), 0);
        check_refs(&m, 1);
        a_pattern(&p, m.key, m.iova + 100, m.mem + 100, 100000);
        CHECK_EQ(rereg(&m, VMRI_REREG_ACCESS, NULL, 0, RR), 0);
        check_refs(&m, 1);
        CHECK_EQ(a_writes(&p, m.key, m.iova, 8), VMRI_VERR_RIGHTS);
        CHECK_EQ(a_reads(&p, m.key, m.iova, 8), 0);
    }
    env_test_preempt(0);

    /* What has become a page table meanwhile is not written to. */
    CHECK(env_test_page_pin_table(p.b->domain, m.gfn + 60));
    CHECK_EQ(rereg(&m, VMRI_REREG_ACCESS, NULL, 0, LW | RW), -EPERM);
    check_refs(&m, 1);
    CHECK_EQ(a_reads(&p, m.key, m.iova, 300000), 0);
    CHECK_EQ(a_writes(&p, m.key, m.iova, 8), VMRI_VERR_RIGHTS);
}

TEST(rereg_refusals_change_nothing)
{
    struct pair p = pair_keys(NULL);
    struct guest_mr m = guest_mr(p.b, 30000, 50, LAYOUT_SCATTERED, LW | RW);
    struct guest_mr to = mr_pages(p.b, 40000, 0, LAYOUT_SCATTERED), bad = to;
    struct guest_mr none = { .guest = p.b, .key = fast_new(p.b, 4) };
    struct vmri_dev *dev = vmri_dev_get(p.b->domain, p.b->dev);

    vmri_dev_put(dev);
    CHECK_EQ(rereg(&m, 0, NULL, 0, 0), -EINVAL);
    CHECK_EQ(rereg(&m, 8, NULL, 0, 0), -EINVAL);
    CHECK_EQ(rereg(&m, VMRI_REREG_PD, NULL, 77, 0), -ENOENT);
    CHECK_EQ(rereg(&m, VMRI_REREG_ACCESS, NULL, 0, RW), -EINVAL);
    CHECK_EQ(rereg(&m, VMRI_REREG_ACCESS, NULL, 0, 0x20), -EINVAL);
    bad.length = 50000;
    CHECK_EQ(rereg(&m, VMRI_REREG_TRANS, &bad, 0, 0), -EINVAL);
    CHECK_EQ(rereg(&none, VMRI_REREG_PD, NULL, p.b->pd, 0), -ENOENT);
    none.key = mw_new(p.b, 1);
    CHECK_EQ(rereg(&none, VMRI_REREG_PD, NULL, p.b->pd, 0), -ENOENT);
    none.key = m.key + 1;
    CHECK_EQ(rereg(&none, VMRI_REREG_PD, NULL, p.b->pd, 0), -ENOENT);

    dev->owner->limit[VMRI_RES_PINNED] = dev->owner->usage[VMRI_RES_PINNED];
    CHECK_EQ(rereg(&m, VMRI_REREG_TRANS, &to, 0, 0), -ENOSPC);
    CHECK_EQ(rereg(&m, VMRI_REREG_PD, NULL, p.b->pd, 0), 0);
    dev->owner->limit[VMRI_RES_PINNED] += to.pages;
    env_test_page_kind(p.b->domain, to.gfn + 3, ENV_SPECIAL);
    CHECK_EQ(rereg(&m, VMRI_REREG_TRANS, &to, 0, 0), -EPERM);
    check_refs(&to, 0);
    check_refs(&m, 1);
    a_pattern(&p, m.key, m.iova + 100, m.mem + 100, 20000);
}

TEST(rereg_every_failure_undoes_all)
{
    struct guest *g = guest_new(1);
    struct guest_mr m = guest_mr(g, 160000, 0, LAYOUT_SCATTERED, LW);
    struct guest_mr to = mr_pages(g, 160000, 0, LAYOUT_SCATTERED);
    unsigned int kind, nth, every;
    long rc;

    for ( kind = 0; kind < ENV_FAIL_COPY_TO; kind++ )
        for ( every = 0; every < 2; every++ )
            for ( nth = 1, rc = -1; rc; nth++ )
            {
                uint64_t before = env_stats.allocated;

                env_test_preempt(every);
                env_test_fail(kind, nth);
                rc = rereg(&m, VMRI_REREG_TRANS, &to, 0, 0);
                env_test_preempt(0);
                if ( !env_test_fail_left(kind) && rc )
                {
                    check_refs(&m, 1);
                    check_refs(&to, 0);
                    CHECK_EQ(env_stats.allocated, before);
                    continue;
                }
                env_test_fail(kind, 0);
                CHECK_EQ(rereg(&m, VMRI_REREG_TRANS, &m, 0, 0), 0);
                check_refs(&to, 0);
                rc = 0;
            }
}

/* The MR may be used, and may go, while its successor is being made. */
TEST(rereg_of_one_that_goes)
{
    struct pair p = pair_keys(NULL);
    struct guest_mr m = guest_mr(p.b, 1 << 20, 0, LAYOUT_SCATTERED, LW | RW);
    struct guest_mr to = mr_pages(p.b, 1 << 20, 0, LAYOUT_SCATTERED);
    uint32_t ticket;
    long rc;

    env_test_preempt(1);
    CHECK_EQ(rereg_step(&m, VMRI_REREG_TRANS, &to, 0, 0, 0), -ERESTART);
    ticket = guest_ticket;
    CHECK_EQ(a_writes(&p, m.key, m.iova, 8), 0);
    CHECK_EQ(mr_deregister(&m), 0);
    guest_ticket = ticket;
    do
        rc = rereg_step(&m, VMRI_REREG_TRANS, &to, 0, 0, VMRI_CONTINUE);
    while ( rc == -ERESTART );
    CHECK_EQ(rc, -ENOENT);
    check_refs(&to, 0);

    CHECK_EQ(try_mr(p.b, &m, p.b->pd, RR), 0);
    CHECK_EQ(rereg_step(&m, VMRI_REREG_ACCESS, NULL, 0, LW, 0), -ERESTART);
    CHECK_EQ(guest_call(p.b, VMRI_OP_dev_destroy, NULL, 0), 0);
    env_test_preempt(0);
    check_refs(&m, 0);
}

/* ---- copies in flight ---- */

static struct guest_mr flight_mr, flight_to;
static uint32_t flight_flags, flight_pd;
static bool flight_done;

static void do_rereg(void *unused)
{
    (void)unused;
    CHECK_EQ(rereg(&flight_mr, flight_flags, &flight_to, flight_pd, RR), 0);
    flight_done = true;
}

static void start_aside(void *unused)
{
    env_test_aside(do_rereg, unused);
    CHECK(!flight_done);
}

/* No copy writes to frames that the MR has let go of. */
TEST(rereg_waits_for_copies)
{
    static const uint32_t flags[] = {
        VMRI_REREG_PD, VMRI_REREG_TRANS, VMRI_REREG_ACCESS,
    };
    struct pair p = pair_keys(NULL);
    uint32_t i;

    flight_pd = p.b->pd;
    for ( i = 0; i < ARRAY_SIZE(flags); i++ )
    {
        flight_mr = guest_mr(p.b, 100000, 0, LAYOUT_SCATTERED, LW | RW);
        flight_to = mr_pages(p.b, 100000, 0, LAYOUT_SCATTERED);
        flight_flags = flags[i];
        flight_done = false;
        env_test_on_map(5, start_aside, NULL);
        CHECK_EQ(a_writes(&p, flight_mr.key, flight_mr.iova, 60000), 0);
        CHECK(env_test_aside_end());
        CHECK(flight_done);
    }
}
