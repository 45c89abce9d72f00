# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Storage over RDMA, included after suite.sh: what the server does to offer a disk, and
# the client to use it. A SERVICE is nvme, iser, srp or nfs; ADDRESS is the server's, on
# the interface whose RDMA device is meant. SERVER and CLIENT are the suite's.
#
#   give_disk HOST MIB [ext4]      a disk that outlives the guest: a file in dom0's memory;
#                                  or one with a file system that has room for so much;
#                                  dom0 has the file itself, as a device
#   take_disk HOST
#   serve SERVICE HOST ADDRESS     offers the disk
#   unserve SERVICE HOST           ends that, whoever uses it
#   connect SERVICE HOST ADDRESS   begins to use it
#   path_of SERVICE HOST           the disk, or for nfs a file, there; fails if it is not
#   disconnect SERVICE HOST        ends that
#   fio_on HOST FILE WORDS...      runs fio with these words

NAME=softib
IQN=iqn.2007-01.org.softib:disk
DISK=/dev/xvdb
DISK_UUID=5d6f1c0e-7a52-4c1b-9d0a-2f6b8a3e4c11
PORT_NVME=4420
PORT_NFS=20049
CONFIG=/sys/kernel/config

give_disk() {
	local file=/run/disk.$1 mib=$2 loop
	DISK_MIB=$2
	[ "${3:-}" != ext4 ] || mib=$((2 * mib))
	on dom0 "[ -e $file ] || truncate -s ${mib}M $file" || return 1
	[ "${3:-}" != ext4 ] || on dom0 "blkid $file || mkfs.ext4 -q -F $file" || return 1
	loop=$(on dom0 "modprobe loop && losetup -j $file -O NAME -n | grep . ||
		losetup -f --show $file") || return 1
	DISK=/dev/xvdb
	[ "$1" != dom0 ] || { DISK=$loop && return; }
	on dom0 "xl block-attach $1 'vdev=xvdb,access=w,script=block-lab,target=$loop'" &&
		wait_until 30 on "$1" "test -b $DISK"
}

take_disk() {
	[ "$1" = dom0 ] || on dom0 "xl block-detach $1 xvdb" >/dev/null 2>&1
	on dom0 "losetup -D; rm -f /run/disk.$1" >/dev/null 2>&1
}

load() {
	on "$1" "modprobe -a ${*:2} && { mountpoint -q $CONFIG ||
		mount -t configfs none $CONFIG; }"
}

serve() {
	"serve_$1" "${@:2}"
}

unserve() {
	"unserve_$1" "${@:2}"
}

connect() {
	"connect_$1" "${@:2}"
}

disconnect() {
	"disconnect_$1" "${@:2}"
}

path_of() {
	"path_of_$1" "${@:2}"
}

# NVMe: nvmet by configfs, nvme-cli. A client knows a disk that comes back by its UUID.

serve_nvme() {
	load "$1" nvmet-rdma && on "$1" "
		set -e
		cd $CONFIG/nvmet
		mkdir -p subsystems/$NAME/namespaces/1
		echo 1 >subsystems/$NAME/attr_allow_any_host
		echo $DISK >subsystems/$NAME/namespaces/1/device_path
		echo $DISK_UUID >subsystems/$NAME/namespaces/1/device_uuid
		echo 1 >subsystems/$NAME/namespaces/1/enable
		mkdir -p ports/1
		cd ports/1
		echo rdma >addr_trtype
		echo ipv4 >addr_adrfam
		echo $2 >addr_traddr
		echo $PORT_NVME >addr_trsvcid
		ln -s $CONFIG/nvmet/subsystems/$NAME subsystems/"
}

unserve_nvme() {
	on "$1" "cd $CONFIG/nvmet && rm ports/1/subsystems/$NAME && rmdir ports/1 &&
		echo 0 >subsystems/$NAME/namespaces/1/enable &&
		rmdir subsystems/$NAME/namespaces/1 subsystems/$NAME"
}

connect_nvme() {
	load "$1" nvme-rdma && on "$1" "nvme connect -t rdma -a $2 -s $PORT_NVME -n $NAME \
		-i 1 -Q 32 --reconnect-delay=1 --ctrl-loss-tmo=60 --keep-alive-tmo=5" &&
		wait_until 30 path_of_nvme "$1"
}

path_of_nvme() {
	on "$1" "ls /dev/nvme*n1 | grep -m 1 ."
}

disconnect_nvme() {
	on "$1" "nvme disconnect -n $NAME"
}

# LIO's disk, which iSER and SRP offer.

make_backstore() {
	on "$1" "mkdir -p $CONFIG/target/core/iblock_0/$NAME &&
		cd $CONFIG/target/core/iblock_0/$NAME &&
		echo udev_path=$DISK >control && echo 1 >enable"
}

drop_backstore() {
	on "$1" "rmdir $CONFIG/target/core/iblock_0/$NAME $CONFIG/target/core/iblock_0"
}

# The disk that LIO offers, by its vendor.
lio_disk() {
	on "$1" 'for d in /sys/block/sd*; do
		! grep -qs LIO-ORG "$d/device/vendor" || echo "/dev/${d##*/}"
	done | grep -m 1 .'
}

# iSER: LIO by configfs, open-iscsi.

serve_iser() {
	load "$1" target_core_mod target_core_iblock iscsi_target_mod ib_isert &&
		make_backstore "$1" && on "$1" "
		set -e
		mkdir -p $CONFIG/target/iscsi/$IQN/tpgt_1
		cd $CONFIG/target/iscsi/$IQN/tpgt_1
		mkdir -p lun/lun_0
		ln -s $CONFIG/target/core/iblock_0/$NAME lun/lun_0/disk
		echo 0 >attrib/authentication
		echo 0 >attrib/demo_mode_write_protect
		echo 1 >attrib/generate_node_acls
		echo 1 >attrib/cache_dynamic_acls
		mkdir np/$2:3260
		echo 1 >np/$2:3260/iser
		echo 1 >enable"
}

unserve_iser() {
	on "$1" "cd $CONFIG/target/iscsi/$IQN/tpgt_1 && echo 0 >enable &&
		rm lun/lun_0/disk && rmdir lun/lun_0 np/* && cd / &&
		rmdir $CONFIG/target/iscsi/$IQN/tpgt_1 $CONFIG/target/iscsi/$IQN" &&
		drop_backstore "$1"
}

connect_iser() {
	load "$1" ib_iser && on "$1" "
		echo InitiatorName=iqn.2007-01.org.softib:$1 >/etc/iscsi/initiatorname.iscsi
		mkdir -p /run/lock/iscsi
		pidof iscsid >/dev/null || iscsid
		iscsiadm -m node -T $IQN -p $2:3260 -o new --interface iser >/dev/null &&
		iscsiadm -m node -T $IQN -o update -n node.session.timeo.replacement_timeout -v 120 &&
		iscsiadm -m node -T $IQN -o update -n node.conn[0].timeo.noop_out_interval -v 2 &&
		iscsiadm -m node -T $IQN -o update -n node.conn[0].timeo.noop_out_timeout -v 5 &&
		iscsiadm -m node -T $IQN -l" && wait_until 30 lio_disk "$1"
}

path_of_iser() {
	lio_disk "$1"
}

disconnect_iser() {
	on "$1" "iscsiadm -m node -T $IQN -u; iscsiadm -m node -T $IQN -o delete"
}

# SRP: LIO by configfs, the kernel's own interface.

# The GUID by which srpt is known, of the server's InfiniBand device.
node_guid() {
	on "$1" "tr -d : </sys/class/infiniband/$(device_of "$1" softib)/node_guid"
}

port_gid() {
	on "$1" "tr -d : </sys/class/infiniband/$(device_of "$1" softib)/ports/1/gids/0"
}

# Who may use it has to be named, which is not so with iSER.
serve_srp() {
	local name client
	client=0x0000000000000000$(node_guid "$CLIENT")
	load "$1" target_core_mod target_core_iblock ib_srpt && make_backstore "$1" || return 1
	name=0x$(port_gid "$1")
	on "$1" "
		set -e
		mkdir -p $CONFIG/target/srpt/$name/$name
		cd $CONFIG/target/srpt/$name/$name
		mkdir -p lun/lun_0
		ln -s $CONFIG/target/core/iblock_0/$NAME lun/lun_0/disk
		mkdir -p acls/$client/lun_0
		ln -s \$PWD/lun/lun_0 acls/$client/lun_0/disk
		echo 1 >enable"
}

unserve_srp() {
	local name
	name=0x$(port_gid "$1")
	on "$1" "cd $CONFIG/target/srpt/$name/$name && echo 0 >enable &&
		rm acls/*/lun_0/disk && rmdir acls/*/lun_0 acls/* &&
		rm lun/lun_0/disk && rmdir lun/lun_0 && cd / &&
		rmdir $CONFIG/target/srpt/$name/$name $CONFIG/target/srpt/$name" &&
		drop_backstore "$1"
}

# connect_srp HOST ADDRESS: the way is found by the server's GID, not its address. What
# is asked for waits for a minute for a server that went.
connect_srp() {
	local guid gid
	guid=$(node_guid "$SERVER")
	gid=$(port_gid "$SERVER")
	load "$1" ib_srp && on "$1" "
		cd /sys/module/ib_srp/parameters
		echo 60 >fast_io_fail_tmo
		echo 1 >reconnect_delay
		echo id_ext=$guid,ioc_guid=$guid,dgid=$gid,pkey=ffff,service_id=$guid \
			>/sys/class/infiniband_srp/srp-$(device_of "$1" softib)-1/add_target" &&
		wait_until 30 lio_disk "$1"
}

path_of_srp() {
	lio_disk "$1"
}

disconnect_srp() {
	on "$1" "for p in /sys/class/srp_remote_ports/port-*; do echo 1 >\$p/delete; done"
}

# NFS: the kernel's server, version 4.2 on a port for RDMA only.

serve_nfs() {
	load "$1" nfsd rpcrdma && on "$1" "
		set -e
		mkdir -p /srv/nfs /var/lib/nfs/v4recovery /run/rpc_pipefs
		touch /var/lib/nfs/{etab,rmtab}
		mountpoint -q /srv/nfs || mount $DISK /srv/nfs
		mountpoint -q /proc/fs/nfsd || mount -t nfsd none /proc/fs/nfsd
		echo '/srv/nfs *(rw,fsid=0,no_root_squash,no_subtree_check,insecure)' >/etc/exports
		exportfs -a
		pidof rpc.mountd >/dev/null || rpc.mountd -N 3 --no-udp
		echo 10 >/proc/fs/nfsd/nfsv4leasetime
		echo 10 >/proc/fs/nfsd/nfsv4gracetime
		rpc.nfsd -N 3 -V 4.2 2
		echo rdma $PORT_NFS >/proc/fs/nfsd/portlist"
}

unserve_nfs() {
	on "$1" "rpc.nfsd 0; exportfs -au; pkill -x rpc.mountd
		umount /srv/nfs /proc/fs/nfsd"
}

connect_nfs() {
	on "$1" "modprobe -a nfsv4 rpcrdma && mkdir -p /mnt/nfs && mount -t nfs4 \
		-o proto=rdma,port=$PORT_NFS,vers=4.2,timeo=50,retrans=3 $2:/ /mnt/nfs &&
		{ [ -e /mnt/nfs/file ] || truncate -s ${DISK_MIB}M /mnt/nfs/file; }"
}

path_of_nfs() {
	on "$1" "mountpoint -q /mnt/nfs" && echo /mnt/nfs/file
}

disconnect_nfs() {
	on "$1" "umount /mnt/nfs"
}

fio_on() {
	on "$1" "cd /tmp && fio --name=disk --filename=$2 --direct=1 --ioengine=libaio \
		--thread --verify_fatal=1 --minimal ${*:3} >/tmp/fio.txt"
}
