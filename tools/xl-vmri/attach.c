/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * attach and detach.  The hypervisor decides what exists; the nodes in xenstore
 * tell the guest's driver about it.
 */
#include <errno.h>

#include "xl-vmri.h"

/* -EEXIST of attach has three reasons. */
static void report_conflict(const struct vmri_ctl_attach *attach)
{
    struct vmri_ctl_info info = { 0 };
    int rc;

    if (attach->dev_id != VMRI_DEV_ANY &&
        !call_info_one(attach->domid, attach->dev_id, &info)) {
        report("%s has a device %u already", domain_text(attach->domid),
               attach->dev_id);
        return;
    }

    info = (struct vmri_ctl_info){ 0 };
    for (rc = call_info(&info); !rc; rc = call_info_next(&info)) {
        if (info.fabric != attach->fabric)
            continue;
        if (attach->lid && info.lid == attach->lid) {
            report("LID %u on fabric %u belongs to device %u of %s", info.lid,
                   info.fabric, info.dev_id, domain_text(info.domid));
            return;
        }
        if (attach->guid && info.guid == attach->guid) {
            report("the GUID belongs to device %u of %s on fabric %u",
                   info.dev_id, domain_text(info.domid), info.fabric);
            return;
        }
    }
    report("device id, LID or GUID is taken");
}

static void report_attach(const struct vmri_ctl_attach *attach, int rc)
{
    switch (-rc) {
    case ESRCH:
        report("%s is going away", domain_text(attach->domid));
        break;
    case ENOENT:
        report("fabric %u has just been deleted", attach->fabric);
        break;
    case EEXIST:
        report_conflict(attach);
        break;
    case ENODEV:
        report("there is no uplink %u: its driver, softib_uplink, tells its number "
               "in the kernel's log", attach->uplink);
        break;
    case EOPNOTSUPP:
        report("fabric %u has no subnet to manage: its link is roce",
               attach->fabric);
        break;
    case EBUSY:
        report("fabric %u has a device with sm=1 already", attach->fabric);
        break;
    case ENOSPC:
        report("%s can have no more devices, or fabric %u, which with a device "
               "with sm=1 has room for %d", domain_text(attach->domid),
               attach->fabric, VMRI_MANAGED_MAX);
        break;
    default:
        report("cannot attach to %s: %s", domain_text(attach->domid),
               error_text(rc));
    }
}

static void print_attached(const struct options *opt,
                           const struct vmri_ctl_attach *attach)
{
    struct writer w = { .json = opt->json };
    char guid[GUID_TEXT_SIZE];

    guid_text(attach->guid, guid);
    if (!opt->json) {
        printf("%s: device %u, fabric %u, LID %u, GUID %s\n",
               domain_text(attach->domid), attach->dev_id, attach->fabric,
               attach->lid, guid);
        return;
    }
    writer_open(&w, NULL, '{');
    write_number(&w, "domid", attach->domid);
    write_number(&w, "id", attach->dev_id);
    write_number(&w, "fabric", attach->fabric);
    write_number(&w, "lid", attach->lid);
    write_string(&w, "guid", guid);
    writer_close(&w, '}');
}

/*
 * The MAC address by which the guest knows the interface that the device belongs to,
 * on a RoCE fabric.  Unless it is given, the domain's first one.
 */
static bool choose_mac(const struct vmri_ctl_attach *attach,
                       char mac[MAC_TEXT_SIZE])
{
    int rc = fabric_link(attach->fabric);

    if (rc < 0) {
        report("cannot look up fabric %u: %s", attach->fabric, error_text(rc));
        return false;
    }
    if (rc == VMRI_LINK_IB) {
        if (*mac)
            report("mac is for fabrics of link=roce, which fabric %u is not",
                   attach->fabric);
        return !*mac;
    }
    if (*mac)
        return true;
    rc = store_vif_mac(attach->domid, mac);
    if (rc == -ENOENT)
        report("%s has no network interface that the device could belong to: "
               "say which by mac=M", domain_text(attach->domid));
    else if (rc)
        report("cannot read the MAC address of %s: %s",
               domain_text(attach->domid), error_text(rc));
    return !rc;
}

int cmd_attach(const struct options *opt, int argc, char **argv)
{
    struct vmri_ctl_attach attach = { 0 };
    struct vmri_ctl_fabric fabric = { 0 };
    char mac[MAC_TEXT_SIZE] = "";
    int rc;

    if (!parse_attach(argc - 1, argv + 1, &attach, &fabric, mac))
        return RC_USAGE;
    if (!session_open() || !session_domain(argv[0], &attach.domid) ||
        !find_fabric(&fabric))
        return RC_FAILURE;
    attach.fabric = fabric.fabric;
    if (!choose_mac(&attach, mac))
        return RC_FAILURE;
    /* One that had a name must not be made anew without it. */
    if (*fabric.name)
        attach.flags |= VMRI_ATTACH_CREATED;

    rc = call_attach(&attach);
    if (rc) {
        report_attach(&attach, rc);
        return RC_FAILURE;
    }

    rc = store_add_device(&attach, mac);
    if (rc) {
        /* A domain that has gone took its device with it. */
        call_detach(attach.domid, attach.dev_id);
        if (rc == -ESRCH)
            report_attach(&attach, rc);
        else
            report("cannot write device %u of %s to xenstore: %s",
                   attach.dev_id, domain_text(attach.domid), error_text(rc));
        return RC_FAILURE;
    }
    print_attached(opt, &attach);
    return RC_OK;
}

/* Ask the guest's driver to let go and wait until it has. */
static bool close_frontend(uint32_t domid, uint32_t dev_id,
                           unsigned int timeout)
{
    int rc = store_close_device(domid, dev_id);

    if (!rc)
        rc = store_wait_closed(domid, dev_id, timeout);
    if (rc == -ETIMEDOUT)
        report("%s still uses device %u after %u s (its state is %s); "
               "--force does not wait", domain_text(domid), dev_id, timeout,
               state_name(store_frontend_state(domid, dev_id)));
    else if (rc && rc != -ENOENT)
        report("cannot close device %u of %s: %s", dev_id, domain_text(domid),
               error_text(rc));
    return !rc || rc == -ENOENT;
}

int cmd_detach(const struct options *opt, int argc, char **argv)
{
    struct writer w = { .json = opt->json };
    struct vmri_ctl_info info;
    uint32_t domid, dev_id;
    int rc;

    if (!parse_dev_id(argv[1], &dev_id))
        return RC_USAGE;
    if (!session_open() || !session_domain(argv[0], &domid))
        return RC_FAILURE;

    rc = call_info_one(domid, dev_id, &info);
    if (rc == -ENODEV) {
        report("%s has no device %u", domain_text(domid), dev_id);
        return RC_FAILURE;
    }
    if (!rc && !opt->force && !close_frontend(domid, dev_id, opt->timeout))
        return RC_FAILURE;

    if (!rc)
        rc = call_detach(domid, dev_id);
    /* The domain may have died, or another xl-vmri been faster. */
    if (!rc || rc == -ENODEV || rc == -ESRCH)
        rc = store_remove_device(domid, dev_id);
    if (rc) {
        report("cannot detach device %u of %s: %s", dev_id,
               domain_text(domid), error_text(rc));
        return RC_FAILURE;
    }

    if (opt->json) {
        writer_open(&w, NULL, '{');
        write_number(&w, "domid", domid);
        write_number(&w, "id", dev_id);
        writer_close(&w, '}');
    }
    return RC_OK;
}
