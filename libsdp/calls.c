// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The C library's calls that receive and send, also by the names that _FORTIFY_SOURCE has. */
#include <errno.h>
#include <sys/sendfile.h>

#include "libc.h"
#include "transfer.h"

#define EXPORT __attribute__((visibility("default")))

void __chk_fail(void) __attribute__((noreturn));

static ssize_t receive(struct sdp_sock *sock, void *to, size_t size, int flags)
{
	const struct iovec part = { to, size };
	ssize_t got = sdp_receive(sock, &part, 1, flags);

	sdp_sock_put(sock);
	return got;
}

static ssize_t transmit(struct sdp_sock *sock, const void *from, size_t size, int flags)
{
	const struct iovec part = { (void *)from, size };
	ssize_t sent = sdp_send(sock, &part, 1, flags);

	sdp_sock_put(sock);
	return sent;
}

EXPORT ssize_t read(int fd, void *to, size_t size)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);

	return sock ? receive(sock, to, size, 0) : sdp_libc()->read(fd, to, size);
}

EXPORT ssize_t recv(int fd, void *to, size_t size, int flags)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);

	return sock ? receive(sock, to, size, flags) : sdp_libc()->recv(fd, to, size, flags);
}

EXPORT ssize_t recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *address,
			socklen_t *length)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);

	if (!sock)
		return sdp_libc()->recvfrom(fd, to, size, flags, address, length);
	/* As of TCP: the peer is known. */
	if (address && length)
		*length = 0;
	return receive(sock, to, size, flags);
}

EXPORT ssize_t readv(int fd, const struct iovec *vector, int count)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);
	ssize_t got;

	if (!sock)
		return sdp_libc()->readv(fd, vector, count);
	got = sdp_receive(sock, vector, count, 0);
	sdp_sock_put(sock);
	return got;
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);
	ssize_t got;

	if (!sock)
		return sdp_libc()->recvmsg(fd, message, flags);
	got = sdp_receive(sock, message->msg_iov, message->msg_iovlen, flags);
	sdp_sock_put(sock);
	if (got >= 0) {
		message->msg_namelen = 0;
		message->msg_controllen = 0;
		message->msg_flags = 0;
	}
	return got;
}

EXPORT ssize_t write(int fd, const void *from, size_t size)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);

	return sock ? transmit(sock, from, size, 0) : sdp_libc()->write(fd, from, size);
}

EXPORT ssize_t send(int fd, const void *from, size_t size, int flags)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);

	return sock ? transmit(sock, from, size, flags)
		    : sdp_libc()->send(fd, from, size, flags);
}

EXPORT ssize_t sendto(int fd, const void *from, size_t size, int flags,
		      const struct sockaddr *address, socklen_t length)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);

	return sock ? transmit(sock, from, size, flags)
		    : sdp_libc()->sendto(fd, from, size, flags, address, length);
}

EXPORT ssize_t writev(int fd, const struct iovec *vector, int count)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);
	ssize_t sent;

	if (!sock)
		return sdp_libc()->writev(fd, vector, count);
	sent = sdp_send(sock, vector, count, 0);
	sdp_sock_put(sock);
	return sent;
}

/* There is no message beside the bytes that a stream could carry. */
EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);
	ssize_t sent = -1;

	if (!sock)
		return sdp_libc()->sendmsg(fd, message, flags);
	if (message->msg_controllen)
		errno = EOPNOTSUPP;
	else
		sent = sdp_send(sock, message->msg_iov, message->msg_iovlen, flags);
	sdp_sock_put(sock);
	return sent;
}

EXPORT ssize_t sendfile(int fd, int from, off_t *offset, size_t count)
{
	struct sdp_sock *sock = sdp_sock_in(fd, SDP_STREAM);
	ssize_t sent;

	if (!sock)
		return sdp_libc()->sendfile(fd, from, offset, count);
	sent = sdp_send_file(sock, from, offset, count);
	sdp_sock_put(sock);
	return sent;
}

EXPORT ssize_t sendfile64(int fd, int from, off64_t *offset, size_t count)
	__attribute__((alias("sendfile")));

EXPORT ssize_t __read_chk(int fd, void *to, size_t size, size_t room)
{
	if (size > room)
		__chk_fail();
	return read(fd, to, size);
}

EXPORT ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags)
{
	if (size > room)
		__chk_fail();
	return recv(fd, to, size, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags,
			      struct sockaddr *address, socklen_t *length)
{
	if (size > room)
		__chk_fail();
	return recvfrom(fd, to, size, flags, address, length);
}
