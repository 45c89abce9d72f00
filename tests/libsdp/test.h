/* SPDX-License-Identifier: GPL-2.0-only */
/* Each TEST runs in a process of its own; TEST_MAIN runs them all and counts. */
#ifndef LIBSDP_TEST_H
#define LIBSDP_TEST_H

#include <stdio.h>
#include <stdlib.h>

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

extern struct test *tests;

#define TEST(name_)						\
	static void name_(void);				\
	static void __attribute__((constructor)) add_##name_(void) \
	{							\
		static struct test test = { #name_, name_, NULL }; \
		test.next = tests;				\
		tests = &test;					\
	}							\
	static void name_(void)

#define CHECK(condition) do {					\
	if (!(condition)) {					\
		printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
		fflush(stdout);					\
		_exit(1);					\
	}							\
} while (0)

#define CHECK_EQ(got, want) do {				\
	long long got_ = (got), want_ = (want);			\
	if (got_ != want_) {					\
		printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, got_, want_); \
		fflush(stdout);					\
		_exit(1);					\
	}							\
} while (0)

#endif
