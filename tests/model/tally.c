/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters and usage of the devices against the sums of what the cells did. */
#include "model.h"
#include "internal.h"

#undef memcpy
#undef memset

struct tally tallies[ENV_DOMAINS];

struct sums {
    struct vmri_counters counters;
    struct vmri_qp_counters types[VMRI_STAT_MAX];
    uint64_t usage[VMRI_RES_NR];
};

#define TYPE_FIELDS \
    F(tx_msgs) F(tx_bytes) F(rx_msgs) F(rx_bytes) F(errors) F(flushed)

static void add_side(struct sums *sum, const struct side *s)
{
    unsigned int i;

    for ( i = 0; i < VMRI_RES_NR; i++ )
        sum->usage[i] += s->usage[i];
    for ( i = 0; i < VMRI_STAT_NR; i++ )
    {
#define F(f) sum->types[i].f += s->types[i].f; \
             sum->counters.f += s->types[i].f;
        TYPE_FIELDS
#undef F
    }
    sum->counters.completions += s->counters.completions;
    sum->counters.ud_drops += s->counters.ud_drops;
    sum->counters.qkey_violations += s->counters.qkey_violations;
}

static void sum_up(struct sums *sum, const struct guest *g,
                   const struct cell *cells, unsigned int nr)
{
    const struct tally *t = &tallies[env_domid(g->domain)];
    unsigned int i, j;

    *sum = (struct sums){ .counters = {
        .hypercalls = t->hypercalls, .doorbells = t->doorbells,
        .events = t->events, .upcalls = t->upcalls,
    } };
    for ( i = 0; i < nr; i++ )
        for ( j = 0; j < SIDES; j++ )
            if ( cells[i].side[j].guest == g )
                add_side(sum, &cells[i].side[j]);
}

static void check_counters(const struct guest *g, const struct sums *sum)
{
    struct vmri_ctl_stats got = {
        .domid = env_domid(g->domain), .dev_id = g->dev,
    };
    const struct vmri_counters *want = &sum->counters;
    unsigned int i;

    CHECK_EQ(dom0_call(VMRI_OP_ctl_stats, &got, sizeof(got)), 0);
    for ( i = 0; i < VMRI_STAT_NR; i++ )
    {
#define F(f) CHECK_AT(got.type[i].f, sum->types[i].f, "domain %u type %u", \
                      got.domid, i);
        TYPE_FIELDS
#undef F
    }
#define F(f) CHECK_AT(got.counters.f, want->f, "domain %u", got.domid);
    TYPE_FIELDS
    F(doorbells) F(hypercalls) F(events) F(upcalls) F(completions)
    F(ud_drops) F(qkey_violations)
#undef F
}

/* Beside what the cells have, each domain has its device. */
static void check_usage(const struct guest *g, const struct sums *sum)
{
    struct vmri_ctl_limits got = { .domid = env_domid(g->domain) };
    unsigned int i;

    CHECK_EQ(dom0_call(VMRI_OP_ctl_limits, &got, sizeof(got)), 0);
    for ( i = 0; i < VMRI_RES_NR; i++ )
        if ( i != VMRI_RES_BYTES && i != VMRI_RES_DEV )
            CHECK_AT(got.usage.n[i], sum->usage[i], "domain %u resource %u",
                     got.domid, i);
}

void tally_check(struct guest **guests, unsigned int nr_guests,
                 struct cell *cells, unsigned int nr_cells)
{
    unsigned int i;

    for ( i = 0; i < nr_guests; i++ )
    {
        struct sums sum;

        sum_up(&sum, guests[i], cells, nr_cells);
        check_counters(guests[i], &sum);
        check_usage(guests[i], &sum);
    }
}
