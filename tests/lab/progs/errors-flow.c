// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receivers that are late, peers that are gone, queues that are flushed.
 */
#include <string.h>

#include "errors.h"

/* A time after which "for ever" is believed, in seconds. */
#define LONG_ENOUGH 1.5

static bool expect_nothing(const char *name, struct pair *p)
{
	struct ibv_wc wc;

	if (!wait_wc(&p->end, p->end.send_cq, &wc, false, LONG_ENOUGH))
		return true;
	bad(name, "request %lu has completed: %s", wc.wr_id,
	    ibv_wc_status_str(wc.status));
	return false;
}

/*
 * The specification lets a time-out last up to four times as long as it says.
 * Above that is room for an emulated machine, and below for its clocks: Xen's,
 * which the time-out is kept by, and the guest's may differ by some per cent.
 */
static bool expect_time(const char *name, double started, double least)
{
	double took = now() - started;

	if (took >= 0.85 * least && took <= 4 * least + 5)
		return true;
	bad(name, "it took %.3f s, which should be %.3f", took, least);
	return false;
}

static void rnr_finite(struct caller *c, const char *name, int retries)
{
	struct link_attr link = link_default;
	double started;
	struct pair p;

	link.rnr_retry = retries;
	/* 22: 20.48 ms */
	pair_open(&p, c, &(struct terms) { .min_rnr_timer = 22 }, &link);
	started = now();
	post_send(&p, 1, true);
	post_send(&p, 2, false);
	if (expect_wc(name, &p, 1, IBV_WC_RNR_RETRY_EXC_ERR) &&
	    expect_time(name, started, retries * 0.02048) &&
	    expect_wc(name, &p, 2, IBV_WC_WR_FLUSH_ERR))
		ok(name);
	pair_close(&p);
}

static void rnr_infinite(struct caller *c)
{
	static const char name[] = "RNR retries for ever, until a receive";
	struct pair p;

	pair_open(&p, c, &(struct terms) {}, NULL);
	post_send(&p, 1, true);
	if (expect_nothing(name, &p)) {
		peer_post_receives(&p, 1);
		if (expect_wc(name, &p, 1, IBV_WC_SUCCESS) &&
		    expect(name, "receives completed",
			   peer_outcome(&p, 1).nr, 1))
			ok(name);
	}
	pair_close(&p);
}

static const struct link_attr short_link = {
	.access = IBV_ACCESS_REMOTE_WRITE,
	.min_rnr_timer = 12,
	.timeout = 14,		/* 67.1 ms */
	.retry_cnt = 2,
	.rnr_retry = 7,
};
#define SHORT_LINK_S (3 * 4.096e-6 * (1 << 14))

static void peer_gone(struct caller *c)
{
	static const char name[] = "the peer's queue pair is gone";
	double started;
	struct pair p;

	pair_open(&p, c, &(struct terms) { .receives = 2 }, &short_link);
	post_send(&p, 1, true);
	if (expect_wc(name, &p, 1, IBV_WC_SUCCESS)) {
		peer_close_qp(&p);
		started = now();
		post_send(&p, 2, true);
		post_send(&p, 3, false);
		if (expect_wc(name, &p, 2, IBV_WC_RETRY_EXC_ERR) &&
		    expect_time(name, started, SHORT_LINK_S) &&
		    expect_wc(name, &p, 3, IBV_WC_WR_FLUSH_ERR) &&
		    expect(name, "the queue pair's state",
			   end_state(&p.end), IBV_QPS_ERR))
			ok(name);
	}
	pair_close(&p);
}

/* The peer was posted to and goes while the request waits for a receive. */
static void peer_goes_in_rnr(struct caller *c)
{
	static const char name[] = "the peer goes while a request waits for it";
	struct pair p;

	pair_open(&p, c, &(struct terms) {}, &short_link);
	post_send(&p, 1, true);
	if (expect_nothing(name, &p)) {
		peer_close_qp(&p);
		if (expect_wc(name, &p, 1, IBV_WC_RETRY_EXC_ERR))
			ok(name);
	}
	pair_close(&p);
}

static void peer_nowhere(struct caller *c)
{
	static const char name[] = "nobody has the LID";
	struct address nowhere;
	struct pair p;

	pair_open_only(&p, c, &(struct terms) {}, NULL);
	nowhere = p.peer;
	nowhere.lid = 0xbeef;
	end_connect(&p.end, &nowhere, &short_link);
	post_send(&p, 1, true);
	if (expect_wc(name, &p, 1, IBV_WC_RETRY_EXC_ERR))
		ok(name);
	pair_close(&p);
}

static void no_timeout(struct caller *c)
{
	static const char name[] = "timeout 0 waits for a peer for ever";
	struct link_attr link = short_link;
	struct pair p;

	link.timeout = 0;
	pair_open_only(&p, c, &(struct terms) { .receives = 1 }, NULL);
	end_connect(&p.end, &p.peer, &link);
	post_send(&p, 1, true);
	if (expect_nothing(name, &p)) {
		pair_connect_peer(&p);
		if (expect_wc(name, &p, 1, IBV_WC_SUCCESS))
			ok(name);
	}
	pair_close(&p);
}

static void peer_late(struct caller *c)
{
	static const char name[] = "the peer connects late";
	struct pair p;

	pair_open_only(&p, c, &(struct terms) { .receives = 1 }, NULL);
	end_connect(&p.end, &p.peer, &link_default);
	post_send(&p, 1, true);
	pair_connect_peer(&p);
	if (expect_wc(name, &p, 1, IBV_WC_SUCCESS))
		ok(name);
	pair_close(&p);
}

static void post_recv(struct pair *p, uint64_t wr_id)
{
	struct ibv_recv_wr *bad_wr, wr = { .wr_id = wr_id };
	int ret = ibv_post_recv(p->end.qp, &wr, &bad_wr);

	if (ret)
		die("ibv_post_recv: %s", strerror(ret));
}

static bool expect_recv_flush(const char *name, struct pair *p,
			      uint64_t wr_id)
{
	struct ibv_wc wc;

	if (!wait_wc(&p->end, p->end.recv_cq, &wc, true, RIG_LIMIT)) {
		bad(name, "receive %lu does not complete", wr_id);
		return false;
	}
	return expect(name, "the receive's status", wc.status,
		      IBV_WC_WR_FLUSH_ERR) &&
	       expect(name, "the receive's wr_id", wc.wr_id, wr_id);
}

static bool expect_silence(const char *name, struct pair *p)
{
	struct ibv_wc wc;

	return expect(name, "further completions of sends",
		      ibv_poll_cq(p->end.send_cq, 1, &wc), 0) &&
	       expect(name, "further completions of receives",
		      ibv_poll_cq(p->end.recv_cq, 1, &wc), 0);
}

#define FLUSHED 5

/* Requests numbered from `first`, in order, each once. */
static bool expect_flush(const char *name, struct pair *p, uint64_t first)
{
	uint64_t i;

	for (i = 0; i < FLUSHED; i++)
		if (!expect_wc(name, p, first + i, IBV_WC_WR_FLUSH_ERR))
			return false;
	for (i = 0; i < FLUSHED; i++)
		if (!expect_recv_flush(name, p, first + i))
			return false;
	return expect_silence(name, p);
}

static void post_both(struct pair *p, uint64_t first)
{
	uint64_t i;

	for (i = 0; i < FLUSHED; i++) {
		post_recv(p, first + i);
		post_send(p, first + i, i % 2);
	}
}

static void flush(struct caller *c)
{
	static const char before[] = "what was posted before the error is flushed";
	static const char after[] = "what is posted after it is flushed";
	struct pair p;
	int ret;

	/* Without a receive there, all sends wait. */
	pair_open(&p, c, &(struct terms) {}, NULL);
	post_both(&p, 10);
	ret = end_set_state(&p.end, IBV_QPS_ERR);
	if (expect(before, "the errno", ret, 0) &&
	    expect_flush(before, &p, 10))
		ok(before);
	post_both(&p, 20);
	if (expect_flush(after, &p, 20))
		ok(after);
	pair_close(&p);
}

/* A queue pair that has failed serves again after RESET, without old news. */
static void reset(struct caller *c)
{
	static const char name[] = "RESET forgets, and the queue pair serves again";
	struct pair p, q;
	int ret;

	pair_open(&p, c, &(struct terms) {}, NULL);
	post_both(&p, 10);
	ret = end_set_state(&p.end, IBV_QPS_RESET);
	if (!expect(name, "the errno", ret, 0) || !expect_silence(name, &p)) {
		pair_close(&p);
		return;
	}
	/* The new peer of the old end. */
	end_open(&q.end, &c->rig, &(struct end_attr) { .type = IBV_QPT_RC });
	q.peer = end_address(&p.end, c->mr);
	p.peer = end_address(&q.end, c->mr);
	end_connect(&q.end, &q.peer, &link_default);
	end_connect(&p.end, &p.peer, &link_default);
	post_recv(&q, 1);
	/* A receive without room takes an empty message. */
	request_post(&(struct request) {
		.wr = {
			.wr_id = 30,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
		},
	}, &p);
	if (expect_wc(name, &p, 30, IBV_WC_SUCCESS) &&
	    expect_silence(name, &p))
		ok(name);
	end_close(&q.end);
	pair_close(&p);
}

/* Only signalled requests complete, and each of them once. */
static void unsignalled(struct caller *c)
{
	static const char name[] = "an unsignalled request leaves no completion";
	struct pair p;

	pair_open(&p, c, &(struct terms) { .receives = 4 }, NULL);
	post_send(&p, 1, false);
	post_send(&p, 2, true);
	post_send(&p, 3, false);
	post_send(&p, 4, true);
	if (expect_wc(name, &p, 2, IBV_WC_SUCCESS) &&
	    expect_wc(name, &p, 4, IBV_WC_SUCCESS) &&
	    expect(name, "receives completed", peer_outcome(&p, 4).nr, 4) &&
	    expect_silence(name, &p))
		ok(name);
	pair_close(&p);
}

void test_flow(struct caller *c)
{
	rnr_finite(c, "no RNR retry", 0);
	rnr_finite(c, "three RNR retries", 3);
	rnr_infinite(c);
	peer_gone(c);
	peer_goes_in_rnr(c);
	peer_nowhere(c);
	peer_late(c);
	no_timeout(c);
	flush(c);
	reset(c);
	unsignalled(c);
}
