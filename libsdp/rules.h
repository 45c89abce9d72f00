/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rules of libsdp.conf: which program's sockets use RDMA, for which addresses.
 */
#ifndef LIBSDP_RULES_H
#define LIBSDP_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum sdp_use {
	SDP_USE_TCP,
	SDP_USE_SDP,	/* RDMA only */
	SDP_USE_BOTH,	/* a client tries RDMA first, a server listens on both */
};

enum sdp_role {
	SDP_SERVER,	/* the address is the one listened on */
	SDP_CLIENT,	/* the address is the one connected to */
};

struct sdp_rule {
	enum sdp_use use;
	enum sdp_role role;
	char *program;		/* a pattern as of fnmatch(3) */
	int family;		/* AF_INET, AF_INET6, or 0 for any address */
	uint8_t address[16];
	unsigned int prefix;	/* bits of the address that count */
	uint16_t first_port;
	uint16_t last_port;
};

struct sdp_rules {
	struct sdp_rule *rule;
	size_t count;
};

/*
 * Adds the rule of one line of a file; comments, empty lines and the "log" lines of
 * OFED's libsdp.conf add none. Returns NULL, or what is wrong with the line, upon which
 * nothing was added. The text is changed.
 */
const char *sdp_rules_add(struct sdp_rules *rules, char *line);

/* Whether any rule but one for TCP is for the program. */
bool sdp_rules_concern(const struct sdp_rules *rules, const char *program);

/* What the first rule says that fits; TCP if none does. */
enum sdp_use sdp_rules_match(const struct sdp_rules *rules, enum sdp_role role,
			     const char *program, const struct sockaddr *address);

void sdp_rules_free(struct sdp_rules *rules);

#endif
