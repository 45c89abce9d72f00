// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: queue pairs: creation, destruction, and what events ask for.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_mad.h>
#include <rdma/uverbs_ioctl.h>

#include <uapi/softib-abi.h>

#include "softib.h"

/*
 * Frames of a request on a connection that are reckoned with beyond two for each
 * of its entries, which may be long: 256 KiB.
 */
#define SOFTIB_RC_FRAMES	64

static_assert(IB_QPT_RC == (int)VMRI_QPT_RC &&
	      IB_QPT_UC == (int)VMRI_QPT_UC &&
	      IB_QPT_UD == (int)VMRI_QPT_UD);
static_assert(IB_QPT_XRC_INI == (int)VMRI_QPT_XRC_INI &&
	      IB_QPT_XRC_TGT == (int)VMRI_QPT_XRC_TGT);
static_assert(IB_QPT_SMI == (int)VMRI_QPT_SMI &&
	      IB_QPT_GSI == (int)VMRI_QPT_GSI);

/* ---- layout of the shared memory ---- */

struct softib_layout {
	struct softib_wq_layout sq;
	struct softib_wq_layout rq;
	u32 sq_indirect;	/* entries; powers of two */
	u32 rq_indirect;
	u32 ind_entries;
	u32 max_inline;
	size_t ind_offset;
	size_t size;
};

static int softib_check_cap(const struct softib_dev *dev,
			    const struct ib_qp_cap *cap)
{
	const struct vmri_dev_attr *attr = &dev->attr;

	if (cap->max_send_wr > attr->max_qp_wr ||
	    cap->max_recv_wr > attr->max_qp_wr ||
	    cap->max_send_sge > attr->max_sge ||
	    cap->max_recv_sge > attr->max_sge ||
	    cap->max_inline_data > attr->max_inline)
		return -EINVAL;
	return 0;
}

/*
 * An entry of the kernel covers up to two pages when it is small, so give each
 * slot room for that, and take what is left over in the slot.
 */
static u32 softib_frames(const struct softib_dev *dev, u32 sges, bool user)
{
	return user ? sges : min(2 * sges, dev->attr.max_sge);
}

static u32 softib_indirect_entries(enum ib_qp_type type,
				   const struct softib_wq_layout *l, u32 sges)
{
	bool connected = type == IB_QPT_RC || type == IB_QPT_UC;
	u32 frames = 2 * sges + (connected ? SOFTIB_RC_FRAMES : 0);

	return softib_wq_indirect(l, frames);
}

static void softib_layout_sq(const struct softib_dev *dev,
			     const struct ib_qp_cap *cap, bool user,
			     struct softib_layout *l)
{
	u32 frames = softib_frames(dev, cap->max_send_sge, user);
	u32 room = max_t(u32, frames * sizeof(struct vmri_sge),
			 cap->max_inline_data);

	softib_wq_lay_out(&l->sq, cap->max_send_wr,
			  sizeof(struct vmri_send_wqe), room,
			  dev->attr.max_sge, &l->size);
	if (l->sq.entries)
		l->max_inline = min_t(u32, dev->attr.max_inline, l->sq.stride -
				      sizeof(struct vmri_send_wqe));
}

static void softib_layout_rq(const struct softib_dev *dev,
			     const struct ib_qp_cap *cap, bool user,
			     struct softib_layout *l)
{
	u32 frames = softib_frames(dev, cap->max_recv_sge, user);

	softib_wq_lay_out(&l->rq, cap->max_recv_wr,
			  sizeof(struct vmri_recv_wqe),
			  max(frames, 1U) * sizeof(struct vmri_sge),
			  dev->attr.max_sge, &l->size);
}

/* Header, send queue, receive queue, indirect entries of the kernel's. */
static void softib_layout(const struct softib_dev *dev,
			  const struct ib_qp_init_attr *init, bool user,
			  struct softib_layout *l)
{
	const struct ib_qp_cap *cap = &init->cap;

	memset(l, 0, sizeof(*l));
	if (init->qp_type == IB_QPT_XRC_TGT)
		return;
	l->size = sizeof(struct vmri_qp_hdr);

	softib_layout_sq(dev, cap, user, l);
	softib_layout_rq(dev, cap, user, l);
	if (user || !(l->sq.entries || l->rq.entries))
		return;

	l->sq_indirect = softib_indirect_entries(init->qp_type, &l->sq,
						 cap->max_send_sge);
	l->rq_indirect = softib_indirect_entries(init->qp_type, &l->rq,
						 cap->max_recv_sge);
	l->ind_entries = roundup_pow_of_two(l->sq_indirect + l->rq_indirect);
	l->ind_offset = ALIGN(l->size, sizeof(struct vmri_sge));
	l->size = l->ind_offset +
		  (size_t)l->ind_entries * sizeof(struct vmri_sge);
}

/* ---- creation ---- */

/* What the kernel needs to post to its own queues. */
static int softib_qp_init_wqs(struct softib_qp *qp,
			      const struct softib_layout *l)
{
	struct vmri_sge *ind = qp->region->addr + l->ind_offset;
	int ret;

	ret = softib_wq_init(&qp->sq, &qp->hdr->sq, qp->region, &l->sq,
			     qp->cap.max_send_sge);
	if (ret)
		return ret;
	ret = softib_wq_init(&qp->rq, &qp->hdr->rq, qp->region, &l->rq,
			     qp->cap.max_recv_sge);
	if (ret)
		return ret;

	qp->sq.ind.ring = ind;
	qp->sq.ind.entries = l->sq_indirect;
	qp->rq.ind.ring = ind + l->sq_indirect;
	qp->rq.ind.first = l->sq_indirect;
	qp->rq.ind.entries = l->rq_indirect;
	return 0;
}

static void softib_qp_free(struct softib_qp *qp)
{
	softib_wq_fini(&qp->sq);
	softib_wq_fini(&qp->rq);
	softib_region_destroy(qp->region);
}

static void softib_qp_work(struct work_struct *work);

static int softib_qp_init(struct softib_qp *qp, struct softib_layout *l)
{
	int ret;

	INIT_WORK(&qp->work, softib_qp_work);
	if (!l->size)
		return 0;

	qp->region = softib_region_create(l->size);
	if (!qp->region)
		return -ENOMEM;
	qp->hdr = qp->region->addr;
	if (qp->user)
		return 0;

	ret = softib_qp_init_wqs(qp, l);
	if (ret)
		softib_qp_free(qp);
	return ret;
}

/* What VMRI is to know of what the QP uses. */
static void softib_qp_name_objects(struct softib_qp *qp,
				   const struct ib_qp_init_attr *init,
				   struct vmri_qp_create *cmd)
{
	struct softib_dev *dev = to_softib_dev(qp->ibqp.device);
	struct softib_xrcd *xrcd;

	if (init->qp_type == IB_QPT_XRC_TGT) {
		xrcd = to_softib_xrcd(init->xrcd);
		cmd->pd = xrcd->pd;
		cmd->xrcd = xrcd->handle;
		cmd->eq = dev->eqs[0].handle;
		return;
	}

	cmd->frames = softib_region_frames(qp->region);
	cmd->pd = to_softib_pd(qp->ibqp.pd)->handle;
	cmd->send_cq = to_softib_cq(init->send_cq)->handle;
	cmd->eq = to_softib_cq(init->send_cq)->eq;
	if (init->qp_type != IB_QPT_XRC_INI)
		cmd->recv_cq = to_softib_cq(init->recv_cq)->handle;
	if (init->srq)
		cmd->srq = to_softib_srq(init->srq)->handle;
}

static u32 softib_qp_flags(const struct softib_qp *qp,
			   const struct ib_qp_init_attr *init)
{
	u32 flags = qp->user ? 0 : VMRI_QPF_KERNEL;

	if (init->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK)
		flags |= VMRI_QPF_BLOCK_LOOPBACK;
	return flags;
}

static int softib_qp_register(struct softib_qp *qp,
			      const struct ib_qp_init_attr *init,
			      const struct softib_layout *l)
{
	struct softib_dev *dev = to_softib_dev(qp->ibqp.device);
	struct vmri_qp_create cmd = {
		.type = init->qp_type,
		.flags = softib_qp_flags(qp, init),
		.sq_offset = l->sq.offset,
		.rq_offset = l->rq.offset,
		.ind_offset = l->ind_offset,
		.max_inline = l->max_inline,
	};
	int ret, tries = 0;

	softib_qp_name_objects(qp, init, &cmd);
	if (l->sq.entries) {
		cmd.sq_log2_entries = ilog2(l->sq.entries);
		cmd.sq_log2_stride = ilog2(l->sq.stride);
		cmd.max_send_sge = l->sq.frames;
	}
	if (l->rq.entries) {
		cmd.rq_log2_entries = ilog2(l->rq.entries);
		cmd.rq_log2_stride = ilog2(l->rq.stride);
		cmd.max_recv_sge = l->rq.frames;
	}
	if (l->ind_entries)
		cmd.ind_log2_entries = ilog2(l->ind_entries);

	do {
		ret = softib_twin_qp(dev, init->srq ? to_softib_srq(init->srq) :
						      NULL, &cmd, &qp->twin);
		if (ret)
			return ret;
		ret = softib_command(dev, VMRI_OP_qp_create, &cmd, &cmd.qpn);
		if (ret)
			softib_twin_destroy(dev, &qp->twin);
	} while (softib_twin_retry(cmd.twin, ret, &tries));
	if (!ret)
		qp->ibqp.qp_num = cmd.qpn;
	return ret;
}

/* Return: 0, or a negative errno: VMRI may still write to its memory. */
static int softib_qp_unregister(struct softib_qp *qp)
{
	struct softib_dev *dev = to_softib_dev(qp->ibqp.device);
	int ret;

	ret = softib_destroy(dev, VMRI_OP_qp_destroy, qp->ibqp.qp_num);
	if (!ret)
		softib_twin_destroy(dev, &qp->twin);
	return ret;
}

/* Let the process have the queues. */
static int softib_qp_share(struct softib_qp *qp, const struct softib_layout *l,
			   struct ib_udata *udata)
{
	struct softib_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct softib_ucontext,
					  ibuctx);
	struct softib_create_qp_resp resp = {
		.mmap_size = qp->region->nr_pages << PAGE_SHIFT,
		.sq_offset = l->sq.offset,
		.rq_offset = l->rq.offset,
	};
	u64 offset;
	int ret;

	ret = softib_region_publish(qp->region, &uctx->ibuctx, &offset);
	if (ret)
		return ret;

	resp.mmap_offset = offset;
	if (l->sq.entries) {
		resp.sq_log2_entries = ilog2(l->sq.entries);
		resp.sq_log2_stride = ilog2(l->sq.stride);
	}
	if (l->rq.entries) {
		resp.rq_log2_entries = ilog2(l->rq.entries);
		resp.rq_log2_stride = ilog2(l->rq.stride);
	}
	return softib_respond(udata, &resp, sizeof(resp));
}

/*
 * The kernel sends no XRC requests: they cannot say which SRQ they are for.
 * Flags that change what a QP does are refused rather than ignored.
 */
static int softib_check_type(const struct ib_qp_init_attr *init, bool user)
{
	u32 flags = init->qp_type == IB_QPT_UD ?
		    IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK : 0;

	if ((init->create_flags & ~flags) || init->rwq_ind_tbl)
		return -EOPNOTSUPP;

	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		return init->send_cq && init->recv_cq ? 0 : -EINVAL;
	case IB_QPT_SMI:
	case IB_QPT_GSI:
		if (user || init->port_num != SOFTIB_PORT || init->srq)
			return -EINVAL;
		return init->send_cq && init->recv_cq ? 0 : -EINVAL;
	case IB_QPT_XRC_INI:
		if (!user)
			return -EOPNOTSUPP;
		return init->send_cq && !init->srq ? 0 : -EINVAL;
	case IB_QPT_XRC_TGT:
		return init->xrcd ? 0 : -EINVAL;
	default:
		return -EOPNOTSUPP;
	}
}

/* Sizes of queues that this type of QP does not have say nothing. */
static void softib_drop_caps(struct ib_qp_init_attr *init)
{
	struct ib_qp_cap *cap = &init->cap;

	if (init->qp_type == IB_QPT_XRC_TGT) {
		memset(cap, 0, sizeof(*cap));
	} else if (init->srq || init->qp_type == IB_QPT_XRC_INI) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	}
}

/* What the QP can do, which is no less than what was asked for. */
static void softib_qp_set_cap(struct softib_qp *qp, struct ib_qp_cap *cap,
			      const struct softib_layout *l)
{
	cap->max_send_wr = l->sq.entries;
	cap->max_recv_wr = l->rq.entries;
	cap->max_inline_data = l->max_inline;
	if (qp->user) {
		cap->max_send_sge = l->sq.frames;
		cap->max_recv_sge = l->rq.frames;
	}
	qp->cap = *cap;
}

int softib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		     struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibqp->device);
	struct softib_qp *qp = to_softib_qp(ibqp);
	struct softib_layout l;
	int ret;

	ret = softib_check_type(init, udata);
	if (ret)
		return ret;
	softib_drop_caps(init);
	/* What a subnet manager sends is answered in the request itself. */
	if (init->qp_type == IB_QPT_SMI && dev->sm)
		init->cap.max_inline_data = IB_MGMT_MAD_SIZE;
	ret = softib_check_cap(dev, &init->cap);
	if (ret)
		return ret;

	/* ib_core shares a target among processes: it creates it for none. */
	qp->user = udata || init->qp_type == IB_QPT_XRC_TGT;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->state = IB_QPS_RESET;
	softib_layout(dev, init, qp->user, &l);
	softib_qp_set_cap(qp, &init->cap, &l);

	ret = softib_qp_init(qp, &l);
	if (ret)
		return ret;
	ret = softib_qp_register(qp, init, &l);
	if (ret)
		goto err_free;

	if (udata) {
		ret = softib_qp_share(qp, &l, udata);
		if (ret)
			goto err_vmri;
	}

	ret = softib_ref_publish(&qp->ref, &dev->qps, ibqp->qp_num);
	if (ret)
		goto err_vmri;
	return 0;

err_vmri:
	if (softib_qp_unregister(qp))
		return ret;	/* keep the memory */
err_free:
	softib_qp_free(qp);
	return ret;
}

/* ---- destruction ---- */

static void softib_qp_mark_dead(struct softib_qp *qp)
{
	if (!qp->hdr)
		return;
	WRITE_ONCE(qp->hdr->sq.dead, 1);
	WRITE_ONCE(qp->hdr->rq.dead, 1);
}

/**
 * softib_qp_clean_cqs() - drop what a QP has left in its CQs
 * @qp:		a QP to which VMRI writes no more completions
 */
void softib_qp_clean_cqs(struct softib_qp *qp)
{
	struct ib_qp *ibqp = &qp->ibqp;

	if (qp->user)
		return;
	softib_cq_clean(to_softib_cq(ibqp->send_cq), ibqp->qp_num);
	if (ibqp->recv_cq != ibqp->send_cq)
		softib_cq_clean(to_softib_cq(ibqp->recv_cq), ibqp->qp_num);
}

int softib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibqp->device);
	struct softib_qp *qp = to_softib_qp(ibqp);
	int ret;

	softib_qp_mark_dead(qp);
	ret = softib_qp_unregister(qp);
	if (ret)
		return ret;

	softib_ref_retire(&qp->ref, &dev->qps, ibqp->qp_num);
	cancel_work_sync(&qp->work);
	softib_qp_clean_cqs(qp);
	softib_qp_free(qp);
	return 0;
}

/* Have the processes' posts fail from here on. */
void softib_qps_mark_dead(struct softib_dev *dev)
{
	struct softib_ref *ref;
	unsigned long index;

	xa_lock_irq(&dev->qps);
	xa_for_each(&dev->qps, index, ref)
		if (softib_qp_of(ref)->user)
			softib_qp_mark_dead(softib_qp_of(ref));
	xa_unlock_irq(&dev->qps);
}

/* ---- events ---- */

/**
 * softib_qp_later() - do something about a QP where one may sleep
 * @qp:		a QP that cannot be destroyed meanwhile
 * @what:	VMRI_EVENT_* or SOFTIB_QP_FLUSH
 *
 * Context: any.
 */
void softib_qp_later(struct softib_qp *qp, unsigned int what)
{
	set_bit(what, &qp->pending);
	queue_work(to_softib_dev(qp->ibqp.device)->wq, &qp->work);
}

static const struct {
	u8 vmri;
	enum ib_event_type ib;
} softib_qp_events[] = {
	{ VMRI_EVENT_COMM_EST, IB_EVENT_COMM_EST },
	{ VMRI_EVENT_SQ_DRAINED, IB_EVENT_SQ_DRAINED },
	{ VMRI_EVENT_QP_REQ_ERR, IB_EVENT_QP_REQ_ERR },
	{ VMRI_EVENT_QP_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR },
	{ VMRI_EVENT_QP_FATAL, IB_EVENT_QP_FATAL },
	{ VMRI_EVENT_QP_LAST_WQE_REACHED, IB_EVENT_QP_LAST_WQE_REACHED },
};

/* Handlers of QP events expect to be called where they may sleep. */
static void softib_qp_work(struct work_struct *work)
{
	struct softib_qp *qp = container_of(work, struct softib_qp, work);
	struct ib_event ev = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(softib_qp_events); i++) {
		if (!test_and_clear_bit(softib_qp_events[i].vmri, &qp->pending))
			continue;
		ev.event = softib_qp_events[i].ib;
		if (qp->ibqp.event_handler)
			qp->ibqp.event_handler(&ev, qp->ibqp.qp_context);
	}

	if (test_and_clear_bit(VMRI_EVENT_QUEUE_READY, &qp->pending))
		softib_qp_run_more(qp);
	if (test_and_clear_bit(SOFTIB_QP_FLUSH, &qp->pending))
		softib_flush_qp(qp);
}
