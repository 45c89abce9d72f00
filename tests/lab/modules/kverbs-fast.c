// SPDX-License-Identifier: GPL-2.0-only
/* vmri_kverbs: fast registration, invalidation, and atomics there. */
#include <linux/vmalloc.h>

#include "kverbs.h"

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

struct crowd {
	struct ib_mr *mr[DEPTH];
	struct ib_reg_wr wr[DEPTH];
};

static int gather(struct table *t, struct crowd *c, u32 pages)
{
	int i, n;

	for (i = 0; i < DEPTH; i++) {
		struct ib_mr *mr = ib_alloc_mr(t->pd, IB_MR_TYPE_MEM_REG, pages);

		if (IS_ERR(mr))
			return PTR_ERR(mr);
		c->mr[i] = mr;
		n = ib_map_mr_sg(mr, &t->b.sg[i], pages, NULL, PAGE_SIZE);
		if (n != pages)
			return n < 0 ? n : -EIO;
		ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
		c->wr[i] = (struct ib_reg_wr) {
			.wr = {
				.wr_id = i,
				.opcode = IB_WR_REG_MR,
				.send_flags = IB_SEND_SIGNALED,
				.next = i + 1 < DEPTH ? &c->wr[i + 1].wr : NULL,
			},
			.mr = mr,
			.key = mr->rkey,
			.access = RIGHTS,
		};
	}
	return 0;
}

/* All that the send queue holds, each of the largest size, posted at once. */
static void test_crowd(struct table *t)
{
	u32 pages = t->dev->attrs.max_fast_reg_page_list_len;
	struct crowd *c = vzalloc(sizeof(*c));
	struct ib_mr *last;
	struct ib_wc wc;
	int i;

	expect("memory for a queue full of registrations", c ? 0 : -ENOMEM, 0);
	if (!c)
		return;
	expect("fast MRs of the largest size", gather(t, c, pages), 0);
	last = c->mr[DEPTH - 1];
	if (last) {
		expect("a queue full of their registrations",
		       ib_post_send(t->b.qp, &c->wr[0].wr, NULL), 0);
		for (i = 0; i < DEPTH && next_wc(&t->b, &wc) && !wc.status &&
		     wc.wr_id == i; i++)
			;
		expect("all complete", i, DEPTH);
		memset(bytes_of(&t->a, 0), 0x39, PAGE_SIZE);
		expect("the last one's last page is reached",
		       rdma(t, IB_WR_RDMA_WRITE,
			    last->iova + (pages - 1) * PAGE_SIZE, last->rkey,
			    PAGE_SIZE), 0);
		expect("and it is that",
		       memcmp(bytes_of(&t->a, 0),
			      bytes_of(&t->b, DEPTH + pages - 2), PAGE_SIZE), 0);
	}
	for (i = 0; i < DEPTH && c->mr[i]; i++)
		ib_dereg_mr(c->mr[i]);
	vfree(c);
}

void test_fast(struct table *t)
{
	test_registration(t);
	test_invalidation(t);
	test_atomics(t);
	test_limits(t);
	test_crowd(t);
}
