/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: which devices of a fabric may talk to each other.  Included by
 * internal.h, where the locking is described.
 */
#ifndef VMRI_RULE_H
#define VMRI_RULE_H

struct vmri_dev;
struct vmri_fabric;
struct vmri_qp;

/* One rule: two words of address, and what they must be. */
struct vmri_rule {
    uint64_t prefix[2];
    uint64_t mask[2];
    uint32_t group;             /* of the device that it is for; 0: any */
    uint32_t remote_group;      /* 0: any, or none */
    uint32_t kind;              /* 0: a free place; else 1 + VMRI_RULE_*GRESS */
    uint32_t bits;              /* of the prefix */
};

/*
 * Written under vmri_control_lock; read without, between two looks at `seq`.
 * The places for rules come with the first one and stay as long as the fabric.
 */
struct vmri_rules {
    uint32_t seq;               /* atomic: odd while they change */
    uint32_t closed;            /* atomic: rules decide, be there any or none */
    uint32_t nr;                /* by vmri_control_lock */
    struct vmri_rule *rule;     /* atomic; VMRI_RULES of them, or NULL */
    bool pending;               /* by vmri_control_lock: connections are to be
                                   looked at, from here on: */
    uint32_t at_lid;
    uint32_t at_qp;
};

/* dom0's commands, as control.h has them. */
int vmri_rule_add(struct vmri_ctl_rule *arg);
/* VMRI_RULE_ALL: all of them. */
int vmri_rule_del(uint32_t fabric, uint32_t rule);
int vmri_rule_list(struct vmri_ctl_rule *arg);
/*
 * After a change: put connections that are forbidden now into the error state, a
 * bounded number of them.  0, or -ERESTART: there may be more.
 */
int vmri_rules_enforce(uint32_t fabric);
/* Under vmri_control_lock: have what was found allowed be asked again. */
void vmri_rules_changed(struct vmri_fabric *f);
/* Before the fabric goes. */
void vmri_rules_free(struct vmri_fabric *f);

/* Is a connection, or are datagrams, between two devices allowed? */
bool vmri_rules_allow(const struct vmri_dev *a, const struct vmri_dev *b);
/* The same with a device of another host, of which no group is known. */
bool vmri_rules_allow_remote(const struct vmri_dev *dev, const uint8_t gid[16]);
/* May a device send to a multicast group, or get what is sent to it? */
bool vmri_rules_allow_group(const struct vmri_dev *dev, const uint8_t mgid[16],
                            unsigned int direction);

#endif /* VMRI_RULE_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
