/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names, addresses, and what values in the store are made of: words.
 */
#include <arpa/inet.h>
#include <string.h>

#include "fabricd.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME_CHARACTERS LETTERS "0123456789-_."

#define RULE_WORDS 8

bool is_host_name(const char *text)
{
    size_t n = strlen(text);

    return n && n < HOST_SIZE && *text != '-' && *text != '.' &&
           strspn(text, NAME_CHARACTERS) == n;
}

bool is_fabric_name(const char *text)
{
    size_t n = strlen(text);

    return n && n < VMRI_FABRIC_NAME && strchr(LETTERS, *text) &&
           strspn(text, NAME_CHARACTERS) == n;
}

static bool is_ipv4(const uint8_t gid[16])
{
    static const uint8_t mapped[V4_MAPPED_BITS / 8] = { [10] = 0xff, 0xff };

    return !memcmp(gid, mapped, sizeof(mapped));
}

bool is_unicast(const uint8_t gid[16])
{
    static const uint8_t none[16];

    return memcmp(gid, none, 16) && gid[0] != 0xff &&
           !(is_ipv4(gid) && gid[12] >> 4 == 0xe);
}

static char *text_buffer(void)
{
    static char buffers[2][ADDRESS_SIZE];
    static unsigned int last;

    last ^= 1;
    return buffers[last];
}

const char *gid_text(const uint8_t gid[16])
{
    return inet_ntop(AF_INET6, gid, text_buffer(), ADDRESS_SIZE);
}

const char *address_text(const uint8_t gid[16])
{
    if (!is_ipv4(gid))
        return gid_text(gid);
    return inet_ntop(AF_INET, gid + V4_MAPPED_BITS / 8, text_buffer(), ADDRESS_SIZE);
}

int split_words(char *text, char **words, int max)
{
    char *next = text, *word;
    int n = 0;

    while ((word = strsep(&next, " \t\r\n")))
        if (*word) {
            if (n == max)
                return -1;
            words[n++] = word;
        }
    return n;
}

bool parse_fabric_words(int argc, char **argv, struct fabric *fabric)
{
    enum { ID, LINK, VNI, KEYS };
    bool seen[KEYS] = { false };
    uint64_t value;
    int i, k;

    fabric->id = VMRI_FABRIC_ANY;
    fabric->link = VMRI_LINK_IB;
    fabric->vni = 0;
    for (i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "id=", 3)) {
            if (!parse_number("id", argv[i] + 3, 0, VMRI_FABRIC_MAX, &value))
                return false;
            fabric->id = value;
            k = ID;
        } else if (!strncmp(argv[i], "vni=", 4)) {
            if (!parse_number("vni", argv[i] + 4, 1, VNI_MAX, &value))
                return false;
            fabric->vni = value;
            k = VNI;
        } else if (!strcmp(argv[i], "link=ib") || !strcmp(argv[i], "link=roce")) {
            fabric->link = argv[i][5] == 'r' ? VMRI_LINK_ROCE : VMRI_LINK_IB;
            k = LINK;
        } else {
            report("\"%s\" is not one of id=N, link=ib, link=roce, vni=N", argv[i]);
            return false;
        }
        if (seen[k]) {
            report("\"%s\" says what was said", argv[i]);
            return false;
        }
        seen[k] = true;
    }
    if (fabric->vni && fabric->link != VMRI_LINK_ROCE) {
        report("a VNI is for fabrics of link=roce");
        return false;
    }
    return true;
}

const char *fabric_words(const struct fabric *fabric)
{
    static char text[64];
    int n = snprintf(text, sizeof(text), "id=%u link=%s", fabric->id,
                     fabric->link == VMRI_LINK_ROCE ? "roce" : "ib");

    if (fabric->vni)
        snprintf(text + n, sizeof(text) - n, " vni=%u", fabric->vni);
    return text;
}

bool parse_rules(char *text, struct fabric *fabric)
{
    char *next = text, *line, *words[RULE_WORDS];
    int n;

    while ((line = strsep(&next, "\n"))) {
        struct vmri_ctl_rule *rule;

        n = split_words(line, words, RULE_WORDS);
        if (!n)
            continue;
        fabric->closed = true;
        if (n == 1 && !strcmp(words[0], "closed"))
            continue;
        if (n < 0) {
            report("a rule has too many words");
            return false;
        }
        if (fabric->num_rules == VMRI_RULES) {
            report("there are more than %d rules", VMRI_RULES);
            return false;
        }
        fabric->rules = xrealloc(fabric->rules, (fabric->num_rules + 1) *
                                 sizeof(*fabric->rules));
        rule = &fabric->rules[fabric->num_rules];
        if (!parse_rule(n, words, rule))
            return false;
        if (rule->protocol == (fabric->link == VMRI_LINK_ROCE ? VMRI_RULE_IB
                                                              : VMRI_RULE_ROCE)) {
            report("the fabric has no devices of that protocol");
            return false;
        }
        rule->fabric = fabric->id;
        fabric->num_rules++;
    }
    return true;
}
