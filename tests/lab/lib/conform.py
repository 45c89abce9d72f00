#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What other people's tests say of SoftIB and, beside it, of Soft-RoCE.

    conform.py judge SUITE REASONS RESULTS KEEP FORM
    conform.py document FOLDER DOCUMENT

"judge" reads lines WAY <tab> TEST <tab> RESULT <tab> NOTE (WAY is softib or rxe,
RESULT pass, fail or skip), prints a suite's line for each test, and keeps a row
each in the file KEEP, which is of the FORM "full" or "short".

A test may be skipped when REASONS has a line for it, SUITE TEST KIND TEXT with
the wildcards of a shell in TEST, and Soft-RoCE does not pass it. It may if KIND
is "roce", for what only that kind of link has. A test may fail if KIND is "broken"
and Soft-RoCE does not pass it either: then it is the test that is at fault.

"document" writes the rows of all files in FOLDER over those of the DOCUMENT: a
suite in full takes the place of what was there, one in short form that of the
tests that it ran.
"""

import fnmatch
import os
import re
import sys

WAYS = ("softib", "rxe")
APART = "roce"
UNKNOWN = "-"


class Reasons:
    """The lines of the file of reasons; the first one that fits counts."""

    def __init__(self, path):
        self.lines = []
        with open(path) as file:
            for line in file:
                if line.strip() and not line.startswith("#"):
                    self.lines.append(line.split(None, 3))

    def of(self, suite, test):
        for of_suite, pattern, kind, text in self.lines:
            if of_suite == suite and fnmatch.fnmatchcase(test, pattern):
                return kind, text.strip()
        return None, ""


def plain(text):
    """Fits into one cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "/").strip()[:200]


def read_results(path):
    """{test: {way: (result, note)}}, in the order of the tests."""
    tests = {}
    with open(path, errors="replace") as file:
        for line in file:
            way, test, result, note = (line.rstrip("\n").split("\t") + [""] * 3)[:4]
            tests.setdefault(plain(test), {})[way] = (result, plain(note))
    return tests


def verdict(suite, test, ways, reasons):
    """Prints the line of a test, and returns its row."""
    result, note = ways.get("softib", (UNKNOWN, "not run"))
    peer, peer_note = ways.get("rxe", (UNKNOWN, ""))
    kind, text = reasons.of(suite, test)
    why = ""
    if result == "pass":
        print(f"PASS {suite}: {test}")
    elif result == "fail" and kind == "broken" and peer != "pass":
        print(f"SKIP {suite}: {test} ({text})")
        why = text
    elif result != "skip":
        print(f"FAIL {suite}: {test} ({note})")
        why = note
    elif not text:
        print(f"FAIL {suite}: {test} (skipped, and nothing explains it: {note})")
        why = note
    elif peer == "pass" and kind != APART:
        print(f"FAIL {suite}: {test} (skipped, but Soft-RoCE passes: {note})")
        why = note
    else:
        print(f"SKIP {suite}: {test} ({text})")
        why = text
    if peer == "fail":
        why = f"{why}; Soft-RoCE: {peer_note}".lstrip("; ")
    return [test, result, peer, plain(why)]


def judge(suite, reasons_path, results_path, keep, form):
    reasons = Reasons(reasons_path)
    tests = read_results(results_path)
    rows = [verdict(suite, test, ways, reasons) for test, ways in tests.items()]
    if not rows:
        print(f"FAIL {suite}: no test has run")
        return
    os.makedirs(os.path.dirname(keep), exist_ok=True)
    with open(keep, "w") as file:
        file.write(form + "\n")
        for row in rows:
            file.write("\t".join(row) + "\n")


# What the document says above the rows of a suite.
SUITES = {
    "pyverbs": "rdma-core's own Python tests, both ends in one guest. Those for the "
    "hardware of one vendor (test_mlx5_*, test_efa*, test_cuda_*) are not run.",
    "devices": "ibverbs-utils, ibv_asyncwatch and iproute2's rdma.",
    "perfmatrix": "perftest between two guests, in every combination of options that "
    "the programs themselves accept.",
    "ucx": "ucx_info, and ucx_perftest between two guests.",
    "libfabric": "fi_info, and fi_pingpong between two guests.",
    "qperf": "qperf between two guests.",
}

INTRO = """<!-- SPDX-License-Identifier: GPL-2.0-only -->
# Conformance

What programs and test suites written by others say of SoftIB, and beside it of
Soft-RoCE in the same lab. `scripts/conformance` writes this page from the last
run of the suites named here (`make test-long` runs all of it, `make test` a
part); do not edit it. The reasons for what is skipped stand in
`tests/lab/conformance.reasons`. A dash means that a test was not run there.
"""


def read_document(path):
    """{suite: [row]} of a document that an earlier run wrote."""
    suites = {}
    rows = None
    if not os.path.exists(path):
        return suites
    with open(path) as file:
        for line in file:
            if line.startswith("## "):
                rows = suites.setdefault(line[3:].strip(), [])
            elif line.startswith("| `"):
                cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
                rows.append([cells[0].strip("`")] + cells[1:4])
    return suites


def merge(old, new, form):
    """The rows of a suite after a run of this form."""
    if form == "full" or not old:
        return new
    place = {row[0]: number for number, row in enumerate(old)}
    merged = list(old)
    for row in new:
        if row[0] not in place:
            merged.append(row)
            continue
        before = merged[place[row[0]]]
        # In short form Soft-RoCE may not have been asked.
        if row[2] == UNKNOWN:
            why = before[3] if row[1] == before[1] else row[3]
            row = row[:2] + [before[2], why]
        merged[place[row[0]]] = row
    return merged


def count(rows, column):
    counted = [
        f"{sum(row[column] == result for row in rows)} {word}"
        for result, word in (("pass", "passed"), ("fail", "failed"), ("skip", "skipped"))
    ]
    return ", ".join(counted)


def write_document(path, suites):
    with open(path, "w") as file:
        file.write(INTRO)
        for suite in [s for s in SUITES if s in suites] + sorted(set(suites) - set(SUITES)):
            rows = suites[suite]
            file.write(f"\n## {suite}\n\n")
            if suite in SUITES:
                file.write(SUITES[suite] + "\n\n")
            file.write(f"SoftIB: {count(rows, 1)}. Soft-RoCE: {count(rows, 2)}.\n\n")
            file.write("| test | SoftIB | Soft-RoCE | why |\n| --- | --- | --- | --- |\n")
            for test, result, peer, why in rows:
                file.write(f"| `{test}` | {result} | {peer} | {why} |\n")


def document(folder, path):
    suites = read_document(path)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    for suite in sorted(names):
        with open(os.path.join(folder, suite)) as file:
            form = file.readline().strip()
            rows = [line.rstrip("\n").split("\t") for line in file]
        suites[suite] = merge(suites.get(suite), rows, form)
    write_document(path, suites)


def main(command, *words):
    {"judge": judge, "document": document}[command](*words)


main(*sys.argv[1:])
