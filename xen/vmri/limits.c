/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: what a device may use, what it does use, and what it has done.  The
 * only place that charges.
 */
#include "internal.h"

static const uint64_t defaults[VMRI_RES_NR] = {
    [VMRI_RES_PD] = 4096,
    [VMRI_RES_EQ] = 64,
    [VMRI_RES_CQ] = 16384,
    [VMRI_RES_QP] = 16384,
    [VMRI_RES_MR] = 131072,
    [VMRI_RES_PINNED] = 1UL << (30 - VMRI_PAGE_SHIFT),
    [VMRI_RES_BYTES] = 64UL << 20,
};

void vmri_limits_default(struct vmri_dev *dev)
{
    unsigned int i;

    for ( i = 0; i < VMRI_RES_NR; i++ )
        dev->limit[i] = defaults[i];
}

int vmri_charge(struct vmri_dev *dev, enum vmri_resource what, uint64_t n)
{
    int ret = -ENOSPC;

    env_lock(&dev->lock);
    if ( dev->usage[what] <= dev->limit[what] &&
         n <= dev->limit[what] - dev->usage[what] )
    {
        dev->usage[what] += n;
        ret = 0;
    }
    env_unlock(&dev->lock);

    return ret;
}

void vmri_uncharge(struct vmri_dev *dev, enum vmri_resource what, uint64_t n)
{
    env_lock(&dev->lock);
    ASSERT(n <= dev->usage[what]);
    dev->usage[what] -= n;
    env_unlock(&dev->lock);
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
    memset(usage, 0, sizeof(*usage));

    env_lock(&dev->lock);
    usage->pds = dev->usage[VMRI_RES_PD];
    usage->eqs = dev->usage[VMRI_RES_EQ];
    usage->cqs = dev->usage[VMRI_RES_CQ];
    usage->qps = dev->usage[VMRI_RES_QP];
    usage->mrs = dev->usage[VMRI_RES_MR];
    usage->pinned_pages = dev->usage[VMRI_RES_PINNED];
    usage->bytes = dev->usage[VMRI_RES_BYTES];
    env_unlock(&dev->lock);

    usage->bytes += sizeof(*dev) +
                    env_load(&dev->pds.bytes) + env_load(&dev->eqs.bytes) +
                    env_load(&dev->cqs.bytes) + env_load(&dev->qps.bytes) +
                    env_load(&dev->mrs.bytes);
}

void vmri_counters_get(const struct vmri_dev *dev, struct vmri_counters *to)
{
    const uint64_t *from = (const uint64_t *)&dev->counters;
    uint64_t *p = (uint64_t *)to;
    unsigned int i;

    for ( i = 0; i < sizeof(*to) / sizeof(*p); i++ )
        p[i] = env_load(&from[i]);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
