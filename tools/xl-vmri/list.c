/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * list and info: what the hypervisor says, with the names and states of
 * xenstore.
 */
#include <errno.h>
#include <stdlib.h>

#include "xl-vmri.h"

struct field {
    const char *name;
    size_t offset;
};

#define FIELD(type, member) { #member, offsetof(struct type, member) }

/* VMRI_RES_*; a device has no devices. */
static const char *const usage_names[VMRI_RES_NR] = {
    [VMRI_RES_PD] = "pds",
    [VMRI_RES_XRCD] = "xrcds",
    [VMRI_RES_EQ] = "eqs",
    [VMRI_RES_CQ] = "cqs",
    [VMRI_RES_SRQ] = "srqs",
    [VMRI_RES_QP] = "qps",
    [VMRI_RES_MR] = "mrs",
    [VMRI_RES_MW] = "mws",
    [VMRI_RES_MCG] = "mcgs",
    [VMRI_RES_MCG_QP] = "mcg_qps",
    [VMRI_RES_PINNED] = "pinned_pages",
    [VMRI_RES_BYTES] = "bytes",
};

static const struct field counter_fields[] = {
    FIELD(vmri_counters, tx_msgs),
    FIELD(vmri_counters, tx_bytes),
    FIELD(vmri_counters, rx_msgs),
    FIELD(vmri_counters, rx_bytes),
    FIELD(vmri_counters, doorbells),
    FIELD(vmri_counters, hypercalls),
    FIELD(vmri_counters, events),
    FIELD(vmri_counters, upcalls),
    FIELD(vmri_counters, completions),
    FIELD(vmri_counters, errors),
    FIELD(vmri_counters, flushed),
    FIELD(vmri_counters, rnr),
    FIELD(vmri_counters, retries),
    FIELD(vmri_counters, ud_drops),
    FIELD(vmri_counters, qkey_violations),
};

static void write_fields(struct writer *w, const char *name,
                         const struct field *fields, size_t num,
                         const void *base)
{
    size_t i;

    writer_open(w, name, '{');
    for (i = 0; i < num; i++)
        write_number(w, fields[i].name,
                     *(const uint64_t *)((const char *)base +
                                         fields[i].offset));
    writer_close(w, '}');
}

static void write_usage(struct writer *w, const struct vmri_usage *usage)
{
    unsigned int i;

    writer_open(w, "usage", '{');
    for (i = 0; i < VMRI_RES_NR; i++)
        if (usage_names[i])
            write_number(w, usage_names[i], usage->n[i]);
    writer_close(w, '}');
}

/* What identifies a device, in both commands. */
static void write_identity(struct writer *w, const struct vmri_ctl_info *info)
{
    char *name = store_domain_name(info->domid);
    char guid[GUID_TEXT_SIZE];

    write_string(w, "domain", name);
    write_number(w, "domid", info->domid);
    write_number(w, "id", info->dev_id);
    write_number(w, "fabric", info->fabric);
    write_number(w, "lid", info->lid);
    write_string(w, "guid", guid_text(info->guid, guid));
    write_string(w, "state",
                 state_name(store_frontend_state(info->domid, info->dev_id)));
    write_bool(w, "in_use", info->in_use);
    free(name);
}

static void list_json(struct writer *w, const struct vmri_ctl_info *info)
{
    writer_open(w, NULL, '{');
    write_identity(w, info);
    write_number(w, "tx_msgs", info->counters.tx_msgs);
    write_number(w, "tx_bytes", info->counters.tx_bytes);
    write_number(w, "rx_msgs", info->counters.rx_msgs);
    write_number(w, "rx_bytes", info->counters.rx_bytes);
    writer_close(w, '}');
}

static void list_line(struct writer *w, const struct vmri_ctl_info *info)
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
}

static void info_device(struct writer *w, const struct vmri_ctl_info *info)
{
    writer_open(w, NULL, '{');
    write_identity(w, info);
    write_usage(w, &info->usage);
    write_fields(w, "counters", counter_fields, ARRAY_SIZE(counter_fields),
                 &info->counters);
    writer_close(w, '}');
}

/*
 * Call show for the devices of one domain, or of all when domid is NULL, within
 * an array.  Returns their number or a negative errno.
 */
static int for_each_device(struct writer *w, const uint32_t *domid,
                           void (*show)(struct writer *w,
                                        const struct vmri_ctl_info *info))
{
    struct vmri_ctl_info info = { .domid = domid ? *domid : 0 };
    int rc, num = 0;

    writer_open(w, NULL, '[');
    for (rc = call_info(&info); !rc; rc = call_info_next(&info)) {
        if (domid && info.domid != *domid)
            break;
        show(w, &info);
        num++;
    }
    writer_close(w, ']');
    return rc && rc != -ENOENT ? rc : num;
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
    struct writer w = { .json = opt->json };
    struct vmri_ctl_info info;
    uint32_t domid, dev_id = 0;
    int rc;

    if (!argc)
        return info_host(opt);
    if (argc > 1 && !parse_dev_id(argv[1], &dev_id))
        return RC_USAGE;
    if (!session_open() || !session_domain(argv[0], &domid))
        return RC_FAILURE;

    if (argc > 1) {
        rc = call_info_one(domid, dev_id, &info);
        if (rc == -ENOENT) {
            report("%s has no device %u", domain_text(domid), dev_id);
            return RC_FAILURE;
        }
        if (!rc)
            info_device(&w, &info);
    } else {
        rc = for_each_device(&w, &domid, info_device);
        if (!rc) {
            report("%s has no device", domain_text(domid));
            return RC_FAILURE;
        }
    }
    if (rc < 0) {
        report("cannot look up the devices of %s: %s", domain_text(domid),
               error_text(rc));
        return RC_FAILURE;
    }
    return RC_OK;
}
