// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program of SDP, as libsdp is to run it: streams that are sent back by the other end,
 * with each way that a program has to wait.
 *
 *   vmri-sdp serve HOW PORT CONNECTIONS    sends back all that comes, one after the other
 *   vmri-sdp send HOW ADDRESS PORT BYTES   sends, half-closes, checks all that comes back
 *   vmri-sdp hold HOW ADDRESS PORT         sends one byte, waits until the peer is no more
 *
 * HOW is one of block, poll, select, epoll and edge; with a prefix "tcp-" the sockets are
 * of TCP, and rules say what becomes of them; with "fork-" the server forks between
 * listen() and accept().
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../libsdp/af_sdp.h"

#define CHUNK 40000
#define LIMIT 60000

static enum { BLOCK, POLL, SELECT, EPOLL, EDGE } how;
static int family = AF_INET_SDP;
static bool forks;
static int epfd = -1;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static void parse_how(const char *text)
{
	static const char *const names[] = { "block", "poll", "select", "epoll", "edge" };
	unsigned int i;

	if (!strncmp(text, "tcp-", 4)) {
		family = AF_INET;
		text += 4;
	}
	if (!strncmp(text, "fork-", 5)) {
		forks = true;
		text += 5;
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i])) {
			how = i;
			return;
		}
	check(false, "HOW is one of block, poll, select, epoll and edge");
}

/* An edge tells of both directions, once. */
static void watch(int fd, bool in, bool out)
{
	struct epoll_event event = {
		.events = (in ? EPOLLIN : 0) | (out ? EPOLLOUT : 0), .data.fd = fd,
	};

	if (how == EDGE)
		event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	if (epoll_ctl(epfd, EPOLL_CTL_MOD, fd, &event) &&
	    epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl");
}

/* Waits for any of them, as edges are meant: after both had EAGAIN. */
static void await(int fd, bool in, bool out)
{
	struct pollfd one = { .fd = fd, .events = (in ? POLLIN : 0) | (out ? POLLOUT : 0) };
	struct timeval limit = { .tv_sec = LIMIT / 1000 };
	struct epoll_event event;
	fd_set ins, outs;
	int ready = 0;

	switch (how) {
	case BLOCK:
		return;
	case POLL:
		ready = poll(&one, 1, LIMIT);
		break;
	case SELECT:
		FD_ZERO(&ins);
		FD_ZERO(&outs);
		if (in)
			FD_SET(fd, &ins);
		if (out)
			FD_SET(fd, &outs);
		ready = select(fd + 1, &ins, &outs, NULL, &limit);
		break;
	case EPOLL:
		watch(fd, in, out);
		/* fallthrough */
	case EDGE:
		ready = epoll_wait(epfd, &event, 1, LIMIT);
		check(ready < 1 || event.data.fd == fd, "an event of another socket");
		break;
	}
	if (ready < 0)
		die("wait");
	check(ready, "nothing came");
}

static void set_up(int fd)
{
	if (how == BLOCK)
		return;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		die("fcntl");
	check(fcntl(fd, F_GETFL) & O_NONBLOCK, "O_NONBLOCK is not told");
	if (how == EDGE)
		watch(fd, true, true);
}

static void unwatch(int fd)
{
	if (how == EPOLL || how == EDGE)
		epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL);
}

/* Bytes of a stream, such that any that is lost or moved shows. */
static uint8_t byte_at(uint64_t at)
{
	return (at * 0x9e3779b97f4a7c15ull) >> 56;
}

static int connect_to(const char *address, const char *port)
{
	struct sockaddr_in to = {
		.sin_family = family, .sin_port = htons(atoi(port)),
	};
	socklen_t size = sizeof(to);
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0)
		die("socket");
	check(inet_pton(AF_INET, address, &to.sin_addr) == 1, "no address");
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("connect");
	memset(&to, 0, sizeof(to));
	if (getpeername(fd, (struct sockaddr *)&to, &size))
		die("getpeername");
	check(to.sin_port == htons(atoi(port)), "the peer has another port");
	set_up(fd);
	return fd;
}

/* What is to be sent, and was. */
struct flow {
	int fd;
	uint64_t sent;
	uint64_t got;
	uint64_t size;
};

/* false upon EAGAIN. */
static bool send_more(struct flow *flow)
{
	uint8_t buffer[CHUNK];
	size_t size = flow->size - flow->sent < CHUNK ? flow->size - flow->sent : CHUNK, i;
	ssize_t sent;

	for (i = 0; i < size; i++)
		buffer[i] = byte_at(flow->sent + i);
	sent = send(flow->fd, buffer, size, MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN)
		die("send");
	if (sent > 0)
		flow->sent += sent;
	if (flow->sent == flow->size && shutdown(flow->fd, SHUT_WR))
		die("shutdown");
	return sent > 0;
}

/* false upon EAGAIN, and at the end. */
static bool receive_more(struct flow *flow, bool *end)
{
	uint8_t buffer[CHUNK];
	ssize_t got = recv(flow->fd, buffer, sizeof(buffer), 0), i;

	if (got < 0 && errno != EAGAIN)
		die("recv");
	for (i = 0; i < got; i++)
		check(buffer[i] == byte_at(flow->got + i), "a wrong byte came back");
	if (got > 0)
		flow->got += got;
	*end = !got;
	return got > 0;
}

static void *sender(void *arg)
{
	struct flow *flow = arg;

	while (flow->sent < flow->size)
		send_more(flow);
	return NULL;
}

static void send_stream(const char *address, const char *port, const char *bytes)
{
	struct flow flow = { .fd = connect_to(address, port), .size = strtoull(bytes, NULL, 0) };
	bool end = false, more;
	pthread_t thread;

	if (how == BLOCK) {
		if (pthread_create(&thread, NULL, sender, &flow))
			die("pthread_create");
		while (!end)
			receive_more(&flow, &end);
		pthread_join(thread, NULL);
	}
	while (!end) {
		more = flow.sent < flow.size && send_more(&flow);
		more |= receive_more(&flow, &end);
		if (!more && !end)
			await(flow.fd, true, flow.sent < flow.size);
	}
	check(flow.got == flow.size, "the stream ended before its end");
	unwatch(flow.fd);
	close(flow.fd);
	printf("%llu bytes came back\n", (unsigned long long)flow.got);
}

static void hold_stream(const char *address, const char *port)
{
	struct flow flow = { .fd = connect_to(address, port) };
	char byte = 'x';
	ssize_t got;

	if (send(flow.fd, &byte, 1, MSG_NOSIGNAL) != 1)
		die("send");
	/* What was sent comes back first. */
	for (;;) {
		got = recv(flow.fd, &byte, 1, 0);
		if (got < 0 && errno == EAGAIN) {
			await(flow.fd, true, false);
			continue;
		}
		if (got != 1)
			break;
		printf("held\n");
		fflush(stdout);
	}
	printf("the peer is no more: %s\n", got ? strerror(errno) : "end of stream");
}

/* One stream: what came is kept until it is sent back. */
static void serve_stream(int fd)
{
	static uint8_t buffer[CHUNK];
	ssize_t got = 0, sent = 0, done;
	bool end = false;

	set_up(fd);
	while (!end || sent < got) {
		if (sent == got) {
			sent = 0;
			got = recv(fd, buffer, sizeof(buffer), 0);
			end = !got;
			if (got < 0 && errno != EAGAIN)
				break;
			if (got < 0) {
				got = 0;
				await(fd, true, false);
			}
			continue;
		}
		done = send(fd, buffer + sent, got - sent, MSG_NOSIGNAL);
		if (done < 0 && errno != EAGAIN)
			break;
		if (done < 0)
			await(fd, false, true);
		else
			sent += done;
	}
	unwatch(fd);
	close(fd);
}

static int accept_one(int listener)
{
	struct sockaddr_in from;
	socklen_t size;
	int fd;

	for (;;) {
		size = sizeof(from);
		fd = accept(listener, (struct sockaddr *)&from, &size);
		if (fd >= 0)
			break;
		if (errno != EAGAIN)
			die("accept");
		await(listener, true, false);
	}
	check(size == sizeof(from) && from.sin_family == AF_INET, "accept() tells no address");
	return fd;
}

static void serve(const char *port, int connections)
{
	struct sockaddr_in at = { .sin_family = family, .sin_port = htons(atoi(port)) };
	int listener = socket(family, SOCK_STREAM, 0), on = 1, status;
	struct pollfd at_once = { .fd = listener, .events = POLLIN };
	pid_t child;

	if (listener < 0)
		die("socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)))
		die("bind");
	if (listen(listener, 8))
		die("listen");
	if (forks) {
		child = fork();
		if (child) {
			waitpid(child, &status, 0);
			exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
		}
	}
	epfd = how == EPOLL || how == EDGE ? epoll_create1(EPOLL_CLOEXEC) : -1;
	set_up(listener);
	/* A server of SDP can be reached from when it first waits. */
	poll(&at_once, 1, 0);
	printf("listening as %d\n", (int)getpid());
	fflush(stdout);
	while (connections--)
		serve_stream(accept_one(listener));
	close(listener);
}

int main(int argc, char **argv)
{
	check(argc > 4, "vmri-sdp serve HOW PORT CONNECTIONS | send HOW ADDRESS PORT BYTES | "
			"hold HOW ADDRESS PORT");
	parse_how(argv[2]);
	if (!strcmp(argv[1], "serve")) {
		serve(argv[3], atoi(argv[4]));
		return 0;
	}
	epfd = how == EPOLL || how == EDGE ? epoll_create1(EPOLL_CLOEXEC) : -1;
	if (!strcmp(argv[1], "hold"))
		hold_stream(argv[3], argv[4]);
	else if (!strcmp(argv[1], "send") && argc > 5)
		send_stream(argv[3], argv[4], argv[5]);
	else
		check(false, "serve, send with BYTES, or hold");
	return 0;
}
