/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Target: uplinks.  A guest whose device has one, and peers on another host: queue
 * pairs and regions with twins and without, receives of their own and shared ones,
 * datagrams.  The input is dom0's driver, too: mostly it answers what VMRI asks for, in
 * time or late, and sometimes it says anything.  The uplink closes and opens again, the
 * guest's device and the guest end, routes and rules come and go, in any order.
 */
#include "fuzz.h"

#define FABRIC      1
#define LOG2_UNITS  8
#define TWINS       8           /* whose answers are remembered */
#define NUMBER      0x000500    /* the first that the NIC gives out */
#define ANSWERS     10          /* at a time; they fit into a list of frames */

static struct {
    uint32_t number;            /* 0: it is closed */
    uint64_t gfn;
    uint8_t *mem;
    uint32_t cons;
    uint32_t next;              /* number of a twin */
    struct vmri_uplink_result late[TWINS];  /* answers that are kept back */
    unsigned int nr_late;
} nic;

/* The peer: on the other host, as far as the guest can tell. */
static struct actor there;

/* ---- addresses ---- */

static void address(uint8_t gid[16], uint8_t net, uint8_t last)
{
    memset(gid, 0, 16);
    gid[10] = gid[11] = 0xff;
    gid[12] = net;
    gid[15] = last;
}

static void route(unsigned int cmd)
{
    struct vmri_ctl_route arg = { .fabric = FABRIC };

    memcpy(arg.gid, there.gid, sizeof(arg.gid));
    address(arg.host_gid, 192, 2);
    dom0_call(cmd, &arg, sizeof(arg));
}

static void rule(struct input *in)
{
    struct vmri_ctl_rule arg = { .fabric = FABRIC };

    if ( take_of(in, 2) )
        arg.group = 9;
    dom0_call(VMRI_OP_ctl_rule_add, &arg, sizeof(arg));
    if ( take_of(in, 2) )
        dom0_call(VMRI_OP_ctl_rule_del, &arg, sizeof(arg));
}

/* ---- dom0's driver ---- */

static void nic_open(void)
{
    const uint32_t nr = (uint32_t)PFN_UP(VMRI_RING_OFFSET +
                                         (VMRI_UPLINK_UNIT << LOG2_UNITS));
    struct vmri_ctl_uplink_open arg = {
        .caps = {
            .max_mr_size = 2U << 20, .max_qp_wr = 64, .max_sge = 4,
            .max_inline = 64, .max_rd_atomic = 16, .mtu = 3, .atomics = 1,
        },
        .log2_units = LOG2_UNITS,
    };
    uint32_t i;

    if ( nic.number )
        return;
    for ( i = 0; i < nr; i++ )
        user.list[0][i] = nic.gfn + i;
    arg.frames = (struct vmri_frames){
        .gfns = (uintptr_t)user.list[0], .nr = nr,
    };
    if ( !dom0_call(VMRI_OP_ctl_uplink_open, &arg, sizeof(arg)) )
        nic.number = arg.uplink;
    nic.cons = nic.nr_late = 0;
}

static void nic_close(void)
{
    struct vmri_ctl_uplink arg = { .uplink = nic.number };

    dom0_call(VMRI_OP_ctl_uplink_close, &arg, sizeof(arg));
    nic.number = 0;
}

static void nic_done(const struct vmri_uplink_result *r, uint32_t nr)
{
    struct vmri_ctl_uplink_done arg = {
        .results = (uintptr_t)user.list[1], .uplink = nic.number, .nr = nr,
    };

    BUILD_BUG_ON(ANSWERS * sizeof(*r) > sizeof(user.list[1]));
    memcpy(user.list[1], r, nr * sizeof(*r));
    dom0_call(VMRI_OP_ctl_uplink_done, &arg, sizeof(arg));
}

/* What an honest one answers; false: nothing. */
static bool answer(const struct vmri_uplink_msg *m,
                   const struct vmri_qp_modify *attr,
                   struct vmri_uplink_result *r)
{
    *r = (struct vmri_uplink_result){ .twin = m->twin };

    switch ( m->type )
    {
    case VMRI_UPLINK_CREATE_QP:
    case VMRI_UPLINK_CREATE_MR:
        r->type = VMRI_UPLINK_MADE;
        r->number = m->type == VMRI_UPLINK_CREATE_QP ? nic.next++
                                                     : nic.next++ << 8;
        if ( actors[0].twin == m->twin )
            actors[0].number = r->number;
        return true;

    case VMRI_UPLINK_DESTROY:
        r->type = VMRI_UPLINK_GONE;
        return true;

    case VMRI_UPLINK_MODIFY:
        r->type = VMRI_UPLINK_MOVED;
        r->number = attr->state;
        return true;

    case VMRI_UPLINK_SEND:
        r->type = VMRI_UPLINK_SENT;
        r->wr_id = m->u.send.wr_id;
        r->flags = m->u.send.flags & VMRI_SEND_SIGNALED;
        return true;

    case VMRI_UPLINK_RECV:
        r->type = VMRI_UPLINK_RECEIVED;
        r->wr_id = m->u.recv.wr_id;
        return true;

    case VMRI_UPLINK_DATAGRAM:
        return false;
    }
    env_panic("a message of type %u", m->type);
}

static void *unit(uint32_t index)
{
    return nic.mem + VMRI_RING_OFFSET +
           (index & ((1U << LOG2_UNITS) - 1)) * VMRI_UPLINK_UNIT;
}

/* The next message's answer, if it has one; false: there is no message. */
static bool take(struct vmri_uplink_result *r, bool *has)
{
    struct vmri_uplink_hdr *hdr = (void *)nic.mem;
    const uint32_t left = env_load(&hdr->prod) - nic.cons;
    const struct vmri_uplink_msg *m = unit(nic.cons);

    if ( !left )
        return false;
    if ( !m->units || m->units > left || m->units > VMRI_UPLINK_DATAGRAM_UNITS )
        env_panic("a message of %u units, of %u", m->units, left);
    *has = answer(m, unit(nic.cons + 1), r);
    nic.cons += m->units;
    env_store(&hdr->cons, nic.cons);
    return true;
}

/* Read some; answer, with errors in between, keep back, or forget. */
static void nic_work(struct input *in)
{
    unsigned int n = take_of(in, ANSWERS + 1), nr = 0;
    struct vmri_uplink_result r[ANSWERS];
    bool has;

    if ( !nic.number )
        return;
    while ( n-- && take(&r[nr], &has) )
    {
        if ( !has )
            continue;
        if ( take_rare(in, 8) )
        {
            r[nr].status = take_of(in, VMRI_WC_GENERAL_ERR + 2);
            r[nr].error = -(int)take_of(in, 40);
        }
        if ( take_rare(in, 8) && nic.nr_late < TWINS )
            nic.late[nic.nr_late++] = r[nr];
        else
            nr++;
    }
    nic_done(r, nr);
}

/* What comes late, or was never asked for. */
static void nic_babble(struct input *in)
{
    struct vmri_uplink_result r = {
        .twin = actors[0].twin, .type = take_of(in, 8), .number = take8(in),
        .event = take_of(in, 8), .wr_id = take8(in),
    };

    if ( nic.nr_late && take_of(in, 4) )
        r = nic.late[--nic.nr_late];
    spoil(in, &r, sizeof(r));
    nic_done(&r, 1);
}

static void nic_deliver(struct input *in)
{
    struct vmri_ctl_uplink_deliver arg = {
        .datagram = {
            .fabric = FABRIC, .src_qpn = NUMBER, .qkey = FUZZ_QKEY,
            .dest_qpn = actors[0].object[QP][take_of(in, SLOTS)].handle,
            .pkey = 0xffff,
        },
        .data = (uintptr_t)user.list, .length = take16(in) % 300,
        .uplink = nic.number,
    };

    address(arg.datagram.host_gid, 192, 2);
    memcpy(arg.datagram.sgid, there.gid, 16);
    memcpy(arg.datagram.dgid, actors[0].gid, 16);
    spoil(in, &arg, sizeof(arg));
    dom0_call(VMRI_OP_ctl_uplink_deliver, &arg, sizeof(arg));
}

/* ---- the guest ---- */

/* The first one; answers of twins come there. */
static void make_port_eq(struct actor *a)
{
    struct object *o = &a->object[EQ][0];
    struct vmri_eq_create arg = {
        .frames = actor_list(a, 0, 1), .log2_entries = 4,
        .flags = VMRI_EQF_PORT,
    };
    long rc = actor_call(a, VMRI_OP_eq_create, &arg, sizeof(arg));

    if ( !made(o, rc, arg.handle, 0) )
        o->log2_entries = arg.log2_entries;
}

static void start(struct actor *a)
{
    struct vmri_gid_set gid = { .index = 0 };

    a->uplink = nic.number;
    actor_attach(a, FABRIC);
    memcpy(gid.gid, a->gid, sizeof(gid.gid));
    actor_call(a, VMRI_OP_gid_set, &gid, sizeof(gid));
    make_pd(a, 0);
    make_port_eq(a);
    make_cq(a, 0, NULL);
    make_srq(a, 0, false, NULL);
}

static const uint8_t types[] = {
    VMRI_QPT_RC, VMRI_QPT_RC, VMRI_QPT_UC, VMRI_QPT_UD,
};

/* With a twin when the NIC has answered meanwhile, or as it is. */
static void make_queue_pair(struct actor *a, struct input *in)
{
    const unsigned int type = types[take_of(in, ARRAY_SIZE(types))];
    const unsigned int how = take_rare(in, 3) ? MAKE_SHARED : 0;
    const unsigned int slot = take_of(in, SLOTS);

    if ( type != VMRI_QPT_UD && take_of(in, 8) &&
         twin_qp(a, type, how, in) == -EINPROGRESS )
        nic_work(in);
    make_qp(a, slot, type, how, in);
}

static void make_region(struct actor *a, struct input *in)
{
    const unsigned int slot = take_of(in, SLOTS);

    if ( take_of(in, 8) && twin_mr(a, slot, in) == -EINPROGRESS )
        nic_work(in);
    make_mr(a, slot, take_rare(in, 4) ? in : NULL);
}

/* All the way, as far as dom0 goes along. */
static void connect(struct actor *a, struct input *in)
{
    const unsigned int slot = take_of(in, SLOTS);
    unsigned int state;

    for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTS; state++ )
        if ( move_qp(a, slot, state, &there, 0, NULL) == -EINPROGRESS )
        {
            nic_work(in);
            move_qp(a, slot, state, &there, 0, NULL);
        }
}

static void end_something(struct actor *a, struct input *in)
{
    struct vmri_object twin = { .handle = take8(in) };
    uint8_t nothing = 0;

    switch ( take_of(in, 8) )
    {
    case 0:
        nic_close();
        break;
    case 1:
        actor_kill(a);
        start(a);
        break;
    case 2:
        actor_call(a, VMRI_OP_dev_destroy, &nothing, sizeof(nothing));
        break;
    case 3:
    case 4:
        actor_call(a, VMRI_OP_twin_destroy, &twin, sizeof(twin));
        break;
    default:
        destroy(a, take_of(in, KINDS), take_of(in, SLOTS));
        break;
    }
}

static void step(struct input *in)
{
    struct actor *a = &actors[0];
    const unsigned int what = take_of(in, 16);
    unsigned int slot;

    switch ( what )
    {
    case 0:
        make_queue_pair(a, in);
        break;
    case 1:
        make_region(a, in);
        break;
    case 2:
        connect(a, in);
        break;
    case 3:
        slot = take_of(in, SLOTS);
        move_qp(a, slot, take_of(in, 7), &there, 0, in);
        break;
    case 4:
    case 5:
        slot = take_of(in, SLOTS);
        post_send(a, slot, &there, 0, in);
        actor_call_value(a, VMRI_OP_schedule, a->object[QP][slot].handle);
        break;
    case 6:
        slot = take_of(in, SLOTS);
        post_recv(a, slot, in);
        actor_call_value(a, VMRI_OP_schedule, a->object[QP][slot].handle);
        break;
    case 7:
        post_srq(a, 0, in);
        actor_call_value(a, VMRI_OP_srq_schedule, a->object[SRQ][0].handle);
        break;
    case 8:
    case 9:
        nic_work(in);
        break;
    case 10:
        nic_babble(in);
        break;
    case 11:
        nic_deliver(in);
        break;
    case 12:
        actor_serve(a);
        break;
    case 13:
        end_something(a, in);
        break;
    case 14:
        route(take_of(in, 2) ? VMRI_OP_ctl_route_add : VMRI_OP_ctl_route_del);
        rule(in);
        break;
    case 15:
        nic_open();
        env_test_advance(take_number(in) % 100000000000ULL);
        break;
    }
}

void target_run(struct input *in)
{
    struct vmri_ctl_fabric fabric = {
        .fabric = FABRIC, .link = VMRI_LINK_ROCE,
    };
    struct domain *dom0 = env_test_domain(0);

    memset(&nic, 0, sizeof(nic));
    nic.next = NUMBER;
    nic.gfn = env_test_pages(dom0, PAGES, false);
    nic.mem = env_test_mem(dom0, nic.gfn);
    there = (struct actor){ .object[QP][0].handle = NUMBER };
    address(there.gid, 10, 2);
    address(actors[0].gid, 10, 1);

    dom0_call(VMRI_OP_ctl_fabric_create, &fabric, sizeof(fabric));
    route(VMRI_OP_ctl_route_add);
    nic_open();
    start(&actors[0]);
    while ( in->left )
        step(in);
    stage_quiet();
}
