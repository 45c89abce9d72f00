/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: protection domains.
 */
#include "internal.h"

static void pd_free(struct vmri_dev *dev, struct vmri_pd *pd)
{
    vmri_free(dev, pd, sizeof(*pd));
    vmri_uncharge(dev, VMRI_RES_PD, 1);
}

int vmri_pd_create(struct vmri_dev *dev, struct vmri_object *arg)
{
    struct vmri_pd *pd;
    int ret;

    if ( arg->reserved )
        return -EINVAL;

    ret = vmri_charge(dev, VMRI_RES_PD, 1);
    if ( ret )
        return ret;

    pd = vmri_alloc(dev, sizeof(*pd));
    ret = pd ? vmri_table_reserve(&dev->pds, VMRI_HANDLE_ANY, &pd->handle)
             : -ENOMEM;
    if ( ret )
        goto free;

    arg->handle = pd->handle;
    ret = vmri_publish(dev, &dev->pds, pd->handle, pd);
    if ( !ret )
        return 0;

    vmri_table_release(&dev->pds, pd->handle);
 free:
    pd_free(dev, pd);

    return ret;
}

int cf_check vmri_pd_destroy(struct vmri_dev *dev, uint32_t handle)
{
    void *pd;
    int ret = vmri_kill_unused(dev, &dev->pds, handle, &pd);

    if ( ret )
        return ret;

    vmri_table_release(&dev->pds, handle);
    pd_free(dev, pd);

    return 0;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
