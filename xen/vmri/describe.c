/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: what there is to tell of an object.
 *
 * A reference keeps the object while it is looked at, its lock what changes.
 * Numbers that the guest may write are told as they are.
 */
#include "internal.h"

#define PASS_MAX    1024        /* objects passed over in one call */

static void cf_check describe_pd(void *obj, struct vmri_ctl_dump *to)
{
    const struct vmri_pd *pd = obj;

    to->users = env_load(&pd->users);
}

static void cf_check describe_eq(void *obj, struct vmri_ctl_dump *to)
{
    const struct vmri_eq *eq = obj;
    struct vmri_eq_hdr *hdr = vmri_region_at(&eq->region, 0);

    to->users = env_load(&eq->users);
    to->u.eq.port = eq->port;
    to->u.eq.entries = 1U << eq->log2_entries;
    to->u.eq.unconsumed = env_load(&eq->prod) - env_load(&hdr->cons);
    to->u.eq.overflow = env_load(&hdr->overflow) != 0;
}

static void cf_check describe_cq(void *obj, struct vmri_ctl_dump *to)
{
    struct vmri_cq *cq = obj;
    struct vmri_cq_hdr *hdr;

    to->users = env_load(&cq->users);
    to->u.cq.eq = cq->eq->handle;

    env_lock(&cq->lock);
    hdr = vmri_region_at(&cq->region, 0);
    to->u.cq.entries = 1U << cq->log2_entries;
    to->u.cq.unconsumed = cq->prod - env_load(&hdr->cons);
    to->u.cq.arm = env_load(&hdr->arm);
    to->u.cq.overflow = cq->overflow;
    env_unlock(&cq->lock);
}

static void cf_check describe_srq(void *obj, struct vmri_ctl_dump *to)
{
    struct vmri_srq *srq = obj;

    to->users = env_load(&srq->users);
    to->u.srq.pd = srq->rings.pd->handle;
    to->u.srq.xrcd = srq->xrcd ? srq->xrcd->handle : 0;
    to->u.srq.cq = srq->cq ? srq->cq->handle : 0;

    env_lock(&srq->lock);
    to->u.srq.entries = 1U << srq->wq.log2_entries;
    to->u.srq.posted = env_load(&srq->wq.hdr->prod) - srq->wq.cons;
    to->u.srq.limit = srq->limit;
    to->u.srq.waiting = env_load(&srq->wq.hdr->wait) != 0;
    to->u.srq.dead = srq->dead;
    env_unlock(&srq->lock);
}

/* Our index of a send queue is its owner's: the header's copy has to do. */
static void describe_wq(const struct vmri_wq *wq, uint32_t *entries,
                        uint32_t *posted)
{
    if ( !wq->hdr )
        return;

    *entries = 1U << wq->log2_entries;
    *posted = env_load(&wq->hdr->prod) - env_load(&wq->hdr->cons);
}

static void cf_check describe_qp(void *obj, struct vmri_ctl_dump *to)
{
    struct vmri_qp *qp = obj;

    BUILD_BUG_ON(VMRI_PARK_NONE != VMRI_PARKED_NO);
    BUILD_BUG_ON(VMRI_PARK_RNR != VMRI_PARKED_RECEIVE);
    BUILD_BUG_ON(VMRI_PARK_PEER != VMRI_PARKED_PEER);
    BUILD_BUG_ON(VMRI_PARK_RATE != VMRI_PARKED_RATE);
    BUILD_BUG_ON(VMRI_PARK_UPLINK != VMRI_PARKED_UPLINK);

    to->users = env_load(&qp->users);
    to->u.qp.type = qp->type;
    to->u.qp.parked = env_load(&qp->parked);
    to->u.qp.kernel = qp->rings.kernel;
    to->u.qp.pd = qp->rings.pd->handle;
    to->u.qp.send_cq = qp->scq ? qp->scq->handle : 0;
    to->u.qp.recv_cq = qp->rcq ? qp->rcq->handle : 0;
    to->u.qp.srq = qp->srq ? qp->srq->handle : 0;

    env_lock(&qp->lock);
    to->u.qp.state = qp->attr.state;
    to->u.qp.peer_qpn = qp->attr.dest_qpn;
    to->u.qp.peer_lid = qp->attr.av.dlid;
    describe_wq(&qp->sq, &to->u.qp.sq_entries, &to->u.qp.sq_posted);
    describe_wq(&qp->rq, &to->u.qp.rq_entries, &to->u.qp.rq_posted);
    env_unlock(&qp->lock);
}

static void describe_mr(struct vmri_key *k, struct vmri_ctl_dump *to)
{
    const struct vmri_pages *p = &k->range.pages;

    to->users = k->users;
    to->u.mr.pd = k->range.pd->handle;
    to->u.mr.windows = k->users;
    to->u.mr.fast = k->kind == VMRI_KEY_FAST;
    if ( !k->live )
        return;

    to->u.mr.length = k->range.length;
    to->u.mr.access = k->range.access & VMRI_ACCESS_MR;
    to->u.mr.pages = p->nr;
    to->u.mr.chunks = ((p->nr - 1 + p->bias) >> p->chunk_shift) + 1;
}

static void describe_mw(struct vmri_key *k, struct vmri_ctl_dump *to)
{
    const struct vmri_mw *mw = container_of(k, struct vmri_mw, k);

    to->u.mw.pd = k->range.pd->handle;
    to->u.mw.type = mw->type2 ? 2 : 1;
    if ( !k->live )
        return;

    to->u.mw.length = k->range.length;
    to->u.mw.access = k->range.access;
    to->u.mw.mr = mw->mr->key;
}

/*
 * Keys may be idle, where lookups do not find them: the lock keeps what nobody
 * changes.  One that is being changed is passed over.
 */
static bool describe_key(struct vmri_dev *dev, struct vmri_ctl_dump *to)
{
    bool mw = to->kind == VMRI_RES_MW, found;
    struct vmri_key *k;

    env_lock(&dev->lock);
    k = vmri_table_peek(&dev->keys, to->handle);
    found = k && !k->busy && mw == (k->kind == VMRI_KEY_MW);
    if ( found && mw )
        describe_mw(k, to);
    else if ( found )
        describe_mr(k, to);
    env_unlock(&dev->lock);

    return found;
}

/* By VMRI_RES_*. */
static void (*const describe[])(void *obj, struct vmri_ctl_dump *to) = {
    [VMRI_RES_PD] = describe_pd,
    [VMRI_RES_XRCD] = describe_pd,
    [VMRI_RES_EQ] = describe_eq,
    [VMRI_RES_CQ] = describe_cq,
    [VMRI_RES_SRQ] = describe_srq,
    [VMRI_RES_QP] = describe_qp,
};

/* False: it was killed before there is a reference. */
static bool describe_object(struct vmri_table *t, struct vmri_ctl_dump *to)
{
    uint32_t kind = env_nospec(to->kind, ARRAY_SIZE(describe));
    void *obj = vmri_table_get(t, to->handle);

    if ( !obj )
        return false;

    describe[kind](obj, to);
    vmri_table_put(t, to->handle);

    return true;
}

static bool is_key(const struct vmri_ctl_dump *to)
{
    return to->kind == VMRI_RES_MR || to->kind == VMRI_RES_MW;
}

/* Groups have no handle in a device: its memberships are just counted. */
static int describe_group(struct vmri_dev *dev, struct vmri_ctl_dump *to)
{
    struct vmri_fabric *f = dev->fabric;
    const struct vmri_membership *m;
    int ret = -ENOENT;
    uint32_t i = 0;

    env_lock(&f->mcg_lock);
    list_for_each_entry ( m, &dev->memberships, list )
    {
        if ( i++ < to->index )
            continue;

        to->index = i;
        to->handle = m->group->attr.mlid;
        to->users = m->group->users;
        memcpy(to->u.mcg.mgid, m->group->attr.mgid, sizeof(to->u.mcg.mgid));
        to->u.mcg.joined = !!m->joined;
        to->u.mcg.qps = m->qps;
        ret = 0;
        break;
    }
    env_unlock(&f->mcg_lock);

    return ret;
}

/* An entry that changes meanwhile is the device's own doing. */
static int describe_gid(struct vmri_dev *dev, struct vmri_ctl_dump *to)
{
    const uint32_t nr = dev->gids ? VMRI_MAX_GIDS : 1;

    for ( ; to->index < nr; to->index++ )
    {
        if ( !dev->gids )
        {
            vmri_put_be(to->u.gid.gid, env_load(&dev->port.gid_prefix), 8);
            vmri_put_be(to->u.gid.gid + 8, dev->guid, 8);
        }
        else if ( !vmri_gid_get(dev, to->index, to->u.gid.gid) )
            continue;

        to->handle = to->index++;
        return 0;
    }

    return -ENOENT;
}

int vmri_describe(struct vmri_dev *dev, struct vmri_ctl_dump *to)
{
    struct vmri_table *t = vmri_dev_table(dev, to->kind);
    unsigned int n = 0;

    to->users = 0;
    memset(&to->u, 0, sizeof(to->u));

    if ( to->kind == VMRI_RES_MCG )
        return describe_group(dev, to);
    if ( to->kind == VMRI_DUMP_GID )
        return describe_gid(dev, to);
    if ( is_key(to) )
        t = &dev->keys;
    else if ( !t || to->kind >= ARRAY_SIZE(describe) )
        return -EINVAL;

    while ( vmri_table_next(t, &to->index, &to->handle) )
    {
        if ( is_key(to) ? describe_key(dev, to)
                        : describe_object(t, to) )
            return 0;
        if ( ++n == PASS_MAX )
            return -ERESTART;
    }

    return -ENOENT;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
