/* SPDX-License-Identifier: GPL-2.0-only */
/* How a test ends that finds something wrong. */
#include "harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void test_failed(const char *file, int line, const char *fmt, ...)
{
    const char *base = strrchr(file, '/');
    va_list args;

    fprintf(stderr, "%s:%d: ", base ? base + 1 : file, line);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    test_over();
    abort();
}
