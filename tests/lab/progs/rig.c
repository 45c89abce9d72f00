// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device side of rig.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

const struct link_attr link_default = {
	.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		  IBV_ACCESS_REMOTE_READ,
	.min_rnr_timer = 12,	/* 0.64 ms */
	.timeout = 18,		/* 1.07 s */
	.retry_cnt = 7,
	.rnr_retry = 7,		/* for ever */
};

static struct ibv_device *find_device(struct ibv_device **list, int nr,
				      const char *name)
{
	int i;

	if (!name) {
		if (nr != 1)
			die("%d devices: name the one to test", nr);
		return list[0];
	}
	for (i = 0; i < nr; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return list[i];
	die("no device %s", name);
}

void rig_open(struct rig *rig, const char *name)
{
	struct ibv_device **list;
	struct ibv_device *device;
	int nr;

	list = ibv_get_device_list(&nr);
	if (!list)
		die("ibv_get_device_list: %s", strerror(errno));
	device = find_device(list, nr, name);
	rig->grh = false;
	rig->ctx = ibv_open_device(device);
	if (!rig->ctx)
		die("ibv_open_device: %s", strerror(errno));
	ibv_free_device_list(list);

	rig->pd = ibv_alloc_pd(rig->ctx);
	if (!rig->pd)
		die("ibv_alloc_pd: %s", strerror(errno));
	if (ibv_query_port(rig->ctx, 1, &rig->port) ||
	    ibv_query_gid(rig->ctx, 1, 0, &rig->gid))
		die("port 1 cannot be queried: %s", strerror(errno));
	if (rig->port.state != IBV_PORT_ACTIVE)
		die("port 1 is %s", ibv_port_state_str(rig->port.state));
}

void rig_close(struct rig *rig)
{
	int ret;

	ret = ibv_dealloc_pd(rig->pd);
	if (ret)
		die("ibv_dealloc_pd: %s", strerror(ret));
	if (ibv_close_device(rig->ctx))
		die("ibv_close_device: %s", strerror(errno));
}

static struct ibv_cq *open_cq(struct end *end, uint32_t depth)
{
	struct ibv_cq *cq = ibv_create_cq(end->rig->ctx, depth, NULL,
					  end->events, 0);

	if (!cq)
		die("ibv_create_cq: %s", strerror(errno));
	return cq;
}

/* The SRQ of an end, and for XRC what its target needs besides. */
static void open_srq(struct end *end, struct ibv_pd *pd, uint32_t depth,
		     uint32_t sges, bool xrc)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = depth, .max_sge = sges },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};

	if (xrc) {
		end->xrcd = ibv_open_xrcd(end->rig->ctx, &domain);
		if (!end->xrcd)
			die("ibv_open_xrcd: %s", strerror(errno));
		init.comp_mask |= IBV_SRQ_INIT_ATTR_TYPE |
				  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		init.srq_type = IBV_SRQT_XRC;
		init.xrcd = end->xrcd;
		init.cq = end->recv_cq;
	}
	end->srq = ibv_create_srq_ex(end->rig->ctx, &init);
	if (!end->srq)
		die("ibv_create_srq_ex: %s", strerror(errno));
	if (xrc && ibv_get_srq_num(end->srq, &end->srqn))
		die("ibv_get_srq_num: %s", strerror(errno));
}

static void open_target(struct end *end)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = end->xrcd,
	};

	end->target = ibv_create_qp_ex(end->rig->ctx, &init);
	if (!end->target)
		die("ibv_create_qp_ex, an XRC target: %s", strerror(errno));
}

void end_open(struct end *end, struct rig *rig, const struct end_attr *attr)
{
	uint32_t depth = attr->depth ? attr->depth : 64;
	uint32_t sges = attr->sges ? attr->sges : 1;
	bool xrc = attr->type == IBV_QPT_XRC_SEND;
	struct ibv_qp_init_attr_ex init = {
		.qp_type = attr->type,
		.sq_sig_all = attr->sig_all,
		.cap = {
			.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = sges,
			.max_recv_sge = sges,
			.max_inline_data = attr->max_inline,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = attr->pd ? attr->pd : rig->pd,
		.send_ops_flags = attr->send_ops,
	};

	*end = (struct end) { .rig = rig, .max_inline = attr->max_inline };
	end->events = ibv_create_comp_channel(rig->ctx);
	if (!end->events)
		die("ibv_create_comp_channel: %s", strerror(errno));
	/* Room for a flush of everything, after a completion for everything. */
	end->send_cq = open_cq(end, 2 * depth);
	end->recv_cq = open_cq(end, 2 * depth);
	if (attr->shared || xrc)
		open_srq(end, init.pd, depth, sges, xrc);
	init.send_cq = end->send_cq;
	init.recv_cq = xrc ? NULL : end->recv_cq;
	if (!xrc)
		init.srq = end->srq ? end->srq : attr->srq;
	if (attr->send_ops)
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	end->qp = ibv_create_qp_ex(rig->ctx, &init);
	if (!end->qp)
		die("ibv_create_qp_ex: %s", strerror(errno));
	if (xrc)
		open_target(end);
}

int end_post_recv(struct end *end, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad_wr;

	return end->srq ? ibv_post_srq_recv(end->srq, wr, &bad_wr) :
			  ibv_post_recv(end->qp, wr, &bad_wr);
}

void end_close(struct end *end)
{
	int ret;

	ret = end->qp ? ibv_destroy_qp(end->qp) : 0;
	if (!ret && end->target)
		ret = ibv_destroy_qp(end->target);
	if (ret)
		die("ibv_destroy_qp: %s", strerror(ret));
	if (end->srq)
		ret = ibv_destroy_srq(end->srq);
	if (ret)
		die("ibv_destroy_srq: %s", strerror(ret));
	if (end->xrcd)
		ret = ibv_close_xrcd(end->xrcd);
	if (ret)
		die("ibv_close_xrcd: %s", strerror(ret));
	ret = ibv_destroy_cq(end->send_cq);
	if (!ret)
		ret = ibv_destroy_cq(end->recv_cq);
	if (ret)
		die("ibv_destroy_cq: %s", strerror(ret));
	ret = ibv_destroy_comp_channel(end->events);
	if (ret)
		die("ibv_destroy_comp_channel: %s", strerror(ret));
}

struct address end_address(const struct end *end, const struct ibv_mr *mr)
{
	return (struct address) {
		.addr = mr ? (uintptr_t)mr->addr : 0,
		.rkey = mr ? mr->rkey : 0,
		.qpn = end->qp->qp_num,
		.target = end->target ? end->target->qp_num : end->qp->qp_num,
		.srqn = end->srqn,
		.lid = end->rig->port.lid,
		.gid = end->rig->gid,
	};
}

struct ibv_ah_attr ah_to(const struct rig *rig, const struct address *to,
			 bool grh)
{
	struct ibv_ah_attr ah = {
		.dlid = to->lid,
		.port_num = 1,
	};

	if (grh || rig->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		ah.is_global = 1;
		ah.grh.dgid = to->gid;
		ah.grh.hop_limit = 1;
	}
	return ah;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int ret = ibv_modify_qp(qp, attr, mask);

	if (ret)
		die("ibv_modify_qp to state %d: %s", attr->qp_state,
		    strerror(ret));
}

/* What a type of QP takes in its transitions (IBTA 1.4, 11.2.5.2). */
static const struct {
	int init;
	int rtr;
	int rts;
} masks[] = {
#define TO_INIT		(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define TO_RTR		(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | \
			 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define TO_RTS		(IBV_QP_STATE | IBV_QP_SQ_PSN)
#define RESPONDS	(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define REQUESTS	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
			 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
	[IBV_QPT_RC] = { TO_INIT | IBV_QP_ACCESS_FLAGS, TO_RTR | RESPONDS,
			 TO_RTS | REQUESTS },
	[IBV_QPT_UC] = { TO_INIT | IBV_QP_ACCESS_FLAGS, TO_RTR, TO_RTS },
	[IBV_QPT_UD] = { TO_INIT | IBV_QP_QKEY, IBV_QP_STATE, TO_RTS },
	[IBV_QPT_XRC_SEND] = { TO_INIT | IBV_QP_ACCESS_FLAGS, TO_RTR,
			       TO_RTS | REQUESTS },
	[IBV_QPT_XRC_RECV] = { TO_INIT | IBV_QP_ACCESS_FLAGS,
			       TO_RTR | RESPONDS, TO_RTS | IBV_QP_TIMEOUT },
};

/* To RTS; `to` is NULL for UD. */
static void activate(const struct rig *rig, struct ibv_qp *qp,
		     const struct address *to, uint32_t qpn,
		     const struct link_attr *link)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = link->access,
		.qkey = RIG_QKEY,
	};

	modify(qp, &attr, masks[qp->qp_type].init);

	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = rig->port.active_mtu,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = link->min_rnr_timer,
	};
	if (to)
		attr.ah_attr = ah_to(rig, to, rig->grh);
	modify(qp, &attr, masks[qp->qp_type].rtr);

	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.timeout = link->timeout,
		.retry_cnt = link->retry_cnt,
		.rnr_retry = link->rnr_retry,
		.max_rd_atomic = 1,
	};
	modify(qp, &attr, masks[qp->qp_type].rts);
}

void end_connect(struct end *end, const struct address *to,
		 const struct link_attr *link)
{
	if (end->target)
		activate(end->rig, end->target, to, to->qpn, link);
	activate(end->rig, end->qp, to, to->target, link);
}

void end_activate_ud(struct end *end)
{
	activate(end->rig, end->qp, NULL, 0, &link_default);
}

int end_set_state(struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);
}

enum ibv_qp_state end_state(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ret;

	ret = ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init);
	if (ret)
		die("ibv_query_qp: %s", strerror(ret));
	return attr.qp_state;
}

static bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, 1, wc);

	if (n < 0)
		die("ibv_poll_cq: %d", n);
	return n;
}

/* Sleep until any CQ of the end has an event; false at the deadline. */
static bool wait_event(struct end *end, double deadline)
{
	struct pollfd fd = { .fd = end->events->fd, .events = POLLIN };
	double left = deadline - now();
	struct ibv_cq *cq;
	void *context;

	if (left <= 0 || poll(&fd, 1, left * 1000 + 1) <= 0)
		return false;
	if (ibv_get_cq_event(end->events, &cq, &context))
		die("ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
	return true;
}

void let_others_run(void)
{
	static const struct timespec moment = { .tv_nsec = 50 * 1000 };

	nanosleep(&moment, NULL);
}

void take_room(struct rlimit *had)
{
	struct rlimit none;
	unsigned long pages;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%lu", &pages) != 1 || fclose(f) ||
	    getrlimit(RLIMIT_AS, had))
		die("the size of the process: %s", strerror(errno));
	none = *had;
	none.rlim_cur = pages * sysconf(_SC_PAGESIZE);
	if (setrlimit(RLIMIT_AS, &none))
		die("setrlimit: %s", strerror(errno));
}

void give_room_back(const struct rlimit *had)
{
	if (setrlimit(RLIMIT_AS, had))
		die("setrlimit: %s", strerror(errno));
}

bool wait_wc(struct end *end, struct ibv_cq *cq, struct ibv_wc *wc,
	     bool by_event, double limit)
{
	double deadline = now() + limit;

	while (!poll_one(cq, wc)) {
		if (!by_event) {
			if (now() > deadline)
				return false;
			let_others_run();
			continue;
		}
		if (ibv_req_notify_cq(cq, 0))
			die("ibv_req_notify_cq: %s", strerror(errno));
		if (poll_one(cq, wc))
			return true;
		if (!wait_event(end, deadline))
			return false;
	}
	return true;
}
