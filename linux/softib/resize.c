// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: completion queues that change their size under traffic.
 *
 * VMRI goes on in another region; what has not been consumed is copied from the
 * old one by whoever consumes it.  Nobody may do so in between: the provider's
 * lock sees to that for a process, cq->resizing for the kernel, whose users get
 * nothing and arm nothing meanwhile, and are told afterwards.
 */
#include <linux/log2.h>
#include <rdma/uverbs_ioctl.h>

#include <uapi/softib-abi.h>

#include "ring.h"
#include "softib.h"

/* Let the process map the new region, before there is a way of no return. */
static int softib_resize_share(struct softib_region *region,
			       struct ib_udata *udata,
			       struct softib_resize_cq_resp *resp)
{
	struct softib_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct softib_ucontext,
					  ibuctx);
	u64 offset;
	int ret;

	/* One that does not know how it goes on would lose its completions. */
	if (udata->outlen < sizeof(*resp))
		return -EINVAL;

	ret = softib_region_publish(region, &uctx->ibuctx, &offset);
	if (ret)
		return ret;
	resp->mmap_offset = offset;
	resp->mmap_size = region->nr_pages << PAGE_SHIFT;
	return 0;
}

static void softib_resize_pause(struct softib_cq *cq)
{
	spin_lock_irq(&cq->lock);
	cq->resizing = true;
	cq->wish = VMRI_ARM_NONE;
	spin_unlock_irq(&cq->lock);
}

/* Go on, and tell the user if it waits for what it could not see. */
static void softib_resize_go_on(struct softib_cq *cq)
{
	bool missed;

	spin_lock_irq(&cq->lock);
	cq->resizing = false;
	missed = cq->wish && softib_cq_arm(cq, cq->wish);
	spin_unlock_irq(&cq->lock);

	if (missed)
		softib_cq_notify(cq);
}

/* What VMRI has put into the old region and nobody has consumed. */
static void softib_resize_copy(struct softib_cq *cq,
			       struct softib_region *region, u32 entries,
			       u32 prod)
{
	struct vmri_cqe *ring = region->addr + VMRI_RING_OFFSET;
	u32 i;

	for (i = cq->cons; i != prod; i++)
		ring[i & (entries - 1)] = *softib_cqe(cq, i);
}

/* The new region for the old one, which is returned. */
static struct softib_region *softib_resize_swap(struct softib_cq *cq,
						struct softib_region *region,
						u32 entries, u32 prod)
{
	struct softib_dev *dev = to_softib_dev(cq->ibcq.device);
	struct softib_region *old = cq->region;
	bool dead;

	/* It may have been marked since VMRI took over what the header said. */
	spin_lock_irq(&cq->lock);
	xa_lock(&dev->cqs);
	if (!cq->user)
		softib_resize_copy(cq, region, entries, prod);
	dead = READ_ONCE(cq->hdr->dead);
	softib_cq_use(cq, region, entries);
	if (dead)
		WRITE_ONCE(cq->hdr->dead, 1);
	xa_unlock(&dev->cqs);
	spin_unlock_irq(&cq->lock);
	return old;
}

static int softib_resize(struct softib_cq *cq, struct softib_region **region,
			 u32 entries, u32 *prod)
{
	struct softib_dev *dev = to_softib_dev(cq->ibcq.device);
	struct vmri_cq_resize cmd = {
		.frames = softib_region_frames(*region),
		.handle = cq->handle,
		.log2_entries = ilog2(entries),
	};
	int ret;

	/* VMRI and the driver must agree on who came last. */
	mutex_lock(&cq->resize_lock);
	if (!cq->user)
		softib_resize_pause(cq);
	ret = softib_command(dev, VMRI_OP_cq_resize, &cmd, &cmd.handle);
	if (!ret) {
		*region = softib_resize_swap(cq, *region, entries, cmd.prod);
		*prod = cmd.prod;
	}
	if (!cq->user)
		softib_resize_go_on(cq);
	mutex_unlock(&cq->resize_lock);
	return ret;
}

int softib_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibcq->device);
	struct softib_cq *cq = to_softib_cq(ibcq);
	struct softib_resize_cq_resp resp = {};
	struct softib_region *region;
	u32 entries;
	int ret = 0;

	if (cqe < 1 || cqe > dev->attr.max_cqe)
		return -EINVAL;

	entries = roundup_pow_of_two(cqe);
	region = softib_cq_region(entries);
	if (!region)
		return -ENOMEM;

	resp.log2_entries = ilog2(entries);
	if (cq->user)
		ret = softib_resize_share(region, udata, &resp);
	if (!ret)
		ret = softib_resize(cq, &region, entries, &resp.prod);
	if (!ret && cq->user)
		ret = softib_respond(udata, &resp, sizeof(resp));

	/* The old one, or after a failure the new one. */
	softib_region_destroy(region);
	return ret;
}
