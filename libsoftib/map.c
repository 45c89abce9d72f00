// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that the driver shares with the process and with VMRI.
 *
 * A ring that has moved can be reached through its new mapping alone, and a command
 * that has moved it cannot be undone.  So who moves one takes a place for the new
 * mapping first.
 */
#include <errno.h>
#include <sys/mman.h>

#include "softib.h"

void *softib_map(struct ibv_context *ctx, uint64_t offset, size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->cmd_fd,
		    offset);
}

int softib_place_take(struct softib_place *place, size_t size)
{
	place->size = size;
	place->addr = mmap(NULL, size, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return place->addr == MAP_FAILED ? errno : 0;
}

void softib_place_give_back(struct softib_place *place)
{
	munmap(place->addr, place->size);
}

/* A mapping of another size than was expected finds a place of its own. */
void *softib_map_there(struct ibv_context *ctx, uint64_t offset, size_t size,
		       struct softib_place *place)
{
	if (size != place->size) {
		softib_place_give_back(place);
		return softib_map(ctx, offset, size);
	}
	return mmap(place->addr, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, ctx->cmd_fd, offset);
}
