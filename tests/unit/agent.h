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

/* Of a guest's device. */
struct agent *agent_new(void *guest);
void agent_free(struct agent *a);
/* What the agents of the port answer: false if they do not. */
bool agent_process(struct agent *a, const uint8_t in[MAD_SIZE],
                   uint8_t out[MAD_SIZE]);
/* A query of the subnet administrator. */
struct agent_query {
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

/* By the program: the guest's call. */
long agent_call(void *guest, unsigned int cmd, void *arg, size_t size);

#endif /* VMRI_TEST_AGENT_H */
