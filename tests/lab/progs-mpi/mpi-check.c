// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks an MPI library on whatever network it runs: messages between ranks,
 * collective operations, one-sided access, each with every byte compared.
 *
 *   mpirun -n N mpi-check
 *
 * Ends with status 1 if a check failed.
 */
#include "mpi-check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rank, ranks;

static int failed;

void check(const char *name, long (*run)(void))
{
	long mine = run(), all;

	MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (all)
		failed = 1;
	if (rank)
		return;
	if (all)
		printf("FAIL %s: %ld errors\n", name, all);
	else
		printf("ok %s\n", name);
	fflush(stdout);
}

void *memory(size_t bytes)
{
	void *got = malloc(bytes + 1);

	if (!got) {
		fprintf(stderr, "no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	memset(got, 0xa5, bytes + 1);
	return got;
}

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 56;
}

void fill(void *buffer, size_t bytes, uint64_t seed)
{
	unsigned char *at = buffer;

	while (bytes--)
		*at++ = next(&seed);
}

long differ(const void *buffer, size_t bytes, uint64_t seed)
{
	const unsigned char *at = buffer;
	long wrong = 0;

	while (bytes--)
		wrong += *at++ != next(&seed);
	return wrong;
}

/* Where each rank runs, so that a suite sees that messages had to cross. */
static void show_hosts(void)
{
	char name[MPI_MAX_PROCESSOR_NAME] = "";
	int length;

	MPI_Get_processor_name(name, &length);
	if (rank == 0)
		printf("# rank 0 in %s\n", name);
	for (int from = 1; from < ranks; from++) {
		if (rank == from)
			MPI_Send(name, sizeof(name), MPI_CHAR, 0, 0, MPI_COMM_WORLD);
		if (rank == 0) {
			MPI_Recv(name, sizeof(name), MPI_CHAR, from, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			printf("# rank %d in %s\n", from, name);
		}
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	show_hosts();
	check_messages();
	check_collectives();
	check_windows();
	MPI_Finalize();
	return failed;
}
