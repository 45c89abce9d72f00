# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For suites that look at what tools print, included after suite.sh. How a tool ends
# does not count.
#
#   says HOST PATTERN COMMAND...            it prints that
#   counts NUMBER HOST PATTERN COMMAND...   in so many lines

says() {
	local host=$1 pattern=$2
	shift 2
	on "$host" "$* 2>&1" >"$WORK/said"
	grep -qE -e "$pattern" "$WORK/said" || { cat "$WORK/said" && return 1; }
}

counts() {
	local number=$1 host=$2 pattern=$3
	shift 3
	on "$host" "$* 2>&1" >"$WORK/said"
	[ "$(grep -cE -e "$pattern" "$WORK/said")" = "$number" ] ||
		{ cat "$WORK/said" && return 1; }
}
