// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: posting requests.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include <util/compiler.h>
#include <util/util.h>

#include "doorbell.h"
#include "request.h"
#include "softib.h"

/* Flags and opcodes go into the ring as they are. */
static_assert(VMRI_SEND_FENCE == (int)IBV_SEND_FENCE &&
	      VMRI_SEND_SIGNALED == (int)IBV_SEND_SIGNALED &&
	      VMRI_SEND_SOLICITED == (int)IBV_SEND_SOLICITED &&
	      VMRI_SEND_INLINE == (int)IBV_SEND_INLINE, "send flags");
static_assert(VMRI_WR_RDMA_WRITE == (int)IBV_WR_RDMA_WRITE &&
	      VMRI_WR_RDMA_WRITE_WITH_IMM == (int)IBV_WR_RDMA_WRITE_WITH_IMM &&
	      VMRI_WR_SEND == (int)IBV_WR_SEND &&
	      VMRI_WR_SEND_WITH_IMM == (int)IBV_WR_SEND_WITH_IMM &&
	      VMRI_WR_RDMA_READ == (int)IBV_WR_RDMA_READ &&
	      VMRI_WR_ATOMIC_CMP_AND_SWP == (int)IBV_WR_ATOMIC_CMP_AND_SWP &&
	      VMRI_WR_ATOMIC_FETCH_AND_ADD ==
		      (int)IBV_WR_ATOMIC_FETCH_AND_ADD &&
	      VMRI_WR_LOCAL_INV == (int)IBV_WR_LOCAL_INV &&
	      VMRI_WR_BIND_MW == (int)IBV_WR_BIND_MW &&
	      VMRI_WR_SEND_WITH_INV == (int)IBV_WR_SEND_WITH_INV &&
	      VMRI_WR_FLUSH == (int)IBV_WR_FLUSH &&
	      VMRI_WR_ATOMIC_WRITE == (int)IBV_WR_ATOMIC_WRITE, "opcodes");
static_assert(sizeof(struct vmri_sge) == sizeof(struct ibv_sge) &&
	      offsetof(struct vmri_sge, lkey) == offsetof(struct ibv_sge, lkey),
	      "scatter/gather entries");

#define UD_OPS	(REQUEST_OP(SEND) | REQUEST_OP(SEND_WITH_IMM))
#define UC_OPS	(UD_OPS | REQUEST_OP(RDMA_WRITE) | \
		 REQUEST_OP(RDMA_WRITE_WITH_IMM) | REQUEST_OP(LOCAL_INV) | \
		 REQUEST_OP(BIND_MW))
#define XRC_OPS	(UC_OPS | REQUEST_OP(SEND_WITH_INV) | REQUEST_OP(RDMA_READ) | \
		 REQUEST_ATOMICS)
#define RC_OPS	(XRC_OPS | REQUEST_OP(FLUSH) | REQUEST_OP(ATOMIC_WRITE))

/* The operations that a queue pair of this type has: bits 1 << IBV_WR_*. */
uint32_t softib_send_ops(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return RC_OPS;
	case IBV_QPT_UC:
		return UC_OPS;
	case IBV_QPT_UD:
		return UD_OPS;
	case IBV_QPT_XRC_SEND:
		return XRC_OPS;
	default:
		return 0;
	}
}

/* The parts of a request that depend on its operation. */
static int put_operation(const struct softib_qp *qp, struct vmri_send_wqe *wqe,
			 const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
		wqe->imm = wr->imm_data;
		SWITCH_FALLTHROUGH;
	case IBV_WR_SEND:
		if (qp->vqp.qp.qp_type == IBV_QPT_UD)
			return request_set_ud(wqe, wr->wr.ud.ah,
					      wr->wr.ud.remote_qpn,
					      wr->wr.ud.remote_qkey);
		return 0;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm = wr->imm_data;
		SWITCH_FALLTHROUGH;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		request_set_remote(wqe, wr->wr.rdma.rkey,
				   wr->wr.rdma.remote_addr);
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		request_set_remote(wqe, wr->wr.atomic.rkey,
				   wr->wr.atomic.remote_addr);
		request_set_atomic(wqe, wr->wr.atomic.compare_add,
				   wr->wr.atomic.swap);
		return 0;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wqe->imm = wr->invalidate_rkey;
		return 0;
	case IBV_WR_BIND_MW:
		request_set_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
				 &wr->bind_mw.bind_info);
		return 0;
	default:
		/* FLUSH and ATOMIC_WRITE: struct ibv_send_wr cannot say it. */
		return EINVAL;
	}
}

static int put_inline(const struct softib_qp *qp, struct vmri_send_wqe *wqe,
		      const struct ibv_sge *sg_list, int num_sge)
{
	int ret = request_add_inline(qp, wqe, NULL, 0);
	int i;

	for (i = 0; i < num_sge && !ret; i++)
		ret = request_add_inline(qp, wqe,
					 (void *)(uintptr_t)sg_list[i].addr,
					 sg_list[i].length);
	return ret;
}

static int put_data(const struct softib_qp *qp, struct vmri_send_wqe *wqe,
		    const struct ibv_send_wr *wr)
{
	if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return EINVAL;
	/* These two have none, whatever the list says. */
	if (wr->opcode == IBV_WR_LOCAL_INV || wr->opcode == IBV_WR_BIND_MW)
		return 0;
	if (wr->send_flags & IBV_SEND_INLINE)
		return put_inline(qp, wqe, wr->sg_list, wr->num_sge);
	return request_set_sges(qp, wqe, wr->sg_list, wr->num_sge);
}

/* Put one request into the next slot.  Called with sq.lock held. */
static int queue_send(struct softib_qp *qp, const struct ibv_send_wr *wr)
{
	struct vmri_send_wqe *wqe;
	int ret;

	ret = request_begin(qp, wr->wr_id, wr->opcode,
			    wr->send_flags & ~IBV_SEND_INLINE, &wqe);
	if (ret)
		return ret;

	ret = put_operation(qp, wqe, wr);
	if (!ret)
		ret = put_data(qp, wqe, wr);
	if (!ret && qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		request_set_srqn(wqe, wr->qp_type.xrc.remote_srqn);
	if (ret)
		qp->sq.prod--;
	return ret;
}

/* The states in which a send queue takes nothing (IBTA 1.4, 10.3.1). */
static bool sq_takes_requests(const struct ibv_qp *ibqp)
{
	return ibqp->state != IBV_QPS_RESET && ibqp->state != IBV_QPS_INIT &&
	       ibqp->state != IBV_QPS_RTR;
}

/*
 * Lock the send queue for requests to be put into it, until softib_sq_finish().
 * 0, or the errno of all that would be put there.
 */
int softib_sq_start(struct softib_qp *qp)
{
	softib_lock(&qp->sq.lock);
	qp->sq_start = qp->sq.prod;
	if (unlikely(!qp->sq.entries || !sq_takes_requests(&qp->vqp.qp)))
		return EINVAL;
	return wq_is_dead(&qp->sq) ? EIO : 0;
}

/* Hand over what was put there since softib_sq_start(). */
void softib_sq_finish(struct softib_qp *qp)
{
	bool ring = false;

	if (qp->sq.prod != qp->sq_start) {
		wq_publish(&qp->sq);
		ring = sq_needs_doorbell(&qp->sq);
	}
	softib_unlock(&qp->sq.lock);

	if (ring)
		softib_ring_doorbell(&qp->vqp.qp);
}

int softib_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad_wr)
{
	struct softib_qp *qp = to_sqp(ibqp);
	int ret;

	ret = softib_sq_start(qp);
	for (; wr && !ret; wr = wr->next) {
		ret = queue_send(qp, wr);
		if (ret)
			break;
	}
	softib_sq_finish(qp);

	if (ret)
		*bad_wr = wr;
	return ret;
}

/* As queue_send(), for a receive. */
static int queue_recv(struct softib_wq *rq, const struct ibv_recv_wr *wr)
{
	struct vmri_recv_wqe *wqe;

	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return EINVAL;
	if (wq_is_full(rq))
		return ENOMEM;

	wqe = wq_slot(rq, rq->prod);
	*wqe = (struct vmri_recv_wqe) {
		.wr_id = wr->wr_id,
		.num_sge = wr->num_sge,
	};
	if (wr->num_sge)
		memcpy(wqe + 1, wr->sg_list,
		       wr->num_sge * sizeof(struct vmri_sge));
	rq->prod++;
	return 0;
}

int softib_post_recvs(struct softib_wq *rq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad_wr, bool *ring)
{
	uint32_t before;
	int ret = 0;

	softib_lock(&rq->lock);
	before = rq->prod;
	if (wq_is_dead(rq))
		ret = EIO;
	for (; wr && !ret; wr = wr->next) {
		ret = queue_recv(rq, wr);
		if (ret)
			break;
	}
	if (rq->prod != before) {
		wq_publish(rq);
		*ring = rq_needs_doorbell(rq);
	}
	softib_unlock(&rq->lock);

	if (ret)
		*bad_wr = wr;
	return ret;
}

int softib_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	struct softib_qp *qp = to_sqp(ibqp);
	bool ring = false;
	int ret;

	/* The second: it has a shared one, or none. */
	if (unlikely(ibqp->state == IBV_QPS_RESET || !qp->rq.entries)) {
		*bad_wr = wr;
		return EINVAL;
	}

	ret = softib_post_recvs(&qp->rq, wr, bad_wr, &ring);
	if (ring)
		softib_ring_doorbell(ibqp);
	return ret;
}
