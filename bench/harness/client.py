"""Calls per second of clients, against the bare servers, which cost next to nothing."""

import json
import subprocess

from harness.place import BENCH, BUILD
from harness.servers import LOAD_CPU, SERVER_CPU, Running, Variant, Wrong, load
from harness.tables import OURS

PROGRAMS = {OURS: "bench-client-bowline", "rmcp": "bench-client-rmcp"}
PROTOS = ("2025-11-25", "2026-07-28")
HTTP = Variant("bare-hyper", {"package": "bare", "http": "{bin}/bare-hyper --port {port}", "protos": PROTOS, "groups": []})
STDIO = [str(BUILD / "release" / "bare-stdio")]


def measure(variants, records, plan):
    """In turns: the load generator itself, which checks as much and does nothing else, then the clients."""
    clients = [name for name in PROGRAMS if name in {variant.package for variant in variants}]
    with Running(HTTP) as running:
        running.ready(["2026-07-28"])
        for turn in range(plan.rounds):
            for tasks in (1, 64):
                for proto in PROTOS:
                    flags = ["--proto", proto, "--duration", plan.seconds, "--warmup", plan.warmup]
                    ways = {
                        "http": lambda: load("http", "--url", running.url, "--conns", tasks, *flags),
                        "stdio": lambda: load(
                            "stdio", "--server-cpu", SERVER_CPU, "--window", tasks, *flags, child=STDIO
                        ),
                    }
                    targets = {"http": [running.url], "stdio": ["taskset", "-c", str(SERVER_CPU), *STDIO]}
                    for kind, own in ways.items():
                        cell = f"{kind}-{tasks}"
                        try:
                            found = own()
                            cpu = found["cli_busy"] / found["rps"] * 1e6
                            told = {"calls_per_s": found["rps"], "cpu_us": cpu, "n": found["n"]}
                            records.add("harness", proto, cell, told, round=turn)
                        except Wrong as why:
                            records.fail("harness", proto, cell, why)
                        for name in clients:
                            try:
                                found = called(PROGRAMS[name], proto, tasks, plan.seconds, targets[kind])
                                records.add(name, proto, cell, found, round=turn)
                            except Wrong as why:
                                records.fail(name, proto, cell, why)


def called(program, proto, tasks, seconds, target):
    command = ["taskset", "-c", LOAD_CPU, BUILD / "release" / program]
    command += ["--revision", proto, "--tasks", tasks, "--seconds", seconds, *target]
    try:
        done = subprocess.run([*map(str, command)], cwd=BENCH, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise Wrong("it did not end within a minute") from None
    if done.returncode:
        raise Wrong(done.stderr.strip()[-600:] or f"{program} ended with {done.returncode}")
    return json.loads(done.stdout)
