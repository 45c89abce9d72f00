# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# A cluster of processes: members of etcd on loopback, hosts with their VMRI, and a
# daemon on each. All of it lies in $WORK and ends with the shell.

LIMIT=${LIMIT:-60}              # seconds that anything may take
passed=0
failed=0
declare -A ETCD_PID DAEMON_PID HOST_PID

pause() {
	read -r -t "$1" <> <(:) || :
}

# The rest is what was to be seen, and what is instead.
fail() {
	echo "FAIL $*"
	failed=$((failed + 1))
}

pass() {
	echo "ok   $*"
	passed=$((passed + 1))
}

# await WHAT COMMAND...: until it succeeds.
await() {
	local what=$1 until=$((SECONDS + LIMIT))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ "$SECONDS" -ge "$until" ]; then
			fail "$what: not within $LIMIT s: $*"
			return 1
		fi
		pause 0.05
	done
	pass "$what"
}

# becomes WHAT EXPECTED COMMAND...: until it prints that.
becomes() {
	local what=$1 expected=$2 got='' until=$((SECONDS + LIMIT))
	shift 2
	while got=$("$@" 2>&1) || :; [ "$got" != "$expected" ]; do
		if [ "$SECONDS" -ge "$until" ]; then
			fail "$what: \"$got\", not \"$expected\""
			return 1
		fi
		pause 0.05
	done
	pass "$what"
}

# is WHAT EXPECTED COMMAND...: it prints that now.
is() {
	local what=$1 expected=$2 got
	shift 2
	got=$("$@" 2>&1) || :
	if [ "$got" = "$expected" ]; then
		pass "$what"
	else
		fail "$what: \"$got\", not \"$expected\""
	fi
}

# ---- etcd ----

# start_etcd NUMBER
start_etcd() {
	local n=$1 peers='' i
	for i in "${MEMBERS[@]}"; do
		peers+=${peers:+,}m$i=http://127.0.0.1:$((PORT + 10 * i + 1))
	done
	"$ETCD" --name "m$n" --data-dir "$WORK/etcd$n" \
		--listen-client-urls "http://127.0.0.1:$((PORT + 10 * n))" \
		--advertise-client-urls "http://127.0.0.1:$((PORT + 10 * n))" \
		--listen-peer-urls "http://127.0.0.1:$((PORT + 10 * n + 1))" \
		--initial-advertise-peer-urls "http://127.0.0.1:$((PORT + 10 * n + 1))" \
		--initial-cluster "$peers" --unsafe-no-fsync \
		>>"$WORK/etcd$n.log" 2>&1 &
	ETCD_PID[$n]=$!
}

# end PID...: at once, and wait for it.
end() {
	kill -KILL "$@" 2>/dev/null || :
	wait "$@" 2>/dev/null || :
}

stop_etcd() {
	end "${ETCD_PID[$1]}"
	unset "ETCD_PID[$1]"
}

# post PATH BODY: of the first member.
post() {
	local fd
	exec {fd}<>"/dev/tcp/127.0.0.1/$((PORT + 10 * MEMBERS[0]))" || return 1
	printf 'POST %s HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' \
		"$1" ${#2} "$2" >&"$fd"
	cat <&"$fd"
	exec {fd}>&-
}

b64() {
	printf %s "$1" | base64 -w 0
}

# etcd_put KEY VALUE, etcd_delete KEY, etcd_has KEY
etcd_put() {
	post /v3/kv/put "{\"key\":\"$(b64 "/softib/$1")\",\"value\":\"$(b64 "$2")\"}" >/dev/null
}

etcd_delete() {
	post /v3/kv/deleterange "{\"key\":\"$(b64 "/softib/$1")\"}" >/dev/null
}

etcd_has() {
	post /v3/kv/range "{\"key\":\"$(b64 "/softib/$1")\"}" | grep -q '"kvs"'
}

etcd_lacks() {
	post /v3/kv/range "{\"key\":\"$(b64 "/softib/$1")\"}" | grep -q '"revision"' &&
		! etcd_has "$1"
}

etcd_revision() {
	post /v3/kv/range "{\"key\":\"$(b64 /none)\"}" |
		sed -n 's/.*"revision":"\([0-9]*\)".*/\1/p'
}

etcd_compact() {
	post /v3/kv/compaction "{\"revision\":\"$(etcd_revision)\",\"physical\":true}" |
		grep -q ' 200 '
}

etcd_answers() {
	[ -n "$(etcd_revision 2>/dev/null)" ]
}

# ---- hosts ----

# start_host NUMBER: with the address 192.0.2.NUMBER.
start_host() {
	"$BIN/host" "$WORK/host$1" >>"$WORK/host$1.log" 2>&1 &
	HOST_PID[$1]=$!
	configure "$1"
}

configure() {
	local i endpoints=''
	for i in "${MEMBERS[@]}"; do
		endpoints+=${endpoints:+,}http://127.0.0.1:$((PORT + 10 * i))
	done
	cat >"$WORK/conf$1" <<-CONF
		endpoints = $endpoints
		host = h$1
		host-gid = 192.0.2.$1
		lease = ${LEASE:-60}
		state = $WORK/state$1
		layer2 = $WORK/layer2
	CONF
}

start_daemon() {
	VMRI_HOST=$WORK/host$1 "$BIN/daemon/vmri-fabricd" -c "$WORK/conf$1" run \
		2>>"$WORK/log$1" &
	DAEMON_PID[$1]=$!
}

# By SIGTERM, as its service is; it must end well.
stop_daemon() {
	kill -TERM "${DAEMON_PID[$1]}"
	wait "${DAEMON_PID[$1]}" || fail "daemon $1 ended with $?"
	unset "DAEMON_PID[$1]"
}

kill_daemon() {
	end "${DAEMON_PID[$1]}"
	unset "DAEMON_PID[$1]"
}

# look NUMBER WORD...: at that host's VMRI.
look() {
	local n=$1
	shift
	VMRI_HOST=$WORK/host$n "$BIN/look" "$@"
}

# op WORD...: an operator's command.
op() {
	"$BIN/daemon/vmri-fabricd" -c "$WORK/conf${MEMBERS[0]}" "$@"
}

# told NUMBER TEXT: how often its daemon said that.
told() {
	grep -cF -- "$2" "$WORK/log$1" || :
}

was_told() {
	[ "$(told "$1" "$2")" -ge 1 ]
}

# ---- the whole ----

tear_down() {
	end "${DAEMON_PID[@]}" "${HOST_PID[@]}" "${ETCD_PID[@]}"
	DAEMON_PID=() HOST_PID=() ETCD_PID=()
}

finish() {
	local rc=$?
	trap - EXIT
	tear_down
	if [ "$rc" -ne 0 ] || [ "$failed" -ne 0 ]; then
		tail -n 40 "$WORK"/log* "$WORK"/host*.log
	fi
	rm -rf "$WORK"
	exit "$rc"
}

# Begin with nothing: set_up "MEMBERS" "HOSTS"
set_up() {
	local i
	tear_down
	rm -rf "${WORK:?}"/*
	read -r -a MEMBERS <<<"$1"
	PORT=$((20000 + RANDOM % 120 * 100))
	printf '#!/bin/sh\necho "$*" >>%s/layer2.log\n' "$WORK" >"$WORK/layer2"
	chmod +x "$WORK/layer2"
	for i in "${MEMBERS[@]}"; do
		start_etcd "$i"
	done
	for i in $2; do
		start_host "$i"
	done
	await "etcd with ${#MEMBERS[@]} members answers" etcd_answers
	for i in $2; do
		start_daemon "$i"
	done
}
