/* SPDX-License-Identifier: GPL-2.0-only */
/* fast.c: fast memory regions: registered, used, refused and taken away. */
#include "keys.h"

#undef memcpy
#undef memset

static struct guest_mr pages_of(struct guest *g, uint64_t bytes,
                                uint32_t offset)
{
    return mr_pages(g, bytes, offset, LAYOUT_SCATTERED);
}

TEST(fast_life)
{
    struct pair p = pair_new(&kernel_opts, NULL);
    struct guest_mr m = pages_of(p.b, 50000, 777);
    uint32_t key = fast_new(p.b, 16), round;

    CHECK_EQ(p.b->attr.max_fast_frames, VMRI_MAX_FAST_FRAMES);
    CHECK_EQ(a_writes(&p, key, m.iova, 8), VMRI_VERR_KEY);
    for ( round = 0; round < 3; round++ )
    {
        struct guest_wr wr;
        uint32_t i;

        m.iova = round == 1 ? 0 : m.iova + 12345;
        /* What it was called before does not matter. */
        key ^= round == 2 ? 0x55 : 0;
        CHECK_EQ(b_request(&p, wr_reg(key, &m, LW | RW | RR)), 0);
        key = next_name(key);
        a_pattern(&p, key, m.iova + 100, m.mem + 100, 49000);
        CHECK_EQ(a_reads(&p, key, m.iova, 50000), 0);
        CHECK_EQ(a_writes(&p, key, m.iova, 50001), VMRI_VERR_BOUNDS);
        CHECK_EQ(a_writes(&p, next_name(key), m.iova, 8), VMRI_VERR_KEY);

        /* The kernel's own queue names it, too. */
        wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 0);
        wr.sge[0] = (struct vmri_sge){
            .addr = m.iova + 3, .length = 20000, .lkey = key,
        };
        wr.rkey = p.ma.key;
        wr.remote_addr = p.ma.iova;
        fill_pattern(m.mem + 3, 20000, round);
        qp_send(p.qb, &wr);
        cq_expect(p.qb->scq, 1, 0);
        CHECK_EQ(match_pattern(p.ma.mem, 20000, round, 0), 20000);

        CHECK_EQ(b_request(&p, wr_inv(key)), 0);
        CHECK_EQ(a_writes(&p, key, m.iova, 8), VMRI_VERR_KEY);
        CHECK_EQ(b_request(&p, wr_inv(key)), 0);
        for ( i = 0; i < m.pages; i++ )
            CHECK_EQ(env_test_page_refs(p.b->domain, m.gfn + i), 0);
    }
    CHECK_EQ(fast_free(p.b, next_name(key)), 0);
    CHECK_EQ(fast_free(p.b, key), -ENOENT);
}

TEST(fast_largest)
{
    struct pair p = pair_new(&kernel_opts, NULL);
    struct guest_mr m = pages_of(p.b, VMRI_MAX_FAST_FRAMES * PAGE_SIZE, 0);
    uint32_t key = fast_new(p.b, VMRI_MAX_FAST_FRAMES);

    CHECK_EQ(b_request(&p, wr_reg(key, &m, LW | RW)), 0);
    key = next_name(key);
    a_pattern(&p, key, m.iova + 1900000, m.mem + 1900000, 150000);
    /* Live: it goes all the same. */
    CHECK_EQ(fast_free(p.b, key), 0);
    CHECK_EQ(a_writes(&p, key, m.iova, 8), VMRI_VERR_KEY);
}

TEST(fast_registration_is_refused)
{
    struct pair p = pair_new(&kernel_opts, NULL);
    struct guest_mr m = pages_of(p.b, 16000, 100);
    uint32_t key = fast_new(p.b, 4), alien, mw = mw_new(p.b, 2);
    struct guest_wr wr;

    CHECK_EQ(try_fast(p.b, guest_pd(p.b), 4, &alien), 0);
    CHECK_EQ(b_request(&p, wr_reg(alien, &m, LW)), VMRI_VERR_PD);
    CHECK_EQ(b_request(&p, wr_reg(p.mb.key, &m, LW)), VMRI_VERR_KEY);
    CHECK_EQ(b_request(&p, wr_reg(mw, &m, LW)), VMRI_VERR_KEY);
    wr = wr_reg(key, &m, LW);
    wr.wqe.u.reg.new_key = key ^ 0x100;
    CHECK_EQ(b_request(&p, wr), VMRI_VERR_KEY);
    CHECK_EQ(b_request(&p, wr_reg(key, &m, RW)), VMRI_VERR_RIGHTS);
    CHECK_EQ(b_request(&p, wr_reg(key, &m, LW | ZERO)), VMRI_VERR_FLAGS);
    wr = wr_reg(key, &m, LW);
    wr.wqe.u.reg.length = 4 * PAGE_SIZE + 1;
    CHECK_EQ(b_request(&p, wr), VMRI_VERR_BOUNDS);
    wr.wqe.u.reg.length = 4 * PAGE_SIZE - 99;
    CHECK_EQ(b_request(&p, wr), VMRI_VERR_BOUNDS);
    wr.wqe.u.reg.length = 0;
    CHECK_EQ(b_request(&p, wr), VMRI_VERR_BOUNDS);
    wr.wqe.u.reg.length = -1ULL;
    CHECK_EQ(b_request(&p, wr), VMRI_VERR_BOUNDS);
    wr = wr_reg(key, &m, LW);
    wr.wqe.u.reg.iova = -100ULL;
    CHECK_EQ(b_request(&p, wr), VMRI_VERR_BOUNDS);
    wr = wr_reg(key, &m, LW);
    wr.wqe.u.reg.offset = 4096;
    CHECK_EQ(b_request(&p, wr), VMRI_VERR_BOUNDS);

    CHECK_EQ(a_writes(&p, key, m.iova, 8), VMRI_VERR_KEY);
    CHECK_EQ(b_request(&p, wr_reg(key, &m, LW | RW)), 0);
    key = next_name(key);
    CHECK_EQ(b_request(&p, wr_reg(key, &m, LW)), VMRI_VERR_STATE);
    CHECK_EQ(a_writes(&p, key, m.iova, 8), 0);
}

static uint16_t b_malformed(struct pair *p, struct guest_wr wr)
{
    uint16_t verr;

    qp_send(p->qb, &wr);
    verr = cq_expect(p->qb->scq, wr.wr_id, VMRI_WC_LOC_QP_OP_ERR).vendor_err;
    pair_again(p);
    return verr;
}

TEST(fast_registration_has_no_entries)
{
    struct pair p = pair_new(&kernel_opts, NULL);
    struct guest_mr m = pages_of(p.b, 16000, 100);
    struct guest_wr wr = wr_reg(fast_new(p.b, 4), &m, LW);

    wr.flags = VMRI_SEND_INDIRECT;
    CHECK_EQ(b_malformed(&p, wr), VMRI_VERR_FLAGS);
    wr.flags = VMRI_SEND_INLINE;
    CHECK_EQ(b_malformed(&p, wr), VMRI_VERR_FLAGS);
    wr.flags = 0;
    wr.num_sge = 1;
    wr.sge[0] = (struct vmri_sge){ 0, 0, 0 };
    CHECK_EQ(b_malformed(&p, wr), VMRI_VERR_SGES);
}

/* The list is in one page, which is the guest's own memory, and read once. */
TEST(fast_list_of_frames)
{
    struct pair p = pair_new(&kernel_opts, NULL);
    struct guest_mr m = pages_of(p.b, 4 * PAGE_SIZE, 0);
    uint32_t key = fast_new(p.b, 4), round;
    struct guest_wr wr = wr_reg(key, &m, LW | RW);
    uint64_t list = wr.wqe.u.reg.list, gfn = list >> PAGE_SHIFT;
    uint64_t *at = (void *)env_test_mem(p.b->domain, gfn);

    wr.wqe.u.reg.list = list + 4;
    CHECK_EQ(b_request(&p, wr), VMRI_VERR_BOUNDS);
    wr.wqe.u.reg.list = list + PAGE_SIZE - 24;
    CHECK_EQ(b_request(&p, wr), VMRI_VERR_BOUNDS);
    wr.wqe.u.reg.list = list | (1ULL << 63);
    CHECK_EQ(b_request(&p, wr), VMRI_VERR_FRAME);
    env_test_page_kind(p.b->domain, gfn, ENV_GRANT);
    wr.wqe.u.reg.list = list;
    CHECK_EQ(b_request(&p, wr), VMRI_VERR_FRAME);
    env_test_page_kind(p.b->domain, gfn, ENV_RAM);
    CHECK_EQ(a_writes(&p, key, m.iova, 8), VMRI_VERR_KEY);

    for ( round = 0; round < 2; round++ )
    {
        /* At its end, too; and what it says afterwards does not matter. */
        wr = wr_reg(key, &m, LW | RW);
        if ( round )
        {
            at = (void *)env_test_mem(p.b->domain,
                                      wr.wqe.u.reg.list >> PAGE_SHIFT);
            memmove(at + 508, at, 4 * sizeof(*at));
            wr.wqe.u.reg.list += PAGE_SIZE - 32;
        }
        CHECK_EQ(b_request(&p, wr), 0);
        CHECK_EQ(env_test_page_refs(p.b->domain, gfn), 0);
        memset(at, 0xff, PAGE_SIZE);
        key = next_name(key);
        a_pattern(&p, key, m.iova, m.mem, 4 * PAGE_SIZE);
        CHECK_EQ(b_request(&p, wr_inv(key)), 0);
    }

    /* What it says is anything: a copy finds out. */
    wr = wr_reg(key, &m, LW | RW);
    at = (void *)env_test_mem(p.b->domain, wr.wqe.u.reg.list >> PAGE_SHIFT);
    at[1] = -1ULL;
    CHECK_EQ(b_request(&p, wr), 0);
    key = next_name(key);
    CHECK_EQ(a_writes(&p, key, m.iova, 8), 0);
    CHECK_EQ(a_writes(&p, key, m.iova + PAGE_SIZE, 8), VMRI_VERR_FRAME);
}

/* A frame is looked at when a copy comes to it, and not before or after. */
TEST(fast_frames_are_looked_at_by_copies)
{
    struct pair p = pair_new(&kernel_opts, NULL);
    struct guest_mr m = pages_of(p.b, 4 * PAGE_SIZE, 0);
    uint32_t key = fast_new(p.b, 4), i;

    CHECK_EQ(b_request(&p, wr_reg(key, &m, LW | RW | RR)), 0);
    key = next_name(key);
    CHECK(env_test_page_pin_table(p.b->domain, m.gfn + 2));
    CHECK_EQ(a_writes(&p, key, m.iova, 8), 0);
    CHECK_EQ(a_writes(&p, key, m.iova + 8190, 8), VMRI_VERR_FRAME);
    CHECK_EQ(a_reads(&p, key, m.iova + 8190, 8), 0);
    env_test_page_kind(p.b->domain, m.gfn + 1, ENV_GRANT);
    CHECK_EQ(a_reads(&p, key, m.iova + 4096, 8), VMRI_VERR_FRAME);
    for ( i = 0; i < 4; i++ )
        CHECK_EQ(env_test_page_refs(p.b->domain, m.gfn + i), 0);
    env_test_page_kind(p.b->domain, m.gfn + 3, ENV_HOLE);
    CHECK_EQ(a_reads(&p, key, m.iova + 3 * PAGE_SIZE, 8), VMRI_VERR_FRAME);
}

/* A process, even in the PD of the kernel's key, has no use of it. */
TEST(fast_is_not_for_users)
{
    struct pair k = pair_new(&kernel_opts, NULL), u = k;
    struct guest_mr m = pages_of(k.b, 8000, 0);
    uint32_t key = fast_new(k.b, 2), mw = mw_new(k.b, 1);
    struct guest_wr wr;

    u.qa = guest_qp(k.a, NULL);
    u.qb = guest_qp(k.b, NULL);
    qp_connect(u.qa, u.qb, NULL);

    wr = wr_reg(key, &m, LW | RW | BIND);
    CHECK_EQ(b_request(&k, wr), 0);
    key = m.key = next_name(key);

    wr.flags = VMRI_SEND_SIGNALED;
    qp_send(u.qb, &wr);
    CHECK_EQ(cq_expect(u.qb->scq, 7, VMRI_WC_LOC_QP_OP_ERR).vendor_err,
             VMRI_VERR_OPCODE);
    pair_again(&u);
    CHECK_EQ(b_request(&u, wr_inv(key)), VMRI_VERR_KEY);
    CHECK_EQ(b_request(&u, wr_bind(mw, &m, 0, 100, RW)), VMRI_VERR_KEY);
    wr = pair_wr(&u, VMRI_WR_RDMA_WRITE, 1, 0, 0, 0);
    wr.sge[0] = (struct vmri_sge){ m.iova, 8, key };
    wr.rkey = u.ma.key;
    wr.remote_addr = u.ma.iova;
    qp_send(u.qb, &wr);
    CHECK_EQ(cq_expect(u.qb->scq, 1, VMRI_WC_LOC_PROT_ERR).vendor_err,
             VMRI_VERR_KEY);
    pair_again(&u);

    /* The kernel may bind a window to it, which keeps it registered. */
    CHECK_EQ(b_request(&k, wr_bind(mw, &m, 100, 5000, RW)), 0);
    mw = next_name(mw);
    a_pattern(&k, mw, m.iova + 100, m.mem + 100, 5000);
    CHECK_EQ(b_request(&k, wr_inv(key)), VMRI_VERR_BOUND);
    CHECK_EQ(fast_free(k.b, key), -EBUSY);
    CHECK_EQ(mw_free(k.b, mw), 0);
    CHECK_EQ(b_request(&k, wr_inv(key)), 0);
}

/* The peer invalidates: a kernel queue's, and of its PD only. */
TEST(fast_invalidated_by_the_peer)
{
    struct pair k = pair_new(&kernel_opts, NULL), u = k, *pair;
    struct guest_mr m = pages_of(k.b, 8000, 0);
    uint32_t key = fast_new(k.b, 2), i;

    u.qa = guest_qp(k.a, NULL);
    u.qb = guest_qp(k.b, NULL);
    qp_connect(u.qa, u.qb, NULL);
    CHECK_EQ(b_request(&k, wr_reg(key, &m, LW | RW)), 0);
    key = next_name(key);

    for ( i = 0; i < 3; i++ )
    {
        static const uint16_t want[] = { VMRI_VERR_KEY, 0, VMRI_VERR_STATE };
        struct guest_wr wr;
        struct vmri_cqe cqe;

        pair = i ? &k : &u;
        wr = pair_wr(pair, VMRI_WR_SEND_WITH_INV, 3, 0, 0, 100);
        wr.imm = key;
        pair_recv(pair, 4, 0, 100);
        pair_send(pair, &wr);
        cqe = cq_expect(pair->qa->scq, 3, want[i] ? VMRI_WC_REM_ACCESS_ERR : 0);
        CHECK_EQ(cqe.vendor_err, want[i]);
        world_settle();
        cqe = cq_expect(pair->qb->rcq, 4, want[i] ? VMRI_WC_WR_FLUSH_ERR : 0);
        CHECK_EQ(cqe.flags, want[i] ? 0 : VMRI_WC_WITH_INV);
        CHECK_EQ(cqe.imm, want[i] ? 0 : key);
        if ( want[i] )
            pair_again(pair);
        CHECK_EQ(a_writes(&k, key, m.iova, 8), i ? VMRI_VERR_KEY : 0);
    }
}

TEST(fast_bad_arguments_and_failures)
{
    struct guest *g = guest_new(1);
    struct vmri_mr_alloc arg = { .pd = g->pd, .max_frames = 1, .flags = 1 };
    uint64_t before;
    uint32_t key, nth;

    CHECK_EQ(guest_call(g, VMRI_OP_mr_alloc, &arg, sizeof(arg)), -EINVAL);
    CHECK_EQ(try_fast(g, g->pd, 0, &key), -EINVAL);
    CHECK_EQ(try_fast(g, g->pd, VMRI_MAX_FAST_FRAMES + 1, &key), -EINVAL);
    CHECK_EQ(try_fast(g, 77, 1, &key), -ENOENT);
    CHECK_EQ(fast_free(g, fast_new(g, 9)), 0);
    before = env_stats.allocated;
    for ( nth = 1; nth <= 3; nth++ )
    {
        env_test_fail(ENV_FAIL_ALLOC, nth);
        CHECK_EQ(try_fast(g, g->pd, 9, &key), -ENOMEM);
        CHECK_EQ(env_stats.allocated, before);
    }
    env_test_fail(ENV_FAIL_COPY_TO, 1);
    CHECK_EQ(try_fast(g, g->pd, 9, &key), -EFAULT);
    CHECK_EQ(env_stats.allocated, before);
    fast_new(g, 9);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy, NULL, 0), 0);
}
