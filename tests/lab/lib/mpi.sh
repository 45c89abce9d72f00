# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# For suites that run MPI programs in the guests, included after suite.sh.
#
# A way is how the ranks reach each other:
#   ompi-rc, ompi-ud     Open MPI over UCX's RC and UD transports
#   ompi-ofi             Open MPI over libfabric
#   ompi-tcp             Open MPI over TCP and the vif
#   mpich-rc, mpich-ud, mpich-tcp   MPICH over UCX's transports

PARAMS=/usr/share/openmpi/amca-param-sets

# need_mpi GUEST...: the packages, each guest's name in all of them, and a key by which
# rank 0's guest, the first, starts processes in the others. Open MPI knows its own host
# by name only.
need_mpi() {
	local guest key names
	MPI_GUESTS=$*
	check "Open MPI, MPICH and NetPIPE are laid over $*" \
		"$LAB_DIR/lab" extras mpi "$@" || exit 1
	key=$(on "$1" 'cd /root/.ssh && { [ -e id_ed25519 ] ||
		ssh-keygen -q -t ed25519 -N "" -f id_ed25519; } &&
		printf "Host *\nStrictHostKeyChecking no\nLogLevel ERROR\n" >config &&
		cat id_ed25519.pub') || return 1
	names=$(for guest in "$@"; do echo "$(address_of "$guest") $guest"; done)
	for guest in "$@"; do
		on "$guest" "grep -qsxF '$key' /root/.ssh/authorized_keys ||
			echo '$key' >>/root/.ssh/authorized_keys
			sed -i '/ d[0-9]$/d' /etc/hosts && echo '$names' >>/etc/hosts"
	done
}

# The library that a way belongs to, by the suffix that its programs have.
library_of() {
	case $1 in
	ompi-*) echo openmpi ;;
	*) echo mpich ;;
	esac
}

# The guests with a suffix each, as a list.
host_list() {
	local guest
	for guest in $MPI_GUESTS; do
		printf '%s%s\n' "$guest" "$1"
	done | paste -sd,
}

# mpi_words WAY RANKS: the command that starts so many ranks, dealt out to the guests
# in turn. An emulated CPU has AVX without XSAVE, which Open MPI's component for it takes
# for granted.
mpi_words() {
	local way=$1 ranks=$2 ucx=
	case $way in
	*-rc) ucx=rc,self,sm ;;
	*-ud) ucx=ud,self,sm ;;
	mpich-tcp) ucx=tcp,self,sm ;;
	esac
	case $way in
	ompi-*)
		echo "mpirun.openmpi --allow-run-as-root --host $(host_list ":$ranks")" \
			"--map-by node --bind-to none -n $ranks"
		echo "--mca op ^avx --mca mpi_yield_when_idle 1 --mca oob_tcp_if_include eth0"
		echo "--prtemca prte_tcp_if_include eth0 -x UCX_WARN_UNUSED_ENV_VARS=n"
		;;
	mpich-*)
		echo "mpiexec.hydra -hosts $(host_list "") -ppn 1 -n $ranks"
		echo "-genv UCX_WARN_UNUSED_ENV_VARS n -genv UCX_TLS $ucx"
		;;
	esac
	case $way in
	ompi-rc | ompi-ud) echo "-x UCX_TLS=$ucx --tune $PARAMS/softib.conf" ;;
	ompi-ofi) echo "--tune $PARAMS/softib-ofi.conf" ;;
	ompi-tcp) echo "--mca pml ob1 --mca btl self,sm,tcp --mca btl_tcp_if_include eth0" ;;
	esac
}

# mpi WAY RANKS PROGRAM [ARGUMENT]...
mpi() {
	local way=$1 ranks=$2
	shift 2
	# shellcheck disable=SC2046 # words
	on "${MPI_GUESTS%% *}" "cd /tmp && $(echo $(mpi_words "$way" "$ranks")) $*"
}
