"""Ratios taken in pairs: ours and what it is compared with, one right after the other, many times.

A shared machine is slower at one moment than at the next. What two neighbouring measurements have in common cancels out in
their ratio, and the median of many such ratios is steady where that of the figures is not.
"""

import statistics
import tomllib
from contextlib import ExitStack

from harness import client
from harness.figures import short
from harness.place import BENCH
from harness.servers import SERVER_CPU, Running, Wrong, load
from harness.tables import OURS, Table

WIDTHS = {"c": "--conns", "w": "--window"}


def measure(variants, records, plan):
    names = {variant.name: variant for variant in variants}
    pairs, seconds = (5, 0.5) if plan.quick else (15, 0.6)
    with ExitStack() as stack:
        up = {}
        for target in tomllib.loads((BENCH / "targets.toml").read_text())["target"]:
            if target["section"] != "pairs":
                continue
            kind, cell = target["cell"].split(" ", 1)
            who = target.get("who", OURS)
            if who != OURS and who not in names:
                continue
            try:
                if kind == "client":
                    each = client_of(stack, up, target, cell, seconds)
                else:
                    each = server_of(stack, up, names, target, kind, cell, seconds)
                for turn in range(pairs):
                    base, ours = each(target["against"]), each(who)
                    found = {"ratio": ours / base, "difference": ours - base, "ours": ours, "base": base}
                    records.add(who, target["proto"], target["cell"], found, round=turn)
            except (Wrong, KeyError) as why:
                records.fail(who, target["proto"], target["cell"], why)


def server_of(stack, up, names, target, kind, cell, seconds):
    """How to measure a server in one cell."""
    what, width = cell.rsplit("-", 1)
    flags = ["--op", "list"] if what == "list" else ["--op", "echo", "--payload", 65536 if what == "echo-64k" else 100]
    flags += [WIDTHS[width[0]], int(width[1:]), "--warmup", 0.1, "--duration", seconds]

    def each(name):
        # What is compared may know another revision only; the floor costs the same in each.
        proto = target["proto"] if target["proto"] in names[name].protos else names[name].protos[-1]
        if kind == "stdio":
            found = load("stdio", "--server-cpu", SERVER_CPU, "--proto", proto, *flags, child=names[name].command("stdio"))
        else:
            if name not in up:
                up[name] = stack.enter_context(Running(names[name]))
                up[name].ready(names[name].protos)
            found = load("http", "--url", up[name].url, "--pid", up[name].pid, "--proto", proto, *flags)
        return found[target["figure"]]

    return each


def client_of(stack, up, target, cell, seconds):
    """How to measure a client in one cell, against a bare server."""
    kind, tasks = cell.split("-")
    if kind == "http" and "floor" not in up:
        up["floor"] = stack.enter_context(Running(client.HTTP))
        up["floor"].ready(["2026-07-28"])
    goal = [up["floor"].url] if kind == "http" else ["taskset", "-c", str(SERVER_CPU), *client.STDIO]

    def each(name):
        return client.called(client.PROGRAMS[name], target["proto"], int(tasks), seconds, goal)[target["figure"]]

    return each


def tables(records):
    rows = []
    for cell in records.cells:
        for who, proto in records.who(cell):
            ratios = sorted(records.values(who, proto, cell, "ratio"))
            ours, base = (records.median(who, proto, cell, figure) for figure in ("ours", "base"))
            spread = f"{short(ratios[len(ratios) // 4])} to {short(ratios[-1 - len(ratios) // 4])}"
            about = f"{cell} ({proto[:4]})" if who == OURS else f"{cell} ({proto[:4]}), {who.removeprefix(OURS + '-')}"
            rows.append([about, short(statistics.median(ratios)), spread, short(ours), short(base)])
    head = ["cell", "ratio", "half of them between", "ours", "compared with"]
    yield Table("pairs", "Ratios, taken in pairs", head, rows, "", [])
