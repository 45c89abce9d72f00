/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * limits: what a domain may use.
 */
#include <errno.h>
#include <string.h>

#include "xl-vmri.h"

/* VMRI_RES_* by the first `length` characters of its name, or VMRI_RES_NR. */
static unsigned int find_resource(const char *name, size_t length)
{
    unsigned int what;

    for (what = 0; what < VMRI_RES_NR; what++)
        if (strlen(resource_names[what]) == length &&
            !strncmp(resource_names[what], name, length))
            break;
    return what;
}

/* key=value words into *limits, whose values are amounts. */
static bool parse_limits(int argc, char **argv, struct vmri_ctl_limits *limits)
{
    int i;

    for (i = 0; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        unsigned int what = VMRI_RES_NR;

        if (equals)
            what = find_resource(argv[i], equals - argv[i]);
        if (what == VMRI_RES_NR) {
            report("\"%s\" is not NAME=VALUE with the name of a limit",
                   argv[i]);
            return false;
        }
        if (limits->mask & 1U << what) {
            report("%s is given twice", resource_names[what]);
            return false;
        }
        if (!parse_amount(resource_names[what], equals + 1, VMRI_LIMIT_MAX,
                          &limits->limit.n[what]))
            return false;
        limits->mask |= 1U << what;
    }
    return true;
}

static void show_json(const struct vmri_ctl_limits *limits)
{
    struct writer w = { .json = true };

    writer_open(&w, NULL, '{');
    write_number(&w, "domid", limits->domid);
    write_usage(&w, "limits", &limits->limit, false);
    write_usage(&w, "usage", &limits->usage, false);
    writer_close(&w, '}');
}

static void show_table(const struct vmri_ctl_limits *limits)
{
    unsigned int i;

    printf("%-14s %15s %15s\n", "NAME", "LIMIT", "USED");
    for (i = 0; i < VMRI_RES_NR; i++)
        printf("%-14s %15llu %15llu\n", resource_names[i],
               (unsigned long long)limits->limit.n[i],
               (unsigned long long)limits->usage.n[i]);
}

int cmd_limits(const struct options *opt, int argc, char **argv)
{
    struct vmri_ctl_limits limits = { .mask = 0 };
    int rc;

    if (!parse_limits(argc - 1, argv + 1, &limits))
        return RC_USAGE;
    if (!session_open() || !session_domain(argv[0], &limits.domid))
        return RC_FAILURE;

    rc = call_limits(&limits);
    if (rc) {
        report("cannot %s the limits of %s: %s",
               limits.mask ? "set" : "look up", domain_text(limits.domid),
               rc == -ESRCH ? "it is going away" : error_text(rc));
        return RC_FAILURE;
    }

    if (opt->json)
        show_json(&limits);
    else
        show_table(&limits);
    return RC_OK;
}
