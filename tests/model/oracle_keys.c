/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory windows and fast regions: what binds, registers and invalidates. */
#include "oracle.h"

#undef memcpy
#undef memset

static bool is_window(const struct region *r)
{
    return r->kind == KIND_WINDOW1 || r->kind == KIND_WINDOW2;
}

static bool renames(uint32_t key, uint32_t name)
{
    return key >> 8 == name >> 8;
}

static bool rights_valid(uint32_t access)
{
    return !(access & (VMRI_ACCESS_REMOTE_WRITE | VMRI_ACCESS_REMOTE_ATOMIC)) ||
           (access & VMRI_ACCESS_LOCAL_WRITE);
}

static void unbind(struct region *r)
{
    if ( r->of )
        r->of->users--;
    r->of = NULL;
    r->owner = NULL;
    r->live = false;
}

void oracle_unbind(struct qp *q)
{
    unsigned int i;

    for ( i = 0; i < SIDES * NAMED; i++ )
    {
        struct region *r = &q->side->region[i / NAMED][i % NAMED];

        if ( r->owner == q )
            unbind(r);
    }
}

/* ---- windows ---- */

static uint16_t look_at_region(struct qp *q, const struct vmri_send_wqe *w,
                               struct region **of)
{
    struct region *r = *of = region_of_key(q->side, w->u.bind.mr_key);
    uint64_t addr = w->u.bind.addr;

    if ( !r || is_window(r) || (r->kind == KIND_FAST && !qp_is_kernel(q)) )
        return VMRI_VERR_KEY;
    if ( r->pd != q->keys.pd )
        return VMRI_VERR_PD;
    if ( !r->live )
        return VMRI_VERR_STATE;
    if ( !(r->access & VMRI_ACCESS_MW_BIND) ||
         !rights_valid(w->u.bind.access |
                       (r->access & VMRI_ACCESS_LOCAL_WRITE)) )
        return VMRI_VERR_RIGHTS;
    if ( addr < r->iova || addr - r->iova > r->length ||
         w->u.bind.length > r->length - (addr - r->iova) )
        return VMRI_VERR_BOUNDS;
    return VMRI_VERR_NONE;
}

static uint16_t look_at_window(struct qp *q, const struct vmri_send_wqe *w,
                               struct region **window)
{
    struct region *r = *window = region_of_key(q->side, w->u.bind.mw_key);

    if ( !r || !is_window(r) )
        return VMRI_VERR_KEY;
    if ( r->pd != q->keys.pd )
        return VMRI_VERR_PD;
    if ( !renames(w->u.bind.mw_key, w->u.bind.new_key) )
        return VMRI_VERR_KEY;
    if ( (w->u.bind.access & ~VMRI_ACCESS_MW) ||
         (r->kind == KIND_WINDOW1 &&
          (w->u.bind.access & VMRI_ACCESS_ZERO_BASED)) )
        return VMRI_VERR_FLAGS;
    if ( r->kind == KIND_WINDOW2 && r->live )
        return VMRI_VERR_STATE;
    if ( r->kind == KIND_WINDOW2 && !w->u.bind.length )
        return VMRI_VERR_LENGTH;
    return VMRI_VERR_NONE;
}

static uint16_t bind(struct qp *q, const struct vmri_send_wqe *w)
{
    struct region *r, *of = NULL;
    uint16_t verr = look_at_window(q, w, &r);

    if ( !verr && w->u.bind.length )
        verr = look_at_region(q, w, &of);
    if ( verr )
        return verr;

    unbind(r);
    r->old_key = r->key;
    r->key = w->u.bind.new_key;
    if ( !of )
        return VMRI_VERR_NONE;
    of->users++;
    r->of = of;
    r->live = true;
    r->owner = r->kind == KIND_WINDOW2 ? q : NULL;
    r->access = w->u.bind.access & ~VMRI_ACCESS_ZERO_BASED;
    r->iova = w->u.bind.access & VMRI_ACCESS_ZERO_BASED ? 0 : w->u.bind.addr;
    r->length = (uint32_t)w->u.bind.length;
    r->at = of->at + (uint32_t)(w->u.bind.addr - of->iova);
    return VMRI_VERR_NONE;
}

/* ---- fast regions ---- */

static uint16_t register_fast(struct qp *q, const struct send *s)
{
    const struct vmri_send_wqe *w = &s->wqe;
    struct region *r = region_of_number(q->side, w->u.reg.key);

    if ( !r || r->kind != KIND_FAST )
        return VMRI_VERR_KEY;
    if ( r->pd != q->keys.pd )
        return VMRI_VERR_PD;
    if ( r->live )
        return VMRI_VERR_STATE;
    if ( !renames(w->u.reg.key, w->u.reg.new_key) )
        return VMRI_VERR_KEY;
    if ( w->u.reg.access & ~VMRI_ACCESS_MR )
        return VMRI_VERR_FLAGS;
    if ( !rights_valid(w->u.reg.access) )
        return VMRI_VERR_RIGHTS;
    if ( !w->u.reg.length || (w->u.reg.list & 7) ||
         w->u.reg.offset + w->u.reg.length > FAST_FRAMES * PAGE_SIZE )
        return VMRI_VERR_BOUNDS;

    r->old_key = r->key;
    r->key = w->u.reg.new_key;
    r->live = true;
    r->access = w->u.reg.access;
    r->iova = w->u.reg.iova;
    r->length = (uint32_t)w->u.reg.length;
    r->at = (uint32_t)(s->sge[0].addr - (q->side->memory.gfn << PAGE_SHIFT)) +
            w->u.reg.offset;
    return VMRI_VERR_NONE;
}

/* ---- both ---- */

uint16_t oracle_invalidate(const struct keys *keys, uint32_t key, bool remote)
{
    struct region *r = region_of_key(keys->side, key);

    if ( !r || r->kind == KIND_REGION ||
         (r->kind == KIND_FAST && !keys->kernel) )
        return VMRI_VERR_KEY;
    if ( r->pd != keys->pd )
        return VMRI_VERR_PD;
    if ( r->kind == KIND_WINDOW1 )
        return VMRI_VERR_KEY;
    if ( r->owner && r->owner != keys->qp )
        return VMRI_VERR_PD;
    if ( r->users )
        return VMRI_VERR_BOUND;
    if ( remote && !r->live )
        return VMRI_VERR_STATE;
    unbind(r);
    return VMRI_VERR_NONE;
}

uint16_t oracle_key(struct qp *q, const struct send *s)
{
    switch ( s->wqe.opcode )
    {
    case VMRI_WR_BIND_MW:
        return bind(q, &s->wqe);
    case VMRI_WR_REG_MR:
        return register_fast(q, s);
    default:
        return oracle_invalidate(&q->keys, s->wqe.imm, false);
    }
}
