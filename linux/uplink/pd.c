// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: protection domains on the NIC, one for each of a guest's that
 * has twins.
 *
 * Memory is registered by a request on a queue pair that is ready to send, and of
 * the same domain.  The guests register before they connect, so each domain has a
 * queue pair of its own for that, connected to itself, which sends nothing.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "uplink.h"

/* A NIC that does not register within this time is broken. */
#define UPLINK_REGISTER_TIME	(10 * HZ)

static void uplink_registered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct uplink_registration *reg =
		container_of(wc->wr_cqe, struct uplink_registration, cqe);

	reg->status = wc->status;
	complete(&reg->done);
}

/* ---- the registering queue pair ---- */

/* It is its own peer. */
static int uplink_own_address(struct uplink *up, struct rdma_ah_attr *ah)
{
	const struct ib_gid_attr *sgid = uplink_find_gid(up, NULL);
	union ib_gid gid;
	int ret;

	if (IS_ERR(sgid))
		return PTR_ERR(sgid);

	gid = sgid->gid;
	ah->type = rdma_ah_find_type(up->ibdev, UPLINK_PORT);
	rdma_ah_set_port_num(ah, UPLINK_PORT);
	rdma_ah_set_grh(ah, &gid, 0, sgid->index, 1, 0);
	ret = rdma_read_gid_l2_fields(sgid, NULL, ah->roce.dmac);
	rdma_put_gid_attr(sgid);
	return ret;
}

static int uplink_pd_connect(struct uplink *up, struct uplink_pd *pd)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RESET,
		.port_num = UPLINK_PORT,
		.path_mtu = IB_MTU_256,
		.dest_qp_num = pd->qp->qp_num,
	};
	int ret;

	ret = uplink_own_address(up, &attr.ah_attr);
	if (!ret)
		ret = ib_modify_qp(pd->qp, &attr, IB_QP_STATE);
	if (ret)
		return ret;

	attr.qp_state = IB_QPS_INIT;
	ret = ib_modify_qp(pd->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			   IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;
	attr.qp_state = IB_QPS_RTR;
	ret = ib_modify_qp(pd->qp, &attr, IB_QP_STATE | IB_QP_AV |
			   IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			   IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;
	attr.qp_state = IB_QPS_RTS;
	ret = ib_modify_qp(pd->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
			   IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			   IB_QP_MAX_QP_RD_ATOMIC);
	pd->connected = !ret;
	return ret;
}

static int uplink_pd_create_qp(struct uplink *up, struct uplink_pd *pd)
{
	struct ib_qp_init_attr init = {
		.cap = {
			.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
		.port_num = UPLINK_PORT,
	};
	int ret;

	pd->cq = ib_alloc_cq(up->ibdev, pd, 2, 0, IB_POLL_UNBOUND_WORKQUEUE);
	if (IS_ERR(pd->cq))
		return PTR_ERR(pd->cq);

	init.send_cq = pd->cq;
	init.recv_cq = pd->cq;
	pd->qp = ib_create_qp(pd->ibpd, &init);
	if (!IS_ERR(pd->qp))
		return 0;
	ret = PTR_ERR(pd->qp);
	ib_free_cq(pd->cq);
	return ret;
}

static int uplink_pd_open(struct uplink *up, struct uplink_pd *pd)
{
	int ret = uplink_budget_take(pd->domid, UPLINK_QP_KIB);
	struct ib_pd *ibpd;

	if (ret)
		return ret;
	ibpd = ib_alloc_pd(up->ibdev, 0);
	if (IS_ERR(ibpd)) {
		ret = PTR_ERR(ibpd);
		goto err_budget;
	}

	pd->ibpd = ibpd;
	ret = uplink_pd_create_qp(up, pd);
	if (ret)
		goto err_pd;
	return 0;

err_pd:
	ib_dealloc_pd(ibpd);
	pd->ibpd = NULL;
err_budget:
	uplink_budget_give(pd->domid, UPLINK_QP_KIB);
	return ret;
}

static void uplink_pd_close(struct uplink *up, struct uplink_pd *pd)
{
	int ret = pd->ibpd && pd->qp ? ib_destroy_qp(pd->qp) : 0;

	if (ret) {
		uplink_lose(up, "protection domain", ret);
		return;
	}
	if (pd->ibpd) {
		ib_free_cq(pd->cq);
		ib_dealloc_pd(pd->ibpd);
		uplink_budget_give(pd->domid, UPLINK_QP_KIB);
	}
	kfree(pd);
}

/* ---- users ---- */

static struct uplink_pd *uplink_pd_find(struct uplink *up,
					const struct vmri_uplink_msg *msg)
{
	struct uplink_pd *pd;

	list_for_each_entry(pd, &up->pds, entry)
		if (pd->domid == msg->domid && pd->dev_id == msg->dev_id &&
		    pd->pd == msg->pd)
			return pd;

	pd = kzalloc(sizeof(*pd), GFP_KERNEL);
	if (!pd)
		return NULL;
	pd->domid = msg->domid;
	pd->dev_id = msg->dev_id;
	pd->pd = msg->pd;
	mutex_init(&pd->lock);
	init_completion(&pd->reg.done);
	pd->reg.cqe.done = uplink_registered;
	list_add(&pd->entry, &up->pds);
	return pd;
}

/**
 * uplink_pd_get() - the protection domain for a twin
 * @up:		uplink
 * @msg:	who it belongs to
 *
 * Return: one that is open, for uplink_pd_put(); or an error pointer.
 */
struct uplink_pd *uplink_pd_get(struct uplink *up,
				const struct vmri_uplink_msg *msg)
{
	struct uplink_pd *pd;
	int ret = 0;

	mutex_lock(&up->pds_lock);
	pd = uplink_pd_find(up, msg);
	if (pd)
		pd->users++;
	mutex_unlock(&up->pds_lock);
	if (!pd)
		return ERR_PTR(-ENOMEM);

	mutex_lock(&pd->lock);
	if (!pd->ibpd)
		ret = uplink_pd_open(up, pd);
	mutex_unlock(&pd->lock);
	if (ret) {
		uplink_pd_put(up, pd);
		return ERR_PTR(ret);
	}
	return pd;
}

void uplink_pd_put(struct uplink *up, struct uplink_pd *pd)
{
	bool last;

	mutex_lock(&up->pds_lock);
	last = !--pd->users;
	if (last)
		list_del(&pd->entry);
	mutex_unlock(&up->pds_lock);
	if (last)
		uplink_pd_close(up, pd);
}

static bool uplink_pd_flush(struct uplink_pd *pd)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return !ib_modify_qp(pd->qp, &attr, IB_QP_STATE) &&
	       wait_for_completion_timeout(&pd->reg.done, UPLINK_REGISTER_TIME);
}

/* Have the request come back, as an error when it takes too long. */
static int uplink_pd_wait(struct uplink_pd *pd)
{
	if (wait_for_completion_timeout(&pd->reg.done, UPLINK_REGISTER_TIME))
		return 0;
	pd->connected = false;
	if (!uplink_pd_flush(pd)) {
		pd->broken = true;
		/* The NIC is to forget the region before that goes. */
		if (!ib_destroy_qp(pd->qp))
			pd->qp = NULL;
	}
	return -ETIMEDOUT;
}

/* Return: also -EAGAIN: the queue pair had failed before. */
static int uplink_pd_try(struct uplink *up, struct uplink_pd *pd,
			 const struct ib_send_wr *wr)
{
	int ret = 0;

	if (pd->broken)
		return -EIO;
	if (!pd->connected)
		ret = uplink_pd_connect(up, pd);
	if (ret)
		return ret;

	reinit_completion(&pd->reg.done);
	ret = ib_post_send(pd->qp, wr, NULL);
	if (!ret)
		ret = uplink_pd_wait(pd);
	if (ret || pd->reg.status == IB_WC_SUCCESS)
		return ret;
	/* An error has taken the queue pair to its error state. */
	pd->connected = false;
	return pd->reg.status == IB_WC_WR_FLUSH_ERR ? -EAGAIN : -EIO;
}

/**
 * uplink_pd_register() - have the NIC know a memory region
 * @up:		uplink
 * @pd:		protection domain of the region
 * @ibmr:	region, with its pages and its address
 * @access:	IB_ACCESS_*
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int uplink_pd_register(struct uplink *up, struct uplink_pd *pd,
		       struct ib_mr *ibmr, int access)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &pd->reg.cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = ibmr,
		.key = ibmr->rkey,
		.access = access,
	};
	int ret;

	mutex_lock(&pd->lock);
	ret = uplink_pd_try(up, pd, &wr.wr);
	if (ret == -EAGAIN)
		ret = uplink_pd_try(up, pd, &wr.wr);
	mutex_unlock(&pd->lock);
	return ret;
}
