// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does what goes wrong go wrong in the way that it should?
 *
 *	vmri-errors [-d DEVICE] [-p PORT]		waits for a caller
 *	vmri-errors [-d DEVICE] [-p PORT] HOST		calls it and runs the tests
 *
 * Every check uses a connection of its own, so that a failure of one says
 * nothing of the next.
 */
#include <string.h>
#include <unistd.h>

#include "errors.h"

void request_init(struct request *r, struct caller *c, const struct pair *p,
		  enum ibv_wr_opcode opcode, uint32_t length)
{
	memset(r, 0, sizeof(*r));
	r->sge = (struct ibv_sge) {
		.addr = (uintptr_t)c->buf,
		.length = length,
		.lkey = c->mr->lkey,
	};
	r->wr = (struct ibv_send_wr) {
		.wr_id = 1,
		.sg_list = &r->sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = p->peer.addr,
			.rkey = p->peer.rkey,
		},
	};
}

void request_post(struct request *r, struct pair *p)
{
	struct ibv_send_wr *bad_wr;
	int ret = ibv_post_send(p->end.qp, &r->wr, &bad_wr);

	if (ret)
		die("ibv_post_send: %s", strerror(ret));
}

void post_send(struct pair *p, uint64_t wr_id, bool signalled)
{
	struct request r;

	request_init(&r, p->c, p, IBV_WR_SEND, 16);
	r.wr.wr_id = wr_id;
	r.wr.send_flags = signalled ? IBV_SEND_SIGNALED : 0;
	request_post(&r, p);
}

bool expect(const char *name, const char *what, uint64_t is, uint64_t want)
{
	if (is == want)
		return true;
	bad(name, "%s is %lu, not %lu", what, is, want);
	return false;
}

void check(const char *name, int is, int want)
{
	if (is == want)
		ok(name);
	else
		bad(name, "errno is %d (%s), not %d (%s)", is, strerror(is),
		    want, strerror(want));
}

bool expect_wc(const char *name, struct pair *p, uint64_t wr_id,
	       enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!wait_wc(&p->end, p->end.send_cq, &wc, true, RIG_LIMIT)) {
		bad(name, "request %lu does not complete", wr_id);
		return false;
	}
	if (wc.status != status) {
		bad(name, "request %lu: %s (vendor error %u), not %s", wr_id,
		    ibv_wc_status_str(wc.status), wc.vendor_err,
		    ibv_wc_status_str(status));
		return false;
	}
	return expect(name, "wr_id", wc.wr_id, wr_id) &&
	       expect(name, "qp_num", wc.qp_num, p->end.qp->qp_num);
}

int main(int argc, char **argv)
{
	const char *device = NULL, *port = "18516";
	struct caller c;
	int opt;

	while ((opt = getopt(argc, argv, "d:p:")) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'p':
			port = optarg;
			break;
		default:
			die("usage: %s [-d DEVICE] [-p PORT] [HOST]", argv[0]);
		}
	}
	if (!argv[optind]) {
		serve_pairs(device, port);
		return 0;
	}
	caller_open(&c, device, argv[optind], port);
	test_access(&c);
	test_flow(&c);
	test_calls(&c);
	test_objects(&c);
	test_datagrams(&c);
	caller_close(&c);
	return report_status();
}
