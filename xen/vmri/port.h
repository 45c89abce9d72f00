/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the port of a device.  Included by internal.h, where the locking is
 * described.
 */
#ifndef VMRI_PORT_H
#define VMRI_PORT_H

struct domain;
struct vmri_dev;
struct vmri_eq;
struct vmri_qp;

/* The attributes are written under vmri_control_lock and read without. */
struct vmri_port {
    uint8_t state;              /* VMRI_PORT_*; only ACTIVE moves packets */
    uint16_t sm_lid;            /* 0: the port's own LID */
    uint64_t gid_prefix;
    uint16_t pkeys[VMRI_MAX_PKEYS];
    uint64_t version;           /* no other's; changes with what is above */
    struct vmri_dev_describe text;  /* by dev->lock: what the guest says */
    struct vmri_eq *eq;         /* by dev->lock, and its uplink's: or NULL */
    struct vmri_source source;  /* by eq->lock */
};

void vmri_port_init(struct vmri_port *port);
/*
 * Change what arg->mask names, raise the events of that, and tell all.
 * -EINVAL, -ENODEV, -EEXIST: the LID is taken; -ENOMEM.  Nothing changes then.
 */
int vmri_port_control(struct domain *d, struct vmri_ctl_port *arg);
/*
 * Its manager, whose LID that was, has gone: the port is its own again.  Under
 * vmri_control_lock.
 */
void vmri_port_release(struct vmri_dev *dev, uint16_t manager);
/* Let events of port and device go to an EQ.  -EBUSY: another has them. */
int vmri_port_bind(struct vmri_dev *dev, struct vmri_eq *eq);
/* No longer, if they did. */
void vmri_port_unbind(struct vmri_dev *dev, struct vmri_eq *eq);
/* Raise an event of the port or the device, if there is an EQ for it. */
void vmri_port_event(struct vmri_dev *dev, unsigned int type);
/* Is the port a member of the partition, full or limited? */
bool vmri_port_in_partition(const struct vmri_dev *dev, uint16_t pkey);
/* What others are to be told of it, and what is told of a port to others. */
int vmri_port_describe(struct vmri_dev *dev,
                       const struct vmri_dev_describe *arg);
/* It is no longer in use; under dev->lock. */
void vmri_port_forget(struct vmri_dev *dev);
int vmri_port_query(struct vmri_dev *dev, struct vmri_port_query *arg);
uint16_t vmri_port_sm_lid(const struct vmri_dev *dev);
/*
 * Does a packet get from one device to another of the same fabric, or into the
 * same device?
 */
bool vmri_port_reaches(const struct vmri_dev *from, const struct vmri_dev *to);
/*
 * Is it of the partition of the queue pair that it is for, or, for QP1, of one
 * of its port's?  *index is where the table has that.  One that is not is
 * counted where it comes in.
 */
bool vmri_port_admits(const struct vmri_qp *from, struct vmri_qp *to,
                      uint16_t *index);
/* The same of a P_Key that is on the wire, and that of the request in qp->tx. */
bool vmri_port_takes(uint16_t pkey, struct vmri_qp *to, uint16_t *index);
uint16_t vmri_port_pkey(const struct vmri_qp *qp);

#endif /* VMRI_PORT_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
