// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does every byte arrive, and none elsewhere?
 *
 *	vmri-verify [-gq] [-d DEVICE] [-p PORT] [-s SEED]	waits for a caller
 *	vmri-verify [-gq] [-d DEVICE] [-p PORT] [-s SEED] HOST	calls it
 *
 * With -q, which both sides must have, a case in three is run: other sizes for each
 * operation.  With -g, likewise, connections are made to GIDs, and only what has peers
 * on other hosts is tried: not XRC, and UD on Ethernet only.
 * Both sides run the same list of cases in step, with the same seed; first the
 * caller sends, then the other.  Each case is one operation of one size; both
 * sides then compare all memory around it, and all fields of the completions.
 * A check is a row of sizes; both sides' verdicts are in the caller's output.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "rig.h"
#include "stream.h"

#define GRH 40
#define MAX_MSG (1024 * 1024 + 3)
#define MAX_SGES 8
#define MAX_INLINE 220
/* Of 10 ms, that a write may come late. */
#define LATE_NAPS 500

static const uint32_t sizes[] = {
	0, 1, 2, 3, 7, 8, 63, 64, 65, MAX_INLINE, 4095, 4096, 4097,
	65535, 65536, 65537, 1024 * 1024, MAX_MSG,
};

/* The queue pairs of either side. */
enum kind { RC, UC, UD, XRC, RC_SRQ, UD_SRQ, KINDS };

#define CALLS_UD (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define CALLS_UC (CALLS_UD | IBV_QP_EX_WITH_RDMA_WRITE | \
		  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define CALLS_RC (CALLS_UC | IBV_QP_EX_WITH_RDMA_READ)

static const struct end_attr ends[KINDS] = {
	[RC] = { .type = IBV_QPT_RC, .send_ops = CALLS_RC },
	[UC] = { .type = IBV_QPT_UC, .send_ops = CALLS_UC },
	[UD] = { .type = IBV_QPT_UD, .send_ops = CALLS_UD },
	[XRC] = { .type = IBV_QPT_XRC_SEND, .send_ops = CALLS_RC },
	[RC_SRQ] = { .type = IBV_QPT_RC, .shared = true },
	[UD_SRQ] = { .type = IBV_QPT_UD, .shared = true },
};

/* One row: an operation in one of its forms. */
struct row {
	const char *name;
	enum kind kind;
	enum ibv_wr_opcode opcode;
	int sges;
	bool is_inline;
	bool grh;
	bool by_calls;		/* of struct ibv_qp_ex */
};

#define ROW(kind, op, sges, inl, grh, calls) \
	{ #kind " " #op, kind, IBV_WR_##op, sges, inl, grh, calls }
#define RC(op, sges, inl)	ROW(RC, op, sges, inl, false, false)
#define UC(op, sges, inl)	ROW(UC, op, sges, inl, false, false)
#define XRC(op, sges, inl)	ROW(XRC, op, sges, inl, false, false)
#define RC_SRQ(op, sges, inl)	ROW(RC_SRQ, op, sges, inl, false, false)
#define UD(op, sges, inl, grh)	ROW(UD, op, sges, inl, grh, false)
#define UD_SRQ(op, sges, inl, grh) ROW(UD_SRQ, op, sges, inl, grh, false)
#define CALLS(kind, op, sges, inl) ROW(kind, op, sges, inl, false, true)

static const struct row rows[] = {
	RC(SEND, 1, false),
	RC(SEND, 3, false),
	RC(SEND, MAX_SGES, false),
	RC(SEND, 1, true),
	RC(SEND, 3, true),
	RC(SEND_WITH_IMM, 1, false),
	RC(SEND_WITH_IMM, 3, false),
	RC(SEND_WITH_IMM, 3, true),
	RC(RDMA_WRITE, 1, false),
	RC(RDMA_WRITE, 3, false),
	RC(RDMA_WRITE, MAX_SGES, false),
	RC(RDMA_WRITE, 1, true),
	RC(RDMA_WRITE, 3, true),
	RC(RDMA_WRITE_WITH_IMM, 1, false),
	RC(RDMA_WRITE_WITH_IMM, 3, false),
	RC(RDMA_WRITE_WITH_IMM, 3, true),
	RC(RDMA_READ, 1, false),
	RC(RDMA_READ, 3, false),
	RC(RDMA_READ, MAX_SGES, false),
	UD(SEND, 1, false, false),
	UD(SEND, 3, false, false),
	UD(SEND, 3, false, true),
	UD(SEND, 1, true, false),
	UD(SEND_WITH_IMM, 1, false, false),
	UD(SEND_WITH_IMM, 3, false, true),
	UD(SEND_WITH_IMM, 3, true, false),
	UC(SEND, 3, false),
	UC(SEND, 1, true),
	UC(SEND_WITH_IMM, 1, false),
	UC(RDMA_WRITE, 3, false),
	UC(RDMA_WRITE_WITH_IMM, 3, false),
	RC_SRQ(SEND, 3, false),
	RC_SRQ(SEND_WITH_IMM, 1, false),
	RC_SRQ(RDMA_WRITE_WITH_IMM, 3, false),
	UD_SRQ(SEND, 3, false, true),
	UD_SRQ(SEND_WITH_IMM, 1, false, false),
	XRC(SEND, 3, false),
	XRC(SEND_WITH_IMM, 1, true),
	XRC(RDMA_WRITE, 3, false),
	XRC(RDMA_WRITE_WITH_IMM, 1, false),
	XRC(RDMA_READ, 3, false),
	CALLS(RC, SEND, 3, false),
	CALLS(RC, SEND, 3, true),
	CALLS(RC, SEND_WITH_IMM, 1, true),
	CALLS(RC, RDMA_WRITE, 1, false),
	CALLS(RC, RDMA_WRITE_WITH_IMM, 3, false),
	CALLS(RC, RDMA_READ, 3, false),
	CALLS(UC, RDMA_WRITE, 1, true),
	CALLS(UD, SEND, 3, false),
	CALLS(UD, SEND_WITH_IMM, 1, true),
	CALLS(XRC, SEND, 3, false),
	CALLS(XRC, RDMA_WRITE, 1, true),
	CALLS(XRC, RDMA_READ, 1, false),
};

/* One case, the same on both sides. */
struct test {
	const struct row *row;
	uint32_t size;
	uint64_t seed;
	uint32_t imm;		/* network order */
	bool by_event;
	uint8_t *payload;	/* what the message holds */
};

struct side {
	struct rig rig;
	int chan;
	bool is_caller;
	bool quick;
	bool remote;
	struct arena arena;
	struct end end[KINDS];
	struct address peer[KINDS];
	uint8_t *payload;
};

/* Empty: the case passed. */
struct verdict {
	char why[160];
};

static void blame(struct verdict *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Wait for what the other side has to say. */
static void hear(struct side *s, void *data, size_t len)
{
	if (!chan_recv(s->chan, data, len))
		die("the other side ended");
}

/* The first reason is the one that counts. */
static void blame(struct verdict *v, const char *fmt, ...)
{
	va_list args;

	if (v->why[0])
		return;
	va_start(args, fmt);
	vsnprintf(v->why, sizeof(v->why), fmt, args);
	va_end(args);
}

static bool has_imm(const struct test *t)
{
	return t->row->opcode == IBV_WR_SEND_WITH_IMM ||
	       t->row->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_send(const struct test *t)
{
	return t->row->opcode == IBV_WR_SEND ||
	       t->row->opcode == IBV_WR_SEND_WITH_IMM;
}

static bool takes_receive(const struct test *t)
{
	return is_send(t) || t->row->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_read(const struct test *t)
{
	return t->row->opcode == IBV_WR_RDMA_READ;
}

static bool is_ud(const struct test *t)
{
	return ends[t->row->kind].type == IBV_QPT_UD;
}

static bool on_ethernet(const struct side *s)
{
	return s->rig.port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* On Ethernet every datagram has one, or an IP header in its place. */
static bool has_grh(const struct side *s, const struct test *t)
{
	return is_ud(t) && (t->row->grh || on_ethernet(s));
}

/* Does either side have such queue pairs? */
static bool has_kind(const struct side *s, enum kind kind)
{
	return !s->remote || (ends[kind].type != IBV_QPT_XRC_SEND &&
			      (ends[kind].type != IBV_QPT_UD || on_ethernet(s)));
}

static struct end *end_of(struct side *s, const struct test *t)
{
	return &s->end[t->row->kind];
}

static const struct address *peer_of(const struct side *s,
				     const struct test *t)
{
	return &s->peer[t->row->kind];
}

/* Where the message lies at the side that sends the request. */
static void local_layout(const struct test *t, struct layout *l)
{
	layout_make(l, t->size, t->row->sges, t->seed ^ 1);
}

/*
 * Where it lies at the other: one piece for RDMA; for a receive several, at
 * times with room behind, and with the GRH's before for UD.
 */
static void remote_layout(const struct test *t, struct layout *l)
{
	uint32_t size = t->size;
	int pieces = 1;

	if (is_send(t)) {
		pieces = 1 + t->seed % MAX_SGES;
		size += t->seed % 3 ? t->seed % 100 : 0;
	}
	if (is_ud(t))
		size += GRH;
	layout_make(l, size, pieces, t->seed ^ 2);
}

static void check_memory(const struct side *s, struct verdict *v,
			 const char *where)
{
	ptrdiff_t i = arena_compare(&s->arena);

	if (i >= 0)
		blame(v, "%s: byte %td is %#x, not %#x", where, i,
		      s->arena.mem[i], s->arena.want[i]);
}

static void check_field(struct verdict *v, const char *what, uint64_t is,
			uint64_t want)
{
	if (is != want)
		blame(v, "%s is %#lx, not %#lx", what, is, want);
}

/* ---- the side that sends the request ---- */

static const struct {
	enum ibv_wr_opcode wr;
	enum ibv_wc_opcode wc;
} wc_opcodes[] = {
	{ IBV_WR_SEND, IBV_WC_SEND },
	{ IBV_WR_SEND_WITH_IMM, IBV_WC_SEND },
	{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE },
	{ IBV_WR_RDMA_READ, IBV_WC_RDMA_READ },
};

static enum ibv_wc_opcode wc_opcode_of(enum ibv_wr_opcode wr)
{
	size_t i;

	for (i = 0; wc_opcodes[i].wr != wr; i++)
		;
	return wc_opcodes[i].wc;
}

static void post_request(struct side *s, const struct test *t,
			 const struct layout *local, struct ibv_ah *ah)
{
	struct ibv_sge sges[ARENA_PIECES];
	struct ibv_send_wr *bad_wr, wr = {
		.wr_id = t->seed,
		.sg_list = sges,
		.num_sge = local->nr,
		.opcode = t->row->opcode,
		.send_flags = IBV_SEND_SIGNALED |
			      (t->row->is_inline ? IBV_SEND_INLINE : 0),
		.imm_data = t->imm,
	};
	struct layout remote;
	int ret;

	layout_sges(local, &s->arena, sges);
	if (is_ud(t)) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = peer_of(s, t)->qpn;
		wr.wr.ud.remote_qkey = RIG_QKEY;
	} else if (!is_send(t)) {
		remote_layout(t, &remote);
		wr.wr.rdma.remote_addr = peer_of(s, t)->addr +
					 remote.piece[0].offset;
		wr.wr.rdma.rkey = peer_of(s, t)->rkey;
	}
	wr.qp_type.xrc.remote_srqn = peer_of(s, t)->srqn;
	ret = t->row->by_calls ?
	      post_by_calls(end_of(s, t), &wr) :
	      ibv_post_send(end_of(s, t)->qp, &wr, &bad_wr);
	if (ret)
		die("posting a request: %s", strerror(ret));
	/* Inline data has been copied: the memory is ours again. */
	if (t->row->is_inline) {
		memset(s->arena.mem, 0xee, s->arena.window);
		memset(s->arena.want, 0xee, s->arena.window);
	}
}

static void check_request(struct side *s, const struct test *t,
			  struct verdict *v)
{
	struct end *end = end_of(s, t);
	struct ibv_wc wc;

	if (!wait_wc(end, end->send_cq, &wc, t->by_event, RIG_LIMIT)) {
		blame(v, "the request did not complete");
		return;
	}
	if (wc.status) {
		blame(v, "the request ended with %s (vendor error %u)",
		      ibv_wc_status_str(wc.status), wc.vendor_err);
		return;
	}
	check_field(v, "the request's opcode", wc.opcode,
		    wc_opcode_of(t->row->opcode));
	check_field(v, "the request's wr_id", wc.wr_id, t->seed);
	check_field(v, "the request's qp_num", wc.qp_num, end->qp->qp_num);
	if (is_read(t))
		check_field(v, "the request's byte_len", wc.byte_len, t->size);
}

static void run_requester(struct side *s, const struct test *t,
			  struct verdict *v)
{
	struct ibv_ah_attr to = ah_to(&s->rig, peer_of(s, t), t->row->grh);
	struct ibv_ah *ah = NULL;
	struct layout local;

	local_layout(t, &local);
	arena_fill(&s->arena, &local, t->seed ^ 3);
	if (!is_read(t)) {
		arena_expect(&s->arena, &local, t->payload, t->size);
		arena_store(&s->arena);
	}
	if (is_ud(t)) {
		ah = ibv_create_ah(s->rig.pd, &to);
		if (!ah)
			die("ibv_create_ah: %s", strerror(errno));
	}
	hear(s, &(char) { 0 }, 1);

	post_request(s, t, &local, ah);
	check_request(s, t, v);
	if (is_read(t))
		arena_expect(&s->arena, &local, t->payload, t->size);
	check_memory(s, v, "at the requester");
	if (ah)
		ibv_destroy_ah(ah);
}

/* ---- the other side ---- */

static void post_receive(struct side *s, const struct test *t,
			 const struct layout *remote)
{
	struct ibv_sge sges[ARENA_PIECES];
	struct ibv_recv_wr wr = {
		.wr_id = ~t->seed,
		.sg_list = sges,
		/* The data of a WRITE goes elsewhere. */
		.num_sge = is_send(t) ? remote->nr : 0,
	};
	int ret;

	layout_sges(remote, &s->arena, sges);
	ret = end_post_recv(end_of(s, t), &wr);
	if (ret)
		die("posting a receive: %s", strerror(ret));
}

/* The GRH in front of a datagram (IBTA 1.4, 8.3). */
static void check_grh(struct side *s, const struct test *t,
		      const uint8_t *grh, struct verdict *v)
{
	check_field(v, "the GRH's version", grh[0] >> 4, 6);
	check_field(v, "the GRH's next header", grh[6], 0x1b);
	if (memcmp(grh + 8, &peer_of(s, t)->gid, 16))
		blame(v, "the GRH's source is not the sender");
	if (memcmp(grh + 24, &s->rig.gid, 16))
		blame(v, "the GRH's destination is not this port");
}

static void check_receive(struct side *s, const struct test *t,
			  struct verdict *v)
{
	struct end *end = end_of(s, t);
	unsigned int flags = has_imm(t) ? IBV_WC_WITH_IMM : 0;
	struct ibv_wc wc;

	if (!wait_wc(end, end->recv_cq, &wc, t->by_event, RIG_LIMIT)) {
		blame(v, "the receive did not complete");
		return;
	}
	if (wc.status) {
		blame(v, "the receive ended with %s (vendor error %u)",
		      ibv_wc_status_str(wc.status), wc.vendor_err);
		return;
	}
	check_field(v, "the receive's opcode", wc.opcode,
		    is_send(t) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
	check_field(v, "the receive's wr_id", wc.wr_id, ~t->seed);
	check_field(v, "the receive's qp_num", wc.qp_num,
		    end->target ? end->target->qp_num : end->qp->qp_num);
	check_field(v, "the receive's byte_len", wc.byte_len,
		    t->size + (is_ud(t) ? GRH : 0));
	if (has_imm(t))
		check_field(v, "the immediate data", wc.imm_data, t->imm);
	if (is_ud(t)) {
		flags |= has_grh(s, t) ? IBV_WC_GRH : 0;
		check_field(v, "the receive's src_qp", wc.src_qp,
			    peer_of(s, t)->qpn);
		check_field(v, "the receive's slid", wc.slid,
			    peer_of(s, t)->lid);
	}
	check_field(v, "the receive's wc_flags", wc.wc_flags, flags);
}

/* What the memory must hold now that the operation is over. */
static void expect_remote(struct side *s, const struct test *t,
			  const struct layout *remote, struct verdict *v)
{
	uint8_t datagram[GRH + 4096];

	if (is_read(t))
		return;
	if (!is_ud(t)) {
		arena_expect(&s->arena, remote, t->payload, t->size);
		return;
	}
	/* Without a GRH its room is undefined. */
	arena_take(&s->arena, remote, datagram, GRH);
	if (has_grh(s, t) && !on_ethernet(s))
		check_grh(s, t, datagram, v);
	memcpy(datagram + GRH, t->payload, t->size);
	arena_expect(&s->arena, remote, datagram, GRH + t->size);
}

/*
 * Nothing tells the responder of an unreliable write, and what comes from another host
 * may come after the requester's word that it was sent.
 */
static void await_write(const struct side *s, const struct test *t)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	int i;

	if (t->row->kind != UC || t->row->opcode != IBV_WR_RDMA_WRITE)
		return;
	for (i = 0; i < LATE_NAPS && arena_compare(&s->arena) >= 0; i++)
		nanosleep(&nap, NULL);
}

/* The requester's verdict also says that the operation is over for it. */
static void run_responder(struct side *s, const struct test *t,
			  struct verdict *v, struct verdict *theirs)
{
	struct layout remote;

	remote_layout(t, &remote);
	arena_fill(&s->arena, &remote, t->seed ^ 4);
	if (is_read(t)) {
		arena_expect(&s->arena, &remote, t->payload, t->size);
		arena_store(&s->arena);
	}
	if (takes_receive(t))
		post_receive(s, t, &remote);
	chan_send(s->chan, "", 1);

	hear(s, theirs, sizeof(*theirs));
	if (takes_receive(t))
		check_receive(s, t, v);
	expect_remote(s, t, &remote, v);
	await_write(s, t);
	check_memory(s, v, "at the responder");
}

/* ---- both ---- */

static void connect_sides(struct side *s)
{
	struct address mine[KINDS] = {};
	int i;

	for (i = 0; i < KINDS; i++) {
		struct end_attr attr = ends[i];

		if (!has_kind(s, i))
			continue;
		attr.sges = MAX_SGES;
		attr.max_inline = MAX_INLINE;
		end_open(&s->end[i], &s->rig, &attr);
		mine[i] = end_address(&s->end[i], s->arena.mr[0]);
	}
	chan_send(s->chan, mine, sizeof(mine));
	hear(s, s->peer, sizeof(s->peer));
	for (i = 0; i < KINDS; i++) {
		if (!has_kind(s, i))
			continue;
		if (ends[i].type == IBV_QPT_UD)
			end_activate_ud(&s->end[i]);
		else
			end_connect(&s->end[i], &s->peer[i], &link_default);
	}
	chan_sync(s->chan);
}

static void disconnect_sides(struct side *s)
{
	int i;

	for (i = 0; i < KINDS; i++)
		if (has_kind(s, i))
			end_close(&s->end[i]);
}

/* Run one case; what either side found.  False: the queue pairs are new. */
static bool run_test(struct side *s, const struct test *t, bool requester,
		     struct verdict *v)
{
	struct verdict theirs;

	memset(v, 0, sizeof(*v));
	pattern(t->payload, t->size, t->seed);
	if (requester) {
		run_requester(s, t, v);
		chan_send(s->chan, v, sizeof(*v));
		hear(s, &theirs, sizeof(theirs));
	} else {
		run_responder(s, t, v, &theirs);
		chan_send(s->chan, v, sizeof(*v));
	}
	if (theirs.why[0])
		blame(v, "%s", theirs.why);
	if (!v->why[0])
		return true;
	disconnect_sides(s);
	connect_sides(s);
	return false;
}

static bool size_fits(const struct side *s, const struct row *row,
		      uint32_t size)
{
	if (row->is_inline)
		return size <= MAX_INLINE;
	if (ends[row->kind].type == IBV_QPT_UD)
		return size <= 128U << s->rig.port.active_mtu;
	return true;
}

static void run_row(struct side *s, const struct row *row, bool requester,
		    uint64_t *seed)
{
	struct test t = { .row = row, .payload = s->payload };
	int passed = 0, failed = 0;
	struct verdict v;
	char name[128];
	size_t i;

	snprintf(name, sizeof(name), "%s%s, %d SGE%s%s%s, %s sends", row->name,
		 row->by_calls ? " by calls" : "", row->sges,
		 row->sges > 1 ? "s" : "", row->is_inline ? ", inline" : "",
		 row->grh ? ", GRH" : "",
		 requester == s->is_caller ? "caller" : "listener");
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		t.size = sizes[i];
		t.seed = next_random(seed);
		t.imm = htonl(t.seed >> 32);
		t.by_event = i % 2;
		if ((s->quick && (row - rows + i) % 3) || !size_fits(s, row, t.size))
			continue;
		if (run_test(s, &t, requester, &v)) {
			passed++;
		} else {
			failed++;
			bad(name, "%u bytes: %s", t.size, v.why);
		}
	}
	if (!failed) {
		snprintf(name + strlen(name), sizeof(name) - strlen(name),
			 ": %d sizes", passed);
		ok(name);
	}
}

static void run_rows(struct side *s, bool requester, uint64_t *seed)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (has_kind(s, rows[i].kind))
			run_row(s, &rows[i], requester, seed);
}

int main(int argc, char **argv)
{
	const char *device = NULL, *port = "18517", *host;
	struct side s = {};
	uint64_t seed = 1;
	int opt;

	while ((opt = getopt(argc, argv, "d:gp:qs:")) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			s.remote = true;
			break;
		case 'p':
			port = optarg;
			break;
		case 'q':
			s.quick = true;
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		default:
			die("usage: %s [-gq] [-d DEVICE] [-p PORT] [-s SEED] [HOST]",
			    argv[0]);
		}
	}
	host = argv[optind];

	rig_open(&s.rig, device);
	s.rig.grh = s.remote;
	arena_open(&s.arena, &s.rig, MAX_MSG + GRH + 100);
	s.payload = malloc(MAX_MSG);
	if (!s.payload)
		die("no memory");
	s.is_caller = host;
	s.chan = host ? chan_connect(host, port) : chan_accept(port);
	connect_sides(&s);

	run_rows(&s, s.is_caller, &seed);
	run_rows(&s, !s.is_caller, &seed);
	disconnect_sides(&s);

	run_streams(&s.rig, s.chan, s.is_caller, seed);

	chan_sync(s.chan);
	arena_close(&s.arena);
	rig_close(&s.rig);
	return report_status();
}
