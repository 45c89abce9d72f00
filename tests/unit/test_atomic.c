/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * atomic.c: compare and swap, fetch and add, ATOMIC_WRITE, FLUSH: what they do,
 * to whom, and that what cannot be told of has not happened.
 */
#include "pair.h"

#include <pthread.h>

#define ALL     (VMRI_ACCESS_LOCAL_WRITE | VMRI_ACCESS_REMOTE_WRITE |       \
                 VMRI_ACCESS_REMOTE_READ | VMRI_ACCESS_REMOTE_ATOMIC |      \
                 VMRI_ACCESS_FLUSH_GLOBAL)
#define CAS     VMRI_WR_ATOMIC_CMP_AND_SWP
#define FAA     VMRI_WR_ATOMIC_FETCH_AND_ADD
#define STORE   VMRI_WR_ATOMIC_WRITE
#define FLUSH   VMRI_WR_FLUSH

/* A pair whose memory grants everything; eight bytes of b's are eight bytes. */
static struct pair atomic_pair(const struct guest_qp_opts *opts)
{
    struct pair p = pair_new(opts, NULL);

    CHECK_EQ(mr_deregister(&p.mb), 0);
    p.mb = guest_mr(p.b, PAIR_BYTES, 3000, LAYOUT_SCATTERED, ALL);
    return p;
}

/* Of a to byte `to` of b's memory, with the old value to byte `from` of a's. */
static struct guest_wr atomic_wr(const struct pair *p, unsigned int opcode,
                                 uint64_t from, uint64_t to)
{
    struct guest_wr wr = pair_wr(p, opcode, 1, from, to, 8);

    if ( opcode == STORE || opcode == FLUSH )
    {
        wr.num_sge = 0;
        wr.length = 8;
    }
    wr.flush_type = VMRI_FLUSH_GLOBAL;
    return wr;
}

static uint64_t peek(const struct guest_mr *mr, uint64_t at)
{
    uint64_t v;

    memcpy(&v, mr->mem + at, sizeof(v));
    return v;
}

static void poke(const struct guest_mr *mr, uint64_t at, uint64_t v)
{
    memcpy(mr->mem + at, &v, sizeof(v));
}

#define BIG 0x8877665544332211ULL

static const struct {
    unsigned int opcode;
    uint64_t there, compare_add, swap, after;
} sums[] = {
    { CAS, 5, 5, 9, 9 },
    { CAS, 5, 6, 9, 5 },
    { CAS, BIG, BIG, ~BIG, ~BIG },
    { CAS, BIG, BIG ^ 1ULL << 63, 1, BIG },
    { CAS, 0, 0, 0, 0 },
    { FAA, 5, 6, 77, 11 },
    { FAA, ~0ULL, 1, 0, 0 },
    { FAA, 0xffffffffULL, 1, 0, 0x100000000ULL },
    { FAA, BIG, 0, 0, BIG },
    { FAA, 7, -8ULL, 0, -1ULL },
};

TEST(atomic_values)
{
    struct pair p = atomic_pair(NULL);
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(sums); i++ )
    {
        uint64_t from = i * 50 + i, to = i * 4096 + 8 * i;
        struct guest_wr wr = atomic_wr(&p, sums[i].opcode, from, to);
        struct vmri_cqe cqe;

        memset(p.ma.mem + from, 0x5a, 24);
        memset(p.mb.mem + to, 0xa5, 24);
        poke(&p.mb, to + 8, sums[i].there);
        wr.remote_addr += 8;
        wr.sge[0].addr += 8;
        wr.compare_add = sums[i].compare_add;
        wr.swap = sums[i].swap;
        pair_send(&p, &wr);
        cqe = cq_expect(p.qa->scq, 1, 0);
        CHECK_EQ(cqe.opcode, wr.opcode == CAS ? VMRI_WC_OP_COMP_SWAP
                                              : VMRI_WC_OP_FETCH_ADD);
        CHECK_EQ(cqe.byte_len, 8);
        CHECK_AT(peek(&p.ma, from + 8), sums[i].there, "case %u", i);
        CHECK_AT(peek(&p.mb, to + 8), sums[i].after, "case %u", i);
        CHECK(all_bytes(p.ma.mem + from, 8, 0x5a));
        CHECK(all_bytes(p.ma.mem + from + 16, 8, 0x5a));
        CHECK(all_bytes(p.mb.mem + to, 8, 0xa5));
        CHECK(all_bytes(p.mb.mem + to + 16, 8, 0xa5));
    }
    cq_expect_none(p.qb->rcq);
    CHECK(env_test_page_dirty(p.b->domain, p.mb.gfn));
}

/* The old value may go anywhere, in up to eight pieces, over pages' borders. */
static void check_pieces(struct pair *p, struct guest_wr *wr)
{
    static uint64_t value = BIG;
    uint8_t bytes[16] = { 0 };
    uint32_t done = 0, n;
    unsigned int i;

    poke(&p->mb, 0, ++value);
    wr->compare_add = 1;
    pair_send(p, wr);
    cq_expect(p->qa->scq, 1, 0);
    CHECK_EQ(peek(&p->mb, 0), value + 1);
    for ( i = 0; i < wr->num_sge && done < 8; i++ )
    {
        n = wr->sge[i].length < 8 - done ? wr->sge[i].length : 8 - done;
        memcpy(bytes + done, p->ma.mem + (wr->sge[i].addr - p->ma.iova), n);
        done += n;
    }
    CHECK_EQ(done, 8);
    CHECK_EQ(memcmp(bytes, &value, 8), 0);
}

TEST(atomic_result_in_pieces)
{
    struct guest_qp_opts opts = { .max_send_sge = 12 };
    struct pair p = atomic_pair(&opts);
    struct guest_wr wr = atomic_wr(&p, FAA, 0, 0);
    unsigned int at, i;

    for ( at = 3980; at < 4000; at++ )
    {
        wr.sge[0] = mr_sge(&p.ma, at, 8);
        check_pieces(&p, &wr);
    }
    wr.num_sge = 8;
    for ( i = 0; i < 8; i++ )
        wr.sge[i] = mr_sge(&p.ma, 3996 - 100 * i, 1);
    check_pieces(&p, &wr);
    wr.num_sge = 12;
    for ( i = 0; i < 12; i++ )
        wr.sge[i] = mr_sge(&p.ma, 3994 + 100 * i, i % 3 == 1 ? 3 : 0);
    wr.length = 8;
    check_pieces(&p, &wr);
    wr.num_sge = 2;
    wr.sge[0] = mr_sge(&p.ma, 3992, 5);
    wr.sge[1] = mr_sge(&p.ma, 5, 500);
    wr.length = 8;
    check_pieces(&p, &wr);
}

/* A kernel's queue names frames for the result. */
TEST(atomic_result_in_frames)
{
    struct guest_qp_opts opts = { .kernel = true, .ind_log2 = 4 };
    struct pair p = atomic_pair(&opts);
    struct guest_wr wr = atomic_wr(&p, FAA, 0, 16);
    unsigned int i;

    poke(&p.mb, 16, BIG);
    wr.compare_add = 1;
    wr.flags |= VMRI_SEND_INDIRECT;
    wr.num_sge = 2;
    for ( i = 0; i < 2; i++ )
        wr.sge[i] = (struct vmri_sge){
            .addr = ((p.ma.gfn + i) << PAGE_SHIFT) + (i ? 0 : 4093),
            .length = i ? 5 : 3, .lkey = VMRI_LKEY_FRAMES,
        };
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(peek(&p.ma, 4093 - 100), BIG);
    CHECK_EQ(peek(&p.mb, 16), BIG + 1);
}

/* ---- what cannot be told of has not happened ---- */

static void no_key(struct pair *p, struct vmri_sge *sge)
{
    (void)p;
    sge->lkey = 0;
}

static void read_only(struct pair *p, struct vmri_sge *sge)
{
    struct guest_mr ro = guest_mr(p->a, 4096, 0, LAYOUT_RUN, 0);

    *sge = mr_sge(&ro, 0, sge->length);
}

static void out_of_bounds(struct pair *p, struct vmri_sge *sge)
{
    sge->addr = p->ma.iova + PAIR_BYTES - sge->length + 1;
}

TEST(atomic_without_place_for_the_result)
{
    static const struct {
        void (*spoil)(struct pair *p, struct vmri_sge *sge);
        uint16_t verr;
    } bad[] = {
        { no_key, VMRI_VERR_KEY }, { read_only, VMRI_VERR_RIGHTS },
        { out_of_bounds, VMRI_VERR_BOUNDS },
    };
    struct pair p = atomic_pair(NULL);
    unsigned int i, which;

    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
        for ( which = 0; which < 3; which++ )
        {
            struct guest_wr wr = atomic_wr(&p, which & 1 ? CAS : FAA, 0, 0);

            p.qa = guest_qp(p.a, NULL);
            p.qb = guest_qp(p.b, NULL);
            qp_connect(p.qa, p.qb, NULL);
            poke(&p.mb, 0, 5);
            poke(&p.ma, 0, 1234);
            wr.compare_add = 5;
            wr.num_sge = 3;
            wr.sge[0] = mr_sge(&p.ma, 0, 3);
            wr.sge[1] = mr_sge(&p.ma, 3, 3);
            wr.sge[2] = mr_sge(&p.ma, 6, 2);
            bad[i].spoil(&p, &wr.sge[which]);
            pair_send(&p, &wr);
            CHECK_EQ(cq_expect(p.qa->scq, 1, VMRI_WC_LOC_PROT_ERR).vendor_err,
                     bad[i].verr);
            CHECK_EQ(peek(&p.mb, 0), 5);
            CHECK_EQ(peek(&p.ma, 0), 1234);
            CHECK_EQ(qp_state(p.qb), VMRI_QPS_RTS);
        }
}

/* ---- alignment ---- */

static void check_misaligned(struct pair *p, unsigned int opcode,
                             struct guest_wr *wr)
{
    unsigned int type;

    p->qa = guest_qp(p->a, NULL);
    p->qb = guest_qp(p->b, NULL);
    qp_connect(p->qa, p->qb, NULL);
    memset(p->b->events, 0, sizeof(p->b->events));
    memset(p->mb.mem, 3, 64);
    wr->compare_add = 0x0303030303030303ULL;
    pair_send(p, wr);
    CHECK_EQ(cq_expect(p->qa->scq, 1, VMRI_WC_REM_INV_REQ_ERR).vendor_err,
             VMRI_VERR_ALIGN);
    CHECK_AT(all_bytes(p->mb.mem, 64, 3), 1, "opcode %u", opcode);
    CHECK_EQ(qp_state(p->qa), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(p->qb), VMRI_QPS_ERR);
    world_settle();
    for ( type = VMRI_EVENT_CQ_ERR; type < 32; type++ )
        CHECK_EQ(p->b->events[type], type == VMRI_EVENT_QP_REQ_ERR);
    CHECK_EQ(qp_destroy(p->qa), 0);
    CHECK_EQ(qp_destroy(p->qb), 0);
}

TEST(atomic_misaligned)
{
    static const unsigned int opcodes[] = { CAS, FAA, STORE };
    struct pair p = atomic_pair(NULL);
    struct guest_mr odd = mr_pages(p.b, 4096, 4, LAYOUT_RUN);
    struct guest_wr wr;
    unsigned int i, by;

    odd.iova -= 4;
    CHECK_EQ(try_mr(p.b, &odd, p.b->pd, ALL), 0);
    for ( i = 0; i < ARRAY_SIZE(opcodes); i++ )
    {
        for ( by = 1; by < 8; by++ )
        {
            wr = atomic_wr(&p, opcodes[i], 0, by);
            check_misaligned(&p, opcodes[i], &wr);
        }
        /* An aligned address of memory that is not. */
        wr = atomic_wr(&p, opcodes[i], 0, 0);
        wr.rkey = odd.key;
        wr.remote_addr = odd.iova;
        check_misaligned(&p, opcodes[i], &wr);
        CHECK(all_bytes(odd.mem, 64, 0));
    }
}

/* ---- atomicity ---- */

#define ROUNDS  10000
#define SENDERS 2

struct adder {
    pthread_t thread;
    struct guest_qp *qp;
    struct guest_wr wr;
    uint64_t sum;               /* of what was added */
};

static unsigned int adding;     /* atomic: adders at work */

static void *add_all(void *data)
{
    struct adder *a = data;
    struct vmri_cqe cqe;
    unsigned int i;

    for ( i = 0; i < ROUNDS; i++ )
    {
        a->wr.compare_add = i;
        a->sum += i;
        qp_send(a->qp, &a->wr);
        while ( !cq_poll(a->qp->scq, &cqe) )
            ;
        CHECK_EQ(cqe.status, 0);
    }
    (void)env_fetch_sub(&adding, 1);
    return NULL;
}

/* Two guests and the owner's CPU at the same eight bytes: no addition is lost. */
THREAD_TEST(atomic_against_others_and_the_owner)
{
    struct guest *owner = guest_new(1);
    struct guest_mr target = guest_mr(owner, 4096, 0, LAYOUT_RUN, ALL);
    uint64_t *word = (uint64_t *)target.mem, sum = 0, old;
    static struct adder adders[SENDERS];
    unsigned int i;

    for ( i = 0; i < SENDERS; i++ )
    {
        struct adder *a = &adders[i];
        struct guest *g = guest_new(2 + i);
        struct guest_mr place = guest_mr(g, 4096, 0, LAYOUT_RUN, ALL);

        a->qp = guest_qp(g, NULL);
        qp_connect(a->qp, guest_qp(owner, NULL), NULL);
        a->wr = (struct guest_wr){
            .opcode = FAA, .flags = VMRI_SEND_SIGNALED, .num_sge = 1,
            .sge = { mr_sge(&place, 0, 8) },
            .remote_addr = target.iova, .rkey = target.key,
        };
    }
    adding = SENDERS;
    for ( i = 0; i < SENDERS; i++ )
        pthread_create(&adders[i].thread, NULL, add_all, &adders[i]);
    while ( env_load(&adding) )
    {
        old = env_load(word);
        while ( !env_cmpxchg(word, &old, old + 3) )
            ;
        sum += 3;
    }
    for ( i = 0; i < SENDERS; i++ )
    {
        pthread_join(adders[i].thread, NULL);
        sum += adders[i].sum;
    }
    CHECK_EQ(*word, sum);
}

/* ---- ATOMIC_WRITE and FLUSH ---- */

TEST(atomic_write)
{
    struct pair p = atomic_pair(NULL);
    struct guest_wr wr = atomic_wr(&p, STORE, 0, 4096 * 3 + 16);
    uint64_t gfn = p.mb.gfn + (3000 + 4096 * 3 + 16) / 4096;
    unsigned int dirty = env_test_page_dirty(p.b->domain, gfn);
    struct vmri_cqe cqe;

    memset(p.mb.mem + 4096 * 3, 0x77, 40);
    wr.compare_add = BIG;
    pair_send(&p, &wr);
    cqe = cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(cqe.opcode, VMRI_WC_OP_ATOMIC_WRITE);
    CHECK_EQ(peek(&p.mb, 4096 * 3 + 16), BIG);
    CHECK(all_bytes(p.mb.mem + 4096 * 3, 16, 0x77));
    CHECK(all_bytes(p.mb.mem + 4096 * 3 + 24, 16, 0x77));
    CHECK_EQ(env_test_page_dirty(p.b->domain, gfn), dirty + 1);
}

TEST(atomic_flush)
{
    struct pair p = atomic_pair(NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 2, 0, 64, 100);
    struct vmri_counters before, after;
    struct vmri_cqe cqe;
    unsigned int i;

    static const struct {
        uint32_t level, length;
        uint64_t at;
    } ranges[] = {
        { VMRI_FLUSH_LEVEL_RANGE, 100, 64 },
        { VMRI_FLUSH_LEVEL_RANGE, PAIR_BYTES, 0 },
        { VMRI_FLUSH_LEVEL_RANGE, 0, PAIR_BYTES },
        /* All of the region: no address is looked at. */
        { VMRI_FLUSH_LEVEL_MR, 0, 0 },
        { VMRI_FLUSH_LEVEL_MR, 1U << 31, 1ULL << 60 },
    };

    fill_pattern(p.ma.mem, 100, 3);
    qp_post_send(p.qa, &wr);
    for ( i = 0; i < ARRAY_SIZE(ranges); i++ )
    {
        wr = atomic_wr(&p, FLUSH, 0, ranges[i].at);
        wr.length = ranges[i].length;
        wr.flush_level = ranges[i].level;
        qp_post_send(p.qa, &wr);
    }
    guest_counters(p.b, &before);
    qp_ring(p.qa);
    cq_expect(p.qa->scq, 2, 0);
    for ( i = 0; i < ARRAY_SIZE(ranges); i++ )
    {
        cqe = cq_expect(p.qa->scq, 1, 0);
        CHECK_EQ(cqe.opcode, VMRI_WC_OP_FLUSH);
    }
    CHECK_EQ(match_pattern(p.mb.mem + 64, 100, 3, 0), 100);
    guest_counters(p.b, &after);
    CHECK_EQ(after.rx_bytes - before.rx_bytes, 100);
    CHECK_EQ(after.rx_msgs - before.rx_msgs, 1 + ARRAY_SIZE(ranges));
}
