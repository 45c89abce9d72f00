/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmri-fabricd: what its files share.
 *
 * Layers: main.c and operator.c are the command line, run.c the daemon.  etcd.c is
 * the only file that speaks to etcd, stream.c reads what its watch sends, mirror.c
 * keeps a copy of what it has.  map.c makes of that copy what is wanted on this host,
 * apply.c compares this to what VMRI lists; local.c is what the host has, publish.c
 * compares that to the copy.  VMRI is called by xl-vmri's call.c, and what people
 * write is read by its parse.c and ruletext.c.
 */
#ifndef FABRICD_H
#define FABRICD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xl-vmri.h>

#include "mirror.h"

#define HOST_SIZE       64      /* a host's name, with the 0 at its end */
#define VNI_MAX         0xffffffU
#define ADDRESS_SIZE    46      /* a GID as text, with the 0 */
#define ENDPOINTS       8

/* ---- log.c; report() of xl-vmri.h, too ---- */

/* What the next reports are about; "" is nothing.  A copy is made. */
void report_about(const char *what);

/*
 * What is wrong again and again is told once.  Between begin and end, report() tells
 * what was not told between the last two of them for the same set.
 */
struct complaints {
    char **text;
    bool *again;
    unsigned int num, room;
    bool more;                  /* than are remembered, and that was told */
};
void complaints_begin(struct complaints *set);
void complaints_end(struct complaints *set);
void complaints_free(struct complaints *set);

/* Of which there is enough, or the program ends. */
void *xrealloc(void *p, size_t size);
void *xcalloc(size_t num, size_t size);
char *xstrdup(const char *text);

/* ---- config.c ---- */

struct config {
    char *endpoints[ENDPOINTS + 1];     /* http or https, without a path */
    char *ca, *cert, *key;      /* files, or NULL */
    char *prefix;               /* of keys; begins and ends with a slash */
    char host[HOST_SIZE];
    bool has_gid;
    uint8_t gid[16];            /* of the host's adapter, if has_gid */
    char *device;               /* whose GID it is otherwise, or NULL */
    char *layer2;               /* a program, or NULL */
    char *state;                /* a folder that lasts as long as the host runs */
    unsigned int lease;         /* seconds */
};

/* Reports what is wrong with it and returns false; config_free() in any case. */
bool config_read(struct config *config, const char *path);
void config_free(struct config *config);
/*
 * The GID of the host's adapter: of its file, or the first RoCE v2 address of the
 * device under `sysfs` that is not a link-local one.  Reports; false: none.
 */
bool config_gid(const struct config *config, const char *sysfs, uint8_t gid[16]);

/* ---- words.c ---- */

bool is_host_name(const char *text);
bool is_fabric_name(const char *text);
/* Not a group's, and not zero. */
bool is_unicast(const uint8_t gid[16]);
/* In one of two static buffers, which the calls use in turn. */
const char *gid_text(const uint8_t gid[16]);
/* The same, but an IPv4 address for the GID that is made of it. */
const char *address_text(const uint8_t gid[16]);
/* Blanks separate words: their number, or -1 for more than `max`.  Cuts text. */
int split_words(char *text, char **words, int max);

struct fabric {
    char name[VMRI_FABRIC_NAME];
    uint32_t id;
    uint8_t link;               /* VMRI_LINK_* */
    uint32_t vni;               /* 0: none */
    bool ruled;                 /* it is said which rules it has */
    bool closed;                /* they decide, be there any or none */
    struct vmri_ctl_rule *rules;
    unsigned int num_rules;
};
/* "id=7 link=roce vni=12" as words; id is VMRI_FABRIC_ANY when left out. */
bool parse_fabric_words(int argc, char **argv, struct fabric *fabric);
/* In a static buffer. */
const char *fabric_words(const struct fabric *fabric);
/* Rules, one a line, or "closed"; empty lines do not count.  Cuts text. */
bool parse_rules(char *text, struct fabric *fabric);

/* ---- map.c ---- */

/* A device of some host, or (all zero) no device but the host's being there. */
struct claim {
    unsigned int fabric;        /* index into map.fabrics */
    uint8_t gid[16];
    char host[HOST_SIZE];
    uint8_t host_gid[16];
    bool bad;                   /* the value is garbage: host and host_gid are not set */
    int64_t mod;
};

struct map {
    struct fabric *fabrics;     /* in order of their names */
    unsigned int num_fabrics;
    struct claim *claims;       /* in order of fabric and key */
    unsigned int num_claims;
    struct claim *members;      /* hosts that have devices in a fabric */
    unsigned int num_members;
};

/* What cannot be understood is reported and left out. */
void map_read(struct map *map, const struct mirror *mirror);
void map_free(struct map *map);
/* The one with a name or a number, or NULL. */
struct fabric *map_fabric(const struct map *map, const char *name);
struct fabric *map_fabric_id(const struct map *map, uint32_t id);
/* The claims of a fabric: the first and how many. */
struct claim *map_claims(const struct map *map, const struct fabric *fabric,
                         unsigned int *num);
/* One claim or member of its value; false: there is something wrong, reported. */
bool parse_claim(const char *value, struct claim *claim);
/* In a static buffer; the host is left out for one that the key names. */
const char *claim_words(const char *host, const uint8_t host_gid[16]);

/* ---- local.c ---- */

struct local_gid {
    uint32_t fabric;
    uint8_t gid[16];
};

/* What devices with an uplink have on this host. */
struct local {
    struct local_gid *gids;     /* in order, each once */
    unsigned int num_gids;
    uint32_t *fabrics;          /* that have such devices, in order */
    unsigned int num_fabrics;
};

/* 0 or a negative errno: then it is incomplete. */
int local_read(struct local *local);
bool local_equal(const struct local *a, const struct local *b);
bool local_has(const struct local *local, uint32_t fabric, const uint8_t gid[16]);
bool local_is_in(const struct local *local, uint32_t fabric);
/* For qsort() and bsearch(): by fabric and GID. */
int compare_gids(const void *a, const void *b);
void local_free(struct local *local);

/* ---- publish.c ---- */

struct self {
    char host[HOST_SIZE];
    uint8_t gid[16];
    int64_t lease;              /* 0: there is none */
};

/*
 * Have etcd say what this host has, as far as others do not: 0 or -EIO.  *again: the
 * copy was not up to date: come back when it is.
 */
int publish(const struct self *self, const struct map *map,
            const struct mirror *mirror, const struct local *local, bool *again);
/*
 * The host's own key, under the lease: 0, -EBUSY: another host has that name,
 * reported, or -EIO.
 */
int publish_host(const struct self *self, const struct mirror *mirror);
/* Is there such a key? */
bool host_is_published(const struct self *self, const struct mirror *mirror);

/* ---- apply.c ---- */

/* Routes that nobody claims, and that stay all the same; in order. */
struct held {
    struct local_gid *routes;
    unsigned int num;
};

struct wanted {
    const struct map *map;
    const struct map *old;      /* what was before: its fabrics */
    const struct mirror *mirror;
    const char *host;           /* this one, whose claims are no routes */
    bool same_store;            /* that old comes from, so what lacks was deleted */
};

/*
 * Make VMRI have what is wanted.  Of fabrics that were deleted VMRI's are, too, unless
 * they have devices.  Routes that are not wanted are deleted, but for those that are
 * held: all that are found when it is not the same store, or the fabric is new in it.
 * They are until somebody claims the GID, or deletes the route by hand.
 */
void apply(const struct wanted *wanted, struct held *held);
void held_free(struct held *held);

/* ---- state.c: what is known from before ---- */

#define HISTORY_SIZE    33      /* 32 hexadecimal digits */

/* Which store it is, and up to which change it is known. */
struct history {
    char id[HISTORY_SIZE];      /* drawn when the store was empty; "": unknown */
    int64_t revision;
};

struct state {
    struct history history;
    struct map map;             /* fabrics' names and numbers only */
    struct held held;
};

/* Reports, and returns a file descriptor to be kept, or -1. */
int state_lock(const char *folder);
/* What was saved, or nothing of an unknown store. */
void state_load(const char *folder, struct state *state);
void state_save(const char *folder, const struct history *history,
                const struct map *map, const struct held *held);
/* Does `now` come after `before` in the same store? */
bool history_continues(const struct history *before, const struct history *now);
void history_draw(char id[HISTORY_SIZE]);

/* ---- layer2.c ---- */

/*
 * Have the program make the layer 2 of fabrics that have a VNI, where that has
 * changed; it runs beside the daemon, once at a time.
 */
void layer2_update(const struct config *config, const struct self *self,
                   const struct map *map);
/* Look after what runs, and run what is due. */
void layer2_work(const struct config *config, uint64_t now);
void layer2_end(void);

/* ---- run.c ---- */

/* `sysfs` is where the kernel tells of RDMA devices. */
int run_daemon(const struct config *config, const char *sysfs);
/* Milliseconds of a clock that only goes on. */
uint64_t now_ms(void);

/* ---- operator.c: argv holds what follows the name; each returns RC_* ---- */

int op_fabric(const struct config *config, int argc, char **argv);
int op_rule(const struct config *config, int argc, char **argv);
int op_claim(const struct config *config, int argc, char **argv);
int op_host(const struct config *config, int argc, char **argv);

#endif /* FABRICD_H */
