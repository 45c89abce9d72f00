/* SPDX-License-Identifier: GPL-2.0-only */
/* What values mean: map.c and words.c. */
#include <string.h>

#include "fabricd.h"
#include "test.h"

static struct mirror m;
static struct map map;

static void set(const char *key, const char *value)
{
    mirror_set(&m, key, value, 1);
}

static void read_all(void)
{
    map_free(&map);
    map_read(&map, &m);
}

static void clear(void)
{
    map_free(&map);
    mirror_clear(&m);
    said();
}

void test_map(void)
{
    const struct fabric *f;
    struct claim *c;
    unsigned int num;

    clear();
    set("fabrics/red", "id=7 link=roce vni=70");
    set("fabrics/blue", " id=0x10\n");
    set("rules/red", "ingress group=2 remote-group=1\n\n egress remote=10.0.0.0/8\n");
    set("claims/red/::ffff:10.0.0.2", "host=h2 gid=192.0.2.2");
    set("claims/red/2001:db8::1", "gid=2001:db8::2 host=h2");
    set("claims/blue/fe80::1", "host=h1 gid=192.0.2.1");
    set("members/red/h2", "gid=192.0.2.2");
    set("hosts/h2", "gid=192.0.2.2");
    set("history", "x");
    read_all();
    CHECK(!*said() && map.num_fabrics == 2 && map.num_claims == 3 && map.num_members == 1);
    f = map_fabric(&map, "red");
    CHECK(f && f->id == 7 && f->link == VMRI_LINK_ROCE && f->vni == 70 && f->ruled);
    CHECK(f->num_rules == 2 && f->rules[0].fabric == 7 && f->rules[1].bits == 104);
    CHECK(!strcmp(rule_text(&f->rules[0]), "ingress group=2 remote-group=1"));
    c = map_claims(&map, f, &num);
    CHECK(num == 2 && !strcmp(c[0].host, "h2") && c[1].gid[12] == 10);
    CHECK(!strcmp(claim_words(c[1].host, c[1].host_gid), "host=h2 gid=192.0.2.2"));
    f = map_fabric_id(&map, 16);
    CHECK(f && !strcmp(f->name, "blue") && f->link == VMRI_LINK_IB && !f->ruled);
    map_claims(&map, f, &num);
    CHECK(num == 1 && !map_fabric(&map, "green") && !map_fabric_id(&map, 8));
    clear();
}

void test_map_garbage(void)
{
    static const struct {
        const char *key, *value, *error;
    } bad[] = {
        { "fabrics/-a", "id=1", "cannot have this name" },
        { "fabrics/abcdefghijklmnopqrstuvwxyzabcdef", "id=1", "cannot have this name" },
        { "fabrics/", "id=1", "cannot have this name" },
        { "fabrics/a/b", "id=1", "cannot have this name" },
        { "fabrics/a", "", "there is no id" },
        { "fabrics/a", "id=16777216", "out of range" },
        { "fabrics/a", "id=-1", "is not a number" },
        { "fabrics/a", "id=1 id=2", "says what was said" },
        { "fabrics/a", "id=1 link=eth", "is not one of" },
        { "fabrics/a", "id=1 vni=3", "a VNI is for fabrics of link=roce" },
        { "fabrics/a", "id=1 link=roce vni=0", "out of range" },
        { "fabrics/a", "id=1 link=roce vni=3 x y", "too many words" },
        { "fabrics/a", "id=7", "" },
        { "rules/none", "ingress", "there is no such fabric" },
        { "rules/red", "allow", "a rule begins with ingress or egress" },
        { "rules/red", "ingress proto=ib", "no devices of that protocol" },
        { "rules/red", "ingress\nejrgess", "begins with" },
        { "rules/red", "ingress a b c d e f g h i", "too many words" },
        { "claims/red", "x", "" },
        { "claims/red/::1/2", "host=h gid=::2", "does not end with" },
        { "claims/red/ff02::1", "host=h gid=::2", "does not end with" },
        { "claims/red/0::1", "host=h gid=::2", "does not end with" },
        { "claims/red/10.0.0.1", "host=h gid=::2", "does not end with" },
        { "claims/red/::5", "gid=::2", "no host is named" },
        { "claims/red/::5", "host=h", "is not gid=ADDRESS" },
        { "claims/red/::5", "host=h gid=::", "is not gid=ADDRESS" },
        { "claims/red/::5", "host=h gid=ff00::1", "is not gid=ADDRESS" },
        { "claims/red/::5", "host=h gid=::1 gid=::2", "is not gid=ADDRESS" },
        { "claims/red/::5", "host=a/b gid=::1", "is not gid=ADDRESS" },
        { "claims/none/::5", "what", "" },
        { "claims/abcdefghijklmnopqrstuvwxyzabcdefghij/::5", "what", "" },
        { "members/red/a/b", "gid=::1", "not the name of a host" },
        { "members/red/a", "host=a gid=::1", "not the name of a host" },
    };
    unsigned int i, num;

    for (i = 0; i < ARRAY_SIZE(bad); i++) {
        const char *text;

        clear();
        set("fabrics/red", "id=7 link=roce");
        set(bad[i].key, bad[i].value);
        read_all();
        text = said();
        if (*bad[i].error ? !strstr(text, bad[i].error) || !strstr(text, bad[i].key)
                          : *text && !strstr(text, "its id is that of")) {
            printf("%s %s: %s\n", bad[i].key, bad[i].value, text);
            CHECK(false);
        }
        CHECK(map.num_fabrics == 1 && !map.fabrics[0].ruled && !map.num_members);
        map_claims(&map, &map.fabrics[0], &num);
        CHECK(num <= 1 && (!num || map.claims[0].bad));
    }
    clear();
}

void test_fabric_words(void)
{
    char *words[] = { "vni=5", "link=roce" }, text[] = " a\tb  c ", *out[3];
    struct fabric f = { .id = 0 };

    CHECK(parse_fabric_words(2, words, &f) && f.id == VMRI_FABRIC_ANY && f.vni == 5);
    f.id = 3;
    CHECK(!strcmp(fabric_words(&f), "id=3 link=roce vni=5"));
    CHECK(split_words(text, out, 3) == 3 && !strcmp(out[1], "b"));
    strcpy(text, "a b c d");
    CHECK(split_words(text, out, 3) == -1);
    CHECK(is_host_name("a-1.b_c") && !is_host_name("") && !is_host_name(".a"));
    said();
}
