// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Options and names of sockets, and shutdown(). */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/time.h>

#include "libc.h"
#include "rdma.h"
#include "sock.h"

#define EXPORT __attribute__((visibility("default")))

/* A connection that is no more is reset, whatever the adapter calls it. */
static int take_error(struct sdp_sock *sock, void *value, socklen_t *size)
{
	socklen_t length = sizeof(int);
	int error = 0;

	RDMA(getsockopt, sdp_sock_rs(sock), SOL_SOCKET, SO_ERROR, &error, &length);
	if (error)
		error = ECONNRESET;
	if (*size > sizeof(error))
		*size = sizeof(error);
	memcpy(value, &error, *size);
	return 0;
}

/* All but what only the stream knows is as the TCP socket has it. */
EXPORT int getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);
	int result;

	if (sock && level == SOL_SOCKET && option == SO_ERROR) {
		result = take_error(sock, value, size);
	} else {
		result = sdp_libc()->getsockopt(fd, level, option, value, size);
		if (sock && !result && level == IPPROTO_TCP && option == TCP_INFO && *size)
			((struct tcp_info *)value)->tcpi_state = TCP_ESTABLISHED;
	}
	if (sock)
		sdp_sock_put(sock);
	return result;
}

static int milliseconds(const void *value)
{
	const struct timeval *time = value;

	if (!time->tv_sec && !time->tv_usec)
		return -1;
	if (time->tv_sec > INT32_MAX / 1000 - 1)
		return -1;
	return time->tv_sec * 1000 + (time->tv_usec + 999) / 1000;
}

/* What the C library has taken matters to the stream, too, in these. */
static void note_option(struct sdp_sock *sock, int level, int option, const void *value,
			socklen_t size)
{
	if (level == SOL_SOCKET && option == SO_RCVTIMEO)
		sock->receive_limit = milliseconds(value);
	else if (level == SOL_SOCKET && option == SO_SNDTIMEO)
		sock->send_limit = milliseconds(value);
	else if (atomic_load(&sock->state) == SDP_STREAM &&
		 ((level == SOL_SOCKET && option == SO_KEEPALIVE) ||
		  (level == IPPROTO_TCP && option == TCP_KEEPIDLE)))
		RDMA(setsockopt, sdp_sock_rs(sock), level, option, value, size);
}

EXPORT int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	int result = sdp_libc()->setsockopt(fd, level, option, value, size);
	struct sdp_sock *sock;

	if (result || sdp_inside)
		return result;
	sock = sdp_sock_get(fd);
	if (sock) {
		note_option(sock, level, option, value, size);
		sdp_sock_put(sock);
	}
	return 0;
}

EXPORT int getsockname(int fd, struct sockaddr *address, socklen_t *size)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);
	int result;

	if (!sock)
		return sdp_libc()->getsockname(fd, address, size);
	result = RDMA(getsockname, sdp_sock_rs(sock), address, size);
	sdp_sock_put(sock);
	return result;
}

EXPORT int getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);
	int result;

	if (!sock)
		return sdp_libc()->getpeername(fd, address, size);
	result = RDMA(getpeername, sdp_sock_rs(sock), address, size);
	sdp_sock_put(sock);
	return result;
}

EXPORT int shutdown(int fd, int how)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);
	int result;

	if (!sock)
		return sdp_libc()->shutdown(fd, how);
	result = RDMA(shutdown, sdp_sock_rs(sock), how);
	sdp_sock_put(sock);
	return result;
}
