// SPDX-License-Identifier: GPL-2.0-only
/*
 * What users of software and virtual RDMA devices ran into, a class at a time.
 *
 *	vmri-field [-d DEVICE] [-q] [CLASS]...
 *
 * Without a number it runs all.  -q leaves out what only takes longer.  Every
 * check is a line `ok field NN NAME: WHAT`, or begins with FAIL.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "field.h"

struct field_class {
	int number;
	const char *name;
	void (*test)(struct bench *t);
};

/* Their order is that of docs/field-classes.md. */
static const struct field_class classes[] = {
	{ 1, "device attributes", field_attributes },
	{ 3, "GID table", field_gids },
	{ 4, "path MTU", field_path_mtu },
	{ 5, "inline size", field_inline },
	{ 6, "capabilities", field_capabilities },
	{ 7, "SGE limits", field_sges },
	{ 8, "errno", field_errno },
	{ 9, "wc.opcode", field_opcode },
	{ 10, "flush", field_flush },
	{ 11, "LAST_WQE_REACHED", field_last_wqe },
	{ 12, "destroy under traffic", field_destroy },
	{ 13, "CQ overflow", field_cq_overflow },
	{ 14, "completion events", field_events },
	{ 15, "SRQ", field_srq },
	{ 16, "RNR", field_rnr },
	{ 17, "dead peer", field_timeout },
	{ 18, "GRH", field_grh },
	{ 19, "zero length", field_zero_length },
	{ 20, "max_msg_sz", field_message_size },
	{ 21, "atomics", field_atomics },
	{ 22, "WRITE_WITH_IMM", field_write_imm },
	{ 23, "memory windows", field_windows },
	{ 24, "optional access flags", field_access_flags },
	{ 25, "memlock", field_memlock },
	{ 26, "multicast", field_multicast },
	{ 27, "P_Key table", field_pkeys },
	{ 28, "connections", field_connections },
};
#define NR_CLASSES (sizeof(classes) / sizeof(*classes))

bool field_quick;
static const struct field_class *tested;

void check(const char *what, long got, long want)
{
	char name[160];

	snprintf(name, sizeof(name), "field %02d %s: %s", tested->number,
		 tested->name, what);
	expect(name, got, want);
}

static void run_class(const struct field_class *class, struct bench *t)
{
	tested = class;
	class->test(t);
}

static void run_named(const char *number, struct bench *t)
{
	size_t i;

	for (i = 0; i < NR_CLASSES; i++)
		if (classes[i].number == atoi(number)) {
			run_class(&classes[i], t);
			return;
		}
	die("there is no class %s here", number);
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	struct bench t = {};
	size_t i;
	int opt;

	while ((opt = getopt(argc, argv, "d:q")) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'q':
			field_quick = true;
			break;
		default:
			die("usage: %s [-d DEVICE] [-q] [CLASS]...", argv[0]);
		}
	}

	bench_open(&t, device);
	if (argv[optind])
		for (; argv[optind]; optind++)
			run_named(argv[optind], &t);
	else
		for (i = 0; i < NR_CLASSES; i++)
			run_class(&classes[i], &t);
	bench_close(&t);
	return report_status();
}
