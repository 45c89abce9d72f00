/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: where queue pairs lead, on this host and beyond.  Included by internal.h,
 * where the locking is described.
 */
#ifndef VMRI_STEER_H
#define VMRI_STEER_H

struct vmri_fabric;
struct vmri_qp;

/* A device on another host. */
struct vmri_remote {
    uint8_t gid[16];            /* its own, that guests know */
    uint8_t host_gid[16];       /* of the adapter of its host */
};

/* Replaced as a whole; written under vmri_control_lock, too. */
struct vmri_routes {
    env_lock_t lock;            /* LEVEL_ROUTE */
    uint32_t nr;                /* by lock; read without, too */
    struct vmri_remote *route;   /* by lock: in order of gid */
};

/* dom0's commands, as control.h has them. */
int vmri_route_add(const struct vmri_ctl_route *arg);
int vmri_route_del(const struct vmri_ctl_route *arg);
int vmri_route_list(struct vmri_ctl_route *arg);
void vmri_routes_init(struct vmri_routes *routes);
/* Before the fabric goes. */
void vmri_routes_free(struct vmri_routes *routes);

/* On which host a device with this GID is, by the GID of that one's adapter. */
bool vmri_route_find(struct vmri_fabric *f, const uint8_t gid[16],
                     uint8_t host_gid[16]);

#define VMRI_ELSEWHERE  1

/*
 * The hook: a queue pair is to have the peer that a command names.  0: it is on
 * this host, or not there and may still come; VMRI_ELSEWHERE: on the host whose
 * adapter has the GID host_gid; -EPERM: rules forbid it; -EHOSTUNREACH: it is on
 * another host, and nothing leads there, or nobody has the GID; -EOPNOTSUPP: not
 * from such a queue pair; -EINVAL: a LID where there are none.  On a RoCE fabric
 * arg's LID becomes that of the device with the GID.
 */
int vmri_steer(const struct vmri_qp *qp, struct vmri_qp_modify *arg,
               uint8_t host_gid[16]);

#endif /* VMRI_STEER_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
