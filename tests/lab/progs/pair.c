// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"

#define ALL_REMOTE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		    IBV_ACCESS_REMOTE_READ)

enum order_kind {
	ORDER_OPEN,
	ORDER_CONNECT,
	ORDER_RECEIVES,
	ORDER_OUTCOME,
	ORDER_CLOSE_QP,
	ORDER_DEREGISTER,
	ORDER_CLOSE,
};

struct order {
	uint32_t kind;
	uint32_t nr;
	struct terms terms;
	struct address caller;
};

struct answer {
	struct address address;
	uint32_t other_rkey;
	struct outcome outcome;
};

static uint8_t *open_buffer(void)
{
	uint8_t *buf = mmap(NULL, PAIR_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buf == MAP_FAILED)
		die("no memory");
	return buf;
}

static struct ibv_mr *open_mr(struct ibv_pd *pd, uint8_t *buf, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, PAIR_BYTES, access);

	if (!mr)
		die("ibv_reg_mr: %s", strerror(errno));
	return mr;
}

static void close_mr(struct ibv_mr *mr)
{
	int ret = ibv_dereg_mr(mr);

	if (ret)
		die("ibv_dereg_mr: %s", strerror(ret));
}

static struct ibv_pd *open_pd(struct rig *rig)
{
	struct ibv_pd *pd = ibv_alloc_pd(rig->ctx);

	if (!pd)
		die("ibv_alloc_pd: %s", strerror(errno));
	return pd;
}

static void close_pd(struct ibv_pd *pd)
{
	int ret = ibv_dealloc_pd(pd);

	if (ret)
		die("ibv_dealloc_pd: %s", strerror(ret));
}

/* ---- the listener ---- */

struct listener {
	struct rig rig;
	int chan;
	uint8_t *buf;
	struct ibv_pd *other_pd;
	/* of the pair that is open */
	struct terms terms;
	struct end end;
	bool has_qp;
	struct ibv_mr *mr;
	struct ibv_mr *other_mr;
};

static void listener_open(struct listener *l, const struct terms *terms)
{
	int access = terms->mr_access ? terms->mr_access : ALL_REMOTE;

	l->terms = *terms;
	memset(l->buf, 0, PAIR_BYTES);
	l->mr = open_mr(l->rig.pd, l->buf, access);
	l->other_mr = open_mr(l->other_pd, l->buf, access);
	end_open(&l->end, &l->rig, &(struct end_attr) {
		.type = IBV_QPT_RC,
		.depth = PAIR_DEPTH,
	});
	l->has_qp = true;
}

static void listener_receives(struct listener *l, uint32_t nr)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)l->buf,
		.length = l->terms.receive_size ? l->terms.receive_size :
						  PAIR_BYTES,
		.lkey = l->terms.bad_receives ? ~l->mr->lkey : l->mr->lkey,
	};
	struct ibv_recv_wr *bad_wr, wr = { .sg_list = &sge, .num_sge = 1 };
	int ret;

	while (nr--) {
		ret = ibv_post_recv(l->end.qp, &wr, &bad_wr);
		if (ret)
			die("ibv_post_recv: %s", strerror(ret));
	}
}

static void listener_connect(struct listener *l, const struct address *to)
{
	struct link_attr link = link_default;

	link.access = l->terms.no_access ? 0 :
		      l->terms.qp_access ? l->terms.qp_access : ALL_REMOTE;
	if (l->terms.min_rnr_timer)
		link.min_rnr_timer = l->terms.min_rnr_timer;
	end_connect(&l->end, to, &link);
	listener_receives(l, l->terms.receives);
}

static void listener_outcome(struct listener *l, uint32_t nr,
			     struct outcome *out)
{
	struct ibv_wc wc;

	while (out->nr < nr &&
	       wait_wc(&l->end, l->end.recv_cq, &wc, true, RIG_LIMIT))
		out->status[out->nr++] = wc.status;
	out->state = end_state(&l->end);
}

static void listener_close_qp(struct listener *l)
{
	if (l->has_qp)
		end_close(&l->end);
	l->has_qp = false;
}

static void listener_deregister(struct listener *l)
{
	if (l->mr)
		close_mr(l->mr);
	l->mr = NULL;
}

static void listener_close(struct listener *l)
{
	listener_close_qp(l);
	listener_deregister(l);
	close_mr(l->other_mr);
}

static void obey(struct listener *l, const struct order *o, struct answer *a)
{
	switch ((enum order_kind)o->kind) {
	case ORDER_OPEN:
		listener_open(l, &o->terms);
		a->address = end_address(&l->end, l->mr);
		a->other_rkey = l->other_mr->rkey;
		break;
	case ORDER_CONNECT:
		listener_connect(l, &o->caller);
		break;
	case ORDER_RECEIVES:
		listener_receives(l, o->nr);
		break;
	case ORDER_OUTCOME:
		listener_outcome(l, o->nr, &a->outcome);
		break;
	case ORDER_CLOSE_QP:
		listener_close_qp(l);
		break;
	case ORDER_DEREGISTER:
		listener_deregister(l);
		break;
	case ORDER_CLOSE:
		listener_close(l);
		break;
	}
}

void serve_pairs(const char *device, const char *port)
{
	struct listener l = {};
	struct order order;

	rig_open(&l.rig, device);
	l.buf = open_buffer();
	l.other_pd = open_pd(&l.rig);
	l.chan = chan_accept(port);
	while (chan_recv(l.chan, &order, sizeof(order))) {
		struct answer answer = {};

		obey(&l, &order, &answer);
		chan_send(l.chan, &answer, sizeof(answer));
	}
	close(l.chan);
	close_pd(l.other_pd);
	rig_close(&l.rig);
	munmap(l.buf, PAIR_BYTES);
}

/* ---- the caller ---- */

void caller_open(struct caller *c, const char *device, const char *host,
		 const char *port)
{
	rig_open(&c->rig, device);
	c->buf = open_buffer();
	c->mr = open_mr(c->rig.pd, c->buf, ALL_REMOTE);
	c->read_only = open_mr(c->rig.pd, c->buf, 0);
	c->other_pd = open_pd(&c->rig);
	c->other_mr = open_mr(c->other_pd, c->buf, ALL_REMOTE);
	c->chan = chan_connect(host, port);
}

void caller_close(struct caller *c)
{
	close(c->chan);
	close_mr(c->other_mr);
	close_pd(c->other_pd);
	close_mr(c->read_only);
	close_mr(c->mr);
	rig_close(&c->rig);
	munmap(c->buf, PAIR_BYTES);
}

static struct answer give_order(struct caller *c, const struct order *order)
{
	struct answer answer;

	chan_send(c->chan, order, sizeof(*order));
	if (!chan_recv(c->chan, &answer, sizeof(answer)))
		die("the listener ended");
	return answer;
}

void pair_open_only(struct pair *p, struct caller *c,
		    const struct terms *terms, const struct end_attr *attr)
{
	static const struct end_attr usual = {
		.type = IBV_QPT_RC,
		.depth = PAIR_DEPTH,
		.sges = 2,
		.max_inline = 64,
	};
	struct order order = { .kind = ORDER_OPEN, .terms = *terms };
	struct answer answer = give_order(c, &order);

	p->c = c;
	p->peer = answer.address;
	p->other_rkey = answer.other_rkey;
	end_open(&p->end, &c->rig, attr ? attr : &usual);
}

void pair_connect_peer(struct pair *p)
{
	struct order order = {
		.kind = ORDER_CONNECT,
		.caller = end_address(&p->end, p->c->mr),
	};

	give_order(p->c, &order);
}

void pair_open(struct pair *p, struct caller *c, const struct terms *terms,
	       const struct link_attr *link)
{
	pair_open_only(p, c, terms, NULL);
	pair_connect_peer(p);
	end_connect(&p->end, &p->peer, link ? link : &link_default);
}

void pair_close(struct pair *p)
{
	end_close(&p->end);
	give_order(p->c, &(struct order) { .kind = ORDER_CLOSE });
}

void peer_post_receives(struct pair *p, uint32_t nr)
{
	give_order(p->c, &(struct order) { .kind = ORDER_RECEIVES, .nr = nr });
}

void peer_close_qp(struct pair *p)
{
	give_order(p->c, &(struct order) { .kind = ORDER_CLOSE_QP });
}

void peer_deregister(struct pair *p)
{
	give_order(p->c, &(struct order) { .kind = ORDER_DEREGISTER });
}

struct outcome peer_outcome(struct pair *p, uint32_t nr)
{
	struct order order = { .kind = ORDER_OUTCOME, .nr = nr };

	return give_order(p->c, &order).outcome;
}
