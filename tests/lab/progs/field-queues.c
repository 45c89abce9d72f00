// SPDX-License-Identifier: GPL-2.0-only
/* Field classes: what queues hold, and when they tell. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "field.h"

/* ---- 5 ---- */

#define PERFTEST_INLINE	220	/* what programs ask for by default */

static uint32_t inline_of(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(end->qp, &attr, IBV_QP_CAP, &init))
		die("ibv_query_qp: %s", strerror(errno));
	return init.cap.max_inline_data;
}

/* A message of memory that nobody registered, and that changes at once. */
static int send_inline(struct bench *t, struct couple *c, uint32_t bytes)
{
	const size_t head = c->ah ? GRH : 0;
	uint8_t data[1024], sent[1024];
	struct order o;
	struct ibv_wc wc;

	pattern(data, sizeof(data), bytes);
	memcpy(sent, data, sizeof(data));
	memset(t->bmem, 0, BENCH_BYTES);
	post_room(&c->b, t->bmr, 0, BENCH_BYTES, 1);
	order_init(&o, t, IBV_WR_SEND, bytes);
	order_aim(&o, c);
	o.sge.addr = (uintptr_t)data;
	o.sge.lkey = ~t->amr->lkey;
	o.wr.send_flags |= IBV_SEND_INLINE;
	post(&c->a, &o.wr);
	memset(data, 0xee, sizeof(data));

	if (next_wc(&c->a, c->a.send_cq).status)
		return -1;
	wc = next_wc(&c->b, c->b.recv_cq);
	return wc.status || wc.byte_len != bytes + head ||
	       memcmp(t->bmem + head, sent, bytes) ? -1 : 0;
}

static int send_too_much(struct bench *t, struct couple *c, uint32_t bytes)
{
	struct ibv_send_wr *bad_wr;
	struct order o;

	order_init(&o, t, IBV_WR_SEND, bytes);
	order_aim(&o, c);
	o.wr.send_flags |= IBV_SEND_INLINE;
	return ibv_post_send(c->a.qp, &o.wr, &bad_wr);
}

static void try_inline(struct bench *t, enum ibv_qp_type type, uint32_t asked)
{
	const struct end_attr attr = { .type = type, .max_inline = asked };
	struct couple c;
	uint32_t most;

	couple_open(&c, &t->rig, &attr, NULL);
	most = inline_of(&c.a);
	printf("type %d: %u of %u asked for\n", type, most, asked);
	check("no less than asked for", most >= asked && most <= 1024, 1);
	if (asked)
		check("what was asked for goes", send_inline(t, &c, asked), 0);
	check("what it has goes", send_inline(t, &c, most), 0);
	check("nothing goes, too", send_inline(t, &c, 0), 0);
	check("one byte more does not", send_too_much(t, &c, most + 1),
	      EINVAL);
	couple_close(&c);
}

void field_inline(struct bench *t)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UD };
	size_t i;

	for (i = 0; i < 2; i++) {
		try_inline(t, types[i], 0);
		try_inline(t, types[i], 64);
		try_inline(t, types[i], PERFTEST_INLINE);
	}
}

/* ---- 6 ---- */

/* The errno of a queue pair of this kind, which is gone again. */
static int try_qp(struct bench *t, struct ibv_qp_cap *cap,
		  struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = t->a.send_cq,
		.recv_cq = t->a.recv_cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = *cap,
	};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(t->rig.pd, &init);
	if (!qp)
		return errno;
	*cap = init.cap;
	ibv_destroy_qp(qp);
	return 0;
}

static void illegal(struct bench *t, const struct ibv_device_attr *device)
{
	struct ibv_qp_cap cap = { .max_send_wr = device->max_qp_wr + 1 };

	check("too long a send queue", try_qp(t, &cap, NULL), EINVAL);
	cap = (struct ibv_qp_cap) { .max_recv_wr = device->max_qp_wr + 1 };
	check("too long a receive queue", try_qp(t, &cap, NULL), EINVAL);
	cap = (struct ibv_qp_cap) { 1, 1, device->max_sge + 1, 1, 0 };
	check("too many entries of a send", try_qp(t, &cap, NULL), EINVAL);
	cap = (struct ibv_qp_cap) { 1, 1, 1, device->max_sge + 1, 0 };
	check("too many entries of a receive", try_qp(t, &cap, NULL), EINVAL);
	cap = (struct ibv_qp_cap) { 1, 1, 1, 1, UINT32_MAX };
	check("too much inline data", try_qp(t, &cap, NULL), EINVAL);
}

static void legal(struct bench *t)
{
	struct ibv_qp_cap cap = { 5, 3, 3, 2, 17 };

	check("odd ones", try_qp(t, &cap, NULL), 0);
	check("of which nothing gets less",
	      cap.max_send_wr >= 5 && cap.max_recv_wr >= 3 &&
	      cap.max_send_sge >= 3 && cap.max_recv_sge >= 2 &&
	      cap.max_inline_data >= 17, 1);
	cap = (struct ibv_qp_cap) { 1, 0, 1, 0, 0 };
	check("a queue pair that only sends", try_qp(t, &cap, NULL), 0);
	cap = (struct ibv_qp_cap) { 0, 1, 0, 1, 0 };
	check("one that only receives", try_qp(t, &cap, NULL), 0);
}

static void beside_srq(struct bench *t, const struct ibv_device_attr *device)
{
	struct ibv_srq_init_attr init = { .attr = { 8, 1, 0 } };
	struct ibv_srq *srq = ibv_create_srq(t->rig.pd, &init);
	struct ibv_qp_cap cap = {
		1, device->max_qp_wr + 1, 1, device->max_sge + 1, 0,
	};

	if (!srq)
		die("ibv_create_srq: %s", strerror(errno));
	check("those of a receive queue mean nothing beside an SRQ",
	      try_qp(t, &cap, srq), 0);
	ibv_destroy_srq(srq);
}

/* As many as the queue is said to have, and not one more. */
static void all_of_a_queue(struct bench *t)
{
	const struct end_attr attr = { .type = IBV_QPT_RC, .depth = 5 };
	struct ibv_recv_wr *bad_wr, wr = {};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr qp_attr;
	struct couple c;
	uint32_t nr = 0;
	int ret;

	couple_open(&c, &t->rig, &attr, NULL);
	if (ibv_query_qp(c.b.qp, &qp_attr, IBV_QP_CAP, &init))
		die("ibv_query_qp: %s", strerror(errno));
	while (!(ret = ibv_post_recv(c.b.qp, &wr, &bad_wr)) && nr < 1000)
		nr++;
	check("a queue takes what it says", nr, init.cap.max_recv_wr);
	check("and no more", ret, ENOMEM);
	couple_close(&c);
}

void field_capabilities(struct bench *t)
{
	struct ibv_device_attr device;

	if (ibv_query_device(t->rig.ctx, &device))
		die("ibv_query_device: %s", strerror(errno));
	illegal(t, &device);
	legal(t);
	beside_srq(t, &device);
	all_of_a_queue(t);
}

/* ---- 7 ---- */

#define MOST_SGES	64
#define TARGETS_NEED	16	/* entries, of SPDK's and Linux's targets */
#define STEP		600	/* bytes from one entry to the next */

static void entries(struct ibv_sge *sges, int nr, struct ibv_mr *mr)
{
	int i;

	for (i = 0; i < nr; i++)
		sges[i] = (struct ibv_sge) {
			.addr = (uintptr_t)mr->addr + (size_t)i * STEP,
			.length = 17 + i,
			.lkey = mr->lkey,
		};
}

static int entries_differ(const uint8_t *a, const uint8_t *b, int nr)
{
	int i, differ = 0;

	for (i = 0; i < nr; i++)
		differ += !!memcmp(a + i * STEP, b + i * STEP, 17 + i);
	return differ;
}

static void all_entries(struct bench *t, struct couple *c, int nr)
{
	struct ibv_sge from[MOST_SGES + 1], to[MOST_SGES];
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = to, .num_sge = nr };
	struct ibv_send_wr *bad_send;
	struct order o;

	pattern(t->amem, BENCH_BYTES, nr);
	memset(t->bmem, 0, BENCH_BYTES);
	entries(from, nr + 1, t->amr);
	entries(to, nr, t->bmr);
	if (ibv_post_recv(c->b.qp, &recv, &bad_recv))
		die("a receive of %d entries is refused", nr);
	order_init(&o, t, IBV_WR_SEND, 0);
	o.wr.sg_list = from;
	o.wr.num_sge = nr;
	post(&c->a, &o.wr);
	check("a send of max_sge entries",
	      next_wc(&c->a, c->a.send_cq).status, IBV_WC_SUCCESS);
	check("into a receive of as many",
	      next_wc(&c->b, c->b.recv_cq).status, IBV_WC_SUCCESS);
	check("all of them are right",
	      entries_differ(t->amem, t->bmem, nr), 0);
	o.wr.num_sge = nr + 1;
	check("one more is refused",
	      ibv_post_send(c->a.qp, &o.wr, &bad_send), EINVAL);
	recv.num_sge = nr + 1;
	check("and so it is of a receive",
	      ibv_post_recv(c->b.qp, &recv, &bad_recv), EINVAL);
}

static void read_entries(struct bench *t, struct couple *c, int nr)
{
	struct ibv_sge to[MOST_SGES];
	struct order o;
	int i, wrong = 0;
	size_t at = 0;

	memset(t->amem, 0, BENCH_BYTES);
	pattern(t->bmem, BENCH_BYTES, nr);
	entries(to, nr, t->amr);
	order_init(&o, t, IBV_WR_RDMA_READ, 0);
	o.wr.sg_list = to;
	o.wr.num_sge = nr;
	post(&c->a, &o.wr);
	check("a READ into max_sge_rd entries",
	      next_wc(&c->a, c->a.send_cq).status, IBV_WC_SUCCESS);
	for (i = 0; i < nr; i++) {
		wrong += !!memcmp(t->amem + i * STEP, t->bmem + at, 17 + i);
		at += 17 + i;
	}
	check("all of those are right", wrong, 0);
}

void field_sges(struct bench *t)
{
	struct end_attr attr = { .type = IBV_QPT_RC };
	struct ibv_device_attr device;
	struct couple c;

	if (ibv_query_device(t->rig.ctx, &device))
		die("ibv_query_device: %s", strerror(errno));
	check("no fewer than targets use",
	      device.max_sge >= TARGETS_NEED &&
	      device.max_sge_rd >= TARGETS_NEED &&
	      device.max_srq_sge >= TARGETS_NEED, 1);
	check("nor more than are tried here",
	      device.max_sge <= MOST_SGES &&
	      device.max_sge_rd <= device.max_sge, 1);
	attr.sges = device.max_sge;
	couple_open(&c, &t->rig, &attr, NULL);
	all_entries(t, &c, device.max_sge);
	read_entries(t, &c, device.max_sge_rd);
	couple_close(&c);
}

/* ---- 13 ---- */

/* Numbered WRITEs, all of which are done when the last byte is there. */
static void write_numbers(struct bench *t, struct couple *c, int from, int to)
{
	const double end = now() + RIG_LIMIT;
	struct order o;
	int i;

	for (i = from; i < to; i++) {
		t->amem[0] = i + 1;
		order_init(&o, t, IBV_WR_RDMA_WRITE, 1);
		o.wr.wr_id = i;
		post(&c->a, &o.wr);
		while (*(volatile uint8_t *)t->bmem != i + 1 && now() < end)
			let_others_run();
	}
}

/* How many come one after the other from `first` on. */
static int numbers_in_order(struct ibv_cq *cq, int first)
{
	struct ibv_wc wc;
	int n = 0;

	while (ibv_poll_cq(cq, 1, &wc) == 1 && !wc.status &&
	       wc.wr_id == (uint64_t)(first + n))
		n++;
	return n;
}

/* The CQ that the couple's a sends to has `size` entries, all of them taken. */
static void one_too_many(struct bench *t, struct couple *c, int size)
{
	struct ibv_wc wc;
	struct order o;

	write_numbers(t, c, 0, size);
	check("a full one has not overflowed",
	      next_event(&t->rig, IBV_EVENT_CQ_ERR, 0.1), 0);
	order_init(&o, t, IBV_WR_RDMA_WRITE, 1);
	post(&c->a, &o.wr);
	check("one more does, and it is told",
	      next_event(&t->rig, IBV_EVENT_CQ_ERR, RIG_LIMIT), 1);
	check("no entry before it is lost",
	      numbers_in_order(c->a.send_cq, 0), size);
	check("then polling fails", ibv_poll_cq(c->a.send_cq, 1, &wc) < 0, 1);
}

void field_cq_overflow(struct bench *t)
{
	const struct end_attr attr = { .type = IBV_QPT_RC };
	struct couple c;
	int size;

	memset(t->bmem, 0, BENCH_BYTES);
	couple_open(&c, &t->rig, &attr, NULL);
	check("a short one", ibv_resize_cq(c.a.send_cq, 13), 0);
	size = c.a.send_cq->cqe;
	check("is not too short", size >= 13 && size < 64, 1);
	/* Its indices do not start at 0. */
	write_numbers(t, &c, 0, 5);
	check("it has what was done", numbers_in_order(c.a.send_cq, 0), 5);
	write_numbers(t, &c, 5, 5 + size);
	check("a full one is lengthened", ibv_resize_cq(c.a.send_cq, 2 * size),
	      0);
	write_numbers(t, &c, 5 + size, 5 + 2 * size);
	check("with nothing lost around it",
	      numbers_in_order(c.a.send_cq, 5), 2 * size);
	memset(t->bmem, 0, BENCH_BYTES);
	one_too_many(t, &c, c.a.send_cq->cqe);
	couple_close(&c);
}

/* ---- 14 ---- */

/* Events of completions of b's receives, for which nobody waits. */
static int receive_events(struct end *end, int limit_ms)
{
	struct pollfd fd = { .fd = end->events->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;
	int nr = 0;

	for (; poll(&fd, 1, limit_ms) > 0; nr++) {
		if (ibv_get_cq_event(end->events, &cq, &context))
			die("ibv_get_cq_event: %s", strerror(errno));
		ibv_ack_cq_events(cq, 1);
	}
	return nr;
}

static void message(struct bench *t, struct couple *c, unsigned int flags)
{
	struct order o;

	post_room(&c->b, NULL, 0, 0, 0);
	order_init(&o, t, IBV_WR_SEND, 0);
	o.wr.send_flags |= flags;
	post(&c->a, &o.wr);
	if (next_wc(&c->a, c->a.send_cq).status)
		die("a message fails");
}

static void drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
}

static void once_armed(struct bench *t, struct couple *c)
{
	struct ibv_cq *cq = c->b.recv_cq;

	message(t, c, 0);
	check("none unless asked for", receive_events(&c->b, 50), 0);
	drain(cq);
	ibv_req_notify_cq(cq, 0);
	message(t, c, 0);
	message(t, c, 0);
	check("one of the next completion, and no other",
	      receive_events(&c->b, 200), 1);
	drain(cq);
	ibv_req_notify_cq(cq, 1);
	message(t, c, 0);
	check("none that was not solicited", receive_events(&c->b, 50), 0);
	message(t, c, IBV_SEND_SOLICITED);
	check("one that was", receive_events(&c->b, 200), 1);
	drain(cq);
	ibv_req_notify_cq(cq, 1);
	post_room(&c->b, NULL, 0, 0, 0);
	end_set_state(&c->b, IBV_QPS_ERR);
	check("an error counts as solicited", receive_events(&c->b, 200), 1);
	drain(cq);
}

#define RUN 300		/* messages at moments that nobody knows */

struct sender {
	struct bench *t;
	struct couple *c;
};

static void *send_run(void *arg)
{
	struct sender *s = arg;
	uint64_t random = 14;
	struct order o;
	int i;

	order_init(&o, s->t, IBV_WR_SEND, 0);
	for (i = 0; i < RUN; i++) {
		o.wr.wr_id = i;
		post(&s->c->a, &o.wr);
		if (next_random(&random) % 4 == 0)
			sleep_ms(next_random(&random) % 3);
		if (next_wc(&s->c->a, s->c->a.send_cq).status)
			die("a message fails");
	}
	return NULL;
}

/* Poll, arm, poll again, sleep: no message is slept through. */
static void none_missed(struct bench *t, struct couple *c)
{
	struct sender sender = { t, c };
	struct ibv_wc wc;
	pthread_t thread;
	int i, came = 0;

	for (i = 0; i < 32; i++)
		post_room(&c->b, NULL, 0, 0, 0);
	if (pthread_create(&thread, NULL, send_run, &sender))
		die("no thread");
	for (i = 0; i < RUN; i++) {
		if (!wait_wc(&c->b, c->b.recv_cq, &wc, true, RIG_LIMIT))
			break;
		came += !wc.status;
		post_room(&c->b, NULL, 0, 0, 0);
	}
	check("none is missed by who polls, asks and polls", came, RUN);
	pthread_join(thread, NULL);
}

void field_events(struct bench *t)
{
	const struct end_attr attr = { .type = IBV_QPT_RC };
	struct couple c;

	couple_open(&c, &t->rig, &attr, NULL);
	none_missed(t, &c);
	couple_close(&c);
	couple_open(&c, &t->rig, &attr, NULL);
	once_armed(t, &c);
	couple_close(&c);
}
