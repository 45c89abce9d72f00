// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the subnet management agent, and which agent a packet is for.
 *
 * It tells what VMRI knows.  Nothing can be set: dom0 decides about LIDs and
 * fabrics, and no management packet of another domain gets here.  That of a device
 * for a subnet manager is in sm.c.
 */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_smi.h>

#include "sa.h"
#include "softib.h"

#define SOFTIB_SM_STATE_MASTER		3

struct softib_sm_info {
	__be64 guid;
	__be64 sm_key;
	__be32 act_count;
	u8 pri_state;
} __packed;

static u16 softib_get_node_desc(struct softib_dev *dev, struct ib_smp *smp)
{
	unsigned long flags;

	if (smp->attr_mod)
		return SOFTIB_MAD_BAD_ATTRIBUTE;

	spin_lock_irqsave(&dev->port_lock, flags);
	memcpy(smp->data, dev->ibdev.node_desc, sizeof(smp->data));
	spin_unlock_irqrestore(&dev->port_lock, flags);
	return 0;
}

static u16 softib_get_node_info(const struct vmri_dev_attr *attr,
				struct ib_smp *smp)
{
	if (smp->attr_mod)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	softib_node_info(attr->node_guid, (void *)smp->data);
	return 0;
}

/* The attribute modifier names the port; 0 means the one that was asked. */
static u16 softib_get_port_info(struct softib_dev *dev,
				const struct vmri_dev_attr *attr,
				struct ib_smp *smp)
{
	struct vmri_port_query port = {
		.lid = attr->lid,
		.state = attr->port_state,
		.mtu = attr->mtu,
		.cap_mask = READ_ONCE(dev->port_cap_flags),
		.gid_prefix = attr->gid_prefix,
	};
	struct ib_port_info *info = (void *)smp->data;
	struct vmri_counters counters;

	if (be32_to_cpu(smp->attr_mod) > SOFTIB_PORT)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	softib_port_info(&port, attr->sm_lid, info);
	if (!softib_call(dev, VMRI_OP_dev_counters, &counters)) {
		info->pkey_violations =
			cpu_to_be16(min_t(u64, counters.pkey_violations,
					  U16_MAX));
		info->qkey_violations =
			cpu_to_be16(min_t(u64, counters.qkey_violations,
					  U16_MAX));
	}
	return 0;
}

/* All levels go to the one lane that there is, in any port's table. */
static u16 softib_get_lanes(struct ib_smp *smp)
{
	return be32_to_cpu(smp->attr_mod) >> 16 > 4 ?
	       SOFTIB_MAD_BAD_ATTRIBUTE : 0;
}

static u16 softib_get_pkeys(const struct vmri_dev_attr *attr,
			    struct ib_smp *smp)
{
	__be16 *pkeys = (__be16 *)smp->data;
	int i;

	/* Block 0 is the whole table. */
	BUILD_BUG_ON(sizeof(attr->pkeys) != sizeof(smp->data));
	if (smp->attr_mod)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	for (i = 0; i < VMRI_MAX_PKEYS; i++)
		pkeys[i] = cpu_to_be16(attr->pkeys[i]);
	return 0;
}

static u16 softib_get_guids(const struct vmri_dev_attr *attr,
			    struct ib_smp *smp)
{
	__be64 *guids = (__be64 *)smp->data;

	if (smp->attr_mod)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	guids[0] = cpu_to_be64(attr->port_guid);
	return 0;
}

/* The fabric has no manager but VMRI, which speaks through each port. */
static u16 softib_get_sm_info(const struct vmri_dev_attr *attr,
			      struct ib_smp *smp)
{
	struct softib_sm_info *info = (void *)smp->data;

	if (smp->attr_mod)
		return SOFTIB_MAD_BAD_ATTRIBUTE;

	*info = (struct softib_sm_info) {
		.guid = cpu_to_be64(attr->port_guid),
		.act_count = cpu_to_be32(ktime_get_seconds()),
		.pri_state = SOFTIB_SM_STATE_MASTER,
	};
	return 0;
}

/* Fill in smp->data; the status of the response. */
static u16 softib_get(struct softib_dev *dev, struct ib_smp *smp)
{
	struct vmri_dev_attr attr;

	/* Of a device that is gone tell what was. */
	if (softib_call(dev, VMRI_OP_dev_query, &attr))
		attr = dev->attr;

	switch (smp->attr_id) {
	case IB_SMP_ATTR_NODE_DESC:
		return softib_get_node_desc(dev, smp);
	case IB_SMP_ATTR_NODE_INFO:
		return softib_get_node_info(&attr, smp);
	case IB_SMP_ATTR_PORT_INFO:
		return softib_get_port_info(dev, &attr, smp);
	case IB_SMP_ATTR_PKEY_TABLE:
		return softib_get_pkeys(&attr, smp);
	case IB_SMP_ATTR_GUID_INFO:
		return softib_get_guids(&attr, smp);
	case IB_SMP_ATTR_SL_TO_VL_TABLE:
	case IB_SMP_ATTR_VL_ARB_TABLE:
		return softib_get_lanes(smp);
	case IB_SMP_ATTR_SM_INFO:
		return softib_get_sm_info(&attr, smp);
	default:
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	}
}

static u16 softib_sma_answer(struct softib_dev *dev, struct ib_smp *smp)
{
	if (smp->class_version != 1)
		return SOFTIB_MAD_BAD_VERSION;
	if (smp->method == IB_MGMT_METHOD_SET)
		return SOFTIB_MAD_BAD_METHOD;

	memset(smp->data, 0, sizeof(smp->data));
	return softib_get(dev, smp);
}

/* False when it is for the subnet manager that the device is for. */
static bool softib_answer_smp(struct softib_dev *dev, struct ib_smp *smp,
			      u16 *status)
{
	if (!dev->sm)
		*status = softib_sma_answer(dev, smp);
	else if (!softib_sm_answers(dev, smp, status))
		return false;

	if (smp->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		*status |= be16_to_cpu(IB_SMP_DIRECTION);
	return true;
}

/* Of a base version that ib_mad does not know nothing gets here. */
static bool softib_is_request(const struct ib_mad_hdr *hdr)
{
	return hdr->method == IB_MGMT_METHOD_GET ||
	       hdr->method == IB_MGMT_METHOD_SET;
}

/*
 * Answer a management packet, if it is for one of the agents.  Without
 * IB_MAD_RESULT_REPLY in the result it is for somebody else.  Context: any.
 */
int softib_process_mad(struct ib_device *ibdev, int flags, u32 port,
		       const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		       const struct ib_mad *in, struct ib_mad *out,
		       size_t *out_size, u16 *out_pkey_index)
{
	struct softib_dev *dev = to_softib_dev(ibdev);
	const struct ib_mad_hdr *hdr = &in->mad_hdr;
	u16 status;

	if (!softib_is_request(hdr))
		return IB_MAD_RESULT_SUCCESS;

	memcpy(out, in, sizeof(*out));
	switch (hdr->mgmt_class) {
	case IB_MGMT_CLASS_SUBN_LID_ROUTED:
	case IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE:
		if (!softib_answer_smp(dev, (void *)out, &status))
			return IB_MAD_RESULT_SUCCESS;
		break;
	case IB_MGMT_CLASS_PERF_MGMT:
		status = softib_pma_answer(dev, (const void *)in, (void *)out);
		break;
	default:
		return IB_MAD_RESULT_SUCCESS;
	}

	out->mad_hdr.status = cpu_to_be16(status);
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
