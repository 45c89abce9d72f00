/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registered memory of which every byte is accounted for.
 *
 * An arena keeps beside its memory what that memory should hold.  A test lays
 * out where a message lies, fills the window around it with noise, lets the
 * device work, and says what it must have done; then all of the window is
 * compared, the bytes between and around the pieces included.
 */
#ifndef ARENA_H
#define ARENA_H

#include "rig.h"

#define ARENA_GUARD	4096		/* bytes watched before and after */
#define ARENA_PIECES	16		/* the most that a layout has */

struct arena {
	uint8_t *mem;			/* page aligned */
	uint8_t *want;			/* what mem should hold */
	size_t size;
	size_t window;			/* bytes from 0 that are watched now */
	struct ibv_mr *mr[2];		/* both cover all of it */
};

/* A message in memory: pieces with gaps between, all within an arena. */
struct layout {
	int nr;
	size_t end;			/* of the last piece */
	struct {
		size_t offset;
		size_t length;		/* may be 0 */
	} piece[ARENA_PIECES];
};

/* One that holds messages of `max` bytes in any layout. */
void arena_open(struct arena *arena, struct rig *rig, size_t max);
void arena_close(struct arena *arena);

/* Cut `length` bytes into `nr` pieces at places that depend on the seed. */
void layout_make(struct layout *layout, size_t length, int nr, uint64_t seed);
/* The same places as SGEs, which alternate between the arena's keys. */
void layout_sges(const struct layout *layout, const struct arena *arena,
		 struct ibv_sge *sges);

/* Fill memory around the layout with noise, and remember it. */
void arena_fill(struct arena *arena, const struct layout *layout,
		uint64_t seed);
/* Say what the first `length` bytes of the layout should hold. */
void arena_expect(struct arena *arena, const struct layout *layout,
		  const void *data, size_t length);
/* Make memory as it should be. */
void arena_store(struct arena *arena);
/* Take what the first `length` bytes of the layout do hold, and expect that. */
void arena_take(struct arena *arena, const struct layout *layout, void *data,
		size_t length);
/* Compare.  -1, or the offset of the first byte that is wrong. */
ptrdiff_t arena_compare(const struct arena *arena);

#endif /* ARENA_H */
