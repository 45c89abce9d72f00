/* SPDX-License-Identifier: GPL-2.0-only */
/* mw.c: memory windows: what they show, to whom, and for how long. */
#include "keys.h"
#include "internal.h"

#undef memcpy
#undef memset

/* ---- what a window shows ---- */

static void check_life(uint32_t type)
{
    struct pair p = pair_keys(NULL);
    uint64_t base = p.mb.iova;
    uint32_t mw = mw_new(p.b, type), old;

    CHECK_EQ(a_writes(&p, mw, base, 8), VMRI_VERR_KEY);
    CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 5000, 7000, RW | RR)), 0);
    CHECK_EQ(a_writes(&p, mw, base + 5000, 8), VMRI_VERR_KEY);
    old = mw;
    mw = next_name(mw);

    a_pattern(&p, mw, base + 5000, p.mb.mem + 5000, 7000);
    a_pattern(&p, mw, base + 11999, p.mb.mem + 11999, 1);
    CHECK_EQ(a_reads(&p, mw, base + 5000, 7000), 0);
    CHECK_EQ(a_writes(&p, mw, base + 4999, 8), VMRI_VERR_BOUNDS);
    CHECK_EQ(a_writes(&p, mw, base + 5000, 7001), VMRI_VERR_BOUNDS);
    CHECK_EQ(a_reads(&p, mw, base + 12000, 1), VMRI_VERR_BOUNDS);
    CHECK_EQ(a_reads(&p, mw, 0, 1), VMRI_VERR_BOUNDS);
    CHECK_EQ(a_writes(&p, old, base + 5000, 8), VMRI_VERR_KEY);
    CHECK_EQ(a_writes(&p, mw ^ 0x80, base + 5000, 8), VMRI_VERR_KEY);

    CHECK_EQ(mw_free(p.b, p.mb.key), -ENOENT);
    /* By any of its names: the kernel knows the first one only. */
    CHECK_EQ(mw_free(p.b, old), 0);
    CHECK_EQ(mw_free(p.b, mw), -ENOENT);
    CHECK_EQ(a_writes(&p, mw, base + 5000, 8), VMRI_VERR_KEY);
    CHECK_EQ(mr_deregister(&p.mb), 0);
}

TEST(mw_type1_shows_its_range)
{
    check_life(1);
}

TEST(mw_type2_shows_its_range)
{
    check_life(2);
}

TEST(mw_rights)
{
    struct pair p = pair_keys(NULL);
    uint32_t mw = mw_new(p.b, 1);

    CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 100, RW)), 0);
    mw = next_name(mw);
    CHECK_EQ(a_writes(&p, mw, p.mb.iova, 8), 0);
    CHECK_EQ(a_reads(&p, mw, p.mb.iova, 8), VMRI_VERR_RIGHTS);
    CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 100, RR)), 0);
    mw = next_name(mw);
    CHECK_EQ(a_writes(&p, mw, p.mb.iova, 8), VMRI_VERR_RIGHTS);
    CHECK_EQ(a_reads(&p, mw, p.mb.iova, 8), 0);
    CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 100, 0)), 0);
    CHECK_EQ(a_reads(&p, next_name(mw), p.mb.iova, 8), VMRI_VERR_RIGHTS);
}

/* On queues of processes, too: no call, and no privilege. */
TEST(mw_type1_is_bound_anew)
{
    struct pair p = pair_keys(NULL);
    uint32_t mw = mw_new(p.b, 1), i;
    struct guest_wr unbind;

    for ( i = 0; i < 600; i++ )
    {
        uint64_t at = i * 97;

        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, at, 50, RW)), 0);
        mw = next_name(mw);
        if ( i % 50 == 0 )
            a_pattern(&p, mw, p.mb.iova + at, p.mb.mem + at, 50);
    }
    CHECK_EQ(a_writes(&p, mw, p.mb.iova, 8), VMRI_VERR_BOUNDS);

    unbind = wr_bind(mw, &p.mb, 0, 0, 0);
    unbind.wqe.u.bind.mr_key = 0;
    CHECK_EQ(mr_deregister(&p.mb), -EBUSY);
    CHECK_EQ(b_request(&p, unbind), 0);
    mw = next_name(mw);
    CHECK_EQ(a_writes(&p, mw, p.mb.iova + 600 * 97, 8), VMRI_VERR_KEY);
    CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 1, 50, RW)), 0);
    CHECK_EQ(a_writes(&p, next_name(mw), p.mb.iova + 1, 8), 0);
}

TEST(mw_zero_based)
{
    static const uint64_t places[] = { 0, 1, 1095, 1096, 1097, 5000, 100003 };
    struct pair p = pair_keys(NULL);
    uint32_t mw = mw_new(p.b, 2), i;

    for ( i = 0; i < ARRAY_SIZE(places); i++ )
    {
        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, places[i], 9000, RW | ZERO)),
                 0);
        mw = next_name(mw);
        a_pattern(&p, mw, 0, p.mb.mem + places[i], 9000);
        a_pattern(&p, mw, 8999, p.mb.mem + places[i] + 8999, 1);
        CHECK_EQ(a_writes(&p, mw, 0, 9001), VMRI_VERR_BOUNDS);
        CHECK_EQ(a_writes(&p, mw, -1ULL, 2), VMRI_VERR_BOUNDS);
        CHECK_EQ(a_writes(&p, mw, p.mb.iova + places[i], 1), VMRI_VERR_BOUNDS);
        CHECK_EQ(b_request(&p, wr_inv(mw)), 0);
    }
}

/* ---- what may not be bound ---- */

/* A second PD, and an MR of b's in it. */
static struct guest_mr other_mr(struct pair *p, uint32_t access)
{
    struct guest_mr m = mr_pages(p->b, 10000, 0, LAYOUT_RUN);

    CHECK_EQ(try_mr(p->b, &m, guest_pd(p->b), access), 0);
    return m;
}

TEST(mw_bind_is_refused)
{
    const uint64_t end = PAIR_BYTES;
    struct pair p = pair_keys(NULL);
    struct guest_mr ro = guest_mr(p.b, 10000, 0, LAYOUT_RUN, RR | BIND);
    struct guest_mr no = guest_mr(p.b, 10000, 0, LAYOUT_RUN, LW | RW | RR);
    struct guest_mr far = other_mr(&p, LW | BIND);
    uint32_t fast = fast_new(p.b, 4), type, key;
    struct guest_mr none = { .guest = p.b, .iova = p.mb.iova };

    for ( type = 1; type <= 2; type++ )
    {
        uint32_t mw = mw_new(p.b, type), alien;
        struct guest_wr wr = wr_bind(mw, &p.mb, 0, 100, RW);

        CHECK_EQ(try_mw(p.b, guest_pd(p.b), type, &alien), 0);

        /* The window. */
        wr.wqe.u.bind.mw_key = next_name(mw);
        CHECK_EQ(b_request(&p, wr), VMRI_VERR_KEY);
        wr.wqe.u.bind.mw_key = p.mb.key;
        CHECK_EQ(b_request(&p, wr), VMRI_VERR_KEY);
        wr.wqe.u.bind.mw_key = fast;
        CHECK_EQ(b_request(&p, wr), VMRI_VERR_KEY);
        wr.wqe.u.bind.mw_key = 0;
        CHECK_EQ(b_request(&p, wr), VMRI_VERR_KEY);
        CHECK_EQ(b_request(&p, wr_bind(alien, &p.mb, 0, 100, RW)),
                 VMRI_VERR_PD);
        wr = wr_bind(mw, &p.mb, 0, 100, RW);
        wr.wqe.u.bind.new_key = mw + 0x100;
        CHECK_EQ(b_request(&p, wr), VMRI_VERR_KEY);
        wr = wr_bind(mw, &p.mb, 0, 100, RW);
        wr.wqe.u.bind.reserved = 1;
        CHECK_EQ(b_request(&p, wr), VMRI_VERR_FLAGS);
        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 100, LW)),
                 VMRI_VERR_FLAGS);
        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 100, RW | 0x200)),
                 VMRI_VERR_FLAGS);
        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 100, RW | ZERO)),
                 type == 1 ? VMRI_VERR_FLAGS : 0);
        if ( type == 2 )
        {
            mw = next_name(mw);
            CHECK_EQ(b_request(&p, wr_inv(mw)), 0);
            CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 0, RW)),
                     VMRI_VERR_LENGTH);
        }

        /* The region. */
        for ( key = 0; key < 3; key++ )
        {
            none.key = key == 0 ? 0 : key == 1 ? mw : fast;
            CHECK_AT(b_request(&p, wr_bind(mw, &none, 0, 100, RW)),
                     VMRI_VERR_KEY, "key %#x", none.key);
        }
        CHECK_EQ(b_request(&p, wr_bind(mw, &far, 0, 100, RW)), VMRI_VERR_PD);
        CHECK_EQ(b_request(&p, wr_bind(mw, &no, 0, 100, RR)),
                 VMRI_VERR_RIGHTS);
        CHECK_EQ(b_request(&p, wr_bind(mw, &ro, 0, 100, RW)),
                 VMRI_VERR_RIGHTS);
        CHECK_EQ(b_request(&p, wr_bind(mw, &ro, 0, 100,
                                       VMRI_ACCESS_REMOTE_ATOMIC)),
                 VMRI_VERR_RIGHTS);
        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, -1ULL, 100, RW)),
                 VMRI_VERR_BOUNDS);
        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, end - 99, 100, RW)),
                 VMRI_VERR_BOUNDS);
        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 1, -1ULL, RW)),
                 VMRI_VERR_BOUNDS);
        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, end + 1, 1, RW)),
                 VMRI_VERR_BOUNDS);

        /* Nothing of this has bound it, or counted. */
        CHECK_EQ(a_writes(&p, mw, p.mb.iova, 8), VMRI_VERR_KEY);
        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, end - 100, 100, RW)), 0);
        mw = next_name(mw);
        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 1, RW)),
                 type == 2 ? VMRI_VERR_STATE : 0);
    }
    CHECK_EQ(mr_deregister(&ro), 0);
    CHECK_EQ(mr_deregister(&no), 0);
    CHECK_EQ(mr_deregister(&far), 0);
}

/* The request itself: entries, data, queues that have no such operation. */
TEST(mw_requests_have_a_form)
{
    struct guest_qp_opts ud = { .type = VMRI_QPT_UD };
    struct pair p = pair_keys(NULL);
    struct guest_qp *qu = guest_qp(p.b, &ud);
    uint32_t mw = mw_new(p.b, 1);
    struct guest_wr wr = wr_bind(mw, &p.mb, 0, 100, RW);

    wr.num_sge = 1;
    qp_send(p.qb, &wr);
    CHECK_EQ(cq_expect(p.qb->scq, 7, VMRI_WC_LOC_QP_OP_ERR).vendor_err,
             VMRI_VERR_SGES);
    pair_again(&p);
    wr.num_sge = 0;
    wr.length = 4;
    qp_send(p.qb, &wr);
    CHECK_EQ(cq_expect(p.qb->scq, 7, VMRI_WC_LOC_LEN_ERR).vendor_err,
             VMRI_VERR_LENGTH);
    pair_again(&p);
    wr.length = 0;
    wr.flags |= VMRI_SEND_INLINE;
    qp_send(p.qb, &wr);
    CHECK_EQ(cq_expect(p.qb->scq, 7, VMRI_WC_LOC_QP_OP_ERR).vendor_err,
             VMRI_VERR_FLAGS);

    qp_connect(qu, qu, NULL);
    wr.flags = VMRI_SEND_SIGNALED;
    qp_send(qu, &wr);
    CHECK_EQ(cq_expect(qu->scq, 7, VMRI_WC_LOC_QP_OP_ERR).vendor_err,
             VMRI_VERR_OPCODE);
}

/* A window gives remote access and nothing else. */
TEST(mw_is_no_local_key)
{
    struct pair p = pair_keys(&kernel_opts);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 8);
    uint32_t mw = mw_new(p.a, 1);

    CHECK_EQ(mr_deregister(&p.ma), 0);
    CHECK_EQ(try_mr(p.a, &p.ma, p.a->pd, LW | BIND), 0);
    wr = wr_bind(mw, &p.ma, 0, 100, RW | RR);
    CHECK_EQ(key_request(p.qa, &wr), 0);
    wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, 8);
    wr.sge[0].lkey = next_name(mw);
    qp_send(p.qa, &wr);
    CHECK_EQ(cq_expect(p.qa->scq, 1, VMRI_WC_LOC_PROT_ERR).vendor_err,
             VMRI_VERR_KEY);
}

/* ---- type 2 ---- */

TEST(mw_type2_is_its_queues_alone)
{
    struct pair p = pair_keys(NULL), q = p;
    uint32_t mw = mw_new(p.b, 2);

    q.qa = guest_qp(p.a, NULL);
    q.qb = guest_qp(p.b, NULL);
    qp_connect(q.qa, q.qb, NULL);

    CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 100, RW)), 0);
    mw = next_name(mw);
    CHECK_EQ(a_writes(&p, mw, p.mb.iova, 8), 0);
    CHECK_EQ(a_writes(&q, mw, p.mb.iova, 8), VMRI_VERR_PD);
    CHECK_EQ(b_request(&q, wr_inv(mw)), VMRI_VERR_PD);
    CHECK_EQ(b_request(&q, wr_bind(mw, &p.mb, 0, 9, RW)), VMRI_VERR_STATE);
    CHECK_EQ(a_writes(&p, mw, p.mb.iova, 8), 0);

    CHECK_EQ(b_request(&p, wr_inv(mw)), 0);
    CHECK_EQ(a_writes(&p, mw, p.mb.iova, 8), VMRI_VERR_KEY);
    CHECK_EQ(b_request(&p, wr_inv(mw)), 0);
    CHECK_EQ(b_request(&q, wr_bind(mw, &p.mb, 0, 100, RW)), 0);
    mw = next_name(mw);
    CHECK_EQ(a_writes(&q, mw, p.mb.iova, 8), 0);
    CHECK_EQ(a_writes(&p, mw, p.mb.iova, 8), VMRI_VERR_PD);
}

TEST(mw_what_cannot_be_invalidated)
{
    struct pair p = pair_keys(NULL);
    uint32_t mw = mw_new(p.b, 1), two = mw_new(p.b, 2);

    CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 100, RW)), 0);
    mw = next_name(mw);
    CHECK_EQ(b_request(&p, wr_inv(mw)), VMRI_VERR_KEY);
    CHECK_EQ(b_request(&p, wr_inv(p.mb.key)), VMRI_VERR_KEY);
    CHECK_EQ(b_request(&p, wr_inv(0)), VMRI_VERR_KEY);
    CHECK_EQ(b_request(&p, wr_inv(next_name(two))), VMRI_VERR_KEY);
    CHECK_EQ(b_request(&p, wr_inv(VMRI_LKEY_FRAMES)), VMRI_VERR_KEY);
    CHECK_EQ(a_writes(&p, mw, p.mb.iova, 8), 0);
}

/* ---- SEND_WITH_INV ---- */

/* a sends and invalidates: 0, or why not; b gets what it should. */
static uint16_t a_invalidates(struct pair *p, uint32_t key, uint32_t bytes)
{
    struct guest_wr wr = pair_wr(p, VMRI_WR_SEND_WITH_INV, 3, 0, 0, bytes);
    unsigned int errors = p->b->events[VMRI_EVENT_QP_ACCESS_ERR];
    struct vmri_cqe cqe, recv;

    wr.imm = key;
    pair_recv(p, 4, 0, bytes);
    pair_send(p, &wr);
    CHECK(cq_poll(p->qa->scq, &cqe));
    CHECK_EQ(cqe.opcode, VMRI_WC_OP_SEND);
    world_settle();
    CHECK(cq_poll(p->qb->rcq, &recv));
    CHECK_EQ(recv.wr_id, 4);
    if ( !cqe.status )
    {
        CHECK_EQ(recv.status, 0);
        CHECK_EQ(recv.flags, VMRI_WC_WITH_INV);
        CHECK_EQ(recv.imm, key);
        CHECK_EQ(recv.byte_len, bytes);
        return 0;
    }
    CHECK_EQ(cqe.status, VMRI_WC_REM_ACCESS_ERR);
    CHECK_EQ(recv.status, VMRI_WC_WR_FLUSH_ERR);
    CHECK_EQ(recv.flags, 0);
    CHECK_EQ(p->b->events[VMRI_EVENT_QP_ACCESS_ERR], errors + 1);
    CHECK_EQ(qp_state(p->qb), VMRI_QPS_ERR);
    pair_again(p);
    return cqe.vendor_err;
}

/* What a fast MR has shown once is nothing to bind to. */
TEST(mw_bind_to_an_invalidated_region)
{
    struct pair p = pair_keys(&kernel_opts);
    struct guest_mr m = mr_pages(p.b, 8192, 0, LAYOUT_SCATTERED);
    uint32_t mw = mw_new(p.b, 1);

    m.key = fast_new(p.b, 8);
    CHECK_EQ(b_request(&p, wr_reg(m.key, &m, LW | RW | BIND)), 0);
    m.key = next_name(m.key);
    CHECK_EQ(b_request(&p, wr_inv(m.key)), 0);
    CHECK_EQ(b_request(&p, wr_bind(mw, &m, 0, 100, RW)), VMRI_VERR_STATE);
}

/* Once unbound, a window of type 2 is no queue pair's more than another's. */
TEST(mw_unbound_is_nobodys)
{
    struct pair p = pair_keys(NULL);
    struct guest_qp *other = guest_qp(p.b, NULL);
    uint32_t mw = mw_new(p.b, 2);
    struct guest_wr wr;

    qp_connect(other, guest_qp(p.a, NULL), NULL);
    CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 100, RW)), 0);
    mw = next_name(mw);
    CHECK_EQ(b_request(&p, wr_inv(mw)), 0);
    wr = wr_inv(mw);
    CHECK_EQ(key_request(other, &wr), 0);
    wr = wr_bind(mw, &p.mb, 0, 100, RW);
    CHECK_EQ(key_request(other, &wr), 0);
}

TEST(mw_send_with_invalidate)
{
    struct pair p = pair_keys(NULL), q = p;
    uint32_t one = mw_new(p.b, 1), two = mw_new(p.b, 2);

    q.qa = guest_qp(p.a, NULL);
    q.qb = guest_qp(p.b, NULL);
    qp_connect(q.qa, q.qb, NULL);

    CHECK_EQ(a_invalidates(&p, two, 10), VMRI_VERR_STATE);
    CHECK_EQ(b_request(&p, wr_bind(two, &p.mb, 0, 100, RW)), 0);
    two = next_name(two);
    CHECK_EQ(a_invalidates(&q, two, 10), VMRI_VERR_PD);
    CHECK_EQ(a_writes(&p, two, p.mb.iova, 8), 0);
    CHECK_EQ(a_invalidates(&p, two, 200000), 0);
    CHECK_EQ(a_writes(&p, two, p.mb.iova, 8), VMRI_VERR_KEY);
    CHECK_EQ(a_invalidates(&p, two, 10), VMRI_VERR_STATE);

    CHECK_EQ(b_request(&p, wr_bind(one, &p.mb, 0, 100, RW)), 0);
    one = next_name(one);
    CHECK_EQ(a_invalidates(&p, one, 0), VMRI_VERR_KEY);
    CHECK_EQ(a_invalidates(&p, p.mb.key, 10), VMRI_VERR_KEY);
    CHECK_EQ(a_invalidates(&p, 0, 10), VMRI_VERR_KEY);
    CHECK_EQ(a_writes(&p, one, p.mb.iova, 8), 0);
}

/* ---- what holds what ---- */

/* A bound region stays; each way to unbind lets it go. */
TEST(mw_keeps_its_region)
{
    struct pair p = pair_keys(NULL);
    struct vmri_mr_reregister re = {
        .old_key = p.mb.key, .flags = VMRI_REREG_ACCESS, .mr.access = LW,
    };
    struct vmri_object pd = { .handle = p.b->pd };
    unsigned int way;

    for ( way = 0; way < 4; way++ )
    {
        uint32_t mw = mw_new(p.b, way == 0 ? 1 : 2);

        CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 100, RW)), 0);
        mw = next_name(mw);
        CHECK_EQ(mr_deregister(&p.mb), -EBUSY);
        re.old_key = p.mb.key;
        CHECK_EQ(guest_call(p.b, VMRI_OP_mr_reregister, &re, sizeof(re)),
                 -EBUSY);
        CHECK_EQ(a_writes(&p, mw, p.mb.iova, 8), 0);

        switch ( way )
        {
        case 0:
            CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, 0, 0, 0)), 0);
            mw = next_name(mw);
            break;
        case 1:
            CHECK_EQ(b_request(&p, wr_inv(mw)), 0);
            break;
        case 2:
            break;
        case 3:
            CHECK_EQ(qp_destroy(p.qb), 0);
            break;
        }
        if ( way == 2 )
            CHECK_EQ(mw_free(p.b, mw), 0);
        CHECK_EQ(mr_deregister(&p.mb), 0);
        CHECK_EQ(try_mr(p.b, &p.mb, p.b->pd, LW | RW | RR | BIND), 0);
        if ( way != 2 )
            CHECK_EQ(mw_free(p.b, mw), 0);
    }
    CHECK_EQ(guest_call(p.b, VMRI_OP_pd_destroy, &pd, sizeof(pd)), -EBUSY);
}

/* Windows of a queue that goes are free for another one. */
TEST(mw_many_of_a_queue_that_goes)
{
    struct pair p = pair_keys(NULL);
    uint32_t mw[200], i, steps = 0;
    struct vmri_object arg = { .handle = p.qb->qpn };
    long rc;

    for ( i = 0; i < ARRAY_SIZE(mw); i++ )
    {
        mw[i] = mw_new(p.b, 2);
        CHECK_EQ(b_request(&p, wr_bind(mw[i], &p.mb, i, 10, RW)), 0);
        mw[i] = next_name(mw[i]);
    }

    rc = guest_call_once(p.b, VMRI_OP_qp_destroy, &arg, sizeof(arg));
    CHECK_EQ(rc, -ERESTART);
    /* What goes binds no more. */
    CHECK_EQ(b_request(&p, wr_bind(mw[0], &p.mb, 0, 10, RW)), VMRI_VERR_STATE);
    while ( rc == -ERESTART && ++steps < 100 )
        rc = guest_call_once(p.b, VMRI_OP_qp_destroy | VMRI_CONTINUE, &arg,
                             sizeof(arg));
    CHECK_EQ(rc, 0);
    CHECK(steps >= 3);

    p.qb = guest_qp(p.b, NULL);
    pair_again(&p);
    for ( i = 0; i < ARRAY_SIZE(mw); i++ )
    {
        CHECK_EQ(b_request(&p, wr_bind(mw[i], &p.mb, i, 10, RW)), 0);
        if ( i % 40 == 0 )
            CHECK_EQ(a_writes(&p, next_name(mw[i]), p.mb.iova + i, 8), 0);
    }
    CHECK_EQ(mr_deregister(&p.mb), -EBUSY);
    /* The rest goes with the device, many at a time and in any state. */
}

TEST(mw_goes_with_the_device)
{
    struct pair p = pair_keys(NULL);
    struct vmri_object arg = { .handle = p.qb->qpn };
    uint32_t i;

    for ( i = 0; i < 150; i++ )
    {
        uint32_t mw = mw_new(p.b, 1 + i % 2);

        if ( i % 3 )
            CHECK_EQ(b_request(&p, wr_bind(mw, &p.mb, i, 10, RW)), 0);
    }
    env_test_preempt(1);
    CHECK_EQ(guest_call_once(p.b, VMRI_OP_qp_destroy, &arg, sizeof(arg)),
             -ERESTART);
    CHECK_EQ(guest_call(p.b, VMRI_OP_dev_destroy, NULL, 0), 0);
    env_test_preempt(0);
    guest_start(p.b);
}

/* ---- commands ---- */

TEST(mw_bad_arguments_and_limits)
{
    struct guest *g = guest_new(1);
    struct vmri_mw_alloc arg = { .pd = g->pd, .type = 1, .reserved = 1 };
    struct vmri_object none = { .handle = 0x100, .reserved = 1 };
    struct vmri_dev *dev;
    uint32_t key, other;

    CHECK_EQ(guest_call(g, VMRI_OP_mw_alloc, &arg, sizeof(arg)), -EINVAL);
    CHECK_EQ(try_mw(g, g->pd, 0, &key), -EINVAL);
    CHECK_EQ(try_mw(g, g->pd, 3, &key), -EINVAL);
    CHECK_EQ(try_mw(g, 77, 1, &key), -ENOENT);
    CHECK_EQ(guest_call(g, VMRI_OP_mw_free, &none, sizeof(none)), -EINVAL);
    CHECK_EQ(mw_free(g, 0x100), -ENOENT);
    CHECK(g->attr.max_mw);

    key = mw_new(g, 1);
    dev = vmri_dev_get(g->domain, g->dev);
    vmri_dev_put(dev);
    dev->owner->limit[VMRI_RES_MW] = 1;
    CHECK_EQ(try_mw(g, g->pd, 1, &other), -ENOSPC);
    CHECK_EQ(mw_free(g, key), 0);
    CHECK_EQ(try_mw(g, g->pd, 1, &other), 0);
    CHECK(other != key);
}

TEST(mw_every_failure_undoes_all)
{
    static const enum env_failure kinds[] = {
        ENV_FAIL_ALLOC, ENV_FAIL_COPY_FROM, ENV_FAIL_COPY_TO,
    };
    struct guest *g = guest_new(1);
    uint64_t before;
    uint32_t key, i;

    CHECK_EQ(mw_free(g, mw_new(g, 1)), 0);
    before = env_stats.allocated;
    for ( i = 0; i < ARRAY_SIZE(kinds); i++ )
    {
        env_test_fail(kinds[i], 1);
        CHECK_EQ(try_mw(g, g->pd, 2, &key), i ? -EFAULT : -ENOMEM);
        CHECK_EQ(env_stats.allocated, before);
    }
}

/* ---- copies in flight ---- */

static struct pair *flight;
static uint32_t flight_key;
static struct guest_wr flight_wr;
static bool flight_done;

static void do_flight(void *unused)
{
    (void)unused;
    CHECK_EQ(key_request(flight->qb, &flight_wr), 0);
    flight_done = true;
}

static void do_free(void *unused)
{
    (void)unused;
    CHECK_EQ(mw_free(flight->b, flight_key), 0);
    flight_done = true;
}

static void start_aside(void *fn)
{
    env_test_aside((void (*)(void *))fn, NULL);
    CHECK(!flight_done);
}

/* In the middle of a's copy through the window somebody takes it away. */
static void check_flight(struct pair *p, uint32_t mw,
                         void (*fn)(void *))
{
    flight = p;
    flight_key = mw;
    flight_done = false;
    env_test_on_map(5, start_aside, (void *)fn);
    fill_pattern(p->ma.mem, 20000, mw);
    CHECK_EQ(a_writes(p, mw, p->mb.iova + 100, 20000), 0);
    CHECK(env_test_aside_end());
    CHECK(flight_done);
    CHECK_EQ(match_pattern(p->mb.mem + 100, 20000, mw, 0), 20000);
    CHECK_EQ(a_writes(p, mw, p->mb.iova + 100, 8), VMRI_VERR_KEY);
}

TEST(mw_waits_for_copies)
{
    struct pair p = pair_keys(NULL);
    uint32_t one = mw_new(p.b, 1), two = mw_new(p.b, 2);

    CHECK_EQ(b_request(&p, wr_bind(one, &p.mb, 0, 30000, RW)), 0);
    one = next_name(one);
    flight_wr = wr_bind(one, &p.mb, 50000, 100, RW);
    check_flight(&p, one, do_flight);
    one = next_name(one);
    flight_wr = wr_bind(one, &p.mb, 0, 30000, RW);
    CHECK_EQ(b_request(&p, flight_wr), 0);
    check_flight(&p, next_name(one), do_free);

    CHECK_EQ(b_request(&p, wr_bind(two, &p.mb, 0, 30000, RW)), 0);
    two = next_name(two);
    flight_wr = wr_inv(two);
    check_flight(&p, two, do_flight);
}

/* ---- order ---- */

/* Requests of one queue take effect one after the other, fenced or not. */
TEST(mw_requests_keep_their_order)
{
    struct pair p = pair_keys(NULL);
    uint32_t mw = mw_new(p.b, 2), i;
    struct guest_wr send = {
        .wr_id = 8, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
    };

    for ( i = 0; i < 4; i++ )
    {
        struct guest_wr bind = wr_bind(mw, &p.mb, 0, 100, RW), inv;

        mw = next_name(mw);
        inv = wr_inv(mw);
        if ( i % 2 )
            inv.flags |= VMRI_SEND_FENCE;
        qp_post_recv(p.qa, 1, NULL, 0);
        qp_post_send(p.qb, &bind);
        qp_post_send(p.qb, &send);
        qp_post_send(p.qb, &inv);
        qp_ring(p.qb);
        CHECK_EQ(cq_expect(p.qb->scq, 7, 0).opcode, VMRI_WC_OP_BIND_MW);
        CHECK_EQ(cq_expect(p.qb->scq, 8, 0).opcode, VMRI_WC_OP_SEND);
        CHECK_EQ(cq_expect(p.qb->scq, 7, 0).opcode, VMRI_WC_OP_LOCAL_INV);
        cq_expect(p.qa->rcq, 1, 0);
        CHECK_EQ(a_writes(&p, mw, p.mb.iova, 8), VMRI_VERR_KEY);
    }
}
