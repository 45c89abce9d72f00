/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SoftIB's uplink: what uplinks send to each other, in packets of UDP.
 *
 * One packet carries one datagram: this header, in network order, and then its data.
 * The addresses that packets go from and to are those of the hosts, as routes have
 * them.  What a receiver does not know, it drops.
 */
#ifndef SOFTIB_UPLINK_WIRE_H
#define SOFTIB_UPLINK_WIRE_H

#include <linux/build_bug.h>
#include <linux/types.h>

#define UPLINK_WIRE_MAGIC	0x53494255	/* "SIBU" */
#define UPLINK_WIRE_VERSION	1
#define UPLINK_WIRE_DATAGRAM	1

struct uplink_wire {
	__be32 magic;
	u8 version;
	u8 type;			/* UPLINK_WIRE_DATAGRAM */
	__be16 length;			/* of the data: 0 .. VMRI_DATAGRAM_MAX */
	/* As in struct vmri_datagram. */
	u8 sgid[16];
	u8 dgid[16];
	__be32 fabric;
	__be32 src_qpn;
	__be32 dest_qpn;
	__be32 qkey;
	__be32 imm;
	__be32 flow_label;
	__be16 pkey;
	u8 traffic_class;
	u8 hop_limit;
	u8 sl;
	u8 flags;
	__be16 reserved;		/* 0 */
};

static_assert(sizeof(struct uplink_wire) == 72);

#endif /* SOFTIB_UPLINK_WIRE_H */
