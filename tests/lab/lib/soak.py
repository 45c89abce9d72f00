#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Computes for a while and checks every result: soak.py SECONDS.

An emulator or a hypervisor that loses a register or a page shows here as a
wrong sum, before it is taken for a fault of the code under test.
"""

import hashlib
import lzma
import random
import sys
import time
import zlib

SIZE = 64 * 1024


def one_round(seed):
    """One round for a seed; returns what went wrong, empty if nothing did."""
    data = random.Random(seed).randbytes(SIZE // 2)
    data += data[::-1]
    sums = {hashlib.sha256(data).digest() for _ in range(4)}
    if len(sums) != 1:
        return "sha256 of the same bytes differs"
    if len({zlib.crc32(data) for _ in range(4)}) != 1:
        return "crc32 of the same bytes differs"
    if zlib.decompress(zlib.compress(data, 1)) != data:
        return "zlib gave other bytes back"
    if lzma.decompress(lzma.compress(data, preset=0)) != data:
        return "lzma gave other bytes back"
    if bytes(bytearray(data)) != data or data[SIZE // 2 :] != data[: SIZE // 2][::-1]:
        return "a copy differs"
    terms = 5000
    if sum(i * i for i in range(terms)) != (terms - 1) * terms * (2 * terms - 1) // 6:
        return "integer arithmetic"
    if abs(sum(1.0 / (i * (i + 1)) for i in range(1, terms)) - (1 - 1 / terms)) > 1e-9:
        return "floating point arithmetic"
    return ""


def main(seconds):
    end = time.monotonic() + seconds
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        wrong = one_round(rounds)
        if wrong:
            sys.exit(f"round {rounds}: {wrong}")
        rounds += 1
    print(rounds)


main(float(sys.argv[1]))
