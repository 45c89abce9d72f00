/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the pages of memory regions by their number, at one price whatever the
 * size, and next to none for contiguous memory.
 */
#include "internal.h"

#define WHOLE_SHIFT     31      /* of chunks that no region is larger than */

/* ---- arrays of frames ---- */

static uint32_t array_leaves(const struct vmri_frame_array *a)
{
    return (a->nr + VMRI_LEAF_FRAMES - 1) / VMRI_LEAF_FRAMES;
}

static size_t leaf_bytes(const struct vmri_frame_array *a, uint32_t leaf)
{
    return min_t(size_t, a->nr - leaf * VMRI_LEAF_FRAMES, VMRI_LEAF_FRAMES) *
           sizeof(env_frame_t);
}

static void leaf_free(struct vmri_dev *dev, struct vmri_frame_array *a,
                      uint32_t leaf)
{
    vmri_free(dev, a->leaf[leaf], leaf_bytes(a, leaf));
    a->leaf[leaf] = NULL;
}

int vmri_pages_init(struct vmri_dev *dev, struct vmri_pages *p, uint32_t nr)
{
    *p = (struct vmri_pages){ .nr = nr, .chunks.nr = nr };
    p->chunks.leaf = vmri_alloc(dev, array_leaves(&p->chunks) *
                                     sizeof(*p->chunks.leaf));

    return p->chunks.leaf ? 0 : -ENOMEM;
}

void vmri_pages_free(struct vmri_dev *dev, struct vmri_pages *p)
{
    struct vmri_frame_array *a = &p->chunks;

    if ( !a->leaf )
        return;

    while ( p->leaves )
        leaf_free(dev, a, --p->leaves);

    vmri_free(dev, a->leaf, array_leaves(a) * sizeof(*a->leaf));
    a->leaf = NULL;
}

/* ---- adding ---- */

env_frame_t *vmri_pages_next(struct vmri_dev *dev, struct vmri_pages *p)
{
    uint32_t leaf = p->filled / VMRI_LEAF_FRAMES;

    if ( leaf == p->leaves )
    {
        p->chunks.leaf[leaf] = vmri_alloc(dev, leaf_bytes(&p->chunks, leaf));
        if ( !p->chunks.leaf[leaf] )
            return NULL;
        p->leaves++;
    }

    return vmri_array_at(&p->chunks, p->filled);
}

void vmri_pages_added(struct vmri_pages *p)
{
    uint32_t i = p->filled++;

    if ( !i || *vmri_array_at(&p->chunks, i) == *vmri_array_at(&p->chunks, i - 1) + 1 )
        return;

    if ( p->edge )
        p->edges |= i - p->edge;
    else
        p->edge = i;
}

/* ---- packing ---- */

/*
 * All edges, pages that do not follow their neighbour, lie on chunk boundaries
 * when the first does (by the bias) and the distances of the others to it are
 * multiples of the chunk size.
 */
static uint32_t pack_shift(const struct vmri_pages *p)
{
    return p->edges ? __builtin_ctz(p->edges) : WHOLE_SHIFT;
}

/* Free leaves from the end on: true when only `keep` are left. */
static bool trim(struct vmri_dev *dev, struct vmri_pages *p, uint32_t keep)
{
    uint32_t n = 0;

    while ( p->leaves > keep )
    {
        if ( n++ == VMRI_FRAME_BATCH )
            return false;
        leaf_free(dev, &p->chunks, --p->leaves);
    }

    return true;
}

static int pack_whole(struct vmri_dev *dev, struct vmri_pages *p)
{
    if ( p->chunk_shift != WHOLE_SHIFT )
    {
        p->first = *vmri_array_at(&p->chunks, 0);
        p->chunk_shift = WHOLE_SHIFT;
    }

    if ( !trim(dev, p, 0) )
        return -ERESTART;
    vmri_pages_free(dev, p);

    return 0;
}

/*
 * In place: chunk c, written at c, is never behind the page that it is read
 * from, and what follows is read from farther on.  The first chunk may start
 * before the region, which nobody sees.
 */
static bool pack_some(struct vmri_pages *p, uint32_t nr, unsigned int shift,
                      uint32_t bias)
{
    uint32_t n = 0;

    while ( p->packed < nr )
    {
        uint32_t c = p->packed++;

        if ( c )
            *vmri_array_at(&p->chunks, c) = *vmri_array_at(&p->chunks,
                                                 (c << shift) - bias);
        else
            *vmri_array_at(&p->chunks, 0) -= bias;

        if ( !(++n % VMRI_FRAME_BATCH) && p->packed < nr &&
             (n >= VMRI_CALL_FRAMES || env_preempt()) )
            return false;
    }

    return true;
}

static int pack(struct vmri_dev *dev, struct vmri_pages *p)
{
    const unsigned int shift = pack_shift(p);
    const uint32_t bias = -p->edge & ((1U << shift) - 1);
    const uint32_t nr = ((p->nr - 1 + bias) >> shift) + 1;

    if ( !p->edge )
        return pack_whole(dev, p);

    /* Without gain it stays as it is. */
    if ( nr > p->nr / 2 )
        return 0;

    if ( !pack_some(p, nr, shift, bias) )
        return -ERESTART;

    p->chunk_shift = shift;
    p->bias = bias;

    return trim(dev, p, (nr - 1) / VMRI_LEAF_FRAMES + 1) ? 0 : -ERESTART;
}

int vmri_pages_pack(struct vmri_dev *dev, struct vmri_pages *p)
{
    int ret = pack(dev, p);

    p->packing = ret;

    return ret;
}

/* ---- taking away ---- */

env_frame_t vmri_pages_pop(struct vmri_dev *dev, struct vmri_pages *p)
{
    uint32_t i = --p->filled, run;
    uint32_t chunk = (i + p->bias) >> p->chunk_shift;
    env_frame_t frame = vmri_pages_at(p, i, &run);

    /* Leaves go as they get empty, so that none of this takes long. */
    if ( p->chunks.leaf && !(chunk % VMRI_LEAF_FRAMES) &&
         (!i || (i - 1 + p->bias) >> p->chunk_shift != chunk) )
        while ( p->leaves > chunk / VMRI_LEAF_FRAMES )
            leaf_free(dev, &p->chunks, --p->leaves);

    return frame;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
