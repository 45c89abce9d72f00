/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: a fabric as a subnet: who is told when it changes, and the device whose
 * driver manages it.
 *
 * VMRI itself is no manager and forwards none's packets.  The manager's driver
 * does what a subnet manager wants by commands of dom0; here is only what has to
 * hold when that driver is not there any more.
 */
#include "internal.h"

#define CAP_IS_SM       0x2U    /* IBTA 1.4, 14.2.5.6: PortInfo:CapabilityMask */

/* ---- who is told of changes ---- */

int vmri_subnet_watch(struct vmri_dev *dev)
{
    struct vmri_fabric *f = dev->fabric;
    int ret = -ENODEV;

    env_lock(&f->mcg_lock);
    env_lock(&dev->lock);
    if ( dev->in_use && !dev->closing )
    {
        if ( list_empty(&dev->watching) )
            list_add_tail(&dev->watching, &f->watchers);
        ret = 0;
    }
    env_unlock(&dev->lock);
    env_unlock(&f->mcg_lock);

    return ret;
}

void vmri_subnet_unwatch(struct vmri_dev *dev)
{
    env_lock(&dev->fabric->mcg_lock);
    list_del_init(&dev->watching);
    env_unlock(&dev->fabric->mcg_lock);
}

void vmri_subnet_changed(struct vmri_fabric *f)
{
    struct vmri_dev *dev, *next;

    list_for_each_entry_safe ( dev, next, &f->watchers, watching )
    {
        list_del_init(&dev->watching);
        vmri_port_event(dev, VMRI_EVENT_FABRIC);
    }
}

void vmri_subnet_ports_changed(struct vmri_fabric *f)
{
    env_lock(&f->mcg_lock);
    vmri_subnet_changed(f);
    env_unlock(&f->mcg_lock);
}

/* ---- the manager, all under vmri_control_lock ---- */

int vmri_subnet_admits(const struct vmri_fabric *f, const struct vmri_dev *dev)
{
    if ( dev->sm && f->gids )
        return -EOPNOTSUPP;
    if ( dev->sm && f->sm )
        return -EBUSY;

    return (dev->sm || f->sm) && f->devs > VMRI_MANAGED_MAX ? -ENOSPC : 0;
}

void vmri_subnet_join(struct vmri_fabric *f, struct vmri_dev *dev)
{
    bool managed = false;

    if ( dev->sm )
        f->sm = dev;
    else if ( f->sm )
    {
        env_lock(&f->sm->lock);
        managed = f->sm->port.text.cap_mask & CAP_IS_SM;
        env_unlock(&f->sm->lock);
    }

    if ( managed )
        env_store(&dev->port.state, VMRI_PORT_INIT);
}

void vmri_subnet_leave(struct vmri_fabric *f, struct vmri_dev *dev)
{
    uint32_t index = 0, lid;
    struct vmri_dev *peer;

    if ( f->sm == dev )
    {
        f->sm = NULL;
        while ( (peer = vmri_table_next(&f->lids, &index, &lid)) != NULL )
            vmri_port_release(peer, dev->lid);
    }
    vmri_subnet_ports_changed(f);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
