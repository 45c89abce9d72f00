// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: guests that have twins, and the workers of each.
 *
 * What one guest asks for may take long: a host that does not answer, a queue that
 * does not drain.  It keeps a few workers busy then, and others have theirs.
 */
#include <linux/slab.h>

#include "uplink.h"

#define UPLINK_WORKERS		16	/* of a guest, at a time */

/**
 * uplink_guest_get() - the guest of a twin
 * @up:		uplink; the caller is its runner
 * @domid:	guest
 *
 * Return: it, for uplink_guest_put(); or NULL: no memory.
 */
struct uplink_guest *uplink_guest_get(struct uplink *up, u16 domid)
{
	struct uplink_guest *guest = xa_load(&up->guests, domid);

	if (guest) {
		guest->twins++;
		return guest;
	}

	guest = kzalloc(sizeof(*guest), GFP_KERNEL);
	if (!guest)
		return NULL;
	guest->domid = domid;
	guest->twins = 1;
	guest->wq = alloc_workqueue("softib_uplink/%u", WQ_UNBOUND,
				    UPLINK_WORKERS, domid);
	if (!guest->wq)
		goto err_guest;
	if (xa_insert(&up->guests, domid, guest, GFP_KERNEL))
		goto err_wq;
	return guest;

err_wq:
	destroy_workqueue(guest->wq);
err_guest:
	kfree(guest);
	return NULL;
}

/* One twin of it has gone; its worker is about to return, at the most. */
void uplink_guest_put(struct uplink *up, struct uplink_guest *guest)
{
	if (--guest->twins)
		return;
	xa_erase(&up->guests, guest->domid);
	destroy_workqueue(guest->wq);
	kfree(guest);
}
