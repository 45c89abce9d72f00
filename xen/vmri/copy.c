/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: bytes from pages to pages.
 *
 * Both sides are resolved into runs of contiguous machine frames.  A run of a
 * registered region needs no reference but the one to its key, since its
 * frames are pinned; a single frame that a kernel queue names, or a fast MR
 * has, is checked and referenced here.  Either is put before the caller
 * publishes a completion.
 */
#include "internal.h"

static void frame_put(struct vmri_place *p)
{
    if ( p->held )
        env_frame_put(p->held_frame, p->write);
    p->held = false;
}

void vmri_place_put(struct vmri_place *p)
{
    frame_put(p);
    if ( p->k )
        vmri_key_put(p->k);
    p->k = NULL;
    p->run = 0;
}

/* `run` bytes of a frame that is not pinned. */
static bool frame_get(struct vmri_place *p, uint64_t gfn, uint32_t offset,
                      uint64_t run)
{
    if ( env_frame_get(p->qp->dev->domain, gfn, p->write, &p->held_frame) )
    {
        p->vendor_err = VMRI_VERR_FRAME;
        return false;
    }

    p->held = true;
    p->frame = p->held_frame;
    p->offset = offset;
    p->run = run;

    return true;
}

/* One frame that the guest's kernel names; its queue has the privilege. */
static bool resolve_frame(struct vmri_place *p, const struct vmri_sge *sge)
{
    uint64_t addr = sge->addr + p->sgl->used;

    if ( (sge->addr & (VMRI_PAGE_SIZE - 1)) + sge->length > VMRI_PAGE_SIZE )
    {
        p->vendor_err = VMRI_VERR_BOUNDS;
        return false;
    }

    return frame_get(p, addr >> VMRI_PAGE_SHIFT, addr & (VMRI_PAGE_SIZE - 1),
                     sge->length - p->sgl->used);
}

/*
 * The run at addr of what a key names.  All of the `bytes` that the request
 * will still touch are checked here: a range that ends outside moves nothing.
 */
static bool resolve_key(struct vmri_place *p, uint32_t key,
                        const struct vmri_pd *pd, uint32_t access,
                        uint64_t addr, uint64_t bytes)
{
    uint64_t run;

    if ( !p->k )
        p->k = vmri_key_get(p->qp, pd, key, access, addr, bytes,
                            &p->vendor_err);
    if ( !p->k )
        return false;

    run = vmri_range_frame(&p->k->range, addr, &p->frame, &p->offset);
    if ( run > bytes )
        run = bytes;
    if ( !p->k->range.pinned )
        return frame_get(p, p->frame, p->offset, run);
    p->run = run;

    return true;
}

static uint32_t local_rights(const struct vmri_place *p)
{
    return (p->sgl->kernel ? VMRI_KEY_LOCAL_KERNEL : VMRI_KEY_LOCAL) |
           (p->write ? VMRI_ACCESS_LOCAL_WRITE : 0);
}

/*
 * Of an entry that is longer than what comes, the end need not be there: receives
 * often name a whole buffer that ends sooner.
 */
static bool resolve_list(struct vmri_place *p)
{
    struct vmri_cursor *sgl = p->sgl;
    uint64_t bytes;

    while ( sgl->used == sgl->cur.length )
    {
        vmri_place_put(p);
        if ( !vmri_cursor_next(sgl) )
        {
            p->vendor_err = VMRI_VERR_LENGTH;
            return false;
        }
    }

    if ( sgl->kernel && sgl->cur.lkey == VMRI_LKEY_FRAMES )
        return resolve_frame(p, &sgl->cur);

    bytes = sgl->cur.length - sgl->used;
    return resolve_key(p, sgl->cur.lkey, sgl->pd, local_rights(p),
                       sgl->cur.addr + sgl->used,
                       bytes < p->extent ? bytes : p->extent);
}

/* Have a run of at least one byte at hand; `bytes` are to be moved now. */
static bool resolve(struct vmri_place *p, uint64_t bytes)
{
    if ( p->run )
        return true;

    if ( p->data )
    {
        p->run = bytes;
        return true;
    }

    if ( p->sgl )
        return resolve_list(p);

    return resolve_key(p, p->key, p->pd, p->access, p->addr,
                       p->extent);
}

uint64_t vmri_place_hold(struct vmri_place *p, uint64_t bytes)
{
    if ( !resolve(p, bytes) )
    {
        vmri_place_put(p);
        return 0;
    }

    return bytes < p->run ? bytes : p->run;
}

static void advance(struct vmri_place *p, uint64_t bytes)
{
    p->run -= bytes;
    p->moved += bytes;

    if ( p->data )
    {
        p->data += bytes;
        return;
    }

    p->frame += (p->offset + bytes) >> VMRI_PAGE_SHIFT;
    p->offset = (p->offset + bytes) & (VMRI_PAGE_SIZE - 1);

    p->extent -= bytes;
    if ( p->sgl )
        p->sgl->used += bytes;
    else
        p->addr += bytes;

    /* A single frame is done with; a key may have a run behind this one. */
    if ( !p->run )
        frame_put(p);
}

/* Copy what one mapping of either side covers, and say how much that was. */
static size_t copy_mapped(struct vmri_place *to, struct vmri_place *from,
                          size_t bytes)
{
    const uint8_t *src = from->data;
    uint8_t *dst;

    bytes = env_run(to->frame, to->offset, bytes);
    if ( !src )
    {
        bytes = env_run(from->frame, from->offset, bytes);
        src = env_map(from->frame);
        src += from->offset;
    }
    dst = env_map(to->frame);

    memcpy(dst + to->offset, src, bytes);

    env_unmap(dst);
    if ( !from->data )
        env_unmap(src - from->offset);

    env_frames_dirty(to->qp->dev->domain, to->frame,
                     vmri_frames_of(to->offset, bytes));

    return bytes;
}

bool vmri_copy_probe(struct vmri_place *from, uint64_t bytes)
{
    while ( bytes && resolve(from, bytes) )
    {
        uint64_t n = bytes < from->run ? bytes : from->run;

        advance(from, n);
        bytes -= n;
    }
    vmri_place_put(from);

    return !bytes;
}

bool vmri_copy_here(void *to, struct vmri_place *from, uint64_t bytes)
{
    while ( bytes && resolve(from, bytes) )
    {
        uint64_t n = bytes < from->run ? bytes : from->run;
        const uint8_t *src = from->data;

        if ( !src )
        {
            n = env_run(from->frame, from->offset, n);
            src = env_map(from->frame);
            src += from->offset;
        }
        memcpy(to, src, n);
        if ( !from->data )
            env_unmap(src - from->offset);

        to = (uint8_t *)to + n;
        advance(from, n);
        bytes -= n;
    }
    vmri_place_put(from);

    return !bytes;
}

enum vmri_copied vmri_copy(struct vmri_place *to, struct vmri_place *from,
                           uint64_t bytes)
{
    enum vmri_copied rc = VMRI_COPIED;

    while ( bytes )
    {
        uint64_t n = bytes;

        if ( !resolve(from, bytes) )
        {
            rc = VMRI_COPY_FROM;
            break;
        }
        if ( !resolve(to, bytes) )
        {
            rc = VMRI_COPY_TO;
            break;
        }

        if ( n > from->run )
            n = from->run;
        if ( n > to->run )
            n = to->run;

        n = copy_mapped(to, from, n);
        advance(from, n);
        advance(to, n);
        bytes -= n;
    }

    vmri_place_put(from);
    vmri_place_put(to);

    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
