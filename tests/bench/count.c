/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include "count.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_STEPS   10000000
#define MAX_SYMBOLS 4096

struct symbol {
    uint64_t at;
    char name[64];
    unsigned int hits;
};

static struct symbol symbols[MAX_SYMBOLS];
static unsigned int nr_symbols;

static int by_address(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static int by_hits(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;

    return (int)y->hits - (int)x->hits;
}

/* The program is linked to a fixed address, so nm's are those of the child. */
static void read_symbols(void)
{
    char command[64], type;
    unsigned long long at;
    FILE *nm;

    snprintf(command, sizeof(command), "nm --defined-only /proc/%d/exe",
             (int)getpid());
    nm = popen(command, "r");
    while ( nm && nr_symbols < MAX_SYMBOLS &&
            fscanf(nm, "%llx %c %63s", &at, &type,
                   symbols[nr_symbols].name) == 3 )
        if ( type == 't' || type == 'T' )
            symbols[nr_symbols++].at = at;
    if ( nm )
        pclose(nm);
    qsort(symbols, nr_symbols, sizeof(*symbols), by_address);
}

static void hit(uint64_t rip)
{
    unsigned int low = 0, high = nr_symbols;

    while ( high - low > 1 )
    {
        unsigned int mid = (low + high) / 2;

        if ( symbols[mid].at <= rip )
            low = mid;
        else
            high = mid;
    }
    if ( nr_symbols )
        symbols[low].hits++;
}

static void show_profile(void)
{
    unsigned int i;

    qsort(symbols, nr_symbols, sizeof(*symbols), by_hits);
    for ( i = 0; i < nr_symbols && symbols[i].hits; i++ )
        printf("  %5u  %s\n", symbols[i].hits, symbols[i].name);
}

static bool step(pid_t child, struct user_regs_struct *regs)
{
    int status;

    return !ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) &&
           waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
           !ptrace(PTRACE_GETREGS, child, NULL, regs);
}

/* Step until fn begins, then until it is back, and count. */
static uint64_t follow(pid_t child, uint64_t fn, bool profile)
{
    struct user_regs_struct regs = { .rip = 0 };
    uint64_t back, last = 0, count = 0;
    unsigned int i;

    for ( i = 0; i < MAX_STEPS && regs.rip != fn; i++ )
        if ( !step(child, &regs) )
            return 0;

    back = ptrace(PTRACE_PEEKTEXT, child, (void *)regs.rsp, NULL);
    for ( i = 0; i < MAX_STEPS && regs.rip != back; i++ )
    {
        if ( regs.rip != last )
        {
            count++;
            if ( profile )
                hit(regs.rip);
        }
        last = regs.rip;
        if ( !step(child, &regs) )
            return 0;
    }

    return count;
}

uint64_t count_instructions(void (*run)(void *), void *data, const void *fn,
                            int profile)
{
    uint64_t count = 0;
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    if ( !child )
    {
        if ( ptrace(PTRACE_TRACEME, 0, NULL, NULL) )
            _exit(1);
        raise(SIGSTOP);
        run(data);
        _exit(0);
    }

    if ( profile )
        read_symbols();
    if ( child > 0 && waitpid(child, &status, 0) == child &&
         WIFSTOPPED(status) )
        count = follow(child, (uintptr_t)fn, profile);
    if ( child > 0 )
    {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    if ( profile )
        show_profile();

    return count;
}
