/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libxenstore with a small store behind it: a list of paths.  New nodes inherit
 * their parent's permissions, as in xenstored; a transaction that fails leaves
 * what there was before.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <xenstore.h>

#include "fake.h"

#define MAX_NODES 128

struct node {
    char path[96];
    char value[96];
    unsigned int owner, reader;
};

static struct tree {
    unsigned int num;
    struct node nodes[MAX_NODES];
} tree, saved;

static int event_fd = -1;
static unsigned int events;     /* watch events not yet fetched */

struct fake_store fake_store;

void fake_store_reset(void)
{
    memset(&fake_store, 0, sizeof(fake_store));
    memset(&tree, 0, sizeof(tree));
    events = 0;
}

static struct node *find(const char *path)
{
    unsigned int i;

    for (i = 0; i < tree.num; i++)
        if (!strcmp(tree.nodes[i].path, path))
            return &tree.nodes[i];
    return NULL;
}

static bool is_below(const char *path, const char *dir)
{
    size_t length = strlen(dir);

    return !strncmp(path, dir, length) && path[length] == '/';
}

static struct node *create(const char *path)
{
    struct node *node = find(path), *parent;
    char dir[96];
    char *slash;

    if (node)
        return node;
    snprintf(dir, sizeof(dir), "%s", path);
    slash = strrchr(dir, '/');
    *slash = '\0';
    parent = slash == dir ? NULL : create(dir);
    if (tree.num == MAX_NODES)
        abort();
    node = &tree.nodes[tree.num++];
    memset(node, 0, sizeof(*node));
    snprintf(node->path, sizeof(node->path), "%s", path);
    if (parent) {
        node->owner = parent->owner;
        node->reader = parent->reader;
    }
    return node;
}

static void raise_event(void)
{
    uint64_t one = 1;

    if (!fake_store.watches)
        return;
    events++;
    if (write(event_fd, &one, sizeof(one)) != sizeof(one))
        abort();
}

void fake_store_set(const char *path, const char *value)
{
    struct node *node = create(path);

    snprintf(node->value, sizeof(node->value), "%s", value);
    raise_event();
}

const char *fake_store_get(const char *path)
{
    struct node *node = find(path);

    return node ? node->value : NULL;
}

void fake_store_remove(const char *path)
{
    unsigned int i, kept = 0;

    for (i = 0; i < tree.num; i++)
        if (strcmp(tree.nodes[i].path, path) &&
            !is_below(tree.nodes[i].path, path))
            tree.nodes[kept++] = tree.nodes[i];
    tree.num = kept;
    raise_event();
}

const char *fake_store_perms(const char *path)
{
    static char text[32];
    struct node *node = find(path);

    if (!node)
        return "none";
    snprintf(text, sizeof(text), "%u:%u", node->owner, node->reader);
    return text;
}

/* The guest's driver: its frontend is named in the backend's own directory. */
static void backend_changed(const char *path, const char *value)
{
    char dir[96], state[112];
    char *slash;

    if (strncmp(path, "/local/domain/0/backend/", 24) || strcmp(value, "5"))
        return;
    snprintf(dir, sizeof(dir), "%s", path);
    slash = strrchr(dir, '/');
    if (strcmp(slash, "/state"))
        return;
    strcpy(slash, "/frontend");
    snprintf(state, sizeof(state), "%s/state", fake_store_get(dir));
    switch (fake_store.driver) {
    case DRIVER_STUCK:
        break;
    case DRIVER_CLOSES:
        fake_store_set(state, "6");
        break;
    case DRIVER_CLOSES_LATER:
        fake_store_set(state, "5");
        break;
    case DRIVER_DIES:
        fake_store_remove("/local/domain/1");
        fake_call_destroy_domain(1);
        break;
    }
}

struct xs_handle *xs_open(unsigned long flags)
{
    if (fake_store.fail_open) {
        errno = ENOENT;
        return NULL;
    }
    fake_store.handles++;
    event_fd = eventfd(0, EFD_NONBLOCK);
    return (struct xs_handle *)&fake_store;
}

void xs_close(struct xs_handle *h)
{
    fake_store.handles--;
    close(event_fd);
}

void *xs_read(struct xs_handle *h, xs_transaction_t t, const char *path,
              unsigned int *len)
{
    struct node *node = find(path);
    char *value;

    if (!node) {
        errno = ENOENT;
        return NULL;
    }
    value = strdup(node->value);
    /* A driver that takes its time is done the next time somebody looks. */
    if (fake_store.driver == DRIVER_CLOSES_LATER && fake_store.watches &&
        !strcmp(value, "5"))
        fake_store_set(path, "6");
    return value;
}

char **xs_directory(struct xs_handle *h, xs_transaction_t t, const char *path,
                    unsigned int *num)
{
    size_t names = MAX_NODES * sizeof(char *);
    char **list, *end;
    unsigned int i;

    if (!find(path)) {
        errno = ENOENT;
        return NULL;
    }
    list = malloc(names + sizeof(tree.nodes));
    end = (char *)list + names;
    *num = 0;
    for (i = 0; i < tree.num; i++) {
        const char *name = tree.nodes[i].path + strlen(path) + 1;

        if (!is_below(tree.nodes[i].path, path) || strchr(name, '/'))
            continue;
        list[(*num)++] = end;
        end = stpcpy(end, name) + 1;
    }
    return list;
}

bool xs_write(struct xs_handle *h, xs_transaction_t t, const char *path,
              const void *data, unsigned int len)
{
    char value[96];

    if (fake_store.fail_writes && !--fake_store.fail_writes) {
        errno = ENOSPC;
        return false;
    }
    snprintf(value, sizeof(value), "%.*s", (int)len, (const char *)data);
    fake_store_set(path, value);
    backend_changed(path, value);
    return true;
}

bool xs_mkdir(struct xs_handle *h, xs_transaction_t t, const char *path)
{
    create(path);
    return true;
}

bool xs_rm(struct xs_handle *h, xs_transaction_t t, const char *path)
{
    if (!find(path)) {
        errno = ENOENT;
        return false;
    }
    if (fake_store.removed_by_others) {
        fake_store.removed_by_others--;
        errno = EINVAL;
        return false;
    }
    fake_store_remove(path);
    return true;
}

bool xs_set_permissions(struct xs_handle *h, xs_transaction_t t,
                        const char *path, struct xs_permissions *perms,
                        unsigned int num_perms)
{
    struct node *node = find(path);

    if (!node || num_perms != 2 || perms[0].perms != XS_PERM_NONE ||
        perms[1].perms != XS_PERM_READ)
        abort();
    node->owner = perms[0].id;
    node->reader = perms[1].id;
    return true;
}

/* A watch fires once at once. */
bool xs_watch(struct xs_handle *h, const char *path, const char *token)
{
    fake_store.watches++;
    raise_event();
    return true;
}

bool xs_unwatch(struct xs_handle *h, const char *path, const char *token)
{
    fake_store.watches--;
    return true;
}

int xs_fileno(struct xs_handle *h)
{
    return event_fd;
}

char **xs_check_watch(struct xs_handle *h)
{
    uint64_t count;

    if (!events) {
        errno = EAGAIN;
        return NULL;
    }
    if (!--events && read(event_fd, &count, sizeof(count)) < 0)
        abort();
    return calloc(2, sizeof(char *));
}

xs_transaction_t xs_transaction_start(struct xs_handle *h)
{
    saved = tree;
    return 1;
}

bool xs_transaction_end(struct xs_handle *h, xs_transaction_t t, bool abort)
{
    void (*disturb)(void) = fake_store.on_conflict;

    if (abort) {
        tree = saved;
        return true;
    }
    if (!fake_store.conflicts)
        return true;

    fake_store.conflicts--;
    tree = saved;
    fake_store.on_conflict = NULL;
    if (disturb)
        disturb();
    errno = EAGAIN;
    return false;
}
