// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the subnet administrator's paths (IBTA 1.4, 15.2.5.16): from every port
 * to every port of the fabric there is one, if both are active and share a
 * partition; and one to each multicast group.
 */
#include <linux/string.h>

#include "sa.h"

struct softib_path_rec {
	__be64 service_id;
	u8 dgid[16];
	u8 sgid[16];
	__be16 dlid;
	__be16 slid;
	__be32 raw_flow_hop;		/* 1, 3 reserved, 20, 8 bits */
	u8 traffic_class;
	u8 reversible_numb_path;	/* 1, 7 */
	__be16 pkey;
	__be16 qos_class_sl;		/* 12, 4 */
	u8 mtu;				/* selector, value: 2, 6; as the next two */
	u8 rate;
	u8 packet_life;
	u8 preference;
	u8 reserved[6];
} __packed;
static_assert(sizeof(struct softib_path_rec) == 64);

/* Bits of the component mask. */
enum {
	PATH_SERVICE_ID = 0,	/* and 1, its lower half */
	PATH_DGID = 2,
	PATH_SGID,
	PATH_DLID,
	PATH_SLID,
	PATH_RAW,
	PATH_FLOW_LABEL = 8,
	PATH_HOP_LIMIT,
	PATH_TRAFFIC_CLASS,
	PATH_REVERSIBLE,
	PATH_NUMB_PATH,
	PATH_PKEY,
	PATH_QOS_CLASS,
	PATH_SL,
	PATH_MTU_SELECTOR,
	PATH_RATE_SELECTOR = 18,
	PATH_LIFE_SELECTOR = 20,
};

static const u8 softib_path_selectors[3] = {
	PATH_MTU_SELECTOR, PATH_RATE_SELECTOR, PATH_LIFE_SELECTOR,
};

#define PATH_REVERSIBLE_BIT	0x80
#define PATH_EXACTLY		(IB_SA_EQ << 6)
#define PATH_RAW_BIT		0x80000000

static bool softib_path_gid_is(const u8 *gid, const struct vmri_port_query *port)
{
	u8 have[16];

	softib_sa_port_gid(port, have);
	return !memcmp(gid, have, sizeof(have));
}

/* Does the query name this port as the one end, or none at all? */
static bool softib_path_end(const struct softib_sa_query *q,
			    const struct vmri_port_query *port,
			    unsigned int gid_component, const u8 *gid,
			    unsigned int lid_component, __be16 lid)
{
	return (!softib_sa_has(q, gid_component) ||
		softib_path_gid_is(gid, port)) &&
	       (!softib_sa_has(q, lid_component) ||
		be16_to_cpu(lid) == port->lid);
}

static bool softib_path_is_source(const struct softib_sa_query *q,
				  const struct vmri_port_query *port)
{
	const struct softib_path_rec *want = (const void *)q->data;

	return softib_path_end(q, port, PATH_SGID, want->sgid, PATH_SLID,
			       want->slid);
}

static bool softib_path_is_destination(const struct softib_sa_query *q,
				       const struct vmri_port_query *port)
{
	const struct softib_path_rec *want = (const void *)q->data;

	return softib_path_end(q, port, PATH_DGID, want->dgid, PATH_DLID,
			       want->dlid);
}

/* Is this partition, if the query names one, that of the path? */
static bool softib_path_in_partition(const struct softib_sa_query *q, u16 pkey)
{
	const struct softib_path_rec *want = (const void *)q->data;

	return !softib_sa_has(q, PATH_PKEY) ||
	       !((be16_to_cpu(want->pkey) ^ pkey) & 0x7fff);
}

/* The first of a port's P_Keys with which it can talk to another; 0: none. */
static u16 softib_path_pkey(const struct softib_sa_query *q,
			    const struct vmri_port_query *from,
			    const struct vmri_port_query *to)
{
	int i, j;

	for (i = 0; i < VMRI_MAX_PKEYS; i++) {
		u16 a = from->pkeys[i];

		if (!(a & 0x7fff) || !softib_path_in_partition(q, a))
			continue;
		for (j = 0; j < VMRI_MAX_PKEYS; j++) {
			u16 b = to->pkeys[j];

			if (!((a ^ b) & 0x7fff) && ((a | b) & 0x8000))
				return a;
		}
	}
	return 0;
}

/*
 * What a path that begins at a port has, whatever the query leaves open: classes,
 * levels and labels mean nothing to VMRI, and all that are asked for serve.
 */
static bool softib_path_fill(const struct softib_sa_query *q,
			     const struct vmri_port_query *from, u16 pkey,
			     struct softib_path_rec *rec)
{
	const struct softib_path_rec *want = (const void *)q->data;
	u32 flow = be32_to_cpu(want->raw_flow_hop);
	u32 qos_sl = be16_to_cpu(want->qos_class_sl);
	struct softib_sa_link link;

	if (!softib_sa_pick_link(q, softib_path_selectors,
				 (u8[]) { want->mtu, want->rate,
					  want->packet_life }, &link) ||
	    (softib_sa_has(q, PATH_RAW) && (flow & PATH_RAW_BIT)))
		return false;

	*rec = (struct softib_path_rec) {
		.slid = cpu_to_be16(from->lid),
		.reversible_numb_path = PATH_REVERSIBLE_BIT,
		.pkey = cpu_to_be16(pkey),
		.mtu = PATH_EXACTLY | link.mtu,
		.rate = PATH_EXACTLY | link.rate,
		.packet_life = PATH_EXACTLY | link.life,
	};
	if (softib_sa_has(q, PATH_SERVICE_ID))
		rec->service_id = want->service_id;
	if (softib_sa_has(q, PATH_TRAFFIC_CLASS))
		rec->traffic_class = want->traffic_class;
	rec->raw_flow_hop =
		cpu_to_be32((softib_sa_has(q, PATH_FLOW_LABEL) ?
			     flow & 0x0fffff00 : 0) |
			    (softib_sa_has(q, PATH_HOP_LIMIT) ?
			     flow & 0xff : 0));
	rec->qos_class_sl =
		cpu_to_be16((softib_sa_has(q, PATH_QOS_CLASS) ?
			     qos_sl & 0xfff0 : 0) |
			    (softib_sa_has(q, PATH_SL) ? qos_sl & 0xf : 0));
	softib_sa_port_gid(from, rec->sgid);
	return true;
}

static bool softib_path_emit(struct softib_sa_query *q,
			     const struct vmri_port_query *from,
			     const struct vmri_port_query *to)
{
	u16 pkey = softib_path_pkey(q, from, to);
	struct softib_path_rec rec;

	if (from->state != VMRI_PORT_ACTIVE || to->state != VMRI_PORT_ACTIVE ||
	    !pkey || !softib_path_fill(q, from, pkey, &rec))
		return true;

	rec.dlid = cpu_to_be16(to->lid);
	softib_sa_port_gid(to, rec.dgid);
	return softib_sa_emit(q, &rec, sizeof(rec));
}

/* From one port to all that the query may mean: true if there are any. */
static bool softib_paths_from(struct softib_sa_query *q,
			      const struct vmri_port_query *from)
{
	struct vmri_port_query to;
	bool found = false;
	u32 lid = 0;

	while (!q->status && softib_sa_next_port(q, &to, &lid)) {
		if (!softib_path_is_destination(q, &to))
			continue;
		found = true;
		if (!softib_path_emit(q, from, &to))
			break;
	}
	return found;
}

static void softib_path_to_group(struct softib_sa_query *q,
				 const struct vmri_port_query *from)
{
	const struct softib_path_rec *want = (const void *)q->data;
	struct vmri_mcg_query group = { .flags = VMRI_MCG_BY_MGID };
	struct softib_path_rec rec;

	memcpy(group.group.mgid, want->dgid, sizeof(group.group.mgid));
	if (softib_call(q->dev, VMRI_OP_mcg_query, &group) ||
	    (softib_sa_has(q, PATH_DLID) &&
	     be16_to_cpu(want->dlid) != group.group.mlid) ||
	    !softib_sa_in_partition(from->pkeys, group.group.pkey) ||
	    !softib_path_in_partition(q, group.group.pkey) ||
	    !softib_path_fill(q, from, group.group.pkey, &rec))
		return;

	rec.dlid = cpu_to_be16(group.group.mlid);
	memcpy(rec.dgid, want->dgid, sizeof(rec.dgid));
	rec.reversible_numb_path = 0;
	rec.mtu = PATH_EXACTLY | group.group.mtu;
	rec.rate = PATH_EXACTLY | group.group.rate;
	rec.traffic_class = group.group.traffic_class;
	rec.qos_class_sl = cpu_to_be16(group.group.sl);
	softib_sa_emit(q, &rec, sizeof(rec));
}

/* PathRecord, Get and GetTable. */
void softib_sa_paths(struct softib_sa_query *q)
{
	const struct softib_path_rec *want = (const void *)q->data;
	bool to_group = softib_sa_has(q, PATH_DGID) && want->dgid[0] == 0xff;
	bool from_any = false, to_any = to_group;
	struct vmri_port_query from;
	u32 lid = 0;

	while (!q->status && softib_sa_next_port(q, &from, &lid)) {
		if (!softib_path_is_source(q, &from))
			continue;
		from_any = true;
		if (to_group)
			softib_path_to_group(q, &from);
		else
			to_any |= softib_paths_from(q, &from);
	}

	/* A GID that no port has is a mistake, not a lack of records. */
	if (!q->status && ((!from_any && softib_sa_has(q, PATH_SGID)) ||
			   (from_any && !to_any && softib_sa_has(q, PATH_DGID))))
		q->status = SOFTIB_SA_INVALID_GID;
}
