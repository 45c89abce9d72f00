// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <pthread.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libc.h"
#include "rdma.h"
#include "wait.h"

#define SECOND 1000000000LL

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static pid_t of_process;

static __thread int timer = -1;
static __thread pid_t timer_of;

static void close_timer(void *value)
{
	(void)value;
	sdp_libc()->close(timer);
	timer = -1;
}

/* A timer that a child inherits is its parent's. */
static void in_child(void)
{
	of_process = getpid();
}

static void prepare(void)
{
	of_process = getpid();
	pthread_key_create(&key, close_timer);
	pthread_atfork(NULL, NULL, in_child);
}

int sdp_timer(void)
{
	pthread_once(&once, prepare);
	if (timer >= 0 && timer_of == of_process)
		return timer;
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	timer_of = of_process;
	/* Any value but NULL, that it be closed at the thread's end. */
	if (timer >= 0)
		pthread_setspecific(key, &timer);
	return timer;
}

int sdp_timer_set(int fd, int64_t in)
{
	struct itimerspec when = {};

	if (in >= 0) {
		when.it_value.tv_sec = in / SECOND;
		/* Zero would stop it. */
		when.it_value.tv_nsec = in ? in % SECOND : 1;
	}
	return timerfd_settime(fd, 0, &when, NULL);
}

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

int64_t sdp_deadline(int64_t in)
{
	int64_t moment;

	if (in < 0 || __builtin_add_overflow(now(), in, &moment))
		return -1;
	return moment;
}

int64_t sdp_left(int64_t deadline)
{
	int64_t left;

	if (deadline < 0)
		return -1;
	left = deadline - now();
	return left > 0 ? left : 0;
}

int64_t sdp_of_milliseconds(int timeout)
{
	return timeout < 0 ? -1 : timeout * (SECOND / 1000);
}

int64_t sdp_of_timespec(const struct timespec *timeout)
{
	int64_t in;

	if (!timeout || __builtin_mul_overflow((int64_t)timeout->tv_sec, SECOND, &in) ||
	    __builtin_add_overflow(in, timeout->tv_nsec, &in))
		return -1;
	return in;
}

int sdp_wait(struct pollfd *fds, nfds_t count, int64_t deadline)
{
	int64_t left = sdp_left(deadline);
	int ready = RDMA(poll, fds, count, 0);

	if (ready || !left)
		return ready;
	if (left < 0)
		return RDMA(poll, fds, count, -1);
	fds[count] = (struct pollfd){ .fd = sdp_timer(), .events = POLLIN };
	if (fds[count].fd < 0 || sdp_timer_set(fds[count].fd, left))
		return -1;
	ready = RDMA(poll, fds, count + 1, -1);
	return ready > 0 && fds[count].revents ? ready - 1 : ready;
}

int sdp_wait_for(int rs, short events, int64_t deadline)
{
	struct pollfd fds[2] = { { .fd = rs, .events = events } };
	int ready = sdp_wait(fds, 1, deadline);

	if (!ready)
		errno = EAGAIN;
	return ready > 0 ? 0 : -1;
}
