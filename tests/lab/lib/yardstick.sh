# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What SoftIB is measured by, included after suite.sh: TCP between the guests (qperf),
# libxenvchan between them, and a copy of memory in one of them.
#
#   start_qperf           qperf listens in d1
#   ask_qperf ADDRESS SIZE TEST...    d2 asks there; then qperf_us prints a time in
#                         microseconds, qperf_bytes bytes a second
#   memory_copy SIZE      MiB a second
#   start_vchan           makes both guests ready for libxenvchan, whose program is laid
#                         over them
#   vchan_us SIZE ROUNDS  half a round trip over it, in microseconds
#   unit_of PROGRAM SIZE  of a figure of perftest's. Bandwidth says nothing of small
#                         messages.
#   in_unit UNIT SIZE     turns messages a second into that

start_qperf() {
	background d1 qperf qperf
	check "qperf listens" wait_until 30 on d1 "ss -Hltn 'sport = :19765' | grep -q ."
}

# Its unified units are nanoseconds and bytes a second.
ask_qperf() {
	local address=$1 size=$2
	shift 2
	on d2 qperf -uu -t 1 -m "$size" "$address" "$@" >"$WORK/qperf"
}

qperf_us() {
	awk '$1 == "latency" { print $3 / 1000 }' "$WORK/qperf"
}

qperf_bytes() {
	awk '$1 == "bw" { print $3 }' "$WORK/qperf"
}

# Between two buffers of 16 MiB, a size at a time.
memory_copy() {
	put d1 /tmp/copy.py <<-'PYTHON'
		import sys, time
		size, room = int(sys.argv[1]), 16 << 20
		a, b = memoryview(bytearray(room)), memoryview(bytearray(room))
		a[:] = b
		done, at, start = 0, 0, time.monotonic()
		while time.monotonic() < start + 1:
		    a[at : at + size] = b[at : at + size]
		    done += size
		    at = (at + size) % room
		print(done / (time.monotonic() - start) / 1048576)
	PYTHON
	on d1 python3 /tmp/copy.py "$1"
}

start_vchan() {
	local host
	"$LAB_DIR/lab" extras vchan $GUESTS || return 1
	for host in $GUESTS; do
		on "$host" modprobe -a xen-gntalloc xen-gntdev xen-evtchn || return 1
	done
}

vchan_us() {
	local server client path
	server=$(on dom0 xl domid d1) && client=$(on dom0 xl domid d2) || return 1
	path=/local/domain/$server/data/vchan
	background d1 vchan "vchan-pingpong server $client $path $1 $2"
	on d2 "vchan-pingpong client $server $path $1 $2"
}

unit_of() {
	case $1/$2 in
	*_lat/*) echo us ;;
	*/2 | */8) echo msg/s ;;
	*) echo MiB/s ;;
	esac
}

in_unit() {
	if [ "$1" = MiB/s ]; then
		awk -v size="$2" '{ print $1 * size / 1048576 }'
	else
		cat
	fi
}
