/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the commands of dom0.  Whether the caller may is asked first of all,
 * and again when the target is known: nobody else learns which domains exist.
 */
#include "internal.h"

/*
 * The domain has had the device for a moment and may have made objects of it,
 * but no more from the first call on: there are few.
 */
static void attach_undo(struct domain *d, uint32_t dev_id)
{
    bool again = false;

    while ( vmri_dev_detach(d, dev_id, again) == -ERESTART )
        again = true;
}

static long ctl_attach(uint64_t guest)
{
    struct vmri_ctl_attach arg;
    struct domain *d;
    long ret;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    if ( (arg.flags & ~(VMRI_ATTACH_CREATED | VMRI_ATTACH_SM)) ||
         arg.fabric > VMRI_FABRIC_MAX ||
         arg.lid > VMRI_LID_MAX ||
         (arg.dev_id >= VMRI_MAX_DEVS && arg.dev_id != VMRI_DEV_ANY) )
        return -EINVAL;

    d = env_domain_get(arg.domid);
    if ( !d )
        return -ESRCH;

    ret = env_may_control(d, VMRI_OP_ctl_attach) ?: vmri_dev_attach(d, &arg);
    if ( !ret && env_copy_to_guest(guest, &arg, sizeof(arg)) )
    {
        attach_undo(d, arg.dev_id);
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
        .group = dev->group,
        .uplink = vmri_uplink_number(dev),
    };

    vmri_usage_get(dev, &info->usage);
    vmri_counters_get(dev, &info->counters);
}

/* Devices that the caller may not see are passed over. */
static long info_from(struct vmri_ctl_info *info)
{
    struct vmri_dev *dev;

    while ( (dev = vmri_dev_next(&info->domid, &info->dev_id)) != NULL &&
            env_may_control(dev->domain, VMRI_OP_ctl_list) )
        info->dev_id++;
    if ( !dev )
        return -ENOENT;

    fill_info(info, dev);

    return 0;
}

static long info_one(struct vmri_ctl_info *info)
{
    uint32_t domid = info->domid, dev_id = info->dev_id;
    struct vmri_dev *dev = vmri_dev_next(&domid, &dev_id);
    long ret;

    if ( !dev || domid != info->domid || dev_id != info->dev_id )
        return -ENODEV;

    ret = env_may_control(dev->domain, VMRI_OP_ctl_list);
    if ( !ret )
        fill_info(info, dev);

    return ret;
}

static long ctl_list(uint64_t guest)
{
    struct vmri_ctl_info info;
    long ret;

    if ( env_copy_from_guest(&info, guest, sizeof(info)) )
        return -EFAULT;

    if ( info.which > VMRI_INFO_ONE )
        return -EINVAL;

    env_lock(&vmri_control_lock);
    ret = info.which == VMRI_INFO_ONE ? info_one(&info) : info_from(&info);
    env_unlock(&vmri_control_lock);

    return ret ?: env_copy_to_guest(guest, &info, sizeof(info));
}

/* The target of a command, if there is one and the caller may: 0 or errno. */
static long target(uint32_t domid, unsigned int cmd, struct domain **d)
{
    long ret;

    *d = env_domain_get(domid);
    if ( !*d )
        return -ESRCH;

    ret = env_may_control(*d, cmd);
    if ( ret )
        env_domain_put(*d);

    return ret;
}

static long ctl_limits(uint64_t guest)
{
    struct vmri_ctl_limits arg;
    unsigned int what;
    struct domain *d;
    long ret;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    if ( arg.mask >> VMRI_RES_NR )
        return -EINVAL;
    for ( what = 0; what < VMRI_RES_NR; what++ )
        if ( (arg.mask & (1U << what)) && arg.limit.n[what] > VMRI_LIMIT_MAX )
            return -EINVAL;

    ret = target(arg.domid, VMRI_OP_ctl_limits, &d);
    if ( ret )
        return ret;
    ret = vmri_domain_limits(d, arg.mask, &arg.limit, &arg.usage);
    env_domain_put(d);

    return ret ?: env_copy_to_guest(guest, &arg, sizeof(arg));
}

/* Another domain's device with a reference: 0 or errno. */
static long find_dev(uint32_t domid, uint32_t dev_id, unsigned int cmd,
                     struct vmri_dev **dev)
{
    struct domain *d;
    long ret = target(domid, cmd, &d);

    if ( ret )
        return ret;

    *dev = vmri_dev_get_of(d, dev_id);
    env_domain_put(d);

    return *dev ? 0 : -ENODEV;
}

static long ctl_stats(uint64_t guest)
{
    struct vmri_ctl_stats arg;
    struct vmri_dev *dev;
    unsigned int type;
    long ret;

    if ( env_copy_from_guest(&arg, guest, offsetof(typeof(arg), counters)) )
        return -EFAULT;

    ret = find_dev(arg.domid, arg.dev_id, VMRI_OP_ctl_stats, &dev);
    if ( ret )
        return ret;

    memset(&arg.type, 0, sizeof(arg.type));
    for ( type = 0; type < VMRI_STAT_NR; type++ )
        vmri_type_counters_get(dev, type, &arg.type[type]);
    vmri_counters_get(dev, &arg.counters);
    vmri_dev_put(dev);

    return env_copy_to_guest(guest, &arg, sizeof(arg));
}

static long ctl_port(uint64_t guest)
{
    struct vmri_ctl_port arg;
    struct domain *d;
    long ret;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    ret = target(arg.domid, VMRI_OP_ctl_port, &d);
    if ( ret )
        return ret;
    ret = vmri_port_control(d, &arg);
    env_domain_put(d);

    return ret ?: env_copy_to_guest(guest, &arg, sizeof(arg));
}

static long ctl_rate(uint64_t guest)
{
    struct vmri_ctl_rate arg;
    struct domain *d;
    long ret;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    ret = target(arg.domid, VMRI_OP_ctl_rate, &d);
    if ( ret )
        return ret;
    ret = vmri_rate_control(d, &arg);
    env_domain_put(d);

    return ret ?: env_copy_to_guest(guest, &arg, sizeof(arg));
}

static long ctl_dump(uint64_t guest)
{
    struct vmri_ctl_dump arg;
    struct vmri_dev *dev;
    long ret;

    if ( env_copy_from_guest(&arg, guest, offsetof(typeof(arg), handle)) )
        return -EFAULT;

    ret = find_dev(arg.domid, arg.dev_id, VMRI_OP_ctl_dump, &dev);
    if ( ret )
        return ret;

    ret = vmri_describe(dev, &arg);
    vmri_dev_put(dev);

    /* One that goes on does so from the index that it has come to. */
    if ( (!ret || ret == -ERESTART) &&
         env_copy_to_guest(guest, &arg, sizeof(arg)) )
        ret = -EFAULT;

    return ret;
}

static long ctl_fabric(unsigned int cmd, uint64_t guest)
{
    struct vmri_ctl_fabric arg;
    long ret;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    if ( cmd == VMRI_OP_ctl_fabric_delete )
        return vmri_fabric_delete(arg.fabric);

    ret = cmd == VMRI_OP_ctl_fabric_create ? vmri_fabric_create(&arg)
                                           : vmri_fabric_list(&arg);
    if ( ret || !env_copy_to_guest(guest, &arg, sizeof(arg)) )
        return ret;

    if ( cmd == VMRI_OP_ctl_fabric_create )
        vmri_fabric_delete(arg.fabric);

    return -EFAULT;
}

/* Changes go on until connections have been looked at. */
static long ctl_rule(unsigned int cmd, uint64_t guest, bool again)
{
    struct vmri_ctl_rule arg;
    long ret = 0;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    if ( cmd == VMRI_OP_ctl_rule_list )
        return vmri_rule_list(&arg) ?: env_copy_to_guest(guest, &arg,
                                                         sizeof(arg));

    if ( !again && cmd == VMRI_OP_ctl_rule_add )
    {
        ret = vmri_rule_add(&arg);
        if ( !ret && env_copy_to_guest(guest, &arg, sizeof(arg)) )
        {
            vmri_rule_del(arg.fabric, arg.rule);
            ret = -EFAULT;
        }
    }
    else if ( !again )
        ret = vmri_rule_del(arg.fabric, arg.rule);

    return ret ?: vmri_rules_enforce(arg.fabric);
}

static long ctl_route(unsigned int cmd, uint64_t guest)
{
    struct vmri_ctl_route arg;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    switch ( cmd )
    {
    case VMRI_OP_ctl_route_add:
        return vmri_route_add(&arg);

    case VMRI_OP_ctl_route_del:
        return vmri_route_del(&arg);

    default:
        return vmri_route_list(&arg) ?: env_copy_to_guest(guest, &arg,
                                                          sizeof(arg));
    }
}

static long ctl_uplink_open(uint64_t guest)
{
    struct vmri_ctl_uplink_open arg;
    struct vmri_ctl_uplink close;
    bool again = false;
    long ret;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    ret = vmri_uplink_open(&arg);
    if ( ret || !env_copy_to_guest(guest, &arg, sizeof(arg)) )
        return ret;

    /* Nobody has made anything of it yet, or hardly. */
    close = (struct vmri_ctl_uplink){ .uplink = arg.uplink };
    while ( vmri_uplink_close(&close, again) == -ERESTART )
        again = true;

    return -EFAULT;
}

static long ctl_uplink_close(uint64_t guest, bool again)
{
    struct vmri_ctl_uplink arg;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    return vmri_uplink_close(&arg, again);
}

static long ctl_uplink_done(uint64_t guest)
{
    struct vmri_ctl_uplink_done arg;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    return vmri_uplink_done(&arg);
}

static long ctl_uplink_deliver(uint64_t guest)
{
    struct vmri_ctl_uplink_deliver arg;

    if ( env_copy_from_guest(&arg, guest, sizeof(arg)) )
        return -EFAULT;

    return vmri_relay_deliver(&arg);
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
    case VMRI_OP_ctl_limits:
        return ctl_limits(args);
    case VMRI_OP_ctl_stats:
        return ctl_stats(args);
    case VMRI_OP_ctl_port:
        return ctl_port(args);
    case VMRI_OP_ctl_dump:
        return ctl_dump(args);
    case VMRI_OP_ctl_fabric_create:
    case VMRI_OP_ctl_fabric_delete:
    case VMRI_OP_ctl_fabric_list:
        return ctl_fabric(cmd, args);
    case VMRI_OP_ctl_rate:
        return ctl_rate(args);
    case VMRI_OP_ctl_rule_add:
    case VMRI_OP_ctl_rule_del:
    case VMRI_OP_ctl_rule_list:
        return ctl_rule(cmd, args, again);
    case VMRI_OP_ctl_route_add:
    case VMRI_OP_ctl_route_del:
    case VMRI_OP_ctl_route_list:
        return ctl_route(cmd, args);
    case VMRI_OP_ctl_uplink_open:
        return ctl_uplink_open(args);
    case VMRI_OP_ctl_uplink_close:
        return ctl_uplink_close(args, again);
    case VMRI_OP_ctl_uplink_done:
        return ctl_uplink_done(args);
    case VMRI_OP_ctl_uplink_deliver:
        return ctl_uplink_deliver(args);
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
