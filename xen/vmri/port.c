/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: the port of a device: its attributes, which dom0 may change at any
 * time, and the events that tell the guest so.
 *
 * A port that is not active is silence in both directions, nothing else: who
 * is connected through it runs into time-outs, and goes on if it comes back
 * before they end.
 */
#include "internal.h"

#define GID_PREFIX      0xfe80000000000000ULL   /* IBTA's default subnet */
#define PKEY_DEFAULT    0xffffU
#define PKEY_FULL       0x8000U                 /* full member */

void vmri_port_init(struct vmri_port *port)
{
    *port = (struct vmri_port){
        .state = VMRI_PORT_ACTIVE,
        .gid_prefix = GID_PREFIX,
        .pkeys = { PKEY_DEFAULT },
        .version = vmri_new_life(),
    };
    vmri_source_init(&port->source, 0);
}

uint16_t vmri_port_sm_lid(const struct vmri_dev *dev)
{
    return env_load(&dev->port.sm_lid) ?: env_load(&dev->lid);
}

bool vmri_port_reaches(const struct vmri_dev *from, const struct vmri_dev *to)
{
    return env_load(&from->port.state) == VMRI_PORT_ACTIVE &&
           env_load(&to->port.state) == VMRI_PORT_ACTIVE;
}

/* ---- partitions ---- */

/* An entry of 0, and one beyond the table, are of no partition. */
static uint16_t pkey_at(const struct vmri_port *port, unsigned int index)
{
    return index < VMRI_MAX_PKEYS
           ? env_load(&port->pkeys[env_nospec(index, VMRI_MAX_PKEYS)]) : 0;
}

/* IBTA 1.4, 10.9.3: the same partition, and not two limited members. */
static bool pkeys_match(uint16_t a, uint16_t b)
{
    return !((a ^ b) & ~PKEY_FULL) && ((a | b) & PKEY_FULL) &&
           (a & ~PKEY_FULL);
}

static unsigned int pkey_index(const struct vmri_qp *qp)
{
    return qp->type == VMRI_QPT_GSI ? qp->tx.wqe.u.ud.av.pkey_index
                                    : env_load(&qp->attr.pkey_index);
}

uint16_t vmri_port_pkey(const struct vmri_qp *qp)
{
    return pkey_at(&qp->dev->port, pkey_index(qp));
}

bool vmri_port_takes(uint16_t pkey, struct vmri_qp *to, uint16_t *index)
{
    const struct vmri_port *port = &to->dev->port;
    unsigned int i = env_load(&to->attr.pkey_index), end = i + 1;

    if ( to->type == VMRI_QPT_GSI )
    {
        i = 0;
        end = VMRI_MAX_PKEYS;
    }

    for ( ; i < end; i++ )
        if ( pkeys_match(pkey, pkey_at(port, i)) )
        {
            *index = i;
            return true;
        }

    vmri_count(to->dev, pkey_violations, 1);

    return false;
}

bool vmri_port_admits(const struct vmri_qp *from, struct vmri_qp *to,
                      uint16_t *index)
{
    const unsigned int of = pkey_index(from);

    /* What a device says to itself in the matter of its management. */
    if ( from->dev == to->dev &&
         (to->type == VMRI_QPT_GSI || to->type == VMRI_QPT_SMI) )
    {
        *index = of < VMRI_MAX_PKEYS ? of : 0;
        return true;
    }

    return vmri_port_takes(pkey_at(&from->dev->port, of), to, index);
}

bool vmri_port_in_partition(const struct vmri_dev *dev, uint16_t pkey)
{
    unsigned int i;

    for ( i = 0; i < VMRI_MAX_PKEYS; i++ )
        if ( (pkey & ~PKEY_FULL) &&
             !((pkey_at(&dev->port, i) ^ pkey) & ~PKEY_FULL) )
            return true;

    return false;
}

/* ---- events ---- */

/* Twins' events go there, too.  Under dev->lock. */
static void set_eq(struct vmri_dev *dev, struct vmri_eq *eq)
{
    if ( dev->uplink )
        env_lock(&dev->uplink->lock);
    dev->port.eq = eq;
    if ( dev->uplink )
        env_unlock(&dev->uplink->lock);
}

int vmri_port_bind(struct vmri_dev *dev, struct vmri_eq *eq)
{
    int ret = -EBUSY;

    env_lock(&dev->lock);
    if ( !dev->port.eq )
    {
        set_eq(dev, eq);
        ret = 0;
    }
    env_unlock(&dev->lock);

    return ret;
}

void vmri_port_unbind(struct vmri_dev *dev, struct vmri_eq *eq)
{
    env_lock(&dev->lock);
    if ( dev->port.eq == eq )
    {
        set_eq(dev, NULL);
        vmri_eq_purge(eq);
    }
    env_unlock(&dev->lock);
}

/*
 * What is not true any more, should it still wait to be told: events that wait
 * come in the order of their types.
 */
static uint32_t outdated(unsigned int type)
{
    switch ( type )
    {
    case VMRI_EVENT_PORT_ACTIVE:
        return 1U << VMRI_EVENT_PORT_ERR;

    case VMRI_EVENT_PORT_ERR:
        return 1U << VMRI_EVENT_PORT_ACTIVE;

    default:
        return 0;
    }
}

void vmri_port_event(struct vmri_dev *dev, unsigned int type)
{
    struct vmri_port *port = &dev->port;

    env_lock(&dev->lock);
    if ( port->eq )
    {
        vmri_source_forget(port->eq, &port->source, outdated(type));
        vmri_event_raise(port->eq, &port->source, type);
    }
    env_unlock(&dev->lock);
}

/* ---- what ports tell of each other ---- */

int vmri_port_describe(struct vmri_dev *dev,
                       const struct vmri_dev_describe *arg)
{
    int ret = -ENODEV;

    if ( arg->reserved )
        return -EINVAL;

    env_lock(&dev->lock);
    if ( dev->in_use && !dev->closing )
    {
        dev->port.text = *arg;
        ret = 0;
    }
    env_unlock(&dev->lock);

    return ret;
}

void vmri_port_forget(struct vmri_dev *dev)
{
    memset(&dev->port.text, 0, sizeof(dev->port.text));
}

/* The next one that XSM lets the device's domain know of, or NULL. */
static struct vmri_dev *next_port(const struct vmri_dev *dev, uint32_t lid)
{
    struct vmri_dev *peer;

    while ( (peer = vmri_fabric_peer_from(dev->fabric, lid)) != NULL &&
            !vmri_fabric_shows(dev, peer) )
    {
        lid = peer->lid + 1;
        vmri_fabric_peer_put(peer);
    }

    return peer;
}

static void tell(struct vmri_dev *dev, struct vmri_port_query *arg)
{
    unsigned int i;

    *arg = (struct vmri_port_query){
        .lid = dev->lid,
        .state = env_load(&dev->port.state),
        .mtu = VMRI_MTU_CODE,
        .guid = dev->guid,
        .gid_prefix = env_load(&dev->port.gid_prefix),
    };
    for ( i = 0; i < VMRI_MAX_PKEYS; i++ )
        arg->pkeys[i] = env_load(&dev->port.pkeys[i]);

    env_lock(&dev->lock);
    arg->cap_mask = dev->port.text.cap_mask;
    memcpy(arg->node_desc, dev->port.text.node_desc, sizeof(arg->node_desc));
    env_unlock(&dev->lock);
}

int vmri_port_query(struct vmri_dev *dev, struct vmri_port_query *arg)
{
    struct vmri_dev *peer;

    peer = next_port(dev, arg->lid);
    if ( !peer )
        return -ENOENT;

    tell(peer, arg);
    vmri_fabric_peer_put(peer);

    return 0;
}

/* ---- control, under vmri_control_lock ---- */

static void get_all(const struct vmri_dev *dev, struct vmri_ctl_port *arg)
{
    arg->state = dev->port.state;
    arg->lid = dev->lid;
    arg->sm_lid = vmri_port_sm_lid(dev);
    arg->gid_prefix = dev->port.gid_prefix;
    memcpy(arg->pkeys, dev->port.pkeys, sizeof(arg->pkeys));
}

static void set_all(struct vmri_port *port, const struct vmri_ctl_port *arg)
{
    unsigned int i;

    if ( arg->mask & VMRI_PORTA_STATE )
        env_store(&port->state, arg->state);
    if ( arg->mask & VMRI_PORTA_SM_LID )
        env_store(&port->sm_lid, arg->sm_lid);
    for ( i = 0; (arg->mask & VMRI_PORTA_PKEY) && i < VMRI_MAX_PKEYS; i++ )
        env_store(&port->pkeys[i], arg->pkeys[i]);
    if ( arg->mask & VMRI_PORTA_GID_PREFIX )
        env_store(&port->gid_prefix, arg->gid_prefix);
}

/*
 * One event for each attribute that is another now (IBTA 1.4, 11.6.3).  A port
 * that comes up has its attributes by then.
 */
static void tell_changes(struct vmri_dev *dev, const struct vmri_ctl_port *old,
                         const struct vmri_ctl_port *now)
{
    const bool was = old->state == VMRI_PORT_ACTIVE;
    const bool is = now->state == VMRI_PORT_ACTIVE;
    const struct {
        unsigned int type;
        bool raise;
    } events[] = {
        { VMRI_EVENT_PORT_ERR, was && !is },
        { VMRI_EVENT_LID_CHANGE, old->lid != now->lid },
        { VMRI_EVENT_GID_CHANGE, old->gid_prefix != now->gid_prefix },
        { VMRI_EVENT_PKEY_CHANGE,
          memcmp(old->pkeys, now->pkeys, sizeof(old->pkeys)) },
        { VMRI_EVENT_SM_CHANGE, old->sm_lid != now->sm_lid },
        { VMRI_EVENT_PORT_ACTIVE, !was && is },
        { VMRI_EVENT_CLIENT_REREGISTER, now->mask & VMRI_PORTA_REREGISTER },
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(events); i++ )
        if ( events[i].raise )
            vmri_port_event(dev, events[i].type);
}

/* What others are told of the port. */
static bool same(const struct vmri_ctl_port *a, const struct vmri_ctl_port *b)
{
    return a->state == b->state && a->lid == b->lid &&
           a->gid_prefix == b->gid_prefix &&
           !memcmp(a->pkeys, b->pkeys, sizeof(a->pkeys));
}

static int change(struct vmri_dev *dev, struct vmri_ctl_port *arg)
{
    const uint16_t manager = dev->port.sm_lid;
    struct vmri_ctl_port old;
    int ret = 0;

    get_all(dev, &old);
    if ( (arg->mask & VMRI_PORTA_LID) && arg->lid != dev->lid )
        ret = vmri_fabric_move(dev->fabric, dev, arg->lid);
    if ( ret )
        return ret;

    set_all(&dev->port, arg);
    env_store_release(&dev->port.version, vmri_new_life());
    get_all(dev, arg);
    /* Rules may say something else of its new GID. */
    if ( old.gid_prefix != arg->gid_prefix )
        vmri_rules_changed(dev->fabric);
    /* Another manager knows nothing of its groups and services. */
    if ( dev->port.sm_lid != manager )
    {
        vmri_mcg_leave(dev, ~0U);
        vmri_services_forget(dev, ~0U);
    }
    tell_changes(dev, &old, arg);
    if ( !same(&old, arg) )
        vmri_subnet_ports_changed(dev->fabric);

    return 0;
}

void vmri_port_release(struct vmri_dev *dev, uint16_t manager)
{
    struct vmri_ctl_port arg = {
        .mask = VMRI_PORTA_SM_LID | VMRI_PORTA_REREGISTER,
        .state = VMRI_PORT_ACTIVE,
    };

    if ( dev->port.state == VMRI_PORT_INIT ||
         dev->port.state == VMRI_PORT_ARMED )
        arg.mask |= VMRI_PORTA_STATE;
    else if ( dev->port.sm_lid != manager )
        return;

    change(dev, &arg);
}

static bool unicast(uint16_t lid)
{
    return lid && lid <= VMRI_LID_MAX;
}

/* The first entry is there, and no partition twice. */
static bool pkeys_valid(const uint16_t *pkeys)
{
    unsigned int i, j;

    for ( i = 0; i < VMRI_MAX_PKEYS; i++ )
    {
        if ( !i || pkeys[i] )
            if ( !(pkeys[i] & ~PKEY_FULL) )
                return false;
        for ( j = 0; j < i && pkeys[i]; j++ )
            if ( !((pkeys[i] ^ pkeys[j]) & ~PKEY_FULL) )
                return false;
    }

    return true;
}

static bool values_valid(const struct vmri_ctl_port *arg)
{
    const struct {
        uint32_t attr;
        bool ok;
    } check[] = {
        { VMRI_PORTA_STATE, arg->state >= VMRI_PORT_DOWN &&
                            arg->state <= VMRI_PORT_ACTIVE },
        { VMRI_PORTA_LID, unicast(arg->lid) },
        { VMRI_PORTA_SM_LID, !arg->sm_lid || unicast(arg->sm_lid) },
        { VMRI_PORTA_PKEY, pkeys_valid(arg->pkeys) },
        /* Anything but the prefix of multicast GIDs. */
        { VMRI_PORTA_GID_PREFIX, arg->gid_prefix >> 56 != 0xff },
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(check); i++ )
        if ( (arg->mask & check[i].attr) && !check[i].ok )
            return false;

    return !(arg->mask & ~VMRI_PORTA_ALL) && !arg->reserved0 &&
           !arg->reserved1 && !arg->reserved2;
}

int vmri_port_control(struct domain *d, struct vmri_ctl_port *arg)
{
    struct vmri_dev *dev;
    int ret = -ENODEV;

    if ( !values_valid(arg) )
        return -EINVAL;

    env_lock(&vmri_control_lock);
    dev = vmri_dev_find(d, arg->dev_id);
    if ( dev )
        ret = change(dev, arg);
    env_unlock(&vmri_control_lock);

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
