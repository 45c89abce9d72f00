/* SPDX-License-Identifier: GPL-2.0-only */
/* Guests' objects but queue pairs: PDs, event and completion queues, memory. */
#include "guest.h"

#include <stdio.h>
#include <stdlib.h>

uint32_t guest_pd(struct guest *g)
{
    struct vmri_object arg = { .handle = 0 };

    CHECK_EQ(guest_call(g, VMRI_OP_pd_create, &arg, sizeof(arg)), 0);
    return arg.handle;
}

void guest_frames(struct vmri_frames *f, uint64_t *list, uint64_t gfn,
                  uint32_t nr)
{
    uint32_t i;

    for ( i = 0; i < nr; i++ )
        list[i] = gfn + i;
    *f = (struct vmri_frames){ .gfns = (uintptr_t)list, .nr = nr };
}

/* A call whose structure names frames, of which the guest has a list. */
static long call_with_frames(struct guest *g, unsigned int cmd, void *arg,
                             size_t bytes, struct vmri_frames *frames,
                             uint64_t gfn, uint32_t nr)
{
    uint64_t *list = calloc(nr, sizeof(*list));
    long rc;

    guest_frames(frames, list, gfn, nr);
    env_test_expose(list, nr * sizeof(*list));
    rc = guest_call(g, cmd, arg, bytes);
    env_test_hide();
    free(list);
    return rc;
}

static long destroy(struct guest *g, unsigned int cmd, uint32_t handle)
{
    struct vmri_object arg = { .handle = handle };

    return guest_call(g, cmd, &arg, sizeof(arg));
}

/* Pages of a ring of 2^log2 entries. */
static uint32_t ring_pages(unsigned int log2, size_t entry)
{
    return (uint32_t)PFN_UP(VMRI_RING_OFFSET + (entry << log2));
}

/* ---- event queues ---- */

static long eq_create(struct guest *g, unsigned int log2, uint8_t flags,
                      struct guest_eq **eq)
{
    uint32_t nr = ring_pages(log2, sizeof(struct vmri_event));
    struct vmri_eq_create arg = {
        .log2_entries = (uint8_t)log2, .flags = flags,
    };
    struct guest_eq *e = calloc(1, sizeof(*e));
    long rc;

    e->guest = g;
    e->log2 = log2;
    e->gfn = env_test_pages(g->domain, nr, true);
    e->hdr = env_test_mem(g->domain, e->gfn);
    e->entry = (void *)((uint8_t *)e->hdr + VMRI_RING_OFFSET);
    rc = call_with_frames(g, VMRI_OP_eq_create, &arg, sizeof(arg), &arg.frames,
                          e->gfn, nr);
    e->handle = arg.handle;
    e->port = arg.port;
    *eq = e;
    return rc;
}

long try_eq(struct guest *g, unsigned int log2, struct guest_eq **eq)
{
    return eq_create(g, log2, 0, eq);
}

long try_port_eq(struct guest *g, struct guest_eq **eq)
{
    return eq_create(g, 4, VMRI_EQF_PORT, eq);
}

struct guest_eq *guest_eq(struct guest *g, unsigned int log2)
{
    struct guest_eq *eq;

    CHECK_EQ(try_eq(g, log2, &eq), 0);
    return eq;
}

static bool eq_take(struct guest_eq *eq, struct vmri_event *ev)
{
    if ( env_load_acquire(&eq->hdr->prod) == eq->cons )
        return false;
    *ev = eq->entry[eq->cons & ((1U << eq->log2) - 1)];
    env_store_release(&eq->hdr->cons, ++eq->cons);
    return true;
}

bool eq_poll(struct guest_eq *eq, struct vmri_event *ev)
{
    if ( eq_take(eq, ev) )
        return true;
    if ( !env_load(&eq->hdr->overflow) )
        return false;
    CHECK_EQ(destroy(eq->guest, VMRI_OP_eq_poll, eq->handle), 0);
    return eq_take(eq, ev);
}

long eq_destroy(struct guest_eq *eq)
{
    return destroy(eq->guest, VMRI_OP_eq_destroy, eq->handle);
}

/* ---- completion queues ---- */

long try_cq(struct guest *g, unsigned int log2, struct guest_eq *eq,
            struct guest_cq **cq)
{
    uint32_t nr = ring_pages(log2, sizeof(struct vmri_cqe));
    struct vmri_cq_create arg = {
        .log2_entries = (uint8_t)log2, .eq = eq->handle,
    };
    struct guest_cq *c = calloc(1, sizeof(*c));
    long rc;

    c->guest = g;
    c->log2 = log2;
    c->gfn = env_test_pages(g->domain, nr, true);
    c->hdr = env_test_mem(g->domain, c->gfn);
    c->entry = (void *)((uint8_t *)c->hdr + VMRI_RING_OFFSET);
    rc = call_with_frames(g, VMRI_OP_cq_create, &arg, sizeof(arg), &arg.frames,
                          c->gfn, nr);
    c->handle = arg.handle;
    *cq = c;
    return rc;
}

struct guest_cq *guest_cq(struct guest *g, unsigned int log2)
{
    struct guest_cq *cq;

    CHECK_EQ(try_cq(g, log2, g->eq[0], &cq), 0);
    return cq;
}

long cq_resize(struct guest_cq *cq, unsigned int log2)
{
    uint32_t nr = ring_pages(log2, sizeof(struct vmri_cqe)), i;
    struct vmri_cq_resize arg = {
        .handle = cq->handle, .log2_entries = (uint8_t)log2,
    };
    uint64_t gfn = env_test_pages(cq->guest->domain, nr, true);
    struct vmri_cq_hdr *hdr = env_test_mem(cq->guest->domain, gfn);
    struct vmri_cqe *entry = (void *)((uint8_t *)hdr + VMRI_RING_OFFSET);
    long rc = call_with_frames(cq->guest, VMRI_OP_cq_resize, &arg, sizeof(arg),
                               &arg.frames, gfn, nr);

    if ( rc )
        return rc;
    for ( i = cq->cons; i != arg.prod; i++ )
        entry[i & ((1U << log2) - 1)] = cq->entry[i & ((1U << cq->log2) - 1)];
    cq->log2 = log2;
    cq->gfn = gfn;
    cq->hdr = hdr;
    cq->entry = entry;
    return 0;
}

bool cq_poll(struct guest_cq *cq, struct vmri_cqe *cqe)
{
    if ( env_load_acquire(&cq->hdr->prod) == cq->cons )
        return false;
    *cqe = cq->entry[cq->cons & ((1U << cq->log2) - 1)];
    env_store_release(&cq->hdr->cons, ++cq->cons);
    return true;
}

bool cq_arm(struct guest_cq *cq, uint32_t kind)
{
    env_store(&cq->hdr->arm, kind);
    env_mb();
    return env_load_acquire(&cq->hdr->prod) != cq->cons;
}

long cq_destroy(struct guest_cq *cq)
{
    return destroy(cq->guest, VMRI_OP_cq_destroy, cq->handle);
}

struct vmri_cqe cq_expect(struct guest_cq *cq, uint64_t wr_id, uint8_t status)
{
    struct vmri_cqe cqe;

    if ( !cq_poll(cq, &cqe) )
        test_failed(__FILE__, __LINE__, "no completion; wr_id %llu should come",
                    (unsigned long long)wr_id);
    if ( cqe.wr_id != wr_id || cqe.status != status )
        test_failed(__FILE__, __LINE__,
                    "completion of %llu with status %u (vendor %u), not of "
                    "%llu with %u", (unsigned long long)cqe.wr_id, cqe.status,
                    cqe.vendor_err, (unsigned long long)wr_id, status);
    CHECK(status || !cqe.vendor_err);
    CHECK(cqe.timestamp <= env_now());
    return cqe;
}

void cq_expect_none(struct guest_cq *cq)
{
    struct vmri_cqe cqe;

    if ( cq_poll(cq, &cqe) )
        test_failed(__FILE__, __LINE__,
                    "unexpected completion: wr_id %llu status %u vendor %u",
                    (unsigned long long)cqe.wr_id, cqe.status, cqe.vendor_err);
}

/* ---- memory ---- */

struct guest_mr mr_pages(struct guest *g, uint64_t bytes, uint32_t offset,
                         enum guest_layout layout)
{
    struct guest_mr mr = {
        .guest = g, .length = bytes, .offset = offset,
        .pages = (uint32_t)PFN_UP(offset + bytes),
        .iova = g->next_iova + offset,
    };

    g->next_iova += 1ULL << 32;
    mr.gfn = env_test_pages(g->domain, mr.pages, layout == LAYOUT_SCATTERED);
    mr.mem = (uint8_t *)env_test_mem(g->domain, mr.gfn) + offset;
    return mr;
}

long try_mr(struct guest *g, struct guest_mr *mr, uint32_t pd, uint32_t access)
{
    struct vmri_mr_register arg = {
        .iova = mr->iova, .length = mr->length, .pd = pd, .access = access,
        .offset = mr->offset,
    };
    long rc = call_with_frames(g, VMRI_OP_mr_register, &arg, sizeof(arg),
                               &arg.frames, mr->gfn, mr->pages);

    mr->key = arg.key;
    return rc;
}

struct guest_mr guest_mr(struct guest *g, uint64_t bytes, uint32_t offset,
                         enum guest_layout layout, uint32_t access)
{
    struct guest_mr mr = mr_pages(g, bytes, offset, layout);

    CHECK_EQ(try_mr(g, &mr, g->pd, access), 0);
    return mr;
}

long mr_deregister(struct guest_mr *mr)
{
    return destroy(mr->guest, VMRI_OP_mr_deregister, mr->key);
}

struct vmri_sge mr_sge(const struct guest_mr *mr, uint64_t at, uint32_t bytes)
{
    return (struct vmri_sge){
        .addr = mr->iova + at, .length = bytes, .lkey = mr->key,
    };
}

/* ---- data ---- */

/*
 * Patterns repeat after a prime, so that data moved by any number of pages,
 * steps or small distances shows.
 */
#define PERIOD  65521U

static uint8_t table[PERIOD];

static void __attribute__((__constructor__)) make_table(void)
{
    uint32_t x = 1, i;

    for ( i = 0; i < PERIOD; i++ )
    {
        x = x * 1664525 + 1013904223;
        table[i] = (uint8_t)(x >> 24);
    }
}

/* The pattern's bytes from `at` on, and how many lie together there. */
static const uint8_t *pattern(uint32_t seed, size_t at, size_t *run)
{
    size_t i = (at + seed * 7919ULL) % PERIOD;

    *run = *run < PERIOD - i ? *run : PERIOD - i;
    return &table[i];
}

void fill_pattern(uint8_t *p, size_t bytes, uint32_t seed)
{
    size_t done = 0, n;

    for ( ; done < bytes; done += n )
    {
        const uint8_t *from;

        n = bytes - done;
        from = pattern(seed, done, &n);
        memcpy(p + done, from, n);
    }
}

size_t match_pattern(const uint8_t *p, size_t bytes, uint32_t seed, size_t skip)
{
    size_t done = 0, n, i;

    for ( ; done < bytes; done += n )
    {
        const uint8_t *want;

        n = bytes - done;
        want = pattern(seed, done + skip, &n);
        if ( memcmp(p + done, want, n) )
        {
            for ( i = 0; p[done + i] == want[i]; i++ )
                ;
            return done + i;
        }
    }
    return bytes;
}

bool all_bytes(const uint8_t *p, size_t bytes, uint8_t c)
{
    return !bytes || (p[0] == c && !memcmp(p, p + 1, bytes - 1));
}
