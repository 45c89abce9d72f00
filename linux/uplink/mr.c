// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: twins of memory regions.
 *
 * Nothing is copied: the NIC reads and writes the guest's pages, which stay mapped
 * here until the twin goes.
 */
#include <linux/mm.h>
#include <linux/sizes.h>

#include "uplink.h"

#define UPLINK_REMOTE_CHANGE						\
	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

static_assert(IB_ACCESS_LOCAL_WRITE == (int)VMRI_ACCESS_LOCAL_WRITE);
static_assert(IB_ACCESS_REMOTE_WRITE == (int)VMRI_ACCESS_REMOTE_WRITE);
static_assert(IB_ACCESS_REMOTE_READ == (int)VMRI_ACCESS_REMOTE_READ);
static_assert(IB_ACCESS_REMOTE_ATOMIC == (int)VMRI_ACCESS_REMOTE_ATOMIC);

/* Rights that the NIC is to know of. */
static int uplink_access(const struct uplink *up, u32 access)
{
	access &= IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
		  IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC;
	return up->caps.atomics ? access : access & ~IB_ACCESS_REMOTE_ATOMIC;
}

static int uplink_mr_check(const struct uplink *up,
			   const struct vmri_uplink_msg *msg)
{
	u32 pages = msg->u.mr.pages, offset = msg->u.mr.offset;
	int access = msg->u.mr.access;

	if (!pages || pages > uplink_max_pages(up->ibdev) ||
	    offset >= PAGE_SIZE ||
	    msg->u.mr.length > ((u64)pages << PAGE_SHIFT) - offset ||
	    PFN_UP(offset + msg->u.mr.length) != pages)
		return -EINVAL;
	/* What is mapped read-only must not be written. */
	if ((access & UPLINK_REMOTE_CHANGE) &&
	    !(access & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	/* To a NIC addresses begin within a page where the memory does. */
	return offset_in_page(msg->u.mr.iova) == offset ? 0 : -EOPNOTSUPP;
}

/* Its pages, what is kept about each here and by the NIC, and the region itself. */
static u32 uplink_mr_kib(const struct vmri_uplink_msg *msg)
{
	u64 page = PAGE_SIZE + 64;

	return DIV_ROUND_UP_ULL(msg->u.mr.pages * page + PAGE_SIZE, SZ_1K);
}

static int uplink_mr_map(struct uplink_mr *mr,
			 const struct vmri_uplink_msg *msg)
{
	bool readonly = !(msg->u.mr.access & IB_ACCESS_LOCAL_WRITE);
	u32 pages = msg->u.mr.pages;
	u32 *refs;
	int ret;

	refs = uplink_grants_read(msg->domid, msg->u.mr.list, pages);
	if (IS_ERR(refs))
		return PTR_ERR(refs);
	ret = uplink_grants_map(&mr->grants, msg->domid, refs, pages, readonly);
	kvfree(refs);
	mr->direction = readonly ? DMA_TO_DEVICE : DMA_BIDIRECTIONAL;
	return ret;
}

/* One entry a page: on their way to the NIC, entries may not cross frames. */
static int uplink_mr_map_dma(struct uplink_mr *mr,
			     const struct vmri_uplink_msg *msg)
{
	u32 i, length, offset = msg->u.mr.offset;
	u64 left = msg->u.mr.length;
	struct scatterlist *sg;
	int ret;

	ret = sg_alloc_table(&mr->sgt, mr->grants.nr, GFP_KERNEL);
	if (ret)
		return ret;
	for_each_sgtable_sg(&mr->sgt, sg, i) {
		length = min_t(u64, left, PAGE_SIZE - offset);
		sg_set_page(sg, mr->grants.pages[i], length, offset);
		left -= length;
		offset = 0;
	}

	mr->sgt.nents = ib_dma_map_sg(mr->twin.up->ibdev, mr->sgt.sgl,
				      mr->sgt.orig_nents, mr->direction);
	mr->is_mapped = mr->sgt.nents;
	return mr->is_mapped ? 0 : -EIO;
}

static int uplink_mr_register(struct uplink_mr *mr,
			      const struct vmri_uplink_msg *msg)
{
	struct uplink_twin *twin = &mr->twin;
	int nents = mr->sgt.nents;

	mr->ibmr = ib_alloc_mr(twin->pd->ibpd, IB_MR_TYPE_MEM_REG,
			       msg->u.mr.pages);
	if (IS_ERR(mr->ibmr)) {
		int ret = PTR_ERR(mr->ibmr);

		mr->ibmr = NULL;
		return ret;
	}
	/* The guest knows one key for both. */
	if (mr->ibmr->lkey != mr->ibmr->rkey)
		return -EOPNOTSUPP;

	if (ib_map_mr_sg(mr->ibmr, mr->sgt.sgl, nents, NULL,
			 PAGE_SIZE) != nents ||
	    mr->ibmr->length != msg->u.mr.length)
		return -EIO;
	mr->ibmr->iova = msg->u.mr.iova;
	return uplink_pd_register(twin->up, twin->pd, mr->ibmr,
				  uplink_access(twin->up, msg->u.mr.access));
}

/**
 * uplink_mr_create() - make the twin of a memory region
 * @mr:		twin with its protection domain
 * @msg:	VMRI_UPLINK_CREATE_MR
 * @key:	set to its key
 *
 * Context: may sleep.
 * Return: 0 or a negative errno: nothing is left then.
 */
int uplink_mr_create(struct uplink_mr *mr, const struct vmri_uplink_msg *msg,
		     u32 *key)
{
	int ret = uplink_mr_check(mr->twin.up, msg);

	if (!ret)
		ret = uplink_twin_charge(&mr->twin, uplink_mr_kib(msg));
	if (!ret)
		ret = uplink_mr_map(mr, msg);
	if (!ret)
		ret = uplink_mr_map_dma(mr, msg);
	if (!ret)
		ret = uplink_mr_register(mr, msg);
	if (ret)
		uplink_mr_destroy(mr);
	else
		*key = mr->ibmr->rkey;
	return ret;
}

/**
 * uplink_mr_destroy() - end the twin of a memory region
 * @mr:		twin, perhaps made in part
 *
 * First the NIC lets go of the pages, then dom0; neither, if the NIC does not.
 *
 * Context: may sleep.
 */
void uplink_mr_destroy(struct uplink_mr *mr)
{
	int ret = mr->ibmr ? ib_dereg_mr(mr->ibmr) : 0;

	if (ret) {
		uplink_twin_lose(&mr->twin, ret);
		return;
	}
	if (mr->is_mapped)
		ib_dma_unmap_sg(mr->twin.up->ibdev, mr->sgt.sgl,
				mr->sgt.orig_nents, mr->direction);
	sg_free_table(&mr->sgt);
	uplink_grants_unmap(&mr->grants);
}
