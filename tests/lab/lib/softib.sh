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

# attach_device_to GUEST...: each under the GUID that belongs to the address of its
# interface. One that is restarted keeps it, so that its peers find it again.
attach_device_to() {
	local guest
	for guest in "$@"; do
		on_host dom0 xl-vmri attach "$guest" "guid=0016:3eff:fe00:000${guest#d}" ||
			die "xl-vmri attach $guest failed in dom0"
	done
	for guest in "$@"; do
		wait_for "the InfiniBand device of $guest" 60 has_device "$guest"
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
	local guest
	need_up
	read -r TYPES FLAVOUR MEMORY VCPUS <"$RUN/setup"
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
	lay_over dom0 "$DOM0_OUT"
	ssh -F "$RUN/ssh_config" dom0 -- 'cat >/lab/initrd' <"$RUN/guest.initrd"
	for guest in $GUESTS; do
		lay_over "$guest" "$GUEST_OUT"
	done
	attach_devices
	say "reloaded"
}

unload_driver() {
	local guest=$1
	if has_softib; then
		on_host dom0 "xl-vmri detach $guest 0" ||
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
	on_host dom0 "lab-guest stop $guest && lab-guest start $guest"
	wait_for_guest "$guest"
	say "$guest is up"
	if has_softib; then
		attach_device_to "$guest"
	fi
}
