#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs inside a build root: builds the parts that are in the copy of the tree
# and lays what comes out over an empty root.
#   parts.sh guest TREE OUTPUT KERNEL RDMA_CORE_SOURCE KERNEL_ABI
#   parts.sh dom0 TREE OUTPUT

set -eu

side=$1
tree=$2
out=$3
jobs=$(nproc)

build_module() {
	if [ -e "$tree/$1/Makefile" ] || [ -e "$tree/$1/Kbuild" ]; then
		nice make -j"$jobs" -C "/lib/modules/$kernel/build" \
			M="$tree/$1" modules
		mkdir -p "$out/usr/lib/modules/$kernel/updates"
		for module in "$tree/$1"/*.ko; do
			install -m 644 "$module" \
				"$out/usr/lib/modules/$kernel/updates/"
			strip --strip-debug \
				"$out/usr/lib/modules/$kernel/updates/${module##*/}"
		done
	fi
}

build_provider() {
	if [ -e "$tree/libsoftib/Makefile" ]; then
		mkdir -p /tmp/provider
		nice make -j"$jobs" -C "$tree/libsoftib" RDMA_CORE="$rdma" \
			KABI="$kabi" OUT=/tmp/provider
		install -D -m 755 /tmp/provider/libsoftib-rdmav34.so \
			"$out/usr/lib/$(gcc -print-multiarch)/libibverbs/libsoftib-rdmav34.so"
		install -D -m 644 /tmp/provider/softib.driver \
			"$out/etc/libibverbs.d/softib.driver"
	fi
}

build_programs() {
	if [ -e "$tree/tests/lab/progs/Makefile" ]; then
		mkdir -p /tmp/progs
		nice make -j"$jobs" -C "$tree/tests/lab/progs" KABI="$kabi" \
			OUT=/tmp/progs install DESTDIR="$out"
	fi
}

build_tool() {
	if [ -e "$tree/tools/xl-vmri/Makefile" ]; then
		mkdir -p /tmp/tool
		nice make -j"$jobs" -C "$tree/tools/xl-vmri" OUT=/tmp/tool
		install -D -m 755 /tmp/tool/xl-vmri "$out/usr/sbin/xl-vmri"
	fi
}

case $side in
guest)
	kernel=$4
	rdma=$5
	kabi=$6
	build_module linux/softib
	build_module tests/lab/modules
	build_provider
	build_programs
	;;
dom0)
	build_tool
	;;
esac
