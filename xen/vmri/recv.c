/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: receives: taking them out of a queue, and completing them.
 *
 * Entries of a receive that several may fill at once, each a receive of its
 * own, are copied: nobody needs its slot any more then.  So of a queue pair's
 * own queue as many slots are given back as receives have completed, in the
 * order in which they were taken, whichever completed, and a guest never has
 * more under way than its queue is long.  A connected queue pair with a queue
 * of its own needs no copy: its peer fills one receive at a time.
 */
#include "internal.h"

int vmri_recv_fetch(const struct vmri_rings *rings, const struct vmri_wq *wq,
                    struct vmri_rx *rx, struct vmri_sge *copy)
{
    int64_t posted = vmri_wq_posted(wq);
    uint32_t slot, limit;
    struct vmri_recv_wqe wqe;
    bool indirect;

    if ( posted <= 0 )
        return posted ? -EINVAL : 0;

    slot = vmri_wq_slot(wq);
    vmri_copy_in(&wqe, vmri_region_at(&rings->region, slot), sizeof(wqe));

    indirect = (wqe.flags & VMRI_RECV_INDIRECT) && rings->kernel &&
               rings->ind_log2_entries;
    limit = indirect ? vmri_max_indirect(rings) : wq->max_sge;

    rx->wr_id = wqe.wr_id;
    /* Of too many entries, those that there may be count. */
    if ( wqe.num_sge > limit )
        wqe.num_sge = limit;
    vmri_cursor_init(&rx->sgl, rings, slot + sizeof(wqe),
                     env_nospec(wqe.num_sge, limit + 1), indirect,
                     wqe.ind_start);
    if ( copy )
        vmri_cursor_privatise(&rx->sgl, copy);

    return 1;
}

int vmri_recv_take(struct vmri_qp *qp, struct vmri_srq *srq, uint64_t want,
                   struct vmri_rx *rx, struct vmri_sge *copy)
{
    int rc;

    if ( srq )
        return vmri_srq_take(srq, qp, want, rx, copy);

    rx->srqn = 0;
    rc = vmri_recv_fetch(&qp->rings, &qp->rq, rx, copy);

    if ( rc > 0 && !vmri_cursor_holds(&rx->sgl, want) )
        return 0;

    if ( rc > 0 )
        qp->rq.cons++;

    return rc;
}

void vmri_recv_release(struct vmri_qp *qp)
{
    if ( qp->rq.hdr )
        env_store_release(&qp->rq.hdr->cons, ++qp->rq.done);
}

/*
 * Where a receive completes: XRC ones in the CQ of their SRQ.  When that is
 * gone, so are its receives.
 */
static bool push(struct vmri_qp *qp, const struct vmri_rx *rx,
                 struct vmri_cqe *cqe)
{
    struct vmri_srq *srq;
    bool ok = true;

    cqe->wr_id = rx->wr_id;

    if ( qp->rcq )
        return vmri_cq_push(qp->rcq, qp, cqe);

    srq = vmri_srq_get(qp, rx->srqn);
    if ( srq )
    {
        ok = vmri_cq_push(srq->cq, qp, cqe);
        vmri_srq_put(srq);
    }

    return ok;
}

bool vmri_recv_flush(struct vmri_qp *qp, const struct vmri_rx *rx)
{
    struct vmri_cqe cqe = {
        .status = VMRI_WC_WR_FLUSH_ERR,
        .vendor_err = VMRI_VERR_FLUSHED,
        .opcode = VMRI_WC_OP_RECV,
    };

    return push(qp, rx, &cqe);
}

bool vmri_recv_tell(struct vmri_qp *qp, const struct vmri_rx *rx,
                    struct vmri_cqe *cqe)
{
    if ( !cqe->status )
    {
        vmri_count_qp(qp, rx_msgs, 1);
        vmri_count_qp(qp, rx_bytes, cqe->byte_len -
                      (vmri_qp_datagram(qp) ? VMRI_GRH : 0));
    }

    if ( push(qp, rx, cqe) )
        return true;

    vmri_qp_error(qp, VMRI_EVENT_QP_FATAL);

    return false;
}

bool vmri_recv_complete(struct vmri_qp *qp, const struct vmri_rx *rx,
                        struct vmri_cqe *cqe)
{
    env_lock(&qp->lock);
    if ( !vmri_qp_datagram(qp) )
        qp->rx.active = false;
    vmri_recv_release(qp);
    env_unlock(&qp->lock);

    return vmri_recv_tell(qp, rx, cqe);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
