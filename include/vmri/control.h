/* SPDX-License-Identifier: MIT */
/*
 * VMRI: commands for dom0.  Each takes its structure as args and ignores the
 * hypercall's dev_id; the target is named in the structure.  A caller without
 * the privilege gets -EPERM.
 */
#ifndef VMRI_CONTROL_H
#define VMRI_CONTROL_H

#include "types.h"
#include "vmri.h"

#define VMRI_OP_ctl_attach	0x8000	/* struct vmri_ctl_attach */
#define VMRI_OP_ctl_detach	0x8001	/* struct vmri_ctl_detach */
#define VMRI_OP_ctl_list	0x8002	/* struct vmri_ctl_info */
#define VMRI_OP_ctl_limits	0x8003	/* struct vmri_ctl_limits */
#define VMRI_OP_ctl_stats	0x8004	/* struct vmri_ctl_stats */
#define VMRI_OP_ctl_port	0x8005	/* struct vmri_ctl_port */
#define VMRI_OP_ctl_dump	0x8006	/* struct vmri_ctl_dump */
#define VMRI_OP_ctl_fabric_create 0x8007 /* struct vmri_ctl_fabric */
#define VMRI_OP_ctl_fabric_delete 0x8008 /* struct vmri_ctl_fabric */
#define VMRI_OP_ctl_fabric_list	0x8009	/* struct vmri_ctl_fabric */
#define VMRI_OP_ctl_rate	0x800a	/* struct vmri_ctl_rate */
#define VMRI_OP_ctl_rule_add	0x800b	/* struct vmri_ctl_rule */
#define VMRI_OP_ctl_rule_del	0x800c	/* struct vmri_ctl_rule */
#define VMRI_OP_ctl_rule_list	0x800d	/* struct vmri_ctl_rule */
#define VMRI_OP_ctl_route_add	0x800e	/* struct vmri_ctl_route */
#define VMRI_OP_ctl_route_del	0x800f	/* struct vmri_ctl_route */
#define VMRI_OP_ctl_route_list	0x8010	/* struct vmri_ctl_route */

#define VMRI_MAX_DEVS		64	/* of one domain */
#define VMRI_FABRIC_MAX		0xffffffU
#define VMRI_FABRIC_ANY		0xffffffffU
#define VMRI_FABRICS		4096	/* that are created, at the most */
#define VMRI_FABRIC_NAME	32	/* with the 0 at its end */
#define VMRI_LID_MAX		0xbfff	/* unicast */
#define VMRI_DEV_ANY		0xffffffffU

/*
 * What a domain can use up, and how much of it one may.  Pages are counted as
 * often as they are pinned.  Bytes are those of the hypervisor's memory.
 */
#define VMRI_RES_PD		0
#define VMRI_RES_XRCD		1
#define VMRI_RES_EQ		2
#define VMRI_RES_CQ		3
#define VMRI_RES_SRQ		4
#define VMRI_RES_QP		5
#define VMRI_RES_MR		6	/* pinned and fast ones */
#define VMRI_RES_MW		7
#define VMRI_RES_MCG		8	/* multicast groups a device is in */
#define VMRI_RES_MCG_QP		9	/* QPs attached to groups */
#define VMRI_RES_DEV		10
#define VMRI_RES_PINNED		11	/* pages: MRs and rings */
#define VMRI_RES_BYTES		12
#define VMRI_RES_SERVICE	13	/* services offered to others */
#define VMRI_RES_NR		14
#define VMRI_RES_MAX		16	/* room for more, in structures */

/* Amounts by VMRI_RES_*; the unused ones are 0. */
struct vmri_usage {
	uint64_t n[VMRI_RES_MAX];
};
VMRI_ASSERT_SIZE(vmri_usage, 128);

/*
 * Fabrics: networks that devices are attached to, and do not see beyond.  One
 * that was created stays until it is deleted; any other is there while devices
 * are attached to it, without a name and of VMRI_LINK_IB.
 *
 * create: make the one with this number, or for VMRI_FABRIC_ANY the lowest free
 * one but 0; one that devices are attached to already stays from now on.  Its
 * name, if it has one, begins with a letter and goes on with letters, digits,
 * '-', '_' and '.'.
 * -EEXIST: it was created before, or another has the name.  -ENOSPC: there are
 * VMRI_FABRICS.  -EBUSY: devices of another link layer are attached.
 *
 * delete: the one with this number, of which all else is ignored.  -ENOENT: it
 * was not created; -EBUSY: devices are attached to it.
 *
 * list: the first one at or after this number.  -ENOENT: no more.
 */
struct vmri_ctl_fabric {
	uint32_t fabric;		/* IN, OUT */
	uint8_t link;			/* create: VMRI_LINK_*; list: OUT */
	uint8_t created;		/* OUT: it was; IN: 0 */
	uint8_t closed;			/* OUT: rules decide, be there any or none; IN: 0 */
	uint8_t reserved0;
	uint32_t devices;		/* OUT: attached to it; IN: 0 */
	uint32_t rules;			/* OUT: that it has; IN: 0 */
	char name[VMRI_FABRIC_NAME];	/* create: or all 0; list: OUT */
};
VMRI_ASSERT_SIZE(vmri_ctl_fabric, 48);
#define VMRI_LINK_IB		0
#define VMRI_LINK_ROCE		1

/*
 * Rules of a fabric that was created.  It is open until the first one is added.
 * From then on it is closed, also when the last one was deleted: a device is reached
 * only by whom an ingress rule allows, and reaches whom an egress rule allows, or
 * all if none is for it.  Two devices may talk to each other when one of them may
 * begin; a device may always talk to itself.  A multicast group is a remote
 * address: devices need an ingress rule to have queue pairs attached to it.
 *
 * Rules are asked when a queue pair is connected: -EPERM, when a datagram's
 * destination is first used, and for each member that a multicast datagram goes
 * to: there nothing is delivered.  A change puts connections that it forbids into
 * the error state, with a VMRI_EVENT_QP_FATAL, before the command ends.
 *
 * add: -ENOENT: no such fabric was created; -ENOSPC: it has VMRI_RULES, or all
 * together have VMRI_RULES_ALL; -EOPNOTSUPP: a protocol that it cannot have.
 * A prefix names the devices that have a GID within it; of a RoCE fabric, the
 * device says itself which it has, besides the one made of its GUID.
 *
 * del: the one with this number; or VMRI_RULE_ALL, all of them, and the fabric is
 * open again.  All else is ignored.  -ENOENT: no such fabric or rule.
 *
 * list: the first one at or after this number.  -ENOENT: no more.
 */
struct vmri_ctl_rule {
	uint32_t fabric;		/* IN */
	uint32_t rule;			/* its number from 1; add: IN 0, OUT */
	uint8_t direction;		/* VMRI_RULE_INGRESS, _EGRESS */
	uint8_t protocol;		/* VMRI_RULE_ANY, _IB, _ROCE; OUT: 0 */
	uint8_t bits;			/* of prefix, 0 .. 128; others are 0 */
	uint8_t reserved0;
	uint32_t group;			/* of devices that it is for; 0: all */
	uint32_t remote_group;		/* 0: any */
	uint32_t reserved1;
	uint8_t prefix[16];		/* of remote GIDs, network order */
};
VMRI_ASSERT_SIZE(vmri_ctl_rule, 40);
#define VMRI_RULE_INGRESS	0
#define VMRI_RULE_EGRESS	1
#define VMRI_RULE_ANY		0
#define VMRI_RULE_IB		1
#define VMRI_RULE_ROCE		2
#define VMRI_RULE_ALL		0xffffffffU
#define VMRI_RULES		512	/* of one fabric */
#define VMRI_RULES_ALL		16384	/* of all */

/*
 * Devices of a fabric that was created which are on other hosts.  A queue pair that
 * is connected to such a GID, by a LID that no device of this host has, gets
 * -EHOSTUNREACH: nothing leads there yet.  It is not put to the test whether the
 * fabric has a device with this GID here.
 *
 * add: -ENOENT: no such fabric was created; -EEXIST: the GID has a route; -ENOSPC:
 * the fabric has VMRI_ROUTES, or all together have VMRI_ROUTES_ALL; -EINVAL: a
 * multicast GID.
 *
 * del: that of this GID.  -ENOENT: no such fabric or route; -ENOMEM.
 *
 * list: the first one at or after this GID.  -ENOENT: no more.
 */
struct vmri_ctl_route {
	uint32_t fabric;		/* IN */
	uint32_t reserved;
	uint8_t gid[16];		/* network order; list: IN, OUT */
	uint8_t host_gid[16];		/* of the host's adapter; list: OUT */
};
VMRI_ASSERT_SIZE(vmri_ctl_route, 40);
#define VMRI_ROUTES		4096	/* of one fabric */
#define VMRI_ROUTES_ALL		65536	/* of all */

/*
 * Give a domain a device on a fabric.
 * -ESRCH: no such domain, or dying.  -EEXIST: the domain has a device with this
 * id, or the fabric one with this LID or GUID.  -ENOSPC: no number left, or the
 * domain's limit of devices is reached.  -ENOENT: the fabric was not created,
 * and VMRI_ATTACH_CREATED asks for that.  -EOPNOTSUPP: VMRI_ATTACH_SM on a fabric
 * that has no subnet to manage.  -ENODEV: there is no such uplink.
 */
struct vmri_ctl_attach {
	uint32_t domid;			/* IN */
	uint32_t dev_id;		/* IN: or VMRI_DEV_ANY; OUT */
	uint32_t fabric;		/* IN: 0 .. VMRI_FABRIC_MAX */
	uint16_t lid;			/* IN: or 0 for the lowest free one; OUT */
	uint16_t flags;			/* IN: VMRI_ATTACH_* */
	uint64_t guid;			/* IN: or 0 for one made from ids; OUT */
	uint32_t group;			/* IN: of devices, for rules; 0: none */
	uint32_t uplink;		/* IN: its uplink's number; 0: none */
};
VMRI_ASSERT_SIZE(vmri_ctl_attach, 32);
#define VMRI_ATTACH_CREATED	0x1U

/*
 * Its driver manages the fabric for a subnet manager in the same domain, which has
 * to be dom0 to do so.  While it says that one runs (IsSM in its capabilities),
 * ports of new devices are in state INIT.  When it is detached, the ports whose
 * SM it was have themselves for it again, those that were not active yet are,
 * and their guests are told to register again.
 * -EBUSY: the fabric has a manager; -ENOSPC: more than VMRI_MANAGED_MAX devices.
 */
#define VMRI_ATTACH_SM		0x2U
#define VMRI_MANAGED_MAX	254	/* ports that a switch can have */

/*
 * Take it away again, whatever the guest does with it: its objects are
 * destroyed, its peers see it gone.  A guest that has it in use is told by a
 * VMRI_EVENT_DEVICE_FATAL before anything of that.  -ENODEV: there is none.
 */
struct vmri_ctl_detach {
	uint32_t domid;			/* IN */
	uint32_t dev_id;		/* IN */
};
VMRI_ASSERT_SIZE(vmri_ctl_detach, 8);

/*
 * The first device at or after (domid, dev_id) in that order, of those that the
 * caller may see.  -ENOENT: no more.  Listing starts with (0, 0) and goes on with
 * (domid, dev_id + 1).
 * Or with VMRI_INFO_ONE, this device and no other.  -ENODEV: it is not there;
 * -EPERM: the caller may not see it.
 */
struct vmri_ctl_info {
	uint32_t domid;			/* IN, OUT */
	uint32_t dev_id;		/* IN, OUT */
	uint32_t fabric;		/* OUT, as all below */
	uint16_t lid;
	uint8_t in_use;			/* the guest has created it */
	uint8_t which;			/* IN: VMRI_INFO_*; OUT: 0 */
	uint64_t guid;
	uint32_t group;
	uint32_t uplink;		/* its number; 0: none, or it has closed */
	struct vmri_usage usage;	/* the device's share of its domain's */
	struct vmri_counters counters;
};
VMRI_ASSERT_SIZE(vmri_ctl_info, 288);
#define VMRI_INFO_FROM		0
#define VMRI_INFO_ONE		1

/*
 * Set the limits of a domain that `mask` names, bit VMRI_RES_* each, and tell
 * all of them and what is used.  Whether it has devices does not matter; what
 * is set lasts as long as the domain.  One that is below what is used takes
 * nothing away, but nothing more is given out.
 * -ESRCH: no such domain, or dying; -EINVAL: an unknown bit, or a limit above
 * VMRI_LIMIT_MAX; -ENOMEM.  Nothing is set then.
 */
struct vmri_ctl_limits {
	uint32_t domid;			/* IN */
	uint32_t mask;			/* IN */
	struct vmri_usage limit;	/* IN: those of mask; OUT: all */
	struct vmri_usage usage;	/* OUT: of all its devices */
};
VMRI_ASSERT_SIZE(vmri_ctl_limits, 264);
#define VMRI_LIMIT_MAX		(1ULL << 48)

/* What the queue pairs of a type have done, as in struct vmri_counters. */
struct vmri_qp_counters {
	uint64_t tx_msgs;
	uint64_t tx_bytes;
	uint64_t rx_msgs;
	uint64_t rx_bytes;
	uint64_t errors;
	uint64_t flushed;
	uint64_t rnr;
	uint64_t retries;
};
VMRI_ASSERT_SIZE(vmri_qp_counters, 64);

/* The types in the order of struct vmri_ctl_stats. */
#define VMRI_STAT_SMI		0
#define VMRI_STAT_GSI		1
#define VMRI_STAT_RC		2
#define VMRI_STAT_UC		3
#define VMRI_STAT_UD		4
#define VMRI_STAT_XRC_INI	5
#define VMRI_STAT_XRC_TGT	6
#define VMRI_STAT_NR		7
#define VMRI_STAT_MAX		8

/*
 * All that a device counts.  -ESRCH: no such domain; -ENODEV: it has no such
 * device.
 */
struct vmri_ctl_stats {
	uint32_t domid;			/* IN */
	uint32_t dev_id;		/* IN */
	struct vmri_counters counters;	/* OUT: of all types, as all below */
	struct vmri_qp_counters type[VMRI_STAT_MAX];
};
VMRI_ASSERT_SIZE(vmri_ctl_stats, 648);

/*
 * Change what `mask` names of a device's port, and tell all.  What then is
 * another than before raises its event in the guest, at most one of a kind:
 * PORT_ERR when the port ceases to be active, PORT_ACTIVE when it becomes so,
 * LID_CHANGE, SM_CHANGE, PKEY_CHANGE, GID_CHANGE, and with REREGISTER a
 * CLIENT_REREGISTER.  While the port is not active no packet comes in or goes
 * out, not even to itself.  A port that gets another SM leaves the multicast
 * groups that it has joined and offers no services any more: that one knows nothing
 * of them.
 * -ESRCH: no such domain; -ENODEV: it has no such device; -EINVAL: an unknown
 * bit or a value out of range; -EEXIST: the fabric has a device with this LID;
 * -ENOMEM.  Nothing changes then.
 */
struct vmri_ctl_port {
	uint32_t domid;			/* IN */
	uint32_t dev_id;		/* IN */
	uint32_t mask;			/* IN: VMRI_PORTA_* */
	uint8_t state;			/* IN: if in mask; OUT; as all below */
	uint8_t reserved0;
	uint16_t reserved1;
	uint16_t lid;			/* 1 .. VMRI_LID_MAX */
	uint16_t sm_lid;		/* IN: 0 for the port's own LID */
	uint32_t reserved2;
	uint64_t gid_prefix;		/* host byte order */
	uint16_t pkeys[VMRI_MAX_PKEYS];	/* the table: 0 or of a partition */
};
VMRI_ASSERT_SIZE(vmri_ctl_port, 96);
#define VMRI_PORTA_STATE	0x01U
#define VMRI_PORTA_LID		0x02U
#define VMRI_PORTA_SM_LID	0x04U
#define VMRI_PORTA_PKEY		0x08U
#define VMRI_PORTA_GID_PREFIX	0x10U
#define VMRI_PORTA_REREGISTER	0x20U
#define VMRI_PORTA_ALL		0x3fU

/*
 * Tell how fast a device may send, after setting that if it is asked for: all of
 * it together, or what its queue pairs send on a service level.  What counts is
 * the payload of its own requests, READs included, a datagram to a group once.
 * A bucket of `burst` bytes fills with `rate`, and is full at first.
 * -ESRCH: no such domain; -ENODEV: it has no such device; -EINVAL: a value out
 * of range.
 */
struct vmri_ctl_rate {
	uint32_t domid;			/* IN */
	uint32_t dev_id;		/* IN */
	uint32_t flags;			/* IN: VMRI_RATE_* */
	uint32_t which;			/* IN: a service level, or the device */
	uint64_t rate;			/* bytes a second; 0: no limit */
	uint64_t burst;			/* bytes; IN: 0 for what goes with rate */
};
VMRI_ASSERT_SIZE(vmri_ctl_rate, 32);
#define VMRI_RATE_SET		0x1U
#define VMRI_RATE_DEVICE	16	/* which */
#define VMRI_RATE_MIN		125000U
#define VMRI_RATE_MAX		125000000000ULL
#define VMRI_BURST_MIN		8192U
#define VMRI_BURST_MAX		(1U << 30)

/*
 * One object of a device: the first of a kind at or after `index`, at this
 * moment.  A walk begins with index 0 and goes on with what comes back; what is
 * made or destroyed meanwhile may be missing.  GIDs are told as objects, too: those
 * in the table of a RoCE fabric's device, or the only one that another has.
 * -ESRCH: no such domain; -ENODEV: it has no such device; -EINVAL: not a kind
 * of object; -ENOENT: no more.
 */
struct vmri_ctl_dump {
	uint32_t domid;			/* IN */
	uint32_t dev_id;		/* IN */
	uint32_t kind;			/* IN: VMRI_RES_*, up to MCG, or VMRI_DUMP_GID */
	uint32_t index;			/* IN, OUT */
	uint32_t handle;		/* OUT, as all below */
	uint32_t users;			/* objects that use it */
	union {
		struct {
			uint32_t port;
			uint32_t entries;
			uint32_t unconsumed;	/* as the guest says */
			uint32_t overflow;	/* events wait outside */
		} eq;
		struct {
			uint32_t eq;
			uint32_t entries;
			uint32_t unconsumed;	/* as the guest says */
			uint32_t arm;		/* VMRI_ARM_* */
			uint32_t overflow;
		} cq;
		struct {
			uint32_t pd;
			uint32_t entries;
			uint32_t posted;	/* as the guest says */
			uint32_t limit;
			uint32_t xrcd;
			uint32_t cq;
			uint32_t waiting;	/* a sender is */
			uint32_t dead;		/* an index was out of range */
		} srq;
		struct {
			uint8_t type;		/* VMRI_QPT_* */
			uint8_t state;		/* VMRI_QPS_* */
			uint8_t parked;		/* VMRI_PARKED_* */
			uint8_t kernel;
			uint32_t pd;
			uint32_t send_cq;
			uint32_t recv_cq;
			uint32_t srq;
			uint32_t sq_entries;	/* 0: no such queue */
			uint32_t sq_posted;	/* as the guest says */
			uint32_t rq_entries;
			uint32_t rq_posted;
			uint32_t peer_qpn;
			uint32_t peer_lid;
		} qp;
		struct {
			uint64_t length;	/* bytes */
			uint32_t pd;
			uint32_t access;
			uint32_t pages;
			uint32_t chunks;	/* of contiguous frames */
			uint32_t windows;	/* bound to it */
			uint32_t fast;
		} mr;
		struct {
			uint64_t length;	/* 0: not bound */
			uint32_t pd;
			uint32_t access;
			uint32_t type;
			uint32_t mr;
		} mw;
		struct {
			uint8_t mgid[16];	/* network order */
			uint32_t joined;	/* as a member */
			uint32_t qps;		/* attached, of this device */
		} mcg;			/* handle: the MLID; users: devices */
		struct {
			uint8_t gid[16];	/* network order */
		} gid;			/* handle: its index in the table */
		uint64_t raw[9];
	} u;
};
VMRI_ASSERT_SIZE(vmri_ctl_dump, 96);

#define VMRI_DUMP_GID		VMRI_RES_MAX	/* none of the resources */

/* What a send queue waits for. */
#define VMRI_PARKED_NO		0
#define VMRI_PARKED_RECEIVE	1	/* to be posted by the peer */
#define VMRI_PARKED_PEER	2	/* to be there, or to connect */
#define VMRI_PARKED_RATE	3	/* its device's to let it */
#define VMRI_PARKED_UPLINK	4	/* nothing: an uplink has its requests */

#endif /* VMRI_CONTROL_H */
