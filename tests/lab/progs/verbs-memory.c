// SPDX-License-Identifier: GPL-2.0-only
/* Atomics, and memory regions that are more than plain ones. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* ---- atomics ---- */

static void atomic(struct bench *t, const char *name, enum ibv_wr_opcode opcode,
		   uint64_t compare_add, uint64_t swap, uint64_t after)
{
	uint64_t *result = (uint64_t *)t->amem, *target = (uint64_t *)t->bmem;
	struct ibv_sge sge = {
		.addr = (uintptr_t)result,
		.length = sizeof(*result),
		.lkey = t->amr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.atomic = {
			.remote_addr = (uintptr_t)target,
			.compare_add = compare_add,
			.swap = swap,
			.rkey = t->bmr->rkey,
		},
	};
	uint64_t before = *target;
	struct ibv_wc wc;

	*result = ~before;
	wc = bench_post(&t->a, &wr);
	if (wc.status)
		bad(name, "%s", ibv_wc_status_str(wc.status));
	else if (wc.opcode != (opcode == IBV_WR_ATOMIC_CMP_AND_SWP ?
			       IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD))
		bad(name, "the completion's opcode is %d", wc.opcode);
	else if (*result != before || *target != after)
		bad(name, "gave %#lx and left %#lx, not %#lx and %#lx",
		    *result, *target, before, after);
	else
		ok(name);
}

static void test_atomics(struct bench *t)
{
	const uint64_t big = 0x1122334455667788;

	*(uint64_t *)t->bmem = big;
	atomic(t, "compare and swap of what is there",
	       IBV_WR_ATOMIC_CMP_AND_SWP, big, 5, 5);
	atomic(t, "compare and swap of what is not there",
	       IBV_WR_ATOMIC_CMP_AND_SWP, big, 7, 5);
	atomic(t, "fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD, big, 0,
	       big + 5);
	atomic(t, "fetch and add that wraps", IBV_WR_ATOMIC_FETCH_AND_ADD,
	       -big, 0, 5);
}

/* ---- re-registration ---- */

/* An MR of the lower half of b's memory, and what it is to become. */
struct change {
	struct ibv_pd *pd;	/* another one */
	uint8_t *old;
	uint8_t *new;		/* the upper half */
	size_t bytes;
};

/* What peers may do with the MR after these flags, where it is now. */
static const char *check_change(struct bench *t, const struct change *c,
				const struct ibv_mr *mr, int flags)
{
	bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	uint64_t there = (uintptr_t)(moved ? c->new : c->old);
	uint64_t not_there = (uintptr_t)(moved ? c->old : c->new);
	bool other_pd = flags & IBV_REREG_MR_CHANGE_PD;
	bool read_only = flags & IBV_REREG_MR_CHANGE_ACCESS;
	enum ibv_wc_status status;

	status = bench_read(t, there, mr->rkey, c->bytes);
	if (!status != !other_pd)
		return other_pd ? "it is still in its old PD" :
				  "it cannot be read";
	if (other_pd)
		return NULL;

	memset(t->amem, 0x30 + flags, c->bytes);
	status = bench_write(t, there, mr->rkey, c->bytes);
	if (!status != !read_only)
		return read_only ? "it can still be written" :
				   "it cannot be written";
	if (!read_only &&
	    memcmp((void *)(uintptr_t)there, t->amem, c->bytes))
		return "what was written went elsewhere";

	if (!bench_read(t, not_there, mr->rkey, 1))
		return "it is also where it should not be";
	return NULL;
}

static void reregister(struct bench *t, const struct change *c, int flags)
{
	struct ibv_mr *mr = bench_reg(t->rig.pd, c->old, c->bytes,
				      IBV_ACCESS_LOCAL_WRITE |
				      IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_REMOTE_READ);
	int access = flags & IBV_REREG_MR_CHANGE_ACCESS ?
		     IBV_ACCESS_REMOTE_READ : 0;
	const char *why = NULL;
	char name[64];
	int ret;

	snprintf(name, sizeof(name), "re-registration of%s%s%s",
		 flags & IBV_REREG_MR_CHANGE_TRANSLATION ? " memory" : "",
		 flags & IBV_REREG_MR_CHANGE_PD ? " PD" : "",
		 flags & IBV_REREG_MR_CHANGE_ACCESS ? " rights" : "");
	ret = ibv_rereg_mr(mr, flags, c->pd, c->new, c->bytes, access);
	if (ret)
		bad(name, "ibv_rereg_mr: %d, %s", ret, strerror(errno));
	else
		why = check_change(t, c, mr, flags);
	if (why)
		bad(name, "%s", why);
	else if (!ret)
		ok(name);
	bench_dereg(mr);
}

/* Pages that were pinned to be read only must be pinned anew. */
static void reregister_to_write(struct bench *t)
{
	struct ibv_mr *mr = bench_reg(t->rig.pd, t->bmem, 8192,
				      IBV_ACCESS_REMOTE_READ);
	int ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       IBV_ACCESS_LOCAL_WRITE |
			       IBV_ACCESS_REMOTE_WRITE);

	memset(t->amem, 0x77, 8192);
	if (!ret)
		ret = bench_write(t, (uintptr_t)t->bmem, mr->rkey, 8192);
	expect("re-registration of what was read-only", ret, 0);
	expect("it is written to", memcmp(t->amem, t->bmem, 8192), 0);
	bench_dereg(mr);
}

static void test_reregistration(struct bench *t)
{
	struct change c = {
		.pd = ibv_alloc_pd(t->rig.ctx),
		.old = t->bmem + 100,
		.new = t->bmem + BENCH_BYTES / 2 + 300,
		.bytes = 20000,
	};
	int flags;

	if (!c.pd)
		die("ibv_alloc_pd: %s", strerror(errno));
	for (flags = 1; flags < 8; flags++)
		reregister(t, &c, flags);
	ibv_dealloc_pd(c.pd);
	reregister_to_write(t);
}

/* ---- kinds of regions ---- */

static void test_zero_based(struct bench *t)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_ZERO_BASED;
	struct ibv_mr *mr = bench_reg(t->rig.pd, t->bmem + 123, 9000, access);

	memset(t->bmem, 0, 10000);
	memset(t->amem, 0x5a, 10000);
	expect("a zero-based region is written to from 0",
	       bench_write(t, 0, mr->rkey, 9000), IBV_WC_SUCCESS);
	expect("what was written is in its place",
	       t->bmem[122] || t->bmem[9123] ||
	       memcmp(t->bmem + 123, t->amem, 9000), 0);
	expect("and not beyond its end", bench_write(t, 1, mr->rkey, 9000),
	       IBV_WC_REM_ACCESS_ERR);
	expect("nor where it lies",
	       bench_write(t, (uintptr_t)t->bmem + 123, mr->rkey, 8),
	       IBV_WC_REM_ACCESS_ERR);
	bench_dereg(mr);
}

static int try_access(struct bench *t, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(t->rig.pd, t->bmem, 4096, access);

	if (!mr)
		return errno;
	bench_dereg(mr);
	return 0;
}

static void test_rights(struct bench *t)
{
	const int write = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	expect("relaxed ordering is accepted",
	       try_access(t, write | IBV_ACCESS_RELAXED_ORDERING), 0);
	expect("global flush is accepted",
	       try_access(t, write | IBV_ACCESS_FLUSH_GLOBAL), 0);
	expect("persistent flush is not offered",
	       try_access(t, write | IBV_ACCESS_FLUSH_PERSISTENT), EOPNOTSUPP);
	expect("on-demand paging is not offered",
	       try_access(t, write | IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
	expect("remote write needs local write",
	       try_access(t, IBV_ACCESS_REMOTE_WRITE), EINVAL);

	errno = 0;
	expect("a dmabuf is not registered",
	       ibv_reg_dmabuf_mr(t->rig.pd, 0, 4096, 0, 1, write) ? 0 : errno,
	       EOPNOTSUPP);
	expect("no advice is taken",
	       ibv_advise_mr(t->rig.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL,
			     0), EOPNOTSUPP);
}

/* ---- fork ---- */

/* The child gets copies: what it writes does not take the parent's pages. */
static void test_fork(struct bench *t)
{
	pid_t child;
	int status;

	memset(t->bmem, 1, BENCH_BYTES);
	memset(t->amem, 2, BENCH_BYTES);
	child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (!child)
		_exit(0);
	/* It may have made the pages copy-on-write: write before it ends. */
	memset(t->amem, 3, BENCH_BYTES);
	t->bmem[0] = 4;
	status = bench_write(t, (uintptr_t)t->bmem + 1, t->bmr->rkey,
			     BENCH_BYTES - 1);
	expect("a registered buffer after a fork", status, IBV_WC_SUCCESS);
	expect("is still the one that is written to",
	       t->bmem[0] != 4 ||
	       memcmp(t->bmem + 1, t->amem, BENCH_BYTES - 1), 0);
	waitpid(child, &status, 0);
}

void test_memory(struct bench *t)
{
	test_atomics(t);
	test_reregistration(t);
	test_zero_based(t);
	test_rights(t);
	test_fork(t);
}
