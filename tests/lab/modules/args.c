// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands with one thing wrong in each.  All start from a template that is
 * seen to work, so that what is refused is what was changed.
 */
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <xen/page.h>

#include "hostile.h"

#define UNMAPPED	0x1000UL		/* where no kernel maps anything */
#define OF_XEN		0xffff82d040200000UL	/* where Xen's own code is */
#define NOBODY		0x00abcdefU		/* a handle never given out */

/* Pages for the rings, and for a memory region of two pages. */
static struct page *pages[4];
static u64 gfns[4];
static u32 pd, eq, cq, qp, key;

/*
 * Call cmd with a copy of `good` in which `field` is `value`.  For lack of the
 * type of a field in C, a macro.
 */
#define REFUSED(cmd, good, field, value, want)				\
	do {								\
		typeof(good) args_ = (good);				\
									\
		args_.field = (value);					\
		hostile_expect(#cmd " with " #field " = " #value,	\
			       hostile_call(VMRI_OP_##cmd, &args_), want); \
	} while (0)

static struct vmri_frames frames(unsigned int first, unsigned int nr)
{
	return (struct vmri_frames){
		.gfns = (unsigned long)&gfns[first],
		.nr = nr,
	};
}

static void bad_frames_of_eq(struct vmri_eq_create good)
{
	REFUSED(eq_create, good, frames.nr, 0, -EINVAL);
	REFUSED(eq_create, good, frames.nr, 2, -EINVAL);
	REFUSED(eq_create, good, frames.nr, ~0U, -EINVAL);
	REFUSED(eq_create, good, frames.reserved, 1, -EINVAL);
	REFUSED(eq_create, good, frames.gfns, 0, -EFAULT);
	REFUSED(eq_create, good, frames.gfns, UNMAPPED, -EFAULT);
	REFUSED(eq_create, good, frames.gfns, OF_XEN, -EFAULT);
	REFUSED(eq_create, good, frames.gfns, ~0ULL - 3, -EFAULT);
}

static void event_queues(void)
{
	struct vmri_eq_create good = {
		.frames = frames(0, 1),
		.log2_entries = 4,
	};
	struct vmri_object obj = { .handle = NOBODY };

	bad_frames_of_eq(good);
	REFUSED(eq_create, good, log2_entries, 0, -EINVAL);
	REFUSED(eq_create, good, log2_entries, 3, -EINVAL);
	REFUSED(eq_create, good, log2_entries, 8, -EINVAL);
	REFUSED(eq_create, good, log2_entries, 17, -EINVAL);
	REFUSED(eq_create, good, log2_entries, 255, -EINVAL);
	REFUSED(eq_create, good, reserved0[1], 1, -EINVAL);
	REFUSED(eq_create, good, vcpu, 4096, -EINVAL);
	REFUSED(eq_create, good, vcpu, ~0U, -EINVAL);
	hostile_expect("eq_destroy of nothing",
		       hostile_call(VMRI_OP_eq_destroy, &obj), -ENOENT);
	hostile_expect("eq_poll of nothing",
		       hostile_call(VMRI_OP_eq_poll, &obj), -ENOENT);

	hostile_expect("a good event queue",
		       hostile_call(VMRI_OP_eq_create, &good), 0);
	eq = good.handle;
}

static void completion_queues(void)
{
	struct vmri_cq_create good = {
		.frames = frames(1, 1),
		.log2_entries = 4,
		.eq = eq,
	};
	struct vmri_object obj = { .handle = NOBODY };

	REFUSED(cq_create, good, eq, NOBODY, -ENOENT);
	REFUSED(cq_create, good, eq, ~0U, -ENOENT);
	REFUSED(cq_create, good, log2_entries, 8, -EINVAL);
	REFUSED(cq_create, good, log2_entries, 23, -EINVAL);
	REFUSED(cq_create, good, log2_entries, 32, -EINVAL);
	REFUSED(cq_create, good, log2_entries, 255, -EINVAL);
	REFUSED(cq_create, good, frames.nr, 0, -EINVAL);
	REFUSED(cq_create, good, frames.nr, 2, -EINVAL);
	REFUSED(cq_create, good, frames.gfns, OF_XEN, -EFAULT);
	REFUSED(cq_create, good, reserved0[0], 1, -EINVAL);
	REFUSED(cq_create, good, reserved1, 1, -EINVAL);
	hostile_expect("cq_destroy of nothing",
		       hostile_call(VMRI_OP_cq_destroy, &obj), -ENOENT);

	hostile_expect("a good completion queue",
		       hostile_call(VMRI_OP_cq_create, &good), 0);
	cq = good.handle;
}

/* The layout of a queue pair's memory. */
static void bad_layouts(struct vmri_qp_create good)
{
	REFUSED(qp_create, good, frames.nr, 0, -EINVAL);
	REFUSED(qp_create, good, frames.nr, 2, -EINVAL);
	REFUSED(qp_create, good, sq_offset, 0, -EINVAL);
	REFUSED(qp_create, good, sq_offset, 128, -EINVAL);
	REFUSED(qp_create, good, sq_offset, 264, -EINVAL);
	REFUSED(qp_create, good, sq_offset, 640, -EINVAL);
	REFUSED(qp_create, good, sq_offset, 4096, -EINVAL);
	REFUSED(qp_create, good, sq_offset, 0xffffff80, -EINVAL);
	REFUSED(qp_create, good, rq_offset, 256, -EINVAL);
	REFUSED(qp_create, good, rq_offset, 0xffffffc0, -EINVAL);
	REFUSED(qp_create, good, sq_log2_entries, 31, -EINVAL);
	REFUSED(qp_create, good, sq_log2_entries, 255, -EINVAL);
	REFUSED(qp_create, good, rq_log2_entries, 31, -EINVAL);
	REFUSED(qp_create, good, rq_log2_entries, 255, -EINVAL);
	REFUSED(qp_create, good, sq_log2_stride, 5, -EINVAL);
	REFUSED(qp_create, good, sq_log2_stride, 6, -EINVAL);
	REFUSED(qp_create, good, sq_log2_stride, 13, -EINVAL);
	REFUSED(qp_create, good, sq_log2_stride, 255, -EINVAL);
	REFUSED(qp_create, good, rq_log2_stride, 4, -EINVAL);
	REFUSED(qp_create, good, rq_log2_stride, 13, -EINVAL);
	REFUSED(qp_create, good, max_send_sge, 5, -EINVAL);
	REFUSED(qp_create, good, max_send_sge, 255, -EINVAL);
	REFUSED(qp_create, good, max_recv_sge, 4, -EINVAL);
	REFUSED(qp_create, good, max_inline, 65, -EINVAL);
	REFUSED(qp_create, good, max_inline, ~0U, -EINVAL);
	REFUSED(qp_create, good, ind_log2_entries, 4, -EINVAL);
	REFUSED(qp_create, good, ind_offset, 1024, -EINVAL);
}

static void queue_pairs(void)
{
	struct vmri_qp_create good = {
		.frames = frames(2, 1),
		.pd = pd,
		.send_cq = cq,
		.recv_cq = cq,
		.eq = eq,
		.type = VMRI_QPT_RC,
		.sq_offset = 256,	/* 4 entries of 128 bytes */
		.sq_log2_entries = 2,
		.sq_log2_stride = 7,
		.max_send_sge = 4,
		.max_inline = 64,
		.rq_offset = 768,	/* 4 entries of 64 bytes */
		.rq_log2_entries = 2,
		.rq_log2_stride = 6,
		.max_recv_sge = 3,
	};

	bad_layouts(good);
	REFUSED(qp_create, good, pd, NOBODY, -ENOENT);
	REFUSED(qp_create, good, send_cq, NOBODY, -ENOENT);
	REFUSED(qp_create, good, recv_cq, ~0U, -ENOENT);
	REFUSED(qp_create, good, eq, NOBODY, -ENOENT);
	REFUSED(qp_create, good, srq, 1, -EINVAL);
	REFUSED(qp_create, good, type, VMRI_QPT_UD + 1, -EOPNOTSUPP);
	REFUSED(qp_create, good, type, 255, -EOPNOTSUPP);
	REFUSED(qp_create, good, type, VMRI_QPT_GSI, -EINVAL);
	REFUSED(qp_create, good, flags, 2, -EINVAL);
	REFUSED(qp_create, good, qpn, 1, -EINVAL);
	REFUSED(qp_create, good, qpn, ~0U, -EINVAL);
	REFUSED(qp_create, good, reserved0[0], 1, -EINVAL);
	REFUSED(qp_create, good, reserved1, 1, -EINVAL);
	REFUSED(qp_create, good, twin, 1, -EOPNOTSUPP);

	hostile_expect("a good queue pair",
		       hostile_call(VMRI_OP_qp_create, &good), 0);
	qp = good.qpn;
	REFUSED(qp_create, good, qpn, qp, -EBUSY);
}

static void states(void)
{
	struct vmri_qp_modify good = {
		.qpn = qp,
		.mask = VMRI_QPA_STATE | VMRI_QPA_PKEY_INDEX | VMRI_QPA_PORT |
			VMRI_QPA_ACCESS_FLAGS,
		.state = VMRI_QPS_INIT,
		.port = 1,
		.access_flags = VMRI_ACCESS_REMOTE_READ,
	};
	struct vmri_object obj = { .handle = NOBODY };

	REFUSED(qp_modify, good, qpn, NOBODY, -ENOENT);
	REFUSED(qp_modify, good, mask, ~0U, -EINVAL);
	REFUSED(qp_modify, good, mask, VMRI_QPA_STATE, -EINVAL);
	REFUSED(qp_modify, good, mask, good.mask | 0x80000000, -EINVAL);
	REFUSED(qp_modify, good, mask, good.mask | VMRI_QPA_ALT_PATH, -EINVAL);
	REFUSED(qp_modify, good, state, VMRI_QPS_RTR, -EINVAL);
	REFUSED(qp_modify, good, state, VMRI_QPS_RTS, -EINVAL);
	REFUSED(qp_modify, good, state, 7, -EINVAL);
	REFUSED(qp_modify, good, state, 255, -EINVAL);
	REFUSED(qp_modify, good, port, 0, -EINVAL);
	REFUSED(qp_modify, good, port, 2, -EINVAL);
	REFUSED(qp_modify, good, pkey_index, VMRI_MAX_PKEYS, -EINVAL);
	REFUSED(qp_modify, good, access_flags, 0x80, -EINVAL);
	REFUSED(qp_modify, good, reserved0, 1, -EINVAL);
	REFUSED(qp_modify, good, reserved1, 1, -EINVAL);
	hostile_expect("a good transition",
		       hostile_call(VMRI_OP_qp_modify, &good), 0);
	REFUSED(qp_query, good, qpn, NOBODY, -ENOENT);
	hostile_expect("qp_destroy of nothing",
		       hostile_call(VMRI_OP_qp_destroy, &obj), -ENOENT);
	hostile_expect("schedule of nothing",
		       hostile_call(VMRI_OP_schedule, (void *)(long)NOBODY),
		       -ENOENT);
	hostile_expect("schedule of a number that wraps",
		       hostile_call(VMRI_OP_schedule,
				    (void *)((1UL << 32) | qp)), -ENOENT);
}

static void bad_extents(struct vmri_mr_register good)
{
	REFUSED(mr_register, good, length, 0, -EINVAL);
	REFUSED(mr_register, good, length, PAGE_SIZE, -EINVAL);
	REFUSED(mr_register, good, length, 2 * PAGE_SIZE + 1, -EINVAL);
	REFUSED(mr_register, good, length, 1ULL << 44, -EINVAL);
	REFUSED(mr_register, good, length, ~0ULL, -EINVAL);
	REFUSED(mr_register, good, iova, ~0ULL, -EINVAL);
	REFUSED(mr_register, good, iova, ~0ULL - PAGE_SIZE, -EINVAL);
	REFUSED(mr_register, good, offset, 1, -EINVAL);
	REFUSED(mr_register, good, offset, PAGE_SIZE, -EINVAL);
	REFUSED(mr_register, good, offset, ~0U, -EINVAL);
	REFUSED(mr_register, good, frames.nr, 0, -EINVAL);
	REFUSED(mr_register, good, frames.nr, 1, -EINVAL);
	REFUSED(mr_register, good, frames.nr, 3, -EINVAL);
	REFUSED(mr_register, good, frames.nr, ~0U, -EINVAL);
	REFUSED(mr_register, good, frames.reserved, 1, -EINVAL);
	REFUSED(mr_register, good, frames.gfns, 0, -EFAULT);
	REFUSED(mr_register, good, frames.gfns, OF_XEN, -EFAULT);
	REFUSED(mr_register, good, frames.gfns, ~0ULL - 7, -EFAULT);
}

static void memory_regions(void)
{
	struct vmri_mr_register good = {
		.frames = frames(2, 2),
		.iova = 0x7000,
		.length = 2 * PAGE_SIZE,
		.pd = pd,
		.access = VMRI_ACCESS_LOCAL_WRITE,
	};
	struct vmri_object obj = {};

	bad_extents(good);
	REFUSED(mr_register, good, access, 0x20, -EINVAL);
	REFUSED(mr_register, good, access, ~0U, -EINVAL);
	REFUSED(mr_register, good, access, VMRI_ACCESS_REMOTE_WRITE, -EINVAL);
	REFUSED(mr_register, good, access, VMRI_ACCESS_REMOTE_ATOMIC, -EINVAL);
	REFUSED(mr_register, good, pd, NOBODY, -ENOENT);
	REFUSED(mr_register, good, key, 1, -EINVAL);
	REFUSED(mr_register, good, twin, 1, -EINVAL);
	REFUSED(mr_register, good, reserved, 1, -EINVAL);

	hostile_expect("a good memory region",
		       hostile_call(VMRI_OP_mr_register, &good), 0);
	key = good.key;
	obj.handle = key ^ 1;
	hostile_expect("mr_deregister of another generation",
		       hostile_call(VMRI_OP_mr_deregister, &obj), -ENOENT);
	obj.handle = VMRI_LKEY_FRAMES;
	hostile_expect("mr_deregister of the kernel's key",
		       hostile_call(VMRI_OP_mr_deregister, &obj), -ENOENT);
}

static void destroy(const char *name, unsigned int cmd, u32 handle, long want)
{
	struct vmri_object obj = { .handle = handle };

	hostile_expect(name, hostile_call(cmd, &obj), want);
}

/* In the wrong order first, then in the right one, then once more. */
static void destruction(void)
{
	destroy("pd_destroy in use", VMRI_OP_pd_destroy, pd, -EBUSY);
	destroy("eq_destroy in use", VMRI_OP_eq_destroy, eq, -EBUSY);
	destroy("cq_destroy in use", VMRI_OP_cq_destroy, cq, -EBUSY);
	destroy("mr_deregister", VMRI_OP_mr_deregister, key, 0);
	destroy("mr_deregister again", VMRI_OP_mr_deregister, key, -ENOENT);
	destroy("qp_destroy", VMRI_OP_qp_destroy, qp, 0);
	destroy("qp_destroy again", VMRI_OP_qp_destroy, qp, -ENOENT);
	destroy("cq_destroy", VMRI_OP_cq_destroy, cq, 0);
	destroy("cq_destroy again", VMRI_OP_cq_destroy, cq, -ENOENT);
	destroy("eq_destroy", VMRI_OP_eq_destroy, eq, 0);
	destroy("eq_destroy again", VMRI_OP_eq_destroy, eq, -ENOENT);
	destroy("pd_destroy", VMRI_OP_pd_destroy, pd, 0);
	destroy("pd_destroy again", VMRI_OP_pd_destroy, pd, -ENOENT);
}

static void commands(void)
{
	struct vmri_object obj = {};
	struct vmri_dev_create dev = {};
	unsigned long args = (unsigned long)&obj;

	hostile_expect("an unknown command", hostile_call(0x00ff, &obj), -ENOSYS);
	hostile_expect("an unknown group", hostile_call(0x7f00, &obj), -ENOSYS);
	hostile_expect("a command with high bits",
		       hostile_call(0x10000 | VMRI_OP_pd_create, &obj), -EPERM);
	hostile_expect("a device that is not there",
		       hostile_raw(VMRI_OP_pd_create, 63, args), -ENODEV);
	hostile_expect("a device number out of range",
		       hostile_raw(VMRI_OP_pd_create, ~0U, args), -ENODEV);
	hostile_expect("a doorbell of a device that is not there",
		       hostile_raw(VMRI_OP_schedule, ~0U, 2), -ENODEV);
	hostile_expect("the device a second time",
		       hostile_call(VMRI_OP_dev_create, &dev), -EBUSY);
	dev.flags = ~VMRI_DEVF_DOORBELL;
	hostile_expect("dev_create with flags that there are not",
		       hostile_call(VMRI_OP_dev_create, &dev), -EINVAL);
	hostile_expect("arguments at NULL",
		       hostile_call(VMRI_OP_pd_create, NULL), -EFAULT);
	hostile_expect("arguments in Xen",
		       hostile_call(VMRI_OP_pd_create, (void *)OF_XEN), -EFAULT);
	hostile_expect("results in Xen",
		       hostile_call(VMRI_OP_version, (void *)OF_XEN), -EFAULT);
	obj.reserved = 1;
	hostile_expect("pd_create with reserved = 1",
		       hostile_call(VMRI_OP_pd_create, &obj), -EINVAL);
	obj.handle = NOBODY;
	hostile_expect("pd_destroy with reserved = 1",
		       hostile_call(VMRI_OP_pd_destroy, &obj), -EINVAL);
	obj.reserved = 0;
	hostile_expect("pd_destroy of nothing",
		       hostile_call(VMRI_OP_pd_destroy, &obj), -ENOENT);
}

/* Only Xen sets it, on a call that it continues; here there is none. */
static void continuations(void)
{
	struct vmri_mr_register mr = {
		.frames = frames(2, 2),
		.length = 2 * PAGE_SIZE,
		.pd = pd,
		.twin = NOBODY,
	};
	struct vmri_object obj = { .handle = NOBODY };

	hostile_expect("a registration to be continued that is none",
		       hostile_call(0x80000000 | VMRI_OP_mr_register, &mr),
		       -ENODEV);
	hostile_expect("a deregistration to be continued that is none",
		       hostile_call(0x80000000 | VMRI_OP_mr_deregister, &obj), 0);
}

static void control_commands(void)
{
	struct vmri_ctl_attach attach = { .dev_id = VMRI_DEV_ANY };
	struct vmri_ctl_detach detach = {};
	struct vmri_ctl_info info = {};

	hostile_expect("attach by a guest",
		       hostile_call(VMRI_OP_ctl_attach, &attach), -EPERM);
	hostile_expect("detach by a guest",
		       hostile_call(VMRI_OP_ctl_detach, &detach), -EPERM);
	hostile_expect("list by a guest",
		       hostile_call(VMRI_OP_ctl_list, &info), -EPERM);
	hostile_expect("an unknown control command by a guest",
		       hostile_call(VMRI_OP_control | 0xff, NULL), -EPERM);
}

void hostile_args(void)
{
	struct vmri_object obj = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!pages[i])
			return hostile_expect("pages of our own", -ENOMEM, 0);
		gfns[i] = xen_page_to_gfn(pages[i]);
	}

	hostile_expect("a protection domain",
		       hostile_call(VMRI_OP_pd_create, &obj), 0);
	pd = obj.handle;

	commands();
	control_commands();
	event_queues();
	completion_queues();
	queue_pairs();
	states();
	memory_regions();
	continuations();
	destruction();
}

/* What was wrongly accepted may have kept pages pinned until now. */
void hostile_args_free(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pages); i++)
		if (pages[i])
			__free_page(pages[i]);
}
