// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the states and attributes of queue pairs.  VMRI checks them, too, and
 * has the last word: it knows when an error has changed the state.
 */
#include "softib.h"

#define SOFTIB_PSN_MASK		0xffffff

static_assert(IB_QPS_ERR == (int)VMRI_QPS_ERR);
static_assert(IB_QP_DEST_QPN == (int)VMRI_QPA_DEST_QPN);
static_assert(IB_ACCESS_REMOTE_ATOMIC == (int)VMRI_ACCESS_REMOTE_ATOMIC);

static int softib_modify_cmd(const struct softib_dev *dev,
			     const struct ib_qp_attr *attr, int mask,
			     struct vmri_qp_modify *cmd)
{
	if ((mask & IB_QP_PORT) && attr->port_num != SOFTIB_PORT)
		return -EINVAL;
	if ((mask & IB_QP_AV) &&
	    softib_av_from_attr(dev, &attr->ah_attr, &cmd->av))
		return -EINVAL;
	if (mask & IB_QP_ACCESS_FLAGS) {
		/*
		 * Programs allow all flushes at once; to persistence there is
		 * none, since no memory region allows that. Others, uDAPL's
		 * library among them, allow binding windows, which every
		 * queue may: it is the region that is asked.
		 */
		int access = attr->qp_access_flags &
			     ~(IB_ACCESS_OPTIONAL | IB_ACCESS_FLUSH_PERSISTENT |
			       IB_ACCESS_MW_BIND);

		if (access & ~VMRI_ACCESS_QP)
			return -EOPNOTSUPP;
		cmd->access_flags = access;
	}

	cmd->mask = mask;
	if (mask & IB_QP_STATE)
		cmd->state = attr->qp_state;
	if (mask & IB_QP_CUR_STATE)
		cmd->cur_state = attr->cur_qp_state;
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		cmd->en_sqd_async_notify = attr->en_sqd_async_notify;
	if (mask & IB_QP_PKEY_INDEX)
		cmd->pkey_index = attr->pkey_index;
	if (mask & IB_QP_PORT)
		cmd->port = attr->port_num;
	if (mask & IB_QP_QKEY)
		cmd->qkey = attr->qkey;
	if (mask & IB_QP_PATH_MTU)
		cmd->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		cmd->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		cmd->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		cmd->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		cmd->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_RQ_PSN)
		cmd->rq_psn = attr->rq_psn & SOFTIB_PSN_MASK;
	if (mask & IB_QP_SQ_PSN)
		cmd->sq_psn = attr->sq_psn & SOFTIB_PSN_MASK;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		cmd->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		cmd->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_DEST_QPN)
		cmd->dest_qpn = attr->dest_qp_num;
	return 0;
}

/* The queues of the kernel after a change of state. */
static void softib_qp_enter(struct softib_qp *qp, enum ib_qp_state state)
{
	WRITE_ONCE(qp->state, state);
	if (state == IB_QPS_RESET && !qp->user) {
		softib_qp_clean_cqs(qp);
		softib_wq_reset(&qp->sq);
		softib_wq_reset(&qp->rq);
	}
	/* What is posted can go now, or is to be flushed. */
	if (state == IB_QPS_RTR || state == IB_QPS_RTS || state == IB_QPS_ERR)
		softib_qp_run(qp);
}

int softib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibqp->device);
	struct softib_qp *qp = to_softib_qp(ibqp);
	struct vmri_qp_modify cmd = { .qpn = ibqp->qp_num };
	enum ib_qp_state cur, next;
	int ret;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;

	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, next, ibqp->qp_type, mask))
		return -EINVAL;
	ret = softib_modify_cmd(dev, attr, mask, &cmd);
	if (ret)
		return ret;

	/* A twin changes first. */
	ret = softib_command_again(dev, VMRI_OP_qp_modify, &cmd, &cmd.qpn);
	/* Of a device that is gone nothing runs any more: that is ERR. */
	if (ret == -ENODEV && (next == IB_QPS_ERR || next == IB_QPS_RESET))
		ret = 0;
	if (!ret && (mask & IB_QP_STATE))
		softib_qp_enter(qp, next);
	return ret;
}

int softib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init)
{
	struct softib_dev *dev = to_softib_dev(ibqp->device);
	struct softib_qp *qp = to_softib_qp(ibqp);
	struct vmri_qp_modify cmd = { .qpn = ibqp->qp_num };
	int ret;

	ret = softib_call(dev, VMRI_OP_qp_query, &cmd);
	if (ret)
		return ret;

	*attr = (struct ib_qp_attr) {
		.qp_state = cmd.state,
		.cur_qp_state = cmd.state,
		.path_mtu = cmd.path_mtu,
		.path_mig_state = IB_MIG_MIGRATED,
		.qkey = cmd.qkey,
		.rq_psn = cmd.rq_psn,
		.sq_psn = cmd.sq_psn,
		.dest_qp_num = cmd.dest_qpn,
		.qp_access_flags = cmd.access_flags,
		.cap = qp->cap,
		.pkey_index = cmd.pkey_index,
		.en_sqd_async_notify = cmd.en_sqd_async_notify,
		.sq_draining = cmd.sq_draining,
		.max_rd_atomic = cmd.max_rd_atomic,
		.max_dest_rd_atomic = cmd.max_dest_rd_atomic,
		.min_rnr_timer = cmd.min_rnr_timer,
		.port_num = SOFTIB_PORT,
		.timeout = cmd.timeout,
		.retry_cnt = cmd.retry_cnt,
		.rnr_retry = cmd.rnr_retry,
	};
	softib_av_to_attr(dev, &cmd.av, &attr->ah_attr);

	*init = (struct ib_qp_init_attr) {
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = qp->cap,
		.sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR :
					     IB_SIGNAL_REQ_WR,
		.qp_type = ibqp->qp_type,
		.port_num = SOFTIB_PORT,
	};
	return 0;
}
