# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For suites with devices of their own beside the lab's, included after suite.sh: number 1
# of a guest.

# device HOST: its name there.
device() {
	on "$1" 'ls /sys/bus/xen/devices/vmri-1/infiniband'
}

is_active() {
	on "$1" "ibv_devinfo -d \$(ls /sys/bus/xen/devices/vmri-1/infiniband)" |
		grep -q PORT_ACTIVE
}

# gid_index HOST ADDRESS: of that IPv4 address; fails when it has none.
gid_index() {
	on "$1" "cd /sys/class/infiniband/\$(ls /sys/bus/xen/devices/vmri-1/infiniband)/ports/1/gids
		wanted=\$(printf 0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x ${2//./ })
		for i in *; do [ \$(cat \$i) != \$wanted ] || { echo \$i; exit; }; done; exit 1"
}
