/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In place of linux/softib/softib.h: what the management agents need of a device.
 */
#ifndef SOFTIB_H
#define SOFTIB_H

#include "shim.h"

#include "sa.h"
#include "switch.h"

struct ib_device {
	char node_desc[IB_DEVICE_NODE_DESC_MAX];
};

struct ib_wc;
struct ib_grh;

struct softib_dev {
	struct ib_device ibdev;
	void *guest;
	struct vmri_dev_attr attr;
	spinlock_t port_lock;
	u32 port_cap_flags;
	struct softib_pma pma;
	struct softib_switch *sm;
};

static inline struct softib_dev *to_softib_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct softib_dev, ibdev);
}

static inline bool softib_sm_answers(struct softib_dev *dev, struct ib_smp *smp,
				     u16 *status)
{
	return softib_switch_own_smp(dev->sm, smp, status);
}

int softib_process_mad(struct ib_device *ibdev, int flags, u32 port,
		       const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		       const struct ib_mad *in, struct ib_mad *out,
		       size_t *out_size, u16 *out_pkey_index);

#endif /* SOFTIB_H */
