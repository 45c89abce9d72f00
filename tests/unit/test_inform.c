/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The subnet administrators of guests' drivers: who is told of what happens in the
 * fabric (IBTA 1.4, 13.4.8, 14.2.5.1).
 */
#include "group.h"
#include "sa_query.h"
#include "internal.h"

#undef memcpy
#undef memset

#define INFORM_INFO         0x03
#define INFORM_INFO_REC     0xf3

#define GID_IN              64
#define GID_OUT             65
#define MGID_CREATED        66
#define MGID_DELETED        67

/* All traps, from everywhere. */
static struct agent_query inform(uint32_t qpn, bool subscribe)
{
    struct agent_query q = {
        .method = SET, .attr = INFORM_INFO, .src_qpn = qpn,
    };

    sa_put(q.data + 16, 0xffff, 2);
    q.data[22] = 1;
    q.data[23] = subscribe;
    sa_put(q.data + 24, 0xffffffff, 4);
    sa_put(q.data + 33, 0xffffff, 3);
    return q;
}

static int subscribe(struct agent *a, uint32_t qpn)
{
    struct agent_query q = inform(qpn, true);

    return sa_ask(a, &q);
}

static unsigned int look(struct agent *a, uint8_t notices[][NOTICE_SIZE])
{
    unsigned int nr;

    CHECK(!agent_look(a, notices, 64, &nr));
    return nr;
}

/* One notice and no more, of a trap and a GID. */
static void expect(struct agent *a, const struct guest *issuer, uint16_t trap,
                   const uint8_t gid[16])
{
    uint8_t n[64][NOTICE_SIZE], own[16];

    sa_put_gid(own, issuer);
    CHECK_EQ(look(a, n), 1);
    CHECK_EQ(n[0][0], 0x83);
    CHECK_EQ(sa_get(n[0] + 1, 3), 4);
    CHECK_EQ(sa_get(n[0] + 4, 2), trap);
    CHECK_EQ(sa_get(n[0] + 6, 2), issuer->lid);
    CHECK_EQ(memcmp(n[0] + 16, gid, 16), 0);
    CHECK_EQ(memcmp(n[0] + 64, own, 16), 0);
    CHECK_EQ(look(a, n), 0);
}

static long set_port(struct guest *g, struct vmri_ctl_port arg)
{
    arg.domid = env_domid(g->domain);
    arg.dev_id = g->dev;
    return dom0_call(VMRI_OP_ctl_port, &arg, sizeof(arg));
}

TEST(inform_ports_come_and_go)
{
    struct guest *g = guest_new(1), *h;
    struct agent *a = agent_new(g);
    uint8_t gid[16];

    h = guest_new(2);
    sa_put_gid(gid, h);
    expect(a, g, GID_IN, gid);
    set_port(h, (struct vmri_ctl_port){
        .mask = VMRI_PORTA_STATE, .state = VMRI_PORT_DOWN });
    expect(a, g, GID_OUT, gid);
    set_port(h, (struct vmri_ctl_port){
        .mask = VMRI_PORTA_STATE, .state = VMRI_PORT_ACTIVE });
    expect(a, g, GID_IN, gid);
    /* One that shares no partition with this port is not there for it. */
    set_port(h, (struct vmri_ctl_port){
        .mask = VMRI_PORTA_PKEY, .pkeys = { 0x8001 } });
    expect(a, g, GID_OUT, gid);
    set_port(h, (struct vmri_ctl_port){
        .mask = VMRI_PORTA_PKEY, .pkeys = { 0x8001, 0xffff } });
    expect(a, g, GID_IN, gid);
    CHECK_EQ(dom0_detach(2, h->dev), 0);
    expect(a, g, GID_OUT, gid);
    agent_free(a);
}

TEST(inform_groups_come_and_go)
{
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct agent *a = agent_new(g);
    struct vmri_mcg group = group_new_arg(1, 0), hidden = group_new_arg(2, 0);

    CHECK_EQ(group_join(h, &group), 0);
    expect(a, g, MGID_CREATED, group.mgid);
    CHECK_EQ(group_leave(h, &group), 0);
    expect(a, g, MGID_DELETED, group.mgid);

    CHECK_EQ(set_port(h, (struct vmri_ctl_port){
        .mask = VMRI_PORTA_PKEY, .pkeys = { 0xffff, 0x8001 } }), 0);
    hidden.pkey = 0x8001;
    memset(hidden.mgid + 4, 0, 2);
    CHECK_EQ(group_join(h, &hidden), 0);
    group = group_new_arg(1, 0);
    CHECK_EQ(group_join(h, &group), 0);
    expect(a, g, MGID_CREATED, group.mgid);
    agent_free(a);
}

/* A LID that another has now: the one has gone, the other come. */
TEST(inform_numbers_that_move)
{
    struct guest *g = guest_new(1), *h = guest_new(2), *i;
    struct agent *a = agent_new(g);
    uint8_t n[64][NOTICE_SIZE], gone[16], come[16];

    sa_put_gid(gone, h);
    CHECK_EQ(dom0_detach(2, h->dev), 0);
    i = guest_new(3);
    CHECK_EQ(i->lid, h->lid);
    sa_put_gid(come, i);
    CHECK_EQ(look(a, n), 2);
    CHECK_EQ(sa_get(n[0] + 4, 2), GID_OUT);
    CHECK_EQ(memcmp(n[0] + 16, gone, 16), 0);
    CHECK_EQ(sa_get(n[1] + 4, 2), GID_IN);
    CHECK_EQ(memcmp(n[1] + 16, come, 16), 0);
    agent_free(a);
}

/* A few at a time, each once, whatever happens meanwhile. */
TEST(inform_bounded_at_a_time)
{
    enum { GROUPS = 20, MAX = 3 };
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct agent *a = agent_new(g);
    uint8_t n[64][NOTICE_SIZE];
    struct vmri_mcg group;
    unsigned int i, nr, seen = 0;
    bool more;

    for ( i = 0; i < GROUPS; i++ )
    {
        group = group_new_arg(i, 0);
        CHECK_EQ(group_join(h, &group), 0);
    }
    do {
        more = agent_look(a, n, MAX, &nr);
        CHECK(nr <= MAX);
        for ( i = 0; i < nr; i++ )
            CHECK_EQ(sa_get(n[i] + 4, 2), MGID_CREATED);
        seen += nr;
        CHECK(seen <= GROUPS);
    } while ( more );
    CHECK_EQ(seen, GROUPS);

    /* What has gone before it was told of is not told of. */
    for ( i = 0; i < GROUPS; i++ )
    {
        group = group_arg(i, 0);
        CHECK_EQ(group_leave(h, &group), 0);
    }
    CHECK(agent_look(a, n, MAX, &nr));
    for ( i = 0; i < GROUPS; i++ )
    {
        group = group_new_arg(i, 0);
        CHECK_EQ(group_join(h, &group), 0);
    }
    CHECK_EQ(look(a, n), MAX);
    for ( i = 0; i < MAX; i++ )
        CHECK_EQ(sa_get(n[i] + 4, 2), MGID_CREATED);
    agent_free(a);
}

/* ---- who is told ---- */

static unsigned int wanted(struct agent *a, const uint8_t notice[NOTICE_SIZE])
{
    unsigned int i, nr = 0;
    uint32_t qpn;

    for ( i = 0; i < INFORMS; i++ )
        nr += agent_wants(a, i, notice, &qpn);
    return nr;
}

TEST(inform_subscriptions_match)
{
    /* Where a subscription says what, and something else than is told. */
    static const struct {
        uint8_t at, bytes;
        uint64_t same, other;
    } parts[] = {
        { 16, 4, 0x00010002, 0x00020003 }, { 16, 4, 0x00010000, 0x00020000 },
        { 22, 1, 1, 0 }, { 24, 2, 3, 4 }, { 26, 2, MGID_CREATED, GID_IN },
        { 33, 3, 4, 1 },
    };
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct agent *a = agent_new(g);
    struct vmri_mcg group = group_new_arg(1, 0);
    uint8_t n[64][NOTICE_SIZE];
    struct agent_query q;
    unsigned int i;

    CHECK_EQ(g->lid, 1);
    CHECK_EQ(group_join(h, &group), 0);
    CHECK_EQ(look(a, n), 1);
    CHECK_EQ(wanted(a, n[0]), 0);
    for ( i = 0; i < 2 * ARRAY_SIZE(parts); i++ )
    {
        q = inform(1, true);
        sa_put(q.data + parts[i / 2].at,
               i % 2 ? parts[i / 2].other : parts[i / 2].same,
               parts[i / 2].bytes);
        CHECK_EQ(sa_ask(a, &q), 0);
        CHECK_AT(wanted(a, n[0]), !(i % 2), "part %u", i);
        q.data[23] = 0;
        CHECK_EQ(sa_ask(a, &q), 0);
        CHECK_EQ(wanted(a, n[0]), 0);
    }

    /* The port that tells, and another. */
    q = inform(1, true);
    sa_put_gid(q.data, g);
    CHECK_EQ(sa_ask(a, &q), 0);
    sa_put_gid(q.data, h);
    CHECK_EQ(sa_ask(a, &q), 0);
    CHECK_EQ(wanted(a, n[0]), 1);
    agent_free(a);
}

TEST(inform_subscriptions_of_queue_pairs)
{
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct agent *a = agent_new(g);
    struct vmri_mcg group = group_new_arg(1, 0);
    struct agent_query q;
    uint8_t n[64][NOTICE_SIZE];
    uint32_t qpn;
    unsigned int i;

    CHECK_EQ(group_join(h, &group), 0);
    CHECK_EQ(look(a, n), 1);

    /* The same again is one. */
    CHECK_EQ(subscribe(a, 1), 0);
    CHECK_EQ(subscribe(a, 1), 0);
    CHECK_EQ(subscribe(a, 0x123456), 0);
    CHECK_EQ(wanted(a, n[0]), 2);
    CHECK(agent_wants(a, 1, n[0], &qpn));
    CHECK_EQ(qpn, 0x123456);

    /* It ends by the QPN that it names, or that it comes from. */
    q = inform(1, false);
    sa_put(q.data + 28, 0x123456 << 8, 4);
    CHECK_EQ(sa_ask(a, &q), 0);
    CHECK_EQ(sa_ask(a, &q), REQ_INVALID);
    q = inform(1, false);
    CHECK_EQ(sa_ask(a, &q), 0);
    CHECK_EQ(wanted(a, n[0]), 0);
    CHECK_EQ(sa_ask(a, &q), REQ_INVALID);

    /* Who does not answer is forgotten. */
    CHECK_EQ(subscribe(a, 7), 0);
    agent_give_up(a, 0);
    CHECK_EQ(wanted(a, n[0]), 0);

    for ( i = 0; i < INFORMS; i++ )
        CHECK_EQ(subscribe(a, i + 2), 0);
    CHECK_EQ(subscribe(a, 1), NO_RESOURCES);
    CHECK_EQ(subscribe(a, 2), 0);
    agent_give_up(a, 3);
    CHECK_EQ(subscribe(a, 1), 0);
    agent_free(a);
}

TEST(inform_subscriptions_refused)
{
    struct guest *g = guest_new(1);
    struct agent *a = agent_new(g);
    struct agent_query q = inform(1, true);

    q.data[23] = 2;
    CHECK_EQ(sa_ask(a, &q), REQ_INVALID);
    q = inform(1, true);
    q.data[22] = 2;
    CHECK_EQ(sa_ask(a, &q), REQ_INVALID);
    /* Who has been where he should not is for who is trusted. */
    q = inform(1, true);
    sa_put(q.data + 26, 257, 2);
    CHECK_EQ(sa_ask(a, &q), REQ_INVALID);
    q.trusted = true;
    CHECK_EQ(sa_ask(a, &q), 0);
    q = inform(1, true);
    q.method = GET;
    CHECK_EQ(sa_ask(a, &q), BAD_ATTRIBUTE);
    agent_free(a);
}

TEST(inform_records)
{
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct agent *a = agent_new(g);
    struct agent_query q = { .method = GET_TABLE, .attr = INFORM_INFO_REC };
    uint8_t gid[16];

    agent_ask(a, &q);
    CHECK_EQ(q.status, 0);
    CHECK_EQ(q.count, 0);
    agent_forget(&q);
    CHECK_EQ(subscribe(a, 0x123456), 0);
    CHECK_EQ(subscribe(a, 1), 0);
    agent_ask(a, &q);
    CHECK_EQ(q.count, 2);
    CHECK_EQ(q.size, 80);
    sa_put_gid(gid, g);
    CHECK_EQ(memcmp(q.records, gid, 16), 0);
    CHECK_EQ(sa_get(q.records + 24 + 28, 4), 0);
    CHECK_EQ(sa_get(q.records + 80 + 16, 2), 1);
    agent_forget(&q);

    /* Which queue pair it is, for who is trusted. */
    q.method = GET;
    q.trusted = true;
    q.mask = BIT(0) | BIT(1);
    memcpy(q.data, gid, 16);
    agent_ask(a, &q);
    CHECK_EQ(q.status, 0);
    CHECK_EQ(sa_get(q.records + 24 + 28, 4), 0x12345600);
    agent_forget(&q);
    sa_put_gid(q.data, h);
    CHECK_EQ(sa_ask(a, &q), NO_RECORDS);
    agent_free(a);
}
