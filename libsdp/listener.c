// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "libc.h"
#include "listener.h"
#include "rdma.h"

static void *accept_all(void *arg)
{
	struct sdp_listener *listener = arg;
	int rs;

	while (!atomic_load(&listener->closing)) {
		rs = RDMA(accept, listener->rs, NULL, NULL);
		/* Of a closed rsocket it is 0. */
		if (atomic_load(&listener->closing) || (rs < 0 && errno == EBADF))
			break;
		if (rs >= 0 && sdp_libc()->send(listener->queue[1], &rs, sizeof(rs),
						MSG_NOSIGNAL) != sizeof(rs))
			RDMA(close, rs);
	}
	return NULL;
}

/* The program's signals are for its own threads. */
static int start_thread(struct sdp_listener *listener)
{
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&listener->thread, NULL, accept_all, listener);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error;
}

static void close_queue(struct sdp_listener *listener)
{
	sdp_libc()->close(listener->queue[0]);
	sdp_libc()->close(listener->queue[1]);
}

struct sdp_listener *sdp_listener_start(int rs)
{
	struct sdp_listener *listener = calloc(1, sizeof(*listener));
	int error;

	if (!listener)
		return NULL;
	listener->rs = rs;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, listener->queue)) {
		free(listener);
		return NULL;
	}
	error = start_thread(listener);
	if (!error)
		return listener;
	close_queue(listener);
	free(listener);
	errno = error;
	return NULL;
}

int sdp_listener_take(struct sdp_listener *listener)
{
	ssize_t got;
	int rs;

	got = sdp_libc()->recv(listener->queue[0], &rs, sizeof(rs), MSG_DONTWAIT);
	if (got == sizeof(rs))
		return rs;
	if (got >= 0)
		errno = EAGAIN;
	return -1;
}

static void drop_untaken(struct sdp_listener *listener)
{
	int rs;

	for (rs = sdp_listener_take(listener); rs >= 0; rs = sdp_listener_take(listener))
		RDMA(close, rs);
}

/* The thread ends as its rsocket does; it may also wait for room in the queue. */
void sdp_listener_stop(struct sdp_listener *listener)
{
	atomic_store(&listener->closing, true);
	RDMA(close, listener->rs);
	drop_untaken(listener);
	pthread_join(listener->thread, NULL);
	drop_untaken(listener);
	close_queue(listener);
	free(listener);
}

void sdp_listener_forget(struct sdp_listener *listener)
{
	close_queue(listener);
	free(listener);
}
