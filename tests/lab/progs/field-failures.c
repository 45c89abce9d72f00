// SPDX-License-Identifier: GPL-2.0-only
/* Field classes: queue pairs that fail, wait in vain, or go. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "field.h"

/* ---- 10 ---- */

#define BEFORE	8	/* requests behind the one that fails, in one list */
#define LATER	5	/* posted to the failed queue pairs */

/* How many flushes come one after the other, from this wr_id on. */
static int flushes(struct end *end, struct ibv_cq *cq, uint64_t first, int nr)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < nr; i++) {
		wc = next_wc(end, cq);
		if (wc.status != IBV_WC_WR_FLUSH_ERR ||
		    wc.wr_id != first + i || wc.qp_num != end->qp->qp_num)
			break;
	}
	return i;
}

/* A WRITE, one with a wrong key, and more of the first kind; as one list. */
static void post_failing_list(struct bench *t, struct end *end)
{
	struct order o[2 + BEFORE];
	int i;

	for (i = 0; i < 2 + BEFORE; i++) {
		order_init(&o[i], t, IBV_WR_RDMA_WRITE, 100);
		o[i].wr.wr_id = i;
		/* A flush completes what an end would have left unsaid. */
		o[i].wr.send_flags = i > 1 && i % 2 ? 0 : IBV_SEND_SIGNALED;
		if (i)
			o[i - 1].wr.next = &o[i].wr;
	}
	o[1].wr.wr.rdma.rkey = ~t->bmr->rkey;
	post(end, &o[0].wr);
}

static void post_later(struct bench *t, struct couple *c)
{
	struct order o;
	int i;

	for (i = 0; i < LATER; i++) {
		order_init(&o, t, IBV_WR_SEND, 8);
		o.wr.wr_id = 50 + i;
		post(&c->a, &o.wr);
		post_room(&c->b, t->bmr, 0, 100, 70 + i);
	}
}

void field_flush(struct bench *t)
{
	const struct end_attr attr = { .type = IBV_QPT_RC };
	struct couple c;
	struct ibv_wc wc;
	int i;

	couple_open(&c, &t->rig, &attr, NULL);
	for (i = 0; i < BEFORE; i++) {
		post_room(&c.a, t->amr, 0, 100, 20 + i);
		post_room(&c.b, t->bmr, 0, 100, 30 + i);
	}
	post_failing_list(t, &c.a);
	check("what comes before the failure succeeds",
	      next_wc(&c.a, c.a.send_cq).status, IBV_WC_SUCCESS);
	wc = next_wc(&c.a, c.a.send_cq);
	check("the failure is told", wc.status, IBV_WC_REM_ACCESS_ERR);
	check("of its request", wc.wr_id, 1);
	check("what comes behind it is flushed",
	      flushes(&c.a, c.a.send_cq, 2, BEFORE), BEFORE);
	check("so are the receives", flushes(&c.a, c.a.recv_cq, 20, BEFORE),
	      BEFORE);
	check("and those of the peer, which has failed",
	      flushes(&c.b, c.b.recv_cq, 30, BEFORE), BEFORE);
	post_later(t, &c);
	check("what is sent later is flushed",
	      flushes(&c.a, c.a.send_cq, 50, LATER), LATER);
	check("and a later receive", flushes(&c.b, c.b.recv_cq, 70, LATER),
	      LATER);
	check("all of it once", is_silent(&c.a) && is_silent(&c.b), 1);
	couple_close(&c);
}

/* ---- links that give up soon ---- */

static struct link_attr soon(uint8_t timeout, uint8_t retry_cnt,
			     uint8_t rnr_timer, uint8_t rnr_retry)
{
	return (struct link_attr) {
		.access = IBV_ACCESS_REMOTE_WRITE,
		.min_rnr_timer = rnr_timer,
		.timeout = timeout,
		.retry_cnt = retry_cnt,
		.rnr_retry = rnr_retry,
	};
}

/*
 * Not before what the specification says, and for a time-out no later than four
 * times that; with room for the clocks and the emulation of a busy machine.
 */
static bool takes_about(double started, double least)
{
	double took = now() - started;

	printf("it took %.3f s, where %.3f is the least\n", took, least);
	return took >= 0.85 * least && took <= 4 * least + 5;
}

/* ---- 12 ---- */

static void *write_until_it_fails(void *arg)
{
	struct order *o = arg;
	struct couple *c = (void *)(uintptr_t)o->wr.wr_id;
	struct ibv_wc wc;

	do {
		post(&c->a, &o->wr);
		wc = next_wc(&c->a, c->a.send_cq);
	} while (!wc.status);
	return (void *)(uintptr_t)wc.status;
}

/* The peer's queue pair goes at any moment of a stream of WRITEs. */
static enum ibv_wc_status peer_goes(struct bench *t, unsigned int after_ms)
{
	const struct link_attr link = soon(12, 2, 12, 7);
	const struct end_attr attr = { .type = IBV_QPT_RC };
	struct couple c;
	struct order o;
	pthread_t thread;
	void *status;

	couple_open(&c, &t->rig, &attr, &link);
	order_init(&o, t, IBV_WR_RDMA_WRITE, BENCH_BYTES);
	o.wr.wr_id = (uintptr_t)&c;
	if (pthread_create(&thread, NULL, write_until_it_fails, &o))
		die("no thread");
	sleep_ms(after_ms);
	if (ibv_destroy_qp(c.b.qp))
		die("a queue pair under traffic cannot be destroyed");
	c.b.qp = NULL;
	pthread_join(thread, &status);
	couple_close(&c);
	return (uintptr_t)status;
}

/* A queue pair goes with requests that wait, and leaves nothing to its CQs. */
static void goes_with_work(struct bench *t)
{
	const struct end_attr attr = { .type = IBV_QPT_RC };
	struct couple c;
	struct order o;
	int i;

	couple_open(&c, &t->rig, &attr, NULL);
	order_init(&o, t, IBV_WR_RDMA_WRITE, 100);
	post(&c.a, &o.wr);
	/* Nobody receives: these wait. */
	order_init(&o, t, IBV_WR_SEND, 100);
	for (i = 0; i < 10; i++) {
		post(&c.a, &o.wr);
		post_room(&c.a, t->amr, 0, 100, i);
	}
	check("a queue pair goes with work in it", ibv_destroy_qp(c.a.qp), 0);
	c.a.qp = NULL;
	check("and leaves no completion", is_silent(&c.a), 1);
	couple_close(&c);
}

void field_destroy(struct bench *t)
{
	const int rounds = field_quick ? 10 : 100;
	enum ibv_wc_status status;
	uint64_t random = 12;
	int i, right = 0;

	for (i = 0; i < rounds; i++) {
		status = peer_goes(t, next_random(&random) % 20);
		right += status == IBV_WC_RETRY_EXC_ERR;
	}
	check("who sends to one that has gone ends with RETRY_EXC", right,
	      rounds);
	goes_with_work(t);
}

/* ---- 16 ---- */

static void rnr_code_0(struct bench *t)
{
	const struct link_attr link = soon(18, 7, 0, 1);
	const struct end_attr attr = { .type = IBV_QPT_RC };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr qp_attr;
	struct couple c;
	struct order o;
	double started;

	couple_open(&c, &t->rig, &attr, &link);
	check("code 0 is kept",
	      ibv_query_qp(c.b.qp, &qp_attr, IBV_QP_MIN_RNR_TIMER, &init) ?
	      -1 : qp_attr.min_rnr_timer, 0);
	order_init(&o, t, IBV_WR_SEND, 16);
	started = now();
	post(&c.a, &o.wr);
	check("one retry fails", next_wc(&c.a, c.a.send_cq).status,
	      IBV_WC_RNR_RETRY_EXC_ERR);
	check("code 0 is 655 ms", takes_about(started, 0.65536), 1);
	check("and the queue pair has failed", end_state(&c.a), IBV_QPS_ERR);
	check("the receiver's has not", end_state(&c.b), IBV_QPS_RTS);
	couple_close(&c);
}

static void rnr_no_retry(struct bench *t)
{
	const struct link_attr link = soon(18, 7, 0, 0);
	const struct end_attr attr = { .type = IBV_QPT_RC };
	struct couple c;
	struct order o;
	double started;

	couple_open(&c, &t->rig, &attr, &link);
	order_init(&o, t, IBV_WR_SEND, 16);
	started = now();
	post(&c.a, &o.wr);
	check("without a retry the first fails",
	      next_wc(&c.a, c.a.send_cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
	check("at once", now() - started < 0.6, 1);
	couple_close(&c);
}

static void rnr_for_ever(struct bench *t)
{
	const struct link_attr link = soon(18, 7, 1, 7);
	const struct end_attr attr = { .type = IBV_QPT_RC };
	struct couple c;
	struct order o;

	couple_open(&c, &t->rig, &attr, &link);
	order_init(&o, t, IBV_WR_SEND, 16);
	post(&c.a, &o.wr);
	/* Seven retries of 10 us would be over. */
	check("7 retries are without end", is_silent(&c.a), 1);
	post_room(&c.b, t->bmr, 0, 16, 1);
	check("a receive ends them", next_wc(&c.a, c.a.send_cq).status,
	      IBV_WC_SUCCESS);
	couple_close(&c);
}

void field_rnr(struct bench *t)
{
	rnr_code_0(t);
	rnr_no_retry(t);
	rnr_for_ever(t);
}

/* ---- 17 ---- */

void field_timeout(struct bench *t)
{
	/* 16.8 ms, and 7 retries, which are not for ever. */
	const struct link_attr link = soon(12, 7, 12, 7);
	const struct end_attr attr = { .type = IBV_QPT_RC };
	struct ibv_wc wc;
	struct couple c;
	struct order o;
	double started;

	couple_open(&c, &t->rig, &attr, &link);
	if (ibv_destroy_qp(c.b.qp))
		die("ibv_destroy_qp: %s", strerror(errno));
	c.b.qp = NULL;
	order_init(&o, t, IBV_WR_SEND, 16);
	o.wr.wr_id = 17;
	started = now();
	post(&c.a, &o.wr);
	wc = next_wc(&c.a, c.a.send_cq);
	check("a dead peer ends in RETRY_EXC", wc.status,
	      IBV_WC_RETRY_EXC_ERR);
	check("of the request that found it so", wc.wr_id, 17);
	check("a reason is given", wc.vendor_err != 0, 1);
	check("after one try and 7 more",
	      takes_about(started, 8 * 4.096e-6 * (1 << 12)), 1);
	check("the queue pair has failed", end_state(&c.a), IBV_QPS_ERR);
	couple_close(&c);
}
