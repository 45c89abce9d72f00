/* SPDX-License-Identifier: GPL-2.0-only */
/* mr.c, pin.c, pages.c: a gigabyte, step by step; and an MR that begins at 0. */
#include "pair.h"
#include "internal.h"

#undef memcpy
#undef memset

#define GIGABYTE    (1ULL << 30)
#define FRAMES      (GIGABYTE >> VMRI_PAGE_SHIFT)

/* A guest that may pin that much. */
static struct guest *large_guest(void)
{
    struct vmri_ctl_limits arg = {
        .domid = 1, .mask = 1U << VMRI_RES_PINNED | 1U << VMRI_RES_BYTES,
    };
    struct guest *g = guest_new(1);

    arg.limit.n[VMRI_RES_PINNED] = 2 * FRAMES;
    arg.limit.n[VMRI_RES_BYTES] = GIGABYTE;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_limits, &arg, sizeof(arg)), 0);
    return g;
}

/* A command in steps; none touches more frames of the page than it may. */
static unsigned int steps(struct guest *g, unsigned int cmd, void *arg,
                          size_t bytes, uint64_t gfn)
{
    unsigned int n = 1, before = env_test_page_refs(g->domain, gfn), now;
    long rc = guest_call_once(g, cmd, arg, bytes);

    for ( ; ; n++ )
    {
        now = env_test_page_refs(g->domain, gfn);
        CHECK((now > before ? now - before : before - now) <=
              VMRI_CALL_FRAMES);
        before = now;
        if ( rc != -ERESTART )
            break;
        rc = guest_call_once(g, cmd | VMRI_CONTINUE, arg, bytes);
    }
    CHECK_EQ(rc, 0);
    return n;
}

/*
 * As many steps as it has thousands of pages, and a few for the table of what
 * it is made of: a step does not cost more when the MR is larger.
 */
TEST(mr_gigabyte_in_bounded_steps)
{
    struct guest *g = large_guest();
    uint64_t gfn = env_test_pages(g->domain, 1, false), i;
    uint64_t *list = malloc(FRAMES * sizeof(*list));
    struct vmri_mr_register arg = {
        .frames = { .gfns = (uintptr_t)list, .nr = FRAMES },
        .iova = 0x1000, .length = GIGABYTE, .pd = g->pd,
        .access = VMRI_ACCESS_LOCAL_WRITE,
    };
    struct vmri_object key = { .handle = 0 };
    const unsigned int least = FRAMES / VMRI_CALL_FRAMES;
    unsigned int n;

    for ( i = 0; i < FRAMES; i++ )
        list[i] = gfn;
    env_test_expose(list, FRAMES * sizeof(*list));
    n = steps(g, VMRI_OP_mr_register, &arg, sizeof(arg), gfn);
    env_test_hide();
    CHECK_EQ(env_test_page_refs(g->domain, gfn), FRAMES);
    CHECK(n >= least && n <= least + least / 8);

    key.handle = arg.key;
    n = steps(g, VMRI_OP_mr_deregister, &key, sizeof(key), gfn);
    CHECK_EQ(env_test_page_refs(g->domain, gfn), 0);
    CHECK(n >= least && n <= least + least / 8);
    free(list);
}

/* Address 0 is as good as any: only the bounds count. */
TEST(mr_at_address_0)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_mr zero = mr_pages(p.b, 10000, 100, LAYOUT_SCATTERED);
    const uint32_t access = VMRI_ACCESS_LOCAL_WRITE | VMRI_ACCESS_REMOTE_WRITE;
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 10000);
    struct vmri_sge sge;
    unsigned int i;

    zero.iova = 0;
    CHECK_EQ(try_mr(p.b, &zero, p.b->pd, access), 0);
    wr.remote_addr = 0;
    wr.rkey = zero.key;
    fill_pattern(p.ma.mem, 10000, 5);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(match_pattern(zero.mem, 10000, 5, 0), 10000);

    sge = mr_sge(&zero, 0, 300);
    qp_recv(p.qb, 2, &sge, 1);
    wr = pair_wr(&p, VMRI_WR_SEND, 3, 500, 0, 300);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 3, 0);
    cq_expect(p.qb->rcq, 2, 0);
    CHECK_EQ(match_pattern(zero.mem, 300, 5, 500), 300);

    for ( i = 0; i < 3; i++ )
    {
        static const struct { uint64_t addr; uint32_t bytes; } outside[] = {
            { -1ULL, 1 }, { -1ULL, 2 }, { 0, 10001 },
        };

        wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 4, 0, 0, outside[i].bytes);
        wr.remote_addr = outside[i].addr;
        wr.rkey = zero.key;
        pair_send(&p, &wr);
        CHECK_EQ(cq_expect(p.qa->scq, 4, VMRI_WC_REM_ACCESS_ERR).vendor_err,
                 VMRI_VERR_BOUNDS);
        qp_connect_again(p.qa, p.qb, NULL);
        qp_connect_again(p.qb, p.qa, NULL);
        world_settle();
    }
}
