"""What a gateway costs: CPU time per call that passes it, and memory, with a hundred clients in front of it."""

import shlex
import tomllib
from contextlib import ExitStack

from harness.place import BENCH, BUILD, HOME
from harness.servers import LOAD_CPU, Running, Variant, Wrong, load
from harness.speed import quietest
from harness.tables import OURS, Table, label, times
from harness.figures import short

CLIENTS = 100
# The same bare servers behind each: what they cost is no part of the figures, and next to nothing.
STDIO = BUILD / "release" / "bare-stdio"
HTTP = Variant("bare-hyper", {"package": "bare", "http": "{bin}/bare-hyper --port {port}", "protos": ["2026-07-28"], "groups": []})
# What every gateway needs besides itself.
PACKAGES = ["bare"]


class Gateway:
    """One table of gateways.toml, in front of one kind of upstream; a variant as `Running` wants it."""

    def __init__(self, name, table, kind, upstream):
        self.name, self.table, self.kind, self.upstream = name, table, kind, str(upstream)

    def command(self, _, port, more=()):
        known = {"bin": BUILD / "release", "home": HOME, "port": port, "upstream": self.upstream}
        text = self.table["command"]
        if config := self.table.get("config", {}).get(self.kind):
            file = HOME / "gateways" / f"{self.name}-{self.kind}.toml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(config.format(**known))
            known["config"] = file
        flags = self.table.get("flags", {}).get(self.kind, "")
        return [*shlex.split(f"{text} {flags}".format(**known)), *map(str, more)]


def names():
    """The gateways and packages there are."""
    tables = tomllib.loads((BENCH / "gateways.toml").read_text())
    return {word for name, table in tables.items() for word in (name, table["package"])}


def chosen(quick, only):
    tables = tomllib.loads((BENCH / "gateways.toml").read_text())
    wanted = set(only)
    group = "quick" if quick else "main"
    return {
        name: table
        for name, table in tables.items()
        if ({name, table["package"]} & wanted if only else group in table["groups"])
    }


def measure(_, records, plan):
    """In turns: in each round all gateways are started anew, and each is under load while the others are idle."""
    for turn in range(plan.rounds):
        with ExitStack() as stack:
            # It shares the processor of the load generator; a gateway that starts its upstream shares its own with it.
            far = stack.enter_context(Running(HTTP, cpu=LOAD_CPU)).ready(["2026-07-28"])
            up = []
            for kind, upstream in (("stdio", STDIO), ("http", far.url)):
                for name, table in plan.gateways.items():
                    if kind not in table.get("config", table.get("flags", {})):
                        continue
                    running = stack.enter_context(Running(Gateway(name, table, kind, upstream), path=table["path"]))
                    for proto in table["protos"]:
                        try:
                            running.ready([proto], ops=["echo"], prefix=table["prefix"])
                            up.append((running, table, proto, f"{kind}-c{CLIENTS}"))
                        except Wrong as why:
                            records.fail(name, proto, f"{kind}-c{CLIENTS}", why)
            for running, table, proto, cell in up:
                flags = ["--url", running.url, "--proto", proto, "--op", "echo", "--payload", 100, "--conns", CLIENTS]
                flags += ["--prefix", table["prefix"], "--pid", running.pid, "--warmup", plan.warmup, "--duration"]
                try:
                    found = quietest(lambda seconds: load("http", *flags, seconds), plan)
                    records.add(running.name, proto, cell, found, round=turn)
                except Wrong as why:
                    records.fail(running.name, proto, cell, why)


def tables(records):
    for cell in records.cells:
        if not records.who(cell):
            continue
        kind = "a process" if cell.startswith("stdio") else "a server on HTTP"
        head = ["gateway", "CPU µs per call", f"× {OURS}", "peak MiB", f"× {OURS}", "calls/s", "p50 µs", "p99 µs"]
        # What is behind the gateway is among the others.
        head += ["core busy", "others' CPU"]
        rows, bars = [], []
        for name, proto in records.who(cell):
            figure = lambda what, who=name: records.median(who, proto, cell, what)
            cpu, peak = figure("srv_cpu_us"), figure("hwm_kib")
            ours = figure("srv_cpu_us", OURS), figure("hwm_kib", OURS)
            rest = [short(figure(what)) for what in ("rps", "p50_us", "p99_us", "srv_busy", "foreign_busy")]
            rows.append([label(name, proto), short(cpu), times(cpu, ours[0]), short(peak / 1024), times(peak, ours[1]), *rest])
            bars.append((label(name, proto), cpu, short(cpu), "ours" if name == OURS else "peer"))
        title = f"A gateway in front of {kind}, echo of 100 B, {CLIENTS} clients"
        yield Table(f"gateway-{cell}", title, head, rows, "µs of CPU per call", bars)
