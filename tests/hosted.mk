# SPDX-License-Identifier: GPL-2.0-only
#
# What tests/unit, tests/model and tests/fuzz have in common: the hypervisor's service
# compiled in user space, against a fake machine, once for each kind of run:
#
#   plain   fast
#   asan    address and undefined behaviour sanitizers
#   tsan    thread sanitizer
#   gcov    counts the lines that run
#
# The programs of a kind are made of the same objects, in $(OUT)/KIND, so not by
# two makes at once.  Include it with `top` set.

OUT ?= $(top)/build/hosted
unit := $(top)/tests/unit
model := $(top)/tests/model

# Everything but what only Xen can compile.
xen_only := env_xen.c hooks.c
vmri := $(filter-out $(xen_only),$(notdir $(wildcard $(top)/xen/vmri/*.c)))
machine := $(notdir $(wildcard $(unit)/env_*.c)) world.c guest.c failed.c
tests := $(notdir $(wildcard $(unit)/test_*.c))
include $(top)/tests/agents.mk
model_sources := $(vmri) $(machine) $(notdir $(wildcard $(model)/*.c))
unit_base := $(vmri) $(machine) harness.c guest_qp.c guest_srq.c

# Where no thread is made there is nothing for TSan to see.
threaded := $(notdir $(shell grep -l '^THREAD_TEST' $(tests:%=$(unit)/%)))
asan_tests := $(agent_sources:%=agents/%) $(tests)
gcov_tests := $(asan_tests)
tsan_tests := $(threaded)

# Build on all CPUs, unless told how.
ifeq ($(filter -j% --jobserver%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif

# Xen's own warnings are among them.
CFLAGS := -std=gnu99 -g1 -Wall -Wextra -Wshadow -Werror -MMD -MP -pthread \
	-Wstrict-prototypes -Wdeclaration-after-statement -Wvla \
	-Wredundant-decls -Wnested-externs \
	-I$(unit) -I$(model) -I$(top)/xen/vmri -I$(top)/include

plain_flags := -O1
asan_flags := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
# It does not understand fences, which order atomics only here.
tsan_flags := -O1 -fsanitize=thread -Wno-tsan
gcov_flags := -O0 --coverage -DCOVERAGE

# Leaks are counted test by test; tests end without running exit handlers.
export ASAN_OPTIONS := detect_leaks=0:handle_abort=1:abort_on_error=0
export UBSAN_OPTIONS := print_stacktrace=1
export TSAN_OPTIONS := halt_on_error=1

vpath %.c $(top)/xen/vmri $(unit) $(model) $(top)/linux/softib $(unit)/kernel

define kind
$(OUT)/$(1)/agents/%.o: %.c $(top)/tests/agents.mk $(agent_headers)
	@mkdir -p $$(@D)
	$$(CC) $$(agent_flags) $$($(1)_flags) -c $$< -o $$@

$(OUT)/$(1)/%.o: %.c $(top)/tests/hosted.mk
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $$($(1)_flags) $$(own) -c $$< -o $$@

$(OUT)/$(1)/unit: $(patsubst %.c,$(OUT)/$(1)/%.o,$(unit_base) $($(1)_tests))
	$$(CC) $$(CFLAGS) $$($(1)_flags) $$^ -o $$@

$(OUT)/$(1)/model: $(patsubst %.c,$(OUT)/$(1)/%.o,$(model_sources))
	$$(CC) $$(CFLAGS) $$($(1)_flags) $$^ -o $$@

-include $(wildcard $(OUT)/$(1)/*.d $(OUT)/$(1)/agents/*.d)
endef
$(foreach v,plain asan tsan gcov,$(eval $(call kind,$(v))))

# Fuzzing has the same objects, with an eye on what they read of guests. Its macro
# shadows itself.
race := -include $(top)/tests/fuzz/race.h
$(vmri:%.c=$(OUT)/asan/%.o): own := $(race) -Wno-shadow

# What tests is not what is tested, and takes longer to optimise than to run.
tests_objects := $(tests:%.c=%.o) $(patsubst $(model)/%.c,%.o,$(wildcard $(model)/*.c))
$(addprefix $(OUT)/asan/,$(tests_objects)): own := -O0 -fno-sanitize=undefined
$(addprefix $(OUT)/tsan/,$(tests_objects)): own := -O0
$(addprefix $(OUT)/asan/,$(machine:%.c=%.o) harness.o guest_qp.o guest_srq.o): \
	own := -fno-sanitize=undefined
