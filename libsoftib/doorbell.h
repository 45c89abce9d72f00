/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ways to tell the hypervisor that a queue pair has work.
 */
#ifndef __SOFTIB_DOORBELL_H__
#define __SOFTIB_DOORBELL_H__

#include <infiniband/driver.h>
#include <vmri/vmri.h>

#include "softib.h"

/*
 * Enter the hypervisor from here (VMRI_OP_doorbell).  False: it does not serve
 * this device, or not any more.
 */
#ifdef __x86_64__
static inline bool softib_trap(const struct softib_context *ctx, uint32_t qpn)
{
	uint64_t cmd = VMRI_OP_doorbell, dev = ctx->dev_id, arg = qpn;
	int64_t ret = ctx->hypercall;

	switch (ctx->ring) {
	case SOFTIB_RING_INT:
		asm volatile("int %1"
			     : "=a" (ret)
			     : "i" (VMRI_DOORBELL_VECTOR), "D" (dev), "S" (arg)
			     : "memory");
		return !ret;
	case SOFTIB_RING_VMCALL:
		asm volatile("vmcall"
			     : "+a" (ret), "+D" (cmd), "+S" (dev), "+d" (arg)
			     :
			     : "r8", "r10", "memory");
		return !ret;
	case SOFTIB_RING_VMMCALL:
		asm volatile("vmmcall"
			     : "+a" (ret), "+D" (cmd), "+S" (dev), "+d" (arg)
			     :
			     : "r8", "r10", "memory");
		return !ret;
	default:
		return false;
	}
}
#else
static inline bool softib_trap(const struct softib_context *ctx, uint32_t qpn)
{
	return false;
}
#endif

/*
 * Run the queues of @ibqp: past the kernel, or by the POST_SEND command with no
 * request.  That can fail only when the device goes away, and then the ring is
 * marked dead and what was posted is flushed by polling: so there is nothing to
 * report to the caller, whose requests have been accepted.
 */
static inline void softib_ring_doorbell(struct ibv_qp *ibqp)
{
	struct ibv_send_wr *bad_wr;

	if (!softib_trap(to_sctx(ibqp->context), ibqp->qp_num))
		ibv_cmd_post_send(ibqp, NULL, &bad_wr);
}

/* The same for who waits for receives of @ibsrq, which is rare. */
static inline void softib_ring_srq_doorbell(struct ibv_srq *ibsrq)
{
	struct ibv_recv_wr *bad_wr;

	ibv_cmd_post_srq_recv(ibsrq, NULL, &bad_wr);
}

#endif /* __SOFTIB_DOORBELL_H__ */
