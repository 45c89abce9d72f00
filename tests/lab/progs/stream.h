/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Many messages under way at once, every byte of every one verified.
 */
#ifndef STREAM_H
#define STREAM_H

#include "rig.h"

/*
 * Called by both sides: caller to listener, listener to caller, and both at
 * once.
 */
void run_streams(struct rig *rig, int chan, bool is_caller, uint64_t seed);

#endif /* STREAM_H */
