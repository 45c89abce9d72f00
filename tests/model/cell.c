/* SPDX-License-Identifier: GPL-2.0-only */
/* A cell: what its sides own, and what it does next. */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

#define ALL_RIGHTS  (VMRI_ACCESS_LOCAL_WRITE | VMRI_ACCESS_REMOTE_WRITE | \
                     VMRI_ACCESS_REMOTE_READ | VMRI_ACCESS_REMOTE_ATOMIC | \
                     VMRI_ACCESS_FLUSH_GLOBAL | VMRI_ACCESS_MW_BIND)

/* ---- regions ---- */

static uint32_t pick_access(struct rng *rng)
{
    uint32_t access = rng_below(rng, 16) |
                      (rng_percent(rng, 50) ? VMRI_ACCESS_FLUSH_GLOBAL : 0);

    /* Remote writes and atomics need local ones. */
    return access & (VMRI_ACCESS_REMOTE_WRITE | VMRI_ACCESS_REMOTE_ATOMIC)
           ? access | VMRI_ACCESS_LOCAL_WRITE : access;
}

/* The first regions of a direction are the PDs' largest and stay. */
static void pick_region(struct side *s, unsigned int dir, unsigned int i,
                        struct region *r)
{
    struct rng *rng = &s->cell->rng;
    bool large = i < PDS;
    uint32_t start = rng_below(rng, HALF / 8);

    r->pd = large ? i : rng_below(rng, PDS);
    r->access = large ? ALL_RIGHTS : pick_access(rng);
    r->length = large ? HALF * 3 / 4 : 1 + rng_below(rng, HALF / 2);
    r->at = dir * HALF + start;
    r->iova = (rng_next(rng) & 0xffffffffff000ULL) + (r->at & ~PAGE_MASK);
    if ( rng_percent(rng, 10) )
    {
        r->at &= ~7U;
        r->iova = 0;
    }
}

static void region_make(struct side *s, unsigned int dir, unsigned int i)
{
    static const enum kind kinds[NAMED - REGIONS] = {
        KIND_WINDOW1, KIND_WINDOW2, KIND_WINDOW2, KIND_FAST, KIND_FAST,
    };
    struct region *r = &s->region[dir][i];

    r->kind = i < REGIONS ? KIND_REGION : kinds[i - REGIONS];
    if ( r->kind == KIND_REGION )
    {
        pick_region(s, dir, i, r);
        region_register(s, r);
        return;
    }
    r->pd = rng_below(&s->cell->rng, PDS);
    region_alloc(s, r);
}

/* ---- beginning and end ---- */

void side_make(struct side *s)
{
    unsigned int i;

    for ( i = 0; i < PDS; i++ )
        s->pd[i] = side_create_pd(s);
    for ( i = 0; i < XRCDS; i++ )
        s->xrcd[i] = side_create_xrcd(s);
    port_begin(s);
    side_create_eq(s);
    for ( i = 0; i < CQS; i++ )
    {
        s->cq[i].side = s;
        cq_make(&s->cq[i], 7 + rng_below(&s->cell->rng, 2));
    }
    if ( !s->memory.mem )
        memory_make(s);
    for ( i = 0; i < SIDES * NAMED; i++ )
        region_make(s, i / NAMED, i % NAMED);
}

void cell_make(struct cell *c, unsigned int number, uint64_t seed,
               struct guest *a, struct guest *b, bool mortal)
{
    struct rng mix = { seed * 1000003 + number };
    unsigned int i;

    model_cell = c;
    c->number = number;
    c->mortal = mortal;
    c->rng.state = rng_next(&mix);
    for ( i = 0; i < SIDES; i++ )
    {
        struct side *s = &c->side[i];
        unsigned int l;

        s->cell = c;
        s->index = i;
        s->guest = i ? b : a;
        for ( l = 0; l < LINKS; l++ )
        {
            s->qp[l].side = s;
            s->qp[l].link = l;
            s->qp[l].peer = &c->side[!i].qp[l];
        }
        side_make(s);
    }
    for ( i = 0; i < LINKS; i++ )
        link_make(&c->side[0].qp[i]);
}

void cell_rest(struct cell *c)
{
    unsigned int i;

    model_cell = c;
    c->step = "rest";
    for ( i = 0; i < LINKS; i++ )
    {
        fill_receives(&c->side[0].qp[i]);
        settle(c);
    }
    memory_verify_all(c);
    for ( i = 0; i < SIDES; i++ )
        drain_events(&c->side[i]);
}

static void side_unmake(struct side *s)
{
    unsigned int i;

    drain_events(s);
    for ( i = 0; i < SRQS; i++ )
        if ( s->srq[i].handle )
            srq_unmake(&s->srq[i]);
    /* Windows before what they show. */
    for ( i = SIDES * NAMED; i--; )
        if ( s->region[i % SIDES][i / SIDES].key )
            region_free(s, &s->region[i % SIDES][i / SIDES]);
    for ( i = 0; i < CQS; i++ )
        cq_unmake(&s->cq[i]);
    CHECK_EQ(side_destroy(s, VMRI_OP_eq_destroy, s->eq.handle), 0);
    for ( i = 0; i < PDS; i++ )
        CHECK_EQ(side_destroy(s, VMRI_OP_pd_destroy, s->pd[i]), 0);
    for ( i = 0; i < XRCDS; i++ )
        CHECK_EQ(side_destroy(s, VMRI_OP_xrcd_destroy, s->xrcd[i]), 0);
    for ( i = 0; i < SIDES * HALF_PAGES; i++ )
        CHECK_EQ(env_test_page_refs(s->guest->domain, s->memory.gfn + i), 0);
    s->usage[VMRI_RES_EQ]--;
    s->usage[VMRI_RES_PINNED]--;
    s->usage[VMRI_RES_PD] -= PDS;
    s->usage[VMRI_RES_XRCD] -= XRCDS;
}

void cell_unmake(struct cell *c)
{
    unsigned int i;

    model_cell = c;
    c->step = "unmake";
    for ( i = 0; i < LINKS; i++ )
        link_unmake(&c->side[0].qp[i]);
    for ( i = 0; i < SIDES; i++ )
        side_unmake(&c->side[i]);
}

/* ---- steps ---- */

/* Messages that wait keep what they name. */
static bool cell_waits(const struct cell *c)
{
    unsigned int i;

    for ( i = 0; i < LINKS; i++ )
        if ( link_waits(&c->side[0].qp[i]) )
            return true;
    return false;
}

static bool has_receives(const struct cell *c)
{
    unsigned int i;

    for ( i = 0; i < SIDES * LINKS; i++ )
    {
        const struct qp *q = &c->side[i / LINKS].qp[i % LINKS];

        if ( wq_posted(&q->own.wq) || q->claimed )
            return true;
    }
    for ( i = 0; i < SIDES * SRQS; i++ )
        if ( wq_posted(&c->side[i / SRQS].srq[i % SRQS].wq) )
            return true;
    return false;
}

static void forget_old_keys(struct cell *c)
{
    unsigned int i;

    for ( i = 0; i < SIDES * SIDES * NAMED; i++ )
        c->side[i / (SIDES * NAMED)].region[i / NAMED % SIDES]
               [i % NAMED].old_key = 0;
}

static void step_region(struct cell *c)
{
    struct side *s = &c->side[rng_below(&c->rng, SIDES)];
    unsigned int dir = rng_below(&c->rng, SIDES);
    unsigned int i = PDS + rng_below(&c->rng, NAMED - PDS);
    struct region *r = &s->region[dir][i], to = *r;

    forget_old_keys(c);
    /* Posted receives may name it, unless they are to fail. */
    if ( cell_waits(c) || has_receives(c) )
        return;
    if ( !r->key )
        region_make(s, dir, i);
    else if ( r->kind != KIND_REGION || rng_percent(&c->rng, 50) )
        region_free(s, r);
    else
    {
        pick_region(s, dir, i, &to);
        region_change(s, r, 1 + rng_below(&c->rng, 7), &to);
    }
}

/* What is in use, or is none, cannot be destroyed. */
static void step_refused(struct cell *c)
{
    struct side *s = &c->side[rng_below(&c->rng, SIDES)];
    struct qp *q = &s->qp[0];
    unsigned int i;

    CHECK_EQ(side_destroy(s, VMRI_OP_pd_destroy, s->pd[q->keys.pd]), -EBUSY);
    if ( qp_sends(q) )
        CHECK_EQ(side_destroy(s, VMRI_OP_cq_destroy, q->scq->handle), -EBUSY);
    else
        CHECK_EQ(side_destroy(s, VMRI_OP_xrcd_destroy, s->xrcd[q->xrcd]),
                 -EBUSY);
    for ( i = 1; i < SRQS; i++ )
    {
        const struct rq *rq = &s->srq[i];

        if ( !rq->handle )
            continue;
        CHECK_EQ(side_destroy(s, VMRI_OP_xrcd_destroy, s->xrcd[rq->xrcd]),
                 -EBUSY);
        CHECK_EQ(side_destroy(s, VMRI_OP_cq_destroy, rq->cq->handle), -EBUSY);
    }
    CHECK_EQ(side_destroy(s, VMRI_OP_eq_destroy, s->eq.handle), -EBUSY);
    CHECK_EQ(side_destroy(s, VMRI_OP_qp_destroy, 0xfffff0), -ENOENT);
}

static void step_scribble(struct cell *c)
{
    struct side *s = &c->side[rng_below(&c->rng, SIDES)];
    uint32_t at = rng_below(&c->rng, SIDES * HALF);
    uint32_t length = rng_below(&c->rng, 3000);

    if ( !cell_waits(c) )
        memory_scribble(s, at, min(length, SIDES * HALF - at),
                        (uint32_t)rng_next(&c->rng) & 0xffff);
}

/* Another link of the cell runs while the first rests: receives may be shared. */
static struct qp *step_link(struct cell *c)
{
    unsigned int link = rng_below(&c->rng, LINKS), i;

    for ( i = 0; i < LINKS; i++ )
        if ( i != link && link_waits(&c->side[0].qp[i]) )
        {
            fill_receives(&c->side[0].qp[i]);
            settle(c);
        }
    return &c->side[rng_below(&c->rng, SIDES)].qp[link];
}

/*
 * An SRQ comes with the links that use it, and goes when none does.  Targets of
 * the link that rests hold none back.
 */
static void remake_srq(struct side *s, unsigned int i, unsigned int rests)
{
    struct rng *rng = &s->cell->rng;
    struct rq *rq = &s->srq[i];

    if ( rq->handle && (i || s->qp[rests].rq != rq) && rng_percent(rng, 50) )
        srq_unmake(rq);
    if ( !rq->handle && rng_percent(rng, 50) )
        link_make_srq(s, i);
}

static void step_remake(struct cell *c, struct qp *q)
{
    unsigned int i;

    fill_receives(q);
    settle(c);
    link_unmake(q);
    for ( i = 0; i < SIDES * SRQS; i++ )
        remake_srq(&c->side[i / SRQS], i % SRQS, !q->link);
    link_make(q);
}

static void step_error(struct cell *c, struct qp *q)
{
    if ( !qp_sends(q) )
        q = q->peer;
    fill_receives(q);
    settle(c);
    if ( q->attr.state != VMRI_QPS_RTS )
        return;
    error_round(q);
    link_recover(q);
}

void cell_step(struct cell *c)
{
    struct qp *q;
    unsigned int n;

    model_cell = c;
    c->step = "link";
    c->clean = false;
    q = step_link(c);
    n = rng_below(&c->rng, 100);
    if ( n < 76 )
    {
        c->step = "traffic";
        traffic_round(q);
    }
    else if ( n < 78 )
    {
        c->step = "flood";
        flood_round(q);
    }
    else if ( n < 86 )
    {
        c->step = "error";
        step_error(c, q);
    }
    else if ( n < 90 )
    {
        c->step = "modify";
        link_round(q);
    }
    else if ( n < 95 )
    {
        c->step = "keys";
        key_round(q);
        link_recover(q);
        group_round(q);
    }
    else if ( n < 96 )
    {
        c->step = "region";
        step_region(c);
    }
    else if ( n < 97 )
    {
        c->step = "remake";
        step_remake(c, q);
    }
    else if ( n < 98 && c->mortal && rng_percent(&c->rng, 50) )
    {
        c->step = "port";
        port_round(&c->side[1]);
    }
    else if ( n < 98 && c->mortal )
    {
        c->step = "death";
        death_round(q);
    }
    else if ( n < 98 )
    {
        c->step = "refused";
        step_refused(c);
    }
    else
    {
        c->step = "scribble";
        step_scribble(c);
    }
}
