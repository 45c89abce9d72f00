/* SPDX-License-Identifier: GPL-2.0-only */
/* apply.c on a VMRI that is a few arrays, and looks at the order of what is done. */
#include <errno.h>
#include <string.h>

#include "fabricd.h"
#include "test.h"

static struct {
    struct vmri_ctl_fabric fabrics[4];
    unsigned int num_fabrics;
    struct vmri_ctl_route routes[16];
    unsigned int num_routes, changes;
    struct vmri_ctl_rule rules[VMRI_RULES];
    unsigned int num_rules, max_rules;
    bool closed;
    uint32_t checked_group;
    bool was_bare;              /* a rule was added, and none allowed the group all */
    bool covered;               /* one did, where that was not so before */
    int delete_errno;
} v;

/* ---- call.c's place ---- */

int call_open(void) { return 0; }
int call_version(struct vmri_version *version) { return -ENOSYS; }
int call_dump(struct vmri_ctl_dump *object) { return -ENOENT; }
int call_info(struct vmri_ctl_info *info) { return -ENOENT; }
int call_info_next(struct vmri_ctl_info *info) { return -ENOENT; }

int call_fabric_create(struct vmri_ctl_fabric *f)
{
    unsigned int i;

    for (i = 0; i < v.num_fabrics; i++)
        if (v.fabrics[i].fabric == f->fabric || !strcmp(v.fabrics[i].name, f->name))
            return -EEXIST;
    v.fabrics[v.num_fabrics] = *f;
    v.fabrics[v.num_fabrics++].created = 1;
    return 0;
}

int call_fabric_delete(uint32_t id)
{
    unsigned int i;

    if (v.delete_errno)
        return -v.delete_errno;
    for (i = 0; i < v.num_fabrics && v.fabrics[i].fabric != id; i++)
        ;
    if (i == v.num_fabrics)
        return -ENOENT;
    v.fabrics[i] = v.fabrics[--v.num_fabrics];
    return 0;
}

int call_fabric_list(struct vmri_ctl_fabric *f)
{
    unsigned int i, best = v.num_fabrics;

    for (i = 0; i < v.num_fabrics; i++)
        if (v.fabrics[i].fabric >= f->fabric &&
            (best == v.num_fabrics || v.fabrics[i].fabric < v.fabrics[best].fabric))
            best = i;
    if (best == v.num_fabrics)
        return -ENOENT;
    *f = v.fabrics[best];
    f->closed = v.closed;
    return 0;
}

static unsigned int route_at(const uint8_t gid[16])
{
    unsigned int i = 0;

    while (i < v.num_routes && memcmp(v.routes[i].gid, gid, 16) < 0)
        i++;
    return i;
}

int call_route_add(struct vmri_ctl_route *r)
{
    unsigned int i = route_at(r->gid);

    if (i < v.num_routes && !memcmp(v.routes[i].gid, r->gid, 16))
        return -EEXIST;
    if (v.num_routes == ARRAY_SIZE(v.routes))
        return -ENOSPC;
    memmove(&v.routes[i + 1], &v.routes[i], (v.num_routes++ - i) * sizeof(*r));
    v.routes[i] = *r;
    v.changes++;
    return 0;
}

int call_route_del(struct vmri_ctl_route *r)
{
    unsigned int i = route_at(r->gid);

    if (i == v.num_routes || memcmp(v.routes[i].gid, r->gid, 16))
        return -ENOENT;
    memmove(&v.routes[i], &v.routes[i + 1], (--v.num_routes - i) * sizeof(*r));
    v.changes++;
    return 0;
}

int call_route_list(struct vmri_ctl_route *r)
{
    unsigned int i = route_at(r->gid);

    if (i == v.num_routes || v.routes[i].fabric != r->fabric)
        return -ENOENT;
    *r = v.routes[i];
    return 0;
}

/* Does one of a direction allow all that a group may begin or be asked? */
static bool has_cover(uint8_t direction, uint32_t group)
{
    unsigned int i;

    for (i = 0; i < v.num_rules; i++)
        if (v.rules[i].direction == direction && !v.rules[i].bits &&
            !v.rules[i].remote_group && (!v.rules[i].group || v.rules[i].group == group))
            return true;
    return false;
}

int call_rule_add(struct vmri_ctl_rule *r)
{
    unsigned int i;
    uint32_t number = 1;

    if (v.num_rules == v.max_rules)
        return -ENOSPC;
    for (i = 0; i < v.num_rules; i++)
        number += v.rules[i].rule == number;
    r->rule = number;
    memmove(&v.rules[number], &v.rules[number - 1],
            (v.num_rules++ - (number - 1)) * sizeof(*r));
    v.rules[number - 1] = *r;
    v.rules[number - 1].protocol = 0;
    v.was_bare |= (!v.closed || r->direction == VMRI_RULE_EGRESS) &&
                  !has_cover(r->direction, v.checked_group);
    v.covered |= v.closed && has_cover(VMRI_RULE_INGRESS, v.checked_group);
    v.closed = true;
    return 0;
}

int call_rule_del(uint32_t fabric, uint32_t number)
{
    unsigned int i;

    if (number == VMRI_RULE_ALL) {
        v.num_rules = 0;
        v.closed = false;
        return 0;
    }
    for (i = 0; i < v.num_rules && v.rules[i].rule != number; i++)
        ;
    if (i == v.num_rules)
        return -ENOENT;
    memmove(&v.rules[i], &v.rules[i + 1], (--v.num_rules - i) * sizeof(*v.rules));
    return 0;
}

int call_rule_list(struct vmri_ctl_rule *r)
{
    unsigned int i;

    for (i = 0; i < v.num_rules; i++)
        if (v.rules[i].rule >= r->rule) {
            *r = v.rules[i];
            return 0;
        }
    return -ENOENT;
}

/* ---- tests ---- */

static struct mirror m;
static struct map map, old;
static struct held held;
static struct wanted wanted = {
    .map = &map, .old = &old, .mirror = &m, .host = "me", .same_store = true,
};

static void reset(void)
{
    memset(&v, 0, sizeof(v));
    v.max_rules = VMRI_RULES;
    map_free(&map);
    map_free(&old);
    mirror_clear(&m);
    held_free(&held);
    wanted.same_store = true;
    said();
}

/* What the daemon does when the store has changed. */
static void take(void)
{
    map_free(&old);
    old = map;
    map_read(&map, &m);
    apply(&wanted, &held);
}

static void set(const char *key, const char *value)
{
    mirror_set(&m, key, value, 1);
    take();
}

static bool has_rule(const char *text)
{
    unsigned int i;

    for (i = 0; i < v.num_rules; i++)
        if (!strcmp(rule_text(&v.rules[i]), text))
            return true;
    return false;
}

void test_apply_rules(void)
{
    reset();
    v.checked_group = 3;
    set("fabrics/red", "id=7 link=roce");
    set("rules/red", "");
    CHECK(v.num_fabrics == 1 && !v.num_rules && !*said());

    /* Nothing is forbidden before all is there that is allowed. */
    set("rules/red", "ingress group=1\ningress group=2 proto=roce\negress group=3 remote=::/1");
    CHECK(v.num_rules == 3 && has_rule("ingress group=1") && has_rule("ingress group=2"));
    CHECK(has_rule("egress group=3 remote=::/1") && !has_cover(VMRI_RULE_INGRESS, 3));
    CHECK(!v.was_bare);
    set("rules/red", "ingress group=1\ningress group=2 proto=roce\negress group=3 remote=::/1");
    CHECK(!v.was_bare && v.num_rules == 3);

    /* The same one twice is two. */
    set("rules/red", "ingress group=2\ningress group=2");
    CHECK(v.num_rules == 2 && has_rule("ingress group=2") && !has_rule("ingress group=1"));
    v.was_bare = false;
    set("rules/red", "");
    CHECK(!v.num_rules && !v.closed);
    set("rules/red", "ingress group=1\ningress group=2");
    CHECK(!v.was_bare && v.num_rules == 2);

    /* A fabric that is closed is so without rules, and is not opened for new ones. */
    set("rules/red", "closed\n");
    CHECK(!v.num_rules && v.closed);
    v.covered = false;
    set("rules/red", "ingress group=1\ningress group=2");
    CHECK(v.num_rules == 2 && !v.covered && v.closed);
    set("rules/red", "");
    CHECK(!v.closed);
    set("rules/red", "closed\n");
    CHECK(!v.num_rules && v.closed && !*said());
    set("rules/red", "ingress group=1\ningress group=2");

    /* Nothing is said: nothing is changed. */
    mirror_remove(&m, "rules/red");
    take();
    CHECK(v.num_rules == 2);
    set("rules/red", "nonsense");
    CHECK(v.num_rules == 2 && says("a rule begins with"));
    reset();
}

void test_apply_full(void)
{
    reset();
    set("fabrics/red", "id=7");
    v.max_rules = 4;
    set("rules/red", "ingress group=1\ningress group=2\ningress group=3\ningress group=4");
    CHECK(v.num_rules == 4 && !*said());
    set("rules/red", "ingress group=5\ningress group=6\ningress group=7\ningress group=1");
    CHECK(v.num_rules == 4 && has_rule("ingress group=7") && has_rule("ingress group=1"));
    CHECK(!*said());
    set("rules/red", "ingress group=1\ningress group=2\ningress group=3\n"
                     "ingress group=4\ningress group=5");
    CHECK(v.num_rules == 4 && says("there are too many"));
    reset();
}

static bool has_route(const char *gid, const char *host)
{
    uint8_t g[16], h[16];
    unsigned int i;

    parse_address(gid, g);
    parse_address(host, h);
    i = route_at(g);
    return i < v.num_routes && !memcmp(v.routes[i].gid, g, 16) &&
           !memcmp(v.routes[i].host_gid, h, 16);
}

static void route_by_hand(const char *gid)
{
    struct vmri_ctl_route r = { .fabric = 7 };

    parse_address(gid, r.gid);
    parse_address("::1", r.host_gid);
    call_route_add(&r);
}

void test_apply_routes(void)
{
    reset();
    set("fabrics/red", "id=7");
    set("claims/red/fe80::2", "host=h2 gid=192.0.2.2");
    set("claims/red/fe80::1", "host=me gid=192.0.2.1");
    set("claims/red/fe80::3", "host=h2 gid=192.0.2.2");
    CHECK(v.num_routes == 2 && has_route("fe80::2", "192.0.2.2"));
    v.changes = 0;
    take();
    CHECK(!v.changes);
    set("claims/red/fe80::2", "host=h3 gid=192.0.2.3");
    CHECK(has_route("fe80::2", "192.0.2.3") && v.changes == 2);
    set("claims/red/fe80::2", "garbage");
    CHECK(has_route("fe80::2", "192.0.2.3") && v.changes == 2 && says("is not gid="));
    set("claims/red/fe80::2", "host=me gid=192.0.2.1");
    CHECK(v.num_routes == 1);

    /* By hand beside the store's: it goes. */
    route_by_hand("fe80::9");
    take();
    CHECK(v.num_routes == 1 && has_route("fe80::3", "192.0.2.2"));

    /* Another store: what it lacks stays until it has had it. */
    wanted.same_store = false;
    mirror_remove(&m, "claims/red/fe80::3");
    take();
    wanted.same_store = true;
    take();
    CHECK(v.num_routes == 1 && held.num == 1);
    set("claims/red/fe80::3", "host=h4 gid=192.0.2.4");
    CHECK(has_route("fe80::3", "192.0.2.4") && !held.num);
    mirror_remove(&m, "claims/red/fe80::3");
    take();
    CHECK(!v.num_routes);

    /* What is held may be deleted by hand. */
    route_by_hand("fe80::9");
    wanted.same_store = false;
    take();
    wanted.same_store = true;
    CHECK(held.num == 1);
    call_route_del(&v.routes[0]);
    take();
    CHECK(!held.num && !*said());
    reset();
}

void test_apply_fabrics(void)
{
    struct vmri_ctl_fabric local = { .fabric = 7, .name = "mine", .created = 1 };

    reset();
    set("fabrics/red", "id=7");
    set("fabrics/blue", "id=8 link=roce");
    CHECK(v.num_fabrics == 2 && v.fabrics[1].link == VMRI_LINK_ROCE);
    set("fabrics/blue", "banana");
    CHECK(v.num_fabrics == 2 && says("fabrics/blue"));
    set("fabrics/blue", "id=8 link=roce");
    v.delete_errno = EBUSY;
    mirror_remove(&m, "fabrics/blue");
    take();
    CHECK(v.num_fabrics == 2 && says("it stays, as one of this host alone"));
    v.delete_errno = 0;
    take();
    CHECK(v.num_fabrics == 2);
    mirror_remove(&m, "fabrics/red");
    take();
    CHECK(v.num_fabrics == 1 && v.fabrics[0].fabric == 8);

    /* The same name with another number is another one. */
    set("fabrics/green", "id=5");
    set("fabrics/green", "id=6");
    CHECK(v.num_fabrics == 2 && v.fabrics[1].fabric == 6 && !*said());

    /* A store that was lost deletes nothing. */
    wanted.same_store = false;
    mirror_remove(&m, "fabrics/green");
    take();
    CHECK(v.num_fabrics == 2);
    reset();

    /* What this host has by itself is not taken over. */
    v.fabrics[v.num_fabrics++] = local;
    set("fabrics/red", "id=7");
    CHECK(says("this host has another one with that number, \"mine\""));
    set("fabrics/red", "id=9");
    set("fabrics/mine", "id=10");
    CHECK(says("this host has another one with that name") && v.num_fabrics == 2);

    /* Routes that were there before it was in the store stay. */
    reset();
    strcpy(local.name, "red");
    v.fabrics[v.num_fabrics++] = local;
    route_by_hand("fe80::9");
    set("fabrics/red", "id=7");
    take();
    CHECK(v.num_routes == 1 && held.num == 1);
    reset();
}
