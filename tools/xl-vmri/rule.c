/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rule: who may talk to whom on a fabric.
 */
#include <errno.h>
#include <string.h>

#include "xl-vmri.h"

static void show_rule(struct writer *w, const struct vmri_ctl_rule *rule)
{
    char group[16] = "any", remote[16] = "any";

    if (w->json) {
        writer_open(w, NULL, '{');
        write_number(w, "fabric", rule->fabric);
        write_number(w, "rule", rule->rule);
        write_string(w, "direction", rule_directions[rule->direction]);
        write_number(w, "group", rule->group);
        write_string(w, "remote", rule_prefix_text(rule));
        write_number(w, "remote_group", rule->remote_group);
        writer_close(w, '}');
        return;
    }
    if (rule->group)
        snprintf(group, sizeof(group), "%u", rule->group);
    if (rule->remote_group)
        snprintf(remote, sizeof(remote), "%u", rule->remote_group);
    printf("%8u %4u %-7s %10s %-43s %12s\n", rule->fabric, rule->rule,
           rule_directions[rule->direction], group, rule_prefix_text(rule), remote);
}

static int report_rule(const char *what, const struct vmri_ctl_fabric *f,
                       int rc)
{
    if (rc == -ENOENT)
        report("%s was not created, or has no such rule", fabric_text(f));
    else if (rc == -ENOSPC)
        report("%s can have no more rules", fabric_text(f));
    else if (rc == -EOPNOTSUPP)
        report("%s has no devices of that protocol", fabric_text(f));
    else
        report("cannot %s of %s: %s", what, fabric_text(f), error_text(rc));
    return RC_FAILURE;
}

static int add(const struct options *opt, struct vmri_ctl_fabric *f, int argc,
               char **argv)
{
    struct vmri_ctl_rule rule;
    struct writer w = { .json = opt->json };
    int rc;

    if (!parse_rule(argc, argv, &rule))
        return RC_USAGE;
    if (!session_open() || !find_fabric(f))
        return RC_FAILURE;

    rule.fabric = f->fabric;
    rc = call_rule_add(&rule);
    if (rc)
        return report_rule("add a rule", f, rc);
    if (opt->json)
        show_rule(&w, &rule);
    else
        printf("%s: rule %u\n", fabric_text(f), rule.rule);
    return RC_OK;
}

/* One, or for NULL all. */
static int del(const struct options *opt, struct vmri_ctl_fabric *f,
               const char *number)
{
    uint64_t rule = VMRI_RULE_ALL;
    int rc;

    if (number && !parse_number("rule", number, 1, VMRI_RULES, &rule))
        return RC_USAGE;
    if (!session_open() || !find_fabric(f))
        return RC_FAILURE;

    rc = call_rule_del(f->fabric, rule);
    return rc ? report_rule("delete rules", f, rc) : RC_OK;
}

static int list(const struct options *opt, struct vmri_ctl_fabric *f)
{
    struct vmri_ctl_rule rule = { 0 };
    struct writer w = { .json = opt->json };
    int rc;

    if (!session_open() || !find_fabric(f))
        return RC_FAILURE;

    if (opt->json)
        writer_open(&w, NULL, '[');
    else
        printf("%8s %4s %-7s %10s %-43s %12s\n", "FABRIC", "RULE", "DIR",
               "GROUP", "REMOTE", "REMOTE-GROUP");
    rule.fabric = f->fabric;
    for (rc = call_rule_list(&rule); !rc; rc = call_rule_list(&rule)) {
        show_rule(&w, &rule);
        rule.rule++;
    }
    if (opt->json)
        writer_close(&w, ']');
    return rc == -ENOENT ? RC_OK : report_rule("list the rules", f, rc);
}

int cmd_rule(const struct options *opt, int argc, char **argv)
{
    struct vmri_ctl_fabric f = { 0 };

    if (argc > 1 && !parse_fabric(argv[1], &f))
        return RC_USAGE;
    if (argc > 1 && !strcmp(argv[0], "add"))
        return add(opt, &f, argc - 2, argv + 2);
    if (argc == 3 && !strcmp(argv[0], "del"))
        return del(opt, &f, argv[2]);
    if (argc == 2 && !strcmp(argv[0], "flush"))
        return del(opt, &f, NULL);
    if (argc == 2 && !strcmp(argv[0], "list"))
        return list(opt, &f);
    report("not one of: rule add FABRIC ingress|egress [SETTING...], "
           "rule del FABRIC N, rule flush FABRIC, rule list FABRIC");
    return RC_USAGE;
}
