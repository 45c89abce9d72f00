/* SPDX-License-Identifier: MIT */
/*
 * VMRI: what the hypervisor and an uplink, dom0's driver of a RoCE NIC, say to
 * each other.
 *
 * A queue pair or a memory region of a device that was attached with an uplink
 * may have a twin on the NIC.  The twin is made first, and its number there, QPN or
 * key, is then that of the guest's object.  VMRI decides, when a queue pair is
 * connected, whether its peer is a device of this host, which then is reached as
 * any other, or one of another.  Requests of the latter it checks as its own, and
 * hands on.
 *
 * Messages go from VMRI to the uplink in a ring in dom0's memory, in order;
 * results go back by VMRI_OP_ctl_uplink_done.  The uplink is dom0's kernel and
 * trusted as such.  What VMRI hands on is trusted as far as is said here; grants,
 * and memory that is granted, are the guest's.
 */
#ifndef VMRI_UPLINK_H
#define VMRI_UPLINK_H

#include "control.h"
#include "ring.h"

#define VMRI_OP_ctl_uplink_open		0x8011	/* struct vmri_ctl_uplink_open */
#define VMRI_OP_ctl_uplink_close	0x8012	/* struct vmri_ctl_uplink */
#define VMRI_OP_ctl_uplink_done		0x8013	/* struct vmri_ctl_uplink_done */
#define VMRI_OP_ctl_uplink_deliver	0x8014	/* struct vmri_ctl_uplink_deliver */

#define VMRI_UPLINKS		16	/* of a host; their numbers start with 1 */

/* What the NIC can carry: limits of devices that have this uplink. */
struct vmri_uplink_caps {
	uint64_t max_mr_size;		/* bytes, of one fast registration */
	uint32_t max_qp_wr;		/* of a send or receive queue */
	uint32_t max_sge;		/* of a send, read or receive: 1 .. 32 */
	uint32_t max_inline;		/* bytes; 0 .. 512 */
	uint32_t max_rd_atomic;		/* of a queue pair, as either side */
	uint8_t mtu;			/* IBTA code, that is active */
	uint8_t atomics;		/* it does them */
	uint16_t reserved0;
	uint32_t reserved1;
};
VMRI_ASSERT_SIZE(vmri_uplink_caps, 32);

/*
 * open: the calling domain will carry what devices attached with this uplink send
 * to other hosts.  The region has a struct vmri_uplink_hdr and, from
 * VMRI_RING_OFFSET on, 2^log2_units units.  Its frames are pinned and
 * charged as those of a queue.  The caller binds the port, which Xen owns,
 * interdomain to itself, as for an EQ.  -ENOSPC: there are VMRI_UPLINKS.
 *
 * close: there are no more messages, and no results are taken.  Before, the caller
 * has returned what was under way, and let go of all that it had for twins: for
 * VMRI they are gone.  Their queue pairs are in the error state, with a
 * VMRI_EVENT_QP_FATAL.  Devices that were attached with it stay, and reach those of
 * this host alone, also when another uplink gets the number.  The end of the calling
 * domain closes its uplinks.  -ENOENT.
 */
struct vmri_ctl_uplink_open {
	struct vmri_frames frames;	/* IN */
	struct vmri_uplink_caps caps;	/* IN */
	uint8_t log2_units;		/* IN: 8 .. 16 */
	uint8_t reserved0[3];
	uint32_t vcpu;			/* IN: to be notified first */
	uint32_t uplink;		/* OUT: its number */
	uint32_t port;			/* OUT: event channel */
};
VMRI_ASSERT_SIZE(vmri_ctl_uplink_open, 64);

struct vmri_ctl_uplink {
	uint32_t uplink;		/* IN */
	uint32_t reserved;
};
VMRI_ASSERT_SIZE(vmri_ctl_uplink, 8);

/*
 * The ring.  A message is 1 to VMRI_UPLINK_MSG_UNITS units one after another; each
 * unit lies in slot index mod 2^log2_units.  Sleep: store sleeping, full fence,
 * look at prod and full again.  VMRI stores prod, or full, full fence, and raises
 * the port once when `sleeping` is set, which it sets back.  When `full` is set after cons was
 * stored (and a full fence), somebody waits for room: call done, with or without
 * results, and again while it stays set.
 */
struct vmri_uplink_hdr {
	/* written by the uplink */
	uint32_t cons;
	uint32_t reserved0[15];
	/* written by both */
	uint32_t sleeping;
	uint32_t reserved1[15];
	/* written by VMRI */
	uint32_t prod;
	uint32_t full;
	uint32_t reserved2[14];
	uint32_t reserved3[16];
};
VMRI_ASSERT_SIZE(vmri_uplink_hdr, 256);

#define VMRI_UPLINK_UNIT	64
#define VMRI_UPLINK_MSG_UNITS	10	/* of all but _DATAGRAM */
#define VMRI_UPLINK_DATAGRAM_UNITS	67	/* of that */

/*
 * The first unit of every message.  `twin` is VMRI's name of a twin: no other has
 * it before the uplink has said that this one is gone.  domid, dev_id and pd say
 * which twins belong together: those of queue pairs and regions of one PD of one
 * device may use each other, others may not.  pd is a number that VMRI makes: no
 * other PD of the uplink has had it.
 */
struct vmri_uplink_msg {
	uint8_t type;			/* VMRI_UPLINK_* */
	uint8_t units;			/* of the message, this one included */
	uint16_t domid;
	uint32_t dev_id;
	uint32_t twin;
	uint32_t pd;
	union {
		struct {			/* _CREATE_QP */
			uint8_t type;		/* VMRI_QPT_RC, _UC */
			uint8_t reserved[3];
			uint32_t max_send_wr;
			uint32_t max_recv_wr;
			uint32_t max_send_sge;
			uint32_t max_recv_sge;
			uint32_t max_inline;
		} qp;
		struct {			/* _CREATE_MR */
			uint64_t iova;
			uint64_t length;
			uint32_t access;	/* VMRI_ACCESS_MR */
			uint32_t offset;	/* of iova in the first page */
			uint32_t pages;
			uint32_t list;		/* grant: see struct vmri_twin */
		} mr;
		struct {			/* _SEND: a request, see there */
			uint64_t wr_id;
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
			uint32_t imm;
			uint32_t length;	/* bytes */
			uint8_t opcode;		/* VMRI_WR_* */
			uint8_t flags;		/* VMRI_SEND_* */
			uint16_t num_sge;
		} send;
		struct {			/* _RECV */
			uint64_t wr_id;
			uint32_t num_sge;
			uint32_t reserved;
		} recv;
		struct {			/* _DATAGRAM */
			uint32_t length;	/* bytes: 0 .. VMRI_DATAGRAM_MAX */
			uint32_t reserved;
		} datagram;
		uint64_t raw[6];
	} u;
};
VMRI_ASSERT_SIZE(vmri_uplink_msg, 64);

/*
 * Make a twin: answered by VMRI_UPLINK_MADE.  A region's pages are mapped from the
 * guest's grants; nothing of it is usable when there is an error.
 */
#define VMRI_UPLINK_CREATE_QP	1
#define VMRI_UPLINK_CREATE_MR	2
/*
 * End it: answered by VMRI_UPLINK_GONE when neither the NIC nor dom0 has anything
 * of it any more.  Comes once for every twin that was asked for, at any moment
 * after that, also before the answer that it was made, and also when it was not.
 */
#define VMRI_UPLINK_DESTROY	3
/*
 * Take a queue pair's twin to a state, VMRI_QPS_RTR, _RTS, _ERR or _RESET.  Two
 * units follow: a struct vmri_qp_modify that has all attributes the queue pair has
 * then, its peer's physical GID among them.  RTR comes in any state of the twin, and
 * is reached by way of RESET in one go: then mask names all that RTR and the states
 * before take.  With RTS it names what changes, also in RTS; with ERR and RESET,
 * which come in any state too, only `state` says anything.  Each is answered by a
 * VMRI_UPLINK_MOVED, in order; of ERR and RESET when all that was under way has come
 * back.
 */
#define VMRI_UPLINK_MODIFY	4
/*
 * Post a request, in RTS; entries of struct vmri_sge follow, four a unit, or with
 * VMRI_SEND_INLINE `length` bytes of data.  The keys are those of twins of the same
 * device and PD, and they hold what the entries name.  Each is answered by a
 * VMRI_UPLINK_SENT, those without VMRI_SEND_SIGNALED too.  No more than max_send_wr
 * are under way.
 */
#define VMRI_UPLINK_SEND	5
/* The same for receives, from INIT on. */
#define VMRI_UPLINK_RECV	6
/*
 * Take a datagram to the uplink of another host, which has it delivered.  A struct
 * vmri_datagram and `length` bytes of data follow, one right behind the other; twin
 * and pd are 0.  It is not answered, and may be lost.
 */
#define VMRI_UPLINK_DATAGRAM	7

/*
 * A datagram of a UD queue pair or of QP1 between devices of two hosts, on a RoCE
 * fabric.  The NIC does not carry it: its packets would not tell which device a
 * datagram is from, and on the other host none could say whether it may come.
 * host_gid is that of the host on the other side, as routes have it: to which it is
 * to go, or from which it came.
 */
struct vmri_datagram {
	uint8_t host_gid[16];
	uint8_t sgid[16];		/* of the devices, in their fabric */
	uint8_t dgid[16];
	uint32_t fabric;
	uint32_t src_qpn;
	uint32_t dest_qpn;
	uint32_t qkey;
	uint32_t imm;			/* network order */
	uint32_t flow_label;
	uint16_t pkey;			/* of the sender */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t flags;			/* VMRI_DATAGRAM_* */
	uint16_t reserved;
};
VMRI_ASSERT_SIZE(vmri_datagram, 80);

#define VMRI_DATAGRAM_IMM	0x1	/* with imm */
#define VMRI_DATAGRAM_SOLICITED	0x2
#define VMRI_DATAGRAM_FLAGS	0x3

#define VMRI_DATAGRAM_MAX	4096	/* bytes of data */

/* A result. */
struct vmri_uplink_result {
	uint32_t twin;
	uint8_t type;			/* VMRI_UPLINK_MADE .. */
	uint8_t status;			/* SENT, RECEIVED: VMRI_WC_* */
	uint8_t opcode;			/* SENT, RECEIVED: VMRI_WC_OP_* */
	uint8_t flags;			/* VMRI_WC_*; SENT: VMRI_SEND_SIGNALED */
	int32_t error;			/* MADE, MOVED: 0 or a negative errno */
	uint32_t number;		/* MADE: QPN or key; MOVED: the state */
	uint64_t wr_id;			/* SENT, RECEIVED, as below */
	uint32_t byte_len;		/* SENT: the request's length */
	uint32_t imm;			/* RECEIVED: network order */
	uint16_t vendor_err;		/* VMRI_VERR_* */
	uint16_t event;			/* EVENT: VMRI_EVENT_QP_* */
	uint32_t reserved;
};
VMRI_ASSERT_SIZE(vmri_uplink_result, 40);

#define VMRI_UPLINK_MADE	1
#define VMRI_UPLINK_GONE	2
#define VMRI_UPLINK_MOVED	3
#define VMRI_UPLINK_SENT	4	/* in the order of the requests */
#define VMRI_UPLINK_RECEIVED	5	/* likewise */
/* The NIC says so of itself; the twin is in the error state after _QP_FATAL. */
#define VMRI_UPLINK_EVENT	6

/*
 * done: results, in order.  One of a twin that there is not is passed over: its
 * owner has gone.  Returns how many were taken; fewer than `nr` only when the call
 * is to be repeated with the rest.  -ENOENT: no such uplink of the caller's; -EBUSY:
 * another call is giving results.
 */
struct vmri_ctl_uplink_done {
	uint64_t results;		/* IN: guest address of [nr] */
	uint32_t uplink;		/* IN */
	uint32_t nr;			/* IN: 0 .. VMRI_UPLINK_RESULTS */
};
VMRI_ASSERT_SIZE(vmri_ctl_uplink_done, 16);
#define VMRI_UPLINK_RESULTS	128

/*
 * deliver: a datagram from another host, to a device of this one that has this
 * uplink.  It is dropped, as any that finds no receive, when its fabric is not one
 * of this host's RoCE fabrics, when its sender's GID has no route or one to another
 * host than it came from, and when rules, P_Keys or the Q_Key do not let it pass.
 * Returns 1 when it has been delivered, 0 when it was dropped.  -EINVAL: it is none;
 * -ENOENT: no such uplink of the caller's; -EFAULT.
 */
struct vmri_ctl_uplink_deliver {
	struct vmri_datagram datagram;	/* IN */
	uint64_t data;			/* IN: guest address of [length] bytes */
	uint32_t length;		/* IN: 0 .. VMRI_DATAGRAM_MAX */
	uint32_t uplink;		/* IN */
};
VMRI_ASSERT_SIZE(vmri_ctl_uplink_deliver, 96);

#endif /* VMRI_UPLINK_H */
