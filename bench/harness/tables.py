"""Tables and charts of a section, from its records."""

from harness import chart
from harness.figures import short

FLOORS = {"http": "bare-hyper", "stdio": "bare-stdio"}
OURS = "bowline"


class Table:
    """One table: a heading, rows of text, and what its chart shows."""

    def __init__(self, slug, title, head, rows, unit, bars, lower=True):
        self.slug, self.title, self.head, self.rows = slug, title, head, rows
        self.unit, self.bars, self.lower = unit, bars, lower

    def text(self):
        """As plain text in columns."""
        lines = [self.head, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.head))]
        aligned = [
            "  ".join(cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(zip(line, widths)))
            for line in lines
        ]
        return f"\n{self.title}\n" + "\n".join(f"  {line.rstrip()}" for line in aligned)

    def markdown(self):
        bold = lambda line: [f"**{cell}**" if line[0].split(" ")[0] == OURS else cell for cell in line]
        rows = "\n".join(f"| {' | '.join(bold(line))} |" for line in self.rows)
        rule = " | ".join(["---"] + ["---:"] * (len(self.head) - 1))
        table = f"| {' | '.join(self.head)} |\n| {rule} |\n{rows}\n"
        picture = f"![{self.title}](charts/{self.slug}.svg)\n\n" if self.bars else ""
        return f"### {self.title}\n\n{picture}{table}"

    def svg(self):
        return chart.bars(self.title, self.unit, self.bars, self.lower)


def label(server, proto):
    return f"{server} ({proto[:4]})" if proto else server


def kind_of(server):
    return "ours" if server == OURS else "floor" if server.startswith(("bare", "harness")) else "peer"


def times(value, base):
    return f"{value / base:.2f}" if value is not None and base else "-"


def simple(records, cell, slug, title, unit, columns, main, floor=None, lower=True):
    """A row per server: `columns` are (heading, figure, scale), the chart shows the figure `main`."""
    head = ["server", *(heading for heading, _, _ in columns)]
    if floor:
        head.insert(2, f"× {floor}")
    rows, bars = [], []
    for server, proto in records.who(cell):
        found = [records.median(server, proto, cell, figure) for _, figure, _ in columns]
        line = [label(server, proto)]
        line += [short(None if value is None else value / scale) for value, (_, _, scale) in zip(found, columns)]
        value = records.median(server, proto, cell, main)
        base = records.median(floor, proto, cell, main) if floor else None
        if floor:
            line.insert(2, times(value, base))
        rows.append(line)
        if value is not None:
            scale = next(scale for _, figure, scale in columns if figure == main)
            ratio = f" ({times(value, base)}×)" if base else ""
            bars.append((label(server, proto), value / scale, short(value / scale) + ratio, kind_of(server)))
    return Table(slug, title, head, rows, unit, bars, lower)


WHAT = {"echo-100": "echo of 100 B", "echo-64k": "echo of 64 KiB", "list": "tools/list of 102 tools"}


def under_load(section, records):
    for cell in records.cells:
        if cell == "start" or not records.who(cell):
            continue
        what, width = cell.rsplit("-", 1)
        noun = "connection" if section == "http" else "in flight"
        many = f"{width[1:]} {noun}" + ("s" if section == "http" and width != "c1" else "")
        title = f"{'HTTP' if section == 'http' else 'stdio'}, {WHAT[what]}, {many}"
        columns = [
            ("server CPU µs", "srv_cpu_us", 1),
            ("requests/s", "rps", 1),
            ("p50 µs", "p50_us", 1),
            ("p99 µs", "p99_us", 1),
            ("slowest µs", "max_us", 1),
            ("core busy", "srv_busy", 1),
            ("others' CPU", "foreign_busy", 1),
        ]
        unit = "µs of server CPU per request"
        yield simple(records, cell, f"{section}-{cell}", title, unit, columns, "srv_cpu_us", FLOORS[section])


def instructions(records):
    for cell in records.cells:
        if not records.who(cell):
            continue
        transport, rest = cell.split("-", 1)
        what, width = rest.rsplit("-", 1)
        noun = f"{width[1:]} at once" if width[1:] != "1" else "one at a time"
        title = f"Instructions: {'HTTP' if transport == 'http' else 'stdio'}, {WHAT[what]}, {noun}"
        columns = [("instructions (k)", "instr", 1000)]
        yield simple(records, cell, f"instr-{cell}", title, "thousands per request", columns, "instr", FLOORS[transport])


def cold(records):
    columns = [("ms to first answer", "cold_ms", 1), ("resident MiB", "rss_kib", 1024), ("ms to end", "exit_ms", 1)]
    title = "Cold start: from process start to the first correct result of a tool, over stdio"
    yield simple(records, "cold", "cold", title, "milliseconds", columns, "cold_ms", "bare-stdio")


def memory(records):
    titles = {"session": "Memory of an idle session", "stream": "Memory of an open stream"}
    for cell in records.cells:
        if not records.who(cell):
            continue
        columns = [
            ("KiB each", "kib_each", 1),
            ("MiB before", "rss_before_kib", 1024),
            ("MiB after", "rss_after_kib", 1024),
            ("how many", "count", 1),
            ("CPU µs to open", "srv_cpu_us_per_open", 1),
        ]
        yield simple(records, cell, f"memory-{cell}", titles[cell], "KiB each", columns, "kib_each")


def build(records):
    for cell in records.cells:
        if not records.who(cell):
            continue
        columns = [("CPU s", "cpu_s", 1), ("wall s", "wall_s", 1), ("crates", "crates", 1), ("stripped MB", "megabytes", 1)]
        title = f"Clean release build of the {'stdio' if cell == 'stdio' else 'HTTP'} server"
        yield simple(records, cell, f"build-{cell}", title, "CPU seconds", columns, "cpu_s")


def client(records):
    for cell in records.cells:
        if not records.who(cell):
            continue
        transport, tasks = cell.split("-")
        title = f"Client over {'HTTP' if transport == 'http' else 'stdio'}, {tasks} task{'s' if tasks != '1' else ''}"
        columns = [("calls/s", "calls_per_s", 1), ("client CPU µs", "cpu_us", 1)]
        yield simple(records, cell, f"client-{cell}", title, "calls per second", columns, "calls_per_s", "rmcp", lower=False)
