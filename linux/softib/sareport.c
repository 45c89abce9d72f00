// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: reports of events to who has asked the port's subnet administrator for them.
 *
 * VMRI tells once that the fabric has changed; what has is found by looking.  However
 * often others change it, this looks a few times a second, tells a bounded number of
 * notices each time, and waits when too many are not answered yet.  Who does not
 * answer any of the retries has gone, and is forgotten.
 */
#include <linux/jiffies.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>

#include "softib.h"

#define SOFTIB_REPORT_PAUSE	(HZ / 4)	/* between two looks */
#define SOFTIB_REPORTS		128		/* that are not answered */
#define SOFTIB_REPORT_MS	1000		/* to answer one */
#define SOFTIB_REPORT_RETRIES	3

static void softib_report_later(struct softib_dev *dev)
{
	unsigned long now = jiffies, next = READ_ONCE(dev->reports.next);

	queue_delayed_work(dev->wq, &dev->reports.work,
			   time_before(now, next) ? next - now : 0);
}

/* ---- sending ---- */

/* A notice, to whom it concerns, from a port. */
struct softib_report {
	struct softib_reports *reports;
	u16 lid;
};

static void softib_report_fill(struct softib_reports *r,
			       const struct softib_notice *notice,
			       struct ib_sa_mad *mad)
{
	mad->mad_hdr.base_version = IB_MGMT_BASE_VERSION;
	mad->mad_hdr.mgmt_class = IB_MGMT_CLASS_SUBN_ADM;
	mad->mad_hdr.class_version = IB_SA_CLASS_VERSION;
	mad->mad_hdr.method = IB_MGMT_METHOD_REPORT;
	mad->mad_hdr.attr_id = cpu_to_be16(IB_SA_ATTR_NOTICE);
	mad->mad_hdr.tid = cpu_to_be64((u64)r->agent->hi_tid << 32 |
				       ++r->last_tid);
	mad->sa_hdr.attr_offset = cpu_to_be16(sizeof(*notice) / 8);
	memcpy(mad->data, notice, sizeof(*notice));
}

static struct ib_ah *softib_report_ah(struct softib_reports *r, u16 lid)
{
	struct rdma_ah_attr attr = {
		.type = RDMA_AH_ATTR_TYPE_IB,
		.port_num = SOFTIB_PORT,
	};

	rdma_ah_set_dlid(&attr, lid);
	return rdma_create_ah(r->agent->qp->pd, &attr,
			      RDMA_CREATE_AH_SLEEPABLE);
}

static void softib_report_send(struct softib_reports *r, u16 lid,
			       const struct softib_inform *inform,
			       const struct softib_notice *notice)
{
	struct ib_mad_send_buf *msg;
	struct ib_ah *ah;

	ah = softib_report_ah(r, lid);
	if (IS_ERR(ah))
		return;
	msg = ib_create_send_mad(r->agent, inform->qpn, inform->pkey_index,
				 false, IB_MGMT_SA_HDR, IB_MGMT_SA_DATA,
				 GFP_KERNEL, IB_MGMT_BASE_VERSION);
	if (IS_ERR(msg))
		goto err_ah;

	softib_report_fill(r, notice, msg->mad);
	msg->ah = ah;
	msg->context[0] = (void *)(uintptr_t)inform->id;
	msg->timeout_ms = SOFTIB_REPORT_MS;
	msg->retries = SOFTIB_REPORT_RETRIES;
	atomic_inc(&r->pending);
	if (!ib_post_send_mad(msg, NULL))
		return;

	atomic_dec(&r->pending);
	ib_free_send_mad(msg);
err_ah:
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

static void softib_report_tell(void *context,
			       const struct softib_notice *notice)
{
	const struct softib_report *report = context;
	struct softib_reports *r = report->reports;
	struct softib_inform inform;
	unsigned int i;

	for (i = 0; i < SOFTIB_MAX_INFORMS; i++)
		if (softib_inform_wants(&r->informs, i, notice, &inform))
			softib_report_send(r, report->lid, &inform, notice);
}

/**
 * softib_report_sent() - a message of the administrator's was sent, or answered
 * @dev:	device
 * @sent:	how that ended
 *
 * Context: any.
 */
void softib_report_sent(struct softib_dev *dev,
			const struct ib_mad_send_wc *sent)
{
	u32 id = (uintptr_t)sent->send_buf->context[0];
	struct softib_reports *r = &dev->reports;

	if (!id)
		return;
	if (sent->status == IB_WC_RESP_TIMEOUT_ERR)
		softib_inform_forget(&r->informs, id);
	atomic_dec(&r->pending);
	if (xchg(&r->held, false))
		softib_report_later(dev);
}

/* ---- looking ---- */

/* Notices that may be sent now; none: who answers wakes the work. */
static u32 softib_report_room(struct softib_reports *r)
{
	u32 nr = READ_ONCE(r->informs.nr), pending, room;

	xchg(&r->held, true);
	pending = atomic_read(&r->pending);
	room = pending < SOFTIB_REPORTS && nr ?
	       (SOFTIB_REPORTS - pending) / nr : 0;
	if (room)
		WRITE_ONCE(r->held, false);
	return room;
}

static void softib_report_look(struct softib_dev *dev)
{
	struct softib_reports *r = &dev->reports;
	struct softib_report report = { .reports = r };
	u32 room = softib_report_room(r);
	struct vmri_dev_attr attr;
	struct softib_view now;
	bool more = true;

	if (!room)
		return;

	WRITE_ONCE(r->next, jiffies + SOFTIB_REPORT_PAUSE);
	/* Watched first, so that no change is missed. */
	if (softib_call(dev, VMRI_OP_fabric_watch, NULL) ||
	    softib_call(dev, VMRI_OP_dev_query, &attr))
		return;
	report.lid = attr.lid;
	if (!softib_view_look(dev, &now))
		more = softib_view_advance(&r->told, &now, room, &attr,
					   softib_report_tell, &report);
	softib_view_free(&now);
	if (more)
		softib_report_later(dev);
}

/* Nobody is to be told any more. */
static void softib_report_end(struct softib_reports *r)
{
	WRITE_ONCE(r->watching, false);
	softib_view_free(&r->told);
}

/* Has the port another manager, which knows of no subscription made here? */
static bool softib_report_is_managed(struct softib_dev *dev)
{
	struct vmri_dev_attr attr;

	return softib_call(dev, VMRI_OP_dev_query, &attr) ||
	       attr.sm_lid != attr.lid;
}

static void softib_report_work(struct work_struct *work)
{
	struct softib_reports *r = container_of(to_delayed_work(work),
						struct softib_reports, work);
	struct softib_dev *dev = container_of(r, struct softib_dev, reports);

	mutex_lock(&r->lock);
	if (softib_report_is_managed(dev))
		softib_informs_clear(&r->informs);
	if (r->agent && READ_ONCE(r->informs.nr))
		softib_report_look(dev);
	else
		softib_report_end(r);
	mutex_unlock(&r->lock);
}

/* The fabric has changed, or its manager.  Context: any. */
void softib_report_changed(struct softib_dev *dev)
{
	if (READ_ONCE(dev->reports.watching))
		softib_report_later(dev);
}

/**
 * softib_report_watch() - tell of what changes from now on
 * @dev:	device, of which somebody has asked for that
 *
 * Return: 0 or a negative errno.
 */
int softib_report_watch(struct softib_dev *dev)
{
	struct softib_reports *r = &dev->reports;
	int ret = 0;

	mutex_lock(&r->lock);
	if (!r->watching) {
		/* The first change may be there before this ends. */
		WRITE_ONCE(r->watching, true);
		ret = softib_call(dev, VMRI_OP_fabric_watch, NULL);
		if (!ret)
			ret = softib_view_look(dev, &r->told);
		if (ret)
			softib_report_end(r);
	}
	mutex_unlock(&r->lock);
	return ret;
}

/* By which agent; NULL: by none any more. */
void softib_report_by(struct softib_dev *dev, struct ib_mad_agent *agent)
{
	mutex_lock(&dev->reports.lock);
	dev->reports.agent = agent;
	mutex_unlock(&dev->reports.lock);
}

void softib_reports_init(struct softib_dev *dev)
{
	struct softib_reports *r = &dev->reports;

	softib_informs_init(&r->informs);
	mutex_init(&r->lock);
	INIT_DELAYED_WORK(&r->work, softib_report_work);
	r->next = jiffies;
}

/* No event comes, and nobody is told anything, any more. */
void softib_reports_stop(struct softib_dev *dev)
{
	cancel_delayed_work_sync(&dev->reports.work);
	softib_report_end(&dev->reports);
}
