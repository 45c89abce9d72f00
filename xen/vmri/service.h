/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: services that devices offer.  Included by internal.h, where the locking is
 * described.
 */
#ifndef VMRI_SERVICE_INTERNAL_H
#define VMRI_SERVICE_INTERNAL_H

struct vmri_dev;

/* Those of a fabric. */
struct vmri_services {
    env_lock_t lock;            /* LEVEL_SERVICE */
    struct list_head list;      /* by lock: in order of their numbers */
    uint32_t nr;                /* by lock */
    uint64_t last;              /* by lock: number given out */
};

void vmri_services_init(struct vmri_services *s);
int vmri_service_set(struct vmri_dev *dev, const struct vmri_service *arg);
int vmri_service_delete(struct vmri_dev *dev, const struct vmri_service *arg);
int vmri_service_query(struct vmri_dev *dev, struct vmri_service_query *arg);
/* Take away up to `max` of a device's: how many it were. */
unsigned int vmri_services_forget(struct vmri_dev *dev, unsigned int max);

#endif /* VMRI_SERVICE_INTERNAL_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
