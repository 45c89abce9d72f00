#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Another host's uplink, played in dom0: what it sends comes from the same address.

uplink-peer.py swap ADDRESS PORT FABRIC FABRIC
    A fabric has one number on all hosts, so no datagram of it finds anybody when it
    comes back to its own host. Of two fabrics, each one's are sent again as the other's.
uplink-peer.py garbage ADDRESS PORT COUNT
    Sends so many packets that are no datagrams, one way and another, and as many from
    a port that is no uplink's; prints how many of either.
"""
import random
import socket
import struct
import sys
import time

MAGIC = 0x53494255
WIRE = struct.Struct("!IBBH16s16sIIIIIIHBBBBH")
FABRIC = 40  # where it stands in that
DATA = 4096
SO_RCVBUFFORCE = 33
AGAIN = 0x20  # the type of service of what was sent again


def raw_socket(address):
    sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    sock.bind((address, 0))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, AGAIN)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
    return sock


def send(sock, address, port, payload):
    header = struct.pack("!HHHH", port, port, 8 + len(payload), 0)
    sock.sendto(header + payload, (address, 0))


def swap(address, port, one, two):
    other = {one: two, two: one}
    sock = raw_socket(address)
    print("ready", flush=True)
    while True:
        packet = sock.recv(65535)
        udp = packet[(packet[0] & 15) * 4:]
        payload = bytearray(udp[8:])
        if packet[1] == AGAIN or struct.unpack_from("!H", udp, 2)[0] != port:
            continue
        fabric = struct.unpack_from("!I", payload, FABRIC)[0]
        if fabric in other:
            struct.pack_into("!I", payload, FABRIC, other[fabric])
            send(sock, address, port, payload)


def wire(magic=MAGIC, version=1, kind=1, length=64, qpn=1, flags=0, reserved=0):
    return WIRE.pack(magic, version, kind, length, bytes(16), bytes(16), 0, 1,
                     qpn, 0, 0, 0, 0xffff, 0, 0, 0, flags, reserved)


def no_datagram(n):
    data = bytes(64)
    kinds = [
        lambda: random.randbytes(random.randrange(9000)),
        lambda: b"",
        lambda: wire()[:random.randrange(WIRE.size)],
        lambda: wire(magic=MAGIC + 1) + data,
        lambda: wire(version=2) + data,
        lambda: wire(kind=2) + data,
        lambda: wire(reserved=1) + data,
        lambda: wire(length=65) + data,
        lambda: wire(length=63) + data,
        lambda: wire(length=DATA + 1) + bytes(DATA + 1),
        lambda: wire(length=0xffff) + bytes(60000),
        lambda: wire(qpn=1 << 24) + data,
        lambda: wire(flags=0x80) + data,
    ]
    return kinds[n % len(kinds)]()


def garbage(address, port, count):
    random.seed(1)
    sock = raw_socket(address)
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for n in range(count):
        send(sock, address, port, no_datagram(n))
        stranger.sendto(wire() + bytes(64), (address, port))
        time.sleep(0.001)  # more would not fit into the receiver's buffer
    print(count, count)


if __name__ == "__main__":
    what = {"swap": swap, "garbage": garbage}[sys.argv[1]]
    what(sys.argv[2], *map(int, sys.argv[3:]))
