// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a call must refuse at once, and with which errno.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "errors.h"

/* ---- posting ---- */

static void check_send(const char *name, struct pair *p,
		       struct ibv_send_wr *wr, int want)
{
	struct ibv_send_wr *bad_wr = NULL;
	int ret = ibv_post_send(p->end.qp, wr, &bad_wr);

	if (ret == want && bad_wr != wr)
		bad(name, "bad_wr is not the request");
	else
		check(name, ret, want);
}

static void bad_requests(struct caller *c)
{
	uint32_t max_inline;
	struct ibv_sge sges[64];
	struct request r;
	struct pair p;
	int i;

	pair_open(&p, c, &(struct terms) { .receives = 1 }, NULL);

	request_init(&r, c, &p, IBV_WR_SEND, 16);
	for (i = 0; i < 64; i++)
		sges[i] = (struct ibv_sge) { r.sge.addr, 1, r.sge.lkey };
	r.wr.sg_list = sges;
	r.wr.num_sge = 64;
	check_send("post_send, too many SGEs", &p, &r.wr, EINVAL);

	request_init(&r, c, &p, IBV_WR_SEND, 16);
	r.wr.num_sge = -1;
	check_send("post_send, a negative number of SGEs", &p, &r.wr, EINVAL);

	request_init(&r, c, &p, IBV_WR_TSO, 8);
	check_send("post_send, an operation that is not offered", &p, &r.wr,
		   EINVAL);

	request_init(&r, c, &p, 200, 8);
	check_send("post_send, an operation that does not exist", &p, &r.wr,
		   EINVAL);

	request_init(&r, c, &p, IBV_WR_SEND, 16);
	r.wr.send_flags |= IBV_SEND_IP_CSUM;
	check_send("post_send, a flag that is not offered", &p, &r.wr, EINVAL);

	max_inline = p.end.max_inline;
	request_init(&r, c, &p, IBV_WR_SEND, max_inline + 1);
	r.wr.send_flags |= IBV_SEND_INLINE;
	check_send("post_send, too much inline data", &p, &r.wr, EINVAL);

	request_init(&r, c, &p, IBV_WR_RDMA_READ, 8);
	r.wr.send_flags |= IBV_SEND_INLINE;
	check_send("post_send, an inline READ", &p, &r.wr, EINVAL);

	/* None of it has harmed the queue. */
	post_send(&p, 7, true);
	if (expect_wc("the queue is as before", &p, 7, IBV_WC_SUCCESS))
		ok("the queue is as before");
	pair_close(&p);
}

static void bad_receives(struct caller *c)
{
	static const char name[] = "post_recv, too many SGEs";
	struct ibv_sge sges[64] = {};
	struct ibv_recv_wr *bad_wr = NULL, wr = {
		.sg_list = sges,
		.num_sge = 64,
	};
	struct pair p;
	int ret;

	pair_open(&p, c, &(struct terms) {}, NULL);
	ret = ibv_post_recv(p.end.qp, &wr, &bad_wr);
	if (ret == EINVAL && bad_wr != &wr)
		bad(name, "bad_wr is not the request");
	else
		check(name, ret, EINVAL);
	pair_close(&p);
}

/* Of a list, what stands before the bad request is done, and no more. */
static void bad_in_the_middle(struct caller *c)
{
	static const char name[] = "post_send, the second of three is bad";
	struct ibv_send_wr *bad_wr = NULL;
	struct request r[3];
	struct ibv_wc wc;
	struct pair p;
	int i, ret;

	pair_open(&p, c, &(struct terms) { .receives = 3 }, NULL);
	for (i = 0; i < 3; i++) {
		request_init(&r[i], c, &p, IBV_WR_SEND, 16);
		r[i].wr.wr_id = i;
		r[i].wr.next = i < 2 ? &r[i + 1].wr : NULL;
	}
	r[1].wr.opcode = 200;
	ret = ibv_post_send(p.end.qp, &r[0].wr, &bad_wr);
	if (bad_wr != &r[1].wr)
		bad(name, "bad_wr is not the second");
	else if (expect_wc(name, &p, 0, IBV_WC_SUCCESS) &&
		 expect(name, "further completions",
			ibv_poll_cq(p.end.send_cq, 1, &wc), 0))
		check(name, ret, EINVAL);
	pair_close(&p);
}

/* With no receive at the peer the queue only fills. */
static void full_queues(struct caller *c)
{
	static const char sends[] = "post_send, the queue is full";
	static const char receives[] = "post_recv, the queue is full";
	struct ibv_recv_wr *bad_recv, recv = {};
	struct ibv_send_wr *bad_send;
	struct request r;
	struct pair p;
	int n, ret;

	pair_open(&p, c, &(struct terms) {}, NULL);
	request_init(&r, c, &p, IBV_WR_SEND, 16);
	for (n = 0, ret = 0; !ret && n < 100000; n++)
		ret = ibv_post_send(p.end.qp, &r.wr, &bad_send);
	if (n <= PAIR_DEPTH)
		bad(sends, "after %d requests of %d", n - 1, PAIR_DEPTH);
	else
		check(sends, ret, ENOMEM);

	for (n = 0, ret = 0; !ret && n < 100000; n++)
		ret = ibv_post_recv(p.end.qp, &recv, &bad_recv);
	if (n <= PAIR_DEPTH)
		bad(receives, "after %d requests of %d", n - 1, PAIR_DEPTH);
	else
		check(receives, ret, ENOMEM);
	pair_close(&p);
}

static void wrong_states(struct caller *c)
{
	struct ibv_recv_wr *bad_recv, recv = {};
	struct request r;
	struct pair p;

	pair_open_only(&p, c, &(struct terms) {}, NULL);
	request_init(&r, c, &p, IBV_WR_SEND, 16);
	check_send("post_send in RESET", &p, &r.wr, EINVAL);
	check("post_recv in RESET",
	      ibv_post_recv(p.end.qp, &recv, &bad_recv), EINVAL);
	check("modify_qp from RESET to RTS",
	      end_set_state(&p.end, IBV_QPS_RTS), EINVAL);
	check("modify_qp to INIT without its attributes",
	      end_set_state(&p.end, IBV_QPS_INIT), EINVAL);
	pair_close(&p);
}

/* ---- objects ---- */

static struct ibv_qp *create_qp(struct end *end, enum ibv_qp_type type,
				const struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.qp_type = type,
		.cap = *cap,
	};

	return ibv_create_qp(end->rig->pd, &init);
}

static void bad_objects(struct caller *c)
{
	static const struct ibv_qp_cap small = { 4, 4, 1, 1, 0 };
	struct ibv_cq_init_attr_ex cq_ex = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_CVLAN,
	};
	struct ibv_device_attr attr;
	struct ibv_qp_cap cap;
	struct pair p;
	int ret;

	ret = ibv_query_device(c->rig.ctx, &attr);
	if (ret)
		die("ibv_query_device: %s", strerror(ret));
	pair_open_only(&p, c, &(struct terms) {}, NULL);

	cap = small;
	cap.max_send_wr = attr.max_qp_wr + 1;
	CHECK_NULL("create_qp, too long a send queue",
		   create_qp(&p.end, IBV_QPT_RC, &cap), EINVAL);
	cap = small;
	cap.max_recv_wr = attr.max_qp_wr + 1;
	CHECK_NULL("create_qp, too long a receive queue",
		   create_qp(&p.end, IBV_QPT_RC, &cap), EINVAL);
	cap = small;
	cap.max_send_sge = attr.max_sge + 1;
	CHECK_NULL("create_qp, too many SGEs",
		   create_qp(&p.end, IBV_QPT_RC, &cap), EINVAL);
	cap = small;
	cap.max_inline_data = 1 << 20;
	CHECK_NULL("create_qp, too much inline data",
		   create_qp(&p.end, IBV_QPT_RC, &cap), EINVAL);
	CHECK_NULL("create_qp, a type that is not offered",
		   create_qp(&p.end, IBV_QPT_RAW_PACKET, &small), EOPNOTSUPP);

	CHECK_NULL("create_cq, no entry",
		   ibv_create_cq(c->rig.ctx, 0, NULL, NULL, 0), EINVAL);
	CHECK_NULL("create_cq, too many entries",
		   ibv_create_cq(c->rig.ctx, attr.max_cqe + 1, NULL, NULL, 0),
		   EINVAL);
	CHECK_NULL("create_cq_ex, what is not offered",
		   ibv_create_cq_ex(c->rig.ctx, &cq_ex), EOPNOTSUPP);
	check("resize_cq, no entry", ibv_resize_cq(p.end.send_cq, 0), EINVAL);
	check("resize_cq, too many entries",
	      ibv_resize_cq(p.end.send_cq, attr.max_cqe + 1), EINVAL);

	check("destroy_cq, in use", ibv_destroy_cq(p.end.send_cq), EBUSY);
	check("dealloc_pd, in use", ibv_dealloc_pd(c->rig.pd), EBUSY);
	pair_close(&p);
}

static void bad_memory(struct caller *c)
{
	struct ibv_pd *pd = c->rig.pd;
	uint8_t *hole;

	CHECK_NULL("reg_mr, REMOTE_WRITE without LOCAL_WRITE",
		   ibv_reg_mr(pd, c->buf, 64, IBV_ACCESS_REMOTE_WRITE),
		   EINVAL);

	hole = mmap(NULL, 2 * PAIR_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (hole == MAP_FAILED)
		die("no memory");
	munmap(hole + PAIR_BYTES, PAIR_BYTES);
	CHECK_NULL("reg_mr, memory that is not there",
		   ibv_reg_mr(pd, hole, 2 * PAIR_BYTES, 0), EFAULT);
	mprotect(hole, PAIR_BYTES, PROT_READ);
	CHECK_NULL("reg_mr, LOCAL_WRITE of memory that is read-only",
		   ibv_reg_mr(pd, hole, PAIR_BYTES, IBV_ACCESS_LOCAL_WRITE),
		   EFAULT);
	munmap(hole, PAIR_BYTES);
}

/* ---- completion queues ---- */

/* Wait for an event of this type; others are of no interest. */
static bool wait_async(struct caller *c, enum ibv_event_type type)
{
	struct pollfd fd = { .fd = c->rig.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (poll(&fd, 1, RIG_LIMIT * 1000) > 0) {
		if (ibv_get_async_event(c->rig.ctx, &event))
			die("ibv_get_async_event: %s", strerror(errno));
		ibv_ack_async_event(&event);
		if (event.event_type == type)
			return true;
	}
	return false;
}

/* Post, and wait while the queue is full. */
static void post_patiently(struct request *r, struct pair *p)
{
	double deadline = now() + RIG_LIMIT;
	struct ibv_send_wr *bad_wr;
	int ret;

	do
		ret = ibv_post_send(p->end.qp, &r->wr, &bad_wr);
	while (ret == ENOMEM && now() < deadline);
	if (ret)
		die("ibv_post_send: %s", strerror(ret));
}

/* A CQ that is too short loses a completion, says so, and ends. */
static void overflow(struct caller *c)
{
	static const char name[] = "a CQ overflows";
	struct request r;
	struct ibv_wc wc;
	struct pair p;
	int n, ret;

	pair_open(&p, c, &(struct terms) {}, NULL);
	request_init(&r, c, &p, IBV_WR_RDMA_WRITE, 16);
	/* Never poll. */
	for (n = 0; n <= p.end.send_cq->cqe; n++)
		post_patiently(&r, &p);
	if (!wait_async(c, IBV_EVENT_CQ_ERR)) {
		bad(name, "there is no IBV_EVENT_CQ_ERR");
	} else {
		for (n = 0; (ret = ibv_poll_cq(p.end.send_cq, 1, &wc)) > 0; n++)
			;
		if (expect(name, "completions kept", n, p.end.send_cq->cqe) &&
		    expect(name, "failure of poll_cq", ret < 0, true))
			ok(name);
	}
	pair_close(&p);
}

void test_calls(struct caller *c)
{
	bad_requests(c);
	bad_receives(c);
	bad_in_the_middle(c);
	full_queues(c);
	wrong_states(c);
	bad_objects(c);
	bad_memory(c);
	overflow(c);
}
