/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rate: how fast a device may send.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "xl-vmri.h"

#define RATE_TEXT_SIZE 32

/* Bits a second, as network people have them. */
static const struct unit {
    const char *name;
    uint64_t bits;
} units[] = {
    { "Tb/s", 1000000000000ULL },
    { "Gb/s", 1000000000ULL },
    { "Mb/s", 1000000ULL },
    { "kb/s", 1000ULL },
};

/* What follows a number, or NULL. */
static const struct unit *find_unit(const char *text)
{
    size_t i;

    for (i = 0; i < ARRAY_SIZE(units); i++)
        if (!strcasecmp(text, units[i].name))
            return &units[i];
    return NULL;
}

/* "10Gb/s", "2.5Gb/s": into bytes a second. */
static bool parse_rate(const char *text, uint64_t *rate)
{
    const size_t length = strspn(text, "0123456789.");
    const struct unit *unit = find_unit(text + length);
    char *end;
    double value = strtod(text, &end);

    if (!length || end != text + length || !unit) {
        report("\"%s\" is not a rate, as 2.5Gb/s or 100Mb/s", text);
        return false;
    }
    value *= unit->bits / 8.0;
    if (value < VMRI_RATE_MIN || value > VMRI_RATE_MAX) {
        report("a rate is 1Mb/s to 1Tb/s");
        return false;
    }
    *rate = value;
    return true;
}

static bool parse_words(int argc, char **argv, struct vmri_ctl_rate *rate)
{
    bool seen[3] = { false };   /* the rate, burst, sl */
    uint64_t value;
    int i;

    for (i = 0; i < argc; i++) {
        unsigned int word = 0;

        if (!strncmp(argv[i], "burst=", 6)) {
            word = 1;
            if (!parse_amount("burst", argv[i] + 6, VMRI_BURST_MAX,
                              &rate->burst))
                return false;
            if (rate->burst < VMRI_BURST_MIN) {
                report("burst: %u bytes at the least", VMRI_BURST_MIN);
                return false;
            }
        } else if (!strncmp(argv[i], "sl=", 3)) {
            word = 2;
            if (!parse_number("sl", argv[i] + 3, 0, VMRI_RATE_DEVICE - 1,
                              &value))
                return false;
            rate->which = value;
        } else if (!strcmp(argv[i], "unlimited")) {
            rate->rate = 0;
        } else if (!parse_rate(argv[i], &rate->rate)) {
            return false;
        }
        if (seen[word]) {
            report("%s is given twice", word == 1 ? "burst" : word ? "sl"
                                                            : "the rate");
            return false;
        }
        seen[word] = true;
    }
    if (seen[1] && !rate->rate) {
        report("burst needs a rate");
        return false;
    }
    if (seen[0])
        rate->flags = VMRI_RATE_SET;
    return true;
}

static const char *rate_text(uint64_t rate, char buffer[static RATE_TEXT_SIZE])
{
    const struct unit *unit = units;

    while (rate * 8 < unit->bits)
        unit++;
    snprintf(buffer, RATE_TEXT_SIZE, "%.10g%s", rate * 8.0 / unit->bits,
             unit->name);
    return buffer;
}

/* Nothing is written of a service level without a limit, unless asked for. */
static void show(struct writer *w, const struct vmri_ctl_rate *rate, bool asked)
{
    char text[RATE_TEXT_SIZE], sl[16] = "";

    if (rate->which != VMRI_RATE_DEVICE && !rate->rate && !asked)
        return;
    if (w->json) {
        writer_open(w, NULL, '{');
        if (rate->which == VMRI_RATE_DEVICE)
            write_string(w, "sl", NULL);
        else
            write_number(w, "sl", rate->which);
        write_number(w, "bytes_per_second", rate->rate);
        write_number(w, "burst", rate->burst);
        writer_close(w, '}');
        return;
    }
    if (rate->which != VMRI_RATE_DEVICE)
        snprintf(sl, sizeof(sl), ", SL %u", rate->which);
    printf("%s: device %u%s, ", domain_text(rate->domid), rate->dev_id, sl);
    if (rate->rate)
        printf("%s, burst %llu bytes\n", rate_text(rate->rate, text),
               (unsigned long long)rate->burst);
    else
        printf("unlimited\n");
}

/* The one that was set or asked for, or all. */
static int run(struct writer *w, struct vmri_ctl_rate *rate, bool all)
{
    const uint32_t last = all ? VMRI_RATE_DEVICE : rate->which;
    int rc = 0;

    if (w->json)
        writer_open(w, NULL, '[');
    for (rate->which = all ? 0 : last; !rc && rate->which <= last;
         rate->which++) {
        rc = call_rate(rate);
        if (!rc)
            show(w, rate, !all);
    }
    if (w->json)
        writer_close(w, ']');
    return rc;
}

int cmd_rate(const struct options *opt, int argc, char **argv)
{
    struct vmri_ctl_rate rate = { .which = VMRI_RATE_DEVICE };
    struct writer w = { .json = opt->json };
    int first = 1, rc;

    rate.dev_id = VMRI_DEV_ANY;
    if (argc > 1 && is_decimal(argv[1], UINT32_MAX, &rate.dev_id)) {
        if (!parse_dev_id(argv[1], &rate.dev_id))
            return RC_USAGE;
        first++;
    }
    if (!parse_words(argc - first, argv + first, &rate))
        return RC_USAGE;
    if (!session_open() || !session_domain(argv[0], &rate.domid) ||
        (rate.dev_id == VMRI_DEV_ANY &&
         !session_device(rate.domid, &rate.dev_id)))
        return RC_FAILURE;

    rc = run(&w, &rate, argc == first);
    if (rc == -ENODEV)
        report("%s has no device %u", domain_text(rate.domid), rate.dev_id);
    else if (rc)
        report("cannot %s the rate of device %u of %s: %s",
               rate.flags ? "set" : "look up", rate.dev_id,
               domain_text(rate.domid),
               rc == -ESRCH ? "it is going away" : error_text(rc));
    return rc ? RC_FAILURE : RC_OK;
}
