/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands of guests as an honest driver gives them, but for what the input
 * spoils: so a fuzzer gets through the checks, and to each of them.
 */
#include "fuzz.h"

/* Of a queue pair: short rings share one page, long ones need several. */
#define SHORT_LOG2      3
#define LONG_LOG2       6
#define SEND_STRIDE     7       /* 4 entries, or 64 bytes inline */
#define RECV_STRIDE     6       /* 3 entries */
#define IND_LOG2        4

void spoil(struct input *in, void *arg, size_t size)
{
    uint8_t *p = arg;
    unsigned int n;

    if ( !in || !take_rare(in, 3) )
        return;
    for ( n = 1 + take_of(in, 3); n; n-- )
        p[take8(in) % size] = take8(in);
}

/* The page of a slot's ring; rarely that of any other. */
static uint32_t ring_page(enum kind kind, unsigned int slot, struct input *in)
{
    static const uint8_t first[KINDS] = {
        [EQ] = 0, [CQ] = SLOTS, [SRQ] = 2 * SLOTS, [QP] = 3 * SLOTS,
    };

    return in && take_rare(in, 8) ? take_of(in, PAGES) : first[kind] + slot;
}

uint32_t use(const struct actor *a, enum kind kind, struct input *in)
{
    uint8_t choice = in ? take8(in) : 0;

    if ( choice == 0xff )
        return (uint32_t)take_number(in);
    return a->object[kind][choice % 16 < SLOTS ? choice % 16 : 0].handle;
}

long made(struct object *o, long rc, uint32_t handle, uint32_t page)
{
    if ( !rc )
        *o = (struct object){ .handle = handle, .page = page };
    return rc;
}

static long make_plain(struct actor *a, unsigned int cmd, enum kind kind,
                       unsigned int slot)
{
    struct vmri_object arg = { .handle = 0 };
    long rc = actor_call(a, cmd, &arg, sizeof(arg));

    return made(&a->object[kind][slot], rc, arg.handle, 0);
}

long make_pd(struct actor *a, unsigned int slot)
{
    return make_plain(a, VMRI_OP_pd_create, PD, slot);
}

long make_xrcd(struct actor *a, unsigned int slot)
{
    return make_plain(a, VMRI_OP_xrcd_create, XRCD, slot);
}

/* Pages of a ring of 2^log2 entries behind its header. */
static uint32_t ring_pages(unsigned int log2, size_t entry)
{
    return (uint32_t)PFN_UP(VMRI_RING_OFFSET + (entry << log2));
}

long make_eq(struct actor *a, unsigned int slot, struct input *in)
{
    struct object *o = &a->object[EQ][slot];
    uint32_t page = ring_page(EQ, slot, in);
    struct vmri_eq_create arg = {
        .frames = actor_list(a, page, 1), .log2_entries = 4,
        .flags = in && take_rare(in, 2) ? VMRI_EQF_PORT : 0,
    };
    long rc;

    spoil(in, &arg, sizeof(arg));
    rc = actor_call(a, VMRI_OP_eq_create, &arg, sizeof(arg));
    made(o, rc, arg.handle, page);
    if ( !rc )
        o->log2_entries = arg.log2_entries;
    return rc;
}

long make_cq(struct actor *a, unsigned int slot, struct input *in)
{
    uint32_t page = ring_page(CQ, slot, in);
    uint8_t log2 = in && take_rare(in, 4) ? take_of(in, 12) : 5;
    struct vmri_cq_create arg = {
        .frames = actor_list(a, page,
                             ring_pages(log2, sizeof(struct vmri_cqe))),
        .log2_entries = log2, .eq = use(a, EQ, in),
    };
    long rc;

    spoil(in, &arg, sizeof(arg));
    rc = actor_call(a, VMRI_OP_cq_create, &arg, sizeof(arg));
    return made(&a->object[CQ][slot], rc, arg.handle, page);
}

long resize_cq(struct actor *a, unsigned int slot, struct input *in)
{
    struct object *o = &a->object[CQ][slot];
    uint32_t page = take_of(in, PAGES);
    uint8_t log2 = take_of(in, 8);
    struct vmri_cq_resize arg = {
        .frames = actor_list(a, page,
                             ring_pages(log2, sizeof(struct vmri_cqe))),
        .handle = o->handle, .log2_entries = log2,
    };
    long rc;

    spoil(in, &arg, sizeof(arg));
    rc = actor_call(a, VMRI_OP_cq_resize, &arg, sizeof(arg));
    if ( !rc && arg.handle == o->handle )
        o->page = page;
    return rc;
}

long make_srq(struct actor *a, unsigned int slot, bool xrc, struct input *in)
{
    struct object *o = &a->object[SRQ][slot];
    uint32_t page = ring_page(SRQ, slot, in);
    bool kernel = in && take_rare(in, 4);
    struct vmri_srq_create arg = {
        .frames = actor_list(a, page, 1),
        .pd = use(a, PD, in), .eq = use(a, EQ, in),
        .xrcd = xrc ? use(a, XRCD, in) : 0, .cq = xrc ? use(a, CQ, in) : 0,
        .flags = kernel ? VMRI_QPF_KERNEL : 0,
        .limit = in ? take_of(in, 8) : 0,
        .offset = 256, .log2_entries = SHORT_LOG2,
        .log2_stride = RECV_STRIDE, .max_sge = 3,
        .ind_offset = kernel ? 1024 : 0,
        .ind_log2_entries = kernel ? IND_LOG2 : 0,
    };
    long rc;

    spoil(in, &arg, sizeof(arg));
    rc = actor_call(a, VMRI_OP_srq_create, &arg, sizeof(arg));
    a->trusts |= arg.flags & VMRI_QPF_KERNEL;
    made(o, rc, arg.handle, page);
    if ( !rc )
    {
        const struct vmri_wq_hdr *hdr = (void *)(a->mem + page * PAGE_SIZE);

        o->recv = (struct queue){
            arg.offset, arg.log2_entries, arg.log2_stride, env_load(&hdr->prod),
        };
        o->indirect = (struct queue){
            arg.ind_offset, arg.ind_log2_entries, 4, 0,
        };
    }
    return rc;
}

/* ---- queue pairs ---- */

static bool has_receives(unsigned int type, unsigned int how)
{
    return type < VMRI_QPT_XRC_INI && !(how & MAKE_SHARED);
}

/* Queues one after the other; the pages that they need. */
static uint32_t lay_out(struct vmri_qp_create *arg, unsigned int how)
{
    const uint8_t log2 = how & MAKE_LONG ? LONG_LOG2 : SHORT_LOG2;
    uint32_t bytes = sizeof(struct vmri_qp_hdr);

    arg->sq_offset = bytes;
    arg->sq_log2_entries = log2;
    arg->sq_log2_stride = SEND_STRIDE;
    arg->max_send_sge = 4;
    arg->max_inline = 64;
    bytes += 1U << (log2 + SEND_STRIDE);

    if ( has_receives(arg->type, how) )
    {
        arg->rq_offset = bytes;
        arg->rq_log2_entries = log2;
        arg->rq_log2_stride = RECV_STRIDE;
        arg->max_recv_sge = 3;
        bytes += 1U << (log2 + RECV_STRIDE);
    }
    if ( how & MAKE_KERNEL )
    {
        arg->ind_offset = bytes;
        arg->ind_log2_entries = IND_LOG2;
        bytes += 16U << IND_LOG2;
    }
    return (uint32_t)PFN_UP((uint64_t)bytes);
}

long make_qp(struct actor *a, unsigned int slot, unsigned int type,
             unsigned int how, struct input *in)
{
    struct object *o = &a->object[QP][slot];
    uint32_t page = ring_page(QP, slot, in);
    struct vmri_qp_create arg = {
        .pd = use(a, PD, in), .eq = use(a, EQ, in), .type = (uint8_t)type,
        .flags = how & MAKE_KERNEL ? VMRI_QPF_KERNEL : 0,
        .qpn = a->number, .twin = a->twin,
    };
    long rc;

    a->twin = a->number = 0;
    if ( type == VMRI_QPT_XRC_TGT )
        arg.xrcd = use(a, XRCD, in);
    else
    {
        arg.send_cq = use(a, CQ, in);
        arg.recv_cq = type == VMRI_QPT_XRC_INI ? 0 : use(a, CQ, in);
        arg.frames = actor_list(a, page, lay_out(&arg, how));
        arg.srq = how & MAKE_SHARED && type < VMRI_QPT_XRC_INI
                  ? use(a, SRQ, in) : 0;
    }
    spoil(in, &arg, sizeof(arg));
    rc = actor_call(a, VMRI_OP_qp_create, &arg, sizeof(arg));
    a->trusts |= arg.flags & VMRI_QPF_KERNEL;
    made(o, rc, arg.qpn, page);
    if ( !rc )
    {
        const struct vmri_qp_hdr *hdr = (void *)(a->mem + page * PAGE_SIZE);

        o->type = arg.type;
        o->send = (struct queue){
            arg.sq_offset, arg.sq_log2_entries, arg.sq_log2_stride,
            env_load(&hdr->sq.prod),
        };
        o->recv = (struct queue){
            arg.rq_offset, arg.rq_log2_entries, arg.rq_log2_stride,
            env_load(&hdr->rq.prod),
        };
        o->indirect = (struct queue){
            arg.ind_offset, arg.ind_log2_entries, 4, 0,
        };
    }
    return rc;
}

long twin_qp(struct actor *a, unsigned int type, unsigned int how,
             struct input *in)
{
    struct vmri_qp_create qp = { .type = (uint8_t)type };
    struct vmri_twin arg = { .kind = VMRI_RES_QP, .pd = use(a, PD, in) };
    long rc;

    lay_out(&qp, how);
    arg.u.qp.type = qp.type;
    arg.u.qp.sq_log2_entries = qp.sq_log2_entries;
    arg.u.qp.rq_log2_entries = how & MAKE_SHARED ? VMRI_TWIN_LENT_LOG2
                                                 : qp.rq_log2_entries;
    arg.u.qp.max_send_sge = qp.max_send_sge;
    arg.u.qp.max_recv_sge = 3;
    arg.u.qp.max_inline = qp.max_inline;
    spoil(in, &arg, sizeof(arg));
    rc = actor_call(a, VMRI_OP_twin_create, &arg, sizeof(arg));
    if ( rc == -EINPROGRESS )
        a->twin = arg.handle;
    return rc;
}

static bool is_datagram(unsigned int type)
{
    return type <= VMRI_QPT_GSI || type == VMRI_QPT_UD;
}

/* All that a type needs, or may have, on the way to a state. */
static void fill_step(struct vmri_qp_modify *arg, unsigned int type)
{
    const bool asks = type == VMRI_QPT_RC || type == VMRI_QPT_XRC_INI;
    const bool answers = type == VMRI_QPT_RC || type == VMRI_QPT_XRC_TGT;

    switch ( arg->state )
    {
    case VMRI_QPS_INIT:
        arg->mask |= VMRI_QPA_PKEY_INDEX;
        if ( type >= VMRI_QPT_RC )
            arg->mask |= VMRI_QPA_PORT;
        arg->mask |= is_datagram(type) ? VMRI_QPA_QKEY
                                       : VMRI_QPA_ACCESS_FLAGS;
        break;

    case VMRI_QPS_RTR:
        if ( !is_datagram(type) )
            arg->mask |= VMRI_QPA_AV | VMRI_QPA_PATH_MTU | VMRI_QPA_DEST_QPN |
                         VMRI_QPA_RQ_PSN;
        if ( answers )
            arg->mask |= VMRI_QPA_MAX_DEST_RD_ATOMIC |
                         VMRI_QPA_MIN_RNR_TIMER;
        break;

    case VMRI_QPS_RTS:
        arg->mask |= VMRI_QPA_SQ_PSN;
        if ( asks )
            arg->mask |= VMRI_QPA_TIMEOUT | VMRI_QPA_RETRY_CNT |
                         VMRI_QPA_RNR_RETRY | VMRI_QPA_MAX_QP_RD_ATOMIC;
        else if ( answers )
            arg->mask |= VMRI_QPA_TIMEOUT;
        break;

    case VMRI_QPS_SQD:
        arg->mask |= VMRI_QPA_EN_SQD_ASYNC_NOTIFY;
        break;
    }
}

long move_qp(struct actor *a, unsigned int slot, unsigned int state,
             const struct actor *peer, unsigned int peer_slot,
             struct input *in)
{
    const struct object *o = &a->object[QP][slot];
    struct vmri_qp_modify arg = {
        .qpn = o->handle, .mask = VMRI_QPA_STATE, .state = (uint8_t)state,
        .en_sqd_async_notify = 1, .port = 1, .path_mtu = 5, .timeout = 10,
        .retry_cnt = 3, .rnr_retry = 7, .min_rnr_timer = 1,
        .max_rd_atomic = 4, .max_dest_rd_atomic = 4, .qkey = FUZZ_QKEY,
        .dest_qpn = peer->object[QP][peer_slot].handle,
        .access_flags = VMRI_ACCESS_QP,
    };

    aim_at(&arg.av, peer);
    fill_step(&arg, o->type);
    /* From SQD, and so on, the way back takes nothing. */
    if ( in && take_rare(in, 4) )
        arg.mask = VMRI_QPA_STATE;
    if ( in && take_rare(in, 4) )
        arg.mask ^= 1U << take_of(in, 21);
    spoil(in, &arg, sizeof(arg));
    return actor_call(a, VMRI_OP_qp_modify, &arg, sizeof(arg));
}

/* ---- multicast ---- */

void fuzz_mgid(uint8_t mgid[16], unsigned int group)
{
    memset(mgid, 0, 16);
    mgid[0] = 0xff;
    mgid[1] = 0x12;
    mgid[15] = (uint8_t)group;
}

long join_group(struct actor *a, unsigned int slot, unsigned int group)
{
    struct vmri_mcg_qp arg = {
        .mlid = (uint16_t)(VMRI_MLID_MIN + group),
        .qpn = a->object[QP][slot].handle,
    };

    fuzz_mgid(arg.mgid, group);
    return actor_call(a, VMRI_OP_mcg_attach, &arg, sizeof(arg));
}

long call_group(struct actor *a, struct input *in)
{
    static const uint16_t cmds[] = {
        VMRI_OP_mcg_attach, VMRI_OP_mcg_create, VMRI_OP_mcg_detach,
        VMRI_OP_mcg_destroy,
    };
    unsigned int which = take_of(in, ARRAY_SIZE(cmds));
    unsigned int group = take_of(in, FUZZ_GROUPS);
    uint16_t mlid = take_rare(in, 4) ? take_of(in, 8) : group;
    struct vmri_mcg_qp member = {
        .mlid = VMRI_MLID_MIN + mlid,
        .qpn = a->object[QP][take_of(in, SLOTS)].handle,
    };
    struct vmri_mcg arg = {
        .mlid = mlid < 7 ? VMRI_MLID_MIN + mlid : 0, .pkey = 0xffff, .qkey = FUZZ_QKEY, .mtu = 5, .rate = 3,
        .create = take_of(in, 2), .join = VMRI_JOIN_FULL,
    };

    fuzz_mgid(member.mgid, group);
    fuzz_mgid(arg.mgid, group);
    if ( which % 2 )
    {
        spoil(in, &arg, sizeof(arg));
        return actor_call(a, cmds[which], &arg, sizeof(arg));
    }
    spoil(in, &member, sizeof(member));
    return actor_call(a, cmds[which], &member, sizeof(member));
}

/* ---- services ---- */

long call_service(struct actor *a, struct input *in)
{
    const unsigned int what = take_of(in, 4);
    struct vmri_service arg = {
        .id = take_of(in, 4), .pkey = take_rare(in, 4) ? 0x7fff : 0xffff,
        .lease = take_of(in, 2) ? 1 + take_of(in, 100) : VMRI_LEASE_FOREVER,
        .key = { [15] = take_of(in, 2) },
    };
    struct vmri_service_query query = {
        .service = arg, .number = take_of(in, 8),
        .flags = take_of(in, 2) ? VMRI_SERVICE_BY_KEY : 0,
    };

    if ( what == 0 )
    {
        spoil(in, &query, sizeof(query));
        return actor_call(a, VMRI_OP_service_query, &query, sizeof(query));
    }
    spoil(in, &arg, sizeof(arg));
    return actor_call(a, what == 1 ? VMRI_OP_service_delete
                                   : VMRI_OP_service_set, &arg, sizeof(arg));
}

/* ---- the end ---- */

long destroy(struct actor *a, enum kind kind, unsigned int slot)
{
    static const uint16_t cmds[KINDS] = {
        [PD] = VMRI_OP_pd_destroy, [XRCD] = VMRI_OP_xrcd_destroy,
        [EQ] = VMRI_OP_eq_destroy, [CQ] = VMRI_OP_cq_destroy,
        [SRQ] = VMRI_OP_srq_destroy, [QP] = VMRI_OP_qp_destroy,
        [MR] = VMRI_OP_mr_deregister, [MW] = VMRI_OP_mw_free,
    };
    struct vmri_object arg = { .handle = a->object[kind][slot].handle };
    long rc = actor_call(a, cmds[kind], &arg, sizeof(arg));

    if ( !rc )
        a->object[kind][slot].handle = 0;
    return rc;
}
