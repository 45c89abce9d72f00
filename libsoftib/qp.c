// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: queue pairs: creation, states, destruction.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
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

/* Map the region that the driver allocated, and find the queues in it. */
static int qp_map(struct softib_qp *qp, const struct ibv_qp_cap *cap,
		  const struct softib_create_qp_resp *resp, bool locked)
{
	void *map;

	qp->map_size = resp->mmap_size;
	map = mmap(NULL, qp->map_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   qp->vqp.qp.context->cmd_fd, resp->mmap_offset);
	if (map == MAP_FAILED)
		return errno;

	qp->hdr = map;
	qp->max_inline = cap->max_inline_data;
	softib_lock_init(&qp->sq.lock, locked);
	softib_lock_init(&qp->rq.lock, locked);
	wq_init(&qp->sq, &qp->hdr->sq, map + resp->sq_offset, cap->max_send_wr,
		cap->max_send_sge, resp->sq_log2_entries,
		resp->sq_log2_stride);
	wq_init(&qp->rq, &qp->hdr->rq, map + resp->rq_offset, cap->max_recv_wr,
		cap->max_recv_sge, resp->rq_log2_entries,
		resp->rq_log2_stride);
	return 0;
}

struct ibv_qp *softib_create_qp(struct ibv_pd *ibpd,
				struct ibv_qp_init_attr *attr)
{
	struct softib_context *ctx = to_sctx(ibpd->context);
	struct usoftib_create_qp_resp resp = {};
	struct ibv_create_qp cmd;
	struct softib_qp *qp;
	int ret;

	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC &&
	    attr->qp_type != IBV_QPT_UD) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;

	pthread_mutex_lock(&ctx->qp_mutex);
	ret = ibv_cmd_create_qp(ibpd, &qp->vqp.qp, attr, &cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	pthread_mutex_unlock(&ctx->qp_mutex);
	if (ret)
		goto err_free;

	ret = qp_map(qp, &attr->cap, &resp.drv_payload, !to_spd(ibpd)->td);
	if (ret)
		goto err_destroy;

	qp->ops = softib_send_ops(attr->qp_type);
	qp->sig_all = attr->sq_sig_all ? VMRI_SEND_SIGNALED : 0;
	softib_cqs_attach_qp(qp);
	return &qp->vqp.qp;

err_destroy:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
err_free:
	free(qp);
	errno = ret;
	return NULL;
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

	munmap(qp->hdr, qp->map_size);
	softib_lock_destroy(&qp->sq.lock);
	softib_lock_destroy(&qp->rq.lock);
	free(qp);
	return 0;
}
