/* SPDX-License-Identifier: GPL-2.0-only */
/* service.c: services that devices offer to the others of their fabric. */
#include "service.h"
#include "internal.h"

#include <pthread.h>

#undef memcpy
#undef memset

static uint64_t usage(struct guest *g, unsigned int what)
{
    return (*env_domain_state(g->domain))->usage[what];
}

static void limit(struct guest *g, unsigned int what, uint64_t n)
{
    (*env_domain_state(g->domain))->limit[what] = n;
}

static void set_port(struct guest *g, struct vmri_ctl_port arg)
{
    arg.domid = env_domid(g->domain);
    arg.dev_id = g->dev;
    CHECK_EQ(dom0_call(VMRI_OP_ctl_port, &arg, sizeof(arg)), 0);
}

TEST(service_is_seen_by_all)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_service s = service_arg(7);
    struct vmri_service_query q;

    CHECK_EQ(service_query(b, 0, &q), -ENOENT);
    CHECK_EQ(service_set(a, &s), 0);
    CHECK_EQ(service_query(b, 0, &q), 0);
    CHECK_EQ(q.number, 1);
    CHECK_EQ(q.service.id, 7);
    CHECK_EQ(q.service.pkey, 0xffff);
    CHECK_EQ(q.service.lease, VMRI_LEASE_FOREVER);
    CHECK_EQ(vmri_be_word(q.service.gid), a->attr.gid_prefix);
    CHECK_EQ(vmri_be_word(q.service.gid + 8), a->attr.port_guid);
    CHECK_EQ(memcmp(q.service.name, s.name, sizeof(s.name)), 0);
    CHECK_EQ(memcmp(q.service.data, s.data, sizeof(s.data)), 0);
    CHECK_EQ(service_query(b, q.number + 1, &q), -ENOENT);
}

TEST(service_is_replaced_and_deleted_by_its_device_alone)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_service s = service_arg(7);
    struct vmri_service_query q;

    CHECK_EQ(service_set(a, &s), 0);
    s.name[0] = 'S';
    CHECK_EQ(service_set(a, &s), 0);
    CHECK_EQ(service_count(b), 1);
    CHECK_EQ(service_query(b, 0, &q), 0);
    CHECK_EQ(q.number, 1);
    CHECK_EQ(q.service.name[0], 'S');
    CHECK_EQ(usage(a, VMRI_RES_SERVICE), 1);

    /* The same of another device is another. */
    CHECK_EQ(service_delete(b, 7), -ENOENT);
    CHECK_EQ(service_offer(b, 7), 0);
    CHECK_EQ(service_count(a), 2);
    CHECK_EQ(service_delete(b, 7), 0);
    CHECK_EQ(service_delete(b, 7), -ENOENT);
    CHECK_EQ(service_count(a), 1);
    CHECK_EQ(service_delete(a, 7), 0);
    CHECK_EQ(service_count(a), 0);
    CHECK_EQ(usage(a, VMRI_RES_SERVICE), 0);
}

TEST(service_keys_are_not_told)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_service s = service_arg(7);
    struct vmri_service_query q;

    CHECK_EQ(service_set(a, &s), 0);
    CHECK_EQ(service_query(a, 0, &q), 0);
    CHECK_EQ(memcmp(q.service.key, s.key, sizeof(s.key)), 0);
    CHECK_EQ(service_query(b, 0, &q), 0);
    CHECK(all_bytes(q.service.key, sizeof(q.service.key), 0));

    /* Who knows it may ask by it. */
    q = (struct vmri_service_query){ .flags = VMRI_SERVICE_BY_KEY };
    memcpy(q.service.key, s.key, sizeof(s.key));
    CHECK_EQ(guest_call(b, VMRI_OP_service_query, &q, sizeof(q)), 0);
    CHECK_EQ(q.service.id, 7);
    q = (struct vmri_service_query){ .flags = VMRI_SERVICE_BY_KEY };
    memcpy(q.service.key, s.key, sizeof(s.key));
    q.service.key[15]++;
    CHECK_EQ(guest_call(b, VMRI_OP_service_query, &q, sizeof(q)), -ENOENT);
}

TEST(service_leases_end)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_service s = service_arg(7);
    struct vmri_service_query q;

    CHECK_EQ(service_offer(a, 1), 0);
    s.lease = 10;
    CHECK_EQ(service_set(a, &s), 0);
    s.id = 8;
    s.lease = VMRI_LEASE_FOREVER - 1;
    CHECK_EQ(service_set(a, &s), 0);
    CHECK_EQ(service_query(b, 2, &q), 0);
    CHECK_EQ(q.service.lease, 10);

    env_test_advance(9 * SERVICE_SECOND + 1);
    CHECK_EQ(service_query(b, 2, &q), 0);
    CHECK_EQ(q.service.lease, 1);
    CHECK_EQ(service_query(b, 3, &q), 0);
    CHECK_EQ(q.service.lease, VMRI_LEASE_FOREVER - 10);
    CHECK_EQ(usage(a, VMRI_RES_SERVICE), 3);

    /* Whoever looks ends it: it is its device's no longer. */
    env_test_advance(SERVICE_SECOND);
    CHECK_EQ(service_count(b), 2);
    CHECK_EQ(usage(a, VMRI_RES_SERVICE), 2);
    CHECK_EQ(service_delete(a, 7), -ENOENT);

    /* It is renewed by being offered again. */
    s.id = 7;
    s.lease = 10;
    CHECK_EQ(service_set(a, &s), 0);
    env_test_advance(9 * SERVICE_SECOND);
    CHECK_EQ(service_set(a, &s), 0);
    env_test_advance(9 * SERVICE_SECOND);
    CHECK_EQ(service_count(b), 3);
    s.lease = VMRI_LEASE_FOREVER;
    CHECK_EQ(service_set(a, &s), 0);
    env_test_advance(VMRI_LEASE_FOREVER * SERVICE_SECOND);
    CHECK_EQ(service_count(b), 2);
}

TEST(service_refused)
{
    struct guest *g = guest_new(1);
    struct vmri_service s = service_arg(7);
    struct vmri_service_query q = { .flags = 2 };

    s.lease = 0;
    CHECK_EQ(service_set(g, &s), -EINVAL);
    s = service_arg(7);
    s.reserved = 1;
    CHECK_EQ(service_set(g, &s), -EINVAL);
    s = service_arg(7);
    s.pkey = 0x8000;
    CHECK_EQ(service_set(g, &s), -EINVAL);
    s.pkey = 0x8001;
    CHECK_EQ(service_set(g, &s), -EPERM);
    CHECK_EQ(guest_call(g, VMRI_OP_service_query, &q, sizeof(q)), -EINVAL);
    q = (struct vmri_service_query){ .reserved = 1 };
    CHECK_EQ(guest_call(g, VMRI_OP_service_query, &q, sizeof(q)), -EINVAL);
    CHECK_EQ(service_count(g), 0);

    CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy, NULL, 0), 0);
    CHECK_EQ(service_offer(g, 7), -ENODEV);
    CHECK_EQ(usage(g, VMRI_RES_SERVICE), 0);
}

TEST(service_stays_in_its_partition)
{
    struct guest *a = guest_new(1), *b = guest_new(2);
    struct vmri_ctl_port both = {
        .mask = VMRI_PORTA_PKEY, .pkeys = { 0xffff, 0x8001 },
    };
    struct vmri_ctl_port one = both;
    struct vmri_service s = service_arg(7);

    set_port(a, both);
    s.pkey = 0x8001;
    CHECK_EQ(service_set(a, &s), 0);
    CHECK_EQ(service_count(a), 1);
    CHECK_EQ(service_count(b), 0);
    both.pkeys[1] = 0x0001;
    set_port(b, both);
    CHECK_EQ(service_count(b), 1);

    /* Its device has left it. */
    one.pkeys[1] = 0;
    set_port(a, one);
    CHECK_EQ(service_count(a) + service_count(b), 0);
}

TEST(service_stays_in_its_fabric)
{
    struct guest *a = guest_new(1), *b = guest_bare(2);
    uint32_t dev = VMRI_DEV_ANY;
    uint16_t lid = 0;

    CHECK_EQ(dom0_attach(2, GUEST_FABRIC + 1, &dev, &lid), 0);
    guest_start(b);
    CHECK_EQ(service_offer(a, 7), 0);
    CHECK_EQ(service_count(b), 0);
    CHECK_EQ(service_offer(b, 7), 0);
    CHECK_EQ(service_count(b), 1);
    CHECK_EQ(service_delete(b, 7), 0);
    CHECK_EQ(service_count(a), 1);
}

TEST(service_that_xsm_hides)
{
    struct guest *a = guest_new(1), *b = guest_new(2);

    CHECK_EQ(service_offer(a, 7), 0);
    CHECK_EQ(service_count(b), 1);
    env_test_silo(b->domain);
    CHECK_EQ(service_count(b), 0);
    CHECK_EQ(service_count(a), 1);
}

TEST(service_goes_with_its_device)
{
    struct guest *a = guest_new(1), *b = guest_new(2), *c = guest_new(3);
    struct vmri_ctl_port manager = { .mask = VMRI_PORTA_SM_LID, .sm_lid = 99 };
    unsigned int i;

    CHECK_EQ(service_offer(c, 7), 0);
    for ( i = 0; i < 100; i++ )
        CHECK_EQ(service_offer(a, i), 0);
    CHECK_EQ(service_count(b), 101);
    CHECK_EQ(guest_call(a, VMRI_OP_dev_destroy, NULL, 0), 0);
    CHECK_EQ(service_count(b), 1);
    CHECK_EQ(usage(a, VMRI_RES_SERVICE), 0);

    CHECK_EQ(service_offer(b, 1), 0);
    CHECK_EQ(dom0_detach(2, b->dev), 0);
    CHECK_EQ(service_count(c), 1);

    /* Another manager does not know it. */
    set_port(c, manager);
    CHECK_EQ(service_count(c), 0);
    CHECK_EQ(usage(c, VMRI_RES_SERVICE), 0);
}

TEST(service_numbers_are_limited)
{
    enum { GUESTS = 5, EACH = VMRI_SERVICES / (GUESTS - 1) };
    struct guest *g[GUESTS], *last;
    unsigned int i, n;
    uint64_t id = 0;

    for ( i = 0; i < GUESTS; i++ )
        g[i] = guest_new(1 + i);
    last = g[GUESTS - 1];

    /* Of a domain. */
    for ( n = 0; n < 128; n++ )
        CHECK_EQ(service_offer(g[0], ++id), 0);
    CHECK_EQ(service_offer(g[0], id + 1), -ENOSPC);
    CHECK_EQ(service_offer(g[0], 1), 0);
    CHECK_EQ(usage(g[0], VMRI_RES_SERVICE), 128);

    /* Of a fabric. */
    for ( i = 0; i < GUESTS - 1; i++ )
    {
        limit(g[i], VMRI_RES_SERVICE, EACH);
        for ( n = usage(g[i], VMRI_RES_SERVICE); n < EACH; n++ )
            CHECK_EQ(service_offer(g[i], ++id), 0);
    }
    CHECK_EQ(service_offer(last, ++id), -ENOSPC);
    CHECK_EQ(usage(last, VMRI_RES_SERVICE), 0);
    CHECK_EQ(service_count(last), VMRI_SERVICES);
    CHECK_EQ(service_delete(g[1], EACH + 2), 0);
    CHECK_EQ(service_offer(last, id), 0);

    /* Of memory. */
    CHECK_EQ(service_delete(last, id), 0);
    limit(last, VMRI_RES_BYTES, usage(last, VMRI_RES_BYTES));
    CHECK_EQ(service_offer(last, id), -ENOMEM);
    CHECK_EQ(usage(last, VMRI_RES_SERVICE), 0);
}

/* ---- many at once ---- */

static unsigned int over;

/* Others end the leases of a device that closes meanwhile. */
static void *end_leases(void *guest)
{
    struct guest *g = guest;

    while ( !env_load(&over) )
    {
        env_test_advance(SERVICE_SECOND);
        service_count(g);
        service_offer(g, 1);
    }
    return NULL;
}

THREAD_TEST(service_device_closes_while_leases_end)
{
    struct guest *a = guest_new(1), *b = guest_new(2), *c = guest_new(3);
    struct vmri_dev_create create = { .flags = 0 };
    struct vmri_service s = service_arg(0);
    pthread_t thread[2];
    unsigned int round;

    s.lease = 1;
    pthread_create(&thread[0], NULL, end_leases, b);
    pthread_create(&thread[1], NULL, end_leases, c);
    CHECK_EQ(guest_call(a, VMRI_OP_dev_destroy, NULL, 0), 0);
    for ( round = 0; round < 300; round++ )
    {
        CHECK_EQ(guest_call(a, VMRI_OP_dev_create, &create, sizeof(create)),
                 0);
        for ( s.id = 0; s.id < 40; s.id++ )
            CHECK_EQ(service_set(a, &s), 0);
        CHECK_EQ(guest_call(a, VMRI_OP_dev_destroy, NULL, 0), 0);
        CHECK_EQ(usage(a, VMRI_RES_SERVICE), 0);
    }
    env_store(&over, 1);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
}
