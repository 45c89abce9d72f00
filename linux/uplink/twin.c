// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB's uplink: twins, from the message that asks for one to the answer that it
 * is gone.
 *
 * Each has a list of what is to be done with it, and at most one worker at a time.
 */
#include <linux/slab.h>

#include "uplink.h"

/* ---- workers ---- */

static struct uplink_op *uplink_next_op(struct uplink_twin *twin)
{
	struct uplink_op *op;

	spin_lock_irq(&twin->up->lock);
	op = list_first_entry_or_null(&twin->ops, struct uplink_op, entry);
	if (op)
		list_del(&op->entry);
	else
		twin->busy = false;
	spin_unlock_irq(&twin->up->lock);
	return op;
}

static void uplink_answer(struct uplink *up, struct uplink_op *op)
{
	spin_lock_irq(&up->lock);
	list_add_tail(&op->entry, &up->answers);
	spin_unlock_irq(&up->lock);
	uplink_kick(up);
}

/**
 * uplink_twin_charge() - take from the guest's budget what a twin needs
 * @twin:	twin with its protection domain, that is being made
 * @kib:	how much; it is given back when the twin has gone
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int uplink_twin_charge(struct uplink_twin *twin, u32 kib)
{
	int ret = uplink_budget_take(twin->pd->domid, kib);

	if (!ret)
		twin->kib = kib;
	return ret;
}

/**
 * uplink_twin_lose() - the NIC does not let go of a twin
 * @twin:	twin that is ending
 * @error:	why
 *
 * Then it stays for ever, with all that it has, and counts as its guest's.
 */
void uplink_twin_lose(struct uplink_twin *twin, int error)
{
	uplink_lose(twin->up, twin->is_qp ? "queue pair" : "region", error);
	twin->lost = true;
	uplink_twin_get(twin);
}

/* Nothing of it is left, or all for ever. */
static void uplink_leave(struct uplink_twin *twin)
{
	if (!twin->lost) {
		if (twin->kib)
			uplink_budget_give(twin->pd->domid, twin->kib);
		uplink_pd_put(twin->up, twin->pd);
	}
	twin->pd = NULL;
}

/* Has its end been asked for?  Then nothing need begin. */
static bool uplink_is_ending(struct uplink_twin *twin)
{
	bool ending;

	spin_lock_irq(&twin->up->lock);
	ending = twin->destroy.twin;
	spin_unlock_irq(&twin->up->lock);
	return ending;
}

static int uplink_make(struct uplink_twin *twin, struct uplink_op *op)
{
	int ret;

	if (uplink_is_ending(twin))
		return -ECANCELED;
	twin->pd = uplink_pd_get(twin->up, &op->msg);
	if (IS_ERR(twin->pd)) {
		ret = PTR_ERR(twin->pd);
		twin->pd = NULL;
		return ret;
	}

	ret = twin->is_qp ?
	      uplink_qp_create(to_uplink_qp(twin), &op->msg,
			       &op->result.number) :
	      uplink_mr_create(to_uplink_mr(twin), &op->msg,
			       &op->result.number);
	if (ret)
		uplink_leave(twin);
	return ret;
}

static void uplink_unmake(struct uplink_twin *twin)
{
	if (!twin->pd)
		return;
	if (twin->is_qp)
		uplink_qp_destroy(to_uplink_qp(twin));
	else
		uplink_mr_destroy(to_uplink_mr(twin));
	uplink_leave(twin);
}

static int uplink_move(struct uplink_twin *twin, struct uplink_op *op)
{
	if (!twin->pd || !twin->is_qp)
		return -EINVAL;
	if (op->attr.state == VMRI_QPS_RTR && uplink_is_ending(twin))
		return -ECANCELED;
	return uplink_qp_modify(to_uplink_qp(twin), &op->attr);
}

/*
 * What the guest may hear.  Some errors mean something else to who passes them on:
 * that the device has gone, or that the command is to be repeated.
 */
static int uplink_told(int error)
{
	switch (error) {
	case 0:
	case -ENOMEM:
	case -EINVAL:
	case -EOPNOTSUPP:
	case -EHOSTUNREACH:
	case -ETIMEDOUT:
	case -ECANCELED:
		return error;
	default:
		return -EIO;
	}
}

static void uplink_do(struct uplink_twin *twin, struct uplink_op *op)
{
	switch (op->type) {
	case VMRI_UPLINK_MODIFY:
		op->result.error = uplink_told(uplink_move(twin, op));
		break;
	case VMRI_UPLINK_DESTROY:
		uplink_unmake(twin);
		break;
	default:
		op->result.error = uplink_told(uplink_make(twin, op));
	}
}

static void uplink_twin_work(struct work_struct *work)
{
	struct uplink_twin *twin = container_of(work, struct uplink_twin, work);
	struct uplink_op *op = uplink_next_op(twin);
	bool last;

	while (op) {
		/* With the last answer the twin goes, and the op with it. */
		last = op->type == VMRI_UPLINK_DESTROY;
		uplink_do(twin, op);
		uplink_answer(twin->up, op);
		op = last ? NULL : uplink_next_op(twin);
	}
}

/* Have a worker do it, after what there is already. */
static void uplink_ask(struct uplink_twin *twin, struct uplink_op *op, u8 type,
		       u8 answer)
{
	struct uplink *up = twin->up;
	bool idle;

	op->type = type;
	op->result = (struct vmri_uplink_result) {
		.twin = twin->name,
		.type = answer,
		.number = type == VMRI_UPLINK_MODIFY ? op->attr.state : 0,
	};

	spin_lock_irq(&up->lock);
	op->twin = twin;
	list_add_tail(&op->entry, &twin->ops);
	idle = !twin->busy;
	twin->busy = true;
	spin_unlock_irq(&up->lock);
	if (idle)
		queue_work(twin->guest->wq, &twin->work);
}

/* ---- the runner ---- */

static void uplink_answer_now(struct uplink *up, u32 name, u8 type, int error,
			      u32 number)
{
	struct vmri_uplink_result result = {
		.twin = name,
		.type = type,
		.error = error,
		.number = number,
	};

	uplink_put_result(up, &result);
}

static struct uplink_twin *uplink_twin_alloc(struct uplink *up,
					     const struct vmri_uplink_msg *msg)
{
	bool is_qp = msg->type == VMRI_UPLINK_CREATE_QP;
	struct uplink_twin *twin;
	struct uplink_qp *qp;
	struct uplink_mr *mr;

	if (is_qp) {
		qp = kzalloc(sizeof(*qp), GFP_KERNEL);
		twin = qp ? &qp->twin : NULL;
	} else {
		mr = kzalloc(sizeof(*mr), GFP_KERNEL);
		twin = mr ? &mr->twin : NULL;
	}
	if (!twin)
		return NULL;

	twin->up = up;
	twin->is_qp = is_qp;
	twin->name = msg->twin;
	twin->create.msg = *msg;
	kref_init(&twin->ref);
	INIT_LIST_HEAD(&twin->ops);
	INIT_WORK(&twin->work, uplink_twin_work);
	return twin;
}

static void uplink_twin_release(struct kref *ref)
{
	struct uplink_twin *twin = container_of(ref, struct uplink_twin, ref);

	if (twin->is_qp)
		kfree(to_uplink_qp(twin));
	else
		kfree(to_uplink_mr(twin));
}

void uplink_twin_get(struct uplink_twin *twin)
{
	kref_get(&twin->ref);
}

void uplink_twin_put(struct uplink_twin *twin)
{
	kref_put(&twin->ref, uplink_twin_release);
}

/* VMRI_UPLINK_CREATE_QP, _CREATE_MR. */
void uplink_twin_create(struct uplink *up, const struct vmri_uplink_msg *msg)
{
	struct uplink_twin *twin = uplink_twin_alloc(up, msg);

	if (!twin)
		goto err_answer;
	twin->guest = uplink_guest_get(up, msg->domid);
	if (!twin->guest)
		goto err_twin;
	if (xa_insert(&up->twins, twin->name, twin, GFP_KERNEL))
		goto err_guest;
	up->nr_twins++;
	uplink_ask(twin, &twin->create, msg->type, VMRI_UPLINK_MADE);
	return;

err_guest:
	uplink_guest_put(up, twin->guest);
err_twin:
	uplink_twin_put(twin);
err_answer:
	uplink_answer_now(up, msg->twin, VMRI_UPLINK_MADE, -ENOMEM, 0);
}

/* VMRI_UPLINK_MODIFY. */
void uplink_twin_modify(struct uplink *up, const struct vmri_uplink_msg *msg,
			const struct vmri_qp_modify *attr)
{
	struct uplink_twin *twin = xa_load(&up->twins, msg->twin);
	struct uplink_op *op;

	if (!twin) {
		uplink_answer_now(up, msg->twin, VMRI_UPLINK_MOVED, -ENOENT,
				  attr->state);
		return;
	}
	/* One that is lost would leave the twin in a state that it should not have. */
	op = kzalloc(sizeof(*op), GFP_KERNEL | __GFP_NOFAIL);
	op->attr = *attr;
	uplink_ask(twin, op, VMRI_UPLINK_MODIFY, VMRI_UPLINK_MOVED);
}

/* VMRI_UPLINK_DESTROY: nothing of it is to be found any more. */
void uplink_twin_destroy(struct uplink *up, const struct vmri_uplink_msg *msg)
{
	struct uplink_twin *twin = xa_erase(&up->twins, msg->twin);

	if (twin)
		uplink_ask(twin, &twin->destroy, VMRI_UPLINK_DESTROY,
			   VMRI_UPLINK_GONE);
	else
		uplink_answer_now(up, msg->twin, VMRI_UPLINK_GONE, 0, 0);
}

/* The queue pair of this name, to which requests can be posted; or NULL. */
struct uplink_qp *uplink_find_qp(struct uplink *up, u32 name)
{
	struct uplink_twin *twin = xa_load(&up->twins, name);

	return twin && twin->is_qp ? to_uplink_qp(twin) : NULL;
}

/**
 * uplink_end_twins() - destroy all twins, and wait for it
 * @up:		uplink that is closing; the caller is its runner
 *
 * What was under way comes back to VMRI, as errors.
 */
void uplink_end_twins(struct uplink *up)
{
	struct uplink_twin *twin;
	unsigned long name;

	xa_for_each(&up->twins, name, twin) {
		xa_erase(&up->twins, name);
		uplink_ask(twin, &twin->destroy, VMRI_UPLINK_DESTROY,
			   VMRI_UPLINK_GONE);
	}
	while (up->nr_twins) {
		wait_event(up->wait, uplink_has_chores(up));
		uplink_poll_ready(up);
		uplink_take_answers(up);
		uplink_flush(up);
	}
}
