// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmri_kverbs: the verbs of the kernel, two queue pairs of one device talking to
 * each other: fast registration, invalidation, atomics, a CQ's resize, a shared
 * receive queue.
 *
 * Every check is one line of the kernel's log, "ok NAME" or "FAIL NAME: ...".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>

static char *device = "softib0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "InfiniBand device to use");

static unsigned int asked;
module_param(asked, uint, 0444);
MODULE_PARM_DESC(asked, "(result) how many checks there were");

#define PAGES		600	/* of either side's memory, one by one */
#define WINDOW		5	/* pages of a small fast MR */
#define DEPTH		64
#define WAIT_MS		30000
#define RIGHTS		(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

struct end {
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct page *page[PAGES];
	struct scatterlist sg[PAGES];
};

struct table {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_port_attr port;
	struct end a, b;	/* requests start at a */
	struct ib_mr *mr;	/* b's, small */
};

static void expect(const char *name, long got, long want)
{
	asked++;
	if (got == want)
		pr_info("ok %s\n", name);
	else
		pr_info("FAIL %s: got %ld want %ld\n", name, got, want);
}

/* ---- queue pairs ---- */

static int to_state(struct table *t, struct ib_qp *qp, enum ib_qp_state state,
		    u32 dest)
{
	struct ib_qp_attr attr = {
		.qp_state = state,
		.port_num = 1,
		.qp_access_flags = RIGHTS,
		.path_mtu = IB_MTU_4096,
		.dest_qp_num = dest,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	int mask = IB_QP_STATE;

	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(&attr.ah_attr, t->port.lid);
	rdma_ah_set_port_num(&attr.ah_attr, 1);

	if (state == IB_QPS_INIT)
		mask |= IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS;
	if (state == IB_QPS_RTR)
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			IB_QP_MIN_RNR_TIMER;
	if (state == IB_QPS_RTS)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC;
	return ib_modify_qp(qp, &attr, mask);
}

static int connect_end(struct table *t, struct end *from, struct end *to)
{
	u32 dest = to->qp->qp_num;

	return to_state(t, from->qp, IB_QPS_RESET, 0) ?:
	       to_state(t, from->qp, IB_QPS_INIT, 0) ?:
	       to_state(t, from->qp, IB_QPS_RTR, dest) ?:
	       to_state(t, from->qp, IB_QPS_RTS, dest);
}

/* For the first time, or after a failure. */
static int connect_ends(struct table *t)
{
	return connect_end(t, &t->b, &t->a) ?: connect_end(t, &t->a, &t->b);
}

static bool next_wc(struct end *end, struct ib_wc *wc)
{
	int ms;

	memset(wc, 0, sizeof(*wc));
	for (ms = 0; ms < WAIT_MS; ms++) {
		if (ib_poll_cq(end->cq, 1, wc) == 1)
			return true;
		usleep_range(500, 1000);
	}
	return false;
}

/* Post a request and wait; its status, or a negative errno. */
static int request(struct end *end, struct ib_send_wr *wr)
{
	struct ib_wc wc;
	int ret;

	wr->send_flags |= IB_SEND_SIGNALED;
	ret = ib_post_send(end->qp, wr, NULL);
	if (ret)
		return ret;
	return next_wc(end, &wc) ? wc.status : -ETIMEDOUT;
}

/* From or to a's first page, at an address of b's. */
static int rdma(struct table *t, enum ib_wr_opcode opcode, u64 addr, u32 rkey,
		u32 length)
{
	struct ib_sge sge = {
		.addr = sg_dma_address(&t->a.sg[0]),
		.length = length,
		.lkey = t->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = addr,
		.rkey = rkey,
	};

	return request(&t->a, &wr.wr);
}

static int atomic(struct table *t, enum ib_wr_opcode opcode, u64 addr,
		  u32 rkey, u64 compare_add, u64 swap)
{
	struct ib_sge sge = {
		.addr = sg_dma_address(&t->a.sg[0]),
		.length = sizeof(u64),
		.lkey = t->pd->local_dma_lkey,
	};
	struct ib_atomic_wr wr = {
		.wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = addr,
		.compare_add = compare_add,
		.swap = swap,
		.rkey = rkey,
	};

	return request(&t->a, &wr.wr);
}

static u8 *bytes_of(struct end *end, int page)
{
	return page_address(end->page[page]);
}

/* ---- fast registration ---- */

/* Map pages of b and have b register them, by another name than before. */
static int fast_register(struct table *t, struct ib_mr *mr, int first,
			 int pages)
{
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR },
		.mr = mr,
		.access = RIGHTS,
	};
	int n = ib_map_mr_sg(mr, &t->b.sg[first], pages, NULL, PAGE_SIZE);

	if (n != pages)
		return n < 0 ? n : -EIO;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	wr.key = mr->rkey;
	return request(&t->b, &wr.wr);
}

static int invalidate(struct end *end, enum ib_wr_opcode opcode, u32 key)
{
	struct ib_send_wr wr = {
		.opcode = opcode,
		.ex.invalidate_rkey = key,
	};

	return request(end, &wr);
}

static void test_registration(struct table *t)
{
	struct ib_mr *mr = t->mr;
	u8 *from = bytes_of(&t->a, 0);

	expect("a fast MR gets memory", fast_register(t, mr, 3, WINDOW), 0);
	expect("its address tells nothing of the kernel",
	       mr->iova < PAGE_SIZE, 1);
	expect("it is as long as its pages", mr->length, WINDOW * PAGE_SIZE);

	memset(from, 0x6b, PAGE_SIZE);
	expect("a peer writes there",
	       rdma(t, IB_WR_RDMA_WRITE, mr->iova + PAGE_SIZE + 10, mr->rkey,
		    PAGE_SIZE), 0);
	expect("to the first page of two",
	       memcmp(bytes_of(&t->b, 4) + 10, from, PAGE_SIZE - 10), 0);
	expect("and the second", memcmp(bytes_of(&t->b, 5), from, 10), 0);
	bytes_of(&t->b, 7)[100] = 0x11;
	expect("and reads",
	       rdma(t, IB_WR_RDMA_READ, mr->iova + 4 * PAGE_SIZE + 100,
		    mr->rkey, 1), 0);
	expect("what is there", from[0], 0x11);
	expect("not beyond its end",
	       rdma(t, IB_WR_RDMA_WRITE, mr->iova + WINDOW * PAGE_SIZE - 1,
		    mr->rkey, 2), IB_WC_REM_ACCESS_ERR);
	expect("the queue pairs are connected again", connect_ends(t), 0);
}

static void test_invalidation(struct table *t)
{
	struct ib_mr *mr = t->mr;
	struct ib_recv_wr wr = {};
	struct ib_wc wc;
	u32 key = mr->rkey;

	expect("it is invalidated by its owner",
	       invalidate(&t->b, IB_WR_LOCAL_INV, key), 0);
	expect("and reached no more",
	       rdma(t, IB_WR_RDMA_READ, mr->iova, key, 8),
	       IB_WC_REM_ACCESS_ERR);
	expect("the queue pairs are connected once more", connect_ends(t), 0);

	expect("it gets other memory", fast_register(t, mr, 20, 2), 0);
	key = mr->rkey;
	expect("a peer reaches that",
	       rdma(t, IB_WR_RDMA_WRITE, mr->iova, key, 100), 0);
	expect("a receive is posted", ib_post_recv(t->b.qp, &wr, NULL), 0);
	expect("a message invalidates it",
	       invalidate(&t->a, IB_WR_SEND_WITH_INV, key), 0);
	expect("the receive completes", next_wc(&t->b, &wc), true);
	expect("it says so", wc.wc_flags, IB_WC_WITH_INVALIDATE);
	expect("and which it was", wc.ex.invalidate_rkey, key);
	expect("it is reached no more",
	       rdma(t, IB_WR_RDMA_READ, mr->iova, key, 8),
	       IB_WC_REM_ACCESS_ERR);
	expect("they are connected again", connect_ends(t), 0);
}

static void test_atomics(struct table *t)
{
	u64 *target = (u64 *)(bytes_of(&t->b, 40) + 64);
	u64 *result = (u64 *)bytes_of(&t->a, 0);
	u64 addr;

	expect("memory for atomics", fast_register(t, t->mr, 40, 1), 0);
	addr = t->mr->iova + 64;
	*target = 100;
	expect("compare and swap",
	       atomic(t, IB_WR_ATOMIC_CMP_AND_SWP, addr, t->mr->rkey, 100, 7),
	       0);
	expect("tells what was there", *result, 100);
	expect("and swaps", *target, 7);
	expect("fetch and add",
	       atomic(t, IB_WR_ATOMIC_FETCH_AND_ADD, addr, t->mr->rkey, 5, 0),
	       0);
	expect("tells it, too", *result, 7);
	expect("and adds", *target, 12);
	expect("the memory is taken away",
	       invalidate(&t->b, IB_WR_LOCAL_INV, t->mr->rkey), 0);
}

/* As much as the device says, and nothing beyond. */
static void test_limits(struct table *t)
{
	u32 max = t->dev->attrs.max_fast_reg_page_list_len;
	struct ib_mr *mr;
	struct ib_pd *pd;

	mr = ib_alloc_mr(t->pd, IB_MR_TYPE_MEM_REG, max + 1);
	expect("more pages than there may be", PTR_ERR_OR_ZERO(mr), -EINVAL);
	mr = ib_alloc_mr(t->pd, IB_MR_TYPE_SG_GAPS, 4);
	expect("gaps are not offered", PTR_ERR_OR_ZERO(mr), -EOPNOTSUPP);
	pd = ib_alloc_pd(t->dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	expect("nor is all of memory to peers", PTR_ERR_OR_ZERO(pd),
	       -EOPNOTSUPP);

	mr = ib_alloc_mr(t->pd, IB_MR_TYPE_MEM_REG, max);
	expect("as many as there may be", PTR_ERR_OR_ZERO(mr), 0);
	if (IS_ERR(mr))
		return;
	expect("no more are mapped",
	       ib_map_mr_sg(mr, t->b.sg, PAGES, NULL, PAGE_SIZE), max);
	expect("they are registered", fast_register(t, mr, 0, max), 0);
	memset(bytes_of(&t->a, 0), 0x2f, PAGE_SIZE);
	expect("the last is reached",
	       rdma(t, IB_WR_RDMA_WRITE, mr->iova + (max - 1) * PAGE_SIZE,
		    mr->rkey, PAGE_SIZE), 0);
	expect("and it is the last",
	       memcmp(bytes_of(&t->a, 0), bytes_of(&t->b, max - 1),
		      PAGE_SIZE), 0);
	expect("a live one is freed", ib_dereg_mr(mr), 0);
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

static void use_srq(struct table *t, struct ib_srq *srq, struct end *from,
		    struct end *to)
{
	struct ib_srq_attr attr = { .max_wr = 64, .srq_limit = SRQ_LIMIT };
	struct ib_qp_attr err = { .qp_state = IB_QPS_ERR };

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

/* ---- set up ---- */

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

static void close_end(struct table *t, struct end *end)
{
	int i;

	if (!IS_ERR_OR_NULL(end->qp))
		ib_destroy_qp(end->qp);
	if (!IS_ERR_OR_NULL(end->cq))
		ib_destroy_cq(end->cq);
	for (i = 0; i < PAGES && end->page[i]; i++)
		__free_page(end->page[i]);
}

static int open_end(struct table *t, struct end *end)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 2 * DEPTH };
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	int i;

	sg_init_table(end->sg, PAGES);
	for (i = 0; i < PAGES; i++) {
		end->page[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!end->page[i])
			return -ENOMEM;
		sg_set_page(&end->sg[i], end->page[i], PAGE_SIZE, 0);
	}
	if (ib_dma_map_sg(t->dev, end->sg, PAGES, DMA_BIDIRECTIONAL) != PAGES)
		return -EIO;

	end->cq = ib_create_cq(t->dev, NULL, NULL, NULL, &cq_attr);
	if (IS_ERR(end->cq))
		return PTR_ERR(end->cq);
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	end->qp = ib_create_qp(t->pd, &attr);
	return PTR_ERR_OR_ZERO(end->qp);
}

static void run_checks(struct table *t)
{
	test_registration(t);
	test_invalidation(t);
	test_atomics(t);
	test_limits(t);
	test_resize(t);
	test_srq(t);
	test_events(t);
}

static int run(struct table *t)
{
	int ret;

	t->pd = ib_alloc_pd(t->dev, 0);
	if (IS_ERR(t->pd))
		return PTR_ERR(t->pd);

	ret = ib_query_port(t->dev, 1, &t->port);
	if (!ret)
		ret = open_end(t, &t->a);
	if (!ret)
		ret = open_end(t, &t->b);
	if (!ret)
		ret = connect_ends(t);
	if (ret)
		goto out;

	t->mr = ib_alloc_mr(t->pd, IB_MR_TYPE_MEM_REG, WINDOW);
	if (IS_ERR(t->mr)) {
		ret = PTR_ERR(t->mr);
		goto out;
	}
	run_checks(t);
	ib_dereg_mr(t->mr);
out:
	close_end(t, &t->a);
	close_end(t, &t->b);
	ib_dealloc_pd(t->pd);
	return ret;
}

static int __init kverbs_init(void)
{
	struct table *t = vzalloc(sizeof(*t));
	int ret = -ENODEV;

	if (!t)
		return -ENOMEM;

	t->dev = ib_device_get_by_name(device, RDMA_DRIVER_UNKNOWN);
	if (t->dev) {
		pr_info("asking %s\n", device);
		ret = run(t);
		ib_device_put(t->dev);
	}
	vfree(t);
	if (ret)
		pr_info("%s cannot be asked: %d\n", device, ret);
	return ret;
}

static void __exit kverbs_exit(void)
{
}

module_init(kverbs_init);
module_exit(kverbs_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Asks an InfiniBand device for what the kernel's users need");
