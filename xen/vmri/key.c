/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: keys: what they grant, on the path of a message, and who may change
 * that.
 *
 * One table has the keys of memory regions, fast memory regions and windows.
 * The slots of the latter two are idle while they grant nothing, and their low
 * byte is what their user last called them.
 */
#include "internal.h"

/* ---- on the path of a message ---- */

/* Why a lookup failed.  A key that may not be named is as good as none. */
static uint16_t refusal(const struct vmri_key *k, const struct vmri_qp *qp,
                        const struct vmri_pd *pd, uint32_t access)
{
    const uint32_t missing = access & ~k->range.access;

    if ( missing & VMRI_KEY_LOCAL_ANY )
        return VMRI_VERR_KEY;

    return k->range.pd != pd || (k->qp && k->qp != qp) ? VMRI_VERR_PD
                                                       : VMRI_VERR_RIGHTS;
}

struct vmri_key *vmri_key_find(const struct vmri_qp *qp,
                               const struct vmri_pd *pd, uint32_t key,
                               uint32_t access, uint16_t *verr)
{
    struct vmri_key *k = vmri_table_get(&qp->dev->keys, key);

    if ( unlikely(!k) )
    {
        *verr = VMRI_VERR_KEY;
        return NULL;
    }

    if ( likely(vmri_key_grants(k, qp, pd, access)) )
        return k;

    *verr = refusal(k, qp, pd, access);
    vmri_key_put(k);

    return NULL;
}

struct vmri_key *vmri_key_get(const struct vmri_qp *qp,
                              const struct vmri_pd *pd, uint32_t key,
                              uint32_t access, uint64_t addr, uint64_t length,
                              uint16_t *verr)
{
    struct vmri_key *k = vmri_key_find(qp, pd, key, access, verr);

    if ( unlikely(!k) )
        return NULL;

    if ( likely(vmri_range_holds(&k->range, addr, length)) )
        return k;

    *verr = VMRI_VERR_BOUNDS;
    vmri_key_put(k);

    return NULL;
}

/* ---- changing what a key grants ---- */

int vmri_key_reserve(struct vmri_key *k, uint32_t want)
{
    struct vmri_table *keys = &k->dev->keys;
    int ret = vmri_table_reserve(keys, want, &k->key);

    if ( !ret )
        k->slot = vmri_table_slot(keys, k->key);

    return ret;
}

bool vmri_rights_valid(uint32_t access)
{
    const uint32_t remote = VMRI_ACCESS_REMOTE_WRITE |
                            VMRI_ACCESS_REMOTE_ATOMIC;

    return !(access & remote) || (access & VMRI_ACCESS_LOCAL_WRITE);
}

bool vmri_bounds_valid(uint64_t iova, uint64_t length)
{
    return length && iova + length >= iova;
}

/*
 * The guest's kernel does not know what a process has called its windows: of a
 * key with such a name only the number is looked at.
 */
static bool is_named(const struct vmri_key *k, uint32_t key)
{
    return k->key == key || (k->kind & (VMRI_KEY_MW | VMRI_KEY_FAST));
}

int vmri_key_claim(struct vmri_dev *dev, uint32_t key, unsigned int kinds,
                   struct vmri_key **out)
{
    struct vmri_key *k;
    int ret;

    for ( ; ; )
    {
        env_lock(&dev->lock);
        k = vmri_table_peek_slot(&dev->keys, key);
        ret = 0;
        if ( !k || !(k->kind & kinds) || !is_named(k, key) )
            ret = -ENOENT;
        else if ( k->busy )
            ret = -EAGAIN;
        else if ( k->users )
            ret = -EBUSY;
        else
            k->busy = true;
        env_unlock(&dev->lock);

        if ( ret != -EAGAIN )
            break;
        env_relax();
    }

    *out = k;

    return ret;
}

void vmri_key_unclaim(struct vmri_key *k)
{
    env_lock(&k->dev->lock);
    k->busy = false;
    env_unlock(&k->dev->lock);
}

struct vmri_key *vmri_key_peek(const struct vmri_qp *qp,
                               const struct vmri_pd *pd, uint32_t key,
                               unsigned int kinds, uint16_t *verr)
{
    struct vmri_key *k = vmri_table_peek(&qp->dev->keys, key);

    *verr = VMRI_VERR_NONE;
    if ( !k || !(k->kind & kinds) )
        *verr = VMRI_VERR_KEY;
    else if ( k->busy )
        *verr = VMRI_VERR_STATE;
    else if ( k->range.pd != pd )
        *verr = VMRI_VERR_PD;

    return *verr ? NULL : k;
}

void vmri_key_kill(struct vmri_key *k)
{
    vmri_table_kill(&k->dev->keys, k->key);

    /* Who still peeks at it, under the lock, is done on return. */
    env_lock(&k->dev->lock);
    k->live = false;
    env_unlock(&k->dev->lock);
}

/*
 * May qp have it invalidated?  A window's QP alone may; a fast MR is a matter
 * of the guest's kernel.  Done twice is as good as done once, but a peer that
 * names what it cannot use is at fault.
 */
static uint16_t check_invalidate(const struct vmri_qp *qp,
                                 const struct vmri_rings *rings, uint32_t key,
                                 bool remote, struct vmri_key **out)
{
    const unsigned int kinds = VMRI_KEY_MW |
                               (rings->kernel ? VMRI_KEY_FAST : 0);
    uint16_t verr;
    struct vmri_key *k = vmri_key_peek(qp, rings->pd, key, kinds, &verr);

    *out = k;
    if ( !k )
        return verr;
    if ( k->kind == VMRI_KEY_MW &&
         !container_of(k, struct vmri_mw, k)->type2 )
        return VMRI_VERR_KEY;
    if ( k->qp && k->qp != qp )
        return VMRI_VERR_PD;
    if ( k->users )
        return VMRI_VERR_BOUND;

    return remote && !k->live ? VMRI_VERR_STATE : VMRI_VERR_NONE;
}

static void fast_idle(struct vmri_key *k)
{
    vmri_table_idle(&k->dev->keys, k->key);

    env_lock(&k->dev->lock);
    k->live = false;
    env_unlock(&k->dev->lock);
}

uint16_t vmri_key_invalidate(const struct vmri_qp *qp,
                             const struct vmri_rings *rings, uint32_t key,
                             bool remote)
{
    struct vmri_dev *dev = qp->dev;
    struct vmri_key *k;
    uint16_t verr;

    env_lock(&dev->lock);
    verr = check_invalidate(qp, rings, key, remote, &k);
    if ( !verr )
        k->busy = true;
    env_unlock(&dev->lock);

    if ( verr )
        return verr;

    if ( k->kind == VMRI_KEY_FAST )
        fast_idle(k);
    else
        vmri_mw_unbind(container_of(k, struct vmri_mw, k));
    vmri_key_unclaim(k);

    return VMRI_VERR_NONE;
}

/* ---- requests ---- */

bool vmri_key_request(unsigned int opcode)
{
    return opcode == VMRI_WR_BIND_MW || opcode == VMRI_WR_LOCAL_INV ||
           opcode == VMRI_WR_REG_MR;
}

enum vmri_step vmri_key_step(struct vmri_qp *qp)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    uint16_t verr;

    switch ( wqe->opcode )
    {
    case VMRI_WR_BIND_MW:
        verr = vmri_mw_bind(qp);
        break;

    case VMRI_WR_REG_MR:
        verr = vmri_fast_register(qp);
        break;

    default:
        verr = vmri_key_invalidate(qp, &qp->rings, wqe->imm, false);
        break;
    }

    return verr ? vmri_fail(qp, VMRI_WC_MW_BIND_ERR, verr) : VMRI_STEP_DONE;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
