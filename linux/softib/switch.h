/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SoftIB: the fabric as a subnet manager sees it: a switch, at each port of which a
 * device is linked.  VMRI has no switch; this makes one of what VMRI tells dom0 of
 * its devices, and of what it lets dom0 change.
 *
 * The files that answer for it need no more of a kernel than sa.h says: tests
 * compile them in user space.
 */
#ifndef SOFTIB_SWITCH_H
#define SOFTIB_SWITCH_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/ib_smi.h>

#include <vmri/control.h>

#include "sa.h"

#define SOFTIB_SWITCH_PORTS	VMRI_MANAGED_MAX

/* A device at a port of the switch. */
struct softib_slot {
	bool used;
	bool seen;			/* in the walk that is under way */
	u8 state;			/* VMRI_PORT_*, as last seen */
	u16 lid;			/* as last seen */
	u32 domid;
	u32 dev_id;
	u64 guid;
};

struct softib_switch {
	struct softib_dev *dev;		/* the manager's; constant, as up to lock */
	u32 fabric;
	u64 own_guid;			/* the manager's port */

	spinlock_t lock;		/* protects all below; no hypercall inside */
	unsigned int own;		/* the port at which the manager is; 0: none */
	bool changed;			/* IBTA's PortStateChange */
	u8 life;			/* as set by the manager, as all up to slots */
	u16 lid;
	u16 sm_lid;
	u16 linear_top;
	u16 mcast_top;
	u16 pkeys[VMRI_MAX_PKEYS];	/* of port 0 */
	struct softib_slot slots[SOFTIB_SWITCH_PORTS + 1];	/* [0] is unused */
};

/* What becomes of a packet that the manager sends from its QP0. */
enum softib_smp_way {
	SOFTIB_SMP_OWN,			/* for its own port */
	SOFTIB_SMP_LOST,		/* there is nobody who answers */
	SOFTIB_SMP_ANSWERED,
};

/* switch.c */
void softib_switch_init(struct softib_switch *sw, struct softib_dev *dev,
			u32 fabric, u64 own_guid);
void softib_switch_refresh(struct softib_switch *sw);
void softib_switch_release(struct softib_switch *sw);
enum softib_smp_way softib_switch_answer(struct softib_switch *sw,
					 const struct ib_smp *in, u16 dlid,
					 struct ib_smp *out, u16 *from);
bool softib_switch_slot(struct softib_switch *sw, unsigned int port,
			struct softib_slot *slot);
unsigned int softib_switch_find_lid(struct softib_switch *sw, u16 lid);
void softib_switch_note(struct softib_switch *sw, unsigned int port,
			const struct vmri_ctl_port *now);
bool softib_switch_own_smp(struct softib_switch *sw, struct ib_smp *smp,
			   u16 *status);

u64 softib_switch_guid(const struct softib_switch *sw);

/* switchsma.c: fill in smp->data; the status of the response. */
u16 softib_switch_sma(struct softib_switch *sw, struct ib_smp *smp);

/* linksma.c: the same for the port of a device; and what switch ports share. */
u16 softib_link_sma(struct softib_switch *sw, unsigned int port,
		    struct ib_smp *smp);
int softib_link_call(const struct softib_slot *slot, struct softib_switch *sw,
		     struct vmri_ctl_port *arg);
bool softib_link_next_state(const struct ib_port_info *want, u8 now,
			    struct vmri_ctl_port *arg);
void softib_link_echo(const struct ib_port_info *want,
		      struct ib_port_info *info);

#endif /* SOFTIB_SWITCH_H */
