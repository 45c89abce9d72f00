/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: tables of objects, and references to them.
 *
 * A slot's `ref` tells what it is: 0 for free or reserved, else one for being
 * published and one for each reference, VMRI_REF_IDLE while lookups shall not
 * find it, and VMRI_REF_DYING once it was killed.  Lookups take no lock: they
 * add a reference unless it is 0, idle or dying, and only then look at the
 * handle, which cannot change while they hold it.
 */
#include "internal.h"

const struct vmri_handle_format vmri_format_plain = {
    .index_bits = 20, .gen_shift = 20, .gen_bits = 12, .first = 1,
};

/* QP0 and QP1 are given out when wanted only. */
const struct vmri_handle_format vmri_format_qpn = {
    .index_bits = 17, .gen_shift = 17, .gen_bits = 7, .first = 2,
};

const struct vmri_handle_format vmri_format_srqn = {
    .index_bits = 17, .gen_shift = 17, .gen_bits = 7, .first = 1,
};

/*
 * The low byte changes with every use of a slot, as users of keys expect.  The
 * last index is that of VMRI_LKEY_FRAMES.
 */
const struct vmri_handle_format vmri_format_key = {
    .index_shift = 8, .index_bits = 24, .gen_bits = 8, .first = 1, .spare = 1,
};

const struct vmri_handle_format vmri_format_lid = {
    .index_bits = 16, .first = 1,
};

const struct vmri_handle_format vmri_format_mlid = {
    .index_bits = 14,
};

const struct vmri_handle_format vmri_format_dev = {
    .index_bits = 8,
};

static inline uint32_t index_of(const struct vmri_handle_format *f,
                                uint32_t handle)
{
    return (handle >> f->index_shift) & ((1U << f->index_bits) - 1);
}

static uint32_t gen_of(const struct vmri_handle_format *f, uint32_t handle)
{
    return (handle >> f->gen_shift) & ((1U << f->gen_bits) - 1);
}

/* A generation that is too large wraps around. */
static uint32_t make_handle(const struct vmri_handle_format *f, uint32_t index,
                            uint32_t gen)
{
    gen &= (1U << f->gen_bits) - 1;

    return (index << f->index_shift) | (gen << f->gen_shift);
}

uint32_t vmri_table_capacity(const struct vmri_handle_format *format)
{
    return (1U << format->index_bits) - format->first - format->spare;
}

void vmri_table_init(struct vmri_table *t,
                     const struct vmri_handle_format *format, uint32_t max,
                     struct vmri_dev *dev, unsigned int kind)
{
    memset(t, 0, sizeof(*t));
    env_lock_init(&t->lock, LEVEL_TABLE);
    t->format = format;
    t->index_mask = (1U << format->index_bits) - 1;
    t->index_shift = format->index_shift;
    t->dev = dev;
    t->kind = kind;
    t->max = max ?: (1U << format->index_bits) - format->spare;
    t->next = format->first;
}

/* ---- the memory of a table, by its lock ---- */

static void pay_back(struct vmri_table *t, size_t bytes)
{
    if ( t->dev )
        vmri_domain_uncharge(t->dev->owner, VMRI_RES_BYTES, bytes);
    env_store(&t->bytes, t->bytes - bytes);
}

static int pay(struct vmri_table *t, size_t bytes)
{
    if ( t->dev &&
         vmri_domain_charge(t->dev->owner, VMRI_RES_BYTES, bytes) )
        return -ENOMEM;
    env_store(&t->bytes, t->bytes + bytes);

    return 0;
}

/* Segment 0 has leaf 0, segment s the 2^(s - 1) leaves from that one on. */
static inline uint32_t segment_leaves(unsigned int s)
{
    return s ? 1U << (s - 1) : 1;
}

static always_inline unsigned int segment_of(uint32_t leaf, uint32_t *offset)
{
    unsigned int s = leaf ? 32 - __builtin_clz(leaf) : 0;

    *offset = leaf - (s ? segment_leaves(s) : 0);

    return env_nospec(s, VMRI_SEGMENTS);
}

/* The leaf with a slot, whether it has memory or not; NULL: no segment. */
static always_inline struct vmri_leaf *leaf_at(const struct vmri_table *t,
                                               uint32_t leaf)
{
    uint32_t offset;
    unsigned int s = segment_of(leaf, &offset);
    struct vmri_leaf *segment = env_load_acquire(&t->segment[s]);

    return segment ? segment + offset : NULL;
}

static int segment_make(struct vmri_table *t, unsigned int s)
{
    size_t bytes = segment_leaves(s) * sizeof(struct vmri_leaf);
    struct vmri_leaf *segment;

    if ( t->segment[s] )
        return 0;
    if ( pay(t, bytes) )
        return -ENOMEM;

    segment = env_alloc(bytes);
    if ( !segment )
    {
        pay_back(t, bytes);
        return -ENOMEM;
    }

    env_store_release(&t->segment[s], segment);

    return 0;
}

/* Give leaf l its slots. */
static int leaf_make(struct vmri_table *t, uint32_t l)
{
    uint32_t offset;
    unsigned int s = segment_of(l, &offset);
    struct vmri_slot *slot;

    if ( segment_make(t, s) || pay(t, VMRI_PAGE_SIZE) )
        return -ENOMEM;

    slot = env_alloc_page();
    if ( !slot )
    {
        pay_back(t, VMRI_PAGE_SIZE);
        return -ENOMEM;
    }

    t->slots += VMRI_LEAF_SLOTS;
    env_store_release(&t->segment[s][offset].slot, slot);
    if ( l >= t->top )
        env_store(&t->top, l + 1);

    return 0;
}

int vmri_table_begin(struct vmri_table *t, uint32_t index)
{
    int ret;

    env_lock(&t->lock);
    ret = leaf_make(t, index / VMRI_LEAF_SLOTS);
    t->next = index;
    env_unlock(&t->lock);

    return ret;
}

void vmri_table_fini(struct vmri_table *t)
{
    unsigned int s;
    uint32_t i;

    ASSERT(!t->used);

    for ( s = 0; s < VMRI_SEGMENTS; s++ )
    {
        if ( !t->segment[s] )
            continue;

        for ( i = 0; i < segment_leaves(s); i++ )
            if ( t->segment[s][i].slot )
                env_free_page(t->segment[s][i].slot);
        env_free(t->segment[s]);
        t->segment[s] = NULL;
    }

    pay_back(t, t->bytes);
}

/* ---- slots ---- */

/*
 * Search for a free slot from *index on, around once; the starting leaf comes
 * twice, last as a whole.  By t->lock.
 *
 * With generations, a leaf is added only while half of the slots are in use:
 * memory follows use, and yet a number rests while many others are given out.
 * Without, the lowest number is wanted, whatever it takes.
 */
static int find_free(struct vmri_table *t, uint32_t *index)
{
    const bool lowest = !t->format->gen_bits;
    const bool grow = lowest || t->used * 2 >= t->slots;
    const uint32_t last = (t->max - 1) / VMRI_LEAF_SLOTS;
    /* The leaves that there are, and one to be added. */
    const uint32_t span = min(t->top, last) + 1;
    uint32_t first = *index / VMRI_LEAF_SLOTS;
    uint32_t i = *index % VMRI_LEAF_SLOTS;
    int ret = -ENOSPC;
    uint32_t n;

    for ( n = 0; n <= span; n++, i = 0 )
    {
        uint32_t l = (first + n) % span;
        struct vmri_leaf *leaf = leaf_at(t, l);

        if ( (!leaf || !leaf->slot) && grow )
        {
            if ( !leaf_make(t, l) )
                leaf = leaf_at(t, l);
            else
            {
                ret = -ENOMEM;
                if ( lowest )
                    break;
            }
        }

        if ( !leaf || !leaf->slot || leaf->used == VMRI_LEAF_SLOTS )
            continue;

        for ( ; i < VMRI_LEAF_SLOTS; i++ )
        {
            *index = l * VMRI_LEAF_SLOTS + i;
            if ( *index >= t->format->first && *index < t->max &&
                 !env_load(&leaf->slot[i].obj) )
                return 0;
        }
    }

    return ret;
}

/*
 * Is this very slot free?  Special numbers are just themselves.  By t->lock.
 */
static int find_wanted(struct vmri_table *t, uint32_t want, uint32_t *index)
{
    const struct vmri_handle_format *f = t->format;
    struct vmri_leaf *leaf;
    uint32_t l;

    *index = index_of(f, want);
    if ( *index >= t->max || make_handle(f, *index, gen_of(f, want)) != want ||
         (*index < f->first && gen_of(f, want)) )
        return -EINVAL;

    *index = env_nospec(*index, t->max);
    l = *index / VMRI_LEAF_SLOTS;
    leaf = leaf_at(t, l);
    if ( !leaf || !leaf->slot )
    {
        if ( leaf_make(t, l) )
            return -ENOMEM;
        leaf = leaf_at(t, l);
    }

    return env_load(&leaf->slot[*index % VMRI_LEAF_SLOTS].obj) ? -EBUSY : 0;
}

int vmri_table_reserve(struct vmri_table *t, uint32_t want, uint32_t *handle)
{
    const struct vmri_handle_format *f = t->format;
    struct vmri_leaf *leaf;
    struct vmri_slot *slot;
    uint32_t index;
    int ret;

    env_lock(&t->lock);

    if ( want != VMRI_HANDLE_ANY )
        ret = find_wanted(t, want, &index);
    else
    {
        index = f->gen_bits ? t->next : f->first;
        ret = find_free(t, &index);
    }

    if ( !ret )
    {
        leaf = leaf_at(t, index / VMRI_LEAF_SLOTS);
        slot = &leaf->slot[index % VMRI_LEAF_SLOTS];
        env_store(&leaf->used, leaf->used + 1);
        t->used++;

        if ( want == VMRI_HANDLE_ANY )
        {
            want = make_handle(f, index, gen_of(f, slot->handle));
            t->next = index + 1 < t->max ? index + 1 : f->first;
        }

        env_store(&slot->handle, want);
        env_store(&slot->obj, (void *)t);       /* anything: it is taken */
        *handle = want;
    }

    env_unlock(&t->lock);

    return ret;
}

/* On the path of a message the lookup is done in place. */
static always_inline struct vmri_slot *find_slot(const struct vmri_table *t,
                                                 uint32_t handle)
{
    uint32_t index = (handle >> t->index_shift) & t->index_mask;
    const struct vmri_leaf *leaf;
    struct vmri_slot *slot;

    if ( unlikely(index >= t->max) )
        return NULL;

    index = env_nospec(index, t->max);
    leaf = leaf_at(t, index / VMRI_LEAF_SLOTS);
    slot = leaf ? env_load_acquire(&leaf->slot) : NULL;

    return slot ? slot + index % VMRI_LEAF_SLOTS : NULL;
}

struct vmri_slot *vmri_table_slot(const struct vmri_table *t, uint32_t handle)
{
    return find_slot(t, handle);
}

/* Not of devices themselves. */
static void trace(uint32_t event, const struct vmri_table *t, uint32_t handle)
{
    if ( t->dev )
        env_trace(event, vmri_trace_id(t->dev), t->kind, handle);
}

static void slot_publish(struct vmri_table *t, uint32_t handle, void *obj,
                         uint32_t ref)
{
    struct vmri_slot *slot = vmri_table_slot(t, handle);

    env_store(&slot->obj, obj);
    env_store_release(&slot->ref, ref);
    trace(VMRI_TRC_CREATE, t, handle);
}

void vmri_table_publish(struct vmri_table *t, uint32_t handle, void *obj)
{
    slot_publish(t, handle, obj, 1);
}

void vmri_table_release(struct vmri_table *t, uint32_t handle)
{
    const struct vmri_handle_format *f = t->format;
    struct vmri_slot *slot = vmri_table_slot(t, handle);
    struct vmri_leaf *leaf = leaf_at(t, index_of(f, handle) / VMRI_LEAF_SLOTS);

    env_lock(&t->lock);
    env_store(&slot->obj, (void *)NULL);
    env_store(&slot->handle,
              make_handle(f, index_of(f, handle), gen_of(f, handle) + 1));
    env_store_release(&slot->ref, 0);
    env_store(&leaf->used, leaf->used - 1);
    t->used--;
    env_unlock(&t->lock);
}

void *vmri_table_get(struct vmri_table *t, uint32_t handle)
{
    struct vmri_slot *slot = find_slot(t, handle);

    return slot ? vmri_slot_get(slot, handle) : NULL;
}

void vmri_table_put(struct vmri_table *t, uint32_t handle)
{
    env_fetch_sub(&vmri_table_slot(t, handle)->ref, 1);
}

/*
 * The two halves of a kill.  Of those who hide an object only the first gets
 * it, and then waits for the others' references.
 */
static void *slot_hide(struct vmri_slot *slot, uint32_t handle)
{
    void *obj = slot ? vmri_slot_refer(slot, handle, VMRI_REF_DYING) : NULL;

    if ( !obj )
        return NULL;

    if ( env_fetch_or(&slot->ref, VMRI_REF_DYING) & VMRI_REF_DYING )
    {
        env_fetch_sub(&slot->ref, 1);
        return NULL;
    }

    env_fetch_sub(&slot->ref, 2);       /* the object's own, and ours */

    return obj;
}

/* Until none are left but the object's own, of which there are `own`. */
static void slot_wait(struct vmri_slot *slot, uint32_t own)
{
    const uint32_t flags = VMRI_REF_DYING | VMRI_REF_IDLE;

    while ( (env_load_acquire(&slot->ref) & ~flags) != own )
        env_relax();
}

void *vmri_table_kill(struct vmri_table *t, uint32_t handle)
{
    struct vmri_slot *slot = vmri_table_slot(t, handle);
    void *obj = slot_hide(slot, handle);

    if ( obj )
    {
        slot_wait(slot, 0);
        trace(VMRI_TRC_DESTROY, t, handle);
    }

    return obj;
}

void vmri_table_idle(struct vmri_table *t, uint32_t handle)
{
    struct vmri_slot *slot = vmri_table_slot(t, handle);

    env_fetch_or(&slot->ref, VMRI_REF_IDLE);
    slot_wait(slot, 1);
}

void vmri_table_rename(struct vmri_table *t, uint32_t handle, uint32_t name)
{
    env_store(&vmri_table_slot(t, handle)->handle, name);
}

void vmri_table_live(struct vmri_table *t, uint32_t handle)
{
    env_fetch_and(&vmri_table_slot(t, handle)->ref, ~VMRI_REF_IDLE);
}

void *vmri_table_peek(struct vmri_table *t, uint32_t handle)
{
    struct vmri_slot *slot = vmri_table_slot(t, handle);

    return slot && env_load(&slot->handle) == handle
           ? vmri_table_peek_slot(t, handle) : NULL;
}

void *vmri_table_peek_slot(struct vmri_table *t, uint32_t handle)
{
    struct vmri_slot *slot = vmri_table_slot(t, handle);
    uint32_t ref = slot ? env_load_acquire(&slot->ref) : 0;

    return ref && !(ref & VMRI_REF_DYING) ? env_load(&slot->obj) : NULL;
}

void *vmri_table_next(struct vmri_table *t, uint32_t *index, uint32_t *handle)
{
    const uint64_t end = min_t(uint64_t, t->max, (uint64_t)env_load(&t->top) *
                                                 VMRI_LEAF_SLOTS);

    while ( *index < end )
    {
        uint32_t i = env_nospec(*index, end), ref;
        const struct vmri_leaf *leaf = leaf_at(t, i / VMRI_LEAF_SLOTS);
        struct vmri_slot *slot = leaf ? env_load_acquire(&leaf->slot) : NULL;

        if ( !slot || !env_load(&leaf->used) )
        {
            *index = ROUNDUP(i + 1, VMRI_LEAF_SLOTS);
            continue;
        }

        slot += i % VMRI_LEAF_SLOTS;
        *index = i + 1;
        ref = env_load_acquire(&slot->ref);
        if ( ref && !(ref & VMRI_REF_DYING) )
        {
            *handle = env_load(&slot->handle);
            return env_load(&slot->obj);
        }
    }

    return NULL;
}

/* What the objects of vmri_use and its like start with. */
struct used_object {
    uint32_t handle;
    uint32_t users;
};

void *vmri_use(struct vmri_dev *dev, struct vmri_table *t, uint32_t handle)
{
    struct used_object *obj;

    env_lock(&dev->lock);
    obj = vmri_table_get(t, handle);
    if ( obj )
    {
        env_store(&obj->users, obj->users + 1);
        vmri_table_put(t, handle);
    }
    env_unlock(&dev->lock);

    return obj;
}

void vmri_unuse(struct vmri_dev *dev, void *obj)
{
    struct used_object *used = obj;

    env_lock(&dev->lock);
    env_store(&used->users, used->users - 1);
    env_unlock(&dev->lock);
}

int vmri_kill_unused(struct vmri_dev *dev, struct vmri_table *t,
                     uint32_t handle, void **obj)
{
    struct vmri_slot *slot = vmri_table_slot(t, handle);
    struct used_object *used;
    int ret = -ENOENT;

    env_lock(&dev->lock);
    used = slot ? vmri_slot_get(slot, handle) : NULL;
    if ( used )
    {
        ret = used->users ? -EBUSY : 0;
        if ( !ret )
            *obj = slot_hide(slot, handle);
        env_fetch_sub(&slot->ref, 1);
    }
    env_unlock(&dev->lock);

    if ( !ret )
    {
        slot_wait(slot, 0);
        trace(VMRI_TRC_DESTROY, t, handle);
    }

    return ret;
}

static int publish(struct vmri_dev *dev, struct vmri_table *t,
                   uint32_t handle, void *obj, uint32_t ref)
{
    int ret = -ENODEV;

    env_lock(&dev->lock);
    if ( dev->in_use && !dev->closing )
    {
        slot_publish(t, handle, obj, ref);
        ret = 0;
    }
    env_unlock(&dev->lock);

    return ret;
}

int vmri_publish(struct vmri_dev *dev, struct vmri_table *t, uint32_t handle,
                 void *obj)
{
    return publish(dev, t, handle, obj, 1);
}

int vmri_publish_idle(struct vmri_dev *dev, struct vmri_table *t,
                      uint32_t handle, void *obj)
{
    return publish(dev, t, handle, obj, VMRI_REF_IDLE | 1);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
