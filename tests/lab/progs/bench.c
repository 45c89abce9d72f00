// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static void *get_memory(void)
{
	void *mem;

	if (posix_memalign(&mem, 4096, BENCH_BYTES))
		die("no memory");
	memset(mem, 0, BENCH_BYTES);
	return mem;
}

struct ibv_mr *bench_reg(struct ibv_pd *pd, void *mem, size_t bytes,
			 int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, bytes, access);

	if (!mr)
		die("ibv_reg_mr with access %#x: %s", access, strerror(errno));
	return mr;
}

void bench_dereg(struct ibv_mr *mr)
{
	int ret = ibv_dereg_mr(mr);

	if (ret)
		die("ibv_dereg_mr: %s", strerror(ret));
}

static void connect_ends(struct bench *t)
{
	const struct end_attr attr = { .type = IBV_QPT_RC, .sges = 2 };
	struct link_attr link = link_default;
	struct address a, b;

	link.access = BENCH_ALL & ~IBV_ACCESS_MW_BIND;
	end_open(&t->a, &t->rig, &attr);
	end_open(&t->b, &t->rig, &attr);
	a = end_address(&t->a, t->amr);
	b = end_address(&t->b, t->bmr);
	end_connect(&t->b, &a, &link);
	end_connect(&t->a, &b, &link);
}

void bench_open(struct bench *t, const char *device)
{
	rig_open(&t->rig, device);
	t->amem = get_memory();
	t->bmem = get_memory();
	t->amr = bench_reg(t->rig.pd, t->amem, BENCH_BYTES, BENCH_ALL);
	t->bmr = bench_reg(t->rig.pd, t->bmem, BENCH_BYTES, BENCH_ALL);
	connect_ends(t);
}

void bench_reconnect(struct bench *t)
{
	end_close(&t->a);
	end_close(&t->b);
	connect_ends(t);
}

void bench_close(struct bench *t)
{
	end_close(&t->a);
	end_close(&t->b);
	bench_dereg(t->amr);
	bench_dereg(t->bmr);
	free(t->amem);
	free(t->bmem);
	rig_close(&t->rig);
}

static struct ibv_wc wait_one(struct end *end, struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!wait_wc(end, cq, &wc, false, RIG_LIMIT))
		die("no completion came");
	return wc;
}

struct ibv_send_wr bench_empty_write(const struct bench *t)
{
	return (struct ibv_send_wr) {
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = (uintptr_t)t->bmem,
			.rkey = t->bmr->rkey,
		},
	};
}

struct ibv_wc bench_post(struct end *end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad_wr;
	int ret;

	wr->send_flags |= IBV_SEND_SIGNALED;
	ret = ibv_post_send(end->qp, wr, &bad_wr);
	if (ret)
		die("ibv_post_send of opcode %d: %s", wr->opcode,
		    strerror(ret));
	return wait_one(end, end->send_cq);
}

struct ibv_wc bench_receive(struct end *end)
{
	return wait_one(end, end->recv_cq);
}

void bench_post_recv(struct end *end, struct ibv_mr *mr, uint64_t wr_id)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)mr->addr,
		.length = mr->length,
		.lkey = mr->lkey,
	};
	struct ibv_recv_wr *bad_wr, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int ret = ibv_post_recv(end->qp, &wr, &bad_wr);

	if (ret)
		die("ibv_post_recv: %s", strerror(ret));
}

static enum ibv_wc_status rdma(struct bench *t, enum ibv_wr_opcode opcode,
			       uint64_t addr, uint32_t rkey, uint32_t bytes)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)t->amem,
		.length = bytes,
		.lkey = t->amr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = addr, .rkey = rkey },
	};
	enum ibv_wc_status status = bench_post(&t->a, &wr).status;

	if (status)
		bench_reconnect(t);
	return status;
}

enum ibv_wc_status bench_write(struct bench *t, uint64_t addr, uint32_t rkey,
			       uint32_t bytes)
{
	return rdma(t, IBV_WR_RDMA_WRITE, addr, rkey, bytes);
}

enum ibv_wc_status bench_read(struct bench *t, uint64_t addr, uint32_t rkey,
			      uint32_t bytes)
{
	return rdma(t, IBV_WR_RDMA_READ, addr, rkey, bytes);
}

void expect(const char *name, long got, long want)
{
	if (got == want)
		ok(name);
	else
		bad(name, "%ld, not %ld", got, want);
}
