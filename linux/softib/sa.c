// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the subnet administrator that each port has for itself, as an agent of
 * ib_mad, which does RMPP for it.
 *
 * It answers to its own port alone: whatever it tells, and whoever it joins to a
 * group, is what VMRI lets this domain see and do.
 */
#include <linux/slab.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>

#include "sa.h"
#include "softib.h"

#define SOFTIB_SA_RETRIES	3	/* of a segment of a table */

/* The header of every response to a request. */
static void softib_sa_fill_header(const struct ib_sa_mad *in,
				  const struct softib_sa_query *q,
				  struct ib_sa_mad *out)
{
	out->mad_hdr = in->mad_hdr;
	out->mad_hdr.method |= IB_MGMT_METHOD_RESP;
	if (in->mad_hdr.method == IB_MGMT_METHOD_SET)
		out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	out->mad_hdr.status = cpu_to_be16(q->status);
	out->sa_hdr.sm_key = in->sa_hdr.sm_key;
	out->sa_hdr.attr_offset = cpu_to_be16(q->size / 8);
	out->sa_hdr.comp_mask = in->sa_hdr.comp_mask;
}

/* Records into the segments that ib_mad sends one after the other. */
static void softib_sa_fill_segments(const struct softib_sa_query *q,
				    struct ib_mad_send_buf *msg)
{
	int left = q->count * q->size, seg;
	const u8 *from = q->records;

	for (seg = 1; left > 0; seg++, left -= msg->seg_size) {
		memcpy(ib_get_rmpp_segment(msg, seg), from,
		       min(left, msg->seg_size));
		from += msg->seg_size;
	}
}

static struct ib_mad_send_buf *
softib_sa_response(struct ib_mad_agent *agent, const struct ib_wc *wc,
		   const struct ib_sa_mad *in, const struct softib_sa_query *q)
{
	bool table = !q->status && q->method == IB_SA_METHOD_GET_TABLE;
	int len = table ? q->count * q->size : IB_MGMT_SA_DATA;
	struct ib_mad_send_buf *msg;

	msg = ib_create_send_mad(agent, wc->src_qp, wc->pkey_index, table,
				 IB_MGMT_SA_HDR, len, GFP_KERNEL,
				 IB_MGMT_BASE_VERSION);
	if (IS_ERR(msg))
		return msg;

	softib_sa_fill_header(in, q, msg->mad);
	if (table)
		softib_sa_fill_segments(q, msg);
	else if (q->count)
		memcpy(((struct ib_sa_mad *)msg->mad)->data, q->records,
		       q->size);
	msg->retries = SOFTIB_SA_RETRIES;
	return msg;
}

static void softib_sa_reply(struct ib_mad_agent *agent,
			    const struct ib_mad_recv_wc *recv,
			    const struct softib_sa_query *q)
{
	const struct ib_sa_mad *in = (const void *)recv->recv_buf.mad;
	struct ib_mad_send_buf *msg;
	struct ib_ah *ah;

	ah = ib_create_ah_from_wc(agent->qp->pd, recv->wc, recv->recv_buf.grh,
				  agent->port_num);
	if (IS_ERR(ah))
		return;

	msg = softib_sa_response(agent, recv->wc, in, q);
	if (IS_ERR(msg))
		goto err_ah;
	msg->ah = ah;
	if (!ib_post_send_mad(msg, NULL))
		return;

	ib_free_send_mad(msg);
err_ah:
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

/*
 * A query that does not end here gets no answer; its sender asks again, or ends
 * with a time-out.
 */
static void softib_sa_receive(struct ib_mad_agent *agent,
			      struct ib_mad_send_buf *send_buf,
			      struct ib_mad_recv_wc *recv)
{
	const struct ib_sa_mad *in = (const void *)recv->recv_buf.mad;
	u16 attr_id = be16_to_cpu(in->mad_hdr.attr_id);
	struct softib_dev *dev = agent->context;
	struct softib_sa_query q = {
		.dev = dev,
		.informs = &dev->reports.informs,
		.src_qpn = recv->wc->src_qp,
		.pkey_index = recv->wc->pkey_index,
		.method = in->mad_hdr.method,
		.trusted = in->sa_hdr.sm_key,
		.mask = be64_to_cpu((__force __be64)in->sa_hdr.comp_mask),
		.data = in->data,
	};
	struct vmri_dev_attr attr;

	/* What is no query answers a report. */
	if (!send_buf && !softib_call(dev, VMRI_OP_dev_query, &attr) &&
	    recv->wc->slid == attr.lid) {
		softib_sa_answer(&q, attr_id);
		if (attr_id == IB_SA_ATTR_INFORM_INFO && !q.status &&
		    softib_report_watch(dev)) {
			softib_sa_release(&q);
			q.status = SOFTIB_SA_NO_RESOURCES;
		}
		softib_sa_reply(agent, recv, &q);
		softib_sa_release(&q);
	}
	ib_free_recv_mad(recv);
}

static void softib_sa_sent(struct ib_mad_agent *agent,
			   struct ib_mad_send_wc *sent)
{
	softib_report_sent(agent->context, sent);
	rdma_destroy_ah(sent->send_buf->ah, 0);
	ib_free_send_mad(sent->send_buf);
}

static int softib_sa_add(struct ib_device *ibdev)
{
	struct ib_mad_reg_req req = {
		.mgmt_class = IB_MGMT_CLASS_SUBN_ADM,
		.mgmt_class_version = IB_SA_CLASS_VERSION,
	};
	struct ib_mad_agent *agent;

	/* For a manager's device the manager is one; RoCE has no subnets. */
	if (!softib_owns(ibdev) || to_softib_dev(ibdev)->sm ||
	    !rdma_cap_ib_sa(ibdev, SOFTIB_PORT))
		return -EOPNOTSUPP;

	set_bit(IB_MGMT_METHOD_GET, req.method_mask);
	set_bit(IB_MGMT_METHOD_SET, req.method_mask);
	set_bit(IB_SA_METHOD_GET_TABLE, req.method_mask);
	set_bit(IB_SA_METHOD_DELETE, req.method_mask);
	/* There is nothing that it gets, and who asks is to be told so. */
	set_bit(IB_SA_METHOD_GET_MULTI, req.method_mask);
	agent = ib_register_mad_agent(ibdev, SOFTIB_PORT, IB_QPT_GSI, &req,
				      IB_MGMT_RMPP_VERSION, softib_sa_sent,
				      softib_sa_receive, to_softib_dev(ibdev),
				      0);
	if (IS_ERR(agent))
		return PTR_ERR(agent);
	ib_set_client_data(ibdev, &softib_sa_client, agent);
	softib_report_by(to_softib_dev(ibdev), agent);
	return 0;
}

static void softib_sa_remove(struct ib_device *ibdev, void *data)
{
	softib_report_by(to_softib_dev(ibdev), NULL);
	ib_unregister_mad_agent(data);
}

/* Comes to a device before those who will ask, and goes after them. */
struct ib_client softib_sa_client = {
	.name = "softib_sa",
	.add = softib_sa_add,
	.remove = softib_sa_remove,
};
