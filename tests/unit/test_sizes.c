/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sizes that requests may have: none at all, inline up to 512 bytes, up to
 * 32 entries, messages of up to 2^31 bytes; on every type of queue pair.
 */
#include "pair.h"

#define GRH     40U
#define ALL     (VMRI_ACCESS_LOCAL_WRITE | VMRI_ACCESS_REMOTE_WRITE |       \
                 VMRI_ACCESS_REMOTE_READ)

static const struct {
    uint8_t type;
    uint8_t last;               /* operation, from VMRI_WR_RDMA_WRITE */
    uint32_t skip;              /* bytes of a receive before the message */
} types[] = {
    { VMRI_QPT_RC, VMRI_WR_RDMA_READ, 0 },
    { VMRI_QPT_UC, VMRI_WR_SEND_WITH_IMM, 0 },
    { VMRI_QPT_UD, VMRI_WR_SEND_WITH_IMM, GRH },
};

static bool has(unsigned int t, unsigned int op)
{
    return op <= types[t].last && (types[t].type != VMRI_QPT_UD ||
                                   op >= VMRI_WR_SEND);
}

static bool is_send(unsigned int op)
{
    return op == VMRI_WR_SEND || op == VMRI_WR_SEND_WITH_IMM;
}

static struct guest_wr request(struct pair *p, unsigned int t, unsigned int op,
                               uint32_t bytes)
{
    struct guest_wr wr = pair_wr(p, op, 1, 64, 64, bytes);

    if ( types[t].type == VMRI_QPT_UD )
        wr.to = p->qb;
    return wr;
}

/* Both sides are done, and were told of so many bytes. */
static void check_done(struct pair *p, unsigned int t, unsigned int op,
                       uint32_t bytes)
{
    struct vmri_cqe cqe = cq_expect(p->qa->scq, 1, 0);

    if ( is_read(op) )
        CHECK_EQ(cqe.byte_len, bytes);
    if ( takes_recv(op) )
    {
        cqe = cq_expect(p->qb->rcq, 2, 0);
        CHECK_AT(cqe.byte_len, types[t].skip + bytes, "type %u, operation %u",
                 types[t].type, op);
        CHECK_EQ(cqe.imm, has_imm(op) ? 0x01020304 : 0);
    }
    cq_expect_none(p->qa->scq);
    cq_expect_none(p->qb->rcq);
}

/* ---- nothing ---- */

/* Ways of saying nothing. */
static void zero_bytes(struct pair *p, unsigned int t, unsigned int op,
                       unsigned int how)
{
    struct guest_wr wr = request(p, t, op, 0);
    struct vmri_sge sge[3] = { mr_sge(&p->mb, 0, 0), mr_sge(&p->mb, 0, 0) };
    unsigned int num = 0;

    /* Of no bytes no key is looked at, on either side. */
    wr.rkey = 1;
    wr.remote_addr = ~0ULL;
    wr.sge[0].lkey = wr.sge[1].lkey = wr.sge[2].lkey = 1;
    if ( how == 0 )
        wr.num_sge = 0;
    else if ( how == 1 )
        wr.num_sge = 3;
    else if ( !is_read(op) )
    {
        wr.num_sge = 0;
        wr.flags |= VMRI_SEND_INLINE;
    }
    if ( types[t].skip )
        sge[num++] = mr_sge(&p->mb, 8192, types[t].skip);
    else if ( how )
        num = 2;
    if ( takes_recv(op) )
        qp_recv(p->qb, 2, sge, num);
    pair_send(p, &wr);
    check_done(p, t, op, 0);
}

TEST(sizes_zero)
{
    unsigned int t, op, how;
    struct pair p = pair_apart(NULL);

    for ( t = 0; t < ARRAY_SIZE(types); t++ )
    {
        struct guest_qp_opts opts = { .type = types[t].type, .max_inline = 64 };

        p.qa = guest_qp(p.a, &opts);
        p.qb = guest_qp(p.b, &opts);
        qp_connect(p.qa, p.qb, NULL);
        for ( op = 0; op <= VMRI_WR_RDMA_READ; op++ )
            for ( how = 0; has(t, op) && how < 3; how++ )
                zero_bytes(&p, t, op, how);
    }
    CHECK(all_bytes(p.mb.mem, 8192, 0));
}

/* ---- inline data ---- */

TEST(sizes_inline)
{
    static const uint16_t bytes[] = { 1, 7, 8, 64, 220, 511, 512, 513 };
    struct pair p = pair_apart(NULL);
    unsigned int t, op, i;

    CHECK_EQ(p.a->attr.max_inline, 512);
    for ( t = 0; t < ARRAY_SIZE(types); t++ )
    {
        struct guest_qp_opts opts = { .type = types[t].type,
                                      .max_inline = 512 };

        for ( op = 0; op <= VMRI_WR_SEND_WITH_IMM; op++ )
            for ( i = 0; has(t, op) && i < ARRAY_SIZE(bytes); i++ )
            {
                uint32_t n = bytes[i];
                struct guest_wr wr = request(&p, t, op, n);

                p.qa = guest_qp(p.a, &opts);
                p.qb = guest_qp(p.b, &opts);
                qp_connect(p.qa, p.qb, NULL);
                wr.to = types[t].skip ? p.qb : NULL;
                fill_pattern(p.ma.mem, n, n + op);
                memset(p.mb.mem, 0, 2000);
                wr.flags |= VMRI_SEND_INLINE;
                wr.data = p.ma.mem;
                wr.length = n;
                wr.num_sge = 0;
                if ( takes_recv(op) )
                    pair_recv(&p, 2, 64 - types[t].skip,
                              is_send(op) ? types[t].skip + n : 0);
                if ( n > 512 )
                    wr.data = NULL;
                pair_send(&p, &wr);
                if ( n > 512 )
                    cq_expect(p.qa->scq, 1, VMRI_WC_LOC_LEN_ERR);
                else
                {
                    check_done(&p, t, op, n);
                    CHECK_EQ(match_pattern(p.mb.mem + 64, n, n + op, 0), n);
                }
                CHECK(all_bytes(p.mb.mem, 64, 0));
                CHECK(all_bytes(p.mb.mem + 64 + n, 1000, 0));
                CHECK_EQ(qp_destroy(p.qa), 0);
                CHECK_EQ(qp_destroy(p.qb), 0);
            }
    }
}

/* ---- entries ---- */

#define ENTRIES 32
#define PIECE   70U

/* Entry i of a list that begins `skip` bytes before the message. */
static void scatter(const struct guest_mr *mr, struct vmri_sge *sge,
                    uint32_t skip)
{
    unsigned int i;

    for ( i = 0; i < ENTRIES; i++ )
        sge[i] = mr_sge(mr, 5000 + 600 * i, PIECE + (i ? 0 : skip));
}

static uint8_t *piece(const struct guest_mr *mr, unsigned int i, uint32_t skip)
{
    return mr->mem + 5000 + 600 * i + (i ? 0 : skip);
}

static void fill_pieces(const struct guest_mr *mr, uint32_t skip)
{
    unsigned int i;

    for ( i = 0; i < ENTRIES; i++ )
        fill_pattern(piece(mr, i, skip), PIECE, 1000 * i);
}

static void check_pieces(const struct guest_mr *mr, uint32_t skip)
{
    unsigned int i;

    for ( i = 0; i < ENTRIES; i++ )
    {
        CHECK_EQ(match_pattern(piece(mr, i, skip), PIECE, 1000 * i, 0), PIECE);
        CHECK(all_bytes(piece(mr, i, skip) + PIECE, 400, 0));
    }
}

/* In and out of 32 places each, one of which the range of a WRITE or READ is. */
TEST(sizes_entries)
{
    struct pair p = pair_apart(NULL);
    unsigned int t, op, i;

    CHECK_EQ(p.a->attr.max_sge, ENTRIES);
    for ( t = 0; t < ARRAY_SIZE(types); t++ )
    {
        struct guest_qp_opts opts = {
            .type = types[t].type, .max_send_sge = ENTRIES,
            .max_recv_sge = ENTRIES,
        };

        p.qa = guest_qp(p.a, &opts);
        p.qb = guest_qp(p.b, &opts);
        qp_connect(p.qa, p.qb, NULL);
        for ( op = 0; op <= VMRI_WR_RDMA_READ; op++ )
        {
            struct guest_wr wr = request(&p, t, op, 0);
            struct vmri_sge recv[ENTRIES];

            if ( !has(t, op) )
                continue;
            memset(p.ma.mem, 0, 30000);
            memset(p.mb.mem, 0, 30000);
            scatter(&p.ma, wr.sge, 0);
            scatter(&p.mb, recv, types[t].skip);
            wr.num_sge = ENTRIES;
            if ( !is_read(op) )
                fill_pieces(&p.ma, 0);
            else
                for ( i = 0; i < ENTRIES; i++ )
                    fill_pattern(p.mb.mem + 64 + PIECE * i, PIECE, 1000 * i);
            if ( takes_recv(op) )
                qp_recv(p.qb, 2, recv, ENTRIES);
            pair_send(&p, &wr);
            check_done(&p, t, op, ENTRIES * PIECE);
            if ( is_read(op) )
                check_pieces(&p.ma, 0);
            else if ( is_send(op) )
                check_pieces(&p.mb, types[t].skip);
            else
                for ( i = 0; i < ENTRIES; i++ )
                    CHECK_EQ(match_pattern(p.mb.mem + 64 + PIECE * i, PIECE,
                                           1000 * i, 0), PIECE);
        }
    }
}

/* ---- the longest message ---- */

#define MESSAGE (1U << 31)
#define RUN     256U            /* frames that follow each other */

/* A region of 2^31 bytes, the same MiB again and again. */
static struct guest_mr long_mr(struct guest *g)
{
    const uint32_t pages = MESSAGE >> PAGE_SHIFT;
    uint64_t *list = calloc(pages, sizeof(*list));
    struct guest_mr mr = mr_pages(g, RUN * PAGE_SIZE, 0, LAYOUT_RUN);
    struct vmri_mr_register arg = {
        .frames = { .gfns = (uintptr_t)list, .nr = pages },
        .iova = mr.iova, .length = MESSAGE, .pd = g->pd, .access = ALL,
    };
    struct vmri_ctl_limits limits = {
        .domid = env_domid(g->domain), .mask = 1U << VMRI_RES_PINNED,
        .limit.n[VMRI_RES_PINNED] = 2 * pages,
    };
    uint32_t i;

    CHECK_EQ(dom0_call(VMRI_OP_ctl_limits, &limits, sizeof(limits)), 0);
    for ( i = 0; i < pages; i++ )
        list[i] = mr.gfn + i % RUN;
    env_test_expose(list, pages * sizeof(*list));
    CHECK_EQ(guest_call(g, VMRI_OP_mr_register, &arg, sizeof(arg)), 0);
    env_test_hide();
    free(list);
    mr.key = arg.key;
    return mr;
}

static void send_longest(struct pair *p, unsigned int t, unsigned int op)
{
    struct guest_qp_opts opts = {
        .type = types[t].type, .max_send_sge = ENTRIES, .max_recv_sge = ENTRIES,
    };
    const uint32_t part = MESSAGE / ENTRIES;
    struct guest_wr wr = request(p, t, op, 0);
    struct vmri_sge recv[ENTRIES];
    uint64_t copied = env_stats.copied;
    unsigned int i;

    p->qa = guest_qp(p->a, &opts);
    p->qb = guest_qp(p->b, &opts);
    qp_connect(p->qa, p->qb, NULL);
    for ( i = 0; i < ENTRIES; i++ )
    {
        wr.sge[i] = mr_sge(&p->ma, (uint64_t)part * i, part);
        recv[i] = mr_sge(&p->mb, (uint64_t)part * i, part);
    }
    wr.num_sge = ENTRIES;
    wr.remote_addr = p->mb.iova;
    wr.length = MESSAGE;
    if ( takes_recv(op) )
        qp_recv(p->qb, 2, recv, is_send(op) ? ENTRIES : 0);
    pair_send(p, &wr);
    check_done(p, t, op, MESSAGE);
    CHECK_EQ(env_stats.copied - copied, MESSAGE);
}

static void longest(unsigned int t, unsigned int op)
{
    struct pair p = pair_apart(NULL);
    uint32_t bytes = RUN * PAGE_SIZE;

    env_test_one_frame(false);
    CHECK_EQ(mr_deregister(&p.ma), 0);
    CHECK_EQ(mr_deregister(&p.mb), 0);
    p.ma = long_mr(p.a);
    p.mb = long_mr(p.b);
    fill_pattern(is_read(op) ? p.mb.mem : p.ma.mem, bytes, op);
    send_longest(&p, t, op);
    CHECK_EQ(match_pattern(is_read(op) ? p.ma.mem : p.mb.mem, bytes, op, 0),
             bytes);
}

TEST(sizes_longest_send) { longest(0, VMRI_WR_SEND); }
TEST(sizes_longest_read) { longest(0, VMRI_WR_RDMA_READ); }
TEST(sizes_longest_write_with_imm) { longest(1, VMRI_WR_RDMA_WRITE_WITH_IMM); }
