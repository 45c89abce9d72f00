/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names for what the hypervisor counts, and how they are written.
 */
#include <string.h>

#include "xl-vmri.h"

const char *const resource_names[VMRI_RES_NR] = {
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
    [VMRI_RES_DEV] = "devices",
    [VMRI_RES_PINNED] = "pinned_pages",
    [VMRI_RES_BYTES] = "bytes",
    [VMRI_RES_SERVICE] = "services",
};

struct field {
    const char *name;
    size_t offset;              /* of a uint64_t */
};

#define FIELD(type, member) { #member, offsetof(struct type, member) }

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
    FIELD(vmri_counters, pkey_violations),
};

static const struct field type_fields[] = {
    FIELD(vmri_qp_counters, tx_msgs),
    FIELD(vmri_qp_counters, tx_bytes),
    FIELD(vmri_qp_counters, rx_msgs),
    FIELD(vmri_qp_counters, rx_bytes),
    FIELD(vmri_qp_counters, errors),
    FIELD(vmri_qp_counters, flushed),
    FIELD(vmri_qp_counters, rnr),
    FIELD(vmri_qp_counters, retries),
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

void write_counters(struct writer *w, const struct vmri_counters *counters)
{
    write_fields(w, "counters", counter_fields, ARRAY_SIZE(counter_fields),
                 counters);
}

/* Programs get all types; people those that have done something. */
void write_types(struct writer *w, const struct vmri_qp_counters *type)
{
    static const char *const names[VMRI_STAT_NR] = {
        [VMRI_STAT_SMI] = "SMI",
        [VMRI_STAT_GSI] = "GSI",
        [VMRI_STAT_RC] = "RC",
        [VMRI_STAT_UC] = "UC",
        [VMRI_STAT_UD] = "UD",
        [VMRI_STAT_XRC_INI] = "XRC_INI",
        [VMRI_STAT_XRC_TGT] = "XRC_TGT",
    };
    static const struct vmri_qp_counters nothing;
    unsigned int i;

    writer_open(w, "types", '{');
    for (i = 0; i < VMRI_STAT_NR; i++)
        if (w->json || memcmp(&type[i], &nothing, sizeof(nothing)))
            write_fields(w, names[i], type_fields, ARRAY_SIZE(type_fields),
                         &type[i]);
    writer_close(w, '}');
}

void write_usage(struct writer *w, const char *name,
                 const struct vmri_usage *usage, bool of_device)
{
    unsigned int i;

    writer_open(w, name, '{');
    for (i = 0; i < VMRI_RES_NR; i++)
        if (i != VMRI_RES_DEV || !of_device)
            write_number(w, resource_names[i], usage->n[i]);
    writer_close(w, '}');
}
