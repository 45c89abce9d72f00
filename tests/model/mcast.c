/* SPDX-License-Identifier: GPL-2.0-only */
/* Multicast: each cell has a group of which its datagram queue pairs may be. */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

void group_mgid(const struct cell *c, uint8_t mgid[16])
{
    memset(mgid, 0, 16);
    mgid[0] = 0xff;
    mgid[1] = 0x12;
    mgid[15] = (uint8_t)c->number;
}

/* Every device pays for its membership, once for both sides. */
static void count_members(struct cell *c)
{
    bool same = c->side[0].guest == c->side[1].guest;
    unsigned int i, n[SIDES] = { 0 };

    for ( i = 0; i < c->nr_attached; i++ )
        n[c->attached[i]->side->index]++;
    for ( i = 0; i < SIDES; i++ )
    {
        c->side[i].usage[VMRI_RES_MCG_QP] = n[i];
        c->side[i].usage[VMRI_RES_MCG] = n[i] != 0;
    }
    if ( same && n[0] && n[1] )
        c->side[1].usage[VMRI_RES_MCG] = 0;
}

static int place_of(const struct cell *c, const struct qp *q)
{
    unsigned int i;

    for ( i = 0; i < c->nr_attached; i++ )
        if ( c->attached[i] == q )
            return (int)i;
    return -1;
}

void group_forget(struct qp *q)
{
    struct cell *c = q->side->cell;
    int i = place_of(c, q);

    if ( i < 0 )
        return;
    for ( c->nr_attached--; (unsigned int)i < c->nr_attached; i++ )
        c->attached[i] = c->attached[i + 1];
    count_members(c);
}

static long call(struct qp *q, unsigned int cmd)
{
    struct vmri_mcg_qp arg = {
        .mlid = group_mlid(q->side->cell), .qpn = q->qpn,
    };

    group_mgid(q->side->cell, arg.mgid);
    return side_call(q->side, cmd, &arg, sizeof(arg));
}

static void join_or_leave(struct qp *q)
{
    struct cell *c = q->side->cell;

    if ( place_of(c, q) >= 0 )
    {
        CHECK_EQ(call(q, VMRI_OP_mcg_attach), -EEXIST);
        CHECK_EQ(call(q, VMRI_OP_mcg_detach), 0);
        group_forget(q);
        return;
    }
    CHECK_EQ(call(q, VMRI_OP_mcg_detach), -ENOENT);
    CHECK_EQ(call(q, VMRI_OP_mcg_attach), 0);
    c->attached[c->nr_attached++] = q;
    count_members(c);
}

static void send_to_group(struct qp *q)
{
    struct cell *c = q->side->cell;
    struct send s;

    make_send(q, rng_percent(&c->rng, 50) ? VMRI_WR_SEND
                                          : VMRI_WR_SEND_WITH_IMM, 2000, &s);
    s.wqe.u.ud.av.flags = VMRI_AV_GRH;
    s.wqe.u.ud.av.dlid = group_mlid(c);
    group_mgid(c, s.wqe.u.ud.av.dgid);
    s.wqe.u.ud.remote_qpn = VMRI_QPN_MULTICAST;
    post_send(q, &s);
    if ( rng_percent(&c->rng, 50) )
        ring(q);
}

/* One sender alone: so everybody gets the same in the same order. */
void group_round(struct qp *q)
{
    struct cell *c = q->side->cell;
    unsigned int i, n;

    if ( !qp_is_datagram(q) || q->attr.state != VMRI_QPS_RTS )
        return;
    settle(c);
    for ( i = 0; i < SIDES * LINKS; i++ )
    {
        struct qp *to = &c->side[i / LINKS].qp[i % LINKS];

        if ( !qp_is_datagram(to) )
            continue;
        if ( rng_percent(&c->rng, 40) )
            join_or_leave(to);
        for ( n = rng_below(&c->rng, 6); n && may_receive(to); n-- )
            recv_one(to, 0);
    }
    for ( n = 1 + rng_below(&c->rng, 5); n && wq_room(&q->sq); n-- )
        send_to_group(q);
    settle(c);
}
