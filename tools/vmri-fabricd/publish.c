/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the store is to say of this host: that it is there, which fabrics it has
 * devices in, and which GIDs they have.
 *
 *   hosts/HOST             gid=ADDRESS; under the lease, while the daemon is heard of
 *
 * Claims are not under the lease: a host that is not heard of keeps them, and loses
 * one only to another host that has the GID then.  All that is written is under the
 * condition that the host's key is, by the lease: one that was away for too long
 * changes nothing before it is back.
 */
#include <errno.h>
#include <string.h>

#include "etcd.h"

/* A key of this host's, or one that it may have. */
struct place {
    char key[KEY_MAX + 64];
};

static struct place host_key(const char *host)
{
    struct place p;

    snprintf(p.key, sizeof(p.key), "hosts/%s", host);
    return p;
}

static struct place claim_key(const struct fabric *fabric, const uint8_t gid[16])
{
    struct place p;

    snprintf(p.key, sizeof(p.key), "claims/%s/%s", fabric->name, gid_text(gid));
    return p;
}

static struct place member_key(const struct fabric *fabric, const char *host)
{
    struct place p;

    snprintf(p.key, sizeof(p.key), "members/%s/%s", fabric->name, host);
    return p;
}

/* Write a value, or for NULL delete, what was last changed at a revision. */
static int change(const struct self *self, const struct fabric *fabric, const char *key,
                  int64_t mod, const char *value, const char *gone_host, bool *again)
{
    struct place fabric_key;
    struct etcd_txn txn;
    bool done;
    int rc;

    etcd_txn_begin(&txn);
    etcd_if_mod(&txn, key, mod);
    etcd_if_lease(&txn, host_key(self->host).key, self->lease);
    if (gone_host)
        etcd_if_mod(&txn, host_key(gone_host).key, 0);
    if (value) {
        snprintf(fabric_key.key, sizeof(fabric_key.key), "fabrics/%s", fabric->name);
        etcd_if_there(&txn, fabric_key.key);
        etcd_put(&txn, key, value, 0);
    } else {
        etcd_delete(&txn, key);
    }
    rc = etcd_commit(&txn, &done);
    if (!rc && !done)
        *again = true;
    return rc;
}

bool host_is_published(const struct self *self, const struct mirror *mirror)
{
    return mirror_find(mirror, host_key(self->host).key);
}

int publish_host(const struct self *self, const struct mirror *mirror)
{
    struct place p = host_key(self->host);
    const struct entry *e = mirror_find(mirror, p.key);
    const char *value = claim_words(NULL, self->gid);
    struct etcd_txn txn;
    bool done;
    int rc;

    /* The same one with the same adapter: its daemon was started again. */
    if (e && strcmp(e->value, value)) {
        report("host %s is there, with %s: set another name for this one, or wait until "
               "that one's lease ends", self->host, e->value);
        return -EBUSY;
    }
    etcd_txn_begin(&txn);
    etcd_if_mod(&txn, p.key, e ? e->mod : 0);
    etcd_put(&txn, p.key, value, self->lease);
    rc = etcd_commit(&txn, &done);
    return rc ? rc : done ? 0 : -EBUSY;
}

/* A GID that this host has. */
static int claim_gid(const struct self *self, const struct fabric *fabric,
                     const struct mirror *mirror, const uint8_t gid[16], bool *again)
{
    struct place p = claim_key(fabric, gid);
    const struct entry *e = mirror_find(mirror, p.key);
    const char *value = claim_words(self->host, self->gid);
    struct claim claim = { .bad = false };

    if (!e)
        return change(self, fabric, p.key, 0, value, NULL, again);
    if (!strcmp(e->value, value))
        return 0;
    if (!parse_claim(e->value, &claim))
        return 0;
    if (!strcmp(claim.host, self->host))
        return change(self, fabric, p.key, e->mod, value, NULL, again);
    if (mirror_find(mirror, host_key(claim.host).key)) {
        report("a device of fabric %s has the GID %s, which host %s has claimed: other "
               "hosts do not find it here", fabric->name, gid_text(gid), claim.host);
        return 0;
    }
    return change(self, fabric, p.key, e->mod, value, claim.host, again);
}

static int join(const struct self *self, const struct fabric *fabric,
                const struct mirror *mirror, bool *again)
{
    struct place p = member_key(fabric, self->host);
    const struct entry *e = mirror_find(mirror, p.key);
    const char *value = claim_words(NULL, self->gid);

    if (e && !strcmp(e->value, value))
        return 0;
    return change(self, fabric, p.key, e ? e->mod : 0, value, NULL, again);
}

/* What is this host's and should not be. */
static int withdraw(const struct self *self, const struct map *map,
                    const struct local *local, bool *again)
{
    unsigned int i;
    int rc = 0;

    for (i = 0; i < map->num_claims && !rc; i++) {
        const struct claim *c = &map->claims[i];
        const struct fabric *f = &map->fabrics[c->fabric];

        if (!c->bad && !strcmp(c->host, self->host) && !local_has(local, f->id, c->gid))
            rc = change(self, f, claim_key(f, c->gid).key, c->mod, NULL, NULL, again);
    }
    for (i = 0; i < map->num_members && !rc; i++) {
        const struct claim *c = &map->members[i];
        const struct fabric *f = &map->fabrics[c->fabric];

        if (!strcmp(c->host, self->host) && !local_is_in(local, f->id))
            rc = change(self, f, member_key(f, c->host).key, c->mod, NULL, NULL, again);
    }
    return rc;
}

int publish(const struct self *self, const struct map *map,
            const struct mirror *mirror, const struct local *local, bool *again)
{
    unsigned int i;
    int rc;

    *again = false;
    rc = withdraw(self, map, local, again);
    for (i = 0; i < local->num_fabrics && !rc; i++) {
        const struct fabric *f = map_fabric_id(map, local->fabrics[i]);

        if (f)
            rc = join(self, f, mirror, again);
    }
    for (i = 0; i < local->num_gids && !rc; i++) {
        const struct fabric *f = map_fabric_id(map, local->gids[i].fabric);

        if (f)
            rc = claim_gid(self, f, mirror, local->gids[i].gid, again);
    }
    return rc;
}
