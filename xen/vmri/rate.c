/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: rates.  A token bucket for the device, and one for each service level,
 * which its queue pairs choose; a request obeys both.
 *
 * Each bucket counts twice.  Tokens are what may be sent: they are taken at the
 * moment of the copy, so whatever the guest does no more leaves than the bucket
 * holds.  Turns are in which order: a queue takes one of a fixed number of bytes
 * ahead of time, and parks until it has come.  So queues go in turn, each with
 * the same number of bytes, whatever the size of its messages; one that does not
 * come when it is woken keeps nobody waiting.  What of a turn is not used is
 * given back.
 */
#include "internal.h"

#define NS_PER_SECOND   1000000000LL
/* A burst that nobody chose: time for a guest to wake and to go on. */
#define BURST_NS        20000000ULL
/*
 * Of a turn: what a queue has posted less than that, it does not get, and has to
 * take another.
 */
#define TURN_MAX        (16U << 10)
/* A parked queue sees a change of its rates after that at the latest. */
#define LOOK_AGAIN_NS   1000000000ULL

void vmri_rate_init(struct vmri_rates *rates)
{
    env_lock_init(&rates->lock, LEVEL_RATE);
}

/* ---- buckets, by rates->lock ---- */

static int64_t full(const struct vmri_bucket *b)
{
    return b->burst * NS_PER_SECOND;
}

static int64_t filled(const struct vmri_bucket *b, int64_t level, uint64_t ns)
{
    const uint64_t missing = full(b) - level;

    return ns > missing / b->rate ? full(b) : level + (int64_t)(ns * b->rate);
}

static void refill(struct vmri_bucket *b, uint64_t now)
{
    /* Another CPU may have looked at its clock later, and come here before. */
    if ( now <= b->last )
        return;

    b->tokens = filled(b, b->tokens, now - b->last);
    b->turns = filled(b, b->turns, now - b->last);
    b->last = now;
}

/* How long until a level comes to `want`, in ns. */
static uint64_t time_to(const struct vmri_bucket *b, int64_t level,
                        int64_t want)
{
    return level >= want ? 0 : (want - level + b->rate - 1) / b->rate;
}

/* The bytes of one turn: a fraction of the burst, and a packet at least. */
static uint32_t turn_bytes(const struct vmri_bucket *b)
{
    return max_t(uint64_t, min_t(uint64_t, b->burst / 4, TURN_MAX), VMRI_MTU);
}

/* Which limit a request of a service level: how many. */
static unsigned int buckets_of(struct vmri_rates *rates, unsigned int sl,
                               struct vmri_bucket *b[2])
{
    unsigned int n = 0;

    sl = env_nospec(sl, VMRI_SLS);
    if ( rates->bucket[sl].rate )
        b[n++] = &rates->bucket[sl];
    if ( rates->bucket[VMRI_RATE_DEVICE].rate )
        b[n++] = &rates->bucket[VMRI_RATE_DEVICE];

    return n;
}

/* ---- turns ---- */

static void give_back(struct vmri_rates *rates, struct vmri_turn *t)
{
    struct vmri_bucket *b[2];
    unsigned int n = t->epoch == rates->epoch ? buckets_of(rates, t->sl, b) : 0;

    while ( n-- )
        b[n]->turns += min_t(int64_t, t->credit * NS_PER_SECOND,
                             full(b[n]) - b[n]->turns);
    t->credit = 0;
}

/*
 * Another turn of `bytes`.  At the worst all queue pairs that a device can have
 * wait for one, which is less than turns can go below 0.
 */
static void take_turn(struct vmri_turn *t, struct vmri_bucket *b[2],
                      unsigned int n, uint32_t bytes, uint64_t now)
{
    t->at = now;
    while ( n-- )
    {
        b[n]->turns -= bytes * NS_PER_SECOND;
        t->at = max_t(uint64_t, t->at, now + time_to(b[n], b[n]->turns, 0));
    }
    t->credit += bytes;
}

/*
 * Take as many of `want` bytes as there are, but not less than `least`, for which
 * there is credit; 0: that comes at t->at.  Tokens lack only where a turn was used
 * late.
 */
static uint32_t spend(struct vmri_turn *t, struct vmri_bucket *b[2],
                      unsigned int n, uint32_t want, uint32_t least,
                      uint64_t now)
{
    uint32_t bytes = min_t(uint32_t, want, t->credit);
    uint64_t wait = 0;
    unsigned int i;

    for ( i = 0; i < n; i++ )
    {
        int64_t have = b[i]->tokens / NS_PER_SECOND;

        bytes = min_t(int64_t, bytes, have);
        wait = max_t(uint64_t, wait, time_to(b[i], b[i]->tokens,
                                             least * NS_PER_SECOND));
    }
    if ( wait )
    {
        t->at = now + wait;
        return 0;
    }

    for ( i = 0; i < n; i++ )
        b[i]->tokens -= bytes * NS_PER_SECOND;
    t->credit -= bytes;

    return bytes;
}

/* The same, after a turn if that is needed; 0: not before t->at. */
static uint32_t take(struct vmri_rates *rates, struct vmri_turn *t,
                     unsigned int sl, uint32_t want, uint64_t now)
{
    struct vmri_bucket *b[2];
    unsigned int i, n = buckets_of(rates, sl, b);
    uint32_t turn = TURN_MAX, least;

    if ( !n )
        return want;

    if ( t->epoch != rates->epoch || t->sl != sl )
    {
        give_back(rates, t);
        t->epoch = rates->epoch;
        t->sl = sl;
    }

    for ( i = 0; i < n; i++ )
    {
        refill(b[i], now);
        turn = min_t(uint32_t, turn, turn_bytes(b[i]));
    }
    least = min_t(uint32_t, want, turn);
    if ( t->credit < least )
        take_turn(t, b, n, turn, now);

    return now < t->at ? 0 : spend(t, b, n, want, least, now);
}

static unsigned int service_level(const struct vmri_qp *qp)
{
    return (vmri_qp_datagram(qp) ? qp->tx.wqe.u.ud.av.sl : qp->attr.av.sl) &
           (VMRI_SLS - 1);
}

uint32_t vmri_rate_take(struct vmri_qp *qp, uint32_t want)
{
    struct vmri_rates *rates = &qp->dev->rates;
    const uint64_t now = env_now();
    uint32_t bytes;

    env_lock(&rates->lock);
    bytes = take(rates, &qp->rate, service_level(qp), want, now);
    env_unlock(&rates->lock);

    if ( !bytes )
        vmri_park_add(qp, VMRI_PARK_RATE, min_t(uint64_t, qp->rate.at,
                                                now + LOOK_AGAIN_NS));

    return bytes;
}

bool vmri_rate_pays(struct vmri_qp *qp, uint32_t *paid)
{
    uint32_t bytes;

    while ( *paid < qp->tx.wqe.length )
    {
        bytes = qp->tx.wqe.length - *paid;
        if ( !vmri_rate_allows(qp, &bytes) )
            return false;
        *paid += bytes;
    }

    return true;
}

void vmri_rate_yield(struct vmri_qp *qp)
{
    struct vmri_rates *rates = &qp->dev->rates;

    if ( !qp->rate.credit )
        return;

    env_lock(&rates->lock);
    give_back(rates, &qp->rate);
    env_unlock(&rates->lock);
}

/* ---- control ---- */

static uint64_t default_burst(uint64_t rate)
{
    const uint64_t burst = rate / (NS_PER_SECOND / BURST_NS);

    return burst < VMRI_BURST_MIN ? VMRI_BURST_MIN
           : burst > VMRI_BURST_MAX ? VMRI_BURST_MAX : burst;
}

static bool valid(const struct vmri_ctl_rate *arg)
{
    if ( (arg->flags & ~VMRI_RATE_SET) || arg->which > VMRI_RATE_DEVICE )
        return false;
    if ( !(arg->flags & VMRI_RATE_SET) )
        return true;
    if ( !arg->rate )
        return !arg->burst;

    return arg->rate >= VMRI_RATE_MIN && arg->rate <= VMRI_RATE_MAX &&
           (!arg->burst || (arg->burst >= VMRI_BURST_MIN &&
                            arg->burst <= VMRI_BURST_MAX));
}

/* Buckets begin full.  Turns that were taken are no more. */
static void set(struct vmri_dev *dev, const struct vmri_ctl_rate *arg)
{
    struct vmri_rates *rates = &dev->rates;
    struct vmri_bucket *b = &rates->bucket[arg->which];
    bool limited = false;
    unsigned int i;

    *b = (struct vmri_bucket){
        .rate = arg->rate,
        .burst = arg->burst ?: arg->rate ? default_burst(arg->rate) : 0,
        .last = env_now(),
    };
    for ( i = 0; i < VMRI_RATE_BUCKETS; i++ )
    {
        rates->bucket[i].tokens = full(&rates->bucket[i]);
        rates->bucket[i].turns = rates->bucket[i].tokens;
        limited |= rates->bucket[i].rate;
    }
    rates->epoch++;
    env_store(&dev->limited, limited);
}

int vmri_rate_control(struct domain *d, struct vmri_ctl_rate *arg)
{
    struct vmri_rates *rates;
    struct vmri_dev *dev;

    if ( !valid(arg) )
        return -EINVAL;

    env_lock(&vmri_control_lock);
    dev = vmri_dev_find(d, arg->dev_id);
    if ( dev )
    {
        rates = &dev->rates;
        env_lock(&rates->lock);
        if ( arg->flags & VMRI_RATE_SET )
            set(dev, arg);
        arg->rate = rates->bucket[arg->which].rate;
        arg->burst = rates->bucket[arg->which].burst;
        env_unlock(&rates->lock);
    }
    env_unlock(&vmri_control_lock);

    return dev ? 0 : -ENODEV;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
