/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the test programs share: reporting, a TCP channel to the other side, and
 * an InfiniBand device with the few objects that a test needs.
 *
 * A function that cannot do its work ends the program with a message and status
 * 2, unless its comment says otherwise: the tests are about what comes after.
 */
#ifndef RIG_H
#define RIG_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

/* The longest wait for anything, in seconds: for hangs, not for speed. */
#define RIG_LIMIT 120

/* ---- reporting ---- */

void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* One check: `ok NAME`, or `FAIL NAME: why` and the program's status is 1. */
void ok(const char *name);
void bad(const char *name, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* What main() returns. */
int report_status(void);

/* ---- the other side ---- */

/* Listen on all addresses and take the first caller, or call one. */
int chan_accept(const char *port);
int chan_connect(const char *host, const char *port);
void chan_send(int chan, const void *data, size_t len);
/* False when the other side has closed the channel before the first byte. */
bool chan_recv(int chan, void *data, size_t len);
/* Return when both sides are here. */
void chan_sync(int chan);

/* ---- the device ---- */

struct rig {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_port_attr port;
	union ibv_gid gid;
	bool grh;			/* connections have a global route */
};

/* Open the device of this name, or the only one. */
void rig_open(struct rig *rig, const char *name);
void rig_close(struct rig *rig);

/* An end point: a QP with CQs and a completion channel of its own. */
struct end {
	struct rig *rig;
	struct ibv_comp_channel *events;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;	/* or NULL: where receives are posted */
	struct ibv_xrcd *xrcd;	/* XRC, as below */
	uint32_t srqn;
	struct ibv_qp *target;	/* where requests come in */
	struct ibv_qp *qp;
	uint32_t max_inline;	/* bytes, as asked for */
};

struct end_attr {
	enum ibv_qp_type type;		/* XRC_SEND: with a target, too */
	bool shared;			/* its receives are of an SRQ */
	struct ibv_srq *srq;		/* or of this one, which stays */
	uint64_t send_ops;		/* IBV_QP_EX_WITH_* */
	struct ibv_pd *pd;		/* NULL: the rig's */
	uint32_t depth;			/* of all queues; 0: 64 */
	uint32_t sges;			/* 0: 1 */
	uint32_t max_inline;
	bool sig_all;
};

void end_open(struct end *end, struct rig *rig, const struct end_attr *attr);
/* Its QP may be gone already: NULL. */
void end_close(struct end *end);

/* What the other side must know to reach an end, and memory behind it. */
struct address {
	uint64_t addr;
	uint32_t rkey;
	uint32_t qpn;			/* who sends from there */
	uint32_t target;		/* who is sent to there */
	uint32_t srqn;			/* XRC */
	uint16_t lid;
	uint16_t reserved;
	union ibv_gid gid;
};

struct address end_address(const struct end *end, const struct ibv_mr *mr);
/* The way to an address, with or without a GRH. */
struct ibv_ah_attr ah_to(const struct rig *rig, const struct address *to,
			 bool grh);

struct link_attr {
	int access;		/* IBV_ACCESS_* of the QP */
	uint8_t min_rnr_timer;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
};
extern const struct link_attr link_default;

#define RIG_QKEY 0x1ee7a1e

/* Take an end to RTS, connected to an address; or a UD end. */
void end_connect(struct end *end, const struct address *to,
		 const struct link_attr *attr);
void end_activate_ud(struct end *end);
/* As ibv_post_recv, wherever the end's receives are posted. */
int end_post_recv(struct end *end, struct ibv_recv_wr *wr);
/* Post by the calls of struct ibv_qp_ex (calls.c).  Returns the errno. */
int post_by_calls(struct end *end, const struct ibv_send_wr *wr);
/* One state transition that needs no other attribute.  Returns the errno. */
int end_set_state(struct end *end, enum ibv_qp_state state);
enum ibv_qp_state end_state(struct end *end);

/*
 * Wait for one completion, by event or by polling.  False: none within `limit`
 * seconds.
 */
bool wait_wc(struct end *end, struct ibv_cq *cq, struct ibv_wc *wc,
	     bool by_event, double limit);
/*
 * Between two polls in vain: guests that spin on the processors of one small
 * machine only keep each other from running.
 */
void let_others_run(void);
/* Seconds on a clock that only goes forward. */
double now(void);

/*
 * Leave the process no room for mappings beyond those it has, and give it back what
 * it had.
 */
void take_room(struct rlimit *had);
void give_room_back(const struct rlimit *had);

/* ---- data ---- */

/* Bytes that depend on the seed and on their place. */
void pattern(void *to, size_t len, uint64_t seed);
/* The same, as a stream of numbers. */
uint64_t next_random(uint64_t *state);

#endif /* RIG_H */
