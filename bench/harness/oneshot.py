"""One call from the command line, cold: `bowline call`, from its start to its end."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.place import BENCH, BUILD, needs
from harness.servers import Running, Wrong, load
from harness.tables import OURS, simple

PROGRAM = BUILD / "release" / "bowline"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
STAMPS = BENCH / "servers" / "stamps.py"


def timed(command):
    """Runs a program to its end: when that was, how long it took in all, and its greatest memory."""
    needs("time", "time")
    with tempfile.NamedTemporaryFile() as used:
        # A program is said to have held what held the one that started it, and Python holds more than what is measured.
        command = ["/usr/bin/time", "--format", "%M", "--output", used.name, *map(str, command)]
        start = time.monotonic_ns()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        end = time.monotonic_ns()
        if done.returncode or "ahoy" not in done.stdout:
            raise Wrong(f"{' '.join(command)}: {done.stderr[:400] or done.stdout[:400]}")
        return end, (end - start) / 1e6, int(used.read())


def measure(variants, records, plan):
    names = {variant.name: variant for variant in variants}
    bare = names.get("bare-hyper")
    rounds = 5 if plan.quick else 31
    with tempfile.TemporaryDirectory() as folder:
        stamp = Path(folder) / "answered"
        for turn in range(rounds):
            try:
                program = [sys.executable, STAMPS, stamp]
                end, took, peak = timed([PROGRAM, "call", "echo", "message=ahoy", "--", *program])
                after = (end - int(stamp.read_text())) / 1e6
                records.add(OURS, LEGACY, "stdio", {"took_ms": took, "after_ms": after, "peak_kib": peak}, round=turn)
            except (Wrong, OSError) as why:
                records.fail(OURS, LEGACY, "stdio", why)
    if bare is None:
        return
    with Running(bare, pinned=False) as running:
        running.ready([MODERN], ops=("echo",))
        for turn in range(rounds):
            try:
                start = time.monotonic_ns()
                load("http", "--url", running.url, "--proto", MODERN, "--op", "echo", "--payload", 100, "--requests", 1)
                floor = (time.monotonic_ns() - start) / 1e6
                records.add("harness", MODERN, "http", {"took_ms": floor}, round=turn)
                _, took, peak = timed([PROGRAM, "call", running.url, "echo", "message=ahoy"])
                records.add(OURS, MODERN, "http", {"took_ms": took, "peak_kib": peak}, round=turn)
            except Wrong as why:
                records.fail(OURS, MODERN, "http", why)


def tables(records):
    columns = [("ms in all", "took_ms", 1), ("ms after the answer", "after_ms", 1), ("peak MiB", "peak_kib", 1024)]
    title = "One call from the command line, to a program it starts (an interpreter of Python included)"
    yield simple(records, "stdio", "oneshot-stdio", title, "milliseconds", columns, "took_ms")
    columns = [("ms in all", "took_ms", 1), ("peak MiB", "peak_kib", 1024)]
    title = "One call from the command line, to a bare server over HTTP; `harness` is a program that sends one request"
    yield simple(records, "http", "oneshot-http", title, "milliseconds", columns, "took_ms", "harness")
