/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * xl-vmri: what its files share.
 *
 * Layers: main.c and cmdtable.c read the command line; attach.c, fabric.c,
 * list.c, limits.c, port.c, rate.c, route.c, rule.c, stats.c, top.c and dump.c
 * are the commands; call.c is the only file that calls the hypervisor, store.c the only one that speaks to
 * xenstore.  Those two return 0 or a negative errno and print nothing; a
 * command prints one message and returns an exit code.
 */
#ifndef XL_VMRI_H
#define XL_VMRI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <vmri/control.h>
#include <vmri/uplink.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Exit codes. */
#define RC_OK       0
#define RC_FAILURE  1
#define RC_USAGE    2

/* The last domain id that a guest can have: Xen reserves those above. */
#define DOMID_LAST  0x7fefU

/* main.c */

/* Options that only some commands take: bits of struct command.options. */
#define OPT_FORCE   0x1U
#define OPT_TIMEOUT 0x2U
#define OPT_TOP     0x4U        /* batch, delay, iterations */

struct options {
    bool json;
    bool force;
    unsigned int timeout;       /* seconds */
    bool batch;
    double delay;               /* seconds */
    unsigned int iterations;    /* 0: without end */
};

/* Print "xl-vmri: MESSAGE" on standard error. */
void report(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* cmdtable.c */

struct command {
    const char *name;
    const char *synopsis;       /* what follows the name */
    const char *help;
    unsigned int options;       /* OPT_* */
    int min_args, max_args;
    /* argv holds the argc arguments after the name; returns RC_*. */
    int (*run)(const struct options *opt, int argc, char **argv);
};

const struct command *find_command(const char *name);
void print_help(FILE *f);

/* attach.c, fabric.c, list.c, limits.c, port.c, rate.c, route.c, rule.c, stats.c,
 * top.c, dump.c */
int cmd_attach(const struct options *opt, int argc, char **argv);
int cmd_detach(const struct options *opt, int argc, char **argv);
int cmd_fabric(const struct options *opt, int argc, char **argv);
int cmd_list(const struct options *opt, int argc, char **argv);
int cmd_info(const struct options *opt, int argc, char **argv);
int cmd_limits(const struct options *opt, int argc, char **argv);
int cmd_port(const struct options *opt, int argc, char **argv);
int cmd_rate(const struct options *opt, int argc, char **argv);
int cmd_route(const struct options *opt, int argc, char **argv);
int cmd_rule(const struct options *opt, int argc, char **argv);
int cmd_stats(const struct options *opt, int argc, char **argv);
int cmd_top(const struct options *opt, int argc, char **argv);
int cmd_dump(const struct options *opt, int argc, char **argv);

/* hypervisor.c */

/*
 * Have call.c work: *version is zero when this hypervisor has no VMRI.  Reports and
 * returns false when nothing can be asked, or VMRI is another one than this is for.
 */
bool hypervisor_open(struct vmri_version *version);

/* What an error of call.c or store.c (a negative errno) means. */
const char *error_text(int rc);

/* session.c */

/*
 * Open the hypervisor and xenstore, and see that VMRI is there.  Reports what
 * is missing and returns false.  session_close() is harmless after a failure.
 */
bool session_open(void);
void session_close(void);

/* The same, but VMRI may be missing: *version is zero then. */
bool session_open_any(struct vmri_version *version);

/* A domain by id or name.  Reports and returns false when there is none. */
bool session_domain(const char *spec, uint32_t *domid);

/* The domain's only device.  Reports and returns false when it is not one. */
bool session_device(uint32_t domid, uint32_t *dev_id);

/*
 * "NAME (ID)", or "domain ID" when it has no name.  The text lies in a static
 * buffer that the next call overwrites.
 */
const char *domain_text(uint32_t domid);

/* parse.c: all report what is wrong and return false. */

/* Decimal or 0x-hexadecimal, min .. max.  `what` names the value in errors. */
bool parse_number(const char *what, const char *text, uint64_t min,
                  uint64_t max, uint64_t *value);
/* 16 hexadecimal digits, with or without 0x or colons between four of each. */
bool parse_guid(const char *text, uint64_t *guid);
bool parse_dev_id(const char *text, uint32_t *dev_id);
/* A number, or a name beside VMRI_FABRIC_ANY, into *fabric, else all 0. */
bool parse_fabric(const char *text, struct vmri_ctl_fabric *fabric);
/*
 * An IPv6 address, or an IPv4 one as the last bits of a mapped one: how many bits
 * of it are the user's, or -1.  Reports nothing.
 */
#define V4_MAPPED_BITS 96
int parse_address(const char *text, uint8_t address[16]);
/*
 * key=value words into *attach but for its domid and fabric, *fabric, and mac, which
 * is empty when none is given.
 */
#define MAC_TEXT_SIZE 18
bool parse_attach(int argc, char **argv, struct vmri_ctl_attach *attach,
                  struct vmri_ctl_fabric *fabric, char mac[MAC_TEXT_SIZE]);
/* Six pairs of hexadecimal digits, of one interface.  Reports nothing. */
bool is_mac(const char *text);
/* A number up to max of things or bytes, times K, M, G or T, powers of 1024. */
bool parse_amount(const char *what, const char *text, uint64_t max,
                  uint64_t *value);
/* Seconds with a fraction, 0.1 to 3600. */
bool parse_delay(const char *text, double *seconds);
/* Decimal digits alone; reports nothing. */
bool is_decimal(const char *text, uint64_t max, uint32_t *value);

/* "0123:4567:89ab:cdef" */
#define GUID_TEXT_SIZE 20
const char *guid_text(uint64_t guid, char buffer[static GUID_TEXT_SIZE]);

/* ruletext.c */

/* By VMRI_RULE_INGRESS, _EGRESS. */
extern const char *const rule_directions[];
/*
 * "ingress" or "egress" and key=value words into all of *rule but its fabric and
 * number.  Reports what is wrong and returns false.
 */
bool parse_rule(int argc, char **argv, struct vmri_ctl_rule *rule);
/* "fe80::/64", "192.0.2.0/24", "any"; in a static buffer, as what follows. */
const char *rule_prefix_text(const struct vmri_ctl_rule *rule);
/* The words that parse_rule() takes. */
#define RULE_TEXT_SIZE 160
const char *rule_text(const struct vmri_ctl_rule *rule);

/* fabric.c */

/* "fabric NAME (ID)", or what is known of that, in a static buffer. */
const char *fabric_text(const struct vmri_ctl_fabric *fabric);
/* The number of the one with a name.  Reports and returns false: none. */
bool find_fabric(struct vmri_ctl_fabric *fabric);
/* The link layer of one with a number, VMRI_LINK_*, or a negative errno. */
int fabric_link(uint32_t id);

/* call.c */
int call_open(void);
void call_close(void);
/* -ENOSYS: this hypervisor has no VMRI. */
int call_version(struct vmri_version *version);
int call_xen_version(unsigned int *major, unsigned int *minor);
int call_attach(struct vmri_ctl_attach *attach);
int call_detach(uint32_t domid, uint32_t dev_id);
/* The first device that we may see at or after (info->domid, info->dev_id), or -ENOENT. */
int call_info(struct vmri_ctl_info *info);
/* The one after *info. */
int call_info_next(struct vmri_ctl_info *info);
/* Exactly that device; -ENODEV: it is not there; -EPERM: we may not see it. */
int call_info_one(uint32_t domid, uint32_t dev_id, struct vmri_ctl_info *info);

/* As control.h has them. */
int call_fabric_create(struct vmri_ctl_fabric *fabric);
int call_fabric_delete(uint32_t id);
int call_fabric_list(struct vmri_ctl_fabric *fabric);
int call_route_add(struct vmri_ctl_route *route);
int call_route_del(struct vmri_ctl_route *route);
int call_route_list(struct vmri_ctl_route *route);
int call_rule_add(struct vmri_ctl_rule *rule);
int call_rule_del(uint32_t fabric, uint32_t rule);
int call_rule_list(struct vmri_ctl_rule *rule);
int call_limits(struct vmri_ctl_limits *limits);
/* -EEXIST: the LID is taken; -ENODEV. */
int call_port(struct vmri_ctl_port *port);
/* -ENODEV. */
int call_rate(struct vmri_ctl_rate *rate);
int call_stats(struct vmri_ctl_stats *stats);
/* The first object at or after object->index, or -ENOENT. */
int call_dump(struct vmri_ctl_dump *object);

/* store.c */

/* XenbusState, as the pair of nodes has it. */
enum {
    STATE_UNKNOWN,
    STATE_INITIALISING,
    STATE_INIT_WAIT,
    STATE_INITIALISED,
    STATE_CONNECTED,
    STATE_CLOSING,
    STATE_CLOSED,
};

const char *state_name(int state);

int store_open(void);
void store_close(void);
/* 0, or -ENOENT when the toolstack knows no such domain. */
int store_domain_exists(uint32_t domid);
int store_find_domain(const char *name, uint32_t *domid);
/* To be freed; NULL when there is none. */
char *store_domain_name(uint32_t domid);
/*
 * The MAC address of the domain's first network interface, as its backend says:
 * 0, -ENOENT when it has none, or -EINVAL when that is none.
 */
int store_vif_mac(uint32_t domid, char mac[MAC_TEXT_SIZE]);
/*
 * Write the pair of nodes; mac may be empty.  -ESRCH: the domain has gone.
 */
int store_add_device(const struct vmri_ctl_attach *attach, const char *mac);
/* Ask the frontend to close.  -ENOENT: there are no nodes. */
int store_close_device(uint32_t domid, uint32_t dev_id);
/* Remove the pair of nodes unless the hypervisor has the device. */
int store_remove_device(uint32_t domid, uint32_t dev_id);
/* STATE_* of the frontend, or -ENOENT. */
int store_frontend_state(uint32_t domid, uint32_t dev_id);
/*
 * Wait until the frontend is closed, has no driver, or is gone: 0.
 * -ETIMEDOUT after that many seconds.
 */
int store_wait_closed(uint32_t domid, uint32_t dev_id, unsigned int seconds);
/* Remove the nodes of all devices that the hypervisor does not have. */
int store_sweep(void);

/* output.c */

/*
 * Writes a tree of named values to standard output, as one JSON text or as
 * indented lines.  Zero it but for `json` to begin.
 */
struct writer {
    bool json;
    bool follows;               /* a value precedes in this object or array */
    unsigned int depth;
};

/* bracket is '{' or '['; name is NULL within an array and at the top. */
void writer_open(struct writer *w, const char *name, char bracket);
void writer_close(struct writer *w, char bracket);
void write_string(struct writer *w, const char *name, const char *value);
void write_number(struct writer *w, const char *name, uint64_t value);
void write_bool(struct writer *w, const char *name, bool value);

/* list.c: for the commands that take [DOMAIN [ID]]. */

/* Write one device: 0 or a negative errno; -ENODEV, -ESRCH: it has gone. */
typedef int (*show_device)(struct writer *w, const struct vmri_ctl_info *info);
/* Show the one, those of the domain, or all; returns RC_*. */
int show_devices(const struct options *opt, int argc, char **argv,
                 show_device show);
/* What identifies a device. */
void write_identity(struct writer *w, const struct vmri_ctl_info *info);

/* fields.c */

/* By VMRI_RES_*. */
extern const char *const resource_names[VMRI_RES_NR];
void write_usage(struct writer *w, const char *name,
                 const struct vmri_usage *usage, bool of_device);
void write_counters(struct writer *w, const struct vmri_counters *counters);
/* By VMRI_STAT_*. */
void write_types(struct writer *w, const struct vmri_qp_counters *type);

#endif /* XL_VMRI_H */
