// SPDX-License-Identifier: GPL-2.0-only
/*
 * SoftIB: the hypercall.  Nothing else in the driver calls VMRI.
 *
 * A command that creates, changes or destroys something may be answered with
 * -EINPROGRESS; its result then comes as an event, perhaps before the call that
 * asked for it has returned.  So results are kept until somebody fetches them,
 * and no more commands are under way than results can be kept.
 */
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/smp.h>
#include <asm/xen/hypercall.h>

#include "softib.h"

/* Xen's errnos have Linux's numbers as far as VMRI uses them. */
static int softib_errno(long ret)
{
	switch (ret) {
	case 0:
	case -EPERM:
	case -ENOENT:
	case -EIO:
	case -E2BIG:
	case -EAGAIN:
	case -ENOMEM:
	case -EACCES:
	case -EFAULT:
	case -EBUSY:
	case -EEXIST:
	case -ENODEV:
	case -EINVAL:
	case -EOPNOTSUPP:
	case -EINPROGRESS:
	case -EHOSTUNREACH:
		return ret;
	case -ENOSYS:
		return -EOPNOTSUPP;
	case -ENOSPC:
		/* A limit that dom0 has set: to verbs, no resources. */
		return -ENOMEM;
	default:
		return -EIO;
	}
}

static long softib_hypercall(struct softib_dev *dev, unsigned int cmd,
			     unsigned long arg)
{
	int call = srcu_read_lock(&dev->calls);
	long ret = xen_single_call(dev->hypercall, cmd, dev->dev_id, arg, 0, 0);

	srcu_read_unlock(&dev->calls, call);
	/* For a twin it may be the uplink that has gone. */
	if (unlikely(ret == -ENODEV) && cmd != VMRI_OP_twin_create)
		WRITE_ONCE(dev->gone, true);
	return ret;
}

/**
 * softib_settle() - wait until VMRI writes nothing for a device that is gone
 * @dev:	device of which a call has said so
 *
 * VMRI lets go of a device when the last call that is under way has returned:
 * another CPU of this guest may still be in one, and its queues be written.  One
 * that a process has entered by a doorbell takes interrupts when it returns.
 *
 * Context: may sleep.
 */
void softib_settle(struct softib_dev *dev)
{
	synchronize_srcu(&dev->calls);
	if (dev->doorbells)
		kick_all_cpus_sync();
}

/**
 * softib_version() - ask what answers at a hypercall number
 * @hypercall:	number
 * @version:	filled in
 *
 * Return: 0, or -EOPNOTSUPP when nothing does.
 */
int softib_version(unsigned int hypercall, struct vmri_version *version)
{
	return softib_errno(xen_single_call(hypercall, VMRI_OP_version, 0,
					    (unsigned long)version, 0, 0));
}

/**
 * softib_call() - a command that is answered at once
 * @dev:	device
 * @cmd:	VMRI_OP_*
 * @arg:	its structure, in kernel memory
 *
 * Context: any.
 * Return: 0 or a negative errno; -ENODEV when VMRI has no such device.
 */
int softib_call(struct softib_dev *dev, unsigned int cmd, void *arg)
{
	return softib_errno(softib_hypercall(dev, cmd, (unsigned long)arg));
}

/**
 * softib_schedule() - have VMRI run a QP's queues on this CPU, for a while
 * @dev:	device
 * @qpn:	QP
 *
 * Context: any.
 * Return: 0 when nothing is left to do, VMRI_SCHEDULE_MORE when it is to be
 * called again, or a negative errno.
 */
int softib_schedule(struct softib_dev *dev, u32 qpn)
{
	long ret = softib_hypercall(dev, VMRI_OP_schedule, qpn);

	return ret == VMRI_SCHEDULE_MORE ? ret : softib_errno(ret);
}

/* The same for who waits for receives of an SRQ. */
int softib_srq_schedule(struct softib_dev *dev, u32 handle)
{
	long ret = softib_hypercall(dev, VMRI_OP_srq_schedule, handle);

	return ret == VMRI_SCHEDULE_MORE ? ret : softib_errno(ret);
}

void softib_commands_init(struct softib_commands *cmds)
{
	sema_init(&cmds->slots, SOFTIB_MAX_COMMANDS);
	spin_lock_init(&cmds->lock);
	init_waitqueue_head(&cmds->wait);
}

/**
 * softib_command_done() - keep the result of a command for its caller
 * @dev:	device
 * @ev:		VMRI_EVENT_COMMAND
 *
 * Context: interrupt.
 */
void softib_command_done(struct softib_dev *dev, const struct vmri_event *ev)
{
	struct softib_commands *cmds = &dev->commands;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&cmds->lock, flags);
	for (i = 0; i < SOFTIB_MAX_COMMANDS; i++) {
		struct softib_result *r = &cmds->done[i];

		if (r->valid)
			continue;
		r->valid = true;
		r->command = ev->command;
		r->id = ev->id;
		r->result = ev->data;
		break;
	}
	spin_unlock_irqrestore(&cmds->lock, flags);
	wake_up_all(&cmds->wait);
}

static bool softib_command_fetch(struct softib_commands *cmds, unsigned int cmd,
				 u32 id, s64 *result)
{
	bool found = false;
	int i;

	spin_lock_irq(&cmds->lock);
	for (i = 0; i < SOFTIB_MAX_COMMANDS && !found; i++) {
		struct softib_result *r = &cmds->done[i];

		if (!r->valid || r->command != cmd || r->id != id)
			continue;
		*result = r->result;
		r->valid = false;
		found = true;
	}
	spin_unlock_irq(&cmds->lock);
	return found;
}

/* The result may never come, but only if the device goes. */
static int softib_command_wait(struct softib_dev *dev, unsigned int cmd, u32 id,
			       s64 *value)
{
	struct softib_commands *cmds = &dev->commands;
	struct vmri_dev_attr attr;
	int ret;

	while (!wait_event_timeout(cmds->wait,
				   softib_command_fetch(cmds, cmd, id, value),
				   HZ)) {
		if (softib_call(dev, VMRI_OP_dev_query, &attr))
			return -ENODEV;
	}
	ret = *value < 0 ? softib_errno(*value) : 0;
	return ret == -EINPROGRESS ? -EIO : ret;
}

/**
 * softib_command_value() - a command that may be answered later, with a value
 * @dev:	device
 * @cmd:	VMRI_OP_*
 * @arg:	its structure, in kernel memory
 * @id:		within @arg: the handle of the object
 * @value:	set if it was answered later: what the event says
 *
 * Context: may sleep.
 * Return: 0 or a negative errno, never -EINPROGRESS.
 */
int softib_command_value(struct softib_dev *dev, unsigned int cmd, void *arg,
			 const u32 *id, s64 *value)
{
	int ret;

	down(&dev->commands.slots);
	ret = softib_call(dev, cmd, arg);
	if (ret == -EINPROGRESS)
		ret = softib_command_wait(dev, cmd, *id, value);
	up(&dev->commands.slots);
	return ret;
}

/* The same without a value. */
int softib_command(struct softib_dev *dev, unsigned int cmd, void *arg,
		   const u32 *id)
{
	s64 value;

	return softib_command_value(dev, cmd, arg, id, &value);
}

/**
 * softib_command_again() - a command that is to be given again
 * @dev:	device
 * @cmd:	VMRI_OP_qp_modify
 * @arg:	its structure, in kernel memory
 * @id:		within @arg: the handle of the object
 *
 * What is answered later is done elsewhere then, and nothing here yet.  An uplink
 * that goes in between answers -ENODEV, of itself: what VMRI does without it is
 * asked for once more.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno, never -EINPROGRESS; -ENODEV when VMRI has no such
 * device.
 */
int softib_command_again(struct softib_dev *dev, unsigned int cmd, void *arg,
			 const u32 *id)
{
	bool later, alone = false;
	s64 value;
	int ret;

	down(&dev->commands.slots);
	do {
		ret = softib_call(dev, cmd, arg);
		later = ret == -EINPROGRESS;
		if (later)
			ret = softib_command_wait(dev, cmd, *id, &value);
		if (ret == -ENODEV && !READ_ONCE(dev->gone)) {
			ret = alone ? -EIO : 0;
			alone = true;
		}
	} while (later && !ret);
	up(&dev->commands.slots);
	return ret;
}

/**
 * softib_destroy() - destroy an object
 * @dev:	device
 * @cmd:	VMRI_OP_*_destroy or _deregister
 * @handle:	object
 *
 * Context: may sleep.
 * Return: 0 when VMRI does not know the object any more, for whatever reason, and
 * so touches none of its memory; a negative errno when it still may.
 */
int softib_destroy(struct softib_dev *dev, unsigned int cmd, u32 handle)
{
	struct vmri_object object = { .handle = handle };
	int ret;

	ret = softib_command(dev, cmd, &object, &object.handle);
	if (ret == -ENODEV)
		softib_settle(dev);
	return ret == -ENOENT || ret == -ENODEV ? 0 : ret;
}
