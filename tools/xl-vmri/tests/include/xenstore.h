/* SPDX-License-Identifier: GPL-2.0-only */
/* What store.c uses of libxenstore; fake-store.c has it. */
#ifndef XENSTORE_H
#define XENSTORE_H

#include <stdbool.h>
#include <stdint.h>

#define XBT_NULL 0
#define XS_PERM_NONE 0
#define XS_PERM_READ 1

struct xs_permissions {
    unsigned int id;
    unsigned int perms;
};

struct xs_handle;
typedef uint32_t xs_transaction_t;

struct xs_handle *xs_open(unsigned long flags);
void xs_close(struct xs_handle *h);
char **xs_directory(struct xs_handle *h, xs_transaction_t t, const char *path,
                    unsigned int *num);
void *xs_read(struct xs_handle *h, xs_transaction_t t, const char *path,
              unsigned int *len);
bool xs_write(struct xs_handle *h, xs_transaction_t t, const char *path,
              const void *data, unsigned int len);
bool xs_mkdir(struct xs_handle *h, xs_transaction_t t, const char *path);
bool xs_rm(struct xs_handle *h, xs_transaction_t t, const char *path);
bool xs_set_permissions(struct xs_handle *h, xs_transaction_t t,
                        const char *path, struct xs_permissions *perms,
                        unsigned int num_perms);
bool xs_watch(struct xs_handle *h, const char *path, const char *token);
bool xs_unwatch(struct xs_handle *h, const char *path, const char *token);
int xs_fileno(struct xs_handle *h);
char **xs_check_watch(struct xs_handle *h);
xs_transaction_t xs_transaction_start(struct xs_handle *h);
bool xs_transaction_end(struct xs_handle *h, xs_transaction_t t, bool abort);

#endif /* XENSTORE_H */
