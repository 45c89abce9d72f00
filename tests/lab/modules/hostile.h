/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmri_hostile: a guest's kernel that asks VMRI for what it must not get.
 *
 * It talks to the hypervisor directly and uses a device that no driver has.
 * Every check is one line of the kernel's log, "ok NAME" or "FAIL NAME: ...".
 */
#ifndef VMRI_HOSTILE_H
#define VMRI_HOSTILE_H

#include <linux/types.h>
#include <vmri/control.h>
#include <vmri/ring.h>
#include <vmri/vmri.h>

/* The results of VMRI are Xen's errno, which have Linux's numbers here. */
long hostile_call(unsigned int cmd, void *args);
/* The same for any device and any args. */
long hostile_raw(unsigned int cmd, unsigned int dev_id, unsigned long args);

/* Count and log one check. */
void hostile_expect(const char *name, long got, long want);

/* A protection domain for the checks to use. */
extern u32 hostile_pd;

/*
 * Register one frame, as memory or as an event queue's ring; what is got is
 * given back at once.  0 or VMRI's errno.
 */
long hostile_try_mr(u64 gfn, u32 access);
long hostile_try_ring(u64 gfn);

/* Neither memory that can be written nor a ring. */
void hostile_expect_unwritable(const char *name, u64 gfn);
/* Not even memory that can only be read. */
void hostile_expect_alien(const char *name, u64 gfn);

/* args.c: commands with something wrong in them. */
void hostile_args(void);
/* When the device is no more. */
void hostile_args_free(void);

/* frames.c: frames that are not the guest's to give. */
void hostile_frames(void);
/* A frame that domain `domid` has granted as `ref`. */
void hostile_granted(u16 domid, u32 ref);

/* pv.c: frames that a PV guest may not write, and that Xen relies on. */
void hostile_pv(void);

#endif /* VMRI_HOSTILE_H */
