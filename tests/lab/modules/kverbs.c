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

#include "kverbs.h"

static char *device = "softib0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "InfiniBand device to use");

static unsigned int asked;
module_param(asked, uint, 0444);
MODULE_PARM_DESC(asked, "(result) how many checks there were");

void expect(const char *name, long got, long want)
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

int connect_end(struct table *t, struct end *from, struct end *to)
{
	u32 dest = to->qp->qp_num;

	return to_state(t, from->qp, IB_QPS_RESET, 0) ?:
	       to_state(t, from->qp, IB_QPS_INIT, 0) ?:
	       to_state(t, from->qp, IB_QPS_RTR, dest) ?:
	       to_state(t, from->qp, IB_QPS_RTS, dest);
}

int connect_ends(struct table *t)
{
	return connect_end(t, &t->b, &t->a) ?: connect_end(t, &t->a, &t->b);
}

bool next_wc(struct end *end, struct ib_wc *wc)
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

int request(struct end *end, struct ib_send_wr *wr)
{
	struct ib_wc wc;
	int ret;

	wr->send_flags |= IB_SEND_SIGNALED;
	ret = ib_post_send(end->qp, wr, NULL);
	if (ret)
		return ret;
	return next_wc(end, &wc) ? wc.status : -ETIMEDOUT;
}

int rdma(struct table *t, enum ib_wr_opcode opcode, u64 addr, u32 rkey,
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

/* ---- set up ---- */

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
	test_fast(t);
	test_queues(t);
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
