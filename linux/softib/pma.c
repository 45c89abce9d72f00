// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the performance management agent (IBTA 1.4, 16.1).
 *
 * VMRI's counters run from the attachment of the device and nobody resets them: a
 * Set remembers where they were.  VMRI moves messages, so these count as packets.
 * What a link of copper may suffer never happens here and stays zero.
 */
#include <linux/minmax.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "sa.h"
#include "softib.h"

#define SOFTIB_PMA_ALL_PORTS	0xff
#define SOFTIB_PMA_RESP_TIME	18	/* 4.096 us * 2^18 */

/* The counters that an agent tells, and what selects each for a reset. */
static const struct softib_pma_counter {
	u16 offset;			/* in struct vmri_counters */
	u16 base;			/* in struct softib_pma */
	__be16 select;
	__be16 select_ext;
} softib_pma_counters[] = {
#define PMA(field, sel, sel_ext) \
	{ offsetof(struct vmri_counters, field), \
	  offsetof(struct softib_pma, field), sel, sel_ext }
	PMA(tx_bytes, IB_PMA_SEL_PORT_XMIT_DATA, IB_PMA_SELX_PORT_XMIT_DATA),
	PMA(rx_bytes, IB_PMA_SEL_PORT_RCV_DATA, IB_PMA_SELX_PORT_RCV_DATA),
	PMA(tx_msgs, IB_PMA_SEL_PORT_XMIT_PACKETS,
	    IB_PMA_SELX_PORT_XMIT_PACKETS | IB_PMA_SELX_PORT_UNI_XMIT_PACKETS),
	PMA(rx_msgs, IB_PMA_SEL_PORT_RCV_PACKETS,
	    IB_PMA_SELX_PORT_RCV_PACKETS | IB_PMA_SELX_PORT_UNI_RCV_PACKETS),
	PMA(ud_drops, IB_PMA_SEL_PORT_XMIT_DISCARDS, 0),
#undef PMA
};

static u64 *softib_pma_field(void *counters, u16 offset)
{
	return counters + offset;
}

/* What has been counted since the last reset: false when VMRI does not say. */
static bool softib_pma_read(struct softib_dev *dev, struct softib_pma *since)
{
	struct vmri_counters now;
	unsigned long flags;
	int i;

	if (softib_call(dev, VMRI_OP_dev_counters, &now))
		return false;

	spin_lock_irqsave(&dev->port_lock, flags);
	for (i = 0; i < ARRAY_SIZE(softib_pma_counters); i++) {
		const struct softib_pma_counter *c = &softib_pma_counters[i];

		*softib_pma_field(since, c->base) =
			*softib_pma_field(&now, c->offset) -
			*softib_pma_field(&dev->pma, c->base);
	}
	spin_unlock_irqrestore(&dev->port_lock, flags);
	return true;
}

static void softib_pma_reset(struct softib_dev *dev, __be16 select, bool ext)
{
	struct vmri_counters now;
	unsigned long flags;
	int i;

	if (softib_call(dev, VMRI_OP_dev_counters, &now))
		return;

	spin_lock_irqsave(&dev->port_lock, flags);
	for (i = 0; i < ARRAY_SIZE(softib_pma_counters); i++) {
		const struct softib_pma_counter *c = &softib_pma_counters[i];

		if (select & (ext ? c->select_ext : c->select))
			*softib_pma_field(&dev->pma, c->base) =
				*softib_pma_field(&now, c->offset);
	}
	spin_unlock_irqrestore(&dev->port_lock, flags);
}

/* Old counters stop at their end, they do not wrap. */
static __be32 softib_pma_u32(u64 value)
{
	return cpu_to_be32(min_t(u64, value, U32_MAX));
}

static u16 softib_pma_class_port_info(struct ib_pma_mad *out)
{
	struct ib_class_port_info *info = (void *)out->data;

	*info = (struct ib_class_port_info) {
		.base_version = IB_MGMT_BASE_VERSION,
		.class_version = 1,
		.capability_mask = IB_PMA_CLASS_CAP_ALLPORTSELECT |
				   IB_PMA_CLASS_CAP_EXT_WIDTH,
	};
	ib_set_cpi_resp_time(info, SOFTIB_PMA_RESP_TIME);
	return 0;
}

static bool softib_pma_names_port(u8 port_select)
{
	return port_select == SOFTIB_PORT ||
	       port_select == SOFTIB_PMA_ALL_PORTS;
}

static u16 softib_pma_port_counters(struct softib_dev *dev,
				    const struct ib_pma_mad *in,
				    struct ib_pma_mad *out)
{
	const struct ib_pma_portcounters *want = (const void *)in->data;
	struct ib_pma_portcounters *told = (void *)out->data;
	struct softib_pma since;

	if (!softib_pma_names_port(want->port_select))
		return SOFTIB_MAD_BAD_VALUE;
	if (in->mad_hdr.method == IB_MGMT_METHOD_SET)
		softib_pma_reset(dev, want->counter_select, false);
	if (!softib_pma_read(dev, &since))
		return SOFTIB_MAD_BUSY;

	*told = (struct ib_pma_portcounters) {
		.port_select = want->port_select,
		.counter_select = want->counter_select,
		.port_xmit_discards =
			cpu_to_be16(min_t(u64, since.ud_drops, U16_MAX)),
		/* In words of four bytes. */
		.port_xmit_data = softib_pma_u32(since.tx_bytes / 4),
		.port_rcv_data = softib_pma_u32(since.rx_bytes / 4),
		.port_xmit_packets = softib_pma_u32(since.tx_msgs),
		.port_rcv_packets = softib_pma_u32(since.rx_msgs),
	};
	return 0;
}

static u16 softib_pma_port_counters_ext(struct softib_dev *dev,
					const struct ib_pma_mad *in,
					struct ib_pma_mad *out)
{
	const struct ib_pma_portcounters_ext *want = (const void *)in->data;
	struct ib_pma_portcounters_ext *told = (void *)out->data;
	struct softib_pma since;

	if (!softib_pma_names_port(want->port_select))
		return SOFTIB_MAD_BAD_VALUE;
	if (in->mad_hdr.method == IB_MGMT_METHOD_SET)
		softib_pma_reset(dev, want->counter_select, true);
	if (!softib_pma_read(dev, &since))
		return SOFTIB_MAD_BUSY;

	*told = (struct ib_pma_portcounters_ext) {
		.port_select = want->port_select,
		.counter_select = want->counter_select,
		.port_xmit_data = cpu_to_be64(since.tx_bytes / 4),
		.port_rcv_data = cpu_to_be64(since.rx_bytes / 4),
		.port_xmit_packets = cpu_to_be64(since.tx_msgs),
		.port_rcv_packets = cpu_to_be64(since.rx_msgs),
		/* VMRI does not count what went to groups apart. */
		.port_unicast_xmit_packets = cpu_to_be64(since.tx_msgs),
		.port_unicast_rcv_packets = cpu_to_be64(since.rx_msgs),
	};
	return 0;
}

/**
 * softib_pma_answer() - fill in the response to a Get or Set of the class
 * @dev:	device
 * @in:		request
 * @out:	its copy, of which the data is filled in
 *
 * Context: any.
 * Return: status of the response.
 */
u16 softib_pma_answer(struct softib_dev *dev, const struct ib_pma_mad *in,
		      struct ib_pma_mad *out)
{
	if (in->mad_hdr.class_version != 1)
		return SOFTIB_MAD_BAD_VERSION;

	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		if (in->mad_hdr.method != IB_MGMT_METHOD_GET)
			return SOFTIB_MAD_BAD_ATTRIBUTE;
		memset(out->data, 0, sizeof(out->data));
		return softib_pma_class_port_info(out);
	case IB_PMA_PORT_COUNTERS:
		return softib_pma_port_counters(dev, in, out);
	case IB_PMA_PORT_COUNTERS_EXT:
		return softib_pma_port_counters_ext(dev, in, out);
	default:
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	}
}
