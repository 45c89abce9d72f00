/* SPDX-License-Identifier: GPL-2.0-only */
/* Guests' queue pairs: create, connect, post, ring. */
#include "guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QP_CALLS    100000      /* of schedule, in one go */

static uint16_t or_default(unsigned int value, unsigned int otherwise)
{
    if ( value == CONN_ZERO )
        return 0;
    return (uint16_t)(value ? value : otherwise);
}

static uint8_t log2_at_least(uint32_t bytes, uint8_t log2)
{
    while ( 1U << log2 < bytes )
        log2++;
    return log2;
}

/* ---- create ---- */

struct guest_qp *qp_prepare(struct guest *g, const struct guest_qp_opts *opts)
{
    struct guest_qp *qp = calloc(1, sizeof(*qp));
    struct vmri_qp_create *a = &qp->arg;
    uint32_t sge = or_default(opts->max_send_sge, 4), bytes;

    qp->guest = g;
    qp->srq = opts->srq;
    if ( opts->type != VMRI_QPT_XRC_TGT )
        qp->scq = opts->scq ? opts->scq : guest_cq(g, 6);
    if ( opts->type != VMRI_QPT_XRC_TGT && opts->type != VMRI_QPT_XRC_INI )
        qp->rcq = opts->rcq ? opts->rcq
                            : opts->scq ? opts->scq : guest_cq(g, 6);

    *a = (struct vmri_qp_create){
        .pd = opts->pd ? opts->pd : g->pd,
        .send_cq = qp->scq ? qp->scq->handle : 0,
        .recv_cq = qp->rcq ? qp->rcq->handle : 0,
        .srq = qp->srq ? qp->srq->handle : 0, .xrcd = opts->xrcd,
        .eq = g->eq[0]->handle,
        .type = opts->type ? opts->type : VMRI_QPT_RC,
        .flags = opts->kernel ? VMRI_QPF_KERNEL : 0,
        .qpn = opts->qpn,
    };
    if ( !qp->scq )
        return qp;

    a->sq_log2_entries = or_default(opts->sq_log2, 4);
    a->max_send_sge = (uint8_t)sge;
    a->max_inline = opts->max_inline;
    a->ind_log2_entries = opts->ind_log2;
    bytes = 64 + (16 * sge > a->max_inline ? 16 * sge : a->max_inline);
    a->sq_log2_stride = log2_at_least(bytes, 6);

    /* Queues one after the other, each on a multiple of its stride. */
    a->sq_offset = ROUNDUP(256U, 1U << a->sq_log2_stride);
    bytes = a->sq_offset + (1U << (a->sq_log2_entries + a->sq_log2_stride));
    if ( qp->rcq && !qp->srq )
    {
        a->rq_log2_entries = or_default(opts->rq_log2, 4);
        a->max_recv_sge = or_default(opts->max_recv_sge, 4);
        a->rq_log2_stride = log2_at_least(16 + 16U * a->max_recv_sge, 5);
        a->rq_offset = ROUNDUP(bytes, 1U << a->rq_log2_stride);
        bytes = a->rq_offset + (1U << (a->rq_log2_entries + a->rq_log2_stride));
    }
    if ( opts->ind_log2 )
    {
        a->ind_offset = ROUNDUP(bytes, 16U);
        bytes = a->ind_offset + (16U << opts->ind_log2);
    }

    qp->pages = (uint32_t)PFN_UP((uint64_t)bytes);
    qp->gfn = env_test_pages(g->domain, qp->pages, true);
    qp->mem = env_test_mem(g->domain, qp->gfn);
    qp->hdr = (struct vmri_qp_hdr *)qp->mem;
    return qp;
}

long try_qp(struct guest_qp *qp)
{
    uint64_t *list = calloc(qp->pages, sizeof(*list));
    long rc;

    if ( qp->pages )
        guest_frames(&qp->arg.frames, list, qp->gfn, qp->pages);
    env_test_expose(list, qp->pages * sizeof(*list));
    rc = guest_call(qp->guest, VMRI_OP_qp_create, &qp->arg, sizeof(qp->arg));
    env_test_hide();
    free(list);
    qp->qpn = qp->arg.qpn;
    return rc;
}

struct guest_qp *guest_qp(struct guest *g, const struct guest_qp_opts *opts)
{
    static const struct guest_qp_opts none;
    struct guest_qp *qp = qp_prepare(g, opts ? opts : &none);

    CHECK_EQ(try_qp(qp), 0);
    return qp;
}

long qp_destroy(struct guest_qp *qp)
{
    struct vmri_object arg = { .handle = qp->qpn };

    return guest_call(qp->guest, VMRI_OP_qp_destroy, &arg, sizeof(arg));
}

/* ---- states ---- */

long qp_modify(struct guest_qp *qp, struct vmri_qp_modify *arg)
{
    arg->qpn = qp->qpn;
    return guest_call(qp->guest, VMRI_OP_qp_modify, arg, sizeof(*arg));
}

long qp_query(struct guest_qp *qp, struct vmri_qp_modify *arg)
{
    *arg = (struct vmri_qp_modify){ .qpn = qp->qpn };
    return guest_call(qp->guest, VMRI_OP_qp_query, arg, sizeof(*arg));
}

unsigned int qp_state(struct guest_qp *qp)
{
    struct vmri_qp_modify arg;

    CHECK_EQ(qp_query(qp, &arg), 0);
    return arg.state;
}

static bool is_connected(const struct guest_qp *qp)
{
    return qp->arg.type == VMRI_QPT_RC || qp->arg.type == VMRI_QPT_UC ||
           qp->arg.type == VMRI_QPT_XRC_INI || qp->arg.type == VMRI_QPT_XRC_TGT;
}

static bool is_requester(const struct guest_qp *qp)
{
    return qp->arg.type == VMRI_QPT_RC || qp->arg.type == VMRI_QPT_XRC_INI;
}

static bool is_responder(const struct guest_qp *qp)
{
    return qp->arg.type == VMRI_QPT_RC || qp->arg.type == VMRI_QPT_XRC_TGT;
}

static void attr_init(struct guest_qp *qp, const struct guest_conn *conn,
                      struct vmri_qp_modify *arg)
{
    arg->mask |= VMRI_QPA_PKEY_INDEX;
    if ( qp->arg.type >= VMRI_QPT_RC )
        arg->mask |= VMRI_QPA_PORT;
    arg->port = 1;
    arg->pkey_index = conn->pkey_index;
    if ( is_connected(qp) )
    {
        arg->mask |= VMRI_QPA_ACCESS_FLAGS;
        arg->access_flags = or_default(conn->access, VMRI_ACCESS_QP);
    }
    else
    {
        arg->mask |= VMRI_QPA_QKEY;
        arg->qkey = 0x11111111;
    }
}

static void attr_rtr(struct guest_qp *qp, struct guest_qp *peer,
                     const struct guest_conn *conn, struct vmri_qp_modify *arg)
{
    if ( !is_connected(qp) )
        return;
    arg->mask |= VMRI_QPA_AV | VMRI_QPA_PATH_MTU | VMRI_QPA_DEST_QPN |
                 VMRI_QPA_RQ_PSN;
    if ( is_responder(qp) )
        arg->mask |= VMRI_QPA_MAX_DEST_RD_ATOMIC | VMRI_QPA_MIN_RNR_TIMER;
    arg->path_mtu = 5;
    arg->dest_qpn = peer->qpn;
    arg->max_dest_rd_atomic = 1;
    arg->min_rnr_timer = or_default(conn->min_rnr_timer, 12);
    arg->av.dlid = peer->guest->lid;
    arg->av.sl = conn->sl;
}

static void attr_rts(struct guest_qp *qp, const struct guest_conn *conn,
                     struct vmri_qp_modify *arg)
{
    arg->mask |= VMRI_QPA_SQ_PSN;
    if ( is_requester(qp) )
        arg->mask |= VMRI_QPA_TIMEOUT | VMRI_QPA_RETRY_CNT |
                     VMRI_QPA_RNR_RETRY | VMRI_QPA_MAX_QP_RD_ATOMIC;
    if ( is_responder(qp) )
        arg->mask |= VMRI_QPA_TIMEOUT;
    arg->timeout = or_default(conn->timeout, 14);
    arg->retry_cnt = or_default(conn->retry_cnt, 7);
    arg->rnr_retry = or_default(conn->rnr_retry, 7);
    arg->max_rd_atomic = 1;
}

void qp_attr(struct guest_qp *qp, struct guest_qp *peer, unsigned int state,
             const struct guest_conn *conn, struct vmri_qp_modify *arg)
{
    static const struct guest_conn none;

    *arg = (struct vmri_qp_modify){
        .mask = VMRI_QPA_STATE, .state = (uint8_t)state,
    };
    conn = conn ? conn : &none;
    if ( state == VMRI_QPS_INIT )
        attr_init(qp, conn, arg);
    else if ( state == VMRI_QPS_RTR )
        attr_rtr(qp, peer, conn, arg);
    else if ( state == VMRI_QPS_RTS )
        attr_rts(qp, conn, arg);
}

void qp_to(struct guest_qp *qp, struct guest_qp *peer, unsigned int state,
           const struct guest_conn *conn)
{
    struct vmri_qp_modify arg;

    qp_attr(qp, peer, state, conn, &arg);
    CHECK_EQ(qp_modify(qp, &arg), 0);
}

void qp_set_state(struct guest_qp *qp, unsigned int state)
{
    struct vmri_qp_modify arg = {
        .mask = VMRI_QPA_STATE, .state = (uint8_t)state,
    };

    CHECK_EQ(qp_modify(qp, &arg), 0);
}

void qp_connect(struct guest_qp *a, struct guest_qp *b,
                const struct guest_conn *conn)
{
    unsigned int state;

    for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTS; state++ )
    {
        qp_to(a, b, state, conn);
        if ( a != b )
            qp_to(b, a, state, conn);
    }
}

void qp_connect_again(struct guest_qp *qp, struct guest_qp *peer,
                      const struct guest_conn *conn)
{
    unsigned int state = VMRI_QPS_RESET;
    struct vmri_qp_modify arg;

    while ( state <= VMRI_QPS_RTS )
    {
        qp_attr(qp, peer, state, conn, &arg);
        state = qp_modify(qp, &arg) ? VMRI_QPS_RESET : state + 1;
    }
}

/* ---- posting ---- */

static void *slot(struct guest_qp *qp, uint32_t offset, uint32_t prod,
                  unsigned int log2_entries, unsigned int log2_stride)
{
    return qp->mem + offset +
           ((prod & ((1U << log2_entries) - 1)) << log2_stride);
}

/* Put entries into the indirect list; the index of the first. */
static uint32_t put_indirect(struct guest_qp *qp, const struct vmri_sge *sge,
                             unsigned int num)
{
    uint32_t first = qp->prod_ind;
    unsigned int i;

    for ( i = 0; i < num; i++ )
        *(struct vmri_sge *)slot(qp, qp->arg.ind_offset, qp->prod_ind++,
                                 qp->arg.ind_log2_entries, 4) = sge[i];
    return first;
}

static uint32_t sum_sges(const struct guest_wr *wr)
{
    uint32_t sum = 0;
    unsigned int i;

    for ( i = 0; i < wr->num_sge; i++ )
        sum += wr->sge[i].length;
    return sum;
}

static void fill_address(const struct guest_wr *wr, struct vmri_send_wqe *wqe)
{
    if ( wr->raw )
        wqe->u = wr->wqe.u;
    else if ( wr->to )
    {
        wqe->u.ud.av.dlid = wr->to->guest->lid;
        wqe->u.ud.av.sl = wr->sl;
        wqe->u.ud.av.pkey_index = wr->pkey_index;
        wqe->u.ud.remote_qpn = wr->to->qpn;
        wqe->u.ud.remote_qkey = wr->qkey ? wr->qkey : 0x11111111;
    }
    else
    {
        wqe->u.rdma.remote_addr = wr->remote_addr;
        wqe->u.rdma.rkey = wr->rkey;
        wqe->u.rdma.compare_add = wr->compare_add;
        wqe->u.rdma.swap = wr->swap;
        wqe->u.rdma.flush_type = wr->flush_type;
        wqe->u.rdma.flush_level = wr->flush_level;
        wqe->u.rdma.srqn = wr->srqn;
    }
}

void qp_post_send(struct guest_qp *qp, const struct guest_wr *wr)
{
    struct vmri_send_wqe *wqe = slot(qp, qp->arg.sq_offset, qp->prod_s,
                                     qp->arg.sq_log2_entries,
                                     qp->arg.sq_log2_stride);

    *wqe = (struct vmri_send_wqe){
        .wr_id = wr->wr_id, .opcode = wr->opcode, .flags = wr->flags,
        .num_sge = wr->num_sge, .imm = wr->imm,
        .length = wr->length ? wr->length : sum_sges(wr),
    };
    fill_address(wr, wqe);
    if ( wr->data )
        memcpy(wqe + 1, wr->data, wqe->length);
    else if ( wr->flags & VMRI_SEND_INDIRECT )
        wqe->ind_start = put_indirect(qp, wr->sge, wr->num_sge);
    else if ( wr->num_sge <= qp->arg.max_send_sge )
        memcpy(wqe + 1, wr->sge, wr->num_sge * sizeof(wr->sge[0]));

    env_store_release(&qp->hdr->sq.prod, ++qp->prod_s);
}

void qp_post_recv(struct guest_qp *qp, uint64_t wr_id,
                  const struct vmri_sge *sge, unsigned int num)
{
    struct vmri_recv_wqe *wqe = slot(qp, qp->arg.rq_offset, qp->prod_r,
                                     qp->arg.rq_log2_entries,
                                     qp->arg.rq_log2_stride);

    *wqe = (struct vmri_recv_wqe){ .wr_id = wr_id, .num_sge = (uint16_t)num };
    if ( num > qp->arg.max_recv_sge )
    {
        wqe->flags = VMRI_RECV_INDIRECT;
        wqe->ind_start = put_indirect(qp, sge, num);
    }
    else if ( num )
        memcpy(wqe + 1, sge, num * sizeof(*sge));

    env_store_release(&qp->hdr->rq.prod, ++qp->prod_r);
}

static void schedule_all(struct guest_qp *qp)
{
    unsigned int calls = 0;
    long rc;

    do {
        rc = guest_schedule(qp->guest, qp->qpn);
        if ( ++calls == QP_CALLS )
            test_failed(__FILE__, __LINE__, "schedule never ends");
    } while ( rc == VMRI_SCHEDULE_MORE );
    CHECK_EQ(rc, 0);
}

void qp_ring(struct guest_qp *qp)
{
    env_mb();
    if ( !env_load(&qp->hdr->sq.running) )
        schedule_all(qp);
}

void qp_send(struct guest_qp *qp, const struct guest_wr *wr)
{
    qp_post_send(qp, wr);
    qp_ring(qp);
}

void qp_recv(struct guest_qp *qp, uint64_t wr_id, const struct vmri_sge *sge,
             unsigned int num)
{
    qp_post_recv(qp, wr_id, sge, num);
    env_mb();
    if ( env_load(&qp->hdr->rq.wait) )
        schedule_all(qp);
}
