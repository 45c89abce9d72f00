# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# The Debian roots: what dom0 and the guests run, and what builds for them.
# Each is made from its list of packages and cached by that list's key.

suite_of() {
	case $1 in
	dom0 | build12) echo "$DOM0_SUITE" ;;
	guest | build13) echo "$GUEST_SUITE" ;;
	esac
}

root_path() {
	local key
	key=$(key_of "$LAB_DIR/roots/$1.list" -- "$(suite_of "$1")" \
		"$KERNEL_MIN" "$(declare -f bootstrap_once)")
	echo "$CACHE/roots/$1-$key"
}

# What the host itself must have, from Debian.
need_host_tools() {
	local tool missing=
	for tool in mmdebstrap:mmdebstrap rsync:rsync cpio:cpio xz:xz-utils \
		ssh:openssh-client ssh-keygen:openssh-client \
		/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring \
		curl:curl python3:python3-minimal; do
		if ! type -P "${tool%%:*}" >/dev/null && [ ! -e "${tool%%:*}" ]; then
			missing+=" ${tool##*:}"
		fi
	done
	if [ -n "$missing" ]; then
		command -v apt-get >/dev/null ||
			die "needs a Debian host: apt-get is missing, and so are:$missing"
		say "installing on this host:$missing"
		logged host-tools install_on_host "$missing"
	fi
}

install_on_host() {
	export DEBIAN_FRONTEND=noninteractive
	retry apt-get -q -o Acquire::Retries=5 update
	# shellcheck disable=SC2086 # a list of packages
	retry apt-get -q -y -o Acquire::Retries=5 install \
		--no-install-recommends $1
}

# Makes the root $1 unless the cache has it.
make_root() {
	local name=$1 dir
	dir=$(root_path "$name")
	if [ -e "$dir" ]; then
		touch "$dir"
		return 0
	fi
	say "making the $name root from Debian $(suite_of "$name") packages"
	mkdir -p "$CACHE/roots"
	logged "root-$name" bootstrap "$name" "$dir"
	prune "$CACHE/roots/$name" "$dir"
}

bootstrap() {
	local name=$1 dir=$2 packages
	packages=$(grep -v '^#' "$LAB_DIR/roots/$name.list" | paste -sd,)
	retry bootstrap_once "$(suite_of "$name")" "$dir.new" "$packages"
	check_kernel "$dir.new"
	mv "$dir.new" "$dir"
}

# The program, in a mount namespace of its own: what it mounts in a root goes
# with it, also when it is interrupted.
mmdebstrap() {
	unshare --mount --propagation private mmdebstrap "$@"
}

# No mirror is named: mmdebstrap then takes the archive's default address and
# adds the updates and the security suite. The lab makes its own initrds, so
# the hooks of the kernel packages are left out.
bootstrap_once() {
	rm -rf --one-file-system "$2"
	mmdebstrap --mode=root --variant=minbase \
		--aptopt='Acquire::Retries "5"' \
		--aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='path-exclude=/etc/kernel/postinst.d/*' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--include="$3" "$1" "$2"
}

# unpack_packages ROOT FOLDER PACKAGE...: only the files of packages of a root's Debian.
unpack_packages() {
	local root=$1 folder=$2
	shift 2
	retry in_root "$root" "$folder:/mnt" -- sh -ec '
		mkdir -p /tmp/lists/partial /tmp/debs
		cd /tmp/debs
		apt_get() {
			apt-get -q -o Dir::State::lists=/tmp/lists \
				-o APT::Sandbox::User=root -o Acquire::Retries=5 "$@"
		}
		apt_get update
		apt_get download "$@"
		for package in *.deb; do
			dpkg-deb -x "$package" /mnt
		done
	' sh "$@"
	rm -rf "$folder"/usr/share/{doc,man,locale}
}

# packages_in LIST: the packages that it names.
packages_in() {
	grep -v '^#' "$1" | paste -sd' '
}

check_kernel() {
	local found
	found=$(chroot "$1" dpkg-query -W -f '${Package} ${Version}\n' \
		'linux-image-6*' 2>/dev/null | awk 'NF == 2 {print $2}' | tail -n 1) ||
		return 0
	if [ -n "$found" ] && dpkg --compare-versions "$found" lt "$KERNEL_MIN"; then
		echo "the archive's kernel is $found, but $KERNEL_MIN is needed"
		return 1
	fi
}

# The name of the kernel in a root.
kernel_of() {
	local dir
	for dir in "$1"/lib/modules/*/kernel; do
		basename "$(dirname "$dir")"
	done | tail -n 1
}

# Makes all roots, two at a time since a machine may have two cores. A kernel and
# its headers must be of one version; an archive that moved on between the two makes
# both anew.
make_roots() {
	together make_dom0_side make_guest_side
	DOM0=$(root_path dom0)
	GUEST=$(root_path guest)
	BUILD12=$(root_path build12)
	BUILD13=$(root_path build13)
	if ! has_headers "$BUILD12" "$DOM0" || ! has_headers "$BUILD13" "$GUEST"; then
		say "the headers are not those of the kernels: again"
		rm -rf --one-file-system "$DOM0" "$BUILD12" "$GUEST" "$BUILD13"
		together make_dom0_side make_guest_side
		if ! has_headers "$BUILD12" "$DOM0" || ! has_headers "$BUILD13" "$GUEST"; then
			die "the archive has no headers for its kernels"
		fi
	fi
	DOM0_KERNEL=$(kernel_of "$DOM0")
	GUEST_KERNEL=$(kernel_of "$GUEST")
	export DOM0 GUEST BUILD12 BUILD13 DOM0_KERNEL GUEST_KERNEL
}

# has_headers BUILD_ROOT ROOT: those of the other's kernel.
has_headers() {
	[ -L "$1/lib/modules/$(kernel_of "$2")/build" ]
}

make_dom0_side() {
	make_root dom0
	make_root build12
}

make_guest_side() {
	make_root guest
	make_root build13
}
