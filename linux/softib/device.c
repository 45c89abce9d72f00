// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the device and its port, as ib_core sees them.
 */
#include <rdma/ib_mad.h>

#include <uapi/softib-abi.h>

#include "softib.h"

#define SOFTIB_CA_ACK_DELAY	15	/* 4.096 us * 2^15: a CPU that waits */
#define SOFTIB_PART_ID		1
/* What ib_mad takes of each for the management queue pairs. */
#define SOFTIB_MAD_QPS		2
#define SOFTIB_MAD_CQS		1
#define SOFTIB_MAD_PDS		1
#define SOFTIB_MAX_AH		0x100000	/* they cost memory only */
#define SOFTIB_GIDS		2	/* the port's, and an empty entry, */
					/* since programs expect one */

/* What the clock of the completions says now, to a process that asks. */
static int softib_tell_clock(struct softib_dev *dev, struct ib_udata *udata)
{
	struct softib_query_device_ex_resp resp = {};
	struct vmri_dev_attr attr;
	int ret;

	if (udata->outlen) {
		ret = softib_call(dev, VMRI_OP_dev_query, &attr);
		if (ret)
			return ret;
		resp.clock = attr.clock;
	}
	return softib_respond(udata, &resp, sizeof(resp));
}

/*
 * With an uplink only what a NIC carries is offered.  What VMRI does atomically, and
 * what the NIC does, is not atomic to each other.
 */
static void softib_limit_to_uplink(struct ib_device_attr *props)
{
	props->device_cap_flags &= ~(IB_DEVICE_MEM_WINDOW |
				     IB_DEVICE_MEM_WINDOW_TYPE_2B |
				     IB_DEVICE_XRC | IB_DEVICE_FLUSH_GLOBAL |
				     IB_DEVICE_ATOMIC_WRITE);
	props->max_mw = 0;
	props->atomic_cap = IB_ATOMIC_NONE;
}

static int softib_query_device(struct ib_device *ibdev,
			       struct ib_device_attr *props,
			       struct ib_udata *udata)
{
	const struct vmri_dev_attr *attr = &to_softib_dev(ibdev)->attr;

	*props = (struct ib_device_attr) {
		.fw_ver = VMRI_ABI_VERSION,
		.sys_image_guid = cpu_to_be64(attr->sys_image_guid),
		.max_mr_size = attr->max_mr_size,
		.page_size_cap = VMRI_PAGE_SIZE,
		.vendor_id = SOFTIB_VENDOR_ID,
		.vendor_part_id = SOFTIB_PART_ID,
		.hw_ver = VMRI_ABI_VERSION,
		.max_qp = attr->max_qp - SOFTIB_MAD_QPS,
		.max_qp_wr = attr->max_qp_wr,
		.device_cap_flags = IB_DEVICE_MEM_WINDOW |
				    IB_DEVICE_MEM_WINDOW_TYPE_2B |
				    IB_DEVICE_BAD_PKEY_CNTR |
				    IB_DEVICE_BAD_QKEY_CNTR |
				    IB_DEVICE_CURR_QP_STATE_MOD |
				    IB_DEVICE_PORT_ACTIVE_EVENT |
				    IB_DEVICE_SYS_IMAGE_GUID |
				    IB_DEVICE_RC_RNR_NAK_GEN |
				    IB_DEVICE_SRQ_RESIZE |
				    IB_DEVICE_XRC |
				    IB_DEVICE_MEM_MGT_EXTENSIONS |
				    IB_DEVICE_FLUSH_GLOBAL |
				    IB_DEVICE_ATOMIC_WRITE,
		.kernel_cap_flags = IBK_LOCAL_DMA_LKEY |
				    IBK_BLOCK_MULTICAST_LOOPBACK,
		.max_send_sge = attr->max_sge,
		.max_recv_sge = attr->max_sge,
		.max_sge_rd = attr->max_sge,
		.max_cq = attr->max_cq - SOFTIB_MAD_CQS,
		.max_cqe = attr->max_cqe,
		.max_mr = attr->max_mr,
		.max_mw = attr->max_mw,
		.max_mcast_grp = attr->max_mcg,
		.max_mcast_qp_attach = attr->max_mcg_qp,
		.max_total_mcast_qp_attach = attr->max_mcg_qp,
		.max_fast_reg_page_list_len = attr->max_fast_frames,
		.max_pd = attr->max_pd - SOFTIB_MAD_PDS,
		.max_srq = attr->max_srq,
		.max_srq_wr = attr->max_srq_wr,
		.max_srq_sge = attr->max_srq_sge,
		.max_qp_rd_atom = attr->max_rd_atomic,
		.max_qp_init_rd_atom = attr->max_rd_atomic,
		.max_res_rd_atom = attr->max_rd_atomic * attr->max_qp,
		.atomic_cap = IB_ATOMIC_GLOB,
		.masked_atomic_cap = IB_ATOMIC_NONE,
		.max_ah = SOFTIB_MAX_AH,
		.max_pkeys = attr->max_pkeys,
		.local_ca_ack_delay = SOFTIB_CA_ACK_DELAY,
		.timestamp_mask = U64_MAX,
		.hca_core_clock = attr->clock_khz,
	};
	if (softib_has_uplink(to_softib_dev(ibdev)))
		softib_limit_to_uplink(props);
	return softib_tell_clock(to_softib_dev(ibdev), udata);
}

static u32 softib_gids(const struct softib_dev *dev)
{
	return softib_is_roce(dev) ? VMRI_MAX_GIDS : SOFTIB_GIDS;
}

/* On RoCE the port is as good as its network interface. */
static enum ib_port_state softib_port_state(const struct softib_dev *dev,
					    const struct vmri_dev_attr *attr)
{
	if (softib_is_roce(dev) && !READ_ONCE(dev->roce.up))
		return IB_PORT_DOWN;
	return attr->port_state;
}

static int softib_query_port(struct ib_device *ibdev, u32 port,
			     struct ib_port_attr *props)
{
	struct softib_dev *dev = to_softib_dev(ibdev);
	struct vmri_counters counters;
	struct vmri_dev_attr attr;
	int ret;

	ret = softib_call(dev, VMRI_OP_dev_query, &attr);
	if (!ret)
		ret = softib_call(dev, VMRI_OP_dev_counters, &counters);
	if (ret)
		return ret;

	/* The fastest link that needs no extended attributes. */
	props->active_speed = IB_SPEED_QDR;
	props->active_width = IB_WIDTH_4X;
	props->state = softib_port_state(dev, &attr);
	props->phys_state = props->state == IB_PORT_DOWN ?
			    IB_PORT_PHYS_STATE_DISABLED :
			    IB_PORT_PHYS_STATE_LINK_UP;
	props->max_mtu = IB_MTU_4096;
	props->active_mtu = attr.mtu;
	props->gid_tbl_len = softib_gids(dev);
	props->pkey_tbl_len = attr.max_pkeys;
	props->max_msg_sz = attr.max_msg_size;
	props->bad_pkey_cntr = counters.pkey_violations;
	props->qkey_viol_cntr = counters.qkey_violations;
	props->max_vl_num = 1;
	props->subnet_timeout = SOFTIB_SUBNET_TIMEOUT;
	props->port_cap_flags = READ_ONCE(dev->port_cap_flags);
	if (softib_is_roce(dev)) {
		props->ip_gids = true;
	} else {
		props->lid = attr.lid;
		props->sm_lid = attr.sm_lid;
	}
	return 0;
}

static int softib_query_gid(struct ib_device *ibdev, u32 port, int index,
			    union ib_gid *gid)
{
	struct vmri_dev_attr attr;
	int ret;

	if (index >= SOFTIB_GIDS)
		return -EINVAL;
	if (index) {
		memset(gid, 0, sizeof(*gid));
		return 0;
	}
	ret = softib_call(to_softib_dev(ibdev), VMRI_OP_dev_query, &attr);
	if (ret)
		return ret;
	gid->global.subnet_prefix = cpu_to_be64(attr.gid_prefix);
	gid->global.interface_id = cpu_to_be64(attr.port_guid);
	return 0;
}

static int softib_query_pkey(struct ib_device *ibdev, u32 port, u16 index,
			     u16 *pkey)
{
	struct vmri_dev_attr attr;
	int ret;

	if (index >= VMRI_MAX_PKEYS)
		return -EINVAL;
	ret = softib_call(to_softib_dev(ibdev), VMRI_OP_dev_query, &attr);
	if (!ret)
		*pkey = attr.pkeys[index];
	return ret;
}

/* What the subnet administrators of others are to say of this port. */
static void softib_describe(struct softib_dev *dev)
{
	struct vmri_dev_describe arg = {};
	unsigned long flags;

	spin_lock_irqsave(&dev->port_lock, flags);
	memcpy(arg.node_desc, dev->ibdev.node_desc, sizeof(arg.node_desc));
	arg.cap_mask = dev->port_cap_flags;
	spin_unlock_irqrestore(&dev->port_lock, flags);
	/* That of a device that is gone nobody asks for. */
	softib_call(dev, VMRI_OP_dev_describe, &arg);
}

/* Only what the port says about itself can be changed from here. */
static int softib_modify_port(struct ib_device *ibdev, u32 port, int mask,
			      struct ib_port_modify *props)
{
	struct softib_dev *dev = to_softib_dev(ibdev);
	unsigned long flags;

	if (mask)
		return -EOPNOTSUPP;

	spin_lock_irqsave(&dev->port_lock, flags);
	WRITE_ONCE(dev->port_cap_flags,
		   (dev->port_cap_flags | props->set_port_cap_mask) &
		   ~props->clr_port_cap_mask);
	spin_unlock_irqrestore(&dev->port_lock, flags);
	softib_describe(dev);
	softib_sm_update(dev);
	return 0;
}

static int softib_modify_device(struct ib_device *ibdev, int mask,
				struct ib_device_modify *props)
{
	struct softib_dev *dev = to_softib_dev(ibdev);
	unsigned long flags;

	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;

	if (mask & IB_DEVICE_MODIFY_NODE_DESC) {
		spin_lock_irqsave(&dev->port_lock, flags);
		memcpy(ibdev->node_desc, props->node_desc,
		       sizeof(ibdev->node_desc));
		spin_unlock_irqrestore(&dev->port_lock, flags);
		softib_describe(dev);
	}
	return 0;
}

static int softib_get_port_immutable(struct ib_device *ibdev, u32 port,
				     struct ib_port_immutable *immutable)
{
	struct softib_dev *dev = to_softib_dev(ibdev);

	immutable->core_cap_flags = softib_is_roce(dev) ?
				    RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP :
				    RDMA_CORE_PORT_IBA_IB;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	immutable->gid_tbl_len = softib_gids(dev);
	immutable->pkey_tbl_len = VMRI_MAX_PKEYS;
	return 0;
}

static enum rdma_link_layer softib_get_link_layer(struct ib_device *ibdev,
						  u32 port)
{
	return softib_is_roce(to_softib_dev(ibdev)) ? IB_LINK_LAYER_ETHERNET :
						       IB_LINK_LAYER_INFINIBAND;
}

static void softib_get_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "vmri %u", VMRI_ABI_VERSION);
}

static const struct ib_device_ops softib_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = SOFTIB_UVERBS_ABI_VERSION,

	.alloc_hw_port_stats = softib_alloc_hw_port_stats,
	.alloc_mr = softib_alloc_mr,
	.alloc_mw = softib_alloc_mw,
	.alloc_pd = softib_alloc_pd,
	.alloc_ucontext = softib_alloc_ucontext,
	.alloc_xrcd = softib_alloc_xrcd,
	.attach_mcast = softib_attach_mcast,
	.create_ah = softib_create_ah,
	.create_cq = softib_create_cq,
	.create_qp = softib_create_qp,
	.create_srq = softib_create_srq,
	.create_user_ah = softib_create_ah,
	.dealloc_mw = softib_dealloc_mw,
	.dealloc_pd = softib_dealloc_pd,
	.dealloc_ucontext = softib_dealloc_ucontext,
	.dealloc_xrcd = softib_dealloc_xrcd,
	.dereg_mr = softib_dereg_mr,
	.destroy_ah = softib_destroy_ah,
	.destroy_cq = softib_destroy_cq,
	.destroy_qp = softib_destroy_qp,
	.destroy_srq = softib_destroy_srq,
	.detach_mcast = softib_detach_mcast,
	.disassociate_ucontext = softib_disassociate_ucontext,
	.fill_res_cq_entry = softib_fill_res_cq_entry,
	.fill_res_mr_entry = softib_fill_res_mr_entry,
	.fill_res_qp_entry = softib_fill_res_qp_entry,
	.fill_res_srq_entry = softib_fill_res_srq_entry,
	.get_dev_fw_str = softib_get_fw_str,
	.get_dma_mr = softib_get_dma_mr,
	.get_hw_stats = softib_get_hw_stats,
	.get_link_layer = softib_get_link_layer,
	.get_port_immutable = softib_get_port_immutable,
	.get_vector_affinity = softib_get_vector_affinity,
	.map_mr_sg = softib_map_mr_sg,
	.mmap = softib_mmap,
	.mmap_free = softib_mmap_free,
	.modify_device = softib_modify_device,
	.modify_port = softib_modify_port,
	.modify_qp = softib_modify_qp,
	.modify_srq = softib_modify_srq,
	.poll_cq = softib_poll_cq,
	.post_recv = softib_post_recv,
	.post_send = softib_post_send,
	.post_srq_recv = softib_post_srq_recv,
	.process_mad = softib_process_mad,
	.query_ah = softib_query_ah,
	.query_device = softib_query_device,
	.query_gid = softib_query_gid,
	.query_pkey = softib_query_pkey,
	.query_port = softib_query_port,
	.query_qp = softib_query_qp,
	.query_srq = softib_query_srq,
	.reg_user_mr = softib_reg_user_mr,
	.req_notify_cq = softib_req_notify_cq,
	.rereg_user_mr = softib_rereg_user_mr,
	.resize_cq = softib_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, softib_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, softib_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, softib_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, softib_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, softib_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, softib_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, softib_ucontext, ibuctx),
	INIT_RDMA_OBJ_SIZE(ib_xrcd, softib_xrcd, ibxrcd),
};

static const struct ib_device_ops softib_roce_ops = {
	.add_gid = softib_add_gid,
	.del_gid = softib_del_gid,
};

/* Is it one of this driver's? */
bool softib_owns(const struct ib_device *ibdev)
{
	return ibdev->ops.owner == THIS_MODULE;
}

/**
 * softib_device_register() - show the device to ib_core and its users
 * @dev:	device with attributes and event queues
 *
 * Return: 0 or a negative errno.
 */
int softib_device_register(struct softib_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;
	int ret;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->node_guid = cpu_to_be64(dev->attr.node_guid);
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = dev->num_eqs;
	ibdev->local_dma_lkey = VMRI_LKEY_FRAMES;
	ibdev->dev.parent = &dev->xdev->dev;
	/* A process' doorbells. */
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_SRQ_RECV);
	strscpy(ibdev->node_desc, "SoftIB", sizeof(ibdev->node_desc));
	dev->port_cap_flags = IB_PORT_SYS_IMAGE_GUID_SUP |
			      IB_PORT_CLIENT_REG_SUP;
	softib_describe(dev);

	ib_set_device_ops(ibdev, &softib_ops);
	if (softib_is_roce(dev))
		ib_set_device_ops(ibdev, &softib_roce_ops);
	ret = softib_roce_start(dev);
	if (ret)
		return ret;
	ret = ib_register_device(ibdev, "softib%d", NULL);
	if (ret)
		softib_roce_stop(dev);
	else
		softib_roce_registered(dev);
	return ret;
}

/* The other way round: nobody uses it any more. */
void softib_device_unregister(struct softib_dev *dev)
{
	softib_roce_stop(dev);
	ib_unregister_device(&dev->ibdev);
}
