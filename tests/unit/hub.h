/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest with a shared receive queue, and others that send to it, each over a
 * connection of its own: what tests of SRQs start with.
 */
#ifndef VMRI_HUB_H
#define VMRI_HUB_H

#include "guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HUB_MAX     8
#define HUB_BYTES   (1U << 20)

struct spoke {
    struct guest *guest;
    struct guest_qp *qp;            /* sends */
    struct guest_qp *in;            /* the hub's, that gets it */
    struct guest_mr mr;
};

struct hub {
    struct guest *guest;
    struct guest_srq *srq;
    struct guest_cq *cq;            /* all receives of RC, UC and UD */
    struct guest_mr mr;
    unsigned int nr;
    struct spoke spoke[HUB_MAX];
};

/* A sender more, of a guest of its own. */
static inline struct spoke *hub_spoke(struct hub *h,
                                      const struct guest_qp_opts *out,
                                      const struct guest_qp_opts *in,
                                      const struct guest_conn *conn)
{
    struct spoke *s = &h->spoke[h->nr];

    s->guest = guest_new(2 + h->nr++);
    s->qp = guest_qp(s->guest, out);
    s->in = guest_qp(h->guest, in);
    s->mr = guest_mr(s->guest, HUB_BYTES, 100, LAYOUT_SCATTERED, 7);
    qp_connect(s->qp, s->in, conn);
    return s;
}

/* With `nr` senders of a type (0: RC). */
static inline struct hub hub_new(unsigned int nr, uint8_t type,
                                 const struct guest_srq_opts *opts,
                                 const struct guest_conn *conn)
{
    struct hub h = { .guest = guest_new(1) };
    struct guest_qp_opts out = { .type = type }, in = { .type = type };

    h.srq = guest_srq(h.guest, opts);
    h.cq = guest_cq(h.guest, 8);
    h.mr = guest_mr(h.guest, HUB_BYTES, 3000, LAYOUT_SCATTERED, 7);
    in.srq = h.srq;
    in.rcq = h.cq;
    while ( h.nr < nr )
        hub_spoke(&h, &out, &in, conn);
    return h;
}

/* The hub receives into `to` of its memory. */
static inline void hub_recv(struct hub *h, uint64_t wr_id, uint64_t to,
                            uint32_t bytes)
{
    struct vmri_sge sge = mr_sge(&h->mr, to, bytes);

    srq_recv(h->srq, wr_id, &sge, 1);
}

/* A signalled request from the beginning of the sender's memory. */
static inline struct guest_wr spoke_wr(const struct hub *h,
                                       const struct spoke *s,
                                       unsigned int opcode, uint64_t wr_id,
                                       uint32_t bytes)
{
    return (struct guest_wr){
        .wr_id = wr_id, .opcode = (uint8_t)opcode,
        .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&s->mr, 0, bytes) },
        .remote_addr = h->mr.iova, .rkey = h->mr.key,
        .to = s->in->arg.type == VMRI_QPT_UD ? s->in : NULL,
        .imm = 0x01020304,
    };
}

static inline void spoke_send(const struct hub *h, const struct spoke *s,
                              uint64_t wr_id, uint32_t bytes)
{
    struct guest_wr wr = spoke_wr(h, s, VMRI_WR_SEND, wr_id, bytes);

    qp_send(s->qp, &wr);
}

/* Have the first message of a sender half way in its receive. */
static inline void hub_begin(struct hub *h, struct spoke *s)
{
    struct guest_wr wr = spoke_wr(h, s, VMRI_WR_SEND, 1, HUB_BYTES);

    hub_recv(h, 10, 0, HUB_BYTES);
    hub_recv(h, 11, 0, HUB_BYTES);
    qp_post_send(s->qp, &wr);
    CHECK_EQ(guest_schedule(s->guest, s->qp->qpn), VMRI_SCHEDULE_MORE);
    CHECK_EQ(h->srq->hdr->cons, 1);
}

/* How often the limit was told of. */
static inline unsigned int hub_limits(struct hub *h)
{
    world_settle();
    return h->guest->events[VMRI_EVENT_SRQ_LIMIT];
}

#endif /* VMRI_HUB_H */
