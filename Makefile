# SPDX-License-Identifier: GPL-2.0-only
#
# The front door. The work is done by tests/lab and tests/unit; see "make help".

include Config.mk

LAB := tests/lab

help:
	@echo 'SoftIB $(shell git describe --always 2>/dev/null): a virtual InfiniBand device for Xen $(XEN_SERIES)'
	@echo
	@echo '  make demo    boot Xen with two guests and run RDMA programs between them'
	@echo '  make check   unit tests: no root, no Xen source, less than a minute'
	@echo '  make test    check, and all suites of the lab'
	@echo '  make lab     start the lab and leave it up; tests/lab/lab drives it'
	@echo '  make bench   the speed of SoftIB beside TCP and Soft-RoCE, same boot'
	@echo '  make clean   remove what was built in this folder'
	@echo
	@echo 'All but check and clean need root on Debian 12 or 13. What they make is kept'
	@echo 'in /var/cache/softib; SOFTIB_CACHE=DIR puts it elsewhere.'

demo:
	@$(LAB)/demo

check:
	@$(MAKE) --no-print-directory -C tests/unit check

test:
	@$(LAB)/all-tests

lab:
	@$(LAB)/lab up

bench:
	@$(LAB)/demo --bench

clean:
	@if [ -e tests/unit/Makefile ]; then $(MAKE) --no-print-directory -C tests/unit clean; fi
	@find . -name __pycache__ -prune -exec rm -rf {} +

.PHONY: help demo check test lab bench clean
