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
	local host=$1 program=$2 out rc=0
	shift 2
	out=$(mktemp)
	LIMIT=900 on "$host" "$program $*" >"$out" 2>&1 || rc=$?
	relay "$host" <"$out"
	check "$program in $host ends well" ended_well "$out" "$rc"
	rm -f "$out"
}

# between LISTENER DEVICE CALLER DEVICE PROGRAM: the caller's checks count.
between() {
	local listener=$1 there=$2 caller=$3 here=$4 program=$5 out rc=0
	out=$(mktemp)
	background "$listener" "$program" "$program -d $there"
	LIMIT=900 on "$caller" "$program -d $here $(address_of "$listener")" \
		>"$out" 2>&1 || rc=$?
	relay "$caller to $listener" <"$out"
	check "$program in $caller ends well" ended_well "$out" "$rc"
	check "$program in $listener ends well" wait_until 60 \
		on "$listener" "grep -qx '[01]' /tmp/$program.rc"
	rm -f "$out"
}
