/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The subnet administrators of guests' drivers: what they keep for all of a fabric
 * (IBTA 1.4, 15.2.5.14), and whom they refuse.
 */
#include "sa_query.h"
#include "service.h"
#include "internal.h"

#undef memcpy
#undef memset

#define SERVICE_REC     0x31

#define ID      BIT(0)
#define GID     BIT(1)
#define PKEY    BIT(2)
#define LEASE   BIT(4)
#define KEY     BIT(5)
#define NAME    BIT(6)
#define DATA8   BIT(7)          /* the first of 16 */
#define DATA16  BIT(23)
#define DATA32  BIT(31)
#define DATA64  BIT(35)

/* A record that names all that there is, as its port registers it. */
static struct agent_query record(const struct guest *g, uint8_t method,
                                 uint64_t id, const char *name)
{
    struct agent_query q = {
        .method = method, .attr = SERVICE_REC,
        .mask = ID | GID | PKEY | LEASE | KEY | NAME,
    };
    unsigned int i;

    sa_put(q.data, id, 8);
    sa_put_gid(q.data + 8, g);
    sa_put(q.data + 24, 0xffff, 2);
    sa_put(q.data + 28, VMRI_LEASE_FOREVER, 4);
    sa_put(q.data + 32, id, 16);
    strncpy((char *)q.data + 48, name, 64);
    for ( i = 0; i < 64; i++ )
        q.data[112 + i] = (uint8_t)(i + 1);
    return q;
}

static int change(struct agent *a, const struct guest *g, uint8_t method,
                  uint64_t id, const char *name)
{
    struct agent_query q = record(g, method, id, name);

    return sa_ask(a, &q);
}

/* How many a query with this mask finds. */
static int count(struct agent *a, const struct agent_query *like, uint64_t mask)
{
    struct agent_query q = *like;
    int n;

    q.method = GET_TABLE;
    q.mask = mask;
    agent_ask(a, &q);
    CHECK_EQ(q.status, 0);
    n = (int)q.count;
    agent_forget(&q);
    return n;
}

TEST(sa_services_are_everybodys_to_find)
{
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct agent *a = agent_new(g), *b = agent_new(h);
    struct agent_query q = record(g, SET, 5, "five");

    agent_ask(a, &q);
    CHECK_EQ(q.status, 0);
    CHECK_EQ(q.size, 176);
    CHECK_EQ(sa_get(q.records, 8), 5);
    /* The answer to somebody who is not trusted has no key. */
    CHECK(all_bytes(q.records + 32, 16, 0));
    agent_forget(&q);
    CHECK_EQ(change(a, g, SET, 6, "six"), 0);
    CHECK_EQ(change(b, h, SET, 6, "six"), 0);

    q = record(g, GET, 5, "five");
    q.mask = NAME;
    agent_ask(b, &q);
    CHECK_EQ(q.status, 0);
    CHECK_EQ(memcmp(q.records + 8, q.data + 8, 16), 0);
    CHECK_EQ(sa_get(q.records + 28, 4), VMRI_LEASE_FOREVER);
    CHECK(all_bytes(q.records + 32, 16, 0));
    agent_forget(&q);

    CHECK_EQ(count(b, &q, 0), 3);
    CHECK_EQ(count(b, &q, GID), 2);
    q = record(h, GET, 6, "six");
    CHECK_EQ(count(a, &q, NAME | PKEY), 2);
    CHECK_EQ(count(a, &q, NAME | GID), 1);
    q.mask = NAME;
    CHECK_EQ(sa_ask(a, &q), TOO_MANY);
    q.data[48] = 'S';
    CHECK_EQ(sa_ask(a, &q), NO_RECORDS);
    CHECK_EQ(count(a, &q, NAME), 0);
    agent_free(a);
    agent_free(b);
}

TEST(sa_services_by_their_data)
{
    static const uint64_t parts[] = {
        DATA8, DATA8 << 15, DATA16, DATA16 << 7, DATA32, DATA32 << 3, DATA64,
        DATA64 << 1,
    };
    static const uint8_t at[] = { 0, 15, 17, 31, 32, 47, 48, 63 };
    struct guest *g = guest_new(1);
    struct agent *a = agent_new(g);
    struct agent_query q = record(g, SET, 5, "five");
    unsigned int i;

    /* What the mask does not name is 0. */
    q.mask |= 0x1fffffff80ULL & ~(DATA8 << 1);
    agent_ask(a, &q);
    CHECK_EQ(q.status, 0);
    CHECK_EQ(q.records[112], 1);
    CHECK_EQ(q.records[113], 0);
    CHECK_EQ(q.records[175], 64);
    agent_forget(&q);

    for ( i = 0; i < ARRAY_SIZE(parts); i++ )
    {
        q = record(g, GET, 5, "five");
        CHECK_AT(count(a, &q, parts[i]), 1, "part %u", i);
        q.data[112 + at[i]] ^= 0x80;
        CHECK_AT(count(a, &q, parts[i]), 0, "part %u", i);
        CHECK_AT(count(a, &q, ID), 1, "part %u", i);
    }
    /* Bits of what there is not. */
    CHECK_EQ(count(a, &q, ~0ULL << 37 | BIT(3)), 1);
    agent_free(a);
}

TEST(sa_services_have_keys)
{
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct agent *a = agent_new(g), *b = agent_new(h);
    struct agent_query q;

    CHECK_EQ(change(a, g, SET, 5, "five"), 0);
    q = record(g, GET, 5, "five");
    CHECK_EQ(count(b, &q, KEY | NAME), 1);
    q.data[32] = 1;
    CHECK_EQ(count(b, &q, KEY | NAME), 0);

    /* Told to a trusted one at the port that has it, and to no other. */
    q.mask = NAME;
    q.trusted = true;
    agent_ask(a, &q);
    CHECK_EQ(q.records[47], 5);
    agent_forget(&q);
    agent_ask(b, &q);
    CHECK(all_bytes(q.records + 32, 16, 0));
    agent_forget(&q);
    agent_free(a);
    agent_free(b);
}

TEST(sa_services_are_their_ports_alone)
{
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct agent *a = agent_new(g), *b = agent_new(h);
    struct agent_query q;

    CHECK_EQ(change(b, g, SET, 5, "five"), INVALID_GID);
    CHECK_EQ(change(a, g, SET, 5, "five"), 0);
    CHECK_EQ(change(b, g, DELETE, 5, "five"), DENIED);
    q = record(g, DELETE, 5, "five");
    q.mask = NAME;
    CHECK_EQ(sa_ask(b, &q), DENIED);
    q.mask = GID;
    CHECK_EQ(sa_ask(a, &q), INSUFFICIENT);
    q.mask = NAME | KEY;
    q.data[32] = 1;
    CHECK_EQ(sa_ask(a, &q), NO_RECORDS);
    CHECK_EQ(change(a, g, SET, 6, "five"), 0);
    q.mask = NAME;
    CHECK_EQ(sa_ask(a, &q), TOO_MANY);
    CHECK_EQ(count(b, &q, 0), 2);

    q.mask = ID;
    agent_ask(a, &q);
    CHECK_EQ(q.status, 0);
    CHECK_EQ(sa_get(q.records, 8), 5);
    agent_forget(&q);
    CHECK_EQ(sa_ask(a, &q), NO_RECORDS);
    CHECK_EQ(count(b, &q, 0), 1);
    agent_free(a);
    agent_free(b);
}

TEST(sa_services_refused)
{
    struct guest *g = guest_new(1);
    struct agent *a = agent_new(g);
    struct agent_query q = record(g, SET, 5, "five");
    unsigned int i;

    q.mask &= ~ID;
    CHECK_EQ(sa_ask(a, &q), INSUFFICIENT);
    q = record(g, SET, 5, "five");
    q.mask &= ~GID;
    CHECK_EQ(sa_ask(a, &q), INSUFFICIENT);
    q = record(g, SET, 5, "five");
    sa_put(q.data + 24, 0x8001, 2);
    CHECK_EQ(sa_ask(a, &q), REQ_INVALID);
    q = record(g, SET, 5, "five");
    sa_put(q.data + 28, 0, 4);
    CHECK_EQ(sa_ask(a, &q), REQ_INVALID);
    /* No port's. */
    q = record(g, SET, 5, "five");
    q.data[8] = 0xff;
    CHECK_EQ(sa_ask(a, &q), INVALID_GID);
    CHECK_EQ(count(a, &q, 0), 0);

    /* A prefix the wrong way round. */
    q = record(g, SET, 5, "five");
    sa_put(q.data + 8, 0x80fe, 8);
    CHECK_EQ(sa_ask(a, &q), 0);
    CHECK_EQ(count(a, &q, GID), 1);

    /* What is left out: the first P_Key, for ever; and a prefix. */
    q = record(g, SET, 5, "five");
    q.mask = ID | GID;
    sa_put(q.data + 8, 0, 8);
    agent_ask(a, &q);
    CHECK_EQ(q.status, 0);
    CHECK_EQ(sa_get(q.records + 8, 8), g->attr.gid_prefix);
    CHECK_EQ(sa_get(q.records + 24, 2), 0xffff);
    CHECK_EQ(sa_get(q.records + 28, 4), VMRI_LEASE_FOREVER);
    CHECK(all_bytes(q.records + 32, 144, 0));
    agent_forget(&q);
    CHECK_EQ(count(a, &q, GID), 1);

    for ( i = 6; i < 6 + 127; i++ )
        CHECK_EQ(change(a, g, SET, i, "more"), 0);
    CHECK_EQ(change(a, g, SET, i, "more"), NO_RESOURCES);
    agent_free(a);
}

/* ---- groups ---- */

#define MEMBER_REC  0x38

static int create_group(struct agent *a, const struct guest *g,
                        const uint8_t mgid[16])
{
    struct agent_query q = {
        .method = SET, .attr = MEMBER_REC,
        .mask = BIT(0) | BIT(1) | BIT(2) | BIT(6) | BIT(7) | BIT(12) |
                BIT(13) | BIT(16),
    };

    memcpy(q.data, mgid, 16);
    sa_put_gid(q.data + 16, g);
    sa_put(q.data + 32, 0x1234, 4);
    sa_put(q.data + 40, 0xffff, 2);
    q.data[48] = 0x21;
    return sa_ask(a, &q);
}

/* What the administrator names itself is not for others to name. */
TEST(sa_groups_that_nobody_may_name)
{
    struct guest *g = guest_new(1);
    struct agent *a = agent_new(g);
    uint8_t mgid[16] = { 0xff, 0x12, 0xa0, 0x1b, [15] = 1 };

    CHECK_EQ(create_group(a, g, mgid), REQ_INVALID);
    mgid[1] = 0x15;
    CHECK_EQ(create_group(a, g, mgid), 0);
    mgid[3] = 0x1c;
    mgid[1] = 0x22;
    CHECK_EQ(create_group(a, g, mgid), REQ_INVALID);
    mgid[1] = 0x12;
    CHECK_EQ(create_group(a, g, mgid), 0);
    memset(mgid, 0, 16);
    CHECK_EQ(create_group(a, g, mgid), 0);
    agent_free(a);
}
