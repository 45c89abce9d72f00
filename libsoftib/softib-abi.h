/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands of libibverbs with the driver's part of their responses
 * (include/uapi/softib-abi.h) appended.
 */
#ifndef __SOFTIB_ABI_H__
#define __SOFTIB_ABI_H__

#include <infiniband/kern-abi.h>
#include <rdma/softib-abi.h>
#include <kernel-abi/softib-abi.h>

DECLARE_DRV_CMD(usoftib_alloc_context, IB_USER_VERBS_CMD_GET_CONTEXT,
		empty, softib_alloc_ucontext_resp);
DECLARE_DRV_CMD(usoftib_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD,
		empty, softib_alloc_pd_resp);
DECLARE_DRV_CMD(usoftib_create_cq, IB_USER_VERBS_CMD_CREATE_CQ,
		empty, softib_create_cq_resp);
DECLARE_DRV_CMD(usoftib_create_cq_ex, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		empty, softib_create_cq_resp);
DECLARE_DRV_CMD(usoftib_query_device_ex, IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
		empty, softib_query_device_ex_resp);
DECLARE_DRV_CMD(usoftib_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		empty, softib_resize_cq_resp);
DECLARE_DRV_CMD(usoftib_create_qp, IB_USER_VERBS_EX_CMD_CREATE_QP,
		empty, softib_create_qp_resp);
DECLARE_DRV_CMD(usoftib_create_srq, IB_USER_VERBS_CMD_CREATE_XSRQ,
		empty, softib_create_srq_resp);
DECLARE_DRV_CMD(usoftib_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ,
		softib_modify_srq, empty);

#endif /* __SOFTIB_ABI_H__ */
