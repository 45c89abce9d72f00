# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For suites that run the programs of tests/lab/progs, included after suite.sh.
# Each line "ok NAME" or "FAIL NAME: WHY" of a program is a check of the suite;
# so is that it ended well, with as many checks as it should have.

# Turn a program's lines into those of a suite.
relay() {
	local line
	while read -r line; do
		case $line in
		"ok "*) pass "$1: ${line#ok }" ;;
		"FAIL "*) fail "$1: ${line#FAIL }" ;;
		*) echo "    | $line" ;;
		esac
	done
}

# It has said something, and no more than its failures made it fail.
ended_well() {
	local out=$1 rc=$2
	grep -q '^ok ' "$out" && { [ "$rc" -eq 0 ] ||
		{ [ "$rc" -eq 1 ] && grep -q '^FAIL ' "$out"; }; }
}

# alone HOST PROGRAM [ARGUMENT]...
alone() {
	run_alone "$@"
	judge_alone "$1" "$2"
}

# run_alone HOST PROGRAM [ARGUMENT]...: what comes of it counts when it is judged.
run_alone() {
	local host=$1 rc=0
	shift
	LIMIT=900 on "$host" "$*" >"$WORK/alone.$host" 2>&1 || rc=$?
	echo "$rc" >"$WORK/alone.$host.rc"
}

# judge_alone HOST PROGRAM
judge_alone() {
	relay "$1" <"$WORK/alone.$1"
	check "$2 in $1 ends well" ended_well "$WORK/alone.$1" "$(cat "$WORK/alone.$1.rc")"
}

# listen HOST DEVICE PROGRAM [ARGUMENT]...
listen() {
	background "$1" "$3" "$3 -d $2 ${*:4}"
}

# call LISTENER CALLER DEVICE PROGRAM [ARGUMENT]...: at CALLED_AT, or the address that
# the listener has on the lab's network.
call() {
	local rc=0
	LIMIT=900 on "$2" "$4 -d $3 ${*:5} ${CALLED_AT:-$(address_of "$1")}" >"$WORK/call.$2" 2>&1 ||
		rc=$?
	echo "$rc" >"$WORK/call.$2.rc"
}

# judge_call LISTENER CALLER PROGRAM: the caller's checks count.
judge_call() {
	relay "$2 to $1" <"$WORK/call.$2"
	check "$3 in $2 ends well" ended_well "$WORK/call.$2" "$(cat "$WORK/call.$2.rc")"
	check "$3 in $1 ends well" wait_until 60 on "$1" "grep -qx '[01]' /tmp/$3.rc"
}

# between LISTENER DEVICE CALLER DEVICE PROGRAM [ARGUMENT]...
between() {
	listen "$1" "$2" "${@:5}"
	call "$1" "$3" "${@:4}"
	judge_call "$1" "$3" "$5"
}

# both_ways DEVICE-OF-d1 DEVICE-OF-d2 PROGRAM: in both directions at once.
both_ways() {
	listen d1 "$1" "$3"
	listen d2 "$2" "$3"
	call d1 d2 "$2" "$3" &
	call d2 d1 "$1" "$3"
	wait "$!"
	judge_call d1 d2 "$3"
	judge_call d2 d1 "$3"
}
