// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: memory regions.
 */
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "softib.h"

#define SOFTIB_REMOTE_ACCESS						\
	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |		\
	 IB_ACCESS_REMOTE_ATOMIC)

/*
 * The key of all of the kernel's memory.  Requests that name it are turned into
 * frames when they are posted, so VMRI registers nothing.
 */
struct ib_mr *softib_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct softib_mr *mr;

	if (access & SOFTIB_REMOTE_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.lkey = VMRI_LKEY_FRAMES;
	return &mr->ibmr;
}

/* The frame of every page of mr->umem. */
static int softib_mr_frames(struct softib_mr *mr)
{
	struct sg_page_iter iter;
	u32 i = 0;

	mr->nr_pages = ib_umem_num_pages(mr->umem);
	mr->gfns = kvmalloc_array(mr->nr_pages, sizeof(u64), GFP_KERNEL);
	if (!mr->gfns)
		return -ENOMEM;

	for_each_sgtable_page(&mr->umem->sgt_append.sgt, &iter, 0) {
		if (i == mr->nr_pages)
			return -EIO;
		mr->gfns[i++] = softib_page_gfn(sg_page_iter_page(&iter));
	}
	return i == mr->nr_pages ? 0 : -EIO;
}

static int softib_mr_register(struct softib_dev *dev, struct softib_mr *mr,
			      u32 pd, u64 iova, int access)
{
	struct vmri_mr_register cmd = {
		.frames = {
			.gfns = (unsigned long)mr->gfns,
			.nr = mr->nr_pages,
		},
		.iova = iova,
		.length = mr->umem->length,
		.pd = pd,
		.access = access,
		.offset = ib_umem_offset(mr->umem),
	};
	int ret;

	ret = softib_command(dev, VMRI_OP_mr_register, &cmd, &cmd.key);
	if (ret)
		return ret;
	mr->ibmr.lkey = cmd.key;
	mr->ibmr.rkey = cmd.key;
	return 0;
}

static void softib_mr_free(struct softib_mr *mr)
{
	ib_umem_release(mr->umem);
	kvfree(mr->gfns);
	kfree(mr);
}

struct ib_mr *softib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				 u64 iova, int access, struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibpd->device);
	struct ib_umem *umem;
	struct softib_mr *mr;
	int ret;

	access &= ~IB_ACCESS_OPTIONAL;
	if (access & ~VMRI_ACCESS_MR)
		return ERR_PTR(-EOPNOTSUPP);
	if (length > dev->attr.max_mr_size)
		return ERR_PTR(-EINVAL);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	umem = ib_umem_get(ibpd->device, start, length, access);
	if (IS_ERR(umem)) {
		kfree(mr);
		return ERR_CAST(umem);
	}
	mr->umem = umem;

	ret = softib_mr_frames(mr);
	if (!ret)
		ret = softib_mr_register(dev, mr, to_softib_pd(ibpd)->handle,
					 iova, access);
	if (ret) {
		softib_mr_free(mr);
		return ERR_PTR(ret);
	}
	return &mr->ibmr;
}

int softib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct softib_mr *mr = to_softib_mr(ibmr);
	int ret;

	if (mr->umem) {
		ret = softib_destroy(to_softib_dev(ibmr->device),
				     VMRI_OP_mr_deregister, ibmr->lkey);
		if (ret)
			return ret;
	}
	softib_mr_free(mr);
	return 0;
}
