/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: what there is to tell of an object.
 *
 * A reference keeps the object while it is looked at, no lock is taken: what
 * changes meanwhile may be seen half way.  Numbers that the guest writes are
 * told as they are.
 */
#include "internal.h"

static void cf_check describe_pd(const void *obj, struct vmri_ctl_dump *to)
{
    const struct vmri_pd *pd = obj;

    to->users = env_load(&pd->users);
}

static void cf_check describe_eq(const void *obj, struct vmri_ctl_dump *to)
{
    const struct vmri_eq *eq = obj;
    struct vmri_eq_hdr *hdr = vmri_region_at(&eq->region, 0);

    to->users = env_load(&eq->users);
    to->u.eq.port = eq->port;
    to->u.eq.entries = 1U << eq->log2_entries;
    to->u.eq.unconsumed = env_load(&eq->prod) - env_load(&hdr->cons);
    to->u.eq.overflow = env_load(&hdr->overflow) != 0;
}

static void cf_check describe_cq(const void *obj, struct vmri_ctl_dump *to)
{
    const struct vmri_cq *cq = obj;
    struct vmri_cq_hdr *hdr = vmri_region_at(&cq->region, 0);

    to->users = env_load(&cq->users);
    to->u.cq.eq = cq->eq->handle;
    to->u.cq.entries = 1U << cq->log2_entries;
    to->u.cq.unconsumed = env_load(&cq->prod) - env_load(&hdr->cons);
    to->u.cq.arm = env_load(&hdr->arm);
    to->u.cq.overflow = env_load(&cq->overflow);
}

static void describe_wq(const struct vmri_wq *wq, uint32_t *entries,
                        uint32_t *posted)
{
    if ( !wq->hdr )
        return;

    *entries = 1U << wq->log2_entries;
    *posted = env_load(&wq->hdr->prod) - env_load(&wq->cons);
}

static void cf_check describe_qp(const void *obj, struct vmri_ctl_dump *to)
{
    const struct vmri_qp *qp = obj;

    BUILD_BUG_ON(VMRI_PARK_NONE != VMRI_PARKED_NO);
    BUILD_BUG_ON(VMRI_PARK_RNR != VMRI_PARKED_RECEIVE);
    BUILD_BUG_ON(VMRI_PARK_PEER != VMRI_PARKED_PEER);

    to->users = env_load(&qp->users);
    to->u.qp.type = qp->type;
    to->u.qp.state = env_load(&qp->attr.state);
    to->u.qp.parked = env_load(&qp->parked);
    to->u.qp.kernel = qp->rings.kernel;
    to->u.qp.pd = qp->rings.pd->handle;
    to->u.qp.send_cq = qp->scq ? qp->scq->handle : 0;
    to->u.qp.recv_cq = qp->rcq ? qp->rcq->handle : 0;
    to->u.qp.peer_qpn = env_load(&qp->attr.dest_qpn);
    to->u.qp.peer_lid = env_load(&qp->attr.av.dlid);
    describe_wq(&qp->sq, &to->u.qp.sq_entries, &to->u.qp.sq_posted);
    describe_wq(&qp->rq, &to->u.qp.rq_entries, &to->u.qp.rq_posted);
}

static void cf_check describe_mr(const void *obj, struct vmri_ctl_dump *to)
{
    const struct vmri_mr *mr = obj;

    to->u.mr.length = mr->length;
    to->u.mr.pd = mr->pd->handle;
    to->u.mr.access = mr->access;
    to->u.mr.pages = mr->nr;
    to->u.mr.chunks = mr->chunks.leaf ? mr->chunks.nr : 1;
}

/* By VMRI_RES_*. */
static const struct kind {
    size_t table;               /* in struct vmri_dev */
    void (*describe)(const void *obj, struct vmri_ctl_dump *to);
} kinds[] = {
    [VMRI_RES_PD] = { offsetof(struct vmri_dev, pds), describe_pd },
    [VMRI_RES_EQ] = { offsetof(struct vmri_dev, eqs), describe_eq },
    [VMRI_RES_CQ] = { offsetof(struct vmri_dev, cqs), describe_cq },
    [VMRI_RES_QP] = { offsetof(struct vmri_dev, qps), describe_qp },
    [VMRI_RES_MR] = { offsetof(struct vmri_dev, mrs), describe_mr },
};

/* One that is killed before there is a reference is passed over. */
int vmri_describe(struct vmri_dev *dev, struct vmri_ctl_dump *to)
{
    const struct kind *kind;
    struct vmri_table *t;

    if ( to->kind >= ARRAY_SIZE(kinds) )
        return -EINVAL;
    kind = &kinds[env_nospec(to->kind, ARRAY_SIZE(kinds))];
    if ( !kind->describe )
        return -EINVAL;

    t = (void *)dev + kind->table;
    to->users = 0;
    memset(&to->u, 0, sizeof(to->u));

    while ( vmri_table_next(t, &to->index, &to->handle) )
    {
        const void *obj = vmri_table_get(t, to->handle);

        if ( obj )
        {
            kind->describe(obj, to);
            vmri_table_put(t, to->handle);
            return 0;
        }
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
