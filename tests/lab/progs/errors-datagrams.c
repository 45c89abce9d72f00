// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagrams: what the sender is told, and what is dropped in silence.
 *
 * Sender and receiver are two queue pairs of the caller.
 */
#include <errno.h>
#include <string.h>

#include "errors.h"

#define GRH 40

struct datagrams {
	struct caller *c;
	struct pair from;	/* its peer is `to`; not known to the listener */
	struct end to;
	struct ibv_ah *ah;
	uint32_t mtu;		/* bytes */
};

static void datagrams_open(struct datagrams *d, struct caller *c)
{
	static const struct end_attr attr = {
		.type = IBV_QPT_UD,
		.depth = PAIR_DEPTH,
	};
	struct ibv_ah_attr ah;

	d->c = c;
	d->mtu = 128U << c->rig.port.active_mtu;
	d->from.c = c;
	end_open(&d->from.end, &c->rig, &attr);
	end_open(&d->to, &c->rig, &attr);
	d->from.peer = end_address(&d->to, NULL);
	end_activate_ud(&d->from.end);
	end_activate_ud(&d->to);
	ah = ah_to(&c->rig, &d->from.peer, false);
	d->ah = ibv_create_ah(c->rig.pd, &ah);
	if (!d->ah)
		die("ibv_create_ah: %s", strerror(errno));
}

static void datagrams_close(struct datagrams *d)
{
	ibv_destroy_ah(d->ah);
	end_close(&d->from.end);
	end_close(&d->to);
}

static void datagram_init(struct request *r, struct datagrams *d,
			  uint64_t wr_id, uint32_t length)
{
	request_init(r, d->c, &d->from, IBV_WR_SEND, length);
	r->wr.wr_id = wr_id;
	r->wr.wr.ud.ah = d->ah;
	r->wr.wr.ud.remote_qpn = d->from.peer.qpn;
	r->wr.wr.ud.remote_qkey = RIG_QKEY;
}

static void receive(struct datagrams *d, uint64_t wr_id, uint32_t room)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)d->c->buf + PAIR_BYTES / 2,
		.length = room,
		.lkey = d->c->mr->lkey,
	};
	struct ibv_recv_wr *bad_wr, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int ret = ibv_post_recv(d->to.qp, &wr, &bad_wr);

	if (ret)
		die("ibv_post_recv: %s", strerror(ret));
}

static bool expect_datagram(const char *name, struct datagrams *d,
			    uint64_t wr_id, uint32_t length)
{
	struct ibv_wc wc;

	if (!wait_wc(&d->to, d->to.recv_cq, &wc, true, RIG_LIMIT)) {
		bad(name, "receive %lu does not complete", wr_id);
		return false;
	}
	return expect(name, "the receive's status", wc.status, 0) &&
	       expect(name, "the receive's wr_id", wc.wr_id, wr_id) &&
	       expect(name, "byte_len", wc.byte_len, GRH + length);
}

static void refused(struct caller *c)
{
	static const char write[] = "UD, an RDMA WRITE is refused";
	static const char no_ah[] = "UD, a SEND without an address is refused";
	struct ibv_ah_attr nowhere = { .port_num = 2, .dlid = 1 };
	struct ibv_send_wr *bad_wr;
	struct datagrams d;
	struct request r;
	int ret;

	datagrams_open(&d, c);
	datagram_init(&r, &d, 1, 16);
	r.wr.opcode = IBV_WR_RDMA_WRITE;
	ret = ibv_post_send(d.from.end.qp, &r.wr, &bad_wr);
	if (expect(write, "the errno", ret, EINVAL))
		ok(write);
	datagram_init(&r, &d, 1, 16);
	r.wr.wr.ud.ah = NULL;
	ret = ibv_post_send(d.from.end.qp, &r.wr, &bad_wr);
	if (expect(no_ah, "the errno", ret, EINVAL))
		ok(no_ah);
	if (ibv_create_ah(c->rig.pd, &nowhere))
		bad("create_ah, a port that is not there", "it succeeded");
	else
		ok("create_ah, a port that is not there");
	datagrams_close(&d);
}

/* An error stops the send queue alone, until it is told to go on. */
static void too_long(struct caller *c)
{
	static const char name[] = "UD, a SEND of more than the MTU";
	static const char again[] = "UD, after SQE to RTS sends go on";
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct datagrams d;
	struct request r;

	datagrams_open(&d, c);
	receive(&d, 5, GRH + d.mtu);
	datagram_init(&r, &d, 1, d.mtu + 1);
	request_post(&r, &d.from);
	if (expect_wc(name, &d.from, 1, IBV_WC_LOC_LEN_ERR) &&
	    expect(name, "the state", end_state(&d.from.end), IBV_QPS_SQE))
		ok(name);

	if (expect(again, "the errno",
		   ibv_modify_qp(d.from.end.qp, &attr, IBV_QP_STATE), 0)) {
		datagram_init(&r, &d, 2, d.mtu);
		request_post(&r, &d.from);
		if (expect_wc(again, &d.from, 2, IBV_WC_SUCCESS) &&
		    expect_datagram(again, &d, 5, d.mtu))
			ok(again);
	}
	datagrams_close(&d);
}

/*
 * What the receiver may not or cannot have is dropped: the sender succeeds, and
 * the receive stays for the next.
 */
static void dropped(struct caller *c, const char *name, uint32_t qkey,
		    uint32_t length, uint32_t room)
{
	struct datagrams d;
	struct request r;

	datagrams_open(&d, c);
	receive(&d, 5, room);
	datagram_init(&r, &d, 1, length);
	r.wr.wr.ud.remote_qkey = qkey;
	request_post(&r, &d.from);
	datagram_init(&r, &d, 2, 16);
	request_post(&r, &d.from);
	if (expect_wc(name, &d.from, 1, IBV_WC_SUCCESS) &&
	    expect_wc(name, &d.from, 2, IBV_WC_SUCCESS) &&
	    expect_datagram(name, &d, 5, 16))
		ok(name);
	datagrams_close(&d);
}

static void no_receive(struct caller *c)
{
	static const char name[] = "UD, without a receive a datagram is dropped";
	struct datagrams d;
	struct request r;

	datagrams_open(&d, c);
	datagram_init(&r, &d, 1, 16);
	request_post(&r, &d.from);
	if (expect_wc(name, &d.from, 1, IBV_WC_SUCCESS)) {
		receive(&d, 5, GRH + 32);
		datagram_init(&r, &d, 2, 32);
		request_post(&r, &d.from);
		if (expect_wc(name, &d.from, 2, IBV_WC_SUCCESS) &&
		    expect_datagram(name, &d, 5, 32))
			ok(name);
	}
	datagrams_close(&d);
}

void test_datagrams(struct caller *c)
{
	refused(c);
	too_long(c);
	dropped(c, "UD, a wrong Q_Key is dropped", RIG_QKEY + 1, 32, GRH + 64);
	dropped(c, "UD, a datagram that does not fit is dropped", RIG_QKEY, 65,
		GRH + 64);
	no_receive(c);
}
