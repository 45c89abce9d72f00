/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: where a queue pair leads that is being connected: to a device of this
 * host, to one of another, or nowhere.
 *
 * LIDs are a matter of this host; what is known of others are GIDs.  dom0 tells
 * which of them are where.  The table is read when queue pairs are connected, and
 * by no message of these; datagrams to other hosts read it (relay.c).
 */
#include "internal.h"

static uint32_t nr_routes;      /* by vmri_control_lock: of all fabrics */

void vmri_routes_init(struct vmri_routes *routes)
{
    env_lock_init(&routes->lock, LEVEL_ROUTE);
}

void vmri_routes_free(struct vmri_routes *routes)
{
    nr_routes -= routes->nr;
    env_free(routes->route);
}

/* The first one at or after a GID; routes->nr: none.  By routes->lock. */
static uint32_t position(const struct vmri_routes *routes,
                         const uint8_t gid[16])
{
    uint32_t low = 0, high = routes->nr;

    while ( low < high )
    {
        uint32_t middle = (low + high) / 2;

        if ( memcmp(routes->route[middle].gid, gid, 16) < 0 )
            low = middle + 1;
        else
            high = middle;
    }

    return low;
}

static bool is_at(const struct vmri_routes *routes, uint32_t i,
                  const uint8_t gid[16])
{
    return i < routes->nr && !memcmp(routes->route[i].gid, gid, 16);
}

/* ---- the hook ---- */

bool vmri_route_find(struct vmri_fabric *f, const uint8_t gid[16],
                     uint8_t host_gid[16])
{
    struct vmri_routes *routes = &f->routes;
    uint32_t i;
    bool found;

    if ( !env_load(&routes->nr) )
        return false;

    env_lock(&routes->lock);
    i = position(routes, gid);
    found = is_at(routes, i, gid);
    if ( found )
        memcpy(host_gid, routes->route[i].host_gid, 16);
    env_unlock(&routes->lock);

    return found;
}

/* One with a twin is carried; some could not have one. */
static int leads_there(const struct vmri_qp *qp)
{
    if ( qp->carry )
        return VMRI_ELSEWHERE;
    if ( qp->dev->uplink && (qp->rings.kernel ||
                             (qp->type != VMRI_QPT_RC &&
                              qp->type != VMRI_QPT_UC)) )
        return -EOPNOTSUPP;

    return -EHOSTUNREACH;
}

/* The device of this host that is named, with a reference, or NULL. */
static struct vmri_dev *named(struct vmri_fabric *f, struct vmri_av *av)
{
    if ( f->gids )
        av->dlid = vmri_gid_find(f, av->dgid);

    return vmri_fabric_peer(f, av->dlid);
}

int vmri_steer(const struct vmri_qp *qp, struct vmri_qp_modify *arg,
               uint8_t host_gid[16])
{
    struct vmri_fabric *f = qp->dev->fabric;
    struct vmri_dev *peer;
    int ret;

    if ( !(arg->mask & VMRI_QPA_AV) || vmri_qp_datagram(qp) )
        return 0;
    if ( f->gids && arg->av.dlid )
        return -EINVAL;

    peer = named(f, &arg->av);
    if ( peer )
    {
        ret = vmri_rules_allow(qp->dev, peer) ? 0 : -EPERM;
        vmri_fabric_peer_put(peer);
        return ret;
    }

    if ( !(arg->av.flags & VMRI_AV_GRH) ||
         !vmri_route_find(f, arg->av.dgid, host_gid) )
        return f->gids ? -EHOSTUNREACH : 0;

    return vmri_rules_allow_remote(qp->dev, arg->av.dgid) ? leads_there(qp)
                                                          : -EPERM;
}

/* ---- dom0's commands; under vmri_control_lock ---- */

/* Put others in the place of what there is, which may be none. */
static void replace(struct vmri_routes *routes, struct vmri_remote *route,
                    uint32_t nr)
{
    struct vmri_remote *old = routes->route;

    nr_routes += nr - routes->nr;
    env_lock(&routes->lock);
    routes->route = route;
    env_store(&routes->nr, nr);
    env_unlock(&routes->lock);
    env_free(old);
}

static int add(struct vmri_routes *routes, const struct vmri_ctl_route *arg)
{
    const uint32_t i = position(routes, arg->gid), nr = routes->nr;
    struct vmri_remote *route;

    if ( is_at(routes, i, arg->gid) )
        return -EEXIST;
    if ( nr == VMRI_ROUTES || nr_routes == VMRI_ROUTES_ALL )
        return -ENOSPC;

    route = env_alloc((nr + 1) * sizeof(*route));
    if ( !route )
        return -ENOMEM;

    if ( nr )
    {
        memcpy(route, routes->route, i * sizeof(*route));
        memcpy(route + i + 1, routes->route + i, (nr - i) * sizeof(*route));
    }
    memcpy(route[i].gid, arg->gid, sizeof(route[i].gid));
    memcpy(route[i].host_gid, arg->host_gid, sizeof(route[i].host_gid));
    replace(routes, route, nr + 1);

    return 0;
}

static int del(struct vmri_routes *routes, const struct vmri_ctl_route *arg)
{
    const uint32_t i = position(routes, arg->gid), nr = routes->nr;
    struct vmri_remote *route = NULL;

    if ( !is_at(routes, i, arg->gid) )
        return -ENOENT;

    if ( nr > 1 )
    {
        route = env_alloc((nr - 1) * sizeof(*route));
        if ( !route )
            return -ENOMEM;
        memcpy(route, routes->route, i * sizeof(*route));
        memcpy(route + i, routes->route + i + 1, (nr - i - 1) * sizeof(*route));
    }
    replace(routes, route, nr - 1);

    return 0;
}

static bool valid(const struct vmri_ctl_route *arg)
{
    return !arg->reserved && !vmri_gid_is_group(arg->gid) &&
           !vmri_gid_is_group(arg->host_gid);
}

int vmri_route_add(const struct vmri_ctl_route *arg)
{
    struct vmri_fabric *f;
    int ret = -ENOENT;

    if ( !valid(arg) )
        return -EINVAL;

    env_lock(&vmri_control_lock);
    f = vmri_fabric_created(arg->fabric);
    if ( f )
        ret = add(&f->routes, arg);
    env_unlock(&vmri_control_lock);

    return ret;
}

int vmri_route_del(const struct vmri_ctl_route *arg)
{
    struct vmri_fabric *f;
    int ret = -ENOENT;

    env_lock(&vmri_control_lock);
    f = vmri_fabric_created(arg->fabric);
    if ( f )
        ret = del(&f->routes, arg);
    env_unlock(&vmri_control_lock);

    return ret;
}

int vmri_route_list(struct vmri_ctl_route *arg)
{
    struct vmri_fabric *f;
    uint32_t i;
    int ret = -ENOENT;

    env_lock(&vmri_control_lock);
    f = vmri_fabric_created(arg->fabric);
    i = f ? position(&f->routes, arg->gid) : 0;
    if ( f && i < f->routes.nr )
    {
        memcpy(arg->gid, f->routes.route[i].gid, sizeof(arg->gid));
        memcpy(arg->host_gid, f->routes.route[i].host_gid,
               sizeof(arg->host_gid));
        ret = 0;
    }
    env_unlock(&vmri_control_lock);

    return ret;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
