/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guests for the tests: they call the hypervisor and use their rings as ring.h
 * says, out of the fake domains' memory.  Nothing here knows VMRI's insides.
 *
 * The small functions that create things end the test when that fails; those
 * that start with try_ give the result.
 */
#ifndef VMRI_GUEST_H
#define VMRI_GUEST_H

#include "env_test.h"
#include "harness.h"

#undef memcpy
#undef memset

#define GUEST_EQS       4
#define GUEST_FABRIC    7
#define GUEST_MAX_SGE   34      /* more than is allowed */

struct guest_eq {
    struct guest *guest;
    uint32_t handle;
    uint32_t port;
    uint32_t log2;
    uint32_t cons;
    uint64_t gfn;
    struct vmri_eq_hdr *hdr;
    struct vmri_event *entry;
};

struct guest {
    struct domain *domain;
    uint32_t dev;
    uint16_t lid;
    struct vmri_dev_attr attr;
    uint32_t pd;
    struct guest_eq *eq[GUEST_EQS];     /* eq[0] is made with the guest */
    unsigned int events[32];            /* by type; READY ones were served */
    uint64_t next_iova;
};

struct guest_cq {
    struct guest *guest;
    uint32_t handle;
    uint32_t log2;
    uint32_t cons;
    uint64_t gfn;
    struct vmri_cq_hdr *hdr;
    struct vmri_cqe *entry;
};

struct guest_mr {
    struct guest *guest;
    uint32_t key;
    uint64_t iova;
    uint64_t length;
    uint64_t gfn;
    uint32_t pages;
    uint32_t offset;        /* of iova in the first page */
    uint8_t *mem;           /* the byte at iova */
};

struct guest_srq {
    struct guest *guest;
    struct guest_cq *cq;        /* XRC */
    uint32_t handle;
    uint32_t prod, prod_ind;
    uint64_t gfn;
    uint32_t pages;
    uint8_t *mem;
    struct vmri_wq_hdr *hdr;
    struct vmri_srq_create arg; /* as it is now */
};

struct guest_qp {
    struct guest *guest;
    struct guest_cq *scq, *rcq; /* where its requests complete, or NULL */
    struct guest_srq *srq;
    uint32_t qpn;
    uint32_t prod_s, prod_r, prod_ind;
    uint64_t gfn;
    uint32_t pages;
    uint8_t *mem;
    struct vmri_qp_hdr *hdr;
    struct vmri_qp_create arg;
};

/* ---- the world ---- */

/* Called by the harness around each test. */
void world_begin(void);
void world_end(void);
/* Let a guest take its events and serve READY ones; true if there were any. */
bool guest_serve(struct guest *g);
/* Let every guest take its events and serve READY ones until none is left. */
void world_settle(void);
/* The same while the clock moves by ns in steps of at most `step`. */
void world_pass(uint64_t ns, uint64_t step);

/* ---- calls ---- */

/* A hypercall, continued as often as it wants. */
long guest_call(struct guest *g, unsigned int cmd, void *arg, size_t bytes);
/* What a step leaves to its continuation, which takes it from here. */
extern __thread uint32_t guest_ticket;
/* One step of it only: -ERESTART as Xen sees it. */
long guest_call_once(struct guest *g, unsigned int cmd, void *arg, size_t bytes);
long guest_schedule(struct guest *g, uint32_t qpn);
long guest_srq_schedule(struct guest *g, uint32_t handle);
/* dom0's commands. */
long dom0_call(unsigned int cmd, void *arg, size_t bytes);
long dom0_attach(unsigned int domid, uint32_t fabric, uint32_t *dev,
                 uint16_t *lid);
long dom0_detach(unsigned int domid, uint32_t dev);

/* ---- objects ---- */

/* A domain with a device in use, a PD and an EQ. */
struct guest *guest_new(unsigned int domid);
/* The domain only: attached by hand. */
struct guest *guest_bare(unsigned int domid);
/* Use the device: create it, a PD and an EQ. */
void guest_start(struct guest *g);
void guest_counters(struct guest *g, struct vmri_counters *c);

uint32_t guest_pd(struct guest *g);
/* Frames for `nr` pages from gfn on, to be given in a command. */
void guest_frames(struct vmri_frames *f, uint64_t *list, uint64_t gfn,
                  uint32_t nr);

long try_eq(struct guest *g, unsigned int log2, struct guest_eq **eq);
/* One that gets the port's events, too. */
long try_port_eq(struct guest *g, struct guest_eq **eq);
struct guest_eq *guest_eq(struct guest *g, unsigned int log2);
bool eq_poll(struct guest_eq *eq, struct vmri_event *ev);
long eq_destroy(struct guest_eq *eq);

long try_cq(struct guest *g, unsigned int log2, struct guest_eq *eq,
            struct guest_cq **cq);
struct guest_cq *guest_cq(struct guest *g, unsigned int log2);
/* As cq_resize of the ABI asks for; what is unconsumed moves along. */
long cq_resize(struct guest_cq *cq, unsigned int log2);
bool cq_poll(struct guest_cq *cq, struct vmri_cqe *cqe);
/* True if completions came meanwhile: look before waiting. */
bool cq_arm(struct guest_cq *cq, uint32_t kind);
long cq_destroy(struct guest_cq *cq);

/* The next completion, which must be there and have this wr_id and status. */
struct vmri_cqe cq_expect(struct guest_cq *cq, uint64_t wr_id, uint8_t status);
void cq_expect_none(struct guest_cq *cq);

enum guest_layout {
    LAYOUT_RUN,             /* contiguous frames */
    LAYOUT_SCATTERED,
};
long try_mr(struct guest *g, struct guest_mr *mr, uint32_t pd, uint32_t access);
/* Pages for an MR of `bytes`, of which the first lies `offset` into a page. */
struct guest_mr mr_pages(struct guest *g, uint64_t bytes, uint32_t offset,
                         enum guest_layout layout);
struct guest_mr guest_mr(struct guest *g, uint64_t bytes, uint32_t offset,
                         enum guest_layout layout, uint32_t access);
long mr_deregister(struct guest_mr *mr);
struct vmri_sge mr_sge(const struct guest_mr *mr, uint64_t at, uint32_t bytes);

/* ---- shared receive queues ---- */

struct guest_srq_opts {
    uint8_t log2;                   /* default 4 */
    uint8_t max_sge;                /* default 4 */
    bool kernel;
    uint8_t ind_log2;
    uint32_t limit;
    uint32_t pd;                    /* default the guest's */
    uint32_t xrcd;
    struct guest_cq *cq;            /* XRC; NULL: one of 64 entries is made */
};
uint32_t guest_xrcd(struct guest *g);
/* Fill in what creating such an SRQ takes, with pages of its own. */
struct guest_srq *srq_prepare(struct guest *g,
                              const struct guest_srq_opts *opts);
long try_srq(struct guest_srq *srq);
struct guest_srq *guest_srq(struct guest *g, const struct guest_srq_opts *opts);
long srq_destroy(struct guest_srq *srq);
long srq_query(struct guest_srq *srq, struct vmri_srq_query *arg);
long srq_set_limit(struct guest_srq *srq, uint32_t limit);
/* Copy what is posted to new pages and go on there. */
long srq_resize(struct guest_srq *srq, uint8_t log2);
void srq_post(struct guest_srq *srq, uint64_t wr_id, const struct vmri_sge *sge,
              unsigned int num);
/* Post, and ring if somebody waits. */
void srq_recv(struct guest_srq *srq, uint64_t wr_id, const struct vmri_sge *sge,
              unsigned int num);

/* ---- queue pairs ---- */

struct guest_qp_opts {
    struct guest_cq *scq, *rcq;     /* NULL: one of 64 entries is made */
    uint8_t type;                   /* default RC */
    bool kernel;
    uint8_t sq_log2, rq_log2;       /* default 4 */
    uint8_t max_send_sge, max_recv_sge;     /* default 4 */
    uint16_t max_inline;
    uint8_t ind_log2;
    struct guest_srq *srq;
    uint32_t xrcd;                  /* XRC targets */
    uint32_t pd;                    /* default the guest's */
    uint32_t qpn;
    bool scattered;                 /* pages of the rings */
};
/* Fill in what creating such a QP takes, with pages of its own. */
struct guest_qp *qp_prepare(struct guest *g, const struct guest_qp_opts *opts);
long try_qp(struct guest_qp *qp);
struct guest_qp *guest_qp(struct guest *g, const struct guest_qp_opts *opts);
long qp_destroy(struct guest_qp *qp);

struct guest_conn {
    uint8_t timeout;                /* default 14 */
    uint8_t retry_cnt, rnr_retry;   /* default 7; -1 in the struct is 0 */
    uint8_t min_rnr_timer;          /* default 12 */
    uint16_t access;                /* default all that there are */
    uint16_t pkey_index;            /* default 0 */
    uint8_t sl;
};
#define CONN_ZERO   0xff            /* stands for 0 where 0 is the default */
long qp_modify(struct guest_qp *qp, struct vmri_qp_modify *arg);
long qp_query(struct guest_qp *qp, struct vmri_qp_modify *arg);
unsigned int qp_state(struct guest_qp *qp);
/* All that an RC, UC or UD QP needs for the step to `state`. */
void qp_attr(struct guest_qp *qp, struct guest_qp *peer, unsigned int state,
             const struct guest_conn *conn, struct vmri_qp_modify *arg);
void qp_to(struct guest_qp *qp, struct guest_qp *peer, unsigned int state,
           const struct guest_conn *conn);
void qp_set_state(struct guest_qp *qp, unsigned int state);
/* To RTS, both. */
void qp_connect(struct guest_qp *a, struct guest_qp *b,
                const struct guest_conn *conn);
/*
 * One of them, from RESET to RTS.  When its peer puts it into the error state on
 * the way: anew.
 */
void qp_connect_again(struct guest_qp *qp, struct guest_qp *peer,
                      const struct guest_conn *conn);

struct guest_wr {
    uint64_t wr_id;
    uint8_t opcode;                 /* VMRI_WR_* */
    uint8_t flags;                  /* VMRI_SEND_* */
    uint16_t num_sge;
    struct vmri_sge sge[GUEST_MAX_SGE];
    const void *data;               /* inline */
    uint32_t length;                /* 0: the sum of the entries */
    uint32_t imm;
    uint64_t remote_addr;
    uint32_t rkey;
    uint64_t compare_add, swap;
    uint32_t flush_type, flush_level;
    uint32_t srqn;                  /* XRC */
    struct guest_qp *to;            /* UD */
    uint32_t qkey;
    uint8_t pkey_index;             /* QP1 */
    uint8_t sl;                     /* UD */
    bool raw;                       /* the request's union is: */
    struct vmri_send_wqe wqe;
};
void qp_post_send(struct guest_qp *qp, const struct guest_wr *wr);
void qp_post_recv(struct guest_qp *qp, uint64_t wr_id,
                  const struct vmri_sge *sge, unsigned int num);
/* Ring as ring.h asks for: schedule unless that is not needed; until done. */
void qp_ring(struct guest_qp *qp);
/* Post, and ring. */
void qp_send(struct guest_qp *qp, const struct guest_wr *wr);
void qp_recv(struct guest_qp *qp, uint64_t wr_id, const struct vmri_sge *sge,
             unsigned int num);

/* ---- data ---- */

void fill_pattern(uint8_t *p, size_t bytes, uint32_t seed);
/* The first byte that is not the pattern's from its byte `skip` on; or bytes. */
size_t match_pattern(const uint8_t *p, size_t bytes, uint32_t seed, size_t skip);
/* Every byte of p is c. */
bool all_bytes(const uint8_t *p, size_t bytes, uint8_t c);

#endif /* VMRI_GUEST_H */
