/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the attachments of a multicast group, in order.
 *
 * A sender that comes back goes on behind the last number it has served, and
 * guests decide who attaches and detaches meanwhile: so what it costs to find
 * the place must not depend on them.  This is a digital search tree: a node
 * at depth d has the d leading bits of its number in common with all below
 * it, and the next bit tells on which side those are.  Depth is bounded by
 * the bits of a number, there is nothing to balance, and any node may take
 * the place of one above it.
 */
#include "internal.h"

/* Walks start here and go down a bit a level. */
#define TOP     (1ULL << 63)

/* Below the last bit there is nothing: either side will do. */
static unsigned int side(uint64_t number, uint64_t bit)
{
    return (number & bit) != 0;
}

void vmri_mcgtree_add(struct vmri_attachment **root, struct vmri_attachment *a)
{
    struct vmri_attachment **link = root;
    uint64_t bit;

    for ( bit = TOP; *link; bit >>= 1 )
        link = &(*link)->child[side(a->number, bit)];

    a->child[0] = a->child[1] = NULL;
    *link = a;
}

void vmri_mcgtree_remove(struct vmri_attachment **root,
                         const struct vmri_attachment *a)
{
    struct vmri_attachment **link = root, **last, *leaf;
    uint64_t bit;

    for ( bit = TOP; *link != a; bit >>= 1 )
        link = &(*link)->child[side(a->number, bit)];

    /* A leaf below takes its place. */
    last = link;
    while ( (*last)->child[0] || (*last)->child[1] )
        last = &(*last)->child[!(*last)->child[0]];

    leaf = *last;
    *last = NULL;
    if ( leaf != a )
    {
        leaf->child[0] = a->child[0];
        leaf->child[1] = a->child[1];
        *link = leaf;
    }
}

static struct vmri_attachment *lower(struct vmri_attachment *a,
                                     struct vmri_attachment *b)
{
    return !a || (b && b->number < a->number) ? b : a;
}

/* All of a node's left side are lower than all of its right side. */
static struct vmri_attachment *lowest(struct vmri_attachment *node)
{
    struct vmri_attachment *best = NULL;

    for ( ; node; node = node->child[!node->child[0]] )
        best = lower(best, node);

    return best;
}

struct vmri_attachment *vmri_mcgtree_from(struct vmri_attachment *root,
                                          uint64_t from)
{
    struct vmri_attachment *best = NULL, *above = NULL, *node = root;
    uint64_t bit;

    for ( bit = TOP; node; bit >>= 1 )
    {
        if ( node->number >= from )
            best = lower(best, node);
        /* The deeper it branches off, the lower are those above `from`. */
        if ( !side(from, bit) && node->child[1] )
            above = node->child[1];
        node = node->child[side(from, bit)];
    }

    return lower(best, lowest(above));
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
