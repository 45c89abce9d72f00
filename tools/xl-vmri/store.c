/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * xenstore: domains' names, and the pair of nodes of a device.
 *
 * The frontend's directory belongs to the guest: nothing in it but `state` is
 * ever read, and that only as one of six numbers.  Both paths are made from
 * domain and device id, never taken from a node.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xenstore.h>

#include "xl-vmri.h"

#define DOMAINS         "/local/domain"
#define BACKENDS        "/local/domain/0/backend/vmri"
#define VIF_BACKENDS    "/local/domain/0/backend/vif"
#define PATH_SIZE       96

/*
 * A transaction that another one disturbs is tried again, but a guest that
 * writes its nodes without end must not keep the operator waiting.
 */
#define TRANSACTION_TRIES 100

static struct xs_handle *xs;

int store_open(void)
{
    errno = 0;
    xs = xs_open(0);
    if (xs)
        return 0;
    return errno ? -errno : -EIO;
}

void store_close(void)
{
    if (xs)
        xs_close(xs);
    xs = NULL;
}

const char *state_name(int state)
{
    static const char *const names[] = {
        [STATE_UNKNOWN] = "Unknown",
        [STATE_INITIALISING] = "Initialising",
        [STATE_INIT_WAIT] = "InitWait",
        [STATE_INITIALISED] = "Initialised",
        [STATE_CONNECTED] = "Connected",
        [STATE_CLOSING] = "Closing",
        [STATE_CLOSED] = "Closed",
    };

    return state < 0 ? NULL : names[state];
}

/* Domains */

static char *read_domain_key(uint32_t domid, const char *key)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), DOMAINS "/%u%s", domid, key);
    return xs_read(xs, XBT_NULL, path, NULL);
}

int store_domain_exists(uint32_t domid)
{
    char *value = read_domain_key(domid, "");

    if (!value)
        return -errno;
    free(value);
    return 0;
}

char *store_domain_name(uint32_t domid)
{
    return read_domain_key(domid, "/name");
}

int store_find_domain(const char *name, uint32_t *domid)
{
    unsigned int i, num;
    char **entries = xs_directory(xs, XBT_NULL, DOMAINS, &num);
    int rc = -ENOENT;

    if (!entries)
        return -errno;

    for (i = 0; i < num && rc; i++) {
        uint32_t id;
        char *found;

        if (!is_decimal(entries[i], DOMID_LAST, &id))
            continue;
        found = store_domain_name(id);
        if (found && !strcmp(found, name)) {
            *domid = id;
            rc = 0;
        }
        free(found);
    }
    free(entries);
    return rc;
}

/* The lowest numbered entry of a directory: 0 or a negative errno. */
static int first_number(const char *path, uint32_t *number)
{
    unsigned int i, num;
    char **entries = xs_directory(xs, XBT_NULL, path, &num);
    int rc = -ENOENT;

    if (!entries)
        return -errno;
    for (i = 0; i < num; i++) {
        uint32_t n;

        if (is_decimal(entries[i], UINT32_MAX, &n) && (rc || n < *number)) {
            *number = n;
            rc = 0;
        }
    }
    free(entries);
    return rc;
}

int store_vif_mac(uint32_t domid, char mac[MAC_TEXT_SIZE])
{
    char path[PATH_SIZE];
    uint32_t vif = 0;
    char *value;
    int rc;

    snprintf(path, sizeof(path), VIF_BACKENDS "/%u", domid);
    rc = first_number(path, &vif);
    if (rc)
        return rc;

    snprintf(path, sizeof(path), VIF_BACKENDS "/%u/%u/mac", domid, vif);
    value = xs_read(xs, XBT_NULL, path, NULL);
    if (!value)
        return -errno;
    if (is_mac(value))
        memcpy(mac, value, MAC_TEXT_SIZE);
    else
        rc = -EINVAL;
    free(value);
    return rc;
}

/* Devices */

/* What the nodes of one say. */
struct nodes {
    struct vmri_ctl_attach dev;
    const char *mac;            /* "": none */
};

static void frontend_path(char path[static PATH_SIZE], uint32_t domid,
                          uint32_t dev_id)
{
    snprintf(path, PATH_SIZE, DOMAINS "/%u/device/vmri/%u", domid, dev_id);
}

static void backend_path(char path[static PATH_SIZE], uint32_t domid,
                         uint32_t dev_id)
{
    snprintf(path, PATH_SIZE, BACKENDS "/%u/%u", domid, dev_id);
}

/*
 * Run body in one transaction.  What it changed counts only if it returns 0; it
 * returns -EAGAIN when it finds that others have disturbed it.
 */
static int transact(int (*body)(xs_transaction_t t, const struct nodes *nodes),
                    const struct nodes *nodes)
{
    unsigned int tries;

    for (tries = 0; tries < TRANSACTION_TRIES; tries++) {
        xs_transaction_t t = xs_transaction_start(xs);
        int rc;

        if (t == XBT_NULL)
            return -errno;
        rc = body(t, nodes);
        if (!xs_transaction_end(xs, t, rc) && !rc)
            rc = -errno;
        if (rc != -EAGAIN)
            return rc;
    }
    return -EAGAIN;
}

static int __attribute__((format(printf, 4, 5)))
write_key(xs_transaction_t t, const char *dir, const char *key,
          const char *fmt, ...)
{
    char path[PATH_SIZE + 16], value[PATH_SIZE];
    va_list args;

    snprintf(path, sizeof(path), "%s/%s", dir, key);
    va_start(args, fmt);
    vsnprintf(value, sizeof(value), fmt, args);
    va_end(args);
    return xs_write(xs, t, path, value, strlen(value)) ? 0 : -errno;
}

/*
 * Paths are well-formed: xenstored's EINVAL means that it has seen the node in this
 * transaction, but not what it was in, which somebody has removed in between.
 */
static int remove_tree(xs_transaction_t t, const char *path)
{
    if (xs_rm(xs, t, path) || errno == ENOENT)
        return 0;
    return errno == EINVAL ? -EAGAIN : -errno;
}

/*
 * An empty directory that owner can write and reader can read, as can all that
 * is created in it later.  What an earlier domain of this id left goes.
 */
static int make_directory(xs_transaction_t t, const char *path, uint32_t owner,
                          uint32_t reader)
{
    struct xs_permissions perms[] = {
        { .id = owner, .perms = XS_PERM_NONE },
        { .id = reader, .perms = XS_PERM_READ },
    };
    int rc = remove_tree(t, path);

    if (rc)
        return rc;
    if (!xs_mkdir(xs, t, path) ||
        !xs_set_permissions(xs, t, path, perms, ARRAY_SIZE(perms)))
        return -errno;
    return 0;
}

static int write_frontend(xs_transaction_t t, const struct nodes *nodes,
                          const char *frontend, const char *backend)
{
    const struct vmri_ctl_attach *dev = &nodes->dev;
    int rc = make_directory(t, frontend, dev->domid, 0);

    if (!rc)
        rc = write_key(t, frontend, "backend", "%s", backend);
    if (!rc)
        rc = write_key(t, frontend, "backend-id", "0");
    if (!rc)
        rc = write_key(t, frontend, "hypercall", "%u", VMRI_HYPERCALL_DEFAULT);
    if (!rc)
        rc = write_key(t, frontend, "dev-id", "%u", dev->dev_id);
    if (!rc && *nodes->mac)
        rc = write_key(t, frontend, "mac", "%s", nodes->mac);
    if (!rc)
        rc = write_key(t, frontend, "state", "%u", STATE_INITIALISING);
    return rc;
}

static int write_backend(xs_transaction_t t, const struct vmri_ctl_attach *dev,
                         const char *frontend, const char *backend)
{
    char guid[GUID_TEXT_SIZE];
    int rc = make_directory(t, backend, 0, dev->domid);

    if (!rc)
        rc = write_key(t, backend, "frontend", "%s", frontend);
    if (!rc)
        rc = write_key(t, backend, "frontend-id", "%u", dev->domid);
    if (!rc)
        rc = write_key(t, backend, "fabric", "%u", dev->fabric);
    if (!rc)
        rc = write_key(t, backend, "lid", "%u", dev->lid);
    if (!rc)
        rc = write_key(t, backend, "guid", "%s", guid_text(dev->guid, guid));
    if (!rc)
        rc = write_key(t, backend, "online", "1");
    if (!rc)
        rc = write_key(t, backend, "state", "%u", STATE_CONNECTED);
    return rc;
}

static int add_nodes(xs_transaction_t t, const struct nodes *nodes)
{
    const struct vmri_ctl_attach *dev = &nodes->dev;
    char frontend[PATH_SIZE], backend[PATH_SIZE], domain[PATH_SIZE];
    char *alive;
    int rc;

    /*
     * Reading the domain's directory makes the transaction fail when the
     * domain goes meanwhile: its path must not be created anew.
     */
    snprintf(domain, sizeof(domain), DOMAINS "/%u", dev->domid);
    alive = xs_read(xs, t, domain, NULL);
    if (!alive)
        return errno == ENOENT ? -ESRCH : -errno;
    free(alive);

    frontend_path(frontend, dev->domid, dev->dev_id);
    backend_path(backend, dev->domid, dev->dev_id);
    rc = write_frontend(t, nodes, frontend, backend);
    if (!rc)
        rc = write_backend(t, dev, frontend, backend);
    return rc;
}

int store_add_device(const struct vmri_ctl_attach *attach, const char *mac)
{
    const struct nodes nodes = { .dev = *attach, .mac = mac };

    return transact(add_nodes, &nodes);
}

static int close_nodes(xs_transaction_t t, const struct nodes *nodes)
{
    const struct vmri_ctl_attach *dev = &nodes->dev;
    char backend[PATH_SIZE];
    char *exists;
    int rc;

    backend_path(backend, dev->domid, dev->dev_id);
    exists = xs_read(xs, t, backend, NULL);
    if (!exists)
        return -errno;
    free(exists);

    rc = write_key(t, backend, "online", "0");
    if (!rc)
        rc = write_key(t, backend, "state", "%u", STATE_CLOSING);
    return rc;
}

int store_close_device(uint32_t domid, uint32_t dev_id)
{
    const struct nodes nodes = {
        .dev = { .domid = domid, .dev_id = dev_id },
    };

    return transact(close_nodes, &nodes);
}

/* Remove the directory of a domain's backends once the last has gone. */
static int remove_if_empty(xs_transaction_t t, uint32_t domid)
{
    char path[PATH_SIZE];
    unsigned int num;
    char **entries;

    snprintf(path, sizeof(path), BACKENDS "/%u", domid);
    entries = xs_directory(xs, t, path, &num);
    if (!entries)
        return errno == ENOENT ? 0 : -errno;
    free(entries);
    return num ? 0 : remove_tree(t, path);
}

static int remove_nodes(xs_transaction_t t, const struct nodes *nodes)
{
    const struct vmri_ctl_attach *dev = &nodes->dev;
    char frontend[PATH_SIZE], backend[PATH_SIZE];
    struct vmri_ctl_info info;
    unsigned int num;
    int rc;

    frontend_path(frontend, dev->domid, dev->dev_id);
    backend_path(backend, dev->domid, dev->dev_id);

    /*
     * Another xl-vmri may attach the device again.  It calls the hypervisor
     * first and writes the nodes then: either the device is seen here, or its
     * write makes this transaction, which has read them, fail.
     */
    free(xs_directory(xs, t, backend, &num));
    rc = call_info_one(dev->domid, dev->dev_id, &info);
    if (rc != -ENODEV)
        return rc ? rc : -EEXIST;

    rc = remove_tree(t, frontend);
    if (!rc)
        rc = remove_tree(t, backend);
    if (!rc)
        rc = remove_if_empty(t, dev->domid);
    return rc;
}

int store_remove_device(uint32_t domid, uint32_t dev_id)
{
    const struct nodes nodes = {
        .dev = { .domid = domid, .dev_id = dev_id },
    };
    int rc = transact(remove_nodes, &nodes);

    return rc == -EEXIST ? 0 : rc;
}

/* Whether one that XSM's policy hides from us has gone, others have to find out. */
static int sweep_device(uint32_t domid, uint32_t dev_id)
{
    int rc = store_remove_device(domid, dev_id);

    return rc == -EPERM ? 0 : rc;
}

int store_sweep(void)
{
    unsigned int i, j, num, num_devices;
    char **domains = xs_directory(xs, XBT_NULL, BACKENDS, &num);
    int rc = 0;

    if (!domains)
        return errno == ENOENT ? 0 : -errno;

    for (i = 0; i < num && !rc; i++) {
        char path[PATH_SIZE];
        uint32_t domid, dev_id;
        char **devices;

        if (!is_decimal(domains[i], DOMID_LAST, &domid))
            continue;
        snprintf(path, sizeof(path), BACKENDS "/%u", domid);
        devices = xs_directory(xs, XBT_NULL, path, &num_devices);
        if (!devices)
            continue;
        for (j = 0; j < num_devices && !rc; j++)
            if (is_decimal(devices[j], VMRI_MAX_DEVS - 1, &dev_id))
                rc = sweep_device(domid, dev_id);
        free(devices);
    }
    free(domains);
    return rc;
}

/* Waiting */

int store_frontend_state(uint32_t domid, uint32_t dev_id)
{
    char dir[PATH_SIZE], path[PATH_SIZE + 8];
    uint32_t state = STATE_UNKNOWN;
    char *text;

    frontend_path(dir, domid, dev_id);
    snprintf(path, sizeof(path), "%s/state", dir);
    text = xs_read(xs, XBT_NULL, path, NULL);
    if (!text)
        return -errno;
    if (!is_decimal(text, STATE_CLOSED, &state))
        state = STATE_UNKNOWN;
    free(text);
    return state;
}

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* 1: nobody uses the device; 0: somebody does; or a negative errno. */
static int is_closed(uint32_t domid, uint32_t dev_id)
{
    int state = store_frontend_state(domid, dev_id);

    if (state < 0)
        return state == -ENOENT ? 1 : state;
    return state == STATE_CLOSED || state == STATE_INITIALISING;
}

int store_wait_closed(uint32_t domid, uint32_t dev_id, unsigned int seconds)
{
    int64_t left, deadline = now_ms() + (int64_t)seconds * 1000;
    struct pollfd pfd = { .events = POLLIN };
    char path[PATH_SIZE];
    char **event;
    int rc;

    frontend_path(path, domid, dev_id);
    if (!xs_watch(xs, path, "vmri"))
        return -errno;
    pfd.fd = xs_fileno(xs);

    for (;;) {
        /* An event that arrives after this makes the descriptor readable. */
        while ((event = xs_check_watch(xs)))
            free(event);

        rc = is_closed(domid, dev_id);
        if (rc)
            break;
        left = deadline - now_ms();
        if (left <= 0) {
            rc = -ETIMEDOUT;
            break;
        }
        if (poll(&pfd, 1, left) < 0 && errno != EINTR) {
            rc = -errno;
            break;
        }
    }
    xs_unwatch(xs, path, "vmri");
    return rc > 0 ? 0 : rc;
}
