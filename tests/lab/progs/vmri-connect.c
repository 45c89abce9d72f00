// SPDX-License-Identifier: GPL-2.0-only
/*
 * What it costs to make and connect queue pairs, and to register memory.
 *
 *	vmri-connect [-k] [-d DEVICE] [-n NUMBER] GID
 *
 * Makes NUMBER queue pairs, connects each to a queue pair of the device with that GID,
 * which need not be there, and registers as many regions of 64 KiB; then all goes.  For
 * each step it prints `STEP US`, the median of its time in microseconds.  With -k all
 * stays: it prints `kept` instead, and waits for a signal.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

#define SIZE 65536
#define MOST 1000
#define SOME_QPN 0x11

enum step { CREATE, CONNECT, REGISTER, DEREGISTER, DESTROY, STEPS };

static const char *const steps[STEPS] = {
	"create", "connect", "register", "deregister", "destroy",
};

static double took[STEPS][MOST];

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_medians(unsigned int number)
{
	int i;

	for (i = 0; i < STEPS; i++) {
		qsort(took[i], number, sizeof(took[i][0]), by_value);
		printf("%s %.0f\n", steps[i], took[i][number / 2] * 1e6);
	}
}

/* Notes what has passed since the last step. */
static void note(enum step step, unsigned int i, double *since)
{
	double at = now();

	took[step][i] = at - *since;
	*since = at;
}

static void make(struct rig *rig, struct ibv_cq *cq, const struct address *to,
		 unsigned int i, struct ibv_qp **qp, struct ibv_mr **mr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { 16, 16, 1, 1, 0 },
	};
	struct end end = { .rig = rig };
	void *memory = aligned_alloc(4096, SIZE);
	double since;

	if (!memory)
		die("no memory");
	memset(memory, 1, SIZE);
	since = now();
	end.qp = ibv_create_qp(rig->pd, &init);
	if (!end.qp)
		die("ibv_create_qp, the %uth: %s", i + 1, strerror(errno));
	note(CREATE, i, &since);
	end_connect(&end, to, &link_default);
	note(CONNECT, i, &since);
	*mr = ibv_reg_mr(rig->pd, memory, SIZE,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!*mr)
		die("ibv_reg_mr, the %uth: %s", i + 1, strerror(errno));
	note(REGISTER, i, &since);
	*qp = end.qp;
}

static void unmake(unsigned int i, struct ibv_qp *qp, struct ibv_mr *mr)
{
	void *memory = mr->addr;
	double since = now();

	if (ibv_dereg_mr(mr))
		die("ibv_dereg_mr failed");
	note(DEREGISTER, i, &since);
	if (ibv_destroy_qp(qp))
		die("ibv_destroy_qp failed");
	note(DESTROY, i, &since);
	free(memory);
}

int main(int argc, char **argv)
{
	static struct ibv_qp *qps[MOST];
	static struct ibv_mr *mrs[MOST];
	struct address to = { .target = SOME_QPN };
	unsigned int i, number = 50;
	const char *device = NULL;
	bool keep = false;
	struct ibv_cq *cq;
	struct rig rig;
	int option;

	while ((option = getopt(argc, argv, "kd:n:")) != -1) {
		if (option == 'k')
			keep = true;
		else if (option == 'd')
			device = optarg;
		else if (option == 'n')
			number = strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	if (optind + 1 != argc || number < 1 || number > MOST ||
	    inet_pton(AF_INET6, argv[optind], &to.gid) != 1) {
		fprintf(stderr, "usage: vmri-connect [-k] [-d DEVICE] [-n 1-%d] GID\n",
			MOST);
		return 2;
	}

	rig_open(&rig, device);
	rig.grh = true;
	cq = ibv_create_cq(rig.ctx, 16, NULL, NULL, 0);
	if (!cq)
		die("ibv_create_cq: %s", strerror(errno));
	for (i = 0; i < number; i++)
		make(&rig, cq, &to, i, &qps[i], &mrs[i]);
	if (keep) {
		printf("kept\n");
		fflush(stdout);
		pause();
		return 0;
	}
	for (i = 0; i < number; i++)
		unmake(i, qps[i], mrs[i]);
	ibv_destroy_cq(cq);
	rig_close(&rig);
	print_medians(number);
	return 0;
}
