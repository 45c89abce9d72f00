// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: memory windows of processes, which bind them by requests of their own.
 */
#include "softib.h"

static_assert(IB_MW_TYPE_1 == 1 && IB_MW_TYPE_2 == 2);

int softib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct vmri_mw_alloc cmd = {
		.pd = to_softib_pd(ibmw->pd)->handle,
		.type = ibmw->type,
	};
	struct softib_dev *dev = to_softib_dev(ibmw->device);
	int ret;

	if (softib_has_uplink(dev))
		return -EOPNOTSUPP;
	ret = softib_command(dev, VMRI_OP_mw_alloc, &cmd, &cmd.key);
	if (!ret)
		ibmw->rkey = cmd.key;
	return ret;
}

/* Whatever the process calls it by now: VMRI goes by the number. */
int softib_dealloc_mw(struct ib_mw *ibmw)
{
	return softib_destroy(to_softib_dev(ibmw->device), VMRI_OP_mw_free,
			      ibmw->rkey);
}
