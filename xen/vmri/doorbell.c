/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: doorbells that a process rings past its kernel.
 *
 * All that the process says is two numbers in registers, which name a device of
 * its own domain and a queue pair of that.  What is done then is what is in the
 * queue, by whoever it was put there, for no more than one call's budget; what is
 * left is for the kernel, which learns of it by an event: the process may never
 * come again.
 */
#include "internal.h"

bool vmri_doorbells(struct domain *d)
{
    const struct vmri_domain *vd = env_load_acquire(env_domain_state(d));

    return vd && env_load(&vd->doorbells);
}

/*
 * The way in stays open when the device goes: a process that is about to ring
 * learns that from the result, not from a signal.
 */
void vmri_doorbell_open(struct vmri_dev *dev)
{
    env_store(&dev->doorbell, true);
    env_store(&dev->owner->doorbells, true);
}

void vmri_doorbell_close(struct vmri_dev *dev)
{
    env_store(&dev->doorbell, false);
}

long vmri_doorbell(uint32_t dev_id, uint64_t qpn)
{
    struct vmri_dev *dev = vmri_dev_get(env_current(), dev_id);
    long ret = -ENOENT;

    if ( unlikely(!dev) )
        return -ENODEV;

    if ( unlikely(!env_load(&dev->doorbell)) )
        ret = -EPERM;
    else if ( likely(qpn == (uint32_t)qpn) )
        ret = vmri_ring(dev, qpn);
    vmri_dev_put(dev);

    return ret;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
