/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes VMRI have what is wanted: reads what it lists, and changes what differs.
 * Fabrics that are not in the store are none of ours.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd.h"

/* ---- fabrics ---- */

/* What VMRI has of that number, if it was created. */
static bool find_created(uint32_t id, struct vmri_ctl_fabric *have)
{
    *have = (struct vmri_ctl_fabric){ .fabric = id };
    return !call_fabric_list(have) && have->fabric == id && have->created;
}

static void delete_fabric(const struct fabric *f)
{
    struct vmri_ctl_fabric have;
    int rc;

    if (!find_created(f->id, &have) || strcmp(have.name, f->name))
        return;
    rc = call_fabric_delete(f->id);
    if (rc == -EBUSY)
        report("fabric %s (%u) was deleted, but here are devices attached to it: it "
               "stays, as one of this host alone", f->name, f->id);
    else if (rc && rc != -ENOENT)
        report("cannot delete fabric %s (%u): %s", f->name, f->id, strerror(-rc));
}

/* Was it deleted, rather than lost or overwritten with garbage? */
static bool was_deleted(const struct wanted *w, const struct fabric *f)
{
    const struct fabric *now = map_fabric(w->map, f->name);
    char key[KEY_MAX];

    snprintf(key, sizeof(key), "fabrics/%s", f->name);
    return now ? now->id != f->id : !mirror_find(w->mirror, key);
}

/* Is there one in VMRI, or can be? */
static bool have_fabric(const struct fabric *f)
{
    struct vmri_ctl_fabric have, new = { .fabric = f->id, .link = f->link };
    int rc;

    if (find_created(f->id, &have)) {
        if (!strcmp(have.name, f->name) && have.link == f->link)
            return true;
        report("fabric %s (%u): this host has another one with that number, \"%s\", or of "
               "another link", f->name, f->id, have.name);
        return false;
    }
    strcpy(new.name, f->name);
    rc = call_fabric_create(&new);
    if (rc == -EEXIST)
        report("fabric %s (%u): this host has another one with that name", f->name, f->id);
    else if (rc)
        report("cannot create fabric %s (%u): %s", f->name, f->id, strerror(-rc));
    return !rc;
}

/* ---- rules ---- */

static bool same_rule(const struct vmri_ctl_rule *a, const struct vmri_ctl_rule *b)
{
    return a->direction == b->direction && a->bits == b->bits && a->group == b->group &&
           a->remote_group == b->remote_group && !memcmp(a->prefix, b->prefix, 16);
}

struct rules {
    struct vmri_ctl_rule rule[VMRI_RULES];
    bool wanted[VMRI_RULES];
    unsigned int num;
};

static int list_rules(uint32_t fabric, struct rules *r)
{
    struct vmri_ctl_rule rule = { .fabric = fabric };
    int rc = 0;

    r->num = 0;
    while (r->num < VMRI_RULES && !(rc = call_rule_list(&rule))) {
        r->wanted[r->num] = false;
        r->rule[r->num++] = rule;
        rule.rule++;
    }
    return rc == -ENOENT ? 0 : rc;
}

static bool take_rule(struct rules *have, const struct vmri_ctl_rule *rule)
{
    unsigned int i;

    for (i = 0; i < have->num; i++)
        if (!have->wanted[i] && same_rule(&have->rule[i], rule)) {
            have->wanted[i] = true;
            return true;
        }
    return false;
}

/* One that is not wanted, to make room: -ENOENT: there is none. */
static int delete_one(struct rules *have)
{
    unsigned int i;

    for (i = 0; i < have->num; i++)
        if (!have->wanted[i]) {
            have->wanted[i] = true;
            return call_rule_del(have->rule[i].fabric, have->rule[i].rule);
        }
    return -ENOENT;
}

static int add_rule(struct rules *have, const struct vmri_ctl_rule *wanted)
{
    struct vmri_ctl_rule rule = *wanted;
    int rc;

    while ((rc = call_rule_add(&rule)) == -ENOSPC && !delete_one(have))
        rule = *wanted;
    return rc;
}

/* Does one of them decide what a group may begin? */
static bool decided(const struct rules *have, uint8_t direction, uint32_t group)
{
    unsigned int i;

    for (i = 0; i < have->num; i++)
        if (have->rule[i].direction == direction &&
            (!have->rule[i].group || have->rule[i].group == group || !group))
            return true;
    return false;
}

/* Without rules and closed: one that names nobody comes and goes. */
static int close_bare(const struct fabric *f)
{
    struct vmri_ctl_rule nobody = { .fabric = f->id, .bits = 128 };
    int rc = call_rule_add(&nobody);

    return rc ? rc : call_rule_del(f->id, nobody.rule);
}

/*
 * The first rule forbids what it does not allow, and connections end at once: so where
 * there is none yet, one that allows all, as is so far, comes before them, and goes when
 * they are complete.
 */
static int add_cover(struct rules *have, const struct fabric *f, uint8_t direction,
                     uint32_t group)
{
    struct vmri_ctl_rule cover = {
        .fabric = f->id, .direction = direction, .group = group,
    };
    int rc;

    if (have->num == VMRI_RULES)
        return 0;
    rc = call_rule_add(&cover);
    if (!rc) {
        have->wanted[have->num] = false;
        have->rule[have->num++] = cover;
    }
    return rc;
}

static int add_covers(struct rules *have, const struct fabric *f, bool is_open)
{
    unsigned int i;
    int rc = 0;

    if (is_open && f->num_rules)
        rc = add_cover(have, f, VMRI_RULE_INGRESS, 0);
    for (i = 0; i < f->num_rules && !rc; i++)
        if (f->rules[i].direction == VMRI_RULE_EGRESS &&
            !decided(have, VMRI_RULE_EGRESS, f->rules[i].group))
            rc = add_cover(have, f, VMRI_RULE_EGRESS, f->rules[i].group);
    return rc;
}

static int replace_rules(const struct fabric *f, struct rules *have)
{
    bool *lacking = xcalloc(f->num_rules, sizeof(*lacking)), any = false;
    struct vmri_ctl_fabric now;
    unsigned int i;
    int rc = list_rules(f->id, have);
    bool is_open = find_created(f->id, &now) && !now.closed;

    for (i = 0; i < f->num_rules && !rc; i++) {
        lacking[i] = !take_rule(have, &f->rules[i]);
        any |= lacking[i];
    }
    if (any && !rc)
        rc = add_covers(have, f, is_open);
    for (i = 0; i < f->num_rules && !rc; i++)
        if (lacking[i])
            rc = add_rule(have, &f->rules[i]);
    /* When some could not be added, the old ones are better than neither. */
    while (!rc)
        rc = delete_one(have);
    free(lacking);
    if (rc == -ENOENT)
        rc = !f->num_rules && is_open ? close_bare(f) : 0;
    return rc;
}

static void apply_rules(const struct fabric *f)
{
    struct rules *have = xcalloc(1, sizeof(*have));
    int rc = f->closed ? replace_rules(f, have) : call_rule_del(f->id, VMRI_RULE_ALL);

    if (rc)
        report("fabric %s (%u): cannot set its rules: %s", f->name, f->id,
               rc == -ENOSPC ? "there are too many" : strerror(-rc));
    free(have);
}

/* ---- routes ---- */

/* Of the GID of a claim; bad: it stays as it is. */
struct target {
    uint8_t gid[16];
    uint8_t host_gid[16];
    bool bad;
};

static int compare_targets(const void *a, const void *b)
{
    return memcmp(((const struct target *)a)->gid, ((const struct target *)b)->gid, 16);
}

/* What other hosts have claimed, in order. */
static struct target *list_targets(const struct wanted *w, const struct fabric *f,
                                   unsigned int *num)
{
    unsigned int i, claims;
    const struct claim *c = map_claims(w->map, f, &claims);
    struct target *t = xcalloc(claims, sizeof(*t));

    *num = 0;
    for (i = 0; i < claims; i++) {
        if (!c[i].bad && !strcmp(c[i].host, w->host))
            continue;
        memcpy(t[*num].gid, c[i].gid, 16);
        memcpy(t[*num].host_gid, c[i].host_gid, 16);
        t[(*num)++].bad = c[i].bad;
    }
    qsort(t, *num, sizeof(*t), compare_targets);
    return t;
}

static int list_routes(uint32_t fabric, struct vmri_ctl_route **routes,
                       unsigned int *num)
{
    struct vmri_ctl_route route = { .fabric = fabric };
    int rc = 0, i = 0;

    *routes = NULL;
    *num = 0;
    while (i >= 0 && !(rc = call_route_list(&route))) {
        if (!(*num & (*num - 1)))
            *routes = xrealloc(*routes, (*num ? 2 * *num : 1) * sizeof(**routes));
        (*routes)[(*num)++] = route;
        for (i = 15; i >= 0 && !++route.gid[i]; i--)
            ;
    }
    return rc == -ENOENT ? 0 : rc;
}

static bool is_held(const struct held *held, const struct vmri_ctl_route *route)
{
    struct local_gid key = { .fabric = route->fabric };

    memcpy(key.gid, route->gid, sizeof(key.gid));
    return held->num && bsearch(&key, held->routes, held->num, sizeof(key), compare_gids);
}

static void hold(struct held *held, const struct vmri_ctl_route *route)
{
    held->routes = xrealloc(held->routes, (held->num + 1) * sizeof(*held->routes));
    held->routes[held->num].fabric = route->fabric;
    memcpy(held->routes[held->num++].gid, route->gid, 16);
}

static void report_route(const struct fabric *f, const char *what, const uint8_t gid[16],
                         int rc)
{
    report("fabric %s (%u): cannot %s the route of %s: %s", f->name, f->id, what,
           gid_text(gid), rc == -ENOSPC ? "there are too many" : strerror(-rc));
}

static void add_route(const struct fabric *f, const struct target *t)
{
    struct vmri_ctl_route route = { .fabric = f->id };
    int rc;

    memcpy(route.gid, t->gid, 16);
    memcpy(route.host_gid, t->host_gid, 16);
    rc = call_route_add(&route);
    if (rc && rc != -EEXIST)
        report_route(f, "add", t->gid, rc);
}

static bool delete_route(const struct fabric *f, struct vmri_ctl_route *route)
{
    int rc = call_route_del(route);

    if (rc && rc != -ENOENT)
        report_route(f, "delete", route->gid, rc);
    return !rc || rc == -ENOENT;
}

struct routes {
    const struct fabric *fabric;
    struct target *wanted;
    struct vmri_ctl_route *have;
    unsigned int num_wanted, num_have;
};

/* Both are in order. */
static void merge_routes(struct routes *r, bool hold_all, const struct held *before,
                         struct held *after)
{
    unsigned int i = 0, j = 0;

    while (i < r->num_wanted || j < r->num_have) {
        struct target *t = &r->wanted[i];
        struct vmri_ctl_route *have = &r->have[j];
        int order = i == r->num_wanted ? 1 : j == r->num_have ? -1
                                       : memcmp(t->gid, have->gid, 16);

        if (order > 0) {
            if (hold_all || is_held(before, have))
                hold(after, have);
            else
                delete_route(r->fabric, have);
        } else if (!t->bad &&
                   (order || (memcmp(t->host_gid, have->host_gid, 16) &&
                              delete_route(r->fabric, have)))) {
            add_route(r->fabric, t);
        }
        i += order <= 0;
        j += order >= 0;
    }
}

static void apply_routes(const struct wanted *w, const struct fabric *f,
                         const struct held *before, struct held *after)
{
    const struct fabric *old = map_fabric(w->old, f->name);
    bool is_new = !old || old->id != f->id;
    struct routes r = { .fabric = f };
    int rc = list_routes(f->id, &r.have, &r.num_have);

    if (rc) {
        report("fabric %s (%u): cannot list its routes: %s", f->name, f->id,
               strerror(-rc));
    } else {
        r.wanted = list_targets(w, f, &r.num_wanted);
        merge_routes(&r, !w->same_store || is_new, before, after);
    }
    free(r.wanted);
    free(r.have);
}

void apply(const struct wanted *w, struct held *held)
{
    struct held after = { .num = 0 };
    unsigned int i;

    if (w->same_store)
        for (i = 0; i < w->old->num_fabrics; i++)
            if (was_deleted(w, &w->old->fabrics[i]))
                delete_fabric(&w->old->fabrics[i]);

    for (i = 0; i < w->map->num_fabrics; i++) {
        const struct fabric *f = &w->map->fabrics[i];

        if (!have_fabric(f))
            continue;
        if (f->ruled)
            apply_rules(f);
        apply_routes(w, f, held, &after);
    }
    held_free(held);
    *held = after;
    if (held->num)
        qsort(held->routes, held->num, sizeof(*held->routes), compare_gids);
}

void held_free(struct held *held)
{
    free(held->routes);
    *held = (struct held){ .num = 0 };
}
