/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections for tests of what goes wrong.  The caller runs the tests; the
 * listener opens, one after another, the other ends that the tests ask for.
 */
#ifndef PAIR_H
#define PAIR_H

#include "rig.h"

#define PAIR_BYTES	65536	/* of each buffer, at either side */
#define PAIR_DEPTH	16	/* requests of a queue, receives of a pair */

/* What the other end is to be like. */
struct terms {
	int32_t qp_access;		/* IBV_ACCESS_*; 0: all that are remote */
	int32_t mr_access;		/* the same, of the memory */
	uint32_t receives;		/* posted when it connects */
	uint32_t receive_size;		/* bytes; 0: all of the buffer */
	uint8_t bad_receives;		/* with a key that names nothing */
	uint8_t min_rnr_timer;		/* 0: that of link_default */
	uint8_t no_access;		/* qp_access is 0 and meant so */
	uint8_t reserved;
};

/* What has come of its receives, and of its queue pair. */
struct outcome {
	uint32_t nr;
	uint32_t state;			/* enum ibv_qp_state */
	uint32_t status[PAIR_DEPTH];
};

/* The caller's side of the tests. */
struct caller {
	struct rig rig;
	int chan;
	uint8_t *buf;			/* PAIR_BYTES */
	struct ibv_mr *mr;		/* of it, writable */
	struct ibv_mr *read_only;	/* of it, too */
	struct ibv_pd *other_pd;
	struct ibv_mr *other_mr;	/* of it, in other_pd */
};

void caller_open(struct caller *c, const char *device, const char *host,
		 const char *port);
void caller_close(struct caller *c);

/* A connection: an end here, and one there. */
struct pair {
	struct caller *c;
	struct end end;
	struct address peer;
	uint32_t other_rkey;		/* of the same memory, in another PD */
};

/*
 * Open both ends and connect them.  NULL for link or attr: the usual.
 * pair_open_only leaves both ends in RESET; pair_connect_peer takes the other
 * one to RTS.
 */
void pair_open(struct pair *p, struct caller *c, const struct terms *terms,
	       const struct link_attr *link);
void pair_open_only(struct pair *p, struct caller *c,
		    const struct terms *terms, const struct end_attr *attr);
void pair_connect_peer(struct pair *p);
void pair_close(struct pair *p);

/* What the other end is told to do, meanwhile. */
void peer_post_receives(struct pair *p, uint32_t nr);
void peer_close_qp(struct pair *p);
void peer_deregister(struct pair *p);
/* Wait until it has `nr` completions of receives, RIG_LIMIT at most. */
struct outcome peer_outcome(struct pair *p, uint32_t nr);

/* The listener: serve until the caller hangs up. */
void serve_pairs(const char *device, const char *port);

#endif /* PAIR_H */
