// SPDX-License-Identifier: GPL-2.0-only
/*
 * A stream of SENDs of many sizes over queues that are much shorter than it, so
 * that rings wrap, receivers are late (RNR), and requests are signalled only now
 * and then.  Before some messages goes an RDMA WRITE: when the message is here,
 * so must be what was written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

#define MESSAGES	500
#define DEPTH		16		/* requests of each queue */
#define SIGNAL_EVERY	4		/* messages */
#define WRITE_EVERY	5
#define SLOT		24576		/* bytes; the longest message */
#define TAIL		64		/* watched behind a message */
#define WRITE_SIZE	777
/* A WRITE may be ahead of the last message verified by two queues. */
#define WRITE_SLOTS	(2 * DEPTH)

struct memory {
	uint8_t *bytes;
	struct ibv_mr *mr;
};

struct stream {
	struct rig *rig;
	int chan;
	uint64_t seed;
	struct end end;
	struct address peer;
	struct memory out;		/* messages, then what is written */
	struct memory in;
	uint8_t *scratch;

	unsigned int to_send;
	unsigned int sent;		/* messages posted */
	unsigned int done;		/* messages known to have left */
	unsigned int to_receive;
	unsigned int received;
	char why[160];			/* what went wrong first */
};

#define ALL_BYTES	((size_t)DEPTH * SLOT + WRITE_SLOTS * WRITE_SIZE)

static uint64_t message_seed(const struct stream *s, unsigned int i,
			     bool caller_sends)
{
	return s->seed + 2 * i + caller_sends;
}

static uint32_t message_size(uint64_t seed)
{
	uint64_t r = next_random(&seed);

	/* All magnitudes alike; some empty. */
	return (r >> 8) % (1 + (SLOT - TAIL) / (1U << r % 14));
}

static uint8_t *message(const struct memory *m, unsigned int i)
{
	return m->bytes + (size_t)(i % DEPTH) * SLOT;
}

static size_t write_offset(unsigned int i)
{
	return (size_t)DEPTH * SLOT + (i / WRITE_EVERY) % WRITE_SLOTS *
	       WRITE_SIZE;
}

static void memory_open(struct memory *m, struct rig *rig)
{
	m->bytes = calloc(1, ALL_BYTES);
	if (!m->bytes)
		die("no memory");
	m->mr = ibv_reg_mr(rig->pd, m->bytes, ALL_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!m->mr)
		die("ibv_reg_mr: %s", strerror(errno));
}

static void memory_close(struct memory *m)
{
	int ret = ibv_dereg_mr(m->mr);

	if (ret)
		die("ibv_dereg_mr: %s", strerror(ret));
	free(m->bytes);
}

/* ---- sending ---- */

static struct ibv_sge sge_of(const struct memory *m, const void *at,
			     uint32_t length)
{
	return (struct ibv_sge) {
		.addr = (uintptr_t)at,
		.length = length,
		.lkey = m->mr->lkey,
	};
}

/* The next message, and the WRITE before it, as one list of requests. */
static void send_next(struct stream *s, bool caller_sends)
{
	unsigned int i = s->sent;
	uint64_t seed = message_seed(s, i, caller_sends);
	uint32_t size = message_size(seed);
	size_t written = write_offset(i);
	struct ibv_sge send_sge = sge_of(&s->out, message(&s->out, i), size);
	struct ibv_sge write_sge = sge_of(&s->out, s->out.bytes + written,
					  WRITE_SIZE);
	struct ibv_send_wr *bad_wr, send = {
		.wr_id = i,
		.sg_list = &send_sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = (i + 1) % SIGNAL_EVERY && i + 1 != s->to_send ?
			      0 : IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr write = {
		.next = &send,
		.sg_list = &write_sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {
			.remote_addr = s->peer.addr + written,
			.rkey = s->peer.rkey,
		},
	};
	bool with_write = i % WRITE_EVERY == 0;
	int ret;

	pattern(message(&s->out, i), size, seed);
	if (with_write)
		pattern(s->out.bytes + written, WRITE_SIZE, ~seed);
	ret = ibv_post_send(s->end.qp, with_write ? &write : &send, &bad_wr);
	if (ret)
		die("ibv_post_send: %s", strerror(ret));
	s->sent++;
}

/*
 * A message and its WRITE take two entries at most, and its memory is free only
 * when a later request has completed.
 */
static bool may_send(const struct stream *s)
{
	return s->sent < s->to_send && s->sent - s->done < DEPTH / 2;
}

static bool poll_sends(struct stream *s)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(s->end.send_cq, 1, &wc) <= 0)
		return false;
	if (wc.status)
		snprintf(s->why, sizeof(s->why), "message %lu ended with %s",
			 wc.wr_id, ibv_wc_status_str(wc.status));
	s->done = wc.wr_id + 1;
	return true;
}

/* ---- receiving ---- */

static void post_receive(struct stream *s, unsigned int i)
{
	struct ibv_sge sge = sge_of(&s->in, message(&s->in, i), SLOT);
	struct ibv_recv_wr *bad_wr, wr = {
		.wr_id = i,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int ret;

	memset(message(&s->in, i), 0x55, SLOT);
	ret = ibv_post_recv(s->end.qp, &wr, &bad_wr);
	if (ret)
		die("ibv_post_recv: %s", strerror(ret));
}

static void verify(struct stream *s, const struct ibv_wc *wc,
		   bool caller_sends)
{
	unsigned int i = s->received, j;
	uint64_t seed = message_seed(s, i, caller_sends);
	uint32_t size = message_size(seed);

	if (wc->status || wc->wr_id != i || wc->byte_len != size) {
		snprintf(s->why, sizeof(s->why),
			 "receive %u: %s, number %lu, %u bytes, not %u", i,
			 ibv_wc_status_str(wc->status), wc->wr_id,
			 wc->byte_len, size);
		return;
	}
	pattern(s->scratch, size, seed);
	if (memcmp(message(&s->in, i), s->scratch, size))
		snprintf(s->why, sizeof(s->why), "message %u of %u bytes: "
			 "wrong data", i, size);
	for (j = size; j < size + TAIL; j++)
		if (message(&s->in, i)[j] != 0x55)
			snprintf(s->why, sizeof(s->why),
				 "message %u of %u bytes: byte %u is written",
				 i, size, j);
	if (i % WRITE_EVERY)
		return;
	pattern(s->scratch, WRITE_SIZE, ~seed);
	if (memcmp(s->in.bytes + write_offset(i), s->scratch, WRITE_SIZE))
		snprintf(s->why, sizeof(s->why), "message %u is here before "
			 "what was written before it", i);
}

static bool poll_receives(struct stream *s, bool caller_sends)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(s->end.recv_cq, 1, &wc) <= 0)
		return false;
	verify(s, &wc, caller_sends);
	if (s->received + DEPTH < s->to_receive)
		post_receive(s, s->received + DEPTH);
	s->received++;
	return true;
}

/* ---- both ---- */

static void stream_open(struct stream *s)
{
	struct address mine;
	unsigned int i;

	end_open(&s->end, s->rig, &(struct end_attr) {
		.type = IBV_QPT_RC,
		.depth = DEPTH,
	});
	memory_open(&s->out, s->rig);
	memory_open(&s->in, s->rig);
	s->scratch = malloc(SLOT);
	if (!s->scratch)
		die("no memory");
	mine = end_address(&s->end, s->in.mr);
	chan_send(s->chan, &mine, sizeof(mine));
	if (!chan_recv(s->chan, &s->peer, sizeof(s->peer)))
		die("the other side ended");
	end_connect(&s->end, &s->peer, &link_default);
	for (i = 0; i < DEPTH && i < s->to_receive; i++)
		post_receive(s, i);
	chan_sync(s->chan);
}

static void stream_close(struct stream *s)
{
	end_close(&s->end);
	memory_close(&s->out);
	memory_close(&s->in);
	free(s->scratch);
}

static void stream_run(struct stream *s, bool is_caller)
{
	double deadline = now() + RIG_LIMIT;
	bool moved;

	while (!s->why[0] &&
	       (s->done < s->to_send || s->received < s->to_receive)) {
		moved = poll_sends(s) || poll_receives(s, !is_caller);
		if (!moved && may_send(s)) {
			send_next(s, is_caller);
			moved = true;
		}
		if (moved) {
			deadline = now() + RIG_LIMIT;
			continue;
		}
		if (now() > deadline)
			snprintf(s->why, sizeof(s->why),
				 "stuck: %u sent, %u done, %u received",
				 s->sent, s->done, s->received);
		let_others_run();
	}
}

static void run_stream(const char *name, struct rig *rig, int chan,
		       bool is_caller, bool sends, bool receives,
		       uint64_t seed)
{
	struct stream s = {
		.rig = rig,
		.chan = chan,
		.seed = seed,
		.to_send = sends ? MESSAGES : 0,
		.to_receive = receives ? MESSAGES : 0,
	};
	char theirs[sizeof(s.why)];

	stream_open(&s);
	stream_run(&s, is_caller);
	chan_send(chan, s.why, sizeof(s.why));
	if (!chan_recv(chan, theirs, sizeof(theirs)))
		die("the other side ended");
	stream_close(&s);
	if (s.why[0] || theirs[0])
		bad(name, "%s", s.why[0] ? s.why : theirs);
	else
		ok(name);
}

void run_streams(struct rig *rig, int chan, bool is_caller, uint64_t seed)
{
	run_stream("RC stream, caller sends", rig, chan, is_caller, is_caller,
		   !is_caller, seed);
	run_stream("RC stream, listener sends", rig, chan, is_caller,
		   !is_caller, is_caller, ~seed);
	run_stream("RC stream, both send", rig, chan, is_caller, true, true,
		   seed / 2);
}
