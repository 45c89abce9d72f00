// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the subnet administrator's nodes and ports (IBTA 1.4, 15.2.5.2 and
 * 15.2.5.3): each device of the fabric is a node with one port.
 */
#include <linux/string.h>

#include "sa.h"

struct softib_node_rec {
	__be16 lid;
	__be16 reserved;
	struct ib_node_info info;
	u8 desc[IB_DEVICE_NODE_DESC_MAX];
} __packed;
static_assert(sizeof(struct softib_node_rec) == 108);

/* Bits of the component mask, and where the components lie. */
static const struct softib_sa_field softib_node_fields[] = {
	{ 0, 0, 16 },			/* LID */
	{ 2, 4 * 8, 8 },		/* base version, and as in NodeInfo */
	{ 3, 5 * 8, 8 },
	{ 4, 6 * 8, 8 },		/* node type */
	{ 5, 7 * 8, 8 },		/* ports */
	{ 6, 8 * 8, 64 },		/* system image GUID */
	{ 7, 16 * 8, 64 },		/* node GUID */
	{ 8, 24 * 8, 64 },		/* port GUID */
	{ 9, 32 * 8, 16 },		/* entries of the P_Key table */
	{ 10, 34 * 8, 16 },		/* device id */
	{ 11, 36 * 8, 32 },		/* revision */
	{ 12, 40 * 8, 8 },		/* local port */
	{ 13, 41 * 8, 24 },		/* vendor */
};

#define SOFTIB_NODE_DESC	14

static bool softib_node_desc_matches(const struct softib_sa_query *q,
				     const struct softib_node_rec *rec)
{
	const struct softib_node_rec *want = (const void *)q->data;

	return !softib_sa_has(q, SOFTIB_NODE_DESC) ||
	       !memcmp(want->desc, rec->desc, sizeof(rec->desc));
}

/* NodeRecord. */
void softib_sa_nodes(struct softib_sa_query *q)
{
	struct vmri_port_query port;
	u32 lid = 0;

	while (!q->status && softib_sa_next_port(q, &port, &lid)) {
		struct softib_node_rec rec = { .lid = cpu_to_be16(port.lid) };

		softib_node_info(port.guid, &rec.info);
		memcpy(rec.desc, port.node_desc, sizeof(rec.desc));
		if (softib_sa_match(q, softib_node_fields,
				    ARRAY_SIZE(softib_node_fields), &rec) &&
		    softib_node_desc_matches(q, &rec))
			softib_sa_emit(q, &rec, sizeof(rec));
	}
}

struct softib_port_rec {
	__be16 lid;
	u8 port;
	u8 options;
	struct ib_port_info info;
} __packed;

/* The same, of those by which anybody asks. */
static const struct softib_sa_field softib_port_fields[] = {
	{ 0, 0, 16 },			/* LID */
	{ 1, 2 * 8, 8 },		/* port */
	{ 4, 12 * 8, 64 },		/* GID prefix */
	{ 5, 20 * 8, 16 },		/* LID, as in PortInfo */
	{ 6, 22 * 8, 16 },		/* LID of the subnet manager */
	{ 7, 24 * 8, 32 },		/* capabilities */
	{ 10, 32 * 8, 8 },		/* local port */
	{ 15, 36 * 8 + 4, 4 },		/* state */
};

/* PortInfoRecord. */
void softib_sa_port_infos(struct softib_sa_query *q)
{
	struct vmri_port_query port;
	u32 lid = 0;

	while (!q->status && softib_sa_next_port(q, &port, &lid)) {
		struct softib_port_rec rec = {
			.lid = cpu_to_be16(port.lid),
			.port = SOFTIB_PORT,
		};
		/* As long as it has no other, each is its own manager's. */
		u16 sm_lid = port.lid == q->port.lid ? q->port.sm_lid :
						       port.lid;
		struct ib_port_info info;

		softib_port_info(&port, sm_lid, &info);
		memcpy(&rec.info, &info, sizeof(rec.info));
		if (softib_sa_match(q, softib_port_fields,
				    ARRAY_SIZE(softib_port_fields), &rec))
			softib_sa_emit(q, &rec, sizeof(rec));
	}
}
