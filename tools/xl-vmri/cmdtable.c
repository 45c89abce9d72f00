/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands and the help text made from them.
 */
#include <string.h>

#include "xl-vmri.h"

static const struct command commands[] = {
    {
        .name = "attach",
        .synopsis = "DOMAIN [fabric=NAME] [lid=N] [guid=G] [id=N] [group=N] [mac=M]\n"
                    "      [sm=1] [uplink=N]",
        .help = "give a domain a device; numbers left out are chosen",
        .min_args = 1, .max_args = 9,
        .run = cmd_attach,
    },
    {
        .name = "detach",
        .synopsis = "DOMAIN ID [--force] [--timeout S]",
        .help = "take a device away once the guest has closed it",
        .options = OPT_FORCE | OPT_TIMEOUT,
        .min_args = 2, .max_args = 2,
        .run = cmd_detach,
    },
    {
        .name = "fabric",
        .synopsis = "create NAME|ID [link=ib|roce] [id=N] | delete NAME|ID | list",
        .help = "make, remove or show the networks that devices are attached to",
        .min_args = 1, .max_args = 4,
        .run = cmd_fabric,
    },
    {
        .name = "list",
        .synopsis = "[DOMAIN]",
        .help = "show the devices, one a line",
        .max_args = 1,
        .run = cmd_list,
    },
    {
        .name = "info",
        .synopsis = "[DOMAIN [ID]]",
        .help = "show all about the host, or about devices",
        .max_args = 2,
        .run = cmd_info,
    },
    {
        .name = "limits",
        .synopsis = "DOMAIN [NAME=VALUE...]",
        .help = "show, or set and show, what a domain may use",
        .min_args = 1, .max_args = 1 + VMRI_RES_NR,
        .run = cmd_limits,
    },
    {
        .name = "port",
        .synopsis = "DOMAIN [ID] [SETTING...]",
        .help = "show, or change and show, a port: up, down, lid=N, sm-lid=N,\n"
                "      pkeys=N[,N...], gid-prefix=N, reregister",
        .min_args = 1, .max_args = 8,
        .run = cmd_port,
    },
    {
        .name = "rate",
        .synopsis = "DOMAIN [ID] [RATE|unlimited] [burst=SIZE] [sl=N]",
        .help = "show, or set and show, how fast a device may send, as 10Gb/s:\n"
                "      all of it together, or what it sends on a service level",
        .min_args = 1, .max_args = 5,
        .run = cmd_rate,
    },
    {
        .name = "route",
        .synopsis = "add FABRIC GID HOST-GID | del FABRIC GID | list FABRIC",
        .help = "say, or show, which devices of a fabric are on other hosts",
        .min_args = 1, .max_args = 4,
        .run = cmd_route,
    },
    {
        .name = "rule",
        .synopsis = "add FABRIC ingress|egress [group=N] [remote=PREFIX]\n"
                    "      [remote-group=N] [proto=any|ib|roce] |\n"
                    "      del FABRIC N | flush FABRIC | list FABRIC",
        .help = "say, or show, who may talk to whom on a fabric",
        .min_args = 1, .max_args = 7,
        .run = cmd_rule,
    },
    {
        .name = "stats",
        .synopsis = "[DOMAIN [ID]]",
        .help = "show all that devices count, by type of queue pair too",
        .max_args = 2,
        .run = cmd_stats,
    },
    {
        .name = "top",
        .synopsis = "[DOMAIN] [--batch] [--delay S] [--iterations N]",
        .help = "show what devices do a second, again and again",
        .options = OPT_TOP,
        .max_args = 1,
        .run = cmd_top,
    },
    {
        .name = "dump",
        .synopsis = "DOMAIN [ID]",
        .help = "show the objects of devices",
        .min_args = 1, .max_args = 2,
        .run = cmd_dump,
    },
};

const struct command *find_command(const char *name)
{
    size_t i;

    for (i = 0; i < ARRAY_SIZE(commands); i++)
        if (!strcmp(name, commands[i].name))
            return &commands[i];
    return NULL;
}

void print_help(FILE *f)
{
    size_t i;

    fputs("Usage: xl-vmri [--json] COMMAND [ARGUMENT...]\n"
          "       xl-vmri --help | --version\n"
          "\n"
          "Give domains InfiniBand devices (SoftIB), and look at them.\n"
          "\n"
          "Commands:\n", f);
    for (i = 0; i < ARRAY_SIZE(commands); i++)
        fprintf(f, "  %s %s\n      %s\n", commands[i].name,
                commands[i].synopsis, commands[i].help);
    fputs("\n"
          "DOMAIN is a name or an id, and so is a fabric.\n"
          "\n"
          "Options:\n"
          "  -j, --json         print JSON\n"
          "  -f, --force        detach: do not wait for the guest\n"
          "  -t, --timeout S    detach: wait no more than S seconds (30)\n"
          "  -b, --batch        top: one table after the other\n"
          "  -d, --delay S      top: seconds between two tables (2)\n"
          "  -i, --iterations N top: end after N tables\n"
          "  -h, --help         print this text\n"
          "  -V, --version      print the version\n", f);
}
