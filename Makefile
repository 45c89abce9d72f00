# SPDX-License-Identifier: GPL-2.0-only
#
# The front door. The work is done by scripts/ and tests/lab; see "make help".

include Config.mk

LAB := tests/lab
FUZZ_SECONDS ?= 60

help:
	@echo 'SoftIB $(shell git describe --always 2>/dev/null): a virtual InfiniBand device for Xen $(XEN_SERIES)'
	@echo
	@echo '  make demo    boot Xen with two guests and run RDMA programs between them'
	@echo '  make demo-hosts   two such hosts: RDMA between their guests, for two tenants'
	@echo '  make check   unit tests: no root, no Xen source, less than a minute'
	@echo '  make fuzz    fuzz the hypervisor part, FUZZ_SECONDS=60 for each target; needs clang'
	@echo '  make test    check, fuzz, and all suites of the lab'
	@echo '  make test-long   the same, all in full: hours'
	@echo '  make lab     start the lab and leave it up; tests/lab/lab drives it'
	@echo '  make bench   what a message costs, and the speed of SoftIB beside TCP and Soft-RoCE'
	@echo '  make lint    licences named, shell scripts sound, clang-tidy and sparse find nothing: minutes'
	@echo '  make coverage  tell which lines of xen/vmri the tests run'
	@echo '  make clean   remove what was built in this folder'
	@echo
	@echo 'All but check, coverage, lint and clean need root on Debian 12 or 13. What they make is kept'
	@echo 'in /var/cache/softib; SOFTIB_CACHE=DIR puts it elsewhere.'

demo:
	@SUITE_QUICK=1 SUITE_DEMO=1 $(LAB)/run pingpong verify perftest compare

demo-hosts:
	@SUITE_QUICK=1 SUITE_DEMO=1 $(LAB)/run hosts

check:
	@scripts/check

fuzz:
	@scripts/fuzz "$(FUZZ_SECONDS)"

# An hour for each target.
fuzz-soak:
	@scripts/fuzz 3600

test:
	@scripts/test

test-long:
	@FULL=1 scripts/test

lab:
	@$(LAB)/lab up

bench:
	@scripts/bench

lint:
	@scripts/lint --tidy

coverage:
	@$(MAKE) -s --no-print-directory -C tests/unit coverage

clean:
	@rm -rf build

.PHONY: help demo demo-hosts check coverage fuzz fuzz-soak test test-long lab bench lint clean
