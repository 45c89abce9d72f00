// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "libc.h"

const struct sdp_libc *sdp_libc(void)
{
	static struct sdp_libc calls;
	static atomic_bool known;

	/* Two threads at a time find the same. */
	if (!atomic_load_explicit(&known, memory_order_acquire)) {
#define CALL(type, name, args) calls.name = (type (*) args)dlsym(RTLD_NEXT, #name);
		SDP_LIBC_CALLS(CALL)
#undef CALL
		atomic_store_explicit(&known, true, memory_order_release);
	}
	return &calls;
}
