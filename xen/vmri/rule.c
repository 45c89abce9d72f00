/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMRI: rules, in the manner of security groups.
 *
 * A rule allows a device (those of a group, or all) to be reached by, or to
 * reach, remote devices by address or group.  A fabric is open until it has its
 * first rule, and again when dom0 has deleted all at once.  Else a device is reached
 * by whom an ingress rule allows, and reaches all, or whom an egress rule allows if
 * one is for it: deleting what allowed something never allows more.
 *
 * Two devices may talk when one of them may begin.  Which of them did is not to
 * be told from queue pairs that are connected to each other, and what one begins
 * the other answers; so the answer is the same from both sides.
 *
 * Messages of a connection do not come here: what is allowed is remembered in
 * the queue pair by the peer's `life`, which becomes another with each change.
 * Rules are read without a lock: a reader that finds them changed meanwhile
 * reads them again.
 */
#include "internal.h"

#define ENFORCE_MAX     64      /* queue pairs that one call looks at */

static uint32_t nr_rules;       /* by vmri_control_lock: of all fabrics */

/* What rules know of one side. */
struct end {
    uint64_t gid[2];
    uint32_t group;
    const struct vmri_dev *dev; /* has these and perhaps more; NULL: elsewhere */
};

static struct end end_of(const struct vmri_dev *dev)
{
    return (struct end){
        .gid = { env_load(&dev->port.gid_prefix), dev->guid },
        .group = dev->group,
        .dev = dev,
    };
}

static struct end end_at(const uint8_t gid[16])
{
    return (struct end){ .gid = { vmri_be_word(gid), vmri_be_word(gid + 8) } };
}

/* ---- asking; without a lock ---- */

static bool is_for(const struct vmri_rule *r, unsigned int direction,
                   const struct end *local)
{
    const uint32_t group = env_load_acquire(&r->group);

    return env_load_acquire(&r->kind) == direction + 1 &&
           (!group || group == local->group);
}

static bool names(const struct vmri_rule *r, const struct end *remote)
{
    const uint32_t group = env_load_acquire(&r->remote_group);
    const uint64_t prefix[2] = { env_load_acquire(&r->prefix[0]),
                                 env_load_acquire(&r->prefix[1]) };
    const uint64_t mask[2] = { env_load_acquire(&r->mask[0]),
                               env_load_acquire(&r->mask[1]) };

    if ( group && group != remote->group )
        return false;

    return (!((remote->gid[0] ^ prefix[0]) & mask[0]) &&
            !((remote->gid[1] ^ prefix[1]) & mask[1])) ||
           (remote->dev && vmri_gid_within(remote->dev, prefix, mask));
}

/* Do the rules of one direction let `local` be reached, or reach? */
static bool passes(const struct vmri_rule *rule, unsigned int direction,
                   const struct end *local, const struct end *remote)
{
    bool passes = direction == VMRI_RULE_EGRESS;
    unsigned int i;

    for ( i = 0; i < VMRI_RULES; i++ )
        if ( is_for(&rule[i], direction, local) )
        {
            if ( names(&rule[i], remote) )
                return true;
            passes = false;
        }

    return passes;
}

static bool may_begin(const struct vmri_rule *rule, const struct end *from,
                      const struct end *to)
{
    return passes(rule, VMRI_RULE_EGRESS, from, to) &&
           passes(rule, VMRI_RULE_INGRESS, to, from);
}

/* Nothing changes between begin and an end that says so. */
static uint32_t read_begin(const struct vmri_rules *rules)
{
    uint32_t seq;

    while ( (seq = env_load_acquire(&rules->seq)) & 1 )
        env_relax();

    return seq;
}

static bool read_end(const struct vmri_rules *rules, uint32_t seq)
{
    return env_load_acquire(&rules->seq) == seq;
}

static bool ends_may_talk(const struct vmri_rules *rules, const struct end *a,
                          const struct end *b)
{
    const struct vmri_rule *rule;
    uint32_t seq;
    bool allowed;

    do {
        seq = read_begin(rules);
        rule = env_load_acquire(&rules->rule);
        allowed = !env_load_acquire(&rules->closed) ||
                  may_begin(rule, a, b) || may_begin(rule, b, a);
    } while ( !read_end(rules, seq) );

    return allowed;
}

bool vmri_rules_allow(const struct vmri_dev *a, const struct vmri_dev *b)
{
    const struct end ends[2] = { end_of(a), end_of(b) };

    return a == b || ends_may_talk(&a->fabric->rules, &ends[0], &ends[1]);
}

bool vmri_rules_allow_remote(const struct vmri_dev *dev, const uint8_t gid[16])
{
    const struct end local = end_of(dev), remote = end_at(gid);

    return ends_may_talk(&dev->fabric->rules, &local, &remote);
}

bool vmri_rules_allow_group(const struct vmri_dev *dev, const uint8_t mgid[16],
                            unsigned int direction)
{
    const struct vmri_rules *rules = &dev->fabric->rules;
    const struct end local = end_of(dev);
    const struct end group = end_at(mgid);
    uint32_t seq;
    bool allowed;

    do {
        seq = read_begin(rules);
        allowed = !env_load_acquire(&rules->closed) ||
                  passes(env_load_acquire(&rules->rule), direction, &local,
                         &group);
    } while ( !read_end(rules, seq) );

    return allowed;
}

/* ---- changing; under vmri_control_lock ---- */

/* Of the first 64 bits at the most. */
static uint64_t mask(unsigned int bits)
{
    if ( bits >= 64 )
        return ~0ULL;

    return bits ? ~0ULL << (64 - bits) : 0;
}

/* Readers that have begun begin anew. */
static void change_begin(struct vmri_rules *rules)
{
    env_store(&rules->seq, rules->seq + 1);
    env_mb();
}

static void change_end(struct vmri_rules *rules)
{
    env_store_release(&rules->seq, rules->seq + 1);
}

static void place_set(struct vmri_rule *place, const struct vmri_rule *r)
{
    unsigned int i;

    for ( i = 0; i < 2; i++ )
    {
        env_store_release(&place->prefix[i], r->prefix[i]);
        env_store_release(&place->mask[i], r->mask[i]);
    }
    env_store_release(&place->group, r->group);
    env_store_release(&place->remote_group, r->remote_group);
    env_store_release(&place->kind, r->kind);
    place->bits = r->bits;
}

void vmri_rules_changed(struct vmri_fabric *f)
{
    uint32_t index = 0, lid;
    struct vmri_dev *dev;

    /* Routes are found anew, and then find that they do not know `life`. */
    while ( (dev = vmri_table_next(&f->lids, &index, &lid)) != NULL )
    {
        env_store_release(&dev->life, vmri_new_life());
        env_store_release(&dev->port.version, vmri_new_life());
    }
}

/* A change has been made: all that is allowed is to be looked at. */
static void changed(struct vmri_fabric *f)
{
    vmri_rules_changed(f);
    f->rules.pending = true;
    f->rules.at_lid = f->rules.at_qp = 0;
}

static void clear(struct vmri_rules *rules, uint32_t i)
{
    static const struct vmri_rule none;

    place_set(&rules->rule[i], &none);
    rules->nr--;
    nr_rules--;
}

/* The lowest free place; VMRI_RULES: none. */
static uint32_t free_place(const struct vmri_rules *rules)
{
    uint32_t i = 0;

    while ( i < VMRI_RULES && rules->rule[i].kind )
        i++;

    return i;
}

static int add(struct vmri_fabric *f, struct vmri_ctl_rule *arg)
{
    struct vmri_rules *rules = &f->rules;
    const struct vmri_rule rule = {
        .prefix = { vmri_be_word(arg->prefix), vmri_be_word(arg->prefix + 8) },
        .mask = { mask(arg->bits),
                  mask(arg->bits > 64 ? arg->bits - 64 : 0) },
        .group = arg->group,
        .remote_group = arg->remote_group,
        .kind = arg->direction + 1,
        .bits = arg->bits,
    };
    uint32_t i;

    if ( nr_rules == VMRI_RULES_ALL )
        return -ENOSPC;

    if ( !rules->rule )
    {
        struct vmri_rule *places = env_alloc(VMRI_RULES * sizeof(*places));

        if ( !places )
            return -ENOMEM;
        env_store_release(&rules->rule, places);
    }

    i = free_place(rules);
    if ( i == VMRI_RULES )
        return -ENOSPC;

    change_begin(rules);
    place_set(&rules->rule[i], &rule);
    env_store_release(&rules->closed, 1);
    rules->nr++;
    change_end(rules);
    nr_rules++;
    arg->rule = i + 1;
    changed(f);

    return 0;
}

void vmri_rules_free(struct vmri_fabric *f)
{
    nr_rules -= f->rules.nr;
    env_free(f->rules.rule);
}

/* ---- dom0's commands ---- */

static bool valid(const struct vmri_ctl_rule *arg)
{
    const uint64_t prefix[2] = { vmri_be_word(arg->prefix),
                                 vmri_be_word(arg->prefix + 8) };

    return arg->direction <= VMRI_RULE_EGRESS && !arg->rule &&
           arg->protocol <= VMRI_RULE_ROCE && arg->bits <= 128 &&
           !arg->reserved0 && !arg->reserved1 &&
           !(prefix[0] & ~mask(arg->bits)) &&
           !(prefix[1] & ~mask(arg->bits > 64 ? arg->bits - 64 : 0));
}

int vmri_rule_add(struct vmri_ctl_rule *arg)
{
    struct vmri_fabric *f;
    int ret;

    if ( !valid(arg) )
        return -EINVAL;

    env_lock(&vmri_control_lock);
    f = vmri_fabric_created(arg->fabric);
    if ( !f )
        ret = -ENOENT;
    else if ( arg->protocol == (f->gids ? VMRI_RULE_IB : VMRI_RULE_ROCE) )
        ret = -EOPNOTSUPP;
    else
        ret = add(f, arg);
    env_unlock(&vmri_control_lock);

    return ret;
}

static int del(struct vmri_fabric *f, uint32_t rule)
{
    struct vmri_rules *rules = &f->rules;
    uint32_t i, before = rules->nr;
    bool opens = rule == VMRI_RULE_ALL && rules->closed;

    change_begin(rules);
    for ( i = 0; rules->rule && i < VMRI_RULES; i++ )
        if ( rules->rule[i].kind &&
             (rule == VMRI_RULE_ALL || rule == i + 1) )
            clear(rules, i);
    if ( opens )
        env_store_release(&rules->closed, 0);
    change_end(rules);
    if ( rules->nr == before && !opens )
        return rule == VMRI_RULE_ALL ? 0 : -ENOENT;

    changed(f);

    return 0;
}

int vmri_rule_del(uint32_t fabric, uint32_t rule)
{
    struct vmri_fabric *f;
    int ret;

    env_lock(&vmri_control_lock);
    f = vmri_fabric_created(fabric);
    ret = f ? del(f, rule) : -ENOENT;
    env_unlock(&vmri_control_lock);

    return ret;
}

static void tell(const struct vmri_rule *r, uint32_t number,
                 struct vmri_ctl_rule *arg)
{
    *arg = (struct vmri_ctl_rule){
        .fabric = arg->fabric,
        .rule = number,
        .direction = r->kind - 1,
        .bits = r->bits,
        .group = r->group,
        .remote_group = r->remote_group,
    };
    vmri_put_be(arg->prefix, r->prefix[0], 8);
    vmri_put_be(arg->prefix + 8, r->prefix[1], 8);
}

int vmri_rule_list(struct vmri_ctl_rule *arg)
{
    const struct vmri_fabric *f;
    int ret = -ENOENT;
    uint32_t i;

    env_lock(&vmri_control_lock);
    f = vmri_fabric_created(arg->fabric);
    for ( i = arg->rule ? arg->rule - 1 : 0;
          ret && f && f->rules.rule && i < VMRI_RULES; i++ )
        if ( f->rules.rule[i].kind )
        {
            tell(&f->rules.rule[i], i + 1, arg);
            ret = 0;
        }
    env_unlock(&vmri_control_lock);

    return ret;
}

/* ---- connections that there are ---- */

/* Is it connected to a device that it may not talk to any more? */
static bool forbidden(struct vmri_qp *qp)
{
    bool connected, remote, bad;
    struct vmri_dev *peer;
    struct vmri_av av;

    if ( vmri_qp_datagram(qp) )
        return false;

    env_lock(&qp->lock);
    connected = qp->attr.state >= VMRI_QPS_RTR &&
                qp->attr.state <= VMRI_QPS_SQE;
    remote = qp->carry && qp->carry->remote;
    av = qp->attr.av;
    env_unlock(&qp->lock);

    if ( connected && remote )
        return !vmri_rules_allow_remote(qp->dev, av.dgid);

    peer = connected ? vmri_fabric_peer(qp->dev->fabric, av.dlid) : NULL;
    if ( !peer )
        return false;

    bad = !vmri_rules_allow(qp->dev, peer);
    vmri_fabric_peer_put(peer);

    return bad;
}

/* Queue pairs of a device from rules->at_qp on: how many of `max` were left. */
static unsigned int enforce_dev(struct vmri_rules *rules, struct vmri_dev *dev,
                                unsigned int max)
{
    struct vmri_qp *qp;
    uint32_t qpn;

    /* What the walk sees may go at once; what is then got may not. */
    while ( max && vmri_table_next(&dev->qps, &rules->at_qp, &qpn) )
    {
        max--;
        qp = vmri_table_get(&dev->qps, qpn);
        if ( !qp )
            continue;
        if ( forbidden(qp) )
            vmri_qp_error(qp, VMRI_EVENT_QP_FATAL);
        vmri_table_put(&dev->qps, qpn);
    }

    return max;
}

/* By vmri_control_lock, so that devices stay. */
static void enforce(struct vmri_fabric *f)
{
    struct vmri_rules *rules = &f->rules;
    unsigned int left = ENFORCE_MAX;
    struct vmri_dev *dev;
    uint32_t next, lid;

    while ( left )
    {
        next = rules->at_lid;
        dev = vmri_table_next(&f->lids, &next, &lid);
        if ( !dev )
        {
            rules->pending = false;
            return;
        }
        left = enforce_dev(rules, dev, left - 1);
        if ( left )
        {
            rules->at_lid = next;
            rules->at_qp = 0;
        }
    }
}

int vmri_rules_enforce(uint32_t fabric)
{
    struct vmri_fabric *f;
    bool more;

    env_lock(&vmri_control_lock);
    f = vmri_fabric_created(fabric);
    if ( f && f->rules.pending )
        enforce(f);
    more = f && f->rules.pending;
    env_unlock(&vmri_control_lock);

    return more ? -ERESTART : 0;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
