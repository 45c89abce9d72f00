/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: what goes into an uplink's ring, and whose turn it is.
 *
 * The ring is dom0's memory, and dom0 is trusted; but what it writes there is
 * bounded as a guest's index would be.  Guests fill the ring as their requests
 * come.  What VMRI itself has to say and finds no room waits with the twin that it
 * is about.  Queue pairs wait in a row.  When there is room, a round of turns begins:
 * those who wait get equal shares of it, or what their message takes if that is more,
 * reserved for them until the next round, which the uplink begins by calling again.
 *
 * All of it is under u->lock.
 */
#include "internal.h"

#define PUMP_MAX    256         /* twins, and waiters, in one call */

/* ---- the ring ---- */

static struct vmri_uplink_hdr *ring_hdr(const struct vmri_uplink *u)
{
    return vmri_region_at(&u->region, 0);
}

/* Free units: none when the index is out of range. */
static uint32_t room(const struct vmri_uplink *u)
{
    const uint32_t size = 1U << u->log2_units;
    uint32_t used = u->prod - env_load_acquire(&ring_hdr(u)->cons);

    return used <= size ? size - used : 0;
}

static uint32_t units_of(uint32_t bytes)
{
    return 1 + (bytes + VMRI_UPLINK_UNIT - 1) / VMRI_UPLINK_UNIT;
}

static void *unit_at(const struct vmri_uplink *u, uint32_t index)
{
    return vmri_region_at(&u->region, VMRI_RING_OFFSET +
                          (index & ((1U << u->log2_units) - 1)) *
                          VMRI_UPLINK_UNIT);
}

/* The uplink says that it sleeps, then looks at prod and `full`. */
static void rouse(struct vmri_uplink *u)
{
    struct vmri_uplink_hdr *hdr = ring_hdr(u);

    env_mb();
    if ( env_load(&hdr->sleeping) )
    {
        env_store(&hdr->sleeping, 0);
        env_port_notify(u->domain, u->port);
    }
}

static void publish(struct vmri_uplink *u, uint32_t units)
{
    u->prod += units;
    env_store_release(&ring_hdr(u)->prod, u->prod);
    rouse(u);
}

bool vmri_uplink_put(struct vmri_uplink *u, struct vmri_uplink_msg *msg,
                     const void *body, uint32_t bytes)
{
    uint32_t units = 1, done, here;
    uint8_t *to;

    msg->units = units_of(bytes);
    if ( msg->units > room(u) )
        return false;

    memcpy(unit_at(u, u->prod), msg, sizeof(*msg));
    for ( done = 0; done < bytes; done += here )
    {
        here = min_t(uint32_t, bytes - done, VMRI_UPLINK_UNIT);
        to = unit_at(u, u->prod + units++);
        memcpy(to, body + done, here);
        memset(to + here, 0, VMRI_UPLINK_UNIT - here);
    }
    publish(u, units);

    return true;
}

static void say(struct vmri_uplink *u)
{
    struct vmri_double *t;
    unsigned int n;

    for ( n = 0; n < PUMP_MAX && !list_empty(&u->todo); n++ )
    {
        t = list_first_entry(&u->todo, struct vmri_double, waiting);
        if ( !vmri_twin_say(u, t) )
            break;
        list_del_init(&t->waiting);
    }
}

/* ---- turns ---- */

void vmri_waiter_init(struct vmri_waiter *w, struct vmri_qp *qp)
{
    w->qp = qp;
    INIT_LIST_HEAD(&w->waiting);
}

/* What its turn has left. */
static uint32_t share_of(const struct vmri_uplink *u,
                         const struct vmri_waiter *w)
{
    return w->round == u->round ? w->share : 0;
}

static void use_share(struct vmri_uplink *u, struct vmri_waiter *w,
                      uint32_t units)
{
    units = min(units, share_of(u, w));
    w->share -= units;
    u->reserved -= units;
}

void vmri_uplink_yield(struct vmri_uplink *u, struct vmri_waiter *w)
{
    use_share(u, w, ~0U);
    if ( list_empty(&w->waiting) )
        return;

    list_del_init(&w->waiting);
    u->nr_waiting--;
}

static void wait_for_turn(struct vmri_uplink *u, struct vmri_waiter *w,
                          uint32_t units)
{
    use_share(u, w, ~0U);
    w->need = units;
    if ( list_empty(&w->waiting) )
    {
        list_add_tail(&w->waiting, &u->waiting);
        u->nr_waiting++;
    }
    vmri_uplink_pump(u, false);
}

bool vmri_uplink_put_in_turn(struct vmri_uplink *u, struct vmri_waiter *w,
                             struct vmri_uplink_msg *msg, const void *body,
                             uint32_t bytes)
{
    const uint32_t units = units_of(bytes);
    const bool in_turn = share_of(u, w) >= units ||
                         (list_empty(&u->waiting) &&
                          room(u) >= u->reserved + units);

    if ( in_turn && vmri_uplink_put(u, msg, body, bytes) )
    {
        use_share(u, w, units);
        return true;
    }
    wait_for_turn(u, w, units);

    return false;
}

/*
 * Begin a round, if anybody waits and there is room, for as many as it is enough
 * for.  What the one before had reserved is anybody's.  A queue pair that waits
 * leaves the list before it goes.
 */
static void give_turns(struct vmri_uplink *u)
{
    const uint32_t free = room(u);
    struct vmri_waiter *w;
    uint32_t equal, share;
    unsigned int n;

    if ( !u->nr_waiting || free < VMRI_UPLINK_MSG_UNITS )
        return;

    equal = max_t(uint32_t, free / u->nr_waiting, VMRI_UPLINK_MSG_UNITS);
    w = list_first_entry(&u->waiting, struct vmri_waiter, waiting);
    if ( max(equal, w->need) > free )
        return;

    u->round++;
    u->reserved = 0;
    for ( n = 0; n < PUMP_MAX && !list_empty(&u->waiting); n++ )
    {
        w = list_first_entry(&u->waiting, struct vmri_waiter, waiting);
        share = max(equal, w->need);
        if ( u->reserved + share > free )
            break;
        list_del_init(&w->waiting);
        u->nr_waiting--;
        w->round = u->round;
        w->share = share;
        u->reserved += share;
        vmri_carry_call(w->qp);
    }
}

/* A round that is under way is not ended by those who wait for the next. */
static bool pump(struct vmri_uplink *u, bool round)
{
    say(u);
    if ( round || !u->reserved )
        give_turns(u);

    return list_empty(&u->todo) && list_empty(&u->waiting);
}

void vmri_uplink_pump(struct vmri_uplink *u, bool round)
{
    struct vmri_uplink_hdr *hdr = ring_hdr(u);
    const bool all = pump(u, round);

    env_store(&hdr->full, !all);
    if ( all )
        return;

    /* The uplink stores cons, then looks at `full`; here it is the other way. */
    env_mb();
    if ( pump(u, false) )
        env_store(&hdr->full, 0);
    else
        rouse(u);               /* it may have nothing else to do */
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
