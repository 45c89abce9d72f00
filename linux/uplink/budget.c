// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: what guests may take of dom0, by their twins.
 *
 * Each page of a region takes one of the entries in which Xen keeps what dom0 has
 * mapped, and which all its backends share; queue pairs take memory.  One bound, in
 * KiB, is for both.  Twins that outlive their guest count until they have gone.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/xarray.h>

#include "uplink.h"

/* Half of what dom0 can map unless Xen was told otherwise, 1 GiB. */
#define UPLINK_BUDGET_KIB	(SZ_512M / SZ_1K)

static unsigned int max_guest_kib = SZ_128M / SZ_1K;
module_param(max_guest_kib, uint, 0644);
MODULE_PARM_DESC(max_guest_kib,
		 "KiB that one guest may have mapped and used here (default: 131072)");

static unsigned int max_kib;
module_param(max_kib, uint, 0644);
MODULE_PARM_DESC(max_kib,
		 "KiB for all guests together (default, 0: a quarter of dom0's memory, 524288 at the most)");

static DEFINE_MUTEX(uplink_budget_lock);	/* both below */
static DEFINE_XARRAY(uplink_budget_used);	/* domid -> KiB, as a value */
static u64 uplink_budget_sum;			/* of these */

static u64 uplink_budget_max(void)
{
	u64 quarter = (u64)totalram_pages() * (PAGE_SIZE / SZ_1K) / 4;

	return max_kib ? max_kib : min_t(u64, quarter, UPLINK_BUDGET_KIB);
}

static u64 uplink_budget_of(u16 domid)
{
	void *entry = xa_load(&uplink_budget_used, domid);

	return entry ? xa_to_value(entry) : 0;
}

/**
 * uplink_budget_take() - have a guest use something of dom0
 * @domid:	guest
 * @kib:	how much
 *
 * Context: may sleep.
 * Return: 0; or -ENOMEM: it, or all together, would have too much.
 */
int uplink_budget_take(u16 domid, u32 kib)
{
	int ret = -ENOMEM;
	u64 used;

	mutex_lock(&uplink_budget_lock);
	used = uplink_budget_of(domid) + kib;
	if (used <= max_guest_kib &&
	    uplink_budget_sum + kib <= uplink_budget_max())
		ret = xa_err(xa_store(&uplink_budget_used, domid,
				      xa_mk_value(used), GFP_KERNEL));
	if (!ret)
		uplink_budget_sum += kib;
	mutex_unlock(&uplink_budget_lock);
	return ret;
}

/* It has let go of it.  Context: may sleep. */
void uplink_budget_give(u16 domid, u32 kib)
{
	u64 used;

	mutex_lock(&uplink_budget_lock);
	used = uplink_budget_of(domid) - kib;
	/* What replaces an entry takes no memory. */
	if (used)
		xa_store(&uplink_budget_used, domid, xa_mk_value(used),
			 GFP_KERNEL);
	else
		xa_erase(&uplink_budget_used, domid);
	uplink_budget_sum -= kib;
	mutex_unlock(&uplink_budget_lock);
}
