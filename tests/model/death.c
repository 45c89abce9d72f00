/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device that dom0 takes away, and a domain that dies, with all that there is
 * on it, while its peer has sent and waits.
 */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

/* As long as a message may have waited for a receive. */
#define RNR_LONGEST 400000ULL

void guest_begin(struct guest *g)
{
    struct vmri_dev_create arg = { .flags = 0 };

    g->dev = VMRI_DEV_ANY;
    g->lid = 0;
    CHECK_EQ(dom0_attach(env_domid(g->domain), GUEST_FABRIC, &g->dev, &g->lid),
             0);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_create, &arg, sizeof(arg)), 0);
    g->attr = arg.attr;
    tallies[env_domid(g->domain)] = (struct tally){ .hypercalls = 1 };
}

/* In the hypervisor. */
static void kill(struct side *s)
{
    struct domain *d = s->guest->domain;

    if ( rng_percent(&s->cell->rng, 50) )
    {
        CHECK_EQ(dom0_detach(env_domid(d), s->guest->dev), 0);
        return;
    }
    env_test_domain_dying(d);
    while ( vmri_domain_teardown(d) == -ERESTART )
        env_test_returned();
    env_test_returned();
    env_test_domain_reborn(d);
}

/* In the model: whatever there was. */
static void forget(struct side *s)
{
    unsigned int i, j;

    for ( i = 0; i < LINKS; i++ )
    {
        struct qp *q = &s->qp[i];

        env_store(&q->qpn, 0);
        q->attr.state = VMRI_QPS_RESET;
        q->sq.done = q->sq.prod;
        q->own.wq.done = q->own.wq.prod;
        q->sends.head = q->sends.tail;
        for ( j = 0; j < CQS; j++ )
            q->recvs[j].head = q->recvs[j].tail;
        q->due = 0;
        q->claimed = q->unrung = false;
        group_forget(q);
    }
    for ( i = 0; i < CQS; i++ )
        s->cq[i].handle = s->cq[i].wanted = 0;
    for ( i = 0; i < SRQS; i++ )
    {
        s->srq[i].handle = 0;
        s->srq[i].wq.done = s->srq[i].wq.prod;
    }
    for ( i = 0; i < SIDES * NAMED; i++ )
    {
        struct region *r = &s->region[i / NAMED][i % NAMED];

        r->key = r->old_key = 0;
        r->live = false;
        r->owner = NULL;
        r->of = NULL;
        r->users = 0;
    }
    s->port_due = 0;
    s->eq.cons = s->eq.hdr->prod;
    env_store(&s->eq.hdr->overflow, 0);
    memset(s->usage, 0, sizeof(s->usage));
    memset(s->types, 0, sizeof(s->types));
    memset(&s->counters, 0, sizeof(s->counters));
}

/* Who is left hears of it by its time-outs, or gives up. */
static void bereave(struct qp *q)
{
    oracle_run(q);
    if ( wq_posted(&q->sq) )
        qp_move(q, VMRI_QPS_ERR);
}

void death_round(struct qp *q)
{
    struct cell *c = q->side->cell;
    struct side *s = &c->side[1];
    unsigned int n, i;

    q = &c->side[0].qp[q->link];
    for ( n = rng_below(&c->rng, 5); n && q->attr.state == VMRI_QPS_RTS; n-- )
        send_one(q);
    settle(c);
    kill(s);
    forget(s);
    c->slack = RNR_LONGEST;
    for ( i = 0; i < LINKS; i++ )
        bereave(&c->side[0].qp[i]);
    for ( n = rng_below(&c->rng, 5); n && q->attr.state == VMRI_QPS_RTS; n-- )
        send_one(q);
    bereave(q);
    settle(c);
    c->slack = 0;

    guest_begin(s->guest);
    side_make(s);
    for ( i = 0; i < LINKS; i++ )
    {
        qp_unmake(&c->side[0].qp[i]);
        settle(c);
        link_make(&c->side[0].qp[i]);
    }
}
