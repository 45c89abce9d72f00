// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: the hypercall.  Nothing else in the module calls VMRI.
 */
#include <linux/errno.h>
#include <linux/smp.h>
#include <asm/xen/hypercall.h>
#include <xen/xen-ops.h>

#include "uplink.h"

static long uplink_hypercall(unsigned int cmd, void *arg)
{
	return xen_single_call(VMRI_HYPERCALL_DEFAULT, cmd, 0,
			       (unsigned long)arg, 0, 0);
}

/* Is there a VMRI that this module was built for?  0 or a negative errno. */
int uplink_hcall_version(void)
{
	struct vmri_version version = {};

	if (uplink_hypercall(VMRI_OP_version, &version) ||
	    version.magic != VMRI_MAGIC)
		return -ENODEV;
	return version.abi_version == VMRI_ABI_VERSION ? 0 : -EPROTONOSUPPORT;
}

/**
 * uplink_hcall_open() - tell VMRI of an uplink
 * @up:		uplink with its capabilities and its ring
 * @log2_units:	size of the ring
 * @port:	set to the event channel, which Xen owns
 *
 * Return: 0 or a negative errno.
 */
int uplink_hcall_open(struct uplink *up, u8 log2_units, u32 *port)
{
	struct vmri_ctl_uplink_open cmd = {
		.frames = {
			.gfns = (unsigned long)up->ring.gfns,
			.nr = up->ring.nr_pages,
		},
		.caps = up->caps,
		.log2_units = log2_units,
		.vcpu = xen_vcpu_nr(raw_smp_processor_id()),
	};
	long ret = uplink_hypercall(VMRI_OP_ctl_uplink_open, &cmd);

	if (ret)
		return ret;
	up->number = cmd.uplink;
	*port = cmd.port;
	return 0;
}

/* From here on VMRI neither writes to the ring nor raises the port. */
void uplink_hcall_close(struct uplink *up)
{
	struct vmri_ctl_uplink cmd = { .uplink = up->number };

	uplink_hypercall(VMRI_OP_ctl_uplink_close, &cmd);
}

/**
 * uplink_hcall_done() - hand results to VMRI
 * @up:		uplink
 * @results:	in order
 * @nr:		how many, perhaps 0
 *
 * Return: how many were taken, or a negative errno.
 */
int uplink_hcall_done(struct uplink *up,
		      const struct vmri_uplink_result *results, u32 nr)
{
	struct vmri_ctl_uplink_done cmd = {
		.results = (unsigned long)results,
		.uplink = up->number,
		.nr = nr,
	};

	return uplink_hypercall(VMRI_OP_ctl_uplink_done, &cmd);
}

/**
 * uplink_hcall_deliver() - hand a datagram from another host to VMRI
 * @up:		uplink
 * @datagram:	where it came from, and for whom it is
 * @data:	its data
 * @length:	bytes of that: 0 .. VMRI_DATAGRAM_MAX
 *
 * Return: 1: it was delivered; 0: it was dropped; -EINVAL: it is none; or another
 * negative errno.
 */
int uplink_hcall_deliver(struct uplink *up, const struct vmri_datagram *datagram,
			 const void *data, u32 length)
{
	struct vmri_ctl_uplink_deliver cmd = {
		.datagram = *datagram,
		.data = (unsigned long)data,
		.length = length,
		.uplink = up->number,
	};

	return uplink_hypercall(VMRI_OP_ctl_uplink_deliver, &cmd);
}
