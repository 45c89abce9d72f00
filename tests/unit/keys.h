/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Windows and fast memory regions as guests use them, and a look from outside
 * at what a key grants.  b of a pair has the keys, a is its peer.
 */
#ifndef VMRI_KEYS_H
#define VMRI_KEYS_H

#include "pair.h"

#define LW      VMRI_ACCESS_LOCAL_WRITE
#define RW      VMRI_ACCESS_REMOTE_WRITE
#define RR      VMRI_ACCESS_REMOTE_READ
#define BIND    VMRI_ACCESS_MW_BIND
#define ZERO    VMRI_ACCESS_ZERO_BASED

/* ---- commands ---- */

static inline long try_mw(struct guest *g, uint32_t pd, uint32_t type,
                          uint32_t *key)
{
    struct vmri_mw_alloc arg = { .pd = pd, .type = type };
    long rc = guest_call(g, VMRI_OP_mw_alloc, &arg, sizeof(arg));

    *key = arg.key;
    return rc;
}

static inline uint32_t mw_new(struct guest *g, uint32_t type)
{
    uint32_t key;

    CHECK_EQ(try_mw(g, g->pd, type, &key), 0);
    return key;
}

static inline long mw_free(struct guest *g, uint32_t key)
{
    struct vmri_object arg = { .handle = key };

    return guest_call(g, VMRI_OP_mw_free, &arg, sizeof(arg));
}

static inline long try_fast(struct guest *g, uint32_t pd, uint32_t frames,
                            uint32_t *key)
{
    struct vmri_mr_alloc arg = { .pd = pd, .max_frames = frames };
    long rc = guest_call(g, VMRI_OP_mr_alloc, &arg, sizeof(arg));

    *key = arg.key;
    return rc;
}

static inline uint32_t fast_new(struct guest *g, uint32_t frames)
{
    uint32_t key;

    CHECK_EQ(try_fast(g, g->pd, frames, &key), 0);
    return key;
}

static inline long fast_free(struct guest *g, uint32_t key)
{
    struct guest_mr m = { .guest = g, .key = key };

    return mr_deregister(&m);
}

/* ---- requests ---- */

/* The next name that its user gives a key. */
static inline uint32_t next_name(uint32_t key)
{
    return (key & ~0xffU) | ((key + 1) & 0xff);
}

static inline struct guest_wr wr_inv(uint32_t key)
{
    return (struct guest_wr){
        .wr_id = 7, .opcode = VMRI_WR_LOCAL_INV, .flags = VMRI_SEND_SIGNALED,
        .imm = key,
    };
}

/* Bind to `length` bytes from byte `at` of an MR, by the next name. */
static inline struct guest_wr wr_bind(uint32_t mw, const struct guest_mr *mr,
                                      uint64_t at, uint64_t length,
                                      uint32_t access)
{
    return (struct guest_wr){
        .wr_id = 7, .opcode = VMRI_WR_BIND_MW, .flags = VMRI_SEND_SIGNALED,
        .raw = true, .wqe.u.bind = {
            .addr = mr->iova + at, .length = length, .mw_key = mw,
            .new_key = next_name(mw), .mr_key = mr->key, .access = access,
        },
    };
}

/*
 * Register the pages of m (which has iova, length and offset), next name.  Their
 * list is in a page of its own.
 */
static inline struct guest_wr wr_reg(uint32_t key, const struct guest_mr *m,
                                     uint32_t access)
{
    uint64_t gfn = env_test_pages(m->guest->domain, 1, true);
    uint64_t *list = (void *)env_test_mem(m->guest->domain, gfn);
    uint32_t i;

    for ( i = 0; i < m->pages && i < VMRI_MAX_FAST_FRAMES; i++ )
        list[i] = m->gfn + i;

    return (struct guest_wr){
        .wr_id = 7, .opcode = VMRI_WR_REG_MR, .flags = VMRI_SEND_SIGNALED,
        .raw = true, .wqe.u.reg = {
            .iova = m->iova, .length = m->length, .key = key,
            .new_key = next_name(key), .access = access, .offset = m->offset,
            .list = gfn << PAGE_SHIFT,
        },
    };
}

static inline void drain(struct guest_cq *cq)
{
    struct vmri_cqe cqe;

    while ( cq_poll(cq, &cqe) )
        ;
}

/* After an error: all as it was but for what was posted. */
static inline void pair_again(struct pair *p)
{
    world_settle();
    qp_set_state(p->qa, VMRI_QPS_RESET);
    qp_set_state(p->qb, VMRI_QPS_RESET);
    drain(p->qa->scq);
    drain(p->qa->rcq);
    drain(p->qb->scq);
    drain(p->qb->rcq);
    qp_connect(p->qa, p->qb, NULL);
}

/* Post a request about a key: 0, or why it was refused. */
static inline uint16_t key_request(struct guest_qp *qp,
                                   const struct guest_wr *wr)
{
    struct vmri_cqe cqe;

    qp_send(qp, wr);
    CHECK(cq_poll(qp->scq, &cqe));
    CHECK_EQ(cqe.wr_id, wr->wr_id);
    CHECK_EQ(cqe.opcode, wr->opcode == VMRI_WR_BIND_MW ? VMRI_WC_OP_BIND_MW :
             wr->opcode == VMRI_WR_REG_MR ? VMRI_WC_OP_REG_MR :
             VMRI_WC_OP_LOCAL_INV);
    CHECK_EQ(cqe.status, cqe.vendor_err ? VMRI_WC_MW_BIND_ERR : 0);
    return cqe.vendor_err;
}

/* The same by b, connected anew afterwards if it failed. */
static inline uint16_t b_request(struct pair *p, struct guest_wr wr)
{
    uint16_t verr = key_request(p->qb, &wr);

    if ( verr )
        pair_again(p);
    return verr;
}

/* What a gets when it writes to, or reads from, there: 0, or why not. */
static inline uint16_t a_access(struct pair *p, unsigned int opcode,
                                uint32_t key, uint64_t addr, uint32_t bytes)
{
    struct guest_wr wr = pair_wr(p, opcode, 9, 0, 0, bytes);
    struct vmri_cqe cqe;

    wr.rkey = key;
    wr.remote_addr = addr;
    pair_send(p, &wr);
    CHECK(cq_poll(p->qa->scq, &cqe));
    CHECK_EQ(cqe.status, cqe.vendor_err ? VMRI_WC_REM_ACCESS_ERR : 0);
    if ( cqe.status )
        pair_again(p);
    return cqe.vendor_err;
}

static inline uint16_t a_writes(struct pair *p, uint32_t key, uint64_t addr,
                                uint32_t bytes)
{
    return a_access(p, VMRI_WR_RDMA_WRITE, key, addr, bytes);
}

static inline uint16_t a_reads(struct pair *p, uint32_t key, uint64_t addr,
                               uint32_t bytes)
{
    return a_access(p, VMRI_WR_RDMA_READ, key, addr, bytes);
}

/* a writes a pattern, which arrives at `where` and nowhere around it. */
static inline void a_pattern(struct pair *p, uint32_t key, uint64_t addr,
                             uint8_t *where, uint32_t bytes)
{
    static uint32_t seed;

    memset(where - 64, 0xa5, bytes + 128);
    fill_pattern(p->ma.mem, bytes, ++seed);
    CHECK_EQ(a_writes(p, key, addr, bytes), 0);
    CHECK_EQ(match_pattern(where, bytes, seed, 0), bytes);
    CHECK(all_bytes(where - 64, 64, 0xa5));
    CHECK(all_bytes(where + bytes, 64, 0xa5));
}

/* A pair of which b may have windows bound to mb. */
static inline struct pair pair_keys(const struct guest_qp_opts *opts)
{
    struct pair p = pair_new(opts, NULL);

    CHECK_EQ(mr_deregister(&p.mb), 0);
    CHECK_EQ(try_mr(p.b, &p.mb, p.b->pd, LW | RW | RR | BIND), 0);
    return p;
}

/* Queues of the guests' kernels. */
static const struct guest_qp_opts kernel_opts = {
    .kernel = true, .ind_log2 = 10,
};

#endif /* VMRI_KEYS_H */
