/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * librdmacm's rsockets, loaded when a program first needs one: most programs that are
 * run with libsdp need none. librdmacm calls poll(), read() and others itself, which come
 * by here; a thread that is inside of it has all its calls passed to the C library.
 */
#ifndef LIBSDP_RDMA_H
#define LIBSDP_RDMA_H

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define SDP_RDMA_CALLS(CALL)								\
	CALL(int, socket, (int, int, int))						\
	CALL(int, bind, (int, const struct sockaddr *, socklen_t))			\
	CALL(int, listen, (int, int))							\
	CALL(int, accept, (int, struct sockaddr *, socklen_t *))			\
	CALL(int, connect, (int, const struct sockaddr *, socklen_t))			\
	CALL(int, shutdown, (int, int))							\
	CALL(int, close, (int))								\
	CALL(ssize_t, recv, (int, void *, size_t, int))					\
	CALL(ssize_t, send, (int, const void *, size_t, int))				\
	CALL(ssize_t, writev, (int, const struct iovec *, int))				\
	CALL(int, poll, (struct pollfd *, nfds_t, int))					\
	CALL(int, getpeername, (int, struct sockaddr *, socklen_t *))			\
	CALL(int, getsockname, (int, struct sockaddr *, socklen_t *))			\
	CALL(int, getsockopt, (int, int, int, void *, socklen_t *))			\
	CALL(int, setsockopt, (int, int, int, const void *, socklen_t))			\
	CALL(int, fcntl, (int, int, ...))

struct sdp_rdma {
#define CALL(type, name, args) type (*name) args;
	SDP_RDMA_CALLS(CALL)
#undef CALL
};

extern struct sdp_rdma sdp_rdma;

/* How deep this thread is inside of librdmacm. */
extern __thread int sdp_inside __attribute__((tls_model("initial-exec")));

/* RDMA(recv, fd, ...) calls rrecv(fd, ...); there is a socket, so it is loaded. */
#define RDMA(name, ...) ({					\
	__typeof__(sdp_rdma.name(__VA_ARGS__)) sdp_result;	\
	sdp_inside++;						\
	sdp_result = sdp_rdma.name(__VA_ARGS__);		\
	sdp_inside--;						\
	sdp_result;						\
})

/*
 * A nonblocking rsocket; -1 with EAFNOSUPPORT if librdmacm is not installed, or if this
 * process has inherited it by fork(), which it does not survive.
 */
int sdp_rdma_socket(int family);

/* To be called in the child of a fork(). */
void sdp_rdma_forked(void);

#endif
