/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: uplinks: how dom0's drivers of RoCE NICs are told what to do, and tell
 * what came of it.
 */
#include "internal.h"

#define LOG2_MIN    8
#define LOG2_MAX    16
#define CLOSE_MAX   64          /* twins that one call forgets */
#define CHUNK       16          /* results copied at a time */

static struct vmri_uplink uplinks[VMRI_UPLINKS];

void vmri_uplinks_init(void)
{
    unsigned int i;

    for ( i = 0; i < VMRI_UPLINKS; i++ )
        env_lock_init(&uplinks[i].lock, LEVEL_UPLINK);
}

struct vmri_uplink *vmri_uplink_find(uint32_t number)
{
    struct vmri_uplink *u;

    if ( !number || number > VMRI_UPLINKS )
        return NULL;
    u = &uplinks[env_nospec(number - 1, VMRI_UPLINKS)];

    return u->state == VMRI_UPLINK_OPEN ? u : NULL;
}

uint32_t vmri_uplink_number(const struct vmri_dev *dev)
{
    const struct vmri_uplink *u = dev->uplink;

    return u && env_load(&u->life) == dev->uplink_life ? u - uplinks + 1 : 0;
}

/* ---- opening ---- */

static bool caps_valid(const struct vmri_uplink_caps *caps)
{
    return caps->max_mr_size >= VMRI_PAGE_SIZE && caps->max_qp_wr &&
           caps->max_sge && caps->max_sge <= VMRI_MAX_SGE &&
           caps->max_inline <= VMRI_MAX_INLINE &&
           caps->mtu && caps->mtu <= VMRI_MTU_CODE && caps->atomics <= 1 &&
           !caps->reserved0 && !caps->reserved1;
}

static size_t pages_bytes(uint32_t nr)
{
    return nr * sizeof(struct vmri_region_page);
}

static void unpin(struct vmri_region *r)
{
    while ( r->nr )
    {
        struct vmri_region_page *p = &r->page[--r->nr];

        if ( p->map )
            env_unmap_ring(p->map);
        env_frame_put(p->frame, true);
    }
}

/* No more frames than one call may take: it is not continued. */
static int pin(struct domain *d, const struct vmri_frames *frames,
               struct vmri_region *r)
{
    uint64_t gfn;
    int ret = 0;

    while ( !ret && r->nr < frames->nr )
    {
        struct vmri_region_page *p = &r->page[r->nr];

        if ( env_copy_from_guest(&gfn, frames->gfns + r->nr * sizeof(gfn),
                                 sizeof(gfn)) )
            return -EFAULT;
        ret = env_frame_get(d, gfn, true, &p->frame);
        if ( ret )
            break;
        r->nr++;
        p->map = env_map_ring(p->frame);
        ret = p->map ? 0 : -ENOMEM;
    }

    return ret;
}

static void ring_free(struct vmri_domain *vd, struct vmri_region *r,
                      uint32_t nr)
{
    unpin(r);
    env_free(r->page);
    vmri_domain_uncharge(vd, VMRI_RES_BYTES, pages_bytes(nr));
    vmri_domain_uncharge(vd, VMRI_RES_PINNED, nr);
}

/* Charged, pinned and mapped. */
static int ring_make(struct vmri_domain *vd, const struct vmri_frames *frames,
                     struct vmri_region *r)
{
    const uint32_t nr = frames->nr;
    int ret = vmri_domain_charge(vd, VMRI_RES_PINNED, nr);

    if ( ret )
        return ret;
    if ( vmri_domain_charge(vd, VMRI_RES_BYTES, pages_bytes(nr)) )
    {
        vmri_domain_uncharge(vd, VMRI_RES_PINNED, nr);
        return -ENOMEM;
    }

    *r = (struct vmri_region){ .page = env_alloc(pages_bytes(nr)) };
    ret = r->page ? pin(vd->domain, frames, r) : -ENOMEM;
    if ( ret )
        ring_free(vd, r, nr);
    else
        memset(vmri_region_at(r, 0), 0, sizeof(struct vmri_uplink_hdr));

    return ret;
}

/* A free one, which nobody else gets; and the domain's state. */
static int reserve(struct domain *d, uint32_t *number, struct vmri_domain **vd)
{
    int ret = -ENOSPC;
    uint32_t i;

    env_lock(&vmri_control_lock);
    *vd = vmri_domain_make(d);
    for ( i = 0; *vd && ret && i < VMRI_UPLINKS; i++ )
        if ( uplinks[i].state == VMRI_UPLINK_FREE )
        {
            uplinks[i].state = VMRI_UPLINK_OPENING;
            env_store(&uplinks[i].domain, d);
            *number = i + 1;
            ret = 0;
        }
    env_unlock(&vmri_control_lock);

    return *vd ? ret : -ENOMEM;
}

static void set_state(struct vmri_uplink *u, enum vmri_uplink_state state)
{
    env_lock(&vmri_control_lock);
    env_store_release(&u->state, state);
    env_unlock(&vmri_control_lock);
}

static void begin(struct vmri_uplink *u, struct vmri_domain *vd,
                  const struct vmri_ctl_uplink_open *arg,
                  const struct vmri_region *region)
{
    env_lock(&u->lock);
    u->owner = vd;
    u->caps = arg->caps;
    u->region = *region;
    u->port = arg->port;
    u->log2_units = arg->log2_units;
    u->prod = 0;
    u->pds = 0;
    u->orphans = 0;
    u->nr_waiting = 0;
    u->round = 0;
    u->reserved = 0;
    vmri_table_init(&u->twins, &vmri_format_plain, 0, NULL, 0);
    INIT_LIST_HEAD(&u->todo);
    INIT_LIST_HEAD(&u->waiting);
    u->life = vmri_new_life();
    env_unlock(&u->lock);
}

int vmri_uplink_open(struct vmri_ctl_uplink_open *arg)
{
    struct domain *d = env_current();
    struct vmri_region region;
    struct vmri_domain *vd;
    struct vmri_uplink *u;
    uint64_t bytes;
    int ret;

    if ( !caps_valid(&arg->caps) || arg->frames.reserved ||
         arg->log2_units < LOG2_MIN || arg->log2_units > LOG2_MAX ||
         arg->reserved0[0] || arg->reserved0[1] || arg->reserved0[2] )
        return -EINVAL;

    bytes = VMRI_RING_OFFSET + ((uint64_t)VMRI_UPLINK_UNIT << arg->log2_units);
    if ( arg->frames.nr != PFN_UP(bytes) )
        return -EINVAL;

    ret = reserve(d, &arg->uplink, &vd);
    if ( ret )
        return ret;
    u = &uplinks[arg->uplink - 1];

    ret = ring_make(vd, &arg->frames, &region);
    if ( ret )
        goto release;

    ret = env_port_alloc(d, arg->vcpu);
    if ( ret < 0 )
        goto free;
    arg->port = ret;

    begin(u, vd, arg, &region);
    set_state(u, VMRI_UPLINK_OPEN);

    return 0;

 free:
    ring_free(vd, &region, arg->frames.nr);
 release:
    set_state(u, VMRI_UPLINK_FREE);

    return ret;
}

/* ---- closing ---- */

/* Results are given by one call at a time, which knows that it stays open. */
static bool try_busy(struct vmri_uplink *u)
{
    return !env_xchg(&u->busy, 1);
}

static void unbusy(struct vmri_uplink *u)
{
    env_store_release(&u->busy, 0);
}

/* Forget a twin: its queue pair, if there is one, fails.  False: there is none. */
static bool forget_one(struct vmri_uplink *u, uint32_t *index)
{
    struct vmri_qp *qp = NULL;
    struct vmri_double *t;
    uint32_t handle;

    env_lock(&u->lock);
    t = vmri_table_next(&u->twins, index, &handle);
    if ( t )
        vmri_twin_forget(u, t, &qp);
    env_unlock(&u->lock);

    if ( qp )
    {
        vmri_qp_error(qp, VMRI_EVENT_QP_FATAL);
        vmri_slot_put(qp->slot);
        vmri_slot_put(qp->dev->slot);
    }

    return t != NULL;
}

/*
 * Without twins, those who still wait do so for datagrams: call one of them, who then
 * finds that there is no uplink.  False: there is none.
 */
static bool dismiss_one(struct vmri_uplink *u)
{
    struct vmri_waiter *w = NULL;

    env_lock(&u->lock);
    if ( !list_empty(&u->waiting) )
    {
        w = list_first_entry(&u->waiting, struct vmri_waiter, waiting);
        vmri_uplink_yield(u, w);
        vmri_carry_call(w->qp);
    }
    env_unlock(&u->lock);

    return w;
}

/* All but its number is gone. */
static void finish(struct vmri_uplink *u)
{
    struct vmri_region region = u->region;

    vmri_table_fini(&u->twins);
    env_port_free(u->domain, u->port);
    ring_free(u->owner, &region, region.nr);
    set_state(u, VMRI_UPLINK_FREE);
}

static int close(struct vmri_uplink *u)
{
    uint32_t index = 0, n = 0;
    bool more = true;

    /* Who gives results ends soon. */
    while ( !try_busy(u) )
        env_relax();

    /* Another may have been faster, and then somebody have opened it again. */
    if ( env_load_acquire(&u->state) != VMRI_UPLINK_CLOSING )
        more = false;
    else
    {
        while ( more && n++ < CLOSE_MAX )
            more = forget_one(u, &index) || dismiss_one(u);
        if ( !more )
            finish(u);
    }
    unbusy(u);

    return more ? -ERESTART : 0;
}

/* From here on there is nothing to be said, and nothing is listened to. */
static void end(struct vmri_uplink *u)
{
    env_store_release(&u->state, VMRI_UPLINK_CLOSING);
    env_lock(&u->lock);
    u->life = 0;
    env_unlock(&u->lock);
}

static bool is_own(const struct vmri_uplink *u, const struct domain *d,
                   enum vmri_uplink_state state)
{
    return env_load_acquire(&u->state) == state && env_load(&u->domain) == d;
}

/*
 * The domain's uplink when it is in that state, in which it stays as long as one
 * has vmri_control_lock, or the uplink is busy.
 */
static struct vmri_uplink *own(uint32_t number, const struct domain *d,
                               enum vmri_uplink_state state)
{
    struct vmri_uplink *u;

    if ( !number || number > VMRI_UPLINKS )
        return NULL;
    u = &uplinks[env_nospec(number - 1, VMRI_UPLINKS)];

    return is_own(u, d, state) ? u : NULL;
}

/*
 * Two calls that close the same one take turns: who comes late finds that it is
 * done.
 */
int vmri_uplink_close(const struct vmri_ctl_uplink *arg, bool again)
{
    struct domain *d = env_current();
    struct vmri_uplink *u;

    if ( arg->reserved )
        return -EINVAL;

    env_lock(&vmri_control_lock);
    u = own(arg->uplink, d, again ? VMRI_UPLINK_CLOSING : VMRI_UPLINK_OPEN);
    if ( u && !again )
        end(u);
    env_unlock(&vmri_control_lock);

    if ( !u )
        return again ? 0 : -ENOENT;

    return close(u);
}

struct vmri_uplink *vmri_uplink_own(uint32_t number, const struct domain *d)
{
    return own(number, d, VMRI_UPLINK_OPEN);
}

int vmri_uplinks_end(struct domain *d)
{
    struct vmri_uplink *u;
    unsigned int i;
    int ret = 0;

    for ( i = 1; !ret && i <= VMRI_UPLINKS; i++ )
    {
        env_lock(&vmri_control_lock);
        u = own(i, d, VMRI_UPLINK_OPEN);
        if ( u )
            end(u);
        u = own(i, d, VMRI_UPLINK_CLOSING);
        env_unlock(&vmri_control_lock);
        if ( u )
            ret = close(u);
    }

    return ret;
}

/* ---- results ---- */

/* A queue pair that results are of, kept from one to the next. */
struct held {
    uint32_t twin;
    struct vmri_qp *qp;         /* with references to it and its device */
};

static void let_go(struct held *h)
{
    if ( !h->qp )
        return;

    vmri_slot_put(h->qp->slot);
    vmri_slot_put(h->qp->dev->slot);
    h->qp = NULL;
}

/*
 * Neither a device that is being detached nor a queue pair that is being destroyed
 * is found.
 */
static void hold(struct vmri_uplink *u, struct held *h, uint32_t twin)
{
    struct vmri_double *t;
    struct vmri_qp *qp;

    if ( h->qp && h->twin == twin )
        return;
    let_go(h);

    env_lock(&u->lock);
    t = vmri_twin_find(u, twin);
    qp = t ? t->qp : NULL;
    if ( qp && vmri_slot_get(qp->dev->slot, qp->dev->id) )
    {
        if ( vmri_slot_get(qp->slot, qp->qpn) )
            *h = (struct held){ .twin = twin, .qp = qp };
        else
            vmri_slot_put(qp->dev->slot);
    }
    env_unlock(&u->lock);
}

static void result(struct vmri_uplink *u, struct held *h,
                   const struct vmri_uplink_result *r)
{
    struct vmri_double *t;

    switch ( r->type )
    {
    case VMRI_UPLINK_MADE:
    case VMRI_UPLINK_GONE:
    case VMRI_UPLINK_MOVED:
        let_go(h);
        env_lock(&u->lock);
        t = vmri_twin_find(u, r->twin);
        if ( t )
            vmri_twin_result(u, t, r);
        env_unlock(&u->lock);
        break;

    case VMRI_UPLINK_SENT:
    case VMRI_UPLINK_RECEIVED:
    case VMRI_UPLINK_EVENT:
        hold(u, h, r->twin);
        if ( h->qp )
            vmri_carry_result(h->qp, r);
        break;
    }
}

static int results(struct vmri_uplink *u,
                   const struct vmri_ctl_uplink_done *arg)
{
    struct vmri_uplink_result r[CHUNK];
    struct held h = { .qp = NULL };
    uint32_t done = 0, nr, i;

    for ( ; done < arg->nr; done += nr )
    {
        nr = min_t(uint32_t, arg->nr - done, CHUNK);
        if ( env_copy_from_guest(r, arg->results + done * sizeof(r[0]),
                                 nr * sizeof(r[0])) )
            return done ? (int)done : -EFAULT;
        for ( i = 0; i < nr; i++ )
            result(u, &h, &r[i]);
        let_go(&h);
    }

    return done;
}

int vmri_uplink_done(const struct vmri_ctl_uplink_done *arg)
{
    const struct domain *d = env_current();
    struct vmri_uplink *u;
    int ret = -ENOENT;

    if ( arg->nr > VMRI_UPLINK_RESULTS )
        return -EINVAL;

    u = own(arg->uplink, d, VMRI_UPLINK_OPEN);
    if ( !u )
        return -ENOENT;
    if ( !try_busy(u) )
        return -EBUSY;

    if ( is_own(u, d, VMRI_UPLINK_OPEN) )
    {
        ret = results(u, arg);

        env_lock(&u->lock);
        vmri_uplink_pump(u, true);
        env_unlock(&u->lock);
    }
    unbusy(u);

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
