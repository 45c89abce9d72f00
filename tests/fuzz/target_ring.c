/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Target: the rings.  Two guests with a connected pair of queue pairs of a type
 * that the input chooses; then requests good and bad, bytes anywhere in the
 * rings and their headers, states, time, memory that goes; and all the while
 * what VMRI reads may change under its eyes (race.c).
 */
#include "fuzz.h"

#define FABRIC  1

static const uint8_t types[] = {
    VMRI_QPT_RC, VMRI_QPT_UC, VMRI_QPT_UD, VMRI_QPT_XRC_INI, VMRI_QPT_GSI,
};

struct side {
    struct actor *a;
    unsigned int qp;            /* slot */
};

static struct side sides[2];

static unsigned int peer_type(unsigned int type)
{
    return type == VMRI_QPT_XRC_INI ? VMRI_QPT_XRC_TGT : type;
}

static void prepare(struct actor *a, bool xrc)
{
    actor_attach(a, FABRIC);
    make_pd(a, 0);
    make_xrcd(a, 0);
    make_eq(a, 0, NULL);
    make_cq(a, 0, NULL);
    make_srq(a, 0, xrc, NULL);
    make_mr(a, 0, NULL);
    make_mr(a, 1, NULL);
    make_mw(a, 0, NULL);
    make_mw(a, 1, NULL);
    make_fast(a, 2, NULL);
}

static void connect(void)
{
    unsigned int state, i;

    for ( state = VMRI_QPS_INIT; state <= VMRI_QPS_RTS; state++ )
        for ( i = 0; i < 2; i++ )
            move_qp(sides[i].a, sides[i].qp, state, sides[!i].a, sides[!i].qp,
                    NULL);
}

static void set_up(struct input *in)
{
    unsigned int type = types[take_of(in, ARRAY_SIZE(types))];
    uint8_t how = take8(in);
    unsigned int flags = how & (MAKE_KERNEL | MAKE_SHARED | MAKE_LONG);

    if ( type == VMRI_QPT_GSI )
        flags = (flags | MAKE_KERNEL) & ~MAKE_SHARED;
    env_test_one_frame(how & 0x10);

    prepare(&actors[0], type == VMRI_QPT_XRC_INI);
    /* To itself, or to another guest. */
    if ( !(how & 0x20) || type == VMRI_QPT_GSI )
        prepare(&actors[1], type == VMRI_QPT_XRC_INI);
    sides[0] = (struct side){ &actors[0], 0 };
    sides[1] = actors[1].object[PD][0].handle
               ? (struct side){ &actors[1], 0 }
               : (struct side){ &actors[0], 1 };
    make_qp(sides[0].a, sides[0].qp, type, flags, NULL);
    make_qp(sides[1].a, sides[1].qp, peer_type(type), flags, NULL);
    if ( how & 0x40 )
        connect();
    if ( type == VMRI_QPT_UD )
    {
        join_group(sides[0].a, sides[0].qp, 0);
        join_group(sides[1].a, sides[1].qp, 0);
        join_group(sides[1].a, sides[1].qp, 1);
    }
}

static void change_memory(struct actor *a, struct input *in)
{
    unsigned int slot = take_of(in, SLOTS);
    uint64_t gfn = a->gfn + take_of(in, PAGES);

    switch ( take_of(in, 8) )
    {
    case 0:
        destroy(a, MR, slot);
        break;
    case 1:
        make_mr(a, slot, in);
        break;
    case 2:
        make_fast(a, slot, in);
        break;
    case 3:
        make_mw(a, slot, in);
        break;
    case 4:
        destroy(a, MW, slot);
        break;
    case 5:
        reregister(a, slot, in);
        break;
    case 6:
        env_test_page_pin_table(a->domain, gfn);
        break;
    case 7:
        env_test_page_kind(a->domain, gfn, ENV_RAM);
        break;
    }
}

/* Take what is complete, so that there is room; or say that something is. */
static void consume(struct actor *a, struct input *in)
{
    const struct object *cq = &a->object[CQ][0];
    struct vmri_cq_hdr *hdr = (void *)(a->mem + cq->page * PAGE_SIZE);
    uint8_t what = take8(in);

    if ( (what & 0xf0) == 0xf0 )
        resize_cq(a, 0, in);
    if ( what & 1 )
        env_store(&hdr->cons, env_load(&hdr->prod));
    if ( what & 2 )
        env_store(&hdr->arm, what >> 2);
}

/* What is no matter of the rings, but changes what they do. */
static void change_surroundings(struct actor *a, struct input *in)
{
    switch ( take_of(in, 3) )
    {
    case 0:
        env_test_domain_running(a->domain, take_of(in, 4));
        break;
    case 1:
        call_group(a, in);
        break;
    case 2:
        actor_port(a, in);
        break;
    }
}

static void step(struct input *in)
{
    uint8_t op = take8(in);
    const struct side *s = &sides[op >> 7], *peer = &sides[!(op >> 7)];
    struct actor *a = s->a;

    switch ( (op & 0x7f) % 16 )
    {
    case 0:
    case 1:
        post_send(a, s->qp, peer->a, peer->qp, in);
        break;
    case 2:
    case 3:
        post_recv(a, s->qp, in);
        break;
    case 4:
        post_srq(a, 0, in);
        break;
    case 5:
        actor_call_value(a, VMRI_OP_schedule, a->object[QP][s->qp].handle);
        break;
    case 6:
        actor_call_value(a, VMRI_OP_doorbell, a->object[QP][s->qp].handle);
        break;
    case 7:
        actor_call_value(a, VMRI_OP_srq_schedule, a->object[SRQ][0].handle);
        break;
    case 8:
        scribble(a, in);
        break;
    case 9:
        actor_serve(a);
        break;
    case 10:
        consume(a, in);
        break;
    case 11:
        env_test_advance(take_number(in) % 100000000000ULL);
        break;
    case 12:
        move_qp(a, s->qp, take_of(in, 7), peer->a, peer->qp, in);
        break;
    case 13:
        connect();
        break;
    case 14:
        change_memory(a, in);
        break;
    case 15:
        change_surroundings(a, in);
        break;
    }
}

void target_run(struct input *in)
{
    set_up(in);
    while ( in->left )
        step(in);
}
