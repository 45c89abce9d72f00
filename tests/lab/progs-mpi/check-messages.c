// SPDX-License-Identifier: GPL-2.0-only
/* mpi-check: messages between two ranks, in every protocol that a library has for them. */
#include "mpi-check.h"

#include <stdlib.h>

/* From nothing to beyond what any library sends without asking first. */
static const int sizes[] = { 0, 1, 8, 1000, 4096, 8191, 65536, 300000, 1 << 20 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define LARGEST (1 << 20)
#define MANY 32

static int after(int of)
{
	return (of + 1) % ranks;
}

static int before(int of)
{
	return (of + ranks - 1) % ranks;
}

/* Each rank sends to the next one while it receives from the one before. */
static long ring(void)
{
	unsigned char *out = memory(LARGEST), *in = memory(LARGEST);
	long wrong = 0;

	for (size_t i = 0; i < SIZES; i++) {
		MPI_Status status;
		int got;

		fill(out, sizes[i], rank + 1000 * i);
		MPI_Sendrecv(out, sizes[i], MPI_BYTE, after(rank), i,
			     in, LARGEST, MPI_BYTE, before(rank), i,
			     MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &got);
		wrong += got != sizes[i] || differ(in, sizes[i], before(rank) + 1000 * i);
	}
	free(out);
	free(in);
	return wrong;
}

/* Many requests at once, received in the reverse of the order they are sent in. */
static long crossed(void)
{
	enum { BYTES = 3000 };
	unsigned char *out = memory(MANY * BYTES), *in = memory(MANY * BYTES);
	MPI_Request requests[2 * MANY];
	long wrong = 0;

	for (int i = 0; i < MANY; i++) {
		int tag = MANY - 1 - i;

		MPI_Irecv(in + tag * BYTES, BYTES, MPI_BYTE, before(rank), tag,
			  MPI_COMM_WORLD, &requests[i]);
	}
	for (int i = 0; i < MANY; i++) {
		fill(out + i * BYTES, BYTES, rank * MANY + i);
		MPI_Isend(out + i * BYTES, BYTES, MPI_BYTE, after(rank), i,
			  MPI_COMM_WORLD, &requests[MANY + i]);
	}
	MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++)
		wrong += differ(in + i * BYTES, BYTES, before(rank) * MANY + i) != 0;
	free(out);
	free(in);
	return wrong;
}

/* All send to rank 0, which takes what comes and learns who sent how much. */
static long anybody(void)
{
	unsigned char *in = memory(LARGEST);
	long wrong = 0;

	for (int i = 0; i < ranks - 1; i++) {
		MPI_Status status;
		int bytes;

		if (rank) {
			bytes = 10000 * rank;
			fill(in, bytes, rank);
			MPI_Ssend(in, bytes, MPI_BYTE, 0, rank, MPI_COMM_WORLD);
			break;
		}
		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_BYTE, &bytes);
		MPI_Recv(in, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		wrong += status.MPI_TAG != status.MPI_SOURCE ||
			 bytes != 10000 * status.MPI_SOURCE ||
			 differ(in, bytes, status.MPI_SOURCE);
	}
	free(in);
	return wrong;
}

/* Every second integer of a matrix's rows: data with holes on both sides. */
static long holes(void)
{
	enum { ROWS = 100, COLUMNS = 64 };
	int *out = memory(sizeof(int) * ROWS * COLUMNS);
	int *in = memory(sizeof(int) * ROWS * COLUMNS);
	MPI_Datatype every_second;
	long wrong = 0;

	for (int i = 0; i < ROWS * COLUMNS; i++) {
		out[i] = rank * 100000 + i;
		in[i] = -1;
	}
	MPI_Type_vector(ROWS * COLUMNS / 2, 1, 2, MPI_INT, &every_second);
	MPI_Type_commit(&every_second);
	MPI_Sendrecv(out, 1, every_second, after(rank), 1, in, 1, every_second,
		     before(rank), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Type_free(&every_second);
	for (int i = 0; i < ROWS * COLUMNS; i++)
		wrong += in[i] != (i % 2 ? -1 : before(rank) * 100000 + i);
	free(out);
	free(in);
	return wrong;
}

void check_messages(void)
{
	check("messages of 0 bytes to 1 MiB round the ring", ring);
	check("32 requests at once, crossed", crossed);
	check("synchronous messages from anybody, probed", anybody);
	check("data with holes", holes);
}
