// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: objects that VMRI's events name, found by their number.
 *
 * The handler of an event holds a reference, which keeps the object from being
 * destroyed; nobody else needs one.
 */
#include "softib.h"

/**
 * softib_ref_publish() - let events find an object
 * @ref:	object's
 * @objects:	of its kind
 * @id:		VMRI's number for it
 *
 * One that VMRI has just destroyed may still stand there.
 *
 * Return: 0 or -ENOMEM.
 */
int softib_ref_publish(struct softib_ref *ref, struct xarray *objects, u32 id)
{
	refcount_set(&ref->count, 1);
	init_completion(&ref->unused);
	return xa_err(xa_store_irq(objects, id, ref, GFP_KERNEL));
}

/**
 * softib_ref_retire() - let no event find an object, and wait for those that did
 * @ref:	object's, that has been published
 * @objects:	of its kind
 * @id:		its number, which another may have by now
 *
 * Context: may sleep.
 */
void softib_ref_retire(struct softib_ref *ref, struct xarray *objects, u32 id)
{
	xa_cmpxchg_irq(objects, id, ref, NULL, 0);
	softib_ref_put(ref);
	wait_for_completion(&ref->unused);
}

/**
 * softib_ref_get() - find an object
 * @objects:	of its kind
 * @id:		VMRI's number
 *
 * Context: any.
 * Return: its reference, to be put, or NULL.
 */
struct softib_ref *softib_ref_get(struct xarray *objects, u32 id)
{
	struct softib_ref *ref;
	unsigned long flags;

	xa_lock_irqsave(objects, flags);
	ref = xa_load(objects, id);
	if (ref)
		refcount_inc(&ref->count);
	xa_unlock_irqrestore(objects, flags);
	return ref;
}

void softib_ref_put(struct softib_ref *ref)
{
	if (refcount_dec_and_test(&ref->count))
		complete(&ref->unused);
}
