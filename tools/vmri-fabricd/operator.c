/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The operator's commands on the store: fabrics, rules, claims, hosts.  Each change is
 * a transaction on what was read, so two operators do not undo each other's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "etcd.h"

static struct mirror mirror;
static struct map map;

static bool load(const struct config *config)
{
    if (!etcd_open(config))
        return false;
    if (etcd_list(&mirror)) {
        report("etcd does not answer: %s", etcd_why());
        return false;
    }
    map_read(&map, &mirror);
    return true;
}

static int finish(int rc)
{
    map_free(&map);
    mirror_clear(&mirror);
    etcd_close();
    return rc;
}

static int commit(struct etcd_txn *txn)
{
    bool done;

    if (etcd_commit(txn, &done)) {
        report("etcd does not answer, and may have done it or not: %s", etcd_why());
        return RC_FAILURE;
    }
    if (!done) {
        report("somebody else has changed it meanwhile: look, and try again");
        return RC_FAILURE;
    }
    return RC_OK;
}

static const char *key_of(const char *folder, const char *name)
{
    static char keys[4][KEY_MAX + 64];
    static unsigned int last;

    last = (last + 1) % 4;
    snprintf(keys[last], sizeof(keys[last]), "%s/%s", folder, name);
    return keys[last];
}

static const char *number_key(const char *folder, uint32_t number)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", number);
    return key_of(folder, text);
}

static bool is_free_number(const char *folder, uint32_t number)
{
    return !mirror_find(&mirror, number_key(folder, number));
}

static const struct fabric *known_fabric(const char *name)
{
    const struct fabric *f = map_fabric(&map, name);

    if (!f)
        report("the cluster has no fabric \"%s\"", name);
    return f;
}

/* ---- fabrics ---- */

static int create_fabric(const struct config *config, int argc, char **argv)
{
    struct fabric f = { .id = 0 };
    struct etcd_txn txn;
    int rc;

    if (!is_fabric_name(argv[0])) {
        report("\"%s\" is not the name of a fabric: a letter, then up to %d letters, "
               "digits, \"-\", \"_\", \".\"", argv[0], VMRI_FABRIC_NAME - 2);
        return RC_USAGE;
    }
    if (!parse_fabric_words(argc - 1, argv + 1, &f))
        return RC_USAGE;
    if (!load(config))
        return RC_FAILURE;

    strcpy(f.name, argv[0]);
    if (f.id == VMRI_FABRIC_ANY)
        for (f.id = 1; !is_free_number("ids", f.id); f.id++)
            ;
    if (mirror_find(&mirror, key_of("fabrics", f.name))) {
        report("the cluster has a fabric %s already", f.name);
        return RC_FAILURE;
    }
    if (!is_free_number("ids", f.id) || (f.vni && !is_free_number("vnis", f.vni))) {
        report("another fabric has the %s", is_free_number("ids", f.id) ? "VNI" : "id");
        return RC_FAILURE;
    }

    etcd_txn_begin(&txn);
    etcd_if_mod(&txn, key_of("fabrics", f.name), 0);
    etcd_if_mod(&txn, number_key("ids", f.id), 0);
    etcd_put(&txn, key_of("fabrics", f.name), fabric_words(&f), 0);
    etcd_put(&txn, number_key("ids", f.id), f.name, 0);
    if (f.vni) {
        etcd_if_mod(&txn, number_key("vnis", f.vni), 0);
        etcd_put(&txn, number_key("vnis", f.vni), f.name, 0);
    }
    rc = commit(&txn);
    if (!rc)
        printf("fabric %s: %s\n", f.name, fabric_words(&f));
    return rc;
}

static int delete_fabric(const struct config *config, const char *name)
{
    const struct entry *e;
    const struct fabric *f;
    struct etcd_txn txn;
    char claims[KEY_MAX], members[KEY_MAX];

    if (!load(config))
        return RC_FAILURE;
    f = known_fabric(name);
    if (!f)
        return RC_FAILURE;
    snprintf(claims, sizeof(claims), "claims/%s/", name);
    snprintf(members, sizeof(members), "members/%s/", name);
    e = mirror.entries + mirror_position(&mirror, members);
    if (e < mirror.entries + mirror.num && key_in(e->key, members)) {
        report("host %s has devices in fabric %s", e->key + strlen(members), name);
        return RC_FAILURE;
    }
    e = mirror.entries + mirror_position(&mirror, claims);
    if (e < mirror.entries + mirror.num && key_in(e->key, claims)) {
        report("fabric %s has claims, of %s for instance", name,
               e->key + strlen(claims));
        return RC_FAILURE;
    }

    etcd_txn_begin(&txn);
    etcd_if_mod(&txn, key_of("fabrics", name),
                mirror_find(&mirror, key_of("fabrics", name))->mod);
    etcd_if_empty(&txn, claims);
    etcd_if_empty(&txn, members);
    etcd_delete(&txn, key_of("fabrics", name));
    etcd_delete(&txn, key_of("rules", name));
    etcd_delete(&txn, number_key("ids", f->id));
    if (f->vni)
        etcd_delete(&txn, number_key("vnis", f->vni));
    return commit(&txn);
}

static int list_fabrics(const struct config *config)
{
    unsigned int i, claims;

    if (!load(config))
        return RC_FAILURE;
    printf("%-*s %8s %-4s %8s %7s %5s\n", VMRI_FABRIC_NAME - 1, "FABRIC", "ID", "LINK",
           "VNI", "CLAIMS", "RULES");
    for (i = 0; i < map.num_fabrics; i++) {
        const struct fabric *f = &map.fabrics[i];
        char rules[16] = "-", vni[16] = "-";

        map_claims(&map, f, &claims);
        if (f->ruled && !f->closed)
            strcpy(rules, "open");
        else if (f->ruled)
            snprintf(rules, sizeof(rules), "%u", f->num_rules);
        if (f->vni)
            snprintf(vni, sizeof(vni), "%u", f->vni);
        printf("%-*s %8u %-4s %8s %7u %5s\n", VMRI_FABRIC_NAME - 1, f->name, f->id,
               f->link == VMRI_LINK_ROCE ? "roce" : "ib", vni, claims, rules);
    }
    return RC_OK;
}

int op_fabric(const struct config *config, int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[0], "create"))
        return finish(create_fabric(config, argc - 1, argv + 1));
    if (argc == 2 && !strcmp(argv[0], "delete"))
        return finish(delete_fabric(config, argv[1]));
    if (argc == 1 && !strcmp(argv[0], "list"))
        return finish(list_fabrics(config));
    report("not one of: fabric create NAME [id=N] [link=ib|roce] [vni=N], "
           "fabric delete NAME, fabric list");
    return RC_USAGE;
}

/* ---- rules ---- */

/*
 * The fabric's, with one more, or without one (0: without all, and it is open).  Without
 * the last one it is closed, as in VMRI.
 */
static int change_rules(const struct fabric *f, const struct vmri_ctl_rule *more,
                        unsigned int less)
{
    const struct entry *e = mirror_find(&mirror, key_of("rules", f->name));
    char *text = xcalloc(f->num_rules + 1, RULE_TEXT_SIZE);
    struct etcd_txn txn;
    size_t n = 0;
    unsigned int i;
    int rc;

    for (i = 0; i < f->num_rules; i++)
        if (more || (less && i != less - 1))
            n += sprintf(text + n, "%s\n", rule_text(&f->rules[i]));
    if (more)
        n += sprintf(text + n, "%s\n", rule_text(more));
    if (!n && less)
        strcpy(text, "closed\n");
    etcd_txn_begin(&txn);
    etcd_if_mod(&txn, key_of("rules", f->name), e ? e->mod : 0);
    etcd_if_there(&txn, key_of("fabrics", f->name));
    etcd_put(&txn, key_of("rules", f->name), text, 0);
    rc = commit(&txn);
    free(text);
    return rc;
}

/* What cannot be read is not to be written over, unless all of it goes. */
static bool readable_rules(const struct fabric *f)
{
    if (f->ruled || !mirror_find(&mirror, key_of("rules", f->name)))
        return true;
    report("the rules of fabric %s cannot be read: flush them, or write others to etcd",
           f->name);
    return false;
}

static int add_rule(const struct config *config, int argc, char **argv)
{
    struct vmri_ctl_rule rule;
    const struct fabric *f;
    int rc;

    if (!parse_rule(argc - 1, argv + 1, &rule))
        return RC_USAGE;
    if (!load(config) || !(f = known_fabric(argv[0])) || !readable_rules(f))
        return RC_FAILURE;
    if (f->num_rules == VMRI_RULES) {
        report("fabric %s can have no more rules", f->name);
        return RC_FAILURE;
    }
    if (rule.protocol == (f->link == VMRI_LINK_ROCE ? VMRI_RULE_IB : VMRI_RULE_ROCE)) {
        report("fabric %s has no devices of that protocol", f->name);
        return RC_FAILURE;
    }
    rc = change_rules(f, &rule, 0);
    if (!rc)
        printf("fabric %s: rule %u\n", f->name, f->num_rules + 1);
    return rc;
}

/* One, or for NULL all. */
static int delete_rule(const struct config *config, const char *name, const char *number)
{
    const struct fabric *f;
    uint64_t n = 0;

    if (number && !parse_number("rule", number, 1, VMRI_RULES, &n))
        return RC_USAGE;
    if (!load(config) || !(f = known_fabric(name)) || (number && !readable_rules(f)))
        return RC_FAILURE;
    if (n > f->num_rules) {
        report("fabric %s has no rule %u", f->name, (unsigned int)n);
        return RC_FAILURE;
    }
    return change_rules(f, NULL, n);
}

static int list_rules(const struct config *config, const char *name)
{
    const struct fabric *f;
    unsigned int i;

    if (!load(config) || !(f = known_fabric(name)) || !readable_rules(f))
        return RC_FAILURE;
    for (i = 0; i < f->num_rules; i++)
        printf("%4u %s\n", i + 1, rule_text(&f->rules[i]));
    return RC_OK;
}

int op_rule(const struct config *config, int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[0], "add"))
        return finish(add_rule(config, argc - 1, argv + 1));
    if (argc == 3 && !strcmp(argv[0], "del"))
        return finish(delete_rule(config, argv[1], argv[2]));
    if (argc == 2 && !strcmp(argv[0], "flush"))
        return finish(delete_rule(config, argv[1], NULL));
    if (argc == 2 && !strcmp(argv[0], "list"))
        return finish(list_rules(config, argv[1]));
    report("not one of: rule add FABRIC ingress|egress [SETTING...], "
           "rule del FABRIC N, rule flush FABRIC, rule list FABRIC");
    return RC_USAGE;
}

/* ---- claims ---- */

static int list_claims(const struct config *config, const char *name)
{
    const struct fabric *f;
    const struct claim *c;
    unsigned int i, num;

    if (!load(config) || !(f = known_fabric(name)))
        return RC_FAILURE;
    c = map_claims(&map, f, &num);
    printf("%-39s %-20s %s\n", "GID", "HOST", "HOST-GID");
    for (i = 0; i < num; i++)
        printf("%-39s %-20s %s\n", address_text(c[i].gid), c[i].bad ? "?" : c[i].host,
               c[i].bad ? "?" : address_text(c[i].host_gid));
    return RC_OK;
}

static int delete_claim(const struct config *config, const char *name, const char *text)
{
    const struct fabric *f;
    const struct entry *e;
    struct etcd_txn txn;
    uint8_t gid[16];
    char key[KEY_MAX];

    if (parse_address(text, gid) < 0) {
        report("\"%s\" is not an address", text);
        return RC_USAGE;
    }
    if (!load(config) || !(f = known_fabric(name)))
        return RC_FAILURE;
    snprintf(key, sizeof(key), "claims/%s/%s", f->name, gid_text(gid));
    e = mirror_find(&mirror, key);
    if (!e) {
        report("nobody has claimed %s in fabric %s", text, f->name);
        return RC_FAILURE;
    }
    etcd_txn_begin(&txn);
    etcd_if_mod(&txn, key, e->mod);
    etcd_delete(&txn, key);
    return commit(&txn);
}

int op_claim(const struct config *config, int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[0], "list"))
        return finish(list_claims(config, argv[1]));
    if (argc == 3 && !strcmp(argv[0], "delete"))
        return finish(delete_claim(config, argv[1], argv[2]));
    report("not one of: claim list FABRIC, claim delete FABRIC GID");
    return RC_USAGE;
}

/* ---- hosts ---- */

static unsigned int claims_of(const char *host)
{
    unsigned int i, num = 0;

    for (i = 0; i < map.num_claims; i++)
        num += !map.claims[i].bad && !strcmp(map.claims[i].host, host);
    return num;
}

/* Is none before it of the same host? */
static bool is_first(unsigned int i)
{
    unsigned int j;

    for (j = 0; j < i; j++)
        if (!strcmp(map.members[j].host, map.members[i].host))
            return false;
    return true;
}

static int list_hosts(const struct config *config)
{
    unsigned int i;

    if (!load(config))
        return RC_FAILURE;
    printf("%-20s %-39s %-5s %s\n", "HOST", "HOST-GID", "STATE", "CLAIMS");
    i = mirror_position(&mirror, "hosts/");
    for (; i < mirror.num && key_in(mirror.entries[i].key, "hosts/"); i++) {
        const char *host = mirror.entries[i].key + strlen("hosts/");
        struct claim c;

        report_about(mirror.entries[i].key);
        if (parse_claim(mirror.entries[i].value, &c))
            printf("%-20s %-39s %-5s %u\n", host, address_text(c.host_gid), "here",
                   claims_of(host));
        report_about("");
    }
    for (i = 0; i < map.num_members; i++) {
        const struct claim *c = &map.members[i];

        if (is_first(i) && !mirror_find(&mirror, key_of("hosts", c->host)))
            printf("%-20s %-39s %-5s %u\n", c->host, address_text(c->host_gid), "gone",
                   claims_of(c->host));
    }
    return RC_OK;
}

/* Delete a claim or membership if the host is still not there. */
static int forget(const char *host, const char *key)
{
    struct etcd_txn txn;

    etcd_txn_begin(&txn);
    etcd_if_mod(&txn, key_of("hosts", host), 0);
    etcd_delete(&txn, key);
    return commit(&txn);
}

static int delete_host(const struct config *config, const char *host)
{
    char key[KEY_MAX + 64];
    unsigned int i, num = 0;
    int rc = RC_OK;

    if (!load(config))
        return RC_FAILURE;
    if (mirror_find(&mirror, key_of("hosts", host))) {
        report("host %s is there: its daemon runs, or did until a moment ago", host);
        return RC_FAILURE;
    }
    for (i = 0; i < map.num_claims && !rc; i++) {
        const struct claim *c = &map.claims[i];

        if (c->bad || strcmp(c->host, host))
            continue;
        snprintf(key, sizeof(key), "claims/%s/%s", map.fabrics[c->fabric].name,
                 gid_text(c->gid));
        rc = forget(host, key);
        num++;
    }
    for (i = 0; i < map.num_members && !rc; i++) {
        const struct claim *c = &map.members[i];

        if (strcmp(c->host, host))
            continue;
        snprintf(key, sizeof(key), "members/%s/%s", map.fabrics[c->fabric].name, host);
        rc = forget(host, key);
        num++;
    }
    if (!num) {
        report("there is no host %s", host);
        rc = RC_FAILURE;
    }
    return rc;
}

int op_host(const struct config *config, int argc, char **argv)
{
    if (argc == 1 && !strcmp(argv[0], "list"))
        return finish(list_hosts(config));
    if (argc == 2 && !strcmp(argv[0], "delete"))
        return finish(delete_host(config, argv[1]));
    report("not one of: host list, host delete NAME");
    return RC_USAGE;
}
