// SPDX-License-Identifier: GPL-2.0-only
/* Thread and parent domains, completion vectors, multicast groups. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* ---- thread and parent domains ---- */

static void *no_memory(struct ibv_pd *pd, void *context, size_t size,
		       size_t alignment, uint64_t type)
{
	(void)pd;
	(void)context;
	(void)size;
	(void)alignment;
	(void)type;
	return NULL;
}

static void refuse_allocators(struct bench *t, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = t->rig.pd,
		.td = td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = no_memory,
	};

	errno = 0;
	expect("a parent domain has no allocator",
	       ibv_alloc_parent_domain(t->rig.ctx, &attr) ? 0 : errno,
	       EOPNOTSUPP);
}

/* A pair of queue pairs in the domain, whose CQs are in it, too. */
static void talk(struct bench *t, struct ibv_pd *domain)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = domain,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(t->rig.ctx, &attr);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct end end[2] = {};
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct address address[2];
	struct ibv_mr *mr;
	int i;

	if (!cq)
		die("ibv_create_cq_ex: %s", strerror(errno));
	init.send_cq = ibv_cq_ex_to_cq(cq);
	init.recv_cq = init.send_cq;
	for (i = 0; i < 2; i++) {
		end[i].rig = &t->rig;
		end[i].send_cq = init.send_cq;
		end[i].recv_cq = init.recv_cq;
		end[i].qp = ibv_create_qp(domain, &init);
		if (!end[i].qp)
			die("ibv_create_qp: %s", strerror(errno));
		address[i] = end_address(&end[i], NULL);
	}
	end_connect(&end[0], &address[1], &link_default);
	end_connect(&end[1], &address[0], &link_default);

	mr = bench_reg(domain, t->bmem, BENCH_BYTES, IBV_ACCESS_LOCAL_WRITE);
	bench_post_recv(&end[1], mr, 5);
	expect("queue pairs of a thread domain talk",
	       bench_post(&end[0], &wr).status + bench_receive(&end[1]).status,
	       0);
	bench_dereg(mr);
	for (i = 0; i < 2; i++)
		ibv_destroy_qp(end[i].qp);
	ibv_destroy_cq(init.send_cq);
}

static void test_parent_domains(struct bench *t)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_parent_domain_init_attr attr = {
		.pd = ibv_alloc_pd(t->rig.ctx),
		.td = ibv_alloc_td(t->rig.ctx, &td_attr),
	};
	struct ibv_pd *domain;

	expect("a thread domain", attr.td ? 0 : errno, 0);
	if (!attr.td || !attr.pd)
		return;
	refuse_allocators(t, attr.td);
	domain = ibv_alloc_parent_domain(t->rig.ctx, &attr);
	expect("a parent domain", domain ? 0 : errno, 0);
	if (!domain)
		return;
	expect("its thread domain is in use", ibv_dealloc_td(attr.td), EBUSY);
	expect("and so is its protection domain", ibv_dealloc_pd(attr.pd),
	       EBUSY);
	talk(t, domain);
	expect("it goes", ibv_dealloc_pd(domain), 0);
	expect("then its thread domain", ibv_dealloc_td(attr.td), 0);
	expect("and its protection domain", ibv_dealloc_pd(attr.pd), 0);
}

/* ---- completion vectors ---- */

static void test_vectors(struct bench *t)
{
	int vectors = t->rig.ctx->num_comp_vectors, came = 0, v;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_comp_channel *channel;
	struct ibv_recv_wr *bad_wr, wr = {};
	struct ibv_cq *cq;
	void *context;

	for (v = 0; v < vectors; v++) {
		struct end end = { .rig = &t->rig };

		channel = ibv_create_comp_channel(t->rig.ctx);
		if (!channel)
			die("ibv_create_comp_channel: %s", strerror(errno));
		cq = ibv_create_cq(t->rig.ctx, 4, NULL, channel, v);
		if (!cq)
			die("ibv_create_cq with vector %d: %s", v,
			    strerror(errno));
		init.send_cq = cq;
		init.recv_cq = cq;
		end.qp = ibv_create_qp(t->rig.pd, &init);
		if (!end.qp || ibv_req_notify_cq(cq, 0))
			die("a queue pair: %s", strerror(errno));
		/* The flush of a receive is a completion as good as any. */
		end_activate_ud(&end);
		if (ibv_post_recv(end.qp, &wr, &bad_wr) ||
		    end_set_state(&end, IBV_QPS_ERR))
			die("a receive could not be flushed");
		came += !ibv_get_cq_event(channel, &cq, &context);
		ibv_ack_cq_events(cq, 1);
		ibv_destroy_qp(end.qp);
		ibv_destroy_cq(cq);
		ibv_destroy_comp_channel(channel);
	}
	expect("events come by every completion vector", came, vectors);
	errno = 0;
	expect("there is no vector more",
	       ibv_create_cq(t->rig.ctx, 4, NULL, NULL, vectors) ? 0 : errno,
	       EINVAL);
}

/* ---- multicast ---- */

#define GRH		40
#define MLID		0xc123
#define MULTICAST_QPN	0xffffff

static const union ibv_gid mgid = {
	.raw = { 0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4 },
};

static void send_to_group(struct bench *t, struct end *from, uint8_t value)
{
	struct ibv_ah_attr to = {
		.dlid = MLID,
		.port_num = 1,
		.is_global = 1,
		.grh = { .dgid = mgid, .hop_limit = 1 },
	};
	struct ibv_sge sge = {
		.addr = (uintptr_t)t->amem,
		.length = 1000,
		.lkey = t->amr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.ud = {
			.ah = ibv_create_ah(t->rig.pd, &to),
			.remote_qpn = MULTICAST_QPN,
			.remote_qkey = RIG_QKEY,
		},
	};

	if (!wr.wr.ud.ah)
		die("ibv_create_ah: %s", strerror(errno));
	memset(t->amem, value, 1000);
	expect("a message to a group is sent", bench_post(from, &wr).status,
	       IBV_WC_SUCCESS);
	ibv_destroy_ah(wr.wr.ud.ah);
}

static void test_multicast(struct bench *t)
{
	const struct end_attr attr = { .type = IBV_QPT_UD };
	struct end from, to;
	struct ibv_wc wc;

	end_open(&from, &t->rig, &attr);
	end_open(&to, &t->rig, &attr);
	end_activate_ud(&from);
	end_activate_ud(&to);

	expect("a queue pair joins a group",
	       ibv_attach_mcast(to.qp, &mgid, MLID), 0);
	bench_post_recv(&to, t->bmr, 8);
	send_to_group(t, &from, 0x5c);
	wc = bench_receive(&to);
	expect("it comes", wc.status || wc.byte_len != 1000 + GRH ||
	       wc.src_qp != from.qp->qp_num || !(wc.wc_flags & IBV_WC_GRH) ||
	       memcmp(t->bmem + GRH, t->amem, 1000), 0);

	expect("the queue pair leaves", ibv_detach_mcast(to.qp, &mgid, MLID),
	       0);
	bench_post_recv(&to, t->bmr, 9);
	send_to_group(t, &from, 0x5d);
	expect("nothing comes any more",
	       wait_wc(&to, to.recv_cq, &wc, false, 0.2), 0);
	expect("leaving twice fails",
	       !!ibv_detach_mcast(to.qp, &mgid, MLID), 1);
	expect("a connected queue pair joins no group",
	       ibv_attach_mcast(t->b.qp, &mgid, MLID), EINVAL);
	end_close(&from);
	end_close(&to);
}

void test_domains(struct bench *t)
{
	test_parent_domains(t);
	test_vectors(t);
	test_multicast(t);
}
