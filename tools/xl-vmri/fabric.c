/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fabric: the networks that devices are attached to.  The hypervisor knows them
 * and their names.
 */
#include <errno.h>
#include <string.h>

#include "xl-vmri.h"

static const char *const link_names[] = {
    [VMRI_LINK_IB] = "ib",
    [VMRI_LINK_ROCE] = "roce",
};

const char *fabric_text(const struct vmri_ctl_fabric *fabric)
{
    static char text[VMRI_FABRIC_NAME + 24];

    if (*fabric->name && fabric->fabric != VMRI_FABRIC_ANY)
        snprintf(text, sizeof(text), "fabric %s (%u)", fabric->name,
                 fabric->fabric);
    else if (*fabric->name)
        snprintf(text, sizeof(text), "fabric %s", fabric->name);
    else
        snprintf(text, sizeof(text), "fabric %u", fabric->fabric);
    return text;
}

bool find_fabric(struct vmri_ctl_fabric *fabric)
{
    struct vmri_ctl_fabric f = { 0 };
    int rc;

    if (!*fabric->name)
        return true;
    for (rc = call_fabric_list(&f); !rc; rc = call_fabric_list(&f)) {
        if (!strcmp(f.name, fabric->name)) {
            *fabric = f;
            return true;
        }
        f.fabric++;
    }
    if (rc == -ENOENT)
        report("there is no %s", fabric_text(fabric));
    else
        report("cannot look up %s: %s", fabric_text(fabric), error_text(rc));
    return false;
}

int fabric_link(uint32_t id)
{
    struct vmri_ctl_fabric f = { .fabric = id };
    int rc = call_fabric_list(&f);

    if (rc && rc != -ENOENT)
        return rc;
    /* One that is not there will be made for the device. */
    return !rc && f.fabric == id ? f.link : VMRI_LINK_IB;
}

/* The words behind the name or number that a new fabric gets. */
static bool parse_create(int argc, char **argv, struct vmri_ctl_fabric *fabric)
{
    bool id = false, link = false;
    uint64_t value;
    int i;

    for (i = 0; i < argc; i++) {
        bool *seen = &link;

        if (!strncmp(argv[i], "id=", 3) && *fabric->name) {
            if (!parse_number("id", argv[i] + 3, 0, VMRI_FABRIC_MAX, &value))
                return false;
            fabric->fabric = value;
            seen = &id;
        } else if (!strcmp(argv[i], "link=ib")) {
            fabric->link = VMRI_LINK_IB;
        } else if (!strcmp(argv[i], "link=roce")) {
            fabric->link = VMRI_LINK_ROCE;
        } else {
            report("\"%s\" is not one of link=ib, link=roce%s", argv[i],
                   *fabric->name ? ", id=N" : "");
            return false;
        }
        if (*seen) {
            report("%s is given twice", seen == &id ? "id" : "link");
            return false;
        }
        *seen = true;
    }
    return true;
}

static void print_fabric(struct writer *w, const struct vmri_ctl_fabric *f)
{
    writer_open(w, NULL, '{');
    write_number(w, "fabric", f->fabric);
    write_string(w, "name", *f->name ? f->name : NULL);
    write_string(w, "link", link_names[f->link]);
    write_bool(w, "created", f->created);
    write_number(w, "devices", f->devices);
    write_bool(w, "closed", f->closed);
    write_number(w, "rules", f->rules);
    writer_close(w, '}');
}

static void print_line(const struct vmri_ctl_fabric *f)
{
    char rules[16] = "open";

    if (f->closed)
        snprintf(rules, sizeof(rules), "%u", f->rules);
    printf("%8u %-*s %-4s %-7s %7u %5s\n", f->fabric, VMRI_FABRIC_NAME - 1,
           *f->name ? f->name : "-", link_names[f->link], f->created ? "yes" : "no",
           f->devices, rules);
}

static int create(const struct options *opt, int argc, char **argv)
{
    struct vmri_ctl_fabric f = { 0 };
    struct writer w = { .json = opt->json };
    int rc;

    if (!parse_fabric(argv[0], &f) || !parse_create(argc - 1, argv + 1, &f))
        return RC_USAGE;
    if (!session_open())
        return RC_FAILURE;

    rc = call_fabric_create(&f);
    if (rc == -EEXIST)
        report("there is a %s already, or its number is taken",
               fabric_text(&f));
    else if (rc == -EBUSY)
        report("devices of link layer %s are attached to %s",
               link_names[f.link == VMRI_LINK_IB ? VMRI_LINK_ROCE
                                                 : VMRI_LINK_IB],
               fabric_text(&f));
    else if (rc)
        report("cannot create %s: %s", fabric_text(&f), error_text(rc));
    if (rc)
        return RC_FAILURE;

    f.created = 1;
    if (opt->json)
        print_fabric(&w, &f);
    else
        printf("%s\n", fabric_text(&f));
    return RC_OK;
}

static int delete(const struct options *opt, int argc, char **argv)
{
    struct vmri_ctl_fabric f = { 0 };
    struct writer w = { .json = opt->json };
    int rc;

    if (argc > 1) {
        report("fabric delete takes one fabric");
        return RC_USAGE;
    }
    if (!parse_fabric(argv[0], &f))
        return RC_USAGE;
    if (!session_open() || !find_fabric(&f))
        return RC_FAILURE;

    rc = call_fabric_delete(f.fabric);
    if (rc == -EBUSY)
        report("devices are attached to %s", fabric_text(&f));
    else if (rc == -ENOENT)
        report("%s was not created", fabric_text(&f));
    else if (rc)
        report("cannot delete %s: %s", fabric_text(&f), error_text(rc));
    if (rc)
        return RC_FAILURE;

    if (opt->json) {
        writer_open(&w, NULL, '{');
        write_number(&w, "fabric", f.fabric);
        writer_close(&w, '}');
    }
    return RC_OK;
}

static int list(const struct options *opt)
{
    struct vmri_ctl_fabric f = { 0 };
    struct writer w = { .json = opt->json };
    int rc;

    if (!session_open())
        return RC_FAILURE;

    if (opt->json)
        writer_open(&w, NULL, '[');
    else
        printf("%8s %-*s %-4s %-7s %7s %5s\n", "FABRIC", VMRI_FABRIC_NAME - 1,
               "NAME", "LINK", "CREATED", "DEVICES", "RULES");
    for (rc = call_fabric_list(&f); !rc; rc = call_fabric_list(&f)) {
        if (opt->json)
            print_fabric(&w, &f);
        else
            print_line(&f);
        f.fabric++;
    }
    if (opt->json)
        writer_close(&w, ']');
    if (rc != -ENOENT) {
        report("cannot list fabrics: %s", error_text(rc));
        return RC_FAILURE;
    }
    return RC_OK;
}

int cmd_fabric(const struct options *opt, int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[0], "create"))
        return create(opt, argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[0], "delete"))
        return delete(opt, argc - 1, argv + 1);
    if (argc == 1 && !strcmp(argv[0], "list"))
        return list(opt);
    report("not one of: fabric create NAME|ID [link=ib|roce] [id=N], "
           "fabric delete NAME|ID, fabric list");
    return RC_USAGE;
}
