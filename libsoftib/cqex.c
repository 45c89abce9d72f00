// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SoftIB: extended polling: one completion at a time, of which the caller reads
 * only what it wants.  The CQ's lock is held from start_poll to end_poll.
 */
#include <config.h>

#include <errno.h>
#include <time.h>

#include "softib.h"

#define SECOND	1000000000ULL

static struct softib_cq *of_ex(struct ibv_cq_ex *ibcq)
{
	return to_scq(ibv_cq_ex_to_cq(ibcq));
}

/* Show the next completion. */
static int show_next(struct softib_cq *cq)
{
	int ret;

	ret = softib_cq_peek(cq, &cq->cur);
	if (ret) {
		cq->cur = NULL;
		return ret;
	}
	cq->vcq.cq_ex.status = cq->cur->status;
	cq->vcq.cq_ex.wr_id = cq->cur->wr_id;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct softib_cq *cq = of_ex(ibcq);
	int ret;

	if (attr->comp_mask)
		return EINVAL;

	softib_lock(&cq->lock);
	ret = show_next(cq);
	if (ret)
		softib_unlock(&cq->lock);
	return ret;
}

static int next_poll(struct ibv_cq_ex *ibcq)
{
	struct softib_cq *cq = of_ex(ibcq);

	softib_cq_consume(cq, cq->cur);
	return show_next(cq);
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	struct softib_cq *cq = of_ex(ibcq);

	if (cq->cur)
		softib_cq_consume(cq, cq->cur);
	cq->cur = NULL;
	softib_cq_release(cq);
	softib_unlock(&cq->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ibcq)
{
	return of_ex(ibcq)->cur->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ibcq)
{
	return of_ex(ibcq)->cur->vendor_err;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ibcq)
{
	return softib_wc_flags(of_ex(ibcq)->cur);
}

static uint32_t read_byte_len(struct ibv_cq_ex *ibcq)
{
	return of_ex(ibcq)->cur->byte_len;
}

/* Or the key that was invalidated. */
static __be32 read_imm_data(struct ibv_cq_ex *ibcq)
{
	return of_ex(ibcq)->cur->imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ibcq)
{
	return of_ex(ibcq)->cur->qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ibcq)
{
	return of_ex(ibcq)->cur->src_qp;
}

static uint32_t read_slid(struct ibv_cq_ex *ibcq)
{
	return of_ex(ibcq)->cur->slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ibcq)
{
	return of_ex(ibcq)->cur->sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ibcq)
{
	return of_ex(ibcq)->cur->dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ibcq)
{
	return of_ex(ibcq)->cur->timestamp;
}

/* How far the real time is from the clock of the timestamps. */
static void compare_clocks(struct softib_cq *cq)
{
	struct timespec now;
	uint64_t ns;

	if (softib_read_clock(cq->vcq.cq.context, &ns))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	cq->clock = ns;
	cq->wall_offset = now.tv_sec * SECOND + now.tv_nsec - ns;
}

/*
 * The two clocks drift, and the real time may be set: the comparison holds for
 * a second.
 */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ibcq)
{
	struct softib_cq *cq = of_ex(ibcq);
	uint64_t ts = cq->cur->timestamp;

	if (ts - cq->clock + SECOND > 2 * SECOND)
		compare_clocks(cq);
	return ts + cq->wall_offset;
}

void softib_cq_init_ex(struct softib_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns =
			read_completion_wallclock_ns;
}
