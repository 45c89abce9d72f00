/* SPDX-License-Identifier: GPL-2.0-only */
/* What a cell's queues and keys are at, for who looks into a failure. */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

#define LAST    12U             /* requests that are shown of a queue */

/* The last few requests, as the model has them. */
static void show_sends(const struct qp *q)
{
    uint32_t i = q->sq.prod > LAST ? q->sq.prod - LAST : 0;

    for ( ; i < q->sq.prod; i++ )
    {
        const struct send *s = &q->send[i % DEPTH];
        unsigned int j;

        fprintf(stderr, "  wr_id %llu opcode %u flags %#x length %u",
                (unsigned long long)s->wqe.wr_id, s->wqe.opcode, s->wqe.flags,
                s->wqe.length);
        if ( !qp_is_datagram(q) && !is_send(s->wqe.opcode) )
            fprintf(stderr, " remote %#x at %#llx", s->wqe.u.rdma.rkey,
                    (unsigned long long)s->wqe.u.rdma.remote_addr);
        if ( qp_is_xrc(q) )
            fprintf(stderr, " SRQ %u", s->wqe.u.rdma.srqn);
        if ( !(s->wqe.flags & VMRI_SEND_INLINE) )
            for ( j = 0; j < s->wqe.num_sge && j < INDIRECT; j++ )
                fprintf(stderr, ", %#x at %#llx length %u", s->sge[j].lkey,
                        (unsigned long long)s->sge[j].addr, s->sge[j].length);
        if ( i < q->sq.done )
            fprintf(stderr, ": status %u vendor %u\n", s->status, s->verr);
        else
            fprintf(stderr, ": waits\n");
    }
}

static void show_regions(const struct side *s)
{
    unsigned int i;

    for ( i = 0; i < SIDES * NAMED; i++ )
    {
        const struct region *r = &s->region[i / NAMED][i % NAMED];

        fprintf(stderr, "side %u direction %u key %#x (%#x before): kind %u "
                "PD %u access %#x at %#llx length %u%s\n", s->index, i / NAMED,
                r->key, r->old_key, (unsigned int)r->kind, r->pd, r->access,
                (unsigned long long)r->iova, r->length,
                r->live ? "" : ", names nothing");
    }
}

void cell_show(const struct cell *c)
{
    unsigned int i;

    for ( i = 0; i < SIDES * LINKS; i++ )
    {
        const struct qp *q = &c->side[i / LINKS].qp[i % LINKS];

        fprintf(stderr, "side %u link %u: QP %u type %u state %u, sends %u of "
                "%u done (VMRI: %u), receives %u of %u (VMRI: %u)%s%s\n",
                i / LINKS, q->link, q->qpn, qp_type(q), q->attr.state,
                q->sq.done, q->sq.prod, q->hdr ? q->hdr->sq.cons : 0,
                q->own.wq.done, q->own.wq.prod, q->hdr ? q->hdr->rq.cons : 0,
                q->claimed ? ", one claimed" : "",
                qp_shares(q) ? ", from the SRQ" : "");
        show_sends(q);
    }
    for ( i = 0; i < SIDES * CQS; i++ )
    {
        const struct cq *cq = &c->side[i / CQS].cq[i % CQS];

        fprintf(stderr, "side %u: CQ %u of %u entries%s%s, %u to come\n",
                i / CQS, cq->handle, 1U << cq->log2,
                cq->closed ? ", closed" : "", cq->dead ? ", dead" : "",
                cq->wanted);
    }
    for ( i = 0; i < SIDES; i++ )
        show_regions(&c->side[i]);
}
