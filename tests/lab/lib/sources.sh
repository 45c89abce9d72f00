# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Gets the upstream tarballs of Xen and rdma-core as Debian ships them, checks
# their sums, and unpacks them into the cache.

get_sources() {
	XEN_TAR=$CACHE/dl/xen_${XEN_VERSION%-*}.orig.tar.xz
	RDMA_TAR=$CACHE/dl/rdma-core_$RDMA_CORE_VERSION.orig.tar.gz
	XEN_SRC=$CACHE/src/xen-${XEN_SHA256:0:12}
	RDMA_SRC=$CACHE/src/rdma-core-${RDMA_CORE_SHA256:0:12}
	get_tarball "$XEN_TAR" "$XEN_SHA256" "$DOM0" "xen=$XEN_VERSION"
	get_tarball "$RDMA_TAR" "$RDMA_CORE_SHA256" "$GUEST" rdma-core
	unpack "$XEN_TAR" "$XEN_SRC"
	unpack "$RDMA_TAR" "$RDMA_SRC"
}

# get_tarball FILE SHA256 ROOT SOURCE-PACKAGE
get_tarball() {
	local file=$1
	if [ -e "$file" ]; then
		return 0
	fi
	say "getting the source $(basename "$file")"
	mkdir -p "$CACHE/dl"
	logged "get-$(basename "$file")" download "$@"
}

# The package's own apt, with the root's archives as sources of source. Only
# the upstream tarball is taken: the archive does not serve every other part.
download() {
	local file=$1 sum=$2 root=$3 package=$4 name got
	name=$(basename "$file")
	mkdir -p "$CACHE/dl"
	retry in_root "$root" "$CACHE/dl:/mnt" -- sh -ec '
		cd /tmp
		mkdir -p lists/partial
		sed "s/^deb /deb-src /" /etc/apt/sources.list >src.list
		apt_get() {
			apt-get -q -o Dir::Etc::sourcelist=/tmp/src.list \
				-o Dir::Etc::sourceparts=/dev/null \
				-o Dir::State::lists=/tmp/lists \
				-o Acquire::Retries=5 "$@"
		}
		apt_get update
		apt_get source --print-uris "$1" >uris ||
			{ echo "the archive has no source $1"; exit 1; }
		uri=$(tr -d "\047" <uris | while read -r uri file rest; do
			[ "$file" != "$2" ] || echo "$uri"
		done)
		[ -n "$uri" ] || { cat uris; echo "$1 has no $2"; exit 1; }
		/usr/lib/apt/apt-helper -o Acquire::Retries=5 \
			download-file "$uri" "/mnt/$2.new"
	' sh "$package" "$name"
	got=$(sha256sum "$file.new" | cut -d' ' -f1)
	if [ "$got" != "$sum" ]; then
		echo "$name has the sum $got, but Config.mk says $sum"
		rm -f "$file.new"
		return 1
	fi
	mv "$file.new" "$file"
}

unpack() {
	if [ ! -e "$2" ]; then
		rm -rf "$2.new"
		mkdir -p "$2.new"
		tar -xf "$1" -C "$2.new" --strip-components=1 --no-same-owner
		mv "$2.new" "$2"
	fi
	touch "$2"
	prune "${2%-*}" "$2"
}
