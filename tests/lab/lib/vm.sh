# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# The running lab: QEMU with Xen, dom0 and the guests, and how to reach them; or two
# of these, joined by a link. All state is in $RUN; nothing is listened on but ports of
# 127.0.0.1.

# Guests that only a suite starts which needs them; there is memory for them.
SPARES="d3 d4 d5"
SPARE_MEMORY=256
DOM0_MEMORY=1200
# What is left to a guest for programs beside extras, in MiB; a rank of MPI takes 150.
LEAST_MEMORY=180
# How long the machines may take to come up, in seconds.
BOOT_LIMIT=${LAB_BOOT_LIMIT:-300}

# set_machines HOSTS: of a lab of one Xen host, or of two. HOSTS are all machines.
set_machines() {
	DOM0S="dom0"
	GUESTS="d1 d2"
	HOSTS="dom0 d1 d2"
	if [ "$1" = 2 ]; then
		DOM0S+=" dom0b"
		GUESTS+=" e1 e2"
		HOSTS+=" dom0b e1 e2"
	fi
}

# Reads what the lab that is up is like.
read_setup() {
	read -r TYPES FLAVOUR MEMORY VCPUS XENS PACE <"$RUN/setup"
	set_machines "$XENS"
}

if [ -e "$RUN/setup" ]; then
	read_setup
else
	set_machines 1
fi

# The lab is there as long as its first host is; the second ends with it.
is_up() {
	host_is_up dom0
}

host_is_up() {
	local pid
	pid=$(dir_of "$1")/keeper.pid
	[ -s "$pid" ] && kill -0 "$(cat "$pid")" 2>/dev/null
}

# dir_of DOM0: where the state of a host is.
dir_of() {
	case $1 in
	dom0) echo "$RUN" ;;
	*) echo "$RUN/$1" ;;
	esac
}

# dom0_of MACHINE: that of its host.
dom0_of() {
	case $1 in
	dom0b | e*) echo dom0b ;;
	*) echo dom0 ;;
	esac
}

# machines_of DOM0: what may run on its host.
machines_of() {
	local machine
	for machine in $HOSTS $SPARES; do
		[ "$(dom0_of "$machine")" != "$1" ] || echo "$machine"
	done
}

need_up() {
	is_up || die "no lab is up; start one with tests/lab/lab up"
}

address_of() {
	case " $HOSTS $SPARES " in
	*" $1 "*) ;;
	*) die "there is no host $1, only: $HOSTS, and on demand: $SPARES" ;;
	esac
	echo "10.0.2.$((15 + $(number_of "$1")))"
}

# What tells a machine from all others, in its addresses.
number_of() {
	case $1 in
	dom0) echo 0 ;;
	d*[0-9]) echo "${1#d}" ;;
	dom0b) echo 10 ;;
	e*) echo $((10 + ${1#e})) ;;
	esac
}

# link_address DOM0: its host's on the link between the two.
link_address() {
	case $1 in
	dom0) echo 192.0.2.1 ;;
	dom0b) echo 192.0.2.2 ;;
	esac
}

# type_of GUEST TYPES: the guest's word in a list such as "pv,pvh".
type_of() {
	case $1 in
	[de]1) echo "${2%%,*}" ;;
	[de]2) echo "${2#*,}" ;;
	*) echo pv ;;
	esac
}

# What a kernel of the lab starts without: parts that nobody uses here and that
# cost an emulated machine a twentieth of a second each, and some a tenth.
NO_INITCALLS=trace_eval_init,jent_mod_init,load_system_certificate_list
NO_INITCALLS+=,init_acpi_pm_clocksource,crypto_kdf108_init
NO_INITCALLS+=,serial8250_init,acpi_thermal_init,hpet_init,i8042_init,init_encrypted
NO_INITCALLS+=,blake2s_mod_init,snapshot_device_init,param_sysfs_builtin_init

# kernel_words HOST DISK: the command line of a machine's kernel. Most of it is
# to spare an emulated machine work; the words in capitals are for image/init.c.
# A kernel that protects its own text and constants, and looks whether it has, starts a
# tenth later; beside a debug Xen it does. Events that take long are no storm in a machine
# this slow.
kernel_words() {
	local words=
	[ "$FLAVOUR" = debug ] || words=rodata=off
	echo "console=hvc0 loglevel=5 net.ifnames=0 mitigations=off" \
		"init_on_alloc=0 audit=0 lsm=yama cryptomgr.notests" \
		"noreplace-smp initcall_blacklist=$NO_INITCALLS" \
		"xen.event_loop_timeout=250 $words" \
		"LAB_NAME=$1 LAB_IP=$(address_of "$1") LAB_DISK=$2"
}

# mac_of MACHINE N: of its Nth interface.
mac_of() {
	printf '00:16:3e:00:%02x:%02x' "$2" "$(number_of "$1")"
}

# guest_config GUEST TYPE MEMORY VCPUS: what xl is told of it.
guest_config() {
	echo "name=\"$1\""
	echo "type=\"$2\""
	# Nested paging kills PVH guests of this Xen under QEMU.
	if [ "$2" = pvh ]; then
		echo "hap=0"
	fi
	echo "memory=$3"
	echo "vcpus=$4"
	echo 'kernel="/guest/vmlinux"'
	echo 'ramdisk="/lab/initrd"'
	echo "extra=\"$(kernel_words "$1" /dev/xvda)\""
	echo 'disk=["vdev=xvda,access=r,script=block-lab,target=/dev/vdb"]'
	echo "vif=[\"script=vif-lab,bridge=xenbr0,mac=$(mac_of "$1" 0)\"]"
	echo 'on_crash="preserve"'
	echo 'on_reboot="restart"'
}

# make_initrds TYPES MEMORY VCPUS: of what SoftIB built and the lab lays over the
# roots; the guests' is among dom0's files.
make_initrds() {
	local types=$1 memory=$2 vcpus=$3 guest lay=$RUN/lay
	rm -rf "$lay"
	mkdir -p "$lay/guest/files" "$lay/dom0/files/lab/guests"
	cp -a "$GUEST_OUT/." "$lay/guest/files/"
	lay_files guest "$lay/guest/files"
	pack "$lay/guest" "$lay/guest.cpio"
	cat "$GUEST_IMG/initrd.cpio" "$lay/guest.cpio" >"$lay/dom0/files/lab/initrd"
	cp "$lay/dom0/files/lab/initrd" "$RUN/guest.initrd"
	for guest in $GUESTS; do
		guest_config "$guest" "$(type_of "$guest" "$types")" "$memory" "$vcpus" \
			>"$lay/dom0/files/lab/guests/$guest.cfg"
	done
	for guest in $SPARES; do
		guest_config "$guest" "$(type_of "$guest" "$types")" "$SPARE_MEMORY" 1 \
			>"$lay/dom0/files/lab/guests/$guest.cfg"
	done
	cp -a "$DOM0_OUT/." "$lay/dom0/files/"
	lay_files dom0 "$lay/dom0/files"
	pack "$lay/dom0" "$lay/dom0.cpio"
	cat "$DOM0_IMG/initrd.cpio" "$lay/dom0.cpio" >"$RUN/dom0.initrd"
	rm -rf "$lay"
	echo "$GUEST_OUT" >"$RUN/parts"
}

write_ssh_config() {
	local host port
	local -a ports
	# shellcheck disable=SC2086 # one port each
	read -r -a ports < <(python3 -c '
import socket, sys
held = [socket.socket() for _ in sys.argv[1:]]
for s in held:
    s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in held])' $HOSTS $SPARES)
	{
		for host in $HOSTS $SPARES; do
			port=${ports[0]}
			ports=("${ports[@]:1}")
			echo "Host $host"
			echo "  Port $port"
			echo "$port" >"$RUN/port.$host"
		done
		# Kex and cipher are those that cost least when emulated.
		cat <<-CONFIG
			Host *
			  HostName 127.0.0.1
			  User root
			  IdentityFile $CACHE/ssh/id
			  IdentitiesOnly yes
			  UserKnownHostsFile $RUN/known_hosts
			  HostKeyAlias softib-lab
			  KexAlgorithms curve25519-sha256
			  Ciphers chacha20-poly1305@openssh.com
			  ControlMaster auto
			  ControlPath $RUN/ssh-%n
			  ControlPersist yes
			  ServerAliveInterval 15
			  ServerAliveCountMax 8
			  ConnectTimeout 5
			  LogLevel ERROR
		CONFIG
	} >"$RUN/ssh_config"
	echo "softib-lab $(cut -d' ' -f1,2 "$CACHE/ssh/host.pub")" \
		>"$RUN/known_hosts"
}

# Sets QEMU_ROOT, empty when the host's own QEMU will do.
find_qemu() {
	local version
	QEMU_ROOT=$BUILD13
	version=$({ qemu-system-x86_64 --version || true; } 2>/dev/null |
		sed -n 's/.*version \([0-9.]*\).*/\1/p')
	if [ -n "$version" ] && dpkg --compare-versions "$version" ge "$QEMU_MIN"; then
		QEMU_ROOT=/
	fi
}

# start_qemu DOM0 FLAVOUR MEMORY: a host.
start_qemu() {
	local host=$1 flavour=$2 memory=$3 dir machine forwards='' guests=''
	local xen_words="vmri=1" dom0_words guests_memory=0 modules cpu
	local -a accel link=()
	dir=$(dir_of "$host")
	find_qemu
	modules=$RUN/dom0.initrd
	case $flavour in
	silo) xen_words+=" xsm=silo" ;;
	flask)
		xen_words+=" xsm=flask flask=enforcing"
		modules+=,$RUN/policies/example
		;;
	esac
	for machine in $(machines_of "$host"); do
		forwards+=",hostfwd=tcp:127.0.0.1:$(cat "$RUN/port.$machine")-$(address_of "$machine"):22"
		case " $GUESTS " in
		*" $machine "*)
			guests+=,$machine
			guests_memory=$((guests_memory + memory))
			;;
		esac
		case " $SPARES " in
		*" $machine "*) guests_memory=$((guests_memory + SPARE_MEMORY)) ;;
		esac
	done
	if [ "$PACE" = host ] && grep -qwE 'vmx|svm' /proc/cpuinfo && [ -w /dev/kvm ]; then
		accel=(-accel kvm -cpu host)
	else
		# With xsave the guests' vector registers go wrong in emulation.
		cpu=max,-la57,-rdtscp,-xsave
		case $PACE in
		host) accel=(-accel "tcg,thread=multi") ;;
		# One thread, which gives the processors equal numbers of instructions, of 16
		# ns; QEMU cannot read such a clock for an x2APIC's registers.
		counted)
			accel=(-accel "tcg,thread=single" -icount shift=4)
			cpu+=,-x2apic,-tsc-deadline
			;;
		esac
		accel+=(-cpu "$cpu")
		# Memory is fresh, and nobody speculates.
		xen_words+=" bootscrub=0 spec-ctrl=no"
	fi
	dom0_words="$(kernel_words "$host" /dev/vda) LAB_GUESTS=${guests#,}"
	if [ "$XENS" = 2 ]; then
		dom0_words+=" LAB_LINK=$(link_address "$host")"
		link_to_other "$host"
	fi
	mkdir -p "$CACHE/tmp" "$dir"
	# A comma in the words of a module is written twice.
	local -a command=(
		"$LAB_LIB/keeper.sh" "$QEMU_ROOT" "$CACHE:$CACHE" "$RUN:$RUN" --
		setpriv --pdeathsig KILL --
		env "TMPDIR=$CACHE/tmp" qemu-system-x86_64
		"${accel[@]}" -smp 2 -m "$((DOM0_MEMORY + guests_memory + 400))M"
		-name "softib-lab-$LAB_NAME" -display none -no-reboot -nodefaults
		-serial "file:$dir/console.log"
		-qmp "unix:$dir/qmp,server=on,wait=off"
		-kernel "$RUN/xen"
		-append "console=com1 com1=115200,8n1 dom0_mem=${DOM0_MEMORY}M,max:${DOM0_MEMORY}M loglvl=all guest_loglvl=all noreboot $xen_words"
		-initrd "$DOM0_IMG/vmlinux ${dom0_words//,/,,},$modules"
		-drive "file=$DOM0_IMG/disk.img,if=virtio,format=raw,snapshot=on"
		-drive "file=$GUEST_IMG/disk.img,if=virtio,format=raw,snapshot=on"
		-netdev "user,id=n0,restrict=on$forwards"
		-device "virtio-net-pci,netdev=n0,mac=$(mac_of "$host" 0)"
		${link[@]+"${link[@]}"}
	)
	printf '%q ' "${command[@]}" >"$dir/command"
	start_host "$host"
	echo "$flavour" >"$RUN/flavour"
}

# link_to_other DOM0: adds to the words for QEMU the network interface that the two
# hosts are joined by. Its frames go through sockets in $RUN; jumbo ones, so that RoCE
# has its packets of 4096 bytes and the guests' frames fit into VXLAN's.
link_to_other() {
	local other=dom0
	[ "$1" != dom0 ] || other=dom0b
	link=(
		-netdev "dgram,id=n1,local.type=unix,local.path=$RUN/link.$1,remote.type=unix,remote.path=$RUN/link.$other"
		-device "virtio-net-pci,netdev=n1,host_mtu=9000,mac=$(mac_of "$1" 1)"
	)
}

# start_host DOM0: as it was started before, too. The second host's keeper has the
# first's for its owner.
start_host() {
	local dir
	local -a command
	dir=$(dir_of "$1")
	eval "command=($(cat "$dir/command"))"
	rm -f "$dir/console.log"
	[ "$1" = dom0 ] || own "$dir" "$(cat "$RUN/keeper.pid")"
	SOFTIB_LAB=$LAB_NAME${dir#"$RUN"} setsid "${command[@]}" \
		</dev/null >"$dir/qemu.log" 2>&1 9>&- &
	echo $! >"$dir/keeper.pid"
}

# own FOLDER PID...: the host whose state is there ends when one of these processes does.
own() {
	local dir=$1 pid
	shift
	for pid in "$@"; do
		echo "$pid $(start_time "$pid")"
	done >"$dir/owner.new"
	mv "$dir/owner.new" "$dir/owner"
}

# own_lab PID...: the lab ends when one of these processes does.
own_lab() {
	own "$RUN" "$@"
}

# wait_for MACHINE WHAT LIMIT COMMAND...: waits for what a command finds, or for the end
# of the machine's host or of the limit.
wait_for() {
	local host what=$2 limit=$3 started dir
	host=$(dom0_of "$1")
	dir=$(dir_of "$host")
	shift 3
	started=$(date +%s)
	until "$@"; do
		if ! host_is_up "$host"; then
			tail -n 5 "$dir/qemu.log" >&2
			show_console_end "$host"
			die "QEMU ended while waiting for $what"
		fi
		if [ $(($(date +%s) - started)) -gt "$limit" ]; then
			show_console_end "$host"
			die "$what did not happen in $limit s; see $dir/console.log"
		fi
		sleep 0.3
	done
}

show_console_end() {
	local guest dir
	dir=$(dir_of "$1")
	show_end "$dir/console.log" tail -n 15 "$dir/console.log"
	for guest in $GUESTS; do
		[ "$(dom0_of "$guest")" = "$1" ] || continue
		show_end "the console of $guest" timeout 10 ssh -F "$RUN/ssh_config" "$1" -- \
			tail -n 8 "/var/log/xen/console/guest-$guest.log"
	done
}

show_end() {
	printf -- '--- the end of %s\n' "$1" >&2
	shift
	"$@" >&2 </dev/null || true
	printf -- '---\n' >&2
}

# console_has TEXT [DOM0]
console_has() {
	grep -qa "$1" "$(dir_of "${2:-dom0}")/console.log" 2>/dev/null
}

wait_for_dom0() {
	wait_for "$1" "$1's start" "$BOOT_LIMIT" console_has "labinit: dom0 is up" "$1"
	wait_for "$1" "$1's sshd" "$BOOT_LIMIT" answers "$1"
}

# A connection to a guest that does not listen yet would hang for seconds.
wait_for_guest() {
	wait_for "$1" "the start of $1" "$BOOT_LIMIT" \
		on_host "$(dom0_of "$1")" "lab-guest wait $1 20"
	wait_for "$1" "the sshd of $1" "$BOOT_LIMIT" answers "$1"
}

answers() {
	on_host "$1" true 2>/dev/null
}

on_host() {
	local host=$1
	shift
	ssh -F "$RUN/ssh_config" "$host" -- "$@" </dev/null
}

# Ends the shared connection to a host, if there is one.
hang_up() {
	if [ -S "$RUN/ssh-$1" ]; then
		ssh -F "$RUN/ssh_config" -O exit "$1" >/dev/null 2>&1 || true
		rm -f "$RUN/ssh-$1"
	fi
}

stop_lab() {
	local host
	for host in $DOM0S; do
		stop_host "$host"
	done
}

# stop_host DOM0: ends it, if it is there.
stop_host() {
	local machine keeper tries=100
	for machine in $(machines_of "$1"); do
		hang_up "$machine"
	done
	if host_is_up "$1"; then
		keeper=$(cat "$(dir_of "$1")/keeper.pid")
		kill -TERM "$keeper" 2>/dev/null || true
		while kill -0 "$keeper" 2>/dev/null; do
			tries=$((tries - 1))
			if [ "$tries" -eq 0 ]; then
				# QEMU dies with its keeper.
				kill -KILL "$keeper" 2>/dev/null || true
			fi
			sleep 0.1
		done
	fi
}
