/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmri-fabricd: keeps VMRI's routes and rules as a cluster's store says, and is the
 * operator's command on that store.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "fabricd.h"

#define CONFIG_FILE "/etc/vmri/fabricd.conf"
#define SYSFS       "/sys"

static const struct {
    const char *name, *synopsis, *help;
    int (*run)(const struct config *config, int argc, char **argv);
} commands[] = {
    { "fabric", "create NAME [id=N] [link=ib|roce] [vni=N] | delete NAME | list",
      "the networks of the cluster", op_fabric },
    { "rule", "add FABRIC ingress|egress [SETTING...] | del FABRIC N |\n"
              "      flush FABRIC | list FABRIC",
      "who may talk to whom on them, in xl-vmri's words", op_rule },
    { "claim", "list FABRIC | delete FABRIC GID",
      "which host has the devices", op_claim },
    { "host", "list | delete NAME",
      "the hosts; what one has that is no more", op_host },
};

static void show_help(void)
{
    size_t i;

    fputs("Usage: vmri-fabricd [--config FILE] run\n"
          "       vmri-fabricd [--config FILE] COMMAND [ARGUMENT...]\n"
          "       vmri-fabricd --help | --version\n"
          "\n"
          "Keep VMRI's fabrics, rules and routes on this host as the cluster's etcd says,\n"
          "and tell it what this host has.\n"
          "\n"
          "Commands:\n"
          "  run\n"
          "      be the daemon, until SIGTERM\n", stdout);
    for (i = 0; i < ARRAY_SIZE(commands); i++)
        printf("  %s %s\n      %s\n", commands[i].name, commands[i].synopsis,
               commands[i].help);
    fputs("\n"
          "Options:\n"
          "  -c, --config FILE  instead of " CONFIG_FILE "\n"
          "  -h, --help         print this text\n"
          "  -V, --version      print the version\n", stdout);
}

static int usage_error(void)
{
    fputs("Try \"vmri-fabricd --help\".\n", stderr);
    return RC_USAGE;
}

static int run_command(const struct config *config, int argc, char **argv)
{
    size_t i;

    if (!strcmp(argv[0], "run"))
        return run_daemon(config, SYSFS);
    for (i = 0; i < ARRAY_SIZE(commands); i++)
        if (!strcmp(argv[0], commands[i].name))
            return commands[i].run(config, argc - 1, argv + 1);
    return RC_USAGE;
}

static bool is_command(int argc, char **argv)
{
    size_t i;

    if (!argc) {
        report("no command given");
        return false;
    }
    if (!strcmp(argv[0], "run") && argc > 1) {
        report("run takes no arguments");
        return false;
    }
    for (i = 0; i < ARRAY_SIZE(commands); i++)
        if (!strcmp(argv[0], commands[i].name) && argc > 1)
            return true;
    if (!strcmp(argv[0], "run"))
        return true;
    report("there is no command \"%s\", or it needs arguments", argv[0]);
    return false;
}

int main(int argc, char **argv)
{
    static const struct option longopts[] = {
        { "config", required_argument, NULL, 'c' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { NULL, 0, NULL, 0 },
    };
    const char *path = CONFIG_FILE;
    struct config config;
    int c, rc;

    while ((c = getopt_long(argc, argv, "c:hV", longopts, NULL)) != -1)
        switch (c) {
        case 'c':
            path = optarg;
            break;
        case 'h':
            show_help();
            return RC_OK;
        case 'V':
            printf("vmri-fabricd %s (VMRI ABI %d)\n", VERSION, VMRI_ABI_VERSION);
            return RC_OK;
        default:
            return usage_error();
        }
    argc -= optind;
    argv += optind;
    if (!is_command(argc, argv))
        return usage_error();

    rc = config_read(&config, path) ? run_command(&config, argc, argv) : RC_FAILURE;
    config_free(&config);
    if (fflush(stdout) || ferror(stdout)) {
        report("cannot write the output: %s", strerror(errno));
        rc = RC_FAILURE;
    }
    return rc;
}
