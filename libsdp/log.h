/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef LIBSDP_LOG_H
#define LIBSDP_LOG_H

/* A line on standard error, with the program's and the library's name before it. */
void sdp_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
