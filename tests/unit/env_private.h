/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the fake environment share among themselves. */
#ifndef VMRI_ENV_PRIVATE_H
#define VMRI_ENV_PRIVATE_H

#include "env_test.h"

#define ENV_GFNS        16384U      /* of one domain */
#define ENV_NO_FRAME    UINT32_MAX

struct domain {
    unsigned int id;
    bool exists;
    bool dying;                     /* atomic */
    bool running;                   /* atomic */
    uint32_t refs;                  /* atomic; by env_domain_get */
    struct vmri_domain *state;
    uint32_t next_gfn;              /* atomic; index of the next one given out */
    uint32_t *p2m;                  /* index of gfn -> index of frame */
    uint8_t *mem;                   /* where the guest sees its memory */
    bool port_open[ENV_PORTS];
    uint32_t notified[ENV_PORTS];   /* atomic */
};

extern struct domain env_domains[ENV_DOMAINS];

/* Something to be called once, at the nth time. */
struct env_hook {
    unsigned int nth;               /* atomic; 0: not set */
    void (*fn)(void *data);
    void *data;
};
void env_hook_set(struct env_hook *h, unsigned int nth, void (*fn)(void *),
                  void *data);
void env_hook_run(struct env_hook *h);

/* Panic when this thread holds a lock. */
void env_no_lock(const char *what);
/* Is it the turn of a failure? */
bool env_fails(enum env_failure what);
/* Panic when the calling domain is not known: timers have none. */
void env_need_current(const char *what);

/* env_frames.c */
void env_frames_begin(void);
void env_frames_end(void);
void env_frames_returned(void);
/* The lowest gfn of a domain: different ones start at different numbers. */
static inline uint64_t env_gfn_base(const struct domain *d)
{
    return 0x100000ULL * (d->id + 1);
}

#endif /* VMRI_ENV_PRIVATE_H */
