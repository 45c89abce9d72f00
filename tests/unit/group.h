/* SPDX-License-Identifier: GPL-2.0-only */
/* Guests' multicast groups, for tests. */
#ifndef VMRI_TEST_GROUP_H
#define VMRI_TEST_GROUP_H

#include "pair.h"

/* An MGID that ends in n. */
static inline struct vmri_mcg group_arg(uint32_t n, uint16_t mlid)
{
    struct vmri_mcg arg = {
        .mgid = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = (uint8_t)(n >> 24),
                  (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n },
        .mlid = mlid,
        .join = VMRI_JOIN_FULL,
    };

    return arg;
}

/* The same with attributes, to be created. */
static inline struct vmri_mcg group_new_arg(uint32_t n, uint16_t mlid)
{
    struct vmri_mcg arg = group_arg(n, mlid);

    arg.create = 1;
    arg.pkey = 0xffff;
    arg.qkey = 0x0b1b;
    arg.mtu = 5;
    arg.rate = 3;
    return arg;
}

static inline long group_join(struct guest *g, struct vmri_mcg *arg)
{
    return guest_call(g, VMRI_OP_mcg_create, arg, sizeof(*arg));
}

static inline long group_leave(struct guest *g, struct vmri_mcg *arg)
{
    return guest_call(g, VMRI_OP_mcg_destroy, arg, sizeof(*arg));
}

static inline long group_qp(struct guest_qp *qp, unsigned int cmd, uint32_t n,
                            uint16_t mlid)
{
    struct vmri_mcg group = group_arg(n, mlid);
    struct vmri_mcg_qp arg = { .mlid = mlid, .qpn = qp->qpn };

    memcpy(arg.mgid, group.mgid, sizeof(arg.mgid));
    return guest_call(qp->guest, cmd, &arg, sizeof(arg));
}

static inline long group_attach(struct guest_qp *qp, uint32_t n, uint16_t mlid)
{
    return group_qp(qp, VMRI_OP_mcg_attach, n, mlid);
}

static inline long group_detach(struct guest_qp *qp, uint32_t n, uint16_t mlid)
{
    return group_qp(qp, VMRI_OP_mcg_detach, n, mlid);
}

/* Post a send to a group, as the last request of qp; not rung for. */
static inline struct vmri_send_wqe *group_post(struct guest_qp *qp,
                                               const struct guest_wr *wr,
                                               uint32_t n, uint16_t mlid)
{
    struct vmri_mcg group = group_arg(n, mlid);
    struct vmri_send_wqe *wqe;
    uint32_t slot = qp->prod_s & ((1U << qp->arg.sq_log2_entries) - 1);

    qp_post_send(qp, wr);
    wqe = (void *)(qp->mem + qp->arg.sq_offset +
                   ((size_t)slot << qp->arg.sq_log2_stride));
    wqe->u.ud.av = (struct vmri_av){ .dlid = mlid, .flags = VMRI_AV_GRH };
    memcpy(wqe->u.ud.av.dgid, group.mgid, sizeof(group.mgid));
    wqe->u.ud.remote_qpn = VMRI_QPN_MULTICAST;
    wqe->u.ud.remote_qkey = wr->qkey ? wr->qkey : 0x11111111;
    return wqe;
}

static inline void group_send(struct guest_qp *qp, const struct guest_wr *wr,
                              uint32_t n, uint16_t mlid)
{
    group_post(qp, wr, n, mlid);
    qp_ring(qp);
}

#endif /* VMRI_TEST_GROUP_H */
