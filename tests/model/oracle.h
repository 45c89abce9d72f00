/* SPDX-License-Identifier: GPL-2.0-only */
/* What the oracle's files share. */
#ifndef VMRI_MODEL_ORACLE_H
#define VMRI_MODEL_ORACLE_H

#include "model.h"
#include "internal.h"

/* How a request ends. */
struct verdict {
    uint8_t status;
    uint16_t verr;
};

#define FINE    ((struct verdict){ VMRI_WC_SUCCESS, VMRI_VERR_NONE })

static inline struct verdict verdict(uint8_t status, uint16_t verr)
{
    return (struct verdict){ status, verr };
}

/* The request at the head is over.  `wait`: the least time that it took. */
void oracle_end_send(struct qp *q, struct verdict v, uint64_t wait);
/* So is a receive of q's, of that queue: false if q cannot be told. */
bool oracle_end_recv(struct qp *q, const struct rq *rq, const struct recv *r,
                     const struct vmri_cqe *how);
/* Enter the error state, with an event or (0) without. */
void oracle_enter_error(struct qp *q, unsigned int event);
/* The request at the head fails, and its queue with it. */
void oracle_fail_sender(struct qp *q, struct verdict v, uint64_t wait);
/* An unreliable message is lost; where it got to counts it. */
void oracle_lose(struct qp *q, struct side *at);
/* Take the next receive, which is there. */
void oracle_take(struct rq *rq, struct recv *r);
/* What the sender's list names. */
void oracle_local_spans(struct qp *q, const struct send *s,
                        struct spans *spans);
/* Do the datagram at the head, which is well formed. */
void oracle_datagram(struct qp *q, const struct send *s);

#endif /* VMRI_MODEL_ORACLE_H */
