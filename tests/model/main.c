/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * model [-s SEED] [-n OPERATIONS] [-t THREADS] [-c CELLS]
 *
 * With one thread all is determined by the seed, with several what each cell
 * does; a last thread then rings queues that need no ringing.
 */
#include "model.h"
#include "internal.h"

#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#undef memcpy
#undef memset

#define SHARED      3U          /* domains of many cells */
#define MORTALS     4U          /* domains of one cell each, which die */
#define GUESTS      (SHARED + MORTALS)
#define MAX_CELLS   24U
#define MAX_THREADS 16U
#define EPOCHS      8U

bool model_alone;
__thread struct cell *model_cell;

static uint64_t seed;
static uint64_t operations = 1000000;
static unsigned int threads = 1;
static unsigned int nr_cells = 12;
static struct cell cells[MAX_CELLS];
static struct guest *guests[GUESTS];
static uint32_t stop;           /* atomic */

/* ---- failures ---- */

static void tell_where(void)
{
    const struct cell *c = model_cell;

    fprintf(stderr, "again with: make -C tests/model SEED=%llu OPS=%llu "
            "THREADS=%u\n", (unsigned long long)seed,
            (unsigned long long)operations, threads);
    if ( !c )
        return;
    fprintf(stderr, "cell %u, after %llu of its operations, in step %s\n",
            c->number, (unsigned long long)c->ops, c->step);
    cell_show(c);
}

void test_over(void)
{
    tell_where();
    _exit(1);
}

/* env_panic has said why. */
static void on_abort(int sig)
{
    tell_where();
    signal(sig, SIG_DFL);
}

/* ---- threads ---- */

struct worker {
    unsigned int first;         /* its cells: every nth from this one */
    unsigned int stride;
    struct rng rng;
    uint64_t until;             /* of a cell's operations, in tenths */
};

static unsigned int at_work[MAX_THREADS];       /* atomic: cells */

static void *work(void *data)
{
    struct worker *w = data;
    unsigned int mine = (nr_cells - w->first + w->stride - 1) / w->stride;
    unsigned int left = 0, n;

    for ( n = 0; n < mine; n++ )
        left += cells[w->first + n * w->stride].ops < w->until;
    while ( left )
    {
        unsigned int i = w->first + rng_below(&w->rng, mine) * w->stride;
        struct cell *c = &cells[i];

        if ( c->ops >= w->until )
            continue;
        env_store(&at_work[w->first], i);
        cell_step(c);
        left -= c->ops >= w->until;
    }
    return NULL;
}

static void *disturb(void *data)
{
    struct rng rng = { seed };

    (void)data;
    while ( !env_load(&stop) )
    {
        struct cell *c = &cells[env_load(&at_work[rng_below(&rng, threads)])];
        struct side *s = &c->side[rng_below(&rng, SIDES)];
        uint32_t qpn = env_load(&s->qp[rng_below(&rng, LINKS)].qpn);

        /* No vCPU of a domain runs any more when it is torn down. */
        if ( qpn && !(c->mortal && s->index) )
            side_disturb(s, qpn);
        sched_yield();
    }
    return NULL;
}

static void run_epoch(unsigned int epoch)
{
    struct worker worker[MAX_THREADS];
    pthread_t thread[MAX_THREADS], disturber;
    uint64_t quota = operations / nr_cells + 1;
    unsigned int i;

    env_test_one_frame(epoch == 0);
    env_test_preempt(epoch % 2 ? 7 : 0);
    env_store(&stop, 0);
    for ( i = 0; i < threads; i++ )
        worker[i] = (struct worker){
            .first = i, .stride = threads, .rng = { seed + i },
            .until = quota * (epoch + 1) / EPOCHS,
        };
    if ( threads == 1 )
        work(&worker[0]);
    else
    {
        pthread_create(&disturber, NULL, disturb, NULL);
        for ( i = 0; i < threads; i++ )
            pthread_create(&thread[i], NULL, work, &worker[i]);
        for ( i = 0; i < threads; i++ )
            pthread_join(thread[i], NULL);
        env_store(&stop, 1);
        pthread_join(disturber, NULL);
    }
    for ( i = 0; i < nr_cells; i++ )
        cell_rest(&cells[i]);
    model_cell = NULL;
    tally_check(guests, GUESTS, cells, nr_cells);
}

/* ---- all of it ---- */

static void make_world(void)
{
    unsigned int i;

    world_begin();
    for ( i = 0; i < GUESTS; i++ )
    {
        guests[i] = guest_bare(i + 1);
        guest_begin(guests[i]);
    }
    for ( i = 0; i < nr_cells; i++ )
    {
        bool mortal = i < MORTALS;

        cell_make(&cells[i], i, seed, guests[i % SHARED],
                  guests[mortal ? SHARED + i : (i / SHARED + i) % SHARED],
                  mortal);
    }
}

static void unmake_world(void)
{
    unsigned int i;

    env_test_preempt(0);
    for ( i = 0; i < nr_cells; i++ )
        cell_unmake(&cells[i]);
    model_cell = NULL;
    tally_check(guests, GUESTS, cells, nr_cells);
    world_end();
}

static uint64_t number(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 0);

    if ( *end )
    {
        fprintf(stderr, "%s is no number\n", text);
        exit(2);
    }
    return n;
}

static void parse(int argc, char **argv)
{
    int option;

    seed = (uint64_t)time(NULL);
    while ( (option = getopt(argc, argv, "s:n:t:c:")) != -1 )
        switch ( option )
        {
        case 's':
            seed = number(optarg);
            break;
        case 'n':
            operations = number(optarg);
            break;
        case 't':
            threads = (unsigned int)number(optarg);
            break;
        case 'c':
            nr_cells = (unsigned int)number(optarg);
            break;
        default:
            exit(2);
        }
    if ( !threads || threads > MAX_THREADS || nr_cells < threads ||
         nr_cells > MAX_CELLS )
    {
        fprintf(stderr, "1 to %u threads, and no fewer cells, up to %u\n",
                MAX_THREADS, MAX_CELLS);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    uint64_t done = 0;
    unsigned int i;

    parse(argc, argv);
    signal(SIGABRT, on_abort);
    model_alone = threads == 1;
    make_world();
    for ( i = 0; i < EPOCHS; i++ )
        run_epoch(i);
    for ( i = 0; i < nr_cells; i++ )
        done += cells[i].ops;
    unmake_world();
    printf("ok   model: %llu operations, %u threads, seed %llu\n",
           (unsigned long long)done, threads, (unsigned long long)seed);
    return 0;
}
