#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs QEMU and goes with it. When the file "owner" names a process that is
# gone, or the lab's folder is another's, nobody wants the lab any more, and
# QEMU is ended. QEMU ends when this process does.
#   keeper.sh ROOT [BIND]... -- QEMU ARGUMENTS...

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"

# Before compilers. Inside a session of its own the usual niceness counts for
# nothing on kernels that group by session.
renice -n -15 -p $$ >/dev/null 2>&1 || true
{ echo -15 >/proc/$$/autogroup; } 2>/dev/null || true

enter_root "$@" &
qemu=$!
echo "$qemu" >"$RUN/qemu.pid"
trap 'kill -TERM "$qemu" 2>/dev/null' TERM INT HUP

is_wanted() {
	local pid start
	[ "$(cat "$RUN/keeper.pid" 2>/dev/null)" = $$ ] || return 1
	[ -e "$RUN/owner" ] || return 0
	while read -r pid start; do
		if [ -z "$start" ] || [ "$(start_time "$pid")" != "$start" ]; then
			echo "keeper: the lab's owner $pid is gone"
			return 1
		fi
	done <"$RUN/owner"
}

while sleep 1 && kill -0 "$qemu" 2>/dev/null; do
	is_wanted || kill -TERM "$qemu" 2>/dev/null || true
done
rc=0
wait "$qemu" || rc=$?
echo "keeper: QEMU ended with status $rc"
if [ "$(cat "$RUN/keeper.pid" 2>/dev/null)" = $$ ]; then
	rm -f "$RUN/qemu.pid" "$RUN/keeper.pid"
fi
