/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SoftIB: what the management agents share, most of it the parts of the subnet
 * administrator.  None of this, and of the files that answer, needs more of a
 * kernel than its types, memory and spinlocks: tests compile them in user space.
 */
#ifndef SOFTIB_SA_H
#define SOFTIB_SA_H

#include <linux/types.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_smi.h>

#include <vmri/vmri.h>

struct softib_dev;
struct softib_informs;

#define SOFTIB_PORT		1
#define SOFTIB_VENDOR_ID	0x5853		/* Xen's, as of its PCI device */
#define SOFTIB_SUBNET_TIMEOUT	18		/* 4.096 us * 2^18 */

/* Status of an answer (IBTA 1.4, 13.4.7 and 15.2.2). */
#define SOFTIB_MAD_BUSY			0x0001
#define SOFTIB_MAD_BAD_VERSION		0x0004
#define SOFTIB_MAD_BAD_METHOD		0x0008
#define SOFTIB_MAD_BAD_ATTRIBUTE	0x000c
#define SOFTIB_MAD_BAD_VALUE		0x001c
#define SOFTIB_SA_NO_RESOURCES		0x0100
#define SOFTIB_SA_REQ_INVALID		0x0200
#define SOFTIB_SA_NO_RECORDS		0x0300
#define SOFTIB_SA_TOO_MANY_RECORDS	0x0400
#define SOFTIB_SA_INVALID_GID		0x0500
#define SOFTIB_SA_INSUFFICIENT		0x0600
#define SOFTIB_SA_DENIED		0x0700

/* What a table may hold: beyond that a query has to ask for less. */
#define SOFTIB_SA_MAX_RECORDS		16384

/* What every path has: that of the port (IBTA 1.4, 15.2.5.16). */
#define SOFTIB_SA_MTU			VMRI_BROADCAST_MTU
#define SOFTIB_SA_RATE			VMRI_BROADCAST_RATE
#define SOFTIB_SA_LIFE			VMRI_BROADCAST_LIFE

/*
 * A query and what it is answered with.  A handler emits all records that match,
 * or sets a status, which ends it.
 */
struct softib_sa_query {
	struct softib_dev *dev;
	struct vmri_dev_attr port;	/* the one that asks */
	struct softib_informs *informs;	/* who is to be told of what */
	u32 src_qpn;			/* the queue pair that asks */
	u16 pkey_index;			/* as it does */
	u8 method;
	bool trusted;			/* it knows of an SM_Key */
	u64 mask;			/* components that count */
	const u8 *data;			/* the record asked for, IB_MGMT_SA_DATA bytes */
	u16 status;			/* 0, or SOFTIB_SA_* */
	u32 size;			/* bytes of a record, a multiple of 8 */
	u32 count;
	u32 room;			/* records that fit */
	u8 *records;
};

/* A component of a record: bit of the mask, and place, in bits. */
struct softib_sa_field {
	u8 component;
	u16 offset;
	u8 length;			/* 1 .. 64, or 128 for a GID */
};

/* What a path or a group has, in IBTA codes. */
struct softib_sa_link {
	u8 mtu;
	u8 rate;
	u8 life;
};

/* Counters of VMRI that the performance management agent tells. */
struct softib_pma {
	u64 tx_msgs;
	u64 tx_bytes;
	u64 rx_msgs;
	u64 rx_bytes;
	u64 ud_drops;
};

/* hcall.c */
int softib_call(struct softib_dev *dev, unsigned int cmd, void *arg);

/* sarec.c */
void softib_sa_answer(struct softib_sa_query *q, u16 attr);
void softib_sa_release(struct softib_sa_query *q);
bool softib_sa_emit(struct softib_sa_query *q, const void *record, u32 len);
bool softib_sa_has(const struct softib_sa_query *q, unsigned int component);
bool softib_sa_match(const struct softib_sa_query *q,
		     const struct softib_sa_field *fields, unsigned int num,
		     const void *record);
int softib_sa_pick(const struct softib_sa_query *q, unsigned int component,
		   u8 wanted, u8 best, u8 lowest, u8 highest);
bool softib_sa_pick_link(const struct softib_sa_query *q,
			 const u8 components[3], const u8 wanted[3],
			 struct softib_sa_link *link);
bool softib_sa_next_port(struct softib_sa_query *q,
			 struct vmri_port_query *port, u32 *lid);
bool softib_sa_in_partition(const u16 *pkeys, u16 pkey);
void softib_sa_port_gid(const struct vmri_port_query *port, u8 gid[16]);
void softib_sa_own_gid(const struct softib_sa_query *q, u8 gid[16]);
bool softib_sa_names_own_port(const struct softib_sa_query *q,
			      const u8 gid[16]);
u16 softib_sa_status(int err);

/* sapath.c */
void softib_sa_paths(struct softib_sa_query *q);

/* sanode.c */
void softib_sa_nodes(struct softib_sa_query *q);
void softib_sa_port_infos(struct softib_sa_query *q);

/* portinfo.c */
void softib_node_info(u64 guid, struct ib_node_info *info);
void softib_port_info(const struct vmri_port_query *port, u16 sm_lid,
		      struct ib_port_info *info);

/* pma.c */
struct ib_pma_mad;
u16 softib_pma_answer(struct softib_dev *dev, const struct ib_pma_mad *in,
		      struct ib_pma_mad *out);

/* samcast.c */
void softib_sa_members(struct softib_sa_query *q);

/* sainform.c */
void softib_sa_inform(struct softib_sa_query *q);
void softib_sa_inform_records(struct softib_sa_query *q);

/* saserv.c */
void softib_sa_services(struct softib_sa_query *q);

#endif /* SOFTIB_SA_H */
