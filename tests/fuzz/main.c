/* SPDX-License-Identifier: GPL-2.0-only */
/* What libFuzzer calls, and what a panic of the fake environment ends in. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input in = { data, bytes };

    stage_begin();
    race_begin(&in);
    target_run(&in);
    stage_end();
    return 0;
}
