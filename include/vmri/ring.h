/* SPDX-License-Identifier: MIT */
/*
 * VMRI: the memory that guest and hypervisor share: queues, requests,
 * completions and events.
 *
 * Indices run freely modulo 2^32; entry i of a ring of n (a power of two) lies
 * in slot i mod n; a ring is full when producer - consumer == n.  The producer
 * fills the slot, then stores its index with release order; the consumer loads
 * that index with acquire order.  The hypervisor keeps its own copy of every
 * index that it writes, reads those of the guest once, and bounds them.
 *
 * Fields that different sides write lie in different cache lines.
 */
#ifndef VMRI_RING_H
#define VMRI_RING_H

#include "vmri.h"

/* Entries of an EQ or a CQ start here in their region. */
#define VMRI_RING_OFFSET	256

/*
 * One work queue.  Post: fill slots, store prod, then a full fence, and ring
 * the doorbell (VMRI_OP_schedule) unless `running` (send queue), respectively
 * only if `wait` (receive queue), is set.
 */
struct vmri_wq_hdr {
	/* written by the guest */
	uint32_t prod;
	uint32_t dead;			/* the device is gone: post and poll fail */
	uint32_t reserved0[14];
	/* written by the hypervisor */
	uint32_t cons;			/* slots before this may be reused */
	uint32_t running;		/* the engine will look at prod again */
	uint32_t wait;			/* somebody waits for a posted receive */
	uint32_t reserved1[13];
};
VMRI_ASSERT_SIZE(vmri_wq_hdr, 128);

struct vmri_qp_hdr {
	struct vmri_wq_hdr sq;
	struct vmri_wq_hdr rq;
};
VMRI_ASSERT_SIZE(vmri_qp_hdr, 256);

/*
 * A completion queue.  Arm: store arm, full fence, look at prod again.  The
 * hypervisor stores prod, full fence, and when the entry fits what `arm` says,
 * sets it back to VMRI_ARM_NONE and raises one VMRI_EVENT_COMPLETION.
 */
struct vmri_cq_hdr {
	/* written by the guest */
	uint32_t cons;
	uint32_t dead;
	uint32_t reserved0[14];
	/* written by both */
	uint32_t arm;			/* VMRI_ARM_* */
	uint32_t reserved1[15];
	/* written by the hypervisor */
	uint32_t prod;
	uint32_t overflow;		/* a completion was lost; the CQ is dead */
	uint32_t reserved2[14];
	uint32_t reserved3[16];
};
VMRI_ASSERT_SIZE(vmri_cq_hdr, 256);
#define VMRI_ARM_NONE		0
#define VMRI_ARM_SOLICITED	1
#define VMRI_ARM_NEXT		2

/* An event queue. */
struct vmri_eq_hdr {
	/* written by the guest */
	uint32_t cons;
	uint32_t reserved0[15];
	/* written by the hypervisor */
	uint32_t prod;
	uint32_t overflow;		/* events wait outside: VMRI_OP_eq_poll */
	uint32_t reserved1[14];
	uint32_t reserved2[32];
};
VMRI_ASSERT_SIZE(vmri_eq_hdr, 256);

struct vmri_event {
	uint16_t type;			/* VMRI_EVENT_* */
	uint16_t command;		/* VMRI_EVENT_COMMAND: VMRI_OP_*; else 0 */
	uint32_t id;			/* CQ handle, QPN, or 0 for the port */
	uint64_t data;			/* VMRI_EVENT_COMMAND: the result */
};
VMRI_ASSERT_SIZE(vmri_event, 16);

#define VMRI_EVENT_COMPLETION		0	/* id: CQ */
#define VMRI_EVENT_QUEUE_READY		1	/* id: QPN; call schedule */
#define VMRI_EVENT_COMMAND		2	/* id: object; data: result */
#define VMRI_EVENT_CQ_ERR		3	/* id: CQ */
#define VMRI_EVENT_QP_FATAL		4	/* id: QPN, here and below */
#define VMRI_EVENT_QP_REQ_ERR		5
#define VMRI_EVENT_QP_ACCESS_ERR	6
#define VMRI_EVENT_COMM_EST		7
#define VMRI_EVENT_SQ_DRAINED		8
#define VMRI_EVENT_QP_LAST_WQE_REACHED	9
#define VMRI_EVENT_SRQ_ERR		10	/* id: SRQ */
#define VMRI_EVENT_SRQ_LIMIT		11
#define VMRI_EVENT_PORT_ACTIVE		16	/* id: 0, here and below */
#define VMRI_EVENT_PORT_ERR		17
#define VMRI_EVENT_DEVICE_FATAL		18
#define VMRI_EVENT_LID_CHANGE		19
#define VMRI_EVENT_PKEY_CHANGE		20
#define VMRI_EVENT_SM_CHANGE		21
#define VMRI_EVENT_CLIENT_REREGISTER	22
#define VMRI_EVENT_GID_CHANGE		23
#define VMRI_EVENT_FABRIC		24	/* see VMRI_OP_fabric_watch */

/* A scatter/gather entry. */
struct vmri_sge {
	uint64_t addr;
	uint32_t length;		/* bytes; 0 is nothing at all */
	uint32_t lkey;
};
VMRI_ASSERT_SIZE(vmri_sge, 16);

/* Opcodes of requests: IB_WR_* of Linux. */
#define VMRI_WR_RDMA_WRITE		0
#define VMRI_WR_RDMA_WRITE_WITH_IMM	1
#define VMRI_WR_SEND			2
#define VMRI_WR_SEND_WITH_IMM		3
#define VMRI_WR_RDMA_READ		4
#define VMRI_WR_ATOMIC_CMP_AND_SWP	5
#define VMRI_WR_ATOMIC_FETCH_AND_ADD	6
#define VMRI_WR_LOCAL_INV		7
#define VMRI_WR_BIND_MW			8
#define VMRI_WR_SEND_WITH_INV		9
#define VMRI_WR_FLUSH			14
#define VMRI_WR_ATOMIC_WRITE		15
#define VMRI_WR_REG_MR			32

/* Flags of requests. */
#define VMRI_SEND_FENCE		0x01
#define VMRI_SEND_SIGNALED	0x02
#define VMRI_SEND_SOLICITED	0x04
#define VMRI_SEND_INLINE	0x08	/* data follows the header, no SGEs */
#define VMRI_SEND_INDIRECT	0x10	/* kernel queues: SGEs in the indirect list */
#define VMRI_SEND_FLAGS		0x1f

/* Entries of the indirect list that one request may have. */
#define VMRI_MAX_INDIRECT	1024

/* A Q_Key in a request with this bit set stands for the QP's own. */
#define VMRI_QKEY_OWN		0x80000000U

/*
 * A send request.  After it follow num_sge entries of struct vmri_sge, or
 * `length` bytes of inline data; with INDIRECT, num_sge entries of the indirect
 * list from its (free-running) index ind_start on.
 *
 * Atomics have length 8 and a place for the value that was there before;
 * operands and values are in the byte order of x86.  ATOMIC_WRITE has length 8
 * and no SGEs.  FLUSH has in `length` the bytes to be flushed and no SGEs.
 * BIND_MW, REG_MR and LOCAL_INV have length 0 and no SGEs.  REG_MR, and
 * invalidating a fast MR, are for kernel queues alone.  What is wrong with what
 * the last three name is a MW_BIND_ERR.
 *
 * REG_MR finds the gfns of its frames, 8 bytes each and as many as offset and
 * length come to, in a list elsewhere in the guest's memory, which is the guest's
 * again when the request has completed.  The list does not cross a page; `list`
 * is the gfn of that page << 12, and the list's offset there, a multiple of 8.
 *
 * XRC: SENDs and WRITE_WITH_IMM take a receive of the SRQ that srqn names.  The
 * key of a WRITE, READ or atomic, and the one that a SEND invalidates, is of the
 * protection domain of that SRQ; when there is no such SRQ, of the target's own.
 */
struct vmri_send_wqe {
	uint64_t wr_id;
	uint8_t opcode;			/* VMRI_WR_* */
	uint8_t flags;			/* VMRI_SEND_* */
	uint16_t num_sge;
	uint32_t length;		/* bytes of payload, the SGEs' sum */
	uint32_t imm;			/* network order; or the key to invalidate */
	uint32_t ind_start;
	union {
		struct {
			uint64_t remote_addr;	/* atomics: a multiple of 8 */
			uint32_t rkey;
			uint32_t srqn;		/* XRC: see below */
			uint64_t compare_add;	/* ATOMIC_WRITE: the value */
			uint64_t swap;
			uint32_t flush_type;	/* FLUSH: VMRI_FLUSH_* */
			uint32_t flush_level;	/* FLUSH: VMRI_FLUSH_LEVEL_* */
		} rdma;
		struct {
			uint64_t addr;		/* of the window's first byte */
			uint64_t length;	/* 0 unbinds a type 1 window */
			uint32_t mw_key;	/* that the window has now */
			uint32_t new_key;	/* the same but for the low byte */
			uint32_t mr_key;
			uint32_t access;	/* VMRI_ACCESS_MW */
			uint64_t reserved;
		} bind;
		struct {
			uint64_t iova;
			uint64_t length;	/* 1 .. */
			uint32_t key;		/* of the fast MR; low byte: any */
			uint32_t new_key;	/* the same but for the low byte */
			uint32_t access;	/* VMRI_ACCESS_MR */
			uint32_t offset;	/* of iova in the first frame */
			uint64_t list;		/* of the frames: see above */
		} reg;
		struct {
			struct vmri_av av;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		} ud;
		uint64_t raw[5];
	} u;
};
VMRI_ASSERT_SIZE(vmri_send_wqe, 64);

#define VMRI_FLUSH_GLOBAL	0x1	/* visible to all */
#define VMRI_FLUSH_PERSISTENT	0x2	/* a remote access error: no MR allows it */
#define VMRI_FLUSH_LEVEL_RANGE	0
#define VMRI_FLUSH_LEVEL_MR	1

/* A receive request; num_sge entries of struct vmri_sge follow. */
struct vmri_recv_wqe {
	uint64_t wr_id;
	uint16_t num_sge;
	uint16_t flags;			/* VMRI_RECV_* */
	uint32_t ind_start;
};
VMRI_ASSERT_SIZE(vmri_recv_wqe, 16);
#define VMRI_RECV_INDIRECT	0x1	/* kernel queues */

/* A completion. */
struct vmri_cqe {
	uint64_t wr_id;
	uint64_t timestamp;		/* Xen system time, ns */
	uint32_t qpn;
	uint32_t byte_len;		/* receives and READs; UD: with the GRH's 40 */
	uint32_t imm;			/* network order, or the invalidated key */
	uint32_t src_qp;		/* UD */
	uint8_t status;			/* IB_WC_* of Linux: VMRI_WC_* */
	uint8_t opcode;			/* IB_WC_* of Linux: VMRI_WC_OP_* */
	uint8_t flags;			/* VMRI_WC_* */
	uint8_t sl;
	uint16_t slid;			/* UD */
	uint16_t pkey_index;
	uint16_t vendor_err;		/* VMRI_VERR_*: why, when status is not 0 */
	uint8_t dlid_path_bits;
	uint8_t reserved0;
	uint32_t reserved1[5];
};
VMRI_ASSERT_SIZE(vmri_cqe, 64);

#define VMRI_WC_GRH		0x1
#define VMRI_WC_WITH_IMM	0x2
#define VMRI_WC_WITH_INV	0x4
#define VMRI_WC_SOLICITED	0x8

#define VMRI_WC_SUCCESS			0
#define VMRI_WC_LOC_LEN_ERR		1
#define VMRI_WC_LOC_QP_OP_ERR		2
#define VMRI_WC_LOC_PROT_ERR		4
#define VMRI_WC_WR_FLUSH_ERR		5
#define VMRI_WC_MW_BIND_ERR		6
#define VMRI_WC_LOC_ACCESS_ERR		8
#define VMRI_WC_REM_INV_REQ_ERR		9
#define VMRI_WC_REM_ACCESS_ERR		10
#define VMRI_WC_REM_OP_ERR		11
#define VMRI_WC_RETRY_EXC_ERR		12
#define VMRI_WC_RNR_RETRY_EXC_ERR	13
#define VMRI_WC_FATAL_ERR		19
#define VMRI_WC_GENERAL_ERR		21

#define VMRI_WC_OP_SEND			0
#define VMRI_WC_OP_RDMA_WRITE		1
#define VMRI_WC_OP_RDMA_READ		2
#define VMRI_WC_OP_COMP_SWAP		3
#define VMRI_WC_OP_FETCH_ADD		4
#define VMRI_WC_OP_BIND_MW		5
#define VMRI_WC_OP_LOCAL_INV		6
#define VMRI_WC_OP_FLUSH		8
#define VMRI_WC_OP_ATOMIC_WRITE		9
#define VMRI_WC_OP_REG_MR		32	/* ours: Linux has no fixed number */
#define VMRI_WC_OP_RECV			128
#define VMRI_WC_OP_RECV_RDMA_WITH_IMM	129

/* vendor_err: what exactly was wrong. */
#define VMRI_VERR_NONE		0
#define VMRI_VERR_OPCODE	1	/* not for this kind of queue */
#define VMRI_VERR_FLAGS		2	/* unknown or not allowed here */
#define VMRI_VERR_SGES		3	/* too many entries */
#define VMRI_VERR_LENGTH	4	/* longer than allowed, or than the SGEs */
#define VMRI_VERR_KEY		5	/* no such key, or a privileged one */
#define VMRI_VERR_PD		6	/* key of another PD, window of another QP */
#define VMRI_VERR_RIGHTS	7	/* MR or QP does not allow it */
#define VMRI_VERR_BOUNDS	8	/* outside the MR */
#define VMRI_VERR_FRAME		9	/* a frame that may not be used */
#define VMRI_VERR_NO_PEER	10	/* nobody there, or not connected to us */
#define VMRI_VERR_NO_RECV	11	/* no receive posted */
#define VMRI_VERR_RECV_SIZE	12	/* the receive is too small */
#define VMRI_VERR_RING		13	/* a ring index out of range */
#define VMRI_VERR_FLUSHED	14	/* the queue was in error before */
#define VMRI_VERR_ALIGN		15	/* atomic address not aligned */
#define VMRI_VERR_DEVICE	16	/* the peer's device died */
#define VMRI_VERR_SRQ		17	/* no such SRQ, or not for this target */
#define VMRI_VERR_BOUND		18	/* windows are bound to it */
#define VMRI_VERR_STATE		19	/* key in use, or not in use, already */
#define VMRI_VERR_FORBIDDEN	20	/* XSM or rules keep them apart */

#endif /* VMRI_RING_H */
