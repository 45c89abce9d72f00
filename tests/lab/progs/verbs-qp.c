// SPDX-License-Identifier: GPL-2.0-only
/* Queue pairs: their attributes, sizes and events; those that share. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "bench.h"

static bool wait_async(struct bench *t, enum ibv_event_type type)
{
	struct pollfd fd = { .fd = t->rig.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (poll(&fd, 1, RIG_LIMIT * 1000) > 0) {
		if (ibv_get_async_event(t->rig.ctx, &event))
			die("ibv_get_async_event: %s", strerror(errno));
		ibv_ack_async_event(&event);
		if (event.event_type == type)
			return true;
	}
	return false;
}

/* ---- attributes ---- */

/* uDAPL's library asks for it, though it is the region that says so. */
static void allowed_windows(struct bench *t)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.qp_access_flags = BENCH_ALL,
	};

	expect("a queue pair is told to let windows be bound",
	       ibv_modify_qp(t->a.qp, &attr, IBV_QP_STATE |
			     IBV_QP_ACCESS_FLAGS), 0);
}

static void told_attributes(struct bench *t)
{
	const struct link_attr *link = &link_default;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	expect("query_qp", ibv_query_qp(t->a.qp, &attr, IBV_QP_STATE, &init),
	       0);
	expect("its state", attr.qp_state, IBV_QPS_RTS);
	expect("its peer", attr.dest_qp_num, t->b.qp->qp_num);
	expect("the peer's LID", attr.ah_attr.dlid, t->rig.port.lid);
	expect("its port", attr.port_num, 1);
	expect("its path's MTU", attr.path_mtu, t->rig.port.active_mtu);
	expect("its rights", attr.qp_access_flags,
	       BENCH_ALL & ~IBV_ACCESS_MW_BIND);
	expect("its timeout", attr.timeout, link->timeout);
	expect("its retries", attr.retry_cnt, link->retry_cnt);
	expect("its retries of receives", attr.rnr_retry, link->rnr_retry);
	expect("its RNR timer", attr.min_rnr_timer, link->min_rnr_timer);
	expect("its READs", attr.max_rd_atomic, 1);
	expect("the peer's READs", attr.max_dest_rd_atomic, 1);
	expect("its type", init.qp_type, IBV_QPT_RC);
	expect("its CQs", init.send_cq == t->a.send_cq &&
			  init.recv_cq == t->a.recv_cq, true);
	expect("its sizes", init.cap.max_send_wr >= 64 &&
			    init.cap.max_recv_wr >= 64 &&
			    init.cap.max_send_sge >= 2, true);
}

/* All that the device says that a queue pair can have, at once. */
static void largest(struct bench *t)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = t->a.send_cq,
		.recv_cq = t->a.recv_cq,
	};
	struct ibv_device_attr dev;
	struct ibv_qp *qp;
	int ret = ibv_query_device(t->rig.ctx, &dev);

	if (ret)
		die("ibv_query_device: %s", strerror(ret));
	init.cap = (struct ibv_qp_cap) {
		.max_send_wr = dev.max_qp_wr,
		.max_recv_wr = dev.max_qp_wr,
		.max_send_sge = dev.max_sge,
		.max_recv_sge = dev.max_sge,
		.max_inline_data = 512,
	};
	errno = 0;
	qp = ibv_create_qp(t->rig.pd, &init);
	expect("the largest queue pair that there can be", errno, 0);
	if (qp)
		expect("it goes", ibv_destroy_qp(qp), 0);
}

/* ---- events ---- */

static void drained(struct bench *t)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD,
		.en_sqd_async_notify = 1,
	};

	expect("a send queue is drained",
	       ibv_modify_qp(t->a.qp, &attr, IBV_QP_STATE |
			     IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	expect("that it is, is told", wait_async(t, IBV_EVENT_SQ_DRAINED),
	       true);
	expect("it stays there", end_state(&t->a), IBV_QPS_SQD);
	attr.qp_state = IBV_QPS_RTS;
	expect("it goes on", ibv_modify_qp(t->a.qp, &attr, IBV_QP_STATE), 0);
	expect("as before",
	       bench_write(t, (uintptr_t)t->bmem, t->bmr->rkey, 64), 0);
}

static void shared_events(struct bench *t)
{
	const struct end_attr attr = { .type = IBV_QPT_RC, .shared = true };
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct ibv_recv_wr recv = {};
	struct address a, b;
	struct end from, to;

	end_open(&from, &t->rig, &attr);
	end_open(&to, &t->rig, &attr);
	a = end_address(&from, NULL);
	b = end_address(&to, NULL);
	end_connect(&to, &a, &link_default);
	end_connect(&from, &b, &link_default);

	expect("a receive is shared", end_post_recv(&to, &recv), 0);
	expect("another", end_post_recv(&to, &recv), 0);
	expect("a limit", ibv_modify_srq(to.srq, &limit, IBV_SRQ_LIMIT), 0);
	expect("a message", bench_post(&from, &wr).status, 0);
	expect("takes one", bench_receive(&to).status, 0);
	expect("that few are left, is told",
	       wait_async(t, IBV_EVENT_SRQ_LIMIT_REACHED), true);
	expect("a queue pair fails", end_set_state(&to, IBV_QPS_ERR), 0);
	expect("that it takes no more, is told",
	       wait_async(t, IBV_EVENT_QP_LAST_WQE_REACHED), true);
	end_close(&from);
	end_close(&to);
}

/* ---- XRC ---- */

/* A target lives for as long as somebody has it open. */
static void opened_target(struct bench *t)
{
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *again;
	struct end end;

	end_open(&end, &t->rig,
		 &(struct end_attr) { .type = IBV_QPT_XRC_SEND });
	open.xrcd = end.xrcd;
	open.qp_num = end.target->qp_num;
	errno = 0;
	again = ibv_open_qp(t->rig.ctx, &open);
	expect("a target is opened", errno, 0);
	open.qp_num++;
	errno = 0;
	expect("one that there is not",
	       ibv_open_qp(t->rig.ctx, &open) ? 0 : errno, EINVAL);
	if (again) {
		expect("it is asked", ibv_query_qp(again, &attr, IBV_QP_STATE,
						   &init), 0);
		expect("its state", attr.qp_state, IBV_QPS_RESET);
		expect("it is let go", ibv_destroy_qp(again), 0);
	}
	end_close(&end);
}

void test_qps(struct bench *t)
{
	allowed_windows(t);
	told_attributes(t);
	largest(t);
	drained(t);
	shared_events(t);
	opened_target(t);
}
