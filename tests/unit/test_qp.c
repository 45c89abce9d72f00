/* SPDX-License-Identifier: GPL-2.0-only */
/* qp.c, qpstate.c: creation, and every transition with every attribute. */
#include "pair.h"
#include "internal.h"

#undef memcpy
#undef memset

#define A(name) VMRI_QPA_##name

/* ---- transitions: this test's own reading of IBTA 1.4, 11.2.5.2 ---- */

struct rule {
    uint8_t type, from, to;
    uint32_t required, optional;
};

#define R(type, from, to, required, optional)                               \
    { VMRI_QPT_##type, VMRI_QPS_##from, VMRI_QPS_##to, required, optional }

#define CONN    (A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN))
#define PATIENT (A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC))
#define RESP    (A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER))
#define INIT3   (A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS))
#define CUR_ACC (A(CUR_STATE) | A(ACCESS_FLAGS))
#define KEYS    (A(PKEY_INDEX) | A(QKEY))

static const struct rule rules[] = {
    R(RC, RESET, INIT, INIT3, 0),
    R(RC, INIT, INIT, 0, INIT3),
    R(RC, INIT, RTR, CONN | RESP, A(ACCESS_FLAGS) | A(PKEY_INDEX)),
    R(RC, RTR, RTS, PATIENT | A(SQ_PSN), CUR_ACC | A(MIN_RNR_TIMER)),
    R(RC, RTS, RTS, 0, CUR_ACC | A(MIN_RNR_TIMER)),
    R(RC, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY)),
    R(RC, SQD, RTS, 0, CUR_ACC | A(MIN_RNR_TIMER)),
    R(RC, SQD, SQD, 0, A(AV) | PATIENT | RESP | INIT3),

    R(UC, RESET, INIT, INIT3, 0),
    R(UC, INIT, INIT, 0, INIT3),
    R(UC, INIT, RTR, CONN, A(ACCESS_FLAGS) | A(PKEY_INDEX)),
    R(UC, RTR, RTS, A(SQ_PSN), CUR_ACC),
    R(UC, RTS, RTS, 0, CUR_ACC),
    R(UC, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY)),
    R(UC, SQD, RTS, 0, CUR_ACC),
    R(UC, SQD, SQD, 0, A(AV) | A(ACCESS_FLAGS) | A(PKEY_INDEX)),
    R(UC, SQE, RTS, 0, CUR_ACC),

    R(XRC_INI, RESET, INIT, INIT3, 0),
    R(XRC_INI, INIT, INIT, 0, INIT3),
    R(XRC_INI, INIT, RTR, CONN, A(ACCESS_FLAGS) | A(PKEY_INDEX)),
    R(XRC_INI, RTR, RTS, PATIENT | A(SQ_PSN), CUR_ACC),
    R(XRC_INI, RTS, RTS, 0, CUR_ACC),
    R(XRC_INI, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY)),
    R(XRC_INI, SQD, RTS, 0, CUR_ACC),
    R(XRC_INI, SQD, SQD, 0, A(AV) | PATIENT | INIT3),

    R(XRC_TGT, RESET, INIT, INIT3, 0),
    R(XRC_TGT, INIT, INIT, 0, INIT3),
    R(XRC_TGT, INIT, RTR, CONN | RESP, A(ACCESS_FLAGS) | A(PKEY_INDEX)),
    R(XRC_TGT, RTR, RTS, A(TIMEOUT) | A(SQ_PSN), CUR_ACC | A(MIN_RNR_TIMER)),
    R(XRC_TGT, RTS, RTS, 0, CUR_ACC | A(MIN_RNR_TIMER)),
    R(XRC_TGT, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY)),
    R(XRC_TGT, SQD, RTS, 0, CUR_ACC | A(MIN_RNR_TIMER)),
    R(XRC_TGT, SQD, SQD, 0, A(AV) | A(TIMEOUT) | RESP | INIT3),

    R(UD, RESET, INIT, KEYS | A(PORT), 0),
    R(UD, INIT, INIT, 0, KEYS | A(PORT)),
    R(UD, INIT, RTR, 0, KEYS),
    R(UD, RTR, RTS, A(SQ_PSN), A(CUR_STATE) | A(QKEY)),
    R(UD, RTS, RTS, 0, A(CUR_STATE) | A(QKEY)),
    R(UD, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY)),
    R(UD, SQD, RTS, 0, A(CUR_STATE) | A(QKEY)),
    R(UD, SQD, SQD, 0, KEYS),
    R(UD, SQE, RTS, 0, A(CUR_STATE) | A(QKEY)),

#define MAD(type)                                                           \
    R(type, RESET, INIT, KEYS, 0),                                          \
    R(type, INIT, INIT, 0, KEYS),                                           \
    R(type, INIT, RTR, 0, KEYS),                                            \
    R(type, RTR, RTS, A(SQ_PSN), A(CUR_STATE) | A(QKEY)),                   \
    R(type, RTS, RTS, 0, A(CUR_STATE) | A(QKEY)),                           \
    R(type, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY)),                           \
    R(type, SQD, RTS, 0, A(CUR_STATE) | A(QKEY)),                           \
    R(type, SQD, SQD, 0, KEYS),                                             \
    R(type, SQE, RTS, 0, A(CUR_STATE) | A(QKEY))
    MAD(SMI),
    MAD(GSI),
#undef MAD
};
#undef R

static const struct rule *find_rule(uint8_t type, unsigned int from,
                                    unsigned int to)
{
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(rules); i++ )
        if ( rules[i].type == type && rules[i].from == from &&
             rules[i].to == to )
            return &rules[i];
    return NULL;
}

static bool legal(uint8_t type, unsigned int from, unsigned int to,
                  uint32_t mask)
{
    const struct rule *r = find_rule(type, from, to);

    if ( to == VMRI_QPS_RESET || to == VMRI_QPS_ERR )
        return !mask;
    return r && (mask & r->required) == r->required &&
           !(mask & ~(r->required | r->optional));
}

/* Values that are right for each attribute. */
static void good_values(struct guest_qp *qp, struct vmri_qp_modify *arg)
{
    arg->access_flags = 7;
    arg->port = 1;
    arg->path_mtu = 3;
    arg->timeout = 5;
    arg->qkey = 3;
    arg->dest_qpn = 0x123456;
    arg->av.dlid = qp->guest->lid;
}

/* From RESET to a state, by the shortest legal way. */
static void walk_to(struct guest_qp *qp, unsigned int state)
{
    unsigned int s;

    qp_set_state(qp, VMRI_QPS_RESET);
    if ( state == VMRI_QPS_ERR )
        qp_set_state(qp, VMRI_QPS_ERR);
    else
        for ( s = VMRI_QPS_INIT; s <= state && s <= VMRI_QPS_RTS; s++ )
            qp_to(qp, qp, s, NULL);
    if ( state == VMRI_QPS_SQD )
        qp_set_state(qp, VMRI_QPS_SQD);
    if ( state == VMRI_QPS_SQE )
    {
        struct guest_wr bad = { .opcode = 99, .to = qp };
        struct vmri_cqe cqe;

        qp_send(qp, &bad);
        while ( cq_poll(qp->scq, &cqe) )
            ;
    }
    CHECK_EQ(qp_state(qp), state);
}

static void check_modify(struct guest_qp *qp, unsigned int from,
                         unsigned int to, uint32_t mask)
{
    uint8_t type = qp->arg.type;
    bool ok = legal(type, from, to, mask);
    struct vmri_qp_modify arg = {
        .mask = mask | A(STATE), .state = (uint8_t)to,
        .cur_state = (uint8_t)from,
    };

    good_values(qp, &arg);
    walk_to(qp, from);
    CHECK_AT(qp_modify(qp, &arg), ok ? 0 : -EINVAL,
             "type %u, %u to %u, mask %#x", type, from, to, mask);
    CHECK_EQ(qp_state(qp), ok ? to : from);
}

/* All masks near what a transition needs, and near what it may have. */
static void each_mask(uint8_t type, unsigned int from, unsigned int to,
                      void (*check)(void *, unsigned int, unsigned int, uint32_t),
                      void *data)
{
    const struct rule *r = find_rule(type, from, to);
    uint32_t base = r ? r->required : 0;
    unsigned int bit;

    check(data, from, to, base | (r ? r->optional : 0));
    check(data, from, to, base);
    for ( bit = 1; bit < 22; bit++ )
        check(data, from, to, base ^ (1U << bit));
    check(data, from, to, base | 1U << 31);
}

static void check_by_call(void *qp, unsigned int from, unsigned int to,
                          uint32_t mask)
{
    check_modify(qp, from, to, mask);
}

static void check_transitions(uint8_t type)
{
    struct guest_qp_opts opts = { .type = type, .kernel = type < VMRI_QPT_RC };
    struct guest_qp *qp = qp_prepare(guest_new(1), &opts);
    unsigned int from, to;

    qp->arg.type = type;
    CHECK_EQ(try_qp(qp), 0);
    for ( from = VMRI_QPS_RESET; from <= VMRI_QPS_ERR; from++ )
        for ( to = VMRI_QPS_RESET; to <= 7; to++ )
            if ( from != VMRI_QPS_SQE || type != VMRI_QPT_RC )
                each_mask(type, from, to, check_by_call, qp);
}

TEST(qp_transitions_rc) { check_transitions(VMRI_QPT_RC); }
TEST(qp_transitions_uc) { check_transitions(VMRI_QPT_UC); }
TEST(qp_transitions_ud) { check_transitions(VMRI_QPT_UD); }
TEST(qp_transitions_gsi) { check_transitions(VMRI_QPT_GSI); }
TEST(qp_transitions_smi) { check_transitions(VMRI_QPT_SMI); }

static void check_by_table(void *data, unsigned int from, unsigned int to,
                           uint32_t mask)
{
    struct vmri_qp *qp = data;
    struct vmri_qp_modify arg = {
        .mask = mask | A(STATE), .state = (uint8_t)to,
        .access_flags = 7, .port = 1, .path_mtu = 3, .av = { .dlid = 5 },
        .cur_state = (uint8_t)from,
    };
    unsigned int state = 99;
    bool ok = legal(qp->type, from, to, mask);

    qp->attr.state = (uint8_t)from;
    CHECK_AT(vmri_qp_check_modify(qp, &arg, &state), ok ? 0 : -EINVAL,
             "type %u, %u to %u, mask %#x", qp->type, from, to, mask);
    CHECK_EQ(state, ok ? to : 99);
}

/* The rows of types whose queues take more to create. */
TEST(qp_transitions_xrc)
{
    static const uint8_t types[] = { VMRI_QPT_XRC_INI, VMRI_QPT_XRC_TGT };
    struct vmri_dev *dev = calloc(1, sizeof(*dev));
    unsigned int i, from, to;

    for ( i = 0; i < ARRAY_SIZE(types); i++ )
        for ( from = VMRI_QPS_RESET; from <= VMRI_QPS_ERR; from++ )
            for ( to = VMRI_QPS_RESET; to <= 7; to++ )
            {
                struct vmri_qp qp = { .type = types[i], .dev = dev };

                each_mask(types[i], from, to, check_by_table, &qp);
            }
    free(dev);
}

TEST(qp_current_state_must_be_right)
{
    struct guest_qp *qp = guest_qp(guest_new(1), NULL);
    struct vmri_qp_modify arg;
    unsigned int cur;

    for ( cur = 0; cur < 9; cur++ )
    {
        walk_to(qp, VMRI_QPS_RTS);
        arg = (struct vmri_qp_modify){
            .mask = A(STATE) | A(CUR_STATE), .state = VMRI_QPS_RTS,
            .cur_state = (uint8_t)cur,
        };
        CHECK_AT(qp_modify(qp, &arg), cur == VMRI_QPS_RTS ? 0 : -EINVAL,
                 "cur %u", cur);
    }
}

/* ---- values ---- */

static const struct {
    unsigned int to;
    size_t at;
    unsigned int bytes;
    uint64_t bad;
} bad_values[] = {
#define BAD(to, field, bad)                                                 \
    { VMRI_QPS_##to, offsetof(struct vmri_qp_modify, field),                \
      sizeof(((struct vmri_qp_modify *)0)->field), bad }
    BAD(INIT, port, 0), BAD(INIT, port, 2), BAD(INIT, pkey_index, VMRI_MAX_PKEYS),
    BAD(INIT, access_flags, 0x10), BAD(INIT, access_flags, 0x80),
    BAD(INIT, reserved0, 1), BAD(INIT, reserved1, 1),
    BAD(RTR, path_mtu, 0), BAD(RTR, path_mtu, 6),
    BAD(RTR, min_rnr_timer, 32), BAD(RTR, rq_psn, 1 << 24),
    BAD(RTR, dest_qpn, 1 << 24), BAD(RTR, max_dest_rd_atomic, 255),
    BAD(RTR, av.dlid, 0), BAD(RTR, av.dlid, 0xc000), BAD(RTR, av.dlid, 0xffff),
    BAD(RTR, av.sl, 16), BAD(RTR, av.sgid_index, 1), BAD(RTR, av.flags, 2),
    BAD(RTR, av.flow_label, 1 << 20), BAD(RTR, av.reserved[1], 1),
    BAD(RTS, timeout, 32), BAD(RTS, retry_cnt, 8), BAD(RTS, rnr_retry, 8),
    BAD(RTS, sq_psn, 1 << 24), BAD(RTS, max_rd_atomic, 255),
#undef BAD
};

TEST(qp_values_out_of_range)
{
    struct guest_qp *qp = guest_qp(guest_new(1), NULL);
    struct vmri_qp_modify arg, before, after;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(bad_values); i++ )
    {
        walk_to(qp, bad_values[i].to - 1);
        CHECK_EQ(qp_query(qp, &before), 0);
        qp_attr(qp, qp, bad_values[i].to, NULL, &arg);
        memcpy((uint8_t *)&arg + bad_values[i].at, &bad_values[i].bad,
               bad_values[i].bytes);
        CHECK_AT(qp_modify(qp, &arg), -EINVAL, "case %u", i);
        /* Nothing has changed. */
        CHECK_EQ(qp_query(qp, &after), 0);
        CHECK_EQ(memcmp(&before, &after, sizeof(after)), 0);
    }
}

TEST(qp_query_tells_what_was_set)
{
    struct pair p = pair_apart(NULL);
    struct guest_conn conn = {
        .timeout = 9, .retry_cnt = 3, .rnr_retry = 2, .min_rnr_timer = 5,
        .access = VMRI_ACCESS_REMOTE_READ,
    };
    struct vmri_qp_modify arg;

    qp_connect(p.qa, p.qb, &conn);
    CHECK_EQ(qp_query(p.qa, &arg), 0);
    CHECK_EQ(arg.qpn, p.qa->qpn);
    CHECK_EQ(arg.state, VMRI_QPS_RTS);
    CHECK_EQ(arg.cur_state, VMRI_QPS_RTS);
    CHECK_EQ(arg.sq_draining, 0);
    CHECK_EQ(arg.timeout, 9);
    CHECK_EQ(arg.retry_cnt, 3);
    CHECK_EQ(arg.rnr_retry, 2);
    CHECK_EQ(arg.min_rnr_timer, 5);
    CHECK_EQ(arg.access_flags, VMRI_ACCESS_REMOTE_READ);
    CHECK_EQ(arg.port, 1);
    CHECK_EQ(arg.path_mtu, 5);
    CHECK_EQ(arg.dest_qpn, p.qb->qpn);
    CHECK_EQ(arg.av.dlid, p.b->lid);

    qp_set_state(p.qa, VMRI_QPS_RESET);
    CHECK_EQ(qp_query(p.qa, &arg), 0);
    CHECK_EQ(arg.state, VMRI_QPS_RESET);
    CHECK_EQ(arg.timeout + arg.retry_cnt + arg.rnr_retry + arg.dest_qpn, 0);
    arg.qpn = 0xabcdef;
    CHECK_EQ(guest_call(p.a, VMRI_OP_qp_query, &arg, sizeof(arg)), -ENOENT);
    CHECK_EQ(guest_call(p.a, VMRI_OP_qp_modify, &arg, sizeof(arg)), -ENOENT);
    CHECK_EQ(guest_schedule(p.a, 0xabcdef), -ENOENT);
}

/* ---- creation ---- */

struct bad_create {
    size_t at;
    unsigned int bytes;
    uint64_t value;
    int rc;
};

#define BAD(field, value, rc)                                               \
    { offsetof(struct vmri_qp_create, field),                               \
      sizeof(((struct vmri_qp_create *)0)->field), value, rc }

static const struct bad_create bad_creates[] = {
    BAD(pd, 0, -ENOENT), BAD(send_cq, 99, -ENOENT), BAD(recv_cq, 99, -ENOENT),
    BAD(eq, 99, -ENOENT), BAD(srq, 99, -EINVAL), BAD(xrcd, 1, -EINVAL),
    BAD(type, 8, -EOPNOTSUPP), BAD(type, VMRI_QPT_XRC_INI, -EINVAL),
    BAD(type, VMRI_QPT_XRC_TGT, -EINVAL),
    BAD(type, VMRI_QPT_SMI, -EINVAL), BAD(type, VMRI_QPT_GSI, -EINVAL),
    BAD(reserved0[0], 1, -EINVAL), BAD(reserved0[2], 1, -EINVAL),
    BAD(reserved1, 1, -EINVAL), BAD(twin, 1U << 31, -EOPNOTSUPP),
    BAD(flags, 2, -EINVAL), BAD(flags, 1U << 31, -EINVAL),
    BAD(qpn, 1, -EINVAL), BAD(qpn, 1 << 24, -EINVAL),
    BAD(frames.nr, 0, -EINVAL), BAD(frames.nr, 99, -EINVAL),
    BAD(frames.nr, ~0U, -EINVAL), BAD(frames.gfns, 0, -EFAULT),
    /* Over the header, over each other, off their stride, beyond all. */
    BAD(sq_offset, 0, -EINVAL), BAD(sq_offset, 128, -EINVAL),
    BAD(rq_offset, 0, -EINVAL), BAD(rq_offset, 256, -EINVAL),
    BAD(sq_offset, 260, -EINVAL), BAD(rq_offset, 4100, -EINVAL),
    BAD(sq_offset, 0xffffff00, -EINVAL), BAD(rq_offset, 0xffffff80, -EINVAL),
    BAD(ind_offset, 16, -EINVAL), BAD(ind_log2_entries, 4, -EINVAL),
    BAD(sq_log2_entries, 32, -EINVAL), BAD(sq_log2_entries, 255, -EINVAL),
    BAD(rq_log2_entries, 32, -EINVAL), BAD(sq_log2_stride, 5, -EINVAL),
    BAD(sq_log2_stride, 6, -EINVAL), BAD(sq_log2_stride, 13, -EINVAL),
    BAD(sq_log2_stride, 0, -EINVAL), BAD(sq_log2_stride, 255, -EINVAL),
    BAD(rq_log2_stride, 4, -EINVAL), BAD(rq_log2_stride, 5, -EINVAL),
    BAD(rq_log2_stride, 13, -EINVAL), BAD(rq_log2_stride, 0, -EINVAL),
    BAD(max_send_sge, 5, -EINVAL), BAD(max_send_sge, 33, -EINVAL),
    BAD(max_send_sge, 255, -EINVAL), BAD(max_recv_sge, 8, -EINVAL),
    BAD(max_recv_sge, 255, -EINVAL), BAD(max_inline, 65, -EINVAL),
    BAD(max_inline, 513, -EINVAL), BAD(max_inline, ~0U, -EINVAL),
};
#undef BAD

TEST(qp_bad_creations)
{
    struct guest *g = guest_new(1);
    struct guest_cq *cq = guest_cq(g, 6);
    struct guest_qp_opts opts = { .scq = cq };
    struct guest_qp *qp = qp_prepare(g, &opts);
    uint64_t list[8], before = env_stats.allocated;
    struct vmri_qp_create arg;
    unsigned int i;

    guest_frames(&qp->arg.frames, list, qp->gfn, qp->pages);
    env_test_expose(list, sizeof(list));
    for ( i = 0; i < ARRAY_SIZE(bad_creates); i++ )
    {
        arg = qp->arg;
        memcpy((uint8_t *)&arg + bad_creates[i].at, &bad_creates[i].value,
               bad_creates[i].bytes);
        CHECK_AT(guest_call(g, VMRI_OP_qp_create, &arg, sizeof(arg)),
                 bad_creates[i].rc, "case %u", i);
        CHECK_EQ(env_test_page_refs(g->domain, qp->gfn), 0);
        /* The table's first leaf may have come. */
        CHECK(env_stats.allocated <= before + PAGE_SIZE);
    }
    env_test_hide();
    CHECK_EQ(cq_destroy(cq), 0);
}

TEST(qp_numbers)
{
    struct guest *g = guest_new(1);
    struct guest_qp_opts opts = { .scq = guest_cq(g, 6) };
    struct guest_qp *qp;
    uint32_t qpn;

    qp = guest_qp(g, &opts);
    qpn = opts.qpn = qp->qpn;
    CHECK(qpn > 1 && qpn < 1U << 24);
    CHECK_EQ(try_qp(qp_prepare(g, &opts)), -EBUSY);
    CHECK_EQ(qp_destroy(qp), 0);
    CHECK_EQ(qp_destroy(qp), -ENOENT);
    qp = guest_qp(g, &opts);
    CHECK_EQ(qp->qpn, qpn);

    /* QP0 and QP1 are one each, and the kernel's. */
    opts.qpn = 0;
    opts.kernel = true;
    opts.type = VMRI_QPT_GSI;
    qp = guest_qp(g, &opts);
    CHECK_EQ(qp->qpn, 1);
    CHECK_EQ(try_qp(qp_prepare(g, &opts)), -EBUSY);
    CHECK_EQ(qp_destroy(qp), 0);
    CHECK_EQ(guest_qp(g, &opts)->qpn, 1);
    qp = qp_prepare(g, &opts);
    qp->arg.type = VMRI_QPT_SMI;
    CHECK_EQ(try_qp(qp), 0);
    CHECK_EQ(qp->qpn, 0);
}

/* Destroyed at once, a number is not given out again soon. */
TEST(qp_numbers_rest)
{
    struct guest *g = guest_new(1);
    struct guest_qp_opts opts = { .scq = guest_cq(g, 6) };
    uint32_t last = 0;
    unsigned int i;

    for ( i = 0; i < 100; i++ )
    {
        struct guest_qp *qp = guest_qp(g, &opts);

        CHECK(qp->qpn != last);
        last = qp->qpn;
        CHECK_EQ(qp_destroy(qp), 0);
    }
}

TEST(qp_keeps_what_it_uses)
{
    struct guest *g = guest_new(1);
    struct guest_qp_opts opts = { .scq = guest_cq(g, 6), .rcq = guest_cq(g, 6) };
    struct guest_qp *qp = guest_qp(g, &opts);
    struct vmri_object pd = { .handle = g->pd };

    CHECK_EQ(guest_call(g, VMRI_OP_pd_destroy, &pd, sizeof(pd)), -EBUSY);
    CHECK_EQ(cq_destroy(opts.scq), -EBUSY);
    CHECK_EQ(cq_destroy(opts.rcq), -EBUSY);
    CHECK_EQ(eq_destroy(g->eq[0]), -EBUSY);
    CHECK_EQ(qp_destroy(qp), 0);
    CHECK_EQ(cq_destroy(opts.scq), 0);
    CHECK_EQ(cq_destroy(opts.rcq), 0);
    CHECK_EQ(eq_destroy(g->eq[0]), 0);
    CHECK_EQ(guest_call(g, VMRI_OP_pd_destroy, &pd, sizeof(pd)), 0);
}

/* Queues that are not there: posts to them are impossible, the rest works. */
TEST(qp_with_one_queue)
{
    struct pair p = pair_apart(NULL);
    struct guest_qp *qs = qp_prepare(p.a, &(struct guest_qp_opts){ 0 });
    struct guest_qp *qr = qp_prepare(p.b, &(struct guest_qp_opts){ 0 });
    struct guest_wr wr;

    qs->arg.rq_log2_entries = qs->arg.rq_log2_stride = qs->arg.max_recv_sge = 0;
    qs->arg.rq_offset = 0;
    qs->pages = (uint32_t)PFN_UP(256UL + (16 << qs->arg.sq_log2_stride));
    qr->arg.sq_log2_entries = qr->arg.sq_log2_stride = qr->arg.max_send_sge = 0;
    qr->arg.sq_offset = 0;
    CHECK_EQ(try_qp(qs), 0);
    CHECK_EQ(try_qp(qr), 0);
    p.qa = qs;
    p.qb = qr;
    qp_connect(qs, qr, NULL);
    wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 100);
    pair_recv(&p, 2, 0, 100);
    pair_send(&p, &wr);
    cq_expect(qs->scq, 1, 0);
    cq_expect(qr->rcq, 2, 0);

    /* Who has no receive queue cannot be sent to. */
    CHECK_EQ(guest_schedule(p.b, qr->qpn), 0);
    p.qa = guest_qp(p.b, NULL);
    p.qb = guest_qp(p.a, NULL);
    CHECK_EQ(qp_destroy(qs), 0);
    CHECK_EQ(try_qp(qs), 0);
    qp_connect(p.qa, qs, NULL);
    wr.sge[0] = mr_sge(&p.mb, 0, 100);
    qp_send(p.qa, &wr);
    CHECK_EQ(cq_expect(p.qa->scq, 1, VMRI_WC_REM_INV_REQ_ERR).vendor_err,
             VMRI_VERR_NO_RECV);
    qp_set_state(qs, VMRI_QPS_ERR);
    qp_set_state(qr, VMRI_QPS_ERR);
    qp_set_state(qs, VMRI_QPS_RESET);
    qp_set_state(qr, VMRI_QPS_RESET);
}

/* ---- draining ---- */

TEST(qp_drain)
{
    struct pair p = pair_new(NULL, NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 10);
    struct vmri_qp_modify arg = {
        .mask = A(STATE) | A(EN_SQD_ASYNC_NOTIFY), .state = VMRI_QPS_SQD,
        .en_sqd_async_notify = 1,
    };

    /* One waits for a receive, one has not begun. */
    pair_send(&p, &wr);
    wr.wr_id = 2;
    pair_send(&p, &wr);
    CHECK_EQ(qp_modify(p.qa, &arg), 0);
    CHECK_EQ(qp_query(p.qa, &arg), 0);
    CHECK_EQ(arg.sq_draining, 1);
    world_settle();
    CHECK_EQ(p.a->events[VMRI_EVENT_SQ_DRAINED], 0);

    pair_recv(&p, 3, 0, 10);
    world_settle();
    cq_expect(p.qa->scq, 1, 0);
    CHECK_EQ(p.a->events[VMRI_EVENT_SQ_DRAINED], 1);
    CHECK_EQ(qp_query(p.qa, &arg), 0);
    CHECK_EQ(arg.sq_draining, 0);
    CHECK_EQ(arg.state, VMRI_QPS_SQD);

    pair_recv(&p, 4, 0, 10);
    guest_schedule(p.a, p.qa->qpn);
    cq_expect_none(p.qa->scq);
    qp_set_state(p.qa, VMRI_QPS_RTS);
    cq_expect(p.qa->scq, 2, 0);
    world_settle();
    CHECK_EQ(p.a->events[VMRI_EVENT_SQ_DRAINED], 1);
}

TEST(qp_communication_established_once)
{
    struct pair p = pair_apart(NULL);
    struct guest_wr wr = pair_wr(&p, VMRI_WR_SEND, 1, 0, 0, 10);

    qp_to(p.qa, p.qb, VMRI_QPS_INIT, NULL);
    qp_to(p.qb, p.qa, VMRI_QPS_INIT, NULL);
    qp_to(p.qb, p.qa, VMRI_QPS_RTR, NULL);
    qp_to(p.qa, p.qb, VMRI_QPS_RTR, NULL);
    qp_to(p.qa, p.qb, VMRI_QPS_RTS, NULL);
    pair_recv(&p, 1, 0, 10);
    pair_recv(&p, 2, 0, 10);
    pair_send(&p, &wr);
    pair_send(&p, &wr);
    world_settle();
    CHECK_EQ(p.b->events[VMRI_EVENT_COMM_EST], 1);
    cq_expect(p.qb->rcq, 1, 0);
    cq_expect(p.qb->rcq, 2, 0);
}
