# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# A SoftIB device of dom0's own, included after suite.sh.
#
#   attach_to_dom0 [WORD]...   attaches one, with these words for xl-vmri, and loads the
#                              driver; without udev, which would load what else it needs
#   detach_from_dom0           takes it back, driver and all

dom0_has_device() {
	on dom0 'test -e /sys/class/infiniband/*/ports/1/lid && ls /dev/infiniband/umad0'
}

attach_to_dom0() {
	on dom0 "modprobe -a ib_uverbs ib_umad
		[ -d /sys/module/softib ] ||
			insmod /usr/lib/modules/\$(uname -r)/updates/softib.ko
		xl-vmri attach 0 $*" && wait_until 60 dom0_has_device
}

detach_from_dom0() {
	on dom0 xl-vmri detach 0 0 && wait_until 30 on dom0 "rmmod softib"
}
