/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host that the tests run against: one hypervisor with a table of devices,
 * and one xenstore.  Both are set back by fake_reset().
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include <vmri/control.h>

/* fake-call.c */
struct fake_call {
    int open_errno;             /* of xencall_open(), or 0 */
    int attach_errno;           /* of attach, or 0 */
    uint16_t attach_flags;      /* of the last one, as below */
    uint32_t attach_uplink;
    bool no_vmri;
    uint32_t abi_version;
    uint32_t magic;
    uint32_t hidden_domid;      /* whose devices we may not see, or UINT32_MAX */
    unsigned int num_devices;
    struct vmri_ctl_info devices[16];   /* in order of domid, dev_id */
    struct vmri_qp_counters types[VMRI_STAT_MAX];   /* of every device */
    struct vmri_ctl_limits limits;      /* of every domain */
    struct vmri_ctl_rate rates[VMRI_RATE_DEVICE + 1];   /* of every device */
    int rate_errno;
    int port_errno;
    struct vmri_ctl_port port;      /* of every device; the last mask */
    struct vmri_ctl_fabric fabrics[8];  /* created, in order of their numbers */
    unsigned int num_fabrics;
    struct vmri_ctl_route routes[4];    /* in order of their GIDs */
    unsigned int num_routes;
    struct vmri_ctl_rule rules[8];      /* in order of their numbers */
    unsigned int num_rules;
    int limits_errno, stats_errno, dump_errno;
    struct vmri_ctl_dump objects[8];    /* of every device */
    unsigned int num_objects;
    void (*on_sleep)(void);             /* what happens meanwhile */
    double clock;                       /* seconds */
    unsigned int handles, buffers;      /* open now */
};
extern struct fake_call fake_call;

void fake_call_reset(void);
/* As the hypervisor does when a domain dies. */
void fake_call_destroy_domain(uint32_t domid);

/* fake-store.c */
struct fake_store {
    bool fail_open;
    unsigned int conflicts;     /* transactions yet to fail with EAGAIN */
    void (*on_conflict)(void);  /* what disturbed it: runs once */
    unsigned int removed_by_others; /* removals that come upon another's */
    /* What the guest's driver does when its backend closes. */
    enum {
        DRIVER_STUCK,
        DRIVER_CLOSES,
        DRIVER_CLOSES_LATER,
        DRIVER_DIES,            /* domain 1, with all it has */
    } driver;
    unsigned int fail_writes;   /* the write that fails with ENOSPC; 0: none */
    unsigned int handles, watches;
};
extern struct fake_store fake_store;

void fake_store_reset(void);
void fake_store_set(const char *path, const char *value);
/* The value, which stays the store's, or NULL. */
const char *fake_store_get(const char *path);
void fake_store_remove(const char *path);
/* "OWNER:READER" */
const char *fake_store_perms(const char *path);

#endif /* FAKE_H */
