/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: multicast groups.  Included by internal.h, where the locking is
 * described.
 *
 * A group belongs to a fabric and is there while a device is in it: because
 * it joined, or because a QP of it is attached.  A sender finds the group by
 * MLID, without a lock, and refers to it for the length of a step.
 */
#ifndef VMRI_MCG_INTERNAL_H
#define VMRI_MCG_INTERNAL_H

#define VMRI_MLIDS      (VMRI_MLID_MAX - VMRI_MLID_MIN + 1)
#define VMRI_MCG_HASH   64          /* chains of groups, by MGID */

struct vmri_dev;
struct vmri_fabric;
struct vmri_qp;

struct vmri_group {
    struct list_head chain;     /* by fabric->mcg_lock, as all up to lock */
    struct vmri_mcg attr;       /* MGID and MLID are constant; members: joined
                                   devices, without any the rest is unset */
    uint32_t users;             /* memberships */

    env_lock_t lock;            /* LEVEL_GROUP */
    uint64_t next;              /* by lock: number of the next attachment */
    struct vmri_attachment *root;   /* by lock: the tree of them (mcgtree.c) */
};

/* A device in a group; by fabric->mcg_lock. */
struct vmri_membership {
    struct list_head list;      /* in dev->memberships */
    struct vmri_group *group;
    uint8_t joined;             /* VMRI_JOIN_*: as a member */
    uint32_t qps;               /* attached */
};

/* A QP that gets what is sent to a group. */
struct vmri_attachment {
    struct list_head list;      /* by fabric->mcg_lock: in qp->attachments */
    struct vmri_membership *membership;     /* constant, as the next two */
    struct vmri_qp *qp;
    uint64_t number;            /* of the group: later ones have higher ones */
    struct vmri_attachment *child[2];       /* by group->lock */
};

int vmri_mcg_create(struct vmri_dev *dev, struct vmri_mcg *arg);
int vmri_mcg_destroy(struct vmri_dev *dev, const struct vmri_mcg *arg);
/* A group of the device's fabric that has members, and who is one. */
int vmri_mcg_query(struct vmri_dev *dev, struct vmri_mcg_query *arg);
int vmri_mcg_attach(struct vmri_dev *dev, const struct vmri_mcg_qp *arg);
int vmri_mcg_detach(struct vmri_dev *dev, const struct vmri_mcg_qp *arg);
/* Detach a QP that is being destroyed, and to which nobody refers. */
void vmri_mcg_forget(struct vmri_qp *qp);
/*
 * For vmri_dev_close: leave groups, up to `max` of them: how many it were.
 */
unsigned int vmri_mcg_leave(struct vmri_dev *dev, unsigned int max);

/* The group that an address names, with a reference, or NULL. */
struct vmri_group *vmri_group_get(struct vmri_fabric *f,
                                  const struct vmri_av *av);
void vmri_group_put(struct vmri_fabric *f, struct vmri_group *g);

/*
 * mcgtree.c, under group->lock: the attachments in order of their numbers.
 * Each takes 65 steps at most, however many there are.
 */
void vmri_mcgtree_add(struct vmri_attachment **root,
                      struct vmri_attachment *a);
void vmri_mcgtree_remove(struct vmri_attachment **root,
                         const struct vmri_attachment *a);
/* The one with the lowest number that is not below `from`, or NULL. */
struct vmri_attachment *vmri_mcgtree_from(struct vmri_attachment *root,
                                          uint64_t from);

#endif /* VMRI_MCG_INTERNAL_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
