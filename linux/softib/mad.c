// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the subnet management agent.
 *
 * It tells what VMRI knows.  Nothing can be set: dom0 decides about LIDs and
 * fabrics, and no management packet of another domain gets here.
 */
#include <linux/ktime.h>
#include <linux/unaligned.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_smi.h>

#include "softib.h"

/* Status of a response (IBTA 1.4, 13.4.7). */
#define SOFTIB_MAD_BAD_VERSION		cpu_to_be16(0x0004)
#define SOFTIB_MAD_BAD_METHOD		cpu_to_be16(0x0008)
#define SOFTIB_MAD_BAD_ATTRIBUTE	cpu_to_be16(0x000c)

#define SOFTIB_SM_STATE_MASTER		3
#define SOFTIB_PHYS_STATE_LINK_UP	5
#define SOFTIB_LINK_DOWN_POLLING	2

struct softib_sm_info {
	__be64 guid;
	__be64 sm_key;
	__be32 act_count;
	u8 pri_state;
} __packed;

static __be16 softib_get_node_desc(struct softib_dev *dev, struct ib_smp *smp)
{
	unsigned long flags;

	if (smp->attr_mod)
		return SOFTIB_MAD_BAD_ATTRIBUTE;

	spin_lock_irqsave(&dev->port_lock, flags);
	memcpy(smp->data, dev->ibdev.node_desc, sizeof(smp->data));
	spin_unlock_irqrestore(&dev->port_lock, flags);
	return 0;
}

static __be16 softib_get_node_info(const struct vmri_dev_attr *attr,
				   struct ib_smp *smp)
{
	struct ib_node_info *info = (void *)smp->data;

	if (smp->attr_mod)
		return SOFTIB_MAD_BAD_ATTRIBUTE;

	*info = (struct ib_node_info) {
		.base_version = IB_MGMT_BASE_VERSION,
		.class_version = 1,
		.node_type = RDMA_NODE_IB_CA,
		.num_ports = 1,
		.sys_guid = cpu_to_be64(attr->sys_image_guid),
		.node_guid = cpu_to_be64(attr->node_guid),
		.port_guid = cpu_to_be64(attr->port_guid),
		.partition_cap = cpu_to_be16(attr->max_pkeys),
		.revision = cpu_to_be32(VMRI_ABI_VERSION),
		.local_port_num = SOFTIB_PORT,
	};
	put_unaligned_be24(SOFTIB_VENDOR_ID, info->vendor_id);
	return 0;
}

/* The attribute modifier names the port; 0 means the one that was asked. */
static __be16 softib_get_port_info(struct softib_dev *dev,
				   const struct vmri_dev_attr *attr,
				   struct ib_smp *smp)
{
	struct ib_port_info *info = (void *)smp->data;
	bool up = attr->port_state != IB_PORT_DOWN;

	if (be32_to_cpu(smp->attr_mod) > SOFTIB_PORT)
		return SOFTIB_MAD_BAD_ATTRIBUTE;

	*info = (struct ib_port_info) {
		.gid_prefix = cpu_to_be64(attr->gid_prefix),
		.lid = cpu_to_be16(attr->lid),
		.sm_lid = cpu_to_be16(attr->sm_lid),
		.cap_mask = cpu_to_be32(READ_ONCE(dev->port_cap_flags)),
		.local_port_num = SOFTIB_PORT,
		.link_width_enabled = IB_WIDTH_4X,
		.link_width_supported = IB_WIDTH_4X,
		.link_width_active = IB_WIDTH_4X,
		.linkspeed_portstate = IB_SPEED_QDR << 4 | attr->port_state,
		.portphysstate_linkdown = (up ? SOFTIB_PHYS_STATE_LINK_UP :
						SOFTIB_LINK_DOWN_POLLING) << 4 |
					  SOFTIB_LINK_DOWN_POLLING,
		.linkspeedactive_enabled = IB_SPEED_QDR << 4 | IB_SPEED_QDR,
		.neighbormtu_mastersmsl = attr->mtu << 4,
		.vlcap_inittype = 1 << 4,
		.inittypereply_mtucap = IB_MTU_4096,
		.operationalvl_pei_peo_fpi_fpo = 1 << 4,
		.guid_cap = 1,
	};
	return 0;
}

static __be16 softib_get_pkeys(const struct vmri_dev_attr *attr,
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

static __be16 softib_get_guids(const struct vmri_dev_attr *attr,
			       struct ib_smp *smp)
{
	__be64 *guids = (__be64 *)smp->data;

	if (smp->attr_mod)
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	guids[0] = cpu_to_be64(attr->port_guid);
	return 0;
}

/* The fabric has no manager but VMRI, which speaks through each port. */
static __be16 softib_get_sm_info(const struct vmri_dev_attr *attr,
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
static __be16 softib_get(struct softib_dev *dev, struct ib_smp *smp)
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
	case IB_SMP_ATTR_SM_INFO:
		return softib_get_sm_info(&attr, smp);
	default:
		return SOFTIB_MAD_BAD_ATTRIBUTE;
	}
}

static __be16 softib_answer(struct softib_dev *dev, struct ib_smp *smp)
{
	if (smp->base_version != IB_MGMT_BASE_VERSION ||
	    smp->class_version != 1)
		return SOFTIB_MAD_BAD_VERSION;
	if (smp->method == IB_MGMT_METHOD_SET)
		return SOFTIB_MAD_BAD_METHOD;

	memset(smp->data, 0, sizeof(smp->data));
	return softib_get(dev, smp);
}

/*
 * Answer a management packet, if it is for this agent.  Without
 * IB_MAD_RESULT_REPLY in the result it is for somebody else.  Context: any.
 */
int softib_process_mad(struct ib_device *ibdev, int flags, u32 port,
		       const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		       const struct ib_mad *in, struct ib_mad *out,
		       size_t *out_size, u16 *out_pkey_index)
{
	const struct ib_mad_hdr *hdr = &in->mad_hdr;
	struct ib_smp *smp = (struct ib_smp *)out;

	if (hdr->mgmt_class != IB_MGMT_CLASS_SUBN_LID_ROUTED &&
	    hdr->mgmt_class != IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		return IB_MAD_RESULT_SUCCESS;
	if (hdr->method != IB_MGMT_METHOD_GET &&
	    hdr->method != IB_MGMT_METHOD_SET)
		return IB_MAD_RESULT_SUCCESS;

	memcpy(smp, in, sizeof(*smp));
	smp->status = softib_answer(to_softib_dev(ibdev), smp);
	smp->method = IB_MGMT_METHOD_GET_RESP;
	if (hdr->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		smp->status |= IB_SMP_DIRECTION;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
