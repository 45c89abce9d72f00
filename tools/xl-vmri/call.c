/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hypercalls.
 */
#include <errno.h>
#include <string.h>

#include <xencall.h>
#include <xentoollog.h>

#include "xl-vmri.h"

/* Xen's public interface: xen.h and version.h. */
#define HYPERCALL_xen_version   17
#define XENVER_version          0

static xencall_handle *handle;

/* libxencall would print its own text before ours. */
static void say_nothing(struct xentoollog_logger *logger,
                        xentoollog_level level, int errnoval,
                        const char *context, const char *format, va_list args)
{
}

static xentoollog_logger quiet = { .vmessage = say_nothing };

int call_open(void)
{
    errno = 0;
    handle = xencall_open(&quiet, XENCALL_OPENFLAG_NON_REENTRANT);
    if (handle)
        return 0;
    return errno ? -errno : -EIO;
}

void call_close(void)
{
    if (handle)
        xencall_close(handle);
    handle = NULL;
}

/*
 * One command with its structure, which must lie in memory that the hypervisor
 * can reach at any time.  It comes back only from a call that succeeds.
 */
static int vmri_op(unsigned int cmd, void *args, size_t size)
{
    void *buffer = xencall_alloc_buffer(handle, size);
    int rc = 0;

    if (!buffer)
        return -ENOMEM;
    memcpy(buffer, args, size);
    if (xencall3(handle, VMRI_HYPERCALL_DEFAULT, cmd, 0,
                 (uintptr_t)buffer) < 0)
        rc = -errno;
    else
        memcpy(args, buffer, size);
    xencall_free_buffer(handle, buffer);
    return rc;
}

int call_version(struct vmri_version *version)
{
    int rc;

    memset(version, 0, sizeof(*version));
    rc = vmri_op(VMRI_OP_version, version, sizeof(*version));
    if (rc)
        return rc;

    /* Another patched Xen may use the number for something else. */
    return version->magic == VMRI_MAGIC ? 0 : -ENOSYS;
}

int call_xen_version(unsigned int *major, unsigned int *minor)
{
    int version = xencall2(handle, HYPERCALL_xen_version, XENVER_version, 0);

    if (version < 0)
        return -errno;
    *major = version >> 16;
    *minor = version & 0xffff;
    return 0;
}

int call_attach(struct vmri_ctl_attach *attach)
{
    return vmri_op(VMRI_OP_ctl_attach, attach, sizeof(*attach));
}

int call_detach(uint32_t domid, uint32_t dev_id)
{
    struct vmri_ctl_detach detach = { .domid = domid, .dev_id = dev_id };

    return vmri_op(VMRI_OP_ctl_detach, &detach, sizeof(detach));
}

int call_info(struct vmri_ctl_info *info)
{
    return vmri_op(VMRI_OP_ctl_list, info, sizeof(*info));
}

int call_port(struct vmri_ctl_port *port)
{
    return vmri_op(VMRI_OP_ctl_port, port, sizeof(*port));
}

int call_limits(struct vmri_ctl_limits *limits)
{
    return vmri_op(VMRI_OP_ctl_limits, limits, sizeof(*limits));
}

int call_route_add(struct vmri_ctl_route *route)
{
    return vmri_op(VMRI_OP_ctl_route_add, route, sizeof(*route));
}

int call_route_del(struct vmri_ctl_route *route)
{
    return vmri_op(VMRI_OP_ctl_route_del, route, sizeof(*route));
}

int call_route_list(struct vmri_ctl_route *route)
{
    return vmri_op(VMRI_OP_ctl_route_list, route, sizeof(*route));
}

int call_rule_add(struct vmri_ctl_rule *rule)
{
    return vmri_op(VMRI_OP_ctl_rule_add, rule, sizeof(*rule));
}

int call_rule_del(uint32_t fabric, uint32_t rule)
{
    struct vmri_ctl_rule arg = { .fabric = fabric, .rule = rule };

    return vmri_op(VMRI_OP_ctl_rule_del, &arg, sizeof(arg));
}

int call_rule_list(struct vmri_ctl_rule *rule)
{
    return vmri_op(VMRI_OP_ctl_rule_list, rule, sizeof(*rule));
}

int call_rate(struct vmri_ctl_rate *rate)
{
    return vmri_op(VMRI_OP_ctl_rate, rate, sizeof(*rate));
}

int call_stats(struct vmri_ctl_stats *stats)
{
    return vmri_op(VMRI_OP_ctl_stats, stats, sizeof(*stats));
}

int call_dump(struct vmri_ctl_dump *object)
{
    return vmri_op(VMRI_OP_ctl_dump, object, sizeof(*object));
}

int call_fabric_create(struct vmri_ctl_fabric *fabric)
{
    return vmri_op(VMRI_OP_ctl_fabric_create, fabric, sizeof(*fabric));
}

int call_fabric_delete(uint32_t id)
{
    struct vmri_ctl_fabric fabric = { .fabric = id };

    return vmri_op(VMRI_OP_ctl_fabric_delete, &fabric, sizeof(fabric));
}

int call_fabric_list(struct vmri_ctl_fabric *fabric)
{
    return vmri_op(VMRI_OP_ctl_fabric_list, fabric, sizeof(*fabric));
}

int call_info_next(struct vmri_ctl_info *info)
{
    *info = (struct vmri_ctl_info){
        .domid = info->domid, .dev_id = info->dev_id + 1,
    };
    return call_info(info);
}

int call_info_one(uint32_t domid, uint32_t dev_id, struct vmri_ctl_info *info)
{
    *info = (struct vmri_ctl_info){
        .domid = domid, .dev_id = dev_id, .which = VMRI_INFO_ONE,
    };
    return call_info(info);
}
