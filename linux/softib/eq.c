// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: event queues: from an interrupt to what it is about.
 *
 * There is one for each of the first few CPUs.  VMRI allocates an event channel
 * that belongs to Xen; the guest binds it to itself, so no other domain can
 * raise it.  Completions are reported and short runs of a queue are made in the
 * interrupt; the events of a QP are left to its work.
 */
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/slab.h>
#include <asm/xen/hypercall.h>
#include <xen/events.h>
#include <xen/interface/event_channel.h>
#include <xen/xen-ops.h>

#include "ring.h"
#include "softib.h"

#define SOFTIB_EQ_ENTRIES	BIT(SOFTIB_EQ_LOG2_ENTRIES)

static void softib_completion_event(struct softib_dev *dev, u32 handle)
{
	struct softib_ref *ref = softib_ref_get(&dev->cqs, handle);

	if (!ref)
		return;
	softib_cq_notify(softib_cq_of(ref));
	softib_ref_put(ref);
}

static void softib_cq_error_event(struct softib_dev *dev, u32 handle)
{
	struct softib_cq *cq = softib_cq_of(softib_ref_get(&dev->cqs, handle));
	struct ib_event ev = { .device = &dev->ibdev };

	if (!cq)
		return;
	if (cq->ibcq.event_handler) {
		ev.event = IB_EVENT_CQ_ERR;
		ev.element.cq = &cq->ibcq;
		cq->ibcq.event_handler(&ev, cq->ibcq.cq_context);
	}
	softib_ref_put(&cq->ref);
}

static void softib_srq_event(struct softib_dev *dev, enum ib_event_type type,
			     u32 handle)
{
	struct softib_srq *srq =
		softib_srq_of(softib_ref_get(&dev->srqs, handle));
	struct ib_event ev = { .device = &dev->ibdev, .event = type };

	if (!srq)
		return;
	if (srq->ibsrq.event_handler) {
		ev.element.srq = &srq->ibsrq;
		srq->ibsrq.event_handler(&ev, srq->ibsrq.srq_context);
	}
	softib_ref_put(&srq->ref);
}

static void softib_qp_event(struct softib_dev *dev, unsigned int type, u32 qpn)
{
	struct softib_qp *qp = softib_qp_of(softib_ref_get(&dev->qps, qpn));

	if (!qp)
		return;
	if (type == VMRI_EVENT_QUEUE_READY)
		softib_qp_run(qp);
	else
		softib_qp_later(qp, type);
	softib_ref_put(&qp->ref);
}

/* Tell ib_core and the port's users.  Context: any. */
void softib_port_event(struct softib_dev *dev, enum ib_event_type type)
{
	struct ib_event ev = {
		.device = &dev->ibdev,
		.element.port_num = SOFTIB_PORT,
		.event = type,
	};

	ib_dispatch_event(&ev);
}

static void softib_event(struct softib_dev *dev, const struct vmri_event *ev)
{
	switch (ev->type) {
	case VMRI_EVENT_COMPLETION:
		softib_completion_event(dev, ev->id);
		break;
	case VMRI_EVENT_COMMAND:
		softib_command_done(dev, ev);
		break;
	case VMRI_EVENT_CQ_ERR:
		softib_cq_error_event(dev, ev->id);
		break;
	case VMRI_EVENT_QUEUE_READY:
	case VMRI_EVENT_QP_FATAL:
	case VMRI_EVENT_QP_REQ_ERR:
	case VMRI_EVENT_QP_ACCESS_ERR:
	case VMRI_EVENT_COMM_EST:
	case VMRI_EVENT_SQ_DRAINED:
	case VMRI_EVENT_QP_LAST_WQE_REACHED:
		softib_qp_event(dev, ev->type, ev->id);
		break;
	case VMRI_EVENT_SRQ_ERR:
		softib_srq_event(dev, IB_EVENT_SRQ_ERR, ev->id);
		break;
	case VMRI_EVENT_SRQ_LIMIT:
		softib_srq_event(dev, IB_EVENT_SRQ_LIMIT_REACHED, ev->id);
		break;
	case VMRI_EVENT_PORT_ACTIVE:
		softib_port_event(dev, IB_EVENT_PORT_ACTIVE);
		break;
	case VMRI_EVENT_PORT_ERR:
		softib_port_event(dev, IB_EVENT_PORT_ERR);
		break;
	case VMRI_EVENT_DEVICE_FATAL:
		softib_port_event(dev, IB_EVENT_DEVICE_FATAL);
		break;
	case VMRI_EVENT_LID_CHANGE:
		softib_port_event(dev, IB_EVENT_LID_CHANGE);
		break;
	case VMRI_EVENT_PKEY_CHANGE:
		softib_port_event(dev, IB_EVENT_PKEY_CHANGE);
		break;
	case VMRI_EVENT_SM_CHANGE:
		softib_report_changed(dev);
		softib_port_event(dev, IB_EVENT_SM_CHANGE);
		break;
	case VMRI_EVENT_CLIENT_REREGISTER:
		softib_port_event(dev, IB_EVENT_CLIENT_REREGISTER);
		break;
	case VMRI_EVENT_GID_CHANGE:
		softib_port_event(dev, IB_EVENT_GID_CHANGE);
		break;
	case VMRI_EVENT_FABRIC:
		softib_sm_update(dev);
		softib_report_changed(dev);
		break;
	}
}

static void softib_eq_drain(struct softib_eq *eq)
{
	struct vmri_event ev;

	while (eq->cons != ring_load(&eq->hdr->prod)) {
		ev = eq->ring[eq->cons & (SOFTIB_EQ_ENTRIES - 1)];
		eq->cons++;
		ring_store(&eq->hdr->cons, eq->cons);
		softib_event(eq->dev, &ev);
	}
}

static irqreturn_t softib_eq_interrupt(int irq, void *data)
{
	struct softib_eq *eq = data;
	struct vmri_object object = { .handle = eq->handle };

	/* Ends when what did not fit has been moved in and drained. */
	do {
		softib_eq_drain(eq);
	} while (READ_ONCE(eq->hdr->overflow) &&
		 !softib_call(eq->dev, VMRI_OP_eq_poll, &object));

	/*
	 * One that finds nothing is no sign of a storm: what it was for has been
	 * drained by the one before.
	 */
	xen_irq_lateeoi(irq, 0);
	return IRQ_HANDLED;
}

/* Bind the port that Xen owns, and take its interrupt on @cpu. */
static int softib_eq_bind(struct softib_eq *eq, evtchn_port_t port,
			  unsigned int cpu)
{
	struct evtchn_bind_interdomain bind = {
		.remote_dom = DOMID_SELF,
		.remote_port = port,
	};
	struct evtchn_close close;
	int ret;

	ret = HYPERVISOR_event_channel_op(EVTCHNOP_bind_interdomain, &bind);
	if (ret)
		return ret;

	ret = bind_evtchn_to_irqhandler_lateeoi(bind.local_port,
						softib_eq_interrupt, 0,
						eq->name, eq);
	if (ret < 0) {
		/* Fails when it has been closed already. */
		close.port = bind.local_port;
		HYPERVISOR_event_channel_op(EVTCHNOP_close, &close);
		return ret;
	}
	eq->irq = ret;
	irq_set_affinity_and_hint(eq->irq, cpumask_of(cpu));
	return 0;
}

static int softib_eq_create(struct softib_eq *eq, unsigned int cpu)
{
	struct vmri_eq_create cmd = {
		.log2_entries = SOFTIB_EQ_LOG2_ENTRIES,
		/* Events of the port and the device come to the first one. */
		.flags = eq == eq->dev->eqs ? VMRI_EQF_PORT : 0,
		.vcpu = xen_vcpu_nr(cpu),
	};
	int ret;

	eq->region = softib_region_create(VMRI_RING_OFFSET +
					  SOFTIB_EQ_ENTRIES *
					  sizeof(*eq->ring));
	if (!eq->region)
		return -ENOMEM;
	eq->hdr = eq->region->addr;
	eq->ring = eq->region->addr + VMRI_RING_OFFSET;

	cmd.frames = softib_region_frames(eq->region);
	ret = softib_call(eq->dev, VMRI_OP_eq_create, &cmd);
	if (ret)
		goto err_region;
	eq->handle = cmd.handle;

	ret = softib_eq_bind(eq, cmd.port, cpu);
	if (ret)
		goto err_vmri;
	return 0;

err_vmri:
	if (softib_destroy(eq->dev, VMRI_OP_eq_destroy, eq->handle))
		return ret;	/* VMRI may still write: keep the memory */
err_region:
	softib_region_destroy(eq->region);
	return ret;
}

static void softib_eq_destroy(struct softib_eq *eq)
{
	irq_set_affinity_and_hint(eq->irq, NULL);
	unbind_from_irqhandler(eq->irq, eq);
	if (!softib_destroy(eq->dev, VMRI_OP_eq_destroy, eq->handle))
		softib_region_destroy(eq->region);
}

/**
 * softib_eqs_create() - create the event queues of a device
 * @dev:	device; num_eqs and eqs are set
 *
 * Return: 0 or a negative errno.
 */
int softib_eqs_create(struct softib_dev *dev)
{
	unsigned int num, cpu;
	int ret;

	num = min3(num_online_cpus(), SOFTIB_MAX_EQS, dev->attr.max_eq);
	if (!num)
		return -ENOSPC;
	dev->eqs = kcalloc(num, sizeof(*dev->eqs), GFP_KERNEL);
	if (!dev->eqs)
		return -ENOMEM;

	for_each_online_cpu(cpu) {
		struct softib_eq *eq = &dev->eqs[dev->num_eqs];

		if (dev->num_eqs == num)
			break;
		eq->dev = dev;
		snprintf(eq->name, sizeof(eq->name), "softib-%u-%u",
			 dev->dev_id, dev->num_eqs);
		ret = softib_eq_create(eq, cpu);
		if (ret) {
			softib_eqs_destroy(dev);
			return ret;
		}
		dev->num_eqs++;
	}
	return 0;
}

/* No object refers to an event queue any more. */
void softib_eqs_destroy(struct softib_dev *dev)
{
	while (dev->num_eqs)
		softib_eq_destroy(&dev->eqs[--dev->num_eqs]);
	kfree(dev->eqs);
	dev->eqs = NULL;
}

const struct cpumask *softib_get_vector_affinity(struct ib_device *ibdev,
						 int vector)
{
	struct softib_dev *dev = to_softib_dev(ibdev);

	return irq_get_affinity_mask(dev->eqs[vector].irq);
}
