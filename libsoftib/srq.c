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

/* Use the mapping of the queue that @resp describes. */
static void srq_use(struct softib_srq *srq, void *map,
		    const struct softib_create_srq_resp *resp)
{
	srq->wq.hdr = map;
	srq->wq.slots = map + resp->offset;
	srq->wq.entries = 1U << resp->log2_entries;
	srq->wq.log2_stride = resp->log2_stride;
	srq->wq.prod = ring_load(&srq->wq.hdr->prod);
	srq->map_size = resp->mmap_size;
}

struct ibv_srq *softib_create_srq_ex(struct ibv_context *ibctx,
				     struct ibv_srq_init_attr_ex *attr)
{
	struct usoftib_create_srq_resp resp = {};
	struct ibv_create_xsrq cmd;
	struct softib_srq *srq;
	void *map;
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

	map = softib_map(ibctx, resp.mmap_offset, resp.mmap_size);
	if (map == MAP_FAILED) {
		ret = errno;
		goto err_destroy;
	}
	srq_use(srq, map, &resp.drv_payload);
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

/* The driver copies what is posted, so nothing may be meanwhile. */
static int srq_move(struct softib_srq *srq, struct ibv_srq_attr *attr,
		    int attr_mask, struct usoftib_modify_srq *cmd,
		    struct softib_place *place)
{
	struct softib_create_srq_resp resp = {};
	struct ibv_srq *ibsrq = &srq->vsrq.srq;
	void *map;
	int ret;

	cmd->resp_addr = (uintptr_t)&resp;
	ret = ibv_cmd_modify_srq(ibsrq, attr, attr_mask, &cmd->ibv_cmd,
				 sizeof(*cmd));
	if (ret) {
		softib_place_give_back(place);
		return ret;
	}
	map = softib_map_there(ibsrq->context, resp.mmap_offset,
			       resp.mmap_size, place);
	if (map == MAP_FAILED) {
		/* Nobody looks at the old one any more: it takes nothing. */
		ret = errno;
		ring_store(&srq->wq.hdr->dead, 1);
		return ret;
	}
	munmap(srq->wq.hdr, srq->map_size);
	srq_use(srq, map, &resp);
	return 0;
}

static int srq_resize(struct softib_srq *srq, struct ibv_srq_attr *attr,
		      int attr_mask, struct usoftib_modify_srq *cmd)
{
	size_t offset = srq->wq.slots - (uint8_t *)srq->wq.hdr;
	struct softib_place place;
	int ret;

	ret = softib_place_take(&place,
				softib_map_size(offset, attr->max_wr,
						1UL << srq->wq.log2_stride));
	if (ret)
		return ret;
	softib_lock(&srq->wq.lock);
	ret = srq_move(srq, attr, attr_mask, cmd, &place);
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
