// SPDX-License-Identifier: GPL-2.0-only
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "../../libsdp/rules.h"
#include "test.h"

static struct sdp_rules rules;

static const char *add(const char *text)
{
	char line[256];

	snprintf(line, sizeof(line), "%s", text);
	return sdp_rules_add(&rules, line);
}

static enum sdp_use match(enum sdp_role role, const char *program, const char *ip, int port)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, ip, &in.sin_addr) == 1)
		return sdp_rules_match(&rules, role, program, (struct sockaddr *)&in);
	CHECK(inet_pton(AF_INET6, ip, &in6.sin6_addr) == 1);
	return sdp_rules_match(&rules, role, program, (struct sockaddr *)&in6);
}

TEST(rules_none_is_tcp)
{
	CHECK_EQ(match(SDP_CLIENT, "curl", "10.0.0.1", 80), SDP_USE_TCP);
	CHECK(!sdp_rules_concern(&rules, "curl"));
}

TEST(rules_first_match_wins)
{
	CHECK(!add("use tcp client * 10.0.0.0/24:80"));
	CHECK(!add("use sdp client * 10.0.0.0/8:*"));
	CHECK(!add("use both client * *:*"));
	CHECK_EQ(match(SDP_CLIENT, "a", "10.0.0.9", 80), SDP_USE_TCP);
	CHECK_EQ(match(SDP_CLIENT, "a", "10.0.0.9", 81), SDP_USE_SDP);
	CHECK_EQ(match(SDP_CLIENT, "a", "10.0.1.9", 80), SDP_USE_SDP);
	CHECK_EQ(match(SDP_CLIENT, "a", "11.0.0.9", 80), SDP_USE_BOTH);
	CHECK_EQ(match(SDP_SERVER, "a", "10.0.0.9", 81), SDP_USE_TCP);
	sdp_rules_free(&rules);
}

TEST(rules_program)
{
	CHECK(!add("use both server nginx *:80"));
	CHECK(!add("use sdp server valkey-* *:6379"));
	CHECK(!add("use tcp server curl *:*"));
	CHECK_EQ(match(SDP_SERVER, "nginx", "0.0.0.0", 80), SDP_USE_BOTH);
	CHECK_EQ(match(SDP_SERVER, "nginx2", "0.0.0.0", 80), SDP_USE_TCP);
	CHECK_EQ(match(SDP_SERVER, "valkey-server", "0.0.0.0", 6379), SDP_USE_SDP);
	CHECK(sdp_rules_concern(&rules, "nginx"));
	CHECK(sdp_rules_concern(&rules, "valkey-cli"));
	CHECK(!sdp_rules_concern(&rules, "curl"));
	sdp_rules_free(&rules);
}

TEST(rules_ports)
{
	CHECK(!add("use sdp client * *:100-200"));
	CHECK(!add("use both client * *:65535"));
	CHECK_EQ(match(SDP_CLIENT, "a", "1.1.1.1", 99), SDP_USE_TCP);
	CHECK_EQ(match(SDP_CLIENT, "a", "1.1.1.1", 100), SDP_USE_SDP);
	CHECK_EQ(match(SDP_CLIENT, "a", "1.1.1.1", 200), SDP_USE_SDP);
	CHECK_EQ(match(SDP_CLIENT, "a", "1.1.1.1", 201), SDP_USE_TCP);
	CHECK_EQ(match(SDP_CLIENT, "a", "1.1.1.1", 65535), SDP_USE_BOTH);
	sdp_rules_free(&rules);
}

TEST(rules_prefixes)
{
	CHECK(!add("use sdp client * 192.168.64.0/19:*"));
	CHECK(!add("use both client * 0.0.0.0/0:*"));
	CHECK_EQ(match(SDP_CLIENT, "a", "192.168.95.255", 1), SDP_USE_SDP);
	CHECK_EQ(match(SDP_CLIENT, "a", "192.168.96.0", 1), SDP_USE_BOTH);
	CHECK_EQ(match(SDP_CLIENT, "a", "192.168.63.1", 1), SDP_USE_BOTH);
	CHECK_EQ(match(SDP_CLIENT, "a", "fd00::1", 1), SDP_USE_TCP);
	sdp_rules_free(&rules);
}

TEST(rules_ipv6)
{
	CHECK(!add("use sdp client * [fd00:66::]/32:7"));
	CHECK(!add("use sdp client * [::1]:8"));
	CHECK(!add("use both client * 10.0.0.0/8:*"));
	CHECK_EQ(match(SDP_CLIENT, "a", "fd00:66::2", 7), SDP_USE_SDP);
	CHECK_EQ(match(SDP_CLIENT, "a", "fd00:67::2", 7), SDP_USE_TCP);
	CHECK_EQ(match(SDP_CLIENT, "a", "::1", 8), SDP_USE_SDP);
	CHECK_EQ(match(SDP_CLIENT, "a", "::2", 8), SDP_USE_TCP);
	/* IPv4 that IPv6 carries. */
	CHECK_EQ(match(SDP_CLIENT, "a", "::ffff:10.1.2.3", 1), SDP_USE_BOTH);
	sdp_rules_free(&rules);
}

TEST(rules_lines_without_one)
{
	CHECK(!add(""));
	CHECK(!add("   \n"));
	CHECK(!add("# use sdp client * *:*"));
	CHECK(!add("log min-level 9 destination file libsdp.log"));
	CHECK_EQ(rules.count, 0);
	CHECK(!add("use sdp client * *:1 # all of them\n"));
	CHECK_EQ(rules.count, 1);
	sdp_rules_free(&rules);
}

TEST(rules_wrong)
{
	static const char *const wrong[] = {
		"allow sdp client * *:*", "use", "use sdp client *", "use udp client * *:*",
		"use sdp peer * *:*", "use sdp client * *", "use sdp client * *:",
		"use sdp client * :80", "use sdp client * *:x", "use sdp client * *:80-",
		"use sdp client * *:90-80", "use sdp client * *:65536", "use sdp client * *:-1",
		"use sdp client * 10.0.0:80", "use sdp client * 10.0.0.0/33:80",
		"use sdp client * 10.0.0.0/:80", "use sdp client * */8:80",
		"use sdp client * [fd00::]/129:80", "use sdp client * [fd00::]",
		"use sdp client * fd00::1:80", "use sdp client * [10.0.0.1]:80",
		"use sdp client * *:80 more", "use sdp client * *:99999999999999999999",
		"use sdp client * []:80", "use sdp client * [:80",
	};
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (!add(wrong[i])) {
			printf("taken: %s\n", wrong[i]);
			CHECK(0);
		}
	CHECK_EQ(rules.count, 0);
}

TEST(rules_other_families)
{
	struct sockaddr other = { .sa_family = AF_UNIX };

	CHECK(!add("use sdp client * *:*"));
	CHECK_EQ(sdp_rules_match(&rules, SDP_CLIENT, "a", &other), SDP_USE_TCP);
	sdp_rules_free(&rules);
}
