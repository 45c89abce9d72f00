// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: shared receive queues, and the XRC domains that some serve.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "doorbell.h"
#include "softib.h"
#include "softib-abi.h"

/* Map the queue that @resp describes.  What was mapped before stays. */
static int srq_map(struct softib_srq *srq,
		   const struct softib_create_srq_resp *resp)
{
	void *map;

	map = mmap(NULL, resp->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   srq->vsrq.srq.context->cmd_fd, resp->mmap_offset);
	if (map == MAP_FAILED)
		return errno;

	srq->wq.hdr = map;
	srq->wq.slots = map + resp->offset;
	srq->wq.entries = 1U << resp->log2_entries;
	srq->wq.log2_stride = resp->log2_stride;
	srq->wq.prod = ring_load(&srq->wq.hdr->prod);
	srq->map_size = resp->mmap_size;
	return 0;
}

struct ibv_srq *softib_create_srq_ex(struct ibv_context *ibctx,
				     struct ibv_srq_init_attr_ex *attr)
{
	struct usoftib_create_srq_resp resp = {};
	struct ibv_create_xsrq cmd;
	struct softib_srq *srq;
	int ret;

	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) &&
	    attr->srq_type != IBV_SRQT_BASIC &&
	    attr->srq_type != IBV_SRQT_XRC) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;

	ret = ibv_cmd_create_srq_ex(ibctx, &srq->vsrq, attr, &cmd, sizeof(cmd),
				    &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_free;

	ret = srq_map(srq, &resp.drv_payload);
	if (ret)
		goto err_destroy;

	softib_lock_init(&srq->wq.lock, !to_spd(attr->pd)->td);
	srq->wq.max_sge = attr->attr.max_sge;
	srq->number = resp.handle;
	return &srq->vsrq.srq;

err_destroy:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
err_free:
	free(srq);
	errno = ret;
	return NULL;
}

struct ibv_srq *softib_create_srq(struct ibv_pd *ibpd,
				  struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex attr_ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = ibpd,
	};
	struct ibv_srq *ibsrq;

	ibsrq = softib_create_srq_ex(ibpd->context, &attr_ex);
	if (ibsrq)
		attr->attr = attr_ex.attr;
	return ibsrq;
}

int softib_destroy_srq(struct ibv_srq *ibsrq)
{
	struct softib_srq *srq = to_ssrq(ibsrq);
	int ret;

	ret = ibv_cmd_destroy_srq(ibsrq);
	if (ret)
		return ret;

	munmap(srq->wq.hdr, srq->map_size);
	softib_lock_destroy(&srq->wq.lock);
	free(srq);
	return 0;
}

/*
 * The driver copies what is posted, so nothing may be meanwhile.  When there is
 * no room for the new mapping, the old one stays, but nobody looks there any
 * more: then it takes nothing either.
 */
static int srq_resize(struct softib_srq *srq, struct ibv_srq_attr *attr,
		      int attr_mask, struct usoftib_modify_srq *cmd)
{
	struct softib_create_srq_resp resp = {};
	struct vmri_wq_hdr *old = srq->wq.hdr;
	size_t old_size = srq->map_size;
	int ret;

	cmd->resp_addr = (uintptr_t)&resp;
	softib_lock(&srq->wq.lock);
	ret = ibv_cmd_modify_srq(&srq->vsrq.srq, attr, attr_mask,
				 &cmd->ibv_cmd, sizeof(*cmd));
	if (!ret) {
		ret = srq_map(srq, &resp);
		if (ret)
			ring_store(&old->dead, 1);
		else
			munmap(old, old_size);
	}
	softib_unlock(&srq->wq.lock);
	return ret;
}

int softib_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
		      int attr_mask)
{
	struct usoftib_modify_srq cmd = {};

	if (attr_mask & IBV_SRQ_MAX_WR)
		return srq_resize(to_ssrq(ibsrq), attr, attr_mask, &cmd);
	return ibv_cmd_modify_srq(ibsrq, attr, attr_mask, &cmd.ibv_cmd,
				  sizeof(cmd));
}

int softib_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

/* What an XRC request names it by; others have none. */
int softib_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num)
{
	struct softib_srq *srq = to_ssrq(ibsrq);

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return EINVAL;
	*srq_num = srq->number;
	return 0;
}

int softib_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr)
{
	bool ring = false;
	int ret;

	ret = softib_post_recvs(&to_ssrq(ibsrq)->wq, wr, bad_wr, &ring);
	if (ring)
		softib_ring_srq_doorbell(ibsrq);
	return ret;
}

/* ---- XRC domains ---- */

struct ibv_xrcd *softib_open_xrcd(struct ibv_context *ibctx,
				  struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp;
	struct ibv_open_xrcd cmd = {};
	struct verbs_xrcd *vxrcd;
	int ret;

	vxrcd = calloc(1, sizeof(*vxrcd));
	if (!vxrcd)
		return NULL;

	ret = ibv_cmd_open_xrcd(ibctx, vxrcd, sizeof(*vxrcd), attr, &cmd,
				sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(vxrcd);
		errno = ret;
		return NULL;
	}
	return &vxrcd->xrcd;
}

int softib_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct verbs_xrcd *vxrcd = container_of(ibxrcd, struct verbs_xrcd,
						xrcd);
	int ret;

	ret = ibv_cmd_close_xrcd(vxrcd);
	if (!ret)
		free(vxrcd);
	return ret;
}
