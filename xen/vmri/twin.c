/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: twins: what queue pairs and memory regions have on the NIC of an uplink.
 *
 * They are the uplink's, not the device's: one whose device has gone stays until
 * the uplink has said that it is gone, too, so that no message and no result means
 * another one than it did.  What there is to be said of a twin waits in it while
 * the ring has no room.
 */
#include "internal.h"

#define CLOSE_MAX       32          /* twins that one call makes orphans */
#define ORPHANS_MAX     65536U      /* of an uplink; then it makes no more */

/* What is to be said of it, in this order. */
#define TODO_MAKE       0x1
#define TODO_MOVE       0x2
#define TODO_STOP       0x4
#define TODO_END        0x8

/* ---- all up to the commands: by u->lock ---- */

struct vmri_double *vmri_twin_find(struct vmri_uplink *u, uint32_t handle)
{
    return vmri_table_peek(&u->twins, handle);
}

struct vmri_double *vmri_twin_of(const struct vmri_qp *qp)
{
    struct vmri_uplink *u = qp->dev->uplink;
    struct vmri_double *t = NULL;

    if ( u->life == qp->dev->uplink_life )
        t = vmri_twin_find(u, qp->carry->twin);

    return t && t->qp == qp ? t : NULL;
}

struct vmri_double *vmri_twin_of_dev(struct vmri_dev *dev, uint32_t handle)
{
    struct vmri_uplink *u = dev->uplink;
    struct vmri_double *t = NULL;

    if ( u->life == dev->uplink_life )
        t = vmri_twin_find(u, handle);

    return t && t->dev == dev && !t->gone ? t : NULL;
}

/* How many of this kind the device has. */
static uint32_t *number_of(const struct vmri_double *t)
{
    return &t->dev->nr_twins[t->twin.kind == VMRI_RES_QP];
}

static void twin_free(struct vmri_uplink *u, struct vmri_double *t)
{
    list_del_init(&t->waiting);
    vmri_table_kill(&u->twins, t->handle);
    vmri_table_release(&u->twins, t->handle);

    if ( !t->dev )
    {
        u->orphans--;
        env_free(t);
        return;
    }
    --*number_of(t);
    list_del(&t->list);
    vmri_free(t->dev, t, sizeof(*t));
}

/* ---- saying ---- */

static struct vmri_uplink_msg message(const struct vmri_double *t,
                                      unsigned int type)
{
    return (struct vmri_uplink_msg){
        .type = type, .domid = t->domid, .dev_id = t->dev_id,
        .twin = t->handle, .pd = t->pd,
    };
}

static bool say_make(struct vmri_uplink *u, const struct vmri_double *t)
{
    const struct vmri_twin *twin = &t->twin;
    struct vmri_uplink_msg msg;

    if ( twin->kind == VMRI_RES_QP )
    {
        msg = message(t, VMRI_UPLINK_CREATE_QP);
        msg.u.qp.type = twin->u.qp.type;
        msg.u.qp.max_send_wr = 1U << twin->u.qp.sq_log2_entries;
        msg.u.qp.max_recv_wr = 1U << twin->u.qp.rq_log2_entries;
        msg.u.qp.max_send_sge = twin->u.qp.max_send_sge;
        msg.u.qp.max_recv_sge = twin->u.qp.max_recv_sge;
        msg.u.qp.max_inline = twin->u.qp.max_inline;
    }
    else
    {
        msg = message(t, VMRI_UPLINK_CREATE_MR);
        msg.u.mr.iova = twin->u.mr.iova;
        msg.u.mr.length = twin->u.mr.length;
        msg.u.mr.access = twin->u.mr.access;
        msg.u.mr.offset = twin->u.mr.offset;
        msg.u.mr.pages = twin->u.mr.pages;
        msg.u.mr.list = twin->u.mr.list;
    }

    return vmri_uplink_put(u, &msg, NULL, 0);
}

static bool say_move(struct vmri_uplink *u, const struct vmri_double *t,
                     const struct vmri_qp_modify *to)
{
    struct vmri_uplink_msg msg = message(t, VMRI_UPLINK_MODIFY);

    return vmri_uplink_put(u, &msg, to, sizeof(*to));
}

static bool say_stop(struct vmri_uplink *u, const struct vmri_double *t)
{
    const struct vmri_qp_modify to = {
        .qpn = t->number, .mask = VMRI_QPA_STATE, .state = VMRI_QPS_ERR,
    };

    return say_move(u, t, &to);
}

static bool say_end(struct vmri_uplink *u, struct vmri_double *t)
{
    struct vmri_uplink_msg msg = message(t, VMRI_UPLINK_DESTROY);

    t->told = vmri_uplink_put(u, &msg, NULL, 0);

    return t->told;
}

static bool say_one(struct vmri_uplink *u, struct vmri_double *t,
                    unsigned int what)
{
    switch ( what )
    {
    case TODO_MAKE:
        return say_make(u, t);

    case TODO_MOVE:
        return say_move(u, t, &t->move);

    case TODO_STOP:
        return say_stop(u, t);

    default:
        return say_end(u, t);
    }
}

bool vmri_twin_say(struct vmri_uplink *u, struct vmri_double *t)
{
    while ( t->todo )
    {
        const unsigned int what = t->todo & -t->todo;

        if ( !say_one(u, t, what) )
            return false;
        t->todo &= ~what;
    }

    return true;
}

/* Say it in turn with what others have to say; nothing once it is closed. */
static void speak(struct vmri_uplink *u, struct vmri_double *t)
{
    if ( !u->life )
        return;
    if ( list_empty(&t->waiting) )
        list_add_tail(&t->waiting, &u->todo);
    vmri_uplink_pump(u, false);
}

void vmri_twin_move(struct vmri_uplink *u, struct vmri_double *t,
                    const struct vmri_qp_modify *to)
{
    t->before = t->state;
    t->state = to->state;
    t->move = *to;
    t->todo = (t->todo & ~TODO_STOP) | TODO_MOVE;
    speak(u, t);
}

void vmri_twin_stop(struct vmri_uplink *u, struct vmri_double *t)
{
    if ( t->state != VMRI_QPS_RTR && t->state != VMRI_QPS_RTS )
        return;

    t->state = VMRI_QPS_ERR;
    t->todo |= TODO_STOP;
    speak(u, t);
}

/* It is to go, and has nothing else to say than that it was to come. */
static void twin_end(struct vmri_uplink *u, struct vmri_double *t)
{
    t->ending = true;
    t->todo = (t->todo & TODO_MAKE) | TODO_END;
    speak(u, t);
}

/* ---- hearing ---- */

/* Not one that is being detached: it may have its memory back already. */
void vmri_twin_tell(struct vmri_double *t, unsigned int command, uint32_t id,
                    int64_t data)
{
    struct vmri_dev *dev = t->dev;

    if ( !dev || !vmri_slot_get(dev->slot, dev->id) )
        return;

    if ( dev->port.eq )
        vmri_event_command(dev->port.eq, &t->events, command, id, data);
    vmri_slot_put(dev->slot);
}

/* Forget what waits to be told. */
static void hush(struct vmri_double *t)
{
    struct vmri_eq *eq = t->dev->port.eq;

    if ( eq )
        vmri_source_fini(eq, &t->events.source);
}

static bool is_silent(struct vmri_double *t)
{
    struct vmri_eq *eq = t->dev->port.eq;

    return !eq || vmri_source_idle(eq, &t->events.source);
}

/* 0, or why it is none that VMRI could use. */
static int made_error(const struct vmri_double *t,
                      const struct vmri_uplink_result *r)
{
    if ( r->error )
        return r->error < 0 ? r->error : -EIO;
    if ( t->twin.kind == VMRI_RES_QP )
        return r->number > 1 && !(r->number >> 24) ? 0 : -EIO;

    return r->number ? 0 : -EIO;
}

static void made(struct vmri_double *t, const struct vmri_uplink_result *r)
{
    const int error = made_error(t, r);

    if ( t->made || t->failed || (t->todo & TODO_MAKE) )
        return;

    t->made = !error;
    t->failed = error;
    t->number = r->number;
    if ( !t->ending )
        vmri_twin_tell(t, VMRI_OP_twin_create, t->handle,
                       error ?: (int64_t)r->number);
}

/* One that could not be told of yet waits at the head of its device's list. */
static void gone(struct vmri_uplink *u, struct vmri_double *t)
{
    if ( !t->told || t->gone )
        return;

    vmri_twin_tell(t, VMRI_OP_twin_destroy, t->handle, 0);
    if ( !t->dev || is_silent(t) )
    {
        twin_free(u, t);
        return;
    }
    t->gone = true;
    list_del(&t->list);
    list_add(&t->list, &t->dev->twins);
}

static void moved(struct vmri_double *t, const struct vmri_uplink_result *r)
{
    int error = r->error > 0 ? -EIO : r->error;
    struct vmri_qp *qp = t->qp;
    struct vmri_carry *c;

    if ( !qp )
        return;

    if ( !error &&
         (r->number == VMRI_QPS_ERR || r->number == VMRI_QPS_RESET) )
        vmri_carry_lost(qp);

    c = qp->carry;
    if ( c->settling != VMRI_SETTLING || r->number != t->move.state )
        return;

    if ( t->state != t->move.state )
        error = error ?: -EIO;          /* it was stopped meanwhile */
    else if ( error )
        t->state = t->before;
    c->settling = error ? VMRI_SETTLED_NONE : VMRI_SETTLED;
    vmri_twin_tell(t, VMRI_OP_qp_modify, qp->qpn, error);
}

void vmri_twin_result(struct vmri_uplink *u, struct vmri_double *t,
                      const struct vmri_uplink_result *r)
{
    switch ( r->type )
    {
    case VMRI_UPLINK_MADE:
        made(t, r);
        break;

    case VMRI_UPLINK_GONE:
        gone(u, t);
        break;

    default:
        moved(t, r);
        break;
    }
}

/* How its command ends, if one is under way, when the uplink goes. */
static void tell_end(struct vmri_double *t)
{
    if ( t->qp && t->qp->carry->settling == VMRI_SETTLING )
        vmri_twin_tell(t, VMRI_OP_qp_modify, t->qp->qpn, -ENODEV);
    else if ( t->ending && !t->gone )
        vmri_twin_tell(t, VMRI_OP_twin_destroy, t->handle, 0);
    else if ( !t->ending && !t->made && !t->failed )
        vmri_twin_tell(t, VMRI_OP_twin_create, t->handle, -ENODEV);
}

void vmri_twin_forget(struct vmri_uplink *u, struct vmri_double *t,
                      struct vmri_qp **out)
{
    struct vmri_qp *qp = t->qp;

    *out = NULL;
    if ( t->dev )
        tell_end(t);

    if ( qp )
    {
        if ( vmri_slot_get(t->dev->slot, t->dev->id) )
        {
            if ( vmri_slot_get(qp->slot, qp->qpn) )
                *out = qp;
            else
                vmri_slot_put(t->dev->slot);
        }
        qp->carry->settling = VMRI_SETTLED_NONE;
        vmri_uplink_yield(u, &qp->carry->waiter);
        vmri_carry_lost(qp);
        t->qp = NULL;
    }

    if ( t->dev )
        hush(t);
    twin_free(u, t);
}

/* ---- commands ---- */

static int check_qp(const struct vmri_uplink_caps *caps,
                    const struct vmri_twin *arg)
{
    if ( arg->u.qp.type != VMRI_QPT_RC && arg->u.qp.type != VMRI_QPT_UC )
        return -EOPNOTSUPP;

    if ( arg->u.qp.sq_log2_entries > VMRI_MAX_WR_SHIFT ||
         arg->u.qp.rq_log2_entries > VMRI_MAX_WR_SHIFT ||
         1U << arg->u.qp.sq_log2_entries > caps->max_qp_wr ||
         1U << arg->u.qp.rq_log2_entries > caps->max_qp_wr ||
         arg->u.qp.max_send_sge > caps->max_sge ||
         arg->u.qp.max_recv_sge > caps->max_sge ||
         arg->u.qp.max_inline > caps->max_inline ||
         arg->u.qp.reserved[0] || arg->u.qp.reserved[1] ||
         arg->u.qp.reserved[2] || arg->u.raw[1] >> 32 || arg->u.raw[2] ||
         arg->u.raw[3] || arg->u.raw[4] )
        return -EINVAL;

    return 0;
}

static int check_mr(const struct vmri_uplink_caps *caps,
                    const struct vmri_twin *arg)
{
    if ( (arg->u.mr.access & ~VMRI_ACCESS_MR) ||
         !vmri_rights_valid(arg->u.mr.access) ||
         !vmri_bounds_valid(arg->u.mr.iova, arg->u.mr.length) ||
         arg->u.mr.length > caps->max_mr_size ||
         arg->u.mr.offset != (arg->u.mr.iova & (VMRI_PAGE_SIZE - 1)) ||
         PFN_UP(arg->u.mr.offset + arg->u.mr.length) != arg->u.mr.pages )
        return -EINVAL;

    return 0;
}

static int check_create(const struct vmri_dev *dev,
                        const struct vmri_twin *arg)
{
    if ( !dev->uplink )
        return -EOPNOTSUPP;
    if ( arg->reserved )
        return -EINVAL;

    switch ( arg->kind )
    {
    case VMRI_RES_QP:
        return check_qp(&dev->caps, arg);

    case VMRI_RES_MR:
        return check_mr(&dev->caps, arg);

    default:
        return -EOPNOTSUPP;
    }
}

/* Free those whose end has been told by now. */
static void reap(struct vmri_uplink *u, struct vmri_dev *dev)
{
    struct vmri_double *t;
    unsigned int n;

    for ( n = 0; n < CLOSE_MAX && !list_empty(&dev->twins); n++ )
    {
        t = list_first_entry(&dev->twins, struct vmri_double, list);
        if ( !t->gone || !is_silent(t) )
            break;
        twin_free(u, t);
    }
}

/* Under dev->lock, too, so that vmri_twins_close does not miss it. */
static int may_make(const struct vmri_uplink *u, const struct vmri_dev *dev,
                    const struct vmri_double *t)
{
    if ( !dev->in_use || dev->closing || u->life != dev->uplink_life )
        return -ENODEV;
    if ( !dev->port.eq )
        return -EINVAL;
    if ( *number_of(t) >= vmri_limit(dev, t->twin.kind) )
        return -ENOSPC;

    return u->orphans < ORPHANS_MAX ? 0 : -EAGAIN;
}

static void make(struct vmri_uplink *u, struct vmri_dev *dev,
                 struct vmri_pd *pd, struct vmri_double *t)
{
    if ( !pd->number )
        pd->number = ++u->pds;
    t->pd = pd->number;
    t->twin.handle = t->handle;
    vmri_source_init(&t->events.source, t->handle);
    INIT_LIST_HEAD(&t->waiting);
    list_add_tail(&t->list, &dev->twins);
    ++*number_of(t);
    vmri_table_publish(&u->twins, t->handle, t);
    t->todo = TODO_MAKE;
    speak(u, t);
}

/* Everything but memory. */
static int begin(struct vmri_dev *dev, struct vmri_pd *pd,
                 struct vmri_double *t)
{
    struct vmri_uplink *u = dev->uplink;
    int ret;

    env_lock(&dev->lock);
    env_lock(&u->lock);
    reap(u, dev);
    ret = may_make(u, dev, t);
    if ( !ret )
        ret = vmri_table_reserve(&u->twins, VMRI_HANDLE_ANY, &t->handle);
    if ( !ret )
        make(u, dev, pd, t);
    env_unlock(&u->lock);
    env_unlock(&dev->lock);

    return ret;
}

int vmri_twin_create(struct vmri_dev *dev, struct vmri_twin *arg)
{
    struct vmri_double *t;
    struct vmri_pd *pd;
    int ret = check_create(dev, arg);

    if ( ret )
        return ret;

    t = vmri_alloc(dev, sizeof(*t));
    if ( !t )
        return -ENOMEM;

    t->domid = env_domid(dev->domain);
    t->dev_id = dev->id;
    t->dev = dev;
    t->twin = *arg;

    ret = -ENOENT;
    pd = vmri_table_get(&dev->pds, arg->pd);
    if ( pd )
    {
        ret = begin(dev, pd, t);
        vmri_table_put(&dev->pds, arg->pd);
    }
    if ( ret )
    {
        vmri_free(dev, t, sizeof(*t));
        return ret;
    }

    arg->handle = t->handle;

    return -EINPROGRESS;
}

int vmri_twin_destroy(struct vmri_dev *dev, uint32_t handle)
{
    struct vmri_uplink *u = dev->uplink;
    struct vmri_double *t;
    int ret = -ENOENT;

    if ( !u )
        return -ENOENT;

    env_lock(&u->lock);
    t = vmri_twin_of_dev(dev, handle);
    if ( t )
        ret = t->qp || t->object || t->ending ? -EBUSY : -EINPROGRESS;
    if ( ret == -EINPROGRESS )
    {
        hush(t);
        twin_end(u, t);
    }
    env_unlock(&u->lock);

    return ret;
}

static void orphan(struct vmri_uplink *u, struct vmri_double *t)
{
    struct vmri_dev *dev = t->dev;

    hush(t);
    if ( t->gone )
    {
        twin_free(u, t);
        return;
    }

    --*number_of(t);
    list_del(&t->list);
    vmri_uncharge(dev, VMRI_RES_BYTES, sizeof(*t));
    t->dev = NULL;
    u->orphans++;
    if ( !t->ending )
        twin_end(u, t);
}

int vmri_twins_close(struct vmri_dev *dev)
{
    struct vmri_uplink *u = dev->uplink;
    struct vmri_double *t;
    unsigned int n;
    bool left;

    if ( !u )
        return 0;

    env_lock(&u->lock);
    for ( n = 0; n < CLOSE_MAX && !list_empty(&dev->twins); n++ )
    {
        t = list_first_entry(&dev->twins, struct vmri_double, list);
        /* Another call makes or destroys its object. */
        if ( t->qp || t->object )
            break;
        orphan(u, t);
    }
    left = !list_empty(&dev->twins);
    env_unlock(&u->lock);

    return left ? -ERESTART : 0;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
