/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The first process of dom0 and of the guests: loads the modules of its initrd,
 * lays the lab's files over the root, and goes on with what the machine is for:
 * in dom0 a script that is among the files, in a guest guest.c.
 *
 * One small program instead of a shell: starting a process costs an emulated
 * machine a tenth of a second.
 *
 * The root is an overlay: the lab's files (/files of the initrd) upon the disk
 * LAB_DISK, and a file system in memory upon both, so that all guests share one
 * disk.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init.h"

#define MODULES "/modules"
#define DISK_WAIT_S 60
#define POLL_US 20000

void die(const char *what)
{
	printf("labinit: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	exit(1);
}

static void make_folder(const char *path)
{
	if (mkdir(path, 0755) && errno != EEXIST)
		die(path);
}

static void mount_on(const char *type, const char *path, const char *options)
{
	make_folder(path);
	if (mount(type, path, type, 0, options))
		die(path);
}

static void load_module(const char *name)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), MODULES "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(path);
	/* A driver of hardware that this machine lacks is no error. */
	if (syscall(SYS_finit_module, fd, "", 0) && errno != ENODEV)
		printf("labinit: %s: %s\n", name, strerror(errno));
	close(fd);
	unlink(path);
}

static int is_module(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Their names begin with the place of each. */
static void load_modules(void)
{
	struct dirent **names;
	int count = scandir(MODULES, &names, is_module, alphasort);

	if (count < 0)
		die(MODULES);
	for (int i = 0; i < count; i++) {
		load_module(names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

/* The kernel gives words of its command line that it does not know to init. */
const char *setting(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		errno = EINVAL;
		die(name);
	}
	return value;
}

static void wait_for_disk(const char *disk)
{
	int tries = DISK_WAIT_S * (1000000 / POLL_US);

	while (access(disk, F_OK)) {
		if (!tries--)
			die(disk);
		usleep(POLL_US);
	}
}

static void mount_root(const char *disk)
{
	wait_for_disk(disk);
	make_folder("/disk");
	if (mount(disk, "/disk", "squashfs", MS_RDONLY, ""))
		die(disk);
	mount_on("tmpfs", "/upper", "mode=755");
	make_folder("/upper/upper");
	make_folder("/upper/work");
	make_folder("/new");
	if (mount("overlay", "/new", "overlay", 0,
		  "lowerdir=/files:/disk,upperdir=/upper/upper,workdir=/upper/work"))
		die("overlay");
}

/* What udev or systemd would do elsewhere. */
static void furnish(void)
{
	mount_on("devpts", "/dev/pts", "");
	mount_on("tmpfs", "/dev/shm", "");
	mount_on("tmpfs", "/new/run", "mode=755");
	mount_on("tmpfs", "/new/tmp", "");
	make_folder("/new/run/sshd");
	/* Xen's hotplug scripts lock through /dev/fd and hang without it. */
	if (symlink("/proc/self/fd", "/dev/fd") ||
	    symlink("fd/0", "/dev/stdin") ||
	    symlink("fd/1", "/dev/stdout") ||
	    symlink("fd/2", "/dev/stderr"))
		die("/dev");
}

static void enter_root(void)
{
	static const char *const moved[] = { "/dev", "/proc", "/sys" };
	char target[16];

	for (unsigned int i = 0; i < 3; i++) {
		snprintf(target, sizeof(target), "/new%s", moved[i]);
		if (mount(moved[i], target, NULL, MS_MOVE, NULL))
			die(target);
	}
	if (chdir("/new") || mount(".", "/", NULL, MS_MOVE, NULL) ||
	    chroot(".") || chdir("/"))
		die("/new");
}

int main(void)
{
	const char *name, *disk;

	mount_on("devtmpfs", "/dev", "");
	mount_on("proc", "/proc", "");
	mount_on("sysfs", "/sys", "");
	name = setting("LAB_NAME");
	disk = setting("LAB_DISK");
	load_modules();
	mount_root(disk);
	furnish();
	if (sethostname(name, strlen(name)))
		die("sethostname");
	enter_root();
	/* There are two in a lab of two hosts. */
	if (strncmp(name, "dom0", 4))
		run_guest();
	execl("/usr/sbin/labinit", "labinit", (char *)NULL);
	die("/usr/sbin/labinit");
}
