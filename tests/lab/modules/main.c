// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmri_hostile: loading, calling, counting.
 *
 * Two modes.  With grant_to it only grants a page to that domain and says in
 * its parameter grant_ref how it is named.  Otherwise it runs all checks, those
 * on a foreign frame too if peer and peer_ref name one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <asm/xen/hypercall.h>
#include <xen/grant_table.h>
#include <xen/page.h>
#include <xen/xen.h>

#include "hostile.h"

static unsigned int hypercall = VMRI_HYPERCALL_DEFAULT;
module_param(hypercall, uint, 0444);
MODULE_PARM_DESC(hypercall, "number of VMRI's hypercall");

static unsigned int dev_id;
module_param(dev_id, uint, 0444);
MODULE_PARM_DESC(dev_id, "device to use; no driver may have it");

static int grant_to = -1;
module_param(grant_to, int, 0444);
MODULE_PARM_DESC(grant_to, "domain to grant a page to, instead of all checks");

static unsigned int grant_ref;
module_param(grant_ref, uint, 0444);
MODULE_PARM_DESC(grant_ref, "(result) the granted page");

static int peer = -1;
module_param(peer, int, 0444);
MODULE_PARM_DESC(peer, "domain that granted a page to this one");

static unsigned int peer_ref;
module_param(peer_ref, uint, 0444);
MODULE_PARM_DESC(peer_ref, "the page that it granted");

static unsigned int rounds = 1;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "how often to run all checks; the first time is logged");

static unsigned int passed;
module_param(passed, uint, 0444);
MODULE_PARM_DESC(passed, "(result) checks that went as they must");

static unsigned int failed;
module_param(failed, uint, 0444);
MODULE_PARM_DESC(failed, "(result) checks that did not");

u32 hostile_pd;
static struct page *granted_page;
/* This is not the first round. */
static bool again;

long hostile_raw(unsigned int cmd, unsigned int dev, unsigned long args)
{
	return xen_single_call(hypercall, cmd, dev, args, 0, 0);
}

long hostile_call(unsigned int cmd, void *args)
{
	return hostile_raw(cmd, dev_id, (unsigned long)args);
}

void hostile_expect(const char *name, long got, long want)
{
	if (got == want) {
		passed++;
		if (!again)
			pr_info("ok %s\n", name);
	} else {
		failed++;
		pr_info("FAIL %s: got %ld want %ld\n", name, got, want);
	}
}

static int grant_a_page(void)
{
	int ref;

	granted_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!granted_page)
		return -ENOMEM;
	ref = gnttab_grant_foreign_access(grant_to, xen_page_to_gfn(granted_page),
					  0);
	if (ref < 0) {
		__free_page(granted_page);
		return ref;
	}
	grant_ref = ref;
	return 0;
}

static int run_checks(void)
{
	struct vmri_dev_create dev = {};
	struct vmri_object pd = {};
	long rc;

	rc = hostile_call(VMRI_OP_dev_create, &dev);
	if (rc) {
		pr_info("device %u cannot be had: %ld\n", dev_id, rc);
		return rc;
	}
	if (!again)
		pr_info("asking with device %u\n", dev_id);
	rc = hostile_call(VMRI_OP_pd_create, &pd);
	hostile_expect("a protection domain for the checks", rc, 0);
	hostile_pd = pd.handle;

	hostile_args();
	hostile_frames();
	if (peer >= 0)
		hostile_granted(peer, peer_ref);
	if (xen_pv_domain())
		hostile_pv();

	hostile_expect("the device is given back",
		       hostile_call(VMRI_OP_dev_destroy, NULL), 0);
	hostile_args_free();
	if (!again)
		pr_info("%u passed, %u failed\n", passed, failed);
	return 0;
}

static int run_rounds(void)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < rounds && !rc && !signal_pending(current); i++) {
		rc = run_checks();
		again = true;
		cond_resched();
	}
	return rc;
}

static int __init hostile_init(void)
{
	if (!xen_domain())
		return -ENODEV;
	return grant_to >= 0 ? grant_a_page() : run_rounds();
}

static void __exit hostile_exit(void)
{
	if (granted_page)
		gnttab_end_foreign_access(grant_ref, granted_page);
}

module_init(hostile_init);
module_exit(hostile_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Asks VMRI for what a guest must not get");
