# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For suites that run other people's tests on SoftIB and, beside it, on Soft-RoCE,
# included after suite.sh and perf.sh.
#
#   need_devices softib [rxe]   sets SOFTIB1, SOFTIB2, and with Soft-RoCE RXE1, RXE2,
#                          the devices' names in d1 and d2, and GID1 and GID2, the
#                          indices of Soft-RoCE's GIDs; and gets the extras
#   note WAY TEST RESULT [NOTE]   WAY is softib or rxe, RESULT pass, fail or skip
#   note_run WAY TEST COMMAND...  notes whether the command succeeds, and if not the
#                          last line that it said; its status 77 means skip
#   judge                  a PASS, SKIP or FAIL line for every test noted
#
# lib/conform.py says what is judged how, and conformance.reasons why a test may be
# skipped.

NOTES=$WORK/notes
: >"$NOTES"
FORM=full
[ -z "${SUITE_QUICK:-}" ] || FORM=short

# shellcheck source=rxe.sh
. "$LAB_LIB/rxe.sh"

need_devices() {
	local host
	check "the extras are laid over the guests" "$LAB_DIR/lab" extras conformance d1 d2 || exit 1
	SOFTIB1=$(device_of d1 softib)
	SOFTIB2=$(device_of d2 softib)
	export SOFTIB1 SOFTIB2
	check "both guests have a device" test -n "$SOFTIB1" -a -n "$SOFTIB2" || exit 1
	[ "${2:-}" = rxe ] || return 0
	for host in $GUESTS; do
		check "Soft-RoCE starts in $host" start_rxe "$host" || exit 1
	done
	RXE1=$(device_of d1 rxe)
	RXE2=$(device_of d2 rxe)
	GID1=$(gid_index d1 "$RXE1")
	GID2=$(gid_index d2 "$RXE2")
	export RXE1 RXE2 GID1 GID2
}

end_rxe() {
	local host
	for host in $GUESTS; do
		check "Soft-RoCE is removed from $host" stop_rxe "$host"
	done
}

note() {
	printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4:-}" >>"$NOTES"
}

note_run() {
	local way=$1 test=$2 rc=0
	shift 2
	"$@" >"$WORK/noted" 2>&1 || rc=$?
	case $rc in
	0) note "$way" "$test" pass ;;
	77) note "$way" "$test" skip "$(last_words "$WORK/noted")" ;;
	*)
		note "$way" "$test" fail "$(last_words "$WORK/noted")"
		echo "    $way $test:"
		tail -n 12 "$WORK/noted" | sed 's/^/    | /'
		;;
	esac
}

# The last line of a file that says something.
last_words() {
	tr '\t\r' '  ' <"$1" | grep -a '[[:alnum:]]' | tail -n 1 | cut -c1-160
}

judge() {
	python3 "$LAB_LIB/conform.py" judge "$SUITE" "$LAB_DIR/conformance.reasons" \
		"$NOTES" "$CACHE/conformance/$SUITE" "$FORM"
}
