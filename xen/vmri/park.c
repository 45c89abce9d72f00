/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: queues that wait, and the timer wheel that wakes them.
 *
 * One timer a device drives a wheel of four levels of 64 slots.  A level's
 * slot spans 64 of the one below; what is found in a slot before its time
 * goes down a level.  The handler does a bounded number of queues and then
 * rests: it runs on a CPU that may be doing somebody else's work, so guests
 * must not have it run as often as their time-outs are short.
 */
#include "internal.h"

/*
 * In ns: 4.096 us, in which IBTA counts time-outs.  Slots that hold nothing
 * cost nothing, so that a fine tick is as cheap as a coarse one.
 */
#define TICK_SHIFT      12
#define LEVEL_SHIFT     6       /* 64 slots */
#define HANDLER_MAX     64      /* queues touched in one run of the handler */
#define REST_TICKS      20      /* from one run to the next at least: 82 us */

#define to_ticks(ns)    ((ns) >> TICK_SHIFT)

static unsigned int slot_of(uint64_t tick, unsigned int level)
{
    return (tick >> (LEVEL_SHIFT * level)) & (VMRI_WHEEL_SLOTS - 1);
}

/* Put a queue where its deadline, which lies after park->now, belongs. */
static void wheel_insert(struct vmri_park *park, struct vmri_qp *qp)
{
    uint64_t at = qp->deadline;
    unsigned int level = 0;

    while ( level < VMRI_WHEEL_LEVELS - 1 &&
            (at - park->now) >> (LEVEL_SHIFT * (level + 1)) )
        level++;

    /* Farther than the wheel reaches: look at it again when that is round. */
    if ( (at - park->now) >> (LEVEL_SHIFT * VMRI_WHEEL_LEVELS) )
        at = park->now + (1ULL << (LEVEL_SHIFT * VMRI_WHEEL_LEVELS)) - 1;

    qp->wheel_level = level;
    qp->wheel_slot = slot_of(at, level);
    list_add_tail(&qp->wheel, &park->slot[level][qp->wheel_slot]);
    park->busy[level] |= 1ULL << qp->wheel_slot;
}

static void wheel_remove(struct vmri_park *park, struct vmri_qp *qp)
{
    if ( qp->wheel_level == VMRI_WHEEL_LEVELS )
        return;

    list_del_init(&qp->wheel);
    if ( list_empty(&park->slot[qp->wheel_level][qp->wheel_slot]) )
        park->busy[qp->wheel_level] &= ~(1ULL << qp->wheel_slot);
    qp->wheel_level = VMRI_WHEEL_LEVELS;
}

/*
 * The tick at which the next busy slot begins, its level and slot; 0 when the
 * wheel is empty.  Slots of the current turn begin after park->now.
 */
static uint64_t wheel_next(const struct vmri_park *park, unsigned int *level,
                           unsigned int *slot)
{
    uint64_t first = 0;
    unsigned int l;

    for ( l = 0; l < VMRI_WHEEL_LEVELS; l++ )
    {
        unsigned int shift = LEVEL_SHIFT * l;
        unsigned int from = (slot_of(park->now, l) + 1) % VMRI_WHEEL_SLOTS;
        uint64_t busy = park->busy[l], at;

        if ( !busy )
            continue;

        if ( from )
            busy = (busy >> from) | (busy << (VMRI_WHEEL_SLOTS - from));
        at = ((park->now >> shift) + 1 + __builtin_ctzll(busy)) << shift;
        if ( !first || at < first )
        {
            first = at;
            *level = l;
            *slot = slot_of(at, l);
        }
    }

    return first;
}

/* Let the timer fire when the next slot begins and it has rested. */
static void wheel_arm(struct vmri_park *park)
{
    unsigned int level, slot;
    uint64_t next = wheel_next(park, &level, &slot);

    if ( !next )
        return;
    if ( next < park->rest )
        next = park->rest;

    if ( !park->armed || next < park->armed )
    {
        park->armed = next;
        env_timer_set(&park->timer, next << TICK_SHIFT);
    }
}

static void wake(struct vmri_qp *qp)
{
    env_store(&qp->parked, qp->home);
    env_trace(VMRI_TRC_WOKEN, vmri_trace_id(qp->dev), qp->qpn, true);
    vmri_ready(qp);
}

/* Do what is due up to `until`, or as much of it as one run may. */
static void wheel_advance(struct vmri_park *park, uint64_t until)
{
    unsigned int level = 0, slot = 0, touched = 0;
    uint64_t next;

    while ( (next = wheel_next(park, &level, &slot)) && next <= until )
    {
        struct list_head *head = &park->slot[level][slot];

        /* What begins at `next`, on other levels too, still lies ahead. */
        park->now = next - 1;

        while ( !list_empty(head) )
        {
            struct vmri_qp *qp = list_first_entry(head, struct vmri_qp, wheel);

            if ( touched++ == HANDLER_MAX )
                return;

            wheel_remove(park, qp);
            if ( qp->deadline <= next )
                wake(qp);
            else
            {
                /* Relative to the slot's beginning it belongs further down. */
                park->now = next;
                wheel_insert(park, qp);
                park->now = next - 1;
            }
        }
    }

    if ( park->now < until )
        park->now = until;
}

static void cf_check wheel_timer(void *data)
{
    struct vmri_park *park = data;
    uint64_t now = to_ticks(env_now());

    env_lock(&park->lock);
    park->armed = 0;
    park->rest = now + REST_TICKS;
    wheel_advance(park, now);
    wheel_arm(park);
    env_unlock(&park->lock);
}

void vmri_park_init(struct vmri_park *park)
{
    unsigned int level, slot;

    env_lock_init(&park->lock, LEVEL_PARK);
    env_timer_init(&park->timer, wheel_timer, park);
    park->now = to_ticks(env_now());
    for ( level = 0; level < VMRI_WHEEL_LEVELS; level++ )
        for ( slot = 0; slot < VMRI_WHEEL_SLOTS; slot++ )
            INIT_LIST_HEAD(&park->slot[level][slot]);
}

void vmri_park_fini(struct vmri_park *park)
{
    env_timer_kill(&park->timer);
}

/* For the trace: from now on, all bits set for ever and for very long. */
static uint32_t microseconds_to(uint64_t deadline)
{
    uint64_t now = env_now();

    return deadline == VMRI_FOREVER ? ~0U
           : deadline <= now ? 0
           : min_t(uint64_t, (deadline - now) / 1000, ~0U);
}

void vmri_park_add(struct vmri_qp *qp, enum vmri_parked why, uint64_t deadline)
{
    struct vmri_park *park = &qp->dev->park;
    unsigned int level, slot;

    env_lock(&park->lock);

    env_store(&qp->parked, why);
    env_trace(VMRI_TRC_PARKED, vmri_trace_id(qp->dev), qp->qpn, why,
              microseconds_to(deadline));
    if ( deadline != VMRI_FOREVER )
    {
        /* An empty wheel has no reason to turn tick by tick. */
        if ( !wheel_next(park, &level, &slot) )
            park->now = to_ticks(env_now());

        /* Never early: up to the next tick. */
        qp->deadline = to_ticks(deadline + (1U << TICK_SHIFT) - 1);
        if ( qp->deadline <= park->now )
            qp->deadline = park->now + 1;
        wheel_insert(park, qp);
        wheel_arm(park);
    }

    env_unlock(&park->lock);
}

bool vmri_park_remove(struct vmri_qp *qp)
{
    struct vmri_park *park = &qp->dev->park;
    bool was;

    env_lock(&park->lock);
    was = qp->parked != qp->home;
    if ( was )
    {
        wheel_remove(park, qp);
        env_store(&qp->parked, qp->home);
        env_trace(VMRI_TRC_WOKEN, vmri_trace_id(qp->dev), qp->qpn, false);
    }
    env_unlock(&park->lock);

    return was;
}

void vmri_park_home(struct vmri_qp *qp, enum vmri_parked home)
{
    struct vmri_park *park = &qp->dev->park;

    env_lock(&park->lock);
    if ( qp->parked == qp->home )
        env_store(&qp->parked, home);
    qp->home = home;
    env_unlock(&park->lock);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
