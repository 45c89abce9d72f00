/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bytes that a fuzzer gives, taken one after the other.  After the last one
 * follow zeroes, so that every input is a complete one.
 */
#ifndef VMRI_FUZZ_INPUT_H
#define VMRI_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input {
    const uint8_t *p;
    size_t left;
};

static inline uint8_t take8(struct input *in)
{
    if ( !in->left )
        return 0;
    in->left--;
    return *in->p++;
}

static inline uint16_t take16(struct input *in)
{
    uint16_t low = take8(in);

    return (uint16_t)(low | take8(in) << 8);
}

static inline uint32_t take32(struct input *in)
{
    uint32_t low = take16(in);

    return low | (uint32_t)take16(in) << 16;
}

static inline uint64_t take64(struct input *in)
{
    uint64_t low = take32(in);

    return low | (uint64_t)take32(in) << 32;
}

/* One of 0 .. n - 1. */
static inline unsigned int take_of(struct input *in, unsigned int n)
{
    return take8(in) % n;
}

/* Once in n; not when the input has ended. */
static inline bool take_rare(struct input *in, unsigned int n)
{
    return take_of(in, n) == n - 1;
}

/* A number of any size, small ones and those near a power of two preferred. */
static inline uint64_t take_number(struct input *in)
{
    uint8_t how = take8(in);

    if ( how < 0x80 )
        return how;
    if ( how < 0xc0 )
        return (1ULL << (how & 63)) - 1 + take_of(in, 3);
    if ( how < 0xe0 )
        return take16(in);
    return how < 0xf0 ? take32(in) : take64(in);
}

#endif /* VMRI_FUZZ_INPUT_H */
