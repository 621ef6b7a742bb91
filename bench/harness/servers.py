"""The servers under test: which there are, how they are started and asked."""

import json
import shlex
import signal
import socket
import subprocess
import tomllib

from harness.place import BENCH, BUILD, HOME, LOAD

# The server has one processor for itself, the load generator another, so figures are per core.
SERVER_CPU, LOAD_CPU = 0, 1


class Variant:
    """One table of servers.toml."""

    def __init__(self, name, table):
        self.name, self.package = name, table["package"]
        self.commands = {kind: table[kind] for kind in ("http", "stdio") if kind in table}
        self.protos, self.groups = table["protos"], table["groups"]
        self.token = (BENCH / table["token"]).read_text().strip() if "token" in table else None

    def command(self, kind, port=None, more=()):
        text = self.commands[kind].format(bin=BUILD / "release", home=HOME, port=port)
        return [*shlex.split(text), *map(str, more)]


def chosen(quick, only, others=frozenset()):
    """The servers to measure. What is in `others` may be named too, and is no server."""
    tables = tomllib.loads((BENCH / "servers.toml").read_text())
    variants = [Variant(name, table) for name, table in tables.items()]
    if only:
        known = {word for variant in variants for word in (variant.name, variant.package)}
        if unknown := set(only) - known - others:
            raise SystemExit(f"there is no server {', '.join(sorted(unknown))}")
        return [variant for variant in variants if {variant.name, variant.package} & set(only)]
    wanted = {"quick"} if quick else {"main", "pairs"}
    return [variant for variant in variants if wanted & set(variant.groups)]


class Wrong(Exception):
    """A server that does not start, or does not answer as it should."""


def load(job, *flags, child=()):
    """Runs the load generator; what it found, or `Wrong`."""
    command = [LOAD, job, "--cpu", LOAD_CPU, *flags, *(["--", *child] if child else [])]
    done = subprocess.run([*map(str, command)], cwd=BENCH, capture_output=True, text=True)
    if done.returncode:
        raise Wrong(done.stderr.strip()[:600] or f"bench-load ended with {done.returncode}")
    return json.loads(done.stdout)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Running:
    """A server on HTTP, from its start to the end of the `with` block."""

    def __init__(self, variant, *, more=(), before=(), pinned=True, env=None, path="/mcp", cpu=SERVER_CPU):
        self.name, self.port = variant.name, free_port()
        # The load generator sends a user name as bearer token.
        user = f"{variant.token}@" if getattr(variant, "token", None) else ""
        self.url = f"http://{user}127.0.0.1:{self.port}{path}"
        pin = ["taskset", "-c", str(cpu)] if pinned else []
        command = [*pin, *map(str, before), *variant.command("http", self.port, more)]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, cwd=BENCH, env=env, stdin=quiet, stdout=quiet, stderr=quiet)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def ready(self, protos, *, ops=("echo", "add", "list"), tools=102, prefix=""):
        """Waits until it answers rightly, in each revision."""
        for proto in protos:
            for op in ops:
                flags = ["--url", self.url, "--proto", proto, "--op", op, "--tools", tools, "--timeout", 60]
                load("wait", *flags, "--prefix", prefix)
        return self

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
