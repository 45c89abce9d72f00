/* SPDX-License-Identifier: GPL-2.0-only */
/* What goes between a program and the process that is its host, in packets. */
#ifndef FABRICD_WIRE_H
#define FABRICD_WIRE_H

#include <stdint.h>

#define WIRE_MAX    4096        /* bytes of args */
#define WIRE_SAY    0xffffffffU /* cmd: args is a line of words for the host itself */

struct wire_call {
    uint32_t cmd;               /* VMRI_OP_* of dom0 */
    uint32_t size;
    uint8_t args[WIRE_MAX];
};

struct wire_answer {
    int64_t rc;
    uint8_t args[WIRE_MAX];
};

#endif /* FABRICD_WIRE_H */
