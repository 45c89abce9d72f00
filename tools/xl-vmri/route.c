/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * route: which devices of a fabric are on other hosts.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "xl-vmri.h"

static void show_route(struct writer *w, const struct vmri_ctl_route *route)
{
    char gid[INET6_ADDRSTRLEN], host[INET6_ADDRSTRLEN];

    inet_ntop(AF_INET6, route->gid, gid, sizeof(gid));
    inet_ntop(AF_INET6, route->host_gid, host, sizeof(host));
    if (!w->json) {
        printf("%8u %-39s %-39s\n", route->fabric, gid, host);
        return;
    }
    writer_open(w, NULL, '{');
    write_number(w, "fabric", route->fabric);
    write_string(w, "gid", gid);
    write_string(w, "host_gid", host);
    writer_close(w, '}');
}

static int report_route(const char *what, const struct vmri_ctl_fabric *f,
                        int rc)
{
    if (rc == -ENOENT)
        report("%s was not created, or has no such route", fabric_text(f));
    else if (rc == -EEXIST)
        report("%s has a route for this GID already", fabric_text(f));
    else if (rc == -ENOSPC)
        report("%s can have no more routes", fabric_text(f));
    else if (rc == -EINVAL)
        report("a multicast GID has no route");
    else
        report("cannot %s of %s: %s", what, fabric_text(f), error_text(rc));
    return RC_FAILURE;
}

static bool parse_gid(const char *what, const char *text, uint8_t gid[16])
{
    if (parse_address(text, gid) >= 0)
        return true;
    report("%s: \"%s\" is not an address", what, text);
    return false;
}

/* With two GIDs add, with one delete. */
static int change(const struct options *opt, struct vmri_ctl_fabric *f,
                  char **gids, bool add)
{
    struct vmri_ctl_route route = { 0 };
    int rc;

    if (!parse_gid("gid", gids[0], route.gid) ||
        (add && !parse_gid("host gid", gids[1], route.host_gid)))
        return RC_USAGE;
    if (!session_open() || !find_fabric(f))
        return RC_FAILURE;

    route.fabric = f->fabric;
    rc = add ? call_route_add(&route) : call_route_del(&route);
    return rc ? report_route(add ? "add a route" : "delete a route", f, rc)
              : RC_OK;
}

/* The next GID; false behind the last one that there can be. */
static bool next_gid(uint8_t gid[16])
{
    int i = 15;

    while (i >= 0 && !++gid[i])
        i--;
    return i >= 0;
}

static int list(const struct options *opt, struct vmri_ctl_fabric *f)
{
    struct vmri_ctl_route route = { 0 };
    struct writer w = { .json = opt->json };
    int rc;

    if (!session_open() || !find_fabric(f))
        return RC_FAILURE;

    if (opt->json)
        writer_open(&w, NULL, '[');
    else
        printf("%8s %-39s %-39s\n", "FABRIC", "GID", "HOST-GID");
    route.fabric = f->fabric;
    do {
        rc = call_route_list(&route);
        if (!rc)
            show_route(&w, &route);
    } while (!rc && next_gid(route.gid));
    if (opt->json)
        writer_close(&w, ']');
    return !rc || rc == -ENOENT ? RC_OK
                                : report_route("list the routes", f, rc);
}

int cmd_route(const struct options *opt, int argc, char **argv)
{
    struct vmri_ctl_fabric f = { 0 };

    if (argc > 1 && !parse_fabric(argv[1], &f))
        return RC_USAGE;
    if (argc == 4 && !strcmp(argv[0], "add"))
        return change(opt, &f, argv + 2, true);
    if (argc == 3 && !strcmp(argv[0], "del"))
        return change(opt, &f, argv + 2, false);
    if (argc == 2 && !strcmp(argv[0], "list"))
        return list(opt, &f);
    report("not one of: route add FABRIC GID HOST-GID, route del FABRIC GID, "
           "route list FABRIC");
    return RC_USAGE;
}
