/* SPDX-License-Identifier: MIT */
/*
 * VMRI: services of a subnet administrator.  Part of vmri.h, which includes it.
 */
#ifndef VMRI_SERVICE_H
#define VMRI_SERVICE_H

#include "types.h"

/*
 * Services that a device offers to the others of its fabric (IBTA 1.4, 15.2.5.14):
 * what subnet administrators keep for all, where each guest has its own.
 *
 * service_set: offer one, or in place of the device's own with this id and P_Key
 * another.  It is there for its lease, or until it is deleted, the device is
 * destroyed, or its port gets another SM, which knows nothing of it.
 * -EINVAL: no lease, no P_Key; -EPERM: it is of a partition that the port is not in;
 * -ENOSPC: the fabric has VMRI_SERVICES, or the domain as many as it may;
 * -EOPNOTSUPP: the link layer is another; -ENODEV: the device is not in use.
 *
 * service_delete: the device's own with this id and P_Key, of which all else is
 * ignored.  -ENOENT: there is none.
 */
struct vmri_service {
	uint64_t id;
	uint8_t gid[16];		/* query: its port's, network order */
	uint16_t pkey;
	uint16_t reserved;
	uint32_t lease;			/* seconds, or VMRI_LEASE_FOREVER; query: left */
	uint8_t key[16];		/* query: of the device's own, else 0 */
	uint8_t name[64];
	uint8_t data[64];		/* network order */
};
VMRI_ASSERT_SIZE(vmri_service, 176);
#define VMRI_LEASE_FOREVER	0xffffffffU
#define VMRI_SERVICES		1024	/* of one fabric */

/*
 * VMRI_OP_service_query: of the services of the caller's fabric, the one with the
 * lowest number of `number` or higher, with VMRI_SERVICE_BY_KEY of those alone that
 * were offered with service.key.  Numbers are given in turn and stay.  Services of
 * domains that the caller's may not reach are passed over, as are those of a
 * partition that not both ports are in.  -ENOENT: there is none.
 */
struct vmri_service_query {
	struct vmri_service service;	/* OUT; with BY_KEY: key is IN */
	uint64_t number;		/* IN, OUT */
	uint32_t flags;			/* IN: VMRI_SERVICE_BY_KEY */
	uint32_t reserved;
};
VMRI_ASSERT_SIZE(vmri_service_query, 192);
#define VMRI_SERVICE_BY_KEY	0x1U

#endif /* VMRI_SERVICE_H */
