/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The first process of a guest once its root is there: the network, sshd, udev.
 * sshd is Dropbear: OpenSSH's starts three programs for a connection, which an emulated
 * guest takes three seconds for. udev works as on any Debian: it loads softib by its
 * alias and names the InfiniBand devices.
 *
 * A shell and its commands would take seconds for this when emulated.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init.h"

#define DEVICES "/sys/bus/xen/devices"
#define NETMASK "255.255.255.0"
#define READY_SOCKET "/run/labinit"
#define HOST_KEY "/etc/dropbear/dropbear_ed25519_host_key"

static void set_address(int fd, struct ifreq *ifr, unsigned long request,
			const char *address)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, address, &in.sin_addr) != 1)
		die(address);
	memcpy(&ifr->ifr_addr, &in, sizeof(in));
	if (ioctl(fd, request, ifr))
		die(ifr->ifr_name);
}

/* The address may be NULL: the kernel gives the loopback its own. */
static void bring_up(int fd, const char *name, const char *address)
{
	struct ifreq ifr = { 0 };

	strncpy(ifr.ifr_name, name, IFNAMSIZ - 1);
	if (address) {
		set_address(fd, &ifr, SIOCSIFADDR, address);
		set_address(fd, &ifr, SIOCSIFNETMASK, NETMASK);
	}
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &ifr))
		die(name);
}

static void start_network(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket");
	bring_up(fd, "lo", NULL);
	bring_up(fd, "eth0", setting("LAB_IP"));
	close(fd);
}

static pid_t start(const char *const argv[])
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		execv(argv[0], (char *const *)argv);
		die(argv[0]);
	}
	return pid;
}

/* A daemon goes to the background when it is ready. */
static void start_daemon(const char *const argv[])
{
	int status;

	if (waitpid(start(argv), &status, 0) < 0 || status != 0)
		printf("labinit: %s ended with status %d\n", argv[0], status);
}

/*
 * udev begins with seconds of work that nobody waits for yet, whereas somebody waits for
 * sshd's answer: until it says that it is ready it has only time that others leave.
 */
static void start_udev(void)
{
	static const char *const udevd[] = { "/usr/lib/systemd/systemd-udevd", NULL };
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = READY_SOCKET };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd events[2] = { { .fd = fd, .events = POLLIN }, { .events = POLLIN } };
	char said[256] = "";
	ssize_t length;
	pid_t pid;

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    setenv("NOTIFY_SOCKET", READY_SOCKET, 1))
		die(READY_SOCKET);
	pid = start(udevd);
	setpriority(PRIO_PROCESS, pid, 19);
	events[1].fd = syscall(SYS_pidfd_open, pid, 0);
	while (!strstr(said, "READY=1")) {
		if (poll(events, 2, -1) < 0 || events[1].revents) {
			printf("labinit: %s ended\n", udevd[0]);
			break;
		}
		length = recv(fd, said, sizeof(said) - 1, 0);
		said[length > 0 ? length : 0] = '\0';
	}
	setpriority(PRIO_PROCESS, pid, 0);
	close(events[1].fd);
	close(fd);
	unlink(READY_SOCKET);
	unsetenv("NOTIFY_SOCKET");
}

/* Has udev look at a device that no driver has taken yet. */
static void announce(const char *device)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), DEVICES "/%s/driver", device);
	if (!access(path, F_OK))
		return;
	snprintf(path, sizeof(path), DEVICES "/%s/uevent", device);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "add", 3) != 3)
		printf("labinit: %s cannot be announced\n", device);
	if (fd >= 0)
		close(fd);
}

/* Of devices that came before it udev has not heard. */
static void announce_devices(void)
{
	DIR *devices = opendir(DEVICES);
	struct dirent *entry;

	if (!devices)
		die(DEVICES);
	while ((entry = readdir(devices)))
		if (entry->d_name[0] != '.')
			announce(entry->d_name);
	closedir(devices);
}

void run_guest(void)
{
	static const char *const sshd[] = { "/usr/sbin/dropbear", "-s", "-r",
					    HOST_KEY, "-W", "1048576", NULL };
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	if (setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1) ||
	    setenv("HOME", "/root", 1))
		die("setenv");
	if (setrlimit(RLIMIT_MEMLOCK, &unlimited))
		die("RLIMIT_MEMLOCK");
	start_network();
	start_daemon(sshd);
	printf("labinit: up\n");
	fflush(stdout);
	start_udev();
	announce_devices();
	/* From now on the kernel itself buries the children of others. */
	signal(SIGCHLD, SIG_IGN);
	for (;;)
		pause();
}
