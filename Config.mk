# SPDX-License-Identifier: GPL-2.0-only
#
# Every version that SoftIB pins. Lines are NAME=value without blanks, so that
# make includes this file and the shell scripts of the lab source it.

# The hypervisor: Debian 12's source package and the sum of its tarball.
XEN_SERIES=4.17
XEN_VERSION=4.17.5+72-g01140da4e8-1
XEN_SHA256=53922f4d0a02c577f2ea9d63f65989cd88715779eebeed879ca1d314103ee06e

# The verbs library that the provider is built against (Debian 13's).
RDMA_CORE_VERSION=56.1
RDMA_CORE_SHA256=63ce7f2baa7242c2dbc76375dac957c420187dd27f8c5e148efc07971ee522a8

# dom0 runs Xen's own tools from Debian 12; the guests are today's stable.
DOM0_SUITE=bookworm
GUEST_SUITE=trixie

# The oldest Linux that dom0 and guests may run: earlier ones lack fixes to
# Soft-RoCE without which the comparison measurements go wrong.
KERNEL_MIN=6.12.115

# QEMU before this faults on a PV kernel's iret.
QEMU_MIN=9.1
