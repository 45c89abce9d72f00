#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs inside a build root: builds the parts that are in the copy of the tree
# and lays what comes out over an empty root.
#   parts.sh guest TREE OUTPUT KERNEL GUEST_ROOT RDMA_CORE_SOURCE KERNEL_ABI
#   parts.sh dom0 TREE OUTPUT KERNEL

set -eu

side=$1
tree=$2
out=$3
jobs=$(nproc)

# Debian's modules under and upon SoftIB and Soft-RoCE, and the latter.
BELOW="ib_core ib_uverbs ib_umad ib_cm iw_cm rdma_cm rdma_ucm ib_ipoib
	udp_tunnel ip6_udp_tunnel rdma_rxe"

build_module() {
	if [ -e "$tree/$1/Makefile" ] || [ -e "$tree/$1/Kbuild" ]; then
		nice make -j"$jobs" -C "/lib/modules/$kernel/build" \
			M="$tree/$1" modules
		for module in "$tree/$1"/*.ko; do
			install -m 644 "$module" "$updates/"
		done
	fi
}

# As Debian compiled them, but unpacked and without signature and type
# information: loading one then takes an emulated guest a tenth of the time.
unpack_modules() {
	for module in $BELOW; do
		find "$root/usr/lib/modules/$kernel/kernel" \
			-name "$module.ko.xz" -exec xz -dc {} + \
			>"$updates/$module.ko"
		[ -s "$updates/$module.ko" ]
	done
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

build_sdp() {
	if [ -e "$tree/libsdp/Makefile" ]; then
		mkdir -p /tmp/sdp
		nice make -j"$jobs" -C "$tree/libsdp" OUT=/tmp/sdp install \
			DESTDIR="$out"
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
		install -m 755 "$tree/tools/xl-vmri/vmri-bridge" "$tree/tools/xl-vmri/vmri-trace" \
			"$out/usr/sbin/"
	fi
}

case $side in
guest)
	kernel=$4
	root=$5
	rdma=$6
	kabi=$7
	updates=$out/usr/lib/modules/$kernel/updates
	mkdir -p "$updates"
	build_module linux/softib
	build_module tests/lab/modules
	unpack_modules
	strip --strip-debug --remove-section=.BTF "$updates"/*.ko
	build_provider
	build_sdp
	build_programs
	;;
dom0)
	kernel=$4
	updates=$out/usr/lib/modules/$kernel/updates
	mkdir -p "$updates"
	build_module linux/softib
	build_module linux/uplink
	strip --strip-debug "$updates"/*.ko
	build_tool
	;;
esac
