// SPDX-License-Identifier: GPL-2.0-only
/* mpi-check: collective operations, compared with what each rank can work out alone. */
#include "mpi-check.h"

#include <stdlib.h>

/* A few integers, and so many that libraries take another algorithm. */
static const int counts[] = { 1, 100, 40000 };
#define COUNTS (sizeof(counts) / sizeof(counts[0]))

/* What rank @of contributes at place @i. */
static int64_t value(int of, int i)
{
	return (int64_t)(of + 1) * 1000003 + i * 7;
}

static int64_t sum_to(int last, int i)
{
	int64_t sum = 0;

	for (int of = 0; of <= last; of++)
		sum += value(of, i);
	return sum;
}

static int64_t *mine(int count)
{
	int64_t *out = memory(count * sizeof(*out));

	for (int i = 0; i < count; i++)
		out[i] = value(rank, i);
	return out;
}

static long broadcast(void)
{
	long wrong = 0;

	for (size_t c = 0; c < COUNTS; c++)
		for (int root = 0; root < ranks; root++) {
			int64_t *data = mine(counts[c]);

			MPI_Bcast(data, counts[c], MPI_INT64_T, root, MPI_COMM_WORLD);
			for (int i = 0; i < counts[c]; i++)
				wrong += data[i] != value(root, i);
			free(data);
		}
	return wrong;
}

static long reductions(void)
{
	long wrong = 0;

	for (size_t c = 0; c < COUNTS; c++) {
		int count = counts[c], root = ranks - 1;
		int64_t *out = mine(count), *in = memory(count * sizeof(*in));

		MPI_Allreduce(out, in, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < count; i++)
			wrong += in[i] != sum_to(ranks - 1, i);
		MPI_Reduce(out, in, count, MPI_INT64_T, MPI_MAX, root, MPI_COMM_WORLD);
		for (int i = 0; rank == root && i < count; i++)
			wrong += in[i] != value(ranks - 1, i);
		MPI_Scan(out, in, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < count; i++)
			wrong += in[i] != sum_to(rank, i);
		free(out);
		free(in);
	}
	return wrong;
}

/* Each rank's part in its place. */
static long parts_differ(const int64_t *all, int count)
{
	long wrong = 0;

	for (int of = 0; of < ranks; of++)
		for (int i = 0; i < count; i++)
			wrong += all[of * count + i] != value(of, i);
	return wrong;
}

static long gathers(void)
{
	long wrong = 0;

	for (size_t c = 0; c < COUNTS; c++) {
		int count = counts[c];
		int64_t *out = mine(count), *all = memory(ranks * count * sizeof(*all));

		MPI_Allgather(out, count, MPI_INT64_T, all, count, MPI_INT64_T,
			      MPI_COMM_WORLD);
		wrong += parts_differ(all, count);
		for (int i = 0; i < count; i++)
			out[i] = 0;
		/* Rank 0 deals out what it has just got. */
		MPI_Scatter(all, count, MPI_INT64_T, out, count, MPI_INT64_T, 0,
			    MPI_COMM_WORLD);
		for (int i = 0; i < count; i++)
			wrong += out[i] != value(rank, i);
		for (int i = 0; i < ranks * count; i++)
			all[i] = 0;
		MPI_Gather(out, count, MPI_INT64_T, all, count, MPI_INT64_T, 0,
			   MPI_COMM_WORLD);
		if (rank == 0)
			wrong += parts_differ(all, count);
		free(out);
		free(all);
	}
	return wrong;
}

/* Rank r sends value(r, i + s) to rank s. */
static long everybody_to_everybody(void)
{
	long wrong = 0;

	for (size_t c = 0; c < COUNTS; c++) {
		int count = counts[c];
		int64_t *out = memory(ranks * count * sizeof(*out));
		int64_t *in = memory(ranks * count * sizeof(*in));

		for (int to = 0; to < ranks; to++)
			for (int i = 0; i < count; i++)
				out[to * count + i] = value(rank, i + to);
		MPI_Alltoall(out, count, MPI_INT64_T, in, count, MPI_INT64_T,
			     MPI_COMM_WORLD);
		for (int from = 0; from < ranks; from++)
			for (int i = 0; i < count; i++)
				wrong += in[from * count + i] != value(from, i + rank);
		free(out);
		free(in);
	}
	return wrong;
}

/* Odd and even ranks apart, each group at work while the other is. */
static long groups(void)
{
	int64_t sum, expected = 0, own = value(rank, 0);
	MPI_Comm half;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Allreduce(&own, &sum, 1, MPI_INT64_T, MPI_SUM, half);
	MPI_Comm_free(&half);
	for (int of = rank % 2; of < ranks; of += 2)
		expected += value(of, 0);
	return sum != expected;
}

/*
 * Nobody leaves a barrier before the last has come, who lets the others wait. Ranks do not
 * come to the next turn at one moment, so that a single wait may be shorter.
 */
static long barriers(void)
{
	const int turns = 20;
	const double late = 0.02;
	double waited = 0;

	for (int i = 0; i < turns; i++) {
		double came = MPI_Wtime(), shortest;

		while (rank == i % ranks && MPI_Wtime() - came < late)
			;
		MPI_Barrier(MPI_COMM_WORLD);
		came = MPI_Wtime() - came;
		MPI_Allreduce(&came, &shortest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
		waited += shortest;
	}
	return waited < turns * late / 4;
}

void check_collectives(void)
{
	check("barriers", barriers);
	check("broadcasts from every rank", broadcast);
	check("reduce, allreduce and scan", reductions);
	check("gather, allgather and scatter", gathers);
	check("alltoall", everybody_to_everybody);
	check("two communicators at once", groups);
}
