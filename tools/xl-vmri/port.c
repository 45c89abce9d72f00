/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * port: what a device's port is, and what its guest is told of changes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "xl-vmri.h"

#define PKEY_PARTITION 0x7fff   /* without the bit of a full member */

/* Words that say all themselves, and those that a value follows. */
static const struct setting {
    const char *name;
    uint32_t attr;              /* VMRI_PORTA_* */
    bool takes_value;
    uint64_t min, max;          /* the first is what a word without value says */
} settings[] = {
    { "up", VMRI_PORTA_STATE, false, VMRI_PORT_ACTIVE, 0 },
    { "down", VMRI_PORTA_STATE, false, VMRI_PORT_DOWN, 0 },
    { "reregister", VMRI_PORTA_REREGISTER, false, 0, 0 },
    { "lid", VMRI_PORTA_LID, true, 1, VMRI_LID_MAX },
    { "sm-lid", VMRI_PORTA_SM_LID, true, 0, VMRI_LID_MAX },
    { "pkeys", VMRI_PORTA_PKEY, true, 1, 0xffff },
    { "gid-prefix", VMRI_PORTA_GID_PREFIX, true, 0, 0xfeffffffffffffffULL },
};

static const struct setting *find_setting(const char *word)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    size_t i;

    for (i = 0; i < ARRAY_SIZE(settings); i++)
        if (length == strlen(settings[i].name) &&
            !strncmp(word, settings[i].name, length) &&
            settings[i].takes_value == !!equals)
            return &settings[i];
    return NULL;
}

static void set(struct vmri_ctl_port *port, uint32_t attr, uint64_t value)
{
    port->mask |= attr;
    switch (attr) {
    case VMRI_PORTA_STATE:
        port->state = value;
        break;
    case VMRI_PORTA_LID:
        port->lid = value;
        break;
    case VMRI_PORTA_SM_LID:
        port->sm_lid = value;
        break;
    case VMRI_PORTA_GID_PREFIX:
        port->gid_prefix = value;
        break;
    }
}

/* The table from its first entry on, separated by commas; the rest is empty. */
static bool parse_pkeys(const struct setting *s, const char *list,
                        struct vmri_ctl_port *port)
{
    char text[8 * VMRI_MAX_PKEYS], *word, *rest = text;
    uint64_t value;
    unsigned int n = 0, i;

    if (snprintf(text, sizeof(text), "%s", list) >= (int)sizeof(text)) {
        report("%s: too long", s->name);
        return false;
    }
    while ((word = strsep(&rest, ","))) {
        if (n == VMRI_MAX_PKEYS) {
            report("%s: a port has %u at the most", s->name, n);
            return false;
        }
        if (!parse_number(s->name, word, s->min, s->max, &value))
            return false;
        if (!(value & PKEY_PARTITION)) {
            report("%s: 0x%04x names no partition", s->name,
                   (unsigned int)value);
            return false;
        }
        for (i = 0; i < n; i++)
            if (!((port->pkeys[i] ^ value) & PKEY_PARTITION)) {
                report("%s: partition 0x%04x is given twice", s->name,
                       (unsigned int)(value & PKEY_PARTITION));
                return false;
            }
        port->pkeys[n++] = value;
    }
    port->mask |= s->attr;
    return true;
}

static bool parse_word(const char *word, struct vmri_ctl_port *port)
{
    const struct setting *s = find_setting(word);
    uint64_t value;

    if (!s) {
        report("\"%s\" is not one of up, down, reregister, lid=N, sm-lid=N, "
               "pkeys=N[,N...], gid-prefix=N", word);
        return false;
    }
    if (port->mask & s->attr) {
        report("%s is given twice",
               s->attr == VMRI_PORTA_STATE ? "the state" : s->name);
        return false;
    }
    if (s->attr == VMRI_PORTA_PKEY)
        return parse_pkeys(s, strchr(word, '=') + 1, port);
    value = s->min;
    if (s->takes_value && !parse_number(s->name, strchr(word, '=') + 1, s->min,
                                        s->max, &value))
        return false;
    set(port, s->attr, value);
    return true;
}

static bool is_id(const char *word)
{
    return *word >= '0' && *word <= '9';
}

/* The words after the domain; dev_id is VMRI_DEV_ANY when they name none. */
static bool parse_port(int argc, char **argv, struct vmri_ctl_port *port)
{
    int i = 0;

    port->dev_id = VMRI_DEV_ANY;
    if (argc && is_id(argv[0]) && !parse_dev_id(argv[i++], &port->dev_id))
        return false;
    for (; i < argc; i++)
        if (!parse_word(argv[i], port))
            return false;
    return true;
}

static void report_port(const struct vmri_ctl_port *port, int rc)
{
    switch (-rc) {
    case ESRCH:
        report("%s is going away", domain_text(port->domid));
        break;
    case ENODEV:
        report("%s has no device %u", domain_text(port->domid), port->dev_id);
        break;
    case EEXIST:
        report("LID %u belongs to another device on the fabric", port->lid);
        break;
    default:
        report("cannot %s the port of device %u of %s: %s",
               port->mask ? "change" : "look up", port->dev_id,
               domain_text(port->domid), error_text(rc));
    }
}

static const char *port_state_name(uint8_t state)
{
    static const char *const names[] = {
        [VMRI_PORT_DOWN] = "down",
        [VMRI_PORT_INIT] = "initialize",
        [VMRI_PORT_ARMED] = "armed",
        [VMRI_PORT_ACTIVE] = "active",
    };

    return state < ARRAY_SIZE(names) && names[state] ? names[state] : "?";
}

/* Up to the last entry that is not empty. */
static unsigned int count_pkeys(const struct vmri_ctl_port *port)
{
    unsigned int n = VMRI_MAX_PKEYS;

    while (n && !port->pkeys[n - 1])
        n--;
    return n;
}

static void show_port(const struct options *opt,
                      const struct vmri_ctl_port *port)
{
    struct writer w = { .json = opt->json };
    const unsigned int num_pkeys = count_pkeys(port);
    char prefix[GUID_TEXT_SIZE];
    unsigned int i;

    guid_text(port->gid_prefix, prefix);
    if (!opt->json) {
        printf("%s: device %u, port %s, LID %u, SM LID %u, P_Keys",
               domain_text(port->domid), port->dev_id,
               port_state_name(port->state), port->lid, port->sm_lid);
        for (i = 0; i < num_pkeys; i++)
            printf(" 0x%04x", port->pkeys[i]);
        printf(", GID prefix %s\n", prefix);
        return;
    }
    writer_open(&w, NULL, '{');
    write_number(&w, "domid", port->domid);
    write_number(&w, "id", port->dev_id);
    write_string(&w, "state", port_state_name(port->state));
    write_number(&w, "lid", port->lid);
    write_number(&w, "sm_lid", port->sm_lid);
    write_string(&w, "gid_prefix", prefix);
    writer_open(&w, "pkeys", '[');
    for (i = 0; i < num_pkeys; i++)
        write_number(&w, NULL, port->pkeys[i]);
    writer_close(&w, ']');
    writer_close(&w, '}');
}

int cmd_port(const struct options *opt, int argc, char **argv)
{
    struct vmri_ctl_port port = { .mask = 0 };
    int rc;

    if (!parse_port(argc - 1, argv + 1, &port))
        return RC_USAGE;
    if (!session_open() || !session_domain(argv[0], &port.domid))
        return RC_FAILURE;
    if (port.dev_id == VMRI_DEV_ANY &&
        !session_device(port.domid, &port.dev_id))
        return RC_FAILURE;

    rc = call_port(&port);
    if (rc) {
        report_port(&port, rc);
        return RC_FAILURE;
    }
    show_port(opt, &port);
    return RC_OK;
}
