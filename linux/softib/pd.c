// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: contexts of processes, protection domains and XRC domains.
 */
#include <rdma/uverbs_ioctl.h>

#include <uapi/softib-abi.h>

#include "softib.h"

int softib_alloc_ucontext(struct ib_ucontext *ibuctx, struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibuctx->device);
	struct softib_alloc_ucontext_resp resp = {
		.doorbells = SOFTIB_DOORBELL_SYSCALL | dev->doorbells,
		.flags = softib_is_roce(dev) ? SOFTIB_CONTEXT_ROCE : 0,
		.dev_id = dev->dev_id,
		.hypercall = dev->hypercall,
		.max_inline = dev->attr.max_inline,
		.page_size = PAGE_SIZE,
	};

	return softib_respond(udata, &resp, sizeof(resp));
}

/* A context holds nothing but its objects. */
void softib_dealloc_ucontext(struct ib_ucontext *ibuctx)
{
}

/*
 * That this exists lets the device go while processes have it open.  They see
 * their rings marked dead before their objects are destroyed, and the core has
 * destroyed all of those when it comes here.
 */
void softib_disassociate_ucontext(struct ib_ucontext *ibuctx)
{
}

int softib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibpd->device);
	struct softib_pd *pd = to_softib_pd(ibpd);
	struct softib_alloc_pd_resp resp = {};
	struct vmri_object cmd = {};
	int ret;

	ret = softib_command(dev, VMRI_OP_pd_create, &cmd, &cmd.handle);
	if (ret)
		return ret;
	pd->handle = cmd.handle;

	if (udata) {
		resp.handle = cmd.handle;
		ret = softib_respond(udata, &resp, sizeof(resp));
		if (ret)
			softib_destroy(dev, VMRI_OP_pd_destroy, pd->handle);
	}
	return ret;
}

int softib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return softib_destroy(to_softib_dev(ibpd->device), VMRI_OP_pd_destroy,
			      to_softib_pd(ibpd)->handle);
}

/*
 * XRC targets are not created in a protection domain: keys in the requests that
 * they serve are those of the SRQ that each request names.  VMRI wants one
 * nevertheless, so it gets one in which there is nothing.
 */
int softib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibxrcd->device);
	struct softib_xrcd *xrcd = to_softib_xrcd(ibxrcd);
	struct vmri_object cmd = {};
	int ret;

	if (softib_has_uplink(dev))
		return -EOPNOTSUPP;
	ret = softib_command(dev, VMRI_OP_pd_create, &cmd, &cmd.handle);
	if (ret)
		return ret;
	xrcd->pd = cmd.handle;

	cmd.handle = 0;
	ret = softib_command(dev, VMRI_OP_xrcd_create, &cmd, &cmd.handle);
	if (ret)
		softib_destroy(dev, VMRI_OP_pd_destroy, xrcd->pd);
	else
		xrcd->handle = cmd.handle;
	return ret;
}

int softib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct softib_dev *dev = to_softib_dev(ibxrcd->device);
	struct softib_xrcd *xrcd = to_softib_xrcd(ibxrcd);
	int ret;

	ret = softib_destroy(dev, VMRI_OP_xrcd_destroy, xrcd->handle);
	if (ret)
		return ret;
	return softib_destroy(dev, VMRI_OP_pd_destroy, xrcd->pd);
}
