// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: queue pairs in multicast groups.
 */
#include "softib.h"

static int softib_mcast_call(struct ib_qp *ibqp, unsigned int cmd,
			     const union ib_gid *gid, u16 mlid)
{
	struct softib_dev *dev = to_softib_dev(ibqp->device);
	struct vmri_mcg_qp arg = {
		/* RoCE has none, whatever is said (IBTA 1.4, A16). */
		.mlid = softib_is_roce(dev) ? 0 : mlid,
		.qpn = ibqp->qp_num,
	};

	memcpy(arg.mgid, gid->raw, sizeof(arg.mgid));
	return softib_command(dev, cmd, &arg, &arg.qpn);
}

int softib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 mlid)
{
	int ret = softib_mcast_call(ibqp, VMRI_OP_mcg_attach, gid, mlid);

	/* Twice is no error to users of the kernel. */
	return ret == -EEXIST ? 0 : ret;
}

int softib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 mlid)
{
	int ret = softib_mcast_call(ibqp, VMRI_OP_mcg_detach, gid, mlid);

	/* Nobody is in the groups of a device that is gone. */
	return ret == -ENODEV ? 0 : ret;
}
