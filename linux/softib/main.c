// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the device on the xenbus, from probe to removal.
 *
 * dom0 writes the usual pair of directories, the backend's state Connected from
 * the beginning: there is no backend to talk to, VMRI is in the hypervisor.  The
 * backend's state says Closing when dom0 wants the device back.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/reboot.h>
#include <asm/processor.h>
#include <xen/xen.h>
#include <xen/xenbus.h>

#include <uapi/softib-abi.h>

#include "softib.h"

static bool trap_doorbell = true;
module_param(trap_doorbell, bool, 0644);
MODULE_PARM_DESC(trap_doorbell,
		 "Let processes ring doorbells past the kernel, on devices bound from now on (default: true)");

/*
 * Who takes drvdata away tears the device down: the backend's closing, or the
 * driver's removal.  A reboot only looks.
 */
static DEFINE_MUTEX(softib_lifecycle);

/* Where VMRI is and which of its devices this is. */
static int softib_read_node(struct softib_dev *dev)
{
	const char *node = dev->xdev->nodename;
	int ret;

	ret = xenbus_gather(XBT_NIL, node, "hypercall", "%u", &dev->hypercall,
			    "dev-id", "%u", &dev->dev_id, NULL);
	if (ret)
		xenbus_dev_error(dev->xdev, ret, "reading %s", node);
	return ret;
}

/* How processes may ring past this driver: SOFTIB_DOORBELL_*. */
static u32 softib_doorbells(u32 features)
{
	if (!trap_doorbell)
		return 0;
	if (features & VMRI_FEATURE_DOORBELL_INT)
		return SOFTIB_DOORBELL_INT;
	if (!(features & VMRI_FEATURE_DOORBELL_CALL))
		return 0;
	return boot_cpu_data.x86_vendor == X86_VENDOR_AMD ||
	       boot_cpu_data.x86_vendor == X86_VENDOR_HYGON ?
	       SOFTIB_DOORBELL_VMMCALL : SOFTIB_DOORBELL_VMCALL;
}

/* Take the device into use. */
static int softib_create(struct softib_dev *dev)
{
	struct vmri_version version = {};
	struct vmri_dev_create cmd = {};
	int ret;

	ret = softib_version(dev->hypercall, &version);
	if (!ret && version.magic != VMRI_MAGIC)
		ret = -ENODEV;
	if (!ret && version.abi_version != VMRI_ABI_VERSION)
		ret = -EPROTONOSUPPORT;
	if (ret) {
		xenbus_dev_error(dev->xdev, ret,
				 "hypercall %u is not VMRI's version %u",
				 dev->hypercall, VMRI_ABI_VERSION);
		return ret;
	}

	dev->doorbells = softib_doorbells(version.features);
	if (dev->doorbells)
		cmd.flags |= VMRI_DEVF_DOORBELL;
	ret = softib_call(dev, VMRI_OP_dev_create, &cmd);
	if (ret) {
		xenbus_dev_error(dev->xdev, ret, "creating device %u",
				 dev->dev_id);
		return ret;
	}
	dev->attr = cmd.attr;
	return 0;
}

static void softib_dev_destroy(struct softib_dev *dev)
{
	softib_call(dev, VMRI_OP_dev_destroy, NULL);
}

static int softib_start(struct softib_dev *dev)
{
	int ret;

	ret = softib_create(dev);
	if (ret)
		return ret;

	dev->wq = alloc_workqueue("softib", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!dev->wq) {
		ret = -ENOMEM;
		goto err_dev;
	}
	ret = softib_eqs_create(dev);
	if (ret)
		goto err_wq;
	ret = softib_sm_start(dev);
	if (ret)
		goto err_eqs;
	ret = softib_device_register(dev);
	if (ret)
		goto err_eqs;
	return 0;

err_eqs:
	softib_eqs_destroy(dev);
	softib_sm_stop(dev);
err_wq:
	destroy_workqueue(dev->wq);
err_dev:
	softib_dev_destroy(dev);
	return ret;
}

static void softib_stop(struct softib_dev *dev)
{
	struct vmri_dev_attr attr;

	softib_qps_mark_dead(dev);
	softib_srqs_mark_dead(dev);
	softib_finish_users(dev);
	softib_cqs_mark_dead(dev);
	/* Kernel users will wait for what they have posted. */
	if (softib_call(dev, VMRI_OP_dev_query, &attr) == -ENODEV)
		softib_flush_all(dev);

	softib_device_unregister(dev);
	softib_eqs_destroy(dev);
	softib_reports_stop(dev);
	softib_sm_stop(dev);
	destroy_workqueue(dev->wq);
	softib_dev_destroy(dev);
}

static struct softib_dev *softib_alloc(struct xenbus_device *xdev)
{
	struct softib_dev *dev = ib_alloc_device(softib_dev, ibdev);

	if (!dev)
		return NULL;
	if (init_srcu_struct(&dev->calls)) {
		ib_dealloc_device(&dev->ibdev);
		return NULL;
	}

	dev->xdev = xdev;
	spin_lock_init(&dev->port_lock);
	xa_init_flags(&dev->cqs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->srqs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->qps, XA_FLAGS_LOCK_IRQ);
	softib_commands_init(&dev->commands);
	softib_reports_init(dev);
	return dev;
}

static void softib_free(struct softib_dev *dev)
{
	xa_destroy(&dev->cqs);
	xa_destroy(&dev->srqs);
	xa_destroy(&dev->qps);
	cleanup_srcu_struct(&dev->calls);
	ib_dealloc_device(&dev->ibdev);
}

static int softib_probe(struct xenbus_device *xdev,
			const struct xenbus_device_id *id)
{
	struct softib_dev *dev;
	int ret;

	dev = softib_alloc(xdev);
	if (!dev)
		return -ENOMEM;

	ret = softib_read_node(dev);
	if (!ret)
		ret = softib_start(dev);
	if (ret) {
		softib_free(dev);
		return ret;
	}

	dev_set_drvdata(&xdev->dev, dev);
	xenbus_switch_state(xdev, XenbusStateConnected);
	dev_info(&xdev->dev, "%s: port GUID %016llx, LID %u, fabric %u\n",
		 dev_name(&dev->ibdev.dev), dev->attr.port_guid, dev->attr.lid,
		 dev->attr.fabric);
	return 0;
}

/* Whoever comes first. */
static void softib_close(struct xenbus_device *xdev)
{
	struct softib_dev *dev;

	mutex_lock(&softib_lifecycle);
	dev = dev_get_drvdata(&xdev->dev);
	if (dev) {
		dev_set_drvdata(&xdev->dev, NULL);
		softib_stop(dev);
		softib_free(dev);
	}
	mutex_unlock(&softib_lifecycle);
}

static void softib_backend_changed(struct xenbus_device *xdev,
				   enum xenbus_state state)
{
	if (state == XenbusStateClosing || state == XenbusStateClosed) {
		softib_close(xdev);
		xenbus_frontend_closed(xdev);
	}
}

static const struct xenbus_device_id softib_ids[] = {
	{ "vmri" },
	{ "" }
};

static struct xenbus_driver softib_driver = {
	.name = "softib",
	.ids = softib_ids,
	.probe = softib_probe,
	.remove = softib_close,
	.otherend_changed = softib_backend_changed,
};

/*
 * Have VMRI let go of this kernel's memory before another kernel gets it.  Users
 * see their requests fail; they will not see much more.
 */
static int softib_quiesce(struct device *device, void *data)
{
	struct softib_dev *dev;

	/* One that is being torn down ends by itself, or hangs: do not wait. */
	if (!mutex_trylock(&softib_lifecycle))
		return 0;
	dev = dev_get_drvdata(device);
	if (dev) {
		softib_dev_destroy(dev);
		/* There is no backend that the bus could wait for. */
		xenbus_switch_state(dev->xdev, XenbusStateClosed);
	}
	mutex_unlock(&softib_lifecycle);
	return 0;
}

static int softib_reboot(struct notifier_block *nb, unsigned long action,
			 void *data)
{
	int ret = driver_for_each_device(&softib_driver.driver, NULL, NULL,
					 softib_quiesce);

	return notifier_from_errno(ret);
}

static struct notifier_block softib_reboot_notifier = {
	.notifier_call = softib_reboot,
};

static int __init softib_init(void)
{
	int ret;

	if (!xen_domain())
		return -ENODEV;

	ret = ib_register_client(&softib_sa_client);
	if (ret)
		return ret;
	ret = register_reboot_notifier(&softib_reboot_notifier);
	if (ret)
		goto err_client;
	ret = xenbus_register_frontend(&softib_driver);
	if (ret)
		goto err_notifier;
	return 0;

err_notifier:
	unregister_reboot_notifier(&softib_reboot_notifier);
err_client:
	ib_unregister_client(&softib_sa_client);
	return ret;
}
module_init(softib_init);

static void __exit softib_exit(void)
{
	unregister_reboot_notifier(&softib_reboot_notifier);
	xenbus_unregister_driver(&softib_driver);
	ib_unregister_client(&softib_sa_client);
}
module_exit(softib_exit);

MODULE_DESCRIPTION("SoftIB: virtual InfiniBand device on Xen's VMRI");
MODULE_LICENSE("GPL");
MODULE_ALIAS("xen:vmri");
