// SPDX-License-Identifier: GPL-2.0-only
/* mpi-check: one-sided access to other ranks' windows, by each way to synchronise. */
#include "mpi-check.h"

#include <stdlib.h>
#include <string.h>

enum { PART = 20000, TURNS = 25 };

/* A window with room for a part from every rank. */
static MPI_Win open_window(int64_t **base, int entries)
{
	MPI_Win window;

	MPI_Win_allocate((MPI_Aint)entries * sizeof(**base), sizeof(**base), MPI_INFO_NULL,
			 MPI_COMM_WORLD, base, &window);
	memset(*base, 0, (size_t)entries * sizeof(**base));
	/* Others see the zeros before anybody writes. */
	MPI_Win_fence(0, window);
	return window;
}

/* Each rank puts its part into every window, and then gets all parts of the next. */
static long put_and_get(void)
{
	int64_t *base, *part = memory(PART * sizeof(*part));
	int64_t *got = memory(ranks * PART * sizeof(*got));
	MPI_Win window = open_window(&base, ranks * PART);
	long wrong = 0;

	for (int i = 0; i < PART; i++)
		part[i] = (int64_t)rank << 32 | i;
	for (int to = 0; to < ranks; to++)
		MPI_Put(part, PART, MPI_INT64_T, to, (MPI_Aint)rank * PART, PART,
			MPI_INT64_T, window);
	MPI_Win_fence(0, window);
	MPI_Get(got, ranks * PART, MPI_INT64_T, (rank + 1) % ranks, 0, ranks * PART,
		MPI_INT64_T, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < ranks * PART; i++) {
		int64_t expected = (int64_t)(i / PART) << 32 | i % PART;

		wrong += base[i] != expected;
		wrong += got[i] != expected;
	}
	MPI_Win_free(&window);
	free(part);
	free(got);
	return wrong;
}

/* All add to the same places of rank 0 at once. */
static long accumulate(void)
{
	int64_t *base, *ones = memory(PART * sizeof(*ones));
	MPI_Win window = open_window(&base, PART);
	long wrong = 0;

	for (int i = 0; i < PART; i++)
		ones[i] = rank + i;
	MPI_Accumulate(ones, PART, MPI_INT64_T, 0, 0, PART, MPI_INT64_T, MPI_SUM, window);
	MPI_Win_fence(0, window);
	for (int i = 0; rank == 0 && i < PART; i++)
		wrong += base[i] != ranks * (ranks - 1) / 2 + (int64_t)ranks * i;
	MPI_Win_free(&window);
	free(ones);
	return wrong;
}

/* A counter that all draw numbers from: each number is drawn once. */
static long counter(void)
{
	int64_t *base, one = 1, drawn, last = -1, sum = 0, all;
	MPI_Win window = open_window(&base, 1);
	int64_t numbers = (int64_t)ranks * TURNS;
	long wrong = 0;

	MPI_Win_lock_all(0, window);
	for (int i = 0; i < TURNS; i++) {
		MPI_Fetch_and_op(&one, &drawn, MPI_INT64_T, 0, 0, MPI_SUM, window);
		MPI_Win_flush(0, window);
		wrong += drawn <= last || drawn >= numbers;
		last = drawn;
		sum += drawn;
	}
	MPI_Win_unlock_all(window);
	MPI_Allreduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	wrong += all != numbers * (numbers - 1) / 2;
	MPI_Win_free(&window);
	return wrong;
}

/* Rank 0's first number becomes @own if it is 0. Returns what it was. */
static int64_t try_swap(int64_t own, MPI_Win window)
{
	int64_t zero = 0, was;

	MPI_Compare_and_swap(&own, &zero, &was, MPI_INT64_T, 0, 0, window);
	MPI_Win_flush(0, window);
	return was;
}

/*
 * Open MPI over UCX does nothing for others while a rank swaps in its own window only,
 * where the lock's holder may be one of them.
 */
static void serve_others(void)
{
	int any;

	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
}

/* A lock of compare-and-swap around a sum that is not atomic. */
static long swap(void)
{
	int64_t *base, zero = 0, own = rank + 1, was, sum;
	MPI_Win window = open_window(&base, 2);
	long wrong = 0;

	MPI_Win_lock_all(0, window);
	for (int i = 0; i < TURNS; i++) {
		while (try_swap(own, window))
			serve_others();
		MPI_Get(&sum, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, window);
		MPI_Win_flush(0, window);
		sum++;
		MPI_Put(&sum, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, window);
		MPI_Win_flush(0, window);
		MPI_Compare_and_swap(&zero, &own, &was, MPI_INT64_T, 0, 0, window);
		MPI_Win_flush(0, window);
		wrong += was != own;
	}
	MPI_Win_unlock_all(window);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		wrong += base[1] != (int64_t)ranks * TURNS || base[0];
		MPI_Win_unlock(0, window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_free(&window);
	return wrong;
}

/* Exclusive locks: what is read and written under one is nobody else's. */
static long locks(void)
{
	int64_t *base;
	MPI_Win window = open_window(&base, 100);
	int64_t copy[100];
	long wrong = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < TURNS; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
		MPI_Get(copy, 100, MPI_INT64_T, 0, 0, 100, MPI_INT64_T, window);
		MPI_Win_flush(0, window);
		for (int at = 99; at >= 0; at--) {
			wrong += copy[at] != copy[0];
			copy[at]++;
		}
		MPI_Put(copy, 100, MPI_INT64_T, 0, 0, 100, MPI_INT64_T, window);
		MPI_Win_unlock(0, window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	MPI_Get(copy, 100, MPI_INT64_T, 0, 0, 100, MPI_INT64_T, window);
	MPI_Win_unlock(0, window);
	wrong += copy[99] != (int64_t)ranks * TURNS;
	MPI_Win_free(&window);
	return wrong;
}

void check_windows(void)
{
	check("put and get between fences", put_and_get);
	check("accumulate by all at once", accumulate);
	check("fetch_and_op: a counter", counter);
	check("compare_and_swap: a lock", swap);
	check("exclusive locks", locks);
}
