// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the subnet management agent of each device's port, as a subnet manager in
 * dom0 sees it (IBTA 1.4, 14.2.5).  It answers out of VMRI, and what the manager
 * sets becomes an operator's command: the device's guest takes no part.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "switch.h"

#define SOFTIB_MOD_PORT		0xff	/* of PortInfo's attribute modifier */
#define SOFTIB_PHYS_POLLING	2
#define SOFTIB_PHYS_DISABLED	3
#define SOFTIB_REREGISTER	0x80
#define SOFTIB_MAX_MOVES	(2 * SOFTIB_SWITCH_PORTS)

/* The operator's command for the port of a device; see hcall.c for errors. */
int softib_link_call(const struct softib_slot *slot, struct softib_switch *sw,
		     struct vmri_ctl_port *arg)
{
	arg->domid = slot->domid;
	arg->dev_id = slot->dev_id;
	return softib_call(sw->dev, VMRI_OP_ctl_port, arg);
}

/* What the port says of itself, besides what dom0 decides. */
static void softib_link_query(struct softib_switch *sw,
			      const struct softib_slot *slot,
			      const struct vmri_ctl_port *port,
			      struct vmri_port_query *query)
{
	*query = (struct vmri_port_query) { .lid = port->lid };
	if (softib_call(sw->dev, VMRI_OP_port_query, query) ||
	    query->guid != slot->guid)
		*query = (struct vmri_port_query) { .mtu = SOFTIB_SA_MTU };

	query->lid = port->lid;
	query->state = port->state;
	query->guid = slot->guid;
	query->gid_prefix = port->gid_prefix;
	/* Managers of other devices cannot be reached. */
	if (slot->guid != sw->own_guid)
		query->cap_mask &= ~IB_PORT_SM;
	query->cap_mask |= IB_PORT_CLIENT_REG_SUP;
}

/* ---- PortInfo ---- */

/**
 * softib_link_next_state() - what a Set of PortInfo does to the state of a link
 * @want:	what is set
 * @now:	the state that the link has, VMRI_PORT_*
 * @arg:	state, and its bit in mask, are set if it changes
 *
 * IBTA 1.4, 7.2.7: links are armed, then activated; what the manager takes down
 * trains itself again, unless it is disabled.
 *
 * Return: false when there is no such way.
 */
bool softib_link_next_state(const struct ib_port_info *want, u8 now,
			    struct vmri_ctl_port *arg)
{
	u8 state = want->linkspeed_portstate & 0xf;
	u8 phys = want->portphysstate_linkdown >> 4;

	if (phys == SOFTIB_PHYS_DISABLED)
		state = VMRI_PORT_DOWN;
	else if (phys == SOFTIB_PHYS_POLLING && now == VMRI_PORT_DOWN)
		state = VMRI_PORT_INIT;
	else if (phys > SOFTIB_PHYS_DISABLED)
		return false;
	else if (state == VMRI_PORT_DOWN)
		state = now == VMRI_PORT_DOWN ? VMRI_PORT_DOWN : VMRI_PORT_INIT;
	else if ((state == VMRI_PORT_ARMED && now < VMRI_PORT_INIT) ||
		 (state == VMRI_PORT_ACTIVE && now < VMRI_PORT_ARMED) ||
		 state == VMRI_PORT_INIT || state > VMRI_PORT_ACTIVE)
		return false;

	/* An active link that is armed once more stays active. */
	if (!state || (state == VMRI_PORT_ARMED && now == VMRI_PORT_ACTIVE))
		return true;
	arg->mask |= VMRI_PORTA_STATE;
	arg->state = state;
	return true;
}

/* What means nothing to VMRI is what the manager says. */
void softib_link_echo(const struct ib_port_info *want,
		      struct ib_port_info *info)
{
	info->mkey_lease_period = want->mkey_lease_period;
	info->vl_high_limit = want->vl_high_limit;
	info->vlstallcnt_hoqlife = want->vlstallcnt_hoqlife;
	info->clientrereg_resv_subnetto = want->clientrereg_resv_subnetto;
	info->localphyerrors_overrunerrors = want->localphyerrors_overrunerrors;
}

static bool softib_link_valid(const struct ib_port_info *want)
{
	u16 lid = be16_to_cpu(want->lid), sm_lid = be16_to_cpu(want->sm_lid);

	return lid && lid <= VMRI_LID_MAX && sm_lid && sm_lid <= VMRI_LID_MAX &&
	       !want->mkey && !(want->mkeyprot_resv_lmc & 7);
}

/*
 * The device that has a LID which another is to get now: it gets one that is free,
 * until the manager, which has another for it in mind, says which.
 */
static bool softib_link_give_way(struct softib_switch *sw, u16 lid)
{
	unsigned int port = softib_switch_find_lid(sw, lid), i;
	struct vmri_ctl_port arg = {};
	struct softib_slot slot;
	int err = -EEXIST;

	if (!softib_switch_slot(sw, port, &slot))
		return false;
	for (i = 0; err == -EEXIST && i < SOFTIB_MAX_MOVES; i++) {
		arg.mask = VMRI_PORTA_LID;
		arg.lid = VMRI_LID_MAX - i;
		err = softib_link_call(&slot, sw, &arg);
	}
	if (err)
		return false;
	softib_switch_note(sw, port, &arg);
	return true;
}

static u16 softib_link_status(int err)
{
	switch (err) {
	case 0:
		return 0;
	case -EINVAL:
	case -EEXIST:
		return SOFTIB_MAD_BAD_VALUE;
	default:
		return SOFTIB_MAD_BUSY;
	}
}

static u16 softib_link_set(struct softib_switch *sw, unsigned int port,
			   const struct softib_slot *slot,
			   const struct ib_port_info *want)
{
	struct vmri_ctl_port now = {}, arg = {
		.mask = VMRI_PORTA_LID | VMRI_PORTA_SM_LID |
			VMRI_PORTA_GID_PREFIX,
		.lid = be16_to_cpu(want->lid),
		.sm_lid = be16_to_cpu(want->sm_lid),
		.gid_prefix = be64_to_cpu(want->gid_prefix),
	};
	struct vmri_ctl_port again;
	int err;

	err = softib_link_call(slot, sw, &now);
	if (err)
		return softib_link_status(err);
	if (!softib_link_valid(want) ||
	    !softib_link_next_state(want, now.state, &arg))
		return SOFTIB_MAD_BAD_VALUE;
	if (want->clientrereg_resv_subnetto & SOFTIB_REREGISTER)
		arg.mask |= VMRI_PORTA_REREGISTER;

	again = arg;
	err = softib_link_call(slot, sw, &arg);
	if (err == -EEXIST && softib_link_give_way(sw, again.lid)) {
		arg = again;
		err = softib_link_call(slot, sw, &arg);
	}
	if (!err)
		softib_switch_note(sw, port, &arg);
	return softib_link_status(err);
}

/* The modifier names the port; 0 means the one that was asked. */
static u16 softib_link_port_info(struct softib_switch *sw, unsigned int port,
				 const struct softib_slot *slot,
				 struct ib_smp *smp)
{
	struct ib_port_info *info = (void *)smp->data, want = *info;
	bool set = smp->method == IB_MGMT_METHOD_SET;
	struct vmri_port_query query;
	struct vmri_ctl_port now = {};
	u16 status;
	int err;

	if ((be32_to_cpu(smp->attr_mod) & SOFTIB_MOD_PORT) > SOFTIB_PORT)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	if (set) {
		status = softib_link_set(sw, port, slot, &want);
		if (status)
			return status;
	}

	err = softib_link_call(slot, sw, &now);
	if (err)
		return softib_link_status(err);
	softib_link_query(sw, slot, &now, &query);
	softib_port_info(&query, now.sm_lid, info);
	if (set)
		softib_link_echo(&want, info);
	return 0;
}

/* ---- the other attributes ---- */

static u16 softib_link_pkeys(struct softib_switch *sw,
			     const struct softib_slot *slot,
			     struct ib_smp *smp)
{
	__be16 *table = (__be16 *)smp->data;
	struct vmri_ctl_port arg = {};
	int err, i;

	/* Block 0 is the whole table. */
	if (be32_to_cpu(smp->attr_mod) & 0xffff)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	if (smp->method == IB_MGMT_METHOD_SET) {
		arg.mask = VMRI_PORTA_PKEY;
		for (i = 0; i < VMRI_MAX_PKEYS; i++)
			arg.pkeys[i] = be16_to_cpu(table[i]);
	}

	err = softib_link_call(slot, sw, &arg);
	if (err)
		return softib_link_status(err);
	for (i = 0; i < VMRI_MAX_PKEYS; i++)
		table[i] = cpu_to_be16(arg.pkeys[i]);
	return 0;
}

static u16 softib_link_node_desc(struct softib_switch *sw,
				 const struct softib_slot *slot,
				 struct ib_smp *smp)
{
	struct vmri_port_query query;
	struct vmri_ctl_port now = {};
	int err = softib_link_call(slot, sw, &now);

	if (err)
		return softib_link_status(err);
	softib_link_query(sw, slot, &now, &query);
	memcpy(smp->data, query.node_desc, sizeof(smp->data));
	return 0;
}

static u16 softib_link_guids(const struct softib_slot *slot,
			     struct ib_smp *smp)
{
	__be64 *guids = (__be64 *)smp->data;

	if (smp->attr_mod)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	memset(smp->data, 0, sizeof(smp->data));
	guids[0] = cpu_to_be64(slot->guid);
	return 0;
}

/* What is the same whoever asks, and can only be asked for. */
static u16 softib_link_get(struct softib_switch *sw,
			   const struct softib_slot *slot, struct ib_smp *smp)
{
	if (smp->method != IB_MGMT_METHOD_GET)
		return SOFTIB_MAD_BAD_METHOD;
	memset(smp->data, 0, sizeof(smp->data));

	switch (smp->attr_id) {
	case IB_SMP_ATTR_NODE_DESC:
		return softib_link_node_desc(sw, slot, smp);
	case IB_SMP_ATTR_NODE_INFO:
		softib_node_info(slot->guid, (void *)smp->data);
		return 0;
	case IB_SMP_ATTR_GUID_INFO:
		return softib_link_guids(slot, smp);
	default:
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	}
}

u16 softib_link_sma(struct softib_switch *sw, unsigned int port,
		    struct ib_smp *smp)
{
	struct softib_slot slot;

	if (!softib_switch_slot(sw, port, &slot))
		return SOFTIB_MAD_BUSY;

	switch (smp->attr_id) {
	case IB_SMP_ATTR_PORT_INFO:
		return softib_link_port_info(sw, port, &slot, smp);
	case IB_SMP_ATTR_PKEY_TABLE:
		return softib_link_pkeys(sw, &slot, smp);
	case IB_SMP_ATTR_SL_TO_VL_TABLE:
	case IB_SMP_ATTR_VL_ARB_TABLE:
		/* All levels go to the one lane, whatever is said. */
		if (smp->method == IB_MGMT_METHOD_GET)
			memset(smp->data, 0, sizeof(smp->data));
		return 0;
	default:
		return softib_link_get(sw, &slot, smp);
	}
}
