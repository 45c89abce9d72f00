# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Disk images of the roots, unpacked kernels, and small initrds: one program,
# the few modules that reach the disk, and the files that the lab lays over a
# root.

IMG=$CACHE/img

DOM0_MODULES="virtio_blk squashfs overlay virtio_net xen-gntdev xen-evtchn
	xen-gntalloc xen-privcmd xenfs xen-netback xen-blkback bridge"
GUEST_MODULES="xen-blkfront squashfs overlay xen-netfront"

make_images() {
	make_keys
	DOM0_IMG=$(image_of dom0 "$DOM0")
	GUEST_IMG=$(image_of guest "$GUEST")
	if [ ! -e "$DOM0_IMG" ] || [ ! -e "$GUEST_IMG" ]; then
		say "making the disk images"
	fi
	logged image-dom0 make_image "$DOM0" "$DOM0_IMG" "$DOM0_KERNEL"
	logged image-guest make_image "$GUEST" "$GUEST_IMG" "$GUEST_KERNEL"
	prune "$IMG/dom0" "$DOM0_IMG"
	prune "$IMG/guest" "$GUEST_IMG"
}

image_of() {
	echo "$IMG/$1-$(key_of "$LAB_LIB/images.sh" "$LAB_LIB/vmlinux.py" \
		"$LAB_DIR"/image/*.[ch] -- "$(basename "$2")")"
}

# The lab's own key pair and the host key of all its machines.
make_keys() {
	mkdir -p "$CACHE/ssh"
	chmod 700 "$CACHE/ssh"
	for key in id host; do
		if [ ! -e "$CACHE/ssh/$key" ]; then
			ssh-keygen -q -t ed25519 -N '' -C softib-lab \
				-f "$CACHE/ssh/$key"
		fi
	done
	if [ ! -e "$CACHE/ssh/host.dropbear" ]; then
		logged host-key in_root "$GUEST" "$CACHE/ssh:/mnt" -- dropbearconvert \
			openssh dropbear /mnt/host /mnt/host.dropbear
	fi
}

# make_image ROOT FOLDER KERNEL: disk.img, vmlinux and initrd in the folder.
make_image() {
	local root=$1 new=$2.new kernel=$3
	if [ -e "$2" ]; then
		touch "$2"
		return 0
	fi
	rm -rf "$new"
	mkdir -p "$new/initrd"
	in_root "$BUILD13" "$CACHE:$CACHE" "$LAB_LIB:/srv:ro" -- python3 \
		/srv/vmlinux.py "$root/boot/vmlinuz-$kernel" "$new/vmlinux"
	make_initrd "$root" "$new" "$kernel"
	# Not compressed: unpacking is what an emulated machine is slow at. The
	# kernel's place on the disk is for dom0, which starts guests with it.
	in_root "$BUILD13" "$CACHE:$CACHE" -- sh -c '
		exec mksquashfs "$1"/* "$2/vmlinux" "$2/disk.img" -quiet -no-progress \
			-noI -noD -noF -noX -no-duplicates
	' sh "$root" "$new"
	rm -rf "$new/initrd"
	mv "$new" "$2"
}

# The modules are unpacked, and numbered in the order of loading. Without their
# signatures, which nobody asks for, they load faster; and the first one with
# type information would cost the kernel a second to take its own apart.
make_initrd() {
	local root=$1 new=$2 kernel=$3 dir=$2/initrd module modules number=100
	case $2 in
	*/dom0-*) modules=$DOM0_MODULES ;;
	*) modules=$GUEST_MODULES ;;
	esac
	mkdir -p "$dir/modules"
	for module in $modules; do
		chroot "$root" modprobe -S "$kernel" --show-depends "$module"
	done | awk '$1 == "insmod" && !seen[$2]++ {print $2}' >"$new/order"
	while read -r module; do
		number=$((number + 1))
		xz -dc "$root$module" >"$dir/modules/$number-$(basename "$module" .xz)"
	done <"$new/order"
	in_root "$BUILD13" "$CACHE:$CACHE" "$LAB_DIR/image:/srv:ro" -- sh -ec '
		strip --strip-debug --remove-section=.BTF "$1"/modules/*
		gcc -Os -Wall -Wextra -Werror -static -s -o "$1/init" \
			/srv/init.c /srv/guest.c
	' sh "$dir"
	case $2 in
	*/dom0-*) make_helpers "$dir/files" ;;
	esac
	pack "$dir" "$new/initrd.cpio"
}

# What dom0 starts guests with beside Xen's own tools: the hotplug scripts, both one
# program, and what is laid under xl.
make_helpers() {
	mkdir -p "$1/etc/xen/scripts" "$1/usr/lib/lab"
	in_root "$BUILD12" "$CACHE:$CACHE" "$LAB_DIR/image:/srv:ro" -- sh -ec '
		gcc -Os -Wall -Wextra -Werror -static -s -o "$1/etc/xen/scripts/vif-lab" \
			/srv/hotplug.c -lxenstore -lxentoolcore -lpthread
		gcc -Os -Wall -Wextra -Werror -shared -fPIC -s -o "$1/usr/lib/lab/pit.so" \
			/srv/pit.c
	' sh "$1"
	ln -s vif-lab "$1/etc/xen/scripts/block-lab"
}

# An archive of a folder that the kernel unpacks as an initrd. Several of them
# one after the other are one initrd.
pack() {
	(cd "$1" && find . -print0 | LC_ALL=C sort -z |
		cpio --quiet -0 -o -H newc -R 0:0) >"$2"
}

# What lies over the roots beside SoftIB itself: init, keys, helpers.
# lay_files dom0|guest FOLDER
lay_files() {
	local dir=$2
	mkdir -p "$dir/root/.ssh"
	install -m 600 "$CACHE/ssh/id.pub" "$dir/root/.ssh/authorized_keys"
	chmod 700 "$dir/root/.ssh" "$dir/root"
	if [ "$1" = dom0 ]; then
		install -D -m 600 "$CACHE/ssh/host" "$dir/etc/ssh/ssh_host_ed25519_key"
		install -m 644 "$CACHE/ssh/host.pub" \
			"$dir/etc/ssh/ssh_host_ed25519_key.pub"
		install -m 644 "$LAB_DIR/image/sshd_config" "$dir/etc/ssh/sshd_config"
		install -D -m 755 "$LAB_DIR/image/dom0-init" \
			"$dir/usr/sbin/labinit"
		install -D -m 755 "$LAB_DIR/image/lab-guest" \
			"$dir/usr/sbin/lab-guest"
	else
		install -D -m 600 "$CACHE/ssh/host.dropbear" \
			"$dir/etc/dropbear/dropbear_ed25519_host_key"
		install -D -m 755 "$LAB_DIR/image/poweroff" \
			"$dir/usr/sbin/poweroff"
		ln -s poweroff "$dir/usr/sbin/reboot"
		install -D -m 644 -t "$dir/usr/lib/udev/rules.d" \
			"$LAB_DIR/image/95-lab-modules.rules" \
			"$TREE/linux/softib/80-softib.rules"
	fi
}
