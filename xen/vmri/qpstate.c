/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: which attributes a queue pair's transitions need and allow (IBTA 1.4,
 * 10.3.1 and 11.2.5.2), and which values.
 */
#include "internal.h"

#define A(name) VMRI_QPA_##name

/* Sets of types that have attributes in common. */
#define ON_CONN     (ON_RC | ON_UC | ON_INI | ON_TGT)
#define ON_DGRAM    (ON_UD | ON_MAD)    /* of MADs the port is implied */
#define ON_RESP     (ON_RC | ON_TGT)    /* acknowledge */
#define ON_REQ      (ON_RC | ON_INI)    /* wait for acknowledgements */
#define ON_ALL      (ON_CONN | ON_DGRAM)

/*
 * What a transition needs and what it may have beside STATE.  Several rows may
 * fit a type: together they are what it needs and may have.
 */
struct transition {
    uint8_t from;
    uint8_t to;
    uint8_t types;
    uint32_t required;
    uint32_t optional;
};

#define ROW(from, to, types, required, optional) \
    { VMRI_QPS_##from, VMRI_QPS_##to, types, required, optional }

static const struct transition transitions[] = {
    ROW(RESET, INIT, ON_ALL, A(PKEY_INDEX), 0),
    ROW(RESET, INIT, ON_CONN, A(PORT) | A(ACCESS_FLAGS), 0),
    ROW(RESET, INIT, ON_UD, A(PORT) | A(QKEY), 0),
    ROW(RESET, INIT, ON_MAD, A(QKEY), 0),

    ROW(INIT, INIT, ON_ALL, 0, A(PKEY_INDEX)),
    ROW(INIT, INIT, ON_CONN, 0, A(PORT) | A(ACCESS_FLAGS)),
    ROW(INIT, INIT, ON_UD, 0, A(PORT) | A(QKEY)),
    ROW(INIT, INIT, ON_MAD, 0, A(QKEY)),

    ROW(INIT, RTR, ON_ALL, 0, A(PKEY_INDEX)),
    ROW(INIT, RTR, ON_CONN, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN),
        A(ACCESS_FLAGS)),
    ROW(INIT, RTR, ON_RESP, A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER), 0),
    ROW(INIT, RTR, ON_DGRAM, 0, A(QKEY)),

    ROW(RTR, RTS, ON_ALL, A(SQ_PSN), A(CUR_STATE)),
    ROW(RTR, RTS, ON_CONN, 0, A(ACCESS_FLAGS)),
    ROW(RTR, RTS, ON_REQ, A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) |
                           A(MAX_QP_RD_ATOMIC), 0),
    ROW(RTR, RTS, ON_TGT, A(TIMEOUT), 0),
    ROW(RTR, RTS, ON_RESP, 0, A(MIN_RNR_TIMER)),
    ROW(RTR, RTS, ON_DGRAM, 0, A(QKEY)),

    ROW(RTS, RTS, ON_ALL, 0, A(CUR_STATE)),
    ROW(RTS, RTS, ON_CONN, 0, A(ACCESS_FLAGS)),
    ROW(RTS, RTS, ON_RESP, 0, A(MIN_RNR_TIMER)),
    ROW(RTS, RTS, ON_DGRAM, 0, A(QKEY)),

    ROW(RTS, SQD, ON_ALL, 0, A(EN_SQD_ASYNC_NOTIFY)),

    ROW(SQD, RTS, ON_ALL, 0, A(CUR_STATE)),
    ROW(SQD, RTS, ON_CONN, 0, A(ACCESS_FLAGS)),
    ROW(SQD, RTS, ON_RESP, 0, A(MIN_RNR_TIMER)),
    ROW(SQD, RTS, ON_DGRAM, 0, A(QKEY)),

    ROW(SQD, SQD, ON_ALL, 0, A(PKEY_INDEX)),
    ROW(SQD, SQD, ON_CONN, 0, A(AV) | A(ACCESS_FLAGS)),
    ROW(SQD, SQD, ON_REQ | ON_TGT, 0, A(PORT) | A(TIMEOUT)),
    ROW(SQD, SQD, ON_REQ, 0, A(RETRY_CNT) | A(RNR_RETRY) |
                              A(MAX_QP_RD_ATOMIC)),
    ROW(SQD, SQD, ON_RESP, 0, A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER)),
    ROW(SQD, SQD, ON_DGRAM, 0, A(QKEY)),

    ROW(SQE, RTS, ON_UC | ON_DGRAM, 0, A(CUR_STATE)),
    ROW(SQE, RTS, ON_UC, 0, A(ACCESS_FLAGS)),
    ROW(SQE, RTS, ON_DGRAM, 0, A(QKEY)),
};

#undef ROW

unsigned int vmri_type_bit(const struct vmri_qp *qp)
{
    switch ( qp->type )
    {
    case VMRI_QPT_RC:
        return ON_RC;

    case VMRI_QPT_UC:
        return ON_UC;

    case VMRI_QPT_UD:
        return ON_UD;

    case VMRI_QPT_XRC_INI:
        return ON_INI;

    case VMRI_QPT_XRC_TGT:
        return ON_TGT;

    default:
        return ON_MAD;
    }
}

static bool transition_allowed(const struct vmri_qp *qp, unsigned int from,
                               unsigned int to, uint32_t mask)
{
    unsigned int i, type = vmri_type_bit(qp);
    uint32_t required = 0, optional = 0;
    bool exists = false;

    mask &= ~A(STATE);

    /* From any state, with nothing else. */
    if ( to == VMRI_QPS_RESET || to == VMRI_QPS_ERR )
        return !mask;

    for ( i = 0; i < ARRAY_SIZE(transitions); i++ )
    {
        const struct transition *t = &transitions[i];

        if ( t->from != from || t->to != to || !(t->types & type) )
            continue;
        exists = true;
        required |= t->required;
        optional |= t->optional;
    }

    return exists && (mask & required) == required &&
           !(mask & ~(required | optional));
}

/* Of a RoCE fabric's, the LID is ours. */
static bool av_names_peer(const struct vmri_qp *qp, const struct vmri_av *av)
{
    if ( qp->dev->gids )
        return (av->flags & VMRI_AV_GRH) && av->sgid_index < VMRI_MAX_GIDS;

    return av->dlid && av->dlid <= VMRI_LID_MAX && !av->sgid_index;
}

static bool av_valid(const struct vmri_qp *qp, const struct vmri_av *av)
{
    return av_names_peer(qp, av) && av->sl < 16 &&
           !(av->flags & ~VMRI_AV_GRH) && !(av->flow_label >> 20) &&
           !av->pkey_index && !av->reserved[0] && !av->reserved[1];
}

/* Each value that the mask names lies in its range. */
static bool values_valid(const struct vmri_qp *qp,
                         const struct vmri_qp_modify *arg)
{
    const struct {
        uint32_t attr;
        bool ok;
    } check[] = {
        { A(EN_SQD_ASYNC_NOTIFY), arg->en_sqd_async_notify <= 1 },
        { A(ACCESS_FLAGS), !(arg->access_flags & ~VMRI_ACCESS_QP) },
        { A(PKEY_INDEX), arg->pkey_index < VMRI_MAX_PKEYS },
        { A(PORT), arg->port == 1 },
        { A(AV), av_valid(qp, &arg->av) },
        { A(PATH_MTU), arg->path_mtu >= 1 && arg->path_mtu <= 5 },
        { A(TIMEOUT), arg->timeout < 32 },
        { A(RETRY_CNT), arg->retry_cnt < 8 },
        { A(RNR_RETRY), arg->rnr_retry < 8 },
        { A(RQ_PSN), !(arg->rq_psn >> 24) },
        { A(SQ_PSN), !(arg->sq_psn >> 24) },
        { A(MAX_QP_RD_ATOMIC), arg->max_rd_atomic <= VMRI_MAX_RD_ATOMIC },
        { A(MAX_DEST_RD_ATOMIC),
          arg->max_dest_rd_atomic <= VMRI_MAX_RD_ATOMIC },
        { A(MIN_RNR_TIMER), arg->min_rnr_timer < 32 },
        { A(DEST_QPN), !(arg->dest_qpn >> 24) },
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(check); i++ )
        if ( (arg->mask & check[i].attr) && !check[i].ok )
            return false;

    return !arg->reserved0 && !arg->reserved1;
}

/* Named by the caller, the current state must be right. */
static bool current_state_ok(unsigned int state,
                             const struct vmri_qp_modify *arg)
{
    return !(arg->mask & A(CUR_STATE)) || arg->cur_state == state;
}

/*
 * A queue that is being drained must have come to its end before anything but
 * an error or a reset may follow (IBTA 1.4, 10.3.1.5).
 */
static bool drained(const struct vmri_qp *qp, unsigned int from,
                    unsigned int to)
{
    return from != VMRI_QPS_SQD || !vmri_qp_sending(qp) ||
           to == VMRI_QPS_ERR || to == VMRI_QPS_RESET;
}

int vmri_qp_check_modify(const struct vmri_qp *qp,
                         const struct vmri_qp_modify *arg, unsigned int *state)
{
    unsigned int from = qp->attr.state;
    unsigned int to = arg->mask & A(STATE) ? arg->state : from;

    if ( to > VMRI_QPS_ERR || !current_state_ok(from, arg) ||
         !values_valid(qp, arg) || !transition_allowed(qp, from, to, arg->mask) ||
         !drained(qp, from, to) )
        return -EINVAL;

    *state = to;

    return 0;
}

void vmri_qp_apply(struct vmri_qp_modify *attr,
                   const struct vmri_qp_modify *arg)
{
#define APPLY(name, field)              \
    if ( arg->mask & A(name) )          \
        attr->field = arg->field

    APPLY(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
    APPLY(ACCESS_FLAGS, access_flags);
    APPLY(PKEY_INDEX, pkey_index);
    APPLY(PORT, port);
    APPLY(QKEY, qkey);
    APPLY(AV, av);
    APPLY(PATH_MTU, path_mtu);
    APPLY(TIMEOUT, timeout);
    APPLY(RETRY_CNT, retry_cnt);
    APPLY(RNR_RETRY, rnr_retry);
    APPLY(RQ_PSN, rq_psn);
    APPLY(MAX_QP_RD_ATOMIC, max_rd_atomic);
    APPLY(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    APPLY(MIN_RNR_TIMER, min_rnr_timer);
    APPLY(SQ_PSN, sq_psn);
    APPLY(DEST_QPN, dest_qpn);

#undef APPLY
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
