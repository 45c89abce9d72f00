/* SPDX-License-Identifier: GPL-2.0-only */
/* eq.c and cq.c: entries, arming, overflow, guests that lie; ring.c's regions. */
#include "guest.h"
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef memcpy
#undef memset

static bool push(struct guest_cq *cq, uint64_t wr_id, uint8_t status,
                 uint8_t flags)
{
    struct vmri_cqe cqe = { .wr_id = wr_id, .status = status, .flags = flags };
    struct vmri_cq *in = cq_inside(cq);
    const struct vmri_qp qp = {
        .counters = vmri_type_counters(in->dev, VMRI_QPT_RC),
    };

    return vmri_cq_push(in, &qp, &cqe);
}

static unsigned int events(struct guest *g, unsigned int type)
{
    unsigned int n = 0;
    struct vmri_event ev;

    while ( eq_poll(g->eq[0], &ev) )
    {
        CHECK_EQ(ev.type, type);
        n++;
    }
    return n;
}

/* ---- completion queues ---- */

TEST(cq_entries_come_in_order_and_wrap)
{
    struct guest *g = guest_new(1);
    unsigned int log2;

    for ( log2 = 0; log2 <= 7; log2++ )
    {
        struct guest_cq *cq = guest_cq(g, log2);
        uint64_t put = 0, got = 0, n, size = 1U << log2;

        for ( n = 0; n < 5 * size + 3; n++ )
        {
            while ( put - got < size )
                CHECK(push(cq, put++, 0, 0));
            env_test_advance(1);
            CHECK_EQ(cq_expect(cq, got++, 0).timestamp, env_now() - 1);
            while ( n % 2 && got < put )
                cq_expect(cq, got++, 0);
            if ( got == put )
                cq_expect_none(cq);
            while ( put - got < size )
                CHECK(push(cq, put++, 0, 0));
            while ( got < put )
                cq_expect(cq, got++, 0);
        }
        CHECK_EQ(events(g, 0), 0);
        CHECK_EQ(cq_destroy(cq), 0);
    }
}

TEST(cq_tells_once_what_it_was_armed_for)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 6);

    push(cq, 0, 0, VMRI_WC_SOLICITED);
    CHECK_EQ(events(g, VMRI_EVENT_COMPLETION), 0);
    CHECK(cq_arm(cq, VMRI_ARM_NEXT));
    cq_expect(cq, 0, 0);
    CHECK(!cq_arm(cq, VMRI_ARM_NEXT));
    CHECK_EQ(env_test_notified(g->domain, g->eq[0]->port), 0);
    push(cq, 1, 0, 0);
    push(cq, 2, 0, 0);
    CHECK_EQ(env_test_notified(g->domain, g->eq[0]->port), 1);
    CHECK_EQ(events(g, VMRI_EVENT_COMPLETION), 1);
    CHECK_EQ(cq->hdr->arm, VMRI_ARM_NONE);

    cq_arm(cq, VMRI_ARM_SOLICITED);
    push(cq, 3, 0, 0);
    CHECK_EQ(events(g, VMRI_EVENT_COMPLETION), 0);
    push(cq, 4, 0, VMRI_WC_SOLICITED);
    CHECK_EQ(events(g, VMRI_EVENT_COMPLETION), 1);
    push(cq, 5, 0, VMRI_WC_SOLICITED);
    CHECK_EQ(events(g, VMRI_EVENT_COMPLETION), 0);

    /* An error counts as solicited. */
    cq_arm(cq, VMRI_ARM_SOLICITED);
    push(cq, 6, VMRI_WC_WR_FLUSH_ERR, 0);
    CHECK_EQ(events(g, VMRI_EVENT_COMPLETION), 1);

    /* Nonsense arms nothing. */
    cq_arm(cq, 3);
    push(cq, 7, 0, VMRI_WC_SOLICITED);
    CHECK_EQ(events(g, VMRI_EVENT_COMPLETION), 0);
}

TEST(cq_overflow_kills_it_once)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 2);
    unsigned int i;

    for ( i = 0; i < 4; i++ )
        CHECK(push(cq, i, 0, 0));
    CHECK_EQ(cq->hdr->overflow, 0);
    CHECK(!push(cq, 4, 0, 0));
    CHECK_EQ(cq->hdr->overflow, 1);
    CHECK_EQ(events(g, VMRI_EVENT_CQ_ERR), 1);
    for ( i = 0; i < 4; i++ )
        cq_expect(cq, i, 0);
    CHECK(!push(cq, 5, 0, 0));
    CHECK_EQ(events(g, VMRI_EVENT_CQ_ERR), 0);
    cq_expect_none(cq);
    CHECK_EQ(cq_destroy(cq), 0);
}

/* A consumer index from anywhere: full, never more entries than there are. */
TEST(cq_lying_consumer)
{
    static const uint32_t lies[] = { 1, 4, 5, 0x7fffffff, 0x80000000, ~0U, ~3U };
    struct guest *g = guest_new(1);
    unsigned int i, n;

    for ( i = 0; i < ARRAY_SIZE(lies); i++ )
    {
        struct guest_cq *cq = guest_cq(g, 2);
        uint32_t size = 4, ahead = lies[i];

        cq->hdr->cons = ahead;
        for ( n = 0; n < 10 && push(cq, n, 0, 0); n++ )
            ;
        /* As many as lie between the claim and full, by the ring's rule. */
        CHECK_AT(n, ahead - 0U > 0x7fffffff && 0U - ahead < size ?
                    size - (0U - ahead) : 0,
                 "cons %#x", ahead);
        events(g, VMRI_EVENT_CQ_ERR);
        CHECK_EQ(cq_destroy(cq), 0);
    }
}

/* The guest may write the producer's fields: nobody reads them back. */
TEST(cq_scribbled_header)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 2);

    push(cq, 0, 0, 0);
    cq->hdr->prod = 77;
    cq->hdr->overflow = 0;
    push(cq, 1, 0, 0);
    CHECK_EQ(cq->hdr->prod, 2);
    cq_expect(cq, 0, 0);
    cq_expect(cq, 1, 0);
}

TEST(cq_bad_arguments)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq;
    uint64_t gfn = env_test_pages(g->domain, 4, false), list[4];
    struct vmri_cq_create ok = { .log2_entries = 6, .eq = g->eq[0]->handle }, arg;
    static const struct {
        size_t at;
        uint8_t value;
        int rc;
    } bad[] = {
        { offsetof(struct vmri_cq_create, log2_entries), 23, -EINVAL },
        { offsetof(struct vmri_cq_create, log2_entries), 255, -EINVAL },
        { offsetof(struct vmri_cq_create, log2_entries), 5, -EINVAL },
        { offsetof(struct vmri_cq_create, reserved0[2]), 1, -EINVAL },
        { offsetof(struct vmri_cq_create, reserved1) + 3, 1, -EINVAL },
        { offsetof(struct vmri_cq_create, eq) + 3, 0x77, -ENOENT },
        { offsetof(struct vmri_cq_create, frames.nr), 1, -EINVAL },
        { offsetof(struct vmri_cq_create, frames.nr), 3, -EINVAL },
        { offsetof(struct vmri_cq_create, frames.nr) + 3, 1, -EINVAL },
        { offsetof(struct vmri_cq_create, frames.reserved), 1, -EINVAL },
        { offsetof(struct vmri_cq_create, frames.gfns) + 6, 1, -EFAULT },
    };
    unsigned int i;

    guest_frames(&ok.frames, list, gfn, 2);
    env_test_expose(list, sizeof(list));
    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        arg = ok;
        ((uint8_t *)&arg)[bad[i].at] = bad[i].value;
        CHECK_AT(guest_call(g, VMRI_OP_cq_create, &arg, sizeof(arg)), bad[i].rc,
                 "case %u", i);
        CHECK_EQ(env_test_page_refs(g->domain, gfn), 0);
    }
    arg = ok;
    CHECK_EQ(guest_call(g, VMRI_OP_cq_create, &arg, sizeof(arg)), 0);
    CHECK_EQ(env_test_page_refs(g->domain, gfn), 1);
    env_test_hide();

    CHECK_EQ(try_cq(g, 3, g->eq[0], &cq), 0);
    cq->handle ^= 0x80000000U;
    CHECK_EQ(cq_destroy(cq), -ENOENT);
}

/* ---- regions ---- */

TEST(ring_frames_pass_the_same_test_as_memory)
{
    static const enum env_page_kind kinds[] = {
        ENV_PAGE_TABLE, ENV_SPECIAL, ENV_GRANT, ENV_HOLE,
    };
    struct guest *g = guest_new(1), *other = guest_new(2);
    unsigned int i;

    for ( i = 0; i <= ARRAY_SIZE(kinds); i++ )
    {
        uint64_t list[2], gfn = env_test_pages(g->domain, 2, true);
        struct vmri_cq_create arg = {
            .log2_entries = 6, .eq = g->eq[0]->handle,
        };

        guest_frames(&arg.frames, list, gfn, 2);
        if ( i < ARRAY_SIZE(kinds) )
            env_test_page_kind(g->domain, gfn + 1, kinds[i]);
        else
            list[1] = other->eq[0]->gfn;
        env_test_expose(list, sizeof(list));
        CHECK_AT(guest_call(g, VMRI_OP_cq_create, &arg, sizeof(arg)), -EPERM,
                 "kind %u", i);
        env_test_hide();
        CHECK_EQ(env_test_page_refs(g->domain, gfn), 0);
    }
}

TEST(ring_pages_cannot_become_page_tables)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 6);

    CHECK(!env_test_page_pin_table(g->domain, cq->gfn));
    CHECK_EQ(cq_destroy(cq), 0);
    CHECK(env_test_page_pin_table(g->domain, cq->gfn));
}

/* ---- event queues ---- */

TEST(eq_nothing_is_lost_when_it_is_full)
{
    enum { N = 50 };
    struct guest *g = guest_new(1);
    struct guest_eq *eq = guest_eq(g, 4);
    struct guest_cq *cq[N];
    bool seen[N] = { false };
    struct vmri_event ev;
    unsigned int i, n = 0;

    for ( i = 0; i < N; i++ )
    {
        CHECK_EQ(try_cq(g, 1, eq, &cq[i]), 0);
        cq_arm(cq[i], VMRI_ARM_NEXT);
        push(cq[i], 0, 0, 0);
        /* What waits is one event however often it comes. */
        cq_arm(cq[i], VMRI_ARM_NEXT);
        if ( i > 20 )
            push(cq[i], 0, 0, 0);
    }
    CHECK_EQ(eq->hdr->prod, 16);
    CHECK_EQ(eq->hdr->overflow, 1);
    CHECK(env_test_notified(g->domain, eq->port) >= 17);

    while ( eq_poll(eq, &ev) )
    {
        CHECK_EQ(ev.type, VMRI_EVENT_COMPLETION);
        for ( i = 0; i < N && cq[i]->handle != ev.id; i++ )
            ;
        CHECK(i < N && !seen[i]);
        seen[i] = true;
        n++;
    }
    CHECK_EQ(n, N);
    CHECK_EQ(eq->hdr->overflow, 0);
    for ( i = 0; i < N; i++ )
        CHECK_EQ(cq_destroy(cq[i]), 0);
    CHECK_EQ(eq_destroy(eq), 0);
}

/* What comes later does not overtake what waits. */
TEST(eq_keeps_its_order)
{
    struct guest *g = guest_new(1);
    struct guest_eq *eq = guest_eq(g, 4);
    struct guest_cq *cq[20];
    struct vmri_event ev;
    unsigned int i;

    for ( i = 0; i < 20; i++ )
    {
        CHECK_EQ(try_cq(g, 1, eq, &cq[i]), 0);
        cq_arm(cq[i], VMRI_ARM_NEXT);
        /* The guest makes room for two, without a look at `overflow`. */
        if ( i == 18 )
            env_store_release(&eq->hdr->cons, 2);
        push(cq[i], 0, 0, 0);
    }
    CHECK_EQ(eq->hdr->prod, 16);
    eq->cons = 2;
    for ( i = 2; i < 20; i++ )
    {
        CHECK(eq_poll(eq, &ev));
        CHECK_EQ(ev.id, cq[i]->handle);
    }
    CHECK(!eq_poll(eq, &ev));
}

/* Different types of one source wait each for itself. */
TEST(eq_types_wait_side_by_side)
{
    struct guest *g = guest_new(1);
    struct guest_eq *eq = guest_eq(g, 4);
    struct guest_cq *cq;
    struct vmri_event ev;
    unsigned int i, completions = 0, errors = 0;

    CHECK_EQ(try_cq(g, 5, eq, &cq), 0);
    for ( i = 0; i < 34; i++ )
    {
        cq_arm(cq, VMRI_ARM_NEXT);
        push(cq, i, 0, 0);
    }
    while ( eq_poll(eq, &ev) )
    {
        completions += ev.type == VMRI_EVENT_COMPLETION;
        errors += ev.type == VMRI_EVENT_CQ_ERR;
    }
    CHECK_EQ(completions, 17);
    CHECK_EQ(errors, 1);
}

TEST(eq_forgets_sources_that_go)
{
    struct guest *g = guest_new(1);
    struct guest_eq *eq = guest_eq(g, 4);
    struct guest_cq *cq[20];
    struct vmri_event ev;
    unsigned int i, n = 0;

    for ( i = 0; i < 20; i++ )
    {
        CHECK_EQ(try_cq(g, 1, eq, &cq[i]), 0);
        cq_arm(cq[i], VMRI_ARM_NEXT);
        push(cq[i], 0, 0, 0);
    }
    CHECK_EQ(eq_destroy(eq), -EBUSY);
    for ( i = 16; i < 20; i += 2 )
        CHECK_EQ(cq_destroy(cq[i]), 0);
    while ( eq_poll(eq, &ev) )
    {
        CHECK(ev.id != cq[16]->handle && ev.id != cq[18]->handle);
        n++;
    }
    CHECK_EQ(n, 18);
}

TEST(eq_lying_consumer)
{
    struct guest *g = guest_new(1);
    struct guest_eq *eq = guest_eq(g, 4);
    struct guest_cq *cq;
    unsigned int i;

    CHECK_EQ(try_cq(g, 6, eq, &cq), 0);
    eq->hdr->cons = 0x12345678;
    for ( i = 0; i < 20; i++ )
    {
        cq_arm(cq, VMRI_ARM_NEXT);
        push(cq, i, 0, 0);
    }
    CHECK_EQ(eq->hdr->prod, 0);
    CHECK_EQ(eq->hdr->overflow, 1);
}

TEST(eq_bad_arguments)
{
    struct guest *g = guest_new(1);
    struct guest_eq *eq;
    struct vmri_object none = { .handle = 0x00100001 }, bad = { .reserved = 1 };
    uint64_t list[2], gfn = env_test_pages(g->domain, 2, false);
    struct vmri_eq_create arg = { .log2_entries = 5, .vcpu = ENV_VCPUS };

    CHECK_EQ(try_eq(g, 3, &eq), -EINVAL);
    CHECK_EQ(try_eq(g, 17, &eq), -EINVAL);
    CHECK_EQ(guest_call(g, VMRI_OP_eq_poll, &none, sizeof(none)), -ENOENT);
    CHECK_EQ(guest_call(g, VMRI_OP_eq_destroy, &none, sizeof(none)), -ENOENT);
    CHECK_EQ(guest_call(g, VMRI_OP_eq_destroy, &bad, sizeof(bad)), -EINVAL);
    guest_frames(&arg.frames, list, gfn, 1);
    env_test_expose(list, sizeof(list));
    CHECK(guest_call(g, VMRI_OP_eq_create, &arg, sizeof(arg)) < 0);
    env_test_hide();
    CHECK_EQ(env_test_page_refs(g->domain, gfn), 0);
    CHECK_EQ(env_test_ports(g->domain), 1);
}

/* ---- every allocation, frame, mapping and copy fails once ---- */

static struct guest *fail_guest;
static struct guest_eq *fail_eq;

static unsigned int fail_kind;
static bool fail_met;

/* Failed?  If not, the failure that did not come must not hit what follows. */
static bool ended(long rc)
{
    fail_met = !env_test_fail_left(fail_kind);
    env_test_fail(fail_kind, 0);
    return rc != 0;
}

static long create_eq(void)
{
    struct guest_eq *eq;
    long rc = try_eq(fail_guest, 6, &eq);

    return ended(rc) ? rc : eq_destroy(eq);
}

static long create_cq(void)
{
    struct guest_cq *cq;
    long rc = try_cq(fail_guest, 6, fail_eq, &cq);

    return ended(rc) ? rc : cq_destroy(cq);
}

static long create_qp(void)
{
    static struct guest_cq *cq;
    struct guest_qp_opts opts = { 0 };
    struct guest_qp *qp;
    long rc;

    if ( !cq )
        cq = guest_cq(fail_guest, 6);
    opts.scq = cq;
    qp = qp_prepare(fail_guest, &opts);
    rc = try_qp(qp);
    return ended(rc) ? rc : qp_destroy(qp);
}

static long create_pd(void)
{
    struct vmri_object arg = { .handle = 0 };
    long rc = guest_call(fail_guest, VMRI_OP_pd_create, &arg, sizeof(arg));

    return ended(rc) ? rc
                     : guest_call(fail_guest, VMRI_OP_pd_destroy, &arg, 8);
}

static void usage(struct vmri_usage *u)
{
    struct vmri_ctl_info info = { .domid = 1 };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), 0);
    *u = info.usage;
}

static void fail_everywhere(long (*create)(void), const char *what)
{
    static const char *const names[] = {
        "alloc", "frame", "copy from", "copy to", "port", "map ring",
    };
    struct vmri_usage before, after;
    unsigned int kind, nth;

    CHECK_EQ(create(), 0);
    for ( kind = 0; kind < ENV_FAIL_NR; kind++ )
    {
        usage(&before);
        for ( nth = 1; ; nth++ )
        {
            unsigned int ports = env_test_ports(fail_guest->domain);
            uint64_t rings = env_stats.rings;
            long rc;

            fail_kind = kind;
            env_test_fail(kind, nth);
            rc = create();
            if ( !fail_met )
            {
                CHECK_EQ(rc, 0);
                break;
            }
            CHECK(rc < 0);
            usage(&after);
            CHECK_AT(memcmp(&before, &after, sizeof(after)), 0,
                     "%s, %s %u fails", what, names[kind], nth);
            CHECK_EQ(env_test_ports(fail_guest->domain), ports);
            CHECK_EQ(env_stats.rings, rings);
            CHECK_EQ(create(), 0);
        }
    }
}

TEST(queues_every_failure_undoes_all)
{
    fail_guest = guest_new(1);
    fail_eq = fail_guest->eq[0];
    fail_everywhere(create_pd, "PD");
    fail_everywhere(create_eq, "EQ");
    fail_everywhere(create_cq, "CQ");
    fail_everywhere(create_qp, "QP");
}
