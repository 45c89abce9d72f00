// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "log.h"
#include "rdma.h"

struct sdp_rdma sdp_rdma;
__thread int sdp_inside;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum { UNKNOWN, LOADED, MISSING, LOST } state;

static void load(void)
{
	void *library = dlopen("librdmacm.so.1", RTLD_NOW);

	state = MISSING;
	if (!library) {
		sdp_log("no RDMA: %s", dlerror());
		return;
	}
#define CALL(type, name, args)						\
	sdp_rdma.name = (type (*) args)dlsym(library, "r" #name);	\
	if (!sdp_rdma.name)						\
		return;
	SDP_RDMA_CALLS(CALL)
#undef CALL
	state = LOADED;
}

static bool available(void)
{
	bool loaded;

	pthread_mutex_lock(&lock);
	sdp_inside++;
	if (state == UNKNOWN)
		load();
	sdp_inside--;
	loaded = state == LOADED;
	pthread_mutex_unlock(&lock);
	return loaded;
}

int sdp_rdma_socket(int family)
{
	int rs;

	if (!available()) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	rs = RDMA(socket, family, SOCK_STREAM, 0);
	if (rs >= 0 && RDMA(fcntl, rs, F_SETFL, O_NONBLOCK)) {
		RDMA(close, rs);
		return -1;
	}
	return rs;
}

void sdp_rdma_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	if (state == LOADED)
		state = LOST;
}
