"""How cost grows: with registered tools, sessions, the size of a message, worker threads."""

import os
from contextlib import ExitStack

from harness.figures import short
from harness.memory import held
from harness.servers import SERVER_CPU, Running, Wrong, load
from harness.speed import quietest
from harness.tables import OURS, Table

MODERN, LEGACY = "2026-07-28", "2025-11-25"
# With what JSON adds to it, just below the 4 MiB that a server takes by default.
LARGE = 4_100_000
# A line break in 80 bytes takes two in JSON.
ON_THE_WIRE = LARGE + LARGE // 80


def measure(variants, records, plan):
    ours = next((variant for variant in variants if variant.name == OURS), None)
    if ours is None:
        return
    for part in (tools, sessions, message, threads):
        try:
            part(ours, records, plan)
        except Wrong as why:
            records.fail(OURS, MODERN, part.__name__, why)


def tools(ours, records, plan):
    counts = (1, 10_000) if plan.quick else (1, 50, 1_000, 10_000)
    with ExitStack() as stack:
        up = [(count, stack.enter_context(Running(ours, more=["--tools", count]))) for count in counts]
        for count, running in up:
            running.ready([MODERN], ops=("echo",))
        for turn in range(plan.rounds):
            for connections in (1, 32):
                for count, running in up:
                    flags = ["--url", running.url, "--proto", MODERN, "--conns", connections, "--pid", running.pid]
                    flags += ["--warmup", plan.warmup, "--duration"]
                    found = quietest(lambda seconds: load("http", *flags, seconds), plan)
                    records.add(OURS, MODERN, f"tools-{count}-c{connections}", found, round=turn)


def sessions(ours, records, plan):
    for count in (1_000, 5_000) if plan.quick else (100, 1_000, 5_000, 15_000):
        for turn in range(1 if plan.quick else 3):
            with Running(ours) as running:
                running.ready([LEGACY], ops=("echo",))
                records.add(OURS, LEGACY, f"sessions-{count}", held(running, "sessions", LEGACY, count), round=turn)


def message(ours, records, plan):
    """How much more a process holds at its peak after one large message than after one small."""
    for turn in range(1 if plan.quick else 3):
        for proto in (LEGACY, MODERN):
            peaks = {"http": [], "stdio": []}
            for size in (100, LARGE):
                flags = ["--proto", proto, "--payload", size, "--requests", 1]
                with Running(ours) as running:
                    running.ready([proto], ops=("echo",))
                    found = load("http", "--url", running.url, *flags, "--pid", running.pid)
                    peaks["http"].append(found["hwm_kib"])
                found = load("stdio", "--server-cpu", SERVER_CPU, *flags, child=ours.command("stdio"))
                peaks["stdio"].append(found["hwm_kib"])
            for kind, (small, large) in peaks.items():
                times = (large - small) * 1024 / ON_THE_WIRE
                records.add(OURS, proto, f"message-{kind}", {"peak_kib": large - small, "times": round(times, 2)}, round=turn)


def threads(ours, records, plan):
    """On two processors the load generator shares the second one with the second thread."""
    for turn in range(plan.rounds):
        for count in (1, 2):
            env = os.environ | {"TOKIO_WORKER_THREADS": str(count)}
            with Running(ours, pinned=count == 1, env=env) as running:
                running.ready([MODERN])
                flags = ["--url", running.url, "--proto", MODERN, "--conns", 64, "--pid", running.pid]
                flags += ["--duration", plan.seconds, "--warmup", plan.warmup]
                records.add(OURS, MODERN, f"threads-{count}", load("http", *flags), round=turn)


# What is shown: the prefix of the cells, a title, the unit of the chart, headings and figures.
SHOWN = [
    ("tools", "c1", "Registered tools: echo of 100 B, one connection", "µs at the median", "p50_us", "srv_cpu_us"),
    ("tools", "c32", "Registered tools: echo of 100 B, 32 connections", "µs of server CPU per request", "srv_cpu_us", "rps"),
    ("sessions", "", "Idle sessions of 2025-11-25", "KiB each", "kib_each", "srv_cpu_us_per_open"),
    ("message", "", "A message of 4 MiB: memory at the peak, in times its size", "× its size", "times", "peak_kib"),
    ("threads", "", "Worker threads, 64 connections", "requests per second", "rps", "srv_cpu_us"),
]
HEADINGS = {
    "p50_us": "p50 µs",
    "srv_cpu_us": "server CPU µs",
    "rps": "requests/s",
    "kib_each": "KiB each",
    "srv_cpu_us_per_open": "CPU µs to open",
    "times": "× its size",
    "peak_kib": "KiB more",
}


def tables(records):
    for prefix, suffix, title, unit, main, other in SHOWN:
        rows, bars = [], []
        for cell in records.cells:
            words = cell.split("-")
            if words[0] != prefix or len(words) < 2 or (suffix and words[-1] != suffix):
                continue
            for _, proto in records.who(cell):
                name = f"{int(words[1]):,}" if words[1].isdigit() else f"{words[1]} ({proto[:4]})"
                value = records.median(OURS, proto, cell, main)
                rows.append([name, short(value), short(records.median(OURS, proto, cell, other))])
                bars.append((name, value, short(value), "ours"))
        if rows:
            head = [prefix, HEADINGS[main], HEADINGS[other]]
            slug = f"growth-{prefix}{'-' + suffix if suffix else ''}"
            yield Table(slug, title, head, rows, unit, bars, lower=main != "rps")
