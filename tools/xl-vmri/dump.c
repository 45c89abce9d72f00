/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dump: the objects of devices.
 */
#include <errno.h>
#include <string.h>

#include "xl-vmri.h"

/* How a value is written: as a number, or in words. */
enum format {
    NUMBER,
    HANDLE,                     /* hexadecimal for people */
    FLAG,
    TYPE,
    STATE,
    PARKED,
    ARM,
    GID,
};

struct field {
    const char *name;
    size_t offset;
    size_t size;
    enum format format;
};

#define FIELD(kind, member, fmt) \
    { #member, offsetof(struct vmri_ctl_dump, u.kind.member), \
      sizeof(((struct vmri_ctl_dump *)0)->u.kind.member), fmt }

static const struct field eq_fields[] = {
    FIELD(eq, port, NUMBER),
    FIELD(eq, entries, NUMBER),
    FIELD(eq, unconsumed, NUMBER),
    FIELD(eq, overflow, FLAG),
};

static const struct field cq_fields[] = {
    FIELD(cq, eq, HANDLE),
    FIELD(cq, entries, NUMBER),
    FIELD(cq, unconsumed, NUMBER),
    FIELD(cq, arm, ARM),
    FIELD(cq, overflow, FLAG),
};

static const struct field srq_fields[] = {
    FIELD(srq, pd, HANDLE),
    FIELD(srq, xrcd, HANDLE),
    FIELD(srq, cq, HANDLE),
    FIELD(srq, entries, NUMBER),
    FIELD(srq, posted, NUMBER),
    FIELD(srq, limit, NUMBER),
    FIELD(srq, waiting, FLAG),
    FIELD(srq, dead, FLAG),
};

static const struct field qp_fields[] = {
    FIELD(qp, type, TYPE),
    FIELD(qp, state, STATE),
    FIELD(qp, parked, PARKED),
    FIELD(qp, kernel, FLAG),
    FIELD(qp, pd, HANDLE),
    FIELD(qp, send_cq, HANDLE),
    FIELD(qp, recv_cq, HANDLE),
    FIELD(qp, srq, HANDLE),
    FIELD(qp, sq_entries, NUMBER),
    FIELD(qp, sq_posted, NUMBER),
    FIELD(qp, rq_entries, NUMBER),
    FIELD(qp, rq_posted, NUMBER),
    FIELD(qp, peer_lid, NUMBER),
    FIELD(qp, peer_qpn, HANDLE),
};

static const struct field mr_fields[] = {
    FIELD(mr, pd, HANDLE),
    FIELD(mr, access, HANDLE),
    FIELD(mr, length, NUMBER),
    FIELD(mr, pages, NUMBER),
    FIELD(mr, chunks, NUMBER),
    FIELD(mr, windows, NUMBER),
    FIELD(mr, fast, FLAG),
};

static const struct field mw_fields[] = {
    FIELD(mw, pd, HANDLE),
    FIELD(mw, type, NUMBER),
    FIELD(mw, access, HANDLE),
    FIELD(mw, length, NUMBER),
    FIELD(mw, mr, HANDLE),
};

static const struct field mcg_fields[] = {
    FIELD(mcg, mgid, GID),
    FIELD(mcg, joined, FLAG),
    FIELD(mcg, qps, NUMBER),
};

static const struct field gid_fields[] = {
    FIELD(gid, gid, GID),
};

#define FIELDS(array) array, ARRAY_SIZE(array)

static const struct kind {
    uint32_t kind;
    const char *name;           /* of one; that of many has an s */
    const struct field *fields;
    size_t num;
} kinds[] = {
    { VMRI_RES_PD, "pd", NULL, 0 },
    { VMRI_RES_XRCD, "xrcd", NULL, 0 },
    { VMRI_RES_EQ, "eq", FIELDS(eq_fields) },
    { VMRI_RES_CQ, "cq", FIELDS(cq_fields) },
    { VMRI_RES_SRQ, "srq", FIELDS(srq_fields) },
    { VMRI_RES_QP, "qp", FIELDS(qp_fields) },
    { VMRI_RES_MR, "mr", FIELDS(mr_fields) },
    { VMRI_RES_MW, "mw", FIELDS(mw_fields) },
    { VMRI_RES_MCG, "mcg", FIELDS(mcg_fields) },
    { VMRI_DUMP_GID, "gid", FIELDS(gid_fields) },
};

/* The word for a value, or NULL when it has none. */
static const char *word(enum format format, uint64_t value)
{
    static const char *const types[] = {
        "SMI", "GSI", "RC", "UC", "UD", NULL, NULL, NULL, NULL, "XRC_INI",
        "XRC_TGT",
    };
    static const char *const states[] = {
        "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
    };
    static const char *const parked[] = { "no", "receive", "peer", "rate",
						 "uplink" };
    static const char *const arms[] = { "none", "solicited", "next" };
    static const struct {
        const char *const *words;
        size_t num;
    } lists[] = {
        [TYPE] = { types, ARRAY_SIZE(types) },
        [STATE] = { states, ARRAY_SIZE(states) },
        [PARKED] = { parked, ARRAY_SIZE(parked) },
        [ARM] = { arms, ARRAY_SIZE(arms) },
    };

    if (format >= ARRAY_SIZE(lists) || value >= lists[format].num)
        return NULL;
    return lists[format].words[value];
}

static uint64_t field_value(const struct field *f,
                            const struct vmri_ctl_dump *object)
{
    uint64_t value = 0;

    /* x86 only, as Xen is here: the low bytes come first. */
    memcpy(&value, (const char *)object + f->offset,
           f->size < sizeof(value) ? f->size : sizeof(value));
    return value;
}

/* "ff12:401b:ffff:0000:0000:0000:0000:0001" */
#define GID_TEXT_SIZE 40

/* What is not a number, or NULL. */
static const char *field_text(const struct field *f,
                              const struct vmri_ctl_dump *object,
                              char buffer[static GID_TEXT_SIZE])
{
    const uint8_t *gid = (const uint8_t *)object + f->offset;
    int i;

    if (f->format != GID)
        return word(f->format, field_value(f, object));
    for (i = 0; i < 8; i++)
        sprintf(buffer + 5 * i, "%02x%02x%s", gid[2 * i], gid[2 * i + 1],
                i < 7 ? ":" : "");
    return buffer;
}

static void object_json(struct writer *w, const struct kind *kind,
                        const struct vmri_ctl_dump *object)
{
    char gid[GID_TEXT_SIZE];
    size_t i;

    writer_open(w, NULL, '{');
    write_number(w, "handle", object->handle);
    write_number(w, "users", object->users);
    for (i = 0; i < kind->num; i++) {
        const struct field *f = &kind->fields[i];
        uint64_t value = field_value(f, object);
        const char *text = field_text(f, object, gid);

        if (text)
            write_string(w, f->name, text);
        else if (f->format == FLAG)
            write_bool(w, f->name, value);
        else
            write_number(w, f->name, value);
    }
    writer_close(w, '}');
}

static void object_line(const struct kind *kind,
                        const struct vmri_ctl_dump *object)
{
    char gid[GID_TEXT_SIZE];
    size_t i;

    printf("  %-4s %#-10x users=%u", kind->name, object->handle,
           object->users);
    for (i = 0; i < kind->num; i++) {
        const struct field *f = &kind->fields[i];
        uint64_t value = field_value(f, object);
        const char *text = field_text(f, object, gid);

        if (text)
            printf(" %s=%s", f->name, text);
        else if (f->format == FLAG)
            printf(" %s=%s", f->name, value ? "yes" : "no");
        else
            printf(f->format == HANDLE ? " %s=%#llx" : " %s=%llu", f->name,
                   (unsigned long long)value);
    }
    putchar('\n');
}

/* All objects of a kind: 0 or a negative errno. */
static int show_kind(struct writer *w, const struct vmri_ctl_info *info,
                     const struct kind *kind)
{
    struct vmri_ctl_dump object = {
        .domid = info->domid,
        .dev_id = info->dev_id,
        .kind = kind->kind,
    };
    int rc;

    while (!(rc = call_dump(&object))) {
        if (w->json)
            object_json(w, kind, &object);
        else
            object_line(kind, &object);
    }
    return rc == -ENOENT ? 0 : rc;
}

static int show_objects(struct writer *w, const struct vmri_ctl_info *info)
{
    char name[8];
    size_t i;
    int rc = 0;

    writer_open(w, NULL, '{');
    write_identity(w, info);
    for (i = 0; i < ARRAY_SIZE(kinds) && !rc; i++) {
        snprintf(name, sizeof(name), "%ss", kinds[i].name);
        if (w->json)
            writer_open(w, name, '[');
        rc = show_kind(w, info, &kinds[i]);
        if (w->json)
            writer_close(w, ']');
    }
    writer_close(w, '}');
    return rc;
}

int cmd_dump(const struct options *opt, int argc, char **argv)
{
    return show_devices(opt, argc, argv, show_objects);
}
