// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: what is told of a port, by its own subnet management agent and by the
 * subnet administrators of others (IBTA 1.4, 14.2.5).
 */
#include <linux/string.h>
#include <linux/unaligned.h>

#include "sa.h"

#define SOFTIB_PHYS_STATE_LINK_UP	5
#define SOFTIB_LINK_DOWN_POLLING	2

void softib_node_info(u64 guid, struct ib_node_info *info)
{
	*info = (struct ib_node_info) {
		.base_version = IB_MGMT_BASE_VERSION,
		.class_version = 1,
		.node_type = RDMA_NODE_IB_CA,
		.num_ports = 1,
		.sys_guid = cpu_to_be64(guid),
		.node_guid = cpu_to_be64(guid),
		.port_guid = cpu_to_be64(guid),
		.partition_cap = cpu_to_be16(VMRI_MAX_PKEYS),
		.revision = cpu_to_be32(VMRI_ABI_VERSION),
		.local_port_num = SOFTIB_PORT,
	};
	put_unaligned_be24(SOFTIB_VENDOR_ID, info->vendor_id);
}

void softib_port_info(const struct vmri_port_query *port, u16 sm_lid,
		      struct ib_port_info *info)
{
	bool up = port->state != VMRI_PORT_DOWN;

	*info = (struct ib_port_info) {
		.gid_prefix = cpu_to_be64(port->gid_prefix),
		.lid = cpu_to_be16(port->lid),
		.sm_lid = cpu_to_be16(sm_lid),
		.cap_mask = cpu_to_be32(port->cap_mask),
		.local_port_num = SOFTIB_PORT,
		.link_width_enabled = IB_WIDTH_4X,
		.link_width_supported = IB_WIDTH_4X,
		.link_width_active = IB_WIDTH_4X,
		.linkspeed_portstate = IB_SPEED_QDR << 4 | port->state,
		.portphysstate_linkdown = (up ? SOFTIB_PHYS_STATE_LINK_UP :
						SOFTIB_LINK_DOWN_POLLING) << 4 |
					  SOFTIB_LINK_DOWN_POLLING,
		.linkspeedactive_enabled = IB_SPEED_QDR << 4 | IB_SPEED_QDR,
		.neighbormtu_mastersmsl = port->mtu << 4,
		.vlcap_inittype = 1 << 4,
		.inittypereply_mtucap = IB_MTU_4096,
		.operationalvl_pei_peo_fpi_fpo = 1 << 4,
		.guid_cap = 1,
		.clientrereg_resv_subnetto = SOFTIB_SUBNET_TIMEOUT,
	};
}
