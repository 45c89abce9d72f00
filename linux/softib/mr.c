// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: memory regions of processes, and the key of the kernel's memory.
 */
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "softib.h"

#define SOFTIB_REMOTE_ACCESS						\
	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |		\
	 IB_ACCESS_REMOTE_ATOMIC)

static_assert(IB_ACCESS_MW_BIND == (int)VMRI_ACCESS_MW_BIND);
static_assert(IB_ACCESS_FLUSH_GLOBAL == (int)VMRI_ACCESS_FLUSH_GLOBAL);
static_assert(IB_MR_REREG_TRANS == (int)VMRI_REREG_TRANS &&
	      IB_MR_REREG_PD == (int)VMRI_REREG_PD &&
	      IB_MR_REREG_ACCESS == (int)VMRI_REREG_ACCESS);

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

/* ---- the memory of a process ---- */

/* A request to reach this much of a process' memory in this way. */
struct softib_mem {
	struct ib_umem *umem;
	u64 *gfns;			/* of the pages, for VMRI */
	u32 nr;
};

static void softib_mem_put(struct softib_mem *mem)
{
	ib_umem_release(mem->umem);
	kvfree(mem->gfns);
}

/* The frame of every page. */
static int softib_mem_frames(struct softib_mem *mem)
{
	struct sg_page_iter iter;
	u32 i = 0;

	mem->nr = ib_umem_num_pages(mem->umem);
	mem->gfns = kvmalloc_array(mem->nr, sizeof(u64), GFP_KERNEL);
	if (!mem->gfns)
		return -ENOMEM;

	for_each_sgtable_page(&mem->umem->sgt_append.sgt, &iter, 0) {
		if (i == mem->nr)
			return -EIO;
		mem->gfns[i++] = softib_page_gfn(sg_page_iter_page(&iter));
	}
	return i == mem->nr ? 0 : -EIO;
}

static int softib_mem_get(struct softib_dev *dev, u64 start, u64 length,
			  int access, struct softib_mem *mem)
{
	int ret;

	if (length > dev->attr.max_mr_size)
		return -EINVAL;

	*mem = (struct softib_mem) {
		.umem = ib_umem_get(&dev->ibdev, start, length, access),
	};
	if (IS_ERR(mem->umem))
		return PTR_ERR(mem->umem);

	ret = softib_mem_frames(mem);
	if (ret)
		softib_mem_put(mem);
	return ret;
}

/* What the MR has; its own memory is the caller's from now on. */
static struct softib_mem softib_mr_swap(struct softib_mr *mr,
					const struct softib_mem *mem)
{
	struct softib_mem old = {
		.umem = mr->umem,
		.gfns = mr->gfns,
		.nr = mr->nr_gfns,
	};

	mr->umem = mem->umem;
	mr->gfns = mem->gfns;
	mr->nr_gfns = mem->nr;
	return old;
}

/* ---- registration ---- */

/* Rights that a process may ask for; hints are not heeded. */
static int softib_check_access(int *access)
{
	*access &= ~IB_ACCESS_OPTIONAL;
	return *access & ~(VMRI_ACCESS_MR | IB_ZERO_BASED) ? -EOPNOTSUPP : 0;
}

/* The address that peers and requests know the first byte by. */
static u64 softib_first_address(u64 iova, int access)
{
	return access & IB_ZERO_BASED ? 0 : iova;
}

static struct vmri_mr_register softib_mr_cmd(const struct softib_mem *mem,
					     u32 pd, u64 iova, int access)
{
	return (struct vmri_mr_register) {
		.frames = {
			.gfns = (unsigned long)mem->gfns,
			.nr = mem->nr,
		},
		.iova = softib_first_address(iova, access),
		.length = mem->umem->length,
		.pd = pd,
		.access = access & VMRI_ACCESS_MR,
		.offset = ib_umem_offset(mem->umem),
	};
}

static void softib_mr_set_key(struct softib_mr *mr, u32 key)
{
	mr->ibmr.lkey = key;
	mr->ibmr.rkey = key;
}

/* What is on the NIC, and what it was granted. */
static void softib_mr_end_twin(struct softib_dev *dev, struct softib_mr *mr)
{
	softib_twin_destroy(dev, &mr->twin);
	softib_grants_end(dev, &mr->grants);
}

static int softib_mr_register(struct softib_mr *mr,
			      const struct softib_mem *mem, struct ib_pd *ibpd,
			      u64 iova, int access)
{
	struct softib_dev *dev = to_softib_dev(ibpd->device);
	struct vmri_mr_register cmd =
		softib_mr_cmd(mem, to_softib_pd(ibpd)->handle, iova, access);
	int ret, tries = 0;

	do {
		ret = softib_twin_mr(dev, &cmd, mem->umem, &mr->twin,
				     &mr->grants);
		if (!ret)
			ret = softib_command(dev, VMRI_OP_mr_register, &cmd,
					     &cmd.key);
		if (ret)
			softib_mr_end_twin(dev, mr);
	} while (softib_twin_retry(cmd.twin, ret, &tries));
	if (!ret)
		softib_mr_set_key(mr, cmd.key);
	return ret;
}

struct ib_mr *softib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				 u64 iova, int access, struct ib_udata *udata)
{
	struct softib_mem mem;
	struct softib_mr *mr;
	int ret;

	ret = softib_check_access(&access);
	if (ret)
		return ERR_PTR(ret);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	ret = softib_mem_get(to_softib_dev(ibpd->device), start, length, access,
			     &mem);
	if (ret)
		goto err_free;
	ret = softib_mr_register(mr, &mem, ibpd, iova, access);
	if (ret)
		goto err_mem;

	softib_mr_swap(mr, &mem);
	mr->access = access;
	return &mr->ibmr;

err_mem:
	softib_mem_put(&mem);
err_free:
	kfree(mr);
	return ERR_PTR(ret);
}

/* ---- re-registration ---- */

/* What an MR is to become. */
struct softib_rereg {
	struct softib_mem mem;
	bool new_mem;			/* mem is not the MR's yet */
	u64 iova;
	int access;
	u32 pd;
};

/*
 * The memory for it: another, or the same again to have it writable, or that
 * which the MR has.
 */
static int softib_rereg_mem(struct softib_mr *mr, int flags, u64 start,
			    u64 length, struct softib_rereg *to)
{
	struct ib_umem *umem = mr->umem;

	if (!(flags & IB_MR_REREG_TRANS)) {
		if (umem->writable || !ib_access_writable(to->access)) {
			to->mem = (struct softib_mem) {
				.umem = umem,
				.gfns = mr->gfns,
				.nr = mr->nr_gfns,
			};
			return 0;
		}
		start = umem->address;
		length = umem->length;
	}
	to->new_mem = true;
	return softib_mem_get(to_softib_dev(mr->ibmr.device), start, length,
			      to->access, &to->mem);
}

static int softib_mr_reregister(struct softib_mr *mr, int flags,
				struct softib_rereg *to)
{
	struct softib_dev *dev = to_softib_dev(mr->ibmr.device);
	struct vmri_mr_reregister cmd = {
		.old_key = mr->ibmr.lkey,
		.flags = flags,
		.mr = softib_mr_cmd(&to->mem, to->pd, to->iova, to->access),
	};
	int ret;

	if (to->new_mem || (to->access ^ mr->access) & IB_ZERO_BASED)
		cmd.flags |= VMRI_REREG_TRANS;
	ret = softib_command(dev, VMRI_OP_mr_reregister, &cmd, &cmd.old_key);
	if (ret)
		return ret;

	softib_mr_set_key(mr, cmd.mr.key);
	mr->access = to->access;
	if (to->new_mem) {
		struct softib_mem old = softib_mr_swap(mr, &to->mem);

		softib_mem_put(&old);
	}
	return 0;
}

/* What a twin was made for it stays for: another region takes this one's place. */
static struct ib_mr *softib_replace_mr(struct softib_mr *mr, int flags,
				       u64 start, u64 length, u64 iova,
				       int access, struct ib_pd *pd)
{
	if (!(flags & IB_MR_REREG_TRANS)) {
		start = mr->umem->address;
		length = mr->umem->length;
	}
	return softib_reg_user_mr(pd, start, length, iova, access, NULL);
}

struct ib_mr *softib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				   u64 length, u64 iova, int access,
				   struct ib_pd *pd, struct ib_udata *udata)
{
	struct softib_mr *mr = to_softib_mr(ibmr);
	struct softib_rereg to = {
		.iova = flags & IB_MR_REREG_TRANS ? iova : ibmr->iova,
		.access = flags & IB_MR_REREG_ACCESS ? access : mr->access,
		.pd = to_softib_pd(pd)->handle,
	};
	int ret;

	/* The same PD as before, and nothing else. */
	if (!flags)
		return NULL;
	if (softib_has_uplink(to_softib_dev(ibmr->device)))
		return softib_replace_mr(mr, flags, start, length, to.iova,
					 to.access, pd);

	ret = softib_check_access(&to.access);
	if (ret)
		return ERR_PTR(ret);
	ret = softib_rereg_mem(mr, flags, start, length, &to);
	if (ret)
		return ERR_PTR(ret);

	ret = softib_mr_reregister(mr, flags, &to);
	if (ret && to.new_mem)
		softib_mem_put(&to.mem);
	return ERR_PTR(ret);
}

int softib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct softib_mr *mr = to_softib_mr(ibmr);
	int ret;

	if (ibmr->lkey != VMRI_LKEY_FRAMES) {
		ret = softib_destroy(to_softib_dev(ibmr->device),
				     VMRI_OP_mr_deregister, ibmr->lkey);
		if (ret)
			return ret;
	}
	softib_mr_end_twin(to_softib_dev(ibmr->device), mr);
	ib_umem_release(mr->umem);
	kvfree(mr->gfns);
	kfree(mr);
	return 0;
}
