/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: where in their region the parts of queues lie.  The guest chooses; no
 * part may reach into another, and no entry may cross a page.
 */
#include "internal.h"

/* A part's place; with end 0 it is absent. */
struct extent {
    uint64_t start;
    uint64_t end;
};

static bool overlap(const struct extent *a, const struct extent *b)
{
    return a->start < a->end && b->start < b->end &&
           a->start < b->end && b->start < a->end;
}

/* Entries of a power of two that fit a page and do not cross one. */
static bool extent_init(struct extent *e, uint32_t offset,
                        unsigned int entries, unsigned int stride)
{
    if ( offset & ((1U << stride) - 1) )
        return false;

    e->start = offset;
    e->end = offset + (1ULL << (entries + stride));

    return true;
}

static bool layout_send(const struct vmri_qp_create *arg, struct extent *e)
{
    uint32_t room;

    if ( !arg->sq_log2_stride )
        return !arg->sq_log2_entries && !arg->sq_offset &&
               !arg->max_send_sge && !arg->max_inline;

    if ( arg->sq_log2_stride < 6 || arg->sq_log2_stride > VMRI_PAGE_SHIFT ||
         arg->sq_log2_entries > VMRI_MAX_WR_SHIFT ||
         arg->max_send_sge > VMRI_MAX_SGE ||
         arg->max_inline > VMRI_MAX_INLINE )
        return false;

    room = (1U << arg->sq_log2_stride) - sizeof(struct vmri_send_wqe);

    return arg->max_send_sge * sizeof(struct vmri_sge) <= room &&
           arg->max_inline <= room &&
           extent_init(e, arg->sq_offset, arg->sq_log2_entries,
                       arg->sq_log2_stride);
}

/* A receive queue, shared or not, that there is. */
static bool layout_receive(uint32_t offset, uint8_t log2_entries,
                           uint8_t log2_stride, uint8_t max_sge,
                           struct extent *e)
{
    uint32_t room;

    if ( log2_stride < 5 || log2_stride > VMRI_PAGE_SHIFT ||
         log2_entries > VMRI_MAX_WR_SHIFT || max_sge > VMRI_MAX_SGE )
        return false;

    room = (1U << log2_stride) - sizeof(struct vmri_recv_wqe);

    return max_sge * sizeof(struct vmri_sge) <= room &&
           extent_init(e, offset, log2_entries, log2_stride);
}

static bool layout_indirect(uint32_t offset, uint8_t log2_entries, bool kernel,
                            struct extent *e)
{
    if ( !log2_entries )
        return !offset;

    return kernel && log2_entries <= VMRI_MAX_INDIRECT_SHIFT &&
           extent_init(e, offset, log2_entries, 4);
}

/* Where the last part ends, or 0 when two of them overlap. */
static uint64_t end_of(const struct extent *part, unsigned int nr)
{
    uint64_t end = 0;
    unsigned int i, j;

    for ( i = 0; i < nr; i++ )
    {
        for ( j = 0; j < i; j++ )
            if ( overlap(&part[i], &part[j]) )
                return 0;
        if ( part[i].end > end )
            end = part[i].end;
    }

    return end;
}

uint64_t vmri_layout_qp(const struct vmri_qp_create *arg)
{
    struct extent part[4] = { { 0, sizeof(struct vmri_qp_hdr) } };
    bool receives = arg->rq_log2_stride;

    if ( !receives &&
         (arg->rq_log2_entries || arg->rq_offset || arg->max_recv_sge) )
        return 0;

    if ( !layout_send(arg, &part[1]) ||
         (receives &&
          !layout_receive(arg->rq_offset, arg->rq_log2_entries,
                          arg->rq_log2_stride, arg->max_recv_sge, &part[2])) ||
         !layout_indirect(arg->ind_offset, arg->ind_log2_entries,
                          arg->flags & VMRI_QPF_KERNEL, &part[3]) )
        return 0;

    return end_of(part, ARRAY_SIZE(part));
}

uint64_t vmri_layout_srq(const struct vmri_wq *wq,
                         const struct vmri_rings *rings)
{
    struct extent part[3] = { { 0, sizeof(struct vmri_wq_hdr) } };

    if ( !layout_receive(wq->offset, wq->log2_entries, wq->log2_stride,
                         wq->max_sge, &part[1]) ||
         !layout_indirect(rings->ind_offset, rings->ind_log2_entries,
                          rings->kernel, &part[2]) )
        return 0;

    return end_of(part, ARRAY_SIZE(part));
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
