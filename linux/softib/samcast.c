// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the subnet administrator's multicast groups (IBTA 1.4, 15.2.5.17).
 * VMRI keeps the groups and who is in them; a port joins and leaves for itself
 * only.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "sa.h"

struct softib_member_rec {
	u8 mgid[16];
	u8 port_gid[16];
	__be32 qkey;
	__be16 mlid;
	u8 mtu;			/* selector, value: 2, 6 */
	u8 traffic_class;
	__be16 pkey;
	u8 rate;		/* as mtu */
	u8 packet_life;		/* as mtu */
	__be32 sl_flow_hop;	/* 4, 20, 8 bits */
	u8 scope_join;		/* 4, 4 */
	u8 proxy_join;		/* 1 */
	u8 reserved[2];
} __packed;
static_assert(sizeof(struct softib_member_rec) == 52);

/* Bits of the component mask. */
enum {
	MEMBER_MGID,
	MEMBER_PORT_GID,
	MEMBER_QKEY,
	MEMBER_MLID,
	MEMBER_MTU_SELECTOR,
	MEMBER_MTU,
	MEMBER_TRAFFIC_CLASS,
	MEMBER_PKEY,
	MEMBER_RATE_SELECTOR,
	MEMBER_RATE,
	MEMBER_LIFE_SELECTOR,
	MEMBER_LIFE,
	MEMBER_SL,
	MEMBER_FLOW_LABEL,
	MEMBER_HOP_LIMIT,
	MEMBER_SCOPE,
	MEMBER_JOIN_STATE,
};

/* What who wants a record names of it, equal or not at all. */
static const struct softib_sa_field softib_member_fields[] = {
	{ MEMBER_MGID, 0, 128 },
	{ MEMBER_QKEY, 32 * 8, 32 },
	{ MEMBER_MLID, 36 * 8, 16 },
	{ MEMBER_TRAFFIC_CLASS, 39 * 8, 8 },
	{ MEMBER_PKEY, 40 * 8 + 1, 15 },
	{ MEMBER_SL, 44 * 8, 4 },
	{ MEMBER_FLOW_LABEL, 44 * 8 + 4, 20 },
	{ MEMBER_SCOPE, 48 * 8, 4 },
};

static const u8 softib_member_selectors[3] = {
	MEMBER_MTU_SELECTOR, MEMBER_RATE_SELECTOR, MEMBER_LIFE_SELECTOR,
};

#define MEMBER_EXACTLY		(IB_SA_EQ << 6)
#define MEMBER_DEFAULT_SCOPE	2	/* link-local */

static const struct softib_member_rec *
softib_member_want(const struct softib_sa_query *q)
{
	return (const void *)q->data;
}

/* With the port's GID, and the ways in which it is a member, in `joined`. */
static void softib_member_fill(const struct vmri_mcg *group, const u8 *gid,
			       struct softib_member_rec *rec)
{
	*rec = (struct softib_member_rec) {
		.qkey = cpu_to_be32(group->qkey),
		.mlid = cpu_to_be16(group->mlid),
		.mtu = MEMBER_EXACTLY | group->mtu,
		.traffic_class = group->traffic_class,
		.pkey = cpu_to_be16(group->pkey),
		.rate = MEMBER_EXACTLY | group->rate,
		.packet_life = MEMBER_EXACTLY | group->packet_life,
		.sl_flow_hop = cpu_to_be32((u32)group->sl << 28 |
					   group->flow_label << 8 |
					   group->hop_limit),
		.scope_join = group->scope << 4 | (gid ? group->joined : 0),
	};
	memcpy(rec->mgid, group->mgid, sizeof(rec->mgid));
	if (gid)
		memcpy(rec->port_gid, gid, sizeof(rec->port_gid));
}

/* Is the value that the group has one of those that the query allows? */
static bool softib_member_allows(const struct softib_sa_query *q,
				 unsigned int selector, u8 wanted, u8 value)
{
	return softib_sa_pick(q, selector, wanted, value, value, value) ==
	       value;
}

static bool softib_member_matches(const struct softib_sa_query *q,
				  const struct vmri_mcg *group,
				  const struct softib_member_rec *rec)
{
	const struct softib_member_rec *want = softib_member_want(q);

	return softib_sa_match(q, softib_member_fields,
			       ARRAY_SIZE(softib_member_fields), rec) &&
	       softib_member_allows(q, MEMBER_MTU_SELECTOR, want->mtu,
				    group->mtu) &&
	       softib_member_allows(q, MEMBER_RATE_SELECTOR, want->rate,
				    group->rate) &&
	       softib_member_allows(q, MEMBER_LIFE_SELECTOR, want->packet_life,
				    group->packet_life);
}

static bool softib_member_names_own_port(const struct softib_sa_query *q)
{
	return softib_sa_has(q, MEMBER_PORT_GID) &&
	       softib_sa_names_own_port(q, softib_member_want(q)->port_gid);
}

/* ---- Get and GetTable ---- */

/* One record for each port in the group that the query may mean. */
static void softib_member_emit_ports(struct softib_sa_query *q,
				     const struct vmri_mcg *group)
{
	const struct softib_member_rec *want = softib_member_want(q);
	struct vmri_mcg_query in = { .flags = VMRI_MCG_BY_MGID };
	struct softib_member_rec rec;
	struct vmri_port_query port;
	u32 lid = 0;
	u8 gid[16];

	memcpy(in.group.mgid, group->mgid, sizeof(in.group.mgid));
	while (!q->status && softib_sa_next_port(q, &port, &lid)) {
		softib_sa_port_gid(&port, gid);
		if (softib_sa_has(q, MEMBER_PORT_GID) &&
		    memcmp(want->port_gid, gid, sizeof(gid)))
			continue;
		in.lid = port.lid;
		if (softib_call(q->dev, VMRI_OP_mcg_query, &in) ||
		    !in.group.joined)
			continue;
		softib_member_fill(&in.group, gid, &rec);
		softib_sa_emit(q, &rec, sizeof(rec));
	}
}

/*
 * Who is in a group is told to those who know an SM_Key, or who ask for one port;
 * others learn which groups there are.
 */
static void softib_members_list(struct softib_sa_query *q)
{
	bool ports = q->trusted || softib_sa_has(q, MEMBER_PORT_GID);
	struct vmri_mcg_query in = {};
	struct softib_member_rec rec;
	u8 gid[16];
	u32 mlid;

	softib_sa_own_gid(q, gid);
	while (!q->status && !softib_call(q->dev, VMRI_OP_mcg_query, &in)) {
		softib_member_fill(&in.group, in.group.joined ? gid : NULL,
				   &rec);
		if (softib_member_matches(q, &in.group, &rec)) {
			if (ports)
				softib_member_emit_ports(q, &in.group);
			else
				softib_sa_emit(q, &rec, sizeof(rec));
		}
		mlid = in.group.mlid + 1;
		in = (struct vmri_mcg_query) { .group.mlid = mlid };
	}
}

/* ---- Set ---- */

/* A new group's MGID for who names none: no other port makes the same. */
static void softib_member_make_mgid(const struct softib_sa_query *q,
				    struct vmri_mcg *group)
{
	static atomic_t last = ATOMIC_INIT(0);
	__be32 number = cpu_to_be32(atomic_inc_return(&last));
	__be64 guid = cpu_to_be64(q->port.port_guid);

	group->mgid[0] = 0xff;
	group->mgid[1] = 0x10 | group->scope;
	group->mgid[2] = 0xa0;
	group->mgid[3] = 0x1b;
	memcpy(group->mgid + 4, &number, sizeof(number));
	memcpy(group->mgid + 8, &guid, sizeof(guid));
}

/*
 * May a port name a new group so?  Those that the administrator makes for who names
 * none are not for the taking (o15-0.1.6).
 */
static bool softib_member_mgid_valid(const u8 mgid[16])
{
	bool assigned = mgid[2] == 0xa0 && mgid[3] == 0x1b;

	return mgid[0] == 0xff && !(mgid[1] & 0xe0) &&
	       !(assigned && (mgid[1] & 0xf) == MEMBER_DEFAULT_SCOPE);
}

/* All that the query says of a group; a status if that is none. */
static u16 softib_member_describe(const struct softib_sa_query *q,
				  struct vmri_mcg *group)
{
	const struct softib_member_rec *want = softib_member_want(q);
	u32 word = be32_to_cpu(want->sl_flow_hop);
	struct softib_sa_link link;

	if (!softib_sa_pick_link(q, softib_member_selectors,
				 (u8[]) { want->mtu, want->rate,
					  want->packet_life }, &link))
		return SOFTIB_SA_REQ_INVALID;

	group->pkey = be16_to_cpu(want->pkey);
	group->qkey = be32_to_cpu(want->qkey);
	group->mtu = link.mtu;
	group->rate = link.rate;
	group->packet_life = link.life;
	group->sl = word >> 28;
	group->flow_label = word >> 8 & 0xfffff;
	group->hop_limit = word;
	group->traffic_class = want->traffic_class;
	group->scope = softib_sa_has(q, MEMBER_SCOPE) ?
		       want->scope_join >> 4 : MEMBER_DEFAULT_SCOPE;
	return 0;
}

/* Does the query agree with the group that there is, and is the port of it? */
static bool softib_member_agrees(const struct softib_sa_query *q,
				 const struct vmri_mcg *group)
{
	struct softib_member_rec rec;

	softib_member_fill(group, NULL, &rec);
	return softib_sa_in_partition(q->port.pkeys, group->pkey) &&
	       softib_member_matches(q, group, &rec);
}

/* One that there is not, by who says all that it takes (o15-0.2.3). */
static u16 softib_member_create(const struct softib_sa_query *q, bool any_mgid,
				struct vmri_mcg *group)
{
	static const u8 needed[] = {
		MEMBER_QKEY, MEMBER_PKEY, MEMBER_SL, MEMBER_FLOW_LABEL,
		MEMBER_TRAFFIC_CLASS,
	};
	unsigned int i;
	u16 status;

	for (i = 0; i < ARRAY_SIZE(needed); i++)
		if (!softib_sa_has(q, needed[i]))
			return SOFTIB_SA_INSUFFICIENT;
	if (!(group->join & (VMRI_JOIN_FULL | VMRI_JOIN_SEND_ONLY_FULL)))
		return SOFTIB_SA_REQ_INVALID;

	status = softib_member_describe(q, group);
	if (status)
		return status;
	if (!softib_sa_in_partition(q->port.pkeys, group->pkey))
		return SOFTIB_SA_REQ_INVALID;
	if (any_mgid)
		softib_member_make_mgid(q, group);
	else if (!softib_member_mgid_valid(group->mgid))
		return SOFTIB_SA_REQ_INVALID;
	group->create = 1;
	return 0;
}

/* As far as the port is no member yet in the ways that are asked for. */
static int softib_member_add(const struct softib_sa_query *q,
			     struct vmri_mcg *group)
{
	struct vmri_mcg_query in = { .flags = VMRI_MCG_BY_MGID };
	u8 join = group->join;

	memcpy(in.group.mgid, group->mgid, sizeof(in.group.mgid));
	if (!softib_call(q->dev, VMRI_OP_mcg_query, &in)) {
		group->join = join & ~in.group.joined;
		if (!group->join) {
			*group = in.group;
			return 0;
		}
	}
	return softib_call(q->dev, VMRI_OP_mcg_create, group);
}

static void softib_member_reply(struct softib_sa_query *q,
				const struct vmri_mcg *group)
{
	struct softib_member_rec rec;
	u8 gid[16];

	softib_sa_own_gid(q, gid);
	softib_member_fill(group, gid, &rec);
	softib_sa_emit(q, &rec, sizeof(rec));
}

static u16 softib_member_check(const struct softib_sa_query *q)
{
	if (!softib_sa_has(q, MEMBER_PORT_GID) ||
	    !softib_sa_has(q, MEMBER_JOIN_STATE))
		return SOFTIB_SA_INSUFFICIENT;
	if (!softib_member_names_own_port(q))
		return SOFTIB_SA_INVALID_GID;
	if (!(softib_member_want(q)->scope_join & 0xf))
		return SOFTIB_SA_REQ_INVALID;
	return 0;
}

/* Join a group that there is, or the broadcast group, which needs no creator. */
static int softib_member_join(struct softib_sa_query *q, struct vmri_mcg *group)
{
	int err = softib_member_add(q, group);

	if (err || softib_member_agrees(q, group))
		return err;
	if (group->join)
		softib_call(q->dev, VMRI_OP_mcg_destroy, group);
	return -EINVAL;
}

static void softib_members_join(struct softib_sa_query *q)
{
	static const u8 any[16];
	const struct softib_member_rec *want = softib_member_want(q);
	bool any_mgid = !softib_sa_has(q, MEMBER_MGID) ||
			!memcmp(want->mgid, any, sizeof(any));
	struct vmri_mcg group = { .join = want->scope_join & 0xf };
	int err = -ENOENT;

	if (!any_mgid) {
		memcpy(group.mgid, want->mgid, sizeof(group.mgid));
		err = softib_member_join(q, &group);
	}
	if (err == -ENOENT) {
		q->status = softib_member_create(q, any_mgid, &group);
		if (q->status)
			return;
		err = softib_member_add(q, &group);
	}

	q->status = softib_sa_status(err);
	if (!q->status)
		softib_member_reply(q, &group);
}

/* ---- Delete ---- */

static void softib_members_leave(struct softib_sa_query *q)
{
	const struct softib_member_rec *want = softib_member_want(q);
	struct vmri_mcg_query in = { .flags = VMRI_MCG_BY_MGID };
	struct vmri_mcg group = { .join = want->scope_join & 0xf };

	if (!softib_sa_has(q, MEMBER_MGID)) {
		q->status = SOFTIB_SA_INSUFFICIENT;
		return;
	}

	memcpy(in.group.mgid, want->mgid, sizeof(in.group.mgid));
	memcpy(group.mgid, want->mgid, sizeof(group.mgid));
	if (softib_call(q->dev, VMRI_OP_mcg_query, &in) ||
	    softib_call(q->dev, VMRI_OP_mcg_destroy, &group)) {
		q->status = SOFTIB_SA_REQ_INVALID;
		return;
	}
	in.group.joined &= ~group.join;
	softib_member_reply(q, &in.group);
}

/* MCMemberRecord. */
void softib_sa_members(struct softib_sa_query *q)
{
	switch (q->method) {
	case IB_MGMT_METHOD_GET:
	case IB_SA_METHOD_GET_TABLE:
		softib_members_list(q);
		return;
	}

	q->status = softib_member_check(q);
	if (q->status)
		return;
	if (q->method == IB_MGMT_METHOD_SET)
		softib_members_join(q);
	else
		softib_members_leave(q);
}
