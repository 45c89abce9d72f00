// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: the states of queue pairs' twins.
 */
#include <linux/jiffies.h>

#include "uplink.h"

/* A NIC that does not flush a queue within this time is not waited for. */
#define UPLINK_DRAIN_TIME	(30 * HZ)
#define UPLINK_DRAIN_CLOSING	(2 * HZ)

static_assert(IB_QPS_RTR == (int)VMRI_QPS_RTR &&
	      IB_QPS_RTS == (int)VMRI_QPS_RTS &&
	      IB_QPS_ERR == (int)VMRI_QPS_ERR &&
	      IB_QPS_RESET == (int)VMRI_QPS_RESET);
static_assert(IB_QP_ACCESS_FLAGS == (int)VMRI_QPA_ACCESS_FLAGS &&
	      IB_QP_MIN_RNR_TIMER == (int)VMRI_QPA_MIN_RNR_TIMER);

static int uplink_enter(struct uplink_qp *qp, struct ib_qp_attr *attr, int mask)
{
	int ret = ib_modify_qp(qp->ibqp, attr, mask | IB_QP_STATE);

	if (!ret)
		qp->state = attr->qp_state;
	return ret;
}

static bool uplink_is_drained(const struct uplink_qp *qp)
{
	return READ_ONCE(qp->sq.cons) == READ_ONCE(qp->sq.prod) &&
	       READ_ONCE(qp->rq.cons) == READ_ONCE(qp->rq.prod);
}

static bool uplink_flush_nic(struct uplink_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	unsigned long time = READ_ONCE(qp->twin.up->closing) ?
			     UPLINK_DRAIN_CLOSING : UPLINK_DRAIN_TIME;

	return !uplink_enter(qp, &attr, 0) &&
	       wait_event_timeout(qp->drained, uplink_is_drained(qp), time);
}

/* Have the NIC forget what it does not give back; the runner then does. */
static void uplink_give_up(struct uplink_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	pr_warn_ratelimited("softib_uplink: QP %u did not drain\n",
			    qp->ibqp->qp_num);
	ib_modify_qp(qp->ibqp, &attr, IB_QP_STATE);
	qp->state = IB_QPS_RESET;
	WRITE_ONCE(qp->stuck, true);
	uplink_qp_make_ready(qp);
	wait_event(qp->drained, uplink_is_drained(qp));
}

/**
 * uplink_qp_drain() - have nothing under way
 * @qp:		twin, that is in its error state then, or stuck
 *
 * Waits until the runner has handed back the last request.
 *
 * Context: may sleep.
 */
void uplink_qp_drain(struct uplink_qp *qp)
{
	if (qp->state != IB_QPS_RESET && !uplink_flush_nic(qp))
		uplink_give_up(qp);
}

static int uplink_qp_reset(struct uplink_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	uplink_qp_drain(qp);
	return qp->state == IB_QPS_RESET ? 0 : uplink_enter(qp, &attr, 0);
}

static int uplink_qp_access(const struct uplink_qp *qp,
			    const struct vmri_qp_modify *m)
{
	int access = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;

	if (qp->twin.up->caps.atomics)
		access |= IB_ACCESS_REMOTE_ATOMIC;
	return m->access_flags & access;
}

static bool uplink_is_rc(const struct uplink_qp *qp)
{
	return qp->ibqp->qp_type == IB_QPT_RC;
}

/* From anywhere to RTR. */
static int uplink_qp_connect(struct uplink_qp *qp,
			     const struct vmri_qp_modify *m)
{
	const struct vmri_uplink_caps *caps = &qp->twin.up->caps;
	struct ib_qp_attr attr = {
		.port_num = UPLINK_PORT,
		.qp_access_flags = uplink_qp_access(qp, m),
		/* Both hosts do the same: a guest may know more of its own. */
		.path_mtu = min(m->path_mtu, caps->mtu),
		.dest_qp_num = m->dest_qpn,
		.rq_psn = m->rq_psn,
		.min_rnr_timer = m->min_rnr_timer,
		.max_dest_rd_atomic = min_t(u32, m->max_dest_rd_atomic,
					    caps->max_rd_atomic),
	};
	int ret, mask = IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			IB_QP_RQ_PSN;

	if (uplink_is_rc(qp))
		mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;

	ret = uplink_resolve(qp, &m->av, &attr.ah_attr);
	if (!ret)
		ret = uplink_qp_reset(qp);
	if (ret)
		return ret;
	if (qp->stuck)
		return -EIO;

	attr.qp_state = IB_QPS_INIT;
	ret = uplink_enter(qp, &attr, IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;
	attr.qp_state = IB_QPS_RTR;
	return uplink_enter(qp, &attr, mask);
}

/*
 * 7 is seven times (IBTA 1.4, 9.9.2.1.1).  Soft-RoCE takes it for ever: the peer of a
 * queue pair that has gone would never hear of it.
 */
static u8 uplink_max_retry(const struct uplink_qp *qp)
{
	bool soft = qp->twin.up->ibdev->ops.driver_id == RDMA_DRIVER_RXE;

	return soft ? 6 : 7;
}

/* From RTR to RTS. */
static int uplink_qp_activate(struct uplink_qp *qp,
			      const struct vmri_qp_modify *m)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.qp_access_flags = uplink_qp_access(qp, m),
		.sq_psn = m->sq_psn,
		.timeout = m->timeout,
		.retry_cnt = min(m->retry_cnt, uplink_max_retry(qp)),
		.rnr_retry = m->rnr_retry,
		.min_rnr_timer = m->min_rnr_timer,
		.max_rd_atomic = min_t(u32, m->max_rd_atomic,
				       qp->twin.up->caps.max_rd_atomic),
	};
	int mask = IB_QP_SQ_PSN | IB_QP_ACCESS_FLAGS;

	if (uplink_is_rc(qp))
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	return uplink_enter(qp, &attr, mask);
}

/* What can change in RTS. */
static int uplink_qp_adjust(struct uplink_qp *qp,
			    const struct vmri_qp_modify *m)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.qp_access_flags = uplink_qp_access(qp, m),
		.min_rnr_timer = m->min_rnr_timer,
	};

	if (m->mask & ~(VMRI_QPA_STATE | VMRI_QPA_CUR_STATE |
			VMRI_QPA_ACCESS_FLAGS | VMRI_QPA_MIN_RNR_TIMER))
		return -EOPNOTSUPP;
	return uplink_enter(qp, &attr, m->mask & (VMRI_QPA_ACCESS_FLAGS |
						  VMRI_QPA_MIN_RNR_TIMER));
}

/**
 * uplink_qp_modify() - have the twin follow its queue pair
 * @qp:		twin
 * @m:		all attributes
 *
 * Context: may sleep.
 * Return: 0 or a negative errno: the state is not what it should be then.
 */
int uplink_qp_modify(struct uplink_qp *qp, const struct vmri_qp_modify *m)
{
	switch (m->state) {
	case VMRI_QPS_RTR:
		return uplink_qp_connect(qp, m);
	case VMRI_QPS_RTS:
		return qp->state == IB_QPS_RTS ? uplink_qp_adjust(qp, m) :
						 uplink_qp_activate(qp, m);
	case VMRI_QPS_ERR:
		uplink_qp_drain(qp);
		return 0;
	case VMRI_QPS_RESET:
		return uplink_qp_reset(qp);
	default:
		return -EINVAL;
	}
}
