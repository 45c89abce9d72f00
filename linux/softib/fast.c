// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: fast memory regions: the kernel's users give one memory by a request
 * (IB_WR_REG_MR) and have it taken away by another.
 *
 * Nothing is pinned.  VMRI takes the frames' numbers from the region when it comes
 * to the request; until that has completed, its user must not map other memory.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "softib.h"

/*
 * VMRI wants them within a page: memory of kmalloc() whose size is a power of two
 * is aligned to that.
 */
static u64 *softib_alloc_gfns(u32 num)
{
	BUILD_BUG_ON(VMRI_MAX_FAST_FRAMES * sizeof(u64) > PAGE_SIZE);

	return kmalloc(roundup_pow_of_two(num * sizeof(u64)), GFP_KERNEL);
}

struct ib_mr *softib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			      u32 max_num_sg)
{
	struct softib_dev *dev = to_softib_dev(ibpd->device);
	struct vmri_mr_alloc cmd = {
		.pd = to_softib_pd(ibpd)->handle,
		.max_frames = max_num_sg,
	};
	struct softib_mr *mr;
	int ret = -ENOMEM;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > dev->attr.max_fast_frames)
		return ERR_PTR(-EINVAL);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->gfns = softib_alloc_gfns(max_num_sg);
	if (!mr->gfns)
		goto err_free;
	mr->max_gfns = max_num_sg;

	ret = softib_command(dev, VMRI_OP_mr_alloc, &cmd, &cmd.key);
	if (ret)
		goto err_free;
	mr->ibmr.lkey = cmd.key;
	mr->ibmr.rkey = cmd.key;
	return &mr->ibmr;

err_free:
	kvfree(mr->gfns);
	kfree(mr);
	return ERR_PTR(ret);
}

static int softib_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct softib_mr *mr = to_softib_mr(ibmr);
	struct page *page = softib_virt_to_page(ib_virt_dma_to_ptr(addr));

	if (!page)
		return -EFAULT;
	if (mr->nr_gfns == mr->max_gfns)
		return -ENOMEM;
	mr->gfns[mr->nr_gfns++] = softib_page_gfn(page);
	return 0;
}

/**
 * softib_fast_list() - where VMRI finds a fast MR's frames
 * @mr:		fast MR with memory mapped
 *
 * Return: a frame and an offset there, as a request names them.
 */
u64 softib_fast_list(const struct softib_mr *mr)
{
	return softib_page_gfn(virt_to_page(mr->gfns)) << PAGE_SHIFT |
	       offset_in_page(mr->gfns);
}

int softib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		     unsigned int *sg_offset)
{
	struct softib_mr *mr = to_softib_mr(ibmr);
	int n;

	/* The only unit that frames have. */
	if (ibmr->page_size != PAGE_SIZE)
		return -EINVAL;

	mr->nr_gfns = 0;
	n = ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, softib_set_page);
	/*
	 * The kernel's address is nobody else's business.  Users may set it to
	 * something else still, so the offset is kept.
	 */
	ibmr->iova = offset_in_page(ibmr->iova);
	mr->offset = ibmr->iova;
	return n;
}
