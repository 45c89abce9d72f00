// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wrong arguments of modify_qp in each transition, and of requests.
 */
#include <errno.h>
#include <string.h>

#include "badargs.h"

/* ---- transitions ---- */

struct modify_args {
	struct ibv_qp_attr attr;
	uint32_t mask;
};

/*
 * What a transition must have and may have: the table of the InfiniBand
 * specification, "Modify queue pair", without the alternate path.
 */
struct transition {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_qp_state from;
	enum ibv_qp_state to;
	uint32_t must;
	uint32_t may;
};

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define TO_RTR (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |	\
		IBV_QP_RQ_PSN)
#define RC_RTR (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS (IBV_QP_STATE | IBV_QP_SQ_PSN)
#define RC_RTS (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |		\
		IBV_QP_MAX_QP_RD_ATOMIC)
/* What no transition has, nor this interface. */
#define UNKNOWN 0xffe00000U

static const struct transition transitions[] = {
	{ "RC to INIT", IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT,
	  TO_INIT | IBV_QP_ACCESS_FLAGS, 0 },
	{ "RC to RTR", IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
	  TO_RTR | RC_RTR, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS },
	{ "RC to RTS", IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
	  TO_RTS | RC_RTS, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER },
	{ "UC to INIT", IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT,
	  TO_INIT | IBV_QP_ACCESS_FLAGS, 0 },
	{ "UC to RTR", IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR,
	  TO_RTR, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS },
	{ "UC to RTS", IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS,
	  TO_RTS, IBV_QP_ACCESS_FLAGS },
	{ "UD to INIT", IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT,
	  TO_INIT | IBV_QP_QKEY, 0 },
	{ "UD to RTR", IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_STATE, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ "UD to RTS", IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS,
	  TO_RTS, IBV_QP_QKEY },
};

#define NR_TRANSITIONS (sizeof(transitions) / sizeof(transitions[0]))

/* The queue pair of the transition that is tried. */
static struct end modified;
static const struct transition *current;

static struct modify_args right_args(struct desk *b,
				     const struct transition *t)
{
	struct address self = end_address(&modified, NULL);

	return (struct modify_args) {
		.mask = t->must,
		.attr = {
			.qp_state = t->to,
			.port_num = 1,
			.qkey = RIG_QKEY,
			.path_mtu = b->t.rig.port.active_mtu,
			.dest_qp_num = self.qpn,
			.ah_attr = ah_to(&b->t.rig, &self, true),
			.max_dest_rd_atomic = 1,
			.max_rd_atomic = 1,
			.min_rnr_timer = 12,
			.timeout = 14,
			.retry_cnt = 7,
			.rnr_retry = 7,
		},
	};
}

/* From RESET through what comes before. */
static void walk_to(struct desk *b, const struct transition *t)
{
	const struct transition *step;
	struct modify_args a;
	int ret;

	ret = end_set_state(&modified, IBV_QPS_RESET);
	if (ret)
		die("modify_qp to RESET: %s", strerror(ret));
	for (step = t; step->from != IBV_QPS_RESET; step--)
		;
	for (; step < t; step++) {
		a = right_args(b, step);
		ret = ibv_modify_qp(modified.qp, &a.attr, a.mask);
		if (ret)
			die("modify_qp, %s: %s", step->name, strerror(ret));
	}
}

static int modify_qp(struct desk *b, void *args)
{
	struct modify_args *a = args;

	walk_to(b, current);
	return ibv_modify_qp(modified.qp, &a->attr, a->mask);
}

static void try_transition(struct desk *b, const struct transition *t)
{
	const struct modify_args right = right_args(b, t);
	const struct argument always[] = {
		ARGUMENT(struct modify_args, mask, WRONG_BIT,
			 t->must | t->may | UNKNOWN, EINVAL),
		ARGUMENT(struct modify_args, mask, WRONG_BIT,
			 ~(uint64_t)UNKNOWN, EOPNOTSUPP),
		ARGUMENT(struct modify_args, mask, WRONG_MISSING,
			 t->must & ~IBV_QP_STATE, EINVAL),
		ARGUMENT(struct modify_args, attr.qp_state, WRONG_VALUE,
			 IBV_QPS_UNKNOWN, EINVAL),
	};
	const struct argument port[] = {
		ARGUMENT(struct modify_args, attr.port_num, WRONG_VALUE, 0,
			 EINVAL),
		ARGUMENT(struct modify_args, attr.port_num, WRONG_ABOVE, 1,
			 EINVAL),
		ARGUMENT(struct modify_args, attr.pkey_index, WRONG_ABOVE,
			 b->t.rig.port.pkey_tbl_len - 1, EINVAL),
	};
	const struct argument path[] = {
		ARGUMENT(struct modify_args, attr.path_mtu, WRONG_VALUE, 0,
			 EINVAL),
		ARGUMENT(struct modify_args, attr.path_mtu, WRONG_ABOVE,
			 IBV_MTU_4096, EINVAL),
		ARGUMENT(struct modify_args, attr.ah_attr.port_num, WRONG_ABOVE,
			 1, EINVAL),
		ARGUMENT(struct modify_args, attr.ah_attr.grh.sgid_index,
			 WRONG_ABOVE, b->t.rig.port.gid_tbl_len - 1, EINVAL),
		ARGUMENT(struct modify_args, attr.dest_qp_num, WRONG_VALUE,
			 1 << 24, EINVAL),
	};
	const struct argument responder[] = {
		ARGUMENT(struct modify_args, attr.max_dest_rd_atomic,
			 WRONG_ABOVE, b->attr.max_qp_rd_atom, EINVAL),
		ARGUMENT(struct modify_args, attr.min_rnr_timer, WRONG_ABOVE,
			 31, EINVAL),
	};
	const struct argument requester[] = {
		ARGUMENT(struct modify_args, attr.max_rd_atomic, WRONG_ABOVE,
			 b->attr.max_qp_init_rd_atom, EINVAL),
		ARGUMENT(struct modify_args, attr.timeout, WRONG_ABOVE, 31,
			 EINVAL),
		ARGUMENT(struct modify_args, attr.retry_cnt, WRONG_ABOVE, 7,
			 EINVAL),
		ARGUMENT(struct modify_args, attr.rnr_retry, WRONG_ABOVE, 7,
			 EINVAL),
	};

	current = t;
	TRY(b, t->name, modify_qp, &right, always);
	if (t->must & IBV_QP_PORT)
		TRY(b, t->name, modify_qp, &right, port);
	if (t->must & IBV_QP_AV)
		TRY(b, t->name, modify_qp, &right, path);
	if (t->must & IBV_QP_MIN_RNR_TIMER)
		TRY(b, t->name, modify_qp, &right, responder);
	if (t->must & IBV_QP_TIMEOUT)
		TRY(b, t->name, modify_qp, &right, requester);
}

void bad_transitions(struct desk *b)
{
	enum ibv_qp_type open = 0;
	unsigned int i;

	for (i = 0; i < NR_TRANSITIONS; i++) {
		const struct transition *t = &transitions[i];

		if (t->type != open) {
			const struct end_attr attr = { .type = t->type };

			if (open)
				end_close(&modified);
			end_open(&modified, &b->t.rig, &attr);
			open = t->type;
		}
		try_transition(b, t);
	}
	end_close(&modified);
}

/* ---- requests ---- */

struct send_args {
	struct ibv_sge sge;
	struct ibv_send_wr wr;
};

/* Written to the other end's memory; what is taken must complete. */
static int post_send(struct desk *b, void *args)
{
	struct send_args *a = args;
	struct ibv_send_wr *bad_wr = NULL;
	struct ibv_wc wc;
	int ret;

	a->wr.sg_list = &a->sge;
	ret = ibv_post_send(b->t.a.qp, &a->wr, &bad_wr);
	if (ret)
		return bad_wr == &a->wr ? ret : EPROTO;
	if (!wait_wc(&b->t.a, b->t.a.send_cq, &wc, false, RIG_LIMIT) ||
	    wc.status != IBV_WC_SUCCESS)
		die("a right request does not complete");
	return 0;
}

struct recv_args {
	struct ibv_sge sge;
	struct ibv_recv_wr wr;
};

static int post_srq_recv(struct desk *b, void *args)
{
	struct recv_args *a = args;
	struct ibv_recv_wr *bad_wr = NULL;
	int ret;

	a->wr.sg_list = &a->sge;
	ret = ibv_post_srq_recv(b->srq, &a->wr, &bad_wr);
	return ret && bad_wr != &a->wr ? EPROTO : ret;
}

/* Into a queue pair that has not left RESET nothing is posted. */
static int post_recv_in_reset(struct desk *b, void *args)
{
	const struct end_attr attr = { .type = IBV_QPT_RC };
	struct recv_args *a = args;
	struct ibv_recv_wr *bad_wr = NULL;
	struct end end;
	int ret;

	end_open(&end, &b->t.rig, &attr);
	a->wr.sg_list = &a->sge;
	ret = ibv_post_recv(end.qp, &a->wr, &bad_wr);
	end_close(&end);
	return ret == EINVAL && bad_wr == &a->wr ? 0 : EPROTO;
}

void bad_requests(struct desk *b)
{
	const struct ibv_sge sge = {
		.addr = (uintptr_t)b->t.amem,
		.length = 64,
		.lkey = b->t.amr->lkey,
	};
	const struct send_args send = {
		.sge = sge,
		.wr = {
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {
				.remote_addr = (uintptr_t)b->t.bmem,
				.rkey = b->t.bmr->rkey,
			},
		},
	};
	const struct recv_args recv = { .sge = sge, .wr = { .num_sge = 1 } };
	const struct argument request[] = {
		ARGUMENT(struct send_args, wr.num_sge, WRONG_ABOVE,
			 b->attr.max_sge, EINVAL),
		ARGUMENT(struct send_args, wr.opcode, WRONG_VALUE, IBV_WR_TSO,
			 EINVAL),
		ARGUMENT(struct send_args, wr.opcode, WRONG_ABOVE,
			 IBV_WR_ATOMIC_WRITE, EINVAL),
		ARGUMENT(struct send_args, wr.send_flags, WRONG_BIT,
			 IBV_SEND_FENCE | IBV_SEND_SIGNALED |
			 IBV_SEND_SOLICITED | IBV_SEND_INLINE, EINVAL),
	};
	const struct argument receive[] = {
		ARGUMENT(struct recv_args, wr.num_sge, WRONG_ABOVE,
			 b->attr.max_srq_sge, EINVAL),
	};
	static const struct argument none[] = {};

	TRY(b, "post_send", post_send, &send, request);
	TRY(b, "post_srq_recv", post_srq_recv, &recv, receive);
	TRY(b, "post_recv in RESET", post_recv_in_reset, &recv, none);
}
