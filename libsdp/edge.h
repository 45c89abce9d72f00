/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When a socket that is registered with epoll is to be reported, again: level and edge
 * triggered, and once. Edges have to be made up, as rpoll() tells levels: a direction
 * that was reported is not again before the program has used the socket so that there
 * is something to tell. Two counters of the socket say so:
 *
 *   in    received bytes or EAGAIN. Not the end of the stream, which comes but once.
 *   out   EAGAIN or fewer bytes than asked from a send
 *
 * More may be reported than the kernel would (data that was left unread, upon a receive),
 * never less.
 */
#ifndef LIBSDP_EDGE_H
#define LIBSDP_EDGE_H

#include <stdbool.h>
#include <stdint.h>

struct sdp_uses {
	unsigned int in;
	unsigned int out;
};

struct sdp_edge {
	uint32_t events;	/* as given to epoll_ctl(2) */
	uint32_t reported;	/* EPOLLIN, EPOLLOUT, EPOLLHUP: told, and not armed since */
	struct sdp_uses uses;	/* when that was */
	bool off;		/* EPOLLONESHOT, and reported */
};

/* A new registration, or a changed one. */
void sdp_edge_set(struct sdp_edge *edge, uint32_t events);

/*
 * What rpoll() is to be asked for: POLLIN, POLLOUT, both, or 0 for errors only, with the
 * uses of the socket then. -1 if whatever it says is not to be reported.
 */
int sdp_edge_wants(struct sdp_edge *edge, struct sdp_uses uses);

/*
 * The events to report for what rpoll() answered; 0 for none. The uses are those that
 * were given to sdp_edge_wants(), eof says that the peer sends no more.
 */
uint32_t sdp_edge_report(struct sdp_edge *edge, short revents, bool eof, struct sdp_uses uses);

#endif
