/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The copy of the store: an array in order of its keys.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd.h"

void mirror_clear(struct mirror *mirror)
{
    unsigned int i;

    for (i = 0; i < mirror->num; i++) {
        free(mirror->entries[i].key);
        free(mirror->entries[i].value);
    }
    free(mirror->entries);
    *mirror = (struct mirror){ .changes = mirror->changes + 1 };
}

unsigned int mirror_position(const struct mirror *mirror, const char *key)
{
    unsigned int low = 0, high = mirror->num;

    while (low < high) {
        unsigned int middle = (low + high) / 2;

        if (strcmp(mirror->entries[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct entry *mirror_find(const struct mirror *mirror, const char *key)
{
    unsigned int i = mirror_position(mirror, key);

    return i < mirror->num && !strcmp(mirror->entries[i].key, key)
               ? &mirror->entries[i] : NULL;
}

static struct entry *make_room(struct mirror *mirror, unsigned int at)
{
    if (mirror->num == mirror->room) {
        mirror->room = mirror->room ? 2 * mirror->room : 64;
        mirror->entries = xrealloc(mirror->entries,
                                   mirror->room * sizeof(*mirror->entries));
    }
    memmove(mirror->entries + at + 1, mirror->entries + at,
            (mirror->num - at) * sizeof(*mirror->entries));
    mirror->num++;
    return &mirror->entries[at];
}

int mirror_set(struct mirror *mirror, const char *key, const char *value,
               int64_t mod)
{
    unsigned int at = mirror_position(mirror, key);
    struct entry *e = &mirror->entries[at];

    if (strlen(key) > KEY_MAX || strlen(value) > VALUE_MAX)
        return -E2BIG;
    if (at == mirror->num || strcmp(e->key, key)) {
        if (mirror->num == MIRROR_MAX)
            return -ENOSPC;
        e = make_room(mirror, at);
        e->key = xstrdup(key);
    } else {
        free(e->value);
    }
    e->value = xstrdup(value);
    e->mod = mod;
    mirror->changes++;
    return 0;
}

void mirror_remove(struct mirror *mirror, const char *key)
{
    unsigned int at = mirror_position(mirror, key);
    struct entry *e = &mirror->entries[at];

    if (at == mirror->num || strcmp(e->key, key))
        return;
    free(e->key);
    free(e->value);
    mirror->num--;
    memmove(e, e + 1, (mirror->num - at) * sizeof(*e));
    mirror->changes++;
}

bool key_in(const char *key, const char *folder)
{
    return !strncmp(key, folder, strlen(folder));
}
