/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: which attributes a queue pair's transitions need and allow (IBTA 1.4,
 * 10.3.1 and 11.2.5.2), and which values.
 */
#include "internal.h"

#define A(name) VMRI_QPA_##name

/* Which kind of queue pair a row is for. */
#define FOR_RC      0x1
#define FOR_UD      0x2
#define FOR_MAD     0x4         /* SMI and GSI: as UD, the port is implied */

struct transition {
    uint8_t from;
    uint8_t to;
    uint8_t kinds;
    uint32_t required;
    uint32_t optional;          /* beside STATE and CUR_STATE */
};

static const struct transition transitions[] = {
    { VMRI_QPS_RESET, VMRI_QPS_INIT, FOR_RC,
      A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0 },
    { VMRI_QPS_RESET, VMRI_QPS_INIT, FOR_UD,
      A(PKEY_INDEX) | A(PORT) | A(QKEY), 0 },
    { VMRI_QPS_RESET, VMRI_QPS_INIT, FOR_MAD,
      A(PKEY_INDEX) | A(QKEY), A(PORT) },

    { VMRI_QPS_INIT, VMRI_QPS_INIT, FOR_RC,
      0, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS) },
    { VMRI_QPS_INIT, VMRI_QPS_INIT, FOR_UD | FOR_MAD,
      0, A(PKEY_INDEX) | A(PORT) | A(QKEY) },

    { VMRI_QPS_INIT, VMRI_QPS_RTR, FOR_RC,
      A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) | A(MAX_DEST_RD_ATOMIC) |
      A(MIN_RNR_TIMER),
      A(PKEY_INDEX) | A(ACCESS_FLAGS) },
    { VMRI_QPS_INIT, VMRI_QPS_RTR, FOR_UD | FOR_MAD,
      0, A(PKEY_INDEX) | A(QKEY) },

    { VMRI_QPS_RTR, VMRI_QPS_RTS, FOR_RC,
      A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(SQ_PSN) |
      A(MAX_QP_RD_ATOMIC),
      A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) },
    { VMRI_QPS_RTR, VMRI_QPS_RTS, FOR_UD | FOR_MAD, A(SQ_PSN), A(QKEY) },

    { VMRI_QPS_RTS, VMRI_QPS_RTS, FOR_RC,
      0, A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) },
    { VMRI_QPS_RTS, VMRI_QPS_RTS, FOR_UD | FOR_MAD, 0, A(QKEY) },

    { VMRI_QPS_RTS, VMRI_QPS_SQD, FOR_RC | FOR_UD | FOR_MAD,
      0, A(EN_SQD_ASYNC_NOTIFY) },

    { VMRI_QPS_SQD, VMRI_QPS_RTS, FOR_RC,
      0, A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) },
    { VMRI_QPS_SQD, VMRI_QPS_RTS, FOR_UD | FOR_MAD, 0, A(QKEY) },

    { VMRI_QPS_SQD, VMRI_QPS_SQD, FOR_RC,
      0, A(PORT) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) |
         A(MAX_QP_RD_ATOMIC) | A(MAX_DEST_RD_ATOMIC) | A(PKEY_INDEX) |
         A(ACCESS_FLAGS) | A(MIN_RNR_TIMER) },
    { VMRI_QPS_SQD, VMRI_QPS_SQD, FOR_UD | FOR_MAD,
      0, A(PKEY_INDEX) | A(QKEY) },

    { VMRI_QPS_SQE, VMRI_QPS_RTS, FOR_UD | FOR_MAD, 0, A(QKEY) },
};

static unsigned int kind_of(const struct vmri_qp *qp)
{
    switch ( qp->type )
    {
    case VMRI_QPT_RC:
        return FOR_RC;

    case VMRI_QPT_UD:
        return FOR_UD;

    default:
        return FOR_MAD;
    }
}

static bool transition_allowed(const struct vmri_qp *qp, unsigned int from,
                               unsigned int to, uint32_t mask)
{
    unsigned int i, kind = kind_of(qp);

    mask &= ~(A(STATE) | A(CUR_STATE));

    /* From any state, with nothing else. */
    if ( to == VMRI_QPS_RESET || to == VMRI_QPS_ERR )
        return !mask;

    for ( i = 0; i < ARRAY_SIZE(transitions); i++ )
    {
        const struct transition *t = &transitions[i];

        if ( t->from == from && t->to == to && (t->kinds & kind) )
            return (mask & t->required) == t->required &&
                   !(mask & ~(t->required | t->optional));
    }

    return false;
}

static bool av_valid(const struct vmri_av *av)
{
    return av->dlid && av->dlid <= VMRI_LID_MAX && av->sl < 16 &&
           !av->sgid_index && !(av->flags & ~VMRI_AV_GRH) &&
           !(av->flow_label >> 20) &&
           !av->reserved[0] && !av->reserved[1] && !av->reserved[2];
}

/* Each value that the mask names lies in its range. */
static bool values_valid(const struct vmri_qp_modify *arg)
{
    const struct {
        uint32_t attr;
        bool ok;
    } check[] = {
        { A(CUR_STATE), arg->cur_state <= VMRI_QPS_ERR },
        { A(ACCESS_FLAGS), !(arg->access_flags & ~VMRI_ACCESS_QP) },
        { A(PKEY_INDEX), !arg->pkey_index },
        { A(PORT), arg->port == 1 },
        { A(AV), av_valid(&arg->av) },
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

int vmri_qp_check_modify(const struct vmri_qp *qp,
                         const struct vmri_qp_modify *arg, unsigned int *state)
{
    unsigned int from = qp->attr.state;
    unsigned int to = arg->mask & A(STATE) ? arg->state : from;

    if ( to > VMRI_QPS_ERR || !current_state_ok(from, arg) ||
         !values_valid(arg) || !transition_allowed(qp, from, to, arg->mask) )
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
