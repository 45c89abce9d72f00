/* SPDX-License-Identifier: GPL-2.0-only */
/* Management packets, by the kernel's ib_umad alone. */
#ifndef UMAD_H
#define UMAD_H

#include <stdint.h>
#include <rdma/ib_user_mad.h>

#include "rig.h"

#define MAD_SIZE	256
#define GSI_QKEY	0x80010000

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

/* The file of a device's first port that packets go through. */
int open_umad(const char *device);

#endif /* UMAD_H */
