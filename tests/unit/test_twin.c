/* SPDX-License-Identifier: GPL-2.0-only */
/* twin.c: what NICs have of guests' objects. */
#include "nic.h"
#include "internal.h"

#undef memcpy
#undef memset

/* ---- twins ---- */

TEST(uplink_twin_of_a_region)
{
    struct nic *nic = nic_new();
    struct vmri_twin twin;
    struct nic_msg msg;
    struct guest_mr mr;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 10000, 100, LAYOUT_SCATTERED);
    twin = twin_of_mr(&mr, NIC_ACCESS);
    env_store(&nic->hdr->sleeping, 1);
    env_test_notified(nic->domain, nic->port);
    CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
    CHECK_EQ(nic->hdr->sleeping, 0);
    CHECK_EQ(env_test_notified(nic->domain, nic->port), 1);

    msg = nic_expect(nic, VMRI_UPLINK_CREATE_MR);
    CHECK_EQ(msg.m.units, 1);
    CHECK_EQ(msg.m.domid, 1);
    CHECK_EQ(msg.m.dev_id, g->dev);
    CHECK_EQ(msg.m.twin, twin.handle);
    CHECK_EQ(msg.m.u.mr.iova, mr.iova);
    CHECK_EQ(msg.m.u.mr.length, 10000);
    CHECK_EQ(msg.m.u.mr.access, NIC_ACCESS);
    CHECK_EQ(msg.m.u.mr.offset, 100);
    CHECK_EQ(msg.m.u.mr.pages, 3);
    CHECK_EQ(msg.m.u.mr.list, 8);
    nic_no_event(g);

    /* Too early, under another key, and as it is. */
    CHECK_EQ(try_twin_mr(&mr, NIC_ACCESS, twin.handle, NIC_KEY), -EINVAL);
    nic_made(nic, twin.handle, 0xfffff1f2, 0);
    CHECK_EQ(nic_event(g, VMRI_OP_twin_create, twin.handle), 0xfffff1f2);
    CHECK_EQ(try_twin_mr(&mr, NIC_ACCESS, twin.handle, NIC_KEY), -EINVAL);
    CHECK_EQ(try_twin_mr(&mr, NIC_ACCESS, twin.handle, 0xfffff1f2), 0);
    CHECK_EQ(mr.key, 0xfffff1f2);

    /* Another answer changes nothing. */
    nic_made(nic, twin.handle, 7, 0);
    nic_no_event(g);

    CHECK_EQ(twin_destroy(g, twin.handle), -EBUSY);
    CHECK_EQ(mr_deregister(&mr), 0);
    CHECK_EQ(try_twin_mr(&mr, NIC_ACCESS, twin.handle, 0xfffff1f2), -EBUSY);
    nic_end(nic, g, twin.handle);
    CHECK_EQ(twin_destroy(g, twin.handle), -ENOENT);
    nic_expect_none(nic);
}

TEST(uplink_twin_of_a_queue_pair)
{
    static const struct guest_qp_opts opts = {
        .sq_log2 = 5, .rq_log2 = 3, .max_send_sge = 3, .max_recv_sge = 2,
        .max_inline = 64,
    };
    struct nic *nic = nic_new();
    struct vmri_twin twin;
    struct guest_qp *qp;
    struct nic_msg msg;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    qp = qp_prepare(g, &opts);
    twin = twin_of_qp(qp);
    CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
    msg = nic_expect(nic, VMRI_UPLINK_CREATE_QP);
    CHECK_EQ(msg.m.u.qp.type, VMRI_QPT_RC);
    CHECK_EQ(msg.m.u.qp.max_send_wr, 32);
    CHECK_EQ(msg.m.u.qp.max_recv_wr, 8);
    CHECK_EQ(msg.m.u.qp.max_send_sge, 3);
    CHECK_EQ(msg.m.u.qp.max_recv_sge, 2);
    CHECK_EQ(msg.m.u.qp.max_inline, 64);
    nic_made(nic, twin.handle, 0x123456, 0);
    CHECK_EQ(nic_event(g, VMRI_OP_twin_create, twin.handle), 0x123456);

    qp->arg.twin = twin.handle;
    qp->arg.qpn = 0x123456;
    CHECK_EQ(try_qp(qp), 0);
    CHECK_EQ(qp->qpn, 0x123456);
    CHECK_EQ(twin_destroy(g, twin.handle), -EBUSY);
    CHECK_EQ(qp_destroy(qp), 0);
    CHECK_EQ(try_qp(qp), -EBUSY);
    nic_end(nic, g, twin.handle);
    CHECK_EQ(try_qp(qp), -ENOENT);
}

TEST(uplink_twin_that_is_not_made)
{
    static const struct {
        uint32_t number;
        int error, told;
    } answers[] = {
        { 1, -ENOMEM, -ENOMEM }, { 1, 5, -EIO }, { 0, 0, -EIO },
        { 1, 0, -EIO }, { 0x1000000, 0, -EIO },
    };
    struct nic *nic = nic_new();
    struct vmri_twin twin;
    struct guest_qp *qp;
    struct guest *g;
    unsigned int i;

    nic_fabric();
    g = nic_guest(nic, 1);
    qp = qp_prepare(g, &(const struct guest_qp_opts){ .qpn = 2 });
    for ( i = 0; i < ARRAY_SIZE(answers); i++ )
    {
        twin = twin_of_qp(qp);
        CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
        nic_expect(nic, VMRI_UPLINK_CREATE_QP);
        nic_made(nic, twin.handle, answers[i].number, answers[i].error);
        CHECK_EQ(nic_event(g, VMRI_OP_twin_create, twin.handle),
                 answers[i].told);
        qp->arg.twin = twin.handle;
        CHECK_EQ(try_qp(qp), -EINVAL);
        nic_end(nic, g, twin.handle);
    }
}

static void twin_refused(struct guest *g, struct vmri_twin twin, long rc,
                         const char *what)
{
    CHECK_AT(twin_create(g, &twin), rc, "%s", what);
}

#define REFUSED(base, rc, change) do {                          \
    struct vmri_twin t_ = base;                                 \
    change;                                                     \
    twin_refused(g, t_, rc, #change);                           \
} while ( 0 )

TEST(uplink_twins_refused)
{
    struct nic *nic = nic_new();
    struct guest *g, *plain = guest_new(2), *deaf = guest_bare(3);
    struct vmri_twin mr, qp;
    struct guest_mr pages;

    nic_fabric();
    g = nic_guest(nic, 1);
    pages = mr_pages(g, 4096, 0, LAYOUT_RUN);
    mr = twin_of_mr(&pages, 0);
    qp = twin_of_qp(qp_prepare(g, &(const struct guest_qp_opts){ 0 }));

    REFUSED(mr, -EINVAL, t_.reserved = 1);
    REFUSED(mr, -EOPNOTSUPP, t_.kind = VMRI_RES_CQ);
    REFUSED(mr, -EOPNOTSUPP, t_.kind = 1000);
    REFUSED(mr, -ENOENT, t_.pd = 77);
    REFUSED(mr, -EINVAL, t_.u.mr.access = 0x1000);
    REFUSED(mr, -EINVAL, t_.u.mr.access = VMRI_ACCESS_REMOTE_WRITE);
    REFUSED(mr, -EINVAL, t_.u.mr.length = 0);
    REFUSED(mr, -EINVAL, t_.u.mr.length = ~0ULL);
    REFUSED(mr, -EINVAL, t_.u.mr.length = nic_caps.max_mr_size + 1;
                         t_.u.mr.pages = 513);
    REFUSED(mr, -EINVAL, t_.u.mr.pages = 2);
    REFUSED(mr, -EINVAL, t_.u.mr.offset = 1);
    REFUSED(mr, -EINVAL, t_.u.mr.offset = 4096);
    REFUSED(qp, -EOPNOTSUPP, t_.u.qp.type = VMRI_QPT_UD);
    REFUSED(qp, -EINVAL, t_.u.qp.sq_log2_entries = 10);
    REFUSED(qp, -EINVAL, t_.u.qp.rq_log2_entries = 200);
    REFUSED(qp, -EINVAL, t_.u.qp.max_send_sge = 5);
    REFUSED(qp, -EINVAL, t_.u.qp.max_recv_sge = 5);
    REFUSED(qp, -EINVAL, t_.u.qp.max_inline = 129);
    REFUSED(qp, -EINVAL, t_.u.qp.reserved[2] = 1);
    REFUSED(qp, -EINVAL, t_.u.raw[1] |= 1ULL << 32);
    REFUSED(qp, -EINVAL, t_.u.raw[4] = 1);

    twin_refused(plain, mr, -EOPNOTSUPP, "no uplink");
    CHECK_EQ(twin_destroy(plain, 1), -ENOENT);
    CHECK_EQ(try_uplinked(3, nic->uplink), 0);
    guest_start(deaf);
    mr.pd = deaf->pd;
    twin_refused(deaf, mr, -EINVAL, "no EQ for it");
    nic_expect_none(nic);
}

/* The guest cannot be told the handle: the twin goes again. */
TEST(uplink_twin_nobody_knows)
{
    struct nic *nic = nic_new();
    struct vmri_twin twin;
    struct guest_mr mr;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    twin = twin_of_mr(&mr, 0);
    env_test_fail(ENV_FAIL_COPY_TO, 1);
    CHECK_EQ(twin_create(g, &twin), -EFAULT);
    nic_expect(nic, VMRI_UPLINK_CREATE_MR);
    nic_gone(nic, nic_expect(nic, VMRI_UPLINK_DESTROY).m.twin);
}

TEST(uplink_without_memory)
{
    struct nic *nic = nic_new();
    struct vmri_twin twin;
    struct guest_mr mr;
    struct guest_qp *qp;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    twin = twin_of_mr(&mr, 0);
    env_test_fail(ENV_FAIL_ALLOC, 1);
    CHECK_EQ(twin_create(g, &twin), -ENOMEM);
    env_test_fail(ENV_FAIL_ALLOC, ENV_ALWAYS);
    CHECK_EQ(twin_create(g, &twin), -ENOMEM);
    env_test_fail(ENV_FAIL_ALLOC, 0);
    nic_expect_none(nic);

    qp = qp_prepare(g, &(const struct guest_qp_opts){ 0 });
    twin = twin_of_qp(qp);
    qp->arg.qpn = nic_make(nic, g, &twin);
    qp->arg.twin = twin.handle;
    env_test_fail(ENV_FAIL_ALLOC, 2);
    CHECK_EQ(try_qp(qp), -ENOMEM);
    CHECK_EQ(try_qp(qp), 0);
}

TEST(uplink_no_more_twins_than_objects)
{
    struct vmri_ctl_limits limits = {
        .domid = 1, .mask = 1U << VMRI_RES_MR,
        .limit.n = { [VMRI_RES_MR] = 3 },
    };
    struct nic *nic = nic_new();
    struct vmri_twin twin[4];
    struct guest_mr mr;
    struct guest *g;
    unsigned int i;

    nic_fabric();
    g = nic_guest(nic, 1);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_limits, &limits, sizeof(limits)), 0);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    for ( i = 0; i < 4; i++ )
    {
        twin[i] = twin_of_mr(&mr, 0);
        if ( i < 3 )
            nic_make(nic, g, &twin[i]);
        else
            CHECK_EQ(twin_create(g, &twin[i]), -ENOSPC);
    }
    nic_qp(nic, g, NULL);
    nic_end(nic, g, twin[1].handle);
    nic_make(nic, g, &twin[3]);
}

/* ---- objects and their twins ---- */

/* A region that says other than its twin. */
TEST(uplink_region_unlike_its_twin)
{
    struct nic *nic = nic_new();
    struct guest_mr mr, other;
    struct vmri_twin twin;
    struct guest_qp *qp;
    struct guest *g;
    uint32_t key, pd;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 8192, 0, LAYOUT_SCATTERED);
    twin = twin_of_mr(&mr, NIC_ACCESS);
    key = nic_make(nic, g, &twin);

    other = mr;
    other.iova += 4096;
    CHECK_EQ(try_twin_mr(&other, NIC_ACCESS, twin.handle, key), -EINVAL);
    other = mr;
    other.length--;
    CHECK_EQ(try_twin_mr(&other, NIC_ACCESS, twin.handle, key), -EINVAL);
    other = mr;
    other.offset = 1;
    other.length--;
    CHECK_EQ(try_twin_mr(&other, NIC_ACCESS, twin.handle, key), -EINVAL);
    CHECK_EQ(try_twin_mr(&mr, VMRI_ACCESS_LOCAL_WRITE, twin.handle, key),
             -EINVAL);
    CHECK_EQ(try_twin_mr(&mr, NIC_ACCESS, twin.handle, 0), -EINVAL);
    CHECK_EQ(try_twin_mr(&mr, NIC_ACCESS, 0, key), -EINVAL);
    CHECK_EQ(try_twin_mr(&mr, NIC_ACCESS, twin.handle + 1, key), -ENOENT);
    pd = g->pd;
    g->pd = guest_pd(g);
    CHECK_EQ(try_twin_mr(&mr, NIC_ACCESS, twin.handle, key), -EINVAL);
    g->pd = pd;
    qp = qp_prepare(g, &(const struct guest_qp_opts){ 0 });
    qp->arg.qpn = key & 0xffffff;
    qp->arg.twin = twin.handle;
    CHECK_EQ(try_qp(qp), -EINVAL);
    CHECK_EQ(try_twin_mr(&mr, NIC_ACCESS, twin.handle, key), 0);
}

TEST(uplink_queue_pair_unlike_its_twin)
{
    struct nic *nic = nic_new();
    struct vmri_qp_create good;
    struct vmri_twin twin;
    struct guest_qp *qp;
    struct guest *g;
    unsigned int i;

    nic_fabric();
    g = nic_guest(nic, 1);
    qp = qp_prepare(g, &(const struct guest_qp_opts){ .max_inline = 64 });
    twin = twin_of_qp(qp);
    qp->arg.qpn = nic_make(nic, g, &twin);
    qp->arg.twin = twin.handle;
    good = qp->arg;

    for ( i = 0; i < 9; i++ )
    {
        qp->arg = good;
        switch ( i )
        {
        case 0: qp->arg.type = VMRI_QPT_UC; break;
        case 1: qp->arg.sq_log2_entries--; break;
        case 2: qp->arg.rq_log2_entries--; break;
        case 3: qp->arg.max_send_sge--; break;
        case 4: qp->arg.max_recv_sge--; break;
        case 5: qp->arg.max_inline--; break;
        case 6: qp->arg.qpn++; break;
        case 7: qp->arg.pd = guest_pd(g); break;
        case 8: qp->arg.qpn = 0; break;
        }
        CHECK_AT(try_qp(qp), -EINVAL, "change %u", i);
    }
    qp->arg = good;
    qp->arg.flags = VMRI_QPF_KERNEL;
    CHECK_EQ(try_qp(qp), -EOPNOTSUPP);
    qp->arg = good;
    CHECK_EQ(try_qp(qp), 0);
}

/* A twin is nobody's but its device's, whoever knows its handle. */
TEST(uplink_twin_of_another_device)
{
    struct nic *nic = nic_new();
    struct guest *g, *thief;
    struct guest_mr mr, other;
    struct vmri_twin twin;
    struct guest_qp *qp;
    uint32_t key;

    nic_fabric();
    g = nic_guest(nic, 1);
    thief = nic_guest(nic, 2);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    twin = twin_of_mr(&mr, NIC_ACCESS);
    key = nic_make(nic, g, &twin);
    other = mr_pages(thief, 4096, 0, LAYOUT_RUN);
    other.iova = mr.iova;
    CHECK_EQ(try_twin_mr(&other, NIC_ACCESS, twin.handle, key), -ENOENT);
    CHECK_EQ(twin_destroy(thief, twin.handle), -ENOENT);

    qp = qp_prepare(g, &(const struct guest_qp_opts){ 0 });
    twin = twin_of_qp(qp);
    key = nic_make(nic, g, &twin);
    qp = qp_prepare(thief, &(const struct guest_qp_opts){ 0 });
    qp->arg.qpn = key;
    qp->arg.twin = twin.handle;
    CHECK_EQ(try_qp(qp), -ENOENT);

    /* And one without an uplink. */
    qp = qp_prepare(guest_new(3), &(const struct guest_qp_opts){ .qpn = 9 });
    qp->arg.twin = twin.handle;
    CHECK_EQ(try_qp(qp), -EOPNOTSUPP);
}

/* PDs with the same handle, one after the other, are not the same. */
TEST(uplink_tells_pds_apart)
{
    struct nic *nic = nic_new();
    struct vmri_object pd = { .handle = 0 };
    struct vmri_twin twin;
    uint32_t first, i;
    struct guest_mr mr;
    struct guest *g;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = mr_pages(g, 4096, 0, LAYOUT_RUN);
    CHECK_EQ(guest_call(g, VMRI_OP_pd_create, &pd, sizeof(pd)), 0);
    twin = twin_of_mr(&mr, 0);
    twin.pd = pd.handle;
    CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
    first = nic_expect(nic, VMRI_UPLINK_CREATE_MR).m.pd;
    CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
    CHECK_EQ(nic_expect(nic, VMRI_UPLINK_CREATE_MR).m.pd, first);
    for ( i = 0; i < 3; i++ )
    {
        CHECK_EQ(guest_call(g, VMRI_OP_pd_destroy, &pd, sizeof(pd)), 0);
        CHECK_EQ(guest_call(g, VMRI_OP_pd_create, &pd, sizeof(pd)), 0);
        twin.pd = pd.handle;
        CHECK_EQ(twin_create(g, &twin), -EINPROGRESS);
        CHECK(nic_expect(nic, VMRI_UPLINK_CREATE_MR).m.pd > first + i);
    }
}

TEST(uplink_region_cannot_become_another)
{
    struct vmri_mr_reregister arg = {
        .flags = VMRI_REREG_ACCESS, .mr.access = 0,
    };
    struct nic *nic = nic_new();
    struct guest_mr mr;
    struct guest *g;
    uint32_t twin;

    nic_fabric();
    g = nic_guest(nic, 1);
    mr = nic_mr(nic, g, 4096, NIC_ACCESS, &twin);
    arg.old_key = mr.key;
    CHECK_EQ(guest_call(g, VMRI_OP_mr_reregister, &arg, sizeof(arg)),
             -EOPNOTSUPP);
    arg.mr.twin = twin;
    CHECK_EQ(guest_call(g, VMRI_OP_mr_reregister, &arg, sizeof(arg)), -EINVAL);
    CHECK_EQ(mr_deregister(&mr), 0);
}
