/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ways to tell the hypervisor that a queue pair has work.
 */
#ifndef __SOFTIB_DOORBELL_H__
#define __SOFTIB_DOORBELL_H__

#include <infiniband/driver.h>

/*
 * Run the queues of @ibqp.  The doorbell of this kind is the POST_SEND command
 * with no request.  It can fail only when the device goes away, and then the
 * ring is marked dead and what was posted is flushed by polling: so there is
 * nothing to report to the caller, whose requests have been accepted.
 */
static inline void softib_ring_doorbell(struct ibv_qp *ibqp)
{
	struct ibv_send_wr *bad_wr;

	ibv_cmd_post_send(ibqp, NULL, &bad_wr);
}

/* The same for who waits for receives of @ibsrq. */
static inline void softib_ring_srq_doorbell(struct ibv_srq *ibsrq)
{
	struct ibv_recv_wr *bad_wr;

	ibv_cmd_post_srq_recv(ibsrq, NULL, &bad_wr);
}

#endif /* __SOFTIB_DOORBELL_H__ */
