// SPDX-License-Identifier: GPL-2.0-only
/*
 * A request of ibv_post_send(), made by the calls of struct ibv_qp_ex.
 */
#include <errno.h>

#include "rig.h"

static void start_request(struct ibv_qp_ex *x, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(x);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(x, wr->imm_data);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(x, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(x, wr->wr.rdma.rkey,
				      wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(x, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	default:
		die("no call for opcode %d", wr->opcode);
	}
}

static void add_inline(struct ibv_qp_ex *x, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf bufs[32];
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		bufs[i].addr = (void *)(uintptr_t)wr->sg_list[i].addr;
		bufs[i].length = wr->sg_list[i].length;
	}
	if (wr->num_sge == 1)
		ibv_wr_set_inline_data(x, bufs[0].addr, bufs[0].length);
	else
		ibv_wr_set_inline_data_list(x, wr->num_sge, bufs);
}

static void add_data(struct ibv_qp_ex *x, const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;

	if (wr->send_flags & IBV_SEND_INLINE)
		add_inline(x, wr);
	else if (wr->num_sge == 1)
		ibv_wr_set_sge(x, sge->lkey, sge->addr, sge->length);
	else
		ibv_wr_set_sge_list(x, wr->num_sge, sge);
}

int post_by_calls(struct end *end, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(end->qp);

	if (!x)
		return EINVAL;
	/* One that is thought better of leaves nothing behind. */
	ibv_wr_start(x);
	x->wr_id = ~wr->wr_id;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(x);
	ibv_wr_abort(x);

	ibv_wr_start(x);
	x->wr_id = wr->wr_id;
	x->wr_flags = wr->send_flags & ~IBV_SEND_INLINE;
	start_request(x, wr);
	if (end->qp->qp_type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(x, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
				   wr->wr.ud.remote_qkey);
	if (end->qp->qp_type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(x, wr->qp_type.xrc.remote_srqn);
	add_data(x, wr);
	return ibv_wr_complete(x);
}
