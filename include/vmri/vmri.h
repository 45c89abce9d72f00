/* SPDX-License-Identifier: MIT */
/*
 * VMRI (Virtual Machine RDMA Interface): the hypercall that a guest uses.
 *
 *	long vmri_op(unsigned int cmd, unsigned int dev_id, args)
 *
 * cmd is one of VMRI_OP_*, dev_id the index of a device within the calling
 * domain, args the guest virtual address of the command's structure unless the
 * command says that it takes a value.  The result is 0 or a positive value that
 * the command defines, or a negative errno with Xen's numbers.
 *
 * Rules of the ABI:
 *  - structures are fixed-width and naturally aligned, reserved fields and
 *    unknown flag bits must be zero (-EINVAL);
 *  - an unknown command is -ENOSYS, a handle that names nothing -ENOENT, an
 *    object that others still use -EBUSY, a limit that is reached -ENOSPC,
 *    memory that cannot be had -ENOMEM, a frame that may not be used -EPERM;
 *  - guest addresses are 64 bits wide; a list of frames is an array of uint64_t
 *    gfns (what Linux's pfn_to_gfn() gives: the machine frame for PV, the guest
 *    frame for HVM and PVH);
 *  - create, register, modify and destroy may answer -EINPROGRESS: the result
 *    then arrives as a VMRI_EVENT_COMMAND;
 *  - fields marked IN are read, OUT are written by a call that succeeds.
 *    Other fields come back as they were given.
 */
#ifndef VMRI_VMRI_H
#define VMRI_VMRI_H

#include "types.h"
#include "mcg.h"
#include "service.h"
#include "twin.h"

/* The number used unless xenstore ("hypercall" beside the device) has another. */
#define VMRI_HYPERCALL_DEFAULT	43

#define VMRI_MAGIC		0x49524d56U	/* "VMRI" in memory */
#define VMRI_ABI_VERSION	1

/* Commands.  The group is the high byte. */
#define VMRI_OP_version		0x0000	/* struct vmri_version; any dev_id */
#define VMRI_OP_schedule	0x0001	/* args is the QPN itself */
#define VMRI_OP_doorbell	0x0002	/* args is the QPN itself */
#define VMRI_OP_dev_create	0x0100	/* struct vmri_dev_create */
#define VMRI_OP_dev_destroy	0x0101	/* no args */
#define VMRI_OP_dev_query	0x0102	/* struct vmri_dev_attr, OUT */
#define VMRI_OP_dev_counters	0x0103	/* struct vmri_counters, OUT */
#define VMRI_OP_dev_describe	0x0104	/* struct vmri_dev_describe */
#define VMRI_OP_gid_set		0x0105	/* struct vmri_gid_set */
#define VMRI_OP_pd_create	0x0200	/* struct vmri_object */
#define VMRI_OP_pd_destroy	0x0201	/* struct vmri_object */
#define VMRI_OP_xrcd_create	0x0202	/* struct vmri_object */
#define VMRI_OP_xrcd_destroy	0x0203	/* struct vmri_object */
#define VMRI_OP_eq_create	0x0300	/* struct vmri_eq_create */
#define VMRI_OP_eq_destroy	0x0301	/* struct vmri_object */
#define VMRI_OP_eq_poll		0x0302	/* struct vmri_object */
#define VMRI_OP_cq_create	0x0400	/* struct vmri_cq_create */
#define VMRI_OP_cq_destroy	0x0401	/* struct vmri_object */
#define VMRI_OP_cq_resize	0x0402	/* struct vmri_cq_resize */
#define VMRI_OP_srq_create	0x0500	/* struct vmri_srq_create */
#define VMRI_OP_srq_destroy	0x0501	/* struct vmri_object */
#define VMRI_OP_srq_modify	0x0502	/* struct vmri_srq_modify */
#define VMRI_OP_srq_query	0x0503	/* struct vmri_srq_query */
#define VMRI_OP_srq_schedule	0x0504	/* args is the SRQ's handle itself */
#define VMRI_OP_qp_create	0x0600	/* struct vmri_qp_create */
#define VMRI_OP_qp_destroy	0x0601	/* struct vmri_object */
#define VMRI_OP_qp_modify	0x0602	/* struct vmri_qp_modify */
#define VMRI_OP_qp_query	0x0603	/* struct vmri_qp_modify */
#define VMRI_OP_mr_register	0x0700	/* struct vmri_mr_register */
#define VMRI_OP_mr_deregister	0x0701	/* struct vmri_object; fast MRs too */
#define VMRI_OP_mr_reregister	0x0702	/* struct vmri_mr_reregister */
#define VMRI_OP_mr_alloc	0x0703	/* struct vmri_mr_alloc: a fast MR */
#define VMRI_OP_mw_alloc	0x0704	/* struct vmri_mw_alloc */
#define VMRI_OP_mw_free		0x0705	/* struct vmri_object */
#define VMRI_OP_mcg_create	0x0800	/* struct vmri_mcg */
#define VMRI_OP_mcg_destroy	0x0801	/* struct vmri_mcg */
#define VMRI_OP_mcg_attach	0x0802	/* struct vmri_mcg_qp */
#define VMRI_OP_mcg_detach	0x0803	/* struct vmri_mcg_qp */
#define VMRI_OP_mcg_query	0x0804	/* struct vmri_mcg_query */
#define VMRI_OP_port_query	0x0900	/* struct vmri_port_query */
#define VMRI_OP_fabric_watch	0x0901	/* no args */
#define VMRI_OP_twin_create	0x0a00	/* struct vmri_twin */
#define VMRI_OP_twin_destroy	0x0a01	/* struct vmri_object */
#define VMRI_OP_service_set	0x0b00	/* struct vmri_service */
#define VMRI_OP_service_delete	0x0b01	/* struct vmri_service */
#define VMRI_OP_service_query	0x0b02	/* struct vmri_service_query */
/* Privileged from here on, see control.h. */
#define VMRI_OP_control		0x8000

/*
 * VMRI_OP_version: is this VMRI, and which?  The one command that needs no
 * device.
 */
struct vmri_version {
	uint32_t magic;			/* OUT: VMRI_MAGIC */
	uint32_t abi_version;		/* OUT: VMRI_ABI_VERSION */
	uint32_t features;		/* OUT: VMRI_FEATURE_* */
	uint32_t reserved;
};
VMRI_ASSERT_SIZE(vmri_version, 16);

/*
 * How processes of the calling domain may ring doorbells (VMRI_OP_doorbell):
 * by int $VMRI_DOORBELL_VECTOR, or as the guest's kernel makes its hypercalls,
 * by vmcall or vmmcall.
 */
#define VMRI_FEATURE_DOORBELL_INT	0x1U
#define VMRI_FEATURE_DOORBELL_CALL	0x2U

/*
 * VMRI_OP_schedule: run the queues of a QP on this virtual CPU: wake who waits
 * for its receive queue, run its send queue, flush both in the error state.
 * Returns 0 when there is nothing left to do, VMRI_SCHEDULE_MORE when the budget
 * of the call ended first (call again; nothing is lost).
 */
#define VMRI_SCHEDULE_MORE	1

/*
 * VMRI_OP_doorbell: VMRI_OP_schedule by a process, past its kernel, for 64-bit
 * code and for devices whose kernel allows it (VMRI_DEVF_DOORBELL).  Returns 0;
 * when the budget ended first, VMRI_EVENT_QUEUE_READY has the kernel go on.
 * Start work that is queued already is all that it can do: whoever rings, for
 * whatever queue of the domain, its requests are done as if by their owner.
 * -EPERM: the device's kernel does not allow it.
 *
 * As a hypercall: as any other, rdi being the command, rsi the device, rdx the
 * QPN.  From user mode, no other command is let through.
 *
 * As a trap: edi is the device, rsi the QPN, the result is in rax, and no other
 * register changes.  It comes after what the guest's kernel has for this vector.
 * While that has not yet allowed it for any device since it began, it is the
 * general protection fault that it is without VMRI.
 */
#define VMRI_DOORBELL_VECTOR	0x82

/* A handle: PD, XRCD, EQ, CQ, SRQ, QP (its QPN), MR or MW (its key). */
struct vmri_object {
	uint32_t handle;		/* IN for destroy, OUT for create */
	uint32_t reserved;
};
VMRI_ASSERT_SIZE(vmri_object, 8);

/* Entries of a port's P_Key table: a block of IBTA's attribute. */
#define VMRI_MAX_PKEYS		32

/*
 * The device's attributes.  Limits are what can be used, and nothing beyond
 * them is accepted.  GUIDs are in host byte order.
 */
struct vmri_dev_attr {
	uint64_t node_guid;
	uint64_t sys_image_guid;
	uint64_t port_guid;
	uint64_t gid_prefix;		/* subnet prefix, host byte order */
	uint64_t max_mr_size;		/* bytes */
	uint32_t fabric;		/* 24-bit id */
	uint16_t lid;
	uint16_t sm_lid;
	uint16_t max_pkeys;		/* entries of the P_Key table */
	uint8_t port_state;		/* VMRI_PORT_*: IBTA's PortState */
	uint8_t mtu;			/* IBTA code: 5 is 4096 bytes */
	uint32_t max_pd;
	uint32_t max_eq;
	uint32_t max_cq;
	uint32_t max_cqe;		/* entries of one CQ */
	uint32_t max_qp;
	uint32_t max_qp_wr;		/* entries of a send or receive queue */
	uint32_t max_sge;		/* of one request, send or receive */
	uint32_t max_inline;		/* bytes */
	uint32_t max_mr;
	uint32_t max_rd_atomic;
	uint32_t max_msg_size;		/* bytes, RC */
	uint32_t clock_khz;		/* of a CQE's timestamp */
	uint32_t max_xrcd;
	uint64_t max_pinned_pages;	/* 4 KiB pages, MRs and rings together */
	uint32_t max_srq;
	uint32_t max_srq_wr;		/* entries of one */
	uint32_t max_srq_sge;
	uint32_t max_mw;
	uint32_t max_fast_frames;	/* of a fast MR */
	uint32_t max_mcg;		/* groups that the device may be in */
	uint32_t max_mcg_qp;		/* QPs that it may attach, all groups together */
	uint32_t flags;			/* VMRI_DEVF_* */
	uint64_t clock;			/* now, on the clock of the timestamps */
	uint16_t pkeys[VMRI_MAX_PKEYS];	/* 0: an entry without partition */
};
VMRI_ASSERT_SIZE(vmri_dev_attr, 216);

/* Its driver manages the fabric, by commands of dom0 (control.h). */
#define VMRI_DEVF_SM		0x1U
/* It may have peers on other hosts: QPs and MRs that are for them need twins. */
#define VMRI_DEVF_UPLINK	0x2U
/* Its fabric's link layer is RoCE: peers are named by GIDs (see vmri_gid_set). */
#define VMRI_DEVF_ROCE		0x4U

#define VMRI_PORT_DOWN		1
#define VMRI_PORT_INIT		2
#define VMRI_PORT_ARMED		3
#define VMRI_PORT_ACTIVE	4

/*
 * VMRI_OP_dev_create: take the device that dom0 attached into use.
 * -ENODEV: none attached with this id.  -EBUSY: in use already.
 */
struct vmri_dev_create {
	uint32_t flags;			/* IN: VMRI_DEVF_* */
	uint32_t reserved;
	struct vmri_dev_attr attr;	/* OUT */
};
VMRI_ASSERT_SIZE(vmri_dev_create, 224);

/*
 * Processes may ring the doorbells of its queues, until it is destroyed.
 * -EINVAL: not in this domain (vmri_version.features).
 */
#define VMRI_DEVF_DOORBELL	0x1U

/*
 * VMRI_OP_dev_describe: what port_query is to tell others.  It is forgotten with
 * dev_destroy.
 */
struct vmri_dev_describe {
	uint8_t node_desc[64];		/* IN: IBTA's NodeDescription, UTF-8 */
	uint32_t cap_mask;		/* IN: IBTA's PortInfo:CapabilityMask */
	uint32_t reserved;
};
VMRI_ASSERT_SIZE(vmri_dev_describe, 72);

/*
 * VMRI_OP_gid_set: an entry of the GID table of a device on a RoCE fabric, or no
 * longer one when it is all 0.  Several may be the same.  They are forgotten with
 * dev_destroy.
 * There, address vectors have a GRH and no LID; the device is reached by any of its
 * GIDs, and a queue pair that is connected to one that nobody has gets
 * -EHOSTUNREACH.  A datagram's GRH is then what RoCE v2 (IBTA 1.4, annex A17) has:
 * the header of IPv6, or 20 bytes of nothing and that of IPv4.  Its source is the
 * entry sgid_index; from an empty one nothing is sent.  MLIDs are 0.
 * -EEXIST: another device of the fabric has it; -EOPNOTSUPP: the link layer is
 * another; -EINVAL: an index out of range, or a group's GID; -ENODEV: the device
 * is not in use.  IPv4 addresses stand as IPv6 maps them (::ffff:10.0.0.1), those of
 * groups, too.
 */
struct vmri_gid_set {
	uint8_t gid[16];		/* IN: network order */
	uint32_t index;			/* IN: 0 .. VMRI_MAX_GIDS - 1 */
	uint32_t reserved;
};
VMRI_ASSERT_SIZE(vmri_gid_set, 24);
#define VMRI_MAX_GIDS		64

/*
 * VMRI_OP_port_query: of the ports of the caller's fabric, its own among them,
 * that which has the lowest LID of `lid` or higher.  Ports of domains that the
 * caller's may not reach are passed over.  -ENOENT: there is none.  A walk goes on
 * with lid + 1; what comes and goes meanwhile may be missing.
 */
struct vmri_port_query {
	uint16_t lid;			/* IN, OUT */
	uint8_t state;			/* OUT, as all below: VMRI_PORT_* */
	uint8_t mtu;			/* IBTA code */
	uint32_t cap_mask;		/* as its driver says, as node_desc */
	uint64_t guid;			/* of port, node and system image */
	uint64_t gid_prefix;
	uint16_t pkeys[VMRI_MAX_PKEYS];
	uint8_t node_desc[64];
};
VMRI_ASSERT_SIZE(vmri_port_query, 152);

/*
 * VMRI_OP_fabric_watch: raise VMRI_EVENT_FABRIC once, when next a port of the
 * caller's fabric comes, goes or changes, or a multicast group gets its first
 * member or loses its last.  What has changed is found by queries: who watches
 * before it looks misses nothing.  -ENODEV: the device is not in use.
 */

/*
 * VMRI_OP_dev_destroy destroys all objects of the device, in any state, in
 * bounded steps; the attachment stays and the device may be created again.
 */

/* Guest memory that both sides use, in frames of the caller's own. */
struct vmri_frames {
	uint64_t gfns;			/* guest address of uint64_t[nr] */
	uint32_t nr;
	uint32_t reserved;
};
VMRI_ASSERT_SIZE(vmri_frames, 16);

/*
 * VMRI_OP_eq_create: the region holds a struct vmri_eq_hdr and, from
 * VMRI_RING_OFFSET on, 2^log2_entries entries (ring.h).  The guest binds the
 * port, which Xen owns, interdomain to itself.
 */
struct vmri_eq_create {
	struct vmri_frames frames;	/* IN */
	uint8_t log2_entries;		/* IN: 4 .. 16 */
	uint8_t flags;			/* IN: VMRI_EQF_* */
	uint8_t reserved0[2];
	uint32_t vcpu;			/* IN: to be notified first */
	uint32_t handle;		/* OUT */
	uint32_t port;			/* OUT: event channel */
};
VMRI_ASSERT_SIZE(vmri_eq_create, 32);

/*
 * Events of the port and the device come to this one.  -EBUSY: another has it.
 */
#define VMRI_EQF_PORT		0x1U

/*
 * VMRI_OP_eq_poll moves events that found the EQ full into it.  To be called
 * when the guest has drained the ring and its header says overflow.
 */

/* VMRI_OP_cq_create: a struct vmri_cq_hdr and 2^log2_entries CQEs. */
struct vmri_cq_create {
	struct vmri_frames frames;	/* IN */
	uint8_t log2_entries;		/* IN: up to max_cqe */
	uint8_t reserved0[3];
	uint32_t eq;			/* IN: where its events go */
	uint32_t handle;		/* OUT */
	uint32_t reserved1;
};
VMRI_ASSERT_SIZE(vmri_cq_create, 32);

/*
 * VMRI_OP_cq_resize: go on in another region, under traffic.  Its header takes
 * over cons, arm and dead of the old one.  Indices run on: what is written from
 * now on lies in the new ring, from index prod on; what the guest has not
 * consumed before, entries cons .. prod - 1, it copies itself from the old
 * region, which VMRI has let go of, to the same indices of the new one, before
 * it consumes anything.  The guest lets nobody consume or arm meanwhile.
 * -EINVAL: more entries are unconsumed than fit, or the CQ has overflowed.
 */
struct vmri_cq_resize {
	struct vmri_frames frames;	/* IN */
	uint32_t handle;		/* IN */
	uint8_t log2_entries;		/* IN: up to max_cqe */
	uint8_t reserved0[3];
	uint32_t prod;			/* OUT */
	uint32_t reserved1;
};
VMRI_ASSERT_SIZE(vmri_cq_resize, 32);

/*
 * VMRI_OP_srq_create: a shared receive queue (IBTA 1.4, 10.2.9).  The region
 * starts with a struct vmri_wq_hdr; at `offset`, a multiple of the stride, lie
 * the requests (struct vmri_recv_wqe), at ind_offset the indirect list of a
 * kernel queue.  It starts empty: cons becomes what prod is.  When fewer than
 * `limit` requests are left, VMRI_EVENT_SRQ_LIMIT is raised once and the limit
 * becomes 0; one given here counts from the first request that is taken.
 * Requests have no more than VMRI_MAX_SHARED_SGE entries, indirect or not, and
 * their slots are free as soon as a message has taken them.  Their keys are of
 * the SRQ's PD, and privileged if the SRQ is the kernel's, whatever queue pair
 * it is.
 * One with an XRC domain serves XRC targets alone and completes to its own CQ.
 *
 * An index out of range ends it: VMRI_EVENT_SRQ_ERR; a queue pair that wants a
 * receive of it then fails with VMRI_EVENT_QP_FATAL.  A receive that has begun
 * to be filled when its queue pair fails, or is reset, is flushed; in the
 * error state VMRI_EVENT_QP_LAST_WQE_REACHED follows.  -EBUSY from destroy:
 * queue pairs use it.  XRC targets do not: messages that wait for it, or are in
 * the middle of one of its receives, fail with VMRI_VERR_SRQ.
 */
struct vmri_srq_create {
	struct vmri_frames frames;	/* IN */
	uint32_t pd;			/* IN */
	uint32_t eq;			/* IN: asynchronous events */
	uint32_t xrcd;			/* IN: 0 unless for XRC */
	uint32_t cq;			/* IN: 0 unless for XRC */
	uint32_t flags;			/* IN: VMRI_QPF_* */
	uint32_t limit;			/* IN: 0 .. entries */
	uint32_t offset;		/* IN: bytes */
	uint32_t ind_offset;		/* IN: bytes; kernel queues, else 0 */
	uint8_t log2_entries;		/* IN */
	uint8_t log2_stride;		/* IN: 5 .. 12 */
	uint8_t max_sge;		/* IN: 0 .. VMRI_MAX_SHARED_SGE */
	uint8_t ind_log2_entries;	/* IN: entries of 16 bytes; 0: none */
	uint32_t handle;		/* OUT: the SRQ's number, 24 bits */
	uint64_t reserved;
};
VMRI_ASSERT_SIZE(vmri_srq_create, 64);
#define VMRI_MAX_SHARED_SGE	32

/*
 * VMRI_OP_srq_modify (IBTA 1.4, 11.2.3.3).  With RESIZE the queue goes on in
 * another region of the same layout: indices run on, and the guest has copied
 * all that it posted and its own prod there before and posts nothing meanwhile.
 * A limit above what is posted is reached at once.  -EINVAL changes nothing: a
 * limit above the size, more requests than fit, or an index was out of range.
 */
struct vmri_srq_modify {
	struct vmri_frames frames;	/* IN: RESIZE */
	uint32_t handle;		/* IN */
	uint32_t mask;			/* IN: VMRI_SRQA_* */
	uint32_t limit;			/* IN: LIMIT */
	uint32_t offset;		/* IN: RESIZE, as all below */
	uint32_t ind_offset;
	uint8_t log2_entries;
	uint8_t ind_log2_entries;
	uint8_t reserved0[2];
	uint64_t reserved1;
};
VMRI_ASSERT_SIZE(vmri_srq_modify, 48);
#define VMRI_SRQA_RESIZE	0x1U
#define VMRI_SRQA_LIMIT		0x2U

struct vmri_srq_query {
	uint32_t handle;		/* IN */
	uint32_t limit;			/* OUT: 0: not armed, or reached */
	uint32_t entries;		/* OUT */
	uint32_t max_sge;		/* OUT */
};
VMRI_ASSERT_SIZE(vmri_srq_query, 16);

/*
 * VMRI_OP_srq_schedule: receives were posted while the header's `wait` was set.
 * Wakes senders in the order in which they came, one for each request; returns
 * as VMRI_OP_schedule does.
 */

/* Queue pair types: IB_QPT_* of Linux. */
#define VMRI_QPT_SMI		0
#define VMRI_QPT_GSI		1
#define VMRI_QPT_RC		2
#define VMRI_QPT_UC		3
#define VMRI_QPT_UD		4
#define VMRI_QPT_XRC_INI	9	/* sends only; no receive queue */
#define VMRI_QPT_XRC_TGT	10	/* no queues: SRQs that requests name */

/*
 * Queues of the guest's kernel.  Only there the privileged keys and operations
 * are honoured.  Such rings must never be mapped into user space.
 */
#define VMRI_QPF_KERNEL		0x1U
/* What the QP's own device sends to a multicast group does not come back. */
#define VMRI_QPF_BLOCK_LOOPBACK	0x2U

/*
 * VMRI_OP_qp_create.  RC, UC and UD may use a shared receive queue in place of
 * their own.  An XRC target has no send_cq, recv_cq, queues or region at all
 * (frames.nr 0).  The region starts with a struct vmri_qp_hdr; the queues
 * lie at *_offset, a multiple of their stride, neither within the header nor
 * over each other.  A queue may be absent: all its fields are zero.  The send
 * stride is at least 64 + 16 * max_send_sge and 64 + max_inline bytes, the
 * receive stride 16 + 16 * max_recv_sge, both powers of two and no more than a
 * page.  Both queues start empty: cons becomes what prod is.
 * -EBUSY: QP0 or QP1 exists already, or the requested number is taken.
 */
struct vmri_qp_create {
	struct vmri_frames frames;	/* IN */
	uint32_t pd;			/* IN */
	uint32_t send_cq;		/* IN */
	uint32_t recv_cq;		/* IN */
	uint32_t srq;			/* IN: 0 for none */
	uint32_t eq;			/* IN: asynchronous events, QUEUE_READY */
	uint8_t type;			/* IN: VMRI_QPT_* */
	uint8_t reserved0[3];
	uint32_t flags;			/* IN: VMRI_QPF_* */
	uint32_t qpn;			/* IN: 0 for any; OUT */
	uint32_t sq_offset;		/* IN: bytes */
	uint32_t rq_offset;		/* IN: bytes */
	uint32_t ind_offset;		/* IN: bytes; kernel queues, else 0 */
	uint8_t sq_log2_entries;	/* IN */
	uint8_t sq_log2_stride;		/* IN: 6 .. 12 */
	uint8_t rq_log2_entries;	/* IN */
	uint8_t rq_log2_stride;		/* IN: 5 .. 12 */
	uint8_t ind_log2_entries;	/* IN: entries of 16 bytes; 0: none */
	uint8_t max_send_sge;		/* IN */
	uint8_t max_recv_sge;		/* IN */
	uint8_t reserved1;
	uint32_t max_inline;		/* IN: bytes */
	uint32_t xrcd;			/* IN: XRC_TGT, else 0 */
	uint32_t twin;			/* IN: its twin; 0: none */
};
VMRI_ASSERT_SIZE(vmri_qp_create, 80);

/* Queue pair states: IB_QPS_* of Linux. */
#define VMRI_QPS_RESET		0
#define VMRI_QPS_INIT		1
#define VMRI_QPS_RTR		2
#define VMRI_QPS_RTS		3
#define VMRI_QPS_SQD		4
#define VMRI_QPS_SQE		5
#define VMRI_QPS_ERR		6

/* Attribute mask: IB_QP_* of Linux (IBTA 1.4, 11.2.5.2). */
#define VMRI_QPA_STATE			0x00001U
#define VMRI_QPA_CUR_STATE		0x00002U
#define VMRI_QPA_EN_SQD_ASYNC_NOTIFY	0x00004U
#define VMRI_QPA_ACCESS_FLAGS		0x00008U
#define VMRI_QPA_PKEY_INDEX		0x00010U
#define VMRI_QPA_PORT			0x00020U
#define VMRI_QPA_QKEY			0x00040U
#define VMRI_QPA_AV			0x00080U
#define VMRI_QPA_PATH_MTU		0x00100U
#define VMRI_QPA_TIMEOUT		0x00200U
#define VMRI_QPA_RETRY_CNT		0x00400U
#define VMRI_QPA_RNR_RETRY		0x00800U
#define VMRI_QPA_RQ_PSN			0x01000U
#define VMRI_QPA_MAX_QP_RD_ATOMIC	0x02000U
#define VMRI_QPA_ALT_PATH		0x04000U	/* not supported: no APM */
#define VMRI_QPA_MIN_RNR_TIMER		0x08000U
#define VMRI_QPA_SQ_PSN			0x10000U
#define VMRI_QPA_MAX_DEST_RD_ATOMIC	0x20000U
#define VMRI_QPA_PATH_MIG_STATE		0x40000U	/* not supported */
#define VMRI_QPA_CAP			0x80000U	/* not supported */
#define VMRI_QPA_DEST_QPN		0x100000U

/* Access rights: IB_ACCESS_* of Linux, for MRs, MWs and QPs. */
#define VMRI_ACCESS_LOCAL_WRITE		0x01U
#define VMRI_ACCESS_REMOTE_WRITE	0x02U
#define VMRI_ACCESS_REMOTE_READ		0x04U
#define VMRI_ACCESS_REMOTE_ATOMIC	0x08U
#define VMRI_ACCESS_MW_BIND		0x10U	/* MRs: windows may be bound */
#define VMRI_ACCESS_ZERO_BASED		0x20U	/* MWs: addresses start at 0 */
#define VMRI_ACCESS_FLUSH_GLOBAL	0x100U
#define VMRI_ACCESS_QP			0x10fU	/* what a QP may have */
#define VMRI_ACCESS_MR			0x11fU
#define VMRI_ACCESS_MW			0x12eU

/* An address vector, of a connected QP or in a UD request. */
struct vmri_av {
	uint8_t dgid[16];		/* network order, as on the wire */
	uint32_t flow_label;		/* 20 bits */
	uint16_t dlid;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t flags;			/* VMRI_AV_GRH */
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t pkey_index;		/* of a datagram from QP1; others: 0 */
	uint8_t reserved[2];
};
VMRI_ASSERT_SIZE(vmri_av, 32);
#define VMRI_AV_GRH		0x1

/*
 * VMRI_OP_qp_modify and VMRI_OP_qp_query (IBTA 1.4, 10.3.1 and 11.2.5).  Modify
 * checks the mask against the table of transitions; -EINVAL changes nothing.
 * A move to RESET discards all that is posted: cons becomes what prod is.
 * In SQD the request at hand comes to its end; until then (sq_draining) only
 * ERR and RESET may follow.  With en_sqd_async_notify its end raises
 * VMRI_EVENT_SQ_DRAINED, unless that is an error.  With max_dest_rd_atomic 0 a
 * queue pair grants its peer neither READs nor atomics.
 * Query fills all fields.
 */
struct vmri_qp_modify {
	uint32_t qpn;			/* IN */
	uint32_t mask;			/* IN for modify: VMRI_QPA_* */
	uint8_t state;			/* VMRI_QPS_* */
	uint8_t cur_state;
	uint8_t sq_draining;		/* query only */
	uint8_t en_sqd_async_notify;
	uint8_t port;			/* 1 */
	uint8_t path_mtu;		/* IBTA code 1 .. 5 */
	uint8_t timeout;		/* 4.096 us * 2^n; 0 for ever; 5 bits */
	uint8_t retry_cnt;		/* 0 .. 7 */
	uint8_t rnr_retry;		/* 0 .. 7; 7 for ever */
	uint8_t min_rnr_timer;		/* IBTA code, 5 bits */
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint16_t pkey_index;		/* below max_pkeys */
	uint16_t reserved0;
	uint32_t qkey;
	uint32_t rq_psn;		/* 24 bits */
	uint32_t sq_psn;		/* 24 bits */
	uint32_t dest_qpn;		/* 24 bits */
	struct vmri_av av;
	uint32_t access_flags;		/* VMRI_ACCESS_QP */
	uint32_t reserved1;
};
VMRI_ASSERT_SIZE(vmri_qp_modify, 80);

/*
 * VMRI_OP_mr_register: pin frames and give them a key (lkey and rkey are the
 * same).  The MR covers iova .. iova + length - 1, of which the first byte lies
 * `offset` bytes into the first frame; nr frames are exactly those needed.  Any
 * write access pins the frames as writable memory: page tables, descriptor
 * tables, grants, foreign and special frames are refused (-EPERM).  Local read
 * is always allowed.  Remote write and atomic need local write.
 * A region of any size is one call: it is continued, and preempted, inside.
 */
struct vmri_mr_register {
	struct vmri_frames frames;	/* IN */
	uint64_t iova;			/* IN */
	uint64_t length;		/* IN: bytes, 1 .. max_mr_size */
	uint32_t pd;			/* IN */
	uint32_t access;		/* IN: VMRI_ACCESS_MR */
	uint32_t offset;		/* IN: 0 .. 4095 */
	uint32_t key;			/* IN: 0, or the twin's; OUT */
	uint32_t twin;			/* IN: its twin; 0: none */
	uint32_t reserved;
};
VMRI_ASSERT_SIZE(vmri_mr_register, 56);

/*
 * VMRI_OP_mr_reregister (IBTA 1.4, 11.2.8.2): change what `flags` names; the
 * other fields are ignored.  The key may change.  When the frames change, or
 * whether they may be written to, the new ones are pinned, and charged, before
 * the old ones are let go of.  -EBUSY: windows are bound to it.  A call that
 * fails leaves the MR as it was.
 */
struct vmri_mr_reregister {
	uint32_t old_key;		/* IN */
	uint32_t flags;			/* IN: VMRI_REREG_* */
	struct vmri_mr_register mr;	/* IN, OUT; TRANS: as in mr_register */
};
VMRI_ASSERT_SIZE(vmri_mr_reregister, 64);
#define VMRI_REREG_TRANS	0x1U	/* frames, iova, length, offset */
#define VMRI_REREG_PD		0x2U
#define VMRI_REREG_ACCESS	0x4U

/*
 * VMRI_OP_mr_alloc: a fast MR, without memory until a VMRI_WR_REG_MR on a
 * kernel queue gives it some.  Its frames are not pinned: each is checked and
 * referenced at the moment of a copy.
 */
struct vmri_mr_alloc {
	uint32_t pd;			/* IN */
	uint32_t max_frames;		/* IN: 1 .. VMRI_MAX_FAST_FRAMES */
	uint32_t flags;			/* IN: 0 */
	uint32_t key;			/* OUT: invalid until registered */
};
VMRI_ASSERT_SIZE(vmri_mr_alloc, 16);
#define VMRI_MAX_FAST_FRAMES	512

/*
 * VMRI_OP_mw_alloc: a memory window (IBTA 1.4, 10.6.7.2): type 1, or 2 as 2B.
 * Bound by VMRI_WR_BIND_MW.  The low byte of a key belongs to its user: for
 * each bind (and each registration of a fast MR) it names a new one, and mw_free
 * (and mr_deregister of a fast MR) does not look at it.
 */
struct vmri_mw_alloc {
	uint32_t pd;			/* IN */
	uint32_t type;			/* IN: 1 or 2 */
	uint32_t reserved;
	uint32_t key;			/* OUT: invalid until bound */
};
VMRI_ASSERT_SIZE(vmri_mw_alloc, 16);

/*
 * Keys that a kernel queue may use without a registration.  With
 * VMRI_LKEY_FRAMES an SGE's address is gfn << 12 | offset and its length ends
 * within that frame; the frame is checked and referenced at the moment of the
 * copy.
 */
#define VMRI_LKEY_FRAMES	0xffffff00U

/* Counters of a device; all run from its attachment. */
struct vmri_counters {
	uint64_t tx_msgs;		/* requests completed without error */
	uint64_t tx_bytes;		/* payload that left, READ data included */
	uint64_t rx_msgs;		/* receives completed, writes and reads served */
	uint64_t rx_bytes;		/* payload that came in */
	uint64_t doorbells;		/* schedule calls and traps */
	uint64_t hypercalls;		/* other commands */
	uint64_t events;		/* EQ entries written */
	uint64_t upcalls;		/* event channel notifications */
	uint64_t completions;		/* CQEs written */
	uint64_t errors;		/* completions in error, flushes not counted */
	uint64_t flushed;		/* completions with a flush error */
	uint64_t rnr;			/* times a send found no receive */
	uint64_t retries;		/* times a send found no peer */
	uint64_t ud_drops;		/* UD, UC: messages that reached nobody */
	uint64_t qkey_violations;	/* datagrams that came in with a wrong one */
	uint64_t pkey_violations;	/* packets that came in with a wrong one */
};
VMRI_ASSERT_SIZE(vmri_counters, 128);

#endif /* VMRI_VMRI_H */
