// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that holds a great many objects of its device until it is killed.
 *
 *	vmri-hoard [-d DEVICE] [-q QUEUE-PAIRS] [-m MIB]
 *
 * The queue pairs are connected, each to itself; the memory is one buffer that is
 * registered again and again, which pins its pages as often.  When all is there it
 * prints `holds N queue pairs, N MiB`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig.h"

#define BUFFER_MIB 64
#define MIB (1UL << 20)

static void hold_queue_pairs(struct rig *rig, unsigned int number)
{
	struct ibv_cq *cq = ibv_create_cq(rig->ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { 1, 1, 1, 1, 0 },
	};
	struct end end = { .rig = rig };
	struct address self;
	unsigned int i;

	if (!cq)
		die("ibv_create_cq: %s", strerror(errno));
	for (i = 0; i < number; i++) {
		end.qp = ibv_create_qp(rig->pd, &init);
		if (!end.qp)
			die("ibv_create_qp, number %u: %s", i, strerror(errno));
		self = end_address(&end, NULL);
		end_connect(&end, &self, &link_default);
	}
}

static void hold_memory(struct rig *rig, unsigned int mib)
{
	char *buffer = mmap(NULL, BUFFER_MIB * MIB, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	unsigned int held, size;

	if (buffer == MAP_FAILED)
		die("%d MiB of memory: %s", BUFFER_MIB, strerror(errno));
	for (held = 0; held < mib; held += size) {
		size = mib - held < BUFFER_MIB ? mib - held : BUFFER_MIB;
		if (!ibv_reg_mr(rig->pd, buffer, size * MIB,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE))
			die("ibv_reg_mr after %u MiB: %s", held, strerror(errno));
	}
}

int main(int argc, char **argv)
{
	unsigned int queue_pairs = 10000, mib = 4096;
	const char *device = NULL;
	struct rig rig;
	int opt;

	while ((opt = getopt(argc, argv, "d:q:m:")) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'q':
			queue_pairs = strtoul(optarg, NULL, 0);
			break;
		case 'm':
			mib = strtoul(optarg, NULL, 0);
			break;
		default:
			die("usage: %s [-d DEVICE] [-q QUEUE-PAIRS] [-m MIB]", argv[0]);
		}
	}
	rig_open(&rig, device);
	hold_memory(&rig, mib);
	hold_queue_pairs(&rig, queue_pairs);
	printf("holds %u queue pairs, %u MiB\n", queue_pairs, mib);
	fflush(stdout);
	for (;;)
		pause();
}
