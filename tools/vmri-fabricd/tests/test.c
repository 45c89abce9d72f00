/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the tests of vmri-fabricd's parts; those of the whole are in tests/fabricd.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd.h"
#include "test.h"

static unsigned int passed, failed;
static char *errors;
static size_t errors_size;
static FILE *real_stderr;

void check(bool good, const char *what, const char *file, int line)
{
    if (good) {
        passed++;
        return;
    }
    failed++;
    fflush(stderr);
    printf("%s:%d: %s\n  stderr: %s\n", file, line, what, errors ? errors : "");
}

static void listen_anew(void)
{
    free(errors);
    errors = NULL;
    stderr = open_memstream(&errors, &errors_size);
}

const char *said(void)
{
    static char *last;

    fclose(stderr);
    free(last);
    last = errors;
    errors = NULL;
    listen_anew();
    return last;
}

bool says(const char *text)
{
    return strstr(said(), text);
}

int main(void)
{
    real_stderr = stderr;
    listen_anew();
    test_config();
    test_config_gid();
    test_base64();
    test_stream();
    test_stream_bad();
    test_map();
    test_map_garbage();
    test_fabric_words();
    test_mirror();
    test_complaints();
    test_apply_rules();
    test_apply_full();
    test_apply_routes();
    test_apply_fabrics();
    test_state();
    fclose(stderr);
    stderr = real_stderr;
    free(errors);
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0;
}
