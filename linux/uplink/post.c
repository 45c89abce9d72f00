// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: posting the guests' requests, which VMRI has checked.
 *
 * Guests' keys are the NIC's.  Data that a guest has given along is put where the
 * NIC can read it: what is called inline data by the verbs would be fetched by the
 * NIC's driver through an address of the kernel.
 */
#include "uplink.h"

static_assert(IB_WR_RDMA_WRITE == (int)VMRI_WR_RDMA_WRITE &&
	      IB_WR_RDMA_WRITE_WITH_IMM == (int)VMRI_WR_RDMA_WRITE_WITH_IMM &&
	      IB_WR_SEND == (int)VMRI_WR_SEND &&
	      IB_WR_SEND_WITH_IMM == (int)VMRI_WR_SEND_WITH_IMM &&
	      IB_WR_RDMA_READ == (int)VMRI_WR_RDMA_READ &&
	      IB_WR_ATOMIC_CMP_AND_SWP == (int)VMRI_WR_ATOMIC_CMP_AND_SWP &&
	      IB_WR_ATOMIC_FETCH_AND_ADD == (int)VMRI_WR_ATOMIC_FETCH_AND_ADD);

/* A slot for the next request; NULL if VMRI has sent more than there can be. */
static struct uplink_slot *uplink_take_slot(struct uplink_wq *wq)
{
	if (WARN_ON_ONCE(wq->prod - wq->cons >= wq->size))
		return NULL;
	return uplink_slot(wq, wq->prod);
}

/* What the NIC is to give back, see uplink_completed(). */
static u64 uplink_wr_id(u32 index, bool recv)
{
	return (u64)index << 1 | recv;
}

/* Return: how many there are, or -EINVAL. */
static int uplink_put_sgl(struct uplink_request *r,
			  const struct vmri_uplink_msg *msg,
			  const struct vmri_sge *sge, u32 num)
{
	u32 i;

	if (num > UPLINK_MAX_SGE ||
	    num * sizeof(*sge) > (msg->units - 1) * VMRI_UPLINK_UNIT)
		return -EINVAL;
	for (i = 0; i < num; i++)
		r->sge[i] = (struct ib_sge) {
			.addr = sge[i].addr,
			.length = sge[i].length,
			.lkey = sge[i].lkey,
		};
	return num;
}

/* Return: how many entries there are, or -EINVAL. */
static int uplink_put_inline(struct uplink_qp *qp, struct uplink_request *r,
			     const struct vmri_uplink_msg *msg,
			     const void *data)
{
	struct uplink_inline *inl = &qp->inl;
	u32 length = msg->u.send.length;
	size_t place;
	void *to;

	if (!length)
		return 0;
	if (length > inl->stride ||
	    length > (msg->units - 1) * VMRI_UPLINK_UNIT)
		return -EINVAL;

	place = (size_t)inl->stride * (qp->sq.prod & (qp->sq.size - 1));
	r->sge[0] = (struct ib_sge) {
		.addr = inl->dma[place >> PAGE_SHIFT] + offset_in_page(place),
		.length = length,
		.lkey = qp->twin.pd->ibpd->local_dma_lkey,
	};
	to = inl->pages[place >> PAGE_SHIFT] + offset_in_page(place);
	memcpy(to, data, length);
	ib_dma_sync_single_for_device(qp->twin.up->ibdev, r->sge[0].addr,
				      length, DMA_TO_DEVICE);
	return 1;
}

static int uplink_build_send(struct uplink_qp *qp, struct uplink_request *r,
			     const struct vmri_uplink_msg *msg,
			     const void *payload)
{
	u8 flags = msg->u.send.flags;
	int num = flags & VMRI_SEND_INLINE ?
		  uplink_put_inline(qp, r, msg, payload) :
		  uplink_put_sgl(r, msg, payload, msg->u.send.num_sge);

	if (num < 0)
		return num;

	memset(&r->send, 0, sizeof(r->send));
	r->send.wr.wr_id = uplink_wr_id(qp->sq.prod, false);
	r->send.wr.sg_list = r->sge;
	r->send.wr.num_sge = num;
	r->send.wr.opcode = (enum ib_wr_opcode)msg->u.send.opcode;
	r->send.wr.send_flags = IB_SEND_SIGNALED;
	if (flags & VMRI_SEND_FENCE)
		r->send.wr.send_flags |= IB_SEND_FENCE;
	if (flags & VMRI_SEND_SOLICITED)
		r->send.wr.send_flags |= IB_SEND_SOLICITED;

	switch (msg->u.send.opcode) {
	case VMRI_WR_SEND_WITH_IMM:
	case VMRI_WR_RDMA_WRITE_WITH_IMM:
		r->send.wr.ex.imm_data = (__force __be32)msg->u.send.imm;
		break;
	}
	switch (msg->u.send.opcode) {
	case VMRI_WR_SEND:
	case VMRI_WR_SEND_WITH_IMM:
		return 0;
	case VMRI_WR_RDMA_WRITE:
	case VMRI_WR_RDMA_WRITE_WITH_IMM:
	case VMRI_WR_RDMA_READ:
		r->send.rdma.remote_addr = msg->u.send.remote_addr;
		r->send.rdma.rkey = msg->u.send.rkey;
		return 0;
	case VMRI_WR_ATOMIC_CMP_AND_SWP:
	case VMRI_WR_ATOMIC_FETCH_AND_ADD:
		r->send.atomic.remote_addr = msg->u.send.remote_addr;
		r->send.atomic.compare_add = msg->u.send.compare_add;
		r->send.atomic.swap = msg->u.send.swap;
		r->send.atomic.rkey = msg->u.send.rkey;
		return 0;
	default:
		return -EINVAL;
	}
}

static u8 uplink_sent_opcode(u8 opcode)
{
	switch (opcode) {
	case VMRI_WR_RDMA_WRITE:
	case VMRI_WR_RDMA_WRITE_WITH_IMM:
		return VMRI_WC_OP_RDMA_WRITE;
	case VMRI_WR_RDMA_READ:
		return VMRI_WC_OP_RDMA_READ;
	case VMRI_WR_ATOMIC_CMP_AND_SWP:
		return VMRI_WC_OP_COMP_SWAP;
	case VMRI_WR_ATOMIC_FETCH_AND_ADD:
		return VMRI_WC_OP_FETCH_ADD;
	default:
		return VMRI_WC_OP_SEND;
	}
}

/**
 * uplink_post_send() - VMRI_UPLINK_SEND
 * @up:		uplink
 * @qp:		twin
 * @msg:	message
 * @payload:	its units behind the first
 *
 * Context: the runner's.
 */
void uplink_post_send(struct uplink *up, struct uplink_qp *qp,
		      const struct vmri_uplink_msg *msg, const void *payload)
{
	struct uplink_slot *slot = uplink_take_slot(&qp->sq);
	struct uplink_request *r = &up->request;
	int ret;

	if (!slot)
		return;
	ret = uplink_build_send(qp, r, msg, payload);
	*slot = (struct uplink_slot) {
		.wr_id = msg->u.send.wr_id,
		.length = msg->u.send.length,
		.opcode = uplink_sent_opcode(msg->u.send.opcode),
		.flags = msg->u.send.flags,
	};
	WRITE_ONCE(qp->sq.prod, qp->sq.prod + 1);
	if (!ret && READ_ONCE(qp->stuck))
		ret = -EIO;
	if (!ret)
		ret = ib_post_send(qp->ibqp, &r->send.wr, NULL);
	if (ret) {
		slot->refused = true;
		uplink_settle(up, qp, false);
	}
}

/* VMRI_UPLINK_RECV, likewise. */
void uplink_post_recv(struct uplink *up, struct uplink_qp *qp,
		      const struct vmri_uplink_msg *msg, const void *payload)
{
	struct uplink_slot *slot = uplink_take_slot(&qp->rq);
	struct uplink_request *r = &up->request;
	int num;

	if (!slot)
		return;
	num = uplink_put_sgl(r, msg, payload, msg->u.recv.num_sge);
	r->recv = (struct ib_recv_wr) {
		.wr_id = uplink_wr_id(qp->rq.prod, true),
		.sg_list = r->sge,
		.num_sge = num,
	};
	*slot = (struct uplink_slot) {
		.wr_id = msg->u.recv.wr_id,
		.opcode = VMRI_WC_OP_RECV,
	};
	WRITE_ONCE(qp->rq.prod, qp->rq.prod + 1);
	if (num < 0 || READ_ONCE(qp->stuck) ||
	    ib_post_recv(qp->ibqp, &r->recv, NULL)) {
		slot->refused = true;
		uplink_settle(up, qp, true);
	}
}
