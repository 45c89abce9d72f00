// SPDX-License-Identifier: GPL-2.0-only
/* Field classes: what a process may lock, and how often it connects. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "field.h"

/* ---- 25 ---- */

#define NOBODY		65534
#define LOCKABLE	(64 * 1024)	/* bytes, that a process has by default */

static int try_register(struct rig *rig, void *mem, size_t bytes)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(rig->pd, mem, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		return errno;
	bench_dereg(mr);
	return 0;
}

/* In a process of its own: a user with the usual limit. */
static void as_nobody(const char *device)
{
	const struct rlimit limit = { LOCKABLE, LOCKABLE };
	const size_t most = LOCKABLE / 2;
	int i, failed = 0;
	struct rig rig;
	void *mem;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(NOBODY) ||
	    setuid(NOBODY))
		die("nobody can be nobody: %s", strerror(errno));
	if (posix_memalign(&mem, 4096, 4 * LOCKABLE))
		die("no memory");
	memset(mem, 0, 4 * LOCKABLE);
	rig_open(&rig, device);
	check("memory within the limit is registered",
	      try_register(&rig, mem, most), 0);
	check("more than it is not, for lack of memory",
	      try_register(&rig, mem, 4 * LOCKABLE), ENOMEM);
	for (i = 0; i < 20; i++)
		failed += !!try_register(&rig, mem, most);
	check("what is deregistered counts no more", failed, 0);
	rig_close(&rig);
	free(mem);
}

void field_memlock(struct bench *t)
{
	const char *device = ibv_get_device_name(t->rig.ctx->device);
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		as_nobody(device);
		fflush(stdout);
		_exit(report_status());
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid: %s", strerror(errno));
	/* It has inherited what had failed before. */
	check("a user's process ends well",
	      WIFEXITED(status) ? WEXITSTATUS(status) : -1, report_status());
}

/* ---- 28 ---- */

#define CONNECTIONS	1000

/* Many ends of one pair of CQs. */
static void open_many(struct bench *t, struct end *ends, int nr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = t->a.send_cq,
		.recv_cq = t->b.recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = { 1, 1, 1, 1, 0 },
	};
	int i;

	for (i = 0; i < nr; i++) {
		ends[i] = (struct end) {
			.rig = &t->rig,
			.events = t->a.events,
			.send_cq = init.send_cq,
			.recv_cq = init.recv_cq,
			.qp = ibv_create_qp(t->rig.pd, &init),
		};
		if (!ends[i].qp)
			die("queue pair %d: %s", i, strerror(errno));
	}
}

static void close_many(struct end *ends, int nr)
{
	int i, ret;

	for (i = 0; i < nr; i++) {
		ret = ibv_destroy_qp(ends[i].qp);
		if (ret)
			die("ibv_destroy_qp: %s", strerror(ret));
	}
}

/* A message from one end to another; both may be the same. */
static bool message_goes(struct bench *t, struct end *from, struct end *to,
			 uint8_t value)
{
	struct order o;
	struct ibv_wc wc;

	memset(t->amem, value, 64);
	post_room(to, t->bmr, 0, 64, value);
	order_init(&o, t, IBV_WR_SEND, 64);
	post(from, &o.wr);
	if (next_wc(from, from->send_cq).status)
		return false;
	wc = next_wc(to, to->recv_cq);
	return !wc.status && wc.qp_num == to->qp->qp_num &&
	       !memcmp(t->bmem, t->amem, 64);
}

static void to_oneself(struct bench *t)
{
	struct end self;
	struct address address;

	open_many(t, &self, 1);
	address = end_address(&self, NULL);
	end_connect(&self, &address, &link_default);
	check("a queue pair sends to itself",
	      message_goes(t, &self, &self, 28), 1);
	close_many(&self, 1);
}

void field_connections(struct bench *t)
{
	const int nr = field_quick ? CONNECTIONS / 4 : CONNECTIONS;
	struct end *ends = calloc(2 * nr, sizeof(*ends));
	struct address one, other;
	int i, good = 0;

	if (!ends)
		die("no memory");
	to_oneself(t);
	open_many(t, ends, 2 * nr);
	for (i = 0; i < 2 * nr; i += 2) {
		one = end_address(&ends[i], NULL);
		other = end_address(&ends[i + 1], NULL);
		end_connect(&ends[i], &other, &link_default);
		end_connect(&ends[i + 1], &one, &link_default);
		good += message_goes(t, &ends[i], &ends[i + 1], i);
	}
	check("very many connections at once", good, nr);
	check("of which the first still serves",
	      message_goes(t, &ends[1], &ends[0], 1), 1);
	close_many(ends, 2 * nr);
	free(ends);

	good = 0;
	for (i = 0; i < nr; i++) {
		struct end pair[2];

		open_many(t, pair, 2);
		one = end_address(&pair[0], NULL);
		other = end_address(&pair[1], NULL);
		end_connect(&pair[0], &other, &link_default);
		end_connect(&pair[1], &one, &link_default);
		good += message_goes(t, &pair[0], &pair[1], i);
		close_many(pair, 2);
	}
	check("and one after the other", good, nr);
}
