// SPDX-License-Identifier: GPL-2.0-only
/*
 * The verbs beyond posting and polling, by one process on one device.
 *
 *	vmri-verbs [-d DEVICE]
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

int main(int argc, char **argv)
{
	const char *device = NULL;
	struct bench t = {};
	int opt;

	while ((opt = getopt(argc, argv, "d:")) != -1) {
		if (opt != 'd')
			die("usage: %s [-d DEVICE]", argv[0]);
		device = optarg;
	}

	if (ibv_fork_init())
		die("ibv_fork_init: %s", strerror(errno));
	bench_open(&t, device);
	test_memory(&t);
	test_windows(&t);
	test_cqs(&t);
	test_domains(&t);
	test_qps(&t);
	bench_close(&t);
	return report_status();
}
