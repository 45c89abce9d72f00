// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does each verb refuse each wrong argument, with the errno of its manual page?
 *
 *	vmri-badargs [-d DEVICE]
 *	vmri-badargs [-d DEVICE] -m	with a limit on locked memory
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "badargs.h"

static const char *device;

/* ---- wrong values ---- */

static uint64_t all_ones(size_t size)
{
	return ~0ULL >> (64 - 8 * size);
}

/* The number of the nth bit that is set; negative if there is none. */
static int nth_bit(uint64_t bits, unsigned int n)
{
	int i;

	for (i = 0; i < 64; i++)
		if (bits & (1ULL << i) && !n--)
			return i;
	return -1;
}

static uint64_t peek(const void *at, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, at, size);
	return value;
}

/* The nth of the values above a limit that are tried. */
static bool value_above(uint64_t limit, size_t size, unsigned int n,
			uint64_t *value)
{
	const uint64_t values[] = {
		limit + 1,
		(all_ones(size) >> 1) + 1,
		all_ones(size),
	};
	unsigned int i;

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		*value = values[i];
		if (*value > limit && *value <= all_ones(size) && !n--)
			return true;
	}
	return false;
}

/* Give the nth wrong value of an argument that is right now; false: no more. */
static bool wrong_value(const struct argument *a, unsigned int n,
			uint64_t right, uint64_t *value)
{
	int bit;

	switch (a->kind) {
	case WRONG_ABOVE:
		return value_above(a->limit, a->size, n, value);
	case WRONG_VALUE:
		*value = a->limit;
		return n == 0;
	case WRONG_BIT:
		bit = nth_bit(~a->limit & all_ones(a->size), n);
		*value = right | 1ULL << (bit & 63);
		return bit >= 0;
	case WRONG_MISSING:
		bit = nth_bit(a->limit, n);
		*value = right & ~(1ULL << (bit & 63));
		return bit >= 0;
	case WRONG_HANDLE:
		break;
	}
	return false;
}

static bool is_refused(const char *name, uint64_t value, int is, int want)
{
	if (is == want)
		return true;
	bad(name, "%#lx gives %s, not %s", value, is ? strerror(is) : "success",
	    strerror(want));
	return false;
}

static bool try_values(struct desk *b, const char *name, verb_fn *call,
		       const void *right, size_t size,
		       const struct argument *a)
{
	const uint64_t right_value = peek((const uint8_t *)right + a->offset,
					  a->size);
	uint8_t args[size];
	unsigned int n;
	uint64_t value;

	for (n = 0; wrong_value(a, n, right_value, &value); n++) {
		memcpy(args, right, size);
		memcpy(args + a->offset, &value, a->size);
		if (!is_refused(name, value, call(b, args), a->want))
			return false;
	}
	return true;
}

/* Of nothing; and of memory, which no other handle of the desk is. */
static bool try_handles(struct desk *b, const char *name, verb_fn *call,
			const void *right, size_t size,
			const struct argument *a)
{
	const uint32_t wrong[] = { 0x7fffffff, ~0U, b->t.amr->handle };
	const uint32_t handle = *a->handle;
	uint8_t args[size];
	unsigned int n;
	int ret;

	for (n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
		memcpy(args, right, size);
		*a->handle = wrong[n];
		ret = call(b, args);
		*a->handle = handle;
		/* Which of the two depends on the way into the kernel. */
		if (!is_refused(name, wrong[n], ret == ENOENT ? EINVAL : ret,
				EINVAL))
			return false;
	}
	return true;
}

void try_verb(struct desk *b, const char *verb, verb_fn *call,
	      const void *right, size_t size,
	      const struct argument *arguments, unsigned int nr)
{
	char name[128];
	uint8_t args[size];
	unsigned int i;
	bool refused;
	int ret;

	memcpy(args, right, size);
	ret = call(b, args);
	if (ret) {
		bad(verb, "the right arguments give %s", strerror(ret));
		return;
	}
	ok(verb);
	for (i = 0; i < nr; i++) {
		const struct argument *a = &arguments[i];

		snprintf(name, sizeof(name), "%s, a wrong %s", verb, a->name);
		refused = a->kind == WRONG_HANDLE ?
			  try_handles(b, name, call, right, size, a) :
			  try_values(b, name, call, right, size, a);
		if (refused)
			ok(name);
	}
}

/* ---- the desk ---- */

static void desk_open(struct desk *b)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 2 } };
	int ret;

	bench_open(&b->t, device);
	ret = ibv_query_device(b->t.rig.ctx, &b->attr);
	if (ret)
		die("ibv_query_device: %s", strerror(ret));
	b->srq = ibv_create_srq(b->t.rig.pd, &init);
	if (!b->srq)
		die("ibv_create_srq: %s", strerror(errno));
}

static void desk_close(struct desk *b)
{
	int ret = ibv_destroy_srq(b->srq);

	if (ret)
		die("ibv_destroy_srq: %s", strerror(ret));
	bench_close(&b->t);
}

/* ---- a limit on locked memory ---- */

/* Whoever has this capability has no limit. */
static void obey_limits(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = {};
	const struct rlimit limit = { 65536, 65536 };

	if (syscall(SYS_capget, &header, data))
		die("capget: %s", strerror(errno));
	data[0].effective &= ~(1U << CAP_IPC_LOCK);
	data[0].permitted &= ~(1U << CAP_IPC_LOCK);
	if (syscall(SYS_capset, &header, data))
		die("capset: %s", strerror(errno));
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		die("setrlimit: %s", strerror(errno));
}

static void check_memlock(void)
{
	static const char within[] = "reg_mr within the limit on locked memory";
	static const char beyond[] = "reg_mr beyond the limit on locked memory";
	const size_t size = 1 << 20;
	struct ibv_mr *mr;
	struct rig rig;
	uint8_t *buf;

	obey_limits();
	rig_open(&rig, device);
	buf = aligned_alloc(4096, size);
	if (!buf)
		die("no memory");
	mr = ibv_reg_mr(rig.pd, buf, 32768, IBV_ACCESS_LOCAL_WRITE);
	if (mr) {
		ok(within);
		ibv_dereg_mr(mr);
	} else {
		bad(within, "%s", strerror(errno));
	}
	errno = 0;
	mr = ibv_reg_mr(rig.pd, buf, size, IBV_ACCESS_LOCAL_WRITE);
	if (!mr && errno == ENOMEM)
		ok(beyond);
	else
		bad(beyond, "%s", mr ? "success" : strerror(errno));
	if (mr)
		ibv_dereg_mr(mr);
	rig_close(&rig);
	free(buf);
}

int main(int argc, char **argv)
{
	bool memlock = false;
	struct desk b = {};
	int opt;

	while ((opt = getopt(argc, argv, "d:m")) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'm':
			memlock = true;
			break;
		default:
			die("usage: %s [-d DEVICE] [-m]", argv[0]);
		}
	}
	if (memlock) {
		check_memlock();
		return report_status();
	}
	desk_open(&b);
	bad_queries(&b);
	bad_memory(&b);
	bad_queues(&b);
	bad_queue_pairs(&b);
	bad_transitions(&b);
	bad_requests(&b);
	not_offered(&b);
	desk_close(&b);
	return report_status();
}
