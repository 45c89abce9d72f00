/* SPDX-License-Identifier: GPL-2.0-only */
/* Queries of guests' subnet administrators, for tests. */
#ifndef VMRI_TEST_SA_QUERY_H
#define VMRI_TEST_SA_QUERY_H

#include "agent.h"
#include "guest.h"

#define GET             0x01
#define SET             0x02
#define GET_TABLE       0x12
#define GET_MULTI       0x14
#define DELETE          0x15

#define BAD_VERSION     0x04
#define BAD_METHOD      0x08
#define BAD_ATTRIBUTE   0x0c
#define BAD_VALUE       0x1c
#define NO_RESOURCES    0x0100
#define REQ_INVALID     0x0200
#define NO_RECORDS      0x0300
#define TOO_MANY        0x0400
#define INVALID_GID     0x0500
#define INSUFFICIENT    0x0600
#define DENIED          0x0700

#define BIT(n)          (1ULL << (n))

static inline uint64_t sa_get(const uint8_t *p, unsigned int bytes)
{
    uint64_t v = 0;

    while ( bytes-- )
        v = v << 8 | *p++;
    return v;
}

static inline void sa_put(uint8_t *p, uint64_t v, unsigned int bytes)
{
    while ( bytes-- )
    {
        p[bytes] = (uint8_t)v;
        v >>= 8;
    }
}

static inline void sa_put_gid(uint8_t *p, const struct guest *g)
{
    sa_put(p, g->attr.gid_prefix, 8);
    sa_put(p + 8, g->attr.port_guid, 8);
}

/* The status; what it found is forgotten. */
static inline int sa_ask(struct agent *a, struct agent_query *q)
{
    agent_ask(a, q);
    agent_forget(q);
    return q->status;
}

#endif /* VMRI_TEST_SA_QUERY_H */
