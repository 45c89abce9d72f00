/* SPDX-License-Identifier: GPL-2.0-only */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "umad.h"

#define UMADS	"/sys/class/infiniband_mad"

static bool is_of(const char *umad, const char *device)
{
	char path[512], name[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), UMADS "/%s/ibdev", umad);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		*name = '\0';
	fclose(file);
	name[strcspn(name, "\n")] = '\0';
	return !strcmp(name, device);
}

int open_umad(const char *device)
{
	DIR *umads = opendir(UMADS);
	struct dirent *entry;
	char path[512];
	int fd = -1;

	if (!umads)
		die("%s: %s", UMADS, strerror(errno));
	while (fd < 0 && (entry = readdir(umads)))
		if (!strncmp(entry->d_name, "umad", 4) &&
		    is_of(entry->d_name, device)) {
			snprintf(path, sizeof(path), "/dev/infiniband/%s",
				 entry->d_name);
			fd = open(path, O_RDWR | O_CLOEXEC);
			if (fd < 0)
				die("%s: %s", path, strerror(errno));
		}
	closedir(umads);
	if (fd < 0)
		die("%s has no management device", device);
	return fd;
}
