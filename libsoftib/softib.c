// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: the virtual InfiniBand device of a Xen guest.
 * Finding the device, and opening it.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softib.h"
#include "softib-abi.h"

/* Devices get renamed and have no driver id of their own: match the bus. */
static const struct verbs_match_ent softib_match_table[] = {
	VERBS_MODALIAS_MATCH("xen:vmri", NULL),
	{}
};

static void softib_free_context(struct ibv_context *ibctx)
{
	struct softib_context *ctx = to_sctx(ibctx);

	pthread_mutex_destroy(&ctx->qp_mutex);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

static const struct verbs_context_ops softib_context_ops = {
	.alloc_mw		= softib_alloc_mw,
	.alloc_parent_domain	= softib_alloc_parent_domain,
	.alloc_pd		= softib_alloc_pd,
	.alloc_td		= softib_alloc_td,
	.attach_mcast		= ibv_cmd_attach_mcast,
	.bind_mw		= softib_bind_mw,
	.close_xrcd		= softib_close_xrcd,
	.create_ah		= softib_create_ah,
	.create_cq		= softib_create_cq,
	.create_cq_ex		= softib_create_cq_ex,
	.create_qp		= softib_create_qp,
	.create_qp_ex		= softib_create_qp_ex,
	.create_srq		= softib_create_srq,
	.create_srq_ex		= softib_create_srq_ex,
	.dealloc_mw		= softib_dealloc_mw,
	.dealloc_pd		= softib_dealloc_pd,
	.dealloc_td		= softib_dealloc_td,
	.dereg_mr		= softib_dereg_mr,
	.destroy_ah		= softib_destroy_ah,
	.destroy_cq		= softib_destroy_cq,
	.destroy_qp		= softib_destroy_qp,
	.destroy_srq		= softib_destroy_srq,
	.detach_mcast		= ibv_cmd_detach_mcast,
	.free_context		= softib_free_context,
	.get_srq_num		= softib_get_srq_num,
	.modify_qp		= softib_modify_qp,
	.modify_srq		= softib_modify_srq,
	.open_qp		= softib_open_qp,
	.open_xrcd		= softib_open_xrcd,
	.poll_cq		= softib_poll_cq,
	.post_recv		= softib_post_recv,
	.post_send		= softib_post_send,
	.post_srq_recv		= softib_post_srq_recv,
	.query_device_ex	= softib_query_device_ex,
	.query_port		= softib_query_port,
	.query_qp		= softib_query_qp,
	.query_rt_values	= softib_query_rt_values,
	.query_srq		= softib_query_srq,
	.reg_mr			= softib_reg_mr,
	.req_notify_cq		= softib_req_notify_cq,
	.rereg_mr		= softib_rereg_mr,
	.resize_cq		= softib_resize_cq,
};

/*
 * How to ring, of the ways that there are.  SOFTIB_DOORBELL=syscall in the
 * environment keeps to the one that every guest has, to compare.
 */
static enum softib_ring softib_choose_ring(uint32_t doorbells)
{
	const char *want = getenv("SOFTIB_DOORBELL");

	if (want && !strcmp(want, "syscall"))
		return SOFTIB_RING_SYSCALL;
	if (doorbells & SOFTIB_DOORBELL_INT)
		return SOFTIB_RING_INT;
	if (doorbells & SOFTIB_DOORBELL_VMMCALL)
		return SOFTIB_RING_VMMCALL;
	if (doorbells & SOFTIB_DOORBELL_VMCALL)
		return SOFTIB_RING_VMCALL;
	return SOFTIB_RING_SYSCALL;
}

static struct verbs_context *softib_alloc_context(struct ibv_device *ibdev,
						  int cmd_fd,
						  void *private_data)
{
	struct usoftib_alloc_context_resp resp = {};
	struct ibv_get_context cmd = {};
	struct softib_context *ctx;

	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;

	if (ibv_cmd_get_context(&ctx->vctx, &cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp)))
		goto err;

	if (!(resp.doorbells & SOFTIB_DOORBELL_SYSCALL)) {
		verbs_err(&ctx->vctx, "no doorbell that this provider knows\n");
		errno = EPROTONOSUPPORT;
		goto err;
	}

	ctx->ring = softib_choose_ring(resp.doorbells);
	ctx->dev_id = resp.dev_id;
	ctx->hypercall = resp.hypercall;
	ctx->roce = resp.flags & SOFTIB_CONTEXT_ROCE;
	pthread_mutex_init(&ctx->qp_mutex, NULL);
	verbs_set_ops(&ctx->vctx, &softib_context_ops);
	return &ctx->vctx;

err:
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	return NULL;
}

static struct verbs_device *
softib_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	struct softib_device *dev;

	dev = calloc(1, sizeof(*dev));
	return dev ? &dev->vdev : NULL;
}

static void softib_uninit_device(struct verbs_device *vdev)
{
	free(container_of(vdev, struct softib_device, vdev));
}

static const struct verbs_device_ops softib_dev_ops = {
	.name			= "softib",
	.match_min_abi_version	= SOFTIB_UVERBS_ABI_VERSION,
	.match_max_abi_version	= SOFTIB_UVERBS_ABI_VERSION,
	.match_table		= softib_match_table,
	.alloc_device		= softib_alloc_device,
	.uninit_device		= softib_uninit_device,
	.alloc_context		= softib_alloc_context,
};
PROVIDER_DRIVER(softib, softib_dev_ops);
