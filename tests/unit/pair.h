/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two guests with a queue pair each, connected, and memory to send from and to:
 * what most tests of the engine start with.
 */
#ifndef VMRI_PAIR_H
#define VMRI_PAIR_H

#include "guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIR_BYTES  (1U << 20)

struct pair {
    struct guest *a, *b;            /* a sends */
    struct guest_qp *qa, *qb;
    struct guest_mr ma, mb;         /* all rights but atomic */
};

/* Queue pairs as opts says (NULL: RC), not connected yet. */
static inline struct pair pair_apart(const struct guest_qp_opts *opts)
{
    const uint32_t access = VMRI_ACCESS_LOCAL_WRITE | VMRI_ACCESS_REMOTE_WRITE |
                            VMRI_ACCESS_REMOTE_READ;
    struct pair p = { .a = guest_new(1), .b = guest_new(2) };

    p.qa = guest_qp(p.a, opts);
    p.qb = guest_qp(p.b, opts);
    p.ma = guest_mr(p.a, PAIR_BYTES, 100, LAYOUT_SCATTERED, access);
    p.mb = guest_mr(p.b, PAIR_BYTES, 3000, LAYOUT_SCATTERED, access);
    return p;
}

static inline struct pair pair_new(const struct guest_qp_opts *opts,
                                   const struct guest_conn *conn)
{
    struct pair p = pair_apart(opts);

    qp_connect(p.qa, p.qb, conn);
    return p;
}

static inline bool is_read(unsigned int opcode)
{
    return opcode == VMRI_WR_RDMA_READ;
}

static inline bool has_imm(unsigned int opcode)
{
    return opcode == VMRI_WR_SEND_WITH_IMM ||
           opcode == VMRI_WR_RDMA_WRITE_WITH_IMM;
}

/* A receive of the peer completes. */
static inline bool takes_recv(unsigned int opcode)
{
    return opcode != VMRI_WR_RDMA_WRITE && opcode != VMRI_WR_RDMA_READ;
}

/* A signalled request of a to b, from `from` in ma to `to` in mb (READ: back). */
static inline struct guest_wr pair_wr(const struct pair *p, unsigned int opcode,
                                      uint64_t wr_id, uint64_t from,
                                      uint64_t to, uint32_t bytes)
{
    return (struct guest_wr){
        .wr_id = wr_id, .opcode = (uint8_t)opcode,
        .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&p->ma, from, bytes) },
        .remote_addr = p->mb.iova + to, .rkey = p->mb.key,
        .imm = 0x01020304,
    };
}

/* b receives into `to` of mb. */
static inline void pair_recv(struct pair *p, uint64_t wr_id, uint64_t to,
                             uint32_t bytes)
{
    struct vmri_sge sge = mr_sge(&p->mb, to, bytes);

    qp_recv(p->qb, wr_id, &sge, 1);
}

static inline void pair_send(struct pair *p, const struct guest_wr *wr)
{
    qp_send(p->qa, wr);
}

#endif /* VMRI_PAIR_H */
