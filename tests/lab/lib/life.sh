# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For suites in which things come and go under traffic, included after suite.sh
# and perf.sh: a transfer from d1 to d2, what VMRI holds, and who is there.

# objects HOST: what VMRI holds for the device of a guest.
objects() {
	on dom0 xl-vmri --json info "$1" 0 | python3 -c '
import json, sys
info = json.load(sys.stdin)
info = info[0] if isinstance(info, list) else info
print(*[n for what, n in sorted(info["usage"].items()) if what != "bytes"])'
}

holds_as_before() {
	[ "$(objects "$1")" = "$2" ]
}

has_device() {
	[ -n "$(device_of "$1" softib)" ]
}

has_no_device() {
	[ -z "$(device_of "$1" softib)" ]
}

# d1 writes into d2 without end.
start_transfer() {
	background d2 ib_write_bw "ib_write_bw -d $(device_of d2 softib) -F -s 65536 --run_infinitely"
	wait_until 30 on d2 "ss -Hltn 'sport = :18515' | grep -q ." || return 1
	background d1 ib_write_bw "ib_write_bw -d $(device_of d1 softib) -F -s 65536 --run_infinitely $D2"
	transfer_goes_on
}

sent_bytes() {
	on dom0 xl-vmri --json list d1 |
		python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["tx_bytes"])'
}

has_sent_more() {
	[ "$(sent_bytes)" -gt "$1" ]
}

transfer_goes_on() {
	wait_until 60 has_sent_more "$(($(sent_bytes) + 1000000))"
}

# The sender's completion: 12 is RETRY_EXC, 5 a flush, 10 REM_ACCESS.
transfer_has_failed() {
	wait_until 60 on d1 "test -s /tmp/ib_write_bw.rc" || return 1
	on d1 "cat /tmp/ib_write_bw.out; ! grep -qx 0 /tmp/ib_write_bw.rc &&
		grep -qE 'Failed status (5|10|12)' /tmp/ib_write_bw.out"
}

kill_process() {
	on "$1" "kill -KILL -- -\$(cat /tmp/$2.pid)"
}

# It may have ended by itself meanwhile.
end_process() {
	kill_process "$1" "$2" 2>/dev/null
	true
}

serves() {
	plan serves ibv_rc_pingpong "-d $(device_of d1 softib) -n 100" \
		"-d $(device_of d2 softib) -n 100"
	run_plan
	went_well serves
}

no_zombie() {
	local listed
	listed=$(on dom0 xl list | awk 'NR > 1 { print $1 }')
	echo "$listed"
	! grep -qv -x -e Domain-0 -e d1 -e d2 <<<"$listed"
}

# The devices that VMRI has, by the names of their domains.
only_devices_of() {
	local listed
	listed=$(on dom0 xl-vmri --json list | python3 -c '
import json, sys
print(" ".join(sorted(d["domain"] or "?" for d in json.load(sys.stdin))))')
	echo "$listed"
	[ "$listed" = "$*" ]
}

restart() {
	"$LAB_DIR/lab" restart-guest "$1"
}

# console_is_clean GUEST [DOM0]: what one had to say of which the kernel's log may be gone.
console_is_clean() {
	! on "${2:-dom0}" cat "/var/log/xen/console/guest-$1.log" | grep -aE -A 12 "$BAD_KERNEL"
}

# Xen's own account, printed on its console upon a debug key.
dump() {
	local from
	from=$(stat -c %s "$RUN/console.log")
	on dom0 xl debug-keys b
	wait_until 20 dump_is_complete "$from" >&2 || return 1
	tail -c "+$((from + 1))" "$RUN/console.log" | grep -a '(XEN)'
}

# The last line counts.
dump_is_complete() {
	tail -c "+$(($1 + 1))" "$RUN/console.log" | grep -aq 'vmri: .* domains with state'
}

# A domain that has anything pinned has state.
dump_shows_nothing() {
	dump >"$WORK/dump" || return 1
	cat "$WORK/dump"
	! grep -qE '\(XEN\) .*(dev [0-9]+ fabric|qp 0x|mr 0x)' "$WORK/dump" &&
		grep -q 'vmri: 0 devices, 0 being detached, 0 domains with state' "$WORK/dump"
}

# How many devices, queue pairs and memory regions the dump shows.
dumped_objects() {
	dump | grep -cE '\(XEN\) .*(dev [0-9]+ fabric|qp 0x|mr 0x)'
}

# granted [DOM0]: how many grants somebody has mapped, of all domains, as Xen prints them.
granted() {
	local host=${1:-dom0} console from
	console=$(dir_of "$host")/console.log
	from=$(stat -c %s "$console")
	on "$host" xl debug-keys g
	wait_until 30 grants_are_printed "$console" "$from" >&2 || return
	tail -c "+$((from + 1))" "$console" | grep -acE '\[0x[0-9a-f]+\] +[0-9]+ 0x'
}

grants_are_printed() {
	tail -c "+$(($2 + 1))" "$1" | grep -aq 'gnttab_usage_print_all \] done'
}

# granted_as N [DOM0]: no more than then; those of network and disk come and go.
granted_as() {
	[ "$(granted "${2:-dom0}")" -lt "$(($1 + 10))" ]
}
