// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the subnet administrator's services (IBTA 1.4, 15.2.5.14).
 *
 * VMRI keeps them for the whole fabric.  A port registers and takes away its own
 * only.  Keys are told to nobody but a trusted one at the port itself; who knows a
 * key may ask for the services that have it.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "sa.h"

struct softib_service_rec {
	__be64 id;
	u8 gid[16];
	__be16 pkey;
	__be16 reserved;
	__be32 lease;		/* seconds */
	u8 key[16];
	u8 name[64];
	u8 data[64];		/* 16 of a byte, 8 of 2, 4 of 4, 2 of 8 */
} __packed;
static_assert(sizeof(struct softib_service_rec) == 176);

/* Bits of the component mask. */
enum {
	SERVICE_ID,
	SERVICE_GID,
	SERVICE_PKEY,
	SERVICE_LEASE = 4,
	SERVICE_KEY,
	SERVICE_NAME,
	SERVICE_DATA,		/* and 29 more */
};

/* The data's: how many components of how many bytes. */
static const struct {
	u8 count;
	u8 size;
} softib_service_data[] = { { 16, 1 }, { 8, 2 }, { 4, 4 }, { 2, 8 } };

static const struct softib_service_rec *
softib_service_want(const struct softib_sa_query *q)
{
	return (const void *)q->data;
}

/* Which bytes of the data a query names: 0xff where it does, else 0. */
static void softib_service_data_mask(const struct softib_sa_query *q,
				     u8 mask[64])
{
	unsigned int component = SERVICE_DATA;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(softib_service_data); i++) {
		u8 size = softib_service_data[i].size;

		for (n = softib_service_data[i].count; n; n--) {
			memset(mask, softib_sa_has(q, component++) ? 0xff : 0,
			       size);
			mask += size;
		}
	}
}

static bool softib_service_data_matches(const struct softib_sa_query *q,
					const u8 data[64])
{
	const u8 *want = softib_service_want(q)->data;
	u8 mask[64];
	int i;

	softib_service_data_mask(q, mask);
	for (i = 0; i < sizeof(mask); i++)
		if ((want[i] ^ data[i]) & mask[i])
			return false;
	return true;
}

static bool softib_service_gid_matches(const struct softib_sa_query *q,
				       const u8 gid[16])
{
	const u8 *want = softib_service_want(q)->gid;

	return !memcmp(want, gid, 16) ||
	       (softib_sa_names_own_port(q, want) &&
		softib_sa_names_own_port(q, gid));
}

/* Is it one that the query means?  Its key is, and a lease changes by itself. */
static bool softib_service_matches(const struct softib_sa_query *q,
				   const struct vmri_service *s)
{
	const struct softib_service_rec *want = softib_service_want(q);

	return (!softib_sa_has(q, SERVICE_ID) ||
		be64_to_cpu(want->id) == s->id) &&
	       (!softib_sa_has(q, SERVICE_GID) ||
		softib_service_gid_matches(q, s->gid)) &&
	       (!softib_sa_has(q, SERVICE_PKEY) ||
		be16_to_cpu(want->pkey) == s->pkey) &&
	       (!softib_sa_has(q, SERVICE_NAME) ||
		!memcmp(want->name, s->name, sizeof(s->name))) &&
	       softib_service_data_matches(q, s->data);
}

/* The next one that the query means; begins with number 0. */
static bool softib_service_next(const struct softib_sa_query *q,
				struct vmri_service_query *next)
{
	do {
		u64 number = next->number + 1;

		*next = (struct vmri_service_query) { .number = number };
		if (softib_sa_has(q, SERVICE_KEY)) {
			next->flags = VMRI_SERVICE_BY_KEY;
			memcpy(next->service.key, softib_service_want(q)->key,
			       sizeof(next->service.key));
		}
		if (softib_call(q->dev, VMRI_OP_service_query, next))
			return false;
	} while (!softib_service_matches(q, &next->service));
	return true;
}

static void softib_service_emit(struct softib_sa_query *q,
				const struct vmri_service *s)
{
	struct softib_service_rec rec = {
		.id = cpu_to_be64(s->id),
		.pkey = cpu_to_be16(s->pkey),
		.lease = cpu_to_be32(s->lease),
	};

	memcpy(rec.gid, s->gid, sizeof(rec.gid));
	memcpy(rec.name, s->name, sizeof(rec.name));
	memcpy(rec.data, s->data, sizeof(rec.data));
	if (q->trusted)
		memcpy(rec.key, s->key, sizeof(rec.key));
	softib_sa_emit(q, &rec, sizeof(rec));
}

static void softib_services_list(struct softib_sa_query *q)
{
	struct vmri_service_query next = {};

	while (!q->status && softib_service_next(q, &next))
		softib_service_emit(q, &next.service);
}

/* ---- Set ---- */

/* What it does not name is 0, but for these. */
static void softib_service_describe(const struct softib_sa_query *q,
				    struct vmri_service *s)
{
	const struct softib_service_rec *want = softib_service_want(q);
	u8 mask[64];
	int i;

	s->id = be64_to_cpu(want->id);
	s->pkey = softib_sa_has(q, SERVICE_PKEY) ? be16_to_cpu(want->pkey) :
						   q->port.pkeys[0];
	s->lease = softib_sa_has(q, SERVICE_LEASE) ? be32_to_cpu(want->lease) :
						     VMRI_LEASE_FOREVER;
	if (softib_sa_has(q, SERVICE_KEY))
		memcpy(s->key, want->key, sizeof(s->key));
	if (softib_sa_has(q, SERVICE_NAME))
		memcpy(s->name, want->name, sizeof(s->name));
	softib_service_data_mask(q, mask);
	for (i = 0; i < sizeof(mask); i++)
		s->data[i] = want->data[i] & mask[i];
}

static void softib_services_register(struct softib_sa_query *q)
{
	struct vmri_service s = {};

	if (!softib_sa_has(q, SERVICE_ID) || !softib_sa_has(q, SERVICE_GID)) {
		q->status = SOFTIB_SA_INSUFFICIENT;
		return;
	}
	if (!softib_sa_names_own_port(q, softib_service_want(q)->gid)) {
		q->status = SOFTIB_SA_INVALID_GID;
		return;
	}

	softib_service_describe(q, &s);
	q->status = softib_sa_status(softib_call(q->dev, VMRI_OP_service_set,
						 &s));
	if (q->status)
		return;
	softib_sa_own_gid(q, s.gid);
	softib_service_emit(q, &s);
}

/* ---- Delete ---- */

/*
 * The port's own service that the query means: how many there are.  Sets a status if
 * it can only mean another's.
 */
static int softib_service_own(struct softib_sa_query *q, struct vmri_service *s)
{
	struct vmri_service_query next = {};
	bool others = false;
	int count = 0;

	while (softib_service_next(q, &next)) {
		if (!softib_sa_names_own_port(q, next.service.gid)) {
			others = true;
			continue;
		}
		*s = next.service;
		count++;
	}
	if (!count && others)
		q->status = SOFTIB_SA_DENIED;
	return count;
}

static void softib_services_withdraw(struct softib_sa_query *q)
{
	struct vmri_service s;
	int count;

	if (!softib_sa_has(q, SERVICE_ID) && !softib_sa_has(q, SERVICE_NAME)) {
		q->status = SOFTIB_SA_INSUFFICIENT;
		return;
	}

	count = softib_service_own(q, &s);
	if (count > 1)
		q->status = SOFTIB_SA_TOO_MANY_RECORDS;
	/* Its lease may have ended since. */
	if (count == 1 && !softib_call(q->dev, VMRI_OP_service_delete, &s))
		softib_service_emit(q, &s);
}

/* ServiceRecord. */
void softib_sa_services(struct softib_sa_query *q)
{
	switch (q->method) {
	case IB_MGMT_METHOD_SET:
		softib_services_register(q);
		break;
	case IB_SA_METHOD_DELETE:
		softib_services_withdraw(q);
		break;
	default:
		softib_services_list(q);
		break;
	}
}
