/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The management agents of a guest's driver: what they answer to what is right, and
 * the status that they give what is not (IBTA 1.4, 13.4.7, 15.2.2).
 */
#include "sa_query.h"
#include "internal.h"

#undef memcpy
#undef memset

#define CLASS_PORT_INFO 0x01
#define NODE_REC        0x11
#define PATH_REC        0x35
#define MEMBER_REC      0x38
#define MULTI_PATH_REC  0x3a

static uint16_t be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

/* ---- the agents of the port ---- */

static int process(struct agent *a, uint8_t class, uint8_t version,
                   uint8_t method, uint16_t attr, uint32_t mod,
                   uint8_t out[MAD_SIZE])
{
    uint8_t in[MAD_SIZE] = { 1, class, version, method };

    sa_put(in + 16, attr, 2);
    sa_put(in + 20, mod, 4);
    in[64 + 1] = 1;
    CHECK(agent_process(a, in, out));
    CHECK_EQ(out[3], 0x81);
    return be16(out + 4);
}

TEST(agents_of_a_port)
{
    struct guest *g = guest_new(1);
    struct agent *a = agent_new(g);
    uint8_t out[MAD_SIZE], in[MAD_SIZE] = { 1, 0x01, 1, 0x05 };

    CHECK_EQ(process(a, 0x01, 1, GET, 0x11, 0, out), 0);
    CHECK_EQ(out[64 + 2], 1);
    CHECK_EQ(process(a, 0x01, 1, GET, 0x15, 1, out), 0);
    CHECK_EQ(be16(out + 64 + 16), g->lid);
    CHECK_EQ(process(a, 0x01, 1, GET, 0x16, 0, out), 0);
    CHECK_EQ(be16(out + 64), 0xffff);
    CHECK_EQ(process(a, 0x81, 1, GET, 0x20, 0, out), 0x8000);

    CHECK_EQ(process(a, 0x01, 2, GET, 0x11, 0, out), BAD_VERSION);
    CHECK_EQ(process(a, 0x01, 1, SET, 0x15, 1, out), BAD_METHOD);
    CHECK_EQ(process(a, 0x01, 1, GET, 0x15, 2, out), BAD_ATTRIBUTE);
    CHECK_EQ(process(a, 0x01, 1, GET, 0x16, 1, out), BAD_ATTRIBUTE);
    CHECK_EQ(process(a, 0x01, 1, GET, 0x19, 0, out), BAD_ATTRIBUTE);
    /* What is no request is for somebody else. */
    CHECK(!agent_process(a, in, out));
    in[3] = GET;
    in[1] = 0x30;
    CHECK(!agent_process(a, in, out));
    agent_free(a);
}

TEST(agents_tell_counters)
{
    struct guest *g = guest_new(1);
    struct agent *a = agent_new(g);
    uint8_t out[MAD_SIZE], in[MAD_SIZE] = { 1, 0x04, 1, GET };

    CHECK_EQ(process(a, 0x04, 1, GET, 0x01, 0, out), 0);
    CHECK_EQ(process(a, 0x04, 1, GET, 0x12, 0, out), 0);
    CHECK_EQ(process(a, 0x04, 1, SET, 0x1d, 0, out), 0);
    CHECK_EQ(process(a, 0x04, 2, GET, 0x12, 0, out), BAD_VERSION);
    CHECK_EQ(process(a, 0x04, 1, SET, 0x01, 0, out), BAD_ATTRIBUTE);
    CHECK_EQ(process(a, 0x04, 1, GET, 0x99, 0, out), BAD_ATTRIBUTE);
    in[17] = 0x12;
    in[64 + 1] = 2;
    CHECK(agent_process(a, in, out));
    CHECK_EQ(be16(out + 4), BAD_VALUE);
    agent_free(a);
}

/* ---- the subnet administrator ---- */

TEST(agents_find_paths)
{
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct agent *a = agent_new(g);
    struct agent_query q = { .method = GET_TABLE, .attr = PATH_REC };

    agent_ask(a, &q);
    CHECK_EQ(q.status, 0);
    CHECK_EQ(q.count, 4);
    CHECK_EQ(q.size, 64);
    agent_forget(&q);

    q.mask = BIT(2) | BIT(3);
    sa_put_gid(q.data + 8, h);
    sa_put_gid(q.data + 24, g);
    q.method = GET;
    agent_ask(a, &q);
    CHECK_EQ(q.status, 0);
    CHECK_EQ(be16(q.records + 40), h->lid);
    CHECK_EQ(be16(q.records + 42), g->lid);
    agent_forget(&q);

    /* Several for one; a GID that nobody has; an MTU that there is not. */
    q.mask = BIT(3);
    CHECK_EQ(sa_ask(a, &q), TOO_MANY);
    q.mask = BIT(2);
    q.data[8] = 0xfd;
    CHECK_EQ(sa_ask(a, &q), INVALID_GID);
    sa_put_gid(q.data + 8, h);
    q.mask = BIT(2) | BIT(3) | BIT(16) | BIT(17);
    q.data[8 + 16 + 16 + 4 + 4 + 2 + 2 + 2] = 5;
    CHECK_EQ(sa_ask(a, &q), NO_RECORDS);
    agent_free(a);
}

TEST(agents_refuse_what_they_do_not_know)
{
    static const struct {
        uint8_t method;
        uint16_t attr;
    } bad[] = {
        { GET, 0x15 }, { SET, PATH_REC }, { DELETE, NODE_REC },
        { GET_TABLE, CLASS_PORT_INFO }, { 0x13, PATH_REC }, { GET, 0x1035 },
        { GET_MULTI, MULTI_PATH_REC },
    };
    struct agent *a = agent_new(guest_new(1));
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        struct agent_query q = { .method = bad[i].method, .attr = bad[i].attr };

        CHECK_AT(sa_ask(a, &q), BAD_ATTRIBUTE, "%u", i);
    }
    agent_free(a);
}

/* IPoIB's group of a partition, as IPoIB joins it. */
static void broadcast(struct agent_query *q, const struct guest *g)
{
    static const uint8_t mgid[16] = {
        0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 0xff, 0xff, 0xff, 0xff,
    };

    *q = (struct agent_query){
        .method = SET, .attr = MEMBER_REC, .mask = BIT(0) | BIT(1) | BIT(16),
    };
    memcpy(q->data, mgid, 16);
    sa_put_gid(q->data + 16, g);
    q->data[48] = 1;
}

TEST(agents_join_groups)
{
    struct guest *g = guest_new(1), *h = guest_new(2);
    struct agent *a = agent_new(g), *b = agent_new(h);
    struct agent_query q;

    broadcast(&q, g);
    CHECK_EQ(sa_ask(a, &q), 0);
    CHECK_EQ(sa_ask(a, &q), 0);

    /* For another port, with another Q_Key or MTU, in no way, for nobody. */
    broadcast(&q, g);
    CHECK_EQ(sa_ask(b, &q), INVALID_GID);
    broadcast(&q, h);
    q.mask |= BIT(2);
    CHECK_EQ(sa_ask(b, &q), REQ_INVALID);
    broadcast(&q, h);
    q.mask |= BIT(4) | BIT(5);
    q.data[38] = 0x84;
    CHECK_EQ(sa_ask(b, &q), REQ_INVALID);
    broadcast(&q, h);
    q.data[48] = 0;
    CHECK_EQ(sa_ask(b, &q), REQ_INVALID);
    broadcast(&q, h);
    q.mask &= ~BIT(1);
    CHECK_EQ(sa_ask(b, &q), INSUFFICIENT);

    /* One that there is not takes all that makes it. */
    broadcast(&q, h);
    q.data[15] = 1;
    CHECK_EQ(sa_ask(b, &q), INSUFFICIENT);

    broadcast(&q, h);
    q.method = DELETE;
    CHECK_EQ(sa_ask(b, &q), REQ_INVALID);
    broadcast(&q, g);
    q.method = DELETE;
    CHECK_EQ(sa_ask(a, &q), 0);
    CHECK_EQ(sa_ask(a, &q), REQ_INVALID);
    agent_free(a);
    agent_free(b);
}
