// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device side of rig.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

void end_open(struct end *end, struct rig *rig, const struct end_attr *attr)
{
	uint32_t depth = attr->depth ? attr->depth : 64;
	uint32_t sges = attr->sges ? attr->sges : 1;
	struct ibv_qp_init_attr init = {
		.qp_type = attr->type,
		.sq_sig_all = attr->sig_all,
		.cap = {
			.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = sges,
			.max_recv_sge = sges,
			.max_inline_data = attr->max_inline,
		},
	};

	end->rig = rig;
	end->max_inline = attr->max_inline;
	end->events = ibv_create_comp_channel(rig->ctx);
	if (!end->events)
		die("ibv_create_comp_channel: %s", strerror(errno));
	/* Room for a flush of everything, after a completion for everything. */
	end->send_cq = open_cq(end, 2 * depth);
	end->recv_cq = open_cq(end, 2 * depth);
	init.send_cq = end->send_cq;
	init.recv_cq = end->recv_cq;
	end->qp = ibv_create_qp(attr->pd ? attr->pd : rig->pd, &init);
	if (!end->qp)
		die("ibv_create_qp: %s", strerror(errno));
}

void end_close(struct end *end)
{
	int ret;

	ret = ibv_destroy_qp(end->qp);
	if (ret)
		die("ibv_destroy_qp: %s", strerror(ret));
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

static void modify(struct end *end, struct ibv_qp_attr *attr, int mask)
{
	int ret = ibv_modify_qp(end->qp, attr, mask);

	if (ret)
		die("ibv_modify_qp to state %d: %s", attr->qp_state,
		    strerror(ret));
}

static void to_init(struct end *end, int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access,
		.qkey = RIG_QKEY,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= end->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY :
						 IBV_QP_ACCESS_FLAGS;
	modify(end, &attr, mask);
}

void end_connect(struct end *end, const struct address *to,
		 const struct link_attr *link)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = end->rig->port.active_mtu,
		.dest_qp_num = to->qpn,
		.ah_attr = ah_to(end->rig, to, false),
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = link->min_rnr_timer,
	};

	to_init(end, link->access);
	modify(end, &attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
	       IBV_QP_MIN_RNR_TIMER);

	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.timeout = link->timeout,
		.retry_cnt = link->retry_cnt,
		.rnr_retry = link->rnr_retry,
		.max_rd_atomic = 1,
	};
	modify(end, &attr,
	       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
	       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void end_activate_ud(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };

	to_init(end, 0);
	modify(end, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	modify(end, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
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
