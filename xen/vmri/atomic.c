/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: operations on eight bytes of the peer's memory, and FLUSH.
 *
 * Atomics are the CPU's own, on the guest's frame: they are atomic against
 * each other, against those of other guests, and against the owner's CPUs.
 * Where the value goes that was there before is found, and held, before
 * anything is changed: what the requester cannot be told of has not happened.
 */
#include "internal.h"

#define ATOMIC_BYTES    8U

/* Places for the old value: entries of a byte at least. */
struct result {
    struct vmri_cursor sgl;
    unsigned int nr;
    struct {
        struct vmri_place place;
        uint32_t bytes;
    } part[ATOMIC_BYTES];
};

static void result_put(struct result *r)
{
    while ( r->nr )
        vmri_place_put(&r->part[--r->nr].place);
}

/* Hold all of it, and nothing when that fails: VMRI_VERR_*. */
static uint16_t result_hold(struct vmri_qp *qp, struct result *r)
{
    uint32_t left = ATOMIC_BYTES;

    r->sgl = qp->tx.sgl;
    for ( r->nr = 0; left; r->nr++ )
    {
        struct vmri_place *p = &r->part[r->nr].place;
        uint32_t bytes;

        *p = (struct vmri_place){
            .qp = qp, .write = true, .sgl = &r->sgl, .extent = left,
        };
        bytes = vmri_place_hold(p, left);
        if ( !bytes )
        {
            result_put(r);
            return p->vendor_err;
        }
        r->part[r->nr].bytes = bytes;
        r->sgl.used += bytes;
        left -= bytes;
    }

    return VMRI_VERR_NONE;
}

/* Write the value to the places, and let them go. */
static void result_store(struct result *r, uint64_t value)
{
    struct vmri_place from = { .data = (uint8_t *)&value };
    unsigned int i;

    for ( i = 0; i < r->nr; i++ )
        vmri_copy(&r->part[i].place, &from, r->part[i].bytes);
}

/* On the peer's memory, which is held; the value that was there before. */
static uint64_t operate(const struct vmri_send_wqe *wqe,
                        const struct vmri_place *at)
{
    uint8_t *page = env_map(at->frame);
    uint64_t *p = (uint64_t *)(page + at->offset);
    uint64_t old = 0;

    switch ( wqe->opcode )
    {
    case VMRI_WR_ATOMIC_CMP_AND_SWP:
        old = env_mapped_cmpxchg(p, wqe->u.rdma.compare_add, wqe->u.rdma.swap);
        break;

    case VMRI_WR_ATOMIC_FETCH_AND_ADD:
        old = env_mapped_add(p, wqe->u.rdma.compare_add);
        break;

    case VMRI_WR_ATOMIC_WRITE:
        env_mapped_store(p, wqe->u.rdma.compare_add);
        break;
    }

    env_unmap(page);
    env_frames_dirty(at->qp->dev->domain, at->frame, 1);

    return old;
}

/*
 * Both the address that is named and the memory that is there must be aligned:
 * a region may begin anywhere in a frame.
 */
static enum vmri_step remote_operate(struct vmri_qp *qp, struct vmri_qp *peer,
                                     uint64_t *old)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    struct vmri_place at = {
        .qp = peer,
        .write = true,
        .key = wqe->u.rdma.rkey,
        .pd = vmri_remote_pd(qp, peer),
        .access = qp->tx.right,
        .addr = wqe->u.rdma.remote_addr,
        .extent = ATOMIC_BYTES,
    };
    bool aligned = !(at.addr % ATOMIC_BYTES);

    if ( aligned && !vmri_place_hold(&at, ATOMIC_BYTES) )
        return vmri_fail_both(qp, peer, VMRI_WC_REM_ACCESS_ERR, at.vendor_err);

    aligned = aligned && !(at.offset % ATOMIC_BYTES);
    if ( aligned )
        *old = operate(wqe, &at);
    vmri_place_put(&at);

    return aligned ? VMRI_STEP_DONE
                   : vmri_fail_both(qp, peer, VMRI_WC_REM_INV_REQ_ERR,
                                    VMRI_VERR_ALIGN);
}

static enum vmri_step fetching(struct vmri_qp *qp, struct vmri_qp *peer)
{
    struct result result;
    uint16_t verr = result_hold(qp, &result);
    enum vmri_step rc;
    uint64_t old;

    if ( verr )
        return vmri_fail(qp, VMRI_WC_LOC_PROT_ERR, verr);

    rc = remote_operate(qp, peer, &old);
    if ( rc == VMRI_STEP_DONE )
        result_store(&result, old);
    else
        result_put(&result);

    return rc;
}

/*
 * All that this queue has written is in the memory of a coherent machine
 * already: what remains is to check what is named, and the order.
 */
static enum vmri_step flush(struct vmri_qp *qp, struct vmri_qp *peer)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    const struct vmri_pd *pd = peer->rings.pd;
    struct vmri_key *k;
    uint16_t verr;

    if ( wqe->u.rdma.flush_level == VMRI_FLUSH_LEVEL_RANGE )
        k = vmri_key_get(peer, pd, wqe->u.rdma.rkey, qp->tx.right,
                         wqe->u.rdma.remote_addr, wqe->length, &verr);
    else
        k = vmri_key_find(peer, pd, wqe->u.rdma.rkey, qp->tx.right, &verr);
    if ( k && (wqe->u.rdma.flush_type & VMRI_FLUSH_PERSISTENT) )
    {
        vmri_key_put(k);
        k = NULL;
        verr = VMRI_VERR_RIGHTS;
    }
    if ( !k )
        return vmri_fail_both(qp, peer, VMRI_WC_REM_ACCESS_ERR, verr);

    vmri_key_put(k);
    env_mb();

    return VMRI_STEP_DONE;
}

bool vmri_is_atomic(unsigned int opcode)
{
    return opcode == VMRI_WR_ATOMIC_CMP_AND_SWP ||
           opcode == VMRI_WR_ATOMIC_FETCH_AND_ADD ||
           opcode == VMRI_WR_ATOMIC_WRITE || opcode == VMRI_WR_FLUSH;
}

enum vmri_step vmri_atomic(struct vmri_qp *qp, struct vmri_qp *peer)
{
    uint64_t nothing;

    switch ( qp->tx.wqe.opcode )
    {
    case VMRI_WR_FLUSH:
        return flush(qp, peer);

    case VMRI_WR_ATOMIC_WRITE:
        return remote_operate(qp, peer, &nothing);

    default:
        return fetching(qp, peer);
    }
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
