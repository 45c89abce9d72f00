/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Instructions of a function, counted one by one: a child process runs it, the
 * parent steps through.  The same at every run, on every machine.
 */
#ifndef BENCH_COUNT_H
#define BENCH_COUNT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Have `run` called in a child and count the instructions of the first call of
 * `fn` in it, all that it calls included; a repeated string instruction is one.
 * With `profile`, show by function where they are (nm must be there).  0: this
 * system does not let its processes be traced.
 */
uint64_t count_instructions(void (*run)(void *), void *data, const void *fn,
                            int profile);

#endif /* BENCH_COUNT_H */
