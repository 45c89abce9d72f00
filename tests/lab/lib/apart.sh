# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Whether XSM keeps guests apart, for suites, included after suite.sh and perf.sh.

# transfer PROGRAM FROM TO: from one guest into the other, or itself.
transfer() {
	local program=$1 from=$2 to=$3 address=127.0.0.1 common rc=0
	[ "$from" = "$to" ] || address=$(address_of "$to")
	common="-F -s 4096 -n 100"
	background "$to" server "$program -d $(device_of "$to" softib) $common"
	wait_until 30 on "$to" "ss -Hltn 'sport = :18515' | grep -q ." || return 1
	on "$from" "$program -d $(device_of "$from" softib) $common $address" 2>&1 || rc=$?
	end_background
	return "$rc"
}

# 12 is RETRY_EXC, 0x14 VMRI_VERR_FORBIDDEN.
is_forbidden() {
	local said
	said=$(transfer "$@")
	echo "$said"
	grep -q 'Failed status 12: .*syndrom 0x14' <<<"$said"
}

# check_apart PROGRAM: neither reaches the other, and each itself.
check_apart() {
	check "d1 cannot reach d2 ($1)" is_forbidden "$1" d1 d2
	check "d2 cannot reach d1 ($1)" is_forbidden "$1" d2 d1
	check "d1 reaches itself ($1)" transfer "$1" d1 d1
}
