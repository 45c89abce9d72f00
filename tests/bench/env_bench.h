/* SPDX-License-Identifier: GPL-2.0-only */
/* What the machine for measuring has beside env_test.h. */
#ifndef ENV_BENCH_H
#define ENV_BENCH_H

#include <stdint.h>

/* From now on gfn is frame `sum` - gfn, so no two are neighbours; 0: as usual. */
void env_bench_mirror(uint64_t sum);

/*
 * From now on note how long it takes from one look at preemption to the next, in
 * ns of this thread's own processor time; and the longest that it took since.
 */
void env_bench_watch(void);
uint64_t env_bench_longest(void);

#endif /* ENV_BENCH_H */
