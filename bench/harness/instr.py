"""Instructions per request, counted by callgrind: the same on a busy machine as on a quiet one.

Only user space is counted. Each cell is run with a few requests and with N more; what these cost, divided, is the figure, so
neither start-up nor the opening of connections is part of it.
"""

import contextlib
import os
import subprocess

from harness import callgrind
from harness.place import HOME, needs
from harness.servers import Running, Wrong, load
from harness.speed import name_of
from harness.tables import OURS

# What is sent, its size, how many at once, and how many requests N is.
HTTP = [("echo", 100, 1, 1_000), ("echo", 100, 32, 1_280), ("echo", 65536, 1, 200), ("list", 0, 1, 400)]
STDIO = [("echo", 100, 1, 1_000), ("echo", 100, 64, 2_560), ("echo", 65536, 1, 200), ("list", 0, 1, 400)]
# One at a time, so that every run does the same in the same order.
STEADY = [("echo", 100, 1, 1_000), ("list", 0, 1, 400)]

MODERN = "2026-07-28"

DUMPS = HOME / "callgrind"
# One worker, as the pinned servers have under load too.
ALONE = os.environ | {"TOKIO_WORKER_THREADS": "1"}


def measure(variants, records, plan):
    needs("valgrind", "valgrind")
    DUMPS.mkdir(parents=True, exist_ok=True)
    for variant in variants:
        if variant.package in ("ts", "py-mcp", "py-fastmcp"):
            continue  # callgrind sees an interpreter, not a program
        for proto in variant.protos:
            for kind, cells, letter in (("http", HTTP, "c"), ("stdio", STDIO, "w")):
                if kind not in variant.commands:
                    continue
                if plan.quick:
                    cells = STEADY if proto == MODERN and not variant.token else STEADY[:1]
                # How the heap happens to lie makes up to a percent; the median of three processes does not show it.
                turns = 3 if variant.name.startswith(OURS) else 1
                found = {}
                for _ in range(turns):
                    with contextlib.ExitStack() as stack:
                        try:
                            count = opened(stack, variant, kind, proto)
                            for op, size, width, requests in cells:
                                cell = f"{kind}-{name_of(op, size, width, letter)}"
                                start = max(64, 2 * width)
                                few = count(op, size, width, start)
                                many = count(op, size, width, start + requests)
                                costs = callgrind.per_request(few, many, requests)
                                found.setdefault(cell, []).append((round(sum(costs.values())), costs))
                        except (Wrong, subprocess.SubprocessError) as why:
                            records.fail(variant.name, proto, kind, why)
                for cell, counts in found.items():
                    total, costs = sorted(counts, key=lambda entry: entry[0])[len(counts) // 2]
                    records.add(variant.name, proto, cell, {"instr": total, "functions": costs})


def valgrind(dump):
    for old in dump.parent.glob(f"{dump.name}*"):
        old.unlink()
    return ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={dump}", "--separate-threads=no"]


def opened(stack, variant, kind, proto):
    """A function that runs so many requests and gives the dump of what they cost."""
    dump = DUMPS / f"{variant.name}.{kind}.{proto}"
    if kind == "stdio":

        def count(op, size, width, requests):
            out = DUMPS / f"{dump.name}.{op}{size}w{width}.{requests}"
            flags = ["--proto", proto, "--op", op, "--payload", size, "--window", width, "--requests", requests]
            flags += ["--timeout-ms", 120_000]
            load("stdio", *flags, child=[*valgrind(out), *variant.command("stdio")])
            return out

        return count

    running = stack.enter_context(Running(variant, before=valgrind(dump), pinned=False, env=ALONE))
    running.ready([proto], ops=("echo", "list"))
    dumps = 0

    def count(op, size, width, requests):
        nonlocal dumps
        flags = ["--url", running.url, "--proto", proto, "--op", op, "--payload", size, "--conns", width, "--no-probe"]
        load("http", *flags, "--requests", max(64, width))
        control("--zero", running.pid)
        load("http", *flags, "--requests", requests)
        control("--dump", running.pid)
        dumps += 1
        return DUMPS / f"{dump.name}.{dumps}"

    return count


def control(order, pid):
    """Gives callgrind an order and waits until it was obeyed."""
    subprocess.run(["callgrind_control", order, str(pid)], check=True, capture_output=True, timeout=60)
