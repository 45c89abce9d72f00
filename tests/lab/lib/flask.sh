# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# The policies of a lab under flask: Xen's example with our patch, and one that is the
# same until somebody changes its booleans, which take dom0's permissions away.

# Sets POLICIES, a folder with "example" and "revocable".
make_policies() {
	POLICIES=$OUT/policies-$(key_of "$LAB_LIB/flask.sh" "$LAB_DIR/roots/policy.list" \
		"$TREE/xen/patches" -- "$XEN_SHA256" "$(basename "$BUILD13")")
	if [ ! -e "$POLICIES" ]; then
		say "compiling policies for flask"
		logged policies compile_policies "$POLICIES"
	fi
	touch "$POLICIES"
	prune "$OUT/policies" "$POLICIES"
}

compile_policies() {
	local out=$1 stage=$BUILD/xen-stage tools=$BUILD/policy-tools
	stage_xen debug "$stage"
	rm -rf "$tools" "$out.new"
	mkdir -p "$tools" "$out.new"
	# shellcheck disable=SC2046 # a list of packages
	unpack_packages "$BUILD13" "$tools" $(packages_in "$LAB_DIR/roots/policy.list")
	compile_policy "$stage" "$tools" "$out.new/example"
	make_revocable "$stage/tools/flask/policy/modules/dom0.te"
	compile_policy "$stage" "$tools" "$out.new/revocable"
	mv "$out.new" "$out"
}

# compile_policy STAGE TOOLS FILE: by Xen's own makefile, without what it asks of tools
# that are not needed for it.
compile_policy() {
	# shellcheck disable=SC2016 # expanded there
	in_root "$BUILD13" "$1:/mnt" "$2:/opt" -- sh -ec '
		cd /mnt/tools/flask/policy
		export LD_LIBRARY_PATH=$(echo /opt/usr/lib/*-linux-gnu)
		mkdir -p /tmp/out
		make -f Makefile.common FLASK_BUILD_DIR=/tmp/out XEN_FULLVERSION=lab \
			CHECKPOLICY=/opt/usr/bin/checkpolicy M4=/opt/usr/bin/m4 >&2
		cat /tmp/out/xenpolicy-lab
	' >"$3"
}

# make_revocable DOM0.TE: each permission of dom0's goes with a boolean, vmri_PERMISSION,
# and those over guests of isolated_domU_t with another, vmri_isolated.
make_revocable() {
	local permission permissions
	permissions=$(sed -n 's/^allow dom0_t xen_t:vmri { *\(.*[^ ]\) *};$/\1/p' "$1")
	[ -n "$permissions" ] || {
		echo "$1 gives dom0 no permission of VMRI's"
		return 1
	}
	sed -i '/^allow dom0_t [a-z_]*:vmri /d' "$1"
	{
		echo 'gen_bool(vmri_isolated, true)'
		for permission in $permissions; do
			cat <<-RULES
				gen_bool(vmri_$permission, true)
				if (vmri_$permission) {
					allow dom0_t xen_t:vmri $permission;
					allow dom0_t { domain_type -isolated_domU_t }:vmri $permission;
				}
				if (vmri_$permission && vmri_isolated) {
					allow dom0_t isolated_domU_t:vmri $permission;
				}
			RULES
		done
	} >>"$1"
}
