// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* poll() and select(), for sets in which a socket uses RDMA. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "libc.h"
#include "rdma.h"
#include "transfer.h"
#include "wait.h"

#define EXPORT __attribute__((visibility("default")))

void __chk_fail(void) __attribute__((noreturn));

/* What is asked of rpoll(), and for which of the program's entries. */
struct asked {
	nfds_t entry;
	struct sdp_sock *sock;	/* referenced; NULL for another descriptor */
};

struct set {
	struct pollfd *fds;
	struct asked *asked;
	nfds_t count;
	bool rdma;	/* has a stream */
	bool ours;	/* is not the program's own set */
	/* Most sets are small. */
	struct pollfd few_fds[17];
	struct asked few_asked[16];
};

static int make_room(struct set *set, nfds_t count)
{
	set->fds = set->few_fds;
	set->asked = set->few_asked;
	set->count = 0;
	set->rdma = false;
	set->ours = false;
	/* A socket may listen on two, and there is one more for sdp_wait(). */
	if (count * 2 <= sizeof(set->few_asked) / sizeof(set->few_asked[0]))
		return 0;
	set->fds = calloc(count * 2 + 1, sizeof(*set->fds));
	set->asked = calloc(count * 2, sizeof(*set->asked));
	if (set->fds && set->asked)
		return 0;
	free(set->fds);
	free(set->asked);
	errno = ENOMEM;
	return -1;
}

static void empty(struct set *set)
{
	nfds_t i;

	for (i = 0; i < set->count; i++)
		if (set->asked[i].sock)
			sdp_sock_put(set->asked[i].sock);
	if (set->fds != set->few_fds) {
		free(set->fds);
		free(set->asked);
	}
}

static void ask(struct set *set, nfds_t entry, struct sdp_sock *sock, int fd, short events)
{
	set->fds[set->count] = (struct pollfd){ .fd = fd, .events = events };
	set->asked[set->count++] = (struct asked){ entry, sock };
}

static short rdma_events(short events)
{
	return (events & (POLLIN | POLLRDNORM) ? POLLIN : 0) |
	       (events & (POLLOUT | POLLWRNORM) ? POLLOUT : 0);
}

static void add(struct set *set, nfds_t entry, const struct pollfd *wish)
{
	struct sdp_sock *sock = sdp_sock_get(wish->fd);
	struct sdp_listener *listener = NULL;

	if (sock && atomic_load(&sock->state) == SDP_STREAM) {
		set->rdma = true;
		ask(set, entry, sock, sdp_sock_rs(sock), rdma_events(wish->events));
		return;
	}
	if (sock && atomic_load(&sock->state) == SDP_LISTENING)
		listener = sdp_sock_listener(sock, wish->fd);
	if (listener)
		ask(set, entry, NULL, sdp_listener_fd(listener), wish->events);
	if (!listener || sock->tcp)
		ask(set, entry, NULL, wish->fd, wish->events);
	set->ours |= !!listener;
	if (sock)
		sdp_sock_put(sock);
}

static void tell(struct set *set, nfds_t i, struct pollfd *wish)
{
	const short revents = set->fds[i].revents;
	struct sdp_sock *sock = set->asked[i].sock;

	if (!sock) {
		wish->revents |= revents;
		return;
	}
	if (revents & POLLIN) {
		wish->revents |= wish->events & (POLLIN | POLLRDNORM);
		if (wish->events & POLLRDHUP && sdp_at_end(sock))
			wish->revents |= POLLRDHUP;
	}
	if (revents & POLLOUT)
		wish->revents |= wish->events & (POLLOUT | POLLWRNORM);
	wish->revents |= revents & (POLLHUP | POLLERR);
}

static int count_ready(struct set *set, struct pollfd *fds, nfds_t count)
{
	int ready = 0;
	nfds_t i;

	for (i = 0; i < count; i++)
		fds[i].revents = 0;
	for (i = 0; i < set->count; i++)
		tell(set, i, &fds[set->asked[i].entry]);
	for (i = 0; i < count; i++)
		ready += !!fds[i].revents;
	return ready;
}

/* A set without a stream needs no librdmacm, which may not even be loaded. */
static int wait_for_set(struct set *set, int64_t deadline)
{
	const int64_t left = sdp_left(deadline);
	const struct timespec time = { left / 1000000000, left % 1000000000 };

	if (set->rdma)
		return sdp_wait(set->fds, set->count, deadline);
	return sdp_libc()->ppoll(set->fds, set->count, left < 0 ? NULL : &time, NULL);
}

/* With the program's signal mask, for as long as it waits. */
static int poll_set(struct set *set, struct pollfd *fds, nfds_t count, int64_t deadline,
		    const sigset_t *mask)
{
	sigset_t old;
	int ready, error;

	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &old);
	ready = wait_for_set(set, deadline);
	error = errno;
	if (mask)
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = error;
	return ready < 0 ? ready : count_ready(set, fds, count);
}

/* *done tells whether it was: only if a socket of the set uses RDMA. */
static int poll_if_rdma(struct pollfd *fds, nfds_t count, int64_t in, const sigset_t *mask,
			bool *done)
{
	struct set set;
	int ready = 0;
	nfds_t i;

	*done = false;
	for (i = 0; i < count; i++)
		if (sdp_table_has(fds[i].fd))
			break;
	if (sdp_inside || i == count)
		return 0;
	if (make_room(&set, count)) {
		*done = true;
		return -1;
	}
	for (i = 0; i < count; i++)
		if (fds[i].fd >= 0)
			add(&set, i, &fds[i]);
	*done = set.rdma || set.ours;
	if (*done)
		ready = poll_set(&set, fds, count, sdp_deadline(in), mask);
	empty(&set);
	return ready;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	bool done;
	int ready = poll_if_rdma(fds, count, sdp_of_milliseconds(timeout), NULL, &done);

	return done ? ready : sdp_libc()->poll(fds, count, timeout);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		 const sigset_t *mask)
{
	bool done;
	int ready = poll_if_rdma(fds, count, sdp_of_timespec(timeout), mask, &done);

	return done ? ready : sdp_libc()->ppoll(fds, count, timeout, mask);
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
	if (room / sizeof(*fds) < count)
		__chk_fail();
	return poll(fds, count, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		       const sigset_t *mask, size_t room)
{
	if (room / sizeof(*fds) < count)
		__chk_fail();
	return ppoll(fds, count, timeout, mask);
}

static bool has(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

static nfds_t poll_of_select(struct pollfd *fds, int top, const fd_set *in, const fd_set *out,
			     const fd_set *except)
{
	nfds_t count = 0;
	short events;
	int fd;

	for (fd = 0; fd < top; fd++) {
		events = (has(in, fd) ? POLLIN : 0) | (has(out, fd) ? POLLOUT : 0) |
			 (has(except, fd) ? POLLPRI : 0);
		if (events)
			fds[count++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return count;
}

static int keep(fd_set *set, int fd, bool ready)
{
	if (!has(set, fd))
		return 0;
	if (!ready)
		FD_CLR(fd, set);
	return ready;
}

static int select_of_poll(const struct pollfd *fds, nfds_t count, fd_set *in, fd_set *out,
			  fd_set *except)
{
	int ready = 0;
	nfds_t i;

	for (i = 0; i < count; i++) {
		if (fds[i].revents & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
		ready += keep(in, fds[i].fd, fds[i].revents & (POLLIN | POLLHUP | POLLERR));
		ready += keep(out, fds[i].fd, fds[i].revents & (POLLOUT | POLLERR));
		ready += keep(except, fds[i].fd, fds[i].revents & POLLPRI);
	}
	return ready;
}

static int select_if_rdma(int top, fd_set *in, fd_set *out, fd_set *except, int64_t timeout,
			  const sigset_t *mask, bool *done)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t count;
	int ready;

	*done = false;
	if (sdp_inside || top > FD_SETSIZE)
		return 0;
	count = poll_of_select(fds, top, in, out, except);
	ready = poll_if_rdma(fds, count, timeout, mask, done);
	return *done && ready >= 0 ? select_of_poll(fds, count, in, out, except) : ready;
}

/* As Linux has it, the time that is left is told. */
EXPORT int select(int top, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	const struct timespec time = timeout ?
		(struct timespec){ timeout->tv_sec, timeout->tv_usec * 1000 } :
		(struct timespec){};
	const int64_t limit = timeout ? sdp_of_timespec(&time) : -1;
	const int64_t deadline = sdp_deadline(limit);
	int64_t left;
	bool done;
	int ready = select_if_rdma(top, in, out, except, limit, NULL, &done);

	if (!done)
		return sdp_libc()->select(top, in, out, except, timeout);
	if (timeout) {
		left = sdp_left(deadline) / 1000;
		*timeout = (struct timeval){ left / 1000000, left % 1000000 };
	}
	return ready;
}

EXPORT int pselect(int top, fd_set *in, fd_set *out, fd_set *except,
		   const struct timespec *timeout, const sigset_t *mask)
{
	bool done;
	int ready = select_if_rdma(top, in, out, except, sdp_of_timespec(timeout), mask, &done);

	return done ? ready : sdp_libc()->pselect(top, in, out, except, timeout, mask);
}
