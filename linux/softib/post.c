// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: posting to queues, and having VMRI run them.
 *
 * A process posts in its own mapping and comes here only to ring the doorbell.
 */
#include <linux/sched.h>

#include "ring.h"
#include "softib.h"

/* Calls in a row before others get the CPU: 16 MiB of VMRI's budget. */
#define SOFTIB_MAX_RUNS		64

static_assert(IB_WR_RDMA_READ == (int)VMRI_WR_RDMA_READ);
static_assert(IB_WR_SEND_WITH_IMM == (int)VMRI_WR_SEND_WITH_IMM);
static_assert(IB_WR_ATOMIC_FETCH_AND_ADD == (int)VMRI_WR_ATOMIC_FETCH_AND_ADD);
static_assert(IB_WR_LOCAL_INV == (int)VMRI_WR_LOCAL_INV);
static_assert(IB_WR_SEND_WITH_INV == (int)VMRI_WR_SEND_WITH_INV);
static_assert(IB_WR_REG_MR == (int)VMRI_WR_REG_MR);
static_assert(IB_SEND_FENCE == (int)VMRI_SEND_FENCE);
static_assert(IB_SEND_SIGNALED == (int)VMRI_SEND_SIGNALED);
static_assert(IB_SEND_SOLICITED == (int)VMRI_SEND_SOLICITED);
static_assert(IB_SEND_INLINE == (int)VMRI_SEND_INLINE);

/* ---- doorbells ---- */

/* Then VMRI says nothing any more about whether to ring. */
static bool softib_is_gone(const struct softib_qp *qp)
{
	return READ_ONCE(to_softib_dev(qp->ibqp.device)->gone);
}

/* True when there is more to do. */
static bool softib_qp_run_once(struct softib_qp *qp)
{
	int ret;

	ret = softib_is_gone(qp) ? -ENODEV :
	      softib_schedule(to_softib_dev(qp->ibqp.device), qp->ibqp.qp_num);
	if (ret == -ENODEV && !qp->user)
		softib_qp_later(qp, SOFTIB_QP_FLUSH);
	return ret == VMRI_SCHEDULE_MORE;
}

/**
 * softib_qp_run() - ring a QP's doorbell; what takes long is done later
 * @qp:		a QP that cannot be destroyed meanwhile
 *
 * Context: any.
 */
void softib_qp_run(struct softib_qp *qp)
{
	if (softib_qp_run_once(qp))
		softib_qp_later(qp, VMRI_EVENT_QUEUE_READY);
}

/**
 * softib_qp_run_more() - the same, doing also what takes long
 * @qp:		a QP that cannot be destroyed meanwhile
 *
 * Context: may sleep.  Ends even if somebody posts all the time.
 */
void softib_qp_run_more(struct softib_qp *qp)
{
	int i;

	for (i = 0; i < SOFTIB_MAX_RUNS; i++) {
		if (!softib_qp_run_once(qp))
			return;
		cond_resched();
	}
	softib_qp_later(qp, VMRI_EVENT_QUEUE_READY);
}

/* ---- sending ---- */

static int softib_put_inline(const struct softib_qp *qp, void *to,
			     const struct ib_sge *sge, int num,
			     struct softib_sgl *sgl)
{
	if (num < 0 || num > qp->sq.max_sge)
		return -EINVAL;

	memset(sgl, 0, sizeof(*sgl));
	for (; num; num--, sge++) {
		if (sge->length > qp->cap.max_inline_data - sgl->length)
			return -EINVAL;
		memcpy(to + sgl->length, ib_virt_dma_to_ptr(sge->addr),
		       sge->length);
		sgl->length += sge->length;
	}
	return 0;
}

static bool softib_is_connected(const struct softib_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_RC || qp->ibqp.qp_type == IB_QPT_UC;
}

static int softib_put_reg(struct vmri_send_wqe *wqe, const struct ib_reg_wr *wr)
{
	const struct softib_mr *mr = to_softib_mr(wr->mr);
	u32 access = wr->access & ~IB_ACCESS_OPTIONAL;

	if (access & ~VMRI_ACCESS_MR)
		return -EINVAL;
	wqe->u.reg.iova = mr->ibmr.iova;
	wqe->u.reg.length = mr->ibmr.length;
	wqe->u.reg.key = mr->ibmr.rkey;
	wqe->u.reg.new_key = wr->key;
	wqe->u.reg.access = access;
	wqe->u.reg.offset = mr->offset;
	wqe->u.reg.list = softib_fast_list(mr);
	return 0;
}

/* What goes where: the parts of a request that depend on its operation. */
static int softib_put_operation(const struct softib_qp *qp,
				struct vmri_send_wqe *wqe,
				const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
		wqe->imm = (__force u32)wr->ex.imm_data;
		fallthrough;
	case IB_WR_SEND:
		if (softib_is_connected(qp))
			return 0;
		if (!ud_wr(wr)->ah)
			return -EINVAL;
		wqe->u.ud.av = to_softib_ah(ud_wr(wr)->ah)->av;
		if (qp->ibqp.qp_type == IB_QPT_GSI)
			wqe->u.ud.av.pkey_index = min(ud_wr(wr)->pkey_index,
						      U8_MAX);
		wqe->u.ud.remote_qpn = ud_wr(wr)->remote_qpn;
		wqe->u.ud.remote_qkey = ud_wr(wr)->remote_qkey;
		return 0;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm = (__force u32)wr->ex.imm_data;
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
		wqe->u.rdma.remote_addr = rdma_wr(wr)->remote_addr;
		wqe->u.rdma.rkey = rdma_wr(wr)->rkey;
		return 0;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->u.rdma.remote_addr = atomic_wr(wr)->remote_addr;
		wqe->u.rdma.rkey = atomic_wr(wr)->rkey;
		wqe->u.rdma.compare_add = atomic_wr(wr)->compare_add;
		wqe->u.rdma.swap = atomic_wr(wr)->swap;
		return 0;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		wqe->imm = wr->ex.invalidate_rkey;
		return 0;
	case IB_WR_REG_MR:
		return softib_put_reg(wqe, reg_wr(wr));
	default:
		return -EINVAL;
	}
}

/* The data, or where it goes to, behind the header. */
static int softib_put_data(struct softib_qp *qp, struct vmri_send_wqe *wqe,
			   const struct ib_send_wr *wr, struct softib_sgl *sgl)
{
	if (wr->send_flags & IB_SEND_INLINE)
		return softib_put_inline(qp, wqe + 1, wr->sg_list, wr->num_sge,
					 sgl);
	return softib_put_sgl(&qp->sq, (void *)(wqe + 1), wr->sg_list,
			      wr->num_sge, sgl);
}

static int softib_put_send(struct softib_qp *qp, const struct ib_send_wr *wr)
{
	struct softib_wq *sq = &qp->sq;
	struct vmri_send_wqe *wqe;
	struct softib_sgl sgl;
	int ret;

	if (!sq->entries)
		return -EINVAL;
	if (softib_wq_full(sq))
		return -ENOMEM;

	wqe = softib_wq_slot(sq, sq->prod);
	*wqe = (struct vmri_send_wqe) {
		.wr_id = wr->wr_id,
		.opcode = wr->opcode,
		.flags = wr->send_flags & VMRI_SEND_FLAGS &
			 ~VMRI_SEND_INDIRECT,
	};
	ret = softib_put_operation(qp, wqe, wr);
	if (!ret)
		ret = softib_put_data(qp, wqe, wr, &sgl);
	if (ret)
		return ret;

	if (qp->sig_all)
		wqe->flags |= VMRI_SEND_SIGNALED;
	if (sgl.indirect)
		wqe->flags |= VMRI_SEND_INDIRECT;
	wqe->num_sge = sgl.frames;
	wqe->length = sgl.length;
	wqe->ind_start = sgl.ind_start;
	softib_wq_push(sq);
	return 0;
}

/* A process rings the doorbell by posting nothing. */
static int softib_doorbell(struct softib_qp *qp, bool posts)
{
	if (posts)
		return -EINVAL;
	softib_qp_run_more(qp);
	return 0;
}

/**
 * softib_post_sends() - post a list of requests
 * @qp:		QP of the kernel
 * @wr:		list
 * @bad_wr:	set to what the error is about
 *
 * Context: any.
 * Return: 0 or a negative errno.
 */
int softib_post_sends(struct softib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr)
{
	enum ib_qp_state state = READ_ONCE(qp->state);
	unsigned long flags;
	int ret = 0;
	bool ring;

	*bad_wr = wr;
	if (state == IB_QPS_RESET || state == IB_QPS_INIT ||
	    state == IB_QPS_RTR)
		return -EINVAL;

	spin_lock_irqsave(&qp->sq.lock, flags);
	for (; wr; wr = wr->next) {
		ret = softib_put_send(qp, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	softib_wq_publish(&qp->sq);
	ring = !READ_ONCE(qp->sq.hdr->running) || softib_is_gone(qp);
	spin_unlock_irqrestore(&qp->sq.lock, flags);

	if (ring)
		softib_qp_run(qp);
	return ret;
}

int softib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr)
{
	struct softib_qp *qp = to_softib_qp(ibqp);

	*bad_wr = wr;
	if (qp->user)
		return softib_doorbell(qp, wr);
	if (unlikely(softib_is_managing(qp)))
		return softib_sm_post_send(qp, wr, bad_wr);
	return softib_post_sends(qp, wr, bad_wr);
}

/* ---- receiving ---- */

static int softib_put_recv(struct softib_wq *rq, const struct ib_recv_wr *wr)
{
	struct vmri_recv_wqe *wqe;
	struct softib_sgl sgl;
	int ret;

	if (!rq->entries)
		return -EINVAL;
	if (softib_wq_full(rq))
		return -ENOMEM;

	wqe = softib_wq_slot(rq, rq->prod);
	ret = softib_put_sgl(rq, (void *)(wqe + 1), wr->sg_list, wr->num_sge,
			     &sgl);
	if (ret)
		return ret;

	*wqe = (struct vmri_recv_wqe) {
		.wr_id = wr->wr_id,
		.num_sge = sgl.frames,
		.flags = sgl.indirect ? VMRI_RECV_INDIRECT : 0,
		.ind_start = sgl.ind_start,
	};
	softib_wq_push(rq);
	return 0;
}

/**
 * softib_put_recvs() - post a list to a receive queue, a QP's or shared
 * @rq:		queue of the kernel
 * @wr:		list
 * @bad_wr:	set to what the error is about
 * @ring:	set: does somebody wait for receives?
 *
 * Context: any.
 * Return: 0 or a negative errno.
 */
int softib_put_recvs(struct softib_wq *rq, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr, bool *ring)
{
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&rq->lock, flags);
	for (; wr; wr = wr->next) {
		ret = softib_put_recv(rq, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	softib_wq_publish(rq);
	*ring = softib_wq_awaited(rq);
	spin_unlock_irqrestore(&rq->lock, flags);
	return ret;
}

int softib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr)
{
	struct softib_qp *qp = to_softib_qp(ibqp);
	bool ring;
	int ret;

	*bad_wr = wr;
	if (qp->user)
		return softib_doorbell(qp, wr);
	if (READ_ONCE(qp->state) == IB_QPS_RESET)
		return -EINVAL;

	ret = softib_put_recvs(&qp->rq, wr, bad_wr, &ring);
	if (ring || softib_is_gone(qp))
		softib_qp_run(qp);
	return ret;
}
