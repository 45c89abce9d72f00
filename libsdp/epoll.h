/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A set of epoll(7). The kernel's own set has all descriptors that are not ours, and TCP
 * sockets that listen or are not yet decided upon; it is itself one descriptor of the
 * rpoll() that waits for the rsockets. Each wait looks at each rsocket of the set.
 */
#ifndef LIBSDP_EPOLL_H
#define LIBSDP_EPOLL_H

#include <pthread.h>
#include <sys/epoll.h>

#include "sock.h"

/* A socket in the set; it goes before the socket does. */
struct sdp_registration {
	int fd;
	struct sdp_sock *sock;
	bool in_kernel;		/* the kernel's set has the TCP socket */
	int queue;		/* and this one, of a listener; or -1 */
	epoll_data_t data;
	struct sdp_edge edge;
};

/* A thread that waits; its timer going off makes it look again. */
struct sdp_waiter {
	int timer;
	struct sdp_waiter *next;
};

struct sdp_epoll {
	struct sdp_handle handle;
	struct sdp_epoll *next;		/* of all */
	pthread_mutex_t lock;		/* before that of a socket */
	struct sdp_registration *regs;
	size_t count;
	size_t room;
	size_t turn;			/* where the next wait begins to report */
	unsigned int version;		/* changes with what is to be waited for */
	struct sdp_waiter *waiters;
};

/* With the lock held. */
struct sdp_registration *sdp_epoll_find(struct sdp_epoll *epoll, int fd);
void sdp_epoll_drop(struct sdp_epoll *epoll, struct sdp_registration *reg);

/* The socket has come to listen or to be connected; it is not locked. */
void sdp_epoll_changed(struct sdp_sock *sock);

/* The descriptor is about to be closed. */
void sdp_epoll_closed(int fd);

/* All who wait look again. */
void sdp_epoll_kick(void);

void sdp_epoll_forked(struct sdp_epoll *epoll);
void sdp_epoll_release(struct sdp_handle *handle);

#endif
