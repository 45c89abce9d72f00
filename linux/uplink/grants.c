// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: guests' pages, mapped from their grants.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "uplink.h"

/* Grants of one hypercall: their operations take about a page. */
#define UPLINK_CHUNK	128

static u32 uplink_map_flags(const struct uplink_grants *g)
{
	return GNTMAP_host_map | (g->readonly ? GNTMAP_readonly : 0);
}

static phys_addr_t uplink_page_address(struct page *page)
{
	return (unsigned long)pfn_to_kaddr(page_to_pfn(page));
}

/* What is mapped comes first, whatever fails. */
static void uplink_keep(struct uplink_grants *g, u32 index,
			grant_handle_t handle)
{
	swap(g->pages[g->mapped], g->pages[index]);
	g->handles[g->mapped++] = handle;
}

static int uplink_map_chunk(struct uplink_grants *g, u16 domid,
			    const u32 *refs, u32 first, u32 nr,
			    struct gnttab_map_grant_ref *ops)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < nr; i++)
		gnttab_set_map_op(&ops[i],
				  uplink_page_address(g->pages[first + i]),
				  uplink_map_flags(g), refs[first + i], domid);
	/* What came of it is in each. */
	gnttab_map_refs(ops, NULL, g->pages + first, nr);

	for (i = 0; i < nr; i++) {
		if (ops[i].status == GNTST_okay)
			uplink_keep(g, first + i, ops[i].handle);
		else
			ret = ops[i].status == GNTST_no_device_space ?
			      -ENOMEM : -EINVAL;
	}
	return ret;
}

static int uplink_map_all(struct uplink_grants *g, u16 domid, const u32 *refs)
{
	struct gnttab_map_grant_ref *ops;
	int ret = 0;
	u32 i, nr;

	ops = kcalloc(min(g->nr, UPLINK_CHUNK), sizeof(*ops), GFP_KERNEL);
	if (!ops)
		return -ENOMEM;
	for (i = 0; i < g->nr && !ret; i += nr) {
		nr = min(g->nr - i, UPLINK_CHUNK);
		ret = uplink_map_chunk(g, domid, refs, i, nr, ops);
		cond_resched();
	}
	kfree(ops);
	return ret;
}

/**
 * uplink_grants_map() - map pages of a guest
 * @g:		filled in; zeroed when it fails
 * @domid:	guest
 * @refs:	its grants, [nr]
 * @nr:		number of pages, 1 ..
 * @readonly:	they are only read
 *
 * Return: 0; -ENOMEM; -EINVAL: something that is no grant to this domain.
 */
int uplink_grants_map(struct uplink_grants *g, u16 domid, const u32 *refs,
		      u32 nr, bool readonly)
{
	int ret = -ENOMEM;

	*g = (struct uplink_grants) { .nr = nr, .readonly = readonly };
	g->pages = kvcalloc(nr, sizeof(*g->pages), GFP_KERNEL);
	g->handles = kvcalloc(nr, sizeof(*g->handles), GFP_KERNEL);
	if (g->pages && g->handles)
		ret = gnttab_alloc_pages(nr, g->pages);
	if (ret) {
		kvfree(g->handles);
		kvfree(g->pages);
		*g = (struct uplink_grants) {};
		return ret;
	}

	ret = uplink_map_all(g, domid, refs);
	if (ret)
		uplink_grants_unmap(g);
	return ret;
}

static void uplink_set_unmap_ops(const struct uplink_grants *g, u32 first,
				 u32 nr, struct gnttab_unmap_grant_ref *ops)
{
	u32 i;

	for (i = 0; i < nr; i++)
		gnttab_set_unmap_op(&ops[i],
				    uplink_page_address(g->pages[first + i]),
				    uplink_map_flags(g), g->handles[first + i]);
}

/* Put the pages that are unmapped behind the @done that were before. */
static u32 uplink_put_first(struct uplink_grants *g, u32 done, u32 first,
			    u32 nr, const struct gnttab_unmap_grant_ref *ops)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (WARN_ON_ONCE(ops[i].status != GNTST_okay))
			continue;
		swap(g->pages[done], g->pages[first + i]);
		done++;
	}
	return done;
}

/**
 * uplink_grants_unmap() - let go of pages of a guest
 * @g:		what was mapped, zeroed; or zeroed already
 *
 * Waits until nobody else uses the pages.  One that Xen does not unmap stays what it
 * is, and is not used for anything else.
 *
 * Context: may sleep.
 */
void uplink_grants_unmap(struct uplink_grants *g)
{
	struct gnttab_unmap_grant_ref *ops;
	u32 i, nr, done = 0;

	if (!g->nr)
		return;

	ops = kcalloc(UPLINK_CHUNK, sizeof(*ops), GFP_KERNEL | __GFP_NOFAIL);
	for (i = 0; i < g->mapped; i += nr) {
		struct gntab_unmap_queue_data item = {
			.unmap_ops = ops,
			.pages = g->pages + i,
		};

		nr = min(g->mapped - i, UPLINK_CHUNK);
		item.count = nr;
		uplink_set_unmap_ops(g, i, nr, ops);
		if (!WARN_ON_ONCE(gnttab_unmap_refs_sync(&item)))
			done = uplink_put_first(g, done, i, nr, ops);
		cond_resched();
	}
	kfree(ops);

	/* Those that never were. */
	for (i = g->mapped; i < g->nr; i++, done++)
		swap(g->pages[done], g->pages[i]);
	gnttab_free_pages(done, g->pages);
	kvfree(g->handles);
	kvfree(g->pages);
	*g = (struct uplink_grants) {};
}

/* ---- lists of grants ---- */

/* Copy @nr grants out of the pages that @lists grant. */
static u32 *uplink_copy_lists(u16 domid, const u32 *lists, u32 nr)
{
	u32 i, part, pages = DIV_ROUND_UP(nr, VMRI_TWIN_GRANTS);
	struct uplink_grants g;
	u32 *refs;
	int ret;

	refs = kvcalloc(nr, sizeof(*refs), GFP_KERNEL);
	if (!refs)
		return ERR_PTR(-ENOMEM);
	ret = uplink_grants_map(&g, domid, lists, pages, true);
	if (ret) {
		kvfree(refs);
		return ERR_PTR(ret);
	}

	for (i = 0; i < pages; i++) {
		part = min(nr - i * VMRI_TWIN_GRANTS, VMRI_TWIN_GRANTS);
		memcpy(refs + i * VMRI_TWIN_GRANTS, page_address(g.pages[i]),
		       part * sizeof(*refs));
	}
	uplink_grants_unmap(&g);
	return refs;
}

/**
 * uplink_grants_read() - what a guest has granted for a region
 * @domid:	guest
 * @list:	grant of the list, see struct vmri_twin
 * @pages:	of the region, 1 .. VMRI_TWIN_GRANTS squared
 *
 * Return: the grants of the pages, for kvfree(), or an error pointer.
 */
u32 *uplink_grants_read(u16 domid, u32 list, u32 pages)
{
	u32 *lists, *refs;

	if (pages <= VMRI_TWIN_GRANTS)
		return uplink_copy_lists(domid, &list, pages);

	lists = uplink_copy_lists(domid, &list,
				  DIV_ROUND_UP(pages, VMRI_TWIN_GRANTS));
	if (IS_ERR(lists))
		return lists;
	refs = uplink_copy_lists(domid, lists, pages);
	kvfree(lists);
	return refs;
}
