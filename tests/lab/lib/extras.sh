# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# What only some suites need in the guests, in sets: the packages of a set stand in
# roots/extras-SET.list. It is got and laid over a running guest when a suite asks, so
# that it costs nobody else anything. Of packages only their files are taken: a list
# names the libraries, too, that the guests' root lacks. A set whose name begins with
# "dom0-" is of dom0's Debian, and for dom0.

# root_of_extras SET: the root over which it belongs.
root_of_extras() {
	case $1 in
	dom0-*) echo "$DOM0" ;;
	*) echo "$GUEST" ;;
	esac
}

# packages_of_extras SET: the root whose Debian has its packages.
packages_of_extras() {
	case $1 in
	udapl) echo "$DOM0" ;;
	*) root_of_extras "$1" ;;
	esac
}

# sources_of SET: what beside packages a set is made of.
sources_of() {
	echo "$LAB_DIR/roots/extras-$1.list" "$LAB_LIB/extras.sh"
	case $1 in
	dom0-cluster) echo "$TREE"/tools/{vmri-fabricd,xl-vmri} "$TREE/include/vmri" ;;
	mpi) echo "$LAB_DIR/progs-mpi" "$TREE/packaging/openmpi" ;;
	udapl) echo "$TREE/packaging/dapl" ;;
	vchan) echo "$LAB_DIR/progs-vchan" ;;
	esac
}

# extras_of SET: sets EXTRAS, a folder whose contents belong over a root.
extras_of() {
	local set=$1 list=$LAB_DIR/roots/extras-$1.list
	[ -e "$list" ] || die "there is no set of extras $set, only: $(extra_sets)"
	# shellcheck disable=SC2046 # paths without odd characters
	EXTRAS=$CACHE/out/extras-$set-$(key_of $(sources_of "$set") -- \
		"$(basename "$(packages_of_extras "$set")") $RDMA_CORE_SHA256")
	if [ ! -e "$EXTRAS" ]; then
		say "getting the extras \"$set\""
		logged "extras-$set" collect_extras "$set" "$list" "$EXTRAS"
	fi
	touch "$EXTRAS"
	prune "$CACHE/out/extras-$set" "$EXTRAS"
}

extra_sets() {
	local list
	for list in "$LAB_DIR"/roots/extras-*.list; do
		list=${list##*/extras-}
		echo "${list%.list}"
	done | paste -sd' '
}

collect_extras() {
	local set=$1 out=$3 root
	root=$(root_of_extras "$set")
	rm -rf "$out.new"
	mkdir -p "$out.new"
	# shellcheck disable=SC2046 # a list of packages
	unpack_packages "$(packages_of_extras "$set")" "$out.new" $(packages_in "$2")
	if [ "$(type -t "finish_$set")" = function ]; then
		"finish_$set" "$out.new"
	fi
	check_libraries "$root" "$out.new"
	mv "$out.new" "$out"
}

# Without other programs and languages; and UCX would load what is for hardware that
# no guest has, and complain. With rdma-core's own tests.
finish_conformance() {
	rm -rf "$1"/usr/share \
		"$1"/usr/bin/{goperftest,io_demo,ucx_vfs,*daemon,ucx_read_profile} \
		"$1"/usr/lib/*/{openmpi,liboshmem*,libprrte*,libmpi_*} \
		"$1"/usr/lib/*/ucx/*{rocm,fuse}*
	mkdir -p "$1/usr/local/lib/rdma-core"
	cp -a "$RDMA_SRC/tests" "$1/usr/local/lib/rdma-core/"
}

# Our MPI programs, built for both libraries; then without headers, other languages and
# hwloc's plugins for graphics. With our parameters for Open MPI.
finish_mpi() {
	build_mpi_programs "$1" openmpi mpi
	build_mpi_programs "$1" mpich mpich
	rm -rf "$1"/usr/include "$1"/usr/lib/*/{*.a,fortran,mpich/lib/*.a} \
		"$1"/usr/lib/*/{openmpi,mpich}/include "$1"/usr/lib/*/ucx/*{rocm,fuse}* \
		"$1"/usr/lib/*/{hwloc,libmpichcxx*,libmpichf*,liboshmem*} \
		"$1"/usr/lib/*/libmpi_{mpifh,usempi,java}* \
		"$1"/usr/bin/{hwloc-*,lstopo*,osh*,pterm*,*f77*,*f90*,*fort*,*cxx*,*++*,*CC*}
	install -D -m 644 -t "$1/usr/share/openmpi/amca-param-sets" \
		"$TREE"/packaging/openmpi/*.conf
}

# build_mpi_programs FOLDER MPI LIBRARY
build_mpi_programs() {
	# shellcheck disable=SC2016 # expanded there
	in_root "$BUILD13" "$1:/mnt" "$TREE:/srv:ro" -- sh -ec '
		lib=$(echo /mnt/usr/lib/*-linux-gnu)
		make -s -C /srv/tests/lab/progs-mpi OUT=/tmp/progs MPI="$1" \
			MPI_CFLAGS="-I$lib/$1/include" \
			MPI_LIBS="-L$lib/$1/lib -L$lib -l$2 -Wl,--allow-shlib-undefined" \
			install DESTDIR=/mnt
	' sh "$2" "$3"
}

# Without what is for another way to tell nfsd than the suite has.
finish_storage() {
	rm -f "$1"/usr/sbin/{nfsdctl,nfsdclddb,nfsdclnts,nfsiostat,mountstats}
}

# Our dat.conf in place of the packages'.
finish_udapl() {
	install -D -m 644 "$TREE/packaging/dapl/dat.conf" "$1/etc/dat.conf"
}

# Our program alone, with Xen's libraries in it.
finish_vchan() {
	in_root "$BUILD13" "$1:/mnt" "$TREE:/srv:ro" -- \
		make -s -C /srv/tests/lab/progs-vchan OUT=/tmp/progs XEN=/mnt/usr \
		install DESTDIR=/mnt
	rm -rf "$1"/usr/{include,lib,share}
}

# vmri-fabricd built and installed, and of etcd its program alone, which no service starts.
finish_dom0-cluster() {
	in_root "$BUILD12" "$1:/mnt" "$TREE:/srv:ro" -- sh -ec '
		lib=$(echo /mnt/usr/lib/*-linux-gnu)
		make -s -C /srv/tools/vmri-fabricd OUT=/tmp/fabricd DESTDIR=/mnt install \
			CFLAGS="-O2 -isystem /mnt/usr/include -isystem /mnt/usr/include/${lib##*/}" \
			LDFLAGS="-L$lib -Wl,--allow-shlib-undefined"
	'
	rm -rf "$1"/{lib,etc/{default,init.d}} "$1"/usr/{include,share} \
		"$1"/usr/bin/*-config "$1"/usr/lib/{systemd,*/*.a,*/pkgconfig}
}

finish_dom0-wire() {
	merge_usr "$1"
}

finish_dom0-storage() {
	merge_usr "$1"
}

# merge_usr FOLDER: a file is where it was before /lib and /sbin were merged into /usr.
merge_usr() {
	local folder
	for folder in lib sbin; do
		[ -d "$1/$folder" ] || continue
		mkdir -p "$1/usr/$folder"
		cp -a "$1/$folder/." "$1/usr/$folder/"
		rm -rf "${1:?}/$folder"
	done
}

# check_libraries ROOT FOLDER: nothing that the programs are linked with is missing.
check_libraries() {
	in_root "$1" "$2:/mnt" -- sh -ec '
		cd /mnt/usr
		export LD_LIBRARY_PATH=$(echo /mnt/usr/lib/*-linux-gnu | sed "s|.*|&:&/ceph|")
		for file in bin/* sbin/*; do
			[ -e "$file" ] || continue
			ldd "$file" 2>/dev/null | sed -n "s|^.*not found.*|$file: &|p"
		done
	' >"$2.missing"
	cat "$2.missing"
	[ ! -s "$2.missing" ] || return 1
	rm "$2.missing"
}

# make_room GUEST MIB: files that lie over a root are in the guest's memory. Where sets
# of earlier suites leave too little of it, the guest is started anew, without them.
make_room() {
	local left
	[ "$(dom0_of "$1")" != "$1" ] || return 0
	left=$(on_host "$1" "[ ! -e /run/extras ] ||
		awk '/^MemAvailable:/ { print int(\$2 / 1024) }' /proc/meminfo")
	if [ -n "$left" ] && [ $((left - $2)) -lt "$LEAST_MEMORY" ]; then
		say "$1 has $left MiB left, too little for $2 more; it starts anew"
		lab_restart_guest "$1"
	fi
}

# lab_extras SET HOST...: lays a set over guests that do not have it yet, all at once.
lab_extras() {
	local host job set=$1 rc=0
	local -a jobs=()
	shift
	need_up
	for host in "$@"; do
		address_of "$host" >/dev/null
	done
	take_lock
	make_roots
	get_sources
	extras_of "$set"
	drop_lock
	# One after the other, as guests are started elsewhere.
	for host in "$@"; do
		has_extras "$host" || make_room "$host" "$(du -sm "$EXTRAS" | cut -f 1)"
	done
	for host in "$@"; do
		lay_extras "$set" "$host" &
		jobs+=("$!")
	done
	for job in "${jobs[@]}"; do
		wait "$job" || rc=1
	done
	return "$rc"
}

has_extras() {
	on_host "$1" "grep -qsx $(basename "$EXTRAS") /run/extras"
}

lay_extras() {
	local set=$1 host=$2 name
	name=$(basename "$EXTRAS")
	if ! has_extras "$host"; then
		say "laying the extras \"$set\" over $host"
		lay_over "$host" "$EXTRAS"
		on_host "$host" "ldconfig && echo $name >>/run/extras"
	fi
}
