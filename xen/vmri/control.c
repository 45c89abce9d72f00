/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the commands of dom0.  Whether the caller may is asked first of all,
 * and again when the target is known: nobody else learns which domains exist.
 */
#include "internal.h"

static long ctl_attach(uint64_t guest)
{
    struct vmri_ctl_attach arg;
    struct domain *d;
    long ret;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    if ( arg.flags || arg.reserved || arg.fabric > VMRI_FABRIC_MAX ||
         arg.lid > VMRI_LID_MAX ||
         (arg.dev_id >= VMRI_MAX_DEVS && arg.dev_id != VMRI_DEV_ANY) )
        return -EINVAL;

    d = env_domain_get(arg.domid);
    if ( !d )
        return -ESRCH;

    ret = env_may_control(d, VMRI_OP_ctl_attach) ?: vmri_dev_attach(d, &arg);
    if ( !ret && env_copy_to_guest(guest, &arg, sizeof(arg)) )
    {
        vmri_dev_detach(d, arg.dev_id, false);
        ret = -EFAULT;
    }

    env_domain_put(d);

    return ret;
}

static long ctl_detach(uint64_t guest, bool again)
{
    struct vmri_ctl_detach arg;
    struct domain *d;
    long ret;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    /* When the domain died in the middle, its teardown does the rest. */
    d = env_domain_get(arg.domid);
    if ( !d )
        return again ? 0 : -ESRCH;

    ret = env_may_control(d, VMRI_OP_ctl_detach) ?:
          vmri_dev_detach(d, arg.dev_id, again);

    env_domain_put(d);

    return ret;
}

static void fill_info(struct vmri_ctl_info *info, struct vmri_dev *dev)
{
    *info = (struct vmri_ctl_info){
        .domid = env_domid(dev->domain),
        .dev_id = dev->id,
        .fabric = dev->fabric->id,
        .lid = dev->lid,
        .in_use = env_load(&dev->in_use),
        .guid = dev->guid,
    };

    vmri_usage_get(dev, &info->usage);
    vmri_counters_get(dev, &info->counters);
}

static long ctl_list(uint64_t guest)
{
    struct vmri_ctl_info info;
    struct vmri_dev *dev;

    if ( env_copy_from_guest(&info, guest, sizeof(info)) )
        return -EFAULT;

    /* Devices that the caller may not see are passed over. */
    env_lock(&vmri_control_lock);
    while ( (dev = vmri_dev_next(&info.domid, &info.dev_id)) != NULL &&
            env_may_control(dev->domain, VMRI_OP_ctl_list) )
        info.dev_id++;
    if ( dev )
        fill_info(&info, dev);
    env_unlock(&vmri_control_lock);

    if ( !dev )
        return -ENOENT;

    return env_copy_to_guest(guest, &info, sizeof(info));
}

long vmri_control(unsigned int cmd, uint64_t args, bool again)
{
    long ret = env_may_control(NULL, cmd);

    if ( ret )
        return ret;

    switch ( cmd )
    {
    case VMRI_OP_ctl_attach:
        return ctl_attach(args);
    case VMRI_OP_ctl_detach:
        return ctl_detach(args, again);
    case VMRI_OP_ctl_list:
        return ctl_list(args);
    default:
        return -ENOSYS;
    }
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
