/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tree of named values, for programs (JSON) or for people (indented lines).
 */
#include "xl-vmri.h"

static void put_json_string(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        unsigned char c = *s;

        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

/* What stands before a value: comma, new line, indentation, name. */
static void begin_value(struct writer *w, const char *name)
{
    int indent = 2 * w->depth;

    if (!w->json) {
        printf("%*s%-*s", indent, "", 24 - indent, name);
        return;
    }

    if (w->follows)
        putchar(',');
    if (w->depth)
        printf("\n%*s", indent, "");
    if (name) {
        put_json_string(name);
        fputs(": ", stdout);
    }
    w->follows = true;
}

static void end_value(struct writer *w)
{
    if (!w->json)
        putchar('\n');
}

void writer_open(struct writer *w, const char *name, char bracket)
{
    if (w->json) {
        begin_value(w, name);
        putchar(bracket);
        w->depth++;
        w->follows = false;
        return;
    }

    if (name) {
        printf("%*s%s\n", (int)(2 * w->depth), "", name);
        w->depth++;
    } else if (w->follows) {
        /* Another one of a list. */
        putchar('\n');
    }
}

void writer_close(struct writer *w, char bracket)
{
    if (w->json) {
        w->depth--;
        if (w->follows)
            printf("\n%*s", (int)(2 * w->depth), "");
        putchar(bracket);
        if (!w->depth)
            putchar('\n');
    } else if (w->depth) {
        w->depth--;
    }
    w->follows = true;
}

/* A value of NULL is null, or a dash. */
void write_string(struct writer *w, const char *name, const char *value)
{
    begin_value(w, name);
    if (!w->json)
        fputs(value ? value : "-", stdout);
    else if (value)
        put_json_string(value);
    else
        fputs("null", stdout);
    end_value(w);
}

void write_number(struct writer *w, const char *name, uint64_t value)
{
    begin_value(w, name);
    printf("%llu", (unsigned long long)value);
    end_value(w);
}

void write_bool(struct writer *w, const char *name, bool value)
{
    begin_value(w, name);
    if (w->json)
        fputs(value ? "true" : "false", stdout);
    else
        fputs(value ? "yes" : "no", stdout);
    end_value(w);
}
