// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: VMRI's counters, for `rdma statistic` and sysfs.
 */
#include "softib.h"

#define SOFTIB_COUNTER(field) \
	[offsetof(struct vmri_counters, field) / sizeof(u64)].name = #field

static const struct rdma_stat_desc softib_counters[] = {
	SOFTIB_COUNTER(tx_msgs),
	SOFTIB_COUNTER(tx_bytes),
	SOFTIB_COUNTER(rx_msgs),
	SOFTIB_COUNTER(rx_bytes),
	SOFTIB_COUNTER(doorbells),
	SOFTIB_COUNTER(hypercalls),
	SOFTIB_COUNTER(events),
	SOFTIB_COUNTER(upcalls),
	SOFTIB_COUNTER(completions),
	SOFTIB_COUNTER(errors),
	SOFTIB_COUNTER(flushed),
	SOFTIB_COUNTER(rnr),
	SOFTIB_COUNTER(retries),
	SOFTIB_COUNTER(ud_drops),
	SOFTIB_COUNTER(qkey_violations),
	SOFTIB_COUNTER(pkey_violations),
};

static_assert(sizeof(struct vmri_counters) ==
	      ARRAY_SIZE(softib_counters) * sizeof(u64));

struct rdma_hw_stats *softib_alloc_hw_port_stats(struct ib_device *ibdev,
						 u32 port)
{
	return rdma_alloc_hw_stats_struct(softib_counters,
					  ARRAY_SIZE(softib_counters),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int softib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
			u32 port, int index)
{
	struct vmri_counters counters;
	int ret;

	/* The device as such has none besides those of its port. */
	if (!port)
		return 0;

	ret = softib_call(to_softib_dev(ibdev), VMRI_OP_dev_counters,
			  &counters);
	if (ret)
		return ret;
	memcpy(stats->value, &counters, sizeof(counters));
	return ARRAY_SIZE(softib_counters);
}
