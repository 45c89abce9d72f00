// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: completion queues.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <util/util.h>

#include "softib.h"
#include "softib-abi.h"

static struct vmri_cqe *cq_slot(const struct softib_cq *cq, uint32_t index)
{
	return &cq->cqes[index & (cq->entries - 1)];
}

static int cq_map(struct softib_cq *cq,
		  const struct softib_create_cq_resp *resp)
{
	void *map;

	cq->entries = 1U << resp->log2_entries;
	cq->map_size = resp->mmap_size;
	map = mmap(NULL, cq->map_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   cq->vcq.cq.context->cmd_fd, resp->mmap_offset);
	if (map == MAP_FAILED)
		return errno;

	cq->hdr = map;
	cq->cqes = map + VMRI_RING_OFFSET;
	cq->cons = ring_load(&cq->hdr->cons);
	return 0;
}

struct ibv_cq *softib_create_cq(struct ibv_context *ibctx, int cqe,
				struct ibv_comp_channel *channel,
				int comp_vector)
{
	struct usoftib_create_cq_resp resp = {};
	struct softib_cq *cq;
	int ret;

	if (cqe < 1) {
		errno = EINVAL;
		return NULL;
	}

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	ret = ibv_cmd_create_cq(ibctx, cqe, channel, comp_vector, &cq->vcq.cq,
				NULL, 0, &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_free;

	ret = cq_map(cq, &resp.drv_payload);
	if (ret)
		goto err_destroy;

	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	list_head_init(&cq->send_qps);
	list_head_init(&cq->recv_qps);
	return &cq->vcq.cq;

err_destroy:
	ibv_cmd_destroy_cq(&cq->vcq.cq);
err_free:
	free(cq);
	errno = ret;
	return NULL;
}

int softib_destroy_cq(struct ibv_cq *ibcq)
{
	struct softib_cq *cq = to_scq(ibcq);
	int ret;

	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;

	munmap(cq->hdr, cq->map_size);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	return 0;
}

int softib_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct softib_cq *cq = to_scq(ibcq);

	cq_arm(cq->hdr,
	       solicited_only ? VMRI_ARM_SOLICITED : VMRI_ARM_NEXT);
	return 0;
}

/* Status and opcode have libibverbs' numbers, the flags have Linux's. */
static void cqe_to_wc(const struct vmri_cqe *cqe, struct ibv_wc *wc)
{
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->imm_data = cqe->imm;
	wc->qp_num = cqe->qpn;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = (cqe->flags & VMRI_WC_GRH ? IBV_WC_GRH : 0) |
		       (cqe->flags & VMRI_WC_WITH_IMM ? IBV_WC_WITH_IMM : 0) |
		       (cqe->flags & VMRI_WC_WITH_INV ? IBV_WC_WITH_INV : 0);
	wc->pkey_index = cqe->pkey_index;
	wc->slid = cqe->slid;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = cqe->dlid_path_bits;
}

static enum ibv_wc_opcode send_wc_opcode(uint8_t wr_opcode)
{
	switch (wr_opcode) {
	case VMRI_WR_RDMA_WRITE:
	case VMRI_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case VMRI_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	default:
		return IBV_WC_SEND;
	}
}

/*
 * Complete up to @num requests that the dead hypervisor side of @wq left.  Its
 * consumer index is now the provider's to move.
 */
static int flush_wq(struct softib_wq *wq, uint32_t qpn, bool is_send, int num,
		    struct ibv_wc *wc)
{
	uint32_t cons;
	int n = 0;

	if (!wq->entries)
		return 0;

	pthread_spin_lock(&wq->lock);
	for (cons = ring_load(&wq->hdr->cons); n < num && cons != wq->prod;
	     cons++, n++) {
		const struct vmri_send_wqe *send = wq_slot(wq, cons);
		const struct vmri_recv_wqe *recv = wq_slot(wq, cons);

		wc[n] = (struct ibv_wc) {
			.wr_id = is_send ? send->wr_id : recv->wr_id,
			.status = IBV_WC_WR_FLUSH_ERR,
			.opcode = is_send ? send_wc_opcode(send->opcode) :
					    IBV_WC_RECV,
			.vendor_err = VMRI_VERR_DEVICE,
			.qp_num = qpn,
		};
	}
	ring_store(&wq->hdr->cons, cons);
	pthread_spin_unlock(&wq->lock);
	return n;
}

/* The device is gone: flush what its queue pairs still owe to @cq. */
static int flush_dead(struct softib_cq *cq, int num, struct ibv_wc *wc)
{
	struct softib_qp *qp;
	int n = 0;

	list_for_each(&cq->send_qps, qp, send_entry)
		n += flush_wq(&qp->sq, qp->vqp.qp.qp_num, true, num - n,
			      wc + n);
	list_for_each(&cq->recv_qps, qp, recv_entry)
		n += flush_wq(&qp->rq, qp->vqp.qp.qp_num, false, num - n,
			      wc + n);
	return n;
}

/* What an empty CQ has to say. */
static int poll_empty(struct softib_cq *cq, int num, struct ibv_wc *wc)
{
	int n;

	if (ring_load(&cq->hdr->dead)) {
		n = flush_dead(cq, num, wc);
		return n ? n : -EIO;
	}
	return ring_load(&cq->hdr->overflow) ? -EIO : 0;
}

int softib_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct softib_cq *cq = to_scq(ibcq);
	uint32_t prod;
	int n;

	pthread_spin_lock(&cq->lock);
	prod = ring_load(&cq->hdr->prod);
	for (n = 0; n < num && cq->cons != prod; n++)
		cqe_to_wc(cq_slot(cq, cq->cons++), wc + n);
	if (n)
		ring_store(&cq->hdr->cons, cq->cons);
	else if (num > 0)
		n = poll_empty(cq, num, wc);
	pthread_spin_unlock(&cq->lock);
	return n;
}

/*
 * Drop the completions of a queue pair that will write no more.  What remains
 * moves up to the producer's end, so that the slots are free at once.
 */
static void cq_clean(struct softib_cq *cq, uint32_t qpn)
{
	uint32_t keep = ring_load(&cq->hdr->prod);
	uint32_t i;

	for (i = keep; i != cq->cons; i--) {
		const struct vmri_cqe *cqe = cq_slot(cq, i - 1);

		if (cqe->qpn == qpn)
			continue;
		keep--;
		if (keep != i - 1)
			*cq_slot(cq, keep) = *cqe;
	}
	cq->cons = keep;
	ring_store(&cq->hdr->cons, cq->cons);
}

/* The CQs of a queue pair may be one and the same; the lower address first. */
static void cqs_lock(struct softib_cq *a, struct softib_cq *b)
{
	if (a > b) {
		cqs_lock(b, a);
		return;
	}
	pthread_spin_lock(&a->lock);
	if (a != b)
		pthread_spin_lock(&b->lock);
}

static void cqs_unlock(struct softib_cq *a, struct softib_cq *b)
{
	pthread_spin_unlock(&a->lock);
	if (a != b)
		pthread_spin_unlock(&b->lock);
}

void softib_cqs_attach_qp(struct softib_qp *qp)
{
	struct softib_cq *send_cq = to_scq(qp->vqp.qp.send_cq);
	struct softib_cq *recv_cq = to_scq(qp->vqp.qp.recv_cq);

	cqs_lock(send_cq, recv_cq);
	list_add_tail(&send_cq->send_qps, &qp->send_entry);
	list_add_tail(&recv_cq->recv_qps, &qp->recv_entry);
	cqs_unlock(send_cq, recv_cq);
}

void softib_cqs_detach_qp(struct softib_qp *qp)
{
	struct softib_cq *send_cq = to_scq(qp->vqp.qp.send_cq);
	struct softib_cq *recv_cq = to_scq(qp->vqp.qp.recv_cq);

	cqs_lock(send_cq, recv_cq);
	list_del(&qp->send_entry);
	list_del(&qp->recv_entry);
	cq_clean(send_cq, qp->vqp.qp.qp_num);
	cq_clean(recv_cq, qp->vqp.qp.qp_num);
	cqs_unlock(send_cq, recv_cq);
}

void softib_cqs_clean_qp(struct softib_qp *qp)
{
	struct softib_cq *send_cq = to_scq(qp->vqp.qp.send_cq);
	struct softib_cq *recv_cq = to_scq(qp->vqp.qp.recv_cq);

	cqs_lock(send_cq, recv_cq);
	cq_clean(send_cq, qp->vqp.qp.qp_num);
	cq_clean(recv_cq, qp->vqp.qp.qp_num);
	cqs_unlock(send_cq, recv_cq);
}
