// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that keeps VMRI busy with events and doorbells, until it is killed.
 *
 *	vmri-flood [-d DEVICE]
 *
 * Two queue pairs of its own device send each other nothing.  Every message makes
 * two completions, for which both queues are armed anew, so that each raises an
 * event; between the messages the doorbell rings for queues with nothing in them.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "doorbell.h"
#include "softib.h"

#include "rig.h"

#define DEPTH 64
#define EMPTY_RINGS 64

static void arm(struct ibv_cq *cq)
{
	if (ibv_req_notify_cq(cq, 0))
		die("ibv_req_notify_cq: %s", strerror(errno));
}

static void post_receive(struct end *end)
{
	struct ibv_recv_wr wr = { 0 }, *bad_wr;
	int ret = ibv_post_recv(end->qp, &wr, &bad_wr);

	if (ret)
		die("ibv_post_recv: %s", strerror(ret));
}

static void post_nothing(struct end *end)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
	}, *bad_wr;
	int ret = ibv_post_send(end->qp, &wr, &bad_wr);

	if (ret)
		die("ibv_post_send: %s", strerror(ret));
}

/* The completion may be a moment away when the guest is not alone. */
static void take_completion(struct ibv_cq *cq)
{
	double deadline = now() + RIG_LIMIT;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		if (now() > deadline)
			die("no completion");
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		die("a message ends in status %d", n < 0 ? n : (int)wc.status);
}

/* So that the kernel's list of events does not grow without end. */
static void take_events(struct end *end)
{
	struct pollfd fd = { .fd = end->events->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	while (poll(&fd, 1, 0) > 0) {
		if (ibv_get_cq_event(end->events, &cq, &context))
			die("ibv_get_cq_event: %s", strerror(errno));
		ibv_ack_cq_events(cq, 1);
	}
}

static void flood_once(struct end *from, struct end *to)
{
	int i;

	for (i = 0; i < DEPTH; i++) {
		arm(from->send_cq);
		arm(to->recv_cq);
		post_receive(to);
		post_nothing(from);
		take_completion(from->send_cq);
		take_completion(to->recv_cq);
	}
	for (i = 0; i < EMPTY_RINGS; i++)
		softib_ring_doorbell(to->qp);
	take_events(from);
	take_events(to);
}

int main(int argc, char **argv)
{
	static const struct end_attr attr = { .type = IBV_QPT_RC, .depth = DEPTH };
	const char *device = NULL;
	struct address to_a, to_b;
	struct ibv_mr *mr;
	static char byte;
	struct end a, b;
	struct rig rig;
	int opt;

	while ((opt = getopt(argc, argv, "d:")) != -1) {
		if (opt != 'd')
			die("usage: %s [-d DEVICE]", argv[0]);
		device = optarg;
	}
	rig_open(&rig, device);
	end_open(&a, &rig, &attr);
	end_open(&b, &rig, &attr);
	mr = ibv_reg_mr(rig.pd, &byte, 1, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		die("ibv_reg_mr: %s", strerror(errno));
	to_a = end_address(&a, mr);
	to_b = end_address(&b, mr);
	end_connect(&a, &to_b, &link_default);
	end_connect(&b, &to_a, &link_default);
	for (;;)
		flood_once(&a, &b);
}
