/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every command needs: the hypervisor, xenstore, and domains by name.
 */
#include <errno.h>
#include <stdlib.h>
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

static bool open_hypervisor(void)
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

bool session_open_any(struct vmri_version *version)
{
    int rc;

    if (!open_hypervisor())
        return false;

    rc = store_open();
    if (rc) {
        report("cannot reach xenstored: %s", strerror(-rc));
        return false;
    }

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

bool session_open(void)
{
    struct vmri_version version;
    int rc;

    if (!session_open_any(&version))
        return false;
    if (!version.magic) {
        report("%s", error_text(-ENOSYS));
        return false;
    }

    rc = store_sweep();
    if (rc) {
        report("cannot clean up after domains that have gone: %s",
               error_text(rc));
        return false;
    }
    return true;
}

void session_close(void)
{
    store_close();
    call_close();
}

bool session_domain(const char *spec, uint32_t *domid)
{
    int rc;

    if (is_decimal(spec, DOMID_LAST, domid)) {
        rc = store_domain_exists(*domid);
        if (rc == -ENOENT)
            report("there is no domain with id %u", *domid);
    } else {
        rc = store_find_domain(spec, domid);
        if (rc == -ENOENT && !strcmp(spec, "Domain-0")) {
            *domid = 0;
            return true;
        }
        if (rc == -ENOENT)
            report("there is no domain named \"%s\"", spec);
    }
    if (rc && rc != -ENOENT)
        report("cannot look up domain \"%s\": %s", spec, error_text(rc));
    return !rc;
}

bool session_device(uint32_t domid, uint32_t *dev_id)
{
    struct vmri_ctl_info info = { .domid = domid };
    int rc = call_info(&info);

    if (rc == -ENOENT || (!rc && info.domid != domid)) {
        report("%s has no device", domain_text(domid));
        return false;
    }
    if (rc) {
        report("cannot look up the device of %s: %s", domain_text(domid),
               error_text(rc));
        return false;
    }

    *dev_id = info.dev_id;
    if (!call_info_next(&info) && info.domid == domid) {
        report("%s has more than one device: name one", domain_text(domid));
        return false;
    }
    return true;
}

const char *domain_text(uint32_t domid)
{
    static char text[160];
    char *name = store_domain_name(domid);

    if (name)
        snprintf(text, sizeof(text), "%s (%u)", name, domid);
    else
        snprintf(text, sizeof(text), "domain %u", domid);
    free(name);
    return text;
}
