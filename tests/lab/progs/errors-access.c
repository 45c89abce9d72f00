// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that name memory they must not.  A key that does not allow it is a
 * remote access error; a queue pair that does not, an invalid request (IBTA 1.4,
 * 9.7.4.1.2 and 9.9.3).
 */
#include <string.h>

#include "errors.h"

/* Which key a request uses, and where from it starts. */
enum key {
	KEY_GOOD,
	KEY_BAD,
	KEY_OTHER_PD,
	KEY_READ_ONLY,
};

enum place {
	PLACE_START,
	PLACE_BEFORE,		/* the byte before the buffer */
	PLACE_END,		/* all but the last byte within it */
	PLACE_WRAP,		/* over the end of all addresses */
};

struct access_case {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum key local;
	enum place local_at;
	enum key remote;
	enum place remote_at;
	struct terms terms;
	enum ibv_wc_status status;
	bool peer_fails;	/* the other queue pair ends in error */
};

#define RECV1	{ .receives = 1 }

static const struct access_case cases[] = {
	{ "SEND, lkey of nothing", IBV_WR_SEND, .local = KEY_BAD,
	  .terms = RECV1, .status = IBV_WC_LOC_PROT_ERR },
	{ "SEND, lkey of another PD", IBV_WR_SEND, .local = KEY_OTHER_PD,
	  .terms = RECV1, .status = IBV_WC_LOC_PROT_ERR },
	{ "SEND, from before the MR", IBV_WR_SEND, .local_at = PLACE_BEFORE,
	  .terms = RECV1, .status = IBV_WC_LOC_PROT_ERR },
	{ "SEND, over the end of the MR", IBV_WR_SEND, .local_at = PLACE_END,
	  .terms = RECV1, .status = IBV_WC_LOC_PROT_ERR },
	{ "SEND, an address that wraps", IBV_WR_SEND, .local_at = PLACE_WRAP,
	  .terms = RECV1, .status = IBV_WC_LOC_PROT_ERR },
	{ "WRITE, lkey of nothing", IBV_WR_RDMA_WRITE, .local = KEY_BAD,
	  .status = IBV_WC_LOC_PROT_ERR },
	{ "READ, into an MR that is not writable", IBV_WR_RDMA_READ,
	  .local = KEY_READ_ONLY, .status = IBV_WC_LOC_PROT_ERR },
	{ "READ, over the end of the local MR", IBV_WR_RDMA_READ,
	  .local_at = PLACE_END, .status = IBV_WC_LOC_PROT_ERR },
	{ "WRITE, rkey of nothing", IBV_WR_RDMA_WRITE, .remote = KEY_BAD,
	  .status = IBV_WC_REM_ACCESS_ERR, .peer_fails = true },
	{ "WRITE, rkey of another PD", IBV_WR_RDMA_WRITE,
	  .remote = KEY_OTHER_PD, .status = IBV_WC_REM_ACCESS_ERR,
	  .peer_fails = true },
	{ "WRITE, to before the MR", IBV_WR_RDMA_WRITE,
	  .remote_at = PLACE_BEFORE, .status = IBV_WC_REM_ACCESS_ERR,
	  .peer_fails = true },
	{ "WRITE, over the end of the MR", IBV_WR_RDMA_WRITE,
	  .remote_at = PLACE_END, .status = IBV_WC_REM_ACCESS_ERR,
	  .peer_fails = true },
	{ "WRITE, an address that wraps", IBV_WR_RDMA_WRITE,
	  .remote_at = PLACE_WRAP, .status = IBV_WC_REM_ACCESS_ERR,
	  .peer_fails = true },
	{ "WRITE, an MR without REMOTE_WRITE", IBV_WR_RDMA_WRITE,
	  .terms = { .mr_access = IBV_ACCESS_LOCAL_WRITE |
				  IBV_ACCESS_REMOTE_READ },
	  .status = IBV_WC_REM_ACCESS_ERR, .peer_fails = true },
	{ "WRITE, a queue pair without REMOTE_WRITE", IBV_WR_RDMA_WRITE,
	  .terms = { .qp_access = IBV_ACCESS_REMOTE_READ },
	  .status = IBV_WC_REM_INV_REQ_ERR, .peer_fails = true },
	{ "READ, rkey of nothing", IBV_WR_RDMA_READ, .remote = KEY_BAD,
	  .status = IBV_WC_REM_ACCESS_ERR, .peer_fails = true },
	{ "READ, rkey of another PD", IBV_WR_RDMA_READ,
	  .remote = KEY_OTHER_PD, .status = IBV_WC_REM_ACCESS_ERR,
	  .peer_fails = true },
	{ "READ, over the end of the MR", IBV_WR_RDMA_READ,
	  .remote_at = PLACE_END, .status = IBV_WC_REM_ACCESS_ERR,
	  .peer_fails = true },
	{ "READ, an address that wraps", IBV_WR_RDMA_READ,
	  .remote_at = PLACE_WRAP, .status = IBV_WC_REM_ACCESS_ERR,
	  .peer_fails = true },
	{ "READ, an MR without REMOTE_READ", IBV_WR_RDMA_READ,
	  .terms = { .mr_access = IBV_ACCESS_LOCAL_WRITE |
				  IBV_ACCESS_REMOTE_WRITE },
	  .status = IBV_WC_REM_ACCESS_ERR, .peer_fails = true },
	{ "READ, a queue pair without any remote right", IBV_WR_RDMA_READ,
	  .terms = { .no_access = 1 }, .status = IBV_WC_REM_INV_REQ_ERR,
	  .peer_fails = true },
	{ "WRITE_WITH_IMM, rkey of nothing", IBV_WR_RDMA_WRITE_WITH_IMM,
	  .remote = KEY_BAD, .terms = RECV1,
	  .status = IBV_WC_REM_ACCESS_ERR, .peer_fails = true },
};

#define LENGTH 64

static uint32_t local_key(const struct caller *c, enum key key)
{
	switch (key) {
	case KEY_BAD:
		return ~c->mr->lkey;
	case KEY_OTHER_PD:
		return c->other_mr->lkey;
	case KEY_READ_ONLY:
		return c->read_only->lkey;
	default:
		return c->mr->lkey;
	}
}

static uint64_t place(uint64_t start, enum place at)
{
	switch (at) {
	case PLACE_BEFORE:
		return start - 1;
	case PLACE_END:
		return start + PAIR_BYTES - LENGTH + 1;
	case PLACE_WRAP:
		return UINT64_MAX - LENGTH / 2;
	default:
		return start;
	}
}

static bool check_states(const struct access_case *t, struct pair *p)
{
	struct outcome out;

	if (!expect(t->name, "the queue pair's state", end_state(&p->end),
		    IBV_QPS_ERR))
		return false;
	out = peer_outcome(p, 0);
	return expect(t->name, "the peer's state", out.state,
		      t->peer_fails ? IBV_QPS_ERR : IBV_QPS_RTS);
}

static void run_case(const struct access_case *t, struct caller *c)
{
	struct request r;
	struct pair p;

	pair_open(&p, c, &t->terms, NULL);
	request_init(&r, c, &p, t->opcode, LENGTH);
	r.sge.lkey = local_key(c, t->local);
	r.sge.addr = place(r.sge.addr, t->local_at);
	if (t->remote == KEY_BAD)
		r.wr.wr.rdma.rkey = ~p.peer.rkey;
	else if (t->remote == KEY_OTHER_PD)
		r.wr.wr.rdma.rkey = p.other_rkey;
	r.wr.wr.rdma.remote_addr = place(p.peer.addr, t->remote_at);
	request_post(&r, &p);
	/* What is behind it in the queue is flushed, signalled or not. */
	post_send(&p, 2, false);

	if (expect_wc(t->name, &p, 1, t->status) &&
	    expect_wc(t->name, &p, 2, IBV_WC_WR_FLUSH_ERR) &&
	    check_states(t, &p))
		ok(t->name);
	pair_close(&p);
}

/* The second SGE is wrong: what the first has moved does not matter. */
static void second_sge(struct caller *c)
{
	static const char name[] = "SEND, second lkey of nothing";
	struct ibv_sge sges[2];
	struct request r;
	struct pair p;

	pair_open(&p, c, &(struct terms) { .receives = 1 }, NULL);
	request_init(&r, c, &p, IBV_WR_SEND, LENGTH);
	sges[0] = sges[1] = r.sge;
	sges[1].lkey = ~c->mr->lkey;
	r.wr.sg_list = sges;
	r.wr.num_sge = 2;
	request_post(&r, &p);
	if (expect_wc(name, &p, 1, IBV_WC_LOC_PROT_ERR))
		ok(name);
	pair_close(&p);
}

static void one_receive(struct caller *c, const char *name,
			const struct terms *terms,
			enum ibv_wc_status here, enum ibv_wc_status there)
{
	struct outcome out;
	struct pair p;

	pair_open(&p, c, terms, NULL);
	post_send(&p, 1, true);
	if (expect_wc(name, &p, 1, here)) {
		out = peer_outcome(&p, 1);
		if (expect(name, "receives completed", out.nr, 1) &&
		    expect(name, "the receive's status", out.status[0],
			   there) &&
		    expect(name, "the peer's state", out.state, IBV_QPS_ERR))
			ok(name);
	}
	pair_close(&p);
}

static void stale_key(struct caller *c)
{
	static const char name[] = "WRITE, rkey of an MR that is gone";
	struct request r;
	struct pair p;

	pair_open(&p, c, &(struct terms) {}, NULL);
	request_init(&r, c, &p, IBV_WR_RDMA_WRITE, LENGTH);
	request_post(&r, &p);
	if (expect_wc(name, &p, 1, IBV_WC_SUCCESS)) {
		peer_deregister(&p);
		request_post(&r, &p);
		if (expect_wc(name, &p, 1, IBV_WC_REM_ACCESS_ERR))
			ok(name);
	}
	pair_close(&p);
}

void test_access(struct caller *c)
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		run_case(&cases[i], c);
	second_sge(c);
	stale_key(c);
	one_receive(c, "SEND, the receive is too small",
		    &(struct terms) { .receives = 1, .receive_size = 15 },
		    IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR);
	one_receive(c, "SEND, the receive has a key of nothing",
		    &(struct terms) { .receives = 1, .bad_receives = 1 },
		    IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
}
