"""Requests per second, CPU time and latency: HTTP and stdio under load, and cold starts."""

import time
from contextlib import ExitStack

from harness.servers import SERVER_CPU, Running, Wrong, load

KINDS = [("echo", 100), ("echo", 65536), ("list", 0)]
HTTP = [(op, size, connections) for op, size in KINDS for connections in (1, 32, 256)]
STDIO = [(op, size, window) for op, size in KINDS for window in (1, 64)]
QUICK_HTTP = [("echo", 100, 1), ("echo", 100, 32), ("echo", 100, 256), ("echo", 65536, 32), ("list", 0, 32)]
QUICK_STDIO = [("echo", 100, 1), ("echo", 100, 64), ("list", 0, 1)]

# A measurement during which other processes used more than this, in cores, is repeated; the quietest one counts.
FOREIGN = 0.15


def name_of(op, size, width, letter):
    what = "list" if op == "list" else f"echo-{size // 1024}k" if size >= 1024 else f"echo-{size}"
    return f"{what}-{letter}{width}"


def quietest(measure, plan):
    """The least disturbed of several tries; a server too slow for the time gets ten times as much, once."""
    best, seconds = None, plan.seconds
    for _ in range(plan.retries + 1):
        found = measure(seconds)
        if not found["n"] and seconds == plan.seconds:
            seconds *= 10
            found = measure(seconds)
        if best is None or found["foreign_busy"] < best["foreign_busy"]:
            best = found
        if best["foreign_busy"] <= FOREIGN:
            break
        time.sleep(0.5)
    if not best["n"]:
        raise Wrong("no request was finished")
    return best


def http(variants, records, plan):
    """All servers of a round are up at once, idle but for the one under load; within a cell they take turns."""
    for turn in range(plan.rounds):
        with ExitStack() as stack:
            up = []
            for variant in variants:
                if "http" not in variant.commands:
                    continue
                running = stack.enter_context(Running(variant))
                for proto in variant.protos:
                    try:
                        running.ready([proto])
                        flags = ["--url", running.url, "--proto", proto, "--conns", 8, "--warmup", 0]
                        load("http", *flags, "--duration", plan.settle)
                        up.append((running, proto))
                    except Wrong as why:
                        records.fail(variant.name, proto, "start", why)
            for op, size, connections in QUICK_HTTP if plan.quick else HTTP:
                cell = name_of(op, size, connections, "c")
                for running, proto in up:
                    flags = ["--url", running.url, "--proto", proto, "--op", op, "--payload", size, "--conns", connections]
                    flags += ["--pid", running.pid, "--warmup", plan.warmup, "--duration"]
                    try:
                        found = quietest(lambda seconds: load("http", *flags, seconds), plan)
                        records.add(running.name, proto, cell, found, round=turn)
                    except Wrong as why:
                        records.fail(running.name, proto, cell, why)


def stdio(variants, records, plan):
    for turn in range(plan.rounds):
        for op, size, window in QUICK_STDIO if plan.quick else STDIO:
            cell = name_of(op, size, window, "w")
            for variant in variants:
                for proto in variant.protos if "stdio" in variant.commands else []:
                    flags = ["--server-cpu", SERVER_CPU, "--proto", proto, "--op", op, "--payload", size, "--window", window]
                    flags += ["--warmup", plan.warmup, "--duration"]
                    child = variant.command("stdio")
                    try:
                        found = quietest(lambda seconds: load("stdio", *flags, seconds, child=child), plan)
                        records.add(variant.name, proto, cell, found, round=turn)
                    except Wrong as why:
                        records.fail(variant.name, proto, cell, why)


def cold(variants, records, plan):
    """From process start to the first correct result of a tool."""
    for turn in range(5 if plan.quick else 15):
        for variant in variants:
            for proto in variant.protos if "stdio" in variant.commands else []:
                try:
                    flags = ["--server-cpu", SERVER_CPU, "--proto", proto, "--iters", 1]
                    found = load("coldstart", *flags, child=variant.command("stdio"))
                    records.add(variant.name, proto, "cold", found, round=turn)
                except Wrong as why:
                    records.fail(variant.name, proto, "cold", why)
