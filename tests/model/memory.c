/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model's memory: an image of every byte that the cells' sides may have
 * registered, what the entries of a list name in it, and the comparison.
 */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

void memory_make(struct side *s)
{
    struct memory *m = &s->memory;

    m->gfn = env_test_pages(s->guest->domain, SIDES * HALF_PAGES,
                            s->cell->number & 1);
    m->mem = env_test_mem(s->guest->domain, m->gfn);
    m->image = malloc(SIDES * HALF);
    memory_scribble(s, 0, SIDES * HALF, s->cell->number * 2 + s->index);
}

void memory_scribble(struct side *s, uint32_t at, uint32_t length,
                     uint32_t seed)
{
    fill_pattern(s->memory.image + at, length, seed);
    memcpy(s->memory.mem + at, s->memory.image + at, length);
}

/* ---- what lists and keys name ---- */

static void add_span(struct spans *s, uint8_t *at, uint32_t length)
{
    s->span[s->num].at = at;
    s->span[s->num++].length = length;
    s->bytes += length;
}

void spans_of_bytes(struct spans *s, uint8_t *p, uint32_t length)
{
    *s = (struct spans){ .num = 0 };
    add_span(s, p, length);
}

struct region *region_of_key(struct side *s, uint32_t key)
{
    unsigned int i;

    for ( i = 0; key && i < SIDES * NAMED; i++ )
        if ( s->region[i / NAMED][i % NAMED].key == key )
            return &s->region[i / NAMED][i % NAMED];
    return NULL;
}

struct region *region_of_number(struct side *s, uint32_t key)
{
    unsigned int i;

    for ( i = 0; i < SIDES * NAMED; i++ )
    {
        struct region *r = &s->region[i / NAMED][i % NAMED];

        if ( r->key && !((r->key ^ key) >> 8) )
            return r;
    }
    return NULL;
}

/* Windows are for peers; fast regions are the kernel's alone. */
static bool may_list(const struct keys *keys, const struct region *r)
{
    return r->kind == KIND_REGION || (r->kind == KIND_FAST && keys->kernel);
}

uint16_t key_verdict(const struct keys *keys, uint32_t key, uint32_t access,
                     bool bounded, uint64_t addr, uint32_t length)
{
    const struct region *r = region_of_key(keys->side, key);

    if ( !r || !r->live || ((access & ACCESS_LISTED) && !may_list(keys, r)) )
        return VMRI_VERR_KEY;
    if ( r->pd != keys->pd || (r->owner && r->owner != keys->qp) )
        return VMRI_VERR_PD;
    if ( access & ~r->access & ~ACCESS_LISTED )
        return VMRI_VERR_RIGHTS;
    if ( bounded && (addr < r->iova || addr - r->iova > r->length ||
                     length > r->length - (addr - r->iova)) )
        return VMRI_VERR_BOUNDS;
    return VMRI_VERR_NONE;
}

/* Where a range of a registered region lies; NULL: *verr says why not. */
static uint8_t *resolve(const struct keys *keys, uint32_t key, uint64_t addr,
                        uint32_t length, uint32_t access, uint16_t *verr)
{
    const struct region *r = region_of_key(keys->side, key);

    *verr = key_verdict(keys, key, access, true, addr, length);
    return *verr ? NULL
                 : keys->side->memory.image + r->at + (addr - r->iova);
}

/* The same for a frame that a kernel queue names. */
static uint8_t *resolve_frame(const struct keys *keys,
                              const struct vmri_sge *sge, uint16_t *verr)
{
    uint64_t page = (sge->addr >> PAGE_SHIFT) - keys->side->memory.gfn;
    uint32_t offset = sge->addr & (PAGE_SIZE - 1);

    if ( offset + sge->length > PAGE_SIZE )
        *verr = VMRI_VERR_BOUNDS;
    else if ( page >= SIDES * HALF_PAGES )
        *verr = VMRI_VERR_FRAME;
    else
        return keys->side->memory.image + page * PAGE_SIZE + offset;
    return NULL;
}

void spans_of_list(struct spans *s, const struct keys *keys,
                   const struct vmri_sge *sge, unsigned int num,
                   uint32_t access, uint64_t want)
{
    unsigned int i;

    *s = (struct spans){ .num = 0 };
    for ( i = 0; i < num && s->bytes < want; i++ )
    {
        uint64_t bytes = min((uint64_t)sge[i].length, want - s->bytes);
        uint8_t *at;

        if ( !sge[i].length )
            continue;
        at = keys->kernel && sge[i].lkey == VMRI_LKEY_FRAMES
             ? resolve_frame(keys, &sge[i], &s->verr)
             : resolve(keys, sge[i].lkey, sge[i].addr, bytes,
                       access | ACCESS_LISTED, &s->verr);
        if ( !at )
            return;
        add_span(s, at, bytes);
    }
}

void spans_of_range(struct spans *s, const struct keys *keys, uint32_t key,
                    uint64_t addr, uint32_t length, uint32_t access)
{
    uint8_t *at;

    *s = (struct spans){ .num = 0 };
    if ( !length )
        return;
    at = resolve(keys, key, addr, length, access, &s->verr);
    if ( at )
        add_span(s, at, length);
}

void spans_skip(struct spans *s, uint32_t bytes)
{
    unsigned int i;

    s->bytes -= bytes;
    for ( i = 0; bytes && i < s->num; i++ )
    {
        uint32_t n = min(bytes, s->span[i].length);

        s->span[i].at += n;
        s->span[i].length -= n;
        bytes -= n;
    }
}

/* ---- copies ---- */

static void touch(struct side *side, uint8_t *at, uint32_t length, bool surely)
{
    struct cell *c = side->cell;
    struct touched *t = &c->touched[c->nr_touched];

    if ( c->nr_touched == TOUCHED )
    {
        c->touched_all = true;
        return;
    }
    *t = (struct touched){
        .side = side, .length = length,
        .at = (uint32_t)(at - side->memory.image),
    };
    if ( !surely )
    {
        t->old = malloc(length);
        memcpy(t->old, at, length);
    }
    c->nr_touched++;
}

void spans_copy(struct side *side, const struct spans *to,
                const struct spans *from, uint64_t bytes, bool surely)
{
    unsigned int i = 0, j = 0;
    uint32_t i_used = 0, j_used = 0;

    while ( bytes )
    {
        uint32_t n = min(to->span[i].length - i_used,
                         from->span[j].length - j_used);

        if ( n > bytes )
            n = (uint32_t)bytes;
        if ( n )
        {
            touch(side, to->span[i].at + i_used, n, surely);
            memcpy(to->span[i].at + i_used, from->span[j].at + j_used, n);
        }
        bytes -= n;
        i_used += n;
        j_used += n;
        if ( i_used == to->span[i].length )
        {
            i++;
            i_used = 0;
        }
        if ( j_used == from->span[j].length )
        {
            j++;
            j_used = 0;
        }
    }
}

/* ---- comparison ---- */

static void compare(struct side *s, uint32_t at, uint32_t length)
{
    const struct memory *m = &s->memory;
    uint32_t i;

    if ( !memcmp(m->mem + at, m->image + at, length) )
        return;
    for ( i = at; m->mem[i] == m->image[i]; i++ )
        ;
    test_failed(__FILE__, __LINE__, "side %u: byte %#x of what was written at "
                "%#x, %u long, is %#x, not %#x", s->index, i, at, length,
                m->mem[i], m->image[i]);
}

/*
 * A request that failed may have written some of its bytes: each must be what
 * it was, or what it would have become.  Where entries lie over each other
 * there are more possibilities; then any may be.
 */
static void accept(struct touched *t, bool overlaps)
{
    struct memory *m = &t->side->memory;
    uint32_t i;

    for ( i = 0; i < t->length; i++ )
    {
        uint8_t *is = m->mem + t->at + i, *may = m->image + t->at + i;

        if ( *is != *may && *is != t->old[i] && !overlaps )
            test_failed(__FILE__, __LINE__, "side %u: byte %#x, which a failed "
                        "request may have written, is %#x, not %#x or %#x",
                        t->side->index, t->at + i, *is, *may, t->old[i]);
        *may = *is;
    }
    free(t->old);
    t->old = NULL;
}

static bool lies_over(const struct touched *a, const struct touched *b)
{
    return a != b && a->side == b->side && a->at < b->at + b->length &&
           b->at < a->at + a->length;
}

static bool lies_over_any(struct cell *c, const struct touched *t)
{
    uint32_t i;

    for ( i = 0; i < c->nr_touched; i++ )
        if ( lies_over(t, &c->touched[i]) )
            return true;
    return c->touched_all;
}

void memory_verify(struct cell *c)
{
    uint32_t i;

    for ( i = 0; i < c->nr_touched; i++ )
        if ( c->touched[i].old )
            accept(&c->touched[i], lies_over_any(c, &c->touched[i]));
    if ( c->touched_all )
        memory_verify_all(c);
    else
        for ( i = 0; i < c->nr_touched; i++ )
            compare(c->touched[i].side, c->touched[i].at,
                    c->touched[i].length);
    c->nr_touched = 0;
    c->touched_all = false;
}

void memory_verify_all(struct cell *c)
{
    unsigned int i;

    for ( i = 0; i < SIDES; i++ )
        compare(&c->side[i], 0, SIDES * HALF);
}
