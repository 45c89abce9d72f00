/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of vmri-errors.  Each opens and closes the pairs that it needs.
 */
#ifndef ERRORS_H
#define ERRORS_H

#include "pair.h"

/* Requests that name memory they must not: status of both sides. */
void test_access(struct caller *c);
/* Receivers that are late, peers that are gone, queues that are flushed. */
void test_flow(struct caller *c);
/* What a call must refuse at once, and with which errno. */
void test_calls(struct caller *c);
/* The same for shared receive queues, extended queue pairs and the rest. */
void test_objects(struct caller *c);
/* Datagrams. */
void test_datagrams(struct caller *c);

/* A signalled request with one SGE at the start of the caller's buffer. */
struct request {
	struct ibv_sge sge;
	struct ibv_send_wr wr;
};

void request_init(struct request *r, struct caller *c, const struct pair *p,
		  enum ibv_wr_opcode opcode, uint32_t length);
/* Post one that the provider must take. */
void request_post(struct request *r, struct pair *p);
/* Post a SEND of 16 bytes with this wr_id. */
void post_send(struct pair *p, uint64_t wr_id, bool signalled);

/* Report whether two numbers are the same. */
bool expect(const char *name, const char *what, uint64_t is, uint64_t want);
/* Report whether a call's errno is the one that it should be. */
void check(const char *name, int is, int want);

/* A call that gives an object, which it should not. */
#define CHECK_NULL(name, call, want) do {			\
	errno = 0;						\
	if (call)						\
		bad(name, "it succeeded");			\
	else							\
		check(name, errno, want);			\
} while (0)

/* The next completion of a send has this wr_id and status. */
bool expect_wc(const char *name, struct pair *p, uint64_t wr_id,
	       enum ibv_wc_status status);

#endif /* ERRORS_H */
