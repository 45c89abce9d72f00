/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: fabrics, the networks that devices are attached to.  A device can only
 * name what is on its own.
 */
#include "internal.h"

static LIST_HEAD(fabrics);      /* by vmri_control_lock, in order of id */
static uint32_t nr_created;     /* by vmri_control_lock */

/* ---- which there are; all under vmri_control_lock ---- */

/* The first one at or after a number, or NULL. */
static struct vmri_fabric *fabric_from(uint32_t id)
{
    struct vmri_fabric *f;

    list_for_each_entry ( f, &fabrics, list )
        if ( f->id >= id )
            return f;

    return NULL;
}

static struct vmri_fabric *fabric_find(uint32_t id)
{
    struct vmri_fabric *f = fabric_from(id);

    return f && f->id == id ? f : NULL;
}

/* One that is not there yet, with no devices; NULL: memory. */
static struct vmri_fabric *fabric_make(uint32_t id, uint8_t link)
{
    struct vmri_fabric *f = env_alloc(sizeof(*f)), *next = fabric_from(id);
    unsigned int i;

    if ( !f )
        return NULL;

    if ( link == VMRI_LINK_ROCE && !(f->gids = vmri_gids_alloc()) )
    {
        env_free(f);
        return NULL;
    }

    vmri_table_init(&f->lids, &vmri_format_lid, VMRI_LID_MAX + 1, NULL,
                    VMRI_RES_DEV);
    vmri_table_init(&f->mlids, &vmri_format_mlid, VMRI_MLIDS, NULL,
                    VMRI_RES_MCG);
    f->id = id;
    env_lock_init(&f->mcg_lock, LEVEL_FABRIC);
    vmri_routes_init(&f->routes);
    vmri_services_init(&f->services);
    INIT_LIST_HEAD(&f->watchers);
    for ( i = 0; i < VMRI_MCG_HASH; i++ )
        INIT_LIST_HEAD(&f->mcgs[i]);
    list_add_tail(&f->list, next ? &next->list : &fabrics);

    return f;
}

/* Unless it is needed still. */
static void fabric_free(struct vmri_fabric *f)
{
    if ( f->devs || f->created )
        return;

    list_del(&f->list);
    vmri_rules_free(f);
    vmri_routes_free(&f->routes);
    vmri_table_fini(&f->lids);
    vmri_table_fini(&f->mlids);
    env_free(f->gids);
    env_free(f);
}

int vmri_fabric_get(uint32_t id, bool created, struct vmri_fabric **result)
{
    struct vmri_fabric *f = fabric_find(id);

    if ( created && !(f && f->created) )
        return -ENOENT;

    if ( !f )
        f = fabric_make(id, VMRI_LINK_IB);
    if ( !f )
        return -ENOMEM;

    f->devs++;
    *result = f;

    return 0;
}

struct vmri_fabric *vmri_fabric_created(uint32_t id)
{
    struct vmri_fabric *f = fabric_find(id);

    return f && f->created ? f : NULL;
}

void vmri_fabric_put(struct vmri_fabric *f)
{
    f->devs--;
    fabric_free(f);
}

/* ---- dom0's commands ---- */

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* None at all, or one that nobody takes for a number; zeros to the end. */
static bool name_valid(const char name[VMRI_FABRIC_NAME])
{
    unsigned int i, end = 0;

    while ( end < VMRI_FABRIC_NAME && name[end] )
        end++;

    for ( i = 0; i < end; i++ )
        if ( !letter(name[i]) &&
             (!i || !((name[i] >= '0' && name[i] <= '9') || name[i] == '-' ||
                      name[i] == '_' || name[i] == '.')) )
            return false;
    for ( ; i < VMRI_FABRIC_NAME; i++ )
        if ( name[i] )
            return false;

    return end < VMRI_FABRIC_NAME;
}

static bool name_taken(const char name[VMRI_FABRIC_NAME])
{
    const struct vmri_fabric *f;

    if ( !name[0] )
        return false;

    list_for_each_entry ( f, &fabrics, list )
        if ( !memcmp(f->name, name, VMRI_FABRIC_NAME) )
            return true;

    return false;
}

/* There are fewer fabrics than numbers.  0 is for those who name none. */
static uint32_t lowest_free(void)
{
    const struct vmri_fabric *f;
    uint32_t id = 1;

    list_for_each_entry ( f, &fabrics, list )
        if ( f->id == id )
            id++;

    return id;
}

static uint8_t link_of(const struct vmri_fabric *f)
{
    return f->gids ? VMRI_LINK_ROCE : VMRI_LINK_IB;
}

static int create(struct vmri_ctl_fabric *arg)
{
    const uint32_t id = arg->fabric == VMRI_FABRIC_ANY ? lowest_free()
                                                       : arg->fabric;
    struct vmri_fabric *f = fabric_find(id);

    if ( (f && f->created) || name_taken(arg->name) )
        return -EEXIST;
    if ( nr_created == VMRI_FABRICS || id > VMRI_FABRIC_MAX )
        return -ENOSPC;

    if ( f && link_of(f) != arg->link )
        return -EBUSY;

    if ( !f )
        f = fabric_make(id, arg->link);
    if ( !f )
        return -ENOMEM;

    f->created = true;
    nr_created++;
    memcpy(f->name, arg->name, sizeof(f->name));
    arg->fabric = id;

    return 0;
}

int vmri_fabric_create(struct vmri_ctl_fabric *arg)
{
    int ret;

    if ( (arg->fabric > VMRI_FABRIC_MAX && arg->fabric != VMRI_FABRIC_ANY) ||
         arg->created || arg->closed || arg->reserved0 || arg->devices ||
         arg->rules || arg->link > VMRI_LINK_ROCE || !name_valid(arg->name) )
        return -EINVAL;
    env_lock(&vmri_control_lock);
    ret = create(arg);
    env_unlock(&vmri_control_lock);

    return ret;
}

int vmri_fabric_delete(uint32_t id)
{
    struct vmri_fabric *f;
    int ret = 0;

    env_lock(&vmri_control_lock);
    f = vmri_fabric_created(id);
    if ( !f )
        ret = -ENOENT;
    else if ( f->devs )
        ret = -EBUSY;
    else
    {
        f->created = false;
        nr_created--;
        fabric_free(f);
    }
    env_unlock(&vmri_control_lock);

    return ret;
}

int vmri_fabric_list(struct vmri_ctl_fabric *arg)
{
    const struct vmri_fabric *f;

    env_lock(&vmri_control_lock);
    f = fabric_from(arg->fabric);
    if ( f )
    {
        *arg = (struct vmri_ctl_fabric){
            .fabric = f->id,
            .link = link_of(f),
            .created = f->created,
            .closed = f->rules.closed,
            .devices = f->devs,
            .rules = f->rules.nr,
        };
        memcpy(arg->name, f->name, sizeof(arg->name));
    }
    env_unlock(&vmri_control_lock);

    return f ? 0 : -ENOENT;
}

/* ---- devices ---- */

static bool guid_taken(struct vmri_fabric *f, uint64_t guid)
{
    uint32_t index = 0, lid;
    const struct vmri_dev *dev;

    while ( (dev = vmri_table_next(&f->lids, &index, &lid)) != NULL )
        if ( dev->guid == guid )
            return true;

    return false;
}

/* Have peers find it by a LID that is reserved. */
static void show(struct vmri_fabric *f, struct vmri_dev *dev, uint16_t lid)
{
    env_store(&dev->lid, lid);
    dev->lid_slot = vmri_table_slot(&f->lids, lid);
    vmri_table_publish(&f->lids, lid, dev);
}

int vmri_fabric_add(struct vmri_fabric *f, struct vmri_dev *dev, uint16_t want)
{
    uint32_t lid;
    int ret;

    if ( guid_taken(f, dev->guid) )
        return -EEXIST;

    ret = vmri_subnet_admits(f, dev);
    if ( ret )
        return ret;

    ret = vmri_table_reserve(&f->lids, want ?: VMRI_HANDLE_ANY, &lid);
    if ( ret )
        return ret == -EBUSY ? -EEXIST : ret;

    vmri_subnet_join(f, dev);
    show(f, dev, lid);
    vmri_subnet_ports_changed(f);

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

    /* Who refers to it gives that back by lid_slot: so none does by now. */
    vmri_fabric_remove(f, dev);
    show(f, dev, lid);
    vmri_gids_moved(dev);

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
    /* What is asked below is not older than this. */
    const uint64_t life = env_load_acquire(&to->life);

    if ( likely(qp->joined == life) )
        return true;

    if ( !vmri_fabric_shows(qp->dev, to) || !vmri_rules_allow(qp->dev, to) )
        return false;

    qp->joined = life;

    return true;
}

void vmri_fabric_peer_put(struct vmri_dev *peer)
{
    vmri_slot_put(peer->lid_slot);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
