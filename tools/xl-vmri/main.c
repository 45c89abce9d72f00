/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * xl-vmri: the operator's command for VMRI devices, to be run in dom0.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "xl-vmri.h"

#define DEFAULT_TIMEOUT 30      /* seconds */
#define MAX_TIMEOUT     3600
#define DEFAULT_DELAY   2.0     /* seconds */

void report(const char *fmt, ...)
{
    va_list args;

    /* What was printed before comes before. */
    fflush(stdout);
    fputs("xl-vmri: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

static int usage_error(void)
{
    fputs("Try \"xl-vmri --help\".\n", stderr);
    return RC_USAGE;
}

static bool parse_count(const char *what, const char *text, unsigned int min,
                        unsigned int max, unsigned int *count)
{
    uint64_t value;

    if (!parse_number(what, text, min, max, &value))
        return false;
    *count = value;
    return true;
}

/*
 * Read the options, which may stand anywhere; the other words are in argv from
 * optind on then.  Returns false when that was all: the program returns *rc.
 */
static bool parse_options(int argc, char **argv, struct options *opt,
                          unsigned int *given, int *rc)
{
    static const struct option longopts[] = {
        { "json", no_argument, NULL, 'j' },
        { "force", no_argument, NULL, 'f' },
        { "timeout", required_argument, NULL, 't' },
        { "batch", no_argument, NULL, 'b' },
        { "delay", required_argument, NULL, 'd' },
        { "iterations", required_argument, NULL, 'i' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    while ((c = getopt_long(argc, argv, "jft:bd:i:hV", longopts, NULL)) != -1) {
        switch (c) {
        case 'j':
            opt->json = true;
            break;
        case 'f':
            opt->force = true;
            *given |= OPT_FORCE;
            break;
        case 't':
            *given |= OPT_TIMEOUT;
            if (parse_count("timeout", optarg, 0, MAX_TIMEOUT, &opt->timeout))
                break;
            *rc = RC_USAGE;
            return false;
        case 'b':
            opt->batch = true;
            *given |= OPT_TOP;
            break;
        case 'd':
            *given |= OPT_TOP;
            if (parse_delay(optarg, &opt->delay))
                break;
            *rc = RC_USAGE;
            return false;
        case 'i':
            *given |= OPT_TOP;
            if (parse_count("iterations", optarg, 1, UINT32_MAX,
                            &opt->iterations))
                break;
            *rc = RC_USAGE;
            return false;
        case 'h':
            print_help(stdout);
            *rc = RC_OK;
            return false;
        case 'V':
            printf("xl-vmri %s (VMRI ABI %d)\n", VERSION, VMRI_ABI_VERSION);
            *rc = RC_OK;
            return false;
        default:
            *rc = usage_error();
            return false;
        }
    }
    return true;
}

/* The command that the words ask for, or NULL with a message. */
static const struct command *choose_command(int argc, char **argv,
                                            unsigned int given)
{
    const struct command *command;

    if (!argc) {
        report("no command given");
        return NULL;
    }

    command = find_command(argv[0]);
    if (!command) {
        report("there is no command \"%s\"", argv[0]);
        return NULL;
    }
    if (given & ~command->options) {
        report("%s does not take this option", command->name);
        return NULL;
    }
    if (argc - 1 < command->min_args || argc - 1 > command->max_args) {
        report("too %s arguments: %s %s",
               argc - 1 < command->min_args ? "few" : "many", command->name,
               command->synopsis);
        return NULL;
    }
    return command;
}

int main(int argc, char **argv)
{
    struct options opt = {
        .timeout = DEFAULT_TIMEOUT,
        .delay = DEFAULT_DELAY,
    };
    const struct command *command;
    unsigned int given = 0;
    int rc;

    if (!parse_options(argc, argv, &opt, &given, &rc))
        return rc;
    argc -= optind;
    argv += optind;

    command = choose_command(argc, argv, given);
    if (!command)
        return usage_error();

    rc = command->run(&opt, argc - 1, argv + 1);
    session_close();

    /* A full disk or a closed pipe is a failure too. */
    if (fflush(stdout) || ferror(stdout)) {
        report("cannot write the output: %s", strerror(errno));
        rc = RC_FAILURE;
    }
    return rc;
}
