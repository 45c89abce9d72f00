/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is said, on standard error, and that nothing is said again and again.  And
 * memory: without it nothing can be said either.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd.h"

#define COMPLAINTS_MAX 200

static char about[KEY_MAX + 64];
static struct complaints *current;

void report_about(const char *what)
{
    snprintf(about, sizeof(about), "%s", what);
}

static void tell(const char *text)
{
    fflush(stdout);
    fprintf(stderr, "vmri-fabricd: %s\n", text);
}

/* Control characters of others are not for the operator's terminal. */
static void make_plain(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

static void complain(const char *text)
{
    struct complaints *set = current;
    unsigned int i;

    for (i = 0; i < set->num; i++)
        if (!strcmp(set->text[i], text)) {
            set->again[i] = true;
            return;
        }
    if (set->num == COMPLAINTS_MAX) {
        if (!set->more)
            tell("there is more, which is not told");
        set->more = true;
        return;
    }
    if (set->num == set->room) {
        set->room = set->room ? 2 * set->room : 8;
        set->text = xrealloc(set->text, set->room * sizeof(*set->text));
        set->again = xrealloc(set->again, set->room * sizeof(*set->again));
    }
    set->text[set->num] = xstrdup(text);
    set->again[set->num++] = true;
    tell(text);
}

void report(const char *fmt, ...)
{
    char text[1024];
    int n = snprintf(text, sizeof(text), "%s%s", about, *about ? ": " : "");
    va_list args;

    va_start(args, fmt);
    vsnprintf(text + n, sizeof(text) - n, fmt, args);
    va_end(args);
    make_plain(text);
    if (current)
        complain(text);
    else
        tell(text);
}

void complaints_begin(struct complaints *set)
{
    if (set->num)
        memset(set->again, 0, set->num * sizeof(*set->again));
    current = set;
}

void complaints_end(struct complaints *set)
{
    unsigned int i, kept = 0;

    current = NULL;
    for (i = 0; i < set->num; i++)
        if (set->again[i])
            set->text[kept++] = set->text[i];
        else
            free(set->text[i]);
    set->num = kept;
    if (kept < COMPLAINTS_MAX)
        set->more = false;
}

void complaints_free(struct complaints *set)
{
    unsigned int i;

    for (i = 0; i < set->num; i++)
        free(set->text[i]);
    free(set->text);
    free(set->again);
    *set = (struct complaints){ 0 };
}

static void *or_end(void *p)
{
    if (!p) {
        tell("out of memory");
        exit(RC_FAILURE);
    }
    return p;
}

void *xrealloc(void *p, size_t size)
{
    return or_end(realloc(p, size));
}

void *xcalloc(size_t num, size_t size)
{
    return or_end(calloc(num ? num : 1, size));
}

char *xstrdup(const char *text)
{
    return or_end(strdup(text));
}
