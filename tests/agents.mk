# SPDX-License-Identifier: GPL-2.0-only
#
# The management agents of the guests' driver compiled in user space, in a kernel of a
# few headers (tests/unit/kernel): what the unit tests and fuzzing share.  Include it
# with `top`, `unit` and OUT set; the sources are found by vpath.

agent_sources := sarec.c sapath.c samcast.c sanode.c saserv.c sainform.c notice.c \
	portinfo.c mad.c pma.c switch.c switchsma.c linksma.c agent.c

# Headers that they include, which are all shim.h.
agent_headers := $(addprefix $(OUT)/kernel/,linux/kernel.h linux/ktime.h \
	linux/minmax.h linux/slab.h linux/spinlock.h linux/string.h linux/types.h \
	linux/unaligned.h rdma/ib_mad.h rdma/ib_pma.h rdma/ib_sa.h rdma/ib_smi.h)

$(OUT)/kernel/%.h: $(top)/tests/agents.mk
	@mkdir -p $(@D)
	@echo '#include "shim.h"' >$@

# What the kernel does not warn of either.
agent_flags := -std=gnu2x -g1 -Wall -Wextra -Werror -MMD -MP -pthread \
	-Wno-unused-parameter -Wno-sign-compare -Wno-address-of-packed-member \
	-I$(unit)/kernel -I$(OUT)/kernel -I$(top)/linux/softib \
	-I$(top)/include -include $(unit)/kernel/device.h
