/* SPDX-License-Identifier: GPL-2.0-only */
/* vmri_kverbs: what its files share. kverbs.c says what it is. */
#ifndef KVERBS_H
#define KVERBS_H

#include <rdma/ib_verbs.h>

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

/* Notes a check: a line of the log. */
void expect(const char *name, long got, long want);

/* Both return 0 or a negative errno; for the first time, or after a failure. */
int connect_end(struct table *t, struct end *from, struct end *to);
int connect_ends(struct table *t);

/* The next completion, waited for. */
bool next_wc(struct end *end, struct ib_wc *wc);
/* Post a request and wait; its status, or a negative errno. */
int request(struct end *end, struct ib_send_wr *wr);
/* From or to a's first page, at an address of b's. */
int rdma(struct table *t, enum ib_wr_opcode opcode, u64 addr, u32 rkey,
	 u32 length);

static inline u8 *bytes_of(struct end *end, int page)
{
	return page_address(end->page[page]);
}

void test_fast(struct table *t);	/* kverbs-fast.c */
void test_queues(struct table *t);	/* kverbs-queues.c */

#endif
