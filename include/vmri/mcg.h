/* SPDX-License-Identifier: MIT */
/*
 * VMRI: multicast groups.  Part of vmri.h, which includes it.
 */
#ifndef VMRI_MCG_H
#define VMRI_MCG_H

#include "types.h"

/*
 * Multicast groups of a fabric, by MGID (IBTA 1.4, 10.5).  mcg_create makes
 * the device a member: of the group that there is, whose attributes it gets, or,
 * with `create`, of a new one that has those given and, for mlid 0, a free
 * MLID.  The group goes with its last member and attached QP.
 * A group to which only queue pairs are attached has no attributes, so it can
 * be joined with `create` only.  IPoIB's broadcast group of a partition (RFC 4391,
 * 4) needs no creator: it has the attributes that VMRI_BROADCAST_* name, whatever
 * is given.  A group has one MLID and an MLID one group.
 * A device is a member in one to four ways, the bits of IBTA's JoinState (15.2.5.17);
 * mcg_destroy takes those away that are named, and the membership with the last.
 * -ENOENT: there is none, or it is no member in that way; -EINVAL: it has
 * another MLID, no multicast GID, or a value out of range; -EBUSY: another group
 * has this MLID; -EPERM: it is of a partition that the port is not in; -EEXIST
 * from mcg_create: a member in that way already.
 */
struct vmri_mcg {
	uint8_t mgid[16];		/* IN: network order */
	uint16_t mlid;			/* IN: 0 for any; OUT: VMRI_MLID_MIN .. MAX */
	uint16_t pkey;			/* IN with create, else OUT, as all below */
	uint32_t qkey;
	uint32_t flow_label;
	uint8_t mtu;			/* IBTA code */
	uint8_t rate;
	uint8_t sl;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t packet_life;
	uint8_t scope;
	uint8_t create;			/* IN: 0 or 1 */
	uint32_t members;		/* OUT: devices */
	uint8_t join;			/* IN: VMRI_JOIN_* to add or take away */
	uint8_t joined;			/* OUT: all that the device has now */
	uint16_t reserved;
};
VMRI_ASSERT_SIZE(vmri_mcg, 44);
#define VMRI_MLID_MIN		0xc000
#define VMRI_MLID_MAX		0xfffe
#define VMRI_QPN_MULTICAST	0xffffffU

#define VMRI_JOIN_FULL		0x1U
#define VMRI_JOIN_NON		0x2U
#define VMRI_JOIN_SEND_ONLY_NON	0x4U
#define VMRI_JOIN_SEND_ONLY_FULL 0x8U
#define VMRI_JOIN_ALL		0xfU

#define VMRI_BROADCAST_QKEY	0x0b1bU
#define VMRI_BROADCAST_MTU	5	/* 4096 bytes */
#define VMRI_BROADCAST_RATE	7	/* 40 Gb/s: what the port says, 4x QDR */
#define VMRI_BROADCAST_LIFE	18	/* 4.096 us * 2^18 */

/*
 * VMRI_OP_mcg_query: a group that has members: with VMRI_MCG_BY_MGID that of
 * group.mgid, else the first with an MLID of group.mlid or higher.  `joined` is
 * of the port with LID `lid`, or of the caller's own for 0.
 * -ENOENT: there is none; -EINVAL: no multicast GID.
 */
struct vmri_mcg_query {
	struct vmri_mcg group;		/* IN: mgid or mlid; OUT: all but join */
	uint32_t flags;			/* IN: VMRI_MCG_BY_MGID */
	uint16_t lid;			/* IN */
	uint16_t reserved0;
	uint32_t reserved1;
};
VMRI_ASSERT_SIZE(vmri_mcg_query, 56);
#define VMRI_MCG_BY_MGID	0x1U

/*
 * A UD queue pair gets what is sent to a group (by a UD queue pair in the
 * fabric, its own too, with a GRH, to QPN VMRI_QPN_MULTICAST): one copy, or none
 * if it is attached or detached meanwhile.  Groups that attach finds not are made, as
 * hardware knows none but by who listens.  With BLOCK_LOOPBACK, a flag of the
 * receiving QP, what its own device sends does not come.
 * -EINVAL: no UD queue pair, no multicast GID, or the group has another MLID;
 * -EBUSY: another group has this MLID; -EEXIST: attached already; -ENOENT from
 * detach.
 */
struct vmri_mcg_qp {
	uint8_t mgid[16];		/* IN */
	uint16_t mlid;			/* IN */
	uint16_t reserved;
	uint32_t qpn;			/* IN */
};
VMRI_ASSERT_SIZE(vmri_mcg_qp, 24);

#endif /* VMRI_MCG_H */
