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
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_user_ioctl.h>

#include "rig.h"

#define UMADS		"/sys/class/infiniband_mad"
#define MAD_SIZE	256
#define CM_CLASS	0x07
#define CM_VERSION	2
#define METHOD_SEND	0x03
#define GSI_QKEY	0x80010000
#define LAST_MS		200

/* IBTA 1.4, 12.6: REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR. */
#define FIRST_ATTRIBUTE	0x10
#define LAST_ATTRIBUTE	0x1a
#define REQ		0x10
/* Where a REQ has the service's ID and the port space that it is of. */
#define REQ_SERVICE	8

struct mad {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	uint16_t status;
	uint16_t reserved0;
	uint64_t tid;
	uint16_t attr_id;
	uint16_t reserved1;
	uint32_t attr_mod;
	uint8_t data[MAD_SIZE - 24];
};

struct message {
	struct ib_user_mad_hdr hdr;
	struct mad mad;
};

static bool is_of(const char *umad, const char *device)
{
	char path[512], name[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), UMADS "/%s/ibdev", umad);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		*name = '\0';
	fclose(file);
	name[strcspn(name, "\n")] = '\0';
	return !strcmp(name, device);
}

static int open_umad(const char *device)
{
	DIR *umads = opendir(UMADS);
	struct dirent *entry;
	char path[512];
	int fd = -1;

	if (!umads)
		die("%s: %s", UMADS, strerror(errno));
	while (fd < 0 && (entry = readdir(umads)))
		if (!strncmp(entry->d_name, "umad", 4) &&
		    is_of(entry->d_name, device)) {
			snprintf(path, sizeof(path), "/dev/infiniband/%s",
				 entry->d_name);
			fd = open(path, O_RDWR | O_CLOEXEC);
			if (fd < 0)
				die("%s: %s", path, strerror(errno));
		}
	closedir(umads);
	if (fd < 0)
		die("%s has no management device", device);
	return fd;
}

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
