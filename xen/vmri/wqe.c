/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: requests in a guest's queues: taking them out and looking at them.
 *
 * The guest can change its ring at any time.  An index or an entry is read
 * once and bounded before it is used; a request's header is copied before
 * anything in it is looked at.
 */
#include "internal.h"

void vmri_wq_init(struct vmri_wq *wq, struct vmri_wq_hdr *hdr, uint32_t offset,
                  uint8_t log2_entries, uint8_t log2_stride, uint8_t max_sge)
{
    if ( !log2_stride )
        return;

    *wq = (struct vmri_wq){
        .hdr = hdr,
        .offset = offset,
        .log2_entries = log2_entries,
        .log2_stride = log2_stride,
        .max_sge = max_sge,
        .cons = env_load(&hdr->prod),
    };
    wq->done = wq->cons;
    env_store(&hdr->cons, wq->cons);
    env_store(&hdr->running, 0);
    env_store(&hdr->wait, 0);
}

void vmri_cursor_init(struct vmri_cursor *sgl, const struct vmri_rings *rings,
                      uint32_t offset, uint32_t num, bool indirect,
                      uint32_t ind_start)
{
    *sgl = (struct vmri_cursor){
        .region = &rings->region,
        .pd = rings->pd,
        .kernel = rings->kernel,
        .offset = indirect ? rings->ind_offset : offset,
        .start = indirect ? ind_start : 0,
        .mask = indirect ? (1U << rings->ind_log2_entries) - 1 : ~0U,
        .num = num,
    };
}

static void cursor_read(const struct vmri_cursor *sgl, uint32_t n,
                        struct vmri_sge *sge)
{
    uint32_t index = (sgl->start + n) & sgl->mask;

    if ( sgl->copy )
        *sge = sgl->copy[n];
    else
        vmri_copy_in(sge, vmri_region_at(sgl->region, sgl->offset +
                                         index * sizeof(*sge)), sizeof(*sge));
}

void vmri_cursor_privatise(struct vmri_cursor *sgl, struct vmri_sge *copy)
{
    uint32_t n;

    if ( sgl->num > VMRI_MAX_SGE )
        sgl->num = VMRI_MAX_SGE;
    for ( n = 0; n < sgl->num; n++ )
        cursor_read(sgl, n, &copy[n]);
    sgl->copy = copy;
}

bool vmri_cursor_next(struct vmri_cursor *sgl)
{
    if ( sgl->next == sgl->num )
        return false;

    cursor_read(sgl, sgl->next++, &sgl->cur);
    sgl->used = 0;

    return true;
}

bool vmri_cursor_holds(const struct vmri_cursor *sgl, uint64_t want)
{
    struct vmri_sge sge;
    uint64_t sum = 0;
    uint32_t n;

    for ( n = 0; sum < want && n < sgl->num; n++ )
    {
        cursor_read(sgl, n, &sge);
        sum += sge.length;
    }

    return sum >= want;
}

bool vmri_cursor_skip(struct vmri_cursor *sgl, uint64_t bytes)
{
    while ( bytes )
    {
        uint32_t here = sgl->cur.length - sgl->used;

        if ( here > bytes )
            here = bytes;
        sgl->used += here;
        bytes -= here;

        if ( bytes && !vmri_cursor_next(sgl) )
            return false;
    }

    return true;
}

void vmri_send_fetch(struct vmri_qp *qp)
{
    const uint32_t slot = vmri_wq_slot(&qp->sq);
    const uint8_t *wqe = vmri_region_at(&qp->rings.region, slot);
    struct vmri_tx *tx = &qp->tx;

    vmri_copy_in(&tx->wqe, wqe, sizeof(tx->wqe));

    tx->active = true;
    tx->claimed = false;
    tx->retry = qp->attr.retry_cnt + 1;
    tx->rnr = qp->attr.rnr_retry == 7 ? VMRI_UNLIMITED : qp->attr.rnr_retry;
    tx->silent_until = 0;
    tx->rnr_until = 0;
    tx->status = VMRI_WC_SUCCESS;
    tx->vendor_err = VMRI_VERR_NONE;
    tx->done = 0;
    tx->group_next = tx->group_end = 0;
    /*
     * What fits the slot does not cross a page; behind one of a header alone
     * there may be no page of the region at all.
     */
    tx->data = tx->wqe.flags & VMRI_SEND_INLINE ? wqe + sizeof(tx->wqe) : NULL;
    vmri_cursor_init(&tx->sgl, &qp->rings, slot + sizeof(tx->wqe),
                     tx->data ? 0 : tx->wqe.num_sge,
                     tx->wqe.flags & VMRI_SEND_INDIRECT, tx->wqe.ind_start);
}

/* What the entries of a request are for. */
enum form {
    FORM_SEND,                  /* data that leaves; may be inline */
    FORM_FETCH,                 /* where data comes in */
    FORM_NONE,                  /* there are none */
    FORM_KEY,                   /* none, nor data: it changes a key */
};

#define ON_CONNECTED    (ON_RC | ON_UC | ON_INI)
#define ON_SENDERS      (ON_CONNECTED | ON_UD | ON_MAD)

/* Which types of queue pair do what (IBTA 1.4, 9.2 and annexes A14, A19). */
static const struct operation {
    uint8_t types;              /* ON_* */
    uint8_t form;
    uint8_t length;             /* what wqe.length must be; 0: anything */
    uint8_t completion;         /* VMRI_WC_OP_* */
    uint32_t right;             /* VMRI_ACCESS_* that the responder grants */
    bool kernel;                /* on queues of the guest's kernel alone */
} operations[] = {
    [VMRI_WR_SEND] =
        { ON_SENDERS, FORM_SEND, 0, VMRI_WC_OP_SEND, 0 },
    [VMRI_WR_SEND_WITH_IMM] =
        { ON_SENDERS, FORM_SEND, 0, VMRI_WC_OP_SEND, 0 },
    [VMRI_WR_RDMA_WRITE] =
        { ON_CONNECTED, FORM_SEND, 0, VMRI_WC_OP_RDMA_WRITE,
          VMRI_ACCESS_REMOTE_WRITE },
    [VMRI_WR_RDMA_WRITE_WITH_IMM] =
        { ON_CONNECTED, FORM_SEND, 0, VMRI_WC_OP_RDMA_WRITE,
          VMRI_ACCESS_REMOTE_WRITE },
    [VMRI_WR_RDMA_READ] =
        { ON_RC | ON_INI, FORM_FETCH, 0, VMRI_WC_OP_RDMA_READ,
          VMRI_ACCESS_REMOTE_READ },
    [VMRI_WR_ATOMIC_CMP_AND_SWP] =
        { ON_RC | ON_INI, FORM_FETCH, 8, VMRI_WC_OP_COMP_SWAP,
          VMRI_ACCESS_REMOTE_ATOMIC },
    [VMRI_WR_ATOMIC_FETCH_AND_ADD] =
        { ON_RC | ON_INI, FORM_FETCH, 8, VMRI_WC_OP_FETCH_ADD,
          VMRI_ACCESS_REMOTE_ATOMIC },
    [VMRI_WR_LOCAL_INV] =
        { ON_CONNECTED, FORM_KEY, 0, VMRI_WC_OP_LOCAL_INV, 0 },
    [VMRI_WR_BIND_MW] =
        { ON_CONNECTED, FORM_KEY, 0, VMRI_WC_OP_BIND_MW, 0 },
    [VMRI_WR_SEND_WITH_INV] =
        { ON_RC | ON_INI, FORM_SEND, 0, VMRI_WC_OP_SEND, 0 },
    [VMRI_WR_FLUSH] =
        { ON_RC, FORM_NONE, 0, VMRI_WC_OP_FLUSH, VMRI_ACCESS_FLUSH_GLOBAL },
    [VMRI_WR_ATOMIC_WRITE] =
        { ON_RC, FORM_NONE, 8, VMRI_WC_OP_ATOMIC_WRITE,
          VMRI_ACCESS_REMOTE_WRITE },
    [VMRI_WR_REG_MR] =
        { ON_CONNECTED, FORM_KEY, 0, VMRI_WC_OP_REG_MR, 0, true },
};

/* NULL: there is none of that number. */
static const struct operation *operation_of(unsigned int opcode)
{
    const struct operation *op;

    if ( opcode >= ARRAY_SIZE(operations) )
        return NULL;

    op = &operations[env_nospec(opcode, ARRAY_SIZE(operations))];

    return op->types ? op : NULL;
}

uint8_t vmri_completion_opcode(unsigned int opcode)
{
    const struct operation *op = operation_of(opcode);

    return op ? op->completion : VMRI_WC_OP_SEND;
}

/* Where the bytes of a request go that is of any use; FLUSH moves none. */
static enum vmri_moves moves(const struct operation *op, unsigned int opcode)
{
    if ( op->form == FORM_FETCH )
        return VMRI_MOVES_BACK;

    return opcode == VMRI_WR_FLUSH ? VMRI_MOVES_NONE : VMRI_MOVES_OUT;
}

/* A bound on the time that a peer spends on one request's list, too. */
uint32_t vmri_max_indirect(const struct vmri_rings *rings)
{
    uint32_t entries = 1U << rings->ind_log2_entries;

    return entries < VMRI_MAX_INDIRECT ? entries : VMRI_MAX_INDIRECT;
}

/*
 * VMRI_VERR_NONE, or what is wrong with the flags and the number of entries,
 * which a speculating CPU, too, finds bounded from here on.
 */
static uint16_t check_layout(struct vmri_qp *qp, const struct operation *op)
{
    const struct vmri_send_wqe *wqe = &qp->tx.wqe;
    bool is_inline = wqe->flags & VMRI_SEND_INLINE;
    bool indirect = wqe->flags & VMRI_SEND_INDIRECT;
    uint32_t limit;

    if ( wqe->flags & ~VMRI_SEND_FLAGS )
        return VMRI_VERR_FLAGS;

    if ( wqe->opcode == VMRI_WR_FLUSH &&
         (!wqe->u.rdma.flush_type ||
          (wqe->u.rdma.flush_type &
           ~(VMRI_FLUSH_GLOBAL | VMRI_FLUSH_PERSISTENT)) ||
          wqe->u.rdma.flush_level > VMRI_FLUSH_LEVEL_MR) )
        return VMRI_VERR_FLAGS;

    if ( op->form == FORM_NONE || op->form == FORM_KEY )
    {
        if ( is_inline || indirect )
            return VMRI_VERR_FLAGS;
        return wqe->num_sge ? VMRI_VERR_SGES : VMRI_VERR_NONE;
    }

    if ( is_inline && (indirect || op->form == FORM_FETCH) )
        return VMRI_VERR_FLAGS;

    if ( indirect && (!qp->rings.kernel || !qp->rings.ind_log2_entries) )
        return VMRI_VERR_FLAGS;

    limit = indirect ? vmri_max_indirect(&qp->rings) : qp->sq.max_sge;
    if ( !is_inline && wqe->num_sge > limit )
        return VMRI_VERR_SGES;
    qp->tx.sgl.num = env_nospec(qp->tx.sgl.num, limit + 1);

    return VMRI_VERR_NONE;
}

/* Is the length one that the operation has, and are there entries for it? */
static bool length_fits(const struct vmri_qp *qp, const struct operation *op)
{
    const struct vmri_tx *tx = &qp->tx;
    uint32_t limit = vmri_qp_datagram(qp) ? VMRI_MTU : VMRI_MAX_MSG;

    if ( tx->data )
        limit = qp->max_inline;

    if ( tx->wqe.length > limit ||
         (op->length && tx->wqe.length != op->length) )
        return false;

    if ( op->form == FORM_KEY )
        return !tx->wqe.length;

    return tx->data || op->form == FORM_NONE ||
           vmri_cursor_holds(&tx->sgl, tx->wqe.length);
}

bool vmri_send_check(struct vmri_qp *qp)
{
    const struct operation *op = operation_of(qp->tx.wqe.opcode);
    struct vmri_tx *tx = &qp->tx;
    bool known = op && (op->types & vmri_type_bit(qp)) &&
                 (!op->kernel || qp->rings.kernel);

    tx->completion = vmri_completion_opcode(tx->wqe.opcode);
    tx->status = VMRI_WC_LOC_QP_OP_ERR;
    tx->vendor_err = known ? check_layout(qp, op) : VMRI_VERR_OPCODE;
    if ( tx->vendor_err )
        return false;

    if ( !length_fits(qp, op) )
    {
        tx->status = VMRI_WC_LOC_LEN_ERR;
        tx->vendor_err = VMRI_VERR_LENGTH;
        return false;
    }

    tx->status = VMRI_WC_SUCCESS;
    tx->right = op->right;
    tx->moves = moves(op, tx->wqe.opcode);

    return true;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
