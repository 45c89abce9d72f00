/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Racing reads.  The input holds a script of changes: after so many looks at
 * guests' memory, what is about to be read is changed like this.  The linker
 * sends the calls that matter here first (--wrap, see the Makefile).
 *
 * Compilers that can tell of loads (clang) are asked to: a load from a ring that
 * is no race_look() is one that the compiler may repeat, and a finding.
 */
#include "fuzz.h"

#define MAX_CHANGES 32
#define MAX_RINGS   8192

static struct change {
    uint8_t skip;               /* looks before this one */
    uint8_t how;
    uint8_t at;
    uint8_t value;
} changes[MAX_CHANGES];
static unsigned int nr_changes, next_change, skip;

/* Pages of rings, as VMRI has them mapped, and how many share a hash. */
static uintptr_t rings[MAX_RINGS];
static unsigned int nr_rings;
static uint16_t sharing[4096];

static const void *looked_at;

static uint16_t *sharing_of(uintptr_t page)
{
    return &sharing[(page >> PAGE_SHIFT) % ARRAY_SIZE(sharing)];
}

/* Its place in `rings`, or nr_rings. */
static unsigned int find_ring(uintptr_t page)
{
    unsigned int i;

    for ( i = 0; i < nr_rings && rings[i] != page; i++ )
        ;
    return i;
}

static bool in_ring(const void *p)
{
    uintptr_t page = (uintptr_t)p & PAGE_MASK;

    return *sharing_of(page) && find_ring(page) < nr_rings;
}

static bool in_user(const void *p)
{
    return (size_t)((const uint8_t *)p - (const uint8_t *)&user) < sizeof(user);
}

void race_begin(struct input *in)
{
    unsigned int i;

    nr_changes = take_of(in, MAX_CHANGES + 1);
    for ( i = 0; i < nr_changes; i++ )
        changes[i] = (struct change){
            take8(in), take8(in), take8(in), take8(in),
        };
    next_change = 0;
    skip = nr_changes ? changes[0].skip : 0;
}

void race_off(void)
{
    nr_changes = 0;
    next_change = 0;
}

/* The word, or what there is of one, that a change is about. */
static void apply(const struct change *c, uint8_t *p, size_t bytes)
{
    size_t at = bytes > 4 ? (size_t)c->at * 4 % (bytes & ~(size_t)3) : 0;
    size_t n = bytes - at < 4 ? bytes - at : 4;
    uint32_t word = 0;

    memcpy(&word, p + at, n);
    switch ( c->how % 6 )
    {
    case 0:
        word ^= c->value;
        break;
    case 1:
        word += c->value;
        break;
    case 2:
        word -= c->value;
        break;
    case 3:
        word = c->value;
        break;
    case 4:
        word ^= (uint32_t)c->value << 24;
        break;
    case 5:
        word = 0x01010101U * c->value;
        break;
    }
    memcpy(p + at, &word, n);
}

void race_look(const void *p, size_t bytes)
{
    looked_at = p;
    if ( next_change == nr_changes || !bytes || (!in_ring(p) && !in_user(p)) )
        return;
    if ( skip )
    {
        skip--;
        return;
    }

    /* What VMRI has mapped for reading here, the guest may write. */
    apply(&changes[next_change], (uint8_t *)(uintptr_t)p, bytes);
    if ( ++next_change < nr_changes )
        skip = changes[next_change].skip;
}

/* ---- what the linker sends here ---- */

void *__real_env_map_ring(env_frame_t frame);
void __real_env_unmap_ring(void *p);
void *__real_env_memcpy(void *to, const void *from, size_t n);
int __real_env_copy_from_guest(void *to, uint64_t from, size_t bytes);

void *__wrap_env_map_ring(env_frame_t frame);
void __wrap_env_unmap_ring(void *p);
void *__wrap_env_memcpy(void *to, const void *from, size_t n);
int __wrap_env_copy_from_guest(void *to, uint64_t from, size_t bytes);

void *__wrap_env_map_ring(env_frame_t frame)
{
    void *p = __real_env_map_ring(frame);

    if ( !p )
        return NULL;
    if ( nr_rings == MAX_RINGS )
        env_panic("too many rings");
    rings[nr_rings++] = (uintptr_t)p;
    ++*sharing_of((uintptr_t)p);
    return p;
}

void __wrap_env_unmap_ring(void *p)
{
    unsigned int i = find_ring((uintptr_t)p);

    if ( i < nr_rings )
    {
        rings[i] = rings[--nr_rings];
        --*sharing_of((uintptr_t)p);
    }
    __real_env_unmap_ring(p);
}

void *__wrap_env_memcpy(void *to, const void *from, size_t n)
{
    race_look(from, n);
    return __real_env_memcpy(to, from, n);
}

int __wrap_env_copy_from_guest(void *to, uint64_t from, size_t bytes)
{
    const void *p = (const void *)(uintptr_t)from;

    if ( bytes && in_user(p) && in_user((const uint8_t *)p + bytes - 1) )
        race_look(p, bytes);
    return __real_env_copy_from_guest(to, from, bytes);
}

/* ---- loads, told by the compiler ---- */

static void loaded(const void *p)
{
    if ( looked_at == p )
        looked_at = NULL;
    else if ( in_ring(p) )
        env_panic("a load from a ring that the compiler may repeat");
}

void __sanitizer_cov_load1(uint8_t *p);
void __sanitizer_cov_load2(uint16_t *p);
void __sanitizer_cov_load4(uint32_t *p);
void __sanitizer_cov_load8(uint64_t *p);
void __sanitizer_cov_load16(void *p);

void __sanitizer_cov_load1(uint8_t *p)
{
    loaded(p);
}

void __sanitizer_cov_load2(uint16_t *p)
{
    loaded(p);
}

void __sanitizer_cov_load4(uint32_t *p)
{
    loaded(p);
}

void __sanitizer_cov_load8(uint64_t *p)
{
    loaded(p);
}

void __sanitizer_cov_load16(void *p)
{
    loaded(p);
}
