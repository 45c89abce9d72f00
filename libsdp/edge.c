// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <poll.h>
#include <sys/epoll.h>

#include "edge.h"

#define IN_EVENTS (EPOLLIN | EPOLLRDNORM)
#define OUT_EVENTS (EPOLLOUT | EPOLLWRNORM)

void sdp_edge_set(struct sdp_edge *edge, uint32_t events)
{
	*edge = (struct sdp_edge){ .events = events };
}

/* The directions that have something new since they were reported. */
static void arm(struct sdp_edge *edge, struct sdp_uses uses)
{
	if (!(edge->events & EPOLLET))
		edge->reported = 0;
	if (edge->uses.in != uses.in)
		edge->reported &= ~EPOLLIN;
	if (edge->uses.out != uses.out)
		edge->reported &= ~EPOLLOUT;
	edge->uses = uses;
}

int sdp_edge_wants(struct sdp_edge *edge, struct sdp_uses uses)
{
	int wants = 0;

	if (edge->off)
		return -1;
	arm(edge, uses);
	if (edge->events & IN_EVENTS && !(edge->reported & EPOLLIN))
		wants |= POLLIN;
	if (edge->events & OUT_EVENTS && !(edge->reported & EPOLLOUT))
		wants |= POLLOUT;
	return !wants && edge->reported & EPOLLHUP ? -1 : wants;
}

uint32_t sdp_edge_report(struct sdp_edge *edge, short revents, bool eof, struct sdp_uses uses)
{
	uint32_t ready = 0, fresh, events = 0;

	if (edge->off)
		return 0;
	if (revents & (POLLIN | POLLHUP | POLLERR))
		ready |= EPOLLIN;
	if (revents & (POLLOUT | POLLHUP | POLLERR))
		ready |= EPOLLOUT;
	if (revents & (POLLHUP | POLLERR))
		ready |= EPOLLHUP;
	fresh = ready & ~edge->reported;
	if (fresh & EPOLLIN)
		events |= edge->events & IN_EVENTS;
	if (fresh & EPOLLIN && eof)
		events |= edge->events & EPOLLRDHUP;
	if (fresh & EPOLLOUT)
		events |= edge->events & OUT_EVENTS;
	if (fresh & EPOLLHUP || (events && ready & EPOLLHUP))
		events |= (revents & POLLERR ? EPOLLERR : 0) | (revents & POLLHUP ? EPOLLHUP : 0);
	if (!events)
		return 0;
	edge->reported |= ready;
	edge->uses = uses;
	edge->off = edge->events & EPOLLONESHOT;
	return events;
}
