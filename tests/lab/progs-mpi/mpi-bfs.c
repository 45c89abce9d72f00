// SPDX-License-Identifier: GPL-2.0-only
/*
 * A breadth-first search after the Graph500 benchmark's example: a Kronecker graph
 * whose vertices are dealt out to the ranks, searched level by level with one
 * exchange between all ranks a level; and the same searched by rank 0 alone, which
 * then compares.
 *
 *   mpirun -n N mpi-bfs [SCALE [SEARCHES]]     2^SCALE vertices, 12 and 4 by default
 *
 * Prints "ok NAME" or "FAIL NAME: WHY" a search, and the edges that it went over a
 * second as "teps N". Ends with status 1 if a search was wrong.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EDGES_PER_VERTEX = 16 };

/* Graph500's odds, of 100: an edge goes to each quarter of the matrix with these. */
enum { ODDS_A = 57, ODDS_B = 19, ODDS_C = 19 };

struct edge {
	uint32_t from, to;
};

/* Neighbours of vertex v: neighbour[first[v]] up to neighbour[first[v + 1]]. */
struct graph {
	uint32_t vertices;
	uint32_t *first, *neighbour;
};

struct visit {
	uint32_t vertex, parent;
};

/* A parent of none, and a level not reached. */
#define NONE UINT32_MAX

static int rank, ranks;

static void *zeros(size_t count, size_t size)
{
	void *got = calloc(count ? count : 1, size);

	if (!got) {
		fprintf(stderr, "no memory\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return got;
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* The same for everybody, whoever asks: no rank needs to be told the graph. */
static struct edge edge_number(uint64_t number, int scale)
{
	struct edge edge = { 0, 0 };

	for (int bit = 0; bit < scale; bit++) {
		unsigned int dice = mix(number * 64 + bit) % 100;

		edge.from = edge.from << 1 | (dice >= ODDS_A + ODDS_B);
		edge.to = edge.to << 1 | ((dice >= ODDS_A && dice < ODDS_A + ODDS_B) ||
					  dice >= ODDS_A + ODDS_B + ODDS_C);
	}
	return edge;
}

static int owner(uint32_t vertex)
{
	return vertex % ranks;
}

/* All of the graph, or of it what belongs to this rank's vertices. */
static struct graph make_graph(int scale, int whole)
{
	struct graph graph = { .vertices = 1u << scale };
	uint64_t edges = (uint64_t)graph.vertices * EDGES_PER_VERTEX;
	uint32_t *fill, sum = 0;

	graph.first = zeros((size_t)graph.vertices + 1, sizeof(uint32_t));
	for (uint64_t i = 0; i < edges; i++) {
		struct edge edge = edge_number(i, scale);

		graph.first[edge.from + 1] += whole || owner(edge.from) == rank;
		graph.first[edge.to + 1] += whole || owner(edge.to) == rank;
	}
	for (uint32_t v = 0; v <= graph.vertices; v++)
		graph.first[v] = sum += graph.first[v];
	graph.neighbour = zeros(sum, sizeof(uint32_t));
	fill = zeros(graph.vertices, sizeof(uint32_t));
	memcpy(fill, graph.first, graph.vertices * sizeof(uint32_t));
	for (uint64_t i = 0; i < edges; i++) {
		struct edge edge = edge_number(i, scale);

		if (whole || owner(edge.from) == rank)
			graph.neighbour[fill[edge.from]++] = edge.to;
		if (whole || owner(edge.to) == rank)
			graph.neighbour[fill[edge.to]++] = edge.from;
	}
	free(fill);
	return graph;
}

static void search_alone(const struct graph *graph, uint32_t root, uint32_t *level)
{
	uint32_t *queue = zeros(graph->vertices, sizeof(uint32_t));
	uint32_t head = 0, tail = 0;

	memset(level, 0xff, graph->vertices * sizeof(uint32_t));
	level[root] = 0;
	queue[tail++] = root;
	while (head < tail) {
		uint32_t v = queue[head++];

		for (uint32_t i = graph->first[v]; i < graph->first[v + 1]; i++) {
			uint32_t next = graph->neighbour[i];

			if (level[next] != NONE)
				continue;
			level[next] = level[v] + 1;
			queue[tail++] = next;
		}
	}
	free(queue);
}

/*
 * Sends to every rank the visits to its vertices that this rank's frontier makes.
 * Returns those that came, whose number is in *count; the caller frees them.
 */
static struct visit *exchange(const struct graph *graph, const uint32_t *frontier,
			      uint32_t length, int *count)
{
	int *out = zeros(ranks, sizeof(int)), *out_at = zeros(ranks + 1, sizeof(int));
	int *in = zeros(ranks, sizeof(int)), *in_at = zeros(ranks + 1, sizeof(int));
	struct visit *sent, *came;

	for (uint32_t f = 0; f < length; f++)
		for (uint32_t i = graph->first[frontier[f]];
		     i < graph->first[frontier[f] + 1]; i++)
			out[owner(graph->neighbour[i])] += 2;
	MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++) {
		out_at[r + 1] = out_at[r] + out[r];
		in_at[r + 1] = in_at[r] + in[r];
		out[r] = 0;
	}
	sent = zeros(out_at[ranks] / 2, sizeof(*sent));
	came = zeros(in_at[ranks] / 2, sizeof(*came));
	for (uint32_t f = 0; f < length; f++)
		for (uint32_t i = graph->first[frontier[f]];
		     i < graph->first[frontier[f] + 1]; i++) {
			int to = owner(graph->neighbour[i]);

			sent[(out_at[to] + out[to]) / 2] =
				(struct visit){ graph->neighbour[i], frontier[f] };
			out[to] += 2;
		}
	MPI_Alltoallv(sent, out, out_at, MPI_UINT32_T, came, in, in_at, MPI_UINT32_T,
		      MPI_COMM_WORLD);
	*count = in_at[ranks] / 2;
	free(sent);
	free(out);
	free(out_at);
	free(in);
	free(in_at);
	return came;
}

/* Leaves the parents of this rank's vertices, and NONE for all others. */
static void search(const struct graph *graph, uint32_t root, uint32_t *parent)
{
	uint32_t *frontier = zeros(graph->vertices, sizeof(uint32_t));
	uint32_t length = 0;
	int busy = 1;

	memset(parent, 0xff, graph->vertices * sizeof(uint32_t));
	if (owner(root) == rank) {
		parent[root] = root;
		frontier[length++] = root;
	}
	while (busy) {
		int count, any;
		struct visit *came = exchange(graph, frontier, length, &count);

		length = 0;
		for (int i = 0; i < count; i++) {
			if (parent[came[i].vertex] != NONE)
				continue;
			parent[came[i].vertex] = came[i].parent;
			frontier[length++] = came[i].vertex;
		}
		free(came);
		any = length != 0;
		MPI_Allreduce(&any, &busy, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
	}
	free(frontier);
}

static int are_neighbours(const struct graph *graph, uint32_t one, uint32_t other)
{
	for (uint32_t i = graph->first[one]; i < graph->first[one + 1]; i++)
		if (graph->neighbour[i] == other)
			return 1;
	return 0;
}

/* Each vertex was reached if it can be, over an edge that is there, by a shortest way. */
static long compare(const struct graph *graph, uint32_t root, const uint32_t *level,
		    const uint32_t *parent)
{
	long wrong = 0;

	for (uint32_t v = 0; v < graph->vertices; v++) {
		uint32_t from = parent[v];

		if (v == root || level[v] == NONE)
			wrong += from != (v == root ? root : NONE);
		else
			wrong += from >= graph->vertices || level[from] + 1 != level[v] ||
				 !are_neighbours(graph, v, from);
	}
	return wrong;
}

/* Edges that a search went over: those of the vertices that it reached. */
static double edges_reached(const struct graph *graph, const uint32_t *level)
{
	double ends = 0;

	for (uint32_t v = 0; v < graph->vertices; v++)
		if (level[v] != NONE)
			ends += graph->first[v + 1] - graph->first[v];
	return ends / 2;
}

int main(int argc, char **argv)
{
	int scale = argc > 1 ? atoi(argv[1]) : 12, searches = argc > 2 ? atoi(argv[2]) : 4;
	double edges = 0, seconds = 0;
	struct graph graph, whole = { 0 };
	uint32_t *parent, *all, *level;
	int failed = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (scale < 1 || scale > 24 || searches < 1) {
		fprintf(stderr, "usage: mpi-bfs [SCALE (1 to 24) [SEARCHES]]\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	graph = make_graph(scale, 0);
	if (rank == 0)
		whole = make_graph(scale, 1);
	parent = zeros(graph.vertices, sizeof(uint32_t));
	all = zeros(graph.vertices, sizeof(uint32_t));
	level = zeros(graph.vertices, sizeof(uint32_t));
	for (int s = 0; s < searches; s++) {
		/* One that has neighbours. */
		uint32_t root = edge_number(mix(s) % graph.vertices, scale).from;
		double start;
		long wrong;

		MPI_Barrier(MPI_COMM_WORLD);
		start = MPI_Wtime();
		search(&graph, root, parent);
		seconds += MPI_Wtime() - start;
		/* NONE is the greatest number, and a vertex has one owner. */
		MPI_Reduce(parent, all, graph.vertices, MPI_UINT32_T, MPI_MIN, 0,
			   MPI_COMM_WORLD);
		if (rank)
			continue;
		search_alone(&whole, root, level);
		wrong = compare(&whole, root, level, all);
		edges += edges_reached(&whole, level);
		failed |= wrong != 0;
		if (wrong)
			printf("FAIL search %d from vertex %u: %ld vertices wrong\n", s,
			       root, wrong);
		else
			printf("ok search %d of %u vertices by %d ranks\n", s,
			       graph.vertices, ranks);
	}
	if (rank == 0)
		printf("teps %.0f\n", edges / seconds);
	MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	return failed;
}
