# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What the lab does with SoftIB itself in the running machines: attaching
# devices, and reloading what was rebuilt.

# Whether the tree has all that it takes to attach a device.
has_softib() {
	[ "$(cat "$RUN/flavour")" != plain ] &&
		[ -e "$TREE/tools/xl-vmri/Makefile" ] &&
		[ -e "$TREE/linux/softib/Makefile" ]
}

# Gives each guest a device.
attach_devices() {
	if ! has_softib; then
		say "no device attached: Xen is plain, or the tree lacks driver or tool"
		return 0
	fi
	# shellcheck disable=SC2086 # several guests
	attach_device_to $GUESTS
}

# attach_devices_of DOM0: to the guests of one host.
attach_devices_of() {
	local guest
	for guest in $GUESTS; do
		[ "$(dom0_of "$guest")" != "$1" ] || attach_device_to "$guest"
	done
}

# attach_device_to GUEST...: each under the GUID that belongs to the address of its
# interface. One that is restarted keeps it, so that its peers find it again.
attach_device_to() {
	local guest
	for guest in "$@"; do
		on_host "$(dom0_of "$guest")" xl-vmri attach "$guest" \
			"guid=0016:3eff:fe00:$(printf %04x "$(number_of "$guest")")" ||
			die "xl-vmri attach $guest failed in $(dom0_of "$guest")"
	done
	for guest in "$@"; do
		wait_for "$guest" "the InfiniBand device of $guest" 60 has_device "$guest"
		say "$guest has an InfiniBand device"
	done
}

has_device() {
	on_host "$1" '[ -n "$(ls /sys/class/infiniband 2>/dev/null)" ]'
}

# Lays a folder over a running machine's root.
lay_over() {
	tar -C "$2" -cf - . |
		ssh -F "$RUN/ssh_config" "$1" -- \
			tar -C / --no-same-owner --keep-directory-symlink -m -xf -
}

lab_reload() {
	local guest host
	need_up
	read_setup
	prepare
	if ! cmp -s "$XEN_OUT/xen" "$RUN/xen"; then
		say "note: Xen or VMRI changed too; that takes lab down and lab up"
	fi
	if [ "$GUEST_OUT" = "$(cat "$RUN/parts")" ]; then
		say "nothing changed in driver, provider, tool and programs"
		return 0
	fi
	make_initrds "$TYPES" "$MEMORY" "$VCPUS"
	drop_lock
	for guest in $GUESTS; do
		unload_driver "$guest"
	done
	for host in $DOM0S; do
		lay_over "$host" "$DOM0_OUT"
		ssh -F "$RUN/ssh_config" "$host" -- 'cat >/lab/initrd' <"$RUN/guest.initrd"
	done
	for guest in $GUESTS; do
		lay_over "$guest" "$GUEST_OUT"
	done
	attach_devices
	say "reloaded"
}

unload_driver() {
	local guest=$1
	if has_softib; then
		on_host "$(dom0_of "$guest")" "xl-vmri detach $guest 0" ||
			say "note: $guest had no device to detach"
	fi
	on_host "$guest" '
		if [ -d /sys/module/softib ]; then
			rmmod softib
		fi
	' || die "softib cannot be unloaded in $guest: a program still uses it?"
}

lab_restart_guest() {
	local guest=$1
	need_up
	case " $GUESTS $SPARES " in
	*" $guest "*) ;;
	*) die "there is no guest $guest, only: $GUESTS $SPARES" ;;
	esac
	hang_up "$guest"
	on_host "$(dom0_of "$guest")" "lab-guest stop $guest && lab-guest start $guest"
	wait_for_guest "$guest"
	say "$guest is up"
	if has_softib; then
		attach_device_to "$guest"
	fi
}
