/* SPDX-License-Identifier: GPL-2.0-only */
/* A copy of what the store has under the prefix, whose keys are without it. */
#ifndef FABRICD_MIRROR_H
#define FABRICD_MIRROR_H

#include <stdbool.h>
#include <stdint.h>

#define KEY_MAX         200             /* bytes, without the 0 */
#define VALUE_MAX       (64U << 10)
#define MIRROR_MAX      200000U         /* keys */

struct entry {
    char *key, *value;
    int64_t mod;                /* the revision of the last change */
};

struct mirror {
    struct entry *entries;      /* in order of key */
    unsigned int num, room;
    int64_t revision;           /* that it is as of */
    uint64_t changes;           /* made to it so far */
};

void mirror_clear(struct mirror *mirror);
/* The index of the first one at or after a key. */
unsigned int mirror_position(const struct mirror *mirror, const char *key);
const struct entry *mirror_find(const struct mirror *mirror, const char *key);
/* -ENOSPC, -E2BIG, -EINVAL: a key or value that is none of ours; left out. */
int mirror_set(struct mirror *mirror, const char *key, const char *value,
               int64_t mod);
void mirror_remove(struct mirror *mirror, const char *key);
/* Does the key begin like this? */
bool key_in(const char *key, const char *folder);

#endif /* FABRICD_MIRROR_H */
