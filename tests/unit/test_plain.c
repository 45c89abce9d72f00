/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plain messages: that they go the short way, and that what is remembered there
 * of peers and keys holds no longer than it may.
 */
#include "inside.h"
#include "pair.h"

#define BYTES   64

/* What the hypervisor knows of a queue pair; it outlives the use here. */
static struct vmri_qp *inside(struct guest_qp *q)
{
    struct vmri_dev *dev = vmri_dev_get(q->guest->domain, q->guest->dev);
    struct vmri_qp *qp = vmri_table_get(&dev->qps, q->qpn);

    vmri_table_put(&dev->qps, q->qpn);
    vmri_dev_put(dev);

    return qp;
}

static struct guest_wr plain_wr(const struct pair *p, unsigned int opcode)
{
    return pair_wr(p, opcode, 1, 0, 0, BYTES);
}

/* One message of this kind: the status that its request ends with. */
static uint8_t message(struct pair *p, const struct guest_wr *wr)
{
    struct vmri_cqe cqe;

    if ( takes_recv(wr->opcode) )
        pair_recv(p, 2, 0, BYTES);
    pair_send(p, wr);
    world_settle();
    CHECK(cq_poll(p->qa->scq, &cqe));
    if ( !cqe.status && takes_recv(wr->opcode) )
        cq_expect(p->qb->rcq, 2, VMRI_WC_SUCCESS);

    return cqe.status;
}

/* A message whose bytes must be there afterwards. */
static void goes_through(struct pair *p, const struct guest_wr *wr,
                         const uint8_t *to)
{
    static uint32_t seed;

    fill_pattern(p->ma.mem, BYTES, ++seed);
    CHECK_EQ(message(p, wr), VMRI_WC_SUCCESS);
    CHECK_EQ(match_pattern(to, BYTES, seed, 0), BYTES);
}

/* A pair that remembers all that it can. */
static struct pair warm(unsigned int opcode)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = plain_wr(&p, opcode);
    struct vmri_qp *qp = inside(p.qa);

    CHECK(!qp->route.dev);
    goes_through(&p, &wr, p.mb.mem);
    CHECK(qp->route.dev && !qp->xlat.slot);
    goes_through(&p, &wr, p.mb.mem);
    CHECK(qp->route.xlat.slot && qp->xlat.slot);
    goes_through(&p, &wr, p.mb.mem);

    return p;
}

TEST(plain_each_kind)
{
    struct pair p = warm(VMRI_WR_SEND);
    struct guest_wr wr = plain_wr(&p, VMRI_WR_SEND);
    struct vmri_counters a, b;
    struct vmri_cqe cqe;

    guest_counters(p.a, &a);
    pair_recv(&p, 3, 100, BYTES);
    wr.flags |= VMRI_SEND_SOLICITED;
    wr.opcode = VMRI_WR_SEND_WITH_IMM;
    pair_send(&p, &wr);
    cqe = cq_expect(p.qb->rcq, 3, VMRI_WC_SUCCESS);
    CHECK_EQ(cqe.opcode, VMRI_WC_OP_RECV);
    CHECK_EQ(cqe.byte_len, BYTES);
    CHECK_EQ(cqe.imm, wr.imm);
    CHECK_EQ(cqe.flags, VMRI_WC_WITH_IMM | VMRI_WC_SOLICITED);
    CHECK_EQ(cqe.qpn, p.qb->qpn);
    CHECK_EQ(cqe.vendor_err, 0);
    cqe = cq_expect(p.qa->scq, 1, VMRI_WC_SUCCESS);
    CHECK_EQ(cqe.opcode, VMRI_WC_OP_SEND);

    wr = plain_wr(&p, VMRI_WR_RDMA_WRITE);
    pair_send(&p, &wr);
    cqe = cq_expect(p.qa->scq, 1, VMRI_WC_SUCCESS);
    CHECK_EQ(cqe.opcode, VMRI_WC_OP_RDMA_WRITE);
    wr.flags = 0;
    pair_send(&p, &wr);
    cq_expect_none(p.qa->scq);

    guest_counters(p.a, &b);
    CHECK_EQ(b.tx_msgs - a.tx_msgs, 3);
    CHECK_EQ(b.tx_bytes - a.tx_bytes, 3 * BYTES);
    CHECK_EQ(b.completions - a.completions, 2);
}

TEST(plain_other_keys)
{
    struct pair p = warm(VMRI_WR_RDMA_WRITE);
    struct guest_wr wr = plain_wr(&p, VMRI_WR_RDMA_WRITE);
    struct guest_mr more = guest_mr(p.b, 4096, 10, LAYOUT_RUN,
                                    VMRI_ACCESS_LOCAL_WRITE |
                                    VMRI_ACCESS_REMOTE_WRITE);

    wr.rkey = more.key;
    wr.remote_addr = more.iova;
    goes_through(&p, &wr, more.mem);
    goes_through(&p, &wr, more.mem);
    wr = plain_wr(&p, VMRI_WR_RDMA_WRITE);
    wr.remote_addr += 20000;
    goes_through(&p, &wr, p.mb.mem + 20000);
    wr.remote_addr -= 10000;
    goes_through(&p, &wr, p.mb.mem + 10000);

    /* Gone, and another that may have its number or its place in memory. */
    wr.rkey = more.key;
    wr.remote_addr = more.iova;
    goes_through(&p, &wr, more.mem);
    CHECK_EQ(mr_deregister(&more), 0);
    CHECK_EQ(try_mr(p.b, &more, p.b->pd, VMRI_ACCESS_LOCAL_WRITE), 0);
    CHECK_EQ(message(&p, &wr), VMRI_WC_REM_ACCESS_ERR);
}

/* The last byte of what is remembered, and the one behind. */
TEST(plain_ends_where_the_memory_ends)
{
    struct pair p = warm(VMRI_WR_RDMA_WRITE);
    struct guest_wr wr = plain_wr(&p, VMRI_WR_RDMA_WRITE);

    wr.remote_addr = p.mb.iova + PAIR_BYTES - BYTES;
    goes_through(&p, &wr, p.mb.mem + PAIR_BYTES - BYTES);
    goes_through(&p, &wr, p.mb.mem + PAIR_BYTES - BYTES);
    wr.remote_addr++;
    CHECK_EQ(message(&p, &wr), VMRI_WC_REM_ACCESS_ERR);
}

static long rights_of(struct guest_mr *m, uint32_t access)
{
    struct vmri_mr_reregister arg = {
        .old_key = m->key, .flags = VMRI_REREG_ACCESS,
        .mr = { .access = access },
    };

    return guest_call(m->guest, VMRI_OP_mr_reregister, &arg, sizeof(arg));
}

/* The same key grants less. */
TEST(plain_rights_of_a_key)
{
    struct pair p = warm(VMRI_WR_RDMA_WRITE);
    struct guest_wr wr = plain_wr(&p, VMRI_WR_RDMA_WRITE);

    CHECK_EQ(rights_of(&p.mb, VMRI_ACCESS_LOCAL_WRITE |
                              VMRI_ACCESS_REMOTE_READ), 0);
    CHECK_EQ(message(&p, &wr), VMRI_WC_REM_ACCESS_ERR);
}

/* The peer allows less. */
TEST(plain_rights_of_the_peer)
{
    struct pair p = warm(VMRI_WR_RDMA_WRITE);
    struct guest_wr wr = plain_wr(&p, VMRI_WR_SEND);
    struct vmri_qp_modify arg = {
        .mask = VMRI_QPA_ACCESS_FLAGS,
        .access_flags = VMRI_ACCESS_REMOTE_READ,
    };

    CHECK_EQ(qp_modify(p.qb, &arg), 0);
    goes_through(&p, &wr, p.mb.mem);
    CHECK(inside(p.qa)->route.dev);
    wr = plain_wr(&p, VMRI_WR_RDMA_WRITE);
    CHECK_EQ(message(&p, &wr), VMRI_WC_REM_INV_REQ_ERR);
}

static void port(struct guest *g, struct vmri_ctl_port arg)
{
    arg.domid = env_domid(g->domain);
    arg.dev_id = g->dev;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &arg, sizeof(arg)), 0);
}

/* Nobody answers any more, for whichever reason; then the peer does again. */
static void check_silence(const struct vmri_ctl_port *off,
                          const struct vmri_ctl_port *on, bool ours)
{
    struct pair p = warm(VMRI_WR_SEND);
    struct guest_wr wr = plain_wr(&p, VMRI_WR_SEND);

    port(ours ? p.a : p.b, *off);
    pair_recv(&p, 2, 0, BYTES);
    pair_send(&p, &wr);
    cq_expect_none(p.qa->scq);
    cq_expect_none(p.qb->rcq);
    port(ours ? p.a : p.b, *on);
    world_pass(2000000000ULL, 10000000);
    cq_expect(p.qa->scq, 1, VMRI_WC_SUCCESS);
    cq_expect(p.qb->rcq, 2, VMRI_WC_SUCCESS);
}

TEST(plain_port_goes_down)
{
    const struct vmri_ctl_port off = { .mask = VMRI_PORTA_STATE, .state = 1 };
    const struct vmri_ctl_port on = { .mask = VMRI_PORTA_STATE, .state = 4 };

    check_silence(&off, &on, false);
}

TEST(plain_own_port_goes_down)
{
    const struct vmri_ctl_port off = { .mask = VMRI_PORTA_STATE, .state = 1 };
    const struct vmri_ctl_port on = { .mask = VMRI_PORTA_STATE, .state = 4 };

    check_silence(&off, &on, true);
}

TEST(plain_partition_is_left)
{
    const struct vmri_ctl_port off = { .mask = VMRI_PORTA_PKEY,
                                       .pkeys = { 0x8123 } };
    const struct vmri_ctl_port on = { .mask = VMRI_PORTA_PKEY,
                                      .pkeys = { 0xffff } };

    check_silence(&off, &on, false);
}

/* The peer is connected to another, and is back. */
TEST(plain_peer_turns_away)
{
    struct pair p = warm(VMRI_WR_RDMA_WRITE);
    struct guest_wr wr = plain_wr(&p, VMRI_WR_RDMA_WRITE);
    struct guest_qp *third = guest_qp(p.a, NULL);

    qp_set_state(p.qb, VMRI_QPS_RESET);
    qp_connect_again(p.qb, third, NULL);
    memset(p.mb.mem, 0, BYTES);
    fill_pattern(p.ma.mem, BYTES, 99);
    pair_send(&p, &wr);
    cq_expect_none(p.qa->scq);
    CHECK(all_bytes(p.mb.mem, BYTES, 0));

    qp_set_state(p.qb, VMRI_QPS_RESET);
    qp_connect_again(p.qb, p.qa, NULL);
    world_settle();
    cq_expect(p.qa->scq, 1, VMRI_WC_SUCCESS);
    CHECK_EQ(match_pattern(p.mb.mem, BYTES, 99, 0), BYTES);
}

/* Another queue pair has the number of the one that went. */
TEST(plain_peer_goes)
{
    struct pair p = warm(VMRI_WR_RDMA_WRITE);
    struct guest_wr wr = plain_wr(&p, VMRI_WR_RDMA_WRITE);
    const struct guest_qp_opts opts = { .qpn = p.qb->qpn };

    CHECK_EQ(qp_destroy(p.qb), 0);
    p.qb = guest_qp(p.b, &opts);
    pair_send(&p, &wr);
    cq_expect_none(p.qa->scq);
    qp_to(p.qb, p.qa, VMRI_QPS_INIT, NULL);
    qp_to(p.qb, p.qa, VMRI_QPS_RTR, NULL);
    world_settle();
    cq_expect(p.qa->scq, 1, VMRI_WC_SUCCESS);
}

/* The receiver's CQ is full: both fail, as the long way has it. */
TEST(plain_receiver_cannot_be_told)
{
    struct guest_qp_opts opts = { .rcq = NULL };
    struct pair p = pair_apart(NULL);
    struct guest_wr wr = plain_wr(&p, VMRI_WR_SEND);
    struct vmri_cqe cqe;
    unsigned int i;

    opts.rcq = guest_cq(p.b, 2);
    p.qb = guest_qp(p.b, &opts);
    qp_connect(p.qa, p.qb, NULL);
    for ( i = 0; i < 4; i++ )
    {
        pair_recv(&p, i, 0, BYTES);
        pair_send(&p, &wr);
        cq_expect(p.qa->scq, 1, VMRI_WC_SUCCESS);
    }
    CHECK(inside(p.qa)->route.xlat.slot);
    pair_recv(&p, i, 0, BYTES);
    pair_send(&p, &wr);
    cqe = cq_expect(p.qa->scq, 1, VMRI_WC_REM_OP_ERR);
    CHECK_EQ(cqe.vendor_err, VMRI_VERR_RING);
    CHECK_EQ(qp_state(p.qa), VMRI_QPS_ERR);
    CHECK_EQ(qp_state(p.qb), VMRI_QPS_ERR);
    world_settle();
    CHECK(p.b->events[VMRI_EVENT_CQ_ERR]);
    CHECK(p.b->events[VMRI_EVENT_QP_FATAL]);
}
