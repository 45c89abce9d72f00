/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the tests: all, those of the files or names given as arguments, or with
 * -t those with threads only.  -d runs them in this process, for a debugger.
 * -sI/N runs the Ith of N equal parts.
 */
#include "harness.h"
#include "guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a test may take: of a CPU, and at all, since the machine may be busy. */
#define CPU_SECONDS 60
#define SECONDS     300

static struct test *tests, **last = &tests;

#ifdef COVERAGE
extern void __gcov_dump(void);
#endif

void test_register(struct test *t)
{
    *last = t;
    last = &t->next;
}

static void end_child(int status)
{
    fflush(stdout);
    fflush(stderr);
#ifdef COVERAGE
    __gcov_dump();
#endif
    _exit(status);
}

void test_over(void)
{
    end_child(1);
}

static void run(const struct test *t)
{
    world_begin();
    t->fn();
    world_end();
}

static bool passes(const struct test *t)
{
    const struct rlimit cpu = { CPU_SECONDS, CPU_SECONDS };
    int status;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if ( pid == 0 )
    {
        setrlimit(RLIMIT_CPU, &cpu);
        alarm(SECONDS);
        run(t);
        end_child(0);
    }
    if ( pid < 0 || waitpid(pid, &status, 0) != pid )
        return false;
    if ( WIFSIGNALED(status) )
        fprintf(stderr, "%s: %s\n", t->name, strsignal(WTERMSIG(status)));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool wanted(const struct test *t, char **args)
{
    bool any = false;

    for ( ; *args; args++ )
    {
        if ( **args == '-' )
            continue;
        any = true;
        if ( strstr(t->file, *args) || strstr(t->name, *args) )
            return true;
    }
    return !any;
}

/* What follows the name of an option; NULL: it is not there. */
static const char *option(char **args, const char *name)
{
    for ( ; *args; args++ )
        if ( !strncmp(*args, name, strlen(name)) )
            return *args + strlen(name);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *part = option(argv, "-s");
    unsigned int mine = 0, parts = 1, n = 0, passed = 0, failed = 0;
    const struct test *t;

    (void)argc;
    if ( part && (sscanf(part, "%u/%u", &mine, &parts) != 2 || !parts) )
        return 2;

    for ( t = tests; t; t = t->next )
    {
        bool ok = true;

        if ( (option(argv, "-t") && !t->threads) || !wanted(t, argv + 1) ||
             n++ % parts != mine )
            continue;
        if ( option(argv, "-d") )
            run(t);
        else
            ok = passes(t);
        ok ? passed++ : failed++;
        printf("%-4s %s\n", ok ? "ok" : "FAIL", t->name);
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0;
}
