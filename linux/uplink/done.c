// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: what comes back: completions, the NIC's events, and what workers
 * have done.  All of it goes to VMRI in batches, by the runner.
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "uplink.h"

#define UPLINK_POLL		16	/* completions at a time */
#define UPLINK_POLL_TURNS	8	/* of one queue pair, till others get theirs */
#define UPLINK_QPS		64	/* till the ring gets its turn */

static_assert(IB_WC_SUCCESS == (int)VMRI_WC_SUCCESS &&
	      IB_WC_WR_FLUSH_ERR == (int)VMRI_WC_WR_FLUSH_ERR &&
	      IB_WC_REM_ACCESS_ERR == (int)VMRI_WC_REM_ACCESS_ERR &&
	      IB_WC_RETRY_EXC_ERR == (int)VMRI_WC_RETRY_EXC_ERR &&
	      IB_WC_GENERAL_ERR == (int)VMRI_WC_GENERAL_ERR);

/* ---- to VMRI ---- */

/**
 * uplink_flush() - hand over what there is
 * @up:		uplink; the caller is its runner
 *
 * Also when there is nothing, and VMRI waits for room in the ring.
 */
void uplink_flush(struct uplink *up)
{
	u32 taken = 0;
	int ret;

	if (!up->nr_results && !READ_ONCE(up->ring.hdr->full))
		return;

	do {
		cond_resched();
		ret = uplink_hcall_done(up, up->results + taken,
					up->nr_results - taken);
		if (ret > 0)
			taken += ret;
	} while (ret == -EBUSY || (ret > 0 && taken < up->nr_results));
	if (ret < 0 || taken < up->nr_results)
		pr_err_ratelimited("softib_uplink: VMRI takes no results: %d\n",
				   ret);
	up->nr_results = 0;
}

/* Keep it for the next batch. */
void uplink_put_result(struct uplink *up,
		       const struct vmri_uplink_result *result)
{
	if (up->nr_results == VMRI_UPLINK_RESULTS)
		uplink_flush(up);
	up->results[up->nr_results++] = *result;
}

/**
 * uplink_take_answers() - hand over what workers have done
 * @up:		uplink; the caller is its runner
 */
void uplink_take_answers(struct uplink *up)
{
	struct uplink_op *op, *next;
	LIST_HEAD(answers);

	if (list_empty_careful(&up->answers))
		return;
	spin_lock_irq(&up->lock);
	list_splice_init(&up->answers, &answers);
	spin_unlock_irq(&up->lock);

	list_for_each_entry_safe(op, next, &answers, entry) {
		/* What ends with the uplink VMRI has not asked for. */
		if (op->type != VMRI_UPLINK_DESTROY || !up->closing)
			uplink_put_result(up, &op->result);
		switch (op->type) {
		case VMRI_UPLINK_MODIFY:
			kfree(op);
			break;
		case VMRI_UPLINK_DESTROY:
			up->nr_twins--;
			uplink_guest_put(up, op->twin->guest);
			uplink_twin_put(op->twin);
			break;
		}
	}
}

/* ---- completions ---- */

static u8 uplink_status(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
	case IB_WC_LOC_LEN_ERR:
	case IB_WC_LOC_QP_OP_ERR:
	case IB_WC_LOC_PROT_ERR:
	case IB_WC_WR_FLUSH_ERR:
	case IB_WC_LOC_ACCESS_ERR:
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_REM_ACCESS_ERR:
	case IB_WC_REM_OP_ERR:
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
	case IB_WC_FATAL_ERR:
		return status;
	default:
		return VMRI_WC_GENERAL_ERR;
	}
}

/* What VMRI would call it, as far as the NIC's status tells. */
static u16 uplink_reason(u8 status)
{
	switch (status) {
	case VMRI_WC_WR_FLUSH_ERR:
		return VMRI_VERR_FLUSHED;
	case VMRI_WC_LOC_LEN_ERR:
		return VMRI_VERR_LENGTH;
	case VMRI_WC_REM_ACCESS_ERR:
		return VMRI_VERR_RIGHTS;
	case VMRI_WC_RETRY_EXC_ERR:
		return VMRI_VERR_NO_PEER;
	case VMRI_WC_RNR_RETRY_EXC_ERR:
		return VMRI_VERR_NO_RECV;
	default:
		return VMRI_VERR_NONE;
	}
}

/* A request at the head of its queue has come back. */
static void uplink_report(struct uplink *up, struct uplink_qp *qp, bool recv,
			  const struct uplink_slot *slot, u8 status,
			  const struct ib_wc *wc)
{
	struct vmri_uplink_result result = {
		.twin = qp->twin.name,
		.type = recv ? VMRI_UPLINK_RECEIVED : VMRI_UPLINK_SENT,
		.status = status,
		.opcode = slot->opcode,
		.wr_id = slot->wr_id,
		.byte_len = slot->length,
		.vendor_err = uplink_reason(status),
	};

	if (!recv) {
		result.flags = slot->flags & VMRI_SEND_SIGNALED;
	} else if (wc && !status) {
		if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
			result.opcode = VMRI_WC_OP_RECV_RDMA_WITH_IMM;
		/*
		 * Whether it was solicited NICs do not say: who waits for such
		 * ones is rather woken too often.
		 */
		result.flags = VMRI_WC_SOLICITED;
		if (wc->wc_flags & IB_WC_WITH_IMM) {
			result.flags |= VMRI_WC_WITH_IMM;
			result.imm = (__force u32)wc->ex.imm_data;
		}
		result.byte_len = wc->byte_len;
	}
	uplink_put_result(up, &result);
}

/**
 * uplink_settle() - report what was refused, when it is its turn
 * @up:		uplink; the caller is its runner
 * @qp:		twin
 * @recv:	its receive queue, else the send queue
 */
void uplink_settle(struct uplink *up, struct uplink_qp *qp, bool recv)
{
	struct uplink_wq *wq = recv ? &qp->rq : &qp->sq;

	while (wq->cons != wq->prod && uplink_slot(wq, wq->cons)->refused) {
		uplink_report(up, qp, recv, uplink_slot(wq, wq->cons),
			      VMRI_WC_LOC_QP_OP_ERR, NULL);
		WRITE_ONCE(wq->cons, wq->cons + 1);
		wake_up(&qp->drained);
	}
}

static void uplink_completed(struct uplink *up, struct uplink_qp *qp,
			     const struct ib_wc *wc)
{
	bool recv = wc->wr_id & 1;
	struct uplink_wq *wq = recv ? &qp->rq : &qp->sq;

	/* They come back in order; else the queue pair is of no use. */
	if (WARN_ON_ONCE(wq->cons == wq->prod ||
			 (u32)(wc->wr_id >> 1) != wq->cons)) {
		set_bit(VMRI_EVENT_QP_FATAL, &qp->flags);
		return;
	}
	uplink_report(up, qp, recv, uplink_slot(wq, wq->cons),
		      uplink_status(wc->status), wc);
	WRITE_ONCE(wq->cons, wq->cons + 1);
	uplink_settle(up, qp, recv);
}

/* What the NIC does not give back. */
static void uplink_abandon(struct uplink *up, struct uplink_qp *qp, bool recv)
{
	struct uplink_wq *wq = recv ? &qp->rq : &qp->sq;

	while (wq->cons != wq->prod) {
		uplink_report(up, qp, recv, uplink_slot(wq, wq->cons),
			      VMRI_WC_WR_FLUSH_ERR, NULL);
		WRITE_ONCE(wq->cons, wq->cons + 1);
	}
}

/* Return: there may be more. */
static bool uplink_poll_nic(struct uplink *up, struct uplink_qp *qp)
{
	int i, n, turns = UPLINK_POLL_TURNS;
	struct ib_wc wc[UPLINK_POLL];

	do {
		n = ib_poll_cq(qp->ibcq, UPLINK_POLL, wc);
		for (i = 0; i < n; i++)
			uplink_completed(up, qp, &wc[i]);
	} while (n == UPLINK_POLL && --turns);
	return n == UPLINK_POLL;
}

static void uplink_report_events(struct uplink *up, struct uplink_qp *qp)
{
	static const u8 events[] = {
		VMRI_EVENT_COMM_EST, VMRI_EVENT_QP_REQ_ERR,
		VMRI_EVENT_QP_ACCESS_ERR, VMRI_EVENT_QP_FATAL,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		struct vmri_uplink_result result = {
			.twin = qp->twin.name,
			.type = VMRI_UPLINK_EVENT,
			.event = events[i],
		};

		if (test_and_clear_bit(events[i], &qp->flags))
			uplink_put_result(up, &result);
	}
}

/* Return: there may be more. */
static bool uplink_poll(struct uplink *up, struct uplink_qp *qp)
{
	bool more = false, stuck = READ_ONCE(qp->stuck);

	if (stuck) {
		uplink_abandon(up, qp, false);
		uplink_abandon(up, qp, true);
	} else {
		more = uplink_poll_nic(up, qp);
	}
	uplink_report_events(up, qp);

	/* Pairs with the queue that the worker looks from. */
	if (wq_has_sleeper(&qp->drained))
		wake_up(&qp->drained);
	return more ||
	       (!stuck && ib_req_notify_cq(qp->ibcq, IB_CQ_NEXT_COMP |
					   IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static struct uplink_qp *uplink_next_ready(struct uplink *up)
{
	struct uplink_qp *qp;

	spin_lock_irq(&up->lock);
	qp = list_first_entry_or_null(&up->ready, struct uplink_qp, ready);
	if (qp) {
		list_del(&qp->ready);
		clear_bit(UPLINK_QP_READY, &qp->flags);
	}
	spin_unlock_irq(&up->lock);
	return qp;
}

/**
 * uplink_poll_ready() - collect completions
 * @up:		uplink; the caller is its runner
 */
void uplink_poll_ready(struct uplink *up)
{
	struct uplink_qp *qp;
	unsigned int n;

	for (n = 0; n < UPLINK_QPS; n++) {
		qp = uplink_next_ready(up);
		if (!qp)
			return;
		mutex_lock(&qp->poll_lock);
		if (!qp->ended && uplink_poll(up, qp))
			uplink_qp_make_ready(qp);
		mutex_unlock(&qp->poll_lock);
		uplink_twin_put(&qp->twin);
	}
}
