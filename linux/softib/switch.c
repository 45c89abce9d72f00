// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the switch that a subnet manager sees: which device is at which port, and
 * whom a management packet is for.
 *
 * The manager's own port is linked to the switch as all others are.  So a directed
 * route of one hop ends at the switch, and one of two at a device (IBTA 1.4,
 * 14.2.2); there is nothing behind a device.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "switch.h"

/* A switch's number is made as those of devices, with a fabric in place of ids. */
#define SOFTIB_SWITCH_GUID	0x02163effff000000ULL

/**
 * softib_switch_init() - a switch with nothing at its ports
 * @sw:		switch
 * @dev:	device of the manager
 * @fabric:	that it manages
 * @own_guid:	of the manager's port
 */
void softib_switch_init(struct softib_switch *sw, struct softib_dev *dev,
			u32 fabric, u64 own_guid)
{
	memset(sw, 0, sizeof(*sw));
	spin_lock_init(&sw->lock);
	sw->dev = dev;
	sw->fabric = fabric;
	sw->own_guid = own_guid;
	sw->pkeys[0] = 0xffff;
	sw->life = SOFTIB_SA_LIFE;
}

u64 softib_switch_guid(const struct softib_switch *sw)
{
	return SOFTIB_SWITCH_GUID | sw->fabric;
}

/* ---- which device is at which port ---- */

/* The port of a device, or a free one for it; 0: there is none. */
static unsigned int softib_switch_place(struct softib_switch *sw, u64 guid)
{
	unsigned int port, unused = 0;

	for (port = SOFTIB_SWITCH_PORTS; port; port--) {
		if (!sw->slots[port].used)
			unused = port;
		else if (sw->slots[port].guid == guid)
			return port;
	}
	return unused;
}

static void softib_switch_see(struct softib_switch *sw,
			      const struct softib_slot *found)
{
	unsigned int port = softib_switch_place(sw, found->guid);
	struct softib_slot *slot = &sw->slots[port];

	if (!port)
		return;
	if (!slot->used || slot->state != found->state)
		sw->changed = true;
	*slot = *found;
	if (found->guid == sw->own_guid)
		sw->own = port;
}

/* Those that were not seen have gone. */
static void softib_switch_sweep(struct softib_switch *sw)
{
	unsigned int port;

	for (port = 1; port <= SOFTIB_SWITCH_PORTS; port++) {
		struct softib_slot *slot = &sw->slots[port];

		if (slot->used && !slot->seen) {
			slot->used = false;
			sw->changed = true;
		}
		slot->seen = false;
	}
}

/**
 * softib_switch_refresh() - look again which devices the fabric has
 * @sw:		switch
 *
 * Context: by one at a time.
 */
void softib_switch_refresh(struct softib_switch *sw)
{
	struct vmri_ctl_info info = {};
	unsigned long flags;

	for (; !softib_call(sw->dev, VMRI_OP_ctl_list, &info); info.dev_id++) {
		struct softib_slot found = {
			.used = true,
			.seen = true,
			.domid = info.domid,
			.dev_id = info.dev_id,
			.guid = info.guid,
		};
		struct vmri_ctl_port port = {};

		if (info.fabric != sw->fabric ||
		    softib_link_call(&found, sw, &port))
			continue;
		found.lid = port.lid;
		found.state = port.state;
		spin_lock_irqsave(&sw->lock, flags);
		softib_switch_see(sw, &found);
		spin_unlock_irqrestore(&sw->lock, flags);
	}

	spin_lock_irqsave(&sw->lock, flags);
	softib_switch_sweep(sw);
	spin_unlock_irqrestore(&sw->lock, flags);
}

/**
 * softib_switch_slot() - what is at a port
 * @sw:		switch
 * @port:	port, any number
 * @slot:	filled in
 *
 * Return: false if nothing is.
 */
bool softib_switch_slot(struct softib_switch *sw, unsigned int port,
			struct softib_slot *slot)
{
	unsigned long flags;

	if (!port || port > SOFTIB_SWITCH_PORTS)
		return false;
	spin_lock_irqsave(&sw->lock, flags);
	*slot = sw->slots[port];
	spin_unlock_irqrestore(&sw->lock, flags);
	return slot->used;
}

/* The port at which the device with a LID is, or 0. */
unsigned int softib_switch_find_lid(struct softib_switch *sw, u16 lid)
{
	unsigned int port, found = 0;
	unsigned long flags;

	spin_lock_irqsave(&sw->lock, flags);
	for (port = SOFTIB_SWITCH_PORTS; port; port--)
		if (sw->slots[port].used && sw->slots[port].lid == lid)
			found = port;
	spin_unlock_irqrestore(&sw->lock, flags);
	return found;
}

/* What the manager itself has changed is no news to it. */
void softib_switch_note(struct softib_switch *sw, unsigned int port,
			const struct vmri_ctl_port *now)
{
	unsigned long flags;

	spin_lock_irqsave(&sw->lock, flags);
	sw->slots[port].lid = now->lid;
	sw->slots[port].state = now->state;
	spin_unlock_irqrestore(&sw->lock, flags);
}

/**
 * softib_switch_release() - no subnet manager runs any more
 * @sw:		switch
 *
 * The ports that it managed have themselves for it again, and those that it has not
 * got to are active.
 */
void softib_switch_release(struct softib_switch *sw)
{
	struct softib_slot slot;
	unsigned int port;

	for (port = 1; port <= SOFTIB_SWITCH_PORTS; port++) {
		struct vmri_ctl_port arg = {};

		if (!softib_switch_slot(sw, port, &slot) ||
		    softib_link_call(&slot, sw, &arg))
			continue;
		arg.mask = VMRI_PORTA_SM_LID | VMRI_PORTA_REREGISTER;
		if (arg.state != VMRI_PORT_DOWN)
			arg.mask |= VMRI_PORTA_STATE;
		arg.state = VMRI_PORT_ACTIVE;
		arg.sm_lid = 0;
		softib_link_call(&slot, sw, &arg);
	}
}

/* ---- whom a packet is for ---- */

/* Where a packet ends: at the switch, at a device's port, or nowhere. */
#define SOFTIB_AT_SWITCH	0
#define SOFTIB_NOWHERE		UINT_MAX

static bool softib_link_is_up(struct softib_switch *sw, unsigned int port)
{
	struct softib_slot slot;

	return softib_switch_slot(sw, port, &slot) &&
	       slot.state != VMRI_PORT_DOWN;
}

/* ib_mad has taken the first step. */
static unsigned int softib_directed_route(struct softib_switch *sw,
					  const struct ib_smp *smp)
{
	unsigned int port = smp->initial_path[2];

	if ((smp->status & IB_SMP_DIRECTION) || smp->hop_ptr != 1 ||
	    smp->initial_path[1] != SOFTIB_PORT ||
	    smp->dr_slid != IB_LID_PERMISSIVE ||
	    smp->dr_dlid != IB_LID_PERMISSIVE)
		return SOFTIB_NOWHERE;

	switch (smp->hop_cnt) {
	case 1:
		return SOFTIB_AT_SWITCH;
	case 2:
		return softib_link_is_up(sw, port) ? port : SOFTIB_NOWHERE;
	default:
		return SOFTIB_NOWHERE;
	}
}

static unsigned int softib_lid_route(struct softib_switch *sw, u16 dlid)
{
	unsigned int port;

	if (dlid && dlid == READ_ONCE(sw->lid))
		return SOFTIB_AT_SWITCH;
	port = softib_switch_find_lid(sw, dlid);
	return port && softib_link_is_up(sw, port) ? port : SOFTIB_NOWHERE;
}

static bool softib_is_directed(const struct ib_smp *smp)
{
	return smp->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
}

/* The way back of a directed route, at the end of which the packet is. */
static void softib_turn_round(const struct softib_switch *sw,
			      struct ib_smp *smp)
{
	smp->hop_ptr = 1;
	smp->return_path[1] = READ_ONCE(sw->own);
	if (smp->hop_cnt == 2)
		smp->return_path[2] = SOFTIB_PORT;
	smp->status |= IB_SMP_DIRECTION;
}

static bool softib_smp_is_request(const struct ib_smp *smp)
{
	return smp->method == IB_MGMT_METHOD_GET ||
	       smp->method == IB_MGMT_METHOD_SET;
}

static u16 softib_sma_at(struct softib_switch *sw, unsigned int end,
			 struct ib_smp *smp)
{
	if (smp->class_version != 1)
		return SOFTIB_MAD_BAD_VERSION;
	return end == SOFTIB_AT_SWITCH ? softib_switch_sma(sw, smp) :
					 softib_link_sma(sw, end, smp);
}

/**
 * softib_switch_answer() - answer what the manager sends from its QP0
 * @sw:		switch
 * @in:		packet
 * @dlid:	where it is sent to
 * @out:	the response
 * @from:	the LID that this comes from
 *
 * Context: any.
 * Return: whether there is one.
 */
enum softib_smp_way softib_switch_answer(struct softib_switch *sw,
					 const struct ib_smp *in, u16 dlid,
					 struct ib_smp *out, u16 *from)
{
	bool directed = softib_is_directed(in);
	unsigned int end;

	if (!directed && in->mgmt_class != IB_MGMT_CLASS_SUBN_LID_ROUTED)
		return SOFTIB_SMP_OWN;
	end = directed ? softib_directed_route(sw, in) :
			 softib_lid_route(sw, dlid);
	/* By its LID it reaches its agents as on any device. */
	if (!directed && end && end == READ_ONCE(sw->own))
		return SOFTIB_SMP_OWN;
	if (end == SOFTIB_NOWHERE || !softib_smp_is_request(in))
		return SOFTIB_SMP_LOST;

	*out = *in;
	out->status = cpu_to_be16(softib_sma_at(sw, end, out));
	out->method = IB_MGMT_METHOD_GET_RESP;
	if (directed)
		softib_turn_round(sw, out);
	*from = dlid;
	return SOFTIB_SMP_ANSWERED;
}

/**
 * softib_switch_own_smp() - answer a request for the manager's own port
 * @sw:		switch
 * @smp:	request, of which the data is filled in
 * @status:	of the response
 *
 * Return: false when it is the manager that answers.
 */
bool softib_switch_own_smp(struct softib_switch *sw, struct ib_smp *smp,
			   u16 *status)
{
	unsigned int own = READ_ONCE(sw->own);

	if (smp->attr_id == IB_SMP_ATTR_SM_INFO || !own)
		return false;
	*status = softib_sma_at(sw, own, smp);
	return true;
}
