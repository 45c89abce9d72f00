# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# IP over SoftIB's devices, included after suite.sh.
#
#   start_ipoib HOST...    gives the interfaces of guests addresses and waits until they
#                          are in the broadcast group
#   stop_ipoib HOST...     takes that back
#   enter_ipoib_mode MODE MTU    both guests' interfaces: datagram or connected
#   ipoib_of HOST          the interface's name
#   ipoib4 HOST [NET], ipoib6 HOST [NET]    the addresses; NET is 66, or another
#                          number for an interface of another partition

# The names of those for other partitions come after it.
ipoib_of() {
	on "$1" 'for n in /sys/bus/xen/devices/vmri-*/net/*; do
		[ ! -e "$n" ] || echo "${n##*/}"; done' | head -n 1
}

ipoib4() {
	echo "192.168.${2:-66}.$(ipoib_number "$1")"
}

ipoib6() {
	echo "fd00:${2:-66}::$(ipoib_number "$1")"
}

# Nobody has the address 0.
ipoib_number() {
	[ "$1" != dom0 ] || { echo 100 && return; }
	number_of "$1"
}

# address_interface HOST INTERFACE [NET]
address_interface() {
	on "$1" "ip address replace $(ipoib4 "$1" "${3:-}")/24 dev $2 &&
		ip -6 address replace $(ipoib6 "$1" "${3:-}")/64 dev $2 nodad &&
		ip link set $2 up"
}

interface_is_up() {
	[ "$(on "$1" cat "/sys/class/net/$2/operstate")" = up ]
}

# udev has the module loaded when the device is there.
has_ipoib() {
	[ -n "$(ipoib_of "$1")" ]
}

start_ipoib() {
	local host
	for host in "$@"; do
		wait_until 60 has_ipoib "$host" &&
			address_interface "$host" "$(ipoib_of "$host")" || return 1
	done
	for host in "$@"; do
		wait_until 60 interface_is_up "$host" "$(ipoib_of "$host")" || return 1
	done
}

enter_ipoib_mode() {
	local host name
	for host in $GUESTS; do
		name=$(ipoib_of "$host")
		on "$host" "echo $1 >/sys/class/net/$name/mode && ip link set $name mtu $2" || return 1
	done
	for host in $GUESTS; do
		wait_until 60 interface_is_up "$host" "$(ipoib_of "$host")" || return 1
	done
}

stop_ipoib() {
	local host name
	for host in "$@"; do
		name=$(ipoib_of "$host")
		[ -z "$name" ] || on "$host" "ip address flush dev $name && ip link set $name down"
	done
}
