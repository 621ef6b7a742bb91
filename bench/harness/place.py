"""Where things are, and how commands are run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
HOME = ROOT / "target" / "bench"
BUILD = HOME / "build"
LOAD = BUILD / "release" / "bench-load"


def quiet(command, cwd=BENCH, env=None):
    """Runs a command that is expected to work, and shows what it said when it does not."""
    done = subprocess.run(command, cwd=cwd, env=os.environ | (env or {}), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def say(*words):
    print(*words, flush=True)


def needs(program, package):
    """Makes sure that a program is there, from the system's packages if need be."""
    if shutil.which(program):
        return
    if not shutil.which("apt-get"):
        sys.exit(f"{program} is missing, and so is apt-get to install it")
    say(f"installing {package}")
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    quiet([*sudo, "apt-get", "update", "-qq"])
    quiet([*sudo, "apt-get", "install", "-y", "-qq", package], env={"DEBIAN_FRONTEND": "noninteractive"})
