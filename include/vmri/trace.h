/* SPDX-License-Identifier: MIT */
/*
 * VMRI: what it writes to Xen's trace buffers, for xentrace.
 *
 * The class is one that Xen does not use; `xentrace -e 0x0100f000` records it,
 * with 0x01001000 objects alone, with 0x01002000 work alone.  Each record has
 * the time stamp counter and the words that are listed, of 32 bits; the first
 * is always the device: domain id << 16 | device id.
 */
#ifndef VMRI_TRACE_H
#define VMRI_TRACE_H

#define VMRI_TRC		0x0100f000
#define VMRI_TRC_OBJECT		0x01001000
#define VMRI_TRC_WORK		0x01002000

/* A device comes and goes: device, fabric, LID. */
#define VMRI_TRC_ATTACH		(VMRI_TRC_OBJECT + 1)
#define VMRI_TRC_DETACH		(VMRI_TRC_OBJECT + 2)
/* An object does: device, VMRI_RES_* (windows count as MRs), handle. */
#define VMRI_TRC_CREATE		(VMRI_TRC_OBJECT + 3)
#define VMRI_TRC_DESTROY	(VMRI_TRC_OBJECT + 4)

/* A doorbell was rung: device, QPN. */
#define VMRI_TRC_DOORBELL	(VMRI_TRC_WORK + 1)
/* A send request is complete: device, QPN, VMRI_WR_*, bytes. */
#define VMRI_TRC_DONE		(VMRI_TRC_WORK + 2)
/* It failed: device, QPN, VMRI_WR_*, VMRI_WC_*, VMRI_VERR_*. */
#define VMRI_TRC_FAILED		(VMRI_TRC_WORK + 3)
/*
 * A send queue waits: device, QPN, VMRI_PARKED_*, microseconds until it is
 * woken in any case, 0xffffffff for never.
 */
#define VMRI_TRC_PARKED		(VMRI_TRC_WORK + 4)
/* It was woken: device, QPN, 1 by the timer or 0 by others. */
#define VMRI_TRC_WOKEN		(VMRI_TRC_WORK + 5)
/* A queue pair entered the error state: device, QPN, VMRI_EVENT_* or 0. */
#define VMRI_TRC_QP_ERROR	(VMRI_TRC_WORK + 6)

#endif /* VMRI_TRACE_H */
