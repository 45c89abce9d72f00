# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Adds up what several test commands count. A command counts by ending with a
# line "N passed, N failed"; one that does not is itself one check.

passed=0
failed=0

# count NAME COMMAND...: runs it, and shows what it prints. Its line of counts
# gets its name, so that only the total stands alone.
count() {
	local name=$1 rc=0 log
	local -a numbers
	shift
	log=$(mktemp)
	"$@" 2>&1 | tee "$log" |
		sed -u -E "s|^([0-9]+ passed, [0-9]+ failed)\$|$name: \1|" || rc=$?
	read -r -a numbers < <(sed -n -E \
		's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$log" | tail -n 1) || true
	rm -f "$log"
	if [ ${#numbers[@]} -eq 2 ]; then
		passed=$((passed + numbers[0]))
		failed=$((failed + numbers[1]))
		if [ "$rc" -ne 0 ] && [ "${numbers[1]}" -eq 0 ]; then
			echo "$name: ended with status $rc"
			failed=$((failed + 1))
		fi
	elif [ "$rc" -eq 0 ]; then
		passed=$((passed + 1))
	else
		echo "$name: failed with status $rc"
		failed=$((failed + 1))
	fi
}

# meanwhile COMMAND...: runs it beside what follows, when the machine has nothing better
# to do. What it prints and counts is for count_meanwhile.
meanwhile() {
	MEANWHILE_LOG=$(mktemp)
	setsid nice -n 19 "$@" >"$MEANWHILE_LOG" 2>&1 </dev/null &
	MEANWHILE=$!
	trap 'kill -TERM -- "-$MEANWHILE" 2>/dev/null || true; rm -f "$MEANWHILE_LOG"' EXIT
	trap 'exit 130' INT TERM HUP
}

# count_meanwhile NAME: waits for its end.
count_meanwhile() {
	local rc=0
	wait "$MEANWHILE" || rc=$?
	count "$1" shown "$rc"
}

shown() {
	cat "$MEANWHILE_LOG"
	return "$1"
}

# The last line. Having tested nothing is a failure.
total() {
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
