/* SPDX-License-Identifier: GPL-2.0-only */
/* What call.c uses of libxentoollog, so that the tests need no libxen-dev. */
#ifndef XENTOOLLOG_H
#define XENTOOLLOG_H

#include <stdarg.h>

typedef int xentoollog_level;

struct xentoollog_logger {
    void (*vmessage)(struct xentoollog_logger *logger, xentoollog_level level,
                     int errnoval, const char *context, const char *format,
                     va_list args);
};
typedef struct xentoollog_logger xentoollog_logger;

#endif /* XENTOOLLOG_H */
