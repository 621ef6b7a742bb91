"""Writes RESULTS.md and its charts: a section per kind of measurement, each whole from one run."""

import datetime
import os
import platform
import re

from harness.place import BENCH, HOME, say
from harness.programs import versions

ORDER = ["http", "stdio", "instr", "memory", "cold", "build", "client", "gateway", "growth", "pairs", "oneshot"]
TITLES = {
    "http": "HTTP under load",
    "stdio": "stdio under load",
    "instr": "Instructions per request",
    "memory": "Memory",
    "cold": "Cold start",
    "build": "Building",
    "client": "Clients",
    "gateway": "Gateways",
    "growth": "How cost grows",
    "pairs": "Ratios",
    "oneshot": "One call from the command line",
}
INTRO = """# Results

Written by `bench/run`. [README.md](README.md) explains how each figure is measured and how to read it. Each section comes from
one run in which all its servers took turns: compare figures within a section only. The line below a heading gives the date and
the commit of the run; later changes are not measured there. Bowline is **bold**. The `bare-*` servers check nothing and are the
lower bound. Figures are medians over rounds.
"""


def host():
    """The machine, without its name."""
    model = "unknown processor"
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {model}, {memory / 2**20:.0f} GiB, {platform.system()} {platform.release().split('-')[0]}"


def section(name, tables, records, packages, sources, quick):
    """The text of one section; its charts are written along the way."""
    charts = (HOME if quick else BENCH) / "charts"
    charts.mkdir(parents=True, exist_ok=True)
    for old in charts.glob(f"{name}-*.svg"):
        old.unlink()
    for table in tables:
        if table.bars:
            (charts / f"{table.slug}.svg").write_text(table.svg())
    measured = ", ".join(f"{what} {version}" for what, version in versions(packages).items())
    day = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [f"## {TITLES[name]}\n", f"{day}, sources at {sources}, on {host()}.  ", f"Measured: {measured}.\n"]
    parts += [table.markdown() for table in tables]
    if records.errors:
        parts.append("Not measured:\n")
        for row in {(row["server"], row["proto"], row["cell"]): row for row in records.errors}.values():
            why = " ".join(row["error"].split())[:200].replace("|", "\\|")
            parts.append(f"- {row['server']} {row['proto'] or ''} {row['cell']}: {why}")
        parts.append("")
    return "\n".join(parts)


def write(texts, quick):
    """Replaces the sections that were measured and keeps the others, each with its own date."""
    file = (HOME if quick else BENCH) / "RESULTS.md"
    old = file.read_text() if file.is_file() else ""
    kept = {found[1]: found[2] for found in re.finditer(r"<!-- (\w+) -->\n(.*?)<!-- end -->\n", old, re.S)}
    kept |= texts
    parts = [INTRO] + [f"<!-- {name} -->\n{kept[name]}<!-- end -->\n" for name in ORDER if name in kept]
    file.write_text("\n".join(parts))
    say(f"\nwrote {file.relative_to(BENCH.parent)}")
