// SPDX-License-Identifier: GPL-2.0-only
/*
 * What shared receive queues and extended queue pairs must refuse, and what is
 * not offered at all.
 */
#include <errno.h>
#include <string.h>

#include "errors.h"

/* ---- shared receive queues ---- */

static struct ibv_srq *create_srq(struct caller *c, uint32_t wrs, uint32_t sges)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = wrs, .max_sge = sges },
	};

	return ibv_create_srq(c->rig.pd, &init);
}

static void bad_srqs(struct caller *c)
{
	struct ibv_srq_init_attr_ex tags = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_TM,
		.pd = c->rig.pd,
	};
	struct ibv_device_attr attr;
	int ret = ibv_query_device(c->rig.ctx, &attr);

	if (ret)
		die("ibv_query_device: %s", strerror(ret));
	CHECK_NULL("create_srq, no entry", create_srq(c, 0, 1), EINVAL);
	CHECK_NULL("create_srq, too many entries",
		   create_srq(c, attr.max_srq_wr + 1, 1), EINVAL);
	CHECK_NULL("create_srq, too many SGEs",
		   create_srq(c, 4, attr.max_srq_sge + 1), EINVAL);
	CHECK_NULL("create_srq_ex, tag matching",
		   ibv_create_srq_ex(c->rig.ctx, &tags), EOPNOTSUPP);
}

static int modify_srq(struct ibv_srq *srq, int mask, uint32_t wrs,
		      uint32_t limit)
{
	struct ibv_srq_attr attr = { .max_wr = wrs, .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, mask);
}

/* Posted to until it is full; the most there can be, and it keeps them. */
static void full_srq(struct caller *c)
{
	struct ibv_recv_wr *bad_wr, wr = {};
	struct ibv_device_attr dev;
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;
	struct rlimit had;
	uint32_t n;
	int ret;

	ret = ibv_query_device(c->rig.ctx, &dev);
	if (ret)
		die("ibv_query_device: %s", strerror(ret));
	srq = create_srq(c, 16, 1);
	if (!srq)
		die("ibv_create_srq: %s", strerror(errno));

	for (n = 0; !(ret = ibv_post_srq_recv(srq, &wr, &bad_wr)); n++)
		;
	if (expect("an SRQ is full", "receives", n, 16))
		check("post_srq_recv, the queue is full", ret, ENOMEM);
	check("modify_srq, to less than is posted",
	      modify_srq(srq, IBV_SRQ_MAX_WR, 8, 0), EINVAL);
	check("modify_srq, to nothing",
	      modify_srq(srq, IBV_SRQ_MAX_WR, 0, 0), EINVAL);
	check("modify_srq, to more than there may be",
	      modify_srq(srq, IBV_SRQ_MAX_WR, dev.max_srq_wr + 1, 0), EINVAL);
	check("modify_srq, a limit above the size",
	      modify_srq(srq, IBV_SRQ_LIMIT, 0, 17), EINVAL);
	take_room(&had);
	ret = modify_srq(srq, IBV_SRQ_MAX_WR, dev.max_srq_wr, 0);
	give_room_back(&had);
	check("modify_srq, to what cannot be mapped", ret, ENOMEM);
	check("modify_srq, to the most there may be",
	      modify_srq(srq, IBV_SRQ_MAX_WR, dev.max_srq_wr, 0), 0);
	for (; !(ret = ibv_post_srq_recv(srq, &wr, &bad_wr)); n++)
		;
	if (expect("an SRQ is full anew", "receives", n, dev.max_srq_wr))
		check("post_srq_recv, the queue is full again", ret, ENOMEM);

	ret = ibv_query_srq(srq, &attr);
	if (!ret && expect("query_srq", "its size", attr.max_wr,
			   dev.max_srq_wr))
		check("query_srq", ret, 0);
	ret = ibv_destroy_srq(srq);
	if (ret)
		die("ibv_destroy_srq: %s", strerror(ret));
}

/* A queue pair that shares its receives has none of its own. */
static void shared_receives(struct caller *c)
{
	struct ibv_recv_wr *bad_wr, wr = {};
	struct end end;

	end_open(&end, &c->rig, &(struct end_attr) {
		.type = IBV_QPT_RC,
		.shared = true,
	});
	check("post_recv to a QP with an SRQ",
	      ibv_post_recv(end.qp, &wr, &bad_wr), EINVAL);
	check("destroy_srq, in use", ibv_destroy_srq(end.srq), EBUSY);
	end_close(&end);
}

/* ---- extended queue pairs ---- */

static struct ibv_qp *create_qp_ex(struct end *end, enum ibv_qp_type type,
				   uint32_t mask, uint64_t ops, uint32_t flags)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.cap = { 4, 4, 1, 1, 0 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | mask,
		.pd = end->rig->pd,
		.create_flags = flags,
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(end->rig->ctx, &init);
}

static void bad_extended(struct caller *c)
{
	struct end end;

	end_open(&end, &c->rig, &(struct end_attr) { .type = IBV_QPT_UD });
	CHECK_NULL("create_qp_ex, READs on UD",
		   create_qp_ex(&end, IBV_QPT_UD,
				IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
				IBV_QP_EX_WITH_RDMA_READ, 0), EOPNOTSUPP);
	CHECK_NULL("create_qp_ex, segmentation",
		   create_qp_ex(&end, IBV_QPT_UD,
				IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
				IBV_QP_EX_WITH_TSO, 0), EOPNOTSUPP);
	CHECK_NULL("create_qp_ex, an operation that does not exist",
		   create_qp_ex(&end, IBV_QPT_RC,
				IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 1ULL << 40, 0),
		   EOPNOTSUPP);
	CHECK_NULL("create_qp_ex, a flag that is not offered",
		   create_qp_ex(&end, IBV_QPT_RC,
				IBV_QP_INIT_ATTR_CREATE_FLAGS, 0,
				IBV_QP_CREATE_SCATTER_FCS), EOPNOTSUPP);
	CHECK_NULL("create_qp_ex, an attribute that is not offered",
		   create_qp_ex(&end, IBV_QPT_RC,
				IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0, 0),
		   EOPNOTSUPP);
	end_close(&end);
}

/* One bad call spoils all between start and complete, and nothing else. */
static void bad_calls(struct caller *c)
{
	static const struct end_attr attr = {
		.type = IBV_QPT_RC,
		.sges = 2,
		.max_inline = 64,
		.send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ,
	};
	struct ibv_sge sges[64] = {};
	struct ibv_qp_ex *x;
	struct pair p;

	pair_open_only(&p, c, &(struct terms) { .receives = 1 }, &attr);
	x = ibv_qp_to_qp_ex(p.end.qp);
	ibv_wr_start(x);
	ibv_wr_send(x);
	check("wr_complete in RESET", ibv_wr_complete(x), EINVAL);
	pair_connect_peer(&p);
	end_connect(&p.end, &p.peer, &link_default);

	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(x);
	ibv_wr_send(x);
	ibv_wr_send(x);
	ibv_wr_set_sge_list(x, 64, sges);
	check("wr_complete, too many SGEs", ibv_wr_complete(x), EINVAL);
	ibv_wr_start(x);
	ibv_wr_set_sge(x, 0, 0, 0);
	check("wr_complete, data without a request", ibv_wr_complete(x),
	      EINVAL);
	ibv_wr_start(x);
	ibv_wr_rdma_read(x, 0, 0);
	ibv_wr_set_inline_data(x, c->buf, 8);
	check("wr_complete, an inline READ", ibv_wr_complete(x), EINVAL);
	ibv_wr_start(x);
	ibv_wr_send(x);
	ibv_wr_set_inline_data(x, c->buf, p.end.max_inline + 4096);
	check("wr_complete, too much inline data", ibv_wr_complete(x), EINVAL);

	post_send(&p, 7, true);
	if (expect_wc("nothing of them was posted", &p, 7, IBV_WC_SUCCESS))
		ok("nothing of them was posted");
	pair_close(&p);
}

/* ---- what is not offered ---- */

static void not_offered(struct caller *c)
{
	struct ibv_alloc_dm_attr dm = { .length = 64 };
	struct ibv_counters_init_attr counters = {};
	struct ibv_flow_attr flow = { .size = sizeof(flow), .port = 1 };
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1,
		.pd = c->rig.pd,
	};
	struct ibv_ece ece = {};
	struct pair p;

	pair_open_only(&p, c, &(struct terms) {}, NULL);
	wq.cq = p.end.recv_cq;
	CHECK_NULL("alloc_dm", ibv_alloc_dm(c->rig.ctx, &dm), EOPNOTSUPP);
	CHECK_NULL("create_counters",
		   ibv_create_counters(c->rig.ctx, &counters), EOPNOTSUPP);
	CHECK_NULL("create_flow", ibv_create_flow(p.end.qp, &flow), EOPNOTSUPP);
	CHECK_NULL("create_wq", ibv_create_wq(c->rig.ctx, &wq), EOPNOTSUPP);
	check("set_ece", ibv_set_ece(p.end.qp, &ece), EOPNOTSUPP);
	pair_close(&p);
}

void test_objects(struct caller *c)
{
	bad_srqs(c);
	full_srq(c);
	shared_receives(c);
	bad_extended(c);
	bad_calls(c);
	not_offered(c);
}
