// SPDX-License-Identifier: GPL-2.0-only
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

struct test *tests;

static int passes(const struct test *test)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		alarm(60);
		test->run();
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

int main(void)
{
	int passed = 0, failed = 0;
	struct test *test;

	for (test = tests; test; test = test->next) {
		if (passes(test)) {
			passed++;
			continue;
		}
		failed++;
		printf("FAIL %s\n", test->name);
	}
	printf("%d passed, %d failed\n", passed, failed);
	return !passed || failed;
}
