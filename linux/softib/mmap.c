// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the memory that queues live in, for VMRI and for processes.
 *
 * It is charged to the memory cgroup of who creates the queue.
 * A region that a process may map belongs to its mmap entry and goes with the
 * last reference to that, so a mapping that is just being made never finds it
 * freed.  Pages that are mapped outlive the region: they are the process' then.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/uverbs_ioctl.h>
#include <xen/page.h>

#include "softib.h"

/* The number that VMRI knows a page by. */
u64 softib_page_gfn(struct page *page)
{
	return pfn_to_gfn(page_to_pfn(page));
}

/* The page behind an address of the kernel's, or NULL: there is no memory. */
struct page *softib_virt_to_page(const void *addr)
{
	if (is_vmalloc_addr(addr))
		return vmalloc_to_page(addr);
	return virt_addr_valid(addr) ? virt_to_page(addr) : NULL;
}

static void softib_region_free(struct softib_region *region)
{
	u32 i;

	if (region->addr)
		vunmap(region->addr);
	for (i = 0; i < region->nr_pages; i++)
		__free_page(region->pages[i]);
	kvfree(region->pages);
	kvfree(region->gfns);
	kfree(region);
}

/* True when all pages are there; else those that are count. */
static bool softib_region_fill(struct softib_region *region, u32 nr_pages)
{
	region->pages = kvmalloc_array(nr_pages, sizeof(*region->pages),
				       GFP_KERNEL_ACCOUNT);
	region->gfns = kvmalloc_array(nr_pages, sizeof(*region->gfns),
				      GFP_KERNEL_ACCOUNT);
	if (!region->pages || !region->gfns)
		return false;

	while (region->nr_pages < nr_pages) {
		struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);

		if (!page)
			return false;
		region->gfns[region->nr_pages] = softib_page_gfn(page);
		region->pages[region->nr_pages++] = page;
	}

	region->addr = vmap(region->pages, nr_pages, VM_MAP, PAGE_KERNEL);
	return region->addr;
}

/**
 * softib_region_create() - zeroed memory to be shared with VMRI
 * @size:	bytes
 *
 * Return: the region, or NULL.
 */
struct softib_region *softib_region_create(size_t size)
{
	struct softib_region *region;

	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return NULL;

	if (!softib_region_fill(region, PFN_UP(size))) {
		softib_region_free(region);
		return NULL;
	}
	return region;
}

/**
 * softib_region_destroy() - give a region back that VMRI does not use any more
 * @region:	region, or NULL
 */
void softib_region_destroy(struct softib_region *region)
{
	if (!region)
		return;
	if (region->published)
		rdma_user_mmap_entry_remove(&region->entry);
	else
		softib_region_free(region);
}

/* Called with the last reference to a published region. */
void softib_mmap_free(struct rdma_user_mmap_entry *entry)
{
	softib_region_free(container_of(entry, struct softib_region, entry));
}

/**
 * softib_region_publish() - let a process map a region
 * @region:	region
 * @ibuctx:	the process' context
 * @offset:	where, for mmap()
 *
 * Return: 0 or -ENOMEM.
 */
int softib_region_publish(struct softib_region *region,
			  struct ib_ucontext *ibuctx, u64 *offset)
{
	int ret;

	ret = rdma_user_mmap_entry_insert(ibuctx, &region->entry,
					  (size_t)region->nr_pages << PAGE_SHIFT);
	if (ret)
		return ret;
	region->published = true;
	*offset = rdma_user_mmap_get_offset(&region->entry);
	return 0;
}

struct vmri_frames softib_region_frames(const struct softib_region *region)
{
	return (struct vmri_frames) {
		.gfns = (unsigned long)region->gfns,
		.nr = region->nr_pages,
	};
}

int softib_mmap(struct ib_ucontext *ibuctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct softib_region *region;
	int ret;

	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC);

	entry = rdma_user_mmap_entry_get(ibuctx, vma);
	if (!entry)
		return -EINVAL;
	region = container_of(entry, struct softib_region, entry);
	ret = vm_map_pages_zero(vma, region->pages, region->nr_pages);
	rdma_user_mmap_entry_put(entry);
	return ret;
}

/**
 * softib_respond() - answer a provider
 * @udata:	the command's
 * @resp:	answer
 * @size:	its size; an older provider takes only what it knows
 *
 * Return: 0, -EINVAL when the provider asks for what this driver does not know,
 * or -EFAULT.
 */
int softib_respond(struct ib_udata *udata, void *resp, size_t size)
{
	if (udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EINVAL;
	return ib_copy_to_udata(udata, resp, min(size, udata->outlen));
}
