/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: tables of objects, and references to them.
 *
 * A slot's `ref` tells what it is: 0 for free or reserved, else one for being
 * published and one for each reference, and VMRI_REF_DYING once it was killed.
 * Lookups take no lock: they add a reference unless it is 0 or dying, and only
 * then look at the handle, which cannot change while they hold it.
 */
#include "internal.h"

const struct vmri_handle_format vmri_format_plain = {
    .index_bits = 20, .gen_shift = 20, .gen_bits = 12, .first = 1,
};

/* QP0 and QP1 are given out when wanted only. */
const struct vmri_handle_format vmri_format_qpn = {
    .index_bits = 17, .gen_shift = 17, .gen_bits = 7, .first = 2,
};

/* The low byte changes with every use of a slot, as users of keys expect. */
const struct vmri_handle_format vmri_format_key = {
    .index_shift = 8, .index_bits = 24, .gen_bits = 8, .first = 1,
};

const struct vmri_handle_format vmri_format_lid = {
    .index_bits = 16, .first = 1,
};

const struct vmri_handle_format vmri_format_dev = {
    .index_bits = 8,
};

static uint32_t index_of(const struct vmri_handle_format *f, uint32_t handle)
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

int vmri_table_init(struct vmri_table *t,
                    const struct vmri_handle_format *format, uint32_t max)
{
    env_lock_init(&t->lock, LEVEL_TABLE);
    t->format = format;
    t->max = max;
    t->leaves = (max + VMRI_LEAF_SLOTS - 1) / VMRI_LEAF_SLOTS;
    t->used = 0;
    t->slots = 0;
    t->next = format->first;
    t->bytes = t->leaves * sizeof(*t->leaf);
    t->leaf = env_alloc(t->bytes);

    return t->leaf ? 0 : -ENOMEM;
}

void vmri_table_fini(struct vmri_table *t)
{
    uint32_t i;

    if ( !t->leaf )
        return;

    ASSERT(!t->used);

    for ( i = 0; i < t->leaves; i++ )
        if ( t->leaf[i].slot )
            env_free_page(t->leaf[i].slot);

    env_free(t->leaf);
    t->leaf = NULL;
}

/* By t->lock. */
static int leaf_make(struct vmri_table *t, struct vmri_leaf *leaf)
{
    struct vmri_slot *slot = env_alloc_page();

    if ( !slot )
        return -ENOMEM;

    t->slots += VMRI_LEAF_SLOTS;
    env_store(&t->bytes, t->bytes + VMRI_PAGE_SIZE);
    env_store_release(&leaf->slot, slot);

    return 0;
}

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
    uint32_t first = *index / VMRI_LEAF_SLOTS;
    uint32_t i = *index % VMRI_LEAF_SLOTS;
    int ret = -ENOSPC;
    uint32_t n;

    for ( n = 0; n <= t->leaves; n++, i = 0 )
    {
        uint32_t l = (first + n) % t->leaves;
        struct vmri_leaf *leaf = &t->leaf[l];

        if ( !leaf->slot && grow && leaf_make(t, leaf) )
        {
            ret = -ENOMEM;
            if ( lowest )
                break;
        }

        if ( !leaf->slot || leaf->used == VMRI_LEAF_SLOTS )
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

/* Is this very slot free?  By t->lock. */
static int find_wanted(struct vmri_table *t, uint32_t want, uint32_t *index)
{
    const struct vmri_handle_format *f = t->format;
    struct vmri_leaf *leaf;

    *index = index_of(f, want);
    if ( *index >= t->max || make_handle(f, *index, gen_of(f, want)) != want )
        return -EINVAL;

    *index = env_nospec(*index, t->max);
    leaf = &t->leaf[*index / VMRI_LEAF_SLOTS];
    if ( !leaf->slot && leaf_make(t, leaf) )
        return -ENOMEM;

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
        leaf = &t->leaf[index / VMRI_LEAF_SLOTS];
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

/* Where an object with this handle would be; NULL: nowhere. */
static struct vmri_slot *find_slot(const struct vmri_table *t, uint32_t handle)
{
    uint32_t index = index_of(t->format, handle);
    struct vmri_slot *slot;

    if ( unlikely(index >= t->max) )
        return NULL;

    index = env_nospec(index, t->max);
    slot = env_load_acquire(&t->leaf[index / VMRI_LEAF_SLOTS].slot);

    return slot ? slot + index % VMRI_LEAF_SLOTS : NULL;
}

void vmri_table_publish(struct vmri_table *t, uint32_t handle, void *obj)
{
    struct vmri_slot *slot = find_slot(t, handle);

    env_store(&slot->obj, obj);
    env_store_release(&slot->ref, 1);
}

void vmri_table_release(struct vmri_table *t, uint32_t handle)
{
    const struct vmri_handle_format *f = t->format;
    struct vmri_slot *slot = find_slot(t, handle);
    struct vmri_leaf *leaf = &t->leaf[index_of(f, handle) / VMRI_LEAF_SLOTS];

    env_lock(&t->lock);
    env_store(&slot->obj, (void *)NULL);
    env_store(&slot->handle,
              make_handle(f, index_of(f, handle), gen_of(f, handle) + 1));
    env_store_release(&slot->ref, 0);
    env_store(&leaf->used, leaf->used - 1);
    t->used--;
    env_unlock(&t->lock);
}

/* Refer to what is in the slot, if it is what the handle names. */
static void *slot_get(struct vmri_slot *slot, uint32_t handle)
{
    uint32_t ref = env_load(&slot->ref);

    do {
        if ( !ref || (ref & VMRI_REF_DYING) )
            return NULL;
    } while ( !env_cmpxchg(&slot->ref, &ref, ref + 1) );

    if ( likely(slot->handle == handle) )
        return slot->obj;

    env_fetch_sub(&slot->ref, 1);

    return NULL;
}

void *vmri_table_get(struct vmri_table *t, uint32_t handle)
{
    struct vmri_slot *slot = find_slot(t, handle);

    return slot ? slot_get(slot, handle) : NULL;
}

void vmri_table_put(struct vmri_table *t, uint32_t handle)
{
    env_fetch_sub(&find_slot(t, handle)->ref, 1);
}

/*
 * The two halves of a kill.  Of those who hide an object only the first gets
 * it, and then waits for the others' references.
 */
static void *slot_hide(struct vmri_slot *slot, uint32_t handle)
{
    void *obj = slot ? slot_get(slot, handle) : NULL;

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

static void slot_wait(struct vmri_slot *slot)
{
    while ( env_load_acquire(&slot->ref) != VMRI_REF_DYING )
        env_relax();
}

void *vmri_table_kill(struct vmri_table *t, uint32_t handle)
{
    struct vmri_slot *slot = find_slot(t, handle);
    void *obj = slot_hide(slot, handle);

    if ( obj )
        slot_wait(slot);

    return obj;
}

void *vmri_table_next(struct vmri_table *t, uint32_t *index, uint32_t *handle)
{
    while ( *index < t->max )
    {
        uint32_t i = env_nospec(*index, t->max);
        struct vmri_leaf *leaf = &t->leaf[i / VMRI_LEAF_SLOTS];
        struct vmri_slot *slot = env_load_acquire(&leaf->slot);
        uint32_t ref;

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
    struct vmri_slot *slot = find_slot(t, handle);
    struct used_object *used;
    int ret = -ENOENT;

    env_lock(&dev->lock);
    used = slot ? slot_get(slot, handle) : NULL;
    if ( used )
    {
        ret = used->users ? -EBUSY : 0;
        if ( !ret )
            *obj = slot_hide(slot, handle);
        env_fetch_sub(&slot->ref, 1);
    }
    env_unlock(&dev->lock);

    if ( !ret )
        slot_wait(slot);

    return ret;
}

int vmri_publish(struct vmri_dev *dev, struct vmri_table *t, uint32_t handle,
                 void *obj)
{
    int ret = -ENODEV;

    env_lock(&dev->lock);
    if ( dev->in_use && !dev->closing )
    {
        vmri_table_publish(t, handle, obj);
        ret = 0;
    }
    env_unlock(&dev->lock);

    return ret;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
