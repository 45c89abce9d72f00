/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SoftIB: the order in which the guest and the hypervisor see each other's
 * accesses to the memory that they share.
 *
 * An index is stored after the slots that it gives away, and loaded before the
 * slots that it hands over.  Who stores one word and then looks at another to
 * decide whether the other side must be told (prod and then running or wait, arm
 * and then prod) puts a full fence between the two.
 *
 * The other side runs on another CPU even if this guest has only one: so these
 * are the barriers that a kernel for one CPU does not leave out.
 */
#ifndef SOFTIB_RING_H
#define SOFTIB_RING_H

#include <linux/types.h>
#include <asm/barrier.h>

static inline u32 ring_load(const u32 *word)
{
	/* Before the slots that the index hands over. */
	return virt_load_acquire(word);
}

static inline void ring_store(u32 *word, u32 value)
{
	/* After the slots that the index gives away. */
	virt_store_release(word, value);
}

static inline void ring_fence(void)
{
	/* Pairs with VMRI's between the same words in the opposite order. */
	virt_mb();
}

#endif /* SOFTIB_RING_H */
