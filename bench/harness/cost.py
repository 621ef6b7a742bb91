"""What a server costs to build: CPU seconds of a clean release build, crates, size of the stripped program."""

import os
import resource
import shutil
import subprocess
import time

from harness.place import BENCH, HOME
from harness.tables import OURS

# Server, cell, package, what is asked of cargo, program. Where one program has both transports it stands with HTTP.
LEAN = ["--no-default-features"]
BUILDS = [
    ("bare-stdio", "stdio", "servers/bare", [], "bare-stdio"),
    (OURS, "stdio", "servers/bowline", LEAN, "bowline-stdio"),
    ("rmcp", "stdio", "servers/rmcp", LEAN, "rmcp-stdio"),
    ("bare-hyper", "http", "servers/bare", [], "bare-hyper"),
    (OURS, "http", "servers/bowline", [], "bowline-http"),
    ("rmcp", "http", "servers/rmcp", [*LEAN, "--features", "http"], "rmcp-http"),
    ("tower-mcp", "http", "servers/tower-mcp", [], "bench-tower-mcp"),
    ("turbomcp", "http", "servers/turbomcp", [], "bench-turbomcp"),
    ("rust-mcp-sdk", "http", "servers/rust-mcp-sdk", [], "bench-rust-mcp-sdk"),
]


def measure(variants, records, plan):
    packages = {variant.package for variant in variants}
    for server, cell, folder, flags, program in BUILDS:
        if folder.split("/")[1] not in packages:
            continue
        # The quick look has time for one.
        if plan.quick and (server, cell) != (OURS, "stdio"):
            continue
        try:
            records.add(server, None, cell, built(BENCH / folder, flags, program))
        except subprocess.CalledProcessError as why:
            records.fail(server, None, cell, why.stderr[-400:])


def cargo(*words, folder, **env):
    command = ["cargo", *words]
    return subprocess.run(command, cwd=folder, env=os.environ | env, capture_output=True, text=True, check=True).stdout


def built(folder, flags, program):
    target = HOME / "clean"
    shutil.rmtree(target, ignore_errors=True)
    # Downloads are no part of it.
    cargo("fetch", "--quiet", folder=folder)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    # The programs keep line tables for profiles; a plain release build has none.
    env = {"CARGO_TARGET_DIR": str(target), "CARGO_PROFILE_RELEASE_DEBUG": "0"}
    cargo("build", "--release", "--quiet", "--offline", *flags, "--bin", program, folder=folder, **env)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    stripped = target / "stripped"
    subprocess.run(["strip", "-o", stripped, target / "release" / program], check=True, capture_output=True, text=True)
    size = stripped.stat().st_size
    shutil.rmtree(target)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    tree = ["tree", "--offline", "-e", "normal,build", "--prefix", "none", "--no-dedupe", "-f", "{p}", *flags]
    crates = {line.split(" (")[0] for line in cargo(*tree, folder=folder).splitlines() if line}
    return {
        "wall_s": round(wall, 1),
        "cpu_s": round(cpu, 1),
        # Everything that is compiled for the program, but not the program.
        "crates": len(crates) - 1,
        "megabytes": round(size / 1e6, 3),
    }
