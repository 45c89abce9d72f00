// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "sock.h"

#define DEFAULT_FILE "/etc/libsdp.conf"

static struct sdp_rules rules;
static bool concerns;
/* A copy: some programs overwrite what the C library's name points to. */
static char program[256];

void sdp_log(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	dprintf(STDERR_FILENO, "%s: libsdp: %s\n", program, text);
}

static void read_rules(FILE *file, const char *name)
{
	const char *wrong;
	char *line = NULL;
	size_t size = 0;
	int n = 0;

	while (getline(&line, &size, file) >= 0) {
		n++;
		wrong = sdp_rules_add(&rules, line);
		if (wrong)
			sdp_log("%s, line %d: %s; the rule is left out", name, n, wrong);
	}
	free(line);
	fclose(file);
}

static void __attribute__((constructor)) configure(void)
{
	const char *name = secure_getenv("LIBSDP_CONFIG_FILE");
	FILE *file;

	snprintf(program, sizeof(program), "%s", program_invocation_short_name);
	file = fopen(name ? name : DEFAULT_FILE, "re");
	if (file)
		read_rules(file, name ? name : DEFAULT_FILE);
	else if (name || errno != ENOENT)
		sdp_log("%s: %s; no rules", name ? name : DEFAULT_FILE, strerror(errno));
	concerns = sdp_rules_concern(&rules, program);
}

bool sdp_config_concerns(void)
{
	return concerns;
}

enum sdp_use sdp_config_use(enum sdp_role role, const struct sockaddr *address)
{
	return sdp_rules_match(&rules, role, program, address);
}
