/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A client that has the subnet administrator tell it what happens in the fabric.
 *
 *   vmri-traps DEVICE SECONDS [deaf]
 *
 * Subscribes to all, says so, prints a line for each notice that is reported, and
 * answers it, unless it is deaf; ends its subscription after so many seconds.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <rdma/rdma_user_ioctl.h>

#include "umad.h"

#define SA_CLASS		0x03
#define SA_VERSION		2
#define METHOD_SET		0x02
#define METHOD_REPORT		0x06
#define METHOD_GET_RESP		0x81
#define METHOD_REPORT_RESP	0x86
#define ATTR_NOTICE		0x02
#define ATTR_INFORM_INFO	0x03

#define SA_DATA			32	/* where a record is in a packet's data */
#define ANSWER_MS		2000
#define RETRIES			5

static uint16_t sm_lid(const char *device)
{
	char path[256];
	FILE *file;
	unsigned int lid;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/ports/1/sm_lid", device);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%x", &lid) != 1)
		die("%s: %s", path, strerror(errno));
	fclose(file);
	return (uint16_t)lid;
}

/* One that reports come to. */
static uint32_t register_agent(int fd)
{
	struct ib_user_mad_reg_req2 req = {
		.qpn = 1,
		.mgmt_class = SA_CLASS,
		.mgmt_class_version = SA_VERSION,
		.method_mask = { 1ULL << METHOD_REPORT },
	};

	if (ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &req))
		die("registering an agent: %s", strerror(errno));
	return req.id;
}

static void write_message(int fd, const struct message *message)
{
	if (write(fd, message, sizeof(*message)) != sizeof(*message))
		die("sending: %s", strerror(errno));
}

/* To all generic notices of whoever, or no more. */
static void send_inform(int fd, uint32_t agent, uint16_t lid, bool subscribe)
{
	struct message m = {
		.hdr = {
			.id = agent, .qpn = htonl(1), .qkey = htonl(GSI_QKEY),
			.lid = htons(lid), .timeout_ms = ANSWER_MS,
			.retries = RETRIES,
		},
		.mad = {
			.base_version = 1, .mgmt_class = SA_CLASS,
			.class_version = SA_VERSION, .method = METHOD_SET,
			.tid = htobe64(1 + subscribe),
			.attr_id = htons(ATTR_INFORM_INFO),
		},
	};
	uint8_t *info = m.mad.data + SA_DATA;

	info[16] = info[17] = 0xff;
	info[22] = 1;
	info[23] = subscribe;
	memset(info + 24, 0xff, 4);
	if (!subscribe)
		info[30] = 1;	/* QP1, in bits 8 to 31 */
	memset(info + 33, 0xff, 3);
	write_message(fd, &m);
}

/* False: nothing came in time. */
static bool read_message(int fd, struct message *m, int ms)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	if (poll(&poller, 1, ms) <= 0)
		return false;
	if (read(fd, m, sizeof(*m)) < (ssize_t)sizeof(m->hdr))
		die("receiving: %s", strerror(errno));
	return true;
}

/* With the GID as sysfs has it. */
static void print_notice(const uint8_t *notice)
{
	const uint8_t *gid = notice + 16;
	int i;

	printf("trap %u of LID %u:", notice[4] << 8 | notice[5],
	       notice[6] << 8 | notice[7]);
	for (i = 0; i < 16; i += 2)
		printf("%c%02x%02x", i ? ':' : ' ', gid[i], gid[i + 1]);
	printf("\n");
	fflush(stdout);
}

static void take_report(int fd, struct message *m, bool deaf)
{
	if (ntohs(m->mad.attr_id) != ATTR_NOTICE)
		return;
	print_notice(m->mad.data + SA_DATA);
	if (deaf)
		return;
	m->mad.method = METHOD_REPORT_RESP;
	m->hdr.qkey = htonl(GSI_QKEY);
	m->hdr.timeout_ms = 0;
	m->hdr.retries = 0;
	write_message(fd, m);
}

/* Reports that come meanwhile are taken, too. */
static void inform(int fd, uint32_t agent, uint16_t lid, bool subscribe,
		   bool deaf)
{
	struct message m;

	send_inform(fd, agent, lid, subscribe);
	do {
		if (!read_message(fd, &m, 2 * RETRIES * ANSWER_MS) ||
		    m.hdr.status)
			die("the subnet administrator does not answer");
		if (m.mad.method == METHOD_REPORT)
			take_report(fd, &m, deaf);
	} while (m.mad.method != METHOD_GET_RESP);
	if (m.mad.status)
		die("the status is %#x", ntohs(m.mad.status));
	printf("%s\n", subscribe ? "subscribed" : "unsubscribed");
	fflush(stdout);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	bool deaf = argc > 3 && !strcmp(argv[3], "deaf");
	struct message m;
	uint32_t agent;
	int64_t end;
	uint16_t lid;
	int fd;

	if (argc < 3) {
		fprintf(stderr, "usage: vmri-traps DEVICE SECONDS [deaf]\n");
		return 2;
	}
	lid = sm_lid(argv[1]);
	fd = open_umad(argv[1]);
	agent = register_agent(fd);
	inform(fd, agent, lid, true, deaf);

	end = now_ms() + 1000LL * atoi(argv[2]);
	while (now_ms() < end)
		if (read_message(fd, &m, (int)(end - now_ms() + 1)) &&
		    !m.hdr.status && m.mad.method == METHOD_REPORT)
			take_report(fd, &m, deaf);
	inform(fd, agent, lid, false, deaf);
	return 0;
}
