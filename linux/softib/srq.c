// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: shared receive queues.
 *
 * A process posts in its own mapping and comes here only to wake who waits for
 * its receives.  A resize moves the queue to another region; whoever posts holds
 * off meanwhile, the kernel by the queue's lock, a process by the provider's.
 */
#include <linux/log2.h>
#include <linux/sched.h>
#include <rdma/uverbs_ioctl.h>

#include <uapi/softib-abi.h>

#include "ring.h"
#include "softib.h"

/* Calls in a row before others get the CPU; each wakes some senders. */
#define SOFTIB_SRQ_RUNS		64

/* ---- layout of the shared memory ---- */

/*
 * Header, queue, indirect entries of the kernel's: of these @indirect, or for 0
 * as many as the queue wants.
 */
static void softib_srq_lay_out(const struct softib_srq *srq, u32 wrs,
			       u32 indirect, struct softib_srq_layout *l)
{
	struct softib_dev *dev = to_softib_dev(srq->ibsrq.device);
	u32 frames = srq->user ? srq->max_sge :
		     min(2 * srq->max_sge, dev->attr.max_srq_sge);

	memset(l, 0, sizeof(*l));
	l->size = sizeof(struct vmri_wq_hdr);
	softib_wq_lay_out(&l->wq, wrs, sizeof(struct vmri_recv_wqe),
			  max(frames, 1U) * sizeof(struct vmri_sge),
			  dev->attr.max_srq_sge, &l->size);
	if (srq->user)
		return;

	l->ind_entries = indirect ?: softib_wq_indirect(&l->wq,
							2 * srq->max_sge);
	l->ind_offset = ALIGN(l->size, sizeof(struct vmri_sge));
	l->size = l->ind_offset +
		  (size_t)l->ind_entries * sizeof(struct vmri_sge);
}

/* Memory for @l, and what the kernel needs to post there. */
static int softib_srq_prepare(const struct softib_srq_layout *l, bool user,
			      u32 max_sge, struct softib_region **region,
			      struct softib_wq *wq)
{
	int ret;

	*region = softib_region_create(l->size);
	if (!*region)
		return -ENOMEM;
	memset(wq, 0, sizeof(*wq));
	if (user)
		return 0;

	ret = softib_wq_init(wq, (*region)->addr, *region, &l->wq, max_sge);
	if (ret) {
		softib_region_destroy(*region);
		return ret;
	}
	wq->ind.ring = (*region)->addr + l->ind_offset;
	wq->ind.entries = l->ind_entries;
	return 0;
}

static void softib_srq_unprepare(struct softib_region *region,
				 struct softib_wq *wq)
{
	softib_wq_fini(wq);
	softib_region_destroy(region);
}

/* Let the process have the memory: what it is to know of it. */
static int softib_srq_publish(struct softib_region *region,
			      const struct softib_srq_layout *l, u32 handle,
			      struct ib_udata *udata,
			      struct softib_create_srq_resp *resp)
{
	struct softib_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct softib_ucontext,
					  ibuctx);
	u64 offset;
	int ret;

	ret = softib_region_publish(region, &uctx->ibuctx, &offset);
	if (ret)
		return ret;

	*resp = (struct softib_create_srq_resp) {
		.mmap_offset = offset,
		.mmap_size = region->nr_pages << PAGE_SHIFT,
		.offset = l->wq.offset,
		.handle = handle,
		.log2_entries = ilog2(l->wq.entries),
		.log2_stride = ilog2(l->wq.stride),
	};
	return 0;
}

/* ---- creation and destruction ---- */

static int softib_srq_check(const struct softib_dev *dev,
			    const struct ib_srq_init_attr *init)
{
	if (init->srq_type != IB_SRQT_BASIC && init->srq_type != IB_SRQT_XRC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > dev->attr.max_srq_wr ||
	    init->attr.max_sge > dev->attr.max_srq_sge)
		return -EINVAL;
	return 0;
}

static int softib_srq_register(struct softib_srq *srq,
			       const struct softib_srq_layout *l,
			       const struct ib_srq_init_attr *init)
{
	struct softib_dev *dev = to_softib_dev(srq->ibsrq.device);
	struct vmri_srq_create cmd = {
		.frames = softib_region_frames(srq->region),
		.pd = to_softib_pd(srq->ibsrq.pd)->handle,
		.eq = dev->eqs[0].handle,
		.flags = srq->user ? 0 : VMRI_QPF_KERNEL,
		.offset = l->wq.offset,
		.ind_offset = l->ind_offset,
		.log2_entries = ilog2(l->wq.entries),
		.log2_stride = ilog2(l->wq.stride),
		.max_sge = l->wq.frames,
		.ind_log2_entries = l->ind_entries ? ilog2(l->ind_entries) : 0,
	};
	int ret;

	if (init->srq_type == IB_SRQT_XRC) {
		cmd.xrcd = to_softib_xrcd(init->ext.xrc.xrcd)->handle;
		cmd.cq = to_softib_cq(init->ext.cq)->handle;
	}
	ret = softib_command(dev, VMRI_OP_srq_create, &cmd, &cmd.handle);
	if (!ret)
		srq->handle = cmd.handle;
	return ret;
}

static void softib_srq_work(struct work_struct *work);

int softib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		      struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibsrq->device);
	struct softib_srq *srq = to_softib_srq(ibsrq);
	struct softib_srq_layout *l = &srq->layout;
	struct softib_create_srq_resp resp;
	int ret;

	ret = softib_srq_check(dev, init);
	if (ret)
		return ret;

	srq->user = udata;
	srq->max_sge = init->attr.max_sge;
	mutex_init(&srq->lock);
	INIT_WORK(&srq->work, softib_srq_work);
	softib_srq_lay_out(srq, init->attr.max_wr, 0, l);
	if (srq->user)
		srq->max_sge = l->wq.frames;

	ret = softib_srq_prepare(l, srq->user, srq->max_sge, &srq->region,
				 &srq->wq);
	if (ret)
		return ret;
	ret = softib_srq_register(srq, l, init);
	if (ret)
		goto err_free;

	if (srq->user) {
		ret = softib_srq_publish(srq->region, l, srq->handle, udata,
					 &resp);
		if (!ret)
			ret = softib_respond(udata, &resp, sizeof(resp));
		if (ret)
			goto err_vmri;
	}
	ret = softib_ref_publish(&srq->ref, &dev->srqs, srq->handle);
	if (ret)
		goto err_vmri;

	init->attr.max_wr = l->wq.entries;
	init->attr.max_sge = srq->max_sge;
	if (init->srq_type == IB_SRQT_XRC)
		ibsrq->ext.xrc.srq_num = srq->handle;
	return 0;

err_vmri:
	if (softib_destroy(dev, VMRI_OP_srq_destroy, srq->handle))
		return ret;	/* VMRI may still write: keep the memory */
err_free:
	softib_srq_unprepare(srq->region, &srq->wq);
	return ret;
}

int softib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibsrq->device);
	struct softib_srq *srq = to_softib_srq(ibsrq);
	int ret;

	ret = softib_destroy(dev, VMRI_OP_srq_destroy, srq->handle);
	if (ret)
		return ret;

	softib_ref_retire(&srq->ref, &dev->srqs, srq->handle);
	cancel_work_sync(&srq->work);
	softib_srq_unprepare(srq->region, &srq->wq);
	return 0;
}

static void softib_srq_mark_dead(struct softib_srq *srq)
{
	struct vmri_wq_hdr *hdr;

	mutex_lock(&srq->lock);
	hdr = srq->region->addr;
	WRITE_ONCE(hdr->dead, 1);
	mutex_unlock(&srq->lock);
}

/* Have the processes' posts fail from here on.  May sleep. */
void softib_srqs_mark_dead(struct softib_dev *dev)
{
	struct softib_ref *ref;
	unsigned long index;

	xa_for_each(&dev->srqs, index, ref) {
		/* It may be destroyed meanwhile. */
		ref = softib_ref_get(&dev->srqs, index);
		if (!ref)
			continue;
		if (softib_srq_of(ref)->user)
			softib_srq_mark_dead(softib_srq_of(ref));
		softib_ref_put(ref);
	}
}

/* ---- doorbell ---- */

/* True when there is more to do. */
static bool softib_srq_run_once(struct softib_srq *srq)
{
	struct softib_dev *dev = to_softib_dev(srq->ibsrq.device);

	return softib_srq_schedule(dev, srq->handle) == VMRI_SCHEDULE_MORE;
}

/* May sleep; ends even if somebody posts all the time. */
static void softib_srq_run_more(struct softib_srq *srq)
{
	int i;

	for (i = 0; i < SOFTIB_SRQ_RUNS; i++) {
		if (!softib_srq_run_once(srq))
			return;
		cond_resched();
	}
	queue_work(to_softib_dev(srq->ibsrq.device)->wq, &srq->work);
}

static void softib_srq_work(struct work_struct *work)
{
	softib_srq_run_more(container_of(work, struct softib_srq, work));
}

int softib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad_wr)
{
	struct softib_srq *srq = to_softib_srq(ibsrq);
	bool ring;
	int ret;

	*bad_wr = wr;
	if (srq->user) {
		if (wr)
			return -EINVAL;
		softib_srq_run_more(srq);
		return 0;
	}

	ret = softib_put_recvs(&srq->wq, wr, bad_wr, &ring);
	if (ring && softib_srq_run_once(srq))
		queue_work(to_softib_dev(ibsrq->device)->wq, &srq->work);
	return ret;
}

/* ---- attributes ---- */

/*
 * Copy what a process has posted, with the producer's index, to another region.
 * VMRI refuses one into which not all fits, so of more only the last count.
 */
static void softib_srq_copy(const struct softib_srq *srq,
			    const struct softib_region *region,
			    const struct softib_srq_layout *l)
{
	const struct softib_srq_layout *old = &srq->layout;
	const struct vmri_wq_hdr *from = srq->region->addr;
	struct vmri_wq_hdr *to = region->addr;
	u32 n = min(old->wq.entries, l->wq.entries);
	u32 prod = ring_load(&from->prod);
	u32 i;

	for (i = prod - n; i != prod; i++) {
		u32 was = i & (old->wq.entries - 1);
		u32 is = i & (l->wq.entries - 1);

		memcpy(region->addr + l->wq.offset + is * l->wq.stride,
		       srq->region->addr + old->wq.offset +
		       was * l->wq.stride, l->wq.stride);
	}
	to->prod = prod;
}

/* Tell the process where the queue will be, if it is moved. */
static int softib_srq_announce(const struct softib_srq *srq,
			       struct softib_region *region,
			       const struct softib_srq_layout *l,
			       struct ib_udata *udata)
{
	struct softib_create_srq_resp resp;
	struct softib_modify_srq req;
	int ret;

	if (udata->inlen < sizeof(req))
		return -EINVAL;
	ret = ib_copy_from_udata(&req, udata, sizeof(req));
	if (!ret)
		ret = softib_srq_publish(region, l, srq->handle, udata, &resp);
	if (!ret && copy_to_user(u64_to_user_ptr(req.resp_addr), &resp,
				 sizeof(resp)))
		ret = -EFAULT;
	return ret;
}

/* Move to memory for @wrs requests, and set what else @cmd says. */
static int softib_srq_resize(struct softib_srq *srq, u32 wrs,
			     struct vmri_srq_modify *cmd,
			     struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(srq->ibsrq.device);
	const struct vmri_wq_hdr *from = srq->region->addr;
	struct softib_region *region;
	struct softib_srq_layout l;
	struct vmri_wq_hdr *to;
	struct softib_wq wq;
	int ret;

	/* What is posted refers to its indirect entries by their places. */
	softib_srq_lay_out(srq, wrs, srq->layout.ind_entries, &l);
	ret = softib_srq_prepare(&l, srq->user, srq->max_sge, &region, &wq);
	if (ret)
		return ret;

	if (srq->user) {
		ret = softib_srq_announce(srq, region, &l, udata);
		if (!ret)
			softib_srq_copy(srq, region, &l);
	} else {
		ret = softib_wq_move(&srq->wq, &wq);
	}

	if (!ret) {
		to = region->addr;
		to->dead = READ_ONCE(from->dead);
		cmd->frames = softib_region_frames(region);
		cmd->offset = l.wq.offset;
		cmd->ind_offset = l.ind_offset;
		cmd->log2_entries = ilog2(l.wq.entries);
		cmd->ind_log2_entries = l.ind_entries ? ilog2(l.ind_entries) :
							0;
		ret = softib_command(dev, VMRI_OP_srq_modify, cmd,
				     &cmd->handle);
	}
	softib_wq_moved(&srq->wq, !ret);
	if (!ret) {
		swap(srq->region, region);
		srq->layout = l;
	}
	softib_srq_unprepare(region, &wq);
	return ret;
}

int softib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		      enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibsrq->device);
	struct softib_srq *srq = to_softib_srq(ibsrq);
	struct vmri_srq_modify cmd = { .handle = srq->handle };
	int ret;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if ((mask & IB_SRQ_MAX_WR) &&
	    (!attr->max_wr || attr->max_wr > dev->attr.max_srq_wr))
		return -EINVAL;

	if (mask & IB_SRQ_LIMIT) {
		cmd.mask |= VMRI_SRQA_LIMIT;
		cmd.limit = attr->srq_limit;
	}
	mutex_lock(&srq->lock);
	if (mask & IB_SRQ_MAX_WR) {
		cmd.mask |= VMRI_SRQA_RESIZE;
		ret = softib_srq_resize(srq, attr->max_wr, &cmd, udata);
	} else {
		ret = softib_command(dev, VMRI_OP_srq_modify, &cmd,
				     &cmd.handle);
	}
	mutex_unlock(&srq->lock);
	return ret;
}

int softib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct softib_dev *dev = to_softib_dev(ibsrq->device);
	struct softib_srq *srq = to_softib_srq(ibsrq);
	struct vmri_srq_query cmd = { .handle = srq->handle };
	int ret;

	ret = softib_call(dev, VMRI_OP_srq_query, &cmd);
	if (ret)
		return ret;

	attr->max_wr = cmd.entries;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = cmd.limit;
	return 0;
}
