# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What only the conformance suites need in the guests: UCX, libfabric, and
# rdma-core's own tests. It is got and laid over a running guest when a suite asks,
# so that it costs nobody else anything.

# Sets EXTRAS, a folder whose contents belong over the root of a guest.
make_extras() {
	EXTRAS=$CACHE/out/extras-$(key_of "$LAB_DIR/roots/extras.list" \
		"$LAB_LIB/extras.sh" -- "$(basename "$GUEST") $RDMA_CORE_SHA256")
	if [ ! -e "$EXTRAS" ]; then
		say "getting UCX, libfabric and rdma-core's tests"
		logged extras collect_extras "$EXTRAS"
	fi
	touch "$EXTRAS"
	prune "$CACHE/out/extras" "$EXTRAS"
}

collect_extras() {
	local out=$1 packages
	packages=$(grep -v '^#' "$LAB_DIR/roots/extras.list" | paste -sd' ')
	rm -rf "$out.new"
	mkdir -p "$out.new"
	retry in_root "$GUEST" "$out.new:/mnt" -- sh -ec '
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
	' sh $packages
	# Other programs and languages; and UCX would load what is for hardware that
	# no guest has, and complain.
	rm -rf "$out.new"/usr/share \
		"$out.new"/usr/bin/{goperftest,io_demo,ucx_vfs,*daemon,ucx_read_profile} \
		"$out.new"/usr/lib/*/{openmpi,liboshmem*,libprrte*,libmpi_*} \
		"$out.new"/usr/lib/*/ucx/*{rocm,fuse}*
	mkdir -p "$out.new/usr/local/lib/rdma-core"
	cp -a "$RDMA_SRC/tests" "$out.new/usr/local/lib/rdma-core/"
	check_libraries "$out.new"
	mv "$out.new" "$out"
}

# Nothing that the programs are linked with is missing.
check_libraries() {
	in_root "$GUEST" "$1:/mnt" -- sh -ec '
		cd /mnt/usr
		export LD_LIBRARY_PATH=$(echo /mnt/usr/lib/*-linux-gnu)
		for file in bin/*; do
			ldd "$file" | sed -n "s|^.*not found.*|$file: &|p"
		done
	' >"$1.missing"
	cat "$1.missing"
	[ ! -s "$1.missing" ] || return 1
	rm "$1.missing"
}

# lab_extras HOST...: lays them over guests that do not have them yet.
lab_extras() {
	local host
	need_up
	take_lock
	make_roots
	get_sources
	make_extras
	drop_lock
	for host in "$@"; do
		address_of "$host" >/dev/null
		if ! on_host "$host" "grep -qsx $(basename "$EXTRAS") /run/extras"; then
			say "laying the extras over $host"
			lay_over "$host" "$EXTRAS"
			on_host "$host" "ldconfig && echo $(basename "$EXTRAS") >/run/extras"
		fi
	done
}
