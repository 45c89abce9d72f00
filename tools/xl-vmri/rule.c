/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rule: who may talk to whom on a fabric.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xl-vmri.h"

#define GROUP_MAX 0xffffffffU

static const char *const directions[] = {
    [VMRI_RULE_INGRESS] = "ingress",
    [VMRI_RULE_EGRESS] = "egress",
};

/* "fe80::/64", "192.0.2.1": an IPv4 address is that of a mapped GID. */
static bool parse_prefix(const char *text, struct vmri_ctl_rule *rule)
{
    char address[INET6_ADDRSTRLEN + 1];
    size_t length = strcspn(text, "/");
    const char *slash = text + length;
    uint64_t bits;
    int most = -1;
    unsigned int i;

    if (length < sizeof(address)) {
        memcpy(address, text, length);
        address[length] = '\0';
        most = parse_address(address, rule->prefix);
    }
    if (most < 0) {
        report("remote: \"%s\" is not an address with or without /LENGTH",
               text);
        return false;
    }
    bits = most;
    if (*slash && !parse_number("remote: length", slash + 1, 0, most, &bits))
        return false;
    rule->bits = bits + 128 - most;
    for (i = rule->bits; i < 128; i++)
        if (rule->prefix[i / 8] & 0x80 >> i % 8) {
            report("remote: %s has bits beyond its length", text);
            return false;
        }
    return true;
}

static bool parse_group(const char *what, const char *text, uint32_t *group)
{
    uint64_t value;

    if (!parse_number(what, text, 1, GROUP_MAX, &value))
        return false;
    *group = value;
    return true;
}

static bool parse_protocol(const char *text, uint8_t *protocol)
{
    static const char *const names[] = {
        [VMRI_RULE_ANY] = "any",
        [VMRI_RULE_IB] = "ib",
        [VMRI_RULE_ROCE] = "roce",
    };

    for (*protocol = 0; *protocol < ARRAY_SIZE(names); ++*protocol)
        if (!strcmp(text, names[*protocol]))
            return true;
    report("proto: \"%s\" is not one of any, ib, roce", text);
    return false;
}

/* The words of a new rule. */
static bool parse_rule(int argc, char **argv, struct vmri_ctl_rule *rule)
{
    enum { GROUP, REMOTE, REMOTE_GROUP, PROTO };
    static const char *const keys[] = {
        [GROUP] = "group=",
        [REMOTE] = "remote=",
        [REMOTE_GROUP] = "remote-group=",
        [PROTO] = "proto=",
    };
    bool seen[ARRAY_SIZE(keys)] = { false };
    int i;

    for (i = 0; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        bool ok = false;
        unsigned int k;

        for (k = 0; k < ARRAY_SIZE(keys); k++)
            if (!strncmp(argv[i], keys[k], strlen(keys[k])))
                break;
        if (k == ARRAY_SIZE(keys)) {
            report("\"%s\" is not one of group=N, remote=PREFIX, "
                   "remote-group=N, proto=P", argv[i]);
            return false;
        }
        if (seen[k]) {
            report("%.*s is given twice", (int)strlen(keys[k]) - 1, keys[k]);
            return false;
        }
        seen[k] = true;
        value++;
        if (k == GROUP)
            ok = parse_group("group", value, &rule->group);
        else if (k == REMOTE)
            ok = parse_prefix(value, rule);
        else if (k == REMOTE_GROUP)
            ok = parse_group("remote-group", value, &rule->remote_group);
        else
            ok = parse_protocol(value, &rule->protocol);
        if (!ok)
            return false;
    }
    return true;
}

/* "fe80::/64", "192.0.2.0/24", "any" */
static const char *prefix_text(const struct vmri_ctl_rule *rule)
{
    static char text[INET6_ADDRSTRLEN + 8];
    struct in6_addr a;
    unsigned int bits = rule->bits;
    size_t length;

    if (!bits)
        return "any";
    memcpy(&a, rule->prefix, sizeof(a));
    if (bits >= V4_MAPPED_BITS && IN6_IS_ADDR_V4MAPPED(&a)) {
        inet_ntop(AF_INET, rule->prefix + V4_MAPPED_BITS / 8, text, sizeof(text));
        bits -= V4_MAPPED_BITS;
    } else {
        inet_ntop(AF_INET6, rule->prefix, text, sizeof(text));
    }
    length = strlen(text);
    snprintf(text + length, sizeof(text) - length, "/%u", bits);
    return text;
}

static void show_rule(struct writer *w, const struct vmri_ctl_rule *rule)
{
    char group[16] = "any", remote[16] = "any";

    if (w->json) {
        writer_open(w, NULL, '{');
        write_number(w, "fabric", rule->fabric);
        write_number(w, "rule", rule->rule);
        write_string(w, "direction", directions[rule->direction]);
        write_number(w, "group", rule->group);
        write_string(w, "remote", prefix_text(rule));
        write_number(w, "remote_group", rule->remote_group);
        writer_close(w, '}');
        return;
    }
    if (rule->group)
        snprintf(group, sizeof(group), "%u", rule->group);
    if (rule->remote_group)
        snprintf(remote, sizeof(remote), "%u", rule->remote_group);
    printf("%8u %4u %-7s %10s %-43s %12s\n", rule->fabric, rule->rule,
           directions[rule->direction], group, prefix_text(rule), remote);
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
    struct vmri_ctl_rule rule = { 0 };
    struct writer w = { .json = opt->json };
    int rc;

    if (!argc || (strcmp(argv[0], "ingress") && strcmp(argv[0], "egress"))) {
        report("a rule begins with ingress or egress");
        return RC_USAGE;
    }
    rule.direction = *argv[0] == 'e' ? VMRI_RULE_EGRESS : VMRI_RULE_INGRESS;
    if (!parse_rule(argc - 1, argv + 1, &rule))
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
