/* SPDX-License-Identifier: GPL-2.0-only */
/* Guests' services, for tests. */
#ifndef VMRI_TEST_SERVICE_H
#define VMRI_TEST_SERVICE_H

#include "guest.h"

#define SERVICE_SECOND  1000000000ULL

static inline struct vmri_service service_arg(uint64_t id)
{
    struct vmri_service arg = {
        .id = id, .pkey = 0xffff, .lease = VMRI_LEASE_FOREVER,
        .key = { 1, 2, 3, [15] = (uint8_t)id }, .name = "service",
        .data = { [63] = (uint8_t)id },
    };

    return arg;
}

static inline long service_set(struct guest *g, const struct vmri_service *arg)
{
    struct vmri_service s = *arg;

    return guest_call(g, VMRI_OP_service_set, &s, sizeof(s));
}

static inline long service_offer(struct guest *g, uint64_t id)
{
    struct vmri_service arg = service_arg(id);

    return service_set(g, &arg);
}

static inline long service_delete(struct guest *g, uint64_t id)
{
    struct vmri_service arg = { .id = id, .pkey = 0xffff };

    return guest_call(g, VMRI_OP_service_delete, &arg, sizeof(arg));
}

static inline long service_query(struct guest *g, uint64_t number,
                                 struct vmri_service_query *arg)
{
    *arg = (struct vmri_service_query){ .number = number };
    return guest_call(g, VMRI_OP_service_query, arg, sizeof(*arg));
}

/* How many a guest sees. */
static inline unsigned int service_count(struct guest *g)
{
    struct vmri_service_query q;
    unsigned int n = 0;
    uint64_t number;

    for ( number = 0; !service_query(g, number, &q); number = q.number + 1 )
        n++;
    return n;
}

#endif /* VMRI_TEST_SERVICE_H */
