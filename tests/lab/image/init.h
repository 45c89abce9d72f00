/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the two parts of the lab's first process share.
 */
#ifndef LAB_INIT_H
#define LAB_INIT_H

/* Ends the machine: the kernel reports the end of the first process. */
__attribute__((noreturn)) void die(const char *what);

/* A word NAME=VALUE of the kernel's command line; it is an error if there is none. */
const char *setting(const char *name);

/* The first process of a guest once its root is there. */
__attribute__((noreturn)) void run_guest(void);

#endif
