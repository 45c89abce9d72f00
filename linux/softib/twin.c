// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: twins on a RoCE NIC of dom0's, for what processes have on a device with
 * an uplink.
 *
 * dom0 maps the pages of a memory region from grants, and the NIC uses them until
 * the twin is gone.  Should VMRI not be able to say when that is, since the device
 * has gone before, the grants are ended as soon as dom0 has let go of the pages: that
 * is waited for here, since the kernel ends ten a second.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <xen/grant_table.h>

#include <vmri/control.h>

#include "softib.h"

#define SOFTIB_TWIN_WAIT	10	/* ms, for an uplink that has much to do */
#define SOFTIB_TWIN_WAITS	300
#define SOFTIB_GRANT_WAIT	10	/* ms, for dom0 to let go of a page */
#define SOFTIB_GRANT_PATIENCE	10	/* s, for all of a region */
#define SOFTIB_TWIN_TRIES	8	/* for a number that is not taken */
/* What a list of lists names. */
#define SOFTIB_TWIN_PAGES	(VMRI_TWIN_GRANTS * VMRI_TWIN_GRANTS)

static unsigned int max_grants;
module_param(max_grants, uint, 0644);
MODULE_PARM_DESC(max_grants,
		 "Pages that a device's processes may have registered for peers on other hosts, together (default 0: half of the guest's grants)");

/* ---- grants ---- */

/* Half of what there are of the first version, which all but huge hosts have. */
static long softib_max_grants(void)
{
	const long half = gnttab_max_grant_frames() *
			  (PAGE_SIZE / sizeof(struct grant_entry_v1)) / 2;

	return READ_ONCE(max_grants) ?: half;
}

/* Grants are the whole guest's: what processes have is no more than their share. */
static int softib_grants_charge(struct softib_dev *dev, u32 nr)
{
	const long max = softib_max_grants();
	long old = atomic_long_read(&dev->grants);

	do {
		if (nr > max - old)
			return -ENOMEM;
	} while (!atomic_long_try_cmpxchg(&dev->grants, &old, old + nr));
	return 0;
}

/* Also after an error, softib_grants_end() is to be called. */
static int softib_grants_init(struct softib_dev *dev, struct softib_grants *g,
			      u32 max)
{
	*g = (struct softib_grants) {};
	if (softib_grants_charge(dev, max))
		return -ENOMEM;
	g->charged = max;
	g->refs = kvcalloc(max, sizeof(*g->refs), GFP_KERNEL);
	g->pages = kvcalloc(max, sizeof(*g->pages), GFP_KERNEL);
	return g->refs && g->pages ? 0 : -ENOMEM;
}

/* Grant a page to the uplink's domain. */
static int softib_grant(struct softib_dev *dev, struct softib_grants *g,
			struct page *page, bool readonly)
{
	int ref = gnttab_grant_foreign_access(dev->xdev->otherend_id,
					      softib_page_gfn(page), readonly);

	if (ref < 0)
		return -ENOMEM;
	/* It stays for as long as it is granted, whoever lets go of it. */
	get_page(page);
	g->refs[g->nr] = ref;
	g->pages[g->nr++] = page;
	return 0;
}

/* Of the last page: false when dom0 has it still. */
static bool softib_grant_try_end(struct softib_grants *g)
{
	if (!gnttab_try_end_foreign_access(g->refs[g->nr - 1]))
		return false;
	g->nr--;
	put_page(g->pages[g->nr]);
	return true;
}

/* The kernel does it some time. */
static void softib_grant_leave(struct softib_grants *g)
{
	g->nr--;
	gnttab_end_foreign_access(g->refs[g->nr], g->pages[g->nr]);
}

/**
 * softib_grants_end() - take back what was granted
 * @dev:	device
 * @g:		grants, or zeroed
 *
 * Pages that dom0 has mapped still are waited for.  When that takes too long, the
 * kernel takes them back when it can, and nobody waits any more for those of this
 * device.
 *
 * Context: may sleep.
 */
void softib_grants_end(struct softib_dev *dev, struct softib_grants *g)
{
	const unsigned long end = jiffies + SOFTIB_GRANT_PATIENCE * HZ;

	while (g->nr) {
		cond_resched();
		if (softib_grant_try_end(g))
			continue;
		if (time_after(jiffies, end))
			WRITE_ONCE(dev->grants_stay, true);
		if (READ_ONCE(dev->grants_stay))
			softib_grant_leave(g);
		else
			msleep(SOFTIB_GRANT_WAIT);
	}
	atomic_long_sub(g->charged, &dev->grants);
	kvfree(g->refs);
	kvfree(g->pages);
	*g = (struct softib_grants) {};
}

/* Grant new pages that hold @nr grants. */
static int softib_grant_list(struct softib_dev *dev,
			     struct softib_grants *lists, const u32 *refs,
			     u32 nr)
{
	u32 part, done;
	struct page *page;
	int ret;

	for (done = 0; done < nr; done += part) {
		part = min_t(u32, nr - done, VMRI_TWIN_GRANTS);
		page = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!page)
			return -ENOMEM;
		memcpy(page_address(page), refs + done, part * sizeof(*refs));
		ret = softib_grant(dev, lists, page, true);
		put_page(page);
		if (ret)
			return ret;
	}
	return 0;
}

/* Lists of what was granted, lists of these if need be: the last one is told. */
static int softib_grant_lists(struct softib_dev *dev,
			      const struct softib_grants *g,
			      struct softib_grants *lists)
{
	int ret;

	ret = softib_grants_init(dev, lists,
				 DIV_ROUND_UP(g->nr, VMRI_TWIN_GRANTS) + 1);
	if (!ret)
		ret = softib_grant_list(dev, lists, g->refs, g->nr);
	if (!ret && lists->nr > 1)
		ret = softib_grant_list(dev, lists, lists->refs, lists->nr);
	return ret;
}

static int softib_grant_umem(struct softib_dev *dev, struct ib_umem *umem,
			     bool readonly, struct softib_grants *g)
{
	struct sg_page_iter iter;
	int ret;

	ret = softib_grants_init(dev, g, ib_umem_num_pages(umem));
	if (ret)
		return ret;
	for_each_sgtable_page(&umem->sgt_append.sgt, &iter, 0) {
		ret = softib_grant(dev, g, sg_page_iter_page(&iter), readonly);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- twins ---- */

/*
 * Without the uplink, or where the NIC cannot do it, an object has no twin and is
 * for peers on this host.
 */
static int softib_twin_create(struct softib_dev *dev, struct vmri_twin *cmd,
			      struct softib_twin *twin)
{
	s64 number = 0;
	int ret, i;

	for (i = 0; i < SOFTIB_TWIN_WAITS; i++) {
		cmd->handle = 0;
		ret = softib_command_value(dev, VMRI_OP_twin_create, cmd,
					   &cmd->handle, &number);
		twin->handle = cmd->handle;
		twin->number = number;
		if (!ret)
			return 0;
		softib_twin_destroy(dev, twin);
		if (ret != -EAGAIN)
			break;
		msleep(SOFTIB_TWIN_WAIT);
	}
	return ret == -ENODEV || ret == -EOPNOTSUPP ? 0 : ret;
}

/**
 * softib_twin_destroy() - end the twin of an object that is gone
 * @dev:	device
 * @twin:	twin, or zeroed
 *
 * What was granted for it is to be taken back by softib_grants_end(), which sees for
 * itself whether dom0 has it still.
 */
void softib_twin_destroy(struct softib_dev *dev, struct softib_twin *twin)
{
	if (twin->handle)
		softib_destroy(dev, VMRI_OP_twin_destroy, twin->handle);
	*twin = (struct softib_twin) {};
}

/**
 * softib_twin_retry() - is another twin worth a try?
 * @twin:	that with which an object could not be created, or 0
 * @error:	why
 * @tries:	how many there were
 *
 * Those without a twin have numbers that the NIC knows nothing of: one that it
 * gives out may be taken here.
 */
bool softib_twin_retry(u32 twin, int error, int *tries)
{
	return twin && error == -EBUSY && ++*tries < SOFTIB_TWIN_TRIES;
}

/* The twin gets receives of a shared queue, if it can know their memory. */
static bool softib_twin_lends(const struct softib_srq *srq,
			      const struct vmri_qp_create *cmd,
			      struct vmri_twin *arg)
{
	if (!srq->user || to_softib_pd(srq->ibsrq.pd)->handle != cmd->pd)
		return false;
	arg->u.qp.rq_log2_entries = VMRI_TWIN_LENT_LOG2;
	arg->u.qp.max_recv_sge = srq->max_sge;
	return true;
}

/**
 * softib_twin_qp() - make a twin for a queue pair that is about to be created
 * @dev:	device
 * @srq:	from which its receives come, or NULL
 * @cmd:	how it is created: number and twin are filled in
 * @twin:	filled in; zeroed when there is none
 *
 * Return: 0 or a negative errno.
 */
int softib_twin_qp(struct softib_dev *dev, const struct softib_srq *srq,
		   struct vmri_qp_create *cmd, struct softib_twin *twin)
{
	struct vmri_twin arg = {
		.kind = VMRI_RES_QP,
		.pd = cmd->pd,
		.u.qp = {
			.type = cmd->type,
			.sq_log2_entries = cmd->sq_log2_entries,
			.rq_log2_entries = cmd->rq_log2_entries,
			.max_send_sge = cmd->max_send_sge,
			.max_recv_sge = cmd->max_recv_sge,
			.max_inline = cmd->max_inline,
		},
	};
	int ret;

	/* What the kernel has, and datagrams, the NIC does not carry. */
	if (!softib_has_uplink(dev) || (cmd->flags & VMRI_QPF_KERNEL) ||
	    (cmd->type != VMRI_QPT_RC && cmd->type != VMRI_QPT_UC))
		return 0;
	if (srq && !softib_twin_lends(srq, cmd, &arg))
		return 0;

	ret = softib_twin_create(dev, &arg, twin);
	cmd->qpn = twin->number;
	cmd->twin = twin->handle;
	return ret;
}

/**
 * softib_twin_mr() - make a twin for a region that is about to be registered
 * @dev:	device
 * @cmd:	how it is registered: key and twin are filled in
 * @umem:	its memory
 * @twin:	filled in; zeroed when there is none
 * @grants:	filled in; to be ended when the twin is gone, also after an error
 *
 * Return: 0 or a negative errno.
 */
int softib_twin_mr(struct softib_dev *dev, struct vmri_mr_register *cmd,
		   struct ib_umem *umem, struct softib_twin *twin,
		   struct softib_grants *grants)
{
	struct vmri_twin arg = {
		.kind = VMRI_RES_MR,
		.pd = cmd->pd,
		.u.mr = {
			.iova = cmd->iova,
			.length = cmd->length,
			.access = cmd->access,
			.offset = cmd->offset,
			.pages = cmd->frames.nr,
		},
	};
	struct softib_grants lists = {};
	int ret;

	/* Addresses that begin elsewhere in a page no NIC has. */
	if (!softib_has_uplink(dev) || offset_in_page(cmd->iova) != cmd->offset)
		return 0;
	/* Nor are there lists of lists of lists. */
	if (cmd->frames.nr > SOFTIB_TWIN_PAGES)
		return 0;

	ret = softib_grant_umem(dev, umem, !(cmd->access &
					     VMRI_ACCESS_LOCAL_WRITE), grants);
	if (!ret)
		ret = softib_grant_lists(dev, grants, &lists);
	if (!ret) {
		arg.u.mr.list = lists.refs[lists.nr - 1];
		ret = softib_twin_create(dev, &arg, twin);
	}
	softib_grants_end(dev, &lists);
	cmd->key = twin->number;
	cmd->twin = twin->handle;
	return ret;
}
