/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An uplink without a NIC: dom0's side of the ring, as uplink.h has it, and guests
 * whose objects have twins on it.
 */
#ifndef VMRI_NIC_H
#define VMRI_NIC_H

#include "pair.h"

#include <vmri/uplink.h>

#define NIC_LOG2    8
#define NIC_FABRIC  5
#define NIC_LID     77              /* of the peer elsewhere: nobody here has it */
#define NIC_GID     10              /* its GID's last byte */
#define NIC_PEER    0x4321          /* its QPN */
#define NIC_QPN     0x000500        /* the first that the NIC gives out */
#define NIC_KEY     0x00000911

/* What the ring had. */
struct nic_msg {
    struct vmri_uplink_msg m;
    union {
        struct vmri_qp_modify modify;
        struct vmri_sge sge[32];
        struct {
            struct vmri_datagram header;
            uint8_t data[VMRI_DATAGRAM_MAX];
        } datagram;
        uint8_t data[(VMRI_UPLINK_DATAGRAM_UNITS - 1) * VMRI_UPLINK_UNIT];
    } u;
};

struct nic {
    struct domain *domain;
    uint32_t uplink;
    uint32_t port;
    uint32_t log2;
    uint32_t cons;
    uint64_t gfn;
    struct vmri_uplink_hdr *hdr;
    uint8_t *units;
    uint32_t next_qpn, next_key;
};

static const struct vmri_uplink_caps nic_caps = {
    .max_mr_size = 2U << 20, .max_qp_wr = 1000, .max_sge = 4,
    .max_inline = 128, .max_rd_atomic = 16, .mtu = 3, .atomics = 1,
};

/* ---- dom0 ---- */

static inline long try_nic(struct nic *nic, uint32_t log2,
                           const struct vmri_uplink_caps *caps)
{
    const uint32_t nr = (uint32_t)PFN_UP(VMRI_RING_OFFSET +
                                         ((uint64_t)VMRI_UPLINK_UNIT << log2));
    struct vmri_ctl_uplink_open arg = {
        .caps = *caps, .log2_units = (uint8_t)log2,
    };
    uint64_t *list = calloc(nr, sizeof(*list));
    long rc;

    *nic = (struct nic){
        .domain = env_test_domain(0), .log2 = log2, .next_qpn = NIC_QPN,
        .next_key = NIC_KEY,
    };
    nic->gfn = env_test_pages(nic->domain, nr, true);
    nic->hdr = env_test_mem(nic->domain, nic->gfn);
    nic->units = (uint8_t *)nic->hdr + VMRI_RING_OFFSET;
    guest_frames(&arg.frames, list, nic->gfn, nr);
    env_test_expose(list, nr * sizeof(*list));
    rc = dom0_call(VMRI_OP_ctl_uplink_open, &arg, sizeof(arg));
    env_test_hide();
    free(list);
    nic->uplink = arg.uplink;
    nic->port = arg.port;
    return rc;
}

static inline struct nic *nic_new(void)
{
    struct nic *nic = calloc(1, sizeof(*nic));

    CHECK_EQ(try_nic(nic, NIC_LOG2, &nic_caps), 0);
    return nic;
}

static inline long nic_close(struct nic *nic)
{
    struct vmri_ctl_uplink arg = { .uplink = nic->uplink };

    return dom0_call(VMRI_OP_ctl_uplink_close, &arg, sizeof(arg));
}

/* The next message; false: none. */
static inline bool nic_take(struct nic *nic, struct nic_msg *msg)
{
    uint32_t mask = (1U << nic->log2) - 1, i;

    memset(msg, 0, sizeof(*msg));
    if ( env_load_acquire(&nic->hdr->prod) == nic->cons )
        return false;

    memcpy(&msg->m, nic->units + (nic->cons & mask) * VMRI_UPLINK_UNIT,
           sizeof(msg->m));
    CHECK(msg->m.units >= 1 &&
          msg->m.units <= (msg->m.type == VMRI_UPLINK_DATAGRAM
                           ? VMRI_UPLINK_DATAGRAM_UNITS
                           : VMRI_UPLINK_MSG_UNITS));
    CHECK(nic->hdr->prod - nic->cons >= msg->m.units);
    for ( i = 1; i < msg->m.units; i++ )
        memcpy(&msg->u.data[(i - 1) * VMRI_UPLINK_UNIT],
               nic->units + ((nic->cons + i) & mask) * VMRI_UPLINK_UNIT,
               VMRI_UPLINK_UNIT);
    nic->cons += msg->m.units;
    env_store_release(&nic->hdr->cons, nic->cons);
    return true;
}

/* The next message, which must be there and of this type. */
static inline struct nic_msg nic_expect(struct nic *nic, unsigned int type)
{
    struct nic_msg msg;

    CHECK(nic_take(nic, &msg));
    CHECK_EQ(msg.m.type, type);
    return msg;
}

static inline void nic_expect_none(struct nic *nic)
{
    struct nic_msg msg;

    CHECK(!nic_take(nic, &msg));
}

static inline long nic_done(struct nic *nic, const struct vmri_uplink_result *r,
                            uint32_t nr)
{
    struct vmri_ctl_uplink_done arg = {
        .results = (uintptr_t)r, .uplink = nic->uplink, .nr = nr,
    };
    long rc;

    env_test_expose((void *)(uintptr_t)r, nr * sizeof(*r));
    rc = dom0_call(VMRI_OP_ctl_uplink_done, &arg, sizeof(arg));
    env_test_hide();
    return rc;
}

static inline void nic_say(struct nic *nic, struct vmri_uplink_result r)
{
    CHECK_EQ(nic_done(nic, &r, 1), 1);
}

static inline void nic_made(struct nic *nic, uint32_t twin, uint32_t number,
                            int error)
{
    nic_say(nic, (struct vmri_uplink_result){
        .twin = twin, .type = VMRI_UPLINK_MADE, .number = number,
        .error = error,
    });
}

static inline void nic_gone(struct nic *nic, uint32_t twin)
{
    nic_say(nic, (struct vmri_uplink_result){
        .twin = twin, .type = VMRI_UPLINK_GONE,
    });
}

static inline void nic_moved(struct nic *nic, uint32_t twin, uint32_t state,
                             int error)
{
    nic_say(nic, (struct vmri_uplink_result){
        .twin = twin, .type = VMRI_UPLINK_MOVED, .number = state,
        .error = error,
    });
}

/* Answer a request as one that went well, or not. */
static inline void nic_sent(struct nic *nic, const struct nic_msg *msg,
                            uint8_t status)
{
    nic_say(nic, (struct vmri_uplink_result){
        .twin = msg->m.twin, .type = VMRI_UPLINK_SENT, .status = status,
        .opcode = VMRI_WC_OP_SEND, .wr_id = msg->m.u.send.wr_id,
        .flags = msg->m.u.send.flags & VMRI_SEND_SIGNALED,
        .byte_len = msg->m.u.send.length,
    });
}

static inline void nic_received(struct nic *nic, const struct nic_msg *msg,
                                uint8_t status, uint32_t bytes)
{
    nic_say(nic, (struct vmri_uplink_result){
        .twin = msg->m.twin, .type = VMRI_UPLINK_RECEIVED, .status = status,
        .opcode = VMRI_WC_OP_RECV, .wr_id = msg->m.u.recv.wr_id,
        .byte_len = bytes,
    });
}

/* ---- guests ---- */

static inline void nic_fabric(void)
{
    struct vmri_ctl_fabric fabric = { .fabric = NIC_FABRIC };
    struct vmri_ctl_route route = {
        .fabric = NIC_FABRIC, .gid = { 0xfe, 0x80, [15] = NIC_GID },
        .host_gid = { 0x20, 0x01, [15] = 0x99 },
    };

    CHECK_EQ(dom0_call(VMRI_OP_ctl_fabric_create, &fabric, sizeof(fabric)), 0);
    CHECK_EQ(dom0_call(VMRI_OP_ctl_route_add, &route, sizeof(route)), 0);
}

static inline long try_uplinked(unsigned int domid, uint32_t uplink)
{
    struct vmri_ctl_attach arg = {
        .domid = domid, .fabric = NIC_FABRIC, .uplink = uplink,
    };

    return dom0_call(VMRI_OP_ctl_attach, &arg, sizeof(arg));
}

/* One with a device on that uplink; commands' events come to eq[1]. */
static inline struct guest *nic_guest(struct nic *nic, unsigned int domid)
{
    struct guest *g = guest_bare(domid);

    CHECK_EQ(try_uplinked(domid, nic->uplink), 0);
    guest_start(g);
    CHECK_EQ(try_port_eq(g, &g->eq[1]), 0);
    return g;
}

/* The next event of a command, which must be this one: its result. */
static inline int64_t nic_event(struct guest *g, unsigned int command,
                                uint32_t id)
{
    struct vmri_event ev;

    CHECK(eq_poll(g->eq[1], &ev));
    CHECK_EQ(ev.type, VMRI_EVENT_COMMAND);
    CHECK_EQ(ev.command, command);
    CHECK_EQ(ev.id, id);
    return (int64_t)ev.data;
}

static inline void nic_no_event(struct guest *g)
{
    struct vmri_event ev;

    CHECK(!eq_poll(g->eq[1], &ev));
}

static inline long twin_create(struct guest *g, struct vmri_twin *arg)
{
    return guest_call(g, VMRI_OP_twin_create, arg, sizeof(*arg));
}

static inline long twin_destroy(struct guest *g, uint32_t handle)
{
    struct vmri_object arg = { .handle = handle };

    return guest_call(g, VMRI_OP_twin_destroy, &arg, sizeof(arg));
}

static inline struct vmri_twin twin_of_mr(const struct guest_mr *mr,
                                          uint32_t access)
{
    return (struct vmri_twin){
        .kind = VMRI_RES_MR, .pd = mr->guest->pd,
        .u.mr = { .iova = mr->iova, .length = mr->length, .access = access,
                  .offset = mr->offset, .pages = mr->pages, .list = 8 },
    };
}

static inline struct vmri_twin twin_of_qp(const struct guest_qp *qp)
{
    const struct guest_srq *srq = qp->srq;

    return (struct vmri_twin){
        .kind = VMRI_RES_QP, .pd = qp->arg.pd,
        .u.qp = { .type = qp->arg.type,
                  .sq_log2_entries = qp->arg.sq_log2_entries,
                  .rq_log2_entries = srq ? VMRI_TWIN_LENT_LOG2
                                         : qp->arg.rq_log2_entries,
                  .max_send_sge = qp->arg.max_send_sge,
                  .max_recv_sge = srq ? srq->arg.max_sge
                                      : qp->arg.max_recv_sge,
                  .max_inline = qp->arg.max_inline },
    };
}

/* Make it, to the end: its number. */
static inline uint32_t nic_make(struct nic *nic, struct guest *g,
                                struct vmri_twin *twin)
{
    const bool qp = twin->kind == VMRI_RES_QP;
    uint32_t number = qp ? nic->next_qpn++ : nic->next_key;
    struct nic_msg msg;

    if ( !qp )
        nic->next_key += 0x100;
    CHECK_EQ(twin_create(g, twin), -EINPROGRESS);
    msg = nic_expect(nic, qp ? VMRI_UPLINK_CREATE_QP : VMRI_UPLINK_CREATE_MR);
    CHECK_EQ(msg.m.twin, twin->handle);
    nic_made(nic, twin->handle, number, 0);
    CHECK_EQ(nic_event(g, VMRI_OP_twin_create, twin->handle), number);
    return number;
}

static inline void nic_end(struct nic *nic, struct guest *g, uint32_t twin)
{
    CHECK_EQ(twin_destroy(g, twin), -EINPROGRESS);
    CHECK_EQ(nic_expect(nic, VMRI_UPLINK_DESTROY).m.twin, twin);
    nic_gone(nic, twin);
    CHECK_EQ(nic_event(g, VMRI_OP_twin_destroy, twin), 0);
}

static inline long try_twin_mr(struct guest_mr *mr, uint32_t access,
                               uint32_t twin, uint32_t key)
{
    struct vmri_mr_register arg = {
        .iova = mr->iova, .length = mr->length, .pd = mr->guest->pd,
        .access = access, .offset = mr->offset, .key = key, .twin = twin,
    };
    uint64_t *list = calloc(mr->pages, sizeof(*list));
    long rc;

    guest_frames(&arg.frames, list, mr->gfn, mr->pages);
    env_test_expose(list, mr->pages * sizeof(*list));
    rc = guest_call(mr->guest, VMRI_OP_mr_register, &arg, sizeof(arg));
    env_test_hide();
    free(list);
    mr->key = arg.key;
    return rc;
}

/* A region with a twin. */
static inline struct guest_mr nic_mr(struct nic *nic, struct guest *g,
                                     uint64_t bytes, uint32_t access,
                                     uint32_t *twin)
{
    struct guest_mr mr = mr_pages(g, bytes, 100, LAYOUT_SCATTERED);
    struct vmri_twin arg = twin_of_mr(&mr, access);
    uint32_t key = nic_make(nic, g, &arg);

    CHECK_EQ(try_twin_mr(&mr, access, arg.handle, key), 0);
    CHECK_EQ(mr.key, key);
    *twin = arg.handle;
    return mr;
}

/* A queue pair with a twin. */
static inline struct guest_qp *nic_qp(struct nic *nic, struct guest *g,
                                      const struct guest_qp_opts *opts)
{
    static const struct guest_qp_opts none;
    struct guest_qp *qp = qp_prepare(g, opts ? opts : &none);
    struct vmri_twin arg = twin_of_qp(qp);

    qp->arg.qpn = nic_make(nic, g, &arg);
    qp->arg.twin = arg.handle;
    CHECK_EQ(try_qp(qp), 0);
    return qp;
}

/* What it takes to RTR and RTS, towards the peer elsewhere. */
static inline void nic_attr(struct guest_qp *qp, unsigned int state,
                            struct vmri_qp_modify *arg)
{
    qp_attr(qp, qp, state, NULL, arg);
    if ( state != VMRI_QPS_RTR )
        return;
    arg->dest_qpn = NIC_PEER;
    arg->av.dlid = NIC_LID;
    arg->av.flags = VMRI_AV_GRH;
    memset(arg->av.dgid, 0, sizeof(arg->av.dgid));
    arg->av.dgid[0] = 0xfe;
    arg->av.dgid[1] = 0x80;
    arg->av.dgid[15] = NIC_GID;
}

/* A change that the twin follows, to the end. */
static inline struct nic_msg nic_follow(struct nic *nic, struct guest_qp *qp,
                                        struct vmri_qp_modify *arg)
{
    struct nic_msg msg;

    CHECK_EQ(qp_modify(qp, arg), -EINPROGRESS);
    msg = nic_expect(nic, VMRI_UPLINK_MODIFY);
    CHECK_EQ(msg.m.twin, qp->arg.twin);
    nic_moved(nic, qp->arg.twin, msg.u.modify.state, 0);
    CHECK_EQ(nic_event(qp->guest, VMRI_OP_qp_modify, qp->qpn), 0);
    CHECK_EQ(qp_modify(qp, arg), 0);
    return msg;
}

static inline void nic_connect(struct nic *nic, struct guest_qp *qp,
                               unsigned int last)
{
    struct vmri_qp_modify arg;
    unsigned int state;

    qp_to(qp, qp, VMRI_QPS_INIT, NULL);
    for ( state = VMRI_QPS_RTR; state <= last; state++ )
    {
        nic_attr(qp, state, &arg);
        nic_follow(nic, qp, &arg);
    }
}

/* A guest with a queue pair that is connected, and memory that has a twin. */
struct nic_pair {
    struct nic *nic;
    struct guest *g;
    struct guest_qp *qp;
    struct guest_mr mr;
    uint32_t mr_twin;
};

#define NIC_ACCESS  (VMRI_ACCESS_LOCAL_WRITE | VMRI_ACCESS_REMOTE_WRITE | \
                     VMRI_ACCESS_REMOTE_READ)

static inline struct nic_pair nic_pair(const struct guest_qp_opts *opts)
{
    struct nic_pair p = { .nic = nic_new() };

    nic_fabric();
    p.g = nic_guest(p.nic, 1);
    p.mr = nic_mr(p.nic, p.g, 1U << 20, NIC_ACCESS, &p.mr_twin);
    p.qp = nic_qp(p.nic, p.g, opts);
    nic_connect(p.nic, p.qp, VMRI_QPS_RTS);
    return p;
}

/* A signalled SEND of `bytes` from its memory. */
static inline struct guest_wr nic_wr(const struct nic_pair *p, uint64_t wr_id,
                                     uint64_t at, uint32_t bytes)
{
    return (struct guest_wr){
        .wr_id = wr_id, .opcode = VMRI_WR_SEND, .flags = VMRI_SEND_SIGNALED,
        .num_sge = 1, .sge = { mr_sge(&p->mr, at, bytes) },
    };
}

#endif /* VMRI_NIC_H */
