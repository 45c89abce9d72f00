/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the hypervisor's part costs by itself.
 *
 *	bench [-p] FIGURE...
 *
 * Each figure is a line: its name, "hosted", the value, the unit, the goal, and
 * whether that was met, with tabs in between.  -p: show where the instructions
 * are.
 */
#define _GNU_SOURCE
#include "count.h"
#include "env_bench.h"
#include "guest.h"
#include "internal.h"

#undef memcpy

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS      9               /* of which the median counts */
#define QP_DEPTH    4
#define MANY_QPS    16000           /* near the limit of a domain */
#define MANY_MRS    100000

#define HOARD_QPS   10000U
#define HOARD_PAGES (1ULL << 20)
#define HOARD_MR    (256ULL << 20)

/* Two guests, connected, with 1 MiB of memory each. */
struct pair {
    struct guest *a, *b;
    struct guest_qp *qa, *qb;
    struct guest_mr from, to;
    struct guest_cq *scq, *rcq;
};

static bool profile;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);

    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static double median(double *v, unsigned int n)
{
    qsort(v, n, sizeof(*v), by_value);

    return v[n / 2];
}

static void tell(const char *name, double value, const char *unit, double goal,
                 bool at_least)
{
    bool met = at_least ? value >= goal : value <= goal;

    printf("%s\thosted\t%.6g\t%s\t%s%g\t%s\n", name, value, unit,
           at_least ? ">=" : "<=", goal, met ? "yes" : "no");
}

static void join(struct pair *p, struct guest *a, struct guest *b)
{
    const struct guest_qp_opts opts = { .sq_log2 = QP_DEPTH,
                                        .rq_log2 = QP_DEPTH };
    const uint32_t access = VMRI_ACCESS_LOCAL_WRITE |
                            VMRI_ACCESS_REMOTE_WRITE;

    p->a = a;
    p->b = b;
    p->qa = guest_qp(p->a, &opts);
    p->qb = guest_qp(p->b, &opts);
    p->scq = p->qa->scq;
    p->rcq = p->qb->rcq;
    p->from = guest_mr(p->a, 1 << 20, 0, LAYOUT_RUN, access);
    p->to = guest_mr(p->b, 1 << 20, 0, LAYOUT_RUN, access);
    memset(p->from.mem, 1, 1 << 20);
    memset(p->to.mem, 2, 1 << 20);
    qp_connect(p->qa, p->qb, NULL);
}

static void open_pair(struct pair *p)
{
    join(p, guest_new(1), guest_new(2));
}

/* What both guests do for a message, but for the doorbell. */
static void post(struct pair *p, uint8_t opcode, uint32_t bytes)
{
    struct vmri_sge sge = mr_sge(&p->to, 0, bytes);
    struct guest_wr wr = {
        .opcode = opcode, .flags = VMRI_SEND_SIGNALED, .num_sge = 1,
        .sge = { mr_sge(&p->from, 0, bytes) },
        .remote_addr = p->to.iova, .rkey = p->to.key,
    };

    if ( opcode == VMRI_WR_SEND )
        qp_post_recv(p->qb, 2, &sge, 1);
    qp_post_send(p->qa, &wr);
}

static void ring(struct pair *p)
{
    uint32_t dev = p->a->dev;

    env_test_enter(p->a->domain);
    CHECK_EQ(vmri_dispatch(VMRI_OP_schedule, &dev, p->qa->qpn), 0);
}

static void reap(struct pair *p, uint8_t opcode)
{
    struct vmri_cqe cqe;

    CHECK(cq_poll(p->scq, &cqe) && !cqe.status);
    if ( opcode == VMRI_WR_SEND )
        CHECK(cq_poll(p->rcq, &cqe) && !cqe.status);
}

static void message(struct pair *p, uint8_t opcode, uint32_t bytes)
{
    post(p, opcode, bytes);
    ring(p);
    reap(p, opcode);
}

static void send_8(void *p)
{
    message(p, VMRI_WR_SEND, 8);
}

static unsigned int count_send(struct pair *p)
{
    unsigned int i;

    /* What is remembered of one is used by the next. */
    for ( i = 0; i < 3; i++ )
        message(p, VMRI_WR_SEND, 8);

    return count_instructions(send_8, p, vmri_dispatch, profile);
}

static void bench_instructions(void)
{
    struct pair p;
    unsigned int n;

    open_pair(&p);
    n = count_send(&p);
    if ( n )
        tell("send8_instructions", n, "instructions", 600, false);
    else
        printf("# instructions: this system lets no process be traced\n");
}

/* Objects of a guest that nothing is done with. */
static void crowd(struct guest *g)
{
    struct guest_qp_opts opts = {
        .scq = guest_cq(g, 4), .rcq = guest_cq(g, 4),
    };
    struct guest_mr mr = mr_pages(g, PAGE_SIZE, 0, LAYOUT_RUN);
    unsigned int i;

    for ( i = 0; i < MANY_QPS; i++ )
        guest_qp(g, &opts);
    for ( i = 0; i < MANY_MRS; i++ )
        CHECK_EQ(try_mr(g, &mr, g->pd, VMRI_ACCESS_LOCAL_WRITE), 0);
}

/* A message costs the same whatever else there is. */
static void bench_many(void)
{
    struct pair alone, among;
    unsigned int one, many;

    open_pair(&alone);
    one = count_send(&alone);

    among.a = guest_new(3);
    among.b = guest_new(4);
    crowd(among.a);
    crowd(among.b);
    join(&among, among.a, among.b);
    many = count_send(&among);
    if ( one && many )
        tell("send8_among_many_more", 100.0 * many / one - 100, "%", 10, false);
}

/* ns in the hypervisor for a message of eight that one doorbell sends. */
static double time_messages(struct pair *p, uint8_t opcode, uint32_t bytes,
                            unsigned int n)
{
    double spent = 0, from;
    unsigned int i, k;

    for ( i = 0; i < n; i += k )
    {
        for ( k = 0; k < 8; k++ )
            post(p, opcode, bytes);
        from = now();
        ring(p);
        spent += now() - from;
        for ( k = 0; k < 8; k++ )
            reap(p, opcode);
    }

    return spent / n;
}

/* One message a doorbell; what reading the clock takes is taken off. */
static double time_single(struct pair *p, unsigned int n)
{
    double with = 0, without = 0, from;
    unsigned int i;

    for ( i = 0; i < n; i++ )
    {
        from = now();
        without += now() - from;
        post(p, VMRI_WR_SEND, 8);
        from = now();
        ring(p);
        with += now() - from;
        reap(p, VMRI_WR_SEND);
    }

    return (with - without) / n;
}

static void bench_time(void)
{
    double single[ROUNDS], batch[ROUNDS];
    struct pair p;
    unsigned int i;

    open_pair(&p);
    time_single(&p, 10000);
    for ( i = 0; i < ROUNDS; i++ )
    {
        single[i] = time_single(&p, 20000);
        batch[i] = time_messages(&p, VMRI_WR_SEND, 8, 160000);
    }
    tell("send8_time", median(single, ROUNDS), "ns", 150, false);
    tell("send8_time_batch8", median(batch, ROUNDS), "ns", 150, false);
}

static double time_copies(struct pair *p, uint32_t bytes, unsigned int n)
{
    double from = now();
    unsigned int i;

    for ( i = 0; i < n; i++ )
    {
        memcpy(p->to.mem, p->from.mem, bytes);
        __asm__ __volatile__ ( "" : : : "memory" );
    }

    return (now() - from) / n;
}

/* Without what reading the clock takes. */
static double time_writes(struct pair *p, uint32_t bytes, unsigned int n)
{
    double spent = 0, from;
    unsigned int i;

    for ( i = 0; i < n; i++ )
    {
        from = now();
        spent -= now() - from;
        post(p, VMRI_WR_RDMA_WRITE, bytes);
        from = now();
        ring(p);
        spent += now() - from;
        reap(p, VMRI_WR_RDMA_WRITE);
    }

    return spent / n;
}

/* Writes as a share of memcpy over the same buffers, by turns. */
static void bench_bandwidth(void)
{
    static const uint32_t sizes[] = { 65536, 131072, 262144 - 4096 };
    unsigned int i, s;
    struct pair p;

    open_pair(&p);
    for ( s = 0; s < ARRAY_SIZE(sizes); s++ )
    {
        const unsigned int n = (64U << 20) / sizes[s];
        double share[ROUNDS], speed[ROUNDS];
        char name[40];

        time_writes(&p, sizes[s], n);
        for ( i = 0; i < ROUNDS; i++ )
        {
            double copy = time_copies(&p, sizes[s], n);

            speed[i] = sizes[s] / copy;
            share[i] = 100 * copy / time_writes(&p, sizes[s], n);
        }
        snprintf(name, sizeof(name), "write%u_share_of_memcpy", sizes[s]);
        tell(name, median(share, ROUNDS), "%", 95, true);
        printf("# memcpy of %u bytes: %.1f GB/s\n", sizes[s],
               median(speed, ROUNDS));
    }
}

/* ns a page of registering and deregistering, and bytes a page while there. */
static void register_once(struct guest *g, struct guest_mr *mr, double *ns,
                          double *bytes)
{
    struct mallinfo2 before = mallinfo2(), during;
    double from = now();

    CHECK_EQ(try_mr(g, mr, g->pd, VMRI_ACCESS_LOCAL_WRITE), 0);
    *ns = now() - from;
    during = mallinfo2();
    *bytes = (double)(during.uordblks + during.hblkhd - before.uordblks -
                      before.hblkhd) / mr->pages;
    from = now();
    CHECK_EQ(mr_deregister(mr), 0);
    *ns = (*ns + now() - from) / mr->pages;
}

static void bench_register(void)
{
    struct guest *g = guest_new(1);
    struct guest_mr mr = mr_pages(g, 64 << 20, 0, LAYOUT_RUN);
    double ns[ROUNDS], bytes;
    unsigned int i;

    for ( i = 0; i < ROUNDS; i++ )
        register_once(g, &mr, &ns[i], &bytes);
    tell("register_page", median(ns, ROUNDS), "ns", 40, false);
    tell("register_page_bytes_contiguous", bytes, "bytes", 0.1, false);

    env_bench_mirror(2 * mr.gfn + mr.pages - 1);
    for ( i = 0; i < ROUNDS; i++ )
        register_once(g, &mr, &ns[i], &bytes);
    env_bench_mirror(0);
    tell("register_page_scattered", median(ns, ROUNDS), "ns", 40, false);
    tell("register_page_bytes_scattered", bytes, "bytes", 8.1, false);
}

/* A domain with 10,000 queue pairs and 4 GiB registered. */
static struct domain *hoard(void)
{
    struct vmri_ctl_limits limits = {
        .domid = 1, .mask = 1U << VMRI_RES_PINNED,
        .limit.n[VMRI_RES_PINNED] = 2 * HOARD_PAGES,
    };
    struct guest *g = guest_new(1);
    struct guest_qp_opts opts = {
        .scq = guest_cq(g, 4), .rcq = guest_cq(g, 4),
    };
    struct guest_mr mr = mr_pages(g, HOARD_MR, 0, LAYOUT_RUN);
    uint64_t pages;
    unsigned int i;

    CHECK_EQ(dom0_call(VMRI_OP_ctl_limits, &limits, sizeof(limits)), 0);
    for ( i = 0; i < HOARD_QPS; i++ )
        guest_qp(g, &opts);
    /* The same memory again and again, no page beside its neighbour. */
    env_bench_mirror(2 * mr.gfn + mr.pages - 1);
    for ( pages = 0; pages < HOARD_PAGES; pages += mr.pages )
        CHECK_EQ(try_mr(g, &mr, g->pd, VMRI_ACCESS_LOCAL_WRITE), 0);
    env_bench_mirror(0);

    return g->domain;
}

/*
 * How long a processor is kept from others while the domain is destroyed.  The C
 * library must not tidy up meanwhile: joining what was freed of 10,000 queue pairs
 * takes it longer than any step.
 */
static void bench_teardown(void)
{
    struct domain *d;
    double from;

    mallopt(M_MXFAST, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_MMAP_MAX, 0);
    d = hoard();
    from = now();

    env_bench_watch();
    while ( vmri_domain_teardown(d) == -ERESTART )
        env_preempt();
    env_preempt();
    printf("# %u queue pairs and %llu pages gone in %.0f ms\n", HOARD_QPS,
           (unsigned long long)HOARD_PAGES, (now() - from) / 1e6);
    tell("teardown_longest_step", env_bench_longest() / 1e3, "us", 1000, false);
}

static const struct {
    const char *name;
    void (*fn)(void);
} figures[] = {
    { "instructions", bench_instructions },
    { "many", bench_many },
    { "time", bench_time },
    { "bandwidth", bench_bandwidth },
    { "register", bench_register },
    { "teardown", bench_teardown },
};

/* Each in a process of its own, in a new machine. */
static bool run(void (*fn)(void))
{
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if ( !child )
    {
        world_begin();
        fn();
        exit(0);
    }

    return child > 0 && waitpid(child, &status, 0) == child && !status;
}

int main(int argc, char **argv)
{
    unsigned int f;
    int i;

    if ( argc > 1 && !strcmp(argv[1], "-p") )
    {
        profile = true;
        argc--;
        argv++;
    }

    for ( i = 1; i < argc; i++ )
        for ( f = 0; f < ARRAY_SIZE(figures); f++ )
            if ( !strcmp(argv[i], figures[f].name) && !run(figures[f].fn) )
                return 1;

    return 0;
}
