#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the ELF file inside a bzImage: vmlinux.py BZIMAGE OUTPUT.

Xen and xl take it as it is, and unpacking it here saves seconds of emulated
time at every boot. The offsets are those of the x86 boot protocol.
"""

import struct
import subprocess
import sys

UNPACKERS = {
    b"\x28\xb5\x2f\xfd": ["zstd", "-dcq"],
    b"\xfd7zXZ\x00": ["xz", "-dcq"],
    b"\x1f\x8b": ["gzip", "-dcq"],
}


def main(source, target):
    with open(source, "rb") as file:
        image = file.read()
    if image[0x202:0x206] != b"HdrS":
        sys.exit(f"{source} is not a bzImage")
    setup = (image[0x1F1] + 1) * 512
    offset, length = struct.unpack_from("<II", image, 0x248)
    payload = image[setup + offset : setup + offset + length]
    for magic, command in UNPACKERS.items():
        if payload.startswith(magic):
            break
    else:
        sys.exit(f"{source}: unknown compression {payload[:6].hex()}")
    # The last four bytes are the unpacked size, which the unpacker warns of.
    done = subprocess.run(command, input=payload[:-4], stdout=subprocess.PIPE)
    if not done.stdout.startswith(b"\x7fELF"):
        sys.exit(f"{source}: no ELF file inside")
    with open(target, "wb") as file:
        file.write(done.stdout)


main(*sys.argv[1:])
