# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Soft-RoCE in the guests, included after suite.sh and perf.sh.

start_rxe() {
	on "$1" "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0 &&
		udevadm settle -t 60" &&
		wait_until 30 rxe_is_active "$1"
}

rxe_is_active() {
	on "$1" "rdma link show | grep -q 'state ACTIVE.* netdev eth0 '"
}

stop_rxe() {
	on "$1" "rdma link delete $(device_of "$1" rxe)"
}

# The index of the GID that stands for the IPv4 address.
gid_index() {
	on "$1" "grep -l '^0000:0000:0000:0000:0000:ffff:' \
		/sys/class/infiniband/$2/ports/1/gids/* | head -n 1" | sed 's|.*/||'
}
