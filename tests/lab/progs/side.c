// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parts of rig.h that know nothing of InfiniBand: reporting, the channel to
 * the other side, and test data.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

static int failures;

void die(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, fmt);
	fprintf(stderr, "FAIL ");
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(2);
}

void ok(const char *name)
{
	printf("ok %s\n", name);
	fflush(stdout);
}

void bad(const char *name, const char *fmt, ...)
{
	va_list args;

	failures++;
	va_start(args, fmt);
	printf("FAIL %s: ", name);
	vprintf(fmt, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
}

int report_status(void)
{
	return failures != 0;
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo hints = {
		.ai_family = AF_INET,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = host ? 0 : AI_PASSIVE,
	};
	struct addrinfo *info;
	int ret;

	ret = getaddrinfo(host, port, &hints, &info);
	if (ret)
		die("%s port %s: %s", host ? host : "any", port,
		    gai_strerror(ret));
	return info;
}

/*
 * The tests alternate short messages: none may wait for another.  The other
 * side may be in its own longest wait, and report that.
 */
static int prepare(int chan)
{
	struct timeval limit = { .tv_sec = 3 * RIG_LIMIT };
	int one = 1;

	if (setsockopt(chan, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    setsockopt(chan, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		die("setsockopt: %s", strerror(errno));
	return chan;
}

int chan_accept(const char *port)
{
	struct addrinfo *info = resolve(NULL, port);
	int one = 1, sock, chan;

	sock = socket(info->ai_family, info->ai_socktype, 0);
	if (sock < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(sock, info->ai_addr, info->ai_addrlen) || listen(sock, 1))
		die("listening on port %s: %s", port, strerror(errno));
	freeaddrinfo(info);
	chan = accept(sock, NULL, NULL);
	if (chan < 0)
		die("accept: %s", strerror(errno));
	close(sock);
	return prepare(chan);
}

/* The other side may still be starting: refusals are retried for 10 s. */
int chan_connect(const char *host, const char *port)
{
	static const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
	struct addrinfo *info = resolve(host, port);
	double deadline = now() + 10;
	int chan;

	for (;;) {
		chan = socket(info->ai_family, info->ai_socktype, 0);
		if (chan < 0)
			die("socket: %s", strerror(errno));
		if (!connect(chan, info->ai_addr, info->ai_addrlen))
			break;
		if (errno != ECONNREFUSED || now() > deadline)
			die("connecting to %s port %s: %s", host, port,
			    strerror(errno));
		close(chan);
		nanosleep(&pause, NULL);
	}
	freeaddrinfo(info);
	return prepare(chan);
}

void chan_send(int chan, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = send(chan, p, len, MSG_NOSIGNAL);
		if (n < 0)
			die("the channel to the other side: %s",
			    strerror(errno));
	}
}

bool chan_recv(int chan, void *data, size_t len)
{
	char *p = data;
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = recv(chan, p, len, 0);
		if (n < 0)
			die("the channel to the other side: %s",
			    strerror(errno));
		if (!n && p == data)
			return false;
		if (!n)
			die("the other side ended in the middle");
	}
	return true;
}

void chan_sync(int chan)
{
	char byte = 0;

	chan_send(chan, &byte, 1);
	if (!chan_recv(chan, &byte, 1))
		die("the other side ended");
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

void pattern(void *to, size_t len, uint64_t seed)
{
	uint64_t state = seed, word;
	uint8_t *p = to;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		word = next_random(&state);
		memcpy(p, &word, sizeof(word));
	}
	word = next_random(&state);
	memcpy(p, &word, len);
}
