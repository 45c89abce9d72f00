// SPDX-License-Identifier: GPL-2.0-only
/* Field classes: shared receive queues, and datagrams to one and to many. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "field.h"

static struct ibv_srq *open_srq(struct bench *t, uint32_t wrs)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = wrs, .max_sge = 2 },
	};
	struct ibv_srq *srq = ibv_create_srq(t->rig.pd, &init);

	if (!srq)
		die("ibv_create_srq: %s", strerror(errno));
	if (init.attr.max_wr < wrs || init.attr.max_sge < 2)
		die("ibv_create_srq gives less than asked for");
	return srq;
}

/* Receives into b's memory, each of them `room` bytes from the one before. */
static int post_shared(struct bench *t, struct ibv_srq *srq, uint32_t room,
		       int first, int nr)
{
	struct ibv_sge sge = { .length = room, .lkey = t->bmr->lkey };
	struct ibv_recv_wr *bad_wr, wr = { .sg_list = &sge, .num_sge = 1 };
	int i, ret;

	for (i = 0; i < nr; i++) {
		sge.addr = (uintptr_t)t->bmem + (size_t)room * (first + i);
		wr.wr_id = first + i;
		ret = ibv_post_srq_recv(srq, &wr, &bad_wr);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- 11 ---- */

/* The next event is this one, of this queue pair. */
static bool last_wqe_of(struct rig *rig, const struct ibv_qp *qp)
{
	struct pollfd fd = { .fd = rig->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&fd, 1, RIG_LIMIT * 1000) <= 0)
		return false;
	if (ibv_get_async_event(rig->ctx, &event))
		die("ibv_get_async_event: %s", strerror(errno));
	ibv_ack_async_event(&event);
	return event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED &&
	       event.element.qp == qp;
}

void field_last_wqe(struct bench *t)
{
	struct ibv_srq *srq = open_srq(t, 16);
	const struct end_attr attr = { .type = IBV_QPT_RC, .srq = srq };
	struct couple one, other;
	struct order o;

	couple_open(&one, &t->rig, &attr, NULL);
	couple_open(&other, &t->rig, &attr, NULL);
	if (post_shared(t, srq, 100, 0, 4))
		die("a receive is refused");
	order_init(&o, t, IBV_WR_SEND, 10);
	post(&one.a, &o.wr);
	check("a receive is taken", next_wc(&one.b, one.b.recv_cq).status,
	      IBV_WC_SUCCESS);
	/* What was said before, as that communication is established. */
	while (next_event(&t->rig, IBV_EVENT_QP_LAST_WQE_REACHED, 0.1))
		;

	end_set_state(&one.b, IBV_QPS_ERR);
	check("it comes when a queue pair of an SRQ fails",
	      last_wqe_of(&t->rig, one.b.qp), 1);
	check("once", next_event(&t->rig, IBV_EVENT_QP_LAST_WQE_REACHED, 0.1),
	      0);
	check("with no flush of what is not its own", is_silent(&one.b), 1);
	post(&other.a, &o.wr);
	check("which serves the next queue pair",
	      next_wc(&other.b, other.b.recv_cq).wr_id, 1);
	couple_close(&one);
	couple_close(&other);
	ibv_destroy_srq(srq);
}

/* ---- 15 ---- */

static void two_share(struct bench *t, struct ibv_srq *srq, int nr)
{
	const struct end_attr attr = { .type = IBV_QPT_RC, .srq = srq };
	struct couple c[2];
	struct order o;
	struct ibv_wc wc;
	int i, right = 0;

	couple_open(&c[0], &t->rig, &attr, NULL);
	couple_open(&c[1], &t->rig, &attr, NULL);
	for (i = 0; i < nr; i++) {
		struct couple *of = &c[i % 3 == 0];

		memset(t->amem, i + 1, 100);
		order_init(&o, t, IBV_WR_SEND, 100);
		post(&of->a, &o.wr);
		if (next_wc(&of->a, of->a.send_cq).status)
			die("a message fails");
		wc = next_wc(&of->b, of->b.recv_cq);
		right += !wc.status && wc.wr_id == (uint64_t)i &&
			 wc.qp_num == of->b.qp->qp_num &&
			 !memcmp(t->bmem + i * 100, t->amem, 100);
	}
	check("two queue pairs take its receives, in order", right, nr);
	couple_close(&c[0]);
	couple_close(&c[1]);
}

static void tell_limit(struct bench *t, struct ibv_srq *srq)
{
	const struct end_attr attr = { .type = IBV_QPT_RC, .srq = srq };
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	struct couple c;
	struct order o;
	int i;

	couple_open(&c, &t->rig, &attr, NULL);
	if (post_shared(t, srq, 100, 0, 3))
		die("a receive is refused");
	check("a limit is set",
	      ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	for (i = 0; i < 2; i++) {
		order_init(&o, t, IBV_WR_SEND, 10);
		post(&c.a, &o.wr);
		next_wc(&c.b, c.b.recv_cq);
	}
	check("and told", next_event(&t->rig, IBV_EVENT_SRQ_LIMIT_REACHED,
				     RIG_LIMIT), 1);
	check("then it is none", ibv_query_srq(srq, &limit) ? -1 :
	      (int)limit.srq_limit, 0);
	couple_close(&c);
}

void field_srq(struct bench *t)
{
	struct ibv_device_attr device;
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;
	int nr;

	if (ibv_query_device(t->rig.ctx, &device))
		die("ibv_query_device: %s", strerror(errno));
	check("the device has them", device.max_srq > 0, 1);
	check("and resizes them",
	      !!(device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE), 1);
	srq = open_srq(t, 10);
	check("it is queried", ibv_query_srq(srq, &attr), 0);
	check("it holds no less than asked for", attr.max_wr >= 10, 1);
	nr = attr.max_wr;
	check("it takes what it says", post_shared(t, srq, 100, 0, nr), 0);
	check("and no more", post_shared(t, srq, 100, nr, 1), ENOMEM);
	attr.max_wr = nr + 1;
	check("it grows", ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	check("by rounding up", ibv_query_srq(srq, &attr) ||
	      (int)attr.max_wr <= nr, 0);
	check("and takes as many then",
	      post_shared(t, srq, 100, nr, attr.max_wr - nr), 0);
	two_share(t, srq, attr.max_wr);
	tell_limit(t, srq);
	check("one too long is refused", ({
		attr.max_wr = device.max_srq_wr + 1;
		ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
	      }), EINVAL);
	check("it goes", ibv_destroy_srq(srq), 0);
}

/* ---- 18 ---- */

#define DATA 1000

/* A datagram that comes behind 40 bytes, which count. */
static int datagram_comes(struct bench *t, struct couple *c)
{
	struct order o;
	struct ibv_wc wc;

	pattern(t->amem, DATA, 18);
	order_init(&o, t, IBV_WR_SEND, DATA);
	order_aim(&o, c);
	post(&c->a, &o.wr);
	if (next_wc(&c->a, c->a.send_cq).status)
		return -1;
	wc = next_wc(&c->b, c->b.recv_cq);
	return wc.status || wc.byte_len != GRH + DATA ||
	       wc.src_qp != c->a.qp->qp_num ||
	       (wc.wc_flags & IBV_WC_GRH) ||
	       memcmp(t->bmem + GRH, t->amem, DATA) ? -1 : 0;
}

/* With a GRH the 40 bytes are one: where it comes from, and where it goes. */
static int global_datagram_comes(struct bench *t, struct couple *c)
{
	const struct address b = end_address(&c->b, NULL);
	struct ibv_ah_attr to = ah_to(&t->rig, &b, true);
	struct ibv_ah *ah = ibv_create_ah(t->rig.pd, &to);
	struct order o;
	struct ibv_grh *grh = (struct ibv_grh *)t->bmem;
	struct ibv_wc wc;

	if (!ah)
		die("ibv_create_ah: %s", strerror(errno));
	order_init(&o, t, IBV_WR_SEND, DATA);
	order_aim(&o, c);
	o.wr.wr.ud.ah = ah;
	post(&c->a, &o.wr);
	next_wc(&c->a, c->a.send_cq);
	wc = next_wc(&c->b, c->b.recv_cq);
	ibv_destroy_ah(ah);
	return wc.status || wc.byte_len != GRH + DATA ||
	       !(wc.wc_flags & IBV_WC_GRH) ||
	       memcmp(&grh->sgid, &t->rig.gid, sizeof(grh->sgid)) ||
	       memcmp(&grh->dgid, &t->rig.gid, sizeof(grh->dgid)) ? -1 : 0;
}

/* One that fits without the 40 bytes alone is dropped, and keeps no receive. */
static bool too_small_is_dropped(struct bench *t, struct couple *c)
{
	struct order o;

	order_init(&o, t, IBV_WR_SEND, DATA + 1);
	order_aim(&o, c);
	post(&c->a, &o.wr);
	return next_wc(&c->a, c->a.send_cq).status == IBV_WC_SUCCESS &&
	       is_silent(&c->b);
}

static void try_grh(struct bench *t, struct ibv_srq *srq)
{
	const struct end_attr attr = { .type = IBV_QPT_UD, .srq = srq };
	struct couple c;
	int i;

	couple_open(&c, &t->rig, &attr, NULL);
	memset(t->bmem, 0, BENCH_BYTES);
	if (srq && post_shared(t, srq, GRH + DATA, 0, 1))
		die("a receive is refused");
	for (i = 0; !srq && i < 2; i++)
		post_room(&c.b, t->bmr, 0, GRH + DATA, i);
	check("a datagram too long for the rest is dropped",
	      too_small_is_dropped(t, &c), 1);
	check("data begin behind 40 bytes, which count",
	      datagram_comes(t, &c), 0);
	if (srq && post_shared(t, srq, GRH + DATA, 0, 1))
		die("a receive is refused");
	check("a GRH is in them", global_datagram_comes(t, &c), 0);
	couple_close(&c);
}

void field_grh(struct bench *t)
{
	struct ibv_srq *srq = open_srq(t, 8);

	try_grh(t, NULL);
	try_grh(t, srq);
	ibv_destroy_srq(srq);
}

/* ---- 26 ---- */

#define MLID		0xc26a
#define MULTICAST_QPN	0xffffff

static const union ibv_gid group = {
	.raw = { 0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 6,
		 2, 6 },
};

/* One that is spared what its own device sends to a group. */
static void blocking_qp(struct bench *t, struct end *end)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_UD,
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.cap = { 8, 8, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = t->rig.pd,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	};

	ibv_destroy_qp(end->qp);
	end->qp = ibv_create_qp_ex(t->rig.ctx, &init);
	check("a queue pair that does not hear its own device",
	      end->qp ? 0 : errno, 0);
	if (!end->qp)
		die("there is none");
	end_activate_ud(end);
}

static void to_group(struct bench *t, struct end *from, struct ibv_ah *ah)
{
	struct order o;

	order_init(&o, t, IBV_WR_SEND, DATA);
	o.wr.wr.ud.ah = ah;
	o.wr.wr.ud.remote_qpn = MULTICAST_QPN;
	o.wr.wr.ud.remote_qkey = RIG_QKEY;
	post(from, &o.wr);
	check("a message to the group is sent",
	      next_wc(from, from->send_cq).status, IBV_WC_SUCCESS);
}

static bool hears(struct end *end)
{
	struct ibv_wc wc;

	return wait_wc(end, end->recv_cq, &wc, false, 0.2) && !wc.status &&
	       wc.byte_len == GRH + DATA && (wc.wc_flags & IBV_WC_GRH);
}

void field_multicast(struct bench *t)
{
	const struct end_attr attr = { .type = IBV_QPT_UD };
	struct ibv_ah_attr to = {
		.dlid = MLID,
		.port_num = 1,
		.is_global = 1,
		.grh = { .dgid = group, .hop_limit = 1 },
	};
	struct ibv_ah *ah = ibv_create_ah(t->rig.pd, &to);
	struct couple c;

	if (!ah)
		die("ibv_create_ah: %s", strerror(errno));
	couple_open(&c, &t->rig, &attr, NULL);
	check("both join", ibv_attach_mcast(c.a.qp, &group, MLID) ||
	      ibv_attach_mcast(c.b.qp, &group, MLID), 0);
	post_room(&c.a, t->amr, DATA, GRH + DATA, 1);
	post_room(&c.b, t->bmr, 0, GRH + DATA, 1);
	to_group(t, &c.a, ah);
	check("the other hears it", hears(&c.b), 1);
	check("and so does the sender", hears(&c.a), 1);
	check("who leaves", ibv_detach_mcast(c.a.qp, &group, MLID), 0);

	blocking_qp(t, &c.a);
	check("it joins", ibv_attach_mcast(c.a.qp, &group, MLID), 0);
	post_room(&c.a, t->amr, DATA, GRH + DATA, 2);
	post_room(&c.b, t->bmr, 0, GRH + DATA, 2);
	to_group(t, &c.a, ah);
	check("the other hears that", hears(&c.b), 1);
	check("the sender does not", hears(&c.a), 0);
	to_group(t, &c.b, ah);
	check("nor what comes from elsewhere in its device", hears(&c.a), 0);
	ibv_detach_mcast(c.a.qp, &group, MLID);
	ibv_detach_mcast(c.b.qp, &group, MLID);
	ibv_destroy_ah(ah);
	couple_close(&c);
}
