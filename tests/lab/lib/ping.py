#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Echo requests of many sizes, every byte of each answer compared.

    ping.py ADDRESS FIRST LAST STEP

sends one of every size of payload from FIRST to LAST, and LAST, a few at a time,
and each up to three times. Prints how many came back.
"""

import os
import select
import socket
import struct
import sys
import time

WINDOW = 8
TRIES = 3
WAIT = 2.0
HEADER = 8


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Pinger:
    """Sends requests and takes answers, over IPv4 or IPv6."""

    def __init__(self, address):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.v6 = family == socket.AF_INET6
        protocol = socket.IPPROTO_ICMPV6 if self.v6 else socket.IPPROTO_ICMP
        self.socket = socket.socket(family, socket.SOCK_RAW, protocol)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.request, self.reply = (128, 129) if self.v6 else (8, 0)
        self.address = socket.getaddrinfo(address, 0, family)[0][4]
        self.id = os.getpid() & 0xFFFF
        self.pattern = os.urandom(1 << 17)

    def payload(self, number, size):
        return self.pattern[number : number + size]

    def send(self, number, size):
        data = self.payload(number, size)
        head = struct.pack("!BBHHH", self.request, 0, 0, self.id, number)
        # The kernel does this for IPv6.
        if not self.v6:
            head = head[:2] + struct.pack("!H", checksum(head + data)) + head[4:]
        self.socket.sendto(head + data, self.address)

    def answer(self, limit):
        """The number and payload of the next answer, or None when none comes."""
        end = time.monotonic() + limit
        while True:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                return None
            data = self.socket.recv(1 << 17)
            if not self.v6:
                data = data[(data[0] & 15) * 4 :]
            kind, _, _, ident, number = struct.unpack("!BBHHH", data[:HEADER])
            if (kind, ident) == (self.reply, self.id):
                return number, data[HEADER:]


def run(pinger, sizes):
    """The sizes that no answer came for; a wrong one ends the program."""
    waiting = {}
    missing = []
    rest = list(enumerate(sizes))[::-1]
    while rest or waiting:
        while rest and len(waiting) < WINDOW:
            number, size = rest.pop()
            waiting[number] = (size, 1)
            pinger.send(number, size)
        answer = pinger.answer(WAIT)
        if answer:
            number, data = answer
            size, _ = waiting.pop(number, (None, 0))
            if size is not None and data != pinger.payload(number, size):
                sys.exit(f"the answer of {size} bytes is wrong")
            continue
        for number, (size, tries) in list(waiting.items()):
            if tries == TRIES:
                del waiting[number]
                missing.append(size)
            else:
                waiting[number] = (size, tries + 1)
                pinger.send(number, size)
    return missing


def main(address, first, last, step):
    sizes = list(range(int(first), int(last), int(step))) + [int(last)]
    missing = run(Pinger(address), sizes)
    if missing:
        sys.exit(f"no answer for {len(missing)} of {len(sizes)} sizes: {missing[:10]}")
    print(f"{len(sizes)} sizes")


main(*sys.argv[1:])
