/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connection management messages that nobody should send, to the management queue
 * of another port: garbage of all kinds of message, and requests of which a part is
 * wrong.
 *
 *   vmri-badcm DEVICE LID COUNT [SEED]
 *
 * What the other side makes of it is for the caller to see.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_user_ioctl.h>

#include "umad.h"

#define CM_CLASS	0x07
#define CM_VERSION	2
#define METHOD_SEND	0x03
#define LAST_MS		200

/* IBTA 1.4, 12.6: REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR. */
#define FIRST_ATTRIBUTE	0x10
#define LAST_ATTRIBUTE	0x1a
#define REQ		0x10
/* Where a REQ has the service's ID and the port space that it is of. */
#define REQ_SERVICE	8

/* One that sends, and is sent nothing. */
static uint32_t register_agent(int fd)
{
	struct ib_user_mad_reg_req2 req = {
		.qpn = 1,
		.mgmt_class = CM_CLASS,
		.mgmt_class_version = CM_VERSION,
	};

	if (ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &req))
		die("registering an agent: %s", strerror(errno));
	return req.id;
}

static void fill_random(void *to, size_t size)
{
	uint8_t *byte = to;

	while (size--)
		*byte++ = (uint8_t)rand();
}

/* What nobody listens to and what somebody does: IP's port spaces. */
static void name_service(struct mad *mad)
{
	static const uint8_t ip[8] = { 0, 0, 0, 0, 0x01, 0x06, 0x1c, 0x20 };

	memcpy(mad->data + REQ_SERVICE, ip, sizeof(ip));
	if (rand() % 2)
		mad->data[REQ_SERVICE + 7] = (uint8_t)rand();
}

static void make_mad(struct mad *mad, uint64_t tid)
{
	memset(mad, 0, sizeof(*mad));
	mad->base_version = 1;
	mad->mgmt_class = CM_CLASS;
	mad->class_version = CM_VERSION;
	mad->method = METHOD_SEND;
	mad->tid = htobe64(tid);
	mad->attr_id = htons(FIRST_ATTRIBUTE + rand() %
			     (LAST_ATTRIBUTE - FIRST_ATTRIBUTE + 1));
	fill_random(mad->data, sizeof(mad->data));

	switch (rand() % 6) {
	case 0:
		mad->attr_id = htons(REQ);
		name_service(mad);
		break;
	case 1:
		memset(mad->data, rand() % 2 ? 0xff : 0, sizeof(mad->data));
		break;
	case 2:
		mad->attr_id = htons((uint16_t)rand());
		break;
	case 3:
		mad->status = (uint16_t)rand();
		mad->attr_mod = (uint32_t)rand();
		break;
	}
}

static void send_mad(int fd, const struct ib_user_mad_hdr *hdr, uint64_t tid)
{
	struct message message = { .hdr = *hdr };

	make_mad(&message.mad, tid);
	if (write(fd, &message, sizeof(message)) < 0)
		die("sending: %s", strerror(errno));
}

/* One that waits for an answer comes back when all before it are sent. */
static void send_last(int fd, struct ib_user_mad_hdr *hdr, uint64_t tid)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	hdr->timeout_ms = LAST_MS;
	send_mad(fd, hdr, tid);
	if (poll(&poller, 1, 100 * LAST_MS) != 1)
		die("the last message does not come back");
}

int main(int argc, char **argv)
{
	struct ib_user_mad_hdr hdr = {
		.qpn = htonl(1),
		.qkey = htonl(GSI_QKEY),
	};
	unsigned int count, i;
	int fd;

	if (argc < 4) {
		fprintf(stderr, "usage: vmri-badcm DEVICE LID COUNT [SEED]\n");
		return 2;
	}
	hdr.lid = htons((uint16_t)atoi(argv[2]));
	count = (unsigned int)atoi(argv[3]);
	srand(argc > 4 ? (unsigned int)atoi(argv[4]) : 1);
	fd = open_umad(argv[1]);
	hdr.id = register_agent(fd);

	for (i = 1; i < count; i++)
		send_mad(fd, &hdr, i);
	send_last(fd, &hdr, count);
	printf("%u messages sent\n", count);
	return 0;
}
