// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* socket(), bind() and connect(). */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "af_sdp.h"
#include "epoll.h"
#include "libc.h"
#include "rdma.h"
#include "sock.h"
#include "wait.h"

#define EXPORT __attribute__((visibility("default")))

/* After it a client of both tries TCP. */
#define CONNECT_LIMIT (10 * 1000)

#define TYPE_FLAGS (SOCK_NONBLOCK | SOCK_CLOEXEC)

static int ip_family(int family)
{
	switch (family) {
	case AF_INET_SDP:
		return AF_INET;
	case AF_INET6_SDP:
		return AF_INET6;
	}
	return family;
}

/* Whether the socket may come to use RDMA. */
static bool is_candidate(int family, int type, int protocol)
{
	if (sdp_inside || (type & ~TYPE_FLAGS) != SOCK_STREAM)
		return false;
	if (ip_family(family) != family)
		return true;
	return (family == AF_INET || family == AF_INET6) &&
	       (!protocol || protocol == IPPROTO_TCP) && sdp_config_concerns();
}

EXPORT int socket(int family, int type, int protocol)
{
	struct sdp_sock *sock;
	bool asked;
	int fd;

	if (!is_candidate(family, type, protocol))
		return sdp_libc()->socket(family, type, protocol);
	asked = ip_family(family) != family;
	family = ip_family(family);
	fd = sdp_libc()->socket(family, type, asked ? 0 : protocol);
	if (fd < 0)
		return -1;
	sock = sdp_sock_new(family, asked, type & SOCK_NONBLOCK);
	if (!sock || sdp_table_set(fd, &sock->handle)) {
		if (sock)
			sdp_sock_put(sock);
		sdp_libc()->close(fd);
		errno = ENOMEM;
		return -1;
	}
	return fd;
}

/* The TCP socket takes the address, which also gives it a port if none was named. */
EXPORT int bind(int fd, const struct sockaddr *address, socklen_t size)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_IDLE);
	struct sockaddr_storage ip;
	int result = -1;

	if (!sock)
		return sdp_libc()->bind(fd, address, size);
	if (!sdp_address(&ip, address, size))
		result = sdp_libc()->bind(fd, (struct sockaddr *)&ip, size);
	sdp_sock_put(sock);
	return result;
}

/* What the program has set before there was an rsocket to set it on. */
static void copy_options(int fd, int rs)
{
	static const struct {
		int level;
		int option;
	} options[] = {
		{ IPPROTO_TCP, TCP_KEEPIDLE },
		{ SOL_SOCKET, SO_KEEPALIVE },
	};
	socklen_t size;
	unsigned int i;
	int value;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		size = sizeof(value);
		if (!sdp_libc()->getsockopt(fd, options[i].level, options[i].option, &value,
					    &size) && value)
			RDMA(setsockopt, rs, options[i].level, options[i].option, &value, size);
	}
}

/* The rsocket has the address that the program has bound its socket to. */
static int bind_alike(int fd, int rs)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);

	if (sdp_libc()->getsockname(fd, (struct sockaddr *)&address, &size))
		return -1;
	/* The port has the same place in both families. */
	if (!((struct sockaddr_in *)&address)->sin_port)
		return 0;
	return RDMA(bind, rs, (struct sockaddr *)&address, size);
}

/*
 * Waits until it is connected, whatever the program has set: only so can another way be
 * taken if it is not.
 */
static int connect_rsocket(int rs, const struct sockaddr *address, socklen_t size)
{
	const int64_t deadline = sdp_deadline(sdp_of_milliseconds(CONNECT_LIMIT));
	socklen_t length = sizeof(int);
	int error;

	if (!RDMA(connect, rs, address, size))
		return 0;
	if (errno != EINPROGRESS)
		return -1;
	while (sdp_wait_for(rs, POLLOUT, deadline)) {
		if (errno == EAGAIN)
			errno = ETIMEDOUT;
		if (errno != EINTR)
			return -1;
	}
	if (RDMA(getsockopt, rs, SOL_SOCKET, SO_ERROR, &error, &length))
		return -1;
	errno = error;
	return error ? -1 : 0;
}

static int connect_by_rdma(struct sdp_sock *sock, int fd, const struct sockaddr *address,
			   socklen_t size)
{
	int rs = sdp_rdma_socket(sock->family);
	int error;

	if (rs < 0)
		return -1;
	if (!bind_alike(fd, rs) && !connect_rsocket(rs, address, size)) {
		copy_options(fd, rs);
		sdp_sock_stream(sock, rs);
		return 0;
	}
	error = errno;
	RDMA(close, rs);
	errno = error;
	return -1;
}

/* With the socket locked and idle. */
static int connect_idle(struct sdp_sock *sock, int fd, const struct sockaddr *address,
			socklen_t size)
{
	enum sdp_use use = sock->asked ? SDP_USE_SDP : sdp_config_use(SDP_CLIENT, address);

	if (use != SDP_USE_TCP) {
		if (!connect_by_rdma(sock, fd, address, size))
			return 0;
		if (use == SDP_USE_SDP)
			return -1;
	}
	atomic_store(&sock->state, SDP_PLAIN);
	return sdp_libc()->connect(fd, address, size);
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	struct sdp_sock *sock = sdp_inside ? NULL : sdp_sock_get(fd);
	struct sockaddr_storage ip;
	int result = -1;

	if (!sock)
		return sdp_libc()->connect(fd, address, size);
	pthread_mutex_lock(&sock->lock);
	if (sdp_address(&ip, address, size))
		;
	else if (atomic_load(&sock->state) == SDP_IDLE)
		result = connect_idle(sock, fd, (struct sockaddr *)&ip, size);
	else if (atomic_load(&sock->state) == SDP_PLAIN)
		result = sdp_libc()->connect(fd, (struct sockaddr *)&ip, size);
	else
		errno = EISCONN;
	pthread_mutex_unlock(&sock->lock);
	if (!result)
		sdp_epoll_changed(sock);
	sdp_sock_put(sock);
	return result;
}
