/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: queue pairs that are connected to other hosts, or were: their twins go
 * first.
 *
 * A command that the twin has to follow is given twice: the first one asks it to,
 * the second finds that it has.  What was asked for is kept in between, so that it
 * is that, and nothing else, which the guest's queue pair becomes.
 */
#include "internal.h"

#define A(name) VMRI_QPA_##name

/* All that leads to RTR. */
#define RTR_MASK    (A(STATE) | A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS) | \
                     A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN))
#define RTR_RC_MASK (A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER))
/* What names a state, and nothing that the twin has. */
#define STATE_MASK  (A(STATE) | A(CUR_STATE) | A(EN_SQD_ASYNC_NOTIFY))
#define ACCESS_MASK (VMRI_ACCESS_REMOTE_WRITE | VMRI_ACCESS_REMOTE_READ | \
                     VMRI_ACCESS_REMOTE_ATOMIC)

/*
 * Does the twin have to follow into state `to`, and may it?  1, 0 or an error.
 * `from` and `remote` are the queue pair's, host_gid the new peer's.
 */
static int follows(unsigned int from, unsigned int to, bool remote,
                   const struct vmri_qp_modify *arg, const uint8_t *host_gid)
{
    const bool attributes = arg->mask & ~STATE_MASK;

    if ( host_gid && to != VMRI_QPS_RTR )
        return -EOPNOTSUPP;
    if ( host_gid || to == VMRI_QPS_RESET )
        return 1;
    if ( !remote )
        return 0;

    switch ( to )
    {
    case VMRI_QPS_RTS:
        return from == VMRI_QPS_RTR || attributes;

    case VMRI_QPS_SQD:
        return attributes ? -EOPNOTSUPP : 0;

    default:
        return 0;
    }
}

static bool within(const struct vmri_uplink_caps *caps,
                   const struct vmri_qp_modify *arg)
{
    return !((arg->mask & A(MAX_QP_RD_ATOMIC)) &&
             arg->max_rd_atomic > caps->max_rd_atomic) &&
           !((arg->mask & A(MAX_DEST_RD_ATOMIC)) &&
             arg->max_dest_rd_atomic > caps->max_rd_atomic);
}

/* What the uplink is told, of a queue pair that has these attributes now. */
static struct vmri_qp_modify order(const struct vmri_qp *qp,
                                   const struct vmri_qp_modify *now,
                                   const struct vmri_qp_modify *arg,
                                   unsigned int to)
{
    struct vmri_qp_modify next = *now;

    vmri_qp_apply(&next, arg);
    next.qpn = qp->qpn;
    next.state = to;
    next.mask = to == VMRI_QPS_RTR
                ? RTR_MASK | (qp->type == VMRI_QPT_RC ? RTR_RC_MASK : 0)
                : (arg->mask & ~STATE_MASK) | A(STATE);
    next.access_flags &= ACCESS_MASK;
    next.path_mtu = min(next.path_mtu, qp->dev->caps.mtu);
    next.av.dlid = 0;
    memcpy(next.av.dgid, qp->carry->host_gid, sizeof(next.av.dgid));

    return next;
}

/* By uplink->lock. */
static bool is_settled(const struct vmri_carry *c,
                       const struct vmri_qp_modify *arg,
                       const uint8_t *host_gid)
{
    return c->settling == VMRI_SETTLED &&
           !memcmp(&c->asked, arg, sizeof(*arg)) &&
           (!host_gid || !memcmp(c->host_gid, host_gid, sizeof(c->host_gid)));
}

static int settle(struct vmri_qp *qp, const struct vmri_qp_modify *now,
                  const struct vmri_qp_modify *arg, unsigned int to,
                  const uint8_t *host_gid)
{
    struct vmri_double *t = vmri_twin_of(qp);
    struct vmri_carry *c = qp->carry;
    struct vmri_qp_modify next;

    if ( is_settled(c, arg, host_gid) )
    {
        c->settling = VMRI_SETTLED_NONE;
        return 0;
    }
    if ( !t )
        return to == VMRI_QPS_RESET ? 0 : -EHOSTUNREACH;
    if ( c->settling == VMRI_SETTLING )
        return -EBUSY;
    if ( to == VMRI_QPS_RESET && t->state == VMRI_QPS_RESET )
        return 0;

    if ( host_gid )
        memcpy(c->host_gid, host_gid, sizeof(c->host_gid));
    next = order(qp, now, arg, to);
    c->asked = *arg;
    c->settling = VMRI_SETTLING;
    vmri_twin_move(qp->dev->uplink, t, &next);

    return -EINPROGRESS;
}

int vmri_carry_settle(struct vmri_qp *qp, const struct vmri_qp_modify *arg,
                      const uint8_t *host_gid)
{
    struct vmri_uplink *u = qp->dev->uplink;
    struct vmri_qp_modify now;
    unsigned int to = 0;
    bool remote;
    int ret;

    env_lock(&qp->lock);
    ret = vmri_qp_check_modify(qp, arg, &to);
    now = qp->attr;
    remote = qp->carry->remote;
    env_unlock(&qp->lock);

    if ( !ret )
        ret = follows(now.state, to, remote, arg, host_gid);
    if ( ret > 0 )
        ret = within(&qp->dev->caps, arg) ? 1 : -EINVAL;
    /* The peer is here after all, whatever was asked of the twin before. */
    if ( !ret && to == VMRI_QPS_RTR )
        vmri_carry_error(qp);
    if ( ret <= 0 )
        return ret;

    env_lock(&u->lock);
    ret = settle(qp, &now, arg, to, host_gid);
    env_unlock(&u->lock);

    return ret;
}

/*
 * No device of this host has LID 0: whatever has the peer's here some day, it is
 * none of this queue pair's.
 */
void vmri_carry_turn(struct vmri_qp *qp, bool remote)
{
    struct vmri_carry *c = qp->carry;

    c->remote = remote;
    c->paid = 0;
    if ( remote )
    {
        c->dlid = qp->attr.av.dlid;
        qp->attr.av.dlid = 0;
        if ( qp->rq.hdr )
            env_store(&qp->rq.hdr->wait, 1);
    }
    vmri_park_home(qp, remote ? VMRI_PARK_UPLINK : VMRI_PARK_NONE);
}

void vmri_carry_error(struct vmri_qp *qp)
{
    struct vmri_uplink *u = qp->dev->uplink;
    struct vmri_double *t;

    env_lock(&u->lock);
    t = vmri_twin_of(qp);
    if ( t )
    {
        if ( qp->carry->settling == VMRI_SETTLED )
            qp->carry->settling = VMRI_SETTLED_NONE;
        vmri_twin_stop(u, t);
    }
    env_unlock(&u->lock);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
