// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: posting to queues, and having VMRI run them.
 *
 * A process posts in its own mapping and comes here only to ring the doorbell.
 * The kernel's requests name kernel addresses (the device has no DMA device, so
 * ib_dma_map_*() does nothing), which VMRI cannot know: each piece of a page
 * becomes an entry that names the frame.  They stand in the request's slot when
 * they fit, and else in a ring of their own, which is freed in the same order.
 */
#include <linux/mm.h>
#include <linux/sched.h>

#include "ring.h"
#include "softib.h"

/* Calls in a row before others get the CPU: 16 MiB of VMRI's budget. */
#define SOFTIB_MAX_RUNS		64

static_assert(IB_WR_RDMA_READ == (int)VMRI_WR_RDMA_READ);
static_assert(IB_WR_SEND_WITH_IMM == (int)VMRI_WR_SEND_WITH_IMM);
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

/* ---- slots and entries ---- */

static bool softib_wq_full(struct softib_wq *wq)
{
	u32 cons = ring_load(&wq->hdr->cons);

	if (cons != wq->cons) {
		wq->ind.cons = wq->ind.end[(cons - 1) & (wq->entries - 1)];
		wq->cons = cons;
	}
	return wq->prod - cons >= wq->entries;
}

/**
 * softib_wq_reset() - forget what is posted to a queue that was reset
 * @wq:		queue of the kernel
 */
void softib_wq_reset(struct softib_wq *wq)
{
	unsigned long flags;

	if (!wq->entries)
		return;

	spin_lock_irqsave(&wq->lock, flags);
	wq->cons = ring_load(&wq->hdr->cons);
	wq->prod = wq->cons;
	ring_store(&wq->hdr->prod, wq->prod);
	wq->ind.prod = 0;
	wq->ind.cons = 0;
	spin_unlock_irqrestore(&wq->lock, flags);
}

/* What a list of entries comes to. */
struct softib_sgl {
	u64 length;		/* bytes */
	u32 frames;		/* entries for VMRI */
	u32 ind_start;		/* where they are in the indirect list */
	bool indirect;
};

static void softib_sgl_count(const struct ib_sge *sge, int num,
			     struct softib_sgl *sgl)
{
	memset(sgl, 0, sizeof(*sgl));
	for (; num; num--, sge++) {
		if (!sge->length)
			continue;
		sgl->length += sge->length;
		if (sge->lkey == VMRI_LKEY_FRAMES)
			sgl->frames += PFN_UP(offset_in_page(sge->addr) +
					      (u64)sge->length);
		else
			sgl->frames++;
	}
}

/*
 * Room for consecutive entries in the indirect list: -EINVAL when it can never
 * hold so many, -ENOMEM when it does not now.
 */
static int softib_indirect_reserve(struct softib_indirect *ind, u32 num,
				   u32 *index)
{
	u32 offset = ind->prod & (ind->entries - 1);
	u32 used = ind->prod - ind->cons;
	u32 pad = 0;

	if (num > ind->entries)
		return -EINVAL;
	/* They do not wrap around: pass over an end that is too short. */
	if (ind->entries - offset < num) {
		pad = ind->entries - offset;
		offset = 0;
	}
	if (used && used + pad + num > ind->entries)
		return -ENOMEM;

	ind->prod += pad + num;
	*index = offset;
	return 0;
}

static struct page *softib_virt_to_page(const void *addr)
{
	if (is_vmalloc_addr(addr))
		return vmalloc_to_page(addr);
	return virt_addr_valid(addr) ? virt_to_page(addr) : NULL;
}

/* The next free entry, or NULL when the kernel has no memory there. */
static struct vmri_sge *softib_fill_frames(struct vmri_sge *to, u64 addr,
					   u32 length)
{
	const void *p = ib_virt_dma_to_ptr(addr);

	while (length) {
		struct page *page = softib_virt_to_page(p);
		u32 offset = offset_in_page(p);
		u32 n = min_t(u32, length, PAGE_SIZE - offset);

		if (!page)
			return NULL;
		*to++ = (struct vmri_sge) {
			.addr = softib_page_gfn(page) << PAGE_SHIFT | offset,
			.length = n,
			.lkey = VMRI_LKEY_FRAMES,
		};
		p += n;
		length -= n;
	}
	return to;
}

static int softib_fill_sgl(struct vmri_sge *to, const struct ib_sge *sge,
			   int num)
{
	for (; num; num--, sge++) {
		if (!sge->length)
			continue;
		if (sge->lkey != VMRI_LKEY_FRAMES) {
			*to++ = (struct vmri_sge) {
				.addr = sge->addr,
				.length = sge->length,
				.lkey = sge->lkey,
			};
			continue;
		}
		to = softib_fill_frames(to, sge->addr, sge->length);
		if (!to)
			return -EFAULT;
	}
	return 0;
}

/*
 * Write the entries of a request, into its slot (at @direct) or the indirect
 * list.  A request that fails has taken nothing.
 */
static int softib_put_sgl(struct softib_wq *wq, struct vmri_sge *direct,
			  const struct ib_sge *sge, int num,
			  struct softib_sgl *sgl)
{
	u32 prod = wq->ind.prod;
	struct vmri_sge *to = direct;
	u32 index;
	int ret;

	if (num < 0 || num > wq->max_sge)
		return -EINVAL;

	softib_sgl_count(sge, num, sgl);
	if (sgl->length > U32_MAX || sgl->frames > VMRI_MAX_INDIRECT)
		return -EINVAL;

	if (sgl->frames > wq->max_frames) {
		ret = softib_indirect_reserve(&wq->ind, sgl->frames, &index);
		if (ret)
			return ret;
		to = wq->ind.ring + index;
		sgl->indirect = true;
		sgl->ind_start = wq->ind.first + index;
	}

	ret = softib_fill_sgl(to, sge, num);
	if (ret)
		wq->ind.prod = prod;
	return ret;
}

/* The slot that was just written is the next one. */
static void softib_wq_push(struct softib_wq *wq)
{
	wq->ind.end[wq->prod & (wq->entries - 1)] = wq->ind.prod;
	wq->prod++;
}

/* Show VMRI all slots that were pushed, before asking whether it looks. */
static void softib_wq_publish(struct softib_wq *wq)
{
	ring_store(&wq->hdr->prod, wq->prod);
	ring_fence();
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
		if (qp->ibqp.qp_type == IB_QPT_RC)
			return 0;
		if (!ud_wr(wr)->ah)
			return -EINVAL;
		wqe->u.ud.av = to_softib_ah(ud_wr(wr)->ah)->av;
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
	default:
		return -EINVAL;
	}
}

static int softib_put_send(struct softib_qp *qp, const struct ib_send_wr *wr)
{
	bool is_inline = wr->send_flags & IB_SEND_INLINE;
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
	if (ret)
		return ret;

	if (is_inline)
		ret = softib_put_inline(qp, wqe + 1, wr->sg_list, wr->num_sge,
					&sgl);
	else
		ret = softib_put_sgl(sq, (void *)(wqe + 1), wr->sg_list,
				     wr->num_sge, &sgl);
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

int softib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr)
{
	struct softib_qp *qp = to_softib_qp(ibqp);
	enum ib_qp_state state = READ_ONCE(qp->state);
	unsigned long flags;
	int ret = 0;
	bool ring;

	*bad_wr = wr;
	if (qp->user)
		return softib_doorbell(qp, wr);
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

/* ---- receiving ---- */

static int softib_put_recv(struct softib_qp *qp, const struct ib_recv_wr *wr)
{
	struct softib_wq *rq = &qp->rq;
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

int softib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr)
{
	struct softib_qp *qp = to_softib_qp(ibqp);
	unsigned long flags;
	int ret = 0;
	bool ring;

	*bad_wr = wr;
	if (qp->user)
		return softib_doorbell(qp, wr);
	if (READ_ONCE(qp->state) == IB_QPS_RESET)
		return -EINVAL;

	spin_lock_irqsave(&qp->rq.lock, flags);
	for (; wr; wr = wr->next) {
		ret = softib_put_recv(qp, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	softib_wq_publish(&qp->rq);
	ring = READ_ONCE(qp->rq.hdr->wait) || softib_is_gone(qp);
	spin_unlock_irqrestore(&qp->rq.lock, flags);

	if (ring)
		softib_qp_run(qp);
	return ret;
}
