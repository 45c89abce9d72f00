// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames that are not the guest's to give: those of others, those of devices,
 * those that do not exist.
 */
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <asm/xen/hypercall.h>
#include <xen/grant_table.h>
#include <xen/interface/memory.h>
#include <xen/page.h>
#include <xen/xen.h>

#include "hostile.h"

/* Frames of the machine that are looked at, evenly spread. */
#define SAMPLES		256

long hostile_try_mr(u64 gfn, u32 access)
{
	struct vmri_mr_register mr = {
		.frames = { .gfns = (unsigned long)&gfn, .nr = 1 },
		.iova = 0x1000,
		.length = PAGE_SIZE,
		.pd = hostile_pd,
		.access = access,
	};
	struct vmri_object obj = {};
	long rc;

	rc = hostile_call(VMRI_OP_mr_register, &mr);
	if (rc)
		return rc;
	obj.handle = mr.key;
	return hostile_call(VMRI_OP_mr_deregister, &obj);
}

long hostile_try_ring(u64 gfn)
{
	struct vmri_eq_create eq = {
		.frames = { .gfns = (unsigned long)&gfn, .nr = 1 },
		.log2_entries = 4,
	};
	struct vmri_object obj = {};
	long rc;

	rc = hostile_call(VMRI_OP_eq_create, &eq);
	if (rc)
		return rc;
	obj.handle = eq.handle;
	return hostile_call(VMRI_OP_eq_destroy, &obj);
}

static void expect_each(const char *name, const char *as, long got)
{
	char text[96];

	snprintf(text, sizeof(text), "%s %s", name, as);
	hostile_expect(text, got, -EPERM);
}

void hostile_expect_unwritable(const char *name, u64 gfn)
{
	expect_each(name, "as memory to be written",
		    hostile_try_mr(gfn, VMRI_ACCESS_LOCAL_WRITE));
	expect_each(name, "as memory to be written by others",
		    hostile_try_mr(gfn, VMRI_ACCESS_LOCAL_WRITE |
					VMRI_ACCESS_REMOTE_WRITE));
	expect_each(name, "as a ring", hostile_try_ring(gfn));
}

void hostile_expect_alien(const char *name, u64 gfn)
{
	hostile_expect_unwritable(name, gfn);
	expect_each(name, "as memory to be read", hostile_try_mr(gfn, 0));
}

/* What all refusals are compared with. */
static void own_frame(void)
{
	struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	u64 gfn;

	if (!page)
		return hostile_expect("a page of our own", -ENOMEM, 0);
	gfn = xen_page_to_gfn(page);
	hostile_expect("a page of our own as memory to be read",
		       hostile_try_mr(gfn, 0), 0);
	hostile_expect("a page of our own as memory to be written",
		       hostile_try_mr(gfn, VMRI_ACCESS_LOCAL_WRITE), 0);
	hostile_expect("a page of our own as a ring", hostile_try_ring(gfn), 0);
	__free_page(page);
}

/* Good frames before and after a bad one: none may stay pinned. */
static void bad_frame_in_the_middle(void)
{
	struct page *page[2] = { alloc_page(GFP_KERNEL), alloc_page(GFP_KERNEL) };
	struct vmri_mr_register mr = {
		.length = 3 * PAGE_SIZE,
		.pd = hostile_pd,
		.access = VMRI_ACCESS_LOCAL_WRITE,
	};
	u64 gfns[3];

	if (page[0] && page[1]) {
		gfns[0] = xen_page_to_gfn(page[0]);
		gfns[1] = ~0ULL;
		gfns[2] = xen_page_to_gfn(page[1]);
		mr.frames.gfns = (unsigned long)gfns;
		mr.frames.nr = ARRAY_SIZE(gfns);
		hostile_expect("a bad frame between good ones",
			       hostile_call(VMRI_OP_mr_register, &mr), -EPERM);
	}
	if (page[1])
		__free_page(page[1]);
	if (page[0])
		__free_page(page[0]);
}

/* A page whose frame was given back to Xen. */
static void ballooned_frame(void)
{
	struct page *page;

	if (gnttab_alloc_pages(1, &page))
		return hostile_expect("a ballooned page", -ENOMEM, 0);
	hostile_expect_alien("a ballooned page", xen_page_to_gfn(page));
	gnttab_free_pages(1, &page);
}

/*
 * A PV guest names machine frames, and can name any.  All but its own must be
 * refused: Xen's, dom0's, the other guests'.
 */
static void frames_of_the_machine(void)
{
	long max = HYPERVISOR_memory_op(XENMEM_maximum_ram_page, NULL);
	unsigned long mfn, accepted = 0, tried = 0;
	long i;

	for (i = 0; i < SAMPLES; i++) {
		mfn = max / SAMPLES * i + i;
		if (bfn_to_local_pfn(mfn) != -1UL)
			continue;
		tried++;
		if (hostile_try_mr(mfn, 0) != -EPERM ||
		    hostile_try_mr(mfn, VMRI_ACCESS_LOCAL_WRITE) != -EPERM)
			accepted++;
	}
	hostile_expect("there are frames of others to try", tried != 0, 1);
	hostile_expect("frames of the machine that belong to others", accepted,
		       0);
	hostile_expect_alien("the frame of video memory", 0xa0);
	hostile_expect_alien("the frame behind all memory", max + 1);
}

void hostile_frames(void)
{
	own_frame();
	bad_frame_in_the_middle();
	ballooned_frame();
	hostile_expect_alien("the local APIC", 0xfee00);
	hostile_expect_alien("the I/O APIC", 0xfec00);
	hostile_expect_alien("frame 2^40 - 1", (1ULL << 40) - 1);
	hostile_expect_alien("frame 2^52", 1ULL << 52);
	hostile_expect_alien("frame 2^64 - 1", ~0ULL);
	if (xen_pv_domain())
		frames_of_the_machine();
}

void hostile_granted(u16 domid, u32 ref)
{
	struct gnttab_unmap_grant_ref unmap;
	struct gnttab_map_grant_ref map;
	unsigned long addr;
	struct page *page;
	u64 gfn;

	if (gnttab_alloc_pages(1, &page))
		return hostile_expect("a page for a grant", -ENOMEM, 0);
	addr = (unsigned long)pfn_to_kaddr(page_to_pfn(page));
	gnttab_set_map_op(&map, addr, GNTMAP_host_map, ref, domid);
	if (gnttab_map_refs(&map, NULL, &page, 1) || map.status) {
		hostile_expect("the peer's grant is mapped", map.status, 0);
		goto out;
	}

	gfn = xen_page_to_gfn(page);
	hostile_expect_alien("a page that another domain granted", gfn);

	gnttab_set_unmap_op(&unmap, addr, GNTMAP_host_map, map.handle);
	hostile_expect("the peer's grant is unmapped",
		       gnttab_unmap_refs(&unmap, NULL, &page, 1), 0);
	hostile_expect_alien("that page when it is unmapped", gfn);
out:
	gnttab_free_pages(1, &page);
}
