/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The configuration file: "key = value", one a line.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd.h"

#define LINE_MAX_       1024
#define LEASE_MIN       5
#define LEASE_MAX       3600
#define LEASE_DEFAULT   60
#define PREFIX_MAX      100
#define GIDS            256     /* of an adapter's port that are looked at */

static bool set_text(char **to, const char *value)
{
    *to = xstrdup(value);
    return true;
}

static bool set_file(char **to, const char *value)
{
    if (*value != '/') {
        report("\"%s\" is not the path of a file from the root on", value);
        return false;
    }
    return set_text(to, value);
}

static bool set_endpoints(struct config *c, const char *value)
{
    char *copy = xstrdup(value), *next = copy, *one;
    unsigned int num = 0;
    bool ok = true;

    while (ok && (one = strsep(&next, ", \t"))) {
        size_t scheme = !strncmp(one, "https://", 8) ? 8
                      : !strncmp(one, "http://", 7) ? 7 : 0;

        if (!*one)
            continue;
        if (!scheme || !one[scheme] || strchr(one + scheme, '/')) {
            report("\"%s\" is not an endpoint such as https://etcd1:2379", one);
            ok = false;
        } else if (num == ENDPOINTS) {
            report("there are more than %d endpoints", ENDPOINTS);
            ok = false;
        } else {
            c->endpoints[num++] = xstrdup(one);
        }
    }
    free(copy);
    if (ok && !num) {
        report("no endpoint is named");
        ok = false;
    }
    return ok;
}

static bool set_prefix(struct config *c, const char *value)
{
    size_t n = strlen(value), i;

    for (i = 0; i < n && value[i] > ' ' && value[i] < 0x7f; i++)
        ;
    if (*value != '/' || value[n - 1] != '/' || n < 3 || n > PREFIX_MAX || i < n) {
        report("\"%s\" does not begin and end with a slash, or has odd characters, "
               "or more than %d", value, PREFIX_MAX);
        return false;
    }
    return set_text(&c->prefix, value);
}

static bool set_host(struct config *c, const char *value)
{
    if (!is_host_name(value)) {
        report("\"%s\" is not a name of up to %d letters, digits, \"-\", \"_\", \".\"",
               value, HOST_SIZE - 1);
        return false;
    }
    strcpy(c->host, value);
    return true;
}

static bool set_gid(struct config *c, const char *value)
{
    if (parse_address(value, c->gid) < 0 || !is_unicast(c->gid)) {
        report("\"%s\" is not the address of an adapter", value);
        return false;
    }
    c->has_gid = true;
    return true;
}

static bool set_device(struct config *c, const char *value)
{
    if (strchr(value, '/') || *value == '.') {
        report("\"%s\" is not the name of an RDMA device", value);
        return false;
    }
    return set_text(&c->device, value);
}

static bool set_lease(struct config *c, const char *value)
{
    uint64_t seconds;

    if (!parse_number("seconds", value, LEASE_MIN, LEASE_MAX, &seconds))
        return false;
    c->lease = seconds;
    return true;
}

static bool set_ca(struct config *c, const char *v) { return set_file(&c->ca, v); }
static bool set_cert(struct config *c, const char *v) { return set_file(&c->cert, v); }
static bool set_key(struct config *c, const char *v) { return set_file(&c->key, v); }
static bool set_state(struct config *c, const char *v) { return set_file(&c->state, v); }
static bool set_layer2(struct config *c, const char *v) { return set_file(&c->layer2, v); }

static const struct {
    const char *name;
    bool (*set)(struct config *config, const char *value);
} keys[] = {
    { "endpoints", set_endpoints },
    { "ca", set_ca },
    { "cert", set_cert },
    { "key", set_key },
    { "prefix", set_prefix },
    { "host", set_host },
    { "host-gid", set_gid },
    { "device", set_device },
    { "lease", set_lease },
    { "layer2", set_layer2 },
    { "state", set_state },
};

static char *trim(char *text)
{
    size_t n;

    while (isspace((unsigned char)*text))
        text++;
    for (n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--)
        ;
    text[n] = '\0';
    return text;
}

/* One line that is neither empty nor a comment. */
static bool read_setting(struct config *c, char *line, bool seen[ARRAY_SIZE(keys)])
{
    char *equals = strchr(line, '='), *name, *value;
    unsigned int k;

    if (!equals) {
        report("\"%s\" is not KEY = VALUE", line);
        return false;
    }
    *equals = '\0';
    name = trim(line);
    value = trim(equals + 1);
    for (k = 0; k < ARRAY_SIZE(keys) && strcmp(name, keys[k].name); k++)
        ;
    if (k == ARRAY_SIZE(keys)) {
        report("there is no setting \"%s\"", name);
        return false;
    }
    if (seen[k] || !*value) {
        report("%s is %s", name, seen[k] ? "set twice" : "empty");
        return false;
    }
    seen[k] = true;
    return keys[k].set(c, value);
}

static bool read_lines(struct config *c, FILE *f, const char *path)
{
    bool seen[ARRAY_SIZE(keys)] = { false }, ok = true;
    char line[LINE_MAX_], where[KEY_MAX];
    unsigned int number = 0;

    while (ok && fgets(line, sizeof(line), f)) {
        char *text = trim(line);

        snprintf(where, sizeof(where), "%s:%u", path, ++number);
        report_about(where);
        if (strlen(line) == sizeof(line) - 1) {
            report("the line is too long");
            ok = false;
        } else if (*text && *text != '#') {
            ok = read_setting(c, text, seen);
        }
    }
    report_about(path);
    if (ok && ferror(f)) {
        report("%s", strerror(errno));
        ok = false;
    }
    return ok;
}

/* What was not said. */
static bool fill_in(struct config *c)
{
    if (!c->endpoints[0])
        c->endpoints[0] = xstrdup("http://127.0.0.1:2379");
    if (!c->prefix)
        c->prefix = xstrdup("/softib/");
    if (!c->state)
        c->state = xstrdup("/run/vmri-fabricd");
    if (!c->lease)
        c->lease = LEASE_DEFAULT;
    if (!*c->host) {
        if (gethostname(c->host, sizeof(c->host)) ||
            !memchr(c->host, '\0', sizeof(c->host)) || !is_host_name(c->host)) {
            report("the name of this machine is none that a host can have: "
                   "set \"host\"");
            return false;
        }
    }
    if (!c->cert != !c->key) {
        report("cert and key go together");
        return false;
    }
    if (c->has_gid && c->device) {
        report("host-gid and device say the same: set one of them");
        return false;
    }
    return true;
}

bool config_read(struct config *config, const char *path)
{
    FILE *f = fopen(path, "r");
    bool ok;

    *config = (struct config){ .lease = 0 };
    report_about(path);
    if (!f) {
        report("%s", strerror(errno));
        report_about("");
        return false;
    }
    ok = read_lines(config, f, path) && fill_in(config);
    fclose(f);
    report_about("");
    return ok;
}

void config_free(struct config *config)
{
    unsigned int i;

    for (i = 0; i < ENDPOINTS; i++)
        free(config->endpoints[i]);
    free(config->ca);
    free(config->cert);
    free(config->key);
    free(config->prefix);
    free(config->device);
    free(config->layer2);
    free(config->state);
    *config = (struct config){ .lease = 0 };
}

/* The first line of a file of sysfs; false: there is none. */
static bool read_line(char *line, size_t size, const char *sysfs, const char *device,
                      const char *what, unsigned int index)
{
    char path[512];
    FILE *f;
    bool ok;

    if ((size_t)snprintf(path, sizeof(path), "%s/class/infiniband/%s/ports/1/%s/%u",
                         sysfs, device, what, index) >= sizeof(path))
        return false;
    f = fopen(path, "r");
    ok = f && fgets(line, size, f);
    if (f)
        fclose(f);
    if (ok)
        line[strcspn(line, "\n")] = '\0';
    return ok;
}

bool config_gid(const struct config *config, const char *sysfs, uint8_t gid[16])
{
    char type[64], text[64];
    unsigned int i;

    if (config->has_gid) {
        memcpy(gid, config->gid, 16);
        return true;
    }
    if (!config->device) {
        report("neither host-gid nor device is set: by which address do other hosts "
               "reach the adapter?");
        return false;
    }
    for (i = 0; i < GIDS; i++)
        if (read_line(type, sizeof(type), sysfs, config->device, "gid_attrs/types", i) &&
            !strcmp(type, "RoCE v2") &&
            read_line(text, sizeof(text), sysfs, config->device, "gids", i) &&
            inet_pton(AF_INET6, text, gid) == 1 && is_unicast(gid) &&
            !(gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80))
            return true;
    report("device %s is not there, or has no address of RoCE v2 but link-local ones",
           config->device);
    return false;
}
