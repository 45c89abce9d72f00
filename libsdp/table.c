// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

#define CHUNK 1024
#define CHUNKS 1024

typedef _Atomic(struct sdp_handle *) slot_t;

static _Atomic(slot_t *) chunks[CHUNKS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sdp_handle *unused[SDP_KINDS];
static struct sdp_handle *made;

struct sdp_handle *sdp_handle_new(enum sdp_kind kind)
{
	const size_t size = sdp_classes[kind].size;
	struct sdp_handle *handle;

	pthread_mutex_lock(&lock);
	handle = unused[kind];
	if (handle) {
		unused[kind] = handle->next;
	} else {
		handle = calloc(1, size);
		if (handle) {
			handle->kind = kind;
			handle->next_made = made;
			made = handle;
		}
	}
	pthread_mutex_unlock(&lock);
	if (!handle)
		return NULL;
	memset(handle + 1, 0, size - sizeof(*handle));
	atomic_store(&handle->refs, 1);
	return handle;
}

void sdp_handle_put(struct sdp_handle *handle)
{
	if (atomic_fetch_sub(&handle->refs, 1) > 1)
		return;
	sdp_classes[handle->kind].release(handle);
	pthread_mutex_lock(&lock);
	handle->next = unused[handle->kind];
	unused[handle->kind] = handle;
	pthread_mutex_unlock(&lock);
}

static slot_t *slot_of(int fd)
{
	slot_t *chunk;

	if (fd < 0 || fd >= CHUNK * CHUNKS)
		return NULL;
	chunk = atomic_load_explicit(&chunks[fd / CHUNK], memory_order_acquire);
	return chunk ? &chunk[fd % CHUNK] : NULL;
}

/* A reference more, unless there is none any more. */
static int hold(struct sdp_handle *handle)
{
	unsigned int refs = atomic_load(&handle->refs);

	while (refs)
		if (atomic_compare_exchange_weak(&handle->refs, &refs, refs + 1))
			return 1;
	return 0;
}

struct sdp_handle *sdp_handle_get(int fd, enum sdp_kind kind)
{
	slot_t *slot = slot_of(fd);
	struct sdp_handle *handle;

	if (!slot)
		return NULL;
	for (;;) {
		handle = atomic_load(slot);
		if (!handle || handle->kind != kind)
			return NULL;
		if (!hold(handle))
			continue;
		if (atomic_load(slot) == handle)
			return handle;
		sdp_handle_put(handle);
	}
}

bool sdp_table_has(int fd)
{
	slot_t *slot = slot_of(fd);

	return slot && atomic_load(slot);
}

static slot_t *make_slot(int fd)
{
	slot_t *chunk, *none = NULL;

	if (fd < 0 || fd >= CHUNK * CHUNKS) {
		errno = EMFILE;
		return NULL;
	}
	if (!atomic_load(&chunks[fd / CHUNK])) {
		chunk = calloc(CHUNK, sizeof(*chunk));
		if (!chunk)
			return NULL;
		if (!atomic_compare_exchange_strong(&chunks[fd / CHUNK], &none, chunk))
			free(chunk);
	}
	return slot_of(fd);
}

int sdp_table_set(int fd, struct sdp_handle *handle)
{
	slot_t *slot = make_slot(fd);
	struct sdp_handle *old;

	if (!slot)
		return -1;
	old = atomic_exchange(slot, handle);
	if (old)
		sdp_handle_put(old);
	return 0;
}

struct sdp_handle *sdp_table_take(int fd)
{
	return sdp_table_has(fd) ? atomic_exchange(slot_of(fd), NULL) : NULL;
}

int sdp_table_next(int fd)
{
	for (; fd < CHUNK * CHUNKS; fd++) {
		if (sdp_table_has(fd))
			return fd;
		if (!slot_of(fd))
			fd |= CHUNK - 1;
	}
	return -1;
}

void sdp_table_each(void (*call)(struct sdp_handle *handle))
{
	struct sdp_handle *handle;

	for (handle = made; handle; handle = handle->next_made)
		if (atomic_load(&handle->refs))
			call(handle);
}

void sdp_table_lock(void)
{
	pthread_mutex_lock(&lock);
}

void sdp_table_unlock(void)
{
	pthread_mutex_unlock(&lock);
}
