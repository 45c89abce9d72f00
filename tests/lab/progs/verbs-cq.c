// SPDX-License-Identifier: GPL-2.0-only
/* Completion queues: sizes that change, extended polling, clocks, overflow. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

/* ---- resize ---- */

/* Post `nr` empty WRITEs with the next numbers; they complete by themselves. */
static void post_many(struct bench *t, uint64_t *next, int nr)
{
	struct ibv_send_wr *bad_wr, wr = bench_empty_write(t);
	int ret;

	while (nr--) {
		wr.wr_id = (*next)++;
		ret = ibv_post_send(t->a.qp, &wr, &bad_wr);
		if (ret)
			die("ibv_post_send: %s", strerror(ret));
	}
}

/* Take `nr` completions, which must have the next numbers. */
static int take_many(struct bench *t, uint64_t *next, int nr)
{
	struct ibv_wc wc;

	while (nr--) {
		if (!wait_wc(&t->a, t->a.send_cq, &wc, false, RIG_LIMIT) ||
		    wc.status || wc.wr_id != (*next)++)
			return -1;
	}
	return 0;
}

static void test_resize(struct bench *t)
{
	struct ibv_cq *cq = t->a.send_cq;
	uint64_t put = 1, got = 1;
	void *context;

	post_many(t, &put, 20);
	expect("a queue grows", ibv_resize_cq(cq, 1000), 0);
	expect("to what was asked for", cq->cqe >= 1000, 1);
	post_many(t, &put, 20);
	expect("one too small for what it holds is refused",
	       ibv_resize_cq(cq, 16), EINVAL);
	expect("half of it comes in order", take_many(t, &got, 25), 0);
	expect("it shrinks", ibv_resize_cq(cq, 16), 0);
	expect("to what was asked for, again", cq->cqe >= 16 && cq->cqe < 1000,
	       1);
	expect("the rest comes in order", take_many(t, &got, 15), 0);
	expect("none can have no entries", ibv_resize_cq(cq, 0), EINVAL);
	expect("nor more than the device has", ibv_resize_cq(cq, 1 << 30),
	       EINVAL);

	expect("an armed one", ibv_req_notify_cq(cq, 0), 0);
	expect("is resized", ibv_resize_cq(cq, 100), 0);
	post_many(t, &put, 1);
	expect("and has its event", ibv_get_cq_event(t->a.events, &cq,
						     &context), 0);
	ibv_ack_cq_events(cq, 1);
	expect("and its completion", take_many(t, &got, 1), 0);
}

/* The process cannot see the new ring: then the old one stays. */
static void test_resize_without_room(struct bench *t)
{
	uint64_t put = 1, got = 1;
	struct rlimit had;
	int ret;

	take_room(&had);
	ret = ibv_resize_cq(t->a.send_cq, 100000);
	give_room_back(&had);
	expect("a queue that cannot be mapped does not move", ret, ENOMEM);
	post_many(t, &put, 3);
	expect("and goes on", take_many(t, &got, 3), 0);
}

/* ---- resize under traffic ---- */

#define TRAFFIC	4000

struct traffic {
	struct bench *t;
	uint64_t put;
	_Atomic uint64_t got;
	_Atomic bool wrong;
};

static void *consume(void *arg)
{
	struct traffic *f = arg;
	struct ibv_wc wc;

	while (f->got < TRAFFIC && !f->wrong) {
		int n = ibv_poll_cq(f->t->a.send_cq, 1, &wc);

		if (n < 0 || (n && (wc.status || wc.wr_id != f->got)))
			f->wrong = true;
		else if (n)
			f->got++;
		else
			let_others_run();
	}
	return NULL;
}

static void *produce(void *arg)
{
	struct traffic *f = arg;

	while (f->put < TRAFFIC && !f->wrong) {
		if (f->put - f->got < 48)
			post_many(f->t, &f->put, 1);
		else
			let_others_run();
	}
	return NULL;
}

static void test_resize_under_traffic(struct bench *t)
{
	struct traffic f = { .t = t };
	pthread_t threads[2];
	int rounds = 0, ret = 0;

	pthread_create(&threads[0], NULL, produce, &f);
	pthread_create(&threads[1], NULL, consume, &f);
	while (f.got < TRAFFIC && !f.wrong && !ret) {
		ret = ibv_resize_cq(t->a.send_cq, 64 << rounds++ % 5);
		let_others_run();
	}
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	expect("a queue that changes its size under traffic",
	       ret || f.wrong ? -1 : (long)f.got, TRAFFIC);
}

/* ---- extended polling ---- */

static struct ibv_cq_ex *create_ex(struct bench *t, uint64_t wc_flags,
				   uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = wc_flags,
		.comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
		.flags = flags,
	};

	errno = 0;
	return ibv_create_cq_ex(t->rig.ctx, &attr);
}

static uint64_t raw_clock(struct bench *t)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	if (ibv_query_rt_values_ex(t->rig.ctx, &values))
		return 0;
	return values.raw_clock.tv_sec * 1000000000ULL +
	       values.raw_clock.tv_nsec;
}

static uint64_t real_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* All that can be read of the receives of three messages. */
static void read_all(struct ibv_cq_ex *cq, struct end *b, uint64_t raw[2],
		     uint64_t real[2])
{
	struct ibv_poll_cq_attr attr = {};
	uint64_t last = raw[0], ts, ns;
	int i, wrong = 0, ret;

	ret = ibv_start_poll(cq, &attr);
	for (i = 0; i < 3 && !ret; i++) {
		ts = ibv_wc_read_completion_ts(cq);
		ns = ibv_wc_read_completion_wallclock_ns(cq);
		wrong += cq->status != IBV_WC_SUCCESS || cq->wr_id != 50U + i;
		wrong += ibv_wc_read_opcode(cq) != IBV_WC_RECV;
		wrong += ibv_wc_read_vendor_err(cq);
		wrong += ibv_wc_read_wc_flags(cq) != IBV_WC_WITH_IMM;
		wrong += ibv_wc_read_byte_len(cq) != 100U + i;
		wrong += ibv_wc_read_imm_data(cq) != htonl(70 + i);
		wrong += ibv_wc_read_qp_num(cq) != b->qp->qp_num;
		wrong += ts < last || ts > raw[1];
		/* The clocks are compared once a second. */
		wrong += ns + 100000000 < real[0] || ns > real[1] + 100000000;
		last = ts;
		ret = ibv_next_poll(cq);
	}
	ibv_end_poll(cq);
	expect("three receives can be read", i, 3);
	expect("and then none", ret, ENOENT);
	expect("all that is read of them is right", wrong, 0);
}

static void send_three(struct bench *t, struct end *a, struct end *b)
{
	int i;

	for (i = 0; i < 3; i++)
		bench_post_recv(b, t->bmr, 50 + i);
	for (i = 0; i < 3; i++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)t->amem,
			.length = 100 + i,
			.lkey = t->amr->lkey,
		};
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_SEND_WITH_IMM,
			.imm_data = htonl(70 + i),
			.sg_list = &sge,
			.num_sge = 1,
		};

		if (bench_post(a, &wr).status)
			die("a message was not sent");
	}
}

static void test_extended(struct bench *t, const char *name, uint32_t flags)
{
	const uint64_t all = IBV_WC_STANDARD_FLAGS |
			     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	struct ibv_cq_ex *cq = create_ex(t, all, flags);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_poll_cq_attr attr = {};
	struct end b = { .rig = &t->rig };
	struct address aa, ba;
	uint64_t raw[2], real[2];

	expect(name, cq ? 0 : errno, 0);
	if (!cq)
		return;
	expect("it is empty", ibv_start_poll(cq, &attr), ENOENT);

	init.send_cq = ibv_cq_ex_to_cq(cq);
	init.recv_cq = init.send_cq;
	b.qp = ibv_create_qp(t->rig.pd, &init);
	if (!b.qp)
		die("ibv_create_qp: %s", strerror(errno));
	bench_reconnect(t);
	end_close(&t->b);
	aa = end_address(&t->a, t->amr);
	ba = end_address(&b, t->bmr);
	end_connect(&b, &aa, &link_default);
	end_set_state(&t->a, IBV_QPS_RESET);
	end_connect(&t->a, &ba, &link_default);

	raw[0] = raw_clock(t);
	real[0] = real_clock();
	send_three(t, &t->a, &b);
	raw[1] = raw_clock(t);
	real[1] = real_clock();
	read_all(cq, &b, raw, real);
	expect("it is empty again", ibv_start_poll(cq, &attr), ENOENT);

	ibv_destroy_qp(b.qp);
	expect("it goes", ibv_destroy_cq(init.send_cq), 0);
	end_open(&t->b, &t->rig, &(struct end_attr) { .type = IBV_QPT_RC });
	bench_reconnect(t);
}

static void test_not_offered(struct bench *t)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 4, .cq_period = 10 },
	};

	expect("no VLAN is reported",
	       create_ex(t, IBV_WC_EX_WITH_CVLAN, 0) ? 0 : errno, EOPNOTSUPP);
	expect("overruns are not ignored",
	       create_ex(t, 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) ? 0 : errno,
	       EOPNOTSUPP);
	expect("there is no moderation", ibv_modify_cq(t->a.send_cq, &attr),
	       EOPNOTSUPP);
}

static void test_clock(struct bench *t)
{
	struct ibv_device_attr_ex attr;
	uint64_t one, two;

	if (ibv_query_device_ex(t->rig.ctx, NULL, &attr))
		die("ibv_query_device_ex: %s", strerror(errno));
	expect("the clock has a tick each nanosecond", attr.hca_core_clock,
	       1000000);
	expect("and 64 bits", attr.completion_timestamp_mask == UINT64_MAX, 1);
	one = raw_clock(t);
	nanosleep(&(struct timespec) { .tv_nsec = 20000000 }, NULL);
	two = raw_clock(t);
	expect("it goes", one && two - one >= 20000000 &&
	       two - one < 10000000000ULL, 1);
}

/* ---- overflow ---- */

static void test_overflow(struct bench *t)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	uint64_t put = 0;
	int n = 0, ret;

	bench_reconnect(t);
	cq = t->a.send_cq;
	if (ibv_resize_cq(cq, 16))
		die("ibv_resize_cq: %s", strerror(errno));
	post_many(t, &put, cq->cqe + 1);
	if (ibv_get_async_event(t->rig.ctx, &event))
		die("ibv_get_async_event: %s", strerror(errno));
	expect("a completion too many is told",
	       event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq,
	       1);
	ibv_ack_async_event(&event);
	while ((ret = ibv_poll_cq(cq, 1, &wc)) == 1)
		n++;
	expect("those before it can be read", n, cq->cqe);
	expect("then polling fails", ret < 0, 1);
	bench_reconnect(t);
	/* What became of the queue pair does not matter here. */
	while (poll(&(struct pollfd) { .fd = t->rig.ctx->async_fd,
				       .events = POLLIN }, 1, 100) == 1 &&
	       !ibv_get_async_event(t->rig.ctx, &event))
		ibv_ack_async_event(&event);
}

void test_cqs(struct bench *t)
{
	test_resize(t);
	test_resize_without_room(t);
	test_resize_under_traffic(t);
	test_clock(t);
	test_extended(t, "an extended queue", 0);
	test_extended(t, "an extended queue for one thread",
		      IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	test_not_offered(t);
	test_overflow(t);
}
