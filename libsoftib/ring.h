/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The order in which provider and hypervisor see each other's accesses to the
 * memory that they share (vmri/ring.h).  Every access to a word of a ring's
 * header goes through this file; nothing else in the provider needs a barrier.
 *
 *  - An index is stored with release order after the slots it gives away, and
 *    loaded with acquire order before the slots it hands over.
 *  - A side that stores one word and then decides by another whether to wake
 *    its peer (producer index, then `running`, `wait` or `arm`) puts a full
 *    fence between the two: the peer does the same in the opposite order, so
 *    at least one of them sees the other's store.
 */
#ifndef __SOFTIB_RING_H__
#define __SOFTIB_RING_H__

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <vmri/ring.h>

#include "lock.h"

static inline uint32_t ring_load(const uint32_t *word)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)word,
				    memory_order_acquire);
}

static inline void ring_store(uint32_t *word, uint32_t value)
{
	atomic_store_explicit((_Atomic(uint32_t) *)word, value,
			      memory_order_release);
}

static inline void ring_full_fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/* One direction of a queue pair.  A queue that is absent has no entries. */
struct softib_wq {
	struct softib_lock	lock;
	uint32_t		prod;		/* protected by lock */
	uint32_t		entries;	/* a power of two, or 0 */
	uint32_t		max_sge;
	uint8_t			log2_stride;
	struct vmri_wq_hdr	*hdr;
	uint8_t			*slots;
};

/* The slot of a free-running index. */
static inline void *wq_slot(const struct softib_wq *wq, uint32_t index)
{
	return wq->slots +
	       ((size_t)(index & (wq->entries - 1)) << wq->log2_stride);
}

/* The device is gone: nothing that is posted will ever be looked at. */
static inline bool wq_is_dead(const struct softib_wq *wq)
{
	return ring_load(&wq->hdr->dead);
}

static inline bool wq_is_full(const struct softib_wq *wq)
{
	return wq->prod - ring_load(&wq->hdr->cons) >= wq->entries;
}

/* Hand all slots below wq->prod to the hypervisor. */
static inline void wq_publish(struct softib_wq *wq)
{
	ring_store(&wq->hdr->prod, wq->prod);
	ring_full_fence();
}

/*
 * After wq_publish(): does somebody have to be told?  The engine looks at a
 * send queue again by itself while it runs it; it looks at a receive queue by
 * itself unless a sender waits there.
 */
static inline bool sq_needs_doorbell(const struct softib_wq *sq)
{
	return !ring_load(&sq->hdr->running);
}

static inline bool rq_needs_doorbell(const struct softib_wq *rq)
{
	return ring_load(&rq->hdr->wait);
}

/*
 * Ask for an event on the next completion that fits @arm.  A wish that is
 * already there is only ever widened: of two calls the stronger one holds.
 */
static inline void cq_arm(struct vmri_cq_hdr *hdr, uint32_t arm)
{
	_Atomic(uint32_t) *word = (_Atomic(uint32_t) *)&hdr->arm;
	uint32_t old = atomic_load_explicit(word, memory_order_relaxed);

	while (old < arm && !atomic_compare_exchange_weak(word, &old, arm))
		;
	ring_full_fence();
}

#endif /* __SOFTIB_RING_H__ */
