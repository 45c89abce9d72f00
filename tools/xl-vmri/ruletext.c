/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rules as people write them, on the command line and in a cluster's store.
 */
#include <arpa/inet.h>
#include <string.h>

#include "xl-vmri.h"

#define GROUP_MAX 0xffffffffU

const char *const rule_directions[] = {
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

static const char *const protocols[] = {
    [VMRI_RULE_ANY] = "any",
    [VMRI_RULE_IB] = "ib",
    [VMRI_RULE_ROCE] = "roce",
};

static bool parse_protocol(const char *text, uint8_t *protocol)
{
    for (*protocol = 0; *protocol < ARRAY_SIZE(protocols); ++*protocol)
        if (!strcmp(text, protocols[*protocol]))
            return true;
    report("proto: \"%s\" is not one of any, ib, roce", text);
    return false;
}

bool parse_rule(int argc, char **argv, struct vmri_ctl_rule *rule)
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

    memset(rule, 0, sizeof(*rule));
    if (!argc || (strcmp(argv[0], "ingress") && strcmp(argv[0], "egress"))) {
        report("a rule begins with ingress or egress");
        return false;
    }
    rule->direction = *argv[0] == 'e' ? VMRI_RULE_EGRESS : VMRI_RULE_INGRESS;

    for (i = 1; i < argc; i++) {
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

const char *rule_prefix_text(const struct vmri_ctl_rule *rule)
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

const char *rule_text(const struct vmri_ctl_rule *rule)
{
    static char text[RULE_TEXT_SIZE];
    int n = snprintf(text, sizeof(text), "%s", rule_directions[rule->direction]);

    if (rule->group)
        n += snprintf(text + n, sizeof(text) - n, " group=%u", rule->group);
    if (rule->bits)
        n += snprintf(text + n, sizeof(text) - n, " remote=%s",
                      rule_prefix_text(rule));
    if (rule->remote_group)
        n += snprintf(text + n, sizeof(text) - n, " remote-group=%u",
                      rule->remote_group);
    if (rule->protocol)
        snprintf(text + n, sizeof(text) - n, " proto=%s",
                 protocols[rule->protocol]);
    return text;
}
