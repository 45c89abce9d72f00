# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# An uplink on one host, for suites, included after suite.sh, perf.sh and device.sh:
# Soft-RoCE on dom0's bridge is the adapter, and each guest's device is on a fabric of its
# own, in which the other's is said to be on another host, which is this one. WORDS says
# what else devices are attached with.

declare -A FABRIC=([d1]=here [d2]=there) WORDS=()
MODULE=/sys/module/softib_uplink

nic() {
	on dom0 "rdma link show | awk '/ netdev xenbr0/ { sub(\"/.*\", \"\", \$2); print \$2 }'"
}

nic_is_active() {
	on dom0 "rdma link show | grep -q 'state ACTIVE.* netdev xenbr0'"
}

start_nic() {
	on dom0 'modprobe rdma_rxe && rdma link add rxe0 type rxe netdev xenbr0' &&
		wait_until 30 nic_is_active
}

# load_uplink [PARAMETER]...: the command that does.
load_uplink() {
	echo "insmod /usr/lib/modules/\$(uname -r)/updates/softib_uplink.ko device=$(nic) $*"
}

# start_uplink [PARAMETER]...
start_uplink() {
	on dom0 "$(load_uplink "$@") &&
		cat $MODULE/parameters/uplink && ! grep -qx 0 $MODULE/parameters/uplink"
}

stop_uplink() {
	on dom0 "[ ! -d $MODULE ] || rmmod softib_uplink"
}

attach() {
	local guest
	for guest in "$@"; do
		on dom0 "xl-vmri attach $guest id=1 fabric=${FABRIC[$guest]} ${WORDS[$guest]-} \
			uplink=\$(cat $MODULE/parameters/uplink)" || return
	done
	for guest in "$@"; do
		wait_until 60 is_active "$guest" || return
	done
}

detach() {
	local guest
	for guest in "$@"; do
		on dom0 "xl-vmri detach $guest 1" || return
	done
}

clean_up() {
	on dom0 'for guest in d1 d2; do xl-vmri detach $guest 1 --force; done
		for fabric in here there; do xl-vmri fabric delete $fabric; done' >/dev/null 2>&1
	stop_uplink
	on dom0 "rdma link delete $(nic); true" >/dev/null 2>&1
}

# Packets that the adapter has sent, to itself.
packets() {
	on dom0 "cat /sys/class/infiniband/$(nic)/ports/1/hw_counters/sent_pkts"
}

# A program between the guests, whose messages the adapter has carried.
carried() {
	local before
	before=$(packets)
	plan "$@"
	run_plan
	went_well "$1" && [ "$(packets)" -ge "$((before + 40))" ]
}
