// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long this processor was kept from running: a process that reads the clock all
 * the time, until SIGTERM, and then prints the longest time between two readings in
 * microseconds.
 *
 *	vmri-gaps
 */
#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static double microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

int main(void)
{
	double longest = 0, last, now;

	signal(SIGTERM, end);
	for (last = microseconds(); !ended; last = now) {
		now = microseconds();
		if (now - last > longest)
			longest = now - last;
	}
	printf("%.0f\n", longest);
	return 0;
}
