# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# The running lab: QEMU with Xen, dom0 and the guests, and how to reach them.
# All state is in $RUN; nothing is listened on but ports of 127.0.0.1.

HOSTS="dom0 d1 d2"
GUESTS="d1 d2"
# Guests that only a suite starts which needs them; there is memory for them.
SPARES="d3 d4 d5"
SPARE_MEMORY=256
DOM0_MEMORY=1200
# How long the machines may take to come up, in seconds.
BOOT_LIMIT=${LAB_BOOT_LIMIT:-300}

is_up() {
	[ -s "$RUN/keeper.pid" ] && kill -0 "$(cat "$RUN/keeper.pid")" 2>/dev/null
}

need_up() {
	is_up || die "no lab is up; start one with tests/lab/lab up"
}

address_of() {
	case " $HOSTS $SPARES " in
	*" $1 "*) ;;
	*) die "there is no host $1, only: $HOSTS, and on demand: $SPARES" ;;
	esac
	case $1 in
	dom0) echo 10.0.2.15 ;;
	*) echo "10.0.2.$((15 + ${1#d}))" ;;
	esac
}

# type_of GUEST TYPES: the guest's word in a list such as "pv,pvh".
type_of() {
	case $1 in
	d1) echo "${2%%,*}" ;;
	d2) echo "${2#*,}" ;;
	*) echo pv ;;
	esac
}

# What a kernel of the lab starts without: parts that nobody uses here and that
# cost an emulated machine a tenth of a second each.
NO_INITCALLS=trace_eval_init,jent_mod_init,load_system_certificate_list
NO_INITCALLS+=,init_acpi_pm_clocksource

# kernel_words HOST DISK: the command line of a machine's kernel. Most of it is
# to spare an emulated machine work; the words in capitals are for image/init.c.
# Events that take long are no storm in a machine this slow.
kernel_words() {
	echo "console=hvc0 loglevel=5 net.ifnames=0 mitigations=off" \
		"init_on_alloc=0 audit=0 lsm=yama cryptomgr.notests" \
		"noreplace-smp initcall_blacklist=$NO_INITCALLS" \
		"xen.event_loop_timeout=250" \
		"LAB_NAME=$1 LAB_IP=$(address_of "$1") LAB_DISK=$2"
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
	echo "vif=[\"script=vif-lab,bridge=xenbr0,mac=00:16:3e:00:00:0${1#d}\"]"
	echo 'on_crash="preserve"'
	echo 'on_reboot="restart"'
}

# make_initrds TYPES MEMORY VCPUS: of what SoftIB built and the lab lays over the
# roots; the guests' is among dom0's files.
make_initrds() {
	local types=$1 memory=$2 vcpus=$3 guest lay=$RUN/lay
	rm -rf "$lay"
	mkdir -p "$lay/guest/files" "$lay/dom0/files/lab/started" \
		"$lay/dom0/files/lab/spare"
	cp -a "$GUEST_OUT/." "$lay/guest/files/"
	lay_files guest "$lay/guest/files"
	pack "$lay/guest" "$lay/guest.cpio"
	cat "$GUEST_IMG/initrd.cpio" "$lay/guest.cpio" >"$lay/dom0/files/lab/initrd"
	cp "$lay/dom0/files/lab/initrd" "$RUN/guest.initrd"
	for guest in $GUESTS; do
		guest_config "$guest" "$(type_of "$guest" "$types")" "$memory" "$vcpus" \
			>"$lay/dom0/files/lab/started/$guest.cfg"
	done
	for guest in $SPARES; do
		guest_config "$guest" "$(type_of "$guest" "$types")" "$SPARE_MEMORY" 1 \
			>"$lay/dom0/files/lab/spare/$guest.cfg"
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
	read -r -a ports < <(python3 -c '
import socket
held = [socket.socket() for _ in range(6)]
for s in held:
    s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in held])')
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
	version=$(qemu-system-x86_64 --version 2>/dev/null |
		sed -n 's/.*version \([0-9.]*\).*/\1/p')
	if [ -n "$version" ] && dpkg --compare-versions "$version" ge "$QEMU_MIN"; then
		QEMU_ROOT=/
	fi
}

start_qemu() {
	local flavour=$1 memory=$2 host forwards= xen_words="vmri=1" dom0_words
	local -a accel
	find_qemu
	[ "$flavour" != silo ] || xen_words+=" xsm=silo"
	for host in $HOSTS $SPARES; do
		forwards+=",hostfwd=tcp:127.0.0.1:$(cat "$RUN/port.$host")-$(address_of "$host"):22"
	done
	if grep -qwE 'vmx|svm' /proc/cpuinfo && [ -w /dev/kvm ]; then
		accel=(-accel kvm -cpu host)
	else
		# With xsave the guests' vector registers go wrong in emulation.
		accel=(-accel "tcg,thread=multi" -cpu "max,-la57,-rdtscp,-xsave")
		# Memory is fresh, and nobody speculates.
		xen_words+=" bootscrub=0 spec-ctrl=no"
	fi
	dom0_words=$(kernel_words dom0 /dev/vda)
	mkdir -p "$CACHE/tmp"
	# A comma in the words of a module is written twice.
	setsid "$LAB_LIB/keeper.sh" "$QEMU_ROOT" "$CACHE:$CACHE" "$RUN:$RUN" -- \
		setpriv --pdeathsig KILL -- \
		env TMPDIR="$CACHE/tmp" qemu-system-x86_64 \
		"${accel[@]}" -smp 2 \
		-m "$((DOM0_MEMORY + 2 * memory + 3 * SPARE_MEMORY + 400))M" \
		-name "softib-lab-$LAB_NAME" -display none -no-reboot -nodefaults \
		-serial "file:$RUN/console.log" \
		-qmp "unix:$RUN/qmp,server=on,wait=off" \
		-kernel "$RUN/xen" \
		-append "console=com1 com1=115200,8n1 dom0_mem=${DOM0_MEMORY}M,max:${DOM0_MEMORY}M loglvl=all guest_loglvl=all noreboot $xen_words" \
		-initrd "$DOM0_IMG/vmlinux ${dom0_words//,/,,},$RUN/dom0.initrd" \
		-drive "file=$DOM0_IMG/disk.img,if=virtio,format=raw,snapshot=on" \
		-drive "file=$GUEST_IMG/disk.img,if=virtio,format=raw,snapshot=on" \
		-netdev "user,id=n0,restrict=on$forwards" \
		-device virtio-net-pci,netdev=n0 \
		</dev/null >"$RUN/qemu.log" 2>&1 9>&- &
	echo $! >"$RUN/keeper.pid"
	echo "$flavour" >"$RUN/flavour"
}

# own_lab PID...: the lab ends when one of these processes does.
own_lab() {
	local pid
	for pid in "$@"; do
		echo "$pid $(start_time "$pid")"
	done >"$RUN/owner.new"
	mv "$RUN/owner.new" "$RUN/owner"
}

# Waits for what a command finds, or for the end of QEMU or of the limit.
wait_for() {
	local what=$1 limit=$2 started
	shift 2
	started=$(date +%s)
	until "$@"; do
		if ! is_up; then
			tail -n 5 "$RUN/qemu.log" >&2
			show_console_end
			die "QEMU ended while waiting for $what"
		fi
		if [ $(($(date +%s) - started)) -gt "$limit" ]; then
			show_console_end
			die "$what did not happen in $limit s; see $RUN/console.log"
		fi
		sleep 0.3
	done
}

show_console_end() {
	local guest
	show_end "$RUN/console.log" tail -n 15 "$RUN/console.log"
	for guest in $GUESTS; do
		show_end "the console of $guest" timeout 10 ssh -F "$RUN/ssh_config" dom0 -- \
			tail -n 8 "/var/log/xen/console/guest-$guest.log"
	done
}

show_end() {
	printf -- '--- the end of %s\n' "$1" >&2
	shift
	"$@" >&2 </dev/null || true
	printf -- '---\n' >&2
}

console_has() {
	grep -qa "$1" "$RUN/console.log" 2>/dev/null
}

# A connection to a guest that does not listen yet would hang for seconds.
wait_for_guest() {
	wait_for "the start of $1" "$BOOT_LIMIT" on_host dom0 "lab-guest wait $1 20"
	wait_for "the sshd of $1" "$BOOT_LIMIT" answers "$1"
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
	local host keeper tries=100
	for host in $HOSTS $SPARES; do
		hang_up "$host"
	done
	if is_up; then
		keeper=$(cat "$RUN/keeper.pid")
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
