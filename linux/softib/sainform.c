// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: who has asked the subnet administrator to be told of events (IBTA 1.4,
 * 13.4.11 and 15.2.5.12): queue pairs of its own port, since nobody else's queries
 * get here.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "inform.h"

#define INFORM_ANY	cpu_to_be16(0xffff)
#define INFORM_QPN(v)	(be32_to_cpu(v) >> 8)

/* Of InformInfoRecord. */
struct softib_inform_rec {
	u8 subscriber_gid[16];
	__be16 subscriber_enum;
	u8 reserved[6];
	struct softib_inform_info info;
	u8 pad[20];
} __packed;
static_assert(sizeof(struct softib_inform_rec) == 80);

/* Bits of its component mask. */
enum {
	INFORM_SUBSCRIBER_GID,
	INFORM_SUBSCRIBER_ENUM,
};

/* Traps that say who has been where he should not: for who is trusted. */
#define INFORM_SECURITY_FIRST	256
#define INFORM_SECURITY_LAST	259

void softib_informs_init(struct softib_informs *informs)
{
	memset(informs, 0, sizeof(*informs));
	spin_lock_init(&informs->lock);
}

/* ---- subscribing ---- */

/* All by which subscriptions differ. */
static bool softib_inform_same(const struct softib_inform *a, u32 qpn,
			       const struct softib_inform_info *info)
{
	return a->id && a->qpn == qpn &&
	       !memcmp(a->info.gid, info->gid, sizeof(info->gid)) &&
	       a->info.lid_begin == info->lid_begin &&
	       a->info.lid_end == info->lid_end &&
	       a->info.is_generic == info->is_generic &&
	       a->info.type == info->type && a->info.trap == info->trap &&
	       !memcmp(a->info.producer, info->producer,
		       sizeof(info->producer));
}

/* One like this, or a free place for one; NULL: there is none. */
static struct softib_inform *
softib_inform_place(struct softib_informs *informs, u32 qpn,
		    const struct softib_inform_info *info, bool free_too)
{
	struct softib_inform *found = NULL;
	int i;

	for (i = 0; i < SOFTIB_MAX_INFORMS; i++) {
		struct softib_inform *inform = &informs->inform[i];

		if (softib_inform_same(inform, qpn, info))
			return inform;
		if (free_too && !inform->id && !found)
			found = inform;
	}
	return found;
}

static u16 softib_inform_subscribe(struct softib_sa_query *q,
				   const struct softib_inform_info *info)
{
	struct softib_informs *informs = q->informs;
	struct softib_inform *place;
	u16 status = SOFTIB_SA_NO_RESOURCES;
	unsigned long flags;

	spin_lock_irqsave(&informs->lock, flags);
	place = softib_inform_place(informs, q->src_qpn, info, true);
	if (place) {
		if (!place->id) {
			informs->nr++;
			if (!++informs->last)
				informs->last = 1;
			place->id = informs->last;
		}
		place->qpn = q->src_qpn;
		place->pkey_index = q->pkey_index;
		place->info = *info;
		status = 0;
	}
	spin_unlock_irqrestore(&informs->lock, flags);
	return status;
}

/* Who ends it names the queue pair that has it, which may be another's. */
static u16 softib_inform_unsubscribe(struct softib_sa_query *q,
				     const struct softib_inform_info *info)
{
	struct softib_informs *informs = q->informs;
	u32 qpn = INFORM_QPN(info->qpn_resp_time) ?: q->src_qpn;
	struct softib_inform *place;
	unsigned long flags;

	spin_lock_irqsave(&informs->lock, flags);
	place = softib_inform_place(informs, qpn, info, false);
	if (place) {
		place->id = 0;
		informs->nr--;
	}
	spin_unlock_irqrestore(&informs->lock, flags);
	return place ? 0 : SOFTIB_SA_REQ_INVALID;
}

static bool softib_inform_is_security(const struct softib_inform_info *info)
{
	u16 trap = be16_to_cpu(info->trap);

	return info->is_generic && trap >= INFORM_SECURITY_FIRST &&
	       trap <= INFORM_SECURITY_LAST;
}

/* InformInfo. */
void softib_sa_inform(struct softib_sa_query *q)
{
	struct softib_inform_info info;

	memcpy(&info, q->data, sizeof(info));
	if (info.subscribe > 1 || info.is_generic > 1 ||
	    (softib_inform_is_security(&info) && !q->trusted))
		q->status = SOFTIB_SA_REQ_INVALID;
	else if (info.subscribe)
		q->status = softib_inform_subscribe(q, &info);
	else
		q->status = softib_inform_unsubscribe(q, &info);
	if (!q->status)
		softib_sa_emit(q, &info, sizeof(info));
}

/* ---- asking who has subscribed ---- */

/* InformInfoRecord.  Which queue pair it is, is for who is trusted. */
void softib_sa_inform_records(struct softib_sa_query *q)
{
	const struct softib_inform_rec *want = (const void *)q->data;
	struct softib_inform_rec rec = {};
	unsigned int i;

	softib_sa_own_gid(q, rec.subscriber_gid);
	if (softib_sa_has(q, INFORM_SUBSCRIBER_GID) &&
	    !softib_sa_names_own_port(q, want->subscriber_gid))
		return;

	for (i = 0; i < SOFTIB_MAX_INFORMS && !q->status; i++) {
		struct softib_inform inform;

		if (!softib_inform_wants(q->informs, i, NULL, &inform) ||
		    (softib_sa_has(q, INFORM_SUBSCRIBER_ENUM) &&
		     be16_to_cpu(want->subscriber_enum) != i))
			continue;
		rec.subscriber_enum = cpu_to_be16(i);
		rec.info = inform.info;
		rec.info.qpn_resp_time &= cpu_to_be32(0x1f);
		if (q->trusted)
			rec.info.qpn_resp_time |= cpu_to_be32(inform.qpn << 8);
		softib_sa_emit(q, &rec, sizeof(rec));
	}
}

/* ---- reporting ---- */

static bool softib_inform_lids_match(const struct softib_inform_info *info,
				     u16 lid)
{
	u16 begin = be16_to_cpu(info->lid_begin);
	u16 end = be16_to_cpu(info->lid_end) ?: begin;

	return info->lid_begin == INFORM_ANY || (begin <= lid && lid <= end);
}

/* IBTA 1.4, 13.4.8.3: what is all ones, or all zeroes for a GID, is any. */
static bool softib_inform_matches(const struct softib_inform_info *info,
				  const struct softib_notice *notice)
{
	static const u8 any_gid[16];
	static const u8 any_producer[3] = { 0xff, 0xff, 0xff };
	u8 type = notice->generic_type & 0x7f;

	if (memcmp(info->gid, any_gid, sizeof(any_gid))) {
		if (memcmp(info->gid, notice->issuer_gid, sizeof(info->gid)))
			return false;
	} else if (!softib_inform_lids_match(info,
					     be16_to_cpu(notice->issuer_lid))) {
		return false;
	}
	return info->is_generic &&
	       (info->type == INFORM_ANY || be16_to_cpu(info->type) == type) &&
	       (info->trap == INFORM_ANY || info->trap == notice->trap) &&
	       (!memcmp(info->producer, any_producer, sizeof(any_producer)) ||
		!memcmp(info->producer, notice->producer,
			sizeof(info->producer)));
}

/**
 * softib_inform_wants() - is somebody to be told of a notice?
 * @informs:	subscriptions
 * @place:	which, below SOFTIB_MAX_INFORMS
 * @notice:	notice; or NULL for any
 * @inform:	filled in
 *
 * Context: any.
 */
bool softib_inform_wants(struct softib_informs *informs, unsigned int place,
			 const struct softib_notice *notice,
			 struct softib_inform *inform)
{
	unsigned long flags;

	spin_lock_irqsave(&informs->lock, flags);
	*inform = informs->inform[place];
	spin_unlock_irqrestore(&informs->lock, flags);
	return inform->id &&
	       (!notice || softib_inform_matches(&inform->info, notice));
}

/* One who does not answer has gone.  Context: any. */
void softib_inform_forget(struct softib_informs *informs, u32 id)
{
	unsigned long flags;
	int i;

	spin_lock_irqsave(&informs->lock, flags);
	for (i = 0; i < SOFTIB_MAX_INFORMS; i++) {
		if (informs->inform[i].id == id) {
			informs->inform[i].id = 0;
			informs->nr--;
		}
	}
	spin_unlock_irqrestore(&informs->lock, flags);
}

/* All of them. */
void softib_informs_clear(struct softib_informs *informs)
{
	unsigned long flags;

	spin_lock_irqsave(&informs->lock, flags);
	memset(informs->inform, 0, sizeof(informs->inform));
	informs->nr = 0;
	spin_unlock_irqrestore(&informs->lock, flags);
}
