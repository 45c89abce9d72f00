// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "../../libsdp/table.h"
#include "test.h"

struct thing {
	struct sdp_handle handle;
	int mark;
};

static atomic_int released;

static void release(struct sdp_handle *handle)
{
	CHECK(((struct thing *)handle)->mark >= 0);
	((struct thing *)handle)->mark = -1;
	atomic_fetch_add(&released, 1);
}

const struct sdp_class sdp_classes[SDP_KINDS] = {
	[SDP_SOCKET] = { sizeof(struct thing), release },
	[SDP_EPOLL] = { sizeof(struct thing), release },
};

TEST(table_set_get_take)
{
	struct sdp_handle *handle = sdp_handle_new(SDP_SOCKET);

	CHECK(!sdp_handle_get(5, SDP_SOCKET));
	CHECK(!sdp_table_set(5, handle));
	CHECK(sdp_table_has(5));
	CHECK(!sdp_table_has(6));
	CHECK(sdp_handle_get(5, SDP_SOCKET) == handle);
	CHECK(!sdp_handle_get(5, SDP_EPOLL));
	sdp_handle_put(handle);
	CHECK(sdp_table_take(5) == handle);
	CHECK(!sdp_table_take(5));
	CHECK_EQ(released, 0);
	sdp_handle_put(handle);
	CHECK_EQ(released, 1);
}

/* A call under way outlives the descriptor. */
TEST(table_close_during_call)
{
	struct sdp_handle *handle = sdp_handle_new(SDP_SOCKET);

	CHECK(!sdp_table_set(5, handle));
	CHECK(sdp_handle_get(5, SDP_SOCKET));
	sdp_handle_put(sdp_table_take(5));
	CHECK_EQ(released, 0);
	CHECK(!sdp_handle_get(5, SDP_SOCKET));
	sdp_handle_put(handle);
	CHECK_EQ(released, 1);
}

TEST(table_two_descriptors)
{
	struct sdp_handle *handle = sdp_handle_new(SDP_SOCKET);

	CHECK(!sdp_table_set(5, handle));
	CHECK(!sdp_table_set(2000, sdp_handle_get(5, SDP_SOCKET)));
	sdp_handle_put(sdp_table_take(5));
	CHECK_EQ(released, 0);
	CHECK_EQ(sdp_table_next(0), 2000);
	CHECK_EQ(sdp_table_next(2001), -1);
	/* What takes its number lets it go. */
	CHECK(!sdp_table_set(2000, sdp_handle_new(SDP_EPOLL)));
	CHECK_EQ(released, 1);
}

TEST(table_no_such_descriptor)
{
	struct sdp_handle *handle = sdp_handle_new(SDP_SOCKET);

	CHECK(sdp_table_set(-1, handle) == -1 && errno == EMFILE);
	CHECK(sdp_table_set(1 << 20, handle) == -1 && errno == EMFILE);
	CHECK(!sdp_table_has(-1));
	CHECK(!sdp_table_take(1 << 30));
	CHECK_EQ(released, 0);
}

TEST(table_memory_is_clean)
{
	struct thing *thing = (struct thing *)sdp_handle_new(SDP_SOCKET);

	thing->mark = 7;
	sdp_handle_put(&thing->handle);
	CHECK((struct thing *)sdp_handle_new(SDP_SOCKET) == thing);
	CHECK_EQ(thing->mark, 0);
}

#define TURNS 20000

static atomic_bool over;

static void *look(void *arg)
{
	struct sdp_handle *handle;

	(void)arg;
	while (!atomic_load(&over)) {
		handle = sdp_handle_get(5, SDP_SOCKET);
		if (!handle)
			continue;
		/* It is nobody else's, and not let go. */
		CHECK_EQ(((struct thing *)handle)->mark, 0);
		sdp_handle_put(handle);
	}
	return NULL;
}

TEST(table_threads)
{
	pthread_t threads[3];
	int i;

	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, look, NULL));
	for (i = 0; i < TURNS; i++) {
		CHECK(!sdp_table_set(5, sdp_handle_new(SDP_SOCKET)));
		sdp_handle_put(sdp_table_take(5));
	}
	atomic_store(&over, true);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(released, TURNS);
}
