/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a hostile guest does to its own device costs its neighbours nothing: of all
 * the locks that it takes, the messages of others need none.
 */
#include "pair.h"

/* An RC and a UD pair of honest guests, with an event for each completion. */
struct honest {
    struct pair rc;
    struct guest_qp *ua, *ub;
};

static struct honest honest_new(void)
{
    const struct guest_qp_opts ud = { .type = VMRI_QPT_UD };
    struct honest h = { .rc = pair_new(NULL, NULL) };

    h.ua = guest_qp(h.rc.a, &ud);
    h.ub = guest_qp(h.rc.b, &ud);
    qp_connect(h.ua, h.ub, NULL);
    return h;
}

static void complete(struct guest_cq *cq, uint64_t wr_id)
{
    cq_expect(cq, wr_id, 0);
    cq_arm(cq, VMRI_ARM_NEXT);
}

/* One of each that goes to the peer's memory, receives and events among them. */
static void exchange(struct honest *h)
{
    static const uint8_t opcodes[] = {
        VMRI_WR_SEND, VMRI_WR_RDMA_WRITE, VMRI_WR_RDMA_READ,
        VMRI_WR_RDMA_WRITE_WITH_IMM,
    };
    struct pair *p = &h->rc;
    struct guest_wr wr;
    struct vmri_sge sge;
    unsigned int i;

    for ( i = 0; i < sizeof(opcodes); i++ )
    {
        wr = pair_wr(p, opcodes[i], i, 0, 0, 9000);
        if ( takes_recv(opcodes[i]) )
            pair_recv(p, i, 0, 9000);
        pair_send(p, &wr);
        world_settle();
        complete(p->qa->scq, i);
        if ( takes_recv(opcodes[i]) )
            complete(p->qb->rcq, i);
    }

    sge = mr_sge(&p->mb, 0, 2000);
    qp_recv(h->ub, 9, &sge, 1);
    wr = (struct guest_wr){
        .wr_id = 9, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&p->ma, 0, 1000) },
        .to = h->ub,
    };
    qp_send(h->ua, &wr);
    world_settle();
    complete(h->ua->scq, 9);
    complete(h->ub->rcq, 9);
}

/* What it asks for again and again, granted or refused. */
static void ask_for_bad_frames(struct guest *g)
{
    struct guest_mr bad = mr_pages(g, 3 * PAGE_SIZE, 0, LAYOUT_SCATTERED);
    struct guest_mr good = guest_mr(g, 3 * PAGE_SIZE, 0, LAYOUT_SCATTERED,
                                    VMRI_ACCESS_LOCAL_WRITE);

    env_test_page_kind(g->domain, bad.gfn + 1, ENV_PAGE_TABLE);
    CHECK_EQ(try_mr(g, &bad, g->pd, VMRI_ACCESS_LOCAL_WRITE), -EPERM);
    CHECK_EQ(mr_deregister(&good), 0);
}

/* A ring whose indices and requests are nonsense; the queue pair dies of it. */
static void race_with_rings(struct guest *g)
{
    struct guest_qp *qa = guest_qp(g, NULL), *qb = guest_qp(g, NULL);
    const struct guest_wr wr = { .opcode = 0xff };

    qp_connect(qa, qb, NULL);
    qp_post_send(qa, &wr);
    guest_schedule(g, qa->qpn);
    CHECK_EQ(qp_state(qa), VMRI_QPS_ERR);
    qb->hdr->sq.prod = 0x80000000;
    guest_schedule(g, qb->qpn);
    CHECK_EQ(qp_state(qb), VMRI_QPS_ERR);
    CHECK_EQ(qp_destroy(qa), 0);
    CHECK_EQ(qp_destroy(qb), 0);
}

/* Messages to itself with an event for each, and doorbells for nothing. */
static void flood_events(struct guest *g)
{
    struct guest_qp *qa = guest_qp(g, NULL), *qb = guest_qp(g, NULL);
    struct guest_wr wr = { .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED };
    unsigned int i;

    qp_connect(qa, qb, NULL);
    for ( i = 0; i < 3; i++ )
    {
        cq_arm(qa->scq, VMRI_ARM_NEXT);
        cq_arm(qb->rcq, VMRI_ARM_NEXT);
        qp_recv(qb, i, NULL, 0);
        wr.wr_id = i;
        qp_send(qa, &wr);
        cq_expect(qa->scq, i, 0);
        cq_expect(qb->rcq, i, 0);
        guest_schedule(g, qb->qpn);
        guest_schedule(g, 0xabcdef);
        guest_serve(g);
    }
    /* The receiver is not ready: it parks, with a timer. */
    qp_send(qa, &wr);
    CHECK_EQ(qp_destroy(qa), 0);
    CHECK_EQ(qp_destroy(qb), 0);
}

TEST(neighbours_share_no_lock)
{
    static struct env_lock_set ours, theirs;
    struct honest h = honest_new();
    struct guest *g = guest_new(3);
    struct guest_qp *qp = guest_qp(g, NULL);
    const struct guest_wr wr = { .opcode = VMRI_WR_SEND };

    exchange(&h);
    env_test_note_locks(&ours);
    exchange(&h);
    env_test_note_locks(&theirs);
    ask_for_bad_frames(g);
    race_with_rings(g);
    flood_events(g);
    env_test_note_locks(NULL);
    CHECK(ours.nr && theirs.nr);
    CHECK_EQ(env_test_common_locks(&ours, &theirs), 0);

    /* That it would be seen: a neighbour who sends to them takes one of theirs. */
    qp_connect_again(qp, h.rc.qb, NULL);
    env_test_note_locks(&theirs);
    qp_send(qp, &wr);
    env_test_note_locks(NULL);
    CHECK(env_test_common_locks(&ours, &theirs) > 0);
}
