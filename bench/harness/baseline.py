"""Our own instruction counts as last recorded, and what grew since."""

import json
import platform
import re

from harness.place import BENCH, quiet, say
from harness.tables import OURS

FILE = BENCH / "instr-baseline.json"
# A rise beyond this fails: where the counts were recorded with the same tools, and where they were not.
SAME, OTHER = 0.03, 0.15
# How many functions of a cell are kept, and told when it grew.
KEPT, TOLD = 80, 12


def surroundings():
    """What the counts depend on besides our sources: the compiler, the libraries of the system, the processor's kind."""
    flags = open("/proc/cpuinfo").read() if platform.machine() == "x86_64" else ""
    wide = next((name for name in ("avx2", "sse4_2") if re.search(rf"\b{name}\b", flags)), "")
    return {
        "rustc": quiet(["rustc", "--version"]).split()[1],
        "libc": " ".join(platform.libc_ver()),
        "valgrind": quiet(["valgrind", "--version"]).strip().removeprefix("valgrind-"),
        "processor": f"{platform.machine()} {wide}".strip(),
    }


def counted(records):
    rows = [row for row in records.rows if row["server"].startswith(OURS) and "instr" in row]
    prefix = lambda row: "" if row["server"] == OURS else f"{row['server'].removeprefix(OURS + '-')} "
    return {f"{prefix(row)}{row['cell']} {row['proto']}": row for row in rows}


def record(records):
    cells = {}
    for name, row in sorted(counted(records).items()):
        most = sorted(row["functions"].items(), key=lambda entry: -entry[1])[:KEPT]
        cells[name] = {"instructions": row["instr"], "functions": {function: round(cost) for function, cost in most}}
    FILE.write_text(json.dumps({"surroundings": surroundings(), "cells": cells}, indent=1, ensure_ascii=False) + "\n")
    say(f"\nrecorded {len(cells)} cells in {FILE.relative_to(BENCH.parent)}")


def check(records):
    """Whether no cell grew beyond what is tolerated; tells what each did, and of those that grew, which functions."""
    if not FILE.is_file():
        say("\nthere is no baseline: record one with `bench/run instr --quick --record`")
        return False
    known, now = json.loads(FILE.read_text()), surroundings()
    differ = [f"{key} {was} then, {now.get(key)} now" for key, was in known["surroundings"].items() if now.get(key) != was]
    tolerated = OTHER if differ else SAME
    say("\ninstructions against the recorded baseline")
    if differ:
        say(f"  The baseline was recorded elsewhere: {'; '.join(differ)}.")
        say(f"  Counts differ for that alone, so a rise of up to {OTHER:.0%} instead of {SAME:.0%} passes.")
        say("  For the finer check, record anew here from the revision to compare with.")
    fine, found = True, counted(records)
    for name, cell in known["cells"].items():
        if name not in found:
            say(f"  {name:34} NOT MEASURED")
            fine = False
            continue
        was, is_now = cell["instructions"], found[name]["instr"]
        rise = is_now / was - 1
        verdict = "GREW" if rise > tolerated else "shrank; worth recording" if rise < -SAME and not differ else "ok"
        say(f"  {name:34} {was:9,} {is_now:9,} {rise:+7.2%}  {verdict}")
        if rise > tolerated:
            fine = False
            tell_growth(cell["functions"], found[name]["functions"])
    for name in found.keys() - known["cells"].keys():
        say(f"  {name:34} has no baseline")
    return fine


def tell_growth(was, now):
    least = min(was.values(), default=0)
    grown = []
    for function, cost in now.items():
        # Of functions that were too cheap to be kept, only what lies above the cheapest kept one is surely new.
        before = was.get(function, least if cost > least else cost)
        if cost - before >= 20:
            grown.append((cost - before, before if function in was else None, cost, function))
    for more, before, cost, function in sorted(grown, key=lambda entry: -entry[0])[:TOLD]:
        then = "new" if before is None else f"{before:,.0f}"
        say(f"      {more:+8,.0f}  {then:>8} -> {cost:8,.0f}  {function[:110]}")
