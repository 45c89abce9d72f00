/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SoftIB: an InfiniBand device made of VMRI, a service of the Xen hypervisor.
 *
 * Locking
 * =======
 *   softib_lifecycle (main.c)	who tears a device down: the backend that closes,
 *				the removal of the driver, or a reboot.
 *   srq->lock			who modifies a shared receive queue.
 *   dev->port_lock		what modify_port, modify_device and a reset of
 *				counters change.
 *   cq->resize_lock		a CQ's change of size, command and all.
 *   softib_wq.lock		posting to a queue of the kernel.
 *   cq->lock			polling and arming a queue of the kernel.
 *   dev->cqs, srqs, qps	the xarrays' own locks: lookup by number.
 *   dev->commands.lock		results of commands that Xen answered later.
 *   dev->reports.lock		who is told of events, and what has been told.
 *   informs->lock (inform.h)	who has asked for that.
 *   dev->calls (SRCU)		hypercalls; see softib_settle().
 *   sw->lock (switch.h)		which device is at which port of the switch.
 *
 * softib_lifecycle, srq->lock, resize_lock and reports.lock are mutexes, none taken
 * inside another but the last inside the first; the rest are spinlocks that interrupts may take.
 * A work queue's lock is taken before a completion queue's, and an xarray's lock
 * is the innermost.  No spinlock is held over a callback into ib_core or over a
 * hypercall.
 *
 * The rings of a process have no lock here: the driver never reads them.
 */
#ifndef SOFTIB_H
#define SOFTIB_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/if_ether.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/refcount.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <xen/xenbus.h>

#include <vmri/ring.h>
#include <vmri/vmri.h>

#include "compat.h"
#include "inform.h"
#include "sa.h"

#define SOFTIB_MAX_EQS		8
#define SOFTIB_EQ_LOG2_ENTRIES	8
#define SOFTIB_QPN_NONE		U32_MAX

/* Results of commands that have ended before their caller looks for them. */
#define SOFTIB_MAX_COMMANDS	16

struct softib_commands {
	struct semaphore slots;		/* calls that may leave a result behind */
	spinlock_t lock;		/* protects done */
	wait_queue_head_t wait;
	struct softib_result {
		bool valid;
		u16 command;
		u32 id;
		s64 result;
	} done[SOFTIB_MAX_COMMANDS];
};

/* The network interface that a device belongs to; by RTNL. */
struct softib_roce {
	struct notifier_block nb;
	u8 mac[ETH_ALEN];		/* constant: the interface's */
	struct net_device *netdev;	/* or NULL; ib_core refers to it */
	bool up;			/* also read without */
	bool registered;		/* the device, at ib_core */
};

/* Who is told of events, and of what (sareport.c). */
struct softib_reports {
	struct softib_informs informs;
	struct mutex lock;		/* all up to work */
	struct ib_mad_agent *agent;	/* which sends; NULL: none yet, or any more */
	struct softib_view told;
	bool watching;			/* told is what there was; read without */
	u32 last_tid;
	struct delayed_work work;
	unsigned long next;		/* jiffies: no look before */
	atomic_t pending;		/* reports that are not answered yet */
	bool held;			/* too many for more */
};

struct softib_dev {
	struct ib_device ibdev;
	struct xenbus_device *xdev;
	unsigned int hypercall;		/* its number on this host */
	u32 dev_id;			/* VMRI's number within this domain */
	u32 doorbells;			/* SOFTIB_DOORBELL_* past this driver */
	bool gone;			/* VMRI has no such device any more */
	bool grants_stay;		/* dom0 was waited for in vain */
	atomic_long_t grants;		/* that its processes have */
	struct srcu_struct calls;	/* hypercalls that are under way */
	struct vmri_dev_attr attr;	/* limits and GUIDs, which do not change */

	spinlock_t port_lock;		/* the node's description, and all up to wq */
	u32 port_cap_flags;
	struct softib_pma pma;		/* when they were reset */

	struct workqueue_struct *wq;	/* QPs' events and the rest of their runs */
	struct xarray cqs;		/* handle -> struct softib_cq.ref */
	struct xarray srqs;		/* handle -> struct softib_srq.ref */
	struct xarray qps;		/* QPN -> struct softib_qp.ref */
	struct softib_commands commands;
	struct softib_sm *sm;		/* of a device for a manager, else NULL */
	struct softib_reports reports;
	struct softib_roce roce;	/* of a device on a RoCE fabric */

	unsigned int num_eqs;
	struct softib_eq *eqs;
};

struct softib_ucontext {
	struct ib_ucontext ibuctx;
};

/* Keeps an object while the handler of an event uses it. */
struct softib_ref {
	refcount_t count;
	struct completion unused;
};

/* Memory that this guest and VMRI share, and perhaps one of its processes. */
struct softib_region {
	struct rdma_user_mmap_entry entry;
	bool published;			/* the entry counts the references */
	void *addr;
	u32 nr_pages;
	struct page **pages;
	u64 *gfns;			/* of the pages, for VMRI */
};

struct softib_eq {
	struct softib_dev *dev;
	struct softib_region *region;
	struct vmri_eq_hdr *hdr;
	const struct vmri_event *ring;
	u32 cons;			/* by the interrupt handler */
	u32 handle;
	int irq;
	char name[32];
};

struct softib_pd {
	struct ib_pd ibpd;
	u32 handle;
};

/* Its targets reach memory by SRQs; they have a protection domain of their own. */
struct softib_xrcd {
	struct ib_xrcd ibxrcd;
	u32 handle;
	u32 pd;
};

struct softib_ah {
	struct ib_ah ibah;
	struct vmri_av av;
};

/* A queue pair's or memory region's on the NIC of an uplink. */
struct softib_twin {
	u32 handle;			/* VMRI's; 0: there is none */
	u32 number;			/* on the NIC: QPN or key */
};

/* Pages that dom0 may map. */
struct softib_grants {
	u32 charged;			/* to the device: nr or more */
	u32 nr;
	u32 *refs;
	struct page **pages;		/* with a reference each */
};

struct softib_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem;		/* of a process' memory, else NULL */
	int access;			/* IB_ACCESS_* */
	u64 *gfns;			/* of the pages, for VMRI */
	u32 nr_gfns;
	u32 max_gfns;			/* of a fast MR, else 0 */
	u32 offset;			/* of a fast MR's first byte in its page */
	struct softib_twin twin;
	struct softib_grants grants;	/* for the twin */
};

struct softib_mw {
	struct ib_mw ibmw;
};

struct softib_cq {
	struct ib_cq ibcq;
	struct softib_region *region;
	struct vmri_cq_hdr *hdr;
	struct vmri_cqe *ring;
	u32 handle;
	u32 eq;				/* VMRI's, where its events go */
	u32 entries;			/* a power of two */
	bool user;

	spinlock_t lock;		/* polling, arming: all up to wish */
	u32 cons;
	struct mutex resize_lock;	/* one at a time */
	bool resizing;			/* nobody may poll or arm */
	u32 wish;			/* VMRI_ARM_* that came meanwhile */

	struct softib_ref ref;		/* in dev->cqs */
};

/* How a queue lies in its region. */
struct softib_wq_layout {
	u32 entries;			/* a power of two; 0: no such queue */
	u32 stride;			/* bytes, a power of two */
	u32 frames;			/* entries that a slot holds */
	size_t offset;			/* bytes */
};

/* What a list of entries comes to. */
struct softib_sgl {
	u64 length;			/* bytes */
	u32 frames;			/* entries for VMRI */
	u32 ind_start;			/* where they are in the indirect list */
	bool indirect;
};

/* Scatter/gather entries that do not fit into the slot of their request. */
struct softib_indirect {
	struct vmri_sge *ring;
	u32 first;			/* its index in the QP's indirect list */
	u32 entries;			/* a power of two */
	u32 prod;
	u32 cons;
	u32 *end;			/* per slot: prod behind its entries */
};

/* One direction of a QP of the kernel. */
struct softib_wq {
	spinlock_t lock;		/* posting: all that changes below */
	struct vmri_wq_hdr *hdr;
	void *slots;
	u32 entries;			/* a power of two; 0: no such queue */
	u32 log2_stride;
	u32 max_sge;			/* of a request by its poster */
	u32 max_frames;			/* entries that a slot holds */
	u32 prod;
	u32 cons;			/* as last seen */
	struct softib_wq *moves_to;	/* what is posted is put there, too */
	struct softib_indirect ind;
};

struct softib_srq_layout {
	struct softib_wq_layout wq;
	u32 ind_entries;		/* a power of two; of the kernel's */
	size_t ind_offset;		/* bytes */
	size_t size;
};

struct softib_srq {
	struct ib_srq ibsrq;
	struct mutex lock;		/* modifying: region and layout */
	struct softib_region *region;
	struct softib_srq_layout layout;
	u32 handle;
	u32 max_sge;			/* of a request by its poster */
	bool user;
	struct softib_wq wq;
	struct work_struct work;	/* the rest of a run */
	struct softib_ref ref;		/* in dev->srqs */
};

/* Bits of softib_qp.pending besides VMRI_EVENT_*. */
#define SOFTIB_QP_FLUSH		31

struct softib_qp {
	struct ib_qp ibqp;
	struct softib_region *region;
	struct vmri_qp_hdr *hdr;
	bool user;
	bool sig_all;
	enum ib_qp_state state;		/* as last set; VMRI may have left it */
	struct ib_qp_cap cap;
	struct softib_wq sq;
	struct softib_wq rq;
	struct softib_twin twin;

	unsigned long pending;		/* bits for the work to look at */
	struct work_struct work;
	struct softib_ref ref;		/* in dev->qps */
};

static inline struct softib_dev *to_softib_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct softib_dev, ibdev);
}

static inline bool softib_is_roce(const struct softib_dev *dev)
{
	return dev->attr.flags & VMRI_DEVF_ROCE;
}

static inline struct softib_pd *to_softib_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct softib_pd, ibpd);
}

static inline struct softib_ah *to_softib_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct softib_ah, ibah);
}

static inline struct softib_mr *to_softib_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct softib_mr, ibmr);
}

static inline struct softib_cq *to_softib_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct softib_cq, ibcq);
}

static inline struct softib_srq *to_softib_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct softib_srq, ibsrq);
}

static inline struct softib_xrcd *to_softib_xrcd(struct ib_xrcd *ibxrcd)
{
	return container_of(ibxrcd, struct softib_xrcd, ibxrcd);
}

static inline struct softib_qp *to_softib_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct softib_qp, ibqp);
}

/*
 * hcall.c: the only place that calls Xen.  Results are 0 or a negative errno of
 * Linux.  softib_call() and softib_*schedule() may be used in any context and
 * never wait; softib_command() and softib_destroy() may sleep.
 */
int softib_version(unsigned int hypercall, struct vmri_version *version);
int softib_schedule(struct softib_dev *dev, u32 qpn);
int softib_srq_schedule(struct softib_dev *dev, u32 handle);
int softib_command(struct softib_dev *dev, unsigned int cmd, void *arg,
		   const u32 *id);
int softib_command_value(struct softib_dev *dev, unsigned int cmd, void *arg,
			 const u32 *id, s64 *value);
int softib_command_again(struct softib_dev *dev, unsigned int cmd, void *arg,
			 const u32 *id);
int softib_destroy(struct softib_dev *dev, unsigned int cmd, u32 handle);
void softib_settle(struct softib_dev *dev);
void softib_commands_init(struct softib_commands *cmds);
void softib_command_done(struct softib_dev *dev, const struct vmri_event *ev);

/* device.c */
int softib_device_register(struct softib_dev *dev);
void softib_device_unregister(struct softib_dev *dev);
bool softib_owns(const struct ib_device *ibdev);

/* sa.c */
extern struct ib_client softib_sa_client;

/* sareport.c */
struct ib_mad_agent;
struct ib_mad_send_wc;
void softib_reports_init(struct softib_dev *dev);
void softib_reports_stop(struct softib_dev *dev);
void softib_report_by(struct softib_dev *dev, struct ib_mad_agent *agent);
int softib_report_watch(struct softib_dev *dev);
void softib_report_changed(struct softib_dev *dev);
void softib_report_sent(struct softib_dev *dev,
			const struct ib_mad_send_wc *sent);

/* eq.c */
int softib_eqs_create(struct softib_dev *dev);
void softib_eqs_destroy(struct softib_dev *dev);
const struct cpumask *softib_get_vector_affinity(struct ib_device *ibdev,
						 int vector);

void softib_port_event(struct softib_dev *dev, enum ib_event_type type);

/* roce.c */
int softib_roce_start(struct softib_dev *dev);
void softib_roce_registered(struct softib_dev *dev);
void softib_roce_stop(struct softib_dev *dev);
int softib_add_gid(const struct ib_gid_attr *attr, void **context);
int softib_del_gid(const struct ib_gid_attr *attr, void **context);

/* ref.c */
int softib_ref_publish(struct softib_ref *ref, struct xarray *objects, u32 id);
void softib_ref_retire(struct softib_ref *ref, struct xarray *objects, u32 id);
struct softib_ref *softib_ref_get(struct xarray *objects, u32 id);
void softib_ref_put(struct softib_ref *ref);

/* mmap.c */
struct softib_region *softib_region_create(size_t size);
int softib_region_publish(struct softib_region *region,
			  struct ib_ucontext *ibuctx, u64 *offset);
void softib_region_destroy(struct softib_region *region);
struct vmri_frames softib_region_frames(const struct softib_region *region);
u64 softib_page_gfn(struct page *page);
struct page *softib_virt_to_page(const void *addr);
int softib_mmap(struct ib_ucontext *ibuctx, struct vm_area_struct *vma);
void softib_mmap_free(struct rdma_user_mmap_entry *entry);
int softib_respond(struct ib_udata *udata, void *resp, size_t size);

/* pd.c */
int softib_alloc_ucontext(struct ib_ucontext *ibuctx, struct ib_udata *udata);
void softib_dealloc_ucontext(struct ib_ucontext *ibuctx);
void softib_disassociate_ucontext(struct ib_ucontext *ibuctx);
int softib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int softib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int softib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int softib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

/* ah.c */
int softib_av_from_attr(const struct softib_dev *dev,
			const struct rdma_ah_attr *attr, struct vmri_av *av);
void softib_av_to_attr(const struct softib_dev *dev, const struct vmri_av *av,
		       struct rdma_ah_attr *attr);
int softib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		     struct ib_udata *udata);
int softib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int softib_destroy_ah(struct ib_ah *ibah, u32 flags);

/* mr.c */
struct ib_mr *softib_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *softib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				 u64 iova, int access, struct ib_udata *udata);
struct ib_mr *softib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				   u64 length, u64 iova, int access,
				   struct ib_pd *pd, struct ib_udata *udata);
int softib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* fast.c */
struct ib_mr *softib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			      u32 max_num_sg);
int softib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		     unsigned int *sg_offset);
u64 softib_fast_list(const struct softib_mr *mr);

/* twin.c */
int softib_twin_qp(struct softib_dev *dev, const struct softib_srq *srq,
		   struct vmri_qp_create *cmd, struct softib_twin *twin);
int softib_twin_mr(struct softib_dev *dev, struct vmri_mr_register *cmd,
		   struct ib_umem *umem, struct softib_twin *twin,
		   struct softib_grants *grants);
void softib_twin_destroy(struct softib_dev *dev, struct softib_twin *twin);
bool softib_twin_retry(u32 twin, int error, int *tries);
void softib_grants_end(struct softib_dev *dev, struct softib_grants *g);

/* mw.c */
int softib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int softib_dealloc_mw(struct ib_mw *ibmw);

/* mcast.c */
int softib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 mlid);
int softib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 mlid);

/* cq.c */
int softib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     struct uverbs_attr_bundle *attrs);
int softib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
struct softib_region *softib_cq_region(u32 entries);
void softib_cq_use(struct softib_cq *cq, struct softib_region *region,
		   u32 entries);
bool softib_cq_arm(struct softib_cq *cq, u32 arm);
int softib_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int softib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void softib_cq_notify(struct softib_cq *cq);
void softib_cq_clean(struct softib_cq *cq, u32 qpn);
void softib_cqs_mark_dead(struct softib_dev *dev);

/* resize.c */
int softib_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
/* srq.c */
int softib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		      struct ib_udata *udata);
int softib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int softib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		      enum ib_srq_attr_mask mask, struct ib_udata *udata);
int softib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int softib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad_wr);
void softib_srqs_mark_dead(struct softib_dev *dev);

/* qp.c */
int softib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		     struct ib_udata *udata);
int softib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
void softib_qp_clean_cqs(struct softib_qp *qp);
void softib_qp_later(struct softib_qp *qp, unsigned int what);
void softib_qps_mark_dead(struct softib_dev *dev);

/* qpstate.c */
int softib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata);
int softib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init);

/* post.c */
int softib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr);
int softib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr);
int softib_put_recvs(struct softib_wq *rq, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr, bool *ring);
void softib_qp_run(struct softib_qp *qp);
void softib_qp_run_more(struct softib_qp *qp);

int softib_post_sends(struct softib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr);

/* sm.c */
int softib_sm_start(struct softib_dev *dev);
void softib_sm_stop(struct softib_dev *dev);
void softib_sm_update(struct softib_dev *dev);
int softib_sm_post_send(struct softib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad_wr);
void softib_sm_fix_wc(struct ib_wc *wc);
bool softib_sm_answers(struct softib_dev *dev, struct ib_smp *smp, u16 *status);

/* wq.c */
void softib_wq_lay_out(struct softib_wq_layout *l, u32 wrs, u32 header,
		       u32 room, u32 max_sge, size_t *size);
u32 softib_wq_indirect(const struct softib_wq_layout *l, u32 frames);
int softib_wq_init(struct softib_wq *wq, struct vmri_wq_hdr *hdr,
		   const struct softib_region *region,
		   const struct softib_wq_layout *l, u32 max_sge);
void softib_wq_fini(struct softib_wq *wq);
void softib_wq_reap(struct softib_wq *wq);
bool softib_wq_full(struct softib_wq *wq);
void softib_wq_reset(struct softib_wq *wq);
void softib_wq_push(struct softib_wq *wq);
int softib_wq_move(struct softib_wq *wq, struct softib_wq *to);
void softib_wq_moved(struct softib_wq *wq, bool there);
void softib_wq_publish(struct softib_wq *wq);
bool softib_wq_awaited(const struct softib_wq *wq);
int softib_put_sgl(struct softib_wq *wq, struct vmri_sge *direct,
		   const struct ib_sge *sge, int num, struct softib_sgl *sgl);

/* flush.c */
void softib_flush_qp(struct softib_qp *qp);
void softib_flush_all(struct softib_dev *dev);
void softib_finish_users(struct softib_dev *dev);

/* stats.c */
struct rdma_hw_stats *softib_alloc_hw_port_stats(struct ib_device *ibdev,
						 u32 port);
int softib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
			u32 port, int index);

/* restrack.c */
int softib_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int softib_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);
int softib_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq);
int softib_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);

/* mad.c */
int softib_process_mad(struct ib_device *ibdev, int flags, u32 port,
		       const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		       const struct ib_mad *in, struct ib_mad *out,
		       size_t *out_size, u16 *out_pkey_index);

/* May processes have peers on other hosts? */
static inline bool softib_has_uplink(const struct softib_dev *dev)
{
	return dev->attr.flags & VMRI_DEVF_UPLINK;
}

/* The entry of a free-running index. */
static inline struct vmri_cqe *softib_cqe(const struct softib_cq *cq, u32 index)
{
	return &cq->ring[index & (cq->entries - 1)];
}

/* The owners of references: NULL for NULL. */
static inline struct softib_cq *softib_cq_of(struct softib_ref *ref)
{
	return ref ? container_of(ref, struct softib_cq, ref) : NULL;
}

static inline struct softib_srq *softib_srq_of(struct softib_ref *ref)
{
	return ref ? container_of(ref, struct softib_srq, ref) : NULL;
}

static inline struct softib_qp *softib_qp_of(struct softib_ref *ref)
{
	return ref ? container_of(ref, struct softib_qp, ref) : NULL;
}

/* Is it the QP0 from which a subnet manager sends? */
static inline bool softib_is_managing(const struct softib_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_SMI &&
	       to_softib_dev(qp->ibqp.device)->sm;
}

/* The slot of a free-running index. */
static inline void *softib_wq_slot(const struct softib_wq *wq, u32 index)
{
	return wq->slots +
	       ((size_t)(index & (wq->entries - 1)) << wq->log2_stride);
}

#endif /* SOFTIB_H */
