// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: completing requests when the device goes.
 *
 * VMRI completes whatever is posted, until dom0 takes the device away.  Kernel
 * users wait for their requests when they let go of a device (ib_drain_qp()), so
 * somebody has to do it then.  For processes the provider does, as soon as it
 * sees a completion queue marked dead.
 */

#include "ring.h"
#include "softib.h"

/* What VMRI does to complete a request, but for events. */
static void softib_cq_push(struct softib_cq *cq, const struct vmri_cqe *cqe)
{
	u32 prod;

	spin_lock(&cq->lock);
	prod = READ_ONCE(cq->hdr->prod);
	if (prod - cq->cons < cq->entries) {
		cq->ring[prod & (cq->entries - 1)] = *cqe;
		ring_store(&cq->hdr->prod, prod + 1);
	}
	spin_unlock(&cq->lock);
}

static void softib_flush_wq(struct softib_qp *qp, struct softib_wq *wq,
			    struct softib_cq *cq, u8 opcode)
{
	struct vmri_cqe cqe = {
		.qpn = qp->ibqp.qp_num,
		.status = VMRI_WC_WR_FLUSH_ERR,
		.opcode = opcode,
		.vendor_err = VMRI_VERR_DEVICE,
	};
	unsigned long flags;
	u32 cons;

	if (!wq->entries)
		return;

	spin_lock_irqsave(&wq->lock, flags);
	for (cons = READ_ONCE(wq->hdr->cons); cons != wq->prod; cons++) {
		/* Requests of both directions start with it. */
		cqe.wr_id = *(u64 *)softib_wq_slot(wq, cons);
		softib_cq_push(cq, &cqe);
	}
	ring_store(&wq->hdr->cons, cons);
	spin_unlock_irqrestore(&wq->lock, flags);

	if (READ_ONCE(cq->hdr->arm) != VMRI_ARM_NONE) {
		WRITE_ONCE(cq->hdr->arm, VMRI_ARM_NONE);
		softib_cq_notify(cq);
	}
}

/**
 * softib_flush_qp() - complete all requests of a QP in error
 * @qp:		QP of the kernel, of a device that is gone
 *
 * Context: may sleep.
 */
void softib_flush_qp(struct softib_qp *qp)
{
	softib_settle(to_softib_dev(qp->ibqp.device));
	softib_flush_wq(qp, &qp->sq, to_softib_cq(qp->ibqp.send_cq),
			VMRI_WC_OP_SEND);
	softib_flush_wq(qp, &qp->rq, to_softib_cq(qp->ibqp.recv_cq),
			VMRI_WC_OP_RECV);
	/* Who drains one that shares its receives waits for this. */
	if (qp->ibqp.srq)
		softib_qp_later(qp, VMRI_EVENT_QP_LAST_WQE_REACHED);
}

/* The same for all QPs of the kernel, by and by. */
void softib_flush_all(struct softib_dev *dev)
{
	struct softib_ref *ref;
	unsigned long index;

	xa_lock_irq(&dev->qps);
	xa_for_each(&dev->qps, index, ref)
		if (!softib_qp_of(ref)->user)
			softib_qp_later(softib_qp_of(ref), SOFTIB_QP_FLUSH);
	xa_unlock_irq(&dev->qps);
}

/* A process may write to its ring for as long as it likes. */
#define SOFTIB_FINISH_ROUNDS	64

static void softib_finish_user(struct softib_dev *dev, u32 qpn)
{
	struct vmri_qp_modify cmd = {
		.qpn = qpn,
		.mask = VMRI_QPA_STATE,
		.state = VMRI_QPS_ERR,
	};
	int round;

	if (softib_command(dev, VMRI_OP_qp_modify, &cmd, &cmd.qpn))
		return;
	for (round = 0; round < SOFTIB_FINISH_ROUNDS; round++) {
		if (softib_schedule(dev, qpn) != VMRI_SCHEDULE_MORE)
			return;
		cond_resched();
	}
}

/**
 * softib_finish_users() - have VMRI complete what processes have posted
 * @dev:	device that goes; posting has been made to fail
 *
 * Before their completion queues are marked dead: then the provider completes
 * what it finds, and a request must not be completed by both.
 *
 * Context: may sleep.
 */
void softib_finish_users(struct softib_dev *dev)
{
	struct softib_ref *ref;
	unsigned long index;

	xa_for_each(&dev->qps, index, ref) {
		/* It may be destroyed meanwhile. */
		ref = softib_ref_get(&dev->qps, index);
		if (!ref)
			continue;
		if (softib_qp_of(ref)->user)
			softib_finish_user(dev, index);
		softib_ref_put(ref);
	}
	softib_settle(dev);
}
