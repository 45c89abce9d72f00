/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the gate.  Every command's structure is copied in once, as a whole,
 * before anything looks at it, and copied out when the command succeeds.
 */
#include "internal.h"

union args {
    struct vmri_version version;
    struct vmri_object object;
    struct vmri_dev_create dev_create;
    struct vmri_dev_attr dev_attr;
    struct vmri_counters counters;
    struct vmri_dev_describe dev_describe;
    struct vmri_gid_set gid_set;
    struct vmri_port_query port_query;
    struct vmri_eq_create eq_create;
    struct vmri_cq_create cq_create;
    struct vmri_cq_resize cq_resize;
    struct vmri_srq_create srq_create;
    struct vmri_srq_modify srq_modify;
    struct vmri_srq_query srq_query;
    struct vmri_qp_create qp_create;
    struct vmri_qp_modify qp_modify;
    struct vmri_mcg mcg;
    struct vmri_mcg_qp mcg_qp;
    struct vmri_mcg_query mcg_query;
    struct vmri_mr_register mr_register;
    struct vmri_mr_reregister mr_reregister;
    struct vmri_mr_alloc mr_alloc;
    struct vmri_mw_alloc mw_alloc;
    struct vmri_twin twin;
    struct vmri_service service;
    struct vmri_service_query service_query;
};

#define IN      0x1
#define OUT     0x2

static const struct command {
    uint16_t cmd;
    uint8_t size;               /* of the structure */
    uint8_t dir;
} commands[] = {
    { VMRI_OP_version, sizeof(struct vmri_version), OUT },
    { VMRI_OP_dev_create, sizeof(struct vmri_dev_create), IN | OUT },
    { VMRI_OP_dev_destroy, 0, 0 },
    { VMRI_OP_dev_query, sizeof(struct vmri_dev_attr), OUT },
    { VMRI_OP_dev_counters, sizeof(struct vmri_counters), OUT },
    { VMRI_OP_dev_describe, sizeof(struct vmri_dev_describe), IN },
    { VMRI_OP_gid_set, sizeof(struct vmri_gid_set), IN },
    { VMRI_OP_pd_create, sizeof(struct vmri_object), IN | OUT },
    { VMRI_OP_pd_destroy, sizeof(struct vmri_object), IN },
    { VMRI_OP_xrcd_create, sizeof(struct vmri_object), IN | OUT },
    { VMRI_OP_xrcd_destroy, sizeof(struct vmri_object), IN },
    { VMRI_OP_eq_create, sizeof(struct vmri_eq_create), IN | OUT },
    { VMRI_OP_eq_destroy, sizeof(struct vmri_object), IN },
    { VMRI_OP_eq_poll, sizeof(struct vmri_object), IN },
    { VMRI_OP_cq_create, sizeof(struct vmri_cq_create), IN | OUT },
    { VMRI_OP_cq_resize, sizeof(struct vmri_cq_resize), IN | OUT },
    { VMRI_OP_cq_destroy, sizeof(struct vmri_object), IN },
    { VMRI_OP_srq_create, sizeof(struct vmri_srq_create), IN | OUT },
    { VMRI_OP_srq_destroy, sizeof(struct vmri_object), IN },
    { VMRI_OP_srq_modify, sizeof(struct vmri_srq_modify), IN },
    { VMRI_OP_srq_query, sizeof(struct vmri_srq_query), IN | OUT },
    { VMRI_OP_qp_create, sizeof(struct vmri_qp_create), IN | OUT },
    { VMRI_OP_qp_destroy, sizeof(struct vmri_object), IN },
    { VMRI_OP_qp_modify, sizeof(struct vmri_qp_modify), IN },
    { VMRI_OP_qp_query, sizeof(struct vmri_qp_modify), IN | OUT },
    { VMRI_OP_mcg_create, sizeof(struct vmri_mcg), IN | OUT },
    { VMRI_OP_mcg_destroy, sizeof(struct vmri_mcg), IN },
    { VMRI_OP_mcg_attach, sizeof(struct vmri_mcg_qp), IN },
    { VMRI_OP_mcg_detach, sizeof(struct vmri_mcg_qp), IN },
    { VMRI_OP_mcg_query, sizeof(struct vmri_mcg_query), IN | OUT },
    { VMRI_OP_port_query, sizeof(struct vmri_port_query), IN | OUT },
    { VMRI_OP_fabric_watch, 0, 0 },
    { VMRI_OP_mr_register, sizeof(struct vmri_mr_register), IN | OUT },
    { VMRI_OP_mr_deregister, sizeof(struct vmri_object), IN },
    { VMRI_OP_mr_reregister, sizeof(struct vmri_mr_reregister), IN | OUT },
    { VMRI_OP_mr_alloc, sizeof(struct vmri_mr_alloc), IN | OUT },
    { VMRI_OP_mw_alloc, sizeof(struct vmri_mw_alloc), IN | OUT },
    { VMRI_OP_mw_free, sizeof(struct vmri_object), IN },
    { VMRI_OP_twin_create, sizeof(struct vmri_twin), IN | OUT },
    { VMRI_OP_twin_destroy, sizeof(struct vmri_object), IN },
    { VMRI_OP_service_set, sizeof(struct vmri_service), IN },
    { VMRI_OP_service_delete, sizeof(struct vmri_service), IN },
    { VMRI_OP_service_query, sizeof(struct vmri_service_query), IN | OUT },
};

static const struct command *find_command(unsigned int cmd)
{
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(commands); i++ )
        if ( commands[i].cmd == cmd )
            return &commands[i];

    return NULL;
}

static long get_version(struct vmri_version *version)
{
    version->magic = VMRI_MAGIC;
    version->abi_version = VMRI_ABI_VERSION;
    version->features = env_domain_doorbells(env_current());

    return 0;
}

/* Commands that name one object and nothing else. */
static long call_object(struct vmri_dev *dev, unsigned int cmd,
                        const struct vmri_object *arg,
                        struct vmri_call *state)
{
    if ( arg->reserved )
        return -EINVAL;

    switch ( cmd )
    {
    case VMRI_OP_pd_destroy:
        return vmri_pd_destroy(dev, arg->handle);
    case VMRI_OP_xrcd_destroy:
        return vmri_xrcd_destroy(dev, arg->handle);
    case VMRI_OP_eq_destroy:
        return vmri_eq_destroy(dev, arg->handle, state);
    case VMRI_OP_eq_poll:
        return vmri_eq_poll(dev, arg->handle);
    case VMRI_OP_cq_destroy:
        return vmri_cq_destroy(dev, arg->handle, state);
    case VMRI_OP_srq_destroy:
        return vmri_srq_destroy(dev, arg->handle, state);
    case VMRI_OP_qp_destroy:
        return vmri_qp_destroy(dev, arg->handle, state);
    case VMRI_OP_mr_deregister:
        return vmri_mr_deregister(dev, arg->handle, state);
    case VMRI_OP_mw_free:
        return vmri_mw_free(dev, arg->handle);
    case VMRI_OP_twin_destroy:
        return vmri_twin_destroy(dev, arg->handle);
    default:
        ASSERT_UNREACHABLE();
        return -ENOSYS;
    }
}

static long call(struct vmri_dev *dev, unsigned int cmd, union args *args,
                 struct vmri_call *state)
{
    switch ( cmd )
    {
    case VMRI_OP_dev_create:
        return vmri_dev_create(dev, &args->dev_create);
    case VMRI_OP_dev_destroy:
        return vmri_dev_close(dev, state->again);
    case VMRI_OP_dev_query:
        vmri_dev_attr(dev, &args->dev_attr);
        return 0;
    case VMRI_OP_dev_counters:
        vmri_counters_get(dev, &args->counters);
        return 0;
    case VMRI_OP_dev_describe:
        return vmri_port_describe(dev, &args->dev_describe);
    case VMRI_OP_gid_set:
        return vmri_gid_set(dev, &args->gid_set);
    case VMRI_OP_pd_create:
        return vmri_pd_create(dev, &args->object);
    case VMRI_OP_xrcd_create:
        return vmri_xrcd_create(dev, &args->object);
    case VMRI_OP_eq_create:
        return vmri_eq_create(dev, &args->eq_create, state);
    case VMRI_OP_cq_create:
        return vmri_cq_create(dev, &args->cq_create, state);
    case VMRI_OP_cq_resize:
        return vmri_cq_resize(dev, &args->cq_resize, state);
    case VMRI_OP_srq_create:
        return vmri_srq_create(dev, &args->srq_create, state);
    case VMRI_OP_srq_modify:
        return vmri_srq_modify(dev, &args->srq_modify, state);
    case VMRI_OP_srq_query:
        return vmri_srq_query(dev, &args->srq_query);
    case VMRI_OP_qp_create:
        return vmri_qp_create(dev, &args->qp_create, state);
    case VMRI_OP_qp_modify:
        return vmri_qp_modify(dev, &args->qp_modify);
    case VMRI_OP_qp_query:
        return vmri_qp_query(dev, &args->qp_modify);
    case VMRI_OP_mcg_create:
        return vmri_mcg_create(dev, &args->mcg);
    case VMRI_OP_mcg_destroy:
        return vmri_mcg_destroy(dev, &args->mcg);
    case VMRI_OP_mcg_attach:
        return vmri_mcg_attach(dev, &args->mcg_qp);
    case VMRI_OP_mcg_detach:
        return vmri_mcg_detach(dev, &args->mcg_qp);
    case VMRI_OP_mcg_query:
        return vmri_mcg_query(dev, &args->mcg_query);
    case VMRI_OP_port_query:
        return vmri_port_query(dev, &args->port_query);
    case VMRI_OP_fabric_watch:
        return vmri_subnet_watch(dev);
    case VMRI_OP_mr_register:
        return vmri_mr_register(dev, &args->mr_register, state);
    case VMRI_OP_mr_reregister:
        return vmri_mr_reregister(dev, &args->mr_reregister, state);
    case VMRI_OP_mr_alloc:
        return vmri_fast_alloc(dev, &args->mr_alloc);
    case VMRI_OP_mw_alloc:
        return vmri_mw_alloc(dev, &args->mw_alloc);
    case VMRI_OP_twin_create:
        return vmri_twin_create(dev, &args->twin);
    case VMRI_OP_service_set:
        return vmri_service_set(dev, &args->service);
    case VMRI_OP_service_delete:
        return vmri_service_delete(dev, &args->service);
    case VMRI_OP_service_query:
        return vmri_service_query(dev, &args->service_query);
    default:
        return call_object(dev, cmd, &args->object, state);
    }
}

/*
 * The guest cannot be told what was made: it goes again.  -EFAULT, or -ERESTART
 * when that takes more than this call.
 */
static long undo(struct vmri_dev *dev, unsigned int cmd,
                 const union args *args, struct vmri_call *state)
{
    int ret = -EFAULT;

    state->error = -EFAULT;
    switch ( cmd )
    {
    case VMRI_OP_dev_create:
        vmri_dev_close(dev, false);
        break;
    case VMRI_OP_pd_create:
        vmri_pd_destroy(dev, args->object.handle);
        break;
    case VMRI_OP_xrcd_create:
        vmri_xrcd_destroy(dev, args->object.handle);
        break;
    case VMRI_OP_eq_create:
        ret = vmri_eq_destroy(dev, args->eq_create.handle, state);
        break;
    case VMRI_OP_cq_create:
        ret = vmri_cq_destroy(dev, args->cq_create.handle, state);
        break;
    case VMRI_OP_srq_create:
        ret = vmri_srq_destroy(dev, args->srq_create.handle, state);
        break;
    case VMRI_OP_qp_create:
        ret = vmri_qp_destroy(dev, args->qp_create.qpn, state);
        break;
    case VMRI_OP_mcg_create:
        vmri_mcg_destroy(dev, &args->mcg);
        break;
    case VMRI_OP_mr_register:
        return vmri_mr_abandon(dev, args->mr_register.key, state, -EFAULT);
    case VMRI_OP_mr_alloc:
        vmri_mr_deregister(dev, args->mr_alloc.key, state);
        break;
    case VMRI_OP_mw_alloc:
        vmri_mw_free(dev, args->mw_alloc.key);
        break;
    case VMRI_OP_twin_create:
        vmri_twin_destroy(dev, args->twin.handle);
        break;
    }

    return ret == -ERESTART ? ret : -EFAULT;
}

/*
 * A command that was continued fails before it comes to what its ticket names:
 * that goes.  `error`, or -ERESTART as above.
 */
static long abandon(struct vmri_dev *dev, unsigned int cmd,
                    struct vmri_call *state, long error)
{
    switch ( cmd )
    {
    case VMRI_OP_mr_register:
    case VMRI_OP_mr_deregister:
    case VMRI_OP_mr_reregister:
        return vmri_mr_abandon(dev, 0, state, error);
    case VMRI_OP_eq_create:
    case VMRI_OP_cq_create:
    case VMRI_OP_cq_resize:
    case VMRI_OP_srq_create:
    case VMRI_OP_srq_modify:
    case VMRI_OP_qp_create:
        return vmri_region_abandon(dev, state, error);
    }

    return error;
}

static long run(const struct command *c, struct vmri_dev *dev, uint64_t guest,
                struct vmri_call *state)
{
    union args args;
    long ret;

    if ( state->ticket && vmri_region_going(dev, state, &ret) )
        return ret;

    memset(&args, 0, sizeof(args));
    if ( (c->dir & IN) && env_copy_from_guest(&args, guest, c->size) )
        ret = -EFAULT;
    else
        ret = dev ? call(dev, c->cmd, &args, state)
                  : get_version(&args.version);

    if ( ret < 0 && ret != -ERESTART && state->ticket )
        return abandon(dev, c->cmd, state, ret);

    /*
     * The structure goes back also when the command ends later, with the
     * handle by which its event will name the object.
     */
    if ( !(c->dir & OUT) ||
         (ret < 0 && ret != -EINPROGRESS && !state->done) ||
         !env_copy_to_guest(guest, &args, c->size) )
        return ret;

    if ( ret == -ERESTART )
        return abandon(dev, c->cmd, state, -EFAULT);

    return ret < 0 && ret != -EINPROGRESS
           ? -EFAULT : undo(dev, c->cmd, &args, state);
}

/* The queue's number comes by value: of a QP, or of an SRQ. */
static long schedule(unsigned int cmd, unsigned int dev_id, uint64_t number)
{
    struct vmri_dev *dev = vmri_dev_get(env_current(), dev_id);
    long ret = -ENOENT;

    if ( unlikely(!dev) )
        return -ENODEV;

    if ( likely(number == (uint32_t)number) )
        ret = likely(cmd == VMRI_OP_schedule) ? vmri_schedule(dev, number)
                                              : vmri_srq_schedule(dev, number);
    vmri_dev_put(dev);

    return ret;
}

/* All but doorbells. */
static noinline long command(unsigned int cmd, unsigned int *dev_id,
                             uint64_t args)
{
    struct vmri_call state = { .again = cmd & VMRI_CONTINUE };
    const struct command *c;
    unsigned int id = *dev_id;
    struct vmri_dev *dev;
    long ret;

    cmd &= ~VMRI_CONTINUE;

    if ( cmd >= VMRI_OP_control )
        return vmri_control(cmd, args, state.again);

    c = find_command(cmd);
    if ( !c )
        return -ENOSYS;

    if ( cmd == VMRI_OP_version )
        return run(c, NULL, args, &state);

    if ( state.again )
    {
        state.ticket = id >> VMRI_TICKET_SHIFT;
        id &= (1U << VMRI_TICKET_SHIFT) - 1;
    }

    dev = vmri_dev_get(env_current(), id);
    if ( !dev )
        return -ENODEV;

    vmri_count(dev, hypercalls, 1);
    ret = run(c, dev, args, &state);
    vmri_dev_put(dev);
    *dev_id = id | (state.ticket << VMRI_TICKET_SHIFT);

    return ret;
}

long vmri_dispatch(unsigned int cmd, unsigned int *dev_id, uint64_t args)
{
    switch ( cmd )
    {
    case VMRI_OP_doorbell:
        return vmri_doorbell(*dev_id, args);

    case VMRI_OP_schedule:
    case VMRI_OP_srq_schedule:
        return schedule(cmd, *dev_id, args);

    default:
        return command(cmd, dev_id, args);
    }
}

void vmri_init(void)
{
    env_lock_init(&vmri_control_lock, LEVEL_CONTROL);
    vmri_uplinks_init();
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
