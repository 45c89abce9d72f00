// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: completion queues.
 *
 * The kernel polls and arms its own queues here; a process does it by itself, in
 * its mapping, and the driver never reads what a process could have written.
 */
#include <linux/log2.h>
#include <rdma/uverbs_ioctl.h>

#include <uapi/softib-abi.h>

#include "ring.h"
#include "softib.h"

static_assert(IB_WC_RETRY_EXC_ERR == (int)VMRI_WC_RETRY_EXC_ERR);
static_assert(IB_WC_GENERAL_ERR == (int)VMRI_WC_GENERAL_ERR);
static_assert(IB_WC_LOCAL_INV == (int)VMRI_WC_OP_LOCAL_INV);
static_assert(IB_WC_RECV == (int)VMRI_WC_OP_RECV);
static_assert(IB_WC_RECV_RDMA_WITH_IMM == (int)VMRI_WC_OP_RECV_RDMA_WITH_IMM);
static_assert(IB_WC_GRH == (int)VMRI_WC_GRH);
static_assert(IB_WC_WITH_IMM == (int)VMRI_WC_WITH_IMM);
static_assert(IB_WC_WITH_INVALIDATE == (int)VMRI_WC_WITH_INV);

/**
 * softib_cq_region() - memory for a CQ
 * @entries:	a power of two
 *
 * Return: the region, or NULL.
 */
struct softib_region *softib_cq_region(u32 entries)
{
	return softib_region_create(VMRI_RING_OFFSET +
				    (size_t)entries * sizeof(struct vmri_cqe));
}

/**
 * softib_cq_use() - take a region for the CQ's own from now on
 * @cq:		CQ
 * @region:	of softib_cq_region()
 * @entries:	the same as there
 */
void softib_cq_use(struct softib_cq *cq, struct softib_region *region,
		   u32 entries)
{
	cq->region = region;
	cq->hdr = region->addr;
	cq->ring = region->addr + VMRI_RING_OFFSET;
	cq->entries = entries;
	cq->ibcq.cqe = entries;
}

/* Let the process have the queue. */
static int softib_cq_share(struct softib_cq *cq, struct ib_udata *udata)
{
	struct softib_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct softib_ucontext,
					  ibuctx);
	struct softib_create_cq_resp resp = {
		.mmap_size = cq->region->nr_pages << PAGE_SHIFT,
		.handle = cq->handle,
		.log2_entries = ilog2(cq->entries),
	};
	u64 offset;
	int ret;

	ret = softib_region_publish(cq->region, &uctx->ibuctx, &offset);
	if (ret)
		return ret;
	resp.mmap_offset = offset;
	return softib_respond(udata, &resp, sizeof(resp));
}

int softib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct softib_dev *dev = to_softib_dev(ibcq->device);
	struct softib_cq *cq = to_softib_cq(ibcq);
	struct vmri_cq_create cmd = {};
	struct softib_region *region;
	int ret;

	/* All completions have timestamps. */
	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > dev->attr.max_cqe)
		return -EINVAL;

	spin_lock_init(&cq->lock);
	mutex_init(&cq->resize_lock);
	cq->user = udata;
	region = softib_cq_region(roundup_pow_of_two(attr->cqe));
	if (!region)
		return -ENOMEM;
	softib_cq_use(cq, region, roundup_pow_of_two(attr->cqe));
	cq->eq = dev->eqs[attr->comp_vector % dev->num_eqs].handle;

	cmd.frames = softib_region_frames(cq->region);
	cmd.log2_entries = ilog2(cq->entries);
	cmd.eq = cq->eq;
	ret = softib_command(dev, VMRI_OP_cq_create, &cmd, &cmd.handle);
	if (ret)
		goto err_region;
	cq->handle = cmd.handle;

	if (cq->user) {
		ret = softib_cq_share(cq, udata);
		if (ret)
			goto err_vmri;
	}

	ret = softib_ref_publish(&cq->ref, &dev->cqs, cq->handle);
	if (ret)
		goto err_vmri;
	return 0;

err_vmri:
	if (softib_destroy(dev, VMRI_OP_cq_destroy, cq->handle))
		return ret;	/* VMRI may still write: keep the memory */
err_region:
	softib_region_destroy(cq->region);
	return ret;
}

int softib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibcq->device);
	struct softib_cq *cq = to_softib_cq(ibcq);
	int ret;

	WRITE_ONCE(cq->hdr->dead, 1);
	ret = softib_destroy(dev, VMRI_OP_cq_destroy, cq->handle);
	if (ret)
		return ret;

	softib_ref_retire(&cq->ref, &dev->cqs, cq->handle);
	softib_region_destroy(cq->region);
	return 0;
}

/* Tell the owner of a CQ that there is a completion that it asked for. */
void softib_cq_notify(struct softib_cq *cq)
{
	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/* Have the processes' pollers fail from here on. */
void softib_cqs_mark_dead(struct softib_dev *dev)
{
	struct softib_ref *ref;
	unsigned long index;

	xa_lock_irq(&dev->cqs);
	xa_for_each(&dev->cqs, index, ref) {
		struct softib_cq *cq = softib_cq_of(ref);

		if (cq->user)
			WRITE_ONCE(cq->hdr->dead, 1);
	}
	xa_unlock_irq(&dev->cqs);
}

static void softib_cqe_to_wc(const struct vmri_cqe *cqe, struct softib_qp *qp,
			     struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode == VMRI_WC_OP_REG_MR ? IB_WC_REG_MR :
							 cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->qp = &qp->ibqp;
	if (cqe->flags & VMRI_WC_WITH_INV)
		wc->ex.invalidate_rkey = cqe->imm;
	else
		wc->ex.imm_data = (__force __be32)cqe->imm;
	wc->src_qp = cqe->src_qp;
	wc->slid = cqe->slid;
	wc->wc_flags = cqe->flags &
		       (VMRI_WC_GRH | VMRI_WC_WITH_IMM | VMRI_WC_WITH_INV);
	wc->pkey_index = cqe->pkey_index;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = cqe->dlid_path_bits;
	wc->port_num = SOFTIB_PORT;
	if (unlikely(softib_is_managing(qp)))
		softib_sm_fix_wc(wc);
}

int softib_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct softib_dev *dev = to_softib_dev(ibcq->device);
	struct softib_cq *cq = to_softib_cq(ibcq);
	struct softib_qp *qp = NULL;
	unsigned long flags;
	u32 prod;
	int n = 0;

	if (cq->user)
		return -EOPNOTSUPP;

	spin_lock_irqsave(&cq->lock, flags);
	prod = cq->resizing ? cq->cons : ring_load(&cq->hdr->prod);
	for (; n < num && cq->cons != prod; cq->cons++) {
		const struct vmri_cqe *cqe = softib_cqe(cq, cq->cons);

		/* Not the last one's?  None: destroyed, see softib_cq_clean(). */
		if (!qp || qp->ibqp.qp_num != cqe->qpn)
			qp = softib_qp_of(xa_load(&dev->qps, cqe->qpn));
		if (qp)
			softib_cqe_to_wc(cqe, qp, &wc[n++]);
	}
	ring_store(&cq->hdr->cons, cq->cons);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

/**
 * softib_cq_arm() - ask for an event, besides what was asked for before
 * @cq:		CQ of the kernel
 * @arm:	VMRI_ARM_*
 *
 * Context: under cq->lock.
 * Return: true when there are completions already.
 */
bool softib_cq_arm(struct softib_cq *cq, u32 arm)
{
	if (READ_ONCE(cq->hdr->arm) < arm)
		WRITE_ONCE(cq->hdr->arm, arm);
	ring_fence();
	return READ_ONCE(cq->hdr->prod) != cq->cons;
}

int softib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct softib_cq *cq = to_softib_cq(ibcq);
	unsigned long irqflags;
	bool missed = false;
	u32 arm;

	if (cq->user)
		return -EOPNOTSUPP;

	arm = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_NEXT_COMP ?
	      VMRI_ARM_NEXT : VMRI_ARM_SOLICITED;
	spin_lock_irqsave(&cq->lock, irqflags);
	if (cq->resizing)
		cq->wish = max(cq->wish, arm);
	else
		missed = softib_cq_arm(cq, arm);
	spin_unlock_irqrestore(&cq->lock, irqflags);

	return missed && (flags & IB_CQ_REPORT_MISSED_EVENTS);
}

/**
 * softib_cq_clean() - drop what a QP has left in a CQ
 * @cq:		CQ
 * @qpn:	a QP to which VMRI writes no more completions
 *
 * After this no poller refers to the QP, and none will.
 */
void softib_cq_clean(struct softib_cq *cq, u32 qpn)
{
	unsigned long flags;
	u32 i, prod;

	if (cq->user)
		return;

	spin_lock_irqsave(&cq->lock, flags);
	prod = ring_load(&cq->hdr->prod);
	for (i = cq->cons; i != prod; i++) {
		struct vmri_cqe *cqe = softib_cqe(cq, i);

		if (cqe->qpn == qpn)
			cqe->qpn = SOFTIB_QPN_NONE;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
}
