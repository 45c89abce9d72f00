/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SoftIB's uplink: dom0's driver that has a RoCE NIC carry what guests say to those
 * of other hosts.
 *
 * VMRI asks by messages in a ring (vmri/uplink.h) for twins of the guests' queue
 * pairs and memory regions, and for requests to be posted to them.  All that VMRI
 * says is true; grants, and the memory that they name, are the guests'.
 *
 * Who does what
 * =============
 * The runner, a kernel thread of the uplink's, reads the ring, posts, polls, and
 * hands results back.  It never waits for the NIC.  What takes time (making,
 * moving and ending twins) is done by workers, for each twin in order, who give
 * their answers to the runner.  At the end of the uplink whoever ends it is the
 * runner, when the thread has stopped.  Datagrams for other hosts, and from them, it
 * sends and receives itself.
 *
 * Locking
 * =======
 *   uplink_lifecycle (main.c)	mutex: which uplink there is.
 *   up->pds_lock		mutex: the list of protection domains, their users.
 *   pd->lock			mutex: the domain's registering queue pair.
 *   qp->poll_lock		mutex: polling, against the end of the queue pair.
 *   uplink_budget_lock (budget.c)	mutex: what guests have taken of dom0.
 *   up->lock			spinlock, irqs off: what runner and workers are to do.
 *
 *   sk_callback_lock		the socket's: who is told of what arrives.
 *
 * The mutexes are taken in this order, up->lock after any of them.  What has no
 * lock is the runner's own, or the worker's whose turn it is.
 */
#ifndef SOFTIB_UPLINK_H
#define SOFTIB_UPLINK_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <xen/grant_table.h>

#include <vmri/uplink.h>

#include "wire.h"

#define UPLINK_PORT		1	/* of the NIC */
#define UPLINK_MAX_SGE		32
#define UPLINK_MAX_INLINE	512
#define UPLINK_MAX_WR		4096	/* of a send or receive queue */

/* What is counted of a guest's budget for what the NIC's driver has. */
#define UPLINK_WQE		64	/* bytes of a request, but its entries */
#define UPLINK_CQE		64	/* bytes of a completion */
#define UPLINK_QP_KIB		32	/* a queue pair, its queues apart */

/* ---- the uplink ---- */

/* The ring, in pages that VMRI writes to. */
struct uplink_ring {
	struct vmri_uplink_hdr *hdr;
	void *units;
	u64 *gfns;			/* of the pages, for VMRI */
	u32 nr_pages;
	u32 cons;
};

/* A request as the verbs want it. */
struct uplink_request {
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
	} send;
	struct ib_recv_wr recv;
	struct ib_sge sge[UPLINK_MAX_SGE];
};

/* A packet as it comes from another host. */
struct uplink_packet {
	struct uplink_wire wire;
	u8 data[VMRI_DATAGRAM_MAX];
};

/* The way of datagrams to and from other hosts. */
struct uplink_relay {
	struct socket *sock;		/* NULL: there is none */
	void (*data_ready)(struct sock *sk);	/* the socket's own */
	bool arrived;			/* something may be to be received */
	struct uplink_packet packet;	/* the runner's, to receive one */
};

struct uplink {
	struct ib_device *ibdev;
	struct vmri_uplink_caps caps;
	u32 number;			/* that VMRI gave it */
	int irq;
	struct task_struct *thread;
	wait_queue_head_t wait;		/* the runner, for something to do */

	/* The runner's own. */
	struct uplink_ring ring;
	struct xarray twins;		/* VMRI's name -> struct uplink_twin */
	struct xarray guests;		/* domid -> struct uplink_guest */
	unsigned int nr_twins;		/* those that are being ended, too */
	bool closing;			/* all twins end; workers may look */
	bool lost;			/* the NIC keeps something of it */
	unsigned int nr_results;
	struct vmri_uplink_result results[VMRI_UPLINK_RESULTS];
	u8 message[VMRI_UPLINK_DATAGRAM_UNITS * VMRI_UPLINK_UNIT] __aligned(8);
	struct uplink_request request;

	struct uplink_relay relay;

	spinlock_t lock;		/* ready, answers, the twins' ops and busy */
	struct list_head ready;		/* struct uplink_qp, to be polled */
	struct list_head answers;	/* struct uplink_op, that are done */

	struct mutex pds_lock;		/* pds, and how many users each has */
	struct list_head pds;		/* struct uplink_pd */
};

/* ---- protection domains ---- */

struct uplink_registration {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

/* One of a guest's, and what it takes to register memory there. */
struct uplink_pd {
	struct list_head entry;		/* in up->pds */
	unsigned int users;
	u16 domid;
	u32 dev_id;
	u32 pd;				/* VMRI's */

	struct mutex lock;		/* all below */
	struct ib_pd *ibpd;		/* NULL: not made yet */
	struct ib_cq *cq;
	struct ib_qp *qp;		/* connected to itself; NULL if broken */
	bool connected;
	bool broken;			/* a request does not come back */
	struct uplink_registration reg;	/* the one that is under way */
};

/* ---- guests ---- */

/* One that has twins; the runner's. */
struct uplink_guest {
	u16 domid;
	unsigned int twins;
	struct workqueue_struct *wq;	/* its workers */
};

/* ---- twins ---- */

/* Something for a worker to do, and then its answer. */
struct uplink_op {
	struct list_head entry;		/* in twin->ops, then in up->answers */
	struct uplink_twin *twin;
	u8 type;			/* VMRI_UPLINK_* */
	struct vmri_uplink_result result;
	union {
		struct vmri_uplink_msg msg;	/* _CREATE_* */
		struct vmri_qp_modify attr;	/* _MODIFY */
	};
};

struct uplink_twin {
	struct uplink *up;
	struct uplink_guest *guest;	/* the runner's, until it has gone */
	struct kref ref;
	bool is_qp;
	u32 name;			/* VMRI's */
	struct uplink_pd *pd;		/* NULL: there is nothing on the NIC */
	u32 kib;			/* of its guest's budget */
	bool lost;			/* the NIC does not let go of it */

	struct work_struct work;
	struct list_head ops;		/* struct uplink_op, in order */
	bool busy;			/* a worker has it, or is about to */
	struct uplink_op create;
	struct uplink_op destroy;
};

/* Pages of a guest that are mapped here. */
struct uplink_grants {
	struct page **pages;
	grant_handle_t *handles;
	u32 nr;
	u32 mapped;			/* of the first so many */
	bool readonly;
};

struct uplink_mr {
	struct uplink_twin twin;
	struct ib_mr *ibmr;
	struct uplink_grants grants;
	struct sg_table sgt;
	enum dma_data_direction direction;
	bool is_mapped;			/* for DMA */
};

/* A request that was posted, or would have been. */
struct uplink_slot {
	u64 wr_id;			/* the guest's */
	u32 length;			/* bytes */
	u8 opcode;			/* VMRI_WC_OP_* */
	u8 flags;			/* VMRI_SEND_* */
	bool refused;			/* by the NIC's driver */
};

/* One direction: written by the runner, looked at by the worker. */
struct uplink_wq {
	struct uplink_slot *slots;
	u32 size;			/* a power of two, or 0 */
	u32 prod;
	u32 cons;
};

/* The places of inline data: one a slot of the send queue. */
struct uplink_inline {
	u32 stride;			/* bytes, a power of two; 0: none */
	u32 nr_pages;
	void **pages;
	u64 *dma;
};

struct uplink_qp {
	struct uplink_twin twin;
	struct ib_cq *ibcq;
	struct ib_qp *ibqp;		/* NULL: nothing can be posted */
	enum ib_qp_state state;		/* the worker's */
	struct uplink_wq sq;
	struct uplink_wq rq;
	struct uplink_inline inl;
	wait_queue_head_t drained;	/* the worker, for nothing under way */
	bool stuck;			/* it did not drain, and is of no use */

	struct mutex poll_lock;		/* ended */
	bool ended;			/* or not begun: it is not polled */
	struct list_head ready;		/* in up->ready, with a reference */
	unsigned long flags;		/* UPLINK_QP_* */
};

/* Bits of uplink_qp.flags. */
#define UPLINK_QP_READY		31	/* it is in up->ready */
/* Below: VMRI_EVENT_QP_* that the NIC has raised. */

static inline struct uplink_mr *to_uplink_mr(struct uplink_twin *twin)
{
	return container_of(twin, struct uplink_mr, twin);
}

static inline struct uplink_qp *to_uplink_qp(struct uplink_twin *twin)
{
	return container_of(twin, struct uplink_qp, twin);
}

/* main.c */
void uplink_lose(struct uplink *up, const char *what, int error);

/* hcall.c: the only place that calls Xen's VMRI. */
int uplink_hcall_version(void);
int uplink_hcall_open(struct uplink *up, u8 log2_units, u32 *port);
void uplink_hcall_close(struct uplink *up);
int uplink_hcall_done(struct uplink *up,
		      const struct vmri_uplink_result *results, u32 nr);
int uplink_hcall_deliver(struct uplink *up, const struct vmri_datagram *datagram,
			 const void *data, u32 length);

/* ring.c */
int uplink_ring_open(struct uplink *up);
void uplink_ring_close(struct uplink *up);
int uplink_start(struct uplink *up);
void uplink_stop(struct uplink *up);
void uplink_kick(struct uplink *up);

/* twin.c */
void uplink_twin_create(struct uplink *up, const struct vmri_uplink_msg *msg);
void uplink_twin_modify(struct uplink *up, const struct vmri_uplink_msg *msg,
			const struct vmri_qp_modify *attr);
void uplink_twin_destroy(struct uplink *up, const struct vmri_uplink_msg *msg);
struct uplink_qp *uplink_find_qp(struct uplink *up, u32 name);
void uplink_twin_get(struct uplink_twin *twin);
void uplink_twin_put(struct uplink_twin *twin);
int uplink_twin_charge(struct uplink_twin *twin, u32 kib);
void uplink_twin_lose(struct uplink_twin *twin, int error);
void uplink_end_twins(struct uplink *up);

/* guest.c */
struct uplink_guest *uplink_guest_get(struct uplink *up, u16 domid);
void uplink_guest_put(struct uplink *up, struct uplink_guest *guest);

/* budget.c */
int uplink_budget_take(u16 domid, u32 kib);
void uplink_budget_give(u16 domid, u32 kib);

/* pd.c */
struct uplink_pd *uplink_pd_get(struct uplink *up,
				const struct vmri_uplink_msg *msg);
void uplink_pd_put(struct uplink *up, struct uplink_pd *pd);
int uplink_pd_register(struct uplink *up, struct uplink_pd *pd,
		       struct ib_mr *ibmr, int access);

/* grants.c */
int uplink_grants_map(struct uplink_grants *g, u16 domid, const u32 *refs,
		      u32 nr, bool readonly);
void uplink_grants_unmap(struct uplink_grants *g);
u32 *uplink_grants_read(u16 domid, u32 list, u32 pages);

/* mr.c */
int uplink_mr_create(struct uplink_mr *mr, const struct vmri_uplink_msg *msg,
		     u32 *key);
void uplink_mr_destroy(struct uplink_mr *mr);

/* qp.c */
int uplink_qp_create(struct uplink_qp *qp, const struct vmri_uplink_msg *msg,
		     u32 *qpn);
void uplink_qp_destroy(struct uplink_qp *qp);
void uplink_qp_make_ready(struct uplink_qp *qp);

/* qpstate.c */
int uplink_qp_modify(struct uplink_qp *qp, const struct vmri_qp_modify *attr);
void uplink_qp_drain(struct uplink_qp *qp);

/* address.c */
const struct ib_gid_attr *uplink_find_gid(struct uplink *up, const u8 *dgid);
int uplink_resolve(struct uplink_qp *qp, const struct vmri_av *av,
		   struct rdma_ah_attr *ah);

/* post.c */
void uplink_post_send(struct uplink *up, struct uplink_qp *qp,
		      const struct vmri_uplink_msg *msg, const void *payload);
void uplink_post_recv(struct uplink *up, struct uplink_qp *qp,
		      const struct vmri_uplink_msg *msg, const void *payload);

/* done.c */
void uplink_put_result(struct uplink *up,
		       const struct vmri_uplink_result *result);
void uplink_flush(struct uplink *up);
void uplink_settle(struct uplink *up, struct uplink_qp *qp, bool recv);
void uplink_poll_ready(struct uplink *up);
void uplink_take_answers(struct uplink *up);

/* relay.c */
void uplink_relay_open(struct uplink *up);
void uplink_relay_close(struct uplink *up);
void uplink_relay_send(struct uplink *up, const struct vmri_uplink_msg *msg,
		       void *payload);
void uplink_relay_receive(struct uplink *up);

/* Pages of a region, at the most: what the NIC takes, and two lists can name. */
static inline u32 uplink_max_pages(const struct ib_device *ibdev)
{
	return min_t(u32, ibdev->attrs.max_fast_reg_page_list_len,
		     VMRI_TWIN_GRANTS * VMRI_TWIN_GRANTS);
}

/* Has somebody given the runner something to do? */
static inline bool uplink_has_chores(struct uplink *up)
{
	return !list_empty_careful(&up->ready) ||
	       !list_empty_careful(&up->answers);
}

/* The slot of a free-running index. */
static inline struct uplink_slot *uplink_slot(const struct uplink_wq *wq,
					      u32 index)
{
	return &wq->slots[index & (wq->size - 1)];
}

#endif /* SOFTIB_UPLINK_H */
