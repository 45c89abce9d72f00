/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A socket that may come to use RDMA. The program's descriptor is a TCP socket, of which
 * only the number and the options are used while an rsocket stands beside it.
 */
#ifndef LIBSDP_SOCK_H
#define LIBSDP_SOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "edge.h"
#include "listener.h"
#include "rules.h"
#include "table.h"

enum sdp_state {
	SDP_IDLE,	/* not yet decided */
	SDP_LISTENING,	/* on RDMA; if tcp on TCP, too */
	SDP_STREAM,	/* connected by RDMA */
	SDP_PLAIN,	/* TCP, or of no use any more: all is the C library's */
};

struct sdp_sock {
	struct sdp_handle handle;
	pthread_mutex_t lock;		/* what connect, listen and the first accept change */
	int family;			/* AF_INET or AF_INET6 */
	bool asked;			/* of family AF_INET_SDP: no rule is looked for */
	_Atomic enum sdp_state state;
	atomic_int rs;			/* of a stream */
	atomic_bool nonblock;		/* as the program has set it; the rsocket always is */

	/* While listening. */
	bool tcp;
	bool tried;			/* to make the listener, in this process */
	int backlog;
	int error;			/* why there is none */
	_Atomic(struct sdp_listener *) listener;

	int receive_limit;		/* SO_RCVTIMEO, SO_SNDTIMEO in milliseconds; or -1 */
	int send_limit;

	atomic_uint uses_in;		/* see edge.h */
	atomic_uint uses_out;
	atomic_uint parked;		/* waits that leave a direction out until it is used */
};

/* With one reference, the caller's; NULL without memory. */
struct sdp_sock *sdp_sock_new(int family, bool asked, bool nonblock);

/* What stands behind the descriptor, with a reference more, or NULL. */
static inline struct sdp_sock *sdp_sock_get(int fd)
{
	return (struct sdp_sock *)sdp_handle_get(fd, SDP_SOCKET);
}

static inline void sdp_sock_put(struct sdp_sock *sock)
{
	sdp_handle_put(&sock->handle);
}

/* As sdp_sock_get(), if the socket is in that state; and never inside of librdmacm. */
struct sdp_sock *sdp_sock_in(int fd, enum sdp_state state);

static inline int sdp_sock_rs(struct sdp_sock *sock)
{
	return atomic_load(&sock->rs);
}

/* The socket is connected by that rsocket, which it closes at its end. */
void sdp_sock_stream(struct sdp_sock *sock, int rs);

/* What a listening socket has in this process, made if need be; NULL if that failed. */
struct sdp_listener *sdp_sock_listener(struct sdp_sock *sock, int fd);

static inline struct sdp_uses sdp_sock_uses(struct sdp_sock *sock)
{
	return (struct sdp_uses){ atomic_load(&sock->uses_in), atomic_load(&sock->uses_out) };
}

/* The program has used the socket so that it is to be told of it again. */
void sdp_sock_used(struct sdp_sock *sock, atomic_uint *uses);

/* An address of the SDP families as an IP one; -1 with EINVAL if it is too long. */
int sdp_address(struct sockaddr_storage *to, const struct sockaddr *from, socklen_t size);

/* What the configuration says. */
enum sdp_use sdp_config_use(enum sdp_role role, const struct sockaddr *address);
bool sdp_config_concerns(void);

#endif
