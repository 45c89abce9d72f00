/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of vmri-field: one function a class of what users of software and
 * virtual RDMA devices ran into (docs/field-classes.md).  Each gets the bench
 * with its two queue pairs connected, and leaves it so.
 */
#ifndef FIELD_H
#define FIELD_H

#include "bench.h"

#define GRH 40		/* bytes before a datagram in its receive */

/* Long forms of what only takes longer are left out. */
extern bool field_quick;

/* One check of the class that is tested. */
void check(const char *what, long got, long want);
/* The same of a call that gives an object, which it should not. */
#define check_refused(what, call, want) do {				\
	errno = 0;							\
	check(what, (call) ? 0 : errno, want);				\
} while (0)

/* Two ends that reach each other: connected, or datagrams from a to b. */
struct couple {
	struct end a;
	struct end b;
	struct ibv_ah *ah;	/* of datagrams: to b */
};

/* The SRQ, if any, is b's.  NULL for link: the usual, with all rights. */
void couple_open(struct couple *c, struct rig *rig,
		 const struct end_attr *attr, const struct link_attr *link);
void couple_close(struct couple *c);

/* A request with one entry, and room for it. */
struct order {
	struct ibv_sge sge;
	struct ibv_send_wr wr;
};

/* From the start of the bench's a memory to the start of its b memory. */
void order_init(struct order *o, struct bench *t, enum ibv_wr_opcode opcode,
		uint32_t bytes);
/* Address it to a couple's b, if it is a datagram. */
void order_aim(struct order *o, const struct couple *c);
/* Post a request or a list, which must be taken. */
void post(struct end *end, struct ibv_send_wr *wr);
/* The same of a receive into an MR from `offset` on; NULL: no room at all. */
void post_room(struct end *end, struct ibv_mr *mr, size_t offset,
	       uint32_t bytes, uint64_t wr_id);
/* The next completion, which must come. */
struct ibv_wc next_wc(struct end *end, struct ibv_cq *cq);
/* True when none is there and none comes for a moment. */
bool is_silent(struct end *end);
/*
 * The next asynchronous event of this type within `limit` seconds; others are
 * dropped.
 */
bool next_event(struct rig *rig, enum ibv_event_type type, double limit);
void sleep_ms(unsigned int ms);

/* field-device.c: what the device and its port say of themselves */
void field_attributes(struct bench *t);
void field_gids(struct bench *t);
void field_path_mtu(struct bench *t);
void field_message_size(struct bench *t);
void field_access_flags(struct bench *t);
void field_pkeys(struct bench *t);

/* field-queues.c: what queues hold */
void field_inline(struct bench *t);
void field_capabilities(struct bench *t);
void field_sges(struct bench *t);
void field_cq_overflow(struct bench *t);
void field_events(struct bench *t);

/* field-shared.c: shared receive queues and datagrams */
void field_last_wqe(struct bench *t);
void field_srq(struct bench *t);
void field_grh(struct bench *t);
void field_multicast(struct bench *t);

/* field-requests.c: what comes of a request */
void field_errno(struct bench *t);
void field_opcode(struct bench *t);
void field_zero_length(struct bench *t);
void field_atomics(struct bench *t);
void field_write_imm(struct bench *t);
void field_windows(struct bench *t);

/* field-failures.c: peers that fail, wait or go */
void field_flush(struct bench *t);
void field_destroy(struct bench *t);
void field_rnr(struct bench *t);
void field_timeout(struct bench *t);

/* field-process.c: what a process may lock, and how often it connects */
void field_memlock(struct bench *t);
void field_connections(struct bench *t);

#endif /* FIELD_H */
