// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: the ring, and the thread that runs the uplink.
 */
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/vmalloc.h>
#include <asm/xen/hypercall.h>
#include <asm/xen/page.h>
#include <xen/events.h>
#include <xen/interface/event_channel.h>

#include "../softib/ring.h"
#include "uplink.h"

#define UPLINK_LOG2_UNITS	12	/* 256 KiB */
#define UPLINK_UNITS		BIT(UPLINK_LOG2_UNITS)
/* Messages that are read before anything else gets a turn. */
#define UPLINK_BURST		64

static_assert(sizeof(struct vmri_uplink_hdr) == VMRI_RING_OFFSET);

/* ---- memory ---- */

/**
 * uplink_ring_open() - make the ring
 * @up:		uplink
 *
 * Return: 0 or -ENOMEM.
 */
int uplink_ring_open(struct uplink *up)
{
	struct uplink_ring *ring = &up->ring;
	u32 i;

	ring->nr_pages = PFN_UP(VMRI_RING_OFFSET +
				UPLINK_UNITS * VMRI_UPLINK_UNIT);
	ring->gfns = kcalloc(ring->nr_pages, sizeof(u64), GFP_KERNEL);
	ring->hdr = vzalloc((size_t)ring->nr_pages << PAGE_SHIFT);
	if (!ring->gfns || !ring->hdr) {
		uplink_ring_close(up);
		return -ENOMEM;
	}

	ring->units = (void *)ring->hdr + VMRI_RING_OFFSET;
	for (i = 0; i < ring->nr_pages; i++)
		ring->gfns[i] = xen_page_to_gfn(vmalloc_to_page((void *)ring->hdr +
					       ((size_t)i << PAGE_SHIFT)));
	return 0;
}

void uplink_ring_close(struct uplink *up)
{
	vfree(up->ring.hdr);
	kfree(up->ring.gfns);
}

/* ---- reading ---- */

static bool uplink_ring_has(const struct uplink *up)
{
	return ring_load(&up->ring.hdr->prod) != up->ring.cons;
}

static void uplink_copy_unit(struct uplink *up, u32 index, void *to)
{
	memcpy(to, up->ring.units + (size_t)(index & (UPLINK_UNITS - 1)) *
		   VMRI_UPLINK_UNIT, VMRI_UPLINK_UNIT);
}

/* What comes after the first unit follows it in up->message. */
static void uplink_handle(struct uplink *up, const struct vmri_uplink_msg *msg)
{
	void *payload = up->message + sizeof(*msg);
	struct uplink_qp *qp;

	switch (msg->type) {
	case VMRI_UPLINK_SEND:
		qp = uplink_find_qp(up, msg->twin);
		if (qp)
			uplink_post_send(up, qp, msg, payload);
		break;
	case VMRI_UPLINK_RECV:
		qp = uplink_find_qp(up, msg->twin);
		if (qp)
			uplink_post_recv(up, qp, msg, payload);
		break;
	case VMRI_UPLINK_CREATE_QP:
	case VMRI_UPLINK_CREATE_MR:
		uplink_twin_create(up, msg);
		break;
	case VMRI_UPLINK_MODIFY:
		uplink_twin_modify(up, msg, payload);
		break;
	case VMRI_UPLINK_DESTROY:
		uplink_twin_destroy(up, msg);
		break;
	case VMRI_UPLINK_DATAGRAM:
		uplink_relay_send(up, msg, payload);
		break;
	default:
		pr_warn_once("softib_uplink: a message of type %u\n", msg->type);
	}
}

static unsigned int uplink_max_units(const struct vmri_uplink_msg *msg)
{
	return msg->type == VMRI_UPLINK_DATAGRAM ? VMRI_UPLINK_DATAGRAM_UNITS :
						   VMRI_UPLINK_MSG_UNITS;
}

/* Read some messages. */
static void uplink_ring_read(struct uplink *up)
{
	const struct vmri_uplink_msg *msg = (void *)up->message;
	struct uplink_ring *ring = &up->ring;
	u32 prod = ring_load(&ring->hdr->prod);
	unsigned int i, n;

	if (ring->cons == prod)
		return;

	for (n = 0; n < UPLINK_BURST && ring->cons != prod; n++) {
		uplink_copy_unit(up, ring->cons, up->message);
		if (WARN_ON_ONCE(!msg->units ||
				 msg->units > uplink_max_units(msg) ||
				 msg->units > prod - ring->cons)) {
			ring->cons = prod;
			break;
		}
		for (i = 1; i < msg->units; i++)
			uplink_copy_unit(up, ring->cons + i, up->message +
					 i * VMRI_UPLINK_UNIT);
		ring->cons += msg->units;
		uplink_handle(up, msg);
	}

	ring_store(&ring->hdr->cons, ring->cons);
	/* Before uplink_flush() looks whether somebody waits for room. */
	ring_fence();
}

/* ---- running ---- */

/* Asked when it is about to sleep: VMRI is to wake it. */
static bool uplink_has_work(struct uplink *up)
{
	if (uplink_has_chores(up) || READ_ONCE(up->relay.arrived) ||
	    uplink_ring_has(up) || READ_ONCE(up->ring.hdr->full))
		return true;
	WRITE_ONCE(up->ring.hdr->sleeping, 1);
	ring_fence();
	return uplink_ring_has(up) || READ_ONCE(up->ring.hdr->full);
}

static int uplink_thread(void *data)
{
	struct uplink *up = data;

	while (!kthread_should_stop()) {
		wait_event_idle(up->wait, uplink_has_work(up) ||
				kthread_should_stop());
		WRITE_ONCE(up->ring.hdr->sleeping, 0);
		uplink_ring_read(up);
		uplink_relay_receive(up);
		uplink_poll_ready(up);
		uplink_take_answers(up);
		uplink_flush(up);
		cond_resched();
	}
	return 0;
}

/* There is something to do for the runner.  Context: any. */
void uplink_kick(struct uplink *up)
{
	wake_up(&up->wait);
}

static irqreturn_t uplink_interrupt(int irq, void *data)
{
	uplink_kick(data);
	xen_irq_lateeoi(irq, 0);
	return IRQ_HANDLED;
}

/* Bind the port that Xen owns. */
static int uplink_bind(struct uplink *up, evtchn_port_t port)
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
						uplink_interrupt, 0,
						"softib_uplink", up);
	if (ret < 0) {
		/* Fails when it has been closed already. */
		close.port = bind.local_port;
		HYPERVISOR_event_channel_op(EVTCHNOP_close, &close);
		return ret;
	}
	up->irq = ret;
	return 0;
}

/**
 * uplink_start() - open the uplink at VMRI, and run it
 * @up:		uplink with a ring
 *
 * Return: 0 or a negative errno.
 */
int uplink_start(struct uplink *up)
{
	u32 port;
	int ret;

	ret = uplink_hcall_open(up, UPLINK_LOG2_UNITS, &port);
	if (ret)
		return ret;
	ret = uplink_bind(up, port);
	if (ret)
		goto err_close;

	up->thread = kthread_run(uplink_thread, up, "softib_uplink/%u",
				 up->number);
	if (IS_ERR(up->thread)) {
		ret = PTR_ERR(up->thread);
		goto err_irq;
	}
	return 0;

err_irq:
	unbind_from_irqhandler(up->irq, up);
err_close:
	uplink_hcall_close(up);
	return ret;
}

/**
 * uplink_stop() - end all twins, and then the uplink at VMRI
 * @up:		uplink that runs
 *
 * In this order: when VMRI says that a twin has gone, the guest takes back what it
 * granted.  What guests ask for meanwhile stays in the ring.
 *
 * Context: may sleep.
 */
void uplink_stop(struct uplink *up)
{
	kthread_stop(up->thread);
	WRITE_ONCE(up->closing, true);
	uplink_end_twins(up);
	uplink_hcall_close(up);
	unbind_from_irqhandler(up->irq, up);
}
