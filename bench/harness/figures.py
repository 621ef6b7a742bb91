"""What was measured: records of single measurements, and their medians."""

import json
import statistics
import time

from harness.place import HOME, say

SHOWN = ("rps", "srv_cpu_us", "p50_us", "p99_us", "foreign_busy", "cold_ms", "kib_each", "instr", "calls_per_s", "error")


class Records:
    """The measurements of one section in one run, kept as lines of JSON too."""

    def __init__(self, section):
        self.section, self.rows = section, []
        HOME.mkdir(parents=True, exist_ok=True)
        self.file = HOME / f"{section}.jsonl"
        self.file.write_text("")

    def add(self, server, proto, cell, found, **more):
        row = {"server": server, "proto": proto, "cell": cell, **more, **found}
        self.rows.append(row)
        with self.file.open("a") as lines:
            lines.write(json.dumps(row | {"time": round(time.time(), 1)}) + "\n")
        shown = " ".join(f"{key}={short(row[key])}" for key in SHOWN if key in row)
        say(f"  {cell:26} {server:22} {proto or '':11} {shown}")

    def fail(self, server, proto, cell, why):
        self.add(server, proto, cell, {"error": str(why)})

    @property
    def errors(self):
        return [row for row in self.rows if "error" in row]

    @property
    def cells(self):
        return list(dict.fromkeys(row["cell"] for row in self.rows))

    def who(self, cell):
        """The servers that have figures for a cell, with their revisions."""
        found = ((row["server"], row["proto"]) for row in self.rows if row["cell"] == cell and "error" not in row)
        return list(dict.fromkeys(found))

    def values(self, server, proto, cell, figure):
        wanted = (server, proto, cell)
        rows = (row for row in self.rows if (row["server"], row["proto"], row["cell"]) == wanted)
        return [row[figure] for row in rows if row.get(figure) is not None]

    def median(self, server, proto, cell, figure):
        """The median over rounds; of any revision when the server does not have this one."""
        values = self.values(server, proto, cell, figure)
        if not values:
            others = [other for name, other in self.who(cell) if name == server]
            values = self.values(server, others[-1], cell, figure) if others else []
        return statistics.median(values) if values else None


def short(value):
    """A figure with three digits that matter."""
    if value is None:
        return "-"
    if not isinstance(value, (int, float)):
        return str(value)
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    whole = len(str(int(abs(value))))
    return f"{value:.{max(0, 3 - whole)}f}"
