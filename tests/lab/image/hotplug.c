/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In dom0: what libxl runs for the guests' network interfaces, as vif-lab, and for their
 * disks, as block-lab: onto the bridge that the toolstack names, and the disk's number;
 * nothing else. Xen's own scripts start dozens of processes and look for other users of
 * a disk, which guests here share: emulation makes many seconds of it, and a shell with
 * three processes is still half a second of a guest's start.
 *
 * libxl names the interface and the backend's path in the environment.
 */
#include <err.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xenstore.h>

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		errx(1, "libxl gave no %s", name);
	return value;
}

static const char *path_of(const char *node)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", variable("XENBUS_PATH"), node);
	return path;
}

static void write_node(struct xs_handle *xs, const char *node, const char *value)
{
	if (!xs_write(xs, XBT_NULL, path_of(node), value, strlen(value)))
		err(1, "%s", path_of(node));
}

static void join(const char *vif, const char *bridge)
{
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		err(1, "socket");
	strncpy(ifr.ifr_name, bridge, IFNAMSIZ - 1);
	ifr.ifr_ifindex = if_nametoindex(vif);
	if (!ifr.ifr_ifindex || ioctl(fd, SIOCBRADDIF, &ifr))
		err(1, "%s does not join %s", vif, bridge);
	memset(&ifr, 0, sizeof(ifr));
	strncpy(ifr.ifr_name, vif, IFNAMSIZ - 1);
	ifr.ifr_flags = IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &ifr))
		err(1, "%s does not come up", vif);
	close(fd);
}

static void connect_vif(struct xs_handle *xs)
{
	char *bridge = xs_read(xs, XBT_NULL, path_of("bridge"), NULL);

	if (!bridge)
		err(1, "%s", path_of("bridge"));
	join(variable("vif"), bridge);
	free(bridge);
}

static void connect_disk(struct xs_handle *xs)
{
	char *disk = xs_read(xs, XBT_NULL, path_of("params"), NULL);
	struct stat st;
	char number[16];

	if (!disk)
		err(1, "%s", path_of("params"));
	if (stat(disk, &st))
		err(1, "%s", disk);
	free(disk);
	snprintf(number, sizeof(number), "%x:%x", major(st.st_rdev), minor(st.st_rdev));
	write_node(xs, "physical-device", number);
}

int main(int argc, char **argv)
{
	int is_disk = strstr(argv[0], "block-") != NULL;
	struct xs_handle *xs;

	if (argc < 2)
		errx(2, "usage: block-lab add | vif-lab online");
	/* What goes needs no help. */
	if (strcmp(argv[1], is_disk ? "add" : "online"))
		return 0;
	xs = xs_open(0);
	if (!xs)
		err(1, "xenstored does not answer");
	if (is_disk)
		connect_disk(xs);
	else
		connect_vif(xs);
	write_node(xs, "hotplug-status", "connected");
	xs_close(xs);
	return 0;
}
