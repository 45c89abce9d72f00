/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: fabrics, the networks that devices are attached to.  A device can only
 * name what is on its own.
 */
#include "internal.h"

static LIST_HEAD(fabrics);      /* by vmri_control_lock */

static struct vmri_fabric *fabric_make(uint32_t id)
{
    struct vmri_fabric *f = env_alloc(sizeof(*f));
    unsigned int i;

    if ( !f )
        return NULL;

    vmri_table_init(&f->lids, &vmri_format_lid, VMRI_LID_MAX + 1, NULL,
                    VMRI_RES_DEV);
    vmri_table_init(&f->mlids, &vmri_format_mlid, VMRI_MLIDS, NULL,
                    VMRI_RES_MCG);
    f->id = id;
    env_lock_init(&f->mcg_lock, LEVEL_FABRIC);
    for ( i = 0; i < VMRI_MCG_HASH; i++ )
        INIT_LIST_HEAD(&f->mcgs[i]);
    list_add(&f->list, &fabrics);

    return f;
}

struct vmri_fabric *vmri_fabric_get(uint32_t id)
{
    struct vmri_fabric *f;

    list_for_each_entry ( f, &fabrics, list )
        if ( f->id == id )
            goto found;

    f = fabric_make(id);
    if ( !f )
        return NULL;

 found:
    f->devs++;

    return f;
}

void vmri_fabric_put(struct vmri_fabric *f)
{
    if ( --f->devs )
        return;

    list_del(&f->list);
    vmri_table_fini(&f->lids);
    vmri_table_fini(&f->mlids);
    env_free(f);
}

static bool guid_taken(struct vmri_fabric *f, uint64_t guid)
{
    uint32_t index = 0, lid;
    const struct vmri_dev *dev;

    while ( (dev = vmri_table_next(&f->lids, &index, &lid)) != NULL )
        if ( dev->guid == guid )
            return true;

    return false;
}

int vmri_fabric_add(struct vmri_fabric *f, struct vmri_dev *dev, uint16_t want)
{
    uint32_t lid;
    int ret;

    if ( guid_taken(f, dev->guid) )
        return -EEXIST;

    ret = vmri_table_reserve(&f->lids, want ?: VMRI_HANDLE_ANY, &lid);
    if ( ret )
        return ret == -EBUSY ? -EEXIST : ret;

    dev->lid = lid;
    vmri_table_publish(&f->lids, lid, dev);

    return 0;
}

void vmri_fabric_remove(struct vmri_fabric *f, struct vmri_dev *dev)
{
    vmri_table_kill(&f->lids, dev->lid);
    vmri_table_release(&f->lids, dev->lid);
}

int vmri_fabric_move(struct vmri_fabric *f, struct vmri_dev *dev, uint16_t lid)
{
    uint32_t taken;
    int ret = vmri_table_reserve(&f->lids, lid, &taken);

    if ( ret )
        return ret == -EBUSY ? -EEXIST : ret;

    /* Who refers to it gives that back by its LID: so none does by now. */
    vmri_fabric_remove(f, dev);
    env_store(&dev->lid, lid);
    vmri_table_publish(&f->lids, lid, dev);

    return 0;
}

struct vmri_dev *vmri_fabric_peer(struct vmri_fabric *f, uint16_t lid)
{
    return vmri_table_get(&f->lids, lid);
}

struct vmri_dev *vmri_fabric_peer_from(struct vmri_fabric *f, uint32_t lid)
{
    struct vmri_dev *dev = NULL;
    uint32_t found;

    /* What the walk sees may go at once; what is then got may not. */
    while ( !dev && vmri_table_next(&f->lids, &lid, &found) )
        dev = vmri_fabric_peer(f, found);

    return dev;
}

bool vmri_fabric_hold(struct vmri_fabric *f, struct vmri_dev *dev)
{
    struct vmri_dev *found = vmri_fabric_peer(f, env_load(&dev->lid));

    if ( found && found != dev )
    {
        vmri_fabric_peer_put(found);
        found = NULL;
    }

    return found;
}

bool vmri_fabric_shows(const struct vmri_dev *dev, const struct vmri_dev *peer)
{
    return dev->domain == peer->domain ||
           !env_may_connect(dev->domain, peer->domain);
}

bool vmri_fabric_joins(struct vmri_qp *qp, const struct vmri_dev *to)
{
    if ( qp->dev->domain == to->domain || qp->joined == to->life )
        return true;

    if ( env_may_connect(qp->dev->domain, to->domain) )
        return false;

    qp->joined = to->life;

    return true;
}

void vmri_fabric_peer_put(struct vmri_dev *peer)
{
    vmri_table_put(&peer->fabric->lids, peer->lid);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
