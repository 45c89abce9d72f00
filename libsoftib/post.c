// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: posting requests.
 *
 * What is checked here is what the interface promises to report at once.  The
 * hypervisor trusts none of it and checks everything again.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include <util/compiler.h>
#include <util/util.h>

#include "doorbell.h"
#include "softib.h"

#define SEND_FLAGS \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | \
	 IBV_SEND_INLINE)

/* Flags and opcodes go into the ring as they are. */
static_assert(VMRI_SEND_FENCE == (int)IBV_SEND_FENCE &&
	      VMRI_SEND_SIGNALED == (int)IBV_SEND_SIGNALED &&
	      VMRI_SEND_SOLICITED == (int)IBV_SEND_SOLICITED &&
	      VMRI_SEND_INLINE == (int)IBV_SEND_INLINE, "send flags");
static_assert(VMRI_WR_RDMA_WRITE == (int)IBV_WR_RDMA_WRITE &&
	      VMRI_WR_RDMA_WRITE_WITH_IMM == (int)IBV_WR_RDMA_WRITE_WITH_IMM &&
	      VMRI_WR_SEND == (int)IBV_WR_SEND &&
	      VMRI_WR_SEND_WITH_IMM == (int)IBV_WR_SEND_WITH_IMM &&
	      VMRI_WR_RDMA_READ == (int)IBV_WR_RDMA_READ, "opcodes");
static_assert(sizeof(struct vmri_sge) == sizeof(struct ibv_sge) &&
	      offsetof(struct vmri_sge, lkey) == offsetof(struct ibv_sge, lkey),
	      "scatter/gather entries");

#define OP(name)	(1U << IBV_WR_##name)
#define UD_OPS		(OP(SEND) | OP(SEND_WITH_IMM))
#define RC_OPS		(UD_OPS | OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM) | \
			 OP(RDMA_READ))

static bool send_op_fits(const struct ibv_qp *ibqp,
			 const struct ibv_send_wr *wr)
{
	uint32_t ops = ibqp->qp_type == IBV_QPT_UD ? UD_OPS : RC_OPS;

	if (wr->opcode >= 32 || !(ops & (1U << wr->opcode)))
		return false;
	if (ibqp->qp_type == IBV_QPT_UD && !wr->wr.ud.ah)
		return false;
	return !(wr->opcode == IBV_WR_RDMA_READ &&
		 (wr->send_flags & IBV_SEND_INLINE));
}

static uint64_t sges_length(const struct ibv_sge *sg_list, int num_sge)
{
	uint64_t length = 0;
	int i;

	for (i = 0; i < num_sge; i++)
		length += sg_list[i].length;
	return length;
}

static int check_send_wr(const struct softib_qp *qp,
			 const struct ibv_send_wr *wr, uint64_t length)
{
	if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return EINVAL;
	if (!send_op_fits(&qp->vqp.qp, wr))
		return EINVAL;
	if (wr->send_flags & ~SEND_FLAGS)
		return EINVAL;
	if (length > UINT32_MAX)
		return EINVAL;
	if ((wr->send_flags & IBV_SEND_INLINE) && length > qp->max_inline)
		return EINVAL;
	return 0;
}

static void copy_inline(uint8_t *data, const struct ibv_sge *sg_list,
			int num_sge)
{
	int i;

	for (i = 0; i < num_sge; i++) {
		memcpy(data, (void *)(uintptr_t)sg_list[i].addr,
		       sg_list[i].length);
		data += sg_list[i].length;
	}
}

static void fill_send_wqe(const struct softib_qp *qp,
			  struct vmri_send_wqe *wqe,
			  const struct ibv_send_wr *wr, uint32_t length)
{
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;

	*wqe = (struct vmri_send_wqe) {
		.wr_id = wr->wr_id,
		.opcode = wr->opcode,
		.flags = wr->send_flags | qp->sig_all,
		.num_sge = is_inline ? 0 : wr->num_sge,
		.length = length,
	};

	if (wr->opcode == IBV_WR_SEND_WITH_IMM ||
	    wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wqe->imm = wr->imm_data;

	if (qp->vqp.qp.qp_type == IBV_QPT_UD) {
		wqe->u.ud.av = to_sah(wr->wr.ud.ah)->av;
		wqe->u.ud.remote_qpn = wr->wr.ud.remote_qpn;
		wqe->u.ud.remote_qkey = wr->wr.ud.remote_qkey;
	} else if (wr->opcode != IBV_WR_SEND &&
		   wr->opcode != IBV_WR_SEND_WITH_IMM) {
		wqe->u.rdma.remote_addr = wr->wr.rdma.remote_addr;
		wqe->u.rdma.rkey = wr->wr.rdma.rkey;
	}

	if (is_inline)
		copy_inline((uint8_t *)(wqe + 1), wr->sg_list, wr->num_sge);
	else if (wr->num_sge)
		memcpy(wqe + 1, wr->sg_list,
		       wr->num_sge * sizeof(struct vmri_sge));
}

/* Put one request into the next slot.  Called with sq.lock held. */
static int queue_send(struct softib_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length;
	int ret;

	if (wq_is_full(&qp->sq))
		return ENOMEM;

	length = sges_length(wr->sg_list, wr->num_sge);
	ret = check_send_wr(qp, wr, length);
	if (ret)
		return ret;

	fill_send_wqe(qp, wq_slot(&qp->sq, qp->sq.prod), wr, length);
	qp->sq.prod++;
	return 0;
}

/* The states in which a send queue takes nothing (IBTA 1.4, 10.3.1). */
static bool sq_takes_requests(const struct ibv_qp *ibqp)
{
	return ibqp->state != IBV_QPS_RESET && ibqp->state != IBV_QPS_INIT &&
	       ibqp->state != IBV_QPS_RTR;
}

int softib_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad_wr)
{
	struct softib_qp *qp = to_sqp(ibqp);
	struct softib_wq *sq = &qp->sq;
	bool ring = false;
	uint32_t before;
	int ret = 0;

	if (unlikely(!sq_takes_requests(ibqp))) {
		*bad_wr = wr;
		return EINVAL;
	}

	pthread_spin_lock(&sq->lock);
	before = sq->prod;
	if (wq_is_dead(sq))
		ret = EIO;
	for (; wr && !ret; wr = wr->next) {
		ret = queue_send(qp, wr);
		if (ret)
			break;
	}
	if (sq->prod != before) {
		wq_publish(sq);
		ring = sq_needs_doorbell(sq);
	}
	pthread_spin_unlock(&sq->lock);

	if (ring)
		softib_ring_doorbell(ibqp);
	if (ret)
		*bad_wr = wr;
	return ret;
}

/* As queue_send(), for a receive. */
static int queue_recv(struct softib_wq *rq, const struct ibv_recv_wr *wr)
{
	struct vmri_recv_wqe *wqe;

	if (wq_is_full(rq))
		return ENOMEM;
	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return EINVAL;

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

int softib_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	struct softib_wq *rq = &to_sqp(ibqp)->rq;
	bool ring = false;
	uint32_t before;
	int ret = 0;

	if (unlikely(ibqp->state == IBV_QPS_RESET)) {
		*bad_wr = wr;
		return EINVAL;
	}

	pthread_spin_lock(&rq->lock);
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
		ring = rq_needs_doorbell(rq);
	}
	pthread_spin_unlock(&rq->lock);

	if (ring)
		softib_ring_doorbell(ibqp);
	if (ret)
		*bad_wr = wr;
	return ret;
}
