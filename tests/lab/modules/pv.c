// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames of a PV guest that it may not write itself, because Xen has checked
 * what they hold: page tables, descriptor tables, pages shared with Xen.  If an
 * RDMA write reached one, the guest would own the machine.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>
#include <asm/desc.h>
#include <asm/xen/hypercall.h>
#include <xen/interface/xen.h>
#include <xen/page.h>
#include <xen/xen.h>

#include "hostile.h"

#define SEL_OF_LDT	0x4	/* entry 0; bit 2: of the LDT */

/* The frame of a page table, given any entry in it. */
static u64 table_frame(void *entry)
{
	return xen_page_to_gfn(virt_to_page(entry));
}

/* The tables that map something, from the root down. */
static void page_tables(void)
{
	void *mapped = vmalloc(PAGE_SIZE);
	unsigned long va = (unsigned long)mapped;
	pgd_t *pgd;
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;

	if (!mapped)
		return hostile_expect("memory to be mapped", -ENOMEM, 0);
	pgd = pgd_offset(current->mm, va);
	p4d = p4d_offset(pgd, va);
	pud = pud_offset(p4d, va);
	pmd = pmd_offset(pud, va);
	hostile_expect_unwritable("the root page table", table_frame(pgd));
	hostile_expect_unwritable("a level 3 page table", table_frame(pud));
	hostile_expect_unwritable("a level 2 page table", table_frame(pmd));
	hostile_expect_unwritable("a level 1 page table",
				  table_frame(pte_offset_kernel(pmd, va)));
	vfree(mapped);
}

static void descriptor_table(void)
{
	xmaddr_t gdt = arbitrary_virt_to_machine(get_cpu_gdt_rw(0));

	hostile_expect_unwritable("the GDT", gdt.maddr >> PAGE_SHIFT);
}

static void pages_of_xen(void)
{
	hostile_expect_alien("the shared info page",
			     xen_start_info->shared_info >> PAGE_SHIFT);
}

static int map_page(struct page *page, pgprot_t prot)
{
	return HYPERVISOR_update_va_mapping((unsigned long)page_address(page),
					    pfn_pte(page_to_pfn(page), prot),
					    UVMF_TLB_FLUSH | UVMF_ALL);
}

static int mmuext(unsigned int cmd, u64 arg1, unsigned long arg2)
{
	struct mmuext_op op = { .cmd = cmd };

	op.arg1.linear_addr = arg1;
	op.arg2.nr_ents = arg2;
	return HYPERVISOR_mmuext_op(&op, 1, NULL, DOMID_SELF);
}

/*
 * Both ways round: a page table is refused, and what is registered cannot become
 * one until it is given back.
 */
static void pinned_table(struct page *page)
{
	u64 gfn = xen_page_to_gfn(page);
	struct vmri_mr_register mr = {
		.frames = { .gfns = (unsigned long)&gfn, .nr = 1 },
		.length = PAGE_SIZE,
		.pd = hostile_pd,
		.access = VMRI_ACCESS_LOCAL_WRITE,
	};
	struct vmri_object obj = {};

	hostile_expect("a page is registered",
		       hostile_call(VMRI_OP_mr_register, &mr), 0);
	hostile_expect("it cannot become a page table",
		       mmuext(MMUEXT_PIN_L1_TABLE, gfn, 0), -EINVAL);
	obj.handle = mr.key;
	hostile_expect("it is deregistered",
		       hostile_call(VMRI_OP_mr_deregister, &obj), 0);
	hostile_expect("it becomes a page table",
		       mmuext(MMUEXT_PIN_L1_TABLE, gfn, 0), 0);
	hostile_expect_unwritable("a pinned page table", gfn);
	hostile_expect("it is a plain page again",
		       mmuext(MMUEXT_UNPIN_TABLE, gfn, 0), 0);
	hostile_expect("and can be registered",
		       hostile_try_mr(gfn, VMRI_ACCESS_LOCAL_WRITE), 0);
}

/*
 * Xen takes a page for a descriptor table when a selector of the table is first
 * used.  Tasks without an LDT, as all here, do not change it.
 */
static void local_descriptor_table(struct page *page)
{
	u64 gfn = xen_page_to_gfn(page);
	unsigned int rights;

	preempt_disable();
	hostile_expect("an LDT is set",
		       mmuext(MMUEXT_SET_LDT, (unsigned long)page_address(page),
			      PAGE_SIZE / LDT_ENTRY_SIZE), 0);
	asm volatile("lar %1, %0" : "=r" (rights) : "r" (SEL_OF_LDT) : "cc");
	hostile_expect_unwritable("an LDT", gfn);
	hostile_expect("the LDT is cleared", mmuext(MMUEXT_SET_LDT, 0, 0), 0);
	preempt_enable();
	hostile_expect("what was an LDT can be registered",
		       hostile_try_mr(gfn, VMRI_ACCESS_LOCAL_WRITE), 0);
}

void hostile_pv(void)
{
	struct page *page;

	page_tables();
	descriptor_table();
	pages_of_xen();

	page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!page)
		return hostile_expect("a page of our own", -ENOMEM, 0);
	/* Xen takes no page that is mapped writable. */
	if (map_page(page, PAGE_KERNEL_RO)) {
		hostile_expect("a page is mapped read-only", -EINVAL, 0);
	} else {
		pinned_table(page);
		local_descriptor_table(page);
		hostile_expect("it is mapped writable again",
			       map_page(page, PAGE_KERNEL), 0);
	}
	__free_page(page);
}
