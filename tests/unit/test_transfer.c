/* SPDX-License-Identifier: GPL-2.0-only */
/* transfer.c, copy.c: every operation moves exactly its bytes, with one copy. */
#include "pair.h"

static const unsigned int operations[] = {
    VMRI_WR_SEND, VMRI_WR_SEND_WITH_IMM, VMRI_WR_RDMA_WRITE,
    VMRI_WR_RDMA_WRITE_WITH_IMM, VMRI_WR_RDMA_READ,
};

#define GUARD   64      /* bytes around a destination that must stay */
#define CANARY  0xa5

/* The sender's completion, and the receiver's if there is one. */
static void check_completions(struct pair *p, const struct guest_wr *wr,
                              uint32_t bytes)
{
    struct vmri_cqe cqe = cq_expect(p->qa->scq, wr->wr_id, 0);

    CHECK_EQ(cqe.qpn, p->qa->qpn);
    CHECK_EQ(cqe.opcode, is_read(wr->opcode) ? VMRI_WC_OP_RDMA_READ :
             wr->opcode <= VMRI_WR_RDMA_WRITE_WITH_IMM ? VMRI_WC_OP_RDMA_WRITE :
             VMRI_WC_OP_SEND);
    if ( is_read(wr->opcode) )
        CHECK_EQ(cqe.byte_len, bytes);
    cq_expect_none(p->qa->scq);

    if ( takes_recv(wr->opcode) )
    {
        cqe = cq_expect(p->qb->rcq, wr->wr_id + 1, 0);
        CHECK_EQ(cqe.qpn, p->qb->qpn);
        CHECK_EQ(cqe.opcode, wr->opcode == VMRI_WR_RDMA_WRITE_WITH_IMM ?
                 VMRI_WC_OP_RECV_RDMA_WITH_IMM : VMRI_WC_OP_RECV);
        CHECK_EQ(cqe.byte_len, bytes);
        CHECK_EQ(cqe.flags & VMRI_WC_GRH, 0);
        CHECK_EQ(cqe.flags & VMRI_WC_WITH_IMM,
                 has_imm(wr->opcode) ? VMRI_WC_WITH_IMM : 0);
        CHECK_EQ(cqe.imm, has_imm(wr->opcode) ? wr->imm : 0);
    }
    cq_expect_none(p->qb->rcq);
}

/* One message between given places; what a read moves goes the other way. */
static void move_one(struct pair *p, unsigned int op, uint64_t from,
                     uint64_t to, uint32_t bytes, bool inline_data)
{
    static uint64_t wr_id = 100;
    bool read = is_read(op);
    uint8_t *src = read ? p->mb.mem + to : p->ma.mem + from;
    uint8_t *dst = read ? p->ma.mem + from : p->mb.mem + to;
    struct guest_wr wr = pair_wr(p, op, wr_id += 2, from, to, bytes);
    uint64_t copied = env_stats.copied, staged = env_stats.staged;

    memset(dst - GUARD, CANARY, bytes + 2 * GUARD);
    fill_pattern(src, bytes, (uint32_t)wr_id);
    if ( inline_data )
    {
        wr.flags |= VMRI_SEND_INLINE;
        wr.data = src;
        wr.num_sge = 0;
        wr.length = bytes;
    }
    if ( takes_recv(op) )
        pair_recv(p, wr_id + 1, op == VMRI_WR_RDMA_WRITE_WITH_IMM ? 0 : to,
                  op == VMRI_WR_RDMA_WRITE_WITH_IMM ? 0 : bytes + 5);
    pair_send(p, &wr);
    check_completions(p, &wr, bytes);
    CHECK_AT(match_pattern(dst, bytes, (uint32_t)wr_id, 0), bytes,
             "op %u, %u bytes, from %llu to %llu", op, bytes,
             (unsigned long long)from, (unsigned long long)to);
    CHECK(all_bytes(dst - GUARD, GUARD, CANARY));
    CHECK(all_bytes(dst + bytes, GUARD, CANARY));

    /* One copy between the guests' pages, none elsewhere. */
    CHECK_EQ(env_stats.copied - copied, inline_data ? 0 : bytes);
    CHECK_EQ(env_stats.staged - staged, inline_data ? bytes : 0);
}

static const uint32_t sizes[] = {
    0, 1, 2, 7, 8, 63, 64, 511, 512, 4095, 4096, 4097, 8191, 8192, 12289, 65535,
    65536, 65537, 262143, 262144, 262145, 900001,
};
static const uint64_t places[][2] = {
    { GUARD, GUARD }, { 3996, 1096 }, { 4095, 4093 }, { 77, 5000 },
};

static void all_sizes(struct pair *p)
{
    unsigned int op, size, place;

    for ( op = 0; op < ARRAY_SIZE(operations); op++ )
        for ( size = 0; size < ARRAY_SIZE(sizes); size++ )
            for ( place = 0; place < ARRAY_SIZE(places); place++ )
                move_one(p, operations[op], places[place][0], places[place][1],
                         sizes[size], false);
}

TEST(transfer_all_sizes_page_by_page)
{
    struct pair p = pair_new(NULL, NULL);

    all_sizes(&p);
}

TEST(transfer_all_sizes_in_runs)
{
    const uint32_t access = VMRI_ACCESS_LOCAL_WRITE | VMRI_ACCESS_REMOTE_WRITE |
                            VMRI_ACCESS_REMOTE_READ;
    struct pair p = pair_new(NULL, NULL);

    env_test_one_frame(false);
    CHECK_EQ(mr_deregister(&p.ma), 0);
    p.ma = guest_mr(p.a, PAIR_BYTES, 100, LAYOUT_RUN, access);
    all_sizes(&p);
    CHECK_EQ(mr_deregister(&p.mb), 0);
    p.mb = guest_mr(p.b, PAIR_BYTES, 3000, LAYOUT_RUN, access);
    env_stats.maps = 0;
    all_sizes(&p);
    /* A run is mapped once a step. */
    CHECK(env_stats.maps < 3000);
}

TEST(transfer_inline)
{
    static const uint32_t bytes[] = { 0, 1, 8, 63, 64, 100, 220, 256, 511, 512 };
    struct guest_qp_opts opts = { .max_inline = 512 };
    struct pair p = pair_new(&opts, NULL);
    unsigned int op, i, place;

    for ( op = 0; op < 4; op++ )
        for ( i = 0; i < ARRAY_SIZE(bytes); i++ )
            for ( place = 0; place < ARRAY_SIZE(places); place++ )
                move_one(&p, operations[op], places[place][0], places[place][1],
                         bytes[i], true);
}

/* A QP with itself, and two of one guest. */
TEST(transfer_loopback)
{
    struct pair p = pair_apart(NULL);
    struct pair self = p, same = p;

    same.b = self.b = p.a;
    same.mb = self.mb = guest_mr(p.a, PAIR_BYTES, 0, LAYOUT_SCATTERED,
                                 VMRI_ACCESS_LOCAL_WRITE |
                                 VMRI_ACCESS_REMOTE_WRITE |
                                 VMRI_ACCESS_REMOTE_READ);
    self.qb = self.qa;
    qp_connect(self.qa, self.qb, NULL);
    all_sizes(&self);

    same.qa = guest_qp(p.a, NULL);
    same.qb = guest_qp(p.a, NULL);
    qp_connect(same.qa, same.qb, NULL);
    all_sizes(&same);
}

/* ---- gather and scatter ---- */

#define PIECES  4

/* Split `bytes` of an MR into pieces in odd places, some of them empty. */
static unsigned int split(const struct guest_mr *mr, uint32_t bytes,
                          struct vmri_sge *sge, bool fill, uint32_t seed)
{
    unsigned int n = 1 + (unsigned int)rand() % PIECES, i;
    uint64_t at = (uint64_t)rand() % 5000;
    uint32_t done = 0;

    for ( i = 0; i < n; i++ )
    {
        uint32_t len = i == n - 1 ? bytes - done : rand() % 3 == 0 ? 0 :
                       (uint32_t)rand() % (bytes - done + 1);
        uint32_t k;

        sge[i] = mr_sge(mr, at, len);
        for ( k = 0; fill && k < len; k++ )
            mr->mem[at + k] = (uint8_t)((done + k) * 7 + seed);
        done += len;
        at += len + (uint64_t)rand() % 5000;
    }
    return n;
}

static void check_pieces(const struct guest_mr *mr, const struct vmri_sge *sge,
                         unsigned int n, uint32_t bytes, uint32_t seed)
{
    uint32_t done = 0, i, k;

    for ( i = 0; i < n; i++ )
        for ( k = 0; k < sge[i].length && done < bytes; k++, done++ )
            CHECK_EQ(mr->mem[sge[i].addr - mr->iova + k],
                     (uint8_t)(done * 7 + seed));
    CHECK_EQ(done, bytes);
}

TEST(transfer_gather_and_scatter)
{
    struct pair p = pair_new(NULL, NULL);
    unsigned int round;

    srand(3);
    for ( round = 0; round < 300; round++ )
    {
        uint32_t bytes = (uint32_t)rand() % (round % 10 ? 9000 : 200000);
        unsigned int op = operations[round % ARRAY_SIZE(operations)], n;
        struct guest_wr wr = pair_wr(&p, op, round, 0, 11, bytes);
        struct vmri_sge recv[PIECES];
        bool read = is_read(op), send = op <= VMRI_WR_SEND_WITH_IMM &&
                                        op >= VMRI_WR_SEND;
        struct vmri_sge remote = mr_sge(&p.mb, 11, bytes);
        uint32_t k;

        wr.num_sge = (uint16_t)split(&p.ma, bytes, wr.sge, !read, round);
        if ( read )
            for ( k = 0; k < bytes; k++ )
                p.mb.mem[11 + k] = (uint8_t)(k * 7 + round);
        n = split(&p.mb, bytes, recv, false, 0);
        if ( takes_recv(op) )
            qp_recv(p.qb, round + 1, recv, n);
        pair_send(&p, &wr);
        check_completions(&p, &wr, bytes);
        if ( read )
            check_pieces(&p.ma, wr.sge, wr.num_sge, bytes, round);
        else if ( send )
            check_pieces(&p.mb, recv, n, bytes, round);
        else
            check_pieces(&p.mb, &remote, 1, bytes, round);
    }
}

/* ---- a kernel's queues: frames without registration, indirect lists ---- */

static struct vmri_sge frame_sge(const struct guest_mr *mr, uint64_t at,
                                 uint32_t bytes)
{
    uint64_t in = mr->offset + at;

    return (struct vmri_sge){
        .addr = (mr->gfn << PAGE_SHIFT) + in, .length = bytes,
        .lkey = VMRI_LKEY_FRAMES,
    };
}

/* Cover at .. at + bytes by entries that each stay within a frame. */
static unsigned int frame_list(const struct guest_mr *mr, uint64_t at,
                               uint32_t bytes, struct vmri_sge *sge)
{
    unsigned int n = 0;

    while ( bytes )
    {
        uint32_t len = PAGE_SIZE - ((mr->offset + at) & ~PAGE_MASK);

        len = len < bytes ? len : bytes;
        sge[n++] = frame_sge(mr, at, len);
        at += len;
        bytes -= len;
    }
    return n;
}

TEST(transfer_kernel_queues)
{
    struct guest_qp_opts opts = { .kernel = true, .ind_log2 = 6 };
    struct pair p = pair_new(&opts, NULL);
    struct vmri_sge recv[64];
    unsigned int round, n;

    for ( round = 0; round < 100; round++ )
    {
        uint32_t bytes = 1 + (round * 3517) % 100000;
        struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, round, 0, 0, 0);

        fill_pattern(p.ma.mem + round, bytes, round);
        wr.flags |= VMRI_SEND_INDIRECT;
        wr.num_sge = (uint16_t)frame_list(&p.ma, round, bytes, wr.sge);
        n = frame_list(&p.mb, round * 3, bytes, recv);
        qp_recv(p.qb, round + 1, recv, n);
        pair_send(&p, &wr);
        check_completions(&p, &wr, bytes);
        CHECK_EQ(match_pattern(p.mb.mem + round * 3, bytes, round, 0), bytes);
    }
}

TEST(transfer_kernel_frames_are_checked_when_used)
{
    static const enum env_page_kind kinds[] = {
        ENV_PAGE_TABLE, ENV_SPECIAL, ENV_GRANT, ENV_HOLE,
    };
    struct guest_qp_opts opts = { .kernel = true };
    unsigned int i;
    struct pair p = pair_apart(&opts);

    for ( i = 0; i < ARRAY_SIZE(kinds); i++ )
    {
        struct guest_mr pages = mr_pages(p.a, 4096, 0, LAYOUT_RUN);
        struct guest_mr target = mr_pages(p.b, 4096, 0, LAYOUT_RUN);
        struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, i, 0, 0, 0);
        struct vmri_sge recv = frame_sge(&target, 0, 4096);
        struct vmri_cqe cqe;

        /* The receiver's frame. */
        p.qa = guest_qp(p.a, &opts);
        p.qb = guest_qp(p.b, &opts);
        qp_connect(p.qa, p.qb, NULL);
        wr.num_sge = 1;
        wr.sge[0] = frame_sge(&pages, 0, 100);
        env_test_page_kind(p.b->domain, target.gfn, kinds[i]);
        qp_recv(p.qb, 55, &recv, 1);
        pair_send(&p, &wr);
        cqe = cq_expect(p.qb->rcq, 55, VMRI_WC_LOC_PROT_ERR);
        CHECK_EQ(cqe.vendor_err, VMRI_VERR_FRAME);
        cq_expect(p.qa->scq, i, VMRI_WC_REM_OP_ERR);
        CHECK(all_bytes(target.mem, 4096, 0) || kinds[i] == ENV_HOLE);

        /* The sender's own: reading a page table is allowed, not the rest. */
        p.qa = guest_qp(p.a, &opts);
        p.qb = guest_qp(p.b, &opts);
        qp_connect(p.qa, p.qb, NULL);
        env_test_page_kind(p.a->domain, pages.gfn, kinds[i]);
        pair_recv(&p, 56, 0, 100);
        pair_send(&p, &wr);
        if ( kinds[i] == ENV_PAGE_TABLE )
            cq_expect(p.qa->scq, i, 0);
        else
        {
            cqe = cq_expect(p.qa->scq, i, VMRI_WC_LOC_PROT_ERR);
            CHECK_EQ(cqe.vendor_err, VMRI_VERR_FRAME);
        }
    }
}

/* ---- order and rings ---- */

TEST(transfer_many_requests_in_order)
{
    struct pair p = pair_new(NULL, NULL);
    uint64_t posted = 0, done = 0, got = 0, allocs = env_stats.alloc_calls;
    struct vmri_cqe cqe;

    while ( done < 500 )
    {
        while ( posted - done < 16 && posted < 500 )
        {
            struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, posted, posted, 0, 9);

            pair_recv(&p, posted, posted * 9, 9);
            fill_pattern(p.ma.mem + posted, 9, 5);
            qp_post_send(p.qa, &wr);
            posted++;
        }
        qp_ring(p.qa);
        while ( cq_poll(p.qa->scq, &cqe) )
            CHECK_EQ(cqe.wr_id, done++);
        while ( cq_poll(p.qb->rcq, &cqe) )
            CHECK_EQ(cqe.wr_id, got++);
        CHECK_EQ(p.qa->hdr->sq.cons, posted);
        CHECK_EQ(p.qb->hdr->rq.cons, posted);
        CHECK_EQ(p.qa->hdr->sq.running, 0);
    }
    CHECK_EQ(got, 500);
    /* No memory is needed on the path of a message. */
    CHECK_EQ(env_stats.alloc_calls, allocs);
}

TEST(transfer_unsignalled_and_solicited)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 10);
    struct vmri_cqe cqe;

    wr.flags = 0;
    pair_recv(&p, 1, 0, 10);
    cq_arm(p.qb->rcq, VMRI_ARM_SOLICITED);
    pair_send(&p, &wr);
    cq_expect_none(p.qa->scq);
    CHECK_EQ(cq_expect(p.qb->rcq, 1, 0).flags, 0);
    world_settle();
    CHECK_EQ(p.b->events[VMRI_EVENT_COMPLETION], 0);

    wr.flags = VMRI_SEND_SOLICITED;
    pair_recv(&p, 2, 0, 10);
    pair_send(&p, &wr);
    cqe = cq_expect(p.qb->rcq, 2, 0);
    CHECK_EQ(cqe.flags, VMRI_WC_SOLICITED);
    world_settle();
    CHECK_EQ(p.b->events[VMRI_EVENT_COMPLETION], 1);
}

TEST(transfer_counters)
{
    struct pair p = pair_new(NULL, NULL);
    struct vmri_counters a, b;
    struct guest_wr wr;
    unsigned int i;

    for ( i = 0; i < 5; i++ )
    {
        wr = pair_wr(&p, operations[i], i, 0, 0, 1000);
        if ( takes_recv(operations[i]) )
            pair_recv(&p, i, 0, 1000);
        pair_send(&p, &wr);
    }
    guest_counters(p.a, &a);
    guest_counters(p.b, &b);
    CHECK_EQ(a.tx_msgs, 5);
    CHECK_EQ(a.tx_bytes, 4000);
    CHECK_EQ(a.rx_bytes, 1000);
    CHECK_EQ(b.rx_msgs, 5);
    CHECK_EQ(b.rx_bytes, 4000);
    CHECK_EQ(b.tx_bytes, 1000);
    CHECK_EQ(a.completions, 5);
    CHECK_EQ(b.completions, 3);
    CHECK_EQ(a.doorbells, 5);
    CHECK_EQ(b.doorbells, 0);
    CHECK_EQ(a.errors + b.errors + a.flushed + b.flushed + a.rnr + a.retries, 0);

    /* Now a failure, and what is flushed after it. */
    wr = pair_wr(&p, VMRI_WR_SEND, 7, 0, 0, 1000);
    wr.sge[0].lkey = 0;
    pair_recv(&p, 7, 0, 1000);
    qp_post_send(p.qa, &wr);
    pair_send(&p, &wr);
    guest_counters(p.a, &a);
    CHECK_EQ(a.errors, 1);
    CHECK_EQ(a.flushed, 1);
    CHECK_EQ(a.completions, 7);
    CHECK_EQ(a.tx_msgs, 5);
}

/* Slots of a header alone up to the region's last byte: nothing lies behind. */
TEST(transfer_header_slots_at_the_end_of_the_region)
{
    const struct guest_qp_opts opts = { .max_send_sge = CONN_ZERO };
    const struct guest_wr wr = {
        .opcode = VMRI_WR_RDMA_WRITE,
        .flags = VMRI_SEND_INLINE | VMRI_SEND_SIGNALED,
    };
    struct pair p = pair_apart(&opts);
    unsigned int i;

    p.qa = qp_prepare(p.a, &opts);
    CHECK_EQ(p.qa->arg.sq_log2_stride, 6);
    CHECK_EQ(p.qa->pages, 1);
    p.qa->arg.rq_offset = ROUNDUP(256U, 1U << p.qa->arg.rq_log2_stride);
    p.qa->arg.sq_offset = PAGE_SIZE - (64U << p.qa->arg.sq_log2_entries);
    CHECK_EQ(try_qp(p.qa), 0);
    qp_connect(p.qa, p.qb, NULL);

    for ( i = 0; i < 1U << p.qa->arg.sq_log2_entries; i++ )
        qp_post_send(p.qa, &wr);
    qp_ring(p.qa);
    for ( i = 0; i < 1U << p.qa->arg.sq_log2_entries; i++ )
        cq_expect(p.qa->scq, 0, VMRI_WC_SUCCESS);
    cq_expect_none(p.qa->scq);
}

/* Of a receive that is longer than its region only what comes must be there. */
TEST(transfer_receive_longer_than_its_region)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 5000);

    fill_pattern(p.ma.mem, 5000, 3);
    pair_recv(&p, 10, PAIR_BYTES - 5000, 9000);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    cq_expect(p.qb->rcq, 10, 0);
    CHECK_EQ(match_pattern(p.mb.mem + PAIR_BYTES - 5000, 5000, 3, 0), 5000);

    pair_recv(&p, 11, PAIR_BYTES - 4999, 9000);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, VMRI_WC_REM_OP_ERR);
    CHECK_EQ(cq_expect(p.qb->rcq, 11, VMRI_WC_LOC_PROT_ERR).vendor_err,
             VMRI_VERR_BOUNDS);
}
