// SPDX-License-Identifier: GPL-2.0-only
/*
 * A ping-pong over libxenvchan, what two guests have that want to talk without a
 * network: the yardstick for the latency of a message. Both look again and again,
 * without sleeping, as perftest does.
 *
 *   vchan-pingpong server|client DOMAIN PATH SIZE ROUNDS
 *
 * DOMAIN is the other guest's number, PATH where the server tells in xenstore what
 * the client needs. The client prints half of a round trip in microseconds, the
 * median. Both end with 1, and a reason, when the other one does not come in a minute
 * or goes, or when what comes back is not what was sent.
 */
#include <errno.h>
#include <libxenvchan.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RING		4096U
#define PATIENCE_NS	60000000000ULL
#define UNTIMED		50U	/* rounds before those that count */

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void transfer(struct libxenvchan *chan, bool out, uint8_t *data, size_t size)
{
	const uint64_t until = now() + PATIENCE_NS;
	unsigned int looks = 0;
	int got;

	while (!(got = out ? libxenvchan_send(chan, data, size)
			   : libxenvchan_recv(chan, data, size))) {
		if (++looks % 1024)
			continue;
		if (!libxenvchan_is_open(chan) || now() > until) {
			fprintf(stderr, "the other guest is gone\n");
			exit(1);
		}
	}
	if (got < 0)
		die("vchan");
}

static struct libxenvchan *serve(int domain, const char *path)
{
	struct libxenvchan *chan = libxenvchan_server_init(NULL, domain, path, RING, RING);
	const uint64_t until = now() + PATIENCE_NS;

	if (!chan)
		die("cannot make a vchan");
	while (libxenvchan_is_open(chan) == 2)
		if (now() > until) {
			fprintf(stderr, "nobody came\n");
			exit(1);
		}
	return chan;
}

/* The server may not be there yet. */
static struct libxenvchan *join(int domain, const char *path)
{
	const uint64_t until = now() + PATIENCE_NS;
	struct libxenvchan *chan;

	while (!(chan = libxenvchan_client_init(NULL, domain, path))) {
		if (now() > until)
			die("cannot join the vchan");
		usleep(10000);
	}
	return chan;
}

static int later(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void ping(struct libxenvchan *chan, size_t size, unsigned int rounds)
{
	uint64_t *took = calloc(rounds, sizeof(*took));
	uint8_t out[RING], in[RING];
	unsigned int i;

	if (!took)
		die("no memory");
	for (i = 0; i < rounds + UNTIMED; i++) {
		const uint64_t start = now();

		memset(out, (int)i, size);
		transfer(chan, true, out, size);
		transfer(chan, false, in, size);
		if (memcmp(in, out, size)) {
			fprintf(stderr, "round %u came back changed\n", i);
			exit(1);
		}
		if (i >= UNTIMED)
			took[i - UNTIMED] = now() - start;
	}
	qsort(took, rounds, sizeof(*took), later);
	printf("%.2f\n", (double)took[rounds / 2] / 2000);
	free(took);
}

static void pong(struct libxenvchan *chan, size_t size, unsigned int rounds)
{
	uint8_t data[RING];
	unsigned int i;

	for (i = 0; i < rounds + UNTIMED; i++) {
		transfer(chan, false, data, size);
		transfer(chan, true, data, size);
	}
}

int main(int argc, char **argv)
{
	const bool server = argc > 1 && !strcmp(argv[1], "server");
	struct libxenvchan *chan;
	unsigned int rounds;
	size_t size;

	if (argc != 6 || (!server && strcmp(argv[1], "client"))) {
		fprintf(stderr, "usage: %s server|client DOMAIN PATH SIZE ROUNDS\n", argv[0]);
		return 2;
	}
	size = strtoul(argv[4], NULL, 0);
	rounds = (unsigned int)strtoul(argv[5], NULL, 0);
	if (!size || size > RING / 2 || !rounds) {
		fprintf(stderr, "1 to %u bytes, and a round at least\n", RING / 2);
		return 2;
	}
	chan = server ? serve(atoi(argv[2]), argv[3]) : join(atoi(argv[2]), argv[3]);
	chan->blocking = 0;
	if (server)
		pong(chan, size, rounds);
	else
		ping(chan, size, rounds);
	/* The client reads what was sent last before the ring goes. */
	while (server && libxenvchan_is_open(chan) == 1)
		;
	libxenvchan_close(chan);
	return 0;
}
