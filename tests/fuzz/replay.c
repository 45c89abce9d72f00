/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs inputs without a fuzzer: replay FILE...  Any compiler builds it.  The
 * last line counts; a finding ends it with the file's name before the report.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_INPUT   65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int main(int argc, char **argv)
{
    static uint8_t buffer[MAX_INPUT];
    int i;

    for ( i = 1; i < argc; i++ )
    {
        FILE *f = fopen(argv[i], "rb");
        size_t bytes = f ? fread(buffer, 1, sizeof(buffer), f) : 0;
        uint8_t *data = malloc(bytes);

        if ( !f )
        {
            perror(argv[i]);
            return 1;
        }
        fclose(f);
        fprintf(stderr, "\r%s", argv[i]);
        /* In memory of its own length, so that reading beyond it shows. */
        for ( size_t n = 0; n < bytes; n++ )
            data[n] = buffer[n];
        LLVMFuzzerTestOneInput(data, bytes);
        free(data);
    }
    fprintf(stderr, "\r\033[K");
    printf("%d passed, 0 failed\n", argc - 1);
    return 0;
}
