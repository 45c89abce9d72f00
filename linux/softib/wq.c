// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the work queues of the kernel: their memory, slots and entries.
 *
 * The kernel's requests name kernel addresses (the device has no DMA device, so
 * ib_dma_map_*() does nothing), which VMRI cannot know: each piece of a page
 * becomes an entry that names the frame.  They stand in the request's slot when
 * they fit, and else in a ring of their own, which is freed in the same order.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "ring.h"
#include "softib.h"

/*
 * Room for entries of the kernel's outside their slots: at least for one request
 * of the largest size, and not so much that the queue gets too large.
 */
#define SOFTIB_MIN_INDIRECT	VMRI_MAX_INDIRECT
#define SOFTIB_MAX_INDIRECT	0x10000

/* ---- layout of the shared memory ---- */

/**
 * softib_wq_lay_out() - find a place for a queue in its region
 * @l:		filled in; all zero for a queue without requests
 * @wrs:	requests
 * @header:	bytes of a request's header
 * @room:	bytes behind that, at least
 * @max_sge:	entries that VMRI takes
 * @size:	of the region, in bytes; grows
 */
void softib_wq_lay_out(struct softib_wq_layout *l, u32 wrs, u32 header,
		       u32 room, u32 max_sge, size_t *size)
{
	memset(l, 0, sizeof(*l));
	if (!wrs)
		return;

	l->entries = roundup_pow_of_two(wrs);
	l->stride = roundup_pow_of_two(header + room);
	l->frames = min_t(u32, (l->stride - header) / sizeof(struct vmri_sge),
			  max_sge);
	l->offset = ALIGN(*size, l->stride);
	*size = l->offset + (size_t)l->entries * l->stride;
}

/**
 * softib_wq_indirect() - entries that a queue of the kernel gets outside
 * @l:		the queue
 * @frames:	of a request, that are reckoned with
 *
 * Return: a power of two, or 0 for a queue that is not there.
 */
u32 softib_wq_indirect(const struct softib_wq_layout *l, u32 frames)
{
	if (!l->entries)
		return 0;
	return roundup_pow_of_two(clamp(l->entries * frames,
					SOFTIB_MIN_INDIRECT,
					SOFTIB_MAX_INDIRECT));
}

/**
 * softib_wq_init() - make a queue of the kernel ready for posting
 * @wq:		queue
 * @hdr:	its header
 * @region:	where it lies
 * @l:		how
 * @max_sge:	entries of a request by its poster
 *
 * Return: 0 or -ENOMEM; softib_wq_fini() undoes either.
 */
int softib_wq_init(struct softib_wq *wq, struct vmri_wq_hdr *hdr,
		   const struct softib_region *region,
		   const struct softib_wq_layout *l, u32 max_sge)
{
	spin_lock_init(&wq->lock);
	wq->hdr = hdr;
	wq->slots = region->addr + l->offset;
	wq->entries = l->entries;
	wq->log2_stride = l->entries ? ilog2(l->stride) : 0;
	wq->max_sge = max_sge;
	wq->max_frames = l->frames;
	if (!l->entries)
		return 0;

	wq->ind.end = kvcalloc(l->entries, sizeof(*wq->ind.end), GFP_KERNEL);
	return wq->ind.end ? 0 : -ENOMEM;
}

void softib_wq_fini(struct softib_wq *wq)
{
	kvfree(wq->ind.end);
}

/* ---- slots ---- */

/**
 * softib_wq_reap() - note what VMRI has consumed
 * @wq:		queue of the kernel, locked, that exists
 */
void softib_wq_reap(struct softib_wq *wq)
{
	u32 cons = ring_load(&wq->hdr->cons);

	if (cons != wq->cons) {
		wq->ind.cons = wq->ind.end[(cons - 1) & (wq->entries - 1)];
		wq->cons = cons;
	}
}

/* The same; true when there is no slot for another request. */
bool softib_wq_full(struct softib_wq *wq)
{
	u32 entries = wq->entries;

	if (wq->moves_to)
		entries = min(entries, wq->moves_to->entries);
	softib_wq_reap(wq);
	return wq->prod - wq->cons >= entries;
}

/**
 * softib_wq_reset() - forget what is posted to a queue that was reset
 * @wq:		queue of the kernel
 */
void softib_wq_reset(struct softib_wq *wq)
{
	unsigned long flags;

	if (!wq->entries)
		return;

	spin_lock_irqsave(&wq->lock, flags);
	wq->cons = ring_load(&wq->hdr->cons);
	wq->prod = wq->cons;
	ring_store(&wq->hdr->prod, wq->prod);
	wq->ind.prod = 0;
	wq->ind.cons = 0;
	spin_unlock_irqrestore(&wq->lock, flags);
}

/* ---- entries ---- */

static void softib_sgl_count(const struct ib_sge *sge, int num,
			     struct softib_sgl *sgl)
{
	memset(sgl, 0, sizeof(*sgl));
	for (; num; num--, sge++) {
		if (!sge->length)
			continue;
		sgl->length += sge->length;
		if (sge->lkey == VMRI_LKEY_FRAMES)
			sgl->frames += PFN_UP(offset_in_page(sge->addr) +
					      (u64)sge->length);
		else
			sgl->frames++;
	}
}

/*
 * Room for consecutive entries in the indirect list: -EINVAL when it can never
 * hold so many, -ENOMEM when it does not now.
 */
static int softib_indirect_reserve(struct softib_indirect *ind, u32 num,
				   u32 *index)
{
	u32 offset = ind->prod & (ind->entries - 1);
	u32 used = ind->prod - ind->cons;
	u32 pad = 0;

	if (num > ind->entries)
		return -EINVAL;
	/* They do not wrap around: pass over an end that is too short. */
	if (ind->entries - offset < num) {
		pad = ind->entries - offset;
		offset = 0;
	}
	if (used && used + pad + num > ind->entries)
		return -ENOMEM;

	ind->prod += pad + num;
	*index = offset;
	return 0;
}

/* The next free entry, or NULL when the kernel has no memory there. */
static struct vmri_sge *softib_fill_frames(struct vmri_sge *to, u64 addr,
					   u32 length)
{
	const void *p = ib_virt_dma_to_ptr(addr);

	while (length) {
		struct page *page = softib_virt_to_page(p);
		u32 offset = offset_in_page(p);
		u32 n = min_t(u32, length, PAGE_SIZE - offset);

		if (!page)
			return NULL;
		*to++ = (struct vmri_sge) {
			.addr = softib_page_gfn(page) << PAGE_SHIFT | offset,
			.length = n,
			.lkey = VMRI_LKEY_FRAMES,
		};
		p += n;
		length -= n;
	}
	return to;
}

static int softib_fill_sgl(struct vmri_sge *to, const struct ib_sge *sge,
			   int num)
{
	for (; num; num--, sge++) {
		if (!sge->length)
			continue;
		if (sge->lkey != VMRI_LKEY_FRAMES) {
			*to++ = (struct vmri_sge) {
				.addr = sge->addr,
				.length = sge->length,
				.lkey = sge->lkey,
			};
			continue;
		}
		to = softib_fill_frames(to, sge->addr, sge->length);
		if (!to)
			return -EFAULT;
	}
	return 0;
}

/**
 * softib_put_sgl() - write the entries of a request
 * @wq:		queue of the kernel, locked, with a free slot
 * @direct:	where they are in the slot, if they fit
 * @sge:	entries
 * @num:	how many
 * @sgl:	filled in
 *
 * Return: 0 or a negative errno; a request that fails has taken nothing.
 */
int softib_put_sgl(struct softib_wq *wq, struct vmri_sge *direct,
		   const struct ib_sge *sge, int num, struct softib_sgl *sgl)
{
	u32 prod = wq->ind.prod;
	struct vmri_sge *to = direct;
	u32 index;
	int ret;

	if (num < 0 || num > wq->max_sge)
		return -EINVAL;

	softib_sgl_count(sge, num, sgl);
	if (sgl->length > U32_MAX || sgl->frames > VMRI_MAX_INDIRECT)
		return -EINVAL;

	if (sgl->frames > wq->max_frames) {
		ret = softib_indirect_reserve(&wq->ind, sgl->frames, &index);
		if (ret)
			return ret;
		to = wq->ind.ring + index;
		sgl->indirect = true;
		sgl->ind_start = wq->ind.first + index;
	}

	ret = softib_fill_sgl(to, sge, num);
	if (ret)
		wq->ind.prod = prod;
	return ret;
}

/* ---- moving ---- */

/* Put a slot into its new place.  The caller holds the lock. */
static void softib_wq_move_slot(struct softib_wq *wq, u32 index)
{
	struct softib_wq *to = wq->moves_to;

	memcpy(softib_wq_slot(to, index), softib_wq_slot(wq, index),
	       1U << wq->log2_stride);
	to->ind.end[index & (to->entries - 1)] =
		wq->ind.end[index & (wq->entries - 1)];
}

/* The same with indirect entries, whose places are the same there. */
static void softib_wq_move_indirect(struct softib_wq *wq, u32 from, u32 num)
{
	u32 mask = wq->ind.entries - 1;

	for (; num; num--, from++)
		wq->moves_to->ind.ring[from & mask] = wq->ind.ring[from & mask];
}

/**
 * softib_wq_move() - put all that is posted to a queue into another place, too
 * @wq:		queue of the kernel that is never reset
 * @to:		the other place, of as many indirect entries
 *
 * What is posted from now on is found in both, until softib_wq_moved().  VMRI
 * may go over from the one to the other at any time.
 *
 * Context: may sleep; posters wait for a few entries to be copied at most.
 * Return: 0, or -EINVAL when not all has room there.
 */
int softib_wq_move(struct softib_wq *wq, struct softib_wq *to)
{
	u32 i, end;

	spin_lock_irq(&wq->lock);
	softib_wq_reap(wq);
	i = wq->cons;
	end = wq->prod;
	if (end - i <= to->entries) {
		to->prod = end;
		ring_store(&to->hdr->prod, end);
		wq->moves_to = to;
	}
	spin_unlock_irq(&wq->lock);
	if (!wq->moves_to)
		return -EINVAL;

	for (; i != end; i++) {
		spin_lock_irq(&wq->lock);
		/* It may have been consumed, and its place be another's. */
		if (wq->prod - i <= to->entries)
			softib_wq_move_slot(wq, i);
		spin_unlock_irq(&wq->lock);
		cond_resched();
	}
	for (i = 0; i < wq->ind.entries; i += VMRI_MAX_INDIRECT) {
		spin_lock_irq(&wq->lock);
		softib_wq_move_indirect(wq, i, VMRI_MAX_INDIRECT);
		spin_unlock_irq(&wq->lock);
		cond_resched();
	}
	return 0;
}

/**
 * softib_wq_moved() - have a queue in one place only again
 * @wq:		queue that moved
 * @there:	VMRI has gone over; else it has not
 *
 * The place that is left is in what softib_wq_move() was given.
 */
void softib_wq_moved(struct softib_wq *wq, bool there)
{
	struct softib_wq *to = wq->moves_to;

	if (!to)
		return;

	spin_lock_irq(&wq->lock);
	if (there) {
		to->ind.prod = wq->ind.prod;
		to->ind.cons = wq->ind.cons;
		swap(wq->hdr, to->hdr);
		swap(wq->slots, to->slots);
		swap(wq->ind, to->ind);
		swap(wq->entries, to->entries);
	}
	wq->moves_to = NULL;
	spin_unlock_irq(&wq->lock);
}

/* ---- showing what was posted ---- */

/* The slot that was just written is the next one. */
void softib_wq_push(struct softib_wq *wq)
{
	u32 mask = wq->entries - 1;
	u32 ind = wq->ind.end[(wq->prod - 1) & mask];

	wq->ind.end[wq->prod & mask] = wq->ind.prod;
	if (wq->moves_to) {
		softib_wq_move_slot(wq, wq->prod);
		softib_wq_move_indirect(wq, ind, wq->ind.prod - ind);
	}
	wq->prod++;
}

/*
 * Show VMRI all slots that were pushed, before asking whether it looks: first
 * where it is to go, so that it sees there whatever it has seen here.
 */
void softib_wq_publish(struct softib_wq *wq)
{
	if (wq->moves_to)
		ring_store(&wq->moves_to->hdr->prod, wq->prod);
	ring_store(&wq->hdr->prod, wq->prod);
	ring_fence();
}

/* Does VMRI wait for what is posted?  Asked after softib_wq_publish(). */
bool softib_wq_awaited(const struct softib_wq *wq)
{
	return READ_ONCE(wq->hdr->wait) ||
	       (wq->moves_to && READ_ONCE(wq->moves_to->hdr->wait));
}
