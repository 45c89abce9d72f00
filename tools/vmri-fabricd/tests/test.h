/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of vmri-fabricd's parts share; test.c runs them. */
#ifndef TEST_H
#define TEST_H

#include <stdbool.h>

#define CHECK(condition) check(condition, #condition, __FILE__, __LINE__)
void check(bool good, const char *what, const char *file, int line);

/* What was said on standard error since the last call; to be used at once. */
const char *said(void);
bool says(const char *text);

void test_config(void);
void test_config_gid(void);
void test_base64(void);
void test_stream(void);
void test_stream_bad(void);
void test_map(void);
void test_map_garbage(void);
void test_fabric_words(void);
void test_mirror(void);
void test_complaints(void);
void test_apply_rules(void);
void test_apply_full(void);
void test_apply_routes(void);
void test_apply_fabrics(void);
void test_state(void);

#endif /* TEST_H */
