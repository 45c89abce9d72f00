/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether there is a hypervisor with VMRI, and what its errors mean.
 */
#include <errno.h>
#include <string.h>

#include "xl-vmri.h"

const char *error_text(int rc)
{
    switch (-rc) {
    case ENOSYS:
        return "this hypervisor has no VMRI (boot a patched Xen with vmri=1)";
    case EPERM:
        return "the hypervisor does not let this domain control VMRI";
    case EBUSY:
        return "another command is detaching it";
    case EAGAIN:
        return "xenstore is too busy, try again";
    default:
        return strerror(-rc);
    }
}

static bool open_calls(void)
{
    int rc = call_open();

    switch (-rc) {
    case 0:
        return true;
    case EACCES:
    case EPERM:
        report("no access to /dev/xen/privcmd: run this as root");
        return false;
    case ENOENT:
    case ENXIO:
    case ENODEV:
        report("there is no /dev/xen/privcmd: run this in dom0 of a Xen host");
        return false;
    default:
        report("cannot open /dev/xen/privcmd: %s", strerror(-rc));
        return false;
    }
}

bool hypervisor_open(struct vmri_version *version)
{
    int rc;

    if (!open_calls())
        return false;

    rc = call_version(version);
    if (rc == -ENOSYS) {
        memset(version, 0, sizeof(*version));
    } else if (rc) {
        report("%s", error_text(rc));
        return false;
    } else if (version->abi_version != VMRI_ABI_VERSION) {
        report("the hypervisor's VMRI has ABI version %u, this tool needs %d",
               version->abi_version, VMRI_ABI_VERSION);
        return false;
    }
    return true;
}
