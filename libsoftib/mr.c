// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: memory regions and memory windows.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "softib.h"

struct ibv_mr *softib_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length,
			     uint64_t iova, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *vmr;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	if (ibv_cmd_reg_mr(ibpd, addr, length, iova, access, vmr, &cmd,
			   sizeof(cmd), &resp, sizeof(resp))) {
		free(vmr);
		return NULL;
	}
	return &vmr->ibv_mr;
}

int softib_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibpd,
		    void *addr, size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;

	return ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr,
				access, ibpd, &cmd, sizeof(cmd), &resp,
				sizeof(resp));
}

int softib_dereg_mr(struct verbs_mr *vmr)
{
	int ret;

	ret = ibv_cmd_dereg_mr(vmr);
	if (!ret)
		free(vmr);
	return ret;
}

struct ibv_mw *softib_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd;
	struct ibv_mw *ibmw;
	int ret;

	ibmw = calloc(1, sizeof(*ibmw));
	if (!ibmw)
		return NULL;

	ret = ibv_cmd_alloc_mw(ibpd, type, ibmw, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (ret) {
		free(ibmw);
		errno = ret;
		return NULL;
	}
	return ibmw;
}

int softib_dealloc_mw(struct ibv_mw *ibmw)
{
	int ret;

	ret = ibv_cmd_dealloc_mw(ibmw);
	if (!ret)
		free(ibmw);
	return ret;
}

/* Windows of type 1: the others are bound by ibv_post_send() and ibv_wr_*(). */
int softib_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *ibmw,
		   struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad_wr, wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {
			.mw = ibmw,
			.rkey = ibv_inc_rkey(ibmw->rkey),
			.bind_info = bind->bind_info,
		},
	};
	int ret;

	/* Not for this type (IBTA 1.4, o10-36.2.2). */
	if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return EINVAL;

	ret = softib_post_send(ibqp, &wr, &bad_wr);
	if (!ret)
		ibmw->rkey = wr.bind_mw.rkey;
	return ret;
}
