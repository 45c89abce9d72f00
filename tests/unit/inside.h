/* SPDX-License-Identifier: GPL-2.0-only */
/* Guests' objects as the hypervisor knows them. */
#ifndef VMRI_INSIDE_H
#define VMRI_INSIDE_H

#include "guest.h"
#include "internal.h"

/* A CQ as the hypervisor knows it; its objects outlive the tests' use. */
static inline struct vmri_cq *cq_inside(struct guest_cq *cq)
{
    struct vmri_dev *dev = vmri_dev_get(cq->guest->domain, cq->guest->dev);
    struct vmri_cq *in = vmri_table_get(&dev->cqs, cq->handle);

    vmri_table_put(&dev->cqs, cq->handle);
    vmri_dev_put(dev);
    return in;
}

#endif /* VMRI_INSIDE_H */
