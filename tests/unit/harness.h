/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small test harness.  Each TEST runs in a process of its own, in a fresh fake
 * environment, and ends with a look that nothing was left behind.
 */
#ifndef VMRI_HARNESS_H
#define VMRI_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

struct test {
    const char *file;
    const char *name;
    bool threads;           /* worth a run under the thread sanitizer */
    void (*fn)(void);
    struct test *next;
};

void test_register(struct test *t);
/* Ends the test. */
void test_failed(const char *file, int line, const char *fmt, ...)
    __attribute__((__format__(__printf__, 3, 4), __noreturn__));
/* What the program that has the tests does then, at the end: it exits. */
void test_over(void);

#define TEST_(name_, threads_)                                          \
    static void name_(void);                                            \
    static void __attribute__((__constructor__)) register_##name_(void) \
    {                                                                   \
        static struct test t = { .file = __FILE__, .name = #name_,      \
                                 .threads = threads_, .fn = name_ };    \
        test_register(&t);                                              \
    }                                                                   \
    static void name_(void)

#define TEST(name)          TEST_(name, false)
#define THREAD_TEST(name)   TEST_(name, true)

#define CHECK(cond) do {                                                \
    if ( !(cond) )                                                      \
        test_failed(__FILE__, __LINE__, "%s", #cond);                   \
} while ( 0 )

/* Two integers, of which the second is what is right. */
#define CHECK_EQ(got, want) do {                                        \
    int64_t got_ = (int64_t)(got), want_ = (int64_t)(want);             \
    if ( got_ != want_ )                                                \
        test_failed(__FILE__, __LINE__, "%s is %lld, not %lld", #got,   \
                    (long long)got_, (long long)want_);                 \
} while ( 0 )

/* The same within a table or a loop: `what` says where. */
#define CHECK_AT(got, want, ...) do {                                   \
    int64_t got_ = (int64_t)(got), want_ = (int64_t)(want);             \
    if ( got_ != want_ )                                                \
    {                                                                   \
        char what_[128];                                                \
        snprintf(what_, sizeof(what_), __VA_ARGS__);                    \
        test_failed(__FILE__, __LINE__, "%s: %s is %lld, not %lld",     \
                    what_, #got, (long long)got_, (long long)want_);    \
    }                                                                   \
} while ( 0 )

#endif /* VMRI_HARNESS_H */
