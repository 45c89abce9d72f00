/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The switch that the driver of a manager's device makes of a fabric: what a subnet
 * manager such as opensm asks and sets, and what guests notice of it.
 */
#include "agent.h"
#include "guest.h"
#include "internal.h"

#undef memcpy
#undef memset

#define GET             0x01
#define SET             0x02
#define GET_RESP        0x81
#define TRAP_REPRESS    0x07

#define NODE_DESC       0x10
#define NODE_INFO       0x11
#define SWITCH_INFO     0x12
#define GUID_INFO       0x14
#define PORT_INFO       0x15
#define PKEY_TABLE      0x16
#define LANES           0x17
#define LINEAR_TABLE    0x19
#define MCAST_TABLE     0x1b
#define SM_INFO         0x20

#define BAD_VERSION     0x04
#define BAD_METHOD      0x08
#define BAD_ATTRIBUTE   0x0c
#define BAD_VALUE       0x1c

#define DATA            64      /* where an attribute is in a packet */
#define SWITCH_PORTS    254

enum { OWN, LOST, ANSWERED };

struct subnet {
    struct guest *sm, *a, *b;
    struct agent *agent;
    uint8_t out[MAD_SIZE];
    uint16_t from;
    unsigned int port_sm, port_a, port_b;
};

static uint16_t be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)be16(p) << 16 | be16(p + 2);
}

static uint64_t be64(const uint8_t *p)
{
    return (uint64_t)be32(p) << 32 | be32(p + 4);
}

static void put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, (uint16_t)(v >> 16));
    put16(p + 2, (uint16_t)v);
}

static void smp_make(uint8_t smp[MAD_SIZE], uint8_t method, uint16_t attr,
                     uint32_t mod)
{
    memset(smp, 0, MAD_SIZE);
    smp[0] = 1;
    smp[1] = 0x81;
    smp[2] = 1;
    smp[3] = method;
    put16(smp + 16, attr);
    put32(smp + 20, mod);
    put16(smp + 32, 0xffff);
    put16(smp + 34, 0xffff);
}

/* A directed route as ib_mad hands it on: to the switch, or to one of its ports. */
static void smp_route(uint8_t smp[MAD_SIZE], unsigned int port)
{
    smp[6] = 1;
    smp[7] = port ? 2 : 1;
    smp[128 + 1] = 1;
    smp[128 + 2] = (uint8_t)port;
}

static int ask(struct subnet *s, unsigned int port, uint8_t method,
               uint16_t attr, uint32_t mod, const uint8_t *data)
{
    uint8_t smp[MAD_SIZE];

    smp_make(smp, method, attr, mod);
    smp_route(smp, port);
    if ( data )
        memcpy(smp + DATA, data, 64);
    return agent_manage(s->agent, smp, 0xffff, s->out, &s->from);
}

/* The status, without the bit of the direction. */
static int status_of(const uint8_t smp[MAD_SIZE])
{
    return be16(smp + 4) & 0x7fff;
}

static int get(struct subnet *s, unsigned int port, uint16_t attr, uint32_t mod)
{
    CHECK_EQ(ask(s, port, GET, attr, mod, NULL), ANSWERED);
    return status_of(s->out);
}

static int set(struct subnet *s, unsigned int port, uint16_t attr, uint32_t mod,
               const uint8_t *data)
{
    CHECK_EQ(ask(s, port, SET, attr, mod, data), ANSWERED);
    return status_of(s->out);
}

static unsigned int port_of(struct subnet *s, uint64_t guid)
{
    unsigned int port;

    for ( port = 1; port <= SWITCH_PORTS; port++ )
        if ( ask(s, port, GET, NODE_INFO, 0, NULL) == ANSWERED &&
             be64(s->out + DATA + 20) == guid )
            return port;
    return 0;
}

static struct guest *manager_new(void)
{
    struct vmri_ctl_attach arg = {
        .domid = 0, .dev_id = VMRI_DEV_ANY, .fabric = GUEST_FABRIC,
        .flags = VMRI_ATTACH_SM,
    };
    struct guest *g = guest_bare(0);

    CHECK_EQ(dom0_call(VMRI_OP_ctl_attach, &arg, sizeof(arg)), 0);
    g->dev = arg.dev_id;
    guest_start(g);
    return g;
}

static void subnet_new(struct subnet *s)
{
    memset(s, 0, sizeof(*s));
    s->sm = manager_new();
    s->a = guest_new(1);
    s->b = guest_new(2);
    s->agent = agent_new(s->sm);
    s->port_sm = port_of(s, s->sm->attr.port_guid);
    s->port_a = port_of(s, s->a->attr.port_guid);
    s->port_b = port_of(s, s->b->attr.port_guid);
    CHECK(s->port_sm && s->port_a && s->port_b);
    CHECK(s->port_sm != s->port_a && s->port_a != s->port_b);
}

static void attributes(struct guest *g, struct vmri_dev_attr *attr)
{
    CHECK_EQ(guest_call(g, VMRI_OP_dev_query, attr, sizeof(*attr)), 0);
}

/* ---- who is there ---- */

TEST(switch_has_a_device_at_each_port)
{
    struct subnet s;

    subnet_new(&s);
    CHECK_EQ(get(&s, 0, NODE_INFO, 0), 0);
    CHECK_EQ(s.out[3], GET_RESP);
    CHECK_EQ(s.out[DATA + 2], 2);
    CHECK_EQ(s.out[DATA + 3], SWITCH_PORTS);
    CHECK_EQ(s.out[DATA + 36], s.port_sm);
    CHECK_EQ(get(&s, s.port_a, NODE_INFO, 0), 0);
    CHECK_EQ(s.out[DATA + 2], 1);
    CHECK_EQ(s.out[DATA + 3], 1);
    CHECK_EQ(be64(s.out + DATA + 12), s.a->attr.node_guid);

    CHECK_EQ(get(&s, 0, SWITCH_INFO, 0), 0);
    CHECK_EQ(be16(s.out + DATA), VMRI_LID_MAX + 1);
    CHECK_EQ(get(&s, 0, PORT_INFO, s.port_a), 0);
    CHECK_EQ(s.out[DATA + 32] & 0xf, VMRI_PORT_ACTIVE);
    CHECK_EQ(get(&s, 0, PORT_INFO, SWITCH_PORTS), 0);
    CHECK_EQ(s.out[DATA + 32] & 0xf, VMRI_PORT_DOWN);
    CHECK_EQ(get(&s, 0, PORT_INFO, SWITCH_PORTS + 1), BAD_ATTRIBUTE);
    agent_free(s.agent);
}

/* The way there and back of each packet (IBTA 1.4, 14.2.2). */
TEST(switch_answers_on_the_way_back)
{
    struct subnet s;
    uint8_t smp[MAD_SIZE];

    subnet_new(&s);
    CHECK_EQ(get(&s, s.port_b, NODE_INFO, 0), 0);
    CHECK_EQ(be16(s.out + 4), 0x8000);
    CHECK_EQ(s.out[6], 1);
    CHECK_EQ(s.out[192 + 1], s.port_sm);
    CHECK_EQ(s.out[192 + 2], 1);

    /* Nowhere: no device, behind a device, by another port of the manager's. */
    CHECK_EQ(ask(&s, 200, GET, NODE_INFO, 0, NULL), LOST);
    CHECK_EQ(ask(&s, 255, GET, NODE_INFO, 0, NULL), LOST);
    smp_make(smp, GET, NODE_INFO, 0);
    smp_route(smp, s.port_a);
    smp[7] = 3;
    CHECK_EQ(agent_manage(s.agent, smp, 0xffff, s.out, &s.from), LOST);
    smp_route(smp, s.port_a);
    smp[128 + 1] = 2;
    CHECK_EQ(agent_manage(s.agent, smp, 0xffff, s.out, &s.from), LOST);
    smp_route(smp, s.port_a);
    smp[6] = 2;
    CHECK_EQ(agent_manage(s.agent, smp, 0xffff, s.out, &s.from), LOST);
    smp_route(smp, s.port_a);
    put16(smp + 34, 5);
    CHECK_EQ(agent_manage(s.agent, smp, 0xffff, s.out, &s.from), LOST);

    /* What asks for nothing. */
    CHECK_EQ(ask(&s, 0, TRAP_REPRESS, 2, 0, NULL), LOST);
    CHECK_EQ(ask(&s, 0, GET_RESP, NODE_INFO, 0, NULL), LOST);
    agent_free(s.agent);
}

TEST(switch_is_reached_by_lids)
{
    struct subnet s;
    uint8_t smp[MAD_SIZE], info[64] = { 0 };

    subnet_new(&s);
    smp_make(smp, GET, NODE_INFO, 0);
    smp[1] = 0x01;
    CHECK_EQ(agent_manage(s.agent, smp, s.b->lid, s.out, &s.from), ANSWERED);
    CHECK_EQ(s.from, s.b->lid);
    CHECK_EQ(be16(s.out + 4), 0);
    CHECK_EQ(be64(s.out + DATA + 20), s.b->attr.port_guid);
    CHECK_EQ(agent_manage(s.agent, smp, s.sm->lid, s.out, &s.from), OWN);
    CHECK_EQ(agent_manage(s.agent, smp, 0x1234, s.out, &s.from), LOST);
    CHECK_EQ(agent_manage(s.agent, smp, 0, s.out, &s.from), LOST);

    put16(info + 16, 0x1234);
    put16(info + 18, s.sm->lid);
    CHECK_EQ(set(&s, 0, PORT_INFO, 0, info), 0);
    CHECK_EQ(be16(s.out + DATA + 16), 0x1234);
    CHECK_EQ(agent_manage(s.agent, smp, 0x1234, s.out, &s.from), ANSWERED);
    CHECK_EQ(s.out[DATA + 2], 2);

    /* Another class is not its business. */
    smp[1] = 0x04;
    CHECK_EQ(agent_manage(s.agent, smp, s.b->lid, s.out, &s.from), OWN);
    agent_free(s.agent);
}

/* ---- what is set ---- */

static void port_info(struct subnet *s, unsigned int port, uint8_t info[64])
{
    CHECK_EQ(get(s, port, PORT_INFO, 1), 0);
    memcpy(info, s->out + DATA, 64);
    info[32] &= 0xf0;
    info[33] &= 0x0f;
}

TEST(switch_sets_what_guests_see)
{
    struct subnet s;
    struct vmri_dev_attr attr;
    uint8_t info[64], pkeys[64] = { 0xff, 0xff, 0x80, 0x12 };

    subnet_new(&s);
    port_info(&s, s.port_a, info);
    CHECK_EQ(be16(info + 16), s.a->lid);
    CHECK(be32(info + 20) & 0x2000000);
    put16(info + 16, 0x20);
    put16(info + 18, s.sm->lid);
    info[51] |= 0x80;
    info[53] = 0x88;
    CHECK_EQ(set(&s, s.port_a, PORT_INFO, 1, info), 0);
    CHECK_EQ(be16(s.out + DATA + 16), 0x20);
    CHECK_EQ(s.out[DATA + 51] & 0x80, 0x80);
    CHECK_EQ(s.out[DATA + 53], 0x88);
    attributes(s.a, &attr);
    CHECK_EQ(attr.lid, 0x20);
    CHECK_EQ(attr.sm_lid, s.sm->lid);
    CHECK_EQ(attr.port_state, VMRI_PORT_ACTIVE);

    CHECK_EQ(set(&s, s.port_a, PKEY_TABLE, 0, pkeys), 0);
    attributes(s.a, &attr);
    CHECK_EQ(attr.pkeys[0], 0xffff);
    CHECK_EQ(attr.pkeys[1], 0x8012);
    CHECK_EQ(attr.pkeys[2], 0);
    CHECK_EQ(get(&s, s.port_a, PKEY_TABLE, 0), 0);
    CHECK_EQ(memcmp(s.out + DATA, pkeys, 64), 0);

    /* One partition twice, and a block that there is not. */
    pkeys[2] = 0x7f;
    pkeys[3] = 0xff;
    CHECK_EQ(set(&s, s.port_a, PKEY_TABLE, 0, pkeys), BAD_VALUE);
    CHECK_EQ(get(&s, s.port_a, PKEY_TABLE, 1), BAD_ATTRIBUTE);
    agent_free(s.agent);
}

/* LIDs that change places: none is refused, all have theirs in the end. */
TEST(switch_swaps_lids)
{
    struct subnet s;
    struct vmri_dev_attr attr;
    uint8_t info[64];
    uint16_t a, b;

    subnet_new(&s);
    a = s.a->lid;
    b = s.b->lid;
    port_info(&s, s.port_a, info);
    put16(info + 16, b);
    CHECK_EQ(set(&s, s.port_a, PORT_INFO, 1, info), 0);
    attributes(s.a, &attr);
    CHECK_EQ(attr.lid, b);
    attributes(s.b, &attr);
    CHECK(attr.lid != a && attr.lid != b);
    port_info(&s, s.port_b, info);
    put16(info + 16, a);
    CHECK_EQ(set(&s, s.port_b, PORT_INFO, 1, info), 0);
    attributes(s.b, &attr);
    CHECK_EQ(attr.lid, a);
    agent_free(s.agent);
}

TEST(switch_refuses_what_cannot_be_set)
{
    static const struct {
        uint8_t at, value;
    } bad[] = {
        { 16, 0xc0 },           /* LID */
        { 18, 0xff },           /* LID of the manager */
        { 0, 1 },               /* M_Key */
        { 34, 1 },              /* more LIDs than one */
        { 32, VMRI_PORT_INIT }, { 32, 5 },
        { 33, 0x40 },           /* state of the link: no such */
    };
    struct subnet s;
    struct vmri_dev_attr attr, before;
    uint8_t info[64], good[64];
    unsigned int i;

    subnet_new(&s);
    attributes(s.a, &before);
    port_info(&s, s.port_a, good);
    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        memcpy(info, good, sizeof(info));
        info[bad[i].at] = bad[i].value;
        CHECK_AT(set(&s, s.port_a, PORT_INFO, 1, info), BAD_VALUE, "%u", i);
    }
    attributes(s.a, &attr);
    CHECK_EQ(attr.lid, before.lid);
    CHECK_EQ(attr.sm_lid, before.sm_lid);

    CHECK_EQ(get(&s, s.port_a, PORT_INFO, 2), BAD_ATTRIBUTE);
    CHECK_EQ(get(&s, s.port_a, SWITCH_INFO, 0), BAD_ATTRIBUTE);
    CHECK_EQ(get(&s, s.port_a, SM_INFO, 0), BAD_ATTRIBUTE);
    CHECK_EQ(set(&s, s.port_a, NODE_INFO, 0, info), BAD_METHOD);
    CHECK_EQ(get(&s, 0, 0x99, 0), BAD_ATTRIBUTE);
    CHECK_EQ(set(&s, 0, NODE_DESC, 0, info), BAD_METHOD);
    CHECK_EQ(get(&s, 0, PKEY_TABLE, 1), BAD_ATTRIBUTE);
    CHECK_EQ(get(&s, 0, LINEAR_TABLE, 768), BAD_ATTRIBUTE);
    CHECK_EQ(get(&s, 0, MCAST_TABLE, 32), BAD_ATTRIBUTE);
    CHECK_EQ(get(&s, 0, GUID_INFO, 1), BAD_ATTRIBUTE);
    agent_free(s.agent);
}

TEST(switch_of_another_version_of_the_class)
{
    struct subnet s;
    uint8_t smp[MAD_SIZE];

    subnet_new(&s);
    smp_make(smp, GET, NODE_INFO, 0);
    smp_route(smp, s.port_a);
    smp[2] = 2;
    CHECK_EQ(agent_manage(s.agent, smp, 0xffff, s.out, &s.from), ANSWERED);
    CHECK_EQ(status_of(s.out), BAD_VERSION);
    agent_free(s.agent);
}

static int set_state(struct subnet *s, unsigned int port, uint8_t state)
{
    uint8_t info[64];

    port_info(s, port, info);
    info[32] |= state;
    return set(s, port, PORT_INFO, 1, info);
}

TEST(switch_brings_links_up_and_down)
{
    struct vmri_ctl_port init = {
        .mask = VMRI_PORTA_STATE, .state = VMRI_PORT_INIT, .domid = 1,
    };
    struct subnet s;
    struct vmri_dev_attr attr;
    uint8_t info[64] = { 0 };

    subnet_new(&s);
    init.dev_id = s.a->dev;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &init, sizeof(init)), 0);
    agent_refresh(s.agent);
    CHECK_EQ(set_state(&s, s.port_a, VMRI_PORT_ACTIVE), BAD_VALUE);
    CHECK_EQ(set_state(&s, s.port_a, VMRI_PORT_ARMED), 0);
    CHECK_EQ(set_state(&s, s.port_a, VMRI_PORT_ACTIVE), 0);
    CHECK_EQ(set_state(&s, s.port_a, VMRI_PORT_ARMED), 0);
    attributes(s.a, &attr);
    CHECK_EQ(attr.port_state, VMRI_PORT_ACTIVE);
    CHECK_EQ(set_state(&s, s.port_a, VMRI_PORT_DOWN), 0);
    attributes(s.a, &attr);
    CHECK_EQ(attr.port_state, VMRI_PORT_INIT);

    /* Disabled from the switch's side, and enabled again. */
    info[33] = 0x30;
    CHECK_EQ(set(&s, 0, PORT_INFO, s.port_a, info), 0);
    attributes(s.a, &attr);
    CHECK_EQ(attr.port_state, VMRI_PORT_DOWN);
    CHECK_EQ(ask(&s, s.port_a, GET, NODE_INFO, 0, NULL), LOST);
    info[33] = 0x20;
    CHECK_EQ(set(&s, 0, PORT_INFO, s.port_a, info), 0);
    attributes(s.a, &attr);
    CHECK_EQ(attr.port_state, VMRI_PORT_INIT);
    agent_free(s.agent);
}

/* ---- tables, and what is new ---- */

TEST(switch_forwards_to_lids)
{
    struct subnet s;
    uint8_t table[64], info[64] = { 0 };

    subnet_new(&s);
    put16(info + 16, 50);
    CHECK_EQ(set(&s, 0, PORT_INFO, 0, info), 0);
    CHECK_EQ(get(&s, 0, LINEAR_TABLE, 0), 0);
    CHECK_EQ(s.out[DATA + s.a->lid], s.port_a);
    CHECK_EQ(s.out[DATA + s.sm->lid], s.port_sm);
    CHECK_EQ(s.out[DATA + 50], 0);
    CHECK_EQ(s.out[DATA + 63], 0xff);
    /* Said back as it was set. */
    memset(table, 7, sizeof(table));
    CHECK_EQ(set(&s, 0, LINEAR_TABLE, 0, table), 0);
    CHECK_EQ(memcmp(s.out + DATA, table, 64), 0);
    CHECK_EQ(set(&s, 0, MCAST_TABLE, 0, table), 0);
    CHECK_EQ(set(&s, 0, LANES, 0, table), 0);
    CHECK_EQ(set(&s, 0, PKEY_TABLE, 0, table), 0);
    CHECK_EQ(get(&s, 0, PKEY_TABLE, 0), 0);
    CHECK_EQ(memcmp(s.out + DATA, table, 64), 0);
    agent_free(s.agent);
}

static bool has_news(struct subnet *s)
{
    uint8_t info[64];

    agent_refresh(s->agent);
    CHECK_EQ(get(s, 0, SWITCH_INFO, 0), 0);
    memcpy(info, s->out + DATA, 64);
    CHECK_EQ(set(s, 0, SWITCH_INFO, 0, info), 0);
    CHECK(!(s->out[DATA + 11] & 0x04));
    return info[11] & 0x04;
}

TEST(switch_tells_that_ports_have_changed)
{
    struct vmri_ctl_port down = {
        .mask = VMRI_PORTA_STATE, .state = VMRI_PORT_DOWN, .domid = 2,
    };
    struct subnet s;
    struct guest *c;

    subnet_new(&s);
    CHECK(has_news(&s));
    CHECK(!has_news(&s));
    c = guest_new(3);
    CHECK(has_news(&s));
    CHECK(port_of(&s, c->attr.port_guid));
    CHECK_EQ(dom0_detach(1, s.a->dev), 0);
    CHECK(has_news(&s));
    CHECK_EQ(ask(&s, s.port_a, GET, NODE_INFO, 0, NULL), LOST);
    /* What is there stays where it is. */
    CHECK_EQ(port_of(&s, s.b->attr.port_guid), s.port_b);
    down.dev_id = s.b->dev;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &down, sizeof(down)), 0);
    CHECK(has_news(&s));
    /* What the manager does itself is none. */
    CHECK_EQ(set_state(&s, port_of(&s, c->attr.port_guid), VMRI_PORT_DOWN), 0);
    CHECK(!has_news(&s));
    agent_free(s.agent);
}

/* ---- the manager's own port, and its end ---- */

TEST(switch_leaves_the_manager_its_own_questions)
{
    struct subnet s;
    uint8_t smp[MAD_SIZE], out[MAD_SIZE];

    subnet_new(&s);
    smp_make(smp, GET, PORT_INFO, 1);
    CHECK(agent_process(s.agent, smp, out));
    CHECK_EQ(be16(out + 4), 0x8000);
    CHECK_EQ(be16(out + DATA + 16), s.sm->lid);
    memcpy(smp + DATA, out + DATA, 64);
    smp[3] = SET;
    smp[DATA + 32] &= 0xf0;
    smp[DATA + 33] &= 0x0f;
    put16(smp + DATA + 16, 0x77);
    CHECK(agent_process(s.agent, smp, out));
    CHECK_EQ(be16(out + DATA + 16), 0x77);

    smp_make(smp, GET, SM_INFO, 0);
    CHECK(!agent_process(s.agent, smp, out));
    agent_free(s.agent);
}

TEST(switch_gives_ports_back_to_themselves)
{
    struct subnet s;
    struct vmri_dev_attr attr;
    uint8_t info[64];

    subnet_new(&s);
    port_info(&s, s.port_a, info);
    put16(info + 18, s.sm->lid);
    CHECK_EQ(set(&s, s.port_a, PORT_INFO, 1, info), 0);
    CHECK_EQ(set_state(&s, s.port_b, VMRI_PORT_DOWN), 0);
    agent_release(s.agent);
    attributes(s.a, &attr);
    CHECK_EQ(attr.sm_lid, attr.lid);
    attributes(s.b, &attr);
    CHECK_EQ(attr.port_state, VMRI_PORT_ACTIVE);
    agent_free(s.agent);
}
