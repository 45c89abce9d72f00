/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SoftIB: who wants to be told of what happens in the fabric, and what has been told.
 * None of this, and of sainform.c and notice.c, needs more of a kernel than sa.h does.
 */
#ifndef SOFTIB_INFORM_H
#define SOFTIB_INFORM_H

#include <linux/spinlock.h>

#include "sa.h"

#define SOFTIB_MAX_INFORMS	32	/* subscriptions of a port */

/* What a subnet manager tells of (IBTA 1.4, 14.2.5.1). */
#define SOFTIB_TRAP_GID_IN		64	/* in service */
#define SOFTIB_TRAP_GID_OUT		65
#define SOFTIB_TRAP_MGID_CREATED	66
#define SOFTIB_TRAP_MGID_DELETED	67

/* IBTA 1.4, 13.4.8.3, as on the wire. */
struct softib_inform_info {
	u8 gid[16];
	__be16 lid_begin;
	__be16 lid_end;
	__be16 reserved0;
	u8 is_generic;
	u8 subscribe;
	__be16 type;
	__be16 trap;			/* or device id */
	__be32 qpn_resp_time;		/* 24, 3 reserved, 5 bits */
	u8 reserved1;
	u8 producer[3];			/* or vendor id */
} __packed;
static_assert(sizeof(struct softib_inform_info) == 36);

struct softib_inform {
	u32 id;				/* no other's; 0: a free place */
	u32 qpn;
	u16 pkey_index;
	struct softib_inform_info info;
};

struct softib_informs {
	spinlock_t lock;		/* all below */
	u32 nr;
	u32 last;			/* id given out */
	struct softib_inform inform[SOFTIB_MAX_INFORMS];
};

/* What is reported (IBTA 1.4, 13.4.8.2), as on the wire. */
struct softib_notice {
	u8 generic_type;		/* 1, 7 bits */
	u8 producer[3];
	__be16 trap;
	__be16 issuer_lid;
	__be16 toggle_count;
	u8 reserved[6];			/* from here on the details of 64 .. 67 */
	u8 gid[16];
	u8 unused[32];
	u8 issuer_gid[16];
} __packed;
static_assert(sizeof(struct softib_notice) == 80);

/* A port in service, or a group. */
struct softib_seen {
	u32 key;			/* a LID, which a group's comes behind */
	u8 gid[16];
};

/* What there is in a fabric, in order of the keys. */
struct softib_view {
	u32 nr;
	u32 room;
	struct softib_seen *seen;
};

/* sainform.c */
void softib_informs_init(struct softib_informs *informs);
bool softib_inform_wants(struct softib_informs *informs, unsigned int place,
			 const struct softib_notice *notice,
			 struct softib_inform *inform);
void softib_inform_forget(struct softib_informs *informs, u32 id);
void softib_informs_clear(struct softib_informs *informs);

/* notice.c */
typedef void (*softib_tell_fn)(void *context,
			       const struct softib_notice *notice);
int softib_view_look(struct softib_dev *dev, struct softib_view *view);
bool softib_view_advance(struct softib_view *told,
			 const struct softib_view *now, u32 max,
			 const struct vmri_dev_attr *port,
			 softib_tell_fn tell, void *context);
void softib_view_free(struct softib_view *view);

#endif /* SOFTIB_INFORM_H */
