// SPDX-License-Identifier: GPL-2.0-only
/*
 * What becomes of a process whose device is taken away while it works.
 *
 *	vmri-removed [-d DEVICE]
 *
 * It says "ready" when it works, and expects the device to go then.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define RECEIVES	10

/* Work until that fails; how many requests have not been completed then. */
static int work(struct bench *t, int *why)
{
	struct ibv_send_wr *bad_wr, wr = bench_empty_write(t);
	int owed = 0, n = 0;
	struct ibv_wc wc;

	do {
		*why = owed < 32 ? ibv_post_send(t->a.qp, &wr, &bad_wr) : 0;
		if (!*why && owed < 32)
			owed++;
		n = ibv_poll_cq(t->a.send_cq, 1, &wc);
		if (n > 0)
			owed--;
		let_others_run();
	} while (!*why && n >= 0);
	return owed;
}

/* The completions that are still to come, up to the end of the CQ. */
static int take_rest(struct ibv_cq *cq, int *end)
{
	double deadline = now() + 30;
	struct ibv_wc wc;
	int n = 0;

	while (now() < deadline) {
		*end = ibv_poll_cq(cq, 1, &wc);
		if (*end < 0)
			break;
		if (!*end)
			let_others_run();
		else if (!wc.status || wc.status == IBV_WC_WR_FLUSH_ERR)
			n++;
	}
	return n;
}

static bool fatal_event(struct bench *t)
{
	struct pollfd fd = { .fd = t->rig.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (poll(&fd, 1, 30000) == 1) {
		if (ibv_get_async_event(t->rig.ctx, &event))
			return false;
		ibv_ack_async_event(&event);
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			return true;
	}
	return false;
}

static void expect_removal(struct bench *t)
{
	struct ibv_recv_wr *bad_wr, wr = {};
	int owed, why, end;

	owed = work(t, &why);
	expect("posting fails, or polling", why == EIO || why == 0, 1);
	expect("what was posted is completed", take_rest(t->a.send_cq, &end),
	       owed);
	expect("then polling fails", end < 0, 1);
	expect("receives are completed, too", take_rest(t->b.recv_cq, &end),
	       RECEIVES);
	expect("and then polling fails", end < 0, 1);
	expect("a fatal event came", fatal_event(t), 1);
	expect("nothing is posted", ibv_post_recv(t->b.qp, &wr, &bad_wr), EIO);
	expect("or armed", ibv_req_notify_cq(t->b.recv_cq, 0), EIO);
	errno = 0;
	expect("or registered",
	       ibv_reg_mr(t->rig.pd, t->amem, 4096, 0) ? 0 : errno, EIO);
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	struct bench t = {};
	int opt, i;

	while ((opt = getopt(argc, argv, "d:")) != -1) {
		if (opt != 'd')
			die("usage: %s [-d DEVICE]", argv[0]);
		device = optarg;
	}

	bench_open(&t, device);
	for (i = 0; i < RECEIVES; i++)
		bench_post_recv(&t.b, t.bmr, i);
	puts("ready");
	fflush(stdout);
	expect_removal(&t);
	return report_status();
}
