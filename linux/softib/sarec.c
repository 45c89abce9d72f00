// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the subnet administrator's answers: which handler a query gets, how
 * records match it, and what is left when none or too many do.
 */
#include <linux/errno.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "sa.h"

#define SOFTIB_SA_METHOD(m)	BIT((m) & 0x1f)
#define SOFTIB_SA_GETS		(SOFTIB_SA_METHOD(IB_MGMT_METHOD_GET) | \
				 SOFTIB_SA_METHOD(IB_SA_METHOD_GET_TABLE))
#define SOFTIB_SA_CHANGES	(SOFTIB_SA_METHOD(IB_MGMT_METHOD_SET) | \
				 SOFTIB_SA_METHOD(IB_SA_METHOD_DELETE))

/* IBTA 1.4, 15.2.5.1, beyond what ib_sa.h has. */
#define SOFTIB_SA_CAP_UD_MULTICAST	BIT(9)
#define SOFTIB_SA_RESP_TIME		18	/* 4.096 us * 2^18 */

static void softib_sa_class_port_info(struct softib_sa_query *q)
{
	struct ib_class_port_info info = {
		.base_version = IB_MGMT_BASE_VERSION,
		.class_version = IB_SA_CLASS_VERSION,
		.capability_mask = cpu_to_be16(SOFTIB_SA_CAP_UD_MULTICAST),
	};

	ib_set_cpi_resp_time(&info, SOFTIB_SA_RESP_TIME);
	ib_set_cpi_capmask2(&info, IB_SA_CAP_MASK2_SENDONLY_FULL_MEM_SUPPORT);
	softib_sa_emit(q, &info, sizeof(info));
}

static const struct softib_sa_attr {
	u16 id;
	u16 size;		/* of a record */
	u32 methods;
	void (*answer)(struct softib_sa_query *q);
} softib_sa_attrs[] = {
	{ IB_SA_ATTR_CLASS_PORTINFO, 72,
	  SOFTIB_SA_METHOD(IB_MGMT_METHOD_GET), softib_sa_class_port_info },
	{ IB_SA_ATTR_INFORM_INFO, 40, SOFTIB_SA_METHOD(IB_MGMT_METHOD_SET),
	  softib_sa_inform },
	{ IB_SA_ATTR_INFORM_INFO_REC, 80, SOFTIB_SA_GETS,
	  softib_sa_inform_records },
	{ IB_SA_ATTR_NODE_REC, 112, SOFTIB_SA_GETS, softib_sa_nodes },
	{ IB_SA_ATTR_PORT_INFO_REC, 72, SOFTIB_SA_GETS, softib_sa_port_infos },
	{ IB_SA_ATTR_PATH_REC, 64, SOFTIB_SA_GETS, softib_sa_paths },
	{ IB_SA_ATTR_MC_MEMBER_REC, 56, SOFTIB_SA_GETS | SOFTIB_SA_CHANGES,
	  softib_sa_members },
	{ IB_SA_ATTR_SERVICE_REC, 176, SOFTIB_SA_GETS | SOFTIB_SA_CHANGES,
	  softib_sa_services },
};

static const struct softib_sa_attr *softib_sa_find(u16 id)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(softib_sa_attrs); i++)
		if (softib_sa_attrs[i].id == id)
			return &softib_sa_attrs[i];
	return NULL;
}

/* A Get is for one record, and a change tells of one. */
static void softib_sa_check_count(struct softib_sa_query *q)
{
	if (q->status || q->method == IB_SA_METHOD_GET_TABLE)
		return;
	if (!q->count)
		q->status = SOFTIB_SA_NO_RECORDS;
	else if (q->count > 1)
		q->status = SOFTIB_SA_TOO_MANY_RECORDS;
}

/**
 * softib_sa_answer() - find the records that answer a query
 * @q:		query; dev, method, trusted, mask and data are set, the rest is 0
 * @attr:	which kind of record, IB_SA_ATTR_*
 *
 * status says how it went; records are there only if that is 0.
 */
void softib_sa_answer(struct softib_sa_query *q, u16 attr)
{
	const struct softib_sa_attr *a = softib_sa_find(attr);

	if (!a || !(a->methods & SOFTIB_SA_METHOD(q->method))) {
		q->status = SOFTIB_MAD_BAD_ATTRIBUTE;
		return;
	}
	if (softib_call(q->dev, VMRI_OP_dev_query, &q->port)) {
		q->status = SOFTIB_SA_NO_RESOURCES;
		return;
	}

	q->size = a->size;
	a->answer(q);
	softib_sa_check_count(q);
	if (q->status)
		softib_sa_release(q);
}

/* Give back the records. */
void softib_sa_release(struct softib_sa_query *q)
{
	kvfree(q->records);
	q->records = NULL;
	q->count = 0;
	q->room = 0;
}

/* Have room for one more record. */
static bool softib_sa_grow(struct softib_sa_query *q)
{
	u32 room = q->room ? q->room * 2 : 4;
	u8 *records;

	if (q->count < q->room)
		return true;
	if (q->count == SOFTIB_SA_MAX_RECORDS)
		return false;

	records = kvcalloc(room, q->size, GFP_KERNEL);
	if (!records)
		return false;
	if (q->count)
		memcpy(records, q->records, q->count * q->size);
	kvfree(q->records);
	q->records = records;
	q->room = room;
	return true;
}

/**
 * softib_sa_emit() - add a record to the answer
 * @q:		query
 * @record:	record
 * @len:	its bytes, at most q->size; zeros follow
 *
 * Return: false when there is no room; the status says so, too.
 */
bool softib_sa_emit(struct softib_sa_query *q, const void *record, u32 len)
{
	if (!softib_sa_grow(q)) {
		q->status = SOFTIB_SA_NO_RESOURCES;
		return false;
	}
	memcpy(q->records + q->count * q->size, record, len);
	q->count++;
	return true;
}

/* Does a component of the query count? */
bool softib_sa_has(const struct softib_sa_query *q, unsigned int component)
{
	return q->mask & BIT_ULL(component);
}

/* Bits of a record, most significant first. */
static u64 softib_sa_bits(const u8 *record, unsigned int offset,
			  unsigned int length)
{
	u64 value = 0;

	for (; length; length--, offset++)
		value = value << 1 |
			(record[offset / 8] >> (7 - offset % 8) & 1);
	return value;
}

/**
 * softib_sa_match() - is a record what a query asks for?
 * @q:		query
 * @fields:	components that must be equal if they count
 * @num:	number of them
 * @record:	record
 */
bool softib_sa_match(const struct softib_sa_query *q,
		     const struct softib_sa_field *fields, unsigned int num,
		     const void *record)
{
	const u8 *rec = record;
	unsigned int i;

	for (i = 0; i < num; i++) {
		const struct softib_sa_field *f = &fields[i];
		unsigned int byte = f->offset / 8;

		if (!softib_sa_has(q, f->component))
			continue;
		if (f->length == 128) {
			if (memcmp(q->data + byte, rec + byte, 16))
				return false;
		} else if (softib_sa_bits(q->data, f->offset, f->length) !=
			   softib_sa_bits(rec, f->offset, f->length)) {
			return false;
		}
	}
	return true;
}

/**
 * softib_sa_pick() - the value that a selector asks for (IBTA 1.4, 15.2.5.16)
 * @q:		query
 * @component:	that of the selector; the one of the value is the next
 * @wanted:	selector and value, as they stand in the record
 * @best:	what is given to who does not care
 * @lowest:	values that there are
 * @highest:	up to this one
 *
 * Return: the value, or -1 when there is none.
 */
int softib_sa_pick(const struct softib_sa_query *q, unsigned int component,
		   u8 wanted, u8 best, u8 lowest, u8 highest)
{
	int value = wanted & 0x3f;

	if (!softib_sa_has(q, component + 1))
		return best;

	switch (softib_sa_has(q, component) ? wanted >> 6 : IB_SA_EQ) {
	case IB_SA_GT:
		return best > value ? best : -1;
	case IB_SA_LT:
		if (best < value)
			return best;
		return value > lowest ? min(value - 1, (int)highest) : -1;
	case IB_SA_EQ:
		return value >= lowest && value <= highest ? value : -1;
	default:
		return best;
	}
}

/**
 * softib_sa_pick_link() - MTU, rate and life of what a query selects
 * @q:		query
 * @components:	those of the three selectors
 * @wanted:	selectors and values, as they stand in the record
 * @link:	filled in
 *
 * Return: false when no port has such.
 */
bool softib_sa_pick_link(const struct softib_sa_query *q,
			 const u8 components[3], const u8 wanted[3],
			 struct softib_sa_link *link)
{
	int mtu = softib_sa_pick(q, components[0], wanted[0], SOFTIB_SA_MTU,
				 IB_MTU_256, SOFTIB_SA_MTU);
	int rate = softib_sa_pick(q, components[1], wanted[1], SOFTIB_SA_RATE,
				  IB_RATE_2_5_GBPS, SOFTIB_SA_RATE);
	int life = softib_sa_pick(q, components[2], wanted[2], SOFTIB_SA_LIFE,
				  SOFTIB_SA_LIFE, 63);

	if (mtu < 0 || rate < 0 || life < 0)
		return false;
	*link = (struct softib_sa_link) {
		.mtu = mtu, .rate = rate, .life = life,
	};
	return true;
}

/**
 * softib_sa_next_port() - walk over the ports of the fabric
 * @q:		query
 * @port:	filled in
 * @lid:	where to go on; begins with 0
 *
 * Return: false at the end.
 */
bool softib_sa_next_port(struct softib_sa_query *q,
			 struct vmri_port_query *port, u32 *lid)
{
	*port = (struct vmri_port_query) { .lid = *lid };
	if (*lid > U16_MAX ||
	    softib_call(q->dev, VMRI_OP_port_query, port))
		return false;
	*lid = port->lid + 1;
	return true;
}

/* A port's GID as it is on the wire. */
void softib_sa_port_gid(const struct vmri_port_query *port, u8 gid[16])
{
	__be64 halves[2] = { cpu_to_be64(port->gid_prefix),
			     cpu_to_be64(port->guid) };

	memcpy(gid, halves, sizeof(halves));
}

/* That of the port that asks. */
void softib_sa_own_gid(const struct softib_sa_query *q, u8 gid[16])
{
	struct vmri_port_query own = {
		.guid = q->port.port_guid,
		.gid_prefix = q->port.gid_prefix,
	};

	softib_sa_port_gid(&own, gid);
}

/*
 * Is a GID that of the port that asks?  Its GUID says so, as for opensm: clients leave
 * the subnet's prefix 0, or have its bytes the wrong way round (osmtest).
 */
bool softib_sa_names_own_port(const struct softib_sa_query *q,
			      const u8 gid[16])
{
	u8 own[16];

	softib_sa_own_gid(q, own);
	return gid[0] != 0xff && !memcmp(gid + 8, own + 8, 8);
}

/* The status that says why VMRI refuses what a query asks for. */
u16 softib_sa_status(int err)
{
	switch (err) {
	case 0:
		return 0;
	case -EPERM:
	case -EINVAL:
	case -ENOENT:
	case -EEXIST:
		return SOFTIB_SA_REQ_INVALID;
	default:
		return SOFTIB_SA_NO_RESOURCES;
	}
}

/* Is one of a port's P_Keys of the partition of @pkey? */
bool softib_sa_in_partition(const u16 *pkeys, u16 pkey)
{
	int i;

	for (i = 0; i < VMRI_MAX_PKEYS; i++)
		if ((pkey & 0x7fff) && !((pkeys[i] ^ pkey) & 0x7fff))
			return true;
	return false;
}
