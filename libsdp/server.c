// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* listen() and accept(). */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>

#include "epoll.h"
#include "libc.h"
#include "log.h"
#include "rdma.h"
#include "sock.h"

#define EXPORT __attribute__((visibility("default")))

/*
 * The rsocket is made in the process that first waits for a connection, as it cannot go
 * from a parent to its child. Of the processes that share the socket one has it, thus;
 * the others accept TCP.
 */
static int listen_idle(struct sdp_sock *sock, int fd, int backlog)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	enum sdp_use use = SDP_USE_SDP;

	if (!sock->asked) {
		if (sdp_libc()->getsockname(fd, (struct sockaddr *)&address, &size))
			return -1;
		use = sdp_config_use(SDP_SERVER, (struct sockaddr *)&address);
	}
	if (use != SDP_USE_SDP && sdp_libc()->listen(fd, backlog))
		return -1;
	if (use == SDP_USE_TCP) {
		atomic_store(&sock->state, SDP_PLAIN);
		return 0;
	}
	sock->tcp = use == SDP_USE_BOTH;
	sock->backlog = backlog;
	/* Nobody may wait in accept() of the one while the other has a connection. */
	sdp_libc()->fcntl(fd, F_SETFL, sdp_libc()->fcntl(fd, F_GETFL) | O_NONBLOCK);
	atomic_store(&sock->state, SDP_LISTENING);
	return 0;
}

EXPORT int listen(int fd, int backlog)
{
	struct sdp_sock *sock = sdp_inside ? NULL : sdp_sock_get(fd);
	int result = 0;

	if (!sock)
		return sdp_libc()->listen(fd, backlog);
	pthread_mutex_lock(&sock->lock);
	switch (atomic_load(&sock->state)) {
	case SDP_IDLE:
		result = listen_idle(sock, fd, backlog);
		break;
	case SDP_LISTENING:
		sock->backlog = backlog;
		break;
	default:
		result = sdp_libc()->listen(fd, backlog);
	}
	pthread_mutex_unlock(&sock->lock);
	if (!result)
		sdp_epoll_changed(sock);
	sdp_sock_put(sock);
	return result;
}

static struct sdp_listener *make_listener(struct sdp_sock *sock, int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address), length = sizeof(int);
	struct sdp_listener *listener;
	int v6only, error, rs;

	if (sdp_libc()->getsockname(fd, (struct sockaddr *)&address, &size))
		return NULL;
	rs = sdp_rdma_socket(sock->family);
	if (rs < 0)
		return NULL;
	if (sock->family == AF_INET6 &&
	    !sdp_libc()->getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, &length))
		RDMA(setsockopt, rs, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, length);
	if (!RDMA(fcntl, rs, F_SETFL, 0) &&
	    !RDMA(bind, rs, (struct sockaddr *)&address, size) &&
	    !RDMA(listen, rs, sock->backlog)) {
		listener = sdp_listener_start(rs);
		if (listener)
			return listener;
	}
	error = errno;
	RDMA(close, rs);
	errno = error;
	return NULL;
}

struct sdp_listener *sdp_sock_listener(struct sdp_sock *sock, int fd)
{
	struct sdp_listener *listener = atomic_load(&sock->listener);

	if (listener)
		return listener;
	pthread_mutex_lock(&sock->lock);
	listener = atomic_load(&sock->listener);
	if (!listener && !sock->tried) {
		sock->tried = true;
		listener = make_listener(sock, fd);
		sock->error = errno;
		atomic_store(&sock->listener, listener);
		if (!listener && (sock->error != EADDRINUSE || !sock->tcp))
			sdp_log("no RDMA for who connects to a socket: %s",
				strerror(sock->error));
	}
	pthread_mutex_unlock(&sock->lock);
	return listener;
}

/* The program's descriptor for a connection: a socket that is not connected. */
static int stream_of(struct sdp_sock *listening, int rs, int flags)
{
	int fd = sdp_libc()->socket(listening->family, SOCK_STREAM | flags, 0);
	struct sdp_sock *sock;

	if (fd < 0)
		return -1;
	sock = sdp_sock_new(listening->family, listening->asked, flags & SOCK_NONBLOCK);
	if (!sock || RDMA(fcntl, rs, F_SETFL, O_NONBLOCK) ||
	    sdp_table_set(fd, &sock->handle)) {
		if (sock)
			sdp_sock_put(sock);
		sdp_libc()->close(fd);
		errno = ENOMEM;
		return -1;
	}
	sdp_sock_stream(sock, rs);
	return fd;
}

static int accept_rdma(struct sdp_sock *sock, struct sdp_listener *listener,
		       struct sockaddr *address, socklen_t *size, int flags)
{
	int error, fd, rs = sdp_listener_take(listener);

	if (rs < 0)
		return -1;
	fd = stream_of(sock, rs, flags);
	if (fd < 0) {
		error = errno;
		RDMA(close, rs);
		errno = error;
	} else if (address) {
		RDMA(getpeername, rs, address, size);
	}
	return fd;
}

/* One try at both. */
static int accept_either(struct sdp_sock *sock, int fd, struct sdp_listener *listener,
			 struct sockaddr *address, socklen_t *size, int flags)
{
	int new = -1;

	errno = EAGAIN;
	if (listener)
		new = accept_rdma(sock, listener, address, size, flags);
	if (new < 0 && errno == EAGAIN && sock->tcp)
		new = sdp_libc()->accept4(fd, address, size, flags);
	return new;
}

static int wait_for_client(struct sdp_sock *sock, int fd, struct sdp_listener *listener)
{
	struct pollfd fds[2];
	nfds_t count = 0;
	int ready;

	if (listener)
		fds[count++] = (struct pollfd){ .fd = sdp_listener_fd(listener), .events = POLLIN };
	if (sock->tcp)
		fds[count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	ready = sdp_libc()->poll(fds, count, sock->receive_limit);
	if (!ready)
		errno = EAGAIN;
	return ready > 0 ? 0 : -1;
}

static int accept_listening(struct sdp_sock *sock, int fd, struct sockaddr *address,
			    socklen_t *size, int flags)
{
	struct sdp_listener *listener = sdp_sock_listener(sock, fd);
	int new;

	if (!listener && !sock->tcp) {
		errno = sock->error;
		return -1;
	}
	do {
		new = accept_either(sock, fd, listener, address, size, flags);
	} while (new < 0 && errno == EAGAIN && !atomic_load(&sock->nonblock) &&
		 !wait_for_client(sock, fd, listener));
	return new;
}

EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_LISTENING);
	int new;

	if (!sock)
		return sdp_libc()->accept4(fd, address, size, flags);
	if (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) {
		errno = EINVAL;
		new = -1;
	} else {
		new = accept_listening(sock, fd, address, size, flags);
	}
	sdp_sock_put(sock);
	return new;
}

EXPORT int accept(int fd, struct sockaddr *address, socklen_t *size)
{
	return accept4(fd, address, size, 0);
}
