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
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <ccan/container_of.h>
#include <ccan/list.h>
#include <infiniband/driver.h>
#include <infiniband/verbs.h>
#include <vmri/ring.h>
#include <vmri/vmri.h>

#include "lock.h"
#include "ring.h"

struct softib_device {
	struct verbs_device	vdev;
};

/* How a doorbell is rung: SOFTIB_DOORBELL_* of the driver's interface. */
enum softib_ring {
	SOFTIB_RING_SYSCALL,
	SOFTIB_RING_INT,
	SOFTIB_RING_VMCALL,
	SOFTIB_RING_VMMCALL,
};

struct softib_context {
	struct verbs_context	vctx;
	/*
	 * Held from the destruction of a queue pair until its completions are
	 * gone from the CQs: its number may be given out again only then.
	 */
	pthread_mutex_t		qp_mutex;
	enum softib_ring	ring;
	uint32_t		dev_id;		/* what it names: VMRI's device */
	uint32_t		hypercall;	/* VMRI's number */
	bool			roce;		/* the port's link layer */
};

struct softib_ah {
	struct ibv_ah		ibv_ah;
	struct vmri_av		av;
};

/* A protection domain, or a parent domain. */
struct softib_pd {
	struct ibv_pd		ibv_pd;
	atomic_uint		users;		/* parent domains made of it */
	struct softib_pd	*of;		/* NULL: no parent domain */
	struct softib_td	*td;		/* its thread domain, or NULL */
};

struct softib_td {
	struct ibv_td		ibv_td;
	atomic_uint		users;		/* parent domains */
};

struct softib_cq {
	struct verbs_cq		vcq;
	struct softib_lock	lock;
	uint32_t		cons;		/* protected by lock, as below */
	uint32_t		prod;		/* as last seen */
	const struct vmri_cqe	*cur;		/* between start and end_poll */
	struct vmri_cqe		flushed;	/* see softib_cq_peek() */
	uint64_t		clock;		/* when wall_offset was taken */
	uint64_t		wall_offset;	/* real time minus clock, ns */
	struct list_head	send_qps;	/* softib_qp.send_entry */
	struct list_head	recv_qps;	/* softib_qp.recv_entry */
	uint32_t		entries;	/* a power of two */
	struct vmri_cq_hdr	*hdr;
	struct vmri_cqe		*cqes;
	size_t			map_size;
};

struct softib_srq {
	struct verbs_srq	vsrq;
	struct softib_wq	wq;
	uint32_t		number;
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
	struct vmri_send_wqe	*wqe;		/* the same, as below: of ibv_wr_* */
	int			wr_err;
	struct vmri_qp_hdr	*hdr;
	size_t			map_size;
	struct list_node	send_entry;
	struct list_node	recv_entry;
};

static inline struct softib_context *to_sctx(struct ibv_context *ibctx)
{
	return container_of(ibctx, struct softib_context, vctx.context);
}

static inline struct softib_pd *to_spd(struct ibv_pd *ibpd)
{
	return container_of(ibpd, struct softib_pd, ibv_pd);
}

static inline struct softib_td *to_std(struct ibv_td *ibtd)
{
	return container_of(ibtd, struct softib_td, ibv_td);
}

static inline struct softib_ah *to_sah(struct ibv_ah *ibah)
{
	return container_of(ibah, struct softib_ah, ibv_ah);
}

static inline struct softib_cq *to_scq(struct ibv_cq *ibcq)
{
	return container_of(ibcq, struct softib_cq, vcq.cq);
}

static inline struct softib_srq *to_ssrq(struct ibv_srq *ibsrq)
{
	return container_of(ibsrq, struct softib_srq, vsrq.srq);
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
/* What the clock that stamps completions says now. */
int softib_read_clock(struct ibv_context *ibctx, uint64_t *ns);
int softib_query_rt_values(struct ibv_context *ibctx,
			   struct ibv_values_ex *values);
struct ibv_ah *softib_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr);
int softib_destroy_ah(struct ibv_ah *ibah);

/* pd.c */
struct ibv_pd *softib_alloc_pd(struct ibv_context *ibctx);
struct ibv_pd *
softib_alloc_parent_domain(struct ibv_context *ibctx,
			   struct ibv_parent_domain_init_attr *attr);
int softib_dealloc_pd(struct ibv_pd *ibpd);
struct ibv_td *softib_alloc_td(struct ibv_context *ibctx,
			       struct ibv_td_init_attr *attr);
int softib_dealloc_td(struct ibv_td *ibtd);

/* mr.c */
struct ibv_mr *softib_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length,
			     uint64_t iova, int access);
int softib_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibpd,
		    void *addr, size_t length, int access);
int softib_dereg_mr(struct verbs_mr *vmr);
struct ibv_mw *softib_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type);
int softib_dealloc_mw(struct ibv_mw *ibmw);
int softib_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *ibmw,
		   struct ibv_mw_bind *bind);

/* map.c: MAP_FAILED, with errno, when there is no room. */
void *softib_map(struct ibv_context *ctx, uint64_t offset, size_t size);

/*
 * A place for a mapping of `size` bytes that is needed later: 0 or an errno.  Either
 * of the other two ends it; softib_map_there() as softib_map(), but in that place.
 */
struct softib_place {
	void			*addr;
	size_t			size;
};

int softib_place_take(struct softib_place *place, size_t size);
void softib_place_give_back(struct softib_place *place);
void *softib_map_there(struct ibv_context *ctx, uint64_t offset, size_t size,
		       struct softib_place *place);

/* Bytes of a queue's mapping, with its first entry at `offset`. */
static inline size_t softib_map_size(size_t offset, uint32_t entries,
				     size_t stride)
{
	size_t slots = entries > 1 ? 1UL << (32 - __builtin_clz(entries - 1)) :
				     1;

	return (offset + slots * stride + VMRI_PAGE_SIZE - 1) &
	       ~(size_t)(VMRI_PAGE_SIZE - 1);
}

/* cq.c */
struct ibv_cq *softib_create_cq(struct ibv_context *ibctx, int cqe,
				struct ibv_comp_channel *channel,
				int comp_vector);
struct ibv_cq_ex *softib_create_cq_ex(struct ibv_context *ibctx,
				      struct ibv_cq_init_attr_ex *attr);
int softib_resize_cq(struct ibv_cq *ibcq, int cqe);
int softib_destroy_cq(struct ibv_cq *ibcq);
int softib_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
/* The number of completions, or -EIO when there will never be another. */
int softib_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc);

/*
 * The next completion: 0, ENOENT when there is none, or EIO when there will
 * never be another.  Who has looked at it consumes it and, at last, shows the
 * hypervisor that its room is free.  All under cq->lock.
 */
int softib_cq_peek(struct softib_cq *cq, const struct vmri_cqe **cqe);
void softib_cq_consume(struct softib_cq *cq, const struct vmri_cqe *cqe);
void softib_cq_release(struct softib_cq *cq);

unsigned int softib_wc_flags(const struct vmri_cqe *cqe);

/*
 * Enter a new queue pair into its CQs; take it out with all its completions;
 * or only drop those.
 */
void softib_cqs_attach_qp(struct softib_qp *qp);
void softib_cqs_detach_qp(struct softib_qp *qp);
void softib_cqs_clean_qp(struct softib_qp *qp);

/* cqex.c: what ibv_start_poll() and ibv_wc_read_*() call. */
void softib_cq_init_ex(struct softib_cq *cq, uint64_t wc_flags);
/* srq.c */
struct ibv_srq *softib_create_srq(struct ibv_pd *ibpd,
				  struct ibv_srq_init_attr *attr);
struct ibv_srq *softib_create_srq_ex(struct ibv_context *ibctx,
				     struct ibv_srq_init_attr_ex *attr);
int softib_destroy_srq(struct ibv_srq *ibsrq);
int softib_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
		      int attr_mask);
int softib_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int softib_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num);
int softib_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr);
struct ibv_xrcd *softib_open_xrcd(struct ibv_context *ibctx,
				  struct ibv_xrcd_init_attr *attr);
int softib_close_xrcd(struct ibv_xrcd *ibxrcd);

/* qp.c */
struct ibv_qp *softib_create_qp(struct ibv_pd *ibpd,
				struct ibv_qp_init_attr *attr);
struct ibv_qp *softib_create_qp_ex(struct ibv_context *ibctx,
				   struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *softib_open_qp(struct ibv_context *ibctx,
			      struct ibv_qp_open_attr *attr);
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

/*
 * Put receives into @rq, which is a queue pair's or shared.  *@ring is set when
 * somebody waits for them.
 */
int softib_post_recvs(struct softib_wq *rq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad_wr, bool *ring);

/* wr.c */

/* Has this type of queue pair all these IBV_QP_EX_WITH_*? */
bool softib_has_send_ops(enum ibv_qp_type type, uint64_t flags);
/* Let a queue pair's owner call them. */
void softib_set_send_ops(struct softib_qp *qp, uint64_t flags);

#endif /* __SOFTIB_H__ */
