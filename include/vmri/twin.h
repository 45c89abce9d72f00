/* SPDX-License-Identifier: MIT */
/*
 * VMRI: what a device has on an uplink's NIC.  Part of vmri.h, which includes it.
 */
#ifndef VMRI_TWIN_H
#define VMRI_TWIN_H

#include "types.h"

/*
 * VMRI_OP_twin_create: have a queue pair or a memory region made on the NIC that
 * the device's uplink drives.  -EINPROGRESS: the VMRI_EVENT_COMMAND has the handle
 * as its id, and as its data the number of the twin there, a QPN or a key, or a
 * negative errno; after that the twin is to be destroyed all the same.
 * qp_create, respectively mr_register, then names both; what it says must be what
 * the twin was made for (-EINVAL), and in all its life a twin is one object's
 * (-EBUSY).  A queue pair or region without a twin reaches those of this host alone.
 * A region with one cannot be re-registered (-EOPNOTSUPP); its first byte lies in
 * its page as in that of its iova.
 * -ENODEV, also from the event: the uplink is gone.  -EOPNOTSUPP: the device has
 * none, or a kind that it does not carry; -EINVAL: more than it can, or there is no
 * EQ for the port's events, to which those of these commands go, and those of
 * qp_modify; -EAGAIN: it has too much to do at the moment; -ENOSPC: the device has
 * as many as its domain may have objects of the kind.
 *
 * A queue pair with a twin may be connected to a GID that has a route.  Then
 * qp_modify answers -EINPROGRESS while the twin follows, and is to be called again
 * with the same arguments when its event, with the QPN as its id, says 0.  The
 * same goes for other changes of one that is so connected, except to ERR, SQD and
 * back.  -EBUSY: one is under way.  -EOPNOTSUPP: queues of the kernel, or in SQD
 * attributes.
 *
 * VMRI_OP_twin_destroy: -EINPROGRESS: when the event says 0, nothing on the NIC,
 * or in dom0, touches what was granted for it.  So it is when the answer is -ENOENT:
 * the uplink has gone.  -EBUSY: its object is there, or it is being destroyed.
 */
struct vmri_twin {
	uint32_t kind;			/* IN: VMRI_RES_QP, VMRI_RES_MR */
	uint32_t handle;		/* OUT */
	uint32_t pd;			/* IN */
	uint32_t reserved;
	union {
		struct {		/* IN: as in qp_create; with an SRQ below */
			uint8_t type;
			uint8_t sq_log2_entries;
			uint8_t rq_log2_entries;
			uint8_t max_send_sge;
			uint8_t max_recv_sge;
			uint8_t reserved[3];
			uint32_t max_inline;
		} qp;
		struct {		/* IN: as in mr_register */
			uint64_t iova;
			uint64_t length;
			uint32_t access;
			uint32_t offset;
			uint32_t pages;
			uint32_t list;	/* grant of a page, read-only */
		} mr;
		uint64_t raw[5];
	} u;
};
VMRI_ASSERT_SIZE(vmri_twin, 56);

/*
 * A queue pair whose receives come from an SRQ, of its PD and not the kernel's: it is
 * lent so many of them at the most, as the twin's rq_log2_entries has to say; the twin's
 * max_recv_sge is the SRQ's max_sge.  Lent is one, and one more for each that came back
 * filled, while the SRQ has more than is lent of it.  What is lent and not used when the
 * queue pair fails completes there, flushed.
 */
#define VMRI_TWIN_LENT_LOG2	5

/*
 * The page that `list` grants: uint32_t grants of the region's pages, in order, to
 * the domain that drives the uplink; of more than VMRI_TWIN_GRANTS pages, grants of
 * as many pages with such lists as it takes.  To be left as it is until the twin
 * is made, its pages until it is destroyed.
 */
#define VMRI_TWIN_GRANTS	1024

#endif /* VMRI_TWIN_H */
