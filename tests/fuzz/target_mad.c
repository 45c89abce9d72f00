/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Target: the management agents of a guest's driver.  Any packets to those of a
 * port, and to its subnet administrator.
 */
#include "agent.h"
#include "fuzz.h"

#define PACKETS_MAX  64

enum { PORT, ADMINISTRATOR, CHANGE, WAYS };

long agent_call(void *guest, unsigned int cmd, void *arg, size_t size)
{
    return actor_call(guest, cmd, arg, size);
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

static void ask_port(struct agent *a, struct input *in)
{
    uint8_t mad[MAD_SIZE], out[MAD_SIZE];

    take_packet(in, mad);
    if ( agent_process(a, mad, out) && !(out[3] & 0x80) )
        env_panic("an answer that is none");
}

static void ask_administrator(struct agent *a, struct input *in)
{
    static const uint8_t methods[] = { 0x01, 0x02, 0x12, 0x15 };
    struct agent_query q = {
        .method = methods[take_of(in, ARRAY_SIZE(methods))],
        .attr = take8(in),
        .trusted = take_of(in, 2),
        .mask = take64(in),
    };

    take_bytes(in, q.data, take_of(in, SA_DATA + 1));
    agent_ask(a, &q);
    if ( q.status ? q.count || q.records : q.method != 0x12 && q.count != 1 )
        env_panic("status %#x with %u records", q.status, q.count);
    agent_forget(&q);
}

void target_run(struct input *in)
{
    struct agent *agents[2];
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(agents); i++ )
    {
        actor_attach(&actors[i], 1);
        agents[i] = agent_new(&actors[i]);
    }
    for ( i = 0; in->left && i < PACKETS_MAX; i++ )
    {
        const unsigned int who = take_of(in, ARRAY_SIZE(agents));

        switch ( take_of(in, WAYS) )
        {
        case PORT:
            ask_port(agents[who], in);
            break;
        case ADMINISTRATOR:
            ask_administrator(agents[who], in);
            break;
        case CHANGE:
            actor_port(&actors[who], in);
            break;
        }
    }
    for ( i = 0; i < ARRAY_SIZE(agents); i++ )
        agent_free(agents[i]);
}
