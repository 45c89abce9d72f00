/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the sides ask of the hypervisor.  Calls are counted, since the
 * hypervisor counts them too; memory is a side's for ever and used again.
 */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

#define MAX_FRAMES  (SIDES * HALF_PAGES)

long side_call(struct side *s, unsigned int cmd, void *arg, size_t bytes)
{
    const uint32_t ticket = guest_ticket;
    long rc;

    s->cell->ops++;
    rc = guest_call_once(s->guest, cmd, arg, bytes);
    env_add(&side_tally(s)->hypercalls, 1);
    while ( rc == -ERESTART )
    {
        rc = guest_call_once(s->guest, cmd | VMRI_CONTINUE, arg, bytes);
        env_add(&side_tally(s)->hypercalls, 1);
    }
    guest_ticket = ticket;
    return rc;
}

static long call_with_frames(struct side *s, unsigned int cmd, void *arg,
                             size_t bytes, struct vmri_frames *frames,
                             uint64_t gfn, uint32_t nr)
{
    uint64_t list[MAX_FRAMES];
    long rc;

    guest_frames(frames, list, gfn, nr);
    env_test_expose(list, nr * sizeof(list[0]));
    rc = side_call(s, cmd, arg, bytes);
    env_test_hide();
    return rc;
}

long side_destroy(struct side *s, unsigned int cmd, uint32_t handle)
{
    struct vmri_object arg = { .handle = handle };

    return side_call(s, cmd, &arg, sizeof(arg));
}

/* A command that takes a number instead of a structure. */
static long schedule(struct side *s, unsigned int cmd, uint32_t handle)
{
    struct domain *before = env_test_enter(s->guest->domain);
    uint32_t dev = s->guest->dev;
    long rc = vmri_dispatch(cmd, &dev, handle);

    env_test_returned();
    env_test_enter(before);
    if ( rc != -ENOENT )
        env_add(&side_tally(s)->doorbells, 1);
    return rc;
}

static void schedule_all(struct side *s, unsigned int cmd, uint32_t handle)
{
    unsigned int calls = 0;
    long rc;

    do {
        rc = schedule(s, cmd, handle);
        CHECK(++calls < 100000);
    } while ( rc == VMRI_SCHEDULE_MORE );
    CHECK(rc == 0 || rc == -ENOENT);
}

void side_schedule(struct side *s, uint32_t qpn)
{
    schedule_all(s, VMRI_OP_schedule, qpn);
}

void side_kick(struct side *s, uint32_t qpn, uint32_t srqn)
{
    if ( qpn )
        side_schedule(s, qpn);
    else
        schedule_all(s, VMRI_OP_srq_schedule, srqn);
}

void side_disturb(struct side *s, uint32_t qpn)
{
    long rc = schedule(s, VMRI_OP_schedule, qpn);

    CHECK(rc >= 0 || rc == -ENOENT);
}

uint32_t side_create_pd(struct side *s)
{
    struct vmri_object arg = { .handle = 0 };

    CHECK_EQ(side_call(s, VMRI_OP_pd_create, &arg, sizeof(arg)), 0);
    s->usage[VMRI_RES_PD]++;
    return arg.handle;
}

uint32_t side_create_xrcd(struct side *s)
{
    struct vmri_object arg = { .handle = 0 };

    CHECK_EQ(side_call(s, VMRI_OP_xrcd_create, &arg, sizeof(arg)), 0);
    s->usage[VMRI_RES_XRCD]++;
    return arg.handle;
}

void side_create_eq(struct side *s)
{
    struct guest_eq *eq = &s->eq;
    struct vmri_eq_create arg = {
        .log2_entries = 5, .flags = side_has_port(s) ? VMRI_EQF_PORT : 0,
    };

    if ( !eq->hdr )
    {
        eq->gfn = env_test_pages(s->guest->domain, 1, false);
        eq->hdr = env_test_mem(s->guest->domain, eq->gfn);
        eq->entry = (void *)((uint8_t *)eq->hdr + VMRI_RING_OFFSET);
    }
    CHECK_EQ(call_with_frames(s, VMRI_OP_eq_create, &arg, sizeof(arg),
                              &arg.frames, eq->gfn, 1), 0);
    eq->guest = s->guest;
    eq->log2 = arg.log2_entries;
    eq->cons = 0;
    eq->handle = arg.handle;
    eq->port = arg.port;
    s->usage[VMRI_RES_EQ]++;
    s->usage[VMRI_RES_PINNED]++;
}

static uint32_t cq_pages(const struct cq *cq)
{
    return (uint32_t)PFN_UP(VMRI_RING_OFFSET +
                            (sizeof(struct vmri_cqe) << cq->log2));
}

void cq_make(struct cq *cq, unsigned int log2)
{
    struct side *s = cq->side;
    struct vmri_cq_create arg = {
        .log2_entries = (uint8_t)log2, .eq = s->eq.handle,
    };

    if ( !cq->hdr )
    {
        cq->gfn = env_test_pages(s->guest->domain, CQ_PAGES, true);
        cq->spare = env_test_pages(s->guest->domain, CQ_PAGES, true);
        cq->hdr = env_test_mem(s->guest->domain, cq->gfn);
        cq->entry = (void *)((uint8_t *)cq->hdr + VMRI_RING_OFFSET);
    }
    cq->log2 = log2;
    cq->cons = 0;
    cq->arms = cq->events = 0;
    cq->waiting = cq->solicited = false;
    cq->closed = cq->dead = false;
    CHECK_EQ(call_with_frames(s, VMRI_OP_cq_create, &arg, sizeof(arg),
                              &arg.frames, cq->gfn, cq_pages(cq)), 0);
    cq->handle = arg.handle;
    s->usage[VMRI_RES_CQ]++;
    s->usage[VMRI_RES_PINNED] += cq_pages(cq);
}

void cq_unmake(struct cq *cq)
{
    CHECK_EQ(side_destroy(cq->side, VMRI_OP_cq_destroy, cq->handle), 0);
    cq->handle = 0;
    cq->side->usage[VMRI_RES_CQ]--;
    cq->side->usage[VMRI_RES_PINNED] -= cq_pages(cq);
}

void cq_move(struct cq *cq, unsigned int log2)
{
    struct side *s = cq->side;
    struct vmri_cqe *from = cq->entry;
    const uint32_t old_log2 = cq->log2, pages = cq_pages(cq);
    const uint32_t mask = (1U << old_log2) - 1;
    struct vmri_cq_resize arg = {
        .handle = cq->handle, .log2_entries = (uint8_t)log2,
    };
    uint64_t gfn = cq->gfn;
    uint32_t i;
    long rc;

    cq->log2 = log2;
    cq->gfn = cq->spare;
    cq->spare = gfn;
    rc = call_with_frames(s, VMRI_OP_cq_resize, &arg, sizeof(arg), &arg.frames,
                          cq->gfn, cq_pages(cq));
    CHECK_EQ(rc, cq->dead ? -EINVAL : 0);
    if ( rc )
    {
        cq->spare = cq->gfn;
        cq->gfn = gfn;
        cq->log2 = old_log2;
        return;
    }
    cq->hdr = env_test_mem(s->guest->domain, cq->gfn);
    cq->entry = (void *)((uint8_t *)cq->hdr + VMRI_RING_OFFSET);
    for ( i = cq->cons; i != arg.prod; i++ )
        cq->entry[i & ((1U << log2) - 1)] = from[i & mask];
    s->usage[VMRI_RES_PINNED] += cq_pages(cq);
    s->usage[VMRI_RES_PINNED] -= pages;
}

static uint32_t region_pages(const struct region *r)
{
    return (uint32_t)(PFN_UP((uint64_t)r->at + r->length) - PFN_DOWN(r->at));
}

void region_register(struct side *s, struct region *r)
{
    struct vmri_mr_register arg = {
        .iova = r->iova, .length = r->length, .pd = s->pd[r->pd],
        .access = r->access, .offset = r->at & (PAGE_SIZE - 1),
    };

    CHECK_EQ(call_with_frames(s, VMRI_OP_mr_register, &arg, sizeof(arg),
                              &arg.frames, s->memory.gfn + PFN_DOWN(r->at),
                              region_pages(r)), 0);
    r->key = arg.key;
    r->live = true;
    s->usage[VMRI_RES_MR]++;
    s->usage[VMRI_RES_PINNED] += region_pages(r);
}

void region_change(struct side *s, struct region *r, uint32_t flags,
                   const struct region *to)
{
    struct region old = *r;
    struct vmri_mr_reregister arg = {
        .old_key = r->key, .flags = flags,
        .mr = {
            .iova = to->iova, .length = to->length, .pd = s->pd[to->pd],
            .access = to->access, .offset = to->at & (PAGE_SIZE - 1),
        },
    };
    long rc = call_with_frames(s, VMRI_OP_mr_reregister, &arg, sizeof(arg),
                               &arg.mr.frames, s->memory.gfn +
                               PFN_DOWN(to->at), region_pages(to));

    CHECK_EQ(rc, r->users ? -EBUSY : 0);
    if ( rc )
        return;
    if ( flags & VMRI_REREG_TRANS )
    {
        r->iova = to->iova;
        r->length = to->length;
        r->at = to->at;
    }
    if ( flags & VMRI_REREG_PD )
        r->pd = to->pd;
    if ( flags & VMRI_REREG_ACCESS )
        r->access = to->access;
    r->key = arg.mr.key;
    s->usage[VMRI_RES_PINNED] += region_pages(r);
    s->usage[VMRI_RES_PINNED] -= region_pages(&old);
}

void region_alloc(struct side *s, struct region *r)
{
    struct vmri_mw_alloc mw = {
        .pd = s->pd[r->pd], .type = r->kind == KIND_WINDOW2 ? 2 : 1,
    };
    struct vmri_mr_alloc fast = {
        .pd = s->pd[r->pd], .max_frames = FAST_FRAMES,
    };

    if ( r->kind == KIND_FAST )
        CHECK_EQ(side_call(s, VMRI_OP_mr_alloc, &fast, sizeof(fast)), 0);
    else
        CHECK_EQ(side_call(s, VMRI_OP_mw_alloc, &mw, sizeof(mw)), 0);
    r->key = r->kind == KIND_FAST ? fast.key : mw.key;
    r->live = false;
    s->usage[r->kind == KIND_FAST ? VMRI_RES_MR : VMRI_RES_MW]++;
}

long region_free(struct side *s, struct region *r)
{
    bool window = r->kind == KIND_WINDOW1 || r->kind == KIND_WINDOW2;
    long rc = side_destroy(s, window ? VMRI_OP_mw_free : VMRI_OP_mr_deregister,
                           r->key);

    CHECK_EQ(rc, r->users ? -EBUSY : 0);
    if ( rc )
        return rc;
    if ( r->of )
        r->of->users--;
    r->of = NULL;
    r->owner = NULL;
    r->old_key = r->key;
    r->key = 0;
    r->live = false;
    s->usage[window ? VMRI_RES_MW : VMRI_RES_MR]--;
    if ( r->kind == KIND_REGION )
        s->usage[VMRI_RES_PINNED] -= region_pages(r);
    return 0;
}

static uint8_t log2_at_least(uint32_t bytes, uint8_t log2)
{
    while ( 1U << log2 < bytes )
        log2++;
    return log2;
}

void srq_make(struct rq *rq, unsigned int log2, unsigned int sge,
              uint32_t limit)
{
    struct side *s = rq->keys.side;
    struct vmri_srq_create a = {
        .pd = s->pd[rq->keys.pd], .eq = s->eq.handle, .limit = limit,
        .xrcd = rq->cq ? s->xrcd[rq->xrcd] : 0,
        .cq = rq->cq ? rq->cq->handle : 0,
        .flags = rq->keys.kernel ? VMRI_QPF_KERNEL : 0,
        .log2_entries = (uint8_t)log2, .max_sge = (uint8_t)sge,
        .log2_stride = log2_at_least((uint32_t)(16 + 16 * sge), 5),
    };

    a.offset = ROUNDUP((uint32_t)sizeof(*rq->hdr), 1U << a.log2_stride);
    rq->pages = (uint32_t)PFN_UP(a.offset + (1UL << (log2 + a.log2_stride)));
    CHECK(rq->pages <= QP_PAGES);
    if ( !rq->hdr )
    {
        rq->gfn = env_test_pages(s->guest->domain, QP_PAGES, true);
        rq->spare = env_test_pages(s->guest->domain, QP_PAGES, true);
        rq->mem = env_test_mem(s->guest->domain, rq->gfn);
        rq->hdr = (struct vmri_wq_hdr *)rq->mem;
    }
    CHECK_EQ(call_with_frames(s, VMRI_OP_srq_create, &a, sizeof(a), &a.frames,
                              rq->gfn, rq->pages), 0);
    rq->handle = a.handle;
    rq->limit = limit;
    rq->taken = rq->low = false;
    rq->wq = (struct wq){
        .log2 = a.log2_entries, .log2_stride = a.log2_stride,
        .max_sge = a.max_sge, .offset = a.offset,
        .prod = rq->hdr->prod, .done = rq->hdr->prod,
        .base = rq->hdr->prod,
    };
    s->usage[VMRI_RES_SRQ]++;
    s->usage[VMRI_RES_PINNED] += rq->pages;
}

void srq_unmake(struct rq *rq)
{
    struct side *s = rq->keys.side;
    unsigned int i;

    CHECK_EQ(side_destroy(s, VMRI_OP_srq_destroy, rq->handle), 0);
    rq->old_handle = rq->handle;
    rq->handle = 0;
    rq->wq.done = rq->wq.prod;
    for ( i = 0; i < LINKS; i++ )
        if ( s->qp[i].claim_rq == rq )
            s->qp[i].claim_rq = NULL;
    s->usage[VMRI_RES_SRQ]--;
    s->usage[VMRI_RES_PINNED] -= rq->pages;
}

bool srq_move(struct rq *rq, unsigned int log2)
{
    struct side *s = rq->keys.side;
    struct wq *wq = &rq->wq;
    struct vmri_srq_modify arg = {
        .handle = rq->handle, .mask = VMRI_SRQA_RESIZE, .offset = wq->offset,
        .log2_entries = (uint8_t)log2,
    };
    const uint32_t old_mask = (1U << wq->log2) - 1, mask = (1U << log2) - 1;
    const uint32_t old_pages = rq->pages;
    const uint64_t gfn = rq->gfn;
    const uint8_t *from = rq->mem;
    uint32_t i;

    if ( wq->prod - wq->base > 1U << log2 || rq->limit > 1U << log2 )
        return false;

    rq->gfn = rq->spare;
    rq->spare = gfn;
    rq->mem = env_test_mem(s->guest->domain, rq->gfn);
    rq->hdr = (struct vmri_wq_hdr *)rq->mem;
    rq->pages = (uint32_t)PFN_UP(wq->offset + (1UL << (log2 +
                                                       wq->log2_stride)));
    wq->log2 = (uint8_t)log2;
    memset(rq->mem, 0, sizeof(*rq->hdr));
    rq->hdr->prod = wq->prod;
    for ( i = wq->base; i != wq->prod; i++ )
        memcpy(rq->mem + wq->offset +
               ((size_t)(i & mask) << wq->log2_stride),
               from + wq->offset + ((size_t)(i & old_mask) << wq->log2_stride),
               1U << wq->log2_stride);
    CHECK_EQ(call_with_frames(s, VMRI_OP_srq_modify, &arg, sizeof(arg),
                              &arg.frames, rq->gfn, rq->pages), 0);
    s->usage[VMRI_RES_PINNED] += rq->pages;
    s->usage[VMRI_RES_PINNED] -= old_pages;
    return true;
}

/* Queues one after the other, each on a multiple of its stride: the pages. */
static uint32_t lay_out(struct vmri_qp_create *a)
{
    uint32_t end = sizeof(struct vmri_qp_hdr);

    if ( a->type == VMRI_QPT_XRC_TGT )
        return 0;
    a->sq_log2_stride = log2_at_least(64 + max(16U * a->max_send_sge,
                                               a->max_inline), 6);
    a->sq_offset = ROUNDUP(end, 1U << a->sq_log2_stride);
    end = a->sq_offset + (1U << (a->sq_log2_entries + a->sq_log2_stride));
    a->rq_offset = a->rq_log2_stride = 0;
    if ( !a->srq && a->type != VMRI_QPT_XRC_INI )
    {
        a->rq_log2_stride = log2_at_least(16 + 16U * a->max_recv_sge, 5);
        a->rq_offset = ROUNDUP(end, 1U << a->rq_log2_stride);
        end = a->rq_offset + (1U << (a->rq_log2_entries + a->rq_log2_stride));
    }
    if ( a->ind_log2_entries )
    {
        a->ind_offset = ROUNDUP(end, 16U);
        end = a->ind_offset + (16U << a->ind_log2_entries);
    }
    return (uint32_t)PFN_UP((uint64_t)end);
}

static long create_qp(struct qp *q, uint32_t pages)
{
    struct vmri_qp_create *a = &q->arg;

    if ( !pages )
        return side_call(q->side, VMRI_OP_qp_create, a, sizeof(*a));
    return call_with_frames(q->side, VMRI_OP_qp_create, a, sizeof(*a),
                            &a->frames, q->gfn, pages);
}

/* The queues begin where they have been left, where the guest put its index. */
static void make_queues(struct qp *q)
{
    const struct vmri_qp_create *a = &q->arg;

    q->sq = (struct wq){
        .log2 = a->sq_log2_entries, .log2_stride = a->sq_log2_stride,
        .max_sge = a->max_send_sge, .offset = a->sq_offset,
        .prod = q->hdr->sq.prod, .done = q->hdr->sq.prod,
        .base = q->hdr->sq.prod,
    };
    q->own.hdr = &q->hdr->rq;
    q->own.mem = q->mem;
    q->own.keys = q->keys;
    q->own.wq = (struct wq){
        .log2 = a->rq_log2_entries, .log2_stride = a->rq_log2_stride,
        .max_sge = a->max_recv_sge, .offset = a->rq_offset,
        .prod = q->hdr->rq.prod, .done = q->hdr->rq.prod,
        .base = q->hdr->rq.prod,
    };
}

void qp_make(struct qp *q)
{
    struct vmri_qp_create *a = &q->arg;
    uint32_t pages;

    a->srq = qp_shares(q) && !qp_is_xrc(q) ? q->rq->handle : 0;
    pages = lay_out(a);
    CHECK(pages <= QP_PAGES);
    if ( !q->hdr )
    {
        q->gfn = env_test_pages(q->side->guest->domain, QP_PAGES + 1,
                                true);
        q->mem = env_test_mem(q->side->guest->domain, q->gfn);
        q->hdr = (struct vmri_qp_hdr *)q->mem;
    }
    a->pd = q->side->pd[q->keys.pd];
    a->send_cq = q->scq ? q->scq->handle : 0;
    a->recv_cq = q->rcq ? q->rcq->handle : 0;
    a->xrcd = qp_sends(q) ? 0 : q->side->xrcd[q->xrcd];
    a->eq = q->side->eq.handle;
    a->qpn = 0;
    CHECK_EQ(create_qp(q, pages), 0);
    env_store(&q->qpn, a->qpn);
    make_queues(q);
    q->claimed = false;
    q->attr = (struct vmri_qp_modify){ .port = 1, .path_mtu = 5 };
    q->established = q->unrung = false;
    q->side->usage[VMRI_RES_QP]++;
    q->side->usage[VMRI_RES_PINNED] += pages;
}

void qp_unmake(struct qp *q)
{
    uint32_t qpn = q->qpn;

    env_store(&q->qpn, 0);
    CHECK_EQ(side_destroy(q->side, VMRI_OP_qp_destroy, qpn), 0);
    oracle_unbind(q);
    group_forget(q);
    q->side->usage[VMRI_RES_QP]--;
    q->side->usage[VMRI_RES_PINNED] -= q->arg.frames.nr;
    q->sq.done = q->sq.prod;
    q->own.wq.done = q->own.wq.prod;
    q->claimed = false;
}
