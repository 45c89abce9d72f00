/* SPDX-License-Identifier: MIT */
/*
 * VMRI: what every header of the ABI needs to compile in Xen, in Linux, and in
 * user space, as C99 or C++.
 */
#ifndef VMRI_TYPES_H
#define VMRI_TYPES_H

#if defined(__XEN__)
# include <xen/types.h>
#elif defined(__KERNEL__)
# include <linux/types.h>
#else
# include <stdint.h>
#endif

/*
 * The size of every structure is part of the ABI, the same for 32-bit and
 * 64-bit guests, in C and in C++.
 */
#define VMRI_ASSERT_SIZE(type, size) \
	typedef char vmri_size_of_##type[sizeof(struct type) == (size) ? 1 : -1] \
		__attribute__((__unused__))

/* Frames are 4 KiB whatever the guest's own page size is. */
#define VMRI_PAGE_SHIFT		12
#define VMRI_PAGE_SIZE		4096

#endif /* VMRI_TYPES_H */
