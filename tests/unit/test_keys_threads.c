/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a key grants is taken away while the peer writes there, on another CPU.
 * When that has ended the owner uses the memory for something else: a copy that
 * is still under way shows as bytes that change, and as a race to the thread
 * sanitizer.  The connection is unreliable, so what comes too late is lost and
 * does not end it.
 */
#include "keys.h"
#include "internal.h"

#include <pthread.h>
#include <sched.h>

#undef memcpy
#undef memset

#define ROUNDS  40U
#define BYTES   20000U

static const struct guest_qp_opts uc = { .type = VMRI_QPT_UC };

static struct pair p;
static uint32_t stop;           /* atomic */
static uint32_t target;         /* atomic: the key that the peer writes to */
static uint32_t written;        /* atomic: how often it has */

static void *run_peer(void *unused)
{
    struct guest_wr wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, BYTES);

    (void)unused;
    while ( !env_load(&stop) )
    {
        struct vmri_cqe cqe;

        wr.rkey = env_load(&target);
        pair_send(&p, &wr);
        while ( !cq_poll(p.qa->scq, &cqe) )
            guest_schedule(p.a, p.qa->qpn);
        CHECK_EQ(cqe.status, 0);
        env_add(&written, 1);
    }
    return NULL;
}

/* On return the peer is at it, or about to be. */
static void open_to_peer(uint32_t key)
{
    uint32_t before = env_load(&written);

    env_store(&target, key);
    while ( env_load(&written) - before < 2 )
        sched_yield();
}

static void use_memory(uint8_t c)
{
    memset(p.mb.mem, c, BYTES);
    sched_yield();
    CHECK(all_bytes(p.mb.mem, BYTES, c));
}

static void request(struct guest_wr wr)
{
    CHECK_EQ(key_request(p.qb, &wr), 0);
}

/* ---- ways to take it away ---- */

static void deregister(uint8_t n)
{
    open_to_peer(p.mb.key);
    CHECK_EQ(mr_deregister(&p.mb), 0);
    use_memory(n);
    CHECK_EQ(try_mr(p.b, &p.mb, p.b->pd, LW | RW | BIND), 0);
}

static void set_rights(uint32_t access)
{
    struct vmri_mr_reregister arg = {
        .old_key = p.mb.key, .flags = VMRI_REREG_ACCESS, .mr.access = access,
    };

    CHECK_EQ(guest_call(p.b, VMRI_OP_mr_reregister, &arg, sizeof(arg)), 0);
    p.mb.key = arg.mr.key;
}

static void reregister(uint8_t n)
{
    open_to_peer(p.mb.key);
    set_rights(LW | BIND);
    use_memory(n);
    set_rights(LW | RW | BIND);
}

static void invalidate(uint8_t n)
{
    static uint32_t mw;

    if ( !mw )
        mw = mw_new(p.b, 2);
    request(wr_bind(mw, &p.mb, 0, BYTES, RW));
    mw = next_name(mw);
    open_to_peer(mw);
    request(wr_inv(mw));
    use_memory(n);
}

/* To bytes behind those that were shown, by another name and by the same. */
static void rebind(uint8_t n)
{
    static uint32_t mw;

    if ( !mw )
        mw = mw_new(p.b, 1);
    request(wr_bind(mw, &p.mb, 0, BYTES, RW));
    mw = next_name(mw);
    open_to_peer(mw);
    request(wr_bind(mw, &p.mb, BYTES, 100, RW));
    mw = next_name(mw);
    use_memory(n);
}

static void free_window(uint8_t n)
{
    uint32_t mw = mw_new(p.b, 1);

    request(wr_bind(mw, &p.mb, 0, BYTES, RW));
    mw = next_name(mw);
    open_to_peer(mw);
    CHECK_EQ(mw_free(p.b, mw), 0);
    use_memory(n);
}

static void check_way(void (*way)(uint8_t n))
{
    pthread_t peer;
    unsigned int n;

    p = pair_new(&uc, NULL);
    CHECK_EQ(mr_deregister(&p.mb), 0);
    CHECK_EQ(try_mr(p.b, &p.mb, p.b->pd, LW | RW | BIND), 0);
    env_store(&target, p.mb.key);
    pthread_create(&peer, NULL, run_peer, NULL);
    for ( n = 0; n < ROUNDS; n++ )
        way((uint8_t)n);
    env_store(&stop, 1);
    pthread_join(peer, NULL);
}

THREAD_TEST(keys_deregistered_under_traffic) { check_way(deregister); }
THREAD_TEST(keys_reregistered_under_traffic) { check_way(reregister); }
THREAD_TEST(keys_invalidated_under_traffic) { check_way(invalidate); }
THREAD_TEST(keys_bound_anew_under_traffic) { check_way(rebind); }
THREAD_TEST(keys_freed_under_traffic) { check_way(free_window); }

/* ---- two who change one key ---- */

static pthread_t first;
static struct guest_qp *second;

static void *invalidate_first(void *mw)
{
    request(wr_inv(*(uint32_t *)mw));
    return NULL;
}

static void *invalidate_both(void *mw)
{
    struct guest_wr wr = wr_inv(*(uint32_t *)mw);
    uint64_t relaxed = env_load(&env_stats.relaxed);

    pthread_create(&first, NULL, invalidate_first, mw);
    while ( env_load(&env_stats.relaxed) == relaxed )
        sched_yield();
    CHECK_EQ(key_request(second, &wr), VMRI_VERR_STATE);
    return NULL;
}

/* In the middle of a copy, for which the one waits and the other does not. */
static void under_the_copy(void *mw)
{
    pthread_t both;

    pthread_create(&both, NULL, invalidate_both, mw);
    pthread_join(both, NULL);
}

TEST(keys_that_another_changes_are_refused)
{
    struct guest_wr wr;
    uint32_t mw;

    p = pair_keys(&uc);
    second = guest_qp(p.b, &uc);
    qp_connect(second, guest_qp(p.a, &uc), NULL);
    mw = mw_new(p.b, 2);
    request(wr_bind(mw, &p.mb, 0, BYTES, RW));
    mw = next_name(mw);
    wr = pair_wr(&p, VMRI_WR_RDMA_WRITE, 1, 0, 0, BYTES);
    wr.rkey = mw;
    env_test_on_map(3, under_the_copy, &mw);
    pair_send(&p, &wr);
    cq_expect(p.qa->scq, 1, 0);
    pthread_join(first, NULL);
}

/* ---- one who looks at a key that goes ---- */

/*
 * Relaxed, and nothing else is shared: what keeps the one who looks from what the
 * other frees is the lock that the latter takes in between, or nothing.
 */
static uint32_t claimed, looked;        /* atomic */

static void *look(void *key)
{
    struct guest_wr wr = wr_inv(*(uint32_t *)key);

    while ( !env_load(&claimed) )
        sched_yield();
    CHECK_EQ(key_request(p.qb, &wr), VMRI_VERR_STATE);
    env_store(&looked, 1);
    return NULL;
}

static void let_look(void *unused)
{
    (void)unused;
    env_store(&claimed, 1);
    while ( !env_load(&looked) )
        sched_yield();
}

THREAD_TEST(keys_outlive_who_looks_at_them)
{
    pthread_t thread;
    uint32_t key;

    p = pair_new(&kernel_opts, NULL);
    key = fast_new(p.b, 8);
    pthread_create(&thread, NULL, look, &key);
    /* The first looks for an MR that is not a fast one. */
    env_test_on_unlock(LEVEL_DEV, 2, let_look, NULL);
    CHECK_EQ(fast_free(p.b, key), 0);
    pthread_join(thread, NULL);
}
