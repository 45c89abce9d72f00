/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which file descriptors are ours, and what stands behind them. Looking one up takes no
 * lock, as each read() of the program does it: a handle is never given back to malloc(),
 * so one that was just let go can still be looked at and is then found to be another's.
 */
#ifndef LIBSDP_TABLE_H
#define LIBSDP_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum sdp_kind {
	SDP_SOCKET,
	SDP_EPOLL,
	SDP_KINDS,
};

/* The first member of what stands behind a descriptor. */
struct sdp_handle {
	atomic_uint refs;		/* descriptors, and calls under way */
	enum sdp_kind kind;		/* never changes */
	struct sdp_handle *next;	/* of those without a reference */
	struct sdp_handle *next_made;
};

/*
 * What a kind is: its size, and what is to be done when the last reference goes. Of its
 * memory all behind the handle is zero when it is new.
 */
struct sdp_class {
	size_t size;
	void (*release)(struct sdp_handle *handle);
};

extern const struct sdp_class sdp_classes[SDP_KINDS];

/* A handle with one reference, the caller's. NULL without memory. */
struct sdp_handle *sdp_handle_new(enum sdp_kind kind);

/* What stands behind a descriptor, with a reference more, or NULL if it is not of the kind. */
struct sdp_handle *sdp_handle_get(int fd, enum sdp_kind kind);

void sdp_handle_put(struct sdp_handle *handle);

/*
 * The descriptor takes the caller's reference, and what it had is let go. -1 with ENOMEM
 * or EMFILE, upon which the reference is still the caller's.
 */
int sdp_table_set(int fd, struct sdp_handle *handle);

/* The descriptor is forgotten; its reference is the caller's. NULL if it had none. */
struct sdp_handle *sdp_table_take(int fd);

/* Whether the descriptor is ours. */
bool sdp_table_has(int fd);

/* The first descriptor from fd on that is ours, or -1. */
int sdp_table_next(int fd);

/* Calls for each handle that has a reference; no thread may be about. */
void sdp_table_each(void (*call)(struct sdp_handle *handle));

/* Around fork(). */
void sdp_table_lock(void);
void sdp_table_unlock(void);

#endif
