/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests in guests' rings, as the input describes them. */
#include "fuzz.h"

static uint8_t *page_of(struct actor *a, const struct object *o)
{
    return a->mem + o->page * PAGE_SIZE;
}

/* Are these bytes of a ring in the guest's pages, as they follow each other? */
static bool inside(const struct object *o, uint64_t offset, size_t bytes)
{
    return o->page * PAGE_SIZE + offset + bytes <= PAGES * PAGE_SIZE;
}

static void put(struct actor *a, const struct object *o, uint64_t at,
                const void *p, size_t bytes)
{
    if ( inside(o, at, bytes) )
        memcpy(page_of(a, o) + at, p, bytes);
}

/* Where a queue's next request is to be. */
static uint64_t next_slot(const struct queue *q)
{
    uint32_t index = q->prod & ((1U << q->log2_entries) - 1);

    return q->offset + ((uint64_t)index << q->log2_stride);
}

static void produce(struct actor *a, struct object *o, struct queue *q,
                    size_t header)
{
    struct vmri_wq_hdr *hdr = (void *)(page_of(a, o) + header);

    env_store_release(&hdr->prod, ++q->prod);
}

/* An entry: within an MR by default, or what the input wants. */
static struct vmri_sge take_sge(struct actor *a, struct input *in)
{
    const struct object *mr = &a->object[MR][take_of(in, SLOTS)];
    struct vmri_sge sge = {
        .addr = mr->iova + take16(in) % (RUN_PAGES * PAGE_SIZE),
        .length = take16(in) % 0x3000,
        .lkey = mr->handle,
    };

    switch ( take_of(in, 16) )
    {
    case 13:                    /* a frame of its own */
        sge.addr = (a->gfn + take_of(in, PAGES)) << PAGE_SHIFT |
                   take16(in) % PAGE_SIZE;
        sge.lkey = VMRI_LKEY_FRAMES;
        break;
    case 14:
        sge.length = (uint32_t)take_number(in);
        break;
    case 15:
        sge.addr = take_number(in);
        sge.lkey = (uint32_t)take_number(in);
        break;
    }
    return sge;
}

/* Entries at `at`, or next in the indirect list; the sum of their lengths. */
static uint32_t put_sges(struct actor *a, struct object *o, uint64_t at,
                         unsigned int nr, bool indirect, struct input *in)
{
    const uint32_t mask = (1U << o->indirect.log2_entries) - 1;
    uint32_t sum = 0;
    unsigned int i;

    for ( i = 0; i < nr; i++ )
    {
        struct vmri_sge sge = take_sge(a, in);
        uint64_t to = at + i * sizeof(sge);

        if ( indirect )
            to = o->indirect.offset +
                 (o->indirect.prod++ & mask) * sizeof(sge);
        put(a, o, to, &sge, sizeof(sge));
        sum += sge.length;
    }
    return sum;
}

static uint8_t take_opcode(struct input *in)
{
    static const uint8_t opcodes[] = {
        VMRI_WR_SEND, VMRI_WR_RDMA_WRITE, VMRI_WR_RDMA_READ,
        VMRI_WR_SEND_WITH_IMM, VMRI_WR_RDMA_WRITE_WITH_IMM,
        VMRI_WR_ATOMIC_CMP_AND_SWP, VMRI_WR_ATOMIC_FETCH_AND_ADD,
        VMRI_WR_FLUSH, VMRI_WR_ATOMIC_WRITE, VMRI_WR_SEND_WITH_INV,
        VMRI_WR_LOCAL_INV, VMRI_WR_BIND_MW, VMRI_WR_REG_MR,
    };
    unsigned int i = take_of(in, ARRAY_SIZE(opcodes) + 1);

    return i < ARRAY_SIZE(opcodes) ? opcodes[i] : take8(in);
}

static bool is_short(unsigned int opcode)
{
    return opcode == VMRI_WR_ATOMIC_CMP_AND_SWP ||
           opcode == VMRI_WR_ATOMIC_FETCH_AND_ADD ||
           opcode == VMRI_WR_ATOMIC_WRITE;
}

/* What a key of the peer's, or of one's own, names. */
static const struct object *take_key(const struct actor *a, struct input *in)
{
    unsigned int i = take_of(in, 2 * SLOTS);

    return &a->object[i < SLOTS ? MR : MW][i % SLOTS];
}

void aim_at(struct vmri_av *av, const struct actor *peer)
{
    static const uint8_t none[sizeof(peer->gid)];

    av->dlid = peer->lid;
    if ( !memcmp(peer->gid, none, sizeof(none)) )
        return;
    av->dlid = 0;
    av->flags = VMRI_AV_GRH;
    memcpy(av->dgid, peer->gid, sizeof(av->dgid));
}

static void aim_datagram(struct vmri_send_wqe *wqe, const struct actor *peer,
                         unsigned int peer_slot, struct input *in)
{
    struct vmri_av *av = &wqe->u.ud.av;
    unsigned int group = take_of(in, 8);

    aim_at(av, peer);
    wqe->u.ud.remote_qpn = peer->object[QP][peer_slot].handle;
    wqe->u.ud.remote_qkey = FUZZ_QKEY;
    if ( group >= FUZZ_GROUPS )
        return;
    fuzz_mgid(av->dgid, group);
    av->flags = VMRI_AV_GRH;
    av->dlid = (uint16_t)(VMRI_MLID_MIN +
                          (take_rare(in, 4) ? take_of(in, 8) : group));
    wqe->u.ud.remote_qpn = VMRI_QPN_MULTICAST;
}

/* Where it goes: to the peer's memory, or the peer's queue pair. */
static void aim(struct vmri_send_wqe *wqe, unsigned int type,
                const struct actor *peer, unsigned int peer_slot,
                struct input *in)
{
    const struct object *key;

    if ( type == VMRI_QPT_UD || type <= VMRI_QPT_GSI )
    {
        aim_datagram(wqe, peer, peer_slot, in);
        return;
    }
    key = take_key(peer, in);
    wqe->u.rdma.remote_addr = key->iova + (take16(in) & ~7U);
    wqe->u.rdma.rkey = key->handle;
    wqe->u.rdma.srqn = peer->object[SRQ][0].handle;
    wqe->u.rdma.flush_type = VMRI_FLUSH_GLOBAL;
    if ( wqe->opcode == VMRI_WR_SEND_WITH_INV )
        wqe->imm = take_key(peer, in)->handle;
}

static uint32_t next_key(uint32_t key)
{
    return (key & ~0xffU) | ((key + 1) & 0xff);
}

/* The guest takes it that the bind succeeds. */
static void fill_bind(struct vmri_send_wqe *wqe, struct actor *a,
                      struct input *in)
{
    const struct object *mr = &a->object[MR][take_of(in, SLOTS)];
    struct object *mw = &a->object[MW][take_of(in, SLOTS)];

    wqe->u.bind.addr = mr->iova + take16(in) % 0x1000;
    wqe->u.bind.length = take16(in) % 0x3000;
    wqe->u.bind.mw_key = mw->handle;
    wqe->u.bind.new_key = next_key(mw->handle);
    wqe->u.bind.mr_key = mr->handle;
    wqe->u.bind.access = take8(in) & VMRI_ACCESS_MW;
    mw->iova = wqe->u.bind.access & VMRI_ACCESS_ZERO_BASED ? 0
                                                          : wqe->u.bind.addr;
    mw->handle = wqe->u.bind.new_key;
}

/* Frames of the guest's memory, any of them; their list is behind the request. */
static void fill_register(struct vmri_send_wqe *wqe, struct actor *a,
                          struct object *o, uint64_t at, struct input *in)
{
    struct object *mr = &a->object[MR][take_of(in, SLOTS)];
    uint32_t page = take_of(in, PAGES), frames = 1 + take_of(in, 8), i;

    wqe->flags &= ~(VMRI_SEND_INLINE | VMRI_SEND_INDIRECT);
    wqe->num_sge = 0;
    at += sizeof(*wqe);
    for ( i = 0; i < frames; i++ )
    {
        uint64_t gfn = a->gfn + (page + i) % PAGES;

        put(a, o, at + i * sizeof(gfn), &gfn, sizeof(gfn));
    }
    wqe->u.reg.list = ((a->gfn + o->page) << PAGE_SHIFT) + at;
    wqe->u.reg.iova = 0x40000000;
    wqe->u.reg.length = frames * PAGE_SIZE;
    wqe->u.reg.key = mr->handle;
    wqe->u.reg.new_key = next_key(mr->handle);
    wqe->u.reg.access = VMRI_ACCESS_MR;
    mr->iova = wqe->u.reg.iova;
    mr->handle = wqe->u.reg.new_key;
}

static void fill_data(struct vmri_send_wqe *wqe, struct actor *a,
                      struct object *o, uint64_t at, struct input *in)
{
    if ( wqe->flags & VMRI_SEND_INLINE )
        wqe->length = take_of(in, 65);
    else
    {
        wqe->num_sge = take_of(in, 5);
        wqe->ind_start = o->indirect.prod;
        wqe->length = put_sges(a, o, at + sizeof(*wqe), wqe->num_sge,
                               wqe->flags & VMRI_SEND_INDIRECT, in);
    }
    if ( is_short(wqe->opcode) )
        wqe->length = 8;
    if ( wqe->opcode == VMRI_WR_ATOMIC_WRITE || wqe->opcode == VMRI_WR_FLUSH )
        wqe->num_sge = 0;
}

void post_send(struct actor *a, unsigned int slot, const struct actor *peer,
               unsigned int peer_slot, struct input *in)
{
    struct object *o = &a->object[QP][slot];
    const uint64_t at = next_slot(&o->send);
    struct vmri_send_wqe wqe = {
        .wr_id = take8(in), .opcode = take_opcode(in),
        .flags = take8(in) & VMRI_SEND_FLAGS,
    };

    if ( !o->handle || !o->send.log2_stride )
        return;

    switch ( wqe.opcode )
    {
    case VMRI_WR_BIND_MW:
        fill_bind(&wqe, a, in);
        break;
    case VMRI_WR_REG_MR:
        fill_register(&wqe, a, o, at, in);
        break;
    case VMRI_WR_LOCAL_INV:
        wqe.imm = take_key(a, in)->handle;
        break;
    default:
        aim(&wqe, o->type, peer, peer_slot, in);
        fill_data(&wqe, a, o, at, in);
        break;
    }
    spoil(in, &wqe, sizeof(wqe));

    put(a, o, at, &wqe, sizeof(wqe));
    produce(a, o, &o->send, offsetof(struct vmri_qp_hdr, sq));
}

static void put_recv(struct actor *a, struct object *o, struct input *in)
{
    const uint64_t at = next_slot(&o->recv);
    struct vmri_recv_wqe wqe = {
        .wr_id = take8(in), .num_sge = take_of(in, 4),
        .flags = take_rare(in, 4) ? VMRI_RECV_INDIRECT : 0,
        .ind_start = o->indirect.prod,
    };

    put_sges(a, o, at + sizeof(wqe), wqe.num_sge,
             o->indirect.log2_entries && wqe.flags, in);
    spoil(in, &wqe, sizeof(wqe));
    put(a, o, at, &wqe, sizeof(wqe));
}

void post_recv(struct actor *a, unsigned int slot, struct input *in)
{
    struct object *o = &a->object[QP][slot];

    if ( !o->handle || !o->recv.log2_stride )
        return;
    put_recv(a, o, in);
    produce(a, o, &o->recv, offsetof(struct vmri_qp_hdr, rq));
}

void post_srq(struct actor *a, unsigned int slot, struct input *in)
{
    struct object *o = &a->object[SRQ][slot];

    if ( !o->handle )
        return;
    put_recv(a, o, in);
    produce(a, o, &o->recv, 0);
}

void scribble(struct actor *a, struct input *in)
{
    const struct object *o =
        &a->object[EQ + take_of(in, 4)][take_of(in, SLOTS)];
    uint64_t at = take16(in);
    unsigned int n = 1 + take_of(in, 16);

    if ( !o->handle )
        return;
    /* Mostly the header's words, which are what is looked at most. */
    at = at & 0x8000 ? at & 0x7fff : at % 64 * 4;
    for ( ; n && inside(o, at, 1); n--, at++ )
        page_of(a, o)[at] = take8(in);
}
