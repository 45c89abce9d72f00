// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: twins of queue pairs: making and ending them.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "uplink.h"

static_assert(!((BIT(VMRI_EVENT_QP_FATAL) | BIT(VMRI_EVENT_QP_REQ_ERR) |
		 BIT(VMRI_EVENT_QP_ACCESS_ERR) | BIT(VMRI_EVENT_COMM_EST)) &
		BIT(UPLINK_QP_READY)));

/* ---- what the NIC calls ---- */

/**
 * uplink_qp_make_ready() - have the runner look at a queue pair
 * @qp:		queue pair, of which somebody has a reference
 *
 * Context: any.
 */
void uplink_qp_make_ready(struct uplink_qp *qp)
{
	struct uplink *up = qp->twin.up;
	unsigned long flags;

	spin_lock_irqsave(&up->lock, flags);
	if (!test_and_set_bit(UPLINK_QP_READY, &qp->flags)) {
		uplink_twin_get(&qp->twin);
		list_add_tail(&qp->ready, &up->ready);
	}
	spin_unlock_irqrestore(&up->lock, flags);
	uplink_kick(up);
}

static void uplink_completion(struct ib_cq *cq, void *context)
{
	uplink_qp_make_ready(context);
}

/* A queue of completions that fails, or overflows: the NIC is broken. */
static void uplink_cq_event(struct ib_event *event, void *context)
{
	struct uplink_qp *qp = context;

	set_bit(VMRI_EVENT_QP_FATAL, &qp->flags);
	uplink_qp_make_ready(qp);
}

static void uplink_qp_event(struct ib_event *event, void *context)
{
	struct uplink_qp *qp = context;

	switch (event->event) {
	case IB_EVENT_QP_FATAL:
		set_bit(VMRI_EVENT_QP_FATAL, &qp->flags);
		break;
	case IB_EVENT_QP_REQ_ERR:
		set_bit(VMRI_EVENT_QP_REQ_ERR, &qp->flags);
		break;
	case IB_EVENT_QP_ACCESS_ERR:
		set_bit(VMRI_EVENT_QP_ACCESS_ERR, &qp->flags);
		break;
	case IB_EVENT_COMM_EST:
		set_bit(VMRI_EVENT_COMM_EST, &qp->flags);
		break;
	default:
		return;
	}
	uplink_qp_make_ready(qp);
}

/* ---- what the requests need here ---- */

static int uplink_wq_init(struct uplink_wq *wq, u32 max_wr)
{
	if (!max_wr)
		return 0;
	wq->size = roundup_pow_of_two(max_wr);
	wq->slots = kvcalloc(wq->size, sizeof(*wq->slots), GFP_KERNEL);
	return wq->slots ? 0 : -ENOMEM;
}

static int uplink_inline_page(struct uplink_qp *qp, u32 i)
{
	struct ib_device *ibdev = qp->twin.up->ibdev;
	void *page = (void *)get_zeroed_page(GFP_KERNEL);

	if (!page)
		return -ENOMEM;
	qp->inl.dma[i] = ib_dma_map_single(ibdev, page, PAGE_SIZE,
					   DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ibdev, qp->inl.dma[i])) {
		free_page((unsigned long)page);
		return -EIO;
	}
	qp->inl.pages[i] = page;
	qp->inl.nr_pages++;
	return 0;
}

static int uplink_inline_init(struct uplink_qp *qp, u32 max_inline)
{
	struct uplink_inline *inl = &qp->inl;
	u32 i, pages;
	int ret = 0;

	if (!max_inline || !qp->sq.size)
		return 0;
	inl->stride = roundup_pow_of_two(max_inline);
	pages = PFN_UP((u64)inl->stride * qp->sq.size);
	inl->pages = kvcalloc(pages, sizeof(*inl->pages), GFP_KERNEL);
	inl->dma = kvcalloc(pages, sizeof(*inl->dma), GFP_KERNEL);
	if (!inl->pages || !inl->dma)
		return -ENOMEM;
	for (i = 0; i < pages && !ret; i++)
		ret = uplink_inline_page(qp, i);
	return ret;
}

static void uplink_qp_free(struct uplink_qp *qp)
{
	struct uplink_inline *inl = &qp->inl;

	while (inl->nr_pages) {
		u32 i = --inl->nr_pages;

		ib_dma_unmap_single(qp->twin.up->ibdev, inl->dma[i], PAGE_SIZE,
				    DMA_TO_DEVICE);
		free_page((unsigned long)inl->pages[i]);
	}
	kvfree(inl->dma);
	kvfree(inl->pages);
	kvfree(qp->sq.slots);
	kvfree(qp->rq.slots);
}

static int uplink_qp_init(struct uplink_qp *qp,
			  const struct vmri_uplink_msg *msg)
{
	int ret;

	qp->state = IB_QPS_RESET;
	qp->ended = true;
	mutex_init(&qp->poll_lock);
	init_waitqueue_head(&qp->drained);
	INIT_LIST_HEAD(&qp->ready);

	ret = uplink_wq_init(&qp->sq, msg->u.qp.max_send_wr);
	if (!ret)
		ret = uplink_wq_init(&qp->rq, msg->u.qp.max_recv_wr);
	if (!ret)
		ret = uplink_inline_init(qp, msg->u.qp.max_inline);
	return ret;
}

/* ---- on the NIC ---- */

static int uplink_qp_check(const struct uplink *up,
			   const struct vmri_uplink_msg *msg)
{
	if (msg->u.qp.max_send_wr > up->caps.max_qp_wr ||
	    msg->u.qp.max_recv_wr > up->caps.max_qp_wr ||
	    msg->u.qp.max_send_sge > up->caps.max_sge ||
	    msg->u.qp.max_recv_sge > up->caps.max_sge ||
	    msg->u.qp.max_inline > up->caps.max_inline)
		return -EINVAL;
	return msg->u.qp.type == VMRI_QPT_RC || msg->u.qp.type == VMRI_QPT_UC ?
	       0 : -EOPNOTSUPP;
}

/* Bytes of a queue, here and, about as much as that, in the NIC's driver. */
static u64 uplink_queue_bytes(u32 max_wr, u32 max_sge, u32 max_inline)
{
	u64 wqe = UPLINK_WQE + (u64)max_sge * sizeof(struct ib_sge);
	u64 slot = sizeof(struct uplink_slot) + wqe + UPLINK_CQE;

	if (max_inline)
		slot += roundup_pow_of_two(max_inline);
	return max_wr ? roundup_pow_of_two(max_wr) * slot : 0;
}

static u32 uplink_qp_kib(const struct vmri_uplink_msg *msg)
{
	u64 bytes = uplink_queue_bytes(msg->u.qp.max_send_wr,
				       msg->u.qp.max_send_sge,
				       msg->u.qp.max_inline) +
		    uplink_queue_bytes(msg->u.qp.max_recv_wr,
				       msg->u.qp.max_recv_sge, 0);

	return UPLINK_QP_KIB + DIV_ROUND_UP_ULL(bytes, SZ_1K);
}

/* Both directions complete in one queue, which holds all there can be. */
static int uplink_create_cq(struct uplink_qp *qp)
{
	struct ib_device *ibdev = qp->twin.up->ibdev;
	struct ib_cq_init_attr attr = {
		.cqe = max(qp->sq.size + qp->rq.size, 1U),
		.comp_vector = qp->twin.name % ibdev->num_comp_vectors,
	};
	struct ib_cq *cq;

	cq = ib_create_cq(ibdev, uplink_completion, uplink_cq_event, qp, &attr);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	qp->ibcq = cq;
	return ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
}

static int uplink_create_qp(struct uplink_qp *qp,
			    const struct vmri_uplink_msg *msg)
{
	struct ib_qp_init_attr init = {
		.event_handler = uplink_qp_event,
		.qp_context = qp,
		.send_cq = qp->ibcq,
		.recv_cq = qp->ibcq,
		.cap = {
			.max_send_wr = max(qp->sq.size, 1U),
			.max_recv_wr = max(qp->rq.size, 1U),
			.max_send_sge = max(msg->u.qp.max_send_sge, 1U),
			.max_recv_sge = max(msg->u.qp.max_recv_sge, 1U),
		},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = msg->u.qp.type == VMRI_QPT_RC ? IB_QPT_RC :
							   IB_QPT_UC,
		.port_num = UPLINK_PORT,
	};
	struct ib_qp *ibqp = ib_create_qp(qp->twin.pd->ibpd, &init);

	if (IS_ERR(ibqp))
		return PTR_ERR(ibqp);
	qp->ibqp = ibqp;
	return 0;
}

/* Nobody makes it ready any more. */
static void uplink_qp_unready(struct uplink_qp *qp)
{
	struct uplink *up = qp->twin.up;
	bool was;

	spin_lock_irq(&up->lock);
	was = test_and_clear_bit(UPLINK_QP_READY, &qp->flags);
	if (was)
		list_del(&qp->ready);
	spin_unlock_irq(&up->lock);
	if (was)
		uplink_twin_put(&qp->twin);
}

/* The NIC lets go of it, perhaps made in part, and then its memory goes. */
static void uplink_qp_end(struct uplink_qp *qp)
{
	int ret = qp->ibqp ? ib_destroy_qp(qp->ibqp) : 0;

	if (!ret && qp->ibcq)
		ret = ib_destroy_cq_user(qp->ibcq, NULL);
	if (ret) {
		uplink_twin_lose(&qp->twin, ret);
		return;
	}
	uplink_qp_unready(qp);
	uplink_qp_free(qp);
}

/* From now on it is polled: what came before, too. */
static void uplink_qp_begin(struct uplink_qp *qp)
{
	mutex_lock(&qp->poll_lock);
	qp->ended = false;
	mutex_unlock(&qp->poll_lock);
	uplink_qp_make_ready(qp);
}

/**
 * uplink_qp_create() - make the twin of a queue pair
 * @qp:		twin with its protection domain
 * @msg:	VMRI_UPLINK_CREATE_QP
 * @qpn:	set to its number
 *
 * Context: may sleep.
 * Return: 0 or a negative errno: nothing is left then.
 */
int uplink_qp_create(struct uplink_qp *qp, const struct vmri_uplink_msg *msg,
		     u32 *qpn)
{
	int ret = uplink_qp_check(qp->twin.up, msg);

	if (!ret)
		ret = uplink_twin_charge(&qp->twin, uplink_qp_kib(msg));
	if (!ret)
		ret = uplink_qp_init(qp, msg);
	if (!ret)
		ret = uplink_create_cq(qp);
	if (!ret)
		ret = uplink_create_qp(qp, msg);
	if (ret) {
		uplink_qp_end(qp);
		return ret;
	}
	*qpn = qp->ibqp->qp_num;
	uplink_qp_begin(qp);
	return 0;
}

/**
 * uplink_qp_destroy() - end the twin of a queue pair
 * @qp:		twin that was made; the runner posts nothing to it any more
 *
 * Context: may sleep.
 */
void uplink_qp_destroy(struct uplink_qp *qp)
{
	uplink_qp_drain(qp);
	mutex_lock(&qp->poll_lock);
	qp->ended = true;
	mutex_unlock(&qp->poll_lock);

	uplink_qp_end(qp);
}
