// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that writes what it likes into its own rings.
 *
 *	vmri-hostile [-d DEVICE] [-s SEED]
 *
 * It knows the provider's structures, and writes requests, indices and headers
 * by hand.  Whatever it does, the answer must be the specified completion, or
 * its own queue pair in error: no byte outside the memory that a key names, no
 * hang, and no harm to the bystanders, two queue pairs of the same device.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "doorbell.h"
#include "softib.h"

#include "rig.h"

#define PAGE 4096
#define DEPTH 16
#define INLINE 64

/* Attacker and victim are connected, and so are the bystanders. */
struct scene {
	struct rig rig;
	uint8_t *mem;		/* three pages, of which the middle one has a key */
	struct ibv_mr *mr;
	uint64_t seed;
	struct end attacker;
	struct end victim;
	struct end bystander[2];
};

static void connect_ends(struct end *a, struct end *b, struct ibv_mr *mr)
{
	struct address to_a = end_address(a, mr), to_b = end_address(b, mr);

	end_connect(a, &to_b, &link_default);
	end_connect(b, &to_a, &link_default);
}

static void open_pair(struct scene *s, struct end *a, struct end *b)
{
	static const struct end_attr attr = {
		.type = IBV_QPT_RC,
		.depth = DEPTH,
		.sges = 2,
		.max_inline = INLINE,
		.sig_all = true,
	};

	end_open(a, &s->rig, &attr);
	end_open(b, &s->rig, &attr);
	connect_ends(a, b, s->mr);
}

static void scene_open(struct scene *s, const char *device)
{
	rig_open(&s->rig, device);
	s->mem = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->mem == MAP_FAILED)
		die("no memory");
	s->mr = ibv_reg_mr(s->rig.pd, s->mem + PAGE, PAGE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ);
	if (!s->mr)
		die("ibv_reg_mr: %s", strerror(errno));
	pattern(s->mem, 3 * PAGE, s->seed);
	open_pair(s, &s->bystander[0], &s->bystander[1]);
}

static void scene_close(struct scene *s)
{
	end_close(&s->bystander[0]);
	end_close(&s->bystander[1]);
	if (ibv_dereg_mr(s->mr))
		die("ibv_dereg_mr: %s", strerror(errno));
	rig_close(&s->rig);
}

/* ---- rings by hand ---- */

static struct softib_qp *ring_of(struct end *end)
{
	return to_sqp(end->qp);
}

static void ring_doorbell(struct end *end)
{
	softib_ring_doorbell(end->qp);
}

/* A good RDMA WRITE of 64 bytes, for the attacker to spoil. */
static struct vmri_send_wqe *next_wqe(struct scene *s)
{
	struct softib_qp *qp = ring_of(&s->attacker);
	struct vmri_send_wqe *wqe = wq_slot(&qp->sq, qp->sq.prod);
	struct vmri_sge *sge = (struct vmri_sge *)(wqe + 1);

	*wqe = (struct vmri_send_wqe) {
		.wr_id = 1,
		.opcode = VMRI_WR_RDMA_WRITE,
		.flags = VMRI_SEND_SIGNALED,
		.num_sge = 1,
		.length = 64,
		.u.rdma = {
			.remote_addr = (uintptr_t)s->mr->addr,
			.rkey = s->mr->rkey,
		},
	};
	*sge = (struct vmri_sge) {
		.addr = (uintptr_t)s->mr->addr + 128,
		.length = 64,
		.lkey = s->mr->lkey,
	};
	return wqe;
}

static struct vmri_sge *sge_of(struct vmri_send_wqe *wqe)
{
	return (struct vmri_sge *)(wqe + 1);
}

static void post_wqe(struct scene *s)
{
	struct softib_qp *qp = ring_of(&s->attacker);

	qp->sq.prod++;
	wq_publish(&qp->sq);
	ring_doorbell(&s->attacker);
}

static void post_by_hand_recv(struct end *end, const struct vmri_sge *sge,
			      uint16_t num_sge, uint16_t flags)
{
	struct softib_qp *qp = ring_of(end);
	struct vmri_recv_wqe *wqe = wq_slot(&qp->rq, qp->rq.prod);

	*wqe = (struct vmri_recv_wqe) {
		.wr_id = 2,
		.num_sge = num_sge,
		.flags = flags,
	};
	*(struct vmri_sge *)(wqe + 1) = *sge;
	qp->rq.prod++;
	wq_publish(&qp->rq);
	ring_doorbell(end);
}

/* ---- what must hold ---- */

/* Bystanders talk to each other as ever. */
static bool bystanders_live(struct scene *s, const char *name)
{
	struct ibv_recv_wr *bad_recv, recv = {};
	struct ibv_send_wr *bad_send, send = {
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct end *to = &s->bystander[1], *from = &s->bystander[0];
	struct ibv_wc wc;

	if (ibv_post_recv(to->qp, &recv, &bad_recv) ||
	    ibv_post_send(from->qp, &send, &bad_send) ||
	    !wait_wc(from, from->send_cq, &wc, true, RIG_LIMIT) || wc.status ||
	    !wait_wc(to, to->recv_cq, &wc, true, RIG_LIMIT) || wc.status) {
		bad(name, "a bystander is harmed");
		return false;
	}
	return true;
}

/* The pages beside the one with a key hold what they held. */
static bool memory_unharmed(struct scene *s, const char *name)
{
	static uint8_t want[3 * PAGE];

	pattern(want, sizeof(want), s->seed);
	if (!memcmp(s->mem, want, PAGE) &&
	    !memcmp(s->mem + 2 * PAGE, want + 2 * PAGE, PAGE))
		return true;
	bad(name, "memory without a key was written");
	return false;
}

static void finish_case(struct scene *s, const char *name, bool good)
{
	end_close(&s->attacker);
	end_close(&s->victim);
	if (good && bystanders_live(s, name) && memory_unharmed(s, name))
		ok(name);
}

static bool expect_status(const char *name, struct end *end,
			  struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!wait_wc(end, cq, &wc, true, RIG_LIMIT)) {
		bad(name, "nothing completes");
		return false;
	}
	if (wc.status == status)
		return true;
	bad(name, "%s (vendor error %u), not %s",
	    ibv_wc_status_str(wc.status), wc.vendor_err,
	    ibv_wc_status_str(status));
	return false;
}

static bool expect_error_state(const char *name, struct end *end)
{
	double deadline = now() + RIG_LIMIT;

	while (end_state(end) != IBV_QPS_ERR) {
		if (now() > deadline) {
			bad(name, "the queue pair is not in error");
			return false;
		}
	}
	return true;
}

/* ---- requests ---- */

struct bad_request {
	const char *name;
	void (*spoil)(const struct softib_qp *qp, struct vmri_send_wqe *wqe);
	enum ibv_wc_status status;
};

#define SPOIL(name, code)						\
	static void spoil_##name(const struct softib_qp *qp,		\
				 struct vmri_send_wqe *wqe)		\
	{								\
		(void)qp;						\
		code;							\
	}

SPOIL(opcode, wqe->opcode = 0xff)
SPOIL(atomic, wqe->opcode = VMRI_WR_ATOMIC_CMP_AND_SWP)
SPOIL(local_inv, wqe->opcode = VMRI_WR_LOCAL_INV)
SPOIL(bind_mw, wqe->opcode = VMRI_WR_BIND_MW)
SPOIL(reg_mr, wqe->opcode = VMRI_WR_REG_MR)
SPOIL(flags, wqe->flags |= 0x80)
SPOIL(indirect, wqe->flags |= VMRI_SEND_INDIRECT)
SPOIL(indirect_far, wqe->flags |= VMRI_SEND_INDIRECT; wqe->ind_start = ~0U)
SPOIL(inline_read, wqe->opcode = VMRI_WR_RDMA_READ;
      wqe->flags |= VMRI_SEND_INLINE)
SPOIL(sges, wqe->num_sge = qp->sq.max_sge + 1)
SPOIL(many_sges, wqe->num_sge = 0xffff)
SPOIL(long_sum, wqe->length = 65)
SPOIL(long_huge, wqe->length = ~0U)
SPOIL(inline_long, wqe->flags |= VMRI_SEND_INLINE;
      wqe->length = qp->max_inline + 1)
SPOIL(inline_huge, wqe->flags |= VMRI_SEND_INLINE; wqe->length = ~0U)
SPOIL(lkey_frames, sge_of(wqe)->lkey = VMRI_LKEY_FRAMES;
      sge_of(wqe)->addr = 0x100000)
SPOIL(lkey_frames_read, wqe->opcode = VMRI_WR_RDMA_READ;
      spoil_lkey_frames(qp, wqe))
SPOIL(rkey_frames, wqe->u.rdma.rkey = VMRI_LKEY_FRAMES;
      wqe->u.rdma.remote_addr = 0x100000)

static const struct bad_request bad_requests[] = {
	{ "an opcode of nothing", spoil_opcode, IBV_WC_LOC_QP_OP_ERR },
	{ "an atomic operation of no 8 bytes", spoil_atomic,
	  IBV_WC_LOC_LEN_ERR },
	{ "LOCAL_INV with data", spoil_local_inv, IBV_WC_LOC_QP_OP_ERR },
	{ "BIND_MW with data", spoil_bind_mw, IBV_WC_LOC_QP_OP_ERR },
	{ "REG_MR of a process", spoil_reg_mr, IBV_WC_LOC_QP_OP_ERR },
	{ "an unknown flag", spoil_flags, IBV_WC_LOC_QP_OP_ERR },
	{ "indirect SGEs of a process", spoil_indirect, IBV_WC_LOC_QP_OP_ERR },
	{ "indirect SGEs from far away", spoil_indirect_far,
	  IBV_WC_LOC_QP_OP_ERR },
	{ "an inline READ", spoil_inline_read, IBV_WC_LOC_QP_OP_ERR },
	{ "an SGE too many", spoil_sges, IBV_WC_LOC_QP_OP_ERR },
	{ "65535 SGEs", spoil_many_sges, IBV_WC_LOC_QP_OP_ERR },
	{ "a byte more than the SGEs hold", spoil_long_sum,
	  IBV_WC_LOC_LEN_ERR },
	{ "a length of 4 GiB - 1", spoil_long_huge, IBV_WC_LOC_LEN_ERR },
	{ "inline data beyond its limit", spoil_inline_long,
	  IBV_WC_LOC_LEN_ERR },
	{ "inline data of 4 GiB - 1", spoil_inline_huge, IBV_WC_LOC_LEN_ERR },
	{ "the kernel's lkey, to read from", spoil_lkey_frames,
	  IBV_WC_LOC_PROT_ERR },
	{ "the kernel's lkey, to write to", spoil_lkey_frames_read,
	  IBV_WC_LOC_PROT_ERR },
	{ "the kernel's key as rkey", spoil_rkey_frames,
	  IBV_WC_REM_ACCESS_ERR },
};

static void try_request(struct scene *s, const struct bad_request *r)
{
	struct end *end = &s->attacker;

	open_pair(s, &s->attacker, &s->victim);
	r->spoil(ring_of(end), next_wqe(s));
	post_wqe(s);
	finish_case(s, r->name,
		    expect_status(r->name, end, end->send_cq, r->status) &&
		    expect_error_state(r->name, end));
}

/* ---- receives ---- */

static void try_receive(struct scene *s, const char *name, uint32_t lkey,
			uint16_t num_sge, uint16_t flags,
			enum ibv_wc_status here, enum ibv_wc_status there)
{
	struct end *a = &s->attacker, *v = &s->victim;
	struct vmri_sge sge = {
		.addr = lkey == VMRI_LKEY_FRAMES ? 0x100000 :
						   (uintptr_t)s->mr->addr,
		.length = 64,
		.lkey = lkey,
	};

	/* Here the "victim" is the one that spoils its ring. */
	open_pair(s, a, v);
	post_by_hand_recv(v, &sge, num_sge, flags);
	next_wqe(s)->opcode = VMRI_WR_SEND;
	post_wqe(s);
	finish_case(s, name, expect_status(name, a, a->send_cq, here) &&
			     expect_status(name, v, v->recv_cq, there));
}

/* ---- indices and headers ---- */

/* So many entries more than the ring has, modulo 2^32. */
static void try_send_index(struct scene *s, const char *name, uint32_t beyond)
{
	struct softib_qp *qp;

	open_pair(s, &s->attacker, &s->victim);
	qp = ring_of(&s->attacker);
	ring_store(&qp->hdr->sq.prod, qp->sq.prod + qp->sq.entries + beyond);
	ring_full_fence();
	ring_doorbell(&s->attacker);
	finish_case(s, name, expect_error_state(name, &s->attacker));
}

static void try_recv_index(struct scene *s)
{
	static const char name[] = "a receive index out of range";
	struct softib_qp *qp;

	open_pair(s, &s->attacker, &s->victim);
	qp = ring_of(&s->victim);
	ring_store(&qp->hdr->rq.prod, qp->rq.prod + qp->rq.entries + 1);
	next_wqe(s)->opcode = VMRI_WR_SEND;
	post_wqe(s);
	finish_case(s, name,
		    expect_status(name, &s->attacker, s->attacker.send_cq,
				  IBV_WC_REM_OP_ERR) &&
		    expect_error_state(name, &s->victim));
}

/* The hypervisor goes by its own copies of what it writes. */
static void try_header(struct scene *s)
{
	static const char name[] = "the hypervisor's words of a header";
	struct softib_qp *qp;
	bool good = true;
	int i;

	open_pair(s, &s->attacker, &s->victim);
	qp = ring_of(&s->attacker);
	for (i = 0; i < 2 * DEPTH && good; i++) {
		next_wqe(s);
		ring_store(&qp->hdr->sq.cons, 0xdeadbeef + i);
		ring_store(&qp->hdr->sq.running, i % 2);
		ring_store(&qp->hdr->sq.wait, i % 3);
		ring_store(&qp->hdr->rq.cons, ~0U);
		ring_store(&qp->hdr->rq.running, 1);
		post_wqe(s);
		good = expect_status(name, &s->attacker, s->attacker.send_cq,
				     IBV_WC_SUCCESS);
	}
	finish_case(s, name, good);
}

/* A CQ whose consumer is where no consumer can be only harms its owner. */
static void try_cq_index(struct scene *s)
{
	static const char name[] = "a CQ's consumer index out of range";
	struct softib_cq *cq;

	open_pair(s, &s->attacker, &s->victim);
	cq = to_scq(s->attacker.send_cq);
	ring_store(&cq->hdr->cons, cq->cons - 2 * cq->entries);
	next_wqe(s);
	post_wqe(s);
	finish_case(s, name, expect_error_state(name, &s->attacker));
}

/* ---- racing and garbage ---- */

struct race {
	struct vmri_send_wqe *wqe;
	atomic_bool stop;
};

/* Change a request again and again, at its fields that are checked first. */
static void *racer(void *arg)
{
	struct race *race = arg;
	volatile struct vmri_send_wqe *wqe = race->wqe;
	volatile struct vmri_sge *sge = (volatile struct vmri_sge *)(wqe + 1);
	uint32_t rkey = wqe->u.rdma.rkey;
	uint64_t addr = wqe->u.rdma.remote_addr;
	uint64_t state = 1;

	while (!atomic_load(&race->stop)) {
		uint64_t r = next_random(&state);

		wqe->length = r & 1 ? 64 : ~0U;
		sge->length = r & 2 ? 64 : ~0U;
		wqe->num_sge = r & 4 ? 1 : 0xffff;
		wqe->u.rdma.rkey = r & 8 ? rkey : VMRI_LKEY_FRAMES;
		wqe->u.rdma.remote_addr = r & 16 ? addr : addr + PAGE - 1;
		wqe->flags = r & 32 ? VMRI_SEND_SIGNALED : 0x9f;
	}
	return NULL;
}

#define RACES 200

/* Until the queue pair fails, as it must; what came before may be anything. */
static bool race_once(struct scene *s, const char *name)
{
	struct race race = {};
	pthread_t thread;
	struct ibv_wc wc;
	bool ended;

	open_pair(s, &s->attacker, &s->victim);
	race.wqe = next_wqe(s);
	if (pthread_create(&thread, NULL, racer, &race))
		die("no thread");
	post_wqe(s);
	ended = wait_wc(&s->attacker, s->attacker.send_cq, &wc, true,
			RIG_LIMIT);
	atomic_store(&race.stop, true);
	pthread_join(thread, NULL);
	end_close(&s->attacker);
	end_close(&s->victim);
	if (!ended)
		bad(name, "nothing completes");
	return ended && memory_unharmed(s, name);
}

static void try_races(struct scene *s)
{
	static const char name[] = "requests that change while they are read";
	int i;

	for (i = 0; i < RACES; i++)
		if (!race_once(s, name))
			return;
	if (bystanders_live(s, name))
		ok(name);
}

#define ROUNDS 200

/* All of the ring garbage, with now and then a field that makes sense. */
static void garbage(struct scene *s, uint64_t *seed)
{
	struct softib_qp *qp = ring_of(&s->attacker);
	uint32_t i;

	for (i = 0; i < qp->sq.entries; i++) {
		struct vmri_send_wqe *wqe = wq_slot(&qp->sq, i);
		uint64_t r = next_random(seed);

		pattern(wqe, 1 << qp->sq.log2_stride, r);
		if (r & 1)
			wqe->opcode %= 5;
		if (r & 2)
			wqe->flags &= VMRI_SEND_SIGNALED | VMRI_SEND_INLINE;
		if (r & 4)
			wqe->num_sge %= 3;
		if (r & 8)
			wqe->length %= 2 * PAGE;
		if (r & 16)
			wqe->u.rdma.rkey = s->mr->rkey;
		if (r & 32)
			sge_of(wqe)->lkey = s->mr->lkey;
		if (r & 64)
			sge_of(wqe)->addr = (uintptr_t)s->mem + r % (3 * PAGE);
	}
	for (i = 0; i < qp->rq.entries; i++)
		pattern(wq_slot(&qp->rq, i), 1 << qp->rq.log2_stride,
			next_random(seed));
}

static void try_garbage(struct scene *s)
{
	static const char name[] = "rings full of garbage";
	uint64_t seed = s->seed;
	struct softib_qp *qp;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		open_pair(s, &s->attacker, &s->victim);
		qp = ring_of(&s->attacker);
		garbage(s, &seed);
		ring_store(&qp->hdr->rq.prod, next_random(&seed) % 20);
		ring_store(&qp->hdr->sq.prod,
			   qp->sq.prod + 1 + next_random(&seed) % DEPTH);
		ring_full_fence();
		ring_doorbell(&s->attacker);
		end_close(&s->attacker);
		end_close(&s->victim);
		if (!memory_unharmed(s, name))
			return;
	}
	if (bystanders_live(s, name))
		ok(name);
}

int main(int argc, char **argv)
{
	struct scene s = { .seed = 1 };
	const char *device = NULL;
	size_t i;
	int opt;

	while ((opt = getopt(argc, argv, "d:s:")) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 's':
			s.seed = strtoull(optarg, NULL, 0);
			break;
		default:
			die("usage: %s [-d DEVICE] [-s SEED]", argv[0]);
		}
	}
	scene_open(&s, device);

	for (i = 0; i < sizeof(bad_requests) / sizeof(*bad_requests); i++)
		try_request(&s, &bad_requests[i]);

	try_receive(&s, "a receive with the kernel's lkey", VMRI_LKEY_FRAMES, 1,
		    0, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
	try_receive(&s, "a receive with an SGE of 65535", s.mr->lkey, 0xffff, 0,
		    IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	try_receive(&s, "a receive with indirect SGEs of a process",
		    s.mr->lkey, 1, VMRI_RECV_INDIRECT, IBV_WC_SUCCESS,
		    IBV_WC_SUCCESS);

	try_send_index(&s, "a send index one out of range", 1);
	try_send_index(&s, "a send index far out of range", 0x80000000);
	try_send_index(&s, "a send index behind the consumer", -(1U << 20));
	try_recv_index(&s);
	try_header(&s);
	try_cq_index(&s);
	try_races(&s);
	try_garbage(&s);

	scene_close(&s);
	return report_status();
}
