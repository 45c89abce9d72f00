/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this host has: the GIDs of its devices that other hosts can reach.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd.h"

static void add_gid(struct local *local, uint32_t fabric, const uint8_t gid[16])
{
    local->gids = xrealloc(local->gids, (local->num_gids + 1) * sizeof(*local->gids));
    local->gids[local->num_gids].fabric = fabric;
    memcpy(local->gids[local->num_gids++].gid, gid, 16);
}

/* 0 also when it goes meanwhile. */
static int read_device(struct local *local, const struct vmri_ctl_info *info)
{
    struct vmri_ctl_dump object = {
        .domid = info->domid, .dev_id = info->dev_id, .kind = VMRI_DUMP_GID,
    };
    int rc;

    while (!(rc = call_dump(&object)))
        if (is_unicast(object.u.gid.gid))
            add_gid(local, info->fabric, object.u.gid.gid);
    return rc == -ENOENT || rc == -ENODEV || rc == -ESRCH ? 0 : rc;
}

int compare_gids(const void *a, const void *b)
{
    const struct local_gid *x = a, *y = b;

    if (x->fabric != y->fabric)
        return x->fabric < y->fabric ? -1 : 1;
    return memcmp(x->gid, y->gid, 16);
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Put them in order, each once. */
static unsigned int tidy(void *array, unsigned int num, size_t size,
                         int (*compare)(const void *, const void *))
{
    char *p = array;
    unsigned int i, kept = 0;

    if (!num)
        return 0;
    qsort(array, num, size, compare);
    for (i = 0; i < num; i++)
        if (!i || compare(p + (kept - 1) * size, p + i * size))
            memmove(p + kept++ * size, p + i * size, size);
    return kept;
}

int local_read(struct local *local)
{
    struct vmri_ctl_info info = { .domid = 0 };
    int rc;

    *local = (struct local){ .gids = NULL };
    for (rc = call_info(&info); !rc; rc = call_info_next(&info)) {
        if (!info.uplink)
            continue;
        local->fabrics = xrealloc(local->fabrics, (local->num_fabrics + 1) *
                                  sizeof(*local->fabrics));
        local->fabrics[local->num_fabrics++] = info.fabric;
        rc = read_device(local, &info);
        if (rc)
            break;
    }
    local->num_gids = tidy(local->gids, local->num_gids, sizeof(*local->gids),
                           compare_gids);
    local->num_fabrics = tidy(local->fabrics, local->num_fabrics,
                              sizeof(*local->fabrics), compare_ids);
    return rc == -ENOENT ? 0 : rc;
}

void local_free(struct local *local)
{
    free(local->gids);
    free(local->fabrics);
    *local = (struct local){ .gids = NULL };
}

bool local_equal(const struct local *a, const struct local *b)
{
    unsigned int i;

    if (a->num_gids != b->num_gids || a->num_fabrics != b->num_fabrics)
        return false;
    for (i = 0; i < a->num_gids; i++)
        if (compare_gids(&a->gids[i], &b->gids[i]))
            return false;
    for (i = 0; i < a->num_fabrics; i++)
        if (a->fabrics[i] != b->fabrics[i])
            return false;
    return true;
}

bool local_has(const struct local *local, uint32_t fabric, const uint8_t gid[16])
{
    struct local_gid key = { .fabric = fabric };

    memcpy(key.gid, gid, sizeof(key.gid));
    return local->num_gids && bsearch(&key, local->gids, local->num_gids, sizeof(key),
                                      compare_gids);
}

bool local_is_in(const struct local *local, uint32_t fabric)
{
    return local->num_fabrics && bsearch(&fabric, local->fabrics, local->num_fabrics,
                                         sizeof(fabric), compare_ids);
}
