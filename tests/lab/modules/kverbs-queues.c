// SPDX-License-Identifier: GPL-2.0-only
/* vmri_kverbs: queues: their limits, sizes, events; shared ones. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "kverbs.h"

/* ---- queue pairs ---- */

/* As much of everything as the device says, and of nothing more. */
static void test_largest_qp(struct table *t)
{
	const struct ib_device_attr *dev = &t->dev->attrs;
	const struct ib_qp_init_attr most = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.send_cq = t->a.cq,
		.recv_cq = t->a.cq,
		.cap = { .max_send_wr = dev->max_qp_wr,
			 .max_recv_wr = dev->max_qp_wr,
			 .max_send_sge = dev->max_send_sge,
			 .max_recv_sge = dev->max_recv_sge },
	};
	struct ib_qp_init_attr attr = most;
	struct ib_qp *qp = ib_create_qp(t->pd, &attr);

	expect("a queue pair as large as they get", PTR_ERR_OR_ZERO(qp), 0);
	if (!IS_ERR(qp))
		ib_destroy_qp(qp);

	attr = most;
	attr.cap.max_send_wr++;
	qp = ib_create_qp(t->pd, &attr);
	expect("with one send more", PTR_ERR_OR_ZERO(qp), -EINVAL);
	attr = most;
	attr.cap.max_recv_sge++;
	qp = ib_create_qp(t->pd, &attr);
	expect("with one entry more", PTR_ERR_OR_ZERO(qp), -EINVAL);
}

/* ---- completion queues ---- */

static void test_resize(struct table *t)
{
	struct ib_rdma_wr wr = {
		.wr = {
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	struct ib_wc wc;
	int i, ret = 0;

	for (i = 0; i < 20 && !ret; i++) {
		wr.wr.wr_id = i;
		ret = ib_post_send(t->a.qp, &wr.wr, NULL);
		if (i == 9)
			expect("a CQ grows with unread entries",
			       ib_resize_cq(t->a.cq, 1024), 0);
	}
	expect("what was posted", ret, 0);
	expect("it has the size", t->a.cq->cqe, 1024);
	expect("it does not get too small", ib_resize_cq(t->a.cq, 16), -EINVAL);
	for (i = 0; i < 10 && next_wc(&t->a, &wc) && wc.wr_id == i; i++)
		;
	expect("it shrinks", ib_resize_cq(t->a.cq, 16), 0);
	for (; i < 20 && next_wc(&t->a, &wc) && wc.wr_id == i; i++)
		;
	expect("all entries come in order", i, 20);
	expect("it gets its size back", ib_resize_cq(t->a.cq, 2 * DEPTH), 0);
}

/* What a sleeper is told that asks to be woken too late. */
static void test_events(struct table *t)
{
	const enum ib_cq_notify_flags flags = IB_CQ_NEXT_COMP |
					      IB_CQ_REPORT_MISSED_EVENTS;
	struct ib_rdma_wr wr = {
		.wr.opcode = IB_WR_RDMA_WRITE,
		.wr.send_flags = IB_SEND_SIGNALED,
	};
	struct ib_wc wc;

	expect("an empty CQ has had no event",
	       ib_req_notify_cq(t->a.cq, flags), 0);
	expect("an empty WRITE", ib_post_send(t->a.qp, &wr.wr, NULL), 0);
	msleep(50);
	expect("one with an entry may have",
	       ib_req_notify_cq(t->a.cq, flags) > 0, true);
	expect("which is there", next_wc(&t->a, &wc), true);
	expect("and was the only one",
	       ib_req_notify_cq(t->a.cq, flags), 0);
}

/* ---- shared receive queues ---- */

#define SRQ_POSTED	8
#define SRQ_LIMIT	4

static DECLARE_COMPLETION(srq_limit_reached);
static DECLARE_COMPLETION(last_wqe_reached);

static void on_srq_event(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED)
		complete(&srq_limit_reached);
}

static void on_qp_event(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		complete(&last_wqe_reached);
}

static bool came(struct completion *event)
{
	return wait_for_completion_timeout(event, msecs_to_jiffies(WAIT_MS));
}

/* Receives and their memory go by their number. */
static int post_shared(struct table *t, struct ib_srq *srq)
{
	struct ib_sge sge = {
		.length = PAGE_SIZE,
		.lkey = t->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	int ret = 0;

	for (; wr.wr_id < SRQ_POSTED && !ret; wr.wr_id++) {
		sge.addr = (uintptr_t)bytes_of(&t->b, wr.wr_id);
		ret = ib_post_srq_recv(srq, &wr, NULL);
	}
	return ret;
}

static int send_page(struct table *t, struct end *from, u8 value)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)bytes_of(&t->a, 0),
		.length = PAGE_SIZE,
		.lkey = t->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};

	memset(bytes_of(&t->a, 0), value, PAGE_SIZE);
	return request(from, &wr);
}

/* The receives are taken in order, and each message is where it belongs. */
static void send_to_srq(struct table *t, struct end *from, struct end *to)
{
	int i, n = SRQ_POSTED - SRQ_LIMIT + 1;
	struct ib_wc wc;

	for (i = 0; i < n && !send_page(t, from, 0x40 + i); i++) {
		if (!next_wc(to, &wc) || wc.status || wc.wr_id != i ||
		    memchr_inv(bytes_of(&t->b, i), 0x40 + i, PAGE_SIZE))
			break;
	}
	expect("receives of an SRQ are filled in order", i, n);
}

/*
 * A thread that posts while the queue moves, every other time with more pages than
 * an entry has room for in its slot.
 */
#define CROWD		40
#define CROWD_BYTES	(4 * PAGE_SIZE)

struct poster {
	struct table *t;
	struct ib_srq *srq;
	u8 *memory;
	int posted, error;
	struct completion done;
};

static int post_meanwhile(void *data)
{
	struct poster *p = data;

	for (; p->posted < CROWD && !p->error; p->posted++) {
		struct ib_sge sge = {
			.addr = (uintptr_t)p->memory + p->posted * CROWD_BYTES,
			.length = p->posted & 1 ? CROWD_BYTES : PAGE_SIZE,
			.lkey = p->t->pd->local_dma_lkey,
		};
		struct ib_recv_wr wr = {
			.wr_id = p->posted,
			.sg_list = &sge,
			.num_sge = 1,
		};

		p->error = ib_post_srq_recv(p->srq, &wr, NULL);
		usleep_range(500, 2000);
	}
	complete(&p->done);
	return 0;
}

static int resize_meanwhile(struct poster *p)
{
	struct ib_srq_attr attr = { .max_wr = 64 };
	int moves = 0, ret = 0;

	while (!ret && !try_wait_for_completion(&p->done)) {
		attr.max_wr ^= 64 ^ 512;
		ret = ib_modify_srq(p->srq, &attr, IB_SRQ_MAX_WR);
		moves++;
	}
	expect("an SRQ moves under posts", ret, 0);
	if (ret)
		wait_for_completion(&p->done);
	return moves;
}

static void post_while_it_moves(struct table *t, struct ib_srq *srq,
				struct end *from, struct end *to)
{
	struct ib_srq_attr roomy = { .max_wr = 64 };
	struct poster p = { .t = t, .srq = srq };
	struct task_struct *task;
	struct ib_wc wc;
	int i = 0;

	init_completion(&p.done);
	p.memory = kvzalloc(CROWD * CROWD_BYTES, GFP_KERNEL);
	expect("memory for receives", !p.memory, 0);
	if (!p.memory)
		return;
	expect("an SRQ with room for them",
	       ib_modify_srq(srq, &roomy, IB_SRQ_MAX_WR), 0);
	task = kthread_run(post_meanwhile, &p, "kverbs");
	expect("a thread that posts", PTR_ERR_OR_ZERO(task), 0);
	if (!IS_ERR(task)) {
		expect("more than once", resize_meanwhile(&p) > 1, true);
		expect("all could be posted", p.error, 0);
		for (i = 0; i < p.posted && !send_page(t, from, i + 1); i++) {
			if (!next_wc(to, &wc) || wc.status || wc.wr_id != i ||
			    memchr_inv(p.memory + i * CROWD_BYTES, i + 1,
				       PAGE_SIZE))
				break;
		}
		expect("each gets its message", i, CROWD);
	}
	kvfree(p.memory);
}

static void use_srq(struct table *t, struct ib_srq *srq, struct end *from,
		    struct end *to)
{
	struct ib_srq_attr attr = { .max_wr = 64, .srq_limit = SRQ_LIMIT };
	struct ib_qp_attr err = { .qp_state = IB_QPS_ERR };

	post_while_it_moves(t, srq, from, to);
	expect("receives are posted to an SRQ", post_shared(t, srq), 0);
	expect("an SRQ grows with what is posted",
	       ib_modify_srq(srq, &attr, IB_SRQ_MAX_WR), 0);
	expect("its limit is set", ib_modify_srq(srq, &attr, IB_SRQ_LIMIT), 0);
	attr.srq_limit = 65;
	expect("a limit above its size", ib_modify_srq(srq, &attr, IB_SRQ_LIMIT),
	       -EINVAL);
	send_to_srq(t, from, to);
	expect("the limit is reached", came(&srq_limit_reached), true);
	expect("an SRQ is asked", ib_query_srq(srq, &attr), 0);
	expect("it has the new size", attr.max_wr, 64);
	expect("and no limit any more", attr.srq_limit, 0);
	expect("a QP of an SRQ fails", ib_modify_qp(to->qp, &err, IB_QP_STATE),
	       0);
	expect("its last request is told", came(&last_wqe_reached), true);
}

static void test_srq(struct table *t)
{
	static struct end from, to;	/* too large for the stack */
	struct ib_srq_init_attr srq_attr = {
		.event_handler = on_srq_event,
		.attr = { .max_wr = 2 * SRQ_POSTED, .max_sge = 1 },
	};
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.event_handler = on_qp_event,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1 },
	};
	struct ib_srq *srq = ib_create_srq(t->pd, &srq_attr);

	expect("an SRQ is created", PTR_ERR_OR_ZERO(srq), 0);
	if (IS_ERR(srq))
		return;

	from.cq = t->a.cq;
	to.cq = t->b.cq;
	attr.send_cq = from.cq;
	attr.recv_cq = from.cq;
	from.qp = ib_create_qp(t->pd, &attr);
	attr.send_cq = to.cq;
	attr.recv_cq = to.cq;
	attr.srq = srq;
	to.qp = ib_create_qp(t->pd, &attr);
	expect("queue pairs are", PTR_ERR_OR_ZERO(from.qp) ?:
				  PTR_ERR_OR_ZERO(to.qp), 0);
	if (!IS_ERR(from.qp) && !IS_ERR(to.qp) &&
	    !connect_end(t, &from, &to) && !connect_end(t, &to, &from))
		use_srq(t, srq, &from, &to);

	if (!IS_ERR(from.qp))
		ib_destroy_qp(from.qp);
	if (!IS_ERR(to.qp))
		ib_destroy_qp(to.qp);
	ib_destroy_srq(srq);
}

void test_queues(struct table *t)
{
	test_largest_qp(t);
	test_resize(t);
	test_events(t);
	test_srq(t);
}
