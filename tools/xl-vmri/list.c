/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * list and info: what the hypervisor says of devices, with the names and states
 * of xenstore.
 */
#include <errno.h>
#include <stdlib.h>

#include "xl-vmri.h"

void write_identity(struct writer *w, const struct vmri_ctl_info *info)
{
    char *name = store_domain_name(info->domid);
    char guid[GUID_TEXT_SIZE];

    write_string(w, "domain", name);
    write_number(w, "domid", info->domid);
    write_number(w, "id", info->dev_id);
    write_number(w, "fabric", info->fabric);
    write_number(w, "lid", info->lid);
    write_string(w, "guid", guid_text(info->guid, guid));
    write_number(w, "group", info->group);
    write_number(w, "uplink", info->uplink);
    write_string(w, "state",
                 state_name(store_frontend_state(info->domid, info->dev_id)));
    write_bool(w, "in_use", info->in_use);
    free(name);
}

static int list_json(struct writer *w, const struct vmri_ctl_info *info)
{
    writer_open(w, NULL, '{');
    write_identity(w, info);
    write_number(w, "tx_msgs", info->counters.tx_msgs);
    write_number(w, "tx_bytes", info->counters.tx_bytes);
    write_number(w, "rx_msgs", info->counters.rx_msgs);
    write_number(w, "rx_bytes", info->counters.rx_bytes);
    writer_close(w, '}');
    return 0;
}

static int list_line(struct writer *w, const struct vmri_ctl_info *info)
{
    const char *state =
        state_name(store_frontend_state(info->domid, info->dev_id));
    char *name = store_domain_name(info->domid);
    char guid[GUID_TEXT_SIZE];

    printf("%-20s %5u %2u %8u %5u  %s  %-12s %-4s"
           " %12llu %14llu %12llu %14llu\n",
           name ? name : "-", info->domid, info->dev_id, info->fabric,
           info->lid, guid_text(info->guid, guid), state ? state : "-",
           info->in_use ? "yes" : "no",
           (unsigned long long)info->counters.tx_msgs,
           (unsigned long long)info->counters.tx_bytes,
           (unsigned long long)info->counters.rx_msgs,
           (unsigned long long)info->counters.rx_bytes);
    free(name);
    return 0;
}

static int info_device(struct writer *w, const struct vmri_ctl_info *info)
{
    writer_open(w, NULL, '{');
    write_identity(w, info);
    write_usage(w, "usage", &info->usage, true);
    write_counters(w, &info->counters);
    writer_close(w, '}');
    return 0;
}

/*
 * Call show for the devices of one domain, or of all when domid is NULL, within
 * an array.  Returns their number or a negative errno.
 */
static int for_each_device(struct writer *w, const uint32_t *domid,
                           show_device show)
{
    struct vmri_ctl_info info = { .domid = domid ? *domid : 0 };
    int rc, num = 0;

    writer_open(w, NULL, '[');
    for (rc = call_info(&info); !rc; rc = call_info_next(&info)) {
        if (domid && info.domid != *domid)
            break;
        rc = show(w, &info);
        /* It has gone meanwhile. */
        if (rc == -ENODEV || rc == -ESRCH)
            continue;
        if (rc)
            break;
        num++;
    }
    writer_close(w, ']');
    return rc && rc != -ENOENT ? rc : num;
}

/* The same for one device: 1, or 0: it is not there. */
static int one_device(struct writer *w, uint32_t domid, uint32_t dev_id,
                      show_device show)
{
    struct vmri_ctl_info info;
    int rc = call_info_one(domid, dev_id, &info) ?: show(w, &info);

    if (rc == -ENODEV || rc == -ESRCH)
        return 0;
    return rc ? rc : 1;
}

int show_devices(const struct options *opt, int argc, char **argv,
                 show_device show)
{
    struct writer w = { .json = opt->json };
    uint32_t domid, dev_id = 0;
    int rc;

    if (argc > 1 && !parse_dev_id(argv[1], &dev_id))
        return RC_USAGE;
    if (!session_open() || (argc && !session_domain(argv[0], &domid)))
        return RC_FAILURE;

    rc = argc > 1 ? one_device(&w, domid, dev_id, show)
                  : for_each_device(&w, argc ? &domid : NULL, show);
    if (rc < 0)
        report("cannot look up the devices of %s: %s",
               argc ? domain_text(domid) : "all domains", error_text(rc));
    else if (!rc && argc > 1)
        report("%s has no device %u", domain_text(domid), dev_id);
    else if (!rc && argc)
        report("%s has no device", domain_text(domid));
    return rc > 0 || (!rc && !argc) ? RC_OK : RC_FAILURE;
}

int cmd_list(const struct options *opt, int argc, char **argv)
{
    struct writer w = { .json = opt->json };
    uint32_t domid;
    int rc;

    if (!session_open() || (argc && !session_domain(argv[0], &domid)))
        return RC_FAILURE;

    if (!opt->json)
        printf("%-20s %5s %2s %8s %5s  %-19s  %-12s %-4s"
               " %12s %14s %12s %14s\n",
               "DOMAIN", "DOMID", "ID", "FABRIC", "LID", "GUID", "STATE",
               "USED", "TX-MSGS", "TX-BYTES", "RX-MSGS", "RX-BYTES");
    rc = for_each_device(&w, argc ? &domid : NULL,
                         opt->json ? list_json : list_line);
    if (rc < 0) {
        report("cannot list devices: %s", error_text(rc));
        return RC_FAILURE;
    }
    return RC_OK;
}

/* What the host offers.  A host without VMRI is described, and a failure. */
static int info_host(const struct options *opt)
{
    struct writer w = { .json = opt->json };
    struct vmri_version version;
    unsigned int major, minor;
    char xen[32];
    int rc;

    if (!session_open_any(&version))
        return RC_FAILURE;
    rc = call_xen_version(&major, &minor);
    if (rc) {
        report("cannot ask for the hypervisor's version: %s", error_text(rc));
        return RC_FAILURE;
    }
    snprintf(xen, sizeof(xen), "%u.%u", major, minor);

    writer_open(&w, NULL, '{');
    write_string(&w, "xen", xen);
    write_bool(&w, "vmri", version.magic);
    if (version.magic) {
        write_number(&w, "abi_version", version.abi_version);
        write_number(&w, "features", version.features);
        write_number(&w, "hypercall", VMRI_HYPERCALL_DEFAULT);
    }
    writer_close(&w, '}');
    if (version.magic)
        return RC_OK;
    report("%s", error_text(-ENOSYS));
    return RC_FAILURE;
}

int cmd_info(const struct options *opt, int argc, char **argv)
{
    return argc ? show_devices(opt, argc, argv, info_device) : info_host(opt);
}
