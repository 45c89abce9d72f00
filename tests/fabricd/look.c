/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * look fabrics | routes FABRIC | rules FABRIC: what the host's VMRI has, in one line
 * with commas, so that it is easily compared.
 * look say WORD...: have the host do something.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <xencall.h>
#include <xl-vmri.h>

#include "wire.h"

void report(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

static void fabrics(void)
{
    struct vmri_ctl_fabric f = { 0 };
    const char *comma = "";

    for (; !call_fabric_list(&f); f.fabric++, comma = ",")
        printf("%s%s:%u:%s", comma, f.name, f.fabric,
               f.link == VMRI_LINK_ROCE ? "roce" : "ib");
}

/* By name; the number of none is VMRI_FABRIC_ANY. */
static uint32_t number_of(const char *name)
{
    struct vmri_ctl_fabric f = { 0 };

    for (; !call_fabric_list(&f); f.fabric++)
        if (!strcmp(f.name, name))
            return f.fabric;
    return VMRI_FABRIC_ANY;
}

static const char *short_text(const uint8_t gid[16], char text[INET6_ADDRSTRLEN])
{
    inet_ntop(AF_INET6, gid, text, INET6_ADDRSTRLEN);
    return strncmp(text, "::ffff:", 7) ? text : text + 7;
}

static void routes(uint32_t fabric)
{
    struct vmri_ctl_route r = { .fabric = fabric };
    char gid[INET6_ADDRSTRLEN], host[INET6_ADDRSTRLEN];
    const char *comma = "";

    for (; !call_route_list(&r); comma = ",") {
        printf("%s%s>%s", comma, short_text(r.gid, gid), short_text(r.host_gid, host));
        for (int i = 15; i >= 0 && !++r.gid[i]; i--)
            ;
    }
}

static void rules(uint32_t fabric)
{
    struct vmri_ctl_rule r = { .fabric = fabric };
    const char *comma = "";

    for (; !call_rule_list(&r); r.rule++, comma = ",")
        printf("%s%s", comma, rule_text(&r));
}

static int say(int argc, char **argv)
{
    xencall_handle *handle = xencall_open(NULL, 0);
    char *line = handle ? xencall_alloc_buffer(handle, 256) : NULL;
    size_t n = 0;
    int i;

    if (!line)
        return 1;
    for (i = 0; i < argc; i++)
        n += snprintf(line + n, 256 - n, "%s ", argv[i]);
    if (xencall3(handle, 0, WIRE_SAY, 0, (uintptr_t)line) < 0) {
        report("%s: %s", argv[0], strerror(errno));
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "say"))
        return say(argc - 2, argv + 2);
    if (argc < 2 || call_open())
        return 1;
    if (!strcmp(argv[1], "fabrics"))
        fabrics();
    else if (argc == 3 && !strcmp(argv[1], "routes"))
        routes(number_of(argv[2]));
    else if (argc == 3 && !strcmp(argv[1], "rules"))
        rules(number_of(argv[2]));
    else
        return 2;
    putchar('\n');
    call_close();
    return 0;
}
