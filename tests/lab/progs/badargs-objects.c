// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wrong arguments of the verbs that query the device and make objects.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "badargs.h"

/* What a call that gives an object comes to: the errno, or 0 and it is gone. */
#define UNDONE(object, undo) ({						\
	errno = 0;							\
	__auto_type made = (object);					\
	made ? undo(made) : errno;					\
})

/* ---- queries ---- */

struct query_args {
	uint8_t port;
	int32_t index;
};

static int query_port(struct desk *b, void *args)
{
	struct query_args *a = args;
	struct ibv_port_attr attr;

	return ibv_query_port(b->t.rig.ctx, a->port, &attr);
}

static int query_gid(struct desk *b, void *args)
{
	struct query_args *a = args;
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(b->t.rig.ctx, a->port, a->index, &entry, 0);
}

void bad_queries(struct desk *b)
{
	static const struct query_args right = { .port = 1 };
	const struct argument port[] = {
		ARGUMENT(struct query_args, port, WRONG_VALUE, 0, EINVAL),
		ARGUMENT(struct query_args, port, WRONG_ABOVE, 1, EINVAL),
	};
	const struct argument gid[] = {
		ARGUMENT(struct query_args, port, WRONG_ABOVE, 1, EINVAL),
		ARGUMENT(struct query_args, index, WRONG_ABOVE,
			 b->t.rig.port.gid_tbl_len - 1, EINVAL),
	};

	TRY(b, "query_port", query_port, &right, port);
	TRY(b, "query_gid", query_gid, &right, gid);
}

/* ---- memory ---- */

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |	\
		    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |	\
		    IBV_ACCESS_MW_BIND)
/* Flags that are refused, and are not those of other kinds of memory. */
#define REFUSED_ACCESS ~(uint32_t)(IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |	\
		ALL_ACCESS | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_FLUSH_GLOBAL |	\
		IBV_ACCESS_FLUSH_PERSISTENT | IBV_ACCESS_OPTIONAL_RANGE)

struct mr_args {
	uint64_t addr;
	uint64_t length;
	uint32_t access;
	uint32_t flags;
};

static int reg_mr(struct desk *b, void *args)
{
	struct mr_args *a = args;

	return UNDONE(ibv_reg_mr(b->t.rig.pd, (void *)a->addr, a->length,
				 a->access), ibv_dereg_mr);
}

static int rereg_mr(struct desk *b, void *args)
{
	struct mr_args *a = args;
	struct ibv_mr *mr = ibv_reg_mr(b->t.rig.pd, b->t.amem, 4096,
				       IBV_ACCESS_LOCAL_WRITE);
	int ret;

	if (!mr)
		die("ibv_reg_mr: %s", strerror(errno));
	errno = 0;
	ret = ibv_rereg_mr(mr, a->flags, b->t.rig.pd, (void *)a->addr, a->length,
			   a->access);
	if (ret)
		ret = errno;
	ibv_dereg_mr(mr);
	return ret;
}

struct mw_args {
	uint32_t type;
};

static int alloc_mw(struct desk *b, void *args)
{
	struct mw_args *a = args;

	return UNDONE(ibv_alloc_mw(b->t.rig.pd, a->type), ibv_dealloc_mw);
}

void bad_memory(struct desk *b)
{
	const struct mr_args right = {
		.addr = (uintptr_t)b->t.amem,
		.length = 4096,
		.access = ALL_ACCESS,
		.flags = IBV_REREG_MR_CHANGE_ACCESS,
	};
	const struct mr_args readable = {
		.addr = (uintptr_t)b->t.amem,
		.length = 4096,
		.access = IBV_ACCESS_REMOTE_READ,
	};
	static const struct mw_args mw = { .type = IBV_MW_TYPE_1 };
	const struct argument reg[] = {
		HANDLE("pd", b->t.rig.pd),
		ARGUMENT(struct mr_args, addr, WRONG_VALUE, 4096, EFAULT),
		ARGUMENT(struct mr_args, length, WRONG_VALUE, 0, EINVAL),
		ARGUMENT(struct mr_args, length, WRONG_VALUE,
			 -(uint64_t)4096, EINVAL),
		ARGUMENT(struct mr_args, access, WRONG_BIT,
			 ~(uint64_t)REFUSED_ACCESS, EINVAL),
	};
	/* Whoever writes from afar or atomically writes here, too. */
	const struct argument access[] = {
		ARGUMENT(struct mr_args, access, WRONG_VALUE,
			 IBV_ACCESS_REMOTE_WRITE, EINVAL),
		ARGUMENT(struct mr_args, access, WRONG_VALUE,
			 IBV_ACCESS_REMOTE_ATOMIC, EINVAL),
	};
	const struct argument rereg[] = {
		ARGUMENT(struct mr_args, flags, WRONG_VALUE, 0, EINVAL),
		ARGUMENT(struct mr_args, flags, WRONG_BIT,
			 IBV_REREG_MR_CHANGE_TRANSLATION |
			 IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS,
			 EINVAL),
	};
	const struct argument type[] = {
		HANDLE("pd", b->t.rig.pd),
		ARGUMENT(struct mw_args, type, WRONG_VALUE, 0, EINVAL),
		ARGUMENT(struct mw_args, type, WRONG_ABOVE, IBV_MW_TYPE_2,
			 EINVAL),
	};

	TRY(b, "reg_mr", reg_mr, &right, reg);
	TRY(b, "reg_mr without local write", reg_mr, &readable, access);
	TRY(b, "rereg_mr", rereg_mr, &right, rereg);
	TRY(b, "alloc_mw", alloc_mw, &mw, type);
}

/* ---- completion queues, shared receive queues, address handles ---- */

struct cq_args {
	int32_t cqe;
	int32_t comp_vector;
};

static int create_cq(struct desk *b, void *args)
{
	struct cq_args *a = args;

	return UNDONE(ibv_create_cq(b->t.rig.ctx, a->cqe, NULL, NULL,
				    a->comp_vector), ibv_destroy_cq);
}

static int resize_cq(struct desk *b, void *args)
{
	struct cq_args *a = args;
	struct ibv_cq *cq = ibv_create_cq(b->t.rig.ctx, 16, NULL, NULL, 0);
	int ret;

	if (!cq)
		die("ibv_create_cq: %s", strerror(errno));
	ret = ibv_resize_cq(cq, a->cqe);
	ibv_destroy_cq(cq);
	return ret;
}

static int create_srq(struct desk *b, void *args)
{
	return UNDONE(ibv_create_srq(b->t.rig.pd, args), ibv_destroy_srq);
}

struct modify_srq_args {
	struct ibv_srq_attr attr;
	uint32_t mask;
};

static int modify_srq(struct desk *b, void *args)
{
	struct modify_srq_args *a = args;

	return ibv_modify_srq(b->srq, &a->attr, a->mask);
}

static int create_ah(struct desk *b, void *args)
{
	return UNDONE(ibv_create_ah(b->t.rig.pd, args), ibv_destroy_ah);
}

struct group_args {
	union ibv_gid gid;
	uint16_t lid;
};

static int attach_mcast(struct desk *b, void *args)
{
	const struct end_attr attr = { .type = IBV_QPT_UD };
	struct group_args *a = args;
	struct end end;
	int ret;

	end_open(&end, &b->t.rig, &attr);
	end_activate_ud(&end);
	ret = ibv_attach_mcast(end.qp, &a->gid, a->lid);
	if (!ret)
		ret = ibv_detach_mcast(end.qp, &a->gid, a->lid);
	end_close(&end);
	return ret;
}

void bad_queues(struct desk *b)
{
	static const struct cq_args cq = { .cqe = 16 };
	static const struct ibv_srq_init_attr srq = {
		.attr = { .max_wr = 16, .max_sge = 1 },
	};
	static const struct modify_srq_args limit = {
		.attr = { .srq_limit = 4 },
		.mask = IBV_SRQ_LIMIT,
	};
	const struct ibv_ah_attr ah = {
		.dlid = b->t.rig.port.lid,
		.port_num = 1,
		.is_global = 1,
		.grh = { .dgid = b->t.rig.gid },
	};
	static const struct group_args group = {
		.gid.raw = { 0xff, 0x12, 0x1b, [15] = 0x77 },
		.lid = 0xc000,
	};
	const struct argument create[] = {
		ARGUMENT(struct cq_args, cqe, WRONG_VALUE, 0, EINVAL),
		ARGUMENT(struct cq_args, cqe, WRONG_ABOVE, b->attr.max_cqe,
			 EINVAL),
		ARGUMENT(struct cq_args, comp_vector, WRONG_ABOVE,
			 b->t.rig.ctx->num_comp_vectors - 1, EINVAL),
	};
	const struct argument resize[] = {
		ARGUMENT(struct cq_args, cqe, WRONG_VALUE, 0, EINVAL),
		ARGUMENT(struct cq_args, cqe, WRONG_ABOVE, b->attr.max_cqe,
			 EINVAL),
	};
	const struct argument shared[] = {
		HANDLE("pd", b->t.rig.pd),
		ARGUMENT(struct ibv_srq_init_attr, attr.max_wr, WRONG_ABOVE,
			 b->attr.max_srq_wr, EINVAL),
		ARGUMENT(struct ibv_srq_init_attr, attr.max_sge, WRONG_ABOVE,
			 b->attr.max_srq_sge, EINVAL),
	};
	const struct argument modify[] = {
		HANDLE("srq", b->srq),
		ARGUMENT(struct modify_srq_args, attr.srq_limit, WRONG_ABOVE,
			 b->attr.max_srq_wr, EINVAL),
		ARGUMENT(struct modify_srq_args, mask, WRONG_BIT,
			 IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR, EINVAL),
	};
	/* One entry of the table of GIDs is the port's. */
	const struct argument address[] = {
		ARGUMENT(struct ibv_ah_attr, port_num, WRONG_VALUE, 0, EINVAL),
		ARGUMENT(struct ibv_ah_attr, port_num, WRONG_ABOVE, 1, EINVAL),
		ARGUMENT(struct ibv_ah_attr, grh.sgid_index, WRONG_ABOVE, 0,
			 EINVAL),
	};
	const struct argument member[] = {
		ARGUMENT(struct group_args, gid.raw[0], WRONG_VALUE, 0xfe,
			 EINVAL),
		ARGUMENT(struct group_args, lid, WRONG_VALUE, 1, EINVAL),
		ARGUMENT(struct group_args, lid, WRONG_VALUE, 0, EINVAL),
		ARGUMENT(struct group_args, lid, WRONG_VALUE, 0xffff, EINVAL),
	};

	TRY(b, "create_cq", create_cq, &cq, create);
	TRY(b, "resize_cq", resize_cq, &cq, resize);
	TRY(b, "create_srq", create_srq, &srq, shared);
	TRY(b, "modify_srq", modify_srq, &limit, modify);
	TRY(b, "create_ah", create_ah, &ah, address);
	TRY(b, "attach_mcast", attach_mcast, &group, member);
}

/* ---- queue pairs ---- */

static int create_qp(struct desk *b, void *args)
{
	return UNDONE(ibv_create_qp(b->t.rig.pd, args), ibv_destroy_qp);
}

struct xrcd_args {
	int32_t fd;
	int32_t oflags;
	uint32_t comp_mask;
};

static int open_xrcd(struct desk *b, void *args)
{
	struct xrcd_args *a = args;
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = a->comp_mask,
		.fd = a->fd,
		.oflags = a->oflags,
	};

	return UNDONE(ibv_open_xrcd(b->t.rig.ctx, &attr), ibv_close_xrcd);
}

void bad_queue_pairs(struct desk *b)
{
	const struct ibv_qp_init_attr right = {
		.send_cq = b->t.a.send_cq,
		.recv_cq = b->t.a.recv_cq,
		.cap = { 4, 4, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};
	const struct ibv_qp_init_attr shared = {
		.send_cq = b->t.a.send_cq,
		.recv_cq = b->t.a.recv_cq,
		.srq = b->srq,
		.cap = { 4, 0, 1, 0, 0 },
		.qp_type = IBV_QPT_RC,
	};
	static const struct xrcd_args domain = {
		.fd = -1,
		.oflags = O_CREAT,
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
	};
	const struct argument qp[] = {
		HANDLE("pd", b->t.rig.pd),
		HANDLE("send_cq", b->t.a.send_cq),
		HANDLE("recv_cq", b->t.a.recv_cq),
		ARGUMENT(struct ibv_qp_init_attr, cap.max_send_wr, WRONG_ABOVE,
			 b->attr.max_qp_wr, EINVAL),
		ARGUMENT(struct ibv_qp_init_attr, cap.max_recv_wr, WRONG_ABOVE,
			 b->attr.max_qp_wr, EINVAL),
		ARGUMENT(struct ibv_qp_init_attr, cap.max_send_sge, WRONG_ABOVE,
			 b->attr.max_sge, EINVAL),
		ARGUMENT(struct ibv_qp_init_attr, cap.max_recv_sge, WRONG_ABOVE,
			 b->attr.max_sge, EINVAL),
		ARGUMENT(struct ibv_qp_init_attr, cap.max_inline_data,
			 WRONG_ABOVE, 1 << 20, EINVAL),
		ARGUMENT(struct ibv_qp_init_attr, qp_type, WRONG_VALUE,
			 IBV_QPT_RAW_PACKET, EOPNOTSUPP),
		ARGUMENT(struct ibv_qp_init_attr, qp_type, WRONG_VALUE,
			 IBV_QPT_DRIVER, EOPNOTSUPP),
	};
	const struct argument srq[] = {
		HANDLE("srq", b->srq),
	};
	const struct argument xrcd[] = {
		ARGUMENT(struct xrcd_args, fd, WRONG_VALUE, 12345, EBADF),
		ARGUMENT(struct xrcd_args, comp_mask, WRONG_MISSING,
			 IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
			 EINVAL),
	};

	TRY(b, "create_qp", create_qp, &right, qp);
	TRY(b, "create_qp with an srq", create_qp, &shared, srq);
	TRY(b, "open_xrcd", open_xrcd, &domain, xrcd);
}

/* ---- what the device does not offer ---- */

static void expect_errno(const char *name, int is, int want)
{
	if (is == want)
		ok(name);
	else
		bad(name, "it gives %s, not %s", is ? strerror(is) : "success",
		    strerror(want));
}

void not_offered(struct desk *b)
{
	struct ibv_alloc_dm_attr dm = { .length = 64 };
	struct ibv_counters_init_attr counters = {};
	struct ibv_flow_attr flow = { .size = sizeof(flow), .port = 1 };
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = 1,
		.max_sge = 1,
		.pd = b->t.rig.pd,
		.cq = b->t.a.recv_cq,
	};

	expect_errno("alloc_dm", UNDONE(ibv_alloc_dm(b->t.rig.ctx, &dm),
					ibv_free_dm), EOPNOTSUPP);
	expect_errno("create_counters",
		     UNDONE(ibv_create_counters(b->t.rig.ctx, &counters),
			    ibv_destroy_counters), EOPNOTSUPP);
	expect_errno("create_flow", UNDONE(ibv_create_flow(b->t.a.qp, &flow),
					   ibv_destroy_flow), EOPNOTSUPP);
	expect_errno("create_wq", UNDONE(ibv_create_wq(b->t.rig.ctx, &wq),
					 ibv_destroy_wq), EOPNOTSUPP);
	expect_errno("reg_dmabuf_mr",
		     UNDONE(ibv_reg_dmabuf_mr(b->t.rig.pd, 0, 4096, 0, 0, 0),
			    ibv_dereg_mr), EOPNOTSUPP);
}
