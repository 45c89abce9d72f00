/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Waiting by rpoll(). Of librdmacm's a finite timeout must not be used: it leaves a count
 * of waiters one too high, and other threads are then kept awake. A timer is in the set
 * instead, one for each thread. Other threads can make it go off, too.
 */
#ifndef LIBSDP_WAIT_H
#define LIBSDP_WAIT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* This thread's timer; -1 with an error of timerfd_create(2). */
int sdp_timer(void);

/* It goes off in so many nanoseconds; never, if that is negative. */
int sdp_timer_set(int timer, int64_t in);

/* The moment that is so many nanoseconds ahead; negative for never, both ways. */
int64_t sdp_deadline(int64_t in);

/* What is left until then, at least 0; or -1 for never. */
int64_t sdp_left(int64_t deadline);

/* Nanoseconds of what poll(2) and others are given; -1 for none. */
int64_t sdp_of_milliseconds(int timeout);
int64_t sdp_of_timespec(const struct timespec *timeout);

/*
 * rpoll() on count descriptors, rsockets or others, until the deadline. The array has
 * room for one more.
 */
int sdp_wait(struct pollfd *fds, nfds_t count, int64_t deadline);

/* Until an rsocket, too, is ready: 0, or -1 with EAGAIN at the deadline, or EINTR. */
int sdp_wait_for(int rs, short events, int64_t deadline);

#endif
