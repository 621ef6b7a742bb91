"""What a session and an open stream cost in memory: resident size before and after holding many."""

from harness.servers import Running, Wrong, load

SCRIPTS = ("ts", "py-mcp", "py-fastmcp")


def measure(variants, records, plan):
    for turn in range(1 if plan.quick else 2):
        for variant in variants:
            for proto in variant.protos if "http" in variant.commands else []:
                few = variant.package in SCRIPTS
                cells = [("stream", "streams", 500 if few else 2_000 if plan.quick else 5_000)]
                # A server without sessions has nothing to hold.
                if proto == "2025-11-25":
                    cells.insert(0, ("session", "sessions", 1_000 if few else 5_000 if plan.quick else 10_000))
                for cell, job, count in cells:
                    try:
                        # A fresh process for every figure.
                        with Running(variant) as running:
                            running.ready([proto])
                            found = held(running, job, proto, count)
                        records.add(variant.name, proto, cell, found, round=turn)
                    except Wrong as why:
                        records.fail(variant.name, proto, cell, why)


def held(running, job, proto, count):
    found = load(job, "--url", running.url, "--proto", proto, "--pid", running.pid, "--count", count)
    found["kib_each"] = found.pop("kib_per_session" if job == "sessions" else "kib_per_stream")
    return found | {"count": count}
