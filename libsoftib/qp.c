// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: queue pairs: creation, states, destruction.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "softib.h"
#include "softib-abi.h"

static void wq_init(struct softib_wq *wq, struct vmri_wq_hdr *hdr, void *slots,
		    uint32_t max_wr, uint32_t max_sge, uint8_t log2_entries,
		    uint8_t log2_stride)
{
	wq->hdr = hdr;
	wq->slots = slots;
	wq->entries = max_wr ? 1U << log2_entries : 0;
	wq->max_sge = max_sge;
	wq->log2_stride = log2_stride;
	wq->prod = ring_load(&hdr->prod);
}

/* A queue pair without queues; @locked: any thread may use it at any time. */
static struct softib_qp *qp_alloc(bool locked)
{
	struct softib_qp *qp;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	softib_lock_init(&qp->sq.lock, locked);
	softib_lock_init(&qp->rq.lock, locked);
	return qp;
}

static void qp_free(struct softib_qp *qp)
{
	softib_lock_destroy(&qp->sq.lock);
	softib_lock_destroy(&qp->rq.lock);
	free(qp);
}

/* Map the region that the driver allocated, and find the queues in it. */
static int qp_map(struct softib_qp *qp, const struct ibv_qp_cap *cap,
		  const struct softib_create_qp_resp *resp)
{
	void *map;

	/* An XRC target has none. */
	if (!resp->mmap_size)
		return 0;

	qp->map_size = resp->mmap_size;
	map = softib_map(qp->vqp.qp.context, resp->mmap_offset, qp->map_size);
	if (map == MAP_FAILED)
		return errno;

	qp->hdr = map;
	qp->max_inline = cap->max_inline_data;
	wq_init(&qp->sq, &qp->hdr->sq, map + resp->sq_offset, cap->max_send_wr,
		cap->max_send_sge, resp->sq_log2_entries,
		resp->sq_log2_stride);
	wq_init(&qp->rq, &qp->hdr->rq, map + resp->rq_offset, cap->max_recv_wr,
		cap->max_recv_sge, resp->rq_log2_entries,
		resp->rq_log2_stride);
	return 0;
}

#define QP_INIT_ATTRS \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | \
	 IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

/* What the driver refuses, too, but with other errors on its way. */
static int check_init_attr(const struct ibv_qp_init_attr_ex *attr)
{
	uint32_t flags = attr->qp_type == IBV_QPT_UD ?
			 IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;

	switch (attr->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		break;
	default:
		return EOPNOTSUPP;
	}
	if (attr->comp_mask & ~QP_INIT_ATTRS)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	    (attr->create_flags & ~flags))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    !softib_has_send_ops(attr->qp_type, attr->send_ops_flags))
		return EOPNOTSUPP;
	return 0;
}

/* Either may have sizes that mean nothing in the attributes of its creation. */
static void drop_caps(struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		memset(&attr->cap, 0, sizeof(attr->cap));
	if (attr->qp_type == IBV_QPT_XRC_SEND || attr->srq) {
		attr->cap.max_recv_wr = 0;
		attr->cap.max_recv_sge = 0;
	}
}

struct ibv_qp *softib_create_qp_ex(struct ibv_context *ibctx,
				   struct ibv_qp_init_attr_ex *attr)
{
	struct softib_context *ctx = to_sctx(ibctx);
	struct usoftib_create_qp_resp resp = {};
	struct ibv_create_qp_ex cmd = {};
	struct softib_qp *qp;
	int ret;

	ret = check_init_attr(attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	drop_caps(attr);

	qp = qp_alloc(!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) ||
		      !to_spd(attr->pd)->td);
	if (!qp)
		return NULL;

	pthread_mutex_lock(&ctx->qp_mutex);
	ret = ibv_cmd_create_qp_ex2(ibctx, &qp->vqp, attr, &cmd, sizeof(cmd),
				    &resp.ibv_resp, sizeof(resp));
	pthread_mutex_unlock(&ctx->qp_mutex);
	if (ret)
		goto err_free;

	ret = qp_map(qp, &attr->cap, &resp.drv_payload);
	if (ret)
		goto err_destroy;

	qp->ops = softib_send_ops(attr->qp_type);
	qp->sig_all = attr->sq_sig_all ? VMRI_SEND_SIGNALED : 0;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		softib_set_send_ops(qp, attr->send_ops_flags);
	softib_cqs_attach_qp(qp);
	return &qp->vqp.qp;

err_destroy:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
err_free:
	qp_free(qp);
	errno = ret;
	return NULL;
}

struct ibv_qp *softib_create_qp(struct ibv_pd *ibpd,
				struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = ibpd,
	};
	struct ibv_qp *ibqp;

	ibqp = softib_create_qp_ex(ibpd->context, &attr_ex);
	if (ibqp)
		attr->cap = attr_ex.cap;
	return ibqp;
}

/* Another process' XRC target: it has no queues to be mapped. */
struct ibv_qp *softib_open_qp(struct ibv_context *ibctx,
			      struct ibv_qp_open_attr *attr)
{
	struct ib_uverbs_create_qp_resp resp;
	struct ibv_open_qp cmd;
	struct softib_qp *qp;
	int ret;

	qp = qp_alloc(true);
	if (!qp)
		return NULL;

	ret = ibv_cmd_open_qp(ibctx, &qp->vqp, sizeof(qp->vqp), attr, &cmd,
			      sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		qp_free(qp);
		errno = ret;
		return NULL;
	}
	softib_cqs_attach_qp(qp);
	return &qp->vqp.qp;
}

int softib_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		    int attr_mask, struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd,
				sizeof(cmd));
}

/* Forget what is posted: the hypervisor will not look at it. */
static void wq_reset(struct softib_wq *wq)
{
	if (!wq->entries)
		return;
	softib_lock(&wq->lock);
	wq->prod = ring_load(&wq->hdr->cons);
	ring_store(&wq->hdr->prod, wq->prod);
	softib_unlock(&wq->lock);
}

int softib_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		     int attr_mask)
{
	struct softib_qp *qp = to_sqp(ibqp);
	struct ibv_modify_qp cmd = {};
	int ret;

	ret = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd, sizeof(cmd));
	if (ret)
		return ret;

	if ((attr_mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET) {
		softib_cqs_clean_qp(qp);
		wq_reset(&qp->sq);
		wq_reset(&qp->rq);
	}
	return 0;
}

int softib_destroy_qp(struct ibv_qp *ibqp)
{
	struct softib_context *ctx = to_sctx(ibqp->context);
	struct softib_qp *qp = to_sqp(ibqp);
	int ret;

	pthread_mutex_lock(&ctx->qp_mutex);
	ret = ibv_cmd_destroy_qp(ibqp);
	if (!ret)
		softib_cqs_detach_qp(qp);
	pthread_mutex_unlock(&ctx->qp_mutex);
	if (ret)
		return ret;

	if (qp->hdr)
		munmap(qp->hdr, qp->map_size);
	qp_free(qp);
	return 0;
}
