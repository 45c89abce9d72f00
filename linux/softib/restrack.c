// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: what `rdma resource show -dd` says of an object besides what the core
 * knows.
 *
 * Nothing here looks at the memory that an object shares with VMRI: processes can
 * write there.
 */
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>
#include <uapi/rdma/rdma_netlink.h>

#include "softib.h"

/* One number. */
struct softib_detail {
	const char *name;
	u32 value;
	bool hex;
};

static int softib_put_details(struct sk_buff *msg,
			      const struct softib_detail *details, int num)
{
	struct nlattr *table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	int i, ret = 0;

	if (!table)
		return -EMSGSIZE;

	for (i = 0; i < num && !ret; i++) {
		const struct softib_detail *d = &details[i];

		ret = d->hex ? rdma_nl_put_driver_u32_hex(msg, d->name,
							  d->value) :
			       rdma_nl_put_driver_u32(msg, d->name, d->value);
	}
	if (ret) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

int softib_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	const struct softib_cq *cq = to_softib_cq(ibcq);
	const struct softib_detail details[] = {
		{ "handle", cq->handle, true },
		{ "eq", cq->eq, true },
	};

	return softib_put_details(msg, details, ARRAY_SIZE(details));
}

int softib_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct ib_qp_cap *cap = &to_softib_qp(ibqp)->cap;
	const struct softib_detail details[] = {
		{ "send_wr", cap->max_send_wr },
		{ "send_sge", cap->max_send_sge },
		{ "recv_wr", cap->max_recv_wr },
		{ "recv_sge", cap->max_recv_sge },
		{ "inline", cap->max_inline_data },
	};

	return softib_put_details(msg, details, ARRAY_SIZE(details));
}

int softib_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	const struct softib_srq *srq = to_softib_srq(ibsrq);
	const struct softib_detail details[] = {
		{ "handle", srq->handle, true },
		{ "recv_sge", srq->max_sge },
	};

	return softib_put_details(msg, details, ARRAY_SIZE(details));
}

int softib_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct softib_mr *mr = to_softib_mr(ibmr);
	const struct softib_detail details[] = {
		{ "access", mr->access, true },
		{ "frames", mr->nr_gfns },
		{ "max_frames", mr->max_gfns },
	};

	return softib_put_details(msg, details, ARRAY_SIZE(details));
}
