/* SPDX-License-Identifier: GPL-2.0-only */
/* fabric.c: fabrics that dom0 creates, and tenants that know nothing of it. */
#include "pair.h"
#include "internal.h"

#undef memcpy
#undef memset

#define ID  0x123456U

static long fabric_call(unsigned int cmd, struct vmri_ctl_fabric *arg)
{
    return dom0_call(cmd, arg, sizeof(*arg));
}

/* The number is in *id, or goes there. */
static long fabric_create(uint32_t *id, const char *name)
{
    struct vmri_ctl_fabric arg = { .fabric = *id };
    long rc;

    strncpy(arg.name, name, sizeof(arg.name));
    rc = fabric_call(VMRI_OP_ctl_fabric_create, &arg);
    *id = arg.fabric;
    return rc;
}

static long fabric_delete(uint32_t id)
{
    struct vmri_ctl_fabric arg = { .fabric = id };

    return fabric_call(VMRI_OP_ctl_fabric_delete, &arg);
}

static struct vmri_ctl_fabric fabric_at(uint32_t id)
{
    struct vmri_ctl_fabric arg = { .fabric = id };

    CHECK_EQ(fabric_call(VMRI_OP_ctl_fabric_list, &arg), 0);
    return arg;
}

static long attach_created(uint32_t fabric)
{
    struct vmri_ctl_attach arg = {
        .domid = 1, .dev_id = VMRI_DEV_ANY, .fabric = fabric,
        .flags = VMRI_ATTACH_CREATED,
    };

    return dom0_call(VMRI_OP_ctl_attach, &arg, sizeof(arg));
}

TEST(fabric_in_use_stays)
{
    struct guest *g = guest_bare(1);
    struct vmri_ctl_fabric f;
    uint32_t id = ID;

    CHECK_EQ(attach_created(ID), -ENOENT);
    CHECK_EQ(fabric_create(&id, "blue-1"), 0);
    f = fabric_at(0);
    CHECK_EQ(f.fabric, ID);
    CHECK_EQ(f.created, 1);
    CHECK_EQ(f.devices, 0);
    CHECK_EQ(strcmp(f.name, "blue-1"), 0);

    CHECK_EQ(attach_created(ID), 0);
    CHECK_EQ(fabric_at(ID).devices, 1);
    CHECK_EQ(fabric_delete(ID), -EBUSY);
    CHECK_EQ(dom0_detach(1, g->dev), 0);
    CHECK_EQ(fabric_at(ID).devices, 0);
    CHECK_EQ(fabric_delete(ID), 0);
    CHECK_EQ(fabric_delete(ID), -ENOENT);
    CHECK_EQ(fabric_call(VMRI_OP_ctl_fabric_list, &f), -ENOENT);
}

/* A device makes one that is not there, and it goes with the last. */
TEST(fabric_that_nobody_created)
{
    struct guest *g = guest_new(1);
    uint32_t id = GUEST_FABRIC, other = 3;

    CHECK_EQ(fabric_at(0).fabric, GUEST_FABRIC);
    CHECK_EQ(fabric_at(0).created, 0);
    CHECK_EQ(fabric_delete(GUEST_FABRIC), -ENOENT);
    CHECK_EQ(attach_created(GUEST_FABRIC), -ENOENT);

    /* Created under its devices, it stays without them. */
    CHECK_EQ(fabric_create(&other, "other"), 0);
    CHECK_EQ(fabric_create(&id, "other"), -EEXIST);
    CHECK_EQ(fabric_create(&id, "late"), 0);
    CHECK_EQ(fabric_create(&id, "later"), -EEXIST);
    CHECK_EQ(fabric_at(GUEST_FABRIC).devices, 1);
    CHECK_EQ(dom0_detach(1, g->dev), 0);
    CHECK_EQ(fabric_at(GUEST_FABRIC).created, 1);
    CHECK_EQ(fabric_delete(GUEST_FABRIC), 0);
    CHECK_EQ(fabric_at(0).fabric, 3);
}

/* In order, whatever the order of their creation; the lowest free is chosen. */
TEST(fabric_numbers)
{
    static const uint32_t ids[] = { 5, 1, VMRI_FABRIC_MAX, 2, 0 };
    uint32_t id, last = 0;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(ids); i++ )
    {
        id = ids[i];
        CHECK_EQ(fabric_create(&id, ""), 0);
    }
    for ( i = 3; i < 8; i++ )
    {
        id = VMRI_FABRIC_ANY;
        CHECK_EQ(fabric_create(&id, ""), 0);
        CHECK_EQ(id, i < 5 ? i : i + 1);
    }
    for ( i = 0; i < 10; i++, last = id + 1 )
    {
        id = fabric_at(last).fabric;
        CHECK_EQ(id, i < 9 ? i : VMRI_FABRIC_MAX);
    }
}

TEST(fabric_refused)
{
    struct guest *g = guest_new(1);
    static const struct {
        struct vmri_ctl_fabric arg;
        long rc;
    } bad[] = {
        { { .fabric = VMRI_FABRIC_MAX + 1 }, -EINVAL },
        { { .fabric = 1, .link = 2 }, -EINVAL },
        { { .fabric = 1, .created = 1 }, -EINVAL },
        { { .fabric = 1, .devices = 1 }, -EINVAL },
        { { .fabric = 1, .reserved0 = 1 }, -EINVAL },
        { { .fabric = 1, .closed = 1 }, -EINVAL },
        { { .fabric = 1, .rules = 1 }, -EINVAL },
        { { .fabric = 1, .name = "1st" }, -EINVAL },
        { { .fabric = 1, .name = "-a" }, -EINVAL },
        { { .fabric = 1, .name = "a b" }, -EINVAL },
        { { .fabric = 1, .name = "a\nb" }, -EINVAL },
        { { .fabric = 1, .name = "a\0b" }, -EINVAL },
        { { .fabric = 1, .name = { [1] = 'a' } }, -EINVAL },
        { { .fabric = 1, .name = "aaaaaaaaaabbbbbbbbbbccccccccccdd" }, -EINVAL },
    };
    struct vmri_ctl_fabric arg;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(bad); i++ )
    {
        arg = bad[i].arg;
        CHECK_AT(fabric_call(VMRI_OP_ctl_fabric_create, &arg), bad[i].rc,
                 "case %u", i);
    }

    arg = (struct vmri_ctl_fabric){ .fabric = 1 };
    for ( i = VMRI_OP_ctl_fabric_create; i <= VMRI_OP_ctl_fabric_list; i++ )
    {
        CHECK_EQ(guest_call(g, i, &arg, sizeof(arg)), -EPERM);
        CHECK_EQ(dom0_call(i, &arg, sizeof(arg) - 1), -EFAULT);
    }
    env_test_fail(ENV_FAIL_ALLOC, 1);
    CHECK_EQ(fabric_call(VMRI_OP_ctl_fabric_create, &arg), -ENOMEM);
    env_test_fail(ENV_FAIL_COPY_TO, 1);
    CHECK_EQ(fabric_call(VMRI_OP_ctl_fabric_create, &arg), -EFAULT);
    arg.fabric = 0;
    CHECK_EQ(fabric_at(0).fabric, GUEST_FABRIC);
}

TEST(fabric_number_of_them_is_limited)
{
    uint32_t id;
    unsigned int i;

    for ( i = 0; i < VMRI_FABRICS; i++ )
    {
        id = VMRI_FABRIC_ANY;
        CHECK_EQ(fabric_create(&id, ""), 0);
    }
    id = VMRI_FABRIC_ANY;
    CHECK_EQ(fabric_create(&id, ""), -ENOSPC);
    CHECK_EQ(fabric_delete(77), 0);
    CHECK_EQ(fabric_create(&id, ""), 0);
    CHECK_EQ(id, 77);
}

/* ---- tenants ---- */

#define TENANTS 2
#define GUIDS   0x0102030405060700ULL

struct tenant {
    struct guest *guest[2];
    struct guest_qp *rc[2], *ud[2];
    struct guest_mr mr[2];
};

/* A guest with the same numbers as its like of the other tenant. */
static void tenant_guest(struct tenant *t, uint32_t fabric, unsigned int domid,
                         unsigned int i)
{
    struct vmri_ctl_attach arg = {
        .domid = domid, .dev_id = 0, .fabric = fabric, .lid = 11 + i,
        .guid = GUIDS + i, .flags = VMRI_ATTACH_CREATED,
    };
    struct guest_qp_opts rc = { .qpn = 100 }, ud = { .type = VMRI_QPT_UD };

    ud.qpn = 200;
    t->guest[i] = guest_bare(domid);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_attach, &arg, sizeof(arg)), 0);
    guest_start(t->guest[i]);
    t->rc[i] = guest_qp(t->guest[i], &rc);
    t->ud[i] = guest_qp(t->guest[i], &ud);
    t->mr[i] = guest_mr(t->guest[i], 8192, 0, LAYOUT_RUN,
                        VMRI_ACCESS_LOCAL_WRITE | VMRI_ACCESS_REMOTE_WRITE);
}

/* LIDs, GIDs, queue pairs, addresses and keys of two tenants are the same. */
TEST(fabric_tenants_side_by_side)
{
    struct tenant t[TENANTS];
    unsigned int i, n;

    for ( n = 0; n < TENANTS; n++ )
    {
        uint32_t fabric = VMRI_FABRIC_ANY;

        CHECK_EQ(fabric_create(&fabric, n ? "blue" : "red"), 0);
        for ( i = 0; i < 2; i++ )
            tenant_guest(&t[n], fabric, 1 + 2 * n + i, i);
        qp_connect(t[n].rc[0], t[n].rc[1], NULL);
        qp_connect(t[n].ud[0], t[n].ud[1], NULL);
    }
    for ( i = 0; i < 2; i++ )
    {
        CHECK_EQ(t[0].guest[i]->lid, t[1].guest[i]->lid);
        CHECK_EQ(t[0].guest[i]->attr.port_guid, t[1].guest[i]->attr.port_guid);
        CHECK_EQ(t[0].rc[i]->qpn, t[1].rc[i]->qpn);
        CHECK_EQ(t[0].ud[i]->qpn, t[1].ud[i]->qpn);
        CHECK_EQ(t[0].mr[i].key, t[1].mr[i].key);
    }

    /* What one tenant sends, it gets, and the other not. */
    for ( n = 0; n < TENANTS; n++ )
    {
        struct guest_wr wr = {
            .wr_id = 1, .opcode = VMRI_WR_RDMA_WRITE,
            .flags = VMRI_SEND_SIGNALED, .num_sge = 1,
            .sge = { mr_sge(&t[n].mr[0], 0, 1000) },
            .remote_addr = t[n].mr[1].iova, .rkey = t[n].mr[1].key,
        };
        struct vmri_sge in = mr_sge(&t[n].mr[1], 4096, 1040);

        memset(t[n].mr[0].mem, 'a' + n, 1000);
        qp_recv(t[n].ud[1], 2, &in, 1);
        qp_send(t[n].rc[0], &wr);
        cq_expect(t[n].rc[0]->scq, 1, 0);
        wr.opcode = VMRI_WR_SEND;
        wr.to = t[n].ud[1];
        qp_send(t[n].ud[0], &wr);
        cq_expect(t[n].ud[0]->scq, 1, 0);
        cq_expect(t[n].ud[1]->rcq, 2, 0);
        CHECK(all_bytes(t[n].mr[1].mem, 1000, 'a' + n));
        CHECK(all_bytes(t[n].mr[1].mem + 4096 + 40, 1000, 'a' + n));
        if ( !n )
        {
            CHECK(all_bytes(t[1].mr[1].mem, 8192, 0));
            cq_expect_none(t[1].ud[1]->rcq);
        }
    }
    CHECK(all_bytes(t[0].mr[1].mem, 1000, 'a'));
    cq_expect_none(t[0].ud[1]->rcq);
}
