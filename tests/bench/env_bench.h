/* SPDX-License-Identifier: GPL-2.0-only */
/* What the machine for measuring has beside env_test.h. */
#ifndef ENV_BENCH_H
#define ENV_BENCH_H

#include <stdint.h>

/* From now on gfn is frame `sum` - gfn, so no two are neighbours; 0: as usual. */
void env_bench_mirror(uint64_t sum);

#endif /* ENV_BENCH_H */
