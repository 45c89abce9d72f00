// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: from a NIC that comes to one that goes.
 *
 * One NIC is an uplink: the one of that name, or the first that speaks RoCE and
 * registers memory by requests.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <xen/xen.h>

#include "uplink.h"

static char *device = "";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device,
		 "Name of the RoCE device that is the uplink (default: the first)");

/* Which there is: those who come and go, and who reads its number. */
static DEFINE_MUTEX(uplink_lifecycle);
static struct uplink *uplink_only;

static int uplink_show_number(char *buffer, const struct kernel_param *kp)
{
	u32 number;

	mutex_lock(&uplink_lifecycle);
	number = uplink_only ? uplink_only->number : 0;
	mutex_unlock(&uplink_lifecycle);
	return sysfs_emit(buffer, "%u\n", number);
}

static int uplink_set_number(const char *value, const struct kernel_param *kp)
{
	return -EPERM;
}

static const struct kernel_param_ops uplink_number_ops = {
	.set = uplink_set_number,
	.get = uplink_show_number,
};
module_param_cb(uplink, &uplink_number_ops, NULL, 0444);
MODULE_PARM_DESC(uplink, "Number of the uplink, 0 while there is none (read only)");

/*
 * A queue pair's completions, of both directions, go to one queue.  What a twin
 * takes of dom0's memory is not the guest's, so it has a bound.
 */
static u32 uplink_max_wr(const struct ib_device_attr *attrs)
{
	return rounddown_pow_of_two(min3(attrs->max_qp_wr, attrs->max_cqe / 2,
					 UPLINK_MAX_WR));
}

/* Copies that the kernel would make for the NIC are never brought up to date. */
static bool uplink_reaches_all(struct ib_device *ibdev)
{
	return ib_uses_virt_dma(ibdev) ||
	       dma_get_mask(ibdev->dma_device) == DMA_BIT_MASK(64);
}

static int uplink_find_caps(struct uplink *up)
{
	const struct ib_device_attr *attrs = &up->ibdev->attrs;
	int sge = min3(attrs->max_send_sge, attrs->max_recv_sge,
		       UPLINK_MAX_SGE);
	struct ib_port_attr port;
	int ret = ib_query_port(up->ibdev, UPLINK_PORT, &port);

	if (ret)
		return ret;
	if (!uplink_reaches_all(up->ibdev))
		return -EOPNOTSUPP;
	if (attrs->max_sge_rd)
		sge = min(sge, attrs->max_sge_rd);
	if (sge < 1 || attrs->max_qp_wr < 1 || attrs->max_cqe < 2 ||
	    attrs->max_fast_reg_page_list_len < 2)
		return -EOPNOTSUPP;

	up->caps = (struct vmri_uplink_caps) {
		/* However it lies in its pages. */
		.max_mr_size = (u64)(uplink_max_pages(up->ibdev) - 1) <<
			       PAGE_SHIFT,
		.max_qp_wr = uplink_max_wr(attrs),
		.max_sge = sge,
		.max_inline = UPLINK_MAX_INLINE,
		.max_rd_atomic = clamp(min(attrs->max_qp_rd_atom,
					   attrs->max_qp_init_rd_atom),
				       0, U8_MAX),
		.mtu = port.active_mtu,
		.atomics = attrs->atomic_cap != IB_ATOMIC_NONE,
	};
	return 0;
}

static struct uplink *uplink_alloc(struct ib_device *ibdev)
{
	struct uplink *up = kzalloc(sizeof(*up), GFP_KERNEL);

	if (!up)
		return NULL;
	up->ibdev = ibdev;
	init_waitqueue_head(&up->wait);
	xa_init(&up->twins);
	xa_init(&up->guests);
	spin_lock_init(&up->lock);
	INIT_LIST_HEAD(&up->ready);
	INIT_LIST_HEAD(&up->answers);
	mutex_init(&up->pds_lock);
	INIT_LIST_HEAD(&up->pds);
	return up;
}

/**
 * uplink_lose() - the NIC does not let go of something
 * @up:		uplink
 * @what:	for the log
 * @error:	what its driver says
 *
 * It may still use memory, and call: all of this stays, as does the module.
 *
 * Context: any.
 */
void uplink_lose(struct uplink *up, const char *what, int error)
{
	dev_err_ratelimited(&up->ibdev->dev,
			    "softib_uplink: does not let go of a %s: %d\n",
			    what, error);
	if (!xchg(&up->lost, true))
		__module_get(THIS_MODULE);
}

static void uplink_free(struct uplink *up)
{
	if (up->lost)
		return;
	xa_destroy(&up->guests);
	xa_destroy(&up->twins);
	kfree(up);
}

static int uplink_open(struct uplink *up)
{
	int ret = uplink_find_caps(up);

	if (ret)
		return ret;
	ret = uplink_ring_open(up);
	if (ret)
		return ret;
	uplink_relay_open(up);
	ret = uplink_start(up);
	if (ret) {
		uplink_relay_close(up);
		uplink_ring_close(up);
	}
	return ret;
}

static void uplink_close(struct uplink *up)
{
	uplink_stop(up);
	uplink_relay_close(up);
	uplink_ring_close(up);
}

static bool uplink_suits(struct ib_device *ibdev)
{
	if (uplink_only ||
	    (*device && strcmp(dev_name(&ibdev->dev), device)))
		return false;
	return rdma_is_port_valid(ibdev, UPLINK_PORT) &&
	       rdma_protocol_roce(ibdev, UPLINK_PORT) &&
	       (ibdev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS);
}

static int uplink_add(struct ib_device *ibdev)
{
	int ret = -EOPNOTSUPP;
	struct uplink *up;

	mutex_lock(&uplink_lifecycle);
	if (!uplink_suits(ibdev))
		goto out;

	up = uplink_alloc(ibdev);
	ret = up ? uplink_open(up) : -ENOMEM;
	if (ret) {
		dev_err(&ibdev->dev, "cannot be an uplink: %d\n", ret);
		kfree(up);
		goto out;
	}
	uplink_only = up;
	dev_info(&ibdev->dev, "uplink %u: regions of %llu bytes, %u requests\n",
		 up->number, up->caps.max_mr_size, up->caps.max_qp_wr);
out:
	mutex_unlock(&uplink_lifecycle);
	return ret;
}

static void uplink_remove(struct ib_device *ibdev, void *client_data)
{
	mutex_lock(&uplink_lifecycle);
	if (uplink_only && uplink_only->ibdev == ibdev) {
		uplink_close(uplink_only);
		uplink_free(uplink_only);
		uplink_only = NULL;
	}
	mutex_unlock(&uplink_lifecycle);
}

static struct ib_client uplink_client = {
	.name = "softib_uplink",
	.add = uplink_add,
	.remove = uplink_remove,
};

static int __init uplink_init(void)
{
	int ret;

	if (!xen_initial_domain())
		return -ENODEV;
	ret = uplink_hcall_version();
	if (ret)
		return ret;
	return ib_register_client(&uplink_client);
}
module_init(uplink_init);

static void __exit uplink_exit(void)
{
	ib_unregister_client(&uplink_client);
}
module_exit(uplink_exit);

MODULE_DESCRIPTION("SoftIB: carries the guests' RDMA to other hosts on a RoCE NIC");
MODULE_LICENSE("GPL");
