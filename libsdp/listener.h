/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A thread that accepts the connections of a listening rsocket and puts them into a
 * queue, of which there is a descriptor to poll. rpoll() is not used on such rsockets: it
 * is woken when a request comes, not when it was answered, and then sleeps for seconds.
 */
#ifndef LIBSDP_LISTENER_H
#define LIBSDP_LISTENER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct sdp_listener {
	int rs;			/* listens, and is not nonblocking */
	int queue[2];
	pthread_t thread;
	atomic_bool closing;
};

/* Starts the thread. NULL with an error, upon which the rsocket is still the caller's. */
struct sdp_listener *sdp_listener_start(int rs);

/* To be polled for input. */
static inline int sdp_listener_fd(const struct sdp_listener *listener)
{
	return listener->queue[0];
}

/* The next connection's rsocket, or -1 with EAGAIN. */
int sdp_listener_take(struct sdp_listener *listener);

/* Closes the rsocket, and those of connections that nobody has taken. */
void sdp_listener_stop(struct sdp_listener *listener);

/* In a child, where there is no thread. */
void sdp_listener_forget(struct sdp_listener *listener);

#endif
