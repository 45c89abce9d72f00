/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the store's copy says: fabrics with their rules, and which host has what.
 *
 *   fabrics/NAME           id=N link=ib|roce [vni=N]
 *   rules/NAME             rules, one a line, in xl-vmri's words
 *   claims/NAME/GID        host=NAME gid=ADDRESS, of its adapter
 *   members/NAME/HOST      gid=ADDRESS
 *
 * Everything may be garbage: each value is checked as what a user types.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricd.h"

#define CLAIM_WORDS 2

struct fabric *map_fabric(const struct map *map, const char *name)
{
    unsigned int i;

    for (i = 0; i < map->num_fabrics; i++)
        if (!strcmp(map->fabrics[i].name, name))
            return &map->fabrics[i];
    return NULL;
}

struct fabric *map_fabric_id(const struct map *map, uint32_t id)
{
    unsigned int i;

    for (i = 0; i < map->num_fabrics; i++)
        if (map->fabrics[i].id == id)
            return &map->fabrics[i];
    return NULL;
}

/* A copy, of which words are cut. */
static int words_of(const char *value, char **copy, char **words, int max)
{
    *copy = xstrdup(value);
    return split_words(*copy, words, max);
}

static void read_fabric(struct map *map, const struct entry *e)
{
    struct fabric fabric = { .id = VMRI_FABRIC_ANY };
    const char *name = strchr(e->key, '/') + 1;
    char *copy, *words[4];
    int n;

    if (!is_fabric_name(name)) {
        report("a fabric cannot have this name");
        return;
    }
    strcpy(fabric.name, name);
    n = words_of(e->value, &copy, words, ARRAY_SIZE(words));
    if (n < 0)
        report("there are too many words");
    else if (!parse_fabric_words(n, words, &fabric))
        ;
    else if (fabric.id == VMRI_FABRIC_ANY)
        report("there is no id");
    else if (map_fabric_id(map, fabric.id))
        report("its id is that of %s", map_fabric_id(map, fabric.id)->name);
    else
        map->fabrics[map->num_fabrics++] = fabric;
    free(copy);
}

static void read_rules(struct map *map, const struct entry *e)
{
    struct fabric *fabric = map_fabric(map, strchr(e->key, '/') + 1);
    char *copy;

    if (!fabric) {
        report("there is no such fabric");
        return;
    }
    /* All or none: half of them may be worse than the old ones. */
    copy = xstrdup(e->value);
    fabric->ruled = parse_rules(copy, fabric);
    free(copy);
}

struct claim *map_claims(const struct map *map, const struct fabric *fabric,
                         unsigned int *num)
{
    unsigned int index = fabric - map->fabrics, low = 0, high = map->num_claims, first;

    while (low < high) {
        unsigned int middle = (low + high) / 2;

        if (map->claims[middle].fabric < index)
            low = middle + 1;
        else
            high = middle;
    }
    for (first = low; low < map->num_claims && map->claims[low].fabric == index; low++)
        ;
    *num = low - first;
    return map->claims + first;
}

bool parse_claim(const char *value, struct claim *claim)
{
    char *copy, *words[CLAIM_WORDS];
    int i, n = words_of(value, &copy, words, CLAIM_WORDS);
    bool ok = n >= 0, gid = false;

    *claim->host = '\0';
    for (i = 0; ok && i < n; i++) {
        if (!strncmp(words[i], "gid=", 4) && !gid) {
            ok = parse_address(words[i] + 4, claim->host_gid) >= 0 &&
                 is_unicast(claim->host_gid);
            gid = true;
        } else if (!strncmp(words[i], "host=", 5) && !*claim->host &&
                   is_host_name(words[i] + 5)) {
            strcpy(claim->host, words[i] + 5);
        } else {
            ok = false;
        }
    }
    free(copy);
    if (ok && gid)
        return true;
    report("\"%.100s\" is not gid=ADDRESS of an adapter, and host=NAME", value);
    return false;
}

const char *claim_words(const char *host, const uint8_t host_gid[16])
{
    static char text[HOST_SIZE + ADDRESS_SIZE + 16];

    snprintf(text, sizeof(text), "%s%s%sgid=%s", host ? "host=" : "",
             host ? host : "", host ? " " : "", address_text(host_gid));
    return text;
}

/*
 * "claims/NAME/REST" or "members/NAME/REST": the fabric and the rest, or false.  Of
 * fabrics that there are not nobody has to know more.
 */
static bool split_key(const struct map *map, const char *key, struct claim *claim,
                      const char **rest)
{
    char name[VMRI_FABRIC_NAME];
    const char *first = strchr(key, '/') + 1, *slash = strchr(first, '/');
    const struct fabric *fabric;

    if (!slash || (size_t)(slash - first) >= sizeof(name))
        return false;
    memcpy(name, first, slash - first);
    name[slash - first] = '\0';
    fabric = map_fabric(map, name);
    if (!fabric)
        return false;
    claim->fabric = fabric - map->fabrics;
    *rest = slash + 1;
    return true;
}

static void read_claim(struct map *map, const struct entry *e)
{
    struct claim claim = { .mod = e->mod };
    const char *gid;

    if (!split_key(map, e->key, &claim, &gid))
        return;
    if (parse_address(gid, claim.gid) < 0 || !is_unicast(claim.gid) ||
        strcmp(gid, gid_text(claim.gid))) {
        report("the key does not end with the address of a device");
        return;
    }
    claim.bad = !parse_claim(e->value, &claim);
    if (!claim.bad && !*claim.host) {
        report("no host is named");
        claim.bad = true;
    }
    map->claims[map->num_claims++] = claim;
}

static void read_member(struct map *map, const struct entry *e)
{
    struct claim claim = { .mod = e->mod };
    const char *host;

    if (!split_key(map, e->key, &claim, &host) || !parse_claim(e->value, &claim))
        return;
    if (!is_host_name(host) || *claim.host) {
        report("this is not the name of a host, or the value has one");
        return;
    }
    strcpy(claim.host, host);
    map->members[map->num_members++] = claim;
}

/* Each entry of a folder, of which there is room for all. */
static void read_all(struct map *map, const struct mirror *mirror, const char *folder,
                      void (*read)(struct map *map, const struct entry *e),
                      void **array, size_t size)
{
    unsigned int i = mirror_position(mirror, folder), end = i;

    while (end < mirror->num && key_in(mirror->entries[end].key, folder))
        end++;
    if (array)
        *array = xcalloc(end - i, size);
    for (; i < end; i++) {
        report_about(mirror->entries[i].key);
        read(map, &mirror->entries[i]);
    }
    report_about("");

}

void map_read(struct map *map, const struct mirror *mirror)
{
    *map = (struct map){ .fabrics = NULL };
    read_all(map, mirror, "fabrics/", read_fabric, (void **)&map->fabrics,
             sizeof(*map->fabrics));
    read_all(map, mirror, "rules/", read_rules, NULL, 0);
    read_all(map, mirror, "claims/", read_claim, (void **)&map->claims,
             sizeof(*map->claims));
    read_all(map, mirror, "members/", read_member, (void **)&map->members,
             sizeof(*map->members));
}

void map_free(struct map *map)
{
    unsigned int i;

    for (i = 0; i < map->num_fabrics; i++)
        free(map->fabrics[i].rules);
    free(map->fabrics);
    free(map->claims);
    free(map->members);
    *map = (struct map){ .fabrics = NULL };
}
