/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the memory of queues, shared with a guest.
 *
 * It is pinned as writable and mapped from creation to destruction, so the
 * path of a message finds entries by arithmetic alone.  Ring pages are not
 * marked dirty: a suspended or migrated guest's driver builds its queues anew,
 * nothing of a ring's contents is needed afterwards.
 */
#include "internal.h"

static void region_put(struct vmri_region *r)
{
    while ( r->nr )
    {
        struct vmri_region_page *p = &r->page[--r->nr];

        if ( p->map )
            env_unmap_ring(p->map);
        env_frame_put(p->frame, true);
    }
}

static int region_get(struct vmri_dev *dev, const struct vmri_frames *frames,
                      struct vmri_region *r)
{
    while ( r->nr < frames->nr )
    {
        struct vmri_region_page *p = &r->page[r->nr];
        uint64_t gfn;
        int rc;

        if ( env_copy_from_guest(&gfn, frames->gfns + r->nr * sizeof(gfn),
                                 sizeof(gfn)) )
            return -EFAULT;

        rc = env_frame_get(dev->domain, gfn, true, &p->frame);
        if ( rc )
            return rc;

        r->nr++;
        p->map = env_map_ring(p->frame);
        if ( !p->map )
            return -ENOMEM;
    }

    return 0;
}

int vmri_region_create(struct vmri_dev *dev, const struct vmri_frames *frames,
                       uint64_t bytes, struct vmri_region *r)
{
    uint64_t nr = (bytes + VMRI_PAGE_SIZE - 1) >> VMRI_PAGE_SHIFT;
    int rc;

    if ( frames->reserved || frames->nr != nr || !nr || nr > VMRI_MAX_REGION )
        return -EINVAL;

    rc = vmri_charge(dev, VMRI_RES_PINNED, nr);
    if ( rc )
        return rc;

    r->nr = 0;
    r->page = vmri_alloc(dev, nr * sizeof(*r->page));
    if ( !r->page )
    {
        rc = -ENOMEM;
        goto uncharge;
    }

    rc = region_get(dev, frames, r);
    if ( !rc )
        return 0;

    region_put(r);
    vmri_free(dev, r->page, nr * sizeof(*r->page));
    r->page = NULL;
 uncharge:
    vmri_uncharge(dev, VMRI_RES_PINNED, nr);

    return rc;
}

void vmri_region_destroy(struct vmri_dev *dev, struct vmri_region *r)
{
    uint32_t nr = r->nr;

    region_put(r);
    vmri_free(dev, r->page, nr * sizeof(*r->page));
    r->page = NULL;
    vmri_uncharge(dev, VMRI_RES_PINNED, nr);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
