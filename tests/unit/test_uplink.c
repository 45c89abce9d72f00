/* SPDX-License-Identifier: GPL-2.0-only */
/* uplink.c: uplinks come and go, and what is said through them. */
#include "nic.h"
#include "internal.h"

#undef memcpy
#undef memset

/* ---- opening and closing ---- */

TEST(uplink_opens_and_closes)
{
    struct nic nic, other;

    CHECK_EQ(try_nic(&nic, 8, &nic_caps), 0);
    CHECK_EQ(nic.uplink, 1);
    CHECK_EQ(try_nic(&other, 16, &nic_caps), 0);
    CHECK_EQ(other.uplink, 2);
    CHECK_EQ(nic_done(&other, NULL, 0), 0);
    CHECK_EQ(nic_close(&nic), 0);
    CHECK_EQ(nic_close(&nic), -ENOENT);
    CHECK_EQ(nic_done(&nic, NULL, 0), -ENOENT);

    /* Its number is free again; the rest ends with dom0. */
    CHECK_EQ(try_nic(&nic, 8, &nic_caps), 0);
    CHECK_EQ(nic.uplink, 1);
}

/* Of the only device of a domain. */
static uint32_t uplink_of(unsigned int domid)
{
    struct vmri_ctl_info info = { .domid = domid };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_list, &info, sizeof(info)), 0);
    CHECK_EQ(info.domid, domid);
    return info.uplink;
}

TEST(uplink_dom0_sees_which_a_device_has)
{
    struct nic other, *nic;

    CHECK_EQ(try_nic(&other, 8, &nic_caps), 0);
    nic = nic_new();
    nic_guest(nic, 1);
    CHECK_EQ(uplink_of(1), 2);
    guest_new(2);
    CHECK_EQ(uplink_of(2), 0);

    /* Another that has its number is not the device's. */
    CHECK_EQ(nic_close(nic), 0);
    CHECK_EQ(uplink_of(1), 0);
    CHECK_EQ(try_nic(nic, 8, &nic_caps), 0);
    CHECK_EQ(nic->uplink, 2);
    CHECK_EQ(uplink_of(1), 0);
}

TEST(uplink_there_are_so_many)
{
    struct nic nic;
    unsigned int i;

    for ( i = 0; i < VMRI_UPLINKS; i++ )
        CHECK_EQ(try_nic(&nic, 8, &nic_caps), 0);
    CHECK_EQ(try_nic(&nic, 8, &nic_caps), -ENOSPC);
}

static long open_with(void (*change)(struct vmri_uplink_caps *))
{
    struct vmri_uplink_caps caps = nic_caps;
    struct nic nic;

    change(&caps);
    return try_nic(&nic, 8, &caps);
}

static void no_sge(struct vmri_uplink_caps *c) { c->max_sge = 0; }
static void many_sge(struct vmri_uplink_caps *c) { c->max_sge = 33; }
static void long_inline(struct vmri_uplink_caps *c) { c->max_inline = 513; }
static void no_wr(struct vmri_uplink_caps *c) { c->max_qp_wr = 0; }
static void no_mtu(struct vmri_uplink_caps *c) { c->mtu = 0; }
static void large_mtu(struct vmri_uplink_caps *c) { c->mtu = 6; }
static void two_atomics(struct vmri_uplink_caps *c) { c->atomics = 2; }
static void reserved(struct vmri_uplink_caps *c) { c->reserved1 = 1; }
static void small_mr(struct vmri_uplink_caps *c) { c->max_mr_size = 4095; }

TEST(uplink_refuses_what_it_does_not_know)
{
    static void (*const bad[])(struct vmri_uplink_caps *) = {
        no_sge, many_sge, long_inline, no_wr, no_mtu, large_mtu, two_atomics,
        reserved, small_mr,
    };
    struct vmri_ctl_uplink close = { .uplink = 1, .reserved = 1 };
    struct guest *g = guest_new(1);
    struct vmri_uplink_result r[1];
    struct nic nic;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
        CHECK_AT(open_with(bad[i]), -EINVAL, "caps %u", i);
    CHECK_EQ(try_nic(&nic, 7, &nic_caps), -EINVAL);
    CHECK_EQ(try_nic(&nic, 17, &nic_caps), -EINVAL);

    CHECK_EQ(try_nic(&nic, 8, &nic_caps), 0);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_uplink_close, &close, sizeof(close)),
             -EINVAL);
    CHECK_EQ(nic_done(&nic, r, VMRI_UPLINK_RESULTS + 1), -EINVAL);
    nic.uplink = 0;
    CHECK_EQ(nic_done(&nic, NULL, 0), -ENOENT);
    nic.uplink = VMRI_UPLINKS + 1;
    CHECK_EQ(nic_done(&nic, NULL, 0), -ENOENT);
    CHECK_EQ(nic_close(&nic), -ENOENT);
    for ( i = VMRI_OP_ctl_uplink_open; i <= VMRI_OP_ctl_uplink_done; i++ )
        CHECK_EQ(guest_call(g, i, &nic, sizeof(nic)), -EPERM);
}

/* Whatever fails on the way, nothing is left and the number is free. */
TEST(uplink_that_does_not_open)
{
    static const struct {
        enum env_failure what;
        long rc;
    } failure[] = {
        { ENV_FAIL_ALLOC, -ENOMEM }, { ENV_FAIL_FRAME, -EPERM },
        { ENV_FAIL_MAP_RING, -ENOMEM }, { ENV_FAIL_PORT, -ENOSPC },
        { ENV_FAIL_COPY_TO, -EFAULT },
    };
    struct nic nic;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(failure); i++ )
    {
        env_test_fail(failure[i].what, 1);
        CHECK_AT(try_nic(&nic, 8, &nic_caps), failure[i].rc, "failure %u", i);
    }
    /* The second piece of the list of frames: part of it is pinned by then. */
    env_test_fail(ENV_FAIL_COPY_FROM, 3);
    CHECK_EQ(try_nic(&nic, 8, &nic_caps), -EFAULT);
    CHECK_EQ(try_nic(&nic, 8, &nic_caps), 0);
    CHECK_EQ(nic.uplink, 1);
}

/* ---- devices ---- */

TEST(uplink_lowers_what_a_device_promises)
{
    struct nic *nic = nic_new();
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    CHECK(g->attr.flags & VMRI_DEVF_UPLINK);
    CHECK_EQ(g->attr.max_mr_size, nic_caps.max_mr_size);
    CHECK_EQ(g->attr.max_qp_wr, 512);
    CHECK_EQ(g->attr.max_sge, nic_caps.max_sge);
    CHECK_EQ(g->attr.max_inline, nic_caps.max_inline);
    CHECK_EQ(g->attr.max_rd_atomic, nic_caps.max_rd_atomic);
    CHECK_EQ(g->attr.mtu, nic_caps.mtu);
    CHECK(!(guest_new(2)->attr.flags & VMRI_DEVF_UPLINK));
}

TEST(uplink_that_is_not_there)
{
    struct nic *nic = nic_new();

    nic_fabric();
    env_test_domain(1);
    CHECK_EQ(try_uplinked(1, 2), -ENODEV);
    CHECK_EQ(try_uplinked(1, VMRI_UPLINKS + 1), -ENODEV);
    CHECK_EQ(nic_close(nic), 0);
    CHECK_EQ(try_uplinked(1, 1), -ENODEV);
    env_test_fail(ENV_FAIL_ALLOC, 3);
    CHECK_EQ(try_nic(nic, 8, &nic_caps), 0);
    CHECK_EQ(try_uplinked(1, 1), -ENOMEM);
    CHECK_EQ(try_uplinked(1, 1), 0);
}

/* Numbers that VMRI chooses do not come in the way of the NIC's. */
TEST(uplink_leaves_low_numbers_to_the_nic)
{
    struct nic *nic = nic_new();
    struct guest *g;
    unsigned int i;

    nic_fabric();
    g = nic_guest(nic, 1);
    for ( i = 0; i < 5; i++ )
    {
        CHECK((guest_qp(g, NULL)->qpn & 0x1ffff) >= 1U << 16);
        CHECK(guest_mr(g, 1, 0, LAYOUT_RUN, 0).key >> 8 >= 1U << 20);
    }
}

/* ---- a full ring, full queues, late results ---- */

TEST(uplink_full_ring_forgets_nothing)
{
    enum { TWINS = 1000 };
    static uint32_t handles[TWINS];
    struct nic *nic = nic_new();
    struct vmri_twin twin;
    struct nic_msg msg;
    struct guest_mr mr;
    unsigned int i, n = 0;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    for ( i = 0; i < TWINS; i++ )
    {
        twin = twin_of_mr(&mr, 0);
        CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
        handles[i] = twin.handle;
    }
    CHECK_EQ(nic->hdr->prod, 1U << NIC_LOG2);
    CHECK_EQ(nic->hdr->full, 1);
    for ( i = 0; i < 10; i++ )
        CHECK_EQ(twin_destroy(g, handles[TWINS - 1 - i]), -EINPROGRESS);

    /* All are said in the end, in their order, and none twice. */
    for ( ; ; )
    {
        while ( nic_take(nic, &msg) )
        {
            if ( msg.m.type == VMRI_UPLINK_CREATE_MR )
                CHECK_EQ(msg.m.twin, handles[n]);
            n += msg.m.type == VMRI_UPLINK_CREATE_MR;
        }
        if ( !env_load(&nic->hdr->full) )
            break;
        CHECK_EQ(nic_done(nic, NULL, 0), 0);
    }
    CHECK_EQ(n, TWINS);
}

/* An index out of range: there is no room, and nothing is written anywhere. */
TEST(uplink_consumer_out_of_range)
{
    struct nic *nic = nic_new();
    struct vmri_twin twin;
    struct guest_mr mr;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    env_store(&nic->hdr->cons, 1);
    twin = twin_of_mr(&mr, 0);
    CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
    CHECK_EQ(nic->hdr->prod, 0);
    CHECK_EQ(nic->hdr->full, 1);
    env_store(&nic->hdr->cons, 0);
    CHECK_EQ(nic_done(nic, NULL, 0), 0);
    CHECK_EQ(nic->hdr->full, 0);
    CHECK_EQ(nic_expect(nic, VMRI_UPLINK_CREATE_MR).m.twin, twin.handle);
}

/* With numbers from 1 on, of which the guest has yet to take the events. */
static void make_twins(struct nic *nic, const struct guest_mr *mr,
                       struct vmri_twin *twin, unsigned int n)
{
    unsigned int i;

    for ( i = 0; i < n; i++ )
    {
        twin[i] = twin_of_mr(mr, 0);
        CHECK_EQ(twin_create(mr->guest, &twin[i]), -EINPROGRESS);
        nic_expect(nic, VMRI_UPLINK_CREATE_MR);
        nic_made(nic, twin[i].handle, i + 1, 0);
    }
}

/* Events that find the EQ full are told later, of twins that have gone, too. */
TEST(uplink_events_wait_for_room)
{
    enum { TWINS = 40 };
    static struct vmri_twin twin[TWINS];
    struct nic *nic = nic_new();
    struct guest_mr mr;
    struct guest *g;
    unsigned int i;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    make_twins(nic, &mr, twin, TWINS);
    for ( i = 0; i < TWINS; i++ )
        CHECK_EQ(nic_event(g, VMRI_OP_twin_create, twin[i].handle), i + 1);
    for ( i = 0; i < TWINS; i++ )
    {
        CHECK_EQ(twin_destroy(g, twin[i].handle), -EINPROGRESS);
        nic_gone(nic, nic_expect(nic, VMRI_UPLINK_DESTROY).m.twin);
    }
    CHECK_EQ(twin_destroy(g, twin[TWINS - 1].handle), -ENOENT);
    for ( i = 0; i < TWINS; i++ )
        CHECK_EQ(nic_event(g, VMRI_OP_twin_destroy, twin[i].handle), 0);

    /* The next one sweeps them away. */
    twin[0] = twin_of_mr(&mr, 0);
    nic_make(nic, g, &twin[0]);
}

/* What waits to be told of a twin is not told once it is to go. */
TEST(uplink_event_that_nobody_wants)
{
    enum { TWINS = 20 };
    static struct vmri_twin twin[TWINS];
    struct nic *nic = nic_new();
    struct guest_mr mr;
    struct guest *g;
    unsigned int i;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    make_twins(nic, &mr, twin, TWINS);
    CHECK_EQ(twin_destroy(g, twin[18].handle), -EINPROGRESS);
    for ( i = 0; i < TWINS; i++ )
        if ( i != 18 )
            CHECK_EQ(nic_event(g, VMRI_OP_twin_create, twin[i].handle), i + 1);
    nic_no_event(g);
}

/* A result for a twin that is not the one it was: it is passed over. */
TEST(uplink_late_results)
{
    struct nic *nic = nic_new();
    struct vmri_twin twin, next;
    struct guest_mr mr;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    twin = twin_of_mr(&mr, 0);
    CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
    nic_expect(nic, VMRI_UPLINK_CREATE_MR);

    /* It goes before it was made. */
    nic_gone(nic, twin.handle);
    CHECK_EQ(twin_destroy(g, twin.handle), -EINPROGRESS);
    CHECK_EQ(twin_destroy(g, twin.handle), -EBUSY);
    nic_expect(nic, VMRI_UPLINK_DESTROY);
    nic_made(nic, twin.handle, NIC_KEY, 0);
    nic_no_event(g);
    nic_gone(nic, twin.handle);
    CHECK_EQ(nic_event(g, VMRI_OP_twin_destroy, twin.handle), 0);

    next = twin_of_mr(&mr, 0);
    CHECK_EQ(twin_create(g, &next), -EINPROGRESS);
    nic_made(nic, twin.handle, NIC_KEY, 0);
    nic_gone(nic, twin.handle);
    nic_moved(nic, twin.handle, VMRI_QPS_RTR, 0);
    nic_moved(nic, next.handle, VMRI_QPS_RTR, 0);
    nic_say(nic, (struct vmri_uplink_result){ .twin = next.handle,
                                              .type = 99 });
    nic_say(nic, (struct vmri_uplink_result){ .twin = next.handle,
                                              .type = VMRI_UPLINK_SENT });
    nic_no_event(g);
}

TEST(uplink_results_from_bad_memory)
{
    struct vmri_uplink_result r[40] = { { .twin = 1 } };
    struct nic *nic = nic_new();

    env_test_fail(ENV_FAIL_COPY_FROM, 2);
    CHECK_EQ(nic_done(nic, r, 40), -EFAULT);
    env_test_fail(ENV_FAIL_COPY_FROM, 3);
    CHECK_EQ(nic_done(nic, r, 40), 16);
    CHECK_EQ(nic_done(nic, r, 40), 40);
}

/* ---- ends ---- */

/* What the device had is orphaned, and goes when the NIC is done with it. */
TEST(uplink_device_goes_first)
{
    struct nic *nic = nic_new();
    struct vmri_twin twin;
    unsigned int i, n = 0;
    struct nic_msg msg;
    struct guest_mr mr;
    struct guest *g;
    uint32_t t;

    nic_fabric();
    g = nic_guest(nic, 1);
    nic_mr(nic, g, 4096, 0, &t);
    nic_qp(nic, g, NULL);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    for ( i = 0; i < 300; i++ )
    {
        twin = twin_of_mr(&mr, 0);
        CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
    }
    CHECK_EQ(dom0_detach(1, g->dev), 0);

    for ( ; ; )
    {
        while ( nic_take(nic, &msg) )
            if ( msg.m.type == VMRI_UPLINK_DESTROY )
            {
                n++;
                nic_made(nic, msg.m.twin, 7, 0);
                nic_gone(nic, msg.m.twin);
                nic_gone(nic, msg.m.twin);
            }
        if ( !env_load(&nic->hdr->full) )
            break;
        CHECK_EQ(nic_done(nic, NULL, 0), 0);
    }
    CHECK_EQ(n, 302);
    CHECK_EQ(nic_close(nic), 0);
}

/* Once a device is not found any more, nothing is written to its rings. */
TEST(uplink_nothing_is_told_to_who_goes)
{
    struct nic *nic = nic_new();
    struct vmri_ctl_detach arg = { .domid = 1 };
    struct guest dom0 = { .domain = nic->domain };
    struct vmri_twin twin;
    struct guest_mr mr;
    struct guest *g;
    unsigned int i;
    uint32_t prod;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    for ( i = 0; i < 100; i++ )
    {
        twin = twin_of_mr(&mr, 0);
        CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
    }
    CHECK_EQ(guest_call_once(&dom0, VMRI_OP_ctl_detach, &arg, sizeof(arg)),
             -ERESTART);
    prod = g->eq[1]->hdr->prod;
    nic_made(nic, twin.handle, 7, 0);
    CHECK_EQ(g->eq[1]->hdr->prod, prod);
    CHECK_EQ(nic_close(nic), 0);
    CHECK_EQ(g->eq[1]->hdr->prod, prod);
    CHECK_EQ(guest_call(&dom0, VMRI_OP_ctl_detach | VMRI_CONTINUE, &arg,
                        sizeof(arg)), 0);
}

/* The domain ends while commands are under way, and is forgotten. */
TEST(uplink_domain_dies_in_between)
{
    struct nic *nic = nic_new();
    struct vmri_twin twin, other;
    struct guest_mr mr;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    twin = other = twin_of_mr(&mr, 0);
    nic_make(nic, g, &other);
    CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
    CHECK_EQ(twin_destroy(g, other.handle), -EINPROGRESS);
    env_test_domain_dying(g->domain);
    while ( vmri_domain_teardown(g->domain) == -ERESTART )
        ;
    nic_expect(nic, VMRI_UPLINK_CREATE_MR);
    CHECK_EQ(nic_expect(nic, VMRI_UPLINK_DESTROY).m.twin, other.handle);
    CHECK_EQ(nic_expect(nic, VMRI_UPLINK_DESTROY).m.twin, twin.handle);
    nic_made(nic, twin.handle, 8, 0);
    nic_gone(nic, twin.handle);
    nic_gone(nic, other.handle);
    nic_expect_none(nic);
}

/* dev_destroy, and the device is made anew. */
TEST(uplink_device_is_emptied)
{
    struct nic *nic = nic_new();
    struct guest *g;
    uint32_t twin;

    nic_fabric();
    g = nic_guest(nic, 1);
    nic_mr(nic, g, 4096, 0, &twin);
    CHECK_EQ(guest_call(g, VMRI_OP_dev_destroy, NULL, 0), 0);
    CHECK_EQ(nic_expect(nic, VMRI_UPLINK_DESTROY).m.twin, twin);
    g->eq[1] = NULL;
    guest_start(g);
    CHECK_EQ(try_port_eq(g, &g->eq[1]), 0);
    CHECK_EQ(twin_destroy(g, twin), -ENOENT);
    nic_mr(nic, g, 4096, 0, &twin);
    nic_no_event(g);
}

/* The EQ goes while events of twins wait in it. */
TEST(uplink_eq_goes_first)
{
    enum { TWINS = 40 };
    static struct vmri_twin twin[TWINS];
    struct nic *nic = nic_new();
    struct guest_mr mr;
    struct guest *g;
    unsigned int i;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    make_twins(nic, &mr, twin, TWINS);
    CHECK_EQ(eq_destroy(g->eq[1]), 0);
    CHECK_EQ(twin_destroy(g, twin[0].handle), -EINPROGRESS);
    nic_gone(nic, nic_expect(nic, VMRI_UPLINK_DESTROY).m.twin);
    CHECK_EQ(try_port_eq(g, &g->eq[1]), 0);
    for ( i = 1; i < TWINS; i++ )
        nic_end(nic, g, twin[i].handle);
}

TEST(uplink_closes_first)
{
    struct nic *nic = nic_new();
    struct vmri_twin making, ending;
    struct guest *g;
    struct guest_mr mr, pages;
    struct nic again;
    uint32_t twin, i;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = nic_mr(nic, g, 4096, 0, &twin);
    pages = mr_pages(g, 4096, 0, LAYOUT_RUN);
    making = ending = twin_of_mr(&pages, 0);
    nic_make(nic, g, &ending);
    CHECK_EQ(twin_destroy(g, ending.handle), -EINPROGRESS);
    CHECK_EQ(twin_create(g, &making), -EINPROGRESS);
    CHECK_EQ(nic_close(nic), 0);
    CHECK_EQ(nic_event(g, VMRI_OP_twin_destroy, ending.handle), 0);
    CHECK_EQ(nic_event(g, VMRI_OP_twin_create, making.handle), -ENODEV);
    CHECK_EQ(twin_destroy(g, making.handle), -ENOENT);
    CHECK_EQ(twin_create(g, &making), -ENODEV);
    CHECK_EQ(mr_deregister(&mr), 0);

    /* Another with its number is not the one that it had. */
    CHECK_EQ(try_nic(&again, 8, &nic_caps), 0);
    CHECK_EQ(again.uplink, nic->uplink);
    CHECK_EQ(twin_create(g, &making), -ENODEV);
    for ( i = 0; i < 4; i++ )
        CHECK_EQ(twin_destroy(g, i), -ENOENT);
}

TEST(uplink_closes_in_steps)
{
    struct nic *nic = nic_new();
    struct vmri_ctl_uplink arg = { .uplink = nic->uplink };
    struct guest dom0 = { .domain = nic->domain };
    struct vmri_twin twin;
    unsigned int i, steps = 0;
    struct guest_mr mr;
    struct guest *g;
    long rc;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    for ( i = 0; i < 200; i++ )
    {
        twin = twin_of_mr(&mr, 0);
        CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
    }
    rc = guest_call_once(&dom0, VMRI_OP_ctl_uplink_close, &arg, sizeof(arg));
    while ( rc == -ERESTART )
    {
        steps++;
        CHECK_EQ(nic_done(nic, NULL, 0), -ENOENT);
        CHECK_EQ(twin_create(g, &twin), -ENODEV);
        CHECK_EQ(try_uplinked(1, nic->uplink), -ENODEV);
        rc = guest_call_once(&dom0, VMRI_OP_ctl_uplink_close | VMRI_CONTINUE,
                             &arg, sizeof(arg));
    }
    CHECK_EQ(rc, 0);
    CHECK(steps >= 3);
    CHECK_EQ(guest_call_once(&dom0, VMRI_OP_ctl_uplink_close | VMRI_CONTINUE,
                             &arg, sizeof(arg)), 0);
}
