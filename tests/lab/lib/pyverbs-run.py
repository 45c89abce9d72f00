#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs rdma-core's Python tests in a guest, one line of result a test.

    pyverbs-run.py FOLDER DEVICE PART/PARTS [--limit SECONDS] [PATTERN]...

prints TEST <tab> RESULT <tab> NOTE for each test whose name has one of the
patterns (those of a shell; all, if none is given), where PARTS runs with PART 1
and up share the tests among them.

The tests run in a child process, since one may crash or hang. Then the rest is
run in another.
"""

import fnmatch
import importlib
import os
import selectors
import signal
import sys
import types
import unittest

# Of one vendor's hardware, or of memory on a graphics processor.
OTHERS = ("test_mlx5", "test_efa", "test_cuda")


def load(folder, device):
    """All tests, without importing those for hardware of others."""
    sys.path.insert(0, folder)
    sys.path.insert(0, os.path.join(folder, "tests"))
    # What the tests read their options from.
    from args_parser import parser

    sys.argv[1:] = ["--dev", device]
    parser.parse_args()
    package = types.ModuleType("tests")
    package.__path__ = [os.path.join(folder, "tests")]
    sys.modules["tests"] = package
    loader = unittest.TestLoader()
    for name in sorted(os.listdir(package.__path__[0])):
        if name.startswith("test_") and name.endswith(".py") and not name.startswith(OTHERS):
            module = importlib.import_module("tests." + name[:-3])
            for suite in loader.loadTestsFromModule(module):
                yield from suite


def name_of(test):
    """test_qp.QPTest.test_create_rc_qp"""
    return test.id().removeprefix("tests.")


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return " ".join((lines or ["?"])[-1].split())[:300]


class Teller(unittest.TestResult):
    """Writes lines for each test's start and end to a file descriptor."""

    def __init__(self, fd):
        super().__init__()
        self.fd = fd

    def tell(self, *words):
        os.write(self.fd, ("\t".join(words) + "\n").encode())

    def startTest(self, test):
        super().startTest(test)
        self.told = False
        self.tell("start", name_of(test))

    def end(self, test, result, note=""):
        if not self.told:
            self.told = True
            self.tell("end", name_of(test), result, note)

    def addSuccess(self, test):
        self.end(test, "pass")

    def addSkip(self, test, reason):
        self.end(test, "skip", last_line(reason))

    def addError(self, test, err):
        super().addError(test, err)
        self.end(test, "fail", last_line(self.errors[-1][1]))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.end(test, "fail", last_line(self.failures[-1][1]))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.end(test, "fail", f"{subtest}: {err[1]}")

    def addExpectedFailure(self, test, err):
        self.end(test, "pass")

    def addUnexpectedSuccess(self, test):
        self.end(test, "fail", "it should have failed")


def child(tests, fd):
    os.setpgid(0, 0)
    result = Teller(fd)
    for test in tests:
        test.run(result)
    os._exit(0)


def start(tests):
    """A child that runs the tests: its process, and the end of its pipe."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        child(tests, theirs)
    os.close(theirs)
    return pid, ours


def lines_of(fd, limit):
    """Lines until the end of the file; None when there is none for too long."""
    selector = selectors.DefaultSelector()
    selector.register(fd, selectors.EVENT_READ)
    rest = b""
    while True:
        if not selector.select(limit):
            yield None
            return
        data = os.read(fd, 65536)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace").split("\t")


def run_some(tests, limit):
    """Prints results until a test hangs or ends its process: how many had one."""
    pid, fd = start(tests)
    done = 0
    running = None
    hung = False
    for line in lines_of(fd, limit):
        if line is None:
            hung = True
        elif line[0] == "start":
            running = line[1]
        else:
            print(*line[1:], sep="\t", flush=True)
            running = None
            done += 1
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    status = os.waitpid(pid, 0)[1]
    os.close(fd)
    if running or done < len(tests):
        why = f"no end within {limit} s" if hung else f"it ended its process: {status}"
        print(running or name_of(tests[done]), "fail", why, sep="\t", flush=True)
        done += 1
    return done


def main(folder, device, share, *words):
    limit = 60
    if words[:1] == ("--limit",):
        limit = int(words[1])
        words = words[2:]
    part, parts = map(int, share.split("/"))
    tests = [
        test
        for test in load(folder, device)
        if not words or any(fnmatch.fnmatchcase(name_of(test), word) for word in words)
    ][part - 1 :: parts]
    while tests:
        tests = tests[run_some(tests, limit) :]


main(*sys.argv[1:])
