# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For suites that measure with Debian's perftest, included after suite.sh. The
# server runs in d1, the client in d2; the figures are the client's.

# device_of HOST softib|rxe: the name of the device there, which udev may have
# changed; empty if there is none.
device_of() {
	case $2 in
	softib) on "$1" 'cd /sys/class/infiniband 2>/dev/null && for d in *; do
		case $(cat "$d/device/modalias" 2>/dev/null) in
		xen:vmri) echo "$d" ;; esac; done' ;;
	rxe) on "$1" "rdma link show | awk '/ netdev eth0/ {sub(\"/.*\", \"\", \$2); print \$2}'" ;;
	esac
}

# perf_pair PROGRAM ARGUMENTS-OF-d1 ARGUMENTS-OF-d2: prints what the client
# prints. It asks until the server listens. A failure shows both sides.
perf_pair() {
	local program=$1 there=$2 here=$3
	background d1 "$program" "$program $there"
	on d2 "for try in \$(seq 50); do
			if out=\$($program $here $D1 2>/tmp/$program.err); then
				echo \"\$out\"
				exit 0
			fi
			grep -q \"Couldn't connect\" /tmp/$program.err || break
			sleep 0.2
		done
		echo \"\$out\"
		cat /tmp/$program.err
		exit 1" || {
		echo "the other side:"
		on d1 cat "/tmp/$program.out"
		return 1
	}
}

# perf_figure PROGRAM SIZE ITERATIONS DEVICE1 DEVICE2 [ARGUMENT]...: prints the
# mean latency in microseconds, or the mean of messages a second. Status 77: the
# program did well and could not tell how fast.
perf_figure() {
	local program=$1 size=$2 iterations=$3 device1=$4 device2=$5
	local common out figure scale try
	shift 5
	common="-F -s $size -n $iterations $*"
	case $program in
	*_lat)
		common+=" --output=latency"
		scale=1
		;;
	*_bw)
		common+=" --output=message_rate"
		scale=1000000
		;;
	esac
	# perftest finds out how fast the clock ticks. When Xen corrects its time
	# meanwhile, as it must every second in an emulated machine that others
	# disturb, all figures are infinite or nothing.
	for try in 1 2 3; do
		out=$(perf_pair "$program" "-d $device1 $common" "-d $device2 $common") || {
			echo "$out" >&2
			return 1
		}
		figure=$(tail -n 1 <<<"$out")
		if [[ $figure =~ ^[0-9.]*[1-9][0-9.]*$ ]]; then
			awk -v f="$figure" -v s=$scale 'BEGIN { print f * s }'
			return 0
		fi
		echo "try $try: $figure" >&2
	done
	return 77
}
