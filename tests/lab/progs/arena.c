// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arena.h"

#define GAP_MAX 97

void arena_open(struct arena *arena, struct rig *rig, size_t max)
{
	int i;

	/* A layout begins anywhere in the page behind the guard. */
	arena->size = 3 * ARENA_GUARD + max + ARENA_PIECES * GAP_MAX;
	arena->window = 0;
	arena->mem = mmap(NULL, arena->size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	arena->want = malloc(arena->size);
	if (arena->mem == MAP_FAILED || !arena->want)
		die("no memory for an arena of %zu bytes", arena->size);
	for (i = 0; i < 2; i++) {
		arena->mr[i] = ibv_reg_mr(rig->pd, arena->mem, arena->size,
					  IBV_ACCESS_LOCAL_WRITE |
					  IBV_ACCESS_REMOTE_WRITE |
					  IBV_ACCESS_REMOTE_READ);
		if (!arena->mr[i])
			die("ibv_reg_mr: %s", strerror(errno));
	}
}

void arena_close(struct arena *arena)
{
	int i, ret;

	for (i = 0; i < 2; i++) {
		ret = ibv_dereg_mr(arena->mr[i]);
		if (ret)
			die("ibv_dereg_mr: %s", strerror(ret));
	}
	munmap(arena->mem, arena->size);
	free(arena->want);
}

static int by_size(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

void layout_make(struct layout *layout, size_t length, int nr, uint64_t seed)
{
	size_t cut[ARENA_PIECES + 1] = { 0 };
	size_t offset;
	int i;

	for (i = 1; i < nr; i++)
		cut[i] = next_random(&seed) % (length + 1);
	cut[nr] = length;
	qsort(cut + 1, nr - 1, sizeof(*cut), by_size);

	layout->nr = nr;
	offset = ARENA_GUARD + next_random(&seed) % ARENA_GUARD;
	for (i = 0; i < nr; i++) {
		layout->piece[i].offset = offset;
		layout->piece[i].length = cut[i + 1] - cut[i];
		offset += layout->piece[i].length;
		layout->end = offset;
		offset += 1 + next_random(&seed) % GAP_MAX;
	}
}

void layout_sges(const struct layout *layout, const struct arena *arena,
		 struct ibv_sge *sges)
{
	int i;

	for (i = 0; i < layout->nr; i++)
		sges[i] = (struct ibv_sge) {
			.addr = (uintptr_t)arena->mem +
				layout->piece[i].offset,
			.length = layout->piece[i].length,
			.lkey = arena->mr[i % 2]->lkey,
		};
}

void arena_fill(struct arena *arena, const struct layout *layout,
		uint64_t seed)
{
	arena->window = layout->end + ARENA_GUARD;
	if (arena->window > arena->size)
		arena->window = arena->size;
	pattern(arena->want, arena->window, seed);
	arena_store(arena);
}

void arena_store(struct arena *arena)
{
	memcpy(arena->mem, arena->want, arena->window);
}

/* Walk the first `length` bytes of a layout, piece by piece. */
static size_t part(const struct layout *layout, int i, size_t done,
		   size_t length)
{
	size_t left = length - done;

	return layout->piece[i].length < left ? layout->piece[i].length : left;
}

void arena_expect(struct arena *arena, const struct layout *layout,
		  const void *data, size_t length)
{
	size_t done = 0, n;
	int i;

	for (i = 0; i < layout->nr; i++, done += n) {
		n = part(layout, i, done, length);
		memcpy(arena->want + layout->piece[i].offset,
		       (const uint8_t *)data + done, n);
	}
}

void arena_take(struct arena *arena, const struct layout *layout, void *data,
		size_t length)
{
	size_t done = 0, n;
	int i;

	for (i = 0; i < layout->nr; i++, done += n) {
		n = part(layout, i, done, length);
		memcpy((uint8_t *)data + done,
		       arena->mem + layout->piece[i].offset, n);
	}
	arena_expect(arena, layout, data, length);
}

ptrdiff_t arena_compare(const struct arena *arena)
{
	size_t i;

	if (!memcmp(arena->mem, arena->want, arena->window))
		return -1;
	for (i = 0; arena->mem[i] == arena->want[i]; i++)
		;
	return i;
}
