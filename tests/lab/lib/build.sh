# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Builds Xen, and whatever of SoftIB is in the tree. Each build has a tree of
# its own in the cache, into which only changed files are copied, so that an
# edit costs one compiler run; what comes out is cached by the key of all that
# went in. The work tree stays clean.

OUT=$CACHE/out
BUILD=$CACHE/build

# Copies files whose contents changed, and gives those a new time.
sync_into() {
	rsync -rlp --checksum "$@"
}

# Sets XEN_OUT, the folder with the hypervisor of flavour $1.
build_xen() {
	local flavour=$1 key
	# The same hypervisor, started with other words.
	case $flavour in
	silo | flask) flavour=debug ;;
	esac
	local -a ours=("$LAB_DIR/xen-config/common" "$LAB_DIR/xen-config/$flavour")
	if [ "$flavour" != plain ]; then
		ours+=("$TREE/xen" "$TREE/include/vmri")
	fi
	key=$(key_of "${ours[@]}" -- \
		"$XEN_SHA256" "$(basename "$BUILD13")" "$flavour")
	XEN_OUT=$OUT/xen-$flavour-$key
	if [ ! -e "$XEN_OUT" ]; then
		say "building Xen ($flavour)"
		logged "xen-$flavour" compile_xen "$flavour" "$XEN_OUT"
	fi
	touch "$XEN_OUT"
	prune "$OUT/xen-$flavour" "$XEN_OUT"
}

compile_xen() {
	local flavour=$1 out=$2 work=$BUILD/xen-$1
	stage_xen "$flavour" "$BUILD/xen-stage"
	mkdir -p "$work"
	sync_into --exclude=/.config "$BUILD/xen-stage/" "$work/"
	if [ -d "$BUILD/xen-stage/xen/common/vmri" ]; then
		sync_into --delete --include='*/' --include='*.[chS]' \
			--include=Makefile --include=Kconfig --exclude='*' \
			"$BUILD/xen-stage/xen/common/vmri/" "$work/xen/common/vmri/"
	fi
	in_root "$BUILD13" "$work:/mnt" -- sh -ec '
		cd /mnt/xen
		export XEN_TARGET_ARCH=x86_64
		sum=$(find . -name "Kconfig*" | sort | xargs cat /mnt/lab.config |
			sha256sum)
		if [ "$sum" != "$(cat .lab.sum 2>/dev/null)" ]; then
			make -s defconfig
			cat /mnt/lab.config >>.config
			make -s olddefconfig
			echo "$sum" >.lab.sum
		fi
		nice make -j"$(nproc)"
		while read -r line; do
			case $line in
			CONFIG_*) grep -qxF "$line" .config ||
				echo "note: Xen has no $line" ;;
			esac
		done </mnt/lab.config
	'
	rm -rf "$out.new"
	mkdir -p "$out.new"
	cp "$work/xen/xen" "$work/xen/xen-syms" "$out.new/"
	mv "$out.new" "$out"
}

# The tarball, the patches, and VMRI's real files in their places. The flavour
# "plain" is Xen as it came.
stage_xen() {
	local flavour=$1 stage=$2 patch
	rm -rf "$stage"
	mkdir -p "$stage"
	rsync -rlpt --exclude=/stubdom --exclude=/automation \
		"$XEN_SRC/" "$stage/"
	if [ "$flavour" != plain ]; then
		for patch in "$TREE/xen/patches/$XEN_SERIES"/*.patch; do
			echo "applying $patch"
			patch -d "$stage" -p1 --forward --fuzz=0 <"$patch"
		done
		rsync -rlp "$TREE/xen/vmri/" "$stage/xen/common/vmri/"
		rsync -rlp "$TREE/include/vmri/" "$stage/xen/include/vmri/"
	fi
	cat "$LAB_DIR/xen-config/common" "$LAB_DIR/xen-config/$flavour" \
		>"$stage/lab.config"
}

# The folders of the tree that the parts below are built from.
PARTS="include linux libsoftib libsdp tools tests/lab/modules tests/lab/progs"

# Builds the driver, the provider, the tool and the tests' own programs, as far
# as they are in the tree. Sets GUEST_OUT and DOM0_OUT: folders whose contents
# belong over the roots of a guest and of dom0.
build_parts() {
	local key part
	local -a paths=()
	for part in $PARTS; do
		paths+=("$TREE/$part")
	done
	key=$(key_of "${paths[@]}" "$LAB_LIB/build.sh" "$LAB_LIB/parts.sh" -- \
		"$(basename "$BUILD13") $(basename "$BUILD12")" \
		"$(basename "$GUEST") $(basename "$DOM0") $RDMA_CORE_SHA256")
	GUEST_OUT=$OUT/parts-$key/guest
	DOM0_OUT=$OUT/parts-$key/dom0
	if [ ! -e "$OUT/parts-$key" ]; then
		say "building what the guests and dom0 get"
		logged parts compile_parts "$OUT/parts-$key"
	fi
	touch "$OUT/parts-$key"
	prune "$OUT/parts" "$OUT/parts-$key"
}

compile_parts() {
	local out=$1 work=$BUILD/parts
	rm -rf "$out.new"
	mkdir -p "$out.new/guest" "$out.new/dom0"
	stage_parts "$work"
	stage_parts "$work-dom0"
	if [ -e "$work/libsoftib/Makefile" ]; then
		make_kernel_abi
	fi
	in_root "$BUILD13" "$work:/mnt" "$CACHE:$CACHE" "$LAB_LIB:/srv:ro" -- \
		sh -e /srv/parts.sh guest /mnt "$out.new/guest" \
		"$GUEST_KERNEL" "$GUEST" "$RDMA_SRC" "$BUILD/kabi/include"
	in_root "$BUILD12" "$work-dom0:/mnt" "$CACHE:$CACHE" "$LAB_LIB:/srv:ro" -- \
		sh -e /srv/parts.sh dom0 /mnt "$out.new/dom0" "$DOM0_KERNEL"
	if [ -d "$out.new/guest/usr/lib/modules" ]; then
		index_modules "$out.new/guest/usr/lib/modules/$GUEST_KERNEL"
	fi
	mv "$out.new" "$out"
}

# stage_parts FOLDER: a copy of the parts to build in, for one kernel.
stage_parts() {
	local work=$1 part
	mkdir -p "$work"
	for part in $PARTS; do
		if [ -d "$TREE/$part" ]; then
			mkdir -p "$work/$part"
			# What is excluded is what was built here: it stays.
			sync_into --delete --exclude='*.o' --exclude='*.ko' \
				--exclude='.*' --exclude='*.mod' --exclude='*.mod.c' \
				--exclude=Module.symvers --exclude=modules.order \
				"$TREE/$part/" "$work/$part/"
		else
			rm -rf "${work:?}/$part"
		fi
	done
}

# The index of the guest's modules with ours among them: depmod takes a quarter
# of a minute in an emulated guest.
index_modules() {
	in_root "$GUEST" "$1/updates:/usr/lib/modules/$GUEST_KERNEL/updates" \
		"$1:/mnt" -- sh -ec '
		mkdir -p /tmp/out
		depmod -o /tmp/out "$1"
		cp /tmp/out/lib/modules/"$1"/modules.*.bin /mnt/
	' sh "$GUEST_KERNEL"
}

# rdma-core's generated headers.
make_kernel_abi() {
	local stamp
	stamp=$(basename "$RDMA_SRC")-$(basename "$BUILD13")
	if [ "$(cat "$BUILD/kabi/stamp" 2>/dev/null)" != "$stamp" ]; then
		rm -rf "$BUILD/kabi"
		mkdir -p "$BUILD/kabi"
		in_root "$BUILD13" "$CACHE:$CACHE" -- sh -ec '
			cmake -S "$1" -B "$2" -GNinja -DENABLE_RESOLVE_NEIGH=0 \
				-DNO_PYVERBS=1 -DNO_MAN_PAGES=1
			ninja -C "$2" kern-abi
		' sh "$RDMA_SRC" "$BUILD/kabi"
		echo "$stamp" >"$BUILD/kabi/stamp"
	fi
}
