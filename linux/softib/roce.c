// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: a device on a RoCE fabric, which belongs to one of the guest's network
 * interfaces: the one with the MAC address that dom0 tells.
 *
 * Its GIDs are that interface's addresses, kept by ib_core and told to VMRI; its
 * port is up while the interface is.  The interface resolves peers' addresses, but no
 * message of the device passes through it.  It may come later than the device, go
 * earlier, and move to another network namespace.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_cache.h>

#include "softib.h"

/* One that carries others' frames, as a VLAN's does, has the same address. */
static bool softib_is_ours(const struct softib_dev *dev,
			   const struct net_device *netdev)
{
	return netdev->type == ARPHRD_ETHER && !netdev->rtnl_link_ops &&
	       ether_addr_equal(netdev->dev_addr, dev->roce.mac);
}

/* Under RTNL, as is all that the notifier does. */
static void softib_link_update(struct softib_dev *dev)
{
	struct softib_roce *roce = &dev->roce;
	bool up = roce->netdev && netif_running(roce->netdev) &&
		  netif_carrier_ok(roce->netdev);

	if (up == roce->up)
		return;

	WRITE_ONCE(roce->up, up);
	/* ib_core does not know of a port's state before it has the device. */
	if (roce->registered)
		softib_port_event(dev, up ? IB_EVENT_PORT_ACTIVE :
					    IB_EVENT_PORT_ERR);
}

static void softib_bind(struct softib_dev *dev, struct net_device *netdev)
{
	if (ib_device_set_netdev(&dev->ibdev, netdev, SOFTIB_PORT))
		return;
	dev->roce.netdev = netdev;
	softib_link_update(dev);
}

static int softib_netdev_event(struct notifier_block *nb, unsigned long event,
			       void *data)
{
	struct softib_dev *dev = container_of(nb, struct softib_dev, roce.nb);
	struct net_device *netdev = netdev_notifier_info_to_dev(data);

	if (event == NETDEV_REGISTER && !dev->roce.netdev &&
	    softib_is_ours(dev, netdev))
		softib_bind(dev, netdev);
	else if (netdev != dev->roce.netdev)
		return NOTIFY_DONE;

	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		softib_link_update(dev);
		break;
	case NETDEV_UNREGISTER:
		softib_bind(dev, NULL);
		break;
	}
	return NOTIFY_DONE;
}

static int softib_read_mac(struct softib_dev *dev)
{
	struct xenbus_device *xdev = dev->xdev;
	char *text = xenbus_read(XBT_NIL, xdev->nodename, "mac", NULL);
	int ret = 0;

	if (IS_ERR(text)) {
		ret = PTR_ERR(text);
		xenbus_dev_error(xdev, ret, "reading %s/mac", xdev->nodename);
		return ret;
	}
	if (!mac_pton(text, dev->roce.mac)) {
		ret = -EINVAL;
		xenbus_dev_error(xdev, ret, "%s/mac is no MAC address",
				 xdev->nodename);
	}
	kfree(text);
	return ret;
}

/**
 * softib_roce_start() - look for the device's network interface
 * @dev:	device that is not registered yet; of any link layer
 *
 * Return: 0 or a negative errno.
 */
int softib_roce_start(struct softib_dev *dev)
{
	int ret;

	if (!softib_is_roce(dev))
		return 0;

	ret = softib_read_mac(dev);
	if (ret)
		return ret;
	dev->roce.nb.notifier_call = softib_netdev_event;
	/* Tells at once of all that there are. */
	return register_netdevice_notifier(&dev->roce.nb);
}

/* The device has been registered: who knows it hears of its port from now on. */
void softib_roce_registered(struct softib_dev *dev)
{
	if (!softib_is_roce(dev))
		return;

	rtnl_lock();
	dev->roce.registered = true;
	/* It may have come up after the port was looked at. */
	if (dev->roce.up)
		softib_port_event(dev, IB_EVENT_PORT_ACTIVE);
	rtnl_unlock();
}

/* Before the device is unregistered, and when it never was. */
void softib_roce_stop(struct softib_dev *dev)
{
	if (softib_is_roce(dev))
		unregister_netdevice_notifier(&dev->roce.nb);
}

/* ---- GIDs: ib_core's table is VMRI's ---- */

static int softib_gid_set(struct softib_dev *dev, u32 index,
			  const union ib_gid *gid)
{
	struct vmri_gid_set arg = { .index = index };

	if (gid)
		memcpy(arg.gid, gid->raw, sizeof(arg.gid));
	return softib_call(dev, VMRI_OP_gid_set, &arg);
}

int softib_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct softib_dev *dev = to_softib_dev(attr->device);
	int ret = softib_gid_set(dev, attr->index, &attr->gid);

	if (ret == -EEXIST)
		dev_warn_ratelimited(&dev->ibdev.dev,
				     "%pI6c is another device's on the fabric\n",
				     attr->gid.raw);
	return ret;
}

int softib_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct softib_dev *dev = to_softib_dev(attr->device);
	int ret = softib_gid_set(dev, attr->index, NULL);

	/* A device that is gone has none. */
	return ret == -ENODEV ? 0 : ret;
}
