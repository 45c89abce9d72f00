/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The management agents of a guest's driver, for tests: packets in, packets out.
 * They ask the VMRI of the fake machine by calls that the program makes for them.
 */
#ifndef VMRI_TEST_AGENT_H
#define VMRI_TEST_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAD_SIZE    256
#define SA_DATA     200

struct agent;

/* Of a guest's device; that of a manager with the switch that it sees. */
struct agent *agent_new(void *guest);
void agent_free(struct agent *a);
/* The fabric has changed: for a manager's. */
void agent_refresh(struct agent *a);
/* No manager runs any more. */
void agent_release(struct agent *a);

/* What the agents of the port answer: false if they do not. */
bool agent_process(struct agent *a, const uint8_t in[MAD_SIZE],
                   uint8_t out[MAD_SIZE]);
/*
 * What is answered to a manager that sends to a LID: 0: it is for its own port;
 * 1: nothing; 2: out, which comes from a LID.
 */
int agent_manage(struct agent *a, const uint8_t in[MAD_SIZE], uint16_t dlid,
                 uint8_t out[MAD_SIZE], uint16_t *from);

/* A query of the subnet administrator. */
struct agent_query {
    uint32_t src_qpn;
    uint8_t method;
    uint16_t attr;
    bool trusted;
    uint64_t mask;
    uint8_t data[SA_DATA];
    uint16_t status;        /* OUT, as all below */
    uint32_t count, size;
    uint8_t *records;       /* to be given back by agent_forget */
};

void agent_ask(struct agent *a, struct agent_query *q);
void agent_forget(struct agent_query *q);

/* Places for subscriptions that a port has. */
#define INFORMS     32
#define NOTICE_SIZE 80
/*
 * Notices of what has changed since the last look, up to max: true if there is more to
 * tell.
 */
bool agent_look(struct agent *a, uint8_t notices[][NOTICE_SIZE],
                unsigned int max, unsigned int *nr);
/* Is there somebody to be told of it, at this place? */
bool agent_wants(struct agent *a, unsigned int place,
                 const uint8_t notice[NOTICE_SIZE], uint32_t *qpn);
/* He does not answer. */
void agent_give_up(struct agent *a, unsigned int place);

/* By the program: the guest's call, which may be one of dom0's commands. */
long agent_call(void *guest, unsigned int cmd, void *arg, size_t size);

#endif /* VMRI_TEST_AGENT_H */
