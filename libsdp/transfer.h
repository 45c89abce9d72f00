/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bytes to and from a connected socket, with the results and errors that the calls of the
 * C library have.
 */
#ifndef LIBSDP_TRANSFER_H
#define LIBSDP_TRANSFER_H

#include <sys/types.h>
#include <sys/uio.h>

#include "sock.h"

ssize_t sdp_receive(struct sdp_sock *sock, const struct iovec *vector, size_t count, int flags);
ssize_t sdp_send(struct sdp_sock *sock, const struct iovec *vector, size_t count, int flags);

/* As sendfile(2), for a file that has positions. */
ssize_t sdp_send_file(struct sdp_sock *sock, int from, off_t *offset, size_t count);

/* Whether the peer sends no more, and all that it sent has been received. */
bool sdp_at_end(struct sdp_sock *sock);

/* How many bytes can be received at once; not more than some thousands are counted. */
int sdp_readable(struct sdp_sock *sock);

#endif
