/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Target: the management agents of a guest's driver.  Any packets to those of a
 * port, to its subnet administrator, and from a subnet manager to the switch that a
 * manager's device shows.
 */
#include "agent.h"
#include "fuzz.h"

#define PACKETS_MAX  64
#define NOTICES_MAX  8

#define SERVICE_RECORD  0x31

enum { PORT, ADMINISTRATOR, SWITCH, CHANGE, WAYS };

/* The guest whose device is for a manager may give dom0's commands. */
long agent_call(void *guest, unsigned int cmd, void *arg, size_t size)
{
    return cmd >= VMRI_OP_control ? dom0_call(cmd, arg, size)
                                  : actor_call(guest, cmd, arg, size);
}

static void take_bytes(struct input *in, uint8_t *to, size_t size)
{
    while ( size-- )
        *to++ = take8(in);
}

/* A packet: mostly of a class and a version that there is. */
static void take_packet(struct input *in, uint8_t mad[MAD_SIZE])
{
    static const uint8_t classes[] = { 0x01, 0x81, 0x04 };
    const unsigned int what = take_of(in, ARRAY_SIZE(classes) + 1);
    unsigned int n = take_of(in, MAD_SIZE);

    memset(mad, 0, MAD_SIZE);
    if ( what < ARRAY_SIZE(classes) )
    {
        mad[0] = mad[2] = 1;
        mad[1] = classes[what];
        mad[3] = 1 + take_of(in, 2);
        mad[17] = take8(in);
        take_bytes(in, mad + 20, 4);
    }
    else
        take_bytes(in, mad, 24);
    take_bytes(in, mad + 24, min_t(unsigned int, n, MAD_SIZE - 24));
}

/* A directed route to the switch or to one of its first ports. */
static void take_route(struct input *in, uint8_t mad[MAD_SIZE])
{
    mad[6] = 1;
    mad[7] = 1 + take_of(in, 3);
    memset(mad + 32, 0xff, 4);
    mad[128 + 1] = 1;
    mad[128 + 2] = take_of(in, 6);
}

static void ask_port(struct agent *a, struct input *in)
{
    uint8_t mad[MAD_SIZE], out[MAD_SIZE];

    take_packet(in, mad);
    if ( agent_process(a, mad, out) && !(out[3] & 0x80) )
        env_panic("an answer that is none");
}

static void ask_switch(struct agent *a, struct input *in)
{
    uint8_t mad[MAD_SIZE], out[MAD_SIZE];
    uint16_t from, dlid;

    take_packet(in, mad);
    if ( mad[1] == 0x81 && !take_rare(in, 4) )
        take_route(in, mad);
    dlid = take16(in);
    if ( agent_manage(a, mad, dlid, out, &from) == 2 && !(out[3] & 0x80) )
        env_panic("an answer that is none");
}

/* One that the guest's port may register: of a few IDs, with its GUID. */
static void be_own_service(struct agent_query *q)
{
    struct vmri_dev_attr attr;

    if ( actor_call(&actors[0], VMRI_OP_dev_query, &attr, sizeof(attr)) )
        return;
    q->mask |= 0x3;
    memset(q->data, 0, 7);
    q->data[7] &= 3;
    memset(q->data + 8, 0, 8);
    vmri_put_be(q->data + 16, attr.port_guid, 8);
}

static void ask_administrator(struct agent *a, struct input *in)
{
    static const uint8_t methods[] = { 0x01, 0x02, 0x12, 0x15, 0x14 };
    struct agent_query q = {
        .method = methods[take_of(in, ARRAY_SIZE(methods))],
        .src_qpn = take_of(in, 3),
        .attr = take8(in),
        .trusted = take_of(in, 2),
        .mask = take64(in),
    };

    take_bytes(in, q.data, take_of(in, SA_DATA + 1));
    if ( q.attr == SERVICE_RECORD && !take_rare(in, 4) )
        be_own_service(&q);
    agent_ask(a, &q);
    if ( q.status ? q.count || q.records : q.method != 0x12 && q.count != 1 )
        env_panic("status %#x with %u records", q.status, q.count);
    agent_forget(&q);
}

/* What has changed is told, a little at a time, and ends. */
static void look(struct agent *a, struct input *in)
{
    uint8_t notices[NOTICES_MAX][NOTICE_SIZE];
    const unsigned int max = 1 + take_of(in, NOTICES_MAX);
    unsigned int nr, i, place;
    uint32_t qpn;
    bool more;

    more = agent_look(a, notices, max, &nr);
    if ( nr > max || (more && nr < max) )
        env_panic("%u notices of %u, and %smore", nr, max, more ? "" : "no ");
    for ( i = 0; i < nr; i++ )
        for ( place = 0; place < INFORMS; place++ )
            agent_wants(a, place, notices[i], &qpn);
}

static struct agent *manager(struct actor *a)
{
    struct vmri_ctl_attach attach = {
        .domid = env_domid(a->domain), .fabric = 1, .flags = VMRI_ATTACH_SM,
    };
    struct vmri_dev_create create = { .flags = 0 };

    dom0_call(VMRI_OP_ctl_attach, &attach, sizeof(attach));
    actor_call(a, VMRI_OP_dev_create, &create, sizeof(create));
    return agent_new(a);
}

void target_run(struct input *in)
{
    struct agent *guest, *sm;
    unsigned int i;

    actor_attach(&actors[0], 1);
    sm = manager(&actors[1]);
    guest = agent_new(&actors[0]);
    agent_refresh(sm);

    for ( i = 0; in->left && i < PACKETS_MAX; i++ )
        switch ( take_of(in, WAYS) )
        {
        case PORT:
            ask_port(take_of(in, 2) ? guest : sm, in);
            break;
        case ADMINISTRATOR:
            ask_administrator(guest, in);
            break;
        case SWITCH:
            ask_switch(sm, in);
            break;
        case CHANGE:
            actor_port(&actors[take_of(in, 2)], in);
            agent_refresh(sm);
            look(guest, in);
            break;
        }
    agent_release(sm);
    agent_free(guest);
    agent_free(sm);
}
