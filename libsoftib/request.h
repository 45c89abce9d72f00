/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Building send requests, for ibv_post_send() and the ibv_wr_*() family alike.
 *
 * A request is begun in the next slot of the send queue, then gets what belongs
 * to its operation, its destination and its data.  All of this is done with
 * sq.lock held; the hypervisor sees none of it before wq_publish().
 *
 * What is checked here is what the interfaces promise to report at once.  The
 * hypervisor trusts none of it and checks everything again.
 */
#ifndef __SOFTIB_REQUEST_H__
#define __SOFTIB_REQUEST_H__

#include <errno.h>
#include <string.h>

#include <util/compiler.h>

#include "softib.h"

#define REQUEST_FLAGS \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED)

#define REQUEST_OP(name)	(1U << IBV_WR_##name)
#define REQUEST_ATOMICS \
	(REQUEST_OP(ATOMIC_CMP_AND_SWP) | REQUEST_OP(ATOMIC_FETCH_AND_ADD))
/* The operations whose data may stand in the request. */
#define REQUEST_INLINE \
	(REQUEST_OP(SEND) | REQUEST_OP(SEND_WITH_IMM) | \
	 REQUEST_OP(SEND_WITH_INV) | REQUEST_OP(RDMA_WRITE) | \
	 REQUEST_OP(RDMA_WRITE_WITH_IMM))

/*
 * Take the next slot for a request of the queue pair's repertoire without data.
 * Who does not go on with it moves sq.prod back.  0, ENOMEM or EINVAL.
 */
static inline int request_begin(struct softib_qp *qp, uint64_t wr_id,
				unsigned int opcode, unsigned int flags,
				struct vmri_send_wqe **wqe)
{
	struct softib_wq *sq = &qp->sq;

	if (unlikely(opcode >= 32 || !(qp->ops & (1U << opcode)) ||
		     (flags & ~REQUEST_FLAGS)))
		return EINVAL;
	if (unlikely(wq_is_full(sq)))
		return ENOMEM;

	*wqe = wq_slot(sq, sq->prod++);
	**wqe = (struct vmri_send_wqe) {
		.wr_id = wr_id,
		.opcode = opcode,
		.flags = flags | qp->sig_all,
	};
	return 0;
}

static inline void request_set_remote(struct vmri_send_wqe *wqe, uint32_t rkey,
				      uint64_t remote_addr)
{
	wqe->u.rdma.remote_addr = remote_addr;
	wqe->u.rdma.rkey = rkey;
}

/* After request_set_remote(). */
static inline void request_set_atomic(struct vmri_send_wqe *wqe,
				      uint64_t compare_add, uint64_t swap)
{
	wqe->u.rdma.compare_add = compare_add;
	wqe->u.rdma.swap = swap;
}

/* The SRQ that an XRC target takes the receive from.  A bind goes to none. */
static inline void request_set_srqn(struct vmri_send_wqe *wqe, uint32_t srqn)
{
	if (wqe->opcode != VMRI_WR_BIND_MW)
		wqe->u.rdma.srqn = srqn;
}

static inline int request_set_ud(struct vmri_send_wqe *wqe, struct ibv_ah *ah,
				 uint32_t remote_qpn, uint32_t remote_qkey)
{
	if (unlikely(!ah))
		return EINVAL;

	wqe->u.ud.av = to_sah(ah)->av;
	wqe->u.ud.remote_qpn = remote_qpn;
	wqe->u.ud.remote_qkey = remote_qkey;
	return 0;
}

/*
 * @mw is to go by @new_key from now on, of which the low byte is the program's to
 * choose.  Local rights mean nothing for a window, but programs name them.
 */
static inline void request_set_bind(struct vmri_send_wqe *wqe,
				    const struct ibv_mw *mw, uint32_t new_key,
				    const struct ibv_mw_bind_info *info)
{
	wqe->u.bind.addr = info->addr;
	wqe->u.bind.length = info->length;
	wqe->u.bind.mw_key = mw->rkey;
	wqe->u.bind.new_key = (mw->rkey & ~0xffU) | (new_key & 0xff);
	wqe->u.bind.mr_key = info->mr ? info->mr->lkey : 0;
	wqe->u.bind.access = info->mw_access_flags & ~IBV_ACCESS_LOCAL_WRITE;
}

/* The data lies in, or goes to, what @sg_list names. */
static inline int request_set_sges(const struct softib_qp *qp,
				   struct vmri_send_wqe *wqe,
				   const struct ibv_sge *sg_list,
				   size_t num_sge)
{
	uint64_t length = 0;
	size_t i;

	if (unlikely(num_sge > qp->sq.max_sge))
		return EINVAL;
	for (i = 0; i < num_sge; i++)
		length += sg_list[i].length;
	if (unlikely(length > UINT32_MAX))
		return EINVAL;

	wqe->num_sge = num_sge;
	wqe->length = length;
	/* An entry that is larger than the one value that comes is no harm. */
	if (((1U << wqe->opcode) & REQUEST_ATOMICS) &&
	    length > sizeof(uint64_t))
		wqe->length = sizeof(uint64_t);
	if (num_sge)
		memcpy(wqe + 1, sg_list, num_sge * sizeof(struct vmri_sge));
	return 0;
}

/*
 * The data is in the request itself.  It grows by every call, as far as the
 * queue pair's max_inline.
 */
static inline int request_add_inline(const struct softib_qp *qp,
				     struct vmri_send_wqe *wqe,
				     const void *data, size_t length)
{
	if (unlikely(!((1U << wqe->opcode) & REQUEST_INLINE) ||
		     length > qp->max_inline - wqe->length))
		return EINVAL;

	wqe->flags |= VMRI_SEND_INLINE;
	if (length)
		memcpy((uint8_t *)(wqe + 1) + wqe->length, data, length);
	wqe->length += length;
	return 0;
}

#endif /* __SOFTIB_REQUEST_H__ */
