/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of xl-vmri's commands share; test.c runs them. */
#ifndef TEST_H
#define TEST_H

#include <stdbool.h>

/* The nodes of d1's first device. */
#define FRONT1 "/local/domain/1/device/vmri/0"
#define BACK1 "/local/domain/0/backend/vmri/1/0"
/* And of its network interfaces. */
#define VIF1 "/local/domain/0/backend/vif/1"

/* What the last command printed. */
extern char *out, *err;

#define CHECK(condition) check(condition, #condition, __FILE__, __LINE__)
void check(bool good, const char *what, const char *file, int line);

/* A new host: dom0, d1 (1) and d2 (7), no devices. */
void reset(void);
/* Run one command line, words separated by single blanks: its exit status. */
int run(const char *line);
/* Is the text in what it said on stderr, or on stdout? */
bool says(const char *text);
bool prints(const char *text);
bool node_is(const char *path, const char *value);

/* test-usage.c */
void test_bad_usage(void);

/* test-device.c */
void test_attach(void);
void test_attach_conflicts(void);
void test_attach_undone(void);
void test_detach(void);
void test_sweep(void);

/* test-fabric.c */
void test_fabric(void);
void test_roce(void);
void test_route(void);
void test_rule(void);
void test_rate(void);
void test_limits(void);
void test_port(void);

/* test-show.c */
void test_list(void);
void test_info(void);
void test_stats(void);
void test_dump(void);
void test_top(void);

#endif /* TEST_H */
