/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two queue pairs of one process, connected to each other, with memory at both:
 * for tests of verbs that need no second guest.
 */
#ifndef BENCH_H
#define BENCH_H

#include "rig.h"

#define BENCH_BYTES	65536	/* of each side's memory */
#define BENCH_ALL	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
			 IBV_ACCESS_MW_BIND)

struct bench {
	struct rig rig;
	struct end a;		/* requests start here */
	struct end b;
	uint8_t *amem;
	uint8_t *bmem;
	struct ibv_mr *amr;
	struct ibv_mr *bmr;	/* with all rights */
};

void bench_open(struct bench *t, const char *device);
void bench_close(struct bench *t);
/* Two new queue pairs, after one has failed. */
void bench_reconnect(struct bench *t);

struct ibv_mr *bench_reg(struct ibv_pd *pd, void *mem, size_t bytes,
			 int access);
void bench_dereg(struct ibv_mr *mr);

/* A WRITE of nothing, signalled, from a to b's memory; it completes by itself. */
struct ibv_send_wr bench_empty_write(const struct bench *t);

/* Post a request, signalled, and wait for its end. */
struct ibv_wc bench_post(struct end *end, struct ibv_send_wr *wr);
/* The next completion of a receive. */
struct ibv_wc bench_receive(struct end *end);
void bench_post_recv(struct end *end, struct ibv_mr *mr, uint64_t wr_id);

/*
 * WRITE from a's memory, or READ into it, `bytes` at an address of b's.  What
 * became of it; after a failure the queue pairs are new.
 */
enum ibv_wc_status bench_write(struct bench *t, uint64_t addr, uint32_t rkey,
			       uint32_t bytes);
enum ibv_wc_status bench_read(struct bench *t, uint64_t addr, uint32_t rkey,
			      uint32_t bytes);

/* One check: ok, or what it was instead. */
void expect(const char *name, long got, long want);

/* The parts of vmri-verbs. */
void test_memory(struct bench *t);
void test_windows(struct bench *t);
void test_cqs(struct bench *t);
void test_domains(struct bench *t);
void test_qps(struct bench *t);

#endif /* BENCH_H */
