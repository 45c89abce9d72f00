/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The machine's memory: frames with owners, kinds and references, seen through
 * separate mappings by the guests, by rings and by copies.
 */
#define _GNU_SOURCE
#include "env_private.h"

#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRAMES          32768U
/* Frame numbers start here, so that an index is never mistaken for one. */
#define FRAME_BASE      0x4000000ULL
#define MAX_MAPS        8
#define MAX_WRITTEN     512
#define WINDOWS         2048
#define WINDOW          (2 * PAGE_SIZE)     /* a page, and a guard behind it */

struct frame {
    struct domain *owner;       /* NULL: free */
    uint32_t at;                /* its page of memfd, never the first */
    enum env_page_kind kind;
    uint32_t refs;
    uint32_t writable;          /* of them */
    uint32_t dirty;
};

/* One mapping of env_map. */
struct mapping {
    void *at;                   /* NULL: unused */
    uint64_t frame;
};

static struct frame frames[FRAMES];
static uint32_t next_frame;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;   /* of frames */
static int memfd = -1;
/*
 * All frames, one after the other, but shown only while mappings cover runs of
 * them: frames of scattered pages are shown one by one, which takes long.
 */
static uint8_t *direct;
static bool one_frame;

static struct env_hook map_hook;

static __thread struct mapping maps[MAX_MAPS];
/*
 * Where this thread sees frames one by one.  A window stays where it is once
 * it is closed, out of reach, since the same frame is often mapped again.
 */
static __thread uint8_t *windows;
static __thread struct {
    uint32_t page;              /* of memfd; 0: none yet */
    bool open;
} seen[WINDOWS];
static __thread uint64_t written[MAX_WRITTEN];
static __thread unsigned int nr_written;
static pthread_key_t window_key;

static void *must_mmap(void *at, size_t bytes, int prot, int flags, int fd,
                       off_t offset)
{
    void *p = mmap(at, bytes, prot, flags, fd, offset);

    if ( p == MAP_FAILED )
        env_panic("mmap of %zu bytes failed", bytes);
    return p;
}

static void *reserve(size_t bytes)
{
    return must_mmap(NULL, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Pages of memfd. */
static void show(void *at, uint32_t page, size_t nr)
{
    must_mmap(at, nr * PAGE_SIZE, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_FIXED, memfd, (off_t)page * PAGE_SIZE);
}

/* Those of domains.  What lies one after the other in memfd, too, at once. */
static void show_direct(uint32_t first, uint32_t end)
{
    uint32_t nr;

    for ( ; first < end; first += nr )
    {
        nr = 1;
        if ( !frames[first].owner )
            continue;
        while ( first + nr < end &&
                frames[first + nr].at == frames[first].at + nr )
            nr++;
        show(direct + first * PAGE_SIZE, frames[first].at, nr);
    }
}

/*
 * Make a page of a window one that may be used, or must not be: the address
 * sanitizer needs no help of the kernel, which takes far longer.
 */
static void permit(void *page, bool use)
{
#ifdef __SANITIZE_ADDRESS__
    if ( use )
        ASAN_UNPOISON_MEMORY_REGION(page, PAGE_SIZE);
    else
        ASAN_POISON_MEMORY_REGION(page, PAGE_SIZE);
#else
    if ( mprotect(page, PAGE_SIZE, use ? PROT_READ | PROT_WRITE : PROT_NONE) )
        env_panic("cannot protect a window");
#endif
}

static void windows_free(void *p)
{
    ASAN_UNPOISON_MEMORY_REGION(p, WINDOWS * WINDOW);
    munmap(p, WINDOWS * WINDOW);
}

/* ---- begin and end ---- */

void env_frames_begin(void)
{
    size_t bytes = FRAMES * PAGE_SIZE;

    if ( memfd < 0 )
    {
        memfd = memfd_create("frames", MFD_CLOEXEC);
        direct = reserve(bytes);
        pthread_key_create(&window_key, windows_free);
    }
    if ( ftruncate(memfd, 0) || ftruncate(memfd, (off_t)bytes) )
        env_panic("cannot size the machine's memory");

    /* Those that the last test has used. */
    memset(frames, 0, next_frame * sizeof(frames[0]));
    next_frame = 0;
    one_frame = true;
    map_hook.nth = 0;
    nr_written = 0;
}

void env_frames_end(void)
{
    uint32_t i;

    env_frames_returned();
    for ( i = 0; i < next_frame; i++ )
        if ( frames[i].refs )
            env_panic("frame %u of domain %u is still referenced, %u times", i,
                      frames[i].owner->id, frames[i].refs);
    if ( env_stats.rings )
        env_panic("%llu ring pages are still mapped",
                  (unsigned long long)env_stats.rings);
    for ( i = 0; i < ENV_DOMAINS; i++ )
    {
        struct domain *d = &env_domains[i];

        if ( d->mem )
            munmap(d->mem, ENV_GFNS * PAGE_SIZE);
        free(d->p2m);
    }
}

void env_frames_returned(void)
{
    unsigned int i;

    for ( i = 0; i < MAX_MAPS; i++ )
        if ( maps[i].at )
            env_panic("a frame is still mapped on return");
    if ( nr_written )
        env_panic("%u frames were written and not marked dirty", nr_written);
}

void env_test_one_frame(bool on)
{
    one_frame = on;
    if ( !on )
        show_direct(0, next_frame);
}

/* ---- a domain's pages ---- */

static uint32_t gfn_index(const struct domain *d, uint64_t gfn)
{
    uint64_t index = gfn - env_gfn_base(d);

    return index < env_load_acquire(&d->next_gfn) ? (uint32_t)index
                                                  : ENV_NO_FRAME;
}

static struct frame *frame_of_gfn(const struct domain *d, uint64_t gfn)
{
    uint32_t i = gfn_index(d, gfn);

    return i == ENV_NO_FRAME || d->p2m[i] == ENV_NO_FRAME ? NULL
                                                           : &frames[d->p2m[i]];
}

static struct frame *need_frame(const struct domain *d, uint64_t gfn)
{
    struct frame *f = frame_of_gfn(d, gfn);

    if ( !f )
        env_panic("domain %u has no frame %#llx", d->id,
                  (unsigned long long)gfn);
    return f;
}

static uint64_t give_pages(struct domain *d, unsigned int nr, uint32_t first,
                           bool scattered)
{
    uint32_t index = d->next_gfn, i;

    if ( first + nr > FRAMES || index + nr > ENV_GFNS )
        env_panic("the machine has no %u frames left", nr);
    if ( !d->mem )
    {
        d->mem = reserve(ENV_GFNS * PAGE_SIZE);
        d->p2m = calloc(ENV_GFNS, sizeof(*d->p2m));
    }

    for ( i = 0; i < nr; i++ )
    {
        uint32_t frame = scattered ? first + nr - 1 - i : first + i;

        frames[frame].owner = d;
        frames[frame].kind = ENV_RAM;
        frames[frame].at = first + i;
        d->p2m[index + i] = frame;
    }
    show(d->mem + index * PAGE_SIZE, first, nr);
    if ( !one_frame )
        show_direct(first, first + nr);

    next_frame = first + nr;
    env_store_release(&d->next_gfn, index + nr);
    return env_gfn_base(d) + index;
}

uint64_t env_test_pages(struct domain *d, unsigned int nr, bool scattered)
{
    uint64_t gfn;

    /* A gap, so that two calls never give contiguous frames. */
    pthread_mutex_lock(&mutex);
    gfn = give_pages(d, nr, next_frame + 1, scattered);
    pthread_mutex_unlock(&mutex);
    return gfn;
}

void env_test_page_kind(struct domain *d, uint64_t gfn, enum env_page_kind kind)
{
    if ( kind == ENV_HOLE )
    {
        need_frame(d, gfn);
        d->p2m[gfn_index(d, gfn)] = ENV_NO_FRAME;
    }
    else
        need_frame(d, gfn)->kind = kind;
}

bool env_test_page_pin_table(struct domain *d, uint64_t gfn)
{
    struct frame *f = need_frame(d, gfn);

    if ( f->writable )
        return false;
    f->kind = ENV_PAGE_TABLE;
    return true;
}

void *env_test_mem(struct domain *d, uint64_t gfn)
{
    uint32_t index = gfn_index(d, gfn);

    if ( index == ENV_NO_FRAME )
        env_panic("domain %u has no frame %#llx", d->id,
                  (unsigned long long)gfn);
    return d->mem + index * PAGE_SIZE;
}

env_frame_t env_test_frame(struct domain *d, uint64_t gfn)
{
    return FRAME_BASE + (uint64_t)(need_frame(d, gfn) - frames);
}

unsigned int env_test_page_refs(struct domain *d, uint64_t gfn)
{
    return need_frame(d, gfn)->refs;
}

unsigned int env_test_page_dirty(struct domain *d, uint64_t gfn)
{
    return env_load(&need_frame(d, gfn)->dirty);
}

/* ---- references ---- */

static struct frame *referenced(env_frame_t frame, const char *what)
{
    struct frame *f = &frames[frame - FRAME_BASE];

    if ( frame - FRAME_BASE >= FRAMES || !env_load(&f->refs) )
        env_panic("%s of frame %#llx, which is not referenced", what,
                  (unsigned long long)frame);
    return f;
}

/* By the mutex. */
static int refer(struct domain *d, struct frame *f, bool writable)
{
    if ( !f || f->owner != d || (f->kind != ENV_RAM &&
                                 (f->kind != ENV_PAGE_TABLE || writable)) )
        return -EPERM;

    env_store(&f->refs, f->refs + 1);
    f->writable += writable;
    return 0;
}

int env_frame_get(struct domain *d, uint64_t gfn, bool writable,
                  env_frame_t *frame)
{
    struct frame *f;
    int rc;

    env_no_lock("env_frame_get");
    if ( env_fails(ENV_FAIL_FRAME) )
        return -EPERM;

    pthread_mutex_lock(&mutex);
    f = frame_of_gfn(d, gfn);
    rc = refer(d, f, writable);
    if ( !rc )
        *frame = FRAME_BASE + (uint64_t)(f - frames);
    pthread_mutex_unlock(&mutex);

    return rc;
}

int env_frame_again(struct domain *d, env_frame_t frame, bool writable)
{
    struct frame *f = referenced(frame, "another reference");
    int rc;

    env_no_lock("env_frame_again");
    if ( env_fails(ENV_FAIL_FRAME) )
        return -EPERM;

    pthread_mutex_lock(&mutex);
    rc = refer(d, f, writable);
    pthread_mutex_unlock(&mutex);

    return rc;
}

void env_frame_put(env_frame_t frame, bool writable)
{
    struct frame *f = referenced(frame, "put");
    bool ok;

    env_no_lock("env_frame_put");
    pthread_mutex_lock(&mutex);
    ok = writable <= f->writable && f->refs - 1 >= f->writable - writable;
    env_store(&f->refs, f->refs - ok);
    f->writable -= ok && writable;
    pthread_mutex_unlock(&mutex);

    if ( !ok )
        env_panic("put of frame %#llx, taken %s", (unsigned long long)frame,
                  writable ? "read-only" : "as writable");
}

static void frame_dirty(const struct domain *d, env_frame_t frame)
{
    struct frame *f = referenced(frame, "dirtying");
    unsigned int i;

    if ( f->owner != d )
        env_panic("frame %#llx marked dirty for another domain",
                  (unsigned long long)frame);
    env_add(&f->dirty, 1);
    for ( i = 0; i < nr_written; i++ )
        if ( written[i] == frame )
        {
            written[i] = written[--nr_written];
            break;
        }
}

void env_frames_dirty(struct domain *d, env_frame_t first, uint32_t nr)
{
    env_no_lock("env_frames_dirty");
    while ( nr-- )
        frame_dirty(d, first + nr);
}

/* ---- mappings for copies ---- */

void env_test_on_map(unsigned int nth, void (*fn)(void *), void *data)
{
    env_hook_set(&map_hook, nth, fn, data);
}

/* A closed window that shows the frame. */
static void *window_open(env_frame_t frame)
{
    uint32_t at = frames[frame - FRAME_BASE].at;
    unsigned int i = at % WINDOWS;
    uint8_t *page;

    if ( !windows )
    {
        windows = reserve(WINDOWS * WINDOW);
        pthread_setspecific(window_key, windows);
    }
    while ( seen[i].open )
        i = (i + 1) % WINDOWS;

    page = windows + i * WINDOW;
    permit(page, true);
    if ( seen[i].page != at )
        show(page, at, 1);
    seen[i].page = at;
    seen[i].open = true;

    return page;
}

static void window_close(uint8_t *page)
{
    seen[(size_t)(page - windows) / WINDOW].open = false;
    permit(page, false);
}

static bool in_window(const uint8_t *page)
{
    return windows && page >= windows && page < windows + WINDOWS * WINDOW;
}

void *env_map(env_frame_t frame)
{
    unsigned int i;

    env_no_lock("env_map");
    env_need_current("env_map");
    env_add(&env_stats.maps, 1);
    env_hook_run(&map_hook);
    referenced(frame, "mapping");

    for ( i = 0; i < MAX_MAPS && maps[i].at; i++ )
        ;
    if ( i == MAX_MAPS )
        env_panic("more than %d frames mapped", MAX_MAPS);

    maps[i].at = one_frame ? window_open(frame)
                           : direct + (frame - FRAME_BASE) * PAGE_SIZE;
    maps[i].frame = frame;
    return maps[i].at;
}

void env_unmap(const void *p)
{
    /* Xen rounds down to the page, too. */
    void *page = (void *)((uintptr_t)p & PAGE_MASK);
    unsigned int i;

    for ( i = 0; i < MAX_MAPS; i++ )
        if ( maps[i].at == page )
        {
            if ( in_window(page) )
                window_close(page);
            maps[i].at = NULL;
            return;
        }
    env_panic("unmap of something that is not mapped");
}

size_t env_run(env_frame_t frame, size_t offset, size_t bytes)
{
    (void)frame;
    return one_frame ? min_t(size_t, bytes, PAGE_SIZE - offset) : bytes;
}

/* ---- mappings for rings ---- */

void *env_map_ring(env_frame_t frame)
{
    uint8_t *p;

    referenced(frame, "ring mapping");
    if ( env_fails(ENV_FAIL_MAP_RING) )
        return NULL;

    /* A page on either side, so that no access crosses into a neighbour. */
    p = reserve(3 * PAGE_SIZE);
    show(p + PAGE_SIZE, frames[frame - FRAME_BASE].at, 1);
    env_add(&env_stats.rings, 1);
    return p + PAGE_SIZE;
}

void env_unmap_ring(void *p)
{
    if ( (uintptr_t)p & ~PAGE_MASK )
        env_panic("unmap of a ring by an address within it");
    munmap((uint8_t *)p - PAGE_SIZE, 3 * PAGE_SIZE);
    (void)env_fetch_sub(&env_stats.rings, 1);
}

/* ---- what copies touch ---- */

/* The frame that holds a byte of one of this thread's mappings, or 0. */
static env_frame_t mapped_frame(const void *p)
{
    const uint8_t *b = p;
    unsigned int i;

    if ( direct && b >= direct && b < direct + FRAMES * PAGE_SIZE )
        return FRAME_BASE + (uint64_t)(b - direct) / PAGE_SIZE;
    for ( i = 0; i < MAX_MAPS; i++ )
        if ( maps[i].at && (uintptr_t)maps[i].at == ((uintptr_t)p & PAGE_MASK) )
            return maps[i].frame;
    return 0;
}

static void note_written(env_frame_t frame)
{
    unsigned int i;

    if ( !referenced(frame, "writing")->writable )
        env_panic("frame %#llx is written but not held as writable",
                  (unsigned long long)frame);
    for ( i = 0; i < nr_written; i++ )
        if ( written[i] == frame )
            return;
    if ( nr_written == MAX_WRITTEN )
        env_panic("too many frames written without being marked dirty");
    written[nr_written++] = frame;
}

static void note_write(const void *to, size_t n)
{
    env_frame_t first = mapped_frame(to), i;
    size_t frames_hit = PFN_UP(((uintptr_t)to & ~PAGE_MASK) + n);

    for ( i = 0; first && i < frames_hit; i++ )
        note_written(first + i);
}

static bool overlap(const void *a, const void *b, size_t n)
{
    return (uintptr_t)a - (uintptr_t)b < n || (uintptr_t)b - (uintptr_t)a < n;
}

void *env_memcpy(void *to, const void *from, size_t n)
{
    bool to_frame = n && mapped_frame(to), from_frame = n && mapped_frame(from);

    if ( to_frame && from_frame )
        env_add(&env_stats.copied, n);
    else if ( to_frame || from_frame )
        env_add(&env_stats.staged, n);
    if ( to_frame )
        note_write(to, n);
    /*
     * A guest may have its memory copied over itself; Xen's does no harm.  Not
     * always by memmove, which ASan does byte by byte.
     */
    return to_frame && from_frame && overlap(to, from, n)
               ? memmove(to, from, n) : env_raw_memcpy(to, from, n);
}

/* Eight bytes that are about to change, all at once. */
static void note_atomic(const uint64_t *p)
{
    if ( !mapped_frame(p) )
        env_panic("an atomic operation on something that is not mapped");
    if ( (uintptr_t)p % sizeof(*p) )
        env_panic("an atomic operation on an address that is not aligned");
    note_write(p, sizeof(*p));
}

uint64_t env_mapped_cmpxchg(uint64_t *p, uint64_t old, uint64_t v)
{
    note_atomic(p);
    (void)env_cmpxchg(p, &old, v);
    return old;
}

uint64_t env_mapped_add(uint64_t *p, uint64_t v)
{
    note_atomic(p);
    return env_fetch_add(p, v);
}

void env_mapped_store(uint64_t *p, uint64_t v)
{
    note_atomic(p);
    env_store_release(p, v);
}

void *env_memset(void *to, int c, size_t n)
{
    if ( n && mapped_frame(to) )
        note_write(to, n);
    return (memset)(to, c, n);
}
