/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SoftIB: what differs between the kernels that the driver is built for.  It is
 * written for 6.12; whatever another version needs is put here, so that the
 * other files know one kernel only.
 */
#ifndef SOFTIB_COMPAT_H
#define SOFTIB_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#error "softib needs Linux 6.12 or later"
#endif

#include <vmri/types.h>

/* Frames of the ABI and pages of the kernel are counted alike. */
static_assert(PAGE_SIZE == VMRI_PAGE_SIZE);

#endif /* SOFTIB_COMPAT_H */
