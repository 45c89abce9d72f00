# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What every suite begins with. A suite prints one PASS or FAIL line a check;
# "run" counts them. At its end the kernel logs of all machines and Xen's
# console are checked, whatever else the suite did.
#
#   on HOST COMMAND...      runs a line of shell on dom0 or a guest
#   on_all COMMAND...       runs it on all at once
#   put HOST FILE           copies standard input to a file there
#   check NAME COMMAND...   passes if the command (a function too) succeeds
#   refuse NAME COMMAND...  passes if it fails
#   pass NAME, fail NAME WHY
#   wait_until SECONDS COMMAND...
#   background HOST NAME COMMAND...   starts a daemon there; ended with the suite
#   result KEY VALUE        notes a measurement for the table that "run" shows. KEY
#                           is "PROGRAM SIZE WAY", WAY one of softib, rxe, tcp, …
#   measure NAME KEY UNIT COMMAND...   passes if the command prints a number, and
#                           notes that; skipped if it ends with status 77: it did
#                           what it should and has no figure to show
#   skip NAME WHY           for what this configuration of the lab cannot do

set -uo pipefail

SUITE=$(basename "$0")
SUITE_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The lab's helpers set -e, which a suite must not: checks may fail.
# shellcheck source=lib/common.sh
. "$SUITE_DIR/lib/common.sh"
# shellcheck source=lib/vm.sh
. "$SUITE_DIR/lib/vm.sh"
set +e
need_up

export TYPES FLAVOUR MEMORY VCPUS PACE
D1=$(address_of d1)
D2=$(address_of d2)
export D1 D2
RESULTS=$RUN/results
# The longest that one command on a machine may take, in seconds. Emulation
# under load is slow: limits are for hangs, not for speed.
LIMIT=${LIMIT:-180}
WORK=$(mktemp -d)
OUTPUT=$WORK/output

# The limit holds there, so that nothing is left running; the one here is for a
# machine that answers no more.
on() {
	local host=$1
	shift
	timeout --foreground "$((LIMIT + 30))" ssh -F "$RUN/ssh_config" "$host" -- \
		"exec timeout -k 5 $LIMIT bash -c $(printf '%q' "$*")" </dev/null
}

put() {
	timeout --foreground "$LIMIT" ssh -F "$RUN/ssh_config" "$1" -- "cat >$2"
}

pass() {
	printf 'PASS %s: %s\n' "$SUITE" "$1"
}

fail() {
	printf 'FAIL %s: %s%s\n' "$SUITE" "$1" "${2:+ ($2)}"
}

skip() {
	printf 'SKIP %s: %s (%s)\n' "$SUITE" "$1" "$2"
}

check() {
	local name=$1 rc=0
	shift
	"$@" >"$OUTPUT" 2>&1 || rc=$?
	if [ "$rc" -eq 0 ]; then
		pass "$name"
		return 0
	fi
	fail "$name" "exit status $rc"
	tail -n 20 "$OUTPUT" | sed 's/^/    | /'
	return 1
}

refuse() {
	local name=$1 rc=0
	shift
	"$@" >"$OUTPUT" 2>&1 || rc=$?
	if [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ]; then
		pass "$name"
		return 0
	fi
	fail "$name" "it ended with status $rc"
	tail -n 20 "$OUTPUT" | sed 's/^/    | /'
	return 1
}

# not COMMAND...: for wait_until.
not() {
	! "$@"
}

measure() {
	local name=$1 key=$2 unit=$3 value rc=0
	shift 3
	value=$("$@" 2>"$OUTPUT") || rc=$?
	if [ "$rc" -eq 77 ]; then
		skip "$name" "no figure: the program misjudged the machine's clock"
		return 0
	fi
	if [ "$rc" -eq 0 ] && [[ $value =~ ^[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$ ]]; then
		pass "$name"
		result "$key" "$(awk -v v="$value" 'BEGIN { printf v < 100 ? "%.2f" : "%.0f", v }') $unit"
		return 0
	fi
	fail "$name" "it printed no number: ${value:-nothing}"
	tail -n 20 "$OUTPUT" | sed 's/^/    | /'
	return 1
}

wait_until() {
	local limit=$1 started
	started=$(date +%s)
	shift
	until "$@" >/dev/null 2>&1; do
		if [ $(($(date +%s) - started)) -gt "$limit" ]; then
			echo "not within $limit s: $*"
			return 1
		fi
		sleep 0.3
	done
}

# Its output is in /tmp/NAME.out there, its exit status in /tmp/NAME.rc.
background() {
	local host=$1 name=$2
	shift 2
	case " ${STARTED[*]-} " in
	*" $host $name "*) ;;
	*) STARTED+=("$host $name") ;;
	esac
	on "$host" "rm -f /tmp/$name.rc
		setsid sh -c $(printf '%q' "$*; echo \$? >/tmp/$name.rc") \
			>/tmp/$name.out 2>&1 </dev/null &
		echo \$! >/tmp/$name.pid"
}

STARTED=()

end_background() {
	local entry
	for entry in ${STARTED[@]+"${STARTED[@]}"}; do
		# shellcheck disable=SC2086 # host and name
		set -- $entry
		on "$1" "{ kill -KILL -- -\$(cat /tmp/$2.pid); } 2>/dev/null; rm -f /tmp/$2.pid; true"
	done
	STARTED=()
}

result() {
	printf '%s\t%s\n' "$1" "$2" >>"$RESULTS"
	printf '     %s: %s = %s\n' "$SUITE" "$1" "$2"
}

# What no kernel and no Xen may say.
BAD_KERNEL='WARNING:|BUG:|Oops|Call Trace|general protection|UBSAN|KASAN|KCSAN'
BAD_KERNEL+='|circular locking|bad unlock balance|blocked for more than|rcu.*stall'
BAD_KERNEL+='|soft lockup|refcount_t|segfault|list_(add|del) corruption|scheduling while'
BAD_XEN='BUG|[Aa]ssertion|WARN|Xen call trace|[Pp]anic|UBSAN|Unhandled|FATAL|lock (order|recursion)'

# A suite is judged by what was logged after its mark; a machine that it
# restarted has none, and is judged by all it logged.
declare -A XEN_MARK=()

mark_logs() {
	local host
	MARK="softib suite $SUITE $$"
	on_all "echo '$MARK' >/dev/kmsg"
	for host in $DOM0S; do
		XEN_MARK[$host]=$(stat -c %s "$(dir_of "$host")/console.log")
	done
}

# on_all COMMAND...: on all machines at once; what each prints is in WORK/said.HOST.
on_all() {
	local host
	local -a jobs=()
	for host in $HOSTS; do
		on "$host" "$@" >"$WORK/said.$host" &
		jobs+=("$!")
	done
	wait "${jobs[@]}"
}

log_is_clean() {
	[ -s "$WORK/said.$1" ] && awk -v mark="$MARK" -v bad="$BAD_KERNEL" '
		index($0, mark) { n = 0; next }
		{ line[++n] = $0; hit[n] = $0 ~ bad }
		END {
			for (i = 1; i <= n; i++)
				if (hit[i]) {
					for (j = i; j < i + 15 && j <= n; j++)
						print line[j]
					exit 1
				}
		}' "$WORK/said.$1"
}

# xen_is_clean DOM0: of its host.
xen_is_clean() {
	! tail -c "+$((XEN_MARK[$1] + 1))" "$(dir_of "$1")/console.log" | grep -a '(XEN)' |
		grep -aE -A 12 "$BAD_XEN"
}

end_of_suite() {
	local host
	trap - EXIT
	end_background
	on_all dmesg
	for host in $HOSTS; do
		check "no warning in the kernel log of $host" log_is_clean "$host"
	done
	for host in $DOM0S; do
		check "no warning on the console of $host's Xen" xen_is_clean "$host"
	done
	rm -rf "$WORK"
}

trap 'exit 130' INT TERM HUP
trap end_of_suite EXIT
mark_logs
