# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For suites that run Debian's RDMA programs between the two guests, included
# after suite.sh. The server runs in d1 and the client in d2, unless SERVER_HOST or
# CLIENT_HOST is another; the figures are the client's.
#
#   plan NAME PROGRAM ARGUMENTS-OF-d1 ARGUMENTS-OF-d2
#   plan_pair NAME COMMAND-OF-d1 COMMAND-OF-d2   in which @PORT@ stands for a port
#   run_plan        runs what was planned, one after the other, with one shell on
#                   either machine: a shell each would take longer than a program
#   went_well NAME  both sides ended well; if not, shows what they said
#   said NAME       what the client printed

# device_of HOST softib|rxe: the name of the device there, which udev may have
# changed; empty if there is none.
device_of() {
	case $2 in
	softib) on "$1" 'for d in /sys/bus/xen/devices/vmri-*/infiniband/*; do
		[ ! -e "$d" ] || echo "${d##*/}"; done' ;;
	rxe) on "$1" "rdma link show | awk '/ netdev eth0/ {sub(\"/.*\", \"\", \$2); print \$2}'" ;;
	esac
}

# Each pair has a port of its own, by which it is also known, so that a server
# that nobody came to does not get the next client.
declare -A PORT_OF=()
NEXT_PORT=18600
SERVERS=
CLIENTS=

plan() {
	plan_pair "$1" "$2 $3 -p @PORT@" "$2 $4 -p @PORT@ $D1"
}

plan_pair() {
	local port=$((NEXT_PORT++))
	PORT_OF[$1]=$port
	SERVERS+="serve $port ${2//@PORT@/$port}"$'\n'
	CLIENTS+="ask $port ${3//@PORT@/$port}"$'\n'
}

# What either side does with a line of its plan. What was said follows a line
# "=== PORT STATUS"; of a server it matters only when it failed. It belongs to the same
# process group, so that it ends with the plan; and awk ends its last line.
# shellcheck disable=SC2016 # expanded there
SERVE='
serve() {
	local port=$1 rc=0
	shift
	timeout --foreground -k 5 "$limit" "$@" >/tmp/server 2>&1 || rc=$?
	echo "=== $port $rc"
	[ $rc -eq 0 ] || awk 1 /tmp/server
}
'
# It asks until the server listens, which may first have to end the one before; if it
# never does, nor will the next. UNHEARD is what programs say when nobody listens, UCX
# on its standard output; those of librdmacm tell the connection manager's reason, but
# for cmtime, which says nothing.
# shellcheck disable=SC2016
ASK='
UNHEARD="^\$|t connect|[Cc]onnection refused|REJECTED, error:? 8|UNREACHABLE, error: 1[^0-9]|rpoll: (Operation now|Success)"
ask() {
	local port=$1 out rc end=$((SECONDS + limit + 30))
	shift
	while :; do
		rc=0
		out=$(timeout -k 5 "$limit" "$@" 2>/tmp/client) || rc=$?
		[ $rc -ne 0 ] && [[ $out$(</tmp/client) =~ $UNHEARD ]] || break
		[ $SECONDS -lt $end ] || exit
		sleep 0.1
	done
	echo "=== $port $rc"
	echo "$out"
	[ $rc -eq 0 ] || awk 1 /tmp/client
}
'

# Xen tells a guest how fast its clock ticks.
# shellcheck disable=SC2016
CLOCK='
echo "=== clock 0"
awk "/^cpu MHz/ { print \$4; exit }" /proc/cpuinfo
'

run_plan() {
	local server=${SERVER_HOST:-d1}
	[ -n "$SERVERS" ] || return 0
	put "$server" /tmp/servers.sh <<<"limit=$LIMIT$SERVE$SERVERS"
	background "$server" servers bash /tmp/servers.sh
	LIMIT=$((LIMIT * 10)) on "${CLIENT_HOST:-d2}" "limit=$LIMIT$ASK$CLIENTS$CLOCK" | split_said client
	# Those left when the clients are done would be in the way of the next plan's.
	wait_until 30 on "$server" test -s /tmp/servers.rc ||
		on "$server" "kill -KILL -- -\$(cat /tmp/servers.pid)"
	on "$server" cat /tmp/servers.out | split_said server
	SERVERS=
	CLIENTS=
}

split_said() {
	awk -v base="$WORK/$1." '
		$1 == "===" && NF == 3 {
			file = base $2
			print $3 >(file ".rc")
			next
		}
		{ print >file }'
}

went_well() {
	local side file rc=0
	for side in client server; do
		file=$WORK/$side.${PORT_OF[$1]}
		if [ "$(cat "$file.rc" 2>/dev/null)" != 0 ]; then
			echo "the $side ended with status $(cat "$file.rc" 2>/dev/null):"
			cat "$file" 2>/dev/null
			rc=1
		fi
	done
	return "$rc"
}

said() {
	cat "$WORK/client.${PORT_OF[$1]}"
}

# perf_plan PROGRAM SIZE WAY ITERATIONS DEVICE1 DEVICE2 [ARGUMENT]...: a pair of
# perftest's for one figure, known as "PROGRAM SIZE WAY". Latencies are asked for
# in cycles: perftest counts those anyhow, and finds out how fast the clock ticks
# in a way that goes wrong in an emulated machine.
perf_plan() {
	local program=$1 size=$2 way=$3 iterations=$4 device1=$5 device2=$6 common
	shift 6
	common="-F -s $size -n $iterations $*"
	case $program in
	*_lat) common+=" -C --output=latency" ;;
	*_bw) common+=" --output=message_rate" ;;
	esac
	plan "$program $size $way" "$program" "-d $device1 $common" "-d $device2 $common"
}

# The pair's mean latency in microseconds, or its mean of messages a second. Status
# 77: the program did well and could not tell how fast, or was not asked yet.
perf_figure() {
	local name=$1 figure
	[ -n "${PORT_OF[$name]-}" ] || return 77
	went_well "$name" >&2 || return 1
	figure=$(said "$name" | tail -n 1)
	[[ $figure =~ ^[0-9.]*[1-9][0-9.]*$ ]] || return 77
	case $name in
	*_lat\ *) cycles_to_us "$figure" ;;
	*) awk -v f="$figure" 'BEGIN { print f * 1000000 }' ;;
	esac
}

lacks_figure() {
	perf_figure "$1" >/dev/null 2>&1
	[ $? -eq 77 ]
}

cycles_to_us() {
	awk -v cycles="$1" '{ print cycles / $1 }' "$WORK/client.clock"
}
