/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * etcd 3's JSON gateway: what the daemon and the operator's commands ask of it.
 *
 * Keys are without the prefix.  What returns int returns 0, or -EIO: no endpoint has
 * answered as it should, and etcd_why() tells why.
 */
#ifndef FABRICD_ETCD_H
#define FABRICD_ETCD_H

#include <jansson.h>

#include "fabricd.h"

/* Reports what is wrong with the configuration. */
bool etcd_open(const struct config *config);
void etcd_close(void);
/* In a static buffer. */
const char *etcd_why(void);
/* Give up requests when this becomes true; by a signal, for instance. */
void etcd_stop_when(const volatile bool *stop);
/* Ask another one from now on, when there are several. */
void etcd_next_endpoint(void);

/* All that there is, into an empty mirror. */
int etcd_list(struct mirror *mirror);

/*
 * One value, to be freed, or NULL when it is not there, and the revision that the store
 * has now.
 */
int etcd_get(const char *key, char **value, int64_t *revision);

/* A lease of that many seconds. */
int etcd_lease_grant(unsigned int seconds, int64_t *lease);
/* *alive: false: it has expired. */
int etcd_lease_keep(int64_t lease, bool *alive);

/* If all conditions hold, do all of the rest. */
struct etcd_txn {
    json_t *compare, *success;
};

void etcd_txn_begin(struct etcd_txn *txn);
/* The key was last changed at a revision; 0: it is not there. */
void etcd_if_mod(struct etcd_txn *txn, const char *key, int64_t mod);
/* The key is there. */
void etcd_if_there(struct etcd_txn *txn, const char *key);
/* Nothing in the folder is there. */
void etcd_if_empty(struct etcd_txn *txn, const char *folder);
void etcd_if_lease(struct etcd_txn *txn, const char *key, int64_t lease);
/* With lease 0: for good. */
void etcd_put(struct etcd_txn *txn, const char *key, const char *value, int64_t lease);
void etcd_delete(struct etcd_txn *txn, const char *key);
/* *done: the conditions held. */
int etcd_commit(struct etcd_txn *txn, bool *done);

enum watch_state {
    WATCH_NONE,                 /* none is open */
    WATCH_OPEN,
    WATCH_COMPACTED,            /* what has changed is not known any more: list */
    WATCH_LOST,                 /* etcd_why() */
};

/* Have changes after mirror->revision made to it by etcd_wait(). */
bool etcd_watch(struct mirror *mirror);
void etcd_watch_end(void);
/* Wait for changes, but not longer than that. */
enum watch_state etcd_wait(int milliseconds);

#endif /* FABRICD_ETCD_H */
