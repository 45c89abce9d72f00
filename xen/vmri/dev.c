/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: devices, from attachment to detachment, and what they tell of
 * themselves.
 *
 * A device that is being detached is no longer found by anybody: not by its
 * domain's calls, not by its peers.  It waits in its domain's `dying` list, in
 * any state of demolition, for the calls that finish it, one at a time.
 */
#include "internal.h"

#define CLOSE_MAX           32      /* objects that one call destroys */

/* Indices, of devices with an uplink. */
#define FIRST_OWN_QPN       (1U << 16)
#define FIRST_OWN_KEY       (1U << 20)

/*
 * An EUI-64 of the Xen project's, which has room for any domid and dev_id: unique
 * on this host.  It must not begin with 02 as a locally administered one would:
 * such service IDs are those that a connection manager assigns itself, and SRP's
 * targets listen at their GUID (IBTA 1.4, annex A3).
 */
static uint64_t make_guid(uint32_t domid, uint32_t dev_id)
{
    BUILD_BUG_ON(VMRI_MAX_DEVS > 0x100);

    return 0x00163efffe000000ULL | (domid & 0xffff) << 8 | dev_id;
}

/* The tables of objects, by VMRI_RES_*, and how their handles are made. */
static const struct object_table {
    size_t offset;              /* in struct vmri_dev */
    const struct vmri_handle_format *format;    /* NULL: no table */
} tables[VMRI_RES_NR] = {
#define TABLE(member, format)   { offsetof(struct vmri_dev, member), format }
    [VMRI_RES_PD] = TABLE(pds, &vmri_format_plain),
    [VMRI_RES_XRCD] = TABLE(xrcds, &vmri_format_plain),
    [VMRI_RES_EQ] = TABLE(eqs, &vmri_format_plain),
    [VMRI_RES_CQ] = TABLE(cqs, &vmri_format_plain),
    [VMRI_RES_SRQ] = TABLE(srqs, &vmri_format_srqn),
    [VMRI_RES_QP] = TABLE(qps, &vmri_format_qpn),
    [VMRI_RES_MR] = TABLE(keys, &vmri_format_key),      /* of windows, too */
#undef TABLE
};

struct vmri_table *vmri_dev_table(struct vmri_dev *dev, unsigned int kind)
{
    if ( kind >= VMRI_RES_NR )
        return NULL;
    kind = env_nospec(kind, VMRI_RES_NR);

    return tables[kind].format ? (void *)dev + tables[kind].offset : NULL;
}

uint64_t vmri_dev_bytes(struct vmri_dev *dev)
{
    uint64_t bytes = sizeof(*dev);
    const struct vmri_table *t;
    unsigned int kind;

    for ( kind = 0; kind < VMRI_RES_NR; kind++ )
        if ( (t = vmri_dev_table(dev, kind)) != NULL )
            bytes += env_load(&t->bytes);

    return bytes;
}

/* A device without number and place, charged to the domain. */
static int dev_alloc(struct vmri_domain *vd, bool sm, struct vmri_dev **out)
{
    struct vmri_dev *dev;
    struct vmri_table *t;
    unsigned int kind;

    if ( vmri_domain_charge(vd, VMRI_RES_DEV, 1) )
        return -ENOSPC;

    if ( vmri_domain_charge(vd, VMRI_RES_BYTES, sizeof(*dev)) )
        goto uncharge;

    dev = env_alloc(sizeof(*dev));
    if ( !dev )
        goto uncharge_bytes;

    dev->domain = vd->domain;
    dev->owner = vd;
    dev->sm = sm;
    env_lock_init(&dev->lock, LEVEL_DEV);
    INIT_LIST_HEAD(&dev->pending_mrs);
    INIT_LIST_HEAD(&dev->pending_regions);
    INIT_LIST_HEAD(&dev->memberships);
    INIT_LIST_HEAD(&dev->watching);
    INIT_LIST_HEAD(&dev->mws);
    INIT_LIST_HEAD(&dev->twins);
    for ( kind = 0; kind < VMRI_RES_NR; kind++ )
        if ( (t = vmri_dev_table(dev, kind)) != NULL )
            vmri_table_init(t, tables[kind].format, 0, dev, kind);
    vmri_port_init(&dev->port);
    dev->life = vmri_new_life();
    vmri_park_init(&dev->park);
    vmri_rate_init(&dev->rates);
    *out = dev;

    return 0;

 uncharge_bytes:
    vmri_domain_uncharge(vd, VMRI_RES_BYTES, sizeof(*dev));
 uncharge:
    vmri_domain_uncharge(vd, VMRI_RES_DEV, 1);

    return -ENOMEM;
}

/* Its tables have gone.  Under vmri_control_lock, which keeps the domain's. */
static void dev_free(struct vmri_dev *dev)
{
    vmri_gid_table_free(dev);
    vmri_domain_uncharge(dev->owner, VMRI_RES_BYTES, sizeof(*dev));
    vmri_domain_uncharge(dev->owner, VMRI_RES_DEV, 1);
    env_free(dev);
}

/* Find a place for the device and show it.  Under vmri_control_lock. */
static int dev_place(struct vmri_dev *dev, const struct vmri_ctl_attach *arg)
{
    struct vmri_domain *vd = dev->owner;
    int ret = vmri_table_reserve(&vd->devs, arg->dev_id, &dev->id);

    if ( ret )
        return ret == -EBUSY ? -EEXIST : ret;

    dev->guid = arg->guid ?: make_guid(env_domid(dev->domain), dev->id);
    dev->group = arg->group;

    ret = vmri_fabric_get(arg->fabric, arg->flags & VMRI_ATTACH_CREATED,
                          &dev->fabric);
    if ( ret )
        goto release;

    ret = dev->fabric->gids ? vmri_gid_table_alloc(dev) : 0;
    if ( !ret )
        ret = vmri_fabric_add(dev->fabric, dev, arg->lid);
    if ( ret )
        goto put;

    dev->slot = vmri_table_slot(&vd->devs, dev->id);
    vmri_table_publish(&vd->devs, dev->id, dev);
    env_trace(VMRI_TRC_ATTACH, vmri_trace_id(dev), dev->fabric->id, dev->lid);

    return 0;

 put:
    vmri_fabric_put(dev->fabric);
 release:
    vmri_table_release(&vd->devs, dev->id);

    return ret;
}

/*
 * Its own numbers then are ones that NICs give out last: QPNs and keys of objects
 * with twins are the NIC's.
 */
static int dev_uplink(struct vmri_dev *dev, struct vmri_uplink *u)
{
    int ret = vmri_table_begin(&dev->qps, FIRST_OWN_QPN) ?:
              vmri_table_begin(&dev->keys, FIRST_OWN_KEY);

    dev->uplink = u;
    dev->uplink_life = u->life;
    dev->caps = u->caps;

    return ret;
}

static void dev_undo(struct vmri_dev *dev)
{
    vmri_table_fini(&dev->qps);
    vmri_table_fini(&dev->keys);
    vmri_park_fini(&dev->park);
    dev_free(dev);
}

/* Under vmri_control_lock. */
static int attach(struct domain *d, struct vmri_ctl_attach *arg)
{
    struct vmri_uplink *u = vmri_uplink_find(arg->uplink);
    struct vmri_domain *vd;
    struct vmri_dev *dev;
    int ret;

    if ( env_domain_dying(d) )
        return -ESRCH;

    if ( arg->uplink && !u )
        return -ENODEV;

    vd = vmri_domain_make(d);
    if ( !vd )
        return -ENOMEM;

    ret = dev_alloc(vd, arg->flags & VMRI_ATTACH_SM, &dev);
    if ( ret )
        return ret;

    ret = u ? dev_uplink(dev, u) : 0;
    if ( !ret )
        ret = dev_place(dev, arg);
    if ( ret )
    {
        dev_undo(dev);
        return ret;
    }

    arg->dev_id = dev->id;
    arg->lid = dev->lid;
    arg->guid = dev->guid;

    return 0;
}

int vmri_dev_attach(struct domain *d, struct vmri_ctl_attach *arg)
{
    int ret;

    BUILD_BUG_ON(VMRI_DEV_ANY != VMRI_HANDLE_ANY);

    env_lock(&vmri_control_lock);
    ret = attach(d, arg);
    env_unlock(&vmri_control_lock);

    return ret;
}

/*
 * Let nobody find it any more.  When the domain's calls begin to fail,
 * neither peers nor the timer write to its rings: it may reuse that memory
 * then.  Under vmri_control_lock.
 */
static void dev_hide(struct vmri_dev *dev)
{
    vmri_fabric_remove(dev->fabric, dev);
    vmri_subnet_leave(dev->fabric, dev);
    vmri_gids_forget(dev);
    vmri_park_fini(&dev->park);
    vmri_table_kill(&dev->owner->devs, dev->id);
    list_add_tail(&dev->dying, &dev->owner->dying);
}

/*
 * Empty and free a hidden device whose `detaching` the caller has set.  The
 * domain keeps the number until the end.
 */
static int dev_demolish(struct vmri_dev *dev)
{
    int ret = vmri_dev_close(dev, false);
    struct vmri_table *t;
    unsigned int kind;

    for ( kind = 0; !ret && kind < VMRI_RES_NR; kind++ )
        if ( (t = vmri_dev_table(dev, kind)) != NULL )
            vmri_table_fini(t);

    /* The domain's teardown waits for this, and no longer. */
    env_lock(&vmri_control_lock);
    dev->detaching = false;
    if ( !ret )
    {
        list_del(&dev->dying);
        env_trace(VMRI_TRC_DETACH, vmri_trace_id(dev), dev->fabric->id,
                  dev->lid);
        vmri_fabric_put(dev->fabric);
        vmri_table_release(&dev->owner->devs, dev->id);
        dev_free(dev);
    }
    env_unlock(&vmri_control_lock);

    return ret;
}

/* A device of the domain that is being detached.  Under vmri_control_lock. */
static struct vmri_dev *find_dying(struct vmri_domain *vd, uint32_t dev_id)
{
    struct vmri_dev *dev;

    list_for_each_entry ( dev, &vd->dying, dying )
        if ( dev->id == dev_id )
            return dev;

    return NULL;
}

/* The same for one that is not; the lock keeps it, not a reference. */
static struct vmri_dev *find_visible(struct vmri_domain *vd, uint32_t dev_id)
{
    struct vmri_dev *dev = vmri_table_get(&vd->devs, dev_id);

    if ( dev )
        vmri_dev_put(dev);

    return dev;
}

struct vmri_dev *vmri_dev_find(struct domain *d, uint32_t dev_id)
{
    struct vmri_domain *vd = *env_domain_state(d);

    return vd ? find_visible(vd, dev_id) : NULL;
}

int vmri_dev_detach(struct domain *d, uint32_t dev_id, bool again)
{
    struct vmri_domain *vd;
    struct vmri_dev *dev;
    int ret = 0;

    env_lock(&vmri_control_lock);

    vd = *env_domain_state(d);
    dev = vd ? find_dying(vd, dev_id) : NULL;
    if ( vd && !dev && !again )
    {
        dev = find_visible(vd, dev_id);
        if ( dev )
        {
            if ( env_load(&dev->in_use) )
                vmri_port_event(dev, VMRI_EVENT_DEVICE_FATAL);
            dev_hide(dev);
        }
    }

    if ( !dev )
        ret = again ? 0 : -ENODEV;
    else if ( dev->detaching )
        ret = again ? -ERESTART : -EBUSY;
    else
        dev->detaching = true;

    env_unlock(&vmri_control_lock);

    return ret || !dev ? ret : dev_demolish(dev);
}

int vmri_dev_detach_all(struct vmri_domain *vd)
{
    uint32_t index = 0, id;
    struct vmri_dev *dev;
    int ret = 0;

    env_lock(&vmri_control_lock);
    while ( (dev = vmri_table_next(&vd->devs, &index, &id)) != NULL )
        dev_hide(dev);
    env_unlock(&vmri_control_lock);

    while ( !ret )
    {
        env_lock(&vmri_control_lock);
        dev = list_first_entry_or_null(&vd->dying, struct vmri_dev, dying);
        if ( dev && dev->detaching )
            ret = -ERESTART;            /* dom0 is at it */
        else if ( dev )
            dev->detaching = true;
        env_unlock(&vmri_control_lock);

        if ( !dev )
            break;
        if ( !ret )
            ret = dev_demolish(dev);
        if ( !ret && env_preempt() )
            ret = -ERESTART;
    }

    return ret;
}

int vmri_dev_create(struct vmri_dev *dev, struct vmri_dev_create *arg)
{
    const bool doorbell = arg->flags & VMRI_DEVF_DOORBELL;
    int ret = -EBUSY;

    if ( (arg->flags & ~VMRI_DEVF_DOORBELL) || arg->reserved ||
         (doorbell && !env_domain_doorbells(dev->domain)) )
        return -EINVAL;

    env_lock(&dev->lock);
    if ( !dev->in_use )
    {
        env_store(&dev->in_use, true);
        if ( doorbell )
            vmri_doorbell_open(dev);
        ret = 0;
    }
    env_unlock(&dev->lock);

    if ( !ret )
        vmri_dev_attr(dev, &arg->attr);

    return ret;
}

/*
 * Destroy the objects of one table: 0, or -ERESTART when it takes too long: a
 * guest's call must end soon, since whoever detaches the device waits for it.
 */
static int close_table(struct vmri_dev *dev, struct vmri_table *t,
                       struct vmri_call *call,
                       int (*destroy)(struct vmri_dev *dev, uint32_t handle,
                                      struct vmri_call *call))
{
    uint32_t index = 0, n = 0, handle;

    while ( vmri_table_next(t, &index, &handle) )
        if ( destroy(dev, handle, call) == -ERESTART ||
             ++n == CLOSE_MAX || env_preempt() )
            return -ERESTART;

    return 0;
}

/* What takes no time. */
static int cf_check pd_destroy(struct vmri_dev *dev, uint32_t handle,
                               struct vmri_call *call)
{
    (void)call;

    return vmri_pd_destroy(dev, handle);
}

static int cf_check xrcd_destroy(struct vmri_dev *dev, uint32_t handle,
                                 struct vmri_call *call)
{
    (void)call;

    return vmri_xrcd_destroy(dev, handle);
}

/* Joined groups: those that only QPs were attached to have gone with them. */
static int leave_groups(struct vmri_dev *dev)
{
    return vmri_mcg_leave(dev, CLOSE_MAX) == CLOSE_MAX ? -ERESTART : 0;
}

static int forget_services(struct vmri_dev *dev)
{
    return vmri_services_forget(dev, CLOSE_MAX) == CLOSE_MAX ? -ERESTART : 0;
}

/*
 * Users before what they use.  What another call is creating or destroying is
 * passed over.
 */
static int close_tables(struct vmri_dev *dev)
{
    struct vmri_call call = { .again = false };

    return close_table(dev, &dev->qps, &call, vmri_qp_destroy) ?:
           leave_groups(dev) ?:
           forget_services(dev) ?:
           close_table(dev, &dev->srqs, &call, vmri_srq_destroy) ?:
           close_table(dev, &dev->xrcds, &call, xrcd_destroy) ?:
           vmri_mw_close(dev) ?:
           close_table(dev, &dev->keys, &call, vmri_mr_deregister) ?:
           vmri_mr_reap(dev) ?:
           vmri_twins_close(dev) ?:
           close_table(dev, &dev->cqs, &call, vmri_cq_destroy) ?:
           close_table(dev, &dev->eqs, &call, vmri_eq_destroy) ?:
           vmri_region_reap(dev, &call) ?:
           close_table(dev, &dev->pds, &call, pd_destroy);
}

int vmri_dev_close(struct vmri_dev *dev, bool again)
{
    unsigned int what;
    bool todo;
    int ret;

    /* A call that comes back may find that another has finished. */
    env_lock(&dev->lock);
    todo = dev->in_use && (dev->closing || !again);
    if ( todo )
    {
        env_store(&dev->closing, true);
        vmri_doorbell_close(dev);
    }
    env_unlock(&dev->lock);

    if ( !todo )
        return 0;

    vmri_subnet_unwatch(dev);
    vmri_gids_forget(dev);
    ret = close_tables(dev);
    if ( ret )
        return ret;

    /* What was passed over is charged until it is gone. */
    env_lock(&dev->lock);
    for ( what = 0; what < VMRI_RES_NR; what++ )
        if ( env_load(&dev->usage[what]) )
            ret = -ERESTART;
    if ( !ret )
    {
        env_store(&dev->in_use, false);
        vmri_port_forget(dev);
        env_store(&dev->closing, false);
    }
    env_unlock(&dev->lock);

    return ret;
}

/* How many of a kind the device can have at the most. */
static uint32_t most(const struct vmri_dev *dev, unsigned int kind)
{
    const struct vmri_handle_format *format = tables[kind].format;

    return min_t(uint64_t, vmri_limit(dev, kind),
                 format ? vmri_table_capacity(format) : ~0U);
}

/* Nothing is promised that could not be carried. */
static void lower_to(const struct vmri_uplink_caps *caps,
                     struct vmri_dev_attr *attr)
{
    attr->max_mr_size = min(attr->max_mr_size, caps->max_mr_size);
    while ( attr->max_qp_wr > caps->max_qp_wr )
        attr->max_qp_wr /= 2;
    attr->max_sge = min(attr->max_sge, caps->max_sge);
    attr->max_srq_sge = min(attr->max_srq_sge, caps->max_sge);
    attr->max_inline = min(attr->max_inline, caps->max_inline);
    attr->max_rd_atomic = min(attr->max_rd_atomic, caps->max_rd_atomic);
    attr->mtu = min(attr->mtu, caps->mtu);
}

void vmri_dev_attr(const struct vmri_dev *dev, struct vmri_dev_attr *attr)
{
    const uint64_t pages = vmri_limit(dev, VMRI_RES_PINNED);
    /* An MR has less than 2^32. */
    const uint64_t mr_pages = min_t(uint64_t, pages, ~0U);
    unsigned int i;

    *attr = (struct vmri_dev_attr){
        .node_guid = dev->guid,
        .sys_image_guid = dev->guid,
        .port_guid = dev->guid,
        .gid_prefix = env_load(&dev->port.gid_prefix),
        .max_mr_size = mr_pages << VMRI_PAGE_SHIFT,
        .fabric = dev->fabric->id,
        .lid = env_load(&dev->lid),
        .sm_lid = vmri_port_sm_lid(dev),
        .max_pkeys = VMRI_MAX_PKEYS,
        .port_state = env_load(&dev->port.state),
        .mtu = VMRI_MTU_CODE,
        .max_pd = most(dev, VMRI_RES_PD),
        .max_eq = most(dev, VMRI_RES_EQ),
        .max_cq = most(dev, VMRI_RES_CQ),
        .max_cqe = VMRI_MAX_CQE,
        .max_qp = most(dev, VMRI_RES_QP),
        .max_qp_wr = VMRI_MAX_WR,
        .max_sge = VMRI_MAX_SGE,
        .max_inline = VMRI_MAX_INLINE,
        .max_mr = most(dev, VMRI_RES_MR),
        .max_mw = most(dev, VMRI_RES_MW),
        .max_fast_frames = VMRI_MAX_FAST_FRAMES,
        .max_rd_atomic = VMRI_MAX_RD_ATOMIC,
        .max_msg_size = VMRI_MAX_MSG,
        .clock_khz = 1000000,
        .clock = env_now(),
        .max_xrcd = most(dev, VMRI_RES_XRCD),
        .max_pinned_pages = pages,
        .max_mcg = most(dev, VMRI_RES_MCG),
        .max_mcg_qp = most(dev, VMRI_RES_MCG_QP),
        .max_srq = most(dev, VMRI_RES_SRQ),
        .max_srq_wr = VMRI_MAX_WR,
        .max_srq_sge = VMRI_MAX_SHARED_SGE,
        .flags = (dev->sm ? VMRI_DEVF_SM : 0) |
                 (dev->uplink ? VMRI_DEVF_UPLINK : 0) |
                 (dev->gids ? VMRI_DEVF_ROCE : 0),
    };
    if ( dev->uplink )
        lower_to(&dev->caps, attr);
    for ( i = 0; i < VMRI_MAX_PKEYS; i++ )
        attr->pkeys[i] = env_load(&dev->port.pkeys[i]);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
