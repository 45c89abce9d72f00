/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: GIDs, by which devices of RoCE fabrics are addressed.  Included by
 * internal.h, where the locking is described.
 */
#ifndef VMRI_GID_H
#define VMRI_GID_H

#define VMRI_GID_HASH   256         /* chains of a fabric, by GID */

struct vmri_dev;
struct vmri_fabric;
struct vmri_qp;

/* An entry of a device's table; empty when both words are 0. */
struct vmri_gid {
    struct list_head chain;     /* by the fabric's lock: of who has one */
    struct vmri_dev *dev;       /* constant */
    uint64_t word[2];           /* written by that lock; read without, too */
};

struct vmri_gid_table {
    struct vmri_gid entry[VMRI_MAX_GIDS];
};

/* Who has which GID on a fabric. */
struct vmri_gids {
    env_lock_t lock;            /* LEVEL_GID */
    uint64_t version;           /* no other's; changes with what is below */
    uint64_t salt;              /* constant */
    struct list_head chain[VMRI_GID_HASH];
};

/* Where a GID led when it was last looked up; by the queue's owner. */
struct vmri_gid_lid {
    uint64_t version;           /* of the fabric's GIDs then; 0: never */
    uint64_t word[2];
    uint16_t lid;
};

/* Of a fabric; NULL: memory. */
struct vmri_gids *vmri_gids_alloc(void);
/*
 * Give a device of a RoCE fabric its empty table, charged to its domain, and take
 * it back when it is empty.  -ENOMEM.
 */
int vmri_gid_table_alloc(struct vmri_dev *dev);
void vmri_gid_table_free(struct vmri_dev *dev);
/* VMRI_OP_gid_set. */
int vmri_gid_set(struct vmri_dev *dev, const struct vmri_gid_set *arg);
/* Empty it: the device is no longer in use, or goes. */
void vmri_gids_forget(struct vmri_dev *dev);
/* The device has another LID. */
void vmri_gids_moved(struct vmri_dev *dev);
/* The LID of the device that has a GID, or 0.  Of a RoCE fabric. */
uint16_t vmri_gid_find(struct vmri_fabric *f, const uint8_t gid[16]);
/* The same of a datagram's, by the queue's owner, who remembers it. */
uint16_t vmri_gid_route(struct vmri_qp *qp, const uint8_t gid[16]);
/* An entry of the device's table in network order; false: empty. */
bool vmri_gid_get(const struct vmri_dev *dev, unsigned int index,
                  uint8_t gid[16]);
/* Has the device a GID whose words are `prefix` where `mask` is set? */
bool vmri_gid_within(const struct vmri_dev *dev, const uint64_t prefix[2],
                     const uint64_t mask[2]);

/* Is it one of IPv4, which RoCE v2 writes as IPv6 maps it? */
static inline bool vmri_gid_is_ipv4(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

    return !memcmp(gid, mapped, sizeof(mapped));
}

/* Does it name a group, on a RoCE fabric? */
static inline bool vmri_gid_is_group(const uint8_t gid[16])
{
    return gid[0] == 0xff || (vmri_gid_is_ipv4(gid) && gid[12] >> 4 == 0xe);
}

/* 8 bytes in network order. */
static inline uint64_t vmri_be_word(const uint8_t *bytes)
{
    uint64_t v = 0;
    unsigned int i;

    for ( i = 0; i < 8; i++ )
        v = v << 8 | bytes[i];

    return v;
}

/* The lowest n bytes of v, in network order. */
static inline void vmri_put_be(uint8_t *to, uint64_t v, unsigned int n)
{
    while ( n-- )
    {
        to[n] = v;
        v >>= 8;
    }
}

#endif /* VMRI_GID_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
