// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the subnet management agent of the switch that a subnet manager sees (IBTA
 * 1.4, 14.2.5): its management port 0, and the ports at which devices are.  VMRI
 * forwards by its own knowledge of the fabric, which the tables of the switch only
 * repeat: who sets them is heard and not obeyed.
 */
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include "switch.h"

#define SOFTIB_SWITCH_LIDS	(VMRI_LID_MAX + 1)
#define SOFTIB_SWITCH_MLIDS	1024
#define SOFTIB_NO_PORT		0xff
#define SOFTIB_MAX_VL_TABLE	4	/* of VLArbitration's modifier */

struct softib_switch_info {
	__be16 linear_cap;
	__be16 random_cap;
	__be16 mcast_cap;
	__be16 linear_top;
	u8 default_port;
	u8 default_primary;
	u8 default_not_primary;
	u8 life_change_sl2vl;		/* 5, 1, 2 bits */
	__be16 lids_per_port;
	__be16 enforcement_cap;
	u8 flags;
	u8 reserved;
	__be16 mcast_top;
} __packed;
static_assert(sizeof(struct softib_switch_info) == 20);

#define SOFTIB_PORT_STATE_CHANGE	0x04

static u16 softib_switch_node_info(struct softib_switch *sw, struct ib_smp *smp)
{
	struct ib_node_info *info = (void *)smp->data;

	softib_node_info(softib_switch_guid(sw), info);
	info->node_type = RDMA_NODE_IB_SWITCH;
	info->num_ports = SOFTIB_SWITCH_PORTS;
	/* Where the question came in. */
	info->local_port_num = READ_ONCE(sw->own);
	return 0;
}

static u16 softib_switch_switch_info(struct softib_switch *sw,
				     struct ib_smp *smp)
{
	struct softib_switch_info *info = (void *)smp->data, want = *info;
	unsigned long flags;

	memset(smp->data, 0, sizeof(smp->data));
	spin_lock_irqsave(&sw->lock, flags);
	if (smp->method == IB_MGMT_METHOD_SET) {
		sw->linear_top = be16_to_cpu(want.linear_top);
		sw->mcast_top = be16_to_cpu(want.mcast_top);
		sw->life = want.life_change_sl2vl >> 3;
		/* Writing it takes it back. */
		if (want.life_change_sl2vl & SOFTIB_PORT_STATE_CHANGE)
			sw->changed = false;
	}
	*info = (struct softib_switch_info) {
		.linear_cap = cpu_to_be16(SOFTIB_SWITCH_LIDS),
		.mcast_cap = cpu_to_be16(SOFTIB_SWITCH_MLIDS),
		.linear_top = cpu_to_be16(sw->linear_top),
		.life_change_sl2vl = sw->life << 3 |
			(sw->changed ? SOFTIB_PORT_STATE_CHANGE : 0),
		.mcast_top = cpu_to_be16(sw->mcast_top),
	};
	spin_unlock_irqrestore(&sw->lock, flags);
	return 0;
}

static u16 softib_switch_guids(struct softib_switch *sw, struct ib_smp *smp)
{
	__be64 *guids = (__be64 *)smp->data;

	if (smp->attr_mod)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	guids[0] = cpu_to_be64(softib_switch_guid(sw));
	return 0;
}

/* ---- PortInfo ---- */

/* The management port is the switch itself. */
static u16 softib_switch_port0(struct softib_switch *sw, bool set,
			       struct ib_port_info *info)
{
	struct ib_port_info want = *info;
	struct vmri_port_query port = {
		.state = VMRI_PORT_ACTIVE,
		.mtu = SOFTIB_SA_MTU,
		.cap_mask = IB_PORT_SYS_IMAGE_GUID_SUP,
		.gid_prefix = be64_to_cpu(want.gid_prefix),
	};
	u16 lid = be16_to_cpu(want.lid);
	unsigned long flags;

	if (set && (!lid || lid > VMRI_LID_MAX || want.mkey ||
		    (want.mkeyprot_resv_lmc & 7)))
		return SOFTIB_MAD_BAD_VALUE;

	spin_lock_irqsave(&sw->lock, flags);
	if (set) {
		sw->lid = lid;
		sw->sm_lid = be16_to_cpu(want.sm_lid);
	}
	port.lid = sw->lid;
	softib_port_info(&port, sw->sm_lid, info);
	spin_unlock_irqrestore(&sw->lock, flags);
	info->local_port_num = READ_ONCE(sw->own);
	if (set)
		softib_link_echo(&want, info);
	return 0;
}

/* The state is that of the link, which the device's port has, too. */
static u16 softib_switch_set_link(struct softib_switch *sw, unsigned int number,
				  const struct ib_port_info *want)
{
	struct vmri_ctl_port now = {}, arg = {};
	struct softib_slot slot;

	/* Of a port with nothing at it there is nothing to set. */
	if (!softib_switch_slot(sw, number, &slot))
		return 0;
	if (softib_link_call(&slot, sw, &now))
		return SOFTIB_MAD_BUSY;
	if (!softib_link_next_state(want, now.state, &arg))
		return SOFTIB_MAD_BAD_VALUE;
	if (arg.mask && softib_link_call(&slot, sw, &arg))
		return SOFTIB_MAD_BUSY;
	if (arg.mask)
		softib_switch_note(sw, number, &arg);
	return 0;
}

static u16 softib_switch_link(struct softib_switch *sw, unsigned int number,
			      bool set, struct ib_port_info *info)
{
	struct vmri_port_query port = {
		.state = VMRI_PORT_DOWN,
		.mtu = SOFTIB_SA_MTU,
	};
	struct ib_port_info want = *info;
	struct vmri_ctl_port now = {};
	struct softib_slot slot;
	u16 status = 0;

	if (set)
		status = softib_switch_set_link(sw, number, &want);
	if (status)
		return status;

	if (softib_switch_slot(sw, number, &slot) &&
	    !softib_link_call(&slot, sw, &now))
		port.state = now.state;
	softib_port_info(&port, 0, info);
	info->local_port_num = READ_ONCE(sw->own);
	info->guid_cap = 0;
	if (set)
		softib_link_echo(&want, info);
	return 0;
}

static u16 softib_switch_port_info(struct softib_switch *sw, struct ib_smp *smp)
{
	unsigned int number = be32_to_cpu(smp->attr_mod) & 0xff;
	bool set = smp->method == IB_MGMT_METHOD_SET;

	if (number > SOFTIB_SWITCH_PORTS)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	return number ? softib_switch_link(sw, number, set, (void *)smp->data) :
			softib_switch_port0(sw, set, (void *)smp->data);
}

/* ---- tables ---- */

/* Port 0 has one; the others enforce nothing. */
static u16 softib_switch_pkeys(struct softib_switch *sw, struct ib_smp *smp)
{
	__be16 *table = (__be16 *)smp->data;
	u32 mod = be32_to_cpu(smp->attr_mod);
	unsigned long flags;
	int i;

	if (mod & 0xffff)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	if (mod >> 16) {
		if (smp->method == IB_MGMT_METHOD_GET)
			memset(smp->data, 0, sizeof(smp->data));
		return 0;
	}

	spin_lock_irqsave(&sw->lock, flags);
	for (i = 0; i < VMRI_MAX_PKEYS; i++) {
		if (smp->method == IB_MGMT_METHOD_SET)
			sw->pkeys[i] = be16_to_cpu(table[i]);
		table[i] = cpu_to_be16(sw->pkeys[i]);
	}
	spin_unlock_irqrestore(&sw->lock, flags);
	return 0;
}

/* A block of 64 LIDs: the port at which each is. */
static u16 softib_switch_forwarding(struct softib_switch *sw,
				    struct ib_smp *smp)
{
	u32 first = be32_to_cpu(smp->attr_mod);
	unsigned int i, port;
	u16 lid = READ_ONCE(sw->lid);

	if (first >= SOFTIB_SWITCH_LIDS / IB_SMP_DATA_SIZE)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	if (smp->method == IB_MGMT_METHOD_SET)
		return 0;

	first *= IB_SMP_DATA_SIZE;
	for (i = 0; i < IB_SMP_DATA_SIZE; i++) {
		port = softib_switch_find_lid(sw, first + i);
		smp->data[i] = port ? port : lid && lid == first + i ?
			       0 : SOFTIB_NO_PORT;
	}
	return 0;
}

/* VMRI knows who is in a group; the table of the switch is empty. */
static u16 softib_switch_mcast(struct ib_smp *smp)
{
	u32 block = be32_to_cpu(smp->attr_mod) & 0x1ff;

	if (block >= SOFTIB_SWITCH_MLIDS / 32)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	if (smp->method == IB_MGMT_METHOD_GET)
		memset(smp->data, 0, sizeof(smp->data));
	return 0;
}

/* All levels go to the one lane, whatever is said. */
static u16 softib_switch_lanes(struct ib_smp *smp)
{
	if (smp->attr_id == IB_SMP_ATTR_VL_ARB_TABLE &&
	    be32_to_cpu(smp->attr_mod) >> 16 > SOFTIB_MAX_VL_TABLE)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	if (smp->method == IB_MGMT_METHOD_GET)
		memset(smp->data, 0, sizeof(smp->data));
	return 0;
}

static u16 softib_switch_get(struct softib_switch *sw, struct ib_smp *smp)
{
	if (smp->method != IB_MGMT_METHOD_GET)
		return SOFTIB_MAD_BAD_METHOD;
	memset(smp->data, 0, sizeof(smp->data));

	switch (smp->attr_id) {
	case IB_SMP_ATTR_NODE_DESC:
		snprintf((char *)smp->data, sizeof(smp->data),
			 "VMRI fabric %u", sw->fabric);
		return 0;
	case IB_SMP_ATTR_NODE_INFO:
		return softib_switch_node_info(sw, smp);
	case IB_SMP_ATTR_GUID_INFO:
		return softib_switch_guids(sw, smp);
	default:
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	}
}

u16 softib_switch_sma(struct softib_switch *sw, struct ib_smp *smp)
{
	switch (smp->attr_id) {
	case IB_SMP_ATTR_SWITCH_INFO:
		return softib_switch_switch_info(sw, smp);
	case IB_SMP_ATTR_PORT_INFO:
		return softib_switch_port_info(sw, smp);
	case IB_SMP_ATTR_PKEY_TABLE:
		return softib_switch_pkeys(sw, smp);
	case IB_SMP_ATTR_SL_TO_VL_TABLE:
	case IB_SMP_ATTR_VL_ARB_TABLE:
		return softib_switch_lanes(smp);
	case IB_SMP_ATTR_LINEAR_FORWARD_TABLE:
		return softib_switch_forwarding(sw, smp);
	case IB_SMP_ATTR_MCAST_FORWARD_TABLE:
		return softib_switch_mcast(smp);
	default:
		return softib_switch_get(sw, smp);
	}
}
