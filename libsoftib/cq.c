// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: completion queues.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ccan/array_size.h>
#include <ccan/minmax.h>

#include "softib.h"
#include "softib-abi.h"

static struct vmri_cqe *cq_slot(const struct softib_cq *cq, uint32_t index)
{
	return &cq->cqes[index & (cq->entries - 1)];
}

static void use_ring(struct softib_cq *cq, void *map, uint32_t size,
		     uint32_t log2_entries)
{
	cq->map_size = size;
	cq->entries = 1U << log2_entries;
	cq->hdr = map;
	cq->cqes = map + VMRI_RING_OFFSET;
}

/* Make a CQ of what the driver has created, or have it destroyed again. */
static int cq_open(struct softib_cq *cq,
		   const struct softib_create_cq_resp *resp, bool locked)
{
	void *map = softib_map(cq->vcq.cq.context, resp->mmap_offset,
			       resp->mmap_size);
	int ret;

	if (map == MAP_FAILED) {
		ret = errno;
		ibv_cmd_destroy_cq(&cq->vcq.cq);
		return ret;
	}

	use_ring(cq, map, resp->mmap_size, resp->log2_entries);
	cq->cons = ring_load(&cq->hdr->cons);
	cq->prod = cq->cons;
	softib_lock_init(&cq->lock, locked);
	list_head_init(&cq->send_qps);
	list_head_init(&cq->recv_qps);
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
	if (!ret)
		ret = cq_open(cq, &resp.drv_payload, true);
	if (ret) {
		free(cq);
		errno = ret;
		return NULL;
	}
	return &cq->vcq.cq;
}

#define WC_FLAGS \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* What libibverbs does not look at, or only later. */
static int check_attr_ex(const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->cqe < 1 || attr->cqe > INT32_MAX)
		return EINVAL;
	if (attr->wc_flags & ~(uint64_t)WC_FLAGS)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    (attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    (!attr->parent_domain || !to_spd(attr->parent_domain)->of))
		return EINVAL;
	return 0;
}

static bool is_single_threaded(const struct ibv_cq_init_attr_ex *attr)
{
	return ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
		(attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) ||
	       ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
		to_spd(attr->parent_domain)->td);
}

struct ibv_cq_ex *softib_create_cq_ex(struct ibv_context *ibctx,
				      struct ibv_cq_init_attr_ex *attr)
{
	struct usoftib_create_cq_ex_resp resp = {};
	struct softib_cq *cq;
	int ret;

	ret = check_attr_ex(attr);
	if (ret) {
		errno = ret;
		return NULL;
	}

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	ret = ibv_cmd_create_cq_ex(ibctx, attr, &cq->vcq, NULL, 0,
				   &resp.ibv_resp, sizeof(resp), 0);
	if (!ret)
		ret = cq_open(cq, &resp.drv_payload,
			      !is_single_threaded(attr));
	if (ret) {
		free(cq);
		errno = ret;
		return NULL;
	}
	softib_cq_init_ex(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

/* Move what is not consumed, up to index @prod, and go on in the new ring. */
static void change_ring(struct softib_cq *cq, void *map,
			const struct softib_resize_cq_resp *resp)
{
	const uint32_t mask = (1U << resp->log2_entries) - 1;
	struct vmri_cqe *to = map + VMRI_RING_OFFSET;
	uint32_t i;

	for (i = cq->cons; i != resp->prod; i++)
		to[i & mask] = *cq_slot(cq, i);
	munmap(cq->hdr, cq->map_size);
	use_ring(cq, map, resp->mmap_size, resp->log2_entries);
}

/* Nobody may consume or arm while the rings change places. */
static int resize(struct softib_cq *cq, int cqe, struct softib_place *place)
{
	struct usoftib_resize_cq_resp resp = {};
	struct ibv_cq *ibcq = &cq->vcq.cq;
	struct ibv_resize_cq cmd;
	void *map;
	int ret;

	ret = ibv_cmd_resize_cq(ibcq, cqe, &cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (ret) {
		softib_place_give_back(place);
		return ret;
	}
	map = softib_map_there(ibcq->context, resp.mmap_offset, resp.mmap_size,
			       place);
	if (map == MAP_FAILED)
		return errno;
	change_ring(cq, map, &resp.drv_payload);
	return 0;
}

int softib_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct softib_cq *cq = to_scq(ibcq);
	struct softib_place place;
	int ret;

	if (cqe < 1)
		return EINVAL;

	ret = softib_place_take(&place, softib_map_size(VMRI_RING_OFFSET, cqe,
							sizeof(*cq->cqes)));
	if (ret)
		return ret;
	softib_lock(&cq->lock);
	ret = resize(cq, cqe, &place);
	softib_unlock(&cq->lock);
	return ret;
}

int softib_destroy_cq(struct ibv_cq *ibcq)
{
	struct softib_cq *cq = to_scq(ibcq);
	int ret;

	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;

	munmap(cq->hdr, cq->map_size);
	softib_lock_destroy(&cq->lock);
	free(cq);
	return 0;
}

int softib_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct softib_cq *cq = to_scq(ibcq);
	bool dead;

	softib_lock(&cq->lock);
	cq_arm(cq->hdr,
	       solicited_only ? VMRI_ARM_SOLICITED : VMRI_ARM_NEXT);
	dead = ring_load(&cq->hdr->dead);
	softib_unlock(&cq->lock);
	return dead ? EIO : 0;
}

/* Status and opcode have libibverbs' numbers, the flags have Linux's. */
unsigned int softib_wc_flags(const struct vmri_cqe *cqe)
{
	return (cqe->flags & VMRI_WC_GRH ? IBV_WC_GRH : 0) |
	       (cqe->flags & VMRI_WC_WITH_IMM ? IBV_WC_WITH_IMM : 0) |
	       (cqe->flags & VMRI_WC_WITH_INV ? IBV_WC_WITH_INV : 0);
}

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
	wc->wc_flags = softib_wc_flags(cqe);
	wc->pkey_index = cqe->pkey_index;
	wc->slid = cqe->slid;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = cqe->dlid_path_bits;
}

static uint8_t send_wc_opcode(uint8_t wr_opcode)
{
	static const uint8_t opcodes[] = {
		[VMRI_WR_RDMA_WRITE] = VMRI_WC_OP_RDMA_WRITE,
		[VMRI_WR_RDMA_WRITE_WITH_IMM] = VMRI_WC_OP_RDMA_WRITE,
		[VMRI_WR_SEND] = VMRI_WC_OP_SEND,
		[VMRI_WR_SEND_WITH_IMM] = VMRI_WC_OP_SEND,
		[VMRI_WR_RDMA_READ] = VMRI_WC_OP_RDMA_READ,
		[VMRI_WR_ATOMIC_CMP_AND_SWP] = VMRI_WC_OP_COMP_SWAP,
		[VMRI_WR_ATOMIC_FETCH_AND_ADD] = VMRI_WC_OP_FETCH_ADD,
		[VMRI_WR_LOCAL_INV] = VMRI_WC_OP_LOCAL_INV,
		[VMRI_WR_BIND_MW] = VMRI_WC_OP_BIND_MW,
		[VMRI_WR_SEND_WITH_INV] = VMRI_WC_OP_SEND,
		[VMRI_WR_FLUSH] = VMRI_WC_OP_FLUSH,
		[VMRI_WR_ATOMIC_WRITE] = VMRI_WC_OP_ATOMIC_WRITE,
	};

	return wr_opcode < ARRAY_SIZE(opcodes) ? opcodes[wr_opcode] :
						 VMRI_WC_OP_SEND;
}

/*
 * Complete a request that the dead hypervisor side of @wq left.  Its consumer
 * index is now the provider's to move.
 */
static bool flush_wq(struct softib_wq *wq, uint32_t qpn, bool is_send,
		     struct vmri_cqe *cqe)
{
	uint32_t cons;
	bool found;

	if (!wq->entries)
		return false;

	softib_lock(&wq->lock);
	cons = ring_load(&wq->hdr->cons);
	found = cons != wq->prod;
	if (found) {
		const struct vmri_send_wqe *send = wq_slot(wq, cons);
		const struct vmri_recv_wqe *recv = wq_slot(wq, cons);

		*cqe = (struct vmri_cqe) {
			.wr_id = is_send ? send->wr_id : recv->wr_id,
			.qpn = qpn,
			.status = VMRI_WC_WR_FLUSH_ERR,
			.opcode = is_send ? send_wc_opcode(send->opcode) :
					    VMRI_WC_OP_RECV,
			.vendor_err = VMRI_VERR_DEVICE,
		};
		ring_store(&wq->hdr->cons, cons + 1);
	}
	softib_unlock(&wq->lock);
	return found;
}

/* The device is gone: flush what its queue pairs still owe to @cq. */
static bool flush_dead(struct softib_cq *cq, struct vmri_cqe *cqe)
{
	struct softib_qp *qp;

	list_for_each(&cq->send_qps, qp, send_entry)
		if (flush_wq(&qp->sq, qp->vqp.qp.qp_num, true, cqe))
			return true;
	list_for_each(&cq->recv_qps, qp, recv_entry)
		if (flush_wq(&qp->rq, qp->vqp.qp.qp_num, false, cqe))
			return true;
	return false;
}

/* What an empty CQ has to say. */
static int peek_empty(struct softib_cq *cq, const struct vmri_cqe **cqe)
{
	if (ring_load(&cq->hdr->dead)) {
		*cqe = &cq->flushed;
		return flush_dead(cq, &cq->flushed) ? 0 : EIO;
	}
	return ring_load(&cq->hdr->overflow) ? EIO : ENOENT;
}

int softib_cq_peek(struct softib_cq *cq, const struct vmri_cqe **cqe)
{
	if (cq->cons == cq->prod) {
		cq->prod = ring_load(&cq->hdr->prod);
		if (cq->cons == cq->prod)
			return peek_empty(cq, cqe);
	}
	*cqe = cq_slot(cq, cq->cons);
	return 0;
}

void softib_cq_consume(struct softib_cq *cq, const struct vmri_cqe *cqe)
{
	if (cqe != &cq->flushed)
		cq->cons++;
}

void softib_cq_release(struct softib_cq *cq)
{
	ring_store(&cq->hdr->cons, cq->cons);
}

int softib_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct softib_cq *cq = to_scq(ibcq);
	const struct vmri_cqe *cqe;
	int ret = 0;
	int n;

	softib_lock(&cq->lock);
	for (n = 0; n < num; n++) {
		ret = softib_cq_peek(cq, &cqe);
		if (ret)
			break;
		cqe_to_wc(cqe, wc + n);
		softib_cq_consume(cq, cqe);
	}
	if (n)
		softib_cq_release(cq);
	softib_unlock(&cq->lock);
	return !n && ret == EIO ? -EIO : n;
}

/*
 * Drop the completions of a queue pair that will write no more.  What remains
 * moves up to the producer's end, so that the slots are free at once.
 */
static void cq_clean(struct softib_cq *cq, uint32_t qpn)
{
	uint32_t keep = ring_load(&cq->hdr->prod);
	uint32_t i;

	cq->prod = keep;
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

/*
 * The CQs of a queue pair: they may be one and the same, and either may be
 * missing (XRC).
 */
struct cqs {
	struct softib_cq	*send;
	struct softib_cq	*recv;
};

/* The lower address first. */
static struct cqs cqs_lock(const struct softib_qp *qp)
{
	const struct ibv_qp *ibqp = &qp->vqp.qp;
	struct cqs cqs = {
		.send = ibqp->send_cq ? to_scq(ibqp->send_cq) : NULL,
		.recv = ibqp->recv_cq ? to_scq(ibqp->recv_cq) : NULL,
	};
	struct softib_cq *a = min(cqs.send, cqs.recv);
	struct softib_cq *b = max(cqs.send, cqs.recv);

	if (a && a != b)
		softib_lock(&a->lock);
	if (b)
		softib_lock(&b->lock);
	return cqs;
}

static void cqs_unlock(const struct cqs *cqs)
{
	if (cqs->send)
		softib_unlock(&cqs->send->lock);
	if (cqs->recv && cqs->recv != cqs->send)
		softib_unlock(&cqs->recv->lock);
}

static void cqs_clean(const struct cqs *cqs, uint32_t qpn)
{
	if (cqs->send)
		cq_clean(cqs->send, qpn);
	if (cqs->recv && cqs->recv != cqs->send)
		cq_clean(cqs->recv, qpn);
}

void softib_cqs_attach_qp(struct softib_qp *qp)
{
	struct cqs cqs = cqs_lock(qp);

	if (cqs.send)
		list_add_tail(&cqs.send->send_qps, &qp->send_entry);
	if (cqs.recv)
		list_add_tail(&cqs.recv->recv_qps, &qp->recv_entry);
	cqs_unlock(&cqs);
}

void softib_cqs_detach_qp(struct softib_qp *qp)
{
	struct cqs cqs = cqs_lock(qp);

	if (cqs.send)
		list_del(&qp->send_entry);
	if (cqs.recv)
		list_del(&qp->recv_entry);
	cqs_clean(&cqs, qp->vqp.qp.qp_num);
	cqs_unlock(&cqs);
}

void softib_cqs_clean_qp(struct softib_qp *qp)
{
	struct cqs cqs = cqs_lock(qp);

	cqs_clean(&cqs, qp->vqp.qp.qp_num);
	cqs_unlock(&cqs);
}
