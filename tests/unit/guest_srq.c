/* SPDX-License-Identifier: GPL-2.0-only */
/* Guests' shared receive queues: create, modify, post, ring. */
#include "guest.h"

#include <stdlib.h>
#include <string.h>

uint32_t guest_xrcd(struct guest *g)
{
    struct vmri_object arg = { .handle = 0 };

    CHECK_EQ(guest_call(g, VMRI_OP_xrcd_create, &arg, sizeof(arg)), 0);
    return arg.handle;
}

/* New pages, and where the parts lie in them. */
static void srq_place(struct guest_srq *srq)
{
    struct vmri_srq_create *a = &srq->arg;
    uint32_t bytes;

    a->offset = ROUNDUP(128U, 1U << a->log2_stride);
    bytes = a->offset + (1U << (a->log2_entries + a->log2_stride));
    if ( a->ind_log2_entries )
    {
        a->ind_offset = ROUNDUP(bytes, 16U);
        bytes = a->ind_offset + (16U << a->ind_log2_entries);
    }

    srq->pages = (uint32_t)PFN_UP((uint64_t)bytes);
    srq->gfn = env_test_pages(srq->guest->domain, srq->pages, true);
    srq->mem = env_test_mem(srq->guest->domain, srq->gfn);
    srq->hdr = (struct vmri_wq_hdr *)srq->mem;
}

struct guest_srq *srq_prepare(struct guest *g,
                              const struct guest_srq_opts *opts)
{
    struct guest_srq *srq = calloc(1, sizeof(*srq));
    struct vmri_srq_create *a = &srq->arg;

    srq->guest = g;
    if ( opts->xrcd )
        srq->cq = opts->cq ? opts->cq : guest_cq(g, 6);
    *a = (struct vmri_srq_create){
        .pd = opts->pd ? opts->pd : g->pd,
        .eq = g->eq[0]->handle,
        .xrcd = opts->xrcd, .cq = srq->cq ? srq->cq->handle : 0,
        .flags = opts->kernel ? VMRI_QPF_KERNEL : 0,
        .limit = opts->limit,
        .log2_entries = opts->log2 ? opts->log2 : 4,
        .max_sge = opts->max_sge ? opts->max_sge : 4,
        .ind_log2_entries = opts->ind_log2,
        .log2_stride = 5,
    };
    while ( 1U << a->log2_stride < 16U + 16U * a->max_sge )
        a->log2_stride++;
    srq_place(srq);
    return srq;
}

/* A call with the list of the SRQ's frames. */
static long call_with_frames(struct guest_srq *srq, unsigned int cmd, void *arg,
                             size_t bytes, struct vmri_frames *frames)
{
    uint64_t *list = calloc(srq->pages, sizeof(*list));
    long rc;

    guest_frames(frames, list, srq->gfn, srq->pages);
    env_test_expose(list, srq->pages * sizeof(*list));
    rc = guest_call(srq->guest, cmd, arg, bytes);
    env_test_hide();
    free(list);
    return rc;
}

long try_srq(struct guest_srq *srq)
{
    long rc = call_with_frames(srq, VMRI_OP_srq_create, &srq->arg,
                               sizeof(srq->arg), &srq->arg.frames);

    srq->handle = srq->arg.handle;
    return rc;
}

struct guest_srq *guest_srq(struct guest *g, const struct guest_srq_opts *opts)
{
    static const struct guest_srq_opts none;
    struct guest_srq *srq = srq_prepare(g, opts ? opts : &none);

    CHECK_EQ(try_srq(srq), 0);
    return srq;
}

long srq_destroy(struct guest_srq *srq)
{
    struct vmri_object arg = { .handle = srq->handle };

    return guest_call(srq->guest, VMRI_OP_srq_destroy, &arg, sizeof(arg));
}

long srq_query(struct guest_srq *srq, struct vmri_srq_query *arg)
{
    *arg = (struct vmri_srq_query){ .handle = srq->handle };
    return guest_call(srq->guest, VMRI_OP_srq_query, arg, sizeof(*arg));
}

long srq_set_limit(struct guest_srq *srq, uint32_t limit)
{
    struct vmri_srq_modify arg = {
        .handle = srq->handle, .mask = VMRI_SRQA_LIMIT, .limit = limit,
    };

    return guest_call(srq->guest, VMRI_OP_srq_modify, &arg, sizeof(arg));
}

static void *slot(const struct guest_srq *srq, uint32_t index)
{
    return srq->mem + srq->arg.offset +
           ((index & ((1U << srq->arg.log2_entries) - 1))
            << srq->arg.log2_stride);
}

static struct vmri_sge *indirect(const struct guest_srq *srq, uint32_t index)
{
    return (struct vmri_sge *)(srq->mem + srq->arg.ind_offset) +
           (index & ((1U << srq->arg.ind_log2_entries) - 1));
}

/*
 * All slots go, since VMRI takes some meanwhile; the last ones of a larger
 * queue are all that a smaller one could hold.
 */
static void copy_posted(struct guest_srq *to, const struct guest_srq *from)
{
    uint32_t size = 1U << from->arg.log2_entries, i;

    if ( size > 1U << to->arg.log2_entries )
        size = 1U << to->arg.log2_entries;
    for ( i = from->prod - size; i != from->prod; i++ )
        memcpy(slot(to, i), slot(from, i), 1U << from->arg.log2_stride);

    if ( from->arg.ind_log2_entries )
        for ( i = 0; i < 1U << from->arg.ind_log2_entries; i++ )
            *indirect(to, i) = *indirect(from, i);
    env_store(&to->hdr->prod, from->prod);
}

long srq_resize(struct guest_srq *srq, uint8_t log2)
{
    struct vmri_srq_modify arg = {
        .handle = srq->handle, .mask = VMRI_SRQA_RESIZE,
    };
    struct guest_srq to = *srq;
    long rc;

    to.arg.log2_entries = log2;
    srq_place(&to);
    copy_posted(&to, srq);
    arg.offset = to.arg.offset;
    arg.ind_offset = to.arg.ind_offset;
    arg.log2_entries = to.arg.log2_entries;
    arg.ind_log2_entries = to.arg.ind_log2_entries;
    rc = call_with_frames(&to, VMRI_OP_srq_modify, &arg, sizeof(arg),
                          &arg.frames);
    if ( !rc )
        *srq = to;
    return rc;
}

void srq_post(struct guest_srq *srq, uint64_t wr_id, const struct vmri_sge *sge,
              unsigned int num)
{
    struct vmri_recv_wqe *wqe = slot(srq, srq->prod);
    unsigned int i;

    *wqe = (struct vmri_recv_wqe){ .wr_id = wr_id, .num_sge = (uint16_t)num };
    if ( num > srq->arg.max_sge )
    {
        wqe->flags = VMRI_RECV_INDIRECT;
        wqe->ind_start = srq->prod_ind;
        for ( i = 0; i < num; i++ )
            *indirect(srq, srq->prod_ind++) = sge[i];
    }
    else if ( num )
        memcpy(wqe + 1, sge, num * sizeof(*sge));

    env_store_release(&srq->hdr->prod, ++srq->prod);
}

void srq_recv(struct guest_srq *srq, uint64_t wr_id, const struct vmri_sge *sge,
              unsigned int num)
{
    long rc = 0;

    srq_post(srq, wr_id, sge, num);
    env_mb();
    if ( env_load(&srq->hdr->wait) )
        do
            rc = guest_srq_schedule(srq->guest, srq->handle);
        while ( rc == VMRI_SCHEDULE_MORE );
    CHECK_EQ(rc, 0);
}
