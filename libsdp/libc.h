/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The C library's own calls, those that libsdp stands in front of. */
#ifndef LIBSDP_LIBC_H
#define LIBSDP_LIBC_H

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define SDP_LIBC_CALLS(CALL)								\
	CALL(int, socket, (int, int, int))						\
	CALL(int, bind, (int, const struct sockaddr *, socklen_t))			\
	CALL(int, listen, (int, int))							\
	CALL(int, accept4, (int, struct sockaddr *, socklen_t *, int))			\
	CALL(int, connect, (int, const struct sockaddr *, socklen_t))			\
	CALL(int, shutdown, (int, int))							\
	CALL(int, close, (int))								\
	CALL(int, close_range, (unsigned int, unsigned int, int))			\
	CALL(int, dup, (int))								\
	CALL(int, dup3, (int, int, int))						\
	CALL(int, fcntl, (int, int, ...))						\
	CALL(int, ioctl, (int, unsigned long, ...))					\
	CALL(int, getsockopt, (int, int, int, void *, socklen_t *))			\
	CALL(int, setsockopt, (int, int, int, const void *, socklen_t))			\
	CALL(int, getpeername, (int, struct sockaddr *, socklen_t *))			\
	CALL(int, getsockname, (int, struct sockaddr *, socklen_t *))			\
	CALL(ssize_t, read, (int, void *, size_t))					\
	CALL(ssize_t, readv, (int, const struct iovec *, int))				\
	CALL(ssize_t, recv, (int, void *, size_t, int))					\
	CALL(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *)) \
	CALL(ssize_t, recvmsg, (int, struct msghdr *, int))				\
	CALL(ssize_t, write, (int, const void *, size_t))				\
	CALL(ssize_t, writev, (int, const struct iovec *, int))				\
	CALL(ssize_t, send, (int, const void *, size_t, int))				\
	CALL(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *,	\
			       socklen_t))						\
	CALL(ssize_t, sendmsg, (int, const struct msghdr *, int))			\
	CALL(ssize_t, sendfile, (int, int, off_t *, size_t))				\
	CALL(int, poll, (struct pollfd *, nfds_t, int))					\
	CALL(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *,		\
			  const sigset_t *))						\
	CALL(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *))	\
	CALL(int, pselect, (int, fd_set *, fd_set *, fd_set *, const struct timespec *,	\
			    const sigset_t *))						\
	CALL(int, epoll_create1, (int))							\
	CALL(int, epoll_ctl, (int, int, int, struct epoll_event *))			\
	CALL(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *))	\
	CALL(int, epoll_pwait2, (int, struct epoll_event *, int, const struct timespec *, \
				 const sigset_t *))

struct sdp_libc {
#define CALL(type, name, args) type (*name) args;
	SDP_LIBC_CALLS(CALL)
#undef CALL
};

/* Also for constructors that run before ours, and thus not a plain variable. */
const struct sdp_libc *sdp_libc(void);

#endif
