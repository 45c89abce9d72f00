/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: which device of a RoCE fabric has which GIDs.
 *
 * A guest's driver says which, as its network interface gets addresses and loses
 * them.  A GID is its first claimant's until that gives it up.  From there on all
 * is as on other fabrics: what is found for a GID is the LID by which VMRI itself
 * knows the device, and which no guest of such a fabric sees.
 */
#include "internal.h"

struct vmri_gids *vmri_gids_alloc(void)
{
    struct vmri_gids *gids = env_alloc(sizeof(*gids));
    unsigned int i;

    if ( !gids )
        return NULL;

    env_lock_init(&gids->lock, LEVEL_GID);
    gids->version = vmri_new_life();
    gids->salt = env_now();
    for ( i = 0; i < VMRI_GID_HASH; i++ )
        INIT_LIST_HEAD(&gids->chain[i]);

    return gids;
}

int vmri_gid_table_alloc(struct vmri_dev *dev)
{
    struct vmri_gid_table *t;
    unsigned int i;

    if ( vmri_domain_charge(dev->owner, VMRI_RES_BYTES, sizeof(*t)) )
        return -ENOMEM;

    t = env_alloc(sizeof(*t));
    if ( !t )
    {
        vmri_domain_uncharge(dev->owner, VMRI_RES_BYTES, sizeof(*t));
        return -ENOMEM;
    }

    for ( i = 0; i < VMRI_MAX_GIDS; i++ )
    {
        INIT_LIST_HEAD(&t->entry[i].chain);
        t->entry[i].dev = dev;
    }
    dev->gids = t;

    return 0;
}

void vmri_gid_table_free(struct vmri_dev *dev)
{
    if ( !dev->gids )
        return;

    env_free(dev->gids);
    vmri_domain_uncharge(dev->owner, VMRI_RES_BYTES, sizeof(*dev->gids));
}

/* ---- by gids->lock ---- */

static struct list_head *chain_of(struct vmri_gids *gids,
                                  const uint64_t word[2])
{
    uint64_t hash = (word[0] ^ gids->salt) * 0x9e3779b97f4a7c15ULL;

    hash = (hash ^ (hash >> 32) ^ word[1]) * 0x9e3779b97f4a7c15ULL;

    return &gids->chain[(hash >> 40) % VMRI_GID_HASH];
}

static struct vmri_gid *find(struct vmri_gids *gids, const uint64_t word[2])
{
    struct vmri_gid *g;

    list_for_each_entry ( g, chain_of(gids, word), chain )
        if ( g->word[0] == word[0] && g->word[1] == word[1] )
            return g;

    return NULL;
}

static void set(struct vmri_gids *gids, struct vmri_gid *g,
                const uint64_t word[2])
{
    list_del(&g->chain);
    INIT_LIST_HEAD(&g->chain);
    env_store(&g->word[0], word[0]);
    env_store(&g->word[1], word[1]);
    if ( word[0] || word[1] )
        list_add(&g->chain, chain_of(gids, word));
    env_store(&gids->version, vmri_new_life());
}

/* ---- a device's ---- */

/*
 * Rules name devices by their GIDs, too.  Who reaches this one asks them again: two
 * devices may talk to each other, or not, so it need not ask about others itself.
 */
static void changed(struct vmri_dev *dev)
{
    env_store_release(&dev->life, vmri_new_life());
    env_store_release(&dev->port.version, vmri_new_life());
}

static int claim(struct vmri_dev *dev, struct vmri_gid *g,
                 const uint64_t word[2])
{
    struct vmri_gids *gids = dev->fabric->gids;
    const struct vmri_gid *other;
    int ret = 0;

    env_lock(&gids->lock);
    other = find(gids, word);
    if ( other && other->dev != dev )
        ret = -EEXIST;
    else
        set(gids, g, word);
    env_unlock(&gids->lock);

    return ret;
}

int vmri_gid_set(struct vmri_dev *dev, const struct vmri_gid_set *arg)
{
    const uint64_t word[2] = { vmri_be_word(arg->gid),
                               vmri_be_word(arg->gid + 8) };
    int ret = -ENODEV;

    if ( !dev->gids )
        return -EOPNOTSUPP;
    if ( arg->index >= VMRI_MAX_GIDS || arg->reserved ||
         vmri_gid_is_group(arg->gid) )
        return -EINVAL;

    env_lock(&dev->lock);
    if ( dev->in_use && !dev->closing )
        ret = claim(dev, &dev->gids->entry[env_nospec(arg->index,
                                                      VMRI_MAX_GIDS)], word);
    env_unlock(&dev->lock);

    if ( !ret )
        changed(dev);

    return ret;
}

void vmri_gids_forget(struct vmri_dev *dev)
{
    static const uint64_t none[2];
    struct vmri_gids *gids = dev->fabric->gids;
    unsigned int i;

    if ( !dev->gids )
        return;

    env_lock(&gids->lock);
    for ( i = 0; i < VMRI_MAX_GIDS; i++ )
        set(gids, &dev->gids->entry[i], none);
    env_unlock(&gids->lock);
}

void vmri_gids_moved(struct vmri_dev *dev)
{
    struct vmri_gids *gids = dev->fabric->gids;

    if ( !gids )
        return;

    env_lock(&gids->lock);
    env_store(&gids->version, vmri_new_life());
    env_unlock(&gids->lock);
}

bool vmri_gid_get(const struct vmri_dev *dev, unsigned int index,
                  uint8_t gid[16])
{
    const struct vmri_gid *g;
    uint64_t word[2];

    if ( index >= VMRI_MAX_GIDS )
        return false;

    g = &dev->gids->entry[env_nospec(index, VMRI_MAX_GIDS)];
    word[0] = env_load(&g->word[0]);
    word[1] = env_load(&g->word[1]);
    vmri_put_be(gid, word[0], 8);
    vmri_put_be(gid + 8, word[1], 8);

    return word[0] || word[1];
}

/* An entry that changes meanwhile is the device's own doing. */
bool vmri_gid_within(const struct vmri_dev *dev, const uint64_t prefix[2],
                     const uint64_t mask[2])
{
    unsigned int i;

    for ( i = 0; dev->gids && i < VMRI_MAX_GIDS; i++ )
    {
        const struct vmri_gid *g = &dev->gids->entry[i];
        const uint64_t word[2] = { env_load(&g->word[0]),
                                   env_load(&g->word[1]) };

        if ( (word[0] || word[1]) && !((word[0] ^ prefix[0]) & mask[0]) &&
             !((word[1] ^ prefix[1]) & mask[1]) )
            return true;
    }

    return false;
}

/* ---- looking up ---- */

static uint16_t look_up(struct vmri_gids *gids, const uint64_t word[2],
                        uint64_t *version)
{
    const struct vmri_gid *g;
    uint16_t lid;

    env_lock(&gids->lock);
    g = find(gids, word);
    lid = g ? env_load(&g->dev->lid) : 0;
    *version = gids->version;
    env_unlock(&gids->lock);

    return lid;
}

uint16_t vmri_gid_find(struct vmri_fabric *f, const uint8_t gid[16])
{
    const uint64_t word[2] = { vmri_be_word(gid), vmri_be_word(gid + 8) };
    uint64_t version;

    return look_up(f->gids, word, &version);
}

uint16_t vmri_gid_route(struct vmri_qp *qp, const uint8_t gid[16])
{
    const uint64_t word[2] = { vmri_be_word(gid), vmri_be_word(gid + 8) };
    struct vmri_gids *gids = qp->dev->fabric->gids;
    struct vmri_gid_lid *last = &qp->gid_lid;

    if ( last->version != env_load(&gids->version) ||
         last->word[0] != word[0] || last->word[1] != word[1] )
    {
        last->lid = look_up(gids, word, &last->version);
        last->word[0] = word[0];
        last->word[1] = word[1];
    }

    return last->lid;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
