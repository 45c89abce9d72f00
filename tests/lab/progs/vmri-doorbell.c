// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that rings doorbells past its kernel: its own, and whatever garbage
 * in registers names.
 *
 *	vmri-doorbell [-d DEVICE] [-n RINGS] [-s SEED]
 *
 * Nobody's data may change, no hypercall but the doorbell may pass, and no
 * register but the result's.  Ends with lines "KEY VALUE" of what a doorbell
 * costs by each way, in ns.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doorbell.h"
#include "softib.h"

#include "rig.h"

#define DEPTH 16
#define BYTES 64

struct scene {
	struct rig rig;
	struct softib_context *ctx;
	struct ibv_mr *mr;
	uint8_t mem[2 * BYTES] __attribute__((aligned(4096)));
	struct end a, b;
	uint64_t seed;
	unsigned long rings;
};

static void open_scene(struct scene *s, const char *device)
{
	static const struct end_attr attr = {
		.type = IBV_QPT_RC,
		.depth = DEPTH,
		.sig_all = true,
	};
	struct address to_a, to_b;

	rig_open(&s->rig, device);
	s->ctx = to_sctx(s->rig.ctx);
	s->mr = ibv_reg_mr(s->rig.pd, s->mem, sizeof(s->mem),
			   IBV_ACCESS_LOCAL_WRITE);
	if (!s->mr)
		die("registering memory");
	end_open(&s->a, &s->rig, &attr);
	end_open(&s->b, &s->rig, &attr);
	to_a = end_address(&s->a, s->mr);
	to_b = end_address(&s->b, s->mr);
	end_connect(&s->a, &to_b, &link_default);
	end_connect(&s->b, &to_a, &link_default);
}

/* A message of our own goes through. */
static void try_message(struct scene *s, const char *name)
{
	struct ibv_sge from = {
		.addr = (uintptr_t)s->mem,
		.length = BYTES,
		.lkey = s->mr->lkey,
	}, to = from;
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = {
		.opcode = IBV_WR_SEND,
		.sg_list = &from,
		.num_sge = 1,
	}, *bad_send;
	struct ibv_wc wc;

	to.addr += BYTES;
	pattern(s->mem, BYTES, next_random(&s->seed));
	if (ibv_post_recv(s->b.qp, &recv, &bad_recv) ||
	    ibv_post_send(s->a.qp, &send, &bad_send))
		bad(name, "posting failed");
	else if (!wait_wc(&s->a, s->a.send_cq, &wc, false, RIG_LIMIT) ||
		 wc.status != IBV_WC_SUCCESS)
		bad(name, "the send did not complete");
	else if (!wait_wc(&s->b, s->b.recv_cq, &wc, false, RIG_LIMIT) ||
		 wc.status != IBV_WC_SUCCESS)
		bad(name, "the receive did not complete");
	else if (memcmp(s->mem, s->mem + BYTES, BYTES))
		bad(name, "the data is wrong");
	else
		ok(name);
}

/* The doorbell with registers as given; the result. */
static int64_t ring_raw(const struct scene *s, uint64_t dev, uint64_t qpn)
{
	uint64_t cmd = VMRI_OP_doorbell;
	int64_t ret = s->ctx->hypercall;

	if (s->ctx->ring == SOFTIB_RING_INT)
		asm volatile("int %1"
			     : "=a" (ret)
			     : "i" (VMRI_DOORBELL_VECTOR), "D" (dev), "S" (qpn)
			     : "memory");
	else if (s->ctx->ring == SOFTIB_RING_VMMCALL)
		asm volatile("vmmcall"
			     : "+a" (ret), "+D" (cmd), "+S" (dev), "+d" (qpn)
			     : : "r8", "r10", "memory");
	else
		asm volatile("vmcall"
			     : "+a" (ret), "+D" (cmd), "+S" (dev), "+d" (qpn)
			     : : "r8", "r10", "memory");
	return ret;
}

/* Half of them name our own device, so that some find other queues there. */
static void try_garbage(struct scene *s)
{
	static const char name[] = "garbage in registers";
	unsigned long found = 0, i;

	for (i = 0; i < s->rings; i++) {
		uint64_t qpn = next_random(&s->seed);
		uint64_t dev = i & 1 ? next_random(&s->seed) : s->ctx->dev_id;
		int64_t ret;

		/* Numbers that queues could have, and any at all. */
		if (i & 2)
			qpn &= 0xffffff;
		if (i & 4)
			qpn &= 0xff;
		ret = ring_raw(s, dev, qpn);
		if (!ret)
			found++;
		else if (ret != -ENOENT && ret != -ENODEV && ret != -EPERM) {
			bad(name, "%lld for device %#llx, queue %#llx",
			    (long long)ret, (unsigned long long)dev,
			    (unsigned long long)qpn);
			return;
		}
	}
	printf("rang %lu times, %lu of them somebody's\n", s->rings, found);
	ok(name);
}

static sigjmp_buf escape;

static void on_fault(int sig)
{
	siglongjmp(escape, sig);
}

/* Any other vector is what it is without VMRI. */
static void try_other_vector(void)
{
	struct sigaction act = { .sa_handler = on_fault }, old;

	sigaction(SIGSEGV, &act, &old);
	if (sigsetjmp(escape, 1)) {
		ok("another vector is a fault");
	} else {
		asm volatile("int $0x83" : : : "memory");
		bad("another vector is a fault", "it is none");
	}
	sigaction(SIGSEGV, &old, NULL);
}

/* Registers that a trap must not change. */
static void try_registers(const struct scene *s)
{
	register uint64_t r8 asm("r8") = 0x1111111111111111;
	register uint64_t r10 asm("r10") = 0x2222222222222222;
	register uint64_t r12 asm("r12") = 0x3333333333333333;
	register uint64_t r15 asm("r15") = 0x4444444444444444;
	uint64_t rcx = 5, rdx = 6, rdi = s->ctx->dev_id, rsi = s->a.qp->qp_num;
	int64_t ret;

	asm volatile("int %[vector]"
		     : "=a" (ret), "+c" (rcx), "+d" (rdx), "+D" (rdi),
		       "+S" (rsi), "+r" (r8), "+r" (r10), "+r" (r12), "+r" (r15)
		     : [vector] "i" (VMRI_DOORBELL_VECTOR)
		     : "memory");
	if (!ret && rcx == 5 && rdx == 6 && rdi == s->ctx->dev_id &&
	    rsi == s->a.qp->qp_num && r8 == 0x1111111111111111 &&
	    r10 == 0x2222222222222222 && r12 == 0x3333333333333333 &&
	    r15 == 0x4444444444444444)
		ok("no register changes but the result's");
	else
		bad("no register changes but the result's", "one did");
}

static volatile sig_atomic_t steps;

static void on_step(int sig)
{
	(void)sig;
	steps++;
}

/* A debugger that steps over the trap stops behind it, not one later. */
static void try_single_step(const struct scene *s)
{
	struct sigaction act = { .sa_handler = on_step }, old;
	int64_t ret;

	sigaction(SIGTRAP, &act, &old);
	steps = 0;
	/* Steps: popfq's successor, which is the trap, and the two that clear. */
	asm volatile("pushfq; orq $0x100, (%%rsp); popfq\n\t"
		     "int %[vector]\n\t"
		     "pushfq; andq $~0x100, (%%rsp); popfq"
		     : "=a" (ret)
		     : [vector] "i" (VMRI_DOORBELL_VECTOR),
		       "D" ((uint64_t)s->ctx->dev_id),
		       "S" ((uint64_t)s->a.qp->qp_num)
		     : "memory", "cc");
	sigaction(SIGTRAP, &old, NULL);
	if (steps == 4)
		ok("a single step ends behind the trap");
	else
		bad("a single step ends behind the trap", "%d steps, not 4",
		    (int)steps);
}

/* From user mode, no other command passes, nor another hypercall. */
static void try_hypercalls(const struct scene *s)
{
	static const uint16_t cmds[] = {
		VMRI_OP_version, VMRI_OP_schedule, VMRI_OP_dev_destroy,
		VMRI_OP_qp_destroy, VMRI_OP_control,
	};
	bool amd = s->ctx->ring == SOFTIB_RING_VMMCALL;
	size_t i;

	for (i = 0; i <= sizeof(cmds) / sizeof(*cmds); i++) {
		bool last = i == sizeof(cmds) / sizeof(*cmds);
		/* The last: the right command, with bits set above it. */
		uint64_t cmd = last ? VMRI_OP_doorbell | 1ULL << 32 : cmds[i];
		uint64_t dev = s->ctx->dev_id, arg = 0;
		int64_t ret = s->ctx->hypercall;

		if (amd)
			asm volatile("vmmcall"
				     : "+a" (ret), "+D" (cmd), "+S" (dev),
				       "+d" (arg) : : "r8", "r10", "memory");
		else
			asm volatile("vmcall"
				     : "+a" (ret), "+D" (cmd), "+S" (dev),
				       "+d" (arg) : : "r8", "r10", "memory");
		if (ret != -EPERM) {
			bad("no other hypercall passes", "number %zu: %lld", i,
			    (long long)ret);
			return;
		}
	}
	ok("no other hypercall passes");
}

/* ns that one doorbell takes when there is nothing to do. */
static double cost(struct scene *s, enum softib_ring ring)
{
	const unsigned int n = 2000;
	enum softib_ring before = s->ctx->ring;
	unsigned int i;
	double from;

	s->ctx->ring = ring;
	from = now();
	for (i = 0; i < n; i++)
		softib_ring_doorbell(s->a.qp);
	from = now() - from;
	s->ctx->ring = before;
	return from * 1e9 / n;
}

int main(int argc, char **argv)
{
	static struct scene s = { .seed = 1, .rings = 1000000 };
	const char *device = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "d:n:s:")) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'n':
			s.rings = strtoul(optarg, NULL, 0);
			break;
		case 's':
			s.seed = strtoull(optarg, NULL, 0);
			break;
		default:
			die("usage: %s [-d DEVICE] [-n RINGS] [-s SEED]",
			    argv[0]);
		}
	}
	open_scene(&s, device);

	if (s.ctx->ring == SOFTIB_RING_SYSCALL) {
		bad("a doorbell past the kernel", "the driver offers none");
		return report_status();
	}
	ok("a doorbell past the kernel");
	try_message(&s, "a message by it");
	if (s.ctx->ring == SOFTIB_RING_INT) {
		try_registers(&s);
		try_single_step(&s);
		try_other_vector();
	} else {
		try_hypercalls(&s);
	}
	try_garbage(&s);
	try_message(&s, "a message after all that");

	printf("trap_ns %.0f\n", cost(&s, s.ctx->ring));
	printf("syscall_ns %.0f\n", cost(&s, SOFTIB_RING_SYSCALL));
	end_close(&s.a);
	end_close(&s.b);
	ibv_dereg_mr(s.mr);
	rig_close(&s.rig);
	return report_status();
}
