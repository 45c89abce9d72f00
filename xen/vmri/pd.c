/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: protection domains, and XRC domains.  Nothing is known of either but
 * who belongs to it.
 */
#include "internal.h"

static void pd_free(struct vmri_dev *dev, unsigned int what,
                    struct vmri_pd *pd)
{
    vmri_free(dev, pd, sizeof(*pd));
    vmri_uncharge(dev, what, 1);
}

static int create(struct vmri_dev *dev, struct vmri_table *t,
                  unsigned int what, struct vmri_object *arg)
{
    struct vmri_pd *pd;
    int ret;

    if ( arg->reserved )
        return -EINVAL;

    ret = vmri_charge(dev, what, 1);
    if ( ret )
        return ret;

    pd = vmri_alloc(dev, sizeof(*pd));
    ret = pd ? vmri_table_reserve(t, VMRI_HANDLE_ANY, &pd->handle) : -ENOMEM;
    if ( ret )
        goto free;

    arg->handle = pd->handle;
    ret = vmri_publish(dev, t, pd->handle, pd);
    if ( !ret )
        return 0;

    vmri_table_release(t, pd->handle);
 free:
    pd_free(dev, what, pd);

    return ret;
}

static int destroy(struct vmri_dev *dev, struct vmri_table *t,
                   unsigned int what, uint32_t handle)
{
    void *pd;
    int ret = vmri_kill_unused(dev, t, handle, &pd);

    if ( ret )
        return ret;

    vmri_table_release(t, handle);
    pd_free(dev, what, pd);

    return 0;
}

int vmri_pd_create(struct vmri_dev *dev, struct vmri_object *arg)
{
    return create(dev, &dev->pds, VMRI_RES_PD, arg);
}

int vmri_pd_destroy(struct vmri_dev *dev, uint32_t handle)
{
    return destroy(dev, &dev->pds, VMRI_RES_PD, handle);
}

int vmri_xrcd_create(struct vmri_dev *dev, struct vmri_object *arg)
{
    return create(dev, &dev->xrcds, VMRI_RES_XRCD, arg);
}

int vmri_xrcd_destroy(struct vmri_dev *dev, uint32_t handle)
{
    return destroy(dev, &dev->xrcds, VMRI_RES_XRCD, handle);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
