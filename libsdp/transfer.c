// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "rdma.h"
#include "transfer.h"
#include "wait.h"

/* On the stack, for sendfile() and to count what is there. */
#define BUFFER 16384

static bool waits(struct sdp_sock *sock, int flags)
{
	return !(flags & MSG_DONTWAIT) && !atomic_load(&sock->nonblock);
}

/* The sum of the lengths; -1 with EINVAL if there is none. */
static ssize_t total(const struct iovec *vector, size_t count)
{
	size_t sum = 0, i;

	if (count > IOV_MAX)
		goto invalid;
	for (i = 0; i < count; i++)
		if (__builtin_add_overflow(sum, vector[i].iov_len, &sum) || sum > SSIZE_MAX)
			goto invalid;
	return sum;
invalid:
	errno = EINVAL;
	return -1;
}

/* A stream that broke ends for rrecv() as one that was closed. */
static ssize_t end_or_error(int rs)
{
	socklen_t size = sizeof(int);
	int error = 0;

	RDMA(getsockopt, rs, SOL_SOCKET, SO_ERROR, &error, &size);
	if (!error)
		return 0;
	errno = ECONNRESET;
	return -1;
}

/* What is there, for one part of the vector; 0 at the end, -1 with EAGAIN or an error. */
static ssize_t receive_some(struct sdp_sock *sock, void *to, size_t size, int flags)
{
	const int rs = sdp_sock_rs(sock);
	ssize_t got = RDMA(recv, rs, to, size, flags & MSG_PEEK);

	if (got > 0 || (got < 0 && errno == EAGAIN))
		sdp_sock_used(sock, &sock->uses_in);
	return got ? got : end_or_error(rs);
}

/*
 * The first bytes are waited for if the call may wait, all if it says so; a peek always
 * sees the same bytes.
 */
static ssize_t receive_part(struct sdp_sock *sock, const struct iovec *part, bool first,
			    int64_t deadline, int flags)
{
	const bool all = flags & MSG_WAITALL && !(flags & MSG_PEEK);
	size_t done = 0;
	ssize_t got;

	while (done < part->iov_len) {
		got = receive_some(sock, part->iov_base + done, part->iov_len - done, flags);
		if (got > 0) {
			done += got;
			if (!all)
				break;
			continue;
		}
		if (!got || errno != EAGAIN || !waits(sock, flags) ||
		    !(all || (first && !done)))
			return done ? (ssize_t)done : got;
		if (sdp_wait_for(sdp_sock_rs(sock), POLLIN, deadline))
			return done ? (ssize_t)done : -1;
	}
	return done;
}

ssize_t sdp_receive(struct sdp_sock *sock, const struct iovec *vector, size_t count, int flags)
{
	const int64_t deadline = sdp_deadline(sdp_of_milliseconds(sock->receive_limit));
	ssize_t wanted = total(vector, count), done = 0, got;
	size_t i;

	if (wanted <= 0)
		return wanted;
	if (flags & MSG_OOB) {
		errno = EOPNOTSUPP;
		return -1;
	}
	for (i = 0; i < count; i++) {
		if (!vector[i].iov_len)
			continue;
		got = receive_part(sock, &vector[i], !done, deadline, flags);
		if (got < 0)
			return done ? done : -1;
		done += got;
		if ((size_t)got < vector[i].iov_len || flags & MSG_PEEK)
			break;
	}
	return done;
}

/* As TCP tells that nobody receives any more. */
static ssize_t broken(int flags)
{
	if (errno == ECONNRESET || errno == ENOTCONN) {
		if (!(flags & MSG_NOSIGNAL))
			raise(SIGPIPE);
		errno = EPIPE;
	}
	return -1;
}

/*
 * Where a vector goes on after so many bytes. The part that was begun is sent by itself,
 * so that the program's vector is not touched.
 */
struct position {
	const struct iovec *vector;
	size_t count;
	size_t offset;
};

static void advance(struct position *at, size_t bytes)
{
	bytes += at->offset;
	while (at->count && bytes >= at->vector->iov_len) {
		bytes -= at->vector->iov_len;
		at->vector++;
		at->count--;
	}
	at->offset = bytes;
}

static ssize_t send_some(struct sdp_sock *sock, const struct position *at)
{
	const int rs = sdp_sock_rs(sock);

	if (!at->offset && at->count > 1)
		return RDMA(writev, rs, at->vector, at->count);
	return RDMA(send, rs, at->vector->iov_base + at->offset,
		    at->vector->iov_len - at->offset, 0);
}

ssize_t sdp_send(struct sdp_sock *sock, const struct iovec *vector, size_t count, int flags)
{
	const int64_t deadline = sdp_deadline(sdp_of_milliseconds(sock->send_limit));
	struct position at = { vector, count, 0 };
	ssize_t size = total(vector, count), done = 0, sent;

	if (size < 0)
		return -1;
	if (flags & MSG_OOB) {
		errno = EOPNOTSUPP;
		return -1;
	}
	advance(&at, 0);
	while (done < size && at.count) {
		sent = send_some(sock, &at);
		if (sent > 0) {
			done += sent;
			advance(&at, sent);
			continue;
		}
		if (sent < 0 && errno != EAGAIN)
			return done ? done : broken(flags);
		if (!waits(sock, flags)) {
			sdp_sock_used(sock, &sock->uses_out);
			errno = EAGAIN;
			return done ? done : -1;
		}
		if (sdp_wait_for(sdp_sock_rs(sock), POLLOUT, deadline))
			return done ? done : -1;
	}
	return done;
}

ssize_t sdp_send_file(struct sdp_sock *sock, int from, off_t *offset, size_t count)
{
	off_t at = offset ? *offset : lseek(from, 0, SEEK_CUR);
	char buffer[BUFFER];
	struct iovec part = { .iov_base = buffer };
	ssize_t done = 0, got, sent = 0;

	if (at < 0)
		return -1;
	while (count) {
		got = pread(from, buffer, count < BUFFER ? count : BUFFER, at);
		if (got <= 0) {
			sent = got;
			break;
		}
		part.iov_len = got;
		sent = sdp_send(sock, &part, 1, 0);
		if (sent <= 0)
			break;
		done += sent;
		at += sent;
		count -= sent;
		if (sent < got)
			break;
	}
	if (offset)
		*offset = at;
	else if (done)
		lseek(from, at, SEEK_SET);
	return done ? done : sent;
}

bool sdp_at_end(struct sdp_sock *sock)
{
	char byte;

	return !RDMA(recv, sdp_sock_rs(sock), &byte, 1, MSG_PEEK);
}

int sdp_readable(struct sdp_sock *sock)
{
	char buffer[BUFFER];
	ssize_t got = RDMA(recv, sdp_sock_rs(sock), buffer, sizeof(buffer), MSG_PEEK);

	return got > 0 ? got : 0;
}
