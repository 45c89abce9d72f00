# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What every script of the lab needs: where things are, how progress is shown,
# how failures are reported, the lock, and the keys of cached artefacts.

set -euo pipefail

LAB_LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LAB_DIR=$(dirname "$LAB_LIB")
TREE=$(cd "$LAB_DIR/../.." && pwd)
CACHE=${SOFTIB_CACHE:-/var/cache/softib}
LAB_NAME=${SOFTIB_LAB:-default}
RUN=/run/softib-lab/$LAB_NAME
LOGS=$CACHE/log
LAB_STARTED=${LAB_STARTED:-$(date +%s)}
export LAB_STARTED

# shellcheck source=../../../Config.mk
. "$TREE/Config.mk"

say() {
	printf '[%4ds] %s\n' "$(($(date +%s) - LAB_STARTED))" "$*" >&2
}

die() {
	printf 'lab: %s\n' "$*" >&2
	exit 1
}

# Runs a step with its output in a log of that name; a failure shows the log's
# end. Must be called as a plain command: inside a condition the shell would
# ignore the step's own "set -e".
logged() {
	local name=$1 rc=0
	shift
	mkdir -p "$LOGS"
	set +e
	(
		set -e
		"$@"
	) >"$LOGS/$name.log" 2>&1 </dev/null
	rc=$?
	set -e
	if [ "$rc" -ne 0 ]; then
		printf -- '--- the end of %s\n' "$LOGS/$name.log" >&2
		tail -n 25 "$LOGS/$name.log" >&2
		printf -- '---\n' >&2
		die "failed: $name (exit status $rc), log in $LOGS/$name.log"
	fi
}

# Runs each argument, a function's name, at the same time in a process group of
# its own, and fails when any did. A signal ends them all, and this shell.
together() {
	local job pid rc=0
	local -a pids=()
	set -m
	for job in "$@"; do
		"$job" </dev/null &
		pids+=("$!")
	done
	set +m
	# shellcheck disable=SC2064 # the pids of now are meant
	trap "kill_groups ${pids[*]}; exit 130" INT TERM HUP
	for pid in "${pids[@]}"; do
		wait "$pid" || rc=1
	done
	trap - INT TERM HUP
	return "$rc"
}

kill_groups() {
	local pid
	for pid in "$@"; do
		kill -TERM -- "-$pid" 2>/dev/null || true
	done
}

# Runs a command up to four times: package archives drop connections.
retry() {
	local try
	for try in 1 2 3; do
		if "$@"; then
			return 0
		fi
		echo "try $try failed: $1"
		sleep $((try * 3))
	done
	"$@"
}

# When a process started, empty if there is none: a pid alone may be reused.
start_time() {
	sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20
}

# One preparation at a time: two makes may share a cache.
take_lock() {
	mkdir -p "$CACHE"
	exec 9>"$CACHE/lock"
	if ! flock -n 9; then
		say "waiting for another preparation in $CACHE"
		flock 9
	fi
}

drop_lock() {
	exec 9>&-
}

# Twelve digits that stand for the contents of files and folders and for the
# words after "--".
key_of() {
	local -a paths=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		if [ -e "$1" ]; then
			paths+=("$1")
		fi
		shift
	done
	{
		if [ ${#paths[@]} -gt 0 ]; then
			find "${paths[@]}" -type f -print0 | LC_ALL=C sort -z |
				xargs -0 -r sha256sum | sed "s|  $TREE/|  |"
		fi
		echo "$@"
	} | sha256sum | cut -c1-12
}

# Keeps the two youngest of the artefacts that match "$1-*", and the one named.
prune() {
	local keep=$2 old
	# shellcheck disable=SC2012 # our own names have no odd characters
	ls -dt "$1"-* 2>/dev/null | tail -n +3 | while read -r old; do
		if [ "$old" != "$keep" ]; then
			rm -rf --one-file-system "$old"
		fi
	done
}

# Runs a command inside a root, in a mount namespace that goes with it.
# in_root ROOT [FROM:TO[:ro]]... -- COMMAND...
in_root() {
	(enter_root "$@")
}

# The same, but the command takes the place of the shell.
enter_root() {
	local root=$1 binds=
	shift
	while [ "$1" != -- ]; do
		binds+="$1 "
		shift
	done
	shift
	ROOT="$root" BINDS="$binds" exec unshare --mount --propagation private \
		sh -c "$IN_ROOT" in_root "$@"
}

# Runs in the new namespace. The mount points are made if they are missing.
# shellcheck disable=SC2016 # expanded by the inner shell
IN_ROOT='
set -e
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount -t sysfs sysfs "$ROOT/sys"
mount -t tmpfs tmpfs "$ROOT/tmp"
for bind in $BINDS; do
	from=${bind%%:*}
	to=${bind#*:}
	mode=
	case $to in *:ro) mode=ro; to=${to%:ro} ;; esac
	if [ -d "$from" ]; then
		mkdir -p "$ROOT$to"
	else
		mkdir -p "$(dirname "$ROOT$to")"
		touch "$ROOT$to"
	fi
	mount --bind "$from" "$ROOT$to"
	if [ "$mode" = ro ]; then
		mount -o remount,bind,ro "$ROOT$to"
	fi
done
root=$ROOT
unset ROOT BINDS
export HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec chroot "$root" "$@"
'
