/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: memory regions: the commands.
 */
#include "internal.h"

/* ---- register ---- */

static int check_register(const struct vmri_dev *dev,
                          const struct vmri_mr_register *arg)
{
    const uint64_t max = vmri_limit(dev, VMRI_RES_PINNED) << VMRI_PAGE_SHIFT;

    if ( (arg->access & ~VMRI_ACCESS_MR) || arg->offset >= VMRI_PAGE_SIZE ||
         !arg->key != !arg->twin || arg->reserved || arg->frames.reserved )
        return -EINVAL;

    if ( !vmri_rights_valid(arg->access) ||
         !vmri_bounds_valid(arg->iova, arg->length) || arg->length > max )
        return -EINVAL;

    return PFN_UP(arg->offset + arg->length) == arg->frames.nr ? 0 : -EINVAL;
}

/* Charged, and empty. */
static int mr_alloc(struct vmri_dev *dev, uint32_t nr, struct vmri_mr **out)
{
    struct vmri_mr *mr;
    int ret = vmri_charge(dev, VMRI_RES_MR, 1);

    if ( ret )
        return ret;

    ret = vmri_charge(dev, VMRI_RES_PINNED, nr);
    if ( ret )
        goto uncharge_mr;

    mr = vmri_alloc(dev, sizeof(*mr));
    if ( !mr )
    {
        ret = -ENOMEM;
        goto uncharge_pinned;
    }

    mr->k.dev = dev;
    mr->k.kind = VMRI_KEY_MR;
    mr->k.range.pages.nr = nr;
    mr->k.range.pinned = true;
    *out = mr;

    return 0;

 uncharge_pinned:
    vmri_uncharge(dev, VMRI_RES_PINNED, nr);
 uncharge_mr:
    vmri_uncharge(dev, VMRI_RES_MR, 1);

    return ret;
}

static int claim_twin(struct vmri_mr *mr, const struct vmri_mr_register *arg)
{
    int ret = arg->twin ? vmri_twin_claim_mr(mr->k.dev, arg, mr->k.range.pd)
                        : 0;

    if ( !ret )
        mr->k.twin = arg->twin;

    return ret;
}

/* An MR without frames, with a number, pending and busy. */
static int mr_begin(struct vmri_dev *dev, const struct vmri_mr_register *arg,
                    struct vmri_mr **out)
{
    struct vmri_range *r;
    struct vmri_mr *mr;
    int ret = check_register(dev, arg) ?:
              mr_alloc(dev, arg->frames.nr, &mr);

    if ( ret )
        return ret;

    mr->gfns = arg->frames.gfns;
    r = &mr->k.range;
    r->access = arg->access | VMRI_KEY_LOCAL_ANY;
    r->iova = arg->iova;
    r->length = arg->length;
    r->offset = arg->offset;
    r->version = vmri_new_life();

    r->pd = vmri_use(dev, &dev->pds, arg->pd);
    ret = r->pd ? vmri_pages_init(dev, &r->pages, arg->frames.nr) : -ENOENT;
    if ( !ret )
        ret = claim_twin(mr, arg);
    if ( !ret )
        ret = vmri_key_reserve(&mr->k, arg->key ?: VMRI_HANDLE_ANY);
    if ( ret )
    {
        vmri_mr_free(mr);
        return ret;
    }

    vmri_mr_pend(mr, VMRI_MR_PINNING, 0);
    *out = mr;

    return 0;
}

/* Demolish, after which the command ends with this. */
static int mr_fail(struct vmri_mr *mr, struct vmri_call *call, int error)
{
    return vmri_mr_demolish(mr, call) ?: error;
}

/*
 * Go on with one that is being pinned: 0 when its frames are there, else what
 * the call returns, the MR being unclaimed or gone.
 */
static int mr_go_on(struct vmri_mr *mr, struct vmri_call *call)
{
    int ret = vmri_mr_pin(mr);

    if ( ret == -ERESTART )
        return vmri_mr_stop(mr, call);

    if ( ret )
    {
        vmri_mr_give_up(mr, ret);
        return mr_fail(mr, call, ret);
    }

    return 0;
}

/*
 * All frames are pinned: show it.  Once it is published anybody may deregister
 * it, so it leaves the pending ones before.
 */
static int mr_finish(struct vmri_dev *dev, struct vmri_mr *mr)
{
    int ret;

    vmri_mr_unpend(mr);
    ret = vmri_publish(dev, &dev->keys, mr->k.key, mr);
    if ( ret )
        vmri_mr_pend(mr, VMRI_MR_UNPINNING, ret);

    return ret;
}

int vmri_mr_register(struct vmri_dev *dev, struct vmri_mr_register *arg,
                     struct vmri_call *call)
{
    struct vmri_mr *mr;
    uint32_t key;
    int ret;

    ret = call->again ? vmri_mr_continue(dev, call, &mr)
                      : mr_begin(dev, arg, &mr);
    if ( ret )
        return ret;

    if ( mr->state == VMRI_MR_UNPINNING )
        return mr_fail(mr, call, mr->error);

    ret = mr_go_on(mr, call);
    if ( ret )
        return ret;

    key = mr->k.key;
    ret = mr_finish(dev, mr);
    if ( ret )
        return mr_fail(mr, call, ret);

    arg->key = key;
    call->ticket = 0;

    return 0;
}

/* ---- re-register ---- */

static bool writes(uint32_t access)
{
    return access & VMRI_ACCESS_LOCAL_WRITE;
}

/* Fill in what is not to be changed from what is there. */
static int complete_args(struct vmri_dev *dev, struct vmri_mr_reregister *arg,
                         bool *same_frames)
{
    struct vmri_mr_register *mr = &arg->mr;
    const struct vmri_range *r;
    struct vmri_key *k;
    int ret;

    if ( mr->key || mr->twin )
        return -EINVAL;
    ret = vmri_key_claim(dev, arg->old_key, VMRI_KEY_MR, &k);
    if ( ret )
        return ret;

    /* What the NIC has of it would stay as it is. */
    if ( k->twin )
    {
        vmri_key_unclaim(k);
        return -EOPNOTSUPP;
    }

    r = &k->range;
    if ( !(arg->flags & VMRI_REREG_TRANS) )
    {
        mr->frames = (struct vmri_frames){ .nr = r->pages.nr };
        mr->iova = r->iova;
        mr->length = r->length;
        mr->offset = r->offset;
    }
    if ( !(arg->flags & VMRI_REREG_PD) )
        mr->pd = r->pd->handle;
    if ( !(arg->flags & VMRI_REREG_ACCESS) )
        mr->access = r->access & VMRI_ACCESS_MR;
    *same_frames = !(arg->flags & VMRI_REREG_TRANS) &&
                   writes(mr->access) == writes(r->access);

    vmri_key_unclaim(k);

    return 0;
}

/*
 * The frames stay, and what they are pinned for.  Looked at again, since
 * others may have re-registered it meanwhile.
 */
static int change_rights(struct vmri_dev *dev, uint32_t key,
                         const struct vmri_mr_register *arg)
{
    struct vmri_pd *pd = vmri_use(dev, &dev->pds, arg->pd), *old;
    struct vmri_key *k;
    int ret = pd ? vmri_key_claim(dev, key, VMRI_KEY_MR, &k) : -ENOENT;

    if ( ret )
        goto out;

    if ( writes(arg->access) == writes(k->range.access) )
    {
        vmri_table_idle(&dev->keys, key);
        old = k->range.pd;
        k->range.pd = pd;
        k->range.access = arg->access | VMRI_KEY_LOCAL_ANY;
        k->range.version = vmri_new_life();
        pd = old;
        vmri_table_live(&dev->keys, key);
    }
    else
        ret = -EBUSY;

    vmri_key_unclaim(k);
 out:
    if ( pd )
        vmri_unuse(dev, pd);

    return ret;
}

/*
 * The MR gets what its successor has, and the other way round: what it was
 * goes with the successor, whose pages nobody can reach any more.
 */
static int replace(struct vmri_dev *dev, struct vmri_mr *successor)
{
    struct vmri_range range;
    struct vmri_key *k;
    int ret = vmri_key_claim(dev, successor->replaces, VMRI_KEY_MR, &k);

    if ( ret )
        return ret;

    vmri_table_idle(&dev->keys, k->key);
    range = k->range;
    k->range = successor->k.range;
    successor->k.range = range;
    vmri_table_live(&dev->keys, k->key);
    vmri_key_unclaim(k);

    return 0;
}

/* A call that is no continuation: as vmri_mr_continue, or *out is NULL. */
static int reregister_begin(struct vmri_dev *dev,
                            struct vmri_mr_reregister *arg,
                            struct vmri_mr **out)
{
    const uint32_t flags = VMRI_REREG_TRANS | VMRI_REREG_PD |
                           VMRI_REREG_ACCESS;
    bool same_frames;
    int ret;

    *out = NULL;
    if ( !arg->flags || (arg->flags & ~flags) )
        return -EINVAL;

    ret = complete_args(dev, arg, &same_frames);
    if ( ret )
        return ret;

    if ( same_frames )
        return check_register(dev, &arg->mr) ?:
               change_rights(dev, arg->old_key, &arg->mr);

    ret = mr_begin(dev, &arg->mr, out);
    if ( !ret )
    {
        (*out)->replaces = arg->old_key;
        (*out)->same = !(arg->flags & VMRI_REREG_TRANS);
    }

    return ret;
}

/* Pin for the new, replace, let the old go. */
static int reregister_go_on(struct vmri_dev *dev, struct vmri_mr *mr,
                            struct vmri_call *call)
{
    int ret;

    if ( mr->state == VMRI_MR_PINNING )
    {
        ret = mr_go_on(mr, call);
        if ( ret )
            return ret;
        vmri_mr_give_up(mr, replace(dev, mr));
    }

    ret = mr->error;

    return mr_fail(mr, call, ret);
}

int vmri_mr_reregister(struct vmri_dev *dev, struct vmri_mr_reregister *arg,
                       struct vmri_call *call)
{
    struct vmri_mr *mr;
    int ret = call->again ? vmri_mr_continue(dev, call, &mr)
                          : reregister_begin(dev, arg, &mr);

    if ( !ret && mr )
        ret = reregister_go_on(dev, mr, call);
    if ( !ret )
        arg->mr.key = arg->old_key;

    return ret;
}

/* ---- deregister ---- */

/* Hide an MR; when others want to know why it is gone, `error`. */
static int mr_kill(struct vmri_dev *dev, uint32_t key, int error,
                   struct vmri_mr **out)
{
    struct vmri_key *k;
    int ret = vmri_key_claim(dev, key, VMRI_KEY_MR, &k);

    if ( ret )
        return ret;

    vmri_key_kill(k);
    *out = container_of(k, struct vmri_mr, k);
    vmri_mr_pend(*out, VMRI_MR_UNPINNING, error);

    return 0;
}

static int fast_free(struct vmri_dev *dev, uint32_t key)
{
    struct vmri_key *k;
    int ret = vmri_key_claim(dev, key, VMRI_KEY_FAST, &k);

    if ( !ret )
        vmri_fast_free(k);

    return ret;
}

int cf_check vmri_mr_deregister(struct vmri_dev *dev, uint32_t key,
                                struct vmri_call *call)
{
    struct vmri_mr *mr;
    int ret;

    if ( !call->again )
    {
        ret = mr_kill(dev, key, -ENOENT, &mr);
        if ( ret == -ENOENT )
            return fast_free(dev, key);

        return ret ?: vmri_mr_demolish(mr, call);
    }

    ret = vmri_mr_continue(dev, call, &mr);
    if ( ret )
        return ret == -ERESTART ? ret : 0;

    vmri_mr_give_up(mr, -ENOENT);

    return vmri_mr_demolish(mr, call);
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
        ret = vmri_mr_continue(dev, call, &mr);
        /* Re-registered already: only what it was is still to go. */
        if ( !ret && mr->state == VMRI_MR_UNPINNING && !mr->error )
            error = 0;
        if ( !ret )
            vmri_mr_give_up(mr, error);
    }

    if ( ret )
        return ret == -ERESTART ? ret : error;

    return mr_fail(mr, call, error);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
