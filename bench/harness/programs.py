"""Builds and installs the programs under test, and tells their versions."""

import json
import shutil
import subprocess
import sys
import tomllib

from harness.place import BENCH, BUILD, HOME, ROOT, quiet, say

# Packages of Rust programs by the name that servers.toml gives them; the first crate is the one whose version is told.
RUST = {
    "bowline": ("servers/bowline", ["bowline"]),
    "bowline-protected": ("servers/bowline", ["bowline"]),
    "bare": ("servers/bare", ["hyper", "axum"]),
    "rmcp": ("servers/rmcp", ["rmcp"]),
    "tower-mcp": ("servers/tower-mcp", ["tower-mcp"]),
    "turbomcp": ("servers/turbomcp", ["turbomcp"]),
    "rust-mcp-sdk": ("servers/rust-mcp-sdk", ["rust-mcp-sdk"]),
}
# The program itself, from the workspace.
PROGRAM = "bowline-cli"
# Programs that are installed as their users do.
CRATES = {"mcp-proxy": "0.6.0"}
SCRIPTS = BENCH / "servers"
GATEWAYS = BENCH / "gateways"


def install(packages, clients):
    """Builds the load generator and what the chosen servers are made of."""
    clients = [f"clients/{package}" for package in packages if clients and (BENCH / "clients" / package).is_dir()]
    for package in ["load", *packages, *clients]:
        say(f"building {package}")
        if package == "bowline-protected":
            rust(RUST[package][0], "--features", "protected", "--bin", package)
        elif package in RUST:
            rust(RUST[package][0])
        elif package == PROGRAM:
            program()
        elif package in ("load", *clients):
            rust(package)
        elif package in CRATES:
            crate(package)
        elif package == "supergateway":
            node_home(package, GATEWAYS / "ts" / "package.json")
        elif package == "ts":
            node_packages()
        else:
            python_packages(package)


def program():
    """`bowline`, as it is released."""
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--package", PROGRAM]
    quiet(command, cwd=ROOT, env={"CARGO_TARGET_DIR": str(BUILD)})


def crate(name):
    """A program of the registry, as `cargo install` has it."""
    home = HOME / name
    if not stamped(home, CRATES[name]):
        command = ["cargo", "install", "--quiet", "--locked", "--root", home, "--version", CRATES[name], name]
        quiet(command, env={"CARGO_TARGET_DIR": str(BUILD)})
        (home / "installed").write_text(CRATES[name])


def node_home(name, listed):
    """A folder with the packages of a list; where it is."""
    home, wanted = HOME / name, listed.read_text()
    if not stamped(home, wanted):
        shutil.copy(listed, home)
        quiet(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", str(home)], cwd=home)
        (home / "installed").write_text(wanted)
    return home


def rust(package, *flags):
    folder, locked = BENCH / package, ["--locked"]
    if folder.name == "bowline":
        # It is measured with the versions that the workspace is tested with; cargo drops what it does not need.
        shutil.copy(ROOT / "Cargo.lock", folder / "Cargo.lock")
        locked = []
    command = ["cargo", "build", "--release", "--quiet", *locked, *flags, "--manifest-path", folder / "Cargo.toml"]
    quiet(command, env={"CARGO_TARGET_DIR": str(BUILD)})


def stamped(home, stamp):
    """Whether what is there was installed from the same list; an outdated folder is removed."""
    done = home / "installed"
    if done.is_file() and done.read_text() == stamp:
        return True
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    return False


def node_packages():
    home = node_home("ts", SCRIPTS / "ts" / "package.json")
    # Packages are looked for next to the program that imports them.
    for program in (SCRIPTS / "ts").glob("*.mjs"):
        shutil.copy(program, home)
    shutil.copy(SCRIPTS / "tools.json", home)


def python_packages(package):
    kind = package.removeprefix("py-")
    listed = SCRIPTS / "py" / f"requirements-{kind}.txt"
    home = HOME / package
    if not stamped(home, listed.read_text()):
        quiet([sys.executable, "-m", "venv", str(home)])
        # The list of fastmcp is whole; its own bounds would not have the newest of what it builds on.
        whole = ["--no-deps"] if kind == "fastmcp" else []
        quiet([str(home / "bin" / "pip"), "install", "--quiet", *whole, "-r", str(listed)])
        (home / "installed").write_text(listed.read_text())


def versions(packages):
    """What was measured, from lock files and the packages' own data: name to version."""
    told = {}
    for package in packages:
        if package in RUST:
            folder, crates = RUST[package]
            locked = tomllib.loads((BENCH / folder / "Cargo.lock").read_text())["package"]
            for crate in crates:
                told[crate] = next((entry["version"] for entry in locked if entry["name"] == crate), "?")
        elif package == PROGRAM:
            told["bowline"] = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        elif package in CRATES:
            told[package] = CRATES[package]
        elif package == "supergateway":
            found = HOME / package / "node_modules" / package / "package.json"
            told[package] = json.loads(found.read_text())["version"]
        elif package == "ts":
            for name in json.loads((SCRIPTS / "ts" / "package.json").read_text())["dependencies"]:
                if name.startswith("@modelcontextprotocol/"):
                    found = HOME / "ts" / "node_modules" / name / "package.json"
                    told[name] = json.loads(found.read_text())["version"]
        else:
            kind = package.removeprefix("py-")
            ask = f"import importlib.metadata as m; print(m.version('{kind}'))"
            told[f"{kind} (Python)"] = quiet([str(HOME / package / "bin" / "python"), "-c", ask]).strip()
    told["rustc"] = quiet(["rustc", "--version"]).split()[1]
    if {"ts", "supergateway"} & set(packages):
        told["node"] = quiet(["node", "--version"]).strip().removeprefix("v")
    if any(package.startswith("py-") for package in packages):
        told["python"] = sys.version.split()[0]
    return told


def commit():
    """The revision of the sources, and whether they differ from it."""
    git = lambda *words: subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    changed = git("status", "--porcelain", "--", "crates", "bench/servers", "bench/gateways", "bench/load", "Cargo.toml", "Cargo.lock")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if changed else "")
