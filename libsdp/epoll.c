// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* epoll_create() and epoll_ctl(). */
#include <errno.h>
#include <stdlib.h>

#include "epoll.h"
#include "libc.h"
#include "rdma.h"
#include "wait.h"

#define EXPORT __attribute__((visibility("default")))

/* Of the list; before that of a set. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sdp_epoll *all;

static int own(int fd)
{
	struct sdp_epoll *epoll = fd < 0 || sdp_inside ? NULL :
				  (struct sdp_epoll *)sdp_handle_new(SDP_EPOLL);

	if (!epoll)
		return fd;
	pthread_mutex_init(&epoll->lock, NULL);
	pthread_mutex_lock(&lock);
	epoll->next = all;
	all = epoll;
	pthread_mutex_unlock(&lock);
	if (sdp_table_set(fd, &epoll->handle))
		sdp_handle_put(&epoll->handle);
	return fd;
}

EXPORT int epoll_create1(int flags)
{
	return own(sdp_libc()->epoll_create1(flags));
}

EXPORT int epoll_create(int size)
{
	if (size > 0)
		return epoll_create1(0);
	errno = EINVAL;
	return -1;
}

void sdp_epoll_release(struct sdp_handle *handle)
{
	struct sdp_epoll *epoll = (struct sdp_epoll *)handle, **at;

	pthread_mutex_lock(&lock);
	for (at = &all; *at != epoll; at = &(*at)->next)
		;
	*at = epoll->next;
	pthread_mutex_unlock(&lock);
	free(epoll->regs);
	epoll->regs = NULL;
}

/* A child's threads do not wait, and what its parent's do does not concern it. */
void sdp_epoll_forked(struct sdp_epoll *epoll)
{
	size_t i;

	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&epoll->lock, NULL);
	epoll->waiters = NULL;
	for (i = 0; i < epoll->count; i++)
		epoll->regs[i].queue = -1;
}

struct sdp_registration *sdp_epoll_find(struct sdp_epoll *epoll, int fd)
{
	size_t i;

	for (i = 0; i < epoll->count; i++)
		if (epoll->regs[i].fd == fd)
			return &epoll->regs[i];
	return NULL;
}

void sdp_epoll_drop(struct sdp_epoll *epoll, struct sdp_registration *reg)
{
	*reg = epoll->regs[--epoll->count];
	epoll->version++;
}

static void wake(struct sdp_epoll *epoll)
{
	struct sdp_waiter *waiter;

	epoll->version++;
	for (waiter = epoll->waiters; waiter; waiter = waiter->next)
		sdp_timer_set(waiter->timer, 0);
}

void sdp_epoll_kick(void)
{
	struct sdp_epoll *epoll;

	pthread_mutex_lock(&lock);
	for (epoll = all; epoll; epoll = epoll->next) {
		pthread_mutex_lock(&epoll->lock);
		wake(epoll);
		pthread_mutex_unlock(&epoll->lock);
	}
	pthread_mutex_unlock(&lock);
}

void sdp_epoll_closed(int fd)
{
	struct sdp_registration *reg;
	struct sdp_epoll *epoll;

	pthread_mutex_lock(&lock);
	for (epoll = all; epoll; epoll = epoll->next) {
		pthread_mutex_lock(&epoll->lock);
		reg = sdp_epoll_find(epoll, fd);
		if (reg) {
			sdp_epoll_drop(epoll, reg);
			wake(epoll);
		}
		pthread_mutex_unlock(&epoll->lock);
	}
	pthread_mutex_unlock(&lock);
}

/*
 * Whether the kernel can tell something of the TCP socket. One that is beside an rsocket
 * is never connected, which it would report again and again.
 */
static bool is_kernels(struct sdp_sock *sock)
{
	switch (atomic_load(&sock->state)) {
	case SDP_STREAM:
		return false;
	case SDP_LISTENING:
		return sock->tcp;
	default:
		return true;
	}
}

void sdp_epoll_changed(struct sdp_sock *sock)
{
	struct sdp_epoll *epoll;
	size_t i;

	pthread_mutex_lock(&lock);
	for (epoll = all; epoll; epoll = epoll->next) {
		pthread_mutex_lock(&epoll->lock);
		for (i = 0; i < epoll->count; i++)
			if (epoll->regs[i].sock == sock) {
				sdp_edge_set(&epoll->regs[i].edge,
					     epoll->regs[i].edge.events);
				wake(epoll);
			}
		pthread_mutex_unlock(&epoll->lock);
	}
	pthread_mutex_unlock(&lock);
}

static int add(struct sdp_epoll *epoll, int epfd, int fd, struct sdp_sock *sock,
	       struct epoll_event *event)
{
	const bool in_kernel = is_kernels(sock);
	struct sdp_registration *grown;

	if (epoll->count == epoll->room) {
		grown = realloc(epoll->regs, (epoll->room + 16) * 2 * sizeof(*grown));
		if (!grown)
			return -1;
		epoll->regs = grown;
		epoll->room = (epoll->room + 16) * 2;
	}
	if (in_kernel && sdp_libc()->epoll_ctl(epfd, EPOLL_CTL_ADD, fd, event))
		return -1;
	epoll->regs[epoll->count] = (struct sdp_registration){
		.fd = fd, .sock = sock, .in_kernel = in_kernel, .queue = -1,
		.data = event->data,
	};
	sdp_edge_set(&epoll->regs[epoll->count++].edge, event->events);
	return 0;
}

static int control(struct sdp_epoll *epoll, int epfd, int op, int fd, struct sdp_sock *sock,
		   struct epoll_event *event)
{
	struct sdp_registration *reg = sdp_epoll_find(epoll, fd);

	if (!reg && atomic_load(&sock->state) == SDP_PLAIN)
		return sdp_libc()->epoll_ctl(epfd, op, fd, event);
	if (op == EPOLL_CTL_ADD && !reg)
		return add(epoll, epfd, fd, sock, event);
	if (!reg || op == EPOLL_CTL_ADD) {
		errno = reg ? EEXIST : ENOENT;
		return -1;
	}
	if (reg->in_kernel && sdp_libc()->epoll_ctl(epfd, op, fd, event))
		return -1;
	if (reg->queue >= 0 && sdp_libc()->epoll_ctl(epfd, op, reg->queue, event))
		return -1;
	switch (op) {
	case EPOLL_CTL_MOD:
		reg->data = event->data;
		sdp_edge_set(&reg->edge, event->events);
		return 0;
	case EPOLL_CTL_DEL:
		sdp_epoll_drop(epoll, reg);
		return 0;
	}
	errno = EINVAL;
	return -1;
}

EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct sdp_sock *sock = sdp_inside ? NULL : sdp_sock_get(fd);
	struct sdp_epoll *epoll;
	int result;

	epoll = sock ? (struct sdp_epoll *)sdp_handle_get(epfd, SDP_EPOLL) : NULL;
	if (epoll) {
		pthread_mutex_lock(&epoll->lock);
		result = control(epoll, epfd, op, fd, sock, event);
		wake(epoll);
		pthread_mutex_unlock(&epoll->lock);
		sdp_handle_put(&epoll->handle);
	} else {
		result = sdp_libc()->epoll_ctl(epfd, op, fd, event);
	}
	if (sock)
		sdp_sock_put(sock);
	return result;
}
