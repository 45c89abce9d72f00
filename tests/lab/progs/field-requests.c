// SPDX-License-Identifier: GPL-2.0-only
/* Field classes: what comes of a request, and of one that is refused. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "field.h"

#define RC	(&(const struct end_attr) { .type = IBV_QPT_RC })

/* ---- 8 ---- */

static void errno_of_posts(struct bench *t, struct couple *c)
{
	struct ibv_recv_wr *bad_recv, recv = { .num_sge = 1000 };
	struct ibv_send_wr *bad_send = NULL;
	struct ibv_wc wc;
	struct order o;
	int n, ret;

	check("poll_cq of nothing", ibv_poll_cq(c->a.send_cq, 1, &wc), 0);
	order_init(&o, t, IBV_WR_SEND, 8);
	o.wr.num_sge = 1000;
	check("post_send, too many entries",
	      ibv_post_send(c->a.qp, &o.wr, &bad_send), EINVAL);
	check("which of the list it was", bad_send == &o.wr, 1);
	check("post_recv, too many entries",
	      ibv_post_recv(c->a.qp, &recv, &bad_recv), EINVAL);
	check("which of the list that was", bad_recv == &recv, 1);
	/* No receive is posted, so that these stay. */
	o.wr.num_sge = 1;
	for (n = 0, ret = 0; !ret && n < 1000; n++)
		ret = ibv_post_send(c->a.qp, &o.wr, &bad_send);
	check("post_send, the queue is full", ret, ENOMEM);
	recv.num_sge = 0;
	for (n = 0, ret = 0; !ret && n < 1000; n++)
		ret = ibv_post_recv(c->a.qp, &recv, &bad_recv);
	check("post_recv, the queue is full", ret, ENOMEM);
}

static void errno_of_calls(struct bench *t, struct couple *c)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	struct ibv_ah_attr nowhere = { .port_num = 2, .dlid = 1 };
	union ibv_gid gid = { .raw = { 0xff } };
	struct ibv_port_attr port;

	check("query_port, of none", ibv_query_port(t->rig.ctx, 2, &port),
	      EINVAL);
	check("modify_qp, from RTS to RTR",
	      ibv_modify_qp(c->a.qp, &attr, IBV_QP_STATE), EINVAL);
	check("destroy_cq, in use", ibv_destroy_cq(c->a.send_cq), EBUSY);
	check("dealloc_pd, in use", ibv_dealloc_pd(t->rig.pd), EBUSY);
	check("resize_cq, to nothing", ibv_resize_cq(c->a.send_cq, 0),
	      EINVAL);
	check("attach_mcast, a connection",
	      ibv_attach_mcast(c->a.qp, &gid, 0xc001), EINVAL);
	check_refused("create_cq, of nothing",
		      ibv_create_cq(t->rig.ctx, 0, NULL, NULL, 0), EINVAL);
	check_refused("reg_mr, of what is not there",
		      ibv_reg_mr(t->rig.pd, NULL, 4096, 0), EFAULT);
	check_refused("create_ah, to a port that is not there",
		      ibv_create_ah(t->rig.pd, &nowhere), EINVAL);
}

void field_errno(struct bench *t)
{
	struct couple c;

	couple_open(&c, &t->rig, RC, NULL);
	errno_of_calls(t, &c);
	errno_of_posts(t, &c);
	couple_close(&c);
}

/* ---- 9 ---- */

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode send;
	int recv;		/* -1: takes no receive */
} operations[] = {
	{ "SEND", IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV },
	{ "SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV },
	{ "WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, -1 },
	{ "WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
	  IBV_WC_RECV_RDMA_WITH_IMM },
	{ "READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, -1 },
	{ "CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, -1 },
	{ "FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, -1 },
};
#define NR_OPERATIONS ((int)(sizeof(operations) / sizeof(*operations)))

/* One of them, of 8 bytes at a place that suits atomics, too. */
static void operation_init(struct order *o, struct bench *t, int i)
{
	order_init(o, t, operations[i].opcode, 8);
	if (i < NR_OPERATIONS - 2)
		return;
	o->wr.wr.atomic.remote_addr = (uintptr_t)t->bmem;
	o->wr.wr.atomic.rkey = t->bmr->rkey;
	o->wr.wr.atomic.compare_add = 1;
}

static void opcodes_of_success(struct bench *t, struct couple *c)
{
	struct order o;
	int i;

	for (i = 0; i < NR_OPERATIONS; i++) {
		operation_init(&o, t, i);
		post_room(&c->b, t->bmr, 64, 64, i);
		post(&c->a, &o.wr);
		check(operations[i].name,
		      next_wc(&c->a, c->a.send_cq).opcode,
		      operations[i].send);
		if (operations[i].recv >= 0)
			check("its receive", next_wc(&c->b, c->b.recv_cq).opcode,
			      operations[i].recv);
	}
}

/* It need not be valid then; but programs look, and it may not mislead them. */
static void opcodes_of_flush(struct bench *t, struct couple *c)
{
	struct order o;
	int i, wrong = 0;

	end_set_state(&c->a, IBV_QPS_ERR);
	for (i = 0; i < NR_OPERATIONS; i++) {
		operation_init(&o, t, i);
		post(&c->a, &o.wr);
		wrong += next_wc(&c->a, c->a.send_cq).opcode !=
			 operations[i].send;
	}
	check("those of flushed requests are theirs", wrong, 0);
	post_room(&c->a, t->amr, 0, 8, 1);
	check("that of a flushed receive, too",
	      next_wc(&c->a, c->a.recv_cq).opcode, IBV_WC_RECV);
}

void field_opcode(struct bench *t)
{
	struct couple c;

	couple_open(&c, &t->rig, RC, NULL);
	opcodes_of_success(t, &c);
	opcodes_of_flush(t, &c);
	couple_close(&c);
}

/* ---- 19 ---- */

/* What no byte of is there to be reached has no key either. */
static void empty_operation(struct bench *t, struct couple *c, int i,
			    int num_sge, unsigned int flags)
{
	const bool receives = operations[i].recv >= 0;
	struct order o;
	struct ibv_wc wc;

	operation_init(&o, t, i);
	o.sge.length = 0;
	o.wr.num_sge = num_sge;
	o.wr.send_flags |= flags;
	o.wr.wr.rdma.rkey = 0;
	o.wr.wr.rdma.remote_addr = 0;
	if (receives)
		post_room(&c->b, NULL, 0, 0, 5);
	post(&c->a, &o.wr);
	check(operations[i].name, next_wc(&c->a, c->a.send_cq).status,
	      IBV_WC_SUCCESS);
	if (!receives)
		return;
	wc = next_wc(&c->b, c->b.recv_cq);
	check("its receive of no entry", wc.status || wc.byte_len, 0);
}

static void empty_datagram(struct bench *t)
{
	const struct end_attr attr = { .type = IBV_QPT_UD };
	struct couple c;
	struct order o;

	couple_open(&c, &t->rig, &attr, NULL);
	post_room(&c.b, t->bmr, 0, GRH, 1);
	order_init(&o, t, IBV_WR_SEND, 0);
	order_aim(&o, &c);
	o.wr.num_sge = 0;
	post(&c.a, &o.wr);
	check("a datagram", next_wc(&c.a, c.a.send_cq).status,
	      IBV_WC_SUCCESS);
	check("which is as long as a GRH",
	      next_wc(&c.b, c.b.recv_cq).byte_len, GRH);
	couple_close(&c);
}

void field_zero_length(struct bench *t)
{
	struct couple c;
	int i;

	memset(t->bmem, 0x19, BENCH_BYTES);
	memset(t->amem, 0x91, BENCH_BYTES);
	couple_open(&c, &t->rig, RC, NULL);
	/* Atomics have a length of their own. */
	for (i = 0; i < NR_OPERATIONS - 2; i++) {
		empty_operation(t, &c, i, 0, 0);
		empty_operation(t, &c, i, 1, 0);
		if (operations[i].opcode != IBV_WR_RDMA_READ)
			empty_operation(t, &c, i, 0, IBV_SEND_INLINE);
	}
	check("nothing has moved", t->amem[0] == 0x91 && t->bmem[0] == 0x19,
	      1);
	couple_close(&c);
	empty_datagram(t);
}

/* ---- 21 ---- */

static enum ibv_wc_status atomic(struct bench *t, struct couple *c,
				 enum ibv_wr_opcode opcode, size_t offset,
				 uint32_t rkey, uint64_t compare_add,
				 uint64_t swap)
{
	struct order o;

	order_init(&o, t, opcode, 8);
	o.wr.wr.atomic.remote_addr = (uintptr_t)t->bmem + offset;
	o.wr.wr.atomic.rkey = rkey;
	o.wr.wr.atomic.compare_add = compare_add;
	o.wr.wr.atomic.swap = swap;
	post(&c->a, &o.wr);
	return next_wc(&c->a, c->a.send_cq).status;
}

static enum ibv_wc_status atomic_alone(struct bench *t, size_t offset,
				       int mr_access, int qp_access)
{
	struct link_attr link = link_default;
	enum ibv_wc_status status;
	struct couple c;
	struct ibv_mr *mr;

	link.access = qp_access;
	mr = bench_reg(t->rig.pd, t->bmem, 4096, mr_access);
	couple_open(&c, &t->rig, RC, &link);
	status = atomic(t, &c, IBV_WR_ATOMIC_FETCH_AND_ADD, offset, mr->rkey,
			1, 0);
	couple_close(&c);
	bench_dereg(mr);
	return status;
}

void field_atomics(struct bench *t)
{
	const int all = BENCH_ALL & ~IBV_ACCESS_MW_BIND;
	const uint64_t value = 0x0123456789abcdefULL;
	volatile uint64_t *result = (uint64_t *)t->amem;
	volatile uint64_t *target = (uint64_t *)t->bmem;
	struct couple c;

	couple_open(&c, &t->rig, RC, NULL);
	*target = value;
	check("fetch and add", atomic(t, &c, IBV_WR_ATOMIC_FETCH_AND_ADD, 0,
				      t->bmr->rkey, 0xff, 0), 0);
	check("tells what was there as a number of this machine",
	      *result == value, 1);
	check("and adds to it as such", *target == value + 0xff, 1);
	check("compare and swap", atomic(t, &c, IBV_WR_ATOMIC_CMP_AND_SWP, 0,
					 t->bmr->rkey, value + 0xff, 7), 0);
	check("tells it, too", *result == value + 0xff, 1);
	check("and swaps", *target == 7, 1);
	check("one that does not match",
	      atomic(t, &c, IBV_WR_ATOMIC_CMP_AND_SWP, 0, t->bmr->rkey, 8, 9),
	      0);
	check("does not", *result == 7 && *target == 7, 1);
	couple_close(&c);

	check("a place that is not a multiple of 8",
	      atomic_alone(t, 4, all, all), IBV_WC_REM_INV_REQ_ERR);
	check("memory that does not allow it",
	      atomic_alone(t, 0, all & ~IBV_ACCESS_REMOTE_ATOMIC, all),
	      IBV_WC_REM_ACCESS_ERR);
	check("a queue pair that does not",
	      atomic_alone(t, 0, all, all & ~IBV_ACCESS_REMOTE_ATOMIC),
	      IBV_WC_REM_INV_REQ_ERR);
	check("none has touched it", *target == 7, 1);
}

/* ---- 22 ---- */

void field_write_imm(struct bench *t)
{
	const uint32_t bytes = 5000;
	struct couple c;
	struct order o;
	struct ibv_wc wc;

	couple_open(&c, &t->rig, RC, NULL);
	pattern(t->amem, bytes, 22);
	memset(t->bmem, 0, BENCH_BYTES);
	order_init(&o, t, IBV_WR_RDMA_WRITE_WITH_IMM, bytes);
	o.wr.imm_data = htonl(0x22334455);
	post(&c.a, &o.wr);
	check("without a receive it waits", is_silent(&c.a), 1);
	/* Its room is not used. */
	post_room(&c.b, t->bmr, BENCH_BYTES - 64, 64, 22);
	check("with one it succeeds", next_wc(&c.a, c.a.send_cq).status,
	      IBV_WC_SUCCESS);
	wc = next_wc(&c.b, c.b.recv_cq);
	check("so does the receive", wc.status, IBV_WC_SUCCESS);
	check("which is the one that was posted", wc.wr_id, 22);
	check("it is told as a WRITE", wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	check("that has immediate data",
	      (wc.wc_flags & IBV_WC_WITH_IMM) && !(wc.wc_flags & IBV_WC_GRH),
	      1);
	check("in the network's order", ntohl(wc.imm_data), 0x22334455);
	check("and the length of what was written", wc.byte_len, bytes);
	check("which is where it should be",
	      memcmp(t->amem, t->bmem, bytes), 0);
	check("and nowhere else", t->bmem[BENCH_BYTES - 64], 0);
	couple_close(&c);
}

/* ---- 23 ---- */

/* Bind by a request to a part of a region, with the window's next key. */
static enum ibv_wc_status bind_window(struct end *end, struct ibv_mw *mw,
				      struct ibv_mr *mr, uint64_t length,
				      int access)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = {
				.mr = mr,
				.addr = (uintptr_t)mr->addr,
				.length = length,
				.mw_access_flags = access,
			},
		},
	};

	post(end, &wr);
	return next_wc(end, end->send_cq).status;
}

/* On a connection of its own, as it fails. */
static enum ibv_wc_status bind_alone(struct bench *t, int mr_access,
				     uint64_t length)
{
	struct ibv_mw *mw = ibv_alloc_mw(t->rig.pd, IBV_MW_TYPE_2);
	enum ibv_wc_status status;
	struct ibv_mr *mr;
	struct couple c;

	if (!mw)
		die("ibv_alloc_mw: %s", strerror(errno));
	mr = bench_reg(t->rig.pd, t->bmem, 4096, mr_access);
	couple_open(&c, &t->rig, RC, NULL);
	status = bind_window(&c.b, mw, mr, length, IBV_ACCESS_REMOTE_WRITE);
	couple_close(&c);
	ibv_dealloc_mw(mw);
	bench_dereg(mr);
	return status;
}

/* What is seen through it, and by whom. */
static void bound_window(struct bench *t, struct couple *c, struct ibv_mw *mw,
			 struct ibv_mr *mr)
{
	const uint32_t key = ibv_inc_rkey(mw->rkey);
	struct order o;

	check("one of type 2 is bound",
	      bind_window(&c->b, mw, mr, 100, IBV_ACCESS_REMOTE_WRITE),
	      IBV_WC_SUCCESS);
	order_init(&o, t, IBV_WR_RDMA_WRITE, 100);
	o.wr.wr.rdma.rkey = key;
	post(&c->a, &o.wr);
	check("its key is the one in the request",
	      next_wc(&c->a, c->a.send_cq).status, IBV_WC_SUCCESS);
	check("which is its queue pair's alone",
	      bench_write(t, (uintptr_t)mr->addr, key, 100),
	      IBV_WC_REM_ACCESS_ERR);
	check("its region is not deregistered", ibv_dereg_mr(mr), EBUSY);
	o.sge.length = 101;
	post(&c->a, &o.wr);
	check("it ends where it was told to",
	      next_wc(&c->a, c->a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
}

void field_windows(struct bench *t)
{
	struct ibv_mw *mw = ibv_alloc_mw(t->rig.pd, IBV_MW_TYPE_2);
	struct ibv_mr *mr;
	struct couple c;

	check("there are some", mw ? 0 : errno, 0);
	if (!mw)
		return;
	mr = bench_reg(t->rig.pd, t->bmem, 4096, BENCH_ALL);
	couple_open(&c, &t->rig, RC, NULL);
	bound_window(t, &c, mw, mr);
	couple_close(&c);
	check("it goes", ibv_dealloc_mw(mw), 0);
	check("and then its region", ibv_dereg_mr(mr), 0);
	check("more than the region is refused",
	      bind_alone(t, BENCH_ALL, 4097), IBV_WC_MW_BIND_ERR);
	check("a region that does not allow it is refused",
	      bind_alone(t, BENCH_ALL & ~IBV_ACCESS_MW_BIND, 100),
	      IBV_WC_MW_BIND_ERR);
}
