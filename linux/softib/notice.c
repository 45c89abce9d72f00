// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: what there is in a fabric, and the notices of what has changed since
 * (IBTA 1.4, 14.2.5.1): ports that are in service, and multicast groups, as far as
 * this port shares a partition with them.
 *
 * What comes and goes between two looks is not told of.
 */
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "inform.h"

#define SOFTIB_GROUPS		(U16_MAX + 1)	/* keys of groups begin here */

#define SOFTIB_NOTICE_TYPE	0x83	/* generic, of subnet management */
#define SOFTIB_CLASS_MANAGER	4	/* its producer */

void softib_view_free(struct softib_view *view)
{
	kvfree(view->seen);
	*view = (struct softib_view) {};
}

static int softib_view_add(struct softib_view *view, u32 key, const u8 gid[16])
{
	if (view->nr == view->room) {
		u32 room = view->room ? view->room * 2 : 16;
		struct softib_seen *seen;

		seen = kvcalloc(room, sizeof(*seen), GFP_KERNEL);
		if (!seen)
			return -ENOMEM;
		if (view->nr)
			memcpy(seen, view->seen, view->nr * sizeof(*seen));
		kvfree(view->seen);
		view->seen = seen;
		view->room = room;
	}
	view->seen[view->nr].key = key;
	memcpy(view->seen[view->nr].gid, gid, 16);
	view->nr++;
	return 0;
}

static bool softib_shares_partition(const struct vmri_dev_attr *own,
				    const struct vmri_port_query *port)
{
	int i;

	for (i = 0; i < VMRI_MAX_PKEYS; i++)
		if (softib_sa_in_partition(own->pkeys, port->pkeys[i]))
			return true;
	return false;
}

static int softib_view_ports(struct softib_dev *dev,
			     const struct vmri_dev_attr *own,
			     struct softib_view *view)
{
	struct softib_sa_query q = { .dev = dev };
	struct vmri_port_query port;
	int ret = 0;
	u32 lid = 0;
	u8 gid[16];

	while (!ret && softib_sa_next_port(&q, &port, &lid)) {
		if (port.state != VMRI_PORT_ACTIVE ||
		    !softib_shares_partition(own, &port))
			continue;
		softib_sa_port_gid(&port, gid);
		ret = softib_view_add(view, port.lid, gid);
	}
	return ret;
}

static int softib_view_groups(struct softib_dev *dev,
			      const struct vmri_dev_attr *own,
			      struct softib_view *view)
{
	struct vmri_mcg_query in = {};
	int ret = 0;
	u32 mlid;

	while (!ret && !softib_call(dev, VMRI_OP_mcg_query, &in)) {
		mlid = in.group.mlid;
		if (softib_sa_in_partition(own->pkeys, in.group.pkey))
			ret = softib_view_add(view, SOFTIB_GROUPS + mlid,
					      in.group.mgid);
		in = (struct vmri_mcg_query) { .group.mlid = mlid + 1 };
	}
	return ret;
}

/**
 * softib_view_look() - see what there is
 * @dev:	device
 * @view:	filled in; to be freed, whatever comes back
 *
 * Return: 0; -ENOMEM; -ENODEV.
 */
int softib_view_look(struct softib_dev *dev, struct softib_view *view)
{
	struct vmri_dev_attr own;
	int ret;

	*view = (struct softib_view) {};
	ret = softib_call(dev, VMRI_OP_dev_query, &own);
	if (!ret)
		ret = softib_view_ports(dev, &own, view);
	if (!ret)
		ret = softib_view_groups(dev, &own, view);
	return ret;
}

/* The port that asks is its own subnet manager. */
static void softib_notice_fill(struct softib_notice *notice, bool gone,
			       const struct softib_seen *seen,
			       const struct vmri_dev_attr *port)
{
	const struct vmri_port_query own = {
		.guid = port->port_guid,
		.gid_prefix = port->gid_prefix,
	};
	u16 trap = seen->key < SOFTIB_GROUPS ?
		   (gone ? SOFTIB_TRAP_GID_OUT : SOFTIB_TRAP_GID_IN) :
		   (gone ? SOFTIB_TRAP_MGID_DELETED :
			   SOFTIB_TRAP_MGID_CREATED);

	*notice = (struct softib_notice) {
		.generic_type = SOFTIB_NOTICE_TYPE,
		.producer = { 0, 0, SOFTIB_CLASS_MANAGER },
		.trap = cpu_to_be16(trap),
		.issuer_lid = cpu_to_be16(port->lid),
	};
	memcpy(notice->gid, seen->gid, sizeof(notice->gid));
	softib_sa_port_gid(&own, notice->issuer_gid);
}

/* Two lists that are merged: where each of them is. */
struct softib_merge {
	const struct softib_view *told;
	const struct softib_view *now;
	u32 t;
	u32 n;
};

/*
 * What has changed next: true if there is something.  What has a key of one and a GID
 * of another has gone, and the other come.
 */
static bool softib_merge_next(struct softib_merge *m, bool *gone,
			      const struct softib_seen **seen)
{
	for (;;) {
		bool old = m->t < m->told->nr, new = m->n < m->now->nr;
		const struct softib_seen *t = old ? &m->told->seen[m->t] : NULL;
		const struct softib_seen *n = new ? &m->now->seen[m->n] : NULL;

		if (!old && !new)
			return false;
		if (old && new && t->key == n->key &&
		    !memcmp(t->gid, n->gid, sizeof(t->gid))) {
			m->t++;
			m->n++;
			continue;
		}
		*gone = old && (!new || t->key <= n->key);
		*seen = *gone ? t : n;
		if (*gone)
			m->t++;
		else
			m->n++;
		return true;
	}
}

/* Up to where it was told what is now, from there on what was. */
static int softib_merge_take(const struct softib_merge *m,
			     struct softib_view *told)
{
	struct softib_view view = {};
	int ret = 0;
	u32 i;

	for (i = 0; i < m->n && !ret; i++)
		ret = softib_view_add(&view, m->now->seen[i].key,
				      m->now->seen[i].gid);
	for (i = m->t; i < m->told->nr && !ret; i++)
		ret = softib_view_add(&view, m->told->seen[i].key,
				      m->told->seen[i].gid);
	if (ret) {
		softib_view_free(&view);
		return ret;
	}
	softib_view_free(told);
	*told = view;
	return 0;
}

/**
 * softib_view_advance() - tell of what has changed
 * @told:	what has been told, which follows
 * @now:	what there is
 * @max:	notices at the most
 * @port:	the port that tells
 * @tell:	called for each
 * @context:	for it
 *
 * Return: true if there is more to tell.
 */
bool softib_view_advance(struct softib_view *told,
			 const struct softib_view *now, u32 max,
			 const struct vmri_dev_attr *port,
			 softib_tell_fn tell, void *context)
{
	struct softib_merge m = { .told = told, .now = now };
	const struct softib_seen *seen;
	struct softib_notice notice;
	bool gone;
	u32 i;

	for (i = 0; i < max; i++) {
		if (!softib_merge_next(&m, &gone, &seen)) {
			i = 0;
			break;
		}
		softib_notice_fill(&notice, gone, seen, port);
		tell(context, &notice);
	}
	/* Without memory for it, some is told twice. */
	return softib_merge_take(&m, told) || i;
}
