// SPDX-License-Identifier: GPL-2.0-only
/* Memory windows, and requests that invalidate them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static struct ibv_mw *window(struct bench *t, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(t->rig.pd, type);

	if (!mw)
		die("ibv_alloc_mw of type %d: %s", type, strerror(errno));
	return mw;
}

static struct ibv_mw_bind_info part(struct bench *t, uint32_t offset,
				    uint32_t bytes, int access)
{
	return (struct ibv_mw_bind_info) {
		.mr = t->bmr,
		.addr = (uintptr_t)t->bmem + offset,
		.length = bytes,
		.mw_access_flags = access,
	};
}

/* Bind a window of type 1 by b; what became of it. */
static enum ibv_wc_status bind_to(struct bench *t, struct ibv_mw *mw,
				  struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = {
		.wr_id = 11,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = info,
	};
	struct ibv_wc wc;
	int ret;

	ret = ibv_bind_mw(t->b.qp, mw, &bind);
	if (ret)
		die("ibv_bind_mw: %s", strerror(ret));
	if (!wait_wc(&t->b, t->b.send_cq, &wc, false, RIG_LIMIT))
		die("a bind did not complete");
	if (wc.wr_id != 11 || (!wc.status && wc.opcode != IBV_WC_BIND_MW))
		return IBV_WC_GENERAL_ERR;
	return wc.status;
}

static enum ibv_wc_status bind1(struct bench *t, struct ibv_mw *mw,
				uint32_t offset, uint32_t bytes)
{
	/* Programs name the local right, too, which means nothing here. */
	return bind_to(t, mw, part(t, offset, bytes,
				   IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_LOCAL_WRITE));
}

static void refuse_windows(struct bench *t, struct ibv_mw *mw)
{
	struct ibv_mr *mr = bench_reg(t->rig.pd, t->bmem, BENCH_BYTES,
				      IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw_bind_info info = part(t, 0, 8, IBV_ACCESS_REMOTE_WRITE);
	struct ibv_mw_bind bind = {
		.bind_info = part(t, 0, 8, IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_ZERO_BASED),
	};
	const uint32_t key = mw->rkey;

	expect("it is not bound to addresses from 0",
	       ibv_bind_mw(t->b.qp, mw, &bind), EINVAL);
	info.mr = mr;
	expect("a region without the right to it has no window",
	       bind_to(t, mw, info), IBV_WC_MW_BIND_ERR);
	/* It goes by its old name: the new one was given before that failed. */
	mw->rkey = key;
	bench_dereg(mr);
	bench_reconnect(t);
}

static void test_type1(struct bench *t)
{
	const uint64_t base = (uintptr_t)t->bmem;
	struct ibv_mw *mw = window(t, IBV_MW_TYPE_1);
	uint32_t old;

	expect("a window is bound", bind1(t, mw, 1000, 2000), IBV_WC_SUCCESS);
	expect("what it shows can be written",
	       bench_write(t, base + 1000, mw->rkey, 2000), IBV_WC_SUCCESS);
	expect("what it does not show cannot",
	       bench_write(t, base + 1000, mw->rkey, 2001),
	       IBV_WC_REM_ACCESS_ERR);
	expect("nor be read", bench_read(t, base + 1000, mw->rkey, 8),
	       IBV_WC_REM_ACCESS_ERR);

	old = mw->rkey;
	expect("it is bound anew", bind1(t, mw, 5000, 100), IBV_WC_SUCCESS);
	expect("and has another key", mw->rkey != old, 1);
	expect("the old key names nothing",
	       bench_write(t, base + 1000, old, 8), IBV_WC_REM_ACCESS_ERR);
	expect("the new one does",
	       bench_write(t, base + 5000, mw->rkey, 100), IBV_WC_SUCCESS);
	expect("its region stays while it is bound", ibv_dereg_mr(t->bmr),
	       EBUSY);

	expect("it is unbound", bind_to(t, mw, (struct ibv_mw_bind_info) {}),
	       IBV_WC_SUCCESS);
	expect("and shows nothing", bench_write(t, base + 5000, mw->rkey, 8),
	       IBV_WC_REM_ACCESS_ERR);
	refuse_windows(t, mw);
	expect("it is bound at the end", bind1(t, mw, 1000, 2000),
	       IBV_WC_SUCCESS);
	expect("and freed", ibv_dealloc_mw(mw), 0);
}

/* ---- type 2B ---- */

static enum ibv_wc_status bind2(struct bench *t, struct ibv_mw *mw,
				uint32_t offset, uint32_t bytes, int access)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = part(t, offset, bytes, access),
		},
	};
	struct ibv_wc wc = bench_post(&t->b, &wr);

	if (!wc.status)
		mw->rkey = wr.bind_mw.rkey;
	return wc.status;
}

static enum ibv_wc_status local_invalidate(struct bench *t, uint32_t key)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_LOCAL_INV,
		.invalidate_rkey = key,
	};

	return bench_post(&t->b, &wr).status;
}

/* a invalidates it with a message to b. */
static void remote_invalidate(struct bench *t, uint32_t key)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND_WITH_INV,
		.invalidate_rkey = key,
	};
	struct ibv_wc wc;

	bench_post_recv(&t->b, t->bmr, 99);
	expect("a message invalidates a window", bench_post(&t->a, &wr).status,
	       IBV_WC_SUCCESS);
	wc = bench_receive(&t->b);
	expect("its receive says so", wc.wc_flags, IBV_WC_WITH_INV);
	expect("and which it was", wc.invalidated_rkey, key);
	expect("it is a receive", wc.opcode, IBV_WC_RECV);
}

static void test_type2(struct bench *t)
{
	const uint64_t base = (uintptr_t)t->bmem;
	const int rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_mw *mw = window(t, IBV_MW_TYPE_2);

	expect("a window of type 2 is bound", bind2(t, mw, 3, 10000, rights),
	       IBV_WC_SUCCESS);
	expect("it can be written",
	       bench_write(t, base + 3, mw->rkey, 10000), IBV_WC_SUCCESS);
	expect("and read", bench_read(t, base + 3, mw->rkey, 10000),
	       IBV_WC_SUCCESS);
	remote_invalidate(t, mw->rkey);
	expect("it shows nothing then",
	       bench_write(t, base + 3, mw->rkey, 8), IBV_WC_REM_ACCESS_ERR);

	expect("it is bound to addresses from 0",
	       bind2(t, mw, 500, 100, rights | IBV_ACCESS_ZERO_BASED),
	       IBV_WC_SUCCESS);
	memset(t->amem, 0x42, 100);
	expect("and written there", bench_write(t, 0, mw->rkey, 100),
	       IBV_WC_SUCCESS);
	expect("which is in its place",
	       memcmp(t->bmem + 500, t->amem, 100), 0);
	expect("its queue pair invalidates it",
	       local_invalidate(t, mw->rkey), IBV_WC_SUCCESS);
	expect("it shows nothing any more", bench_read(t, 0, mw->rkey, 8),
	       IBV_WC_REM_ACCESS_ERR);

	expect("it is bound once more", bind2(t, mw, 0, 8, rights),
	       IBV_WC_SUCCESS);
	expect("but not while it is bound", bind2(t, mw, 0, 8, rights),
	       IBV_WC_MW_BIND_ERR);
	expect("it is freed, whatever it is called", ibv_dealloc_mw(mw), 0);
	bench_reconnect(t);
	expect("a plain region is not invalidated",
	       local_invalidate(t, t->bmr->lkey), IBV_WC_MW_BIND_ERR);
	bench_reconnect(t);
}

void test_windows(struct bench *t)
{
	test_type1(t);
	test_type2(t);
}
