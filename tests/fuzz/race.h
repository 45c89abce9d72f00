/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest that changes its memory while it is read.
 *
 * Included before every source of xen/vmri in a fuzzing build, and in that of the
 * unit tests whose objects it shares; those have no race_look().  The sources look at
 * what guests share through atomic loads (env_load of env.h) and memcpy
 * alone; each such look comes through race_look() first, which changes what is
 * about to be read when the input says so.  So whoever reads twice gets two
 * answers, at a moment that the input chooses, without a thread.
 */
#ifndef VMRI_FUZZ_RACE_H
#define VMRI_FUZZ_RACE_H

#include <stddef.h>

void race_look(const void *p, size_t bytes) __attribute__((__weak__));

/* A macro does not expand within itself: the second one is the compiler's. */
#define __atomic_load_n(p, order) ({                            \
    __typeof__(p) race_p_ = (p);                                \
    if ( race_look )                                            \
        race_look((const void *)race_p_, sizeof(*race_p_));     \
    __atomic_load_n(race_p_, order); })

#endif /* VMRI_FUZZ_RACE_H */
