/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: what a domain may use, what it does use, and what its devices have
 * done.  The only place that charges.
 *
 * The limits are those of the domain, all its devices together; each device
 * also knows its own share.  Both are atomics, not under a lock: calls in
 * several devices charge at once, some under locks.
 */
#include "internal.h"

/*
 * Several processes with hundreds of queue pairs each, all to all, and many
 * registrations, yet nothing that an honest guest would come near.  The last
 * two follow the domain's memory: vmri_limits_default.
 */
static const uint64_t defaults[VMRI_RES_NR] = {
    [VMRI_RES_PD] = 4096,
    [VMRI_RES_XRCD] = 1024,
    [VMRI_RES_EQ] = 256,
    [VMRI_RES_CQ] = 16384,
    [VMRI_RES_SRQ] = 4096,
    [VMRI_RES_QP] = 16384,
    [VMRI_RES_MR] = 131072,
    [VMRI_RES_MW] = 131072,
    [VMRI_RES_MCG] = 1024,
    [VMRI_RES_MCG_QP] = 16384,
    [VMRI_RES_DEV] = VMRI_MAX_DEVS,
    [VMRI_RES_SERVICE] = 128,
};

#define BYTES_BASE      (64ULL << 20)
/* Pages that are pinned twice, none following another, cost that much each. */
#define BYTES_PER_PAGE  (2 * sizeof(env_frame_t))

void vmri_limits_default(uint64_t pages, uint64_t limit[VMRI_RES_NR])
{
    memcpy(limit, defaults, sizeof(defaults));
    limit[VMRI_RES_PINNED] = 2 * pages;
    limit[VMRI_RES_BYTES] = BYTES_BASE + pages * BYTES_PER_PAGE;
}

int vmri_domain_charge(struct vmri_domain *vd, unsigned int what, uint64_t n)
{
    uint64_t usage = env_load(&vd->usage[what]);

    do {
        uint64_t limit = env_load(&vd->limit[what]);

        /* A limit may be set below what is used already. */
        if ( usage > limit || n > limit - usage )
            return -ENOSPC;
    } while ( !env_cmpxchg(&vd->usage[what], &usage, usage + n) );

    return 0;
}

void vmri_domain_uncharge(struct vmri_domain *vd, unsigned int what,
                          uint64_t n)
{
    uint64_t usage = env_fetch_sub(&vd->usage[what], n);

    ASSERT(n <= usage);
}

int vmri_charge(struct vmri_dev *dev, unsigned int what, uint64_t n)
{
    int ret = vmri_domain_charge(dev->owner, what, n);

    if ( !ret )
        env_fetch_add(&dev->usage[what], n);

    return ret;
}

/* The device's share last: when it is 0 nothing of this is under way. */
void vmri_uncharge(struct vmri_dev *dev, unsigned int what, uint64_t n)
{
    uint64_t usage;

    vmri_domain_uncharge(dev->owner, what, n);
    usage = env_fetch_sub(&dev->usage[what], n);
    ASSERT(n <= usage);
}

uint64_t vmri_limit(const struct vmri_dev *dev, unsigned int what)
{
    return env_load(&dev->owner->limit[what]);
}

void *vmri_alloc(struct vmri_dev *dev, size_t bytes)
{
    void *p;

    if ( vmri_charge(dev, VMRI_RES_BYTES, bytes) )
        return NULL;

    p = env_alloc(bytes);
    if ( !p )
        vmri_uncharge(dev, VMRI_RES_BYTES, bytes);

    return p;
}

void vmri_free(struct vmri_dev *dev, void *p, size_t bytes)
{
    if ( !p )
        return;

    env_free(p);
    vmri_uncharge(dev, VMRI_RES_BYTES, bytes);
}

void vmri_usage_get(struct vmri_dev *dev, struct vmri_usage *usage)
{
    unsigned int i;

    memset(usage, 0, sizeof(*usage));
    for ( i = 0; i < VMRI_RES_NR; i++ )
        usage->n[i] = env_load(&dev->usage[i]);
    usage->n[VMRI_RES_BYTES] += vmri_dev_bytes(dev);
}

/* ---- counters ---- */

/* Structures of nothing but counters. */
static void load_all(void *to, const void *from, size_t bytes)
{
    unsigned int i;

    for ( i = 0; i < bytes / sizeof(uint64_t); i++ )
        ((uint64_t *)to)[i] = env_load(&((const uint64_t *)from)[i]);
}

void vmri_type_counters_get(const struct vmri_dev *dev, unsigned int type,
                            struct vmri_qp_counters *to)
{
    load_all(to, &dev->types[env_nospec(type, VMRI_STAT_NR)], sizeof(*to));
}

void vmri_counters_get(const struct vmri_dev *dev, struct vmri_counters *to)
{
    struct vmri_qp_counters c;
    unsigned int i;

    load_all(to, &dev->counters, sizeof(*to));
    for ( i = 0; i < VMRI_STAT_NR; i++ )
    {
        vmri_type_counters_get(dev, i, &c);
        to->tx_msgs += c.tx_msgs;
        to->tx_bytes += c.tx_bytes;
        to->rx_msgs += c.rx_msgs;
        to->rx_bytes += c.rx_bytes;
        to->errors += c.errors;
        to->flushed += c.flushed;
        to->rnr += c.rnr;
        to->retries += c.retries;
    }
}

struct vmri_qp_counters *vmri_type_counters(struct vmri_dev *dev,
                                            unsigned int type)
{
    switch ( type )
    {
    case VMRI_QPT_SMI:
        return &dev->types[VMRI_STAT_SMI];
    case VMRI_QPT_GSI:
        return &dev->types[VMRI_STAT_GSI];
    case VMRI_QPT_UC:
        return &dev->types[VMRI_STAT_UC];
    case VMRI_QPT_UD:
        return &dev->types[VMRI_STAT_UD];
    case VMRI_QPT_XRC_INI:
        return &dev->types[VMRI_STAT_XRC_INI];
    case VMRI_QPT_XRC_TGT:
        return &dev->types[VMRI_STAT_XRC_TGT];
    default:
        return &dev->types[VMRI_STAT_RC];
    }
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
