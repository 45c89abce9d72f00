/* SPDX-License-Identifier: GPL-2.0-only */
/* What call.c uses of libxencall; fake-call.c has it. */
#ifndef XENCALL_H
#define XENCALL_H

#include <stddef.h>
#include <stdint.h>

#define XENCALL_OPENFLAG_NON_REENTRANT 1U

struct xentoollog_logger;
typedef struct xencall_handle xencall_handle;

xencall_handle *xencall_open(struct xentoollog_logger *logger, unsigned flags);
int xencall_close(xencall_handle *handle);
int xencall2(xencall_handle *handle, unsigned int op, uint64_t arg1,
             uint64_t arg2);
int xencall3(xencall_handle *handle, unsigned int op, uint64_t arg1,
             uint64_t arg2, uint64_t arg3);
void *xencall_alloc_buffer(xencall_handle *handle, size_t size);
void xencall_free_buffer(xencall_handle *handle, void *p);

#endif /* XENCALL_H */
