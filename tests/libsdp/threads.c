// SPDX-License-Identifier: GPL-2.0-only
/*
 * threads PORT: a server of SDP whose threads all wait on one edge-triggered set, and its
 * clients, in one process. Events are taken once, lest two threads have one socket.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../libsdp/af_sdp.h"

#define CLIENTS 40
#define SERVERS 4
#define ROUNDS 200
#define WANTED (EPOLLIN | EPOLLET | EPOLLONESHOT)

static const char message[] = "sixteen bytes ..";

static int epfd;
static atomic_int ended;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* All that there is now. */
static void send_back(int fd)
{
	char buffer[64];
	ssize_t got, sent;

	while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
		do {
			sent = send(fd, buffer, got, MSG_NOSIGNAL);
		} while (sent < 0 && errno == EAGAIN);
		if (sent != got)
			die("send");
	}
	if (got) {
		if (errno != EAGAIN)
			die("recv");
		return;
	}
	close(fd);
	atomic_fetch_add(&ended, 1);
}

static void *serve(void *arg)
{
	struct epoll_event events[4], again = { .events = WANTED };
	int count, i;

	while (atomic_load(&ended) < CLIENTS) {
		count = epoll_wait(epfd, events, 4, 500);
		if (count < 0)
			die("epoll_wait");
		for (i = 0; i < count; i++) {
			send_back(events[i].data.fd);
			again.data.fd = events[i].data.fd;
			epoll_ctl(epfd, EPOLL_CTL_MOD, again.data.fd, &again);
		}
	}
	return arg;
}

static void *ask(void *arg)
{
	char answer[sizeof(message)];
	int fd = (int)(long)arg, i;

	for (i = 0; i < ROUNDS; i++) {
		if (send(fd, message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
			die("send");
		if (recv(fd, answer, sizeof(answer), MSG_WAITALL) != sizeof(answer))
			die("recv");
		if (memcmp(answer, message, sizeof(answer)))
			die("another answer");
	}
	close(fd);
	return NULL;
}

static pthread_t start(void *(*run)(void *), long arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, (void *)arg))
		die("pthread_create");
	return thread;
}

static int client_of(int listener, const struct sockaddr_in *at)
{
	struct epoll_event event = { .events = WANTED };
	int fd = socket(AF_INET_SDP, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof(*at)))
		die("connect");
	event.data.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	if (event.data.fd < 0)
		die("accept");
	if (epoll_ctl(epfd, EPOLL_CTL_ADD, event.data.fd, &event))
		die("epoll_ctl");
	return fd;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET_SDP };
	int listener = socket(AF_INET_SDP, SOCK_STREAM, 0), i;
	struct pollfd at_once = { .fd = listener, .events = POLLIN };
	pthread_t servers[SERVERS], clients[CLIENTS];

	at.sin_port = htons(argc > 1 ? atoi(argv[1]) : 0);
	inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, CLIENTS))
		die("listen");
	poll(&at_once, 1, 0);
	epfd = epoll_create1(EPOLL_CLOEXEC);
	for (i = 0; i < SERVERS; i++)
		servers[i] = start(serve, 0);
	for (i = 0; i < CLIENTS; i++)
		clients[i] = start(ask, client_of(listener, &at));
	for (i = 0; i < CLIENTS; i++)
		pthread_join(clients[i], NULL);
	for (i = 0; i < SERVERS; i++)
		pthread_join(servers[i], NULL);
	return 0;
}
