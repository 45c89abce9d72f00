// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * use {sdp|tcp|both} {server|client} PROGRAM ADDRESS[/PREFIX]:PORT[-PORT]
 *
 * ADDRESS, PORT or both may be "*"; an IPv6 address stands in brackets.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

/* All of the text is a number of at most that size. */
static bool number(const char *text, unsigned long max, unsigned long *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoul(text, &end, 10);
	return !*end && !errno && *value <= max;
}

static const char *parse_ports(struct sdp_rule *rule, char *text)
{
	unsigned long first, last;
	char *dash;

	if (!strcmp(text, "*")) {
		rule->first_port = 0;
		rule->last_port = UINT16_MAX;
		return NULL;
	}
	dash = strchr(text, '-');
	if (dash)
		*dash++ = 0;
	if (!number(text, UINT16_MAX, &first) ||
	    !number(dash ? dash : text, UINT16_MAX, &last))
		return "a port is a number up to 65535, two with - between them, or *";
	if (first > last)
		return "the first port is above the last one";
	rule->first_port = first;
	rule->last_port = last;
	return NULL;
}

static const char *parse_address(struct sdp_rule *rule, char *text)
{
	unsigned long prefix, bits;
	char *slash = strchr(text, '/');
	size_t end;

	if (slash)
		*slash++ = 0;
	if (!strcmp(text, "*") && !slash) {
		rule->family = 0;
		return NULL;
	}
	end = strlen(text);
	if (text[0] == '[' && text[end - 1] == ']') {
		text[end - 1] = 0;
		text++;
		rule->family = AF_INET6;
		bits = 128;
	} else {
		rule->family = AF_INET;
		bits = 32;
	}
	if (inet_pton(rule->family, text, rule->address) != 1)
		return "an address is that of an IPv4 or [IPv6] network, or *";
	prefix = bits;
	if (slash && !number(slash, bits, &prefix))
		return "a prefix is a number up to 32, or up to 128 for IPv6";
	rule->prefix = prefix;
	return NULL;
}

static const char *parse_target(struct sdp_rule *rule, char *text)
{
	/* An IPv6 address has colons, a port none. */
	char *colon = strrchr(text, ':');
	const char *wrong;

	if (!colon || strchr(colon, ']'))
		return "ADDRESS:PORT expected";
	*colon++ = 0;
	wrong = parse_address(rule, text);
	return wrong ? wrong : parse_ports(rule, colon);
}

static const char *parse_words(struct sdp_rule *rule, char **word)
{
	if (strcmp(word[0], "use"))
		return "a rule begins with \"use\"";
	if (!word[4])
		return "use {sdp|tcp|both} {server|client} PROGRAM ADDRESS:PORT expected";
	if (!strcmp(word[1], "sdp"))
		rule->use = SDP_USE_SDP;
	else if (!strcmp(word[1], "both"))
		rule->use = SDP_USE_BOTH;
	else if (!strcmp(word[1], "tcp"))
		rule->use = SDP_USE_TCP;
	else
		return "the second word is sdp, tcp or both";
	if (!strcmp(word[2], "server"))
		rule->role = SDP_SERVER;
	else if (!strcmp(word[2], "client"))
		rule->role = SDP_CLIENT;
	else
		return "the third word is server or client";
	rule->program = word[3];
	return parse_target(rule, word[4]);
}

static const char *keep(struct sdp_rules *rules, const struct sdp_rule *rule)
{
	struct sdp_rule *grown;
	char *program = strdup(rule->program);

	grown = program ? realloc(rules->rule, (rules->count + 1) * sizeof(*grown)) : NULL;
	if (!grown) {
		free(program);
		return "out of memory";
	}
	rules->rule = grown;
	grown[rules->count] = *rule;
	grown[rules->count++].program = program;
	return NULL;
}

const char *sdp_rules_add(struct sdp_rules *rules, char *line)
{
	static const char blanks[] = " \t\r\n";
	struct sdp_rule rule = {};
	const char *wrong;
	char *word[6] = {}, *rest;
	size_t n = 0;

	line[strcspn(line, "#")] = 0;
	for (word[0] = strtok_r(line, blanks, &rest); n < 5 && word[n]; n++)
		word[n + 1] = strtok_r(NULL, blanks, &rest);
	if (!word[0] || !strcmp(word[0], "log"))
		return NULL;
	if (word[5])
		return "there is more on the line than a rule";
	wrong = parse_words(&rule, word);
	return wrong ? wrong : keep(rules, &rule);
}

static bool is_for(const struct sdp_rule *rule, const char *program)
{
	return !fnmatch(rule->program, program, 0);
}

bool sdp_rules_concern(const struct sdp_rules *rules, const char *program)
{
	size_t i;

	for (i = 0; i < rules->count; i++)
		if (rules->rule[i].use != SDP_USE_TCP && is_for(&rules->rule[i], program))
			return true;
	return false;
}

/* An address in the shape that rules have: IPv4 as such, also where IPv6 carries it. */
struct target {
	int family;
	uint16_t port;
	const uint8_t *address;
};

static bool target_of(const struct sockaddr *address, struct target *target)
{
	const struct sockaddr_in6 *in6 = (const void *)address;
	const struct sockaddr_in *in = (const void *)address;

	target->family = address->sa_family;
	if (address->sa_family == AF_INET) {
		target->port = ntohs(in->sin_port);
		target->address = (const uint8_t *)&in->sin_addr;
		return true;
	}
	if (address->sa_family != AF_INET6)
		return false;
	target->port = ntohs(in6->sin6_port);
	target->address = in6->sin6_addr.s6_addr;
	if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		target->family = AF_INET;
		target->address += 12;
	}
	return true;
}

static bool same_network(const uint8_t *a, const uint8_t *b, unsigned int prefix)
{
	unsigned int rest = prefix % 8;

	if (memcmp(a, b, prefix / 8))
		return false;
	return !rest || !((a[prefix / 8] ^ b[prefix / 8]) >> (8 - rest));
}

static bool fits(const struct sdp_rule *rule, const struct target *target)
{
	if (target->port < rule->first_port || target->port > rule->last_port)
		return false;
	if (!rule->family)
		return true;
	return rule->family == target->family &&
	       same_network(rule->address, target->address, rule->prefix);
}

enum sdp_use sdp_rules_match(const struct sdp_rules *rules, enum sdp_role role,
			     const char *program, const struct sockaddr *address)
{
	const struct sdp_rule *rule;
	struct target target;
	size_t i;

	if (!target_of(address, &target))
		return SDP_USE_TCP;
	for (i = 0; i < rules->count; i++) {
		rule = &rules->rule[i];
		if (rule->role == role && is_for(rule, program) && fits(rule, &target))
			return rule->use;
	}
	return SDP_USE_TCP;
}

void sdp_rules_free(struct sdp_rules *rules)
{
	while (rules->count)
		free(rules->rule[--rules->count].program);
	free(rules->rule);
	rules->rule = NULL;
}
