// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: a device for a subnet manager (attached with sm=1, in dom0).
 *
 * What the manager sends from QP0 is answered on its way: what goes to VMRI is the
 * response, from QP0 to itself, with the LID that answered as immediate data.  So
 * the request completes and a response is received as on any port, and nothing of
 * it leaves the domain.
 */
#include <linux/slab.h>
#include <rdma/ib_mad.h>

#include "softib.h"
#include "switch.h"

struct softib_sm {
	struct softib_switch sw;
	struct softib_dev *dev;
	struct work_struct work;
	bool runs;			/* as the work has it, which alone sets it */
};

/* ---- changes ---- */

static bool softib_sm_is_wanted(const struct softib_dev *dev)
{
	return READ_ONCE(dev->port_cap_flags) & IB_PORT_SM;
}

/* The fabric has changed, or a manager starts or ends. */
static void softib_sm_work(struct work_struct *work)
{
	struct softib_sm *sm = container_of(work, struct softib_sm, work);
	bool runs = softib_sm_is_wanted(sm->dev);

	/* Watched first, so that no change is missed. */
	softib_call(sm->dev, VMRI_OP_fabric_watch, NULL);
	softib_switch_refresh(&sm->sw);
	if (sm->runs && !runs)
		softib_switch_release(&sm->sw);
	sm->runs = runs;
}

/**
 * softib_sm_update() - look again at the fabric, and whether a manager runs
 * @dev:	device
 *
 * Context: any.
 */
void softib_sm_update(struct softib_dev *dev)
{
	if (dev->sm)
		queue_work(dev->wq, &dev->sm->work);
}

/**
 * softib_sm_start() - make a device ready for a subnet manager
 * @dev:	device, whose event queues exist
 *
 * Return: 0, also for a device that is for none; -ENOMEM.
 */
int softib_sm_start(struct softib_dev *dev)
{
	struct softib_sm *sm;

	if (!(dev->attr.flags & VMRI_DEVF_SM))
		return 0;
	sm = kzalloc(sizeof(*sm), GFP_KERNEL);
	if (!sm)
		return -ENOMEM;

	sm->dev = dev;
	softib_switch_init(&sm->sw, dev, dev->attr.fabric,
			   dev->attr.port_guid);
	INIT_WORK(&sm->work, softib_sm_work);
	dev->sm = sm;
	softib_sm_update(dev);
	flush_work(&sm->work);
	return 0;
}

/* Nobody sends, and no event comes any more. */
void softib_sm_stop(struct softib_dev *dev)
{
	struct softib_sm *sm = dev->sm;

	if (!sm)
		return;
	cancel_work_sync(&sm->work);
	if (sm->runs)
		softib_switch_release(&sm->sw);
	dev->sm = NULL;
	kfree(sm);
}

/* ---- packets ---- */

/* A packet as its sender gives it: false for another length. */
static bool softib_sm_gather(const struct ib_send_wr *wr, struct ib_smp *smp)
{
	size_t length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > sizeof(*smp) - length)
			return false;
		memcpy((u8 *)smp + length, ib_virt_dma_to_ptr(sge->addr),
		       sge->length);
		length += sge->length;
	}
	return length == sizeof(*smp);
}

/* The same request with another packet, to another place. */
static int softib_sm_redirect(struct softib_qp *qp, const struct ib_send_wr *wr,
			      const struct ib_smp *smp, u16 dlid, u16 from)
{
	struct softib_ah ah = { .av.dlid = dlid };
	struct ib_sge sge = {
		.addr = (uintptr_t)smp,
		.length = sizeof(*smp),
	};
	struct ib_ud_wr send = *ud_wr(wr);
	const struct ib_send_wr *bad;

	send.ah = &ah.ibah;
	send.wr.next = NULL;
	send.wr.opcode = IB_WR_SEND_WITH_IMM;
	send.wr.ex.imm_data = cpu_to_be32(from);
	send.wr.send_flags |= IB_SEND_INLINE;
	send.wr.sg_list = &sge;
	send.wr.num_sge = 1;
	return softib_post_sends(qp, &send.wr, &bad);
}

static int softib_sm_send(struct softib_qp *qp, const struct ib_send_wr *wr)
{
	struct softib_dev *dev = to_softib_dev(qp->ibqp.device);
	struct ib_smp in __aligned(8), out __aligned(8);
	struct ib_send_wr alone = *wr;
	const struct ib_send_wr *bad;
	struct vmri_dev_attr attr;
	u16 dlid, from;

	if (wr->opcode != IB_WR_SEND || !ud_wr(wr)->ah)
		return -EINVAL;
	if (!softib_sm_gather(wr, &in) ||
	    softib_call(dev, VMRI_OP_dev_query, &attr))
		goto as_it_is;

	dlid = to_softib_ah(ud_wr(wr)->ah)->av.dlid;
	switch (softib_switch_answer(&dev->sm->sw, &in, dlid, &out, &from)) {
	case SOFTIB_SMP_ANSWERED:
		return softib_sm_redirect(qp, wr, &out, attr.lid, from);
	case SOFTIB_SMP_LOST:
		/* Where nobody is. */
		return softib_sm_redirect(qp, wr, &in, 0, 0);
	case SOFTIB_SMP_OWN:
		break;
	}
as_it_is:
	alone.next = NULL;
	return softib_post_sends(qp, wr->next ? &alone : wr, &bad);
}

/* softib_post_send() for QP0 of such a device. */
int softib_sm_post_send(struct softib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad_wr)
{
	int ret = 0;

	for (; wr && !ret; wr = wr->next) {
		*bad_wr = wr;
		ret = softib_sm_send(qp, wr);
	}
	return ret;
}

/* Whose response it is that QP0 has received. */
void softib_sm_fix_wc(struct ib_wc *wc)
{
	if (!(wc->opcode & IB_WC_RECV) || !(wc->wc_flags & IB_WC_WITH_IMM))
		return;
	wc->slid = be32_to_cpu(wc->ex.imm_data);
	wc->wc_flags &= ~IB_WC_WITH_IMM;
}

/**
 * softib_sm_answers() - answer a request for the device's own port, if it is one
 * @dev:	device
 * @smp:	request, of which the data is filled in
 * @status:	of the response
 *
 * Context: any.
 * Return: false when the manager is to have it.
 */
bool softib_sm_answers(struct softib_dev *dev, struct ib_smp *smp, u16 *status)
{
	return softib_switch_own_smp(&dev->sm->sw, smp, status);
}
