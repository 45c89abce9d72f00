// SPDX-License-Identifier: GPL-2.0-only
/* What the classes of vmri-field share. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "field.h"

void couple_open(struct couple *c, struct rig *rig,
		 const struct end_attr *attr, const struct link_attr *link)
{
	struct link_attr all = link_default;
	struct end_attr a_attr = *attr;
	struct address a, b;
	struct ibv_ah_attr to;

	all.access = BENCH_ALL & ~IBV_ACCESS_MW_BIND;
	if (!link)
		link = &all;
	c->ah = NULL;
	a_attr.srq = NULL;
	end_open(&c->a, rig, &a_attr);
	end_open(&c->b, rig, attr);
	a = end_address(&c->a, NULL);
	b = end_address(&c->b, NULL);
	if (attr->type != IBV_QPT_UD) {
		end_connect(&c->b, &a, link);
		end_connect(&c->a, &b, link);
		return;
	}
	end_activate_ud(&c->b);
	end_activate_ud(&c->a);
	to = ah_to(rig, &b, false);
	c->ah = ibv_create_ah(rig->pd, &to);
	if (!c->ah)
		die("ibv_create_ah: %s", strerror(errno));
}

void couple_close(struct couple *c)
{
	if (c->ah)
		ibv_destroy_ah(c->ah);
	end_close(&c->a);
	end_close(&c->b);
}

void order_init(struct order *o, struct bench *t, enum ibv_wr_opcode opcode,
		uint32_t bytes)
{
	o->sge = (struct ibv_sge) {
		.addr = (uintptr_t)t->amem,
		.length = bytes,
		.lkey = t->amr->lkey,
	};
	o->wr = (struct ibv_send_wr) {
		.sg_list = &o->sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = (uintptr_t)t->bmem,
			.rkey = t->bmr->rkey,
		},
	};
}

void order_aim(struct order *o, const struct couple *c)
{
	if (!c->ah)
		return;
	o->wr.wr.ud.ah = c->ah;
	o->wr.wr.ud.remote_qpn = c->b.qp->qp_num;
	o->wr.wr.ud.remote_qkey = RIG_QKEY;
}

void post(struct end *end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad_wr;
	int ret = ibv_post_send(end->qp, wr, &bad_wr);

	if (ret)
		die("ibv_post_send of opcode %d: %s", bad_wr->opcode,
		    strerror(ret));
}

void post_room(struct end *end, struct ibv_mr *mr, size_t offset,
	       uint32_t bytes, uint64_t wr_id)
{
	struct ibv_sge sge = { .length = bytes };
	struct ibv_recv_wr *bad_wr, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
	};
	int ret;

	if (mr) {
		sge.addr = (uintptr_t)mr->addr + offset;
		sge.lkey = mr->lkey;
		wr.num_sge = 1;
	}
	ret = ibv_post_recv(end->qp, &wr, &bad_wr);
	if (ret)
		die("ibv_post_recv: %s", strerror(ret));
}

struct ibv_wc next_wc(struct end *end, struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!wait_wc(end, cq, &wc, false, RIG_LIMIT))
		die("no completion came");
	return wc;
}

bool is_silent(struct end *end)
{
	struct ibv_wc wc;

	return !wait_wc(end, end->send_cq, &wc, false, 0.05) &&
	       !wait_wc(end, end->recv_cq, &wc, false, 0);
}

bool next_event(struct rig *rig, enum ibv_event_type type, double limit)
{
	struct pollfd fd = { .fd = rig->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (poll(&fd, 1, limit * 1000) > 0) {
		if (ibv_get_async_event(rig->ctx, &event))
			die("ibv_get_async_event: %s", strerror(errno));
		ibv_ack_async_event(&event);
		if (event.event_type == type)
			return true;
	}
	return false;
}

void sleep_ms(unsigned int ms)
{
	const struct timespec time = {
		.tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * 1000000L,
	};

	nanosleep(&time, NULL);
}
