/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every command needs: the hypervisor, xenstore, and domains by name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xl-vmri.h"

bool session_open_any(struct vmri_version *version)
{
    int rc;

    if (!hypervisor_open(version))
        return false;

    rc = store_open();
    if (rc)
        report("cannot reach xenstored: %s", strerror(-rc));
    return !rc;
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
