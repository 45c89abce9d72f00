/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: multicast groups: which there are, and who is in them.
 *
 * Every membership pays for a group, since it may be the last that keeps one:
 * so nobody can leave memory behind that others did not pay for.
 */
#include "internal.h"

static bool mgid_valid(const uint8_t mgid[16])
{
    return mgid[0] == 0xff;
}

static bool same_mgid(const uint8_t a[16], const uint8_t b[16])
{
    return !memcmp(a, b, 16);
}

static bool mlid_valid(uint16_t mlid)
{
    return mlid >= VMRI_MLID_MIN && mlid <= VMRI_MLID_MAX;
}

/* Its handle in the fabric's table. */
static uint32_t mlid_index(uint16_t mlid)
{
    return mlid - VMRI_MLID_MIN;
}

/* ---- groups, by fabric->mcg_lock ---- */

/* FNV-1a. */
static struct list_head *chain_of(struct vmri_fabric *f,
                                  const uint8_t mgid[16])
{
    uint32_t hash = 2166136261U;
    unsigned int i;

    for ( i = 0; i < 16; i++ )
        hash = (hash ^ mgid[i]) * 16777619U;

    return &f->mcgs[(hash ^ hash >> 16) % VMRI_MCG_HASH];
}

static struct vmri_group *group_find(struct vmri_fabric *f,
                                     const uint8_t mgid[16])
{
    struct vmri_group *g;

    list_for_each_entry ( g, chain_of(f, mgid), chain )
        if ( same_mgid(g->attr.mgid, mgid) )
            return g;

    return NULL;
}

/* Make a group without users; with the lowest free MLID for 0. */
static int group_make(struct vmri_fabric *f, const uint8_t mgid[16],
                      uint16_t mlid, struct vmri_group **result)
{
    uint32_t index = mlid ? mlid_index(mlid) : VMRI_HANDLE_ANY;
    struct vmri_group *g = env_alloc(sizeof(*g));
    int ret;

    if ( !g )
        return -ENOMEM;

    ret = vmri_table_reserve(&f->mlids, index, &index);
    if ( ret )
    {
        env_free(g);
        return ret;
    }

    memcpy(g->attr.mgid, mgid, sizeof(g->attr.mgid));
    g->attr.mlid = VMRI_MLID_MIN + index;
    env_lock_init(&g->lock, LEVEL_GROUP);
    g->next = 1;
    list_add(&g->chain, chain_of(f, mgid));
    vmri_table_publish(&f->mlids, index, g);
    *result = g;

    return 0;
}

/*
 * Senders refer to it for a step at most, so waiting for them is short; the
 * lock is kept meanwhile, for who attaches again would find the MLID taken.
 */
static void group_free(struct vmri_fabric *f, struct vmri_group *g)
{
    const uint32_t index = mlid_index(g->attr.mlid);

    list_del(&g->chain);
    vmri_table_kill(&f->mlids, index);
    vmri_table_release(&f->mlids, index);
    env_free(g);
}

/* On a RoCE fabric, groups have no number that guests know. */
static struct vmri_group *group_get_by_mgid(struct vmri_fabric *f,
                                            const uint8_t mgid[16])
{
    struct vmri_group *g;

    env_lock(&f->mcg_lock);
    g = group_find(f, mgid);
    if ( g )
        g = vmri_table_get(&f->mlids, mlid_index(g->attr.mlid));
    env_unlock(&f->mcg_lock);

    return g;
}

struct vmri_group *vmri_group_get(struct vmri_fabric *f,
                                  const struct vmri_av *av)
{
    struct vmri_group *g;

    if ( f->gids )
        return group_get_by_mgid(f, av->dgid);

    if ( !mlid_valid(av->dlid) )
        return NULL;

    g = vmri_table_get(&f->mlids, mlid_index(av->dlid));
    if ( g && !same_mgid(g->attr.mgid, av->dgid) )
    {
        vmri_group_put(f, g);
        g = NULL;
    }

    return g;
}

void vmri_group_put(struct vmri_fabric *f, struct vmri_group *g)
{
    vmri_table_put(&f->mlids, mlid_index(g->attr.mlid));
}

/* ---- memberships, by fabric->mcg_lock ---- */

static struct vmri_membership *membership_find(struct vmri_dev *dev,
                                               const uint8_t mgid[16])
{
    struct vmri_membership *m;

    list_for_each_entry ( m, &dev->memberships, list )
        if ( same_mgid(m->group->attr.mgid, mgid) )
            return m;

    return NULL;
}

/* What a membership costs: itself, and the group. */
static int membership_charge(struct vmri_dev *dev)
{
    int ret = vmri_charge(dev, VMRI_RES_MCG, 1);

    if ( !ret )
    {
        ret = vmri_charge(dev, VMRI_RES_BYTES, sizeof(struct vmri_group));
        if ( ret )
            vmri_uncharge(dev, VMRI_RES_MCG, 1);
    }

    return ret;
}

static void membership_free(struct vmri_dev *dev, struct vmri_membership *m)
{
    vmri_free(dev, m, sizeof(*m));
    vmri_uncharge(dev, VMRI_RES_BYTES, sizeof(struct vmri_group));
    vmri_uncharge(dev, VMRI_RES_MCG, 1);
}

/* A membership in no group yet. */
static int membership_alloc(struct vmri_dev *dev, struct vmri_membership **m)
{
    int ret = membership_charge(dev);

    if ( ret )
        return ret;

    *m = vmri_alloc(dev, sizeof(**m));
    if ( !*m )
    {
        membership_free(dev, NULL);
        return -ENOMEM;
    }

    return 0;
}

/* Show it, if the device takes any more, and would not miss this one. */
static int membership_link(struct vmri_dev *dev, struct vmri_membership *m,
                           struct vmri_group *g)
{
    int ret = -ENODEV;

    env_lock(&dev->lock);
    if ( dev->in_use && !dev->closing )
    {
        m->group = g;
        g->users++;
        list_add(&m->list, &dev->memberships);
        ret = 0;
    }
    env_unlock(&dev->lock);

    return ret;
}

/*
 * The device's membership in a group, both made when new.  It goes with the
 * next membership_put that finds it unused.
 */
static int membership_get(struct vmri_dev *dev, const uint8_t mgid[16],
                          uint16_t mlid, struct vmri_membership **result)
{
    struct vmri_fabric *f = dev->fabric;
    struct vmri_group *g = group_find(f, mgid);
    int ret;

    if ( g && mlid && g->attr.mlid != mlid )
        return -EINVAL;

    *result = membership_find(dev, mgid);
    if ( *result )
        return 0;

    ret = membership_alloc(dev, result);
    if ( ret )
        return ret;

    if ( !g )
        ret = group_make(f, mgid, mlid, &g);
    if ( !ret )
    {
        ret = membership_link(dev, *result, g);
        if ( ret && !g->users )
            group_free(f, g);
    }
    if ( ret )
        membership_free(dev, *result);

    return ret;
}

static void membership_put(struct vmri_dev *dev, struct vmri_membership *m)
{
    struct vmri_group *g = m->group;

    if ( m->joined || m->qps )
        return;

    list_del(&m->list);
    if ( !--g->users )
        group_free(dev->fabric, g);
    membership_free(dev, m);
}

/* ---- members ---- */

static bool attributes_valid(const struct vmri_mcg *arg)
{
    return (arg->pkey & 0x7fff) && !(arg->flow_label >> 20) &&
           arg->mtu >= 1 && arg->mtu <= 5 && arg->rate < 64 && arg->sl < 16 &&
           arg->packet_life < 64 && arg->scope < 16;
}

/* The ways to be a member that a command names. */
static bool join_valid(const struct vmri_mcg *arg)
{
    return arg->join && !(arg->join & ~VMRI_JOIN_ALL) && !arg->reserved;
}

static int check_create(const struct vmri_mcg *arg)
{
    if ( !mgid_valid(arg->mgid) || (arg->mlid && !mlid_valid(arg->mlid)) ||
         arg->create > 1 || (arg->create && !attributes_valid(arg)) ||
         !join_valid(arg) )
        return -EINVAL;

    return 0;
}

/*
 * The partition whose broadcast group a MGID names, or 0 (RFC 4391, 4):
 * ff1S:401b:PKEY::ffff:ffff, S being the scope.
 */
static uint16_t broadcast_pkey(const uint8_t mgid[16])
{
    static const uint8_t rest[10] = { [6] = 0xff, 0xff, 0xff, 0xff };
    const uint16_t pkey = mgid[4] << 8 | mgid[5];

    return mgid[0] == 0xff && (mgid[1] & 0xf0) == 0x10 && mgid[2] == 0x40 &&
           mgid[3] == 0x1b && (pkey & 0x8000) &&
           !memcmp(mgid + 6, rest, sizeof(rest)) ? pkey : 0;
}

static void set_broadcast(struct vmri_mcg *arg, uint16_t pkey)
{
    arg->pkey = pkey;
    arg->qkey = VMRI_BROADCAST_QKEY;
    arg->flow_label = 0;
    arg->mtu = VMRI_BROADCAST_MTU;
    arg->rate = VMRI_BROADCAST_RATE;
    arg->sl = 0;
    arg->traffic_class = 0;
    arg->hop_limit = 0;
    arg->packet_life = VMRI_BROADCAST_LIFE;
    arg->scope = arg->mgid[1] & 0xf;
}

/*
 * What the group is that there is, or is to be.  A broadcast group is there for
 * whoever joins, and nobody makes it another; one of listeners alone has no
 * attributes to join with.
 */
static int choose_attributes(const struct vmri_dev *dev,
                             const struct vmri_group *g, struct vmri_mcg *arg)
{
    const uint16_t broadcast = broadcast_pkey(arg->mgid);
    uint16_t pkey = arg->pkey;

    if ( broadcast )
    {
        set_broadcast(arg, broadcast);
        pkey = broadcast;
    }
    else if ( g && g->attr.members )
        pkey = g->attr.pkey;
    else if ( !arg->create )
        return -ENOENT;

    return vmri_port_in_partition(dev, pkey) ? 0 : -EPERM;
}

/* The first member gives the group its attributes, the others get them. */
static void join(struct vmri_fabric *f, struct vmri_membership *m,
                 struct vmri_mcg *arg)
{
    struct vmri_mcg *attr = &m->group->attr;
    const uint8_t create = arg->create, states = arg->join;
    const uint16_t mlid = attr->mlid;

    if ( !attr->members )
    {
        *attr = *arg;
        attr->mlid = mlid;
        attr->members = 0;
        attr->create = 0;
        attr->join = 0;
    }

    if ( !m->joined && ++attr->members == 1 )
        vmri_subnet_changed(f);
    m->joined |= states;
    *arg = *attr;
    arg->create = create;
    arg->join = states;
    arg->joined = m->joined;
}

int vmri_mcg_create(struct vmri_dev *dev, struct vmri_mcg *arg)
{
    struct vmri_fabric *f = dev->fabric;
    struct vmri_membership *m;
    int ret = check_create(arg);

    if ( ret )
        return ret;

    env_lock(&f->mcg_lock);

    ret = choose_attributes(dev, group_find(f, arg->mgid), arg);
    if ( !ret )
        ret = membership_get(dev, arg->mgid, arg->mlid, &m);
    if ( !ret )
    {
        if ( m->joined & arg->join )
            ret = -EEXIST;
        else
            join(f, m, arg);
    }

    env_unlock(&f->mcg_lock);

    return ret;
}

static void leave(struct vmri_dev *dev, struct vmri_membership *m,
                  uint8_t states)
{
    m->joined &= ~states;
    if ( m->joined )
        return;

    if ( !--m->group->attr.members )
        vmri_subnet_changed(dev->fabric);
    membership_put(dev, m);
}

int vmri_mcg_destroy(struct vmri_dev *dev, const struct vmri_mcg *arg)
{
    struct vmri_fabric *f = dev->fabric;
    struct vmri_membership *m;
    int ret = 0;

    if ( !mgid_valid(arg->mgid) || !join_valid(arg) )
        return -EINVAL;

    env_lock(&f->mcg_lock);
    m = membership_find(dev, arg->mgid);
    if ( !m || (m->joined & arg->join) != arg->join )
        ret = -ENOENT;
    else if ( arg->mlid && arg->mlid != m->group->attr.mlid )
        ret = -EINVAL;
    else
        leave(dev, m, arg->join);
    env_unlock(&f->mcg_lock);

    return ret;
}

unsigned int vmri_mcg_leave(struct vmri_dev *dev, unsigned int max)
{
    struct vmri_fabric *f = dev->fabric;
    struct vmri_membership *m, *next;
    unsigned int n = 0;

    env_lock(&f->mcg_lock);
    list_for_each_entry_safe ( m, next, &dev->memberships, list )
    {
        if ( n == max )
            break;
        if ( m->joined )
        {
            leave(dev, m, VMRI_JOIN_ALL);
            n++;
        }
    }
    env_unlock(&f->mcg_lock);

    return n;
}

/* ---- queries ---- */

/* The group that a query names, if it has members.  By fabric->mcg_lock. */
static struct vmri_group *queried(struct vmri_fabric *f,
                                  const struct vmri_mcg_query *arg)
{
    uint32_t index, handle;
    struct vmri_group *g;

    if ( arg->flags & VMRI_MCG_BY_MGID )
    {
        g = group_find(f, arg->group.mgid);
        return g && g->attr.members ? g : NULL;
    }

    index = mlid_valid(arg->group.mlid) ? mlid_index(arg->group.mlid)
            : arg->group.mlid < VMRI_MLID_MIN ? 0 : VMRI_MLIDS;
    do {
        g = vmri_table_next(&f->mlids, &index, &handle);
    } while ( g && !g->attr.members );

    return g;
}

/* How a device is in a group.  By fabric->mcg_lock. */
static uint8_t joined(struct vmri_dev *dev, const struct vmri_group *g)
{
    const struct vmri_membership *m = membership_find(dev, g->attr.mgid);

    return m ? m->joined : 0;
}

int vmri_mcg_query(struct vmri_dev *dev, struct vmri_mcg_query *arg)
{
    struct vmri_fabric *f = dev->fabric;
    struct vmri_dev *peer = NULL;
    const struct vmri_group *g;

    if ( (arg->flags & ~VMRI_MCG_BY_MGID) || arg->reserved0 ||
         arg->reserved1 || ((arg->flags & VMRI_MCG_BY_MGID) &&
                            !mgid_valid(arg->group.mgid)) )
        return -EINVAL;

    if ( arg->lid )
        peer = vmri_fabric_peer(f, arg->lid);

    env_lock(&f->mcg_lock);
    g = queried(f, arg);
    if ( g )
    {
        arg->group = g->attr;
        if ( !arg->lid )
            arg->group.joined = joined(dev, g);
        else if ( peer && vmri_fabric_shows(dev, peer) )
            arg->group.joined = joined(peer, g);
    }
    env_unlock(&f->mcg_lock);

    if ( peer )
        vmri_fabric_peer_put(peer);

    return g ? 0 : -ENOENT;
}

/* ---- queue pairs ---- */

static int check_attach(const struct vmri_fabric *f,
                        const struct vmri_mcg_qp *arg)
{
    const bool group = f->gids ? vmri_gid_is_group(arg->mgid) && !arg->mlid
                               : mgid_valid(arg->mgid) &&
                                 mlid_valid(arg->mlid);

    return arg->reserved || !group ? -EINVAL : 0;
}

static struct vmri_attachment *attachment_find(struct vmri_qp *qp,
                                               const uint8_t mgid[16])
{
    struct vmri_attachment *a;

    list_for_each_entry ( a, &qp->attachments, list )
        if ( same_mgid(a->membership->group->attr.mgid, mgid) )
            return a;

    return NULL;
}

static int attachment_alloc(struct vmri_dev *dev, struct vmri_attachment **a)
{
    int ret = vmri_charge(dev, VMRI_RES_MCG_QP, 1);

    if ( ret )
        return ret;

    *a = vmri_alloc(dev, sizeof(**a));
    if ( !*a )
    {
        vmri_uncharge(dev, VMRI_RES_MCG_QP, 1);
        return -ENOMEM;
    }

    return 0;
}

static void attachment_free(struct vmri_dev *dev, struct vmri_attachment *a)
{
    vmri_free(dev, a, sizeof(*a));
    vmri_uncharge(dev, VMRI_RES_MCG_QP, 1);
}

/* From here on senders find it. */
static void attachment_link(struct vmri_attachment *a,
                            struct vmri_membership *m, struct vmri_qp *qp)
{
    struct vmri_group *g = m->group;

    a->membership = m;
    a->qp = qp;
    list_add(&a->list, &qp->attachments);
    m->qps++;

    env_lock(&g->lock);
    a->number = g->next++;
    vmri_mcgtree_add(&g->root, a);
    env_unlock(&g->lock);
}

/* On return no sender finds it; one may be at the QP, to which it refers. */
static void detach(struct vmri_dev *dev, struct vmri_attachment *a)
{
    struct vmri_membership *m = a->membership;
    struct vmri_group *g = m->group;

    env_lock(&g->lock);
    vmri_mcgtree_remove(&g->root, a);
    env_unlock(&g->lock);

    list_del(&a->list);
    m->qps--;
    membership_put(dev, m);
    attachment_free(dev, a);
}

/* By fabric->mcg_lock. */
static int attach(struct vmri_dev *dev, struct vmri_qp *qp,
                  const struct vmri_mcg_qp *arg)
{
    struct vmri_membership *m;
    struct vmri_attachment *a;
    int ret;

    if ( attachment_find(qp, arg->mgid) )
        return -EEXIST;

    ret = attachment_alloc(dev, &a);
    if ( ret )
        return ret;

    ret = membership_get(dev, arg->mgid, arg->mlid, &m);
    if ( ret )
        attachment_free(dev, a);
    else
        attachment_link(a, m, qp);

    return ret;
}

int vmri_mcg_attach(struct vmri_dev *dev, const struct vmri_mcg_qp *arg)
{
    struct vmri_fabric *f = dev->fabric;
    struct vmri_qp *qp;
    int ret = check_attach(f, arg);

    if ( ret )
        return ret;

    qp = vmri_table_get(&dev->qps, arg->qpn);
    if ( !qp )
        return -ENOENT;

    ret = -EINVAL;
    if ( qp->type == VMRI_QPT_UD )
        ret = vmri_rules_allow_group(dev, arg->mgid, VMRI_RULE_INGRESS)
              ? 0 : -EPERM;
    if ( !ret )
    {
        env_lock(&f->mcg_lock);
        ret = attach(dev, qp, arg);
        env_unlock(&f->mcg_lock);
    }

    vmri_table_put(&dev->qps, arg->qpn);

    return ret;
}

int vmri_mcg_detach(struct vmri_dev *dev, const struct vmri_mcg_qp *arg)
{
    struct vmri_fabric *f = dev->fabric;
    struct vmri_attachment *a;
    struct vmri_qp *qp;
    int ret = check_attach(f, arg);

    if ( ret )
        return ret;

    qp = vmri_table_get(&dev->qps, arg->qpn);
    if ( !qp )
        return -ENOENT;

    env_lock(&f->mcg_lock);
    a = attachment_find(qp, arg->mgid);
    if ( !a )
        ret = -ENOENT;
    else if ( arg->mlid && a->membership->group->attr.mlid != arg->mlid )
        ret = -EINVAL;
    else
        detach(dev, a);
    env_unlock(&f->mcg_lock);

    vmri_table_put(&dev->qps, arg->qpn);

    return ret;
}

void vmri_mcg_forget(struct vmri_qp *qp)
{
    struct vmri_fabric *f = qp->dev->fabric;

    /* Who could attach it would refer to it. */
    if ( list_empty(&qp->attachments) )
        return;

    env_lock(&f->mcg_lock);
    while ( !list_empty(&qp->attachments) )
        detach(qp->dev, list_first_entry(&qp->attachments,
                                         struct vmri_attachment, list));
    env_unlock(&f->mcg_lock);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
