/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The provider's objects, and who implements which verb.
 *
 * Locks, in the order in which they are taken:
 *   softib_context.qp_mutex  creation and destruction of queue pairs
 *   softib_cq.lock           the consumer side, and the lists of queue pairs
 *   softib_wq.lock           the producer side of one queue
 */
#ifndef __SOFTIB_H__
#define __SOFTIB_H__

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <ccan/container_of.h>
#include <ccan/list.h>
#include <infiniband/driver.h>
#include <infiniband/verbs.h>
#include <vmri/ring.h>
#include <vmri/vmri.h>

#include "ring.h"

struct softib_device {
	struct verbs_device	vdev;
};

struct softib_context {
	struct verbs_context	vctx;
	/*
	 * Held from the destruction of a queue pair until its completions are
	 * gone from the CQs: its number may be given out again only then.
	 */
	pthread_mutex_t		qp_mutex;
};

struct softib_ah {
	struct ibv_ah		ibv_ah;
	struct vmri_av		av;
};

struct softib_cq {
	struct verbs_cq		vcq;
	pthread_spinlock_t	lock;
	uint32_t		cons;		/* protected by lock, as below */
	struct list_head	send_qps;	/* softib_qp.send_entry */
	struct list_head	recv_qps;	/* softib_qp.recv_entry */
	uint32_t		entries;	/* a power of two */
	struct vmri_cq_hdr	*hdr;
	struct vmri_cqe		*cqes;
	size_t			map_size;
};

struct softib_qp {
	struct verbs_qp		vqp;
	struct softib_wq	sq;
	struct softib_wq	rq;
	uint32_t		ops;		/* softib_send_ops() */
	uint8_t			sig_all;	/* 0 or VMRI_SEND_SIGNALED */
	uint32_t		max_inline;	/* bytes */
	uint32_t		sq_start;	/* protected by sq.lock: sq.prod as
						 * softib_sq_start() found it */
	struct vmri_qp_hdr	*hdr;
	size_t			map_size;
	struct list_node	send_entry;
	struct list_node	recv_entry;
};

static inline struct softib_context *to_sctx(struct ibv_context *ibctx)
{
	return container_of(ibctx, struct softib_context, vctx.context);
}

static inline struct softib_ah *to_sah(struct ibv_ah *ibah)
{
	return container_of(ibah, struct softib_ah, ibv_ah);
}

static inline struct softib_cq *to_scq(struct ibv_cq *ibcq)
{
	return container_of(ibcq, struct softib_cq, vcq.cq);
}

static inline struct softib_qp *to_sqp(struct ibv_qp *ibqp)
{
	return container_of(ibqp, struct softib_qp, vqp.qp);
}

/*
 * The verbs below have the contract of their ibv_* name: 0 or a positive errno,
 * or NULL with errno set.
 */

/* verbs.c */
int softib_query_device_ex(struct ibv_context *ibctx,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_size);
int softib_query_port(struct ibv_context *ibctx, uint8_t port,
		      struct ibv_port_attr *attr);
struct ibv_pd *softib_alloc_pd(struct ibv_context *ibctx);
int softib_dealloc_pd(struct ibv_pd *ibpd);
struct ibv_mr *softib_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length,
			     uint64_t iova, int access);
int softib_dereg_mr(struct verbs_mr *vmr);
struct ibv_ah *softib_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr);
int softib_destroy_ah(struct ibv_ah *ibah);

/* cq.c */
struct ibv_cq *softib_create_cq(struct ibv_context *ibctx, int cqe,
				struct ibv_comp_channel *channel,
				int comp_vector);
int softib_destroy_cq(struct ibv_cq *ibcq);
int softib_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
/* The number of completions, or -EIO when there will never be another. */
int softib_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc);

/*
 * Enter a new queue pair into its CQs; take it out with all its completions;
 * or only drop those.
 */
void softib_cqs_attach_qp(struct softib_qp *qp);
void softib_cqs_detach_qp(struct softib_qp *qp);
void softib_cqs_clean_qp(struct softib_qp *qp);

/* qp.c */
struct ibv_qp *softib_create_qp(struct ibv_pd *ibpd,
				struct ibv_qp_init_attr *attr);
int softib_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		    int attr_mask, struct ibv_qp_init_attr *init_attr);
int softib_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		     int attr_mask);
int softib_destroy_qp(struct ibv_qp *ibqp);

/* post.c */
uint32_t softib_send_ops(enum ibv_qp_type type);
int softib_sq_start(struct softib_qp *qp);
void softib_sq_finish(struct softib_qp *qp);
int softib_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad_wr);
int softib_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr);

#endif /* __SOFTIB_H__ */
