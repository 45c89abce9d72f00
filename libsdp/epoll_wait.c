// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* epoll_wait() and its like. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "epoll.h"
#include "libc.h"
#include "rdma.h"
#include "transfer.h"
#include "wait.h"

#define EXPORT __attribute__((visibility("default")))

/* One rsocket of a look at the set. */
struct seen {
	int fd;
	struct sdp_sock *sock;	/* referenced */
	struct sdp_uses uses;
	bool parked;		/* some direction is not asked for, as it was reported */
};

/* One look: what is waited for. The kernel's set comes first, a timer may come last. */
struct look {
	struct pollfd *fds;
	struct seen *seen;
	size_t count;		/* of seen; fds has one more */
	unsigned int version;
};

static void look_away(struct look *look)
{
	size_t i;

	for (i = 0; i < look->count; i++) {
		if (look->seen[i].parked)
			atomic_fetch_sub(&look->seen[i].sock->parked, 1);
		sdp_sock_put(look->seen[i].sock);
	}
	free(look->fds);
	free(look->seen);
}

static int asked(uint32_t events)
{
	return (events & (EPOLLIN | EPOLLRDNORM) ? POLLIN : 0) |
	       (events & (EPOLLOUT | EPOLLWRNORM) ? POLLOUT : 0);
}

/* The kernel is not to report a TCP socket beside which there is now an rsocket. */
static void leave_kernel(struct sdp_registration *reg, int epfd)
{
	if (reg->in_kernel)
		sdp_libc()->epoll_ctl(epfd, EPOLL_CTL_DEL, reg->fd, NULL);
	reg->in_kernel = false;
}

/* What listens is all the kernel's: the queue of the one, and the TCP socket if there is. */
static void look_at_listener(struct sdp_registration *reg, int epfd)
{
	struct sdp_listener *listener = sdp_sock_listener(reg->sock, reg->fd);
	struct epoll_event event = { .events = reg->edge.events, .data = reg->data };

	if (!listener || reg->queue == sdp_listener_fd(listener))
		return;
	if (!reg->sock->tcp)
		leave_kernel(reg, epfd);
	if (!sdp_libc()->epoll_ctl(epfd, EPOLL_CTL_ADD, sdp_listener_fd(listener), &event))
		reg->queue = sdp_listener_fd(listener);
}

/* The look takes the reference, if there is something to wait for. */
static bool look_at(struct look *look, struct sdp_registration *reg, int epfd)
{
	const struct sdp_uses uses = sdp_sock_uses(reg->sock);
	int wants;

	if (atomic_load(&reg->sock->state) == SDP_LISTENING)
		look_at_listener(reg, epfd);
	if (atomic_load(&reg->sock->state) != SDP_STREAM)
		return false;
	leave_kernel(reg, epfd);
	wants = sdp_edge_wants(&reg->edge, uses);
	if (wants < 0)
		return false;
	look->seen[look->count] = (struct seen){
		reg->fd, reg->sock, uses, wants != asked(reg->edge.events),
	};
	if (look->seen[look->count].parked)
		atomic_fetch_add(&reg->sock->parked, 1);
	look->count++;
	look->fds[look->count] = (struct pollfd){ .fd = sdp_sock_rs(reg->sock), .events = wants };
	return true;
}

static int look_around(struct look *look, struct sdp_epoll *epoll, int epfd)
{
	struct sdp_registration *reg;
	struct sdp_sock *sock;
	size_t i;

	look->count = 0;
	pthread_mutex_lock(&epoll->lock);
	look->fds = calloc(epoll->count + 2, sizeof(*look->fds));
	look->seen = calloc(epoll->count + 1, sizeof(*look->seen));
	if (!look->fds || !look->seen) {
		pthread_mutex_unlock(&epoll->lock);
		look_away(look);
		errno = ENOMEM;
		return -1;
	}
	look->fds[0] = (struct pollfd){ .fd = epfd, .events = POLLIN };
	for (i = 0; i < epoll->count; i++) {
		reg = &epoll->regs[i];
		sock = sdp_sock_get(reg->fd);
		if (sock && (sock != reg->sock || !look_at(look, reg, epfd)))
			sdp_sock_put(sock);
	}
	look->version = epoll->version;
	pthread_mutex_unlock(&epoll->lock);
	return 0;
}

/* librdmacm need not even be loaded if there is no rsocket. */
static int poll_look(struct look *look, nfds_t count, int timeout)
{
	return look->count ? RDMA(poll, look->fds, count, timeout)
			   : sdp_libc()->poll(look->fds, count, timeout);
}

/* Who changes the set from now on wakes this thread; false if somebody already has. */
static bool begin_wait(struct sdp_epoll *epoll, struct look *look, struct sdp_waiter *waiter,
		       int64_t left)
{
	bool same;

	pthread_mutex_lock(&epoll->lock);
	same = epoll->version == look->version;
	if (same) {
		sdp_timer_set(waiter->timer, left);
		waiter->next = epoll->waiters;
		epoll->waiters = waiter;
	}
	pthread_mutex_unlock(&epoll->lock);
	return same;
}

static void end_wait(struct sdp_epoll *epoll, struct sdp_waiter *waiter)
{
	struct sdp_waiter **at;

	pthread_mutex_lock(&epoll->lock);
	for (at = &epoll->waiters; *at != waiter; at = &(*at)->next)
		;
	*at = waiter->next;
	pthread_mutex_unlock(&epoll->lock);
}

/* Whether there may be something to report; -1 with an error. */
static int wait_look(struct sdp_epoll *epoll, struct look *look, int64_t deadline)
{
	const int64_t left = sdp_left(deadline);
	int ready = poll_look(look, look->count + 1, 0);
	struct sdp_waiter waiter;

	if (ready || !left)
		return ready;
	waiter.timer = sdp_timer();
	if (waiter.timer < 0)
		return -1;
	if (!begin_wait(epoll, look, &waiter, left))
		return 0;
	look->fds[look->count + 1] = (struct pollfd){ .fd = waiter.timer, .events = POLLIN };
	ready = poll_look(look, look->count + 2, -1);
	end_wait(epoll, &waiter);
	return ready;
}

/* How one rsocket is to be reported; no events if it is not. The set is locked. */
static struct epoll_event report(struct sdp_epoll *epoll, const struct seen *seen,
				 short revents)
{
	struct sdp_registration *reg = sdp_epoll_find(epoll, seen->fd);
	struct epoll_event event = {};
	bool eof = false;

	if (!reg || reg->sock != seen->sock)
		return event;
	if (reg->edge.events & EPOLLRDHUP)
		eof = revents & POLLHUP || (revents & POLLIN && sdp_at_end(seen->sock));
	event.events = sdp_edge_report(&reg->edge, revents, eof, seen->uses);
	event.data = reg->data;
	return event;
}

/*
 * The rsockets first, not always from the same on, but half of the room is the kernel's
 * if it has something; of one event each has it in turn.
 */
static int collect(struct sdp_epoll *epoll, int epfd, struct look *look,
		   struct epoll_event *events, int max)
{
	int limit = max, count = 0, more;
	size_t i, at;

	pthread_mutex_lock(&epoll->lock);
	if (look->fds[0].revents)
		limit = max > 1 ? max - max / 2 : (int)(epoll->turn & 1);
	for (i = 0; i < look->count && count < limit; i++) {
		at = (epoll->turn + i) % look->count;
		if (!look->fds[at + 1].revents)
			continue;
		events[count] = report(epoll, &look->seen[at], look->fds[at + 1].revents);
		count += !!events[count].events;
	}
	epoll->turn++;
	pthread_mutex_unlock(&epoll->lock);
	if (!look->fds[0].revents || count == max)
		return count;
	more = sdp_libc()->epoll_pwait(epfd, events + count, max - count, 0, NULL);
	return more < 0 ? (count ? count : -1) : count + more;
}

static int wait_for_events(struct sdp_epoll *epoll, int epfd, struct epoll_event *events,
			   int max, int64_t deadline)
{
	struct look look;
	int count;

	do {
		if (look_around(&look, epoll, epfd))
			return -1;
		count = wait_look(epoll, &look, deadline);
		if (count > 0)
			count = collect(epoll, epfd, &look, events, max);
		look_away(&look);
	} while (!count && sdp_left(deadline));
	return count;
}

static int wait_masked(struct sdp_epoll *epoll, int epfd, struct epoll_event *events, int max,
		       int64_t in, const sigset_t *mask)
{
	sigset_t old;
	int count;

	if (max <= 0) {
		errno = EINVAL;
		return -1;
	}
	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &old);
	count = wait_for_events(epoll, epfd, events, max, sdp_deadline(in));
	if (mask)
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	return count;
}

/* The set, with a reference more, or NULL if it is the kernel's alone. */
static struct sdp_epoll *set_of(int epfd)
{
	return sdp_inside ? NULL : (struct sdp_epoll *)sdp_handle_get(epfd, SDP_EPOLL);
}

EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout,
		       const sigset_t *mask)
{
	struct sdp_epoll *epoll = set_of(epfd);
	int count;

	if (!epoll)
		return sdp_libc()->epoll_pwait(epfd, events, max, timeout, mask);
	count = wait_masked(epoll, epfd, events, max, sdp_of_milliseconds(timeout), mask);
	sdp_handle_put(&epoll->handle);
	return count;
}

EXPORT int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	return epoll_pwait(epfd, events, max, timeout, NULL);
}

EXPORT int epoll_pwait2(int epfd, struct epoll_event *events, int max,
			const struct timespec *timeout, const sigset_t *mask)
{
	struct sdp_epoll *epoll = set_of(epfd);
	int count;

	if (!epoll)
		return sdp_libc()->epoll_pwait2(epfd, events, max, timeout, mask);
	count = wait_masked(epoll, epfd, events, max, sdp_of_timespec(timeout), mask);
	sdp_handle_put(&epoll->handle);
	return count;
}
