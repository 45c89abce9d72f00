# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Two tenants on two hosts, for suites in a lab of two, included after suite.sh and
# perf.sh. Tenant red has the guests d1 and e1, blue d2 and e2. Each tenant has a fabric,
# and a bridge that its guests have their eth1 on; both tenants' guests have the same
# MAC and IP addresses there. Soft-RoCE on the link is the hosts' adapter.

declare -A FABRIC=([red]=70 [blue]=71)
declare -A TENANT=([d1]=red [e1]=red [d2]=blue [e2]=blue)
declare -A ADDRESS=([d1]=10.1.0.1 [d2]=10.1.0.1 [e1]=10.1.0.2 [e2]=10.1.0.2)
declare -A GUESTS_OF=([dom0]="d1 d2" [dom0b]="e1 e2")
ID=1
# perftest's option that lets it wait for an answer of an emulated machine: a second.
PATIENT="-u 18"
UPLINK=/sys/module/softib_uplink
ADAPTER=/sys/class/infiniband/rxe0
# What guests' devices and GIDs are called, as far as it was asked.
declare -A DEVICE=() GID=()

other_host() {
	if [ "$1" = dom0 ]; then echo dom0b; else echo dom0; fi
}

# at_once FUNCTION MACHINE...: for all of them at the same time.
at_once() {
	local function=$1 machine job rc=0
	local -a jobs=()
	shift
	for machine; do
		"$function" "$machine" &
		jobs+=("$!")
	done
	for job in "${jobs[@]}"; do
		wait "$job" || rc=1
	done
	return "$rc"
}

# Those that the last suite may have left ended.
start_machines() {
	host_is_up dom0b || "$LAB_DIR/lab" restart-host dom0b || return
	answers d2 || "$LAB_DIR/lab" restart-guest d2
}

# MAC and link-local addresses of eth1, in both tenants.
mac() {
	echo "00:16:3e:00:03:0${ADDRESS[$1]##*.}"
}

link_local() {
	echo "fe80::216:3eff:fe00:30${ADDRESS[$1]##*.}"
}

start_adapter() {
	on "$1" "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth1" &&
		wait_until 30 on "$1" "grep -q ACTIVE $ADAPTER/ports/1/state"
}

start_uplink() {
	on "$1" "insmod /usr/lib/modules/\$(uname -r)/updates/softib_uplink.ko device=rxe0 &&
		! grep -qx 0 $UPLINK/parameters/uplink"
}

make_bridges() {
	local tenant
	for tenant in red blue; do
		on "$1" "xl-vmri fabric create $tenant link=roce id=${FABRIC[$tenant]} &&
			vmri-bridge up $tenant local=$(link_address "$1") &&
			vmri-bridge peer add $tenant $(link_address "$(other_host "$1")")" || return
	done
}

# plug_in GUEST: its eth1 onto its tenant's bridge.
plug_in() {
	on "$(dom0_of "$1")" "xl network-attach $1 script=vif-lab mac=$(mac "$1") \
		bridge=vmri${FABRIC[${TENANT[$1]}]}" &&
		wait_until 60 on "$1" ip link set eth1 up &&
		on "$1" ip address add "${ADDRESS[$1]}/24" dev eth1
}

# attach_device GUEST [WORD]...: one that belongs to its eth1.
attach_device() {
	on "$(dom0_of "$1")" "xl-vmri attach $1 id=$ID fabric=${TENANT[$1]} mac=$(mac "$1") \
			uplink=\$(cat $UPLINK/parameters/uplink) ${*:2}" &&
		wait_until 60 find_device "$1"
}

# give_device GUEST: one, and the way to its peer.
give_device() {
	local peer host
	host=$(dom0_of "$1")
	for peer in ${GUESTS_OF[$(other_host "$host")]}; do
		[ "${TENANT[$peer]}" != "${TENANT[$1]}" ] || break
	done
	on "$host" "for gid in $(link_local "$peer") ${ADDRESS[$peer]}; do
			xl-vmri route add ${TENANT[$1]} \$gid $(link_address "$(other_host "$host")") || exit
		done" && attach_device "$1"
}

# Without it, and without what belongs to it.
take_device() {
	on "$(dom0_of "$1")" "xl-vmri detach $1 $ID"
}

# find_device GUEST: prints the device's name and the index of the GID that stands for
# the address; fails when it has none yet.
find_device() {
	on "$1" "cd /sys/bus/xen/devices/vmri-$ID/infiniband/* || exit
		wanted=\$(printf 0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x ${ADDRESS[$1]//./ })
		index=\$(grep -lx \$wanted ports/1/gids/*) && echo \${PWD##*/} \${index##*/}"
}

# know_device GUEST: what plans are made with.
know_device() {
	read -r "DEVICE[$1]" "GID[$1]" < <(find_device "$1") && [ -n "${GID[$1]}" ]
}

know_devices() {
	local guest
	for guest; do
		know_device "$guest" || return
	done
}

# At once, as by a loss of power.
end_second_host() {
	kill -KILL "$(cat "$(dir_of dom0b)/qemu.pid")"
	wait_until 30 not host_is_up dom0b
}

# A host without what was made for the tenants.
tidy_host() {
	local guest
	for guest in ${GUESTS_OF[$1]}; do
		on "$1" "xl-vmri detach $guest $ID --force
			xl network-detach $guest $(mac "$guest"); true"
	done
	on "$1" "for tenant in red blue; do
			vmri-bridge down \$tenant
			xl-vmri fabric delete \$tenant
		done
		[ ! -d $UPLINK ] || rmmod softib_uplink
		[ ! -d $ADAPTER ] || rdma link delete rxe0"
}

# plan_tenant NAME FIRST SECOND OPTION PROGRAM WORDS: the GID's option is -g or -x.
plan_tenant() {
	local words="$5 $6 -p @PORT@"
	plan_pair "$1" "$words -d ${DEVICE[$2]} $4 ${GID[$2]}" \
		"$words -d ${DEVICE[$3]} $4 ${GID[$3]} ${ADDRESS[$2]}"
}

# What the guest's device has sent.
sent_by() {
	on "$(dom0_of "$1")" xl-vmri --json info "$1" "$ID" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["counters"]["tx_bytes"])'
}

has_sent() {
	[ "$(sent_by "$1")" -gt "$2" ]
}

# start_flow FROM TO: writes without end.
start_flow() {
	local common="$PATIENT -F -s 65536 --run_infinitely -p 18711"
	background "$2" "flow-to-$1" \
		"ib_write_bw $common -d ${DEVICE[$2]} -x ${GID[$2]}"
	wait_until 30 on "$2" "ss -Hltn 'sport = :18711' | grep -q ." || return
	background "$1" flow \
		"ib_write_bw $common -d ${DEVICE[$1]} -x ${GID[$1]} ${ADDRESS[$2]}"
	flow_goes_on "$1"
}

flow_goes_on() {
	wait_until 60 has_sent "$1" "$(($(sent_by "$1") + 1000000))"
}

# flow_has_failed FROM: what its program said.
flow_has_failed() {
	wait_until 60 on "$1" 'test -s /tmp/flow.rc' || return
	on "$1" 'cat /tmp/flow.out; ! grep -qx 0 /tmp/flow.rc'
}
