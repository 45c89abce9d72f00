// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does every byte arrive, and none elsewhere?
 *
 *	vmri-verify [-d DEVICE] [-p PORT] [-s SEED]		waits for a caller
 *	vmri-verify [-d DEVICE] [-p PORT] [-s SEED] HOST	calls it
 *
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
#include <unistd.h>

#include "arena.h"
#include "rig.h"
#include "stream.h"

#define GRH 40
#define MAX_MSG (1024 * 1024 + 3)
#define MAX_SGES 8
#define MAX_INLINE 220

static const uint32_t sizes[] = {
	0, 1, 2, 3, 7, 8, 63, 64, 65, MAX_INLINE, 4095, 4096, 4097,
	65535, 65536, 65537, 1024 * 1024, MAX_MSG,
};

/* One row: an operation in one of its forms. */
struct row {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	int sges;
	bool is_inline;
	bool grh;
};

#define RC(op, sges, inl)	{ "RC " #op, IBV_QPT_RC, IBV_WR_##op, sges, inl, false }
#define UD(op, sges, inl, grh)	{ "UD " #op, IBV_QPT_UD, IBV_WR_##op, sges, inl, grh }

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
	struct arena arena;
	struct end rc;
	struct end ud;
	struct address peer_rc;
	struct address peer_ud;
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
	return t->row->type == IBV_QPT_UD;
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

static struct end *end_of(struct side *s, const struct test *t)
{
	return is_ud(t) ? &s->ud : &s->rc;
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
		wr.wr.ud.remote_qpn = s->peer_ud.qpn;
		wr.wr.ud.remote_qkey = RIG_QKEY;
	} else if (!is_send(t)) {
		remote_layout(t, &remote);
		wr.wr.rdma.remote_addr = s->peer_rc.addr +
					 remote.piece[0].offset;
		wr.wr.rdma.rkey = s->peer_rc.rkey;
	}
	ret = ibv_post_send(end_of(s, t)->qp, &wr, &bad_wr);
	if (ret)
		die("ibv_post_send: %s", strerror(ret));
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
	struct ibv_ah_attr to = ah_to(&s->rig, &s->peer_ud, t->row->grh);
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
	struct ibv_recv_wr *bad_wr, wr = {
		.wr_id = ~t->seed,
		.sg_list = sges,
		/* The data of a WRITE goes elsewhere. */
		.num_sge = is_send(t) ? remote->nr : 0,
	};
	int ret;

	layout_sges(remote, &s->arena, sges);
	ret = ibv_post_recv(end_of(s, t)->qp, &wr, &bad_wr);
	if (ret)
		die("ibv_post_recv: %s", strerror(ret));
}

/* The GRH in front of a datagram (IBTA 1.4, 8.3). */
static void check_grh(struct side *s, const uint8_t *grh, struct verdict *v)
{
	check_field(v, "the GRH's version", grh[0] >> 4, 6);
	check_field(v, "the GRH's next header", grh[6], 0x1b);
	if (memcmp(grh + 8, &s->peer_ud.gid, 16))
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
	check_field(v, "the receive's qp_num", wc.qp_num, end->qp->qp_num);
	check_field(v, "the receive's byte_len", wc.byte_len,
		    t->size + (is_ud(t) ? GRH : 0));
	if (has_imm(t))
		check_field(v, "the immediate data", wc.imm_data, t->imm);
	if (is_ud(t)) {
		flags |= has_grh(s, t) ? IBV_WC_GRH : 0;
		check_field(v, "the receive's src_qp", wc.src_qp,
			    s->peer_ud.qpn);
		check_field(v, "the receive's slid", wc.slid,
			    s->peer_ud.lid);
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
		check_grh(s, datagram, v);
	memcpy(datagram + GRH, t->payload, t->size);
	arena_expect(&s->arena, remote, datagram, GRH + t->size);
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
	check_memory(s, v, "at the responder");
}

/* ---- both ---- */

static void connect_sides(struct side *s)
{
	struct address mine[2], theirs[2];

	end_open(&s->rc, &s->rig, &(struct end_attr) {
		.type = IBV_QPT_RC,
		.sges = MAX_SGES,
		.max_inline = MAX_INLINE,
	});
	end_open(&s->ud, &s->rig, &(struct end_attr) {
		.type = IBV_QPT_UD,
		.sges = MAX_SGES,
		.max_inline = MAX_INLINE,
	});
	mine[0] = end_address(&s->rc, s->arena.mr[0]);
	mine[1] = end_address(&s->ud, NULL);
	chan_send(s->chan, mine, sizeof(mine));
	hear(s, theirs, sizeof(theirs));
	s->peer_rc = theirs[0];
	s->peer_ud = theirs[1];
	end_connect(&s->rc, &s->peer_rc, &link_default);
	end_activate_ud(&s->ud);
	chan_sync(s->chan);
}

static void disconnect_sides(struct side *s)
{
	end_close(&s->rc);
	end_close(&s->ud);
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
	if (row->type == IBV_QPT_UD)
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

	snprintf(name, sizeof(name), "%s, %d SGE%s%s%s, %s sends", row->name,
		 row->sges, row->sges > 1 ? "s" : "",
		 row->is_inline ? ", inline" : "", row->grh ? ", GRH" : "",
		 requester == s->is_caller ? "caller" : "listener");
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		t.size = sizes[i];
		t.seed = next_random(seed);
		t.imm = htonl(t.seed >> 32);
		t.by_event = i % 2;
		if (!size_fits(s, row, t.size))
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
		run_row(s, &rows[i], requester, seed);
}

int main(int argc, char **argv)
{
	const char *device = NULL, *port = "18517", *host;
	struct side s = {};
	uint64_t seed = 1;
	int opt;

	while ((opt = getopt(argc, argv, "d:p:s:")) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'p':
			port = optarg;
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		default:
			die("usage: %s [-d DEVICE] [-p PORT] [-s SEED] [HOST]",
			    argv[0]);
		}
	}
	host = argv[optind];

	rig_open(&s.rig, device);
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
