// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "af_sdp.h"
#include "epoll.h"
#include "rdma.h"
#include "sock.h"

static void release(struct sdp_handle *handle)
{
	struct sdp_sock *sock = (struct sdp_sock *)handle;
	struct sdp_listener *listener = atomic_load(&sock->listener);

	if (atomic_load(&sock->state) == SDP_STREAM)
		RDMA(close, sdp_sock_rs(sock));
	if (listener)
		sdp_listener_stop(listener);
}

const struct sdp_class sdp_classes[SDP_KINDS] = {
	[SDP_SOCKET] = { sizeof(struct sdp_sock), release },
	[SDP_EPOLL] = { sizeof(struct sdp_epoll), sdp_epoll_release },
};

struct sdp_sock *sdp_sock_new(int family, bool asked, bool nonblock)
{
	struct sdp_sock *sock = (struct sdp_sock *)sdp_handle_new(SDP_SOCKET);

	if (!sock)
		return NULL;
	pthread_mutex_init(&sock->lock, NULL);
	sock->family = family;
	sock->asked = asked;
	sock->receive_limit = -1;
	sock->send_limit = -1;
	atomic_store(&sock->nonblock, nonblock);
	return sock;
}

struct sdp_sock *sdp_sock_in(int fd, enum sdp_state state)
{
	struct sdp_sock *sock = sdp_inside ? NULL : sdp_sock_get(fd);

	if (!sock || atomic_load(&sock->state) == state)
		return sock;
	sdp_sock_put(sock);
	return NULL;
}

void sdp_sock_stream(struct sdp_sock *sock, int rs)
{
	atomic_store(&sock->rs, rs);
	atomic_store(&sock->state, SDP_STREAM);
}

void sdp_sock_used(struct sdp_sock *sock, atomic_uint *uses)
{
	atomic_fetch_add(uses, 1);
	if (atomic_load(&sock->parked))
		sdp_epoll_kick();
}

int sdp_address(struct sockaddr_storage *to, const struct sockaddr *from, socklen_t size)
{
	if (size > sizeof(*to) || size < sizeof(from->sa_family)) {
		errno = EINVAL;
		return -1;
	}
	memset(to, 0, sizeof(*to));
	memcpy(to, from, size);
	if (to->ss_family == AF_INET_SDP)
		to->ss_family = AF_INET;
	else if (to->ss_family == AF_INET6_SDP)
		to->ss_family = AF_INET6;
	return 0;
}

/*
 * A child has the numbers of its parent's rsockets, but not what is behind them: queue
 * pairs and the threads that serve them are the parent's. What listened may do so anew,
 * what was connected is of no use to the child but to be closed.
 */
static void forget_rsocket(struct sdp_handle *handle)
{
	struct sdp_sock *sock = (struct sdp_sock *)handle;
	struct sdp_listener *listener;

	if (handle->kind == SDP_EPOLL) {
		sdp_epoll_forked((struct sdp_epoll *)handle);
		return;
	}
	pthread_mutex_init(&sock->lock, NULL);
	sock->tried = false;
	listener = atomic_exchange(&sock->listener, NULL);
	if (listener)
		sdp_listener_forget(listener);
	if (atomic_load(&sock->state) == SDP_STREAM)
		atomic_store(&sock->state, SDP_PLAIN);
}

static void in_child(void)
{
	sdp_table_unlock();
	sdp_rdma_forked();
	sdp_table_each(forget_rsocket);
}

static void __attribute__((constructor)) watch_forks(void)
{
	pthread_atfork(sdp_table_lock, sdp_table_unlock, in_child);
}
