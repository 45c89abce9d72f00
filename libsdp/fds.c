// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Descriptors that are closed and doubled; fcntl() and ioctl(). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "epoll.h"
#include "libc.h"
#include "rdma.h"
#include "sock.h"
#include "transfer.h"

#define EXPORT __attribute__((visibility("default")))

/* The peer hears of the end when nobody uses the socket any more. */
static void forget(int fd)
{
	struct sdp_handle *handle = sdp_table_take(fd);
	int error = errno;

	if (!handle)
		return;
	sdp_epoll_closed(fd);
	sdp_handle_put(handle);
	errno = error;
}

EXPORT int close(int fd)
{
	if (!sdp_inside)
		forget(fd);
	return sdp_libc()->close(fd);
}

EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	int fd;

	if (!sdp_inside && !(flags & CLOSE_RANGE_CLOEXEC) && first <= INT_MAX)
		for (fd = sdp_table_next(first); fd >= 0 && (unsigned int)fd <= last;
		     fd = sdp_table_next(fd + 1))
			forget(fd);
	return sdp_libc()->close_range(first, last, flags);
}

EXPORT void closefrom(int first)
{
	close_range(first < 0 ? 0 : first, ~0U, 0);
}

static struct sdp_handle *handle_of(int fd)
{
	struct sdp_handle *handle;

	if (sdp_inside)
		return NULL;
	handle = sdp_handle_get(fd, SDP_SOCKET);
	return handle ? handle : sdp_handle_get(fd, SDP_EPOLL);
}

/* The new descriptor, if there is one, takes the reference. */
static int doubled(struct sdp_handle *handle, int fd)
{
	int error;

	if (!handle)
		return fd;
	if (fd >= 0 && !sdp_table_set(fd, handle))
		return fd;
	error = errno;
	if (fd >= 0)
		sdp_libc()->close(fd);
	sdp_handle_put(handle);
	errno = error;
	return -1;
}

EXPORT int dup(int fd)
{
	struct sdp_handle *handle = handle_of(fd);

	return doubled(handle, sdp_libc()->dup(fd));
}

EXPORT int dup3(int from, int to, int flags)
{
	struct sdp_handle *handle = handle_of(from);

	/* Of what cannot be doubled the other stays open. */
	if (!sdp_inside && from != to && sdp_libc()->fcntl(from, F_GETFD) >= 0)
		forget(to);
	return doubled(handle, sdp_libc()->dup3(from, to, flags));
}

EXPORT int dup2(int from, int to)
{
	if (from != to)
		return dup3(from, to, 0);
	return sdp_libc()->fcntl(from, F_GETFD) < 0 ? -1 : to;
}

static int get_flags(int fd)
{
	struct sdp_sock *sock = sdp_inside ? NULL : sdp_sock_get(fd);
	int flags = sdp_libc()->fcntl(fd, F_GETFL);

	if (!sock)
		return flags;
	if (flags >= 0) {
		flags &= ~O_NONBLOCK;
		flags |= atomic_load(&sock->nonblock) ? O_NONBLOCK : 0;
	}
	sdp_sock_put(sock);
	return flags;
}

static int set_flags(int fd, int flags)
{
	struct sdp_sock *sock = sdp_inside ? NULL : sdp_sock_get(fd);
	int result;

	if (!sock)
		return sdp_libc()->fcntl(fd, F_SETFL, flags);
	atomic_store(&sock->nonblock, flags & O_NONBLOCK);
	if (atomic_load(&sock->state) == SDP_LISTENING)
		flags |= O_NONBLOCK;
	result = sdp_libc()->fcntl(fd, F_SETFL, flags);
	sdp_sock_put(sock);
	return result;
}

EXPORT int fcntl(int fd, int command, ...)
{
	struct sdp_handle *handle;
	va_list args;
	void *arg;

	/* Whatever it is, an int too, it is passed in the same place. */
	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	switch (command) {
	case F_GETFL:
		return get_flags(fd);
	case F_SETFL:
		return set_flags(fd, (int)(long)arg);
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		handle = handle_of(fd);
		return doubled(handle, sdp_libc()->fcntl(fd, command, arg));
	}
	return sdp_libc()->fcntl(fd, command, arg);
}

EXPORT int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct sdp_sock *sock;
	va_list args;
	int flags;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == FIONBIO && !sdp_inside) {
		flags = get_flags(fd);
		if (flags >= 0)
			return set_flags(fd, *(int *)arg ? flags | O_NONBLOCK
							  : flags & ~O_NONBLOCK);
	} else if (request == FIONREAD) {
		sock = sdp_sock_in(fd, SDP_STREAM);
		if (sock) {
			*(int *)arg = sdp_readable(sock);
			sdp_sock_put(sock);
			return 0;
		}
	}
	return sdp_libc()->ioctl(fd, request, arg);
}
