/* SPDX-License-Identifier: GPL-2.0-only */
/* cq.c: completion queues that are resized, at rest and under traffic. */
#include "pair.h"
#include "inside.h"

#include <sched.h>

#undef memcpy
#undef memset

static bool push(struct vmri_cq *cq, uint64_t wr_id)
{
    struct vmri_cqe cqe = { .wr_id = wr_id };
    const struct vmri_qp qp = {
        .counters = vmri_type_counters(cq->dev, VMRI_QPT_RC),
    };

    return vmri_cq_push(cq, &qp, &cqe);
}

static void usage(struct vmri_usage *u)
{
    struct vmri_ctl_info info = { .domid = 1 };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), 0);
    *u = info.usage;
}

/* Up and down, from any fill and at any turn of the ring. */
TEST(cq_resize_keeps_what_is_unconsumed)
{
    struct guest *g = guest_new(1);
    unsigned int from, to, fill;

    for ( from = 0; from <= 7; from++ )
        for ( to = 0; to <= 7; to++ )
            for ( fill = 0; fill <= 1U << from; fill += 1 + fill / 3 )
            {
                struct guest_cq *cq = guest_cq(g, from);
                uint64_t put = 0, got = 0, old = cq->gfn;
                bool fits = fill <= 1U << to;

                for ( ; put < 5; cq_expect(cq, got++, 0) )
                    push(cq_inside(cq), put++);
                while ( put - got < fill )
                    push(cq_inside(cq), put++);
                CHECK_AT(cq_resize(cq, to), fits ? 0 : -EINVAL,
                         "%u of 2^%u to 2^%u", fill, from, to);
                CHECK_EQ(env_test_page_refs(g->domain, old), !fits);
                CHECK_EQ(env_test_page_refs(g->domain, cq->gfn), 1);
                while ( put - got < 1U << cq->log2 )
                    CHECK(push(cq_inside(cq), put++));
                while ( got < put )
                    cq_expect(cq, got++, 0);
                cq_expect_none(cq);
                CHECK_EQ(cq_destroy(cq), 0);
            }
}

/* A CQ that is armed stays so, one that was told that its owner died too. */
TEST(cq_resize_keeps_arm_and_dead)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 3);

    cq_arm(cq, VMRI_ARM_NEXT);
    cq->hdr->dead = 1;
    CHECK_EQ(cq_resize(cq, 5), 0);
    CHECK_EQ(cq->hdr->dead, 1);
    CHECK_EQ(cq->hdr->arm, VMRI_ARM_NEXT);
    push(cq_inside(cq), 1);
    world_settle();
    CHECK_EQ(g->events[VMRI_EVENT_COMPLETION], 1);
    CHECK_EQ(cq->hdr->arm, VMRI_ARM_NONE);
    CHECK_EQ(cq_resize(cq, 4), 0);
    push(cq_inside(cq), 2);
    world_settle();
    CHECK_EQ(g->events[VMRI_EVENT_COMPLETION], 1);
}

/* An overflowed CQ stays one, and what it had not told stays there. */
TEST(cq_resize_heals_no_overflow)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 1);
    uint64_t gfn = cq->gfn;

    while ( push(cq_inside(cq), 0) )
        ;
    CHECK_EQ(cq_resize(cq, 4), -EINVAL);
    CHECK_EQ(cq->gfn, gfn);
    cq_expect(cq, 0, 0);
    cq_expect(cq, 0, 0);
    CHECK_EQ(cq_resize(cq, 4), -EINVAL);
    CHECK(!push(cq_inside(cq), 1));
    CHECK_EQ(cq->hdr->overflow, 1);
}

/* A consumer index that the guest made up lets no entry be overwritten. */
TEST(cq_resize_lying_consumer)
{
    static const struct {
        uint32_t cons;
        int rc;
    } lies[] = { { 3, -EINVAL }, { 0x80000000U, -EINVAL }, { ~0U, -EINVAL } };
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 3);
    unsigned int i;

    push(cq_inside(cq), 0);
    push(cq_inside(cq), 0);
    for ( i = 0; i < ARRAY_SIZE(lies); i++ )
    {
        cq->hdr->cons = lies[i].cons;
        CHECK_AT(cq_resize(cq, 1), lies[i].rc, "cons %#x", lies[i].cons);
    }
    cq->hdr->cons = 0;
    CHECK_EQ(cq_resize(cq, 1), 0);
}

TEST(cq_resize_bad_arguments)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 6);
    uint64_t gfn = env_test_pages(g->domain, 4, false), list[4];
    struct vmri_cq_resize ok = { .handle = cq->handle, .log2_entries = 6 }, arg;
    static const struct {
        size_t at;
        uint8_t value;
        int rc;
    } bad[] = {
        { offsetof(struct vmri_cq_resize, log2_entries), 19, -EINVAL },
        { offsetof(struct vmri_cq_resize, log2_entries), 32, -EINVAL },
        { offsetof(struct vmri_cq_resize, log2_entries), 255, -EINVAL },
        { offsetof(struct vmri_cq_resize, log2_entries), 5, -EINVAL },
        { offsetof(struct vmri_cq_resize, reserved0[0]), 1, -EINVAL },
        { offsetof(struct vmri_cq_resize, reserved0[2]), 1, -EINVAL },
        { offsetof(struct vmri_cq_resize, reserved1) + 3, 1, -EINVAL },
        { offsetof(struct vmri_cq_resize, handle) + 3, 0x77, -ENOENT },
        { offsetof(struct vmri_cq_resize, frames.nr), 3, -EINVAL },
        { offsetof(struct vmri_cq_resize, frames.reserved), 1, -EINVAL },
        { offsetof(struct vmri_cq_resize, frames.gfns) + 6, 1, -EFAULT },
    };
    struct vmri_usage before, after;
    unsigned int i;

    guest_frames(&ok.frames, list, gfn, 2);
    env_test_expose(list, sizeof(list));
    usage(&before);
    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        arg = ok;
        ((uint8_t *)&arg)[bad[i].at] = bad[i].value;
        CHECK_AT(guest_call(g, VMRI_OP_cq_resize, &arg, sizeof(arg)), bad[i].rc,
                 "case %u", i);
        CHECK_EQ(env_test_page_refs(g->domain, gfn), 0);
        CHECK_EQ(env_test_page_refs(g->domain, cq->gfn), 1);
    }
    env_test_page_kind(g->domain, gfn + 1, ENV_PAGE_TABLE);
    CHECK_EQ(guest_call(g, VMRI_OP_cq_resize, &ok, sizeof(ok)), -EPERM);
    usage(&after);
    CHECK_EQ(memcmp(&before, &after, sizeof(after)), 0);
    env_test_page_kind(g->domain, gfn + 1, ENV_RAM);
    CHECK_EQ(guest_call(g, VMRI_OP_cq_resize, &ok, sizeof(ok)), 0);
    CHECK_EQ(ok.prod, 0);
    usage(&after);
    CHECK_EQ(memcmp(&before, &after, sizeof(after)), 0);
    env_test_hide();
}

/* Whichever allocation, frame or mapping fails: the CQ goes on as it was. */
TEST(cq_resize_failures_change_nothing)
{
    static const unsigned int kinds[] = {
        ENV_FAIL_ALLOC, ENV_FAIL_FRAME, ENV_FAIL_COPY_FROM, ENV_FAIL_MAP_RING,
    };
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 6);
    struct vmri_usage before, after;
    uint64_t n = 0, gfn = cq->gfn;
    unsigned int k, nth;

    for ( k = 0; k < ARRAY_SIZE(kinds); k++ )
        for ( nth = 1; ; nth++ )
        {
            usage(&before);
            env_test_fail(kinds[k], nth);
            if ( cq_resize(cq, 6) == 0 )
            {
                env_test_fail(kinds[k], 0);
                gfn = cq->gfn;
                break;
            }
            CHECK(!env_test_fail_left(kinds[k]));
            usage(&after);
            CHECK_AT(memcmp(&before, &after, sizeof(after)), 0,
                     "kind %u, %u", kinds[k], nth);
            CHECK_EQ(cq->gfn, gfn);
            CHECK(push(cq_inside(cq), n));
            cq_expect(cq, n++, 0);
        }
}

#define LARGE   17U             /* log2 of a CQ that takes three calls to pin */

static struct guest_cq *preempted_cq;
static unsigned int pushed;

static void push_meanwhile(void *unused)
{
    (void)unused;
    CHECK(push(cq_inside(preempted_cq), pushed++));
}

/* Too long for one call: completions come between the steps, too. */
TEST(cq_resize_in_steps)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 6);
    uint64_t old = cq->gfn, preempts = env_stats.preempts;
    unsigned int got = 0;

    preempted_cq = cq;
    while ( pushed < 5 )
        CHECK(push(cq_inside(cq), pushed++));
    env_test_on_preempt(20, push_meanwhile, NULL);
    env_test_preempt(7);
    CHECK_EQ(cq_resize(cq, LARGE), 0);
    env_test_preempt(0);
    CHECK(env_stats.preempts - preempts > 60);
    CHECK_EQ(env_test_page_refs(g->domain, old), 0);
    CHECK_EQ(pushed, 6);
    CHECK(push(cq_inside(cq), pushed++));
    while ( got < pushed )
        cq_expect(cq, got++, 0);
    CHECK_EQ(cq_destroy(cq), 0);
}

/* Both rings are charged while both are there. */
TEST(cq_resize_limits)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 6);
    struct vmri_domain *vd = *env_domain_state(g->domain);
    uint64_t used = vd->usage[VMRI_RES_PINNED];

    vd->limit[VMRI_RES_PINNED] = used + 1;
    CHECK_EQ(cq_resize(cq, 6), -ENOSPC);
    CHECK_EQ(cq_resize(cq, 3), 0);
    CHECK_EQ(vd->usage[VMRI_RES_PINNED], used - 1);
    CHECK_EQ(cq_resize(cq, 6), 0);
    CHECK_EQ(vd->usage[VMRI_RES_PINNED], used);
    CHECK(push(cq_inside(cq), 1));
    cq_expect(cq, 1, 0);
}

/* Destroyed under a resize that is to be continued: nothing is left. */
TEST(cq_resize_of_one_that_goes)
{
    static uint64_t list[2049];
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 6);
    uint64_t gfn = env_test_pages(g->domain, ARRAY_SIZE(list), true);
    struct vmri_cq_resize arg = {
        .handle = cq->handle, .log2_entries = LARGE,
    };

    guest_frames(&arg.frames, list, gfn, ARRAY_SIZE(list));
    env_test_expose(list, sizeof(list));
    CHECK_EQ(guest_call_once(g, VMRI_OP_cq_resize, &arg, sizeof(arg)),
             -ERESTART);
    CHECK_EQ(env_test_page_refs(g->domain, gfn), 1);
    CHECK_EQ(cq_destroy(cq), 0);
    CHECK_EQ(guest_call_once(g, VMRI_OP_cq_resize | VMRI_CONTINUE, &arg,
                             sizeof(arg)), -ENOENT);
    CHECK_EQ(env_test_page_refs(g->domain, gfn), 0);
    env_test_hide();
}

/*
 * Its overflow is told as what it is: the CQ's error, and fatal for the queue
 * pairs that have something to say; whatever else they have posted is done.
 */
TEST(cq_overflow_is_fatal_for_its_queue_pairs)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 1);
    const struct guest_qp_opts opts = { .scq = cq };
    struct guest_qp *qp[2] = { guest_qp(g, &opts), guest_qp(g, &opts) };
    struct guest_wr wr = {
        .opcode = VMRI_WR_RDMA_WRITE, .flags = VMRI_SEND_SIGNALED,
    };
    unsigned int i, n;

    for ( i = 0; i < 2; i++ )
        qp_connect(qp[i], qp[i], NULL);
    for ( n = 0; n < 4; n++ )
        qp_send(qp[0], &wr);
    world_settle();
    CHECK_EQ(g->events[VMRI_EVENT_CQ_ERR], 1);
    CHECK_EQ(g->events[VMRI_EVENT_QP_FATAL], 1);
    CHECK_EQ(qp_state(qp[0]), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(qp[1]), VMRI_QPS_RTS);

    qp_send(qp[1], &wr);
    world_settle();
    CHECK_EQ(g->events[VMRI_EVENT_CQ_ERR], 1);
    CHECK_EQ(g->events[VMRI_EVENT_QP_FATAL], 2);
    CHECK_EQ(qp_state(qp[1]), VMRI_QPS_ERR);
    CHECK_EQ(qp[0]->hdr->sq.cons, 4);
    CHECK_EQ(qp[1]->hdr->sq.cons, 1);
}

/* So is what is lost of a send queue that alone had stopped. */
TEST(cq_overflow_is_fatal_for_a_stopped_send_queue)
{
    static const uint8_t types[] = { VMRI_QPT_UD, VMRI_QPT_UC };
    unsigned int i, n;

    for ( i = 0; i < ARRAY_SIZE(types); i++ )
    {
        struct guest *g = guest_new(1 + i);
        const struct guest_qp_opts opts = {
            .type = types[i], .scq = guest_cq(g, 1), .rcq = guest_cq(g, 6),
        };
        struct guest_qp *qp = guest_qp(g, &opts);
        struct guest_wr wr = {
            .opcode = VMRI_WR_RDMA_READ, .flags = VMRI_SEND_SIGNALED,
        };

        qp_connect(qp, qp, NULL);
        qp_recv(qp, 7, NULL, 0);
        for ( n = 0; n < 4; n++ )
            qp_post_send(qp, &wr);
        qp_ring(qp);
        world_settle();
        cq_expect(qp->scq, 0, VMRI_WC_LOC_QP_OP_ERR);
        cq_expect(qp->scq, 0, VMRI_WC_WR_FLUSH_ERR);
        cq_expect_none(qp->scq);
        CHECK_EQ(g->events[VMRI_EVENT_CQ_ERR], 1);
        CHECK_EQ(g->events[VMRI_EVENT_QP_FATAL], 1);
        CHECK_EQ(qp_state(qp), VMRI_QPS_ERR);
        CHECK_EQ(qp->hdr->sq.cons, 4);
        cq_expect(qp->rcq, 7, VMRI_WC_WR_FLUSH_ERR);
    }
}

/* ---- under traffic ---- */

#define PRODUCERS   2
#define PUSHES      6000U       /* of each */
#define ROOM        64U         /* entries that producers keep free of */

struct stream {
    struct vmri_cq *cq;
    uint64_t number;
    uint32_t *outstanding;      /* atomic: pushed or about to be, not taken */
};

static void *run_producer(void *data)
{
    struct stream *s = data;
    uint32_t n;

    for ( n = 0; n < PUSHES; n++ )
    {
        while ( env_fetch_add(s->outstanding, 1) >= ROOM )
        {
            env_fetch_sub(s->outstanding, 1);
            sched_yield();
        }
        CHECK(push(s->cq, s->number << 32 | n));
    }
    return NULL;
}

/* Take all there is; the event that was armed for must be there by then. */
static void take(struct guest_cq *cq, uint32_t next[PRODUCERS],
                 uint32_t *outstanding)
{
    struct vmri_cqe cqe;

    while ( cq_poll(cq, &cqe) )
    {
        uint32_t who = (uint32_t)(cqe.wr_id >> 32);

        CHECK(who < PRODUCERS);
        CHECK_EQ((uint32_t)cqe.wr_id, next[who]++);
        env_fetch_sub(outstanding, 1);
    }
}

/* Each completion once and in its producer's order, and no event missed. */
THREAD_TEST(cq_resize_under_traffic)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 6);
    struct stream s[PRODUCERS];
    pthread_t thread[PRODUCERS];
    uint32_t next[PRODUCERS] = { 0 }, outstanding = 0;
    unsigned int i, round, seen = 0, armed = 0;

    for ( i = 0; i < PRODUCERS; i++ )
    {
        s[i] = (struct stream){
            .cq = cq_inside(cq), .number = i, .outstanding = &outstanding,
        };
        pthread_create(&thread[i], NULL, run_producer, &s[i]);
    }
    for ( round = 0; next[0] < PUSHES || next[1] < PUSHES; round++ )
    {
        /* Idle: wait for the event, over a resize of the armed queue. */
        if ( !cq_arm(cq, VMRI_ARM_NEXT) )
        {
            CHECK_EQ(cq_resize(cq, 6 + round % 3), 0);
            armed++;
            while ( g->events[VMRI_EVENT_COMPLETION] == seen )
            {
                guest_serve(g);
                sched_yield();
            }
        }
        guest_serve(g);
        seen = g->events[VMRI_EVENT_COMPLETION];
        CHECK_EQ(cq_resize(cq, 6 + (round + 1) % 3), 0);
        take(cq, next, &outstanding);
        if ( round % 8 == 0 )
            vmri_dump();
    }
    for ( i = 0; i < PRODUCERS; i++ )
        pthread_join(thread[i], NULL);
    take(cq, next, &outstanding);
    CHECK(armed > 0);
    for ( i = 0; i < PRODUCERS; i++ )
        CHECK_EQ(next[i], PUSHES);
}
