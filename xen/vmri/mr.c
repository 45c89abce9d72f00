/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: memory regions.
 *
 * Registering and deregistering may take many calls, each of which goes on
 * where the last one stopped.  Until it ends, such an MR is in pending_mrs of
 * the device, where the next call claims it (`busy`); when no next call comes,
 * vmri_dev_close finishes it.  Its key stays taken for as long.
 */
#include "internal.h"

#define LEAF_FRAMES     (VMRI_PAGE_SIZE / sizeof(env_frame_t))
#define WHOLE_SHIFT     31      /* of chunks that no MR is larger than */

/* ---- arrays of frames ---- */

static uint32_t array_leaves(const struct vmri_frame_array *a)
{
    return (a->nr + LEAF_FRAMES - 1) / LEAF_FRAMES;
}

static size_t leaf_bytes(const struct vmri_frame_array *a, uint32_t leaf)
{
    return min_t(size_t, a->nr - leaf * LEAF_FRAMES, LEAF_FRAMES) *
           sizeof(env_frame_t);
}

static int array_init(struct vmri_dev *dev, struct vmri_frame_array *a,
                      uint32_t nr)
{
    a->nr = nr;
    a->leaf = vmri_alloc(dev, array_leaves(a) * sizeof(*a->leaf));

    return a->leaf ? 0 : -ENOMEM;
}

static void array_free(struct vmri_dev *dev, struct vmri_frame_array *a)
{
    uint32_t i;

    if ( !a->leaf )
        return;

    for ( i = 0; i < array_leaves(a); i++ )
        vmri_free(dev, a->leaf[i], leaf_bytes(a, i));

    vmri_free(dev, a->leaf, array_leaves(a) * sizeof(*a->leaf));
    a->leaf = NULL;
}

static env_frame_t *array_at(const struct vmri_frame_array *a, uint32_t i)
{
    return &a->leaf[i / LEAF_FRAMES][i % LEAF_FRAMES];
}

/* The same with the leaf made when new; NULL: no memory. */
static env_frame_t *array_make(struct vmri_dev *dev,
                               struct vmri_frame_array *a, uint32_t i)
{
    env_frame_t **leaf = &a->leaf[i / LEAF_FRAMES];

    if ( !*leaf )
        *leaf = vmri_alloc(dev, leaf_bytes(a, i / LEAF_FRAMES));

    return *leaf ? array_at(a, i) : NULL;
}

/* ---- pages of an MR ---- */

static bool mr_writable(const struct vmri_mr *mr)
{
    return mr->access & VMRI_ACCESS_LOCAL_WRITE;
}

/* The frame of page i, and how many pages from it on its chunk has. */
static env_frame_t mr_page(const struct vmri_mr *mr, uint32_t i, uint32_t *run)
{
    uint32_t size = 1U << mr->chunk_shift;
    uint32_t chunk = (i + mr->bias) >> mr->chunk_shift;
    uint32_t in_chunk = (i + mr->bias) & (size - 1);

    *run = min(size - in_chunk, mr->nr - i);

    return (mr->chunks.leaf ? *array_at(&mr->chunks, chunk) : mr->first) +
           in_chunk;
}

uint64_t vmri_mr_frame(const struct vmri_mr *mr, uint64_t addr,
                       env_frame_t *frame, uint32_t *offset)
{
    uint64_t byte = addr - mr->iova + mr->offset;
    uint32_t page = env_nospec(byte >> VMRI_PAGE_SHIFT, mr->nr);
    uint32_t run;

    *frame = mr_page(mr, page, &run);
    *offset = byte & (VMRI_PAGE_SIZE - 1);

    return ((uint64_t)run << VMRI_PAGE_SHIFT) - *offset;
}

/*
 * Chunks as large as they can be: all edges, pages that do not follow their
 * neighbour, lie on chunk boundaries when the first does (by the bias) and the
 * distances of the others to it are multiples of the chunk size.
 */
static void mr_compress(struct vmri_dev *dev, struct vmri_mr *mr)
{
    uint32_t shift = mr->edges ? __builtin_ctz(mr->edges) : WHOLE_SHIFT;
    uint32_t bias = -mr->edge & ((1U << shift) - 1);
    uint32_t nr = ((mr->nr - 1 + bias) >> shift) + 1;
    struct vmri_frame_array chunks;
    uint32_t c, run;

    if ( !mr->edge )
    {
        mr->first = *array_at(&mr->chunks, 0);
        mr->chunk_shift = WHOLE_SHIFT;
        array_free(dev, &mr->chunks);
        return;
    }

    /* Without gain, or without memory, it stays as it is. */
    if ( nr > mr->nr / 2 || array_init(dev, &chunks, nr) )
        return;

    for ( c = 0; c < nr; c++ )
    {
        env_frame_t *frame = array_make(dev, &chunks, c);

        if ( !frame )
        {
            array_free(dev, &chunks);
            return;
        }

        /* The first chunk may start before the MR, which nobody sees. */
        *frame = c ? mr_page(mr, (c << shift) - bias, &run)
                   : mr_page(mr, 0, &run) - bias;
    }

    array_free(dev, &mr->chunks);
    mr->chunks = chunks;
    mr->chunk_shift = shift;
    mr->bias = bias;
}

/* ---- pinning: by the call that has made the MR busy ---- */

static int pin_page(struct vmri_mr *mr, uint64_t gfn)
{
    uint32_t i = mr->pinned;
    env_frame_t *frame = array_make(mr->dev, &mr->chunks, i);
    int ret;

    if ( !frame )
        return -ENOMEM;

    ret = env_frame_get(mr->dev->domain, gfn, mr_writable(mr), frame);
    if ( ret )
        return ret;

    mr->pinned++;
    if ( i && *frame != *array_at(&mr->chunks, i - 1) + 1 )
    {
        if ( mr->edge )
            mr->edges |= i - mr->edge;
        else
            mr->edge = i;
    }

    return 0;
}

static int pin_batch(struct vmri_mr *mr)
{
    uint32_t nr = min_t(uint32_t, mr->nr - mr->pinned, VMRI_FRAME_BATCH), i;
    uint64_t gfn[VMRI_FRAME_BATCH];
    int ret = 0;

    if ( env_copy_from_guest(gfn, mr->gfns + mr->pinned * sizeof(*gfn),
                             nr * sizeof(*gfn)) )
        return -EFAULT;

    for ( i = 0; i < nr && !ret; i++ )
        ret = pin_page(mr, gfn[i]);

    return ret;
}

/*
 * Both end after VMRI_CALL_FRAMES even when nothing else is to be done: whoever
 * detaches the device waits for this call.
 */
static int mr_pin(struct vmri_mr *mr)
{
    const uint32_t start = mr->pinned;
    int ret;

    while ( mr->pinned < mr->nr )
    {
        if ( env_load(&mr->dev->closing) )
            return -ENODEV;

        ret = pin_batch(mr);
        if ( ret )
            return ret;

        if ( mr->pinned < mr->nr &&
             (mr->pinned - start >= VMRI_CALL_FRAMES || env_preempt()) )
            return -ERESTART;
    }

    return 0;
}

static int mr_unpin(struct vmri_mr *mr)
{
    const uint32_t start = mr->pinned;
    uint32_t run;

    while ( mr->pinned )
    {
        env_frame_put(mr_page(mr, --mr->pinned, &run), mr_writable(mr));

        if ( mr->pinned && !(mr->pinned % VMRI_FRAME_BATCH) &&
             (start - mr->pinned >= VMRI_CALL_FRAMES || env_preempt()) )
            return -ERESTART;
    }

    return 0;
}

/* ---- pending MRs ---- */

static void mr_pend(struct vmri_mr *mr, enum vmri_mr_state state, int error)
{
    struct vmri_dev *dev = mr->dev;

    env_lock(&dev->lock);
    mr->state = state;
    mr->error = error;
    mr->busy = true;
    list_add_tail(&mr->pending, &dev->pending_mrs);
    env_unlock(&dev->lock);
}

/* What a continuation knows it by: the index of its key. */
static uint32_t mr_ticket(const struct vmri_mr *mr)
{
    return mr->key >> vmri_format_key.index_shift;
}

/*
 * Take over where another call left off.  -EBUSY: it is still at it; -ENOENT:
 * it has finished.
 */
static int mr_claim(struct vmri_dev *dev, uint32_t ticket,
                    struct vmri_mr **out)
{
    struct vmri_mr *mr;
    int ret = -ENOENT;

    env_lock(&dev->lock);
    list_for_each_entry ( mr, &dev->pending_mrs, pending )
    {
        if ( mr_ticket(mr) != ticket )
            continue;

        ret = mr->busy ? -EBUSY : 0;
        mr->busy = true;
        *out = mr;
        break;
    }
    env_unlock(&dev->lock);

    return ret;
}

static void mr_unclaim(struct vmri_mr *mr)
{
    struct vmri_dev *dev = mr->dev;

    env_lock(&dev->lock);
    mr->busy = false;
    env_unlock(&dev->lock);
}

static void mr_give_up(struct vmri_mr *mr, int error)
{
    struct vmri_dev *dev = mr->dev;

    env_lock(&dev->lock);
    mr->state = VMRI_MR_UNPINNING;
    mr->error = error;
    env_unlock(&dev->lock);
}

/* No frame is pinned, or no frame was yet. */
static void mr_free(struct vmri_dev *dev, struct vmri_mr *mr)
{
    array_free(dev, &mr->chunks);
    if ( mr->pd )
        vmri_unuse(dev, mr->pd);
    vmri_uncharge(dev, VMRI_RES_PINNED, mr->nr);
    vmri_free(dev, mr, sizeof(*mr));
    vmri_uncharge(dev, VMRI_RES_MR, 1);
}

/*
 * Go on with a claimed MR that is to go: 0, or -ERESTART, with a ticket, and
 * unclaimed.
 */
static int mr_demolish(struct vmri_mr *mr, struct vmri_call *call)
{
    struct vmri_dev *dev = mr->dev;

    if ( mr_unpin(mr) )
    {
        call->ticket = mr_ticket(mr);
        mr_unclaim(mr);
        return -ERESTART;
    }

    call->ticket = 0;

    env_lock(&dev->lock);
    list_del(&mr->pending);
    env_unlock(&dev->lock);

    vmri_table_release(&dev->mrs, mr->key);
    mr_free(dev, mr);

    return 0;
}

int vmri_mr_reap(struct vmri_dev *dev)
{
    struct vmri_call call = { .again = true };
    struct vmri_mr *mr;

    do {
        bool idle = false;

        env_lock(&dev->lock);
        list_for_each_entry ( mr, &dev->pending_mrs, pending )
            if ( !mr->busy )
            {
                idle = mr->busy = true;
                break;
            }
        if ( !idle )
            mr = NULL;
        else if ( mr->state == VMRI_MR_PINNING )
        {
            mr->state = VMRI_MR_UNPINNING;
            mr->error = -ENODEV;
        }
        idle = list_empty(&dev->pending_mrs);
        env_unlock(&dev->lock);

        if ( !mr )
            return idle ? 0 : -ERESTART;
        if ( mr_demolish(mr, &call) )
            return -ERESTART;
    } while ( !env_preempt() );

    return -ERESTART;
}

/* ---- commands ---- */

static int check_register(const struct vmri_dev *dev,
                          const struct vmri_mr_register *arg)
{
    const uint32_t remote = VMRI_ACCESS_REMOTE_WRITE |
                            VMRI_ACCESS_REMOTE_ATOMIC;
    const uint64_t max = vmri_limit(dev, VMRI_RES_PINNED) << VMRI_PAGE_SHIFT;
    uint64_t pages;

    if ( (arg->access & ~VMRI_ACCESS_MR) || arg->offset >= VMRI_PAGE_SIZE ||
         arg->key || arg->cookie || arg->reserved || arg->frames.reserved )
        return -EINVAL;

    if ( (arg->access & remote) && !(arg->access & VMRI_ACCESS_LOCAL_WRITE) )
        return -EINVAL;

    if ( !arg->length || arg->length > max ||
         arg->iova + arg->length < arg->iova )
        return -EINVAL;

    pages = PFN_UP(arg->offset + arg->length);

    return pages == arg->frames.nr ? 0 : -EINVAL;
}

/* An MR without frames, with a number, busy. */
static int mr_begin(struct vmri_dev *dev, const struct vmri_mr_register *arg,
                    struct vmri_mr **out)
{
    struct vmri_mr *mr;
    int ret = check_register(dev, arg) ?: vmri_charge(dev, VMRI_RES_MR, 1);

    if ( ret )
        return ret;

    ret = vmri_charge(dev, VMRI_RES_PINNED, arg->frames.nr);
    if ( ret )
        goto uncharge_mr;

    mr = vmri_alloc(dev, sizeof(*mr));
    if ( !mr )
    {
        ret = -ENOMEM;
        goto uncharge_pinned;
    }

    mr->dev = dev;
    mr->access = arg->access;
    mr->offset = arg->offset;
    mr->iova = arg->iova;
    mr->length = arg->length;
    mr->nr = arg->frames.nr;
    mr->gfns = arg->frames.gfns;

    mr->pd = vmri_use(dev, &dev->pds, arg->pd);
    ret = mr->pd ? array_init(dev, &mr->chunks, mr->nr) : -ENOENT;
    if ( !ret )
        ret = vmri_table_reserve(&dev->mrs, VMRI_HANDLE_ANY, &mr->key);
    if ( ret )
    {
        mr_free(dev, mr);
        return ret;
    }

    mr_pend(mr, VMRI_MR_PINNING, 0);
    *out = mr;

    return 0;

 uncharge_pinned:
    vmri_uncharge(dev, VMRI_RES_PINNED, arg->frames.nr);
 uncharge_mr:
    vmri_uncharge(dev, VMRI_RES_MR, 1);

    return ret;
}

/*
 * All frames are pinned: show it.  Once it is published anybody may deregister
 * it, so it leaves the pending ones before.
 */
static int mr_finish(struct vmri_dev *dev, struct vmri_mr *mr)
{
    int ret;

    mr_compress(dev, mr);

    env_lock(&dev->lock);
    list_del(&mr->pending);
    mr->state = VMRI_MR_LIVE;
    env_unlock(&dev->lock);

    ret = vmri_publish(dev, &dev->mrs, mr->key, mr);
    if ( ret )
        mr_pend(mr, VMRI_MR_UNPINNING, ret);

    return ret;
}

/* Find it again, unless vmri_dev_close has been, or is, faster. */
static int mr_continue(struct vmri_dev *dev, struct vmri_call *call,
                       struct vmri_mr **out)
{
    int ret = mr_claim(dev, call->ticket, out);

    if ( ret == -EBUSY )
        return -ERESTART;

    if ( ret )
    {
        call->ticket = 0;
        return -ENODEV;
    }

    return 0;
}

/* Demolish, after which the command ends with this error. */
static int mr_fail(struct vmri_mr *mr, struct vmri_call *call, int error)
{
    return mr_demolish(mr, call) ?: error;
}

int vmri_mr_register(struct vmri_dev *dev, struct vmri_mr_register *arg,
                     struct vmri_call *call)
{
    struct vmri_mr *mr;
    uint32_t key;
    int ret;

    ret = call->again ? mr_continue(dev, call, &mr) : mr_begin(dev, arg, &mr);
    if ( ret )
        return ret;

    if ( mr->state == VMRI_MR_UNPINNING )
        return mr_fail(mr, call, mr->error);

    ret = mr_pin(mr);
    if ( ret == -ERESTART )
    {
        call->ticket = mr_ticket(mr);
        mr_unclaim(mr);
        return ret;
    }

    if ( ret )
    {
        mr_give_up(mr, ret);
        return mr_fail(mr, call, ret);
    }

    key = mr->key;
    ret = mr_finish(dev, mr);
    if ( ret )
        return mr_fail(mr, call, ret);

    arg->key = key;
    call->ticket = 0;

    return 0;
}

/* Hide an MR; when others want to know why it is gone, `error`. */
static int mr_kill(struct vmri_dev *dev, uint32_t key, int error,
                   struct vmri_mr **out)
{
    struct vmri_mr *mr = vmri_table_kill(&dev->mrs, key);

    if ( !mr )
        return -ENOENT;

    mr_pend(mr, VMRI_MR_UNPINNING, error);
    *out = mr;

    return 0;
}

int vmri_mr_deregister(struct vmri_dev *dev, uint32_t key,
                       struct vmri_call *call)
{
    struct vmri_mr *mr;
    int ret;

    if ( !call->again )
        return mr_kill(dev, key, -ENOENT, &mr) ?: mr_demolish(mr, call);

    ret = mr_continue(dev, call, &mr);
    if ( ret )
        return ret == -ERESTART ? ret : 0;

    mr_give_up(mr, -ENOENT);

    return mr_demolish(mr, call);
}

int vmri_mr_abandon(struct vmri_dev *dev, uint32_t key, struct vmri_call *call,
                    int error)
{
    struct vmri_mr *mr;
    int ret;

    if ( key )
        ret = mr_kill(dev, key, error, &mr);
    else
    {
        ret = mr_continue(dev, call, &mr);
        if ( !ret )
            mr_give_up(mr, error);
    }

    if ( ret )
        return ret == -ERESTART ? ret : error;

    return mr_fail(mr, call, error);
}

/* ---- lookup, on the path of a message ---- */

struct vmri_mr *vmri_mr_find(struct vmri_dev *dev, uint32_t key,
                             const struct vmri_pd *pd, uint32_t access,
                             uint16_t *verr)
{
    struct vmri_mr *mr = vmri_table_get(&dev->mrs, key);

    if ( unlikely(!mr) )
    {
        *verr = VMRI_VERR_KEY;
        return NULL;
    }

    if ( unlikely(mr->pd != pd) )
        *verr = VMRI_VERR_PD;
    else if ( unlikely(access & ~mr->access) )
        *verr = VMRI_VERR_RIGHTS;
    else
        return mr;

    vmri_mr_put(mr);

    return NULL;
}

struct vmri_mr *vmri_mr_get(struct vmri_dev *dev, uint32_t key,
                            const struct vmri_pd *pd, uint32_t access,
                            uint64_t addr, uint64_t length, uint16_t *verr)
{
    struct vmri_mr *mr = vmri_mr_find(dev, key, pd, access, verr);

    if ( unlikely(!mr) )
        return NULL;

    if ( likely(addr >= mr->iova && addr - mr->iova <= mr->length &&
                length <= mr->length - (addr - mr->iova)) )
        return mr;

    *verr = VMRI_VERR_BOUNDS;
    vmri_mr_put(mr);

    return NULL;
}

void vmri_mr_put(struct vmri_mr *mr)
{
    vmri_table_put(&mr->dev->mrs, mr->key);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
