// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: the interface of struct ibv_qp_ex: requests are put together by calls,
 * with the queue locked from ibv_wr_start() on.
 *
 * The first error is kept for ibv_wr_complete(), and all that follows does
 * nothing: so no call needs to report anything.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include <util/compiler.h>

#include "request.h"
#include "softib.h"

static struct softib_qp *to_sqp_ex(struct ibv_qp_ex *ibqpx)
{
	return container_of(ibqpx, struct softib_qp, vqp.qp_ex);
}

/* ---- the critical region ---- */

static void wr_start(struct ibv_qp_ex *ibqpx)
{
	struct softib_qp *qp = to_sqp_ex(ibqpx);

	qp->wr_err = softib_sq_start(qp);
	qp->wqe = NULL;
}

static void wr_abort(struct ibv_qp_ex *ibqpx)
{
	struct softib_qp *qp = to_sqp_ex(ibqpx);

	qp->sq.prod = qp->sq_start;
	softib_sq_finish(qp);
}

static int wr_complete(struct ibv_qp_ex *ibqpx)
{
	struct softib_qp *qp = to_sqp_ex(ibqpx);
	int ret = qp->wr_err;

	if (ret)
		qp->sq.prod = qp->sq_start;
	softib_sq_finish(qp);
	return ret;
}

/* ---- what is to be done ---- */

/* The new request, or NULL. */
static struct vmri_send_wqe *begin(struct softib_qp *qp, uint8_t opcode)
{
	struct ibv_qp_ex *ibqpx = &qp->vqp.qp_ex;

	/* How data is given says whether it is inline. */
	if (!qp->wr_err)
		qp->wr_err = request_begin(qp, ibqpx->wr_id, opcode,
					   ibqpx->wr_flags & ~IBV_SEND_INLINE,
					   &qp->wqe);
	return qp->wr_err ? NULL : qp->wqe;
}

static void wr_send(struct ibv_qp_ex *ibqpx)
{
	begin(to_sqp_ex(ibqpx), VMRI_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ibqpx, __be32 imm_data)
{
	struct vmri_send_wqe *wqe = begin(to_sqp_ex(ibqpx),
					  VMRI_WR_SEND_WITH_IMM);

	if (wqe)
		wqe->imm = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ibqpx, uint32_t invalidate_rkey)
{
	struct vmri_send_wqe *wqe = begin(to_sqp_ex(ibqpx),
					  VMRI_WR_SEND_WITH_INV);

	if (wqe)
		wqe->imm = invalidate_rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ibqpx, uint32_t invalidate_rkey)
{
	struct vmri_send_wqe *wqe = begin(to_sqp_ex(ibqpx), VMRI_WR_LOCAL_INV);

	if (wqe)
		wqe->imm = invalidate_rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ibqpx, struct ibv_mw *mw,
		       uint32_t rkey, const struct ibv_mw_bind_info *bind_info)
{
	struct vmri_send_wqe *wqe = begin(to_sqp_ex(ibqpx), VMRI_WR_BIND_MW);

	if (wqe)
		request_set_bind(wqe, mw, rkey, bind_info);
}

/* As begin(), for what goes to the peer's memory. */
static struct vmri_send_wqe *begin_rdma(struct ibv_qp_ex *ibqpx,
					uint8_t opcode, uint32_t rkey,
					uint64_t remote_addr)
{
	struct vmri_send_wqe *wqe = begin(to_sqp_ex(ibqpx), opcode);

	if (wqe)
		request_set_remote(wqe, rkey, remote_addr);
	return wqe;
}

static void wr_rdma_read(struct ibv_qp_ex *ibqpx, uint32_t rkey,
			 uint64_t remote_addr)
{
	begin_rdma(ibqpx, VMRI_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ibqpx, uint32_t rkey,
			  uint64_t remote_addr)
{
	begin_rdma(ibqpx, VMRI_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibqpx, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	struct vmri_send_wqe *wqe = begin_rdma(ibqpx,
					       VMRI_WR_RDMA_WRITE_WITH_IMM,
					       rkey, remote_addr);

	if (wqe)
		wqe->imm = imm_data;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibqpx, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	struct vmri_send_wqe *wqe = begin_rdma(ibqpx,
					       VMRI_WR_ATOMIC_CMP_AND_SWP,
					       rkey, remote_addr);

	if (wqe)
		request_set_atomic(wqe, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibqpx, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	struct vmri_send_wqe *wqe = begin_rdma(ibqpx,
					       VMRI_WR_ATOMIC_FETCH_AND_ADD,
					       rkey, remote_addr);

	if (wqe)
		request_set_atomic(wqe, add, 0);
}

static void wr_atomic_write(struct ibv_qp_ex *ibqpx, uint32_t rkey,
			    uint64_t remote_addr, const void *atomic_wr)
{
	struct vmri_send_wqe *wqe = begin_rdma(ibqpx, VMRI_WR_ATOMIC_WRITE,
					       rkey, remote_addr);
	uint64_t value;

	if (!wqe)
		return;
	memcpy(&value, atomic_wr, sizeof(value));
	request_set_atomic(wqe, value, 0);
	wqe->length = sizeof(value);
}

static void wr_flush(struct ibv_qp_ex *ibqpx, uint32_t rkey,
		     uint64_t remote_addr, size_t len, uint8_t type,
		     uint8_t level)
{
	struct softib_qp *qp = to_sqp_ex(ibqpx);
	struct vmri_send_wqe *wqe = begin_rdma(ibqpx, VMRI_WR_FLUSH, rkey,
					       remote_addr);

	if (!wqe)
		return;
	if (len > UINT32_MAX) {
		qp->wr_err = EINVAL;
		return;
	}
	wqe->length = len;
	wqe->u.rdma.flush_type = type;
	wqe->u.rdma.flush_level = level;
}

/* ---- where to, and with what ---- */

/* The request that is being put together; an error when there is none. */
static struct vmri_send_wqe *current(struct softib_qp *qp)
{
	if (!qp->wr_err && !qp->wqe)
		qp->wr_err = EINVAL;
	return qp->wr_err ? NULL : qp->wqe;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ibqpx, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct softib_qp *qp = to_sqp_ex(ibqpx);
	struct vmri_send_wqe *wqe = current(qp);

	if (wqe)
		qp->wr_err = request_set_ud(wqe, ah, remote_qpn, remote_qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ibqpx, uint32_t remote_srqn)
{
	struct vmri_send_wqe *wqe = current(to_sqp_ex(ibqpx));

	if (wqe)
		request_set_srqn(wqe, remote_srqn);
}

static void wr_set_sge_list(struct ibv_qp_ex *ibqpx, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	struct softib_qp *qp = to_sqp_ex(ibqpx);
	struct vmri_send_wqe *wqe = current(qp);

	if (wqe)
		qp->wr_err = request_set_sges(qp, wqe, sg_list, num_sge);
}

static void wr_set_sge(struct ibv_qp_ex *ibqpx, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = {
		.addr = addr,
		.length = length,
		.lkey = lkey,
	};

	wr_set_sge_list(ibqpx, 1, &sge);
}

static void wr_set_inline_data(struct ibv_qp_ex *ibqpx, void *addr,
			       size_t length)
{
	struct softib_qp *qp = to_sqp_ex(ibqpx);
	struct vmri_send_wqe *wqe = current(qp);

	if (wqe)
		qp->wr_err = request_add_inline(qp, wqe, addr, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibqpx, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	size_t i;

	/* Nothing is inline data, too. */
	wr_set_inline_data(ibqpx, NULL, 0);
	for (i = 0; i < num_buf; i++)
		wr_set_inline_data(ibqpx, buf_list[i].addr,
				   buf_list[i].length);
}

/* ---- which calls a queue pair has ---- */

/* The flags of the operations in @ops, bits 1 << IBV_WR_*. */
static uint64_t ops_to_flags(uint32_t ops)
{
	uint64_t flags = ops & (REQUEST_OP(TSO) - 1);

	if (ops & REQUEST_OP(FLUSH))
		flags |= IBV_QP_EX_WITH_FLUSH;
	if (ops & REQUEST_OP(ATOMIC_WRITE))
		flags |= IBV_QP_EX_WITH_ATOMIC_WRITE;
	return flags;
}

static_assert(IBV_QP_EX_WITH_RDMA_WRITE == REQUEST_OP(RDMA_WRITE) &&
	      IBV_QP_EX_WITH_SEND_WITH_INV == REQUEST_OP(SEND_WITH_INV),
	      "flags of the first operations are their bits");

bool softib_has_send_ops(enum ibv_qp_type type, uint64_t flags)
{
	return !(flags & ~ops_to_flags(softib_send_ops(type)));
}

void softib_set_send_ops(struct softib_qp *qp, uint64_t flags)
{
	struct ibv_qp_ex *x = &qp->vqp.qp_ex;

	x->wr_start = wr_start;
	x->wr_complete = wr_complete;
	x->wr_abort = wr_abort;
	x->wr_set_ud_addr = wr_set_ud_addr;
	x->wr_set_xrc_srqn = wr_set_xrc_srqn;
	x->wr_set_sge = wr_set_sge;
	x->wr_set_sge_list = wr_set_sge_list;
	x->wr_set_inline_data = wr_set_inline_data;
	x->wr_set_inline_data_list = wr_set_inline_data_list;

	if (flags & IBV_QP_EX_WITH_RDMA_WRITE)
		x->wr_rdma_write = wr_rdma_write;
	if (flags & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		x->wr_rdma_write_imm = wr_rdma_write_imm;
	if (flags & IBV_QP_EX_WITH_SEND)
		x->wr_send = wr_send;
	if (flags & IBV_QP_EX_WITH_SEND_WITH_IMM)
		x->wr_send_imm = wr_send_imm;
	if (flags & IBV_QP_EX_WITH_RDMA_READ)
		x->wr_rdma_read = wr_rdma_read;
	if (flags & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		x->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (flags & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		x->wr_atomic_fetch_add = wr_atomic_fetch_add;
	if (flags & IBV_QP_EX_WITH_LOCAL_INV)
		x->wr_local_inv = wr_local_inv;
	if (flags & IBV_QP_EX_WITH_BIND_MW)
		x->wr_bind_mw = wr_bind_mw;
	if (flags & IBV_QP_EX_WITH_SEND_WITH_INV)
		x->wr_send_inv = wr_send_inv;
	if (flags & IBV_QP_EX_WITH_FLUSH)
		x->wr_flush = wr_flush;
	if (flags & IBV_QP_EX_WITH_ATOMIC_WRITE)
		x->wr_atomic_write = wr_atomic_write;

	qp->vqp.comp_mask |= VERBS_QP_EX;
}
