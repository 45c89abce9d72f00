/* SPDX-License-Identifier: GPL-2.0-only */
/* srq.c: shared receive queues that go on in other memory. */
#include "hub.h"

TEST(srq_resize_keeps_what_is_posted)
{
    struct hub h = hub_new(2, 0, NULL, NULL);
    static const uint8_t sizes[] = { 6, 3, 10, 2, 4 };
    uint64_t posted = 0, taken = 0;
    unsigned int i, k;

    for ( i = 0; i < ARRAY_SIZE(sizes); i++ )
    {
        uint64_t old = h.srq->gfn;
        struct vmri_srq_query q;

        for ( k = 0; k < 3; k++, posted++ )
            hub_recv(&h, posted, 0, 100);
        CHECK_EQ(srq_resize(h.srq, sizes[i]), 0);
        CHECK_EQ(env_test_page_refs(h.guest->domain, old), 0);
        CHECK_EQ(srq_query(h.srq, &q), 0);
        CHECK_EQ(q.entries, 1U << sizes[i]);
        CHECK_EQ(h.srq->hdr->cons, taken);
        for ( k = 0; k < 3; k++, taken++ )
        {
            spoke_send(&h, &h.spoke[k & 1], taken, 8);
            cq_expect(h.cq, taken, 0);
        }
    }
    CHECK_EQ(h.srq->hdr->cons, taken);
}

TEST(srq_resize_of_indirect_lists)
{
    const struct guest_srq_opts opts = {
        .kernel = true, .ind_log2 = 5, .max_sge = 1, .log2 = 2,
    };
    struct hub h = hub_new(1, 0, &opts, NULL);
    struct vmri_sge sge[8];
    unsigned int i;

    for ( i = 0; i < 8; i++ )
        sge[i] = mr_sge(&h.mr, i * 50, 10);
    srq_recv(h.srq, 1, sge, 8);
    fill_pattern(h.spoke[0].mr.mem, 80, 1);
    CHECK_EQ(srq_resize(h.srq, 4), 0);
    spoke_send(&h, &h.spoke[0], 2, 80);
    cq_expect(h.cq, 1, 0);
    for ( i = 0; i < 8; i++ )
        CHECK_EQ(match_pattern(h.mr.mem + i * 50, 10, 1, i * 10), 10);
}

/* -EINVAL changes nothing. */
TEST(srq_resize_refused)
{
    struct hub h = hub_new(1, 0, NULL, NULL);
    struct guest_srq was = *h.srq;
    struct vmri_srq_modify arg = { .handle = h.srq->handle, .mask = 4 };
    unsigned int i;

    for ( i = 0; i < 5; i++ )
        hub_recv(&h, i, 0, 100);
    CHECK_EQ(srq_set_limit(h.srq, 5), 0);
    /* More posted than fit; a limit above the size. */
    CHECK_EQ(srq_resize(h.srq, 2), -EINVAL);
    CHECK_EQ(srq_set_limit(h.srq, 4), 0);
    for ( i = 0; i < 2; i++ )
        spoke_send(&h, &h.spoke[0], i, 8);
    CHECK_EQ(hub_limits(&h), 1);
    CHECK_EQ(srq_resize(h.srq, 15), -EINVAL);

    CHECK_EQ(guest_call(h.guest, VMRI_OP_srq_modify, &arg, sizeof(arg)),
             -EINVAL);
    arg.mask = 0;
    CHECK_EQ(guest_call(h.guest, VMRI_OP_srq_modify, &arg, sizeof(arg)), 0);
    arg.reserved0[1] = 1;
    CHECK_EQ(guest_call(h.guest, VMRI_OP_srq_modify, &arg, sizeof(arg)),
             -EINVAL);
    arg.reserved0[1] = 0;
    arg.reserved1 = 1;
    CHECK_EQ(guest_call(h.guest, VMRI_OP_srq_modify, &arg, sizeof(arg)),
             -EINVAL);

    /* The guest did not copy its index. */
    h.srq->prod += 100;
    CHECK_EQ(srq_resize(h.srq, 5), -EINVAL);
    h.srq->prod -= 100;

    CHECK_EQ(h.srq->gfn, was.gfn);
    CHECK_EQ(env_test_page_refs(h.guest->domain, was.gfn), 1);
    for ( i = 2; i < 5; i++ )
        spoke_send(&h, &h.spoke[0], i, 8);
    for ( i = 0; i < 5; i++ )
        cq_expect(h.cq, i, 0);
}

TEST(srq_resize_with_limit)
{
    struct hub h = hub_new(1, 0, NULL, NULL);

    hub_recv(&h, 1, 0, 100);
    hub_recv(&h, 2, 0, 100);
    CHECK_EQ(srq_set_limit(h.srq, 2), 0);
    /* Smaller than the limit, which stays with the old queue. */
    CHECK_EQ(srq_resize(h.srq, 0), -EINVAL);
    CHECK_EQ(srq_resize(h.srq, 1), 0);
    CHECK_EQ(hub_limits(&h), 0);
    spoke_send(&h, &h.spoke[0], 1, 8);
    CHECK_EQ(hub_limits(&h), 1);
}

TEST(srq_resize_in_the_middle_of_a_message)
{
    struct hub h = hub_new(1, 0, NULL, NULL);
    struct spoke *s = &h.spoke[0];
    uint64_t old = h.srq->gfn;

    fill_pattern(s->mr.mem, HUB_BYTES, 4);
    hub_begin(&h, s);
    CHECK_EQ(srq_resize(h.srq, 5), 0);
    CHECK_EQ(env_test_page_refs(h.guest->domain, old), 0);
    qp_ring(s->qp);
    cq_expect(h.cq, 10, 0);
    CHECK_EQ(match_pattern(h.mr.mem, HUB_BYTES, 4, 0), HUB_BYTES);
}

TEST(srq_resize_becomes_another_command)
{
    struct guest *g = guest_new(1);
    struct guest_srq *srq = guest_srq(g, NULL);
    uint32_t pages = 513;
    uint64_t gfn = env_test_pages(g->domain, pages, true);
    uint64_t *list = calloc(pages, sizeof(*list));
    struct vmri_srq_modify arg = {
        .handle = srq->handle, .mask = VMRI_SRQA_RESIZE, .offset = 128,
        .log2_entries = 14,
    };

    guest_frames(&arg.frames, list, gfn, pages);
    env_test_expose(list, pages * sizeof(*list));
    env_test_preempt(1);
    CHECK_EQ(guest_call_once(g, VMRI_OP_srq_modify, &arg, sizeof(arg)),
             -ERESTART);
    CHECK_EQ(env_test_page_refs(g->domain, gfn), 1);
    arg.mask = VMRI_SRQA_LIMIT;
    CHECK_EQ(guest_call_once(g, VMRI_OP_srq_modify | 0x80000000U, &arg,
                             sizeof(arg)), -EINVAL);
    CHECK_EQ(env_test_page_refs(g->domain, gfn), 0);
    env_test_preempt(0);
    env_test_hide();
    free(list);
}
