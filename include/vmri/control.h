/* SPDX-License-Identifier: MIT */
/*
 * VMRI: commands for dom0.  Each takes its structure as args and ignores the
 * hypercall's dev_id; the target is named in the structure.  A caller without
 * the privilege gets -EPERM.
 */
#ifndef VMRI_CONTROL_H
#define VMRI_CONTROL_H

#include "types.h"
#include "vmri.h"

#define VMRI_OP_ctl_attach	0x8000	/* struct vmri_ctl_attach */
#define VMRI_OP_ctl_detach	0x8001	/* struct vmri_ctl_detach */
#define VMRI_OP_ctl_list	0x8002	/* struct vmri_ctl_info */

#define VMRI_MAX_DEVS		64	/* of one domain */
#define VMRI_FABRIC_MAX		0xffffffU
#define VMRI_LID_MAX		0xbfff	/* unicast */
#define VMRI_DEV_ANY		0xffffffffU

/*
 * Give a domain a device on a fabric.
 * -ESRCH: no such domain, or dying.  -EEXIST: the domain has a device with this
 * id, or the fabric one with this LID or GUID.  -ENOSPC: no number left.
 */
struct vmri_ctl_attach {
	uint32_t domid;			/* IN */
	uint32_t dev_id;		/* IN: or VMRI_DEV_ANY; OUT */
	uint32_t fabric;		/* IN: 0 .. VMRI_FABRIC_MAX */
	uint16_t lid;			/* IN: or 0 for the lowest free one; OUT */
	uint16_t flags;			/* IN: 0 */
	uint64_t guid;			/* IN: or 0 for one made from ids; OUT */
	uint64_t reserved;
};
VMRI_ASSERT_SIZE(vmri_ctl_attach, 32);

/*
 * Take it away again, whatever the guest does with it: its objects are
 * destroyed, its peers see it gone.  -ENODEV: there is none.
 */
struct vmri_ctl_detach {
	uint32_t domid;			/* IN */
	uint32_t dev_id;		/* IN */
};
VMRI_ASSERT_SIZE(vmri_ctl_detach, 8);

/* What is charged to one device. */
struct vmri_usage {
	uint32_t pds;
	uint32_t eqs;
	uint32_t cqs;
	uint32_t qps;
	uint32_t mrs;
	uint32_t reserved;
	uint64_t pinned_pages;		/* MRs and rings */
	uint64_t bytes;			/* hypervisor memory */
};
VMRI_ASSERT_SIZE(vmri_usage, 40);

/*
 * The first device at or after (domid, dev_id) in that order.  -ENOENT: no
 * more.  Listing starts with (0, 0) and goes on with (domid, dev_id + 1).
 */
struct vmri_ctl_info {
	uint32_t domid;			/* IN, OUT */
	uint32_t dev_id;		/* IN, OUT */
	uint32_t fabric;		/* OUT, as all below */
	uint16_t lid;
	uint8_t in_use;			/* the guest has created it */
	uint8_t reserved;
	uint64_t guid;
	uint64_t max_pinned_pages;
	struct vmri_usage usage;
	struct vmri_counters counters;
};
VMRI_ASSERT_SIZE(vmri_ctl_info, 200);

#endif /* VMRI_CONTROL_H */
