// SPDX-License-Identifier: GPL-2.0-only
/* What epoll is to report, against a stream of which the test says what rpoll() sees. */
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../../libsdp/edge.h"
#include "test.h"

static struct sdp_edge edge;
static struct sdp_uses uses;
/* What is so, whether asked for or not. */
static short state;
static bool eof;

/* One wait: 0 if it would not end. */
static uint32_t wait(void)
{
	int wants = sdp_edge_wants(&edge, uses);
	short revents;

	if (wants < 0)
		return 0;
	revents = state & (wants | POLLHUP | POLLERR);
	return revents ? sdp_edge_report(&edge, revents, eof, uses) : 0;
}

TEST(edge_level)
{
	sdp_edge_set(&edge, EPOLLIN);
	CHECK_EQ(wait(), 0);
	state = POLLIN | POLLOUT;
	CHECK_EQ(wait(), EPOLLIN);
	CHECK_EQ(wait(), EPOLLIN);
	state = POLLOUT;
	CHECK_EQ(wait(), 0);
	sdp_edge_set(&edge, EPOLLIN | EPOLLOUT);
	CHECK_EQ(wait(), EPOLLOUT);
	CHECK_EQ(wait(), EPOLLOUT);
}

TEST(edge_level_hang_up)
{
	sdp_edge_set(&edge, 0);
	state = POLLHUP | POLLIN;
	CHECK_EQ(wait(), EPOLLHUP);
	CHECK_EQ(wait(), EPOLLHUP);
	sdp_edge_set(&edge, EPOLLIN | EPOLLRDHUP);
	eof = true;
	CHECK_EQ(wait(), EPOLLIN | EPOLLRDHUP | EPOLLHUP);
	state = POLLERR;
	eof = false;
	CHECK_EQ(wait(), EPOLLIN | EPOLLERR);
}

TEST(edge_both_once)
{
	sdp_edge_set(&edge, EPOLLIN | EPOLLOUT | EPOLLET);
	state = POLLOUT;
	CHECK_EQ(wait(), EPOLLOUT);
	CHECK_EQ(wait(), 0);
	state |= POLLIN;
	CHECK_EQ(wait(), EPOLLIN);
	CHECK_EQ(wait(), 0);
}

/* Also for who reads but part of what is there. */
TEST(edge_again_after_receive)
{
	sdp_edge_set(&edge, EPOLLIN | EPOLLET);
	state = POLLIN;
	CHECK_EQ(wait(), EPOLLIN);
	CHECK_EQ(wait(), 0);
	uses.in++;
	CHECK_EQ(wait(), EPOLLIN);
	uses.in++;
	state = 0;
	CHECK_EQ(wait(), 0);
	state = POLLIN;
	CHECK_EQ(wait(), EPOLLIN);
	CHECK_EQ(wait(), 0);
}

/* Room to send is no news to who never lacked it. */
TEST(edge_again_after_full)
{
	sdp_edge_set(&edge, EPOLLIN | EPOLLOUT | EPOLLET);
	state = POLLOUT;
	CHECK_EQ(wait(), EPOLLOUT);
	uses.in++;
	CHECK_EQ(wait(), 0);
	uses.out++;
	state = 0;
	CHECK_EQ(wait(), 0);
	state = POLLOUT;
	CHECK_EQ(wait(), EPOLLOUT);
	CHECK_EQ(wait(), 0);
}

/* A use while another thread's wait is under way counts. */
TEST(edge_use_during_wait)
{
	int wants;
	struct sdp_uses before = uses;

	sdp_edge_set(&edge, EPOLLIN | EPOLLET);
	wants = sdp_edge_wants(&edge, uses);
	CHECK_EQ(wants, POLLIN);
	uses.in++;
	CHECK_EQ(sdp_edge_report(&edge, POLLIN, false, before), EPOLLIN);
	state = POLLIN;
	CHECK_EQ(wait(), EPOLLIN);
	CHECK_EQ(wait(), 0);
}

/* The end is told once, and no wait spins on it. */
TEST(edge_end)
{
	sdp_edge_set(&edge, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	state = POLLIN | POLLHUP;
	eof = true;
	CHECK_EQ(wait(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP);
	CHECK_EQ(sdp_edge_wants(&edge, uses), -1);
	/* What was left to read, and a send that fails. */
	uses.in++;
	CHECK_EQ(wait(), EPOLLIN | EPOLLRDHUP | EPOLLHUP);
	CHECK_EQ(sdp_edge_wants(&edge, uses), -1);
	uses.out++;
	CHECK_EQ(wait(), EPOLLOUT | EPOLLHUP);
	CHECK_EQ(sdp_edge_wants(&edge, uses), -1);
}

TEST(edge_oneshot)
{
	sdp_edge_set(&edge, EPOLLIN | EPOLLONESHOT);
	state = POLLIN;
	CHECK_EQ(wait(), EPOLLIN);
	uses.in++;
	CHECK_EQ(wait(), 0);
	state = POLLIN | POLLHUP;
	CHECK_EQ(wait(), 0);
	sdp_edge_set(&edge, EPOLLIN | EPOLLONESHOT);
	CHECK_EQ(wait(), EPOLLIN | EPOLLHUP);
	CHECK_EQ(wait(), 0);
}

/* Of two threads that wait for one edge, one is told. */
TEST(edge_two_waiters)
{
	sdp_edge_set(&edge, EPOLLIN | EPOLLET);
	CHECK_EQ(sdp_edge_wants(&edge, uses), POLLIN);
	CHECK_EQ(sdp_edge_wants(&edge, uses), POLLIN);
	CHECK_EQ(sdp_edge_report(&edge, POLLIN, false, uses), EPOLLIN);
	CHECK_EQ(sdp_edge_report(&edge, POLLIN, false, uses), 0);
}
