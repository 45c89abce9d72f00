/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of mpi-check share. A check is a function that returns how many
 * errors this rank saw; all ranks run the same checks in the same order, and rank 0
 * prints "ok NAME" or "FAIL NAME: WHY" when the errors of all are known.
 */
#ifndef MPI_CHECK_H
#define MPI_CHECK_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

extern int rank, ranks;

void check(const char *name, long (*run)(void));

/* Memory that is not zero; ends all ranks if there is none. */
void *memory(size_t bytes);

/* The bytes that stream @seed has, and how many of a buffer's differ from them. */
void fill(void *buffer, size_t bytes, uint64_t seed);
long differ(const void *buffer, size_t bytes, uint64_t seed);

void check_messages(void);
void check_collectives(void);
void check_windows(void);

#endif
